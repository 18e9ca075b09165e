"""Which of several states every block of a tree of halves is in, where a block's state depends on its parent's.

The transitions are learned by expectation-maximisation from the trial's own blocks (empirical Bayes).

Source: Crouse, Nowak, Baraniuk (1998), hidden Markov trees; docs/decisions/0010-private-partition.md.
"""

from collections.abc import Sequence

import numpy as np

from leastnoise._check.arrays import BoolArray, FloatArray

ROUNDS = 10
STATES = 18
_PSEUDO = 20  # observations a row that the prior transitions count for


def ladder(spread: Sequence[FloatArray], known: Sequence[BoolArray], states: int) -> FloatArray:
    """Variances of the states: 0, and rungs a factor 2 of standard deviation apart from a quarter of the least noise."""
    least = min((float(sd[seen].min()) for sd, seen in zip(spread, known, strict=True) if seen.any()), default=1.0)
    return np.concatenate([[0.0], (least / 4 * 2.0 ** np.arange(states)) ** 2])


def log_likelihood(size: FloatArray, own: FloatArray, tail: float | None) -> FloatArray:
    """Of a difference of this size, by the variance that it has in every state, noise included."""
    log = -(size**2) / (2 * own)
    if tail is not None:
        log = np.where(size < own / tail, log, own / (2 * tail**2) - size / tail)
    return np.asarray(log - np.log(own) / 2)


def relative(log: FloatArray) -> FloatArray:
    """Likelihoods relative to that of the likeliest state."""
    return np.asarray(np.exp(log - log.max(axis=-1, keepdims=True)))


def transitions(states: int) -> FloatArray:
    """A prior that favours staying near, and an empty block's halves being empty; shape (states + 1, states + 1)."""
    rung = np.arange(states + 1)
    prior = 0.6 ** np.abs(rung[:, None] - rung)
    prior[0], prior[:, 0] = 0.15 * 0.8 ** (rung - 1.0), 0.15
    prior[0, 0] = 1.0
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def posterior_states(likelihood: Sequence[FloatArray], known: Sequence[BoolArray], prior: FloatArray, rounds: int) -> list[FloatArray]:
    """Probabilities of every block's states given all blocks."""
    trials, count = len(likelihood[0]), len(prior)
    matrix = np.repeat(prior[None], trials, axis=0)
    posterior: list[FloatArray] = []
    for _ in range(rounds):
        upward: list[FloatArray] = []
        message: list[FloatArray] = []
        for place, one in enumerate(likelihood):
            inside = one if place == 0 else one * message[-1].reshape(trials, -1, 2, count).prod(axis=2)
            upward.append(inside / inside.max(axis=-1, keepdims=True))
            message.append(upward[-1] @ matrix.transpose(0, 2, 1))
        posterior, counts = [upward[-1] / upward[-1].sum(axis=-1, keepdims=True)], np.zeros_like(matrix)
        for place in range(len(likelihood) - 2, -1, -1):
            parent = np.repeat(posterior[0], 2, axis=1) / np.maximum(message[place], 1e-200)
            posterior.insert(0, (parent @ matrix) * upward[place])
            parent[:, ~known[place]] = 0.0  # padding teaches nothing
            counts += matrix * (parent.transpose(0, 2, 1) @ upward[place])
        matrix = counts + _PSEUDO * prior
        matrix /= matrix.sum(axis=-1, keepdims=True)
    return posterior
