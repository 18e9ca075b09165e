"""Covariances between tables against dense least squares."""

import itertools

import numpy as np
import pytest

from accuracy.plans import CASES, Case, dense_product
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import covariances, structure, structures
from leastnoise._check import InputError
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._linop import Identity
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._workload import marginals, queries

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every
def test_covariances_are_those_of_dense_least_squares(case: Case) -> None:
    known = structures(case.workload, case.plan)
    for one, other in itertools.product(case.workload, repeat=2):
        if one.measure != other.measure:
            continue
        rows, variances = case.strategy(one.measure)
        covariance = np.linalg.pinv(rows.T @ (rows / variances[:, None]))
        expected = dense_product(one) @ covariance @ dense_product(other).T
        scale = np.abs(expected).max()
        np.testing.assert_allclose(covariances(known[one.measure], one, other), expected, rtol=1e-8, atol=1e-9 * scale)


def plan(*blocks: Block, size: int = 3) -> Measurements:
    domain = Domain(a=Coded(size), b=Coded(size), measures={"pay": Measure("pay", 0, 9)})
    return Measurements(domain=domain, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)


def test_guards() -> None:
    made = plan(Block((Factor(("a",), Identity(3)),), scale=2))
    known = structure(made, None)
    a, b = (queries(made.domain, **{name: "identity"}).products[0] for name in "ab")
    with pytest.raises(InputError, match="do not determine b"):
        covariances(known, a, b)
    with pytest.raises(InputError, match="of one measure"):
        covariances(known, a, queries(made.domain, a="identity", sum="pay").products[0])
    apart = plan(Block((Factor(("a",), Identity(3)),), scale=2), Block((Factor(("b",), Identity(3)),), scale=2))
    with pytest.raises(InputError, match="do not determine"):
        covariances(structure(apart, None), marginals(apart.domain, ways=2).products[0])


def test_too_many_are_refused() -> None:
    made = plan(Block((Factor(("a",), Identity(5000)),), scale=2), size=5000)
    with pytest.raises(InputError, match="5000 x 5000"):
        covariances(structure(made, None), marginals(made.domain, ways=1, of=["a"]).products[0])
