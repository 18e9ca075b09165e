"""The private choice made wrong by a factor of 1.25 on purpose: the law that is drawn from is seen to be too sharp.

Nothing is left to chance: the scale is the program's own, seen by a spy, for all neighbours of some tables.
"""

from fractions import Fraction

import pytest

from kernel.test_selection_privacy import COSTS, EPSILON, loss_of_cost
from leastnoise._kernel import _plane


def test_a_least_cost_with_too_little_noise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_little(sensitivity: int, epsilon: Fraction, size: int) -> tuple[int, int]:
        top, bottom = real(sensitivity, epsilon, size)
        return top * 4, bottom * 5

    real = _plane.noise_scale
    assert max(loss_of_cost(selection, "add_remove", 1) for selection in COSTS.values()) <= EPSILON
    monkeypatch.setattr(_plane, "noise_scale", too_little)
    assert max(loss_of_cost(selection, "add_remove", 1) for selection in COSTS.values()) > EPSILON
