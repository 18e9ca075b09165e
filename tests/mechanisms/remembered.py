"""Repeated releases of one table that share computations and draw noise in advance."""

import numpy as np

from behind_the_wall import SAMPLERS, discrete_laplace
from leastnoise._mechanisms import Search, _dawa, mechanism_for
from leastnoise._trusted.accounting import Noise

NUMBERS = 4096  # drawn together, of one scale


def without_a_search(monkeypatch):
    """Make data-dependent plans measure the cells, without the slow search for the best."""

    def measure_cells(workload, privacy, _):
        return mechanism_for("identity", workload).plan(workload, privacy, Search("identity"))

    monkeypatch.setattr(_dawa, "reference_plan", measure_cells)


def draw_ahead(monkeypatch, *modules):
    """Draw the discrete Laplace noise of many calls at once.

    The kernel's sampler draws it at the requested scales and from the same source; no number is
    returned twice.
    """
    waiting: dict[object, list[np.ndarray]] = {}

    def ahead(numerator, denominator, count, entropy):
        scale = numerator, denominator
        key = entropy, count, *(part if isinstance(part, int) else part.tobytes() for part in scale)
        if not waiting.get(key):
            calls = max(1, NUMBERS // max(count, 16))
            scales = [part if isinstance(part, int) else np.tile(part, calls) for part in scale]
            waiting[key] = [
                *discrete_laplace(*scales, calls * count, entropy).reshape(calls, count)
            ]
        return waiting[key].pop()

    monkeypatch.setitem(SAMPLERS, Noise.DISCRETE_LAPLACE, ahead)
    for module in modules:
        monkeypatch.setattr(module, "discrete_laplace", ahead)
