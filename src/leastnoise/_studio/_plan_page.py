"""The page that plans: its routes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.routing import BaseRoute

from leastnoise._check import InputError
from leastnoise._release import Texts, texts
from leastnoise._session import read_spec_text
from leastnoise._studio._draft import OBJECTIVES, TARGETS
from leastnoise._studio._pages import Page, action, asset, html, shown, text, value
from leastnoise._studio._plan_view import view
from leastnoise._studio._planning import Planning
from leastnoise._studio._text import spec_text

_LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)


def planning_page(place: Path) -> Page:
    """The page for one spec."""
    planning = Planning(place, read_spec_text(place))
    said = texts(planning.seen.draft.spec.options.language)

    def page() -> str:
        return shown("planning.html", t=said, name=place.name, lead=view(planning.seen)["lead"], **_choices(planning, said))

    def doing(path: str, do: Callable[[dict[str, Any]], str | None]) -> BaseRoute:
        """What is done for a page that says which version of the settings it shows; what it shows then, and a word of what was done."""

        def done(asked: dict[str, Any]) -> Any:
            with planning.showing(asked.get("version")):
                word = do(asked)
                return {**view(planning.seen), "done": word}

        return action(path, done)

    def change(asked: dict[str, Any]) -> None:
        rows, changes = asked.get("rows", []), asked.get("changes")
        if not isinstance(rows, list) or not isinstance(changes, dict):
            raise InputError("A change must have an object of changes, and a list of rows.")
        planning.change(changes, rows)

    def price(asked: dict[str, Any]) -> None:
        rows = asked.get("rows")
        if not isinstance(rows, list) or not all(isinstance(row, int) for row in rows):
            raise InputError("A price must have a list of rows.")
        planning.price(rows)

    def save(asked: dict[str, Any]) -> str:
        return said.say("st_saved", file=planning.save(str(asked.get("name", ""))).name)

    return Page(
        routes=[
            html("/", page),
            *(asset(name) for name in ("studio.css", "asking.js", "planning.js")),
            value("/view", lambda: view(planning.seen)),
            text("/spec", lambda: spec_text(planning.seen.draft)),
            doing("/change", change),
            doing("/price", price),
            doing("/keep", lambda _: planning.keep()),
            doing("/swap", lambda _: planning.swap()),
            doing("/save", save),
        ],
        begin=planning.begin,
        close=planning.close,
    )


def _choices(planning: Planning, said: Texts) -> dict[str, Any]:
    draft = planning.seen.draft
    levels = sorted({*_LEVELS, draft.level})
    return {
        "rows": [(row.name, said.plain(row.queries)) for row in draft.rows],
        "of": draft.of,
        "delta": bool(draft.delta),
        "levels": [(level, said.percent(level)) for level in levels],
        "objectives": [(name, said.say(f"st_{name}")) for name in OBJECTIVES],
        "targets": [("", said.say("st_none")), *((name, said.say(f"st_{'share' if name == 'relative' else name}")) for name in TARGETS)],
    }
