"""Levels: nested partitions of the cells of an attribute.

Each level is measured with one weight, or with a weight for each group.

The first level has the single cells, and the last level has only the total. Each group lies in one
group of the next level, which is its parent. Groups may have any number of cells, and their cells
need not be neighbours.

Let P_l be the matrix that sums the cells of each group of level l. Let a_l be the precisions
(inverse variances) of the measurements of that level. The Gram matrix is X = sum_l P_l^T diag(a_l)
P_l. The upward pass computes v_u = 1 / (a_u + 1 / sum of the children's v). v_u is the variance of
the estimate of group u from the measurements inside the group. The downward pass computes f_c = v_c
- (v_c / S)^2 (S - f_u). f_c is the variance of the estimate of a child c from all measurements. S
is the sum of v over all children of its parent u. So all variances are computed in O(groups). The
derivatives of their sum with respect to every a_u also take O(groups), because the same passes are
differentiated in reverse.

Two groups are in the same *orbit* if the trees below them are equal and their parents are in the
same orbit. Groups of an orbit have the same v and f. If all groups of each level have equal trees
below them, every level has a single orbit, for any number of groups. The matrices P_l^T P_l of all
levels have common invariant subspaces. Consider k sibling groups of one orbit. These sibling groups
contribute k - 1 copies of the subspaces of one group. The sum of these copies belongs to the
subspace of the parent group, which has one dimension for each orbit of cells below it.

Source: Hay et al. 2010 (inference by two passes); docs/mathematics.md, section 2.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from leastnoise._families._queries import is_zero_one
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import Array, FloatArray, IntArray
from leastnoise._trusted.linop import Identity, Operator, Total, apply, apply_transpose

_EIGENVALUE_ROUNDING = 1e-13  # eigenvalues below this part of the largest one count as 0
_LEAST_PRECISION = 1e-300  # with a smaller precision, a variance is not a finite number
_MOST_ROOT = 1024  # maximum number of orbits of cells below a group in a common spectrum
_MOST_SOLVED = 2**28  # maximum number of queries times cells of an operator that is not a level
_AT_ONCE = 2**22  # maximum number of array entries in memory
Precision = float | FloatArray  # one number for all groups of a level, or one for each orbit


@lru_cache(maxsize=256)
def partition_groups(operator: Operator) -> IntArray | None:
    """Return the group index of each cell; None if rows are not a partition.

    The result has shape (size,).
    """
    if operator.rows > operator.size or not is_zero_one(operator):
        return None
    if not (apply_transpose(operator, np.ones(operator.rows, dtype=np.int64)) == 1).all():
        return None
    return np.asarray(apply_transpose(operator, np.arange(operator.rows)))


def nested_levels(size: int, operators: Iterable[Operator]) -> "Levels | None":
    """Return cells, operators' groups and total as levels; None if not nested.

    The result is None if the groups are not nested partitions.
    """
    groups = [
        partition_groups(operator)
        for operator in dict.fromkeys([Identity(size), *operators, Total(size)])
    ]
    partitions = [group for group in groups if group is not None]
    if len(partitions) == len(groups):
        return _levels_of_nested(partitions)
    return None


def _levels_of_nested(groupings: Iterable[IntArray]) -> "Levels | None":
    """Return groupings as levels, finest first; None if they are not nested."""
    finest_first = sorted(groupings, key=lambda group: -int(group.max()))
    levels = [finest_first[0]]
    parents = []
    for coarser in finest_first[1:]:
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
    return Levels(tuple(parents))


@dataclass(frozen=True, eq=False)
class Levels:
    """Nested partitions of the cells of an attribute, from cells to total.

    Attributes:
        parents: for each level except the last, the group of the next level that contains each
            group, shape (groups,).
    """

    parents: tuple[IntArray, ...]
    _including: dict[Operator, "Levels | None"] = field(default_factory=dict, repr=False)

    @staticmethod
    def cells_and_total(size: int) -> "Levels":
        """Return two levels: the single cells, and the total."""
        return Levels((np.zeros(size, dtype=np.int64),))

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.counts[0]

    @cached_property
    def groups(self) -> tuple[IntArray, ...]:
        """The group index of each cell, by level; each array has shape (size,)."""
        groups = [np.arange(self.size)]
        for parents in self.parents:
            groups.append(parents[groups[-1]])
        return tuple(groups)

    def level(self, operator: Operator) -> int | None:
        """Return the index of the level that an operator measures, or None."""
        labels = partition_groups(operator)
        if labels is None:
            return None
        return next(
            (level for level, groups in enumerate(self.groups) if np.array_equal(groups, labels)),
            None,
        )

    def with_level(self, operator: Operator) -> "Levels | None":
        """Return the levels with an operator's groups added, or None.

        The result is None if the operator's rows are not a partition that nests with the levels.
        """
        if operator not in self._including:
            labels = partition_groups(operator)
            self._including[operator] = (
                None if labels is None else _levels_of_nested([*self.groups, labels])
            )
        return self._including[operator]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of groups of each level."""
        return (*map(len, self.parents), 1)

    @cached_property
    def _orders(self) -> tuple[tuple[IntArray | None, IntArray], ...]:
        """The groups of each level sorted by parent, for all levels but the last.

        Each item has two arrays: the order, or None if the groups are already ordered; and the
        positions at which the groups of each parent begin.
        """
        orders = []
        for parents in self.parents:
            if (np.diff(parents) >= 0).all():
                order = None
            else:
                order = np.argsort(parents, kind="stable")
            orders.append(
                (
                    order,
                    np.flatnonzero(
                        np.diff(parents if order is None else parents[order], prepend=-1)
                    ),
                )
            )
        return tuple(orders)

    def sum_groups(self, level: int, values: Array) -> Array:
        """Return the sums of one level's values over the groups of the next level.

        The values have shape (groups, ...).
        """
        order, starts = self._orders[level]
        return np.asarray(
            np.add.reduceat(values if order is None else values[order], starts, axis=0)
        )

    @cached_property
    def spectrum(self) -> "list[InvariantSubspace]":
        """Return the invariant subspaces that all levels have in common.

        The subspace with the total comes first. The list is empty if that subspace is too large.
        """
        return self.weighted_spectrum(np.ones(len(self.orbits.numbers[0])))

    def weighted_spectrum(self, orbit_weights: FloatArray) -> "list[InvariantSubspace]":
        """Return the common invariant subspaces of levels with weighted cells.

        Cells are scaled by the square roots of the weights. There is one weight for each orbit of
        cells, and the mean of the weights over cells is 1.
        """
        # Each orbit has two things: the Gram matrices of all levels on the sums over each orbit of
        # cells below it, and the roots of the weights.
        orbits = self.orbits
        depth = len(self.groups)
        subspaces: dict[bytes, InvariantSubspace] = {}
        below = [
            (weight * np.eye(depth, 1).reshape(depth, 1, 1), np.full(1, math.sqrt(weight)))
            for weight in orbit_weights.tolist()
        ]
        for level, (parents, times) in enumerate(
            zip(orbits.parents, orbits.multiplicities, strict=True)
        ):
            sisters: list[list[tuple[FloatArray, FloatArray]]] = [
                [] for _ in orbits.numbers[level + 1]
            ]
            copies = orbits.numbers[level] * (1 - 1 / times)
            for (grams, cells), parent, count, number in zip(
                below, parents.tolist(), times.tolist(), copies.tolist(), strict=True
            ):
                if number:
                    key = grams.tobytes()
                    subspaces[key] = InvariantSubspace(
                        grams / self.size,
                        number + (subspaces[key].multiplicity if key in subspaces else 0.0),
                    )
                sisters[parent].append((grams, cells * math.sqrt(count)))
            below = []
            for parts in sisters:
                cells = np.concatenate([cells_of for _, cells_of in parts])
                at = 0
                if len(cells) > _MOST_ROOT:
                    return []
                joined = np.zeros((depth, len(cells), len(cells)))
                joined[level + 1] = np.outer(cells, cells)
                for grams, part_cells in parts:
                    joined[: level + 1, at : at + len(part_cells), at : at + len(part_cells)] = (
                        grams[: level + 1]
                    )
                    at += len(part_cells)
                below.append((joined, cells))
        ((grams, cells),) = below
        turned = np.linalg.svd(cells[None])[2]
        grams = turned @ grams @ turned.T / self.size
        grams[-1] = np.diag(np.eye(len(cells))[0])
        return [InvariantSubspace(grams, 1.0, has_total=True), *subspaces.values()]

    @cached_property
    def singleton_orbits(self) -> "Orbits":
        """Orbits with one group each, for arbitrary weights of groups."""
        once = tuple(np.broadcast_to(1.0, count) for count in self.counts[:-1])
        return Orbits(self.parents, once, tuple(map(np.arange, self.counts)))

    @cached_property
    def orbits(self) -> "Orbits":
        """The orbits: classes of groups that have equal variances.

        Groups with equal subtrees first form one class, which is then split by the orbits of the
        parents.
        """
        random = np.random.default_rng(0)
        classes = [np.zeros(self.size, dtype=np.int64)]
        for level in range(len(self.parents)):
            # The multiset of the classes of the children is identified by a sum of random numbers,
            # one for each class.
            random_keys = random.integers(1 << 62, size=(int(classes[-1].max()) + 1, 2))[
                classes[-1]
            ]
            classes.append(
                np.unique(self.sum_groups(level, random_keys), axis=0, return_inverse=True)[
                    1
                ].reshape(-1)
            )
        orbit = classes[-1]
        orbit_of_group = [classes[-1]]
        parents = []
        times = []
        for labels, above in zip(classes[-2::-1], self.parents[::-1], strict=True):
            keys = orbit[above] * (int(labels.max()) + 1) + labels
            _, first, fresh, number = np.unique(
                keys, return_index=True, return_inverse=True, return_counts=True
            )
            parents.append(orbit[above[first]])
            times.append(number / np.bincount(orbit)[parents[-1]])
            orbit = fresh.reshape(-1)
            orbit_of_group.append(orbit)
        return Orbits(tuple(parents[::-1]), tuple(times[::-1]), tuple(orbit_of_group[::-1]))


@dataclass(frozen=True, eq=False)
class Orbits:
    """Classes of groups with equal variances, for every level.

    Attributes:
        parents: for every level but the last: the orbit of the next level that contains each orbit.
        multiplicities: for every level but the last, the number of groups of each orbit that one
            group of the parent orbit contains.
        orbit_of_group: for every level: the orbit of each group.
    """

    parents: tuple[IntArray, ...]
    multiplicities: tuple[FloatArray, ...]
    orbit_of_group: tuple[IntArray, ...]

    @cached_property
    def numbers(self) -> tuple[FloatArray, ...]:
        """The number of groups in each orbit, for every level."""
        return tuple(np.bincount(groups).astype(np.float64) for groups in self.orbit_of_group)

    def group_variances(
        self, precisions: Sequence[Precision]
    ) -> tuple[int, list[FloatArray], list[FloatArray], list[FloatArray]]:
        """Return the finest measured level, and three lists of variances by orbit.

        Each array has one entry for each orbit of its level.

        Returns:
            The finest level that is measured, and three lists of arrays by level. v is the variance
            from the measurements within a group. The list of v begins with the finest measured
            level. S is the sum of the children's v; its list begins with the next level. f is the
            variance from all measurements; its list begins with the finest measured level.
        """
        start = next(level for level, precision in enumerate(precisions) if np.any(precision))
        counts = (*map(len, self.parents), 1)
        upward = [np.broadcast_to(1 / precisions[start], counts[start])]
        below = list[FloatArray]()
        for level in range(start, len(self.parents)):
            below.append(
                np.bincount(self.parents[level], self.multiplicities[level] * upward[-1]).astype(
                    np.float64
                )
            )
            upward.append(below[-1] / (1 + precisions[level + 1] * below[-1]))
        final = [upward[-1]]
        for at in range(len(below) - 1, -1, -1):
            parents = self.parents[start + at]
            final.insert(
                0,
                upward[at]
                - (upward[at] / below[at][parents]) ** 2 * (below[at] - final[0])[parents],
            )
        return start, upward, below, final

    def error(
        self, precisions: Sequence[Precision], level_weights: Sequence[float]
    ) -> tuple[float, list[FloatArray]]:
        """Return the weighted sum of all group variances, and its gradient.

        The gradient is with respect to the precisions, with the opposite sign.

        Args:
            precisions: the precision of every level, or of each orbit of the level.
            level_weights: a weight for every level.

        Returns:
            The error, and for every level an array with the slopes of its orbits. The error is
            infinite in two cases: the measurements do not determine a requested level, or an orbit
            of the finest measured level is not measured.
        """
        slopes = [np.zeros(len(numbers)) for numbers in self.numbers]
        finest = next((precision for precision in precisions if np.any(precision)), 0.0)
        if np.min(finest) < _LEAST_PRECISION:
            return math.inf, slopes
        start, upward, below, final = self.group_variances(precisions)
        if any(weight > 0 for weight in level_weights[:start]):
            return math.inf, slopes
        back_final = [
            weight * self.numbers[start + at] for at, weight in enumerate(level_weights[start:])
        ]
        error = sum(
            float(factors_back @ variances)
            for factors_back, variances in zip(back_final, final, strict=True)
        )
        back_upward = [np.zeros(len(level)) for level in upward]
        back_below = [np.zeros(len(level)) for level in below]
        for at in range(len(below)):  # the reverse of the downward pass
            parents = self.parents[start + at]
            share = upward[at] / below[at][parents]
            change = (below[at] - final[at + 1])[parents]
            back_upward[at] += back_final[at] * (1 - 2 * share * change / below[at][parents])
            back_final[at + 1] += np.bincount(parents, back_final[at] * share**2)
            back_below[at] += np.bincount(
                parents, back_final[at] * (2 * share**2 * change / below[at][parents] - share**2)
            )
        back_upward[-1] += back_final[-1]
        for at in range(len(below) - 1, -1, -1):  # the reverse of the upward pass
            slopes[start + at + 1] = back_upward[at + 1] * upward[at + 1] ** 2
            back_below[at] += back_upward[at + 1] * (upward[at + 1] / below[at]) ** 2
            back_upward[at] += (
                self.multiplicities[start + at] * back_below[at][self.parents[start + at]]
            )
        slopes[start] = back_upward[0] * upward[0] ** 2
        return error, slopes


def trace_of_root(gram: FloatArray) -> float:
    """Return tr M^(1/2) of a positive semidefinite matrix M."""
    if len(gram) == 1:
        return math.sqrt(max(0.0, float(gram[0, 0])))
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(values[values > _EIGENVALUE_ROUNDING * values[-1]]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class InvariantSubspace:
    """A subspace that the Gram matrices of all levels leave invariant.

    The space of vectors of cells may contain several copies of the subspace.

    Attributes:
        grams: for every level l, the matrix of P_l^T P_l on the subspace, divided by the number of
            cells, shape (levels, d, d).
        multiplicity: the number of copies.
        has_total: whether the first direction is the vector of equal cells; otherwise the subspace
            is orthogonal to this vector.
    """

    grams: FloatArray
    multiplicity: float
    has_total: bool = False

    @property
    def size(self) -> int:
        """The dimension d of the subspace."""
        return self.grams.shape[1]

    @property
    def without_total(self) -> "InvariantSubspace":
        """Return the part of the subspace orthogonal to the constant vector.

        The dimension of this part is d or d - 1.
        """
        if self.has_total:
            return InvariantSubspace(self.grams[:, 1:, 1:], self.multiplicity)
        return self

    def directions_of_level(self, level: int) -> IntArray:
        """Return the indices of directions where a level's matrix is not 0."""
        return np.flatnonzero(self.grams[level].any(axis=0))


@dataclass(frozen=True, eq=False)
class LevelInverse:
    """The pseudo-inverse X^+ of the Gram matrix of measured levels.

    Estimates of groups of the finest measured level are divided evenly among their cells.
    """

    levels: Levels
    precisions: tuple[Precision, ...]  # one for every level, or one for each group of a level

    @cached_property
    def _orbits(self) -> Orbits:
        """The orbits of groups that have equal variances under the precisions."""
        if all(np.ndim(precision) == 0 for precision in self.precisions):
            return self.levels.orbits
        return self.levels.singleton_orbits

    @cached_property
    def group_variances(self) -> tuple[int, list[FloatArray], list[FloatArray], list[FloatArray]]:
        """The finest measured level, and three lists of variances by orbit.

        `Orbits.group_variances` describes them.
        """
        return self._orbits.group_variances(self.precisions)

    def variances(self, operator: Operator) -> FloatArray:
        """Return the variance q X^+ q of each query q of an operator, (rows,)."""
        level = self.levels.level(operator)
        start, _, _, final = self.group_variances
        if level is not None and level >= start:
            return final[level - start][self._orbits.orbit_of_group[level]]
        if level is None:
            finer = self.levels.with_level(operator)
        else:
            finer = None
        if finer is not None:
            extra = finer.level(operator) or 0
            return LevelInverse(
                finer, (*self.precisions[:extra], 0.0, *self.precisions[extra:])
            ).variances(operator)
        if not operator.rows * operator.size <= _MOST_SOLVED:
            raise InputError(
                "A query set that is not a level must not be too large along an attribute with "
                f"levels: queries times cells must be at most {_MOST_SOLVED}; got "
                f"{operator.rows} queries over {operator.size} cells. Choose another strategy."
            )
        answer = np.empty(operator.rows)
        step = max(1, _AT_ONCE // max(operator.rows, operator.size))
        for first in range(0, operator.rows, step):
            rows = np.arange(first, min(first + step, operator.rows))
            rows_as_cells = apply_transpose(
                operator, np.equal.outer(np.arange(operator.rows), rows).astype(np.float64)
            )
            answer[rows] = self.squares(rows_as_cells)
        return answer

    def determines(self, operator: Operator) -> bool:
        """Return whether the measured levels determine an operator's queries.

        The result is True if every row is a sum of groups of the finest measured level.
        """
        # The answers of such rows do not depend on the distribution of values within a group. So
        # random values, and their group sums on the first cells of the groups, must give equal
        # answers.
        groups = self.levels.groups[self.group_variances[0]]
        values = np.random.default_rng(0).integers(1, 2**30, self.levels.size)
        sums = np.zeros_like(values)
        np.add.at(sums, np.unique(groups, return_index=True)[1][groups], values)
        return np.array_equal(apply(operator, values), apply(operator, sums))

    def total_variance(self, operator: Operator) -> float:
        """Return the total variance of all queries of an operator."""
        return float(self.variances(operator).sum())

    def _group_sums(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return each vector's sums over the finest measured groups, and sizes.

        The vectors v have shape (size, ...).
        """
        gathered = v
        lengths = np.ones(self.levels.size)
        for level in range(self.group_variances[0]):
            gathered = self.levels.sum_groups(level, gathered)
            lengths = self.levels.sum_groups(level, lengths)
        return gathered, lengths

    def squares(self, v: FloatArray) -> FloatArray:
        """Return v^T X^+ v for each column v of an array, shape (size, k).

        The computation needs only the upward pass.
        """
        start, upward, below, _ = self.group_variances
        orbit_of_group = self._orbits.orbit_of_group
        gathered, lengths = self._group_sums(v)
        product = gathered * (upward[0][orbit_of_group[start]] / lengths)[:, None]
        answer = ((gathered / lengths[:, None]) * product).sum(axis=0)
        for level, (under, after) in enumerate(zip(below, upward[1:], strict=True), start):
            groups = orbit_of_group[level + 1]
            product = self.levels.sum_groups(level, product)
            answer -= ((under - after) / under**2)[groups] @ product**2
            product = product * (after / under)[groups][:, None]
        return answer

    def solve(self, v: FloatArray) -> FloatArray:
        """Return X^+ v along the first axis."""
        # The shape that lets a vector multiply the first axis of v.
        column = (slice(None),) + (None,) * (v.ndim - 1)
        levels = self.levels
        start, upward, below, _ = self.group_variances
        orbit_of_group = self._orbits.orbit_of_group
        gathered, lengths = self._group_sums(v)
        estimates = [gathered * (upward[0][orbit_of_group[start]] / lengths)[column]]
        for at, under in enumerate(below):
            shrink = (upward[at + 1] / under)[orbit_of_group[start + at + 1]]
            estimates.append(levels.sum_groups(start + at, estimates[-1]) * shrink[column])
        for at in range(len(below) - 1, -1, -1):
            level = start + at
            missing = (estimates[at + 1] - levels.sum_groups(level, estimates[at])) / below[at][
                orbit_of_group[level + 1]
            ][column]
            estimates[at] = (
                estimates[at]
                + upward[at][orbit_of_group[level]][column] * missing[levels.parents[level]]
            )
        means = estimates[0] / lengths[column]
        for parents in levels.parents[:start][::-1]:
            means = means[parents]
        return np.asarray(means)
