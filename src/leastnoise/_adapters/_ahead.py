"""Chunks worked on ahead of whoever needs them, on all cores, and handed on in their order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def ahead(function: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """What a function makes of each item, in order; it runs in threads, for a few items more than are waited for.

    Args:
        function: of one item, which keeps nothing from one to the next.
        items: of any number; taken one by one, by the caller's thread.

    Raises:
        Exception: whatever the function or the items raise.

    >>> list(ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(cores, thread_name_prefix="leastnoise-read") as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
