"""Eigen-designs, and strategies of equal profile with a smaller norm."""

import math

import numpy as np
import pytest

from families.grams import all_ranges_gram, prefix_gram, width_gram
from leastnoise._check import InputError
from leastnoise._families import dense_gram
from leastnoise._families._dense import column_norm, fit_eigen_design, reduce_l1_norm, singular_value_bound, smooth_norm, strategy_rmse


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("gram", [prefix_gram(32), all_ranges_gram(31), width_gram(30, 5)])
def test_no_other_weights_are_better(gram: object, norm: int) -> None:
    found = fit_eigen_design(gram, norm)
    reached = strategy_rmse(gram, found, norm)
    assert column_norm(found, norm) == pytest.approx(1)
    assert reached >= singular_value_bound(gram) * (1 - 1e-9)
    # Against random weights of the same eigenvectors, which come before queries on single cells.
    kept = int(np.linalg.matrix_rank(gram.dense()))
    bare = found[:kept]
    least = strategy_rmse(gram, bare, norm)
    assert reached <= least * (1 + 1e-9)
    rng = np.random.default_rng(0)
    for spread in (0.01, 0.1, 1.0):
        for _ in range(20):
            other = bare * np.exp(spread * rng.standard_normal((kept, 1)))
            assert strategy_rmse(gram, other, norm) >= least * (1 - 1e-4)


def test_the_published_figures() -> None:
    # EigenDesign as measured at n = 4096; the design is within a few per cent of the optimum for ranges at every size.
    assert strategy_rmse(all_ranges_gram(256), fit_eigen_design(all_ranges_gram(256), 2), 2) <= 2.9014 * 1.01
    assert strategy_rmse(width_gram(256, 32), fit_eigen_design(width_gram(256, 32), 2), 2) <= 2.354 * 1.02


def test_low_rank_and_guards() -> None:
    total = fit_eigen_design(width_gram(5, 5), 2)
    assert strategy_rmse(width_gram(5, 5), total, 2) == pytest.approx(1)
    assert total.shape == (1, 5)
    with pytest.raises(InputError, match="nothing to plan"):
        fit_eigen_design(dense_gram(np.zeros((2, 2)), 1), 2)


def test_a_smaller_norm_with_the_same_gram_matrix() -> None:
    talk = np.vstack([np.kron(np.eye(2), [1, 1]), math.sqrt(2) * np.eye(4)])
    wavelet = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]])
    np.testing.assert_allclose(talk.T @ talk, wavelet.T @ wavelet, atol=1e-12)
    found = reduce_l1_norm(wavelet.astype(float))
    np.testing.assert_allclose(found.T @ found, wavelet.T @ wavelet, atol=1e-12)
    assert column_norm(found, 1) < column_norm(talk, 1) < column_norm(wavelet, 1)
    ratio = strategy_rmse(prefix_gram(4), found, 1) / strategy_rmse(prefix_gram(4), wavelet, 1)
    assert ratio == pytest.approx(column_norm(found, 1) / 3)
    np.testing.assert_array_equal(reduce_l1_norm(np.eye(3)), np.eye(3))  # never worse
    total = reduce_l1_norm(np.ones((2, 2)))
    assert np.linalg.matrix_rank(total) == 1
    assert column_norm(total, 1) == pytest.approx(math.sqrt(2), abs=1e-4)


def test_the_gradient_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    free, matrix = rng.standard_normal((5, 3)), rng.standard_normal((3, 4))
    _, slope = smooth_norm(free, matrix, 10.0, 0.1)
    for index in np.ndindex(5, 3):
        shift = np.zeros((5, 3))
        shift[index] = 1e-6
        above, below = (smooth_norm(free + sign * shift, matrix, 10.0, 0.1)[0] for sign in (1, -1))
        assert (above - below) / 2e-6 == pytest.approx(slope[index], abs=1e-6)
