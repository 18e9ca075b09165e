"""The kernel: verified, paid, then drawn, in no other order; and exact."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy.plans import DOMAIN, NAMES, A, B, C
from kernel.series import many_steps, measure
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._check import BudgetError, InputError
from leastnoise._domain import Coded, Domain
from leastnoise._fitting import fit
from leastnoise._kernel import Ledger, SeededEntropy, Series, _measure, simulate
from leastnoise._linop import AllRanges, Identity, Operator
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._table import Table, columns_of

BLOCKS = [
    (Block((A, B), Fraction(1)), 1.0),
    (Block((B, C), Fraction(1)), 0.3),
    (Block((), Fraction(1)), 2.0),
    (Block((A,), Fraction(1), "pay"), 0.01),
]


def table() -> Table:
    rng = np.random.default_rng(0)
    return Table(DOMAIN, {name: rng.integers(0, DOMAIN.kind(name).size, 400) for name in NAMES}, {"pay": rng.integers(0, 51, 400)})


def plan() -> Measurements:
    return fit(DOMAIN, Privacy(PureDP("1/2")), Noise.DISCRETE_LAPLACE, BLOCKS)


def ledger(folder: Path, epsilon: str = "1/2") -> Ledger:
    return Ledger.create(folder / "people.ledger", "people", Privacy(PureDP(epsilon)))


def test_nothing_is_counted_before_it_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = ledger(tmp_path, "1/4")
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
