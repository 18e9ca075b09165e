"""The error of a variance, from a count, a sum and a sum of squares."""

import math

import numpy as np

from leastnoise._domain import Domain, SquaredDeviation
from leastnoise._error._equations import centring_midpoint
from leastnoise._trusted.check import refuse
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import square_measure

_MEANS_TRIED = 257
"""The number of means at which the error of a variance is computed.

Both bounds are included. The largest of these errors is used.
"""


def squared_deviation(domain: Domain, measure: str) -> SquaredDeviation:
    """Return the domain's measure of squared deviations of ``measure``.

    Raises:
        InputError: the domain has no such measure.
    """
    name = square_measure(domain, measure)
    declared = None if name is None else domain.measure(name)
    if not isinstance(declared, SquaredDeviation):
        raise refuse(
            f"the squares of {measure}",
            "none",
            "a measure of the domain",
            f"Ask for variances of {measure} in the workload.",
        )
    return declared


def variance_error(
    measured: Measurements, measure: str, count_std: float, sum_std: float, square_std: float
) -> float:
    """Return the largest standard error of a variance, times the count.

    The count is the number of values. The error is computed by the delta method, as the maximum
    over all means m and variances V that the bounds of the measure allow.

    Args:
        measured: the measurements of a plan.
        measure: the measure.
        count_std: the standard error of the number of values.
        sum_std: the standard error of the sums, in units of the measure.
        square_std: the standard error of the sums of squares, in units of the squared deviation.

    Returns:
        The error, in squared values of the measure.
    """
    deviation = squared_deviation(measured.domain, measure)
    of = deviation.of
    sum_offset = centring_midpoint(measured, measure) or 0.0
    squares_of = str(square_measure(measured.domain, measure))
    square_offset = deviation.divisor * (centring_midpoint(measured, squares_of) or 0.0)
    sum_variance = sum_std**2 - (sum_offset * count_std) ** 2
    squares_error = square_std * deviation.divisor
    square_variance = squares_error**2 - (square_offset * count_std) ** 2
    # Let m be the mean of values minus the centre. The error of V n has three parts: the noise of
    # the squares, minus 2 m times the noise of the sums, minus (V - m^2 + 2 m d - e) times the
    # noise of the count. Here d and e are the offsets of the sums and of the squares. The error is
    # convex in V and therefore largest at an end of the range.
    low = of.low_units - deviation.centre
    high = of.high_units - deviation.centre
    means = np.linspace(low, high, _MEANS_TRIED)
    offset = sum_offset - deviation.centre
    largest = 0.0
    for variances in (np.zeros(_MEANS_TRIED), (high - means) * (means - low)):
        slopes = variances - means**2 + 2 * means * offset - square_offset
        errors = (
            max(square_variance, 0.0)
            + (2 * means) ** 2 * max(sum_variance, 0.0)
            + (slopes * count_std) ** 2
        )
        largest = max(largest, float(errors.max()))
    return math.sqrt(largest) * float(of.unit) ** 2
