"""The privacy cost of a plan, against all neighbouring tables on small domains."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import (
    ZCDP,
    ConcentratedCost,
    GaussianCost,
    Noise,
    Privacy,
    PureCost,
    PureDP,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Contrasts, Dense, Identity, Prefix, Tree
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Limits,
    Measurements,
    column_norm,
    cost,
    row_scales,
    sum_rounded_up,
)
from leastnoise._trusted.measurements._measurements import _integer_root_up
from leastnoise._workload import marginals
from strategies.proposals import proposal
from trusted.measurements.brute import claimed, worst
from trusted.measurements.drawn import BUDGET, GAUSSIAN, LAPLACE, blocks, plan_of


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from([LAPLACE, GAUSSIAN]))
def test_cost_of_added_rows_is_exact(data, noise):
    """Rows at the extremes of a measure from 0 up attain the norm under any limit."""
    measured = data.draw(st.lists(blocks(noise, (None, "tips")), min_size=1, max_size=3))
    counts = plan_of(noise, *(Block(block.factors, block.scale) for block in measured))
    summed = plan_of(
        noise, Block(measured[0].factors, measured[0].scale, "tips", measured[0].limits)
    )
    for plan in (counts, summed):
        assert claimed(plan) == pytest.approx(worst(plan), rel=1e-9)


def test_known_costs_of_limited_sums():
    cells = Factor(("b",), Identity(3))
    far = Measure("pay", 0, 10**6)
    domain = Domain(a=["x", "y"], b=Coded(3), measures={"pay": far})

    def norm_of_blocks(*blocks, power=1):
        plan = Measurements(domain=domain, privacy=Privacy(ZCDP(1)), noise=GAUSSIAN, blocks=blocks)
        return column_norm(plan, power)

    steps = Limits([10, 200, 500], "b")
    assert norm_of_blocks(Block((cells,), Fraction(100), "pay", steps)) == 5
    assert norm_of_blocks(Block((cells,), Fraction(100), "pay", steps), power=2) == 25
    assert norm_of_blocks(Block((cells,), Fraction(100), "pay", Limits([700]))) == 7
    # The block is summed over the attribute of the limits.
    assert norm_of_blocks(Block((), Fraction(100), "pay", steps)) == 5
    # A prefix over three cells: a record of cell 0 enters three times, but with 10 units at most.
    assert norm_of_blocks(Block((Factor(("b",), Prefix(3)),), Fraction(100), "pay", steps)) == max(
        30, 400, 500
    ) * Fraction(1, 100)

    weighted = Factor(("b",), Identity(3), np.array([60, 1, 1]))
    assert norm_of_blocks(Block((weighted,), Fraction(100), "pay", steps)) == 6
    # Several blocks: the cells' sums are added up cell by cell.
    assert norm_of_blocks(
        Block((weighted,), Fraction(100), "pay", steps), Block((cells,), Fraction(10), "pay", steps)
    ) == Fraction(55)
    assert (
        norm_of_blocks(Block((Factor(("b",), Contrasts(3)),), Fraction(100), "pay", steps), power=2)
        == Fraction(2, 3) * 25
    )

    joint = Factor(("a", "b"), Identity(6))
    assert norm_of_blocks(Block((joint,), Fraction(100), "pay", steps)) == 5
    assert norm_of_blocks(Block((joint,), Fraction(100), "pay", Limits([3, 4], "a"))) == Fraction(
        4, 100
    )


def test_equal_blocks_are_found_by_measurements():
    domain = Domain(a=Coded(2), b=Coded(2), c=Coded(2), measures={"pay": Measure("pay", 0, 10)})

    def block(*names, scale=1, measure=None, weights=None):
        return Block(
            tuple(Factor((name,), Identity(2), weights and np.array(weights)) for name in names),
            Fraction(scale),
            measure,
        )

    measured = [
        block("a"),
        block("b"),
        block("b", scale=2),
        block("c"),
        block("c", measure="pay"),
        block("a", weights=(1, 2)),
        block(),
    ]
    plan = Measurements(
        domain=domain,
        privacy=Privacy(PureDP(1)),
        noise=LAPLACE,
        blocks=(*measured, block("a", "b")),
    )
    groups = ["abc", "b", "c", "a", [()], [("a", "b")]]

    assert [[block.attributes for block in group] for group in plan.similar_blocks] == [
        [tuple(name) for name in group] for group in groups
    ]
    assert len(plan.factors) == 4
    assert column_norm(plan, 1) == 3 + Fraction(1, 2) + 10 + 2 + 1 + 1


def test_squares_of_large_limits_do_not_wrap_around():
    domain = Domain(b=Coded(2), measures={"pay": Measure("pay", 0, 2**29)})
    for factors in (
        (),
        (Factor(("b",), Identity(2)),),
        (Factor(("b",), Identity(2), np.array([2**20, 1])),),
    ):
        block = Block(factors, Fraction(1), "pay", Limits([2**29 - 1, 2**29], "b"))
        plan = Measurements(
            domain=domain, privacy=Privacy(ZCDP(1)), noise=GAUSSIAN, blocks=(block,)
        )
        heaviest = factors[0].heaviest if factors else 1
        assert column_norm(plan, 2) == max(((2**29 - 1) * heaviest) ** 2, 2**58)


def test_contrasts_need_gaussian_noise_and_no_weights():
    block = Block((Factor(("b",), Contrasts(3)),), Fraction(1))
    with pytest.raises(InputError, match="Contrasts need Gaussian noise"):
        plan_of(LAPLACE, block)
    with pytest.raises(InputError, match="row_weights of contrasts must be None"):
        Factor(("b",), Contrasts(3), np.array([1, 2]))


@given(st.lists(st.integers(1, 2**27 - 1), min_size=1, max_size=20))
@example([2**26 + 1, 2**27 - 1])  # the float of the root of v v - 1 is v
def test_roots_are_rounded_up(values):
    squares = [value for v in values for value in (v * v, v * v + 1, max(1, v * v - 1))]
    assert _integer_root_up(np.array(squares)).tolist() == [
        math.isqrt(square - 1) + 1 for square in squares
    ]


def test_sensitivities_match_known_costs():
    tree = Block((Factor(("b",), Tree.full(3, 2)),), Fraction(3))
    assert cost(plan_of(LAPLACE, tree)) == PureCost(1)
    # Both rows are in the root.
    assert cost(plan_of(LAPLACE, tree, neighbours="replace")) == PureCost("4/3")
    assert cost(plan_of(Noise.ROUNDED_GAUSSIAN, tree)) == GaussianCost("1/3")
    assert cost(plan_of(GAUSSIAN, tree)) == ConcentratedCost("1/6")
    assert cost(plan_of(GAUSSIAN, tree, neighbours="replace")) == ConcentratedCost("2/9")
    assert cost(plan_of(LAPLACE, tree, unit_column="id", max_rows=5)) == PureCost(5)
    assert cost(plan_of(GAUSSIAN, tree, unit_column="id", max_rows=5)) == ConcentratedCost("25/6")


def test_known_costs_of_replaced_rows():
    signed = Block((Factor(("b",), Dense([[1, -1, 0]])),), Fraction(1))
    assert cost(plan_of(Noise.ROUNDED_GAUSSIAN, signed, neighbours="replace")) == GaussianCost(4)
    pay = Block((), Fraction(1), "pay")
    # A row of 3 replaces a row of -2.
    assert cost(plan_of(Noise.ROUNDED_GAUSSIAN, pay, neighbours="replace")) == GaussianCost(25)
    assert cost(plan_of(LAPLACE, pay, neighbours="replace")) == PureCost(5)
    # A row outside the domain, which counts as nothing, instead of one inside: nobody else sees the
    # total.
    assert cost(
        plan_of(Noise.ROUNDED_GAUSSIAN, Block((), Fraction(1), "tips"), neighbours="replace")
    ) == GaussianCost(16)
    assert cost(plan_of(LAPLACE, Block((), Fraction(1)), neighbours="replace")) == PureCost(1)
    assert cost(
        plan_of(LAPLACE, Block((Factor(("b",), Prefix(3)),), Fraction(1)), neighbours="replace")
    ) == PureCost(3)


def test_costs_are_exact_where_floats_are_not():
    """Scales have 40 or more bits, so a sum of floats would be too small."""
    first_scale = Fraction(2**41 - 21, 2**40 - 87)
    second_scale = Fraction(2**39 - 7, 2**41 - 31)
    third_scale = Fraction(2**43 - 57, 2**38 - 45)
    signed = Factor(("a",), Dense([[1, -2]]))
    several = Factor(("b",), Dense([[1, 0, 1], [0, 3, -1]]))
    measured = (
        Block((signed,), first_scale),
        Block((several,), second_scale),
        Block((signed, several), third_scale),
    )
    assert cost(plan_of(LAPLACE, *measured)) == PureCost(
        2 / first_scale + 3 / second_scale + 6 / third_scale
    )

    cells = Block((Factor(("a",), Identity(2)),), second_scale)
    prefix = Block((Factor(("b",), Prefix(3)),), first_scale)
    assert cost(plan_of(LAPLACE, cells, prefix, neighbours="replace")) == PureCost(
        2 / second_scale + 2 / first_scale
    )

    first_scale = Fraction(2**28 - 57, 2**27 - 39)
    second_scale = Fraction(2**26 - 5, 2**27 - 79)
    third_scale = Fraction(2**22 - 3, 2**24 - 17)
    contrasts = Factor(("a",), Contrasts(2)), Factor(("b",), Contrasts(3))
    residual = (
        Block(contrasts[:1], first_scale),
        Block(contrasts[1:], second_scale),
        Block(contrasts, third_scale),
    )
    farthest = 2 / second_scale**2 + 1 / third_scale**2  # of two rows that agree in a
    assert cost(plan_of(GAUSSIAN, *residual, neighbours="replace")) == ConcentratedCost(
        farthest / 2
    )


def test_costs_of_many_different_scales_stay_short():
    """The exact sum of 46 fractions of 44 bits is too long for a ledger; it is rounded up."""
    terms = [(1, Fraction(1, 3 * n + 1)) for n in range(500)]
    exact = sum(value for _, value in terms)
    assert exact <= sum_rounded_up(terms) <= exact + Fraction(500, 2**128)
    domain = Domain({f"a{place}": Integers(0, 8 + place) for place in range(11)})
    workload = marginals(domain, ways=2)
    for mechanism, budget in BUDGET.items():
        strategy = proposal("marginals", workload, budget, mechanism)
        plan = fit_noise_scales(domain, Privacy(budget), mechanism, strategy.blocks)
        text = json.dumps(cost(plan).to_json())
        assert len({block.scale for block in plan.blocks}) > 30
        assert len(text) < 400


def test_every_row_of_contrasts_gets_its_exact_scale():
    """Scales lie within 2^-24 above the root, also for small rows in a large block."""
    factors = tuple(Factor((name,), Contrasts(90)) for name in ("a", "b", "c"))
    block = Block(factors, Fraction(5, 3))
    tops, bottoms = row_scales(block, 1)
    exact = 5 / 3 * np.sqrt(block.row_squares().astype(float))
    ratio = tops / bottoms / exact
    assert ratio.min() >= 1 - 1e-12
    assert ratio.max() <= 1 + 2**-24


def test_numpy_integers_in_scales_become_pythons_own():
    """Otherwise scale times grid would overflow in the noise but not in the cost."""
    scale = Fraction(np.int64(2**44 + 1), np.int64(1))
    block = Block((), scale)
    assert type(block.scale.numerator) is int
    assert type(block.scale.denominator) is int
    assert Block((), 3).scale == Fraction(3)
    assert isinstance(column_norm(plan_of(LAPLACE, Block((), 3)), 1), Fraction)


def test_large_joint_tables_are_bounded_by_maxima():
    domain = Domain(a=Integers(0, 999), b=Integers(0, 999))
    rows = np.zeros((1, 1000), dtype=int)
    rows[0, 7] = 5
    measured = (
        Block((Factor(("a",), Dense(rows)),), Fraction(1)),
        Block((Factor(("b",), Dense(rows)),), Fraction(2)),
    )
    plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=LAPLACE, blocks=measured)

    assert column_norm(plan, 1) == Fraction(15, 2)
    assert math.isclose(column_norm(plan, 2), 25 + 6.25)


@pytest.mark.parametrize(
    ("operator", "weight", "above", "below"),
    [(Identity(3), None, 56, 56), (Identity(3), 2**20, 56, 36), (Contrasts(3), None, 29, 30)],
    ids=["cells", "weights", "contrasts"],
)
def test_scales_are_fractions_samplers_accept(operator, weight, above, below):
    """Scales stay below 2^56, with row weights and the roots of contrasts."""
    factor = Factor(("b",), operator, None if weight is None else np.full(operator.rows, weight))
    for scale in (Fraction(2**above - 1), Fraction(1, 2**below - 1)):
        assert len(plan_of(GAUSSIAN, Block((factor,), scale)).blocks) == 1
    for scale in (Fraction(2**above), Fraction(1, 2**below)):
        with pytest.raises(
            InputError,
            match="scale must be a fraction whose terms, with grid and row weights, stay below "
            "2\\^56",
        ):
            plan_of(GAUSSIAN, Block((factor,), scale))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("noise", Noise)
def test_queries_that_are_0_for_all_rows_are_refused(noise, neighbours):
    nothing = Block((Factor(("a",), Dense(np.zeros((2, 2), dtype=np.int64))),), Fraction(1))
    with pytest.raises(InputError, match="must count or sum some row; got queries that are 0"):
        cost(plan_of(noise, nothing, neighbours=neighbours))
