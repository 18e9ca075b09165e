"""Survey weights: weighted counts, sums and means against brute force, and stated costs."""

import warnings
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._domain import Measure, Weighted
from leastnoise._error import lower_bound, statistic_errors
from leastnoise._pages import list_sum_contributions
from leastnoise._planning import statistic_target_statuses
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError
from simulated import releases

RNG = np.random.default_rng(8)
ROWS = 4_000
REGION = RNG.choice(["north", "south"], ROWS, p=[0.3, 0.7])
PEOPLE = pd.DataFrame(
    {"region": REGION, "pay": RNG.normal(30, 25, ROWS), "wt": RNG.gamma(2, 12, ROWS)}
)
PEOPLE.loc[RNG.random(ROWS) < 0.05, "pay"] = np.nan
PEOPLE.loc[RNG.random(ROWS) < 0.02, "wt"] = np.nan
VALUE = np.rint(np.clip(PEOPLE.pay, -10, 90) * 2) / 2
WEIGHT = np.rint(np.clip(PEOPLE.wt, 0, 60) * 4) / 4
SPEC = """
[privacy]
epsilon = "400"
[domain.region]
categories = ["north", "south"]
[measures.pay]
clip = [-10, 90]
unit = "0.5"
[measures.weight]
column = "wt"
clip = [0, 60]
unit = "0.25"
[[workload]]
means = { of = "pay", by = ["region"] }
weighted_by = "weight"
[[workload]]
queries = { region = "identity" }
weighted_by = "weight"
[[workload]]
marginals = { ways = 0 }
sum = "pay"
weighted_by = "weight"
"""


def by_region(values):
    return [values[(name == REGION)].sum() for name in ("north", "south")]


@pytest.mark.parametrize("source", ["pandas", "csv", "engine"])
def test_weighted_tables_match_brute_force(source, tmp_path):
    spec = parse_spec(SPEC, tmp_path)
    names = [product.name for product in spec.workload]
    count = "sum of weight of rows with pay by region"
    total = "sum of pay weighted by weight by region"
    weights = "sum of weight by region"
    assert names == [count, total, weights, "sum of pay weighted by weight"]
    data: object = PEOPLE
    if source == "csv":
        data = tmp_path / "people.csv"
        PEOPLE.to_csv(data, index=False)
    elif source == "engine":
        data = duckdb.from_arrow(pa.Table.from_pandas(PEOPLE, preserve_index=False))
    release = ln.release(ln.plan(spec.workload, spec.privacy), data, seed=4)
    assert release.tables[count].answer == pytest.approx(
        by_region(WEIGHT[VALUE.notna()].fillna(0).reindex(PEOPLE.index, fill_value=0)), abs=9
    )
    assert release.tables[total].answer == pytest.approx(
        by_region((VALUE * WEIGHT).fillna(0)), abs=900
    )
    assert release.tables[weights].answer == pytest.approx(by_region(WEIGHT.fillna(0)), abs=9)
    (means,) = release.statistics
    assert means.name == "mean of pay weighted by weight by region"
    is_complete = VALUE.notna() & WEIGHT.notna()
    expected = []
    for region in ("north", "south"):
        rows = is_complete & (region == REGION)
        expected.append(np.average(VALUE[rows], weights=WEIGHT[rows]))
    assert means.values == pytest.approx(expected, abs=0.1)
    assert (means.extra_columns["sum_of_weights"] == release.tables[count].answer).all()
    assert ln.Plan.from_json(release.plan.to_json()).workload == release.plan.workload


@pytest.mark.parametrize("budget", [ln.PureDP("1/2"), ln.ZCDP("1/100")], ids=["pure", "zcdp"])
def test_intervals_hold_weighted_means(budget):
    """One group is so small that its intervals sometimes reach the bounds."""
    domain = parse_spec(SPEC, Path()).domain
    plan = ln.plan(
        ln.mean_queries(domain, "pay", by=["region"], weight=3).weighted_by("weight"), budget
    )
    few_people = PEOPLE[(REGION == "south") | (PEOPLE.index % 8 == 0)]
    value = VALUE[few_people.index]
    weight = WEIGHT[few_people.index]
    is_complete = value.notna() & weight.notna()
    true_means = []
    for region in ("north", "south"):
        rows = is_complete & (few_people.region == region)
        true_means.append(np.average(value[rows], weights=weight[rows]))
    means = [
        ln.means(release, "pay weighted by weight", by=["region"], level=0.9)
        for release in releases(plan, few_people, range(150))
    ]
    covered = np.array([(mean.low <= true_means) & (true_means <= mean.high) for mean in means])
    assert covered.mean() > 0.9 - 3 * (0.09 / covered.size) ** 0.5
    assert covered[:, 1].mean() < 0.98
    assert all((mean.low >= -10).all() and (mean.high <= 90).all() for mean in means)


def test_unweighted_means_name_the_weighted_measure():
    domain = parse_spec(SPEC, Path()).domain
    workload = ln.mean_queries(domain, "pay", by=["region"]).weighted_by("weight")
    (release,) = releases(ln.plan(workload, ln.PureDP(1)), PEOPLE, [1])
    with pytest.raises(ln.InputError, match='ask for means of "pay weighted by weight"'):
        ln.means(release, "pay", by=["region"])


def test_stated_cost_of_weights_is_true():
    domain = parse_spec(SPEC, Path()).domain
    workload = ln.queries(domain, region="identity")
    unweighted = ln.plan(workload, ln.ZCDP("1/50"), strategy="identity")
    weighted = ln.plan(workload.weighted_by("weight"), ln.ZCDP("1/50"), strategy="identity")
    rmse = weighted.expected_error().tables[0].rmse * 0.25
    # The largest weight is 60.
    expected = 60 * unweighted.expected_error().tables[0].rmse
    assert rmse == pytest.approx(expected, rel=0.02)
    clipped, cost = list_sum_contributions(weighted.workload)
    assert clipped.startswith(
        "In sums of weight a value below 0 counts as 0 and one above 60 as 60"
    )
    assert "its standard error is about 60 times the standard error of a count of rows" in cost


def test_cost_of_weighted_means_is_stated_in_german():
    domain = parse_spec(SPEC, Path()).domain
    workload = ln.mean_queries(domain, "pay").weighted_by("weight")
    sentences = list_sum_contributions(workload, load_catalogue("de"))
    measures = [sentence.split(" von ")[1].split(" ")[0] for sentence in sentences]
    assert measures == ["pay", "weight", "pay", "weight"]
    assert "eine Summe von pay (gewichtet nach weight) um höchstens 5.400." in sentences[2]


WEIGHTED_DOMAIN = ln.Domain(
    sex=["f", "m"], measures={"pay": Measure("pay", 0, 10), "w": Measure("w", 0, 5)}
)
WEIGHTED_MEAN = ln.mean_queries(WEIGHTED_DOMAIN, "pay", by=["sex"]).weighted_by("w")
BY_SEX = ln.queries(WEIGHTED_DOMAIN, sex="identity")
PAY_BY_SEX = ln.queries(WEIGHTED_DOMAIN, sex="identity", sum="pay")


def possible_contributions(workload):
    """Return what each possible row adds to the tables, relative to the largest contributions."""
    contributions = []
    for weight in range(6):
        for pay in range(11):
            by_measure = {
                None: 1,
                "w": weight,
                "pay": pay,
                "w of rows with pay": weight,
                "pay weighted by w": weight * pay,
            }
            row = []
            for product in workload:
                largest = 1
                if product.measure:
                    largest = workload.domain.measure(product.measure).largest
                row.append(by_measure[product.measure] / largest)
            contributions.append(row)
    return np.array(contributions)


def least_trace(rows):
    """Return the least trace of a covariance over Gaussian mechanisms on two cells.

    The least favourable distribution on the rows is found by multiplicative weights.
    """
    shares = np.full(len(rows), 1 / len(rows))
    for _ in range(4000):
        root = np.linalg.eigh((rows.T * shares) @ rows)
        inverse_roots = np.diag(np.maximum(root.eigenvalues, 1e-12) ** -0.5)
        inverse = root.eigenvectors @ inverse_roots @ root.eigenvectors.T
        gains = np.einsum("ri,ij,rj->r", rows, inverse, rows)
        shares *= gains / gains.max()
        shares /= shares.sum()
    eigenvalues = np.linalg.eigvalsh((rows.T * shares) @ rows)
    return np.sqrt(np.maximum(eigenvalues, 0)).sum() ** 2


@pytest.mark.parametrize(
    "workload",
    [WEIGHTED_MEAN, WEIGHTED_MEAN + BY_SEX.weighted_by("w") + PAY_BY_SEX, WEIGHTED_MEAN + BY_SEX],
)
def test_weighted_bounds_stay_within_row_limits(workload):
    """The lower bound uses possible rows: a weight, and a value times this weight."""
    least = least_trace(possible_contributions(workload))
    privacy = ln.plan(workload, ln.ZCDP(1)).privacy
    bound = lower_bound(workload, privacy, Noise.ROUNDED_GAUSSIAN) / (2 * 0.5)
    assert 0.6 * least < bound <= least * 1.001


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            'weighted_by = "height"',
            r"weighted_by must be a measure whose bounds are not negative \(weight\); got 'height'",
        ),
        (
            'weighted_by = "pay"',
            (
                r"weighted_by must be a measure whose bounds are not negative \(weight\); got "
                r"'pay'. Declare it"
            ),
        ),
    ],
)
def test_weights_that_cannot_be_used_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        parse_spec(SPEC.replace('weighted_by = "weight"', changed, 1), Path())


SUM_OF_WEIGHTS = {
    name: float(WEIGHT[(name == REGION) & PEOPLE.pay.notna()].sum()) for name in ("north", "south")
}
MEAN = {
    name: float((VALUE * WEIGHT)[name == REGION].sum()) / SUM_OF_WEIGHTS[name]
    for name in ("north", "south")
}


@pytest.mark.parametrize("budget", [ln.PureDP(8), ln.ZCDP(2)], ids=["pure", "gaussian"])
@pytest.mark.parametrize("target", ["margin", "rmse"])
def test_weighted_mean_error_holds_at_public_size(budget, target):
    domain = parse_spec(SPEC, Path()).domain
    size = min(SUM_OF_WEIGHTS.values())
    workload = ln.mean_queries(domain, "pay", by=["region"], size=size, **{target: 3})
    plan = ln.plan(workload.weighted_by("weight"), budget, objective="worst")
    (error,) = statistic_errors(plan)
    (reached,) = statistic_target_statuses(plan, 0.95)
    assert reached is not None
    errors = []
    covered = []
    halves = []
    for release in releases(plan, PEOPLE, range(60)):
        (statistic,) = release.statistics
        truth = np.array([MEAN[name] for name in ("north", "south")])
        errors.append(statistic.values - truth)
        covered.append((statistic.low <= truth) & (truth <= statistic.high))
        halves.append((statistic.high - statistic.low) / 2)
    std = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    # The promise is for the largest mean that the bounds allow, in the smaller group.
    assert (std <= 1.3 * error.std_error).all()
    assert error.std_error <= 4 * std.max()
    assert np.mean(covered) >= 0.9
    if target == "margin":
        assert np.max(halves) <= 1.05 * reached.error


def test_spec_plans_weighted_mean_with_size(tmp_path):
    changed = SPEC.replace('weighted_by = "weight"', 'weighted_by = "weight"\nsize = 10000', 1)
    spec = parse_spec(changed, tmp_path)
    assert [statistic.size for statistic in spec.workload.statistics] == [10000]
    assert spec.workload.weight_of(spec.workload.statistics[0]) == spec.domain.measures["weight"]


@pytest.mark.parametrize("budget", [ln.PureDP(400), ln.ZCDP(10_000)])
def test_weight_can_weight_its_own_mean(budget):
    domain = ln.Domain(sex=["F", "M"], measures={"weight": ln.Measure("weight", 0, 5)})
    rows = pd.DataFrame({"sex": ["F", "F", "M", None], "weight": [1, 4, 3, 9]})
    for attributes in ([], ["sex"]):
        workload = ln.mean_queries(domain, "weight", by=attributes).weighted_by("weight")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = ln.release(ln.plan(workload, budget), rows, seed=1)
        (mean,) = release.statistics
        true = [(1 + 16) / 5, 3.0] if attributes else [(1 + 16 + 9 + 25) / 13]
        assert np.allclose(mean.values.ravel(), true, atol=0.05)


def test_variances_and_units_are_not_weighted():
    domain = parse_spec(SPEC, Path()).domain
    for workload in (
        ln.marginals(domain, ways=1, count="units"),
        ln.queries(domain, sum="pay").weighted_by("weight"),
    ):
        with pytest.raises(InputError, match="cannot be applied to counts of units"):
            workload.weighted_by("weight")
    with pytest.raises(InputError, match=r"regressions and R\^2 have no weights"):
        ln.variance_queries(domain, "pay").weighted_by("weight")
    with pytest.raises(
        InputError, match="a weight must be a Measure with a lower bound of at least 0"
    ):
        Weighted(Measure("pay", 0, 1), Measure("w", -1, 1))
    largest = Measure("pay", 0, 2**15 - 1)
    assert Weighted(largest, Measure("w", 0, 2**15)).largest == 2**30 - 2**15
    with pytest.raises(InputError, match="high of pay times w must be between -1073741823 and"):
        Weighted(largest, Measure("w", 0, 2**15 + 2))
