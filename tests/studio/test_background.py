"""The process that plans in the background: a real one, which may end before it has read what it is asked."""

import queue

import pytest

from leastnoise._studio import _planning
from leastnoise._studio._planning import Background


@pytest.mark.parametrize("length", [1, 4_000_000])  # less and more than a pipe holds
@pytest.mark.parametrize("program", ["pass", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_process_that_ends_before_it_has_read_is_told_of_and_leaves_no_error(monkeypatch, program, length) -> None:
    monkeypatch.setattr(_planning, "_COMMAND", ("-c", program))
    seen: queue.Queue[tuple[int, object]] = queue.Queue()
    worker = Background(lambda number, found: seen.put((number, found)))

    def request() -> dict[str, object]:
        assert worker._process is not None
        worker._process.wait()
        return {"text": "x" * length}

    worker.start(7, request)
    thread = worker._waiting
    assert thread is not None
    thread.join()  # an error in it fails this test
    assert seen.get(block=False) == (7, None)


@pytest.mark.parametrize(("said", "told"), [("len(sys.stdin.readline())", [4_000_013]), ("sys.stdin.readline()[:7]", [])])
def test_what_a_process_says_is_passed_on(monkeypatch, said, told) -> None:
    monkeypatch.setattr(_planning, "_COMMAND", ("-c", f"import sys; print({said})"))
    seen: queue.Queue[tuple[int, object]] = queue.Queue()
    Background(lambda number, found: seen.put((number, found))).start(7, lambda: {"text": "x" * 4_000_000})
    found = []
    while (one := seen.get()) != (7, None):
        found.append(one[1])
    assert found == told
