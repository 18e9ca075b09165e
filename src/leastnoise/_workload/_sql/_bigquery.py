"""Translate BigQuery's date functions to DuckDB.

In date functions of BigQuery, the column is the first argument, and the unit of time is the last
one.

BigQuery's weeks begin on Sunday, unless the unit is ISOWEEK or names the day. DuckDB's weeks begin
on Monday, so dates are moved by some days before truncation, and back after it.
"""

from typing import Any

from leastnoise._workload._sql._expression_values import Node

_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR")
_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_DAYS_AFTER_MONDAY = {
    "ISOWEEK": 0,
    "WEEK": -1,
    **{f"WEEK({day})": number for number, day in enumerate(_DAYS)},
    "WEEK(SUNDAY)": -1,
}
"""For each time unit, the day on which its weeks begin; negative before Monday."""


def truncated_time(call: Node) -> Node:
    """Translate BigQuery's DATE_TRUNC(column, MONTH) to DuckDB's DATE_TRUNC."""
    from sqlglot import exp

    parts = _parts(call)
    if parts is None:
        return call
    unit, time = parts
    days = _DAYS_AFTER_MONDAY.get(unit)
    if days is None:
        return exp.TimestampTrunc(this=time, unit=exp.var(unit))
    week = exp.TimestampTrunc(this=_moved(time, -days), unit=exp.var("WEEK"))
    if days == 0:
        return week
    return exp.cast(_moved(week, days), "DATE")


def time_difference(call: Node) -> Node:
    """Translate BigQuery's DATE_DIFF(end, start, DAY) to DuckDB's DATE_DIFF."""
    from sqlglot import exp

    parts = _parts(call)
    if parts is None:
        return call
    unit, end = parts
    start = call.expression.copy()
    days = _DAYS_AFTER_MONDAY.get(unit)
    if days is not None:
        unit = "WEEK"
        start = _moved(start, -days)
        end = _moved(end, -days)
    return exp.DateDiff(this=end, expression=start, unit=exp.var(unit))


def extracted_week(call: Node) -> Node:
    """Translate EXTRACT(ISOWEEK FROM x) to EXTRACT(WEEK FROM x)."""
    from sqlglot import exp

    if call.name.upper() != "ISOWEEK":
        return call
    return exp.Extract(this=exp.var("WEEK"), expression=call.expression)


def _parts(call: Node) -> tuple[str, Node] | None:
    """Return unit and time of a BigQuery call; None if the unit comes first.

    The parser has taken the first argument as the unit, and the last argument as the time.
    """
    from sqlglot import exp

    unit = _unit_name(call.this)
    first = call.args.get("unit")
    if unit is None or first is None:
        return None
    is_unit = not isinstance(first, exp.Column) and first.name.upper() in (*_UNITS, "ISOWEEK")
    if is_unit and unit in _UNITS:
        return None  # the second argument may be a column with the name of a unit
    if not isinstance(first, exp.Var):
        return unit, first.copy()
    column: Any = exp.column(first.name)
    identifier = call.this.find(exp.Identifier)
    column.this.meta.update(identifier.meta)
    return unit, column


def _unit_name(node: Node) -> str | None:
    """Return the name of a time unit, such as WEEK(MONDAY); None for others."""
    from sqlglot import exp

    name = ""
    if isinstance(node, exp.Column) and not node.table:
        name = node.name.upper()
    elif isinstance(node, exp.Week) and isinstance(node.this, exp.Column):
        name = f"WEEK({node.this.name.upper()})"
    if name in _UNITS or name in _DAYS_AFTER_MONDAY:
        return name
    return None


def _moved(time: Node, days: int) -> Node:
    """Return an SQL expression for a time some days later."""
    from sqlglot import exp

    if days == 0:
        return time
    interval = exp.Interval(this=exp.Literal.string(str(abs(days))), unit=exp.var("DAY"))
    if days < 0:
        return exp.Paren(this=exp.Sub(this=time, expression=interval))
    return exp.Paren(this=exp.Add(this=time, expression=interval))
