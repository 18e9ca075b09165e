"""CSV files: what they are called, and texts that no spreadsheet runs."""

import csv
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

_LONGEST_NAME = 60
# What spreadsheets run as a formula, or take for the end of a field, where a text begins with it, full-width signs too, and blanks or
# controls before it that a program may leave out; numbers and dates are none. ``report.js`` has the same two patterns.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\-@＝＋－＠])")  # noqa: RUF001 - full-width
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:/ -]*")


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file: texts inert, and what is not a number (NaN) as nothing."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        plain, quoted = (csv.writer(file, lineterminator="\n", quoting=rule) for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        for row in chain([header], rows):
            known = ("" if value != value else value for value in row)  # noqa: PLR0124 - NaN
            fields = [inert_text(value) if isinstance(value, str) else value for value in known]
            # Before Python 3.13 the writer leaves a carriage return bare, where readers end the line.
            (quoted if any(isinstance(field, str) and "\r" in field for field in fields) else plain).writerow(fields)


def file_name(table_id: str, name: str, tables: int) -> str:
    """A file name that says what is in the file, in the order of the tables, without an ending."""
    words = re.sub(r"[^a-z0-9_]+", "-", name.lower().replace(" x ", "-by-")).strip("-")[:_LONGEST_NAME].rstrip("-")
    number = table_id[0] + table_id[1:].rjust(len(str(tables)), "0")
    return f"{number}-{words}" if words else number


def inert_text(text: str) -> str:
    """A text for a CSV file that no spreadsheet runs: with an apostrophe before it where it could be a formula (OWASP, CSV injection)."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def text_of_inert(text: str) -> str:
    """The text that `inert_text` made this of."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
