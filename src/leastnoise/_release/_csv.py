"""CSV files: what they are called, and texts that no spreadsheet runs."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

_LONGEST_NAME = 60
# What spreadsheets run as a formula, or take for the end of a field, where a text begins with it, full-width signs too; numbers and dates
# are none. ``report.js`` has the same two patterns.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001 - full-width
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,:/ -]*")


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file: texts inert, and what is not a number (NaN) as nothing."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        written = csv.writer(file, lineterminator="\n")
        written.writerow(map(inert_text, header))
        for row in rows:
            known = ("" if value != value else value for value in row)  # noqa: PLR0124 - NaN
            written.writerow([inert_text(value) if isinstance(value, str) else value for value in known])


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
