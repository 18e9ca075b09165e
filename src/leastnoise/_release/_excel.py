"""Answers as one Excel workbook: a sheet a table with its unit and margins, and a list of the tables before them."""

import datetime as dt
import math
import re
from pathlib import Path
from typing import Any

from leastnoise._release._names import measured_words, unit_words
from leastnoise._release._options import rounding_words
from leastnoise._release._release import Release
from leastnoise._release._tables import Part, Table
from leastnoise._release._texts import texts
from leastnoise._release._words import of_words

NAME = "answers.xlsx"
_LONGEST = 31  # a sheet's name
_FORBIDDEN = re.compile(r"[\[\]:*?/\\'\x00-\x1f]")
_EXACT = 2**53  # whole numbers that the program holds exactly
_HEAD = 4  # lines above the columns


def sheet_name(table_id: str, name: str) -> str:
    """The name of a table's sheet: unlike all others, and as the program wants it."""
    return _FORBIDDEN.sub(" ", f"{table_id} {name}")[:_LONGEST].strip()


class Workbook:
    """The workbook of a release; a label is written as a text whatever it begins with, so that none becomes a formula."""

    def __init__(self, release: Release, directory: Path) -> None:
        import xlsxwriter

        self._release, self._said = release, texts(release.options.language)
        of = of_words(release, self._said)
        self._rule = " ".join([rounding_words(release.options, self._said), self._said.say("beyond", of=of) if of else ""]).strip()
        self._book = xlsxwriter.Workbook(str(directory / NAME), {"constant_memory": True, "tmpdir": str(directory)})
        # Only the day is told, as in the manifest.
        day = dt.datetime.combine(dt.datetime.now(dt.UTC).date(), dt.time())
        self._book.set_properties({"title": release.options.title or self._said.say("book_title"), "created": day})
        self._bold = self._book.add_format({"bold": True})
        self._index = self._book.add_worksheet(self._said.say("book_tables"))
        columns = ("query", "table", "sheet", "answers", "unit", "margin")
        self._line(self._index, 0, [self._say(f"book_{column}") for column in columns], bold=True)
        self._rows = 1
        self._index.set_column(1, 2, 32)

    def add(self, part: Part, stem: str) -> None:  # noqa: ARG002 - all tables are in one file
        """Write a table, or means, quantiles or a distribution function, to a sheet of its own; tables are in the list too."""
        name, columns, words, rule = sheet_name(part.id, part.name), part.columns(), self._say("book_statistic"), ""
        if isinstance(part, Table):
            unit = unit_words(measured_words(part.product, self._said), part.privacy, self._said)
            self._line(self._index, self._rows, (part.id, part.name, name, part.cells, unit, part.typical_margin))
            self._rows += 1
            words, rule = self._say("book_interval", unit=unit), self._rule
            places = [*columns].index("answer") + 1
            columns = dict([*[*columns.items()][:places], ("margin", part.margins.reshape(-1)), *[*columns.items()][places:]])
        sheet = self._book.add_worksheet(name)
        self._line(sheet, 0, (part.name,), bold=True)
        self._line(sheet, 1, (words,))
        if not self._release.private:
            self._line(sheet, 2, (self._said.say("not_private"),), bold=True)
        if rule:
            self._line(sheet, 3, (rule,))
        sheet.freeze_panes(_HEAD + 1, 0)
        self._line(sheet, _HEAD, list(columns), bold=True)
        for number, row in enumerate(zip(*(values.tolist() for values in columns.values()), strict=True), _HEAD + 1):
            self._line(sheet, number, row)

    def close(self) -> None:
        """Write the file."""
        self._book.close()

    def _say(self, key: str, **values: object) -> str:
        return self._said.say(key, percent=self._said.percent(self._release.level), **values)

    def _line(self, sheet: Any, row: int, values: Any, *, bold: bool = False) -> None:
        style = [self._bold] if bold else []
        for column, value in enumerate(values):
            if isinstance(value, str) or (isinstance(value, int) and abs(value) > _EXACT):
                sheet.write_string(row, column, str(value).encode("utf-8", "replace").decode(), *style)
            elif math.isfinite(value):
                sheet.write_number(row, column, value, *style)
