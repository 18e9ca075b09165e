"""What a step gave, noise and all, as text for the ledger: public, so nothing here need be believed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._check import LedgerError
from leastnoise._kernel._keys import FoundKeys
from leastnoise._kernel._partition import Partition
from leastnoise._linop import SignedArray, narrow, unpack, whole_bytes, whole_bytes_text
from leastnoise._measurements import Observation

_KINDS: Mapping[str, type] = {kind.__name__: kind for kind in (Partition, FoundKeys)}


def outcome_to_text(outcome: object) -> Iterator[str]:
    """Write what a step gave, in parts, as the whole can be larger than memory should hold twice."""
    drawn = outcome.values if isinstance(outcome, Observation) else outcome  # all rows, or a tuple of those of a period
    if not isinstance(drawn, tuple):
        yield json.dumps(_packed(outcome))
        return
    yield '{"values": ['
    for place, values in enumerate(drawn):
        yield (", " if place else "") + whole_bytes_text(values)
    yield "]}"


def outcome_from_text(text: str) -> Any:
    """Read what a choice gave; of measurements `values_from_text` reads the values."""
    return _read(text, _unpacked)


def values_from_text(text: str, rows: Iterable[int]) -> tuple[SignedArray, ...]:
    """Read what measurements gave, so many numbers a block at most."""
    entries = _read(text, lambda value: list(value["values"]))
    return tuple(narrow(unpack(entry, most)) for entry, most in zip(entries, rows, strict=True))


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
