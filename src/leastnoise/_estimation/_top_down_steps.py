"""The steps of an estimation from the total down.

A step splits the groups of one attribute, such as states into counties. The groups are split within
each combination of groups of the attributes that are already refined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._estimation._least_squares import Estimator
from leastnoise._estimation._non_negative import levels_to_finest
from leastnoise._estimation._public_facts import PublicCounts
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._workload import Product, QuerySet

_Path = list[tuple[QuerySet, IntArray]]


@dataclass(frozen=True, slots=True, eq=False)
class UnsplitAxis:
    """The cells of an attribute that a step does not split, and their groups.

    Attributes:
        name: the name of the attribute.
        groups: the group of every cell of the attribute.
        chain: finer and finer groups, from the total to the groups of the step. An entry has two
            parts: the queries of its groups (None for the total), and for each group of the step
            the entry's group that contains it.
    """

    name: str
    groups: IntArray
    chain: tuple[tuple[QuerySet | None, IntArray], ...]

    @property
    def size(self) -> int:
        """The number of groups of the attribute."""
        return len(self.chain[-1][1])

    @property
    def counts(self) -> list[int]:
        """The number of groups at each position of the chain."""
        return [int(groups.max()) + 1 for _, groups in self.chain]

    def find(self, groups: IntArray) -> int | None:
        """Return a grouping's position in the chain; None if it is not there."""
        for position, (_, coarser) in enumerate(self.chain):
            if np.array_equal(_number_groups(coarser), _number_groups(groups)):
                return position
        return None

    def basis(self) -> tuple[FloatArray, IntArray]:
        """Return an orthonormal basis as columns, with their chain positions.

        The vectors at a position are constant within the groups of this position, and add up to 0
        in each group of the previous position.
        """
        summed = np.zeros((self.size, self.size))
        for _, groups in self.chain:
            is_same = groups[:, None] == groups[None, :]
            summed += is_same / is_same.sum(axis=1, keepdims=True)
        # These projections are nested, so an eigenvalue is the number of projections that keep its
        # vector.
        eigenvalues, vectors = np.linalg.eigh(summed)
        return vectors, len(self.chain) - np.rint(eigenvalues).astype(np.int64)


def _number_groups(groups: IntArray) -> IntArray:
    """Renumber the groups in order of first occurrence."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitStep:
    """The step that splits an attribute's groups, within groups of the others.

    Attributes:
        finest: the finest table; all others are sums of it.
        name: the attribute; None for the first step, which has one child without a parent.
        query_set: the query set of the children.
        groups: the child that contains each cell of the attribute.
        parent_set: the query set of the parents; None for the total.
        parents: the parent of every child.
        others: the axes of the other attributes that are already refined.
        tables: the tables whose sums are also rounded down or up.
    """

    finest: Product
    name: str | None = None
    query_set: QuerySet | None = None
    groups: IntArray
    parent_set: QuerySet | None = None
    parents: IntArray
    others: tuple[UnsplitAxis, ...]
    tables: tuple[Product, ...] = ()

    @property
    def is_first_of_attribute(self) -> bool:
        """Whether the attribute has not been split by an earlier step."""
        return self.name is not None and self.parent_set is None

    @property
    def position(self) -> int:
        """The index of the attribute among all refined attributes."""
        if self.name is None:
            return 0
        order = self.finest.attributes
        return sum(order.index(axis.name) < order.index(self.name) for axis in self.others)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each other attribute."""
        return tuple(axis.size for axis in self.others)

    @property
    def groups_along(self) -> dict[str, IntArray]:
        """The group index of each cell, keyed by refined attribute."""
        groups = {axis.name: axis.groups for axis in self.others}
        if self.name is not None:
            groups[self.name] = self.groups
        return groups

    @property
    def finest_positions(self) -> tuple[int, ...]:
        """For each other attribute, the chain position of its current groups."""
        return tuple(len(axis.chain) - 1 for axis in self.others)

    def label_groups(self, positions: Sequence[int]) -> IntArray:
        """Return the coarser group of each cell of a child, shape (other cells,)."""
        labels = np.zeros((1,) * len(self.others), dtype=np.int64)
        for number, (axis, position) in enumerate(zip(self.others, positions, strict=True)):
            sides = [1] * len(self.others)
            sides[number] = -1
            labels = labels * axis.counts[position] + axis.chain[position][1].reshape(sides)
        return np.broadcast_to(labels, self.shape).reshape(-1)

    def estimate(
        self, estimator: Estimator, query_set: QuerySet | None, positions: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return estimates and variances of groups, within coarser groups of others.

        Args:
            estimator: the estimator of the table.
            query_set: the groups of the attribute; None for the total.
            positions: the positions of the coarser groups in the chains of the other attributes.

        Returns:
            The estimates and the variances, both of shape (groups, *coarser groups).
        """
        queries = {
            axis.name: axis.chain[position][0]
            for axis, position in zip(self.others, positions, strict=True)
        }
        if self.name is not None:
            queries[self.name] = query_set
        chosen = {}
        for name in self.finest.attributes:
            queries_along = queries.get(name)
            if queries_along is not None:
                chosen[name] = queries_along
        table = replace(self.finest, attributes=tuple(chosen), query_sets=tuple(chosen.values()))
        answer = estimator.estimate(table)
        sizes = dict(zip(table.attributes, table.shape, strict=True))
        shape = [sizes.get(name, 1) for name in self.finest.attributes if name in queries]
        if self.name is None:
            shape.insert(0, 1)
        values, variances = (
            np.moveaxis(array.reshape(shape), self.position, 0)
            for array in (answer.values, answer.noise_std**2)
        )
        return values, variances


def list_steps(
    products: Sequence[Product], finest: Product, public: Sequence[PublicCounts]
) -> Iterator[SplitStep]:
    """Yield the steps that refine the total to the finest table.

    Attributes without levels are refined first, in one batch. The other attributes follow in the
    order of their numbers of cells. The attribute with most cells is last.
    """
    paths = {name: _find_path(finest, products, public, name) for name in finest.attributes}
    tables = tuple(products)
    sizes = {name: int(path[-1][1].max()) + 1 for name, path in paths.items()}
    order = sorted(finest.attributes, key=sizes.__getitem__)
    together = [name for name in order[:-1] if len(paths[name]) == 1]
    zeros = np.zeros(1, dtype=np.int64)
    yield SplitStep(
        finest=finest,
        groups=zeros,
        parents=zeros,
        others=_list_axes(finest, paths, together),
        tables=tables,
    )
    refined = together
    for name in order:
        if name in together:
            continue
        others = _list_axes(finest, paths, refined)
        refined = [*refined, name]
        before = np.zeros(finest.domain.cells(name), dtype=np.int64)
        parent_set = None
        for query_set, groups in paths[name]:
            parents = np.empty(int(groups.max()) + 1, dtype=np.int64)
            parents[groups] = before
            yield SplitStep(
                finest=finest,
                name=name,
                query_set=query_set,
                groups=groups,
                parent_set=parent_set,
                parents=parents,
                others=others,
                tables=tables,
            )
            before = groups
            parent_set = query_set


def _find_path(
    finest: Product, products: Sequence[Product], public: Sequence[PublicCounts], name: str
) -> _Path:
    """Return the levels along an attribute to split in turn, coarsest first.

    If the levels of the tables and of public counts do not nest, only the levels of public counts
    are used.
    """
    public_tables = [counts.product for counts in public]
    path = list(levels_to_finest(finest, [*products, *public_tables], name))
    if len(path) == 1:
        return list(levels_to_finest(finest, public_tables, name))
    return path


def _list_axes(
    finest: Product, paths: dict[str, _Path], names: Sequence[str]
) -> tuple[UnsplitAxis, ...]:
    """Return the axes of already refined attributes, in table order."""
    axes = []
    for name in finest.attributes:
        if name not in names:
            continue
        groups = paths[name][-1][1]
        _, first = np.unique(groups, return_index=True)
        chain: list[tuple[QuerySet | None, IntArray]] = [(None, np.zeros_like(first))]
        for query_set, coarser in paths[name]:
            if coarser.max() > chain[-1][1].max():
                chain.append((query_set, coarser[first]))
        axes.append(UnsplitAxis(name, groups, tuple(chain)))
    return tuple(axes)
