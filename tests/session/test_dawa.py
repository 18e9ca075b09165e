"""DAWA by name: the whole path, its payment, and what it refuses; what it loses is in tests/privacy and tests/kernel."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leastnoise._accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._check import BudgetError, InputError
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._estimate import Estimate, joined
from leastnoise._kernel import LeastCost, Ledger, SeededEntropy, UnpaidSeries
from leastnoise._mechanisms import BY_NAME as MECHANISMS
from leastnoise._mechanisms import _dawa as dawa
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._planning import compare, plan
from leastnoise._release import Options
from leastnoise._session import read_release as read
from leastnoise._session import release
from leastnoise._table import Table
from leastnoise._workload import Workload, all_ranges, marginals, queries
from mechanisms.remembered import without_a_search
from mechanisms.running import regime, run


@pytest.fixture(scope="module", autouse=True)
def quick_plans() -> Iterator[None]:
    """What does not look at the data is looked at elsewhere."""
    with pytest.MonkeyPatch.context() as patched:
        without_a_search(patched)
        yield


BUDGETS = [PureDP("1/4"), ZCDP("1/40"), ApproxDP("1/2", "1/1000000")]
SIZE = 60
DOMAIN = Domain(age=Integers(0, SIZE - 1), sex=["F", "M"])
WORKLOAD = queries(DOMAIN, age="prefix") + queries(DOMAIN, age={"ranges": [(0, 9), (5, 40)]}, weight=3) + queries(DOMAIN)


def people(cells: np.ndarray) -> pl.DataFrame:
    ages = np.repeat(np.arange(len(cells)), cells).tolist()
    return pl.DataFrame({"age": ages, "sex": ["F", "M"] * (len(ages) // 2) + ["F"] * (len(ages) % 2)})


CELLS = np.where(np.arange(SIZE) < 30, 200, 0)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_every_regime_stays_within_its_budget_and_answers(monkeypatch: pytest.MonkeyPatch, adaptive: bool, budget: Budget) -> None:
    made = plan(WORKLOAD, budget, strategy="dawa")
    monkeypatch.setattr(dawa, "nearly_empty", lambda *_: adaptive)
    out = release(made, people(CELLS), seed=3)
    assert not out.private
    assert regime(out.outcome) == ("adaptive" if adaptive else "smoothed")
    truth = np.cumsum(CELLS)
    table = out.tables[0]
    spread = np.sqrt(table.noise_std**2 + np.nan_to_num(table.approximation_std) ** 2)
    assert (np.abs(table.answer - truth) < 8 * spread + 5).all()


def test_the_structure_of_the_data_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = LeastCost.draw  # without noise, so that the borders are seen
    monkeypatch.setattr(LeastCost, "draw", lambda self, cells, *rest: exact(replace(self, epsilon=5000), cells, *rest))
    place, random = np.arange(4096), np.random.default_rng(1)
    shapes = {
        "smoothed": random.integers(0, 4000, 4096),
        "smoothed, some structure": np.where(place % 8 == 0, 900, 3),
        "adaptive": np.where(place < 200, random.integers(0, 400, 4096), 0),
        "adaptive, one block": np.where(place < 1024, 40, 0),
    }
    domain = Domain(age=Integers(0, 4095))
    made = plan(queries(domain, age="identity"), PureDP(1), strategy="dawa")
    tables = {name: Table(domain, {"age": np.repeat(place, cells)}) for name, cells in shapes.items()}
    assert {name: regime(run(made, table, 1)) for name, table in tables.items()} == {name: name.partition(",")[0] for name in shapes}


def test_a_plan_that_does_not_tell_the_cells_is_answered_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dawa, "can_be_smoothed", lambda made: made.blocks == ())
    made = plan(WORKLOAD, PureDP("1/4"), strategy="dawa")
    out = release(made, people(CELLS + 200), seed=1)
    assert regime(out.outcome) == "independent"
    assert not np.nan_to_num(out.tables[0].approximation_std).any()


def test_smoothed_answers_have_the_intervals_of_the_plan_that_does_not_look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dawa, "nearly_empty", lambda *_: False)
    made = plan(WORKLOAD, PureDP("1/4"), strategy="dawa")
    out = release(made, people(CELLS), ledger=Ledger.create(tmp_path / "l", "people", Privacy(PureDP("1/4"))), out=tmp_path / "out")
    times, half = out.interval.multiplier, out.interval.half_step
    plain = Estimate(out.outcome.observation)
    for table, again, product in zip(out.tables, read(tmp_path / "out").tables, WORKLOAD, strict=True):
        found = plain.estimate(product)
        assert (table.low == again.low).all()
        np.testing.assert_allclose(table.low, np.minimum(found.values - times * found.noise_std - half, table.answer))
        np.testing.assert_allclose(table.high, np.maximum(found.values + times * found.noise_std + half, table.answer))
    (table,) = out.answer(queries(DOMAIN, age={"ranges": [(7, 9)]}))  # which was not asked for: least squares
    assert table.approximation_std is None
    words = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "the ends of an interval of least squares" in words
    (file,) = (tmp_path / "out" / "answers").glob("q1-*.csv")
    for name in ("noise_std", "approximation_std", "high"):
        assert pl.read_csv(file)[name].to_numpy() == pytest.approx(getattr(out.tables[0], name), rel=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("strategy", dawa.STRATEGIES)
def test_few_cells(size: int, strategy: str) -> None:
    domain = Domain(age=[f"c{place}" for place in range(size)])
    made = plan(queries(domain, age="identity"), PureDP(2), strategy=strategy)
    assert run(made, Table(domain, {"age": [0] * 50}), 1).plan is made


@pytest.mark.parametrize(
    "privacy",
    [Privacy(PureDP("1/2"), neighbours="replace"), Privacy(PureDP("1/2"), unit_column="id", max_rows=3)],
    ids=["replace", "units"],
)
def test_larger_distances_get_more_noise(privacy: Privacy) -> None:
    domain = Domain(age=Integers(0, 15))
    made = plan(queries(domain, age="prefix"), privacy, strategy="dawa")
    table = Table(domain, {"age": [3] * 90}, unit_column=privacy.unit_column, max_rows=privacy.max_rows)
    outcome = run(made, table, 2)
    distance = 2 if privacy.neighbours == "replace" else 3
    assert outcome.finding.facts()["test"]["unit"] == distance * 2.0
    assert outcome.observation.measurements.privacy == privacy


def test_a_step_beyond_the_budget_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(queries(DOMAIN, age="prefix"), PureDP(1), strategy="dawa_levels")
    levels = dawa.levels
    monkeypatch.setattr(dawa, "levels", lambda setting, _: levels(setting, PureDP(1)))
    with pytest.raises(BudgetError, match=r"A step asks for epsilon = 0\.45, but only epsilon = 0 of this release's budget is left"):
        release(made, people(CELLS), seed=1)


# --- what is refused, before anything is paid --------------------------------------------------------------------------------------

THREE = Domain(a=["x", "y"], b=["x", "y"], c=["x", "y"])
SUMS = Domain(age=Integers(0, 9), measures={"pay": Measure("pay", 0, 10)})


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (marginals(THREE, ways=1), "dawa answers queries on one attribute or two; this workload asks about a and b and c"),
        (marginals(DOMAIN, ways=0), "this workload asks about none"),
        (queries(SUMS, age="prefix", sum="pay"), "dawa answers counts; this workload asks for sums"),
    ],
)
def test_other_workloads_are_refused(workload: Workload, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(workload, PureDP(1), strategy="dawa")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fallback": None}, "does not say what it measures without structure"),
        ({"details": {"steps": []}}, "cannot be read"),
        ({"privacy": Privacy(PureDP(9))}, "are not those that this version carries out"),
        ({"mechanism": "rounded_gaussian"}, "are not those that this version carries out"),
    ],
)
def test_damaged_plans_are_refused_and_cost_nothing(tmp_path: Path, change: dict[str, object], message: str) -> None:
    whole = plan(WORKLOAD, PureDP("1/4"), strategy="dawa")
    fields = {"details": {**whole.details, **change}} if "mechanism" in change else change
    made = replace(whole, **fields)  # type: ignore[arg-type]
    ledger = tmp_path / "people.ledger"
    with pytest.raises(InputError, match=message):
        release(made, people(CELLS), ledger=ledger, out=tmp_path / "out")
    assert not ledger.exists()


def test_linear_extras_are_refused(tmp_path: Path) -> None:
    made = plan(WORKLOAD, PureDP("1/4"), strategy="dawa")
    for asked in ({"nnls": True}, {"local_non_negative": True}, {"covariances": ("q1",)}):
        with pytest.raises(InputError, match="cannot be given by the strategy 'dawa', whose answers are no linear estimates"):
            release(made, people(CELLS), ledger=tmp_path / "people.ledger", options=Options(**asked))  # type: ignore[arg-type]
    assert not (tmp_path / "people.ledger").exists()
    out = release(made, people(CELLS), seed=1)
    with pytest.raises(InputError, match="covariances cannot be given"):
        out.covariance("q1")


def test_it_is_not_chosen_by_itself() -> None:
    domain = Domain(age=Integers(0, 7))
    assert not {one.strategy for one in compare(queries(domain, age=all_ranges()), Privacy(PureDP(1)))} & set(MECHANISMS)
    assert plan(queries(domain, age="prefix"), PureDP(1)).strategy not in MECHANISMS


def test_a_plan_that_no_version_makes_any_more_is_refused() -> None:
    """Buckets drawn by the exponential mechanism: such releases are read, and none is made."""
    with pytest.raises(InputError, match="strategy must be one of 'dawa', 'dawa_levels'; got 'dawa_tree'"):
        plan(WORKLOAD, PureDP("1/4"), strategy="dawa_tree")
    stored = replace(plan(WORKLOAD, PureDP("1/4"), strategy="dawa"), strategy="dawa_tree")
    with pytest.raises(InputError, match="are not those that this version carries out"):
        release(stored, people(CELLS), seed=1)


@pytest.mark.parametrize("strategy", ["dawa", "dawa_levels"])
def test_a_budget_too_large_for_both_steps_on_one_grid_is_refused_before_payment(strategy: str) -> None:
    """Under (epsilon, delta) levels need a fine grid, and queries on buckets have large entries."""
    domain, refused = Domain(x=Integers(0, 39)), 0
    table = Table(domain, {"x": np.minimum(np.random.default_rng(0).geometric(0.05, 3000) - 1, 39).astype(np.int32)})
    for size in (1, 10, 100, 1000, 10_000):
        made = plan(queries(domain, x="prefix"), ApproxDP(size, "1/100000"), strategy=strategy)
        try:
            run = mechanism_of(made).ready(made)  # the last that may refuse
        except InputError as error:
            assert "one that leaves more noise" in str(error)  # noqa: PT017 - of some budgets
            refused += 1
            continue
        assert size <= 100
        setting, first, second = dawa.setting_of(made), *map(made.privacy.budget.share, (dawa.FIRST_SHARE, 1 - dawa.FIRST_SHARE))
        for starts in (np.arange(40), np.array([0, 3, 20])):
            buckets = dawa.on_buckets(setting.attributes, setting.asked, starts, setting.noise.norm)
            joined([dawa.levels(setting, first), setting.fitted(buckets, second)], made.privacy)
        run(UnpaidSeries(terms_of(made), table, SeededEntropy(5)))
    assert refused == 2
