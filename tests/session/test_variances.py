"""Variances: brute force, the planned privacy loss, and intervals that cover."""

import functools
import itertools
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._domain import SquaredDeviation, ValueCount
from leastnoise._error import interval_multiplier, lower_bound, statistic_errors
from leastnoise._estimation import NoisyMoments, variance_intervals
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue, table_title
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.measurements import row_scales
from leastnoise._trusted.table import open_content
from simulated import exact_answers, read_table, releases

RNG = np.random.default_rng(5)
ROWS = 3_000
REGION = RNG.choice(["north", "south"], ROWS, p=[0.9, 0.1])
PEOPLE = pd.DataFrame({"region": REGION, "pay": RNG.normal(30, 25, ROWS)})
PEOPLE.loc[RNG.random(ROWS) < 0.05, "pay"] = np.nan
SPEC = """
[privacy]
epsilon = "400"
[domain.region]
categories = ["north", "south"]
[measures.pay]
clip = [-10, 90]
unit = "0.5"
[[workload]]
variances = { of = "pay", by = ["region"] }
size = 1000
"""
VALUE = np.rint(np.clip(PEOPLE.pay, -10, 90) * 2) / 2
TRUE = [np.nanstd(VALUE[name == REGION]) for name in ("north", "south")]
WIDE = ln.Measure("pay", 0, 200_001)


@pytest.mark.parametrize("source", ["pandas", "csv", "engine"])
def test_variances_match_brute_force(source, tmp_path):
    spec = parse_spec(SPEC, tmp_path)
    data: object = PEOPLE
    if source == "csv":
        data = tmp_path / "people.csv"
        PEOPLE.to_csv(data, index=False)
    elif source == "engine":
        data = duckdb.from_arrow(pa.Table.from_pandas(PEOPLE, preserve_index=False))
    release = ln.release(ln.plan(spec.workload, spec.privacy), data, seed=4)
    (table,) = release.statistics
    assert table.name == "standard deviation of pay by region"
    assert table.values == pytest.approx(TRUE, abs=0.1)
    numbers = table.numbers()
    assert numbers["variance"] == pytest.approx(np.square(TRUE), abs=3)
    assert numbers["count"] == pytest.approx(
        [VALUE[name == REGION].count() for name in ("north", "south")], abs=1
    )
    assert (table.low <= table.values).all()
    assert (table.values <= table.high).all()
    assert ln.Plan.from_json(release.plan.to_json()).workload == release.plan.workload
    overall = ln.variances(release, "pay")
    assert overall.std_dev == pytest.approx(np.nanstd(VALUE), abs=0.1)


@pytest.mark.parametrize("measure", [ln.Measure("pay", -3, 4), WIDE])
def test_squares_are_rounded_quotients_of_whole_numbers(measure):
    """A row without a value adds 0, not the squared distance of 0 from the middle."""
    square = SquaredDeviation(measure)
    values = [None, "x", *range(-4, 6), 1e5, 100_000.4, 200_001, 1e300]
    domain = ln.Domain(
        a=["x"], measures={"pay": measure, "squares": square, "number": ValueCount(measure)}
    )
    rows = pd.DataFrame({"a": "x", "pay": pd.Series(values, dtype=object)})
    workload = ln.queries(domain, sum="squares") + ln.queries(domain, sum="number")
    table = read_table(ln.plan(workload, ln.PureDP(1)), rows)
    amounts = open_content(table).values["squares"].tolist()
    centre = (measure.low_units + measure.high_units) // 2
    expected = [0, 0]
    for value in values[2:]:
        units = round(min(max(value, measure.low_units), measure.high_units))
        quotient = Fraction((units - centre) ** 2, square.divisor)
        expected.append(int(quotient + Fraction(1, 2)) if square.divisor > 1 else int(quotient))
    assert amounts == expected
    assert min(amounts) >= 0
    assert max(amounts) == square.high_units < 2**30


SMALL = ln.Domain(a=["x", "y"], measures={"pay": ln.Measure("pay", -2, 5)})
VALUES = {1: [None, -9, -2, 0, 1, 2, 5, 9], 2: [None, -9, 1, 9]}


@functools.cache
def tables_of_units(max_rows):
    """Return one fixed row alone, and with all rows that a unit can add."""
    possible = list(itertools.product("xy", VALUES[max_rows]))
    units: list[tuple] = [()]
    for number in range(1, max_rows + 1):
        units += itertools.combinations_with_replacement(possible, number)
    plan = ln.plan(ln.variance_queries(SMALL, "pay", by=["a"]), privacy(ln.PureDP(1), max_rows))
    tables = []
    for rows in units:
        rows_of_unit = [(cell, pay, 1) for cell, pay in rows]
        data = pd.DataFrame([("x", 4, 0), *rows_of_unit], columns=["a", "pay", "id"])
        tables.append(read_table(plan, data))
    return tables


def privacy(budget, max_rows, neighbours="add_remove"):
    unit = {"unit_column": "id", "max_rows": max_rows} if max_rows > 1 else {}
    return ln.Privacy(budget, neighbours=neighbours, **unit)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP("1/2")], ids=["pure", "zcdp"])
@pytest.mark.parametrize("max_rows", [1, 2])
def test_neighbours_lose_at_most_the_budget(budget, neighbours, max_rows):
    """By brute force over all rows of a unit, as they are read."""
    workload = ln.variance_queries(SMALL, "pay", by=["a"])
    measured = ln.plan(workload, privacy(budget, max_rows, neighbours)).measured()
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


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.PureDP("1/2"), ln.ZCDP("1/50")], ids=["pure", "zcdp"])
def test_intervals_hold_the_standard_deviation(budget):
    """One group is so small that its intervals sometimes reach the bounds."""
    spec = parse_spec(SPEC, Path())
    plan = ln.plan(spec.workload, budget)
    few_people = PEOPLE[(REGION == "north") | (PEOPLE.index % 8 == 0)]
    true = [
        np.nanstd(VALUE[few_people.index][few_people.region == name]) for name in ("north", "south")
    ]
    variances = [
        ln.variances(release, "pay", by=["region"], level=0.9)
        for release in releases(plan, few_people, range(100))
    ]
    covered = np.array(
        [(variance.std_dev_low <= true) & (true <= variance.std_dev_high) for variance in variances]
    )
    assert covered.mean() > 0.9 - 3 * (0.09 / covered.size) ** 0.5
    assert covered[:, 0].mean() < 0.97
    # The standard errors are right where the count is clear of 0, and the plan's is never smaller.
    errors = np.array([variance.variance - np.square(true) for variance in variances])[:, 0]
    stated = np.array([variance.std_error for variance in variances])[:, 0]
    assert errors.std() == pytest.approx(stated.mean(), rel=0.25)
    (promised,) = statistic_errors(plan)
    counted = VALUE[few_people.index][few_people.region == "north"].count()
    assert promised.std_error * 1000 / counted > 0.9 * errors.std()


@pytest.mark.parametrize("noise", [Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN])
@pytest.mark.parametrize(
    ("mean", "variance"), [(0, 0.2), (-0.7, 0.02), (0.9, 0.01), (0, 1), (0, 0), (1, 0)]
)
@pytest.mark.parametrize("size", [3, 8, 40, 1000])
def test_intervals_cover_at_any_size(noise, mean, variance, size):
    """Also where the variance is the least or the greatest that the bounds allow."""
    draws = 4_000
    rng = np.random.default_rng([size, int(10 * mean + 100), noise.norm])
    draw = rng.laplace if noise.norm == 1 else rng.normal
    deviations = (2.8, 2.0, 1.0)
    factor = 2**-0.5 if noise.norm == 1 else 1.0
    counts, sums, squares = (draw(0, factor * deviation, draws) for deviation in deviations)
    moments = NoisyMoments(
        counts=size + counts,
        sums=size * mean + sums,
        squares=size * (variance + mean**2 - 0.5) + squares,
        count_std=np.full(draws, deviations[0]),
        sum_std=np.full(draws, deviations[1]),
        square_std=np.full(draws, deviations[2]),
        mean_offset=0.0,
        square_offset=0.5,
        low=-1.0,
        high=1.0,
    )
    low, high = variance_intervals(moments, interval_multiplier(noise, 0.95))
    coverage = ((low <= variance + 1e-12) & (variance <= high + 1e-12)).mean()
    assert coverage > 0.935
    if size == 1000 and 0 < variance < 1:
        assert coverage < 0.97


def test_lower_bound_has_no_rows_that_cannot_exist():
    """A value at a bound has the greatest square: the two are dependent."""
    domain = ln.Domain(a=["x"], measures={"pay": ln.Measure("pay", -1, 1)})
    variances = ln.variance_queries(domain, "pay")
    means = ln.mean_queries(domain, "pay")
    for budget in (ln.PureDP(1), ln.ZCDP(1)):
        plan = ln.plan(variances, budget)
        bounds = [
            lower_bound(workload, plan.privacy, plan.measured().noise)
            for workload in (variances, means)
        ]
        assert bounds[0] == pytest.approx(bounds[1])


def test_counts_sums_and_squares_are_planned_together():
    """Planned separately, each of the three tables has 1.5 times the budget."""
    domain = ln.Domain(a=["x", "y"], measures={"pay": ln.Measure("pay", 0, 100)})
    plan = ln.plan(ln.variance_queries(domain, "pay", by=["a"]), ln.PureDP(1))
    measured = {(block.measure, block.ends) for block in plan.measured().blocks}
    assert measured == {("pay", True), ("squares of pay", True)}
    errors = [table.rmse for table in plan.expected_error().tables]
    assert errors[0] < 3
    assert errors[2] < 2500 * 2.6


def test_unsuitable_requests_are_refused():
    domain = ln.Domain(
        a=["x", "y"],
        measures={
            "pay": ln.Measure("pay", 0, 100),
            "weight": ln.Measure("weight", 0, 5),
            "total": ln.UnitTotal("pay", 0, 5),
        },
    )
    with pytest.raises(ln.InputError, match="of must be a measure of values of rows"):
        ln.variance_queries(domain, "total")
    with pytest.raises(ln.InputError, match="R\\^2 have no weights"):
        ln.variance_queries(domain, "pay").weighted_by("weight")
    means = ln.release(
        ln.plan(ln.mean_queries(domain, "pay"), ln.PureDP(1)),
        pd.DataFrame({"a": ["x"], "pay": [1]}),
        seed=1,
    )
    with pytest.raises(ln.InputError, match="Ask for variances of pay in the workload"):
        ln.variances(means, "pay")
    with pytest.raises(ln.InputError, match=r"a key of .* must be one of variances, weight, size"):
        parse_spec(SPEC.replace("size = 1000", 'sum = "pay"'), Path())
    with pytest.raises(ln.InputError, match="the unit of the measure of pay, squared must be"):
        SquaredDeviation(ln.Measure("pay", 0, Fraction(1, 10**60), Fraction(1, 10**61)))


def test_names_follow_the_language():
    squares = parse_spec(SPEC, Path()).workload.products[2]
    title = table_title(squares, load_catalogue("de"))
    assert title.startswith("Summe von Abweichungsquadraten von pay")


def test_sql_deviations_match_a_database():
    domain = ln.Domain(
        region=["north", "south"], measures={"pay": ln.Measure("pay", -10, 90, unit="0.5")}
    )
    people = PEOPLE.assign(pay=VALUE)
    statement = """
        SELECT region, STDDEV(pay) AS sample, STDDEV_POP(pay) AS whole, VAR_POP(pay / 10) AS tenth,
            VARIANCE(3 - 2 * pay) AS twice
        FROM people GROUP BY region ORDER BY region"""
    workload = ln.sql(domain, statement)
    answers = ln.release(ln.plan(workload, ln.PureDP(1000)), people, seed=3).sql(statement)
    expected = duckdb.sql(statement).fetchall()
    for number, name in enumerate(["sample", "whole", "tenth", "twice"], 1):
        answer = np.asarray(answers[name], dtype=float)
        exact = np.array([row[number] for row in expected], dtype=float)
        assert answer == pytest.approx(exact, rel=0.01), name
        assert np.all(np.asarray(answers[f"{name}_low"])[0] <= answer[0])
    with pytest.raises(ln.InputError, match="one measure in the rows of one condition"):
        ln.sql(domain, "SELECT STDDEV(IF(region = 'north', pay, 2 * pay)) FROM people")
