"""Exploring a finished release: a table of any attributes, and the sum of any of its cells, from the measurements alone."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from leastnoise._accuracy import covariances, structure
from leastnoise._check import InputError, one_of, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._release import Release, Table, published
from leastnoise._workload import level, level_names, queries

MOST_CELLS = 4096
KINDS = ("identity", "prefix")
Asked = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of some cells of a table; NaN where the release leaves out what is so small."""

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

    def shown(self, asked: Asked, measure: str | None) -> Table:
        """A table as the release publishes its own: rounded, and without small answers, where it is to be so."""
        return published(self.table(asked, measure), self.release.options)

    def first(self) -> tuple[Asked, str | None]:
        """The first that can be shown of the tables that were asked for, each attribute alone, and the total."""
        for asked, measure in self._offered():
            with suppress(InputError):
                self.table(asked, measure)
                return asked, measure
        return (), None

    def _offered(self) -> Iterator[tuple[Asked, str | None]]:
        products, domain = self.release.workload.products, self.release.plan.domain
        for product in products:
            sets = tuple(zip(product.attributes, product.query_sets, strict=True))
            if sets and all(one.form.named or one.kind in KINDS for _, one in sets):
                yield tuple((name, one.word) for name, one in sets), product.measure
        for measure in dict.fromkeys(product.measure for product in products):
            for name in domain.names:
                for kind in (*KINDS, *level_names(domain.kind(name))):
                    yield ((name, kind),), measure
            yield (), measure

    def _table(self, asked: Asked, measure: str | None) -> Table:
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

    def _covariances(self, asked: Asked, measure: str | None) -> FloatArray:
        if not self.release.finding.linear:
            raise InputError(
                f"No error is known for sums of cells from a release by {self.release.plan.strategy!r}, which looked at the data. Ask for "
                "ranges with `leastnoise answer`."
            )
        product = self.table(asked, measure).product
        return covariances(structure(self.release.measurements, measure), product)

    def sum(self, asked: Asked, measure: str | None, cells: Sequence[int]) -> Sum:
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
        ends = [np.array([end]) for end in (answer, std, answer - half, answer + half)]
        one = replace(table, approximation_std=None, answer=ends[0], noise_std=ends[1], low=ends[2], high=ends[3])
        made = published(one, self.release.options)
        return Sum(len(chosen), *(float(values[0]) for values in (made.answer, made.noise_std, made.low, made.high)))


def question(asked: Mapping[str, object], names: Sequence[str]) -> Asked:
    """What a page asks for, in the order of the domain."""
    for name in asked:
        one_of("an attribute", name, tuple(names))
    return tuple((name, str(asked[name])) for name in names if asked.get(name))
