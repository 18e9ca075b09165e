"""The private choice of quantiles: its law, its loss by brute force, and its use."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Domain, Integers
from leastnoise._trusted.accounting import ZCDP, Privacy, PureDP
from leastnoise._trusted.check import BudgetError, InputError
from leastnoise._trusted.kernel import (
    Ledger,
    QuantileSelection,
    SeededEntropy,
    Series,
    UnpaidSeries,
)
from leastnoise._trusted.kernel._noise import geometric
from leastnoise._trusted.table import Table
from trusted.kernel.selections import cell_probabilities
from trusted.kernel.series import many_steps

EPSILON = Fraction(3, 7)
CELLS = 3
LINE = Domain(age=Integers(0, 4), sex=["F", "M"])


def largest_loss(selection, tables_before, tables_after, distance):
    """Return the largest log ratio of all choices together, for two tables of groups."""
    largest = 0.0
    for before, after in zip(tables_before, tables_after, strict=True):
        ratio = np.log(
            cell_probabilities(selection, before, distance)
            / cell_probabilities(selection, after, distance)
        )
        largest += np.abs(ratio).max()
    return largest


def rows_of_units(rows):
    """Yield what at most ``rows`` rows can add to two groups of cells."""
    places = [(group, cell) for group in range(2) for cell in range(CELLS)]
    for number in range(rows + 1):
        for chosen in itertools.combinations_with_replacement(places, number):
            added = np.zeros((2, CELLS), dtype=np.int64)
            for place in chosen:
                added[place] += 1
            yield added


BASES = [np.array([[2, 0, 1], [0, 3, 1]]), np.array([[0, 0, 0], [5, 0, 5]])]


@pytest.mark.parametrize("share", ["1/2", "1/4", "9/10"])
@pytest.mark.parametrize(("neighbours", "rows"), [("add_remove", 2), ("replace", 1)])
def test_quantile_selection_loses_at_most_epsilon(neighbours, rows, share):
    selection = QuantileSelection(
        attribute="age", by=("sex",), share=share, cells=CELLS, epsilon=EPSILON
    )
    distance = rows if neighbours == "add_remove" else 2 * rows
    largest = 0.0
    for base in BASES:
        tables = [base + added for added in rows_of_units(rows)]
        pairs = itertools.combinations(tables, 2)
        if neighbours == "add_remove":
            pairs = ((base, table_after) for table_after in tables[1:])
        largest = max(largest, *(largest_loss(selection, *pair, distance) for pair in pairs))

    assert 0.5 * EPSILON < largest <= float(EPSILON) * (1 + 1e-9)


@pytest.mark.parametrize("share", ["1/2", "1/4", "9/10"])
def test_distance_changes_by_at_most_its_sensitivity(share):
    selection = QuantileSelection(attribute="age", share=share, cells=4, epsilon=1)
    most = selection.sensitivity * selection.share.denominator
    changed = set()
    for counts in itertools.product(range(3), repeat=4):
        before = selection.distances(np.array(counts))
        for cell in range(4):
            larger_counts = np.array(counts)
            larger_counts[cell] += 1
            changed |= {int(number) for number in selection.distances(larger_counts) - before}

    assert max(map(abs, changed)) == most


@pytest.mark.parametrize(("numerator", "denominator"), [(3, 2), (1, 3), (700, 3)])
def test_geometric_numbers_have_their_distribution(numerator, denominator):
    draws = geometric(numerator, denominator, 200_000, SeededEntropy(5))
    for least in (1, 2, 5, 300):
        expected = math.exp(-least * denominator / numerator)
        deviation = math.sqrt(expected * (1 - expected) / len(draws))
        assert abs((draws >= least).mean() - expected) < 4.5 * deviation + 1e-12
    assert draws.min() >= 0


def test_geometric_numbers_are_cut_and_never_wrap():
    draws = geometric(2**56 - 1, 1, 2000, SeededEntropy(5))
    assert draws.min() >= 0
    assert draws.max() < 2**62
    assert (draws > 2**55).any()


@pytest.mark.slow
def test_chosen_cells_have_the_stated_probabilities():
    counts = np.array([8, 0, 2, 6])  # of which a scale that is wrong by a tenth is seen
    selection = QuantileSelection(attribute="age", share="1/4", cells=4, epsilon="1/2")
    groups = 10_000
    draws = selection.draw(np.tile(counts, (groups, 1)), 1, SeededEntropy(7))
    frequencies = np.bincount(draws, minlength=4) / groups
    probabilities = cell_probabilities(selection, counts, 1)
    std_errors = np.sqrt(probabilities * (1 - probabilities) / groups)
    assert (np.abs(frequencies - probabilities) < 4.5 * std_errors).all()


def test_huge_counts_are_cut_and_do_not_fail():
    counts = np.array([[2**62, 2**62, -(2**62)]])
    selection = QuantileSelection(attribute="age", share="1/1024", cells=3, epsilon=1)
    assert selection.draw(counts, 1, SeededEntropy(1)).tolist() == [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1}, "share must be above 0 and below 1"),
        ({"share": "1/1025"}, "share must be above 0 and below 1"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"by": ("age",)}, "must be different names"),
    ],
)
def test_quantile_selection_refuses_other_numbers(arguments, message):
    with pytest.raises(InputError, match=message):
        QuantileSelection(
            **{"attribute": "age", "share": "1/2", "cells": 5, "epsilon": 1, **arguments}
        )


@pytest.mark.parametrize(
    "counts", [np.array([[8.0, 0.0, 2.0]]), np.array([[8, 0]]), np.array([8, 0, 2]), [[8, 0, 2]]]
)
def test_quantile_selection_refuses_counts_of_another_type_or_shape(counts):
    selection = QuantileSelection(attribute="age", share="1/2", cells=3, epsilon=1)
    with pytest.raises(InputError, match="counts must be an int64 array of groups by 3 cells"):
        selection.draw(counts, 1, SeededEntropy(1))


def test_long_epsilon_is_refused_before_it_is_drawn():
    selection = QuantileSelection(attribute="age", share="1/2", cells=5, epsilon=Fraction(1, 2**57))
    with pytest.raises(InputError, match="epsilon must be larger"):
        selection.scale(1)


def table_of(domain, ages, sexes):
    return Table(domain, {"age": np.array(ages), "sex": np.array(sexes)})


def test_series_chooses_cells_by_group_and_charges_them():
    rows = table_of(LINE, [0] * 50 + [4] * 90, [0] * 50 + [1] * 90)
    series = UnpaidSeries(many_steps(LINE, Privacy(PureDP(1))), rows, SeededEntropy(3))
    selection = QuantileSelection(attribute="age", by=("sex",), share="1/2", cells=5, epsilon="2/3")
    assert series.choose_quantile_cells(selection).tolist() == [0, 4]
    assert str(series.left()) == "epsilon = 1/3"
    with pytest.raises(BudgetError, match="A step requests epsilon"):
        series.choose_quantile_cells(selection)


def test_series_charges_a_choice_half_its_square_as_rho():
    rows = table_of(LINE, [0], [0])
    series = UnpaidSeries(many_steps(LINE, Privacy(ZCDP("1/2"))), rows, SeededEntropy(3))
    series.choose_quantile_cells(
        QuantileSelection(attribute="age", share="1/2", cells=5, epsilon="1/2")
    )
    assert str(series.left()) == "rho = 0.375"


def test_rows_without_a_value_are_in_no_group():
    domain = Domain(age=Integers(0, 4).with_hidden(True), sex=["F", "M"])
    rows = table_of(domain, [2] * 40 + [5] * 400, [0] * 440)
    series = UnpaidSeries(many_steps(domain, Privacy(PureDP(9))), rows, SeededEntropy(3))
    selection = QuantileSelection(attribute="age", share="3/4", cells=5, epsilon=9)
    assert series.choose_quantile_cells(selection).tolist() == [2]


def test_series_refuses_another_class_and_unknown_columns():
    rows = table_of(LINE, [0], [0])
    series = UnpaidSeries(many_steps(LINE, Privacy(PureDP(1))), rows, SeededEntropy(3))
    with pytest.raises(InputError, match="a QuantileSelection"):
        series.choose_quantile_cells("median")
    with pytest.raises(InputError, match="an attribute of a quantile must be"):
        series.choose_quantile_cells(
            QuantileSelection(attribute="pay", share="1/2", cells=5, epsilon=1)
        )


def test_recorded_cells_are_not_drawn_again(tmp_path):
    contract = many_steps(LINE, Privacy(PureDP(1)))
    selection = QuantileSelection(attribute="age", by=("sex",), share="1/2", cells=5, epsilon="1/2")
    ledger = Ledger.create(tmp_path / "people.ledger", "people", contract.privacy)
    rows = table_of(LINE, [0, 1, 2, 3, 4] * 3, [0, 1, 1] * 5)
    with ledger.running(2**20) as run:
        series = Series.paid(contract, rows, ledger, output="out", run=run)
        drawn_cells = series.choose_quantile_cells(selection)
        assert series.receipt is not None
    with ledger.running(2**20) as run:
        receipt = ledger.take_over(ledger.entries()[0], run)
        resumed = Series.resumed(contract, None, ledger, receipt)
        assert resumed.choose_quantile_cells(selection).tolist() == drawn_cells.tolist()
