"""Errors of variances, correlations, regressions and R^2 at public scales.

The error of such a statistic depends on the data. With public scales, the error can be computed
without the data. The scales are public numbers: the number of rows of a group, the standard
deviations of the measures, and the range of their means.

The means are in the middle half of the range between the bounds, and the error is the largest error
over these means. The error of a correlation is the largest over all correlations, and the error of
R^2 is the largest over R^2 from 0 to 1. For a regression, the scales come from
`regression_moments`, and the means are in the middle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error._determination_errors import effect_noise, standardised_effects
from leastnoise._error._equations import centring_midpoint
from leastnoise._error._moment_errors import (
    Entry,
    Gradient,
    MomentScales,
    coefficient_gradients,
    coefficient_scales,
    correlation_gradient,
    covariance_gradient,
    moment_scales,
    public_deviations,
    regression_moments,
)
from leastnoise._error._variance_errors import squared_deviation
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import Statistic, pair_names, square_measure

PUBLIC_MEAN_SHARE = 0.5
"""The part of the bounds that contains the means of public scales.

It lies around the middle of the bounds.
"""
_MEANS_TRIED = 9
"""Means of each variable over which the largest error is searched."""
_R_SQUARED_MEANS_TRIED = 3
"""The same for R^2, whose error is largest at the first or the last of them."""
_R_SQUARED_TRIED = 9
"""Values of R^2 over which the largest error is searched."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberAtScales:
    """A number that a statistic estimates, for one row at public scales.

    Attributes:
        name: the pair of measures, the predictor, or the column of a variance or of R^2.
        gradient: the number and its derivatives, one set for each mean that is considered.
        public_scale: the public scale of the number, which is the divisor in relative errors.
        must_be_positive: if one of these numbers is not significantly above 0, the interval
            contains all possible values. Variances, regressions and R^2 have other rules.
        largest_half_width: half the width of that interval.
    """

    name: str
    gradient: Gradient
    public_scale: float
    must_be_positive: Sequence[Gradient]
    largest_half_width: float


def statistic_scales(
    statistic: Statistic, domain: Domain, measured: Measurements | None = None
) -> MomentScales:
    """Return the scales that convert the sums of a statistic to moments.

    Without measurements, offsets are 0.
    """
    if statistic.form.of_several:
        return moment_scales(domain, statistic.variables, statistic.sum_factors, measured)
    return _variance_scales(statistic.of, domain, measured)


def _variance_scales(measure: str, domain: Domain, measured: Measurements | None) -> MomentScales:
    """Return the scales that convert a count, sum and sum of squares to moments."""
    deviation = squared_deviation(domain, measure)
    of = deviation.of
    squares = str(square_measure(domain, measure))
    reach = float(max(of.high_units - deviation.centre, deviation.centre - of.low_units))
    names: dict[Entry, str] = {
        (0, 0): str(domain.count_of(measure)),
        (0, 1): measure,
        (1, 1): squares,
    }
    steps = np.array([[1.0, 1 / reach], [0.0, deviation.divisor / reach**2]])
    common = np.zeros((2, 2))
    if measured is not None:
        common[0, 1] = (centring_midpoint(measured, measure) or 0.0) * steps[0, 1]
        common[1, 1] = (centring_midpoint(measured, squares) or 0.0) * steps[1, 1]
    offsets = common.copy()
    offsets[0, 1] -= deviation.centre / reach
    return MomentScales(
        variables=(measure,),
        names=names,
        centres=np.array([float(deviation.centre)]),
        reaches=np.array([reach]),
        units=np.array([float(of.unit)]),
        steps=steps,
        offsets=offsets,
        common=common,
        lows=np.array([(of.low_units - deviation.centre) / reach]),
        highs=np.array([(of.high_units - deviation.centre) / reach]),
    )


def numbers_at_scales(statistic: Statistic, scales: MomentScales) -> list[NumberAtScales]:
    """Return the numbers whose errors a target limits, at public scales.

    These numbers are the estimates of a statistic.
    """
    if statistic.kind == "variances":
        return [_variance_at_scales(statistic, scales)]
    if statistic.kind == "correlations":
        pairs = combinations(range(len(scales.variables)), 2)
        names = pair_names(scales.variables)
        return [
            _pair_at_scales(statistic, scales, pair, name)
            for pair, name in zip(pairs, names, strict=True)
        ]
    if statistic.kind == "r_squared":
        return [_r_squared_at_scales(statistic, scales)]
    return _slopes_at_scales(statistic, scales)


def _variance_at_scales(statistic: Statistic, scales: MomentScales) -> NumberAtScales:
    """Return a variance or a standard deviation at its public scale."""
    deviation, means = variance_points(statistic, scales)
    width = float(scales.widths[0])
    moments = np.ones((len(means), 2, 2))
    moments[:, 0, 1] = means
    moments[:, 1, 0] = means
    moments[:, 1, 1] = deviation**2 + means**2
    variance = covariance_gradient(moments, 1, 1)
    largest_std = float(scales.highs[0] - scales.lows[0]) / 2 * width
    if statistic.target_column == "variance":
        gradient = _scale_gradient(variance, width**2)
        unit = (deviation * width) ** 2
        largest_half_width = largest_std**2 / 2
    else:
        root = Gradient(np.sqrt(variance.value), variance.derivatives / (2 * deviation))
        gradient = _scale_gradient(root, width)
        unit = deviation * width
        largest_half_width = largest_std / 2
    return NumberAtScales(
        name=statistic.target_column,
        gradient=gradient,
        public_scale=unit,
        must_be_positive=(),
        largest_half_width=largest_half_width,
    )


def variance_points(statistic: Statistic, scales: MomentScales) -> tuple[float, FloatArray]:
    """Return the public standard deviation of u, and the means to consider."""
    deviation = float(public_deviations(statistic, scales)[0])
    return deviation, _public_means(deviation)


def _pair_at_scales(
    statistic: Statistic, scales: MomentScales, pair: tuple[int, int], pair_name: str
) -> NumberAtScales:
    """Return a correlation or covariance of two measures at public scales.

    The error of the number is convex in the correlation, so it is largest at 1 or -1.
    """
    deviations = public_deviations(statistic, scales)[list(pair)]
    axes = [_public_means(float(deviation)) for deviation in deviations]
    first, second, sign = np.meshgrid(*axes, [-1.0, 1.0], indexing="ij")
    rows = scales.steps.shape[0]
    at, other = (position + 1 for position in pair)
    moments = np.zeros((first.size, rows, rows))
    moments[:, 0, 0] = 1.0
    moments[:, 0, at] = first.ravel()
    moments[:, 0, other] = second.ravel()
    moments[:, at, at] = first.ravel() ** 2 + deviations[0] ** 2
    moments[:, other, other] = second.ravel() ** 2 + deviations[1] ** 2
    covariance = sign * deviations[0] * deviations[1]
    moments[:, at, other] = (first * second + covariance).ravel()
    width = float(np.prod(scales.widths[list(pair)]))
    if statistic.target_column == "covariance":
        distances = (scales.highs - scales.lows)[list(pair)]
        return NumberAtScales(
            name=pair_name,
            gradient=_scale_gradient(covariance_gradient(moments, at, other), width),
            public_scale=float(np.prod(deviations)) * width,
            must_be_positive=(),
            largest_half_width=float(np.prod(distances)) / 4 * width,
        )
    return NumberAtScales(
        name=pair_name,
        gradient=correlation_gradient(moments, at, other),
        public_scale=1.0,
        must_be_positive=[covariance_gradient(moments, row, row) for row in (at, other)],
        largest_half_width=1.0,
    )


def _slopes_at_scales(statistic: Statistic, scales: MomentScales) -> list[NumberAtScales]:
    """Return the slopes of a regression at public scales."""
    weight_rows, _ = coefficient_scales(scales)
    slopes = coefficient_gradients(slope_points(statistic, scales), weight_rows)[1:]
    amounts = public_deviations(statistic, scales) * scales.widths
    return [
        NumberAtScales(
            name=name,
            gradient=slope,
            public_scale=float(amounts[0] / amount),
            must_be_positive=(),
            largest_half_width=np.inf,
        )
        for name, slope, amount in zip(scales.variables[1:], slopes, amounts[1:], strict=True)
    ]


def slope_points(statistic: Statistic, scales: MomentScales) -> FloatArray:
    """Return the moments of one row at the public scales of slopes, as one group."""
    return regression_moments(public_deviations(statistic, scales))[None]


def r_squared_points(statistic: Statistic, scales: MomentScales) -> FloatArray:
    """Return the moments of one row at the public scales of R^2.

    There is one group for each tried combination of R^2, the mean of the response and the mean of
    the predictors. The predictors have the same mean, because opposite means reduce the error.
    """
    deviations = public_deviations(statistic, scales)
    response_means = _public_means(float(deviations[0]), _R_SQUARED_MEANS_TRIED)
    predictor_means = _public_means(float(deviations[1:].max()), _R_SQUARED_MEANS_TRIED)
    points = []
    for r_squared in np.linspace(0.0, 1.0, _R_SQUARED_TRIED):
        for response_mean in response_means:
            for predictor_mean in predictor_means:
                means = np.full(len(deviations), predictor_mean)
                means[0] = response_mean
                points.append(regression_moments(deviations, means, float(r_squared)))
    return np.array(points)


def _r_squared_at_scales(statistic: Statistic, scales: MomentScales) -> NumberAtScales:
    """Return R^2 as computed from public scales, and its first derivatives."""
    effects = standardised_effects(r_squared_points(statistic, scales))
    slopes = sum(
        2 * gradient.value[:, None, None] * gradient.derivatives for gradient in effects.gradients
    )
    return NumberAtScales(
        name=statistic.target_column,
        gradient=Gradient(effects.squared_length, np.asarray(slopes)),
        public_scale=1.0,
        must_be_positive=(),
        largest_half_width=0.5,
    )


def r_squared_std_error(
    measured: Measurements, statistic: Statistic, stds: Sequence[float]
) -> float:
    """Return the largest standard error of R^2 at public scales, to second order.

    Args:
        measured: the measurements of a plan.
        statistic: R^2 with a public size.
        stds: the standard error of each table of the statistic, in units of the table.
    """
    scales = statistic_scales(statistic, measured.domain, measured)
    moments = float(statistic.size or 0) * r_squared_points(statistic, scales)
    effects = standardised_effects(moments)
    noise = scales.noise(dict(zip(scales.names, stds, strict=True)))
    spread = effect_noise(scales, effects, noise, measured.noise)
    return float(spread.std_error(effects.squared_length).max())


def largest_relative_derivatives(statistic: Statistic, domain: Domain) -> FloatArray:
    """Return, for each sum of a statistic, its largest relative derivative.

    For each sum, the result is the largest derivative of the statistic's numbers with respect to
    this sum, relative to the public scale of the number.

    Sums are in their own units, for a group of one row. The result is in the order of the sums.
    Some sums do not affect the error of a regression if the means are in the middle of the bounds.
    So the result has the largest derivatives over means in and around the middle of the bounds.
    """
    scales = statistic_scales(statistic, domain)
    relative: list[FloatArray] = []
    numbers = numbers_at_scales(statistic, scales)
    if statistic.kind == "regression":
        deviations = public_deviations(statistic, scales)
        weight_rows, _ = coefficient_scales(scales)
        for mean in (-PUBLIC_MEAN_SHARE, 0.0, PUBLIC_MEAN_SHARE):
            moments = regression_moments(deviations, mean)
            slopes = coefficient_gradients(moments, weight_rows)[1:]
            for number, slope in zip(numbers, slopes, strict=True):
                relative.append(np.abs(slope.derivatives) / number.public_scale)
    else:
        relative = [
            np.abs(number.gradient.derivatives).max(axis=0) / number.public_scale
            for number in numbers
        ]
    largest = np.max(relative, axis=0) * scales.steps
    if (0, 1) in scales.names and not statistic.form.of_several:
        # A variance uses sums of values, not of distances from the middle.
        centre = abs(scales.centres[0])
        largest[0, 0] += largest[0, 1] * centre
    return np.array([largest[entry] for entry in scales.names])


def _public_means(std_dev: float, count: int = _MEANS_TRIED) -> FloatArray:
    """Return the means of u to consider for a public standard deviation."""
    possible = float(np.sqrt(max(0.0, 1 - std_dev**2)))
    reach = min(PUBLIC_MEAN_SHARE, possible)
    return np.linspace(-reach, reach, count)


def _scale_gradient(gradient: Gradient, factor: float) -> Gradient:
    """Return a function of the moments and its derivatives, times a factor."""
    return Gradient(gradient.value * factor, gradient.derivatives * factor)
