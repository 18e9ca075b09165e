"""Progress lines for work that takes over a second.

Commands print a progress line, notebooks show it below the cell, and other programs show none.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar, final

from leastnoise._environment import PROGRESS, is_on
from leastnoise._trusted.check.progress import ProgressLine, RowProgress, row_progress

_SECONDS_BEFORE_LINE = 1.0  # seconds until the line appears
_LEAST_SHARE = 0.02  # the share of the work after which the time left is estimated
_MOST_SECONDS = 120  # a longer time left is shown in minutes
# Seconds between two lines.
_SECONDS_ON_TERMINAL = 0.2
_SECONDS_IN_NOTEBOOK = 0.5
_SECONDS_ELSEWHERE = 10.0
_NameCallback = Callable[[str], None] | None
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Display(NamedTuple):
    """A function that shows a progress line, and the seconds between updates."""

    every: float
    show: Callable[[str], None]


@final
class Progress(ProgressLine):
    """A context manager that shows a progress line for work of over a second.

    On a terminal the line is redrawn and removed at the end. Elsewhere the line is printed when it
    appears and every ten seconds. The number of rows may be private, so the line shows only the
    share of the rows that has been read. With ``LEASTNOISE_PROGRESS=off`` in the environment no
    line appears.

    Args:
        text: the text of the line.
        display: where the line is shown; by default on the standard error stream.
        about: the estimated seconds of the whole work; 0 if there is no estimate.
    """

    def __init__(self, text: str, display: Display | None = None, about: float = 0.0) -> None:
        self._text = text
        self._display = display
        self._about = about
        self._share = 0.0
        self._work_start = 0.0
        self._steps = 0
        self._is_done = threading.Event()
        self._is_visible = is_on(PROGRESS)
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._start = time.perf_counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """The seconds since the work began."""
        return time.perf_counter() - self._start

    def say(self, text: str, done_share: float = 0.0) -> None:
        """Change the text of the line and, if it is known, the share of work done.

        A share of 0 means that the share is unknown.
        """
        self._text = text
        self._share = done_share

    def trying(self, name: str) -> None:
        """Show the name of the strategy that is tried."""
        self.say(f"planning, trying {name}")

    def step(self, text: str, steps: int) -> None:
        """Start the next of several steps, and show its text.

        The time left is estimated from the steps that are finished.

        Args:
            text: the new text of the line.
            steps: the number of steps.
        """
        self.say(text, self._steps / steps)
        self._steps += 1

    def begin(self, text: str, estimated_seconds: float = 0.0) -> None:
        """Change the text, and restart the clock for the time left.

        Args:
            text: the new text of the line.
            estimated_seconds: the estimated seconds of this work; 0 if there is no estimate.
        """
        self.say(text)
        self._about = estimated_seconds
        self._work_start = self.seconds

    def _done_share(self, seconds: float) -> float:
        """Return the share of the work that is done after some seconds.

        The share is computed from the finished steps or, without steps, from the estimated time.
        """
        if self._share or not self._about:
            return self._share
        return min((seconds - self._work_start) / self._about, 1.0)

    def _show(self) -> None:
        """Update the line until the work is done; runs in a thread."""
        if not self._is_visible or self._is_done.wait(_SECONDS_BEFORE_LINE):
            return
        every, show = self._display or _error_stream()
        while True:
            seconds = self.seconds
            time_text = describe_time(seconds, self._done_share(seconds), self._work_start)
            show(f"{self._text} ({time_text})")
            if self._is_done.wait(every):
                break
        show("")


def _error_stream() -> Display:
    """Return a display that writes lines to the standard error stream.

    On a terminal, each line replaces the one before.
    """
    is_terminal = sys.stderr.isatty()
    width = 0

    def show(line: str) -> None:
        """Write a line; on a terminal, overwrite the previous line."""
        nonlocal width
        if is_terminal:
            # Blanks cover the end of a longer line before.
            sys.stderr.write("\r" + line.ljust(width) + ("" if line else "\r"))
            width = len(line)
        elif line:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    return Display(_SECONDS_ON_TERMINAL if is_terminal else _SECONDS_ELSEWHERE, show)


def describe_time(seconds: float, done_share: float, start: float = 0.0) -> str:
    """Describe how long work has taken, and about how long it will still take.

    Args:
        seconds: the seconds since the beginning.
        done_share: the share of the current work that is done; 0 if it is unknown.
        start: when the current work began, in seconds since the beginning.
    """
    if not _LEAST_SHARE <= done_share < 1:
        return f"{seconds:.0f} s"
    remaining = (seconds - start) * (1 - done_share) / done_share
    if remaining < _MOST_SECONDS:
        return f"{seconds:.0f} s, about {remaining:.0f} s more"
    return f"{seconds:.0f} s, about {remaining / 60:.0f} min more"


@contextmanager
def show_planning(
    callback: _NameCallback, estimate_seconds: Callable[[], float] | None = None
) -> Iterator[_NameCallback]:
    """Show a progress line in a ``with`` block while a notebook plans.

    Args:
        callback: the caller's callback for the strategies that are planned; if it is not None, no
            line is shown.
        estimate_seconds: a function that returns the estimated seconds of planning.

    Yields:
        The callback that receives the name of each strategy.
    """
    if callback is not None or not _is_notebook():
        yield callback
        return
    with Progress(
        "planning", _cell_display(), 0.0 if estimate_seconds is None else estimate_seconds()
    ) as line:
        yield line.trying


def show_rows(
    next_step: str, estimate: Callable[..., tuple[int, float]] | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that shows a progress line while rows are read.

    The function has an argument ``progress``. The decorated function shows a line if the argument
    is True, and in a notebook also if the argument is None.

    Args:
        next_step: the text of the line after the last row.
        estimate: a function of the arguments, which returns the number of blocks of rows and the
            seconds that the next step will take.
    """

    def decorate(read: Callable[_P, _R]) -> Callable[_P, _R]:
        """Wrap a function that reads rows."""

        @wraps(read)
        def read_with_line(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            """Read rows, and show the progress if this is requested."""
            progress = kwargs.get("progress")
            is_notebook = _is_notebook()
            if progress is not True and (progress is not None or not is_notebook):
                kwargs["progress"] = row_progress(progress)
                return read(*args, **kwargs)
            if estimate is None:
                blocks = 0
                about = 0.0
            else:
                blocks, about = estimate(*args, **kwargs)
            if is_notebook:
                display = _cell_display()
            else:
                display = None
            with Progress(f"reading, {next_step}", display) as line:
                kwargs["progress"] = RowProgress(
                    line, "reading", next_step, blocks=blocks, about=about
                )
                return read(*args, **kwargs)

        return read_with_line

    return decorate


def _is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def _cell_display() -> Display:
    """Return a display that writes lines below a notebook cell."""
    from IPython.display import display

    handles: list[Any] = []

    def show(line: str) -> None:
        """Replace the line below the cell."""
        text = {"text/plain": line}
        if handles:
            handles[0].update(text, raw=True)
        else:
            handles.append(display(text, raw=True, display_id=True))

    return Display(_SECONDS_IN_NOTEBOOK, show)
