"""Variances and covariances in every form against the dense least squares covariance."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accuracy.plans import CASES, DOMAIN, Case, dense_product, factor
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import (
    DenseStructure,
    ProductStructure,
    UnsupportedQuery,
    covariances,
    noise_variance,
    promised,
    structure,
    structures,
)
from leastnoise._check import InputError
from leastnoise._domain import Coded, Domain, Integers
from leastnoise._linop import Dense, Identity, Prefix
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._workload import marginals, queries

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every
def test_variances_and_covariances_are_those_of_dense_least_squares(case: Case) -> None:
    known = structures(case.workload, case.plan)
    for product in case.workload:
        rows, variances = case.strategy(product.measure)
        covariance = np.linalg.pinv(rows.T @ (rows / variances[:, None]))
        asked = dense_product(product)
        expected = np.einsum("ij,jk,ik->i", asked, covariance, asked)
        np.testing.assert_allclose(known[product.measure].variances(product).reshape(-1), expected, rtol=1e-9)
        np.testing.assert_allclose(known[product.measure].errors(product), (expected.sum(), expected.max(), True), rtol=1e-9)
        for other in case.workload.of(product.measure):
            both = asked @ covariance @ dense_product(other).T
            listed = covariances(known[product.measure], product, other)
            np.testing.assert_allclose(listed, both, rtol=1e-8, atol=1e-9 * np.abs(both).max())


@every
def test_promise_adds_up(case: Case) -> None:
    promise = promised(case.workload, case.plan).expected_error()
    assert [table.name for table in promise.tables] == [product.name for product in case.workload]
    total = math.fsum(p.importance * t.rmse**2 * t.queries for p, t in zip(case.workload, promise.tables, strict=True))
    assert promise.total_squared_error == pytest.approx(total)
    assert all(table.largest_std >= table.rmse * (1 - 1e-12) for table in promise.tables)


def test_which_structure_is_used() -> None:
    kinds = {case.name: type(structure(case.plan, None)) for case in CASES}
    assert kinds.pop("no product form") is DenseStructure
    assert set(kinds.values()) == {ProductStructure}


def laplace(*factors: tuple[Factor, ...], domain: Domain = DOMAIN) -> Measurements:
    """A plan of one table for each set of factors."""
    blocks = tuple(Block(along, Fraction(2)) for along in factors)
    return Measurements(domain=domain, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)


def test_wide_tables_need_no_list_of_their_subsets() -> None:
    domain = Domain({f"a{place}": Coded(2) for place in range(12)})
    known = structure(laplace(tuple(factor(name, Identity(2)) for name in domain.names), domain=domain), None)
    assert isinstance(known, ProductStructure)
    assert not known.narrow
    (product,) = marginals(domain, ways=1, of=["a3"])
    np.testing.assert_allclose(known.variances(product), 2**11 * noise_variance(Noise.DISCRETE_LAPLACE, 2.0), rtol=1e-6)


def test_queries_that_nothing_determines_are_refused() -> None:
    a, b = factor("a", Identity(2)), factor("b", Identity(5))
    known, apart = structure(laplace((a, b)), None), structure(laplace((a,), (b,)), None)
    one, c = (queries(DOMAIN, **{name: "identity"}).products[0] for name in "ac")
    both = marginals(DOMAIN, ways=2, of=["a", "b"]).products[0]
    for ask in (lambda: known.variances(c), lambda: covariances(known, one, c)):
        with pytest.raises(UnsupportedQuery, match=r"do not determine c\. Ask for the table c in the workload"):
            ask()
    for ask in (lambda: apart.total(both), lambda: covariances(apart, both)):
        with pytest.raises(UnsupportedQuery, match="do not determine a x b"):
            ask()
    with pytest.raises(UnsupportedQuery, match="measures nothing of pay"):
        structure(laplace((a, b)), "pay")
    with pytest.raises(InputError, match="of one measure"):
        covariances(known, one, queries(DOMAIN, a="identity", sum="pay").products[0])
    long = Domain(a=Coded(5000))
    many = structure(laplace((factor("a", Identity(5000)),), domain=long), None)
    with pytest.raises(InputError, match="5000 x 5000"):
        covariances(many, marginals(long, ways=1).products[0])


def test_a_dense_structure_knows_what_it_does_not_determine() -> None:
    known = structure(laplace((factor("b", Prefix(5)),), (factor("a", Dense([[1, 0]])), factor("b", Dense([[1, 1, 0, 0, 0]])))), None)
    assert isinstance(known, DenseStructure)
    assert known.total(queries(DOMAIN, b="prefix").products[0]) > 0
    for name in "ac":
        with pytest.raises(UnsupportedQuery, match=f"do not determine {name}"):
            known.total(marginals(DOMAIN, ways=1, of=[name]).products[0])


def test_a_joint_table_too_large_for_any_solver_is_refused_with_its_size() -> None:
    domain, b = Domain(a=Integers(0, 4999), b=Integers(0, 4999)), factor("b", Identity(5000))
    with pytest.raises(InputError, match="joint table of a x b, 25000000 cells; at most 16777216 are allowed"):
        structure(laplace((factor("a", Identity(5000)), b), (factor("a", Prefix(5000)), b), domain=domain), None)
    with pytest.raises(InputError, match="dense matrix of 5000 x 5000"):
        structure(laplace((factor("a", Prefix(5000)),), domain=domain), None)


@every
def test_where_answers_are_too_many_to_list_the_largest_is_bounded_and_the_sum_the_same(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = structures(case.workload, case.plan)
    listed = [known[product.measure].errors(product) for product in case.workload]
    for name in ("_product.MOST_LISTED", "_product._MOST_SORTED", "_joint.MOST_LISTED"):
        monkeypatch.setattr(f"leastnoise._accuracy.{name}", 0)
    for product, exact in zip(case.workload, listed, strict=True):
        found = known[product.measure].errors(product)
        assert not found.exact or product.rows == 1
        assert found.total == pytest.approx(exact.total, rel=1e-9)
        assert found.largest >= exact.largest * (1 - 1e-9)
