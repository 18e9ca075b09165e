"""The model mechanism: its tables, its accuracy, and the coverage of its intervals."""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from estimation.agreement import disagreement
from leastnoise._domain import Domain, Integers
from leastnoise._error import block_variance
from leastnoise._estimation import ModelEstimator, ShrunkToModel, locally_non_negative
from leastnoise._mechanisms import Search, _model_mechanism, mechanism_for, mechanism_of
from leastnoise._mechanisms._model_mechanism import setting_from_plan
from leastnoise._pages import format_public_facts
from leastnoise._plan import Plan
from leastnoise._release import make_records
from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    Noise,
    Privacy,
    PureDP,
    parameters_by_name,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.table import Table
from leastnoise._workload import marginals, queries
from mechanisms.running import run

SIZES = (12, 8, 30, 2, 5)
DOMAIN = Domain(**{f"a{place}": Integers(0, size - 1) for place, size in enumerate(SIZES)})
NAMES = DOMAIN.names
PAIRS = marginals(DOMAIN, ways=2)
RANGES = queries(DOMAIN, a2="prefix", a3="identity")


@pytest.fixture(autouse=True)
def one_reference(monkeypatch):
    """Let the reference measure tables by name, without the slow search."""
    choose_plan = _model_mechanism.choose_plan

    def choose_by_name(workload, privacy, search):
        return choose_plan(workload, privacy, replace(search, strategy="marginals"))

    monkeypatch.setattr(_model_mechanism, "choose_plan", choose_by_name)


@lru_cache(maxsize=4)
def rows(number):
    """Return the rows as a table for the kernel."""
    return Table(DOMAIN, codes_of(number), rows=number)


def codes_of(number):
    """Return rows of six kinds, whose attributes depend on each other through their kind."""
    random = np.random.default_rng(8)
    kinds = random.choice(6, number, p=random.dirichlet(np.ones(6)))
    codes = {}
    for name, size in zip(NAMES, SIZES, strict=True):
        probabilities = random.dirichlet(np.full(size, 0.4), 6)
        bounds = np.cumsum(probabilities, axis=1)[kinds]
        cells = (random.random(number)[:, None] > bounds).sum(axis=1)
        codes[name] = cells.clip(max=size - 1).astype(np.int64)
    return codes


def count_cells(codes, product):
    """Return the number of rows in each cell of a table."""
    places = np.ravel_multi_index([codes[name] for name in product.attributes], product.shape)
    return np.bincount(places, minlength=product.rows).reshape(product.shape)


@lru_cache(maxsize=4)
def truth(number, names):
    """Return the exact counts of a table of these attributes."""
    (product,) = queries(DOMAIN, **dict.fromkeys(names, "identity"))
    return count_cells(codes_of(number), product)


def plan_model(workload, privacy):
    return mechanism_for("model", workload).plan(workload, privacy, Search("model", seconds=5))


def misplaced_share(tables, number):
    """Return the mean share of rows in wrong cells."""
    shares = [
        0.5 * np.abs(cells - truth(number, names)).sum() / number for names, cells in tables.items()
    ]
    return float(np.mean(shares))


def disagreement_of(answers):
    """Return the largest difference between two tables' sums over the same attributes."""
    return disagreement({product.attributes: answer.values for product, answer in answers.items()})


def is_covered(answer, exact):
    """Return which cells have the exact count in their 95% interval."""
    return np.asarray(np.abs(answer.values - exact) <= 1.96 * answer.std + 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "budget", "regime", "most"),
    [
        (3_000, ZCDP("1/100"), "model_bins", 0.8),
        (3_000, PureDP("1/2"), "model_bins", 0.85),
        # Epsilon and delta add up by parts, which costs more.
        (3_000, ApproxDP(1, "1e-9"), "model_bins", 1.2),
        (300_000, PureDP(2), "model_tables", 1.05),
    ],
)
def test_answers_are_nearer_than_least_squares(number, budget, regime, most):
    privacy = Privacy(budget)
    outcome = run(plan_model(PAIRS, privacy), rows(number), 3)
    assert outcome.finding.facts()["regime"] == regime
    assert abs(outcome.finding.facts()["rows"] - number) < 0.3 * number
    estimator = outcome.estimator()
    answers = {pair.attributes: estimator.estimate(pair).values for pair in PAIRS}

    plan = mechanism_for("marginals", PAIRS).plan(PAIRS, privacy, Search("marginals"))
    least_squares = run(plan, rows(number), 3).estimator()
    non_negative = locally_non_negative(least_squares, [*answers])
    marginals_of_pairs = {names: non_negative.marginal(names) for names in answers}
    error = misplaced_share(answers, number)
    assert error < most * misplaced_share(marginals_of_pairs, number)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "budget"), [(5_000, ZCDP("1/50")), (300_000, ZCDP("1/20"))])
def test_intervals_hold_the_truth_and_answers_agree(number, budget):
    plan = plan_model(PAIRS, Privacy(budget))
    covered: list[tuple[int, float]] = []
    for seed in (11, 12):
        estimator = run(plan, rows(number), seed).estimator()
        answers = {product: estimator.estimate(product) for product in PAIRS}
        assert disagreement_of(answers) < 1e-6 * number
        for product, answer in answers.items():
            assert (answer.values >= 0).all()
            assert (answer.noise_std > 0).all()
            covered_cells = is_covered(answer, truth(number, product.attributes))
            covered.append((product.rows, float(covered_cells.mean())))
    cells, shares = np.array(covered).T
    assert np.average(shares, weights=cells) >= 0.95
    assert shares[cells >= 50].min() >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("number", [30, 300])
def test_intervals_of_few_rows_hold_the_truth(number):
    # The model's error is estimated from few cells of each size here, in some releases as 0.
    random = np.random.default_rng(number)
    domain = Domain(a=Integers(0, 9), b=Integers(0, 4), c=Integers(0, 23))
    kinds = random.integers(0, 3, number)
    values = {
        "a": random.poisson(2 + 2 * kinds),
        "b": random.poisson(1 + kinds),
        "c": random.poisson(4 + 6 * kinds),
    }
    codes = {
        name: np.minimum(column, domain.kind(name).size - 1) for name, column in values.items()
    }
    workload = marginals(domain, upto=2)
    covered: dict[int, list[float]] = {1: [], 2: []}
    plan = plan_model(workload, Privacy(ZCDP("1/50")))
    for seed in range(25):
        estimator = run(plan, Table(domain, codes, rows=number), seed).estimator()
        for product in workload:
            if product.attributes:
                answer = estimator.estimate(product)
                errors = np.abs(answer.values - count_cells(codes, product))
                share = float((errors <= 1.96 * answer.std).mean())
                covered[len(product.attributes)].append(share)
    assert min(np.mean(covered[1]), np.mean(covered[2])) >= 0.9


def test_model_choices_depend_on_noisy_counts_only():
    plan = plan_model(PAIRS, Privacy(ZCDP("1/400")))
    outcome = run(plan, rows(3_000), 5)
    blocks = outcome.observation.measurements.blocks
    assert [block.attributes for block in blocks] == [
        *((name,) for name in NAMES),
        *combinations(NAMES, 2),
    ]
    sizes = [block.rows for block in blocks[len(NAMES) :]]
    cells = [DOMAIN.kind(a).size * DOMAIN.kind(b).size for a, b in combinations(NAMES, 2)]
    assert all(4 <= size <= most for size, most in zip(sizes, cells, strict=True))
    assert sum(sizes) < 0.7 * sum(cells)
    facts = outcome.finding.facts()
    assert (facts["tables"], facts["cells"]) == (10, sum(sizes))


def test_model_answers_three_way_tables_from_pairs():
    workload = marginals(DOMAIN, ways=3, of=("a0", "a1", "a3")) + RANGES
    outcome = run(plan_model(workload, Privacy(ZCDP("1/50"))), rows(5_000), 7)
    estimator = outcome.estimator()
    assert isinstance(estimator, ModelEstimator)
    for product in workload:
        cells = truth(5_000, product.attributes)
        exact = np.cumsum(cells, axis=0) if "a2" in product.attributes else cells
        answer = estimator.estimate(product)
        assert 0.5 * np.abs(answer.values - exact).sum() < 0.25 * exact.sum()
        assert is_covered(answer, exact).mean() > 0.9
    (unmeasured,) = queries(DOMAIN, a4="identity")
    with pytest.raises(
        InputError, match="The model has the attributes a0, a1, a2, a3; got a query on a4"
    ):
        estimator.estimate(unmeasured)


def test_intervals_allow_for_pairs_that_the_mixture_misses():
    """A table of three attributes is not measured here, so pairs are not moved."""
    domain = Domain(**{f"a{place}": Integers(0, 3) for place in range(4)})
    random = np.random.default_rng(4)
    number = 20_000
    codes = {name: random.integers(0, 4, number) for name in domain.names}
    codes["a1"] = (codes["a0"] + random.integers(0, 2, number)) % 4
    codes["a2"] = (codes["a1"] + random.integers(0, 2, number)) % 4
    codes["a3"] = np.where(random.random(number) < 0.7, codes["a2"], codes["a3"])
    pairs = marginals(domain, ways=2)
    workload = queries(domain, a0="identity", a1="identity", a2="identity") + pairs
    workload += queries(domain, a0="prefix")
    outcome = run(plan_model(workload, Privacy(ZCDP(35))), Table(domain, codes, rows=number), 1)
    estimator = outcome.estimator()
    assert isinstance(estimator, ModelEstimator)
    covered = []
    for product in pairs:
        exact = count_cells(codes, product)
        covered.append(is_covered(estimator.estimate(product), exact).mean())
    assert np.mean(covered) >= 0.9


def test_counts_of_values_limit_cells_of_bins():
    """A cell without rows shares a bin with a large one, and its value is measured as 0."""
    domain = ln.Domain(a=ln.Coded(4), b=ln.Coded(3))
    rows = pd.DataFrame({"a": np.arange(3_000) % 3, "b": np.arange(3_000) % 3})
    workload = ln.marginals(domain, ways=2) + ln.queries(domain, a="prefix")
    release = ln.release(ln.plan(workload, ln.ZCDP(200), strategy="model"), rows, seed=1)
    assert release.finding.facts()["regime"] == "model_bins"
    table = release.tables[0]
    exact = np.vstack([np.diag([1_000] * 3), np.zeros((1, 3))])
    assert ((table.low - 0.5 <= exact) & (exact <= table.high + 0.5)).mean() >= 0.9
    assert (table.high - table.low)[exact == 0].max() < 20


def step_names(plan):
    """Return the names of the steps of a plan; a choice of steps is called "one of"."""
    return [step.to_json()["step"] for step in plan.adaptive.steps]


def test_model_refuses_unsuited_plans_unpaid():
    large = Domain(a=Integers(0, 9_999), b=Integers(0, 9_999))
    with pytest.raises(InputError, match="answers tables of at most 4194304 cells"):
        plan_model(marginals(large, ways=2), Privacy(PureDP(1)))
    with pytest.raises(InputError, match="this workload has 0 pairs"):
        plan_model(marginals(DOMAIN, ways=1), Privacy(PureDP(1)))
    plan = plan_model(PAIRS, Privacy(PureDP(1)))
    for changed, message in (
        ({"steps": ()}, "differ from the steps of this version"),
        ({"noise": Noise.DISCRETE_GAUSSIAN}, "must be discrete_laplace"),
        ({"noise": Noise.ROUNDED_GAUSSIAN, "mu_squared": Fraction(1)}, "noise of the plan is from"),
        ({"reference": None}, "has no errors of a data-independent plan"),
    ):
        broken = replace(plan, adaptive=replace(plan.adaptive, **changed))
        with pytest.raises(InputError, match=message):
            mechanism_of(broken).prepare(broken)


@pytest.mark.parametrize(
    ("workload", "budget", "steps"),
    [
        (PAIRS, ZCDP("1/100"), ["total", "one of"]),
        # With so large a budget, tables are right for a hundred rows already.
        (PAIRS, PureDP(500), ["independent"]),
        # Prefix sums state nothing of the cells.
        (RANGES, ZCDP("1/100"), ["alone", "pairs"]),
    ],
)
def test_model_counts_rows_where_they_decide(workload, budget, steps):
    plan = plan_model(workload, Privacy(budget))
    assert step_names(plan) == steps
    assert (run(plan, rows(3_000), 3).finding.facts().get("rows") is None) == (steps[0] != "total")


@pytest.mark.parametrize(
    ("workload", "shared", "noise"),
    [
        (marginals(DOMAIN, ways=2, of=("a1", "a3", "a4")), "epsilon", Noise.DISCRETE_LAPLACE),
        (RANGES, "rho", Noise.ROUNDED_GAUSSIAN),
    ],
)
def test_model_uses_laplace_only_before_laplace_plans(workload, shared, noise, monkeypatch):
    # The plan of the reference now has the noise of the best of all strategies.
    monkeypatch.undo()
    plan = plan_model(workload, Privacy(ApproxDP(1, "1e-9")))
    assert plan.fallback is not None
    assert plan.fallback.measured().noise is Noise.DISCRETE_LAPLACE
    assert shared in parameters_by_name(plan.adaptive.steps[0].budget)
    # There are so few rows that tables are on bins.
    assert run(plan, rows(300), 3).observation.measurements.noise is noise


def test_model_counts_rows_as_precisely_as_needed():
    shares = []
    for budget in (ZCDP("1/100"), ZCDP("1/10000"), PureDP("1/10"), ApproxDP("1/10", "1e-9")):
        setting = setting_from_plan(plan_model(PAIRS, Privacy(budget)))
        row_count = setting.row_count(setting.counting_share)
        std = block_variance(row_count, row_count.blocks[0]) ** 0.5
        assert std < 0.05 * setting.deciding_rows or setting.counting_share == Fraction(1, 50)
        shares.append(setting.counting_share)
    assert min(shares) < Fraction(1, 100)


@pytest.mark.parametrize(
    ("rho", "regime"), [("1/4000", "model_bins"), ("1/40", "model_threes"), ("5", "model_tables")]
)
def test_model_measures_three_way_tables_with_enough_rows(rho, regime):
    """The attribute a2 is the sum of a0 and a1, of which tables of pairs show nothing."""
    domain = Domain(**{f"a{place}": Integers(0, 5) for place in range(4)})
    random = np.random.default_rng(3)
    number = 20_000
    codes = {name: random.integers(0, 6, number) for name in domain.names}
    codes["a2"] = (codes["a0"] + codes["a1"]) % 6
    workload = marginals(domain, ways=3)
    table = Table(domain, codes, rows=number)
    outcome = run(plan_model(workload, Privacy(ZCDP(rho))), table, 4)
    assert outcome.finding.facts()["regime"] == regime
    answers = {product: outcome.estimator().estimate(product) for product in workload}
    assert disagreement_of(answers) < 1e-6 * number
    for product, answer in answers.items():
        exact = count_cells(codes, product)
        assert (answer.values >= 0).all()
        if regime != "model_bins":
            assert 0.5 * np.abs(answer.values - exact).sum() < 0.25 * number
            assert is_covered(answer, exact).mean() > 0.9


CHAIN_DOMAIN = Domain(**{f"a{place}": Integers(0, 9) for place in range(6)})
CHAIN_PAIRS = marginals(CHAIN_DOMAIN, ways=2)


@pytest.fixture(scope="module")
def chain_codes():
    """Return rows in which each attribute mostly repeats the one before it.

    A mixture of kinds of rows describes them badly.
    """
    random = np.random.default_rng(3)
    columns = [np.random.default_rng(2).integers(0, 10, 20_000)]
    for _ in range(5):
        repeats = random.random(20_000) < 0.8
        columns.append(np.where(repeats, columns[-1], random.integers(0, 10, 20_000)))
    return dict(zip(CHAIN_DOMAIN.names, columns, strict=True))


def test_model_follows_measurements_that_its_mixture_misses(chain_codes):
    table = Table(CHAIN_DOMAIN, chain_codes, rows=20_000)
    estimator = run(plan_model(CHAIN_PAIRS, Privacy(ZCDP("1/60"))), table, 4).estimator()
    assert isinstance(estimator, ModelEstimator)
    (product,) = marginals(CHAIN_DOMAIN, ways=2, of=("a0", "a1"))
    exact = count_cells(chain_codes, product)
    mixture_counts = estimator.measured.counts(estimator.mixture, ("a0", "a1"))
    error_of_mixture = np.abs(mixture_counts - exact).sum()
    assert np.abs(estimator.estimate(product).values - exact).sum() < 0.8 * error_of_mixture


def test_model_tables_follow_measurements_it_misses(chain_codes):
    table = Table(CHAIN_DOMAIN, chain_codes, rows=20_000)
    estimator = run(plan_model(CHAIN_PAIRS, Privacy(ZCDP("1/2"))), table, 4).estimator()
    assert isinstance(estimator, ShrunkToModel)
    assert estimator._relative_gaps["a0", "a1"] > 1.3
    assert estimator._relative_gaps["a0", "a5"] == 1

    def true_error(model_share):
        """Return the mean squared error of tables moved by a share towards the model."""
        model = estimator._model_components(estimator.mixture)
        tables = estimator._interpolate_tables(estimator._parts, model, model_share)
        errors = [
            (tables.marginal(pair.attributes) - count_cells(chain_codes, pair)) ** 2
            for pair in CHAIN_PAIRS
        ]
        return float(np.mean(errors))

    # The risk is the squared error in units of the noise.
    model_share, _, risk = estimator._published
    error = true_error(model_share)
    assert error < 1.05 * min(true_error(0.0), error, true_error(0.9))
    variances = [estimator.least_squares.estimate(pair).noise_std ** 2 for pair in CHAIN_PAIRS]
    assert 0.5 * error < risk * np.mean(variances)


IMPOSSIBLE = ({"a0": (0, 1, 2), "a1": (3, 5)}, {"a3": (1,), "a4": (0, 4)})


def plan_with_impossible():
    search = Search("model", seconds=5, impossible=IMPOSSIBLE)
    return mechanism_for("model", PAIRS).plan(PAIRS, Privacy(ZCDP("1/50")), search)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2_000, 300_000])
def test_impossible_combinations_are_exact_zeros(number):
    codes = codes_of(number)
    for combination in IMPOSSIBLE:
        (name, values), (changed_name, changed_values) = combination.items()
        is_impossible = np.isin(codes[name], values) & np.isin(codes[changed_name], changed_values)
        codes[changed_name][is_impossible] = 1
    plan = Plan.from_json(plan_with_impossible().to_json())
    outcome = run(plan, Table(DOMAIN, codes, rows=number), 3)
    answers = {product: outcome.estimator().estimate(product) for product in PAIRS}
    assert disagreement_of(answers) < 1e-6 * number
    answers_by_names = {product.attributes: answer for product, answer in answers.items()}
    for combination in IMPOSSIBLE:
        answer = answers_by_names[tuple(combination)]
        cells = np.ix_(*combination.values())
        assert (answer.values[cells] == 0).all()
        assert (answer.std[cells] == 0).all()
        for distances in answer.interval_distances(2, 2, 0.5):
            assert distances[cells].max(initial=0) == 0
        assert (answer.values > 0).mean() > 0.4

    records = make_records(outcome)
    a0, a1 = (records.codes[:, records.names.index(name)] for name in ("a0", "a1"))
    assert not (np.isin(a0, (0, 1, 2)) & np.isin(a1, (3, 5))).any()


def test_impossible_combinations_are_stated():
    plan = plan_with_impossible()
    assert format_public_facts(plan) == {
        "stated_impossible": "a0 0, 1, 2 x a1 3, 5; a3 1 x a4 0, 4"
    }
    broken = replace(plan, details=replace(plan.details, impossible=({"a0": (12,)},)))
    with pytest.raises(InputError, match="impossible values of a0 that the domain does not have"):
        mechanism_of(broken).prepare(broken)


def test_impossible_pairs_keep_sums_of_three_way_tables():
    from leastnoise._estimation import apply_public_facts

    cube = np.random.default_rng(1).random((4, 3, 5)) + 0.1
    names = ("a", "b", "c")

    def table(attributes):
        return np.asarray(
            cube.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in attributes))
        )

    impossible = [(("a", (0, 1)), ("c", (2,))), (("a", (3,)), ("b", (0,)), ("c", (0, 4)))]
    cells = apply_public_facts(table, names, impossible)
    assert (cells[:2, :, 2] == 0).all()
    assert (cells[3, 0, [0, 4]] == 0).all()
    assert (cells == 0).sum() == 2 * 3 + 2
    assert cells.sum(axis=1) == pytest.approx(
        apply_public_facts(table, ("a", "c"), impossible), abs=1e-8
    )
    assert cells.sum(axis=2) == pytest.approx(table(("a", "b")), abs=1e-8)


def test_model_answers_a_single_attribute():
    """An attribute is in no pair with others, also if the other has a single cell."""
    domain = ln.Domain(age=ln.Integers(0, 3), pay=ln.Integers(0, 3), sex=["F", "M"], place=["here"])
    rows = pd.DataFrame(
        {"age": [0, 1, 2, 3] * 15, "pay": [3, 1] * 30, "sex": ["F", "M", "M"] * 20, "place": "here"}
    )
    pair = ln.queries(domain, age="identity", sex="identity")
    for single in (
        ln.queries(domain, pay="all_ranges"),
        ln.queries(domain, pay="identity", place="identity"),
    ):
        plan = ln.plan(pair + single, ln.PureDP(2), strategy="model")
        release = ln.release(plan, rows, seed=1)
        assert len(release.answers) == 8 + single.rows
