"""Combinations of released answers, whose intervals are computed from covariances.

A combination is a sum of answers, each times a number, or a quotient of two such sums. Examples are
a difference of two sums, a ratio, a share, and the share of a group in the total of all groups. A
sum of combinations consists of any number of combinations, each times a number. Examples are a
difference of means, and the difference of two differences of means. A ratio of sums is a quotient
of two such sums. An example is the change of a share since the last month.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from leastnoise._workload._sql._expression_values import Node, constant_number


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The groups of an SQL window, which are consecutive along one attribute.

    Attributes:
        attribute: the attribute along which the groups are ordered.
        order: the columns that order the groups. For each: the position among the attribute's
            columns, and whether the order descends.
        first: the beginning of the window, as the number of groups after the present group; None
            for the first of all groups.
        last: the end of the window, in the same way; None for the last of all groups. For LAG,
            ``first`` and ``last`` are -1.
    """

    attribute: str
    order: tuple[tuple[int, bool], ...]
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class AnswerTerm:
    """A column of released answers, or its sum over some groups.

    Attributes:
        number: the number of the column of answers.
        partition: the attributes of ``SUM(...) OVER (PARTITION BY ...)``: answers are added up
            within their groups; None for the answer of the single group.
        part: for a mean, "sum" for its dividend or "values" for its divisor; empty for the answer
            itself.
        frame: the window of groups whose answers are added up; None for only the present group.
    """

    number: int
    partition: tuple[str, ...] | None = None
    part: str = ""
    frame: WindowFrame | None = None


@dataclass(frozen=True, slots=True)
class LinearSum:
    """A linear combination of released answers, plus a number.

    Attributes:
        factors: each answer with its factor.
        shift: the number that is added.
    """

    factors: tuple[tuple[AnswerTerm, Fraction], ...] = ()
    shift: Fraction = Fraction(0)

    def add(self, other: "LinearSum") -> "LinearSum":
        """Return the sum of this and another linear combination."""
        factors = dict(self.factors)
        for term, factor in other.factors:
            factors[term] = factors.get(term, Fraction(0)) + factor
        return LinearSum(tuple(factors.items()), self.shift + other.shift)

    def multiply(self, number: Fraction) -> "LinearSum":
        """Return the linear combination multiplied by a number."""
        factors = tuple((term, number * factor) for term, factor in self.factors)
        return LinearSum(factors, number * self.shift)

    def within(self, frame: WindowFrame) -> "LinearSum | None":
        """Return the sum over a window's groups; None if a window exists already."""
        if any(term.partition is not None or term.frame is not None for term, _ in self.factors):
            return None
        factors = tuple((replace(term, frame=frame), factor) for term, factor in self.factors)
        return LinearSum(factors, self.shift)


@dataclass(frozen=True, slots=True)
class Combination:
    """A linear combination of released answers, or a quotient of two.

    Attributes:
        numerator: the dividend; it is the sum if there is no divisor.
        denominator: the divisor; None for a sum.
    """

    numerator: LinearSum
    denominator: LinearSum | None = None

    def within(self, frame: WindowFrame) -> "Combination | None":
        """Return the combination over a window; None if a window exists already."""
        numerator = self.numerator.within(frame)
        denominator = None if self.denominator is None else self.denominator.within(frame)
        if numerator is None or (denominator is None and self.denominator is not None):
            return None
        return Combination(numerator, denominator)


@dataclass(frozen=True, slots=True)
class CombinationSum:
    """A linear combination of combinations of released answers, plus a number.

    Attributes:
        factors: each combination with its factor.
        shift: the number that is added.
    """

    factors: tuple[tuple[Combination, Fraction], ...] = ()
    shift: Fraction = Fraction(0)

    def add(self, other: "CombinationSum") -> "CombinationSum":
        """Return the sum of this and another linear combination."""
        factors = dict(self.factors)
        for combination, factor in other.factors:
            factors[combination] = factors.get(combination, Fraction(0)) + factor
        nonzero = tuple(item for item in factors.items() if item[1])
        return CombinationSum(nonzero, self.shift + other.shift)

    def multiply(self, number: Fraction) -> "CombinationSum":
        """Return the linear combination multiplied by a number."""
        if not number:
            return CombinationSum()
        factors = tuple((combination, number * factor) for combination, factor in self.factors)
        return CombinationSum(factors, number * self.shift)


@dataclass(frozen=True, slots=True)
class CombinationRatio:
    """The ratio of two sums of combinations of released answers.

    Attributes:
        dividend: the sum that is divided.
        divisor: the sum by which the dividend is divided.
    """

    dividend: CombinationSum
    divisor: CombinationSum


SumType = TypeVar("SumType", LinearSum, CombinationSum)
AnswerExpression = Combination | CombinationSum | CombinationRatio
"""An expression of released answers whose interval follows from their covariances."""
SumOf = Callable[[Node], LinearSum | None]
"""From a column or a window function to the sum of answers that it is; None if it is none."""
QuotientOf = Callable[[Node], Combination | None]
"""From a column or a window function to the quotient of answers that it is; None if it is none."""


def read_expression(node: Node, sum_of: SumOf, quotient_of: QuotientOf) -> AnswerExpression | None:
    """Parse an expression of released answers, or return None.

    The result is also None for a number times a single quotient, plus a number. The interval of
    such an expression is a function of the interval of the quotient.

    Args:
        node: an expression over released columns.
        sum_of: a function that returns the answers that a column or a window function adds up.
        quotient_of: a function that returns a column or a window function as a quotient.
    """
    from sqlglot import exp

    combination = read_combination(node, sum_of, quotient_of)
    if combination is not None:
        return combination
    linear = read_combination_sum(node, sum_of, quotient_of)
    if linear is not None:
        return linear if len(linear.factors) > 1 else None
    inner = _without_wrapper(node)
    if not isinstance(inner, exp.Div):
        return None
    dividend = read_combination_sum(inner.left, sum_of, quotient_of)
    divisor = read_combination_sum(inner.right, sum_of, quotient_of)
    if dividend is None or divisor is None:
        return None
    return CombinationRatio(dividend, divisor)


def read_combination_sum(
    node: Node, sum_of: SumOf, quotient_of: QuotientOf
) -> CombinationSum | None:
    """Parse an expression as a sum of combinations of answers, or return None.

    Args:
        node: an expression over released columns.
        sum_of: a function that returns the answers that a column or a window function adds up.
        quotient_of: a function that returns a column or a window function as a quotient.
    """
    from sqlglot import exp

    combination = read_combination(node, sum_of, quotient_of)
    if combination is not None:
        numerator = combination.numerator
        if combination.denominator is None and not numerator.factors:
            return CombinationSum(shift=numerator.shift)
        return CombinationSum(((combination, Fraction(1)),))
    inner = _without_wrapper(node)
    if isinstance(inner, exp.Neg):
        negated = read_combination_sum(inner.this, sum_of, quotient_of)
        return None if negated is None else negated.multiply(Fraction(-1))
    if not isinstance(inner, exp.Binary):
        return None
    left = read_combination_sum(inner.left, sum_of, quotient_of)
    right = read_combination_sum(inner.right, sum_of, quotient_of)
    if left is None or right is None:
        return None
    return _apply_operator(inner, left, right)


def _apply_operator(operation: Node, left: SumType, right: SumType) -> SumType | None:
    """Return the result of an operator on two sums; None if it is not a sum."""
    from sqlglot import exp

    if isinstance(operation, exp.Add):
        return left.add(right)
    if isinstance(operation, exp.Sub):
        return left.add(right.multiply(Fraction(-1)))
    if isinstance(operation, exp.Mul) and not left.factors:
        return right.multiply(left.shift)
    if isinstance(operation, exp.Mul) and not right.factors:
        return left.multiply(right.shift)
    if isinstance(operation, exp.Div) and not right.factors and right.shift:
        return left.multiply(1 / right.shift)
    return None


def read_combination(node: Node, sum_of: SumOf, quotient_of: QuotientOf) -> Combination | None:
    """Parse an expression as a combination of released answers, or return None.

    Args:
        node: an expression over released columns.
        sum_of: a function that returns the answers that a column or a window function adds up.
        quotient_of: a function that returns a column or a window function as a quotient.
    """
    from sqlglot import exp

    linear = read_linear_sum(node, sum_of)
    if linear is not None:
        return Combination(linear)
    inner = _without_wrapper(node)
    quotient = quotient_of(inner)
    if quotient is not None:
        return quotient
    if not isinstance(inner, exp.Div):
        return None
    numerator = read_linear_sum(inner.left, sum_of)
    denominator = read_linear_sum(inner.right, sum_of)
    if numerator is None or denominator is None:
        return None
    return Combination(numerator, denominator)


def read_linear_sum(node: Node, sum_of: SumOf) -> LinearSum | None:
    """Parse an expression as a linear combination of answers, or return None.

    Args:
        node: an expression over released columns.
        sum_of: a function that returns the answers that a column or a window function adds up.
    """
    from sqlglot import exp

    inner = _without_wrapper(node)
    inner_sum = sum_of(inner)
    if inner_sum is not None:
        return inner_sum
    number = constant_number(inner)
    if number is not None:
        return LinearSum(shift=number)
    if isinstance(inner, exp.Neg):
        negated = read_linear_sum(inner.this, sum_of)
        return None if negated is None else negated.multiply(Fraction(-1))
    if not isinstance(inner, exp.Binary):
        return None
    left = read_linear_sum(inner.left, sum_of)
    right = read_linear_sum(inner.right, sum_of)
    if left is None or right is None:
        return None
    return _apply_operator(inner, left, right)


def _without_wrapper(node: Node) -> Node:
    """Remove brackets, NULLIF, COALESCE, casts and zero guards around a node."""
    from sqlglot import exp

    inner = node
    while True:
        if _is_guard(inner):
            inner = inner.args["default"]
            continue
        operand = inner.this if isinstance(inner, exp.Expression) else None
        is_wrapper = (
            isinstance(inner, exp.Paren)
            or (isinstance(inner, exp.Nullif) and constant_number(inner.expression) == 0)
            or (isinstance(inner, exp.Coalesce) and _is_zero(inner.expressions))
            or (isinstance(inner, (exp.Cast, exp.TryCast)) and _has_decimals(inner))
        )
        if not is_wrapper:
            return inner
        inner = operand


def _is_guard(node: Node) -> bool:
    """Return whether a node is CASE WHEN x = 0 THEN NULL ELSE ... END."""
    from sqlglot import exp

    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return False
    (branch,) = node.args["ifs"]
    is_zero = isinstance(branch.this, exp.EQ) and constant_number(branch.this.expression) == 0
    return is_zero and isinstance(branch.args["true"], exp.Null) and bool(node.args.get("default"))


def _is_zero(values: list[Node]) -> bool:
    """Return whether a list consists of one literal 0."""
    return [*map(constant_number, values)] == [0]


def _has_decimals(cast: Node) -> bool:
    """Return whether a cast is to a type with decimals."""
    return cast.to.this is not None and cast.to.this.name in {
        *("DOUBLE", "FLOAT", "DECIMAL", "BIGDECIMAL"),
    }
