"""The loss of units whose rows lie in several cells, against all neighbours."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._domain import Coded, Domain, Measure, PerCellBound
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, parameters_by_name
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Contrasts, Dense, Identity, Prefix, Tree, dense
from leastnoise._trusted.measurements import Block, Factor, Limits, _overlap, _sensitivity, cost
from trusted.measurements.brute import claimed, worst
from trusted.measurements.drawn import GAUSSIAN, LAPLACE, SIZES, blocks, cells, plan_of


def within(measured, most, bound, noise=GAUSSIAN, **privacy):
    return plan_of(noise, *measured, unit_column="id", max_rows=most, max_per_cell=bound, **privacy)


CASES = [
    (2, PerCellBound(1, "b")),
    (3, PerCellBound(1, "b")),
    (3, PerCellBound(2, "b")),
    (2, PerCellBound(1, ["a", "b"])),
    (2, PerCellBound(1, ["a", "c"])),
]


@pytest.mark.slow
@pytest.mark.parametrize(("most", "bound"), CASES, ids=str)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@settings(max_examples=14, deadline=None)
@given(data=st.data())
def test_cost_is_never_below_the_worst_change(most, bound, neighbours, data):
    """Cover counts, and two rows with sums of one measure."""
    measures = (
        (None,)
        if most == 3
        else data.draw(st.sampled_from([(None,), (None, "pay"), (None, "tips")]))
    )
    measured = data.draw(st.lists(blocks(GAUSSIAN, measures), min_size=1, max_size=3))
    claim = claimed(within(measured, most, bound, neighbours=neighbours))
    assert claim >= worst(within(measured, most, bound, neighbours=neighbours)) * (1 - 1e-7)

    weaker_bounds = [PerCellBound(most, names) for names in (bound.attributes, *SIZES)]
    for weaker in (None, *weaker_bounds):
        assert claim <= claimed(within(measured, most, weaker, neighbours=neighbours))


@pytest.mark.parametrize("bound", [None, PerCellBound(1, ["a", "c"])], ids=str)
def test_cost_of_replaced_rows_is_bounded_along_an_attribute(bound):
    """A product's longest column and its most different columns belong to different cells."""
    weighted = Factor(("b",), Identity(3), np.array([1, 1, 2]))
    measured = [Block((Factor(("a",), Prefix(2)), weighted), Fraction(1, 4))]
    plan = within(measured, 2, bound, neighbours="replace")
    assert claimed(plan) == 640 == pytest.approx(worst(plan))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_cost_of_a_replaced_row_is_never_below_the_worst_change(data):
    noise = data.draw(st.sampled_from([LAPLACE, GAUSSIAN]))
    measured = data.draw(st.lists(blocks(noise), min_size=1, max_size=3))
    plan = plan_of(noise, *measured, neighbours="replace")
    assert claimed(plan) >= worst(plan) * (1 - 1e-7)


@pytest.mark.parametrize(("most", "bound"), CASES[:3], ids=str)
@pytest.mark.parametrize("scales", [(1, 2, 3, 1), (3, 1, 1, 2)])
def test_cost_of_cells_and_contrasts_is_exact(most, bound, scales):
    """The bound is attained for tables of cells, and for contrasts of similar scales."""
    tables = zip([("b",), ("a", "b"), ("a", "c"), ()], scales, strict=True)
    spaces = zip([("a", "b"), ("b",), ("a",), ()], (2, 2, 1, 1), strict=True)
    for attribute_sets, make in ((tables, Identity), (spaces, Contrasts)):
        plan = within(
            [Block(cells(*names, of=make), Fraction(scale)) for names, scale in attribute_sets],
            most,
            bound,
        )
        assert claimed(plan) == pytest.approx(worst(plan), rel=1e-6)


@pytest.mark.parametrize("total", [None, 12, 3, 1])
@pytest.mark.parametrize("in_cell", [1, 2])
@pytest.mark.parametrize("cells_of_bound", [2, 3, 4, 5])
def test_cost_of_contrasts_with_a_weak_total_is_exact(cells_of_bound, in_cell, total):
    """Contrasts cancel for rows in all cells, so fewer rows may be the worst case."""
    domain = Domain(g=Coded(cells_of_bound), measures={"tips": Measure("tips", 0, 3)})
    along = (Factor(("g",), Contrasts(cells_of_bound)),)
    weak = [] if total is None else [((), Fraction(total))]
    units = np.array([*itertools.product(range(in_cell + 1), repeat=cells_of_bound)])
    squares = (units**2).sum(axis=1) - units.sum(axis=1) ** 2 / cells_of_bound
    if total is not None:
        squares += units.sum(axis=1) ** 2 / total**2
    for measure, largest in ((None, 1), ("tips", 3)):
        measured = [Block(f, s, measure) for f, s in [(along, Fraction(1)), *weak]]
        for rows in range(in_cell, in_cell * cells_of_bound + 2):
            bound = PerCellBound(in_cell, "g")
            plan = plan_of(
                GAUSSIAN,
                *measured,
                domain=domain,
                unit_column="id",
                max_rows=rows,
                max_per_cell=bound,
            )
            worst_square = squares[units.sum(axis=1) <= rows].max() * largest**2
            assert claimed(plan) == pytest.approx(worst_square, rel=1e-12)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("weak", [3, 9])
def test_cost_of_weak_totals_is_never_below_the_worst_change(weak, most, neighbours):
    """Cover other attributes, values of both signs, limits and both ends."""
    along = cells("b", of=Contrasts)
    of_both = cells("a", "b", of=Contrasts)
    mixed = (*cells("a"), *along)
    kinds: list[dict[str, object]] = [{}]
    if most < 3:
        kinds += [{"measure": "tips"}, {"measure": "pay"}, {"measure": "pay", "ends": True}]
        kinds += [{"measure": "tips", "limits": Limits([1, 0, 3], "b")}]
    for kind, factors in itertools.product(
        kinds, ([along], [along, of_both], [mixed], [mixed, along])
    ):
        blocks_of_kind = [
            Block(factors_of_block, Fraction(1), **kind) for factors_of_block in factors
        ]
        blocks_of_kind.append(Block((), Fraction(weak), **kind))
        if kind:
            blocks_of_kind.append(Block(along, Fraction(2)))
        plan = within(blocks_of_kind, most, PerCellBound(1, "b"), neighbours=neighbours)
        assert claimed(plan) >= worst(plan) * (1 - 1e-9)


IN_EVERY_CELL = [(3, PerCellBound(1, "b")), (4, PerCellBound(2, "a")), (2, PerCellBound(1, "c"))]
ALONG_THE_BOUND = {
    "cells": Identity,
    "prefixes": Prefix,
    "tree": lambda size: Tree.full(size, 2),
    "triangle": lambda size: Dense(np.tril(np.arange(1, size**2 + 1).reshape(size, size))),
}


@pytest.mark.parametrize(("most", "bound"), IN_EVERY_CELL, ids=str)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("operator", ALONG_THE_BOUND)
def test_cost_of_rows_in_every_cell_is_worst_change(most, bound, neighbours, noise, operator):
    """Cover further attributes and row weights."""
    (name,) = bound.attributes
    other_name = "a" if name != "a" else "b"
    of_bound = ALONG_THE_BOUND[operator](SIZES[name])
    weights = np.arange(of_bound.rows) % 3 + 1
    along = Factor((name,), of_bound, weights)
    of_both = sorted([along, *cells(other_name)], key=lambda factor: factor.attributes)
    measured = [Block((along,), Fraction(3)), Block(tuple(of_both), Fraction(2))]
    plan = within(measured, most, bound, noise, neighbours=neighbours)

    assert claimed(plan) == pytest.approx(worst(plan), rel=1e-9)


@pytest.mark.parametrize(("most", "claim"), [(1, 3), (2, 9), (3, 14)])
def test_cost_of_prefixes_follows_the_number_of_cells(most, claim):
    """Rows in the first m of three cells change the prefix sums by 1, ..., m, m."""
    plan = within([Block((Factor(("b",), Prefix(3)),), Fraction(1))], most, PerCellBound(1, "b"))
    assert claimed(plan) == claim == pytest.approx(worst(plan))


def test_cost_of_odd_rows_splits_the_last_cell():
    plan = within([Block((Factor(("b",), Prefix(3)),), Fraction(1))], 3, PerCellBound(2, "b"))
    assert claimed(plan) == 22 == pytest.approx(worst(plan))


def test_cost_of_entries_beyond_exact_doubles_is_exact():
    """Sums of products of entries near 2^28 do not fit 53 bits."""
    matrix = np.array([[2**28 - 1, 0, 0], [2**28 - 3, 2**27 + 1, 0], [-5, 7, 2**28 - 9]])
    plan = within([Block((Factor(("b",), Dense(matrix)),), Fraction(1))], 3, PerCellBound(1, "b"))
    gram = matrix.astype(object).T @ matrix.astype(object)
    (exact,) = parameters_by_name(cost(plan)).values()
    assert exact * 2 == int(np.maximum(gram, 0).sum())


@pytest.mark.parametrize(
    ("limit", "value"),
    [("MOST_CELLS", 2), ("_MOST_ENTRIES", 8), ("_EXACT_INT", 20), ("_EXACT_FLOAT", 8)],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_cost_of_too_large_matrices_ignores_the_cell_bound(limit, value, neighbours, monkeypatch):
    """Without the inner products of columns, the cost allows rows in any cells."""
    matrix = np.array([[3, 1, 0], [2, -1, 1], [0, 1, 2]])
    measured = [Block((Factor(("b",), Dense(matrix)),), Fraction(1))]
    bounded = within(measured, 3, PerCellBound(1, "b"), neighbours=neighbours)
    unbounded = within(measured, 3, None, neighbours=neighbours)
    assert claimed(bounded) < claimed(unbounded)

    monkeypatch.setattr(_overlap, limit, value)
    for cached in (_overlap._squared_change_bound, _overlap._factor_products):
        monkeypatch.setattr(_overlap, cached.__name__, cached.__wrapped__)
    assert claimed(bounded) == claimed(unbounded) >= worst(bounded) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("noise", "bound", "claim"),
    [
        *((LAPLACE, bound, 3) for bound in (None, PerCellBound(1, "b"))),
        (GAUSSIAN, None, 9),
        *((noise, PerCellBound(1, "b"), 3) for noise in (GAUSSIAN, Noise.ROUNDED_GAUSSIAN)),
        (GAUSSIAN, PerCellBound(2, "b"), 5),
        # All rows of a unit may be in one cell of the table.
        (GAUSSIAN, PerCellBound(1, ["a", "b", "c"]), 9),
    ],
)
def test_cell_bound_value_is_stated(noise, bound, claim):
    """A unit has three rows; Laplace noise gains nothing."""
    plan = within([Block(cells("b"), Fraction(1))], 3, bound, noise)
    assert claimed(plan) == claim == pytest.approx(worst(plan))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PerCellBound(0, "a"), "max_per_cell must be a whole number of at least 1; got 0"),
        (lambda: PerCellBound(1, []), "the attributes of max_per_cell must be 1 to 8 names"),
        (lambda: PerCellBound(1, ["a", "a"]), "none twice"),
        (
            lambda: Privacy(ZCDP(1), "add_remove", "id", 2, PerCellBound(3, "a")),
            "max_per_cell must be at most max_rows",
        ),
        (
            lambda: Privacy(ZCDP(1), max_per_cell=PerCellBound(1, "a")),
            "none where the unit is a row",
        ),
        (lambda: Privacy(ZCDP(1), "add_remove", "id", 2, 1), "None or a PerCellBound"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("operator", "replace", "times"),
    [(Prefix(3), True, 1), (Dense([[1, -2]]), True, 2), (Dense([[1, -2]]), False, 1)],
)
def test_norms_double_only_for_opposite_columns(operator, replace, times):
    factor = Factor(("a",), operator)
    assert _sensitivity._squared_column_norm(factor, replaced=replace) == times * max(
        sum(entry**2 for entry in column) for column in dense(operator).T
    )
