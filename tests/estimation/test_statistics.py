"""Distribution functions, quantiles, means and changes: errors, coverage and refusals."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import evaluate_plan, interval_multiplier, noise_variance, ratio_interval
from leastnoise._estimation import (
    Estimate,
    cdf,
    cumulative_counts,
    cumulative_query,
    means,
    minimal_draws,
    quantile_difference,
    quantiles,
    simulated_noise,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.linop import Tree
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import queries
from simulated import read_table, simulations

REGION = {"a": "north", "b": "south", "c": "north", "d": "south", "e": "west"}
DOMAIN = ln.Domain(
    month=ln.Dates("2024-01-01", "2024-06-30", "month"),
    age=ln.Integers(1, 30),
    sex=["F", "M"],
    store=ln.Categories(list(REGION), levels={"region": REGION}),
    measures={"pay": ln.Measure("pay", -20, 100, unit="0.5"), "tips": ln.Measure("tips", 0, 9)},
)
# Rows of each month and sex.
MONTHS = np.array([[400, 90], [500, 80], [100, 70], [50, 60], [700, 300], [20, 200]])


def people():
    """Return rows whose ages and pay differ by sex; pay is missing in a quarter, all of sex F."""
    random = np.random.default_rng(8)
    months = np.repeat([*range(6)] * 2, MONTHS.T.reshape(-1))
    frame = pd.DataFrame({"month": [f"2024-{1 + month:02}-03" for month in months]})
    size = len(frame)
    frame["sex"] = np.repeat(["F", "M"], MONTHS.sum(axis=0))
    frame["store"] = random.choice(list(REGION), size)
    is_f = frame["sex"] == "F"
    ages_of_f = random.choice([2, 11, 12, 28, *random.binomial(29, 0.3, 8)], size)
    ages_of_m = random.binomial(29, 0.5, size)
    frame["age"] = 1 + np.where(is_f, ages_of_f, ages_of_m)
    pay_of_f = random.integers(40, 201, size)
    pay_of_m = random.integers(-40, 60, size)
    frame["pay"] = np.where(is_f, pay_of_f, pay_of_m) / 2
    frame.loc[: size // 4, "pay"] = np.nan
    return frame


ROWS = people()
# Groups of the rows, computed without the library.
GROUPS = {
    "sex": ROWS["sex"],
    "region": ROWS["store"].map(REGION),
    "young": ROWS["age"] > 14,
    "stores": ~ROWS["store"].isin(["a", "b"]),
}
# The same groups as queries.
BY: dict[str, Any] = {
    "sex": "sex",
    "region": {"store": ln.level("region")},
    "young": {"age": ln.ranges([(1, 14), (15, 30)])},
    "stores": {"store": ln.predicates([["a", "b"], ["c", "d", "e"]])},
}
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
PAY_DOMAIN = ln.mean_queries(DOMAIN, "pay").domain
KINDS = {
    "Laplace": (Privacy(ln.PureDP("1/3")), Noise.DISCRETE_LAPLACE),
    "Gaussian": (Privacy(ln.ZCDP("1/40")), Noise.ROUNDED_GAUSSIAN),
}


def trees(kind):
    """Return weighted trees of ages by sex, and sums and counts of pay, at several scales."""
    weights = np.concatenate([[3], np.full(5, 2), np.full(30, 7)])
    sex = Factor(("sex",), Tree(2, (1,)))
    ages = Block((Factor(("age",), Tree(30, (30, 6, 1)), weights), sex), Fraction(1))
    sums = Block((sex,), Fraction(1), "pay")
    counts = Block((sex,), Fraction(1), "count of pay")
    distributions = queries(PAY_DOMAIN, age="prefix", sex="identity")
    means_by_sex = ln.mean_queries(PAY_DOMAIN, "pay", by=["sex"])
    measurements = fit_noise_scales(PAY_DOMAIN, *kind, [(ages, 1.0), (sums, 0.02), (counts, 2.0)])
    return evaluate_plan(distributions + means_by_sex, measurements)


def simulated_estimate(plan, seed=0):
    """Return the estimate of one simulated release of the rows."""
    return Estimate(simulate(plan.measured(), read_table(plan, ROWS), SeededEntropy(seed)))


def group_rows(by):
    """Return the rows of every group, in the order of its labels."""
    if not by:
        return [ROWS]
    return [rows for _, rows in ROWS.groupby([GROUPS[name] for name in by])]


# Both ends of intervals, and errors divided by the stated errors (None if those are unknown).
Intervals = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Case:
    """A plan, the intervals computed from each of its releases, and the true values."""

    plan: Callable[[], Plan]
    intervals: Callable[[Estimate, float], Intervals]
    truth: np.ndarray
    level: float = 0.8
    count: int = 100
    is_joint: bool = False  # an interval counts if all of its group hold
    rows: pd.DataFrame | None = None


def exact_quantiles(by):
    """Return the quantiles of the ages in each group of the rows."""
    return np.array(
        [np.quantile(rows["age"], SHARES, method="inverted_cdf") for rows in group_rows(by)]
    )


def checked_ends(intervals):
    """Return the lower and the upper ends, after a check that the values are between them."""
    assert all(interval.low <= interval.value <= interval.high for interval in intervals)
    ends = np.array([(interval.low, interval.high) for interval in intervals])
    ends = ends.reshape(-1, len(SHARES), 2)
    return ends[..., 0], ends[..., 1]


def band_case(plan, by, draws=19, **options):
    """Return bands of a distribution function; one that contains it contains all quantiles.

    Each band is also checked: its curves rise, the shares are between its ends, and if it contains
    the function, then its intervals contain all quantiles.
    """
    ages = np.arange(1, 31)
    truth = np.array(
        [(rows["age"].to_numpy()[:, None] <= ages).mean(axis=0) for rows in group_rows(by)]
    )
    true_quantiles = exact_quantiles(by)

    def intervals(estimate, level):
        band = cdf(estimate, "age", by=[BY[name] for name in by], level=level, draws=draws)
        low, share, high = (
            curve.reshape(len(truth), 30) for curve in (band.low, band.share, band.high)
        )
        assert all((np.diff(curve) >= 0).all() for curve in (low, share, high))
        assert ((low <= share + 1e-12) & (share <= high + 1e-12)).all()
        low_quantiles, high_quantiles = checked_ends(band.quantiles(SHARES))
        is_covered = (low_quantiles <= true_quantiles) & (true_quantiles <= high_quantiles)
        contains_truth = ((low <= truth) & (truth <= high)).all(axis=-1)
        assert is_covered[contains_truth].all()
        return low, high, None

    return Case(plan, intervals, truth, is_joint=True, **options)


def quantile_case(plan, by, **options):
    """Return intervals of the quantiles of the ages."""

    def intervals(estimate, level):
        groups = [BY[name] for name in by]
        low, high = checked_ends(quantiles(estimate, "age", SHARES, by=groups, level=level))
        return low, high, None

    return Case(plan, intervals, exact_quantiles(by), **options)


def mean_case(plan, by, rows=ROWS, **options):
    """Return intervals of the means of pay."""
    groups = [GROUPS[name] for name in by] if rows is ROWS else by
    truth = rows.groupby(groups)["pay"].mean().to_numpy()

    def intervals(estimate, level):
        table = means(estimate, "pay", by=[BY.get(name, name) for name in by], level=level)
        low, high, mean, std_error = (
            values.reshape(-1) for values in (table.low, table.high, table.mean, table.std_error)
        )
        return low, high, (mean - truth) / std_error if rows is ROWS else None

    return Case(plan, intervals, truth, rows=rows, **options)


def change_case(kind, truth, prefix):
    """Return intervals of the differences or ratios of counts in two months."""
    counts = ln.queries(DOMAIN, month="prefix", sex="identity")
    workload = counts + ln.queries(DOMAIN, month=ln.change(2), sex="identity")

    def intervals(estimate, level):
        numbers = ln.changes(estimate, "month", 2, by=["sex"], level=level).numbers
        errors = None
        if kind == "difference":
            errors = (numbers["difference"] - truth) / numbers["std_error"]
        return numbers[f"{prefix}low"], numbers[f"{prefix}high"], errors

    return Case(lambda: ln.plan(workload, ln.ZCDP("1/50")), intervals, truth, level=0.95)


def plan_later(workload, budget, strategy="workload"):
    """Return a function that plans the workload, so that only the tests that run plan."""
    return lambda: ln.plan(workload, budget, strategy=strategy)


def mean_plan(by, budget, strategy):
    """Plan means and a distribution function, with weights."""
    groups = [BY[name] for name in by]
    mean_workload = ln.mean_queries(DOMAIN, "pay", by=groups, weight=3, size=250)
    distribution = ln.queries(DOMAIN, age="prefix", weight="0.5")
    return plan_later(mean_workload + distribution, budget, strategy)


def function_plan(by):
    """Plan quantiles, a distribution function and a table, with weights."""
    groups = [BY[by]]
    quantile_workload = ln.quantile_queries(DOMAIN, "age", ["0.25", "0.5"], by=groups, weight=2)
    function = ln.cdf_queries(DOMAIN, "age", by=groups)
    table = ln.queries(DOMAIN, sex="identity", weight=5)
    return plan_later(quantile_workload + function + table, ln.PureDP("0.1"))


LOW = 500_000_000
FAR = ln.Domain(a=ln.Coded(2), measures={"pay": ln.Measure("pay", LOW, LOW + 2)})
FAR_ROWS = pd.DataFrame({"a": [0, 1] * 200, "pay": [LOW, LOW + 2, LOW + 1, LOW + 1] * 100})
CASES = {
    **{
        f"whole band, {name}": band_case(lambda kind=kind: trees(kind), [], count=60)
        for name, kind in KINDS.items()
    },
    **{
        f"quantiles by sex, {name}": quantile_case(lambda kind=kind: trees(kind), ["sex"])
        for name, kind in KINDS.items()
    },
    **{
        f"means by sex, {name}": mean_case(lambda kind=kind: trees(kind), ["sex"])
        for name, kind in KINDS.items()
    },
    "band without simulations": band_case(lambda: trees(KINDS["Laplace"]), ["sex"], draws=0),
    "means by level": mean_case(
        mean_plan(["sex", "region"], ln.PureDP("0.7"), "marginals"), ["sex", "region"], level=0.9
    ),
    "means by ranges": mean_case(
        mean_plan(["young", "sex"], ln.ZCDP("0.2"), "workload"), ["young", "sex"], level=0.9
    ),
    "means by sets": mean_case(
        mean_plan(["sex", "stores"], ln.PureDP("0.7"), "p_identity"), ["sex", "stores"], level=0.9
    ),
    # Sums less the middle of the bounds times the counts have only the precision of doubles.
    "means far from 0": mean_case(
        plan_later(ln.mean_queries(FAR, "pay", by=["a"]), ln.PureDP(1)), ["a"], FAR_ROWS, level=0.95
    ),
    **{
        f"quantiles by {by}": quantile_case(function_plan(by), [by], level=0.9)
        for by in ("region", "stores")
    },
    **{
        f"bands by {by}": band_case(function_plan(by), [by], level=0.9, count=24)
        for by in ("region", "stores")
    },
    "changes": change_case("difference", MONTHS[2:] - MONTHS[:-2], ""),
    "ratios": change_case("ratio", MONTHS[2:] / MONTHS[:-2], "ratio_"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_statistic_intervals_cover_at_stated_rate(case):
    plan = case.plan()
    table = read_table(plan, ROWS if case.rows is None else case.rows)
    estimate = Estimate(simulate(plan.measured(), table, SeededEntropy(0)))
    covered = []
    errors = []
    for observation in simulations(plan.measured(), table, case.count, seed=1):
        low, high, error = case.intervals(estimate.for_observation(observation), case.level)
        is_covered = (low <= case.truth + 1e-12) & (case.truth <= high + 1e-12)
        covered.append(is_covered.all(axis=-1) if case.is_joint else is_covered)
        if error is not None:
            errors.append(error)

    share = np.mean(covered, axis=0)
    std_of_share = (case.level * (1 - case.level) / case.count) ** 0.5
    assert (share > case.level - 4 * std_of_share).all()
    assert case.level - 0.03 < share.mean() < (case.level + 0.05 if errors else 1.01)
    if errors:
        assert 0.85 < np.sqrt(np.mean(np.square(errors))) < 1.15


def test_release_statistics_match_the_estimate():
    by = [BY["region"]]
    level = 0.9
    mean_workload = ln.mean_queries(DOMAIN, "pay", by=by, size=100, margin=5)
    quantile_workload = ln.quantile_queries(DOMAIN, "age", ["1/4", "1/2"], by=by)
    workload = mean_workload + quantile_workload + ln.cdf_queries(DOMAIN, "age", by=by)
    plan = ln.plan(workload, ln.ZCDP(1), strategy="workload")
    plan_from_json = ln.Plan.from_json(plan.to_json())
    assert plan_from_json == plan
    assert plan_from_json.workload.statistics[0].along == {"store": ln.level("region")}

    release = ln.release(plan, ROWS, seed=1, options=ln.Options(level=level))
    mean, quantile, function = release.statistics
    means_of_release = ln.means(release, "pay", by=by, level=level)
    assert mean.name == "mean of pay by store:region"
    assert np.array_equal(means_of_release.mean, mean.values)
    assert "store:region" in means_of_release.columns()

    intervals = ln.quantiles(release, "age", [0.25, 0.5], by=by, level=level)
    assert quantile.low.reshape(-1).tolist() == [interval.low for interval in intervals]
    groups = [interval.group for interval in intervals]
    assert groups[::2] == [("north",), ("south",), ("west",)]
    assert function.values == pytest.approx(ln.cdf(release, "age", by=by).share, abs=1e-3)


@pytest.fixture(scope="module")
def change_release():
    """Return a release of counts by month and sex, and of their changes in two months."""
    counts = ln.queries(DOMAIN, month="prefix", sex="identity")
    workload = counts + ln.queries(DOMAIN, month=ln.change(2), sex="identity")
    return ln.release(ln.plan(workload, ln.ZCDP("1/50")), ROWS, seed=1)


def test_changes_are_the_answers_of_their_table(change_release):
    changes = ln.changes(change_release, "month", 2, by=["sex"])
    table = change_release.tables["month:change 2 x sex"]
    assert changes.numbers["difference"] == pytest.approx(table.answer, abs=1e-6)
    assert changes.numbers["std_error"] == pytest.approx(table.noise_std)
    for end in ("low", "high"):
        assert changes.numbers[end] == pytest.approx(getattr(table, end))
    assert [*changes.columns()][:2] == ["month", "sex"]
    assert changes.columns()["month"][0] == "2024-03 - 2024-01"


def test_ends_of_ratios_are_as_far_as_noise_allows(change_release):
    """At an end r, the later count less r times the earlier one is a margin of noise from 0.

    The margin also covers half a step of the noise, hence the factor 1.07.
    """
    changes = ln.changes(change_release, "month", 2, by=["sex"])
    months = ln.queries(DOMAIN, month="identity", sex="identity")
    (cells,) = change_release.answer(months)
    multiplier = interval_multiplier(change_release.measurements.noise, 0.95)
    covariance = change_release.covariances(*months.products * 2).reshape(6, 2, 6, 2)
    for end in ("ratio_low", "ratio_high"):
        for (month, sex), ratio in np.ndenumerate(changes.numbers[end]):
            weights = np.array([-ratio, 1.0])
            two_months = slice(month, month + 3, 2)
            variance = weights @ covariance[two_months, sex, two_months, sex] @ weights
            distance = abs(weights @ cells.answer[two_months, sex])
            assert 1 < distance / multiplier / np.sqrt(variance) < 1.07


def test_group_statistics_use_rows_of_the_group():
    plan = trees((Privacy(ln.PureDP(100)), Noise.DISCRETE_LAPLACE))
    estimate = simulated_estimate(plan, 5)
    distribution = cdf(estimate, "age", by=["sex"], draws=199)
    quantiles_by_sex = quantiles(estimate, "age", SHARES, by=["sex"])
    assert distribution.share.shape == distribution.low.shape == (2, 30)
    for place, label in enumerate("FM"):
        group_distribution = cdf(estimate, "age", where={"sex": label}, draws=199)
        assert group_distribution.share == pytest.approx(distribution.share[place], abs=1e-9)
        assert group_distribution.count == pytest.approx(distribution.count[place])
        quantiles_of_sex = quantiles(estimate, "age", SHARES, where={"sex": label})
        ends = [(quantile.value, quantile.low, quantile.high) for quantile in quantiles_of_sex]
        assert ends == [
            (quantile.value, quantile.low, quantile.high)
            for quantile in quantiles_by_sex
            if quantile.group == (label,)
        ]


def test_only_rows_of_a_group_of_a_level_count():
    plan = ln.plan(ln.queries(DOMAIN, store="identity", age="identity"), ln.PureDP(50))
    release = ln.release(plan, ROWS, seed=1)
    (quantile,) = ln.quantiles(release, "age", [0.5], where={"store": {"region": "north"}})
    assert quantile == ln.quantiles(release, "age", [0.5], where={"store": ["a", "c"]})[0]
    ages_of_group = ROWS["age"][GROUPS["region"] == "north"]
    median = np.quantile(ages_of_group, 0.5, method="inverted_cdf")
    assert quantile.low <= median <= quantile.high
    with pytest.raises(
        InputError,
        match="group of the level 'region' must be one of north, south, west; got 'east'",
    ):
        ln.cdf(release, "age", where={"store": {"region": "east"}})


def test_requested_statistics_have_narrower_bands():
    estimate = simulated_estimate(trees(KINDS["Laplace"]))
    bound = cdf(estimate, "age", by=["sex"], level=0.8, draws=0)
    simulated = cdf(estimate, "age", by=["sex"], level=0.8, draws=199)
    assert (bound.high - bound.low).mean() > (simulated.high - simulated.low).mean()

    requested = quantiles(estimate, "age", SHARES, by=["sex"], level=0.8)
    from_band = simulated.quantiles(SHARES)
    width = sum(quantile.high - quantile.low for quantile in requested)
    assert width < sum(quantile.high - quantile.low for quantile in from_band)
    assert [quantile.group for quantile in from_band] == [quantile.group for quantile in requested]
    assert minimal_draws(estimate, 0.95) == 199
    assert minimal_draws(estimate, 0.99999) == 0


def test_band_of_pure_noise_allows_everything():
    plan = trees((Privacy(ln.PureDP("1/100000")), Noise.DISCRETE_LAPLACE))
    band = cdf(simulated_estimate(plan), "age", draws=199)
    assert band.low[0] == 0
    assert band.high[-2] == 1
    (median,) = band.quantiles([0.5])
    assert (median.low, median.high) == (1, 30)


def test_quantile_test_uses_its_own_error():
    estimate = simulated_estimate(trees(KINDS["Laplace"]))
    share = 0.3
    (prefix_counts,) = queries(PAY_DOMAIN, age="prefix", sex="identity")
    draws = np.stack(list(simulated_noise(estimate, prefix_counts, 600, seed=4)))
    errors = (1 - share) * draws - share * (draws[:, -1:] - draws)
    query = cumulative_query(PAY_DOMAIN, "age", {}, ["sex"])
    _, variances = quantile_difference(*cumulative_counts(estimate, query), share)
    # A variance of 600 draws has a standard error of 6%; each of 60 may be off by 5 of these.
    assert np.moveaxis(errors.var(axis=0), 0, -1) == pytest.approx(variances, rel=0.3)


def test_quantile_interval_holds_cells_not_rejected():
    estimate = simulated_estimate(trees((Privacy(ln.PureDP("1/20")), Noise.DISCRETE_LAPLACE)))
    multiplier = interval_multiplier(Noise.DISCRETE_LAPLACE, 0.9)
    half_step = 0.5 / estimate.observation.measurements.grid
    counts = cumulative_counts(estimate, cumulative_query(PAY_DOMAIN, "age", {}, ["sex"]))
    shares = np.arange(1, 20) / 20
    quantile_table = quantiles(estimate, "age", shares.tolist(), by=["sex"], level=0.9)
    for place, (quantile, share) in enumerate(zip(quantile_table, [*shares, *shares], strict=True)):
        group = place // 19
        differences, variances = quantile_difference(*counts, share)
        margin = multiplier * np.sqrt(variances[group]) + half_step
        # A cell is rejected if the difference at its end or before its start is surely not 0.
        lowest = np.flatnonzero(differences[group] + margin >= 0)[0]
        below = np.flatnonzero((differences[group] - margin < 0)[:-1])
        assert quantile.low == lowest + 1
        assert quantile.high == max(lowest, *(below + 1)) + 1


def plan_with_both_ends():
    """Return a plan whose sums count the rows at both bounds, so that they tell of counts."""
    ages = (Factor(("age",), Tree(30, (30, 1))),)
    blocks = (Block(ages, Fraction(4), "pay", ends=True), Block(ages, Fraction(9), "count of pay"))
    measurements = Measurements(
        domain=PAY_DOMAIN,
        privacy=Privacy(ln.PureDP(999)),
        noise=Noise.DISCRETE_LAPLACE,
        blocks=blocks,
    )
    counts = queries(PAY_DOMAIN, age="prefix", count="pay")
    sums = queries(PAY_DOMAIN, age="prefix", sum="pay")
    return evaluate_plan(counts + sums, measurements)


@pytest.mark.parametrize(
    "plan",
    [trees(KINDS["Gaussian"]), plan_with_both_ends()],
    ids=["counts", "blocks that measure counts and sums"],
)
def test_errors_match_between_matrix_and_simulation(plan, monkeypatch):
    estimate = simulated_estimate(plan, 1)
    measurements = plan.measured()
    values = dict(zip(range(99), estimate.observation.values, strict=False))
    for product in [*plan.workload][:2]:
        measured = np.concatenate(
            [values[index] for index in estimate.block_indices(product.measure)]
        )
        answers = estimate.answer_matrix(product) @ measured / measurements.grid
        np.testing.assert_allclose(
            answers.reshape(product.shape), estimate.values(product), rtol=1e-9, atol=1e-9
        )
        noise_by_matrix = list(simulated_noise(estimate, product, 120, seed=6))
        with monkeypatch.context() as patched:
            patched.setattr("leastnoise._estimation._cdf._MOST_LINEAR", 0)
            noise = list(simulated_noise(estimate, product, 120, seed=6))
        np.testing.assert_allclose(noise_by_matrix, noise, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("count", [0, 5, 40, 4000])
@pytest.mark.parametrize("scales", [(3.0, 170.0), (0.7, 400.0)])
def test_ratio_intervals_cover_at_small_counts(count, scales):
    rng = np.random.default_rng(count)
    mean = 37.0
    draws = 40_000
    steps = [-np.expm1(-1 / scale) for scale in scales]
    counts, sums = (rng.geometric(step, draws) - rng.geometric(step, draws) for step in steps)
    variances = [
        np.full(draws, noise_variance(Noise.DISCRETE_LAPLACE, scale)) for scale in scales[::-1]
    ]
    multiplier = interval_multiplier(Noise.DISCRETE_LAPLACE, 0.9)
    low, high = ratio_interval(
        count * mean + sums,
        count + counts,
        *variances,
        multiplier,
        (0.0, 100.0),
        half_noise_steps=(0.5, 0.5),
    )
    covered = ((low <= mean + 1e-9) & (mean - 1e-9 <= high)).mean()
    # 40000 draws at 0.9: 4 standard errors are 0.006.
    assert covered > 0.9 - 0.006
    if count == 4000:
        assert (high - low).max() < 3
        assert covered < 0.97


def test_ratio_to_possible_zero_has_no_upper_end():
    plan = ln.plan(ln.queries(DOMAIN, month="identity"), ln.PureDP(1))
    release = ln.release(plan, ROWS[ROWS["month"] == "2024-02-03"], seed=3)
    changes = ln.changes(release, "month", 1).numbers
    assert changes["ratio_low"][0] == 0.0
    assert changes["ratio_high"][0] == np.inf
    assert np.isnan(changes["ratio"][0])
    with pytest.raises(ln.InputError, match="from 1 to 5; got 6"):
        ln.changes(release, "month", 6)


AGE_KINDS = "attribute of a distribution function must be one of Integers, Decimals, Bins or Edges"
NOT_A_RELEASE = "be a release or an estimate; got 'Domain'. Before a release, ask with mean_queries"
REFUSED_CALLS: list[tuple[Callable[[Estimate], object], str]] = [
    (lambda source: cdf(source, "sex"), f"the {AGE_KINDS}"),
    (lambda source: cdf(source, "age", level=1), "level must be a number above 0 and below 1"),
    (lambda source: cdf(source, "age", draws=10), "draws must be at least 19 for the level"),
    (
        lambda source: cdf(source, "age", where={"age": 3}),
        "cannot be restricted to some values of age itself",
    ),
    (lambda source: cdf(source, "age", where={"store": "a"}), "The measurements"),
    (
        lambda source: cdf(source, "age", draws=10**9),
        "At most 2147483648 numbers are drawn to simulate releases",
    ),
    (
        lambda source: quantiles(source, "age", [0]),
        "a quantile must be a number above 0 and at most 1",
    ),
    (
        lambda source: quantiles(source, "age", [0.5], where={"sex": "F"}, by=["sex"]),
        "must not contain sex, because the distribution function",
    ),
    (
        lambda source: quantiles(source, "age", [0.5], by=["store"]),
        "The measurements do not determine age:prefix x store",
    ),
    (
        lambda source: means(source, "tips"),
        "A mean of tips needs measurements of its sums and of the number of its values",
    ),
    (
        lambda source: means(source, "pay", by=["zone"]),
        "the groups of means must be attributes of month, age, sex",
    ),
    (lambda source: means(source, "pay", level=0), "level must be"),
    (
        lambda _: ratio_interval(*[np.ones(1)] * 4, 2.0, (3, 2)),
        "The bounds of a quotient must be a lower and an upper bound",
    ),
    (lambda _: means(DOMAIN, "age"), NOT_A_RELEASE),
    (lambda _: cdf(DOMAIN, "age"), NOT_A_RELEASE),
    (lambda _: quantiles(DOMAIN, "age", ["1/2"]), NOT_A_RELEASE),  # type: ignore[arg-type, list-item]
    (lambda _: ln.changes(DOMAIN, "age", 1), NOT_A_RELEASE),
]


@pytest.mark.parametrize(("call", "message"), REFUSED_CALLS)
def test_unsupported_statistics_are_refused(call, message):
    estimate = simulated_estimate(trees(KINDS["Laplace"]), 1)
    with pytest.raises(InputError) as error:
        call(estimate)
    assert message in str(error.value)


REFUSED_GROUPS = [
    (["region"], "region is a level: ask for { store = { level = 'region' } }"),
    (["sexe"], "attributes of month, age, sex, store; got 'sexe'"),
    ([{"store": "region"}], "query set on store must be 'identity'"),
    ([{"store": ln.level("county")}], "a level must be one of 'region'; got 'county'"),
    (
        [{"age": "prefix"}],
        " along age must be one of identity, level, ranges, predicates; got 'prefix'",
    ),
    (["store", BY["region"]], "attributes without repetitions"),
    ([3], "a list of attributes"),
    ("sex", "a list of attributes"),
    (7, "a list of attributes"),
]


@pytest.mark.parametrize(
    "request_by",
    [
        lambda by: ln.mean_queries(DOMAIN, "pay", by=by),
        lambda by: ln.marginals(DOMAIN, ways=1, of=by),
    ],
    ids=["means", "marginals"],
)
@pytest.mark.parametrize(("by", "message"), REFUSED_GROUPS)
def test_unsupported_groups_are_refused(request_by, by, message):
    with pytest.raises(InputError) as error:
        request_by(by)
    assert message in str(error.value)
