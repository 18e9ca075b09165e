"""A bound on the memory of the process while it plans, for commands that start before numpy is needed."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within_memory() -> Iterator[None]:
    """As `leastnoise._accuracy.within_memory`."""
    from leastnoise import _accuracy

    with _accuracy.within_memory():
        yield
