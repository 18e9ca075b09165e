"""Sums cut at a private threshold: one payment for both steps, error bars that cover the noise given the threshold, and every refusal."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._accounting import Privacy
from leastnoise._check import InputError, one_of
from leastnoise._estimate import Estimate
from leastnoise._estimate._truncated import Truncated
from leastnoise._kernel import SeededEntropy, Series, UnpaidSeries, simulate
from leastnoise._mechanisms import BY_NAME, terms_of
from leastnoise._mechanisms import _sums as sums
from leastnoise._plan import Plan
from leastnoise._planner import PLANNERS
from leastnoise._table import Table
from simulated import simulations

pytestmark = pytest.mark.usefixtures("kept_plans")

DOMAIN = ln.Domain(sex=["F", "M"], pay=ln.Bins(0, 4000, 80, closed="right"), measures={"wages": ln.Measure("pay", 0, 4000)})
RNG = np.random.default_rng(6)
ROWS = 3000
AMOUNTS = np.clip(np.rint(RNG.lognormal(5.5, 0.9, ROWS)), 1, 4000).astype(np.int64)
SEX = RNG.integers(0, 2, ROWS)
CELLS = -(-AMOUNTS // 50) - 1
TABLE = Table(DOMAIN, {"sex": SEX, "pay": CELLS}, {"wages": AMOUNTS})
BY_SEX = ln.queries(DOMAIN, sex="identity", pay="prefix", sum="wages")


def carried_out(workload: ln.Workload, budget: object, seed: int) -> tuple[Truncated, dict[str, object], Series]:
    plan = sums.setting(workload, Privacy(budget)).plan  # type: ignore[arg-type]
    series = UnpaidSeries(terms_of(plan), TABLE, SeededEntropy(seed))
    outcome = sums.TruncatedSums().ready(plan)(series)
    found = outcome.estimator()
    assert isinstance(found, Truncated)
    return found, outcome.finding.facts(), series


def cut_sums(threshold: int) -> np.ndarray:
    """The sums by sex up to each edge of the amounts cut at the threshold."""
    found = np.zeros((2, 80))
    np.add.at(found, (SEX, CELLS), np.minimum(AMOUNTS, np.minimum((CELLS + 1) * 50, threshold)))
    return np.cumsum(found, axis=1)


@pytest.mark.parametrize("budget", [ln.PureDP("1/5"), ln.ZCDP("1/100"), ln.ApproxDP("1/2", "1/1000000")])
def test_error_bars_cover_the_noise_given_the_threshold(budget: object) -> None:
    product = BY_SEX.products[0]
    first, facts, series = carried_out(BY_SEX, budget, 0)
    assert str(series.left()) == "nothing"
    threshold = int(facts["threshold"])  # type: ignore[call-overload]
    setting = sums.setting(BY_SEX, Privacy(budget))  # type: ignore[arg-type]
    plan = sums.sums(setting, threshold)
    estimate = Estimate(simulate(plan, TABLE, SeededEntropy(1)))
    assert estimate.estimate(product).noise_std == pytest.approx(first.estimate(product).noise_std)
    scaled = []
    for observation in simulations(plan, TABLE, 150, seed=0):
        answers = estimate.like(observation).values(product)
        scaled.append((answers - cut_sums(threshold)) / estimate.estimate(product).noise_std)
    squares = np.mean(np.square(scaled), axis=(1, 2))
    # Each of 150 releases gives a mean square of about 1; they vary because answers of one release are alike.
    assert abs(squares.mean() - 1) < 4.5 * squares.std() / np.sqrt(150)
    assert np.mean(np.abs(scaled) < 2.2) > 0.93


def test_more_budget_cuts_higher_and_the_loss_is_estimated() -> None:
    asked = ln.queries(DOMAIN, sum="wages") + ln.queries(DOMAIN, sex="identity", sum="wages")
    found = {}
    for epsilon in ("1/50", "1", "40"):
        runs = [carried_out(asked, ln.PureDP(epsilon), seed) for seed in range(5)]
        found[epsilon] = np.median([int(facts["threshold"]) for _, facts, _ in runs])  # type: ignore[call-overload]
    assert found["1/50"] < found["1"] < found["40"]
    made, facts, _ = carried_out(asked, ln.PureDP("1"), 3)
    exact = np.maximum(AMOUNTS - int(facts["threshold"]), 0).sum()  # type: ignore[call-overload]
    # Counts of the tail have noise of 14 records; what lies above the threshold is a matter of some such numbers times up to 2000.
    assert made.losses(asked.products[0]) == pytest.approx(exact, abs=60_000)
    assert (made.estimate(asked.products[0]).approximation_std == np.abs(made.losses(asked.products[0]))).all()


def test_groups_share_the_loss() -> None:
    made, facts, _ = carried_out(BY_SEX, ln.PureDP("1"), 3)
    grouped = made.losses(BY_SEX.products[0])
    assert grouped.shape == (2, 80)
    assert grouped[:, -1].sum() == pytest.approx(float(facts["estimated_loss"]))  # type: ignore[arg-type]
    assert (np.diff(grouped, axis=1) >= 0).all()


def test_groups_without_the_number_have_one_limit_a_row() -> None:
    asked = ln.queries(DOMAIN, sex="identity", sum="wages") + ln.queries(DOMAIN, sum="wages")
    made, facts, _ = carried_out(asked, ln.PureDP(5), 1)
    threshold = int(facts["threshold"])  # type: ignore[call-overload]
    assert made.estimate(asked.products[0]).values == pytest.approx(
        cut_sums(threshold)[:, -1], abs=6 * made.estimate(asked.products[0]).noise_std.max()
    )
    assert made.losses(asked.products[0]).shape == (2,)


def test_the_release_by_name(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame({"sex": np.array(["F", "M"])[SEX], "pay": AMOUNTS})
    plan = ln.plan(BY_SEX, ln.PureDP(1), strategy="truncated_sums")
    release = ln.release(plan, people, ledger=tmp_path / "people.ledger", out=tmp_path / "out", dataset="people")
    ledger = ln.Ledger.open(tmp_path / "people.ledger")
    assert ledger.left().epsilon == 0
    assert len(ledger.entries()) == 1
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["plan"]["outcome"]["threshold"] <= 4000
    said = " ".join(manifest["intervals"]["does_not_cover"])
    assert "were counted as" in said
    assert "Nothing was added back" in said
    table = release.tables["q1"]
    assert table.approximation_std is not None
    exact = cut_sums(4000)
    apart = np.abs(table.answer.reshape(2, 80) - exact)
    assert (apart < 6 * table.noise_std.reshape(2, 80) + 4 * table.approximation_std.reshape(2, 80) + 3000).all()


def test_sums_by_group_read_the_number_that_nobody_asks_for() -> None:
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame({"sex": np.array(["F", "M"])[SEX], "pay": AMOUNTS})
    plan = ln.plan(ln.queries(DOMAIN, sex="identity", sum="wages"), ln.PureDP(5), strategy="truncated_sums")
    assert plan.used() == (("sex", "pay"), ("wages",))
    (table,) = ln.release(plan, people, seed=1).tables
    assert table.approximation_std is not None
    exact = np.bincount(SEX, AMOUNTS)
    assert (np.abs(table.answer - exact) < 6 * table.noise_std + 4 * table.approximation_std + 3000).all()


def test_a_plan_from_a_file_is_checked_before_it_is_paid() -> None:
    plan = sums.setting(BY_SEX, Privacy(ln.PureDP(1))).plan
    assert sums.setting_of(Plan.from_json(plan.to_json())).attribute == "pay"
    with pytest.raises(InputError, match=r"The details of the plan are not those of this version\. Make the plan again; nothing was spent"):
        sums.setting_of(replace(plan, details={**plan.details, "attribute": "sex"}))
    with pytest.raises(InputError, match="not those of this version"):
        sums.setting_of(replace(plan, strategy="dawa"))


def test_units_and_edges_of_the_number_give_the_limits() -> None:
    cents = ln.Domain(pay=ln.Bins(0, 10, 4), measures={"wages": ln.Measure("pay", 0, 8, unit="0.01")})
    setting = sums.setting(ln.queries(cents, pay="prefix", sum="wages"), Privacy(ln.PureDP(1)))
    assert setting.edges.tolist() == [250, 500, 750, 800]
    clipped = ln.Domain(pay=ln.Integers(0, 3, outside="clip"), measures={"wages": ln.Measure("pay", 0, 9)})
    setting = sums.setting(ln.queries(clipped, sum="wages"), Privacy(ln.PureDP(1)))
    assert setting.edges.tolist() == [1, 1, 2, 9]


def test_refusals_are_read() -> None:
    pure = Privacy(ln.PureDP(1))
    counts = ln.queries(DOMAIN, pay="prefix")
    with pytest.raises(InputError, match="truncated_sums answers sums of one measure; this workload asks for counts"):
        sums.setting(counts, pure)
    with pytest.raises(InputError, match="this workload asks for sums of wages and counts"):
        sums.setting(BY_SEX + counts, pure)
    without = ln.Domain(sex=["F", "M"], measures={"wages": ln.Measure("pay", 0, 4000)})
    with pytest.raises(InputError, match="the domain must have the attribute pay as Integers or Bins"):
        sums.setting(ln.queries(without, sex="identity", sum="wages"), pure)
    negative = ln.Domain(pay=ln.Integers(-3, 3), measures={"wages": ln.Measure("pay", -3, 3)})
    with pytest.raises(InputError, match="wages must not be negative; its lower bound is -3 units"):
        sums.setting(ln.queries(negative, pay="prefix", sum="wages"), pure)
    wide = ln.Domain(pay=ln.Bins(0, 2 * 10**7, 1000), measures={"wages": ln.Measure("pay", 0, 2 * 10**7, unit="0.01")})
    with pytest.raises(InputError, match="The public bounds are too large for exact arithmetic: up to 2000000000 units"):
        sums.setting(ln.queries(wide, pay="prefix", sum="wages"), pure)
    long = ln.Domain(sex=["F", "M"], pay=ln.Integers(0, 1999), measures={"wages": ln.Measure("pay", 0, 1999)})
    with pytest.raises(InputError, match="Sums along pay are answered for at most 1024 cells that queries tell apart; it has 2000 cells"):
        sums.setting(ln.queries(long, sex="identity", pay="prefix", sum="wages"), pure)


@pytest.mark.parametrize("name", ["bucketed_sums", "grouped_sums"])
def test_names_of_earlier_versions_name_the_one_there_is(name: str) -> None:
    with pytest.raises(InputError, match="Did you mean 'truncated_sums'"):
        one_of("[plan] strategy", name, ("auto", *PLANNERS, *BY_NAME))


def some_ranges(seed: int, top: int) -> object:
    """Ranges that leave cells out, or overlap."""
    ends = np.sort(np.random.default_rng(seed).integers(0, top + 1, (int(1 + seed % 3), 2)), axis=1)
    return ln.ranges([(int(low), int(high)) for low, high in ends])


WITH_PLANS = [
    # prefix sums of the number beside sums by group, whose joint table gains nothing
    (11, lambda d: ln.queries(d, pay="prefix", sum="wages") + ln.queries(d, group="identity", sum="wages")),
    (11, lambda d: ln.queries(d, group="identity", pay="all_ranges", sum="wages") + ln.queries(d, sum="wages")),
    (60_000, lambda d: ln.queries(d, group="identity", sum="wages") + ln.queries(d, sum="wages")),
    *[(30, lambda d, s=s: ln.queries(d, group="identity", pay=some_ranges(s, 30), sum="wages")) for s in range(5)],
    (30, lambda d: ln.queries(d, pay=some_ranges(4, 30), sum="wages") + ln.queries(d, group="identity", sum="wages")),
]


@pytest.mark.parametrize(
    ("budget", "top", "ask"), [(budget, *one) for budget, one in zip(cycle([ln.PureDP(1), ln.ZCDP("1/2")]), WITH_PLANS)]
)
def test_every_threshold_that_may_be_chosen_has_a_plan(budget: object, top: int, ask: Callable[[ln.Domain], ln.Workload]) -> None:
    """What is paid must not fail afterwards."""
    domain = ln.Domain(pay=ln.Integers(0, top), group=["a", "b", "c"], measures={"wages": ln.Measure("pay", 0, top)})
    setting = sums.setting(ask(domain), Privacy(budget))  # type: ignore[arg-type]
    places = setting.candidates
    for high in (-1e9, 0.0, 1e9):
        choice = sums.chooser(setting)(np.full(len(places) - 1, high))
        assert np.isfinite(choice.noise).all()
        assert (np.diff(choice.noise) >= -1e-9 * choice.noise[1:]).all()
        assert choice.noise[0] > 0
    for cell in places:
        assert sums.sums(setting, int(setting.edges[cell])).blocks


@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP("1/2")], ids=["pure", "rho"])
def test_sums_by_group_of_a_number_with_many_cells_are_released(budget: object) -> None:
    """No cell is told from another: the noise is that of the threshold, whatever the number of cells."""
    domain = ln.Domain(pay=ln.Integers(0, 59_999), group=["a", "b", "c"], measures={"wages": ln.Measure("pay", 0, 59_999)})
    asked = ln.queries(domain, group="identity", sum="wages") + ln.queries(domain, sum="wages")
    plan = sums.setting(asked, Privacy(budget)).plan  # type: ignore[arg-type]
    amounts = np.random.default_rng(1).integers(0, 3000, 4000)
    table = Table(domain, {"pay": amounts.astype(np.int32), "group": amounts % 3}, {"wages": amounts})
    outcome = sums.TruncatedSums().ready(plan)(UnpaidSeries(terms_of(plan), table, SeededEntropy(2)))
    product = plan.workload.products[0]
    found = outcome.estimator().estimate(product)
    truth = np.bincount(amounts % 3, amounts, 3)
    assert (np.abs(found.values - truth) < 6 * np.hypot(found.noise_std, found.approximation_std)).all()
    assert int(outcome.finding.facts()["threshold"]) < 30_000


def test_a_table_of_too_many_cells_is_planned_where_what_is_asked_of_it_is_little() -> None:
    domain = ln.Domain(pay=ln.Integers(0, 59_999), group=ln.Coded(100_000), measures={"wages": ln.Measure("pay", 0, 59_999)})
    asked = ln.queries(domain, group="identity", sum="wages")
    setting = sums.setting(asked, Privacy(ln.PureDP(1)))
    places = setting.candidates
    assert sums.chooser(setting)(np.zeros(len(places) - 1)).threshold == setting.edges[places[0]]
    assert sums.sums(setting, 500).blocks


def test_what_no_release_could_plan_is_refused_when_it_is_planned() -> None:
    domain = ln.Domain(pay=ln.Integers(0, 4999), measures={"wages": ln.Measure("pay", 0, 4999)})
    asked = ln.queries(domain, pay=ln.ranges([(1, 40), (20, 90)]), sum="wages")
    with pytest.raises(InputError, match="at most 4096 cells"):
        sums.setting(asked, Privacy(ln.PureDP(1)))
