"""DAWA on two attributes: from the command line to a release that is read again, error bars by simulation, refusals."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._accuracy import block_variance
from leastnoise._check import BudgetError, InputError
from leastnoise._domain import Domain, Integers
from leastnoise._estimate import Grid, Outcome
from leastnoise._kernel import Ledger, SeededEntropy
from leastnoise._linop import dense
from leastnoise._measurements import cost
from leastnoise._mechanisms import _dawa as dawa
from leastnoise._plan import Plan
from leastnoise._planning import plan
from leastnoise._session import outcome_from_json, release
from leastnoise._session import read_release as read
from leastnoise._table import Table
from leastnoise._workload import Product, Workload, all_ranges, marginals, prefix, queries, ranges
from mechanisms.running import regime, run, runs, written
from session.test_dawa import quick_plans  # noqa: F401 - a fixture of every test here too

SHAPE = (11, 6)
DOMAIN = Domain(age=Integers(0, SHAPE[0] - 1), sex=["F", "M"], hours=Integers(0, SHAPE[1] - 1))
WORKLOAD = (
    queries(DOMAIN, age=prefix(), hours=all_ranges())
    + queries(DOMAIN, age=ranges([(0, 4), (3, 10)]), hours="identity", weight=2)
    + queries(DOMAIN, hours="prefix")
    + queries(DOMAIN, age="identity")
    + queries(DOMAIN)
)
CELLS = np.zeros(SHAPE, dtype=np.int64)
CELLS[:5, :3] = 300
CELLS[7:, 4:] = 40
WAYS = [("fixed", 0), ("blocks", 2), ("blocks", 16)]
PRIVACY = [Privacy(PureDP("1/3")), Privacy(PureDP("1/2"), neighbours="replace"), Privacy(PureDP("1/2"), unit_column="id", max_rows=3)]


def rows_of(cells: np.ndarray) -> dict[str, np.ndarray]:
    age, hours = np.repeat(np.indices(cells.shape).reshape(2, -1), cells.reshape(-1), axis=1)
    return {"age": age, "sex": np.zeros(len(age), dtype=np.int64), "hours": hours}


def truth_of(product: Product, cells: np.ndarray) -> np.ndarray:
    return (matrix_of(product) @ cells.reshape(-1)).reshape(product.shape)


def matrix_of(product: Product) -> np.ndarray:
    known = dict(zip(product.attributes, product.operators, strict=True))
    sides = [dense(known[name]) if name in known else np.ones((1, size)) for name, size in zip(("age", "hours"), SHAPE, strict=True)]
    return np.kron(*sides)


def observed(privacy: Privacy, way: tuple[str, int], cells: np.ndarray, seeds: range) -> list[Outcome]:
    """One way to measure, with all that the first choice leaves."""
    made = plan(WORKLOAD, privacy, strategy="dawa")
    table = Table(DOMAIN, rows_of(cells), unit_column=privacy.unit_column, max_rows=privacy.max_rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dawa, "plane_regime", lambda *_, **__: way)
        once = runs(made, table)
        return [once(SeededEntropy(seed)) for seed in seeds]


# --- the whole path ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("privacy", PRIVACY, ids=["records", "replace", "units"])
def test_every_way_stays_within_its_budget_and_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: tuple[str, int], privacy: Privacy
) -> None:
    import polars as pl

    made = plan(WORKLOAD, privacy, strategy="dawa")
    assert Plan.from_json(made.to_json()) == made
    monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: way)
    rows = {"age": rows_of(CELLS)["age"], "sex": ["F"] * int(CELLS.sum()), "hours": rows_of(CELLS)["hours"]}
    if privacy.unit_column:
        rows["id"] = np.arange(int(CELLS.sum())) // privacy.max_rows
    book = Ledger.create(tmp_path / "people.ledger", "people", privacy)
    out = release(made, pl.DataFrame(rows), ledger=book, out=tmp_path / "out")
    assert out.private
    assert book.left().epsilon == 0
    assert regime(out.outcome) == {"fixed": "independent"}.get(way[0], way[0])
    # What was measured costs, by its integers, what the test left.
    left = privacy.budget.epsilon * Fraction(24, 25)  # type: ignore[union-attr]
    assert float(left) * (1 - 1e-5) <= float(cost(out.measurements).epsilon) <= float(left)  # type: ignore[union-attr]
    for one, other, product in zip(out.tables, read(tmp_path / "out").tables, WORKLOAD, strict=True):
        for name in ("answer", "noise_std", "approximation_std", "low", "high"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        spread = np.sqrt(one.noise_std**2 + one.approximation_std**2)
        assert (np.abs(one.answer - truth_of(product, CELLS)) < 10 * spread + 5).all()
    with pytest.raises(BudgetError):
        release(made, pl.DataFrame(rows), ledger=book)


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (3, 4)])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_few_cells(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], way: tuple[str, int]) -> None:
    monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: way)
    domain = Domain(a=[f"c{i}" for i in range(shape[0])], b=Integers(0, shape[1] - 1))
    asked = queries(domain, a="identity", b="prefix")
    made = plan(asked, PureDP(2), strategy="dawa")
    found = run(made, Table(domain, {"a": [0] * 50, "b": [0] * 50}), 1).estimator()
    for product in asked:
        assert np.isfinite(found.estimate(product).values).all()
        assert (found.estimate(product).noise_std > 0).all()
        assert (found.estimate(product).approximation_std >= 0).all()


# --- error bars --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", PRIVACY[:2], ids=["records", "replace"])
@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_noise_given_the_blocks_is_exact(privacy: Privacy, way: tuple[str, int]) -> None:
    """Dense algebra on what was measured gives the same counts and variances."""
    (outcome,) = observed(privacy, way, CELLS, range(3, 4))
    observation, found = outcome.observation, outcome.estimator()
    rows, weight, values = [], [], []
    for block, value in zip(observation.measurements.blocks, observation.values, strict=True):
        (factor,) = block.factors
        rows.append(dense(factor.operator))
        weight.append(factor.weights**2 / block_variance(observation.measurements, replace(block, factors=())) * np.ones(block.rows))
        if block.factors[0].row_weights is not None:
            scale = float(block.scale) / factor.weights
            weight[-1] = 2 * np.sinh(0.5 / scale) ** 2
        values.append(value / observation.measurements.grid)
    assert isinstance(found, Grid)
    spread, lengths = found, found.areas
    expand = np.zeros((rows[0].shape[1], len(lengths)))
    expand[spread.order, np.repeat(np.arange(len(lengths)), lengths)] = np.repeat(1 / lengths, lengths)
    # Of first blocks in one part only the sum counts.
    part = np.where((expand > 0).T @ rows[0].T > 0, np.arange(len(lengths))[:, None], len(lengths)).min(axis=0)
    joined = (part == np.unique(part)[:, None]).astype(float)
    assert (len(joined) < len(part)) == (way[1] > 4)
    rows[0], values[0], weight[0] = joined @ rows[0], joined @ values[0], 1 / (joined @ (1 / weight[0]))
    matrix, precision = np.concatenate(rows).astype(float), np.concatenate(weight)
    on_blocks = matrix @ expand
    covariance = np.linalg.inv(on_blocks.T @ (precision[:, None] * on_blocks))
    assert np.allclose(spread.counts, covariance @ on_blocks.T @ (precision * np.concatenate(values)), atol=1e-6)
    for product in WORKLOAD:
        asked = matrix_of(product) @ expand
        assert np.allclose(
            found.estimate(product).noise_std.reshape(-1) ** 2, np.einsum("ij,jk,ik->i", asked, covariance, asked), rtol=1e-6
        )


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_intervals_cover(way: tuple[str, int]) -> None:
    """On blocks of unlike counts, 95% intervals hold the truth in at least 93% over 60 releases, at noise of 3 records and more.

    Answers of a release go together; 60 releases of independent noise have a standard error below 1.5%, so that covering exactly 95%
    would fail with probability 0.1 a way; the intervals take the larger quantile and cover about 97%.
    """
    random = np.random.default_rng(4)
    cells = random.poisson(np.where(CELLS > 0, CELLS, 2))
    from leastnoise._release import build

    hit = []
    for outcome in observed(PRIVACY[0], way, cells, range(60)):
        tables = build(outcome).tables
        for table, product in zip(tables, WORKLOAD, strict=True):
            truth = truth_of(product, cells)
            hit.append(((table.low <= truth) & (truth <= table.high)).mean())
    assert np.mean(hit) >= 0.93


FLAT = Domain(a=Integers(0, 31), b=Integers(0, 31))
FLAT_CELLS = np.full((32, 32), 20, dtype=np.int64)
FLAT_CELLS[:8, 16:], FLAT_CELLS[20:22, 3:5] = 3, 150


def on_flat(asked: Workload, seeds: range, epsilon: str = "1/2") -> list[Outcome]:
    rows, columns = np.repeat(np.indices(FLAT_CELLS.shape).reshape(2, -1), FLAT_CELLS.reshape(-1), axis=1)
    once = runs(plan(asked, PureDP(epsilon), strategy="dawa"), Table(FLAT, {"a": rows, "b": columns}))
    return [once(SeededEntropy(seed)) for seed in seeds]


def test_queries_of_few_cells_have_smaller_first_blocks_and_are_shrunk(tmp_path: Path) -> None:
    """By what is asked alone; and outcomes of releases before that are read and answered as they were."""
    pairs = ranges([(first, first + 1) for first in range(0, 31, 5)])
    few = queries(FLAT, a="identity", b="identity") + queries(FLAT, a=pairs, b=pairs)
    for asked, blocks, shrunk in ((few, 128, True), (few + queries(FLAT, a="identity"), 16, False)):
        (outcome,) = on_flat(asked, range(1))
        assert (outcome.finding.facts()["blocks"], outcome.finding.facts()["shrunk"]) == (blocks, shrunk)
        again = outcome_from_json(outcome.plan.to_json(), json.dumps(written(outcome)))
        facts = {name: value for name, value in outcome.finding.facts().items() if name != "shrunk"}
        before = outcome_from_json(outcome.plan.to_json(), json.dumps({**written(outcome), "outcome": facts}))
        values, read, old = (one.estimator().estimate(asked.products[0]).values for one in (outcome, again, before))
        assert np.array_equal(values, read)
        assert np.array_equal(values, old) != shrunk


def test_shrunk_cells_have_less_error_and_intervals_that_cover() -> None:
    """20 releases of an even table with few heavy cells: 0.8 of the squared error, and 95% intervals hold 90% of the heavy ones too."""
    from leastnoise._release import build

    asked = queries(FLAT, a="identity", b="identity")
    outcomes = on_flat(asked, range(20), "1/10")
    squares, inside, heavy = [], [], FLAT_CELLS > 100
    for outcome in outcomes:
        (table,) = build(outcome).tables
        inside.append((table.low <= FLAT_CELLS) & (table.high >= FLAT_CELLS))
        plain = replace(outcome, finding=replace(outcome.finding, shrunk=False)).estimator().estimate(asked.products[0])  # type: ignore[call-arg]
        squares.append([((one - FLAT_CELLS) ** 2).mean() for one in (table.answer, plain.values)])
    shrunk, unshrunk = np.mean(squares, axis=0)
    assert shrunk < 0.8 * unshrunk
    assert np.mean(inside) >= 0.93
    assert np.mean([one[heavy].mean() for one in inside]) >= 0.9


def test_a_round_beyond_the_budget_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: ("blocks", 4))
    fitted = dawa.Setting.fitted
    monkeypatch.setattr(dawa.Setting, "fitted", lambda self, factor, budget: fitted(self, factor, budget.share(2)))
    made = plan(WORKLOAD, PureDP(1), strategy="dawa")
    with pytest.raises(BudgetError, match=r"A step asks for epsilon = 1\.44, but only epsilon = 0\.48"):
        run(made, Table(DOMAIN, rows_of(CELLS)), 1)


# --- what is refused, before anything is paid --------------------------------------------------------------------------------------

LONG = Domain(a=Integers(0, 4999), b=Integers(0, 1))
WIDE = Domain(a=Integers(0, 2047), b=Integers(0, 2047))
FINE = Domain(a=Integers(0, 511), b=Integers(0, 511))
MANY = Domain(a=Integers(0, 63), b=Integers(0, 63))


@pytest.mark.parametrize(
    ("workload", "budget", "strategy", "message"),
    [
        (WORKLOAD, ZCDP(1), "dawa", "dawa on two attributes needs a budget of epsilon alone"),
        (WORKLOAD, ApproxDP(1, "1e-6"), "dawa", "needs a budget of epsilon alone"),
        (WORKLOAD, PureDP(1), "dawa_levels", "dawa_levels answers queries on one attribute"),
        (queries(LONG, a="prefix", b="prefix"), PureDP(1), "dawa", "at most 4096 cells of each"),
        (queries(WIDE, a="prefix", b="prefix"), PureDP(1), "dawa", "1048576 of both together; got 2048 x 2048"),
        (queries(MANY, a=all_ranges(), b=all_ranges()), PureDP(1), "dawa", "at most 1048576 queries a table"),
        (queries(FINE, a="identity", b="identity"), PureDP(1), "dawa", "at most 32768 queries a table of 262144 cells"),
        (marginals(DOMAIN, ways=3), PureDP(1), "dawa", "this workload asks about age and sex and hours"),
    ],
)
def test_other_workloads_and_budgets_are_refused(workload: Workload, budget: Budget, strategy: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(workload, budget, strategy=strategy)


@pytest.fixture(scope="module")
def made() -> Plan:
    found: Plan = plan(WORKLOAD, PureDP("1/4"), strategy="dawa")
    return found


Change = Callable[[Plan], dict[str, object]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: {"details": {**made.details, "steps": []}}, "are not those that this version carries out"),
        (lambda made: {"details": {**made.details, "attributes": ["age", "sex"]}}, "are not those that this version carries out"),
        (lambda made: {"details": {"attributes": ["age", "hours"]}}, "cannot be read"),
        (lambda made: {"privacy": Privacy(ZCDP(1))}, "needs a budget of epsilon alone"),
        (lambda made: {"strategy": "dawa_levels"}, "answers queries on one attribute"),
    ],
)
def test_damaged_plans_are_refused_and_cost_nothing(tmp_path: Path, made: Plan, change: Change, message: str) -> None:
    import polars as pl

    damaged = replace(made, **change(made))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        release(damaged, pl.DataFrame({"age": [1], "sex": ["F"], "hours": [1]}), ledger=tmp_path / "people.ledger")
    assert not (tmp_path / "people.ledger").exists()


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_a_damaged_observation_is_refused(way: tuple[str, int]) -> None:
    (outcome,) = observed(PRIVACY[0], way, CELLS, range(1))
    value = written(outcome)
    for facts in ({**outcome.finding.facts(), "regime": "adaptive"}, {**outcome.finding.facts(), "regime": "quadtree"}, {}):
        with pytest.raises(InputError, match="not an observation, or a damaged one"):
            outcome_from_json(outcome.plan.to_json(), json.dumps({**value, "outcome": facts}))
