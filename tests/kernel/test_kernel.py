"""The kernel: verified, paid, then drawn, in no other order; and exact."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy.plans import CASES, DOMAIN, NAMES, TREE, A, B, C, Case
from kernel.series import many_steps, measure, one_step
from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._accuracy import block_rows, promised, structures
from leastnoise._check import BudgetError, InputError
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._estimate import Estimate
from leastnoise._fitting import fit
from leastnoise._kernel import Ledger, SeededEntropy, Series, SystemEntropy, _measure, simulate
from leastnoise._linop import AllRanges, Identity, Operator
from leastnoise._measurements import Block, Factor, Limits, Measurements
from leastnoise._table import Table, columns_of
from simulated import realised

BLOCKS = [
    (Block((A, B), Fraction(1)), 1.0),
    (Block((B, C), Fraction(1)), 0.3),
    (Block((), Fraction(1)), 2.0),
    (Block((A,), Fraction(1), "pay"), 0.01),
]
BUDGETS = [(PureDP("1/2"), Noise.DISCRETE_LAPLACE), (ZCDP("1/8"), Noise.DISCRETE_GAUSSIAN), (ApproxDP(1, "1e-6"), Noise.ROUNDED_GAUSSIAN)]


def table(rows: int = 400, seed: int = 0, **unit: object) -> Table:
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, DOMAIN.kind(name).size, rows) for name in NAMES}
    return Table(DOMAIN, codes, {"pay": rng.integers(0, 51, rows)}, **unit)  # type: ignore[arg-type]


def cells_of(codes: dict[str, np.ndarray], weights: np.ndarray | None = None) -> np.ndarray:
    flat = np.ravel_multi_index([codes[name] for name in NAMES], DOMAIN.shape)
    return np.bincount(flat, weights=weights, minlength=DOMAIN.size).astype(np.int64)


def plan(budget: PureDP | ZCDP | ApproxDP = BUDGETS[0][0], mechanism: str = Noise.DISCRETE_LAPLACE, **privacy: object) -> Measurements:
    return fit(DOMAIN, Privacy(budget, **privacy), mechanism, BLOCKS)  # type: ignore[arg-type]


def ledger(folder: Path, budget: PureDP | ZCDP | ApproxDP = BUDGETS[0][0], **privacy: object) -> Ledger:
    return Ledger.create(folder / "people.ledger", "people", Privacy(budget, **privacy))  # type: ignore[arg-type]


@pytest.mark.parametrize(("budget", "mechanism"), BUDGETS)
def test_a_release_is_paid_and_private(tmp_path: Path, budget: PureDP | ZCDP | ApproxDP, mechanism: str) -> None:
    book = ledger(tmp_path, budget)
    observation, receipt = measure(plan(budget, mechanism), table(), book, output="out", description="test")
    (entry,) = book.entries()
    assert (observation.private, observation.receipt, entry.id, entry.state) == (True, receipt.id, receipt.id, "reserved")
    assert entry.plan_digest == one_step(observation.measurements).digest()
    with pytest.raises(BudgetError):
        measure(plan(budget, mechanism), table(), book, output="again")
    assert len(book.entries()) == 1


def test_the_ledger_is_written_before_any_noise_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = ledger(tmp_path)
    seen = []

    def sampler(*arguments: object) -> np.ndarray:
        seen.append(len(Ledger.open(book.path).entries()))
        raise KeyboardInterrupt

    monkeypatch.setitem(_measure.SAMPLERS, Noise.DISCRETE_LAPLACE, sampler)
    with pytest.raises(KeyboardInterrupt):
        measure(plan(), table(), book, output="out")
    assert seen == [1]
    assert len(book.entries()) == 1  # paid and absent


def test_nothing_is_counted_before_it_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = ledger(tmp_path, PureDP("1/4"))
    monkeypatch.setattr(_measure, "count", lambda *arguments: pytest.fail("the rows were touched before the ledger agreed"))
    with pytest.raises(BudgetError):
        measure(plan(), table(), book, output="out")
    assert book.entries() == ()


def test_a_plan_that_costs_more_than_it_says_is_refused(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    honest = plan()
    liar = replace(honest, blocks=(replace(honest.blocks[0], scale=honest.blocks[0].scale / 2), *honest.blocks[1:]))
    with pytest.raises(
        InputError, match=r"queries cost more than the budget they declare, PureDP\(epsilon='1/2'\). Make the plan again; nothing was spent"
    ):
        measure(liar, table(), book, output="out")
    assert book.entries() == ()


def test_a_table_of_another_domain_or_unit_is_refused(tmp_path: Path) -> None:
    other = Table(Domain(a=["x", "y"]), {"a": [0, 1]})
    with pytest.raises(InputError, match="encoded over another domain than the plan's"):
        measure(plan(), other, ledger(tmp_path), output="out")
    with pytest.raises(InputError, match="bounded for another privacy unit than the plan's"):
        simulate(plan(), table(unit_column="id", max_rows=2), SeededEntropy(1))
    with pytest.raises(InputError, match="bounded for another privacy unit than the plan's"):
        simulate(plan(unit_column="id", max_rows=3), table(unit_column="id", max_rows=2), SeededEntropy(1))


def test_a_block_on_a_column_that_was_not_read_is_refused_before_payment(tmp_path: Path) -> None:
    whole = table()
    made, book = plan(), ledger(tmp_path)
    without_a = Table(DOMAIN, {name: codes for name, codes in columns_of(whole).codes.items() if name != "a"}, columns_of(whole).values)
    without_pay = Table(DOMAIN, columns_of(whole).codes)
    for part, message in ((without_a, "read without the attribute 'a'"), (without_pay, "read without the measure 'pay'")):
        with pytest.raises(InputError, match=message):
            measure(made, part, book, output="out")
        with pytest.raises(InputError, match=message):
            simulate(made, part, SeededEntropy(1))
        with pytest.raises(InputError, match=message):
            Series.paid(many_steps(DOMAIN, made.privacy), part, book, output="out")
    assert book.entries() == ()


def test_seeded_noise_is_marked_and_reproducible() -> None:
    first, second, third = (simulate(plan(), table(), SeededEntropy(seed)) for seed in (3, 3, 4))
    assert (first.private, first.receipt) == (False, "")
    assert all((x == y).all() for x, y in zip(first.values, second.values, strict=True))
    assert any((x != y).any() for x, y in zip(first.values, third.values, strict=True))
    with pytest.raises(InputError, match=r"seeded noise, which protects nobody; got another source. Use a paid series"):
        simulate(plan(), table(), SystemEntropy())


@pytest.mark.parametrize(("budget", "mechanism"), BUDGETS)
def test_translation_equivariance(budget: PureDP | ZCDP | ApproxDP, mechanism: str) -> None:
    """On the same random tape, two tables' observations differ by exactly A (x - x'): the noise does not know the data."""
    made = plan(budget, mechanism)
    left, right = table(seed=1), table(rows=500, seed=2)
    observed = [simulate(made, rows, SeededEntropy(9)) for rows in (left, right)]
    for place, block in enumerate(made.blocks):
        exact = []
        for rows, seed in ((400, 1), (500, 2)):
            rng = np.random.default_rng(seed)
            codes = {name: rng.integers(0, DOMAIN.kind(name).size, rows) for name in NAMES}
            pay = rng.integers(0, 51, rows)
            x = cells_of(codes, pay if block.measure else None)
            exact.append((block_rows(DOMAIN, NAMES, block) / block.scaling()[:, None] @ x).round().astype(np.int64) * made.grid)
        np.testing.assert_array_equal(observed[0].values[place] - observed[1].values[place], exact[0] - exact[1])
        assert observed[0].values[place].dtype == np.int32  # they fit


@pytest.mark.parametrize(("budget", "mechanism"), BUDGETS)
def test_limits_are_enforced_row_by_row(budget: PureDP | ZCDP | ApproxDP, mechanism: str) -> None:
    """On the same random tape, two tables' observations differ by exactly the difference of their clipped sums, block by block."""
    steps, one = Limits([5, 20], "a"), Limits([7])
    blocks = [(Block((A,), Fraction(1), "pay", limits), 1.0) for limits in (steps, one, None)] + [
        (Block((TREE,), Fraction(1), "pay", steps), 0.2)
    ]
    made = fit(DOMAIN, Privacy(budget), mechanism, blocks)
    drawn = []
    for rows, seed in ((400, 1), (500, 2)):
        rng = np.random.default_rng(seed)
        codes = {name: rng.integers(0, DOMAIN.kind(name).size, rows) for name in NAMES}
        pay = rng.integers(0, 51, rows)
        cut = (np.minimum(pay, np.array([5, 20])[codes["a"]]), np.minimum(pay, 7), pay, np.minimum(pay, np.array([5, 20])[codes["a"]]))
        queries = [block_rows(DOMAIN, NAMES, block) / block.scaling()[:, None] for block in made.blocks]
        exact = [np.rint(q @ cells_of(codes, values)).astype(np.int64) * made.grid for q, values in zip(queries, cut, strict=True)]
        drawn.append((simulate(made, Table(DOMAIN, codes, {"pay": pay}), SeededEntropy(9)).values, exact))
    for place in range(len(blocks)):
        np.testing.assert_array_equal(drawn[0][0][place] - drawn[1][0][place], drawn[0][1][place] - drawn[1][1][place])


def test_sums_under_different_limits_are_not_estimated_together() -> None:
    blocks = [(Block((A,), Fraction(1), "pay", limits), 1.0) for limits in (Limits([5, 20], "a"), Limits([7]))]
    made = fit(DOMAIN, Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE, blocks)
    with pytest.raises(InputError, match=r"Sums of pay under different limits differ in their bias .* Make a plan for each limit"):
        Estimate(simulate(made, table(), SeededEntropy(1))).marginal(("a",), "pay")
    alone = replace(made, blocks=made.blocks[:1])
    observed = simulate(alone, table(), SeededEntropy(1))
    np.testing.assert_allclose(Estimate(observed).marginal(("a",), "pay"), observed.values[0])


def test_a_row_far_above_its_limit_moves_the_observation_by_the_limit_only() -> None:
    block = Block((A,), Fraction(1), "pay", Limits([0, 3], "a"))
    made = fit(DOMAIN, Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE, [(block, 1.0)])
    assert made.blocks[0].scale == 3
    empty = Table(DOMAIN, {name: [] for name in NAMES}, {"pay": []})
    for cell, limit in ((0, 0), (1, 3)):
        rich = Table(DOMAIN, {name: [cell if name == "a" else 0] for name in NAMES}, {"pay": [50]})
        moved = simulate(made, rich, SeededEntropy(4)).values[0] - simulate(made, empty, SeededEntropy(4)).values[0]
        assert np.abs(moved).sum() == limit


def test_both_ends_are_the_distances_from_the_bounds_of_every_row() -> None:
    domain = Domain(sex=["F", "M"], measures={"pay": Measure("pay", -3, 9)})
    rows = Table(domain, {"sex": [0, 0, 1]}, {"pay": [-3, 4, 9]})
    blocks = (Block((Factor(("sex",), Identity(2)),), Fraction(1, 10**9), "pay", ends=True),)
    made = Measurements(domain=domain, privacy=Privacy(PureDP(10**12)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    assert (simulate(made, rows, SeededEntropy(1)).values[0] / made.grid).round().tolist() == [0 + 7, 12, 12 + 5, 0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_promised_error_is_realised(case: Case) -> None:
    """Exactly by dense least squares; and of 1000 releases at non-unit scales and weights within six standard errors of the mean."""
    known = structures(case.workload, case.plan)
    assert promised(case.workload, case.plan).expected_error().total_squared_error > 0
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, DOMAIN.kind(name).size, 400) for name in NAMES}
    pay = rng.integers(0, 51, 400)
    found = realised(case.workload, case.plan, table(), {None: cells_of(codes), "pay": cells_of(codes, pay)}, 1000)
    expected = sum(product.importance * known[product.measure].total(product) for product in case.workload)
    assert found.expected == pytest.approx(float(expected), rel=1e-9)
    assert abs(np.mean(found.errors) - found.expected) < 6 * found.spread
    assert found.spread < 0.05 * found.expected


@pytest.mark.parametrize(
    ("operator", "names"), [(AllRanges(8), "abcd"), (Identity(8), "aaaa"), (Identity(8), "abcd")], ids=["queries", "copies", "cells"]
)
def test_no_more_tables_are_answered_at_once_than_a_batch_has_rows(monkeypatch: pytest.MonkeyPatch, operator: Operator, names: str) -> None:
    monkeypatch.setattr(_measure, "_BATCH_ROWS", 16)
    domain = Domain(a=Coded(8), b=Coded(8), c=Coded(8), d=Coded(8))
    blocks = tuple(Block((Factor((name,), operator),), Fraction(1)) for name in names)
    plan = Measurements(domain=domain, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    applied, tables = _measure.apply, []

    def watched(of: Operator, cells: Any) -> Any:
        tables.append(cells.size // of.size)
        return applied(of, cells)

    monkeypatch.setattr(_measure, "apply", watched)
    values = simulate(plan, Table(domain, {name: np.arange(8) for name in "abcd"}), SeededEntropy(1)).values
    assert [len(one) for one in values] == [operator.rows] * 4
    assert tables == [max(1, 16 // operator.rows)] * (4 // max(1, 16 // operator.rows))
