"""Write CSV files whose texts no spreadsheet runs as formulas; name a table's files."""

import csv
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

_MOST_NAME_CHARACTERS = 60  # of a file name; file systems allow 255 bytes
# Texts that a spreadsheet may run as a formula, or read as the end of a field. They begin with such
# a sign, which may be full-width, and may follow blanks or controls that a program ignores. Numbers
# and dates are harmless. ``report.js`` has the same two patterns.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\-@＝＋－＠])")  # noqa: RUF001 - full-width
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:/ -]*")


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file.

    No spreadsheet runs its texts as formulas. Lists of names are joined by " x ", and NaN is left
    empty.
    """
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        minimal_writer, quoting_writer = (
            csv.writer(file, lineterminator="\n", quoting=rule)
            for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        )
        for row in chain([header], rows):
            fields = [_format_field(value) for value in row]
            # Before Python 3.13 the writer leaves a carriage return bare, where readers end the
            # line.
            if any(isinstance(field, str) and "\r" in field for field in fields):
                quoting_writer.writerow(fields)
            else:
                minimal_writer.writerow(fields)


def _format_field(value: object) -> object:
    """Return a value for a CSV file: texts are inert, NaN is empty, lists are joined."""
    if value != value:  # noqa: PLR0124 - NaN
        return ""
    if isinstance(value, (list, tuple)):
        value = " x ".join(value)
    if isinstance(value, str):
        return make_inert(value)
    return value


def make_file_name(table_id: str, name: str, tables: int) -> str:
    """Return the name of a table's files without ending.

    The name has the id of the table, padded so that file names sort, and the table's name.
    """
    words = (
        re.sub(r"[^a-z0-9_]+", "-", name.lower().replace(" x ", "-by-"))
        .strip("-")[:_MOST_NAME_CHARACTERS]
        .rstrip("-")
    )
    number = table_id[0] + table_id[1:].rjust(len(str(tables)), "0")
    return f"{number}-{words}" if words else number


def make_inert(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet could run.

    This prevents CSV injection (OWASP).
    """
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def restore_inert(text: str) -> str:
    """Undo `make_inert`."""
    if text.startswith("'") and _FORMULA.match(text):
        return text[1:]
    return text
