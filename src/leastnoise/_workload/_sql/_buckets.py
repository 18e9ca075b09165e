"""Replace FLOOR of a binned column by comparisons with the edges of buckets.

A binned column can only be compared with numbers. ``FLOOR(amount / 50) * 50`` changes at the edges
of buckets, where ``amount / 50`` is a whole number.
"""

import math
from fractions import Fraction
from typing import Any

from leastnoise._domain import Bins, Edges
from leastnoise._workload._sql._expression_values import (
    Node,
    constant_number,
    number_literal,
    refused,
)

MOST_BUCKETS = 1000  # the most buckets of one expression


def with_bucket_comparisons(kind: Bins | Edges, node: Node) -> Node:
    """Replace FLOOR of a binned column by a CASE of comparisons.

    Args:
        kind: the bins.
        node: an expression of the column.

    Returns:
        A CASE of comparisons; each result is the expression's value in a bucket. If the expression
        has no FLOOR of ``factor * column + shift``, it is returned unchanged.

    Raises:
        InputError: there are more than 1,000 buckets.
    """
    from sqlglot import exp

    floors = [floor for floor in node.find_all(exp.Floor) if not floor.args.get("decimals")]
    lines = [_linear_form(floor.this) for floor in floors]
    if len({floor.sql() for floor in floors}) != 1 or lines[0] is None or lines[0][0] <= 0:
        return node
    factor, shift = lines[0]
    (column, *_) = floors[0].find_all(exp.Column)
    first, last = (math.floor(factor * Fraction(end) + shift) for end in (kind.low, kind.high))
    if last - first >= MOST_BUCKETS:
        raise refused(
            f"{node.sql('duckdb')} with {last - first + 1} groups",
            f"Take wider groups: there are at most {MOST_BUCKETS}",
        )
    case = exp.Case()
    for bucket in range(first, last):
        bound = number_literal((bucket + 1 - shift) / factor)
        is_below = exp.LT(this=column.copy(), expression=bound)
        case = case.when(is_below, _with_value(node, floors[0], bucket), copy=False)
    is_any = exp.Is(this=column.copy(), expression=exp.Null()).not_()
    return case.when(is_any, _with_value(node, floors[0], last), copy=False)


def _linear_form(node: Node) -> tuple[Fraction, Fraction] | None:
    """Parse ``factor * column + shift``; return factor and shift, or None."""
    from sqlglot import exp

    inner = node.unnest()
    if isinstance(inner, (exp.Cast, exp.TryCast)):
        is_float = inner.to.this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
        return _linear_form(inner.this) if is_float else None
    if isinstance(inner, exp.Column):
        return Fraction(1), Fraction(0)
    number = constant_number(inner.args.get("expression"))
    line = _linear_form(inner.this) if isinstance(inner, exp.Binary) else None
    if number is None or line is None:
        return None
    factor, shift = line
    if isinstance(inner, exp.Mul):
        return factor * number, shift * number
    if isinstance(inner, exp.Div) and number:
        return factor / number, shift / number
    if isinstance(inner, exp.Add):
        return factor, shift + number
    if isinstance(inner, exp.Sub):
        return factor, shift - number
    return None


def _with_value(node: Node, floor: Node, value: int) -> Node:
    """Replace FLOOR in an expression by a number."""
    literal: Any = number_literal(Fraction(value))
    text = floor.sql()

    def replaced(part: Node) -> Node:
        """Return the number for FLOOR, and other nodes unchanged."""
        return literal.copy() if part.key == "floor" and part.sql() == text else part

    return node.copy().transform(replaced)
