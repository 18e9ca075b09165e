"""Draws of one table, again and again: what each of them computes from the same counts is computed once."""

from collections.abc import Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leastnoise._kernel import _partition_sampling


def remember_weights(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Weights of the same costs at the same rate are those of before, here and in modules that have the function too."""
    kept: dict[object, Any] = {}
    weigh = _partition_sampling.weights_of

    def weights_of(costs: Sequence[np.ndarray], sensitivity: int, epsilon: Fraction, *terms: Any) -> Any:
        key = *(cost.tobytes() for cost in costs), sensitivity, epsilon, _partition_sampling.rate(epsilon), *terms
        if key not in kept:
            kept[key] = weigh(costs, sensitivity, epsilon, *terms)
        return kept[key]

    for module in (_partition_sampling, *modules):
        monkeypatch.setattr(module, "weights_of", weights_of)
