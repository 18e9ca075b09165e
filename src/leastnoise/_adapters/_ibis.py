"""Tables of Ibis: counted by the engine they belong to where its SQL is known, read otherwise (E7 of PROOFS-adapters.md).

A dialect says in which words an engine's values and hashes are ours; the table's own query is one that ours selects from.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlglot import exp

from leastnoise._adapters._column import Source
from leastnoise._adapters._engine import KEY, Engine, Place, Run, Session
from leastnoise._adapters._sql import Expression, Value, case, text, whole, without_nul
from leastnoise._check import InputError

_MOST_SETS = 100
_LATEST = 2**63 - 1
# A decimal of so many digits is the double nearest to it, however it is computed.
_DIGITS = 15
_WHOLE = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What an engine says in its own words.

    Attributes:
        by_bytes: a text, compared by its bytes.
        double: a double, whose NaN is null or equal to itself.
        days: days since 1970 of a date; of one that is infinite a day that nobody means.
        stamps: microseconds since 1970 of a time stamp without a time zone, likewise.
        instants: the same of one with a time zone, in UTC.
        hashed: a hash of a text, as an expression that orders by its bytes.
    """

    by_bytes: Callable[[Expression], Expression]
    double: Callable[[Expression], Expression]
    days: Callable[[Expression], Expression]
    stamps: Callable[[Expression], Expression]
    instants: Callable[[Expression], Expression]
    hashed: Callable[[Expression], Expression]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Place(Place):
    """The connection of a table, its query, and a session in which other queries have names too."""

    backend: Any
    query: str
    name: str
    session: Callable[[Mapping[str, str]], AbstractContextManager[Run]]

    def beside(self, other: Place) -> tuple[Session, Expression] | None:
        """Any other table of the connection: two that are equal may be of two databases."""
        if not isinstance(other, _Place) or other.backend is not self.backend:
            return None
        return partial(self.session, {self.name: self.query, other.name: other.query}), exp.to_table(other.name)


def call(name: str, *arguments: Expression) -> Expression:
    """A function by its name.

    >>> call("EPOCH_US", exp.column("a")).sql()
    'EPOCH_US(a)'
    """
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


def _finite(column: Expression, found: Expression) -> Expression:
    missing = exp.Is(this=column.copy(), expression=exp.Null())
    late = exp.GT(this=column.copy(), expression=text("1970-01-01"))
    return case([(missing, exp.Null()), (call("ISFINITE", column), found), (late, whole(_LATEST))], whole(-_LATEST))


def _days_between(column: Expression) -> Expression:
    return exp.cast(exp.Sub(this=column.copy(), expression=exp.cast(text("1970-01-01"), "DATE")), "BIGINT")


def _part(column: Expression) -> Expression:
    return call("DATE_PART", exp.var("EPOCH_MICROSECOND"), column)


def _not_nan(column: Expression) -> Expression:
    return case([(call("IS_NAN", column), exp.Null())], column)


DIALECTS = {
    "duckdb": Dialect(
        by_bytes=lambda it: exp.Collate(this=exp.cast(it, "TEXT"), expression=exp.to_identifier("C", quoted=True)),
        double=lambda it: it,
        days=_days_between,
        stamps=lambda it: _finite(it, call("EPOCH_US", it)),
        instants=lambda it: _finite(it, call("EPOCH_US", it)),
        hashed=lambda it: call("SHA256", it),
    ),
    "bigquery": Dialect(
        by_bytes=lambda it: call("COLLATE", it, text("")),
        double=_not_nan,
        days=lambda it: call("UNIX_DATE", it),
        stamps=lambda it: call("UNIX_MICROS", call("TIMESTAMP", it)),
        instants=lambda it: call("UNIX_MICROS", it),
        hashed=lambda it: call("SHA256", it),
    ),
    "snowflake": Dialect(
        by_bytes=lambda it: call("COLLATE", it, text("utf8")),
        double=lambda it: it,
        days=lambda it: call("DATEDIFF", exp.var("DAY"), exp.cast(text("1970-01-01"), "DATE"), it),
        stamps=_part,
        instants=_part,
        hashed=lambda it: call("SHA2", it, exp.Literal.number(256)),
    ),
}


def open_ibis(table: Any, reading: Source) -> Source:
    """Open a table; only its schema is looked at.

    Args:
        table: an ``ibis.Table`` that belongs to a backend.
        reading: how its rows are read.

    Returns:
        The source: with an engine if its backend has one of the dialects above.

    Raises:
        InputError: the table belongs to no backend, or to several.
    """
    import ibis
    from ibis.expr.operations import InMemoryTable

    what = "the Ibis table"
    try:
        backend, query, types = table.get_backend(), str(ibis.to_sql(table)), table.schema().items()
    except Exception:  # noqa: BLE001 - the errors of two libraries, whose text may quote a row
        raise InputError(
            f"{what} must belong to one connection. Make it from one: ibis.duckdb.connect('visits.duckdb').table('visits')."
        ) from None
    own = replace(reading, what=what)
    dialect = DIALECTS.get(backend.name)
    # tables that Ibis holds itself are there for its own queries alone
    if dialect is None or table.op().find(InMemoryTable):
        return own

    @contextmanager
    def session(queries: Mapping[str, str]) -> Iterator[Run]:
        def run(ours: exp.Select) -> Any:
            # of counts, which are whole numbers, and of keys
            schema = {name: "string" if name == KEY else "int64" for name in ours.named_selects}
            return backend.sql(words(backend.name, ours, queries), schema=schema).to_pyarrow().to_reader()

        try:
            yield run
        except Exception:  # noqa: BLE001 - the errors of two libraries, whose text may quote a row
            raise InputError(
                f"{what} cannot be computed. Run it by itself first, such as table.count().execute(), to see its own error."
            ) from None

    # a name that no table of theirs has
    name = f"leastnoise_{uuid.uuid4().hex}"
    engine = engine_of(dialect, dict(types), name, partial(session, {name: query}))
    return replace(own, engine=replace(engine, place=_Place(backend, query, name, session)))


def words(name: str, ours: exp.Select, theirs: Mapping[str, str]) -> str:
    """One query: ours, from what theirs select under their names; every name is quoted, as some engines have others in capitals.

    >>> words("snowflake", exp.select("a").from_("visits"), {"visits": 'SELECT * FROM "VISITS"'})
    'WITH "visits" AS (SELECT * FROM "VISITS") SELECT "a" FROM "visits"'
    """
    named = ", ".join(f"{exp.to_table(one).sql(name, identify=True)} AS ({query})" for one, query in theirs.items())
    return f"WITH {named} {ours.sql(name, identify=True)}"


def engine_of(dialect: Dialect, types: Mapping[str, Any], name: str, session: Session) -> Engine:
    """An engine that counts.

    Args:
        dialect: its words.
        types: Ibis' type of every column.
        name: under which queries have the table.
        session: runs queries.
    """
    values = {name: _value(exp.column(exp.to_identifier(name, quoted=True)), kind, dialect) for name, kind in types.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return Engine(
        relation=exp.to_table(name), values=known, hashed=dialect.hashed, most_sets=_MOST_SETS, session=session, sound=without_nul
    )


def _value(column: Expression, kind: Any, dialect: Dialect) -> Value | None:
    """What an engine can encode of a column, by its type in Ibis; times in microseconds are neither rounded nor too far."""
    name = type(kind).__name__
    if name in _WHOLE:
        return Value("integer", exp.cast(column, "BIGINT"))
    if name == "Float64" or (name == "Decimal" and kind.precision is not None and kind.precision <= _DIGITS):
        return Value("double", dialect.double(column) if name == "Float64" else exp.cast(column, "DOUBLE"))
    if name == "Boolean":
        return Value("boolean", column)
    if name == "String":
        return Value("text", dialect.by_bytes(column))
    if name == "Date":
        return Value("day", dialect.days(column))
    if name == "Timestamp" and kind.scale in {None, 6}:
        return Value("stamp", dialect.stamps(column)) if kind.timezone is None else Value("instant", dialect.instants(column))
    return None
