"""Theorem 8 by brute force: two Gaussian steps of which the second is chosen by what the first gave, as exact as integrals are."""

import math
from collections.abc import Callable

import numpy as np
import pytest

Split = Callable[[np.ndarray], np.ndarray]


def phi(x: np.ndarray | float) -> np.ndarray:
    return 0.5 * np.vectorize(math.erfc)(-np.asarray(x) / math.sqrt(2))


def delta_of(mu: np.ndarray | float, epsilon: np.ndarray | float) -> np.ndarray:
    """The largest P(S) - e^epsilon Q(S) of N(mu, 1) against N(0, 1), for any real epsilon."""
    mu = np.maximum(mu, 1e-12)
    return phi(mu / 2 - epsilon / mu) - np.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def together(first: float, rest: Split, epsilon: float) -> float:
    """The same of both steps: the first has mu^2 = ``first``, the second ``rest`` of what it gave."""
    mu = math.sqrt(first)
    y, width = np.linspace(-14, 14, 28_001, retstep=True)
    density = np.exp(-((y - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    given = mu * y - first / 2  # the logarithm of the likelihood ratio of the first output
    return float((density * delta_of(np.sqrt(rest(y)), epsilon - given)).sum() * width)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("mu_squared", [0.25, 1.0])
def test_gaussian_steps_chosen_on_the_way_lose_what_one_of_their_squares_together_loses(mu_squared: float, epsilon: float) -> None:
    whole = float(delta_of(math.sqrt(mu_squared), epsilon))
    for share in (0.1, 0.5):
        left = (1 - share) * mu_squared
        all_of_it = together(share * mu_squared, lambda y, left=left: np.full_like(y, left), epsilon)
        assert all_of_it == pytest.approx(whole, rel=1e-6)
        for chosen in (lambda y, left=left: np.where(y > 0.3, left, left / 3), lambda y, left=left: left * phi(-y)):
            assert together(share * mu_squared, chosen, epsilon) <= whole * (1 + 1e-6)
        # what a step may not do: take more where the first output already tells much
        assert together(share * mu_squared, lambda y, left=left: np.where(y > 0.3, 1.5 * left, left), epsilon) > whole
