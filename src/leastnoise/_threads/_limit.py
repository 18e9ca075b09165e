"""One thread of linear algebra while the package computes.

Planning is many small matrix products: threads that wait for each other take several times the CPU, and on a busy machine the time too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

SAID_BY = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables by which a user says how many threads there are; any of them is obeyed."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread of linear algebra, and leave as many as there were.

    It is for the public functions that compute, also as a decorator. The limit is the process's, as the libraries' threads are.

    >>> with one_thread():
    ...     np.eye(2) @ np.ones(2)
    array([1., 1.])
    """
    if any(name in os.environ for name in SAID_BY):
        yield
        return
    libraries = _libraries()
    known = {library.filepath: library.num_threads for library in libraries.lib_controllers}
    # one that is loaded meanwhile begins with one thread, and then has as many as the others
    os.environ[SAID_BY[1]] = "1"
    try:
        with libraries.limit(limits=1):
            yield
    finally:
        os.environ.pop(SAID_BY[1], None)
        for library in _libraries().lib_controllers:
            if library.filepath not in known and known:
                library.set_num_threads(max(known.values()))


def _libraries() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
