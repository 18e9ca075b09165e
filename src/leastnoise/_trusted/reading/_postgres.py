"""Read tables of PostgreSQL.

The server counts the rows, or ADBC reads them as Arrow batches. All queries of a table see one
snapshot of it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from decimal import Context, Decimal
from functools import partial
from typing import Any

from sqlglot import exp

from leastnoise._trusted.check import InputError, message
from leastnoise._trusted.reading._column import Column, Source, since_1970, to_column
from leastnoise._trusted.reading._engine import (
    INSTANTS,
    UNREAD,
    Engine,
    Type,
    engine_field,
    engine_source,
    values_of,
)
from leastnoise._trusted.reading._rules_sql import Expression, sql
from leastnoise._trusted.reading.helpers._connections import check_scheme, explain_failure
from leastnoise._trusted.reading.helpers._locations import (
    FORBIDDEN_TABLE,
    NO_CONNECTION,
    NO_POSTGRES,
    STORED,
    DatabaseTable,
)

# PostgreSQL writes large hash tables to its disk, and counts 100 sets in one pass over the rows.
_MOST_SETS = 100
_LARGEST_BIGINT = 2**63 - 1
_LARGEST_DOUBLE = sys.float_info.max
# All digits of half of the smallest positive double, which is rounded to 0.
_HALF_OF_LEAST_DOUBLE = str(Context(prec=800).power(2, -1075))
# The type of a domain is its base type, and an enumerated type is read as text.
_COLUMNS = """SELECT attname::text AS name, attnotnull AS required,
CASE base.typtype WHEN 'e' THEN 'text' ELSE format_type(base.oid, NULL) END AS kind,
has_any_column_privilege(attrelid, 'SELECT') AS allowed FROM pg_attribute
JOIN pg_type AS declared ON declared.oid = atttypid
JOIN pg_type AS base ON base.oid = COALESCE(NULLIF(declared.typbasetype, 0), declared.oid)
WHERE attrelid = to_regclass({}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_START = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL standard_conforming_strings = on",
)


def _days(column: Expression) -> Expression:
    """Return SQL for days since 1970.

    An infinite date becomes a day that is outside every domain.
    """
    written = (
        "CASE WHEN :it IS NULL THEN NULL WHEN ISFINITE(:it) THEN CAST(:it - "
        "CAST('1970-01-01' AS DATE) AS INT)"
    )
    return sql(
        f"{written} WHEN :it > '1970-01-01' THEN {2**31 - 1} ELSE {1 - 2**31} END", it=column
    )


def _microseconds(column: Expression) -> Expression:
    """Return SQL for microseconds since 1970, in UTC if the type has a zone.

    A time that does not fit into 64 bits becomes the first or the last time that does.
    """
    written = "CASE WHEN :it IS NULL THEN NULL WHEN :it < '200000-01-01' AND ISFINITE(:it) THEN"
    written += (
        " CAST(EXTRACT(EPOCH FROM :it) * 1000000 AS BIGINT) WHEN :it > '1970-01-01' THEN :last "
        "ELSE :first END"
    )
    return sql(written, it=column, last=_LARGEST_BIGINT, first=-_LARGEST_BIGINT)


def _as_double(column: Expression) -> Expression:
    """Return SQL that casts a decimal to a double without raising an error.

    The server raises an error for decimals beyond the largest double or below the smallest one.
    CASE avoids the error: these decimals become the largest double, or 0. An infinity stays an
    infinity.
    """
    written = "CASE WHEN :it = CAST('NaN' AS DECIMAL) THEN CAST('NaN' AS DOUBLE)"
    written += " WHEN CAST(:it AS TEXT) IN ('Infinity', '-Infinity')"
    written += " THEN CAST(CAST(:it AS TEXT) AS DOUBLE)"
    written += " WHEN ABS(:it) <= CAST(:near AS DECIMAL) THEN :zero"
    written += " WHEN ABS(:it) <= CAST('1e300' AS DECIMAL) THEN CAST(:it AS DOUBLE)"
    written += " WHEN :it > 0 THEN :greatest WHEN :it <= 0 THEN -:greatest ELSE NULL END"
    return sql(written, it=column, near=_HALF_OF_LEAST_DOUBLE, zero=0.0, greatest=_LARGEST_DOUBLE)


_as_text = partial(sql, "CAST(:it AS TEXT)")
_TEXT = Type(
    to_column,
    "text",
    lambda it: _as_text(it=it),
    lambda it: sql('CAST(:it AS TEXT) COLLATE "C"', it=it),
    arrow="string",
)
_TEXTS = ("text", "character varying", "character", "name", '"char"')
_DECIMAL = Type(
    lambda array: Column([None if text is None else Decimal(text) for text in array.to_pylist()]),
    "double",
    lambda it: _as_text(it=it),
    _as_double,
    arrow="double",
)
_TYPES = {
    "smallint": Type(to_column, "integer", arrow="int16"),
    "integer": Type(to_column, "integer", arrow="int32"),
    "bigint": Type(to_column, "integer", arrow="int64"),
    "boolean": Type(to_column, "boolean", arrow="bool"),
    "double precision": Type(to_column, "double", arrow="double"),
    "real": Type(to_column, arrow="float"),
    "numeric": _DECIMAL,
    **dict.fromkeys(_TEXTS, _TEXT),
    "uuid": Type(to_column, selected=lambda it: _as_text(it=it), arrow="string"),
    "date": Type(partial(since_1970, unit="D"), "day", _days, arrow="date32"),
    "timestamp without time zone": Type(
        partial(since_1970, unit="us"), "stamp", _microseconds, arrow="timestamp[us]"
    ),
    "timestamp with time zone": Type(
        partial(since_1970, unit="us", zoned=True), "instant", _microseconds, arrow=INSTANTS
    ),
}


def open_postgres(source: DatabaseTable) -> Source:
    """Open a PostgreSQL table or view as a `Source`.

    Only its columns' names and types are read.

    Raises an `InputError` if the server cannot be reached or has no such table. The message does
    not repeat the server's text, which may contain a password.
    """
    relation = exp.Table(this=exp.to_identifier(source.parts[-1], quoted=True))
    if len(source.parts) == 2:
        relation.set("db", exp.to_identifier(source.parts[0], quoted=True))
    description = message(STORED, table=source.table, engine="PostgreSQL")
    url = source.url()
    check_scheme(url, source.connection.removeprefix("env:"))
    session = _session(source, url)
    with session(description) as run:
        described = run(
            _COLUMNS.format(exp.Literal.string(relation.sql("postgres")).sql("postgres"))
        ).read_all()
        columns = described.to_pylist()
        (encoding,) = (
            run("SELECT current_setting('server_encoding') AS encoding")
            .read_all()
            .column("encoding")
            .to_pylist()
        )
    if not columns:
        raise InputError(
            f"{description} does not exist, or has no columns. Write its name as it is stored, "
            "with its schema: public.visits."
        )
    if not columns[0]["allowed"]:  # the role may see the columns, but not select rows
        session = _session(source, url, FORBIDDEN_TABLE)
    types = _types_of({row["name"]: row["kind"] for row in columns}, is_unicode=encoding == "UTF8")
    engine = Engine(
        description=description,
        relation=relation,
        values=values_of(types),
        hashed=lambda it: sql("SHA256(CONVERT_TO(:it, 'UTF8'))", it=it),
        numbered=_hash_number,
        most_sets=_MOST_SETS,
        session=session,
        merges=True,
        home=url,
    )
    fields = [
        engine_field(
            row["name"], row["kind"], types[row["name"]], is_not_null=row["required"] is True
        )
        for row in columns
    ]
    return engine_source(engine, types, fields, session)


def _types_of(type_names: Mapping[str, str], *, is_unicode: bool) -> dict[str, Type]:
    """Return how each column is queried, by name; `UNREAD` if not supported.

    The server counts text columns only if its encoding is Unicode, so that the conversion of a text
    never fails.
    """
    if is_unicode:
        types = _TYPES
    else:
        types = {**_TYPES, **dict.fromkeys(_TEXTS, replace(_TEXT, content=None))}
    return {name: types.get(kind, UNREAD) for name, kind in type_names.items()}


def _session(
    source: DatabaseTable, url: str, failure_message: str = NO_POSTGRES
) -> Callable[[str], AbstractContextManager[Callable[[str | exp.Select], Any]]]:
    """Return a function that opens a read-only transaction on one snapshot.

    Args:
        source: the table.
        url: the URL of the database.
        failure_message: the message of the error that is raised if a query fails.
    """
    import pyarrow as pa

    try:
        import adbc_driver_postgresql.dbapi as driver
    except ImportError:
        raise InputError(
            "Tables of PostgreSQL need the extra 'postgres': pip install 'leastnoise[postgres]'."
        ) from None

    @contextmanager
    def session(description: str) -> Iterator[Callable[[str | exp.Select], Any]]:
        """Open a transaction, and yield a function that runs queries in it."""
        # The text of an error may quote the password, the query or a row. After a failed connection
        # it only chooses between fixed sentences. The text of a failed query is ignored.
        try:
            connection = driver.connect(url)
        except (driver.Error, pa.ArrowException, OSError) as error:
            cause = explain_failure(url, str(error))
            reason = NO_CONNECTION
            if cause is None:
                reason = NO_POSTGRES
            raise InputError(
                message(reason, what=description, connection=source.connection, cause=cause or "")
            ) from None
        try:
            with connection, connection.cursor() as cursor:

                def run_query(query: str | exp.Select) -> Any:
                    """Run a query, and return a reader of its record batches."""
                    cursor.execute(query if isinstance(query, str) else query.sql("postgres"))
                    return cursor.fetch_record_batch()

                for sentence in _START:
                    cursor.execute(sentence)
                yield run_query
        except (driver.Error, pa.ArrowException, OSError):
            raise InputError(
                message(failure_message, what=description, connection=source.connection)
            ) from None

    return session


def _hash_number(text: Expression) -> Expression:
    """Return SQL for the first two bytes of a text's hash, as an integer."""
    hashed = sql("SHA256(CONVERT_TO(:it, 'UTF8'))", it=text)
    return sql("GET_BYTE(:hashed, 0) * 256 + GET_BYTE(:hashed, 1)", hashed=hashed)
