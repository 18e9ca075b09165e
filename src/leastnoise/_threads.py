"""Thread limits for linear algebra, and threads for writing files.

By default, linear algebra uses one thread.

Planning consists of many small matrix products. Threads that wait for each other would take several
times as much CPU time, and on a busy machine also more elapsed time.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from concurrent.futures import Future

    from threadpoolctl import ThreadpoolController


THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set the number of threads; each is obeyed."""
_MOST_WORKERS = 4  # threads that write files, so that few tables wait in memory
# Has a thread pool, and takes longer to load than many plans take to make.
_LATE_LIBRARY = "scipy.linalg"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread while a block or function runs.

    Public functions with long computations use this limit, also as a decorator. The limit applies
    to the whole process, as the threads of the libraries do. A library that is loaded in this block
    starts with one thread; after the block, it has as many threads as the other libraries.
    """
    if any(name in os.environ for name in THREAD_VARIABLES):
        yield
        return
    loaded = _LATE_LIBRARY in sys.modules
    libraries = _libraries(loaded)
    usual = max((library.num_threads or 1 for library in libraries.lib_controllers), default=1)
    with libraries.limit(limits=1):
        if not loaded:
            os.environ[THREAD_VARIABLES[1]] = "1"
        try:
            yield
        finally:
            if not loaded:
                os.environ.pop(THREAD_VARIABLES[1], None)
                earlier_paths = {library.filepath for library in libraries.lib_controllers}
                for library in (
                    _libraries(True).lib_controllers if _LATE_LIBRARY in sys.modules else ()
                ):
                    if library.filepath not in earlier_paths:
                        library.set_num_threads(usual)


# `is_scipy_loaded` is only a key of the cache: it makes a new controller once SciPy is loaded.
@cache
def _libraries(is_scipy_loaded: bool) -> "ThreadpoolController":  # noqa: ARG001, FBT001
    """Return a controller of the thread pools of NumPy and, if loaded, SciPy.

    Searching for these pools takes milliseconds.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class BoundedThreadPool:
    """A pool of up to four threads that limits how many calls may wait.

    The pool has as many threads as there are cores. At the end of the block, all functions have
    ended. The first error is raised by `submit` or at the end of the block. Functions that have not
    started by then are not called.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and few commands write

        if hasattr(os, "sched_getaffinity"):
            cores = len(os.sched_getaffinity(0))
        else:
            cores = os.cpu_count() or 1
        self._workers = min(_MOST_WORKERS, cores)
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="leastnoise")
        self._pending: deque[Future[Any]] = deque()

    def submit(self, function: Callable[..., object], *arguments: Any) -> None:
        """Queue a function call; block while too many calls are waiting.

        Blocking limits the memory that waiting calls take.
        """
        self._pending.append(self._pool.submit(function, *arguments))
        while len(self._pending) > self._workers:
            self._pending.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while self._pending and kind is None:
                self._pending.popleft().result()
        finally:
            self._pool.shutdown(cancel_futures=True)
