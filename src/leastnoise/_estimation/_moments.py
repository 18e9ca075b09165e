"""Estimated moments of complete rows, for correlations and regressions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._error import (
    Entry,
    Gradient,
    MomentScales,
    checked_level,
    equations,
    interval_multiplier,
    moment_scales,
)
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray
from leastnoise._workload import By, Factors, groups_of, join_measures, queries

_GROUPS_AT_ONCE = 2**11  # their matrices of 12 rows, one for each coefficient, take 30 MB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimatedMoments:
    """Estimated moment matrices by group, with their standard errors.

    Attributes:
        scales: the scales of the moments.
        moments: matrices of shape (groups, rows, rows) with both triangles.
        noise: standard errors, without the part of the noise that is shared with the count; only
            the upper triangle.
        interval_noise: ``noise``, each with half a step added because the noise is discrete.
        multiplier: the half width of an interval in standard errors.
        noise_kind: the kind of noise of the sums.
        level: the confidence level of the intervals.
        by: the names of the columns of the groups.
        labels: the labels of the groups along each attribute of ``by``.
        groups: the name of the groups.
    """

    scales: MomentScales
    moments: FloatArray
    noise: FloatArray
    interval_noise: FloatArray
    multiplier: float
    noise_kind: Noise
    level: float
    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    groups: str

    @property
    def counts(self) -> FloatArray:
        """The estimated number of complete rows of each group, shape (groups,)."""
        return np.asarray(self.moments[:, 0, 0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups along each attribute of ``by``."""
        return tuple(map(len, self.labels))

    @property
    def has_clear_count(self) -> BoolArray:
        """Whether the count of each group is significantly above 0."""
        return np.asarray(self.counts > self.multiplier * self.interval_noise[:, 0, 0])

    def of_groups(self, groups: BoolArray | slice) -> "EstimatedMoments":
        """Return the moments of selected groups."""
        return replace(
            self,
            moments=self.moments[groups],
            noise=self.noise[groups],
            interval_noise=self.interval_noise[groups],
        )

    def in_parts(
        self, columns_of: Callable[["EstimatedMoments"], dict[str, FloatArray]]
    ) -> dict[str, FloatArray]:
        """Return numbers by group as columns, computed in batches of groups."""
        starts = range(0, len(self.moments), _GROUPS_AT_ONCE)
        parts = [columns_of(self.of_groups(slice(at, at + _GROUPS_AT_ONCE))) for at in starts]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def std_error(self, gradient: Gradient) -> FloatArray:
        """Return the standard error of a function of the moments, by group."""
        return self.scales.propagate(gradient, self.noise)

    def half_width(self, gradient: Gradient) -> FloatArray:
        """Return the half width of an interval for a function of the moments."""
        longer = self.scales.propagate(gradient, self.interval_noise)
        return np.asarray(self.multiplier * longer)

    def scaled_covariance(self, first: Gradient, second: Gradient) -> FloatArray:
        """Return two functions' error covariance, times the squared multiplier."""
        longer = self.scales.covariance(first, second, self.interval_noise)
        return np.asarray(self.multiplier**2 * longer)

    def is_clear(self, gradient: Gradient) -> BoolArray:
        """Return whether a non-negative function is significantly above 0, by group."""
        return np.asarray(gradient.value > self.half_width(gradient))


def estimate_moments(
    source: HasLeastSquares,
    variables: Sequence[str],
    factors: Sequence[Factors],
    by: By,
    level: float,
) -> EstimatedMoments:
    """Return the estimated moments of some measures, by group.

    Args:
        source: an estimate or a release.
        variables: the measures.
        factors: the factors of each needed sum.
        by: the groups.
        level: the confidence level of the intervals.

    Raises:
        InputError: the sums were not measured, or not for these groups.
    """
    estimate = estimate_of(source)
    plan = estimate.observation.measurements
    level = checked_level(level)
    sets = groups_of(plan.domain, by, "the groups of a statistic")
    scales = moment_scales(plan.domain, variables, factors, plan)
    if not all(equations(plan, name) for name in scales.names.values()):
        raise InputError(
            f"The sums over rows with {join_measures(scales.variables)} were not all measured. Ask "
            "for the correlations or the regression in the workload."
        )
    tables = {
        entry: queries(plan.domain, sets, sum=name).products[0]
        for entry, name in scales.names.items()
    }
    answers = {entry: estimate.estimate(table) for entry, table in tables.items()}
    table = tables[0, 0]
    moments = np.zeros((table.rows, *scales.steps.shape))
    stds = {}
    for entry, answer in answers.items():
        row, column = entry
        moments[:, row, column] = answer.values.reshape(-1) * scales.steps[entry]
        moments[:, column, row] = moments[:, row, column]
        stds[entry] = np.broadcast_to(answer.noise_std, table.shape).reshape(-1)
    multiplier = interval_multiplier(plan.noise, level)
    half_step = 0.5 / plan.grid
    return EstimatedMoments(
        scales=scales,
        moments=moments,
        noise=scales.noise(stds),
        interval_noise=scales.noise(stds, half_step / multiplier),
        multiplier=multiplier,
        noise_kind=plan.noise,
        level=level,
        by=table.keys,
        labels=table.labels,
        groups=queries(plan.domain, sets).products[0].name if sets else "",
    )


def expected_moments(
    plan: Plan,
    scales: MomentScales,
    moments: FloatArray,
    stds: Mapping[Entry, float],
    level: float,
) -> EstimatedMoments:
    """Combine stated moments with the noise of a plan, without noisy changes.

    The moments stay as stated, as if no noise had changed them.

    Args:
        plan: the plan.
        scales: the scales of the moments.
        moments: matrices of shape (groups, rows, rows) with both triangles.
        stds: the standard error of the sums of each entry, in units of the sums.
        level: the confidence level of the intervals.
    """
    measured = plan.measured()
    multiplier = interval_multiplier(measured.noise, level)
    half_step = 0.5 / measured.grid
    return EstimatedMoments(
        scales=scales,
        moments=moments,
        noise=np.broadcast_to(scales.noise(stds), moments.shape),
        interval_noise=np.broadcast_to(scales.noise(stds, half_step / multiplier), moments.shape),
        multiplier=multiplier,
        noise_kind=measured.noise,
        level=level,
        by=(),
        labels=(),
        groups="",
    )
