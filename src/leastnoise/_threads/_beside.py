"""Work beside the caller's own: threads for what leaves Python alone for long, such as compressing and writing."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

_MOST = 4


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Beside:
    """Functions that are carried out on other threads, as many at once as there are cores, and at most four.

    At the end of the block all are done. The first error is raised to the caller, by `do` or at the end; what was not begun then is left
    out.
    """

    def __init__(self) -> None:
        self._workers = min(_MOST, cores())
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="leastnoise")
        self._begun: deque[Future[Any]] = deque()

    def do(self, function: Callable[..., object], *arguments: Any) -> None:
        """Begin with a function, or wait until an earlier one is done: so many and no more hold memory."""
        self._begun.append(self._pool.submit(function, *arguments))
        while len(self._begun) > self._workers:
            self._begun.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while self._begun and kind is None:
                self._begun.popleft().result()
        finally:
            self._pool.shutdown(cancel_futures=True)
