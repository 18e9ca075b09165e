"""Write the publication workbook: formatted Excel tables for readers.

The rows of a table are its groups. If one key has few labels, the table has a column for each of
these labels. Every sheet has a title, the unit, number formats and notes, and is set up for
printing. The first sheet is the table of contents, and the last sheet contains the notes. Programs
can read all columns of all tables in `answers.xlsx`.
"""

import datetime as dt
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leastnoise._pages import (
    describe_dropped_rows,
    describe_intervals,
    describe_promise,
    describe_row_limit_of_answers,
    describe_survey,
    has_weights,
    keys_of_parts,
    list_uncovered_errors,
)
from leastnoise._publication._workbook_and_sdmx import result_headings
from leastnoise._release import (
    AnswerTable,
    Options,
    Release,
    ResultTable,
    StatisticTable,
    describe_rounding,
    display_texts,
    quantity_key,
    typical_half_width,
)
from leastnoise._texts import (
    Catalogue,
    NumberFormat,
    capitalize,
    first_moment,
    name_quantity,
    name_with_row_limit,
    scale_of_sums,
    statistic_axis_title,
    statistic_format,
    statistic_title,
    table_format,
    table_title,
    unit_of_sums,
)
from leastnoise._trusted.check.arrays import FloatArray, IntArray

PUBLICATION = "publication"
_MOST_PUBLISHED_CELLS = 50_000  # cells of a table; larger tables are only useful for programs
_MOST_COLUMNS = 10  # labels of the key whose labels are columns
_MOST_VALUE_COLUMNS = 10  # columns of values that stay readable on a page; a choice of layout
_LINE_HEIGHT = 13.5  # points of a line of text in the font of the sheets
_NOTE_LINE_HEIGHT = 12.5  # points of a line of a note below a table, in a smaller font
_LEAST_WIDTH = 9  # width of a column in characters
_MOST_LABEL_WIDTH = 42  # width of labels in characters; a choice of layout
_NOTE_CHARACTERS = 92  # width of the sheet of notes; fits on A4 paper without scaling
_MOST_TITLE_WIDTH = 76  # width of titles in the contents, in characters; a choice of layout
_MOST_UNIT_WIDTH = 36  # width of units in the contents, in characters; a choice of layout
_PORTRAIT_CHARACTERS = 92  # widths of columns that fit on upright A4 paper without scaling
_TITLE_LINE_HEIGHT = 17.5  # points of a line of a sheet's title, in a larger font
_NOTE_SCALE = 1.05  # characters in a line of a note, divided by the characters in a line of values
_TITLE_SCALE = 0.7  # characters in a line of a title, divided by the characters in a line of values
_LEAST_NOTE_COLUMNS = 6  # columns that a title and notes extend over
_DEFAULT_WIDTH = 8.43  # width of a column without a stated width, in Excel
_LEAST_SHORTENED_MARGIN = 1000  # smaller margins have at most three digits before the decimals
_SUPPRESSED = "\u2013"
_A4_PAPER_NUMBER = 9  # Excel's number for this paper size
_FONT = {"font_name": "Calibri", "font_size": 10}
_RULE = "#7f7f7f"
_GREY = "#595959"
_LIGHT_GREY = "#767676"  # the lightest grey with a contrast of 4.5 to white
_FORBIDDEN_IN_SHEET_NAME = re.compile(r"[\[\]:*?/\\'\x00-\x1f]")


class ValueBlock(NamedTuple):
    """Values under one heading: answers, margins or ends of intervals.

    Only answers have reliability flags. Margins have three digits, as in the report.
    """

    heading: str
    values: FloatArray
    has_flags: bool = True
    is_margin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationTable:
    """A table or statistic with the texts of one language, ready for a sheet.

    Attributes:
        id: the id, such as ``q1``.
        title: the display title.
        unit: the quantity or the unit of the values.
        headings: the heading of each key.
        labels: the labels of each key.
        blocks: arrays of values with one axis per key.
        flags: 1 for reliable values, 2 or 3 for less reliable ones, in the shape of the values;
            None without sampling errors.
        half_width: the typical margin; it determines the number of decimals.
        number_format: the format of the values.
        is_time: for each key, whether its labels denote dates.
        notes: sentences on this table only, such as the contents of its margins.
    """

    id: str
    title: str
    unit: str
    headings: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    blocks: tuple[ValueBlock, ...]
    flags: IntArray | None
    half_width: float
    number_format: NumberFormat
    is_time: tuple[bool, ...]
    notes: tuple[str, ...] = ()

    @property
    def column_key(self) -> int | None:
        """The position of the key whose labels are columns; None if there is none.

        The column key is a key of dates with two to ten labels, or else the last key with two to
        ten labels. If the table would be too wide for a page, the column key is the key with the
        fewest labels.
        """
        if len(self.labels) < 2:
            return None
        few = [key for key, along in enumerate(self.labels) if 2 <= len(along) <= _MOST_COLUMNS]
        if not few:
            return None
        times = [key for key in few if self.is_time[key]]
        if times:
            return times[0]
        if len(self.blocks) * len(self.labels[few[-1]]) <= _MOST_VALUE_COLUMNS:
            return few[-1]
        return min(reversed(few), key=lambda key: len(self.labels[key]))

    @property
    def row_keys(self) -> list[int]:
        """The positions of the keys whose labels are rows."""
        return [key for key in range(len(self.labels)) if key != self.column_key]

    def excel_format(self) -> str:
        """Return the number format of the values in Excel's notation."""
        half_width = self.half_width
        if self.number_format.percent:
            half_width *= 100
        return self.number_format.excel_notation(half_width)


def make_publication_table(
    result: ResultTable, release: Release, catalogue: Catalogue
) -> PublicationTable:
    """Return a result with the title and labels of the catalogue's language."""
    texts = display_texts(release.options, release.plan.domain, catalogue.language)
    result = replace(result, code_texts=texts)
    flags = None
    if result.sampling is not None:
        flags = np.asarray(result.sampling.reliability)
    percent = catalogue.format_percent(release.level)
    if isinstance(result, AnswerTable):
        product = result.product
        title = table_title(product, catalogue)
        unit = unit_of_sums(product, catalogue) or name_quantity(product, catalogue)
        unit = name_with_row_limit(unit, result.privacy, catalogue)
        blocks = _table_blocks(result, percent, catalogue)
        number_format = table_format(product, catalogue)
        half_width = result.typical_margin / number_format.scale
    elif isinstance(result, StatisticTable):
        title = statistic_title(result.statistic, result.domain, catalogue)
        unit = statistic_axis_title(result.statistic, result.domain, catalogue)
        blocks = _statistic_blocks(result, percent, catalogue)
        number_format = statistic_format(result.statistic, result.domain, catalogue)
        if result.statistic.form.along:
            number_format = NumberFormat(decimals=1, percent=True)
        half_width = typical_half_width(result.low_with_sampling, result.high_with_sampling)
    else:
        raise TypeError(f"{type(result).__name__} is not a table of a release")
    return PublicationTable(
        id=result.id,
        title=title,
        unit=capitalize(unit),
        headings=tuple(result_headings(result, catalogue)),
        labels=_localize_labels(result, catalogue),
        blocks=blocks,
        flags=flags,
        half_width=half_width,
        number_format=number_format,
        is_time=tuple(bool(along and first_moment(along[0])) for along in result.display_labels),
        notes=tuple(_list_table_notes(result, release, catalogue)),
    )


def _localize_labels(result: ResultTable, catalogue: Catalogue) -> tuple[tuple[str, ...], ...]:
    """Return a result's display labels, with shares in the language's notation."""
    labels = result.display_labels
    if not isinstance(result, StatisticTable):
        return labels
    groups = len(result.statistic.by)
    shares = [tuple(map(catalogue.localize, along)) for along in labels[groups:]]
    return (*labels[:groups], *shares)


def _list_table_notes(result: ResultTable, release: Release, catalogue: Catalogue) -> list[str]:
    """Return notes on a table's intervals and on the rounding of its answers."""
    options = release.options
    is_table = isinstance(result, AnswerTable)
    percent = catalogue.format_percent(release.level)
    notes = [catalogue.say("book_margins" if is_table else "book_ends", percent=percent)]
    if result.sampling is not None:
        notes.append(catalogue.say("book_sampling"))
    elif options.survey:
        notes.append(catalogue.say("book_noise_only"))
    elif has_weights(release):
        notes.append(catalogue.say("fit_sample"))
    if isinstance(result, AnswerTable):
        key = quantity_key(result.product.domain, result.product.measure)
        notes.append(describe_rounding(options, catalogue, only=key))
        adjusted = [catalogue.say(f"col_{name}") for name in _adjusted_columns(result)]
        if adjusted:
            names = catalogue.join_names([catalogue.quote(name) for name in adjusted])
            notes.append(catalogue.say("book_adjusted", names=names))
    elif options.below is not None:
        notes.append(describe_rounding(options, catalogue))
    return notes


def _adjusted_columns(table: AnswerTable) -> list[str]:
    """Return the names of a table's biased answers, such as additive answers."""
    return [name for name in table.numbers() if name.startswith("answer_")]


def _table_blocks(table: AnswerTable, percent: str, catalogue: Catalogue) -> tuple[ValueBlock, ...]:
    """Return blocks of a table: its answers, their margins, and biased answers."""
    heading = catalogue.say("col_answer")
    if not catalogue.names.is_empty:
        heading = capitalize(name_quantity(table.product, catalogue))
    numbers = table.numbers()
    scale = scale_of_sums(table.product, catalogue)
    adjusted = [
        ValueBlock(
            capitalize(catalogue.say(f"col_{name}")),
            numbers[name].reshape(table.answer.shape) / scale,
            has_flags=False,
        )
        for name in _adjusted_columns(table)
    ]
    margin_heading = catalogue.say("col_margin", percent=percent)
    return (
        ValueBlock(heading, table.answer / scale),
        ValueBlock(
            margin_heading, table.margins_with_sampling / scale, has_flags=False, is_margin=True
        ),
        *adjusted,
    )


def _statistic_blocks(
    table: StatisticTable, percent: str, catalogue: Catalogue
) -> tuple[ValueBlock, ...]:
    """Return three blocks: a statistic's values, and both ends of intervals."""
    low, high = (catalogue.say(key, percent=percent) for key in ("book_low", "book_high"))
    return (
        ValueBlock(catalogue.say(f"col_{table.value_name}"), table.values),
        ValueBlock(low, table.low_with_sampling, has_flags=False),
        ValueBlock(high, table.high_with_sampling, has_flags=False),
    )


class PublicationWorkbook:
    """Writes the publication tables of a release in one language to Excel.

    Texts are always written as text cells and cannot become formulas.
    """

    def __init__(self, release: Release, directory: Path, language: str) -> None:
        import xlsxwriter

        self._release = release
        self._catalogue = release.options.catalogue(language, scaled=True)
        path = directory / publication_file(release.options, language)
        self._book = xlsxwriter.Workbook(
            str(path),
            {"strings_to_formulas": False, "strings_to_urls": False, "tmpdir": str(directory)},
        )
        # The time of day stays secret, as in the manifest.
        day = dt.datetime.combine(dt.datetime.now(dt.UTC).date(), dt.time())
        self._book.set_properties(
            {
                "title": self._title,
                "company": release.options.text("agency", language),
                "created": day,
            }
        )
        self._formats: dict[tuple[tuple[str, object], ...], Any] = {}
        self._contents = self._book.add_worksheet(self._say("book_contents"))
        self._listed: list[tuple[str, str, str, str]] = []
        # The counts and sums from which statistics are computed come last in the contents.
        self._parts = keys_of_parts(release.plan.workload)
        self._listed_parts: list[tuple[str, str, str, str]] = []

    def add(self, result: ResultTable) -> None:
        """Write a result to a new sheet; only list it if it is too large."""
        if result.cells > _MOST_PUBLISHED_CELLS:
            title = make_title(result, self._catalogue)
            self._list_of(result).append((result.id, title, self._say("book_too_large"), ""))
            return
        table = make_publication_table(result, self._release, self._catalogue)
        name = _FORBIDDEN_IN_SHEET_NAME.sub(" ", result.id)
        sheet = self._book.add_worksheet(name)
        self._list_of(result).append((table.id, table.title, table.unit, name))
        _SheetWriter(self, sheet, table).write()

    def _list_of(self, result: ResultTable) -> list[tuple[str, str, str, str]]:
        """Return the section of the contents that lists a table or a statistic."""
        is_part = isinstance(result, AnswerTable) and result.product.table_key in self._parts
        return self._listed_parts if is_part else self._listed

    def close(self) -> None:
        """Write the sheets of contents and notes, and save the workbook."""
        self._write_contents()
        self._write_notes()
        self._book.close()

    def format(self, **facts: object) -> Any:
        """Return the cell format with these properties, created on first use."""
        key = tuple(sorted({**_FONT, **facts}.items()))
        if key not in self._formats:
            self._formats[key] = self._book.add_format(dict(key))
        return self._formats[key]

    @property
    def _title(self) -> str:
        """The title of the workbook, from the options or a default text."""
        title = self._release.options.text("title", self._catalogue.language)
        return title or self._say("book_title")

    def _say(self, key: str, **values: object) -> str:
        """Return the catalogue's text of a key after values are filled in."""
        return self._catalogue.say(key, **values)

    @property
    def back_text(self) -> str:
        """The text of the link to the table of contents."""
        return self._say("book_back")

    @property
    def contents_link(self) -> str:
        """The address of the table of contents inside the workbook."""
        return f"internal:'{self._say('book_contents')}'!A1"

    def notes_of(self, table: PublicationTable) -> list[str]:
        """Return the texts of the notes below a table."""
        options = self._release.options
        notes = [*table.notes]
        if table.flags is not None:
            notes.append(self._say("book_flags"))
        if any(np.isnan(block.values).any() for block in table.blocks[:1]):
            notes.append(self._say("book_suppressed", sign=_SUPPRESSED))
        row_limit = describe_row_limit_of_answers(self._release, self._catalogue)
        if row_limit:
            notes.append(row_limit)
        source = options.text("source", self._catalogue.language)
        agency = options.text("agency", self._catalogue.language)
        if source:
            notes.append(self._say("source_line", source=source))
        return [note for note in [*notes, agency] if note]

    @property
    def warning(self) -> str:
        """The warning that the noise came from a seed; empty otherwise."""
        return "" if self._release.private else self._say("not_private")

    def _write_contents(self) -> None:
        """Write the first sheet: the title, and a link to each table."""
        sheet = self._contents
        sheet.hide_gridlines(2)
        widths = self._contents_widths()
        for column, width in enumerate(widths):
            sheet.set_column(column, column, width)
        language = self._catalogue.language
        sheet.write_string(
            0, 0, _remove_surrogates(self._title), self.format(bold=True, font_size=16)
        )
        facts = [
            self._release.options.text("agency", language),
            self._say(
                "written_on", date=self._catalogue.format_date(dt.datetime.now(dt.UTC).date())
            ),
            self.warning,
        ]
        row = 1
        for fact in facts:
            if fact:
                sheet.write_string(row, 0, _remove_surrogates(fact), self.format(font_color=_GREY))
                row += 1
        row += 1
        heading = self.format(bold=True, bottom=1, bottom_color=_RULE)
        for column, key in enumerate(("book_number", "book_table", "book_unit")):
            text = self._say(key)
            sheet.write_string(row, column, capitalize(text), heading)
        row = self._write_entries(row + 1, self._listed, widths)
        if self._listed_parts:
            if self._listed:
                sheet.write_string(row + 1, 1, self._say("book_parts"), self.format(bold=True))
                row += 2
            self._write_entries(row, self._listed_parts, widths)
        self._set_page(sheet)
        if sum(widths) > _PORTRAIT_CHARACTERS:
            sheet.set_landscape()
        sheet.activate()

    def _write_entries(
        self, row: int, entries: Sequence[tuple[str, str, str, str]], widths: Sequence[int]
    ) -> int:
        """Write a line of the contents for each entry; return the next row's number."""
        sheet = self._contents
        style = {"text_wrap": True, "valign": "top"}
        plain = self.format(**style)
        link = self.format(font_color="#1d5b8c", underline=1, **style)
        for number, (table_id, title, unit, name) in enumerate(entries, row):
            sheet.write_string(number, 0, table_id, plain)
            if name:
                sheet.write_url(number, 1, f"internal:'{name}'!A1", link, _remove_surrogates(title))
            else:
                sheet.write_string(number, 1, _remove_surrogates(title), plain)
            sheet.write_string(number, 2, _remove_surrogates(unit), plain)
            lines = max(_count_lines(title, widths[1]), _count_lines(unit, widths[2]))
            sheet.set_row(number, _LINE_HEIGHT * lines)
        return row + len(entries)

    def _contents_widths(self) -> tuple[int, int, int]:
        """Return the widths of the columns of the contents, in characters."""
        entries = [*self._listed, *self._listed_parts]
        titles = [len(title) for _, title, _, _ in entries]
        units = [len(unit) for _, _, unit, _ in entries]
        title_width = min(max([*titles, _LEAST_WIDTH]) + 2, _MOST_TITLE_WIDTH)
        unit_width = min(max([*units, _LEAST_WIDTH]) + 2, _MOST_UNIT_WIDTH)
        return 6, title_width, unit_width

    def _write_notes(self) -> None:
        """Write the last sheet: notes on methods, margins, rows and the guarantee."""
        release = self._release
        catalogue = self._catalogue
        sheet = self._book.add_worksheet(self._say("book_notes"))
        sheet.hide_gridlines(2)
        sheet.set_column(0, 0, _NOTE_CHARACTERS)
        contact = release.options.text("contact", catalogue.language)
        parts = [
            ("h_reading", [describe_intervals(release, catalogue)]),
            ("h_not_covered", list_uncovered_errors(release, catalogue)),
            ("h_rows", [describe_dropped_rows(release, catalogue)]),
            ("h_promise", [describe_promise(release.privacy, catalogue)]),
            ("ask", [self._say("contact", contact=contact) if contact else self._say("ask_whom")]),
        ]
        if release.options.survey:
            parts.insert(1, ("col_sampling", [describe_survey(release, catalogue)]))
        row = 0
        for heading, texts in parts:
            sheet.write_string(row, 0, self._say(heading), self.format(bold=True, font_size=12))
            for text in texts:
                row += 1
                sheet.write_string(
                    row, 0, _remove_surrogates(text), self.format(text_wrap=True, valign="top")
                )
                sheet.set_row(row, _LINE_HEIGHT * _count_lines(text, _NOTE_CHARACTERS))
            row += 2
        self._set_page(sheet)

    def _set_page(self, sheet: Any) -> None:
        """Set up a sheet for printing on A4 paper."""
        sheet.set_paper(_A4_PAPER_NUMBER)
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&L&8&A&R&8&P / &N")
        sheet.set_margins(left=0.5, right=0.5)

    def set_table_page(self, sheet: Any, columns: int, header_rows: tuple[int, int]) -> None:
        """Set up a table's sheet for printing; every page repeats the headings."""
        self._set_page(sheet)
        if columns > 7:
            sheet.set_landscape()
        sheet.repeat_rows(*header_rows)


class _SheetWriter:
    """Writes a publication table to its sheet, from top to bottom."""

    def __init__(self, book: PublicationWorkbook, sheet: Any, table: PublicationTable) -> None:
        self._book = book
        self._sheet = sheet
        self._table = table
        column_key = table.column_key
        self._column_labels = ("",) if column_key is None else table.labels[column_key]
        self._key_columns = len(table.row_keys)
        self._columns = self._key_columns + len(table.blocks) * len(self._column_labels)

    def write(self) -> None:
        """Write title, headings, values and notes, and format the sheet."""
        self._sheet.hide_gridlines(2)
        row = self._write_title()
        first_header_row = row
        row = self._write_headings(row)
        self._sheet.freeze_panes(row, self._key_columns)
        self._book.set_table_page(self._sheet, self._columns, (first_header_row, row - 1))
        row = self._write_values(row)
        self._write_notes(row)
        self._set_widths()

    def _write_title(self) -> int:
        """Write title, unit and warning; return the number of the next row."""
        text = self._book.format
        table = self._table
        wrapped = {"text_wrap": True, "valign": "top"}
        # A text that only flows over empty cells is cut at the edge of a printed page.
        last = self._last_note_column
        title_style = text(bold=True, font_size=13, **wrapped)
        self._write_merged(0, 0, 0, last, table.title, title_style)
        title_lines = _count_lines(table.title, round(_TITLE_SCALE * self._note_width))
        self._sheet.set_row(0, _TITLE_LINE_HEIGHT * title_lines)
        self._write_merged(1, 0, 1, last, table.unit, text(font_color=_GREY, **wrapped))
        self._sheet.set_row(1, _LINE_HEIGHT * _count_lines(table.unit, round(self._note_width)))
        link = text(font_color="#1d5b8c", underline=1, font_size=9)
        self._sheet.write_url(2, 0, self._book.contents_link, link, self._book.back_text)
        if not self._book.warning:
            return 4
        self._sheet.write_string(3, 0, self._book.warning, text(bold=True, font_color="#9b1c1c"))
        return 5

    def _write_headings(self, row: int) -> int:
        """Write the headings of keys and blocks; return the number of the next row."""
        table = self._table
        has_labels = table.column_key is not None
        last = row + 1 if has_labels else row
        facts: dict[str, object] = {"bold": True, "text_wrap": True, "valign": "bottom"}
        edge = {"bottom": 1, "bottom_color": _RULE, "top": 1, "top_color": _RULE}
        left = self._book.format(**facts, **edge)
        right = self._book.format(**facts, **edge, align="right")
        centre = self._book.format(**facts, **edge, align="center")
        for column, key in enumerate(table.row_keys):
            self._write_merged(row, column, last, column, table.headings[key], left)
        width = len(self._column_labels)
        self._set_heading_heights(row, last)
        for block, value_block in enumerate(table.blocks):
            first = self._key_columns + block * width
            if not has_labels:
                self._write_merged(row, first, row, first, value_block.heading, right)
                continue
            heading = value_block.heading
            self._write_merged(row, first, row, first + width - 1, heading, centre)
            for offset, label in enumerate(self._column_labels):
                self._sheet.write_string(last, first + offset, _remove_surrogates(label), right)
        return last + 1

    def _set_heading_heights(self, first_row: int, last_row: int) -> None:
        """Set the heights of the heading rows to the lines of their longest texts.

        LibreOffice does not fit the height of rows to wrapped texts in files of other programs.
        """
        table = self._table
        block_headings = [block.heading for block in table.blocks]
        widths = [*self._list_widths()]
        key_widths, value_widths = widths[: self._key_columns], widths[self._key_columns :]
        key_headings = [table.headings[key] for key in table.row_keys]
        if first_row == last_row:
            headings = [*key_headings, *block_headings]
            self._set_height(last_row, headings, [*key_widths, *value_widths])
            return
        columns = len(self._column_labels)
        block_widths = [
            sum(value_widths[first : first + columns])
            for first in range(0, len(value_widths), columns)
        ]
        self._set_height(first_row, block_headings, block_widths)
        labels = [*self._column_labels] * len(table.blocks)
        self._set_height(last_row, [*key_headings, *labels], [*key_widths, *value_widths])

    def _set_height(self, row: int, headings: Sequence[str], widths: Sequence[float]) -> None:
        """Set the height of a row to the lines of its longest heading."""
        lines = max(
            _count_lines(heading, round(width) - 1)  # bold letters are wider
            for heading, width in zip(headings, widths, strict=True)
        )
        if lines > 1:
            self._sheet.set_row(row, _LINE_HEIGHT * lines)

    def _write_merged(
        self, row: int, column: int, last_row: int, last_column: int, text: str, style: Any
    ) -> None:
        """Write a text into a range of cells, which become one merged cell."""
        if (row, column) == (last_row, last_column):
            self._sheet.write_string(row, column, _remove_surrogates(text), style)
            return
        self._sheet.merge_range(row, column, last_row, last_column, "", style)
        self._sheet.write_string(row, column, _remove_surrogates(text), style)

    def _write_values(self, row: int) -> int:
        """Write a row for each combination of labels; return the next row's number."""
        table = self._table
        blocks = [_move_column_axis_last(block.values, table.column_key) for block in table.blocks]
        flags = (
            None if table.flags is None else _move_column_axis_last(table.flags, table.column_key)
        )
        shown_labels: list[str] = [""] * self._key_columns
        width = len(self._column_labels)
        for group in np.ndindex(blocks[0].shape[:-1]):
            self._write_labels(row, group, shown_labels)
            for block, values in enumerate(blocks):
                first = self._key_columns + block * width
                value_block = table.blocks[block]
                is_flagged = flags is not None and value_block.has_flags
                for offset, value in enumerate(values[group].tolist()):
                    is_weak = bool(is_flagged and flags is not None and flags[group][offset] == 2)
                    shown = _round_margin(value) if value_block.is_margin else value
                    self._write_number(row, first + offset, shown, is_weak=is_weak)
            row += 1
        for column in range(self._columns):
            self._sheet.write_blank(row, column, None, self._book.format(top=1, top_color=_RULE))
        return row

    def _write_labels(self, row: int, group: Sequence[int], shown_labels: list[str]) -> None:
        """Write the labels of a row, in grey if they repeat the label above.

        Every row has all its labels, so that it can be sorted, and read on any page.
        """
        table = self._table
        is_new = False
        for column, (key, position) in enumerate(zip(table.row_keys, group, strict=False)):
            label = table.labels[key][position]
            is_new = is_new or label != shown_labels[column]
            is_last = column == self._key_columns - 1
            shown_labels[column] = label
            style = self._book.format()
            if not is_new and not is_last:
                style = self._book.format(font_color=_LIGHT_GREY)
            self._sheet.write_string(row, column, _remove_surrogates(label), style)

    def _write_number(self, row: int, column: int, value: float, *, is_weak: bool) -> None:
        """Write a number: a dash if suppressed, brackets if unreliable."""
        if not math.isfinite(value):
            style = self._book.format(align="right", font_color=_GREY)
            self._sheet.write_string(row, column, _SUPPRESSED, style)
            return
        number_format = self._table.excel_format()
        if is_weak:
            number_format = f"({number_format});(-{number_format})"
        self._sheet.write_number(row, column, value, self._book.format(num_format=number_format))

    def _write_notes(self, row: int) -> None:
        """Write the notes below the table, each as a merged cell."""
        style = self._book.format(font_size=9, font_color=_GREY, text_wrap=True, valign="top")
        row += 1
        for note in self._book.notes_of(self._table):
            self._write_merged(row, 0, row, self._last_note_column, note, style)
            lines = _count_lines(note, round(_NOTE_SCALE * self._note_width))
            self._sheet.set_row(row, _NOTE_LINE_HEIGHT * lines)
            row += 1

    @property
    def _last_note_column(self) -> int:
        """The last column over which the title and the notes extend."""
        return max(self._columns, _LEAST_NOTE_COLUMNS) - 1

    @property
    def _note_width(self) -> float:
        """The width of the title and the notes, as a number of characters."""
        widths = [*self._list_widths()]
        return sum(widths) + _DEFAULT_WIDTH * max(0, _LEAST_NOTE_COLUMNS - len(widths))

    def _list_widths(self) -> Iterator[int]:
        """Yield the width of each column of the sheet, in characters."""
        table = self._table
        for key in table.row_keys:
            longest = max(map(len, [*table.labels[key], *table.headings[key].split()]))
            yield min(max(longest + 2, _LEAST_WIDTH), _MOST_LABEL_WIDTH)
        for block in table.blocks:
            numbers = block.values[np.isfinite(block.values)]
            scale = 100 if table.number_format.percent else 1
            largest = scale * float(np.abs(numbers).max()) if numbers.size else 0.0
            whole_digits = len(f"{largest:,.0f}")
            digits = whole_digits + max(0, len(table.excel_format()) - 5) + 2
            if table.column_key is None:
                heading_width = max(map(len, block.heading.split()))
                yield max(digits, heading_width + 3, _LEAST_WIDTH + 3)
                continue
            for label in self._column_labels:
                yield max(digits, min(len(label), 16) + 2, _LEAST_WIDTH)

    def _set_widths(self) -> None:
        """Set the width of each column."""
        for column, width in enumerate(self._list_widths()):
            self._sheet.set_column(column, column, width)


def _move_column_axis_last(values: Any, column_key: int | None) -> Any:
    """Move the axis of the column key to the end; add an axis if no key exists."""
    if column_key is None:
        return values[..., None]
    return np.moveaxis(values, column_key, -1)


def _round_margin(value: float) -> float:
    """Return a margin of three significant digits; small margins are unchanged."""
    if not math.isfinite(value) or abs(value) < _LEAST_SHORTENED_MARGIN:
        return value
    return float(f"{value:.3g}")


def _count_lines(text: str, characters: int) -> int:
    """Estimate the number of lines of a text that is wrapped between words."""
    return max(1, len(textwrap.wrap(text, characters)))


def _remove_surrogates(text: str) -> str:
    """Return a text without unpaired surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def make_title(result: ResultTable, catalogue: Catalogue) -> str:
    """Return the title of a result in the catalogue's language."""
    if isinstance(result, AnswerTable):
        return table_title(result.product, catalogue)
    if isinstance(result, StatisticTable):
        return statistic_title(result.statistic, result.domain, catalogue)
    return result.name


def publication_file(options: Options, language: str) -> str:
    """Return the file name of the publication workbook of a language."""
    if language == options.language:
        return f"{PUBLICATION}.xlsx"
    return f"{PUBLICATION}.{language}.xlsx"


class Publications:
    """Writes the publication workbooks of a release, one for each language."""

    def __init__(self, release: Release, directory: Path) -> None:
        self._books: Mapping[str, PublicationWorkbook] = {
            language: PublicationWorkbook(release, directory, language)
            for language in release.options.languages
        }

    # All tables are in one file.
    def add(self, result: ResultTable, stem: str) -> None:  # noqa: ARG002
        """Write a table or a statistic to every workbook."""
        for book in self._books.values():
            book.add(result)

    def close(self) -> None:
        """Save all workbooks."""
        for book in self._books.values():
            book.close()
