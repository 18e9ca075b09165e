"""Tilted splits: the convex programme, rounding, published figures, and plans."""

import math

import numpy as np
import pytest

from families.grams import all_ranges_gram, prefix_gram
from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._estimation import Estimate
from leastnoise._families import balanced_rounding, best_tilt, contrast_variances, fit_contrast_rows
from leastnoise._mechanisms import try_strategies
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Privacy
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.table import Table
from leastnoise._workload import marginals, matrix, queries, ranges
from strategies.proposals import error_of, plan_of, proposal, tables, ways


def tilted_rmse(workload):
    """Return the RMSE of a query in the plan of tilted spaces, at privacy cost 1."""
    return math.sqrt(error_of("tilted", workload, ZCDP("1/2")) / workload.rows)


@pytest.mark.parametrize("gram", [prefix_gram(6), all_ranges_gram(5)], ids=["prefix", "ranges"])
def test_rows_for_a_tilt_are_optimal(gram):
    n = gram.size
    gram_matrix = gram.dense()
    mean = np.random.default_rng(0).dirichlet(np.full(n, 5.0))
    fitted = fit_contrast_rows(gram_matrix, mean, gap=1e-8, max_steps=5000)
    assert np.abs(fitted.rows @ mean).max() < 1e-9
    assert (fitted.rows**2).sum(axis=0).max() == pytest.approx(1)
    assert (
        fitted.lower_bound * (1 - 1e-6)
        <= contrast_variances(fitted.rows, [gram_matrix])[0]
        <= fitted.lower_bound * (1 + 1e-6)
    )
    # Any other rows with this tilt are worse.
    rng = np.random.default_rng(1)
    for step in (0.01, 0.1, 1.0):
        rows = fitted.rows + step * rng.normal(size=fitted.rows.shape) @ (np.eye(n) - mean[:, None])
        assert (
            contrast_variances(rows, [gram_matrix])[0] * (rows**2).sum(axis=0).max()
            > fitted.lower_bound
        )


@pytest.mark.parametrize("top", [31, 255, 4095])
def test_rounding_keeps_the_columns_norms(top):
    gram_matrix = prefix_gram(60).dense()
    mean, _ = best_tilt(gram_matrix, 20.0)
    rows = fit_contrast_rows(gram_matrix, mean, gap=1e-6).rows
    rounded = balanced_rounding(rows, top)
    assert np.abs(rounded).max() == top
    nearest = np.rint(rows * top / np.abs(rows).max())

    def relative_loss(strategy):
        """Return how much larger the variance of a strategy is, at the same column norm."""
        norm = math.sqrt(float((strategy.astype(float) ** 2).sum(axis=0).max()))
        variance = contrast_variances(strategy / norm, [gram_matrix])[0]
        return float(variance / contrast_variances(rows, [gram_matrix])[0] - 1)

    assert relative_loss(rounded) < relative_loss(nearest) / 3
    assert abs(relative_loss(rounded)) < 15 / top**1.5


PREFIX = {  # the least published figures of up to 3-way tables, as RMSE at privacy cost 1
    "adult": ((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2), 5, (16.801, 43.685)),
    "cps": ((50, 100, 7, 4, 2), 2, (5.818, 7.568)),
    "loans": ((101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15), 4, (14.200, 33.393)),
}


@pytest.mark.parametrize("place", [0, 1], ids=["2-way", "up to 3-way"])
@pytest.mark.parametrize("data", PREFIX)
def test_published_prefix_figures(data, place):
    shape, rich, figures = PREFIX[data]
    sizes = ((2,), (0, 1, 2, 3))[place]
    assert (
        figures[place] * 0.99
        < tilted_rmse(tables(shape, ways(len(shape), *sizes), rich))
        <= figures[place]
    )


@pytest.mark.parametrize(
    ("kind", "size", "figure"),
    [
        ("prefix", 10, 33.69),
        ("prefix", 20, 49.38),
        ("prefix", 50, 73.80),
        ("all_ranges", 10, 41.08),
        ("all_ranges", 20, 63.31),
    ],
)
def test_published_figures_of_forty_attributes(kind, size, figure):
    assert figure * 0.95 < tilted_rmse(tables((size,) * 40, ways(40, 1, 2), 40, kind)) <= figure


SMALL = Domain(
    a=Coded(3), b=Integers(0, 9), c=Integers(0, 5), measures={"pay": Measure("pay", 0, 9)}
)
MIXED = (
    queries(SMALL, a="identity", b="prefix")
    + queries(SMALL, b="all_ranges", c="prefix", weight=2)
    + marginals(SMALL, ways=1)
    + queries(SMALL, c=matrix([[1, -2, 0, 1, 0, 0], [0, 1, 1, 0, 0, 3]]))
    + queries(SMALL, c="prefix", sum="pay", weight="1/2")
)


def test_tilted_error_matches_plan_and_beats_residual():
    budget = ZCDP("1/200")
    total = error_of("tilted", MIXED, budget)
    assert total == pytest.approx(proposal("tilted", MIXED, budget).error * 100, rel=2e-3)
    assert total < 0.9 * error_of("residual", MIXED, budget)


@pytest.mark.parametrize(
    "budget", [ZCDP("1000"), ZCDP("1/10000000"), ApproxDP("1/2", "1e-6")], ids=str
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_extreme_and_approximate_budgets_are_met(budget, neighbours):
    plan_of(
        "tilted", queries(SMALL, a="identity", b="prefix", c="prefix"), Privacy(budget, neighbours)
    )


@pytest.mark.parametrize(
    "workload",
    [
        queries(SMALL, b=ranges([(0, 3)])),
        queries(SMALL, a="identity", b=ranges([(0, 3)]))
        + queries(SMALL, b=matrix([[1, -1] + [0] * 8])),
        queries(SMALL, b=matrix([[1, -1] + [0] * 8])),
        queries(SMALL, b=matrix([[0] * 9 + [5]]), c="prefix"),
        queries(SMALL, a="identity", b=ranges([(i, i + 3) for i in range(7)])),
    ],
    ids=["one range", "range and difference", "difference", "one cell", "windows"],
)
def test_tilted_merges_indistinguishable_cells(workload):
    assert error_of("tilted", workload, ZCDP("1/200")) < 1.2 * error_of(
        "gaussian_optimum", workload, ZCDP("1/200")
    )


@pytest.mark.parametrize("name", ["tilted", "residual", "fourier"])
def test_attributes_of_one_cell(name):
    domain = Domain(a=Coded(3), b=Integers(0, 9), c=Coded(1))
    with_c = queries(domain, a="identity", b="prefix", c="prefix") + queries(domain, c="identity")
    without = queries(domain, a="identity", b="prefix") + marginals(domain, ways=0)
    totals = []
    for workload in (with_c, without):
        (candidate,) = try_strategies(workload, Privacy(ZCDP("1/200")), name)
        assert candidate.plan is not None, candidate.reason
        totals.append(candidate.total)
        simulated = Estimate(
            simulate(
                candidate.plan.measured(),
                Table(domain, {"a": [0, 1], "b": [2, 3], "c": [0, 0]}),
                SeededEntropy(0),
            )
        )
        assert all(simulated.values(product).shape == product.shape for product in workload)
    assert totals[0] == pytest.approx(totals[1], rel=1e-6)
