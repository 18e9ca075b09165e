"""Workloads of statistics: the tables that means, quantiles and distribution functions follow from, and what is to be made of them."""

from collections.abc import Sequence

from leastnoise._check import Exact
from leastnoise._domain import Domain
from leastnoise._workload._query_sets import By, prefix
from leastnoise._workload._statistic import Statistic, statistic
from leastnoise._workload._target import target
from leastnoise._workload._workload import Workload, queries


def mean_queries(
    domain: Domain,
    of: str,
    *,
    by: By = (),
    weight: Exact = 1,
    size: Exact | None = None,
    margin: Exact | None = None,
    rmse: Exact | None = None,
) -> Workload:
    """Means of a measure by group, of the rows with a value: the sums and the counts of values that they follow from are answered too.

    Args:
        domain: the domain.
        of: a measure.
        by: attributes whose cells are the groups, or mappings such as ``{"store": level("region")}``; none for the mean of all rows.
        weight: of both tables.
        size: a public number, how many rows with a value a group is expected to have; the plan says the error of a mean for it.
        margin: a target: half width of the interval of a mean, at the release's level, in a group of that many rows, whatever the mean.
        rmse: in place of it, the standard error.

    Raises:
        InputError: no such measure or attribute, or a target that is not above 0 or has no size.

    >>> domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("income", 0, 100)})
    >>> [product.name for product in ln.mean_queries(domain, "pay", by=["sex"])]
    ['count of pay by sex', 'sum of pay by sex']
    """
    asked = statistic(domain, "means", of, None, by, size, target(margin=margin, rmse=rmse))
    return _workload(asked, queries(domain, asked.along, weight=weight, count=of) + queries(domain, asked.along, weight=weight, sum=of))


def quantile_queries(
    domain: Domain, of: str, at: Sequence[Exact], *, by: By = (), weight: Exact = 1, size: Exact | None = None
) -> Workload:
    """Quantiles of a number by group: the counts up to every cell that they follow from are asked for, and answered too.

    Args:
        domain: the domain.
        of: an attribute of Integers, Decimals, Bins or Edges.
        at: shares above 0 and at most 1, exact; ["0.25", "0.5", "0.75"] for the quartiles.
        by: as for `mean_queries`.
        weight: of the table.
        size: a public number, how many rows a group is expected to have; the plan says the error of the shares for it.

    Raises:
        InputError: no such attribute, no numbers, shares that are none, or groups of the number itself.

    >>> ln.quantile_queries(ln.Domain(age=ln.Integers(17, 90)), "age", ["0.5"]).products[0].name
    'age:prefix'
    """
    asked = statistic(domain, "quantiles", of, at, by, size)
    return _workload(asked, _upto(domain, asked, weight))


def cdf_queries(domain: Domain, of: str, *, by: By = (), weight: Exact = 1, size: Exact | None = None) -> Workload:
    """The distribution function of a number by group, from counts up to every cell, which are answered too.

    Args:
        domain: the domain.
        of: an attribute of Integers, Decimals, Bins or Edges.
        by: as for `mean_queries`.
        weight: of the table.
        size: as for `quantile_queries`.

    Raises:
        InputError: as `quantile_queries`.

    >>> ln.cdf_queries(ln.Domain(age=ln.Integers(17, 90)), "age").statistics[0].name
    'distribution of age'
    """
    asked = statistic(domain, "cdf", of, None, by, size)
    return _workload(asked, _upto(domain, asked, weight))


def _upto(domain: Domain, asked: Statistic, weight: Exact) -> Workload:
    return queries(domain, {**asked.along, asked.of: prefix()}, weight=weight)


def _workload(asked: Statistic, tables: Workload) -> Workload:
    return Workload(tables.domain, tables.products, (asked,))
