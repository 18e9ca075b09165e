"""One-way tables with K-norm noise: plans, promised errors, and releases."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._error import (
    LargeScaleVariances,
    cell_multiplier,
    evaluate_plan,
    k_norm_variances,
    lower_bound,
    measured_multiplier,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import Search, mechanism_of
from leastnoise._plan import Plan
from leastnoise._planning import SeriesOptions, series_plan
from leastnoise._trusted.accounting import Noise
from simulated import releases
from strategies.proposals import plan_of
from trusted.kernel.k_norm_lattice import k_norm, lattice_points

PURE = ln.PureDP(1)


def domain_of(sizes, *, complete=True):
    domain = ln.Domain(**{f"a{at}": ln.Integers(1, size) for at, size in enumerate(sizes)})
    return domain.as_complete() if complete else domain


def one_way(sizes, *, complete=True):
    return ln.marginals(domain_of(sizes, complete=complete), ways=1)


def rmse(plan):
    queries = sum(product.rows for product in plan.workload)
    return math.sqrt(plan.expected_error().total_squared_error / queries)


# The errors of docs/results/least-error.md, rounded up, and of two more domains.
@pytest.mark.parametrize(
    ("sizes", "budget", "most"),
    [
        ((2,) * 16, PURE, 7.54),
        ((4,) * 4, PURE, 3.553),
        ((10,) * 4, PURE, 4.623),
        ((9, 16, 7, 15, 6, 5, 2, 2), PURE, 7.65),
        ((2, 2, 3, 4, 5, 6, 7, 8, 10, 16), PURE, 8.95),
        ((2, 8, 100), PURE, 2.72),
        ((2,) * 16, ln.ApproxDP(1, "1e-6"), 7.54),
        ((4,) * 8, ln.ApproxDP(1, "1e-6"), 6.34),
    ],
)
def test_k_norm_promises_its_least_errors(sizes, budget, most):
    plan = ln.plan(one_way(sizes), budget, strategy="k_norm")
    assert plan.strategy == "k_norm"
    assert rmse(plan) <= most


@pytest.mark.parametrize("sizes", [(1,), (3,), (2, 2), (3, 2), (1, 2, 2)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(4, 5)])
def test_variances_match_the_enumerated_lattice(sizes, scale):
    points = list(lattice_points(sizes, 18 if sum(sizes) < 5 else 15))
    weights = np.array([math.exp(-k_norm(sizes, point) / scale) for point in points])
    weights /= weights.sum()
    squares = np.array(points, dtype=float) ** 2
    variances = k_norm_variances(tuple(sorted(sizes)), scale)
    first = np.cumsum([0, *sizes])[:-1]
    for size, place in zip(sizes, first, strict=True):
        assert variances.cells[size] == pytest.approx(weights @ squares[:, place], rel=0.01)
    totals = np.array([sum(point[: sizes[0]]) for point in points], dtype=float)
    assert variances.total == pytest.approx(weights @ totals**2, rel=0.01)


def test_single_table_has_laplace_noise():
    variances = k_norm_variances((5,), Fraction(3, 2))
    step = 0.5 / math.sinh(1 / 3) ** 2
    assert variances.cells[5] == pytest.approx(step)
    assert variances.total == pytest.approx(5 * step)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 2, 2)])
def test_cell_multiplier_is_the_quantile_of_the_enumerated_law(sizes):
    scale = Fraction(1)
    level = 0.9
    points = list(lattice_points(sizes, 13))
    weights = np.array([math.exp(-k_norm(sizes, point)) for point in points])
    weights /= weights.sum()
    ordered = tuple(sorted(sizes))
    expected = []
    for size, place in zip(sizes, np.cumsum([0, *sizes])[:-1], strict=True):
        cells = np.abs([point[place] for point in points])
        reach = next(c for c in range(20) if weights[cells <= c].sum() >= level)
        std = math.sqrt(k_norm_variances(ordered, scale).cells[size])
        expected.append((reach - 0.5) / std)
    assert cell_multiplier(ordered, scale, level) == pytest.approx(max(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "budget", "neighbours", "complete"),
    [
        ((2,) * 16, PURE, "add_remove", True),
        ((4,) * 4, ln.PureDP("1/10"), "replace", True),
        ((2, 2, 3, 4, 5, 6, 7, 8, 10, 16), PURE, "add_remove", True),
        ((3, 2, 2, 5), PURE, "add_remove", False),
        ((2, 2, 9), ln.PureDP(3), "add_remove", True),
    ],
)
def test_releases_have_the_promised_errors_and_intervals_cover(sizes, budget, neighbours, complete):
    workload = one_way(sizes, complete=complete)
    plan = ln.plan(workload, ln.Privacy(budget, neighbours), strategy="k_norm")
    generator = np.random.default_rng(5)
    rows = {
        name: generator.integers(1, size + 1, 300).tolist()
        for name, size in zip(workload.domain.names, sizes, strict=True)
    }
    if not complete:
        rows["a1"][:40] = [99] * 40  # outside: counted in the hidden cell alone
    counts = [np.bincount(rows[name], minlength=200) for name in workload.domain.names]
    squares = []
    covered = []
    for release in releases(plan, pa.table(rows), range(160)):
        for table, size, count in zip(release.answer(workload), sizes, counts, strict=True):
            truth = count[1 : size + 1]
            squares.append((table.answer - truth) ** 2)
            covered.append((table.low <= truth) & (truth <= table.high))
    seen = math.sqrt(np.concatenate(squares).mean())
    assert seen == pytest.approx(rmse(plan), rel=0.06)
    assert 0.93 <= np.concatenate(covered).mean() <= 0.99


@pytest.mark.parametrize(
    ("neighbours", "max_rows", "changes"),
    [("add_remove", 1, 1), ("add_remove", 3, 3), ("replace", 1, 2), ("replace", 3, 6)],
)
@pytest.mark.parametrize("budget", [ln.PureDP(3), ln.ApproxDP(3, "1e-6")], ids=["pure", "delta"])
def test_units_of_several_rows_scale_the_noise(neighbours, max_rows, changes, budget):
    """Like one row with a budget divided by the changes, by shares and errors."""
    unit = "id" if max_rows > 1 else None
    privacy = ln.Privacy(budget, neighbours, unit, max_rows)
    plan = ln.plan(one_way((2,) * 8), privacy, strategy="k_norm")
    assert plan.cost().epsilon == 3
    (group,) = plan.measured().k_norm_groups().values()
    assert plan.measured().blocks[group[0]].scale == Fraction(changes, 3)
    one_row_plan = ln.plan(one_way((2,) * 8), ln.PureDP(Fraction(3, changes)), strategy="k_norm")
    assert rmse(plan) == pytest.approx(rmse(one_row_plan))


@pytest.mark.parametrize("sizes", [(2, 8, 100), (9, 16, 7, 15, 6, 5, 2, 2), (2, 2, 2, 40, 40)])
def test_groups_share_the_budget_by_cube_roots(sizes):
    """Shares are near cube roots of the errors, and better than these and equal shares."""
    plan = ln.plan(one_way(sizes), PURE, strategy="k_norm")
    measured = plan.measured()
    blocks = measured.blocks
    groups = list(measured.k_norm_groups().values())
    groups += [[at] for at, block in enumerate(blocks) if block.k_norm_group is None]
    assert len(groups) > 1
    shares = np.array([float(1 / blocks[group[0]].scale) for group in groups])
    assert shares.sum() == pytest.approx(1)
    limit = LargeScaleVariances(list(sizes))
    errors = []
    for group in groups:
        group_rows = [blocks[at].rows for at in group]
        errors.append(sum(size * limit.of(group_rows).cells[size] for size in group_rows))
    roots = np.cbrt(errors)
    cube_roots = roots / roots.sum()
    assert shares == pytest.approx(cube_roots, rel=0.15)
    for other in (cube_roots, np.full(len(groups), 1 / len(groups))):
        scales = {at: other[number] for number, group in enumerate(groups) for at in group}
        weighted = [(block, float(scales[at])) for at, block in enumerate(blocks)]
        rescaled = fit_noise_scales(measured.domain, measured.privacy, measured.noise, weighted)
        rescaled_error = evaluate_plan(
            plan.workload, rescaled
        ).data_independent_error.total_squared_error
        assert plan.expected_error().total_squared_error <= rescaled_error * (1 + 1e-6)


@pytest.mark.parametrize(
    "workload",
    [
        ln.marginals(domain_of((3, 4)), ways=2),
        ln.queries(domain_of((3, 4)), a0="prefix") + ln.marginals(domain_of((3, 4)), ways=1),
        one_way((5,)),
    ],
)
def test_other_workloads_are_refused_by_name(workload):
    with pytest.raises(ln.InputError, match=r"one-way|other queries|has one"):
        ln.plan(workload, PURE, strategy="k_norm")


def test_gaussian_budgets_are_refused_by_name():
    with pytest.raises(ln.InputError, match="pure privacy"):
        ln.plan(one_way((3, 4)), ln.ZCDP(1), strategy="k_norm")


def test_budget_without_noise_is_refused():
    with pytest.raises(ln.InputError, match="so large"):
        ln.plan(one_way((2, 2)), ln.PureDP(5000), strategy="k_norm")


def test_k_norm_plan_file_round_trip():
    plan = ln.plan(one_way((2, 2, 9)), PURE, strategy="k_norm")
    read_plan = Plan.from_json(plan.to_json())
    assert read_plan.measured().k_norm_groups() == plan.measured().k_norm_groups() != {}
    mechanism_of(read_plan).prepare(read_plan)


def test_lower_bound_is_half_of_that_for_laplace_noise():
    workload = one_way((2,) * 4)
    plan = ln.plan(workload, ln.PureDP("1/50"), strategy="k_norm")
    laplace = lower_bound(workload, plan.privacy, Noise.DISCRETE_LAPLACE)
    assert plan.lower_bound() == pytest.approx(laplace / 2, rel=1e-3)


def test_intervals_are_at_most_those_for_laplace_noise():
    plan = ln.plan(one_way((2,) * 16), ln.PureDP("1/10"), strategy="k_norm")
    assert 1.95 < measured_multiplier(plan.measured(), 0.95, plan.workload) < 1.97
    total = ln.queries(plan.domain, {}).products
    assert measured_multiplier(plan.measured(), 0.95, total) == pytest.approx(2.118, abs=1e-3)
    alone = plan_of("marginals", one_way((2,) * 16), PURE)
    assert measured_multiplier(alone.measured(), 0.95, alone.workload) == pytest.approx(
        2.118, abs=1e-3
    )


def test_series_along_periods_has_independent_noise():
    days = ln.Dates("2026-01-01", "2026-01-04", "day")
    domain = ln.Domain(day=days, **{f"a{at}": ln.Integers(1, 2) for at in range(4)})
    workload = ln.marginals(domain.as_complete(), ways=2)
    day_workload = ln.Workload(
        workload.domain, tuple(each for each in workload if "day" in each.attributes)
    )
    plan = series_plan(day_workload, ln.Privacy(PURE), SeriesOptions("day"), Search())
    assert plan.measured().k_norm_groups() == {}
    with pytest.raises(ln.InputError, match="one-way"):
        series_plan(day_workload, ln.Privacy(PURE), SeriesOptions("day"), Search("k_norm"))


@pytest.mark.parametrize("epsilon", [60, 150, 300])
def test_k_norm_tables_are_solved_with_other_tables(epsilon):
    domain = ln.Domain(
        city=ln.Categories(["a", "b", "c"], null="other"),
        age=ln.Integers(0, 4),
        part=ln.Integers(0, 5),
    )
    rows = pd.DataFrame(
        {
            "city": ["a", "b", "c", None] * 6,
            "age": [0, 1, 2, 3, 4, None] * 4,
            "part": [*range(6)] * 4,
        }
    )
    workload = ln.queries(domain) + ln.marginals(domain, ways=1, of=["city", "age"])
    workload += ln.queries(domain, part=ln.predicates([[0, 1, 2], [2, 3]]))
    plan = ln.plan(workload, ln.PureDP(epsilon), strategy="k_norm")
    tables = ln.release(plan, rows, seed=1).tables
    for table, count in zip(tables, ([24], [6] * 4, [4] * 5, [12, 8]), strict=True):
        assert table.answer.reshape(-1).tolist() == pytest.approx(count, abs=1e-3)


@pytest.mark.parametrize(
    "privacy",
    [
        ln.Privacy(ln.PureDP(150)),
        ln.Privacy(ln.PureDP(300), "replace"),
        ln.Privacy(ln.PureDP(600), "add_remove", "id", 2),
    ],
    ids=["rows", "replaced rows", "units"],
)
@pytest.mark.parametrize("with_sums", [False, True])
def test_k_norm_release_of_a_huge_budget_is_read_again(tmp_path, privacy, with_sums):
    domain = ln.Domain(
        city=ln.Categories(["a", "b", "c"], null="other"),
        age=ln.Integers(0, 4),
        measures={"pay": ln.Measure("pay", 0, 9)},
    )
    rows = pd.DataFrame(
        {
            "id": [number // 2 for number in range(40)],
            "city": ["a", "b", "c", None] * 10,
            "age": [0, 1, 2, 3, None] * 8,
            "pay": [1, 2] * 20,
        }
    )
    workload = ln.marginals(domain, ways=1)
    if with_sums:
        workload += ln.queries(domain, city="identity", sum="pay")
    plan = ln.plan(workload, privacy, strategy="k_norm")
    release = ln.release(plan, rows, seed=1, out=tmp_path / "out")
    read_again = ln.read_release(tmp_path / "out")
    truth = [[10] * 4, [8] * 4 + [0], [10, 20, 10, 20]]
    for table, again, exact in zip(release.tables, read_again.tables, truth, strict=False):
        assert again.answer.tolist() == table.answer.tolist()
        assert again.answer.reshape(-1) == pytest.approx(exact, abs=0.5)
        assert again.low.tolist() == table.low.tolist()
