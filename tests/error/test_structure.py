"""Variances and covariances in every form against the dense least squares covariance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import leastnoise as ln
from error.plans import CASES, DOMAIN, LeastSquares, factor
from leastnoise._domain import Coded, Domain, Integers
from leastnoise._error import (
    DenseStructure,
    IterativeStructure,
    PairStructure,
    ProductStructure,
    UnsupportedQuery,
    covariance_by_measure,
    covariances,
    evaluate_plan,
    measure_covariance,
    noise_variance,
    quantity_structure,
)
from leastnoise._estimation import Estimate
from leastnoise._families import row_space
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Dense, Identity, Prefix
from leastnoise._trusted.measurements import Block, Measurements, Observation
from leastnoise._workload import marginals, queries, ranges

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(params=["by one matrix if needed", "by a pair of matrices or a solver"])
def is_small(request, monkeypatch):
    """Return whether the cases count as small; else all limits of small plans are 0."""
    if request.param == "by one matrix if needed":
        return True
    for limit in (
        "_structure._MOST_QUICK_CELLS",
        "_structure.MOST_DENSE",
        "_product_covariance._LEAST_BATCHED_PRODUCTS",
    ):
        monkeypatch.setattr(f"leastnoise._error.{limit}", 0)
    return False


@every_case
def test_errors_and_answers_match_dense_least_squares(case, is_small):
    tolerance = 1e-8 if is_small else 1e-6
    squares = LeastSquares(case.plan)
    random = np.random.default_rng(6)
    values = [random.integers(-500, 2000, block.rows) for block in case.plan.blocks]
    estimate = Estimate(Observation(case.plan, tuple(values), "", private=False))
    for measure, covariance in covariance_by_measure(case.workload, case.plan).items():
        products = case.workload.of(measure)
        for product, errors_of_many in zip(products, covariance.errors_of(products), strict=True):
            weights = squares.weights(product)
            exact = (weights**2).sum(axis=1)
            noise_std = estimate.estimate(product).noise_std
            for variances in (covariance.variances(product), noise_std**2):
                np.testing.assert_allclose(variances.reshape(-1), exact, rtol=tolerance)
            for errors in (covariance.errors(product), errors_of_many):
                np.testing.assert_allclose(errors[:2], (exact.sum(), exact.max()), rtol=tolerance)
                assert errors.is_exact or covariance.solver_cells
            assert covariance.total(product) == pytest.approx(exact.sum(), rel=tolerance)
            np.testing.assert_allclose(
                estimate.values(product).reshape(-1) / exact**0.5,
                squares.answers(product, values).reshape(-1) / exact**0.5,
                rtol=10 * tolerance,
                atol=10 * tolerance,
            )


@every_case
@pytest.mark.usefixtures("is_small")
def test_covariances_match_dense_least_squares(case):
    squares = LeastSquares(case.plan)
    weights = {product: squares.weights(product) for product in case.workload}
    for measure, covariance in covariance_by_measure(case.workload, case.plan).items():
        if covariance.solver_cells:
            continue
        products = case.workload.of(measure)
        for product, other in itertools.product(products, repeat=2):
            exact = weights[product] @ weights[other].T
            np.testing.assert_allclose(
                covariances(covariance, product, other),
                exact,
                rtol=1e-8,
                atol=1e-9 * np.abs(exact).max(),
            )


@every_case
def test_promised_error_adds_up_over_tables(case):
    expected_error = evaluate_plan(case.workload, case.plan).expected_error()
    names = [product.name for product in case.workload]
    assert [table.name for table in expected_error.tables] == names
    total = math.fsum(
        product.importance * table.rmse**2 * table.queries
        for product, table in zip(case.workload, expected_error.tables, strict=True)
    )
    assert expected_error.total_squared_error == pytest.approx(total)
    assert all(table.largest_std >= table.rmse * (1 - 1e-12) for table in expected_error.tables)


@pytest.mark.parametrize(
    ("strategy", "weight", "cells"),
    [
        ("union", 6, 20),
        ("p_identity", 1000, 10),
        ("workload", "1/1000", 10),
        ("workload", 1000, 10),
    ],
)
def test_errors_with_20_bit_integers_match_dense(strategy, weight, cells):
    domain = Domain(sex=["F", "M"], age=Integers(0, cells - 1))
    two_ranges = ranges([(0, 2), (3, cells - 1)])
    workload = queries(domain, sex="identity", age=two_ranges, weight=weight)
    workload += queries(domain, age="prefix")
    plan = ln.plan(workload, PureDP("0.7"), strategy=strategy)
    squares = LeastSquares(plan.measured())
    for product, table in zip(plan.workload, plan.expected_error().tables, strict=True):
        exact = (squares.weights(product) ** 2).sum(axis=1)
        assert table.rmse == pytest.approx(np.sqrt(exact.mean()), rel=1e-6)
        variances = measure_covariance(plan.measured(), None).variances(product)
        assert variances.reshape(-1) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("are_small", "structure_of_two", "structure_of_many"),
    [(True, DenseStructure, DenseStructure), (False, PairStructure, IterativeStructure)],
)
def test_which_structure_is_used(are_small, structure_of_two, structure_of_many, monkeypatch):
    if not are_small:
        for limit in ("_MOST_QUICK_CELLS", "MOST_DENSE"):
            monkeypatch.setattr(f"leastnoise._error._structure.{limit}", 0)
    structure_of_phrase = {
        "two tables": structure_of_two,
        "many tables": structure_of_many,
        "no product form": structure_of_many,
        "a joint factor": structure_of_many,
    }
    for case in CASES:
        expected = ProductStructure
        for phrase, structure in structure_of_phrase.items():
            if phrase in case.name:
                expected = structure
        assert type(quantity_structure(case.plan, None)) is expected, case.name


def laplace(*factors, domain=DOMAIN):
    """Return a plan of one table for each set of factors."""
    blocks = tuple(Block(factors_of_table, Fraction(2)) for factors_of_table in factors)
    return Measurements(
        domain=domain, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )


def test_wide_tables_need_no_list_of_their_subsets():
    domain = Domain({f"a{place}": Coded(2) for place in range(12)})
    cells = tuple(factor(name, Identity(2)) for name in domain.names)
    covariance = measure_covariance(laplace(cells, domain=domain), None)
    assert isinstance(covariance, ProductStructure)
    assert not covariance.precisions
    (product,) = marginals(domain, ways=1, of=["a3"])
    # A count of one attribute is the sum of 2^11 of the 2^12 cells.
    expected = 2**11 * noise_variance(Noise.DISCRETE_LAPLACE, 2.0)
    np.testing.assert_allclose(covariance.variances(product), expected, rtol=1e-6)


FACTOR_A = factor("a", Identity(2))
FACTOR_B = factor("b", Identity(5))
NO_C = r"do not determine c\. Ask for the table c in the workload"


def test_queries_of_unmeasured_attributes_are_refused():
    covariance = measure_covariance(laplace((FACTOR_A, FACTOR_B)), None)
    (a_product,) = queries(DOMAIN, a="identity")
    (c_product,) = queries(DOMAIN, c="identity")
    with pytest.raises(UnsupportedQuery, match=NO_C):
        covariance.variances(c_product)
    with pytest.raises(UnsupportedQuery, match=NO_C):
        covariances(covariance, a_product, c_product)


def test_joint_queries_of_separate_tables_are_refused():
    covariance = measure_covariance(laplace((FACTOR_A,), (FACTOR_B,)), None)
    (joint_product,) = marginals(DOMAIN, ways=2, of=["a", "b"])
    with pytest.raises(UnsupportedQuery, match="do not determine a x b"):
        covariance.total(joint_product)
    with pytest.raises(UnsupportedQuery, match="do not determine a x b"):
        covariances(covariance, joint_product)


def test_estimates_of_unmeasured_queries_are_refused():
    plan = laplace((FACTOR_A, FACTOR_B))
    estimate = Estimate(Observation(plan, (np.zeros(10, dtype=int),), "", private=False))
    with pytest.raises(UnsupportedQuery, match=NO_C):
        estimate.marginal(("c",))
    (sum_of_pay,) = queries(DOMAIN, sum="pay")
    with pytest.raises(UnsupportedQuery, match="measures nothing of pay"):
        estimate.values(sum_of_pay)


def test_covariance_of_two_measures_is_refused():
    covariance = measure_covariance(laplace((FACTOR_A, FACTOR_B)), None)
    (counts,) = queries(DOMAIN, a="identity")
    (sums,) = queries(DOMAIN, a="identity", sum="pay")
    with pytest.raises(InputError, match="of the same measure"):
        covariances(covariance, counts, sums)


def test_covariances_of_too_many_queries_are_refused():
    domain = Domain(a=Coded(5000))
    covariance = measure_covariance(laplace((factor("a", Identity(5000)),), domain=domain), None)
    with pytest.raises(InputError, match="5000 x 5000"):
        covariances(covariance, marginals(domain, ways=1).products[0])


def test_dense_structure_refuses_undetermined_queries():
    prefix_sums = (factor("b", Prefix(5)),)
    one_row = (factor("a", Dense([[1, 0]])), factor("b", Dense([[1, 1, 0, 0, 0]])))
    covariance = measure_covariance(laplace(prefix_sums, one_row), None)
    assert isinstance(covariance, DenseStructure)
    assert covariance.total(queries(DOMAIN, b="prefix").products[0]) > 0
    for name in "ac":
        with pytest.raises(UnsupportedQuery, match=f"do not determine {name}"):
            covariance.total(marginals(DOMAIN, ways=1, of=[name]).products[0])


def test_joint_table_too_large_is_refused_with_size():
    domain = Domain(a=Integers(0, 4999), b=Integers(0, 4999))
    b = factor("b", Identity(5000))
    cells = (factor("a", Identity(5000)), b)
    prefix_sums = (factor("a", Prefix(5000)), b)
    with pytest.raises(
        InputError, match="joint table of a x b, 25000000 cells; at most 16777216 are allowed"
    ):
        measure_covariance(laplace(cells, prefix_sums, domain=domain), None)
    with pytest.raises(InputError, match="dense matrix of 5000 x 5000"):
        measure_covariance(laplace((factor("a", Prefix(5000)),), domain=domain), None)


@every_case
def test_unlisted_answers_bound_the_largest_error(case, monkeypatch):
    by_measure = covariance_by_measure(case.workload, case.plan)
    exact_errors = [by_measure[product.measure].errors(product) for product in case.workload]
    most_too_large = 1.6 if "levels" in case.name else math.inf
    for name in (
        "_product_covariance.MOST_LISTED",
        "_product_covariance._MOST_SORTED",
        "_joint.MOST_LISTED",
        "_structure.MOST_LISTED",
    ):
        monkeypatch.setattr(f"leastnoise._error.{name}", 0)
    for product, exact in zip(case.workload, exact_errors, strict=True):
        errors = by_measure[product.measure].errors(product)
        assert not errors.is_exact or exact.total == pytest.approx(exact.largest * product.rows)
        assert errors.total == pytest.approx(exact.total, rel=1e-9)
        assert exact.largest * (1 - 1e-9) <= errors.largest <= exact.largest * most_too_large


def test_rows_of_very_different_size_are_all_seen():
    space = row_space(Dense(np.array([[1, 1, 0], [2**20, -(2**20), 0]])))
    assert space is not None
    assert space.dimension == 2
    assert space.contains_rows(np.array([[1, 0, 0], [0, 1, 0]]))
    assert not space.contains_rows(np.array([[0, 0, 1]]))
