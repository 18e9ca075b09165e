"""What was paid for cannot be changed before it is measured: no array of a plan can be written, and the cost is computed again."""

from fractions import Fraction

import numpy as np
import pytest

from kernel.ledgers import opened
from kernel.series import one_step
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._kernel import Series
from leastnoise._linop import Coarse, Contrasts, Dense, DiagonalAndRows, Haar, Identity, Nested, Ordered, Ranges, Toeplitz, Tree, sealed
from leastnoise._measurements import Block, Factor, Limits, Measurements
from leastnoise._table import Table
from table.reach import reachable

DOMAIN = Domain(age=Integers(0, 3), pay=Integers(0, 3), measures={"amount": Measure("amount", 0, 100)})
OPERATORS = [
    Coarse(Identity(2), np.array([0, 2]), 4),
    Contrasts(4),
    Dense([[1, 2, 0, -1]]),
    DiagonalAndRows(np.array([1, 2, 3, 4]), np.array([[1, 1, 0, 0]])),
    Haar(4),
    Nested(Tree.full(2, 2), Identity(2), Identity(2)),
    Ordered(Identity(4), np.array([3, 2, 1, 0])),
    Ranges(4, [0, 1], [1, 3]),
    Toeplitz([0, 1], [2, 1], [1, 1, 3, 1]),
    Tree.full(4, 2),
]


def measured(factor: Factor, limits: Limits | None = None, noise: Noise = Noise.DISCRETE_LAPLACE) -> Measurements:
    block = Block((factor,), Fraction(10**6), "amount" if limits else None, limits)
    return Measurements(domain=DOMAIN, privacy=Privacy(PureDP(1)), noise=noise, blocks=(block,))


def arrays_of(value: object) -> list[np.ndarray]:
    """Every array that can be reached from a value, and what these are views of."""
    arrays = [found for found in reachable(value) if isinstance(found, np.ndarray)]
    return arrays + [array.base for array in arrays if isinstance(array.base, np.ndarray)]


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_no_array_of_an_operator_can_be_made_writable(operator):
    for array in arrays_of(operator):
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
            array.setflags(write=True)


def test_no_array_of_measurements_can_be_made_writable():
    weighted = measured(Factor(("age",), Tree.full(4, 2), np.array([1, 2, 2, 4, 4, 4, 4])))
    limited = measured(Factor(("age",), Identity(4)), Limits([10, 20, 30, 40], "pay"))
    arrays = arrays_of(weighted) + arrays_of(limited)
    assert len(arrays) >= 4, "the weights, the tree and the limits are reached"
    for array in arrays:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
            array.setflags(write=True)


def test_a_sealed_array_keeps_shape_type_and_values():
    given = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert sealed(given).dtype == np.int32
    assert np.array_equal(sealed(given), given)


def test_the_only_step_is_verified_again_before_it_is_drawn(tmp_path):
    made = measured(Factor(("age",), Identity(4), np.array([1, 1, 1, 1])))
    table = Table(DOMAIN, {"age": [0] * 50 + [2]})
    ledger = opened(tmp_path)
    series = Series.paid(one_step(made), table, ledger, output="out")
    # What no flag can do, the interpreter's own back door can: other weights in the place of those that were paid for.
    object.__setattr__(made.blocks[0].factors[0], "row_weights", sealed(np.full(4, 2**19)))
    object.__setattr__(made.blocks[0].factors[0], "heaviest", 2**19)
    with pytest.raises(InputError, match="is not what was paid for"):
        series.measure(made)
    assert ledger.pending(series.receipt).steps == ()
