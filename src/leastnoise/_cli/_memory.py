"""A bound on the memory of the process while it plans: what does not fit is refused with a sentence, and the machine does not swap."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def within_memory() -> Iterator[None]:
    """Let an allocation beyond the memory that is available now fail at once; elsewhere than on Linux, do nothing.

    >>> with within_memory():
    ...     pass
    """
    from leastnoise._accuracy import available_memory

    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used, left = _data(), available_memory()
    if used is not None and left is not None:
        most = used + left
        if before[0] == resource.RLIM_INFINITY or most < before[0]:
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, before)


def _data() -> int | None:
    """Bytes of private data that the process has mapped."""
    with suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii") as lines:  # noqa: PTH123 - a line at a time
        for line in lines:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return None
