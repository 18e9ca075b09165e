"""Budgets and privacy units: what they accept and refuse, and their JSON."""

import json
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leastnoise._domain import PerCellBound
from leastnoise._fitting import pure_share
from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    Privacy,
    PureCost,
    PureDP,
    budget_from_json,
    charge_of_budget,
    cost_from_json,
    privacy_from_json,
    step_charge,
    sum_charges,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.domain import Reading

POSITIVE = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)
BELOW_ONE = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(10**12 - 1, 10**12))
BUDGETS = st.one_of(
    POSITIVE.map(PureDP), POSITIVE.map(ZCDP), st.builds(ApproxDP, POSITIVE, BELOW_ONE)
)


@pytest.mark.parametrize(
    "value", [1, "1", 1.0, Fraction(1), Decimal(1), "2/2", "1e0", np.float64(1), np.int64(1)]
)
def test_equal_numbers_give_equal_budgets(value):
    assert PureDP(value) == PureDP(1) != ZCDP(1)
    with pytest.raises(AttributeError):
        PureDP(value).epsilon = Fraction(2)
    assert ZCDP(value) == ZCDP(1)
    assert ApproxDP(value, "1e-9") == ApproxDP(1, Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        (math.nan, "a finite number"),
        (True, "a finite number"),
        (0, "a number above 0; got 0. A budget of nothing allows no release."),
        (-1, "a number above 0; got -1."),
        ("-1/3", "a number above 0; got '-1/3'."),
    ],
)
@pytest.mark.parametrize(
    ("name", "make"),
    [("epsilon", PureDP), ("rho", ZCDP), ("epsilon", lambda value: ApproxDP(value, "1e-9"))],
)
def test_non_positive_numbers_are_refused(name, make, value, allowed):
    with pytest.raises(InputError, match=re.escape(f"{name} must be {allowed}")):
        make(value)


@pytest.mark.parametrize(
    ("delta", "message"),
    [
        (
            0,
            "delta must be a number above 0 and below 1; got 0. For delta = 0 use PureDP(epsilon).",
        ),
        (
            1,
            (
                "delta must be a number above 0 and below 1; got 1. Choose far less than one over "
                "the number of people"
            ),
        ),
        ("1.5", "delta must be a number above 0 and below 1; got '1.5'."),
        (-1e-9, "delta must be a number above 0 and below 1; got -1e-09."),
        (math.nan, "delta must be a finite number"),
        (math.inf, "delta must be a finite number"),
    ],
)
def test_delta_out_of_range_is_refused(delta, message):
    with pytest.raises(InputError, match=re.escape(message)):
        ApproxDP(1, delta)


def test_overlong_numbers_are_refused():
    for make in (PureDP, ZCDP, lambda value: ApproxDP(1, value)):
        with pytest.raises(InputError, match="at most 1000 digits each; got a longer one"):
            make(Fraction(1, 10**1000 + 1))
    budget = PureDP(Fraction(10**1000 - 1, 10**999 + 7))
    assert budget_from_json(json.loads(json.dumps(budget.to_json()))) == budget


@given(
    BUDGETS,
    st.sampled_from(["add_remove", "replace"]),
    st.one_of(st.just(()), st.tuples(st.just("person id"), st.integers(1, 10**6))),
)
def test_budgets_survive_json_pickle_and_repr(budget, neighbours, unit):
    assert budget_from_json(json.loads(json.dumps(budget.to_json()))) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget
    assert eval(repr(budget)) == budget  # noqa: S307 - our own text
    assert hash(budget) == hash(budget_from_json(budget.to_json()))
    privacy = Privacy(budget, neighbours, *unit)
    assert privacy_from_json(json.loads(json.dumps(privacy.to_json()))) == privacy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"budget": 1},
            (
                "budget must be PureDP(epsilon), ApproxDP(epsilon, delta), ZCDP(rho) or "
                "GDP(mu_squared); got 1."
            ),
        ),
        (
            {"neighbours": "add-remove"},
            "neighbours must be one of 'add_remove', 'replace'; got 'add-remove'.",
        ),
        (
            {"unit_column": " "},
            "unit_column must be the name of a column, or None if every row is a unit; got ' '.",
        ),
        ({"unit_column": 3}, "unit_column must be the name of a column"),
        (
            {"unit_column": "id", "max_rows": 0},
            "max_rows must be a whole number of at least 1; got 0.",
        ),
        (
            {"unit_column": "id", "max_rows": 1.5},
            "max_rows must be a whole number of at least 1; got 1.5.",
        ),
        (
            {"max_rows": 5},
            (
                "max_rows must be 1 if every row is a unit; got 5. Name the column of the unit "
                "(unit_column)."
            ),
        ),
        (
            {"unit_column": "id", "max_rows": 5, "max_per_cell": PerCellBound(6, "month")},
            "max_per_cell must be at most max_rows, the rows of a unit in all cells; got 6.",
        ),
        (
            {"max_per_cell": PerCellBound(1, "month")},
            "max_per_cell must be none where the unit is a row; got 1.",
        ),
        (
            {"unit_reading": Reading(trim=True)},
            "unit_reading must be left out if every row is a unit; got Reading(trim=True).",
        ),
        (
            {"unit_column": "id", "unit_reading": Reading(column="person")},
            "unit_reading must be a Reading without a column; got Reading(column='person').",
        ),
    ],
)
def test_unusable_privacy_is_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Privacy(**{"budget": PureDP(1), **arguments})


def test_same_unit_compares_column_and_neighbours():
    privacy = Privacy(PureDP(1), unit_column="id", max_rows=2)
    assert privacy.same_unit(Privacy(ZCDP(3), unit_column="id", max_rows=2))
    assert privacy.same_unit(
        Privacy(PureDP(1), unit_column="id", max_rows=3, max_per_cell=PerCellBound(1, "month"))
    )
    assert not privacy.same_unit(Privacy(PureDP(1), unit_column="other", max_rows=2))
    assert not privacy.same_unit(Privacy(PureDP(1), "replace", "id", 2))
    assert not privacy.same_unit(Privacy(PureDP(1)))


UNIT = Privacy(PureDP(1), unit_column="id").to_json()


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        *(
            (budget_from_json, data)
            for data in (
                None,
                "PureDP",
                [],
                {},
                {"definition": "PureDP"},
                {"definition": "Pure", "epsilon": "1"},
            )
        ),
        (budget_from_json, {"definition": "PureDP", "epsilon": "1", "delta": "0"}),
        *((budget_from_json, {"definition": "PureDP", "epsilon": epsilon}) for epsilon in (1, "0")),
        (budget_from_json, {"definition": "ApproxDP", "epsilon": "1", "delta": "1"}),
        (budget_from_json, {"definition": "ZCDP", "rho": "nan"}),
        *(
            (privacy_from_json, UNIT | {name: value})
            for name, value in (("unit_column", 3), ("max_rows", True), ("max_rows", "1"))
        ),
        *(
            (privacy_from_json, UNIT | {name: value})
            for name, value in (("neighbours", None), ("more", 1))
        ),
        *(
            (cost_from_json, data)
            for data in (
                None,
                3,
                {},
                {"kind": "pure"},
                {"kind": "pure", "epsilon": "0"},
                {"kind": "pure", "rho": "1"},
            )
        ),
        (cost_from_json, {"kind": "laplace", "epsilon": "1"}),
    ],
)
def test_budget_refuses_foreign_json(parse, data):
    with pytest.raises(InputError, match=" must be "):
        parse(data)


@given(
    BUDGETS, st.lists(st.fractions(min_value=Fraction(1, 100), max_value=1), min_size=1, max_size=5)
)
def test_shares_of_a_budget_add_up_to_it(budget, parts):
    total = charge_of_budget(budget)
    shares = [charge_of_budget(budget.scaled(weight / sum(parts))) for weight in parts]
    assert sum_charges(shares) == total


@given(BUDGETS, st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100)))
def test_pure_step_and_rest_stay_within_budget(budget, share):
    epsilon = pure_share(budget, share)
    assume(epsilon > 0)
    step = step_charge(budget, PureDP(epsilon), PureCost(epsilon))
    assert sum_charges((step, charge_of_budget(budget.without(epsilon)))) == charge_of_budget(
        budget
    )

    # The step costs at most the share, and hardly less.
    share_charge = charge_of_budget(budget.scaled(share))
    step_size, share_size = (amount.rho or amount.epsilon for amount in (step, share_charge))
    assert share_size - epsilon * Fraction(2, 2**40) <= step_size <= share_size


@pytest.mark.parametrize(
    ("neighbours", "rows", "distance"),
    [("add_remove", 1, 1), ("add_remove", 3, 3), ("replace", 1, 2), ("replace", 3, 6)],
)
def test_distance_of_neighbours(neighbours, rows, distance):
    privacy = Privacy(PureDP(1), neighbours, "person", rows)
    assert privacy.distance == distance
    assert privacy.scaled(Fraction(1, 3)) == Privacy(PureDP("1/3"), neighbours, "person", rows)


@pytest.mark.parametrize("rows", range(1, 8))
def test_squares_are_the_largest_sum_over_cells(rows):
    """Compare with all ways to distribute a unit's rows over cells, with a limit per cell."""

    def largest(rows_left, most):
        return max(
            (
                in_cell**2 + largest(rows_left - in_cell, most)
                for in_cell in range(1, min(rows_left, most) + 1)
            ),
            default=0,
        )

    for most in range(1, rows + 1):
        bound = PerCellBound(most, "month")
        privacy = Privacy(ZCDP(1), unit_column="id", max_rows=rows, max_per_cell=bound)
        assert privacy.squares == largest(rows, most)

    assert Privacy(ZCDP(1), unit_column="id", max_rows=rows).squares == rows**2
