"""Count and draw lists of tables of whole numbers that share one total.

A list is drawn uniformly from all lists of bounded norm.

The noise that is added to tables with a common total is such a list (`k_norm_noise` of the kernel).
The norm of a list is the maximum, over its tables, of the sum of absolute values. All arithmetic is
on whole numbers. The labels (J1 ...) refer to PROOFS-shared-total.md in this folder.

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
"""A source of independent whole numbers: ``below(n)`` is uniform on 0 ... n - 1."""


def lattice_dimension(table_sizes: Sequence[int]) -> int:
    """Return the dimension D of the lists of tables that share one total.

    The free coordinates are the total, and all cells but one of each table.

    >>> lattice_dimension([2, 3])
    4
    """
    return 1 + sum(size - 1 for size in table_sizes)


def count_tables(cells: int, positive: int, negative: int) -> int:
    """Count the integer tables with total P - Q and L1 norm at most P + Q (J2).

    Args:
        cells: the number of cells of the table, at least 1.
        positive: the number P, at least 0.
        negative: the number Q, at least 0.

    Returns:
        The number of lists of ``cells`` whole numbers with sum P - Q, whose absolute values add up
        to at most P + Q.

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


def count_tables_up_to(cells: int, largest_positive: int) -> WholeNumbers:
    """Return numbers of tables for all positive totals P and negative totals Q.

    These are the results of `count_tables`. With m = ``largest_positive``, P has all values up to
    m, and Q all values up to m / 2. The shape is (m + 1, m // 2 + 1); the recurrence of J2 gives
    the array row by row.

    >>> count_tables_up_to(2, 2).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    half = largest_positive // 2
    grid = np.zeros((largest_positive + 1, half + 1), object)
    grid[0] = [math.comb(negative + cells - 1, cells - 1) for negative in range(half + 1)]
    for positive in range(largest_positive):
        row = (positive + cells) * grid[positive]
        row[1:] += (positive + 1 - cells) * grid[positive, :-1]
        if positive:
            row[1:] -= positive * grid[positive - 1, :-1]
        grid[positive + 1] = row // (positive + 1)
    return grid


@lru_cache(maxsize=64)
def ball_count_numerators(table_sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers h_0, ..., h_D for counting the points of a ball (J3).

    The h_j are whole numbers.

    The number of points of norm at most m is the sum over j of h_j C(m - j + D, D).

    Args:
        table_sizes: the numbers of cells of the tables, ascending.

    >>> ball_count_numerators((2, 2))
    (1, 5, 5, 1)
    """
    free = lattice_dimension(table_sizes)
    half = free // 2
    tables = [
        (count_tables_up_to(size, half), number) for size, number in Counter(table_sizes).items()
    ]
    shells = [0] * (half + 1)  # by P + Q
    for negative in range(half // 2 + 1):
        for positive in range(negative, half - negative + 1):
            points = math.prod(grid[positive, negative] ** number for grid, number in tables)
            shells[positive + negative] += points if positive == negative else 2 * points
    balls = np.array(shells, object)
    balls[1:] += np.array(shells[:-1], object)
    first = multiply_by_one_minus_x(balls, free + 1)
    mirrored = first[: (free + 1) // 2][::-1]  # h_(D - j) = h_j
    numerators = tuple(int(number) for number in (*first, *mirrored))
    if len(numerators) != free + 1 or min(numerators) < 0:
        raise InternalError("The points of a ball were counted wrongly; please report this.")
    return numerators


def multiply_by_one_minus_x(series: WholeNumbers, power: int) -> WholeNumbers:
    """Multiply a power series by (1 - x)^power; return the first coefficients.

    >>> multiply_by_one_minus_x(np.array([1, 3, 6], object), 1).tolist()
    [1, 2, 3]
    """
    for _ in range(power):
        series = np.concatenate([series[:1], series[1:] - series[:-1]])
    return series


def draw_tables(table_sizes: Sequence[int], norm: int, draw_below: Below) -> list[list[int]]:
    """Draw uniform tables with a common total and a bounded norm (J4).

    Args:
        table_sizes: the number of cells of each table.
        norm: at least 0.
        draw_below: the source of whole numbers.

    Returns:
        The cells of each table.

    >>> draw_tables([1, 2], 0, lambda bound: 0)
    [[0], [0, 0]]
    """
    total = _draw_total(table_sizes, norm, draw_below)
    sign = -1 if total < 0 else 1
    common = (norm - abs(total)) // 2
    return [
        [sign * cell for cell in _draw_table(size, abs(total), common, draw_below)]
        for size in table_sizes
    ]


def _draw_total(table_sizes: Sequence[int], norm: int, draw_below: Below) -> int:
    """Draw the common total of a list of tables (J5).

    The probability of each total is proportional to the number of points with this total.
    """
    tables = Counter(table_sizes)

    def points(size: int, total: int) -> int:
        """Return how many tables of this size have this total and at most ``norm``."""
        if norm < total:
            return 0
        common = (norm - total) // 2
        return count_tables(size, total + common, common)

    most = {size: max(points(size, 0), points(size, 1)) for size in tables}
    bound = math.prod(most[size] ** number for size, number in tables.items())
    while True:
        total = draw_below(2 * norm + 1) - norm
        counts = {size: points(size, abs(total)) for size in tables}
        if any(counts[size] > most[size] for size in tables):
            raise InternalError("The points of a ball were counted wrongly; please report this.")
        if draw_below(bound) < math.prod(counts[size] ** number for size, number in tables.items()):
            return total


def _draw_table(cells: int, total: int, common: int, draw_below: Below) -> list[int]:
    """Draw a uniform table with this total and norm <= total + 2 common (J6).

    The total is at least 0, and the norm is at most ``total + 2 * common``.
    """
    rank = draw_below(count_tables(cells, total + common, common))
    # The least negative part for which more than ``rank`` tables have at most this negative part.
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
        * _count_weak_compositions(negative, cells - number)
        for number in range(1, min(cells, positive) + 1)
    ]
    sums = list(accumulate(ways))
    above = 1 + bisect_right(sums, draw_below(sums[-1]))
    subset = _draw_subset(cells, above, draw_below)
    others = [cell for cell in range(cells) if cell not in subset]
    parts = _draw_parts(positive, above, draw_below)
    for cell, part in zip(sorted(subset), parts, strict=True):
        table[cell] = part
    if others:
        less = _draw_parts(negative + len(others), len(others), draw_below)
        for cell, part in zip(others, less, strict=True):
            table[cell] = 1 - part
    return table


def _count_weak_compositions(total: int, part_count: int) -> int:
    """Count the ordered sums of ``part_count`` numbers that equal a total.

    The numbers are whole and at least 0.
    """
    if not part_count:
        return 0 if total else 1
    return math.comb(total + part_count - 1, part_count - 1)


def _draw_parts(total: int, part_count: int, draw_below: Below) -> list[int]:
    """Draw ``part_count`` positive integers with sum ``total``, uniformly (J7)."""
    cuts = sorted(cut + 1 for cut in _draw_subset(total - 1, part_count - 1, draw_below))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, total], strict=True)]


def _draw_subset(bound: int, count: int, draw_below: Below) -> set[int]:
    """Draw a uniform set of ``count`` integers from 0 to ``bound`` - 1 (J7)."""
    drawn: set[int] = set()
    for last in range(bound - count, bound):
        candidate = draw_below(last + 1)
        drawn.add(last if candidate in drawn else candidate)
    return drawn
