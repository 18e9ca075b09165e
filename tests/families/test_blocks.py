"""p-Identity on two levels: its fit and its inverse."""

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from families.grams import all_ranges_gram, prefix_gram, width_gram
from leastnoise._families import (
    Gram,
    Support,
    block_gram,
    block_width,
    blocks_objective,
    dense_gram,
    fit_blocks,
    gram_of,
    invert_gram,
    p_identity,
    p_identity_blocks,
    sum_grams,
)
from leastnoise._strategies import NotApplicable
from leastnoise._trusted.linop import DiagonalAndRows, Prefix, Ranges, Total, column_sums

GRAMS: dict[str, Gram] = {
    "prefix": prefix_gram(48),
    "ranges": all_ranges_gram(48),
    "mixed": sum_grams(
        ((1.0, prefix_gram(48)), (3.0, width_gram(48, 1)), (2.0, width_gram(48, 48)))
    ),
    "ranges of whole blocks": sum_grams(
        ((2.0, gram_of(Ranges(48, [0, 12, 24], [35, 23, 47]))), (1.0, width_gram(48, 1)))
    ),
}


@pytest.mark.parametrize("name", GRAMS)
@pytest.mark.parametrize("own_coefficient", [0.0, 0.4])
def test_error_and_gradient_match_the_matrix(name, own_coefficient):
    rng = np.random.default_rng(5)
    support = Support(12, [(0, 12), (2, 9)])
    values = rng.random(19)
    above = np.vstack([np.full(4, own_coefficient), rng.random((2, 4))])
    gram = block_gram(GRAMS[name], 12, 4)
    error, by_values, by_above = blocks_objective(gram, support, values, above)
    theta = support.to_matrix(values)
    within = np.vstack([np.eye(12), theta]) / (1 + theta.sum(axis=0))
    divisors = 1 + above.sum(axis=0)
    sums = np.vstack([np.diag(above[0]), above[1:]]) / divisors
    matrix = np.vstack([np.kron(np.diag(1 / divisors), within), np.kron(sums, np.ones(12))])
    np.testing.assert_allclose(np.abs(matrix).sum(axis=0), 1)
    assert error == pytest.approx(np.trace(GRAMS[name].dense() @ np.linalg.inv(matrix.T @ matrix)))
    slopes = approx_fprime(values, lambda x: blocks_objective(gram, support, x, above)[0], 1e-6)
    np.testing.assert_allclose(by_values, slopes, rtol=1e-3, atol=1e-6 * error)
    slopes = approx_fprime(
        above.ravel(),
        lambda x: blocks_objective(gram, support, values, x.reshape(above.shape))[0],
        1e-6,
    )
    first = 0 if own_coefficient else 1  # without rows of their own, blocks get none
    np.testing.assert_allclose(
        by_above[first:], slopes.reshape(above.shape)[first:], rtol=1e-3, atol=1e-6 * error
    )


def unit_error(factor, operator):
    norm = int(column_sums(factor.operator, factor.weights, 1).max())
    return norm * math.sqrt(invert_gram(factor).total_variance(operator) / operator.rows)


@pytest.mark.parametrize(("size", "most"), [(2, 1.3), (7, 2.2), (1000, 7.5), (16384, 10.56)])
def test_block_strategy_error_stays_below_its_limit(size, most):
    assert unit_error(p_identity_blocks(prefix_gram(size), 1).factor("a"), Prefix(size)) < most


def test_single_total_is_measured_almost_exactly():
    for size in (3, 8, 40):  # the coefficients of cells are hundreds of times smaller
        assert (
            unit_error(p_identity_blocks(width_gram(size, size), 1).factor("a"), Total(size)) < 1.1
        )


def test_ranges_fit_as_well_as_by_full_descent():
    ends = np.sort(np.random.default_rng(2).integers(0, 512, (2, 300)), axis=0)
    ranges = Ranges(512, ends[0], ends[1])
    gram = gram_of(ranges)
    error = unit_error(p_identity_blocks(gram, 1).factor("a"), ranges)
    assert error < 1.15 * unit_error(p_identity(gram, 1, effort=0.01).factor("a"), ranges)
    # The root is the error if every cell is measured.
    assert error < 0.6 * math.sqrt(float((ends[1] - ends[0] + 1).mean()))


def test_block_sums_are_measured_separately_where_many(monkeypatch):
    monkeypatch.setattr("leastnoise._families._blocks._MOST_UNMEASURED_BLOCKS", 4)
    monkeypatch.setattr("leastnoise._families._blocks._MOST_DESCENT_STEPS", 20)
    fitted = fit_blocks(prefix_gram(5000))
    factor = p_identity_blocks(prefix_gram(5000), 1).factor("a")
    assert isinstance(factor.operator.above, DiagonalAndRows)
    # Prefix sums of whole blocks have about the fitted error.
    assert unit_error(factor, Prefix(5000)) == pytest.approx(fitted.rmse, rel=0.02)


def test_widths_keep_the_blocks_even():
    for size in (2, 3, 9, 100, 129, 16385, 40_000, 2**20 + 1, 2**22):
        width = block_width(size)
        blocks = -(-size // width)
        assert blocks >= 2
        assert (blocks - 1) * width < size


def test_blocks_refuse_unsuited_workloads():
    for gram, reason in (
        (dense_gram(np.eye(64), 64), "supports only cells, prefix sums, ranges and totals"),
        (prefix_gram(1), "supports only 2 to 4194304 cells"),
        (prefix_gram(2**22 + 1), "supports only 2 to 4194304 cells"),
    ):
        with pytest.raises(NotApplicable, match=reason):
            fit_blocks(gram)
