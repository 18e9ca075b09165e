"""The largest cells with intervals: for tables that are too large to draw."""

import numpy as np

from leastnoise._charts._bars import bars_of
from leastnoise._charts._picture import Picture, Spec, short
from leastnoise._charts._style import tips

SHOWN = 20


def suits(picture: Picture) -> bool:
    """Any table with a key."""
    return bool(picture.axes)


def draw(picture: Picture) -> Spec:
    """Bars for the largest answers, the largest first."""
    flat = picture.answer.reshape(-1)
    places = np.argsort(-flat, kind="stable")[:SHOWN]
    rows = []
    for place in places.tolist():
        index = np.unravel_index(place, picture.answer.shape)
        a, b, c = (float(values[index]) for values in (picture.answer, picture.low, picture.high))
        key = ", ".join(axis.labels[int(at)] for axis, at in zip(picture.axes, index, strict=True))
        rows.append({"k0": key, "answer": short(a), "low": short(b), "high": short(c), "said": picture.value(a, c - a)})
    return bars_of(picture, rows, "", tips(("k0", picture.name)))
