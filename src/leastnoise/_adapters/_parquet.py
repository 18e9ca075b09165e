"""Parquet files, read by PyArrow, which takes the values as they are stored."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from leastnoise._adapters._arrow import strange_types, to_column
from leastnoise._adapters._column import CHUNK, Column, FileKind, Source, not_whole
from leastnoise._check import InputError


def open_parquet(path: Path) -> Source:
    """Open a Parquet file; only its schema and number of rows are read.

    Args:
        path: the file.

    Returns:
        The source.

    Raises:
        InputError: the file is not a Parquet file.
    """
    import pyarrow as pa

    what = f"the Parquet file {str(path)!r}"
    opened = _opened(path, what)
    schema = opened.schema_arrow

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        try:
            for batch in opened.iter_batches(batch_size=CHUNK, columns=list(dict.fromkeys(columns))):
                yield batch.num_rows, [to_column(batch.column(batch.schema.get_field_index(name))) for name in columns]
        except (pa.ArrowException, OSError):
            # their own text may quote the file
            raise InputError(not_whole(what)) from None

    return Source(what=what, names=tuple(schema.names), total=opened.metadata.num_rows, chunks=chunks, strange=strange_types(schema))


def parquet_columns(path: Path) -> list[tuple[str, str]]:
    """The schema of a Parquet file.

    Args:
        path: the file.

    Returns:
        Name and type (in DuckDB's words) of each column, in order.
    """
    import duckdb

    what = f"the Parquet file {str(path)!r}"
    literal = "".join(f"[{character}]" if character in "*?[" else character for character in str(path))
    try:
        with duckdb.connect(":memory:") as connection:
            schema = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [literal]).fetchall()
    except duckdb.Error:
        raise InputError(_not_parquet(what)) from None
    return [(str(row[0]), str(row[1])) for row in schema]


def _opened(path: Path, what: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # the time stamps of old files, which 64 bits of nanoseconds do not hold
        return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError):
        raise InputError(_not_parquet(what)) from None


def _not_parquet(what: str) -> str:
    return f"{what} cannot be read as Parquet. Check that the file is whole and is a Parquet file."


PARQUET_FILES = FileKind(name="Parquet", endings=(".parquet",), open=open_parquet, columns=parquet_columns)
