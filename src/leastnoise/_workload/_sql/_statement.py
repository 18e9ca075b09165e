"""Define SQL statements as released tables and a query on them.

Groups and conditions refer to the parts of a column
(`leastnoise._workload._sql._expression_values.ColumnParts`). The parts are its regular cells,
nulls, and values outside the domain. Nulls and values outside the domain may have no cell.
`place_groups` finds the cells of every group, and the parts that need a separate cell.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain

from leastnoise._domain import Domain, Kind
from leastnoise._trusted.check import Exact, InputError
from leastnoise._workload._complete_rows import in_domain_order
from leastnoise._workload._query_sets import QuerySet, identity, level, level_names, predicates
from leastnoise._workload._sql._combinations import AnswerExpression
from leastnoise._workload._sql._conditions import CellBox, empty_condition_error, intersect_two
from leastnoise._workload._sql._expression_values import UNDECIDED, ColumnParts, refused
from leastnoise._workload._workload import (
    Workload,
    correlation_queries,
    mean_queries,
    quantile_queries,
    queries,
    r_squared_queries,
    regression_queries,
    together,
    variance_queries,
)

Key = tuple[object, ...]

OTHER = "other"  # the cell that nulls and values outside the domain may share
_MOST_GROUPS = 200_000  # maximum number of groups of a statement, because each group is listed
SPREADS = ("std_dev", "std_dev_sample", "variance", "variance_sample")
"""The kinds of aggregates that are computed from variances; the divisor of the sample is n - 1."""
OF_PAIRS = ("correlation", "covariance", "covariance_sample", "r2")
"""The kinds of aggregates that are computed from correlations of two measures."""
OF_LINES = ("slope", "intercept")
"""The kinds of aggregates that are computed from a regression of one measure on another."""


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """A column of GROUP BY: its name, its attribute, and its value in each part."""

    name: str
    attribute: str
    keys: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A column of released answers, such as a count of the rows in a box.

    Attributes:
        name: the name of the column.
        kind: "rows", "complete_rows", "units", "values", "sum", "weighted", "mean", "quantile", or
            of SPREADS, OF_PAIRS or OF_LINES.
        of: the measure or, for a quantile, the attribute.
        share: the share of a quantile; 0 for other kinds.
        condition: the box of FILTER and CASE.
        weight: the measure by which rows are weighted.
        on: the second measure of a pair, or the measure that explains the first.
    """

    name: str
    kind: str
    of: str = ""
    share: Fraction = Fraction(0)
    condition: CellBox = field(default_factory=CellBox)
    weight: str = ""
    on: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """The cells of each group along one attribute.

    Attributes:
        groups: the key and the cells of each group, in the order of the cells.
        needs: the parts that need a separate cell and have none: "null", "outside" or both.
    """

    groups: tuple[tuple[Key, tuple[int, ...]], ...]
    needs: frozenset[str] = frozenset()

    @property
    def keys(self) -> tuple[Key, ...]:
        """The key of each group, in the order of the cells."""
        return tuple(key for key, _ in self.groups)


def place_groups(
    kind: Kind, keys: Sequence[Sequence[object]], counted_parts: frozenset[int] | None
) -> Placement:
    """Determine which cells of an attribute each group consists of.

    A group consists of the parts with equal keys. Each part must have a cell, or the group's count
    would differ from SQL. Only the group of nulls and the group of values outside the domain may be
    omitted, if they have no cell.

    Args:
        kind: the attribute.
        keys: for every column of groups, the values of the column in the parts.
        counted_parts: the parts whose rows are counted; None for all parts.

    >>> place_groups(Categories(["a", "b"]), [("a", "b", None, UNDECIDED)], None).keys
    (('a',), ('b',))
    >>> sorted(place_groups(Categories(["a", "b"]), [("a", "rest", "rest", "rest")], None).needs)
    ['null', 'outside']
    """
    parts = ColumnParts.of(kind)
    cell_of = _cell_of_parts(kind)
    published = _published_groups(kind, keys, counted_parts)
    names = {parts.null: "null", parts.outside: "outside"}
    parts_used = chain.from_iterable(published.values())
    needs = {names[part] for part in parts_used if part not in cell_of}
    if kind.complete:
        needs = set()  # these parts are declared to be empty
    if kind.null_cell is not None and kind.null_cell == kind.outside_cell:
        published, is_apart = _with_shared_cell(published, parts)
        if is_apart:
            needs.add("null")
    if needs:
        return Placement((), frozenset(needs))
    groups = []
    for key, group in published.items():
        cells = {cell_of[part] for part in group if part in cell_of}
        if cells:
            groups.append((_shown_key(key, kind), tuple(sorted(cells))))
    return Placement(tuple(sorted(groups, key=lambda group: group[1])))


def published_parts(kind: Kind, keys: Sequence[Sequence[object]]) -> frozenset[int]:
    """Return those parts of a column that are in a published group.

    >>> sorted(published_parts(Categories(["a", "b"]), [("a", "b", None, UNDECIDED)]))
    [0, 1]
    """
    groups = _published_groups(kind, keys, None)
    return frozenset(chain.from_iterable(groups.values()))


def _cell_of_parts(kind: Kind) -> dict[int, int]:
    """Return the cell of each part of a column that has one."""
    parts = ColumnParts.of(kind)
    cell_of = {part: part for part in range(kind.regular)}
    if kind.null_cell is not None:
        cell_of[parts.null] = kind.null_cell
    if kind.outside_cell is not None:
        cell_of[parts.outside] = kind.outside_cell
    return cell_of


def _published_groups(
    kind: Kind, keys: Sequence[Sequence[object]], counted_parts: frozenset[int] | None
) -> dict[Key, list[int]]:
    """Return the parts of each published group.

    The result has all groups if none must be published.
    """
    members: dict[Key, list[int]] = {}
    parts = ColumnParts.of(kind)
    for part in parts.all if counted_parts is None else sorted(counted_parts):
        members.setdefault(tuple(values[part] for values in keys), []).append(part)
    cell_of = _cell_of_parts(kind)
    return {
        key: group
        for key, group in members.items()
        if _must_be_published(key, group, parts) or any(part in cell_of for part in group)
    } or members


def _must_be_published(key: Key, group: Sequence[int], parts: ColumnParts) -> bool:
    """Return whether a group must be published: SQL would list it.

    It has a part with values in the domain, a value in its key, or no key.
    """
    has_regular = any(part < parts.regular for part in group)
    return has_regular or not key or not all(value is None or value is UNDECIDED for value in key)


def _with_shared_cell(
    published: dict[Key, list[int]], parts: ColumnParts
) -> tuple[dict[Key, list[int]], bool]:
    """Merge the groups of nulls and of outside values if they share a cell.

    Returns:
        The groups, and whether nulls need a separate cell.
    """
    sharing = {
        key: group
        for key, group in published.items()
        if parts.null in group or parts.outside in group
    }
    shared = [part for part in chain.from_iterable(sharing.values()) if part >= parts.regular]
    if not shared or (len(sharing) == 1 and len(shared) == 2):
        return published, False
    if len(shared) == 1 or any(_must_be_published(key, sharing[key], parts) for key in sharing):
        return published, True
    separate = {key: group for key, group in published.items() if key not in sharing}
    columns = len(next(iter(sharing)))
    return {**separate, (OTHER,) * columns: shared}, False


def _shown_key(key: Key, kind: Kind) -> Key:
    """Replace the mark of outside values in a key by the label of their cell."""
    if UNDECIDED not in key or kind.outside_cell is None:
        return key
    label = kind.labels[kind.outside_cell]
    return tuple(label if value is UNDECIDED else value for value in key)


def group_queries(kind: Kind, placement: Placement) -> QuerySet:
    """Return the query set with one query for each group."""
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
class Selection:
    """A released table: the groups and aggregates of one SELECT over rows.

    Attributes:
        domain: its attributes and measures.
        groups: the columns of GROUP BY.
        sets: the grouping sets, as indices of ``groups``.
        condition: the condition of WHERE.
        aggregates: the columns of answers.
        of_unit: attributes that have one value for all rows of a unit.
        combinations: the combinations of answers whose intervals the query needs.
    """

    domain: Domain
    groups: tuple[GroupColumn, ...]
    sets: tuple[tuple[int, ...], ...]
    condition: CellBox
    aggregates: tuple[Aggregate, ...]
    of_unit: tuple[str, ...] = ()
    combinations: tuple[AnswerExpression, ...] = ()

    def placements(self, grouping: Sequence[int], condition: CellBox) -> dict[str, Placement]:
        """Return the cells of each group of a grouping set, by attribute.

        Args:
            grouping: the columns of groups in the set, as indices of ``groups``.
            condition: the rows that are counted.
        """
        groups = [self.groups[index] for index in grouping]
        names = {group.attribute for group in groups} | {*condition.parts}
        placements = {}
        for name in self.domain.names:
            if name in names:
                keys = [group.keys for group in groups if group.attribute == name]
                placements[name] = place_groups(
                    self.domain.kind(name), keys, condition.parts.get(name)
                )
        return placements

    def group_keys(self, grouping: Sequence[int], condition: CellBox) -> dict[str, tuple[Key, ...]]:
        """Return the keys of the groups of a grouping set, by attribute."""
        placements = self.placements(grouping, condition)
        return {name: placement.keys for name, placement in placements.items()}

    def query_sets(self, grouping: Sequence[int], condition: CellBox) -> dict[str, QuerySet]:
        """Return the query sets that a grouping set requires, by attribute.

        Raises:
            InputError: a part of a column needs a cell that the domain does not have.
        """
        sets = {}
        for name, placement in self.placements(grouping, condition).items():
            if placement.needs:
                raise InputError(_missing_cells(name, placement.needs))
            if not placement.groups:
                raise empty_condition_error("The SQL", name)
            sets[name] = group_queries(self.domain.kind(name), placement)
        return sets

    def needs(self) -> dict[str, frozenset[str]]:
        """Return the parts that need a separate cell, by attribute.

        These are "null", "outside" or both.
        """
        needs: dict[str, frozenset[str]] = {}
        for grouping in self.sets:
            for condition in (self.condition, *map(self.condition_of, self.aggregates)):
                for name, placement in self.placements(grouping, condition).items():
                    needs[name] = needs.get(name, frozenset()) | placement.needs
        return {name: parts for name, parts in needs.items() if parts}

    def condition_of(self, aggregate: Aggregate) -> CellBox:
        """Return the box of the rows that an aggregate counts."""
        return intersect_two(f"WHERE with {aggregate.name}", self.condition, aggregate.condition)

    @property
    def left_out(self) -> frozenset[str]:
        """The attributes for which some answers leave out values outside the domain."""
        names: set[str] = set()
        for condition in (self.condition, *(aggregate.condition for aggregate in self.aggregates)):
            names |= condition.undecided
        for group in self.groups:
            has_cell = self.domain.kind(group.attribute).outside_cell is not None
            if UNDECIDED in group.keys and not has_cell:
                names.add(group.attribute)
        return frozenset(name for name in names if not self.domain.kind(name).complete)

    def aggregate_workload(
        self, aggregate: Aggregate, grouping: Sequence[int], weight: Exact = 1
    ) -> Workload:
        """Return the workload of one aggregate, for one grouping set."""
        sets = self.query_sets(grouping, self.condition_of(aggregate))
        return self.workload_of_sets(aggregate, sets, weight)

    def r_squared_workload(self, aggregate: Aggregate, grouping: Sequence[int]) -> Workload:
        """Return the workload of R^2 of an aggregate's two measures, for a grouping."""
        sets = self.query_sets(grouping, self.condition_of(aggregate))
        of, on = in_domain_order(self.domain, (aggregate.of, aggregate.on))
        return r_squared_queries(self.domain, of, on=[on], by=sets)

    def workload_of_sets(
        self, aggregate: Aggregate, sets: Mapping[str, QuerySet], weight: Exact = 1
    ) -> Workload:
        """Return the workload of one aggregate, for given query sets."""
        kind = aggregate.kind
        if kind == "mean":
            return mean_queries(self.domain, aggregate.of, by=sets, weight=weight)
        if kind in SPREADS:
            return variance_queries(self.domain, aggregate.of, by=sets, weight=weight)
        if kind in OF_PAIRS or kind == "complete_rows":
            pair = in_domain_order(self.domain, (aggregate.of, aggregate.on))
            pair_queries = correlation_queries(self.domain, pair, by=sets, weight=weight)
            if kind == "complete_rows":
                return Workload(pair_queries.domain, pair_queries.products[:1])
            return pair_queries
        if kind in OF_LINES:
            return regression_queries(
                self.domain, aggregate.of, on=[aggregate.on], by=sets, weight=weight
            )
        if kind == "quantile":
            return quantile_queries(
                self.domain, aggregate.of, [aggregate.share], by=sets, weight=weight
            )
        if kind in ("sum", "weighted"):
            sums = queries(self.domain, sets, sum=aggregate.of, weight=weight)
            if kind == "weighted":
                return sums.weighted_by(aggregate.weight)
            return sums
        return queries(
            self.domain,
            sets,
            count=aggregate.of if kind == "values" else kind,
            of_unit=self.of_unit if kind == "units" else (),
            weight=weight,
        )

    def workloads(self) -> Iterator[tuple[tuple[int, ...], Aggregate]]:
        """Yield each combination of a grouping set and an aggregate."""
        for grouping in self.sets:
            for aggregate in self.aggregates:
                yield grouping, aggregate

    def check_size(self) -> None:
        """Raise if the table has too many groups.

        Raises:
            InputError: there are more than 200,000 groups.
        """
        groups = 0
        for grouping in self.sets:
            keys = self.group_keys(grouping, self.condition)
            groups += math.prod(len(of_attribute) for of_attribute in keys.values())
        if groups > _MOST_GROUPS:
            raise refused(
                f"GROUP BY with {groups} groups",
                f"A statement has at most {_MOST_GROUPS}: take coarser ones, or ask with queries",
            )


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer to a statement.

    Attributes:
        name: its name in the statement.
        group: the column of GROUP BY that it shows unchanged; None for any other.
        aggregates: the aggregates that determine it.
        has_noise: whether it depends on noisy answers.
        has_interval: whether the ends of an interval can be computed. This is possible for an
            aggregate, and for a monotone function of one aggregate.
    """

    name: str
    group: GroupColumn | None = None
    aggregates: tuple[Aggregate, ...] = ()
    has_noise: bool = False
    has_interval: bool = False


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A SQL statement, as released tables and a query on them.

    Attributes:
        text: the statement as the user wrote it.
        domain: its attributes and measures.
        selections: the tables that are released for it.
        query: the query on the released tables, in the SQL of DuckDB. `table_name` names the
            tables, and `group_column`, `answer_column` and others name their columns.
        columns: the columns of its answer. In the answer to ``query``, a column that has an
            interval is followed by its two ends.
    """

    text: str
    domain: Domain
    selections: tuple[Selection, ...]
    query: str
    columns: tuple[OutputColumn, ...]

    @property
    def groups(self) -> tuple[GroupColumn, ...]:
        """The group columns of all released tables."""
        return tuple(chain.from_iterable(selection.groups for selection in self.selections))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The attributes for which some answers leave out values outside the domain."""
        names = frozenset[str]().union(*(selection.left_out for selection in self.selections))
        return tuple(name for name in self.domain.names if name in names)

    @property
    def without_interval(self) -> tuple[str, ...]:
        """The names of noisy columns that have no computed interval."""
        return tuple(
            column.name for column in self.columns if column.has_noise and not column.has_interval
        )

    def needs(self) -> dict[str, frozenset[str]]:
        """Return the parts that need a separate cell, by attribute.

        These are "null", "outside" or both.
        """
        needs: dict[str, frozenset[str]] = {}
        for selection in self.selections:
            for name, parts in selection.needs().items():
                needs[name] = needs.get(name, frozenset()) | parts
        return needs

    def over(self, domain: Domain) -> "Statement":
        """Return the statement over a domain with additional cells or levels."""
        selections = tuple(replace(selection, domain=domain) for selection in self.selections)
        return replace(self, domain=domain, selections=selections)

    def workload(self, weight: Exact = 1) -> Workload:
        """Return the workload of all released tables; raise for too many groups."""
        for selection in self.selections:
            selection.check_size()
        distinct: list[Selection] = []
        for selection in self.selections:
            plain = replace(selection, combinations=())
            if plain not in distinct:
                distinct.append(plain)
        return together(
            [
                selection.aggregate_workload(aggregate, grouping, weight)
                for selection in distinct
                for grouping, aggregate in selection.workloads()
            ]
        )


def table_name(number: int) -> str:
    """Return the SQL name of a released table."""
    return f" released {number}"


def group_column(number: int) -> str:
    """Return the SQL name of a group column in a released table."""
    return f" group {number}"


def absent_column(number: int) -> str:
    """Return the SQL name of the column that is 1 if a group column is absent."""
    return f" absent {number}"


def joint_column(number: int) -> str:
    """Return the SQL name of a group column that is computed from others."""
    return f" joint {number}"


def answer_column(number: int) -> str:
    """Return the SQL name of a column of answers in a released table."""
    return f" answer {number}"


def low_column(number: int) -> str:
    """Return the SQL name of the lower interval ends of a column of answers."""
    return f" low {number}"


def high_column(number: int) -> str:
    """Return the SQL name of the upper interval ends of a column of answers."""
    return f" high {number}"


def combination_low_column(number: int) -> str:
    """Return the SQL name of the lower interval ends of a combination."""
    return f" combination low {number}"


def combination_high_column(number: int) -> str:
    """Return the SQL name of the upper interval ends of a combination."""
    return f" combination high {number}"


_WORDS = {"null": "nulls", "outside": "values outside the domain"}


def _missing_cells(name: str, needs: frozenset[str]) -> str:
    """Return a message that names the separate cells that an attribute lacks."""
    words = " and ".join(_WORDS[part] for part in sorted(needs))
    policies = " and ".join(f"{part} = 'cell'" for part in sorted(needs))
    return (
        f"The SQL needs a cell for {words} of {name}, which the domain does not have. Ask for the "
        f"statement with leastnoise.sql before the release, or say {policies} in [domain.{name}]."
    )
