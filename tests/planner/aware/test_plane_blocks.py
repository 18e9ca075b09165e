"""The public part of the adaptive grid: how it begins."""

from fractions import Fraction

import pytest

from leastnoise._check import InputError
from leastnoise._planner import plane_regime, records_a_part


def test_the_default_begins_with_more_blocks_where_there_is_more_structure():
    costs = (-50, 0, 79, 81, 223, 224, 447, 448, 5999, 6001)
    want = [("blocks", b) for b in (16, 16, 16, 16, 16, 32, 32, 64, 64)] + [("fixed", 0)]
    assert [plane_regime(cost, 1, 10**4) for cost in costs] == want
    assert plane_regime(Fraction(3200), "0.1", 10**4) == ("blocks", 32)


def test_parts_hold_more_where_the_cost_is_nearer_to_the_records():
    ratios = [records_a_part(cost, 10_000) for cost in (50, 2500, 4900, 6400, 10_000, 40_000)]
    assert ratios == pytest.approx([2, 2, 11 * 0.343, 11 * 0.512, 11, 11])
    # What lies within the noise of the test says nothing: even data are taken for granted.
    assert [records_a_part(cost, records) for cost, records in ((-70, -300), (25, 0), (3, 25))] == [11, 11, 11]


def test_a_budget_below_zero_is_refused():
    with pytest.raises(InputError, match="epsilon must be a number above 0"):
        plane_regime(1, -1, 4)
