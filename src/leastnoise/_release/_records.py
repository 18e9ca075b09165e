"""Draw synthetic records that agree with a release.

A record has a value for each attribute that the release counts, in the column and spelling of the
data: a category, a whole number or a date. In a bin or a period the value is drawn uniformly,
because the release measured no smaller intervals. Records are post-processing and cost nothing.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial, singledispatch
from itertools import chain, pairwise
from itertools import product as combine
from math import floor, log10
from typing import Any

import numpy as np

from leastnoise._domain import Bins, Dates, Domain, Edges, Kind, UnitCount, kind_to_json, period_of
from leastnoise._estimation import (
    MOST_RECORDS,
    Outcome,
    draw_records,
    fitted_model,
    impossible_rows,
    public_counts_of_plan,
)
from leastnoise._release._record_members import exchange_members, list_member_counts
from leastnoise._release._record_units import (
    Positions,
    UnitCounts,
    count_units,
    group_rows,
    group_rows_by_size,
    sizes_of_codes,
)
from leastnoise._release._record_weights import list_weight_totals, rake_weights
from leastnoise._release._release_tables import AnswerTable
from leastnoise._trusted.check import InputError, one_of, whole
from leastnoise._trusted.check.arrays import Array, BoolArray, FloatArray, IntArray
from leastnoise._trusted.linop import apply, apply_along_axis
from leastnoise._workload import Product, cell_sets, marginals

_HOURS_PER_DAY = 24
_MOST_GROUPS = 4096  # groups of units; counting each takes a pass over the rows
_LEAST_VARIANCE = 1e-300  # replaces a divisor of 0; the smallest normal double is 2e-308
_LEAST_WHOLE_WIDTH = 100  # in bins of this width, values drawn with three digits are whole
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a clock's reading, as dates of a domain are


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Synthetic rows drawn from a release.

    Attributes:
        domain: the domain of the release.
        names: the attributes that have a value in each row.
        codes: the code of each row and attribute, shape (rows, attributes).
        counted: the number of rows that the release counted.
        seed: the seed for the random values within cells.
        units: the unit column, with the number of each row's unit; empty if rows are not grouped.
        weights: the measure of a weight, with the weight of each row in units of the measure; empty
            without weights.
        whole: the binned attributes whose values are whole numbers.
        drawn: the number of rows before grouping, which may repeat or leave out a few rows.
        shared: the attributes whose values all rows of a unit share.
        arranged: the attributes of the released counts of units that decided which rows form a
            unit.
    """

    domain: Domain
    names: tuple[str, ...]
    codes: IntArray
    counted: float
    seed: int
    units: Mapping[str, IntArray] = field(default_factory=dict)
    weights: Mapping[str, FloatArray] = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    drawn: int = 0
    shared: tuple[str, ...] = ()
    arranged: tuple[str, ...] = ()

    def answers(self, product: Product) -> FloatArray | None:
        """Return a table's answers, computed from the records; None if impossible.

        Rows can always be counted; units can be counted if rows are grouped. Weights are added up.
        """
        if product.measure is None:
            return self.counts(product)
        measure = self.domain.measures[product.measure]
        if product.measure in self.weights:
            weights = self.weights[product.measure] * float(measure.unit)
            return self._count_cells(product, np.arange(len(self.codes)), weights)
        if not isinstance(measure, UnitCount) or not self.units:
            return None
        if not measure.attributes:  # all rows of a unit are in one cell
            (units,) = self.units.values()
            return self._count_cells(product, np.unique(units, return_index=True)[1])
        if measure.attributes == product.attributes and product.asks_single_cells:
            return self._count_cells(product, self._rows_of_units_in_cells(product))
        if measure.attributes == product.attributes:
            return self._count_units_in_groups(product)
        return None

    def counts(self, product: Product) -> FloatArray:
        """Return the counts of records for the queries of a table."""
        return self._count_cells(product, np.arange(len(self.codes)))

    def _rows_of_units_in_cells(self, product: Product) -> IntArray:
        """Return the position of one row of each unit in each cell where it has rows."""
        (units,) = self.units.values()
        positions = [self.names.index(name) for name in product.attributes]
        keys = np.column_stack([units, self.codes[:, positions]])
        return np.unique(keys, axis=0, return_index=True)[1]

    def _count_units_in_groups(self, product: Product) -> FloatArray | None:
        """Return the number of units with a row in each group of a table, or None.

        The result is None if the table has too many groups.
        """
        if product.rows > _MOST_GROUPS:
            return None
        (units,) = self.units.values()
        masks = []
        for name, query_set in product.along.items():
            kind = self.domain.kind(name)
            codes = self.codes[:, self.names.index(name)]
            masks.append(
                [np.isin(codes, list(cells)) for cells in cell_sets(name, query_set, kind)]
            )
        counts = [
            len(np.unique(units[np.logical_and.reduce(groups)])) for groups in combine(*masks)
        ]
        return np.array(counts, dtype=np.float64).reshape(product.shape)

    def _count_cells(
        self, product: Product, rows: IntArray, weights: FloatArray | None = None
    ) -> FloatArray:
        """Return the answers to a table's queries, computed from selected rows.

        Args:
            product: the table.
            rows: the positions of the selected rows.
            weights: the weights of the selected rows; if None, each row counts as 1.
        """
        sizes = [self.domain.kind(name).size for name in product.attributes]
        codes = [self.codes[rows, self.names.index(name)] for name in product.attributes]
        if codes:
            flat = np.ravel_multi_index(codes, sizes)
        else:
            flat = np.zeros(len(rows), dtype=np.int64)
        cells: Any = (
            np.bincount(flat, weights, minlength=int(np.prod(sizes, dtype=np.int64)))
            .reshape(sizes)
            .astype(np.float64)
        )
        for axis, operator in enumerate(product.operators):
            cells = apply_along_axis(apply, operator, cells, axis)
        return np.asarray(cells)

    def distance(self, table: AnswerTable) -> float:
        """Return the RMS difference between the released and the records' answers.

        The difference is NaN if the records cannot answer the table.
        """
        differences = self.differences(table)
        if differences is None:
            return float("nan")
        return float(np.sqrt(np.mean(differences**2)))

    def differences(self, table: AnswerTable) -> FloatArray | None:
        """Return the records' answers minus a table's released answers, or None.

        Before that, the records' answers are scaled to the number of rows that the release counted.
        The result is None if the records cannot answer the table.
        """
        answers = self.answers(table.product)
        if answers is None:
            return None
        scaled = answers * self.counted / (self.drawn or len(self.codes))
        return np.asarray(scaled.reshape(-1) - table.answer.reshape(-1))

    def columns(self) -> dict[str, Array]:
        """Return the columns of the records by name, in the spelling of the data.

        If several attributes are read from one column, the attribute with the most cells is used.
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
                    self.domain.kind(name),
                    self.codes[:, index],
                    random,
                    is_whole=name in self.whole,
                )
                for index, name in enumerate(self.names)
                if name in column_of_name
            },
            **{
                self._weight_column(name): weights * float(self.domain.measures[name].unit)
                for name, weights in self.weights.items()
            },
        }

    def _weight_column(self, name: str) -> str:
        """Return the name of a weight's column in the data."""
        reading = self.domain.measure(name).reading
        return reading.column or name


def make_records(
    outcome: Outcome,
    rows: int | None = None,
    seed: int = 0,
    *,
    units: bool = False,
    size: str | None = None,
    weight: str | None = None,
    whole_numbers: Sequence[str] = (),
) -> Records:
    """Draw synthetic records from the outcome of a release.

    Args:
        outcome: the outcome of the release.
        rows: the number of records; defaults to the number of counted rows.
        seed: the seed for rounding and for values within cells.
        units: if True, the rows are grouped into units.
        size: an attribute whose value is the number of rows of the unit, used for grouping.
        weight: a measure; each record gets a weight, and the weights agree with the measure's
            released sums.
        whole_numbers: the binned attributes whose values are whole numbers.
    """
    workload = outcome.plan.workload
    model, mixture = fitted_model(outcome.estimator(), workload.products)
    names = model.names
    for name in whole_numbers:
        one_of("a column of whole numbers", name, names)
    unit_counts = count_units(outcome, names) if units or size is not None else None
    impossible = [
        {names.index(name): codes for name, codes in cells.items()}
        for cells in outcome.plan.details.impossible
        if set(cells) <= set(names)
    ]
    public_counts = public_counts_of_plan(outcome.plan)
    count = whole("rows", round(model.total) if rows is None else rows, 1, MOST_RECORDS)
    sums = [
        table.sums.marginal(tuple(name for name in table.sums.names if name in names))
        for table in public_counts
    ]
    fixed_sums = [(tuple(map(names.index, counts.names)), counts) for counts in sums]
    codes = draw_records(mixture, count, whole("seed", seed, 0), impossible, fixed_sums)
    records = Records(
        outcome.plan.domain,
        names,
        codes,
        model.total,
        seed,
        whole=tuple(whole_numbers),
        drawn=count,
    )
    if unit_counts is not None:
        factor = count / max(model.total, 1.0)
        records = _with_units(
            records,
            outcome,
            unit_counts.scaled(factor),
            size,
            partial(impossible_rows, impossible=impossible),
            factor,
        )
    if weight is not None:
        totals = list_weight_totals(outcome, names, weight)
        scale = count / max(model.total, 1.0)
        measure = outcome.plan.domain.measures[weight]
        random = np.random.default_rng([records.seed, 5])
        weights = rake_weights(records.codes, totals, measure, scale, random)
        records = replace(records, weights={weight: weights})
    return records


def _with_units(
    records: Records,
    outcome: Outcome,
    unit_counts: UnitCounts,
    size: str | None,
    are_impossible: Callable[[IntArray], BoolArray],
    records_per_row: float,
) -> Records:
    """Return the records with their rows grouped into units.

    Args:
        records: the records.
        outcome: the outcome of the release.
        unit_counts: the noisy counts of units, scaled to this number of rows.
        size: an attribute whose value is the number of rows of a unit; if it is None, units have
            about equal sizes.
        are_impossible: returns a mask of the rows that have an impossible combination of codes.
        records_per_row: the ratio of the number of records to the number of rows that the release
            counted.
    """
    random = np.random.default_rng([records.seed, 4])
    domain = records.domain
    max_rows = outcome.plan.privacy.max_rows
    positions = Positions(
        cells=tuple(records.names.index(name) for name in unit_counts.attributes),
        shared=tuple(records.names.index(name) for name in unit_counts.shared),
    )
    if size is None:
        grouping = group_rows(
            records.codes, unit_counts, positions, max_rows, are_impossible, random
        )
    else:
        position = records.names.index(one_of("size", size, records.names))
        size_of_code = sizes_of_codes(domain.kind(size), max_rows)
        grouping = group_rows_by_size(
            records.codes,
            size_of_code[records.codes[:, position]],
            list(dict.fromkeys([position, *positions.shared])),
            _units_by_size(records, outcome, unit_counts, size, size_of_code),
            are_impossible,
            random,
        )
    unit_column = str(outcome.plan.privacy.unit_column)
    shared = positions.shared
    if size is not None:
        shared = tuple(dict.fromkeys([records.names.index(size), *shared]))
    tables = list_member_counts(outcome, records.names, records_per_row)
    codes = exchange_members(grouping.codes, grouping.units, records.names, shared, tables, random)
    return replace(
        records,
        codes=codes,
        units={unit_column: grouping.units},
        shared=tuple(records.names[position] for position in shared),
        arranged=tuple(dict.fromkeys(chain.from_iterable(table.attributes for table in tables))),
    )


def _units_by_size(
    records: Records,
    outcome: Outcome,
    unit_counts: UnitCounts,
    size: str,
    size_of_code: IntArray,
) -> dict[int, float]:
    """Estimate the number of units of each size; empty if none are released.

    Two estimates are averaged, weighted by their precision: the counted units, and the rows divided
    by the size.
    """
    if size not in unit_counts.attributes:
        return {}
    axis = unit_counts.attributes.index(size)
    others = tuple(other for other in range(unit_counts.counts.ndim) if other != axis)
    units_by_code = unit_counts.counts.sum(axis=others)
    unit_variance = float(np.mean((unit_counts.std**2).sum(axis=others)))
    rows_by_size = np.bincount(size_of_code[records.codes[:, records.names.index(size)]])
    row_variance = _mean_count_variance(outcome, size)
    units: dict[int, float] = {}
    for rows in np.unique(size_of_code[size_of_code > 0]).tolist():
        is_size = size_of_code == rows
        variance_by_units = unit_variance * int(is_size.sum())
        variance_by_rows = row_variance * int(is_size.sum()) / rows**2
        weight = variance_by_rows / max(variance_by_units + variance_by_rows, _LEAST_VARIANCE)
        from_rows = rows_by_size[rows] / rows if rows < len(rows_by_size) else 0.0
        units[rows] = weight * float(units_by_code[is_size].sum()) + (1 - weight) * from_rows
    return units


def _mean_count_variance(outcome: Outcome, size: str) -> float:
    """Return the mean noise variance of counts by an attribute; 0 if unknown."""
    table = marginals(outcome.plan.domain, ways=1, of=[size]).products[0]
    try:
        std = outcome.estimator().estimate(table).noise_std
    except InputError:
        return 0.0
    return float(np.mean(std**2))


def _spell_values(
    kind: Kind, codes: IntArray, random: np.random.Generator, *, is_whole: bool
) -> Array:
    """Return a value for each code, in the spelling of the data.

    In bins, values are whole numbers if ``is_whole`` is True.

    The code of an irregular cell becomes a null or a text that is not in the domain. The code of
    the hidden cell becomes a null.
    """
    further_values: dict[int, Any] = dict(enumerate(kind.further_labels, kind.regular))
    if kind.null_cell in further_values:
        further_values[kind.null_cell] = next(iter(kind.reading.nulls), None)
    if kind.hidden:
        further_values[kind.published] = None
    regular_codes = np.minimum(codes, kind.regular - 1)
    if isinstance(kind, (Bins, Edges)) and (is_whole or _can_use_whole_numbers(kind)):
        values = _draw_whole_numbers(kind, regular_codes, random)
    else:
        values = _draw_values(kind, regular_codes, random)
    if further_values:
        values = [
            further_values.get(code, value)
            for code, value in zip(codes.tolist(), values, strict=True)
        ]
    if any(isinstance(value, str) for value in values):  # a column must have one type
        values = [_text_or_null(value) for value in values]
    if None in values or isinstance(values[0], str):
        return np.array(values, dtype=object)
    return np.array(values)


def _text_or_null(value: object) -> str | None:
    """Return a value as text, or None for None."""
    if value is None:
        return None
    return str(value)


def _can_use_whole_numbers(kind: Bins | Edges) -> bool:
    """Return whether bins are wide enough to use whole numbers as values."""
    edges = [Fraction(edge) for edge in kind.edges]
    return all(edge.denominator == 1 for edge in edges) and all(
        high - low >= _LEAST_WHOLE_WIDTH for low, high in pairwise(edges)
    )


def _draw_whole_numbers(
    kind: Bins | Edges, codes: IntArray, random: np.random.Generator
) -> list[Any]:
    """Return a random whole number in the bin of each code.

    Raises:
        InputError: a bin has no whole number.
    """
    edges = [Fraction(edge) for edge in kind.edges]
    if kind.closed == "left":
        first = [math.ceil(low) for low in edges[:-1]]
        last = [math.ceil(high) - 1 for high in edges[1:]]
    else:
        first = [math.floor(low) + 1 for low in edges[:-1]]
        last = [math.floor(high) for high in edges[1:]]
    for low, high, label in zip(first, last, kind.regular_labels, strict=True):
        if low > high:
            raise InputError(
                f"Whole numbers are possible only if every bin contains one; the bin {label} "
                "contains none. Leave out the column, or choose wider bins in a release."
            )
    lows = np.array(first, dtype=np.int64)
    highs = np.array(last, dtype=np.int64)
    return list(random.integers(lows[codes], highs[codes], endpoint=True).tolist())


@singledispatch
def _draw_values(
    kind: Kind,
    codes: IntArray,
    random: np.random.Generator,  # noqa: ARG001 - one signature for all kinds
) -> list[Any]:
    """Return a value in the cell of each code; by default, the cell's label."""
    labels = [_with_decimal_mark(label, kind.reading.decimal) for label in kind.regular_labels]
    return [labels[code] for code in codes.tolist()]


def _with_decimal_mark(label: Any, mark: str) -> Any:
    """Return a label; a number in text form gets the decimal mark of the data."""
    if isinstance(label, str) and label.lstrip("-").replace(".", "", 1).isdigit():
        return label.replace(".", mark)
    return label


@_draw_values.register(Bins)
@_draw_values.register(Edges)
def _(kind: Bins | Edges, codes: IntArray, random: np.random.Generator) -> list[Any]:
    """Return a random number in the bin of each code."""
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
    """Return a random date or time in the period of each code."""
    first = (kind.start - _EPOCH.date()).days
    days = (kind.end - kind.start).days + 1
    with_time = kind.by in ("hour", "hour_of_day")
    part = random.random(len(codes))
    if with_time:
        hours = first * _HOURS_PER_DAY + codes
        if kind.by == "hour_of_day":
            hours += np.floor(part * days).astype(np.int64) * _HOURS_PER_DAY
    else:
        cells = np.array(
            [period_of((first + day) * _HOURS_PER_DAY, kind.by) - kind.first for day in range(days)]
        )
        order = np.argsort(cells, kind="stable")
        begin, end = (np.searchsorted(cells[order], codes, side=side) for side in ("left", "right"))
        positions = begin + np.floor(part * (end - begin)).astype(np.int64)
        hours = (first + order[np.minimum(positions, days - 1)]) * _HOURS_PER_DAY
    seconds = hours * 3600 + (random.integers(0, 3600, len(codes)) if with_time else 0)
    written_as: Any = kind_to_json(kind).get("format") or (
        "%Y-%m-%d %H:%M:%S" if with_time else "%Y-%m-%d"
    )
    return [
        _format_moment(_EPOCH + dt.timedelta(seconds=second), written_as)
        for second in seconds.tolist()
    ]


def _format_moment(moment: dt.datetime, written_as: str) -> str:
    """Return a date or time as text in the format of its column."""
    parts = {"Y": f"{moment.year:04}", "m": f"{moment.month:02}", "d": f"{moment.day:02}", "%": "%"}
    parts |= {"H": f"{moment.hour:02}", "M": f"{moment.minute:02}", "S": f"{moment.second:02}"}
    return re.sub("%(.)", lambda match: parts[match[1]], written_as)
