"""The law of K-norm noise.

Variances of its totals and cells, and quantiles of a cell.

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
from statistics import NormalDist

import numpy as np

from leastnoise._error._intervals import interval_multiplier
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import (
    Measurements,
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
        """Return s, the variance of a norm-1 contrast in a table of ``size`` cells."""
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
    """Return the logarithm of a polynomial at exp(-1 / scale).

    Its coefficients are at least 0.
    """
    logarithms = [
        math.log(number) - place / scale for place, number in enumerate(numbers) if number
    ]
    top = max(logarithms)
    return float(top) + math.log(math.fsum(math.exp(each - top) for each in logarithms))


@lru_cache(maxsize=64)
def _squares(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], Mapping[int, tuple[int, ...]]]:
    """Return the numerators g of t^2, and of z^2 by table size.

    z is the noise of a cell.
    """
    degree = dimensions(sizes) + 2
    half = degree // 2
    number = Counter(sizes)
    counts = {size: count_grid(size, half) for size in number}
    squares = {size: _square_grid(size, half) for size in number}
    total = [0] * (half + 1)
    cells = {size: [0] * (half + 1) for size in number}
    for negative in range(half // 2 + 1):
        for positive in range(negative, half - negative + 1):
            place = positive + negative
            if positive == negative:
                often = 1
            else:
                often = 2
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
    """Return the numerators of sums over balls from sums over shells.

    The shells are P + Q, up to half the degree.
    """
    balls = np.array(shells, object)
    balls[1:] += np.array(shells[:-1], object)
    first = divide_out(balls, degree + 1)
    mirrored = first[: (degree + 1) // 2][::-1]
    return tuple(int(number) for number in (*first, *mirrored))


def _square_grid(cells: int, most: int) -> WholeNumbers:
    """Return the sums of the squared first cell for all P and Q.

    The grid of P and Q is the grid of `count_grid`.
    """
    half = most // 2 + 1
    if cells == 1:  # the only cell is the total
        places = np.array(range(most + 1), object)
        return np.asarray((places[:, None] - places[None, :half]) ** 2)
    # A cell's squares have the power series x (1 + x) / (1 - x)^3 plus the same in y, each of the
    # others (1 - x y) / ((1 - x) (1 - y)).
    weak = binomial_column(cells - 1, most)
    long = binomial_column(cells + 2, most)
    squares = np.zeros(most + 1, object)
    squares[1:] += long[:-1]
    squares[2:] += long[:-2]
    outer = np.multiply.outer
    return subtract_common(outer(squares, weak[:half]) + outer(weak, squares[:half]), cells - 2)


@lru_cache(maxsize=16)
def _log_grids(sizes: tuple[int, ...], most: int) -> Mapping[int, tuple[FloatArray, FloatArray]]:
    """Return, by size, log F(P, Q) of a table, and of one with a cell less.

    In floating point, for all P and Q up to ``most``. Without cells only P = Q has a table.
    """
    # One more cell multiplies the power series by 1 + x / (1 - x) + y / (1 - y): sums of what is
    # before along both axes. Nothing is subtracted, so no digits are lost.
    grids: dict[int, tuple[FloatArray, FloatArray]] = {}
    grid = np.eye(most + 1)
    shift = 0.0
    with np.errstate(divide="ignore"):
        for size in range(1, max(sizes) + 1):
            more = grid.copy()
            more[1:] += np.cumsum(grid[:-1], axis=0)
            more[:, 1:] += np.cumsum(grid[:, :-1], axis=1)
            if size in sizes:
                grids[size] = np.log(more) + shift, np.log(grid) + shift
            top = float(more.max())
            grid = more / top
            shift = shift + math.log(top)
    return grids


def _law(sizes: Sequence[int], scale: float, most: int) -> FloatArray:
    """Return the probabilities of P and Q.

    Given P and Q, all tables are uniform and independent.
    """
    # The ball of P + Q in proportion to q^(P + Q) W(P, Q), as the points of norm m are the points of
    # P + Q = m and m - 1.
    grids = _log_grids(tuple(sorted(set(sizes))), most)
    steps = np.arange(most + 1.0)
    logarithms = -np.add.outer(steps, steps) / scale
    for size, number in Counter(sizes).items():
        logarithms = logarithms + number * grids[size][0]
    law = np.exp(logarithms - logarithms.max())
    return np.asarray(law / law.sum())


def _grid_reach(sizes: Sequence[int]) -> float:
    """Return a bound on P and Q, in noise scales, that is hardly ever exceeded."""
    free = dimensions(sizes)
    return free + 6 * math.sqrt(free) + 16


_COARSE = 128  # P and Q for comparing groups


def approximate_variances(sizes: Sequence[int]) -> dict[int, float]:
    """Return about the variance of a cell at scale 1, by the size of its table.

    That of a large scale, where the noise is nearly continuous: good enough to choose groups.
    """
    grids = _log_grids(tuple(sorted(set(sizes))), _COARSE)
    scale = _COARSE / _grid_reach(sizes)
    law = _law(sizes, scale, _COARSE)
    steps = np.arange(_COARSE + 1.0)
    squares = np.maximum(np.subtract.outer(steps, steps), 0.0) ** 2
    variances = {}
    for size in set(sizes):
        tables, fewer = grids[size]
        top = fewer.max()
        others = np.exp(fewer - top)
        sums = squares @ others + others @ squares.T
        with np.errstate(invalid="ignore"):
            mean = np.where(law > 0, np.exp(top - tables) * sums, 0.0)
        variances[size] = float((law * mean).sum()) / scale**2
    return variances


# P and Q for quantiles; fewer where tables are long
_FINE = 512
_FINE_CELLS = 2**18
_LEAST_STD = 10.0  # of a cell, on a grid coarser than the noise


@lru_cache(maxsize=64)
def cell_multiplier(sizes: tuple[int, ...], scale: Fraction, level: float) -> float | None:
    """Return the standard errors that cover a cell's noise at a level.

    The interval also has half a step of the noise at each end.

    From the law of a cell; the largest over the tables. None if it takes too long to compute.

    Args:
        sizes: the numbers of cells of the tables, ascending.
        scale: the noise scale, in rows.
        level: the probability with which the noise is covered.
    """
    most = min(_FINE, _FINE_CELLS // max(sizes))
    reach = _grid_reach(sizes)
    is_exact = reach * float(scale) <= most
    if is_exact:
        most = math.ceil(reach * float(scale)) + 1
        used = scale
    else:
        used = Fraction(most / reach)
    stds = {
        size: math.sqrt(variance) for size, variance in k_norm_variances(sizes, used).cells.items()
    }
    if not is_exact and min(stds.values()) < _LEAST_STD:
        return None
    law = _law(sizes, float(used), most)
    grids = _log_grids(tuple(sorted(set(sizes))), most)
    # On a coarser grid a step is added: the quantile of the noise itself lies below that.
    if is_exact:
        step = -0.5
    else:
        step = 0.5
    return max(
        max(0.0, _cell_quantile(law, grids[size], level) + step) / std for size, std in stds.items()
    )


def _cell_quantile(law: FloatArray, grids: tuple[FloatArray, FloatArray], level: float) -> int:
    """Return the least c with P(-c <= cell <= c) of at least the level."""
    tables, fewer = grids
    top = fewer.max()
    beyond = np.cumsum(np.exp(fewer - top), axis=0)  # of P - c and less: the cell is at least c
    with np.errstate(invalid="ignore"):
        weights = np.where(law > 0, law * np.exp(top - tables), 0.0)

    def outside(reach: int) -> float:  # probability of a cell above ``reach`` or below minus it
        return 2 * float((weights[reach + 1 :] * beyond[: len(law) - reach - 1]).sum())

    low = 0
    high = len(law) - 1
    while low < high:
        middle = (low + high) // 2
        if outside(middle) * (1 + 1e-9) <= 1 - level:
            high = middle
        else:
            low = middle + 1
    return low


def measured_multiplier(plan: Measurements, level: float) -> float:
    """Return the half width of a plan's interval in standard errors.

    Where all noise is K-norm noise it is the larger of the quantiles of the normal and of a cell:
    totals and differences of cells have shorter tails. To cover small noise, add half a step.
    """
    general = interval_multiplier(plan.noise, level)
    groups = plan.k_norm_groups()
    if sum(map(len, groups.values())) < len(plan.blocks):
        return general
    multipliers = [NormalDist().inv_cdf(0.5 + level / 2)]
    for group in groups.values():
        sizes = tuple(sorted(plan.blocks[index].rows for index in group))
        multiplier = cell_multiplier(sizes, plan.blocks[group[0]].scale, level)
        multipliers.append(general if multiplier is None else min(multiplier, general))
    return max(multipliers)


def noise_name(plan: Measurements) -> str:
    """Return the name of the noise of a plan, as reports and manifests have it."""
    grouped = sum(map(len, plan.k_norm_groups().values()))
    if not grouped:
        return plan.noise.value
    if grouped == len(plan.blocks):
        return "k_norm"
    return "laplace_and_k_norm"
