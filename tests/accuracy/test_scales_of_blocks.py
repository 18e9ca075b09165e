"""What is seen does not depend on how large the integers of a query are: one table of whole cells beside one of 20 bits."""

import numpy as np
import pytest

import leastnoise as ln
from accuracy.plans import dense_product, dense_strategy
from leastnoise._accuracy import structure
from leastnoise._families._queries import row_space
from leastnoise._linop import Dense


@pytest.mark.parametrize(
    ("strategy", "weight", "cells"),
    [("union", 6, 20), ("p_identity", 1000, 10), ("workload", "1/1000", 10), ("workload", 1000, 10)],
)
def test_variances_are_those_of_weighted_least_squares(strategy, weight, cells) -> None:
    domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, cells - 1))
    halves = ln.ranges([(0, 2), (3, cells - 1)])
    asked = ln.queries(domain, sex="identity", age=halves, weight=weight) + ln.queries(domain, age="prefix")
    plan = ln.plan(asked, ln.PureDP("0.7"), strategy=strategy)
    made = plan.measured()
    rows, variances = dense_strategy(made, None)
    measured = rows / np.sqrt(variances)[:, None]
    largest = np.linalg.norm(measured, axis=1).max()
    covariance = np.linalg.pinv(measured / largest)
    covariance = covariance @ covariance.T / largest**2
    for product, table in zip(plan.workload, plan.expected_error().tables, strict=True):
        queries = dense_product(product)
        exact = np.einsum("ij,jk,ik->i", queries, covariance, queries)
        assert table.rmse == pytest.approx(np.sqrt(exact.mean()), rel=1e-6)
        assert structure(made, None).variances(product).reshape(-1) == pytest.approx(exact, rel=1e-6)


def test_rows_of_very_different_size_are_all_seen() -> None:
    space = row_space(Dense(np.array([[1, 1, 0], [2**20, -(2**20), 0]])))
    assert space is not None
    assert space.dimension == 2
    assert space.holds_rows(np.array([[1, 0, 0], [0, 1, 0]]))
    assert not space.holds_rows(np.array([[0, 0, 1]]))
