"""Hierarchies for sums under limits that differ from cell to cell: whole coefficients, so they are measured from the records exactly.

A row of cell j adds at most T_j to every block above it, so a tree whose blocks q have scales lambda_q costs max_j T_j * (sum of lambda_q
over the path of j). Where the limits differ, small cells have slack under scales that suit the large ones; here a coarse level of weight w
has lambda_q = w / (largest limit in q), and the cells take all that is left: lambda_j = 1 / T_j - (sum above). In the terms of the paper
that is TaMM on the sums themselves; with equal limits it is a hierarchy with the best weight for every level.

Source: Wu et al. (see ``_truncated_sums``), where TiMM with A is TaMM with A T; the error by the closed form of ``_tree``.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InternalError, refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._planner.line._gram import Gram
from leastnoise._planner.line._tree import block_spread, tree_error

_RATIOS = (4, 6, 8, 12, 16, 24, 32, 48)
_FINE = 2.0**-19  # of the largest scale: what row weights of 20 bits can tell from nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LimitedTree:
    """A hierarchy with one scale a node, for limits that differ.

    Attributes:
        widths: cells in a block of each level, the first 1.
        scales: scales of the nodes of each level; with one unit of noise variance a path costs at most 1.
        rmse: root mean square error per query at noise variance 1, in units of the sums.
    """

    widths: tuple[int, ...]
    scales: tuple[FloatArray, ...]
    rmse: float


def fit_limited_tree(gram: Gram, limits: IntArray, power: int) -> LimitedTree:
    """The best of many chains of widths with one weight a coarse level."""
    amounts = np.asarray(limits, dtype=np.float64)
    if amounts.shape != (gram.size,) or not (amounts >= 1).all():
        raise refuse("the limits of a tree", f"an array of shape {amounts.shape}", f"{gram.size} numbers of at least 1")
    best: tuple[float, tuple[int, ...], FloatArray] | None = None
    for widths in _chains(gram.size, power):
        error, weights = _weighed(gram, widths, amounts, power)
        if best is None or error < best[0] * (1 - 1e-9):
            best = error, widths, weights
    if best is None:  # the chain of the cells alone is always there
        raise InternalError("no chain of widths has an error")
    error, widths, weights = best
    kept = [0, *(level + 1 for level, weight in enumerate(weights) if weight > 1e-3)]
    widths, weights = tuple(widths[level] for level in kept), np.array([weights[level - 1] for level in kept[1:]])
    scales = _scales(widths, weights, amounts, power)
    error, _ = tree_error(gram, widths, [scale**2 for scale in scales], gradient=False)
    return LimitedTree(widths=widths, scales=tuple(scales), rmse=math.sqrt(error / gram.queries))


def _chains(size: int, power: int) -> Iterator[tuple[int, ...]]:
    """The cells alone, and up to three coarser levels; under Gaussian noise whole chains of one branching."""
    yield (1,)
    if power == 2:
        for branching in (2, 3, 4, 6, 8, 16):
            widths = tuple(itertools.takewhile(lambda width: width < 2 * size, (branching**level for level in range(40))))
            if len(widths) > 1:
                yield widths
        return
    for first in _RATIOS:
        if first >= 2 * size:
            return
        yield (1, first)
        for second in _RATIOS[:6]:
            if first * second < 2 * size:
                yield (1, first, first * second)


def _scales(widths: Sequence[int], weights: FloatArray, limits: FloatArray, power: int) -> list[FloatArray]:
    """Scales of all nodes; the weights are powers of the coarse levels' scales times the largest limit, and add up to less than 1."""
    used, coarse = np.zeros(len(limits)), []
    for width, weight in zip(widths[1:], weights, strict=True):
        largest = np.maximum.reduceat(limits, np.arange(0, len(limits), width))
        own = weight / largest**power
        used += block_spread(own, width, len(limits))
        coarse.append(own ** (1 / power))
    return [np.maximum(1 / limits**power - used, 0.0) ** (1 / power), *coarse]


def _weighed(gram: Gram, widths: tuple[int, ...], limits: FloatArray, power: int) -> tuple[float, FloatArray]:
    """The best weights of the coarse levels of a chain, by descent without derivatives: there are few."""
    from scipy.optimize import minimize

    def weights_of(point: FloatArray) -> FloatArray:
        raw = np.exp(np.clip(point, -12, 12))
        return np.asarray(raw / (1 + raw.sum()))

    def error_of(weights: FloatArray) -> float:
        scales = _scales(widths, weights, limits, power)
        if not scales[0].min() > _FINE * max(float(scale.max()) for scale in scales):
            return math.inf
        return tree_error(gram, widths, [scale**2 for scale in scales], gradient=False)[0]

    count = len(widths) - 1
    if not count:
        return error_of(np.zeros(0)), np.zeros(0)
    options = {"maxiter": 50 * count, "xatol": 2e-2, "fatol": 1e-4}
    start = np.full(count, -1.0 if count < 4 else -math.log(count))

    def objective(point: FloatArray) -> float:
        return min(math.log(max(error_of(weights_of(point)), 1e-300)), 1e6)

    found = minimize(objective, start, method="Nelder-Mead", options=options)
    weights = weights_of(found.x)
    return error_of(weights), weights
