"""Write noisy outcomes of steps as text for the ledger, and read them.

Not trusted: outcomes have their noise and are public.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from leastnoise._trusted.check import LedgerError
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._keys import FoundKeys
from leastnoise._trusted.linop import SignedArray, narrow, unpack, whole_bytes, whole_bytes_text
from leastnoise._trusted.measurements import Observation

Result = TypeVar("Result")


def outcome_to_text(outcome: object) -> Iterator[str]:
    """Yield the outcome of a step as text, in parts.

    An outcome can be too large to hold twice in memory.
    """
    if isinstance(outcome, Fraction):
        yield json.dumps({"fraction": str(outcome)})
        return
    if isinstance(outcome, FoundKeys):
        fields = {
            "keys": {"tuple": list(outcome.keys)},
            "units": {"array": whole_bytes(outcome.units)},
        }
        yield json.dumps({"kind": "FoundKeys", "fields": fields})
        return
    if isinstance(outcome, np.ndarray):
        yield json.dumps({"cells": whole_bytes(outcome)})
        return
    blocks = (
        outcome.values if isinstance(outcome, Observation) else outcome
    )  # a period gives a tuple of its rows
    if not isinstance(blocks, tuple):
        raise TypeError(f"a step gave a {type(outcome).__name__}, which the ledger cannot hold")
    yield '{"values": ['
    for index, values in enumerate(blocks):
        yield (", " if index else "") + whole_bytes_text(values)
    yield "]}"


def outcome_from_text(text: str) -> Fraction | FoundKeys:
    """Return the outcome of a choice or of a search for keys, from its text.

    `values_from_text` reads the text of measurements.
    """

    def reader(value: Any) -> Fraction | FoundKeys:
        if "fraction" in value:
            return Fraction(value["fraction"])
        return FoundKeys(
            tuple(value["fields"]["keys"]["tuple"]), unpack(value["fields"]["units"]["array"])
        )

    return _read(text, reader)


def cells_from_text(text: str, groups: int, cells: int) -> IntArray:
    """Return the chosen cells of quantiles from their text.

    Args:
        text: as `outcome_to_text` wrote it.
        groups: how many groups made a choice.
        cells: how many cells each of them chose from.
    """

    def reader(value: Any) -> IntArray:
        chosen_cells = unpack(value["cells"], groups).astype(np.int64)
        if chosen_cells.shape != (groups,) or chosen_cells.min() < 0 or chosen_cells.max() >= cells:
            raise ValueError("other groups or cells")
        return chosen_cells

    return _read(text, reader)


def values_from_text(text: str, rows: Iterable[int]) -> tuple[SignedArray, ...]:
    """Return the noisy answers of measurements from their text.

    Args:
        text: as `outcome_to_text` wrote it.
        rows: the largest number of answers of each block.
    """
    entries = _read(text, lambda value: list(value["values"]))
    return tuple(
        narrow(unpack(entry, most_rows)) for entry, most_rows in zip(entries, rows, strict=True)
    )


def _read(text: str, reader: Callable[[Any], Result]) -> Result:
    """Return a reader's result for JSON text; raise if the text is damaged."""
    try:
        return reader(json.loads(text))
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise LedgerError(
            "The record of this release's steps in the ledger is unreadable. Restore the "
            "ledger from a copy."
        ) from None
