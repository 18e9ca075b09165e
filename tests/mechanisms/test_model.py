"""Tables from a model: which tables it measures, how near its answers are, and whether intervals hold the truth."""

from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._accounting import ZCDP, ApproxDP, Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers
from leastnoise._estimate import Modelled, Outcome, locally_non_negative
from leastnoise._mechanisms import Search, mechanism_for, mechanism_of
from leastnoise._plan import Plan
from leastnoise._table import Table
from leastnoise._workload import Workload, marginals, queries
from mechanisms.running import run

SIZES = (12, 8, 30, 2, 5)
DOMAIN = Domain(**{f"a{place}": Integers(0, size - 1) for place, size in enumerate(SIZES)})
NAMES = DOMAIN.names
PAIRS = marginals(DOMAIN, ways=2)


@lru_cache(maxsize=4)
def rows(number: int) -> Table:
    """Rows of six kinds, whose attributes depend on each other through their kind."""
    random = np.random.default_rng(8)
    kinds = random.choice(6, number, p=random.dirichlet(np.ones(6)))
    codes = {}
    for name, size in zip(NAMES, SIZES, strict=True):
        own = random.dirichlet(np.full(size, 0.4), 6)
        codes[name] = (random.random(number)[:, None] > np.cumsum(own, axis=1)[kinds]).sum(axis=1).clip(max=size - 1).astype(np.int64)
    return Table(DOMAIN, codes, rows=number)


@lru_cache(maxsize=4)
def truth(number: int, names: tuple[str, ...]) -> np.ndarray:
    from leastnoise._kernel._count import count

    ((_, cells),) = count(rows(number), [names])
    return np.asarray(cells).reshape([DOMAIN.kind(name).size for name in names])


def planned(workload: Workload, privacy: Privacy) -> Plan:
    return mechanism_for("model", workload).plan(workload, privacy, Search("model", seconds=5))


def misplaced(outcome: Outcome, number: int) -> float:
    """The mean share of rows in wrong cells."""
    estimator = outcome.estimator()
    return float(np.mean([0.5 * np.abs(estimator.estimate(one).values - truth(number, one.attributes)).sum() / number for one in PAIRS]))


def least_squares(privacy: Privacy, number: int) -> float:
    """The same of the nearest non-negative tables to the best plan's answers."""
    plan = mechanism_for("marginals", PAIRS).plan(PAIRS, privacy, Search("marginals"))
    near = locally_non_negative(run(plan, rows(number), 3).estimator(), [one.attributes for one in PAIRS])  # type: ignore[arg-type]
    return float(np.mean([0.5 * np.abs(near.marginal(one.attributes) - truth(number, one.attributes)).sum() / number for one in PAIRS]))


@pytest.mark.parametrize(
    ("number", "budget", "regime", "most"),
    [
        (3_000, ZCDP("1/100"), "model_bins", 0.8),
        (3_000, PureDP("1/2"), "model_bins", 0.85),
        (3_000, ApproxDP(1, "1e-9"), "model_bins", 1.2),  # shares of epsilon and delta add up by parts, which costs more
        (300_000, ZCDP("1/20"), "model_tables", 1.05),
        (300_000, PureDP(2), "model_tables", 1.05),
    ],
)
def test_answers_are_nearer_than_least_squares(number: int, budget: object, regime: str, most: float) -> None:
    privacy = Privacy(budget)  # type: ignore[arg-type]
    outcome = run(planned(PAIRS, privacy), rows(number), 3)
    assert outcome.finding.facts()["regime"] == regime
    assert abs(outcome.finding.facts()["rows"] - number) < 0.3 * number
    assert misplaced(outcome, number) < most * least_squares(privacy, number)


@pytest.mark.parametrize(("number", "budget"), [(5_000, ZCDP("1/50")), (300_000, ZCDP("1/20"))])
def test_intervals_hold_the_truth_and_answers_agree(number: int, budget: ZCDP) -> None:
    plan = planned(PAIRS, Privacy(budget))
    held: list[tuple[int, float]] = []
    for seed in (11, 12):
        estimator = run(plan, rows(number), seed).estimator()
        alone: dict[str, np.ndarray] = {}
        for product in PAIRS:
            answer = estimator.estimate(product)
            assert (answer.values >= 0).all()
            assert (answer.noise_std > 0).all()
            inside = np.abs(answer.values - truth(number, product.attributes)) <= 1.96 * answer.std + 0.5
            held.append((product.rows, float(inside.mean())))
            for axis, name in enumerate(product.attributes):
                own = answer.values.sum(axis=1 - axis)
                assert own == pytest.approx(alone.setdefault(name, own), rel=1e-6, abs=1e-6 * number)
    assert np.average([share for _, share in held], weights=[cells for cells, _ in held]) >= 0.95
    assert min(share for cells, share in held if cells >= 50) >= 0.85


def test_what_is_measured_follows_from_noisy_counts_alone() -> None:
    plan = planned(PAIRS, Privacy(ZCDP("1/100")))
    outcome = run(plan, rows(3_000), 5)
    blocks = outcome.observation.measurements.blocks
    assert [block.attributes for block in blocks] == [*((name,) for name in NAMES), *combinations(NAMES, 2)]
    sizes = [block.rows for block in blocks[len(NAMES) :]]
    whole = [DOMAIN.kind(a).size * DOMAIN.kind(b).size for a, b in combinations(NAMES, 2)]
    assert all(4 <= own <= most for own, most in zip(sizes, whole, strict=True))
    assert sum(sizes) < 0.7 * sum(whole)
    facts = outcome.finding.facts()
    assert (facts["tables"], facts["cells"]) == (10, sum(sizes))


def test_tables_of_three_attributes_levels_and_prefix_sums_come_from_the_pairs() -> None:
    workload = marginals(DOMAIN, ways=3, of=("a0", "a1", "a3")) + queries(DOMAIN, a2="prefix", a3="identity")
    outcome = run(planned(workload, Privacy(ZCDP("1/50"))), rows(5_000), 7)
    estimator = outcome.estimator()
    assert isinstance(estimator, Modelled)
    for product in workload:
        cells = truth(5_000, product.attributes)
        exact = np.cumsum(cells, axis=0) if "a2" in product.attributes else cells
        answer = estimator.estimate(product)
        assert 0.5 * np.abs(answer.values - exact).sum() < 0.25 * exact.sum()
        assert (np.abs(answer.values - exact) <= 1.96 * answer.std + 0.5).mean() > 0.9
    (other,) = queries(DOMAIN, a4="identity").products
    with pytest.raises(InputError, match="The model is of a0, a1, a2, a3; got a question about a4"):
        estimator.estimate(other)


def test_what_a_model_cannot_do_is_refused_unpaid() -> None:
    large = Domain(a=Integers(0, 9_999), b=Integers(0, 9_999))
    with pytest.raises(InputError, match="answers tables of at most 4194304 cells"):
        planned(marginals(large, ways=2), Privacy(PureDP(1)))
    with pytest.raises(InputError, match="this workload has 0 pairs"):
        planned(marginals(DOMAIN, ways=1), Privacy(PureDP(1)))
    plan = planned(PAIRS, Privacy(PureDP(1)))
    for details, message in (({**plan.details, "steps": []}, "are not those"), ({**plan.details, "reference": {}}, "cannot be read")):
        broken = Plan(workload=plan.workload, privacy=plan.privacy, strategy="model", details=details, fallback=plan.fallback)
        with pytest.raises(InputError, match=message):
            mechanism_of(broken).ready(broken)


def test_an_attribute_that_is_asked_about_alone_is_answered_too() -> None:
    """Beside a pair of others; also one of a single cell, which is in no pair."""
    domain = ln.Domain(age=ln.Integers(0, 3), pay=ln.Integers(0, 3), sex=["F", "M"], place=["here"])
    rows = pd.DataFrame({"age": [0, 1, 2, 3] * 15, "pay": [3, 1] * 30, "sex": ["F", "M", "M"] * 20, "place": "here"})
    pair = ln.queries(domain, age="identity", sex="identity")
    for alone in (ln.queries(domain, pay="all_ranges"), ln.queries(domain, pay="identity", place="identity")):
        release = ln.release(ln.plan(pair + alone, ln.PureDP(2), strategy="model"), rows, seed=1)
        assert len(release.answers) == 8 + alone.rows
