"""Changes over periods: differences with their exact errors, and ratios with Fieller's intervals."""

from dataclasses import dataclass

import numpy as np

from leastnoise._accuracy import checked_level, interval_multiplier, ratio_interval
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._cdf import HasLeastSquares
from leastnoise._frames import Columns, Framed, grouped_columns
from leastnoise._threads import one_thread
from leastnoise._workload import By, change, groups_of, queries, ranges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Changes(Framed):
    """Each period beside the one so many periods before, by group; arrays of the shape (periods, groups), in the order of the domain."""

    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    numbers: dict[str, FloatArray]
    library: str | None = None

    def columns(self) -> Columns:
        """One column a key, then difference, low, high, std_error, ratio, ratio_low and ratio_high; a row a change."""
        return grouped_columns(self.by, self.labels, self.numbers)


@one_thread()
def changes(source: HasLeastSquares, along: str, periods: int, *, by: By = (), level: float = 0.95) -> Changes:
    """The difference and the ratio of each period to the one so many periods before, such as year over year: counts of rows.

    Args:
        source: an estimate or a release; it costs no budget.
        along: an attribute of dates.
        periods: how many periods lie between, at least 1.
        by: attributes whose cells are the groups, or mappings such as ``{"store": ln.level("region")}``.
        level: of the intervals, each by itself.

    Returns:
        A table, as a data frame by ``frame()``. Standard errors of differences are exact: they know what noise both periods share.

    Raises:
        InputError: no dates, too many periods, or the measurements do not determine the counts by period.

    Guarantees: post-processing. Fieller intervals cover each true ratio with probability at least ``level`` as far as the multiplier of the
        release's own intervals does; where the earlier count is not clear of 0 they have no end.

    Source: Fieller 1954, for the later count less the part of its noise that the earlier one shares.

    >>> plan = ln.plan(ln.queries(ln.Domain(month=ln.Dates("2024-01-01", "2024-03-31", "month")), month="identity"), ln.PureDP(1))
    >>> visits = pd.DataFrame({"month": ["2024-01-05"] * 400 + ["2024-02-05"] * 500 + ["2024-03-05"] * 300})
    >>> ln.changes(ln.release(plan, visits, seed=7), "month", 1).frame("pandas")["ratio"].round(1).tolist()
    [1.2, 0.6]
    """
    estimate, level = source.least_squares(), checked_level(level)
    plan = estimate.observation.measurements
    sets = groups_of(plan.domain, by, "the groups of changes")
    asked = queries(plan.domain, {**sets, along: change(periods)}).products[0]
    moved, labels = estimate.estimate(asked), [*map(str, plan.domain.kind(along).regular_labels)]
    ends = [ranges([(one, one) for one in part]) for part in (labels[:-periods], labels[periods:])]
    before, after = (estimate.estimate(queries(plan.domain, {**sets, along: end}).products[0]) for end in ends)
    times, step = interval_multiplier(plan.noise, level), 0.5 / plan.grid
    own, later = before.noise_std**2, after.noise_std**2
    shared = (own + later - moved.noise_std**2) / 2  # the covariance
    slope = np.divide(shared, own, out=np.zeros_like(own), where=own > 0)
    rest = np.maximum(later - slope * shared, 0.0)
    steps = ((1 + abs(slope)) * step, step)
    found = ratio_interval(after.values - slope * before.values, before.values, rest, own, times, (-np.inf, np.inf), steps=steps)
    reach = times * moved.noise_std + step
    numbers = {"difference": moved.values, "low": moved.values - reach, "high": moved.values + reach, "std_error": moved.noise_std}
    clear = before.values > times * before.noise_std
    numbers["ratio"] = np.where(clear, np.maximum(after.values, 0.0) / np.where(clear, before.values, 1.0), np.nan)
    numbers |= {name: np.maximum(end + slope, 0.0) for name, end in zip(("ratio_low", "ratio_high"), found, strict=True)}
    return Changes(by=asked.keys, labels=asked.labels, numbers=numbers, library=source.library)
