"""Tests of DAWA on one and two attributes: plans, payment, coverage, and refusals.

tests/privacy and tests/trusted/kernel test the privacy loss.
"""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import leastnoise as ln
from leastnoise._error import block_variance
from leastnoise._estimation import AdaptiveGridEstimate, join_measurements
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
from mechanisms.remembered import without_a_search
from mechanisms.running import regime, run, runs, stored_outcome
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


def people(cells):
    """Return rows with these counts by age."""
    ages = np.repeat(np.arange(len(cells)), cells).tolist()
    sexes = ["F", "M"] * (len(ages) // 2) + ["F"] * (len(ages) % 2)
    return pl.DataFrame({"age": ages, "sex": sexes})


CELLS = np.where(np.arange(SIZE) < 30, 200, 0)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(
    "budget", [ln.PureDP("1/4"), ln.ZCDP("1/40"), ln.ApproxDP("1/2", "1/1000000")], ids=str
)
def test_dawa_regimes_stay_within_budget(monkeypatch, adaptive, budget):
    plan = ln.plan(WORKLOAD, budget, strategy="dawa")
    monkeypatch.setattr(dawa, "nearly_empty", lambda *_: adaptive)
    release = ln.release(plan, people(CELLS), seed=3)
    assert not release.private
    assert regime(release.outcome) == ("adaptive" if adaptive else "smoothed")
    truth = np.cumsum(CELLS)
    table = release.tables[0]
    spread = np.sqrt(table.noise_std**2 + np.nan_to_num(table.approximation_std) ** 2)
    assert (np.abs(table.answer - truth) < 8 * spread + 5).all()


REGIMES_BY_SHAPE = {
    "uneven": "smoothed",
    "periodic": "smoothed",
    "sparse": "adaptive",
    "one block": "adaptive",
}


@pytest.fixture
def shaped_outcomes(monkeypatch):
    """Run dawa without noise in the choice of blocks, on 4096 cells of each shape."""
    draw = LeastCost.draw
    monkeypatch.setattr(
        LeastCost,
        "draw",
        lambda self, cells, *rest: draw(replace(self, epsilon=5000), cells, *rest),
    )
    cell = np.arange(4096)
    random = np.random.default_rng(1)
    counts_by_shape = {
        "uneven": random.integers(0, 4000, 4096),
        "periodic": np.where(cell % 8 == 0, 900, 3),
        "sparse": np.where(cell < 200, random.integers(0, 400, 4096), 0),
        "one block": np.where(cell < 1024, 40, 0),
    }
    domain = ln.Domain(age=ln.Integers(0, 4095)).as_complete()
    plan = ln.plan(ln.queries(domain, age="identity"), ln.PureDP(1), strategy="dawa")
    return {
        shape: run(plan, Table(domain, {"age": np.repeat(cell, counts)}), 1)
        for shape, counts in counts_by_shape.items()
    }


def test_structure_of_the_data_decides(shaped_outcomes):
    regimes = {shape: regime(outcome) for shape, outcome in shaped_outcomes.items()}
    assert regimes == REGIMES_BY_SHAPE
    test_facts = shaped_outcomes["one block"].finding.facts()["test"]
    # Three even blocks in halves, each at the price of a bucket.
    assert test_facts["value"] == pytest.approx(3 * test_facts["unit"], abs=0.01)


def test_dawa_keeps_plans_that_miss_cells(monkeypatch):
    monkeypatch.setattr(dawa, "can_be_smoothed", lambda setting: setting.blocks == ())
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    release = ln.release(plan, people(CELLS + 200), seed=1)
    assert regime(release.outcome) == "independent"
    assert not np.nan_to_num(release.tables[0].approximation_std).any()


def test_smoothed_answers_round_trip_with_intervals(monkeypatch, tmp_path):
    monkeypatch.setattr(dawa, "nearly_empty", lambda *_: False)
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    out = tmp_path / "out"
    release = ln.release(plan, people(CELLS), seed=1, out=out)
    for table, table_read in zip(release.tables, ln.read_release(out).tables, strict=True):
        assert (table.low == table_read.low).all()
    (file,) = (out / "answers").glob("q1-*.csv")
    columns = pl.read_csv(file)
    for name in ("noise_std", "approximation_std", "high"):
        expected = pytest.approx(getattr(release.tables[0], name), rel=1e-6)
        assert columns[name].to_numpy() == expected

    # The plan does not have this query: least squares answers it.
    (table,) = release.answer(ln.queries(DOMAIN, age={"ranges": [(7, 9)]}))
    assert table.approximation_std is None
    assert "(low and high) come from least squares" in report(out)


# --- two attributes -------------------------------------------------------------------------------

PLANE_SHAPE = (11, 6)
PLANE = ln.Domain(
    age=ln.Integers(0, PLANE_SHAPE[0] - 1), sex=["F", "M"], hours=ln.Integers(0, PLANE_SHAPE[1] - 1)
).as_complete()
PLANE_WORKLOAD = (
    ln.queries(PLANE, age=ln.prefix(), hours=ln.all_ranges())
    + ln.queries(PLANE, age=ln.ranges([(0, 4), (3, 10)]), hours="identity", weight=2)
    + ln.queries(PLANE, hours="prefix")
    + ln.queries(PLANE, age="identity")
    + ln.queries(PLANE)
)
PLANE_CELLS = np.zeros(PLANE_SHAPE, dtype=np.int64)
PLANE_CELLS[:5, :3] = 300
PLANE_CELLS[7:, 4:] = 40
# The choices that dawa may make on two attributes: a fixed plan, or a number of blocks.
CHOICES = [("fixed", 0), ("blocks", 2), ("blocks", 16)]
PRIVACIES = [
    ln.Privacy(ln.PureDP("1/3")),
    ln.Privacy(ln.PureDP("1/2"), neighbours="replace"),
    ln.Privacy(ln.PureDP("1/2"), unit_column="id", max_rows=3),
]


def rows_of(cells):
    """Return rows with these counts by age and hours."""
    age, hours = np.repeat(np.indices(cells.shape).reshape(2, -1), cells.reshape(-1), axis=1)
    return {"age": age, "sex": np.zeros(len(age), dtype=np.int64), "hours": hours}


def matrix_of(product):
    """Return the queries of a table as a matrix over the cells of age and hours."""
    operators = dict(zip(product.attributes, product.operators, strict=True))
    factors = []
    for name in ("age", "hours"):
        if name in operators:
            factors.append(dense(operators[name]))
        else:
            factors.append(np.ones((1, PLANE.kind(name).size)))
    return np.kron(*factors)


def exact_answers(product, cells):
    return (matrix_of(product) @ cells.reshape(-1)).reshape(product.shape)


def measure_with_choice(privacy, choice, cells, seeds):
    """Return an outcome for each seed, in which dawa makes this choice whatever the data are."""
    plan = ln.plan(PLANE_WORKLOAD, privacy, strategy="dawa")
    table = Table(PLANE, rows_of(cells), unit_column=privacy.unit_column, max_rows=privacy.max_rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dawa, "plane_regime", lambda *_, **__: choice)
        run_once = runs(plan, table)
        return [run_once(SeededEntropy(seed)) for seed in seeds]


# --- the whole path -------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("privacy", PRIVACIES, ids=["records", "replace", "units"])
def test_dawa_outcomes_round_trip_within_budget(tmp_path, monkeypatch, choice, privacy):
    plan = ln.plan(PLANE_WORKLOAD, privacy, strategy="dawa")
    assert ln.Plan.from_json(plan.to_json()) == plan
    monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: choice)
    total = int(PLANE_CELLS.sum())
    rows = rows_of(PLANE_CELLS) | {"sex": ["F"] * total}
    if privacy.unit_column:
        rows["id"] = np.arange(total) // privacy.max_rows
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", privacy)
    release = ln.release(plan, pl.DataFrame(rows), ledger=ledger, out=tmp_path / "out")

    assert release.private
    assert ledger.left().epsilon == 0
    chosen_regime, _ = choice
    expected_regime = "independent" if chosen_regime == "fixed" else chosen_regime
    assert regime(release.outcome) == expected_regime
    test_facts = release.outcome.finding.facts()["test"]
    assert test_facts["unit"] == privacy.distance / privacy.budget.epsilon
    assert release.measurements.privacy == privacy
    # The measured integers cost what the test left of the budget, 24/25.
    budget_left = float(privacy.budget.epsilon * Fraction(24, 25))
    measured_cost = float(cost(release.measurements).epsilon)
    assert budget_left * (1 - 1e-5) <= measured_cost <= budget_left

    tables_read = ln.read_release(tmp_path / "out").tables
    for table, table_read, product in zip(release.tables, tables_read, PLANE_WORKLOAD, strict=True):
        for name in ("answer", "noise_std", "approximation_std", "low", "high"):
            assert np.array_equal(getattr(table, name), getattr(table_read, name))
        spread = np.sqrt(table.noise_std**2 + table.approximation_std**2)
        errors = np.abs(table.answer - exact_answers(product, PLANE_CELLS))
        assert (errors < 10 * spread + 5).all()
    with pytest.raises(ln.BudgetError):
        ln.release(plan, pl.DataFrame(rows), ledger=ledger)


def assert_answers_are_finite(domain, strategy):
    """Check the answers to cells, or to cells by prefixes, for 50 rows in the first cell."""
    query_sets = dict(zip(domain.names, ("identity", "prefix"), strict=False))
    workload = ln.queries(domain, **query_sets)
    plan = ln.plan(workload, ln.PureDP(2), strategy=strategy)
    table = Table(domain, {name: [0] * 50 for name in domain.names})
    estimator = run(plan, table, 1).estimator()
    for product in workload:
        answer = estimator.estimate(product)
        assert np.isfinite(answer.values).all()
        assert (answer.noise_std > 0).all()
        assert (np.nan_to_num(answer.approximation_std) >= 0).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("strategy", dawa.STRATEGIES)
def test_dawa_answers_tables_of_few_cells(size, strategy):
    assert_answers_are_finite(ln.Domain(a=ln.Coded(size)).as_complete(), strategy)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (2, 2), (3, 4)])
def test_dawa_answers_planes_of_few_cells(monkeypatch, rows, columns, choice):
    monkeypatch.setattr(dawa, "plane_regime", lambda *_, **__: choice)
    domain = ln.Domain(a=ln.Coded(rows), b=ln.Coded(columns)).as_complete()
    assert_answers_are_finite(domain, "dawa")


# --- error bars -----------------------------------------------------------------------------------


def precision_of_rows(measurements, block):
    """Return the reciprocal of the variance of each measured row, on the grid."""
    (factor,) = block.factors
    if factor.row_weights is None:
        variance = block_variance(measurements, replace(block, factors=()))
        return factor.weights**2 / variance * np.ones(block.rows)
    # The variance of discrete Laplace noise of scale s is 1 / (2 sinh(1 / (2 s))^2).
    return 2 * np.sinh(0.5 * factor.weights / float(block.scale)) ** 2


def cells_of_parts(estimator, cells):
    """Return the matrix that spreads the count of each part evenly over its cells."""
    areas = estimator.areas
    matrix = np.zeros((cells, len(areas)))
    matrix[estimator.order, np.repeat(np.arange(len(areas)), areas)] = np.repeat(1 / areas, areas)
    return matrix


def rows_in_one_part(rows, expand):
    """Return the matrix that adds up the measured blocks in one part: only their sum counts."""
    parts = expand.shape[1]
    overlaps = (expand > 0).T @ rows.T > 0
    first_part = np.where(overlaps, np.arange(parts)[:, None], parts).min(axis=0)
    return (first_part == np.unique(first_part)[:, None]).astype(float)


@pytest.mark.parametrize("privacy", PRIVACIES[:2], ids=["records", "replace"])
@pytest.mark.parametrize("choice", CHOICES[1:], ids=str)
def test_noise_given_the_blocks_is_exact(privacy, choice):
    """Counts and variances equal those of dense linear algebra on the measurements."""
    (outcome,) = measure_with_choice(privacy, choice, PLANE_CELLS, range(3, 4))
    measurements = outcome.observation.measurements
    estimator = outcome.estimator()
    assert isinstance(estimator, AdaptiveGridEstimate)
    rows = [dense(block.factors[0].operator) for block in measurements.blocks]
    precisions = [precision_of_rows(measurements, block) for block in measurements.blocks]
    values = [value / measurements.grid for value in outcome.observation.values]

    expand = cells_of_parts(estimator, rows[0].shape[1])
    joined = rows_in_one_part(rows[0], expand)
    number_of_blocks = choice[1]
    assert (len(joined) < len(rows[0])) == (number_of_blocks > 4)
    rows[0] = joined @ rows[0]
    values[0] = joined @ values[0]
    precisions[0] = 1 / (joined @ (1 / precisions[0]))

    precision = np.concatenate(precisions)
    on_parts = np.concatenate(rows).astype(float) @ expand
    covariance = np.linalg.inv(on_parts.T @ (precision[:, None] * on_parts))
    counts = covariance @ on_parts.T @ (precision * np.concatenate(values))
    assert np.allclose(estimator.counts, counts, atol=1e-6)
    for product in PLANE_WORKLOAD:
        queries = matrix_of(product) @ expand
        variances = np.einsum("ij,jk,ik->i", queries, covariance, queries)
        noise_std = estimator.estimate(product).noise_std.reshape(-1)
        assert np.allclose(noise_std**2, variances, rtol=1e-6)


@pytest.mark.parametrize("choice", CHOICES[1:], ids=str)
def test_dawa_intervals_cover(choice):
    """On blocks of unlike counts, 95% intervals cover at least 93% over 60 releases.

    The noise has a standard deviation of 3 records and more. Answers of one release are dependent;
    60 releases of independent noise have a standard error below 1.5%. A coverage of exactly 95%
    would fail with probability 0.1 a choice; the intervals take the larger quantile and cover about
    97%.
    """
    random = np.random.default_rng(4)
    cells = random.poisson(np.where(PLANE_CELLS > 0, PLANE_CELLS, 2))
    coverages = []
    for outcome in measure_with_choice(PRIVACIES[0], choice, cells, range(60)):
        tables = build_release(outcome).tables
        for table, product in zip(tables, PLANE_WORKLOAD, strict=True):
            exact = exact_answers(product, cells)
            coverages.append(((table.low <= exact) & (exact <= table.high)).mean())
    assert np.mean(coverages) >= 0.93


SQUARE = ln.Domain(a=ln.Integers(0, 31), b=ln.Integers(0, 31)).as_complete()
SQUARE_CELLS = np.full((32, 32), 20, dtype=np.int64)
SQUARE_CELLS[:8, 16:] = 3
SQUARE_CELLS[20:22, 3:5] = 150


def measure_square(workload, seeds, epsilon="1/2"):
    """Return an outcome of dawa on the square of cells for each seed."""
    rows, columns = np.repeat(
        np.indices(SQUARE_CELLS.shape).reshape(2, -1), SQUARE_CELLS.reshape(-1), axis=1
    )
    plan = ln.plan(workload, ln.PureDP(epsilon), strategy="dawa")
    run_once = runs(plan, Table(SQUARE, {"a": rows, "b": columns}))
    return [run_once(SeededEntropy(seed)) for seed in seeds]


PAIRS = ln.ranges([(low, low + 1) for low in range(0, 31, 5)])
CELLS_AND_PAIRS = ln.queries(SQUARE, a="identity", b="identity") + ln.queries(
    SQUARE, a=PAIRS, b=PAIRS
)


@pytest.mark.parametrize(
    ("workload", "blocks", "shrunk"),
    [(CELLS_AND_PAIRS, 128, True), (CELLS_AND_PAIRS + ln.queries(SQUARE, a="identity"), 16, False)],
)
def test_narrow_queries_get_smaller_shrunk_blocks(workload, blocks, shrunk):
    """The queries decide; stored outcomes of older versions keep their answers."""
    (outcome,) = measure_square(workload, range(1))
    facts = outcome.finding.facts()
    assert facts["blocks"] == blocks
    assert facts["shrunk"] == shrunk

    plan = outcome.plan.to_json()
    stored = stored_outcome(outcome)
    facts_of_older_version = {name: fact for name, fact in facts.items() if name != "shrunk"}
    stored_by_older_version = {**stored, "outcome": facts_of_older_version}
    outcome_read = outcome_from_json(plan, json.dumps(stored))
    older_outcome = outcome_from_json(plan, json.dumps(stored_by_older_version))
    values = estimate_first_table(outcome)
    assert np.array_equal(values, estimate_first_table(outcome_read))
    assert np.array_equal(values, estimate_first_table(older_outcome)) != shrunk


def estimate_first_table(outcome):
    return outcome.estimator().estimate(outcome.plan.workload.products[0]).values


def test_shrunk_cells_have_less_error_and_cover():
    """Shrinking leaves 0.8 of the squared error; 95% intervals cover 90% of heavy cells."""
    workload = ln.queries(SQUARE, a="identity", b="identity")
    heavy = SQUARE_CELLS > 100
    shrunk_errors = []
    unshrunk_errors = []
    covered = []
    for outcome in measure_square(workload, range(20), "1/10"):
        (table,) = build_release(outcome).tables
        covered.append((table.low <= SQUARE_CELLS) & (table.high >= SQUARE_CELLS))
        unshrunk = replace(outcome, finding=replace(outcome.finding, shrunk=False))
        shrunk_errors.append(((table.answer - SQUARE_CELLS) ** 2).mean())
        unshrunk_errors.append(((estimate_first_table(unshrunk) - SQUARE_CELLS) ** 2).mean())
    assert np.mean(shrunk_errors) < 0.8 * np.mean(unshrunk_errors)
    assert np.mean(covered) >= 0.93
    assert np.mean([cells[heavy].mean() for cells in covered]) >= 0.9


# --- refusals before anything is paid -------------------------------------------------------------

SUMS = ln.Domain(a=ln.Coded(10), measures={"pay": ln.Measure("pay", 0, 10)}).as_complete()
LONG_DOMAIN = ln.Domain(a=ln.Coded(5000), b=ln.Coded(2)).as_complete()
WIDE_DOMAIN = ln.Domain(a=ln.Coded(2048), b=ln.Coded(2048)).as_complete()
FINE_DOMAIN = ln.Domain(a=ln.Coded(512), b=ln.Coded(512)).as_complete()
MANY_RANGES_DOMAIN = ln.Domain(a=ln.Coded(64), b=ln.Coded(64)).as_complete()


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
        (
            PLANE_WORKLOAD,
            ln.ZCDP(1),
            "dawa",
            "dawa on two attributes needs a budget with only epsilon",
        ),
        (PLANE_WORKLOAD, ln.ApproxDP(1, "1e-6"), "dawa", "needs a budget with only epsilon"),
        (
            PLANE_WORKLOAD,
            ln.PureDP(1),
            "dawa_levels",
            (
                "dawa_levels answers queries on one attribute; this workload has queries on age "
                "and hours"
            ),
        ),
        (
            ln.queries(LONG_DOMAIN, a="prefix", b="prefix"),
            ln.PureDP(1),
            "dawa",
            "at most 4096 cells of each",
        ),
        (
            ln.queries(WIDE_DOMAIN, a="prefix", b="prefix"),
            ln.PureDP(1),
            "dawa",
            "1048576 cells of both together; got 2048 x 2048",
        ),
        (
            ln.queries(MANY_RANGES_DOMAIN, a=ln.all_ranges(), b=ln.all_ranges()),
            ln.PureDP(1),
            "dawa",
            "at most 1048576 queries on a table",
        ),
        (
            ln.queries(FINE_DOMAIN, a="identity", b="identity"),
            ln.PureDP(1),
            "dawa",
            "at most 32768 queries on a table of 262144 cells",
        ),
    ],
)
def test_other_workloads_and_budgets_are_refused(workload, budget, strategy, message):
    with pytest.raises(InputError, match=message):
        ln.plan(workload, budget, strategy=strategy)


OTHER_STEPS = "differ from the steps of this version"


@pytest.mark.parametrize(
    ("workload", "change", "message"),
    [
        (PLANE_WORKLOAD, {"reference": None}, "has no errors of a data-independent plan"),
        (WORKLOAD, {"fallback": None}, "must have a fallback plan for data without structure"),
        (WORKLOAD, {"privacy": ln.Privacy(ln.PureDP(9))}, OTHER_STEPS),
        (PLANE_WORKLOAD, {"steps": ()}, OTHER_STEPS),
        (WORKLOAD, {"noise": Noise.ROUNDED_GAUSSIAN}, OTHER_STEPS),
        (PLANE_WORKLOAD, {"attributes": ("age", "sex")}, OTHER_STEPS),
        (PLANE_WORKLOAD, {"privacy": ln.Privacy(ln.ZCDP(1))}, "needs a budget with only epsilon"),
        (PLANE_WORKLOAD, {"strategy": "dawa_levels"}, "answers queries on one attribute"),
    ],
)
def test_damaged_plans_are_refused_and_cost_nothing(tmp_path, workload, change, message):
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


def test_mechanism_without_texts_is_refused_and_costs_nothing(tmp_path, monkeypatch):
    """The report is written after the payment, so missing texts are found before it."""
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    monkeypatch.setattr(dawa.NoEmptinessFinding, "regime", "nowhere")
    monkeypatch.setattr(dawa.NearlyEmptyFinding, "reading", "no_reading")
    ledger = tmp_path / "people.ledger"
    with pytest.raises(InputError, match=r"needs the texts regime_nowhere, no_reading, and .* not"):
        ln.release(plan, people(CELLS), ledger=ledger, out=tmp_path / "out")
    assert not ledger.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options", [{"nnls": True}, {"local_non_negative": True}, {"covariances": ("q1",)}]
)
def test_linear_extras_are_refused(tmp_path, options):
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    ledger = tmp_path / "people.ledger"
    message = "cannot be given by the strategy 'dawa', whose answers are not linear estimates"
    with pytest.raises(InputError, match=message):
        ln.release(plan, people(CELLS), ledger=ledger, options=ln.Options(**options))
    assert not ledger.exists()


def test_dawa_has_no_covariance():
    plan = ln.plan(WORKLOAD, ln.PureDP("1/4"), strategy="dawa")
    release = ln.release(plan, people(CELLS), seed=1)
    with pytest.raises(InputError, match="covariances cannot be given"):
        release.covariance("q1")


def test_auto_never_chooses_dawa():
    domain = ln.Domain(age=ln.Integers(0, 7)).as_complete()
    candidates = ln.compare(ln.queries(domain, age=ln.all_ranges()), ln.Privacy(ln.PureDP(1)))
    assert not {candidate.strategy for candidate in candidates} & set(MECHANISMS)
    assert ln.plan(ln.queries(domain, age="prefix"), ln.PureDP(1)).strategy not in MECHANISMS


LINE = ln.Domain(x=ln.Integers(0, 39)).as_complete()


@pytest.mark.parametrize("strategy", ["dawa", "dawa_levels"])
@pytest.mark.parametrize("epsilon", [1000, 10_000])
def test_dawa_refuses_budgets_too_large_for_its_grid(strategy, epsilon):
    """Under (epsilon, delta) levels need a fine grid, and queries on buckets have large entries."""
    budget = ln.ApproxDP(epsilon, "1/100000")
    plan = ln.plan(ln.queries(LINE, x="prefix"), budget, strategy=strategy)
    with pytest.raises(InputError, match="one that leaves more noise"):
        mechanism_of(plan).prepare(plan)


@pytest.mark.parametrize("strategy", ["dawa", "dawa_levels"])
@pytest.mark.parametrize("epsilon", [1, 10, 100])
def test_prepared_dawa_can_measure_all_buckets(strategy, epsilon):
    """After the preparation, which is the last step that may refuse, every choice works."""
    budget = ln.ApproxDP(epsilon, "1/100000")
    plan = ln.plan(ln.queries(LINE, x="prefix"), budget, strategy=strategy)
    run_prepared = mechanism_of(plan).prepare(plan)
    setting = dawa.setting_from_plan(plan)
    first_budget = plan.privacy.budget.share(dawa.FIRST_SHARE)
    second_budget = plan.privacy.budget.share(1 - dawa.FIRST_SHARE)
    for starts in (np.arange(40), np.array([0, 3, 20])):
        buckets = dawa.bucket_strategy(
            setting.attributes, setting.workload_gram, starts, setting.noise.norm
        )
        levels = dawa.fit_levels(setting, first_budget)
        join_measurements([levels, setting.fit_block(buckets, second_budget)], plan.privacy)
    values = np.minimum(np.random.default_rng(0).geometric(0.05, 3000) - 1, 39)
    table = Table(LINE, {"x": values})
    run_prepared(UnpaidSeries(release_contract(plan), table, SeededEntropy(5)))


@pytest.mark.parametrize("choice", CHOICES[1:], ids=str)
def test_damaged_observation_is_refused(choice):
    (outcome,) = measure_with_choice(PRIVACIES[0], choice, PLANE_CELLS, range(1))
    stored = stored_outcome(outcome)
    facts = outcome.finding.facts()
    for damaged_facts in ({**facts, "regime": "adaptive"}, {**facts, "regime": "quadtree"}, {}):
        damaged = json.dumps({**stored, "outcome": damaged_facts})
        with pytest.raises(InputError, match="not an observation, or a damaged one"):
            outcome_from_json(outcome.plan.to_json(), damaged)
