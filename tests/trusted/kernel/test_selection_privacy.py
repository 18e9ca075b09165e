"""The privacy loss of a series' private choice, by brute force over neighbouring tables.

It is asked for through a series, so that the distance of neighbours is that of the plan's privacy;
its noise is exact (PROOFS), so what it loses follows from the scale.
"""

from fractions import Fraction

import numpy as np
import pytest

from leastnoise._trusted.kernel import GRID
from trusted.kernel.choice_losses import COSTS, EPSILON, choose, loss_of_cost, replace_noise

PRIVACIES = [(neighbours, rows) for neighbours in ("add_remove", "replace") for rows in (1, 3)]

every_privacy = pytest.mark.parametrize(("neighbours", "rows"), PRIVACIES)


@every_privacy
@pytest.mark.parametrize("way", COSTS)
def test_least_cost_choice_loses_at_most_epsilon(way, neighbours, rows):
    """Some pair loses nearly all of epsilon."""
    assert EPSILON * Fraction(2, 3) < loss_of_cost(COSTS[way], neighbours, rows) <= EPSILON


@pytest.mark.parametrize("way", COSTS)
def test_noise_of_a_least_cost_is_added_to_it(monkeypatch, way):
    noisy_costs = []
    for noise in (0, 12345):
        replace_noise(monkeypatch, lambda *_, noise=noise: np.array([noise]))
        noisy_costs.append(choose(COSTS[way], (3, 0, 5, 5), "add_remove", 1))
    assert noisy_costs[1] == noisy_costs[0] + Fraction(12345, GRID)
