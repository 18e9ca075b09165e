"""Compute intervals of columns that are expressions of released answers.

A monotone function of one answer maps the interval of the answer to another interval. The new
interval goes from the smaller to the larger of the function's values at the two ends. The same
holds for a monotone function of a combination of answers, whose interval follows from the
covariances of the answers. For other expressions no interval is computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leastnoise._workload._sql._expression_values import Node

_MONOTONE = ("Paren", "Alias", "Neg", "Round", "Floor", "Ceil", "Exp", "Trunc")
_OF_BOTH_SIDES = ("Add", "Sub", "Mul")
_OF_FIRST = ("Div", "Coalesce", "Greatest", "Least")
_OF_OTHER_ROWS = ("Lag", "Lead", "FirstValue", "LastValue", "NthValue")
_NUMBER_TYPES = {
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128"),
    *("FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL"),
}


@dataclass(frozen=True, slots=True)
class NoiseInterval:
    """The ends of a noisy column's interval, as SQL, if they are known.

    Attributes:
        low: the lower end of the interval; None if no interval is known.
        high: the upper end.
    """

    low: Node | None = None
    high: Node | None = None

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are known."""
        return self.low is not None


NoiseOf = Callable[[Node], NoiseInterval | None]
"""A function that maps the node of a column to its noise; None if it has none."""
CombinationNoise = Callable[[Node], NoiseInterval | None]
"""From an expression of several answers to its interval; None if it is not such a combination."""


def expression_noise(
    node: Node, noise_of: NoiseOf, combination_noise: CombinationNoise | None = None
) -> NoiseInterval | None:
    """Return the interval of an expression of answers; None without noise.

    Args:
        node: an expression of columns.
        noise_of: a function that returns the noise of a column.
        combination_noise: a function that returns the interval of a combination of columns; None if
            no interval of several columns is known.
    """
    from sqlglot import exp

    noisy = [column for column in node.find_all(exp.Column) if noise_of(column) is not None]
    if node.find(exp.Select) is not None:
        return NoiseInterval()
    if not noisy:
        return None
    noise = noise_of(noisy[0])
    if len(noisy) == 1 and noise is not None and _is_monotone(noisy[0], node):
        return _mapped(node, noisy[0], noise)
    if combination_noise is not None:
        for part in _parts_with_all(noisy, node):
            noise = combination_noise(part)
            if noise is not None and _is_monotone(part, node):
                return _mapped(node, part, noise)
    return NoiseInterval()


def _mapped(node: Node, part: Node, noise: NoiseInterval) -> NoiseInterval:
    """Apply a monotone function to both ends of an interval."""
    if part is node or not noise.has_interval:
        return noise
    at_ends = [_with_leaf(node, part, end) for end in (noise.low, noise.high)]
    return NoiseInterval(*(_where_both_exist(name, at_ends) for name in ("LEAST", "GREATEST")))


def _parts_with_all(columns: Sequence[Node], root: Node) -> list[Node]:
    """Return the subexpressions that contain all columns, smallest first."""
    parts = []
    part = columns[0]
    while part is not root:
        part = part.parent
        if all(any(node is column for node in part.walk()) for column in columns):
            parts.append(part)
    return parts


def _where_both_exist(function_name: str, values: Sequence[Node]) -> Node:
    """Return a function call that is NULL if one of its arguments is NULL.

    DuckDB's LEAST and GREATEST ignore NULLs.
    """
    from sqlglot import exp

    is_missing = exp.or_(
        *(exp.Is(this=exp.paren(value), expression=exp.Null()) for value in values)
    )
    function = exp.func(function_name, *(value.copy() for value in values), dialect="duckdb")
    return exp.Case().when(is_missing, exp.Null()).else_(function)


def _is_monotone(leaf: Node, root: Node) -> bool:
    """Return whether an expression is monotone in one of its nodes."""
    node = leaf
    while node is not root:
        parent = node.parent
        if not _is_monotone_step(parent, node):
            return False
        node = parent
    return True


def _is_monotone_step(parent: Node, child: Node) -> bool:
    """Return whether an operation is monotone in one of its arguments."""
    from sqlglot import exp

    name = type(parent).__name__
    if name in _OF_BOTH_SIDES:
        return True
    if isinstance(parent, exp.Anonymous):
        return parent.name.upper() == "TRY"
    if parent.args.get("this") is not child:
        return False
    if isinstance(parent, (exp.Cast, exp.TryCast)):
        return parent.to.this.name in _NUMBER_TYPES
    if isinstance(parent, exp.Window):
        return type(child).__name__ in _OF_OTHER_ROWS
    return name in (*_MONOTONE, *_OF_FIRST, *_OF_OTHER_ROWS)


def _with_leaf(root: Node, leaf: Node, end: Node | None) -> Node:
    """Return a copy of an expression in which one node is replaced by another."""
    return root.copy().transform(
        lambda node: end.copy() if end is not None and node == leaf else node
    )
