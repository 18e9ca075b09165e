"""Privacy of partitions of a line, and of the least cost on a rectangle, by Monte Carlo; a sensitivity that is too small is seen.

``surely_lost`` is a lower bound of the loss that holds with probability 1 - 1e-6, as in test_partition_privacy.
"""

import math

import numpy as np
import pytest

from kernel.test_partition_privacy import surely_lost
from leastnoise._kernel import _plane as plane
from leastnoise._kernel._entropy import SeededEntropy
from leastnoise._kernel._plane import least_block_cost, sampled_partition
from mechanisms.remembered import draw_ahead, remember_weights


def neighbours(shape):
    empty = np.zeros(shape, dtype=np.int64)
    single = empty.copy()
    single[0, 1] = 1
    peak = np.array([[4, 0], [3, 0], [0, 2], [2, 9]])[: shape[0]]
    more = peak.copy()
    more[1, 0] += 1
    return [(empty, single), (peak, more)]


def drawn(x, entropy, **options):
    return tuple(sampled_partition(x.reshape(-1), 2, entropy, **options).starts.tolist())


@pytest.mark.parametrize("shape", [(2, 2), (4, 2)])
@pytest.mark.parametrize("penalty", [0, "0.5"])
def test_no_partition_loses_more_than_epsilon(penalty, shape, monkeypatch):
    remember_weights(monkeypatch, plane)
    for pair, (x, y) in enumerate(neighbours(shape)):
        entropy = SeededEntropy(100 * shape[0] + pair)
        one, other = ([drawn(cells, entropy, penalty=penalty) for _ in range(400)] for cells in (x, y))
        assert surely_lost(one, other) <= 2


def test_the_least_cost_loses_no_more_than_epsilon(monkeypatch):
    draw_ahead(monkeypatch, plane)
    entropy = SeededEntropy(5)
    x, y = neighbours((4, 2))[0]
    one, other = ([math.floor(least_block_cost(c, 2, entropy, penalty=1) * 2) for _ in range(1000)] for c in (x, y))
    assert surely_lost(one, other) <= 2


def test_a_sensitivity_that_is_too_small_is_caught(monkeypatch):
    """With a sixteenth of the true sensitivity one record in an empty table tells: the loss is above epsilon = 2."""
    monkeypatch.setattr(plane, "grid_sensitivity", lambda _n: 384)
    remember_weights(monkeypatch, plane)
    x, y = neighbours((2, 2))[0]
    entropy = SeededEntropy(9)
    one, other = ([drawn(cells, entropy, prior=0) for _ in range(1600)] for cells in (x, y))
    assert surely_lost(one, other) > 2.4
