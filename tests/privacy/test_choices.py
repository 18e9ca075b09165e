"""Private choices made wrong by a factor of 1.25 on purpose: the exact law that is drawn from is seen to be too sharp, for each kind.

Nothing is left to chance: the weights and the scales are the program's own, seen by spies, for all neighbours of some tables.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernel.test_selection_privacy import EPSILON, LAWS, loss_of_choice
from leastnoise._kernel import _partition, _partition_sampling, _plane

UNITS = [("add_remove", 1)]


def sharper(rate: Callable[..., Any]) -> Callable[..., Any]:
    """Weights whose exponents are a quarter larger than epsilon allows."""
    return lambda epsilon: rate(epsilon * Fraction(5, 4))


@pytest.mark.parametrize(("neighbours", "rows"), UNITS)
@pytest.mark.parametrize("name", ["SampledPartition"])
def test_an_exponential_mechanism_that_is_too_sharp_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, neighbours: str, rows: int) -> None:
    """By its loss beside that of the program as built, as the least that is lost is up to a half below epsilon."""
    for selection in LAWS[name]:
        built = loss_of_choice(selection, neighbours, rows)
        with monkeypatch.context() as patched:
            patched.setattr(_partition_sampling, "rate", sharper(_partition_sampling.rate))
            wrong = loss_of_choice(selection, neighbours, rows)
        assert built <= float(EPSILON)
        assert wrong > built * 1.15


@pytest.mark.parametrize(("neighbours", "rows"), UNITS)
@pytest.mark.parametrize("name", ["LeastCost"])
def test_a_least_cost_with_too_little_noise_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, neighbours: str, rows: int) -> None:
    def too_little(sensitivity: int, epsilon: Fraction, size: int) -> tuple[int, int]:
        top, bottom = real(sensitivity, epsilon, size)
        return top * 4, bottom * 5

    real = _partition.noise_scale
    assert max(loss_of_choice(selection, neighbours, rows) for selection in LAWS[name]) <= EPSILON
    monkeypatch.setattr(_plane, "noise_scale", too_little)
    assert max(loss_of_choice(selection, neighbours, rows) for selection in LAWS[name]) > EPSILON


def test_draws_follow_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """1200 partitions of four cells: a law that is sharper by a quarter has a frequency that Clopper and Pearson exclude at 1e-6.

    Where the cells are about equal and a bucket costs more than they differ: of all such cells here the laws differ most.
    """
    from scipy.stats import binomtest

    from leastnoise._kernel import SampledPartition, SeededEntropy

    cells = np.array([6, 5, 5, 4])
    selection = SampledPartition(attributes=("age",), epsilon=Fraction(2), penalty=Fraction(2), prior=Fraction(0))
    # By the definition: blocks of four, of two and single cells; deviations from the mean; D = 1.5.
    pair, whole = {0: 1.0, 1: 1.0}, float(np.abs(cells - cells.mean()).sum())
    cost = lambda deviation, buckets: math.exp(-2 * (deviation + 2 * buckets) / (2 * 1.5))  # noqa: E731
    halves = [cost(pair[side], 1) + cost(0, 2) for side in (0, 1)]
    expected = cost(whole, 1) / (cost(whole, 1) + halves[0] * halves[1])

    def together(seed: int) -> int:
        entropy = SeededEntropy(seed)
        return sum(len(selection.draw(cells, 1, entropy).starts) == 1 for _ in range(1200))

    assert binomtest(together(1), 1200, expected).pvalue > 1e-6
    monkeypatch.setattr(_partition_sampling, "rate", sharper(_partition_sampling.rate))
    assert binomtest(together(2), 1200, expected).pvalue < 1e-6
