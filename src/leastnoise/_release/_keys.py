"""The keys of a table: the axes of its chart, and the numbers and days that its labels stand for."""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leastnoise._charts import Axis, Picture, chart_for
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Bins, Decimals, Edges, Integers, Kind
from leastnoise._families import interval_ends
from leastnoise._release._cut import unit_words
from leastnoise._release._names import measured_words, table_words
from leastnoise._release._texts import Texts
from leastnoise._workload import Product, QuerySet

if TYPE_CHECKING:
    from leastnoise._release._tables import Table

_PERIOD = re.compile(r"(\d{4})(?:-(?:Q([1-4])|W(\d\d)|(\d\d)(?:-(\d\d)(?: (\d\d):00)?)?))?", flags=re.ASCII)


def picture(table: "Table", said: Texts) -> Picture:
    """What a chart of a table is drawn of: all cells, or numbers and dates may be without the cell of other values."""
    product = table.product
    whole = Picture(
        name=table_words(product, said),
        axes=axes(product, table.labels),
        answer=table.answer,
        low=table.low,
        high=np.where(np.isnan(table.answer), np.nan, table.high),
        unit=unit_words(measured_words(product, said), table.privacy, said),
        value=said.value,
        number=said.number,
        up_to=said.say("up_to"),
    )
    return _without_other(whole, product, said)


def _drawn_as(drawn: Picture) -> str:
    chart = chart_for(drawn)
    return "" if chart is None else chart.name


def _without_other(whole: Picture, product: Product, said: Texts) -> Picture:
    """The numbers and dates of a picture in their order, if that makes a line or can alone be drawn; the axis says what is missing."""
    made = tuple(
        _regular(axis, queries, product.domain.kind(axis.name), said) for axis, queries in zip(whole.axes, product.query_sets, strict=True)
    )
    kept = tuple(slice(axis.size) for axis in made)
    short = replace(whole, axes=made, answer=whole.answer[kept], low=whole.low[kept], high=whole.high[kept])
    return short if _drawn_as(short) == "lines" or _drawn_as(whole) == "largest" != _drawn_as(short) else whole


def _regular(axis: Axis, queries: QuerySet, kind: Kind, said: Texts) -> Axis:
    """An axis without the cell of other values, if what is left are numbers or dates."""
    if not kind.has_other or axis.labels[-1] != str(kind.labels[-1]):
        return axis
    labels, low, high, first, last = axis.labels[:-1], axis.low, axis.high, axis.first, axis.last
    if low is None or high is None or first is None or last is None:
        rest = _named(axis.name, queries, labels)
    else:
        rest = replace(axis, labels=labels, low=low[:-1], high=high[:-1], first=first[:-1], last=last[:-1])
    return replace(rest, name=f"{axis.name}, {said.say('without', label=axis.labels[-1])}") if rest.numbered else axis


def axes(product: Product, labels: Sequence[Sequence[str | int]]) -> tuple[Axis, ...]:
    """One axis an attribute."""
    pairs = zip(product.attributes, product.query_sets, labels, strict=True)
    return tuple(_axis(name, queries, product.domain.kind(name), own) for name, queries, own in pairs)


def ends(queries: QuerySet, kind: Kind) -> tuple[FloatArray, FloatArray] | None:
    """Where each query along a number begins and ends: ``low`` is in it, and so are numbers up to ``high``."""
    edges = _edges(kind)
    if edges is None or not queries.form.intervals:
        return None
    first, last = edges
    ends = interval_ends(queries.operator("", kind))
    return None if ends is None else (first[ends[0]], last[ends[1]])


def moment(label: str) -> str | None:
    """The first day or hour of a period in ISO form; None for what is no period."""
    found = _PERIOD.fullmatch(label)
    if found is None:
        return None
    year, quarter, week, month, day, hour = (None if part is None else int(part) for part in found.groups())
    try:
        if week is not None:
            return dt.date.fromisocalendar(year or 1, week, 1).isoformat()
        date = dt.date(year or 1, month or 3 * (quarter or 1) - 2, day or 1).isoformat()
    except ValueError:
        return None
    return date if hour is None else f"{date}T{hour:02d}:00"


def _edges(kind: Kind) -> tuple[FloatArray, FloatArray] | None:
    """The first and the last number of every cell; NaN for the cell of other values."""
    if isinstance(kind, (Bins, Edges)):
        edges = np.array([float(edge) for edge in kind.edges])
        low, high = edges[:-1], edges[1:]
    elif isinstance(kind, Integers):
        low = high = np.arange(kind.low, kind.high + 1, dtype=float)
    elif isinstance(kind, Decimals):
        low = high = np.array([float(value) for value in kind.values])
    else:
        return None
    rest = np.full(kind.size - len(low), np.nan)
    return np.concatenate([low, rest]), np.concatenate([high, rest])


def _axis(name: str, queries: QuerySet, kind: Kind, labels: Sequence[str | int]) -> Axis:
    own = tuple(str(label) for label in labels)
    found = ends(queries, kind)
    if found is None:
        return _named(name, queries, own)
    low, high = found
    # a single number is drawn as wide as the step to the next, so that neighbours touch
    step = 1.0 if isinstance(kind, Integers) else float(kind.step) if isinstance(kind, Decimals) else 0.0
    wide = high + step if queries.form.axis == "cells" else high
    return Axis(name=name, labels=own, kind=queries.form.axis, low=low, high=wide, first=low, last=high)


def _named(name: str, queries: QuerySet, labels: tuple[str, ...]) -> Axis:
    """Dates in their order, or else names."""
    moments = [moment(label.removeprefix("<= ")) for label in labels]
    if queries.form.axis != "spans" and len(labels) > 2 and None not in moments and len(labels[0]) > 4:
        return Axis(name=name, labels=labels, kind="times", moments=tuple(str(one) for one in moments))
    return Axis(name=name, labels=labels)
