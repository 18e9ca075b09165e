"""Progress below the cell of a notebook, without being asked for; in programs the library is silent."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from leastnoise._progress._line import Place, Progress

_EVERY = 0.5
_Names = Callable[[str], None] | None
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def planning_shown(given: _Names, about: Callable[[], float] | None = None) -> Iterator[_Names]:
    """What a planner tells the names of strategies to: what a caller gave, or else a line below the cell, in a notebook."""
    if given is not None or not _in_notebook():
        yield given
        return
    with Progress("planning", _cell(), 0.0 if about is None else about()) as line:
        yield line.trying


def rows_shown(then: str, expected: Callable[..., tuple[int, float]] | None = None) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function that reads rows tell a notebook how far it is, where its caller gave no ``progress``."""

    def shown(reads: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(reads)
        def within(*args: _P.args, **given: _P.kwargs) -> _R:
            if given.get("progress") is not None or not _in_notebook():
                return reads(*args, **given)
            blocks, about = (0, 0.0) if expected is None else expected(*args, **given)
            with Progress(f"reading, {then}", _cell()) as line:
                given["progress"] = lambda done, among: line.rows("reading", then, done, among, blocks, about)
                return reads(*args, **given)

        return within

    return shown


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is never loaded to find out."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def _cell() -> Place:
    """A line of plain text below the cell, which is emptied at the end."""
    from IPython.display import display

    shown: list[Any] = []

    def show(line: str) -> None:
        text = {"text/plain": line}
        if shown:
            shown[0].update(text, raw=True)
        else:
            shown.append(display(text, raw=True, display_id=True))

    return Place(_EVERY, show)
