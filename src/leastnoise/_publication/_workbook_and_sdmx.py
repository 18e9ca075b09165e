"""Write answers as an Excel workbook, and as SDMX data and structures.

Data messages are SDMX-CSV 2.0 (SDMX 3.0), and their structures are one SDMX-ML 3.0 message.

In SDMX every table is a separate data flow, such as ``LEASTNOISE:Q7_SEX(1.0.0)``. With ``flows =
"quantity"``, all tables of a quantity share one data flow. In this data flow, ``_T`` stands for the
total of a dimension. The dimensions are the attributes, with periods as ``TIME_PERIOD``. The answer
is ``OBS_VALUE``, and attributes of the observation state its errors. Each component appears with
its id and name (``labels=both``).
"""

import csv
import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._domain import Dates, Domain
from leastnoise._frames import Columns, UniqueNames
from leastnoise._pages import describe_row_limit, dropping_attributes
from leastnoise._release import (
    TIME_PERIOD,
    AnswerTable,
    Options,
    Release,
    ResultTable,
    SdmxMapping,
    StatisticTable,
    describe_columns,
    describe_margin,
    describe_rounding,
    display_texts,
    quantity_key,
    read_sdmx_mapping,
    sdmx_period,
    typical_half_width,
)
from leastnoise._texts import (
    PLAIN_NUMBERS,
    Catalogue,
    NumberFormat,
    attribute_heading,
    capitalize,
    display_labels,
    fill_template,
    key_headings,
    load_catalogue,
    name_attribute,
    name_quantity,
    name_quantity_and_unit,
    name_rows,
    name_with_row_limit,
    scale_of_sums,
    statistic_format,
    statistic_title,
    table_format,
    table_title,
    unit_of_statistic,
    unit_of_sums,
)
from leastnoise._trusted.check.arrays import Array
from leastnoise._workload import Product

WORKBOOK = "answers.xlsx"
_MOST_SHEET_NAME_CHARACTERS = 31  # limit of Excel for the name of a sheet
_FORBIDDEN_IN_SHEET_NAME = re.compile(r"[\[\]:*?/\\'\x00-\x1f]")
_MOST_EXACT_INTEGER = 2**53  # larger whole numbers are not exact in Excel
_HEADER_LINES = 4  # lines above the columns of a sheet
_LEAST_COLUMN_WIDTH = 12  # in characters
_MOST_COLUMN_WIDTH = 40  # in characters of a column in Excel; layout
DEFAULT_AGENCY = "LEASTNOISE"
STRUCTURE_FILE = "structure.sdmx.xml"
_MESSAGE_COLUMNS = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
_VALUES = (
    "OBS_VALUE",
    "NOISE_STD",
    "SAMPLING_STD",
    "STD_ERROR",
    "LOW",
    "HIGH",
    "BOTH_LOW",
    "BOTH_HIGH",
    "CV",
    "OBS_STATUS",
    "UNIT_MEASURE",
    "UNIT_MULT",
    "DECIMALS",
    "CONF_LEVEL",
)
"""The measure and the attributes of observations; a table has only some of them."""
_STATUSES = ("published", "suppressed", "unreliable")
_OBSERVATION_ATTRIBUTES = ("OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL")
_NOT_NUMBERS = (*_OBSERVATION_ATTRIBUTES, "UNIT_MULT", "DECIMALS")
_PERCENT_DECIMALS = 2  # decimals by which a share is longer than its percentage
_TOTAL = "_T"
_MERGED_QUERIES = ("identity", "level")  # query sets whose tables can share a data flow
_OPEN_GROUP = re.compile(r"^(\d+)\+$")  # a last group without an upper end, such as 80+
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def result_title(result: ResultTable, catalogue: Catalogue) -> str:
    """Return the display title of a result, or its name if it has no title."""
    if not catalogue.names.is_empty:
        if isinstance(result, AnswerTable):
            return table_title(result.product, catalogue)
        if isinstance(result, StatisticTable):
            return statistic_title(result.statistic, result.domain, catalogue)
    return result.name


def result_headings(result: ResultTable, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the display headings of a result's key columns."""
    if isinstance(result, AnswerTable):
        return key_headings(result.product.along, catalogue)
    if isinstance(result, StatisticTable):
        return result.key_headings(catalogue)
    return result.attributes


def result_attributes(result: ResultTable) -> tuple[str, ...]:
    """Return the attribute of each key column of a result."""
    if isinstance(result, StatisticTable):
        groups = result.statistic.by
        return (*groups, *result.attributes[len(groups) :])
    return result.attributes


def result_format(result: ResultTable, catalogue: Catalogue) -> NumberFormat:
    """Return the number format for the values of a result."""
    if isinstance(result, AnswerTable):
        return table_format(result.product, catalogue)
    if isinstance(result, StatisticTable):
        return statistic_format(result.statistic, result.domain, catalogue)
    return PLAIN_NUMBERS


def _columns_with_margins(result: ResultTable) -> Columns:
    """Return the columns of a result, with margins after a table's answers."""
    columns: Columns = {}
    for name, values in result.columns().items():
        columns[name] = values
        if name == "answer" and isinstance(result, AnswerTable):
            columns["margin"] = result.margins.reshape(-1)
    return columns


class Workbook:
    """The Excel workbook of a release.

    Labels are always written as text and cannot become formulas.
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
        self._column_lines: list[tuple[str, str, str]] = []
        self._index.set_column(1, 2, 32)

    # All tables are in one file.
    def add(self, result: ResultTable, stem: str) -> None:  # noqa: ARG002
        """Write a table or a statistic to a new sheet, which its id and title name."""
        # Names differ because they begin with the ids.
        title = result_title(result, self._catalogue)
        name = _FORBIDDEN_IN_SHEET_NAME.sub(" ", f"{result.id} {title}")[
            :_MOST_SHEET_NAME_CHARACTERS
        ].strip()
        sheet = self._workbook.add_worksheet(name)
        about, rule = self._describe_result(result, name)
        # Lines must be written in order, because the workbook does not keep them in memory.
        self._write_line(sheet, 0, (title,), bold=True)
        self._write_line(sheet, 1, (about,))
        if not self._release.private:
            self._write_line(sheet, 2, (self._catalogue.say("not_private"),), bold=True)
        if rule:
            self._write_line(sheet, 3, (rule,))
        self._write_columns(sheet, result)
        self._list_columns(result, name)

    def _list_columns(self, result: ResultTable, sheet: str) -> None:
        """Store the meaning of each number column for the sheet of columns."""
        meanings = describe_columns(result, self._catalogue)
        if isinstance(result, AnswerTable):
            meanings["margin"] = describe_margin(result, self._catalogue)
        for name in _columns_with_margins(result):
            if name in meanings:
                self._column_lines.append((sheet, name, meanings[name]))

    def _describe_result(self, result: ResultTable, sheet: str) -> tuple[str, str]:
        """Return a sentence about a result's numbers and one about their rounding.

        A table is also added to the workbook's list of tables.
        """
        if isinstance(result, StatisticTable):
            return f"{self._catalogue.say(result.meaning_key)} {self._say('book_statistic')}", ""
        if not isinstance(result, AnswerTable):
            return self._say("book_statistic"), ""
        unit = name_with_row_limit(
            name_quantity_and_unit(result.product, self._catalogue),
            result.privacy,
            self._catalogue,
        )
        self._list_table(result, sheet, unit)
        return self._say("book_interval", unit=unit), self._rounding_note

    def _list_table(self, table: AnswerTable, sheet: str, unit: str) -> None:
        """Add a line for a table to the workbook's list of tables."""
        dropping = dropping_attributes(self._release.plan, table.product)
        leaves_out = ", ".join(name_attribute(name, self._catalogue) for name in dropping)
        title = result_title(table, self._catalogue)
        facts = (table.id, title, sheet, table.cells, unit, table.typical_margin, leaves_out)
        self._write_line(self._index, self._next_index_row, facts)
        self._next_index_row += 1

    def _write_columns(self, sheet: Any, result: ResultTable) -> None:
        """Write a result's columns to a sheet, below the lines that describe them.

        Columns are wide enough for their texts, and numbers have as many digits as the noise leaves
        meaningful.
        """
        columns = self._columns_with_labels(result)
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

    def _columns_with_labels(self, result: ResultTable) -> Columns:
        """Return a result's columns, with a column of labels after each coded key.

        The reliability flags of a survey are replaced by words.
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
        unique_names = UniqueNames(set(_columns_with_margins(result)))
        for name, values in _columns_with_margins(result).items():
            columns[name] = values
            if name in texts:
                heading = unique_names.make_unique(f"{headings[name]} ({self._say('book_label')})")
                columns[heading] = texts[name]
            if name == "reliability":
                columns[name] = self._flag_words(result)
        return columns

    def _flag_words(self, result: ResultTable) -> Array:
        """Return the word for the reliability flag of each value."""
        sampling = result.sampling
        if sampling is None:
            return np.full(result.cells, "", dtype=object)
        words = np.array([self._say(key) for key in sampling.flag_keys], dtype=object)
        return np.asarray(words[sampling.reliability.reshape(-1) - 1])

    def _number_formats(self, result: ResultTable, columns: Columns) -> dict[str, Any]:
        """Return the Excel number format of each column by its name."""
        values_format = result_format(result, self._catalogue)
        half_width = typical_half_width(result.low, result.high)
        own_format = self._workbook.add_format(
            {"num_format": values_format.excel_notation(half_width)}
        )
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
        """Write the sheet of columns, and save the workbook."""
        sheet = self._workbook.add_worksheet(self._catalogue.say("book_columns"))
        headings = [self._say(f"book_{column}") for column in ("sheet", "column", "meaning")]
        self._write_line(sheet, 0, headings, bold=True)
        for row, line in enumerate(self._column_lines, 1):
            self._write_line(sheet, row, line)
        sheet.set_column(0, 0, _MOST_SHEET_NAME_CHARACTERS)
        sheet.set_column(1, 1, 2 * _LEAST_COLUMN_WIDTH)
        sheet.set_column(2, 2, 2 * _MOST_COLUMN_WIDTH)
        self._workbook.close()

    def _say(self, key: str, **values: object) -> str:
        """Return a catalogue text in which the confidence level is filled in."""
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
        """Write values into one worksheet row; non-finite numbers stay empty."""
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


def make_ids(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return a unique SDMX id for each name, none of them in ``reserved``.

    The ids consist of capital letters, digits, ``_`` and ``-``.
    """
    ids = []
    unique_names = UniqueNames({taken_id.lower() for taken_id in reserved})
    for name in names:
        upper_name = (
            _OPEN_GROUP.sub(r"GE \1", name)
            .replace("<=", "LE ")
            .replace(">=", "GE ")
            .replace("<", "LT ")
            .replace(">", "GT ")
            .upper()
        )
        stem = re.sub(r"[^A-Z0-9-]+", "_", upper_name).strip("_") or "X"
        if not re.fullmatch("-?[0-9_]+", stem):
            # A spreadsheet would run a text that begins with such a character as a formula.
            stem = stem.lstrip("-_") or "X"
        ids.append(unique_names.make_unique(stem))
    return ids


LocalTexts = tuple[tuple[str, str], ...]
"""A text by language, the main language first."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of an SDMX data flow.

    Attributes:
        id: the id of the dimension, derived from the column.
        column: the key column in the files of answers.
        names: pairs of language and display name.
        codes: the ids of the codes; for TIME_PERIOD, the periods.
        labels: for each code, pairs of language and display name.
    """

    id: str
    column: str
    names: LocalTexts
    codes: tuple[str, ...]
    labels: tuple[LocalTexts, ...]

    @property
    def name(self) -> str:
        """The display name of the dimension in the main language."""
        return self.names[0][1]

    @property
    def is_time(self) -> bool:
        """Whether this is the dimension of periods, which has no code list."""
        return self.id == TIME_PERIOD

    @property
    def cells(self) -> list[str]:
        """The text of each code in a data file: ``code: name``, or a period."""
        if self.is_time:
            return list(self.codes)
        return [
            f"{code}: {texts[0][1]}" for code, texts in zip(self.codes, self.labels, strict=True)
        ]

    @property
    def key(self) -> tuple[object, ...]:
        """Column, codes and labels; dimensions with equal keys share a code list."""
        return (self.column, *self.codes, *self.labels)


_ALL_ROWS = "ALL"
"""The id of the dimension of tables without another dimension with codes."""


def _local_texts(key: str, catalogues: Sequence[Catalogue]) -> LocalTexts:
    """Return a text of the catalogues by language."""
    return tuple((catalogue.language, catalogue.say(key)) for catalogue in catalogues)


@dataclass(frozen=True, slots=True)
class DataFlow:
    """An SDMX data flow, which contains one result or several tables.

    Attributes:
        id: the id of the data flow.
        names: the titles by language, the main language first.
        dimensions: the dimensions, in the order of the data message.
        values: the ids of the measure and of the attributes of observations.
        unit: the code of the unit, and its names by language.
        scale: the power of ten by which the values are divided, which ``UNIT_MULT`` states.
    """

    id: str
    names: LocalTexts
    dimensions: tuple[Dimension, ...]
    values: tuple[str, ...]
    unit: tuple[str, LocalTexts]
    scale: int = 1

    @property
    def name(self) -> str:
        """The title of the data flow in the main language."""
        return self.names[0][1]


def _complete_dimensions(
    dimensions: Sequence[Dimension], options: Options, catalogues: Sequence[Catalogue]
) -> tuple[Dimension, ...]:
    """Return a flow's dimensions, including those with one code for all answers.

    If no other dimension has a list of codes, the first dimension has one code, for all rows. The
    reference period that the options state comes last if no dimension has periods.
    """
    complete = [*dimensions]
    if all(dimension.is_time for dimension in dimensions):
        names = _local_texts("sdmx_all_rows", catalogues)
        total = _local_texts("sdmx_total", catalogues)
        complete.insert(0, Dimension(_ALL_ROWS, _ALL_ROWS, names, (_TOTAL,), (total,)))
    period = read_sdmx_mapping(options.sdmx).period
    if period and not any(dimension.is_time for dimension in dimensions):
        names = _local_texts("sdmx_period", catalogues)
        complete.append(Dimension(TIME_PERIOD, TIME_PERIOD, names, (period,), (names,)))
    return tuple(complete)


def _make_data_flow(result: ResultTable, options: Options) -> tuple[DataFlow, list[list[float]]]:
    """Return the data flow of a result, and its number columns as lists."""
    numbers = result.numbers()
    column_of = {value: value.lower() for value in _VALUES} | {"OBS_VALUE": result.value_name}
    columns = {value: numbers[name] for value, name in column_of.items() if name in numbers}
    scale = _find_scale(result, options)
    others = {*_OBSERVATION_ATTRIBUTES}
    if scale != 1:
        others.add("UNIT_MULT")
    if _find_decimals(result, options) is not None:
        others |= {"UNIT_MULT", "DECIMALS"}
    values = [value for value in _VALUES if value in {*columns, *others}]
    (flow_id,) = make_ids([f"{result.id} {result.name.replace(' x ', ' by ')}"])
    catalogues = _catalogues(options)
    flow = DataFlow(
        id=flow_id,
        names=tuple(
            (catalogue.language, result_title(result, catalogue)) for catalogue in catalogues
        ),
        dimensions=_complete_dimensions(
            _make_dimensions(result, options, catalogues), options, catalogues
        ),
        values=tuple(values),
        scale=scale,
        unit=_find_sdmx_unit(result, catalogues, read_sdmx_mapping(options.sdmx)),
    )
    numbers_in_scale = [
        columns[value] if value == "CV" else columns[value] / scale
        for value in values
        if value in columns
    ]
    return flow, [column.tolist() for column in numbers_in_scale]


def _find_scale(result: ResultTable, options: Options) -> int:
    """Return the number by which the values of a result are divided."""
    if not isinstance(result, AnswerTable):
        return 1
    return scale_of_sums(result.product, options.catalogue(scaled=True))


def _find_decimals(result: ResultTable, options: Options) -> int | None:
    """Return the stated decimals of a result's values in a data message, or None."""
    number_format = result_format(result, options.catalogue(scaled=True))
    if number_format.decimals is None or not number_format.percent:
        return number_format.decimals
    return number_format.decimals + _PERCENT_DECIMALS


def _catalogues(options: Options) -> list[Catalogue]:
    """Return a catalogue for each language of the display names."""
    if not options.names and not options.labels:
        return [load_catalogue()]
    return [options.catalogue(language) for language in options.languages]


def _find_sdmx_unit(
    result: ResultTable, catalogues: Sequence[Catalogue], mapping: SdmxMapping
) -> tuple[str, LocalTexts]:
    """Return the SDMX id of a result's unit, and its display name by language.

    A number of values has the unit of rows, and a weighted sum has the unit of its measure. The id
    comes from the mapping or, if the mapping has none, from the name of the measure.
    """
    key = _find_unit_key(result)
    (code,) = make_ids([key])
    names = tuple(
        (catalogue.language, _name_sdmx_unit(result, key, catalogue)) for catalogue in catalogues
    )
    return mapping.units.get(key, code), names


def _find_unit_key(result: ResultTable) -> str:
    """Return "rows", "units" or the measure whose unit a result's values have."""
    if isinstance(result, AnswerTable):
        return quantity_key(result.product.domain, result.product.measure)
    return result.unit_name or "rows"


def _name_sdmx_unit(result: ResultTable, key: str, catalogue: Catalogue) -> str:
    """Return the display name of the unit of a result in a language."""
    unit = ""
    if isinstance(result, AnswerTable):
        unit = unit_of_sums(result.product, catalogue)
    if isinstance(result, StatisticTable):
        unit = unit_of_statistic(result.statistic, result.domain, catalogue)
    if key == "rows":
        unit = unit or name_rows(catalogue)
    if key == "units":
        unit = unit or catalogue.names.units or catalogue.say("name_units")
    return unit or catalogue.names.measure(key).name or name_attribute(key, catalogue)


def _make_dimensions(
    result: ResultTable, options: Options, catalogues: Sequence[Catalogue]
) -> tuple[Dimension, ...]:
    """Return an SDMX dimension for each key column of a result."""
    if isinstance(result, AnswerTable):
        keys = result.product.keys
    else:
        keys = result.attributes
    mapping = read_sdmx_mapping(options.sdmx)
    ids = _make_dimension_ids(result, keys, mapping)
    headings = [_local_headings(result, keys, catalogue) for catalogue in catalogues]
    languages = [catalogue.language for catalogue in catalogues]
    labels = [_display_labels_in(result, options, language) for language in languages]
    attributes = result_attributes(result)
    dimensions = []
    for position, (key_id, key) in enumerate(zip(ids, keys, strict=True)):
        labels_of_codes = zip(*(labels_along[position] for labels_along in labels), strict=True)
        own_labels = [str(label) for label in result.labels[position]]
        if key_id == TIME_PERIOD:
            codes = [sdmx_period(label) or label for label in own_labels]
        else:
            codes = _make_codes(own_labels, mapping.codes.get(attributes[position], {}))
        dimensions.append(
            Dimension(
                id=key_id,
                column=key,
                names=tuple(
                    (language, heading[position])
                    for language, heading in zip(languages, headings, strict=True)
                ),
                codes=tuple(codes),
                labels=tuple(
                    tuple(zip(languages, texts, strict=True)) for texts in labels_of_codes
                ),
            )
        )
    return tuple(dimensions)


def _make_dimension_ids(
    result: ResultTable, keys: Sequence[str], mapping: SdmxMapping
) -> list[str]:
    """Return the SDMX id of the dimension of each key column."""
    time_key = _find_time_key(result, mapping)
    concepts = [
        mapping.concept_of(key, attribute)
        for key, attribute in zip(keys, result_attributes(result), strict=True)
    ]
    if time_key is not None:
        concepts[time_key] = TIME_PERIOD
    reserved = [*_MESSAGE_COLUMNS, *_VALUES, TIME_PERIOD, *mapping.concepts.values()]
    ids = []
    for mapped_id, code in zip(concepts, make_ids(keys, reserved), strict=True):
        if mapped_id:
            ids.append(mapped_id)
        elif code[0].isdigit() or code[0] == "-":
            ids.append(f"D{code}")
        else:
            ids.append(code)
    return ids


def _make_codes(labels: Sequence[str], mapped: Mapping[str, str]) -> list[str]:
    """Return the SDMX code of each label: from a mapping, or made from the label."""
    others = [label for label in labels if label not in mapped]
    new_codes = dict(zip(others, make_ids(others, mapped.values()), strict=True))
    return [mapped.get(label) or new_codes[label] for label in labels]


def _find_time_key(result: ResultTable, mapping: SdmxMapping) -> int | None:
    """Return the position of the first key column of periods, or None.

    Dates with a concept of their own, such as a year of arrival, are not the time of observations.
    """
    domain = _domain_of(result)
    for position, (name, labels) in enumerate(
        zip(result_attributes(result), result.labels, strict=True)
    ):
        is_date = name in domain.names and isinstance(domain.kind(name), Dates)
        if (
            is_date
            and name not in mapping.concepts
            and labels
            and all(sdmx_period(str(label)) for label in labels)
        ):
            return position
    return None


def _local_headings(
    result: ResultTable, keys: Sequence[str], catalogue: Catalogue
) -> Sequence[str]:
    """Return the headings of keys in a language, or the keys if they lack names."""
    return keys if catalogue.names.is_empty else result_headings(result, catalogue)


def _display_labels_in(
    result: ResultTable, options: Options, language: str
) -> tuple[tuple[str, ...], ...]:
    """Return the display labels of each key of a result in a language."""
    if language == options.language:
        return result.display_labels
    texts = display_texts(options, _domain_of(result), language)
    return display_labels(result.labels, result_attributes(result), texts)


def _domain_of(result: ResultTable) -> Domain:
    """Return the domain over which a table or statistic is computed."""
    if isinstance(result, AnswerTable):
        return result.product.domain
    if isinstance(result, StatisticTable):
        return result.domain
    raise TypeError(f"{type(result).__name__} has no domain")


def _csv_header(flow: DataFlow, catalogue: Catalogue) -> list[str]:
    """Return the column headings of an SDMX-CSV file, named in the main language."""
    dimensions = [f"{dimension.id}: {dimension.name}" for dimension in flow.dimensions]
    return [
        *_MESSAGE_COLUMNS,
        *dimensions,
        *(f"{value}: {_name_value(value, catalogue)}" for value in flow.values),
    ]


def _name_value(value: str, catalogue: Catalogue) -> str:
    """Return the display name of a measure or an attribute of observations."""
    return catalogue.say(f"sdmx_{value.lower()}")


def _name_status(code: str, catalogue: Catalogue) -> str:
    """Return the display name of an observation status."""
    return catalogue.say(f"sdmx_status_{code.lower()}")


def agency_id(release: Release) -> str:
    """Return the SDMX id of the agency that publishes a release."""
    mapped = read_sdmx_mapping(release.options.sdmx).agency
    if mapped:
        return mapped
    (code,) = make_ids([release.options.text("agency") or DEFAULT_AGENCY])
    return code if code[0].isalpha() else f"A{code}"


def _list_statuses(result: ResultTable, mapping: SdmxMapping, catalogue: Catalogue) -> list[str]:
    """Return the SDMX observation status of each answer, as ``code: name``."""
    codes = [mapping.status[answer] for answer in _STATUSES]
    published, suppressed, unreliable = (
        f"{code}: {_name_status(code, catalogue)}" for code in codes
    )
    numbers = result.numbers()
    statuses = np.full(result.cells, published, dtype=object)
    if "reliability" in numbers:
        statuses[numbers["reliability"] != 1] = unreliable
    statuses[np.isnan(numbers[result.value_name])] = suppressed
    statuses_of_answers: list[str] = statuses.tolist()
    return statuses_of_answers


def _empty_if_missing(value: float) -> float | str:
    """Return a number, or an empty text for NaN."""
    if math.isnan(value):
        return ""
    return value


@dataclass(slots=True)
class SdmxMessages:
    """Writes the SDMX data and structure messages of a release."""

    release: Release
    directory: Path
    flows: list[DataFlow] = field(default_factory=list)
    _merged: dict[tuple[str | None, str | None], list[AnswerTable]] = field(default_factory=dict)

    def add(self, result: ResultTable, stem: str) -> None:
        """Write a result as one data message, or store it for a shared data flow."""
        if self._mapping.flows == "quantity" and isinstance(result, AnswerTable):
            product = result.product
            kinds = {query_set.kind for query_set in product.query_sets}
            if kinds <= {*_MERGED_QUERIES}:
                time_key = _find_time_key(result, self._mapping)
                time_attribute = None
                if time_key is not None:
                    time_attribute = product.attributes[time_key]
                key = (product.measure, time_attribute)
                self._merged.setdefault(key, []).append(result)
                return
        flow, columns = _make_data_flow(result, self.release.options)
        keys = _list_observation_codes(flow, result)
        self._write_message(flow, stem, self._observations(flow, result, columns, keys))

    @property
    def _mapping(self) -> SdmxMapping:
        """The ids that the options state for SDMX."""
        return read_sdmx_mapping(self.release.options.sdmx)

    @property
    def _catalogue(self) -> Catalogue:
        """The texts of the main language."""
        return _catalogues(self.release.options)[0]

    def _write_message(
        self, flow: DataFlow, stem: str, observations: Iterable[list[str | float]]
    ) -> None:
        """Write the observations of a data flow as an SDMX-CSV file."""
        self.flows.append(flow)
        path = self.directory / f"{stem}.sdmx.csv"
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\r\n")  # as RFC 4180 requires
            rows.writerow(_csv_header(flow, self._catalogue))
            rows.writerows(observations)

    def _observations(
        self,
        flow: DataFlow,
        result: ResultTable,
        number_columns: Sequence[Sequence[float]],
        dimension_codes: Iterable[list[str]],
    ) -> Iterator[list[str | float]]:
        """Yield the CSV fields of each observation; NaN becomes an empty field."""
        first_fields = ["dataflow", f"{agency_id(self.release)}:{flow.id}(1.0.0): {flow.name}", "I"]
        unit, unit_names = flow.unit
        last_fields = [f"{unit}: {unit_names[0][1]}"]
        if "UNIT_MULT" in flow.values:
            last_fields.append(str(len(str(flow.scale)) - 1))
        if "DECIMALS" in flow.values:
            decimals = _find_decimals(result, self.release.options)
            last_fields.append("" if decimals is None else str(decimals))
        last_fields.append(f"{self.release.level:g}")
        statuses = _list_statuses(result, self._mapping, self._catalogue)
        for key, values, status in zip(
            dimension_codes, zip(*number_columns, strict=True), statuses, strict=True
        ):
            number_fields = [_empty_if_missing(value) for value in values]
            yield [*first_fields, *key, *number_fields, status, *last_fields]

    def _write_merged_flows(self) -> None:
        """Write one data message for each quantity; totals have the code ``_T``."""
        for tables in self._merged.values():
            merged = merge_tables(tables, self.release.options)
            (flow_id,) = make_ids([merged.flow.id], [flow.id for flow in self.flows])
            flow = replace(merged.flow, id=flow_id)
            rows = chain.from_iterable(
                self._merged_observations(merged, flow, table) for table in _distinct_tables(tables)
            )
            self._write_message(flow, f"answers/{flow_id.lower()}", rows)

    def _merged_observations(
        self, merged: "MergedFlow", flow: DataFlow, table: AnswerTable
    ) -> Iterator[list[str | float]]:
        """Yield the CSV fields of a table's observations in a shared data flow."""
        own_flow, own_columns = _make_data_flow(table, self.release.options)
        names = [name for name in own_flow.values if name not in _NOT_NUMBERS]
        column_of = dict(zip(names, own_columns, strict=True))
        columns = [
            column_of.get(name, [math.nan] * table.cells)
            for name in flow.values
            if name not in _NOT_NUMBERS
        ]
        return self._observations(flow, table, columns, merged.observation_codes(table))

    def _describe_release(self) -> LocalTexts:
        """Return the title, source and row limit of the release, by language."""
        options = self.release.options
        descriptions = []
        for catalogue in _catalogues(options):
            language = catalogue.language
            facts = [
                options.text("title", language),
                options.text("source", language),
                describe_row_limit(self.release, catalogue),
            ]
            text = ". ".join(fact for fact in facts if fact)
            if text:
                descriptions.append((language, text))
        return tuple(descriptions)

    def close(self) -> None:
        """Write the structure message: concepts, code lists and data flows.

        Dimensions with equal labels share one code list.
        """
        self._write_merged_flows()
        code_lists: dict[tuple[object, ...], tuple[str, LocalTexts, list[Any]]] = {}
        dimensions = list(chain.from_iterable(flow.dimensions for flow in self.flows))
        catalogues = _catalogues(self.release.options)
        concepts = self._name_concepts(dimensions)
        # An attribute names the concept that it shares with its levels.
        by_column = sorted(dimensions, key=lambda dimension: ":" not in dimension.column)
        names_of_concepts = {concepts[dimension.column]: dimension.names for dimension in by_column}
        coded_dimensions = [dimension for dimension in dimensions if not dimension.is_time]
        for dimension in coded_dimensions:
            code_list = (
                f"CL{len(code_lists) + 1}_{concepts[dimension.column]}",
                dimension.names,
                list(zip(dimension.codes, dimension.labels, strict=True)),
            )
            code_lists.setdefault(dimension.key, code_list)
        fixed_code_lists = self._fixed_code_lists()
        text = fill_template(
            STRUCTURE_FILE,
            agency=agency_id(self.release),
            release=self.release,
            day=datetime.now(UTC).date().isoformat(),
            flows=self.flows,
            about=self._describe_release(),
            concepts=[
                *names_of_concepts.items(),
                *((value, _local_texts(f"sdmx_{value.lower()}", catalogues)) for value in _VALUES),
            ],
            scheme=_local_texts("sdmx_scheme", catalogues),
            concept_of=concepts,
            lists=[
                *code_lists.values(),
                *(
                    (f"CL_{value}", _local_texts(f"sdmx_{value.lower()}", catalogues), listed)
                    for value, listed in fixed_code_lists.items()
                ),
            ],
            list_of={dimension: code_lists[dimension.key][0] for dimension in coded_dimensions},
            enumerated={value: f"CL_{value}" for value in fixed_code_lists},
        )
        path = self.directory / STRUCTURE_FILE
        path.write_text(
            _CONTROL.sub("\ufffd", text), encoding="utf-8", errors="replace", newline="\n"
        )

    def _fixed_code_lists(self) -> dict[str, Any]:
        """Return the code lists of observation statuses and units by id."""
        catalogues = _catalogues(self.release.options)
        codes = dict.fromkeys(self._mapping.status[answer] for answer in _STATUSES)
        units = dict(sorted(flow.unit for flow in self.flows))
        return {
            "OBS_STATUS": [
                (code, _local_texts(f"sdmx_status_{code.lower()}", catalogues)) for code in codes
            ],
            "UNIT_MEASURE": [*units.items()],
        }

    def _name_concepts(self, dimensions: Sequence[Dimension]) -> dict[str, str]:
        """Map the column name of each dimension to the id of its concept.

        The id is the id of the dimension if this is TIME_PERIOD or comes from the mapping.
        """
        mapped = self._mapping.concepts
        fixed = {
            dimension.column: dimension.id
            for dimension in dimensions
            if dimension.is_time or dimension.id in mapped.values()
        }
        others = [*dict.fromkeys(d.column for d in dimensions if d.column not in fixed)]
        reserved = [*_VALUES, TIME_PERIOD, *mapped.values()]
        return fixed | dict(zip(others, make_ids(others, reserved), strict=True))


def _list_observation_codes(flow: DataFlow, result: ResultTable) -> Iterator[list[str]]:
    """Yield the codes of the dimensions for each value of a result.

    Dimensions of all rows and of the reference period have one code for all values.
    """
    sizes = result.low.shape
    has_all_rows = flow.dimensions[0].id == _ALL_ROWS
    keys = flow.dimensions[has_all_rows : has_all_rows + len(sizes)]
    first = [dimension.cells[0] for dimension in flow.dimensions[:has_all_rows]]
    last = [dimension.cells[0] for dimension in flow.dimensions[has_all_rows + len(sizes) :]]
    cells = [dimension.cells for dimension in keys]
    for cell in np.ndindex(sizes):
        labels = [codes[label] for codes, label in zip(cells, cell, strict=True)]
        yield [*first, *labels, *last]


def _distinct_tables(tables: Sequence[AnswerTable]) -> list[AnswerTable]:
    """Return the tables, without a table whose keys an earlier table has."""
    by_keys: dict[tuple[str, ...], AnswerTable] = {}
    for table in tables:
        by_keys.setdefault(tuple(table.product.keys), table)
    return list(by_keys.values())


@dataclass(frozen=True, slots=True)
class MergedFlow:
    """One SDMX data flow for all tables of a quantity.

    Attributes:
        flow: the data flow. A dimension has the total ``_T``, the codes of its attribute and the
            codes of its levels.
        attributes: the attribute of each dimension; empty for the dimension of all rows.
        cells: for each key column of the tables, the texts of its codes in a data file.
    """

    flow: DataFlow
    attributes: tuple[str, ...]
    cells: Mapping[str, Sequence[str]]

    def observation_codes(self, table: AnswerTable) -> Iterator[list[str]]:
        """Yield the codes of each answer of a table; ``_T`` for dimensions not in it."""
        totals = [dimension.cells[0] for dimension in self.flow.dimensions]
        positions = [self.attributes.index(name) for name in table.product.attributes]
        cells = [self.cells[key] for key in table.product.keys]
        for cell in np.ndindex(table.answer.shape):
            key = list(totals)
            for position, codes, label in zip(positions, cells, cell, strict=True):
                key[position] = codes[label]
            yield key


def merge_tables(tables: Sequence[AnswerTable], options: Options) -> MergedFlow:
    """Return one SDMX data flow for all tables of a quantity."""
    catalogues = _catalogues(options)
    flows = [_make_data_flow(table, options)[0] for table in tables]
    mapping = read_sdmx_mapping(options.sdmx)
    own_dimensions: dict[str, dict[str, Dimension]] = {}
    for table in tables:
        own = _make_dimensions(table, options, catalogues)
        for name, dimension in zip(table.product.attributes, own, strict=True):
            own_dimensions.setdefault(name, {})[dimension.column] = dimension
    product = tables[0].product
    names = tuple(name for name in product.domain.names if name in own_dimensions)
    dimensions: list[Dimension] = []
    cells: dict[str, Sequence[str]] = {}
    for name in names:
        dimension_id = _make_merged_id(name, own_dimensions[name].values(), mapping)
        dimension, own_cells = _merge_dimensions(
            name, dimension_id, own_dimensions[name], catalogues
        )
        dimensions.append(dimension)
        cells |= own_cells
    quantity = tables[0].unit_name or "rows"
    times = [name for name, dimension in zip(names, dimensions, strict=True) if dimension.is_time]
    flow_name = quantity
    if times:
        flow_name = f"{quantity} by time"
    (flow_id,) = make_ids([flow_name])
    all_values = set(chain.from_iterable(flow.values for flow in flows))
    flow = DataFlow(
        id=flow_id,
        names=tuple(
            (catalogue.language, _name_merged_flow(product, times, catalogue))
            for catalogue in catalogues
        ),
        dimensions=_complete_dimensions(dimensions, options, catalogues),
        values=tuple(value for value in _VALUES if value in all_values),
        unit=flows[0].unit,
        scale=flows[0].scale,
    )
    has_all_rows = flow.dimensions[0].id == _ALL_ROWS
    return MergedFlow(flow, (*[""] * has_all_rows, *names), cells)


def _name_merged_flow(
    product: Product, period_attributes: Sequence[str], catalogue: Catalogue
) -> str:
    """Return the title of a flow of tables: quantity and any period attribute."""
    quantity = name_quantity(product, catalogue)
    if not period_attributes:
        return capitalize(quantity)
    groups = name_attribute(period_attributes[0], catalogue)
    return capitalize(catalogue.say("name_by", name=quantity, groups=groups))


def _make_merged_id(attribute: str, dimensions: Iterable[Dimension], mapping: SdmxMapping) -> str:
    """Return the id of an attribute's dimension in a shared data flow.

    The levels of the attribute are codes of the same dimension. An attribute has the same id in
    all shared flows, so that the flows can be joined.
    """
    if any(dimension.is_time for dimension in dimensions):
        return TIME_PERIOD
    mapped = mapping.concepts.get(attribute)
    if mapped:
        return mapped
    reserved = [*_MESSAGE_COLUMNS, *_VALUES, TIME_PERIOD, *mapping.concepts.values()]
    (code,) = make_ids([attribute], reserved)
    return f"D{code}" if code[0].isdigit() or code[0] == "-" else code


def _merge_dimensions(
    attribute: str,
    dimension_id: str,
    dimensions: Mapping[str, Dimension],
    catalogues: Sequence[Catalogue],
) -> tuple[Dimension, dict[str, Sequence[str]]]:
    """Return a dimension of an attribute and its levels, and the cells by key.

    Args:
        attribute: the name of the attribute.
        dimension_id: the id of the dimension.
        dimensions: the dimension of each key: the attribute or a level such as ``store:region``.
        catalogues: the catalogues of all languages.
    """
    in_order = sorted(dimensions.values(), key=lambda dimension: dimension.column != attribute)
    first = in_order[0]
    if first.is_time:
        merged = replace(first, column=attribute)
        return merged, {dimension.column: dimension.cells for dimension in in_order}
    labels_of: dict[str, LocalTexts] = {_TOTAL: _local_texts("sdmx_total", catalogues)}
    codes_of: dict[str, list[str]] = {}
    for dimension in in_order:
        codes = list(dimension.codes)
        for position, code in enumerate(dimension.codes):
            if code in labels_of:
                (codes[position],) = make_ids([f"{dimension.column} {code}"])
        codes_of[dimension.column] = codes
        labels_of |= dict(zip(codes, dimension.labels, strict=True))
    merged = replace(
        first,
        id=dimension_id,
        column=attribute,
        names=tuple((each.language, attribute_heading(attribute, each)) for each in catalogues),
        codes=tuple(labels_of),
        labels=tuple(labels_of.values()),
    )
    cell_of = dict(zip(merged.codes, merged.cells, strict=True))
    cells: dict[str, Sequence[str]] = {}
    for key, codes in codes_of.items():
        cells[key] = [cell_of[code] for code in codes]
    return merged, cells
