"""Counts of tables with one total, against enumeration and against each other."""

import math
from collections import Counter
from itertools import product

import pytest

from leastnoise._trusted.measurements import (
    ball_count_numerators,
    count_tables,
    count_tables_up_to,
    lattice_dimension,
)


def enumerated(cells, total, norm):
    """Return the number of tables with this total and at most this norm."""
    return sum(
        sum(table) == total and sum(map(abs, table)) <= norm
        for table in product(range(-norm, norm + 1), repeat=cells)
    )


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_count_tables_matches_a_list(cells):
    for positive, negative in product(range(4), range(4)):
        listed = enumerated(cells, positive - negative, positive + negative)
        assert count_tables(cells, positive, negative) == listed


@pytest.mark.parametrize("cells", [1, 2, 7])
def test_count_grid_agrees_with_single_counts(cells):
    grid = count_tables_up_to(cells, 12)
    for positive, negative in product(range(13), range(7)):
        assert grid[positive, negative] == count_tables(cells, positive, negative)


@pytest.mark.parametrize(
    "sizes", [(1,), (2,), (1, 2), (2, 2), (2, 3), (3, 3), (1, 1, 3), (2, 2, 4)]
)
def test_numerators_count_the_points_of_every_ball(sizes):
    h = ball_count_numerators(sizes)
    free = lattice_dimension(sizes)
    assert len(h) == free + 1
    for norm in range(3 * free + 3):
        points = 0
        for total in range(-norm, norm + 1):
            common = (norm - abs(total)) // 2
            number = Counter(sizes)
            points += math.prod(
                count_tables(size, abs(total) + common, common) ** often
                for size, often in number.items()
            )
        counted = sum(
            coefficient * math.comb(norm - j + free, free)
            for j, coefficient in enumerate(h)
            if j <= norm
        )
        assert counted == points


@pytest.mark.parametrize("cells", [1, 2, 3, 6])
def test_counts_fall_with_the_distance_of_the_total_from_zero(cells):
    for norm in range(14):
        along = [
            count_tables(cells, norm - negative, negative) for negative in range(norm // 2 + 1)
        ]
        assert along == sorted(along)


def test_numerators_of_many_cells_are_whole_and_symmetric():
    h = ball_count_numerators((20,) * 15)
    assert min(h) > 0
    assert h == h[::-1]
    assert h[0] == 1
