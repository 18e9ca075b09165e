"""The tables of docs/strategies.md, made from the registry of planners.

python -m contracts.strategies --write      rewrites them; a test compares
"""

import re
import sys
from functools import partial
from pathlib import Path

from leastnoise._strategies import PLANNERS

PAGE = Path(__file__).parents[1] / "docs" / "strategies.md"
HEADS = {
    "automatic": ("| name | measures | made for | up to |\n|---|---|---|---|\n", True),
    "by name": (
        "| name | in the paper, or made for | measures | up to |\n|---|---|---|---|\n",
        False,
    ),
}


def table(which: str) -> str:
    """One of the two tables, in Markdown."""
    head, automatic = HEADS[which]
    rows = [
        (
            f"`{one.name}`",
            *((one.measures, one.made_for) if automatic else (one.made_for, one.measures)),
            one.limits or "-",
        )
        for one in PLANNERS.values()
        if one.automatic is automatic
    ]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _with_table(which: str, match: re.Match[str]) -> str:
    return match[1] + table(which)


def page(text: str) -> str:
    """The page with its tables as the registry has them."""
    for which in HEADS:
        mark = f"<!-- {which}: made by python -m contracts.strategies --write -->"
        text, found = re.subn(
            rf"({re.escape(mark)}\n\n)(\|[^\n]*\n)*", partial(_with_table, which), text
        )
        if found != 1:
            raise SystemExit(f"{PAGE.name} must have the line {mark} once")
    return text


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(page(before), encoding="utf-8")
    elif page(before) != before:
        raise SystemExit(
            f"{PAGE.name} differs from the registry: python -m contracts.strategies --write"
        )
