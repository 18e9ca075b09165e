"""Sums by public buckets of the number: exact privacy, noise known given what is left out, and when something is left out."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._accounting import Privacy
from leastnoise._accuracy import block_variance, interval_multiplier
from leastnoise._check import InputError
from leastnoise._estimate import Expanded, LeftOut
from leastnoise._estimate._expansion import answers_of
from leastnoise._kernel import SeededEntropy, UnpaidSeries
from leastnoise._linop import dense
from leastnoise._mechanisms import _sums as sums
from leastnoise._mechanisms import mechanism_for, terms_of
from leastnoise._mechanisms._protocol import Search
from leastnoise._plan import Plan
from leastnoise._planner._sums import weighted_by_ends
from leastnoise._table import Table
from simulated import simulations

pytestmark = pytest.mark.usefixtures("kept_plans")

DOMAIN = ln.Domain(pay=ln.Bins(0, 4000, 20, closed="right"), measures={"wages": ln.Measure("pay", 0, 4000)})
ASKED = ln.queries(DOMAIN, pay="prefix", sum="wages") + ln.queries(DOMAIN, pay="identity", sum="wages")
BUDGETS = [ln.PureDP("1/5"), ln.ZCDP("1/100"), ln.ApproxDP("1/2", "1/1000000")]


def table_of(amounts: np.ndarray) -> Table:
    return Table(DOMAIN, {"pay": -(-amounts // 200) - 1}, {"wages": amounts})


def amounts_of(count: int, low: float = 0.0) -> np.ndarray:
    drawn = low + np.random.default_rng(6).lognormal(5.0, 0.6, count)
    return np.clip(np.rint(drawn), 1, 4000).astype(np.int64)


def sums_of(amounts: np.ndarray, first: int = 0, stop: int = 20) -> np.ndarray:
    cells = -(-amounts // 200) - 1
    return np.bincount(cells, amounts * ((cells >= first) & (cells < stop)), 20)


def found_for(budget: object, asked: ln.Workload = ASKED) -> sums.Setting:
    return sums.setting(asked, Privacy(budget))  # type: ignore[arg-type]


def released(amounts: np.ndarray, budget: object, seed: int) -> tuple[LeftOut, dict[str, object]]:
    found = found_for(budget)
    series = UnpaidSeries(terms_of(found.plan), table_of(amounts), SeededEntropy(seed))
    outcome = sums.sums_along(found, *sums.measured(found), series)
    assert str(series.left()) == "nothing"
    estimator = outcome.estimator()
    assert isinstance(estimator, LeftOut)
    return estimator, outcome.finding.facts()


@pytest.mark.parametrize("edges", [(0, 40, 8), (0, 1600, 16)])
def test_no_record_changes_what_is_measured_by_more_than_is_paid(edges: tuple[int, int, int]) -> None:
    """By brute force: every cell, and in it every value that changes a measured sum most."""
    low, high, count = edges
    domain = ln.Domain(pay=ln.Bins(low, high, count, closed="right"), measures={"wages": ln.Measure("pay", 0, high)})
    epsilon = Fraction(1, 3)
    _, made = sums.measured(found_for(ln.PureDP(epsilon), ln.queries(domain, pay="prefix", sum="wages")))
    (block,) = made.blocks
    (factor,) = block.factors
    width, limits = high // count, block.limits
    assert limits is not None
    columns = sums_matrix(factor.operator, count).T
    lost = [
        sum(
            Fraction(int(abs(entry)) * min(value, int(limits.values[cell])) * int(weight)) / block.scale
            for entry, weight in zip(columns[cell], factor.weights, strict=True)
        )
        for cell in range(count)
        for value in (cell * width + 1, (cell + 1) * width, high)
    ]
    assert Fraction(98, 100) * epsilon < max(lost) <= epsilon


def sums_matrix(operator: object, size: int) -> np.ndarray:
    found = dense(operator)  # type: ignore[arg-type]
    assert found.shape[1] == size
    return found


@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_is_exact_given_what_is_left_out(budget: object) -> None:
    """Also where something was left out, of which each answer falls short as is said of it."""
    found, amounts = found_for(budget), amounts_of(3000)
    _, made = sums.measured(found)
    runs, exact = simulations(made, table_of(amounts), 200, seed=0), sums_of(amounts)
    for first, stop in ((0, 20), (1, 10)):
        lost = [(cell, cell + 1, float(exact[cell])) for cell in range(20) if not first <= cell < stop and exact[cell]]
        truth, scaled = [np.cumsum(exact), exact], []
        for observation in runs:
            estimator = LeftOut.of(observation, first, stop, lost)
            for product, right in zip(ASKED, truth, strict=True):
                answer = estimator.estimate(product)
                assert (answer.noise_std > 0).all()
                expected = right - answers_of(product, estimator.missing)
                known = (answer.values != 0) | (np.abs(expected) > 1e-6)
                scaled.append(np.mean(((answer.values - expected)[known] / answer.noise_std[known]) ** 2))
        each = np.array(scaled).reshape(200, 2)
        assert (abs(each.mean(axis=0) - 1) < 4.5 * each.std(axis=0) / np.sqrt(200)).all()


def test_a_maximum_far_above_all_values_does_no_harm() -> None:
    amounts = np.minimum(amounts_of(20_000), 600)
    for seed in range(5):
        estimator, facts = released(amounts, ln.PureDP("1/10"), seed)
        assert int(facts["stop"]) <= 5  # type: ignore[call-overload]
        answer = estimator.estimate(ASKED.products[0])
        assert (np.abs(answer.values - np.cumsum(sums_of(amounts))) < 6 * answer.noise_std).all()
        assert answer.noise_std.max() < 40_000  # the noise of 600 or 1000 in a record, not of 4000
        assert answer.approximation_std is not None
        assert answer.approximation_std[:3].max() == 0


def test_small_values_that_nobody_has_are_nothing() -> None:
    amounts = amounts_of(20_000, 2100.0)
    kept = [released(amounts, ln.PureDP("1/10"), seed)[1] for seed in range(10)]
    assert sum(int(facts["first"]) == 8 for facts in kept) >= 6  # type: ignore[call-overload]
    assert all(facts["stop"] == 20 for facts in kept)


def test_nothing_that_stands_out_is_left_out() -> None:
    amounts = np.concatenate([amounts_of(20_000), np.full(3000, 3500)])
    for seed in range(5):
        assert released(amounts, ln.PureDP(1), seed)[1]["stop"] == 20


def test_a_second_hump_is_no_noise() -> None:
    """Its sum is three times as large as the first one's, with nothing between them: no tail falls like that, and it is clear."""
    amounts = np.concatenate([np.clip(amounts_of(20_000), 1, 400), np.full(3000, 3500)])
    for budget in (ln.PureDP("1/10"), ln.ZCDP("1/500")):
        for seed in range(5):
            assert released(amounts, budget, seed)[1]["stop"] == 20


def test_the_release_by_name(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    amounts = np.minimum(amounts_of(20_000), 700)
    people = pandas.DataFrame({"pay": amounts})
    plan = ln.plan(ASKED, ln.PureDP("1/10"), strategy="truncated_sums")
    release = ln.release(plan, people, ledger=tmp_path / "people.ledger", out=tmp_path / "out", dataset="people")
    assert ln.Ledger.open(tmp_path / "people.ledger").left().epsilon == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["plan"]["outcome"]["regime"] == "bucketed"
    said = " ".join(manifest["intervals"]["does_not_cover"])
    assert "measured sums of other values did not stand out of their noise" in said
    table = release.tables["q1"]
    assert table.approximation_std is not None
    apart = np.abs(table.answer - np.cumsum(sums_of(amounts)))
    assert (apart < 6 * table.noise_std + 4 * table.approximation_std).all()


def test_a_plan_from_a_file_is_checked_before_it_is_paid() -> None:
    mechanism = mechanism_for("truncated_sums", ASKED)
    plan = mechanism.plan(ASKED, Privacy(ln.PureDP(1)), Search("truncated_sums"))
    assert plan.details["steps"] == ({"step": "number", "budget": {"epsilon": "1"}},)
    mechanism.ready(Plan.from_json(plan.to_json()))
    with pytest.raises(InputError, match=r"The details of the plan are not those of this version\. Make the plan again; nothing was spent"):
        mechanism.ready(replace(plan, details={**plan.details, "attribute": "sex"}))


@pytest.mark.parametrize("budget", BUDGETS)
def test_what_is_kept_is_least_squares_without_the_columns_of_the_rest(budget: object) -> None:
    found = found_for(budget)
    buckets, made = sums.measured(found)
    (observation,) = simulations(made, table_of(amounts_of(500)), 1, seed=3)
    (block,), (values,) = made.blocks, observation.values
    weights = block.factors[0].weights.astype(float)[:, None]
    rows, measured = weights * sums_matrix(block.factors[0].operator, 20), weights[:, 0] * values / made.grid
    assert buckets.starts.tolist() == list(range(20))
    estimator = LeftOut.of(observation, 2, 10, [(10, 20, 1000.0)])
    expected = np.zeros(20)
    expected[2:10] = np.linalg.lstsq(rows[:, 2:10], measured, rcond=None)[0]
    assert estimator.kept.even == pytest.approx(expected, rel=1e-9)
    short = np.linalg.lstsq(rows[:, 2:10], rows[:, 10:] @ np.full(10, 100.0), rcond=None)[0]
    assert estimator.missing == pytest.approx(np.concatenate([np.zeros(2), -short, np.full(10, 100.0)]), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "budget"), [("prefix", BUDGETS[1]), ({"matrix": np.random.default_rng(2).integers(0, 2, (7, 20)).tolist()}, BUDGETS[0])]
)
def test_sides_are_those_of_least_squares_with_all_columns(kind: object, budget: object) -> None:
    """By dense algebra: the upper one leaves nothing out, the lower one takes back what is carried with a sign below 0."""
    asked = ln.queries(DOMAIN, pay=kind, sum="wages")
    buckets, made = sums.measured(found_for(budget, asked))
    (observation,) = simulations(made, table_of(amounts_of(500)), 1, seed=3)
    (block,), (values,) = made.blocks, observation.values
    weights = block.factors[0].weights.astype(float)[:, None]
    rows, measured = weights * sums_matrix(block.factors[0].operator, 20)[:, buckets.starts], weights[:, 0] * values / made.grid
    operator = asked.products[0].operators[0]
    queries = dense(operator)[:, buckets.starts].astype(float)
    full, kept = np.linalg.pinv(rows), np.flatnonzero((buckets.starts >= 2) & (buckets.starts < 10))
    left = np.setdiff1d(np.arange(len(buckets.starts)), kept)
    recover = np.zeros((len(buckets.starts), len(rows)))
    recover[kept] = np.linalg.pinv(rows[:, kept])
    # an answer adds up queries @ recover @ rows of the true sums, where queries of them are asked for
    raised = np.maximum((queries @ (recover @ rows))[:, left] - queries[:, left], 0.0)
    noise = block_variance(made, block)
    answer = LeftOut.of(observation, 2, 10, []).estimate(asked.products[0])
    sides = answer.sides
    assert sides is not None
    assert raised.max() > 0.01
    assert sides.most == pytest.approx(queries @ full @ measured, rel=1e-6)
    assert sides.most_std == pytest.approx(np.sqrt(noise * ((queries @ full) ** 2).sum(axis=1)), rel=1e-6)
    lower = queries @ recover - raised @ full[left]
    assert sides.least == pytest.approx(lower @ measured, rel=1e-6, abs=1e-3)
    assert sides.least_std == pytest.approx(np.sqrt(noise * (lower**2).sum(axis=1)), rel=1e-6)


def test_intervals_hold_the_sums_of_all_values_query_by_query() -> None:
    """Three records far above all others are left out in about half of the releases."""
    found, amounts = found_for(ln.PureDP(1)), np.concatenate([np.clip(amounts_of(20_000), 1, 400), np.full(3, 3500)])
    buckets, made = sums.measured(found)
    runs = simulations(made, table_of(amounts), 150, seed=4)
    choices = buckets.choices(Expanded.of(runs[0], None).covariance)
    exact = np.concatenate([np.cumsum(sums_of(amounts)), sums_of(amounts)])
    times, once, half = interval_multiplier(made.noise, 0.95), interval_multiplier(made.noise, 0.9), 0.5 / made.grid
    stops, inside, without = set(), [], []
    for observation in runs:
        kept = choices.kept(Expanded.of(observation, None).counts)
        stops.add(kept.stop)
        answers = [LeftOut.of(observation, kept.first, kept.stop, kept.losses).estimate(product) for product in ASKED]
        apart = exact - np.concatenate([one.values for one in answers])
        for seen, each in ((inside, answers), (without, [replace(one, sides=None) for one in answers])):
            below, above = (np.concatenate(side) for side in zip(*(one.reaches(times, once, half) for one in each), strict=True))
            seen.append((-below <= apart) & (apart <= above))
    assert len(stops) > 1
    assert np.mean(inside, axis=0).min() > 0.87  # 0.95 less four standard errors
    assert np.mean(without, axis=0).min() < 0.8


def test_intervals_count_for_as_much_as_their_upper_ends_allow() -> None:
    """By hand, over all intervals of six cells of which some are asked for twice; other queries keep their own weights."""
    intervals = np.array([[float(low <= cell <= high) for cell in range(6)] for low in range(6) for high in range(low, 6)])
    asked = np.concatenate([intervals, intervals[::4]])
    weights = np.array([25.0, 16.0, 9.0, 4.0, 2.0, 1.0])
    last = 5 - np.argmax(asked[:, ::-1], axis=1)
    assert weighted_by_ends(asked.T @ asked, weights) == pytest.approx(asked.T @ (weights[last][:, None] * asked))
    others = np.array([[1.0, 0.0, 1.0, 0.0, 0.0, 1.0]])
    assert weighted_by_ends(others.T @ others, weights) is not None
    assert (weighted_by_ends(others.T @ others, weights) == others.T @ others).all()


def test_a_stop_is_chosen_anew_without_what_lies_above() -> None:
    """Queries reach across buckets: what lies above blurs those below until it is taken for nothing."""
    long = ln.Domain(pay=ln.Bins(0, 4000, 80, closed="right"), measures={"wages": ln.Measure("pay", 0, 4000)})
    buckets, made = sums.measured(found_for(ln.PureDP("1/10"), ln.queries(long, pay="prefix", sum="wages")))
    amounts = np.minimum(amounts_of(20_000), 700)
    runs = simulations(made, Table(long, {"pay": -(-amounts // 50) - 1}, {"wages": amounts}), 20, seed=1)
    full = [LeftOut.of(one, 0, 80, ()).full for one in runs]
    choices = buckets.choices(full[0].covariance)
    enough = int(np.searchsorted(buckets.stops[buckets.ends - 1], 14))
    within, alone = choices.stops[enough].noise, choices.stops[-1].noise[: enough + 1]
    assert (within <= alone * (1 + 1e-9)).all()
    assert within[-1] < 0.99 * alone[-1]
    stops = sorted(choices.kept(one.counts).stop for one in full)
    assert buckets.stops[buckets.ends[enough - 1] - 1] <= stops[10] <= buckets.stops[buckets.ends[enough] - 1]
