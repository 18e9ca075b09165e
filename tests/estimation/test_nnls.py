"""Non-negative least squares: its minimiser, certificates, errors and refusals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Domain, Integers, Measure
from leastnoise._error import JointBlocks, block_rows, block_variance, equations
from leastnoise._estimation import Estimate, nnls, non_negative_cells, simulate_noise
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import Search, choose_plan
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import AllRanges, Haar, Identity, Tree, apply
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals, queries

LINE = Domain(x=Integers(0, 127))
RANGES = queries(LINE, x="all_ranges")
PLANE = Domain(a=Integers(0, 3), b=Integers(0, 4), measures={"debt": Measure("debt", -5, 5)})


def along(operator, epsilon="1/100"):
    block = Block((Factor(("x",), operator),), Fraction(1))
    return fit_noise_scales(LINE, Privacy(PureDP(epsilon)), Noise.DISCRETE_LAPLACE, [(block, 1.0)])


def sparse():
    """Return a sparse histogram: 5 large cells and some small ones."""
    rng = np.random.default_rng(4)
    cells = np.zeros(128, dtype=np.int64)
    cells[rng.choice(128, 12, replace=False)] = rng.geometric(0.02, 12)
    cells[rng.choice(128, 5, replace=False)] += rng.integers(500, 9000, 5)
    return cells


def observed(plan, seed):
    """Return a simulated observation of the sparse histogram, one block along x."""
    noise = simulate_noise(plan, [0], 1, np.random.default_rng(seed))[0][:, 0]
    (factor,) = plan.blocks[0].factors
    values = (apply(factor.operator, sparse()) + noise) * plan.grid
    return Observation(plan, (np.rint(values).astype(np.int64),), "", private=False)


def two_tables():
    weighted_tree = Factor(("b",), Tree.full(5, 2), np.arange(1, 12))
    blocks = (
        Block((Factor(("a",), Identity(4)), weighted_tree), Fraction(30)),
        Block((Factor(("a",), Tree(4, (4, 2))),), Fraction(7)),
        Block((), Fraction(2)),
    )
    plan = Measurements(
        domain=PLANE, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )
    rng = np.random.default_rng(9)
    values = tuple(rng.integers(-25, 60, block.rows) for block in blocks)
    return Observation(plan, values, "", private=False)


def objective(observation, cells):
    """Return the explicit objective, and rows and values scaled to unit variance."""
    plan = observation.measurements
    rows = []
    values = []
    for block, block_values in zip(plan.blocks, observation.values, strict=True):
        std = np.sqrt(block_variance(plan, block))
        rows.append(block_rows(plan.domain, plan.domain.names, block) / std)
        values.append(block_values / plan.grid * block.scaling() / std)
    a = np.vstack(rows)
    z = np.concatenate(values)
    return 0.5 * float(((a @ cells.reshape(-1) - z) ** 2).sum()), a, z


def test_nnls_gap_bounds_distance_to_minimum():
    observation = two_tables()
    minimum, *_ = objective(observation, nnls(observation, duality_gap=1e-10).cells)
    for gap in (10.0, 0.1, 1e-3):
        solution = nnls(observation, duality_gap=gap)
        value, *_ = objective(observation, solution.cells)
        assert -1e-8 <= value - minimum <= solution.duality_gap + 1e-9


@pytest.mark.parametrize("grid", [1, 4])
def test_nnls_keeps_the_total_and_is_optimal(grid):
    observation = two_tables()
    plan = replace(observation.measurements, grid=grid)
    observation = replace(observation, measurements=plan)
    total = float(Estimate(observation).marginal(()))
    assert total > 0
    solution = nnls(observation, duality_gap=1e-9)
    assert solution.cells.sum() == pytest.approx(total, rel=1e-9)
    assert solution.cells.min() >= 0
    assert (solution.cells == 0).sum() >= 3
    # First-order conditions: the gradient of a positive cell is the least of all.
    _, a, z = objective(observation, solution.cells)
    slope = a.T @ (a @ solution.cells.reshape(-1) - z)
    assert np.all(slope[solution.cells.reshape(-1) > 1e-3] - slope.min() < 1e-3)


def joint_blocks_of(plan):
    blocks = [(equation.block, equation.variance) for equation in equations(plan, None)]
    return JointBlocks.of(plan.domain, blocks)


def error_ratios(plan):
    """Return errors of cells and ranges after non-negative least squares over those before."""
    joint = joint_blocks_of(plan)
    truth = sparse()[:, None]
    noise = simulate_noise(plan, [0], 40, np.random.default_rng(2))[0]
    b = joint.gram(truth.astype(float)) + joint.gather([noise])
    before = joint.solve(b, "a test") - truth
    after = non_negative_cells(joint, b, 1e-4)[0] - truth

    def error_ratio(operator):
        """Return the RMSE of queries after NNLS, divided by the RMSE before."""
        squared_before = (apply(operator, before) ** 2).mean()
        squared_after = (apply(operator, after) ** 2).mean()
        return float(np.sqrt(squared_after / squared_before))

    return error_ratio(Identity(128)), error_ratio(AllRanges(128))


def test_nnls_helps_with_weak_and_strong_totals():
    level_tree, _ = choose_plan(RANGES, Privacy(PureDP("1/100")), Search("level_tree"))
    plans = [
        along(Tree.full(128, 2)),
        along(Haar(128)),
        level_tree.measured(),
        along(Identity(128)),
    ]
    # The margins are wide: seeds are fixed, 40 releases give each ratio to about 10%.
    ratios = [error_ratios(plan) for plan in plans]
    assert max(ratio_of_cells for ratio_of_cells, _ in ratios) < 0.8
    assert max(ratio_of_ranges for _, ratio_of_ranges in ratios) < 0.95


def test_nnls_refuses_unsupported_requests():
    with pytest.raises(InputError, match="one of counts on a, b"):
        nnls(two_tables()).estimate(queries(PLANE, a="identity", sum="debt").products[0])


@pytest.fixture(scope="module")
def tree_solution():
    """Return the solution of one observation of a tree, with errors from 40 simulations."""
    plan = along(Tree.full(128, 2))
    return replace(nnls(observed(plan, 3)), repetitions=40)


def test_nnls_answers_agree(tree_solution):
    (cells,) = marginals(LINE, ways=1)
    (sums,) = queries(LINE, x="prefix")
    np.testing.assert_allclose(
        np.cumsum(tree_solution.estimate(cells).values),
        tree_solution.estimate(sums).values,
        rtol=1e-9,
        atol=1e-9,
    )


def root_mean_square(values):
    return float(np.sqrt((values**2).mean()))


def test_nnls_errors_match_simulation(tree_solution):
    plan = along(Tree.full(128, 2))
    (ranges,) = RANGES
    stated = tree_solution.estimate(ranges).std
    unbiased = Estimate(observed(plan, 3)).estimate(ranges).noise_std
    assert stated.shape == ranges.shape
    assert root_mean_square(stated) < root_mean_square(unbiased)

    # An independent simulation at the same truth. Both sides are means of 40 squares, pooled over
    # dependent ranges.
    joint = joint_blocks_of(plan)
    truth = tree_solution.cells.reshape(-1, 1)
    noise = simulate_noise(plan, [0], 40, np.random.default_rng(77))[0]
    b = joint.gram(truth) + joint.gather([noise])
    errors = apply(AllRanges(128), non_negative_cells(joint, b, 1e-4)[0] - truth)
    assert root_mean_square(stated) == pytest.approx(root_mean_square(errors), rel=0.25)
