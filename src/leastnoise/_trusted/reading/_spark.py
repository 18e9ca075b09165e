"""Read data frames of Spark, in the session to which they belong.

The executors count the rows, or the rows are collected as Arrow batches, one partition at a time.
"""

import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot import exp

from leastnoise._trusted.check import InputError, message
from leastnoise._trusted.reading._column import Source, since_1970, to_column
from leastnoise._trusted.reading._engine import (
    INSTANTS,
    UNREAD,
    Engine,
    Run,
    Type,
    engine_field,
    engine_source,
    values_of,
)
from leastnoise._trusted.reading._rules_sql import Expression, sql
from leastnoise._trusted.reading.helpers._locations import NO_SPARK

# Settings that change the meaning of an SQL text.
_OTHERWISE = ("spark.sql.parser.escapedStringLiterals", "spark.sql.parser.quotedRegexColumnNames")
# A decimal with at most this many digits is converted to the nearest double by any algorithm.
_EXACT_DECIMAL_DIGITS = 15


def open_spark(frame: Any) -> Source:
    """Open a Spark data frame, classic or Connect, as a `Source`.

    Only its schema is read. Raises an `InputError` if the schema cannot be read.
    """
    description = "the Spark data frame"
    try:
        schema = [
            (str(field.name), str(field.dataType.simpleString()), field.nullable is False)
            for field in frame.schema.fields
        ]
        spark = frame.sparkSession
        plain = all(str(spark.conf.get(name, "false")).lower() == "false" for name in _OTHERWISE)
    except Exception:  # noqa: BLE001 - the errors of two libraries, whose text may quote a row
        raise InputError(message(NO_SPARK, what=description)) from None
    types = {name: _type(type_name) for name, type_name, _ in schema}
    view = f"leastnoise_{uuid.uuid4().hex}"

    @contextmanager
    def session(
        description: str, batches: Callable[[Any], Any] = lambda rows: rows.toArrow().to_reader()
    ) -> Iterator[Run]:
        """Register the frame as a view, and yield the function that runs a query."""
        try:
            frame.createOrReplaceTempView(view)
            try:
                yield lambda query: batches(spark.sql(query.sql("spark")))
            finally:
                spark.catalog.dropTempView(view)
        except Exception:  # noqa: BLE001 - the errors of two libraries, whose text may quote a row
            raise InputError(message(NO_SPARK, what=description)) from None

    engine = Engine(
        description=description,
        relation=exp.to_table(view),
        values=values_of(types),
        hashed=lambda it: sql("SHA2(CAST(:it AS BINARY), 256)", it=it),
        numbered=lambda it: sql(
            "CAST(CONV(SUBSTRING(SHA2(CAST(:it AS BINARY), 256), 1, 4), 16, 10) AS BIGINT)", it=it
        ),
        most_sets=1,
        session=session,
        is_valid_text=lambda it: sql(
            "IS_VALID_UTF8(:it) AND TRANSLATE(:it, CHR(0), '') = :it", it=it
        ),
        home=spark,
    )
    fields = [
        engine_field(name, type_name, types[name], is_not_null=required)
        for name, type_name, required in schema
    ]
    source = engine_source(engine, types, fields, partial(session, batches=_batches))
    if plain:
        return source
    return replace(source, engine=None)


def _batches(frame: Any) -> Iterator[Any]:
    """Yield all rows of a frame as Arrow batches, one partition at a time.

    If the executors cannot run Python, all partitions are collected together.
    """
    import pyarrow as pa

    def packed(batches: Iterable[Any]) -> Iterator[Any]:
        """Serialise the Arrow batches of one partition."""
        # The function is sent to executors that do not have this package, so it uses nothing else
        # from the package.
        import pyarrow as pa

        for batch in batches:
            sink = pa.BufferOutputStream()
            # A partition can have 16 million rows, and the driver holds three serialised copies.
            with pa.ipc.new_stream(
                sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
            ) as writer:
                writer.write_batch(batch)
            yield pa.record_batch(
                [pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["packed"]
            )

    try:
        with warnings.catch_warnings():
            # Warnings about versions of pandas, which is not used.
            warnings.simplefilter("ignore")
            rows = frame.mapInArrow(packed, "packed binary").toLocalIterator()
        first = next(rows, None)
    except Exception:  # noqa: BLE001
        # Any failure leads here. If the frame itself fails, it will fail again.
        yield from frame.toArrow().to_batches()
        return
    while first is not None:
        yield from pa.ipc.open_stream(first[0])
        first = next(rows, None)


def _type(kind: str) -> Type:
    """Return how columns of a Spark type are queried; `UNREAD` if unsupported.

    The name of a text type with a collation contains the collation, and is not supported.
    """
    if kind in _TYPES:
        return _TYPES[kind]
    if kind.startswith("decimal("):
        few = int(kind.removeprefix("decimal(").split(",")[0]) <= _EXACT_DECIMAL_DIGITS
        if few:
            return Type(
                to_column, "double", value=lambda it: exp.cast(it, "DOUBLE"), arrow="double"
            )
        return Type(to_column, arrow="double")
    if kind.startswith("string"):
        return Type(to_column, selected=lambda it: exp.cast(it, "BINARY"), arrow="string")
    return UNREAD


def _since(column: Expression) -> Expression:
    """Return SQL for the microseconds since 1970 of a Spark time stamp."""
    first = exp.Anonymous(
        this="TO_TIMESTAMP_NTZ", expressions=[exp.Literal.string("1970-01-01 00:00:00")]
    )
    return exp.Anonymous(this="TIMESTAMPDIFF", expressions=[exp.var("MICROSECOND"), first, column])


# The expressions that are sent raise no error for time zones or for bytes that are not text.
_TYPES = {
    **{
        name: Type(to_column, "integer", value=lambda it: exp.cast(it, "BIGINT"), arrow=alias)
        for name, alias in (
            ("tinyint", "int8"),
            ("smallint", "int16"),
            ("int", "int32"),
            ("bigint", "int64"),
        )
    },
    "boolean": Type(to_column, "boolean", arrow="bool"),
    "double": Type(to_column, "double", arrow="double"),
    "float": Type(to_column, arrow="float"),
    "binary": Type(to_column, arrow="binary"),
    "string": Type(
        to_column, "text", lambda it: exp.cast(it, "BINARY"), lambda it: it, arrow="string"
    ),
    "date": Type(
        partial(since_1970, unit="D"),
        "day",
        lambda it: sql("UNIX_DATE(:it)", it=it),
        arrow="date32",
    ),
    "timestamp": Type(
        partial(since_1970, unit="us", zoned=True),
        "instant",
        lambda it: sql("UNIX_MICROS(:it)", it=it),
        arrow=INSTANTS,
    ),
    "timestamp_ntz": Type(partial(since_1970, unit="us"), "stamp", _since, arrow="timestamp[us]"),
}
