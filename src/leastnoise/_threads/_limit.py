"""One thread of linear algebra while the package computes.

Planning is many small matrix products: threads that wait for each other take several times the CPU, and on a busy machine the time too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> "ThreadpoolController":
    # NumPy and SciPy bring a library each, and one that is loaded later would not be limited.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
