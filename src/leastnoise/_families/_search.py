"""Search tools: CPU time limits, L-BFGS descent, dual ascent.

Descents minimise the logarithm of an error.

Searches check the CPU time between their steps. When the deadline has passed, searches return the
best result so far.

The descent over coefficients of at least 0 is limited-memory BFGS, projected on the bounds. In
every step, the coefficients that are at a bound and would cross it are fixed. The other
coefficients move along the quasi-Newton direction of the last steps, and the result is clipped at
the bounds. The descent needs only NumPy, because loading an optimiser takes longer than many
descents.

Source: Nocedal and Wright, Numerical Optimization, algorithm 7.4 (the direction); Bertsekas, SIAM
    J. Control Optim. 1982 (the projection).
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray


class NotApplicable(InputError):
    """Raised, with the reason, if a strategy cannot be used for a workload."""


Objective = Callable[[FloatArray], tuple[float, FloatArray]]
# The number of remembered steps.
_REMEMBERED_STEPS = 10
_LEAST_GAIN = 1e-9  # relative gain of a step, below which a descent ends
_ARMIJO_FRACTION = 1e-4  # the part of the linear decrease that a step must reach (Armijo)
# A step is lengthened while its final slope is steeper than this part of the first slope.
_STEEP_SLOPE_RATIO = 0.7
_MOST_STEP_LENGTHS = 20  # the number of lengths to try
_Point = tuple[FloatArray, float, FloatArray]  # coefficients, value and gradient
# A step, the change of the gradient, and the inverse of their product.
_Memory = deque[tuple[FloatArray, FloatArray, float]]


@dataclass(slots=True)
class Deadline:
    """A limit on the CPU time of this thread, at which searches must end.

    The object also records whether a search has reached the deadline.
    """

    end: float = math.inf
    now: Callable[[], float] = time.thread_time
    ended: bool = False

    def has_passed(self) -> bool:
        """Return whether the deadline has passed."""
        self.ended = self.ended or self.now() >= self.end
        return self.ended


# The default is never mutated.
_CLOCK: ContextVar[Deadline] = ContextVar("clock", default=Deadline())  # noqa: B039


def deadline_passed() -> bool:
    """Return whether the deadline of the current search has passed."""
    return _CLOCK.get().has_passed()


def search_was_cut_short() -> bool:
    """Return whether the current deadline ended a search early."""
    return _CLOCK.get().ended


def check_deadline() -> None:
    """Raise NotApplicable if the current deadline has passed.

    A search calls this function until it has found a first strategy.
    """
    if deadline_passed():
        raise NotApplicable(
            "planning reached its time limit before it found a strategy of this kind; allow more "
            "seconds, or choose the strategy by name"
        )


@contextmanager
def time_limit(deadline: Deadline) -> Iterator[Deadline]:
    """Set the deadline of all searches within a ``with`` block."""
    before = _CLOCK.set(deadline)
    try:
        yield deadline
    finally:
        _CLOCK.reset(before)


def minimize_lbfgs(
    objective: Objective,
    start: FloatArray,
    upper_bound: float | FloatArray,
    max_steps: int,
    *,
    least_gain: float = 0.0,
) -> tuple[FloatArray, float]:
    """Return coefficients that minimise a positive objective, and its value.

    The coefficients stay in [0, ``upper_bound``]. The method is L-BFGS with at most ``max_steps``
    steps. The search ends early if ten steps reduce the logarithm of the objective by less than
    ``least_gain``. The last point is returned.
    """

    def logarithm(point: FloatArray) -> tuple[float, FloatArray]:
        """Return the logarithm of the objective, and its gradient."""
        error, gradient = objective(point)
        return math.log(error), gradient / error

    point = np.clip(start, 0, upper_bound)
    value, slope = logarithm(point)
    memory: _Memory = deque(maxlen=_REMEMBERED_STEPS)
    last_values: deque[float] = deque(maxlen=_REMEMBERED_STEPS)
    for _ in range(max_steps):
        if deadline_passed():
            break
        free = ~(((point <= 0) & (slope > 0)) | ((point >= upper_bound) & (slope < 0)))
        reached = _line_search(
            logarithm, (point, value, slope), _descent_direction(slope, free, memory), upper_bound
        )
        if reached is None:
            if not memory:
                break
            memory.clear()  # restart, because the stored curvature is not valid here
            continue
        step = reached[0] - point
        gained = value - reached[1]
        bend = reached[2] - slope
        if float(step @ bend) > 1e-10 * float(bend @ bend):
            memory.append((step, bend, 1 / float(step @ bend)))
        point, value, slope = reached
        if gained <= _LEAST_GAIN * max(1.0, abs(value)):
            break
        is_slow = len(last_values) == _REMEMBERED_STEPS and last_values[0] - value < least_gain
        if is_slow:
            break
        last_values.append(value)
    return point, math.exp(value)


def _line_search(
    objective: Objective, start: _Point, direction: FloatArray, upper_bound: float | FloatArray
) -> _Point | None:
    """Return a point of lower value along a direction, or None.

    The line along the direction is clipped at the bounds.
    """
    point, value, slope = start
    length = 1.0
    best = None
    for _ in range(_MOST_STEP_LENGTHS):
        moved = np.clip(point + length * direction, 0, upper_bound)
        reached, turned = objective(moved)
        step = moved - point
        promised = float(slope @ step)
        low = reached <= value + _ARMIJO_FRACTION * promised
        if not low and best is not None:
            break
        if low:
            if best is not None and reached >= best[1]:
                break
            best = moved, reached, turned
            if length < 1 or not float(turned @ step) < _STEEP_SLOPE_RATIO * promised:
                break
            length *= 4
        else:  # the minimum of the parabola through both values and the slope at the start
            length *= min(0.5, max(0.1, -promised / (2 * (reached - value - promised))))
    return best


def _descent_direction(gradient: FloatArray, is_free: BoolArray, memory: _Memory) -> FloatArray:
    """Return the L-BFGS direction: 0 for all coefficients that are not free."""
    down = np.where(is_free, -gradient, 0.0)
    direction = down.copy()
    shares = []
    for step, bend, inverse in reversed(memory):
        shares.append(inverse * float(step @ direction))
        direction -= shares[-1] * bend
    if memory:
        _, bend, inverse = memory[-1]
        direction /= inverse * float(bend @ bend)
    else:
        direction *= min(1.0, 1 / max(float(np.linalg.norm(down)), 1e-300))
    for (step, bend, inverse), share in zip(memory, reversed(shares), strict=True):
        direction += (share - inverse * float(bend @ direction)) * step
    direction = np.where(is_free, direction, 0.0)
    if float(gradient @ direction) < 0 or not memory:
        return direction
    memory.clear()
    return _descent_direction(gradient, is_free, memory)


StepDetails = TypeVar("StepDetails")
StepFunction = Callable[[FloatArray], tuple[FloatArray, float, StepDetails]]


def dual_ascent(
    step: StepFunction[StepDetails],
    weights: FloatArray,
    gap: float,
    max_steps: int,
    excess: Callable[[FloatArray, FloatArray, StepDetails], float] | None = None,
) -> tuple[float, FloatArray, float, StepDetails]:
    """Return cost, weights, dual value and details of a dual ascent's best step.

    Args:
        step: maps weights of sum 1 to three results: the cost of each column (1 at the optimum if
            its weight is above 0), the dual value, and a result.
        weights: the start of the ascent; the weights sum to 1.
        gap: the relative gap at which the ascent stops.
        max_steps: the maximum number of steps.
        excess: maps costs, weights and result to the relative excess of the result over the
            optimum; by default it is the largest cost minus 1.

    Returns:
        For the step of least excess: 1 plus the excess, the weights, the dual value and the result.
    """
    best: tuple[float, FloatArray, float, StepDetails] | None = None
    # The second power needs half the steps of the first power; the third power oscillates.
    previous = -math.inf
    power = 2.0
    for _ in range(max_steps):
        costs, value, details = step(weights)
        largest = float(costs.max())
        if excess is not None:
            largest = 1 + excess(costs, weights, details)
        if best is None or largest < best[0]:
            best = largest, weights, value, details
        if best[0] - 1 <= gap or deadline_passed():
            break
        # With the first power, the dual value can only rise. If a longer step lowers it, return to
        # the first power.
        if value < previous * (1 - 1e-9):
            power = 1.0
        previous = value
        weights = np.maximum(weights * costs**power, 1e-13 / len(weights))
        weights = weights / weights.sum()
    if best is None:
        raise InternalError("The dual iteration was given no steps.")
    return best
