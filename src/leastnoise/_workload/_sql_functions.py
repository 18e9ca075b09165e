"""Functions that DuckDB lacks, written with functions of DuckDB.

They are replaced in the syntax tree before anything reads it: TO_CHAR, TO_TIMESTAMP and TO_DATE
with formats, WIDTH_BUCKET, and the current day, which the spec states.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leastnoise._trusted.check import InputError
from leastnoise._workload._sql_values import Node, refused

_MOST_BUCKETS = 1000
_NOW_FUNCTIONS = ("now", "transaction_timestamp", "get_current_timestamp", "current_localtimestamp")
NO_TODAY = (
    "State the day that it means: today = 'YYYY-MM-DD' in [source], or today= in Python; or write "
    "the date"
)


@dataclass(frozen=True)
class SqlSettings:
    """What statements are read with, besides the domain; all of it is public.

    Attributes:
        unit: the column of the privacy unit, whose distinct values are counted.
        of_unit: attributes in which the rows of a unit agree.
        today: the day that CURRENT_DATE means, such as "2026-01-31"; None: none is stated.
        join: the columns on which the source is joined with a second table: that of the first and
            that of the second; None: it is one table.
    """

    unit: str | None = None
    of_unit: tuple[str, ...] = ()
    today: str | None = None
    join: tuple[str, str] | None = None


def join_columns(on: str | Mapping[str, str] | None) -> tuple[str, str] | None:
    """Return the columns of a join in both tables, from its ``on``."""
    if on is None or not on:
        return None
    if isinstance(on, str):
        return on, on
    ((first, second),) = on.items()
    return first, second


def parse_day(today: str | None) -> dt.date | None:
    """Return the day that CURRENT_DATE means; None if none is stated."""
    if today is None:
        return None
    try:
        return dt.date.fromisoformat(today)
    except (TypeError, ValueError):
        raise InputError(
            f"today must be a day such as '2026-01-31'; got {today!r}. It is the value of "
            "CURRENT_DATE in SQL."
        ) from None


def in_duckdb(node: Node, today: dt.date | None) -> Node:
    """Return a node with a function that DuckDB has, or the node itself.

    Args:
        node: any node.
        today: the day that CURRENT_DATE means; None: it stays, and is refused later.

    Raises:
        InputError: WIDTH_BUCKET whose bounds or number of buckets are not numbers.
    """
    from sqlglot import exp

    if isinstance(node, exp.ToChar):
        return _with_duckdb_format(node, exp.TimeToStr)
    if isinstance(node, exp.UnixToTime) and _is_text_literal(node.args.get("scale")):
        call = exp.Anonymous(this="TO_TIMESTAMP", expressions=[node.this, node.args["scale"]])
        return _parsed_time(call, "TIMESTAMP")
    if isinstance(node, exp.Anonymous) and node.name.upper() in ("TO_TIMESTAMP", "TO_DATE"):
        is_date = node.name.upper() == "TO_DATE"
        return _parsed_time(node, "DATE" if is_date else "TIMESTAMP")
    is_date_part = isinstance(node, exp.Anonymous) and node.name.upper() == "DATE_PART"
    if is_date_part and len(node.expressions) == 2:
        part, column = node.expressions
        return exp.Extract(this=exp.var(part.name.upper()), expression=column)
    if isinstance(node, exp.WidthBucket):
        return _buckets(node)
    if today is None:
        return node
    if isinstance(node, exp.CurrentDate):
        return _constant(today.isoformat(), "DATE")
    if is_current_time(node):
        return _constant(today.isoformat(), "TIMESTAMP")
    return node


def is_current_time(node: Node) -> bool:
    """Return whether a node is the current day or time."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NOW_FUNCTIONS
    return isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime)) or (
        type(node).__name__ in ("CurrentDatetime", "Localtimestamp", "Localtime")
    )


def _constant(text: str, type_name: str) -> Node:
    """Return a text cast to an SQL type."""
    from sqlglot import exp

    return exp.cast(exp.Literal.string(text), type_name)


def _is_text_literal(node: Any) -> bool:
    """Return whether a node is a text literal."""
    from sqlglot import exp

    return isinstance(node, exp.Literal) and node.is_string


def _with_duckdb_format(call: Node, kind: Any) -> Node:
    """Return TO_CHAR(column, format) as STRFTIME with the format of DuckDB."""
    from sqlglot import exp

    if not _is_text_literal(call.args.get("format")):
        return call
    written = exp.ToChar(this=exp.column("x"), format=call.args["format"].copy())
    read = _read_by_postgres(written.sql("postgres"))
    if not isinstance(read, kind):
        return call
    return kind(this=call.this, format=read.args["format"])


def _parsed_time(call: Node, type_name: str) -> Node:
    """Return TO_TIMESTAMP or TO_DATE with a format as STRPTIME and a cast."""
    from sqlglot import exp

    arguments = call.expressions
    if len(arguments) != 2 or not _is_text_literal(arguments[1]):
        return call
    if type_name == "DATE":
        name = "TO_DATE"
    else:
        name = "TO_TIMESTAMP"
    read = _read_by_postgres(f"{name}(x, {arguments[1].sql('postgres')})")
    if read.args.get("format") is None:
        return call
    parsed = exp.StrToTime(this=arguments[0], format=read.args["format"])
    return exp.cast(parsed, type_name)


def _read_by_postgres(text: str) -> Node:
    """Return the syntax tree of an SQL text in PostgreSQL's dialect."""
    import sqlglot

    return sqlglot.parse_one(text, read="postgres")


def _buckets(call: Node) -> Node:
    """Return WIDTH_BUCKET(x, low, high, count) as a CASE of comparisons."""
    from sqlglot import exp

    bounds = [_constant_number(call.args.get(key)) for key in ("min_value", "max_value")]
    count = _constant_number(call.args.get("num_buckets"))
    low, high = bounds
    is_whole = count is not None and count.denominator == 1 and 0 < count <= _MOST_BUCKETS
    if low is None or high is None or count is None or not is_whole or low >= high:
        raise refused(
            call.sql("duckdb"),
            "Write WIDTH_BUCKET(column, low, high, count) with numbers, low below high, and "
            f"1 to {_MOST_BUCKETS} buckets",
        )
    branches = exp.Case()
    for bucket in range(int(count) + 1):
        bound = low + (high - low) * bucket / int(count)
        is_below = exp.LT(this=call.this.copy(), expression=_number_literal(bound))
        branches = branches.when(is_below, exp.Literal.number(bucket), copy=False)
    is_above = exp.GTE(this=call.this.copy(), expression=_number_literal(high))
    return branches.when(is_above, exp.Literal.number(int(count) + 1), copy=False)


def _constant_number(node: Any) -> Fraction | None:
    """Return the exact value of a number literal; None for other nodes."""
    from sqlglot import exp

    is_negative = isinstance(node, exp.Neg)
    if is_negative:
        literal = node.this
    else:
        literal = node
    if not isinstance(literal, exp.Literal) or literal.is_string:
        return None
    number = Fraction(literal.name)
    if is_negative:
        return -number
    return number


def _number_literal(number: Fraction) -> Node:
    """Return a number as an SQL literal."""
    from sqlglot import exp

    if number.denominator == 1:
        text = str(int(number))
    else:
        text = repr(float(number))
    return exp.Literal.number(text)
