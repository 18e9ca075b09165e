"""Descent on the logarithm of an error by coefficients of at least 0: limited-memory BFGS, projected on the bounds.

In every step the coefficients that are at a bound and would leave it are held; the others move against the gradient as the last steps have
seen it bend, and what comes out is cut off at the bounds. It needs NumPy alone: loading an optimiser takes longer than many a descent.

Source: Nocedal and Wright, Numerical Optimization, algorithm 7.4 (the direction); Bertsekas, SIAM J. Control Optim. 1982 (the projection).
"""

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from leastnoise._check.arrays import BoolArray, FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
# How many steps are remembered, how small a gain ends the descent, and which part of what the slope promises a step must gain.
_MEMORY, _LEAST_GAIN, _PART = 10, 1e-9, 1e-4
_SHORTENINGS = 20
_Memory = deque[tuple[FloatArray, FloatArray, float]]


def descended(objective: Objective, start: FloatArray, most: float | FloatArray, steps: int) -> tuple[FloatArray, float]:
    """Where at most ``steps`` steps lead, and the error there.

    Args:
        objective: the error, above 0, and its gradient.
        start: coefficients to begin with.
        most: the largest that each may have; the least is 0.
        steps: of the descent.

    >>> point, error = descended(lambda x: (1 + float(((x - 2) ** 2).sum()), 2 * (x - 2)), np.zeros(2), np.array([1.0, 9.0]), 50)
    >>> point.round(3).tolist(), round(error, 3)
    ([1.0, 2.0], 2.0)
    """

    def logarithm(point: FloatArray) -> tuple[float, FloatArray]:
        error, gradient = objective(point)
        return math.log(error), gradient / error

    point = np.clip(start, 0, most)
    value, slope = logarithm(point)
    memory: _Memory = deque(maxlen=_MEMORY)
    for _ in range(steps):
        free = ~(((point <= 0) & (slope > 0)) | ((point >= most) & (slope < 0)))
        way = _direction(slope, free, memory)
        length = 1.0
        for _ in range(_SHORTENINGS):
            moved = np.clip(point + length * way, 0, most)
            step = moved - point
            reached, turned = logarithm(moved)
            promised = float(slope @ step)
            if reached <= value + _PART * promised:
                break
            # The parabola through both values and the slope at the start has its least there.
            length *= min(0.5, max(0.1, -promised / (2 * (reached - value - promised))))
        else:
            if not memory:
                break
            memory.clear()  # what was seen of the bend misleads here
            continue
        gained, bend = value - reached, turned - slope
        if float(step @ bend) > 1e-10 * float(bend @ bend):
            memory.append((step, bend, 1 / float(step @ bend)))
        point, value, slope = moved, reached, turned
        if gained <= _LEAST_GAIN * max(1.0, abs(value)):
            break
    return point, math.exp(value)


def _direction(slope: FloatArray, free: BoolArray, memory: _Memory) -> FloatArray:
    """Where to go: down, along the free coefficients alone."""
    down = np.where(free, -slope, 0.0)
    way, shares = down.copy(), []
    for step, bend, inverse in reversed(memory):
        shares.append(inverse * float(step @ way))
        way -= shares[-1] * bend
    if memory:
        _, bend, inverse = memory[-1]
        way /= inverse * float(bend @ bend)
    else:
        way *= min(1.0, 1 / max(float(np.linalg.norm(down)), 1e-300))
    for (step, bend, inverse), share in zip(memory, reversed(shares), strict=True):
        way += (share - inverse * float(bend @ way)) * step
    way = np.where(free, way, 0.0)
    if float(slope @ way) < 0 or not memory:
        return way
    memory.clear()
    return _direction(slope, free, memory)
