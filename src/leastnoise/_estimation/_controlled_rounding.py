"""Controlled rounding: tables that add up after rounding.

The cells of the finest table are rounded down or up to whole numbers. Every cell of every other
table is the sum of rounded cells. This sum is the true sum, rounded down or up (Cox 1987). Such a
rounding always exists if the tables are nested, and for two tables that cross. For other tables,
some sums may have to differ by more than 1. These sums then differ by as little as possible.
"""

from collections.abc import Sequence

import numpy as np

from leastnoise._estimation._non_negative import groups_of_cells
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import Product

MOST_CONTROLLED_CELLS = 20_000
"""The most cells of the finest table. With this number of cells, two crossing tables take 2
seconds. All tables of two of three attributes take 4 seconds for 3600 cells (one core of 2026)."""
# A sum of floats with at most this distance from a whole number is taken as that number.
_INTEGRALITY_TOLERANCE = 1e-7
# Cost if a sum is off by one step; rounding a cell in the wrong direction costs at most 1.
_MISS_COST = 1e4
_SOLVER_SECONDS = 60.0  # time limit of the solver; after it, the solver's best rounding is used


def round_controlled(cells: FloatArray, finest: Product, products: Sequence[Product]) -> IntArray:
    """Round cells such that the sums in all tables are also rounded down or up.

    Args:
        cells: the estimates of the finest table, in rounding steps; the shape is the shape of the
            table.
        finest: the finest table; the queries of all tables partition its cells.
        products: the tables whose cells are sums of the finest cells.

    Returns:
        Whole numbers; each differs from its cell by less than 1. If such a rounding exists and the
        solver finds it within a minute, every sum of a table differs by less than 1 from the sum of
        the cells. Otherwise some sums differ by slightly more.

    Source: Cox 1987, "A constructive procedure for unbiased controlled rounding", for the
        conditions. The method solves an integer program that rounds as many cells as possible to
        the nearest whole number.
    """
    floors = np.floor(cells + _INTEGRALITY_TOLERANCE)
    up = (cells - floors).clip(0.0).reshape(-1)
    is_free = up > _INTEGRALITY_TOLERANCE
    if not is_free.any():
        return floors.astype(np.int64)
    raised = _choose_raised(up, is_free, _list_sums(finest, products))
    rounded = floors.reshape(-1) + raised
    return np.asarray(rounded.reshape(cells.shape), dtype=np.int64)


def _choose_raised(
    fractions: FloatArray, is_fractional: np.ndarray, sum_positions: Sequence[IntArray]
) -> FloatArray:
    """Return an array with 1 for each cell to round up, and 0 for the others.

    Args:
        fractions: the fractional part of each cell.
        is_fractional: which cells lie between two whole numbers.
        sum_positions: for each table, the index of the sum that contains each cell.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, hstack, vstack

    size = len(fractions)
    blocks = []
    lows: list[FloatArray] = []
    highs: list[FloatArray] = []
    for positions in sum_positions:
        sums = np.bincount(positions, weights=fractions)
        blocks.append(coo_array((np.ones(size), (positions, np.arange(size)))))
        lows.append(np.floor(sums + _INTEGRALITY_TOLERANCE))
        highs.append(np.ceil(sums - _INTEGRALITY_TOLERANCE))
    if not blocks:
        return np.rint(fractions)
    matrix = vstack(blocks, format="csr")
    misses = matrix.shape[0]
    # Rounding a cell up costs (1 - 2 fraction) more than rounding it down. A sum may be off by more
    # than 1, at a high cost.
    costs = np.concatenate([1 - 2 * fractions, np.full(2 * misses, _MISS_COST)])
    with_misses = hstack([matrix, _identity(misses), -_identity(misses)], format="csr")
    solution = milp(
        costs,
        integrality=np.concatenate([np.ones(size), np.zeros(2 * misses)]),
        bounds=Bounds(
            0.0, np.concatenate([is_fractional.astype(np.float64), np.full(2 * misses, np.inf)])
        ),
        constraints=LinearConstraint(with_misses, np.concatenate(lows), np.concatenate(highs)),
        options={"time_limit": _SOLVER_SECONDS},
    )
    if solution.x is None:
        return np.rint(fractions)
    return np.asarray(np.rint(solution.x[:size]))


def _identity(size: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - SciPy has no types
    """Return the identity matrix as a sparse SciPy array."""
    from scipy.sparse import eye_array

    return eye_array(size, format="csr")


def _list_sums(finest: Product, products: Sequence[Product]) -> list[IntArray]:
    """Return, for each coarser table, the index of each cell's sum."""
    finest_groups = dict(zip(finest.attributes, groups_of_cells(finest), strict=True))
    first_cells = {
        name: np.unique(groups, return_index=True)[1] for name, groups in finest_groups.items()
    }
    shape = tuple(len(first_cells[name]) for name in finest.attributes)
    moves: list[IntArray] = []
    for product in products:
        groups = groups_of_cells(product)
        if product == finest or len(groups) != len(product.attributes):
            continue  # overlapping queries are not constrained, because they sum many cells
        groups_of = dict(zip(product.attributes, groups, strict=True))
        positions = np.zeros(shape, dtype=np.int64)
        for axis, name in enumerate(finest.attributes):
            if name in groups_of:
                along = groups_of[name][first_cells[name]]
                size = int(groups_of[name].max()) + 1
                sides = [1] * len(shape)
                sides[axis] = -1
                positions = positions * size + along.reshape(sides)
        moves.append(positions.reshape(-1))
    return moves
