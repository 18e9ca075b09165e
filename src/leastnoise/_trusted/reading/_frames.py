"""Read tables of other libraries.

Data frames of pandas, Polars, PyArrow and Ibis are read through narwhals, which imports none of
them; relations of DuckDB are read by DuckDB.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from leastnoise._trusted.check import InputError, message
from leastnoise._trusted.domain import Holds
from leastnoise._trusted.reading._column import (
    CHUNK,
    UNSUPPORTED,
    Chunk,
    Chunks,
    Column,
    SchemaField,
    Source,
    arrow_fields,
    by_columns,
    chunk_batches,
    to_column,
    unsupported_column,
)
from leastnoise._trusted.reading._column_types import arrow_value_types, database_value_types
from leastnoise._trusted.reading._locations import (
    NAMES_TWICE,
    NO_DUCKDB,
    NO_FRAME,
    STORED,
    DatabaseTable,
)
from leastnoise._trusted.reading._values import unless_it_raises

# datetime is exact: a duration and a time of day have no string form in the rule
_HELD = (
    nw.Boolean,
    nw.String,
    nw.Categorical,
    nw.Enum,
    nw.Object,
    nw.Date,
    nw.Datetime,
    nw.Binary,
    nw.Unknown,
)
# The Arrow types of data types of narwhals; types that are not listed have none.
_ARROW = {
    nw.Boolean: "bool",
    nw.String: "string",
    nw.Categorical: "string",
    nw.Enum: "string",
    nw.Binary: "binary",
    nw.Date: "date32",
    nw.Float32: "float",
    nw.Float64: "double",
    **{
        getattr(nw, f"{sign}Int{bits}"): f"{sign}int{bits}".lower()
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
}


def open_frame(frame: Any) -> Source | None:
    """Return a data frame as a source; only its schema is read.

    It may be eager or lazy, of pandas, Polars, PyArrow, Ibis or narwhals.

    None if narwhals does not support the frame. Raises an `InputError` if a column name occurs
    twice.
    """
    try:
        native = nw.from_native(frame, pass_through=False)
    except TypeError:
        return None
    except Exception:  # noqa: BLE001 - every library has its own error for it
        raise InputError(NAMES_TWICE) from None
    description = f"the {native.implementation.name.lower()} data frame"
    if native.implementation.is_pyarrow():
        return _open_table(native.to_native(), description)
    lazy = isinstance(native, nw.LazyFrame)
    try:
        # pandas allows names that are not text; no domain can name them
        all_names: Iterable[Any]
        if lazy:
            all_names = native.collect_schema()
        else:
            all_names = native.columns
        names = tuple(name for name in all_names if isinstance(name, str))
        if lazy:
            kinds = native.collect_schema()
        else:
            kinds = {name: _kind(native[name]) for name in names}
    except Exception:  # noqa: BLE001 - a lazy query that cannot run, whose error may quote a row
        raise InputError(message(NO_FRAME, what=description)) from None

    def chunks(columns: list[str]) -> Chunks[Column]:
        try:
            selected = native.select(columns or native.columns)
            eager = selected.collect() if lazy else selected
        except Exception:  # noqa: BLE001 - a lazy query can fail in many ways, and its text may quote a row
            raise InputError(message(NO_FRAME, what=description)) from None
        for start in range(0, len(eager), CHUNK):
            part = eager[start : start + CHUNK]
            yield Chunk(len(part), [_column(part[name]) for name in columns])

    total = None
    dtypes = {}
    if not lazy:
        total = len(native)
        dtypes = {name: _native_dtype(native[name]) for name in names}
    holds = _frame_value_types(kinds)
    of_nulls = [name for name, dtype in dtypes.items() if str(dtype) in _NULL_TYPES]
    holds |= dict.fromkeys(of_nulls, "nulls")
    if native.implementation.is_pandas_like():
        objects = {name for name, dtype in dtypes.items() if dtype == np.dtype(object)}
        holds = {name: column_type for name, column_type in holds.items() if name not in objects}
        periods = [name for name, dtype in dtypes.items() if type(dtype).__name__ == "PeriodDtype"]
        holds |= dict.fromkeys(periods, "time stamps")
    return Source(
        what=description,
        fields=tuple(_frame_field(name, kinds[name], dtypes.get(name)) for name in names),
        total=total,
        encoded=by_columns(chunks),
        holds=holds,
    )


@unless_it_raises(None)
def _native_dtype(series: Any) -> Any:
    """Return the type of a column in its own library; None if the library has none."""
    return getattr(series.to_native(), "dtype", None)


def _frame_field(name: str, kind: Any, native_dtype: Any) -> SchemaField:
    """Return the schema of a data frame's column.

    It uses the type names of narwhals and of the frame's library.
    """
    import pyarrow as pa

    zone = None
    arrow_type = None
    if isinstance(native_dtype, np.dtype) and native_dtype == np.dtype(object):
        # Objects have no declared type. narwhals infers one from the first values, and a type that
        # depends on values would show them.
        pass
    elif isinstance(kind, nw.Datetime):
        zone = kind.time_zone
        arrow_type = pa.timestamp(kind.time_unit, zone)
    elif isinstance(kind, nw.Decimal):
        arrow_type = pa.decimal128(38, 10)
    elif getattr(native_dtype, "tz", None) is not None:
        # of pandas, which narwhals does not name in every version
        zone = str(native_dtype.tz)
        arrow_type = pa.timestamp("us", "UTC")
    elif alias := next((alias for known, alias in _ARROW.items() if isinstance(kind, known)), None):
        arrow_type = pa.type_for_alias(alias)
    is_held = kind.is_numeric() or isinstance(kind, _HELD)
    is_refused = _is_unreadable(native_dtype)
    return SchemaField(
        name=name,
        type=arrow_type,
        type_name=str(native_dtype if is_refused else kind),
        readable=is_held and not is_refused,
        # numpy's whole numbers and Booleans in pandas have no null
        required=isinstance(native_dtype, np.dtype) and native_dtype.kind in "biu",
        zone=zone,
    )


def _frame_value_types(kinds: Mapping[str, Any]) -> dict[str, Holds]:
    """Return the value types of columns by their data types, where known."""
    types: dict[str, Holds] = {}
    for name, kind in kinds.items():
        if kind.is_numeric():
            types[name] = "numbers"
        elif isinstance(kind, nw.Boolean):
            types[name] = "Booleans"
        elif isinstance(kind, nw.String):
            types[name] = "texts"
        elif isinstance(kind, nw.Datetime):
            types[name] = "time stamps"
        elif isinstance(kind, nw.Date):
            types[name] = "dates"
    return types


def _is_unreadable(kind: Any) -> bool:
    """Return whether no value of a pandas type can be read.

    Such types are complex numbers, durations and shapes.
    """
    name = type(kind).__name__
    if name == "CategoricalDtype":
        return kind.categories is not None and _is_unreadable(kind.categories.dtype)
    if isinstance(kind, np.dtype):
        return kind.kind in "cmV"
    return name == "GeometryDtype"


def _open_table(table: Any, description: str) -> Source:
    """Return a PyArrow table as a source, without copies of its arrays."""

    def chunks(columns: list[str]) -> Chunks[Column]:
        yield from chunk_batches(table.to_batches(), [(name, to_column) for name in columns])

    return Source(
        what=description,
        fields=arrow_fields(table.schema),
        total=table.num_rows,
        encoded=by_columns(chunks),
        holds=arrow_value_types(table.schema),
    )


@unless_it_raises(nw.Unknown())
def _kind(series: Any) -> Any:
    """Return the type of a column in the terms of narwhals.

    The type is `Unknown` if narwhals has none, such as for decimals of negative scale.
    """
    return series.dtype


def _column(series: Any) -> Column:
    """Return a series as a column, without ever failing on a value."""
    if _has_intervals(getattr(series.to_native(), "dtype", None)):
        return _of_pandas(series.to_native())
    try:
        # Python objects keep their own types: 1, True and 1.0 are different to the rule
        if not isinstance(_kind(series), nw.Object) and getattr(
            series.to_native(), "dtype", None
        ) != np.dtype(object):
            array = series.to_arrow()
            return to_column(array.combine_chunks() if hasattr(array, "combine_chunks") else array)
    except Exception:  # noqa: BLE001, S110 - no Arrow type for it, or a value that has no Arrow form; take Python's values
        pass
    try:
        return Column(series.to_list())
    except Exception:  # noqa: BLE001 - some value has no Python form; take the others one by one
        return Column(
            [unless_it_raises(UNSUPPORTED)(series.item)(row) for row in range(len(series))]
        )


def _has_intervals(kind: Any) -> bool:
    """Return whether a pandas type has periods or intervals.

    A categorical type with such categories has them too.
    """
    if type(kind).__name__ == "CategoricalDtype":
        return _has_intervals(kind.categories.dtype)
    return type(kind).__name__ in {"PeriodDtype", "IntervalDtype"}


def _of_pandas(values: Any) -> Column:
    """Return pandas periods as their starts, and intervals as their texts.

    Intervals are read one by one: pandas treats -0.0 and 0.0 as equal, so one row would get the
    text of another.
    """
    if type(values.dtype).__name__ == "IntervalDtype":
        return Column([_form(value) for value in values])
    codes, different = values.factorize()
    column = Column([_form(value) for value in different])
    return Column(column.data, None, codes.astype(np.int64))


def _form(value: Any) -> object:
    """Return a pandas value in plain form; `UNSUPPORTED` without one."""
    name = type(value).__name__
    if name == "Period":
        return unless_it_raises(UNSUPPORTED)(lambda: value.start_time)()
    return str(value) if name == "Interval" else value


_AS_TEXT = {"HUGEINT", "UHUGEINT", "UUID", "JSON"}
_READ = {
    *_AS_TEXT,
    *(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")),
    "INTEGER",
    "UINTEGER",
}
_NULL_TYPES = ("Null", "null[pyarrow]")  # of Polars, and of pandas over Arrow
_READ |= {"BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", '"NULL"'}
_PARAMETRIC = ("DECIMAL", "ENUM", "TIMESTAMP")
# The Arrow types that DuckDB sends, by its own type names.
_OF_DUCKDB = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "HUGEINT": "int64",
    "UHUGEINT": "uint64",
    "BOOLEAN": "bool",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "ENUM": "string",
    "UUID": "string",
    "JSON": "string",
    "BLOB": "binary",
    "DATE": "date32",
    '"NULL"': "null",
}


def open_database(source: DatabaseTable, path: str) -> Source:
    """Return a table of a database file as a source, opened read-only.

    Only its columns' names and types are read.
    """
    import duckdb

    description = message(STORED, table=source.table, engine="DuckDB")
    table = ".".join(map(_quoted, source.parts))
    try:
        connection = duckdb.connect(path, read_only=True)
        described = connection.execute(f"DESCRIBE {table}").fetchall()
        required = {str(name) for name, _, nullable, *_ in described if nullable == "NO"}
        query = f"SELECT * FROM {table}"  # noqa: S608 - the name is quoted
        return open_relation(connection.sql(query), description, required)
    except duckdb.Error:
        raise InputError(
            message(NO_DUCKDB, what=description, connection=source.connection)
        ) from None


def open_relation(
    relation: Any, description: str = "the DuckDB relation", required: Collection[str] = ()
) -> Source:
    """Return a source that reads a DuckDB relation through the relation's connection.

    Args:
        relation: the relation.
        description: its name in messages.
        required: the columns that are declared NOT NULL.
    """
    import duckdb
    import pyarrow as pa

    names = tuple(str(name) for name in relation.columns)
    types = dict(zip(names, map(str, relation.types), strict=True))
    unread = {
        name: kind
        for name, kind in types.items()
        if kind.endswith("]") or not (kind in _READ or kind.startswith(_PARAMETRIC))
    }

    def sent(name: str) -> str:
        quoted = _quoted(name)
        if name in unread:
            return f"({quoted} IS NULL)"
        if types[name] in _AS_TEXT:
            return f"CAST({quoted} AS VARCHAR)"
        return quoted

    def chunks(columns: list[str]) -> Chunks[Column]:
        selected = (
            ", ".join(f"{sent(name)} AS c{number}" for number, name in enumerate(columns))
            or "0 AS c0"
        )
        try:
            batches = pa.RecordBatchReader.from_stream(relation.project(selected))
            yield from chunk_batches(
                batches,
                [
                    (number, unsupported_column if name in unread else to_column)
                    for number, name in enumerate(columns)
                ],
            )
        except (duckdb.Error, pa.ArrowException):
            # their own text may quote a row
            raise InputError(
                f"{description} cannot be computed. Run it separately first, to see its own error."
            ) from None

    fields = tuple(_duckdb_field(name, types, unread, required) for name in names)
    return Source(
        what=description,
        fields=fields,
        total=None,
        encoded=by_columns(chunks),
        holds=database_value_types(types.items()),
    )


def _duckdb_field(
    name: str, types: Mapping[str, str], unread: Collection[str], required: Collection[str]
) -> SchemaField:
    """Return the schema of a DuckDB column.

    Time stamps with a zone are converted to the zone of the session.
    """
    import pyarrow as pa

    type_name = types[name]
    zoned = type_name == "TIMESTAMP WITH TIME ZONE"
    family = type_name.partition("(")[0]
    if name in unread:
        arrow_type = None
    elif family.startswith("TIMESTAMP"):
        arrow_type = pa.timestamp("us", "UTC" if zoned else None)
    elif family == "DECIMAL":
        precision, scale = map(int, type_name.removeprefix("DECIMAL(").rstrip(")").split(","))
        arrow_type = pa.decimal128(precision, scale)
    else:
        arrow_type = pa.type_for_alias(_OF_DUCKDB[family])
    return SchemaField(
        name=name,
        type=arrow_type,
        type_name=type_name,
        readable=name not in unread,
        required=name in required,
        zone="" if zoned else None,
    )


def _quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
