"""Differences and ratios of released numbers, with intervals.

All functions only post-process the measurements of finished releases, which costs no budget.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from leastnoise._charts import DotPlot, DotRow, draw_dots, make_altair_chart
from leastnoise._domain import Domain, column_measures
from leastnoise._error import (
    ComparisonInterval,
    Estimated,
    PairCovariances,
    checked_level,
    correlation_of,
    difference_interval,
    error_covariance,
    estimate_quotient,
    expand,
    interval_multiplier,
    linear_difference,
    quotient_interval,
    widen_interval,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._joint_intervals import joint_multiplier, simulate_answers
from leastnoise._estimation._least_squares import Estimate
from leastnoise._frames import Columns, TabularMixin, grouped_columns
from leastnoise._threads import one_thread
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Observation
from leastnoise._workload import (
    By,
    Comparison,
    Product,
    Quantity,
    QuerySet,
    Quotient,
    groups_of,
    queries,
    read_comparison,
    read_quantity,
    selected_cells,
    separate_groups,
)

# Correlation assumed for two releases with an unknown part of common noise.
_WORST_CORRELATION = -1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparisonSubject:
    """The quantity, groups and sources of a comparison, for titles and pages.

    Attributes:
        sources: both releases or estimates; or a single one, if it contains both groups.
        quantity: the compared quantity.
        by: the query set along each attribute of the groups within which the quantity is compared.
        along: the attribute that divides the compared groups; empty for two releases.
        selections: the group or groups that are compared with ``against``, each as in the argument
            ``group`` of `compare_groups`.
        against: the second group.
        where: for two releases, the selected cells of each attribute.
        by_of_sources: for two releases, the query sets of ``by`` in the domain of each.
        has_common_noise: whether two releases share noise.
    """

    sources: tuple[HasLeastSquares, ...]
    quantity: Quantity
    by: Mapping[str, QuerySet] = field(default_factory=dict)
    along: str = ""
    selections: tuple[object, ...] = ()
    against: object = None
    where: Mapping[str, object] = field(default_factory=dict)
    by_of_sources: tuple[Mapping[str, QuerySet], ...] = ()
    has_common_noise: bool = False


class ComparisonMixin(TabularMixin):
    """Draws the differences of a comparison as a chart.

    Attributes:
        by: the names of the columns of the groups.
        labels: the labels of the groups along each column of ``by``.
        numbers: the columns of numbers, with ``difference`` and its interval.
    """

    __slots__ = ()

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    numbers: Mapping[str, FloatArray]

    def plot(self) -> Any:
        """Return an Altair chart of the differences, with a line at 0.

        The intervals include sampling errors if the column ``difference_both_low`` exists.
        """
        interval = "difference"
        if "difference_both_low" in self.numbers:
            interval = "difference_both"
        columns = [
            self.numbers[name].reshape(-1).tolist()
            for name in ("difference", f"{interval}_low", f"{interval}_high")
        ]
        rows = []
        for labels, value, low, high in zip(itertools.product(*self.labels), *columns, strict=True):
            group = ", ".join(map(str, labels)) or "all"
            rows.append(DotRow(group, "", value, low, high))
        plot = DotPlot(
            title="difference", groups=" x ".join(self.by), rows=tuple(rows), marks_zero=True
        )
        return make_altair_chart(draw_dots(plot), self.title)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Differences(ComparisonMixin):
    """A quantity in one group compared with the same quantity in another group.

    Attributes:
        heading: the comparison, such as ``mean of pay, arm=B against arm=A``.
        subject: the compared quantity, groups and releases.
        by: the names of the columns of the groups.
        labels: the labels of the groups along each column of ``by``.
        numbers: the columns, each with one number for each group. ``value`` and ``against`` are the
            two quantities; ``difference``, ``ratio`` and ``lift`` (the ratio less 1) each have
            columns for the standard error and the ends of the interval. If ``ratio_bounded`` is 0,
            the interval of the ratio is unbounded, because the interval of ``against`` contains 0.
            Suppose that two releases of surveys state the sampling errors of the same table. Then
            ``difference_both_low`` and ``difference_both_high`` are the ends of the interval for
            noise and samples together. ``ratio`` and ``lift`` have the same columns.
            ``difference_sampling_std`` is the standard error of the samples.
        level: each interval contains its true value with this probability.
        is_joint: whether the intervals are simultaneous. Then, with probability ``level``, all
            differences lie within their intervals. The same holds for all ratios.
        library: the library of the data frames; None if the data was no data frame.
    """

    heading: str
    subject: ComparisonSubject
    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    numbers: Mapping[str, FloatArray]
    level: float
    is_joint: bool = False
    library: str | None = None

    @property
    def title(self) -> str:
        """The compared quantity and the confidence level, as a heading."""
        return f"{self.heading}, {intervals_text(self.level, is_joint=self.is_joint)}"

    def columns(self) -> Columns:
        """Return the columns: keys, then the numbers; each group has one row."""
        return grouped_columns(self.by, self.labels, self.numbers)


def intervals_text(level: float, *, is_joint: bool) -> str:
    """Return the confidence level of intervals as text for a heading."""
    joint = ""
    if is_joint:
        joint = "joint "
    return f"{joint}{100 * level:g}% intervals"


@runtime_checkable
class HasSamplingErrors(Protocol):
    """A release of a survey, which may state the sampling errors of its tables."""

    def find_sampling_errors(
        self, kind: str, measure: str | None, groups: Mapping[str, QuerySet]
    ) -> FloatArray | None:
        """Return the sampling errors of a published quantity by groups, or None."""


class ComparedQuantity(NamedTuple):
    """A compared quantity: its queries and its estimates by group.

    Attributes:
        quotient: the queries of the numerator and of the denominator.
        estimated: the estimated quotient of each group.
        covariance: the covariances between answers of the release.
        multiplier: the half width of an interval, in standard errors.
        half_step: half a step of the noise grid, in rows or units of the measure.
        unit: the amount of one unit of the quantity; results are multiplied by it.
    """

    quotient: Quotient
    estimated: Estimated
    covariance: PairCovariances
    multiplier: float
    half_step: float
    unit: float


def estimate_compared_quantity(
    estimate: Estimate,
    quantity: Quantity,
    quotient: Quotient,
    names: tuple[str, ...],
    multiplier: float,
) -> ComparedQuantity:
    """Return the estimates of a compared quantity, by group.

    ``multiplier`` is the half width of an interval in standard errors.
    """
    measurements = estimate.observation.measurements
    covariance = pair_covariances(estimate)
    parts = [quotient.numerator]
    if quotient.denominator is not None:
        parts.append(quotient.denominator)
    values = [
        expand(part, answer.values, names)
        for part, answer in zip(parts, estimate.answers(parts), strict=True)
    ]
    estimated = estimate_quotient(
        quotient,
        values[0],
        values[1] if len(values) > 1 else None,
        covariance,
        names,
        possible_values(quantity, measurements.domain),
        multiplier,
    )
    return ComparedQuantity(
        quotient,
        estimated,
        covariance,
        multiplier,
        0.5 / measurements.grid,
        unit_of(quantity, measurements.domain),
    )


class ComparedPair(NamedTuple):
    """The two compared quantities of a release, and their errors' correlation."""

    first: ComparedQuantity
    second: ComparedQuantity
    correlation: FloatArray
    names: tuple[str, ...]

    @property
    def difference(self) -> ComparisonInterval:
        """The difference, with an interval for each group."""
        return _difference(self.first, self.second, self.correlation)

    @property
    def ratio(self) -> ComparisonInterval:
        """The ratio, with an interval for each group."""
        return quotient_interval(self.first.estimated, self.second.estimated, self.correlation)

    def errors_of_sides(
        self, answers: Mapping[Product, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Compute both quantities' errors from simulated errors of answers.

        Each array has shape (draws, *shape of the groups).
        """
        first, second = (
            _error_of_quotient(side, self.names, answers) for side in (self.first, self.second)
        )
        return first, second


def _error_of_quotient(
    side: ComparedQuantity, names: tuple[str, ...], answers: Mapping[Product, FloatArray]
) -> FloatArray:
    """Compute a quantity's simulated errors from simulated errors of answers."""

    def errors_of(product: Product) -> FloatArray:
        """Return the errors of a product's answers, with an axis per attribute."""
        draws = answers[product]
        group_axes = expand(product, draws[0], names).shape
        return draws.reshape(len(draws), *group_axes)

    errors = errors_of(side.quotient.numerator)
    if side.quotient.denominator is not None:
        errors = errors - side.estimated.bounded_quotient * errors_of(side.quotient.denominator)
    return np.asarray(errors / side.estimated.error_divisor)


def estimate_compared_pair(
    estimate: Estimate, comparison: Comparison, multiplier: float
) -> ComparedPair:
    """Return the estimates of both quantities of a comparison, by group.

    ``multiplier`` is the half width of an interval in standard errors.
    """
    domain = estimate.observation.measurements.domain
    quotients = comparison.sides(domain)
    products = list(chain.from_iterable((each.numerator, each.denominator) for each in quotients))
    names = axes_of(domain, *products)
    first, second = (
        estimate_compared_quantity(estimate, comparison.quantity, each, names, multiplier)
        for each in quotients
    )
    estimated = (first.estimated, second.estimated)
    shared = error_covariance(quotients, estimated, first.covariance, names)
    return ComparedPair(first, second, correlation_of(shared, *estimated), names)


def pair_covariances(estimate: Estimate) -> PairCovariances:
    """Return an object that computes covariances between a release's answers."""

    def variances_of(product: Product) -> FloatArray:
        """Return the variances of the answers to a product."""
        variances = estimate.covariance_of(product.measure).variances(product)
        return estimate.std(product.measure, variances) ** 2

    return PairCovariances(estimate.observation.measurements, estimate.covariance_of, variances_of)


def possible_values(quantity: Quantity, domain: Domain) -> tuple[float, float]:
    """Return the least and the greatest possible value of a quantity.

    The values are in rows or in units of the measure.
    """
    if quantity.kind == "share":
        return (0.0, 1.0)
    if quantity.measure is None:
        return (0.0, math.inf)
    bounds = column_measures(domain.measure(quantity.measure))[0]
    if quantity.kind == "mean":
        return (float(bounds.low_units), float(bounds.high_units))
    if bounds.low_units >= 0:
        return (0.0, math.inf)
    return (-math.inf, math.inf)


def unit_of(quantity: Quantity, domain: Domain) -> float:
    """Return the amount of one unit of a quantity; 1 for counts."""
    if quantity.measure is None:
        return 1.0
    measure = domain.measure(quantity.measure)
    if quantity.kind == "mean":
        return float(column_measures(measure)[0].unit)
    return float(measure.unit)


def axes_of(domain: Domain, *products: Product | None) -> tuple[str, ...]:
    """Return the attributes that some products use, in domain order."""
    used = set(
        chain.from_iterable(product.attributes for product in products if product is not None)
    )
    return tuple(name for name in domain.names if name in used)


def group_shape(labels: tuple[tuple[str | int, ...], ...]) -> tuple[int, ...]:
    """Return the number of groups along each attribute."""
    return tuple(map(len, labels))


def _difference(
    first: ComparedQuantity, second: ComparedQuantity, correlation: FloatArray
) -> ComparisonInterval:
    """Return the difference of two compared quantities, with its interval."""
    if first.quotient.denominator is not None:
        return difference_interval(first.estimated, second.estimated, correlation)
    return linear_difference(
        first.estimated,
        second.estimated,
        correlation,
        max(first.multiplier, second.multiplier),
        max(first.half_step, second.half_step),
    )


def _comparison_columns(
    first: ComparedQuantity,
    second: ComparedQuantity,
    correlation: FloatArray,
    shape: tuple[int, ...],
) -> dict[str, FloatArray]:
    """Return a comparison's columns: values, difference, ratio and lift."""
    return {
        **_difference_columns(first, second, correlation, shape),
        **_ratio_columns(first, second, correlation, shape),
    }


def _difference_columns(
    first: ComparedQuantity,
    second: ComparedQuantity,
    correlation: FloatArray,
    shape: tuple[int, ...],
) -> dict[str, FloatArray]:
    """Return the columns of both values and of their difference."""
    unit = first.unit
    numbers = {
        "value": first.estimated.value * unit,
        "against": second.estimated.value * unit,
        **interval_columns("difference", _difference(first, second, correlation), unit),
    }
    return {name: array.reshape(shape) for name, array in numbers.items()}


def _ratio_columns(
    first: ComparedQuantity,
    second: ComparedQuantity,
    correlation: FloatArray,
    shape: tuple[int, ...],
) -> dict[str, FloatArray]:
    """Return the columns of the ratio and of the lift."""
    ratio = quotient_interval(first.estimated, second.estimated, correlation)
    is_bounded = np.isfinite(ratio.low) & np.isfinite(ratio.high)
    numbers = {
        **interval_columns("ratio", ratio, 1.0),
        "ratio_bounded": is_bounded.astype(np.float64),
        **interval_columns("lift", lift_of(ratio), 1.0),
    }
    return {name: array.reshape(shape) for name, array in numbers.items()}


def lift_of(ratio: ComparisonInterval) -> ComparisonInterval:
    """Return a ratio less 1, with its interval."""
    return ComparisonInterval(ratio.value - 1, ratio.low - 1, ratio.high - 1, ratio.std_error)


def interval_columns(
    quantity_name: str, interval: ComparisonInterval, measure_unit: float
) -> dict[str, FloatArray]:
    """Return the columns of a value with its interval and standard error.

    Values in units are multiplied by ``measure_unit``.
    """
    return {
        quantity_name: interval.value * measure_unit,
        f"{quantity_name}_low": interval.low * measure_unit,
        f"{quantity_name}_high": interval.high * measure_unit,
        f"{quantity_name}_std_error": interval.std_error * measure_unit,
    }


def _in_one_unit(
    first: ComparedQuantity, second: ComparedQuantity
) -> tuple[ComparedQuantity, ComparedQuantity]:
    """Return the two compared quantities, converted to the same unit."""
    if first.unit == second.unit:
        return first, second
    return _in_amounts(first), _in_amounts(second)


def _in_amounts(quantity: ComparedQuantity) -> ComparedQuantity:
    """Return a compared quantity, converted from units of its measure to amounts."""
    scaled = quantity.estimated._replace(
        value=quantity.estimated.value * quantity.unit,
        low=quantity.estimated.low * quantity.unit,
        high=quantity.estimated.high * quantity.unit,
        std_error=quantity.estimated.std_error * quantity.unit,
        bounds=(
            quantity.estimated.bounds[0] * quantity.unit,
            quantity.estimated.bounds[1] * quantity.unit,
        ),
    )
    return quantity._replace(
        estimated=scaled, half_step=quantity.half_step * quantity.unit, unit=1.0
    )


@one_thread()
def compare_groups(
    source: HasLeastSquares,
    along: str,
    group: object,
    against: object,
    *,
    mean: str | None = None,
    sum: str | None = None,  # noqa: A002 - the word of `queries`
    share: Mapping[str, object] | None = None,
    count: str = "rows",
    by: By = (),
    level: float | None = None,
    each: bool = False,
) -> Differences:
    """Estimate difference, ratio and lift between two groups of one release.

    Args:
        source: a release or an estimate; it costs no budget.
        along: the attribute that divides the groups, such as ``"year"`` or ``"arm"``.
        group: a cell, a list of cells, or groups of a level: ``{"region": "north"}``.
        against: the cells of the second group. The difference subtracts the quantity of this group,
            and the ratio divides by it.
        mean: compare means of this measure.
        sum: compare sums of this measure.
        share: compare shares of rows with these cells, such as ``{"status": "active"}``.
        count: compare counts of "rows" or of privacy "units". It applies only if ``mean``, ``sum``
            and ``share`` are None.
        by: compare within each of these groups: attributes, or mappings such as ``{"store":
            ln.level("region")}``.
        level: the confidence level of each interval; None for the level of the release.
        each: compare each group of the list ``group`` separately. With this, all differences lie
            within their intervals with probability ``level``, for any number of groups. The same
            holds for all ratios and for all lifts.

    Returns:
        A table; ``frame()`` returns it as a data frame.

    Raises:
        InputError: the cells do not exist, the groups overlap, or the measurements do not determine
            an answer or its error.

    Guarantees: post-processing. The covariances of the errors are exact. So, for any counts, the
        intervals of comparisons cover their true values about as often as the intervals of the
        release do.

    Source: Zou and Donner 2008; Donner and Zou 2012; Fieller 1954.

    >>> domain = ln.Domain(year=[2024, 2025])
    >>> plan = ln.plan(ln.queries(domain, year="identity"), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"year": [2024] * 400 + [2025] * 500}), seed=7)
    >>> frame = ln.compare_groups(release, "year", 2025, 2024).frame("pandas")
    >>> frame[["difference", "lift"]].round(2).values.tolist()
    [[99.0, 0.25]]
    """
    estimate = estimate_of(source)
    level = level_of(source, level)
    domain = estimate.observation.measurements.domain
    quantity = read_quantity(domain, mean=mean, sum=sum, share=share, count=count)
    if each:
        return _compare_separately(source, along, group, against, quantity, by, level)
    comparison = read_comparison(domain, along, group, against, by=by, quantity=quantity)
    multiplier = interval_multiplier(estimate.observation.measurements.noise, level)
    pair = estimate_compared_pair(estimate, comparison, multiplier)
    keys, labels = group_keys(domain, dict(comparison.by))
    return Differences(
        heading=comparison.name,
        subject=ComparisonSubject(
            sources=(source,),
            quantity=quantity,
            by=dict(comparison.by),
            along=along,
            selections=(group,),
            against=against,
        ),
        by=keys,
        labels=labels,
        numbers=_comparison_columns(pair.first, pair.second, pair.correlation, group_shape(labels)),
        level=level,
        library=source.library,
    )


def _compare_separately(
    source: HasLeastSquares,
    along: str,
    groups: object,
    against: object,
    quantity: Quantity,
    by: By,
    level: float,
) -> Differences:
    """Compare each of several groups with the same group, with joint intervals.

    The arguments are as for `compare_groups`.
    """
    estimate = estimate_of(source)
    separate = separate_groups(along, groups)
    domain = estimate.observation.measurements.domain
    comparisons = [
        read_comparison(domain, along, selection, against, by=by, quantity=quantity)
        for selection in separate.selections
    ]
    keys, labels = group_keys(domain, dict(comparisons[0].by))
    for_differences, for_ratios = _joint_multipliers(estimate, comparisons, level)
    shape = group_shape(labels)
    columns = []
    for comparison in comparisons:
        pair = estimate_compared_pair(estimate, comparison, for_differences)
        numbers = _difference_columns(pair.first, pair.second, pair.correlation, shape)
        pair = estimate_compared_pair(estimate, comparison, for_ratios)
        numbers |= _ratio_columns(pair.first, pair.second, pair.correlation, shape)
        columns.append(numbers)
    return Differences(
        heading=f"{quantity.name}, each {separate.key} against {comparisons[0].against_text}",
        subject=ComparisonSubject(
            sources=(source,),
            quantity=quantity,
            by=dict(comparisons[0].by),
            along=along,
            selections=separate.selections,
            against=against,
        ),
        by=(separate.key, *keys),
        labels=(separate.labels, *labels),
        numbers=stack_columns(columns),
        level=level,
        is_joint=True,
        library=source.library,
    )


def _joint_multipliers(
    estimate: Estimate, comparisons: Sequence[Comparison], level: float
) -> tuple[float, float]:
    """Return joint half widths of differences and ratios, in standard errors.

    All differences lie within their intervals with probability ``level``, and so do all ratios.
    """
    noise = estimate.observation.measurements.noise
    multiplier = interval_multiplier(noise, level)
    pairs = [estimate_compared_pair(estimate, each, multiplier) for each in comparisons]
    differences = [pair.difference for pair in pairs]
    ratios = [pair.ratio for pair in pairs]
    errors_of_differences = errors_of_ratios = None
    answers = simulate_answers(estimate, products_of_pairs(pairs))
    if answers is not None:
        sides = [pair.errors_of_sides(answers) for pair in pairs]
        errors_of_differences = np.stack([first - second for first, second in sides], axis=1)
        errors_of_ratios = np.stack(
            [
                ratio_errors(pair.second.estimated, ratio, *errors)
                for pair, ratio, errors in zip(pairs, ratios, sides, strict=True)
            ],
            axis=1,
        )
    for_differences = joint_multiplier(
        errors_of_differences, np.stack([each.std_error for each in differences]), noise, level
    )
    for_ratios = joint_multiplier(
        errors_of_ratios, np.stack([each.std_error for each in ratios]), noise, level
    )
    return for_differences, for_ratios


def products_of_pairs(pairs: Sequence[ComparedPair]) -> list[Product]:
    """Return the tables that contain the quantities of some compared pairs."""
    products = []
    for pair in pairs:
        for side in (pair.first, pair.second):
            products.append(side.quotient.numerator)
            if side.quotient.denominator is not None:
                products.append(side.quotient.denominator)
    return products


def ratio_errors(
    second: Estimated,
    ratio: ComparisonInterval,
    first_errors: FloatArray,
    second_errors: FloatArray,
) -> FloatArray:
    """Return errors of a ratio, from errors of its two quantities (delta method)."""
    divisor = np.where(second.value == 0, np.nan, second.value)
    return np.asarray((first_errors - ratio.value * second_errors) / divisor)


def stack_columns(columns: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    """Stack the columns of separately compared groups along a new first axis."""
    return {name: np.stack([numbers[name] for numbers in columns]) for name in columns[0]}


def level_of(source: HasLeastSquares, level: float | None) -> float:
    """Return the confidence level, which defaults to the level of the release."""
    if level is None:
        return checked_level(getattr(source, "level", 0.95))
    return checked_level(level)


def group_keys(
    domain: Domain, query_sets: Mapping[str, QuerySet]
) -> tuple[tuple[str, ...], tuple[tuple[str | int, ...], ...]]:
    """Return the names of the group columns, and the labels along each."""
    if not query_sets:
        return (), ()
    product = queries(domain, dict(query_sets)).products[0]
    return product.keys, product.labels


@one_thread()
def compare_releases(
    release: HasLeastSquares,
    against: HasLeastSquares,
    *,
    mean: str | None = None,
    sum: str | None = None,  # noqa: A002 - the word of `queries`
    share: Mapping[str, object] | None = None,
    count: str = "rows",
    where: Mapping[str, object] | None = None,
    by: By = (),
    level: float | None = None,
) -> Differences:
    """Estimate difference, ratio and lift between two finished releases.

    You can, for example, compare this year with last year. Releases with separate payments have
    independent noise, so their variances are added. Two releases of one payment, such as two
    periods of a series, share noise. A release also shares noise with a later release that uses its
    measurements. The intervals of two releases that share noise are wide enough for any correlation
    of this noise. To compare periods exactly, use `compare_groups` on the later release.

    Args:
        release: the release whose numbers are compared.
        against: the second release, whose quantity is subtracted for the difference and divides for
            the ratio.
        mean: compare means of this measure; both releases need it.
        sum: compare sums of this measure.
        share: compare shares of rows with these cells, such as ``{"status": "active"}``.
        count: compare counts of "rows" or of privacy "units". It applies only if ``mean``, ``sum``
            and ``share`` are None.
        where: only rows with these cells, such as ``{"sex": "F"}``.
        by: compare within each of these groups, which both releases must have.
        level: the confidence level of each interval; None for the level of the first release.

    Returns:
        A table; ``frame()`` returns it as a data frame.

    Raises:
        InputError: the groups differ; the bounds of a measure differ; or the measurements of a
            release do not determine an answer.

    >>> domain = ln.Domain(sex=["F", "M"])
    >>> plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1))
    >>> years = [pd.DataFrame({"sex": ["F"] * rows + ["M"] * 300}) for rows in (400, 500)]
    >>> last, this = (ln.release(plan, year, seed=seed) for seed, year in enumerate(years))
    >>> frame = ln.compare_releases(this, last, by=["sex"]).frame("pandas")
    >>> frame["difference_std_error"].round(2).tolist()
    [1.92, 1.92]
    """
    estimates = (estimate_of(release), estimate_of(against))
    level = level_of(release, level)
    domains = [estimate.observation.measurements.domain for estimate in estimates]
    quantities = [
        read_quantity(domain, mean=mean, sum=sum, share=share, count=count) for domain in domains
    ]
    _check_same_bounds(domains, quantities[0])
    groups = [groups_of(domain, by, "the groups of a comparison") for domain in domains]
    keys, other_keys = (
        group_keys(domain, sets) for domain, sets in zip(domains, groups, strict=True)
    )
    if keys != other_keys:
        raise InputError(
            "Two releases can be compared only by groups that have the same labels in the same "
            "order, but these groups differ. Compare them by a level or by attributes that are the "
            "same in both releases."
        )
    first, second = (
        _estimate_selected_rows(estimate, quantity, sets, where or {}, level)
        for estimate, quantity, sets in zip(estimates, quantities, groups, strict=True)
    )
    first, second = _in_one_unit(first, second)
    has_common_noise = _have_common_noise(*estimates)
    if has_common_noise:
        correlation = np.full(first.estimated.value.shape, _WORST_CORRELATION)
    else:
        correlation = np.zeros(first.estimated.value.shape)
    names, labels = keys
    numbers = _comparison_columns(first, second, correlation, group_shape(labels))
    if not where:
        numbers |= _sampling_columns(
            (first, second),
            (
                _find_sampling_errors(release, quantities[0], groups[0]),
                _find_sampling_errors(against, quantities[1], groups[1]),
            ),
            correlation,
            numbers,
            level,
        )
    return Differences(
        heading=f"{quantities[0].name}, of two releases",
        subject=ComparisonSubject(
            sources=(release, against),
            quantity=quantities[0],
            by=groups[0],
            where=where or {},
            by_of_sources=tuple(groups),
            has_common_noise=has_common_noise,
        ),
        by=names,
        labels=labels,
        numbers=numbers,
        level=level,
        library=release.library,
    )


def _find_sampling_errors(
    source: HasLeastSquares, quantity: Quantity, groups: Mapping[str, QuerySet]
) -> FloatArray | None:
    """Return the sampling errors that a release of a survey states, or None."""
    if quantity.units or not isinstance(source, HasSamplingErrors):
        return None
    return source.find_sampling_errors(quantity.kind, quantity.measure, groups)


def _sampling_columns(
    quantities: tuple[ComparedQuantity, ComparedQuantity],
    sampling_errors: tuple[FloatArray | None, FloatArray | None],
    noise_correlation: FloatArray,
    numbers: Mapping[str, FloatArray],
    level: float,
) -> dict[str, FloatArray]:
    """Return the columns for noise and sampling errors of two releases.

    The samples are independent, so their variances add up. If a release states no sampling errors,
    there are no columns.

    Args:
        quantities: the two compared quantities, in the same unit.
        sampling_errors: the standard errors of the two samples, in amounts; None if not stated.
        noise_correlation: the correlation between the noise of the two quantities.
        numbers: the columns for the noise only.
        level: the confidence level of the intervals.
    """
    first, second = sampling_errors
    if first is None or second is None:
        return {}
    difference = numbers["difference"]
    normal = NormalDist().inv_cdf((1 + level) / 2)
    sampling_std = np.hypot(first, second).reshape(difference.shape)
    both_low, both_high = widen_interval(
        difference, numbers["difference_low"], numbers["difference_high"], normal * sampling_std
    )
    wider = []
    for quantity, errors in zip(quantities, (first, second), strict=True):
        in_units = errors.reshape(quantity.estimated.value.shape) / quantity.unit
        wider.append(with_sampling_error(quantity.estimated, in_units**2, normal))
    # The samples are independent, so their errors are correlated only by the noise.
    noise_stds = [quantity.estimated.std_error for quantity in quantities]
    shared = np.nan_to_num(noise_correlation * noise_stds[0] * noise_stds[1])
    ratio = quotient_interval(wider[0], wider[1], correlation_of(shared, wider[0], wider[1]))
    ratio_low, ratio_high = (
        np.where(np.isnan(sampling_std), np.nan, end.reshape(difference.shape))
        for end in (ratio.low, ratio.high)
    )
    return {
        "difference_sampling_std": sampling_std,
        "difference_both_low": both_low,
        "difference_both_high": both_high,
        "ratio_both_low": ratio_low,
        "ratio_both_high": ratio_high,
        "lift_both_low": ratio_low - 1,
        "lift_both_high": ratio_high - 1,
    }


def with_sampling_error(
    estimated: Estimated, sampling_variance: FloatArray, normal_multiplier: float
) -> Estimated:
    """Return an estimate with an interval that is widened by the sampling error."""
    half_width = normal_multiplier * np.sqrt(sampling_variance)
    low, high = widen_interval(estimated.value, estimated.low, estimated.high, half_width)
    return estimated._replace(
        low=np.maximum(low, estimated.bounds[0]),
        high=np.minimum(high, estimated.bounds[1]),
        std_error=np.sqrt(estimated.std_error**2 + sampling_variance),
    )


def _estimate_selected_rows(
    estimate: Estimate,
    quantity: Quantity,
    groups: Mapping[str, QuerySet],
    where: Mapping[str, object],
    level: float,
) -> ComparedQuantity:
    """Return the estimates of a compared quantity for selected rows."""
    domain = estimate.observation.measurements.domain
    conditions = {
        name: selected_cells(domain, name, cells, "where") for name, cells in where.items()
    }
    repeated = [name for name in conditions if name in groups]
    if repeated:
        raise InputError(f"{repeated[0]} is in both where and by; use it in only one of them.")
    quotient = quantity.over(domain, {**groups, **conditions})
    names = axes_of(domain, quotient.numerator, quotient.denominator)
    multiplier = interval_multiplier(estimate.observation.measurements.noise, level)
    side = estimate_compared_quantity(estimate, quantity, quotient, names, multiplier)
    return _without_selection_axes(side, names, groups)


def _without_selection_axes(
    quantity: ComparedQuantity, names: tuple[str, ...], groups: Mapping[str, QuerySet]
) -> ComparedQuantity:
    """Return a compared quantity with only the axes of ``groups``."""
    group_axes = [axis for axis, name in enumerate(names) if name in groups]
    sizes = [quantity.estimated.value.shape[axis] for axis in group_axes]
    reshaped = quantity.estimated._replace(
        **{
            name: array.reshape(sizes)
            for name, array in quantity.estimated._asdict().items()
            if name != "bounds"
        }
    )
    return quantity._replace(estimated=reshaped)


def _check_same_bounds(domains: Sequence[Domain], quantity: Quantity) -> None:
    """Raise if two releases clip a measure at different bounds."""
    if quantity.measure is None:
        return
    measures = [column_measures(domain.measure(quantity.measure))[0] for domain in domains]
    if len({(measure.low, measure.high) for measure in measures}) > 1:
        raise InputError(
            f"The two releases clip {quantity.measure} at different bounds, so a part of the "
            "difference would come from clipping. Release both with the same bounds."
        )


def _have_common_noise(first: Estimate, second: Estimate) -> bool:
    """Return whether two estimates share a payment, or have noise in common."""
    if first.receipts and second.receipts:
        return bool({*first.receipts} & {*second.receipts})
    numbers = [_measured_numbers(estimate.observation) for estimate in (first, second)]
    return numbers[0] <= numbers[1] or numbers[1] <= numbers[0]


def _measured_numbers(observation: Observation) -> set[bytes]:
    """Return the noisy answers of each block, as a set of byte strings."""
    grid = observation.measurements.grid
    return {np.asarray(values / grid, dtype=np.float64).tobytes() for values in observation.values}
