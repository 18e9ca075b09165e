"""The tables of a release: one a product of the workload, computed when it is asked for."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._charts import live, vega_lite
from leastnoise._check import Exact, InputError, html_facts
from leastnoise._check.arrays import Array, FloatArray
from leastnoise._estimate import Answer, Estimator, estimates, non_negative, whole_numbers
from leastnoise._frames import Columns, Names, key_columns, label_array, to_frame
from leastnoise._release._extras import table_place
from leastnoise._release._keys import axes, picture
from leastnoise._release._options import Options
from leastnoise._release._rounding import Rounded, published, rounded
from leastnoise._release._taken import Taken
from leastnoise._release._texts import texts
from leastnoise._workload import Product, QuerySet

Label = str | int
NUMBERS = (
    "answer",
    "noise_std",
    "approximation_std",
    "low",
    "high",
    "answer_non_negative",
    "answer_integer",
    "answer_nnls",
    "nnls_rmse",
    "answer_local",
)
MOST_SHOWN = 12  # cells of a table in a notebook
_TOGETHER = 2**18  # answers that are estimated at once, where tables are taken one after the other


@dataclass(frozen=True, slots=True)
class Interval:
    """How wide intervals are to either side."""

    multiplier: float
    half_step: float
    one_sided: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Table:
    """The answers to one product of the workload, in rows or in the measure's own unit."""

    id: str
    name: str
    product: Product
    labels: tuple[tuple[Label, ...], ...]
    answer: FloatArray
    noise_std: FloatArray
    low: FloatArray
    high: FloatArray
    non_negative: FloatArray | None = None
    integer: Array | None = None
    nnls: FloatArray | None = None
    nnls_rmse: FloatArray | None = None
    approximation_std: FloatArray | None = None
    local: FloatArray | None = None
    rounded_to: Fraction = Fraction(0)
    privacy: Privacy | None = None
    library: str | None = None

    @property
    def cells(self) -> int:
        """Number of answers."""
        return self.answer.size

    @property
    def rmse(self) -> float:
        """Square root of the mean variance of the answers, with what is known of their approximation."""
        rest = 0.0 if self.approximation_std is None else np.nan_to_num(self.approximation_std)
        return math.sqrt(float(np.mean(self.noise_std**2 + rest**2)))

    def numbers(self) -> Columns:
        """The columns of numbers, flat in row-major order, without those that do not apply."""
        unbiased = (self.answer, self.noise_std, self.approximation_std, self.low, self.high)
        values = (*unbiased, self.non_negative, self.integer, self.nnls, self.nnls_rmse, self.local)
        return {name: value.reshape(-1) for name, value in zip(NUMBERS, values, strict=True) if value is not None}

    @property
    def typical_margin(self) -> float:
        """How far an interval reaches: the root mean square over the table, in rows or in the measure's own unit."""
        squares = self.margins**2
        known = squares[~np.isnan(squares)]
        return math.sqrt(float(np.mean(known))) if known.size else 0.0

    @property
    def largest_margin(self) -> float:
        """How far the widest interval reaches, in rows or in the measure's own unit."""
        return float(np.max(self.margins, initial=0.0, where=~np.isnan(self.margins)))

    @property
    def margins(self) -> FloatArray:
        """How far the intervals reach from the answers, to the farther side where they differ; NaN where the answer is left out."""
        return np.maximum(self.high - self.answer, self.answer - self.low)

    def columns(self) -> Columns:
        """The table in long form: ``query``, one key column an attribute, then `numbers`; all of one length.

        Keys are int64 where every label is a whole number, else text.
        """
        places = np.unravel_index(np.arange(self.cells), self.answer.shape) if self.labels else ()
        keys = {
            column: label_array(labels)[place]
            for column, labels, place in zip(key_columns(self.product.attributes, NUMBERS), self.labels, places, strict=True)
        }
        return {"query": np.full(self.cells, self.id, dtype=object), **keys, **self.numbers()}

    def frame(self, library: str | None = None) -> Any:
        """The columns as a data frame of pandas, polars or pyarrow; None for that of the data, or else the first that is installed.

        Beside a key of numbers stand its ends, ``age_low`` and ``age_high``; beside one of periods its first day or hour, ``month_start``.
        """
        return to_frame(self.framed(), library or self.library)

    def framed(self) -> Columns:
        """`columns` with numbers and days beside the labels that stand for them."""
        columns = self.columns()
        places = np.unravel_index(np.arange(self.cells), self.answer.shape) if self.labels else ()
        made: Columns = {"query": columns.pop("query")}
        names = Names({"query", *columns})
        keys = zip(key_columns(self.product.attributes, NUMBERS), axes(self.product, self.labels), places, strict=True)
        for key, axis, place in keys:
            made[key] = columns.pop(key)
            if axis.first is not None and axis.last is not None:
                made[names.give(f"{key}_low")], made[names.give(f"{key}_high")] = axis.first[place], axis.last[place]
            elif axis.moments:
                made[names.give(f"{key}_start")] = np.array(axis.moments, dtype="datetime64[ms]")[place]
        return made | columns

    def rounded(self, to: Exact, below: Exact | None = None) -> Rounded:
        """Rounded to multiples of ``to``, without answers below ``below``; its margins hold what that adds. It costs nothing."""
        return rounded(self, to, below)

    def plot(self) -> Any:
        """The table as an Altair chart, which notebooks show: bars, lines, steps or shades with intervals, or its largest cells."""
        spec = vega_lite(picture(self, texts()))
        if spec is None:
            raise InputError(f"The table {self.id} ({self.name}) is a single number, {self}; there is nothing to draw.")
        return live(spec)

    def __repr__(self) -> str:
        said = texts()
        what = said.value(float(self.answer.item()), float(self.margins.item())) if self.cells == 1 else said.some("answers", self.cells)
        return f"Table({self.id} {self.name!r}: {what}, typical margin {said.error(self.typical_margin)})"

    def _repr_html_(self) -> str:
        said = texts()
        pairs = list(zip(self.cell_names()[:MOST_SHOWN], self.answer.reshape(-1)[:MOST_SHOWN], strict=False))
        margins = self.margins.reshape(-1)
        rows = [(name, said.value(float(answer), float(margin))) for (name, answer), margin in zip(pairs, margins, strict=False)]
        if self.cells > MOST_SHOWN:
            rows.append(("...", f"{self.cells - MOST_SHOWN:,} more; .frame() has all"))
        return html_facts(repr(self), rows)

    def cell_names(self) -> list[str]:
        """One text a cell, such as ``sex=F, age <= 30``; ``total`` where no attribute is asked about."""
        texts = [""]
        for name, labels in zip(self.product.attributes, self.labels, strict=True):
            own = [f"{name} {label}" if str(label).startswith("<") else f"{name}={label}" for label in labels]
            texts = [f"{text}, {one}" if text else one for text in texts for one in own]
        return texts if self.labels else ["total"]


class Tables(Taken[Table]):
    """All tables of a release, each computed when it is taken, so that a release of any size fits in memory.

    Take them by place, by id (``"q1"``) or by name where only one table has it (``"sex x age"``).
    """

    _called = "table"

    def __init__(
        self,
        estimator: Estimator,
        products: tuple[Product, ...],
        options: Options,
        interval: Interval,
        joint: Mapping[str | None, Estimator] | None = None,
        local: Mapping[str | None, Estimator] | None = None,
        library: str | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        self.library, self._privacy = library, privacy
        self._estimator = estimator
        self._joint = joint or {}
        self._local = local or {}
        self._products = products
        self._options = options
        self._interval = interval
        self._labels: dict[tuple[str, QuerySet], tuple[Label, ...]] = {}
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._products)

    def place(self, key: str) -> int:
        """The position of a table, by id or by a name that only one table has."""
        if key not in self._places:
            self._places[key] = table_place(self._products, key)
        return self._places[key]

    def labels(self, product: Product) -> tuple[tuple[Label, ...], ...]:
        """The labels of a product; those of a query set are made once."""
        found = []
        for pair in zip(product.attributes, product.query_sets, strict=True):
            if pair not in self._labels:
                name, queries = pair
                self._labels[pair] = queries.labels(name, product.domain.kind(name))
            found.append(self._labels[pair])
        return tuple(found)

    def __iter__(self) -> Iterator[Table]:
        return self.first(len(self))

    def first(self, count: int) -> Iterator[Table]:
        """So many tables from the first on, and no others, one after the other."""
        products = self._products[:count]
        start = cells = 0
        for stop, product in enumerate(products, 1):
            cells += product.rows
            if cells >= _TOGETHER or stop == len(products):
                for place, found in enumerate(estimates(self._estimator, products[start:stop]), start):
                    yield self._made(place, found)
                start, cells = stop, 0

    def _taken(self, place: int) -> Table:
        return self._made(place, self._estimator.estimate(self._products[place]))

    def _made(self, place: int, found: Answer) -> Table:
        product, options, interval = self._products[place], self._options, self._interval
        biased = non_negative(product, found.values) if options.non_negative else None
        rounded = whole_numbers(product, found.values if biased is None else biased) if options.integer else None
        answer, rest = in_unit(product, found.values), found.approximation_std
        below, above = (in_unit(product, one) for one in found.reaches(interval.multiplier, interval.one_sided, interval.half_step))
        cells, local = (
            None if one is None else one.estimate(product) for one in (kind.get(product.measure) for kind in (self._joint, self._local))
        )
        made = Table(
            id=f"q{place + 1}",
            name=product.name,
            product=product,
            labels=self.labels(product),
            library=self.library,
            privacy=self._privacy,
            answer=answer,
            noise_std=in_unit(product, found.noise_std),
            approximation_std=None if rest is None else in_unit(product, rest),
            low=answer - below,
            high=answer + above,
            non_negative=None if biased is None else in_unit(product, biased),
            integer=rounded if rounded is None or product.measure is None else in_unit(product, rounded.astype(np.float64)),
            nnls=None if cells is None else in_unit(product, cells.values),
            nnls_rmse=None if cells is None else in_unit(product, cells.std),
            local=None if local is None else in_unit(product, local.values),
        )
        return published(made, options)


def in_unit(product: Product, values: FloatArray) -> FloatArray:
    """Counted multiples of a measure's unit as amounts: 12345 at the unit 0.01 is 123.45, correctly rounded.

    Guarantees: the nearest double to the exact decimal, while products stay below 2^53: 12345 is divided by 100, not multiplied by 0.01.
    """
    if product.measure is None:
        return values
    unit = product.domain.measures[product.measure].unit
    return values * float(unit.numerator) / float(unit.denominator)
