"""Least-squares regressions by group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._error import (
    coefficient_gradients,
    coefficient_scales,
    smallest_eigenvalue,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._group_intervals import GroupIntervals
from leastnoise._estimation._moments import EstimatedMoments, estimate_moments
from leastnoise._threads import one_thread
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._workload import By, checked_variables, factors_of_sums, join_measures, term_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regression(GroupIntervals):
    """The coefficients of a least-squares regression with an intercept, by group.

    It describes the rows that have a value of every one of the measures. The intervals cover only
    the noise, not sampling error. Arrays have the shape of the groups along ``by``, whose last key
    is the term.

    Attributes:
        response: the measure that is explained.
        predictors: the measures that explain it.
        by: the names of the columns of the groups, and ``term``.
        coefficient: estimated coefficients: the change of the response when the predictor rises by
            1.
        low: lower ends of the intervals; minus infinity where the normal equations are not clear
            of the noise.
        high: upper ends; infinity in the same groups.
        std_error: standard errors by the delta method; NaN in the same groups.
        ridge: the number that was added to the diagonal of the normal equations, relative to the
            number of rows. It is 0 unless the noise makes the equations nearly or fully singular.
        counts: the estimated numbers of rows with all values.
        level: each interval contains its true coefficient with this probability.
        labels: the labels of the groups along each attribute of ``by``, and the terms.
        groups: the names of the groups, such as ``sex x store:region``.
        library: the library of the data frames; None if the data was no data frame.
    """

    response: str
    predictors: tuple[str, ...]
    coefficient: FloatArray
    low: FloatArray
    high: FloatArray
    std_error: FloatArray
    ridge: FloatArray
    counts: FloatArray

    @property
    def quantity(self) -> str:
        """The name of the values, such as ``regression of pay on age``."""
        return f"regression of {self.response} on {join_measures(self.predictors)}"

    def intervals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the coefficients and the ends of their intervals."""
        return self.coefficient, self.low, self.high

    def numbers(self) -> dict[str, FloatArray]:
        """Return the columns: coefficient, its interval and error, ridge, count."""
        return {
            "coefficient": self.coefficient,
            "low": self.low,
            "high": self.high,
            "std_error": self.std_error,
            "ridge": self.ridge,
            "count": self.counts,
        }


@one_thread()
def regression(
    source: HasLeastSquares,
    of: str,
    *,
    on: Sequence[str],
    by: By = (),
    level: float = 0.95,
) -> Regression:
    """Estimate a least-squares regression with an intercept, by group.

    It describes the rows that have a value of every one of the measures. It follows from the normal
    equations, whose sums were all measured.

    Args:
        source: an estimate or a release; it costs no budget.
        of: the measure that is explained.
        on: the measures that explain it. The measures in ``of`` and ``on`` must be exactly a set
            that was measured together.
        by: attributes whose cells are the groups, or mappings such as ``{"store":
            ln.level("region")}``; empty for all rows.
        level: the confidence level of each interval, separately.

    Returns:
        The coefficients. The values of the measures are clipped to their bounds.

    Raises:
        InputError: the measurements do not determine the sums by these groups, or the measure does
            not exist.

    Guarantees: post-processing. Intervals come from the delta method, with the multiplier of the
        release's own intervals. If the smallest eigenvalue of the normal equations is not clear of
        0, the noise allows every coefficient. Then the interval is unbounded, and the coefficients
        are computed with the least ridge that makes this eigenvalue one standard error. Intervals
        cover with about probability ``level`` or more.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 100), "age": ln.Measure("age", 20, 60)})
    >>> plan = ln.plan(ln.regression_queries(domain, "pay", on=["age"]), ln.PureDP(1))
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 900, "income": [40, 60, 80] * 600, "age": [30, 35, 50] * 600})
    >>> found = ln.regression(ln.release(plan, people, seed=7), "pay", on=["age"])
    >>> found.labels, found.coefficient.round(2).tolist(), found.low.round(2).tolist()
    ((('(intercept)', 'age'),), [-11.62, 1.88], [-16.22, 1.75])
    """
    domain = estimate_of(source).observation.measurements.domain
    predictors = checked_variables(domain, "on", on)
    variables = checked_variables(domain, "of and on", [of, *predictors], least=2)
    estimated = estimate_moments(source, variables, factors_of_sums(variables, of), by, level)
    columns = estimated.in_parts(coefficient_columns)
    terms = term_names(variables)
    shape = (*estimated.shape, len(terms))
    arrays = {name: values.reshape(shape) for name, values in columns.items()}
    return Regression(
        response=of,
        predictors=predictors,
        by=(*estimated.by, "term"),
        **arrays,
        level=estimated.level,
        labels=(*estimated.labels, terms),
        groups=estimated.groups,
        library=source.library,
    )


def coefficient_columns(estimated: EstimatedMoments) -> dict[str, FloatArray]:
    """Return the arrays of `Regression`, of shape (groups, terms)."""
    eigenvalue = smallest_eigenvalue(estimated.moments)
    is_clear = estimated.is_clear(eigenvalue)
    least_eigenvalue = estimated.std_error(eigenvalue)
    ridge = np.where(is_clear, 0.0, np.maximum(least_eigenvalue - eigenvalue.value, 0.0))
    weight_rows, constants = coefficient_scales(estimated.scales)
    gradients = coefficient_gradients(estimated.moments, weight_rows, ridge)
    half_widths = np.stack([estimated.half_width(gradient) for gradient in gradients], axis=-1)
    std_errors = np.stack([estimated.std_error(gradient) for gradient in gradients], axis=-1)
    values = np.stack([gradient.value for gradient in gradients], axis=-1) + constants
    half_widths[~is_clear] = np.inf
    std_errors[~is_clear] = np.nan
    share = ridge / np.maximum(estimated.counts, 1.0)
    return {
        "coefficient": values,
        "low": values - half_widths,
        "high": values + half_widths,
        "std_error": std_errors,
        "ridge": np.repeat(share[:, None], len(gradients), axis=1),
        "counts": np.repeat(estimated.counts[:, None], len(gradients), axis=1),
    }
