"""Exploring a finished release: a table of any attributes, and the sum of any of its cells, from the measurements alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._accuracy import covariances, structure
from leastnoise._check import InputError, one_of, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._release import Release, Table
from leastnoise._workload import level, level_names, queries

MOST_CELLS = 4096
KINDS = ("identity", "prefix")


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of some cells of a table."""

    cells: int
    answer: float
    noise_std: float
    low: float
    high: float


class Exploring:
    """Answers from one release; what was asked last is kept."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.table = lru_cache(maxsize=8)(self._table)
        self._covariance = lru_cache(maxsize=2)(self._covariances)

    def _table(self, asked: tuple[tuple[str, str], ...], measure: str | None) -> Table:
        for name, kind in asked:
            one_of("an attribute", name, self.release.plan.domain.names)
            one_of(f"what is asked of {name}", kind, (*KINDS, *level_names(self.release.plan.domain.kind(name))))
        sets = {name: kind if kind in KINDS else level(kind) for name, kind in asked}
        questions = queries(self.release.plan.domain, sets, sum=measure)
        if questions.rows > MOST_CELLS:
            raise InputError(
                f"A table here may have at most {MOST_CELLS} cells; this one would have {questions.rows}. Pick fewer attributes."
            )
        (table,) = self.release.answer(questions)
        return table

    def _covariances(self, asked: tuple[tuple[str, str], ...], measure: str | None) -> FloatArray:
        if not self.release.finding.linear:
            raise InputError(
                f"No error is known for sums of cells from a release by {self.release.plan.strategy!r}, which looked at the data. Ask for "
                "ranges with `leastnoise answer`."
            )
        product = self.table(asked, measure).product
        return covariances(structure(self.release.measurements, measure), product)

    def sum(self, asked: tuple[tuple[str, str], ...], measure: str | None, cells: Sequence[int]) -> Sum:
        """The sum of some cells of a table, with its exact error."""
        table = self.table(asked, measure)
        chosen = [whole("a cell", cell, 0, table.cells - 1) for cell in dict.fromkeys(cells)]
        if not chosen:
            raise InputError("Pick at least one cell.")
        weights = np.zeros(table.cells)
        weights[chosen] = 1.0
        unit, interval = table.product.unit, self.release.interval
        variance = float(weights @ self._covariance(asked, measure) @ weights)
        answer, std = float(weights @ table.answer.reshape(-1)), unit * math.sqrt(max(0.0, variance))
        half = interval.multiplier * std + interval.half_step * unit
        return Sum(len(chosen), answer, std, answer - half, answer + half)


def question(asked: Mapping[str, object], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """What a page asks for, in the order of the domain."""
    for name in asked:
        one_of("an attribute", name, tuple(names))
    return tuple((name, str(asked[name])) for name in names if asked.get(name))
