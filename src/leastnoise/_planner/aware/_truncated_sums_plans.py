"""A workload of sums under limits: what is asked along the number, and what to measure."""

import math
from collections.abc import Callable

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import Dense, Total
from leastnoise._measurements import MOST_ROWS, Factor, Limits
from leastnoise._planner._strategy import Strategy
from leastnoise._planner.aware._truncated_sums_limited import fit_limited_tree
from leastnoise._planner.aware._truncated_sums_threshold import quick_noise, weighted_gram
from leastnoise._planner.line._cell_order import all_alike, merge_equal_cells
from leastnoise._planner.line._factors import MOST_DENSE, Fit, Fitted, _tree, fitted, gram_of, level_tree
from leastnoise._planner.line._gaussian_optimal import fit_gaussian_optimum
from leastnoise._planner.line._gram import Gram, ScaledSum
from leastnoise._planner.line._p_identity import fit_p_identity
from leastnoise._planner.tables._tables import Candidates, asked_tables, factor_along, weighted_strategy
from leastnoise._workload import Workload, identity

_WORTH = 0.999
_MOST_JOINT = 2**24
_MOST_OPTIMUM = {1: 1024, 2: 512}  # cells: seconds
_ROOM = 2**62 // MOST_ROWS
_LEAST_BITS = 6
_NOTHING = 1e-9  # of a row's coefficients
_BESIDE = 1e-4  # of the budget
HEAVIEST = {1: 2**20, 2: 2**16}
"""Weights of rows by norm: sums of squared weights times squared coefficients must stay below 2^63."""


def asked_along(workload: Workload, attribute: str) -> tuple[Gram, Gram]:
    """The Gram matrices of all queries along one attribute: for noise, and for losses."""
    kind = workload.domain.kind(attribute)
    noise: list[tuple[float, Gram]] = []
    loss: list[tuple[float, Gram]] = []
    for product in workload:
        names = product.attributes
        operator = product.operators[names.index(attribute)] if attribute in names else Total(kind.size)
        groups, gram = product.rows // operator.rows, gram_of(operator)
        noise.append((product.importance * groups, gram))
        loss.append((product.importance / groups, gram))
    return ScaledSum(tuple(noise)), ScaledSum(tuple(loss))


def noise_along(workload: Workload, attribute: str, norm: int) -> Callable[[IntArray], float]:
    """About the unit RMSE of the best strategy along a number, as a function of the limits of its cells.

    Cells that no query tells apart are planned as one, and so they are here: 10 sums over 1000 cells have the noise of 10 cells.
    """
    small, group = _merged(workload, attribute)
    return lambda limits: quick_noise(small, _largest(limits, group, small.size), norm)


def limited_strategy(workload: Workload, attribute: str, limits: IntArray, norm: int) -> Strategy:
    """What to measure for sums under limits along a number, with level trees along other attributes.

    Along the number a hierarchy made for the limits or, up to 1024 cells (512 under Gaussian noise), the optimum on the weighted workload,
    whichever has the least error.
    """
    small, group = _merged(workload, attribute)
    merged = _largest(limits, group, small.size)

    def own_limits(gram: Gram) -> IntArray:
        return next((one for one in (limits, merged) if len(one) == gram.size), np.full(gram.size, int(limits.max())))

    def hierarchy(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
        if name != attribute:
            return level_tree(name, gram, norm, bits)
        found = fit_limited_tree(gram, own_limits(gram), norm)
        return _tree(name, gram.size, found.widths, found.scales)

    def optimum(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
        return _optimum(name, gram, own_limits(gram), norm) if name == attribute else hierarchy(name, gram, norm, bits)

    ways: list[Fit] = [hierarchy]
    if len(limits) <= _MOST_OPTIMUM[norm] and int(limits.max()) < _ROOM >> _LEAST_BITS and any(attribute in p.attributes for p in workload):
        ways.append(optimum)
    return min((_with(way, workload, attribute, limits, norm) for way in ways), key=lambda strategy: strategy.error)


def _with(fit: Fit, workload: Workload, attribute: str, limits: IntArray, norm: int) -> Strategy:
    along = {}
    for name in workload.domain.names:
        kinds = {q for p in workload for one, q in zip(p.attributes, p.query_sets, strict=True) if one == name}
        if kinds - {identity()} or (kinds and name == attribute):
            along[name] = fitted(fit, name, asked_along(workload, name)[0], norm, 20).factor
    # The joint table only where it is worth its room: beside tables that tell all that is asked, one of hardly any weight gains nothing,
    # and its noise would be too large to be drawn exactly.
    limited = Limits(limits, attribute)
    apart, together = asked_tables(workload), asked_tables(workload)
    for sets in together.values():
        joint = tuple(one for one in workload.domain.names if any(one in names for names in sets))
        if joint not in sets and math.prod(factor_along(workload.domain, one, along).operator.rows for one in joint) <= _MOST_JOINT:
            sets.append(joint)
    alone = weighted_strategy("truncated_sums", workload, along, Candidates(apart), norm, limits=limited)
    if apart == together:
        return alone
    joined = weighted_strategy("truncated_sums", workload, along, Candidates(together), norm, limits=limited)
    return joined if joined.error < _WORTH * alone.error else alone


def _optimum(name: str, gram: Gram, limits: IntArray, norm: int) -> Fitted:
    """The best strategy on W T, in whole coefficients on the sums themselves."""
    return Fitted(Factor((name,), *whole_rows(best_rows(gram, limits, norm), limits, norm)))


def best_rows(gram: Gram, limits: IntArray, norm: int, effort: float = 0.3) -> FloatArray:
    """The best strategy of sensitivity 1 on W T that determines every sum, in real coefficients on the sums themselves, shape (rows, n).

    Queries of lower rank, which are best under Gaussian noise where few are asked for, have a ten-thousandth of the budget on every cell
    besides: rounded to whole coefficients they would not tell what is asked any more.
    """
    if gram.size == 1:
        return 1 / limits[None, :]
    weighted = weighted_gram(gram, limits)
    rows = fit_p_identity(weighted, effort=effort).matrix() if norm == 1 else fit_gaussian_optimum(weighted).factor
    rows = rows[np.abs(rows).max(axis=1) > _NOTHING]
    if norm == 2 and np.linalg.matrix_rank(rows) < gram.size:
        rows = np.vstack([rows * math.sqrt(1 - _BESIDE), math.sqrt(_BESIDE) * np.eye(gram.size)])
    return np.asarray(rows / limits)


def whole_rows(real: FloatArray, limits: IntArray, norm: int) -> tuple[Dense, IntArray]:
    """Rows in whole coefficients, and their weights.

    Every row has bits of its own, as many as 2^32 rows of the largest limit leave, and its scale as a weight.
    """
    bits = min(12 if norm == 1 else 8, (_ROOM // int(limits.max())).bit_length() - 2)
    weights = np.abs(real).max(axis=1) / 2**bits
    whole = np.rint(real / weights[:, None]).astype(np.int64)
    return Dense(whole), np.maximum(1, np.rint(weights / weights.max() * HEAVIEST[norm])).astype(np.int64)


def _merged(workload: Workload, attribute: str) -> tuple[Gram, IntArray]:
    """What is asked of the groups of cells that no query tells apart, which are planned as one, and the group of every cell."""
    gram, _ = asked_along(workload, attribute)
    if gram.size > MOST_DENSE and not all_alike(gram):
        return gram, np.arange(gram.size)
    return merge_equal_cells(gram)


def _largest(limits: IntArray, group: IntArray, size: int) -> IntArray:
    """The largest limit of each group."""
    merged = np.zeros(size, dtype=np.int64)
    np.maximum.at(merged, group, limits)
    return merged
