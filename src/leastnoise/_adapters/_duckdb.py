"""DuckDB relations, and tables of its database files, taken as Arrow."""

from collections.abc import Iterator, Sequence
from typing import Any

from leastnoise._adapters._arrow import to_column
from leastnoise._adapters._column import CHUNK, STRANGE, Column, Source, nothing_but
from leastnoise._adapters._location import DatabaseTable
from leastnoise._check import InputError

_INTEGERS = frozenset(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")) | {"INTEGER", "UINTEGER"}
_AS_THEY_ARE = _INTEGERS | {"BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE"}
_AS_TEXT = {"HUGEINT", "UHUGEINT", "UUID", "JSON"}


def open_database(source: DatabaseTable, path: str) -> Source:
    """Open a table or view of a database file, for reading alone; only its columns' names and types are looked at.

    Args:
        source: which.
        path: of the file.

    Raises:
        InputError: there is no such file or table, or another program writes it.
    """
    import duckdb

    what = f"the table {source.table!r} of DuckDB"
    table = ".".join(map(_quoted, source.parts))
    try:
        return open_relation(duckdb.connect(path, read_only=True).sql(f"SELECT * FROM {table}"), what)  # noqa: S608 - quoted
    except duckdb.Error:
        raise InputError(
            f"{what} cannot be read. Check that {source.connection} holds the path of a DuckDB database that no other program has open "
            "for writing, and that the table is there."
        ) from None


def open_relation(relation: Any, what: str = "the DuckDB relation") -> Source:
    """Open a DuckDB relation; it runs on the connection it belongs to.

    Args:
        relation: the relation.
        what: how messages call it.

    Returns:
        The source.
    """
    import duckdb
    import pyarrow as pa

    names = tuple(str(name) for name in relation.columns)
    types = dict(zip(names, map(str, relation.types), strict=True))
    strange = {name: kind for name, kind in types.items() if not _readable(kind)}

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        wanted = ", ".join(f"{_selected(name, types[name])} AS c{place}" for place, name in enumerate(columns)) or "0 AS c0"
        try:
            for batch in pa.RecordBatchReader.from_stream(relation.project(wanted)):
                for start in range(0, batch.num_rows, CHUNK):
                    part = batch.slice(start, CHUNK)
                    pairs = zip(columns, part.columns, strict=False)
                    yield part.num_rows, [_strange(found) if name in strange else to_column(found) for name, found in pairs]
        except (duckdb.Error, pa.ArrowException):
            # their own text may quote a row
            raise InputError(f"{what} cannot be computed. Run it by itself first, to see its own error.") from None

    return Source(what=what, names=names, total=None, chunks=chunks, strange=strange)


def _readable(kind: str) -> bool:
    if kind.endswith("]"):
        return False
    return kind in _AS_THEY_ARE or kind in _AS_TEXT or kind.startswith(("DECIMAL", "ENUM", "TIMESTAMP"))


def _selected(name: str, kind: str) -> str:
    quoted = _quoted(name)
    if not _readable(kind):
        return f"({quoted} IS NULL)"
    return f"CAST({quoted} AS VARCHAR)" if kind in _AS_TEXT else quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _strange(missing: Any) -> Column:
    return nothing_but(STRANGE, missing.to_numpy(zero_copy_only=False).astype(bool))
