"""Answers that look like counts: projections on non-negative, monotone and whole numbers. Biased, so never in place of the unbiased ones.

A Euclidean projection on a convex set that contains the truth never increases the Euclidean distance to it. It says nothing about
sums of cells, which is why the total of a marginal is kept: clipping alone adds mass and ruins them. As that total is itself an
estimate, the truth lies near the set rather than in it.

Source: projection on a simplex by sorting: Held, Wolfe, Crowder 1974; isotonic regression on prefix sums: Hay et al. 2010.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from leastnoise._check import refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._agreed import onto_simplex
from leastnoise._estimate._stated import PublicCounts, whole_with_sums, with_public_sums
from leastnoise._linop import non_negative as has_no_negative_entry
from leastnoise._workload import Product, identity, prefix


def projection_method(product: Product) -> str:
    """Which projection suits a table."""
    if product.measure is not None and product.domain.measures[product.measure].low_units < 0:
        return "none"
    if product.is_marginal:
        return "marginal"
    if [q for q in product.query_sets if q != identity()] == [prefix()]:
        return "prefix"
    return "clip" if all(has_no_negative_entry(operator) for operator in product.operators) else "none"


def monotone(answers: FloatArray, axis: int) -> FloatArray:
    """The nearest answers that are non-negative and do not fall along an axis, in Euclidean distance."""
    from scipy.optimize import isotonic_regression

    lines = np.array(np.moveaxis(answers, axis, -1), dtype=np.float64)
    for line in np.ndindex(lines.shape[:-1]):
        if np.any(np.diff(lines[line]) < 0):
            lines[line] = isotonic_regression(lines[line]).x
    return np.moveaxis(np.maximum(lines, 0.0), -1, axis)


def non_negative(product: Product, answers: FloatArray, public: Sequence[PublicCounts] = ()) -> FloatArray | None:
    """The non-negative version of one table; a marginal has the sums that are public."""
    projected = _PROJECTIONS[projection_method(product)](product, answers)
    return with_public_sums(projected, product, public) if public and product.is_marginal and projected is not None else projected


_PROJECTIONS: Mapping[str, Callable[[Product, FloatArray], FloatArray | None]] = {
    "none": lambda _, __: None,
    "marginal": lambda _, answers: onto_simplex(answers, float(answers.sum())),
    "prefix": lambda product, answers: monotone(answers, product.query_sets.index(prefix())),
    "clip": lambda _, answers: np.maximum(answers, 0.0),
}


def whole_numbers(product: Product, answers: FloatArray, public: Sequence[PublicCounts] = ()) -> IntArray:
    """The table in whole numbers; a marginal keeps its total, or has the sums that are public."""
    return whole_with_sums(answers, product, public) if product.is_marginal else np.rint(answers).astype(np.int64)


def isotonic(answers: npt.ArrayLike, *, variances: npt.ArrayLike | None = None) -> FloatArray:
    """The nearest answers that do not fall."""
    # Post-processing. The squared distance from the truth, weighted by the variances, never grows.
    from scipy.optimize import isotonic_regression

    values = np.asarray(answers, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise refuse("the answers", f"an array of shape {values.shape}", "a flat array of finite numbers")
    if values.size == 0:
        return values
    spread = np.ones(len(values)) if variances is None else np.asarray(variances, dtype=np.float64)
    if spread.shape != values.shape or not (np.isfinite(spread) & (spread > 0)).all():
        raise refuse("the variances", f"an array of shape {spread.shape}", f"{len(values)} finite numbers above 0")
    return np.asarray(isotonic_regression(values, weights=1 / spread).x)
