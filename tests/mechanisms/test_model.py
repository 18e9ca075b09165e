"""The model mechanism: its tables, its accuracy, and the coverage of its intervals."""

from collections.abc import Mapping
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
from leastnoise._mechanisms import Search, _model, mechanism_for, mechanism_of
from leastnoise._mechanisms._model import setting_from_plan
from leastnoise._plan import Plan
from leastnoise._release import format_public_facts, make_records
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
from leastnoise._workload import Product, Workload, marginals, queries
from mechanisms.running import run

SIZES = (12, 8, 30, 2, 5)
DOMAIN = Domain(**{f"a{place}": Integers(0, size - 1) for place, size in enumerate(SIZES)})
NAMES = DOMAIN.names
PAIRS = marginals(DOMAIN, ways=2)
RANGES = queries(DOMAIN, a2="prefix", a3="identity")


@pytest.fixture(autouse=True)
def one_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reference measure tables by name, without the slow search."""
    real = _model.choose_plan
    monkeypatch.setattr(
        _model,
        "choose_plan",
        lambda asked, privacy, search: real(asked, privacy, replace(search, strategy="marginals")),
    )


@lru_cache(maxsize=4)
def rows(number: int) -> Table:
    """As the kernel takes them."""
    return Table(DOMAIN, codes_of(number), rows=number)


def codes_of(number: int) -> dict[str, np.ndarray]:
    """Rows of six kinds, whose attributes depend on each other through their kind."""
    random = np.random.default_rng(8)
    kinds = random.choice(6, number, p=random.dirichlet(np.ones(6)))
    codes = {}
    for name, size in zip(NAMES, SIZES, strict=True):
        probabilities = random.dirichlet(np.full(size, 0.4), 6)
        codes[name] = (
            (random.random(number)[:, None] > np.cumsum(probabilities, axis=1)[kinds])
            .sum(axis=1)
            .clip(max=size - 1)
            .astype(np.int64)
        )
    return codes


def counted(codes: Mapping[str, np.ndarray], product: Product) -> np.ndarray:
    """Rows in each cell of a table."""
    places = np.ravel_multi_index([codes[name] for name in product.attributes], product.shape)
    return np.bincount(places, minlength=product.rows).reshape(product.shape)


@lru_cache(maxsize=4)
def truth(number: int, names: tuple[str, ...]) -> np.ndarray:
    return counted(
        codes_of(number), queries(DOMAIN, **dict.fromkeys(names, "identity")).products[0]
    )


def planned(workload: Workload, privacy: Privacy) -> Plan:
    return mechanism_for("model", workload).plan(workload, privacy, Search("model", seconds=5))


def misplaced(tables: Mapping[tuple[str, ...], np.ndarray], number: int) -> float:
    """The mean share of rows in wrong cells."""
    return float(
        np.mean(
            [
                0.5 * np.abs(cells - truth(number, names)).sum() / number
                for names, cells in tables.items()
            ]
        )
    )


@pytest.mark.parametrize(
    ("number", "budget", "regime", "most"),
    [
        (3_000, ZCDP("1/100"), "model_bins", 0.8),
        (3_000, PureDP("1/2"), "model_bins", 0.85),
        # Epsilon and delta add up by parts, which costs more.
        (
            3_000,
            ApproxDP(1, "1e-9"),
            "model_bins",
            1.2,
        ),
        (300_000, PureDP(2), "model_tables", 1.05),
    ],
)
def test_answers_are_nearer_than_least_squares(
    number: int, budget: object, regime: str, most: float
) -> None:
    privacy = Privacy(budget)  # type: ignore[arg-type]
    outcome = run(planned(PAIRS, privacy), rows(number), 3)
    assert outcome.finding.facts()["regime"] == regime
    assert abs(outcome.finding.facts()["rows"] - number) < 0.3 * number
    tables, estimator = [pair.attributes for pair in PAIRS], outcome.estimator()
    plan = mechanism_for("marginals", PAIRS).plan(PAIRS, privacy, Search("marginals"))
    near = locally_non_negative(run(plan, rows(number), 3).estimator(), tables)  # type: ignore[arg-type]
    error = misplaced({pair.attributes: estimator.estimate(pair).values for pair in PAIRS}, number)
    assert error < most * misplaced({names: near.marginal(names) for names in tables}, number)


@pytest.mark.parametrize(("number", "budget"), [(5_000, ZCDP("1/50")), (300_000, ZCDP("1/20"))])
def test_intervals_hold_the_truth_and_answers_agree(number: int, budget: ZCDP) -> None:
    plan = planned(PAIRS, Privacy(budget))
    covered: list[tuple[int, float]] = []
    for seed in (11, 12):
        estimator = run(plan, rows(number), seed).estimator()
        answers = {product: estimator.estimate(product) for product in PAIRS}
        assert (
            disagreement({product.attributes: answer.values for product, answer in answers.items()})
            < 1e-6 * number
        )
        for product, answer in answers.items():
            assert (answer.values >= 0).all()
            assert (answer.noise_std > 0).all()
            inside = (
                np.abs(answer.values - truth(number, product.attributes)) <= 1.96 * answer.std + 0.5
            )
            covered.append((product.rows, float(inside.mean())))
    assert (
        np.average([share for _, share in covered], weights=[cells for cells, _ in covered]) >= 0.95
    )
    assert min(share for cells, share in covered if cells >= 50) >= 0.85


@pytest.mark.parametrize("number", [30, 300])
def test_intervals_of_few_rows_hold_the_truth(number: int) -> None:
    # What cells are missed by is estimated from a few of each size here; in some releases it looks
    # like nothing.
    random = np.random.default_rng(number)
    domain = Domain(a=Integers(0, 9), b=Integers(0, 4), c=Integers(0, 23))
    kinds = random.integers(0, 3, number)
    drawn = {
        "a": random.poisson(2 + 2 * kinds),
        "b": random.poisson(1 + kinds),
        "c": random.poisson(4 + 6 * kinds),
    }
    codes = {name: np.minimum(values, domain.kind(name).size - 1) for name, values in drawn.items()}
    workload = marginals(domain, upto=2)
    covered: dict[int, list[float]] = {1: [], 2: []}
    plan = planned(workload, Privacy(ZCDP("1/50")))
    for seed in range(25):
        estimator = run(plan, Table(domain, codes, rows=number), seed).estimator()
        for product in workload:
            if product.attributes:
                cells = counted(codes, product)
                answer = estimator.estimate(product)
                covered[len(product.attributes)].append(
                    float((np.abs(answer.values - cells) <= 1.96 * answer.std).mean())
                )
    assert min(np.mean(covered[1]), np.mean(covered[2])) >= 0.9


def test_model_choices_depend_on_noisy_counts_only() -> None:
    plan = planned(PAIRS, Privacy(ZCDP("1/400")))
    outcome = run(plan, rows(3_000), 5)
    blocks = outcome.observation.measurements.blocks
    assert [block.attributes for block in blocks] == [
        *((name,) for name in NAMES),
        *combinations(NAMES, 2),
    ]
    sizes = [block.rows for block in blocks[len(NAMES) :]]
    whole = [DOMAIN.kind(a).size * DOMAIN.kind(b).size for a, b in combinations(NAMES, 2)]
    assert all(4 <= size <= most for size, most in zip(sizes, whole, strict=True))
    assert sum(sizes) < 0.7 * sum(whole)
    facts = outcome.finding.facts()
    assert (facts["tables"], facts["cells"]) == (10, sum(sizes))


def test_model_answers_three_way_tables_from_pairs() -> None:
    workload = marginals(DOMAIN, ways=3, of=("a0", "a1", "a3")) + queries(
        DOMAIN, a2="prefix", a3="identity"
    )
    outcome = run(planned(workload, Privacy(ZCDP("1/50"))), rows(5_000), 7)
    estimator = outcome.estimator()
    assert isinstance(estimator, ModelEstimator)
    for product in workload:
        cells = truth(5_000, product.attributes)
        exact = np.cumsum(cells, axis=0) if "a2" in product.attributes else cells
        answer = estimator.estimate(product)
        assert 0.5 * np.abs(answer.values - exact).sum() < 0.25 * exact.sum()
        assert (np.abs(answer.values - exact) <= 1.96 * answer.std + 0.5).mean() > 0.9
    (other,) = queries(DOMAIN, a4="identity").products
    with pytest.raises(
        InputError, match="The model has the attributes a0, a1, a2, a3; got a query on a4"
    ):
        estimator.estimate(other)


def step_names(plan: Plan) -> list[str]:
    """Return the names of the steps of a plan; a choice of steps is called "one of"."""
    return [step.to_json()["step"] for step in plan.adaptive.steps]


def test_model_refuses_unsuited_plans_unpaid() -> None:
    large = Domain(a=Integers(0, 9_999), b=Integers(0, 9_999))
    with pytest.raises(InputError, match="answers tables of at most 4194304 cells"):
        planned(marginals(large, ways=2), Privacy(PureDP(1)))
    with pytest.raises(InputError, match="this workload has 0 pairs"):
        planned(marginals(DOMAIN, ways=1), Privacy(PureDP(1)))
    plan = planned(PAIRS, Privacy(PureDP(1)))
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
        (PAIRS, PureDP(500), ["independent"]),  # right for a hundred rows already
        (RANGES, ZCDP("1/100"), ["alone", "pairs"]),  # nothing is known of cells
    ],
)
def test_model_counts_rows_where_they_decide(
    workload: Workload, budget: object, steps: list[str]
) -> None:
    plan = planned(workload, Privacy(budget))  # type: ignore[arg-type]
    assert step_names(plan) == steps
    assert (run(plan, rows(3_000), 3).finding.facts().get("rows") is None) == (steps[0] != "total")


@pytest.mark.parametrize(
    ("workload", "shared", "noise"),
    [
        (marginals(DOMAIN, ways=2, of=("a1", "a3", "a4")), "epsilon", Noise.DISCRETE_LAPLACE),
        (RANGES, "rho", Noise.ROUNDED_GAUSSIAN),
    ],
)
def test_model_uses_laplace_only_before_laplace_plans(
    workload: Workload, shared: str, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # what follows has the noise of the best of all strategies
    plan = planned(workload, Privacy(ApproxDP(1, "1e-9")))
    assert plan.fallback is not None
    assert plan.fallback.measured().noise is Noise.DISCRETE_LAPLACE
    assert shared in parameters_by_name(plan.adaptive.steps[0].budget)
    # There are so few rows that tables are on bins.
    assert run(plan, rows(300), 3).observation.measurements.noise is noise


def test_model_counts_rows_as_precisely_as_needed() -> None:
    shares = []
    for budget in (ZCDP("1/100"), ZCDP("1/10000"), PureDP("1/10"), ApproxDP("1/10", "1e-9")):
        setting = setting_from_plan(planned(PAIRS, Privacy(budget)))  # type: ignore[arg-type]
        counted = setting.row_count(setting.counting_share)
        std = block_variance(counted, counted.blocks[0]) ** 0.5
        assert std < 0.05 * setting.deciding_rows or setting.counting_share == Fraction(1, 50)
        shares.append(setting.counting_share)
    assert min(shares) < Fraction(1, 100)


@pytest.mark.parametrize(
    ("rho", "regime"), [("1/4000", "model_bins"), ("1/40", "model_threes"), ("5", "model_tables")]
)
def test_model_measures_three_way_tables_with_enough_rows(rho: str, regime: str) -> None:
    """Pairs tell nothing of what a third attribute has of two others."""
    domain, random, number = (
        Domain(**{f"a{place}": Integers(0, 5) for place in range(4)}),
        np.random.default_rng(3),
        20_000,
    )
    codes = [random.integers(0, 6, number) for _ in range(4)]
    codes[2] = (codes[0] + codes[1]) % 6
    threes = marginals(domain, ways=3)
    outcome = run(
        planned(threes, Privacy(ZCDP(rho))),
        Table(domain, dict(zip(domain.names, codes, strict=True)), rows=number),
        4,
    )
    assert outcome.finding.facts()["regime"] == regime
    answers = {product: outcome.estimator().estimate(product) for product in threes}
    assert (
        disagreement({product.attributes: answer.values for product, answer in answers.items()})
        < 1e-6 * number
    )
    for product, answer in answers.items():
        exact = counted(dict(zip(domain.names, codes, strict=True)), product)
        assert (answer.values >= 0).all()
        if regime != "model_bins":
            assert 0.5 * np.abs(answer.values - exact).sum() < 0.25 * number
            assert (np.abs(answer.values - exact) <= 1.96 * answer.std + 0.5).mean() > 0.9


def test_model_tables_follow_measurements_it_misses() -> None:
    """A chain: each attribute mostly repeats the one before it, which kinds of rows tell badly."""
    domain = Domain(**{f"a{place}": Integers(0, 9) for place in range(6)})
    random, codes = np.random.default_rng(3), [np.random.default_rng(2).integers(0, 10, 20_000)]
    for _ in range(5):
        codes.append(
            np.where(random.random(20_000) < 0.8, codes[-1], random.integers(0, 10, 20_000))
        )
    chain = Table(domain, dict(zip(domain.names, codes, strict=True)), rows=20_000)
    pairs = marginals(domain, ways=2)
    estimator = run(planned(pairs, Privacy(ZCDP("1/60"))), chain, 4).estimator()
    assert isinstance(estimator, ModelEstimator)
    (product,) = marginals(domain, ways=2, of=("a0", "a1"))
    column_codes = dict(zip(domain.names, codes, strict=True))
    exact = counted(column_codes, product)
    alone = np.abs(estimator.measured.counts(estimator.mixture, ("a0", "a1")) - exact).sum()
    assert np.abs(estimator.estimate(product).values - exact).sum() < 0.8 * alone
    tables = run(planned(pairs, Privacy(ZCDP("1/2"))), chain, 4).estimator()
    assert isinstance(tables, ShrunkToModel)
    assert tables._relative_gaps["a0", "a1"] > 1.3
    assert tables._relative_gaps["a0", "a5"] == 1
    way, _, left = tables._published
    risks = {}
    for other in (0.0, way, 0.9):  # the true errors of what is published
        near = tables._interpolate_tables(
            tables._parts, tables._model_components(tables.mixture), other
        )
        risks[other] = float(
            np.mean(
                [
                    (near.marginal(pair.attributes) - counted(column_codes, pair)) ** 2
                    for pair in pairs
                ]
            )
        )
    noise = np.mean([tables.least_squares.estimate(pair).noise_std ** 2 for pair in pairs])
    assert risks[way] < 1.05 * min(risks.values())
    assert 0.5 * risks[way] < left * noise


@pytest.mark.parametrize("number", [2_000, 300_000])
def test_impossible_combinations_are_exact_zeros(number: int) -> None:
    impossible = ({"a0": (0, 1, 2), "a1": (3, 5)}, {"a3": (1,), "a4": (0, 4)})
    codes = codes_of(number)
    for combination in impossible:
        (first, few), (second, others) = combination.items()
        codes[second][np.isin(codes[first], few) & np.isin(codes[second], others)] = 1
    table = Table(DOMAIN, codes, rows=number)
    plan = mechanism_for("model", PAIRS).plan(
        PAIRS, Privacy(ZCDP("1/50")), Search("model", seconds=5, impossible=impossible)
    )
    outcome = run(Plan.from_json(plan.to_json()), table, 3)
    answers = {product.attributes: outcome.estimator().estimate(product) for product in PAIRS}
    assert disagreement({names: answer.values for names, answer in answers.items()}) < 1e-6 * number
    for names, answer in answers.items():
        for combination in impossible:
            if set(combination) == set(names):
                cells = np.ix_(*(combination[name] for name in names))
                assert (answer.values[cells] == 0).all()
                assert (answer.std[cells] == 0).all()
                assert (
                    max(
                        reach[cells].max(initial=0)
                        for reach in answer.interval_distances(2, 2, 0.5)
                    )
                    == 0
                )
                assert (answer.values > 0).mean() > 0.4
    records = make_records(outcome)
    columns = [records.names.index(name) for name in ("a0", "a1")]
    assert not (
        np.isin(records.codes[:, columns[0]], (0, 1, 2))
        & np.isin(records.codes[:, columns[1]], (3, 5))
    ).any()
    assert format_public_facts(plan) == {
        "stated_impossible": "a0 0, 1, 2 x a1 3, 5; a3 1 x a4 0, 4"
    }
    broken = replace(plan, details=replace(plan.details, impossible=({"a0": (12,)},)))
    with pytest.raises(InputError, match="impossible values of a0 that the domain does not have"):
        mechanism_of(broken).prepare(broken)


def test_impossible_pairs_keep_sums_of_three_way_tables() -> None:
    from leastnoise._estimation import apply_public_facts

    cube = np.random.default_rng(1).random((4, 3, 5)) + 0.1
    names = ("a", "b", "c")

    def table(attributes: tuple[str, ...]) -> np.ndarray:
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


def test_model_answers_a_single_attribute() -> None:
    """Beside a pair of others; also one of a single cell, which is in no pair."""
    domain = ln.Domain(age=ln.Integers(0, 3), pay=ln.Integers(0, 3), sex=["F", "M"], place=["here"])
    rows = pd.DataFrame(
        {"age": [0, 1, 2, 3] * 15, "pay": [3, 1] * 30, "sex": ["F", "M", "M"] * 20, "place": "here"}
    )
    pair = ln.queries(domain, age="identity", sex="identity")
    for alone in (
        ln.queries(domain, pay="all_ranges"),
        ln.queries(domain, pay="identity", place="identity"),
    ):
        release = ln.release(ln.plan(pair + alone, ln.PureDP(2), strategy="model"), rows, seed=1)
        assert len(release.answers) == 8 + alone.rows
