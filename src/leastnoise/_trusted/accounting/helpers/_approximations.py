"""Float approximations from which the exact searches of `_mu` start.

This file is not trusted: the search ends at the same number from any start, but may take longer.
"""

import math
from collections.abc import Callable
from fractions import Fraction

_LARGEST_FLOAT = Fraction(10**300)  # below the largest double, 1.8e308
_EXPONENT_RANGE = (-500.0, 500.0)
"""Binary logarithms of the least and the largest approximation of a root."""
_BISECTION_STEPS = 60  # of an interval: more than the 53 bits of a double


def near_gaussian_mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return nearly the largest mu squared within (epsilon, delta)."""
    loss = _as_float(epsilon)
    limit = float(delta)
    return _largest_root(lambda mu: _gaussian_delta(loss, mu) <= limit) ** 2


def near_gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Return nearly the least epsilon for which mu-GDP implies (epsilon, delta)."""
    mu = math.sqrt(_as_float(mu_squared))
    limit = float(delta)
    return _largest_root(lambda epsilon: _gaussian_delta(epsilon, mu) > limit)


def near_pure_mu_squared(epsilon: Fraction) -> Fraction:
    """Return nearly the least mu squared that epsilon-DP implies."""
    error = _least_testing_error(_as_float(epsilon))
    return _largest_root(lambda mu: _normal_tail(mu / 2) > error) ** 2


def near_pure_epsilon(mu_squared: Fraction) -> Fraction:
    """Return nearly the largest epsilon for which epsilon-DP implies mu-GDP."""
    tail = _normal_tail(math.sqrt(_as_float(mu_squared)) / 2)
    return _largest_root(lambda epsilon: tail <= _least_testing_error(epsilon))


def _largest_root(accepts: Callable[[float], bool]) -> Fraction:
    """Return nearly the largest number that a predicate accepts, by bisection."""
    low, high = _EXPONENT_RANGE
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if accepts(2.0**middle):
            low = middle
        else:
            high = middle
    return Fraction(2.0**low)


def _as_float(value: Fraction) -> float:
    """Convert to a float; a number above 10^300 becomes 10^300."""
    return float(min(value, _LARGEST_FLOAT))


def _least_testing_error(epsilon: float) -> float:
    """Return the least equal error rate of a test between neighbouring tables."""
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _normal_tail(x: float) -> float:
    """Return the probability that a standard normal variable is at least x."""
    return math.erfc(x / math.sqrt(2)) / 2


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the delta of Gaussian noise, with the equation in `_deltas`."""
    if mu == 0:
        return 0.0
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    if a >= 0:
        return density * (_mills_ratio(a) - _mills_ratio(b))
    return 1 - density * (_mills_ratio(-a) + _mills_ratio(b))


def _mills_ratio(x: float) -> float:
    """Return the normal tail divided by the normal density, for x at least 0."""
    if x < 25:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    return 1 / (x + 1 / (x + 2 / (x + 3 / x)))
