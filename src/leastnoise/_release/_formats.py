"""Answers as an Excel workbook, and as SDMX-CSV with SDMX-ML.

SDMX-CSV 2.0 data messages (SDMX 3.0), with their structures as one SDMX-ML 3.0 message.

In SDMX every table is a data flow ``LEASTNOISE:Q7_SEX(1.0.0)`` of its own: its attributes are the
dimensions, the answer is ``OBS_VALUE``, and attributes of the observation say how exact it is. In
the files each component has its id and name (``labels=both``).
"""

import csv
import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._frames import Columns, UniqueNames
from leastnoise._release._options import rounding_words
from leastnoise._release._release import Release
from leastnoise._release._sentences import left_out_of, of_words
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import ResultTable, Table
from leastnoise._release._texts import filled, quantity_words, texts, unit_words

WORKBOOK = "answers.xlsx"
_LONGEST_SHEET = 31  # a sheet's name
_FORBIDDEN = re.compile(r"[\[\]:*?/\\'\x00-\x1f]")
_EXACT = 2**53  # whole numbers that the program holds exactly
_LINES_ABOVE = 4  # lines above the columns
USUAL_AGENCY = "LEASTNOISE"
NAME = "structure.sdmx.xml"
_HEAD = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
# of a table only those that it has
_VALUES = {
    "OBS_VALUE": "Answer",
    "NOISE_STD": "Standard error of the noise",
    "STD_ERROR": "Standard error",
    "LOW": "Lower end of the interval",
    "HIGH": "Upper end of the interval",
    "OBS_STATUS": "Observation status",
    "UNIT_MEASURE": "Unit of measure",
    "CONF_LEVEL": "Coverage of the interval",
}
_OF_EVERY_OBSERVATION = ("OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL")
_STATUS = (("E", "Estimated value"), ("Q", "Missing value; suppressed"))
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _with_margins(part: ResultTable) -> Columns:
    """Return the columns of a part, of a table with the margins of its answers behind these."""
    columns: Columns = {}
    for name, values in part.columns().items():
        columns[name] = values
        if name == "answer" and isinstance(part, Table):
            columns["margin"] = part.margins.reshape(-1)
    return columns


class Workbook:
    """The Excel workbook of a release.

    A label is always written as a text, so that none becomes a formula.
    """

    def __init__(self, release: Release, directory: Path) -> None:
        import xlsxwriter

        self._release, self._lang = release, texts(release.options.language)
        of = of_words(release, self._lang)
        self._rule = " ".join(
            [
                rounding_words(release.options, self._lang),
                self._lang.say("beyond", of=of) if of else "",
            ]
        ).strip()
        self._book = xlsxwriter.Workbook(
            str(directory / WORKBOOK), {"constant_memory": True, "tmpdir": str(directory)}
        )
        # Only the day is told, as in the manifest.
        day = dt.datetime.combine(dt.datetime.now(dt.UTC).date(), dt.time())
        self._book.set_properties(
            {"title": release.options.title or self._lang.say("book_title"), "created": day}
        )
        self._bold = self._book.add_format({"bold": True})
        self._index = self._book.add_worksheet(self._lang.say("book_tables"))
        columns = ("query", "table", "sheet", "answers", "unit", "margin", "leaves_out")
        self._line(self._index, 0, [self._say(f"book_{column}") for column in columns], bold=True)
        self._rows = 1
        self._index.set_column(1, 2, 32)

    def add(self, part: ResultTable, stem: str) -> None:  # noqa: ARG002 - all tables are in one file
        """Write a table or a statistic to a sheet of its own; tables are in the list too."""
        # Names differ because they begin with the ids.
        name = _FORBIDDEN.sub(" ", f"{part.id} {part.name}")[:_LONGEST_SHEET].strip()
        sheet = self._book.add_worksheet(name)
        about, rule = self._about(part, name)
        # Line by line, because lines that were written are not kept in memory.
        self._line(sheet, 0, (part.name,), bold=True)
        self._line(sheet, 1, (about,))
        if not self._release.private:
            self._line(sheet, 2, (self._lang.say("not_private"),), bold=True)
        if rule:
            self._line(sheet, 3, (rule,))
        self._write_columns(sheet, _with_margins(part))

    def _about(self, part: ResultTable, sheet: str) -> tuple[str, str]:
        """Return what the numbers of a part are, and how they were rounded; list it if a table."""
        if isinstance(part, StatisticTable):
            return f"{self._lang.say(part.meaning_key)} {self._say('book_statistic')}", ""
        if not isinstance(part, Table):
            return self._say("book_statistic"), ""
        unit = unit_words(quantity_words(part.product, self._lang), part.privacy, self._lang)
        self._list_table(part, sheet, unit)
        return self._say("book_interval", unit=unit), self._rule

    def _list_table(self, table: Table, sheet: str, unit: str) -> None:
        """Add a line to the list of tables."""
        leaves_out = ", ".join(left_out_of(self._release.plan, table.product))
        facts = (table.id, table.name, sheet, table.cells, unit, table.typical_margin, leaves_out)
        self._line(self._index, self._rows, facts)
        self._rows += 1

    def _write_columns(self, sheet: Any, columns: Columns) -> None:
        """Write the columns below the lines about them."""
        sheet.freeze_panes(_LINES_ABOVE + 1, 0)
        self._line(sheet, _LINES_ABOVE, list(columns), bold=True)
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        for number, row in enumerate(rows, _LINES_ABOVE + 1):
            self._line(sheet, number, row)

    def close(self) -> None:
        """Write the file."""
        self._book.close()

    def _say(self, key: str, **values: object) -> str:
        return self._lang.say(key, percent=self._lang.percent(self._release.level), **values)

    def _line(self, sheet: Any, row: int, values: Any, *, bold: bool = False) -> None:
        style = [self._bold] if bold else []
        for column, value in enumerate(values):
            if isinstance(value, str) or (isinstance(value, int) and abs(value) > _EXACT):
                sheet.write_string(
                    row, column, str(value).encode("utf-8", "replace").decode(), *style
                )
            elif math.isfinite(value):
                sheet.write_number(row, column, value, *style)


def codes(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return unique SDMX ids for names.

    Of letters, digits, ``_`` and ``-``, none of them taken.
    """
    ids, given = [], UniqueNames({each.lower() for each in taken})
    for name in names:
        plain = (
            name.replace("<=", "LE ")
            .replace(">=", "GE ")
            .replace("<", "LT ")
            .replace(">", "GT ")
            .upper()
        )
        stem = re.sub(r"[^A-Z0-9-]+", "_", plain).strip("_") or "X"
        stem = (
            stem if re.fullmatch("-?[0-9_]+", stem) else stem.lstrip("-_") or "X"
        )  # none that a spreadsheet takes for a formula
        ids.append(given.unique(stem))
    return ids


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a data flow."""

    id: str
    name: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]


_ALL_ROWS = Dimension("ALL", "all rows", ("_T",), ("total",))


@dataclass(frozen=True, slots=True)
class Flow:
    """A data flow: a table, or means, quantiles or a distribution function."""

    id: str
    name: str
    dimensions: tuple[Dimension, ...]
    values: tuple[str, ...]
    unit: tuple[str, str]


def _flow(part: ResultTable) -> tuple[Flow, list[list[float]]]:
    """Return the data flow of a part, and its columns of numbers in the order of its values."""
    numbers = part.numbers()
    column_of = {value: value.lower() for value in _VALUES} | {"OBS_VALUE": part.value_name}
    known = {value: numbers[name] for value, name in column_of.items() if name in numbers}
    values = [value for value in _VALUES if value in {*known, *_OF_EVERY_OBSERVATION}]
    (id_of_flow,) = codes([f"{part.id} {part.name.replace(' x ', ' by ')}"])
    flow = Flow(
        id=id_of_flow,
        name=part.name,
        dimensions=_dimensions(part) or (_ALL_ROWS,),
        values=tuple(values),
        unit=(codes([part.of])[0], part.of) if part.of else ("ROWS", "rows"),
    )
    return flow, [known[value].tolist() for value in values if value in known]


def _dimensions(part: ResultTable) -> tuple[Dimension, ...]:
    """Return a dimension a key; codes are made of labels, and called by what people read."""
    keys = part.product.keys if isinstance(part, Table) else part.attributes
    ids = [
        f"D{code}" if code[0].isdigit() or code[0] == "-" else code
        for code in codes(keys, [*_HEAD, *_VALUES])
    ]
    codes_along = [tuple(codes(map(str, labels))) for labels in part.labels]
    return tuple(
        Dimension(id=id_of_key, name=key, codes=along, labels=shown)
        for id_of_key, key, along, shown in zip(ids, keys, codes_along, part.shown, strict=True)
    )


def _header(flow: Flow) -> list[str]:
    dimensions = [f"{each.id}: {each.name}" for each in flow.dimensions]
    return [*_HEAD, *dimensions, *(f"{value}: {_VALUES[value]}" for value in flow.values)]


def agency_of(release: Release) -> str:
    """The id of the agency that publishes."""
    (code,) = codes([release.options.agency or USUAL_AGENCY])
    return code if code[0].isalpha() else f"A{code}"


@dataclass(slots=True)
class Messages:
    """The messages of a release."""

    release: Release
    directory: Path
    flows: list[Flow] = field(default_factory=list)

    def add(self, part: ResultTable, stem: str) -> None:
        """Write a table or a statistic beside its other files."""
        flow, columns = _flow(part)
        self.flows.append(flow)
        path = self.directory / f"{stem}.sdmx.csv"
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\r\n")  # as RFC 4180 has it
            rows.writerow(_header(flow))
            rows.writerows(self._observations(flow, part, columns))

    def _observations(
        self, flow: Flow, part: ResultTable, columns: Sequence[Sequence[float]]
    ) -> Iterator[list[str | float]]:
        """Yield a row for each observation; NaN is left empty."""
        begin = ["dataflow", f"{agency_of(self.release)}:{flow.id}(1.0.0): {flow.name}", "I"]
        end = [": ".join(flow.unit), f"{self.release.level:g}"]
        keys = [
            [f"{code}: {label}" for code, label in zip(each.codes, each.labels, strict=True)]
            for each in flow.dimensions
        ]
        cells = np.ndindex(part.low.shape or (1,))
        for cell, values in zip(cells, zip(*columns, strict=True), strict=True):
            key = [keys[axis][label] for axis, label in enumerate(cell)]
            shown = ["" if math.isnan(value) else value for value in values]
            status = ": ".join(_STATUS[math.isnan(values[0])])
            yield [*begin, *key, *shown, status, *end]

    def close(self) -> None:
        """Write the structures of all flows, every list of labels once.

        Concepts, code lists, structures and flows.
        """
        lists: dict[tuple[str, ...], tuple[str, str, list[tuple[str, str]]]] = {}
        dimensions = [dimension for flow in self.flows for dimension in flow.dimensions]
        names = list(dict.fromkeys(dimension.name for dimension in dimensions))
        concepts = dict(zip(names, codes(names, _VALUES), strict=True))
        for each in dimensions:
            code_list = (
                f"CL{len(lists) + 1}_{concepts[each.name]}",
                each.name,
                list(zip(each.codes, each.labels, strict=True)),
            )
            lists.setdefault((each.name, *each.codes, *each.labels), code_list)
        fixed = {
            "OBS_STATUS": list(_STATUS),
            "UNIT_MEASURE": list(dict(sorted(flow.unit for flow in self.flows)).items()),
        }
        text = filled(
            NAME,
            agency=agency_of(self.release),
            release=self.release,
            day=datetime.now(UTC).date().isoformat(),
            flows=self.flows,
            about=". ".join(
                filter(
                    None,
                    (
                        self.release.options.title,
                        self.release.options.source,
                        of_words(self.release),
                    ),
                )
            ),
            concepts=[*((code, name) for name, code in concepts.items()), *_VALUES.items()],
            concept_of=concepts,
            lists=[
                *lists.values(),
                *((f"CL_{value}", _VALUES[value], listed) for value, listed in fixed.items()),
            ],
            list_of={each: lists[each.name, *each.codes, *each.labels][0] for each in dimensions},
            enumerated={value: f"CL_{value}" for value in fixed},
        )
        path = self.directory / NAME
        path.write_text(
            _CONTROL.sub("\ufffd", text), encoding="utf-8", errors="replace", newline="\n"
        )
