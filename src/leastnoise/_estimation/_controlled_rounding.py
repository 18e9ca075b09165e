"""Controlled rounding: tables that add up after rounding.

The cells of the finest table are rounded down or up to whole numbers. Every cell of every other
table is the sum of rounded cells, and this sum is again the true sum rounded down or up (Cox 1987).
For tables that nest, and for two tables that cross, such a rounding always exists. For other tables
some sums may have to differ by more than 1, and they differ by as little as possible.
"""

from collections.abc import Sequence

import numpy as np

from leastnoise._estimation._non_negative import groups_of_cells
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import Product

MOST_CONTROLLED_CELLS = 20_000
"""The most cells of the finest table. With this number of cells, two crossing tables take 2
seconds. All tables of two of three attributes take 4 seconds for 3600 cells (one core of 2026)."""
_TOLERANCE = 1e-7  # a sum of doubles that is this near to a whole number counts as that number
_MISS_COST = 1e4  # cost of a miss by one step; rounding one cell the wrong way costs at most 1
_SECONDS = 60.0  # time limit of the solver, after which its best rounding is used


def round_controlled(cells: FloatArray, finest: Product, products: Sequence[Product]) -> IntArray:
    """Round cells so that the sums of all tables are rounded down or up.

    Args:
        cells: the estimates of the finest table, in rounding steps, of the shape of the table.
        finest: the finest table; the queries of all tables partition its cells.
        products: the tables whose cells are sums of the finest cells.

    Returns:
        Whole numbers, each less than 1 from its cell. If such a rounding exists and the solver
        finds it in a minute, every sum of a table is less than 1 from the sum of the cells.
        Otherwise some sums differ by slightly more.

    Source: Cox 1987, "A constructive procedure for unbiased controlled rounding", for the
        conditions. They are solved as an integer program that rounds as many cells as possible to
        the nearest whole number.
    """
    floors = np.floor(cells + _TOLERANCE)
    up = (cells - floors).clip(0.0).reshape(-1)
    is_free = up > _TOLERANCE
    if not is_free.any():
        return floors.astype(np.int64)
    raised = _choose_raised(up, is_free, _list_sums(finest, products))
    rounded = floors.reshape(-1) + raised
    return np.asarray(rounded.reshape(cells.shape), dtype=np.int64)


def _choose_raised(
    up: FloatArray, is_free: np.ndarray, sums_of_cells: Sequence[IntArray]
) -> FloatArray:
    """Return 1 for each cell that is rounded up, else 0.

    Args:
        up: how far each cell lies above the whole number below it.
        is_free: which cells lie between two whole numbers.
        sums_of_cells: for each table, the position of the sum to which each cell belongs.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, hstack, vstack

    size = len(up)
    blocks = []
    lows: list[FloatArray] = []
    highs: list[FloatArray] = []
    for positions in sums_of_cells:
        sums = np.bincount(positions, weights=up)
        blocks.append(coo_array((np.ones(size), (positions, np.arange(size)))))
        lows.append(np.floor(sums + _TOLERANCE))
        highs.append(np.ceil(sums - _TOLERANCE))
    if not blocks:
        return np.rint(up)
    matrix = vstack(blocks, format="csr")
    misses = matrix.shape[0]
    # Rounding a cell up costs 1 - 2 up more than rounding it down; a sum may miss at a high cost.
    costs = np.concatenate([1 - 2 * up, np.full(2 * misses, _MISS_COST)])
    with_misses = hstack([matrix, _identity(misses), -_identity(misses)], format="csr")
    solution = milp(
        costs,
        integrality=np.concatenate([np.ones(size), np.zeros(2 * misses)]),
        bounds=Bounds(
            0.0, np.concatenate([is_free.astype(np.float64), np.full(2 * misses, np.inf)])
        ),
        constraints=LinearConstraint(with_misses, np.concatenate(lows), np.concatenate(highs)),
        options={"time_limit": _SECONDS},
    )
    if solution.x is None:
        return np.rint(up)
    return np.asarray(np.rint(solution.x[:size]))


def _identity(size: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - SciPy has no types
    from scipy.sparse import eye_array

    return eye_array(size, format="csr")


def _list_sums(finest: Product, products: Sequence[Product]) -> list[IntArray]:
    """Return for each coarser table the sum to which each cell belongs."""
    finest_groups = dict(zip(finest.attributes, groups_of_cells(finest), strict=True))
    first_cells = {
        name: np.unique(groups, return_index=True)[1] for name, groups in finest_groups.items()
    }
    shape = tuple(len(first_cells[name]) for name in finest.attributes)
    moves: list[IntArray] = []
    for product in products:
        groups = groups_of_cells(product)
        if product == finest or len(groups) != len(product.attributes):
            continue  # queries that overlap need no rounding: they are sums of many cells
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
