"""The data cube strategies of Cormode et al.: known errors of whole plans."""

import math
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._mechanisms import try_strategies
from leastnoise._strategies import PLANNERS, bits_of, walsh_functions
from leastnoise._trusted.accounting import ZCDP, Privacy, PureDP
from leastnoise._trusted.linop import Dense
from leastnoise._workload import marginals, queries, ranges
from strategies.proposals import ADULT8, NLTCS, cube_workload, error_of, plan_of, proposal, tables

EPSILON = Fraction(1, 1000)  # so small that Laplace noise has its continuous variance
ONE = tables(NLTCS, cube_workload(16, 1, ""))


def total(workload, name):
    """Return the total squared error at epsilon 1."""
    return error_of(name, workload, PureDP(EPSILON)) * float(EPSILON) ** 2


# Recovered by least squares: Q+ with GLS, and F+, whose coefficients on two values are orthogonal.
# The figures are squares of the errors in docs/results/datacubes.md, times the number of cells.
@pytest.mark.parametrize(
    ("name", "shape", "kind", "figure"),
    [
        ("workload", NLTCS, "", 8704),
        ("workload", NLTCS, "*", 829926),
        ("fourier", NLTCS, "", 6352),
        ("fourier", NLTCS, "*", 475911),
        ("workload", ADULT8, "", 5726),
        ("workload", ADULT8, "*", 372273),
    ],
)
def test_total_errors_match_the_results_page(name, shape, kind, figure):
    assert total(tables(shape, cube_workload(len(shape), 1, kind)), name) == pytest.approx(
        figure, rel=2e-3
    )


def test_total_errors_of_even_splits():
    # With equal noise on all coefficients, F has an error of 17.0 per cell on the 16 marginals.
    # Least squares reduce the variance of the cells of Q.
    assert math.sqrt(total(ONE, "fourier_even") / 32) == pytest.approx(17.0, abs=0.05)
    # All tables have the same error.
    assert total(ONE, "workload_even") == pytest.approx(total(ONE, "workload"), rel=1e-3)
    assert {len(block.attributes) for block, _ in proposal("cuboids", ONE, PureDP(1)).blocks} == {2}
    assert total(ONE, "cuboids_even") < total(ONE, "workload")


@pytest.mark.parametrize("name", ["workload", "fourier", "cuboids"])
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(1)], ids=["pure", "gaussian"])
def test_best_split_uses_tables_of_the_even_split(name, budget):
    workload = tables((3, 2, 4, 2), [(0,), (1, 2), (2, 3), (0, 1, 3)])
    best, even = (proposal(strategy, workload, budget) for strategy in (name, f"{name}_even"))
    assert [block for block, _ in best.blocks] == [block for block, _ in even.blocks]
    assert len({weight for _, weight in even.blocks}) == 1
    assert len({round(weight, 9) for _, weight in best.blocks}) > 1


def test_signs_are_orthogonal_and_coded_in_bits():
    assert [bits_of(n) for n in ADULT8] == [4, 4, 3, 4, 3, 3, 1, 1]
    every = np.vstack([np.ones(16), walsh_functions(16)])
    np.testing.assert_array_equal(every @ every.T, 16 * np.eye(16))
    np.testing.assert_array_equal(walsh_functions(11), walsh_functions(16)[:, :11])
    assert isinstance(
        proposal("fourier", tables((3,), [(0,)]), PureDP(1)).blocks[1][0].factors[0].operator, Dense
    )


def test_single_product_has_a_weight_for_every_query():
    domain = Domain(a=Integers(0, 15))
    workload = queries(
        domain, a=ranges([(0, 15), (0, 3), (4, 5), (5, 11), (12, 15), *((i, i) for i in range(16))])
    )
    for budget in (PureDP(1), ZCDP(1)):
        ((block, _),) = proposal("workload", workload, budget).blocks
        weights = block.factors[0].scaling
        assert weights.max() == 2**20
        assert len(set(weights.tolist())) > 1
    assert total(workload, "workload") < total(workload, "workload_even")


def test_auto_tries_only_automatic_planners():
    tried = {
        candidate.strategy
        for candidate in try_strategies(tables((3, 4), [(0,), (1,)]), Privacy(PureDP(1)))
    }
    assert (
        {"identity"} <= tried <= {name for name, planner in PLANNERS.items() if planner.automatic}
    )


def test_residual_max_has_the_least_largest_variance():
    domain = Domain(a=Coded(3), b=Coded(5), c=Coded(2))
    workload = marginals(domain, upto=2) + marginals(domain, ways=1, weight=2)
    plans = [plan_of(name, workload, ZCDP("1/2000")) for name in ("residual", "residual_max")]
    usual, least = (
        max(table.weight * table.largest_std for table in plan.expected_error().tables)
        for plan in plans
    )
    assert least < 0.99 * usual
    assert plans[1].details.largest_variance_over_least <= 1 + 2e-6
