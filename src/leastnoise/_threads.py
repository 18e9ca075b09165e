"""One thread of linear algebra while the package computes, unless its user says otherwise; and a few threads for a few long steps.

Planning is many small matrix products: threads that wait for each other take several times the CPU, and on a busy machine the time too.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


Value = TypeVar("Value")
Result = TypeVar("Result")
SAID_BY = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables by which a user says how many threads there are; any of them is obeyed."""
_LATER = "scipy.linalg"  # brings a library of its own, and takes longer to load than many a plan to make


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread of linear algebra, and leave as many as there were.

    It is for the public functions that compute, also as a decorator. The limit is the process's, as the libraries' threads are. A library
    that is loaded meanwhile begins with one thread, and then has as many as the others.
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
    """NumPy's library, and SciPy's if it is loaded; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def on_threads(function: Callable[[Value], Result], values: Sequence[Value]) -> list[Result]:
    """Return what a function makes of each of a few values, each on a thread of its own."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and few commands need it

    with ThreadPoolExecutor(len(values)) as workers:
        return list(workers.map(function, values))
