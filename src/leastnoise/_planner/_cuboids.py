"""Greedy choice of base cuboids for data cubes: the largest cell variance is kept small (problem BMAX of Ding et al.).

Every asked marginal is answered by adding up cells of one measured marginal that contains it. With s measured marginals, each of noise
variance s^2 (pure) or s (Gaussian) in units of the noise of a single one, the variance is that times the number of cells added up.
This is strategy C of Cormode et al.; with budgets by cube roots instead of equal ones it is C+.

Source: Ding, Winslett, Han, Li, SIGMOD 2011; the threshold runs over its finitely many values instead of a bisection.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastnoise._check import refuse, whole
from leastnoise._check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._planner._residual_algebra import AttributeSet, check_set, check_shape, table_sizes

_MOST_ENTRIES = 1 << 25  # candidates times asked marginals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cover:
    """Marginals to measure with equal budgets, and which of them answers what.

    Attributes:
        tables: the measured marginals.
        source: for each asked marginal the position of the measured one it is added up from.
        largest: the largest cell variance at unit noise and privacy cost 1: times 2 / epsilon^2 for pure budgets, 1 / mu^2 for Gaussian.
    """

    tables: tuple[AttributeSet, ...]
    source: IntArray
    largest: float


def greedy_cover(
    shape: Sequence[int], targets: Sequence[AttributeSet], *, norm: int = 1, candidates: Iterable[AttributeSet] | None = None
) -> Cover:
    """Choose the marginals to measure so that the largest cell variance of the asked ones is small.

    For each number of cells that may be added up, marginals are taken greedily, the one that answers most of what is left first, until all
    is answered; the threshold with the least variance wins. Within (ln m + 1)^2 of the best choice for m asked marginals.
    """
    shape, asked, options = _problem(shape, targets, candidates)
    power = 2 if whole("norm", norm, 1, 2) == 1 else 1
    added = _cells_added(shape, options, asked)
    nearest = added.min(axis=1)
    if not bool(np.isfinite(nearest).all()):
        lost = asked[int(np.argmax(~np.isfinite(nearest)))]
        raise refuse("candidates", f"none that contains {lost}", "marginals that between them contain every asked one")
    best: tuple[float, list[int]] | None = None
    least = float(nearest.max())  # below this threshold something has no source
    for threshold in np.unique(added[np.isfinite(added)]).tolist():
        if threshold < least:
            continue
        if best is not None and not threshold < best[0]:
            break
        chosen = _greedy(added <= threshold)
        largest = float(len(chosen)) ** power * float(added[:, chosen].min(axis=1).max())
        if best is None or largest < best[0]:
            best = largest, chosen
    if best is None:
        raise refuse("candidates", len(options), "at least one marginal")
    largest, chosen = best
    return Cover(tables=tuple(options[i] for i in chosen), source=added[:, chosen].argmin(axis=1), largest=largest)


def cover_errors(shape: Sequence[int], targets: Mapping[AttributeSet, float], cover: Cover) -> FloatArray:
    """Return for each measured marginal what one unit of its noise variance adds to the total squared error.

    With equal budgets (strategy C) the total is s^2 (pure) or s (Gaussian) times their sum; `grouped_budgets` gives those of C+.
    """
    if not len(targets) == len(cover.source):
        raise refuse("targets", f"{len(targets)} marginals", f"the {len(cover.source)} marginals that the cover was made for")
    weights = np.array([float(value) for value in targets.values()])
    result: FloatArray = table_sizes(shape, cover.tables) * np.bincount(cover.source, weights=weights, minlength=len(cover.tables))
    return result


def _problem(
    shape: Sequence[int], targets: Sequence[AttributeSet], candidates: Iterable[AttributeSet] | None
) -> tuple[tuple[int, ...], list[AttributeSet], list[AttributeSet]]:
    """The shape, the asked marginals and what may be measured, checked."""
    sizes = check_shape(shape)
    asked = [check_set("target", attributes, len(sizes)) for attributes in targets]
    if not asked:
        raise refuse("targets", [], "at least one asked marginal")
    if candidates is None:
        return sizes, asked, _candidates(asked)
    own = {check_set("candidate", attributes, len(sizes)) for attributes in candidates}
    return sizes, asked, sorted(own, key=lambda s: (len(s), s))


def _candidates(asked: list[AttributeSet]) -> list[AttributeSet]:
    used = sorted({i for attributes in asked for i in attributes})
    if len(asked) << len(used) <= _MOST_ENTRIES:
        return [s for k in range(len(used) + 1) for s in itertools.combinations(used, k)]
    found = {tuple(used), *asked}
    if len(asked) ** 3 <= 2 * _MOST_ENTRIES:
        found |= {tuple(sorted({*a, *b})) for a, b in itertools.combinations(asked, 2)}
    return sorted(found, key=lambda s: (len(s), s))


def _cells_added(shape: Sequence[int], options: list[AttributeSet], asked: list[AttributeSet]) -> NDArray[np.float32]:
    """How many cells of each candidate make one cell of each asked marginal; infinite where the candidate does not contain it.

    One row an asked marginal, one column a candidate.
    """
    if not len(options) * len(asked) <= _MOST_ENTRIES:
        advice = "Give fewer candidates, or choose the strategy of searched covering designs."
        raise refuse("candidates", f"{len(options)} for {len(asked)} asked marginals", f"at most {_MOST_ENTRIES} pairs of the two", advice)
    outside = np.ones((len(options), len(shape)), dtype=np.float32)
    for row, attributes in zip(outside, options, strict=True):
        row[list(attributes)] = 0
    member = np.zeros((len(shape), len(asked)), dtype=np.float32)
    for column, attributes in enumerate(asked):
        member[list(attributes), column] = 1
    ratio = np.rint(table_sizes(shape, options) / table_sizes(shape, asked)[:, None]).astype(np.float32)
    ratio[member.T @ outside.T > 0] = np.inf
    return ratio


def _greedy(covers: BoolArray, most: int | None = None) -> list[int]:
    """Take the candidate that covers most of what is left, the first of equals, until nothing more can be covered or ``most`` are taken."""
    left = np.ones(len(covers), dtype=bool)
    counts = np.count_nonzero(covers, axis=0)
    chosen: list[int] = []
    while counts.any() and len(chosen) != most:
        at = int(counts.argmax())
        new = covers[:, at] & left
        chosen.append(at)
        left &= ~new
        counts = counts - np.count_nonzero(covers[new], axis=0)
    return chosen
