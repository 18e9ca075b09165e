"""Tests of sums under a private threshold: privacy loss, intervals, cut values and refusals.

There are three methods. Sums along the number and by other attributes are cut at one threshold.
Sums by groups are measured in buckets of the number, of which each group keeps some. Sums only
along the number leave out the buckets that do not exceed the noise.
"""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import cycle

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import block_variance, interval_multiplier
from leastnoise._estimation import (
    BucketExpansion,
    DroppedBucketsEstimate,
    Estimate,
    GroupedBucketSumsEstimate,
    TruncatedSumsEstimate,
    answers_of,
    measured_by_group,
)
from leastnoise._mechanisms import BY_NAME, mechanism_of, release_contract
from leastnoise._mechanisms import _sums_mechanism as sums
from leastnoise._plan import Plan
from leastnoise._session import outcome_from_json
from leastnoise._strategies import PLANNERS, candidate_cells
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, one_of
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries, simulate
from leastnoise._trusted.linop import dense
from leastnoise._trusted.table import Table
from mechanisms.running import run, runs, stored_outcome
from session.releasing import manifest
from simulated import simulations

pytestmark = pytest.mark.usefixtures("kept_plans")

BUDGETS = [ln.PureDP("1/5"), ln.ZCDP("1/100"), ln.ApproxDP("1/2", "1/1000000")]
every_budget = pytest.mark.parametrize("budget", BUDGETS)


def setting(workload, budget):
    return sums.plan_sums(workload, Privacy(budget))


def run_of(workload, table, budget, seed):
    """Return the estimator and the facts of one run, which spends its whole budget."""
    plan = setting(workload, budget).plan
    series = UnpaidSeries(release_contract(plan), table, SeededEntropy(seed))
    outcome = mechanism_of(plan).prepare(plan)(series)
    assert str(series.left()) == "nothing"
    return outcome.estimator(), outcome.finding.facts()


def is_near(answer, exact):
    """Tell whether all answers are within six times their stated errors."""
    stated_error = np.hypot(answer.noise_std, np.nan_to_num(answer.approximation_std))
    return bool((np.abs(answer.values - exact) < 6 * stated_error).all())


def average_to_one(squares):
    """Tell whether squared standardised errors average to about 1 over many releases."""
    standard_error = squares.std(axis=0) / np.sqrt(len(squares))
    return bool((abs(squares.mean(axis=0) - 1) < 4.5 * standard_error).all())


def wages(low=0, high=4000, unit=1, **kinds):
    return ln.Domain(kinds, measures={"wages": ln.Measure("pay", low, high, unit=unit)})


# --- the number and another attribute: one threshold ----------------------------------------------

BY_SEX_DOMAIN = wages(sex=["F", "M"], pay=ln.Bins(0, 4000, 80, closed="right"))
RNG = np.random.default_rng(6)
AMOUNTS = np.clip(np.rint(RNG.lognormal(5.5, 0.9, 3000)), 1, 4000).astype(np.int64)
SEX = RNG.integers(0, 2, 3000)
CELLS = -(-AMOUNTS // 50) - 1
TABLE = Table(BY_SEX_DOMAIN, {"sex": SEX, "pay": CELLS}, {"wages": AMOUNTS})
BY_SEX = ln.queries(BY_SEX_DOMAIN, sex="identity", pay="prefix", sum="wages")


def cut_sums(threshold):
    """Return the sums by sex up to each edge, with amounts cut at the threshold."""
    upper_ends = (CELLS + 1) * 50
    cut_amounts = np.minimum(AMOUNTS, np.minimum(upper_ends, threshold))
    sums_of_cells = np.zeros((2, 80))
    np.add.at(sums_of_cells, (SEX, CELLS), cut_amounts)
    return np.cumsum(sums_of_cells, axis=1)


@every_budget
def test_sum_intervals_cover_noise_given_threshold(budget):
    product = BY_SEX.products[0]
    first_estimator, facts = run_of(BY_SEX, TABLE, budget, 0)
    assert isinstance(first_estimator, TruncatedSumsEstimate)
    plan = sums.fit_limited_sums(setting(BY_SEX, budget), facts["threshold"])
    estimate = Estimate(simulate(plan, TABLE, SeededEntropy(1)))
    noise_std = estimate.estimate(product).noise_std
    assert noise_std == pytest.approx(first_estimator.estimate(product).noise_std)

    outcomes = simulations(plan, TABLE, 150, seed=0)
    answers = np.array([estimate.for_observation(outcome).values(product) for outcome in outcomes])
    scaled = (answers - cut_sums(facts["threshold"])) / noise_std
    assert average_to_one(np.mean(np.square(scaled), axis=(1, 2)))
    assert np.mean(np.abs(scaled) < 2.2) > 0.93


TOTAL_AND_BY_SEX = ln.queries(BY_SEX_DOMAIN, sum="wages") + ln.queries(
    BY_SEX_DOMAIN, sex="identity", sum="wages"
)


def test_larger_budget_raises_threshold():
    medians = []
    for epsilon in ("1/50", 1, 40):
        facts = [run_of(TOTAL_AND_BY_SEX, TABLE, ln.PureDP(epsilon), seed)[1] for seed in range(5)]
        medians.append(np.median([run_facts["threshold"] for run_facts in facts]))
    assert medians[0] < medians[1] < medians[2]


def test_larger_budget_raises_threshold_and_estimates_loss():
    estimator, facts = run_of(TOTAL_AND_BY_SEX, TABLE, ln.PureDP("1"), 3)
    total, by_sex = TOTAL_AND_BY_SEX.products
    exact_loss = np.maximum(AMOUNTS - facts["threshold"], 0).sum()
    losses = estimator.losses(total)
    # Counts of the tail have noise of 14 records; the loss is a few such numbers times up to 2000.
    assert losses == pytest.approx(exact_loss, abs=60_000)
    assert (estimator.estimate(total).approximation_std == np.abs(losses)).all()
    answer = estimator.estimate(by_sex)
    exact = cut_sums(facts["threshold"])[:, -1]
    assert answer.values == pytest.approx(exact, abs=6 * answer.noise_std.max())


def test_losses_of_prefix_sums_increase():
    estimator, facts = run_of(BY_SEX, TABLE, ln.PureDP("1"), 3)
    losses = estimator.losses(BY_SEX.products[0])
    assert losses.shape == (2, 80)
    assert losses[:, -1].sum() == pytest.approx(facts["estimated_loss"])
    assert (np.diff(losses, axis=1) >= 0).all()


def test_units_and_edges_of_the_number_give_the_limits():
    cents = wages(0, 8, "0.01", pay=ln.Bins(0, 10, 4))
    by_bins = setting(ln.queries(cents, pay="prefix", sum="wages"), ln.PureDP(1))
    assert by_bins.edges.tolist() == [250, 500, 750, 800]  # the bound of 8 cuts the last bin
    clipped = wages(0, 9, pay=ln.Integers(0, 3, outside="clip"))
    by_integers = setting(ln.queries(clipped, sum="wages"), ln.PureDP(1))
    assert by_integers.edges.tolist() == [1, 1, 2, 9]


def some_ranges(seed, top):
    """Return ranges that leave cells out, or overlap."""
    ends = np.sort(np.random.default_rng(seed).integers(0, top + 1, (int(1 + seed % 3), 2)), axis=1)
    return ln.ranges([(int(low), int(high)) for low, high in ends])


WITH_PLANS = [
    # These are prefix sums of the number and sums by group; a joint table of both gains nothing.
    (
        11,
        lambda d: (
            ln.queries(d, pay="prefix", sum="wages") + ln.queries(d, group="identity", sum="wages")
        ),
    ),
    (
        11,
        lambda d: (
            ln.queries(d, group="identity", pay="all_ranges", sum="wages")
            + ln.queries(d, sum="wages")
        ),
    ),
    (60_000, lambda d: ln.queries(d, group="identity", sum="wages") + ln.queries(d, sum="wages")),
    *[
        (30, lambda d, s=s: ln.queries(d, group="identity", pay=some_ranges(s, 30), sum="wages"))
        for s in range(5)
    ],
    (
        30,
        lambda d: (
            ln.queries(d, pay=some_ranges(4, 30), sum="wages")
            + ln.queries(d, group="identity", sum="wages")
        ),
    ),
]


@pytest.mark.parametrize(
    ("budget", "top", "ask"),
    [(budget, *case) for budget, case in zip(cycle([ln.PureDP(1), ln.ZCDP("1/2")]), WITH_PLANS)],
)
def test_every_threshold_that_may_be_chosen_has_a_plan(budget, top, ask):
    """A paid release must not fail afterwards."""
    plan_setting = setting(
        ask(wages(0, top, pay=ln.Integers(0, top), group=["a", "b", "c"])), budget
    )
    for high in (-1e9, 0.0, 1e9):
        choice = sums.threshold_chooser(plan_setting)(
            np.full(len(plan_setting.candidates) - 1, high)
        )
        assert np.isfinite(choice.noise_rmse).all()
        assert (np.diff(choice.noise_rmse) >= -1e-9 * choice.noise_rmse[1:]).all()
        assert choice.noise_rmse[0] > 0
    for cell in plan_setting.candidates:
        assert sums.fit_limited_sums(plan_setting, int(plan_setting.edges[cell])).blocks


def test_large_table_with_few_sums_is_planned():
    domain = wages(0, 59_999, pay=ln.Integers(0, 59_999), group=ln.Coded(100_000))
    plan_setting = setting(ln.queries(domain, group="identity", sum="wages"), ln.PureDP(1))
    candidates = plan_setting.candidates
    choice = sums.threshold_chooser(plan_setting)(np.zeros(len(candidates) - 1))
    assert choice.threshold == plan_setting.edges[candidates[0]]
    assert sums.fit_limited_sums(plan_setting, 500).blocks


# --- groups alone: buckets, of which each group keeps some ----------------------------------------

GROUPS = 8
EDGES = 25 * 2 ** np.arange(10)
GROUPED = wages(
    0,
    12_800,
    place=[f"p{number}" for number in range(GROUPS)],
    pay=ln.Edges([0, *EDGES.tolist()], closed="right"),
    sex=["F", "M"],
)
BY_PLACE = ln.queries(GROUPED, place="identity", sum="wages")


def people(count):
    """Draw groups with sizes as 1, 1/2, 1/3, and amounts."""
    random = np.random.default_rng(6)
    sizes = np.cumsum(1 / np.arange(1, GROUPS + 1))
    amounts = np.clip(np.rint(random.lognormal(5.0, 0.8, count)), 1, 12_800).astype(np.int64)
    return np.searchsorted(sizes / sizes[-1], random.random(count)), amounts


def grouped(place, amounts):
    """Return the table of these groups and amounts."""
    return Table(
        GROUPED,
        {"place": place, "pay": np.searchsorted(EDGES, amounts), "sex": amounts % 2},
        {"wages": amounts},
    )


def buckets_of(plan_setting, amounts):
    """Return the number of the bucket of each amount."""
    cells = np.searchsorted(EDGES, amounts)
    return np.searchsorted(plan_setting.buckets.starts, cells, side="right") - 1


@every_budget
def test_group_noise_is_exact_given_kept_cells(budget):
    group, amounts = people(3000)
    plan_setting = sums.buckets_below(setting(BY_PLACE, budget), 1600)
    kept_buckets = np.arange(GROUPS) % (len(plan_setting.buckets.upper_ends) + 1)
    is_kept = buckets_of(plan_setting, amounts) < kept_buckets[group]
    exact = np.bincount(group, np.minimum(amounts, 1600) * is_kept, GROUPS)
    std_without_buckets = np.sqrt((plan_setting.noise**2).sum())
    scaled = []
    for observation in simulations(plan_setting.measurements, grouped(group, amounts), 200, seed=0):
        estimate = GroupedBucketSumsEstimate.of(observation, "pay", kept_buckets, np.zeros(GROUPS))
        answer = estimate.estimate(BY_PLACE.products[0])
        assert (answer.values[kept_buckets == 0] == 0).all()
        assert answer.noise_std[kept_buckets == 0] == pytest.approx(std_without_buckets)
        scaled.append(((answer.values - exact) / answer.noise_std)[kept_buckets > 0])
    assert average_to_one(np.square(scaled))
    assert np.mean(np.square(scaled)) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("budget", [ln.PureDP("1/50"), ln.PureDP("1/2"), ln.ZCDP("1/100")], ids=str)
def test_intervals_cover_sums_cut_at_the_threshold(budget):
    place, amounts = people(4000)
    plan_setting = setting(BY_PLACE, budget)
    inside = []
    run_once = runs(plan_setting.plan, grouped(place, amounts))
    wide_factor = interval_multiplier(plan_setting.noise, 0.95)
    narrow_factor = interval_multiplier(plan_setting.noise, 0.9)
    for seed in range(150):
        outcome = run_once(SeededEntropy(seed))
        answer = outcome.estimator().estimate(BY_PLACE.products[0])
        exact = np.bincount(
            place, np.minimum(amounts, outcome.finding.facts()["threshold"]), GROUPS
        )
        below, above = answer.interval_distances(wide_factor, narrow_factor, 0.0)
        inside.append((answer.values - below <= exact) & (exact <= answer.values + above))
    shares = np.mean(inside, axis=0)
    assert shares.mean() > 0.93
    assert shares.min() > 0.88


def test_which_way_sums_are_measured():
    place, amounts = people(20_000)
    total = ln.queries(GROUPED, sum="wages")
    groups = ln.queries(GROUPED, place="identity", sex="identity", sum="wages")
    for workload in (total, groups):
        estimator, facts = run_of(workload, grouped(place, amounts), ln.PureDP(2), 3)
        exact = np.zeros((GROUPS, 2))
        np.add.at(exact, (place, amounts % 2), np.minimum(amounts, facts["threshold"]))
        answer = estimator.estimate(workload.products[0])
        assert answer.values.shape == workload.products[0].shape
        assert is_near(answer, exact if workload is groups else exact.sum())
    by_pay = ln.queries(GROUPED, place="identity", pay="prefix", sum="wages")
    two_tables = BY_PLACE + ln.queries(GROUPED, sex="identity", sum="wages")
    for workload, step in (
        (total, "groups"),
        (groups, "groups"),
        (by_pay, "sums"),
        (two_tables, "sums"),
    ):
        assert [step.name for step in setting(workload, ln.PureDP(1)).plan.adaptive.steps] == [
            "tail",
            step,
        ]
    with pytest.raises(InputError, match="Sums were measured by place only"):
        run_of(BY_PLACE, grouped(place, amounts), ln.PureDP(1), 0)[0].estimate(
            two_tables.products[1]
        )


def test_buckets_are_read_at_any_attribute_position():
    """The groups come before or after the number in the domain."""
    place, amounts = people(500)
    plan_setting = sums.buckets_below(
        setting(
            ln.queries(GROUPED, place="identity", sex="identity", sum="wages"), ln.PureDP(1000)
        ),
        12_800,
    )
    (observation,) = simulations(plan_setting.measurements, grouped(place, amounts), 1, seed=1)
    values, noise = measured_by_group(observation, "pay")
    exact = np.zeros((GROUPS, 2, len(noise)))
    np.add.at(exact, (place, amounts % 2, buckets_of(plan_setting, amounts)), amounts)
    assert (np.abs(values - exact) < 12 * noise).all()


DAMAGED = {
    "kept": [
        [0] * (GROUPS - 1),
        [99] * GROUPS,
        [-1] * GROUPS,
        [2**70] * GROUPS,
        ["1"] * GROUPS,
        [1.5] * GROUPS,
        3,
        None,
    ],
    "missing": [
        [1.0] * (GROUPS - 1),
        [-1.0] * GROUPS,
        ["1"] * GROUPS,
        [None] * GROUPS,
        [10**400] * GROUPS,
        [[1.0] * GROUPS],
        3,
        None,
    ],
    "threshold": [5, 0, -7, "800", 1.5, 10**30, None],
    "estimated_loss": [-1.0, "1", 10**400, None],
    "measure": ["others", 3],
    "attribute": ["sex", "place", "others"],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_unknown_sum_findings_are_refused(name):
    plan = setting(BY_PLACE, ln.PureDP(1)).plan
    value = stored_outcome(run(plan, grouped(*people(200)), 5))
    outcome_from_json(plan.to_json(), json.dumps(value))
    for damaged in DAMAGED[name]:
        with pytest.raises(InputError, match="This is not an observation, or a damaged one"):
            outcome_from_json(
                plan.to_json(),
                json.dumps({**value, "outcome": {**value["outcome"], name: damaged}}),
            )


# --- the number alone: buckets, of which those that do not stand out are left out -----------------

ALONG = wages(pay=ln.Bins(0, 4000, 20, closed="right"))
ALONG_PAY = ln.queries(ALONG, pay="prefix", sum="wages") + ln.queries(
    ALONG, pay="identity", sum="wages"
)


def along(amounts):
    return Table(ALONG, {"pay": -(-amounts // 200) - 1}, {"wages": amounts})


def amounts_of(count, low=0.0):
    """Return random amounts up to 4000."""
    return np.clip(
        np.rint(low + np.random.default_rng(6).lognormal(5.0, 0.6, count)), 1, 4000
    ).astype(np.int64)


def sums_of(amounts):
    return np.bincount(-(-amounts // 200) - 1, amounts, 20)


@every_budget
def test_noise_is_exact_given_dropped_buckets(budget):
    """Also for dropped buckets, by whose stated sum each answer is too small."""
    amounts = amounts_of(3000)
    measured = simulations(
        sums.fit_bucket_sums(setting(ALONG_PAY, budget))[1], along(amounts), 200, seed=0
    )
    exact = sums_of(amounts)
    for start, stop in ((0, 20), (1, 10)):
        lost = [
            (cell, cell + 1, float(exact[cell]))
            for cell in range(20)
            if not start <= cell < stop and exact[cell]
        ]
        squares = np.zeros((len(measured), 2))
        for number, observation in enumerate(measured):
            estimator = DroppedBucketsEstimate.of(observation, start, stop, lost)
            for place, (product, truth) in enumerate(
                zip(ALONG_PAY, (np.cumsum(exact), exact), strict=True)
            ):
                answer = estimator.estimate(product)
                assert (answer.noise_std > 0).all()
                expected = truth - answers_of(product, estimator.missing)
                is_known = (answer.values != 0) | (np.abs(expected) > 1e-6)
                squares[number, place] = np.mean(
                    ((answer.values - expected)[is_known] / answer.noise_std[is_known]) ** 2
                )
        assert average_to_one(squares)


def test_high_maximum_does_no_harm_along_the_number():
    amounts = np.minimum(amounts_of(20_000), 600)
    for seed in range(5):
        estimator, facts = run_of(ALONG_PAY, along(amounts), ln.PureDP("1/10"), seed)
        assert isinstance(estimator, DroppedBucketsEstimate)
        assert facts["stop"] <= 5
        answer = estimator.estimate(ALONG_PAY.products[0])
        assert (np.abs(answer.values - np.cumsum(sums_of(amounts))) < 6 * answer.noise_std).all()
        assert answer.noise_std.max() < 40_000  # the noise of 600 or 1000 in a record, not of 4000
        assert answer.approximation_std[:3].max() == 0


def test_unused_small_values_add_nothing():
    run_facts = [
        run_of(ALONG_PAY, along(amounts_of(20_000, 2100.0)), ln.PureDP("1/10"), seed)[1]
        for seed in range(10)
    ]
    assert sum(facts["first"] == 8 for facts in run_facts) >= 6
    assert all(facts["stop"] == 20 for facts in run_facts)


@pytest.mark.parametrize(
    ("largest", "budget"), [(4000, ln.PureDP(1)), (400, ln.PureDP("1/10")), (400, ln.ZCDP("1/500"))]
)
def test_second_mode_is_not_taken_for_noise(largest, budget):
    """A second hump of three times the sum, after empty cells, stands out from every tail."""
    amounts = np.concatenate([np.clip(amounts_of(20_000), 1, largest), np.full(3000, 3500)])
    assert {run_of(ALONG_PAY, along(amounts), budget, seed)[1]["stop"] for seed in range(5)} == {20}


def weighted(workload, budget, seed):
    """Return buckets and an observation of 500 rows, with its dense weighted rows."""
    buckets, measurements = sums.fit_bucket_sums(setting(workload, budget))
    (observation,) = simulations(measurements, along(amounts_of(500)), 1, seed=seed)
    (block,), (values,) = measurements.blocks, observation.values
    weights = block.factors[0].weights.astype(float)
    return (
        buckets,
        observation,
        weights[:, None] * dense(block.factors[0].operator)[:, buckets.group_starts],
        weights * values / measurements.grid,
    )


@every_budget
def test_kept_buckets_are_least_squares_without_the_rest(budget):
    buckets, observation, rows, measured = weighted(ALONG_PAY, budget, 3)
    assert buckets.group_starts.tolist() == list(range(20))
    estimator = DroppedBucketsEstimate.of(observation, 2, 10, [(10, 20, 1000.0)])
    expected = np.zeros(20)
    expected[2:10] = np.linalg.lstsq(rows[:, 2:10], measured, rcond=None)[0]
    assert estimator.kept.evenly_divided_cells == pytest.approx(expected, rel=1e-9)
    shortfall = np.linalg.lstsq(rows[:, 2:10], rows[:, 10:] @ np.full(10, 100.0), rcond=None)[0]
    assert estimator.missing == pytest.approx(
        np.concatenate([np.zeros(2), -shortfall, np.full(10, 100.0)]), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize(
    ("kind", "budget"),
    [
        ("prefix", BUDGETS[1]),
        ({"matrix": np.random.default_rng(2).integers(0, 2, (7, 20)).tolist()}, BUDGETS[0]),
    ],
)
def test_one_sided_bounds_match_full_least_squares(kind, budget):
    """The upper bound drops nothing; the lower one restores amounts with a negative sign."""
    workload = ln.queries(ALONG, pay=kind, sum="wages")
    buckets, observation, rows, measured = weighted(workload, budget, 3)
    queries = dense(workload.products[0].operators[0])[:, buckets.group_starts].astype(float)
    inverse = np.linalg.pinv(rows)
    kept_buckets = np.flatnonzero((buckets.group_starts >= 2) & (buckets.group_starts < 10))
    dropped = np.setdiff1d(np.arange(len(buckets.group_starts)), kept_buckets)
    recover = np.zeros((len(buckets.group_starts), len(rows)))
    recover[kept_buckets] = np.linalg.pinv(rows[:, kept_buckets])
    # An answer adds `queries @ recover @ rows` of the true sums, where `queries` of them is
    # requested.
    raised = np.maximum((queries @ (recover @ rows))[:, dropped] - queries[:, dropped], 0.0)
    noise = block_variance(observation.measurements, observation.measurements.blocks[0])
    sides = (
        DroppedBucketsEstimate.of(observation, 2, 10, []).estimate(workload.products[0]).true_bounds
    )
    assert sides is not None
    assert raised.max() > 0.01
    assert sides.upper == pytest.approx(queries @ inverse @ measured, rel=1e-6)
    assert sides.upper_std == pytest.approx(
        np.sqrt(noise * ((queries @ inverse) ** 2).sum(axis=1)), rel=1e-6
    )
    lower = queries @ recover - raised @ inverse[dropped]
    assert sides.lower == pytest.approx(lower @ measured, rel=1e-6, abs=1e-3)
    assert sides.lower_std == pytest.approx(np.sqrt(noise * (lower**2).sum(axis=1)), rel=1e-6)


def test_intervals_cover_sums_of_all_values_by_query():
    """Three records far above the others are dropped in about half of the releases."""
    amounts = np.concatenate([np.clip(amounts_of(20_000), 1, 400), np.full(3, 3500)])
    buckets, measurements = sums.fit_bucket_sums(setting(ALONG_PAY, ln.PureDP(1)))
    measured = simulations(measurements, along(amounts), 150, seed=4)
    choices = buckets.choices(BucketExpansion.of(measured[0]).covariance)
    exact = np.concatenate([np.cumsum(sums_of(amounts)), sums_of(amounts)])
    times = interval_multiplier(measurements.noise, 0.95)
    one_sided = interval_multiplier(measurements.noise, 0.9)
    half_width = 0.5 / measurements.grid
    stops = set()
    inside = []
    without = []
    for observation in measured:
        kept_range = choices.choose_range(BucketExpansion.of(observation).counts)
        stops.add(kept_range.stop)
        answers = [
            DroppedBucketsEstimate.of(
                observation, kept_range.first, kept_range.stop, kept_range.omitted_sums
            ).estimate(product)
            for product in ALONG_PAY
        ]
        apart = exact - np.concatenate([answer.values for answer in answers])
        for hits, estimates in (
            (inside, answers),
            (without, [replace(answer, true_bounds=None) for answer in answers]),
        ):
            distances = [
                estimate.interval_distances(times, one_sided, half_width) for estimate in estimates
            ]
            below = np.concatenate([lower for lower, _ in distances])
            above = np.concatenate([upper for _, upper in distances])
            hits.append((-below <= apart) & (apart <= above))
    assert len(stops) > 1
    assert np.mean(inside, axis=0).min() > 0.87  # 0.95 less four standard errors
    assert np.mean(without, axis=0).min() < 0.8


def test_stopping_threshold_is_chosen_without_cells_above():
    """Queries reach across buckets, so noise of upper cells would hide the cells below."""
    long_domain = wages(pay=ln.Bins(0, 4000, 80, closed="right"))
    buckets, measurements = sums.fit_bucket_sums(
        setting(ln.queries(long_domain, pay="prefix", sum="wages"), ln.PureDP("1/10"))
    )
    amounts = np.minimum(amounts_of(20_000), 700)
    measured = simulations(
        measurements,
        Table(long_domain, {"pay": -(-amounts // 50) - 1}, {"wages": amounts}),
        20,
        seed=1,
    )
    expansions = [
        DroppedBucketsEstimate.of(observation, 0, 80, ()).full for observation in measured
    ]
    choices = buckets.choices(expansions[0].covariance)
    enough = int(np.searchsorted(buckets.stops[buckets.bucket_ends - 1], 14))
    within = choices.stops[enough].stds
    stds_without_limit = choices.stops[-1].stds[: enough + 1]
    assert (within <= stds_without_limit * (1 + 1e-9)).all()
    assert within[-1] < 0.99 * stds_without_limit[-1]
    stops = sorted(choices.choose_range(expansion.counts).stop for expansion in expansions)
    assert (
        buckets.stops[buckets.bucket_ends[enough - 1] - 1]
        <= stops[10]
        <= buckets.stops[buckets.bucket_ends[enough] - 1]
    )


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "by_group"),
    [
        (ln.Bins(0, 40, 8, closed="right"), True),
        (ln.Edges([0, 1, 10, 100, 1000], closed="right"), True),
        (ln.Bins(0, 40, 8, closed="right"), False),
        (ln.Bins(0, 1600, 16, closed="right"), False),
    ],
)
def test_record_changes_sums_within_the_paid_loss(kind, by_group):
    """By brute force: every threshold and cell, and the most influential values in it."""
    edges = [int(end) for end in kind.edges]
    epsilon = Fraction(1, 3)
    queries = {"sex": "identity"} if by_group else {"pay": "prefix"}
    plan_setting = setting(
        ln.queries(wages(0, edges[-1], sex=["F", "M"], pay=kind), sum="wages", **queries),
        ln.PureDP(epsilon),
    )
    if by_group:
        steps = [
            sums.buckets_below(plan_setting, threshold).measurements
            for threshold in plan_setting.edges[candidate_cells(plan_setting.edges)].tolist()
        ]
    else:
        steps = [sums.fit_bucket_sums(plan_setting)[1]]
    paid_loss = epsilon * (Fraction(9, 10) if by_group else 1)
    for measurements in steps:
        (block,) = measurements.blocks
        lost = [
            _loss(block, cell, value)
            for cell in range(len(edges) - 1)
            for value in (edges[cell] + 1, edges[cell + 1], edges[-1])
        ]
        assert Fraction(98, 100) * paid_loss < max(lost) <= paid_loss


def _loss(block, cell, value):
    """Return the exact privacy loss of a record in a cell."""
    factor = block.factors[-1]
    limits = block.limits
    weights = dense(factor.operator)[:, cell] * factor.weights
    return int(np.abs(weights).sum()) * min(value, int(limits.values[cell])) / Fraction(block.scale)


PLACES, MANY = people(5000)
FEW = np.minimum(amounts_of(20_000), 700)


@pytest.mark.parametrize(
    ("workload", "budget", "rows", "exact", "regime", "sentence"),
    [
        (
            BY_SEX,
            1,
            {"sex": np.array(["F", "M"])[SEX], "pay": AMOUNTS},
            cut_sums(4000),
            "truncated",
            "were counted as",
        ),
        (
            BY_PLACE,
            1,
            {"place": [f"p{place}" for place in PLACES], "pay": MANY},
            np.bincount(PLACES, MANY),
            "grouped",
            "were counted as",
        ),
        (
            ALONG_PAY,
            "1/10",
            {"pay": FEW},
            np.cumsum(sums_of(FEW)),
            "bucketed",
            "did not exceed their noise",
        ),
    ],
    ids=["truncated", "grouped", "bucketed"],
)
def test_named_releases_round_trip_with_their_cut(
    tmp_path, workload, budget, rows, exact, regime, sentence
):
    plan = ln.plan(workload, ln.PureDP(budget), strategy="truncated_sums")
    ledger = tmp_path / "people.ledger"
    out = tmp_path / "out"
    release = ln.release(plan, pd.DataFrame(rows), ledger=ledger, out=out)
    book = ln.Ledger.open(ledger)
    assert book.left().epsilon == 0
    assert len(book.entries()) == 1
    record = manifest(out)
    assert record["plan"]["outcome"]["regime"] == regime
    assert sentence in " ".join(record["intervals"]["does_not_cover"])
    table = release.tables["q1"]
    reread = ln.read_release(out).tables["q1"]
    # The threshold cuts an amount that the estimate of the loss misses.
    missed_amount = 0 if regime == "bucketed" else 3000
    spread = 6 * table.noise_std + 4 * table.approximation_std + missed_amount
    assert (np.abs(table.answer.reshape(-1) - exact.reshape(-1)) < spread.reshape(-1)).all()
    assert (reread.answer == table.answer).all()
    assert (reread.high == table.high).all()


@pytest.mark.parametrize("workload", [BY_SEX, ALONG_PAY], ids=["threshold", "bucketed"])
def test_sums_plan_file_is_checked_unpaid(workload):
    plan = setting(workload, ln.PureDP(1)).plan
    assert sums.setting_from_plan(Plan.from_json(plan.to_json())).attribute == "pay"
    adaptive = replace(plan.adaptive, attributes=("sex",))
    for changed in ({"adaptive": adaptive}, {"strategy": "dawa"}):
        with pytest.raises(
            InputError, match=r"from another version\. Make the plan again; nothing was spent"
        ):
            sums.setting_from_plan(replace(plan, **changed))


FINE = wages(0, 1999, sex=["F", "M"], pay=ln.Integers(0, 1999))
FINER = wages(0, 4999, pay=ln.Integers(0, 4999))


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            ln.queries(ALONG, pay="prefix"),
            "truncated_sums answers sums of one measure; this workload has counts",
        ),
        (
            BY_SEX + ln.queries(BY_SEX_DOMAIN, pay="prefix"),
            "this workload has sums of wages and counts",
        ),
        (
            ln.queries(wages(sex=["F", "M"]), sex="identity", sum="wages"),
            "the domain must have the attribute pay as Integers or Bins",
        ),
        (
            ln.queries(wages(-3, 3, pay=ln.Integers(-3, 3)), sum="wages"),
            "wages must not be negative; its lower bound is -3. Choose",
        ),
        (
            ln.queries(FINE, sex="identity", pay="prefix", sum="wages"),
            "if the queries distinguish at most 1024 cells; it has 2000 cells",
        ),
        (ln.queries(FINER, pay=ln.ranges([(1, 40), (20, 90)]), sum="wages"), "at most 4096 cells"),
    ],
)
def test_unplannable_sums_are_refused_at_planning(workload, message):
    with pytest.raises(InputError, match=message):
        setting(workload, ln.PureDP(1))


def test_budget_without_noise_is_refused_unpaid():
    plan = setting(BY_PLACE, ln.PureDP(10**6)).plan
    with pytest.raises(InputError, match="The budget is so large that the noise of pay vanishes"):
        mechanism_of(plan).prepare(plan)


@pytest.mark.parametrize("name", ["bucketed_sums", "grouped_sums"])
def test_similar_name_of_a_strategy_is_suggested(name):
    with pytest.raises(InputError, match="Did you mean 'truncated_sums'"):
        one_of("[plan] strategy", name, ("auto", *PLANNERS, *BY_NAME))


# --- public bounds of the measure -----------------------------------------------------------------

WAYS: list[dict[str, str]] = [
    {"group": "identity"},
    {"group": "identity", "pay": "prefix"},
    {"pay": "prefix"},
]


def sums_plan(queries, budget, pay, *bounds):
    """Return a plan of sums under a private threshold."""
    return ln.plan(
        ln.queries(wages(*bounds, group=["a", "b"], pay=pay), sum="wages", **queries),
        budget,
        strategy="truncated_sums",
    )


@pytest.mark.parametrize("queries", WAYS[:2])
@pytest.mark.parametrize("amount", ["1", "4"])
def test_bounds_too_large_beside_counts_are_refused(queries, amount):
    """Counts need the finer grid under (epsilon, delta), which all measurements share."""
    refused = []
    cells = np.arange(40) % 8
    tried = (20_000, 400_000, 1_500_000, 4_000_000, 20_000_000)
    for high in tried:
        try:
            plan = sums_plan(
                queries,
                ln.ApproxDP(amount, "1/1000000"),
                ln.Bins(0, high, 8, closed="right"),
                0,
                high,
                "0.01",
            )
            run_once = mechanism_of(plan).prepare(plan)  # the last that may refuse
        except InputError as error:
            refused.append(str(error))
            continue
        table = Table(
            plan.domain,
            {"group": cells % 2, "pay": cells},
            {"wages": (cells * high * 100) // 8 + 1},
        )
        outcome = run_once(UnpaidSeries(release_contract(plan), table, SeededEntropy(1)))
        assert np.isfinite(outcome.estimator().estimate(plan.workload.products[0]).values).all()
    assert 0 < len(refused) < len(tried)
    assert all("larger unit" in message for message in refused)


@pytest.mark.parametrize("queries", WAYS)
def test_values_below_the_lower_bound_are_raised_to_it(queries):
    """As in every other sum of the measure, at any lower end of the cell."""
    plan = sums_plan(queries, ln.PureDP(10), ln.Bins(0, 1000, 50, closed="right"), 100, 1000)
    numbers = np.random.default_rng(0).integers(1, 150, 40_000)
    amounts = np.maximum(numbers, 100)
    table = Table(
        plan.domain, {"group": numbers % 2, "pay": -(-numbers // 20) - 1}, {"wages": amounts}
    )
    answer = run(plan, table, 2).estimator().estimate(plan.workload.products[0])
    exact = np.bincount(numbers % 2, amounts) if "group" in queries else amounts.sum()
    assert (answer.values if queries == WAYS[0] else answer.values[..., -1]) == pytest.approx(
        exact, rel=0.002
    )


@pytest.mark.parametrize("queries", WAYS[:2])
@pytest.mark.parametrize("high", [12_800, 40_000])
def test_nulls_in_own_cell_do_not_move_the_threshold(queries, high):
    """A third of the rows adds the lower bound; counted higher, they would raise it."""
    random = np.random.default_rng(1)
    edges = [0, *EDGES.tolist()]
    amounts = np.where(random.random(3000) < 1 / 3, 0, random.integers(1, 400, 3000))
    cells = np.where(amounts == 0, len(EDGES), np.searchsorted(EDGES, amounts))
    group = random.integers(0, 2, 3000)
    thresholds = []
    for null, rows in (("drop", amounts > 0), ("other", slice(None))):
        plan = sums_plan(queries, ln.PureDP(1), ln.Edges(edges, closed="right", null=null), 0, high)
        run_once = runs(
            plan,
            Table(
                plan.domain, {"group": group[rows], "pay": cells[rows]}, {"wages": amounts[rows]}
            ),
        )
        thresholds.append(
            [run_once(SeededEntropy(seed)).finding.facts()["threshold"] for seed in range(3)]
        )
    assert thresholds[0] == thresholds[1]
