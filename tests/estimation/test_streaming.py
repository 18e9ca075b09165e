"""Estimates of many tables: the components that memory holds, and their equality."""

from itertools import combinations

import numpy as np
import pytest

from estimation.agreement import disagreement
from leastnoise._domain import Coded, Domain
from leastnoise._error import _product_covariance
from leastnoise._estimation import Answer, Estimate, estimate_products
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy
from leastnoise._trusted.linop import Contrasts, Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals

NAMES = tuple("abcdefgh")
SIZES = dict(zip(NAMES, (4, 2, 3, 2, 2, 3, 2, 2), strict=True))
DOMAIN = Domain({name: Coded(size) for name, size in SIZES.items()})
TRIPLES = list(combinations(NAMES, 3))


def tables(sets, kind=Identity):
    """Return a block for each set of attributes."""
    return [
        Block(tuple(Factor((name,), kind(SIZES[name])) for name in names), scale=3 + len(names))
        for names in sets
    ]


def estimate(blocks, seed=0):
    """Return the estimate from random values of these blocks."""
    plan = Measurements(
        domain=DOMAIN, privacy=Privacy(ZCDP(9)), noise=Noise.DISCRETE_GAUSSIAN, blocks=tuple(blocks)
    )
    rng = np.random.default_rng(seed)
    return Estimate(
        Observation(
            plan,
            tuple(rng.integers(-50, 500, block.rows) for block in plan.blocks),
            "",
            private=False,
        )
    )


MIXED = [
    *tables(TRIPLES),
    *tables([("a", "b"), ("c",)], Contrasts),
    *tables([("a", "b", "c", "d", "e")]),
    Block((), scale=2),
]
CUBES = {
    "triples": tables(TRIPLES),
    "residual": tables([tau for k in range(4) for tau in combinations(NAMES, k)], Contrasts),
    "mixed": MIXED,
}


@pytest.mark.parametrize("blocks", CUBES.values(), ids=CUBES)
def test_streaming_passes_match_single_tables(blocks, monkeypatch):
    together = estimate(blocks)
    monkeypatch.setattr(_product_covariance, "_MOST_SEPARATE_BLOCKS", 10**9)
    alone = estimate(blocks)
    marginal_tables = {
        names: together.marginal(names) for names in [*TRIPLES, *combinations(NAMES, 2), ("h",), ()]
    }
    for names, cells in reversed(marginal_tables.items()):
        np.testing.assert_allclose(cells, alone.marginal(names), rtol=1e-10, atol=1e-9)
    assert disagreement(marginal_tables) < 1e-8
    products = marginals(DOMAIN, upto=3).products
    for product, estimated in zip(
        products, estimate_products(estimate(blocks), products), strict=True
    ):
        single = alone.estimate(product)
        np.testing.assert_allclose(estimated.values, single.values, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(estimated.noise_std, single.noise_std, rtol=1e-10)


def test_streaming_drops_components_as_large_as_tables():
    cube_estimate = estimate(CUBES["residual"])
    for names in TRIPLES:
        cube_estimate.marginal(names)
    part = cube_estimate.solved_cells(None)
    assert {len(tau) for tau in part.components} == {0, 1, 2}
    assert len(part.components) == 1 + 8 + 28


def test_observation_is_not_copied():
    cube_estimate = estimate(CUBES["residual"])
    cube_estimate.marginal(TRIPLES[0])
    part = cube_estimate.solved_cells(None)
    assert all(
        noisy_block.grid_answers is value
        for noisy_block, value in zip(part.measured, cube_estimate.observation.values, strict=True)
    )


def test_tables_that_come_out_are_the_callers():
    cube_estimate = estimate(CUBES["mixed"])
    copy = cube_estimate.marginal(("a", "b")).copy()
    cube_estimate.marginal(("a", "b"))[:] = 0
    cube_estimate.marginal(("a",))[:] = 0
    cube_estimate.marginal(())[...] = 0
    np.testing.assert_array_equal(cube_estimate.marginal(("a", "b")), copy)


def test_tables_that_are_alike_are_estimated_at_once(monkeypatch):
    taken = []
    stacked_marginals = _product_covariance.ProductCells._stacked_marginals
    monkeypatch.setattr(
        _product_covariance.ProductCells,
        "_stacked_marginals",
        lambda cells, some: (taken.append(len(some)), stacked_marginals(cells, some))[1],
    )
    products = marginals(DOMAIN, ways=1).products
    list(estimate_products(estimate(CUBES["residual"]), products))
    assert sorted(taken) == [1, 2, 5]  # of 4, of 3 and of 2 cells


def test_whole_numbers_absorb_floating_point_error():
    values = np.array([2500.000000001376, 5.99999995, -1e-9, 1552.9999999999998, 1 / 3, 2.00001])
    assert Answer(values, np.ones(6)).values.tolist() == [2500, 6, 0, 1553, 1 / 3, 2.00001]
    assert Answer(np.array([1e12 + 2.0**-8]), np.ones(1)).values.tolist() == [1e12]
