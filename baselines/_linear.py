"""Implement mechanisms that measure fixed linear queries, and compute errors of strategies.

The queries are cells, the total, wavelets, and hierarchies with one weight per level.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes
from baselines._noise import laplace
from baselines._tree import even_weights, measure_hierarchy
from leastnoise._families import Gram, column_norm
from leastnoise._trusted.kernel import Entropy


def strategy_rmse(gram: Gram, matrix: Reals | Wholes, norm: int) -> float:
    """Compute the RMSE of a strategy matrix at unit noise, in O(n^3)."""
    real = np.asarray(matrix, float)
    scale = column_norm(real, norm)
    if scale == 0:
        return math.inf
    real = real / scale
    values, vectors = np.linalg.eigh(real.T @ real)
    is_measured = values > values[-1] * gram.size * 1e-15
    direction_weights = np.einsum("ij,ij->i", gram.multiply_rows(vectors.T), vectors.T)
    if direction_weights[~is_measured].sum() > 1e-9 * gram.diagonal().sum():
        return math.inf
    return math.sqrt(
        float((direction_weights[is_measured] / values[is_measured]).sum()) / gram.queries
    )


def cells(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure each cell with noise of scale 1 / epsilon."""
    return laplace(x.reshape(-1), epsilon, entropy).reshape(x.shape).astype(np.float64)


def uniform(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure the total and distribute it evenly.

    The released implementations distribute the true total.
    """
    return np.full(x.shape, laplace(x.sum().reshape(1), epsilon, entropy)[0] / x.size)


def wavelet_coefficients(x: Wholes) -> list[Wholes]:
    """Compute the total and, for each aligned block, its left half minus its right half.

    Zero cells extend the vector to a power of two. The levels are in order from fine to coarse, and
    the total is last.

    >>> [level.tolist() for level in wavelet_coefficients(np.array([5, 1, 2]))]
    [[4, 2], [4], [8]]
    """
    sums = np.zeros(1 << max(len(x) - 1, 0).bit_length(), dtype=np.int64)
    sums[: len(x)] = x
    levels = []
    while len(sums) > 1:
        levels.append(sums[::2] - sums[1::2])
        sums = sums[::2] + sums[1::2]
    return [*levels, sums]


def privelet(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure all Haar coefficients with equal noise, as sums of cells.

    With the paper's weights for averages, the noise is the same.
    """
    levels = wavelet_coefficients(x)
    noisy = laplace(np.concatenate(levels), epsilon, entropy, sensitivity=len(levels)).astype(
        np.float64
    )
    split = np.split(noisy, np.cumsum([len(level) for level in levels])[:-1])
    sums = split[-1]
    for difference in reversed(split[:-1]):
        sums = np.stack([(sums + difference) / 2, (sums - difference) / 2], axis=1).reshape(-1)
    return sums[: len(x)]


def height(size: int, branching: int) -> int:
    """Return the number of levels below the root, computed with integers.

    A floating-point logarithm gives 4 for 125 cells and branching 5.

    >>> height(125, 5), height(126, 5), height(1, 2)
    (3, 4, 0)
    """
    levels = 0
    reach = 1
    while reach < size:
        levels = levels + 1
        reach = reach * branching
    return levels


@cache
def branching_of(size: int) -> int:
    """Return the branching with the smallest average variance of a range.

    The variance is ``(b - 1) h^3 - 2 (b + 1) h^2 / 3`` for h levels.

    >>> branching_of(64), branching_of(1024), branching_of(4096)
    (64, 32, 16)
    """

    def variance(b: int) -> int:
        """Return the variance for a branching, without constant factors."""
        h = height(size, b)
        return 3 * (b - 1) * h**3 - 2 * (b + 1) * h**2

    return min(range(2, max(size, 2) + 1), key=variance)


def chain(size: int, branching: int, *, root: bool) -> tuple[int, ...]:
    """Return the widths of a hierarchy of equal branching.

    >>> chain(9, 3, root=False), chain(9, 3, root=True)
    ((1, 3), (1, 3, 9))
    """
    levels = height(size, branching)
    return tuple(branching**level for level in range(max(1, levels + root)))


def binary_hierarchy(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure all blocks of 1, 2, 4, ... cells with equal noise, then least squares."""
    widths = chain(len(x), 2, root=True)
    return measure_hierarchy(x, even_weights(len(x), widths), widths, epsilon, entropy)


def best_hierarchy(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure the hierarchy with the best branching, without the total."""
    widths = chain(len(x), branching_of(len(x)), root=False)
    return measure_hierarchy(x, even_weights(len(x), widths), widths, epsilon, entropy)


def cells_baseline(dimensions: int) -> Baseline:
    """Return the baseline that adds Laplace noise to cells."""
    return Baseline(
        name="Identity",
        dimensions=dimensions,
        private=True,
        proof="One record changes one cell by 1; the noise has scale 1 / epsilon.",
        source="Dwork, McSherry, Nissim, Smith, TCC 2006",
        mechanism=cells,
    )


def uniform_baseline(dimensions: int) -> Baseline:
    """Return the baseline that measures only the total."""
    return Baseline(
        name="Uniform",
        dimensions=dimensions,
        private=True,
        proof="One record changes the total by 1; the noise has scale 1 / epsilon. The rest is "
        "post-processing.",
        source="Hay, Machanavajjhala, Miklau, Chen, Zhang, SIGMOD 2016 (as a control)",
        mechanism=uniform,
    )


H2 = Baseline(
    name="H2",
    dimensions=1,
    private=True,
    proof="One record changes one node of each level by 1; each of L levels gets epsilon / L.",
    source="Hay, Rastogi, Miklau, Suciu, PVLDB 2010",
    mechanism=binary_hierarchy,
)
HB = Baseline(
    name="HB",
    dimensions=1,
    private=True,
    proof="As H2; the branching depends only on the number of cells.",
    source="Qardaji, Yang, Li, PVLDB 2013",
    mechanism=best_hierarchy,
)
PRIVELET = Baseline(
    name="Privelet",
    dimensions=1,
    private=True,
    proof="One record changes the total and one difference of each level by 1: the sensitivity is "
    "1 + log2 n, and the noise has scale (1 + log2 n) / epsilon.",
    source="Xiao, Wang, Gehrke, ICDE 2010",
    mechanism=privelet,
)
