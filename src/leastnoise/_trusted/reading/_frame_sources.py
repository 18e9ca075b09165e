"""Read the data frames and tables of other libraries.

Data frames of pandas, Polars, PyArrow and Ibis are read through narwhals, which imports none of
these libraries. Relations of DuckDB are read by DuckDB.
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
from leastnoise._trusted.reading._value_rules import unless_it_raises
from leastnoise._trusted.reading.helpers._column_types import (
    arrow_value_types,
    database_value_types,
)
from leastnoise._trusted.reading.helpers._locations import (
    NAMES_TWICE,
    NO_DUCKDB,
    NO_FRAME,
    STORED,
    DatabaseTable,
)

# Without `Duration` and `Time`, because durations and times of day have no string form.
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
    """Open a data frame as a `Source`; None if its library is not supported.

    Only the schema is read. The frame may be eager or lazy, of pandas, Polars, PyArrow, Ibis or
    narwhals.

    The result is None if narwhals does not support the frame. Raises an `InputError` if a column
    name occurs twice.
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
        # Pandas allows column names that are not text, which no domain can refer to.
        all_names: Iterable[Any]
        if lazy:
            all_names = native.collect_schema()
        else:
            all_names = native.columns
        names = tuple(name for name in all_names if isinstance(name, str))
        if lazy:
            kinds = native.collect_schema()
        else:
            kinds = {name: _narwhals_dtype(native[name]) for name in names}
    except Exception:  # noqa: BLE001 - a lazy query may fail, and its error may quote a row
        raise InputError(message(NO_FRAME, what=description)) from None

    def chunks(columns: list[str]) -> Chunks[Column]:
        """Collect the columns, and yield them chunk by chunk."""
        try:
            selected = native.select(columns or native.columns)
            eager = selected.collect() if lazy else selected
        except Exception:  # noqa: BLE001
            # A lazy query can fail in many ways, and its text may quote a row.
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
        description=description,
        fields=tuple(_frame_field(name, kinds[name], dtypes.get(name)) for name in names),
        total=total,
        encoded=by_columns(chunks),
        holds=holds,
    )


@unless_it_raises(None)
def _native_dtype(series: Any) -> Any:
    """Return a series' data type in its own library, or None."""
    return getattr(series.to_native(), "dtype", None)


def _frame_field(name: str, kind: Any, native_dtype: Any) -> SchemaField:
    """Return the schema entry of a data frame's column.

    The entry uses the type names of narwhals and of the frame's library.
    """
    import pyarrow as pa

    zone = None
    arrow_type = None
    if isinstance(native_dtype, np.dtype) and native_dtype == np.dtype(object):
        # Object columns have no declared type. narwhals infers one from the first values, so its
        # type would disclose something of them.
        pass
    elif isinstance(kind, nw.Datetime):
        zone = kind.time_zone
        arrow_type = pa.timestamp(kind.time_unit, zone)
    elif isinstance(kind, nw.Decimal):
        arrow_type = pa.decimal128(38, 10)
    elif getattr(native_dtype, "tz", None) is not None:
        # Not every version of narwhals has a name for this type of pandas.
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
        # In pandas, whole numbers and Booleans of NumPy have no null.
        required=isinstance(native_dtype, np.dtype) and native_dtype.kind in "biu",
        zone=zone,
    )


def _frame_value_types(kinds: Mapping[str, Any]) -> dict[str, Holds]:
    """Return the kind of the values (`Holds`) of each typed column of a frame."""
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
    """Return whether values of a pandas type can never be encoded.

    These types are complex numbers, durations and geometric shapes.
    """
    name = type(kind).__name__
    if name == "CategoricalDtype":
        return kind.categories is not None and _is_unreadable(kind.categories.dtype)
    if isinstance(kind, np.dtype):
        return kind.kind in "cmV"
    return name == "GeometryDtype"


def _open_table(table: Any, description: str) -> Source:
    """Open a PyArrow table as a `Source`; its arrays are not copied."""

    def chunks(columns: list[str]) -> Chunks[Column]:
        """Yield the columns of each batch of the table."""
        yield from chunk_batches(table.to_batches(), [(name, to_column) for name in columns])

    return Source(
        description=description,
        fields=arrow_fields(table.schema),
        total=table.num_rows,
        encoded=by_columns(chunks),
        holds=arrow_value_types(table.schema),
    )


@unless_it_raises(nw.Unknown())
def _narwhals_dtype(series: Any) -> Any:
    """Return the narwhals data type of a series.

    The type is `Unknown` if narwhals has no such type, for example for decimals of negative scale.
    """
    return series.dtype


def _column(series: Any) -> Column:
    """Convert a series to a `Column`; no value can make this fail."""
    if _has_intervals(getattr(series.to_native(), "dtype", None)):
        return _pandas_values_column(series.to_native())
    try:
        # Python objects keep their own types, because rules distinguish 1, True and 1.0.
        if not isinstance(_narwhals_dtype(series), nw.Object) and getattr(
            series.to_native(), "dtype", None
        ) != np.dtype(object):
            array = series.to_arrow()
            return to_column(array.combine_chunks() if hasattr(array, "combine_chunks") else array)
    except Exception:  # noqa: BLE001, S110
        # No Arrow type for it, or a value that has no Arrow form; take Python's values.
        pass
    try:
        return Column(series.to_list())
    except Exception:  # noqa: BLE001 - some value has no Python form; take the others one by one
        return Column(
            [unless_it_raises(UNSUPPORTED)(series.item)(row) for row in range(len(series))]
        )


def _has_intervals(kind: Any) -> bool:
    """Return whether a pandas type is for periods or intervals.

    The result is also True for a categorical type whose categories are periods or intervals.
    """
    if type(kind).__name__ == "CategoricalDtype":
        return _has_intervals(kind.categories.dtype)
    return type(kind).__name__ in {"PeriodDtype", "IntervalDtype"}


def _pandas_values_column(values: Any) -> Column:
    """Convert pandas periods to their start times, and intervals to texts.

    Intervals are read one by one. pandas treats -0.0 and 0.0 as equal, so otherwise one row could
    get the text of another row.
    """
    if type(values.dtype).__name__ == "IntervalDtype":
        return Column([_plain_value(value) for value in values])
    codes, different = values.factorize()
    column = Column([_plain_value(value) for value in different])
    return Column(column.data, None, codes.astype(np.int64))


def _plain_value(value: Any) -> object:
    """Convert a pandas value to a plain Python value, or to `UNSUPPORTED`."""
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
_NULL_TYPES = ("Null", "null[pyarrow]")  # the names in Polars, and in pandas with Arrow arrays
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
    """Open a table of a DuckDB file, read-only, as a `Source`.

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
    relation: Any, description: str = "the DuckDB relation", not_null_columns: Collection[str] = ()
) -> Source:
    """Open a DuckDB relation as a `Source`, read by the relation's connection.

    Args:
        relation: the relation.
        description: its name in messages.
        not_null_columns: the columns that are declared NOT NULL.
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
        """Return the SQL expression that fetches a column."""
        quoted = _quoted(name)
        if name in unread:
            return f"({quoted} IS NULL)"
        if types[name] in _AS_TEXT:
            return f"CAST({quoted} AS VARCHAR)"
        return quoted

    def chunks(columns: list[str]) -> Chunks[Column]:
        """Query the columns, and yield them chunk by chunk."""
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
            # Their own text may quote a row.
            raise InputError(
                f"{description} cannot be computed. Run it separately first, to see its own error."
            ) from None

    fields = tuple(_duckdb_field(name, types, unread, not_null_columns) for name in names)
    return Source(
        description=description,
        fields=fields,
        total=None,
        encoded=by_columns(chunks),
        holds=database_value_types(types.items()),
    )


def _duckdb_field(
    name: str,
    types: Mapping[str, str],
    unread_columns: Collection[str],
    not_null_columns: Collection[str],
) -> SchemaField:
    """Return the schema entry of a DuckDB column.

    Time stamps with a zone are converted to the zone of the session.
    """
    import pyarrow as pa

    type_name = types[name]
    zoned = type_name == "TIMESTAMP WITH TIME ZONE"
    family = type_name.partition("(")[0]
    if name in unread_columns:
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
        readable=name not in unread_columns,
        required=name in not_null_columns,
        zone="" if zoned else None,
    )


def _quoted(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
