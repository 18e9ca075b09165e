"""Query sets on one attribute: what is asked along it, as a name with arguments that becomes an operator when the attribute is known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._check import InputError, exact, one_of, refuse
from leastnoise._domain import Bins, Categories, Coded, Decimals, Edges, Integers, Kind, number_text
from leastnoise._linop import AllRanges, Dense, Identity, Operator, Prefix, Ranges, Total, all_range_ends

Label = str | int
_KINDS = ("identity", "total", "prefix", "all_ranges", "ranges", "predicates", "matrix", "level")


@dataclass(frozen=True, slots=True)
class QuerySet:
    """What is asked along one attribute.

    Args:
        kind: identity, total, prefix, all_ranges, ranges, predicates, matrix or level.
        arguments: for ranges pairs of bounds; for predicates lists of labels; for matrix rows of whole numbers; for level its name alone;
            else empty.

    >>> QuerySet("prefix").operator("age", Integers(17, 20))
    Prefix(size=4)
    """

    kind: str
    arguments: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        one_of("a query set", self.kind, _KINDS)
        with_arguments = self.kind in ("ranges", "predicates", "matrix", "level")
        if with_arguments != bool(self.arguments):
            allowed = "at least one " + self.kind.rstrip("s") if with_arguments else "no arguments"
            raise InputError(f"{self.kind} must have {allowed}; got {len(self.arguments)}.")

    @property
    def word(self) -> str:
        """What names of tables call it: a level by its own name."""
        return str(self.arguments[0][0]) if self.kind == "level" else self.kind

    def operator(self, attribute: str, kind: Kind) -> Operator:
        """The queries as an operator over the cells of an attribute.

        Args:
            attribute: the attribute's name, for messages.
            kind: its kind.

        Raises:
            InputError: a range, label or row does not fit the attribute.

        >>> ranges([(18, 19)]).operator("age", Integers(17, 20)).high
        array([2])
        """
        size = kind.size
        if self.kind == "ranges":
            ends = [_cells(attribute, kind, pair) for pair in self.arguments]
            return Ranges(size, np.array([low for low, _ in ends]), np.array([high for _, high in ends]))
        if self.kind == "predicates":
            return _as_ranges(np.array([_indicator(attribute, kind, labels) for labels in self.arguments]))
        if self.kind == "matrix":
            if any(len(row) != size for row in self.arguments):
                lengths = sorted({len(row) for row in self.arguments})
                raise refuse(f"every row of the matrix on {attribute}", f"rows of length {lengths}", f"{size} whole numbers, one a cell")
            return _as_ranges(np.array(self.arguments))
        if self.kind == "level":
            return _level(np.array(kind.level(self.arguments[0][0]).cells))
        simple: dict[str, Callable[[int], Operator]] = {"identity": Identity, "total": Total, "prefix": Prefix, "all_ranges": AllRanges}
        return simple[self.kind](size)

    def labels(self, attribute: str, kind: Kind) -> tuple[Label, ...]:
        """One label for every row of the operator, as a release prints them.

        >>> QuerySet("prefix").labels("age", Integers(17, 19))
        ('<= 17', '<= 18', '<= 19')
        """
        cells = kind.labels
        if self.kind == "identity":
            return cells
        if self.kind == "total":
            return ("(all)",)
        if self.kind == "prefix":
            return tuple(_up_to(kind, place, label) for place, label in enumerate(cells))
        if self.kind == "predicates":
            return tuple(" or ".join(str(label) for label in labels) for labels in self.arguments)
        if self.kind == "level":
            return kind.level(self.arguments[0][0]).labels
        if self.kind == "matrix":
            return tuple(f"row {place}" for place in range(len(self.arguments)))
        operator = self.operator(attribute, kind)
        low, high = (operator.low, operator.high) if isinstance(operator, Ranges) else all_range_ends(kind.size)
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return tuple(str(cells[a]) if a == b else f"{cells[a]} .. {cells[b]}" for a, b in ends)

    def to_json(self) -> dict[str, object]:
        """A JSON value.

        >>> ranges([(0, 1)]).to_json()
        {'kind': 'ranges', 'arguments': [[0, 1]]}
        """
        return {"kind": self.kind, "arguments": [list(argument) for argument in self.arguments]}


def _as_ranges(matrix: np.ndarray) -> Operator:
    """The rows of a matrix as ranges, which are answered and planned much faster, if each of them is one."""
    edges = np.diff(matrix, axis=1, prepend=0, append=0)
    starts, stops = edges == 1, edges == -1
    if ((matrix == 0) | (matrix == 1)).all() and (starts.sum(axis=1) == 1).all():
        return Ranges(matrix.shape[1], starts.argmax(axis=1), stops.argmax(axis=1) - 1)
    return Dense(matrix)


def _level(groups: np.ndarray) -> Operator:
    """One query a group; the groups are numbered in the order in which they first occur."""
    if (np.diff(groups) >= 0).all():
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        return Ranges(len(groups), starts, np.append(starts[1:], len(groups)) - 1)
    return Dense((groups == np.arange(groups.max() + 1)[:, None]).astype(np.int64))


def _up_to(kind: Kind, place: int, label: Label) -> str:
    if isinstance(kind, (Bins, Edges)) and place < kind.regular:
        sign = "<" if kind.closed == "left" and place < kind.regular - 1 else "<="
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
            raise refuse(
                f"a range on {attribute}",
                list(pair),
                "two different edges of its bins, the lower first",
                f"The bins are {(kind.high - kind.low) / kind.count} wide." if isinstance(kind, Bins) else "",
            )
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


def _labelled(attribute: str, kind: Kind, pair: Sequence[Any]) -> tuple[int, int]:
    """The cells of a range between two labels, both included: values of Decimals, periods of Dates."""
    labels = [str(label) for label in kind.regular_labels]
    ends = [number_text(exact(f"a bound of a range on {attribute}", end)) if isinstance(kind, Decimals) else str(end) for end in pair]
    if any(end not in labels for end in ends) or not labels.index(ends[0]) <= labels.index(ends[1]):
        raise refuse(f"a range on {attribute}", list(pair), f"two of its cells ({labels[0]} to {labels[-1]}), the lower first")
    return labels.index(ends[0]), labels.index(ends[1])


def _indicator(attribute: str, kind: Kind, labels: Iterable[Label]) -> list[int]:
    places = {str(label): place for place, label in enumerate(kind.labels)}
    row = [0] * kind.size
    for label in labels:
        if str(label) not in places:
            some = ", ".join(list(places)[:5]) + (", ..." if len(places) > 5 else "")
            raise refuse(f"a predicate on {attribute}", label, f"made of its cells ({some})")
        row[places[str(label)]] = 1
    return row


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


_PLAIN = {"identity": identity, "total": total, "prefix": prefix, "all_ranges": all_ranges}
_WITH_ARGUMENTS = {"ranges": ranges, "predicates": predicates, "matrix": matrix}


def query_set(attribute: str, value: object) -> QuerySet:
    """Read a query set as a spec writes it: a word, or a table with one key and its arguments.

    Args:
        attribute: the attribute's name, for messages.
        value: such as ``"prefix"`` or ``{"ranges": [[0, 9], [10, 19]]}``; a QuerySet is passed through.

    Raises:
        InputError: anything else.

    >>> query_set("age", "prefix").kind, query_set("age", {"ranges": [[0, 9]]}).arguments
    ('prefix', ((0, 9),))
    """
    if isinstance(value, QuerySet):
        return value
    if isinstance(value, str) and value in _PLAIN:
        return _PLAIN[value]()
    if isinstance(value, Mapping) and len(value) == 1:
        ((kind, arguments),) = value.items()
        if kind in _WITH_ARGUMENTS and isinstance(arguments, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in arguments):
            return _WITH_ARGUMENTS[kind](arguments)
        if kind == "level":
            return level(arguments)
    words = ", ".join(f"'{word}'" for word in _PLAIN)
    raise refuse(
        f"the query set on {attribute}",
        value,
        f"{words}, a table with level and its name, or one with one of ranges, predicates and matrix and a list of lists",
    )
