"""A thread pool ends all work with its block, and its first error reaches the caller."""

import threading

import pytest

from leastnoise._threads import BoundedThreadPool


def test_all_is_done_at_the_end_on_other_threads() -> None:
    seen: dict[int, int] = {}
    with BoundedThreadPool() as beside:
        for number in range(20):
            beside.submit(lambda own: seen.update({own: threading.get_ident()}), number)
    assert sorted(seen) == list(range(20))
    assert threading.get_ident() not in seen.values()


def test_error_reaches_the_caller() -> None:
    def fail() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), BoundedThreadPool() as beside:
        beside.submit(fail)


def test_caller_error_ends_threads_and_is_raised() -> None:
    def interrupted() -> None:
        with BoundedThreadPool() as beside:
            beside.submit(begun.append, 1)
            raise KeyboardInterrupt

    begun: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert begun in ([], [1])
