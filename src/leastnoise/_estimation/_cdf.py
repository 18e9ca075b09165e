"""Distribution functions and quantiles of a number, by group.

All results are computed from the counts up to every cell. For a group with n cells, let

- N_i be the count up to cell i, and R_i the count after cell i;
- e_i and r_i be the errors of their least squares estimates, and sigma_i and tau_i the standard
  errors;
- F_i = N_i / (N_i + R_i) be the share up to cell i;
- c be a quantile of max_i max(|e_i| / sigma_i, |r_i| / tau_i), at the level of the band.

Bands. With a probability equal to the level, all N_i and R_i lie within c sigma_i and c tau_i of
their estimates simultaneously. Then every F_i lies between the two quotients that are computed from
the ends of these intervals. The true function does not decrease, so the ends of the band are made
non-decreasing.

c is an order statistic of simulated releases of pure noise, computed for every group. Errors of
least squares do not depend on the data, so the real error and the simulated errors are
exchangeable. Therefore the coverage is at least the level for any noise, however few the
simulations.

Without simulations, each of the 2 n - 1 counts gets an interval at the level
1 - (1 - level) / (2 n - 1), and c is the multiplier of this interval. Such a band is wider, but
takes less time to compute.

Quantiles. The interval of a single quantile needs no simulation. The p-quantile lies in the first
cell with D_i = (1 - p) N_i - p R_i >= 0. Each D_i is tested on either side; each test has the error
probability (1 - level) / 2. Cells whose D_i lies clearly below 0 come before the quantile. Cells
after a cell whose D_i does not lie clearly at or above 0 may contain the quantile. So the interval
misses the quantile on either side with a probability of at most (1 - level) / 2, for any
distribution of the values.

D_i is a linear combination of counts, so the variance of its error can be computed. If u, b and t
are the variances of N_i, R_i and N_i + R_i, the variance of D_i is
(1 - p) u + p b - p (1 - p) t.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, overload

import numpy as np

from leastnoise._domain import Domain, Measure
from leastnoise._error import checked_level, equations, interval_multiplier
from leastnoise._estimation._least_squares import Estimate
from leastnoise._estimation._non_negative import simulate_noise
from leastnoise._frames import Columns, TabularMixin, grouped_columns, label_array, name_key_columns
from leastnoise._threads import one_thread
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import (
    By,
    Product,
    Statistic,
    cells_of,
    groups_of,
    number_cells,
    predicates,
    prefix,
    queries,
    ranges,
)

Label = str | int
DRAWS = 1999  # (draws + 1) * level is whole at the levels 0.9, 0.95, 0.99
_LARGE_TABLE_DRAWS = 199  # draws for large tables; 200 * level is whole at these levels too
_MOST_SIMULATED = 2**26  # answers times draws, above which fewer draws are taken
_PILOT_DRAWS = 200  # draws that estimate the size of each error
_MOST_QUICK = 2**22  # answers times draws of a band within a release
_MOST_NOISE = 2**31  # noise numbers that are simulated for one band
_MOST_LINEAR = 2**21  # numbers of a matrix that replaces an estimate for each draw


class HasLeastSquares(Protocol):
    """An object with least-squares estimates: an estimate or a release."""

    @property
    def library(self) -> str | None:
        """The data frame library of the input; None for other inputs."""

    def least_squares(self) -> Estimate:
        """Return the estimate that answers queries outside the workload."""


def estimate_of(source: HasLeastSquares) -> Estimate:
    """Return the least-squares estimate of a release or an estimate.

    Raise an error for a domain, because only the functions that request a statistic in a workload
    take a domain.
    """
    if not hasattr(source, "least_squares"):
        advice = "Before a release, ask with mean_queries, quantile_queries or cdf_queries."
        raise refuse(
            "the source of a statistic",
            type(source).__name__,
            "a release or an estimate",
            advice,
        )
    return source.least_squares()


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeQuery:
    """The queries for the cumulative counts of a numeric attribute, by group.

    Attributes:
        product: the queries for the counts up to each cell.
        attribute: the numeric attribute.
        cells: both ends of every cell, exact.
        ends: both ends of every cell as floats, shape (cells, 2).
        keys: the names of the key columns of the groups.
        labels: for each key, the labels of its groups.
    """

    product: Product
    attribute: str
    cells: tuple[tuple[Fraction | int, Fraction | int], ...]
    ends: FloatArray
    keys: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]

    @property
    def clips(self) -> bool:
        """Whether values beyond the bounds are counted in the first or last cell."""
        return self.product.domain.kind(self.attribute).outside == "clip"

    def complement(self) -> Product:
        """Return queries that count the rows after each cell, except the last cell.

        There must be at least two cells.
        """
        pairs = [(start, self.cells[-1][1]) for start, _ in self.cells[1:]]
        pick = self.product.attributes.index(self.attribute)
        sets = (
            *self.product.query_sets[:pick],
            ranges(pairs),
            *self.product.query_sets[pick + 1 :],
        )
        return replace(self.product, query_sets=sets)

    def reshape_answers(self, answers: FloatArray) -> FloatArray:
        """Return the answers reshaped to groups by cells, with the cells last."""
        last = np.moveaxis(answers, self.product.attributes.index(self.attribute), -1)
        return np.asarray(last.reshape(*map(len, self.labels), -1)[..., : len(self.cells)])


def cumulative_query(
    domain: Domain,
    attribute: str,
    where: Mapping[str, Any],
    by: By,
    weighted_by: str | None = None,
) -> CumulativeQuery:
    """Return the queries for the cumulative counts of an attribute, by group.

    The queries count rows, or sum their weights. A weight is a measure that is never negative.
    """
    if weighted_by is not None:
        _check_weight(domain, weighted_by)
    cells = number_cells(domain, attribute)
    groups = groups_of(domain, by, "the groups of a distribution function")
    sets: dict[str, Any] = {attribute: prefix()}
    for name, labels in where.items():
        if name == attribute:
            raise InputError(
                f"The distribution function of {attribute} cannot be restricted to some values of "
                f"{attribute} itself."
            )
        sets[name] = predicates([cells_of(domain.kind(name), labels)])
    for name in groups:
        if name in sets:
            raise InputError(
                f"The argument 'by' must not contain {name}, because the distribution function "
                f"of {attribute} already uses it. Remove it from 'by'."
            )
        sets[name] = groups[name]
    product = queries(domain, sets, sum=weighted_by).products[0]
    along = zip(product.attributes, product.keys, product.labels, strict=True)
    group_labels = [(key, labels) for name, key, labels in along if name in groups]
    ends = np.array([(float(start), float(end)) for start, end in cells])
    return CumulativeQuery(
        product,
        attribute,
        cells,
        ends,
        tuple(key for key, _ in group_labels),
        tuple(labels for _, labels in group_labels),
    )


def _check_weight(domain: Domain, weighted_by: str) -> None:
    """Raise unless the weight is a measure of rows with a lower bound >= 0."""
    measure = domain.measure(weighted_by)
    if type(measure) is not Measure or measure.low < 0:
        raise refuse(
            "weighted_by", weighted_by, "a measure whose bounds are not negative, such as 'weight'"
        )


def cumulative_counts(
    estimate: Estimate, query: CumulativeQuery
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return cumulative counts, their variances, and complement variances.

    All are least squares estimates. The complement of a cumulative count is the count after the
    cell. The cells are the last axis.
    """
    answer = estimate.estimate(query.product)
    upto = query.reshape_answers(answer.values)
    variances = query.reshape_answers(answer.noise_std) ** 2
    complement_variances = np.zeros(upto.shape)
    if len(query.cells) > 1:
        complement_variances[..., :-1] = (
            query.reshape_answers(estimate.estimate(query.complement()).noise_std) ** 2
        )
    return upto, variances, complement_variances


def quantile_difference(
    cumulative: FloatArray, variances: FloatArray, complement_variances: FloatArray, share: float
) -> tuple[FloatArray, FloatArray]:
    """Return D_i = (1 - p) N_i - p R_i of each cell, and its variance.

    N_i is the count up to cell i, R_i the count after it, and p is ``share``.
    """
    variance = (
        (1 - share) * variances
        + share * complement_variances
        - share * (1 - share) * variances[..., -1:]
    )
    return (1 - share) * cumulative - share * (cumulative[..., -1:] - cumulative), np.maximum(
        variance, 0.0
    )


def checked_share(share: object) -> float:
    """Return the share of a quantile as a float; raise unless in (0, 1]."""
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise refuse(
            "a quantile", share, "a number above 0 and at most 1, such as 0.5 for the median"
        )
    return float(share)


def monotone_shares(cumulative: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the non-decreasing cumulative shares nearest to noisy counts.

    The last share is 1.
    """
    from scipy.optimize import isotonic_regression

    share = np.zeros(cumulative.shape)
    for at in np.ndindex(cumulative.shape[:-1]):
        rising = np.maximum(isotonic_regression(cumulative[at], weights=1 / variances[at]).x, 0.0)
        share[at] = rising / rising[-1] if rising[-1] > 0 else 0.0
    share[..., -1] = 1.0
    return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A quantile of a numeric attribute, with its confidence interval.

    Attributes:
        share: p, the part of the rows at or below the quantile.
        value: the estimate, in the attribute's own values.
        low: the lower end of the quantile's interval.
        high: the upper end of the quantile's interval.
        group: the labels of the quantile's group; empty for all rows.
        may_be_below: whether the quantile may lie below ``low``. This is possible if the interval
            reaches to the first cell and this cell also counts values below the lowest bound.
        may_be_above: whether the quantile may lie above ``high``. This is possible if the interval
            reaches to the last cell and this cell also counts values above the highest bound.
    """

    share: float
    value: float
    low: float
    high: float
    group: tuple[Label, ...] = ()
    may_be_below: bool = False
    may_be_above: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Quantiles(TabularMixin, Sequence[Quantile]):
    """Quantiles by group, as a sequence that prints as a table.

    Attributes:
        quantiles: the quantiles, each with its interval and its group.
        by: the names of the columns of the groups: attributes, or ``store:region`` for a level.
        library: the library of the data frames; None if the data was no data frame.
    """

    quantiles: tuple[Quantile, ...]
    by: tuple[str, ...] = ()
    library: str | None = None

    def __len__(self) -> int:
        return len(self.quantiles)

    @overload
    def __getitem__(self, index: int) -> Quantile: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Quantile, ...]: ...
    def __getitem__(self, index: int | slice) -> Quantile | tuple[Quantile, ...]:
        return self.quantiles[index]

    def columns(self) -> Columns:
        """Return the columns of a data frame with one row for each quantile.

        The columns are the keys of the groups, then ``share``, ``value``, ``low``, ``high``,
        ``may_be_below`` and ``may_be_above``.
        """
        names = ("share", "value", "low", "high", "may_be_below", "may_be_above")
        groups = zip(*(quantile.group for quantile in self), strict=True)
        keys = {
            name: label_array(labels)
            for name, labels in zip(name_key_columns(self.by, names), groups, strict=False)
        }
        numbers = zip(
            *([getattr(quantile, name) for name in names] for quantile in self),
            strict=True,
        )
        return {
            **keys,
            **{name: np.array(values) for name, values in zip(names, numbers, strict=False)},
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cdf(TabularMixin):
    """The distribution function of each group, with a simultaneous band.

    Attributes:
        attribute: the attribute, a number.
        values: upper end of every cell, in the attribute's own values, shape (n,).
        starts: lower end of every cell, shape (n,).
        share: estimated share of the rows at or below each value, non-decreasing. The shape is
            (n,). With groups, the shape is the numbers of groups along ``by``, followed by n.
        low: the lower ends of the band, in the same shape.
        high: upper end of the band.
        clips: whether the first and the last cell also count values beyond the bounds. If True, the
            share at the last value includes rows whose values are above that value.
        count: the estimated number of rows of each group, or the sum of their weights.
        level: the band of each group contains the whole true function of that group with this
            probability.
        by: the names of the columns of the groups: attributes, or ``store:region`` for a level.
        labels: the labels of the groups along each attribute of ``by``.
        library: the library of the data frames; None if the data was no data frame.
    """

    attribute: str
    values: FloatArray
    starts: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    count: FloatArray
    level: float
    by: tuple[str, ...] = ()
    labels: tuple[tuple[Label, ...], ...] = ()
    library: str | None = None
    clips: bool = False

    @property
    def title(self) -> str:
        """The heading, such as ``distribution of age, a 95% band``."""
        return f"distribution of {self.attribute}, a {100 * self.level:g}% band"

    def columns(self) -> Columns:
        """Return the columns: group keys, upper end of each cell, share, low, high.

        There is one row for each cell of each group.
        """
        numbers = {"share": self.share, "low": self.low, "high": self.high}
        return grouped_columns(
            (*self.by, self.attribute), (*self.labels, self.values.tolist()), numbers
        )

    def quantiles(self, shares: Iterable[float]) -> Quantiles:
        """Return quantiles with simultaneous intervals, which follow from the band."""
        checked_shares = [checked_share(share) for share in shares]
        last = len(self.values) - 1
        cells = []
        for share in checked_shares:
            first_cell = np.minimum((self.high < share).sum(axis=-1), last)
            last_cell = np.minimum((self.low < share).sum(axis=-1), last)
            cells.append([first_cell, last_cell])
        ends = np.stack([self.starts, self.values], axis=1)
        return Quantiles(
            _interpolate_quantiles(
                ends,
                self.share,
                self.labels,
                zip(checked_shares, cells, strict=True),
                clips=self.clips,
            ),
            self.by,
            self.library,
        )


def _interpolate_quantiles(
    cell_ends: FloatArray,
    cumulative_shares: FloatArray,
    labels: Sequence[Sequence[Label]],
    cell_ranges: Iterable[tuple[float, Any]],
    *,
    clips: bool,
) -> tuple[Quantile, ...]:
    """Return quantiles by group, interpolated linearly within cells.

    Args:
        cell_ends: the ends of the cells, shape (n, 2).
        cumulative_shares: the shares of the rows up to every cell, the cells on the last axis.
        labels: the labels of the groups along each attribute.
        cell_ranges: for each share, the first and the last cell that may contain the quantile.
        clips: whether the first and the last cell also count values beyond the bounds.
    """
    group_quantiles = []
    listed_ranges = list(cell_ranges)
    for at in np.ndindex(cumulative_shares.shape[:-1]):
        group = tuple(names[index] for names, index in zip(labels, at, strict=True))
        for share, (first, last) in listed_ranges:
            cell = min(int(np.searchsorted(cumulative_shares[at], share)), len(cell_ends) - 1)
            if cell:
                before = float(cumulative_shares[at][cell - 1])
            else:
                before = 0.0
            rise = float(cumulative_shares[at][cell]) - before
            if rise > 0:
                inside = min(1.0, max(0.0, (share - before) / rise))
            else:
                inside = 1.0
            low = float(cell_ends[first[at], 0])
            high = float(cell_ends[last[at], 1])
            value = min(
                max(
                    float(cell_ends[cell, 0] + inside * (cell_ends[cell, 1] - cell_ends[cell, 0])),
                    low,
                ),
                high,
            )
            group_quantiles.append(
                Quantile(
                    share=share,
                    value=value,
                    low=low,
                    high=high,
                    group=group,
                    may_be_below=bool(clips and first[at] == 0),
                    may_be_above=bool(clips and last[at] == len(cell_ends) - 1),
                )
            )
    return tuple(group_quantiles)


def move_to_chosen_cells(
    estimated: Quantiles, domain: Domain, statistic: Statistic, choices: IntArray
) -> Quantiles:
    """Return the quantiles, each moved to its privately chosen cell.

    Args:
        estimated: the quantiles by the distribution function, group by group.
        domain: the domain of the release.
        statistic: the requested quantiles, with the attributes whose cells are their groups.
        choices: the chosen cells, of shape (shares, cells of the groups).
    """
    ends = [(float(start), float(end)) for start, end in number_cells(domain, statistic.of)]
    last = len(ends) - 1
    clips = domain.kind(statistic.of).outside == "clip"
    # The choices of one group are independent, so make its quantiles non-decreasing in the share.
    order = np.argsort([float(share) for share in statistic.at])
    rising = np.empty_like(choices)
    rising[order] = np.sort(choices, axis=0)
    groups = [domain.kind(name).published for name in domain.names if name in statistic.by]
    estimates = iter(estimated)
    placed = []
    for group in np.ndindex(*groups):
        for number in range(len(statistic.at)):
            estimate = next(estimates)
            position = int(rising[(number, *group)])
            start, end = ends[position]
            placed.append(
                replace(
                    estimate,
                    value=(start + end) / 2,
                    low=min(estimate.low, start),
                    high=max(estimate.high, end),
                    may_be_below=estimate.may_be_below or (clips and position == 0),
                    may_be_above=estimate.may_be_above or (clips and position == last),
                )
            )
    return Quantiles(tuple(placed), estimated.by, estimated.library)


@one_thread()
def cdf(
    source: HasLeastSquares,
    attribute: str,
    *,
    where: Mapping[str, Any] | None = None,
    by: By = (),
    level: float = 0.95,
    weighted_by: str | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> Cdf:
    """Return the estimated distribution function of a number, with a band.

    The function describes the rows that were counted. The band covers the function at all values
    simultaneously.

    Args:
        source: an estimate or a release; it costs no budget.
        attribute: an attribute of Integers, Decimals, Bins or Edges. Rows in its cell ``other`` are
            left out. Values beyond its bounds are also left out, unless its ``outside`` is "clip".
            To count them, request the function in the workload.
        where: a selection of rows: for each further attribute a label or a list of labels, or
            groups such as ``{"region": "north"}``.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. Each group has a separate band.
        level: the probability that a band contains the whole true function, above 0 and below 1.
        weighted_by: the measure by which rows are weighted; None for equal weights.
        draws: the number of simulated releases; (draws + 1) * level should be a whole number.
            Defaults to 1999, or to 199 for more than 33,000 cells. The band has its level with
            either number of draws. If it is 0, nothing is simulated and the band is wider.
        seed: the seed of the simulation, which is public.

    Returns:
        The distribution function; ``Cdf.quantiles`` returns quantiles from it.

    Raises:
        InputError: the attribute is not a number, the measurements do not determine the counts, or
            the simulation is too large.

    Guarantees: post-processing. The band covers the noise, with probability at least ``level`` over
        the noise of the release and of the simulation. The band does not account for rows that the
        domain dropped or clipped.

    Edge cases: if the count of a group is not significantly above 0, its band extends from 0 to 1.

    >>> plan = ln.plan(ln.queries(ln.Domain(age=ln.Integers(1, 4)), age="identity"), ln.PureDP(1))
    >>> release = ln.release(
    ...     plan, pd.DataFrame({"age": [1] * 100 + [2] * 400 + [3] * 300 + [4] * 200}), seed=7
    ... )
    >>> made = ln.cdf(release, "age", draws=199)
    >>> made.share.round(2).tolist(), made.quantiles([0.5])[0].value
    ([0.1, 0.5, 0.8, 1.0], 2.0)
    """
    estimate = estimate_of(source)
    domain = estimate.observation.measurements.domain
    query = cumulative_query(domain, attribute, where or {}, by, weighted_by)
    level = checked_level(level)
    if draws is None:
        draws = max(
            DRAWS if DRAWS * query.product.rows <= _MOST_SIMULATED else _LARGE_TABLE_DRAWS,
            _least_draws(level),
        )
    rank = math.ceil((draws + 1) * level - 1e-9)
    if draws and not rank <= draws:
        raise refuse("draws", draws, f"at least {_least_draws(level)} for the level {level}")
    upto = query.reshape_answers(estimate.values(query.product))
    if draws:
        width, factor = _band_widths(estimate, query, draws, rank, seed)
    else:
        width, factor = _union_bound_widths(estimate, query, level)
    counts = _join_complements(upto)
    floor = np.maximum(counts - factor * width, 0.0)
    ceiling = np.maximum(counts + factor * width, 0.0)
    cells = upto.shape[-1]
    low = np.ones(upto.shape)
    high = np.ones(upto.shape)
    low[..., :-1] = _share_of_sum(floor[..., : cells - 1], ceiling[..., cells:])
    high[..., :-1] = _share_of_sum(ceiling[..., : cells - 1], floor[..., cells:], empty=1.0)
    low = np.maximum.accumulate(low, axis=-1)
    high = np.maximum(low, np.minimum.accumulate(high[..., ::-1], axis=-1)[..., ::-1])
    return Cdf(
        attribute=attribute,
        values=query.ends[:, 1],
        starts=query.ends[:, 0],
        share=np.maximum.accumulate(
            np.clip(monotone_shares(upto, width[..., :cells] ** 2), low, high), axis=-1
        ),
        low=low,
        high=high,
        count=upto[..., -1] * _row_unit(query.product),
        level=level,
        by=query.keys,
        labels=query.labels,
        library=source.library,
        clips=query.clips,
    )


def _least_draws(level: float) -> int:
    """Return the least number of simulated releases for a band at ``level``.

    With probability ``level`` or more, a new error is at most the largest of this number of
    simulated errors.
    """
    return math.ceil(level / (1 - level) - 1e-9)


def _join_complements(cumulative: FloatArray) -> FloatArray:
    """Return the counts up to each cell, then the counts after each cell.

    The last cell has no count of rows after it.
    """
    return np.concatenate([cumulative, cumulative[..., -1:] - cumulative[..., :-1]], axis=-1)


def _band_widths(
    estimate: Estimate, query: CumulativeQuery, draws: int, rank: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of each count, and a multiplier for each group.

    The half width of the band at a count is the product of the two. The standard errors and the
    multipliers are simulated.
    """
    # The widths and the factor come from separate draws, so that the draws for the factor stay
    # exchangeable with the release.
    pilot = min(_PILOT_DRAWS, draws)
    noise = (
        _join_complements(query.reshape_answers(noise_of_draw))
        for noise_of_draw in simulated_noise(estimate, query.product, pilot + draws, seed)
    )
    squares = next(noise) ** 2
    for _ in range(pilot - 1):
        squares += next(noise) ** 2
    width = np.sqrt(squares / pilot)
    width = np.maximum(width, 1e-12 * max(1.0, float(width.max())))
    peaks = np.array([np.abs(noise_of_draw / width).max(axis=-1) for noise_of_draw in noise])
    return width, np.sort(peaks, axis=0)[rank - 1][..., None]


def _union_bound_widths(
    estimate: Estimate, query: CumulativeQuery, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of each count, and one multiplier for all.

    The half width of the band at a count is the product of the two. The multiplier follows from the
    union bound over all counts, without a simulation. The half width includes half a step of the
    noise.
    """
    _, variances, complement_variances = cumulative_counts(estimate, query)
    measured = estimate.observation.measurements
    stds = np.sqrt(np.concatenate([variances, complement_variances[..., :-1]], axis=-1))
    factor = interval_multiplier(measured.noise, 1 - (1 - confidence_level) / stds.shape[-1])
    return stds + 0.5 / measured.grid / factor, np.array([factor])


def _row_unit(product: Product) -> float:
    """Return the unit of the counts of a product: 1, or the weight's unit."""
    if product.measure is None:
        return 1.0
    return float(product.domain.measure(product.measure).unit)


def minimal_draws(estimate: Estimate, level: float, measure: str | None = None) -> int:
    """Return the least number of simulated releases for the band of a release.

    The number is 0 if the simulation would take too long.

    The least number depends on the level of the band, which is part of the release. ``measure`` is
    the measure of the rows' weights.
    """
    measured = estimate.observation.measurements
    rows = sum(measured.blocks[entry.index].rows for entry in equations(measured, measure))
    draws = max(_LARGE_TABLE_DRAWS, _least_draws(level))
    if (
        rows * (draws + min(_PILOT_DRAWS, draws)) <= _MOST_QUICK
        and not estimate.covariance_of(measure).solver_cells
    ):
        return draws
    return 0


def simulated_noise(
    estimate: Estimate, product: Product, draws: int, seed: int
) -> Iterator[FloatArray]:
    """Yield the errors of the answers to a product, one array for each draw.

    Each array has shape ``product.shape``.
    """
    # Least squares is linear: the errors of its answers are the answers that it computes from pure
    # noise.
    plan = estimate.observation.measurements
    blocks = estimate.block_indices(product.measure)
    rows = sum(plan.blocks[index].rows for index in blocks)
    if not rows * draws <= _MOST_NOISE:
        raise InputError(
            f"At most {_MOST_NOISE} numbers are drawn to simulate releases; got {draws} "
            f"releases of {rows} measured queries. Ask for fewer draws."
        )

    if 0 < rows < draws and rows * product.rows <= _MOST_LINEAR:
        linear = estimate.answer_matrix(product)
    else:
        linear = None
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        values: list[IntArray] = [np.zeros(block.rows, dtype=np.int64) for block in plan.blocks]
        for index, noise in simulate_noise(plan, blocks, 1, generator).items():
            values[index] = np.rint(noise[:, 0] * plan.grid).astype(np.int64)
        if linear is None:
            yield estimate.errors_for(values).values(product)
        else:
            yield (
                linear @ (np.concatenate([values[index] for index in blocks]) / plan.grid)
            ).reshape(product.shape)


def _share_of_sum(part: FloatArray, remainder: FloatArray, empty: float = 0.0) -> FloatArray:
    """Return ``part / (part + remainder)``, or ``empty`` if both numbers are 0.

    The arguments ``part`` and ``remainder`` are at least 0.
    """
    both = part + remainder
    return np.asarray(np.where(both > 0, part / np.where(both > 0, both, 1.0), empty))


@one_thread()
def quantiles(
    source: HasLeastSquares,
    attribute: str,
    shares: Iterable[float],
    *,
    where: Mapping[str, Any] | None = None,
    by: By = (),
    level: float = 0.95,
    weighted_by: str | None = None,
) -> Quantiles:
    """Estimate quantiles of a numeric attribute by group, without further cost.

    Args:
        source: an estimate or a release; it costs no budget.
        attribute: an attribute of Integers, Decimals, Bins or Edges. Rows in its cell ``other`` are
            left out. Values beyond its bounds are also left out, unless its ``outside`` is "clip".
            To count them, request the quantiles in the workload.
        shares: such as [0.25, 0.5, 0.75]; each above 0 and at most 1.
        where: a selection of rows: for each further attribute a label or a list of labels, or
            groups such as ``{"region": "north"}``.
        by: the groups: attributes (one group for each cell), or mappings such as ``{"store":
            ln.level("region")}``. Each group has separate quantiles.
        level: the confidence level of each interval separately; the intervals of `cdf` hold
            simultaneously.
        weighted_by: the measure by which rows are weighted; None for equal weights.

    Returns:
        The quantiles, one for each share, group by group in the order of the domain. The p-quantile
        is the least value with at least a share p of the rows at or below it. The release has only
        the cell of a value, so an interval extends from the lower end of one cell to the upper end
        of another.

    Raises:
        InputError: the attribute is not a number; the measurements do not determine the counts; or
            a share or the level is out of range.

    Guarantees: post-processing. Each interval covers its quantile with probability at least
        ``level``, provided that the release's own intervals have their level.

    Edge cases: a group without rows has no quantiles; the interval for such a group has no meaning.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(1, 4))
    >>> plan = ln.plan(ln.queries(domain, sex="identity", age="identity"), ln.PureDP(1))
    >>> release = ln.release(
    ...     plan,
    ...     pd.DataFrame(
    ...         {"sex": ["F", "M"] * 500, "age": [1] * 100 + [2] * 400 + [3] * 300 + [4] * 200}
    ...     ),
    ...     seed=7,
    ... )
    >>> [
    ...     (quantile.group, quantile.low, quantile.high)
    ...     for quantile in ln.quantiles(release, "age", [0.3, 0.75], by=["sex"])
    ... ]
    [(('F',), 2.0, 2.0), (('F',), 3.0, 3.0), (('M',), 2.0, 2.0), (('M',), 3.0, 3.0)]
    """
    estimate = estimate_of(source)
    measured = estimate.observation.measurements
    query = cumulative_query(measured.domain, attribute, where or {}, by, weighted_by)
    checked_shares = [checked_share(share) for share in shares]
    times = interval_multiplier(measured.noise, checked_level(level))
    half = 0.5 / measured.grid
    upto, variances, complement_variances = cumulative_counts(estimate, query)
    shown = monotone_shares(upto, np.maximum(variances, 1e-24 * max(1.0, float(variances.max()))))
    cells = []
    last_cell = upto.shape[-1] - 1
    for share in checked_shares:
        difference, variance = quantile_difference(upto, variances, complement_variances, share)
        margin = times * np.sqrt(variance) + half
        # True for each cell such that the quantile can lie in this cell or an earlier one, and for
        # each cell such that it can lie in a later one.
        can_be_reached = difference + margin >= 0
        can_be_later = (difference - margin < 0)[..., :last_cell]
        first = np.where(can_be_reached.any(axis=-1), can_be_reached.argmax(axis=-1), last_cell)
        last = np.where(can_be_later, np.arange(1, last_cell + 1), 0).max(axis=-1, initial=0)
        cells.append((share, (first, np.maximum(first, last))))
    placed = _interpolate_quantiles(query.ends, shown, query.labels, cells, clips=query.clips)
    return Quantiles(placed, query.keys, source.library)
