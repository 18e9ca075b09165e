"""Covering designs and greedy covers of data cubes under Laplace noise."""

import itertools
from collections import Counter

import numpy as np
import pytest

from experiments.residuals import coefficients, eigenvalues, optimal_weights, total_squared_error
from leastnoise._strategies import (
    _covering,
    attribute_sets,
    cover_errors,
    covering_design,
    downward_closure,
    greedy_cover,
    incidence,
    table_sizes,
)
from leastnoise._trusted.check import InputError
from strategies.proposals import CUBES, cube_workload, ways


def problem(shape, targets):
    """Return the tables that the targets need, and the coefficients of their errors."""
    weights = targets if isinstance(targets, dict) else dict.fromkeys(targets, 1.0)
    closure = downward_closure(shape, weights)
    return closure, coefficients(closure, weights)


def checked_design(closure, coefficient):
    """Return the design, after a check of its error by plain algebra."""
    design = covering_design(closure, coefficient)
    assert design.weights.sum() == pytest.approx(1.0)
    eigenvalue = eigenvalues(closure, design.tables, design.weights)
    assert total_squared_error(coefficient, eigenvalue) == pytest.approx(design.error, rel=1e-9)
    return design


def meetings(points, lines, strength):
    """Return the numbers of common lines that sets of ``strength`` points have."""
    seen = Counter(s for line in lines for s in itertools.combinations(sorted(line), strength))
    return {seen[s] for s in itertools.combinations(range(points), strength)}


@pytest.mark.parametrize(
    ("points", "strength"),
    [(n, s) for s, known in ((2, _covering.PLANES), (3, _covering.CIRCLES)) for n in known],
)
def test_points_of_finite_planes_meet_exactly_once(points, strength):
    (lines,) = [
        blocks
        for name, n, blocks in _covering.designs(strength, points)
        if "plane" in name and n == points
    ]
    assert meetings(points, lines, strength) == {1}


def test_quadruples_join_three_points_once():
    assert meetings(16, _covering.zero_xor_blocks(16), 3) == {1}
    quadruples = _covering.zero_sum_blocks(20, 4).tolist()
    assert meetings(20, quadruples, 3) <= {0, 1}
    assert len(quadruples) * 4 / 1140 > 0.85
    for strength in (1, 2, 3):
        for _, points, lines in _covering.designs(strength, 9):
            assert 0 not in meetings(points, lines, strength)


@pytest.mark.parametrize(("shape", "k", "kind"), CUBES)
def test_designs_reach_the_figures(shape, k, kind):
    design = checked_design(*problem(shape, cube_workload(len(shape), k, kind)))
    assert 2 * design.error <= CUBES[shape, k, kind][2] * (1 + 1e-9)


TENS = (10,) * 8
FIVE = (75, 16, 5, 2, 20)
# These are RMSEs of a cell at unit noise, of eight attributes of ten values and of five attributes
# of Adult.
HDMM = [
    *((TENS, (k,), figure) for k, figure in ((1, 7.642), (2, 25.603), (3, 46.39), (4, 52.99))),
    *(
        (FIVE, sizes, 0.98 * figure)
        for sizes, figure in (((2,), 6.454), ((3,), 5.665), ((2, 3), 6.664), ((1, 2, 3), 6.965))
    ),
]


@pytest.mark.parametrize(("shape", "sizes", "figure"), HDMM)
def test_designs_are_no_worse_than_hdmm(shape, sizes, figure):
    targets = ways(len(shape), *sizes)
    assert (
        np.sqrt(covering_design(*problem(shape, targets)).error / table_sizes(shape, targets).sum())
        <= figure
    )


def test_unequal_weights_and_constant_attributes_are_covered():
    checked_design(*problem((2, 3, 1, 4), {(0, 1): 4.0, (2,): 0.01, (1, 3): 1.0, (): 2.0}))
    assert checked_design(*problem((2, 3), [()])).tables == ((),)


def test_many_attributes_are_planned_on_the_hypergraph():
    targets = ways(30, 0, 1, 2, 3)
    closure, coefficient = problem((10,) * 30, targets)
    weights = optimal_weights(incidence(closure, targets), coefficient, norm=1, steps=30)
    assert checked_design(closure, coefficient).error < 0.8 * weights.error


def test_asymmetric_workload_gets_merged_tables():
    rng = np.random.default_rng(1)
    targets = sorted({tuple(sorted(rng.choice(60, 3, replace=False).tolist())) for _ in range(120)})
    closure, coefficient = problem((2,) * 60, targets)
    design = covering_design(closure, coefficient)
    inside = optimal_weights(incidence(closure, attribute_sets(closure)), coefficient, norm=1)
    assert design.start_name == "merged tables"
    assert design.error < 0.85 * inside.error
    assert all(any(set(target) <= set(table) for table in design.tables) for target in targets)


def test_covering_refuses_invalid_arguments(monkeypatch):
    closure, coefficient = problem((2, 3), [(0, 1)])
    with pytest.raises(
        InputError, match="coefficient must be above 0 for at least one attribute set"
    ):
        covering_design(closure, np.zeros(closure.count))
    monkeypatch.setattr(_covering, "_MOST_TABLES", 0)
    with pytest.raises(
        InputError, match="tables that are weighed together must be at most 0; got 1"
    ):
        covering_design(closure, coefficient)
    monkeypatch.setattr(_covering, "_MOST_PAIRS", 1)
    with pytest.raises(
        InputError,
        match="candidates must be at most 1 pairs of the two; got '3 for 2 requested marginals'",
    ):
        greedy_cover((2, 2), [(0,), (1,)])


def test_ten_binary_attributes_have_the_known_covers():
    cover = greedy_cover((2,) * 10, ways(10, 1))
    assert [len(table) for table in cover.tables] == [2] * 5
    assert 2 * cover.largest_variance == 100
    two = greedy_cover((2,) * 10, ways(10, 2))
    assert two.tables == (tuple(range(10)),)
    assert 2 * two.largest_variance == 512


@pytest.mark.parametrize("power", [2, 1], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 2, 2), (7, 2, 3), (9, 8, 7)])
def test_cover_is_within_its_bound_of_the_best(shape, power):
    targets = ways(len(shape), 1, 2)
    options = ways(len(shape), *range(len(shape) + 1))
    cover = greedy_cover(shape, targets, norm=3 - power)
    sizes = table_sizes(shape, options)
    target_sizes = table_sizes(shape, targets)
    inside = np.array([[set(target) <= set(table) for target in targets] for table in options])
    added = np.where(inside, sizes[:, None] / target_sizes, np.inf)
    picks = itertools.chain.from_iterable(
        itertools.combinations(range(len(options)), k) for k in range(1, 7)
    )
    best = min(len(pick) ** power * added[list(pick)].min(axis=0).max() for pick in picks)
    assert best <= cover.largest_variance <= best * (np.log(len(targets)) + 1) ** 2
    measured = [options.index(table) for table in cover.tables]
    used = added[measured][cover.table_of_target, np.arange(len(targets))]
    assert len(measured) ** power * used.max() == pytest.approx(cover.largest_variance)
    weights = np.arange(1.0, 1 + len(targets))
    errors = cover_errors(shape, dict(zip(targets, weights, strict=True)), cover)
    assert errors.sum() == pytest.approx((weights * sizes[measured][cover.table_of_target]).sum())


def test_many_attributes_are_covered_without_subsets():
    targets = ways(40, 2)
    cover = greedy_cover((3,) * 40, targets)
    assert all(
        set(target) <= set(cover.tables[at])
        for target, at in zip(targets, cover.table_of_target, strict=True)
    )
    assert cover.largest_variance <= len(targets) ** 2
