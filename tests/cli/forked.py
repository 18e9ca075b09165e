"""Programs in forks of a process that has loaded the package already: each has its own number, signals, streams and end.

Starting anew costs one to two seconds of loading, which is the same every time.
"""

import multiprocessing
import os
import subprocess
import sys
from functools import cache
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import pytest

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["cli.loaded"])


@cache
def _begun() -> None:
    """Begin the process that forks, which finds the modules of the tests by its environment alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        ensure_running()


def _become(program: str, arguments: list[str], folder: str, environment: dict[str, str], out: Path, err: Path) -> None:
    """Take the place, environment and streams that were asked for, and run the program as `python -c` does."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in ((1, out), (2, err)):  # the streams are made of a pipe, which like what comes in its place has no position
        os.dup2(os.pipe()[1], number)
        stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, "stdout" if number == 1 else "stderr", stream)
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the test's own program


class Forked:
    """A program that runs in a fork, with what tests ask of `subprocess.Popen`."""

    def __init__(self, said: Path, program: str, arguments: list[str], environment: dict[str, str]) -> None:
        _begun()
        self._said = [said / "out", said / "err"]
        given = (program, arguments, str(Path.cwd()), environment, *self._said)
        self._process = CONTEXT.Process(target=_become, args=given)
        self._process.start()
        self.pid = int(self._process.pid or 0)

    @property
    def returncode(self) -> int | None:
        """How it ended, if it did: as `subprocess` has it, minus the number of the signal."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """How it ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked program", timeout)
        return self.returncode

    def poll(self) -> int | None:
        """How it ended, if it did."""
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end; what it wrote."""
        self.wait(timeout)
        out, err = (path.read_text(encoding="utf-8") if path.exists() else "" for path in self._said)
        return out, err

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def close(self) -> None:
        """Let its number go."""
        self._process.join()
