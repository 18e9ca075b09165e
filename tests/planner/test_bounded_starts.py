"""Starts that cannot be the best are left out unseen and nothing else is."""

import itertools

import numpy as np
import pytest

from leastnoise._planner import _covering
from leastnoise._planner._covering import covering_design
from leastnoise._planner._residual_algebra import Closure, coefficients, downward_closure, incidence, optimal_weights


@pytest.fixture
def asked() -> tuple[Closure, np.ndarray, list[tuple[int, ...]]]:
    shape = (2, 3, 5, 4, 3, 2, 6, 3, 2, 4, 3, 5)
    targets = list(itertools.combinations(range(len(shape)), 2))
    closure = downward_closure(shape, targets)
    return closure, coefficients(closure, {one: 1.0 + place % 3 for place, one in enumerate(targets)}), targets


def test_the_same_design_without_what_cannot_win(
    asked: tuple[Closure, np.ndarray, list[tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    improve = _covering.improve_weights

    def counted(*given: object) -> object:
        looked.append(1)
        return improve(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(_covering, "improve_weights", counted)
    best = covering_design(*asked)
    seen = len(looked)
    proposed = _covering._proposed
    monkeypatch.setattr(_covering, "_proposed", lambda *given: (one._replace(bound=0.0) for one in proposed(*given)))
    every = covering_design(*asked)
    assert (best.origin, best.tables, best.error) == (every.origin, every.tables, every.error)
    assert 1 <= seen < len(looked) - seen


def test_no_weights_are_below_a_bound(asked: tuple[Closure, np.ndarray, list[tuple[int, ...]]]) -> None:
    closure, coefficient, targets = asked
    whole = [sets for block in closure.blocks for sets in map(tuple, block.tolist())]
    bounds = []
    for origin, tables, bound in _covering._proposed(closure, coefficient, whole, targets):
        error = optimal_weights(incidence(closure, tables), coefficient, norm=1, iterations=60).error
        assert bound <= error, origin
        bounds.append(bound / error)
    assert max(bounds) > 0.5
    assert min(bounds) == 0
