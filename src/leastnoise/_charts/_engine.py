"""The process that draws: Vega-Lite on its standard input, SVG on its standard output; reads and writes nothing else."""

import json
import sys
from typing import Any

from leastnoise._charts._locale import spoken


def main() -> None:
    """Draw what is asked for, each chart by itself: one that fails is null."""
    import vl_convert

    asked = json.load(sys.stdin)
    json.dump([_drawn(vl_convert, spoken(spec, asked["language"])) for spec in asked["specs"]], sys.stdout)


def _drawn(engine: Any, spec: dict[str, Any]) -> str | None:
    try:
        svg = engine.vegalite_to_svg(spec, allowed_base_urls=[])
    except ValueError:
        return None
    return str(svg)


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    main()
