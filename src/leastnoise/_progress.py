"""Progress lines for whatever takes over a second.

Commands show a line, notebooks a line below the cell, and programs nothing.
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

_PATIENCE = 1.0  # seconds until the line appears
_ON_TERMINAL, _ELSEWHERE, _IN_NOTEBOOK = 0.2, 10.0, 0.5  # seconds between two lines
_Names = Callable[[str], None] | None
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Display(NamedTuple):
    """How a line of progress is shown, and the seconds between two lines."""

    every: float
    show: Callable[[str], None]


@final
class Progress(ProgressLine):
    """A progress line that appears after a second, as a context manager.

    On a terminal the line is redrawn and removed at the end. Elsewhere it is printed when it
    appears and every ten seconds. The number of rows may be private, so it is never shown, only the
    share that has been read. With ``LEASTNOISE_PROGRESS=off`` in the environment no line appears.

    Args:
        doing: the text of the line.
        display: where it is shown; else on the standard error stream.
        about: how many seconds everything will probably take; 0 if that is not known.
    """

    def __init__(self, doing: str, display: Display | None = None, about: float = 0.0) -> None:
        self._text = doing
        self._display = display
        self._about = about
        self._share = 0.0
        self._begun = 0.0
        self._steps = 0
        self._done = threading.Event()
        self._visible = is_on(PROGRESS)
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._start = time.perf_counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.perf_counter() - self._start

    def say(self, text: str, share: float = 0.0) -> None:
        """Change the text, and the share that is done if that is known."""
        self._text, self._share = text, share

    def trying(self, name: str) -> None:
        """Show which strategy is tried."""
        self.say(f"planning, trying {name}")

    def step(self, text: str, among: int) -> None:
        """Begin the next of a known number of steps.

        The time left is estimated from the steps that are done.
        """
        self.say(text, self._steps / among)
        self._steps += 1

    def begin(self, text: str, about: float = 0.0) -> None:
        """Change the text, and count its time anew; it will take about so many seconds."""
        self.say(text)
        self._about, self._begun = about, self.seconds

    def _done_share(self, seconds: float) -> float:
        """Return the share that is done after ``seconds``.

        From the count, or else from the time estimate.
        """
        return self._share or (
            min((seconds - self._begun) / self._about, 1.0) if self._about else 0.0
        )

    def _show(self) -> None:
        if not self._visible or self._done.wait(_PATIENCE):
            return
        every, show = self._display or _error_stream()
        while True:
            seconds = self.seconds
            show(f"{self._text} ({time_words(seconds, self._done_share(seconds), self._begun)})")
            if self._done.wait(every):
                break
        show("")


def _error_stream() -> Display:
    """Show lines on the standard error stream.

    On a terminal each replaces the one before.
    """
    terminal, width = sys.stderr.isatty(), 0

    def show(line: str) -> None:
        nonlocal width
        if terminal:
            sys.stderr.write(
                "\r" + line.ljust(width) + ("" if line else "\r")
            )  # blanks cover what is left of the line before
            width = len(line)
        elif line:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    return Display(_ON_TERMINAL if terminal else _ELSEWHERE, show)


def time_words(seconds: float, share: float, begun: float = 0.0) -> str:
    """Write how long something has taken, and about how long the rest will take."""
    if not 0.02 <= share < 1:
        return f"{seconds:.0f} s"
    rest = (seconds - begun) * (1 - share) / share
    return (
        f"{seconds:.0f} s, about {f'{rest:.0f} s' if rest < 120 else f'{rest / 60:.0f} min'} more"
    )


@contextmanager
def planning_shown(given: _Names, about: Callable[[], float] | None = None) -> Iterator[_Names]:
    """Return the callback that receives the strategy being tried.

    The caller's, or in a notebook one that shows a progress line.
    """
    if given is not None or not _in_notebook():
        yield given
        return
    with Progress("planning", _cell(), 0.0 if about is None else about()) as line:
        yield line.trying


def rows_shown(
    then: str, expected: Callable[..., tuple[int, float]] | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator for functions that read rows and have an argument ``progress``.

    With ``progress=True`` they show a line of progress, and in a notebook also without it.

    Args:
        then: the text after the last row.
        expected: with the arguments of the function, returns how many blocks there are and how many
            seconds the rest takes.
    """

    def shown(reads: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(reads)
        def within(*args: _P.args, **given: _P.kwargs) -> _R:
            progress, in_notebook = given.get("progress"), _in_notebook()
            if progress is not True and (progress is not None or not in_notebook):
                given["progress"] = row_progress(progress)
                return reads(*args, **given)
            blocks, about = (0, 0.0) if expected is None else expected(*args, **given)
            with Progress(f"reading, {then}", _cell() if in_notebook else None) as line:
                given["progress"] = RowProgress(line, "reading", then, blocks=blocks, about=about)
                return reads(*args, **given)

        return within

    return shown


def _in_notebook() -> bool:
    """Return whether this process is a notebook kernel, without IPython."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def _cell() -> Display:
    """Show lines of plain text below the cell, each in place of the one before."""
    from IPython.display import display

    handles: list[Any] = []

    def show(line: str) -> None:
        text = {"text/plain": line}
        if handles:
            handles[0].update(text, raw=True)
        else:
            handles.append(display(text, raw=True, display_id=True))

    return Display(_IN_NOTEBOOK, show)
