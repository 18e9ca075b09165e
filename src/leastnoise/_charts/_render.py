"""Charts as SVG, made by vl-convert without a network, in a process of its own.

An engine for JavaScript draws them. It sees what is published and nothing else: it never runs in the process that holds private rows, and
when it fails or hangs the report has no pictures and the release is whole.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from html import escape

from leastnoise._charts._picture import Spec

SECONDS = 60.0  # for the engine to start
SECONDS_A_CHART = 5.0
# inside a picture that is described as one, roles of its parts only confuse those who listen to it
_ROLES = re.compile(r' (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*"|aria-hidden="true"|pointer-events="none")')
_CLIP = re.compile(r'(id="|url\(#)((?:clip|gradient)_?\d+)')


def drawing() -> bool:
    """Whether pictures are made: not under LEASTNOISE_CHARTS=never."""
    return os.environ.get("LEASTNOISE_CHARTS") != "never"


def svg_of(specs: Sequence[Spec], texts: Sequence[tuple[str, str, str]], language: str = "en") -> list[str | None]:
    """Every chart as one SVG element for a page."""
    if not specs or not drawing():
        return [None] * len(specs)
    command = [sys.executable, "-P", "-m", "leastnoise._charts._engine"]
    request = json.dumps({"specs": list(specs), "language": language})
    try:
        done = subprocess.run(  # noqa: S603 - this Python and a module of this package
            command, input=request, capture_output=True, encoding="utf-8", timeout=SECONDS + SECONDS_A_CHART * len(specs), check=True
        )
        drawn = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return [None] * len(specs)
    return [None if svg is None else _named(svg, *text) for svg, text in zip(drawn, texts, strict=True)]


def _named(svg: str, key: str, title: str, description: str) -> str:
    """For a page: ids of its own, a title and a description, as wide as there is room."""
    own = _CLIP.sub(rf"\g<1>{key}-\g<2>", _ROLES.sub("", svg))
    head, _, body = own.partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    width = re.search(r'width="([\d.]+)"', head)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box.group() if box else ""} '
        f'aria-labelledby="{key}-title {key}-desc" style="max-width:{width.group(1) if width else 460}px">'
        f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(description)}</desc>{body}'
    )
