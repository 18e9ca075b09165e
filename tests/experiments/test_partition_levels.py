"""The pruned hierarchy: that it measures what it says, prunes best, and refuses what it should."""

import math
from fractions import Fraction

import numpy as np
import pytest
from experiments.selections.partition_levels import prune, pruned_levels

from leastnoise._check import InputError
from leastnoise._kernel import SeededEntropy


def test_pruned_levels_measure_what_they_say():
    """Mean within 6 standard errors, variance within 15%: false alarms below 1e-6."""
    x = np.array([5, 0, 0, 9, 1, 1, 1])
    runs = [pruned_levels(x, 2, SeededEntropy(seed), widths=(4, 2), shares=("1/4", "3/4")) for seed in range(1500)]
    assert runs[0].scales == (2, Fraction(171, 256))  # rounded up
    for place, truth in ((0, [14, 3]), (1, [5, 9, 2, 1])):
        values = np.array([run.values[place] for run in runs])
        scale = float(runs[0].scales[place])
        q = math.exp(-1 / scale)
        assert np.abs(values.mean(axis=0) - truth).max() < 6 * math.sqrt(2 * q) / (1 - q) / math.sqrt(1500)
        assert values.var() == pytest.approx(np.var(truth) + 2 * q / (1 - q) ** 2, rel=0.15)


def test_pruning_finds_the_best_of_all_prunings():
    """Against a weighted least-squares fit of every pruning of a two-level hierarchy."""
    generator = np.random.default_rng(9)
    for _ in range(40):
        fine = generator.integers(0, 12, 6)
        coarse = fine.reshape(2, 3).sum(axis=1) + generator.integers(-2, 3, 2)
        starts = prune(6, (3, 1), [coarse, fine], [2.0, 1.0], 3.0).tolist()
        want = []
        for block in range(2):
            rows = np.array([[3.0], *[[1.0]] * 3])
            y = np.array([coarse[block], *fine[3 * block : 3 * block + 3]])
            w = np.array([1 / 8, 1 / 2, 1 / 2, 1 / 2])
            fit = (w * rows[:, 0] * y).sum() / (w * rows[:, 0] ** 2).sum()
            joined = (w * (y - rows[:, 0] * fit) ** 2).sum() + 3
            free = np.vstack([np.ones(3), np.eye(3)])
            best = np.linalg.lstsq(free * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0]
            apart = (w * (y - free @ best) ** 2).sum() + 9
            want += [3 * block] if joined <= apart else [3 * block, 3 * block + 1, 3 * block + 2]
        assert starts == want


def test_no_count_makes_it_fail():
    for x in (np.full(100, 2**63 - 1), np.full(100, -(2**63))):
        assert pruned_levels(x, 1, SeededEntropy(1), widths=(10, 1), shares=("1/2", "1/2")).size == 100


X = np.array([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("widths", "shares", "message"),
    [
        ((4, 3), ("1/2", "1/2"), "widths must be widths of blocks"),
        ((4, 2), ("1/2", "2/3"), "at most 1 together"),
        ((4, 2), ("1/2",), "one share above 0 for each width"),
    ],
)
def test_bad_arguments_are_refused(widths, shares, message):
    with pytest.raises(InputError, match=message):
        pruned_levels(X, 1, SeededEntropy(1), widths=widths, shares=shares)


def test_neighbours_that_differ_by_more_records_get_more_noise():
    wide = pruned_levels(X, 1, SeededEntropy(1), widths=(4,), shares=(1,), distance=3)
    assert wide.scales == (3,)
    assert [len(values) for values in wide.values] == [1]
