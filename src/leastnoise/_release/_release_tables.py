"""Compute the tables of a release, one for each product of the workload.

Tables are computed on access, and rounded as the options request. People are protected by the
noise, not by the rounding or suppression of small answers. Rounding and suppression only remove
information: they cost nothing and widen the error bars.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np

from leastnoise._charts import Picture, draw_chart, make_altair_chart
from leastnoise._estimation import (
    Answer,
    Combination,
    ConsistentCells,
    Estimator,
    PublicCounts,
    estimate_products,
    finest_table,
    make_consistent,
    make_top_down,
    non_negative,
    projection_method,
    public_sums_on,
    round_controlled,
    round_to_public_sums,
    scale_to_public_sums,
    top_down_measures,
    whole_numbers,
)
from leastnoise._frames import Columns, UniqueNames, label_array, name_key_columns, to_frame
from leastnoise._release._options import (
    Options,
    display_texts,
    find_table_position,
    product_rounding,
)
from leastnoise._release._survey import (
    SAMPLING_COLUMNS,
    SamplingErrors,
    Survey,
    combine_errors,
    is_weighted,
    read_survey,
)
from leastnoise._texts import (
    NO_NAMES,
    Catalogue,
    CodeTexts,
    Names,
    display_labels,
    key_headings,
    load_catalogue,
    make_axes,
    make_picture,
)
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import Exact, InputError, exact_positive, html_facts
from leastnoise._trusted.check.arrays import Array, BoolArray, FloatArray
from leastnoise._workload import Product, QuerySet, with_hidden_groups

Label = str | int
# Fields of `AnswerTable` that only some options fill, by the name of their column. A new column is
# a line here, and a field.
_OPTIONAL_FIELDS = {
    "answer_non_negative": "non_negative",
    "answer_integer": "integer",
    "answer_nnls": "nnls",
    "nnls_rmse": "nnls_rmse",
    "answer_local": "local",
    "answer_top_down": "top_down",
}
_UNROUNDED_COLUMNS = ("nnls_rmse",)  # errors, which rounding of answers leaves as they are
NUMBER_COLUMNS = (
    "answer",
    "noise_std",
    "approximation_std",
    "low",
    "high",
    *_OPTIONAL_FIELDS,
    *SAMPLING_COLUMNS,
)
_ROUNDING_TOLERANCE = 1e-6  # in steps; tolerance for a floating-point multiple of the step
MOST_SHOWN_CELLS = 12  # cells of a table that a notebook shows
_MOST_BATCH_ANSWERS = 2**18  # answers that are estimated together during iteration


@dataclass(frozen=True, slots=True)
class IntervalWidth:
    """How far intervals extend on each side of an answer.

    Attributes:
        multiplier: the half width of two-sided intervals, in standard errors.
        half_step: half a step of the noise grid, which is added to every half width.
        one_sided: the width of one-sided intervals of this level, in standard errors.
    """

    multiplier: float
    half_step: float
    one_sided: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ResultTable:
    """Values and intervals for every combination of the labels of some keys.

    This is the base class of tables and statistics, which have columns, frames and charts.

    Attributes:
        id: the id in the release, such as ``q1`` or ``s1``.
        name: the name of the table or statistic.
        unit_name: the unit of the values: a measure, units or a share; empty for rows.
        attributes: the attribute of each key; ``code_texts`` has the texts of labels by attribute.
        labels: for each key, its labels.
        low: the lower ends of the intervals, with one axis for each key.
        high: the upper ends of the intervals.
        value_name: the name of the column of values.
        library: the library of data frames; None to choose an installed one.
        code_texts: the text of each code, by attribute.
        sampling: the sampling errors of a survey; None if none are stated.
        display_names: the display names of the release.
    """

    id: str
    name: str
    unit_name: str
    attributes: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    low: FloatArray
    high: FloatArray
    value_name: str = "answer"
    library: str | None = None
    code_texts: CodeTexts = field(default_factory=dict)
    sampling: SamplingErrors | None = None
    display_names: Names = NO_NAMES

    @abstractmethod
    def key_columns(self) -> list[str]:
        """Return the names of the key columns.

        If a key column would have the name of a column of numbers, a number is appended to its
        name.
        """

    @abstractmethod
    def numbers(self) -> Columns:
        """Return the columns of numbers by name, flat in row-major order.

        Optional columns without values are omitted.
        """

    @abstractmethod
    def chart_spec(self, catalogue: Catalogue) -> dict[str, Any] | None:
        """Return a chart as a Vega-Lite specification; None if there is no chart."""

    @property
    def display_labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each key for display.

        If a code has a text, the text replaces it.
        """
        return display_labels(self.labels, self.attributes, self.code_texts)

    @property
    def cells(self) -> int:
        """The number of values."""
        return int(self.low.size)

    def indices(self) -> list[Array]:
        """Return, for each key, the index of each value's label, shape (values,)."""
        return [axis.reshape(-1) for axis in np.indices(self.low.shape, dtype=np.int32)]

    @property
    def low_with_sampling(self) -> FloatArray:
        """The lower ends of intervals that include a stated sampling error."""
        if self.sampling is None:
            return self.low
        return self.sampling.both_low

    @property
    def high_with_sampling(self) -> FloatArray:
        """The upper ends of intervals that include a stated sampling error."""
        if self.sampling is None:
            return self.high
        return self.sampling.both_high

    @property
    def flag_counts(self) -> tuple[int, ...]:
        """The number of values with each reliability flag; empty if there are no flags."""
        if self.sampling is None:
            return ()
        return self.sampling.flag_counts

    def sampling_columns(self) -> Columns:
        """Return the columns of the sampling errors, or none if none are stated."""
        if self.sampling is None:
            return {}
        return self.sampling.columns()

    def sampling_without(self, is_suppressed: BoolArray) -> SamplingErrors | None:
        """Return the sampling errors with NaN for suppressed values, or None."""
        if self.sampling is None:
            return None
        return self.sampling.without(is_suppressed)

    def columns(self) -> Columns:
        """Return the long form: the column ``query``, the keys, then the numbers.

        A key column is int64 if every label is a whole number, and text otherwise.
        """
        keys = [
            label_array(labels)[index]
            for labels, index in zip(self.labels, self.indices(), strict=True)
        ]
        return {
            "query": np.full(self.cells, self.id, dtype=object),
            **dict(zip(self.key_columns(), keys, strict=True)),
            **self.numbers(),
        }

    def frame_columns(self) -> Columns:
        """Return the columns of the data frame by name."""
        return self.columns()

    def frame(self, library: str | None = None) -> Any:
        """Return the columns as a data frame of pandas, polars or pyarrow.

        ``library`` defaults to the library of the data if they were a data frame, and otherwise to
        the first that is installed.

        In a table, a key of numbers is followed by two columns with the bounds of its cells, such
        as ``age_low`` and ``age_high``. A key of periods is followed by their first day or hour,
        such as ``month_start``.
        """
        return to_frame(self.frame_columns(), library or self.library)

    def plot(self) -> Any:
        """Return an Altair chart, which notebooks show.

        The keys determine the kind of chart, such as bars with intervals or lines over time.
        """
        spec = self.chart_spec(replace(load_catalogue(), names=self.display_names))
        if spec is None:
            raise InputError(
                f"{self.id} ({self.name}) is a single number, or has too many numbers for a "
                f"chart: {self}. Nothing can be drawn."
            )
        return make_altair_chart(spec, self.name)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class AnswerTable(ResultTable):
    """The answers to one product of the workload, with errors and intervals.

    All numbers are in rows or in the unit of the measure. Arrays have one axis for each key.

    Attributes:
        product: the queries.
        answer: the unbiased answers.
        noise_std: the standard errors of the noise.
        non_negative: the non-negative answers; None if not requested.
        integer: the answers as non-negative whole numbers; None if not requested.
        nnls: the answers of non-negative least squares; None if not requested.
        nnls_rmse: the simulated root mean square errors of ``nnls``.
        approximation_std: the estimated standard errors of an approximation; None without one.
        local: the locally non-negative answers; None if not requested.
        top_down: the consistent whole answers, from the total down; None if not requested.
        rounded_to: the step to which answers are rounded; 0 without rounding.
        privacy: the privacy of the release; None for counts and totals of units, which use
            all rows of a unit.
    """

    product: Product
    answer: FloatArray
    noise_std: FloatArray
    non_negative: FloatArray | None = None
    integer: Array | None = None
    nnls: FloatArray | None = None
    nnls_rmse: FloatArray | None = None
    approximation_std: FloatArray | None = None
    local: FloatArray | None = None
    top_down: Array | None = None
    rounded_to: Fraction = Fraction(0)
    privacy: Privacy | None = None

    @property
    def rmse(self) -> float:
        """The root mean square error of the answers, including approximation."""
        return math.sqrt(float(np.mean(self.error_std**2)))

    @property
    def error_std(self) -> FloatArray:
        """The standard errors of the answers from noise and approximation together."""
        return np.sqrt(self.noise_std**2 + self._known_approximation_std**2)

    @property
    def _known_approximation_std(self) -> FloatArray:
        """The standard errors of the approximation; 0 if they are unknown."""
        if self.approximation_std is None:
            return np.zeros_like(self.noise_std)
        return np.nan_to_num(self.approximation_std)

    def numbers(self) -> Columns:
        """Return the columns of numbers by name, flat in row-major order.

        Optional columns without values are omitted.
        """
        columns: dict[str, Array | None] = {
            "answer": self.answer,
            "noise_std": self.noise_std,
            "approximation_std": self.approximation_std,
            "low": self.low,
            "high": self.high,
        }
        for column, name in _OPTIONAL_FIELDS.items():
            columns[column] = getattr(self, name)
        numbers = {
            name: values.reshape(-1) for name, values in columns.items() if values is not None
        }
        return numbers | self.sampling_columns()

    @property
    def typical_margin(self) -> float:
        """The root mean square of the margins; NaN if all answers are suppressed.

        The margin is in rows or in the unit of the measure, and includes a stated sampling error.
        """
        return _root_mean_square(self.margins_with_sampling)

    @property
    def typical_noise_margin(self) -> float:
        """The root mean square of margins without sampling errors; NaN without any."""
        return _root_mean_square(self.margins)

    @property
    def largest_margin(self) -> float:
        """The margin of the widest interval; NaN if all answers are suppressed.

        The margin is in rows or in the unit of the measure, and includes a stated sampling error.
        """
        published_margins = self.margins_with_sampling[~np.isnan(self.margins_with_sampling)]
        if published_margins.size:
            return float(published_margins.max())
        return math.nan

    @property
    def margins(self) -> FloatArray:
        """The distance from each answer to the farther end of its interval.

        The distance is NaN if the answer is suppressed.
        """
        return np.maximum(self.high - self.answer, self.answer - self.low)

    @property
    def margins_with_sampling(self) -> FloatArray:
        """The margins of the answers, including a stated sampling error.

        The result equals `margins` if no sampling error is stated.
        """
        if self.sampling is None:
            return self.margins
        return np.maximum(
            self.high_with_sampling - self.answer, self.answer - self.low_with_sampling
        )

    def key_columns(self) -> list[str]:
        """Return the names of the key columns.

        If a key column would have the name of a column of numbers, a number is appended to its
        name.
        """
        return name_key_columns(self.product.keys, NUMBER_COLUMNS)

    def frame_columns(self) -> Columns:
        """Return `columns` and further columns for the bounds of keys."""
        columns = self.columns()
        keys: Columns = {"query": columns.pop("query")}
        names = UniqueNames({"query", *columns})
        for key, axis, index in zip(
            self.key_columns(),
            make_axes(self.product, self.labels, load_catalogue()),
            self.indices(),
            strict=True,
        ):
            keys[key] = columns.pop(key)
            if axis.first is not None and axis.last is not None:
                keys[names.make_unique(f"{key}_low")] = axis.first[index]
                keys[names.make_unique(f"{key}_high")] = axis.last[index]
            elif axis.moments:
                keys[names.make_unique(f"{key}_start")] = np.array(
                    axis.moments, dtype="datetime64[ms]"
                )[index]
        return keys | columns

    def rounded(self, to: Exact | None, below: Exact | None = None) -> "RoundedTable":
        """Return the table rounded to multiples of ``to``, without small answers.

        The function suppresses answers below ``below``. The margins are widened to include the
        rounding. Rounding costs nothing.
        """
        if to is None:
            step = Fraction(0)
        else:
            step = exact_positive("the rounding step", to)
        if below is None:
            bound = None
        else:
            bound = exact_positive("below which answers are left out", below)
        half_step = float(step) / 2
        answers = self.answer.reshape(-1)
        high = self.high.reshape(-1)
        reach_below = answers - self.low.reshape(-1)
        reach_above = high - answers
        error = self.error_std.reshape(-1)
        rounded = round_to_multiples(answers, step)
        is_published = ~np.isnan(answers)
        if bound is not None:
            is_published = answers >= float(bound)
        # This is the upper bound of an answer suppressed here. An answer suppressed before has
        # another bound.
        suppressed_high = np.where(np.isnan(answers), high, reach_above + float(bound or 0))
        margin = np.maximum(reach_below, reach_above) + half_step
        std_error = error + half_step + float(self.rounded_to) / 2
        return RoundedTable(
            table=self,
            step=step,
            below=bound,
            answer=np.where(is_published, rounded, np.nan),
            margin=np.where(is_published, margin, np.nan),
            low=np.where(is_published, rounded - (reach_below + half_step), np.nan),
            high=np.where(is_published, rounded + (reach_above + half_step), suppressed_high),
            std_error=np.where(is_published, std_error, np.nan),
        )

    def picture(self, catalogue: Catalogue, *, has_caption: bool = False) -> Picture:
        """Return the data from which the chart is drawn.

        Args:
            catalogue: the sentences of the language.
            has_caption: whether a caption states the row limit of units. If False, the axis of
                answers states the limit.
        """
        return make_picture(
            self.product,
            self.display_labels,
            self.answer,
            self.low_with_sampling,
            self.high_with_sampling,
            None if has_caption else self.privacy,
            catalogue,
        )

    def chart_spec(self, catalogue: Catalogue) -> dict[str, Any] | None:
        """Return the chart as a Vega-Lite specification; None for one number."""
        return draw_chart(self.picture(catalogue))

    def __repr__(self) -> str:
        catalogue = load_catalogue()
        if self.cells == 1:
            content = catalogue.format_answer(float(self.answer.item()), float(self.margins.item()))
        else:
            content = catalogue.say_count("answers", self.cells)
        return (
            f"AnswerTable({self.id} {self.name!r}: {content}, typical margin "
            f"{catalogue.format_error(self.typical_margin)})"
        )

    def _repr_html_(self) -> str:
        """Return the first answers as an HTML table, for notebooks."""
        catalogue = load_catalogue()
        values = zip(
            self.cell_names()[:MOST_SHOWN_CELLS],
            self.answer.reshape(-1).tolist(),
            self.margins.reshape(-1).tolist(),
            strict=False,
        )
        rows = [(name, catalogue.format_answer(answer, margin)) for name, answer, margin in values]
        if self.cells > MOST_SHOWN_CELLS:
            rows.append(("...", f"{self.cells - MOST_SHOWN_CELLS:,} more; .frame() has all"))
        return html_facts(repr(self), rows)

    def cell_names(self, catalogue: Catalogue | None = None) -> list[str]:
        """Return a name for each cell, such as ``sex=F, age <= 30``.

        The only cell of a table without attributes is ``total``.

        Args:
            catalogue: the catalogue with the display names of the keys; if None, the names in files
                are used.
        """
        if not self.labels:
            return ["total"]
        keys_of_table = self.product.keys
        if catalogue is not None:
            keys_of_table = key_headings(self.product.along, catalogue)
        labels_of_keys = display_labels(
            self.labels, self.attributes, self.code_texts, typeset=catalogue is not None
        )
        names_of_keys = [
            [_name_cell(name, label) for label in labels]
            for name, labels in zip(keys_of_table, labels_of_keys, strict=True)
        ]
        return [", ".join(names) for names in itertools.product(*names_of_keys)]


def _name_cell(name: str, label: str) -> str:
    """Return a key with its label, such as ``sex=F`` or ``age <= 30``."""
    if label.startswith("<"):
        return f"{name} {label}"
    return f"{name}={label}"


def _root_mean_square(margins: FloatArray) -> float:
    """Return the root mean square of the published margins; NaN without any."""
    published = margins[~np.isnan(margins)]
    if not published.size:
        return math.nan
    return math.sqrt(float(np.mean(published**2)))


def typical_half_width(low: FloatArray, high: FloatArray) -> float:
    """Return the root mean square of the finite half widths; NaN without any."""
    half_widths = (high - low) / 2
    published = half_widths[np.isfinite(half_widths)]
    if not published.size:
        return math.nan
    return math.sqrt(float(np.mean(published**2)))


def round_table(
    table: AnswerTable, options: Options, controlled: FloatArray | None = None
) -> AnswerTable:
    """Return a table rounded and suppressed as the options request.

    Args:
        table: the table.
        options: the options with the rounding step and the lowest published answer.
        controlled: the answers after controlled rounding; if it is None, each answer is rounded to
            the nearest multiple.

    Guarantees: see `RoundedTable`. For a suppressed answer, the other columns reveal only that it
        is below the bound.
    """
    step, bound = product_rounding(options, table.product)
    if not step and bound is None:
        return table
    rounded = table.rounded(step or None, bound)
    shape = table.answer.shape
    is_suppressed = np.isnan(rounded.answer.reshape(shape))

    rounded_fields: dict[str, Any] = {}
    for column, name in _OPTIONAL_FIELDS.items():
        values = getattr(table, name)
        if values is not None:
            column_step = Fraction(0) if column in _UNROUNDED_COLUMNS else step
            multiples = round_to_multiples(values.astype(np.float64), column_step)
            rounded_fields[name] = np.where(is_suppressed, np.nan, multiples)
    if controlled is not None:
        table = _replace_answers(table, controlled, float(step))
        rounded = replace(
            rounded,
            answer=np.where(is_suppressed, np.nan, table.answer),
            low=np.where(is_suppressed, np.nan, table.low),
            high=np.where(is_suppressed, rounded.high.reshape(shape), table.high),
        )
    return replace(
        table,
        answer=rounded.answer.reshape(shape),
        low=rounded.low.reshape(shape),
        high=rounded.high.reshape(shape),
        rounded_to=step,
        **rounded_fields,
    )


def _replace_answers(table: AnswerTable, answers: FloatArray, step: float) -> AnswerTable:
    """Replace the answers of a table by rounded answers, and widen its intervals.

    Intervals are widened by whole steps that cover the largest change of an answer. One step
    suffices, unless controlled rounding within one step does not exist.
    """
    farthest = float(np.abs(answers - table.answer).max(initial=0.0))
    reach = step * max(1, math.ceil(farthest / step - _ROUNDING_TOLERANCE))
    return replace(
        table,
        answer=answers,
        low=answers - (table.answer - table.low) - reach,
        high=answers + (table.high - table.answer) + reach,
    )


def add_sampling_errors(table: AnswerTable, survey: Survey | None, level: float) -> AnswerTable:
    """Add sampling errors to a table, and suppress answers with a large CV.

    The errors are computed from published answers and public figures of the spec. A suppressed
    answer is NaN in all columns.
    """
    if survey is None:
        return table
    rule = survey.rule_of_table(table.product)
    if rule is None:
        return table
    weighted = is_weighted(table.product.domain, table.product.measure)
    sampling = combine_errors(
        table.answer,
        table.low,
        np.where(np.isnan(table.answer), np.nan, table.high),
        table.error_std,
        rule.standard_errors(table.answer, has_weights=weighted),
        level,
        survey.flags,
    )
    return suppress_cells(replace(table, sampling=sampling), sampling.is_suppressed)


def suppress_cells(table: AnswerTable, is_suppressed: BoolArray) -> AnswerTable:
    """Return a table without the suppressed answers.

    ``noise_std`` of suppressed answers is kept. If an answer was missing before, its upper bound is
    also kept.
    """
    if not is_suppressed.any():
        return table

    published_fields: dict[str, Any] = {}
    for name in ("approximation_std", *_OPTIONAL_FIELDS.values()):
        values = getattr(table, name)
        if values is not None:
            published_fields[name] = np.where(is_suppressed, np.nan, values.astype(np.float64))
    # An answer below the lowest published answer is already NaN, and keeps its upper bound.
    is_dropped = is_suppressed & ~np.isnan(table.answer)
    return replace(
        table,
        sampling=table.sampling_without(is_suppressed),
        answer=np.where(is_dropped, np.nan, table.answer),
        low=np.where(is_dropped, np.nan, table.low),
        high=np.where(is_dropped, np.nan, table.high),
        **published_fields,
    )


@dataclass(frozen=True, slots=True, eq=False)
class RoundedTable:
    """A table after rounding and suppression.

    Arrays are flat, with one entry for each answer in row-major order.

    Attributes:
        table: the table before rounding.
        step: the step of rounding; 0 without rounding.
        below: the number below which answers are suppressed; None without suppression.
        answer: the rounded answers; NaN if suppressed.
        margin: the half widths of the intervals.
        low: the lower ends of the intervals.
        high: the upper ends, or the upper bounds on suppressed answers.
        std_error: the standard errors, with the error of rounding.

    Guarantees: the interval of a cell contains the true answer with at least the probability that
        is the table's level. The bound ``high`` of a suppressed answer holds with the same
        probability. Both fail only if the interval of the unrounded table fails.
    """

    table: AnswerTable
    step: Fraction
    below: Fraction | None
    answer: FloatArray
    margin: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray

    def columns(self) -> dict[str, Array]:
        """Return the columns of the rounded table in long form.

        The columns are ``query``, one key for each attribute, answer, std_error, margin, low and
        high.
        """
        keys = {
            name: values
            for name, values in self.table.columns().items()
            if name not in self.table.numbers()
        }
        numbers = {
            "answer": self.answer,
            "std_error": self.std_error,
            "margin": self.margin,
            "low": self.low,
            "high": self.high,
        }
        return {**keys, **numbers}

    def frame(self, library: str | None = None) -> Any:
        """Return the columns as a data frame of pandas, polars or pyarrow.

        ``library`` defaults to the library of the data if they were a data frame, and otherwise to
        the first that is installed.
        """
        return to_frame(self.columns(), library or self.table.library)

    def describe(self) -> str:
        """Return sentences on the rounding and its effect on error bars."""
        catalogue = load_catalogue()
        size = self.answer.size
        sentences = []
        if self.step:
            step = catalogue.format_value(self.step)
            half = catalogue.format_value(self.step / 2)
            sentences.append(
                f"Answers are rounded to multiples of {step}, which adds at most {half} to every "
                "margin and standard error."
            )
        suppressed_before = int(np.isnan(self.table.answer).sum())
        if self.below is not None:
            below = catalogue.format_value(self.below)
            count = int(np.isnan(self.answer).sum()) - suppressed_before
            sentences.append(
                f"{count} of {size} answers are below {below} and are left out. For each of these "
                f"answers, high is a bound: the true answer is at most {below} plus the margin "
                "that the answer had."
                if count
                else f"No answer is below {below}."
            )
        if suppressed_before:
            sentences.append(
                f"{suppressed_before} of {size} answers were already left out by the release; for "
                "each, high is an upper bound."
            )
        sentences.append(
            "Sums of rounded answers also add up the rounding errors. Compute sums from the "
            "release first, and round them afterwards."
        )
        return " ".join(sentences)


def round_to_multiples(values: FloatArray, step: Fraction) -> FloatArray:
    """Return the nearest multiples of a step; a step of 0 keeps the values."""
    if not step:
        return values
    return np.rint(values / float(step)) * float(step.numerator) / float(step.denominator) + 0.0


Item = TypeVar("Item", bound=ResultTable)


class LazySequence(Sequence[Item], Generic[Item]):
    """The tables or statistics of a release, each computed on access.

    An index, an id or a name returns one item, and a slice returns a list.
    """

    _item_name: ClassVar[str]
    """The name of an item in messages."""
    library: str | None
    """The library of the items' data frames; the library of the data if they were a data frame."""

    @abstractmethod
    def position(self, key: str) -> int:
        """Return the position of the item with an id or name."""

    @abstractmethod
    def _compute(self, position: int) -> Item:
        """Return the item at a position, counted from 0."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"

    def __iter__(self) -> Iterator[Item]:
        return map(self._compute, range(len(self)))

    @overload
    def __getitem__(self, key: int | str) -> Item: ...
    @overload
    def __getitem__(self, key: slice) -> list[Item]: ...
    def __getitem__(self, key: int | str | slice) -> Item | list[Item]:
        if isinstance(key, slice):
            return [self._compute(position) for position in range(*key.indices(len(self)))]
        if isinstance(key, str):
            return self._compute(self.position(key))
        if not -len(self) <= key < len(self):
            raise IndexError(f"there is no {self._item_name} {key} among {len(self)}")
        return self._compute(key % len(self))


@dataclass(eq=False, repr=False)
class Tables(LazySequence[AnswerTable]):
    """All tables of a release, each computed on access.

    Thus a release of any size fits in memory. A key is the position, the id (``"q1"``), or the name
    (``"sex x age"``) of a table. A name must be unique.

    Attributes:
        estimator: the estimator of the release.
        products: the queries of each table.
        options: the options of the release.
        interval: the widths of intervals in standard errors.
        joint_estimates: the estimates of non-negative least squares, by measure.
        local_estimates: the locally non-negative estimates, by measure.
        library: the library of data frames; None to choose an installed one.
        privacy: the privacy of the release; None if the release counts units by their number
            of rows.
        public_counts: the public counts that answers agree with.
        impossible: the combinations of cells that no row has.
        linked_suppression: returns which answers of a table are suppressed because a mean that is
            computed from them is suppressed.
    """

    _item_name: ClassVar[str] = "table"
    estimator: Estimator
    products: tuple[Product, ...]
    options: Options
    interval: IntervalWidth
    joint_estimates: Mapping[str | None, Estimator] = field(default_factory=dict)
    local_estimates: Mapping[str | None, Estimator] = field(default_factory=dict)
    library: str | None = None
    privacy: Privacy | None = None
    public_counts: Sequence[PublicCounts] = ()
    impossible: Sequence[Combination] = ()
    linked_suppression: Callable[[Product], BoolArray | None] = lambda _: None

    def __post_init__(self) -> None:
        self._code_texts = (
            display_texts(self.options, self.products[0].domain) if self.products else {}
        )
        self._survey = read_survey(self.options.survey)
        self._display_names = self.options.names_in()
        self._labels: dict[tuple[str, QuerySet], tuple[Label, ...]] = {}
        self._consistent_cells: dict[tuple[str | None, bool], ConsistentCells] = {}
        self._controlled_cells: dict[str | None, ConsistentCells] = {}
        self._top_down_cells: dict[str | None, ConsistentCells] = {}

    @cached_property
    def _products_by_measure(self) -> dict[str | None, tuple[list[Product], Product | None]]:
        """For each measure, its products, and one that determines all, or None."""
        by_measure: dict[str | None, list[Product]] = {}
        for product in self.products:
            by_measure.setdefault(product.measure, []).append(product)
        with_hidden = {
            measure: [with_hidden_groups(product) for product in products]
            for measure, products in by_measure.items()
        }
        finest = {
            measure: self._find_finest_table(products) for measure, products in with_hidden.items()
        }
        counts = finest.get(None)
        if counts is not None and public_sums_on(counts, self.public_counts) is None:
            finest[None] = None
        return {measure: (with_hidden[measure], finest[measure]) for measure in with_hidden}

    @property
    def not_additive(self) -> tuple[str, ...]:
        """The names of the tables that may not add up because of post-processing.

        The non-negative or whole answers of these tables may differ from sums over other tables.
        """
        names: list[str] = []
        for products, finest in self._products_by_measure.values():
            if finest is None and len(products) > 1:
                names += [product.name for product in products]
        return tuple(names)

    def _find_finest_table(self, products: Sequence[Product]) -> Product | None:
        """Return the table whose cells determine all tables by sums, or None."""
        finest = finest_table(products)
        if finest is None or not finest.has_hidden:
            return finest
        try:
            self.estimator.estimate(finest)
        except InputError:
            # The measurements do not determine the hidden cells; tables need not be additive.
            return None
        return finest

    def __len__(self) -> int:
        return len(self.products)

    def position(self, key: str) -> int:
        """Return the position of the table with an id or a unique name."""
        return find_table_position(self.products, key)

    def __iter__(self) -> Iterator[AnswerTable]:
        start = cells = 0
        for stop, product in enumerate(self.products, 1):
            cells += product.rows
            if cells >= _MOST_BATCH_ANSWERS or stop == len(self.products):
                for position, answers in enumerate(
                    estimate_products(self.estimator, self.products[start:stop]), start
                ):
                    yield self._build_table(position, answers)
                start = stop
                cells = 0

    def _compute(self, position: int) -> AnswerTable:
        """Return the table at a position, with its answers and errors."""
        return self._build_table(position, self.estimator.estimate(self.products[position]))

    def projection(self, product: Product) -> str:
        """Return the name of the method that makes a table's answers non-negative.

        The name is a key of `PROJECTIONS`.
        """
        finest = self._products_by_measure[product.measure][1]
        if finest is None or projection_method(finest) == "none":
            return projection_method(product)
        return "agreed"

    def _post_process(
        self, product: Product, values: FloatArray
    ) -> tuple[FloatArray | None, Array | None]:
        """Return a table's non-negative and whole answers, None if not requested.

        An array is None if it is not requested.
        """
        options = self.options
        if product.measure is None:
            public_counts = self.public_counts
        else:
            public_counts = ()
        if not (options.non_negative or options.integer):
            return None, None
        products, finest = self._products_by_measure[product.measure]
        if finest is None:
            if options.non_negative:
                biased = non_negative(product, values, public_counts)
            else:
                biased = None
            if not options.integer:
                return biased, None
            source = values if biased is None else biased
            return biased, whole_numbers(product, source, public_counts)
        is_non_negative = options.non_negative and projection_method(finest) != "none"
        columns: list[Array | None] = []
        for is_requested, is_whole in ((is_non_negative, False), (options.integer, True)):
            if not is_requested:
                columns.append(None)
                continue
            key = product.measure, is_whole
            if key not in self._consistent_cells:
                self._consistent_cells[key] = self._make_consistent_cells(
                    products, finest, is_non_negative=is_non_negative, is_whole=is_whole
                )
            columns.append(self._consistent_cells[key].values(product))
        return columns[0], columns[1]

    def _make_consistent_cells(
        self,
        products: Sequence[Product],
        finest: Product,
        *,
        is_non_negative: bool,
        is_whole: bool,
    ) -> ConsistentCells:
        """Return cells of the finest table; all tables are summed from them.

        The cells preserve the public counts, and are non-negative or whole if requested.
        """
        if finest.measure is None:
            public_counts = self.public_counts
        else:
            public_counts = ()
        public_counts = public_sums_on(finest, public_counts) or ()
        consistent = make_consistent(
            self.estimator,
            products,
            finest,
            is_non_negative=is_non_negative,
            is_whole=is_whole and not public_counts,
        )
        if not public_counts:
            return consistent
        cells = consistent.cells
        if is_non_negative:
            cells = scale_to_public_sums(cells, finest, public_counts)
        if is_whole:
            cells = round_to_public_sums(cells, finest, public_counts)
        return replace(consistent, cells=cells)

    def _build_table(self, position: int, estimate: Answer) -> AnswerTable:
        """Build a table without answers that are suppressed because of linked tables."""
        table = self._build_unlinked_table(position, estimate)
        if not self.options.suppresses_by_cv:
            return table
        linked = self.linked_suppression(table.product)
        return table if linked is None else suppress_cells(table, linked)

    def _build_unlinked_table(self, position: int, estimate: Answer) -> AnswerTable:
        """Build a rounded table with sampling errors, suppressing by its own rules."""
        product = self.products[position]
        interval = self.interval
        attribute_queries = list(zip(product.attributes, product.query_sets, strict=True))
        for name, queries in attribute_queries:  # labels are computed once for all tables
            if (name, queries) not in self._labels:
                self._labels[name, queries] = queries.labels(name, product.domain.kind(name))
        reach_below, reach_above = estimate.interval_distances(
            interval.multiplier, interval.one_sided, interval.half_step
        )
        amounts: dict[str, Any] = {
            name: convert_to_amounts(product, values)
            for name, values in self._number_columns(product, estimate).items()
        }
        unit_name = product.measure or ""
        if product.of_units:
            unit_name = "units"
        table = AnswerTable(
            id=f"q{position + 1}",
            name=product.name,
            unit_name=unit_name,
            attributes=product.attributes,
            product=product,
            labels=tuple(self._labels[pair] for pair in attribute_queries),
            code_texts=self._code_texts,
            display_names=self._display_names,
            library=self.library,
            privacy=None if product.is_per_unit else self.privacy,
            low=amounts["answer"] - convert_to_amounts(product, reach_below),
            high=amounts["answer"] + convert_to_amounts(product, reach_above),
            **amounts,
        )
        rounded = round_table(table, self.options, self._controlled_answers(product))
        return add_sampling_errors(rounded, self._survey, self.options.level)

    def _number_columns(self, product: Product, estimate: Answer) -> dict[str, Array]:
        """Return the columns of numbers for a product, in units of its measurement."""
        columns: dict[str, Array] = {"answer": estimate.values, "noise_std": estimate.noise_std}
        if estimate.approximation_std is not None:
            columns["approximation_std"] = estimate.approximation_std
        biased, integers = self._post_process(product, estimate.values)
        if biased is not None:
            columns["non_negative"] = biased
        if integers is not None and product.measure is not None:
            integers = integers.astype(np.float64)
        if integers is not None:
            columns["integer"] = integers
        joint = self.joint_estimates.get(product.measure)
        if joint is not None:
            joint_answer = joint.estimate(product)
            columns["nnls"] = joint_answer.values
            columns["nnls_rmse"] = joint_answer.std
        local = self.local_estimates.get(product.measure)
        if local is not None:
            columns["local"] = local.estimate(product).values
        top_down = self._top_down_answers(product)
        if top_down is not None:
            columns["top_down"] = top_down
        return columns

    def _top_down_answers(self, product: Product) -> Array | None:
        """Return the answers of the option ``top_down``; None if not requested."""
        measure = product.measure
        if not self.options.top_down or measure not in top_down_measures(self.products):
            return None
        if measure not in self._top_down_cells:
            products = [
                with_hidden_groups(each) for each in self.products if each.measure == measure
            ]
            finest = finest_table(products, only_levels=False)
            if finest is None:
                return None
            facts = (self.public_counts, self.impossible) if measure is None else ((), ())
            self._top_down_cells[measure] = make_top_down(self.estimator, products, finest, *facts)
        answers = self._top_down_cells[measure].values(product)
        return answers if measure is None else answers.astype(np.float64)

    def _controlled_answers(self, product: Product) -> FloatArray | None:
        """Return a table's answers after controlled rounding; None if not requested."""
        step, _ = product_rounding(self.options, product)
        if product.of_units or not (self.options.is_controlled and step):
            return None
        measure = product.measure
        if measure not in self._controlled_cells:
            products = [each for each in self.products if each.measure == measure]
            finest = finest_table(products, only_levels=False)
            if finest is None:
                return None
            estimates = convert_to_amounts(finest, self.estimator.estimate(finest).values)
            cells = round_controlled(estimates / float(step), finest, products)
            self._controlled_cells[measure] = ConsistentCells(finest, cells)
        steps = self._controlled_cells[measure].values(product)
        return steps * float(step.numerator) / float(step.denominator)

    def suppression_by_rule(self, product: Product) -> BoolArray:
        """Return a mask of the answers that a table's sampling rule suppresses."""
        if product not in self.products:  # the table is too large to be written
            return np.zeros(product.shape, dtype=np.bool_)
        position = self.products.index(product)
        table = self._build_unlinked_table(position, self.estimator.estimate(product))
        if table.sampling is None:
            return np.zeros(table.answer.shape, dtype=np.bool_)
        return table.sampling.is_suppressed


def convert_to_amounts(product: Product, values: FloatArray) -> FloatArray:
    """Return multiples of a measure's unit converted to amounts.

    For example, 12345 multiples of the unit 0.01 are 123.45, correctly rounded.

    Guarantees: the result is the nearest double to the exact decimal as long as products are below
        2^53. For this reason, 12345 is divided by 100, and not multiplied by 0.01.
    """
    if product.measure is None:
        return values
    unit = product.domain.measures[product.measure].unit
    return values * float(unit.numerator) / float(unit.denominator)
