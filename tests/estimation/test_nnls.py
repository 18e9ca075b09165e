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
from leastnoise._trusted.linop import AllRanges, Haar, Identity, Operator, Tree, apply
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals, queries

LINE = Domain(x=Integers(0, 127))
RANGES = queries(LINE, x="all_ranges")
PLANE = Domain(a=Integers(0, 3), b=Integers(0, 4), measures={"debt": Measure("debt", -5, 5)})


def along(operator: Operator, epsilon: str = "1/100") -> Measurements:
    block = Block((Factor(("x",), operator),), Fraction(1))
    return fit_noise_scales(LINE, Privacy(PureDP(epsilon)), Noise.DISCRETE_LAPLACE, [(block, 1.0)])


def sparse() -> np.ndarray:
    """A sparse histogram: 5 large cells and some small ones."""
    rng = np.random.default_rng(4)
    cells = np.zeros(128, dtype=np.int64)
    cells[rng.choice(128, 12, replace=False)] = rng.geometric(0.02, 12)
    cells[rng.choice(128, 5, replace=False)] += rng.integers(500, 9000, 5)
    return cells


def observed(plan: Measurements, seed: int) -> Observation:
    """A simulated observation of the sparse histogram, one block along x."""
    drawn = simulate_noise(plan, [0], 1, np.random.default_rng(seed))[0][:, 0]
    (factor,) = plan.blocks[0].factors
    return Observation(
        plan,
        (np.rint((apply(factor.operator, sparse()) + drawn) * plan.grid).astype(np.int64),),
        "",
        private=False,
    )


def two_tables() -> Observation:
    blocks = (
        Block(
            (Factor(("a",), Identity(4)), Factor(("b",), Tree.full(5, 2), np.arange(1, 12))),
            Fraction(30),
        ),
        Block((Factor(("a",), Tree(4, (4, 2))),), Fraction(7)),
        Block((), Fraction(2)),
    )
    plan = Measurements(
        domain=PLANE,
        privacy=Privacy(PureDP(99)),
        noise=Noise.DISCRETE_LAPLACE,
        blocks=blocks,
    )
    rng = np.random.default_rng(9)
    return Observation(
        plan, tuple(rng.integers(-25, 60, block.rows) for block in blocks), "", private=False
    )


def objective(observation: Observation, cells: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The explicit objective, and rows and values scaled to unit variance."""
    plan = observation.measurements
    rows, values = [], []
    for block, seen in zip(plan.blocks, observation.values, strict=True):
        spread = np.sqrt(block_variance(plan, block))
        rows.append(block_rows(plan.domain, plan.domain.names, block) / spread)
        values.append(seen / plan.grid * block.scaling() / spread)
    a, z = np.vstack(rows), np.concatenate(values)
    return 0.5 * float(((a @ cells.reshape(-1) - z) ** 2).sum()), a, z


def test_nnls_gap_bounds_distance_to_minimum() -> None:
    observation = two_tables()
    best = objective(observation, nnls(observation, duality_gap=1e-10).cells)[0]
    for gap in (10.0, 0.1, 1e-3):
        loose = nnls(observation, duality_gap=gap)
        assert -1e-8 <= objective(observation, loose.cells)[0] - best <= loose.duality_gap + 1e-9


@pytest.mark.parametrize("grid", [1, 4])
def test_nnls_keeps_the_total_and_is_optimal(grid: int) -> None:
    drawn = two_tables()
    observation = replace(drawn, measurements=replace(drawn.measurements, grid=grid))
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


def errors(plan: Measurements) -> tuple[float, float]:
    """Return errors of cells and ranges after non-negative least squares over those before."""
    joint, truth = (
        JointBlocks.of(
            plan.domain, [(equation.block, equation.variance) for equation in equations(plan, None)]
        ),
        sparse()[:, None],
    )
    b = joint.gram(truth.astype(float)) + joint.gather(
        [simulate_noise(plan, [0], 40, np.random.default_rng(2))[0]]
    )
    before = joint.solve(b, "a test") - truth
    after = non_negative_cells(joint, b, 1e-4)[0] - truth
    squares = [
        [(apply(operator, error) ** 2).mean() for error in (before, after)]
        for operator in (Identity(128), AllRanges(128))
    ]
    return float(np.sqrt(squares[0][1] / squares[0][0])), float(
        np.sqrt(squares[1][1] / squares[1][0])
    )


def test_nnls_helps_with_weak_and_strong_totals() -> None:
    plans = {
        "hierarchy": along(Tree.full(128, 2)),
        "haar": along(Haar(128)),
        "level_tree": choose_plan(RANGES, Privacy(PureDP("1/100")), Search("level_tree"))[
            0
        ].measured(),
        "identity": along(Identity(128)),
    }
    # The margins are wide: seeds are fixed, 40 releases give each ratio to about 10%.
    ratios = {name: errors(plan) for name, plan in plans.items()}
    assert max(cells for cells, _ in ratios.values()) < 0.8
    assert max(ranges for _, ranges in ratios.values()) < 0.95


def test_nnls_refuses_unsupported_requests() -> None:
    with pytest.raises(InputError, match="one of counts on a, b"):
        nnls(two_tables()).estimate(queries(PLANE, a="identity", sum="debt").products[0])


def test_nnls_answers_agree_and_errors_match_simulation() -> None:
    plan = along(Tree.full(128, 2))
    solution = replace(nnls(observed(plan, 3)), repetitions=40)
    (cells,), (sums,), (ranges,) = marginals(LINE, ways=1), queries(LINE, x="prefix"), RANGES
    np.testing.assert_allclose(
        np.cumsum(solution.estimate(cells).values),
        solution.estimate(sums).values,
        rtol=1e-9,
        atol=1e-9,
    )
    stated = solution.estimate(ranges).std
    unbiased = Estimate(observed(plan, 3)).estimate(ranges).noise_std
    assert stated.shape == ranges.shape
    assert np.sqrt((stated**2).mean()) < np.sqrt((unbiased**2).mean())
    # Against an independent simulation at the same truth; two means of 40 squares, pooled over
    # dependent ranges.
    joint = JointBlocks.of(
        plan.domain, [(equation.block, equation.variance) for equation in equations(plan, None)]
    )
    b = joint.gram(solution.cells.reshape(-1, 1)) + joint.gather(
        [simulate_noise(plan, [0], 40, np.random.default_rng(77))[0]]
    )
    errors = apply(
        AllRanges(128), non_negative_cells(joint, b, 1e-4)[0] - solution.cells.reshape(-1, 1)
    )
    assert np.sqrt((stated**2).mean()) == pytest.approx(np.sqrt((errors**2).mean()), rel=0.25)
