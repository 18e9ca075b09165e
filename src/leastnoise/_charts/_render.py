"""Render charts as Altair objects for notebooks, and as SVG by vl-convert.

A JavaScript engine draws the SVG in a separate process without a network. The engine receives only
published numbers, and never runs in the process that has read private rows. If the engine fails or
hangs, the report has no pictures, but the release is complete.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

from leastnoise._charts._picture import Spec
from leastnoise._environment import CHARTS, is_on
from leastnoise._trusted.check import InputError

if TYPE_CHECKING:
    import altair as alt

_LIBRARIES = ("altair", "vl_convert")
_EXTRA = "need the extra 'charts': pip install 'leastnoise[charts]'"
START_SECONDS = 60.0  # time limit for the start of the engine
CHART_SECONDS = 5.0  # time limit for one chart; then the engine is taken to hang
_TAG_START = re.compile(r"<(?=[/!?a-z])", re.IGNORECASE)
# Screen readers read the description of the whole picture. Roles of its parts would only confuse.
_ROLES = re.compile(
    r' (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*"'
    r'|aria-hidden="true"|pointer-events="none")'
)
_CLIP = re.compile(r'(id="|url\(#)((?:clip|gradient)_?\d+)')


def make_altair_chart(spec: Spec, title: str) -> "alt.TopLevelMixin":
    """Return an Altair chart of a specification, which users can modify.

    A notebook receives both the interactive chart and a picture; pages exported from the notebook
    then need no network. If another Altair renderer is enabled, the notebook uses it. Altair writes
    specifications verbatim into scripts of HTML, where a label could end the script. For this
    reason an invisible word joiner is inserted after each character of a label that could begin a
    tag.
    """
    if not has_chart_libraries():
        raise InputError(f"Charts {_EXTRA}.")
    import altair as alt

    kind: Any
    if "facet" in spec:
        kind = alt.FacetChart
    else:
        kind = alt.LayerChart

    class WithPicture(kind):  # type: ignore[misc] # one of two classes of Altair's
        def _repr_mimebundle_(self, *args: Any, **kwds: Any) -> Any:
            """Return the chart for notebooks, with an SVG picture if it can be drawn."""
            if alt.renderers.active != "default":
                return super()._repr_mimebundle_(*args, **kwds)
            spec_json = self.to_dict()
            key = f"c{crc32(json.dumps(spec_json).encode()):08x}"
            (picture,) = render_svg([spec_json], [(key, title, "")])
            if picture is None:
                pictures = {}
            else:
                pictures = {"image/svg+xml": picture}
            version = spec_json["$schema"].rsplit("/", 1)[1].partition(".")[0]
            return {
                f"application/vnd.vegalite.{version}+json": spec_json,
                **pictures,
                "text/plain": title,
            }

    return cast(
        "alt.TopLevelMixin",
        WithPicture.from_dict(json.loads(_TAG_START.sub("<\u2060", json.dumps(spec)))),
    )


def set_locale(spec: Spec, language: str) -> Spec:
    """Return a specification with the number and date formats of a language."""
    import vl_convert
    from babel.core import get_global

    # The chart libraries name a locale by language and region; this is the language's usual region.
    main_language, _, region = get_global("likely_subtags")[language].split("_")
    locale: Any = f"{main_language}-{region}"
    words = {
        "number": vl_convert.get_format_locale(locale),
        "time": vl_convert.get_time_format_locale(locale),
    }
    return {**spec, "config": {**spec.get("config", {}), "locale": words}}


def is_drawing() -> bool:
    """Return whether charts can be drawn as pictures.

    Pictures require the extra ``charts``. LEASTNOISE_CHARTS=off turns these pictures off.
    """
    return is_on(CHARTS) and has_chart_libraries()


def has_chart_libraries() -> bool:
    """Return whether the libraries of the extra ``charts`` are installed."""
    return all(find_spec(name) is not None for name in _LIBRARIES)


def missing_charts_notice() -> str | None:
    """Return why reports have no charts; None if they have, or charts are off."""
    if is_on(CHARTS) and not has_chart_libraries():
        return f"The report has no charts: they {_EXTRA}."
    return None


def render_svg(
    specs: Sequence[Spec], texts: Sequence[tuple[str, str, str]], language: str = "en"
) -> list[str | None]:
    """Return an SVG element for each specification, or None if drawing fails.

    ``texts`` has a tuple (id, title, description) for each specification.
    """
    if not specs or not is_drawing():
        return [None] * len(specs)
    command = [
        sys.executable,
        "-P",
        "-c",
        "from leastnoise._charts._render import draw_for_parent; draw_for_parent()",
    ]
    request = json.dumps({"specs": list(specs), "language": language})
    try:
        engine = subprocess.run(  # noqa: S603 - this Python and a module of this package
            command,
            input=request,
            capture_output=True,
            encoding="utf-8",
            timeout=START_SECONDS + CHART_SECONDS * len(specs),
            check=True,
        )
        pictures = json.loads(engine.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return [None] * len(specs)
    labelled: list[str | None] = []
    for svg, text in zip(pictures, texts, strict=True):
        if svg is None:
            labelled.append(None)
        else:
            labelled.append(_label_svg(svg, *text))
    return labelled


def draw_for_parent() -> None:
    """Read Vega-Lite from standard input and write SVG to standard output.

    This function runs in the process of the JavaScript engine.
    """
    import vl_convert

    request = json.loads(sys.stdin.buffer.read())
    pictures = list[str | None]()
    for spec in request["specs"]:
        try:
            pictures.append(
                str(
                    vl_convert.vegalite_to_svg(
                        set_locale(spec, request["language"]), allowed_base_urls=[]
                    )
                )
            )
        except ValueError:
            pictures.append(None)
    sys.stdout.buffer.write(json.dumps(pictures).encode())


def _label_svg(svg: str, id_prefix: str, title: str, description: str) -> str:
    """Return an SVG picture with unique ids, a title and a description.

    The picture scales with the width of the page.
    """
    head, _, body = _CLIP.sub(rf"\g<1>{id_prefix}-\g<2>", _ROLES.sub("", svg)).partition(">")
    view_box = ""
    if match := re.search(r'viewBox="[^"]*"', head):
        view_box = match.group()
    width = "460"
    if match := re.search(r'width="([\d.]+)"', head):
        width = match.group(1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {view_box} '
        f'aria-labelledby="{id_prefix}-title {id_prefix}-desc" '
        f'style="max-width:{width}px">'
        f'<title id="{id_prefix}-title">{escape(title)}</title><desc '
        f'id="{id_prefix}-desc">{escape(description)}</desc>{body}'
    )
