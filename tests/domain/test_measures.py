"""Refusals and texts of measures that are computed from other columns."""

import pytest

from leastnoise._domain import Coded, Domain, Measure, SquaredDeviation, UnitCount
from leastnoise._trusted.check import InputError
from leastnoise._trusted.domain import DeviationProduct

PAY = Measure("pay", 0, 100)
AGE = Measure("age", 20, 60)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UnitCount(["a"], groups=[[[0]], [[1]]]), "one for each of 1 attributes; got 2"),
        (lambda: UnitCount(["a"], groups=[[]]), "the groups of a count of units must be groups"),
        (lambda: UnitCount(["a"], groups=[[[0], []]]), "the groups of a count of units must be"),
        (
            lambda: Domain(
                {"a": Coded(2)}, measures={"units": UnitCount(["a"], groups=[[[0], [2]]])}
            ),
            "a group of 'units' must be cells of the attribute; got 'the cell 2 of a'",
        ),
        (lambda: SquaredDeviation(UnitCount()), "must be one of a Measure of values of rows"),
        (lambda: DeviationProduct([], [PAY]), "the factors of a product must be 1 to 2"),
        (lambda: DeviationProduct([PAY] * 3, [PAY]), "the factors of a product must be 1 to 2"),
        (lambda: DeviationProduct([AGE], [PAY]), "the factors of a product must be 1 to 2"),
        (lambda: DeviationProduct([PAY], []), "the measures of complete rows must be at least"),
        (lambda: DeviationProduct([PAY], [PAY, PAY]), "the measures of complete rows must be at"),
        (lambda: DeviationProduct([PAY], [PAY, UnitCount()]), "the measures of complete rows must"),
    ],
)
def test_computed_measures_refuse_invalid_arguments(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)


def test_computed_measures_have_a_text_form():
    assert repr(UnitCount(["a"])) == "UnitCount(['a'])"
    assert repr(UnitCount(["a"], groups=[[[1, 0]]])) == "UnitCount(['a'], groups=(((0, 1),),))"
