"""Lists of tables of whole numbers that share one total.

The module counts such lists, and draws one of them uniformly.

The noise of tables that share their total is such a list of tables (`k_norm_noise` of the kernel).
Its norm is the largest of the tables' sums of absolute values. Whole numbers only; the labels
(J1 ...) refer to PROOFS-shared-total.md in this folder.

Source: Hardt and Talwar, "On the Geometry of Differential Privacy" (2010), for the noise; Ehrhart
    (1962) and Stanley (1980) for the counts; the sampler is this project's own.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import InternalError

WholeNumbers = npt.NDArray[np.object_]  # Python's integers, of any length
Below: TypeAlias = Callable[[int], int]
"""A source of whole numbers: ``below(n)`` is uniform on 0 ... n - 1, and independent of all others."""


def dimensions(sizes: Sequence[int]) -> int:
    """Return D, the number of free coordinates of tables that share one total.

    The free coordinates are the total, and all cells of each table but one.

    >>> dimensions([2, 3])
    4
    """
    return 1 + sum(size - 1 for size in sizes)


def count_tables(cells: int, positive: int, negative: int) -> int:
    """Return the number of tables with a total and a bounded norm (J2).

    Args:
        cells: the number of cells of the table, at least 1.
        positive: the number P, at least 0.
        negative: the number Q, at least 0.

    Returns:
        The number of lists of ``cells`` whole numbers of sum P - Q whose absolute values add up to
        at most P + Q.

    >>> count_tables(2, 1, 1)
    3
    """
    number = 0
    places = cells - 1
    for common in range(min(places, positive, negative) + 1):
        term = (
            math.comb(places, common)
            * math.comb(positive - common + places, places)
            * math.comb(negative - common + places, places)
        )
        number += -term if common % 2 else term
    return number


def count_grid(cells: int, most: int) -> WholeNumbers:
    """Return `count_tables` for all P up to ``most`` and all Q up to half of ``most``.

    The array has the shape (most + 1, most // 2 + 1); the recurrence of J2 gives it row by row.

    >>> count_grid(2, 2).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    half = most // 2
    grid = np.zeros((most + 1, half + 1), object)
    grid[0] = [math.comb(negative + cells - 1, cells - 1) for negative in range(half + 1)]
    for positive in range(most):
        row = (positive + cells) * grid[positive]
        row[1:] += (positive + 1 - cells) * grid[positive, :-1]
        if positive:
            row[1:] -= positive * grid[positive - 1, :-1]
        grid[positive + 1] = row // (positive + 1)
    return grid


@lru_cache(maxsize=64)
def numerators(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers h_0 ... h_D that count the points of all balls (J3).

    They are whole numbers.

    The number of points of norm at most m is the sum over j of h_j C(m - j + D, D).

    Args:
        sizes: the numbers of cells of the tables, ascending.

    >>> numerators((2, 2))
    (1, 5, 5, 1)
    """
    free = dimensions(sizes)
    half = free // 2
    tables = [(count_grid(size, half), number) for size, number in Counter(sizes).items()]
    shells = [0] * (half + 1)  # by P + Q
    for negative in range(half // 2 + 1):
        for positive in range(negative, half - negative + 1):
            points = math.prod(grid[positive, negative] ** number for grid, number in tables)
            shells[positive + negative] += points if positive == negative else 2 * points
    balls = np.array(shells, object)
    balls[1:] += np.array(shells[:-1], object)
    first = divide_out(balls, free + 1)
    mirrored = first[: (free + 1) // 2][::-1]  # h_(D - j) = h_j
    numerators = tuple(int(number) for number in (*first, *mirrored))
    if len(numerators) != free + 1 or min(numerators) < 0:
        raise InternalError("The points of a ball were counted wrongly; please report this.")
    return numerators


def divide_out(series: WholeNumbers, power: int) -> WholeNumbers:
    """Return the first coefficients of a power series times (1 - x)^power.

    >>> divide_out(np.array([1, 3, 6], object), 1).tolist()
    [1, 2, 3]
    """
    for _ in range(power):
        series = np.concatenate([series[:1], series[1:] - series[:-1]])
    return series


def draw_point(sizes: Sequence[int], norm: int, below: Below) -> list[list[int]]:
    """Return uniformly drawn tables of one total and bounded norm (J4).

    Args:
        sizes: the number of cells of each table.
        norm: at least 0.
        below: the source of whole numbers.

    Returns:
        The cells of each table.

    >>> draw_point([1, 2], 0, lambda bound: 0)
    [[0], [0, 0]]
    """
    total = _draw_total(sizes, norm, below)
    sign = -1 if total < 0 else 1
    common = (norm - abs(total)) // 2
    return [
        [sign * cell for cell in _draw_table(size, abs(total), common, below)] for size in sizes
    ]


def _draw_total(sizes: Sequence[int], norm: int, below: Below) -> int:
    """Draw the common total of all tables, and return it (J5).

    Each total has a probability in proportion to the number of points that have it.
    """
    tables = Counter(sizes)

    def points(size: int, total: int) -> int:
        if norm < total:
            return 0
        common = (norm - total) // 2
        return count_tables(size, total + common, common)

    most = {size: max(points(size, 0), points(size, 1)) for size in tables}
    bound = math.prod(most[size] ** number for size, number in tables.items())
    while True:
        total = below(2 * norm + 1) - norm
        counts = {size: points(size, abs(total)) for size in tables}
        if any(counts[size] > most[size] for size in tables):
            raise InternalError("The points of a ball were counted wrongly; please report this.")
        if below(bound) < math.prod(counts[size] ** number for size, number in tables.items()):
            return total


def _draw_table(cells: int, total: int, common: int, below: Below) -> list[int]:
    """Return a uniformly drawn table with a total and a bounded norm (J6).

    The total is at least 0, and the norm at most total + 2 common.
    """
    rank = below(count_tables(cells, total + common, common))
    # the least negative part such that more than ``rank`` tables have it
    low = 0
    high = common
    while low < high:
        middle = (low + high) // 2
        if count_tables(cells, total + middle, middle) > rank:
            high = middle
        else:
            low = middle + 1
    positive = total + low
    negative = low
    table = [0] * cells
    if not positive:
        return table
    ways = [
        math.comb(cells, number)
        * math.comb(positive - 1, number - 1)
        * _weak_compositions(negative, cells - number)
        for number in range(1, min(cells, positive) + 1)
    ]
    sums = list(accumulate(ways))
    above = 1 + bisect_right(sums, below(sums[-1]))
    subset = _draw_subset(cells, above, below)
    others = [cell for cell in range(cells) if cell not in subset]
    parts = _draw_parts(positive, above, below)
    for cell, part in zip(sorted(subset), parts, strict=True):
        table[cell] = part
    if others:
        less = _draw_parts(negative + len(others), len(others), below)
        for cell, part in zip(others, less, strict=True):
            table[cell] = 1 - part
    return table


def _weak_compositions(total: int, parts: int) -> int:
    """Return the number of ways to write a total as a sum of ``parts`` numbers.

    All of these are whole numbers of at least 0.
    """
    if not parts:
        return 0 if total else 1
    return math.comb(total + parts - 1, parts - 1)


def _draw_parts(total: int, parts: int, below: Below) -> list[int]:
    """Draw ``parts`` positive integers that add up to ``total``, uniformly (J7)."""
    cuts = sorted(cut + 1 for cut in _draw_subset(total - 1, parts - 1, below))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, total], strict=True)]


def _draw_subset(size: int, number: int, below: Below) -> set[int]:
    """Return a uniform set of ``number`` numbers below ``size`` (J7)."""
    drawn: set[int] = set()
    for last in range(size - number, size):
        candidate = below(last + 1)
        drawn.add(last if candidate in drawn else candidate)
    return drawn
