"""Levels: partitions of the cells along an attribute that lie in each other, with a weight a level or a group; groups may be of any sizes.

With P_l the groups of level l as rows and a_l their precisions, the Gram matrix is X = sum_l P_l^T diag(a_l) P_l. Up the tree v_u =
1 / (a_u + 1 / sum of the children's v) is the variance of group u from what is measured within it; down the tree a child's variance from
everything is f_c = v_c - (v_c / S)^2 (S - f_u), S the sum of the v of all children of u. So all variances take O(groups), and by the
reverse pass so do the derivatives of their sum by every a_u.

Groups with equal trees below them whose parents are alike are one *orbit*: they share v and f, and a tree of equal groups has one orbit a
level whatever its size. The Gram matrices of all levels have invariant spaces in common: k sisters of one orbit span k - 1 copies of the
spaces of one of them, and their sum goes into the space of their parent, of one dimension for each orbit of cells below it.

Source: Hay et al. 2010 (inference by two passes); docs/mathematics.md, section 2.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import Array, FloatArray, IntArray
from leastnoise._families._queries import zero_one
from leastnoise._linop import Identity, Operator, Total, apply_transpose

_ROUNDING = 1e-13  # of the largest eigenvalue
_MOST_ROOT = 1024  # orbits of cells whose joint spectrum is computed
_MOST_SOLVED = 2**28
_AT_ONCE = 2**22  # numbers
Precision = float | FloatArray  # of every row of a level, or of each orbit of its groups


@lru_cache(maxsize=256)
def partition(operator: Operator) -> IntArray | None:
    """The group of every cell, where each cell is in exactly one of an operator's rows; else None."""
    if operator.rows > operator.size or not zero_one(operator):
        return None
    if not (apply_transpose(operator, np.ones(operator.rows, dtype=np.int64)) == 1).all():
        return None
    return np.asarray(apply_transpose(operator, np.arange(operator.rows)))


def nested_levels(size: int, operators: Iterable[Operator]) -> "Levels | None":
    """The levels that operators ask for along an attribute, with its cells and its total; None if they do not lie in each other."""
    groups = [partition(operator) for operator in dict.fromkeys([Identity(size), *operators, Total(size)])]
    known = [group for group in groups if group is not None]
    return _levels(known) if len(known) == len(groups) else None


def _levels(groups: Iterable[IntArray]) -> "Levels | None":
    known = sorted(groups, key=lambda group: -int(group.max()))
    levels, parents = [known[0]], []
    for coarser in known[1:]:
        parent = np.empty(int(levels[-1].max()) + 1, dtype=np.int64)
        parent[levels[-1]] = coarser
        if not np.array_equal(parent[levels[-1]], coarser):
            return None
        if int(coarser.max()) == int(levels[-1].max()):
            if not np.array_equal(levels[-1], coarser):
                return None
            continue
        levels.append(coarser)
        parents.append(parent)
    return Levels(tuple(levels), tuple(parents))


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels along an attribute: the cells first, the total last."""

    groups: tuple[IntArray, ...]  # for every level the group of each cell
    parents: tuple[IntArray, ...]  # for every level but the last, of each group its group of the next level
    _including: dict[Operator, "Levels | None"] = field(default_factory=dict, repr=False)

    @staticmethod
    def plain(size: int) -> "Levels":
        """The cells and the total."""
        return Levels((np.arange(size), np.zeros(size, dtype=np.int64)), (np.zeros(size, dtype=np.int64),))

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.groups[0])

    def level(self, operator: Operator) -> int | None:
        """The level whose groups are an operator's rows."""
        labels = partition(operator)
        return None if labels is None else next((at for at, groups in enumerate(self.groups) if np.array_equal(groups, labels)), None)

    def including(self, operator: Operator) -> "Levels | None":
        """The same with one level more; None if it does not lie between others."""
        if operator not in self._including:
            labels = partition(operator)
            self._including[operator] = None if labels is None else _levels([*self.groups, labels])
        return self._including[operator]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Groups of every level."""
        return (*map(len, self.parents), 1)

    @cached_property
    def _orders(self) -> tuple[tuple[IntArray | None, IntArray], ...]:
        """Of every level but the last the groups in the order of their parents (None: they are), and where those of each parent begin."""
        orders = []
        for parents in self.parents:
            order = None if (np.diff(parents) >= 0).all() else np.argsort(parents, kind="stable")
            orders.append((order, np.flatnonzero(np.diff(parents if order is None else parents[order], prepend=-1))))
        return tuple(orders)

    def summed(self, level: int, values: Array) -> Array:
        """Sums of what the groups of a level have, for each group of the next one, along the first axis."""
        order, starts = self._orders[level]
        return np.asarray(np.add.reduceat(values if order is None else values[order], starts, axis=0))

    @cached_property
    def spectrum(self) -> "list[Part]":
        """The invariant spaces of all levels, the one with the total first; none where that is too large."""
        return self.weighted_spectrum(np.ones(len(self.orbits.numbers[0])))

    def weighted_spectrum(self, weights: FloatArray) -> "list[Part]":
        """The same of levels times the roots of weights of the cells, one an orbit, whose mean over cells is 1."""
        orbits, depth = self.orbits, len(self.groups)
        apart: dict[bytes, Part] = {}
        below = [(weight * np.eye(depth, 1).reshape(depth, 1, 1), np.full(1, math.sqrt(weight))) for weight in weights.tolist()]
        for level, (parents, times) in enumerate(zip(orbits.parents, orbits.times, strict=True)):
            sisters: list[list[tuple[FloatArray, FloatArray]]] = [[] for _ in orbits.numbers[level + 1]]
            often = orbits.numbers[level] * (1 - 1 / times)
            for (grams, cells), parent, count, number in zip(below, parents.tolist(), times.tolist(), often.tolist(), strict=True):
                if number:
                    key = grams.tobytes()
                    apart[key] = Part(grams / self.size, number + (apart[key].often if key in apart else 0.0))
                sisters[parent].append((grams, cells * math.sqrt(count)))
            below = []
            for parts in sisters:
                cells, at = np.concatenate([cells_of for _, cells_of in parts]), 0
                if len(cells) > _MOST_ROOT:
                    return []
                joined = np.zeros((depth, len(cells), len(cells)))
                joined[level + 1] = np.outer(cells, cells)
                for grams, part_cells in parts:
                    joined[: level + 1, at : at + len(part_cells), at : at + len(part_cells)] = grams[: level + 1]
                    at += len(part_cells)
                below.append((joined, cells))
        ((grams, cells),) = below
        turned = np.linalg.svd(cells[None])[2]
        grams = turned @ grams @ turned.T / self.size
        grams[-1] = np.diag(np.eye(len(cells))[0])
        return [Part(grams, 1.0, total=True), *apart.values()]

    @cached_property
    def each(self) -> "Orbits":
        """Every group by itself."""
        return Orbits(self.parents, tuple(map(np.ones, self.counts[:-1])), tuple(map(np.arange, self.counts)))

    @cached_property
    def orbits(self) -> "Orbits":
        """Groups that are alike, told apart from above after classes of equal trees were from below."""
        random, classes = np.random.default_rng(0), [np.zeros(self.size, dtype=np.int64)]
        for level in range(len(self.parents)):
            # Sums of random numbers stand for multisets of children.
            drawn = random.integers(1 << 62, size=(int(classes[-1].max()) + 1, 2))[classes[-1]]
            classes.append(np.unique(self.summed(level, drawn), axis=0, return_inverse=True)[1].reshape(-1))
        orbit, of_groups, parents, times = classes[-1], [classes[-1]], [], []
        for labels, above in zip(classes[-2::-1], self.parents[::-1], strict=True):
            keys = orbit[above] * (int(labels.max()) + 1) + labels
            _, first, fresh, number = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
            parents.append(orbit[above[first]])
            times.append(number / np.bincount(orbit)[parents[-1]])
            orbit = fresh.reshape(-1)
            of_groups.append(orbit)
        return Orbits(tuple(parents[::-1]), tuple(times[::-1]), tuple(of_groups[::-1]))


@dataclass(frozen=True, eq=False)
class Orbits:
    """Groups that are alike, level by level."""

    parents: tuple[IntArray, ...]  # for every level but the last the orbit of the next one that each lies in
    times: tuple[FloatArray, ...]  # how many groups of each orbit lie in one of its parent
    of_groups: tuple[IntArray, ...]  # for every level the orbit of each group

    @cached_property
    def numbers(self) -> tuple[FloatArray, ...]:
        """Groups in each orbit, for every level."""
        return tuple(np.bincount(groups).astype(np.float64) for groups in self.of_groups)

    def up(self, precisions: Sequence[Precision]) -> tuple[int, list[FloatArray], list[FloatArray]]:
        """The finest level that is measured, and from it on v and S of every orbit; the sums begin a level later."""
        start = next(level for level, precision in enumerate(precisions) if np.any(precision))
        upward, below = [np.broadcast_to(1 / precisions[start], self.numbers[start].shape)], list[FloatArray]()
        for level in range(start, len(self.parents)):
            below.append(np.bincount(self.parents[level], self.times[level] * upward[-1]).astype(np.float64))
            upward.append(below[-1] / (1 + precisions[level + 1] * below[-1]))
        return start, upward, below

    def down(self, start: int, upward: Sequence[FloatArray], below: Sequence[FloatArray]) -> list[FloatArray]:
        """f of every orbit, from the finest level that is measured on."""
        final = [upward[-1]]
        for level in range(len(below) - 1, -1, -1):
            parents = self.parents[start + level]
            final.insert(0, upward[level] - (upward[level] / below[level][parents]) ** 2 * (below[level] - final[0])[parents])
        return final

    def error(self, precisions: Sequence[Precision], asked: Sequence[float]) -> tuple[float, list[FloatArray]]:
        """The sum over levels of ``asked`` times the variances of their groups, and minus its derivatives by the precisions of orbits."""
        slopes = [np.zeros(len(numbers)) for numbers in self.numbers]
        if not any(map(np.any, precisions)):
            return math.inf, slopes
        start, upward, below = self.up(precisions)
        if any(weight > 0 for weight in asked[:start]):
            return math.inf, slopes
        final = self.down(start, upward, below)
        back_final = [weight * self.numbers[start + at] for at, weight in enumerate(asked[start:])]
        error = sum(float(back @ variances) for back, variances in zip(back_final, final, strict=True))
        back_upward, back_below = [np.zeros(len(level)) for level in upward], [np.zeros(len(level)) for level in below]
        for at in range(len(below)):  # the reverse of ``down``
            parents = self.parents[start + at]
            share, rest = upward[at] / below[at][parents], (below[at] - final[at + 1])[parents]
            back_upward[at] += back_final[at] * (1 - 2 * share * rest / below[at][parents])
            back_final[at + 1] += np.bincount(parents, back_final[at] * share**2)
            back_below[at] += np.bincount(parents, back_final[at] * (2 * share**2 * rest / below[at][parents] - share**2))
        back_upward[-1] += back_final[-1]
        for at in range(len(below) - 1, -1, -1):  # the reverse of ``up``
            slopes[start + at + 1] = back_upward[at + 1] * upward[at + 1] ** 2
            back_below[at] += back_upward[at + 1] * (upward[at + 1] / below[at]) ** 2
            back_upward[at] += self.times[start + at] * back_below[at][self.parents[start + at]]
        slopes[start] = back_upward[0] * upward[0] ** 2
        return error, slopes


def root_trace(gram: FloatArray) -> float:
    """tr M^(1/2)."""
    if len(gram) == 1:
        return math.sqrt(max(0.0, float(gram[0, 0])))
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(values[values > _ROUNDING * values[-1]]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """An invariant space of levels, so often in the space of cells."""

    grams: FloatArray  # the Gram matrix of every level on it over the number of cells, shape (levels, d, d)
    often: float
    total: bool = False  # whether its first direction is that of equal cells; else it is orthogonal to that

    @property
    def size(self) -> int:
        """Its dimension d."""
        return self.grams.shape[1]

    @property
    def across(self) -> "Part":
        """What of it is orthogonal to equal cells, maybe nothing."""
        return Part(self.grams[:, 1:, 1:], self.often) if self.total else self

    def seen(self, level: int) -> IntArray:
        """The directions that a level tells of."""
        return np.flatnonzero(self.grams[level].any(axis=0))


@dataclass(frozen=True, eq=False)
class LevelInverse:
    """The inverse of the Gram matrix of levels on what they determine; beyond it the estimate of least norm, spread evenly over cells."""

    levels: Levels
    precisions: tuple[Precision, ...]  # of every level, or of each of its groups

    @cached_property
    def _orbits(self) -> Orbits:
        return self.levels.orbits if all(np.ndim(precision) == 0 for precision in self.precisions) else self.levels.each

    @cached_property
    def _passes(self) -> tuple[int, list[FloatArray], list[FloatArray], list[FloatArray]]:
        start, upward, below = self._orbits.up(self.precisions)
        return start, upward, below, self._orbits.down(start, upward, below)

    def variances(self, operator: Operator) -> FloatArray:
        """q X^+ q for every row of an operator."""
        level, (start, _, _, final) = self.levels.level(operator), self._passes
        if level is not None and level >= start:
            return final[level - start][self._orbits.of_groups[level]]
        finer = self.levels.including(operator) if level is None else None
        if finer is not None:
            at = finer.level(operator) or 0
            return LevelInverse(finer, (*self.precisions[:at], 0.0, *self.precisions[at:])).variances(operator)
        if not operator.rows * operator.size <= _MOST_SOLVED:
            raise InputError(
                f"Beside tables of levels at most {_MOST_SOLVED} numbers are solved for along an attribute; got {operator.rows} queries "
                f"over {operator.size} cells. Choose another strategy."
            )
        answer = np.empty(operator.rows)
        step = max(1, _AT_ONCE // max(operator.rows, operator.size))
        for first in range(0, operator.rows, step):
            rows = np.arange(first, min(first + step, operator.rows))
            asked = apply_transpose(operator, np.equal.outer(np.arange(operator.rows), rows).astype(np.float64))
            answer[rows] = self.squares(asked)
        return answer

    def total_variance(self, operator: Operator) -> float:
        """The sum of ``variances``."""
        level, (start, _, _, final) = self.levels.level(operator), self._passes
        if level is not None and level >= start:
            return float(final[level - start] @ self._orbits.numbers[level])
        return float(self.variances(operator).sum())

    def _gathered(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of v over the groups of the finest level that is measured, and how many cells these have."""
        gathered, lengths = v, np.ones(self.levels.size)
        for level in range(self._passes[0]):
            gathered, lengths = self.levels.summed(level, gathered), self.levels.summed(level, lengths)
        return gathered, lengths

    def squares(self, v: FloatArray) -> FloatArray:
        """v^T X^+ v for every column, by the pass up alone."""
        (start, upward, below, _), of_groups = self._passes, self._orbits.of_groups
        gathered, lengths = self._gathered(v)
        product = gathered * (upward[0][of_groups[start]] / lengths)[:, None]
        answer = ((gathered / lengths[:, None]) * product).sum(axis=0)
        for level, (under, after) in enumerate(zip(below, upward[1:], strict=True), start):
            groups, product = of_groups[level + 1], self.levels.summed(level, product)
            answer -= ((under - after) / under**2)[groups] @ product**2
            product = product * (after / under)[groups][:, None]
        return answer

    def solve(self, v: FloatArray) -> FloatArray:
        """X^+ v along the first axis, by the two passes."""
        column, levels = (slice(None),) + (None,) * (v.ndim - 1), self.levels
        (start, upward, below, _), of_groups = self._passes, self._orbits.of_groups
        gathered, lengths = self._gathered(v)
        estimates = [gathered * (upward[0][of_groups[start]] / lengths)[column]]
        for at, under in enumerate(below):
            shrink = (upward[at + 1] / under)[of_groups[start + at + 1]]
            estimates.append(levels.summed(start + at, estimates[-1]) * shrink[column])
        for at in range(len(below) - 1, -1, -1):
            level = start + at
            missing = (estimates[at + 1] - levels.summed(level, estimates[at])) / below[at][of_groups[level + 1]][column]
            estimates[at] = estimates[at] + upward[at][of_groups[level]][column] * missing[levels.parents[level]]
        return np.asarray((estimates[0] / lengths[column])[levels.groups[start]])
