"""Compute means, standard deviations, quantiles and distribution functions.

These statistics and their intervals are computed from the tables of a release.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from leastnoise._charts import (
    Axis,
    DotPlot,
    DotRow,
    Picture,
    choose_chart,
    draw_chart,
    draw_dots,
    format_digits,
)
from leastnoise._domain import Bins, Decimals, Domain, Edges, Integers, Kind, Weighted
from leastnoise._estimation import (
    DIVISORS,
    Correlations,
    Determination,
    HasLeastSquares,
    Quantiles,
    Regression,
    cdf,
    correlations,
    means,
    minimal_draws,
    move_to_chosen_cells,
    quantiles,
    r_squared,
    regression,
    variances,
)
from leastnoise._frames import Columns, name_key_columns
from leastnoise._release._options import Options, display_texts, quantity_key, rounding_rule
from leastnoise._release._release_tables import (
    MOST_SHOWN_CELLS,
    LazySequence,
    ResultTable,
    round_to_multiples,
)
from leastnoise._release._survey import SAMPLING_COLUMNS, Survey, combine_errors, read_survey
from leastnoise._texts import (
    MOST_DECIMALS,
    PLAIN_NUMBERS,
    Catalogue,
    NumberFormat,
    attribute_heading,
    capitalize,
    display_labels,
    key_headings,
    load_catalogue,
    make_key_axes,
    meaningful_decimals,
    name_share_total,
    statistic_axis_title,
    statistic_format,
    statistic_groups_title,
    statistic_title,
    with_number_format,
)
from leastnoise._trusted.check import InputError, html_facts, number_text
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._workload import Product, Statistic, Workload

BEYOND_COLUMNS = ("may_be_below", "may_be_above")
"""Columns of quantiles: 1 if the value may lie beyond the bounds, otherwise 0.

The first column is for values below ``low``, the second for values above ``high``.
"""
NUMBER_COLUMNS = (
    "mean",
    "std_dev",
    "r_squared",
    "variance",
    "variance_low",
    "variance_high",
    "quantile",
    "share",
    "std_error",
    "low",
    "high",
    "sum",
    "count",
    "sum_of_weights",
    "up_to",
    *BEYOND_COLUMNS,
    *SAMPLING_COLUMNS,
)
MOST_DOTS = 200  # dots in the chart of a statistic; a choice of layout
_MOST_DOT_COLOURS = 4  # means drawn in one row


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StatisticTable(ResultTable):
    """The values and intervals of a statistic, by group.

    A quantile has one value for each requested share, and a distribution function one for each
    cell.
    """

    statistic: Statistic
    domain: Domain
    values: FloatArray
    extra_columns: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def display_labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each key for display.

        If a code has a text, the text replaces it.
        """
        attributes = (*self.statistic.by, *self.attributes[len(self.statistic.by) :])
        return display_labels(self.labels, attributes, self.code_texts)

    @property
    def meaning_key(self) -> str:
        """The text key of the sentence on how the statistic was computed."""
        if self.statistic.weighted_by is not None or "sum_of_weights" in self.extra_columns:
            weighted = "_weighted"
        else:
            weighted = ""
        return f"meta_{self.statistic.kind}{weighted}"

    def key_columns(self) -> list[str]:
        """Return the names of the key columns.

        If a key column would have the name of a column of numbers, a number is appended to its
        name.
        """
        if self.statistic.form.along:
            return name_key_columns(self.attributes, NUMBER_COLUMNS)
        names = name_key_columns(self.attributes[: len(self.statistic.by)], NUMBER_COLUMNS)
        return [*names, *self.attributes[len(names) :]]

    def numbers(self) -> Columns:
        """Return the columns of numbers by name, flat in row-major order."""
        columns = {
            self.value_name: self.values,
            "low": self.low,
            "high": self.high,
            **self.extra_columns,
        }
        numbers: Columns = {
            name: np.ascontiguousarray(np.broadcast_to(values, self.values.shape)).reshape(-1)
            for name, values in columns.items()
        }
        return numbers | self.sampling_columns()

    def rows(
        self, limit: int | None = None
    ) -> Iterator[tuple[tuple[str, ...], tuple[float, float, float]]]:
        """Yield the labels of each value, and the tuple (value, low, high).

        The interval includes the sampling error if one is stated.

        Args:
            limit: the number of values to yield; None for all.
        """
        arrays = (self.values, self.low_with_sampling, self.high_with_sampling)
        numbers = zip(*(values.reshape(-1)[:limit].tolist() for values in arrays), strict=True)
        keys = [
            np.array(labels, object)[index[:limit]]
            for labels, index in zip(self.display_labels, self.indices(), strict=True)
        ]
        if not keys:
            return zip([()], numbers, strict=True)
        return zip(zip(*keys, strict=True), numbers, strict=True)

    def format_rows(self, catalogue: Catalogue, limit: int) -> list[list[str]]:
        """Return the first rows as lists of texts: keys, value and interval.

        Numbers have the digits that the noise leaves meaningful.
        """
        catalogue = self.with_own_format(catalogue)
        form = self.statistic.form
        groups = len(self.statistic.by)
        beyond_flags = [
            self.extra_columns[name].reshape(-1) for name in BEYOND_COLUMNS if form.at_shares
        ]
        end_format = None
        # With a sampling error, the interval of a quantile no longer ends where a cell does.
        if form.at_shares and self.sampling is None:
            end_format = cell_end_format(self.domain.kind(self.statistic.of))
        rows = []
        for row, (names, numbers) in enumerate(self.rows(limit)):
            shares = map(catalogue.localize, names[groups:]) if form.at_shares else names[groups:]
            value, interval = format_interval(catalogue, *numbers, end_format=end_format)
            for column, key in zip(beyond_flags, ("or_less", "or_more"), strict=False):
                if column[row]:
                    interval = catalogue.say(key, interval=interval)
            rows.append([*names[:groups], *shares, value, interval])
        return rows

    def key_headings(self, catalogue: Catalogue) -> tuple[str, ...]:
        """Return the display headings of the key columns."""
        groups = key_headings(self.statistic.along, catalogue)
        further_keys = self.attributes[len(groups) :]
        if self.statistic.form.at_shares:
            return (*groups, self._share_heading(catalogue))
        if self.statistic.form.row_key:
            return (*groups, catalogue.say(f"col_{self.statistic.form.row_key}"))
        return (*groups, *(attribute_heading(name, catalogue) for name in further_keys))

    def _share_heading(self, catalogue: Catalogue) -> str:
        """Return the heading of shares, written like the headings of groups."""
        heading = catalogue.say("col_share")
        return heading if catalogue.names.is_empty else capitalize(heading)

    def with_own_format(self, catalogue: Catalogue) -> Catalogue:
        """Return the catalogue with the number format of this statistic."""
        number_format = statistic_format(self.statistic, self.domain, catalogue)
        return catalogue.with_format(number_format)

    def plot(self) -> Any:
        """Return an Altair chart, which notebooks show.

        Raises:
            InputError: the statistic is a single number, has too many numbers, or has coefficients
                of different units.
        """
        if self.statistic.kind == "regression":
            raise InputError(
                f"{self.id} ({self.name}) has coefficients in different units, so it has no "
                "chart. Use the table."
            )
        return ResultTable.plot(self)

    def chart_name(self, catalogue: Catalogue) -> str:
        """Return the name of the statistic's chart, or "" if it has no chart."""
        picture = self.picture(catalogue)
        if picture is not None:
            chart = choose_chart(picture)
            if chart is None or chart.shows_only_largest:
                return ""
            return chart.name
        if self.statistic.kind == "regression":  # coefficients have different units
            return ""
        has_published = not np.isnan(self.values).all()
        return "dots" if has_published and 1 < self.cells <= MOST_DOTS else ""

    def chart_spec(self, catalogue: Catalogue) -> dict[str, Any] | None:
        """Return the chart as a Vega-Lite specification; None if there is no chart."""
        if not self.chart_name(catalogue):
            return None
        picture = self.picture(catalogue)
        if picture is not None:
            return draw_chart(picture)
        return draw_dots(self._make_dot_plot(catalogue))

    def _make_dot_plot(self, catalogue: Catalogue) -> DotPlot:
        """Return the data of a dot plot of means or quantiles by group.

        Quantiles have a colour for each share. If the groups of means have two keys and the last
        key has few labels, each of these labels has a colour.
        """
        groups = len(self.statistic.by)
        headings = key_headings(self.statistic.along, catalogue)
        title = statistic_groups_title(self.statistic, catalogue)
        series = ""
        if self.statistic.form.at_shares:
            series = self._share_heading(catalogue)
        elif self.statistic.form.row_key:
            series = catalogue.say(f"col_{self.statistic.form.row_key}")
        elif groups > 1 and len(self.labels[-1]) <= _MOST_DOT_COLOURS:
            groups -= 1
            *first_headings, series = headings
            title = ", ".join(first_headings)
        all_rows = catalogue.say("all_rows" if catalogue.names.is_empty else "in_total")
        is_percent = self.with_own_format(catalogue).number_format.percent
        scale = 100.0 if is_percent else 1.0
        rows = []
        for names, (value, low, high) in self.rows():
            group = ", ".join(names[:groups]) or all_rows
            colour = ", ".join(names[groups:])
            if self.statistic.form.at_shares:
                colour = catalogue.localize(colour)
            rows.append(DotRow(group, colour, scale * value, scale * low, scale * high))
        return DotPlot(
            title=statistic_axis_title(self.statistic, self.domain, catalogue),
            groups=title,
            rows=self._sort_dots(rows, catalogue),
            series=series,
        )

    def _sort_dots(self, rows: Sequence[DotRow], catalogue: Catalogue) -> tuple[DotRow, ...]:
        """Return the dots in order; many unordered names are sorted by value."""
        groups = dict.fromkeys(row.group for row in rows)
        axes = make_key_axes(self.statistic.along, self.domain, self._group_labels, catalogue)
        if len(axes) == 0 or axes[0].size != len(groups):
            return tuple(rows)
        sizes = self.values.reshape(axes[0].size, -1)[:, 0]
        order = axes[0].order_by(sizes)
        ranks = {label: order.index(key) for key, label in enumerate(groups)}
        return tuple(sorted(rows, key=lambda row: ranks[row.group]))

    @property
    def _group_labels(self) -> tuple[tuple[str, ...], ...]:
        """The display labels of the keys that form groups."""
        return self.display_labels[: len(self.statistic.by)]

    def picture(self, catalogue: Catalogue) -> Picture | None:
        """Return chart data of a distribution function or means over time, or None.

        The result is None for all other statistics, because these are drawn as dots.
        """
        if self.statistic.form.along:
            return self._picture_distribution(catalogue)
        form = self.statistic.form
        if form.at_shares or form.row_key or not self.statistic.by:
            return None
        axes = make_key_axes(self.statistic.along, self.domain, self._group_labels, catalogue)
        if not any(axis.kind == "times" for axis in axes):
            return None
        catalogue = self.with_own_format(catalogue)
        picture = Picture(
            name=statistic_title(self.statistic, self.domain, catalogue),
            axes=axes,
            answer=self.values,
            low=self.low_with_sampling,
            high=self.high_with_sampling,
            unit=statistic_axis_title(self.statistic, self.domain, catalogue),
        )
        return replace(with_number_format(picture, catalogue), unit=picture.unit)

    def _picture_distribution(self, catalogue: Catalogue) -> Picture:
        """Return the chart data of a distribution function."""
        *group_headings, heading = self.key_headings(catalogue)
        groups = [
            Axis(name=name, labels=labels)
            for name, labels in zip(group_headings, self.display_labels, strict=False)
        ]
        numbers = Axis(
            name=heading,
            labels=self.display_labels[-1],
            kind="up_to",
            high=self.extra_columns["up_to"],
        )
        counted = name_share_total(self.statistic, self.domain, catalogue)
        picture = Picture(
            name=statistic_title(self.statistic, self.domain, catalogue),
            axes=(*groups, numbers),
            answer=self.values,
            low=self.low_with_sampling,
            high=self.high_with_sampling,
            unit=catalogue.say("share_of_rows", rows=counted),
            up_to=catalogue.say("up_to"),
        )
        return with_number_format(picture, self.with_own_format(catalogue))

    def __repr__(self) -> str:
        if self.cells > 1:
            return (
                f"StatisticTable({self.id} {self.name!r}: "
                f"{load_catalogue().say_count('answers', self.cells)})"
            )
        ends = (
            format_digits(float(values.reshape(-1)[0]))
            for values in (self.values, self.low, self.high)
        )
        return "StatisticTable({} {!r}: {}, {} to {})".format(self.id, self.name, *ends)

    def _repr_html_(self) -> str:
        """Return the first values as an HTML table, for notebooks."""
        rows = []
        for names, numbers in self.rows(MOST_SHOWN_CELLS):
            value, low, high = map(format_digits, numbers)
            rows.append((", ".join(names) or "all", f"{value} ({low} to {high})"))
        if self.cells > MOST_SHOWN_CELLS:
            more = [("...", f"{self.cells - MOST_SHOWN_CELLS:,} more; .frame() has all")]
        else:
            more = []
        return html_facts(repr(self), [*rows, *more])


def format_interval(
    catalogue: Catalogue,
    value: float,
    low: float,
    high: float,
    end_format: NumberFormat | None = None,
) -> tuple[str, str]:
    """Return the texts of a value and of its interval.

    Args:
        catalogue: the catalogue of the language.
        value: the value.
        low: the lower end of its interval.
        high: the upper end.
        end_format: the format of both ends, if they are ends of cells (see `cell_end_format`). The
            value then has at most one more decimal, and no more than the interval leaves
            meaningful. If None, the interval determines all decimals.
    """
    if math.isnan(value) and math.isnan(low):
        return catalogue.format_number(value), ""
    if math.isnan(low):
        return catalogue.format_number(value), catalogue.say("unbounded")
    digit_spread = (high - low) / 8
    is_plain = catalogue.number_format == PLAIN_NUMBERS  # otherwise it determines the digits
    if is_plain and end_format is not None and end_format.decimals is not None:
        with_ends = catalogue.with_format(end_format)
        ends = [with_ends.format_number(end) for end in (low, high)]
        decimals = end_format.decimals
        if not math.isclose(value, round(value, decimals), rel_tol=1e-12, abs_tol=1e-12):
            decimals += 1  # the value is between two ends
            if digit_spread > 0:
                decimals = min(decimals, meaningful_decimals(digit_spread))
        shown = catalogue.with_format(replace(end_format, decimals=decimals)).format_number(value)
    elif is_plain and not digit_spread > 0:
        shown, *ends = (catalogue.localize(format_digits(each)) for each in (value, low, high))
    else:
        shown, *ends = (catalogue.format_number(each, digit_spread) for each in (value, low, high))
    return shown, catalogue.say("from_to", low=ends[0], high=ends[1])


def cell_end_format(kind: Kind) -> NumberFormat | None:
    """Return the format that shows all decimals of cells' ends, or None.

    None stands for a kind without numbers, and for ends such as 1/3. Whole numbers may be years, so
    they have no separators.

    >>> cell_end_format(ln.Decimals("0", "3", "0.25")).decimals
    2
    """
    if isinstance(kind, Integers):
        return NumberFormat(decimals=0, thousands=False)
    if isinstance(kind, Decimals):
        ends = [Fraction(kind.low), Fraction(kind.step)]
    elif isinstance(kind, (Bins, Edges)):
        ends = [Fraction(edge) for edge in kind.edges]
    else:
        return None
    for decimals in range(MOST_DECIMALS + 1):
        if all((end * 10**decimals).denominator == 1 for end in ends):
            return NumberFormat(decimals=decimals)
    return None


def no_suppression(product: Product) -> BoolArray:
    """Return a mask of False with the shape of a table's answers."""
    return np.zeros(product.shape, dtype=np.bool_)


@dataclass(eq=False, repr=False)
class Statistics(LazySequence[StatisticTable]):
    """The statistics of a release, each computed on first access.

    A key is the position, the id (``"s1"``) or the name of a statistic.

    Attributes:
        source: the release or estimate from which statistics are computed.
        workload: the workload whose statistics these are.
        options: the options of the release.
        library: the library of data frames; None to choose an installed one.
        table_suppression: returns which answers of a table its own rule suppresses.
        quantile_choices: the privately chosen cells of quantiles, by statistic.
    """

    _item_name: ClassVar[str] = "statistic"
    source: HasLeastSquares
    workload: Workload
    options: Options
    library: str | None = None
    table_suppression: Callable[[Product], BoolArray] = no_suppression
    quantile_choices: Mapping[Statistic, IntArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._computed: dict[int, StatisticTable] = {}
        self._own_tables: dict[int, StatisticTable] = {}
        names = []
        for position, statistic in enumerate(self.workload.statistics):
            names.append((f"s{position + 1}", position))
            names.append((statistic.name, position))
        self._positions = dict(reversed(names))  # of equal names the first one is used

    def __len__(self) -> int:
        return len(self.workload.statistics)

    def has_key(self, key: str) -> bool:
        """Return whether ``key`` is the id or name of a statistic."""
        return key in self._positions

    def position(self, key: str) -> int:
        """Return the position of the statistic with an id or name."""
        if not self.has_key(key):
            listed = (
                ", ".join(
                    f"s{number} ({statistic.name})"
                    for number, statistic in enumerate(self.workload.statistics, 1)
                )
                or "none"
            )
            raise InputError(
                f"A statistic must be called by its id or name; got {key!r}. This release has "
                f"{listed}."
            )
        return self._positions[key]

    def _compute(self, position: int) -> StatisticTable:
        """Return the statistic at a position, computed on first access."""
        if position not in self._computed:
            statistic = self.workload.statistics[position]
            options = self.options
            keys, values = _compute_statistic(
                self.source,
                statistic,
                options.level,
                self.workload,
                self.quantile_choices.get(statistic),
            )
            if "extra_columns" in values:
                rounding_keys = _rounding_keys(statistic, self.workload)
                values = _round_statistic(values, options, rounding_keys)
            table = StatisticTable(
                id=f"s{position + 1}",
                name=statistic.name,
                unit_name=_name_unit(self.workload.domain, statistic),
                value_name=statistic.form.column,
                attributes=(*statistic.keys, *keys),
                statistic=statistic,
                domain=self.workload.domain,
                library=self.library,
                code_texts=display_texts(options, self.workload.domain),
                display_names=options.names_in(),
                **values,
            )
            survey = read_survey(options.survey)
            own_table = add_sampling_errors(table, survey, options.level)
            self._own_tables[position] = own_table
            self._computed[position] = self._suppress_with_tables(own_table)
        return self._computed[position]

    def _suppress_with_tables(self, table: StatisticTable) -> StatisticTable:
        """Return a statistic without the values of groups whose tables suppress them.

        The file of a mean contains its sums and counts, and the file of a standard deviation
        contains mean and count. For this reason, the suppression rules of these sums, counts and
        means also apply to the statistic.
        """
        if not (self.options.suppresses_by_cv and table.statistic.form.of_measure):
            return table
        for product in self.workload.tables_of(table.statistic):
            is_suppressed = self.table_suppression(product)
            if table.statistic.form.row_key:
                is_suppressed = is_suppressed[..., None]
            table = suppress_values(table, is_suppressed)
            if table.statistic.kind == "variances":
                table = self._suppress_with_means(table, product)
        return table

    def _suppress_with_means(self, table: StatisticTable, sums: Product) -> StatisticTable:
        """Return standard deviations with NaN for groups with suppressed means."""
        is_suppressed = self.suppressed_sums(sums)
        if is_suppressed is None:
            return table
        return suppress_values(table, is_suppressed)

    def suppressed_sums(self, product: Product) -> BoolArray | None:
        """Return a mask of the sums in a table whose means are suppressed, or None.

        These sums must also be suppressed, because anyone can compute a mean from its sum and
        count. The result is None if no mean uses the sums.
        """
        suppressed: BoolArray | None = None
        for position, statistic in enumerate(self.workload.statistics):
            if statistic.kind != "means":
                continue
            _, sums = statistic.table_keys(self.workload.domain)
            if product.table_key != sums:
                continue
            self._compute(position)
            sampling = self._own_tables[position].sampling
            if sampling is not None:
                if suppressed is None:
                    suppressed = sampling.is_suppressed
                else:
                    suppressed = suppressed | sampling.is_suppressed
        return suppressed


def add_sampling_errors(
    table: StatisticTable, survey: Survey | None, level: float
) -> StatisticTable:
    """Add sampling errors to a statistic, and suppress values with a large CV.

    The sum and the count of a suppressed mean are also omitted from its file.
    """
    if survey is None:
        return table
    rule = survey.rule_of_statistic(table.statistic, table.domain)
    if rule is None:
        return table
    extra_columns = table.extra_columns
    divisor = next((name for name in DIVISORS if name in extra_columns), None)
    group_weights = None
    if divisor is not None:
        group_weights = extra_columns[divisor]
    # The standard error is unknown for quantiles, and for means if the count may be 0. The half
    # width of the interval is used instead.
    half_widths = (table.high - table.low) / 2 / NormalDist().inv_cdf((1 + level) / 2)
    noise_std = extra_columns.get("std_error", half_widths)
    sampling_std = rule.standard_errors(
        table.values,
        has_weights=divisor == "sum_of_weights",
        group_weights=group_weights,
    )
    sampling = combine_errors(
        table.values,
        table.low,
        table.high,
        np.where(np.isnan(noise_std), half_widths, noise_std),
        sampling_std,
        level,
        survey.flags,
    )
    return suppress_values(replace(table, sampling=sampling), sampling.is_suppressed)


def suppress_values(table: StatisticTable, is_suppressed: BoolArray) -> StatisticTable:
    """Return a statistic with NaN in all columns of suppressed values."""
    if not is_suppressed.any():
        return table

    def without_suppressed(values: FloatArray) -> FloatArray:
        """Return the values with NaN in place of suppressed values."""
        return np.where(is_suppressed, np.nan, values)

    return replace(
        table,
        sampling=table.sampling_without(is_suppressed),
        values=without_suppressed(table.values),
        low=without_suppressed(table.low),
        high=without_suppressed(table.high),
        extra_columns={
            name: without_suppressed(values) for name, values in table.extra_columns.items()
        },
    )


def _name_unit(domain: Domain, statistic: Statistic) -> str:
    """Return the measure, attribute or column whose unit values have, or "share"."""
    if statistic.form.along:
        return "share"
    if statistic.form.of_several:
        return statistic.form.column
    if statistic.form.of_measure:
        measure = domain.measure(statistic.of)
    else:
        measure = None
    if not isinstance(measure, Weighted):
        return statistic.of
    names = [name for name, declared in domain.measures.items() if declared == measure.of]
    return names[0] if names else statistic.of


def _compute_statistic(
    source: HasLeastSquares,
    statistic: Statistic,
    level: float,
    workload: Workload,
    chosen_cells: IntArray | None,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return a statistic's further key columns, and its labels and values.

    Returns:
        The names of the key columns other than the groups' columns; and keyword arguments of
        `StatisticTable`: labels, values, ends of intervals and extra columns.
    """
    if statistic.kind == "means":
        mean = means(source, statistic.of, by=statistic.along, level=level)
        extra_columns = {"std_error": mean.std_error, "sum": mean.sums, mean.divisor: mean.counts}
        return (), {
            "labels": mean.labels,
            "values": mean.mean,
            "low": mean.low,
            "high": mean.high,
            "extra_columns": extra_columns,
        }
    if statistic.kind == "variances":
        variance_answers = variances(source, statistic.of, by=statistic.along, level=level)
        numbers = variance_answers.numbers()
        return (), {
            "labels": variance_answers.labels,
            "values": numbers.pop("std_dev"),
            "low": numbers.pop("low"),
            "high": numbers.pop("high"),
            "extra_columns": numbers,
        }
    if statistic.form.of_several:
        return _several_measures_values(source, statistic, level)
    if statistic.kind == "quantiles":
        estimated = quantiles(
            source,
            statistic.of,
            [float(share) for share in statistic.at],
            by=statistic.along,
            level=level,
            weighted_by=statistic.weighted_by,
        )
        if chosen_cells is not None:
            estimated = move_to_chosen_cells(estimated, workload.domain, statistic, chosen_cells)
        return _quantile_values(statistic, estimated, workload)
    return _distribution_values(source, statistic, level, workload)


def _several_measures_values(
    source: HasLeastSquares, statistic: Statistic, level: float
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return key columns, labels and values of a statistic of several measures.

    An unbounded interval is NaN in the table.
    """
    estimated: Correlations | Determination | Regression
    if statistic.kind == "correlations":
        estimated = correlations(source, statistic.variables, by=statistic.along, level=level)
    elif statistic.kind == "r_squared":
        estimated = r_squared(
            source, statistic.of, on=statistic.on, by=statistic.along, level=level
        )
    else:
        estimated = regression(
            source, statistic.of, on=statistic.on, by=statistic.along, level=level
        )
    numbers = estimated.numbers()
    low, high = (numbers.pop(end) for end in ("low", "high"))
    row_key = statistic.form.row_key
    return (row_key,) if row_key else (), {
        "labels": estimated.labels,
        "values": numbers.pop(statistic.form.column),
        "low": np.where(np.isinf(low), np.nan, low),
        "high": np.where(np.isinf(high), np.nan, high),
        "extra_columns": numbers,
    }


def _distribution_values(
    source: HasLeastSquares, statistic: Statistic, level: float, workload: Workload
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the key columns, labels and values of a distribution function."""
    (product,) = workload.tables_of(statistic)
    labels_of = dict(zip(product.attributes, product.labels, strict=True))
    distribution = cdf(
        source,
        statistic.of,
        by=statistic.along,
        level=level,
        weighted_by=statistic.weighted_by,
        draws=minimal_draws(source.least_squares(), level, statistic.weighted_by),
    )
    labels = (*distribution.labels, labels_of[statistic.of][: len(distribution.values)])
    return (statistic.of,), {
        "labels": labels,
        "values": distribution.share,
        "low": distribution.low,
        "high": distribution.high,
        "extra_columns": {"up_to": distribution.values},
    }


def _quantile_values(
    statistic: Statistic, estimated: Quantiles, workload: Workload
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the key columns, labels and values of quantiles."""
    (product,) = workload.tables_of(statistic)
    labels_of = dict(zip(product.attributes, product.labels, strict=True))
    labels = (
        *(labels_of[name] for name in statistic.by),
        tuple(number_text(share) for share in statistic.at),
    )
    columns = np.array(
        [
            (
                quantile.value,
                quantile.low,
                quantile.high,
                float(quantile.may_be_below),
                float(quantile.may_be_above),
            )
            for quantile in estimated
        ]
    )
    values, low, high, *beyond_flags = columns.T.reshape(len(columns.T), *map(len, labels))
    return ("share",), {
        "labels": labels,
        "values": values,
        "low": low,
        "high": high,
        "extra_columns": dict(zip(BEYOND_COLUMNS, beyond_flags, strict=True)),
    }


def _rounding_keys(statistic: Statistic, workload: Workload) -> tuple[str, str]:
    """Return the keys of the rounding rules for the sum and divisor of a mean."""
    count, *sums = workload.tables_of(statistic)
    total = sums[0] if sums else count
    domain = workload.domain
    return quantity_key(domain, total.measure), quantity_key(domain, count.measure)


def _round_statistic(
    values_of: dict[str, Any], options: Options, keys: tuple[str, str]
) -> dict[str, Any]:
    """Return columns with rounded sums and counts, and small groups suppressed.

    Quantiles and distribution functions are returned unchanged.

    Args:
        values_of: keyword arguments of `StatisticTable`, with the columns of the statistic.
        options: the options with the rounding.
        keys: the keys of the rounding rules for the sum and the divisor, from `quantity_key`.
    """
    sum_step, sum_bound = rounding_rule(options, keys[0])
    step, bound = rounding_rule(options, keys[1])
    extra_columns = values_of["extra_columns"]
    divisor = next((name for name in DIVISORS if name in extra_columns), None)
    if divisor is None:
        return values_of
    if bound is None:
        is_suppressed = np.zeros(values_of["values"].shape, dtype=np.bool_)
    else:
        is_suppressed = extra_columns[divisor] < float(bound)
    has_mean = "sum" in extra_columns or "mean" in extra_columns
    if isinstance(options.below, Mapping) and sum_bound is not None and has_mean:
        # Anyone can compute the sum from a mean and its number of rows.
        if "sum" in extra_columns:
            sums = extra_columns["sum"]
        else:
            sums = extra_columns["mean"] * extra_columns[divisor]
        is_suppressed = is_suppressed | (sums < float(sum_bound))
    steps = {"sum": sum_step, divisor: step}
    rounded = {
        name: round_to_multiples(values, steps.get(name, Fraction(0)))
        for name, values in extra_columns.items()
    }
    suppressed = {
        name: np.where(is_suppressed, np.nan, values_of[name]) for name in ("values", "low", "high")
    }
    return {
        **values_of,
        **suppressed,
        "extra_columns": {
            name: np.where(is_suppressed, np.nan, array) for name, array in rounded.items()
        },
    }
