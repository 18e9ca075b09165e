"""Counts up to every cell of a number, by group: what distribution functions and quantiles are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._non_negative import isotonic
from leastnoise._workload import By, Product, cells_of, groups_of, number_cells, predicates, prefix, queries, ranges

Label = str | int


class HasLeastSquares(Protocol):
    """An estimate or a release."""

    @property
    def library(self) -> str | None:
        """Of data frames: that of the data, if these were a frame."""

    def least_squares(self) -> Estimate:
        """For questions that were not in its workload."""


@dataclass(frozen=True, slots=True, eq=False)
class UpTo:
    """The counts up to every cell of a number, by group."""

    product: Product
    attribute: str
    by: tuple[str, ...]
    cells: tuple[tuple[Fraction | int, Fraction | int], ...]

    @property
    def starts(self) -> FloatArray:
        """Lower end of every cell, shape (n,)."""
        return np.array([float(start) for start, _ in self.cells])

    @property
    def values(self) -> FloatArray:
        """Upper end of every cell, shape (n,)."""
        return np.array([float(end) for _, end in self.cells])

    def behind(self) -> Product:
        """The same queries of the counts behind every cell but the last, which there must be."""
        pairs = [(start, self.cells[-1][1]) for start, _ in self.cells[1:]]
        pick = self.product.attributes.index(self.attribute)
        sets = (*self.product.query_sets[:pick], ranges(pairs), *self.product.query_sets[pick + 1 :])
        return replace(self.product, query_sets=sets)

    @property
    def keys(self) -> tuple[str, ...]:
        """What the columns of the groups are called, in the order of `labels`."""
        return tuple(key for key, name in zip(self.product.keys, self.product.attributes, strict=True) if name in self.by)

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """Of the groups along each attribute of ``by``."""
        return tuple(labels for name, labels in zip(self.product.attributes, self.product.labels, strict=True) if name in self.by)

    def arranged(self, answers: FloatArray) -> FloatArray:
        """Answers to the product in the shape of the groups, the cells of the number last."""
        groups = [rows for name, rows in zip(self.product.attributes, answers.shape, strict=True) if name in self.by]
        last = np.moveaxis(answers, self.product.attributes.index(self.attribute), -1)
        return np.asarray(last.reshape(*groups, -1)[..., : len(self.cells)])


def up_to(domain: Domain, attribute: str, where: Mapping[str, Any], by: By) -> UpTo:
    """Counts up to every cell of a number."""
    cells = number_cells(domain, attribute)
    groups = groups_of(domain, by, "the groups of a distribution function")
    sets: dict[str, Any] = {attribute: prefix()}
    for name, labels in where.items():
        if name == attribute:
            raise InputError(f"The distribution function of {attribute} cannot be restricted to some values of {attribute} itself.")
        sets[name] = predicates([cells_of(domain.kind(name), labels)])
    for name in groups:
        if name in sets:
            raise InputError(
                f"The distribution function of {attribute} is asked for by {name}, which is in use already. Leave it out of by."
            )
        sets[name] = groups[name]
    return UpTo(queries(domain, sets).products[0], attribute, (*groups,), cells)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts up to every cell and behind it, with the variances of their errors; the cells last."""

    upto: FloatArray
    variances: FloatArray
    behind: FloatArray
    rest: FloatArray

    def at(self, share: float) -> tuple[FloatArray, FloatArray]:
        """What is at least 0 from the cell of a quantile on, and the variance of its error."""
        tested = (1 - share) * self.upto - share * self.behind
        spread = (1 - share) * self.variances + share * self.rest - share * (1 - share) * self.variances[..., -1:]
        return tested, np.maximum(spread, 0.0)


def quantile_counts(estimate: Estimate, asked: UpTo) -> Counts:
    """The counts that quantiles are tested by."""
    found = estimate.estimate(asked.product)
    upto, variances = asked.arranged(found.values), asked.arranged(found.noise_std) ** 2
    behind, rest = upto[..., -1:] - upto, np.zeros(upto.shape)
    if len(asked.cells) > 1:
        rest[..., :-1] = asked.arranged(estimate.estimate(asked.behind()).noise_std) ** 2
    return Counts(upto, variances, behind, rest)


def checked_share(share: object) -> float:
    """Read the share of a quantile."""
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise refuse("a quantile", share, "a number above 0 and at most 1, such as 0.5 for the median")
    return float(share)


def rising_share(upto: FloatArray, variances: FloatArray) -> FloatArray:
    """The shares nearest to noisy counts that do not fall: (..., n) arrays; the last share is 1."""
    share = np.zeros(upto.shape)
    for at in np.ndindex(upto.shape[:-1]):
        rising = np.maximum(isotonic(upto[at], variances=variances[at]), 0.0)
        share[at] = rising / rising[-1] if rising[-1] > 0 else 0.0
    share[..., -1] = 1.0
    return share


def place_within(
    starts: FloatArray, values: FloatArray, shares: FloatArray, share: float, first: int, last: int
) -> tuple[float, float, float]:
    """A quantile, taken evenly within its cell, and the interval from one cell to another."""
    at = min(int(np.searchsorted(shares, share)), len(values) - 1)
    before = float(shares[at - 1]) if at else 0.0
    rise = float(shares[at]) - before
    inside = min(1.0, max(0.0, (share - before) / rise)) if rise > 0 else 1.0
    value = float(starts[at] + inside * (values[at] - starts[at]))
    low, high = float(starts[first]), float(values[last])
    return min(max(value, low), high), low, high
