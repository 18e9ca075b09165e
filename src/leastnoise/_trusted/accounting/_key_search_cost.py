"""Bound the (epsilon, delta) of a search that finds keys by noisy counts.

The counts are compared with a threshold: theorem 7 of PROOFS-accounting.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from leastnoise._trusted.accounting._budget import ApproxDP, Privacy
from leastnoise._trusted.accounting._cost import Noise
from leastnoise._trusted.accounting._deltas import (
    LEAST_DELTA,
    Rounding,
    gaussian_delta,
    normal_tail,
    rounding_contexts,
)
from leastnoise._trusted.check import exact_positive, refuse, whole

_DECIMAL_DIGITS = 50  # of intermediate decimals, which are rounded outwards
# Numbers of keys up to here are checked one by one; larger ones in ranges of an eighth of their
# size.
_MOST_SINGLE_KEYS = 64
MOST_SCALE = 2**48
_MOST_TERM = 2**56


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """The noise and the threshold with which a search decides about keys.

    A key that no unit has gets no noise.

    Args:
        noise: discrete Laplace or rounded Gaussian.
        scale: the scale of the noise (b, or sigma) in units; above 0 and at most 2^48, with
            numerator and denominator below 2^56.
        threshold: a whole number of at least 2.

    Raises:
        InputError: an argument is not an allowed value.

    >>> KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=Fraction(1), threshold=22).threshold
    22
    """

    noise: Noise
    scale: Fraction
    threshold: int

    def __post_init__(self) -> None:
        if self.noise not in (Noise.DISCRETE_LAPLACE, Noise.ROUNDED_GAUSSIAN):
            raise refuse(
                "the noise of a search for keys",
                self.noise,
                "discrete Laplace or rounded Gaussian noise",
            )
        scale = exact_positive("scale", self.scale)
        if not (scale <= MOST_SCALE and max(scale.numerator, scale.denominator) < _MOST_TERM):
            raise refuse(
                "scale", float(scale), "at most 2^48, and a fraction of numbers below 2^56"
            )
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "threshold", whole("threshold", self.threshold, 2, 2**60))


def search_budget(privacy: Privacy) -> ApproxDP:
    """Return the budget of a search for keys; raise if it has no delta.

    Raises:
        InputError: the budget has no delta, so a key of one person must not be released by chance.

    >>> search_budget(Privacy(ApproxDP(1, "1e-9")))
    ApproxDP(epsilon='1', delta='1/1000000000')
    """
    budget = privacy.budget
    if not isinstance(budget, ApproxDP):
        raise refuse(
            "the budget of a search for keys",
            budget,
            "ApproxDP(epsilon, delta)",
            "With a small probability, a key of only one person is published; only delta allows "
            "this.",
        )
    return budget


def keys_are_private(rule: KeyRule, privacy: Privacy) -> bool:
    """Return whether a search by this rule provably satisfies the budget.

    A unit adds 1 to the counts of at most ``max_rows`` keys.

    Args:
        rule: the noise and the threshold.
        privacy: an ApproxDP budget, the neighbours, and ``max_rows``.

    Returns:
        True only if this is proved.

    Raises:
        InputError: the budget has no delta.

    Guarantees: the bound is exact up to rounding and a relative delta / 2 in two cases: none of a
        unit's keys belong to other units, or all of them do. The bound is a sum: the probability
        that some key that only this unit has is released, plus the delta of the noise on its other
        keys.

    Source: Wilkins, Kifer, Zhang, Karrer, Exact privacy analysis of the Gaussian sparse histogram
        mechanism (2024), extended here to both kinds of neighbours.

    >>> privacy = Privacy(ApproxDP(1, "1e-9"))
    >>> [
    ...     keys_are_private(
    ...         KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=Fraction(1), threshold=most), privacy
    ...     )
    ...     for most in (21, 22)
    ... ]
    [False, True]
    """
    budget = search_budget(privacy)
    gaussian = rule.noise is Noise.ROUNDED_GAUSSIAN
    if not gaussian and not privacy.distance <= budget.epsilon * rule.scale:
        return False
    contexts = rounding_contexts(_DECIMAL_DIGITS)
    max_rows = privacy.max_rows
    release_probability = _lone_key_release_probability(rule, contexts)
    delta_limit = contexts.fraction(budget.delta)[0]
    for first, last in _ranges_of_lone_keys(max_rows) if gaussian else [(max_rows, max_rows)]:
        shared = privacy.distance - first
        noise_delta = Decimal(0)
        if gaussian and shared:
            noise_delta = contexts.fraction(gaussian_delta(budget.epsilon, shared / rule.scale**2))[
                1
            ]
        release_delta = contexts.up.multiply(release_probability, Decimal(last))
        if not contexts.up.add(noise_delta, release_delta) <= delta_limit:
            return False
    return True


def _ranges_of_lone_keys(max_keys: int) -> Iterator[tuple[int, int]]:
    """Divide the range from 0 to ``max_keys`` into parts, and yield their ends.

    Each number in the range is a possible number of keys that one unit has and no other unit has.
    """
    first = 0
    while first <= max_keys:
        last = min(max_keys, first + (first // 8 if first > _MOST_SINGLE_KEYS else 0))
        yield first, last
        first = last + 1


def _lone_key_release_probability(rule: KeyRule, contexts: Rounding) -> Decimal:
    """Bound the probability that a key which only one unit has is released.

    The key is released if its noise is at least ``threshold - 1``, or exceeds 62 bits.
    """
    up = contexts.up
    least_noise = rule.threshold - 1
    if rule.noise is Noise.ROUNDED_GAUSSIAN:
        tail = normal_tail(((least_noise - Fraction(1, 2)) / rule.scale) ** 2, contexts)
    else:
        ratio = contexts.exp(-1 / rule.scale)[0]
        tail = up.divide(
            contexts.exp(-least_noise / rule.scale)[1], contexts.down.add(Decimal(1), ratio)
        )
    return up.add(tail, contexts.fraction(LEAST_DELTA)[1])
