"""Correlations and regressions: brute force, privacy, and intervals that cover."""

import functools
import itertools
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from experiments.coverage_moments import NOISE, determination_truth, drawn_moments, regression_truth
from leastnoise._domain import CompleteCount, DeviationProduct
from leastnoise._error import statistic_errors
from leastnoise._estimation import coefficient_columns, determination_columns, pair_columns
from leastnoise._pages import list_sum_contributions
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue, statistic_title, table_title
from leastnoise._trusted.measurements import row_scales
from leastnoise._trusted.table import open_content
from simulated import exact_answers, read_table, releases

RNG = np.random.default_rng(8)
ROWS = 4_000
REGION = RNG.choice(["north", "south"], ROWS, p=[0.85, 0.15])
AGE = RNG.integers(20, 61, ROWS)
TENURE = RNG.integers(0, 31, ROWS)
PAY = 10 + 0.9 * AGE + 0.4 * TENURE + RNG.normal(0, 12, ROWS)
PEOPLE = pd.DataFrame({"region": REGION, "pay": PAY, "age": AGE, "tenure": TENURE})
for column in ("pay", "tenure"):
    PEOPLE[column] = PEOPLE[column].where(RNG.random(ROWS) > 0.05)
DOMAIN = ln.Domain(
    region=["north", "south"],
    measures={
        "pay": ln.Measure("pay", 0, 90, unit="0.5"),
        "age": ln.Measure("age", 20, 60),
        "tenure": ln.Measure("tenure", 0, 30),
    },
)
NAMES = ["pay", "age", "tenure"]


def counted_values(rows, names):
    """Return the complete rows, with values as the measures count them."""
    complete = rows.dropna(subset=names)
    counted = {
        name: np.rint(np.clip(complete[name], *bounds) / unit) * unit
        for name, bounds, unit in (
            ("pay", (0, 90), 0.5),
            ("age", (20, 60), 1),
            ("tenure", (0, 30), 1),
        )
        if name in names
    }
    return complete.assign(**counted)


def true_coefficients(rows):
    """Return the coefficients of pay on tenure and age, by least squares."""
    complete = counted_values(rows, NAMES)
    design = np.column_stack([np.ones(len(complete)), complete.tenure, complete.age])
    return np.linalg.lstsq(design, complete.pay.to_numpy(), rcond=None)[0]


def true_covariances(rows, *, normalised):
    """Return the covariances or correlations of all pairs of `NAMES`."""
    values = counted_values(rows, NAMES)[NAMES].to_numpy().T
    matrix = np.corrcoef(values) if normalised else np.cov(values, ddof=0)
    return matrix[np.triu_indices(len(NAMES), 1)]


def test_correlations_match_brute_force():
    plan = ln.plan(
        ln.correlation_queries(DOMAIN, NAMES, by=["region"]), ln.PureDP(400), strategy="workload"
    )
    release = ln.release(plan, PEOPLE, seed=4)
    correlations = ln.correlations(release, NAMES, by=["region"])
    for region_index, name in enumerate(("north", "south")):
        rows = PEOPLE[name == REGION]
        assert correlations.correlation[region_index] == pytest.approx(
            true_covariances(rows, normalised=True), abs=0.01
        )
        assert correlations.covariance[region_index] == pytest.approx(
            true_covariances(rows, normalised=False), abs=1
        )
        assert correlations.counts[region_index] == pytest.approx(len(rows.dropna()), abs=1)
    assert ln.Plan.from_json(plan.to_json()).workload == plan.workload
    overall = ln.correlations(release, NAMES)
    assert overall.correlation == pytest.approx(true_covariances(PEOPLE, normalised=True), abs=0.01)
    # A regression on the same complete rows costs nothing.
    fitted = ln.regression(release, "pay", on=["tenure", "age"])
    assert fitted.coefficient == pytest.approx(true_coefficients(PEOPLE), rel=0.02)


def test_regressions_match_brute_force():
    workload = ln.regression_queries(DOMAIN, "pay", on=["tenure", "age"], by=["region"])
    release = ln.release(ln.plan(workload, ln.ZCDP(2000), strategy="workload"), PEOPLE, seed=4)
    regression = ln.regression(release, "pay", on=["tenure", "age"], by=["region"])
    assert regression.labels == (("north", "south"), ("(intercept)", "tenure", "age"))
    for region_index, name in enumerate(("north", "south")):
        assert regression.coefficient[region_index] == pytest.approx(
            true_coefficients(PEOPLE[name == REGION]), rel=0.03
        )
    assert not regression.ridge.any()


@pytest.mark.parametrize(
    "measures",
    [
        [ln.Measure("pay", -3, 4), ln.Measure("age", 0, 5, unit="0.5")],
        [ln.Measure("pay", 0, 200_001), ln.Measure("age", -90_000, 60_000)],
    ],
)
def test_products_are_rounded_quotients_of_whole_numbers(measures):
    """A row without one of the values adds 0 to all sums."""
    pay, age = measures
    declared = {
        "count": CompleteCount(measures),
        "one": DeviationProduct([pay], measures),
        "square": DeviationProduct([age, age], measures),
        "product": DeviationProduct([pay, age], measures),
    }
    domain = ln.Domain(a=["x"], measures=declared)
    values = [None, "x", -1e9, -3, 0, 1.3, 4, 1e5, 1e300]
    pairs = list(itertools.product(values, values))
    rows = pd.DataFrame(pairs, columns=["pay", "age"], dtype=object).assign(a="x")
    workload = ln.queries(domain, sum="count")
    for name in ("one", "square", "product"):
        workload += ln.queries(domain, sum=name)
    amounts = open_content(
        read_table(ln.plan(workload, ln.PureDP(1), strategy="workload"), rows)
    ).values
    for pair_index, pair in enumerate(pairs):
        is_complete = all(isinstance(value, (int, float)) for value in pair)
        assert amounts["count"][pair_index] == is_complete
        for name in ("one", "square", "product"):
            product = declared[name]
            exact = Fraction(is_complete)
            for factor, centre in zip(product.factors, product.centres, strict=True):
                value = pair[measures.index(factor)]
                if is_complete:
                    units = round(Fraction(value) / factor.unit)
                    exact *= min(max(units, factor.low_units), factor.high_units) - centre
            rounded = (int(exact) + product.divisor // 2) // product.divisor
            assert amounts[name][pair_index] == (rounded if is_complete else 0)
            assert product.low_units <= rounded <= product.high_units


SMALL = ln.Domain(
    a=["x", "y"], measures={"pay": ln.Measure("pay", -2, 5), "age": ln.Measure("age", 0, 3)}
)


@functools.cache
def tables_of_units(max_rows):
    """Return one fixed row alone, and with all rows that a unit can add."""
    values = [None, -2, 1, 9] if max_rows == 1 else [None, -2, 9]
    possible = list(itertools.product("xy", values, [None, 0, 1, 3] if max_rows == 1 else [0, 3]))
    units: list[tuple] = [()]
    for number in range(1, max_rows + 1):
        units += itertools.combinations_with_replacement(possible, number)
    plan = ln.plan(
        ln.correlation_queries(SMALL, ["pay", "age"], by=["a"]), ln.PureDP(1), strategy="workload"
    )
    tables = []
    for rows in units:
        of_unit = [("x", 4, 2), *rows]
        data = pd.DataFrame(of_unit, columns=["a", "pay", "age"])
        tables.append(read_table(plan, data))
    return tables


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP("1/2")], ids=["pure", "zcdp"])
@pytest.mark.parametrize("max_rows", [1, 2])
def test_neighbours_lose_at_most_the_budget(budget, neighbours, max_rows):
    """By brute force over all rows of a unit, as they are read."""
    unit = {"unit_column": "id", "max_rows": max_rows} if max_rows > 1 else {}
    private = ln.Privacy(budget, neighbours=neighbours, **unit)
    workload = ln.correlation_queries(SMALL, ["pay", "age"], by=["a"])
    measured = ln.plan(workload, private, strategy="workload").measured()
    scales = []
    for block in measured.blocks:
        numerators, denominators = row_scales(block, measured.grid)
        of_block = np.broadcast_to(numerators / denominators / measured.grid, block.rows)
        scales.append(np.resize(of_block, block.rows))
    answers = [
        np.concatenate(exact_answers(measured, table)) for table in tables_of_units(max_rows)
    ]
    table = np.array(answers) / np.concatenate(scales)
    norm = measured.noise.norm
    base = table[:1] if neighbours == "add_remove" else table
    worst = max((np.abs(table - other_table) ** norm).sum(axis=1).max() for other_table in base)
    claimed = float(budget.epsilon) if norm == 1 else 2 * float(budget.rho)
    assert 0.5 * claimed < worst <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [5, 30, 200, 3000])
@pytest.mark.parametrize(
    ("means", "variances", "correlation"),
    [
        ((0, 0), (0.2, 0.2), 0.6),
        ((0.4, -0.3), (0.1, 0.05), -0.8),
        ((0, 0), (0.2, 0.2), 0.98),
        ((0.5, 0.5), (0.02, 0.02), 0.3),
    ],
)
def test_correlation_intervals_cover(noise, size, means, variances, correlation):
    """Also in groups of few rows, where the noise allows every correlation."""
    covariance = correlation * np.prod(variances) ** 0.5
    matrix = np.array([[variances[0], covariance], [covariance, variances[1]]])
    truth = np.block([[np.ones((1, 1)), np.atleast_2d(means)], [np.atleast_2d(means).T, matrix]])
    truth[1:, 1:] += np.outer(means, means)
    correlations = pair_columns(drawn_moments(truth, size, noise, 4_000, 1, response=False), 1, 2)
    for low, high, exact in (
        (correlations["low"], correlations["high"], correlation),
        (correlations["covariance_low"], correlations["covariance_high"], covariance),
    ):
        coverage = ((low <= exact) & (exact <= high)).mean()
        assert coverage > 0.93
        if size == 3000:
            assert coverage < 0.975


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [20, 200, 2000, 20_000])
@pytest.mark.parametrize("predictors", [1, 3, 8])
def test_coefficient_intervals_cover(noise, size, predictors):
    """Predictors are correlated, and away from the middle of their bounds."""
    truth, exact = regression_truth(predictors)
    coefficients = coefficient_columns(drawn_moments(truth, size, noise, 2_000, 2, response=True))
    coverage = ((coefficients["low"] <= exact) & (exact <= coefficients["high"])).mean(axis=0)
    assert coverage.min() > 0.93
    if size == 20_000:
        assert coverage.max() < 0.985
    assert np.isfinite(coefficients["coefficient"]).all()
    assert np.isinf(coefficients["high"][coefficients["ridge"] > 0]).all()


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [10, 20, 30, 60])
def test_coefficient_intervals_with_ends_cover_in_small_groups(noise, size):
    """Noise that makes the equations clear also shrinks the coefficients."""
    truth, exact = regression_truth(1)
    coefficients = coefficient_columns(drawn_moments(truth, size, noise, 10_000, 3, response=True))
    has_ends = np.isfinite(coefficients["high"]).all(axis=1)
    if size < 30:
        assert has_ends.mean() < 0.001
    else:
        coverage = ((coefficients["low"] <= exact) & (exact <= coefficients["high"]))[
            has_ends
        ].mean(axis=0)
        assert has_ends.mean() > 0.1
        assert coverage.min() > 0.93


def true_r_squared(rows):
    """Return R^2 of pay on tenure and age."""
    complete = counted_values(rows, NAMES)
    design = np.column_stack([np.ones(len(complete)), complete.tenure, complete.age])
    residuals = complete.pay - design @ true_coefficients(rows)
    return 1 - residuals.var() / complete.pay.var()


def test_r_squared_matches_brute_force():
    plan = ln.plan(
        ln.correlation_queries(DOMAIN, NAMES, by=["region"]), ln.PureDP(400), strategy="workload"
    )
    release = ln.release(plan, PEOPLE, seed=4)
    found = ln.r_squared(release, "pay", on=["tenure", "age"], by=["region"])
    expected = [true_r_squared(PEOPLE[name == REGION]) for name in ("north", "south")]
    assert found.r_squared == pytest.approx(expected, abs=0.01)
    assert (found.low < expected).all()
    assert (expected < found.high).all()
    assert found.title == "R^2 of pay on tenure and age by region, 95% intervals"
    assert found.frame("pandas").columns.tolist()[:2] == ["region", "r_squared"]


def test_r_squared_of_one_predictor_is_the_squared_correlation():
    plan = ln.plan(ln.correlation_queries(DOMAIN, ["pay", "age"]), ln.ZCDP(1))
    release = ln.release(plan, PEOPLE, seed=4)
    found = ln.r_squared(release, "pay", on=["age"])
    correlations = ln.correlations(release, ["pay", "age"])
    assert found.r_squared.item() == pytest.approx(correlations.correlation.item() ** 2, abs=0.002)
    assert found.low.item() == pytest.approx(correlations.low.item() ** 2, abs=0.005)
    assert found.high.item() == pytest.approx(correlations.high.item() ** 2, abs=0.005)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [40, 200, 3000])
@pytest.mark.parametrize("predictors", [1, 3, 8])
def test_r_squared_intervals_cover(noise, size, predictors):
    """Also where R^2 is 0, and the noise makes it larger on average."""
    for exact in (0.0, 0.1, 0.6, 0.98):
        truth = determination_truth(predictors, exact)
        found = determination_columns(drawn_moments(truth, size, noise, 1_000, 2, response=False))
        inside = (found["low"] <= exact + 1e-9) & (exact <= found["high"] + 1e-9)
        assert inside.mean() > 0.92
        is_clear = np.isfinite(found["r_squared"])
        assert (found["low"][~is_clear] == 0).all()
        assert (found["high"][~is_clear] == 1).all()


def test_r_squared_needs_the_square_of_the_response():
    workload = ln.regression_queries(DOMAIN, "pay", on=["age", "tenure"])
    release = ln.release(ln.plan(workload, ln.ZCDP(1), strategy="workload"), PEOPLE, seed=4)
    with pytest.raises(ln.InputError, match="Ask for correlations"):
        ln.r_squared(release, "pay", on=["age", "tenure"])


def test_sql_of_two_measures_matches_a_database():
    people = PEOPLE.assign(
        pay=np.rint(np.clip(PEOPLE.pay, 0, 90) * 2) / 2, tenure=PEOPLE.tenure.clip(0, 30)
    )
    statement = """
        SELECT region, CORR(pay, tenure) AS r, CORR(tenure, -pay) AS opposite,
            COVAR_POP(pay, tenure) AS whole, COVAR_SAMP(pay, 2 * tenure + 1) AS sample,
            REGR_SLOPE(pay, tenure) AS slope, REGR_INTERCEPT(pay, tenure) AS start,
            REGR_R2(tenure, pay) AS r2, REGR_COUNT(pay, tenure) AS n
        FROM people GROUP BY region ORDER BY region"""
    workload = ln.sql(DOMAIN, statement)
    assert len(workload.products) == 6  # all share their tables
    answers = ln.release(
        ln.plan(workload, ln.PureDP(3000), strategy="workload"), people, seed=3
    ).sql(statement)
    expected = duckdb.sql(statement).fetchall()
    for number, name in enumerate(
        ["r", "opposite", "whole", "sample", "slope", "start", "r2", "n"]
    ):
        answer = np.asarray(answers[name], dtype=float)
        exact = np.array([row[number + 1] for row in expected], dtype=float)
        assert answer == pytest.approx(exact, rel=0.01, abs=0.002), name
        assert np.all(np.asarray(answers[f"{name}_low"]) <= answer)
        assert np.all(answer <= np.asarray(answers[f"{name}_high"]))


@pytest.mark.parametrize(
    "aggregate",
    [
        "CORR(pay, pay)",
        "COVAR_POP(pay, 3)",
        "CORR(pay, region)",
        "REGR_INTERCEPT(2 * pay, age)",
        "REGR_SLOPE(pay, 0 * age)",
        "CORR(IF(region = 'north', pay, 2 * pay), age)",
    ],
)
def test_sql_of_two_measures_is_refused_with_a_reason(aggregate):
    with pytest.raises(ln.InputError, match=r"two different measures|one measure|a measure"):
        ln.sql(DOMAIN, f"SELECT {aggregate} FROM people")


SPEC = """
[privacy]
rho = "1/2"
[domain.region]
categories = ["north", "south"]
[measures.pay]
clip = [0, 90]
unit = "0.5"
[measures.age]
clip = [20, 60]
[measures.tenure]
clip = [0, 30]
[[workload]]
correlations = { of = ["pay", "age"], by = ["region"] }
size = 1000
[[workload]]
regression = { of = "pay", on = ["age", "tenure"] }
"""
R_SQUARED_SPEC = SPEC.replace("regression =", "r_squared =").replace(
    '"tenure"] }', '"tenure"], by = ["region"] }'
)


def test_statistics_of_a_spec_are_in_the_release(tmp_path):
    spec = parse_spec(SPEC, tmp_path)
    release = ln.release(ln.plan(spec.workload, spec.privacy), PEOPLE, seed=4)
    pairs, line = release.statistics
    assert pairs.name == "correlations of pay and age by region"
    assert line.name == "regression of pay on age and tenure"
    correlations = ln.correlations(release, ["pay", "age"], by=["region"])
    assert pairs.values == pytest.approx(correlations.correlation)
    assert pairs.numbers()["covariance_low"] == pytest.approx(
        correlations.covariance_low.reshape(-1)
    )
    assert line.frame()["term"].to_list() == ["(intercept)", "age", "tenure"]
    german = load_catalogue("de")
    assert table_title(spec.workload.products[0], german) == "Zeilen mit pay und age nach region"
    title = statistic_title(line.statistic, spec.domain, german)
    assert title == "Regression von pay auf age und tenure"
    sentences = list_sum_contributions(spec.workload)
    assert any("also if only one of them is missing" in sentence for sentence in sentences)


def test_r_squared_of_a_spec_is_in_the_release(tmp_path):
    spec = parse_spec(R_SQUARED_SPEC.replace('rho = "1/2"', 'rho = "4"'), tmp_path)
    assert len(spec.workload.products) == 6 + 10
    out = tmp_path / "out"
    release = ln.release(ln.plan(spec.workload, spec.privacy), PEOPLE, seed=4, out=out)
    table = release.statistics["R^2 of pay on age and tenure by region"]
    found = ln.r_squared(release, "pay", on=["age", "tenure"], by=["region"])
    assert table.values == pytest.approx(found.r_squared)
    assert table.low == pytest.approx(found.low)
    exact = [true_r_squared(PEOPLE[name == REGION]) for name in ("north", "south")]
    assert (table.low < exact).all()
    assert (exact < table.high).all()
    columns = ["query", "region", "r_squared", "low", "high", "std_error", "count"]
    path = out / "answers" / "s2-r-2-of-pay-on-age-and-tenure-by-region.csv"
    assert pd.read_csv(path).columns.tolist() == columns
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "R^2 of pay on age and tenure" in report
    german = load_catalogue("de")
    title = statistic_title(table.statistic, spec.domain, german)
    assert title == "R^2 von pay auf age und tenure nach region"
    assert table.chart_name(german) == "dots"
    # The sums also determine the coefficients.
    fitted = ln.regression(release, "pay", on=["tenure", "age"])
    assert (fitted.low < true_coefficients(PEOPLE)).all()


def test_r_squared_hidden_by_noise_has_the_whole_interval():
    plan = ln.plan(
        ln.r_squared_queries(DOMAIN, "pay", on=["age", "tenure"], size=20),
        ln.PureDP("1/10"),
        strategy="workload",
    )
    (table,) = ln.release(plan, PEOPLE.head(20), seed=2).statistics
    assert table.format_rows(load_catalogue("en"), 3) == [["\N{EN DASH}", "0.00 to 1.00"]]
    assert np.isnan(table.values).all()
    assert np.isnan(table.numbers()["std_error"]).all()


def test_sql_r_squared_is_answered_from_either_statistic():
    statement = "SELECT region, REGR_R2(tenure, pay) AS r2 FROM people GROUP BY region"
    of_pay = ln.r_squared_queries(DOMAIN, "pay", on=["tenure"], by=["region"])
    answers = []
    for workload in (ln.sql(DOMAIN, statement), of_pay):
        plan = ln.plan(workload, ln.PureDP(3000), strategy="workload")
        options = ln.Options(statements=[statement])
        answers.append(ln.release(plan, PEOPLE, seed=3, options=options).sql(statement))
    assert answers[0]["r2"].tolist() == pytest.approx(answers[1]["r2"].tolist(), abs=1e-3)
    for released in answers:
        assert (released["r2_low"] <= released["r2"]).all()
        assert (released["r2"] <= released["r2_high"]).all()
    plan = ln.plan(ln.queries(DOMAIN, region="identity"), ln.PureDP(1))
    counts = ln.release(plan, PEOPLE, seed=1)
    with pytest.raises(ln.InputError, match="correlations of pay and tenure by region was not"):
        counts.sql(statement)


def test_regression_without_clear_equations_has_no_ends():
    few_people = PEOPLE.head(20)
    plan = ln.plan(
        ln.regression_queries(DOMAIN, "pay", on=["age", "tenure"]),
        ln.PureDP("1/10"),
        strategy="workload",
    )
    release = ln.release(plan, few_people, seed=2)
    regression = ln.regression(release, "pay", on=["age", "tenure"])
    assert np.isinf(regression.low).all()
    assert np.isfinite(regression.coefficient).all()
    (table,) = release.statistics
    assert np.isnan(table.low).all()
    with pytest.raises(ln.InputError, match="has coefficients in different units"):
        table.plot()
    rows = table.format_rows(load_catalogue("en"), 3)
    assert [row[-1] for row in rows] == ["unbounded"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP("1/8")], ids=["pure", "zcdp"])
def test_coefficients_have_the_promised_errors_at_public_scales(budget):
    """Two-point values with the means, deviations and correlations that the promise assumes."""
    signs = np.array(list(itertools.product([-1, 1], repeat=2)) * 500)
    age = 40 + 10 * signs[:, 0]
    tenure = 15 + 7.5 * signs[:, 1]
    pay = 45 + 22.5 * signs.sum(axis=1) / 2**0.5
    rows = pd.DataFrame({"region": "north", "pay": pay, "age": age, "tenure": tenure})
    measures = {**DOMAIN.measures, "tenure": ln.Measure("tenure", 0, 30, unit="0.5")}
    domain = ln.Domain(region=["north", "south"], measures=measures)
    workload = ln.regression_queries(domain, "pay", on=["age", "tenure"], size=len(rows))
    plan = ln.plan(workload, budget, strategy="workload")
    (expected_error,) = statistic_errors(plan)
    assert [name for name, _ in expected_error.parts] == ["(intercept)", "age", "tenure"]
    regressions = [
        ln.regression(release, "pay", on=["age", "tenure"])
        for release in releases(plan, rows, range(100))
    ]
    errors = np.std([regression.coefficient for regression in regressions], axis=0)
    assert errors == pytest.approx([error for _, error in expected_error.parts], rel=0.25)
    stated = np.mean([regression.std_error for regression in regressions], axis=0)
    assert errors == pytest.approx(stated, rel=0.25)


def test_covariances_keep_the_promised_errors():
    workload = ln.correlation_queries(DOMAIN, ["pay", "age"], size=3800)
    plan = ln.plan(workload, ln.PureDP(1), strategy="workload")
    (expected_error,) = statistic_errors(plan)
    covariances = [
        ln.correlations(release, ["pay", "age"]) for release in releases(plan, PEOPLE, range(100))
    ]
    errors = np.std([estimate.covariance for estimate in covariances])
    assert errors == pytest.approx(
        np.mean([estimate.covariance_std_error for estimate in covariances]), rel=0.25
    )
    assert errors < 1.1 * expected_error.std_error
    spread = np.std([estimate.correlation for estimate in covariances])
    assert spread == pytest.approx(
        np.mean([estimate.std_error for estimate in covariances]), rel=0.25
    )


@pytest.mark.slow
def test_gaussian_plans_are_near_the_lower_bound():
    plan = ln.plan(ln.correlation_queries(DOMAIN, NAMES, by=["region"]), ln.ZCDP(1))
    assert plan.data_independent_error.times_least < 1.25


def test_unsuitable_requests_are_refused():
    measures = {f"m{number}": ln.Measure(f"m{number}", 0, 5) for number in range(12)}
    domain = ln.Domain(a=["x"], measures={**measures, "total": ln.UnitTotal("m0", 0, 5)})
    for measures_of_request in (
        "m0",
        ["m0"],
        ["m0", "m0"],
        ["m0", "total"],
        [*measures],
        ["m0", "a"],
    ):
        with pytest.raises(ln.InputError, match=r"of must be .*2 to 11 measures"):
            ln.correlation_queries(domain, measures_of_request)
    with pytest.raises(ln.InputError, match=r"on must be .*1 to 11 measures"):
        ln.regression_queries(domain, "m0", on="m1")
    with pytest.raises(ln.InputError, match=r"of and on must be .* none twice"):
        ln.regression_queries(domain, "m0", on=["m0"])
    with pytest.raises(ln.InputError, match="have no weights"):
        ln.correlation_queries(domain, ["m0", "m1"]).weighted_by("m2")
    pair = ln.correlation_queries(domain, ["m0", "m1"])
    rows = pd.DataFrame({"a": ["x"], "m0": [1], "m1": [2]})
    release = ln.release(ln.plan(pair, ln.PureDP(1), strategy="workload"), rows, seed=1)
    with pytest.raises(ln.InputError, match="Ask for correlations or a regression of exactly"):
        ln.correlations(release, ["m0", "m2"])
    with pytest.raises(ln.InputError, match="must be one of regression, weight, size"):
        parse_spec(SPEC + 'sum = "pay"', Path())
    with pytest.raises(ln.InputError, match="the margin of regression must be given with a size"):
        parse_spec(SPEC + 'margin = "3"', Path())
    with pytest.raises(ln.InputError, match="regression must have on"):
        parse_spec(SPEC.replace(', on = ["age", "tenure"]', ""), Path())
    tiny = ln.Measure("m", 0, Fraction(1, 10**60), Fraction(1, 10**61))
    with pytest.raises(ln.InputError, match="the product of the units of m and m must be"):
        DeviationProduct([tiny, tiny], [tiny])
    least = ln.Measure("m", 0, Fraction(1, 10**49), Fraction(1, 10**50))
    assert DeviationProduct([least, least], [least]).unit == Fraction(1, 10**100)
    largest = ln.Measure("m", 0, 10**51, 10**50)
    assert DeviationProduct([largest, largest], [largest]).unit == 10**100
