"""What the report shows of each table: its rows in words, its chart, and what can be said of its largest cells."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from leastnoise._accounting import readable
from leastnoise._accuracy import interval_multiplier
from leastnoise._charts import Picture, chart_for, clear_of_the_rest, svg_of, vega_lite
from leastnoise._release._cut import of_words, unit_words
from leastnoise._release._files import TableEntry
from leastnoise._release._keys import picture
from leastnoise._release._names import measured_words, statistic_words, table_words
from leastnoise._release._release import Release
from leastnoise._release._rounding import exact_rule
from leastnoise._release._statistics import StatisticTable
from leastnoise._release._tables import Table, in_unit
from leastnoise._release._texts import Texts

MOST_CELLS = 150_000  # rows of HTML on the page
MOST_OF_A_TABLE = 20_000
MOST_LARGEST = 500  # rows of a table that is not whole
MOST_PICTURES = 100
MOST_MARKS = 20_000  # cells in all pictures; when they are used up, tables are drawn by their largest cells
MOST_BYTES = 5_000_000  # of all pictures
_LARGEST = 20  # bars for a table that is too large to draw
_OPEN = 100  # rows that are shown without being asked for
MOST_ELEMENTS = 30_000  # rows of HTML on one page; beyond them, tables that are closed hold plain lines until they are opened


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table on the page."""

    id: str
    name: str
    meta: str
    total: str
    said: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: list[list[str]]
    rows_said: str
    is_open: bool
    file: str
    svg: str = ""
    width: int = 0

    @property
    def lines(self) -> str:
        """Headings and rows with tabs between their cells; a label has no line breaks and no tabs here."""
        return "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in [[*self.keys, *self.numbers], *self.rows])


def _statistic_view(release: Release, made: StatisticTable, said: Texts) -> View:
    """Means, quantiles or a distribution function, with intervals in place of margins; whole but for very many values."""
    whole = made.cells <= MOST_LARGEST
    value = said.say(f"col_{made.value_name}")
    return View(
        id=made.id,
        name=statistic_words(made.statistic, said),
        meta=said.say(f"meta_{made.statistic.kind}"),
        total="",
        said="",
        keys=made.headings(said),
        numbers=(value, said.say("col_interval", percent=said.percent(release.level))),
        rows=made.written(said, MOST_LARGEST),
        rows_said=said.say("rows_whole") if whole else said.say("rows_first", count=MOST_LARGEST, all=made.cells, file=made.id),
        is_open=made.cells <= _OPEN,
        file="",
    )


def views(release: Release, entries: Sequence[TableEntry], said: Texts) -> list[View]:
    """Every table of the release, as far as a page can hold them: each has its place, the largest ones only their largest cells."""
    made: list[tuple[View, str, bool, Table | None]] = []
    names: list[tuple[str, str, str]] = []
    specs: list[dict[str, Any]] = []
    for one in release.statistics:
        spec = one.spec(said)
        made.append((_statistic_view(release, one, said), "" if spec is None else one.chart(said), spec is not None, None))
        if spec is not None:
            specs.append(spec)
            names.append((f"c-{one.id}", statistic_words(one.statistic, said), said.say(f"meta_{one.statistic.kind}")))
    left, marks = MOST_CELLS, MOST_MARKS
    for place, entry in enumerate(entries):
        whole = entry.answers <= min(MOST_OF_A_TABLE, left)
        if not whole and left <= 0:
            break
        table = release.tables[place]
        drawn = picture(table, said)
        view = _view(release, entry, table, said, whole=whole)
        left -= len(view.rows)
        chart = chart_for(drawn, marks)
        if chart is not None and len(specs) < MOST_PICTURES:
            specs.append(vega_lite(drawn, marks) or {})
            names.append((f"c-{table.id}", drawn.name, _alt(drawn, said)))
            marks -= 0 if chart.name == "largest" else drawn.cells
            made.append((view, chart.name, True, table))
        else:
            made.append((view, "" if chart is None else chart.name, False, table))
    pictures = _within(svg_of(specs, names, said.language))
    shown = [_with_picture(release, view, chart, next(pictures) if has else None, table, said) for view, chart, has, table in made]
    return shown if sum(len(view.rows) for view in shown) <= MOST_ELEMENTS else [_in_lines(view) for view in shown]


def _in_lines(view: View) -> View:
    """The same table with plain lines in the place of elements, which browsers read in a fraction of the time, unless it is open."""
    if view.is_open:
        return view
    return replace(view, width=2 + max(map(len, chain(view.keys, view.numbers, *view.rows))))


def _unit(table: Table, said: Texts) -> str:
    """Of what a table's answers are."""
    measure, unit = table.product.measure, measured_words(table.product, said)
    if measure is not None and table.product.of_values:
        unit = said.say("unit_measure", measure=measure, unit=said.local(readable(table.product.domain.measures[measure].unit)))
    return unit_words(unit, table.privacy, said)


def _within(pictures: list[str | None]) -> Iterator[str | None]:
    """Pictures in order, as long as all of them together do not make the page too large."""
    used = 0
    for svg in pictures:
        used += len(svg or "")
        yield svg if used <= MOST_BYTES else None


def _view(release: Release, entry: TableEntry, table: Table, said: Texts, *, whole: bool) -> View:
    percent = said.percent(release.level)
    meta = said.say("meta", answers=said.some("answers", table.cells), unit=_unit(table, said), margin=said.error(table.typical_margin))
    total = "" if table.labels else said.value(float(table.answer), float(table.margins))
    places = np.arange(table.cells)
    rows_said = said.say("rows_whole")
    if not whole:
        places = np.argsort(-table.answer.reshape(-1), kind="stable")[:MOST_LARGEST]
        rows_said = said.say("rows_cut", count=len(places), all=table.cells, file=entry.files)
    extra = [name for name in table.numbers() if name not in ("answer", "noise_std", "approximation_std", "low", "high")]
    return View(
        id=table.id,
        name=table_words(table.product, said),
        meta=meta,
        total=total,
        said="",
        keys=tuple(table.product.attributes),
        numbers=(said.say("col_answer"), said.say("col_margin", percent=percent), *extra),
        rows=_rows(table, places, extra, said) if table.labels else [],
        rows_said=rows_said,
        is_open=table.cells <= _OPEN,
        file=f"{entry.files.rsplit('/', 1)[-1]}.csv",
    )


def _rows(table: Table, places: np.ndarray, extra: Sequence[str], said: Texts) -> list[list[str]]:
    keys = [np.array([str(label) for label in labels], dtype=object) for labels in table.labels]
    columns = [own[index].tolist() for own, index in zip(keys, np.unravel_index(places, table.answer.shape), strict=True)]
    margins = table.margins.reshape(-1)[places].tolist()
    written = {margin: said.error(margin) for margin in set(margins)}
    pairs = zip(table.answer.reshape(-1)[places].tolist(), margins, strict=True)
    columns += [[said.number(answer, margin / 4) for answer, margin in pairs], [written[margin] for margin in margins]]
    numbers = table.numbers()
    columns += [["" if math.isnan(value) else said.number(float(value), 0.5) for value in numbers[name][places].tolist()] for name in extra]
    return [list(row) for row in zip(*columns, strict=True)]


def _with_picture(release: Release, view: View, chart: str, svg: str | None, table: Table | None, said: Texts) -> View:
    if not chart:
        return view
    words = [said.say(f"how_{chart}", percent=said.percent(release.level))] if svg else [said.say("not_drawn", id=view.id)]
    if chart == "largest" and svg and table is not None:
        words.insert(0, _sure(release, table, said))
    if of := of_words(release, said):
        words.append(said.say("beyond", of=of))
    return replace(view, svg=svg or "", said=" ".join(words))


def _sure(release: Release, table: Table, said: Texts) -> str:
    """How sure the ranking of the largest cells is, by intervals that hold for all cells at once."""
    shown = min(_LARGEST, table.cells)
    if not release.finding.linear:
        return said.say("largest_unknown", count=shown)
    # the union bound over all cells
    times = interval_multiplier(release.measurements.noise, 1 - (1 - release.level) / table.cells)
    rounding = float(exact_rule(release.options)[0]) / 2
    margin = times * table.noise_std + in_unit(table.product, np.array(release.interval.half_step)) + rounding
    order = np.argsort(-table.answer.reshape(-1), kind="stable")
    gone = np.isnan(table.answer)  # of these is known that they are below
    low = np.where(gone, -np.inf, table.answer - margin).reshape(-1)
    high = np.where(gone, float(release.options.below or 0) + margin, table.answer + margin).reshape(-1)
    sure = clear_of_the_rest(low, high, order, shown)
    if not sure:
        return said.say("largest_unsure", count=shown, all=table.cells)
    key = "largest_equal" if sure == shown else "largest_sure"
    return said.say(key, count=shown, sure=sure, all=table.cells, percent=said.percent(release.level))


def _alt(drawn: Picture, said: Texts) -> str:
    """A chart in words: what it shows, and its largest and smallest cell."""
    flat, margins = drawn.answer.reshape(-1), np.maximum(drawn.high - drawn.answer, drawn.answer - drawn.low).reshape(-1)
    ends = []
    known = np.flatnonzero(~np.isnan(flat))
    if not known.size:
        return said.say("alt_left_out", name=drawn.name, cells=said.some("answers", drawn.cells))
    for place in (known[flat[known].argmax()], known[flat[known].argmin()]):
        index = np.unravel_index(place, drawn.answer.shape)
        key = ", ".join(axis.labels[int(at)] for axis, at in zip(drawn.axes, index, strict=True))
        ends.append((key, said.value(float(flat[place]), float(margins[place]))))
    (top, most), (bottom, least) = ends
    return said.say("alt", name=drawn.name, cells=said.some("answers", drawn.cells), top=top, most=most, bottom=bottom, least=least)
