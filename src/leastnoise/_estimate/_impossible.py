"""Combinations of values that cannot be, as a spec says them: whatever the noise is, the cells of a table within one hold nobody."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import BoolArray, FloatArray
from leastnoise._domain import Domain

Combination: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]  # attributes, and the codes of each that do not go together
_ROUNDS, _EXACT, _LEAST = 1000, 1e-10, 1e-6


def read_combinations(domain: Domain, facts: Iterable[Mapping[str, Sequence[int]]]) -> tuple[Combination, ...]:
    """From the details of a plan, which may be of a file that somebody wrote."""
    found = tuple(tuple((name, tuple(codes)) for name, codes in one.items()) for one in facts)
    for name, codes in (part for one in found for part in one):
        if name not in domain.names or not codes or not set(codes) <= set(range(domain.kind(name).size)):
            raise InputError(f"The plan names impossible values of {name} that the domain does not have. Make the plan again.")
    return found


def possible_cells(impossible: Sequence[Combination], names: Sequence[str], shape: Sequence[int]) -> BoolArray:
    """Which cells of a table may hold rows, of its shape: all, but those of combinations of its own attributes."""
    possible = np.ones(shape, dtype=bool)
    for one in impossible:
        codes = dict(one)
        if set(codes) <= set(names):
            possible[np.ix_(*(codes.get(name, range(size)) for name, size in zip(names, shape, strict=True)))] = False
    return possible


def without_impossible(
    table: Callable[[tuple[str, ...]], FloatArray], names: tuple[str, ...], impossible: Sequence[Combination]
) -> FloatArray:
    """A table with zeros for what cannot be, whose sums along every attribute are those of its smaller tables.

    Source: iterative proportional fitting, Deming and Stephan 1940, which keeps zeros.
    """
    cells = table(names)
    possible = possible_cells(impossible, names, cells.shape)
    if possible.all():
        return cells
    total = float(table(()))
    cells = np.where(possible, np.maximum(cells, _LEAST * total / cells.size), 0.0)
    smaller = [without_impossible(table, names[:axis] + names[axis + 1 :], impossible) for axis in range(len(names))]
    for _ in range(_ROUNDS):
        off = 0.0
        for axis, wanted in enumerate(smaller):
            sums = cells.sum(axis=axis)
            off = max(off, float(np.abs(sums - wanted).max()))
            cells = cells * np.expand_dims(np.where(sums > 0, wanted / np.where(sums > 0, sums, 1.0), 0.0), axis)
        if off <= _EXACT * total:
            break
    return cells
