"""Errors of covariances and regressions, from the errors of their sums.

A scaled value u is between -1 and 1. u is the value minus the middle of its bounds, divided by the
largest distance of a value from the middle. The sums of a group are a symmetric matrix of moments.
The first row of the matrix has the number of rows and the sums of u. The other rows have the sums
of products of two scaled values. The variables are in the order of the statistic, so row 1 of a
regression belongs to its response.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from leastnoise._domain import DeviationProduct, Domain
from leastnoise._error._equations import centring_midpoint
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import (
    Factors,
    Statistic,
    complete_rows_measures,
    in_domain_order,
    in_factor_order,
    join_measures,
    pair_names,
    term_names,
)

_MEANS_TRIED = 33
"""The number of means of each variable at which a covariance's error is computed.

Both bounds are included. The largest of these errors is used.
"""
PUBLIC_STD_RATIO = 0.25
"""The standard deviation for which a plan states the errors of coefficients, relative to the
distance of the bounds. For uniformly distributed values this ratio is 0.29."""

Entry = tuple[int, int]
"""The row and the column of an entry in the upper triangle of the matrix of moments."""


class Gradient(NamedTuple):
    """The value and derivatives of a function of each group's moments.

    Attributes:
        value: the value of the function in each group.
        derivatives: the derivatives with respect to each entry of the upper triangle, shape (...,
            rows, rows).
    """

    value: FloatArray
    derivatives: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentScales:
    """Scales that convert sums over complete rows to moments of scaled values.

    Attributes:
        variables: the measures, in the order of the statistic.
        names: for each entry of the matrix, the measure whose sums it contains.
        centres: the middle of the bounds of each variable, in units of the variable.
        reaches: the largest distance of a value of each variable from the middle, in its units.
        units: for each variable, the amount of one unit.
        steps: for each entry of the matrix, the amount that one unit of its sums adds.
        offsets: for each entry, the amount to subtract from every product. With this amount, the
            noise of the sum is uncorrelated with the noise of the number of rows.
        common: for each entry, the coefficient of the count's noise in the noise of the measured
            sum. It is not 0 if the summed values are not distances from the middle.
        lows: the lower bound of each u.
        highs: the upper bound of each u.
    """

    variables: tuple[str, ...]
    names: Mapping[Entry, str]
    centres: FloatArray
    reaches: FloatArray
    units: FloatArray
    steps: FloatArray
    offsets: FloatArray
    common: FloatArray
    lows: FloatArray
    highs: FloatArray

    @property
    def widths(self) -> FloatArray:
        """For each variable, the change in its own units if u changes by 1."""
        return np.asarray(self.reaches * self.units)

    def noise(self, stds: Mapping[Entry, FloatArray | float], extra_width: float = 0) -> FloatArray:
        """Return the standard errors of moments, without the noise of the count.

        Args:
            stds: the standard errors of the sums of each entry, in units of the sums.
            extra_width: an amount that is added to each standard error, in the same units.

        Returns:
            The standard error of each entry, shape (groups, rows, rows); it is 0 for entries
            without sums.
        """
        counts = np.asarray(stds[0, 0], dtype=np.float64)
        noise = np.zeros((*counts.shape, *self.steps.shape))
        for entry, std in stds.items():
            step = self.steps[entry]
            scaled = np.asarray(std) * step
            common = self.common[entry] * counts
            own_variance = np.maximum(scaled**2 - common**2, 0.0)
            noise[..., entry[0], entry[1]] = np.sqrt(own_variance) + extra_width * step
        return noise

    def propagate(self, gradient: Gradient, noise: FloatArray) -> FloatArray:
        """Return the standard error of a function of the moments (delta method)."""
        variance = self.covariance(gradient, gradient, noise)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def covariance(self, first: Gradient, second: Gradient, noise: FloatArray) -> FloatArray:
        """Return the error covariance of two functions of the moments."""
        products = self.contributions(first, noise) * self.contributions(second, noise)
        return np.asarray(products.sum(axis=(-2, -1)))

    def contributions(self, gradient: Gradient, noise: FloatArray) -> FloatArray:
        """Split a function's standard error into the parts of independent noises.

        Args:
            gradient: the function of the moments.
            noise: the standard errors of the moments, without the noise of the count.

        Returns:
            For each noise, the product of derivative and standard error, shape (groups, rows,
            rows). The entry for the count includes the effect of its noise on all sums.
        """
        parts = gradient.derivatives * noise
        count_slope = gradient.derivatives[..., 0, 0] + (gradient.derivatives * self.offsets).sum(
            axis=(-2, -1)
        )
        parts[..., 0, 0] = count_slope * noise[..., 0, 0]
        return np.asarray(parts)


def moment_scales(
    domain: Domain,
    variables: Sequence[str],
    factors: Sequence[Factors],
    measured: Measurements | None = None,
) -> MomentScales:
    """Return the scales that convert measured sums of some measures to moments.

    Args:
        domain: the domain.
        variables: the measures.
        factors: the factors of each needed sum.
        measured: the measurements, which decide the offsets; if it is None, the offsets are 0.

    Raises:
        InputError: the domain has no such sums.
    """
    ordered_names = in_domain_order(domain, variables)
    measures = [domain.measure(name) for name in variables]
    centres = np.array(
        [(measure.low_units + measure.high_units) // 2 for measure in measures], dtype=np.float64
    )
    lows = np.array([measure.low_units for measure in measures]) - centres
    highs = np.array([measure.high_units for measure in measures]) - centres
    largest_reach = np.maximum(highs, -lows)
    row_scales = np.concatenate([[1.0], largest_reach])
    size = len(variables) + 1
    ordered_factors = [in_factor_order(ordered_names, sum_factors) for sum_factors in factors]
    expected = complete_rows_measures(domain, ordered_names, ordered_factors)
    names: dict[Entry, str] = {}
    steps = np.zeros((size, size))
    offsets = np.zeros((size, size))
    for sum_factors, (name, expected_measure) in zip(factors, expected.items(), strict=True):
        if domain.measures.get(name) != expected_measure:
            names_text = join_measures(ordered_names)
            raise InputError(
                f"The sums over rows with {names_text} were not measured. Ask for correlations or "
                f"a regression of exactly {names_text} in the workload."
            )
        positions = sorted(variables.index(factor) + 1 for factor in sum_factors)
        entry = (*[0] * (2 - len(positions)), *positions)
        row, column = entry
        names[row, column] = name
        divisor = expected_measure.divisor if isinstance(expected_measure, DeviationProduct) else 1
        steps[row, column] = divisor / (row_scales[row] * row_scales[column])
        if sum_factors and measured is not None:
            middle = centring_midpoint(measured, name) or 0.0
            offsets[row, column] = middle * steps[row, column]
    return MomentScales(
        variables=tuple(variables),
        names=names,
        centres=centres,
        reaches=largest_reach,
        units=np.array([float(measure.unit) for measure in measures]),
        steps=steps,
        offsets=offsets,
        common=offsets,
        lows=lows / largest_reach,
        highs=highs / largest_reach,
    )


def covariance_gradient(moments: FloatArray, first: int, second: int) -> Gradient:
    """Return the covariance of two variables with its derivatives.

    The divisor is the number of rows.

    Args:
        moments: matrices of shape (..., rows, rows); their counts must be above 0.
        first: the row of a variable.
        second: the row of another variable, or the same row for the variance.
    """
    row, column = sorted((first, second))
    count = moments[..., 0, 0]
    mean_of_row = moments[..., 0, row] / count
    mean_of_column = moments[..., 0, column] / count
    product_of_means = mean_of_row * mean_of_column
    value = moments[..., row, column] / count - product_of_means
    slopes = np.zeros(moments.shape)
    slopes[..., row, column] = 1 / count
    slopes[..., 0, row] -= mean_of_column / count
    slopes[..., 0, column] -= mean_of_row / count
    slopes[..., 0, 0] = (product_of_means - value) / count
    return Gradient(value, slopes)


def correlation_gradient(moments: FloatArray, first: int, second: int) -> Gradient:
    """Return the correlation of two variables with its derivatives.

    The variances of the two variables must be above 0.
    """
    covariance = covariance_gradient(moments, first, second)
    variances = [covariance_gradient(moments, row, row) for row in (first, second)]
    scale = np.sqrt(variances[0].value * variances[1].value)
    value = covariance.value / scale
    slopes = covariance.derivatives / scale[..., None, None]
    for variance in variances:
        factor = value / (2 * variance.value)
        slopes = slopes - factor[..., None, None] * variance.derivatives
    return Gradient(value, slopes)


def predictor_rows(size: int) -> list[int]:
    """Return the rows of the moments in the normal equations.

    The columns of the normal equations are the intercept and the predictors.
    """
    return [0, *range(2, size)]


def _inverse_of_normal_equations(moments: FloatArray, ridge: FloatArray | float) -> FloatArray:
    """Return the inverse of G + ridge * I for the normal equations G."""
    rows = predictor_rows(moments.shape[-1])
    predictor_block = np.ix_(rows, rows)
    normal = moments[..., predictor_block[0], predictor_block[1]]
    diagonal = np.asarray(ridge)[..., None, None] * np.eye(len(rows))
    return np.asarray(np.linalg.inv(normal + diagonal))


def coefficient_gradients(
    moments: FloatArray, weight_rows: FloatArray, ridge: FloatArray | float = 0.0
) -> list[Gradient]:
    """Return combinations of regression coefficients with derivatives.

    The coefficients b of a regression of the first variable solve the normal equations G b = g. The
    derivative of a combination w b is (G^-1 w) (dg - dG b).

    Args:
        moments: matrices of shape (..., rows, rows) with both triangles.
        weight_rows: a row for each combination, a column for the intercept and each predictor.
        ridge: for each group, the amount that is added to the diagonal of G.
    """
    rows = predictor_rows(moments.shape[-1])
    predictor_block = np.ix_(rows, rows)
    inverse = _inverse_of_normal_equations(moments, ridge)
    coefficients = (inverse @ moments[..., rows, 1][..., None])[..., 0]
    gradients = []
    for weights in weight_rows:
        influence = inverse @ weights
        slopes = np.zeros(moments.shape)
        full = -influence[..., :, None] * coefficients[..., None, :]
        symmetric = full + np.swapaxes(full, -1, -2)
        symmetric[..., range(len(rows)), range(len(rows))] /= 2
        slopes[..., predictor_block[0], predictor_block[1]] = np.triu(symmetric)
        for position, row in enumerate(rows):
            first, second = sorted((row, 1))
            slopes[..., first, second] = influence[..., position]
        gradients.append(Gradient(coefficients @ weights, slopes))
    return gradients


def information_gradients(
    moments: FloatArray, weight_rows: FloatArray, ridge: FloatArray | float = 0.0
) -> list[Gradient]:
    """Return the information on each coefficient combination and its derivatives.

    The information on w b is d = 1 / (w G^-1 w). If w has one entry 1, d is the part of a
    predictor's sum of squares that the other columns do not explain. The derivatives of d are d^2
    (G^-1 w) dG (G^-1 w).

    Args:
        moments: matrices of shape (..., rows, rows) with both triangles.
        weight_rows: a row for each combination, a column for the intercept and each predictor.
        ridge: the amount added to the diagonal of G, for each group.
    """
    rows = predictor_rows(moments.shape[-1])
    predictor_block = np.ix_(rows, rows)
    inverse = _inverse_of_normal_equations(moments, ridge)
    gradients = []
    for weights in weight_rows:
        influence = inverse @ weights
        information = 1 / (influence @ weights)
        scaled = influence * information[..., None]
        products = scaled[..., :, None] * scaled[..., None, :]
        slopes = np.zeros(moments.shape)
        both_triangles = np.triu(products) + np.triu(products, 1)
        slopes[..., predictor_block[0], predictor_block[1]] = both_triangles
        gradients.append(Gradient(information, slopes))
    return gradients


def smallest_eigenvalue(moments: FloatArray) -> Gradient:
    """Return the smallest eigenvalue of the normal equations and its derivatives."""
    rows = predictor_rows(moments.shape[-1])
    predictor_block = np.ix_(rows, rows)
    values, vectors = np.linalg.eigh(moments[..., predictor_block[0], predictor_block[1]])
    vector = vectors[..., :, 0]
    products = vector[..., :, None] * vector[..., None, :]
    slopes = np.zeros(moments.shape)
    both_triangles = np.triu(products) + np.triu(products, 1)
    slopes[..., predictor_block[0], predictor_block[1]] = both_triangles
    return Gradient(values[..., 0], slopes)


def public_eigenvalue(scales: MomentScales) -> float:
    """Return the smallest eigenvalue of the normal equations at public scales.

    The normal equations are computed for one row.

    Predictors are uncorrelated. The means of the measures are in the middle of their bounds, and
    their standard deviations are `PUBLIC_STD_RATIO` times the distance between the bounds.
    """
    deviations = PUBLIC_STD_RATIO * (scales.highs - scales.lows)
    return float(min(1.0, *deviations[1:] ** 2))


def coefficient_scales(scales: MomentScales) -> tuple[FloatArray, FloatArray]:
    """Return matrix and constants of the map from coefficients to measures' units.

    Regressions are computed for scaled values u. The map is affine.

    Returns:
        Two arrays: a matrix that multiplies the coefficients of u, with a row for the intercept and
        each slope; and the constants that are then added.
    """
    widths = scales.widths
    middles = scales.centres * scales.units
    predictors = len(scales.variables) - 1
    weight_rows = np.diag(np.concatenate([[widths[0]], widths[0] / widths[1:]]))
    weight_rows[0, 1:] = -middles[1:] * widths[0] / widths[1:]
    constants = np.zeros(predictors + 1)
    constants[0] = middles[0]
    return weight_rows, constants


def expected_statistic_errors(
    measured: Measurements, statistic: Statistic, stds: Sequence[float], rows_of_group: float
) -> tuple[tuple[str, float], ...]:
    """Return (name, expected error) for each covariance or coefficient.

    The error of a covariance is the largest over all means and covariances that the bounds allow.
    The error of a coefficient is computed under three assumptions. The measures have means in the
    middle of their bounds and the statistic's standard deviations (`public_deviations`). The
    predictors are uncorrelated. The predictors explain the response completely and in equal parts.

    Args:
        measured: the measurements of a plan.
        statistic: correlations or a regression.
        stds: the standard error of each table of the statistic, in units of the table.
        rows_of_group: the number of complete rows of a group.

    Returns:
        The name and the error of each pair or term, in amounts of the measures.
    """
    factors = statistic.sum_factors
    scales = moment_scales(measured.domain, statistic.variables, factors, measured)
    stds_of_entries = dict(zip(scales.names, stds, strict=True))
    noise = scales.noise(stds_of_entries)
    if statistic.kind == "regression":
        moments = rows_of_group * regression_moments(public_deviations(statistic, scales))
        weight_rows, _ = coefficient_scales(scales)
        gradients = coefficient_gradients(moments, weight_rows)
        errors = [float(scales.propagate(gradient, noise)) for gradient in gradients]
        return tuple(zip(term_names(statistic.variables), errors, strict=True))
    widths = scales.widths
    pairs = combinations(range(len(scales.variables)), 2)
    largest = []
    for first, second in pairs:
        error = _largest_covariance_error(scales, noise, first, second)
        largest.append(error * widths[first] * widths[second] / rows_of_group)
    return tuple(zip(pair_names(statistic.variables), largest, strict=True))


def public_deviations(statistic: Statistic, scales: MomentScales) -> FloatArray:
    """Return the publicly stated standard deviation of each scaled value u.

    The result is the standard deviation in the statistic or, if this is None, `PUBLIC_STD_RATIO`
    times the distance between the bounds.
    """
    deviations = PUBLIC_STD_RATIO * (scales.highs - scales.lows)
    for name, scale in statistic.scales:
        at = scales.variables.index(name)
        deviations[at] = float(scale) / scales.widths[at]
    return np.asarray(deviations)


def regression_moments(
    deviations: FloatArray, mean: FloatArray | float = 0.0, r_squared: float = 1.0
) -> FloatArray:
    """Return the moments of one row at the public scales of a regression.

    Args:
        deviations: the standard deviation of each u, the response first.
        mean: the mean of each u, or one number for all of them.
        r_squared: the share of the variance of the response that the predictors explain.
    """
    predictors = len(deviations) - 1
    covariances = np.diag(deviations**2)
    with_response = deviations[0] * deviations[1:] * math.sqrt(r_squared / predictors)
    covariances[0, 1:] = with_response
    covariances[1:, 0] = with_response
    moments = np.ones((predictors + 2, predictors + 2))
    moments[0, 1:] = mean
    moments[1:, 0] = mean
    means = np.broadcast_to(mean, deviations.shape)
    moments[1:, 1:] = covariances + means[:, None] * means
    return moments


def _largest_covariance_error(
    scales: MomentScales, noise: FloatArray, first: int, second: int
) -> float:
    """Return the largest error of a covariance, times the number of rows.

    The error is convex in the covariance. So the error is largest at one end of the range of
    covariances that are possible for the two means.
    """
    axes = [np.linspace(scales.lows[at], scales.highs[at], _MEANS_TRIED) for at in (first, second)]
    means = np.meshgrid(*axes, indexing="ij")
    products_of_means = means[0] * means[1]
    largest_variances = [
        (scales.highs[at] - mean) * (mean - scales.lows[at])
        for at, mean in zip((first, second), means, strict=True)
    ]
    largest_covariance = np.sqrt(np.maximum(largest_variances[0] * largest_variances[1], 0.0))
    worst = 0.0
    rows = scales.steps.shape[0]
    for sign in (1, -1):
        moments = np.zeros((*products_of_means.shape, rows, rows))
        moments[..., 0, 0] = 1.0
        moments[..., 0, first + 1] = means[0]
        moments[..., 0, second + 1] = means[1]
        products = products_of_means + sign * largest_covariance
        moments[..., first + 1, second + 1] = products
        gradient = covariance_gradient(moments, first + 1, second + 1)
        worst = max(worst, float(scales.propagate(gradient, noise).max()))
    return worst
