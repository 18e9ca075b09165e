"""The Gaussian optimum: the table of numerical optima, the certificate, structure against brute force."""

import math

import numpy as np
import pytest

from families.grams import all_ranges_gram, prefix_gram, width_gram
from leastnoise._check import InputError
from leastnoise._families import Gram, basis, dense_gram, fitted_to, gaussian_optimum, summed
from leastnoise._families._dense import (
    _mirrored,
    _plain,
    _refined,
    _spectrum,
    fit_gaussian_optimum,
    optimal_factor,
    singular_value_bound,
    strategy_rmse,
)
from leastnoise._linop import Prefix, column_sums

# Numerical optima of the semidefinite programme; for the ranges of one width the best of hdmm.
OPTIMA = [
    (prefix_gram, 64, 2.0999),
    (prefix_gram, 512, 2.7395),
    (all_ranges_gram, 64, 2.3022),
    (all_ranges_gram, 512, 3.2073),
    (lambda n: width_gram(n, 32), 64, 2.067),
    (lambda n: width_gram(n, 32), 256, 2.354),
]


@pytest.mark.parametrize(("kind", "size", "published"), OPTIMA)
def test_the_published_optima(kind: object, size: int, published: float) -> None:
    gram = kind(size)
    found = fit_gaussian_optimum(gram, gap=1e-3)
    assert found.rmse**2 <= (1 + 1e-3) * found.lower**2
    assert found.rmse <= published * 1.001
    assert singular_value_bound(gram) * (1 - 1e-9) <= found.lower <= found.rmse
    assert found.factor.shape == (size, size)
    assert np.square(found.factor).sum(axis=0).max() <= 1 + 1e-9


MIXED = summed(((2.0, prefix_gram(16)), (1.0, width_gram(16, 1))))


@pytest.mark.parametrize("gram", [prefix_gram(33), all_ranges_gram(32), width_gram(31, 7), MIXED])
def test_the_error_is_that_of_the_factor_and_the_weights_certify_the_bound(gram: Gram) -> None:
    found = fit_gaussian_optimum(gram, gap=1e-6)
    weights = optimal_factor(gram, gap=1e-6)[2]
    assert found.rmse**2 <= (1 + 1e-6) * found.lower**2
    assert found.rmse == pytest.approx(strategy_rmse(gram, found.factor, 2), rel=1e-7)
    assert weights.sum() == pytest.approx(1)
    root = np.sqrt(weights)
    nuclear = np.sqrt(np.maximum(np.linalg.eigvalsh(root[:, None] * gram.dense() * root), 0)).sum()
    assert found.lower == pytest.approx(nuclear / math.sqrt(gram.queries), rel=1e-7)
    # Any other strategy is above the lower bound.
    other = np.random.default_rng(0).standard_normal((gram.size + 3, gram.size))
    assert strategy_rmse(gram, other, 2) > found.lower
    assert strategy_rmse(gram, np.eye(gram.size), 2) > found.lower


@pytest.mark.parametrize("gram", [prefix_gram(9), all_ranges_gram(8), all_ranges_gram(9)])
def test_the_structured_spectra_agree_with_the_plain_one(gram: Gram) -> None:
    weights = np.random.default_rng(2).random(gram.size) + 0.1
    if gram.mirrored:
        weights += weights[::-1]
    expected, vectors = _plain(gram.dense(), weights)
    for values, columns in [_spectrum(gram)(weights)] + ([_mirrored(gram.dense(), weights)] if gram.mirrored else []):
        np.testing.assert_allclose((columns * values) @ columns.T, (vectors * expected) @ vectors.T, atol=1e-9)


def test_workloads_of_low_rank_and_cells_never_asked_for() -> None:
    total = fit_gaussian_optimum(width_gram(6, 6), gap=1e-6)
    assert total.rmse == pytest.approx(1, rel=1e-6)
    assert strategy_rmse(width_gram(6, 6), total.factor, 2) == pytest.approx(total.rmse)
    workload = np.zeros((3, 7))
    workload[:, 2:5] = np.tril(np.ones((3, 3)))
    found = fit_gaussian_optimum(dense_gram(workload.T @ workload, 3), gap=1e-6)
    assert found.rmse == pytest.approx(fit_gaussian_optimum(prefix_gram(3), gap=1e-6).rmse, rel=1e-5)
    assert not found.factor[:, :2].any()
    rare = np.diag([1.0, 1.0, 1e-8])
    found = fit_gaussian_optimum(dense_gram(rare + 1, 4), gap=1e-4)
    assert found.rmse**2 <= (1 + 1e-4) * found.lower**2


def test_a_permuted_matrix_does_as_well_as_a_name() -> None:
    shuffle = np.random.RandomState(0).permutation(128)
    named, gram = fit_gaussian_optimum(prefix_gram(128)), dense_gram(prefix_gram(128).dense()[np.ix_(shuffle, shuffle)], 128)
    given = fit_gaussian_optimum(gram)
    assert given.rmse == pytest.approx(named.rmse, rel=1e-3)
    assert strategy_rmse(gram, given.factor, 2) == pytest.approx(given.rmse, rel=1e-7)
    np.testing.assert_allclose(np.square(given.factor).sum(axis=0), 1)


def test_queries_of_zeros_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to plan"):
        fit_gaussian_optimum(dense_gram(np.zeros((2, 2)), 1))


@pytest.mark.parametrize("gram", [prefix_gram(256), all_ranges_gram(256)], ids=["prefix", "ranges"])
def test_weights_of_fewer_cells_are_a_start_that_is_nearly_done(gram: Gram) -> None:
    start = _refined(optimal_factor(gram.coarsen(4))[2], gram.size)
    bound = float(_spectrum(gram)(start)[0].sum()) ** 2 / gram.queries
    assert bound == pytest.approx(optimal_factor(gram)[1] ** 2, rel=2e-3)
    even = float(_spectrum(gram)(np.full(gram.size, 1 / gram.size))[0].sum()) ** 2 / gram.queries
    assert even < 0.99 * bound


@pytest.mark.parametrize("weight", [0.25, 4.0])
def test_the_bound_of_an_attribute_is_that_of_its_weighted_queries(weight: float) -> None:
    fitted = fitted_to(gaussian_optimum, [(weight, Prefix(8))], 2, 20)
    norm = column_sums(fitted.operator, np.ones(8, dtype=np.int64), 2).max()
    error = weight * norm * basis(fitted.factor("a")).total_variance(Prefix(8))
    assert fitted.bound <= error * (1 + 1e-6) <= fitted.bound * 1.002
