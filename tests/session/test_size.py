"""Sets of queries that are too many to list are planned, promised and checked without listing them."""

import tracemalloc

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._accounting import Privacy
from leastnoise._accuracy import pair_structure
from leastnoise._families import basis
from leastnoise._linop import AllRanges, Identity, Prefix
from leastnoise._measurements import Block, Factor
from leastnoise._mechanisms import candidates, mechanism_of
from leastnoise._workload import QuerySet

MEMORY = 700e6


@pytest.fixture(autouse=True)
def _without_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here may list the ranges of many cells."""
    true = np.triu_indices

    def few(size: int) -> object:
        assert size <= 4096, "the ranges of many cells were listed"
        return true(size)

    monkeypatch.setattr(np, "triu_indices", few)


def planned(size: int, budget: object, strategy: str) -> ln.Plan:
    """A plan for all ranges of so many cells, within the memory allowed here."""
    workload = ln.queries(ln.Domain(x=ln.Integers(0, size - 1)), x=ln.all_ranges())
    tracemalloc.start()
    try:
        made = [one for one in candidates(workload, Privacy(budget), strategy) if one.plan]
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    return min(made, key=lambda one: one.total).plan


@pytest.mark.parametrize(
    ("budget", "strategy", "cells"),
    [(ln.PureDP(1), "identity", 2**16), (ln.ApproxDP(1, "1e-6"), "identity", 2**16), (ln.ZCDP("1/2"), "hierarchy", 2**13)],
    ids=["pure", "approximate", "concentrated"],
)
def test_all_ranges_of_many_cells_are_planned_and_promised(budget: object, strategy: str, cells: int) -> None:
    made = planned(cells, budget, strategy)
    promise = made.expected_error()
    (table,) = promise.tables
    assert table.queries == cells * (cells + 1) // 2
    assert promise.total_squared_error == pytest.approx(table.queries * table.rmse**2)
    assert promise.lower_bound < promise.total_squared_error
    assert table.largest_is_bound
    assert table.rmse < table.largest_std < 2 * table.rmse
    again = ln.Plan.from_json(made.to_json())
    assert again == made
    assert mechanism_of(again).ready(again)


@pytest.mark.parametrize("second", [ln.all_ranges(), ln.prefix(), ln.identity()], ids=lambda one: one.kind)
def test_products_with_more_answers_than_can_be_listed_are_promised(second: QuerySet) -> None:
    domain = ln.Domain(x=ln.Coded(3000), y=ln.Coded(3000))
    workload = ln.queries(domain, x=ln.all_ranges(), y=second)
    (found,) = candidates(workload, Privacy(ln.PureDP(1)), "hierarchy")
    assert found.plan is not None, found.reason
    (table,) = found.plan.expected_error().tables
    assert table.queries == workload.rows
    assert table.largest_is_bound
    assert table.rmse < table.largest_std < 10 * table.rmse
    assert mechanism_of(found.plan).ready(found.plan)


def test_ranges_that_are_measured_themselves_are_a_gram_matrix() -> None:
    # A matrix of them would have 4 GB.
    tracemalloc.start()
    known = basis(Factor(("x",), AllRanges(1000)))
    assert known.largest_variance(AllRanges(1000)) > 0
    assert tracemalloc.get_traced_memory()[1] < 150e6
    tracemalloc.stop()


def test_ranges_from_two_tables_in_a_common_basis_are_looked_at_some_at_a_time() -> None:
    # All 80,200 ranges in the basis of 400 vectors would have 257 MB.
    domain = ln.Domain(x=ln.Coded(400), y=ln.Coded(4))
    blocks = (Block((Factor(("x",), Identity(400)),), 1), Block((Factor(("x",), Prefix(400)), Factor(("y",), Identity(4))), 1))
    known = pair_structure({"x": 400, "y": 4}, [(blocks[0], 1.0), (blocks[1], 2.0)])
    asked = ln.queries(domain, x=ln.all_ranges()).products[0]
    tracemalloc.start()
    found = known.errors(asked)
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()
    assert found.total == pytest.approx(known.total(asked), rel=1e-9)
