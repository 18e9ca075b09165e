"""Files and DuckDB relations, read by DuckDB.

A line of a CSV file is a record, whatever it holds: DuckDB splits the file into lines, and each line is cut into fields on its own.
DuckDB's own CSV reader is not used for that, because with it one record can change others: a quote that is not closed swallows the lines
after it, and the dialect is guessed from the data. Dropped without a word are lines with another number of fields than the header, with a
field that is quoted wrongly, that are not UTF-8, or that are longer than 2 MB, and empty lines (a null, where there is one column); so a
field cannot hold a line break.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from leastnoise._check import InputError
from leastnoise.adapters._column import CHUNK, Column, Source

# The header must end within this many bytes.
_HEADER = 2**20
_DELIMITERS = ",;\t|"
# A separator that no text file uses, so that DuckDB takes each line as one field.
_NEVER = "\x1f"
_INTEGERS = frozenset(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")) | {"INTEGER", "UINTEGER"}
_PLAIN = _INTEGERS | {"BOOLEAN", "DOUBLE", "VARCHAR"}


def open_csv(path: Path) -> Source:
    """Open a CSV file, plain or compressed by gzip; only its header is read.

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
    names = _fields(line, delimiter)
    if names is None or not any(names) or any(ord(character) < 32 and character != "\t" for character in line):
        raise InputError(f"{what} must begin with a line of column names; its first line is not one. Check that the file is a CSV file.")

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        if path.suffix.lower() == ".gz":
            _check_whole(path, what)
        query = _lines_query(delimiter, len(names), [names.index(name) for name in columns])
        return _fetched(lambda: _connection().execute(query, [_literal_path(path)]), what, len(columns))

    return Source(what=what, names=tuple(names), total=None, chunks=chunks, strange={})


def open_parquet(path: Path) -> Source:
    """Open a Parquet file; only its schema and number of rows are read.

    Args:
        path: the file.

    Returns:
        The source.

    Raises:
        InputError: the file is not a Parquet file.
    """
    what = f"the Parquet file {str(path)!r}"
    connection = _connection()
    try:
        schema = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [_literal_path(path)]).fetchall()
        total = connection.execute("SELECT count(*) FROM read_parquet(?)", [_literal_path(path)]).fetchall()[0][0]
    except duckdb.Error:
        # DuckDB's own text may quote the file
        raise InputError(f"{what} cannot be read as Parquet. Check that the file is whole and is a Parquet file.") from None
    types = {str(row[0]): str(row[1]) for row in schema}

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        query = f"SELECT {_select(columns, types)} FROM read_parquet(?)"  # noqa: S608 - names are quoted
        return _fetched(lambda: connection.execute(query, [_literal_path(path)]), what, len(columns))

    return Source(what=what, names=tuple(str(row[0]) for row in schema), total=total, chunks=chunks, strange=_strange(types))


def open_relation(relation: Any) -> Source:
    """Open a DuckDB relation; it runs on the connection it belongs to.

    Args:
        relation: the relation.

    Returns:
        The source.
    """
    what = "the DuckDB relation"
    names = tuple(str(name) for name in relation.columns)
    types = dict(zip(names, map(str, relation.types), strict=True))

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        # a relation cannot be read in pieces without another library; its columns come as arrays, which take little more than their values
        try:
            arrays = relation.project(_select(columns, types)).fetchnumpy()
        except duckdb.Error:
            # DuckDB's own text may quote a row
            raise InputError(f"{what} cannot be computed. Run it by itself first, to see its own error.") from None
        whole = [_array_column(arrays[f"c{place}"]) for place in range(max(1, len(columns)))]
        for start in range(0, len(whole[0].data), CHUNK):
            yield len(_part(whole[0], start).data), [_part(column, start) for column in whole][: len(columns)]

    return Source(what=what, names=names, total=None, chunks=chunks, strange=_strange(types))


def csv_columns(path: Path) -> list[tuple[str, str]]:
    """The header of a CSV file; the types are unknown, since no value is looked at.

    Args:
        path: the file.

    Returns:
        Name and ``"unknown"`` of each column, in order.
    """
    return [(name, "unknown") for name in open_csv(path).names]


def parquet_columns(path: Path) -> list[tuple[str, str]]:
    """The schema of a Parquet file.

    Args:
        path: the file.

    Returns:
        Name and type (in DuckDB's words) of each column, in order.
    """
    what = f"the Parquet file {str(path)!r}"
    try:
        schema = _connection().execute("DESCRIBE SELECT * FROM read_parquet(?)", [_literal_path(path)]).fetchall()
    except duckdb.Error:
        raise InputError(f"{what} cannot be read as Parquet. Check that the file is whole and is a Parquet file.") from None
    return [(str(row[0]), str(row[1])) for row in schema]


def _connection() -> Any:
    connection = duckdb.connect(":memory:")
    # private rows are not spilled to disk, and nothing is fetched from a network
    for setting in ("temp_directory = ''", "autoinstall_known_extensions = false", "enable_progress_bar = false"):
        connection.execute(f"SET {setting}")
    return connection


def _literal_path(path: Path) -> str:
    """The path with nothing in it that DuckDB would expand."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in str(path))


def _first_line(path: Path, what: str) -> str:
    opener: Callable[..., Any] = gzip.open if path.suffix.lower() == ".gz" else Path.open
    try:
        with opener(path, "rb") as opened:
            start = opened.read(_HEADER)
    except (OSError, EOFError, zlib.error):
        raise InputError(
            f"{what} cannot be read. Check that it is a file you may read and, if it ends in .gz, that it is compressed by gzip."
        ) from None
    lines = io.BytesIO(start.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).readline()
    if len(lines) == _HEADER:
        raise InputError(f"{what} must begin with a line of column names of at most {_HEADER} bytes; its first line is longer.")
    try:
        return lines.decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError:
        raise InputError(f"{what} must be text in UTF-8; its first line is not. Save it as UTF-8, or as Parquet.") from None


def _check_whole(path: Path, what: str) -> None:
    """Read a compressed file to its end and its checksum: before version 2 DuckDB takes one that was cut short for a shorter one."""
    try:
        with gzip.open(path) as opened:
            while opened.read(_HEADER):
                pass
    except (OSError, EOFError, zlib.error):
        raise _not_whole(what) from None


def _not_whole(what: str) -> InputError:
    return InputError(f"{what} cannot be read to its end. Check that it is whole and is not being written.")


def _fields(line: str, delimiter: str) -> list[str] | None:
    """Cut a line as the query does, None if it is not well-formed."""
    query = f"SELECT {_cut('$line', delimiter)}"
    found = duckdb.connect(":memory:").execute(query, {"line": line}).fetchall()[0][0]
    if found is None:
        return None
    return [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in found]


def _cut(line: str, delimiter: str) -> str:
    """SQL for the fields of a line, quotes still on; NULL if it is not well-formed."""
    field = f'"(?:[^"]|"")*"|(?:[^"{delimiter}][^{delimiter}]*)?'
    return (
        f"CASE WHEN NOT contains({line}, '\"') THEN string_split({line}, '{delimiter}') "
        f"WHEN regexp_full_match({line}, '(?:{field})(?:[{delimiter}](?:{field}))*') "
        f"THEN regexp_extract_all('{delimiter}' || {line}, '[{delimiter}]({field})', 1) END"
    )


def _lines_query(delimiter: str, width: int, places: Sequence[int]) -> str:
    picked = (
        "0"
        if not places
        else ", ".join(
            f"CASE WHEN starts_with(f[{place}], '\"') THEN replace(f[{place}][2:-2], '\"\"', '\"') ELSE f[{place}] END"
            for place in (index + 1 for index in places)
        )
    )
    # an empty line is a null where there is one column, and no record where there are more
    text = "coalesce(line, '')" if width == 1 else "line"
    # DuckDB knows strict_mode since 1.2; earlier ones lose lines beside malformed ones, so it is right that they refuse the query
    # none of the parts is anybody's text: a delimiter of four, numbers, and the path goes as a parameter
    return (
        f"SELECT {picked} FROM (SELECT {_cut(text, delimiter)} AS f FROM read_csv(?, columns = {{'line': 'VARCHAR'}}, "  # noqa: S608
        f"auto_detect = false, header = false, skip = 1, delim = '{_NEVER}', quote = '', escape = '', "
        "comment = '', ignore_errors = true, strict_mode = false) "
        f"WHERE {text} IS NOT NULL) WHERE len(f) = {width}"
    )


def _select(columns: Sequence[str], types: dict[str, str]) -> str:
    """SQL for columns in a form that Python can always take: what it has no exact type for comes as its text."""
    return ", ".join(["0 AS c0"] if not columns else []) + ", ".join(
        f"{_readable(name, types[name])} AS c{place}" for place, name in enumerate(columns)
    )


def _readable(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if kind in _PLAIN:
        return quoted
    if kind.startswith("DECIMAL") and not kind.endswith(",0)"):
        return f"rtrim(rtrim(CAST({quoted} AS VARCHAR), '0'), '.')"
    if kind == "FLOAT":
        # the double of the decimal that the float prints as
        return f"CAST(CAST({quoted} AS VARCHAR) AS DOUBLE)"
    if kind == "TIMESTAMP WITH TIME ZONE":
        # in UTC, whatever the session's time zone
        quoted = f"(CASE WHEN isfinite({quoted}) THEN make_timestamp(epoch_us({quoted})) END)"
    if kind.startswith("TIMESTAMP"):
        return f"regexp_replace(CAST({quoted} AS VARCHAR), ' 00:00:00$', '')"
    return f"CAST({quoted} AS VARCHAR)"


def _array_column(array: Any) -> Column:
    if array.dtype.kind not in "biuf":
        return Column(array.tolist())
    if isinstance(array, np.ma.MaskedArray):
        return Column(array.data, np.ma.getmaskarray(array))
    return Column(array)


def _part(column: Column, start: int) -> Column:
    part = slice(start, start + CHUNK)
    return Column(column.data[part], None if column.null is None else column.null[part])


def _strange(types: dict[str, str]) -> dict[str, str]:
    return {name: kind for name, kind in types.items() if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION"))}


def _fetched(start: Any, what: str, width: int) -> Iterator[tuple[int, list[Column]]]:
    try:
        result = start()
        while rows := result.fetchmany(CHUNK):
            yield len(rows), [Column(values) for values in zip(*rows, strict=True)][:width]
    except duckdb.Error:
        # DuckDB's own text may quote a row
        raise _not_whole(what) from None
