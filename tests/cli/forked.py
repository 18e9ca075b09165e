"""Processes that `server.py` forks, with what tests ask of `subprocess.Popen`."""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).with_name("server.py")


class Forked:
    """A program that runs in a fork of the server."""

    def __init__(self, address: str, said: Path, program: str, arguments: list[str], environment: dict[str, str]) -> None:
        self.returncode: int | None = None
        self._said = [said / "out", said / "err"]
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        self._lines = self._connection.makefile("rw")
        out, err = map(str, self._said)
        request = {"cwd": os.getcwd(), "program": program, "arguments": arguments, "environment": environment, "out": out, "err": err}  # noqa: PTH109
        self._lines.write(json.dumps(request) + "\n")
        self._lines.flush()
        self.pid = int(self._lines.readline())

    def wait(self, timeout: float) -> int:
        """How it ended: as `subprocess` has it, minus the number of the signal."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked program", timeout)
            self.returncode = int(self._lines.readline())
        return self.returncode

    def poll(self) -> int | None:
        """How it ended, if it did."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end; what it wrote."""
        self.wait(timeout)
        out, err = (path.read_text(encoding="utf-8") for path in self._said)
        return out, err

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def close(self) -> None:
        """Let its number go."""
        self._lines.close()
        self._connection.close()


@contextmanager
def server() -> Iterator[str]:
    """The address of a server that has loaded the program."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/door"
        command = [sys.executable, str(SERVER), address]
        environment = {**os.environ, "PYTHONPATH": str(SERVER.parents[2] / "src")}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield address
            process.stdin.close()
