"""Variances and covariances in every form against the dense least squares covariance."""

import math
from fractions import Fraction

import numpy as np
import pytest

import leastnoise as ln
from error.plans import CASES, DOMAIN, Case, LeastSquares, factor
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
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals, queries, ranges

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every
@pytest.mark.parametrize(
    "small", [True, False], ids=["by one matrix where needed", "by a pair of matrices or a solver"]
)
def test_errors_and_answers_match_dense_least_squares(
    case: Case, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        for limit in ("_structure._FEW", "_structure.MOST_DENSE", "_product._MANY"):
            monkeypatch.setattr(f"leastnoise._error.{limit}", 0)
    squares, random, most = (
        LeastSquares(case.plan),
        np.random.default_rng(6),
        1e-8 if small else 1e-6,
    )
    weights = {product: squares.weights(product) for product in case.workload}
    values = [random.integers(-500, 2000, block.rows) for block in case.plan.blocks]
    estimate = Estimate(Observation(case.plan, tuple(values), "", private=False))
    for measure, covariance in covariance_by_measure(case.workload, case.plan).items():
        products = case.workload.of(measure)
        for product, of_many in zip(products, covariance.errors_of(products), strict=True):
            exact = (weights[product] ** 2).sum(axis=1)
            for variances in (
                covariance.variances(product),
                estimate.estimate(product).noise_std ** 2,
            ):
                np.testing.assert_allclose(variances.reshape(-1), exact, rtol=most)
            for errors in (covariance.errors(product), of_many):
                np.testing.assert_allclose(errors[:2], (exact.sum(), exact.max()), rtol=most)
                assert errors.is_exact or covariance.solver_cells
            assert covariance.total(product) == pytest.approx(exact.sum(), rel=most)
            estimated, answers = (
                values_of_queries.reshape(-1) / exact**0.5
                for values_of_queries in (
                    estimate.values(product),
                    squares.answers(product, values),
                )
            )
            np.testing.assert_allclose(estimated, answers, rtol=10 * most, atol=10 * most)
            for other in () if covariance.solver_cells else products:
                both = weights[product] @ weights[other].T
                np.testing.assert_allclose(
                    covariances(covariance, product, other),
                    both,
                    rtol=1e-8,
                    atol=1e-9 * np.abs(both).max(),
                )


@every
def test_promised_error_adds_up_over_tables(case: Case) -> None:
    expected_error = evaluate_plan(case.workload, case.plan).expected_error()
    assert [table.name for table in expected_error.tables] == [
        product.name for product in case.workload
    ]
    total = math.fsum(
        p.importance * t.rmse**2 * t.queries
        for p, t in zip(case.workload, expected_error.tables, strict=True)
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
def test_errors_beside_20_bit_integers_match_dense(
    strategy: str, weight: str | int, cells: int
) -> None:
    domain = Domain(sex=["F", "M"], age=Integers(0, cells - 1))
    workload = queries(
        domain, sex="identity", age=ranges([(0, 2), (3, cells - 1)]), weight=weight
    ) + queries(domain, age="prefix")
    plan = ln.plan(workload, PureDP("0.7"), strategy=strategy)
    squares = LeastSquares(plan.measured())
    for product, table in zip(plan.workload, plan.expected_error().tables, strict=True):
        exact = (squares.weights(product) ** 2).sum(axis=1)
        assert table.rmse == pytest.approx(np.sqrt(exact.mean()), rel=1e-6)
        assert measure_covariance(plan.measured(), None).variances(product).reshape(
            -1
        ) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("limit", "two", "many"),
    [(None, DenseStructure, DenseStructure), (0, PairStructure, IterativeStructure)],
)
def test_which_structure_is_used(
    limit: int | None, two: type, many: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in () if limit is None else ("_FEW", "MOST_DENSE"):
        monkeypatch.setattr(f"leastnoise._error._structure.{name}", limit)
    kinds = {
        "two tables": two,
        "many tables": many,
        "no product form": many,
        "a joint factor": many,
    }
    for case in CASES:
        expected = next(
            (kind for phrase, kind in kinds.items() if phrase in case.name), ProductStructure
        )
        assert type(quantity_structure(case.plan, None)) is expected, case.name


def laplace(*factors: tuple[Factor, ...], domain: Domain = DOMAIN) -> Measurements:
    """A plan of one table for each set of factors."""
    blocks = tuple(Block(along, Fraction(2)) for along in factors)
    return Measurements(
        domain=domain, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    )


def test_wide_tables_need_no_list_of_their_subsets() -> None:
    domain = Domain({f"a{place}": Coded(2) for place in range(12)})
    covariance = measure_covariance(
        laplace(tuple(factor(name, Identity(2)) for name in domain.names), domain=domain), None
    )
    assert isinstance(covariance, ProductStructure)
    assert not covariance.precisions
    (product,) = marginals(domain, ways=1, of=["a3"])
    np.testing.assert_allclose(
        covariance.variances(product),
        2**11 * noise_variance(Noise.DISCRETE_LAPLACE, 2.0),
        rtol=1e-6,
    )


def test_queries_that_nothing_determines_are_refused() -> None:
    a, b = factor("a", Identity(2)), factor("b", Identity(5))
    covariance = measure_covariance(laplace((a, b)), None)
    apart = measure_covariance(laplace((a,), (b,)), None)
    a_product, c_product = (queries(DOMAIN, **{name: "identity"}).products[0] for name in "ac")
    both = marginals(DOMAIN, ways=2, of=["a", "b"]).products[0]
    for ask in (
        lambda: covariance.variances(c_product),
        lambda: covariances(covariance, a_product, c_product),
    ):
        with pytest.raises(
            UnsupportedQuery, match=r"do not determine c\. Ask for the table c in the workload"
        ):
            ask()
    for ask in (lambda: apart.total(both), lambda: covariances(apart, both)):
        with pytest.raises(UnsupportedQuery, match="do not determine a x b"):
            ask()
    estimate = Estimate(Observation(laplace((a, b)), (np.zeros(10, dtype=int),), "", private=False))
    with pytest.raises(
        UnsupportedQuery, match=r"do not determine c\. Ask for the table c in the workload"
    ):
        estimate.marginal(("c",))
    with pytest.raises(UnsupportedQuery, match="measures nothing of pay"):
        estimate.values(queries(DOMAIN, sum="pay").products[0])
    with pytest.raises(InputError, match="of one measure"):
        covariances(covariance, a_product, queries(DOMAIN, a="identity", sum="pay").products[0])
    long = Domain(a=Coded(5000))
    many = measure_covariance(laplace((factor("a", Identity(5000)),), domain=long), None)
    with pytest.raises(InputError, match="5000 x 5000"):
        covariances(many, marginals(long, ways=1).products[0])


def test_dense_structure_refuses_undetermined_queries() -> None:
    covariance = measure_covariance(
        laplace(
            (factor("b", Prefix(5)),),
            (factor("a", Dense([[1, 0]])), factor("b", Dense([[1, 1, 0, 0, 0]]))),
        ),
        None,
    )
    assert isinstance(covariance, DenseStructure)
    assert covariance.total(queries(DOMAIN, b="prefix").products[0]) > 0
    for name in "ac":
        with pytest.raises(UnsupportedQuery, match=f"do not determine {name}"):
            covariance.total(marginals(DOMAIN, ways=1, of=[name]).products[0])


def test_joint_table_too_large_is_refused_with_size() -> None:
    domain, b = Domain(a=Integers(0, 4999), b=Integers(0, 4999)), factor("b", Identity(5000))
    with pytest.raises(
        InputError, match="joint table of a x b, 25000000 cells; at most 16777216 are allowed"
    ):
        measure_covariance(
            laplace(
                (factor("a", Identity(5000)), b), (factor("a", Prefix(5000)), b), domain=domain
            ),
            None,
        )
    with pytest.raises(InputError, match="dense matrix of 5000 x 5000"):
        measure_covariance(laplace((factor("a", Prefix(5000)),), domain=domain), None)


@every
def test_unlisted_answers_bound_the_largest_error(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_measure = covariance_by_measure(case.workload, case.plan)
    listed = [by_measure[product.measure].errors(product) for product in case.workload]
    for name in (
        "_product.MOST_LISTED",
        "_product._MOST_SORTED",
        "_joint.MOST_LISTED",
        "_structure.MOST_LISTED",
    ):
        monkeypatch.setattr(f"leastnoise._error.{name}", 0)
    for product, exact in zip(case.workload, listed, strict=True):
        errors = by_measure[product.measure].errors(product)
        assert not errors.is_exact or exact.total == pytest.approx(exact.largest * product.rows)
        assert errors.total == pytest.approx(exact.total, rel=1e-9)
        assert (
            exact.largest * (1 - 1e-9)
            <= errors.largest
            <= exact.largest * (1.6 if "levels" in case.name else math.inf)
        )


def test_rows_of_very_different_size_are_all_seen() -> None:
    space = row_space(Dense(np.array([[1, 1, 0], [2**20, -(2**20), 0]])))
    assert space is not None
    assert space.dimension == 2
    assert space.contains_rows(np.array([[1, 0, 0], [0, 1, 0]]))
    assert not space.contains_rows(np.array([[0, 0, 1]]))
