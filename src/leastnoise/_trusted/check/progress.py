"""Show the progress of reading rows in whole percents.

The rule is E13 of PROOFS-reading.md.
"""

from abc import ABC, abstractmethod
from typing import final

from leastnoise._trusted.check._errors import refuse


class ProgressLine(ABC):
    """A line that shows progress; it receives texts but never a number of rows."""

    @abstractmethod
    def say(self, text: str, share: float = 0.0) -> None:
        """Show another text and, if it is known, the completed share of the work."""

    @abstractmethod
    def begin(self, text: str, estimated_seconds: float = 0.0) -> None:
        """Show another text, and start to time the work that it names.

        Args:
            text: the new text.
            estimated_seconds: the probable duration in seconds of the work that the text names.
        """


@final
class RowProgress:
    """The progress of reading rows, which never reveals a number of rows.

    Readers of private data accept only an object of exactly this class. While they read rows, they
    call nothing but this object. The object stores no number of rows. The object passes text with
    whole percents to the line. Calls are counted only if blocks of bytes are read, because the
    number of chunks of rows would reveal the number of rows.

    Args:
        line: the progress line.
        doing: the text to show while rows are read.
        then: the text to show when all rows have been read; its time starts at 0.
        blocks: the number of calls of `show`, if it is known. The percentage is computed from it if
            the number of rows is not known in advance.
        about: the probable duration in seconds of the work after reading.

    >>> class Lines(ProgressLine):
    ...     def say(self, text, share=0.0):
    ...         print(text)
    ...     def begin(self, text, estimated_seconds=0.0):
    ...         print(text)
    >>> progress = RowProgress(Lines(), "reading", "writing")
    >>> progress.show(3, 9)
    reading: 33%
    """

    __slots__ = ("_about", "_blocks", "_calls", "_doing", "_line", "_then")

    def __init__(
        self, line: ProgressLine, doing: str, then: str, *, blocks: int = 0, about: float = 0.0
    ) -> None:
        if not isinstance(line, ProgressLine):
            raise refuse("line", type(line).__name__, "a line of progress")
        self._line = line
        self._doing = doing
        self._then = then
        self._calls = 0
        self._blocks = blocks
        self._about = about

    def __init_subclass__(cls) -> None:
        raise TypeError("RowProgress cannot have subclasses, which would receive numbers of rows")

    def show(self, rows_read: int, row_total: int | None) -> None:
        """Show the percentage of rows that have been read.

        The percentage is a share of the rows, or of the blocks if the total number of rows is
        unknown.

        Args:
            rows_read: the number of rows that have been read so far.
            row_total: the total number of rows, if it is known.
        """
        if row_total:
            completed = rows_read
            total = row_total
        elif self._blocks:
            self._calls += 1
            completed = self._calls
            total = self._blocks
        else:
            return
        if completed >= total:
            self._line.begin(self._then, self._about)
        else:
            percent = 100 * completed // total
            self._line.say(f"{self._doing}: {percent}%", percent / 100)


def row_progress(progress: object) -> RowProgress | None:
    """Return a `RowProgress` unchanged; return None for None and False.

    Args:
        progress: a `RowProgress`, or None or False.

    Raises:
        InputError: the argument is something else. A function, for example, would learn numbers of
            rows.

    >>> row_progress(print)
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: progress must be True, False or None;
    got 'builtin_function_or_method'. ...
    """
    if progress is None or progress is False:
        return None
    if type(progress) is not RowProgress:
        raise refuse(
            "progress",
            type(progress).__name__,
            "True, False or None",
            "True shows a line with the share of the rows that has been read. Numbers of "
            "rows are private, so no function receives them.",
        )
    return progress
