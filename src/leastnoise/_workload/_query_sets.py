"""Query sets: the queries on one attribute.

A query set is stated by a word such as "prefix" and its arguments. Together with an attribute, a
query set determines an operator.

`FORMS` has the facts about each kind of query set; `QuerySet.operator` and `QuerySet.labels` define
its queries.
"""

import datetime as dt
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from leastnoise._domain import (
    Bins,
    Categories,
    Coded,
    Dates,
    Decimals,
    Domain,
    Edges,
    Integers,
    Kind,
    Label,
    label_text,
)
from leastnoise._trusted.check import InputError, exact, number_text, one_of, refuse, whole
from leastnoise._trusted.check.arrays import Array, IntArray
from leastnoise._trusted.linop import (
    AllRanges,
    Dense,
    Identity,
    Operator,
    Prefix,
    Ranges,
    Total,
    all_range_ends,
)

By = Iterable[str | Mapping[str, object]] | Mapping[str, object]
"""Groups: names of attributes, or mappings from an attribute to a query set.

An example of a query set is ``level("region")``.
"""
_MOST_NAMED = 20  # cells in a message; layout
_NOT_PUBLISHED = "(not published)"
# The most cells whose ranges are listed one by one, which gives two million ranges.
_MOST_RANGES = 2048
_GROUPS = ("identity", "level", "ranges", "predicates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The properties of one kind of query set, such as ranges or a level.

    Attributes:
        argument: the required argument; empty if there is none.
        named: whether the argument is the name of a level.
        numbered: whether the argument is a number of periods.
        intervals: whether each query counts one interval of cells.
        structured: whether the Gram matrix has a closed form.
        internal: whether specs cannot request it.
        axis: the axis of charts: "cells", sums "up_to" a cell, or "spans".
    """

    argument: str = ""
    named: bool = False
    numbered: bool = False
    intervals: bool = False
    structured: bool = False
    internal: bool = False
    axis: str = "spans"


FORMS: Mapping[str, Form] = {
    "identity": Form(intervals=True, structured=True, axis="cells"),
    "total": Form(intervals=True),
    "prefix": Form(intervals=True, structured=True, axis="up_to"),
    "all_ranges": Form(intervals=True, structured=True),
    "ranges": Form(argument="range", intervals=True),
    "predicates": Form(argument="predicate"),
    "matrix": Form(argument="matrix"),
    "change": Form(argument="number of periods", numbered=True),
    "level": Form(argument="level", named=True, axis="cells"),
    "all_cells": Form(intervals=True, structured=True, internal=True, axis="cells"),
    "all_groups": Form(argument="level", named=True, internal=True, axis="cells"),
    "hidden_cell": Form(intervals=True, internal=True, axis="cells"),
}


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The queries on one attribute, such as all cells, prefix sums or ranges."""

    kind: str
    arguments: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        argument = FORMS[one_of("a query set", self.kind, tuple(FORMS))].argument
        if bool(argument) != bool(self.arguments):
            raise InputError(
                f"{self.kind} must have "
                f"{f'at least one {argument}' if argument else 'no arguments'}; got "
                f"{len(self.arguments)}."
            )
        counts_nothing = (self.kind == "predicates" and not any(self.arguments)) or (
            self.kind == "matrix" and not any(map(any, self.arguments))
        )
        if counts_nothing:
            raise InputError(
                f"{self.kind} must count at least one cell; got {list(map(list, self.arguments))}, "
                "which has the answer 0 for all data. Name cells, or leave it out."
            )

    @property
    def form(self) -> Form:
        """The properties of query sets of this kind."""
        return FORMS[self.kind]

    @property
    def word(self) -> str:
        """The text for the query set in table names: its kind, level or "change 12"."""
        if self.form.named:
            return str(self.arguments[0][0])
        if self.form.numbered:
            return f"{self.kind} {self.arguments[0][0]}"
        return self.kind

    def name_along(self, attribute: str) -> str:
        """Return the part of a table name for an attribute, such as ``store:region``."""
        if self.kind == "identity":
            return attribute
        return f"{attribute}:{self.word}"

    def key_along(self, attribute: str) -> str:
        """Return the name of the key column: the attribute, or ``attribute:level``."""
        if self.form.named:
            return self.name_along(attribute)
        return attribute

    def to_spec(self) -> object:
        """Return the query set as a spec states it: a word or a table."""
        if not self.arguments:
            return self.kind
        single = self.form.named or self.form.numbered
        if single:
            return {self.kind: self.arguments[0][0]}
        return {self.kind: [list(argument) for argument in self.arguments]}

    def operator(self, attribute: str, kind: Kind) -> Operator:
        """Return the matrix of queries over an attribute's cells, as an operator.

        Raises:
            InputError: the arguments do not fit the attribute.
        """
        match self.kind:
            case "total":
                return Total(kind.size)
            case "all_cells":
                return Identity(kind.size)
            case "hidden_cell":
                return Ranges(kind.size, np.array([kind.published]), np.array([kind.published]))
            case "identity" | "prefix" | "all_ranges":
                return _along_cells(self.kind, attribute, kind)
            case "ranges":
                pairs = [_range_cells(attribute, kind, pair) for pair in self.arguments]
                return Ranges(kind.size, *np.array(pairs).T)
            case "predicates":
                return _as_ranges(_indicators(attribute, kind, self.arguments))
            case "level" | "all_groups":
                name = self.arguments[0][0]
                return _groups_of_level(kind, name, all_groups=self.kind == "all_groups")
            case "change":
                return _changes(attribute, kind, self.arguments[0][0])
        return _matrix_operator(attribute, kind, self.arguments)

    def labels(self, attribute: str, kind: Kind) -> tuple[Label, ...]:
        """Return the printed label of each query."""
        match self.kind:
            case "identity":
                return kind.labels
            case "all_cells":
                return (*kind.labels, *([_NOT_PUBLISHED] if kind.hidden else []))
            case "hidden_cell":
                return (_NOT_PUBLISHED,)
            case "total":
                return ("(all)",)
            case "prefix":
                return tuple(
                    _prefix_label(kind, cell, label) for cell, label in enumerate(kind.labels)
                )
            case "all_ranges":
                return _interval_labels(kind, *all_range_ends(kind.published))
            case "ranges":
                return _interval_labels(
                    kind,
                    *np.array([_range_cells(attribute, kind, pair) for pair in self.arguments]).T,
                )
            case "predicates":
                rows = _indicators(attribute, kind, self.arguments)
                return tuple(_predicate_label(kind, row) for row in rows)
            case "level":
                return kind.level(self.arguments[0][0]).labels
            case "all_groups":
                groups_of_level = kind.level(self.arguments[0][0]).labels
                return (*groups_of_level, *([_NOT_PUBLISHED] if kind.hidden else []))
            case "change":
                periods = kind.regular_labels
                return tuple(
                    f"{later} - {first}"
                    for first, later in zip(periods, periods[self.arguments[0][0] :], strict=False)
                )
        return tuple(f"row {number}" for number in range(len(self.arguments)))

    def to_json(self) -> dict[str, object]:
        """Return the query set as a JSON object."""
        return {"kind": self.kind, "arguments": [list(argument) for argument in self.arguments]}


def _along_cells(kind_of_queries: str, attribute: str, kind: Kind) -> Operator:
    """Return the operator that queries all published cells, prefixes or ranges."""
    if not kind.hidden:
        simple: dict[str, type[Identity | Prefix | AllRanges]] = {
            "identity": Identity,
            "prefix": Prefix,
            "all_ranges": AllRanges,
        }
        return simple[kind_of_queries](kind.size)
    cells = np.arange(kind.published)
    if kind_of_queries == "identity":
        return Ranges(kind.size, cells, cells)
    if kind_of_queries == "prefix":
        return Ranges(kind.size, np.zeros_like(cells), cells)
    if kind.published > _MOST_RANGES:
        raise refuse(
            f"all_ranges on {attribute}",
            f"{kind.published} cells and values that may be missing",
            f"at most {_MOST_RANGES} cells there",
            "Declare complete = true if no value is missing, count the others with null = 'other' "
            "and outside = 'other', or ask for ranges.",
        )
    return Ranges(kind.size, *all_range_ends(kind.published))


def _groups_of_level(kind: Kind, level_name: str, *, all_groups: bool) -> Operator:
    """Return the groups of a level as an operator, with one row per group.

    If ``all_groups`` is True, the hidden cell is an additional last group.
    """
    # Groups are numbered by first occurrence.
    groups = np.array(kind.level(level_name).cells)
    if all_groups and kind.hidden:
        groups = np.append(groups, groups.max() + 1)
    if (np.diff(groups) >= 0).all():
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        return Ranges(kind.size, starts, np.append(starts[1:], len(groups)) - 1)
    return Dense(_with_hidden_cell(groups == np.arange(groups.max() + 1)[:, None], kind))


def _changes(attribute: str, kind: Kind, periods: object) -> Operator:
    """Return the operator of differences from the value some periods before."""
    if not isinstance(kind, Dates):
        advice = "Give a matrix of rows such as [-1, 1]."
        raise refuse(
            f"a change on {attribute}", type(kind).__name__, "between periods of dates", advice
        )
    lag = whole(f"the periods of a change on {attribute}", periods, 1, kind.regular - 1)
    cells = np.eye(kind.size, dtype=np.int64)
    return Dense(cells[lag : kind.regular] - cells[: kind.regular - lag])


def _matrix_operator(attribute: str, kind: Kind, rows: Sequence[Sequence[int]]) -> Operator:
    """Return a matrix over the published cells as an operator over all cells."""
    if any(len(row) != kind.published for row in rows):
        raise refuse(
            f"every row of the matrix on {attribute}",
            f"rows of length {sorted({len(row) for row in rows})}",
            f"{kind.published} whole numbers, one a cell",
        )
    return _as_ranges(_with_hidden_cell(np.array(rows), kind))


def _with_hidden_cell(queries: Array, kind: Kind) -> IntArray:
    """Extend a matrix over the published cells by a column for the hidden cell.

    The column is 0, unless the matrix has a column for the hidden cell already.
    """
    return np.pad(queries, ((0, 0), (0, kind.size - queries.shape[1]))).astype(np.int64)


def _as_ranges(entries: IntArray) -> Operator:
    """Return a matrix as a `Ranges` operator if each row is a range of cells.

    Ranges are planned and answered much faster.
    """
    edges = np.diff(entries, axis=1, prepend=0, append=0)
    starts = edges == 1
    stops = edges == -1
    if ((entries == 0) | (entries == 1)).all() and (starts.sum(axis=1) == 1).all():
        return Ranges(entries.shape[1], starts.argmax(axis=1), stops.argmax(axis=1) - 1)
    return Dense(entries)


def _interval_labels(kind: Kind, first: IntArray, last: IntArray) -> tuple[Label, ...]:
    """Return labels for intervals, given the first and last cell of each."""
    cells = kind.labels
    return tuple(
        str(cells[a]) if a == b else f"{cells[a]} .. {cells[b]}"
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
    )


def _prefix_label(kind: Kind, cell: int, label: Label) -> str:
    """Return the label of the prefix that ends at a cell, such as ``<= 30``."""
    if isinstance(kind, (Bins, Edges)) and cell < kind.regular:
        if kind.closed == "left" and cell < kind.regular - 1:
            sign = "<"
        else:
            sign = "<="
        # A reader of a CDF expects the upper edge, not the label of the bin.
        return f"{sign} {str(label).rsplit(', ', 1)[1].rstrip(')]')}"
    return f"<= {label}"


def _predicate_label(kind: Kind, row: IntArray) -> str:
    """Return a label that lists the cells of a predicate.

    If the cells have an order, neighbouring cells are written as the first and the last of their
    labels.

    Args:
        kind: the attribute.
        row: 1 for every cell of the predicate and 0 for other cells; shape (cells,).
    """
    cells = np.flatnonzero(row)
    if not len(cells):
        return "(none)"
    if isinstance(kind, (Categories, Coded)):
        labels = kind.labels
        return " or ".join(str(labels[cell]) for cell in cells)
    edges = np.diff(row[: kind.regular], prepend=0, append=0)
    spans = _interval_labels(kind, np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1)
    other = [str(label) for label in kind.labels[kind.regular :] if row[kind.regular]]
    return " or ".join([*map(str, spans), *other])


def _indicators(attribute: str, kind: Kind, cell_lists: Iterable[Iterable[object]]) -> IntArray:
    """Return a 0/1 matrix with one row for each list of cells."""
    names = kind.names
    rows = []
    for group in cell_lists:
        row = np.zeros(kind.size, dtype=np.int64)  # the hidden cell has no name
        row[names.cells(f"a predicate on {attribute}", group)] = 1
        rows.append(row)
    return np.array(rows)


def _range_cells(attribute: str, kind: Kind, pair: Sequence[Any]) -> tuple[int, int]:
    """Return the first and last cell of a range that is stated by values."""
    range_name = f"a range on {attribute}"
    if len(pair) != 2:
        raise refuse(range_name, list(pair), "a pair [low, high]")
    if isinstance(kind, (Bins, Edges)):
        return _cells_between_edges(range_name, kind, pair)
    first, last = (_end_of_range(range_name, kind, end) for end in pair)
    if first is not None and last is not None and first <= last:
        return first, last
    labels = kind.regular_labels
    advice = ""
    allowed = f"two of its cells ({labels[0]} to {labels[-1]}), the lower first"
    if isinstance(kind, (Integers, Categories, Coded)):
        if isinstance(kind, Integers):
            low = kind.low
        else:
            low = 0
        allowed = f"two whole numbers with {low} <= low <= high <= {low + _last_cell(kind)}"
    elif isinstance(kind, Decimals):
        advice = _nearest_allowed_numbers(
            "values", kind.values, [exact(f"a bound of {range_name}", end) for end in pair]
        )
    raise refuse(range_name, list(pair), allowed, advice)


def _end_of_range(range_name: str, kind: Kind, value: Any) -> int | None:
    """Return the cell at one end of a range, or None if the value has no cell.

    For categories, ends of ranges are positions.
    """
    if isinstance(value, bool):
        return None
    if isinstance(kind, (Categories, Coded)):
        is_position = isinstance(value, (int, np.integer)) and 0 <= value <= _last_cell(kind)
        if is_position:
            return int(value)
        return None
    if isinstance(kind, Decimals):
        return kind.cell_of_number(exact(f"a bound of {range_name}", value))
    if isinstance(kind, Integers) and isinstance(value, (int, np.integer)):
        return kind.cell_of_number(Fraction(int(value)))  # this avoids making a table of all labels
    cell = kind.names.find(value)
    if cell is not None and cell < kind.regular:
        return cell
    return None


def _last_cell(kind: Kind) -> int:
    """Return the index of the last cell that a range may include."""
    return (kind.regular if isinstance(kind, Integers) else kind.published) - 1


def _cells_between_edges(
    range_name: str, kind: Bins | Edges, pair: Sequence[Any]
) -> tuple[int, int]:
    """Return the first and last bin between two edges; raise if one is no edge."""
    edges = kind.edges
    low, high = (exact(f"a bound of {range_name}", end) for end in pair)
    first = _edge_position(edges, low)
    end = _edge_position(edges, high)
    if first is not None and end is not None and first < end:
        return first, end - 1
    advice = ""
    if isinstance(kind, Bins):
        advice = f"The bins are {number_text((kind.high - kind.low) / kind.count)} wide. "
    advice += _nearest_allowed_numbers("edges", edges, [low, high])
    allowed = "two different edges of its bins, the lower first"
    raise refuse(range_name, list(pair), allowed, advice)


def _edge_position(edges: Sequence[Fraction], value: Fraction) -> int | None:
    """Return the index of a number among ascending edges, or None."""
    position = bisect_left(edges, value)
    if position < len(edges) and edges[position] == value:
        return position
    return None


def _nearest_allowed_numbers(
    noun: str, numbers: Sequence[Fraction], ends: Sequence[Fraction]
) -> str:
    """Return a sentence with the allowed numbers that are nearest to wrong ends."""
    near: set[Fraction] = set()
    for end in ends:
        if end not in numbers:
            position = bisect(numbers, end)
            near.update(numbers[max(0, position - 1) : position + 1])
    if not near:
        return ""
    return f"The nearest {noun} are {', '.join(map(number_text, sorted(near)))}."


@cache
def all_cells() -> QuerySet:
    """Return the query set of all cells, including the hidden cell.

    Only estimates use this query set; no release shows it.

    >>> all_cells().operator("sex", ln.Categories(["F", "M"]).with_hidden(True)).rows
    3
    """
    return QuerySet("all_cells")


def hidden_cell() -> QuerySet:
    """Return the query set with one query, for the hidden cell of omitted rows.

    >>> hidden_cell().operator("sex", ln.Categories(["F", "M"]).with_hidden(True)).rows
    1
    """
    return QuerySet("hidden_cell")


def with_hidden_group(query_set: QuerySet, kind: Kind) -> QuerySet:
    """Return a query set of cells or a level, with the hidden cell added.

    Other query sets are returned unchanged.

    >>> with_hidden_group(identity(), ln.Coded(3).with_hidden(True)).kind
    'all_cells'
    """
    if not kind.hidden or query_set.kind not in ("identity", "level"):
        return query_set
    if query_set.kind == "identity":
        return all_cells()
    return QuerySet("all_groups", query_set.arguments)


@cache
def identity() -> QuerySet:
    """Return the query set of all cells of an attribute: a histogram.

    Returns:
        A query set with one query per cell, for `queries`. For an attribute of n cells its matrix
        is the identity, n x n.

    >>> ln.identity().kind
    'identity'
    >>> ln.queries(ln.Domain(age=ln.Integers(0, 9)), age=ln.identity()).rows
    10
    """
    return QuerySet("identity")


def total() -> QuerySet:
    """Return the query set of the total over an attribute.

    The answers are summed over the attribute, as if the table did not have it.

    Returns:
        A query set with one query, for `queries`. For an attribute of n cells its matrix is a row
        of n ones.

    >>> ln.total().kind
    'total'
    >>> ln.queries(ln.Domain(age=ln.Integers(0, 9)), age=ln.total()).rows
    1
    """
    return QuerySet("total")


def prefix() -> QuerySet:
    """Return the query set of all prefix sums: the empirical CDF in counts.

    Returns:
        A query set with one query per cell, for `queries`: the count of rows up to and including
        this cell. For an attribute of n cells its matrix is lower triangular, n x n.

    >>> ln.prefix().kind
    'prefix'
    >>> ln.queries(ln.Domain(age=ln.Integers(0, 9)), age=ln.prefix()).rows
    10
    """
    return QuerySet("prefix")


def all_ranges() -> QuerySet:
    """Return the query set of all intervals of consecutive cells.

    Returns:
        A query set for `queries`. For an attribute of n cells it has n (n + 1) / 2 queries.

    >>> ln.all_ranges().kind
    'all_ranges'
    >>> ln.queries(ln.Domain(age=ln.Integers(0, 9)), age=ln.all_ranges()).rows
    55
    """
    return QuerySet("all_ranges")


def ranges(pairs: Iterable[Sequence[Any]]) -> QuerySet:
    """Return a query set of stated intervals.

    Args:
        pairs: one pair (low, high) per query. For Integers, Decimals and Dates, these are values;
            both ends are included. For Bins and Edges they are two edges. For other attributes,
            they are positions of cells; both ends are included.

    Returns:
        A query set with one query per pair, for `queries`.

    Raises:
        InputError: `queries` raises it for pairs that do not fit the attribute.

    >>> ln.ranges([(17, 24), (25, 64)]).arguments
    ((17, 24), (25, 64))
    """
    return QuerySet("ranges", tuple(tuple(map(_range_end_to_json, pair)) for pair in pairs))


def predicates(groups: Iterable[Iterable[Label]]) -> QuerySet:
    """Return a query set of stated sets of cells, by their labels.

    Args:
        groups: one list of labels per query; the query counts the rows in any of these cells.

    Returns:
        A query set with one query per list, for `queries`.

    Raises:
        InputError: `queries` raises it for an empty list, and for labels that the attribute does
            not have.

    >>> ln.predicates([["F"], ["F", "M"]]).arguments
    (('F',), ('F', 'M'))
    """
    return QuerySet("predicates", tuple(tuple(map(_label_to_json, group)) for group in groups))


def _range_end_to_json(value: Any) -> Any:
    """Convert an end of a range to a JSON value."""
    if isinstance(value, bool):
        return value
    return _label_to_json(value)


def _label_to_json(value: Any) -> Any:
    """Convert a label to a JSON value; Booleans and dates become text."""
    if isinstance(value, bool):
        return label_text(value)
    if isinstance(value, (dt.date, Decimal, Fraction)):
        return label_text(value)
    if isinstance(value, np.integer):
        return int(value)
    return value


def matrix(rows: Iterable[Iterable[int]]) -> QuerySet:
    """Return a query set of stated integer queries.

    Args:
        rows: whole numbers, shape (queries, cells of the attribute).

    Returns:
        A query set with one query per row, for `queries`.

    Raises:
        InputError: an entry is not a whole number. `queries` refuses rows of another length than
            the attribute.

    >>> ln.matrix([[1, 1, 0], [0, 1, -1]]).arguments
    ((1, 1, 0), (0, 1, -1))
    """
    table = tuple(tuple(row) for row in rows)
    if any(
        isinstance(value, bool) or not isinstance(value, (int, np.integer))
        for row in table
        for value in row
    ):
        raise refuse(
            "matrix",
            "an entry that is not a whole number",
            "rows of whole numbers",
            "Multiply decimals by a power of ten and use weight.",
        )
    return QuerySet("matrix", tuple(tuple(int(value) for value in row) for row in table))


def level(name: str) -> QuerySet:
    """Return the query set of all groups of a level.

    For example, stores may have a level of regions.

    Args:
        name: the name of the level that the attribute declares.

    Returns:
        A query set with one query per group, for `queries`.

    Raises:
        InputError: the name is empty or not a text. `queries` refuses a level that the attribute
            does not have.

    >>> ln.level("region").arguments
    (('region',),)
    """
    if not isinstance(name, str) or not name:
        raise refuse("level", name, "the name of a level")
    return QuerySet("level", ((name,),))


def change(periods: int) -> QuerySet:
    """Return the query set of changes over a number of periods.

    For an attribute of months, 12 periods are a year.

    Args:
        periods: the number of periods between the two dates, at least 1. The first ``periods``
            periods are left out, because there is no earlier period to compare with.

    Returns:
        A query set with one query per remaining period, for `queries`: its count minus the count
        ``periods`` periods before.

    Raises:
        InputError: ``periods`` is not a whole number of at least 1.

    >>> months = ln.Dates("2024-01-01", "2025-02-28", "month")
    >>> ln.change(12).labels("month", months)
    ('2025-01 - 2024-01', '2025-02 - 2024-02')
    """
    return QuerySet("change", ((whole("the periods of a change", periods, 1),),))


def query_set(attribute: str, value: object) -> QuerySet:
    """Parse a spec's query set: a word, or a table with one key."""
    if isinstance(value, QuerySet):
        return value
    plain = [word for word, form in FORMS.items() if not form.argument and not form.internal]
    if isinstance(value, str) and value in plain:
        return QuerySet(value)
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, arguments),) = value.items()
        listed = isinstance(arguments, (list, tuple)) and all(
            isinstance(row, (list, tuple)) for row in arguments
        )
        makers: Mapping[str, Callable[[Any], QuerySet]] = {
            "ranges": ranges,
            "predicates": predicates,
            "matrix": matrix,
            "change": change,
            "level": level,
        }
        if kind in makers and (listed or FORMS[kind].named or FORMS[kind].numbered):
            return makers[kind](arguments)
    words = ", ".join(f"'{word}'" for word in plain)
    raise refuse(
        f"the query set on {attribute}",
        value,
        f"{words}, a table with level and its name, with change or rolling and a number, or with "
        "one of ranges, predicates and matrix and lists",
    )


def level_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of an attribute's declared and implied levels."""
    return tuple(attribute_level.name for attribute_level in (*kind.levels, *kind.implied_levels))


def cells_of(kind: Kind, selection: object) -> list[Label]:
    """Return the labels of the cells that a label, a list or a level selects.

    A level is named with its groups, such as ``{"region": "north"}``.
    """
    if not isinstance(selection, Mapping):
        # The labels are checked with the cells.
        return list(selection) if isinstance(selection, (list, tuple)) else [selection]  # type: ignore[list-item]
    labels: list[Label] = []
    for name, groups in selection.items():
        selected_level = kind.level(name)
        numbers = {str(label): number for number, label in enumerate(selected_level.labels)}
        for group in groups if isinstance(groups, (list, tuple)) else [groups]:
            number = numbers.get(label_text(group) or "")
            if number is None:
                listing = ", ".join([*numbers][:_MOST_NAMED]) + ", ..." * (
                    len(numbers) > _MOST_NAMED
                )
                raise refuse(f"a group of the level {name!r}", group, f"one of {listing}")
            labels += [
                label
                for label, group_of_cell in zip(kind.labels, selected_level.cells, strict=True)
                if group_of_cell == number
            ]
    return labels


def _named_query_sets(entry: str | Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return pairs of an attribute and a query set; a name stands for its cells."""
    if isinstance(entry, Mapping):
        return [*entry.items()]
    return [(entry, identity())]


def groups_of(domain: Domain, by: object, argument_name: str) -> dict[str, QuerySet]:
    """Return the query set that defines the groups of each attribute in ``by``.

    Attributes are in the order of the domain.

    Args:
        domain: the domain.
        by: a mapping as for `queries`, or a list of names of attributes and such mappings.
        argument_name: the name of the argument in messages.

    Raises:
        InputError: an attribute is unknown or repeated, or a query set is not cells, a level,
            ranges or predicates.
    """
    listed: list[Any]
    if isinstance(by, Mapping):
        listed = [by]
    elif isinstance(by, str) or not isinstance(by, Iterable):
        listed = [None]
    else:
        listed = list(by)
    if not all(isinstance(entry, (str, Mapping)) for entry in listed):
        advice = (
            f"The groups of a level are asked for as {{ {domain.names[0]} = {{ level = '...' }} }}."
        )
        raise refuse(
            argument_name, by, f"a list of attributes, such as [{domain.names[0]!r}]", advice
        )
    entries: list[tuple[Any, Any]] = []
    for entry in listed:
        entries += _named_query_sets(entry)
    unknown = sorted({str(name) for name, _ in entries if name not in domain.names})
    if unknown:
        owners = [name for name in domain.names if unknown[0] in level_names(domain.kind(name))]
        if owners:
            advice = (
                f"{unknown[0]} is a level: "
                f"ask for {{ {owners[0]} = {{ level = {unknown[0]!r} }} }}."
            )
        else:
            advice = ""
        raise refuse(
            argument_name, ", ".join(unknown), "attributes of " + ", ".join(domain.names), advice
        )
    sets = {name: query_set(name, group_set) for name, group_set in entries}
    if len(sets) != len(entries):
        raise refuse(argument_name, [name for name, _ in entries], "attributes without repetitions")
    for name, group_set in sets.items():
        if group_set.kind not in _GROUPS:
            raise refuse(
                f"{argument_name} along {name}", group_set.kind, "one of " + ", ".join(_GROUPS)
            )
        group_set.operator(name, domain.kind(name))  # raises if a query set does not fit
    return {name: sets[name] for name in domain.names if name in sets}
