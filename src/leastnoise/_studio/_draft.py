"""A draft of a spec, which the studio changes and saves, and the process that plans it.

The process reads its request as one JSON line on standard input, and writes its results as JSON
lines on standard output. It plans from the very text that would be saved, and ends when its input
ends, so that it does not outlive the studio.
"""

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any

import tomlkit

from leastnoise._domain import Dates
from leastnoise._error import checked_level, memory_limit
from leastnoise._plan import Plan
from leastnoise._planning import joint_price
from leastnoise._release import Catalogue, load_catalogue, statistic_title, table_title
from leastnoise._spec import Spec, parse_spec, read_toml, spec_from_table
from leastnoise._threads import one_thread
from leastnoise._trusted.check import InputError, exact_positive, message, one_of, refuse, whole
from leastnoise._workload import Product, Statistic, Workload, groups_of

OBJECTIVES = ("total", "worst", "relative")
TARGETS = ("margin", "relative", "rmse")
MOST_PERIODS = 3650
SETTINGS = ("on", "weight", "target", "most", "size_of")  # the fields of a setting
_SET = ("weight", "size", *TARGETS)  # keys of a part of the workload that its setting writes
Question = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a person can change in one row of the page, as it is typed."""

    on: bool = True
    weight: str = "1"
    target: str = ""
    most: str = ""
    size_of: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the page: one table, or the tables of a part of the workload that can only be asked for together.

    Args:
        part: the number of the part of the workload.
        entry: the part without the keys that a setting writes.
        products: its tables.
        statistic: the mean, quantiles or distribution function that they are for.
    """

    part: int
    entry: Mapping[str, Any]
    products: tuple[Product, ...]
    statistic: Statistic | None = None

    def name(self, said: Catalogue) -> str:
        """Name the row: its tables, behind the statistic that they are for."""
        tables = ", ".join(table_title(product, said) for product in self.products)
        return (
            tables
            if self.statistic is None
            else f"{statistic_title(self.statistic, said)} ({tables})"
        )

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions of its tables, by which these are found in another workload."""
        return tuple(product.table_key for product in self.products)


@dataclass(frozen=True)
class Draft:
    """A spec that is being worked on: the text that was opened, its rows, and the settings as they are now.

    ``of`` is "epsilon" or "rho", ``size`` its amount, ``periods`` the number of periods of a series
    (0 without one).
    """

    text: str
    folder: Path
    rows: tuple[Row, ...]
    settings: tuple[Setting, ...]
    of: str
    size: str
    delta: str
    objective: str
    level: float
    dates: Dates | None
    periods: int

    @cached_property
    def spec(self) -> Spec:
        """The spec with all settings."""
        return parse_spec(spec_text(self), self.folder)

    @property
    def horizon(self) -> str:
        """The number of periods of a series and its last day; empty without a series."""
        return (
            "" if self.dates is None else f"{self.periods}, {self.dates.reaching(self.periods).end}"
        )


def drafted(text: str, folder: Path, name: str = "the spec") -> Draft:
    """Make a draft without changes from the text of a spec."""
    table = read_toml(text, name)
    spec = spec_from_table(table, folder, name)
    rows, settings = [], []
    for part, (entry, products) in enumerate(zip(table["workload"], spec.parts, strict=True)):
        unset = {key: value for key, value in entry.items() if key not in _SET}
        entries = [(unset, products)]
        if "marginals" in unset:  # each marginal becomes a row
            more = {key: value for key, value in unset.items() if key != "marginals"}
            entries = [({"queries": product.spec, **more}, (product,)) for product in products]
        statistic = _statistic(entry, spec.workload)
        rows += [Row(part, of_row, asked, statistic) for of_row, asked in entries]
        target = next((name for name in TARGETS if name in entry), "")
        weight, most, size = (
            str(entry.get(key, default))
            for key, default in (("weight", "1"), (target, ""), ("size", ""))
        )
        settings += [Setting(True, weight, target, most, size)] * len(entries)
    privacy = table["privacy"]
    of = "rho" if "rho" in privacy else "epsilon"
    dates = None if spec.series is None else spec.series.dates(spec.domain)
    budget = of, str(privacy[of]), str(privacy.get("delta", ""))
    periods = 0 if dates is None else dates.size
    return Draft(
        text,
        folder,
        tuple(rows),
        tuple(settings),
        *budget,
        spec.objective,
        spec.options.level,
        dates,
        periods,
    )


def _statistic(entry: Mapping[str, Any], workload: Workload) -> Statistic | None:
    """Return the statistic of the workload that one of its parts asks for; None for tables."""
    for statistic in workload.statistics:
        part = entry.get(statistic.kind)
        if isinstance(part, Mapping):
            along = groups_of(workload.domain, part.get("by", ()), "by")
            at = tuple(exact_positive("at", share) for share in part.get("at", ()))
            if (statistic.of, statistic.along, statistic.at) == (part["of"], along, at):
                return statistic
    return None


def changed(draft: Draft, changes: Mapping[str, object], rows: Sequence[int] = ()) -> Draft:
    """Return a draft with some values changed: fields of the whole draft, or of the settings of the rows with these numbers."""
    values = {
        field: _READ[one_of("what is changed", field, _READ)](value)
        for field, value in changes.items()
    }
    of_rows = {field: value for field, value in values.items() if field in SETTINGS}
    settings = list(draft.settings)
    for row in rows if of_rows else ():
        number = whole("a row", row, 0, len(settings) - 1)
        settings[number] = replace(settings[number], **of_rows)
    of_all: dict[str, Any] = {
        field: value for field, value in values.items() if field not in of_rows
    }
    new = replace(draft, **of_all, settings=tuple(settings))
    new.spec  # noqa: B018 - making the spec refuses values that cannot be used
    return new


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise refuse("a value", type(value).__name__, "a text")
    return value.strip()


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise refuse("on", value, "true or false")
    return value


# The fields that can be changed and how each is read: first those of the whole draft, then those of
# a row.
_READ: Mapping[str, Callable[[object], Any]] = {
    "size": _text,
    "delta": _text,
    "objective": lambda value: one_of("objective", value, OBJECTIVES),
    "level": checked_level,
    "periods": lambda value: whole("periods", value, 2, MOST_PERIODS),
    "on": _flag,
    "weight": lambda value: _text(value) or "1",
    "target": lambda value: one_of("target", value, ("", *TARGETS)),
    "most": _text,
    "size_of": _text,
}


def spec_text(draft: Draft) -> str:
    """Return the text of the spec with all settings: only what differs is changed, and the rest keeps its comments and form."""
    document: Any = tomlkit.parse(draft.text)
    _put(document["privacy"], draft.of, draft.size)
    if draft.delta or "delta" in document["privacy"]:
        _put(document["privacy"], "delta", draft.delta)
    for table, key, value, default in (
        ("plan", "objective", draft.objective, "total"),
        ("output", "level", draft.level, 0.95),
    ):
        if value != document.get(table, {}).get(key, default):
            document.setdefault(table, {})[key] = value
    if draft.dates is not None and draft.periods != draft.dates.size:
        last = draft.dates.reaching(draft.periods).end
        _put(document["domain"][document["series"]["along"]]["dates"], "to", str(last))
    entries, all_stay = [], True
    for part, entry in enumerate(document["workload"]):
        rows = [
            (row.entry, setting)
            for row, setting in zip(draft.rows, draft.settings, strict=True)
            if row.part == part
        ]
        whole = rows[0][1] if len({setting for _, setting in rows}) == 1 else None
        if whole is None:  # each row of this part becomes a part of its own
            entries += [
                _with_setting(lines(of_row), setting) for of_row, setting in rows if setting.on
            ]
        elif whole.on:
            entries.append(_with_setting(entry, whole))
        all_stay = all_stay and whole is not None and whole.on
    if not entries:
        raise InputError("No table is left to ask for; keep at least one.")
    if not all_stay:
        document["workload"] = tomlkit.aot()
        for entry in entries:
            document["workload"].append(entry)
    return tomlkit.dumps(document)


def _with_setting(entry: Any, setting: Setting) -> Any:
    """Write a setting into a part of the workload, and return the part."""
    texts_by_key = {"size": setting.size_of, "weight": setting.weight, setting.target: setting.most}
    for key in (*TARGETS, "size", "weight"):
        text = texts_by_key.get(key, "")
        if not text:
            entry.pop(key, None)
        elif (key, text) != ("weight", "1") or key in entry:
            _put(entry, key, text)
    return entry


def _put(table: Any, key: str, text: str) -> None:
    """Write a number as a text, unless it is there already in any form."""
    if key not in table or text != str(table.unwrap()[key]):
        table[key] = text


def lines(value: Any, *, inline: bool = False) -> Any:
    """Make a table of TOML with a line for each key, where inner tables and lists are on one line."""
    if isinstance(value, list):
        return [lines(entry, inline=True) for entry in value]
    if not isinstance(value, Mapping):
        return value
    table: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for key, entry in value.items():
        table[key] = lines(entry, inline=True)
    return table


def save(opened: Path, before: str, name: str, text: str) -> Path:
    """Write the text of a spec to a new file beside the one that was opened, or in its place if it still holds ``before``.

    The file is written whole or not at all.
    """
    if (
        not name.endswith(".toml")
        or name != Path(name).name
        or name.startswith(".")
        or not name.isprintable()
        or "\\" in name
    ):
        raise InputError(
            message(
                "A spec must have the name of a file in {folder}, such as people.toml; got "
                "{name!r}.",
                folder=opened.parent,
                name=name,
            )
        )
    path = opened.parent / name
    draft = path.with_name(f".{name}.{token_hex(4)}")
    try:
        with draft.open("x", encoding="utf-8", newline="") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        if path.name != opened.name:
            os.link(draft, path)  # refuses a name that a file has
            return path
        with opened.open(encoding="utf-8", newline="") as there:
            if there.read() != before:
                raise InputError(
                    message(
                        "{path} was changed since it was opened here. Save under another name.",
                        path=opened,
                    )
                )
        shutil.copymode(path, draft)
        draft.replace(path)
    except FileExistsError:
        raise InputError(
            message("There is a file {path} already. Choose another name.", path=path)
        ) from None
    except (OSError, UnicodeError) as error:
        name = type(error).__name__
        raise InputError(
            message(
                "{path} cannot be written: {error}. Nothing was changed.", path=path, error=name
            )
        ) from None
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return path


Tell = Callable[[Mapping[str, Any]], None]


@one_thread()
def handle_request(asked: Mapping[str, Any], tell: Tell) -> None:
    """Carry out a request: plan a spec, or find the price of some of its rows; tell why if that fails, in the language of the page."""
    fault = ""
    try:
        spec = parse_spec(asked["text"], Path(asked["folder"]))
        if "price" not in asked:
            plan = spec.plan(spec.search(lambda name: tell({"trying": name})))
            tell({"plan": plan.to_json()})
            return
        plan, search = Plan.from_json(asked["plan"]), spec.search()
        known: dict[object, float] = {}
        for row, products in asked["price"]:
            priced = joint_price(plan, products, search, known)
            tell({"price": row, "alone": priced.alone, "saved": priced.saved})
    except InputError as error:
        fault = error.args[0]
    except MemoryError:
        fault = "Planning this needs more memory than there is. Ask for less."
    if fault:
        tell({"error": load_catalogue(asked["language"]).translate(fault)})


def plan_for_parent() -> None:
    """Be the process that plans for the studio: carry out the request in the first line, and end early if the input ends."""

    def tell(message: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def end_with_input() -> None:
        sys.stdin.read()
        signal.raise_signal(signal.SIGTERM)

    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_input, daemon=True).start()
    with memory_limit():
        handle_request(asked, tell)
