"""What draws of two tables say for certain: probabilities bounded by Clopper and Pearson, and losses from below.

One half of the draws chooses an event, the other half bounds its probabilities.

Source: Clopper and Pearson 1934; Dong, Roth and Su 2019 (mu); van Erven and Harremoes 2014 (divergence of an event, for rho).
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._audit._made_up import Source
from leastnoise._check.arrays import FloatArray

LEAST_TRIALS = 200
_ORDERS = 1 + np.geomspace(1e-3, 50, 100)
_ROUNDING = 1e-9  # of laws in double precision
_FACTORS = 2 ** (np.arange(-80, 161) / 80)
Loss = Callable[[float, float], float]
Tails = Callable[[float, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is drawn, and with what certainty."""

    trials: int | None
    seconds: float
    risk: float
    entropy: Source

    def batches(self, most: int) -> Iterator[int]:
        """How many trials to draw next, until there are enough."""
        end, done = time.monotonic() + self.seconds, 0
        wanted = math.inf if self.trials is None else self.trials
        while done < wanted and (self.trials is not None or done < LEAST_TRIALS or time.monotonic() < end):
            count = int(min(most, wanted - done))
            done += count
            yield count


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that was looked at."""

    name: str
    claim: float
    lower_bound: float
    trials: int
    units: int

    @property
    def held(self) -> bool:
        """False if more is lost than is claimed."""
        return self.lower_bound <= self.claim * (1 + 1e-6)


def certified(first: FloatArray, second: FloatArray, risk: float, loss_of: Loss) -> tuple[float, float]:
    """At least how often the first is above a threshold, and at most how often the second is; each wrong with at most the given risk."""
    half = len(first) // 2
    chosen = _thresholds(first[:half], second[:half])
    low, high = (bound(_above(own[:half], chosen), half, risk) for bound, own in ((least, first), (most, second)))
    best = int(np.argmax([loss_of(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]))
    return _held_out(first, second, risk, float(chosen[best]))


def sharpness(first: FloatArray, second: FloatArray, risk: float, tails: Tails) -> float:
    """The least factor by which a step is sharper than it should be, for an event to have its probabilities; at least 1/2."""
    half = len(first) // 2
    chosen = _thresholds(first[:half], second[:half])
    low, high = (bound(_above(own[:half], chosen), half, risk) for bound, own in ((least, first), (most, second)))
    best = float(chosen[int(np.argmax(_factors(chosen, low, high, tails)))])
    low_rest, high_rest = _held_out(first, second, risk, best)
    return float(_factors(np.array([best]), np.array([low_rest]), np.array([high_rest]), tails)[0])


def _factors(thresholds: FloatArray, low: FloatArray, high: FloatArray, tails: Tails) -> FloatArray:
    """For each threshold the least factor whose law allows both probabilities, rounded down.

    Between two factors both may be anything that they are at either.
    """
    found = np.full(len(thresholds), _FACTORS[-1])
    one, other = tails(_FACTORS[-1], thresholds)
    for factor in _FACTORS[-2::-1].tolist():
        more, less = tails(factor, thresholds)
        allowed = (np.maximum(one, more) >= low - _ROUNDING) & (np.minimum(other, less) <= high + _ROUNDING)
        found, one, other = np.where(allowed, factor, found), more, less
    return found


def _thresholds(first: FloatArray, second: FloatArray) -> FloatArray:
    """A hundred of each, in order."""
    return np.unique(np.concatenate([np.quantile(own, np.linspace(0.005, 0.995, 100), method="lower") for own in (first, second)]))


def _above(drawn: FloatArray, thresholds: FloatArray) -> Any:
    return len(drawn) - np.searchsorted(np.sort(drawn), thresholds)


def _held_out(first: FloatArray, second: FloatArray, risk: float, threshold: float) -> tuple[float, float]:
    half = len(first) // 2
    hits = [np.array([int((own[half:] >= threshold).sum())]) for own in (first, second)]
    return float(least(hits[0], len(first) - half, risk)[0]), float(most(hits[1], len(second) - half, risk)[0])


def least(hits: Any, trials: int, risk: float) -> FloatArray:
    """The lower end of the interval of Clopper and Pearson."""
    from scipy.stats import beta

    return np.where(hits > 0, beta.ppf(risk, np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1), 0.0)


def most(hits: Any, trials: int, risk: float) -> FloatArray:
    """The upper end."""
    from scipy.stats import beta

    return np.where(hits < trials, beta.isf(risk, np.minimum(hits, trials - 1) + 1, trials - np.minimum(hits, trials - 1)), 1.0)


def log_ratio(low: float, high: float) -> float:
    """Epsilon, at least."""
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def gap(low: float, high: float) -> float:
    """The least mu of a Gaussian mechanism with such an event."""
    from scipy.special import ndtri

    return max(0.0, float(ndtri(low) - ndtri(high))) if low > 0 and high < 1 else 0.0


def divergence(low: float, high: float) -> float:
    """The largest Renyi divergence of an event over its order: at most rho, as no function of an output is farther apart than it is."""
    if not 0 < high < low:
        return 0.0
    inside = _ORDERS * math.log(low) + (1 - _ORDERS) * math.log(high)
    outside = _ORDERS * math.log1p(-min(low, 1 - 1e-15)) + (1 - _ORDERS) * math.log1p(-high)
    return max(0.0, float((np.logaddexp(inside, outside) / (_ORDERS - 1) / _ORDERS).max()))


def approximate(delta: float, units: int) -> Loss:
    """Epsilon of one unit beside a delta, at least, from tables that differ in several units (group privacy)."""

    def loss_of(low: float, high: float) -> float:
        def allowed(epsilon: float) -> float:
            return math.exp(units * epsilon) * high + delta * sum(math.exp(place * epsilon) for place in range(units))

        return last(lambda epsilon: allowed(epsilon) < low, 700 / units)

    return loss_of


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of a Gaussian mechanism, from below."""
    from scipy.special import log_ndtr

    def spent(epsilon: float) -> float:
        return float(np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))

    return last(lambda epsilon: spent(epsilon) > delta, 2**20) if mu > 0 else 0.0


def last(holds: Callable[[float], bool], end: float) -> float:
    """The end of what holds from 0 on, from below."""
    low, high = 0.0, min(1.0, end)
    if not holds(low):
        return 0.0
    while high < end and holds(high):
        high = min(2 * high, end)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
