"""The probability law of K-norm noise.

This file computes the variances of the noise in totals and cells, and the quantiles of the noise in
a cell.

All tables of a group have the same noise t in their totals. Let z be the noise of a table of n
cells. Then t / n and the differences z - t / n from the mean are uncorrelated, and so are
differences in different tables. The covariance of z is T / n^2 J + s (I - J / n), where T is the
variance of t. So a group is equivalent to separate measurements of the total, whose variance is T,
and of the contrasts of each table, whose variance is s (docs/mathematics.md, section 10).

Source: PROOFS-shared-total.md, which counts the points of the exact distribution on integers.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from leastnoise._error._noise_intervals import interval_multiplier
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Operator, dense
from leastnoise._trusted.measurements import (
    Measurements,
    WholeNumbers,
    ball_count_numerators,
    count_tables_up_to,
    lattice_dimension,
    multiply_by_one_minus_x,
)
from leastnoise._workload import Product

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KNormVariances:
    """The variances of the total and of the cells under K-norm noise."""

    total: float
    cells: Mapping[int, float]  # the variance of a cell, by the number of cells of its table

    def contrast(self, cells_of_table: int) -> float:
        """Return the variance of a contrast of norm 1 in a table."""
        return (self.cells[cells_of_table] - self.total / cells_of_table**2) / (
            1 - 1 / cells_of_table
        )


@lru_cache(maxsize=256)
def k_norm_variances(sizes: tuple[int, ...], scale: Fraction) -> KNormVariances:
    """Return the exact variances of K-norm noise for tables of some sizes.

    Args:
        sizes: the numbers of cells of the tables, ascending.
        scale: the noise scale, in rows.

    >>> k_norm_variances((2, 2), Fraction(1)).total < k_norm_variances((2, 2), Fraction(2)).total
    True
    """
    # Let B_m be the ball of norm m, D its dimension, and h and g polynomials. In m, the sums over
    # B_m of 1 and of z^2 have the generating functions h(x) / (1 - x)^(D + 1) and
    # g(x) / (1 - x)^(D + 3). So the variance is g(q) / (h(q) (1 - q)^2).
    ratio = -math.expm1(-1 / scale)
    weights = _log_polynomial(ball_count_numerators(sizes), scale)
    total, cells = _square_numerators(sizes)

    def variance(numbers: Sequence[int]) -> float:
        """Return the variance from the numerators of its generating function."""
        return math.exp(_log_polynomial(numbers, scale) - weights) / ratio**2

    return KNormVariances(variance(total), {size: variance(cells[size]) for size in cells})


def _log_polynomial(coefficients: Sequence[int], scale: Fraction) -> float:
    """Return the log of a polynomial evaluated at exp(-1 / scale)."""
    logarithms = [
        math.log(number) - position / scale
        for position, number in enumerate(coefficients)
        if number
    ]
    top = max(logarithms)
    return float(top) + math.log(math.fsum(math.exp(each - top) for each in logarithms))


@lru_cache(maxsize=64)
def _square_numerators(
    sizes: tuple[int, ...],
) -> tuple[tuple[int, ...], Mapping[int, tuple[int, ...]]]:
    """Return numerators of the generating functions of squared totals and cells."""
    degree = lattice_dimension(sizes) + 2
    half = degree // 2
    number = Counter(sizes)
    counts = {size: count_tables_up_to(size, half) for size in number}
    squares = {size: _square_grid(size, half) for size in number}
    # The sums are grouped by P + Q. By symmetry in P and Q, only P >= Q is computed.
    totals = np.zeros(half + 1, object)
    cells = {size: np.zeros(half + 1, object) for size in number}
    for negative in range(half // 2 + 1):
        positive = slice(negative, half + 1 - negative)
        shells = slice(2 * negative, half + 1)
        differences = np.array(range(half + 1 - 2 * negative), object)
        multiplicity = np.where(differences == 0, 1, 2).astype(object)
        tables = {size: counts[size][positive, negative] for size in number}
        points = multiplicity * math.prod(tables[size] ** times for size, times in number.items())
        totals[shells] += points * differences**2
        for size in number:
            cells[size][shells] += points // tables[size] * squares[size][positive, negative]
    return _numerators(totals, degree), {
        size: _numerators(sums, degree) for size, sums in cells.items()
    }


def _numerators(shells: WholeNumbers, degree: int) -> tuple[int, ...]:
    """Convert sums over shells to generating-function numerators of balls."""
    balls = shells.copy()
    balls[1:] += shells[:-1]
    first = multiply_by_one_minus_x(balls, degree + 1)
    mirrored = first[: (degree + 1) // 2][::-1]
    return tuple(int(number) for number in (*first, *mirrored))


def _square_grid(cells: int, largest_sum: int) -> WholeNumbers:
    """Return sums of the squared first cell over tables, by their sums P and Q.

    P is the sum of a table's positive cells, and Q is minus the sum of its negative cells.

    Returns:
        Exact sums of shape (largest_sum + 1, largest_sum // 2 + 1).
    """
    half = largest_sum // 2 + 1
    if cells == 1:  # the only cell is the total
        positions = np.array(range(largest_sum + 1), object)
        return np.asarray((positions[:, None] - positions[None, :half]) ** 2)
    # A cell's squares have the power series x (1 + x) / (1 - x)^3 plus the same in y.
    others = count_tables_up_to(cells - 1, largest_sum)
    return _times_squares(others, 0) + _times_squares(others, 1)


def _times_squares(grid: WholeNumbers, axis: int) -> WholeNumbers:
    """Return a power series times u (1 + u) / (1 - u)^3 along an axis."""
    shifted = np.moveaxis(grid, axis, 0)
    squares = np.zeros_like(shifted)
    squares[1:] = shifted[:-1]
    squares[2:] += shifted[:-2]
    for _ in range(3):
        squares = np.add.accumulate(squares, axis=0)
    return np.moveaxis(squares, 0, axis)


@lru_cache(maxsize=16)
def _log_grids(
    sizes: tuple[int, ...], largest_sum: int
) -> Mapping[int, tuple[FloatArray, FloatArray]]:
    """Return, by number of cells, the log number of tables with sums P and Q.

    The result has two arrays for each size; the second one is for tables with one cell fewer.

    The numbers are floats, for all P and Q up to ``largest_sum``. There is one table without cells,
    and its sums are P = Q = 0.
    """
    # Each further cell multiplies the power series by 1 + x / (1 - x) + y / (1 - y), which adds
    # cumulative sums along both axes. Nothing is subtracted, so no digits are lost.
    grids: dict[int, tuple[FloatArray, FloatArray]] = {}
    grid = np.eye(largest_sum + 1)
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


Grids = Mapping[int, tuple[FloatArray, FloatArray]]


def _sum_probabilities(grids: Grids, sizes: Sequence[int], scale: float) -> FloatArray:
    """Return the joint distribution of the sums P and Q of the noise."""
    # The points of norm m are the points with P + Q = m and m - 1. So the ball has the norm P + Q
    # with a probability in proportion to q^(P + Q) W(P, Q).
    steps = np.arange(float(len(grids[sizes[0]][0])))
    logarithms = -np.add.outer(steps, steps) / scale
    for size, number in Counter(sizes).items():
        logarithms = logarithms + number * grids[size][0]
    law = np.exp(logarithms - logarithms.max())
    return np.asarray(law / law.sum())


def _grid_reach(sizes: Sequence[int]) -> float:
    """Return the largest P and Q to consider, in noise scales."""
    free = lattice_dimension(sizes)
    return free + 6 * math.sqrt(free) + 16


# Nodes of the quadrature; more nodes change the variances by less than 1e-9.
_QUADRATURE_NODES = 256


class LargeScaleVariances:
    """Variances of K-norm noise in units of b^2, in the limit of large scales b.

    Let P = s (1 + r) / 2 and Q = s (1 - r) / 2. By the leading terms of the power series of J2, the
    number of tables of n cells tends to s^(n - 1) v_n(r). So s has a gamma distribution, and r has
    a density in proportion to the product of the v_n(r).

    Args:
        sizes: the numbers of cells of all tables that a group may contain.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        nodes, weights = np.polynomial.legendre.leggauss(_QUADRATURE_NODES)
        self._totals = nodes  # r
        self._log_weights = np.log(weights)
        self._log_tables = {size: _log_volume(size, nodes) for size in set(sizes)}
        self._squares = {
            size: np.exp(_log_square(size, nodes) - self._log_tables[size]) for size in set(sizes)
        }

    def of(self, sizes: Sequence[int]) -> KNormVariances:
        """Return the variances for a group of tables with these numbers of cells."""
        logarithms = self._log_weights.copy()
        for size, number in Counter(sizes).items():
            logarithms += number * self._log_tables[size]
        law = np.exp(logarithms - logarithms.max())
        law /= law.sum()
        degrees = lattice_dimension(sizes) + 1
        square = degrees * (degrees + 1.0)  # the mean of s^2
        return KNormVariances(
            square * float(law @ self._totals**2),
            {size: square * float(law @ self._squares[size]) for size in set(sizes)},
        )


def _log_volume(cells_of_table: int, totals: FloatArray) -> FloatArray:
    """Return the log volume of tables of norm 1, at each total r.

    The result omits an additive constant.
    """
    return _log_sum(cells_of_table - 1, 0, totals)


def _log_square(cells_of_table: int, totals: FloatArray) -> FloatArray:
    """Return the log integral of a squared cell, at each total r.

    The integral is over tables of norm 1. The result omits an additive constant.
    """
    if cells_of_table == 1:  # the only cell is the total
        return np.log(totals**2)
    # The squares of a cell have the leading terms 2 / (1 - x)^3 and 2 / (1 - y)^3.
    both = np.logaddexp(
        _log_sum(cells_of_table - 2, 3, totals),
        _log_sum(cells_of_table - 2, 3, -totals),
    )
    return np.asarray(math.log(2) + both)


def _log_sum(degree: int, power_shift: int, totals: FloatArray) -> FloatArray:
    """Return the log of sum C(d, i) p^(d-i+c) q^i / ((d-i+c)! i!).

    Here p = (1 + r) / 2 and q = (1 - r) / 2 for each total r, and c is ``power_shift``.
    """
    from scipy.special import gammaln, logsumexp

    positions = np.arange(degree + 1.0)[:, None]
    powers = degree - positions + power_shift
    terms = (
        gammaln(degree + 1)
        - gammaln(positions + 1)
        - gammaln(degree - positions + 1)
        - gammaln(powers + 1)
        - gammaln(positions + 1)
        + powers * np.log((1 + totals) / 2)
        + positions * np.log((1 - totals) / 2)
    )
    return np.asarray(logsumexp(terms, axis=0))


# Maximum number of values of P and Q for quantiles; fewer for long tables.
_MOST_QUANTILE_NODES = 512
_FINE_CELLS = 2**18  # maximum number of grid points times cells of a table
_LEAST_STD = 10.0  # least standard deviation of a cell, in steps of a coarser grid


@lru_cache(maxsize=64)
def cell_multiplier(sizes: tuple[int, ...], scale: Fraction, level: float) -> float | None:
    """Return the half width of a cell's interval in standard errors, or None.

    The result is computed from the distribution of a cell, and is the maximum over all tables. The
    result is None if the computation would take too long.

    Args:
        sizes: the numbers of cells of the tables, ascending.
        scale: the noise scale, in rows.
        level: the probability that the interval covers the noise.
    """
    most = min(_MOST_QUANTILE_NODES, _FINE_CELLS // max(sizes))
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
    grids = _log_grids(tuple(sorted(set(sizes))), most)
    law = _sum_probabilities(grids, sizes, float(used))
    # On a coarser grid, one step is added, because the quantile of the noise lies below the next
    # grid point.
    step = -0.5 if is_exact else 0.5
    return max(
        max(0.0, _cell_quantile(law, grids[size], level) + step) / std for size, std in stds.items()
    )


def _cell_quantile(
    sum_probabilities: FloatArray, grids: tuple[FloatArray, FloatArray], level: float
) -> int:
    """Return the least c such that P(abs(cell noise) <= c) >= ``level``."""
    tables, fewer = grids
    top = fewer.max()
    # Given sums up to P - c, the cell is at least c.
    beyond = np.cumsum(np.exp(fewer - top), axis=0)
    with np.errstate(invalid="ignore"):
        weights = np.where(sum_probabilities > 0, sum_probabilities * np.exp(top - tables), 0.0)

    def outside(reach: int) -> float:
        """Return the probability that the absolute cell noise exceeds ``reach``."""
        return 2 * float(
            (weights[reach + 1 :] * beyond[: len(sum_probabilities) - reach - 1]).sum()
        )

    low = 0
    high = len(sum_probabilities) - 1
    while low < high:
        middle = (low + high) // 2
        if outside(middle) * (1 + 1e-9) <= 1 - level:
            high = middle
        else:
            low = middle + 1
    return low


def measured_multiplier(plan: Measurements, level: float, products: Iterable[Product]) -> float:
    """Return the half width of intervals of answers, in standard errors.

    For cells of tables with K-norm noise, the half width is the larger of two quantiles: the
    quantile of the normal distribution and the quantile of a cell. For all other answers, the
    quantile for independent noise is used. For discrete noise of small scale, add half a step to
    the half width.

    Args:
        plan: the measured queries.
        level: the probability that the interval covers an answer's noise.
        products: the products for whose answers intervals are needed.
    """
    general = interval_multiplier(plan.noise, level)
    groups = plan.k_norm_groups()
    if not groups or not _are_measured_cells(plan, products):
        return general
    multipliers = [NormalDist().inv_cdf(0.5 + level / 2)]
    for group in groups.values():
        sizes = tuple(sorted(plan.blocks[index].rows for index in group))
        multiplier = cell_multiplier(sizes, plan.blocks[group[0]].scale, level)
        multipliers.append(general if multiplier is None else min(multiplier, general))
    return max(multipliers)


def _are_measured_cells(plan: Measurements, products: Iterable[Product]) -> bool:
    """Return whether every answer of products is a cell with K-norm noise."""
    operators: dict[Names, Operator] = {}
    for block in plan.blocks:
        if block.k_norm_group is None or block.attributes in operators:
            return False
        operators[block.attributes] = block.factors[0].operator
    return all(
        product.measure is None
        and product.attributes in operators
        and _has_rows_of(product.operators[0], operators[product.attributes])
        for product in products
    )


def _has_rows_of(requested: Operator, measured: Operator) -> bool:
    """Return whether all rows of one operator are also rows of another."""
    if requested == measured:
        return True
    if requested.rows > measured.rows:
        return False
    rows = {row.tobytes() for row in dense(measured)}
    return all(row.tobytes() in rows for row in dense(requested))


def noise_name(plan: Measurements) -> str:
    """Return the catalogue name of a plan's noise, for reports and manifests."""
    grouped = sum(map(len, plan.k_norm_groups().values()))
    if not grouped:
        return plan.noise.value
    if grouped == len(plan.blocks):
        return "k_norm"
    return "laplace_and_k_norm"
