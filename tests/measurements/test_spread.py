"""What a unit can lose whose rows must lie in several cells, against brute force: all neighbours on small domains."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._domain import Coded, Domain, Measure, PerCell
from leastnoise._linop import Contrasts, Dense, Identity, Prefix, Total, Tree, dense
from leastnoise._measurements import Block, Factor, Measurements, _sensitivity, cost
from measurements.brute import claimed, worst

SIZES = {"a": 3, "b": 2, "c": 2}
DOMAIN = Domain({name: Coded(size) for name, size in SIZES.items()}, measures={"pay": Measure("pay", -2, 3), "tips": Measure("tips", 0, 4)})
ALONG = {
    "a": [None, Identity(3), Contrasts(3), Total(3), Prefix(3), Tree.full(3, 2)],
    "b": [None, Identity(2), Contrasts(2), Dense([[1, -2]])],
    "c": [None, Identity(2), Contrasts(2)],
}


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    if draw(st.booleans()) and draw(st.booleans()):
        factors = [Factor(("a", "b"), Identity(6))]  # taken together
    else:
        factors = [Factor((name,), operator) for name, some in ALONG.items() if (operator := draw(st.sampled_from(some))) is not None]
    weighted = bool(factors) and draw(st.booleans()) and not isinstance(factors[0].operator, Contrasts)
    if weighted:
        weights = draw(st.lists(st.integers(1, 3), min_size=factors[0].operator.rows, max_size=factors[0].operator.rows))
        factors[0] = Factor(factors[0].attributes, factors[0].operator, np.array(weights))
    return Block(tuple(factors), draw(st.fractions(min_value=Fraction(1, 2), max_value=4, max_denominator=4)))


def plan_of(measured: list[Block], most: int, bound: PerCell, neighbours: str = "add_remove") -> Measurements:
    privacy = Privacy(ZCDP(1), neighbours, "id", most, bound)
    return Measurements(domain=DOMAIN, privacy=privacy, noise=Noise.DISCRETE_GAUSSIAN, blocks=tuple(measured))


CASES = [(2, PerCell(1, "a")), (3, PerCell(1, "a")), (3, PerCell(2, "a")), (2, PerCell(1, ["a", "b"])), (2, PerCell(1, ["b", "c"]))]


@pytest.mark.parametrize(("most", "bound"), CASES, ids=str)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@settings(max_examples=12, deadline=None)
@given(measured=st.lists(blocks(), min_size=1, max_size=3))
def test_cost_is_never_below_the_worst_change(most: int, bound: PerCell, neighbours: str, measured: list[Block]) -> None:
    plan = plan_of(measured, most, bound, neighbours)
    assert 2 * cost(plan).rho >= worst(plan) * (1 - 1e-7)
    assert cost(plan).rho <= cost(plan_of(measured, most, PerCell(most, "a"), neighbours)).rho  # never dearer than without


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@settings(max_examples=10, deadline=None)
@given(measured=st.lists(blocks(), min_size=1, max_size=2), of=st.sampled_from(["pay", "tips"]))
def test_sums_are_covered_too(neighbours: str, measured: list[Block], of: str) -> None:
    summed = [Block(block.factors, block.scale, of if place == 0 else None) for place, block in enumerate(measured)]
    plan = plan_of(summed, 2, PerCell(1, "a"), neighbours)
    assert 2 * cost(plan).rho >= worst(plan) * (1 - 1e-7)


def cells(*names: str) -> tuple[Factor, ...]:
    return tuple(Factor((name,), Identity(SIZES[name])) for name in names)


def contrasts(*names: str) -> tuple[Factor, ...]:
    return tuple(Factor((name,), Contrasts(SIZES[name])) for name in names)


@pytest.mark.parametrize(("most", "bound"), [(2, PerCell(1, "a")), (3, PerCell(1, "a")), (3, PerCell(2, "a"))], ids=str)
@pytest.mark.parametrize("scales", [(1, 2, 3, 1), (3, 1, 1, 2)])
def test_cost_of_cells_and_of_contrasts_is_what_added_rows_can_do(most: int, bound: PerCell, scales: tuple[int, ...]) -> None:
    """The bound is attained on one attribute, for tables of cells and for all contrasts of two attributes, if none is far dearer."""
    tables = [cells("a"), cells("a", "b"), cells("b", "c"), ()]
    plan = plan_of([Block(own, Fraction(scale)) for own, scale in zip(tables, scales, strict=True)], most, bound)
    assert float(2 * cost(plan).rho) == pytest.approx(worst(plan), rel=1e-6)
    spaces = [contrasts("a", "b"), contrasts("a"), contrasts("b"), ()]
    plan = plan_of([Block(own, Fraction(scale)) for own, scale in zip(spaces, (2, 2, 1, 1), strict=True)], most, bound)
    assert float(2 * cost(plan).rho) == pytest.approx(worst(plan), rel=1e-6)


@pytest.mark.parametrize(
    ("noise", "bound", "claim"),
    [
        (Noise.DISCRETE_LAPLACE, None, 3),
        (Noise.DISCRETE_LAPLACE, PerCell(1, "a"), 3),
        (Noise.DISCRETE_GAUSSIAN, None, 9),
        (Noise.DISCRETE_GAUSSIAN, PerCell(1, "a"), 3),
        (Noise.DISCRETE_GAUSSIAN, PerCell(2, "a"), 5),
        (Noise.DISCRETE_GAUSSIAN, PerCell(1, ["a", "b", "c"]), 9),  # all rows of a unit may be in one cell of the table
        (Noise.ROUNDED_GAUSSIAN, PerCell(1, "a"), 3),
    ],
)
def test_what_a_bound_in_the_cells_of_a_table_is_worth(noise: Noise, bound: PerCell | None, claim: int) -> None:
    """Of three rows of a unit; Laplace noise gains nothing."""
    budget = {Noise.DISCRETE_LAPLACE: PureDP(1), Noise.DISCRETE_GAUSSIAN: ZCDP(1), Noise.ROUNDED_GAUSSIAN: ApproxDP(1, "1e-6")}[noise]
    privacy = Privacy(budget, "add_remove", "id", 3, bound)
    plan = Measurements(domain=DOMAIN, privacy=privacy, noise=noise, blocks=(Block(cells("a"), Fraction(1)),))
    assert claimed(plan) == claim == pytest.approx(worst(plan))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PerCell(0, "a"), "max_per_cell must be a whole number of at least 1; got 0"),
        (lambda: PerCell(1, []), "the attributes of max_per_cell must be 1 to 8 names"),
        (lambda: PerCell(1, ["a", "a"]), "none twice"),
        (lambda: Privacy(ZCDP(1), "add_remove", "id", 2, PerCell(3, "a")), "max_per_cell must be at most max_rows"),
        (lambda: Privacy(ZCDP(1), max_per_cell=PerCell(1, "a")), "none where the unit is a row"),
        (lambda: Privacy(ZCDP(1), "add_remove", "id", 2, 1), "None or a PerCell"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("operator", "replace", "times"), [(Prefix(3), True, 1), (Dense([[1, -2]]), True, 2), (Dense([[1, -2]]), False, 1)]
)
def test_norms_are_doubled_only_where_columns_can_point_away_from_each_other(operator, replace, times) -> None:
    factor = Factor(("a",), operator)
    assert _sensitivity._norm(factor, replaced=replace) == times * max(sum(entry**2 for entry in column) for column in dense(operator).T)
