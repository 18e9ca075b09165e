"""Answers that look like counts: projections on non-negative, monotone and whole numbers. Biased, so never in place of the unbiased ones.

A Euclidean projection on a convex set that contains the truth never increases the Euclidean distance to it. It says nothing about
sums of cells, which is why the total of a marginal is kept: clipping alone adds mass and ruins them. As that total is itself an
estimate, the truth lies near the set rather than in it.

Source: projection on a simplex by sorting: Held, Wolfe, Crowder 1974; isotonic regression on prefix sums: Hay et al. 2010.
"""

from collections.abc import Callable, Mapping

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import non_negative as has_no_negative_entry
from leastnoise._workload import Product, identity, prefix


def projection_method(product: Product) -> str:
    """Which projection suits a table.

    Args:
        product: the table's queries.

    Returns:
        ``marginal``: cells at least 0 that keep the estimated total; ``prefix``: isotonic along the one attribute with prefix sums and at
        least 0; ``clip``: negative answers become 0; ``none``: the true answers may be negative (a measure with a negative bound, or a
        query with a negative coefficient).

    >>> domain = Domain(sex=["F", "M"], age=["young", "old"])
    >>> [projection_method(queries(domain, age=q).products[0]) for q in ("identity", "prefix", "all_ranges", {"matrix": [[1, -1]]})]
    ['marginal', 'prefix', 'clip', 'none']
    """
    if product.measure is not None and product.domain.measures[product.measure].low_units < 0:
        return "none"
    if product.is_marginal:
        return "marginal"
    if [q for q in product.query_sets if q != identity()] == [prefix()]:
        return "prefix"
    return "clip" if all(has_no_negative_entry(operator) for operator in product.operators) else "none"


def onto_simplex(cells: FloatArray, total: float) -> FloatArray:
    """The nearest non-negative cells with a given sum, in Euclidean distance.

    Args:
        cells: any shape, in rows (or units of a measure).
        total: the sum wanted; at most 0 gives zeros.

    Returns:
        An array of the same shape.

    Edge cases: no cells give no cells.

    >>> onto_simplex(np.array([3.0, -1.0, 1.0]), 3.0)
    array([2.5, 0. , 0.5])
    """
    if not total > 0 or cells.size == 0:
        return np.zeros_like(cells, dtype=np.float64)
    falling = np.sort(cells, axis=None)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    # The number of cells that stay above 0 is the last place where the cell exceeds its shift; the first always does, because total > 0.
    last = int(np.flatnonzero(falling > shifts)[-1])
    return np.maximum(cells - shifts[last], 0.0)


def monotone(answers: FloatArray, axis: int) -> FloatArray:
    """The nearest answers that are non-negative and do not fall along an axis, in Euclidean distance.

    Args:
        answers: any shape, in rows (or units of a measure).
        axis: along which the prefix sums run.

    Returns:
        An array of the same shape. Isotonic regression followed by clipping at a bound is the exact projection on both.

    >>> monotone(np.array([-2.0, 4.0, 2.0, 5.0]), 0)
    array([0., 3., 3., 5.])
    """
    from scipy.optimize import isotonic_regression

    lines = np.array(np.moveaxis(answers, axis, -1), dtype=np.float64)
    for place in np.ndindex(lines.shape[:-1]):
        if np.any(np.diff(lines[place]) < 0):
            lines[place] = isotonic_regression(lines[place]).x
    return np.moveaxis(np.maximum(lines, 0.0), -1, axis)


def non_negative(product: Product, answers: FloatArray) -> FloatArray | None:
    """The non-negative version of one table.

    Args:
        product: the table's queries.
        answers: the unbiased answers, shape ``product.shape``, in rows (or units of the measure).

    Returns:
        Biased answers of the same shape, projected as `projection_method` says, or None where it says ``none``. A marginal keeps the sum of
        ``answers`` if that is positive. Tables projected one by one need not agree with each other.

    >>> non_negative(marginals(Domain(sex=["F", "M"]), ways=1).products[0], np.array([5.0, -1.0]))
    array([4., 0.])
    """
    return _PROJECTIONS[projection_method(product)](product, answers)


_PROJECTIONS: Mapping[str, Callable[[Product, FloatArray], FloatArray | None]] = {
    "none": lambda _, __: None,
    "marginal": lambda _, answers: onto_simplex(answers, float(answers.sum())),
    "prefix": lambda product, answers: monotone(answers, product.query_sets.index(prefix())),
    "clip": lambda _, answers: np.maximum(answers, 0.0),
}


def whole_numbers(product: Product, answers: FloatArray) -> IntArray:
    """The table in whole numbers.

    Args:
        product: the table's queries.
        answers: shape ``product.shape``, in rows (or units of the measure).

    Returns:
        int64 of the same shape. A marginal is rounded by largest remainders, so that its cells add up to the rounded sum of ``answers`` and
        every cell moves by less than 1; other answers are rounded to nearest, which keeps prefix sums monotone.

    >>> whole_numbers(marginals(Domain(size=["S", "M", "L"]), ways=1).products[0], np.array([1.4, 1.4, 1.3]))
    array([2, 1, 1])
    """
    if not product.is_marginal:
        return np.rint(answers).astype(np.int64)
    floors = np.floor(answers)
    rounded = floors.astype(np.int64).reshape(-1)
    remainders = (answers - floors).reshape(-1)
    missing = round(float(remainders.sum()) + (float(floors.sum()))) - int(rounded.sum())
    # Rounding of the sum could ask for one more than there are cells, or one fewer than none.
    order = np.argsort(-remainders, kind="stable")[: min(max(missing, 0), rounded.size)]
    rounded[order] += 1
    return rounded.reshape(answers.shape)
