"""Locally non-negative tables against a quadratic programme, and their certificates."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from estimation.agreement import disagreement
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._error import measure_covariance
from leastnoise._estimation import (
    Estimate,
    from_residual_parts,
    locally_non_negative,
    residual_parts,
)
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.linop import Identity, Prefix
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation

DOMAIN = Domain(
    a=Integers(0, 2),
    b=Integers(0, 1),
    c=Integers(0, 3),
    d=Integers(0, 1),
    measures={"pay": Measure("pay", 0, 9)},
)
SIZES = dict(zip(DOMAIN.names, DOMAIN.shape, strict=True))
PAIRS = list(combinations(DOMAIN.names, 2))


def marginal_of(cells, names):
    """Return the sums of cells over all other attributes."""
    other_axes = [axis for axis, name in enumerate(DOMAIN.names) if name not in names]
    return cells.sum(axis=tuple(other_axes))


def observed(tables, scale=8, seed=0, *, cells=1.5, density=0.3, operator=Identity, measure=None):
    """Return an estimate of tables of a sparse vector with Laplace noise, and the vector."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(cells * (rng.random(DOMAIN.shape) < density), DOMAIN.shape)
    blocks = []
    values = []
    for place, names in enumerate(tables):
        factors = tuple(Factor((name,), operator(SIZES[name])) for name in names)
        block_scale = scale + place % 3
        blocks.append(Block(factors, scale=block_scale, measure=measure))
        exact = marginal_of(truth, names)
        if operator is Prefix:
            for axis in range(exact.ndim):
                exact = exact.cumsum(axis=axis)
        noise = rng.laplace(scale=block_scale, size=exact.size)
        values.append(np.rint(exact.reshape(-1) + noise).astype(np.int64))
    privacy = Privacy(PureDP(10))
    plan = Measurements(
        domain=DOMAIN, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=tuple(blocks)
    )
    return Estimate(Observation(plan, tuple(values), "", private=False)), truth


def optimum(estimate, tables):
    """Solve the programme with a dense solver over the components."""
    parts = {}
    for names in tables:
        parts |= residual_parts(estimate.marginal(names), names)
    covariance = measure_covariance(estimate.observation.measurements, None)
    keys = [tau for tau in parts if tau]
    ends = np.cumsum([parts[tau].size for tau in keys])
    start = np.concatenate([parts[tau].reshape(-1) for tau in keys])
    weights = np.concatenate(
        [np.full(parts[tau].size, covariance.precision_of(tau)) for tau in keys]
    )

    def cells(vector):
        components = {(): parts[()]}
        for tau, values in zip(keys, np.split(vector, ends[:-1]), strict=True):
            components[tau] = centred(values.reshape(parts[tau].shape))
        cells_of_tables = []
        for names in tables:
            sizes = [SIZES[name] for name in names]
            cells_of_tables.append(from_residual_parts(components, names, sizes).reshape(-1))
        return np.concatenate(cells_of_tables)

    def centred(component):
        for axis in range(component.ndim):
            component = component - component.mean(axis=axis, keepdims=True)
        return component

    # Least distance programming by non-negative least squares (Lawson and Hanson): least |z| with
    # slope z >= -cells(start).
    slope = np.stack(
        [cells(column) - cells(0 * start) for column in np.diag(1 / np.sqrt(weights))]
    ).T
    target = np.zeros(len(start) + 1)
    target[-1] = 1
    stacked = np.vstack([slope.T, -cells(start)])
    residual = stacked @ nnls(stacked, target)[0] - target
    z = -residual[:-1] / residual[-1]
    return cells(start + z / np.sqrt(weights))


@pytest.mark.parametrize(
    "tables", [PAIRS, [("a", "b", "c"), ("b", "d"), ("c", "d")]], ids=["pairs", "mixed"]
)
def test_local_projection_solves_the_quadratic_programme(tables):
    estimate, _ = observed(tables, seed=1, cells=6)
    projected = locally_non_negative(estimate, tables)
    assert min(estimate.marginal(names).min() for names in tables) < -1
    cells = np.concatenate([projected.marginal(names).reshape(-1) for names in tables])
    np.testing.assert_allclose(cells, optimum(estimate, tables), atol=0.05)


@pytest.mark.parametrize("rounds", [0, 2, 2000])
def test_local_tables_agree_at_any_stopping_time(rounds):
    estimate, _ = observed(PAIRS, seed=1)
    projected = locally_non_negative(estimate, PAIRS, max_rounds=rounds)
    single_attributes = [(name,) for name in DOMAIN.names]
    tables = {names: projected.marginal(names) for names in [*PAIRS, *single_attributes, ()]}
    assert min(cells.min() for cells in tables.values()) >= 0
    assert disagreement(tables) < 1e-9
    assert float(tables[()]) == pytest.approx(float(estimate.marginal(())))


def test_nothing_changes_where_nothing_is_negative():
    estimate, _ = observed(PAIRS, scale=1, cells=400, density=1)
    assert min(estimate.marginal(names).min() for names in PAIRS) > 0
    projected = locally_non_negative(estimate, PAIRS)
    for names in PAIRS:
        np.testing.assert_allclose(projected.marginal(names), estimate.marginal(names), atol=1e-9)


def test_sparse_tables_come_nearer_on_average():
    # A single table may move away from the truth. The mean over 10 sparse vectors does not.
    before = after = 0.0
    for seed in range(10):
        estimate, truth = observed(PAIRS, seed=100 + seed, cells=6)
        projected = locally_non_negative(estimate, PAIRS)
        for names in PAIRS:
            exact = marginal_of(truth, names)
            before += float(((estimate.marginal(names) - exact) ** 2).sum())
            after += float(((projected.marginal(names) - exact) ** 2).sum())
    assert after < 0.9 * before


def test_other_strategies_than_cells_and_sums():
    estimate, _ = observed([("a", "c")], operator=Prefix, seed=2, measure="pay")
    projected = locally_non_negative(estimate, [("a", "c")], measure="pay")
    assert projected.marginal(("a", "c")).min() >= 0


def test_negative_total_gives_zeros():
    block = Block((Factor(("b",), Identity(2)),), scale=10)
    plan = Measurements(
        domain=DOMAIN, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    )
    observation = Observation(plan, (np.array([-9, 3]),), "", private=False)
    projected = locally_non_negative(Estimate(observation), [("b",)])
    assert projected.marginal(("b",)).tolist() == [0.0, 0.0]
