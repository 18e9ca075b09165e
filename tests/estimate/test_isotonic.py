"""Isotonic regression: nearest, only among answers that share a threshold, in the noise's metric otherwise; and what it does to errors."""

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._estimate import isotonic, simulated_isotonic_errors


def test_weighted_answers_are_the_nearest_that_do_not_fall() -> None:
    rng = np.random.default_rng(2)
    answers, variances = np.cumsum(rng.normal(0.3, 2, 9)), rng.uniform(0.2, 5, 9)
    fitted = isotonic(answers, variances=variances)
    assert (np.diff(fitted) >= 0).all()

    def distance(values: np.ndarray) -> float:
        return float(((values - answers) ** 2 / variances).sum())

    for _ in range(500):
        assert distance(fitted) <= distance(np.sort(fitted + rng.normal(0, 0.3, 9))) + 1e-9


def test_the_metric_of_a_covariance_is_that_of_the_variances_where_it_is_diagonal() -> None:
    rng = np.random.default_rng(3)
    answers, variances = rng.normal(0, 3, 30), rng.uniform(0.2, 5, 30)
    assert isotonic(answers, covariance=np.diag(variances)) == pytest.approx(isotonic(answers, variances=variances), abs=1e-6)


def test_in_the_metric_of_correlated_noise_the_distance_from_the_truth_never_grows() -> None:
    rng = np.random.default_rng(4)
    covariance = np.minimum.outer(np.arange(1, 21), np.arange(1, 21)) * 4.0
    truth, precision = np.repeat([0.0, 30.0], 10), np.linalg.inv(covariance)
    grown = []
    for noise in rng.multivariate_normal(np.zeros(20), covariance, 60):
        error = isotonic(truth + noise, covariance=covariance) - truth
        assert error @ precision @ error <= noise @ precision @ noise + 1e-9
        grown.append((error**2).sum() / (noise**2).sum())
    # That metric is no promise for the answers themselves: noise that adds up along the line is clipped where it falls, and mass is added.
    assert np.median(grown) > 1


def test_answers_of_different_thresholds_are_not_pulled_together() -> None:
    answers, thresholds = [5.0, 1.0, 4.0, 2.0], [100, 50, 100, 50]
    assert isotonic(answers, thresholds=thresholds).tolist() == [4.5, 1.0, 4.5, 2.0]
    assert isotonic(answers).tolist() == [3.0, 3.0, 3.0, 3.0]


def test_simulated_errors_are_those_of_new_releases_from_the_same_truth() -> None:
    rng = np.random.default_rng(5)
    truth, variances = np.array([0.0, 0.0, 10.0, 10.0, 90.0]), np.array([9.0, 1.0, 4.0, 25.0, 16.0])
    first, second = (rng.laplace(size=(4000, 5)) * np.sqrt(variances / 2) for _ in range(2))
    bias, rmse = simulated_isotonic_errors(truth, first, variances=variances)
    found = np.array([isotonic(truth + one, variances=variances) for one in second]) - truth
    # 10 comparisons of means of 4000 draws, each pair within 5 of its standard errors.
    assert found.mean(axis=0) == pytest.approx(bias, abs=5 * rmse.max() * np.sqrt(2 / 4000))
    assert np.sqrt((found**2).mean(axis=0)) == pytest.approx(rmse, rel=0.12)
    assert (rmse[:4] < np.sqrt(variances[:4])).all()


def test_refusals_are_read() -> None:
    with pytest.raises(InputError, match="the answers must be a flat array of finite numbers"):
        isotonic([1.0, np.nan])
    with pytest.raises(InputError, match="Give the variances or the covariance of the noise; got both"):
        isotonic([1.0], variances=[1.0], covariance=[[1.0]])
    with pytest.raises(InputError, match="the variances must be 2 finite numbers above 0"):
        isotonic([1.0, 2.0], variances=[1.0, 0.0])
    with pytest.raises(InputError, match="the thresholds must be 2 numbers, one an answer"):
        isotonic([1.0, 2.0], thresholds=[1.0])
    with pytest.raises(InputError, match="the covariance must be a finite square one for 2 answers"):
        isotonic([1.0, 2.0], covariance=np.eye(3))
    with pytest.raises(InputError, match="The covariance must be positive definite"):
        isotonic([1.0, 2.0], covariance=np.ones((2, 2)))
    with pytest.raises(InputError, match="the noise must be simulated releases of 2 answers"):
        simulated_isotonic_errors([1.0, 2.0], np.zeros((3, 3)))
    assert isotonic([]).size == 0
