"""The greedy cover of data cubes: known figures, and the best cover by brute force on small cubes."""

import itertools

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._planner._covering import cover_errors, greedy_cover
from leastnoise._planner._residual_algebra import grouped_budgets, table_sizes
from planner.proposals import ways


def test_ten_binary_attributes_have_the_known_covers():
    one = greedy_cover((2,) * 10, ways(10, 1))
    assert (len(one.tables), {len(table) for table in one.tables}, 2 * one.largest) == (5, {2}, 100)
    two = greedy_cover((2,) * 10, ways(10, 2))
    assert (two.tables, 2 * two.largest) == ((tuple(range(10)),), 512)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 2, 2), (7, 2, 3), (9, 8, 7)])
def test_the_cover_is_within_its_bound_of_the_best(shape, norm):
    targets = ways(len(shape), 1, 2)
    cover = greedy_cover(shape, targets, norm=norm)
    options = ways(len(shape), *range(len(shape) + 1))
    sizes, asked = table_sizes(shape, options), table_sizes(shape, targets)
    added = np.array(
        [[b / a if set(t) <= set(s) else np.inf for t, a in zip(targets, asked, strict=True)] for s, b in zip(options, sizes, strict=True)]
    )
    power = 2 if norm == 1 else 1
    best = min(
        k**power * added[list(pick)].min(axis=0).max() for k in range(1, 7) for pick in itertools.combinations(range(len(options)), k)
    )
    assert best <= cover.largest <= best * (np.log(len(targets)) + 1) ** 2
    measured = [options.index(table) for table in cover.tables]
    used = added[measured][cover.source, np.arange(len(targets))]
    assert len(measured) ** power * used.max() == pytest.approx(cover.largest)


def test_optimal_budgets_improve_on_equal_ones():
    shape = (9, 16, 7, 15, 6, 5, 2, 2)
    targets = dict.fromkeys(ways(8, 1), 1.0)
    cover = greedy_cover(shape, list(targets))
    errors = cover_errors(shape, targets, cover)
    assert errors.sum() == sum(table_sizes(shape, cover.tables)[cover.source])
    equal = len(errors) ** 2 * errors.sum()
    assert grouped_budgets(errors, np.ones(len(errors)), 1).error < equal


def test_many_attributes_are_covered_without_all_subsets():
    targets = ways(40, 2)
    cover = greedy_cover((3,) * 40, targets)
    assert all(set(target) <= set(cover.tables[at]) for target, at in zip(targets, cover.source, strict=True))
    assert cover.largest <= len(targets) ** 2


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr("leastnoise._planner._covering._MOST_PAIRS", 1)
    with pytest.raises(InputError, match="candidates must be at most 1 pairs of the two; got '3 for 2 asked marginals'"):
        greedy_cover((2, 2), [(0,), (1,)])
