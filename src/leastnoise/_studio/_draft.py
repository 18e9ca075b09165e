"""A spec that is being worked on: its text as it was, and what was changed since. Frozen values, and functions from one to the next."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from leastnoise._check import InputError, exact_positive, one_of, refuse, whole
from leastnoise._session import Spec, read_toml, spec_from_table
from leastnoise._workload import Product, Statistic, Workload, groups_of

OBJECTIVES = ("total", "worst", "relative")
TARGETS = ("margin", "relative", "rmse")
Question = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a person can change of one row."""

    on: bool = True
    weight: str = "1"
    target: str = ""
    most: str = ""
    size_of: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What is switched on and off as one: a table, or the tables of a part of the workload that can only be asked together."""

    part: int
    entry: Mapping[str, Any]
    products: tuple[Product, ...]
    statistic: Statistic | None = None

    @property
    def name(self) -> str:
        """Of its tables, behind what they are asked for."""
        tables = ", ".join(product.name for product in self.products)
        return tables if self.statistic is None else f"{self.statistic.name} ({tables})"

    @property
    def questions(self) -> tuple[Question, ...]:
        """What it asks, by which its tables are found in a workload."""
        return tuple(product.question for product in self.products)

    @property
    def queries(self) -> int:
        """How many answers it has."""
        return sum(product.rows for product in self.products)


@dataclass(frozen=True)
class Draft:
    """A spec that is being worked on."""

    text: str
    folder: Path
    rows: tuple[Row, ...]
    settings: tuple[Setting, ...]
    of: str
    size: str
    delta: str
    objective: str
    level: float

    @cached_property
    def spec(self) -> Spec:
        """The spec that it stands for."""
        return spec_from_table(wanted(self)[0], self.folder)


def drafted(text: str, folder: Path, name: str = "the spec") -> Draft:
    r"""A draft without changes."""
    table = read_toml(text, name)
    spec = spec_from_table(table, folder, name)
    rows, settings = [], []
    for part, (entry, products) in enumerate(zip(table["workload"], spec.parts, strict=True)):
        alone = {key: value for key, value in entry.items() if key not in _SAID}
        made = _apart(alone, products) if "marginals" in alone else [alone]
        each = [(product,) for product in products] if "marginals" in alone else [products]
        statistic = _statistic(entry, spec.workload)
        rows += [Row(part, one, asked, statistic) for one, asked in zip(made, each, strict=True)]
        settings += [_setting(entry)] * len(made)
    privacy = table["privacy"]
    of = "rho" if "rho" in privacy else "epsilon"
    delta = str(privacy["delta"]) if "delta" in privacy else ""
    return Draft(text, folder, tuple(rows), tuple(settings), of, str(privacy[of]), delta, spec.objective, spec.options.level)


_SAID = ("weight", "size", *TARGETS)


def _statistic(entry: Mapping[str, Any], workload: Workload) -> Statistic | None:
    """The statistic of a workload that one of its parts asks for; None for tables."""

    def is_asked(one: Statistic) -> bool:
        own = entry.get(one.kind)
        if not isinstance(own, Mapping) or one.of != own["of"] or one.along != groups_of(workload.domain, own.get("by", ()), "by"):
            return False
        return one.at == tuple(exact_positive("at", share) for share in own.get("at", ()))

    return next(filter(is_asked, workload.statistics), None)


def _apart(entry: Mapping[str, Any], products: Sequence[Product]) -> list[dict[str, Any]]:
    """Marginals, each asked for by itself."""
    more = {key: value for key, value in entry.items() if key != "marginals"}
    return [{"queries": product.spec, **more} for product in products]


def _setting(entry: Mapping[str, Any]) -> Setting:
    target = next((name for name in TARGETS if name in entry), "")
    weight, most, size = (str(entry.get(key, usual)) for key, usual in (("weight", "1"), (target, ""), ("size", "")))
    return Setting(True, weight, target, most, size)


def changed(draft: Draft, changes: Mapping[str, object], rows: Sequence[int] = ()) -> Draft:
    r"""A draft with something changed."""
    for what in changes:
        one_of("what is changed", what, (*_WHOLE, *_OF_A_ROW))
    found = replace(draft, **{what: _WHOLE[what](value) for what, value in changes.items() if what in _WHOLE})
    own = {what: _OF_A_ROW[what](value) for what, value in changes.items() if what in _OF_A_ROW}
    settings = list(draft.settings)
    for row in rows if own else ():
        place = whole("a row", row, 0, len(settings) - 1)
        settings[place] = replace(settings[place], **own)
    found = replace(found, settings=tuple(settings))
    found.spec  # noqa: B018 - refuses what cannot be used
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise refuse("a value", type(value).__name__, "a text")
    return value.strip()


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refuse("level", value, "a number above 0 and below 1, such as 0.95")
    return float(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise refuse("on", value, "true or false")
    return value


_WHOLE: Mapping[str, Callable[[object], Any]] = {
    "size": _text,
    "delta": _text,
    "objective": lambda value: one_of("objective", value, OBJECTIVES),
    "level": _number,
}
_OF_A_ROW: Mapping[str, Callable[[object], Any]] = {
    "on": _flag,
    "weight": lambda value: _text(value) or "1",
    "target": lambda value: one_of("target", value, ("", *TARGETS)),
    "most": _text,
    "size_of": _text,
}


def wanted(draft: Draft) -> tuple[dict[str, Any], list[int | None]]:
    r"""What the spec says now, as TOML is read; and for each part of its workload which one it was, None for one that is new."""
    table = deepcopy(read_toml(draft.text))
    before = table["privacy"]
    _put(before, draft.of, draft.size)
    if draft.delta or "delta" in before:
        _put(before, "delta", draft.delta)
    if draft.objective != table.get("plan", {}).get("objective", "total"):
        table.setdefault("plan", {})["objective"] = draft.objective
    if draft.level != table.get("output", {}).get("level", 0.95):
        table.setdefault("output", {})["level"] = draft.level
    entries: list[dict[str, Any]] = []
    origins: list[int | None] = []
    for place, entry in enumerate(table["workload"]):
        own = [number for number, row in enumerate(draft.rows) if row.part == place]
        if all(draft.settings[number] == draft.settings[own[0]] for number in own):
            if draft.settings[own[0]].on:
                entries.append(_said(entry, draft.settings[own[0]]))
                origins.append(place)
            continue
        kept = [number for number in own if draft.settings[number].on]
        entries += [_said(draft.rows[number].entry, draft.settings[number]) for number in kept]
        origins += [None] * len(kept)
    if not entries:
        raise InputError("No table is left to ask for; keep at least one.")
    table["workload"] = entries
    return table, origins


def _said(entry: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """A part of the workload with a setting."""
    found = dict(entry)
    said = {"size": setting.size_of, "weight": setting.weight, setting.target: setting.most}
    for key in (*TARGETS, "size", "weight"):
        text = said.get(key, "")
        if not text:
            found.pop(key, None)
        elif (key, text) != ("weight", "1") or key in found:
            _put(found, key, text)
    return found


def _put(table: dict[str, Any], key: str, text: str) -> None:
    """A number as a text, unless it is the one that is there already."""
    if text != str(table.get(key)):
        table[key] = text
