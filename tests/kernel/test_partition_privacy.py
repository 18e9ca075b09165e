"""Privacy of the least cost of a partition, and of DAWA's first stage as printed, by Monte Carlo; the faults of the released DAWA are seen.

For a pair of neighbours, draws of both are split in two halves. The first half names the outputs that look most revealing, the second gives
Clopper-Pearson bounds for their probabilities. ``surely_lost`` is a lower bound of the loss that holds with probability 1 - 1e-6, so that a
private mechanism passes with that probability, and a fault that is large enough to be seen is seen.
"""

import math
from collections import Counter

import numpy as np
import pytest
from baselines._noisy_costs import noisy_costs
from scipy.stats import beta

from baselines import _noisy_costs
from leastnoise._kernel import LeastCost, SeededEntropy, _plane
from mechanisms.remembered import draw_ahead

ALARM = 1e-6


def surely_lost(one, other):
    """Lower bound of the privacy loss from draws on two neighbours, hashable outputs."""
    half = len(one) // 2
    first, second = Counter(one[:half]), Counter(other[:half])
    loss = 0.0
    events = []
    for a, b in ((first, second), (second, first)):
        ranked = sorted(a, key=lambda out: (a[out] + 1) / (b[out] + 1), reverse=True)
        # single outputs, and all outputs above a ratio
        events += [({out}, a is first) for out in ranked[:10]] + [(set(ranked[:k]), a is first) for k in (3, 20, 50, len(ranked) // 2) if k]
    second_halves = [(Counter(draws[half:]), len(draws) - half) for draws in (one, other)]
    for event, forward in events:
        (mine, total), (theirs, rest) = second_halves if forward else second_halves[::-1]
        hits, faults = (sum(found[out] for out in event) for found in (mine, theirs))
        low = beta.ppf(ALARM / 100, hits, total - hits + 1) if hits else 0.0
        high = beta.isf(ALARM / 100, faults + 1, rest - faults) if faults < rest else 1.0
        if low > 0:
            loss = max(loss, math.log(low / high))
    return loss


def neighbours(n):
    empty = np.zeros(n, dtype=np.int64)
    single = empty.copy()
    single[1] = 1
    peak = np.array([4, 0, 3, 0, 0, 2, 2, 9][:n])
    more = peak.copy()
    more[2] += 1
    return [(empty, single), (peak, more)]


@pytest.mark.parametrize("n", [4, 8])
def test_the_printed_first_stage_loses_no_more_than_epsilon(n, monkeypatch):
    draw_ahead(monkeypatch, _noisy_costs)
    for pair, (x, y) in enumerate(neighbours(n)):
        entropy = SeededEntropy(100 * n + pair)
        one, other = ([tuple(noisy_costs(cells, 2, entropy, penalty="0.5").starts.tolist()) for _ in range(600)] for cells in (x, y))
        assert surely_lost(one, other) <= 2


@pytest.mark.parametrize("shape", [(8,), (4, 2)])
@pytest.mark.parametrize("pair", [0, 1])
def test_the_least_cost_loses_no_more_than_epsilon(shape, pair, monkeypatch):
    draw_ahead(monkeypatch, _plane)
    entropy = SeededEntropy(5)
    choice = LeastCost(attributes=("age", "sex")[: len(shape)], epsilon=2, penalty=1)
    one, other = ([math.floor(choice.draw(cells.reshape(shape), 1, entropy) * 2) for _ in range(1000)] for cells in neighbours(8)[pair])
    assert surely_lost(one, other) <= 2


# --- what the test is worth ------------------------------------------------------------------------------------------------------


def draw(x, draws, generator, *, scale, clamp, noisy_cells=True):
    """Algorithm 1 with a fault or without, epsilon1 = 1, epsilon2 = 3, many draws at once. NOT PRIVATE with a fault; only for this test.

    Lengths are the powers of two, at every start. ``scale(L, n)`` is that of the noise; ``clamp`` cuts noisy costs off at 1 / epsilon2.
    """
    n = len(x)
    best = np.zeros((draws, n + 1))
    last = np.zeros((draws, n + 1), dtype=np.int64)
    for stop in range(1, n + 1):
        totals = []
        for power in range(stop.bit_length()):
            length = 2**power
            window = x[stop - length : stop]
            cost = np.abs(window - window.mean()).sum() + 1 / 3
            noise = generator.laplace(0, scale(length, n), draws) if noisy_cells or length > 1 else np.zeros(draws)
            noisy = cost + noise
            totals.append(best[:, stop - length] + (np.maximum(noisy, 1 / 3) if clamp else noisy))
        last[:, stop] = np.argmin(totals, axis=0)
        best[:, stop] = np.min(totals, axis=0)
    codes = np.zeros(draws, dtype=np.int64)
    stop = np.full(draws, n)
    while stop.any():
        stop = np.where(stop > 0, stop - 2 ** last[np.arange(draws), stop], 0)
        codes |= 1 << stop
    return codes.tolist()


def remark(length, n):
    return 4 - 2 / n - 2 / length


def released(length, n):
    return 2 - 1 / length - 1 / n


@pytest.mark.parametrize(("n", "least"), [(4, 1.8), (8, 1.8)])
def test_the_released_variant_is_caught(n, least):
    """Half the scale, no noise on single cells, and a clamp: a loss of 2.5 epsilon1 at 4 cells, and more at 8."""
    x, y = neighbours(n)[0]
    generator = np.random.default_rng(n)
    one, other = (draw(cells, 300_000, generator, scale=released, clamp=True, noisy_cells=False) for cells in (x, y))
    assert surely_lost(one, other) > least


@pytest.mark.parametrize("scale", [remark, lambda _length, n: 4 - 4 / n])
def test_the_clamp_alone_is_caught_and_without_it_nothing_is(scale):
    """The scales of the theorem, 8 cells: a loss of 1.8 to 2 epsilon1 with the clamp, of 0.4 without."""
    x, y = neighbours(8)[0]
    generator = np.random.default_rng(3)
    one, other = (draw(cells, 600_000, generator, scale=scale, clamp=True) for cells in (x, y))
    assert surely_lost(one, other) > 1
    one, other = (draw(cells, 200_000, generator, scale=scale, clamp=False) for cells in (x, y))
    assert surely_lost(one, other) < 0.6
