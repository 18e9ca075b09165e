"""The CPU time that planning may take: searches look at it between their steps, and end with the best that they have."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """CPU seconds of this thread up to which a search may go on, and whether it wanted to go on beyond."""

    end: float = math.inf
    now: Callable[[], float] = time.thread_time
    ended: bool = False

    def over(self) -> bool:
        """Whether the time is over."""
        self.ended = self.ended or self.now() >= self.end
        return self.ended


_CLOCK: ContextVar[Clock] = ContextVar("clock", default=Clock())  # noqa: B039 - without an end it never changes


def over() -> bool:
    """Whether a search must end."""
    return _CLOCK.get().over()


@contextmanager
def running(clock: Clock) -> Iterator[Clock]:
    """Let searches look at a clock."""
    before = _CLOCK.set(clock)
    try:
        yield clock
    finally:
        _CLOCK.reset(before)
