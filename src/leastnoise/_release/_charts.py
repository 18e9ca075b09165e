"""Charts of tables as inline SVG, with their error bars; every label is escaped, colours come from the page's style."""

import math
from dataclasses import dataclass, field
from html import escape

import numpy as np

from leastnoise._domain import Bins, Dates, Decimals, Edges, Integers
from leastnoise._release._tables import Table
from leastnoise._workload import Product

WIDTH = 720
MOST_BARS = 40
MOST_COLUMNS = 90
MOST_POINTS = 600
MOST_LINES = 6
MOST_HEAT = (60, 120, 2000)
_ORDERED = (Integers, Decimals, Bins, Edges, Dates)
_LETTER = 6.3  # width of a letter of the small type, about


@dataclass(slots=True)
class Drawing:
    """An SVG under construction.

    Args:
        name: unique on the page, for the ids of title and description.
        title: what is drawn.
        description: how to read it.
        height: in user units; the width is 720.
    """

    name: str
    title: str
    description: str
    height: float
    parts: list[str] = field(default_factory=list)

    def add(self, tag: str, tip: str = "", **attributes: object) -> None:
        """Add a shape, with an optional tip that is shown where a pointer rests on it."""
        self.parts.append(f"<{tag}{_attributes(attributes)}" + (f"><title>{escape(tip)}</title></{tag}>" if tip else "/>"))

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Add a text."""
        classes = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{classes}>{escape(words)}</text>')

    def svg(self) -> str:
        """The finished element."""
        head = (
            f'<svg role="img" viewBox="0 0 {WIDTH} {_n(self.height)}" aria-labelledby="{self.name}-title {self.name}-desc">'
            f'<title id="{self.name}-title">{escape(self.title)}</title><desc id="{self.name}-desc">{escape(self.description)}</desc>'
        )
        return head + "".join(self.parts) + "</svg>"


def _attributes(values: dict[str, object]) -> str:
    texts = []
    for name, value in values.items():
        plain = _n(value) if isinstance(value, float) else str(value)
        texts.append(f' {name.rstrip("_").replace("_", "-")}="{escape(plain)}"')
    return "".join(texts)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def number(value: float, spread: float = 1.0) -> str:
    """A number with the digits that its standard error leaves meaningful, and separators of thousands.

    >>> number(12345.678, 20), number(0.1234, 0.002), number(-0.2, 10)
    ('12,346', '0.1234', '0')
    """
    places = max(0, 1 - math.floor(math.log10(spread))) if 0 < spread < 1 else 0
    text = f"{value:,.{min(places, 12)}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


def error(value: float) -> str:
    """A standard error, in few digits.

    >>> error(12.34), error(0.0123), error(5_428_388)
    ('± 12.3', '± 0.0123', '± 5.43M')
    """
    short = float(f"{value:.3g}")
    if not short > 0:
        return "± 0"
    places = max(0, 2 - math.floor(math.log10(short)))
    return f"± {compact(short) if short >= 1e6 else f'{short:,.{places}f}'}"


def compact(value: float) -> str:
    """A number for an axis.

    >>> compact(1_500_000), compact(20_000), compact(0.25), compact(0)
    ('1.5M', '20k', '0.25', '0')
    """
    for size, sign in ((1e12, "tn"), (1e9, "bn"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if sign == 'k' else size):g}{sign}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover [low, high].

    >>> ticks(0, 97)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    span = high - low
    if not span > 0:
        span = abs(high) or 1.0
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) + 0.0 for place in range(first, max(last, first + 1) + 1)]


def chart_kind(product: Product) -> str | None:
    """Which chart suits a table: total, bars, columns, line, lines, heat, or None where none is readable.

    >>> domain = Domain(sex=["F", "M"], age=Integers(17, 90))
    >>> asked = [dict(), dict(sex="identity"), dict(age="identity"), dict(age="prefix"), dict(sex="identity", age="identity")]
    >>> [chart_kind(queries(domain, **one).products[0]) for one in asked]
    ['total', 'bars', 'columns', 'line', 'heat']
    """
    kinds = [q.kind for q in product.query_sets]
    if len(kinds) > 2:
        return None
    shape = product.shape
    if not kinds:
        return "total"
    if len(kinds) == 1:
        ordered = kinds[0] == "identity" and isinstance(product.domain.kind(product.attributes[0]), _ORDERED)
        if kinds[0] == "prefix":
            return "line"
        if ordered and shape[0] > 12:
            return "columns" if shape[0] <= MOST_COLUMNS else "line"
        return "bars" if shape[0] <= MOST_BARS else None
    if sorted(kinds) == ["identity", "prefix"] and shape[kinds.index("identity")] <= MOST_LINES:
        return "lines"
    if "prefix" in kinds or "all_ranges" in kinds:
        return None
    fits = min(shape) <= MOST_HEAT[0] and max(shape) <= MOST_HEAT[1] and math.prod(shape) <= MOST_HEAT[2]
    return "heat" if fits else None


def chart(table: Table, percent: str) -> str:
    """The chart of a table, as one SVG element.

    Args:
        table: one for which `chart_kind` names a chart other than ``total``.
        percent: the level of the intervals, such as ``95%``.
    """
    kind = chart_kind(table.product)
    return {"bars": bars, "columns": columns, "line": lines, "lines": lines, "heat": heat}[str(kind)](table, percent)


def short_label(label: object) -> str:
    """A label for an axis: the lower edge of a bin, the bound of a prefix sum.

    >>> [short_label(label) for label in ("[0, 2000)", "<= 17", "< 400", "North", 5)]
    ['0', '17', '400', 'North', '5']
    """
    text = str(label)
    if text[:1] in "[(" and ", " in text and text[-1:] in ")]":
        text = text[1:].split(", ", 1)[0]
    text = text.removeprefix("<").removeprefix("=").strip()
    try:
        value = float(text)
    except ValueError:
        return text
    return compact(value) if abs(value) >= 10_000 else text


def _value(table: Table, place: tuple[int, ...]) -> str:
    """An answer with its margin, in short form from a hundred million on."""
    answer, spread = float(table.answer[place]), float(table.noise_std[place])
    margin = float(table.high[place]) - answer
    if abs(answer) >= 1e8:
        return f"{compact(float(f'{answer:.4g}'))} ± {compact(float(f'{margin:.3g}'))}"
    return f"{number(answer, spread)} ± {number(margin, spread)}"


def _tip(label: str, table: Table, place: tuple[int, ...]) -> str:
    return f"{label}: {_value(table, place)}"


def _cut(words: str, letters: int) -> str:
    return words if len(words) <= letters else words[: letters - 1] + "…"


def bars(table: Table, percent: str) -> str:
    """Horizontal bars with error bars, for named cells."""
    labels = [str(label) for label in table.labels[0]]
    values = [_value(table, (place,)) for place in range(table.cells)]
    left = min(220.0, 16 + _LETTER * max(len(label) for label in labels))
    right = WIDTH - 14 - _LETTER * max(len(value) for value in values)
    step, top = 26.0, 6.0
    scale = _Scale(ticks(*_reach(table), 4), left, right)
    bottom = top + step * len(labels)
    title = f"{table.name}: bars with {percent} intervals"
    drawing = Drawing(table.id, title, f"{len(labels)} bars; a thin line across the end of each is its {percent} interval.", bottom + 24)
    _grid_x(drawing, scale, top, bottom)
    for place, label in enumerate(labels):
        middle = top + step * (place + 0.5)
        answer = float(table.answer[place])
        start, end = sorted((scale(0.0), scale(answer)))
        drawing.text(left - 8, middle + 4, _cut(label, int((left - 10) / _LETTER)), anchor="end")
        drawing.add("rect", _tip(label, table, (place,)), class_="bar", x=start, y=middle - 8, width=max(end - start, 0.5), height=16.0)
        _whisker_x(drawing, scale(float(table.low[place])), scale(float(table.high[place])), middle)
        drawing.text(WIDTH - 4, middle + 4, values[place], "value", "end")
    drawing.add("line", class_="axis", x1=scale(0.0), x2=scale(0.0), y1=top, y2=bottom)
    return drawing.svg()


def columns(table: Table, percent: str) -> str:
    """Vertical columns with error bars, for ordered cells."""
    count = table.cells
    drawing, x, y, bottom = _upright(table, f"columns with {percent} intervals", f"{count} columns, each with its {percent} interval.")
    width = (x.end - x.start) / count
    for place, label in enumerate(table.labels[0]):
        middle = x.start + width * (place + 0.5)
        start, end = sorted((y(0.0), y(float(table.answer[place]))))
        tip = _tip(str(label), table, (place,))
        drawing.add("rect", tip, class_="bar", x=middle - 0.4 * width, y=start, width=0.8 * width, height=max(end - start, 0.5))
        drawing.add("line", class_="whisker", x1=middle, x2=middle, y1=y(float(table.low[place])), y2=y(float(table.high[place])))
    drawing.add("line", class_="axis", x1=x.start, x2=x.end, y1=y(0.0), y2=y(0.0))
    _labels_x(drawing, table.labels[0], x, bottom, cells=True)
    drawing.text((x.start + x.end) / 2, bottom + 34, _axis_words(table, 0), "muted", "middle")
    return drawing.svg()


def lines(table: Table, percent: str) -> str:
    """Lines with bands, for prefix sums and fine histograms; one line for each cell of a second, short attribute."""
    axis, names = 0, [""]
    if len(table.labels) == 2:
        axis = [q.kind for q in table.product.query_sets].index("prefix")
        names = [str(label) for label in table.labels[1 - axis]]
    answer, low, high = (np.moveaxis(values, axis, -1).reshape(len(names), -1) for values in (table.answer, table.low, table.high))
    count = answer.shape[1]
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int))
    right = 20 + min(130.0, _LETTER * max(len(name) for name in names))
    bands = f"lines with a band of {percent} intervals"
    drawing, x, y, bottom = _upright(
        table, bands, f"{len(names)} lines over {count} points; the band around each is its {percent} interval.", right
    )
    ends = []
    for place, name in enumerate(names):
        across = [x.start + (x.end - x.start) * (k + 0.5) / count for k in kept]
        edge = [f"{_n(a)},{_n(y(float(v)))}" for a, v in zip(across, high[place, kept], strict=True)]
        back = [f"{_n(a)},{_n(y(float(v)))}" for a, v in zip(across, low[place, kept], strict=True)]
        drawing.add("polygon", class_=f"band s{place}", points=" ".join(edge + back[::-1]))
        path = " ".join(f"{_n(a)},{_n(y(float(v)))}" for a, v in zip(across, answer[place, kept], strict=True))
        drawing.add("polyline", name, class_=f"line s{place}", points=path)
        ends.append((y(float(answer[place, -1])), place))
    if names != [""]:
        height = -math.inf
        for end, place in sorted(ends):
            height = max(end, height + 14)
            drawing.text(x.end + 8, height + 4, _cut(names[place], int((right - 8) / _LETTER)), f"name s{place}")
    drawing.add("line", class_="axis", x1=x.start, x2=x.end, y1=y(0.0), y2=y(0.0))
    prefix = table.product.query_sets[axis].kind == "prefix"
    _labels_x(drawing, table.labels[axis], x, bottom, cells=not prefix)
    words = f"{table.product.attributes[axis]}, up to" if prefix else _axis_words(table, axis)
    drawing.text((x.start + x.end) / 2, bottom + 34, words, "muted", "middle")
    return drawing.svg()


def heat(table: Table, percent: str) -> str:
    """A grid of shaded cells, for tables on two attributes; the longer attribute runs across, and cells that may be 0 are hatched."""
    turned = table.answer.shape[0] > table.answer.shape[1]
    down, across = (1, 0) if turned else (0, 1)
    rows, across_labels = [str(label) for label in table.labels[down]], table.labels[across]
    left = min(200.0, 22 + _LETTER * max(len(row) for row in rows))
    width = (WIDTH - left - 8) / len(across_labels)
    step = max(26.0 if len(rows) <= 12 else 16.0, min(32.0, 160.0 / len(rows)))
    top = 22.0
    bottom = top + step * len(rows)
    most = float(np.abs(table.answer).max()) or 1.0
    written = width >= 46 and step >= 20
    title = f"{table.name}: shaded cells"
    drawing = Drawing(
        table.id,
        title,
        f"{len(rows)} by {len(across_labels)} cells, darker for larger answers; hatched where the {percent} interval contains 0.",
        bottom + 44,
    )
    drawing.text(left - 8, 13, table.product.attributes[down], "muted", "end")
    for place in np.ndindex(table.answer.shape):
        answer, row, column = float(table.answer[place]), place[down], place[across]
        share = min(1.0, abs(answer) / most)
        box = {"x": left + width * column, "y": top + step * row, "width": width, "height": step}
        label = f"{table.labels[0][place[0]]}, {table.labels[1][place[1]]}"
        doubtful = bool(table.low[place] <= 0 <= table.high[place])
        drawing.add(
            "rect", _tip(label, table, place), class_="heat" if answer >= 0 else "heat below", fill_opacity=0.04 + 0.96 * share, **box
        )
        if doubtful:
            drawing.add("rect", class_="hatch", **box)
        if written:
            kind = "on-dark cell" if share > 0.66 else "cell"
            words = number(answer, float(table.noise_std[place]))
            shown = words if len(words) * _LETTER <= width - 4 else compact(float(f"{answer:.3g}"))
            drawing.text(left + width * (column + 0.5), top + step * (row + 0.5) + 4, shown, kind, "middle")
    for row, row_label in enumerate(rows):
        drawing.text(left - 8, top + step * (row + 0.5) + 4, _cut(row_label, int((left - 10) / _LETTER)), anchor="end")
    _labels_x(drawing, across_labels, _Scale([0.0, 1.0], left, WIDTH - 8.0), bottom, cells=True)
    drawing.text((left + WIDTH - 8) / 2, bottom + 36, _axis_words(table, across), "muted", "middle")
    return drawing.svg()


@dataclass(frozen=True, slots=True)
class _Scale:
    """From a value to a coordinate; the first and the last mark lie at the ends."""

    marks: list[float]
    start: float
    end: float

    def __call__(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def _reach(table: Table) -> tuple[float, float]:
    """From where to where an axis must go: 0, all answers and their intervals, but for what would be a few hairs' breadth beside 0."""
    low, high = min(0.0, float(table.low.min())), max(0.0, float(table.high.max()))
    hair = 0.03 * (high - low)
    return (0.0 if -low < hair else low), (0.0 if high < hair else high)


def _upright(table: Table, what: str, description: str, right: float = 12.0) -> tuple[Drawing, _Scale, _Scale, float]:
    """A drawing with a value axis on the left: the drawing, both scales, and the bottom of the plot."""
    marks = ticks(*_reach(table))
    top, bottom = 10.0, 230.0
    left = 16 + _LETTER * max(len(compact(mark)) for mark in marks)
    drawing = Drawing(table.id, f"{table.name}: {what}", description, bottom + 42)
    x, y = _Scale([0.0, 1.0], left, WIDTH - right), _Scale(marks, bottom, top)
    for mark in marks:
        drawing.add("line", class_="grid", x1=x.start, x2=x.end, y1=y(mark), y2=y(mark))
        drawing.text(left - 8, y(mark) + 4, compact(mark), "muted", "end")
    return drawing, x, y, bottom


def _axis_words(table: Table, axis: int) -> str:
    """The name of an attribute, and what its labels on the axis are."""
    name = table.product.attributes[axis]
    return (
        f"{name}, from" if str(table.labels[axis][0])[:1] in "[(" and isinstance(table.product.domain.kind(name), (Bins, Edges)) else name
    )


def _grid_x(drawing: Drawing, scale: _Scale, top: float, bottom: float) -> None:
    for mark in scale.marks:
        drawing.add("line", class_="grid", x1=scale(mark), x2=scale(mark), y1=top, y2=bottom)
        drawing.text(scale(mark), bottom + 16, compact(mark), "muted", "middle")


def _whisker_x(drawing: Drawing, low: float, high: float, middle: float) -> None:
    drawing.add(
        "path", class_="whisker", d=f"M{_n(low)} {_n(middle - 4)}v8M{_n(low)} {_n(middle)}H{_n(high)}M{_n(high)} {_n(middle - 4)}v8"
    )


def _labels_x(drawing: Drawing, labels: tuple[str | int, ...], x: _Scale, bottom: float, *, cells: bool) -> None:
    """As many labels below the plot as fit without touching, always the first."""
    shown = [_cut(short_label(label), 18) for label in labels]
    room = (x.end - x.start) / len(shown)
    widest = max(len(words) for words in shown) * _LETTER + 12
    every = max(1, math.ceil(widest / room))
    if every > 1 and all(isinstance(label, int) or str(label)[:1] in "[(<" for label in labels[:-1]):
        every = next(step for step in sorted(f * 10**p for f in (1, 2, 5) for p in range(9)) if step >= every)
        first = (-int(labels[0])) % every if isinstance(labels[0], int) else (every - 1) * (not cells)
    else:
        first = 0
    for place in range(first, len(shown), every):
        drawing.text(x.start + room * (place + 0.5), bottom + 17, shown[place], "muted", "middle")
