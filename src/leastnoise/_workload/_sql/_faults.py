"""Collect the errors ("faults") of SQL statements, with their positions.

A reader continues after a fault, so that one message lists all faults of all statements.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from leastnoise._trusted.check import InputError
from leastnoise._workload._sql._expression_values import Node


@dataclass
class Faults:
    """Collects all errors of one statement, to report them in one message.

    Attributes:
        number: the number of the statement in its text, from 1.
        messages: the faults, each in one or two sentences; their line and column are the keys.
    """

    number: int
    messages: dict[str, tuple[int, int]] = field(default_factory=dict)

    @contextmanager
    def collect(self, node: Node) -> Iterator[None]:
        """Record an InputError of a ``with`` block as an error of a syntax node."""
        try:
            yield
        except FaultsError:
            raise
        except InputError as error:
            self.add(node, error.args[0])

    def add(self, node: Node, reason: str) -> None:
        """Record an error at the position of a syntax node."""
        line, column = _position(node)
        text = f"Statement {self.number} (line {line}, column {column}): {reason}"
        self.messages.setdefault(text, (line, column))

    def check(self) -> None:
        """Raise one error that lists all recorded errors, if there are any errors.

        Raises:
            FaultsError: one line for each fault, in the order of their positions.
        """
        if self.messages:
            raise FaultsError("\n".join(sorted(self.messages, key=self.messages.__getitem__)))


class FaultsError(InputError):
    """All errors of a statement; the message includes their positions."""


def _position(node: Node) -> tuple[int, int]:
    """Return the line and column, from 1, at which a syntax node begins.

    A node without a position has the position of the smallest enclosing node that has one.
    """
    while node is not None:
        positions = [
            (part.meta["line"], part.meta["col"] - (part.meta["end"] - part.meta["start"]))
            for part in node.walk()
            if "line" in part.meta
        ]
        if positions:
            return min(positions)
        node = node.parent
    return 1, 1
