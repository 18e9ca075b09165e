"""What all forms of the inverse of a strategy's Gram matrix answer alike, and how they are asked about all ranges without listing them."""

from functools import singledispatch
from typing import Any

import numpy as np

from leastnoise._accuracy._operators import apply_gram
from leastnoise._check.arrays import FloatArray
from leastnoise._linop import AllRanges, Operator


class Answers:
    """Of every form: ``mean``, ``variances`` and ``largest_range`` are its own."""

    __slots__ = ()
    ranges_exact = False
    """Whether ``largest_range`` is no more than that."""

    def mean_squares(self: Any, operator: Operator) -> float:
        """The sum over rows of (q mean)^2."""
        return float(self.mean @ apply_gram(operator, self.mean))

    def total_variance(self: Any, operator: Operator) -> float:
        """The sum of ``variances``."""
        return float(self.variances(operator).sum())

    def largest_variance(self: Any, operator: Operator) -> float:
        """The largest of ``variances``, or a bound above it."""
        return largest_under(operator, self)

    def largest_unlisted(self: Any, operator: Operator) -> float | None:
        """The largest of ``variances`` where that is known without listing them, else None."""
        return unlisted_under(operator, self)


class Solved(Answers):
    """Of a form that solves in less than a product with a matrix, and knows the variances of prefixes."""

    __slots__ = ()

    def residual(self: Any, v: FloatArray) -> FloatArray:
        """R v along the first axis."""
        solved = self.solve(v)
        return np.asarray(solved - np.multiply.outer(self.mean, solved.sum(axis=0)))

    def total_variance(self: Any, operator: Operator) -> float:
        """The sum of ``variances``, without listing rows where there are many."""
        return total_under(operator, self)

    def summed(self: Any, operator: Operator) -> float:
        """The same, of rows that are listed."""
        return float(self.variances(operator).sum())


@singledispatch
def largest_under(operator: Operator, found: Any) -> float:
    """The largest of the variances of an operator's rows, or a bound above it."""
    return float(found.variances(operator).max())


@largest_under.register
def _(operator: AllRanges, found: Any) -> float:  # noqa: ARG001 - every form knows its size
    return float(found.largest_range())


@singledispatch
def unlisted_under(operator: Operator, found: Any) -> float | None:  # noqa: ARG001 - operators that answer look at it
    """The largest of the variances of an operator's rows, exactly, where the form knows it without listing them."""
    return None


@unlisted_under.register
def _(operator: AllRanges, found: Any) -> float | None:  # noqa: ARG001 - every form knows its size
    return float(found.largest_range()) if found.ranges_exact else None


@singledispatch
def total_under(operator: Operator, found: Any) -> float:
    """The sum of the variances of an operator's rows under a form that solves."""
    return float(found.summed(operator))


@total_under.register
def _(operator: AllRanges, found: Any) -> float:
    # Ranges are the differences of all pairs of the n + 1 prefix sums S: (n + 1) sum Var(S_i) - Var(sum S_i).
    asked = np.arange(operator.size, 0.0, -1)
    return float((operator.size + 1) * found.prefix_variances.sum() - asked @ found.solve(asked))
