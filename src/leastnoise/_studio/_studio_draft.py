"""The draft of a spec in the studio, and the process that plans it.

The process reads its request as one JSON line on standard input, and writes its results as JSON
lines on standard output. The process plans from the text that would be saved. It ends when its
input ends, and thus does not outlive the studio.
"""

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any

import tomlkit

from leastnoise._domain import Dates, Domain, Weighted
from leastnoise._error import checked_level, memory_limit
from leastnoise._plan import Plan
from leastnoise._planning import joint_price
from leastnoise._release import check_options
from leastnoise._session import plan_spec
from leastnoise._spec import Spec, parse_spec, read_toml, spec_from_table
from leastnoise._studio._publication_fields import (
    PublicationField,
    check_field,
    publication_fields,
    read_fields,
    write_fields,
)
from leastnoise._texts import Catalogue, load_catalogue, name_quantity, statistic_title, table_title
from leastnoise._threads import one_thread
from leastnoise._trusted.check import InputError, exact_positive, message, one_of, refuse, whole
from leastnoise._workload import Product, Statistic, Workload, groups_of

OBJECTIVES = ("total", "worst", "relative")
TARGETS = ("margin", "relative", "rmse")
MOST_PERIODS = 3650  # periods of a drafted series; ten years of days
SETTINGS = ("on", "weight", "target", "most", "size_of")
"""The names of the fields of a `RowSetting`."""
FIELD_PREFIX = "field:"
"""The prefix of publication fields in the names of changed values."""
_SETTING_KEYS = ("weight", "size", *TARGETS)  # keys of a [[workload]] that a setting writes
TableKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class RowSetting:
    """The settings of one row of the planning page, as typed by the user.

    ``on`` states whether the row is published, ``most`` is the limit of the target, and ``size_of``
    is the public group size.
    """

    on: bool = True
    weight: str = "1"
    target: str = ""
    most: str = ""
    size_of: str = ""


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of the planning page: a table, or tables that belong together.

    Attributes:
        entry_number: the index of the [[workload]] table in the spec.
        workload_entry: this [[workload]] table; the keys that `RowSetting` determines are left out.
        products: the tables of the row.
        statistic: the mean, quantiles or distribution function that needs the tables.
    """

    entry_number: int
    workload_entry: Mapping[str, Any]
    products: tuple[Product, ...]
    statistic: Statistic | None = None

    def name(self, catalogue: Catalogue) -> str:
        """Return the display name of the row.

        The name consists of the titles of the tables. For a statistic, the title of the statistic
        comes first.
        """
        tables = ", ".join(table_title(product, catalogue) for product in self.products)
        if self.statistic is None:
            return tables
        if not catalogue.names.is_empty:
            tables = ", ".join(name_quantity(product, catalogue) for product in self.products)
        domain = self.products[0].domain
        return f"{statistic_title(self.statistic, domain, catalogue)} ({tables})"

    @property
    def table_keys(self) -> tuple[TableKey, ...]:
        """The keys of the row's tables.

        The keys are the same in every workload that has these tables.
        """
        return tuple(product.table_key for product in self.products)


@dataclass(frozen=True)
class SpecDraft:
    """A spec with the changes that a user has made on the planning page.

    Attributes:
        text: the text of the spec as it was opened.
        folder: the folder of the spec.
        rows: the rows of the page.
        settings: the current setting of each row.
        parameter: the parameter of the budget, "epsilon" or "rho".
        size: the value of that parameter.
        delta: the delta of the budget; empty if there is none.
        objective: the objective of planning.
        level: the coverage of intervals.
        dates: the periods of the series in the opened spec; None without a series.
        periods: the current number of periods of the series; 0 without a series.
        language: the language of the page; empty for the language of the spec.
        field_changes: the new texts of publication fields, by field identifier.
    """

    text: str
    folder: Path
    rows: tuple[PageRow, ...]
    settings: tuple[RowSetting, ...]
    parameter: str
    size: str
    delta: str
    objective: str
    level: float
    dates: Dates | None
    periods: int
    language: str = ""
    field_changes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fields(self) -> tuple[PublicationField, ...]:
        """The publication fields: names, outputs and the survey."""
        return publication_fields(read_toml(self.text))

    @cached_property
    def field_texts(self) -> Mapping[str, str]:
        """The current texts of the publication fields, by field identifier."""
        return {**read_fields(read_toml(self.text), self.fields), **self.field_changes}

    @property
    def catalogue(self) -> Catalogue:
        """The texts of the page's language, with the display names of the spec."""
        return self.spec.options.catalogue(self.language)

    @cached_property
    def spec(self) -> Spec:
        """The spec with all changes."""
        return parse_spec(format_spec(self), self.folder)

    def check(self) -> None:
        """Raise InputError if the changed spec is invalid."""
        _ = self.spec

    @property
    def horizon(self) -> str:
        """The number of periods and the last day of the series; "" without a series."""
        if self.dates is None:
            return ""
        return f"{self.periods}, {self.dates.reaching(self.periods).end}"


def draft_from_text(text: str, folder: Path, name: str = "the spec") -> SpecDraft:
    """Return a draft without changes for the text of a spec."""
    table = read_toml(text, name)
    spec = spec_from_table(table, folder, name)
    rows: list[PageRow] = []
    settings: list[RowSetting] = []
    entries = zip(table["workload"], spec.parts, strict=True)
    for entry_number, (entry, products) in enumerate(entries):
        entry_rows = _entry_rows(entry_number, entry, products, spec.workload)
        rows += entry_rows
        settings += [_read_setting(entry) for _ in entry_rows]
    privacy = table["privacy"]
    if "rho" in privacy:
        parameter = "rho"
    else:
        parameter = "epsilon"
    if spec.series is None:
        dates = None
    else:
        dates = spec.series.dates(spec.domain)
    return SpecDraft(
        text=text,
        folder=folder,
        rows=tuple(rows),
        settings=tuple(settings),
        parameter=parameter,
        size=str(privacy[parameter]),
        delta=str(privacy.get("delta", "")),
        objective=spec.objective,
        level=spec.options.level,
        dates=dates,
        periods=0 if dates is None else dates.size,
    )


def _entry_rows(
    entry_number: int, entry: Mapping[str, Any], products: tuple[Product, ...], workload: Workload
) -> list[PageRow]:
    """Return the page rows of a [[workload]] entry: one, or one per marginal."""
    statistic = _find_statistic(entry, workload)
    row_entry = {key: value for key, value in entry.items() if key not in _SETTING_KEYS}
    if "marginals" not in row_entry:
        return [PageRow(entry_number, row_entry, products, statistic)]
    del row_entry["marginals"]
    return [
        PageRow(entry_number, {"queries": product.spec, **row_entry}, (product,), statistic)
        for product in products
    ]


def _read_setting(entry: Mapping[str, Any]) -> RowSetting:
    """Return the row setting that a [[workload]] entry states."""
    target = next((name for name in TARGETS if name in entry), "")
    return RowSetting(
        on=True,
        weight=str(entry.get("weight", "1")),
        target=target,
        most=str(entry.get(target, "")),
        size_of=str(entry.get("size", "")),
    )


def _find_statistic(entry: Mapping[str, Any], workload: Workload) -> Statistic | None:
    """Return the statistic that a [[workload]] entry requests; None for tables."""
    for statistic in workload.statistics:
        request = entry.get(statistic.kind)
        if isinstance(request, Mapping):
            groups = groups_of(workload.domain, request.get("by", ()), "by")
            shares = tuple(exact_positive("at", share) for share in request.get("at", ()))
            is_same = (statistic.along, statistic.at) == (groups, shares)
            if is_same and _matches_entry(statistic, entry, workload.domain):
                return statistic
    return None


def _matches_entry(statistic: Statistic, entry: Mapping[str, Any], domain: Domain) -> bool:
    """Return whether a statistic has the variables and the weight of an entry."""
    variables = _requested_variables(entry[statistic.kind])
    weight = entry.get("weighted_by")
    if not statistic.form.of_measure:
        return (statistic.variables, statistic.weighted_by) == (variables, weight)
    if weight is None:
        return statistic.variables == variables
    return domain.measure(statistic.of) == Weighted(
        domain.measure(variables[0]), domain.measure(weight)
    )


def _requested_variables(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the measures or the attribute of a statistic."""
    of = request["of"]
    first = (of,) if isinstance(of, str) else tuple(of)
    return (*first, *request.get("on", ()))


def change_draft(
    draft: SpecDraft, changes: Mapping[str, object], rows: Sequence[int] = ()
) -> SpecDraft:
    """Return a copy of a draft with changed values.

    Args:
        draft: the draft.
        changes: the new values of the draft, of row settings and of publication fields, by name.
        rows: the indices of the rows whose settings change.
    """
    field_changes = dict(draft.field_changes)
    values = {}
    for name, value in changes.items():
        if name.startswith(FIELD_PREFIX):
            field_id = name.removeprefix(FIELD_PREFIX)
            field_changes[field_id] = check_field(draft.fields, field_id, value)
        else:
            values[name] = _FIELD_READERS[one_of("a changed field", name, _FIELD_READERS)](value)
    row_values = {name: value for name, value in values.items() if name in SETTINGS}
    settings = list(draft.settings)
    for row in rows if row_values else ():
        number = whole("a row", row, 0, len(settings) - 1)
        settings[number] = replace(settings[number], **row_values)
    draft_values: dict[str, Any] = {
        name: value for name, value in values.items() if name not in row_values
    }
    changed_draft = replace(
        draft, **draft_values, settings=tuple(settings), field_changes=field_changes
    )
    changed_draft.check()
    return changed_draft


def _read_text(value: object) -> str:
    """Return a text without surrounding blanks.

    Raises:
        InputError: the value has another type.
    """
    if not isinstance(value, str):
        raise refuse("a value", type(value).__name__, "a text")
    return value.strip()


def _read_flag(value: object) -> bool:
    """Return ``value`` if it is a bool.

    Raises an `InputError` otherwise.
    """
    if not isinstance(value, bool):
        raise refuse("on", value, "true or false")
    return value


# Functions that check changed values: first the values of the draft, then the values of a row.
_FIELD_READERS: Mapping[str, Callable[[object], Any]] = {
    "size": _read_text,
    "delta": _read_text,
    "objective": lambda value: one_of("objective", value, OBJECTIVES),
    "level": checked_level,
    "periods": lambda value: whole("periods", value, 2, MOST_PERIODS),
    "on": _read_flag,
    "weight": lambda value: _read_text(value) or "1",
    "target": lambda value: one_of("target", value, ("", *TARGETS)),
    "most": _read_text,
    "size_of": _read_text,
}


def format_spec(draft: SpecDraft) -> str:
    """Return the text of the spec with all changes.

    Only lines with changed values differ from the opened text. All other lines keep their comments
    and format.
    """
    document: Any = tomlkit.parse(draft.text)
    _set_text(document["privacy"], draft.parameter, draft.size)
    if draft.delta or "delta" in document["privacy"]:
        _set_text(document["privacy"], "delta", draft.delta)
    for table, key, value, default in (
        ("plan", "objective", draft.objective, "total"),
        ("output", "level", draft.level, 0.95),
    ):
        if value != document.get(table, {}).get(key, default):
            document.setdefault(table, {})[key] = value
    if draft.dates is not None and draft.periods != draft.dates.size:
        last = draft.dates.reaching(draft.periods).end
        _set_text(document["domain"][document["series"]["along"]]["dates"], "to", str(last))
    _set_workload(document, draft)
    write_fields(document, draft.fields, draft.field_changes)
    return tomlkit.dumps(document)


def _set_workload(document: Any, draft: SpecDraft) -> None:
    """Apply the settings of all rows to the workload of a TOML document."""
    entries = []
    all_entries_stay = True
    for entry_number, entry in enumerate(document["workload"]):
        rows = [
            (row.workload_entry, setting)
            for row, setting in zip(draft.rows, draft.settings, strict=True)
            if row.entry_number == entry_number
        ]
        settings = {setting for _, setting in rows}
        if len(settings) == 1 and rows[0][1].on:
            entries.append(_apply_setting(entry, rows[0][1]))
            continue
        all_entries_stay = False
        # Each published row becomes a separate [[workload]] table.
        for row_entry, setting in rows:
            if setting.on:
                entries.append(_apply_setting(to_toml_table(row_entry), setting))
    if not entries:
        raise InputError("No table is left; keep at least one.")
    if not all_entries_stay:
        document["workload"] = tomlkit.aot()
        for entry in entries:
            document["workload"].append(entry)


def _apply_setting(entry: Any, setting: RowSetting) -> Any:
    """Write a row setting into a [[workload]] table, and return the table."""
    texts_by_key = {"size": setting.size_of, "weight": setting.weight, setting.target: setting.most}
    for key in (*TARGETS, "size", "weight"):
        text = texts_by_key.get(key, "")
        if not text:
            entry.pop(key, None)
        elif (key, text) != ("weight", "1") or key in entry:
            _set_text(entry, key, text)
    return entry


def _set_text(table: Any, key: str, text: str) -> None:
    """Set a key to a number as text.

    If the value is already this number, its text is kept.
    """
    if key not in table or text != str(table.unwrap()[key]):
        table[key] = text


def to_toml_table(value: Any, *, inline: bool = False) -> Any:
    """Convert a mapping to a tomlkit table with one line for each key.

    Inner tables and lists are on one line.
    """
    if isinstance(value, list):
        return [to_toml_table(entry, inline=True) for entry in value]
    if not isinstance(value, Mapping):
        return value
    table: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for key, entry in value.items():
        table[key] = to_toml_table(entry, inline=True)
    return table


def _check_file_name(name: str, folder: Path) -> None:
    """Raise InputError unless a name denotes a visible TOML file in a folder."""
    is_plain = name == Path(name).name and name.isprintable() and "\\" not in name
    if not is_plain or name.startswith(".") or not name.endswith(".toml"):
        raise InputError(
            message(
                "A spec must have the name of a file in {folder}, such as people.toml; got "
                "{name!r}.",
                folder=folder,
                name=name,
            )
        )


def save_spec(opened_path: Path, text_before: str, new_name: str, text: str) -> Path:
    """Write a spec, and return its path.

    A file is only replaced if it has not changed since it was opened. After an error, no part of
    the new file is left.

    Args:
        opened_path: the path of the file that was opened.
        text_before: the text of the file when it was opened.
        new_name: the name of the file to write, in the same folder.
        text: the text of the spec.
    """
    _check_file_name(new_name, opened_path.parent)
    path = opened_path.parent / new_name
    draft = path.with_name(f".{new_name}.{token_hex(4)}")
    try:
        with draft.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.name != opened_path.name:
            os.link(draft, path)  # fails if the file exists
            return path
        with opened_path.open(encoding="utf-8", newline="") as file:
            if file.read() != text_before:
                raise InputError(
                    message(
                        "{path} was changed since it was opened here. Save under another name.",
                        path=opened_path,
                    )
                )
        shutil.copymode(path, draft)
        draft.replace(path)
    except FileExistsError:
        raise InputError(
            message("The file {path} exists already. Choose another name.", path=path)
        ) from None
    except (OSError, UnicodeError) as error:
        raise InputError(
            message(
                "{path} cannot be written: {error}. Nothing was changed.",
                path=path,
                error=type(error).__name__,
            )
        ) from None
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return path


SendMessage = Callable[[Mapping[str, Any]], None]


@one_thread()
def handle_request(request: Mapping[str, Any], send: SendMessage) -> None:
    """Send the plan of a spec, or the price of each row of tables on the page.

    The price is a share of the budget. The results are sent with ``send``. If there are no results,
    the reason is sent in the language of the page.
    """
    fault = ""
    try:
        spec = parse_spec(request["text"], Path(request["folder"]))
        if "price" not in request:
            plan = plan_spec(spec, lambda name: send({"trying": name}))
            # The release would refuse the options later, after the spec has been saved.
            check_options(plan, spec.options)
            send({"plan": plan.to_json()})
            return
        plan = Plan.from_json(request["plan"])
        search = spec.search()
        joint_prices: dict[object, float] = {}
        for row, products in request["price"]:
            price = joint_price(plan, products, search, joint_prices)
            send({"price": row, "alone": price.alone, "saved": price.saved})
    except InputError as error:
        fault = error.args[0]
    except MemoryError:
        fault = "This plan needs more memory than is available. Choose fewer or smaller tables."
    if fault:
        send({"error": load_catalogue(request["language"]).translate(fault)})


def plan_for_parent() -> None:
    """Run as the separate process in which the studio computes plans.

    The process handles the request in the first line of its input, and ends early if the input
    ends.
    """

    def send(reply: Mapping[str, Any]) -> None:
        """Write a message to the parent process as a line of JSON."""
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()

    def end_with_input() -> None:
        """End this process when its standard input ends."""
        sys.stdin.read()
        signal.raise_signal(signal.SIGTERM)

    request = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_input, daemon=True).start()
    with memory_limit():
        handle_request(request, send)
