"""Python programs in processes that are forked from one with the package imported.

Importing it takes longer than a small release. A forked process is as real as one that is started:
it has a working directory, an environment, files and signals of its own, and ends by itself.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

# What a release loads; none of it starts a thread, which a fork would lose.
LOADED = ("leastnoise._cli._release", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "duckdb")
# A program runs at the top of the process, so that its end and its faults are the interpreter's.
SERVER = 'from forked import next_program\nexec(next_program(), {"__name__": "__main__"})'
BETWEEN_POLLS = 0.01  # seconds


def next_program():
    """Fork a process for each request; return its program within it, and never elsewhere."""
    for module in LOADED:
        import_module(module)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            ended, status = os.waitpid(request["poll"], os.WNOHANG)
            reply = os.waitstatus_to_exitcode(status) if ended else None
        else:
            reply = os.fork()
            if not reply:
                return program_of(request)
        os.write(1, f"{json.dumps(reply)}\n".encode())
    raise SystemExit


def program_of(request):
    """Give this process the files, folder, environment and arguments of a request."""
    for descriptor, (path, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            (request["output"], os.O_WRONLY | os.O_APPEND),
            (request["errors"], os.O_WRONLY | os.O_APPEND),
        ]
    ):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["arguments"]]
    return compile(request["program"], "<string>", "exec")


class Forked:
    """A process of a `ForkServer`, with the methods of `subprocess.Popen`."""

    def __init__(self, server, pid, output, errors):
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._streams = (output, errors)

    def poll(self):
        """Return the exit code, negative of a signal, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.reply({"poll": self.pid})
        return self.returncode

    def wait(self, timeout):
        """Return the exit code once the process has ended."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(BETWEEN_POLLS)
        return code

    def communicate(self, timeout):
        """Return what it wrote once it has ended."""
        self.wait(timeout)
        output, errors = (stream.read_text(encoding="utf-8") for stream in self._streams)
        return output, errors

    def send_signal(self, number):
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        """End it at once, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that the others are forked from."""

    def __init__(self):
        # A library that has threads would not work in a forked process.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        folders = [str(Path(__file__).parent), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._streams = tempfile.TemporaryDirectory()
        self._number = 0

    def start(self, program, arguments, environment):
        """Run a program in the current folder."""
        self._number += 1
        output, errors = (
            Path(self._streams.name, f"{self._number}.{name}") for name in ("out", "err")
        )
        for stream in (output, errors):
            stream.touch()
        request = {
            "program": program,
            "arguments": arguments,
            "environment": environment,
            "folder": str(Path.cwd()),
            "output": str(output),
            "errors": str(errors),
        }
        return Forked(self, self.reply(request), output, errors)

    def reply(self, request):
        """Return the answer of the server to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        """End the server."""
        self._process.communicate()
        self._streams.cleanup()
