"""Means, quantiles and distribution functions of a spec: plans, errors and labelled files."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._plan import AdaptiveDetails, AdaptivePlan
from leastnoise._release import Options, check_options
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError
from session.releasing import manifest

HEAD = """
[privacy]
epsilon = "1"
[domain.store]
categories = ["north", "south"]
[domain.amount]
bins = { low = 0, high = 100, count = 10 }
[domain.age]
integers = [17, 40]
outside = "other"
[measures.pay]
column = "income"
clip = [0, 200]
unit = "0.5"
"""
ASKED = """
[[workload]]
means = { of = "pay", by = ["store"] }
size = 1000
[[workload]]
quantiles = { of = "amount", at = ["0.25", 0.5, "3/4"], by = ["store"] }
weight = 2
[[workload]]
cdf = { of = "age", by = [] }
[[workload]]
cdf = { of = "amount", by = ["store"] }
"""


NAMES = [
    "mean of pay by store",
    "quantiles of amount by store",
    "distribution of age",
    "distribution of amount by store",
]


def spec(text):
    return parse_spec(HEAD + text, Path())


RNG = np.random.default_rng(4)
PEOPLE = pd.DataFrame(
    {
        "store": RNG.choice(["north", "south"], 4000, p=[0.8, 0.2]),
        "amount": RNG.gamma(2, 15, 4000).clip(0, 100),
        "age": RNG.integers(17, 42, 4000),
        "income": RNG.gamma(2, 40, 4000),
    }
)


@pytest.fixture(scope="module")
def plan():
    return plan_spec(spec(ASKED + '[plan]\nstrategy = "marginals"\n'))


@pytest.fixture(scope="module")
def statistics_release(plan, tmp_path_factory):
    out = tmp_path_factory.mktemp("statistics") / "out"
    return ln.release(plan, PEOPLE, seed=6, out=out), out


def test_statistics_add_their_tables_to_the_workload():
    parsed_spec = spec(ASKED)
    weights = {product.name: str(product.weight) for product in parsed_spec.workload}
    assert weights == {
        "count of pay by store": "1",
        "sum of pay by store": "1",
        "store x amount:prefix": "3",
        "age:prefix": "1",
    }
    assert [len(part) for part in parsed_spec.parts] == [2, 1, 1, 1]
    domain = parsed_spec.domain
    workload = ln.mean_queries(domain, "pay", by=["store"], size=1000)
    workload += ln.quantile_queries(
        domain, "amount", ["0.25", "0.5", "0.75"], by=["store"], weight=2
    )
    workload = (
        workload + ln.cdf_queries(domain, "age") + ln.cdf_queries(domain, "amount", by=["store"])
    )
    assert parsed_spec.workload == workload
    assert [statistic.name for statistic in workload.statistics] == NAMES
    assert (workload + workload).statistics == workload.statistics


def test_plan_keeps_requested_statistics(plan):
    assert plan.expected_error().times_least is not None
    assert ln.Plan.from_json(plan.to_json()).workload == plan.workload
    with pytest.raises(
        InputError, match="The tables that the mean of pay by store needs are not in the workload"
    ):
        ln.Workload(plan.domain, plan.workload.products[1:], plan.workload.statistics)
    damaged = json.loads(plan.to_json())
    damaged["statistics"][-1] = {"median": {"of": "age", "by": []}}
    with pytest.raises(
        InputError,
        match=(
            "the kind of a statistic must be one of 'means', 'variances', 'correlations', "
            "'regression', 'r_squared', 'quantiles', 'cdf'"
        ),
    ):
        ln.Plan.from_json(json.dumps(damaged))


def test_answers_are_files_with_labels(statistics_release):
    release, out = statistics_release
    files = sorted((out / "answers").glob("s*.csv"))
    assert [path.name for path in files] == [
        f"s{number}-{name.replace(' ', '-')}.csv" for number, name in enumerate(NAMES, 1)
    ]
    means, quantiles, ages, amounts = (
        list(csv.DictReader(path.read_text().splitlines())) for path in files
    )
    assert list(means[0]) == ["query", "store", "mean", "low", "high", "std_error", "sum", "count"]
    shares = [(row["store"], row["share"]) for row in quantiles]
    assert shares == [
        (store, share) for store in ("north", "south") for share in ("0.25", "0.5", "0.75")
    ]
    assert [row["age"] for row in ages] == [f"<= {age}" for age in range(17, 41)]
    assert amounts[9]["amount"] == "<= 100"
    for row in quantiles:
        assert float(row["low"]) % 10 == 0 == float(row["high"]) % 10
        assert float(row["low"]) <= float(row["quantile"]) <= float(row["high"])
    frame = release.statistics["mean of pay by store"].frame("pandas")
    assert frame["mean"].tolist() == [float(row["mean"]) for row in means]


def test_statistics_agree_with_their_tables(statistics_release):
    release, out = statistics_release
    statistic = release.statistics["s1"]
    counts = release.tables["count of pay by store"].answer
    sums = release.tables["sum of pay by store"].answer
    assert statistic.extra_columns["count"] == pytest.approx(counts)
    assert statistic.extra_columns["sum"] == pytest.approx(sums)
    assert statistic.values == pytest.approx(sums / counts)
    stds = [
        release.tables[name].noise_std for name in ("sum of pay by store", "count of pay by store")
    ]
    middle = 100  # of the values: their sums were measured together with the counts
    variance = stds[0] ** 2 + ((statistic.values - middle) ** 2 - middle**2) * stds[1] ** 2
    assert statistic.extra_columns["std_error"] == pytest.approx(np.sqrt(variance) / counts)
    assert any(block.ends for block in release.measurements.blocks)
    reread = ln.read_release(out)
    for original, reread_statistic in zip(release.statistics, reread.statistics, strict=True):
        assert np.array_equal(original.values, reread_statistic.values)
        assert np.array_equal(original.low, reread_statistic.low)
    value = manifest(out)
    assert value["statistics"][0]["files"] == "answers/s1-mean-of-pay-by-store"
    assert value["statistics"][1]["request"] == {
        "quantiles": {"of": "amount", "at": ["1/4", "1/2", "3/4"], "by": ["store"]}
    }
    assert value["statistics"][0]["tables"] == ["count of pay by store", "sum of pay by store"]
    assert {"path", "bytes", "sha256"} <= set(
        next(entry for entry in value["files"] if "/s1-" in entry["path"])
    )


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (
            'means = { of = "age" }',
            (
                "number 1: of must be a measure of the domain (pay); got 'age'. Declare it with "
                "public bounds"
            ),
        ),
        (
            'quantiles = { of = "pay", at = ["0.5"] }',
            "pay is a measure: for its quantiles declare an attribute of the same column in bins",
        ),
        (
            'quantiles = { of = "store", at = ["0.5"] }',
            "one of Integers, Decimals, Bins or Edges, whose cells are numbers (amount, age)",
        ),
        (
            'quantiles = { of = "age", at = ["1.5"] }',
            "different shares above 0 and at most 1, such as 0.5 for the median; got '1.5'",
        ),
        (
            'quantiles = { of = "age", at = [0] }',
            "at must be different shares above 0 and at most 1",
        ),
        ('quantiles = { of = "age", at = [0.5, "1/2"] }', "got '0.5, 0.5'"),
        (
            'quantiles = { of = "age", at = "0.5" }',
            "at must be a list of shares above 0 and at most 1",
        ),
        ('quantiles = { of = "age" }', "quantiles must have at; it has of"),
        ('quantiles = { of = "age", at = [] }', "at least one for quantiles"),
        (
            'quantiles = { of = "age", at = ["0.5"], by = ["age"] }',
            "age cannot be both of and in by",
        ),
        ('cdf = { of = "age", by = "store" }', "by must be a list of attributes"),
        (
            'cdf = { of = "age", by = ["shop"] }',
            "by must be attributes of store, amount, age; got 'shop'",
        ),
        (
            'cdf = { of = "age", by = ["store", "store"] }',
            "by must be attributes without repetitions",
        ),
        ('cdf = { by = ["store"] }', "cdf must have of; it has by"),
        ('cdf = { of = "age", at = ["0.5"] }', "at"),
        (
            'means = { of = "pay" }\nmargin = 5',
            "the margin of a mean must be given with a size; got '5 without a size'",
        ),
        (
            'means = { of = "pay" }\nsize = 10\nmargin = 5\nrmse = 2',
            "a target must be one of margin, relative and rmse",
        ),
        (
            'means = { of = "pay" }\nsize = 10\nrelative = 0.1',
            "got 'relative'. Set other targets, and targets of sums, for queries",
        ),
        (
            'cdf = { of = "age" }\nsize = 10\nmargin = 5',
            "must be one of cdf, weight, size, weighted_by; got 'margin'. Set other targets",
        ),
        ('means = { of = "pay" }\nsize = 0', "size must be"),
        (
            'means = { of = "pay" }\ncdf = { of = "age" }',
            (
                "must have exactly one of marginals, queries, means, variances, correlations, "
                "regression, r_squared, quantiles, cdf, sql; got"
            ),
        ),
    ],
)
def test_statistics_mistakes_are_named(part, message):
    with pytest.raises(InputError, match=re.escape(message)):
        spec(f"[[workload]]\n{part}\n")


def test_unplanned_statistics_are_refused_unpaid():
    parsed_spec = spec(ASKED)
    looks = AdaptivePlan(
        workload=parsed_spec.workload,
        privacy=parsed_spec.privacy,
        strategy="dawa",
        adaptive=AdaptiveDetails(noise=Noise.DISCRETE_LAPLACE),
    )
    with pytest.raises(
        InputError,
        match="The mean of pay by store cannot be given by the strategy 'dawa', whose "
        "measurements are adaptive",
    ):
        check_options(looks, Options())


def test_statistics_are_taken_by_id_place_and_name(statistics_release):
    statistics = statistics_release[0].statistics
    assert (
        statistics["s2"]
        is statistics[1]
        is statistics["quantiles of amount by store"]
        is statistics[-3]
        is statistics[1:2][0]
    )
    assert repr(statistics) == "Statistics(4)"
    assert repr(statistics["s1"]) == "StatisticTable(s1 'mean of pay by store': 2 answers)"
    assert "mean of pay by store" in statistics["s1"]._repr_html_()
    with pytest.raises(InputError, match="A statistic must be called by its id or name; got 'q1'"):
        statistics["q1"]
    with pytest.raises(IndexError):
        statistics[4]


def test_charts_are_dots_and_lines(statistics_release):
    catalogue = load_catalogue("en")
    statistics = statistics_release[0].statistics
    assert [statistic.chart_name(catalogue) for statistic in statistics] == [
        "dots",
        "dots",
        "lines",
        "lines",
    ]
    assert [row["k0"] for row in statistics["s1"].chart_spec(catalogue)["data"]["values"]] == [
        "north",
        "south",
    ]
    assert {row["group"] for row in statistics["s2"].chart_spec(catalogue)["data"]["values"]} == {
        "0.25",
        "0.5",
        "0.75",
    }
    lines = statistics["s4"].chart_spec(catalogue)["data"]["values"]
    assert {row["group"] for row in lines} == {"north", "south"}
    assert lines[9]["x"] == 100
    single = ln.release(
        plan_spec(spec('[[workload]]\nmeans = { of = "pay" }')), PEOPLE, seed=1
    ).statistics[0]
    assert single.chart_name(catalogue) == ""
    with pytest.raises(InputError, match="is a single number, or has too many"):
        single.plot()


@pytest.mark.parametrize(
    ("kind", "values", "quantile_pattern", "end_pattern"),
    [
        (ln.Decimals("0", "3", "0.01", outside="clip"), [1.5, 1.6, 1.7], r"1\.60", r"1\.\d\d"),
        (ln.Integers(1900, 2050, outside="clip"), [1990, 2000, 2010], r"2000", r"\d{4}"),
        (
            ln.Bins(2000, 2030, 60, outside="clip"),
            [2010.2, 2015.2],
            r"2,015(\.\d\d?)?",
            r"2,01\d\.\d",
        ),
        (ln.Bins(0, 4000, 40, outside="clip"), [2030.2, 2050.2], r"2,0\d\d(\.\d)?", r"[12],\d{3}"),
    ],
)
def test_quantiles_have_the_decimals_of_their_cells(kind, values, quantile_pattern, end_pattern):
    rows = pd.DataFrame({"size": np.repeat(values, 2000 // len(values))})
    workload = ln.quantile_queries(ln.Domain(size=kind), "size", ["1/2"])
    plan = ln.plan(workload, ln.PureDP(20), strategy="identity")
    release = ln.release(plan, rows, seed=1)
    (texts,) = release.statistics[0].format_rows(load_catalogue(), 1)
    assert re.fullmatch(quantile_pattern, texts[-2])
    assert re.fullmatch(f"{end_pattern} to {end_pattern}", texts[-1])
    german = Options(names={"attributes": {"size": {"decimals": 3}}}).catalogue("de")
    (texts,) = release.statistics[0].format_rows(german, 1)
    assert all(re.search(r",\d{3}$", text) for text in (texts[-2], *texts[-1].split(" bis ")))
