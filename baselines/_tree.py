"""Measure hierarchies of blocks of cells, and estimate by least squares in two passes.

A hierarchy is a chain of widths ``1 = B_0 < B_1 < ...``, each a multiple of the previous one; a
node of level l is a block of B_l cells, and the last block may be shorter. A node of weight w out
of UNIT gets noise of scale ``UNIT / (w epsilon)``; a node of weight 0 is not measured.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from baselines._baseline import Number, Reals, Wholes
from baselines._noise import weighted_laplace
from leastnoise._trusted.check import InternalError
from leastnoise._trusted.kernel import Entropy

UNIT = 2**20
# Variance of a cell without a measurement, so that blocks around it are distributed evenly.
_UNKNOWN = 1e30


def sums_of_blocks(values: NDArray[Number], width: int) -> NDArray[Number]:
    """Sum consecutive blocks of ``width`` values.

    >>> sums_of_blocks(np.arange(5), 2).tolist()
    [1, 5, 4]
    """
    return np.asarray(np.add.reduceat(values, np.arange(0, len(values), width)))


def even_weights(size: int, widths: Sequence[int]) -> list[Wholes]:
    """Return equal weights for all nodes: UNIT over the number of levels, rounded down.

    >>> [level.tolist() for level in even_weights(3, (1, 2))] == [[UNIT // 2] * 3, [UNIT // 2] * 2]
    True
    """
    return [np.full(-(-size // width), UNIT // len(widths), dtype=np.int64) for width in widths]


def whole_weights(scales: Sequence[Reals]) -> list[Wholes]:
    """Convert scales to integer weights, rounded down.

    The scales along each path add up to at most 1, so the weights add up to at most UNIT.

    >>> whole_weights([np.array([0.75, 0.75]), np.array([0.25])])[1].tolist()
    [262144]
    """
    return [np.floor(np.asarray(scale) * UNIT).astype(np.int64) for scale in scales]


def spent_weight(weights: Sequence[Wholes], widths: Sequence[int]) -> int:
    """Return the largest sum of weights above any cell: the sensitivity times UNIT.

    >>> spent_weight([np.array([3, -4]), np.array([2])], (1, 2))
    6
    """
    size = len(weights[0])
    paths = sum(
        np.repeat(np.abs(level), width)[:size] for level, width in zip(weights, widths, strict=True)
    )
    return int(np.max(paths))


def measure_hierarchy(
    x: Wholes, weights: Sequence[Wholes], widths: Sequence[int], epsilon: Fraction, entropy: Entropy
) -> Reals:
    """Measure a hierarchy and return the least squares estimate of the cells.

    Args:
        x: counts, int64 of shape (n,); private.
        weights: the weights of the nodes of each level, at least 0; public.
        widths: the chain; public.
        epsilon: cost of the measurement.
        entropy: the source of the noise.

    Returns:
        float64, shape (n,).

    Guarantees: epsilon-DP: a record is in one node of each level, and the weights of these nodes
        add up to at most UNIT; checked in whole numbers.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> measure_hierarchy(
    ...     np.array([3, 4, 5]),
    ...     even_weights(3, (1, 2, 4)),
    ...     (1, 2, 4),
    ...     Fraction(10**6),
    ...     SeededEntropy(1),
    ... ).round(6).tolist()
    [3.0, 4.0, 5.0]
    """
    if min(int(level.min()) for level in weights) < 0 or spent_weight(weights, widths) > UNIT:
        raise InternalError("A hierarchy spends more than its budget; please report it.")
    values = []
    precisions = []
    for level, width in zip(weights, widths, strict=True):
        sums = sums_of_blocks(x, width)
        nodes = np.flatnonzero(level)
        value = np.zeros(len(level))
        precision = np.zeros(len(level))
        value[nodes] = weighted_laplace(sums[nodes], level[nodes], UNIT, epsilon, entropy)
        precision[nodes] = (level[nodes] / UNIT * float(epsilon)) ** 2 / 2
        values.append(value)
        precisions.append(precision)
    return least_squares(values, precisions, widths)


def least_squares(
    values: Sequence[Reals], precisions: Sequence[Reals], widths: Sequence[int]
) -> Reals:
    """Estimate the cells from noisy node values by least squares in two passes.

    Upwards, a node is combined with the sum of its children; downwards, differences are
    distributed.

    Args:
        values: noisy values of the nodes of each level; ignored where the precision is 0.
        precisions: one over the variance of each value.
        widths: the chain.

    >>> least_squares(
    ...     [np.array([1.0, 2.0]), np.array([6.0])], [np.ones(2), np.ones(1)], (1, 2)
    ... ).tolist()
    [2.0, 3.0]
    """
    estimates = [np.where(precisions[0] > 0, values[0], 0.0)]
    spreads = [1 / np.maximum(precisions[0], 1 / _UNKNOWN)]
    sums = []
    widest = []
    for level in range(1, len(widths)):
        ratio = widths[level] // widths[level - 1]
        below = sums_of_blocks(estimates[-1], ratio)
        variance = sums_of_blocks(spreads[-1], ratio)
        share = precisions[level] * variance / (1 + precisions[level] * variance)
        sums.append(below)
        widest.append(variance)
        estimates.append(below + share * (values[level] - below))
        spreads.append(variance / (1 + precisions[level] * variance))
    final = estimates[-1]
    for level in range(len(widths) - 1, 0, -1):
        ratio = widths[level] // widths[level - 1]
        count = len(estimates[level - 1])
        rate = (final - sums[level - 1]) / widest[level - 1]
        final = estimates[level - 1] + np.repeat(rate, ratio)[:count] * spreads[level - 1]
    return np.asarray(final)
