"""CSV files, plain or compressed by gzip: a line is a record, by the rule written in `leastnoise._adapters._lines`."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise._adapters._arrow import to_column
from leastnoise._adapters._column import Column, Source, not_whole
from leastnoise._adapters._lines import cut, split, whole_lines
from leastnoise._check import InputError

# The header must end within this many bytes.
_HEADER = 2**20
_DELIMITERS = ",;\t|"
_DAMAGED = (OSError, EOFError, zlib.error)


def open_csv(path: Path) -> Source:
    """Open a CSV file; only its header is read.

    The delimiter is the one of comma, semicolon, tab and bar that the header holds most of. Fields may be quoted by ``"``, doubled within.

    Args:
        path: the file, ``.csv`` or ``.csv.gz``.

    Returns:
        The source.

    Raises:
        InputError: the file cannot be opened, or its first line is not a header.
    """
    what = f"the CSV file {str(path)!r}"
    line = _first_line(path, what)
    delimiter = max(_DELIMITERS, key=line.count)
    fields = split(line.encode(), delimiter.encode())
    if fields is None or not any(fields) or any(ord(character) < 32 and character != "\t" for character in line):
        raise InputError(
            f"{what} must begin with a line of column names; its first line is not one. "
            "Check that the file is a CSV file whose lines end with LF or CRLF."
        )
    names = [field.decode() for field in fields]

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        import pyarrow as pa

        places = [names.index(name) for name in columns]
        try:
            with _opener(path)(path, "rb") as opened:
                opened.readline(_HEADER + 1)
                for block in whole_lines(opened.read):
                    rows, fields = cut(block, delimiter.encode(), len(names), places)
                    buffers = [[None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(text)] for starts, text in fields]
                    yield rows, [to_column(pa.Array.from_buffers(pa.binary(), rows, parts)) for parts in buffers]
        except _DAMAGED:
            raise InputError(not_whole(what)) from None

    return Source(what=what, names=tuple(names), total=None, chunks=chunks, strange={})


def csv_columns(path: Path) -> list[tuple[str, str]]:
    """The header of a CSV file; the types are unknown, since no value is looked at.

    Args:
        path: the file.

    Returns:
        Name and ``"unknown"`` of each column, in order.
    """
    return [(name, "unknown") for name in open_csv(path).names]


def _opener(path: Path) -> Callable[..., Any]:
    return gzip.open if path.suffix.lower() == ".gz" else Path.open


def _first_line(path: Path, what: str) -> str:
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
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{what} must be text in UTF-8; its first line is not. Save it as UTF-8, or as Parquet.") from None
