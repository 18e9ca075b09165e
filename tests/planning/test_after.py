"""Plans that use earlier releases, against dense least squares."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import block_precisions, block_rows, equations, evaluate_plan
from leastnoise._trusted.linop import dense
from leastnoise._trusted.measurements import cost

BUDGETS = {"pure": ln.PureDP(1), "rho": ln.ZCDP("1/8"), "approximate": ln.ApproxDP(1, "1e-6")}
DOMAIN = ln.Domain(sex=["F", "M", "X"], age=ln.Integers(0, 4), zone=ln.Integers(0, 1))
AMOUNTS = ln.Domain({"sex": ["F", "M", "X"]}, measures={"years": ln.Measure("age", 0, 4)})
ROWS = 3000
RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M", "X"], ROWS),
        "age": RNG.integers(0, 5, ROWS),
        "zone": RNG.integers(0, 2, ROWS),
    }
)
PAIR = ln.queries(DOMAIN, sex="identity", age="identity")
TABLES = {
    "same": (PAIR, PAIR),
    "further_table": (PAIR, PAIR + ln.queries(DOMAIN, sex="identity", zone="identity")),
    "fewer_tables": (ln.marginals(DOMAIN, ways=2), PAIR),
    "other_queries": (ln.queries(DOMAIN, age="prefix"), ln.queries(DOMAIN, age="all_ranges")),
    "other_attribute": (ln.queries(DOMAIN, zone="identity"), PAIR),
}


def seeded(workload, budget, seed=1):
    return ln.release(ln.plan(workload, budget), PEOPLE, seed=seed)


def dense_system(measurements):
    """Return all measured rows over the joint cells, and the variances of their noise."""
    domain = measurements.domain
    rows = []
    variances = []
    for entry in equations(measurements, None):
        block = block_rows(domain, domain.names, entry.block)
        rows.append(block)
        variances.append(np.full(len(block), entry.variance))
    return np.concatenate(rows), np.concatenate(variances)


def dense_queries(product):
    """Return the queries of a table over the joint cells."""
    domain = product.domain
    matrices = dict(zip(product.attributes, map(dense, product.operators), strict=True))
    rows = np.ones((1, 1))
    for name in domain.names:
        rows = np.kron(rows, matrices.get(name, np.ones((1, domain.kind(name).size))))
    return rows


CASES = {
    "same_pure": ("same", "pure"),
    "further_table_pure": ("further_table", "pure"),
    "further_table_rho": ("further_table", "rho"),
    "further_table_approximate": ("further_table", "approximate"),
    "fewer_tables_rho": ("fewer_tables", "rho"),
    "other_queries_pure": ("other_queries", "pure"),
    "other_attribute_rho": ("other_attribute", "rho"),
}


YEAR_QUERIES = {
    "counts": ln.queries(AMOUNTS, sex="identity"),
    "means": ln.mean_queries(AMOUNTS, "years", by=["sex"]),
    "variances": ln.variance_queries(AMOUNTS, "years", by=["sex"]),
}


def separate_variances(plan):
    """Return variances of tables; sums are without the noise that they share with counts.

    Sums and squares of years are measured at both ends of their values, 0 and 4.
    """
    variances = {table.name: table.rmse**2 for table in plan.expected_error().tables}
    counts = variances.get("count of years by sex", 0.0)
    for name in variances:
        if "sum of" in name:
            variances[name] -= 4 * counts
    return variances


@pytest.mark.parametrize(
    ("earlier_queries", "new_queries"),
    [("means", "variances"), ("variances", "means"), ("counts", "means"), ("means", "counts")],
)
def test_releases_may_have_other_measures(earlier_queries, new_queries):
    """Precisions of the same tables add up, less the noise that sums share with counts."""
    budget = ln.PureDP(1)
    earlier = seeded(YEAR_QUERIES[earlier_queries], budget)
    plan = ln.plan(YEAR_QUERIES[new_queries], budget, after=[earlier])
    plan_errors = evaluate_plan(plan.workload, plan.measurements)
    sources = [separate_variances(plan_errors), separate_variances(earlier.plan)]
    joint = plan.expected_error().tables
    for name, variance in separate_variances(plan).items():
        precision = sum(1 / source[name] for source in sources if name in source)
        assert variance == pytest.approx(1 / precision)
    read_plan = ln.Plan.from_json(plan.to_json())
    assert read_plan.expected_error().tables == joint
    release = ln.release(plan, PEOPLE, seed=2)
    errors = [release.tables[table.name].frame("pandas")["noise_std"].max() for table in joint]
    assert errors == pytest.approx([table.rmse for table in joint])


def test_after_refuses_a_measure_with_other_bounds():
    wider = ln.Domain({"sex": ["F", "M", "X"]}, measures={"years": ln.Measure("age", 0, 9)})
    workload = ln.mean_queries(wider, "years", by=["sex"])
    with pytest.raises(ln.InputError, match="its years has other bounds"):
        ln.plan(workload, ln.PureDP(1), after=[seeded(YEAR_QUERIES["means"], ln.PureDP(1))])


@pytest.mark.usefixtures("kept_plans")
@pytest.mark.parametrize(("tables", "budget"), CASES.values(), ids=CASES)
def test_joint_error_equals_dense_least_squares(tables, budget):
    earlier_workload, workload = TABLES[tables]
    earlier = seeded(earlier_workload, BUDGETS[budget])
    plan = ln.plan(workload, BUDGETS[budget], after=[earlier])
    rows, variances = dense_system(plan.measured())
    inverse = np.linalg.pinv(rows.T @ (rows / variances[:, None]), rcond=1e-12)
    release = ln.release(plan, PEOPLE, seed=2)
    grid = release.measurements.grid
    values = []
    for entry in equations(release.measurements, None):
        block_values = entry.values(release.observation.values[entry.index])
        values.append(entry.block.scaling() * block_values / grid)
    cells = inverse @ rows.T @ (np.concatenate(values) / variances)
    for product, expected_error, table in zip(
        plan.workload, plan.data_independent_error.tables, release.tables, strict=True
    ):
        queries = dense_queries(product)
        query_variances = np.einsum("ij,jk,ik->i", queries, inverse, queries)
        rmse = math.sqrt(query_variances.mean())
        largest_std = math.sqrt(query_variances.max())
        assert expected_error.rmse == pytest.approx(rmse, rel=1e-6)
        assert expected_error.largest_std == pytest.approx(largest_std, rel=1e-6)
        np.testing.assert_allclose(table.answer.ravel(), queries @ cells, rtol=1e-7, atol=1e-6)


@pytest.mark.usefixtures("kept_plans")
@pytest.mark.parametrize("budget", [BUDGETS["pure"], BUDGETS["rho"]], ids=["pure", "rho"])
@pytest.mark.parametrize(
    "workload",
    [PAIR, ln.queries(DOMAIN, age="prefix"), ln.mean_queries(AMOUNTS, "years", by=["sex"])],
    ids=["cells", "cdf", "means"],
)
def test_same_table_again_has_error_over_root_two(workload, budget):
    earlier = seeded(workload, budget)
    plan = ln.plan(workload, budget, after=[earlier])
    error = plan.data_independent_error
    ratio = error.total_squared_error / earlier.plan.data_independent_error.total_squared_error
    assert 0.49 < ratio <= 0.5 * (1 + 1e-6)
    assert error.lower_bound <= error.total_squared_error
    assert plan.cost() == ln.plan(workload, budget).cost()

    # A third of the first error, and two thirds of the second.
    third_plan = ln.plan(workload, budget, after=[earlier, seeded(workload, budget, seed=2)])
    third_error = third_plan.data_independent_error
    assert third_error.total_squared_error < 0.67 * error.total_squared_error


@pytest.mark.usefixtures("kept_plans")
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_budget_goes_where_precision_is_missing(budget):
    earlier_workload, workload = TABLES["further_table"]
    earlier = seeded(earlier_workload, budget)
    plan = ln.plan(workload, budget, after=[earlier])
    unaware = ln.plan(workload, budget)
    unaware_after = evaluate_plan(
        unaware.workload, unaware.measurements, earlier=[earlier.as_earlier()]
    )
    error = plan.data_independent_error
    error_of_unaware = unaware_after.data_independent_error
    assert error.total_squared_error < 0.95 * error_of_unaware.total_squared_error
    assert error.tables[1].rmse < unaware.data_independent_error.tables[1].rmse


def fill_precisions(weight, price, earlier_precision):
    """Return the precisions of least error that cost the whole budget, by water filling.

    They are sqrt(weight / (level price)), less the precisions of earlier releases. The level is
    found by bisection.
    """
    low = 1e-12
    high = 1e12
    for _ in range(200):
        level = math.sqrt(low * high)
        added = np.maximum(0, np.sqrt(weight / (level * price)) - earlier_precision)
        if price @ added > 1:
            low = level
        else:
            high = level
    return added


def test_gaussian_marginals_have_the_closed_form():
    complete = {"complete": True}
    domain = ln.Domain(
        sex=ln.Categories(["F", "M", "X"], **complete),
        age=ln.Integers(0, 4, **complete),
        zone=ln.Integers(0, 1, **complete),
    )
    workload = ln.marginals(domain, ways=2)
    first = ln.plan(ln.queries(domain, sex="identity", age="identity"), ln.ZCDP(1))
    earlier = ln.release(first, PEOPLE, seed=1)
    plan = ln.plan(workload, ln.ZCDP("1/8"), strategy="residual", after=[earlier])
    unweighted = ln.plan(workload, ln.ZCDP("1/8"), strategy="residual")
    joint = replace(unweighted, data_independent_error=None, earlier=(earlier.as_earlier(),))
    weight, precision = block_precisions(joint.workload, joint.measured())
    block_count = len(unweighted.measurements.blocks)
    earlier_precision = precision[:, block_count:].sum(axis=1)
    # Each block measures its own space.
    assert (np.count_nonzero(precision[:, :block_count], axis=0) == 1).all()
    new_precision = precision[:, :block_count].sum(axis=1)
    budget_of_space = np.zeros(len(weight))
    for column, block in enumerate(unweighted.measurements.blocks):
        (space,) = np.flatnonzero(precision[:, column])
        one_block = replace(unweighted.measurements, blocks=(block,))
        budget_of_space[space] = float(cost(one_block).rho)
    # The share of the budget that a precision of 1 costs in each space.
    price = budget_of_space / new_precision / budget_of_space.sum()
    added = fill_precisions(weight, price, earlier_precision)
    least_error = (weight / (earlier_precision + added)).sum()
    assert (added == 0).any()
    assert plan.data_independent_error.total_squared_error == pytest.approx(least_error, rel=2e-3)


@pytest.mark.usefixtures("kept_plans")
@pytest.mark.parametrize("budget", [BUDGETS["pure"], BUDGETS["rho"]], ids=["pure", "rho"])
def test_intervals_cover_the_truth(budget):
    earlier_workload, workload = TABLES["further_table"]
    plan = ln.plan(workload, budget, after=[seeded(earlier_workload, budget)])
    true_counts = [
        PEOPLE.groupby(list(product.attributes)).size().to_numpy() for product in plan.workload
    ]
    covered = []
    for seed in range(20):
        earlier = seeded(earlier_workload, budget, 1000 + seed).as_earlier()
        release = ln.release(replace(plan, earlier=(earlier,)), PEOPLE, seed=seed)
        for table, counts in zip(release.tables, true_counts, strict=True):
            numbers = table.numbers()
            covered.append((numbers["low"] <= counts) & (counts <= numbers["high"]))
    assert 0.93 <= np.concatenate(covered).mean() <= 0.99


def test_plan_file_and_chain_of_releases_round_trip(tmp_path):
    first = seeded(PAIR, BUDGETS["rho"])
    plan = ln.plan(PAIR, BUDGETS["rho"], after=[first])
    assert ln.Plan.from_json(plan.to_json()) == plan
    second = ln.release(plan, PEOPLE, seed=2, out=tmp_path / "second")
    assert ln.read_release(tmp_path / "second").as_earlier() == second.as_earlier()
    third = ln.plan(PAIR, BUDGETS["rho"], after=[ln.read_release(tmp_path / "second")])
    expected = first.plan.data_independent_error.total_squared_error / 3
    assert third.data_independent_error.total_squared_error == pytest.approx(expected, rel=1e-4)


@pytest.mark.usefixtures("kept_plans")
def test_rounded_gaussians_on_different_grids_are_joined():
    # A plan of this number of tables has Gaussian noise, and a finer grid with more budget.
    domain = ln.Domain({f"a{number}": ln.Integers(0, 2, complete=True) for number in range(8)})
    workload = ln.marginals(domain, ways=2)
    large_budget = ln.GDP(4)
    small_budget = ln.GDP("1/4")
    data = pd.DataFrame(np.zeros((9, 8), dtype=int), columns=domain.names)
    coarse = ln.release(ln.plan(workload, small_budget), data, seed=1)
    plan = ln.plan(workload, large_budget, after=[coarse])
    assert coarse.measurements.grid < plan.measurements.grid == plan.measured().grid
    # Precisions of the two releases add up.
    error_of_new = ln.plan(workload, large_budget).data_independent_error.total_squared_error
    error_of_coarse = coarse.plan.data_independent_error.total_squared_error
    joint_error = 1 / (1 / error_of_new + 1 / error_of_coarse)
    assert plan.data_independent_error.total_squared_error == pytest.approx(joint_error, rel=1e-3)

    table = ln.plan(ln.queries(domain, a0="identity"), ln.PureDP("1/10"))
    laplace = ln.release(table, data, seed=1)
    with pytest.raises(ln.InputError, match="with rounded_gaussian noise and without them"):
        ln.plan(workload, small_budget, after=[laplace])


OTHER = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 4), zone=ln.Integers(0, 1))
FIRST = seeded(PAIR, BUDGETS["pure"])
UNIT = ln.Privacy(ln.PureDP(1), unit_column="person", max_rows=2)


@pytest.mark.parametrize(
    ("workload", "budget", "options", "reason"),
    [
        (ln.queries(OTHER, sex="identity"), ln.PureDP(1), {}, "must have the domain of this plan"),
        (PAIR, UNIT, {}, "must have the unit and neighbours"),
        (PAIR, ln.Privacy(ln.PureDP(1), "replace"), {}, "must have the unit and neighbours"),
        (PAIR, ln.ZCDP(1), {}, "must have the noise of this plan"),
        (PAIR, ln.PureDP(1), {"after": [FIRST, FIRST]}, "must be used only once"),
        (PAIR, ln.PureDP(1), {"after": ["release-2025"]}, "after must be a list of releases"),
        (PAIR, ln.PureDP(1), {"objective": "worst"}, "cannot have the objective 'worst'"),
        (PAIR, ln.PureDP(1), {"strategy": "model"}, "cannot have the strategy 'model'"),
        (PAIR, ln.Least("epsilon"), {}, "cannot have a least budget"),
    ],
)
def test_unfit_earlier_release_is_refused(workload, budget, options, reason):
    with pytest.raises(ln.InputError, match=reason):
        ln.plan(workload, budget, **{"after": [FIRST], **options})


def test_release_that_a_chain_counts_is_refused():
    later = ln.release(ln.plan(PAIR, ln.PureDP(1), after=[FIRST]), PEOPLE, seed=2)
    assert later.as_earlier().counted == (FIRST.as_earlier().digest,)
    with pytest.raises(ln.InputError, match="must be used only once"):
        ln.plan(PAIR, ln.PureDP(1), after=[FIRST, later])


def test_data_dependent_release_is_refused():
    ages = ln.queries(DOMAIN, age="prefix")
    plan = ln.plan(ages, ln.PureDP(1), strategy="dawa")
    release = ln.release(plan, PEOPLE, seed=1)
    with pytest.raises(ln.InputError, match="chose its measurements by noisy values"):
        ln.plan(ages, ln.PureDP(1), after=[release])


def test_contrasts_that_leave_out_hidden_cells_are_refused():
    budget = ln.ZCDP("1/8")
    earlier = ln.release(ln.plan(PAIR, budget, strategy="residual"), PEOPLE, seed=1)
    workload = PAIR + ln.queries(DOMAIN, sex="identity", zone="identity")
    with pytest.raises(ln.InputError, match="measured contrasts that leave out the rows without"):
        ln.plan(workload, budget, after=[earlier])
