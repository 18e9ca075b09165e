"""Query sets on one attribute: what is asked along it, as a name with arguments that becomes an operator when the attribute is known.

Each kind of them is a record of `FORMS`, which has what is known of its queries.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from leastnoise._check import InputError, exact, number_text, one_of, refuse, whole
from leastnoise._domain import Bins, Categories, Coded, Dates, Decimals, Domain, Edges, Integers, Kind, Label
from leastnoise._linop import AllRanges, Dense, Identity, Operator, Prefix, Ranges, Total, all_range_ends

By = Iterable[str | Mapping[str, object]] | Mapping[str, object]
"""Groups: names of attributes, or mappings from an attribute to a query set such as ``level("region")``."""
Arguments = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One kind of query sets."""

    operator: Callable[[str, Kind, Arguments], Operator]
    labels: Callable[[str, Kind, Arguments], tuple[Label, ...]]
    argument: str = ""
    named: bool = False
    numbered: bool = False
    intervals: bool = False
    structured: bool = False
    axis: str = "spans"


def _whole(make: Callable[[int], Operator]) -> Callable[[str, Kind, Arguments], Operator]:
    """An operator that the number of cells decides."""
    return lambda attribute, kind, arguments: make(kind.size)  # noqa: ARG005 - the form of all


def _ranges(attribute: str, kind: Kind, arguments: Arguments) -> Ranges:
    ends = [_cells(attribute, kind, pair) for pair in arguments]
    return Ranges(kind.size, np.array([low for low, _ in ends]), np.array([high for _, high in ends]))


def _predicates(attribute: str, kind: Kind, arguments: Arguments) -> Operator:
    return _as_ranges(np.array([_indicator(attribute, kind, labels) for labels in arguments]))


def _matrix(attribute: str, kind: Kind, arguments: Arguments) -> Operator:
    if any(len(row) != kind.size for row in arguments):
        lengths = sorted({len(row) for row in arguments})
        raise refuse(f"every row of the matrix on {attribute}", f"rows of length {lengths}", f"{kind.size} whole numbers, one a cell")
    return _as_ranges(np.array(arguments))


def _level(attribute: str, kind: Kind, arguments: Arguments) -> Operator:
    """One query a group; the groups are numbered in the order in which they first occur."""
    groups = np.array(kind.level(arguments[0][0]).cells)
    if (np.diff(groups) >= 0).all():
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        return Ranges(len(groups), starts, np.append(starts[1:], len(groups)) - 1)
    return Dense((groups == np.arange(groups.max() + 1)[:, None]).astype(np.int64))


def _change(attribute: str, kind: Kind, arguments: Arguments) -> Dense:
    """Each period less the one so many periods before, from the first that has one."""
    if not isinstance(kind, Dates):
        raise refuse(f"a change on {attribute}", type(kind).__name__, "between periods of dates", "Give a matrix of rows such as [-1, 1].")
    behind = whole(f"the periods of a change on {attribute}", arguments[0][0], 1, kind.regular - 1)
    cells = np.eye(kind.size, dtype=np.int64)
    return Dense(cells[behind : kind.regular] - cells[: kind.regular - behind])


def _spans(kind: Kind, low: np.ndarray, high: np.ndarray) -> tuple[Label, ...]:
    cells, ends = kind.labels, zip(low.tolist(), high.tolist(), strict=True)
    return tuple(str(cells[a]) if a == b else f"{cells[a]} .. {cells[b]}" for a, b in ends)


def _of_ranges(attribute: str, kind: Kind, arguments: Arguments) -> tuple[Label, ...]:
    operator = _ranges(attribute, kind, arguments)
    return _spans(kind, operator.low, operator.high)


def _of_predicates(attribute: str, kind: Kind, arguments: Arguments) -> tuple[Label, ...]:
    """The cells of each set; where cells have an order, those that follow each other as one span."""
    if isinstance(kind, (Categories, Coded)):
        return tuple(" or ".join(map(str, labels)) for labels in arguments)
    made = []
    for labels in arguments:
        row = np.array(_indicator(attribute, kind, labels))
        edges = np.diff(row[: kind.regular], prepend=0, append=0)
        other = [str(label) for label, inside in zip(kind.labels[kind.regular :], row[kind.regular :], strict=True) if inside]
        made.append(" or ".join([*map(str, _spans(kind, np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1)), *other]))
    return tuple(made)


def _as_ranges(matrix: np.ndarray) -> Operator:
    """The rows of a matrix as ranges, which are answered and planned much faster, if each of them is one."""
    edges = np.diff(matrix, axis=1, prepend=0, append=0)
    starts, stops = edges == 1, edges == -1
    if ((matrix == 0) | (matrix == 1)).all() and (starts.sum(axis=1) == 1).all():
        return Ranges(matrix.shape[1], starts.argmax(axis=1), stops.argmax(axis=1) - 1)
    return Dense(matrix)


def _up_to(kind: Kind, cell: int, label: Label) -> str:
    if isinstance(kind, (Bins, Edges)) and cell < kind.regular:
        sign = "<" if kind.closed == "left" and cell < kind.regular - 1 else "<="
        # The upper edge is what a reader of a CDF looks for, not the text of the bin.
        return f"{sign} {str(label).rsplit(', ', 1)[1].rstrip(')]')}"
    return f"<= {label}"


def _cells(attribute: str, kind: Kind, pair: Sequence[Any]) -> tuple[int, int]:
    """First and last cell of a range given in the attribute's own values."""
    if len(pair) != 2:
        raise refuse(f"a range on {attribute}", list(pair), "a pair [low, high]")
    if isinstance(kind, (Bins, Edges)):
        edges = kind.edges
        bounds = [exact(f"a bound of a range on {attribute}", value) for value in pair]
        if not bounds[0] < bounds[1] or any(bound not in edges for bound in bounds):
            wide = f"The bins are {number_text((kind.high - kind.low) / kind.count)} wide. " if isinstance(kind, Bins) else ""
            allowed = "two different edges of its bins, the lower first"
            raise refuse(f"a range on {attribute}", list(pair), allowed, wide + _nearest("edges", edges, bounds))
        return edges.index(bounds[0]), edges.index(bounds[1]) - 1
    if not isinstance(kind, (Integers, Categories, Coded)):
        return _labelled(attribute, kind, pair)
    first, last = (kind.low, kind.high) if isinstance(kind, Integers) else (0, kind.size - 1)
    allowed = f"two whole numbers with {first} <= low <= high <= {last}"
    if (
        any(isinstance(value, bool) or not isinstance(value, (int, np.integer)) for value in pair)
        or not first <= pair[0] <= pair[1] <= last
    ):
        raise refuse(f"a range on {attribute}", list(pair), allowed)
    return int(pair[0]) - first, int(pair[1]) - first


def _nearest(what: str, known: Sequence[Fraction], given: Iterable[Fraction]) -> str:
    """The numbers on either side of those that are not known, as a sentence."""
    positions = {bisect(known, number) for number in given if number not in known}
    near = {number for position in positions for number in known[max(0, position - 1) : position + 1]}
    return f"The nearest {what} are {', '.join(map(number_text, sorted(near)))}." if near else ""


def _labelled(attribute: str, kind: Kind, pair: Sequence[Any]) -> tuple[int, int]:
    """The cells of a range between two labels, both included: values of Decimals, periods of Dates."""
    labels = [str(label) for label in kind.regular_labels]
    bounds = [exact(f"a bound of a range on {attribute}", end) for end in pair] if isinstance(kind, Decimals) else []
    ends = [number_text(bound) for bound in bounds] or [str(end) for end in pair]
    if any(end not in labels for end in ends) or not labels.index(ends[0]) <= labels.index(ends[1]):
        allowed = f"two of its cells ({labels[0]} to {labels[-1]}), the lower first"
        nearest = _nearest("values", [Fraction(label) for label in labels] if bounds else [], bounds)
        raise refuse(f"a range on {attribute}", list(pair), allowed, nearest)
    return labels.index(ends[0]), labels.index(ends[1])


def _indicator(attribute: str, kind: Kind, labels: Iterable[Label]) -> list[int]:
    cells = {str(label): cell for cell, label in enumerate(kind.labels)}
    row = [0] * kind.size
    for label in labels:
        if str(label) not in cells:
            some = ", ".join(list(cells)[:5]) + (", ..." if len(cells) > 5 else "")
            raise refuse(f"a predicate on {attribute}", label, f"made of its cells ({some})")
        row[cells[str(label)]] = 1
    return row


FORMS: Mapping[str, Form] = {
    "identity": Form(operator=_whole(Identity), labels=lambda _, kind, __: kind.labels, intervals=True, structured=True, axis="cells"),
    "total": Form(operator=_whole(Total), labels=lambda _, __, ___: ("(all)",), intervals=True),
    "prefix": Form(
        operator=_whole(Prefix),
        labels=lambda _, kind, __: tuple(_up_to(kind, cell, label) for cell, label in enumerate(kind.labels)),
        intervals=True,
        structured=True,
        axis="up_to",
    ),
    "all_ranges": Form(
        operator=_whole(AllRanges), labels=lambda _, kind, __: _spans(kind, *all_range_ends(kind.size)), intervals=True, structured=True
    ),
    "ranges": Form(operator=_ranges, labels=_of_ranges, argument="range", intervals=True),
    "predicates": Form(operator=_predicates, labels=_of_predicates, argument="predicate"),
    "matrix": Form(operator=_matrix, labels=lambda _, __, rows: tuple(f"row {number}" for number in range(len(rows))), argument="matrix"),
    "change": Form(
        operator=_change,
        labels=lambda _, kind, sets: tuple(map("{1} - {0}".format, kind.regular_labels, kind.regular_labels[sets[0][0] :])),
        argument="number of periods",
        numbered=True,
    ),
    "level": Form(
        operator=_level, labels=lambda _, kind, names: kind.level(names[0][0]).labels, argument="level", named=True, axis="cells"
    ),
}


@dataclass(frozen=True, slots=True)
class QuerySet:
    """What is asked along one attribute."""

    kind: str
    arguments: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        argument = FORMS[one_of("a query set", self.kind, tuple(FORMS))].argument
        if bool(argument) != bool(self.arguments):
            raise InputError(
                f"{self.kind} must have {f'at least one {argument}' if argument else 'no arguments'}; got {len(self.arguments)}."
            )

    @property
    def form(self) -> Form:
        """What is known of queries of this kind."""
        return FORMS[self.kind]

    @property
    def word(self) -> str:
        """What names of tables call it: a level by its own name, a change with its periods."""
        return str(self.arguments[0][0]) if self.form.named else f"{self.kind} {self.arguments[0][0]}" if self.form.numbered else self.kind

    def name_along(self, attribute: str) -> str:
        """What names of tables call it along an attribute: ``store``, or ``store:region`` for a level."""
        return attribute if self.kind == "identity" else f"{attribute}:{self.word}"

    def key_along(self, attribute: str) -> str:
        """What the column of its labels is called: the attribute, or ``store:region`` for a level, whose groups are no cells of it."""
        return self.name_along(attribute) if self.form.named else attribute

    def to_spec(self) -> object:
        """As a spec writes it and `query_set` reads it."""
        if not self.arguments:
            return self.kind
        single = self.form.named or self.form.numbered
        return {self.kind: self.arguments[0][0] if single else [list(argument) for argument in self.arguments]}

    def operator(self, attribute: str, kind: Kind) -> Operator:
        """The queries as an operator over the cells of an attribute."""
        return self.form.operator(attribute, kind, self.arguments)

    def labels(self, attribute: str, kind: Kind) -> tuple[Label, ...]:
        """One label for every row of the operator, as a release prints them."""
        return self.form.labels(attribute, kind, self.arguments)

    def to_json(self) -> dict[str, object]:
        """A JSON value."""
        return {"kind": self.kind, "arguments": [list(argument) for argument in self.arguments]}


@cache
def identity() -> QuerySet:
    """Every cell of the attribute: a histogram.

    >>> ln.identity().kind
    'identity'
    """
    return QuerySet("identity")


def total() -> QuerySet:
    """The sum over the attribute, as if it were not there.

    >>> ln.total().kind
    'total'
    """
    return QuerySet("total")


def prefix() -> QuerySet:
    """All prefix sums: the empirical CDF in counts.

    >>> ln.prefix().kind
    'prefix'
    """
    return QuerySet("prefix")


def all_ranges() -> QuerySet:
    """Every interval of cells.

    >>> ln.all_ranges().kind
    'all_ranges'
    """
    return QuerySet("all_ranges")


def ranges(pairs: Iterable[Sequence[Any]]) -> QuerySet:
    """Given intervals.

    Args:
        pairs: (low, high) each. For Integers, Decimals and Dates values, both included; for Bins and Edges two edges; else cell positions,
            both included.

    >>> ln.ranges([(17, 24), (25, 64)]).arguments
    ((17, 24), (25, 64))
    """
    return QuerySet("ranges", tuple(tuple(pair) for pair in pairs))


def predicates(groups: Iterable[Iterable[Label]]) -> QuerySet:
    """Given sets of cells, by their labels.

    Args:
        groups: lists of labels; a query counts the rows in any cell of its list.

    >>> ln.predicates([["F"], ["F", "M"]]).arguments
    (('F',), ('F', 'M'))
    """
    return QuerySet("predicates", tuple(tuple(group) for group in groups))


def matrix(rows: Iterable[Iterable[int]]) -> QuerySet:
    """Given integer queries, one row each.

    Args:
        rows: whole numbers, one a cell of the attribute; shape (queries, size).

    >>> ln.matrix([[1, 1, 0], [0, 1, -1]]).arguments
    ((1, 1, 0), (0, 1, -1))
    """
    table = tuple(tuple(row) for row in rows)
    if any(isinstance(value, bool) or not isinstance(value, (int, np.integer)) for row in table for value in row):
        raise refuse(
            "matrix", "an entry that is not a whole number", "rows of whole numbers", "Multiply decimals by a power of ten and use weight."
        )
    return QuerySet("matrix", tuple(tuple(int(value) for value in row) for row in table))


def level(name: str) -> QuerySet:
    """Every group of a level of the attribute, such as the regions of its stores.

    Args:
        name: of the level, as the attribute declares it.

    >>> ln.level("region").arguments
    (('region',),)
    """
    if not isinstance(name, str) or not name:
        raise refuse("level", name, "the name of a level")
    return QuerySet("level", ((name,),))


def change(periods: int) -> QuerySet:
    """Each period of dates less the one so many periods before: of months, 12 is year over year.

    Args:
        periods: how many, at least 1; the first periods, which have none before them, are left out.

    >>> months = ln.Dates("2024-01-01", "2025-02-28", "month")
    >>> ln.change(12).labels("month", months)
    ('2025-01 - 2024-01', '2025-02 - 2024-02')
    """
    return QuerySet("change", ((whole("the periods of a change", periods, 1),),))


_READ: Mapping[str, Callable[[Any], QuerySet]] = {
    "ranges": ranges,
    "predicates": predicates,
    "matrix": matrix,
    "change": change,
    "level": level,
}


def query_set(attribute: str, value: object) -> QuerySet:
    """Read a query set as a spec writes it: a word, or a table with one key and its arguments."""
    if isinstance(value, QuerySet):
        return value
    plain = [word for word, form in FORMS.items() if not form.argument]
    if isinstance(value, str) and value in plain:
        return QuerySet(value)
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, arguments),) = value.items()
        listed = isinstance(arguments, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in arguments)
        if kind in _READ and (listed or FORMS[kind].named or FORMS[kind].numbered):
            return _READ[kind](arguments)
    words = ", ".join(f"'{word}'" for word in plain)
    raise refuse(
        f"the query set on {attribute}",
        value,
        f"{words}, a table with level and its name, with change and a number, or with one of ranges, predicates and matrix and lists",
    )


def level_names(kind: Kind) -> tuple[str, ...]:
    """The levels of an attribute, those that its dates have included."""
    return tuple(level.name for level in (*kind.levels, *kind.implied_levels))


def cells_of(kind: Kind, wanted: object) -> list[Label]:
    """The cells that are meant by a label, a list of labels, or groups of levels such as ``{"region": "north"}``."""
    if not isinstance(wanted, Mapping):
        return list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]  # type: ignore[list-item]  # checked with the cells
    labels: list[Label] = []
    for name, groups in wanted.items():
        level = kind.level(name)
        for group in groups if isinstance(groups, (list, tuple)) else [groups]:
            known = [str(label) for label in level.labels]
            if str(group) not in known:
                listed = ", ".join(known[:_MOST_NAMED]) + ", ..." * (len(known) > _MOST_NAMED)
                raise refuse(f"a group of the level {name!r}", group, f"one of {listed}")
            labels += [label for label, index in zip(kind.labels, level.cells, strict=True) if known[index] == str(group)]
    return labels


_MOST_NAMED = 20
_GROUPS = ("identity", "level", "ranges", "predicates")


def groups_of(domain: Domain, by: object, what: str) -> dict[str, QuerySet]:
    """The groups along each attribute, in the order of the domain: cells, or those of a level, ranges or predicates.

    They are given as `queries` has them, or as a list of names of attributes and such mappings.
    """
    listed: list[Any] = [by] if isinstance(by, Mapping) else [None] if isinstance(by, str) or not isinstance(by, Iterable) else list(by)
    if not all(isinstance(entry, (str, Mapping)) for entry in listed):
        advice = f"The groups of a level are asked for as {{ {domain.names[0]} = {{ level = '...' }} }}."
        raise refuse(what, by, f"a list of attributes, such as [{domain.names[0]!r}]", advice)
    given = [pair for entry in listed for pair in (entry.items() if isinstance(entry, Mapping) else [(entry, identity())])]
    unknown = sorted({str(name) for name, _ in given if name not in domain.names})
    if unknown:
        owners = [name for name in domain.names if unknown[0] in level_names(domain.kind(name))]
        advice = f"{unknown[0]} is a level: ask for {{ {owners[0]} = {{ level = {unknown[0]!r} }} }}." if owners else ""
        raise refuse(what, ", ".join(unknown), "attributes of " + ", ".join(domain.names), advice)
    sets = {name: query_set(name, asked) for name, asked in given}
    if len(sets) != len(given):
        raise refuse(what, [name for name, _ in given], "attributes without repetitions")
    for name, asked in sets.items():
        if asked.kind not in _GROUPS:
            raise refuse(f"{what} along {name}", asked.kind, "one of " + ", ".join(_GROUPS))
        asked.operator(name, domain.kind(name))  # refuses what does not fit
    return {name: sets[name] for name in domain.names if name in sets}
