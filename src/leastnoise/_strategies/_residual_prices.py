"""Privacy costs of residual spaces, which determine their budget shares.

A residual space is measured by its contrasts with a squared weight u. If all rows of a unit may be
in one cell, measuring the space costs u times the product of 1 - 1 / n_i over the attributes i of
the space.

If a unit has at most m rows in each cell of one attribute G, the unit shifts the space by less. Let
tau be a space without G. Let v be its squared weight, and u the squared weight of tau with G. Let N
be the product of 1 - 1/n_i over tau. Consider a unit with s rows in the n cells of G. The squared
numbers of rows in these cells add up to q(s). The unit shifts the two spaces by at most

    N (u q(s) + (v - u / n) s^2),

where v - u / n is replaced by 0 if it is negative and tau is not empty. The cost of a plan is the
sum of these shifts over all spaces, at the s for which this sum is largest (S3 of
PROOFS-spread.md). The cost and the error are convex in the squared weights. For each s, the best
weights have a closed form. The best s is found by a search. Between two numbers of full cells, q(s)
and s^2 are interpolated linearly. The weights are chosen such that the two numbers of full cells
have equal costs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._domain import Domain, PerCellBound
from leastnoise._strategies._planning_problem import relative_sensitivity
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import privacy_of_part

# The search ends when the logarithm of the number of rows is this precise.
_SEARCH_OPTIONS = {"xatol": 1e-6, "maxiter": 60}
_LEAST_PRICE = 1e-9  # the least price of a space with G, relative to the price of its cells


def residual_prices(
    domain: Domain,
    privacy: Privacy,
    measure: str | None,
    spaces: Sequence[Sequence[int]],
    errors: FloatArray,
) -> FloatArray:
    """Return the privacy cost of squared weight 1 on each residual space.

    The unit of this cost is the cost of a total that counts all rows of a unit.

    Args:
        domain: the domain of the workload.
        privacy: the unit, and the bounds on its rows.
        measure: the measure that is summed; None for counts.
        spaces: the positions of the attributes of every residual space.
        errors: the total squared error of each space at noise variance 1, shape (spaces,).

    Returns:
        The costs, shape (spaces,). Weights that are optimal for these prices are also optimal for
        the cost of the plan.
    """
    sizes = np.array(domain.shape, dtype=np.float64)
    view = privacy_of_part(domain, privacy, measure)
    bound = _bound_in_cells(privacy, view)
    if bound is not None and _spreads_added_rows(domain, view, measure, bound):
        axis = domain.names.index(bound.attributes[0])
        rows = min(view.max_rows, bound.rows * domain.shape[axis])
        pairs = _pair_spaces(spaces, errors, axis, sizes)
        return pairs.prices(rows, bound.rows) / privacy.max_rows**2
    prices = _squared_norms(spaces, sizes) * (view.max_rows / privacy.max_rows) ** 2
    if privacy.max_per_cell is None:
        return prices
    for index, space in enumerate(spaces):
        names = [domain.names[at] for at in space]
        prices[index] *= relative_sensitivity(privacy, domain, names, are_contrasts=True)
    return prices


def _squared_norms(spaces: Iterable[Sequence[int]], sizes: FloatArray) -> FloatArray:
    """Return the squared column norm of the contrasts of each space."""
    shares = (1 - 1 / sizes).tolist()
    return np.array([math.prod([shares[at] for at in space], start=1.0) for space in spaces])


def _bound_in_cells(privacy: Privacy, view: Privacy) -> PerCellBound | None:
    """Return the bound on a unit's rows in cells that the spaces allow, or None.

    Usually this is the bound of the plan. For a count of units in larger cells, the result is the
    bound in the larger cells.
    """
    bound = privacy.max_per_cell
    cell_limit = view.max_per_cell
    if bound is None or cell_limit is None or {*cell_limit.attributes} <= {*bound.attributes}:
        return cell_limit
    return bound


def _spreads_added_rows(
    domain: Domain, view_privacy: Privacy, measure: str | None, bound: PerCellBound
) -> bool:
    """Return whether contrasts reduce the cost of the total (S3)."""
    signed = measure is not None and domain.measure(measure).low_units < 0
    several_cells = domain.cells(bound.attributes[0]) > 1 and bound.rows < view_privacy.max_rows
    spreads = several_cells and len(bound.attributes) == 1
    return spreads and view_privacy.neighbours == "add_remove" and not signed


@dataclass(frozen=True, slots=True, eq=False)
class _SpacePairs:
    """Pairs of residual spaces that differ only by one attribute."""

    cells: float  # the number of cells of the attribute
    squared_norms: FloatArray  # squared norms of the spaces without the attribute, shape (pairs,)
    errors: FloatArray  # errors of both spaces; 0 if a space is not requested, shape (2, pairs)
    index_of_space: tuple[list[int], list[int]]  # row and column in ``errors``, by space

    def prices(self, max_rows: int, max_rows_in_cell: int) -> FloatArray:
        """Return the privacy cost of weight 1 on each requested space, (spaces,).

        Args:
            max_rows: the most rows of a unit.
            max_rows_in_cell: the most rows of a unit in one cell of the attribute.
        """
        from scipy.optimize import minimize_scalar

        optimum = minimize_scalar(
            lambda log_rows: self._error(math.exp(log_rows), max_rows, max_rows_in_cell),
            bounds=(math.log(max_rows_in_cell), math.log(max_rows)),
            method="bounded",
            options=_SEARCH_OPTIONS,
        )
        squares = self._best_squares(math.exp(optimum.x), max_rows, max_rows_in_cell)
        return self.errors[self.index_of_space] / squares[self.index_of_space] ** 2

    def _error(self, rows_of_unit: float, max_rows: int, max_rows_in_cell: int) -> float:
        """Return the least squared error at cost 1 for units with some number of rows."""
        squares = self._best_squares(rows_of_unit, max_rows, max_rows_in_cell)
        error = float((self.errors[self.index_of_space] / squares[self.index_of_space]).sum())
        without, along = squares
        shares = without - along / self.cells
        shares[1:] = np.maximum(shares[1:], 0)
        separate_norm = float(self.squared_norms @ along)
        together = float(self.squared_norms @ shares)
        numbers = [max_rows]
        if together < 0:
            numbers.append(
                min(max_rows // max_rows_in_cell, round(-separate_norm / (2 * together)))
                * max_rows_in_cell
            )
        return error * max(
            separate_norm * _squared_row_counts(rows_of_unit, max_rows, max_rows_in_cell)[0]
            + together * rows_of_unit**2
            for rows_of_unit in numbers
        )

    def _best_squares(
        self, rows_of_unit: float, max_rows: int, max_rows_in_cell: int
    ) -> FloatArray:
        """Return the best squared weights for units with some number of rows.

        The result has shape (2, pairs) and is determined up to a common factor.
        """
        cell_squares, total_square = _squared_row_counts(rows_of_unit, max_rows, max_rows_in_cell)
        price = max(cell_squares - total_square / self.cells, _LEAST_PRICE * cell_squares)
        squares = np.sqrt(self.errors / (self.squared_norms * [[total_square], [price]]))
        # Below u / n, a larger weight of the space without the attribute is free.
        free = squares[0] < squares[1] / self.cells
        free[0] = False
        joint_error = self.errors[1] + self.cells * self.errors[0]
        joint = np.sqrt(joint_error / (self.squared_norms * cell_squares))
        return np.where(free, [joint / self.cells, joint], squares)


def _squared_row_counts(
    rows_of_unit: float, max_rows: int, max_rows_in_cell: int
) -> tuple[float, float]:
    """Return a unit's squared numbers of rows: summed over cells, and in total.

    Both numbers are exact if the rows of the unit fill whole cells. The numbers are also exact for
    ``max_rows`` rows. For other numbers of rows, both numbers are interpolated linearly.
    """
    full = min(int(rows_of_unit) // max_rows_in_cell * max_rows_in_cell, max_rows)
    last_cell = min(max_rows_in_cell, max_rows - full)
    if last_cell == 0:
        return full * max_rows_in_cell, full**2
    share = (rows_of_unit - full) / last_cell
    cell_squares = full * max_rows_in_cell + share * last_cell**2
    total_square = full**2 + share * ((full + last_cell) ** 2 - full**2)
    return cell_squares, total_square


def _pair_spaces(
    spaces: Sequence[Sequence[int]], errors: FloatArray, axis: int, sizes: FloatArray
) -> _SpacePairs:
    """Combine residual spaces in pairs that differ only by one attribute."""
    columns: dict[tuple[int, ...], int] = {(): 0}
    positions: tuple[list[int], list[int]] = ([], [])
    for space in spaces:
        without = tuple(at for at in space if at != axis)
        positions[0].append(int(len(without) < len(space)))
        positions[1].append(columns.setdefault(without, len(columns)))
    pair_errors = np.zeros((2, len(columns)))
    pair_errors[positions] = errors
    return _SpacePairs(float(sizes[axis]), _squared_norms(columns, sizes), pair_errors, positions)
