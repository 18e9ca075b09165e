"""Synthetic records that agree with a release, as a data frame or a file.

A record has one value for every attribute with counts, in the column and spelling of the data: a
category, a whole number or a date. In a bin or a period the value is drawn uniformly, because
nothing was measured inside. Records are post-processing and cost nothing.
"""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from itertools import pairwise
from math import floor, log10
from typing import Any

import numpy as np

from leastnoise._domain import Bins, Dates, Domain, Edges, Kind, UnitCount, kind_to_json, period_of
from leastnoise._estimation import (
    MOST_RECORDS,
    Outcome,
    draw_records,
    fitted_model,
    public_counts_of_plan,
)
from leastnoise._release._tables import Table
from leastnoise._trusted.check import InputError, whole
from leastnoise._trusted.check.arrays import Array, FloatArray, IntArray
from leastnoise._trusted.linop import along, apply
from leastnoise._workload import Product, marginals

_HOURS = 24
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a clock's reading, as dates of a domain are


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Synthetic rows.

    Attributes:
        domain: the domain of the release.
        names: the attributes that have values.
        codes: the cell of every row along every attribute, shape (rows, attributes).
        counted: the number of rows that the release counted.
        seed: the seed of the values within cells.
        units: the unit of each row, by the column of units; empty if rows are not grouped.
    """

    domain: Domain
    names: tuple[str, ...]
    codes: IntArray
    counted: float
    seed: int
    units: Mapping[str, IntArray] = field(default_factory=dict)

    def counts(self, product: Product) -> FloatArray:
        """Return the answers of these records to the queries of a table."""
        sizes = [self.domain.kind(name).size for name in product.attributes]
        codes = [self.codes[:, self.names.index(name)] for name in product.attributes]
        if codes:
            flat = np.ravel_multi_index(codes, sizes)
        else:
            flat = np.zeros(len(self.codes), dtype=np.int64)
        cells: Any = (
            np.bincount(flat, minlength=int(np.prod(sizes, dtype=np.int64)))
            .reshape(sizes)
            .astype(np.float64)
        )
        for axis, operator in enumerate(product.operators):
            cells = along(apply, operator, cells, axis)
        return np.asarray(cells)

    def distance(self, table: Table) -> float:
        """Return the RMS difference between a table's answers and these counts.

        The counts are scaled to the number of rows that the release counted.
        """
        scaled = self.counts(table.product) * self.counted / len(self.codes)
        return float(np.sqrt(np.mean((scaled.reshape(-1) - table.answer.reshape(-1)) ** 2)))

    def columns(self) -> dict[str, Array]:
        """Return the values by column name.

        If several attributes come from one column, the attribute with the most cells is written.
        """
        random = np.random.default_rng([self.seed, 1])
        names_of_columns: dict[str, str] = {}
        for name in sorted(
            self.names, key=lambda name_of: self.domain.kind(name_of).size, reverse=True
        ):
            names_of_columns.setdefault(self.domain.kind(name).reading.column or name, name)
        column_of_name = {name: column for column, name in names_of_columns.items()}
        return {
            **{
                name: values
                for name, values in self.units.items()
                if name not in column_of_name.values()
            },
            **{
                column_of_name[name]: _spell_values(
                    self.domain.kind(name), self.codes[:, index], random
                )
                for index, name in enumerate(self.names)
                if name in column_of_name
            },
        }


def make_records(
    outcome: Outcome, rows: int | None = None, seed: int = 0, *, units: bool = False
) -> Records:
    """Draw records from a release.

    By default their number is the number of counted rows, and they are not grouped into units.
    """
    if units:
        rows_per_unit = _mean_rows_per_unit(outcome)
    else:
        rows_per_unit = 0.0
    workload = outcome.plan.workload
    model, mixture = fitted_model(outcome.estimator(), workload.products)
    names = model.names
    impossible = [
        {names.index(name): codes for name, codes in cells.items()}
        for cells in outcome.plan.details.impossible
        if set(cells) <= set(names)
    ]
    public_counts = public_counts_of_plan(outcome.plan)
    count = whole("rows", round(model.total) if rows is None else rows, 1, MOST_RECORDS)
    sums = [
        table.sums.on(tuple(name for name in table.sums.names if name in names))
        for table in public_counts
    ]
    fixed_sums = [(tuple(map(names.index, counts.names)), counts) for counts in sums]
    codes = draw_records(mixture, count, whole("seed", seed, 0), impossible, fixed_sums)
    records = Records(outcome.plan.domain, names, codes, model.total, seed)
    if not units:
        return records
    # all units have as many rows, but for one more: how they differ was not counted
    unit_count = min(
        max(round(count / rows_per_unit), -(-count // outcome.plan.privacy.max_rows)), count
    )
    unit_of_row = np.random.default_rng([seed, 4]).permutation(np.arange(count) % unit_count)
    return replace(records, units={str(outcome.plan.privacy.unit_column): unit_of_row})


def _mean_rows_per_unit(outcome: Outcome) -> float:
    """Return the mean number of rows of a unit, from noisy counts of both."""
    total = marginals(outcome.plan.domain, ways=0).products[0]
    for product in outcome.plan.workload:
        if not product.attributes and isinstance(
            outcome.plan.domain.measures.get(str(product.measure)), UnitCount
        ):
            estimator = outcome.estimator()
            try:
                rows = float(estimator.estimate(total).values)
            except InputError:
                break
            return max(rows, 1.0) / max(float(estimator.estimate(product).values), 1.0)
    raise InputError(
        "Records can be grouped into units where rows and units were counted in all; this release "
        "has no such counts. Leave out --units, "
        "or ask in a release for marginals = { ways = 0 }, once as it is and once with count = "
        '"units".'
    )


def _spell_values(kind: Kind, codes: IntArray, random: np.random.Generator) -> Array:
    """Return a value for every code, as the data would spell it.

    A cell behind the regular cells gives a null, or a text that no cell has. The hidden cell gives
    a null.
    """
    further_values: dict[int, Any] = dict(enumerate(kind.further_labels, kind.regular))
    if kind.null_cell in further_values:
        further_values[kind.null_cell] = next(iter(kind.reading.nulls), None)
    if kind.hidden:
        further_values[kind.published] = None
    values = _draw_values(kind, np.minimum(codes, kind.regular - 1), random)
    if further_values:
        values = [
            further_values.get(code, value)
            for code, value in zip(codes.tolist(), values, strict=True)
        ]
    if any(isinstance(value, str) for value in values):  # a column has one type
        values = [_text_or_null(value) for value in values]
    if None in values or isinstance(values[0], str):
        return np.array(values, dtype=object)
    return np.array(values)


def _text_or_null(value: object) -> str | None:
    """Return a value as a text; None stays None."""
    if value is None:
        return None
    return str(value)


@singledispatch
def _draw_values(kind: Kind, codes: IntArray, random: np.random.Generator) -> list[Any]:  # noqa: ARG001 - one signature for all kinds
    """Return a value for each code of an attribute: its label."""
    labels = [_with_decimal_mark(label, kind.reading.decimal) for label in kind.regular_labels]
    return [labels[code] for code in codes.tolist()]


def _with_decimal_mark(label: Any, mark: str) -> Any:
    """Return a label; a number that is a text has the decimal mark of the data."""
    if isinstance(label, str) and label.lstrip("-").replace(".", "", 1).isdigit():
        return label.replace(".", mark)
    return label


@_draw_values.register(Bins)
@_draw_values.register(Edges)
def _(kind: Bins | Edges, codes: IntArray, random: np.random.Generator) -> list[Any]:
    """Return a random number within the bin of each code."""
    edges = [float(number) for number in kind.edges]
    digits = [max(0, 2 - floor(log10(high - low))) for low, high in pairwise(edges)]
    drawn: list[Any] = []
    for code, part in zip(
        codes.tolist(), random.uniform(0.005, 0.995, len(codes)).tolist(), strict=True
    ):
        low = edges[code]
        high = edges[code + 1]
        value = low + part * (high - low)
        short = round(value, digits[code])
        drawn.append(short if low < short < high else value)
    if kind.reading.decimal == ".":
        return drawn
    return [str(number).replace(".", kind.reading.decimal) for number in drawn]


@_draw_values.register
def _(kind: Dates, codes: IntArray, random: np.random.Generator) -> list[Any]:
    """Return a random date or time within the period of each code."""
    first = (kind.start - _EPOCH.date()).days
    days = (kind.end - kind.start).days + 1
    with_time = kind.by in ("hour", "hour_of_day")
    part = random.random(len(codes))
    if with_time:
        day = np.floor(part * days).astype(np.int64)
        hours = first * _HOURS + (codes if kind.by == "hour" else day * _HOURS + codes)
    else:
        cells = np.array(
            [period_of((first + day) * _HOURS, kind.by) - kind.first for day in range(days)]
        )
        order = np.argsort(cells, kind="stable")
        begin, end = (np.searchsorted(cells[order], codes, side=side) for side in ("left", "right"))
        chosen = begin + np.floor(part * (end - begin)).astype(np.int64)
        hours = (first + order[np.minimum(chosen, days - 1)]) * _HOURS
    seconds = hours * 3600 + (random.integers(0, 3600, len(codes)) if with_time else 0)
    written_as: Any = kind_to_json(kind).get("format") or (
        "%Y-%m-%d %H:%M:%S" if with_time else "%Y-%m-%d"
    )
    return [
        _format_moment(_EPOCH + dt.timedelta(seconds=second), written_as)
        for second in seconds.tolist()
    ]


def _format_moment(moment: dt.datetime, written_as: str) -> str:
    """Return a moment as a text, by the format of a column of dates."""
    parts = {"Y": f"{moment.year:04}", "m": f"{moment.month:02}", "d": f"{moment.day:02}", "%": "%"}
    parts |= {"H": f"{moment.hour:02}", "M": f"{moment.minute:02}", "S": f"{moment.second:02}"}
    return re.sub("%(.)", lambda match: parts[match[1]], written_as)
