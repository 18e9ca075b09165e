"""A thread pool ends all work with its block, and its first error reaches the caller."""

import threading

import pytest

from leastnoise._threads import BoundedThreadPool


def test_all_is_done_at_the_end_on_other_threads():
    thread_of_number: dict[int, int] = {}
    with BoundedThreadPool() as pool:
        for number in range(20):
            pool.submit(
                lambda number_of_task: thread_of_number.update(
                    {number_of_task: threading.get_ident()}
                ),
                number,
            )
    assert sorted(thread_of_number) == list(range(20))
    assert threading.get_ident() not in thread_of_number.values()


def test_error_reaches_the_caller():
    def fail():
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), BoundedThreadPool() as pool:
        pool.submit(fail)


def test_caller_error_ends_threads_and_is_raised():
    def interrupted():
        with BoundedThreadPool() as pool:
            pool.submit(started.append, 1)
            raise KeyboardInterrupt

    started: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started in ([], [1])
