"""Plans as values: JSON, digests, guards, and the fitting of noise to a budget."""

import copy
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastnoise._domain import Domain, Integers, Measure
from leastnoise._error import equations
from leastnoise._fitting import fit_noise_scales, gaussian_mu_squared, root_up, round_up
from leastnoise._plan import (
    AdaptiveDetails,
    AdaptivePlan,
    ExpectedError,
    LinearPlan,
    Plan,
    PlanDetails,
    ReferencePlan,
    Step,
    StepChoice,
    TableError,
)
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP, covers
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.linop import Dense, Identity, Prefix, Tree
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Limits,
    Measurements,
    cost,
    measurements_digest,
    measurements_value,
)
from leastnoise._workload import queries

DOMAIN = Domain(a=["x", "y"], b=Integers(0, 7), measures={"pay": Measure("pay", 0, 1000)})
TREE = Block((Factor(("b",), Tree.full(8, 2)),), Fraction(1))
CELLS = Block((Factor(("a",), Identity(2)), Factor(("b",), Identity(8))), Fraction(1))
SUMS = Block((Factor(("a",), Identity(2)),), Fraction(1), "pay")


PAY = Domain(a=["x"], measures={"pay": Measure("pay", 0, 2**30 - 1)})
WORKLOAD = queries(DOMAIN, b="identity", weight=2)


def measure(*blocks, **changes):
    """Return measurements of these blocks, or of a tree, with other fields changed."""
    values = {
        "domain": DOMAIN,
        "privacy": Privacy(PureDP(1)),
        "noise": Noise.DISCRETE_LAPLACE,
        "blocks": blocks or (TREE,),
    }
    return Measurements(**{**values, **changes})


def block_of(*factors, scale=1, measure=None, limits=None):
    return Block(factors, Fraction(scale), measure, limits)


def plan_of(measurements, **changes):
    return LinearPlan(
        workload=WORKLOAD,
        privacy=measurements.privacy,
        strategy="test",
        measurements=measurements,
        **changes,
    )


SMALL = plan_of(measure())


def test_json_round_trip_keeps_everything():
    weighted = Block((Factor(("b",), Tree.full(8, 2), np.arange(1, 16)),), Fraction(7, 3))
    expected_error = ExpectedError(10.5, 2.25, (TableError("b", 8, 2.0, 1.5, 1.75),))
    privacy = Privacy(ApproxDP(1, "1e-9"), "replace", "id", 3)
    measurements = measure(
        weighted, CELLS, SUMS, noise=Noise.ROUNDED_GAUSSIAN, privacy=privacy, grid=16
    )
    plan = plan_of(
        measurements,
        data_independent_error=expected_error,
        details=PlanDetails(largest_variance_over_least=1.5, ended_early=("p_identity",)),
    )
    read_plan = Plan.from_json(plan.to_json())
    assert read_plan == plan
    assert read_plan.digest() == plan.digest() != SMALL.digest()
    assert measurements_digest(read_plan.measured()) == measurements_digest(measurements)
    assert read_plan.workload == WORKLOAD
    assert read_plan.expected_error() == expected_error
    assert plan.lower_bound() == 2.25


def test_limits_survive_json_and_change_the_digest():
    steps = Limits([300, 1000], "a")
    limited_by_a = replace(SUMS, limits=steps)
    limited = replace(SUMS, limits=Limits([500]))
    measurements = measure(TREE, limited_by_a, block_of(scale=2, measure="pay", limits=steps))
    plan = plan_of(measurements)
    read_measurements = Plan.from_json(plan.to_json()).measured()
    assert read_measurements == measurements
    assert measurements_digest(read_measurements) == measurements_digest(measurements)
    assert [block.limits for block in read_measurements.blocks] == [None, steps, steps]
    assert plan.to_json().count("zlib_int64") == 1
    assert (
        len({measurements_digest(measure(block)) for block in (SUMS, limited_by_a, limited)}) == 3
    )
    assert "limits" not in measurements_value(measure(SUMS))
    assert [entry.block.limits for entry in equations(measurements, "pay")] == [steps, steps]
    with pytest.raises(
        InputError,
        match="Sums of pay under different limits have different biases and cannot be estimated "
        "together",
    ):
        equations(measure(limited_by_a, limited), "pay")
    value = json.loads(plan.to_json())
    value["blocks"][1]["limits"] = 1
    with pytest.raises(
        InputError, match="the place of limits must be a whole number from 0 to 0; got 1"
    ):
        Plan.from_json(json.dumps(value))
    value["limits"] = 7
    with pytest.raises(InputError, match="This is not a plan, or a damaged one"):
        Plan.from_json(json.dumps(value))


def test_plan_limits_are_values():
    array = np.array([1, 2])
    limits = Limits(array, "a")
    array[0] = 99
    assert limits == Limits([1, 2], "a") != Limits([1, 2], "b")
    assert len({limits, Limits([1, 2], "a"), Limits([1])}) == 2
    with pytest.raises(ValueError, match="read-only"):
        limits.values[0] = 5


def test_smaller_limit_leaves_headroom_and_noise():
    blocks = [(block_of(measure="pay", limits=Limits([2**20])), 1.0)]
    plan = fit_noise_scales(PAY, Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE, blocks)
    assert plan.blocks[0].scale == 2**20
    assert plan.blocks[0].limits == Limits([2**20])
    low = Domain(a=["x"], measures={"pay": Measure("pay", -50, 100)})
    block = block_of(measure="pay", limits=Limits([10]))
    assert measure(block, domain=low).largest_values(block).tolist() == [50]


def edited(**changes):
    """Return the file of a plan with other entries."""
    return json.dumps(json.loads(SMALL.to_json()) | changes)


def block_with(**changes):
    (block,) = json.loads(SMALL.to_json())["blocks"]
    return edited(blocks=[block | changes])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (text, "This is not a plan, or a damaged one")
            for text in ("", "[]", "{}", '{"format": 1}', '{"format": 1, "factors": [{}]}')
        ),
        *(
            (block_with(scale=scale), "scale must be a text such as '1/3'")
            for scale in ("abc", "1e999999", 0.1, True, "-1/2", "Infinity")
        ),
        (block_with(factors=[-1]), "a factor's place must be a whole number from 0 to 0; got -1"),
        (edited(format=99), "the format of a plan must be 1; got 99. Make the plan again"),
        (
            edited(mechanism="laplace"),
            "mechanism must be one of 'discrete_laplace', .* got 'laplace'",
        ),
    ],
)
def test_damaged_plans_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        Plan.from_json(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measure(noise="numpy"), "the noise of measurements"),
        (lambda: measure(blocks=()), "At least one query must be measured; got no blocks"),
        (lambda: measure(grid=0), "grid must be a whole number from 1"),
        (
            lambda: measure(block_of(scale=0)),
            "scale must be a number above 0; got Fraction\\(0, 1\\)",
        ),
        (lambda: measure(block_of(scale=-1)), "scale must be a number above 0"),
        (
            lambda: measure(block_of(Factor(("c",), Identity(2)))),
            "attributes of a block must be attributes of the domain",
        ),
        (lambda: measure(block_of(CELLS.factors[1], CELLS.factors[0])), "each once, in its order"),
        (lambda: measure(block_of(TREE.factors[0], TREE.factors[0])), "each once, in its order"),
        (
            lambda: measure(block_of(Factor(("b",), Identity(7)))),
            "size of an operator must be the 8 cells of b; got 7",
        ),
        (
            lambda: measure(block_of(measure="tips")),
            "measure of a block must be a measure of the domain; got 'tips'",
        ),
        (
            lambda: measure(block_of(scale=2**57)),
            "scale must be a fraction whose terms, with grid and row weights, stay below 2\\^56",
        ),
        (
            lambda: Factor(("b",), Identity(8), np.zeros(8, dtype=int)),
            "row_weights must be 8 whole numbers from 1 to 2\\^20",
        ),
        (
            lambda: Factor(("b",), Identity(8), np.full(8, 1.5)),
            "row_weights must be whole numbers; got 'float64'",
        ),
        (
            lambda: Limits([1, 2]),
            "limits without an attribute must be one value; got '2 values'. Name the attribute",
        ),
        (lambda: Limits([1.5]), "limits must be a flat array of whole numbers; got 'float64 array"),
        (lambda: Limits([]), "limits must be a flat array of whole numbers"),
        (
            lambda: Limits([5, -1], "a"),
            "limits must be from 0 to 2\\^53 - 1 units, one of them at least 1; got '-1 to 5'",
        ),
        (lambda: Limits([0]), "one of them at least 1; got '0 to 0'"),
        (lambda: Limits(np.array([2**64 - 1], dtype=np.uint64)), "from 0 to 2\\^53 - 1 units"),
        (
            lambda: measure(block_of(limits=Limits([1]))),
            "the limits of a block of counts must be None",
        ),
        (
            lambda: measure(block_of(measure="pay", limits=Limits([1, 2, 3], "a"))),
            "one for each of the 2 cells of a; got '3 values'",
        ),
        (
            lambda: measure(block_of(measure="pay", limits=Limits([1], "z"))),
            "an attribute must be one of 'a', 'b'",
        ),
        (
            lambda: measure(block_of(measure="pay", limits=Limits([1001]))),
            "at most the upper bound of pay, 1000 units; got 1001",
        ),
        (lambda: measure(grid=3), "grid must be a power of two; got 3"),
        (SMALL.expected_error, "has no expected error"),
    ],
)
def test_plan_refuses_invalid_parts(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_plan_refuses_bounds_beyond_exact_arithmetic():
    with pytest.raises(
        InputError,
        match=(
            r"too large for exact arithmetic: a measured sum may reach \d+, allowed is below "
            r"2\^62. Choose a larger unit"
        ),
    ):
        measure(block_of(Factor(("a",), Dense(np.array([[2]]))), measure="pay"), domain=PAY)


def test_plan_refuses_uncountable_tables_with_size():
    domain = Domain(a=Integers(1, 2**15), b=Integers(1, 2**15))
    with pytest.raises(
        InputError, match="may have at most 268435456 cells; got 1073741824 for a x b"
    ):
        measure(block_of(*(Factor((name,), Identity(2**15)) for name in "ab")), domain=domain)


def test_plan_file_arrays_are_bounded_by_the_domain():
    plan = plan_of(measure(block_of(Factor(("b",), Dense(np.eye(8, dtype=int)), np.arange(1, 9)))))
    for place, shape, message in (
        ("operator", [8, 9], "at most 8 columns"),
        ("row_weights", [2**40], "of at most 8 numbers"),
    ):
        damaged = json.loads(plan.to_json())
        array = damaged["factors"][0][place]
        if place == "operator":
            array = array["matrix"]
        array["shape"] = shape
        with pytest.raises(InputError, match=message):
            Plan.from_json(json.dumps(damaged))
    assert Plan.from_json(plan.to_json()) == plan


def test_plan_details_are_immutable_at_any_depth():
    impossible = [{"a": [0, 1]}]
    plan = plan_of(measure(), details=PlanDetails(impossible=impossible, high_errors={"a": 3.5}))
    digest = plan.digest()
    impossible[0]["a"].append(1)
    for change in (
        lambda: plan.details.high_errors.update(x=1),
        lambda: plan.details.impossible[0].pop("a"),
    ):
        with pytest.raises(
            TypeError, match="The fields of a plan cannot be changed; make another plan"
        ):
            change()
    assert plan.details.impossible == ({"a": (0, 1)},)
    assert plan.digest() == digest
    assert Plan.from_json(plan.to_json()) == plan
    for copied in (
        copy.copy(plan.details),
        copy.deepcopy(plan.details),
        pickle.loads(pickle.dumps(plan.details)),
    ):
        assert type(copied) is type(plan.details)
        assert copied == plan.details


ADAPTIVE = AdaptivePlan(
    workload=SMALL.workload,
    privacy=SMALL.privacy,
    strategy="test",
    adaptive=AdaptiveDetails(
        noise=Noise.DISCRETE_LAPLACE,
        steps=(
            Step("test", PureDP("1/9")),
            StepChoice((("few", (Step("cells", PureDP("1/2")),)), ("many", ()))),
        ),
        attributes=("b",),
        borders={"easy": 0.5},
        pairs=3,
        reference=ReferencePlan(
            strategy="workload",
            noise=Noise.DISCRETE_LAPLACE,
            expected_total_squared_error=9.5,
            lower_bound=3.0,
            rmse=(1.5,),
        ),
    ),
    fallback=SMALL,
)


def test_adaptive_plan_survives_json():
    read_plan = Plan.from_json(ADAPTIVE.to_json())
    assert read_plan == ADAPTIVE
    assert read_plan.digest() == ADAPTIVE.digest()
    assert read_plan.fallback == SMALL
    assert ADAPTIVE.cost().budget == PureDP(1)


def test_adaptive_plan_names_its_missing_parts():
    for method, missing in (
        (ADAPTIVE.measured, "no measurements that are known beforehand"),
        (ADAPTIVE.lower_bound, "no expected error"),
    ):
        with pytest.raises(
            InputError, match=f"The plan 'test' has {missing}: its measurements depend on the data"
        ):
            method()


def test_damaged_adaptive_plans_are_refused():
    value = json.loads(ADAPTIVE.to_json())
    with pytest.raises(InputError, match="must have queries; got none"):
        Plan.from_json(json.dumps(value | {"questions": []}))
    with pytest.raises(InputError, match="the format of a plan must be 1; got 2"):
        Plan.from_json(json.dumps(value | {"data_aware": 2}))
    del value["details"]["adaptive"]
    with pytest.raises(InputError, match="Make it again with leastnoise"):
        Plan.from_json(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"workload": ()},
            "the workload and privacy of a plan must be Workload, Privacy; got 'tuple, Privacy'",
        ),
        ({"strategy": ""}, "strategy of a plan must be a name"),
        ({"details": 2}, "details must be a PlanDetails object"),
        ({"privacy": Privacy(PureDP(2))}, "must have its domain and privacy"),
    ],
)
def test_plan_rejects_inconsistent_parts(change, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_one_short_scale_meets_pure_budgets_exactly():
    plan = fit_noise_scales(DOMAIN, Privacy(PureDP("1/3")), Noise.DISCRETE_LAPLACE, [(TREE, 0.7)])
    # The tree has 4 levels, each with a scale of 4 / epsilon.
    assert plan.blocks[0].scale == 12
    assert cost(plan).epsilon == Fraction(1, 3)


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        (PureDP("0.7"), Noise.DISCRETE_LAPLACE),
        (ApproxDP(2, "1e-9"), Noise.DISCRETE_LAPLACE),
        (ApproxDP("0.3", "1e-9"), Noise.ROUNDED_GAUSSIAN),
        (ZCDP("1/7"), Noise.DISCRETE_GAUSSIAN),
        (ZCDP("1/7"), Noise.ROUNDED_GAUSSIAN),
        (ZCDP("1/7"), Noise.DISCRETE_LAPLACE),
    ],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_fitted_plans_cost_the_budget_and_hardly_less(budget, mechanism, neighbours, rows):
    privacy = Privacy(budget, neighbours, None if rows == 1 else "id", rows)
    blocks = [
        (TREE, 0.123),
        (CELLS, 3.7),
        (SUMS, 1e-4),
        (block_of(Factor(("b",), Prefix(8), np.arange(1, 9))), 0.5),
    ]
    plan = fit_noise_scales(DOMAIN, privacy, mechanism, blocks)
    assert covers(privacy.budget, cost(plan))
    # One part in ten thousand less noise would be too little.
    smaller_scales = tuple(
        replace(block, scale=round_up(block.scale * Fraction(9999, 10000), 20))
        for block in plan.blocks
    )
    assert not covers(privacy.budget, cost(replace(plan, blocks=smaller_scales)))
    ratios = [
        float(block.scale) * weight for block, (_, weight) in zip(plan.blocks, blocks, strict=True)
    ]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)


def test_rounded_gaussians_get_a_fine_grid():
    privacy = Privacy(ApproxDP(1, "1e-6"))
    plan = fit_noise_scales(DOMAIN, privacy, Noise.ROUNDED_GAUSSIAN, [(TREE, 1.0)])
    # The tree has 4 levels, so that a row changes 4 counts by 1.
    sigma = 1 / math.sqrt(float(gaussian_mu_squared(Fraction(1), Fraction(1, 10**6))) / 4)
    assert float(plan.blocks[0].scale) == pytest.approx(sigma, rel=1e-6)
    assert float(plan.blocks[0].scale) * plan.grid >= 2**7


def test_noise_must_match_the_privacy_definition():
    with pytest.raises(
        InputError,
        match=r"the noise must be discrete_laplace for the budget PureDP.* got 'rounded_gaussian'",
    ):
        fit_noise_scales(DOMAIN, Privacy(PureDP(1)), Noise.ROUNDED_GAUSSIAN, [(TREE, 1.0)])
    with pytest.raises(
        InputError,
        match=(
            r"must be rounded_gaussian or discrete_laplace for the budget ApproxDP.* got "
            r"'discrete_gaussian'"
        ),
    ):
        fit_noise_scales(
            DOMAIN, Privacy(ApproxDP(1, "1e-6")), Noise.DISCRETE_GAUSSIAN, [(TREE, 1.0)]
        )
    with pytest.raises(InternalError, match="weight that is not above 0"):
        fit_noise_scales(
            DOMAIN, Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE, [(TREE, 1.0), (CELLS, 0.0)]
        )


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_rounding_up_is_up_and_close(value):
    assert value <= round_up(value, 30) <= value * (1 + Fraction(1, 2**28))
    assert value <= root_up(value) ** 2 <= value * (1 + Fraction(1, 2**55))
