"""The cost of measuring both ends of a sum, for all values and for missing ones."""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Measure, ValueCount
from leastnoise._plan import measurements_from_value
from leastnoise._trusted.linop import Identity
from leastnoise._trusted.measurements import Block, Factor, measurements_digest, measurements_value
from trusted.measurements.brute import claimed, rows_of, worst
from trusted.measurements.drawn import GAUSSIAN, LAPLACE, plan_of

TIPS = Measure("tips", 2, 4)
DOMAIN = Domain(
    a=Coded(2),
    measures={"pay": Measure("pay", -2, 3), "tips": TIPS, "count of tips": ValueCount(TIPS)},
)
CELLS = Factor(("a",), Identity(2), np.array([1, 3]))
EVEN = Factor(("a",), Identity(2))


def every_value(measure):
    return None, *range(measure.low_units, measure.high_units + 1)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    "blocks",
    [
        (
            Block((CELLS,), Fraction(7, 3), "pay", ends=True),
            Block((), Fraction(2)),
            Block((CELLS,), Fraction(5), "tips", ends=True),
        ),
        (
            Block((CELLS,), Fraction(7, 3), "tips", ends=True),
            Block((CELLS,), Fraction(5, 2), "pay"),
        ),
        (Block((), Fraction(7, 3), "tips", ends=True),),
        (
            Block((EVEN,), Fraction(7, 3), "tips", ends=True),
            Block((EVEN,), Fraction(5, 2), "count of tips"),
            Block((), Fraction(3)),
        ),
        (Block((CELLS,), Fraction(7, 3), "tips"), Block((CELLS,), Fraction(5, 2), "count of tips")),
    ],
    ids=[
        "ends and counts",
        "ends and sums",
        "totals",
        "ends and counts of values",
        "sums and counts of values",
    ],
)
def test_cost_is_the_largest_loss_over_all_values(neighbours, rows, blocks):
    unit = {"unit_column": "id", "max_rows": rows} if rows > 1 else {}
    laplace, gaussian = (
        plan_of(noise, *blocks, domain=DOMAIN, neighbours=neighbours, **unit)
        for noise in (LAPLACE, GAUSSIAN)
    )
    columns = [row.column for row in rows_of(laplace, every_value)]
    units = rows * np.array([np.zeros_like(columns[0]), *columns])  # equal rows lose the most (R0)
    for plan in (laplace, gaussian):
        assert claimed(plan) == pytest.approx(worst(plan, units))


def test_plan_file_says_that_both_ends_are_measured():
    blocks = (
        Block((CELLS,), Fraction(7, 3), "pay", ends=True),
        Block((CELLS,), Fraction(2), "tips"),
    )
    plan = plan_of(LAPLACE, *blocks, domain=DOMAIN)
    plan_from_json = measurements_from_value(measurements_value(plan))

    assert [(block.ends, block.rows) for block in plan_from_json.blocks] == [(True, 4), (False, 2)]
    assert measurements_digest(plan_from_json) == measurements_digest(plan)
    assert ["ends" in block_value for block_value in measurements_value(plan)["blocks"]] == [
        True,
        False,
    ]
