"""Tables of PostgreSQL: counted by the server, or read over Arrow through ADBC; all queries of a table see one snapshot of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from sqlglot import exp

from leastnoise._adapters._arrow import in_chunks, strange, to_column
from leastnoise._adapters._column import Column, Source
from leastnoise._adapters._engine import Engine, Place, Session
from leastnoise._adapters._location import DatabaseTable
from leastnoise._adapters._sql import Expression, Held, Value, case, double, text, whole
from leastnoise._check import InputError

# Hash tables of Postgres are spilled to its disk beyond its own bound, and 100 sets of a table are a single pass over its rows.
_MOST_SETS = 100
_LATEST = 2**63 - 1
# Half of the least double, which is rounded to 0, in all its digits.
_NEAR = str(Context(prec=800).power(2, -1075))
_EPOCH = "1970-01-01"
_COLUMNS = """SELECT attname::text AS name, format_type(atttypid, NULL) AS kind FROM pg_attribute
WHERE attrelid = to_regclass({}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_START = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL standard_conforming_strings = on")


@dataclass(frozen=True, slots=True)
class _Type:
    """What becomes of a type: what is selected in its place, how that is read, and what an engine's value of it holds (None: only read)."""

    selected: Callable[[Expression], Expression]
    read: Callable[[Any], Column]
    held: Held | None = None
    value: Callable[[Expression], Expression] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Place(Place):
    """A table, and its database, whose URL may hold a password."""

    source: DatabaseTable
    url: str
    relation: Expression

    @property
    def what(self) -> str:
        return f"the table {self.source.table!r} of PostgreSQL"

    def beside(self, other: Place) -> tuple[Session, Expression] | None:
        """Any other table of the same URL."""
        if not isinstance(other, _Place) or other.url != self.url:
            return None
        return _session(self.source, self.url, f"{self.what} joined with {other.what}"), other.relation


def _same(column: Expression) -> Expression:
    return column


def _by_bytes(column: Expression) -> Expression:
    return exp.Collate(this=exp.cast(column, "TEXT"), expression=exp.to_identifier("C", quoted=True))


def _as_text(column: Expression) -> Expression:
    return exp.cast(column, "TEXT")


def _days(column: Expression) -> Expression:
    """Days since 1970; infinite dates are ones that nobody means, at either end."""
    since = exp.Sub(this=column.copy(), expression=exp.cast(text(_EPOCH), "DATE"))
    finite = exp.func("isfinite", column.copy())
    return case(
        [(_missing(column.copy()), exp.Null()), (finite, exp.cast(since, "INT")), (_late(column), exp.Literal.number(2**31 - 1))],
        exp.Neg(this=exp.Literal.number(2**31 - 1)),
    )


def _late(column: Expression) -> Expression:
    return exp.GT(this=column.copy(), expression=text(_EPOCH))


def _microseconds(column: Expression) -> Expression:
    """Microseconds since 1970, in UTC where there is a time zone; the times that 64 bits do not hold become the last, or the first."""
    since = exp.Extract(this=exp.var("EPOCH"), expression=column.copy())
    soon = exp.and_(exp.LT(this=column.copy(), expression=text("200000-01-01")), exp.func("isfinite", column.copy()))
    found = exp.cast(exp.Mul(this=since, expression=exp.Literal.number(10**6)), "BIGINT")
    return case([(_missing(column.copy()), exp.Null()), (soon, found), (_late(column), whole(_LATEST))], whole(-_LATEST))


def _as_double(column: Expression) -> Expression:
    """A decimal of any length; those beyond the doubles, or nearer to 0 than to the least of them, would be an error."""
    nan, far, near = (exp.cast(text(one), "DECIMAL") for one in ("NaN", "1e300", _NEAR))
    size = exp.Abs(this=column.copy())
    above = exp.GT(this=column.copy(), expression=exp.Literal.number(0))
    return case(
        [
            (exp.EQ(this=column.copy(), expression=nan), double("NaN")),
            (exp.LTE(this=size, expression=near), double(0.0)),
            (exp.LTE(this=size.copy(), expression=far), exp.cast(column.copy(), "DOUBLE")),
            (above, double("Infinity")),
            (exp.LTE(this=column.copy(), expression=exp.Literal.number(0)), double("-Infinity")),
        ],
        exp.Null(),
    )


def _decimals(array: Any) -> Column:
    return Column([None if one is None else Decimal(one) for one in array.to_pylist()])


def _dates(array: Any) -> Column:
    import pyarrow as pa

    return to_column(array.cast(pa.int32()).view(pa.date32()))


def _stamps(array: Any) -> Column:
    import pyarrow as pa

    return to_column(array.view(pa.timestamp("us")))


def _instants(array: Any) -> Column:
    import pyarrow as pa

    return to_column(array.view(pa.timestamp("us", "UTC")))


def _missing(column: Expression) -> Expression:
    return exp.Is(this=column, expression=exp.Null())


_INTEGER, _TEXT = _Type(_same, to_column, "integer", _same), _Type(_as_text, to_column, "text", _by_bytes)
_TYPES = {
    "smallint": _INTEGER,
    "integer": _INTEGER,
    "bigint": _INTEGER,
    "boolean": _Type(_same, to_column, "boolean", _same),
    "double precision": _Type(_same, to_column, "double", _same),
    "real": _Type(_same, to_column),
    "numeric": _Type(_as_text, _decimals, "double", _as_double),
    "text": _TEXT,
    "character varying": _TEXT,
    "character": _TEXT,
    "uuid": _Type(_as_text, to_column),
    "date": _Type(_days, _dates, "day", _days),
    "timestamp without time zone": _Type(_microseconds, _stamps, "stamp", _microseconds),
    "timestamp with time zone": _Type(_microseconds, _instants, "instant", _microseconds),
}
_STRANGE = _Type(_missing, strange)


def open_postgres(source: DatabaseTable) -> Source:
    """Open a table or view of a server; only its columns' names and types are read.

    Args:
        source: which, and the environment variable that holds the URL of its server.

    Raises:
        InputError: the server cannot be reached, or it has no such table; without a word of the server's own, which may hold a password.
    """
    relation = exp.Table(this=exp.to_identifier(source.parts[-1], quoted=True))
    if len(source.parts) == 2:
        relation.set("db", exp.to_identifier(source.parts[0], quoted=True))
    place = _Place(source, source.url(), relation)
    what = place.what
    session = _session(source, place.url, what)
    with session() as run:
        found = run(_COLUMNS.format(text(relation.sql("postgres")).sql("postgres"))).read_all()
        types = {row["name"]: row["kind"] for row in found.to_pylist()}
        (encoding,) = run("SELECT current_setting('server_encoding') AS encoding").read_all().column("encoding").to_pylist()
    if not types:
        raise InputError(f"{what} does not exist, or has no columns. Write its name as it is stored, with its schema: public.visits.")

    def chunks(columns: Sequence[str]) -> Iterator[tuple[int, list[Column]]]:
        kinds = [_TYPES.get(types[name], _STRANGE) for name in columns]
        pairs = enumerate(zip(columns, kinds, strict=True))
        chosen = [exp.alias_(kind.selected(_column(name)), f"c{place}") for place, (name, kind) in pairs]
        query = exp.select(*chosen or [exp.alias_(whole(0), "c0")]).from_(relation.copy())
        with session() as run:
            yield from in_chunks(run(query), [(place, kind.read) for place, kind in enumerate(kinds)])

    engine = Engine(
        relation=relation,
        values=_values(types, unicode=encoding == "UTF8"),
        hashed=_hashed,
        most_sets=_MOST_SETS,
        session=session,
        merges=True,
        place=place,
    )
    unread = {name: kind for name, kind in types.items() if kind not in _TYPES}
    return Source(what=what, names=tuple(types), total=None, chunks=chunks, strange=unread, engine=engine)


def _session(source: DatabaseTable, url: str, what: str) -> Callable[[], AbstractContextManager[Callable[[str | exp.Select], Any]]]:
    """Transactions that only read, each on one snapshot."""
    import pyarrow as pa

    try:
        import adbc_driver_postgresql.dbapi as driver
    except ImportError:
        raise InputError("Tables of PostgreSQL need the extra 'postgres': pip install 'leastnoise[postgres]'.") from None

    @contextmanager
    def session() -> Iterator[Callable[[str | exp.Select], Any]]:
        try:
            with driver.connect(url) as connection, connection.cursor() as cursor:

                def run(query: str | exp.Select) -> Any:
                    cursor.execute(query if isinstance(query, str) else query.sql("postgres"))
                    return cursor.fetch_record_batch()

                for sentence in _START:
                    cursor.execute(sentence)
                yield run
        except (driver.Error, pa.ArrowException, OSError):
            # its own text may quote the password, the query or a row
            raise InputError(
                f"{what} cannot be read. Check that {source.connection} is the URL of a server that runs and lets you in, "
                "and that you may read the table there."
            ) from None

    return session


def _values(types: Mapping[str, str], *, unicode: bool) -> dict[str, Value]:
    """The columns that the server can encode; text only where the server's is Unicode, so that no text fails to be converted."""
    found = {}
    for name, kind in types.items():
        of = _TYPES.get(kind, _STRANGE)
        if of.held is not None and of.value is not None and (unicode or of.held != "text"):
            found[name] = Value(of.held, of.value(_column(name)))
    return found


def _column(name: str) -> Expression:
    return exp.column(exp.to_identifier(name, quoted=True))


def _hashed(it: Expression) -> Expression:
    return exp.Anonymous(this="SHA256", expressions=[exp.Anonymous(this="CONVERT_TO", expressions=[it, text("UTF8")])])
