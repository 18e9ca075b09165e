"""Exact privacy loss of mechanisms that use data only in ``laplace`` and ``choose`` steps.

A run is recorded: every randomised step, with what went in and what came out. It is replayed on a
neighbour: every step gives what it gave before, whatever goes in now. Then (1) the estimate must be
    the same, or something of the data went round the steps; and (2) the losses of
the steps add up to at least the loss of the run, and must not exceed epsilon. (2) is exact for
choices and the worst case over outcomes for noise. No statistics, so that no alarm is false.
"""

import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from leastnoise._trusted.kernel import SeededEntropy


class OtherStep(Exception):
    """The replay took another step than the run, so the data decided which."""


def log_chance(scores, rate):
    """Return the logarithms of the probabilities of the exponential mechanism."""
    size = (scores - scores.max()) * float(rate)
    return size - np.log(np.exp(size).sum())


def lost_by_laplace(before, now, _, epsilon, entropy, sensitivity=1):
    return Fraction(int(np.abs(before - now).sum())) * epsilon / sensitivity


def lost_by_weighted_laplace(before, now, _, weights, unit, epsilon, entropy):
    return Fraction(int((np.abs(before - now) * weights).sum()), unit) * epsilon


def lost_by_choice(before, now, chosen, rate, entropy):
    return abs(log_chance(before, rate)[chosen] - log_chance(now, rate)[chosen])


LOST = {
    "laplace": lost_by_laplace,
    "weighted_laplace": lost_by_weighted_laplace,
    "choose": lost_by_choice,
}


class Tape:
    """Records a run, then replays it on other data; ``place`` is None before the replay."""

    def __init__(self, patches):
        self.steps = []
        self.place = None
        self.loss = 0.0
        real = {name: getattr(sys.modules["baselines._noise"], name) for name in LOST}
        for module in [
            module for name, module in sys.modules.items() if name.startswith("baselines.")
        ]:
            for name, function in real.items():
                if getattr(module, name, None) is function:
                    patches.setattr(module, name, partial(self.step, name, function))

    def step(self, name, function, inside, *arguments, **named):
        if self.place is None:
            outcome = function(inside, *arguments, **named)
            self.steps.append((np.array(inside), outcome))
            return outcome
        before, outcome = (
            self.steps[self.place] if self.place < len(self.steps) else (np.zeros(0), None)
        )
        self.place += 1
        if before.shape != np.shape(inside):
            raise OtherStep
        self.loss += float(LOST[name](before, np.array(inside), outcome, *arguments, **named))
        return outcome.copy() if isinstance(outcome, np.ndarray) else outcome


def neighbours(shape, seed):
    """Return counts of several kinds, each with neighbours of one more record."""
    generator = np.random.default_rng(seed)
    kinds = [
        np.zeros(shape),
        generator.poisson(3.0, shape),
        generator.poisson(2.0, shape) ** 6,
        np.zeros(shape),
    ]
    kinds[3].flat[0] = 10**6
    kinds[3].flat[-1] = 10**3
    for kind in kinds:
        x = kind.astype(np.int64)
        for cell in np.unique([0, 1, x.size // 3, x.size - 1]):
            y = x.copy()
            y.flat[cell] += 1
            yield x, y


@pytest.fixture
def audit(monkeypatch):
    """Return ``audit(run, shape)``: the largest loss, and whether an estimate changed."""

    def audit_(run, shape, seeds=(1, 2), pairs=neighbours):
        largest = 0.0
        leaks = False
        for seed in seeds:
            for x, y in pairs(shape, seed):
                for data, neighbour in ((x, y), (y, x)):
                    with monkeypatch.context() as patches:
                        tape = Tape(patches)
                        estimate = run(data, SeededEntropy(seed))
                        tape.place = 0
                        try:
                            replayed = run(neighbour, SeededEntropy(seed))
                        except OtherStep:
                            replayed = None
                    leaks |= not (
                        tape.place == len(tape.steps) and np.array_equal(estimate, replayed)
                    )
                    largest = max(largest, tape.loss)
        return largest, leaks

    return audit_
