"""The law of K-norm noise: variances of its totals and cells, and quantiles of a cell.

All tables of a group have the same noisy total t. With z a table's noise of n cells, t / n and the
differences z - t / n from the mean are uncorrelated, and so are the differences in different
tables: the covariance of z is T / n^2 J + s (I - J / n), with T the variance of t. So a group tells
what its total with the variance T, and contrasts of each table with the variance s, would tell by
themselves (docs/mathematics.md, section 10).

Source: the exact law on whole numbers; PROOFS-shared-total.md counts its points.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import (
    WholeNumbers,
    binomial_column,
    count_grid,
    dimensions,
    divide_out,
    numerators,
    subtract_common,
)


@dataclass(frozen=True, slots=True)
class KNormVariances:
    """The variances of one draw of K-norm noise."""

    total: float
    cells: Mapping[int, float]  # of a cell, by the number of cells of its table

    def contrast(self, size: int) -> float:
        """Return s, the variance of a contrast of norm 1 in a table of ``size`` cells."""
        return (self.cells[size] - self.total / size**2) / (1 - 1 / size)


@lru_cache(maxsize=256)
def k_norm_variances(sizes: tuple[int, ...], scale: Fraction) -> KNormVariances:
    """Return the exact variances of K-norm noise.

    Args:
        sizes: the numbers of cells of the tables, ascending.
        scale: the noise scale, in rows.

    >>> k_norm_variances((2, 2), Fraction(1)).total < k_norm_variances((2, 2), Fraction(2)).total
    True
    """
    # With points counted by m, the sums over B_m of 1 and of z^2 have the generating functions
    # h(x) / (1 - x)^(D + 1) and g(x) / (1 - x)^(D + 3): the variance is g(q) / (h(q) (1 - q)^2).
    ratio = -math.expm1(-1 / scale)
    weights = _at(numerators(sizes), scale)
    total, cells = _squares(sizes)

    def variance(numbers: Sequence[int]) -> float:
        return math.exp(_at(numbers, scale) - weights) / ratio**2

    return KNormVariances(variance(total), {size: variance(cells[size]) for size in cells})


def _at(numbers: Sequence[int], scale: Fraction) -> float:
    """Return the logarithm of a polynomial at exp(-1 / scale), its coefficients at least 0."""
    logarithms = [
        math.log(number) - place / scale for place, number in enumerate(numbers) if number
    ]
    top = max(logarithms)
    return float(top) + math.log(math.fsum(math.exp(each - top) for each in logarithms))


@lru_cache(maxsize=64)
def _squares(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], Mapping[int, tuple[int, ...]]]:
    """Return the numerators g of t^2, and of a cell's z^2 by the size of its table."""
    degree = dimensions(sizes) + 2
    half = degree // 2
    number = Counter(sizes)
    counts = {size: count_grid(size, half) for size in number}
    squares = {size: _square_grid(size, half) for size in number}
    total = [0] * (half + 1)
    cells = {size: [0] * (half + 1) for size in number}
    for negative in range(half // 2 + 1):
        for positive in range(negative, half - negative + 1):
            place, often = positive + negative, 1 if positive == negative else 2
            of_size = {size: counts[size][positive, negative] for size in number}
            points = often * math.prod(of_size[size] ** times for size, times in number.items())
            total[place] += points * (positive - negative) ** 2
            for size in number:
                others = points // of_size[size]
                cells[size][place] += others * squares[size][positive, negative]
    return _numerators(total, degree), {
        size: _numerators(sums, degree) for size, sums in cells.items()
    }


def _numerators(shells: Sequence[int], degree: int) -> tuple[int, ...]:
    """Return the numerators of sums over balls, from those by P + Q up to half the degree."""
    balls = np.array(shells, object)
    balls[1:] += np.array(shells[:-1], object)
    first = divide_out(balls, degree + 1)
    mirrored = first[: (degree + 1) // 2][::-1]
    return tuple(int(number) for number in (*first, *mirrored))


def _square_grid(cells: int, most: int) -> WholeNumbers:
    """Return the sums of the square of the first cell, for all P and Q as `count_grid` does."""
    half = most // 2 + 1
    if cells == 1:  # the only cell is the total
        places = np.array(range(most + 1), object)
        return np.asarray((places[:, None] - places[None, :half]) ** 2)
    # A cell's squares have the power series x (1 + x) / (1 - x)^3 plus the same in y, each of the
    # others (1 - x y) / ((1 - x) (1 - y)).
    weak, long = binomial_column(cells - 1, most), binomial_column(cells + 2, most)
    squares = np.zeros(most + 1, object)
    squares[1:] += long[:-1]
    squares[2:] += long[:-2]
    outer = np.multiply.outer
    return subtract_common(
        outer(squares, weak[:half]) + outer(weak, squares[:half]), cells - 2
    )


_GRID = 128  # of P and Q, on which variances are approximated


@lru_cache(maxsize=16)
def _log_grids(sizes: tuple[int, ...]) -> Mapping[int, tuple[FloatArray, FloatArray]]:
    """Return, by size, log F(P, Q) and the mean square of a cell given P and Q.

    In floating point, for all P and Q up to ``_GRID``.
    """
    # One more cell multiplies the power series by 1 + x / (1 - x) + y / (1 - y): sums of what is
    # before along both axes. Nothing is subtracted, so no digits are lost.
    grids: dict[int, tuple[FloatArray, FloatArray]] = {}
    # No cell but the slack that P and Q have in common: P = Q.
    grid, shift = np.eye(_GRID + 1), 0.0
    steps = np.arange(_GRID + 1.0)
    distances = np.subtract.outer(steps, steps)
    square_sums = np.where(distances > 0, distances, 0.0) ** 2
    for size in range(1, max(sizes) + 1):
        along_x = np.zeros_like(grid)
        along_y = np.zeros_like(grid)
        along_x[1:] = np.cumsum(grid[:-1], axis=0)
        along_y[:, 1:] = np.cumsum(grid[:, :-1], axis=1)
        more = grid + along_x + along_y
        if size in sizes:
            squares = square_sums @ grid + grid @ square_sums.T
            with np.errstate(divide="ignore", invalid="ignore"):
                grids[size] = np.log(more) + shift, np.where(more > 0, squares / more, 0.0)
        top = float(more.max())
        grid, shift = more / top, shift + math.log(top)
    return grids


def approximate_variances(sizes: Sequence[int]) -> dict[int, float]:
    """Return about the variance of a cell at scale 1, by the size of its table.

    That of a large scale, where the noise is nearly continuous: good enough to choose groups.
    """
    grids = _log_grids(tuple(sorted(set(sizes))))
    free = dimensions(sizes)
    scale = _GRID / (free + 5 * math.sqrt(free) + 10)
    norms = np.add.outer(np.arange(_GRID + 1.0), np.arange(_GRID + 1.0))
    logarithms = sum(grids[size][0] * number for size, number in Counter(sizes).items())
    logarithms = logarithms - norms / scale
    law = np.exp(logarithms - logarithms.max())
    law /= law.sum()
    return {size: float((law * grids[size][1]).sum()) / scale**2 for size in set(sizes)}
