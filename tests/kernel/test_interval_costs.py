"""Interval costs against their definition, their sensitivity, and their bounds."""

from fractions import Fraction

import numpy as np
import pytest
from experiments.selections.partition_variants import aligned_costs

from leastnoise._kernel._partition import GRID, cut_counts, grid_sensitivity, largest_count, on_grid


def by_definition(x, start, length):
    window = [Fraction(int(v)) for v in x[start : start + length]]
    mean = sum(window) / length
    return sum(abs(v - mean) for v in window)


@pytest.mark.parametrize("n", [5, 8, 13])
def test_one_record_changes_aligned_costs_by_no_more_than_claimed(n):
    generator = np.random.default_rng(n)
    seen = {"mean": 0, "median": 0}
    for _ in range(300):
        x = generator.integers(0, 4, n) * generator.integers(0, 2)
        more = x.copy()
        cell = generator.integers(n)
        more[cell] += 1
        for centre in ("mean", "median"):
            for power, (one, other) in enumerate(zip(aligned_costs(x, centre), aligned_costs(more, centre), strict=True)):
                change = np.abs(one - other)
                assert (np.flatnonzero(change) == cell >> power).all()
                length = min(2**power, n - (cell >> power << power))
                assert change.max() <= (grid_sensitivity(length) if centre == "mean" else GRID)
                seen[centre] = max(seen[centre], int(change.max()))
    assert seen["median"] == GRID
    assert seen["mean"] > GRID


def test_aligned_costs_are_those_of_the_definition():
    x = np.random.default_rng(3).integers(0, 30, 13)
    for centre in ("mean", "median"):
        levels = aligned_costs(x, centre)
        assert [len(level) for level in levels] == [13, 7, 4, 2, 1]
        for power, level in enumerate(levels):
            for block, cost in enumerate(level):
                part = x[block << power : (block + 1) << power]
                exact = (
                    by_definition(part, 0, len(part)) if centre == "mean" else min(sum(abs(int(v) - int(c)) for v in part) for c in part)
                )
                assert cost == int(exact * GRID)  # floor


def test_rounding_on_the_grid_is_down():
    assert on_grid(np.array([0, 1, 5, 3 * 2**50]), 3).tolist() == [0, GRID // 3, 5 * GRID // 3, GRID * 2**50]


@pytest.mark.parametrize("n", [1, 2, 3, 64, 1000])
def test_nothing_overflows_at_the_largest_counts(n):
    x = np.zeros(n, dtype=np.int64)
    x[: (n + 1) // 2] = 2**63 - 1
    cut = cut_counts(x)
    assert cut.max() == largest_count(n)
    assert aligned_costs(cut)[-1][0] == int(GRID * by_definition(cut, 0, n))
    assert aligned_costs(cut, "median")[-1][0] == GRID * largest_count(n) * (n // 2)
