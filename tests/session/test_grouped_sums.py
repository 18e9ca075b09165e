"""Sums by groups in buckets under a threshold: exact privacy, noise known given what is kept, what is kept, and what intervals cover."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._accounting import Privacy
from leastnoise._accuracy import interval_multiplier
from leastnoise._check import InputError
from leastnoise._estimate import ByGroup, measured_by_group
from leastnoise._kernel import SeededEntropy, UnpaidSeries
from leastnoise._linop import dense
from leastnoise._mechanisms import _sums as sums
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._planner import candidate_cells
from leastnoise._session import outcome_from_json
from leastnoise._table import Table
from mechanisms.running import run, written
from simulated import simulations

pytestmark = pytest.mark.usefixtures("kept_plans")

GROUPS = 8
BUDGETS = [ln.PureDP("1/5"), ln.ZCDP("1/100"), ln.ApproxDP("1/2", "1/1000000")]
DOMAIN = ln.Domain(
    place=[f"p{one}" for one in range(GROUPS)],
    pay=ln.Edges([0, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800], closed="right"),
    sex=["F", "M"],
    measures={"wages": ln.Measure("pay", 0, 12_800)},
)
EDGES = np.array(DOMAIN.kind("pay").edges[1:], dtype=np.int64)
ASKED = ln.queries(DOMAIN, place="identity", sum="wages")


def people(count: int, most: int = 12_800, seed: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Groups of sizes like 1, 1/2, 1/3, and amounts."""
    random = np.random.default_rng(seed)
    shares = np.cumsum(1 / np.arange(1, GROUPS + 1))
    amounts = np.clip(np.rint(random.lognormal(5.0, 0.8, count)), 1, most).astype(np.int64)
    return np.searchsorted(shares / shares[-1], random.random(count)), amounts


def table_of(place: np.ndarray, amounts: np.ndarray) -> Table:
    return Table(DOMAIN, {"place": place, "pay": np.searchsorted(EDGES, amounts), "sex": amounts % 2}, {"wages": amounts})


def found_for(budget: object, asked: ln.Workload = ASKED) -> sums.Setting:
    return sums.setting(asked, Privacy(budget))  # type: ignore[arg-type]


def released(table: Table, budget: object, seed: int) -> tuple[ByGroup, dict[str, object]]:
    plan = found_for(budget).plan
    series = UnpaidSeries(terms_of(plan), table, SeededEntropy(seed))
    outcome = mechanism_of(plan).ready(plan)(series)
    assert str(series.left()) == "nothing"
    estimator = outcome.estimator()
    assert isinstance(estimator, ByGroup)
    return estimator, outcome.finding.facts()


@pytest.mark.parametrize("kind", [ln.Bins(0, 40, 8, closed="right"), ln.Edges([0, 1, 10, 100, 1000], closed="right")])
def test_no_record_changes_the_sums_by_more_than_is_paid(kind: object) -> None:
    """By brute force, under every threshold: every cell, and in it every value that changes a measured sum most."""
    domain = ln.Domain(sex=["F", "M"], pay=kind, measures={"wages": ln.Measure("pay", 0, int(kind.edges[-1]))})  # type: ignore[attr-defined]
    epsilon, edges = Fraction(1, 3), [int(one) for one in kind.edges[1:]]  # type: ignore[attr-defined]
    found = found_for(ln.PureDP(epsilon), ln.queries(domain, sex="identity", sum="wages"))
    for threshold in found.edges[candidate_cells(found.edges)].tolist():
        (block,) = sums.under(found, threshold).measurements.blocks
        along = block.factors[1]
        matrix, limits = dense(along.operator), block.limits
        assert limits is not None
        lost = [
            sum(
                Fraction(int(abs(entry)) * min(value, int(limits.values[cell])) * int(weight)) / block.scale
                for entry, weight in zip(matrix[:, cell], along.weights, strict=True)
            )
            for cell, upper in enumerate(edges)
            for value in (upper, edges[-1])
        ]
        assert Fraction(98, 100) * epsilon * Fraction(9, 10) < max(lost) <= epsilon * Fraction(9, 10)


@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_is_exact_given_what_is_kept(budget: object) -> None:
    found, (place, amounts) = found_for(budget), people(3000)
    made = sums.under(found, 1600)
    kept = np.arange(GROUPS) % (len(made.buckets.ends) + 1)
    bucket = np.searchsorted(made.buckets.starts, np.searchsorted(EDGES, amounts), side="right") - 1
    right = np.bincount(place, np.minimum(amounts, 1600) * (bucket < kept[place]), GROUPS)
    scaled = []
    for observation in simulations(made.measurements, table_of(place, amounts), 200, seed=0):
        answer = ByGroup.of(observation, "pay", kept, np.zeros(GROUPS)).estimate(ASKED.products[0])
        assert (answer.values[kept == 0] == 0).all()
        assert answer.noise_std[kept == 0] == pytest.approx(np.sqrt((made.noise**2).sum()))
        scaled.append(((answer.values - right) / answer.noise_std)[kept > 0])
    squares = np.square(scaled)
    assert (abs(squares.mean(axis=0) - 1) < 4.5 * squares.std(axis=0) / np.sqrt(200)).all()
    assert squares.mean() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("budget", [ln.PureDP("1/50"), ln.PureDP("1/2"), ln.ZCDP("1/100")], ids=str)
def test_intervals_cover_the_sums_of_values_cut_at_the_threshold(budget: object) -> None:
    place, amounts = people(4000)
    found, table, inside = found_for(budget), table_of(place, amounts), []
    plan, noise = found.plan, found.noise
    ready, times = mechanism_of(plan).ready(plan), interval_multiplier(noise, 0.95)
    once = interval_multiplier(noise, 0.9)
    for seed in range(150):
        outcome = ready(UnpaidSeries(terms_of(plan), table, SeededEntropy(seed)))
        answer = outcome.estimator().estimate(ASKED.products[0])
        exact = np.bincount(place, np.minimum(amounts, outcome.finding.facts()["threshold"]), GROUPS)
        below, above = answer.reaches(times, once, 0.0)
        inside.append((answer.values - below <= exact) & (exact <= answer.values + above))
    shares = np.mean(inside, axis=0)
    assert shares.mean() > 0.93
    assert shares.min() > 0.88


def test_a_maximum_far_above_all_values_does_no_harm() -> None:
    """Noise in the counts is taken for rich rows now and then, and one threshold for all groups is then far too high."""
    place, amounts = people(5000, 800)
    ends = sorted({int(80 * 1000 ** (one / 59)) for one in range(60)})
    domain = ln.Domain(
        place=DOMAIN.kind("place"), pay=ln.Edges([0, *ends], closed="right"), measures={"wages": ln.Measure("pay", 0, ends[-1])}
    )
    asked = ln.queries(domain, place="identity", sum="wages")
    table = Table(domain, {"place": place, "pay": np.searchsorted(ends, amounts)}, {"wages": amounts})
    setting = sums.setting(asked, Privacy(ln.PureDP("1/10")))
    ready, truth = mechanism_of(setting.plan).ready(setting.plan), np.bincount(place, amounts, GROUPS)
    buckets, cut = [], []
    for seed in range(60):
        outcome = ready(UnpaidSeries(terms_of(setting.plan), table, SeededEntropy(seed)))
        buckets.append(outcome.estimator().estimate(asked.products[0]).values - truth)
        threshold = outcome.finding.facts()["threshold"]
        cut.append(
            np.bincount(place, np.minimum(amounts, threshold), GROUPS)
            - truth
            + np.random.default_rng(seed).laplace(0, threshold / 0.09, GROUPS)
        )
    apart = [float(np.sqrt(np.mean(np.square(errors)))) for errors in (buckets, cut)]
    assert apart[0] < 0.8 * apart[1], "without buckets under the threshold"
    assert apart[0] < 20_000  # 800 over nine tenths of the budget is 12,600


def test_small_groups_keep_less_and_one_that_is_different_keeps_its_own() -> None:
    place, amounts = people(20_000)
    poor = np.where(place == 0, amounts, np.minimum(amounts, 100))
    for seed in range(5):
        _, facts = released(table_of(place, amounts), ln.PureDP("1/50"), seed)
        kept = np.array(facts["kept"])
        assert kept[0] >= kept[4:].max()
        assert kept[0] > 0
        _, facts = released(table_of(place, poor), ln.PureDP(1), seed)
        assert np.array(facts["kept"])[0] == np.max(facts["kept"])  # type: ignore[arg-type]


def test_nobody_and_one_row_are_released() -> None:
    for count in (0, 1):
        for seed in range(5):
            estimator, _ = released(table_of(*people(count)), ln.PureDP(1), seed)
            answer = estimator.estimate(ASKED.products[0])
            assert (answer.noise_std > 0).all()
            assert np.isfinite(answer.std).all()


def test_the_total_and_tables_of_several_attributes_are_of_this_kind() -> None:
    place, amounts = people(20_000)
    for asked, shape in (
        (ln.queries(DOMAIN, sum="wages"), ()),
        (ln.queries(DOMAIN, place="identity", sex="identity", sum="wages"), (GROUPS, 2)),
    ):
        plan = ln.plan(asked, ln.PureDP(2), strategy="truncated_sums")
        assert [step["step"] for step in plan.details["steps"]] == ["tail", "groups"]
        outcome = run(plan, table_of(place, amounts), 3)
        answer = outcome.estimator().estimate(asked.products[0])
        exact = np.zeros((GROUPS, 2))
        np.add.at(exact, (place, amounts % 2), np.minimum(amounts, outcome.finding.facts()["threshold"]))
        right = exact if shape else exact.sum()
        assert answer.values.shape == shape
        assert (np.abs(answer.values - right) < 6 * np.hypot(answer.noise_std, answer.approximation_std)).all()


def test_the_buckets_are_read_wherever_the_number_stands() -> None:
    """Groups before the number and behind it, as the domain has them."""
    found = found_for(ln.PureDP(1000), ln.queries(DOMAIN, place="identity", sex="identity", sum="wages"))
    place, amounts = people(500)
    made = sums.under(found, 12_800)
    (observation,) = simulations(made.measurements, table_of(place, amounts), 1, seed=1)
    values, noise = measured_by_group(observation, "pay")
    bucket = np.searchsorted(made.buckets.starts, np.searchsorted(EDGES, amounts), side="right") - 1
    exact = np.zeros((GROUPS, 2, len(noise)))
    np.add.at(exact, (place, amounts % 2, bucket), amounts)
    assert (np.abs(values - exact) < 12 * noise).all()


def test_the_release_by_name(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    place, amounts = people(5000)
    frame = pandas.DataFrame({"place": np.array(DOMAIN.kind("place").labels)[place], "pay": amounts, "sex": "F"})
    plan = ln.plan(ASKED, ln.PureDP(1), strategy="truncated_sums")
    release = ln.release(plan, frame, ledger=tmp_path / "people.ledger", out=tmp_path / "out", dataset="people")
    assert ln.Ledger.open(tmp_path / "people.ledger").left().epsilon == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["plan"]["outcome"]["regime"] == "grouped"
    assert len(manifest["plan"]["outcome"]["kept"]) == GROUPS
    said = " ".join(manifest["intervals"]["does_not_cover"])
    assert "were counted as" in said
    assert "Nothing was added back" in said
    (table,) = release.tables
    assert table.approximation_std is not None
    exact = np.bincount(place, amounts, GROUPS)
    assert (np.abs(table.answer - exact) < 6 * np.hypot(table.noise_std, table.approximation_std)).all()
    again = ln.read_release(tmp_path / "out")
    assert (again.tables[0].answer == table.answer).all()
    assert (again.tables[0].high == table.high).all()


DAMAGED = {
    "kept": [[0] * (GROUPS - 1), [99] * GROUPS, [-1] * GROUPS, [2**70] * GROUPS, ["1"] * GROUPS, [1.5] * GROUPS, 3, None],
    "missing": [[1.0] * (GROUPS - 1), [-1.0] * GROUPS, ["1"] * GROUPS, [None] * GROUPS, [10**400] * GROUPS, [[1.0] * GROUPS], 3, None],
    "threshold": [5, 0, -7, "800", 1.5, 10**30, None],
    "estimated_loss": [-1.0, "1", 10**400, None],
    "measure": ["others", 3],
    "attribute": ["sex", "place", "others"],
}


@pytest.mark.parametrize(("name", "found"), [(name, one) for name, some in DAMAGED.items() for one in some])
def test_what_no_release_has_found_is_refused_when_it_is_read(name: str, found: object) -> None:
    plan = found_for(ln.PureDP(1)).plan
    value = written(run(plan, table_of(*people(200)), 5))
    outcome_from_json(plan.to_json(), json.dumps(value))
    value["outcome"] = {**value["outcome"], name: found}
    with pytest.raises(InputError, match="This is not an observation, or a damaged one"):
        outcome_from_json(plan.to_json(), json.dumps(value))


def test_a_budget_without_noise_is_refused_before_payment() -> None:
    plan = found_for(ln.PureDP(10**6)).plan
    with pytest.raises(InputError, match="The budget is so large that the noise of pay vanishes"):
        mechanism_of(plan).ready(plan)


def test_other_workloads_are_measured_otherwise() -> None:
    by_pay = ln.queries(DOMAIN, place="identity", pay="prefix", sum="wages")
    two = ASKED + ln.queries(DOMAIN, sex="identity", sum="wages")
    for asked in (by_pay, two):
        steps = sums.setting(asked, Privacy(ln.PureDP(1))).plan.details["steps"]
        assert [step["step"] for step in steps] == ["tail", "sums"]
    estimator, _ = released(table_of(*people(100)), ln.PureDP(1), 0)
    with pytest.raises(InputError, match="Sums were measured by place alone"):
        estimator.estimate(two.products[1])
