"""Define the data of charts, and their shared colours, sizes and encodings."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from leastnoise._trusted.check.arrays import FloatArray, IntArray

Spec = dict[str, Any]
_MOST_NAMES_IN_ORDER = 8  # more names are easier to read as a ranking


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """An axis of a chart: the keys along one attribute.

    Attributes:
        name: the name of the attribute.
        labels: the labels of the keys.
        kind: "names", "cells" (neighbouring ranges of numbers), "up_to" (prefix sums), "times" (at
            least three periods; one or two periods are "names") or "spans" (ranges that may
            overlap).
        low: where each key begins on a scale of numbers; None without numbers.
        high: where each key ends. A single number ends where the next one begins; thus neighbours
            touch.
        first: the smallest number that belongs to each key.
        last: the largest number that belongs to each key.
        moments: for dates, the day or hour of each key in ISO form; empty for other kinds.
        further_keys: how many of the last keys stand for nulls or other values.
    """

    name: str
    labels: tuple[str, ...]
    kind: str = "names"
    low: FloatArray | None = None
    high: FloatArray | None = None
    first: FloatArray | None = None
    last: FloatArray | None = None
    moments: tuple[str, ...] = ()
    further_keys: int = 0

    @property
    def size(self) -> int:
        """The number of keys."""
        return len(self.labels)

    @property
    def is_numbered(self) -> bool:
        """Whether every key has a position on a scale of numbers or dates."""
        if self.low is None:
            ends = self.high
        else:
            ends = self.low
        return self.kind == "times" or (
            self.kind in ("cells", "up_to") and ends is not None and bool(np.isfinite(ends).all())
        )

    def order_by(self, sizes: FloatArray) -> list[int]:
        """Return the positions of the keys in the order in which they are drawn.

        Many names without a natural order are sorted by size, the largest first, with nulls and
        other values last. All other keys keep their order.

        Args:
            sizes: the number by which each key is sorted.
        """
        if self.kind != "names" or not self._are_names_without_order:
            return list(range(self.size))
        regular = self.size - self.further_keys
        return [*find_largest(sizes[:regular], regular).tolist(), *range(regular, self.size)]

    @property
    def _are_names_without_order(self) -> bool:
        """Whether the keys are many names that all begin with a letter."""
        return self.size > _MOST_NAMES_IN_ORDER and all(
            label[:1].isalpha() for label in self.labels[: self.size - self.further_keys]
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """The data of a chart: keys, answers and intervals of a table.

    Attributes:
        name: the name of the table.
        axes: one axis for each key.
        answer: the answer of each cell, with one dimension per axis; NaN if it is suppressed.
        low: the lower end of the interval of each answer.
        high: the upper end of the interval.
        unit: the unit of the answers.
        format_answer: a function that formats an answer with its margin.
        format_number: a function that formats an answer with the digits that its margin leaves
            meaningful.
        up_to: the words before the value of a prefix sum.
    """

    name: str
    axes: tuple[Axis, ...]
    answer: FloatArray
    low: FloatArray
    high: FloatArray
    unit: str = ""
    format_answer: Callable[[float, float], str] = lambda answer, margin: (
        f"{answer:,.4g} ± {margin:,.3g}"
    )
    # Digits may depend on the margin; here they do not.
    format_number: Callable[[float, float], str] = lambda answer, margin: f"{answer:,.4g}"  # noqa: ARG005
    up_to: str = "up to"

    @property
    def cells(self) -> int:
        """The number of answers."""
        return int(self.answer.size)

    def rows(self) -> list[dict[str, Any]]:
        """Return a Vega-Lite record for each cell, in row-major order.

        A record has the fields k0, k1, ... for labels, and answer, low and high.
        """
        numbers = zip(
            *(values.reshape(-1).tolist() for values in (self.answer, self.low, self.high)),
            strict=True,
        )
        keys = product(*(axis.labels for axis in self.axes))
        rows = []
        for labels, (answer, low, high) in zip(keys, numbers, strict=True):
            row: dict[str, Any] = {f"k{number}": label for number, label in enumerate(labels)}
            row["answer"] = round_to_six_digits(answer)
            row["low"] = round_to_six_digits(low)
            row["high"] = round_to_six_digits(high)
            rows.append(row)
        return rows

    def axis_title(self, axis: Axis) -> str:
        """Return the title of an axis for display."""
        if axis.kind == "up_to":
            return f"{axis.name}, {self.up_to}"
        return axis.name


class DotRow(NamedTuple):
    """A dot of a dot plot.

    Attributes:
        group: the label of its group.
        series: the label of its series; empty if the plot has one series.
        value: its value; NaN if it is not published.
        low: the lower end of its interval.
        high: the upper end of its interval.
    """

    group: str
    series: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DotPlot:
    """The data of a dot plot: means, quantiles or differences by group.

    Attributes:
        title: the title of the values.
        groups: the title of the groups.
        rows: the dots.
        series: the title of the series.
        marks_zero: whether the axis contains 0 and marks it by a line, as for differences.
    """

    title: str
    groups: str
    rows: tuple[DotRow, ...]
    series: str = ""
    marks_zero: bool = False


def has_marked_intervals(spec: Spec) -> bool:
    """Return whether a chart marks intervals that contain 0 or are clipped."""
    return any(row.get("zero") or row.get("open") for row in spec["data"]["values"])


def format_digits(value: float) -> str:
    """Return a number as text with separators and six significant digits.

    All digits before the decimal point are kept, and at most two after it.
    """
    if value != value or 0 < abs(value) < 1e-4 or abs(value) >= 1e15:  # noqa: PLR0124 - NaN
        return f"{value:.6g}"
    decimals = 0
    if value:
        decimals = max(2, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if text == "-0":
        return "0"
    return text


def round_to_six_digits(value: float) -> float:
    """Round a number to the six significant digits that a chart can show."""
    return float(f"{value:.6g}")


def find_largest(values: FloatArray, count: int) -> IntArray:
    """Return the positions of the ``count`` largest numbers, largest first.

    Equal numbers keep their order; NaN counts as the smallest.
    """
    numbers = np.where(np.isnan(values), -np.inf, values).reshape(-1)
    if count < numbers.size:  # sorting all would be slow, as a table may have millions of cells
        positions = np.flatnonzero(
            numbers >= np.partition(numbers, numbers.size - count)[numbers.size - count]
        )
        return positions[np.argsort(-numbers[positions], kind="stable")][:count]
    return np.argsort(-numbers, kind="stable")


def count_certain_largest(low: FloatArray, high: FloatArray, order: IntArray) -> int:
    """Return how many of the positions in ``order`` are certainly the largest.

    They are the first positions in ``order``, and their intervals lie above the intervals of all
    other cells.
    """
    is_other = np.ones(len(high), dtype=np.bool_)
    is_other[order] = False
    ends = np.append(high[order], high.max(initial=-np.inf, where=is_other))
    highest = np.maximum.accumulate(ends[::-1])[::-1][1:]
    certain = np.flatnonzero((np.minimum.accumulate(low[order]) > highest)[: len(high) - 1])
    if len(certain):
        return int(certain[-1]) + 1
    return 0


# About the width of a chart with its labels; a phone shows it at two thirds of its size.
WIDTH = 450
HEIGHT = 200
# In dark mode, style sheets of pages replace exactly these values. Text on shaded cells keeps its
# colour.
INK = "#17212b"
MUTED = "#4d5a66"
RULE = "#d5dbe1"
BAR = "#6aa5cc"
WHISKER = "#12344d"
# The colours are from Okabe and Ito 2008. Yellow is left out, because it is not legible on white.
# Each colour is combined with a different dash.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#9a4f83", "#000000", "#a06a00")
DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 3])
_FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
CONFIG: Spec = {
    "aria": False,
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "labelFontSize": 12,
        "titleColor": MUTED,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": RULE,
        "domainColor": MUTED,
        "tickColor": RULE,
        "labelLimit": 150,
        "labelOverlap": True,
        "labelSeparation": 8,
    },
    "axisY": {"domain": False, "ticks": False},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": MUTED,
        "orient": "top",
    },
    "header": {
        "labelFontSize": 12,
        "labelFontWeight": "bold",
        "labelColor": INK,
        "titleColor": MUTED,
        "labelLimit": 150,
    },
    "text": {"fontSize": 12, "color": INK},
}
ANSWER_TITLE: Spec = {"anchor": "start", "fontSize": 12, "fontWeight": "normal", "color": MUTED}
"""The style of the title of the answers above small charts."""


def estimate_width(labels: Iterable[str], largest_width: int) -> int:
    """Estimate the width of the longest label in pixels, up to a maximum."""
    return min(largest_width, round(6.5 * max((len(label) for label in labels), default=0)))


def answer_encoding(picture: Picture, field: str = "answer", ticks: int = 5) -> Spec:
    """Return the Vega-Lite encoding of answers or of the ends of their intervals."""
    return {
        "field": field,
        "type": "quantitative",
        "title": picture.unit,
        "axis": {"tickCount": ticks, "grid": True},
    }


def key_encoding(title: str | None, label_limit: int | None = None) -> Spec:
    """Return the Vega-Lite encoding for a chart with one row per key."""
    axis: Spec = {
        "labelOverlap": False,
        "titleAngle": 0,
        "titleAlign": "right",
        "titleY": -8,
        "titleX": -7,
    }
    if label_limit is not None:
        axis["labelLimit"] = label_limit
    return {"field": "k0", "type": "nominal", "sort": None, "title": title, "axis": axis}


def tooltip_encoding(*fields: tuple[str, str]) -> list[Spec]:
    """Return the Vega-Lite encoding of tooltips.

    ``fields`` are pairs of a field and its title. In a tooltip, the answer and its interval follow
    these fields.
    """
    numbers = [
        {"field": name, "type": "quantitative", "format": ",.6~g"}
        for name in ("answer", "low", "high")
    ]
    return [{"field": name, "title": title, "type": "nominal"} for name, title in fields] + numbers


def group_encoding(names: Sequence[str], marks: Sequence[Any], title: str) -> Spec:
    """Return the Vega-Lite encoding of groups by colours, dashes or shapes."""
    scale = {
        "domain": [*names],
        "range": [marks[index % len(marks)] for index in range(len(names))],
    }
    return {"field": "group", "type": "nominal", "title": title, "scale": scale}


def complete_spec(spec: Spec) -> Spec:
    """Return a Vega-Lite specification with schema and style added.

    NaN becomes null, which is not drawn.
    """
    rows = [dict(row) for row in spec["data"]["values"]]
    for row in rows:
        for name, value in row.items():
            if value != value:  # noqa: PLR0124 - NaN
                row[name] = None
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        **spec,
        "data": {"values": rows},
        "config": CONFIG,
    }
