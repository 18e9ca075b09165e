"""One process that plans in the background, which a newer wish replaces."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

_COMMAND = ("-P", "-m", "leastnoise._studio._worker")


class Background:
    """Runs one request at a time; a new one ends the one before, and nothing more is heard of that."""

    def __init__(self, told: Callable[[int, Mapping[str, Any] | None], None]) -> None:
        self._told = told
        self._process: subprocess.Popen[str] | None = None
        self._waiting: threading.Timer | None = None
        self._lock = threading.Lock()

    def start(self, number: int, request: Callable[[], Mapping[str, Any]], after: float = 0.0) -> None:
        """Begin, and end what runs."""
        self.stop()
        with self._lock:
            self._waiting = threading.Timer(after, self._run, (number, request))
            self._waiting.daemon = True
            self._waiting.start()

    def stop(self) -> None:
        """End what runs."""
        with self._lock:
            if self._waiting is not None:
                self._waiting.cancel()
            if self._process is not None:
                self._process.kill()
            self._waiting = self._process = None

    def _run(self, number: int, request: Callable[[], Mapping[str, Any]]) -> None:
        with self._lock:
            if self._waiting is not threading.current_thread():
                return  # stopped at the last moment
            process = subprocess.Popen(  # noqa: S603 - this Python and a module of this package
                [sys.executable, *_COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
            )
            self._process = process
        # Ended before it has read its request, it leaves a pipe that can neither be written nor closed without an error.
        with suppress(OSError, ValueError), process:
            process.stdin.write(json.dumps(request()) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            for line in process.stdout or ():
                self._told(number, json.loads(line))
        self._told(number, None)
