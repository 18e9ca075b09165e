"""What a step asked for and gave, as text for the ledger."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._check import LedgerError
from leastnoise._kernel._keys import FoundKeys
from leastnoise._kernel._partition import Partition
from leastnoise._linop import unpack, whole_bytes, whole_bytes_text
from leastnoise._measurements import Observation

_KINDS: Mapping[str, type] = {kind.__name__: kind for kind in (Partition, FoundKeys)}


def request_of(selection: object) -> str:
    """Fingerprint of a selection, from its public numbers."""
    return hashlib.sha256(repr(selection).encode()).hexdigest()


def outcome_to_text(outcome: object) -> Iterator[str]:
    """Write what a step gave, in parts, as the whole can be larger than memory should hold twice.

    >>> outcome_from_text("".join(outcome_to_text(Fraction(1, 3))))
    Fraction(1, 3)
    """
    if not isinstance(outcome, Observation):
        yield json.dumps(_packed(outcome))
        return
    yield '{"values": ['
    for place, values in enumerate(outcome.values):
        yield (", " if place else "") + whole_bytes_text(values)
    yield "]}"


def outcome_from_text(text: str) -> Any:
    """Read what a choice gave; of measurements `values_from_text` reads the values.

    >>> found = Partition(size=5, starts=np.array([0, 2]), spent=Fraction(1, 2))
    >>> outcome_from_text("".join(outcome_to_text(found))).starts.tolist()
    [0, 2]
    """
    return _read(text, _unpacked)


def values_from_text(text: str) -> list[Any]:
    """Read the packed values that measurements gave.

    >>> values_from_text('{"values": []}')
    []
    """
    found: list[Any] = _read(text, lambda value: list(value["values"]))
    return found


def _read(text: str, reader: Callable[[Any], Any]) -> Any:
    try:
        return reader(json.loads(text))
    except (ValueError, TypeError, KeyError):
        raise LedgerError("What the ledger holds of this release's steps is unreadable. Restore the ledger from a copy.") from None


def _packed(value: Any) -> Any:
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, np.ndarray):
        return {"array": whole_bytes(value)}
    if isinstance(value, tuple):
        return {"tuple": [_packed(one) for one in value]}
    if type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, "fields": {one.name: _packed(getattr(value, one.name)) for one in fields(value)}}
    if isinstance(value, (int, str)):
        return value
    raise TypeError(f"a step gave a {type(value).__name__}, which the ledger cannot hold")


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "fraction" in value:
        return Fraction(value["fraction"])
    if "array" in value:
        return unpack(value["array"])
    if "tuple" in value:
        return tuple(_unpacked(one) for one in value["tuple"])
    return _KINDS[value["kind"]](**{name: _unpacked(one) for name, one in value["fields"].items()})
