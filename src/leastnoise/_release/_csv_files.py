"""Write CSV files that are safe in spreadsheets; name the files of tables."""

import csv
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

_MOST_NAME_CHARACTERS = 60  # in a file name; file systems allow 255 bytes
# A spreadsheet may run a text as a formula if it begins with one of these characters, or read the
# character as the end of a field. The characters may be full-width. Some programs ignore blanks and
# control characters before it. Numbers and dates are harmless. ``report.js`` has the same two
# patterns. The last four characters are full-width.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\-@＝＋－＠])")  # noqa: RUF001
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:/ -]*")


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a header and rows as a CSV file that is safe in spreadsheets.

    Texts that a spreadsheet would run as formulas are made inert. The names of a list are joined
    by " x ", and NaN becomes an empty field.
    """
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        minimal_writer, quoting_writer = (
            csv.writer(file, lineterminator="\n", quoting=rule)
            for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        for row in chain([header], rows):
            fields = [_format_field(value) for value in row]
            # Before Python 3.13 the writer does not quote a carriage return, and readers take it
            # for the end of the line.
            if any(isinstance(field, str) and "\r" in field for field in fields):
                quoting_writer.writerow(fields)
            else:
                minimal_writer.writerow(fields)


def _format_field(value: object) -> object:
    """Return a CSV field: a harmless text, "" for NaN, or a joined list."""
    if value != value:  # noqa: PLR0124 - NaN
        return ""
    if isinstance(value, (list, tuple)):
        value = " x ".join(value)
    if isinstance(value, str):
        return make_inert(value)
    return value


def make_file_name(table_id: str, name: str, tables: int) -> str:
    """Return the file name of a table, without the file type.

    The name consists of the table's id, padded with zeros for sorting, and the table's name.
    """
    words = (
        re.sub(r"[^a-z0-9_]+", "-", name.lower().replace(" x ", "-by-"))
        .strip("-")[:_MOST_NAME_CHARACTERS]
        .rstrip("-")
    )
    number = table_id[0] + table_id[1:].rjust(len(str(tables)), "0")
    return f"{number}-{words}" if words else number


def make_inert(text: str) -> str:
    """Prefix a text with an apostrophe if a spreadsheet could run it.

    This prevents CSV injection (OWASP).
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def restore_inert(text: str) -> str:
    """Return a text without the apostrophe that `make_inert` added."""
    if text.startswith("'") and _FORMULA.match(text):
        return text[1:]
    return text
