"""What is seen does not depend on how large the integers of a query are: one table of whole cells beside one of 20 bits."""

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._accuracy import block_variance, structure
from leastnoise._families._queries import row_space
from leastnoise._linop import Dense, dense

DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 19))
HALVES = ln.ranges([(0, 2), (3, 19)])


@pytest.mark.parametrize(
    ("strategy", "weight"),
    [("union", 6), ("auto", "1/1000"), ("auto", 6), ("p_identity", "1/2"), ("p_identity", 1000)]
    + [("workload", weight) for weight in ("1/1000", "1/2", 6, 1000)],
)
def test_variances_are_those_of_weighted_least_squares(strategy, weight) -> None:
    asked = ln.queries(DOMAIN, sex="identity", age=HALVES, weight=weight) + ln.queries(DOMAIN, age="prefix")
    plan = ln.plan(asked, ln.PureDP("0.7"), strategy=strategy)
    made = plan.measured()
    rows = []
    for block in made.blocks:
        factors = {factor.attributes[0]: dense(factor.operator) * factor.scaling[:, None] for factor in block.factors}
        along = [factors.get(name, np.ones((1, DOMAIN.kind(name).size))) for name in DOMAIN.names]
        rows.append(np.kron(*along) / np.sqrt(block_variance(made, block)))
    measured = np.vstack(rows)
    covariance = np.linalg.pinv(measured / np.linalg.norm(measured, axis=1).max())
    covariance = covariance @ covariance.T / np.linalg.norm(measured, axis=1).max() ** 2
    for product, table in zip(plan.workload, plan.expected_error().tables, strict=True):
        operators = dict(zip(product.attributes, map(dense, product.operators), strict=True))
        queries = np.kron(*(operators.get(name, np.ones((1, DOMAIN.kind(name).size))) for name in DOMAIN.names))
        exact = np.einsum("ij,jk,ik->i", queries, covariance, queries)
        assert table.rmse == pytest.approx(np.sqrt(exact.mean()), rel=1e-6)
        assert structure(made, None).variances(product).reshape(-1) == pytest.approx(exact, rel=1e-6)


def test_rows_of_very_different_size_are_all_seen() -> None:
    space = row_space(Dense(np.array([[1, 1, 0], [2**20, -(2**20), 0]])))
    assert space is not None
    assert space.dimension == 2
    assert space.holds_rows(np.array([[1, 0, 0], [0, 1, 0]]))
    assert not space.holds_rows(np.array([[0, 0, 1]]))
