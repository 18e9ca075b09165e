"""What a chart is drawn of: keys along a few axes, and for every cell an answer with its interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """The keys along one attribute; ``kind`` is names, cells, up_to, times or spans."""

    name: str
    labels: tuple[str, ...]
    kind: str = "names"
    low: FloatArray | None = None
    high: FloatArray | None = None
    first: FloatArray | None = None
    last: FloatArray | None = None
    moments: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self.labels)

    @property
    def numbered(self) -> bool:
        """Whether every key has a place on a scale of numbers or dates."""
        ends = self.high if self.low is None else self.low
        return self.kind == "times" or (self.kind in ("cells", "up_to") and ends is not None and bool(np.isfinite(ends).all()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A table to be drawn."""

    name: str
    axes: tuple[Axis, ...]
    answer: FloatArray
    low: FloatArray
    high: FloatArray
    unit: str = ""
    value: Callable[[float, float], str] = lambda answer, margin: f"{answer:,.4g} ± {margin:,.3g}"
    number: Callable[[float, float], str] = lambda answer, margin: f"{answer:,.4g}"  # noqa: ARG005 - digits may depend on the margin
    up_to: str = "up to"

    @property
    def shape(self) -> tuple[int, ...]:
        """Keys along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """Number of answers."""
        return int(self.answer.size)

    def rows(self) -> list[dict[str, Any]]:
        """One record a cell, in row-major order: k0, k1, ... the labels, answer, low, high."""
        flat = zip(*(values.reshape(-1).tolist() for values in (self.answer, self.low, self.high)), strict=True)
        places = np.unravel_index(np.arange(self.cells), self.answer.shape) if self.axes else ()
        keys = [np.array(axis.labels, dtype=object)[place].tolist() for axis, place in zip(self.axes, places, strict=True)]
        return [
            {**{f"k{number}": key[row] for number, key in enumerate(keys)}, "answer": short(a), "low": short(b), "high": short(c)}
            for row, (a, b, c) in enumerate(flat)
        ]

    def heading(self, axis: Axis) -> str:
        """What is written beside an axis."""
        return f"{axis.name}, {self.up_to}" if axis.kind == "up_to" else axis.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Some values with intervals, such as means or quantiles by group."""

    title: str
    groups: str
    rows: tuple[tuple[str, str, float, float, float], ...]
    series: str = ""


def in_digits(value: float) -> str:
    """A number with separators of thousands: six digits that count, and never fewer than those of a whole number or two decimals."""
    if value != value or 0 < abs(value) < 1e-4 or abs(value) >= 1e15:  # noqa: PLR0124 - NaN
        return f"{value:.6g}"
    text = f"{value:,.{max(2, 5 - math.floor(math.log10(abs(value)))) if value else 0}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def short(value: float) -> float:
    """Six digits that count: more cannot be seen."""
    return float(f"{value:.6g}")


def largest_first(values: FloatArray, most: int) -> IntArray:
    """The places of the largest numbers, the largest first, equal ones in their order; NaN is the least."""
    known = np.where(np.isnan(values), -np.inf, values).reshape(-1)
    if most < known.size:  # a table may have millions
        places = np.flatnonzero(known >= np.partition(known, known.size - most)[known.size - most])
        return places[np.argsort(-known[places], kind="stable")][:most]
    return np.argsort(-known, kind="stable")


def clear_of_the_rest(low: FloatArray, high: FloatArray, order: IntArray) -> int:
    """How many of the first in an order are above all others for sure; ``order`` is of these, or of all."""
    rest = np.ones(len(high), dtype=np.bool_)
    rest[order] = False
    ends = np.append(high[order], high.max(initial=-np.inf, where=rest))
    highest = np.maximum.accumulate(ends[::-1])[::-1][1:]
    clear = np.flatnonzero((np.minimum.accumulate(low[order]) > highest)[: len(high) - 1])
    return int(clear[-1]) + 1 if len(clear) else 0
