"""Thread limits for linear algebra, and threads for writing files.

One thread of linear algebra, unless the user says otherwise.

Planning is many small matrix products: threads that wait for each other take several times the CPU,
and on a busy machine the time too.
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


SAID_BY = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables by which a user says how many threads there are; any of them is obeyed."""
_MOST_WORKERS = 4
_LATER = (
    "scipy.linalg"  # brings a library of its own, and takes longer to load than many a plan to make
)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread of linear algebra, and leave as many as there were.

    It is for the public functions that compute, also as a decorator. The limit is the process's, as
    the libraries' threads are. A library that is loaded meanwhile begins with one thread, and then
    has as many as the others.
    """
    if any(name in os.environ for name in SAID_BY):
        yield
        return
    loaded = _LATER in sys.modules
    libraries = _libraries(loaded)
    usual = max((library.num_threads or 1 for library in libraries.lib_controllers), default=1)
    with libraries.limit(limits=1):
        if not loaded:
            os.environ[SAID_BY[1]] = "1"
        try:
            yield
        finally:
            if not loaded:
                os.environ.pop(SAID_BY[1], None)
                known = {library.filepath for library in libraries.lib_controllers}
                for library in _libraries(True).lib_controllers if _LATER in sys.modules else ():
                    if library.filepath not in known:
                        library.set_num_threads(usual)


@cache
def _libraries(loaded: bool) -> "ThreadpoolController":  # noqa: ARG001, FBT001 - what the cache tells apart
    """Return NumPy's thread pool library, and SciPy's if it is loaded.

    Looking for them takes milliseconds.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class BoundedThreadPool:
    """A pool of at most four threads that bounds the pending work.

    As many threads as there are cores.

    At the end of the block all are done. The first error is raised to the caller, by `do` or at the
    end; what was not begun then is left out.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and few commands write

        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        self._workers = min(_MOST_WORKERS, cores)
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="leastnoise")
        self._begun: deque[Future[Any]] = deque()

    def do(self, function: Callable[..., object], *arguments: Any) -> None:
        """Start a function, or wait until an earlier one is done.

        This bounds how many of them hold memory.
        """
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
