"""Interval costs against their definition, their sensitivity, and their bounds."""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._kernel import _interval_costs as costs
from leastnoise._kernel._interval_costs import (
    GRID,
    aligned_costs,
    costs_of_length,
    cut_counts,
    grid_sensitivity,
    largest_count,
    on_grid,
    power_of_two_costs,
)


def all_costs(x):
    """Of every length from 1 to n."""
    return list(costs_of_length(x, range(1, len(x) + 1)))


def by_definition(x, start, length):
    window = [Fraction(int(v)) for v in x[start : start + length]]
    mean = sum(window) / length
    return sum(abs(v - mean) for v in window)


SHAPES = {
    "sparse": lambda g, n: g.integers(0, 50, n) * (g.random(n) < 0.05),
    "dense": lambda g, n: g.integers(0, 10**6, n),
    "few values": lambda g, n: g.integers(0, 3, n),
    "constant": lambda g, n: np.full(n, 7),
    "rising": lambda g, n: np.arange(n) ** 2,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("short", [0, 128])
def test_all_intervals_are_exact(shape, short, monkeypatch):
    monkeypatch.setattr(costs, "_SHORT", short)
    monkeypatch.setattr(costs, "_BLOCK", 7)
    for n in (1, 2, 3, 8, 21):
        x = SHAPES[shape](np.random.default_rng(n), n).astype(np.int64)
        for length, found in enumerate(all_costs(x), start=1):
            assert found.dtype == np.int64
            assert found.tolist() == [length * by_definition(x, start, length) for start in range(n - length + 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_long_windows_agree_with_a_plain_sum(shape):
    n = 3000
    x = SHAPES[shape](np.random.default_rng(4), n).astype(np.int64)
    for length, found in zip((129, 1000, 2048, 3000), costs_of_length(x, (129, 1000, 2048, 3000)), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(x, length)
        for start in range(0, n - length + 1, 97):
            window = windows[start]
            assert found[start] == np.abs(length * window - window.sum()).sum()


def test_the_worked_example_of_the_paper():
    x = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
    by_length = all_costs(x)
    found = [Fraction(int(by_length[length - 1][start]), length) for start, length in ((0, 2), (2, 1), (3, 4), (7, 3))]
    assert found == [1, 0, 3, Fraction(8, 3)]
    assert Fraction(int(by_length[9][0]), 10) == Fraction(172, 10)


def test_powers_of_two():
    x = np.random.default_rng(1).integers(0, 9, 37)
    found = power_of_two_costs(x)
    assert [len(cost) for cost in found] == [37, 36, 34, 30, 22, 6]
    every = all_costs(x)
    assert all((cost == every[2**power - 1]).all() for power, cost in enumerate(found))


@pytest.mark.parametrize("length", range(1, 8))
def test_the_sensitivity_of_the_deviation_is_two_minus_two_over_length(length):
    generator = np.random.default_rng(length)
    largest = Fraction(0)
    for trial in range(300):
        x = generator.integers(0, 4, length) if trial else np.zeros(length, dtype=np.int64)
        more = x.copy()
        more[generator.integers(length)] += 1
        change = abs(int(all_costs(more)[-1][0]) - int(all_costs(x)[-1][0]))
        largest = max(largest, Fraction(change, length))
    assert largest == 2 - Fraction(2, length)  # reached by the empty interval


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
    exact = n * by_definition(cut, 0, n)
    (found,) = costs_of_length(cut, [n])
    assert found[0] == exact
    assert on_grid(found, n)[0] == int(GRID * exact / n)
    assert aligned_costs(cut, "median")[-1][0] == GRID * largest_count(n) * (n // 2)


def test_a_length_beyond_the_cells_is_refused():
    with pytest.raises(InputError, match="length must be a whole number from 1 to 3; got 4"):
        list(costs_of_length(np.array([1, 2, 3]), [4]))
