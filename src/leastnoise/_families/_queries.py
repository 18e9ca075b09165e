"""Facts about operators that errors follow from, each once, answered by class; and Gram matrices of measured queries with row weights.

None is the answer of a class that has no short form: what follows is then computed from its matrix. Nothing is guessed about entries: those
facts rest on `column_sums`, `non_negative` and `largest_entry`, which refuse a class that has not answered them.
"""

import math
from collections.abc import Iterator
from functools import lru_cache, singledispatch

import numpy as np

from leastnoise._check.arrays import Array, FloatArray, IntArray
from leastnoise._linop import (
    AllRanges,
    Coarse,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Operator,
    Prefix,
    Ranges,
    Total,
    Tree,
    all_range_ends,
    apply,
    apply_transpose,
    column_sums,
    dense,
    largest_entry,
    non_negative,
)
from leastnoise._measurements import Factor


@singledispatch
def interval_ends(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First and last cells if every row is an interval, else None."""
    return None


@interval_ends.register
def _(operator: Identity) -> tuple[IntArray, IntArray]:
    cells = np.arange(operator.size, dtype=np.int64)
    return cells, cells


@interval_ends.register
def _(operator: Total) -> tuple[IntArray, IntArray]:
    return np.array([0]), np.array([operator.size - 1])


@interval_ends.register
def _(operator: Prefix) -> tuple[IntArray, IntArray]:
    return np.zeros(operator.size, dtype=np.int64), np.arange(operator.size, dtype=np.int64)


@interval_ends.register
def _(operator: AllRanges) -> tuple[IntArray, IntArray]:
    return all_range_ends(operator.size)


@interval_ends.register
def _(operator: Ranges) -> tuple[IntArray, IntArray]:
    return operator.low, operator.high


@interval_ends.register
def _(operator: Tree) -> tuple[IntArray, IntArray]:
    low = np.concatenate([np.arange(0, operator.size, width) for width in operator.widths])
    return low, np.minimum(low + np.repeat(operator.widths, operator.level_sizes), operator.size) - 1


@interval_ends.register
def _(operator: Coarse) -> tuple[IntArray, IntArray] | None:
    ends = interval_ends(operator.operator)
    return None if ends is None else (operator.starts[ends[0]], np.append(operator.starts, operator.size)[ends[1] + 1] - 1)


@singledispatch
def first_cells(operator: Operator) -> IntArray:
    """The first cell of every run of cells that no query tells apart, from 0 on; every cell where the class does not tell."""
    return np.arange(operator.size)


@first_cells.register
def _(operator: Total) -> IntArray:
    return np.zeros(1, dtype=np.int64)


@first_cells.register
def _(operator: Ranges) -> IntArray:
    edges = np.unique(np.concatenate([[0], operator.low, operator.high + 1]))
    return edges[edges < operator.size]


@singledispatch
def on_runs(operator: Operator, starts: IntArray) -> Operator:
    """The same queries over the sums of runs of cells that none of them tells apart."""
    return operator if len(starts) == operator.size else Dense(dense(operator)[:, starts])


@on_runs.register
def _(operator: Total, starts: IntArray) -> Operator:
    return Total(len(starts))


@on_runs.register
def _(operator: Ranges, starts: IntArray) -> Operator:
    low, high = (np.searchsorted(starts, ends, side="right") - 1 for ends in (operator.low, operator.high))
    return operator if len(starts) == operator.size else Ranges(len(starts), low, high)


@singledispatch
def gram_generators(operator: Operator) -> tuple[FloatArray, FloatArray] | None:
    """Rising and falling numbers with ``(A^T A)_ij = rising_i falling_j`` for i <= j; None of operators without that form."""
    return None


@gram_generators.register
def _(operator: Total) -> tuple[FloatArray, FloatArray]:
    return np.ones(operator.size), np.ones(operator.size)


@gram_generators.register
def _(operator: Prefix) -> tuple[FloatArray, FloatArray]:
    return np.ones(operator.size), np.arange(operator.size, 0.0, -1)


@gram_generators.register
def _(operator: AllRanges) -> tuple[FloatArray, FloatArray]:
    falling = np.arange(operator.size, 0.0, -1)
    return falling[::-1], falling


@singledispatch
def apply_gram(operator: Operator, x: Array) -> Array:
    """Multiply by the Gram matrix: A^T A x along the first axis, in floating point."""
    return apply_transpose(operator, apply(operator, x))


@apply_gram.register
def _(operator: Dense, x: Array) -> Array:
    if operator.rows <= 2 * operator.size and x.ndim == 1:
        return apply_transpose(operator, apply(operator, x))
    return np.asarray((_gram(operator) @ x.reshape(operator.size, -1)).reshape(x.shape))


@lru_cache(maxsize=4)
def _gram(operator: Dense) -> FloatArray:
    real = operator.matrix.astype(np.float64)
    return np.asarray(real.T @ real)


@apply_gram.register
def _(operator: AllRanges, x: Array) -> Array:
    # Cumulative sums of the generators instead of n^2 / 2 rows.
    falling = np.arange(operator.size, 0.0, -1).reshape(-1, *([1] * (x.ndim - 1)))
    rising = falling[::-1]
    before = np.cumsum(rising * x, axis=0)
    from_here = np.cumsum((falling * x)[::-1], axis=0)[::-1]
    return falling * before + rising * (from_here - falling * x)


@singledispatch
def quicker_by_gram(operator: Operator) -> bool:
    """Whether its Gram matrix, once made, is quicker to multiply by than itself and its transpose."""
    return False


@quicker_by_gram.register(Dense)
@quicker_by_gram.register(DiagonalAndRows)
@quicker_by_gram.register(Haar)
def _(operator: Operator) -> bool:
    return True


@singledispatch
def only_total(operator: Operator) -> bool:
    """Whether the total is known to be its only query; taken for more, it costs time alone."""
    return False


@only_total.register
def _(operator: Total) -> bool:
    return True


@singledispatch
def spanning(operator: Operator) -> Operator:
    """An operator whose rows span the same space: one of few rows, where it is known."""
    return operator


@spanning.register
def _(operator: AllRanges) -> Operator:
    return Identity(operator.size)


def gram_diagonal(operator: Operator) -> FloatArray:
    """The diagonal of A^T A: squared column norms, shape (size,). Its sum is the sum of the squares of all entries."""
    generators = gram_generators(operator)
    if generators is not None:
        return generators[0] * generators[1]
    return column_sums(operator, np.ones(operator.rows, dtype=np.int64), 2).astype(float)


def zero_one(operator: Operator) -> bool:
    """Whether all entries are 0 or 1."""
    return non_negative(operator) and largest_entry(operator) <= 1


def row_squares(operator: Operator) -> FloatArray:
    """Squared norms of the rows, shape (rows,)."""
    return np.asarray(apply(operator, np.ones(operator.size)) if zero_one(operator) else (dense(operator).astype(float) ** 2).sum(axis=1))


@singledispatch
def singular_values(operator: Operator) -> FloatArray | None:
    """Singular values where a closed form is known, largest first, else None."""
    return None


@singular_values.register
def _(operator: Identity) -> FloatArray:
    return np.ones(operator.size)


@singular_values.register
def _(operator: Total) -> FloatArray:
    return np.array([math.sqrt(operator.size)])


@singular_values.register
def _(operator: Prefix) -> FloatArray:
    n = operator.size
    return np.asarray(0.5 / np.sin((2 * np.arange(1, n + 1) - 1) * math.pi / (4 * n + 2)))


@singular_values.register
def _(operator: AllRanges) -> FloatArray:
    n = operator.size
    return np.asarray(math.sqrt(n + 1) / (2 * np.sin(np.arange(1, n + 1) * math.pi / (2 * (n + 1)))))


_MOST_NUMBERS = 2**22


def columns(weights: FloatArray, x: FloatArray) -> FloatArray:
    """Weights as a column that multiplies the first axis of an array."""
    return weights.reshape(-1, *([1] * (x.ndim - 1)))


def apply_weighted_gram(factor: Factor, x: FloatArray) -> FloatArray:
    """F^T diag(w^2) F x along the first axis."""
    if factor.even:
        return np.asarray(apply_gram(factor.operator, x))
    moved = apply(factor.operator, x)
    return np.asarray(apply_transpose(factor.operator, moved * columns(factor.scaling**2, moved)))


def weighted_gram(factor: Factor) -> FloatArray:
    """F^T diag(w^2) F as a matrix, never with more than 2^22 numbers of F at a time."""
    n = factor.operator.size
    step = n if factor.even else max(1, _MOST_NUMBERS // factor.operator.rows)
    eye = np.eye(n)
    return np.concatenate([apply_weighted_gram(factor, eye[:, start : start + step]) for start in range(0, n, step)], axis=1)


@singledispatch
def applied_in_parts(operator: Operator, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """A x some rows at a time, where they are many: which, and their answers."""
    yield slice(0, operator.rows), apply(operator, x)


@applied_in_parts.register
def _(operator: AllRanges, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    low, high = all_range_ends(operator.size)
    step = max(1, _MOST_NUMBERS // x.shape[1])
    for start in range(0, operator.rows, step):
        part = slice(start, min(start + step, operator.rows))
        yield part, sums[high[part] + 1] - sums[low[part]]
