"""DAWA on one and two attributes: plans, payment, intervals by simulation, and refusals.

The privacy loss is tested in tests/privacy and tests/trusted/kernel.
"""

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import leastnoise as ln
from leastnoise._error import block_variance
from leastnoise._estimation import AdaptiveGridEstimate, Outcome, join_measurements
from leastnoise._mechanisms import BY_NAME as MECHANISMS
from leastnoise._mechanisms import _dawa as dawa
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._release import build_release
from leastnoise._session import outcome_from_json
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import LeastCost, SeededEntropy, UnpaidSeries
from leastnoise._trusted.linop import dense
from leastnoise._trusted.measurements import cost
from leastnoise._trusted.table import Table
from leastnoise._workload import Product
from mechanisms.remembered import without_a_search
from mechanisms.running import regime, run, runs, written
from session.releasing import report


@pytest.fixture(scope="module", autouse=True)
def quick_plans():
    """Skip the other strategies: they are tested elsewhere."""
    with pytest.MonkeyPatch.context() as patched:
        without_a_search(patched)
        yield


SIZE = 60
DOMAIN = ln.Domain(age=ln.Integers(0, SIZE - 1), sex=["F", "M"]).as_complete()
WORKLOAD = (
    ln.queries(DOMAIN, age="prefix")
    + ln.queries(DOMAIN, age={"ranges": [(0, 9), (5, 40)]}, weight=3)
    + ln.queries(DOMAIN)
)


def people(cells: np.ndarray) -> pl.DataFrame:
    ages = np.repeat(np.arange(len(cells)), cells).tolist()
    return pl.DataFrame(
        {"age": ages, "sex": ["F", "M"] * (len(ages) // 2) + ["F"] * (len(ages) % 2)}
    )


CELLS = np.where(np.arange(SIZE) < 30, 200, 0)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(
    "budget", [ln.PureDP("1/4"), ln.ZCDP("1/40"), ln.ApproxDP("1/2", "1/1000000")], ids=str
)
def test_dawa_regimes_stay_within_budget(monkeypatch, adaptive: bool, budget: object) -> None:
    plan = ln.plan(WORKLOAD, budget, strategy="dawa")
    monkeypatch.setattr(dawa, "nearly_empty", lambda *_: adaptive)
    release = ln.release(plan, people(CELLS), seed=3)
    assert not release.private
    assert regime(release.outcome) == ("adaptive" if adaptive else "smoothed")
    truth = np.cumsum(CELLS)
    table = release.tables[0]
    spread = np.sqrt(table.noise_std**2 + np.nan_to_num(table.approximation_std) ** 2)
    assert (np.abs(table.answer - truth) < 8 * spread + 5).all()


def test_structure_of_the_data_decides(monkeypatch) -> None:
    exact = LeastCost.draw  # without noise, so that the borders are seen
    monkeypatch.setattr(
        LeastCost,
        "draw",
        lambda self, cells, *rest: exact(replace(self, epsilon=5000), cells, *rest),
    )
    place, random = np.arange(4096), np.random.default_rng(1)
    shapes = {
        "smoothed": random.integers(0, 4000, 4096),
        "smoothed, some structure": np.where(place % 8 == 0, 900, 3),
        "adaptive": np.where(place < 200, random.integers(0, 400, 4096), 0),
        "adaptive, one block": np.where(place < 1024, 40, 0),
    }
    domain = ln.Domain(age=ln.Integers(0, 4095)).as_complete()
    plan = ln.plan(ln.queries(domain, age="identity"), ln.PureDP(1), strategy="dawa")
    tables = {
        name: Table(domain, {"age": np.repeat(place, cells)}) for name, cells in shapes.items()
    }
    outcomes = {name: run(plan, table, 1) for name, table in tables.items()}
    assert {name: regime(outcome) for name, outcome in outcomes.items()} == {
        name: name.partition(",")[0] for name in shapes
    }
    (test_facts,) = (
        outcome.finding.facts()["test"]
        for name, outcome in outcomes.items()
        if name == "adaptive, one block"
    )
    # Three even blocks in halves, each at the price of a bucket.
    assert test_facts["value"] == pytest.approx(3 * test_facts["unit"], abs=0.01)


def test_dawa_keeps_plans_that_miss_cells(monkeypatch) -> None:
    monkeypatch.setattr(dawa, "can_be_smoothed", lambda setting: setting.blocks == ())
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    release = ln.release(plan, people(CELLS + 200), seed=1)
    assert regime(release.outcome) == "independent"
    assert not np.nan_to_num(release.tables[0].approximation_std).any()


def test_smoothed_answers_round_trip_with_intervals(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(dawa, "nearly_empty", lambda *_: False)
    release = ln.release(
        ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa"),
        people(CELLS),
        seed=1,
        out=tmp_path / "out",
    )
    for table, reread in zip(release.tables, ln.read_release(tmp_path / "out").tables, strict=True):
        assert (table.low == reread.low).all()
    # The plan does not have this query: least squares answers it.
    (table,) = release.answer(ln.queries(DOMAIN, age={"ranges": [(7, 9)]}))
    assert table.approximation_std is None
    assert "the ends of an interval of least squares" in report(tmp_path / "out")
    (file,) = (tmp_path / "out" / "answers").glob("q1-*.csv")
    for name in ("noise_std", "approximation_std", "high"):
        assert pl.read_csv(file)[name].to_numpy() == pytest.approx(
            getattr(release.tables[0], name), rel=1e-6
        )


# --- on two attributes ----------------------------------------------------------------------------

PLANE_SHAPE = (11, 6)
PLANE = ln.Domain(
    age=ln.Integers(0, PLANE_SHAPE[0] - 1), sex=["F", "M"], hours=ln.Integers(0, PLANE_SHAPE[1] - 1)
).as_complete()
ON_PLANE = (
    ln.queries(PLANE, age=ln.prefix(), hours=ln.all_ranges())
    + ln.queries(PLANE, age=ln.ranges([(0, 4), (3, 10)]), hours="identity", weight=2)
    + ln.queries(PLANE, hours="prefix")
    + ln.queries(PLANE, age="identity")
    + ln.queries(PLANE)
)
PLANE_CELLS = np.zeros(PLANE_SHAPE, dtype=np.int64)
PLANE_CELLS[:5, :3] = 300
PLANE_CELLS[7:, 4:] = 40
WAYS = [("fixed", 0), ("blocks", 2), ("blocks", 16)]
PRIVACY = [
    ln.Privacy(ln.PureDP("1/3")),
    ln.Privacy(ln.PureDP("1/2"), neighbours="replace"),
    ln.Privacy(ln.PureDP("1/2"), unit_column="id", max_rows=3),
]


def rows_of(cells: np.ndarray) -> dict[str, np.ndarray]:
    age, hours = np.repeat(np.indices(cells.shape).reshape(2, -1), cells.reshape(-1), axis=1)
    return {"age": age, "sex": np.zeros(len(age), dtype=np.int64), "hours": hours}


def matrix_of(product: Product) -> np.ndarray:
    operators = dict(zip(product.attributes, product.operators, strict=True))
    return np.kron(
        *(
            dense(operators[name]) if name in operators else np.ones((1, PLANE.kind(name).size))
            for name in ("age", "hours")
        )
    )


def truth_of(product: Product, cells: np.ndarray) -> np.ndarray:
    return (matrix_of(product) @ cells.reshape(-1)).reshape(product.shape)


def observed(
    privacy: ln.Privacy, way: tuple[str, int], cells: np.ndarray, seeds: range
) -> list[Outcome]:
    """Measure in one way, with the budget that the first choice leaves, once for each seed."""
    plan = ln.plan(ON_PLANE, privacy, strategy="dawa")
    table = Table(PLANE, rows_of(cells), unit_column=privacy.unit_column, max_rows=privacy.max_rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dawa, "plane_regime", lambda *_, **__: way)
        run_once = runs(plan, table)
        return [run_once(SeededEntropy(seed)) for seed in seeds]


# --- the whole path -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("privacy", PRIVACY, ids=["records", "replace", "units"])
def test_dawa_outcomes_round_trip_within_budget(
    tmp_path, monkeypatch, way: tuple[str, int], privacy: ln.Privacy
) -> None:
    plan = ln.plan(ON_PLANE, privacy, strategy="dawa")
    assert ln.Plan.from_json(plan.to_json()) == plan
    monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: way)
    rows = rows_of(PLANE_CELLS) | {"sex": ["F"] * int(PLANE_CELLS.sum())}
    if privacy.unit_column:
        rows["id"] = np.arange(int(PLANE_CELLS.sum())) // privacy.max_rows
    book = ln.Ledger.create(tmp_path / "people.ledger", "people", privacy)
    release = ln.release(plan, pl.DataFrame(rows), ledger=book, out=tmp_path / "out")
    assert release.private
    assert book.left().epsilon == 0
    assert regime(release.outcome) == {"fixed": "independent"}.get(way[0], way[0])
    assert (
        release.outcome.finding.facts()["test"]["unit"] == privacy.distance / privacy.budget.epsilon
    )
    assert release.measurements.privacy == privacy
    # What was measured costs, by its integers, what the test left.
    budget_left = privacy.budget.epsilon * Fraction(24, 25)
    assert (
        float(budget_left) * (1 - 1e-5)
        <= float(cost(release.measurements).epsilon)
        <= float(budget_left)
    )
    for table, reread, product in zip(
        release.tables, ln.read_release(tmp_path / "out").tables, ON_PLANE, strict=True
    ):
        for name in ("answer", "noise_std", "approximation_std", "low", "high"):
            assert np.array_equal(getattr(table, name), getattr(reread, name))
        spread = np.sqrt(table.noise_std**2 + table.approximation_std**2)
        assert (np.abs(table.answer - truth_of(product, PLANE_CELLS)) < 10 * spread + 5).all()
    with pytest.raises(ln.BudgetError):
        ln.release(plan, pl.DataFrame(rows), ledger=book)


FEW = [
    *itertools.product([(1, 2), (2, 2), (3, 4)], WAYS),
    *(((size,), "") for size in (1, 2, 3, 5)),
]


@pytest.mark.parametrize(("shape", "way"), FEW, ids=str)
def test_dawa_answers_tables_of_few_cells(monkeypatch, shape: tuple[int, ...], way) -> None:
    if way:
        monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: way)
    domain = ln.Domain(
        {name: ln.Coded(size) for name, size in zip("ab", shape, strict=False)}
    ).as_complete()
    workload = ln.queries(domain, **dict(zip(domain.names, ("identity", "prefix"), strict=False)))
    for strategy in ("dawa",) if way else dawa.STRATEGIES:
        plan = ln.plan(workload, ln.PureDP(2), strategy=strategy)
        estimator = run(
            plan, Table(domain, {name: [0] * 50 for name in domain.names}), 1
        ).estimator()
        for product in workload:
            answer = estimator.estimate(product)
            assert np.isfinite(answer.values).all()
            assert (answer.noise_std > 0).all()
            assert (np.nan_to_num(answer.approximation_std) >= 0).all()


# --- error bars -----------------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", PRIVACY[:2], ids=["records", "replace"])
@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_noise_given_the_blocks_is_exact(privacy: ln.Privacy, way: tuple[str, int]) -> None:
    """Counts and variances equal those of dense linear algebra on the measurements."""
    (outcome,) = observed(privacy, way, PLANE_CELLS, range(3, 4))
    observation, estimator = outcome.observation, outcome.estimator()
    rows, weight, values = [], [], []
    for block, value in zip(observation.measurements.blocks, observation.values, strict=True):
        (factor,) = block.factors
        rows.append(dense(factor.operator))
        if factor.row_weights is None:
            weight.append(
                factor.weights**2
                / block_variance(observation.measurements, replace(block, factors=()))
                * np.ones(block.rows)
            )
        else:
            weight.append(2 * np.sinh(0.5 * factor.weights / float(block.scale)) ** 2)
        values.append(value / observation.measurements.grid)
    assert isinstance(estimator, AdaptiveGridEstimate)
    lengths = estimator.areas
    expand = np.zeros((rows[0].shape[1], len(lengths)))
    expand[estimator.order, np.repeat(np.arange(len(lengths)), lengths)] = np.repeat(
        1 / lengths, lengths
    )
    # Of first blocks in one part only the sum counts.
    part = np.where(
        (expand > 0).T @ rows[0].T > 0, np.arange(len(lengths))[:, None], len(lengths)
    ).min(axis=0)
    joined = (part == np.unique(part)[:, None]).astype(float)
    assert (len(joined) < len(part)) == (way[1] > 4)
    rows[0], values[0], weight[0] = (
        joined @ rows[0],
        joined @ values[0],
        1 / (joined @ (1 / weight[0])),
    )
    matrix, precision = np.concatenate(rows).astype(float), np.concatenate(weight)
    on_blocks = matrix @ expand
    covariance = np.linalg.inv(on_blocks.T @ (precision[:, None] * on_blocks))
    assert np.allclose(
        estimator.counts, covariance @ on_blocks.T @ (precision * np.concatenate(values)), atol=1e-6
    )
    for product in ON_PLANE:
        queries = matrix_of(product) @ expand
        assert np.allclose(
            estimator.estimate(product).noise_std.reshape(-1) ** 2,
            np.einsum("ij,jk,ik->i", queries, covariance, queries),
            rtol=1e-6,
        )


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_dawa_intervals_cover(way: tuple[str, int]) -> None:
    """On blocks of unlike counts, 95% intervals cover at least 93% over 60 releases.

    The noise has a standard deviation of 3 records and more. Answers of one release are dependent;
    60 releases of independent noise have a standard error below 1.5%. A coverage of exactly 95%
    would fail with probability 0.1 a way; the intervals take the larger quantile and cover about
    97%.
    """
    random = np.random.default_rng(4)
    cells = random.poisson(np.where(PLANE_CELLS > 0, PLANE_CELLS, 2))
    hit = []
    for outcome in observed(PRIVACY[0], way, cells, range(60)):
        tables = build_release(outcome).tables
        for table, product in zip(tables, ON_PLANE, strict=True):
            truth = truth_of(product, cells)
            hit.append(((table.low <= truth) & (truth <= table.high)).mean())
    assert np.mean(hit) >= 0.93


FLAT = ln.Domain(a=ln.Integers(0, 31), b=ln.Integers(0, 31)).as_complete()
FLAT_CELLS = np.full((32, 32), 20, dtype=np.int64)
FLAT_CELLS[:8, 16:], FLAT_CELLS[20:22, 3:5] = 3, 150


def on_flat(workload: ln.Workload, seeds: range, epsilon: str = "1/2") -> list[Outcome]:
    rows, columns = np.repeat(
        np.indices(FLAT_CELLS.shape).reshape(2, -1), FLAT_CELLS.reshape(-1), axis=1
    )
    run_once = runs(
        ln.plan(workload, ln.PureDP(epsilon), strategy="dawa"),
        Table(FLAT, {"a": rows, "b": columns}),
    )
    return [run_once(SeededEntropy(seed)) for seed in seeds]


def test_narrow_queries_get_smaller_shrunk_blocks(tmp_path) -> None:
    """The queries decide; stored outcomes of older versions keep their answers."""
    pairs = ln.ranges([(low, low + 1) for low in range(0, 31, 5)])
    few_ranges = ln.queries(FLAT, a="identity", b="identity") + ln.queries(FLAT, a=pairs, b=pairs)
    for workload, blocks, shrunk in (
        (few_ranges, 128, True),
        (few_ranges + ln.queries(FLAT, a="identity"), 16, False),
    ):
        (outcome,) = on_flat(workload, range(1))
        assert (outcome.finding.facts()["blocks"], outcome.finding.facts()["shrunk"]) == (
            blocks,
            shrunk,
        )
        reread = outcome_from_json(outcome.plan.to_json(), json.dumps(written(outcome)))
        facts = {name: value for name, value in outcome.finding.facts().items() if name != "shrunk"}
        older = outcome_from_json(
            outcome.plan.to_json(), json.dumps({**written(outcome), "outcome": facts})
        )
        values, reread_values, older_values = (
            result.estimator().estimate(workload.products[0]).values
            for result in (outcome, reread, older)
        )
        assert np.array_equal(values, reread_values)
        assert np.array_equal(values, older_values) != shrunk


def test_shrunk_cells_have_less_error_and_cover() -> None:
    """Shrinking leaves 0.8 of the squared error; 95% intervals cover 90% of heavy cells."""
    workload = ln.queries(FLAT, a="identity", b="identity")
    outcomes = on_flat(workload, range(20), "1/10")
    squares, inside, heavy = [], [], FLAT_CELLS > 100
    for outcome in outcomes:
        (table,) = build_release(outcome).tables
        inside.append((table.low <= FLAT_CELLS) & (table.high >= FLAT_CELLS))
        plain = (
            replace(outcome, finding=replace(outcome.finding, shrunk=False))
            .estimator()
            .estimate(workload.products[0])
        )
        squares.append(
            [((answers - FLAT_CELLS) ** 2).mean() for answers in (table.answer, plain.values)]
        )
    shrunk, unshrunk = np.mean(squares, axis=0)
    assert shrunk < 0.8 * unshrunk
    assert np.mean(inside) >= 0.93
    assert np.mean([covered[heavy].mean() for covered in inside]) >= 0.9


# --- what is refused, before anything is paid -----------------------------------------------------

SUMS = ln.Domain(a=ln.Coded(10), measures={"pay": ln.Measure("pay", 0, 10)}).as_complete()
LONG, WIDE, FINE, MANY = (
    ln.Domain(a=ln.Coded(size), b=ln.Coded(other)).as_complete()
    for size, other in ((5000, 2), (2048, 2048), (512, 512), (64, 64))
)


@pytest.mark.parametrize(
    ("workload", "budget", "strategy", "message"),
    [
        (
            ln.marginals(PLANE, ways=1),
            ln.PureDP(1),
            "dawa",
            "dawa answers queries on one attribute or two; .* on age and sex and hours",
        ),
        (ln.marginals(DOMAIN, ways=0), ln.PureDP(1), "dawa", "this workload has queries on none"),
        (
            ln.queries(SUMS, a="prefix", sum="pay"),
            ln.PureDP(1),
            "dawa",
            "dawa answers counts; this workload has sums",
        ),
        (ON_PLANE, ln.ZCDP(1), "dawa", "dawa on two attributes needs a budget with only epsilon"),
        (ON_PLANE, ln.ApproxDP(1, "1e-6"), "dawa", "needs a budget with only epsilon"),
        (
            ON_PLANE,
            ln.PureDP(1),
            "dawa_levels",
            (
                "dawa_levels answers queries on one attribute; this workload has queries on age "
                "and hours"
            ),
        ),
        (
            ln.queries(LONG, a="prefix", b="prefix"),
            ln.PureDP(1),
            "dawa",
            "at most 4096 cells of each",
        ),
        (
            ln.queries(WIDE, a="prefix", b="prefix"),
            ln.PureDP(1),
            "dawa",
            "1048576 cells of both together; got 2048 x 2048",
        ),
        (
            ln.queries(MANY, a=ln.all_ranges(), b=ln.all_ranges()),
            ln.PureDP(1),
            "dawa",
            "at most 1048576 queries on a table",
        ),
        (
            ln.queries(FINE, a="identity", b="identity"),
            ln.PureDP(1),
            "dawa",
            "at most 32768 queries on a table of 262144 cells",
        ),
    ],
)
def test_other_workloads_and_budgets_are_refused(
    workload: ln.Workload, budget: object, strategy: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ln.plan(workload, budget, strategy=strategy)


OTHER_STEPS = "differ from the steps of this version"


@pytest.mark.parametrize(
    ("workload", "change", "message"),
    [
        (ON_PLANE, {"reference": None}, "has no errors of a data-independent plan"),
        (WORKLOAD, {"fallback": None}, "must have a fallback plan for data without structure"),
        (WORKLOAD, {"privacy": ln.Privacy(ln.PureDP(9))}, OTHER_STEPS),
        (ON_PLANE, {"steps": ()}, OTHER_STEPS),
        (WORKLOAD, {"noise": Noise.ROUNDED_GAUSSIAN}, OTHER_STEPS),
        (ON_PLANE, {"attributes": ("age", "sex")}, OTHER_STEPS),
        (ON_PLANE, {"privacy": ln.Privacy(ln.ZCDP(1))}, "needs a budget with only epsilon"),
        (ON_PLANE, {"strategy": "dawa_levels"}, "answers queries on one attribute"),
    ],
)
def test_damaged_plans_are_refused_and_cost_nothing(
    tmp_path, workload: ln.Workload, change, message: str
) -> None:
    plan = ln.plan(workload, ln.PureDP("1/4"), strategy="dawa")
    fields = change
    if not {*change} & {"strategy", "fallback", "privacy"}:
        fields = {"adaptive": replace(plan.adaptive, **change)}
    rows = pl.DataFrame({"age": [1], "sex": ["F"], "hours": [1]})
    with pytest.raises(InputError, match=message):
        ln.release(
            replace(plan, **fields), rows, ledger=tmp_path / "people.ledger", out=tmp_path / "out"
        )
    assert not (tmp_path / "people.ledger").exists()


def test_linear_extras_are_refused(tmp_path) -> None:
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    for options in ({"nnls": True}, {"local_non_negative": True}, {"covariances": ("q1",)}):
        with pytest.raises(
            InputError,
            match="cannot be given by the strategy 'dawa', whose answers are not linear estimates",
        ):
            ln.release(
                plan,
                people(CELLS),
                ledger=tmp_path / "people.ledger",
                options=ln.Options(**options),
            )
    assert not (tmp_path / "people.ledger").exists()
    with pytest.raises(InputError, match="covariances cannot be given"):
        ln.release(plan, people(CELLS), seed=1).covariance("q1")


def test_auto_never_chooses_dawa() -> None:
    domain = ln.Domain(age=ln.Integers(0, 7)).as_complete()
    assert not {
        candidate.strategy
        for candidate in ln.compare(
            ln.queries(domain, age=ln.all_ranges()), ln.Privacy(ln.PureDP(1))
        )
    } & set(MECHANISMS)
    assert ln.plan(ln.queries(domain, age="prefix"), ln.PureDP(1)).strategy not in MECHANISMS


@pytest.mark.parametrize("strategy", ["dawa", "dawa_levels"])
def test_dawa_refuses_budgets_too_large_for_its_grid(
    strategy: str,
) -> None:
    """Under (epsilon, delta) levels need a fine grid, and queries on buckets have large entries."""
    domain, refused = ln.Domain(x=ln.Integers(0, 39)).as_complete(), 0
    table = Table(domain, {"x": np.minimum(np.random.default_rng(0).geometric(0.05, 3000) - 1, 39)})
    for size in (1, 10, 100, 1000, 10_000):
        plan = ln.plan(
            ln.queries(domain, x="prefix"), ln.ApproxDP(size, "1/100000"), strategy=strategy
        )
        try:
            run = mechanism_of(plan).prepare(plan)  # the last that may refuse
        except InputError as error:
            assert "one that leaves more noise" in str(error)  # noqa: PT017 - of some budgets
            refused += 1
            continue
        assert size <= 100
        setting = dawa.setting_from_plan(plan)
        first = plan.privacy.budget.share(dawa.FIRST_SHARE)
        second = plan.privacy.budget.share(1 - dawa.FIRST_SHARE)
        for starts in (np.arange(40), np.array([0, 3, 20])):
            buckets = dawa.bucket_strategy(
                setting.attributes, setting.workload_gram, starts, setting.noise.norm
            )
            join_measurements(
                [dawa.fit_levels(setting, first), setting.fit_block(buckets, second)], plan.privacy
            )
        run(UnpaidSeries(release_contract(plan), table, SeededEntropy(5)))
    assert refused == 2


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_damaged_observation_is_refused(way: tuple[str, int]) -> None:
    (outcome,) = observed(PRIVACY[0], way, PLANE_CELLS, range(1))
    value = written(outcome)
    for facts in (
        {**outcome.finding.facts(), "regime": "adaptive"},
        {**outcome.finding.facts(), "regime": "quadtree"},
        {},
    ):
        with pytest.raises(InputError, match="not an observation, or a damaged one"):
            outcome_from_json(outcome.plan.to_json(), json.dumps({**value, "outcome": facts}))
