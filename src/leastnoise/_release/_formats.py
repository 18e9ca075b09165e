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

from leastnoise._domain import Domain
from leastnoise._frames import Columns, UniqueNames
from leastnoise._release._names import PLAIN_NUMBERS, NumberFormat
from leastnoise._release._options import Options, describe_rounding, display_texts
from leastnoise._release._release import Release
from leastnoise._release._sentences import describe_row_limit, dropping_attributes
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import ResultTable, Table
from leastnoise._release._texts import (
    Catalogue,
    display_labels,
    fill_template,
    key_headings,
    load_catalogue,
    name_attribute,
    name_quantity,
    name_rows,
    name_with_row_limit,
    statistic_format,
    statistic_title,
    table_format,
    table_title,
    unit_of_statistic,
    unit_of_sums,
)
from leastnoise._trusted.check.arrays import Array

WORKBOOK = "answers.xlsx"
_MOST_SHEET_NAME_CHARACTERS = 31  # a sheet's name
_FORBIDDEN_IN_SHEET_NAME = re.compile(r"[\[\]:*?/\\'\x00-\x1f]")
_MOST_EXACT_INTEGER = 2**53  # whole numbers that the program holds exactly
_HEADER_LINES = 4  # lines above the columns
_LEAST_COLUMN_WIDTH = 12  # characters
_MOST_COLUMN_WIDTH = 40
DEFAULT_AGENCY = "LEASTNOISE"
STRUCTURE_FILE = "structure.sdmx.xml"
_MESSAGE_COLUMNS = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
# of a table only those that it has
_VALUE_NAMES = {
    "OBS_VALUE": "Answer",
    "NOISE_STD": "Standard error of the noise",
    "SAMPLING_STD": "Standard error of the sample",
    "STD_ERROR": "Standard error",
    "LOW": "Lower end of the interval",
    "HIGH": "Upper end of the interval",
    "BOTH_LOW": "Lower end of the interval of noise and sample",
    "BOTH_HIGH": "Upper end of the interval of noise and sample",
    "CV": "Coefficient of variation",
    "OBS_STATUS": "Observation status",
    "UNIT_MEASURE": "Unit of measure",
    "CONF_LEVEL": "Coverage of the interval",
}
_OBSERVATION_ATTRIBUTES = ("OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL")
_STATUS = (
    ("E", "Estimated value"),
    ("Q", "Missing value; suppressed"),
    ("U", "Low reliability"),
)
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def result_title(result: ResultTable, catalogue: Catalogue) -> str:
    """Return the display title of a table or statistic, or else its name."""
    if not catalogue.names.is_empty:
        if isinstance(result, Table):
            return table_title(result.product, catalogue)
        if isinstance(result, StatisticTable):
            return statistic_title(result.statistic, result.domain, catalogue)
    return result.name


def result_headings(result: ResultTable, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the headings of the keys of a table or statistic."""
    if isinstance(result, Table):
        return key_headings(result.product.along, catalogue)
    if isinstance(result, StatisticTable):
        return result.key_headings(catalogue)
    return result.attributes


def result_attributes(result: ResultTable) -> tuple[str, ...]:
    """Return the attribute of each key, by which codes have texts."""
    if isinstance(result, StatisticTable):
        groups = result.statistic.by
        return (*groups, *result.attributes[len(groups) :])
    return result.attributes


def result_format(result: ResultTable, catalogue: Catalogue) -> NumberFormat:
    """Return the number format of the values of a table or statistic."""
    if isinstance(result, Table):
        return table_format(result.product, catalogue)
    if isinstance(result, StatisticTable):
        return statistic_format(result.statistic, result.domain, catalogue)
    return PLAIN_NUMBERS


def _typical_half_width(result: ResultTable) -> float:
    """Return the root mean square half width of intervals; NaN without any."""
    half_widths = (result.high - result.low) / 2
    published = half_widths[np.isfinite(half_widths)]
    return math.sqrt(float(np.mean(published**2))) if published.size else math.nan


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
        title = result_title(result, self._catalogue)
        name = _FORBIDDEN_IN_SHEET_NAME.sub(" ", f"{result.id} {title}")[
            :_MOST_SHEET_NAME_CHARACTERS
        ].strip()
        sheet = self._workbook.add_worksheet(name)
        about, rule = self._describe_result(result, name)
        # Lines are written in order, because the workbook does not keep them in memory.
        self._write_line(sheet, 0, (title,), bold=True)
        self._write_line(sheet, 1, (about,))
        if not self._release.private:
            self._write_line(sheet, 2, (self._catalogue.say("not_private"),), bold=True)
        if rule:
            self._write_line(sheet, 3, (rule,))
        self._write_columns(sheet, result)

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
        dropping = dropping_attributes(self._release.plan, table.product)
        leaves_out = ", ".join(name_attribute(name, self._catalogue) for name in dropping)
        title = result_title(table, self._catalogue)
        facts = (table.id, title, sheet, table.cells, unit, table.typical_margin, leaves_out)
        self._write_line(self._index, self._next_index_row, facts)
        self._next_index_row += 1

    def _write_columns(self, sheet: Any, result: ResultTable) -> None:
        """Write the columns below the lines that describe them.

        Columns are wide enough for their texts, and numbers have the digits that the noise leaves.
        """
        columns = self._label_columns(result)
        number_formats = self._number_formats(result, columns)
        for position, (name, values) in enumerate(columns.items()):
            texts = [name, *(values.tolist() if values.dtype == object else [])]
            width = max(_LEAST_COLUMN_WIDTH, *(len(str(text)) + 2 for text in texts))
            sheet.set_column(
                position, position, min(width, _MOST_COLUMN_WIDTH), number_formats.get(name)
            )
        sheet.freeze_panes(_HEADER_LINES + 1, 0)
        self._write_line(sheet, _HEADER_LINES, list(columns), bold=True)
        formats = [number_formats.get(name) for name in columns]
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        for number, row in enumerate(rows, _HEADER_LINES + 1):
            self._write_line(sheet, number, row, formats=formats)

    def _label_columns(self, result: ResultTable) -> Columns:
        """Return a result's columns, with the texts of codes after their column.

        The flags of a survey are words.
        """
        columns: Columns = {}
        has_labels = self._release.options.labels
        headings = dict(
            zip(result.key_columns(), result_headings(result, self._catalogue), strict=True)
        )
        attributes = result_attributes(result)
        keys = zip(
            result.key_columns(), attributes, result.display_labels, result.indices(), strict=True
        )
        texts = {
            key: np.array(labels, dtype=object)[index]
            for key, attribute, labels, index in keys
            if attribute in has_labels
        }
        taken = UniqueNames(set(_columns_with_margins(result)))
        for name, values in _columns_with_margins(result).items():
            columns[name] = values
            if name in texts:
                heading = taken.make_unique(f"{headings[name]} ({self._say('book_label')})")
                columns[heading] = texts[name]
            if name == "reliability":
                columns[name] = self._flag_words(result)
        return columns

    def _flag_words(self, result: ResultTable) -> Array:
        """Return the word for the flag of each number of a survey."""
        sampling = result.sampling
        if sampling is None:
            return np.full(result.cells, "", dtype=object)
        words = np.array([self._say(key) for key in sampling.flag_keys], dtype=object)
        return np.asarray(words[sampling.reliability.reshape(-1) - 1])

    def _number_formats(self, result: ResultTable, columns: Columns) -> dict[str, Any]:
        """Return the Excel format of each column of numbers."""
        values_format = result_format(result, self._catalogue)
        half_width = _typical_half_width(result)
        decimals = values_format.decimals
        if decimals is None:
            decimals = (
                0 if not 0 < half_width < 1 else min(12, 1 - math.floor(math.log10(half_width)))
            )
        digits = "0" + ("." + "0" * decimals if decimals else "")
        if values_format.thousands:
            digits = f"#,##{digits}"
        if values_format.percent:
            digits = f"{digits}%"
        own_format = self._workbook.add_format({"num_format": digits})
        percent_format = self._workbook.add_format({"num_format": "0.0%"})
        formats = {
            name: own_format
            for name, values in columns.items()
            if name in result.numbers() and values.dtype != object
        }
        formats["margin"] = own_format
        if "cv" in formats:
            formats["cv"] = percent_format
        for name in ("sum", "count", "sum_of_weights", "may_be_below", "may_be_above"):
            formats.pop(name, None)
        return formats

    def close(self) -> None:
        """Write the file."""
        self._workbook.close()

    def _say(self, key: str, **values: object) -> str:
        """Return the catalogue's text of a key, with the confidence level."""
        return self._catalogue.say(
            key, percent=self._catalogue.format_percent(self._release.level), **values
        )

    def _write_line(
        self,
        sheet: Any,
        row: int,
        values: Any,
        *,
        bold: bool = False,
        formats: Sequence[Any] = (),
    ) -> None:
        """Write values into one worksheet row; leave non-finite numbers empty."""
        for column, value in enumerate(values):
            style = [self._bold] if bold else []
            if formats and formats[column] is not None:
                style = [formats[column]]
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


LocalTexts = tuple[tuple[str, str], ...]
"""A text by language, the main language first."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a data flow.

    Attributes:
        id: the id of the dimension, from the column of the files.
        column: the column of the files.
        names: its display name by language.
        codes: the ids of its codes.
        labels: the display name of each code by language.
    """

    id: str
    column: str
    names: LocalTexts
    codes: tuple[str, ...]
    labels: tuple[LocalTexts, ...]

    @property
    def name(self) -> str:
        """Its display name in the main language."""
        return self.names[0][1]

    @property
    def key(self) -> tuple[object, ...]:
        """Its column, codes and labels; dimensions with equal keys share a code list."""
        return (self.column, *self.codes, *self.labels)


_ALL_ROWS = Dimension("ALL", "all rows", (("en", "all rows"),), ("_T",), ((("en", "total"),),))


@dataclass(frozen=True, slots=True)
class DataFlow:
    """A data flow: a table, or means, quantiles or a distribution function."""

    id: str
    names: LocalTexts
    dimensions: tuple[Dimension, ...]
    values: tuple[str, ...]
    unit: tuple[str, str]

    @property
    def name(self) -> str:
        """Its title in the main language."""
        return self.names[0][1]


def _in_english(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, LocalTexts]]:
    """Return codes with their English names."""
    return [(code, (("en", name),)) for code, name in pairs]


def _make_flow(result: ResultTable, options: Options) -> tuple[DataFlow, list[list[float]]]:
    """Return the data flow of a result, and its columns of numbers in order."""
    numbers = result.numbers()
    column_of = {value: value.lower() for value in _VALUE_NAMES} | {"OBS_VALUE": result.value_name}
    columns = {value: numbers[name] for value, name in column_of.items() if name in numbers}
    values = [value for value in _VALUE_NAMES if value in {*columns, *_OBSERVATION_ATTRIBUTES}]
    (flow_id,) = make_ids([f"{result.id} {result.name.replace(' x ', ' by ')}"])
    catalogues = _catalogues(options)
    flow = DataFlow(
        id=flow_id,
        names=tuple(
            (catalogue.language, result_title(result, catalogue)) for catalogue in catalogues
        ),
        dimensions=_make_dimensions(result, options, catalogues) or (_ALL_ROWS,),
        values=tuple(values),
        unit=_unit_of_measure(result, catalogues[0]),
    )
    return flow, [columns[value].tolist() for value in values if value in columns]


def _catalogues(options: Options) -> list[Catalogue]:
    """Return the catalogues of all languages that the display names use."""
    if not options.names and not options.labels:
        return [load_catalogue()]
    return [options.catalogue(language) for language in options.languages]


def _unit_of_measure(result: ResultTable, catalogue: Catalogue) -> tuple[str, str]:
    """Return the id and the display name of the unit of a result's answers."""
    code, name = "ROWS", name_rows(catalogue)
    if result.unit_name:
        (code,) = make_ids([result.unit_name])
        name = result.unit_name
        if isinstance(result, Table):
            name = unit_of_sums(result.product, catalogue) or name
            if not catalogue.names.is_empty and name == result.unit_name:
                name = name_quantity(result.product, catalogue)
        if isinstance(result, StatisticTable):
            name = unit_of_statistic(result.statistic, result.domain, catalogue) or name
    return code, name


def _make_dimensions(
    result: ResultTable, options: Options, catalogues: Sequence[Catalogue]
) -> tuple[Dimension, ...]:
    """Return a dimension for each key, whose codes have display labels."""
    if isinstance(result, Table):
        keys = result.product.keys
    else:
        keys = result.attributes
    ids = [
        f"D{code}" if code[0].isdigit() or code[0] == "-" else code
        for code in make_ids(keys, [*_MESSAGE_COLUMNS, *_VALUE_NAMES])
    ]
    headings = [_local_headings(result, keys, catalogue) for catalogue in catalogues]
    languages = [catalogue.language for catalogue in catalogues]
    labels = [_labels_in(result, options, language) for language in languages]
    dimensions = []
    for position, (key_id, key) in enumerate(zip(ids, keys, strict=True)):
        labels_of_codes = zip(*(labels_along[position] for labels_along in labels), strict=True)
        dimensions.append(
            Dimension(
                id=key_id,
                column=key,
                names=tuple(
                    (language, heading[position])
                    for language, heading in zip(languages, headings, strict=True)
                ),
                codes=tuple(make_ids(map(str, result.labels[position]))),
                labels=tuple(
                    tuple(zip(languages, texts, strict=True)) for texts in labels_of_codes
                ),
            )
        )
    return tuple(dimensions)


def _local_headings(
    result: ResultTable, keys: Sequence[str], catalogue: Catalogue
) -> Sequence[str]:
    """Return a result's key headings in the catalogue's language, or its keys."""
    return keys if catalogue.names.is_empty else result_headings(result, catalogue)


def _labels_in(result: ResultTable, options: Options, language: str) -> tuple[tuple[str, ...], ...]:
    """Return the display labels of a result in a language."""
    if language == options.language:
        return result.display_labels
    texts = display_texts(options, _domain_of(result), language)
    return display_labels(result.labels, result_attributes(result), texts)


def _domain_of(result: ResultTable) -> Domain:
    """Return the domain of a table or a statistic."""
    if isinstance(result, Table):
        return result.product.domain
    if isinstance(result, StatisticTable):
        return result.domain
    raise TypeError(f"{type(result).__name__} has no domain")


def _csv_header(flow: DataFlow) -> list[str]:
    """Return the header of an SDMX-CSV file."""
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


def _list_statuses(result: ResultTable) -> list[tuple[str, str]]:
    """Return the SDMX status of each answer if published: code and name."""
    flags = result.numbers().get("reliability")
    if flags is None:
        return [_STATUS[0]] * result.cells
    return [_STATUS[0] if flag == 1 else _STATUS[2] for flag in flags.tolist()]


@dataclass(slots=True)
class SdmxMessages:
    """The SDMX messages of a release."""

    release: Release
    directory: Path
    flows: list[DataFlow] = field(default_factory=list)

    def add(self, result: ResultTable, stem: str) -> None:
        """Write a table or a statistic as one message."""
        flow, columns = _make_flow(result, self.release.options)
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
                f"{code}: {texts[0][1]}"
                for code, texts in zip(dimension.codes, dimension.labels, strict=True)
            ]
            for dimension in flow.dimensions
        ]
        cells = np.ndindex(result.low.shape or (1,))
        flags = _list_statuses(result)
        for cell, values, flag in zip(cells, zip(*columns, strict=True), flags, strict=True):
            key = [keys[axis][label] for axis, label in enumerate(cell)]
            number_fields = ["" if math.isnan(value) else value for value in values]
            status = ": ".join(_STATUS[1] if math.isnan(values[0]) else flag)
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
        code_lists: dict[tuple[object, ...], tuple[str, LocalTexts, list[Any]]] = {}
        dimensions = [dimension for flow in self.flows for dimension in flow.dimensions]
        names_of = {dimension.column: dimension.names for dimension in dimensions}
        concepts = dict(zip(names_of, make_ids(names_of, _VALUE_NAMES), strict=True))
        for dimension in dimensions:
            code_list = (
                f"CL{len(code_lists) + 1}_{concepts[dimension.column]}",
                dimension.names,
                list(zip(dimension.codes, dimension.labels, strict=True)),
            )
            code_lists.setdefault(dimension.key, code_list)
        fixed_code_lists = {
            "OBS_STATUS": _in_english(_STATUS),
            "UNIT_MEASURE": _in_english(dict(sorted(flow.unit for flow in self.flows)).items()),
        }
        text = fill_template(
            STRUCTURE_FILE,
            agency=agency_id(self.release),
            release=self.release,
            day=datetime.now(UTC).date().isoformat(),
            flows=self.flows,
            about=self._describe_release(),
            concepts=[
                *((code, names_of[column]) for column, code in concepts.items()),
                *_in_english(_VALUE_NAMES.items()),
            ],
            concept_of=concepts,
            lists=[
                *code_lists.values(),
                *(
                    (f"CL_{value}", (("en", _VALUE_NAMES[value]),), listed)
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
