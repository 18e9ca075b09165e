"""Kinds of attributes cut from numbers: bins of equal width, bins with given edges, decimals in equal steps."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leastnoise._check import Exact, InputError, one_of, refuse, whole
from leastnoise._domain._kind import MOST_CELLS, ORDERED, READ_AS_IT_IS, Kind, bound, number_text, short, written
from leastnoise._domain._levels import Label, Level
from leastnoise._domain._reading import Reading

Levels = Mapping[str, Mapping[Any, Any]] | Sequence[Level]


def _labels(edges: Sequence[Fraction], closed: str) -> tuple[Label, ...]:
    """The intervals between edges as text."""
    texts, last, left = [number_text(edge) for edge in edges], len(edges) - 2, closed == "left"
    return tuple(
        f"{'[' if left or place == 0 else '('}{texts[place]}, {texts[place + 1]}{']' if not left or place == last else ')'}"
        for place in range(last + 1)
    )


@dataclass(frozen=True, slots=True)
class Bins(Kind):
    """A numeric column cut into bins of equal width between two public bounds.

    Args:
        low: the lower bound, exact (``"0.1"`` is a tenth), between -(2^53 - 1) and 2^53 - 1.
        high: the upper bound, above ``low``.
        count: the number of bins, at least 1.
        closed: ``"left"``: a bin is [a, b), the last one is [a, high]. ``"right"``: a bin is (a, b], the first one is [low, b].
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what a number below ``low`` or above ``high`` does: ``"drop"`` the row, ``"clip"`` to the first or last bin, or
            ``"other"``.
        reading: how values are read.
        levels: public maps from the bins' labels to groups.

    Raises:
        InputError: a bound that is not finite, ``low`` not below ``high``, or a count that is not a whole number from 1 to 2^31.

    Edge cases: edges are exact fractions; a value and an edge are compared as the doubles nearest to them, so that 0.3 lies on the edge
    3/10 also where a column holds it as a float, whose binary value is a little less.

    >>> ln.Bins(0, 1, 4).labels
    ('[0, 0.25)', '[0.25, 0.5)', '[0.5, 0.75)', '[0.75, 1]')
    >>> ln.Bins(0, 1, 2, closed="right").labels
    ('[0, 0.5]', '(0.5, 1]')
    """

    low: Fraction
    high: Fraction
    count: int
    closed: str = "left"
    null: str = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()

    def __init__(
        self,
        low: Exact,
        high: Exact,
        count: int,
        *,
        closed: str = "left",
        null: str | None = "drop",
        outside: str = "drop",
        reading: Reading = READ_AS_IT_IS,
        levels: Levels = (),
    ) -> None:
        first, last = bound("low", low), bound("high", high)
        if not first < last:
            raise InputError(f"low must be below high; got low {number_text(first)} and high {number_text(last)}.")
        bins = whole("count", count, 1, MOST_CELLS)
        one_of("closed", closed, ("left", "right"))
        self._keep(bins, ORDERED, (null, outside, reading, levels), low=first, high=last, count=bins, closed=closed)

    @property
    def regular(self) -> int:
        """Number of bins."""
        return self.count

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The ``count + 1`` edges, exact, ``low`` first and ``high`` last."""
        width = (self.high - self.low) / self.count
        return tuple(self.low + width * place for place in range(self.count + 1))

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The bins as intervals."""
        return _labels(self.edges, self.closed)

    def __repr__(self) -> str:
        closed = [] if self.closed == "left" else [f"closed={self.closed!r}"]
        return written(self, [short(self.low), short(self.high), repr(self.count), *closed])


@dataclass(frozen=True, slots=True)
class Edges(Kind):
    """A numeric column cut at given public edges.

    Args:
        edges: at least two, exact, each above the one before, between -(2^53 - 1) and 2^53 - 1.
        closed: as for `Bins`.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: as for `Bins`.
        reading: how values are read.
        levels: public maps from the bins' labels to groups.

    Raises:
        InputError: fewer than two edges, or edges that do not rise.

    Edge cases: as for `Bins`; two edges must differ as doubles too, so that no bin is empty for want of digits.

    >>> ln.Edges(["0", "9.99", "50"]).labels
    ('[0, 9.99)', '[9.99, 50]')
    """

    edges: tuple[Fraction, ...]
    closed: str = "left"
    null: str = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()

    def __init__(
        self,
        edges: Iterable[Exact],
        *,
        closed: str = "left",
        null: str | None = "drop",
        outside: str = "drop",
        reading: Reading = READ_AS_IT_IS,
        levels: Levels = (),
    ) -> None:
        if isinstance(edges, (str, bytes)) or not isinstance(edges, Iterable):
            raise refuse("edges", edges, "a list of at least two numbers")
        exact_edges = tuple(bound("an edge", edge) for edge in edges)
        if not len(exact_edges) >= 2:
            raise refuse("edges", [number_text(edge) for edge in exact_edges], "a list of at least two numbers")
        for below, above in itertools.pairwise(exact_edges):
            if not float(below) < float(above):
                raise InputError(f"edges must rise; got {number_text(below)} before {number_text(above)}.")
        one_of("closed", closed, ("left", "right"))
        self._keep(len(exact_edges) - 1, ORDERED, (null, outside, reading, levels), edges=exact_edges, closed=closed)

    @property
    def low(self) -> Fraction:
        """The first edge."""
        return self.edges[0]

    @property
    def high(self) -> Fraction:
        """The last edge."""
        return self.edges[-1]

    @property
    def regular(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The bins as intervals."""
        return _labels(self.edges, self.closed)

    def __repr__(self) -> str:
        closed = [] if self.closed == "left" else [f"closed={self.closed!r}"]
        return written(self, [repr([number_text(edge) for edge in self.edges]), *closed])


@dataclass(frozen=True, slots=True)
class Decimals(Kind):
    """A column of numbers in equal steps, such as heights 120, 120.5, 121 ... in half centimetres.

    Args:
        low: the least value, exact, between -(2^53 - 1) and 2^53 - 1.
        high: the greatest value, a whole number of steps above ``low``.
        step: between one value and the next, exact and above 0.
        null: what a null does: ``"drop"`` the row or ``"other"``.
        outside: what another number does, also one between two values: ``"drop"`` the row, ``"clip"`` to the nearest value (the upper one
            of two), or ``"other"``.
        reading: how values are read.
        levels: public maps from values, as text, to groups.

    Raises:
        InputError: a bound that is not finite or not a whole number of steps away, ``low`` not below ``high``, or steps that doubles
            cannot tell apart.

    Edge cases: a value is one of these if the doubles nearest to both are the same: 165.5 is in a text, decimal, float32 and float64 column
    alike.

    >>> ln.Decimals("1", "2", "0.5").labels
    ('1', '1.5', '2')
    """

    low: Fraction
    high: Fraction
    step: Fraction
    null: str = "drop"
    outside: str = "drop"
    reading: Reading = READ_AS_IT_IS
    levels: tuple[Level, ...] = ()

    def __init__(
        self,
        low: Exact,
        high: Exact,
        step: Exact,
        null: str | None = "drop",
        outside: str = "drop",
        *,
        reading: Reading = READ_AS_IT_IS,
        levels: Levels = (),
    ) -> None:
        first, last, between = bound("low", low), bound("high", high), bound("step", step)
        if not first < last:
            raise InputError(f"low must be below high; got low {number_text(first)} and high {number_text(last)}.")
        if not between > 0:
            raise refuse("step", step, "a number above 0")
        count = (last - first) / between
        if count.denominator != 1:
            raise refuse("high", number_text(last), f"a whole number of steps of {number_text(between)} above {number_text(first)}")
        if not max(abs(first), abs(last)) / between < 2**50:
            raise refuse("step", number_text(between), "at least 2^-50 of the bounds, so that doubles tell the values apart")
        self._keep(int(count) + 1, ORDERED, (null, outside, reading, levels), low=first, high=last, step=between)

    @property
    def regular(self) -> int:
        """Number of values."""
        return int((self.high - self.low) / self.step) + 1

    @property
    def values(self) -> tuple[Fraction, ...]:
        """The values, exact, in order."""
        return tuple(self.low + self.step * place for place in range(self.regular))

    @property
    def regular_labels(self) -> tuple[Label, ...]:
        """The values as decimals."""
        return tuple(number_text(value) for value in self.values)

    def __repr__(self) -> str:
        return written(self, [short(self.low), short(self.high), short(self.step)])
