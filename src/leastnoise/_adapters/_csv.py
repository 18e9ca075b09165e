"""CSV files, plain or compressed by gzip: a line is a record, by the rule written in `leastnoise._adapters._lines`."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._adapters._ahead import ahead
from leastnoise._adapters._column import STRANGE, Column, FileKind, Source, not_whole
from leastnoise._adapters._fields import WORD, to_texts
from leastnoise._adapters._layout import CSV
from leastnoise._adapters._lines import cut, split, whole_lines
from leastnoise._check import InputError

# The header must end within this many bytes.
_HEADER = 2**20
_DELIMITERS = ",;\t|"
_DAMAGED = (OSError, EOFError, zlib.error)


def open_csv(path: Path, layout: CSV | None = None) -> Source:
    """Open a CSV file; only its header is read.

    Fields may be quoted by ``"``, doubled within.

    Args:
        path: the file, ``.csv`` or ``.tsv``, or one of them with ``.gz``.
        layout: what was said of it; None: UTF-8 with a header, and the delimiter of comma, semicolon, tab and bar that the header holds
            most of.

    Returns:
        The source.

    Raises:
        InputError: the file cannot be opened, or its first line is not a header.
    """
    what = f"the CSV file {str(path)!r}"
    said = layout or CSV(path)
    headed = isinstance(said.header, bool)
    # a file without a header begins with a row, which has no say in anything
    line = _first_line(path, what, said.encoding) if headed else ""
    mark = said.delimiter or max(("\t" if ".tsv" in path.name.lower() else "") + _DELIMITERS, key=line.count)
    delimiter = mark.encode()
    fields = split(line.encode(), delimiter) if isinstance(said.header, bool) else [name.encode() for name in said.header]
    if fields is None or not any(fields) or (headed and any(ord(character) < 32 and character not in {"\t", mark} for character in line)):
        raise InputError(
            f"{what} must begin with a line of column names; its first line is not one. "
            "Check that the file is a CSV file whose lines end with LF or CRLF."
        )
    names = [field.decode() for field in fields]

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        places = [names.index(name) for name in columns]

        def in_columns(block: bytes) -> tuple[int, list[Column]]:
            rows, text, fields = cut(block, delimiter, len(names), places)
            text = np.append(text, np.zeros(WORD, dtype=np.uint8))
            read = [to_texts(text, *field) for field in fields]
            return rows, read if said.utf8 else [_decoded(column, said.encoding) for column in read]

        try:
            with _opener(path)(path, "rb") as opened:
                if headed:
                    opened.readline(_HEADER + 1)
                yield from ahead(in_columns, whole_lines(opened.read))
        except _DAMAGED:
            raise InputError(not_whole(what)) from None

    return Source(what=what, names=tuple(names), total=None, chunks=chunks, strange={})


def count_lines(path: Path, layout: CSV | None = None) -> int:
    """The lines of a CSV file after its header, records or not; private, and for the data's holder alone.

    Args:
        path: the file.
        layout: as for `open_csv`.
    """
    headed = layout is None or isinstance(layout.header, bool)
    with _opener(path)(path, "rb") as opened:
        return sum(block.count(b"\n") for block in whole_lines(opened.read)) - headed


def _decoded(column: Column, encoding: str) -> Column:
    """The same column with its distinct texts decoded; bytes that the encoding does not have are no value."""
    return Column([_text(raw, encoding) for raw in column.data], None, column.index)


def _text(raw: object, encoding: str) -> object:
    try:
        return raw.decode(encoding) if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        return STRANGE


def csv_columns(path: Path, layout: CSV | None = None) -> list[tuple[str, str]]:
    """The header of a CSV file; the types are unknown, since no value is looked at.

    Args:
        path: the file.
        layout: as for `open_csv`.

    Returns:
        Name and ``"unknown"`` of each column, in order.
    """
    return [(name, "unknown") for name in open_csv(path, layout).names]


def _opener(path: Path) -> Callable[..., Any]:
    return gzip.open if path.suffix.lower() == ".gz" else Path.open


def _first_line(path: Path, what: str, encoding: str) -> str:
    try:
        with _opener(path)(path, "rb") as opened:
            line: bytes = opened.readline(_HEADER)
    except _DAMAGED:
        raise InputError(
            f"{what} cannot be read. Check that it is a file you may read and, if it ends in .gz, that it is compressed by gzip."
        ) from None
    if len(line) == _HEADER:
        raise InputError(f"{what} must begin with a line of column names of at most {_HEADER} bytes; its first line is longer.")
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        raise InputError(
            f"{what} must be text in {encoding.upper()}; its first line is not. "
            'Say its encoding, for example [source] encoding = "latin-1" (of `init`: --encoding latin-1), or save it as UTF-8 or Parquet.'
        ) from None


CSV_FILES = FileKind(name="CSV", endings=(".csv", ".csv.gz", ".tsv", ".tsv.gz"), open=open_csv, columns=csv_columns)
