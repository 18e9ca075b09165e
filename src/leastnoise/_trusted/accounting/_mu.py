"""Convert between pure, Gaussian and (epsilon, delta) privacy in mu squared.

mu-GDP (Dong, Roth, Su, 2022) states that distinguishing two neighbours is at least as hard as
distinguishing N(0, 1) from N(mu, 1). PROOFS-mu.md has the proofs. The searches are not trusted:
`pure_is_gaussian` or `gaussian_is_private` checks their results.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from leastnoise._trusted.accounting._deltas import (
    gaussian_is_private,
    normal_tail,
    rounding_contexts,
)
from leastnoise._trusted.accounting.helpers._approximations import (
    near_gaussian_epsilon,
    near_gaussian_mu_squared,
    near_pure_epsilon,
    near_pure_mu_squared,
)
from leastnoise._trusted.check import Exact, InternalError, exact, exact_positive, refuse

_RESULT_BITS = 44
"""Leading bits of the numbers that the searches return."""
_STEP_GROWTH = 4
"""The ratio of the lengths of consecutive steps, until the result is passed."""
_LARGE_EPSILON = 1000
"""Above it the simple bound 8 epsilon is used (PROOFS-mu.md, G1): no tail is below 1e-3000 then."""


def pure_is_gaussian(epsilon: Fraction, mu_squared: Fraction) -> bool:
    """Return whether epsilon-DP provably implies mu-GDP.

    The implication holds if the normal tail ``Q(mu / 2)`` is at most ``1 / (1 + exp(epsilon))``.

    Args:
        epsilon: above 0.
        mu_squared: above 0.

    Returns:
        True only where it is proved, with about 50 digits.

    Source: Dong, Roth, Su (JRSS-B 2022), section 2.2, for the trade-off function of epsilon-DP;
        G1 of PROOFS-mu.md.

    >>> (
    ...     pure_is_gaussian(Fraction(1), Fraction("1.5179")),
    ...     pure_is_gaussian(Fraction(1), Fraction("1.5180")),
    ... )
    (False, True)
    """
    if mu_squared >= 8 * epsilon:
        return True
    if epsilon > _LARGE_EPSILON:
        return False
    contexts = rounding_contexts(50 + epsilon.denominator.bit_length() // 3)
    tail = normal_tail(mu_squared / 4, contexts)
    worst_error = contexts.down.divide(
        Decimal(1), contexts.up.add(Decimal(1), contexts.exp(epsilon)[1])
    )
    return tail <= worst_error


@lru_cache(maxsize=1024)
def pure_mu_squared(epsilon: Fraction) -> Fraction:
    """Return a mu squared for which epsilon-DP implies mu-GDP, rounded up.

    For epsilon up to 1000, it is ``(2 PhiInverse(1 / (1 + exp(-epsilon))))^2`` within a relative
    2^-40. For a larger epsilon, the result is 8 epsilon.

    Args:
        epsilon: above 0.

    >>> float(pure_mu_squared(Fraction(1)))
    1.5179...
    """
    if epsilon > _LARGE_EPSILON:
        return 8 * epsilon
    square = largest_accepted(
        lambda candidate: not pure_is_gaussian(epsilon, candidate),
        start=near_pure_mu_squared(epsilon),
    )
    for _ in range(8):
        square *= 1 + Fraction(1, 2 ** (_RESULT_BITS - 2))
        if pure_is_gaussian(epsilon, square):
            return square
    raise InternalError("The mu of a pure release was not found; please report this.")


@lru_cache(maxsize=1024)
def pure_epsilon(mu_squared: Fraction) -> Fraction:
    """Return the largest epsilon that implies mu-GDP, rounded down.

    `pure_is_gaussian` returns True for the result.

    Args:
        mu_squared: above 0.

    >>> round(float(pure_epsilon(pure_mu_squared(Fraction(1)))), 9)
    1.0
    """
    return largest_accepted(
        lambda candidate: pure_is_gaussian(candidate, mu_squared),
        start=near_pure_epsilon(mu_squared),
    )


def gaussian_mu_squared(epsilon: Exact, delta: Exact) -> Fraction:
    """Return the largest mu squared within (epsilon, delta), rounded down.

    `gaussian_is_private` returns True for the result.

    Args:
        epsilon: at least 0.
        delta: at least 1e-1000 and below 1.

    Raises:
        InputError: an argument is outside its range.

    Source: Balle and Wang (ICML 2018), theorem 8; Dong, Roth, Su (JRSS-B 2022), corollary 2.13.

    >>> round(float(gaussian_mu_squared(1, "1e-6")), 4)
    0.056
    """
    eps = exact("epsilon", epsilon)
    limit = exact("delta", delta)
    if not eps >= 0:
        raise refuse("epsilon", epsilon, "a number of at least 0")
    if not Fraction(1, 10**1000) <= limit < 1:
        raise refuse(
            "delta",
            delta,
            "at least 1e-1000 and below 1 for Gaussian noise",
            "Choose for example '1e-9', or PureDP.",
        )
    return _largest_mu_squared(eps, limit)


@lru_cache(maxsize=1024)
def _largest_mu_squared(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest mu squared within (epsilon, delta), rounded down."""
    return largest_accepted(
        lambda square: gaussian_is_private(epsilon, square, delta),
        start=near_gaussian_mu_squared(epsilon, delta),
    )


def gaussian_epsilon(mu_squared: Exact, delta: Exact) -> Fraction:
    """Return an epsilon for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    `gaussian_is_private` returns True for the result. The result is within a relative 2^-30 of the
    least epsilon with this property, and is 0 if mu-GDP implies (0, delta)-DP.

    Args:
        mu_squared: above 0.
        delta: above 0 and below 1.

    >>> round(float(gaussian_epsilon("0.0718", "1e-5")), 3)
    1.0
    """
    return _least_gaussian_epsilon(exact_positive("mu_squared", mu_squared), exact("delta", delta))


@lru_cache(maxsize=1024)
def _least_gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon that mu-GDP implies at this delta, rounded up."""
    if gaussian_is_private(Fraction(0), mu_squared, delta):
        return Fraction(0)
    bits = 34
    epsilon = largest_accepted(
        lambda candidate: not gaussian_is_private(candidate, mu_squared, delta),
        bits,
        near_gaussian_epsilon(mu_squared, delta),
    )
    while not gaussian_is_private(epsilon, mu_squared, delta):
        epsilon *= 1 + Fraction(1, 2 ** (bits - 2))
    return epsilon


def largest_accepted(
    accepts: Callable[[Fraction], bool],
    leading_bits: int = _RESULT_BITS,
    start: Fraction | None = None,
) -> Fraction:
    """Return the largest number that a predicate accepts.

    The search is among numbers with ``leading_bits`` leading bits. The predicate must accept all
    numbers up to a limit, and reject all numbers above it.

    Args:
        accepts: the predicate.
        leading_bits: leading bits of the result.
        start: a number above 0 at which the search starts. The result does not depend on it; the
            search is fast if it is near the result.

    >>> largest_accepted(lambda number: number <= Fraction(1, 3), leading_bits=3)
    Fraction(5, 16)
    """
    steps_per_doubling = 2 ** (leading_bits - 1)  # numbers from 2^n to 2^(n + 1)
    if start is None:
        low = 0
        step = steps_per_doubling
    else:
        low = _rank(start, steps_per_doubling)
        step = 1
    high = low
    if accepts(_number_of_rank(low, steps_per_doubling)):
        high += step
        while accepts(_number_of_rank(high, steps_per_doubling)):
            low = high
            step *= _STEP_GROWTH
            high += step
    else:
        low -= step
        while not accepts(_number_of_rank(low, steps_per_doubling)):
            high = low
            step *= _STEP_GROWTH
            low -= step
    while high - low > 1:
        middle = (low + high) // 2
        if accepts(_number_of_rank(middle, steps_per_doubling)):
            low = middle
        else:
            high = middle
    return _number_of_rank(low, steps_per_doubling)


def _rank(number: Fraction, steps_per_doubling: int) -> int:
    """Return the rank, rounded down, on a grid of ``steps_per_doubling`` per doubling."""
    octave = number.numerator.bit_length() - number.denominator.bit_length()
    if number < Fraction(2) ** octave:
        octave -= 1
    return octave * steps_per_doubling + int(
        (number / Fraction(2) ** octave - 1) * steps_per_doubling
    )


def _number_of_rank(rank: int, steps_per_doubling: int) -> Fraction:
    """Return the number of a rank on a grid; the number 1 has the rank 0.

    The grid has equal steps from each power of 2 to the next.
    """
    octave, beyond = divmod(rank, steps_per_doubling)
    return (1 + Fraction(beyond, steps_per_doubling)) * Fraction(2) ** octave
