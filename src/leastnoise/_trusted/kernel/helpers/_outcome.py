"""Write noisy outcomes of steps as text for the ledger, and read them.

This file is not trusted, because outcomes are public: noise has already been added to them.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from leastnoise._trusted.check import LedgerError
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._key_search import FoundKeys
from leastnoise._trusted.linop import (
    SignedArray,
    array_from_json,
    as_int32_if_exact,
    noisy_array_to_json,
    noisy_array_to_json_text,
)
from leastnoise._trusted.measurements import Observation

Result = TypeVar("Result")


def outcome_to_text(outcome: object) -> Iterator[str]:
    """Yield the outcome of a step as text, in parts.

    The text is yielded in parts, because memory may be too small for a second copy of a large
    outcome.
    """
    if isinstance(outcome, Fraction):
        yield json.dumps({"fraction": str(outcome)})
        return
    if isinstance(outcome, FoundKeys):
        fields = {
            "keys": {"tuple": list(outcome.keys)},
            "units": {"array": noisy_array_to_json(outcome.units)},
        }
        yield json.dumps({"kind": "FoundKeys", "fields": fields})
        return
    if isinstance(outcome, np.ndarray):
        yield json.dumps({"cells": noisy_array_to_json(outcome)})
        return
    # A period gives a tuple of its rows.
    blocks = outcome.values if isinstance(outcome, Observation) else outcome
    if not isinstance(blocks, tuple):
        raise TypeError(
            f"the result of a step is a {type(outcome).__name__}, which the ledger cannot store"
        )
    yield '{"values": ['
    for index, values in enumerate(blocks):
        yield (", " if index else "") + noisy_array_to_json_text(values)
    yield "]}"


def outcome_from_text(text: str) -> Fraction | FoundKeys:
    """Parse the outcome of a choice, or of a search for keys, from its text.

    For the answers to measurements, use `answers_from_text`.
    """

    def reader(value: Any) -> Fraction | FoundKeys:
        """Return the fraction or the found keys that a JSON value represents."""
        if "fraction" in value:
            return Fraction(value["fraction"])
        return FoundKeys(
            tuple(value["fields"]["keys"]["tuple"]),
            array_from_json(value["fields"]["units"]["array"]),
        )

    return _read_json(text, reader)


def cells_from_text(text: str, group_count: int, cell_count: int) -> IntArray:
    """Parse the chosen quantile cells, one for each group, from a text.

    Args:
        text: as `outcome_to_text` wrote it.
        group_count: how many groups made a choice.
        cell_count: how many cells each of them chose from.
    """

    def reader(value: Any) -> IntArray:
        """Return the chosen cells that a JSON value represents.

        Raises:
            ValueError: the chosen cells are impossible.
        """
        chosen_cells = array_from_json(value["cells"], group_count).astype(np.int64)
        if (
            chosen_cells.shape != (group_count,)
            or chosen_cells.min() < 0
            or chosen_cells.max() >= cell_count
        ):
            raise ValueError("other groups or cells")
        return chosen_cells

    return _read_json(text, reader)


def answers_from_text(text: str, row_counts: Iterable[int]) -> tuple[SignedArray, ...]:
    """Read the noisy answers of each block of measurements from their text.

    Args:
        text: as `outcome_to_text` wrote it.
        row_counts: the largest number of answers of each block.
    """
    entries = _read_json(text, lambda value: list(value["values"]))
    return tuple(
        as_int32_if_exact(array_from_json(entry, most_rows))
        for entry, most_rows in zip(entries, row_counts, strict=True)
    )


def _read_json(text: str, reader: Callable[[Any], Result]) -> Result:
    """Apply a function to the value of JSON text; raise if the text is damaged."""
    try:
        return reader(json.loads(text))
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise LedgerError(
            "The record of this release's steps in the ledger is unreadable. Restore the "
            "ledger from a copy."
        ) from None
