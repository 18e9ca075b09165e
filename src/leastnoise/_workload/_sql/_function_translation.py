"""Translate functions of other databases to functions of DuckDB.

This module replaces functions of other databases, such as TO_CHAR with a format and WIDTH_BUCKET.
The module also replaces the current day by the day that the spec states. It changes the syntax tree
before other modules read the tree.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastnoise._trusted.check import InputError
from leastnoise._workload._sql._bigquery import (
    extracted_week,
    time_difference,
    truncated_time,
)
from leastnoise._workload._sql._buckets import MOST_BUCKETS
from leastnoise._workload._sql._expression_values import (
    Node,
    constant_number,
    number_literal,
    refused,
)
from leastnoise._workload._sql._to_char_formats import formatted_time

JoinColumns = tuple[str, str]
"""The column of a source and the column of a further table that are joined."""
_BIGQUERY_NAMES = (
    "FORMAT_DATE",
    "FORMAT_TIMESTAMP",
    "DATETIME_TRUNC",
    "PARSE_DATE",
    "PARSE_TIMESTAMP",
)
_DIALECTS = {
    **dict.fromkeys(("DATEADD", "IFF", "DIV0", "ZEROIFNULL"), "snowflake"),
    **dict.fromkeys(("DATE_SUB", "DATE_FORMAT", "CURDATE"), "mysql"),
    **dict.fromkeys(_BIGQUERY_NAMES, "bigquery"),
    **dict.fromkeys(("DATENAME", "DATEPART", "ISNULL", "GETDATE", "EOMONTH", "FORMAT"), "tsql"),
}
"""Functions that only other databases have, with the name of one such database."""
_QUANTILE_NAMES = ("APPROX_PERCENTILE", "PERCENTILE_APPROX")
"""What other databases call APPROX_QUANTILE(column, share)."""
_ORIGIN = "19000101"  # the date that SQL Server numbers 0
_ORACLE_UNITS = {
    **dict.fromkeys(("YYYY", "YEAR", "Y"), "YEAR"),
    **dict.fromkeys(("MM", "MONTH", "MON"), "MONTH"),
    "Q": "QUARTER",
    "IW": "WEEK",
    "DD": "DAY",
}
_NOW_FUNCTIONS = ("now", "transaction_timestamp", "get_current_timestamp", "current_localtimestamp")
NO_TODAY = (
    "State the day that it means: today = 'YYYY-MM-DD' in [source], or today= in Python. Or write "
    "the date"
)


@dataclass(frozen=True)
class SqlSettings:
    """Public settings for reading statements, besides the domain.

    Attributes:
        unit: the column of the privacy unit, whose distinct values are counted.
        of_unit: attributes that have one value for all rows of a unit.
        today: the day of CURRENT_DATE, such as "2026-01-31"; None if none is stated.
        joins: for each further table, the columns on which the source is joined with it: one column
            of each table; empty if the source is one table.
    """

    unit: str | None = None
    of_unit: tuple[str, ...] = ()
    today: str | None = None
    joins: tuple[JoinColumns, ...] = ()


def join_columns(
    on: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] | None,
) -> tuple[JoinColumns, ...]:
    """Return the columns on which the two tables of each join are joined.

    >>> join_columns("customer"), join_columns([{"shop": "id"}, "customer"])
    ((('customer', 'customer'),), (('shop', 'id'), ('customer', 'customer')))
    """
    if not on:
        return ()
    if isinstance(on, (str, Mapping)):
        on = [on]
    pairs = []
    for columns in on:
        if isinstance(columns, str):
            pairs.append((columns, columns))
        else:
            pairs += columns.items()
    return tuple(pairs)


def parse_day(today: str | None) -> dt.date | None:
    """Parse the day that CURRENT_DATE stands for; None if none is stated."""
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
    """Replace a function that DuckDB lacks.

    Other nodes are returned unchanged.

    Args:
        node: any node.
        today: the day of CURRENT_DATE. With None, CURRENT_DATE stays in the tree and is refused
            later.

    Raises:
        InputError: a function has arguments that cannot be translated, such as bounds of
            WIDTH_BUCKET that are not numbers.
    """
    written = _written_in_duckdb(node, today)
    if written is node:
        return node
    return written.transform(lambda part: in_duckdb(part, today))


def _written_in_duckdb(node: Node, today: dt.date | None) -> Node:
    """Translate a node to DuckDB's SQL; its arguments are not translated."""
    from sqlglot import exp

    form = _FORMS.get(type(node).__name__)
    written = node if form is None else form(node)
    if written is not node:
        return written
    truncated = _date_trunc_of_dateadd(node)
    if truncated is not None:
        return truncated
    if isinstance(node, exp.DateAdd) or _dialect_of(node):
        return _translated(node)
    if today is not None and isinstance(node, exp.CurrentDate):
        return _constant(today.isoformat(), "DATE")
    if today is not None and is_current_time(node):
        return _constant(today.isoformat(), "TIMESTAMP")
    return _with_duckdb_dates(node)


def _with_duckdb_dates(node: Node) -> Node:
    """Translate a function that formats or parses dates to DuckDB."""
    from sqlglot import exp

    if isinstance(node, exp.ToChar) and _is_text_literal(node.args.get("format")):
        return formatted_time(node)
    if _is_anonymous(node, "TO_VARCHAR") and len(node.expressions) == 2:
        time, written = node.expressions
        if _is_text_literal(written):
            return formatted_time(exp.ToChar(this=time, format=written))
    if isinstance(node, exp.UnixToTime) and _is_text_literal(node.args.get("scale")):
        call = exp.Anonymous(this="TO_TIMESTAMP", expressions=[node.this, node.args["scale"]])
        return _parsed_time(call, "TIMESTAMP")
    if not isinstance(node, exp.Anonymous):
        return node
    if node.name.upper() == "TO_DATE" and len(node.expressions) == 1:
        return exp.cast(node.expressions[0], "DATE")
    if node.name.upper() in ("TO_TIMESTAMP", "TO_DATE"):
        is_date = node.name.upper() == "TO_DATE"
        return _parsed_time(node, "DATE" if is_date else "TIMESTAMP")
    if node.name.upper() == "WEEKISO" and len(node.expressions) == 1:
        return exp.Extract(this=exp.var("WEEK"), expression=node.expressions[0])
    if node.name.upper() == "DATE_PART" and len(node.expressions) == 2:
        part, column = node.expressions
        return exp.Extract(this=exp.var(part.name.upper()), expression=column)
    return node


def _dialect_of(node: Node) -> str | None:
    """Return the database that has a function which DuckDB lacks, or None."""
    from sqlglot import exp

    if isinstance(node, exp.Format) and not _is_text_literal(node.this):
        return "tsql"  # the argument order of SQL Server; in DuckDB the format comes first
    if not isinstance(node, exp.Anonymous):
        return None
    if node.name.upper() == "DATE_SUB" and len(node.expressions) != 2:
        return None  # DuckDB has a function of this name
    if node.name.upper() == "DATE_FORMAT" and len(node.expressions) == 2:
        return "mysql" if "%" in node.expressions[1].name else "spark"
    return _DIALECTS.get(node.name.upper())


def _is_anonymous(node: Node, name: str) -> bool:
    """Return whether a node calls a function that sqlglot has no class for."""
    from sqlglot import exp

    return isinstance(node, exp.Anonymous) and bool(node.name.upper() == name)


def _date_trunc_of_dateadd(node: Node) -> Node | None:
    """Return DATE_TRUNC for DATEADD(month, DATEDIFF(month, 0, x), 0), else None."""
    from sqlglot import exp

    if _is_anonymous(node, "DATEADD") and len(node.expressions) == 3:
        unit, difference, start = node.expressions
    elif isinstance(node, exp.DateAdd):
        unit = node.args.get("unit")
        difference = node.expression
        start = node.this
    else:
        return None
    if not isinstance(difference, exp.DateDiff) or constant_number(start) != 0:
        return None
    own_unit = difference.args.get("unit")
    units = [None if part is None else part.name.upper() for part in (unit, own_unit)]
    if unit is None or units[0] != units[1] or not _is_origin(difference.expression):
        return None
    time = difference.this
    column = _plain_time(time) if isinstance(time, exp.TimeStrToTime) else time
    return exp.TimestampTrunc(this=column, unit=exp.var(unit.name.upper()))


def _is_origin(node: Node) -> bool:
    """Return whether a node is the number 0, or SQL Server's date for 0."""
    from sqlglot import exp

    inner = node.this if isinstance(node.this, exp.Expression) else node
    is_date = _is_text_literal(inner) and inner.name.replace("-", "") == _ORIGIN
    return is_date or constant_number(node) == 0


def _in_array(node: Node) -> Node:
    """Translate x = ANY (ARRAY[1, 2]) to x IN (1, 2)."""
    from sqlglot import exp

    if not isinstance(node.expression, exp.Any):
        return node
    array = node.expression.this.unnest()
    if not isinstance(array, exp.Array):
        return node
    return exp.In(this=node.this, expressions=array.expressions)


def _translated(call: Node) -> Node:
    """Transpile a call to DuckDB by sqlglot.

    The names of columns keep their positions. A call that cannot be translated is returned
    unchanged.
    """
    import sqlglot
    from sqlglot import exp

    arguments: dict[str, Node] = {}

    def with_short_arguments(part: Node) -> Node:
        """Replace an argument by a short column name."""
        if part.parent is not call or not isinstance(part, (exp.Func, exp.Cast, exp.Paren)):
            return part
        name = f"argument{len(arguments)}"
        arguments[name] = part
        return exp.column(name)

    short = call.copy()
    for key, value in call.args.items():
        if isinstance(value, list):
            short.set(key, [with_short_arguments(entry).copy() for entry in value])
        elif isinstance(value, exp.Expression):
            short.set(key, with_short_arguments(value).copy())
    try:
        parsed = sqlglot.parse_one(short.sql("duckdb"), read=_dialect_of(call) or "duckdb")
        text = parsed.sql("duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE)
        translated = sqlglot.parse_one(text, read="duckdb")
    except (sqlglot.errors.SqlglotError, AttributeError, IndexError):
        return call  # sqlglot parses some functions even if they lack arguments
    is_unchanged = type(parsed) is type(call) and isinstance(parsed, exp.Anonymous)
    if is_unchanged or type(translated) is type(call):
        return call
    positions = {part.name: part.meta for part in call.find_all(exp.Identifier)}
    for part in translated.walk():
        part.meta.clear()
        if isinstance(part, exp.Identifier):
            part.meta.update(positions.get(part.name, {}))
    for column in [*translated.find_all(exp.Column)]:
        if column.name in arguments:
            column.replace(arguments[column.name].copy())
    return exp.Paren(this=translated) if isinstance(translated, exp.Binary) else translated


def _equal_tuples(node: Node) -> Node:
    """Translate (a, b) IN ((1, 2), (3, 4)) to equations joined by OR."""
    from sqlglot import exp

    if not isinstance(node.this, exp.Tuple) or not node.expressions:
        return node
    columns = node.this.expressions
    rows = [entry.expressions for entry in node.expressions if isinstance(entry, exp.Tuple)]
    if any(len(row) != len(columns) for row in rows) or len(rows) != len(node.expressions):
        raise refused(node.sql("duckdb"), "Write as many values in each tuple as columns")
    conditions = []
    for row in rows:
        equalities = [
            exp.EQ(this=column.copy(), expression=value.copy())
            for column, value in zip(columns, row, strict=True)
        ]
        conditions.append(exp.and_(*equalities))
    return exp.Paren(this=exp.or_(*conditions))


def _quantile(call: Node) -> Node:
    """Translate APPROX_PERCENTILE(column, share) to APPROX_QUANTILE."""
    from sqlglot import exp

    if call.name.upper() not in _QUANTILE_NAMES:
        return call
    if len(call.expressions) != 2:
        raise refused(call.sql("duckdb"), "Write APPROX_PERCENTILE(column, share)")
    column, share = call.expressions
    return exp.ApproxQuantile(this=column, quantile=share)


def _with_rollup(group: Node) -> Node:
    """Translate GROUP BY a, b WITH ROLLUP to GROUP BY ROLLUP (a, b)."""
    from sqlglot import exp

    for key, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        elements = group.args.get(key) or []
        if len(elements) == 1 and not elements[0].expressions and group.expressions:
            return exp.Group(**{key: [kind(expressions=group.expressions)]})
    return group


def _with_series_as_rows(select: Node) -> Node:
    """Translate PostgreSQL's SELECT generate_series(...) to UNNEST."""
    from sqlglot import exp

    series = []
    for column in select.expressions:
        node = column.unalias()
        while isinstance(node, (exp.Cast, exp.Paren)):
            node = node.this
        if isinstance(node, exp.GenerateSeries):
            series.append(node)
    for node in series:
        node.replace(exp.Unnest(expressions=[node.copy()]))
    return select


def _share_of_total(window: Node) -> Node:
    """Translate RATIO_TO_REPORT(x) OVER (...) to x / SUM(x) OVER (...)."""
    from sqlglot import exp

    if window.this.name.upper() != "RATIO_TO_REPORT":
        return window
    if len(window.this.expressions) != 1:
        raise refused(window.sql("duckdb"), "Write RATIO_TO_REPORT(x) OVER (...)")
    (part,) = window.this.expressions
    total = window.copy()
    total.set("this", exp.Sum(this=part.copy()))
    return exp.Paren(this=exp.Div(this=exp.Paren(this=part.copy()), expression=total))


def is_current_time(node: Node) -> bool:
    """Return whether a node is the current date or time."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NOW_FUNCTIONS
    return isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime)) or (
        type(node).__name__ in ("CurrentDatetime", "Localtimestamp", "Localtime")
    )


def _constant(text: str, type_name: str) -> Node:
    """Return a text literal that is cast to an SQL type."""
    from sqlglot import exp

    return exp.cast(exp.Literal.string(text), type_name)


def _is_text_literal(node: Any) -> bool:
    """Return whether a node is a text literal."""
    from sqlglot import exp

    return isinstance(node, exp.Literal) and node.is_string


def _parsed_time(call: Node, type_name: str) -> Node:
    """Translate TO_TIMESTAMP or TO_DATE with a format to STRPTIME."""
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
    """Parse an SQL text in PostgreSQL's dialect."""
    import sqlglot

    return sqlglot.parse_one(text, read="postgres")


def _buckets(call: Node) -> Node:
    """Translate WIDTH_BUCKET(x, low, high, count) to a CASE of comparisons."""
    from sqlglot import exp

    bounds = [constant_number(call.args.get(key)) for key in ("min_value", "max_value")]
    count = constant_number(call.args.get("num_buckets"))
    low, high = bounds
    is_whole = count is not None and count.denominator == 1 and 0 < count <= MOST_BUCKETS
    if low is None or high is None or count is None or not is_whole or low >= high:
        raise refused(
            call.sql("duckdb"),
            "Write WIDTH_BUCKET(column, low, high, count) with numbers, low below high, and "
            f"1 to {MOST_BUCKETS} buckets",
        )
    branches = exp.Case()
    for bucket in range(int(count) + 1):
        bound = low + (high - low) * bucket / int(count)
        is_below = exp.LT(this=call.this.copy(), expression=number_literal(bound))
        branches = branches.when(is_below, exp.Literal.number(bucket), copy=False)
    is_above = exp.GTE(this=call.this.copy(), expression=number_literal(high))
    return branches.when(is_above, exp.Literal.number(int(count) + 1), copy=False)


def _with_else(call: Node) -> Node:
    """Translate NVL2(x, if present, if null) to CASE."""
    from sqlglot import exp

    is_present = exp.Is(this=call.this, expression=exp.Null()).not_()
    return (
        exp.Case().when(is_present, call.args["true"]).else_(call.args.get("false") or exp.Null())
    )


def _plain_text(node: Node) -> Node:
    """Translate N'text' to 'text'."""
    from sqlglot import exp

    return exp.Literal.string(node.name)


def _plain_time(call: Node) -> Node:
    """Translate SQL Server's conversion to a time; leave it out for columns."""
    from sqlglot import exp

    return call.this if call.find(exp.Column) else exp.cast(call.this, "TIMESTAMP")


def _time_of_call(call: Node) -> Node:
    """Translate BigQuery's TIMESTAMP(x) to a cast."""
    from sqlglot import exp

    has_zone = call.args.get("zone") or call.args.get("expression")
    return call if has_zone else exp.cast(call.this, "TIMESTAMP")


def _padded_text(call: Node) -> Node:
    """Translate LPAD(number, width, fill); the number is cast to text."""
    from sqlglot import exp

    if isinstance(call.this.unnest(), (exp.Cast, exp.TryCast)):
        return call
    padded = call.copy()
    padded.set("this", exp.cast(call.this.copy(), "VARCHAR"))
    return padded


def _later_month(call: Node) -> Node:
    """Translate ADD_MONTHS(x, 2) to x + INTERVAL 2 MONTH."""
    from sqlglot import exp

    number = constant_number(call.expression)
    if number is None:
        return call
    interval = exp.Interval(this=exp.Literal.string(str(int(number))), unit=exp.var("MONTH"))
    return exp.Paren(this=exp.Add(this=call.this, expression=interval))


def _truncated_date(call: Node) -> Node:
    """Translate Oracle's TRUNC(x, 'MM') to DATE_TRUNC."""
    from sqlglot import exp

    unit = call.args.get("decimals") or call.args.get("unit")
    if not _is_text_literal(unit) or unit.name.upper() not in _ORACLE_UNITS:
        return call
    return exp.TimestampTrunc(this=call.this, unit=exp.var(_ORACLE_UNITS[unit.name.upper()]))


def _grouping(call: Node) -> Node:
    """Translate GROUPING_ID(a, b) to GROUPING(a, b)."""
    from sqlglot import exp

    return exp.Grouping(expressions=call.expressions)


_FORMS: dict[str, Callable[[Node], Node]] = {
    "AddMonths": _later_month,
    "Anonymous": _quantile,
    "DateDiff": time_difference,
    "DecodeCase": _translated,
    "EQ": _in_array,
    "Extract": extracted_week,
    "Group": _with_rollup,
    "GroupingId": _grouping,
    "In": _equal_tuples,
    "National": _plain_text,
    "Nvl2": _with_else,
    "Pad": _padded_text,
    "SafeDivide": _translated,
    "Select": _with_series_as_rows,
    "StrToDate": _translated,
    "TimeStrToTime": _plain_time,
    "Timestamp": _time_of_call,
    "TimestampTrunc": truncated_time,
    "Trunc": _truncated_date,
    "WidthBucket": _buckets,
    "Window": _share_of_total,
}
"""For each type of node, the function that translates it to DuckDB.

The function may return the node itself.
"""
