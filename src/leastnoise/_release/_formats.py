"""Answers as an Excel workbook, and as SDMX-CSV with SDMX-ML.

Data messages are SDMX-CSV 2.0 (SDMX 3.0), and their structures are one SDMX-ML 3.0 message.

In SDMX every table is a data flow of its own, such as ``LEASTNOISE:Q7_SEX(1.0.0)``. Its attributes
are the dimensions, the answer is ``OBS_VALUE``, and attributes of the observation have its errors.
In the files each component has its id and name (``labels=both``).
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
from leastnoise._release._options import describe_rounding
from leastnoise._release._release import Release
from leastnoise._release._sentences import describe_row_limit, dropping_attributes
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import ResultTable, Table
from leastnoise._release._texts import (
    fill_template,
    name_quantity,
    name_with_row_limit,
)

WORKBOOK = "answers.xlsx"
_MOST_SHEET_NAME_CHARACTERS = 31  # a sheet's name
_FORBIDDEN_IN_SHEET_NAME = re.compile(r"[\[\]:*?/\\'\x00-\x1f]")
_MOST_EXACT_INTEGER = 2**53  # whole numbers that the program holds exactly
_HEADER_LINES = 4  # lines above the columns
DEFAULT_AGENCY = "LEASTNOISE"
STRUCTURE_FILE = "structure.sdmx.xml"
_MESSAGE_COLUMNS = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
# of a table only those that it has
_VALUE_NAMES = {
    "OBS_VALUE": "Answer",
    "NOISE_STD": "Standard error of the noise",
    "STD_ERROR": "Standard error",
    "LOW": "Lower end of the interval",
    "HIGH": "Upper end of the interval",
    "OBS_STATUS": "Observation status",
    "UNIT_MEASURE": "Unit of measure",
    "CONF_LEVEL": "Coverage of the interval",
}
_OBSERVATION_ATTRIBUTES = ("OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL")
_STATUS = (("E", "Estimated value"), ("Q", "Missing value; suppressed"))
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _columns_with_margins(result: ResultTable) -> Columns:
    """Return the columns of a result, with margins after a table's answers."""
    columns: Columns = {}
    for name, values in result.columns().items():
        columns[name] = values
        if name == "answer" and isinstance(result, Table):
            columns["margin"] = result.margins.reshape(-1)
    return columns


class Workbook:
    """The Excel workbook of a release.

    A label is always written as a text, so that no label becomes a formula.
    """

    def __init__(self, release: Release, directory: Path) -> None:
        import xlsxwriter

        self._release = release
        self._catalogue = release.options.catalogue()
        row_limit = describe_row_limit(release, self._catalogue)
        self._rounding_note = " ".join(
            [
                describe_rounding(release.options, self._catalogue),
                self._catalogue.say("beyond", of=row_limit) if row_limit else "",
            ]
        ).strip()
        self._workbook = xlsxwriter.Workbook(
            str(directory / WORKBOOK), {"constant_memory": True, "tmpdir": str(directory)}
        )
        # The time of day stays secret, as in the manifest.
        day = dt.datetime.combine(dt.datetime.now(dt.UTC).date(), dt.time())
        self._workbook.set_properties(
            {
                "title": release.options.text("title") or self._catalogue.say("book_title"),
                "created": day,
            }
        )
        self._bold = self._workbook.add_format({"bold": True})
        self._index = self._workbook.add_worksheet(self._catalogue.say("book_tables"))
        columns = ("query", "table", "sheet", "answers", "unit", "margin", "leaves_out")
        self._write_line(
            self._index, 0, [self._say(f"book_{column}") for column in columns], bold=True
        )
        self._next_index_row = 1
        self._index.set_column(1, 2, 32)

    def add(self, result: ResultTable, stem: str) -> None:  # noqa: ARG002 - all tables are in one file
        """Write a table or a statistic to a separate sheet."""
        # Names differ because they begin with the ids.
        name = _FORBIDDEN_IN_SHEET_NAME.sub(" ", f"{result.id} {result.name}")[
            :_MOST_SHEET_NAME_CHARACTERS
        ].strip()
        sheet = self._workbook.add_worksheet(name)
        about, rule = self._describe_result(result, name)
        # Lines are written in order, because the workbook does not keep them in memory.
        self._write_line(sheet, 0, (result.name,), bold=True)
        self._write_line(sheet, 1, (about,))
        if not self._release.private:
            self._write_line(sheet, 2, (self._catalogue.say("not_private"),), bold=True)
        if rule:
            self._write_line(sheet, 3, (rule,))
        self._write_columns(sheet, _columns_with_margins(result))

    def _describe_result(self, result: ResultTable, sheet: str) -> tuple[str, str]:
        """Return a sentence about the numbers and one about their rounding.

        A table is added to the list of tables.
        """
        if isinstance(result, StatisticTable):
            return f"{self._catalogue.say(result.meaning_key)} {self._say('book_statistic')}", ""
        if not isinstance(result, Table):
            return self._say("book_statistic"), ""
        unit = name_with_row_limit(
            name_quantity(result.product, self._catalogue), result.privacy, self._catalogue
        )
        self._list_table(result, sheet, unit)
        return self._say("book_interval", unit=unit), self._rounding_note

    def _list_table(self, table: Table, sheet: str, unit: str) -> None:
        """Add a line to the list of tables."""
        leaves_out = ", ".join(dropping_attributes(self._release.plan, table.product))
        facts = (table.id, table.name, sheet, table.cells, unit, table.typical_margin, leaves_out)
        self._write_line(self._index, self._next_index_row, facts)
        self._next_index_row += 1

    def _write_columns(self, sheet: Any, columns: Columns) -> None:
        """Write the columns below the lines that describe them."""
        sheet.freeze_panes(_HEADER_LINES + 1, 0)
        self._write_line(sheet, _HEADER_LINES, list(columns), bold=True)
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        for number, row in enumerate(rows, _HEADER_LINES + 1):
            self._write_line(sheet, number, row)

    def close(self) -> None:
        """Write the file."""
        self._workbook.close()

    def _say(self, key: str, **values: object) -> str:
        return self._catalogue.say(
            key, percent=self._catalogue.format_percent(self._release.level), **values
        )

    def _write_line(self, sheet: Any, row: int, values: Any, *, bold: bool = False) -> None:
        style = [self._bold] if bold else []
        for column, value in enumerate(values):
            if isinstance(value, str) or (
                isinstance(value, int) and abs(value) > _MOST_EXACT_INTEGER
            ):
                sheet.write_string(
                    row, column, str(value).encode("utf-8", "replace").decode(), *style
                )
            elif math.isfinite(value):
                sheet.write_number(row, column, value, *style)


def make_ids(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return unique SDMX ids for names, none of them in ``taken``.

    They have capital letters, digits, ``_`` and ``-``.
    """
    ids = []
    unique_names = UniqueNames({taken_id.lower() for taken_id in taken})
    for name in names:
        upper_name = (
            name.replace("<=", "LE ")
            .replace(">=", "GE ")
            .replace("<", "LT ")
            .replace(">", "GT ")
            .upper()
        )
        stem = re.sub(r"[^A-Z0-9-]+", "_", upper_name).strip("_") or "X"
        if not re.fullmatch("-?[0-9_]+", stem):
            # A spreadsheet would run a text with such a sign at the start as a formula.
            stem = stem.lstrip("-_") or "X"
        ids.append(unique_names.make_unique(stem))
    return ids


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a data flow."""

    id: str
    name: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Its name, codes and labels; dimensions with equal keys share a code list."""
        return (self.name, *self.codes, *self.labels)


_ALL_ROWS = Dimension("ALL", "all rows", ("_T",), ("total",))


@dataclass(frozen=True, slots=True)
class DataFlow:
    """A data flow: a table, or means, quantiles or a distribution function."""

    id: str
    name: str
    dimensions: tuple[Dimension, ...]
    values: tuple[str, ...]
    unit: tuple[str, str]


def _make_flow(result: ResultTable) -> tuple[DataFlow, list[list[float]]]:
    """Return the data flow of a result, and its columns of numbers in order."""
    numbers = result.numbers()
    column_of = {value: value.lower() for value in _VALUE_NAMES} | {"OBS_VALUE": result.value_name}
    columns = {value: numbers[name] for value, name in column_of.items() if name in numbers}
    values = [value for value in _VALUE_NAMES if value in {*columns, *_OBSERVATION_ATTRIBUTES}]
    (flow_id,) = make_ids([f"{result.id} {result.name.replace(' x ', ' by ')}"])
    unit = ("ROWS", "rows")
    if result.unit_name:
        unit = (make_ids([result.unit_name])[0], result.unit_name)
    flow = DataFlow(
        id=flow_id,
        name=result.name,
        dimensions=_make_dimensions(result) or (_ALL_ROWS,),
        values=tuple(values),
        unit=unit,
    )
    return flow, [columns[value].tolist() for value in values if value in columns]


def _make_dimensions(result: ResultTable) -> tuple[Dimension, ...]:
    """Return a dimension for each key, whose codes have display labels."""
    if isinstance(result, Table):
        keys = result.product.keys
    else:
        keys = result.attributes
    ids = [
        f"D{code}" if code[0].isdigit() or code[0] == "-" else code
        for code in make_ids(keys, [*_MESSAGE_COLUMNS, *_VALUE_NAMES])
    ]
    codes_along = [tuple(make_ids(map(str, labels))) for labels in result.labels]
    return tuple(
        Dimension(id=key_id, name=key, codes=key_codes, labels=key_labels)
        for key_id, key, key_codes, key_labels in zip(
            ids, keys, codes_along, result.display_labels, strict=True
        )
    )


def _csv_header(flow: DataFlow) -> list[str]:
    dimensions = [f"{dimension.id}: {dimension.name}" for dimension in flow.dimensions]
    return [
        *_MESSAGE_COLUMNS,
        *dimensions,
        *(f"{value}: {_VALUE_NAMES[value]}" for value in flow.values),
    ]


def agency_id(release: Release) -> str:
    """Return the id of the agency that publishes."""
    (code,) = make_ids([release.options.text("agency") or DEFAULT_AGENCY])
    return code if code[0].isalpha() else f"A{code}"


@dataclass(slots=True)
class SdmxMessages:
    """The SDMX messages of a release."""

    release: Release
    directory: Path
    flows: list[DataFlow] = field(default_factory=list)

    def add(self, result: ResultTable, stem: str) -> None:
        """Write a table or a statistic as one message."""
        flow, columns = _make_flow(result)
        self.flows.append(flow)
        path = self.directory / f"{stem}.sdmx.csv"
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\r\n")  # as RFC 4180 has it
            rows.writerow(_csv_header(flow))
            rows.writerows(self._observations(flow, result, columns))

    def _observations(
        self, flow: DataFlow, result: ResultTable, columns: Sequence[Sequence[float]]
    ) -> Iterator[list[str | float]]:
        """Yield a row for each observation; NaN is left empty."""
        first_fields = ["dataflow", f"{agency_id(self.release)}:{flow.id}(1.0.0): {flow.name}", "I"]
        last_fields = [": ".join(flow.unit), f"{self.release.level:g}"]
        keys = [
            [
                f"{code}: {label}"
                for code, label in zip(dimension.codes, dimension.labels, strict=True)
            ]
            for dimension in flow.dimensions
        ]
        cells = np.ndindex(result.low.shape or (1,))
        for cell, values in zip(cells, zip(*columns, strict=True), strict=True):
            key = [keys[axis][label] for axis, label in enumerate(cell)]
            number_fields = ["" if math.isnan(value) else value for value in values]
            status = ": ".join(_STATUS[math.isnan(values[0])])
            yield [*first_fields, *key, *number_fields, status, *last_fields]

    def _describe_release(self) -> str:
        """Return the title, the source and the row limit of the release."""
        options = self.release.options
        facts = [options.text("title"), options.text("source"), describe_row_limit(self.release)]
        return ". ".join(fact for fact in facts if fact)

    def close(self) -> None:
        """Write the structures of all flows: concepts, code lists and flows.

        Equal lists of labels are one code list.
        """
        code_lists: dict[tuple[str, ...], tuple[str, str, list[tuple[str, str]]]] = {}
        dimensions = [dimension for flow in self.flows for dimension in flow.dimensions]
        names = list(dict.fromkeys(dimension.name for dimension in dimensions))
        concepts = dict(zip(names, make_ids(names, _VALUE_NAMES), strict=True))
        for dimension in dimensions:
            code_list = (
                f"CL{len(code_lists) + 1}_{concepts[dimension.name]}",
                dimension.name,
                list(zip(dimension.codes, dimension.labels, strict=True)),
            )
            code_lists.setdefault(dimension.key, code_list)
        fixed_code_lists = {
            "OBS_STATUS": list(_STATUS),
            "UNIT_MEASURE": list(dict(sorted(flow.unit for flow in self.flows)).items()),
        }
        text = fill_template(
            STRUCTURE_FILE,
            agency=agency_id(self.release),
            release=self.release,
            day=datetime.now(UTC).date().isoformat(),
            flows=self.flows,
            about=self._describe_release(),
            concepts=[*((code, name) for name, code in concepts.items()), *_VALUE_NAMES.items()],
            concept_of=concepts,
            lists=[
                *code_lists.values(),
                *(
                    (f"CL_{value}", _VALUE_NAMES[value], listed)
                    for value, listed in fixed_code_lists.items()
                ),
            ],
            list_of={dimension: code_lists[dimension.key][0] for dimension in dimensions},
            enumerated={value: f"CL_{value}" for value in fixed_code_lists},
        )
        path = self.directory / STRUCTURE_FILE
        path.write_text(
            _CONTROL.sub("\ufffd", text), encoding="utf-8", errors="replace", newline="\n"
        )
