"""A SELECT that can be answered: its columns, its groups, and the tables that it asks for.

Groups and conditions are about the parts of a column (`leastnoise._workload._sql_values.Parts`):
its regular cells, nulls, and values outside the domain. A table has cells, and some parts may have
none. `place_groups` finds the cells of every group, or says which parts need a cell of their own.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from leastnoise._domain import Domain, Kind
from leastnoise._trusted.check import Exact, InputError
from leastnoise._workload._query_sets import QuerySet, identity, level, level_names, predicates
from leastnoise._workload._sql_values import UNDECIDED, Parts, refused
from leastnoise._workload._workload import (
    Workload,
    mean_queries,
    quantile_queries,
    queries,
    together,
)

Key = tuple[object, ...]

OTHER = "other"  # the cell that nulls and values outside the domain may share
_MOST_GROUPS = 200_000


@dataclass(frozen=True, slots=True)
class Condition:
    """The rows that WHERE, FILTER or CASE keep.

    Attributes:
        parts: the parts of columns in which it is true, by attribute; all of other attributes.
        undecided: attributes where it depends on which value outside the domain a row has; such
            rows are left out.
    """

    parts: Mapping[str, frozenset[int]] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Grouped:
    """A column of groups: its name, and its value in every part of an attribute's column."""

    name: str
    attribute: str
    keys: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A column of answers, computed from the rows that a condition keeps."""

    name: str
    kind: str  # "rows", "units", "values", "sum", "weighted", "mean" or "quantile"
    of: str = ""  # the measure; of a quantile the attribute
    share: Fraction = Fraction(0)
    condition: Condition = Condition()  # of FILTER and CASE
    weight: str = ""  # the measure by which rows are weighted


@dataclass(frozen=True, slots=True)
class Placement:
    """The cells of groups.

    Attributes:
        groups: the key of each group with its cells, in the order of the cells.
        needs: the parts that have no cell of their own and need one: "null", "outside".
    """

    groups: tuple[tuple[Key, tuple[int, ...]], ...]
    needs: frozenset[str] = frozenset()

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the groups."""
        return tuple(key for key, _ in self.groups)


def place_groups(
    kind: Kind, keys: Sequence[Sequence[object]], kept: frozenset[int] | None
) -> Placement:
    """Place groups in the cells of an attribute.

    A group has the parts with equal keys. It must have all of them, or its number would not be that
    of SQL. Only the group of nulls and the group of values outside the domain may be left out, where
    these have no cell.

    Args:
        kind: the attribute.
        keys: for every column of groups its value in every part.
        kept: the parts whose rows are counted; None: all.

    >>> place_groups(Categories(["a", "b"]), [("a", "b", None, UNDECIDED)], None).keys
    (('a',), ('b',))
    >>> sorted(place_groups(Categories(["a", "b"]), [("a", "rest", "rest", "rest")], None).needs)
    ['null', 'outside']
    """
    members: dict[Key, list[int]] = {}
    parts = Parts.of(kind)
    for part in parts.all if kept is None else sorted(kept):
        members.setdefault(tuple(values[part] for values in keys), []).append(part)
    cell_of = {part: part for part in range(kind.regular)}
    if kind.null_cell is not None:
        cell_of[parts.null] = kind.null_cell
    if kind.outside_cell is not None:
        cell_of[parts.outside] = kind.outside_cell

    published = {
        key: group
        for key, group in members.items()
        if _is_required(key, group, parts) or any(part in cell_of for part in group)
    } or members
    names = {parts.null: "null", parts.outside: "outside"}
    needs = {names[part] for group in published.values() for part in group if part not in cell_of}
    if kind.complete:
        needs = set()  # these parts are declared to be empty
    if kind.null_cell is not None and kind.null_cell == kind.outside_cell:
        published, is_apart = _with_shared_cell(published, parts)
        needs |= {"null"} if is_apart else set()
    if needs:
        return Placement((), frozenset(needs))
    groups = [
        (_shown_key(key, kind), tuple(sorted({cell_of[part] for part in group if part in cell_of})))
        for key, group in published.items()
    ]
    groups = [(key, cells) for key, cells in groups if cells]
    return Placement(tuple(sorted(groups, key=lambda group: group[1])))


def _is_required(key: Key, group: Sequence[int], parts: Parts) -> bool:
    """Return whether a group must be published: it is not only that of nulls or values outside."""
    has_regular = any(part < parts.regular for part in group)
    return has_regular or not key or not all(value is None or value is UNDECIDED for value in key)


def _with_shared_cell(
    published: dict[Key, list[int]], parts: Parts
) -> tuple[dict[Key, list[int]], bool]:
    """Merge the groups of nulls and of values outside the domain, which share a cell.

    Returns:
        The groups, and whether nulls need a cell of their own instead.
    """
    sharing = {
        key: group
        for key, group in published.items()
        if parts.null in group or parts.outside in group
    }
    shared = [part for group in sharing.values() for part in group if part >= parts.regular]
    if not shared or (len(sharing) == 1 and len(shared) == 2):
        return published, False
    if len(shared) == 1 or any(_is_required(key, sharing[key], parts) for key in sharing):
        return published, True
    rest = {key: group for key, group in published.items() if key not in sharing}
    columns = len(next(iter(sharing)))
    return {**rest, (OTHER,) * columns: shared}, False


def _shown_key(key: Key, kind: Kind) -> Key:
    """Return a key with the label of its cell for values outside the domain."""
    if UNDECIDED not in key or kind.outside_cell is None:
        return key
    label = kind.labels[kind.outside_cell]
    return tuple(label if value is UNDECIDED else value for value in key)


def group_queries(kind: Kind, placement: Placement) -> QuerySet:
    """Return the query set whose queries are the groups."""
    groups = [list(cells) for _, cells in placement.groups]
    if sum(map(len, groups)) == kind.published:
        if len(groups) == kind.published:
            return identity()
        for name in level_names(kind):
            level_cells: dict[int, list[int]] = {}
            for cell, group in enumerate(kind.level(name).cells):
                level_cells.setdefault(group, []).append(cell)
            if [*level_cells.values()] == groups:
                return level(name)
    labels = kind.labels
    return predicates([[labels[cell] for cell in cells] for cells in groups])


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A SELECT that can be answered.

    Attributes:
        text: as it is written.
        domain: the attributes and measures that it is about.
        columns: the columns of SELECT.
        groups: the columns of GROUP BY.
        sets: the grouping sets, as indices of ``groups``.
        condition: that of WHERE.
        order: indices of ``columns``, and whether the largest comes first.
        limit: the most rows that are shown; None: all.
        of_unit: attributes in which the rows of a unit agree.
    """

    text: str
    domain: Domain
    columns: tuple[Grouped | Aggregate, ...]
    groups: tuple[Grouped, ...]
    sets: tuple[tuple[int, ...], ...]
    condition: Condition
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    of_unit: tuple[str, ...] = ()

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The columns of answers."""
        return tuple(column for column in self.columns if isinstance(column, Aggregate))

    def placements(self, grouping: Sequence[int], condition: Condition) -> dict[str, Placement]:
        """Return the placement of the groups of a grouping set, by attribute.

        Args:
            grouping: the columns of groups in the set, as indices of ``groups``.
            condition: the rows that are counted.
        """
        groups = [self.groups[index] for index in grouping]
        names = {group.attribute for group in groups} | {*condition.parts}
        return {
            name: place_groups(
                self.domain.kind(name),
                [group.keys for group in groups if group.attribute == name],
                condition.parts.get(name),
            )
            for name in self.domain.names
            if name in names
        }

    def group_keys(
        self, grouping: Sequence[int], condition: Condition
    ) -> dict[str, tuple[Key, ...]]:
        """Return the keys of the groups of a grouping set, by attribute."""
        placements = self.placements(grouping, condition)
        return {name: placement.keys for name, placement in placements.items()}

    def query_sets(self, grouping: Sequence[int], condition: Condition) -> dict[str, QuerySet]:
        """Return the query sets that a grouping set asks for, by attribute.

        Raises:
            InputError: a part of a column needs a cell that the domain does not have.
        """
        sets = {}
        for name, placement in self.placements(grouping, condition).items():
            if placement.needs:
                raise InputError(_missing_cells(name, placement.needs))
            if not placement.groups:
                raise InputError(_keeps_nothing("The SQL", name))
            sets[name] = group_queries(self.domain.kind(name), placement)
        return sets

    def needs(self) -> dict[str, frozenset[str]]:
        """Return by attribute the parts that need a cell of their own."""
        needs: dict[str, frozenset[str]] = {}
        for grouping in self.sets:
            for condition in (self.condition, *map(self.condition_of, self.aggregates)):
                for name, placement in self.placements(grouping, condition).items():
                    needs[name] = needs.get(name, frozenset()) | placement.needs
        return {name: parts for name, parts in needs.items() if parts}

    def condition_of(self, aggregate: Aggregate) -> Condition:
        """Return the condition of the rows that a column of answers counts."""
        return both(f"WHERE with {aggregate.name}", self.condition, aggregate.condition)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The attributes whose values outside the domain are in no answer, or not in all."""
        names: set[str] = set()
        for condition in (self.condition, *(aggregate.condition for aggregate in self.aggregates)):
            names |= condition.undecided
        for group in self.groups:
            has_cell = self.domain.kind(group.attribute).outside_cell is not None
            if UNDECIDED in group.keys and not has_cell:
                names.add(group.attribute)
        complete = {name for name in names if self.domain.kind(name).complete}
        return tuple(name for name in self.domain.names if name in names - complete)

    def asked(self, aggregate: Aggregate, grouping: Sequence[int], weight: Exact = 1) -> Workload:
        """Return the workload of one column of answers for one grouping set."""
        kind, of = aggregate.kind, aggregate.of
        sets = self.query_sets(grouping, self.condition_of(aggregate))
        if kind == "mean":
            return mean_queries(self.domain, of, by=sets, weight=weight)
        if kind == "quantile":
            return quantile_queries(self.domain, of, [aggregate.share], by=sets, weight=weight)
        if kind in ("sum", "weighted"):
            sums = queries(self.domain, sets, sum=of, weight=weight)
            return sums.weighted_by(aggregate.weight) if kind == "weighted" else sums
        return queries(
            self.domain,
            sets,
            count=of if kind == "values" else kind,
            of_unit=self.of_unit if kind == "units" else (),
            weight=weight,
        )

    def workload(self, weight: Exact = 1) -> Workload:
        """Return the workload of all columns of answers; too many groups are refused."""
        groups = 0
        for grouping in self.sets:
            keys = self.group_keys(grouping, self.condition)
            groups += math.prod(len(of_attribute) for of_attribute in keys.values())
        if groups > _MOST_GROUPS:
            raise refused(
                f"GROUP BY with {groups} groups",
                f"A statement has at most {_MOST_GROUPS}: take coarser ones, or ask with queries",
            )
        return together([*self._workloads(weight)])

    def _workloads(self, weight: Exact) -> Iterator[Workload]:
        for grouping in self.sets:
            for aggregate in self.aggregates:
                yield self.asked(aggregate, grouping, weight)


def both(clause: str, first: Condition, second: Condition) -> Condition:
    """Return the condition that two conditions hold.

    Raises:
        InputError: they keep no part of an attribute; the message names the clause.
    """
    kept = dict(first.parts)
    for name, parts in second.parts.items():
        kept[name] = kept[name] & parts if name in kept else parts
    for name, parts in kept.items():
        if not parts:
            raise InputError(_keeps_nothing(clause, name))
    return Condition(kept, first.undecided | second.undecided)


def _keeps_nothing(clause: str, name: str) -> str:
    return f"{clause} keeps no value that {name} may have. Compare with values of [domain.{name}]."


_WORDS = {"null": "nulls", "outside": "values outside the domain"}


def _missing_cells(name: str, needs: frozenset[str]) -> str:
    words = " and ".join(_WORDS[part] for part in sorted(needs))
    policies = " and ".join(f"{part} = 'cell'" for part in sorted(needs))
    return (
        f"The SQL needs a cell for {words} of {name}, which the domain does not have. Ask for the "
        f"statement with leastnoise.sql before the release, or say {policies} in [domain.{name}]."
    )
