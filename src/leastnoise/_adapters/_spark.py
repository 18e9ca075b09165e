"""Data frames of Spark, on the session they belong to: counted by its executors, or collected over Arrow, a partition at a time."""

import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from leastnoise._adapters._arrow import in_chunks, strange, to_column
from leastnoise._adapters._column import Column, Source
from leastnoise._adapters._engine import Engine, Place, Run, Session
from leastnoise._adapters._sql import Expression, Held, Value, whole, without_nul
from leastnoise._check import InputError

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_SAME = _WHOLE | {"boolean", "double", "float", "binary"}
# Settings under which the text of a query means something else.
_OTHERWISE = ("spark.sql.parser.escapedStringLiterals", "spark.sql.parser.quotedRegexColumnNames")
# A decimal of so many digits is the double nearest to it, however it is computed.
_DIGITS = 15


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Place(Place):
    """The session of a frame, and the view of it that there is for as long as one of ours is entered."""

    spark: Any
    session: Session
    relation: Expression

    def beside(self, other: Place) -> tuple[Session, Expression] | None:
        """Any other frame of the session."""
        if not isinstance(other, _Place) or other.spark is not self.spark:
            return None
        theirs = other.session

        @contextmanager
        def together() -> Iterator[Run]:
            with theirs(), self.session() as run:
                yield run

        return together, other.relation


def open_spark(frame: Any) -> Source:
    """Open a data frame; only its schema is looked at.

    Args:
        frame: a ``pyspark.sql.DataFrame``, classic or of Spark Connect.

    Raises:
        InputError: the schema cannot be found out.
    """
    what = "the Spark data frame"
    try:
        types = [(str(field.name), str(field.dataType.simpleString())) for field in frame.schema.fields]
        spark = frame.sparkSession
        plain = all(str(spark.conf.get(name, "false")).lower() == "false" for name in _OTHERWISE)
    except Exception:  # noqa: BLE001 - the errors of two libraries, whose text may quote a row
        raise InputError(_not_computed(what)) from None
    kinds, view = dict(types), f"leastnoise_{uuid.uuid4().hex}"
    relation = exp.to_table(view)

    @contextmanager
    def frames() -> Iterator[Callable[[exp.Select], Any]]:
        try:
            frame.createOrReplaceTempView(view)
            try:
                yield lambda query: spark.sql(query.sql("spark"))
            finally:
                spark.catalog.dropTempView(view)
        except Exception:  # noqa: BLE001 - the errors of two libraries, whose text may quote a row
            raise InputError(_not_computed(what)) from None

    @contextmanager
    def session() -> Iterator[Run]:
        with frames() as found:
            yield lambda query: found(query).toArrow().to_reader()

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        chosen = [exp.alias_(_selected(_column(name), kinds[name]), f"c{place}") for place, name in enumerate(columns)]
        query = exp.select(*chosen or [exp.alias_(whole(0), "c0")]).from_(relation.copy())
        with frames() as found:
            reads = [(place, partial(_read, kind=kinds[name])) for place, name in enumerate(columns)]
            yield from in_chunks(_batches(found(query)), reads)

    values = {name: _value(_column(name), kind) for name, kind in types}
    engine = Engine(
        relation=relation,
        values={name: value for name, value in values.items() if value is not None},
        hashed=_hashed,
        most_sets=1,
        session=session,
        sound=_sound,
        place=_Place(spark, session, relation),
    )
    unread = {name: kind for name, kind in types if _selected(_column(name), kind) == _missing(_column(name))}
    return Source(
        what=what, names=tuple(name for name, _ in types), total=None, chunks=chunks, strange=unread, engine=engine if plain else None
    )


def _batches(found: Any) -> Iterator[Any]:
    """All rows, of which the driver holds those of one partition; at once where the executors cannot run Python."""
    import pyarrow as pa

    def packed(batches: Iterable[Any]) -> Iterator[Any]:
        # sent to the executors as it stands here, as they do not have this package
        import pyarrow as pa

        for batch in batches:
            sink = pa.BufferOutputStream()
            # a partition can be 16 million rows, which the driver holds packed three times over
            with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
                writer.write_batch(batch)
            yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["packed"])

    try:
        with warnings.catch_warnings():
            # about versions of pandas, of which nothing is used
            warnings.simplefilter("ignore")
            rows = found.mapInArrow(packed, "packed binary").toLocalIterator()
        first = next(rows, None)
    except Exception:  # noqa: BLE001 - whatever keeps them from it; a frame that fails will do so again
        yield from found.toArrow().to_batches()
        return
    while first is not None:
        yield from pa.ipc.open_stream(first[0])
        first = next(rows, None)


def _not_computed(what: str) -> str:
    return f"{what} cannot be computed. Run an action on it by itself first, such as count(), to see its own error."


def _column(name: str) -> Expression:
    return exp.column(exp.to_identifier(name, quoted=True))


def _missing(column: Expression) -> Expression:
    return exp.Is(this=column, expression=exp.Null())


def _digits(kind: str) -> int | None:
    """The digits of a decimal type, None of another."""
    return int(kind.removeprefix("decimal(").split(",")[0]) if kind.startswith("decimal(") else None


def _value(column: Expression, kind: str) -> Value | None:
    """What an executor can encode. Text with a collation of its own has another type."""
    digits = _digits(kind)
    if kind in _WHOLE:
        return Value("integer", exp.cast(column, "BIGINT"))
    if kind == "double" or (digits is not None and digits <= _DIGITS):
        return Value("double", exp.cast(column, "DOUBLE"))
    held: dict[str, Held] = {"boolean": "boolean", "string": "text", "date": "day", "timestamp": "instant", "timestamp_ntz": "stamp"}
    times = kind in {"date", "timestamp", "timestamp_ntz"}
    return Value(held[kind], _selected(column, kind) if times else column) if kind in held else None


def _selected(column: Expression, kind: str) -> Expression:
    """What is collected of a column: what neither a time zone nor bytes that are no text can make fail."""
    if kind in _SAME or _digits(kind) is not None:
        return column
    if kind.startswith("string"):
        return exp.cast(column, "BINARY")
    if kind == "date":
        return exp.func("unix_date", column)
    if kind == "timestamp":
        return exp.func("unix_micros", column)
    if kind == "timestamp_ntz":
        first = exp.Anonymous(this="TO_TIMESTAMP_NTZ", expressions=[exp.Literal.string("1970-01-01 00:00:00")])
        return exp.Anonymous(this="TIMESTAMPDIFF", expressions=[exp.var("MICROSECOND"), first, column])
    return _missing(column)


def _read(array: Any, kind: str) -> Column:
    import pyarrow as pa

    if kind == "date":
        return to_column(array.cast(pa.int32()).view(pa.date32()))
    if kind.startswith("timestamp"):
        return to_column(array.cast(pa.int64()).view(pa.timestamp("us", "UTC" if kind == "timestamp" else None)))
    if kind in _SAME or kind.startswith(("string", "decimal")):
        return to_column(array)
    return strange(array)


def _sound(it: Expression) -> Expression:
    return exp.and_(exp.Anonymous(this="IS_VALID_UTF8", expressions=[it.copy()]), without_nul(it))


def _hashed(it: Expression) -> Expression:
    return exp.Anonymous(this="SHA2", expressions=[exp.cast(it, "BINARY"), exp.Literal.number(256)])
