"""The kernel: verified, paid, then drawn, in no other order; and exact."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy.plans import DOMAIN, NAMES, A, B, C
from kernel.series import many_steps, measure, one_step
from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._check import BudgetError, InputError
from leastnoise._domain import Coded, Domain
from leastnoise._fitting import fit
from leastnoise._kernel import Ledger, SeededEntropy, Series, SystemEntropy, _measure, simulate
from leastnoise._linop import AllRanges, Identity, Operator
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._table import Table, columns_of

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
