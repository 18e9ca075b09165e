"""Errors and intervals of differences and ratios of two quantities.

Each quantity is a count or a sum, or a quotient N / D of two of them (a mean, a share). The error
of a quotient r is about (n - r d) / D, where n and d are the errors of N and D. Least squares has
exact covariances for all counts and sums, so two quantities of one release have a known
correlation.

The interval of a difference or a ratio is computed from the intervals of the two quantities and
their correlation (the method of variance estimates recovery). For counts, this method gives the
exact interval of the difference and Fieller's interval of the ratio. This method is also valid if a
quotient has an asymmetric interval due to a small divisor.

Source: for differences, Zou and Donner, Statistics in Medicine 27 (2008). For ratios, Donner and
    Zou, Statistical Methods in Medical Research 21 (2012); Fieller, J. R. Stat. Soc. B 16 (1954).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leastnoise._error._equations import Covariance, centring_midpoint, covariances
from leastnoise._error._noise_intervals import ratio_interval
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import Array, FloatArray
from leastnoise._trusted.linop import Total, dense
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import Product, Quotient, matrix, queries

# Variances below this relative size may be floating-point errors of a difference.
_VARIANCE_ROUNDING = 2.0**-40
_MOST_ENTRIES = 2**24  # maximum number of entries of the matrix of differences along an attribute


@dataclass(frozen=True, slots=True)
class PairCovariances:
    """Covariances between the answers of two products in the same group.

    Attributes:
        measurements: the measurements of a release or a plan.
        covariance_of: the covariance of least squares for a measure; None for counts of rows.
        variances_of: the variances of a product's answers; 0 for public answers.
    """

    measurements: Measurements
    covariance_of: Callable[[str | None], Covariance]
    variances_of: Callable[[Product], FloatArray]

    def between(self, first: Product, second: Product, names: tuple[str, ...]) -> FloatArray:
        """Return covariances of the answers of two products, by group.

        Suppose that a product has no query or a single query along an attribute. Then the answer of
        this product is paired with every answer of the other product along the attribute. The
        errors of sums of a measure include the errors of its counts. Errors of different measures
        are uncorrelated.

        Args:
            first: a product on some of ``names``.
            second: another product.
            names: all attributes, in the order of the domain.
        """
        if first.measure != second.measure:
            return self._between_measures(first, second, names)
        along = [_query_difference(first, second, name) for name in names]
        differing = [name for name, rows in zip(names, along, strict=True) if rows is not None]
        if not differing:
            return self._variances_by_group(first, names)
        if len(differing) == 1 and not first.of_units:
            rows = along[names.index(differing[0])]
            polarized = self._from_differences(first, second, names, differing[0], rows)
            if polarized is not None:
                return polarized
        return self._from_all_pairs(first, second, names)

    def _variances_by_group(self, product: Product, names: tuple[str, ...]) -> FloatArray:
        """Return the variances of a product's answers, with one axis for each name."""
        return expand(product, self.variances_of(product), names)

    def _between_measures(
        self, first: Product, second: Product, names: tuple[str, ...]
    ) -> FloatArray:
        """Return covariances between answers of products on different measures."""
        for sums, counts in ((first, second), (second, first)):
            if sums.measure is None:
                continue
            if sums.domain.count_of(sums.measure) == counts.measure:
                # A sum is the centred sum plus the midpoint times the count, and their errors are
                # uncorrelated.
                midpoint = centring_midpoint(self.measurements, sums.measure)
                if not midpoint:
                    break
                as_counts = queries(sums.domain, sums.along, sum=counts.measure).products[0]
                return midpoint * self.between(as_counts, counts, names)
        return np.zeros((1,) * len(names))

    def _from_differences(
        self,
        first: Product,
        second: Product,
        names: tuple[str, ...],
        name: str,
        difference_rows: Array | None,
    ) -> FloatArray | None:
        """Return covariances from variances of differences of answers, or None.

        The result is None if only one of the two products counts a hidden cell, because then the
        difference is not a query.
        """
        kind = first.domain.kind(name)
        if difference_rows is None or difference_rows[:, kind.published :].any():
            return None
        sets = {**(first.along if name in first.along else second.along)}
        sets[name] = matrix(difference_rows[:, : kind.published].tolist())
        difference = queries(first.domain, sets, sum=first.measure).products[0]
        return np.asarray(
            (
                self._variances_by_group(first, names)
                + self._variances_by_group(second, names)
                - self._variances_by_group(difference, names)
            )
            / 2
        )

    def _from_all_pairs(
        self, first: Product, second: Product, names: tuple[str, ...]
    ) -> FloatArray:
        """Return covariances by group, selected from the covariances of all pairs."""
        covariance = self.covariance_of(first.measure)
        if covariance.solver_cells:
            raise InputError(
                "These answers have no known covariance, because the errors of this release need "
                "a linear solver. Compare two groups along one attribute, or plan with "
                'strategy = "marginals".'
            )
        pairs = covariances(covariance, first, second)
        positions = [
            expand(product, np.arange(product.rows).reshape(product.shape), names)
            for product in (first, second)
        ]
        first_rows, second_rows = np.broadcast_arrays(*positions)
        return np.asarray(pairs[first_rows.astype(np.int64), second_rows.astype(np.int64)])


def expand(product: Product, values: Array, names: tuple[str, ...]) -> Array:
    """Reshape values of a product's queries to one axis for each of ``names``.

    The axis of an attribute that the product lacks has length 1.
    """
    sizes = dict(zip(product.attributes, product.shape, strict=True))
    return values.reshape([sizes.get(name, 1) for name in names])


def _query_difference(first: Product, second: Product, name: str) -> Array | None:
    """Return the difference of two products' queries along an attribute, or None.

    The result is None if the queries of both products are equal along the attribute.
    """
    if first.along.get(name) == second.along.get(name):
        return None
    size = first.domain.kind(name).size
    operators = [
        dict(zip(product.attributes, product.operators, strict=True)).get(name, Total(size))
        for product in (first, second)
    ]
    entries = max(operator.rows for operator in operators) * size
    if entries > _MOST_ENTRIES:
        raise refuse(
            f"the groups along {name}",
            f"{entries} coefficients",
            f"at most {_MOST_ENTRIES}, which is groups times cells",
            "Ask for fewer groups.",
        )
    rows = np.asarray(dense(operators[0]).astype(np.int64) - dense(operators[1]).astype(np.int64))
    if rows.any():
        return rows
    return None


class Estimated(NamedTuple):
    """The estimate of a quantity by group, and its interval and error terms.

    Attributes:
        value: the estimate.
        low: the lower end of the interval.
        high: the upper end of the interval.
        std_error: the standard error; NaN if the divisor is not significantly above 0.
        is_clear: whether the divisor is significantly above 0; always True for counts and sums.
        error_divisor: the divisor of the error: the estimated denominator, or 1 for counts and
            sums.
        bounded_quotient: the estimate, limited to the interval. The error of the denominator is
            multiplied by it. For counts and sums, it is 0.
        bounds: the least and the largest possible value.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    is_clear: Array
    error_divisor: FloatArray
    bounded_quotient: FloatArray
    bounds: tuple[float, float]


def estimate_quotient(
    quantity: Quotient,
    numerator: FloatArray,
    denominator: FloatArray | None,
    covariance: PairCovariances,
    names: tuple[str, ...],
    bounds: tuple[float, float],
    multiplier: float,
) -> Estimated:
    """Return the quotient of two answers by group, with its interval.

    Args:
        quantity: the queries of the numerator and the denominator.
        numerator: the estimated counts or sums, with an axis for each of ``names``.
        denominator: the estimated counts that divide the numerator; None for counts and sums.
        covariance: the covariance of the estimates.
        names: the attributes of the axes.
        bounds: the least and the largest possible value, in rows or units.
        multiplier: half the width of an interval in standard errors.
    """
    step = 0.5 / covariance.measurements.grid
    numerator_variance = covariance.between(quantity.numerator, quantity.numerator, names)
    if quantity.denominator is None or denominator is None:
        return _estimate_numerator(numerator, numerator_variance, step, bounds, multiplier)
    denominator_variance = covariance.between(quantity.denominator, quantity.denominator, names)
    shared = covariance.between(quantity.numerator, quantity.denominator, names)
    # The errors of the denominator and of (numerator - ``slope`` * denominator) are uncorrelated.
    slope = np.where(
        denominator_variance > 0,
        shared / np.where(denominator_variance > 0, denominator_variance, 1.0),
        0.0,
    )
    rest_variance = np.maximum(numerator_variance - slope * shared, 0.0)
    rest_variance = np.where(
        rest_variance > _VARIANCE_ROUNDING * numerator_variance, rest_variance, 0.0
    )
    # For integer noise, intervals are extended by half a step. Public numbers have no noise.
    is_mean = quantity.numerator.measure is not None
    numerator_step = np.where(rest_variance > 0, step * (1 + (0 if is_mean else np.abs(slope))), 0)
    has_noise = float(np.max(denominator_variance, initial=0.0)) > 0
    ends = ratio_interval(
        numerator - slope * denominator,
        denominator,
        rest_variance + np.zeros_like(denominator),
        denominator_variance + np.zeros_like(denominator),
        multiplier,
        (-np.inf, np.inf),
        half_noise_steps=(numerator_step, step if has_noise else 0.0),
    )
    low, high = (np.clip(end + slope, *bounds) for end in ends)
    is_positive = denominator > 0
    divisor = np.where(is_positive, denominator, 1.0)
    quotient = np.where(is_positive, numerator / divisor, (bounds[0] + bounds[1]) / 2)
    quotient = np.clip(quotient, low, high)
    variance = rest_variance + (quotient - slope) ** 2 * denominator_variance
    is_clear = np.isfinite(ends[0]) & np.isfinite(ends[1])
    return Estimated(
        value=quotient,
        low=low,
        high=high,
        std_error=np.where(is_clear, np.sqrt(variance) / divisor, np.nan),
        is_clear=is_clear,
        error_divisor=divisor,
        bounded_quotient=quotient,
        bounds=bounds,
    )


def _estimate_numerator(
    numerator: FloatArray,
    variance: FloatArray,
    noise_step: float,
    bounds: tuple[float, float],
    multiplier: float,
) -> Estimated:
    """Return counts or sums by group, with their intervals."""
    std = np.sqrt(np.maximum(variance, 0.0)) + np.zeros_like(numerator)
    reach = multiplier * std + np.where(std > 0, noise_step, 0.0)
    return Estimated(
        value=numerator,
        low=numerator - reach,
        high=numerator + reach,
        std_error=std,
        is_clear=np.ones(numerator.shape, dtype=np.bool_),
        error_divisor=np.ones_like(numerator),
        bounded_quotient=np.zeros_like(numerator),
        bounds=bounds,
    )


def error_covariance(
    quantities: tuple[Quotient, Quotient],
    estimates: tuple[Estimated, Estimated],
    covariance: PairCovariances,
    names: tuple[str, ...],
) -> FloatArray:
    """Return the error covariance of two quotients from one release."""
    total = np.zeros(np.broadcast_shapes(*(each.value.shape for each in estimates)))
    parts = [
        [(quantity.numerator, np.ones_like(estimate.bounded_quotient))]
        + (
            []
            if quantity.denominator is None
            else [(quantity.denominator, -estimate.bounded_quotient)]
        )
        for quantity, estimate in zip(quantities, estimates, strict=True)
    ]
    for first, first_factor in parts[0]:
        for second, second_factor in parts[1]:
            shared = covariance.between(first, second, names)
            total = total + first_factor * second_factor * shared
    return np.asarray(total / (estimates[0].error_divisor * estimates[1].error_divisor))


def correlation_of(covariance: FloatArray, first: Estimated, second: Estimated) -> FloatArray:
    """Return the correlation of two errors; 0 if a variance is unknown or 0."""
    stds = first.std_error * second.std_error
    is_known = np.isfinite(stds) & (stds > 0)
    quotient = np.divide(covariance, stds, out=np.zeros_like(covariance), where=is_known)
    return np.asarray(np.clip(quotient, -1.0, 1.0))


class ComparisonInterval(NamedTuple):
    """An estimate by group, with its interval and standard error."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray


def difference_interval(
    first: Estimated, second: Estimated, correlation: FloatArray
) -> ComparisonInterval:
    """Return the difference of two quantities by group, with its interval.

    Args:
        first: the first quantity.
        second: the second quantity.
        correlation: the correlation of the errors.
    """
    value = first.value - second.value
    below = _difference_half_width(first.value - first.low, second.high - second.value, correlation)
    above = _difference_half_width(first.high - first.value, second.value - second.low, correlation)
    variance = (
        first.std_error**2
        + second.std_error**2
        - 2 * correlation * first.std_error * second.std_error
    )
    low = first.bounds[0] - second.bounds[1]
    high = first.bounds[1] - second.bounds[0]
    return ComparisonInterval(
        value,
        np.clip(value - below, low, high),
        np.clip(value + above, low, high),
        np.sqrt(np.maximum(variance, 0.0)),
    )


def _difference_half_width(
    first_half_width: FloatArray, other_half_width: FloatArray, correlation: FloatArray
) -> FloatArray:
    """Return half the width of the interval of a difference."""
    square = (
        first_half_width**2
        + other_half_width**2
        - 2 * correlation * first_half_width * other_half_width
    )
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def sum_interval(
    parts: Sequence[Estimated],
    factors: Sequence[float],
    correlations: Mapping[tuple[int, int], FloatArray],
    shift: float = 0.0,
) -> Estimated:
    """Return a linear combination of quantities by group, with its interval.

    The distance from the value to an end is the root of a quadratic form in the distances of the
    parts. The difference of two quantities has the same form.

    Args:
        parts: the quantities.
        factors: the factor of each quantity.
        correlations: the correlations of the errors of each pair of quantities, by their positions;
            the larger position comes first.
        shift: the number that is added.

    Source: Zou and Donner 2008, equation 5, for any number of parameters and correlated estimates.
    """
    value = np.asarray(shift + np.zeros_like(parts[0].value))
    below = []
    above = []
    errors = []
    least = greatest = shift
    for part, factor in zip(parts, factors, strict=True):
        value = value + factor * part.value
        distances = [factor * (part.value - part.low), factor * (part.high - part.value)]
        ends = [factor * end for end in part.bounds]
        if factor < 0:
            distances.reverse()
            ends.reverse()
        below.append(distances[0])
        above.append(distances[1])
        errors.append(factor * part.std_error)
        least += ends[0]
        greatest += ends[1]
    is_clear = np.logical_and.reduce([part.is_clear for part in parts])
    return Estimated(
        value=value,
        low=np.clip(value - _combined_distance(below, correlations), least, greatest),
        high=np.clip(value + _combined_distance(above, correlations), least, greatest),
        std_error=_combined_distance(errors, correlations),
        is_clear=is_clear,
        error_divisor=np.ones_like(value),
        bounded_quotient=np.zeros_like(value),
        bounds=(least, greatest),
    )


def _combined_distance(
    signed_distances: Sequence[FloatArray], correlations: Mapping[tuple[int, int], FloatArray]
) -> FloatArray:
    """Return the root of a quadratic form in distances and their correlations.

    The sign of a distance is the sign of the factor of its quantity.
    """
    square = np.zeros_like(signed_distances[0])
    for distance in signed_distances:
        square = square + distance**2
    for (row, column), correlation in correlations.items():
        square = square + 2 * correlation * signed_distances[row] * signed_distances[column]
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def linear_difference(
    first: Estimated,
    second: Estimated,
    correlation: FloatArray,
    multiplier: float,
    half_noise_step: float,
) -> ComparisonInterval:
    """Return the difference of two counts or sums, with its interval.

    The difference is one linear answer, so its standard error is exact.
    """
    plain = difference_interval(first, second, correlation)
    reach = multiplier * plain.std_error + np.where(plain.std_error > 0, half_noise_step, 0.0)
    return ComparisonInterval(
        plain.value, plain.value - reach, plain.value + reach, plain.std_error
    )


def quotient_interval(
    first: Estimated, second: Estimated, correlation: FloatArray
) -> ComparisonInterval:
    """Return the ratio of two quantities by group, with its interval.

    If the interval of the second quantity contains 0, any ratio is possible. Then the interval is
    unbounded, and the value is NaN.
    """
    is_negative = second.high < 0
    sign = np.where(is_negative, -1.0, 1.0)
    is_clear = second.is_clear & ((second.low > 0) | is_negative)
    below = np.where(is_negative, second.high - second.value, second.value - second.low)
    above = np.where(is_negative, second.value - second.low, second.high - second.value)
    divisor = np.where(is_clear, sign * second.value, 1.0)
    divisor_ends = (np.where(is_clear, below, 0.0), np.where(is_clear, above, 0.0))
    first_value = sign * first.value
    own_below = np.where(is_negative, first.high - first.value, first.value - first.low)
    own_above = np.where(is_negative, first.value - first.low, first.high - first.value)
    low = _lower_ratio(first_value, own_below, divisor, divisor_ends, correlation)
    high = -_lower_ratio(-first_value, own_above, divisor, divisor_ends, -correlation)
    if min(first.bounds[0], second.bounds[0]) >= 0:
        least = 0.0
        largest = np.inf
    else:
        least = -np.inf
        largest = np.inf
    value = np.where(is_clear, first_value / divisor, np.nan)
    variance = (
        first.std_error**2
        + value**2 * second.std_error**2
        - 2 * value * correlation * first.std_error * second.std_error
    )
    return ComparisonInterval(
        np.where(is_clear, np.clip(value, least, largest), np.nan),
        np.where(is_clear, np.clip(low, least, largest), least),
        np.where(is_clear, np.clip(high, least, largest), largest),
        np.where(is_clear, np.sqrt(np.maximum(variance, 0.0)) / divisor, np.nan),
    )


def _lower_ratio(
    dividend: FloatArray,
    distance_below: FloatArray,
    divisor: FloatArray,
    divisor_distances: tuple[FloatArray, FloatArray],
    correlation: FloatArray,
) -> FloatArray:
    """Return the lower end of the interval of a ratio, by Fieller's method.

    Args:
        dividend: the value of the dividend.
        distance_below: the distance from the value to the lower end of the dividend's interval.
        divisor: the value of the divisor; its interval must be wholly above 0.
        divisor_distances: the distances from the divisor to the lower and the upper end of its
            interval.
        correlation: the correlation of the errors.
    """
    # The lower end of the interval of dividend - r divisor is 0 at a root of a r^2 - 2 b r + c. The
    # upper end of the divisor is used for r >= 0, otherwise its lower end.
    c = dividend**2 - distance_below**2
    is_positive = dividend - distance_below >= 0
    above_b = dividend * divisor - correlation * distance_below * divisor_distances[1]
    above_a = divisor**2 - divisor_distances[1] ** 2
    above_root = np.sqrt(np.maximum(above_b**2 - above_a * c, 0.0))
    positive_divisor = above_b + above_root
    positive = np.where(
        positive_divisor > 0, c / np.where(positive_divisor > 0, positive_divisor, 1.0), 0.0
    )
    below_b = dividend * divisor - correlation * distance_below * divisor_distances[0]
    below_a = np.maximum(divisor**2 - divisor_distances[0] ** 2, np.finfo(float).tiny)
    below_root = np.sqrt(np.maximum(below_b**2 - below_a * c, 0.0))
    negative = (below_b - below_root) / below_a
    return np.where(is_positive, positive, negative)
