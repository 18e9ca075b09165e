"""Implement MWEM: multiplicative weights with ranges chosen by the exponential mechanism.

In each round the exponential mechanism favours the range with the worst answer.
"""

from fractions import Fraction

import numpy as np

from baselines._baseline import Baseline, Ranges, Reals, Wholes, all_ranges
from baselines._noise import choose, laplace
from leastnoise._trusted.kernel import Entropy

ROUNDS = 10
TOTAL_SHARE = Fraction(1, 20)
_PASSES = 50


def improve(estimate: Reals, history: list[tuple[int, int, float]], total: float) -> Reals:
    """Update the estimate by multiplicative weights over all measurements, repeatedly.

    The update is post-processing.

    >>> improve(np.array([2.0, 2.0]), [(0, 1, 3.0)], 4.0).round(3).tolist()
    [2.995, 1.005]
    """
    for _ in range(_PASSES):
        for low, high, value in history:
            error = value - estimate[low:high].sum()
            estimate[low:high] *= np.exp(np.clip(error / (2 * total), -10, 10))
            estimate *= total / estimate.sum()
    return estimate


def mwem(x: Wholes, epsilon: Fraction, entropy: Entropy, ranges: Ranges | None) -> Reals:
    """Measure the total, then choose and measure a range in each round.

    Half of a round's budget is for the choice, and half for the measurement.
    """
    queries = all_ranges(len(x)) if ranges is None else ranges
    total = max(float(laplace(x.sum().reshape(1), epsilon * TOTAL_SHARE, entropy)[0]), 1.0)
    step = epsilon * (1 - TOTAL_SHARE) / (2 * ROUNDS)
    truth = queries.answers(x)
    estimate = np.full(len(x), total / len(x))
    history: list[tuple[int, int, float]] = []
    for _ in range(ROUNDS):
        query_errors = np.abs(truth - np.round(queries.answers(estimate)).astype(np.int64))
        chosen = choose(query_errors, step / 2, entropy)
        value = laplace(truth[chosen : chosen + 1], step, entropy)[0]
        history.append((int(queries.low[chosen]), int(queries.high[chosen]), float(value)))
        estimate = improve(estimate, history, total)
    return estimate


MWEM = Baseline(
    name="MWEM",
    dimensions=1,
    private=True,
    proof=(
        "The total is measured with epsilon / 20. Each of 10 rounds spends 0.0475 epsilon on the "
        "exponential mechanism, whose scores "
        "move by at most 1, and as much on one count. The estimate depends on noisy values only."
    ),
    source="Hardt, Ligett, McSherry, NIPS 2012; 10 rounds, total paid for",
    mechanism=mwem,
    aware=True,
)
