"""Two tables of different strategies: the common basis against dense least squares, and simulated estimates."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accuracy.plans import MERGED, PAIR
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import PairStructure, UnsupportedQuery, block_variance, pair_structure, structure
from leastnoise._domain import Coded, Domain
from leastnoise._estimate import Estimate
from leastnoise._kernel import SeededEntropy, simulate
from leastnoise._linop import Dense, Identity, Prefix, Total, Tree
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._table import Table
from leastnoise._workload import identity, matrix, prefix, queries
from simulated import simulations


def plan_of(*factors: tuple[Factor, ...], domain: Domain) -> Measurements:
    blocks = tuple(Block(own, Fraction(7 + 2 * place, 3)) for place, own in enumerate(factors))
    return Measurements(domain=domain, privacy=Privacy(PureDP(100)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)


def test_what_neither_of_two_tables_determines_is_refused() -> None:
    plan, (product,) = plan_of(*MERGED, domain=PAIR), queries(PAIR, a="identity", c="prefix")
    known = pair_structure(dict(zip(PAIR.names, PAIR.shape, strict=True)), [(one, block_variance(plan, one)) for one in plan.blocks])
    for ask in (known.variances, known.total):
        with pytest.raises(UnsupportedQuery, match="do not determine"):
            ask(product)


def test_a_large_plan_of_two_tables_is_estimated_with_the_error_that_it_promises() -> None:
    domain = Domain(a=Coded(16), b=Coded(18), c=Coded(17))
    halves = Dense(np.kron(np.eye(2, dtype=int), np.ones((1, 8), dtype=int)))
    first = tuple(Factor((name,), Identity(domain.kind(name).size)) for name in domain.names)
    second = (Factor(("a",), halves), Factor(("b",), Total(18)), Factor(("c",), Tree.full(17, 4)))
    plan = plan_of(first, second, domain=domain)
    assert isinstance(structure(plan, None), PairStructure)
    rng = np.random.default_rng(1)
    table = Table(domain, {name: rng.integers(0, domain.kind(name).size, 4000) for name in domain.names})
    asked = queries(domain, a=matrix([[1] * 8 + [0] * 8]), c=prefix()) + queries(domain, b=identity()) + queries(domain)
    first = Estimate(simulate(plan, table, SeededEntropy(0)))
    runs = [first.like(observation) for observation in simulations(plan, table, 200, seed=0)]
    for product in asked.products:
        found = np.array([run.values(product) for run in runs]).reshape(200, -1)
        ratio = (found.var(axis=0, ddof=1) / runs[0].estimate(product).noise_std.reshape(-1) ** 2).mean()
        # The mean of ratios that are 1 in expectation, each with a standard deviation of sqrt(2 / 199) or little more: 5 of them.
        assert abs(ratio - 1) < 5 * 1.3 * math.sqrt(2 / 199), product.name
    cells, total = (queries(domain, **asked) for asked in ({"a": identity(), "b": identity()}, {}))
    summed = runs[0].values(cells.products[0]).sum()
    assert summed == pytest.approx(float(runs[0].values(total.products[0]).sum()))  # answers agree
    mean = np.mean([float(run.values(total.products[0]).sum()) for run in runs])
    assert abs(mean - 4000) < 5 * math.sqrt(float((runs[0].estimate(total.products[0]).noise_std ** 2).sum()) / 200)  # no bias


def test_very_unequal_weights_leave_no_rounding_error_in_the_estimate() -> None:
    """Without a second solution for what is left of the residual the error is 6e-3 of the noise here, and grows with the weights."""
    rng = np.random.default_rng(3)
    domain = Domain(a=Coded(16), b=Coded(18), c=Coded(17))
    uneven = [Factor((name,), Prefix(kind), rng.choice([1, 200], kind)) for name, kind in zip("abc", (16, 18, 17), strict=True)]
    plan = plan_of(tuple(uneven), (Factor(("b",), Identity(18), rng.choice([1, 200], 18)),), domain=domain)
    cells = rng.poisson(5, (16, 18, 17)).astype(float)
    sums = cells.cumsum(0).cumsum(1).cumsum(2)
    estimate = Estimate(
        Observation(plan, tuple(part.astype(np.int64).reshape(-1) for part in (sums, cells.sum((0, 2)))), receipt="", private=False)
    )
    (product,) = queries(domain, a=identity(), b=identity(), c=identity()).products
    assert np.abs((estimate.values(product) - cells) / estimate.estimate(product).noise_std).max() < 1e-4
