"""Shares of the cells in a total, by group, with intervals.

All functions only post-process the measurements of finished releases, which costs no budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import interval_multiplier
from leastnoise._estimation._cdf import HasLeastSquares, estimate_of
from leastnoise._estimation._comparisons import (
    axes_of,
    estimate_compared_quantity,
    level_of,
    possible_values,
)
from leastnoise._frames import Columns, TabularMixin, grouped_columns
from leastnoise._threads import one_thread
from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import dense
from leastnoise._workload import (
    By,
    Quantity,
    QuerySet,
    Quotient,
    all_published,
    groups_of,
    queries,
    read_quantity,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Shares(TabularMixin):
    """The share of each cell in the total, by group.

    Attributes:
        heading: the share, such as ``share of region in the count``.
        by: the names of the columns of the groups and of the cells.
        labels: the labels of the groups and cells along each column of ``by``.
        numbers: the columns ``share``, ``low``, ``high`` and ``std_error``; NaN where the total is
            not significantly above 0.
        level: each interval contains its true share with this probability.
        library: the library of the data frames; None if the data was no data frame.
    """

    heading: str
    by: tuple[str, ...]
    labels: tuple[tuple[str | int, ...], ...]
    numbers: Mapping[str, FloatArray]
    level: float
    library: str | None = None

    @property
    def title(self) -> str:
        """The divided quantity and the confidence level, as a heading."""
        return f"{self.heading}, {100 * self.level:g}% intervals"

    def columns(self) -> Columns:
        """Return the columns: keys, then share, low, high and std_error."""
        return grouped_columns(self.by, self.labels, self.numbers)


@one_thread()
def shares(
    source: HasLeastSquares,
    of: By,
    *,
    sum: str | None = None,  # noqa: A002 - the word of `queries`
    by: By = (),
    level: float | None = None,
) -> Shares:
    """Estimate the share of each cell in the total, by group.

    Args:
        source: a release or an estimate; it costs no budget.
        of: the parts of the total: attributes (one part for each cell), or mappings such as
            ``{"store": ln.level("region")}``.
        sum: the measure whose sum is divided into shares; its values must not be negative. If None,
            the number of rows is divided.
        by: the groups; the shares add up to 1 within each group.
        level: the confidence level of each interval; None for the level of the release.

    Returns:
        A table; ``frame()`` returns it as a data frame. Rows without a value in an attribute of
        ``of`` are excluded from the parts and from the total. The table of the release excludes the
        same rows.

    Raises:
        InputError: an attribute is in both ``of`` and ``by``; the measure may be negative; or the
            measurements do not determine an answer.

    >>> plan = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"sex": ["F"] * 300 + ["M"] * 700}), seed=7)
    >>> ln.shares(release, ["sex"]).frame("pandas")["share"].round(2).tolist()
    [0.3, 0.7]
    """
    estimate = estimate_of(source)
    level = level_of(source, level)
    domain = estimate.observation.measurements.domain
    quantity = read_quantity(domain, sum=sum)
    if possible_values(quantity, domain)[0] < 0:
        raise refuse(
            "sum",
            sum,
            "a measure whose values are not negative",
            "A share of a total of positive and negative amounts has no meaning.",
        )
    cells = groups_of(domain, of, "the cells of shares")
    groups = groups_of(domain, by, "the groups of shares")
    if not cells or {*cells} & {*groups}:
        raise refuse("of", [*cells], "at least one attribute that is not in by")
    for name, query_set in cells.items():
        _check_partition(domain, name, query_set)
    totals = {name: all_published(domain, name) for name in cells}
    quotient = Quotient(
        queries(domain, {**groups, **cells}, sum=sum).products[0],
        queries(domain, {**groups, **totals}, sum=sum).products[0],
    )
    names = axes_of(domain, quotient.numerator, quotient.denominator)
    multiplier = interval_multiplier(estimate.observation.measurements.noise, level)
    side = estimate_compared_quantity(estimate, Quantity(kind="share"), quotient, names, multiplier)
    estimated = side.estimated
    numbers = {
        "share": np.where(estimated.is_clear, estimated.value, np.nan),
        "low": estimated.low,
        "high": estimated.high,
        "std_error": estimated.std_error,
    }
    product = quotient.numerator
    heading = f"share of {' x '.join(product.keys)} in the {quantity.name}"
    return Shares(
        heading=heading,
        by=product.keys,
        labels=product.labels,
        numbers=numbers,
        level=level,
        library=source.library,
    )


def _check_partition(domain: Domain, name: str, query_set: QuerySet) -> None:
    """Raise unless a query set divides an attribute into disjoint groups."""
    if query_set.kind in ("identity", "level"):
        return
    published = domain.kind(name).published
    operator = query_set.operator(name, domain.kind(name))
    if not (dense(operator).sum(axis=0)[:published] == 1).all():
        raise refuse(
            f"the cells of shares along {name}",
            query_set.kind,
            "groups that contain every cell once",
        )
