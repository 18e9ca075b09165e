"""The strategies of Cormode et al. by name: known totals through whole plans, native and coded attributes, both budgets and neighbours."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from leastnoise import _planner
from leastnoise._accounting import ZCDP, Budget, Privacy, PureDP, covers
from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._linop import Dense
from leastnoise._mechanisms import candidates
from leastnoise._plan import Plan
from leastnoise._planner import PLANNERS
from leastnoise._planner._papers import bits_of, signs
from leastnoise._workload import Product, Workload, identity, marginals, queries, ranges
from planner.proposals import proposal

BY_NAME = [name for name, planner in PLANNERS.items() if not planner.automatic]
EPSILON = Fraction(1, 1000)  # so small that Laplace noise has its continuous variance


def cube(shape: tuple[int, ...], sets: list[tuple[int, ...]]) -> Workload:
    domain = Domain({f"x{i}": Coded(n) for i, n in enumerate(shape)})
    return Workload(
        domain,
        tuple(Product(domain=domain, attributes=tuple(f"x{i}" for i in s), query_sets=(identity(),) * len(s)) for s in sets),
    )


def planned(workload: Workload, name: str, budget: Budget) -> Plan:
    (found, *_) = candidates(workload, Privacy(budget), name)
    assert found.plan is not None, found.reason
    assert covers(budget, found.plan.cost())
    return found.plan


def total(workload: Workload, name: str) -> float:
    """Total squared error at epsilon 1."""
    return planned(workload, name, PureDP(EPSILON)).expected_error().total_squared_error * float(EPSILON) ** 2


NLTCS, ADULT = (2,) * 16, (9, 16, 7, 15, 6, 5, 2, 2)
ONE, TWO = [(i,) for i in range(16)], list(combinations(range(16), 2))


# Recovered by least squares: Q+ with GLS, and F+, whose coefficients on two values are orthogonal.
@pytest.mark.parametrize(
    ("name", "shape", "sets", "figure"),
    [
        ("workload", NLTCS, ONE, 8704),
        ("workload", NLTCS, ONE + TWO[::2], 829926),
        ("fourier", NLTCS, ONE, 6352),
        ("fourier", NLTCS, ONE + TWO[::2], 475911),
        ("workload", ADULT, [(i,) for i in range(8)], 5726),
        ("workload", ADULT, [(i,) for i in range(8)] + list(combinations(range(8), 2))[::2], 372273),
    ],
)
def test_known_totals(name: str, shape: tuple[int, ...], sets: list[tuple[int, ...]], figure: float) -> None:
    assert total(cube(shape, sets), name) == pytest.approx(figure, rel=2e-3)


def test_known_even_totals() -> None:
    # Per cell: F (all coefficients alike) 17.0 on the 16 marginals; the variance of Q's cells is improved by least squares.
    workload = cube(NLTCS, ONE)
    assert math.sqrt(total(workload, "fourier_even") / 32) == pytest.approx(17.0, abs=0.05)
    assert total(workload, "workload_even") == pytest.approx(total(workload, "workload"), rel=1e-3)  # all tables are alike
    (two,) = {len(block.attributes) for block in planned(workload, "cuboids", PureDP(1)).measured().blocks}
    assert two == 2
    assert total(workload, "cuboids_even") < total(workload, "workload")


@pytest.mark.parametrize("name", ["workload", "fourier", "cuboids"])
@pytest.mark.parametrize("power", [1, 2])
def test_the_best_split_is_never_worse_than_the_even_one_before_recovery(name: str, power: int) -> None:
    workload = cube((3, 2, 4, 2), [(0,), (1, 2), (2, 3), (0, 1, 3)])
    budget = PureDP(1) if power == 1 else ZCDP(1)
    best, even = (proposal(own, workload, budget) for own in (name, f"{name}_even"))
    assert [block for block, _ in best.blocks] == [block for block, _ in even.blocks]
    assert len({weight for _, weight in even.blocks}) == 1
    assert len({round(weight, 9) for _, weight in best.blocks}) > 1


def test_signs_are_orthogonal_and_coded_in_bits() -> None:
    assert [bits_of(n) for n in ADULT] == [4, 4, 3, 4, 3, 3, 1, 1]
    every = np.vstack([np.ones(16), signs(16)])
    np.testing.assert_array_equal(every @ every.T, 16 * np.eye(16))
    np.testing.assert_array_equal(signs(11), signs(16)[:, :11])


SMALL = Domain(a=Coded(3), b=Integers(0, 3), c=Coded(2), measures={"pay": Measure("pay", 0, 9)})
MIXED = marginals(SMALL, ways=2) + queries(SMALL, b="prefix", weight=2) + marginals(SMALL, ways=1, of=["a", "c"], sum="pay")


def test_a_single_product_has_a_weight_for_every_query() -> None:
    domain = Domain(a=Integers(0, 15))
    workload = queries(domain, a=ranges([(0, 15), (0, 3), (4, 5), (5, 11), (12, 15), *((i, i) for i in range(16))]))
    for budget in (PureDP(1), ZCDP(1)):
        ((block, _),) = proposal("workload", workload, budget).blocks
        weights = block.factors[0].row_weights
        assert weights is not None
        assert weights.max() == 2**20
        assert len(set(weights.tolist())) > 1
    assert total(workload, "workload") < total(workload, "workload_even")


def test_auto_leaves_them_out() -> None:
    tried = {candidate.strategy for candidate in candidates(marginals(SMALL, ways=1), Privacy(PureDP(1)))}
    assert tried
    assert not tried & set(BY_NAME)


def test_what_cannot_be_planned_is_refused() -> None:
    long = Domain(a=Integers(0, 1999))
    with pytest.raises(_planner.NotApplicable, match="coded in bits at most 1024"):
        proposal("fourier", queries(long, a="prefix"), PureDP(1))
    wide = Domain({f"a{i}": Coded(2) for i in range(50)})
    with pytest.raises(_planner.NotApplicable, match="coefficients; at most"):
        proposal("fourier", marginals(Domain({f"a{i}": Coded(1000) for i in range(3)}), ways=3), PureDP(1))
    pairs = marginals(wide, ways=3)
    with pytest.raises(_planner.NotApplicable, match="pairs of the two"):
        proposal("cuboids", pairs, PureDP(1))
    assert isinstance(proposal("fourier", marginals(SMALL, ways=1), PureDP(1)).blocks[1][0].factors[0].operator, Dense)


def test_the_largest_variance_is_least_under_residual_max() -> None:
    workload = marginals(Domain(a=Coded(3), b=Coded(5), c=Coded(2)), upto=2) + marginals(
        Domain(a=Coded(3), b=Coded(5), c=Coded(2)), ways=1, weight=2
    )
    largest = {}
    for name in ("residual", "residual_max"):
        plan = planned(workload, name, ZCDP("1/2000"))
        largest[name] = max(one.weight * one.largest_std for one in plan.expected_error().tables)
        if name == "residual_max":
            assert plan.details["largest_variance_over_least"] <= 1 + 2e-6
    assert largest["residual_max"] < 0.99 * largest["residual"]
    with pytest.raises(_planner.NotApplicable, match="choose cuboids"):
        proposal("residual_max", workload, PureDP(1))
    with pytest.raises(_planner.NotApplicable, match="counts alone"):
        proposal("residual_max", MIXED, ZCDP(1))
