"""Kinds of query sets: what each asks along an attribute, and what is known of its queries; one record a kind."""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from leastnoise._check import exact, number_text, refuse
from leastnoise._domain import Bins, Categories, Coded, Decimals, Edges, Integers, Kind, Label
from leastnoise._linop import AllRanges, Dense, Identity, Operator, Prefix, Ranges, Total, all_range_ends

Arguments = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One kind of query sets."""

    operator: Callable[[str, Kind, Arguments], Operator]
    labels: Callable[[str, Kind, Arguments], tuple[Label, ...]]
    argument: str = ""
    named: bool = False
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


def _spans(kind: Kind, low: np.ndarray, high: np.ndarray) -> tuple[Label, ...]:
    cells, ends = kind.labels, zip(low.tolist(), high.tolist(), strict=True)
    return tuple(str(cells[a]) if a == b else f"{cells[a]} .. {cells[b]}" for a, b in ends)


def _of_ranges(attribute: str, kind: Kind, arguments: Arguments) -> tuple[Label, ...]:
    operator = _ranges(attribute, kind, arguments)
    return _spans(kind, operator.low, operator.high)


def _as_ranges(matrix: np.ndarray) -> Operator:
    """The rows of a matrix as ranges, which are answered and planned much faster, if each of them is one."""
    edges = np.diff(matrix, axis=1, prepend=0, append=0)
    starts, stops = edges == 1, edges == -1
    if ((matrix == 0) | (matrix == 1)).all() and (starts.sum(axis=1) == 1).all():
        return Ranges(matrix.shape[1], starts.argmax(axis=1), stops.argmax(axis=1) - 1)
    return Dense(matrix)


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
    places = {place: bisect(known, one) for place, one in enumerate(given) if one not in known}
    near = {one for place in places.values() for one in known[max(0, place - 1) : place + 1]}
    return f"The nearest {what} are {', '.join(map(number_text, sorted(near)))}." if near else ""


def _labelled(attribute: str, kind: Kind, pair: Sequence[Any]) -> tuple[int, int]:
    """The cells of a range between two labels, both included: values of Decimals, periods of Dates."""
    labels = [str(label) for label in kind.regular_labels]
    bounds = [exact(f"a bound of a range on {attribute}", end) for end in pair] if isinstance(kind, Decimals) else []
    ends = [number_text(bound) for bound in bounds] or [str(end) for end in pair]
    if any(end not in labels for end in ends) or not labels.index(ends[0]) <= labels.index(ends[1]):
        allowed = f"two of its cells ({labels[0]} to {labels[-1]}), the lower first"
        raise refuse(
            f"a range on {attribute}", list(pair), allowed, _nearest("values", [Fraction(one) for one in labels] if bounds else [], bounds)
        )
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


FORMS: Mapping[str, Form] = {
    "identity": Form(operator=_whole(Identity), labels=lambda _, kind, __: kind.labels, intervals=True, structured=True, axis="cells"),
    "total": Form(operator=_whole(Total), labels=lambda _, __, ___: ("(all)",), intervals=True),
    "prefix": Form(
        operator=_whole(Prefix),
        labels=lambda _, kind, __: tuple(_up_to(kind, place, label) for place, label in enumerate(kind.labels)),
        intervals=True,
        structured=True,
        axis="up_to",
    ),
    "all_ranges": Form(
        operator=_whole(AllRanges), labels=lambda _, kind, __: _spans(kind, *all_range_ends(kind.size)), intervals=True, structured=True
    ),
    "ranges": Form(operator=_ranges, labels=_of_ranges, argument="range", intervals=True),
    "predicates": Form(
        operator=_predicates, labels=lambda _, __, sets: tuple(" or ".join(map(str, labels)) for labels in sets), argument="predicate"
    ),
    "matrix": Form(operator=_matrix, labels=lambda _, __, rows: tuple(f"row {place}" for place in range(len(rows))), argument="matrix"),
    "level": Form(
        operator=_level, labels=lambda _, kind, names: kind.level(names[0][0]).labels, argument="level", named=True, axis="cells"
    ),
}
