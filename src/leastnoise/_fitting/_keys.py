"""The least threshold that finds keys within a budget: searched here, and proved again by the kernel."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

from leastnoise._accounting import ApproxDP, KeyRule, Noise, Privacy, keys_are_private
from leastnoise._check import InputError, refuse
from leastnoise._fitting._fit import root_up, round_up
from leastnoise._fitting._gaussian import gaussian_mu_squared

OFTEN = 0.95
# More noise on the keys that others hold too leaves more of delta to those that nobody else holds.
_MORE = (Fraction(1), Fraction(51, 50), Fraction(11, 10))
_FARTHEST = 2**40


def key_rule(privacy: Privacy) -> KeyRule:
    """Find the rule whose keys need the fewest units, of Laplace and of Gaussian noise.

    Guarantees: `keys_are_private` was seen to be true of it.
    """
    budget = privacy.budget
    if not isinstance(budget, ApproxDP):
        raise refuse("the budget of a search for keys", budget, "ApproxDP(epsilon, delta)", "A key that one person has gets out by chance.")
    laplace = KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=_short(privacy.distance / budget.epsilon), threshold=2)
    square = gaussian_mu_squared(budget.epsilon, budget.delta)
    candidates = [laplace]
    for more in _MORE:
        scale = root_up(privacy.distance / square * more**2)
        candidates.append(KeyRule(noise=Noise.ROUNDED_GAUSSIAN, scale=_short(scale), threshold=2))
    found = [rule for one in candidates if (rule := _least(one, privacy)) is not None]
    if not found:
        raise InputError(
            f"A search for keys within {budget!r} would need a threshold above 2^40. Give it more of the budget, or a larger delta."
        )
    return min(found, key=lambda rule: (found_often(rule), rule.scale))


def found_often(rule: KeyRule) -> int:
    """How many units a key needs to be found in at least ``OFTEN`` of all searches."""
    scale = float(rule.scale)
    if rule.noise is Noise.ROUNDED_GAUSSIAN:
        return rule.threshold + math.ceil(NormalDist().inv_cdf(OFTEN) * scale - 0.5)
    tail = (1 - OFTEN) * (1 + math.exp(-1 / scale))  # P(X <= -m) = exp(-m / b) / (1 + exp(-1 / b))
    return rule.threshold + max(0, math.ceil(-math.log(tail) * scale) - 1)


def _least(rule: KeyRule, privacy: Privacy) -> KeyRule | None:
    """The rule with the least threshold that is proved, from a guess on; None if that is above 2^40."""
    budget = privacy.budget
    chance = float(budget.delta) / privacy.max_rows if isinstance(budget, ApproxDP) else 0.0
    chance = min(0.5, max(1e-300, chance))  # a guess need not be near, and doubles end there
    far = -math.log(2 * chance) if rule.noise is Noise.DISCRETE_LAPLACE else -NormalDist().inv_cdf(chance)
    guess = max(2, math.ceil(1 + far * float(rule.scale)))
    low, high = 1, guess
    for step in _doubling():
        if high > _FARTHEST:
            return None
        if keys_are_private(replace(rule, threshold=high), privacy):
            break
        low, high = high, high + step
    for step in _doubling():
        if not low < high - step:
            break
        if not keys_are_private(replace(rule, threshold=high - step), privacy):
            low = high - step
            break
        high -= step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keys_are_private(replace(rule, threshold=middle), privacy) else (middle, high)
    return replace(rule, threshold=high)


def _short(scale: Fraction) -> Fraction:
    """The scale itself if the samplers take it, else rounded up."""
    return scale if max(scale.numerator, scale.denominator) < 2**50 else round_up(scale, 40)


def _doubling() -> Iterator[int]:
    step = 1
    while True:
        yield step
        step *= 2
