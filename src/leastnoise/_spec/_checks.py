"""Checks that several parts of a spec share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leastnoise._trusted.check import InputError, message, refuse


def check_text(name: str, value: object) -> str:
    """Return ``value`` if it is a non-empty text; raise InputError otherwise."""
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "a text that is not empty")
    return value


@contextmanager
def prefix_errors(prefix: str) -> Iterator[None]:
    """Add a prefix to the message of an InputError in the ``with`` block."""
    try:
        yield
    except InputError as error:
        raise InputError(message("{part}{fault}", part=prefix, fault=error.args[0])) from None


def read_pair(subject: str, value: object) -> tuple[Any, Any]:
    """Return the two entries of a [low, high] list; raise InputError otherwise."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise refuse(subject, value, "a list of two numbers, [low, high]")
    return value[0], value[1]
