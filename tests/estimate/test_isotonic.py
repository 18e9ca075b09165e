"""Isotonic regression: the nearest answers that do not fall."""

import numpy as np
import pytest

from leastnoise._check import InputError
from leastnoise._estimate import isotonic


def test_weighted_answers_are_the_nearest_that_do_not_fall() -> None:
    rng = np.random.default_rng(2)
    answers, variances = np.cumsum(rng.normal(0.3, 2, 9)), rng.uniform(0.2, 5, 9)
    fitted = isotonic(answers, variances=variances)
    assert (np.diff(fitted) >= 0).all()

    def distance(values: np.ndarray) -> float:
        return float(((values - answers) ** 2 / variances).sum())

    for _ in range(500):
        assert distance(fitted) <= distance(np.sort(fitted + rng.normal(0, 0.3, 9))) + 1e-9


def test_refusals_are_read() -> None:
    with pytest.raises(InputError, match="the answers must be a flat array of finite numbers"):
        isotonic([1.0, np.nan])
    with pytest.raises(InputError, match="the variances must be 2 finite numbers above 0"):
        isotonic([1.0, 2.0], variances=[1.0, 0.0])
    assert isotonic([]).size == 0
