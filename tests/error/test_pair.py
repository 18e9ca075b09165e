"""Two tables of different strategies: undetermined queries and rounding errors."""

from fractions import Fraction

import numpy as np
import pytest

from error.plans import MERGED, PAIR
from leastnoise._domain import Coded, Domain
from leastnoise._error import (
    PairStructure,
    UnsupportedQuery,
    block_variance,
    measure_covariance,
    pair_structure,
)
from leastnoise._estimation import Estimate
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.linop import Identity, Prefix
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import identity, queries


def plan_of(*factors, domain):
    blocks = tuple(
        Block(block_factors, Fraction(7 + 2 * place, 3))
        for place, block_factors in enumerate(factors)
    )
    return Measurements(
        domain=domain, privacy=Privacy(PureDP(100)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )


def test_pair_refuses_undetermined_queries():
    plan, (product,) = plan_of(*MERGED, domain=PAIR), queries(PAIR, a="identity", c="prefix")
    structure = pair_structure(
        dict(zip(PAIR.names, PAIR.shape, strict=True)),
        [(block, block_variance(plan, block)) for block in plan.blocks],
    )
    for function in (structure.variances, structure.total):
        with pytest.raises(UnsupportedQuery, match="do not determine"):
            function(product)


def test_pair_of_unequal_weights_has_no_rounding_error():
    """The rounding error stays far below the noise.

    Without a second solution for the residual it is 6e-3 of the noise here, and grows with the
    weights.
    """
    rng = np.random.default_rng(3)
    domain = Domain(a=Coded(16), b=Coded(18), c=Coded(17))
    uneven = [
        Factor((name,), Prefix(kind), rng.choice([1, 200], kind))
        for name, kind in zip("abc", (16, 18, 17), strict=True)
    ]
    plan = plan_of(
        tuple(uneven), (Factor(("b",), Identity(18), rng.choice([1, 200], 18)),), domain=domain
    )
    assert isinstance(measure_covariance(plan, None), PairStructure)
    cells = rng.poisson(5, (16, 18, 17)).astype(float)
    sums = cells.cumsum(0).cumsum(1).cumsum(2)
    estimate = Estimate(
        Observation(
            plan,
            tuple(part.astype(np.int64).reshape(-1) for part in (sums, cells.sum((0, 2)))),
            receipt="",
            private=False,
        )
    )
    (product,) = queries(domain, a=identity(), b=identity(), c=identity()).products
    assert (
        np.abs((estimate.values(product) - cells) / estimate.estimate(product).noise_std).max()
        < 1e-4
    )
