"""Implement mechanisms for two dimensions: uniform grid, adaptive grid, quadtree."""

import math
from fractions import Fraction

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes
from baselines._linear import height
from baselines._noise import laplace
from baselines._tree import UNIT, measure_hierarchy
from leastnoise._trusted.check import refuse
from leastnoise._trusted.kernel import Entropy

TOTAL_SHARE = Fraction(1, 20)
FIRST_SHARE = Fraction(1, 2)  # of the remaining budget, for the coarse grid of AGrid
GUIDE = 10  # the papers' constant c
SECOND_GUIDE = 5  # the papers' constant c2
_LARGEST_SQUARE = 2**24


def noisy_total(x: Wholes, epsilon: Fraction, entropy: Entropy) -> tuple[float, Fraction]:
    """Return a total of at least 0 for a twentieth of the budget, and the remaining budget.

    The released implementations use the true total.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> noisy_total(np.array([[3, 4]]), Fraction(10**6), SeededEntropy(1))
    (7.0, Fraction(950000, 1))
    """
    noisy = laplace(x.sum().reshape(1), epsilon * TOTAL_SHARE, entropy)[0]
    return max(float(noisy), 0.0), epsilon * (1 - TOTAL_SHARE)


def edges(start: int, stop: int, parts: int) -> Wholes:
    """Return the edges of parts of nearly equal size; a part has at least one cell.

    >>> edges(0, 5, 2).tolist(), edges(3, 5, 9).tolist()
    ([0, 2, 5], [3, 4, 5])
    """
    parts = min(max(parts, 1), stop - start)
    return start + np.arange(parts + 1) * (stop - start) // parts


def boxes(rows: Wholes, columns: Wholes) -> Wholes:
    """Return all boxes between edges, row by row, as (top, left, bottom, right); shape (k, 4).

    The bottom row and the right column are excluded.

    >>> boxes(np.array([0, 2]), np.array([0, 1, 3])).tolist()
    [[0, 0, 2, 1], [0, 1, 2, 3]]
    """
    down, across = np.meshgrid(np.arange(len(rows) - 1), np.arange(len(columns) - 1), indexing="ij")
    i = down.reshape(-1)
    j = across.reshape(-1)
    return np.stack([rows[i], columns[j], rows[i + 1], columns[j + 1]], axis=1)


def box_sums(x: Wholes, box: Wholes) -> Wholes:
    """Sum the cells in each box.

    >>> box_sums(np.array([[1, 2], [3, 4]]), np.array([[0, 0, 2, 1]])).tolist()
    [4]
    """
    return np.asarray(Ranges(box[:, :2], box[:, 2:]).answers(x))


def distribute(values: Reals, box: Wholes, shape: tuple[int, ...]) -> Reals:
    """Distribute the value of each box evenly over its cells.

    >>> distribute(np.array([8.0]), np.array([[0, 0, 2, 1]]), (2, 2)).tolist()
    [[4.0, 0.0], [4.0, 0.0]]
    """
    top, left, bottom, right = box.T
    density = values / ((bottom - top) * (right - left))
    steps = np.zeros((shape[0] + 1, shape[1] + 1))
    for rows, columns, sign in (
        (top, left, 1),
        (bottom, left, -1),
        (top, right, -1),
        (bottom, right, 1),
    ):
        np.add.at(steps, (rows, columns), sign * density)
    return np.asarray(steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1])


def uniform_grid(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure a grid with sqrt(N epsilon / 10) parts per side, for a noisy total N."""
    total, remaining = noisy_total(x, epsilon, entropy)
    parts = math.ceil(math.sqrt(total * float(remaining) / GUIDE))
    box = boxes(edges(0, x.shape[0], parts), edges(0, x.shape[1], parts))
    return distribute(
        laplace(box_sums(x, box), remaining, entropy).astype(np.float64), box, x.shape
    )


def finer(box: Wholes, counts: Reals, epsilon: float) -> tuple[Wholes, Wholes]:
    """Divide each box into sqrt(count epsilon / 5) parts per side.

    Returns the parts, and the index of the box that contains each.

    >>> [part.tolist() for part in finer(np.array([[0, 0, 2, 1]]), np.array([20.0]), 1.0)]
    [[[0, 0, 1, 1], [1, 0, 2, 1]], [0, 0]]
    """
    parts = np.ceil(np.sqrt(np.maximum(counts, 0.0) * epsilon / SECOND_GUIDE)).astype(np.int64)
    inner = [
        boxes(edges(a, c, m), edges(b, d, m))
        for (a, b, c, d), m in zip(box.tolist(), parts.tolist(), strict=True)
    ]
    return np.concatenate(inner), np.repeat(np.arange(len(box)), [len(part) for part in inner])


def adaptive_grid(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure a coarse grid, refine it by its noisy counts, and combine by least squares.

    Each of the two grids has half the budget.
    """
    total, remaining = noisy_total(x, epsilon, entropy)
    first = remaining * FIRST_SHARE
    second = remaining * (1 - FIRST_SHARE)
    parts = max(10, math.ceil(math.sqrt(total * float(remaining) / GUIDE) / 4))
    coarse = boxes(edges(0, x.shape[0], parts), edges(0, x.shape[1], parts))
    counts = laplace(box_sums(x, coarse), first, entropy).astype(np.float64)
    fine, owner = finer(coarse, counts, float(second))
    values = laplace(box_sums(x, fine), second, entropy).astype(np.float64)
    number = np.bincount(owner)
    below = np.bincount(owner, weights=values)
    share = number / float(second) ** 2 / (number / float(second) ** 2 + 1 / float(first) ** 2)
    values += (share * (counts - below) / number)[owner]
    return distribute(values, fine, x.shape)


def quadrants(side: int) -> Wholes:
    """Order the cells of a square so that each quadrant at each depth is consecutive.

    The side is 2^k, and a cell has the number row * side + column.

    >>> quadrants(4).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    """
    order = np.zeros(1, dtype=np.int64)
    half = 1
    while half < side:
        order = np.concatenate(
            [order + corner for corner in (0, half, half * side, half * side + half)]
        )
        half *= 2
    return order


def quadtree_weights(depth: int) -> list[Wholes]:
    """Return a weight per level, cells first; a finer level has 2^(1/3) times more.

    The weights add up to UNIT.

    >>> sum(int(level[0]) for level in quadtree_weights(3)) <= UNIT
    True
    """
    rates = [2 ** (-level / 3) for level in range(depth + 1)]
    return [
        np.full(4 ** (depth - level), int(UNIT * rate / sum(rates)), dtype=np.int64)
        for level, rate in enumerate(rates)
    ]


def quadtree(x: Wholes, epsilon: Fraction, entropy: Entropy, _: Ranges | None) -> Reals:
    """Measure all quadrants down to the cells with geometric budgets, then least squares.

    Cells that extend the table to a square are public zeros.
    """
    depth = height(max(x.shape), 2)
    side = 2**depth
    if side**2 > _LARGEST_SQUARE:
        raise refuse("The counts", f"{x.shape}", "within a square of 2^24 cells for a quadtree")
    square = np.zeros((side, side), dtype=np.int64)
    square[: x.shape[0], : x.shape[1]] = x
    order = quadrants(side)
    estimate = np.empty(side**2)
    weights = quadtree_weights(depth)
    estimate[order] = measure_hierarchy(
        square.reshape(-1)[order],
        weights,
        tuple(4**level for level in range(depth + 1)),
        epsilon,
        entropy,
    )
    return estimate.reshape(side, side)[: x.shape[0], : x.shape[1]]


UNIFORM_GRID = Baseline(
    name="UGrid",
    dimensions=2,
    private=True,
    proof="A noisy total with epsilon / 20 sets the size; the parts are disjoint and get the "
    "remaining budget.",
    source="Qardaji, Yang, Li, ICDE 2013; total paid for",
    mechanism=uniform_grid,
)
ADAPTIVE_GRID = Baseline(
    name="AGrid",
    dimensions=2,
    private=True,
    proof="As UGrid; each of two grids of disjoint parts gets half of the remaining budget. The "
    "second grid is a function of noisy counts.",
    source="Qardaji, Yang, Li, ICDE 2013; total paid for",
    mechanism=adaptive_grid,
)
QUADTREE = Baseline(
    name="QuadTree",
    dimensions=2,
    private=True,
    proof="One record is in one quadrant of each level; the weights of the levels add up to at "
    "most 1, checked in whole numbers.",
    source="Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012",
    mechanism=quadtree,
)
