"""The cost of both ends, over every value between them and not the ends alone, and over rows without a value."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, ConcentratedCost, Noise, Privacy, PureCost, PureDP
from leastnoise._domain import Coded, Domain, Measure, ValueCount
from leastnoise._linop import Identity, dense
from leastnoise._measurements import Block, Factor, Measurements, cost, measurements_digest, measurements_value
from leastnoise._plan import measurements_from_value

TIPS = Measure("tips", 2, 4)
DOMAIN = Domain(a=Coded(2), measures={"pay": Measure("pay", -2, 3), "tips": TIPS, "count of tips": ValueCount(TIPS)})
CELLS, EVEN = Factor(("a",), Identity(2), np.array([1, 3])), Factor(("a",), Identity(2))


def columns(plan: Measurements) -> np.ndarray:
    """What every row adds in noise scales: all its values are tried, and a row outside the domain."""
    found = [np.zeros(sum(block.rows for block in plan.blocks))]
    for cell, pay, tips in itertools.product(range(2), range(-2, 4), [None, *range(2, 5)]):
        value, parts = {"pay": pay, "tips": tips or 0, "count of tips": int(tips is not None)}, []
        for block in plan.blocks:
            own = np.ones(1) if not block.factors else dense(block.factors[0].operator)[:, cell] * block.factors[0].scaling
            measure = DOMAIN.measures.get(block.measure or "")
            if measure is None:
                told = [1]
            else:
                at = value[str(block.measure)]
                told = [at - measure.low_units, measure.high_units - at] if block.ends else [at]
                told = [0, 0] if block.ends and block.measure == "tips" and tips is None else told
            parts.append(np.kron(np.array(told), own) / float(block.scale))
        found.append(np.concatenate(parts))
    return np.array(found)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    "blocks",
    [
        (Block((CELLS,), Fraction(7, 3), "pay", ends=True), Block((), Fraction(2)), Block((CELLS,), Fraction(5), "tips", ends=True)),
        (Block((CELLS,), Fraction(7, 3), "tips", ends=True), Block((CELLS,), Fraction(5, 2), "pay")),
        (Block((), Fraction(7, 3), "tips", ends=True),),
        (Block((EVEN,), Fraction(7, 3), "tips", ends=True), Block((EVEN,), Fraction(5, 2), "count of tips"), Block((), Fraction(3))),
        (Block((CELLS,), Fraction(7, 3), "tips"), Block((CELLS,), Fraction(5, 2), "count of tips")),
    ],
    ids=["ends and counts", "ends and sums", "totals", "ends and counts of values", "sums and counts of values"],
)
def test_the_cost_is_the_largest_loss_over_all_values(neighbours: str, rows: int, blocks: tuple[Block, ...]) -> None:
    privacy = ("id", rows) if rows > 1 else ()
    laplace = Measurements(domain=DOMAIN, privacy=Privacy(PureDP(999), neighbours, *privacy), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    gaussian = Measurements(domain=DOMAIN, privacy=Privacy(ZCDP(999), neighbours, *privacy), noise=Noise.DISCRETE_GAUSSIAN, blocks=blocks)
    every = columns(laplace)
    apart = every[:, None] - every if neighbours == "replace" else every
    first, second = cost(laplace), cost(gaussian)
    assert isinstance(first, PureCost)
    assert isinstance(second, ConcentratedCost)
    # k equal rows replaced by k equal ones (R0) attain the largest
    assert float(first.epsilon) == pytest.approx(rows * np.abs(apart).sum(axis=-1).max())
    assert float(second.rho) == pytest.approx(rows**2 * (apart**2).sum(axis=-1).max() / 2)


def test_a_plan_file_says_that_both_ends_are_measured() -> None:
    blocks = (Block((CELLS,), Fraction(7, 3), "pay", ends=True), Block((CELLS,), Fraction(2), "tips"))
    plan = Measurements(domain=DOMAIN, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    again = measurements_from_value(measurements_value(plan))
    assert [(block.ends, block.rows) for block in again.blocks] == [(True, 4), (False, 2)]
    assert measurements_digest(again) == measurements_digest(plan)
    assert ["ends" in one for one in measurements_value(plan)["blocks"]] == [True, False]
