"""Estimates against dense least squares, and what they promise in simulation."""

import numpy as np
import pytest

from accuracy.plans import CASES, DOMAIN, Case, dense_product
from leastnoise._accuracy import UnsupportedQuery
from leastnoise._estimate import Estimate
from leastnoise._estimate._least_squares import Answer
from leastnoise._measurements import Observation
from leastnoise._workload import Product, marginals

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def observe(case: Case, values: dict[str | None, np.ndarray]) -> Observation:
    """An observation whose rows are given for each measure, in the order of the blocks."""
    cut, places = [], dict.fromkeys(values, 0)
    for block in case.plan.blocks:
        start = places[block.measure]
        cut.append(np.array(values[block.measure][start : start + block.rows], dtype=np.int64))
        places[block.measure] += block.rows
    return Observation(case.plan, tuple(cut), "", private=False)


def dense_answers(case: Case, product: Product, observed: np.ndarray) -> np.ndarray:
    rows, variances = case.strategy(product.measure)
    cells = np.linalg.pinv(rows / np.sqrt(variances)[:, None]) @ (observed / case.plan.grid / np.sqrt(variances))
    return (dense_product(product) @ cells).reshape(product.shape)


@every
def test_answers_are_those_of_dense_least_squares(case: Case) -> None:
    rng = np.random.default_rng(6)
    observed = {m: rng.integers(-500, 2000, len(case.strategy(m)[0])) for m in case.workload.measures}
    estimate = Estimate(observe(case, observed))
    for product in case.workload:
        expected = dense_answers(case, product, observed[product.measure])
        np.testing.assert_allclose(estimate.values(product), expected, rtol=1e-8, atol=1e-6)


def test_what_was_not_measured_is_refused() -> None:
    case = CASES[0]
    estimate = Estimate(observe(case, {None: np.zeros(10, dtype=int)}))
    with pytest.raises(UnsupportedQuery, match=r"do not determine c\. Ask for the table c in the workload"):
        estimate.marginal(("c",))
    dense = CASES[4]
    estimate = Estimate(observe(dense, {None: np.zeros(len(dense.strategy(None)[0]), dtype=int)}))
    with pytest.raises(UnsupportedQuery, match="measures nothing of pay"):
        estimate.values(marginals(DOMAIN, ways=1, sum="pay").products[0])


def test_whole_numbers_are_whole_whatever_floating_point_added() -> None:
    values = np.array([2500.000000001376, 5.99999995, -1e-9, 1552.9999999999998, 1 / 3, 2.00001])
    assert Answer(values, np.ones(6)).values.tolist() == [2500, 6, 0, 1553, 1 / 3, 2.00001]
    assert Answer(np.array([1e12 + 2.0**-8]), np.ones(1)).values.tolist() == [1e12]
