"""The rows of the conformance kit of charts: axes and pictures of every kind.

A chart in its own file has its rows in its own file too: ``pictures_NAME.py`` beside this
one, with a dictionary ``AXES``.
"""

from importlib import import_module
from pathlib import Path

import numpy as np

from leastnoise._charts import Axis, Picture


def names(name, *labels):
    return Axis(name=name, labels=labels)


def cells(name, low, high):
    """Return an axis of whole numbers."""
    ends = np.arange(low, high + 2.0)
    return Axis(
        name=name,
        labels=tuple(str(n) for n in range(low, high + 1)),
        kind="cells",
        low=ends[:-1],
        high=ends[1:],
    )


def up_to(name, count, width):
    """Return an axis of cells up to each value."""
    ends = width * np.arange(count + 1.0)
    labels = tuple(f"< {end:g}" for end in ends[1:])
    return Axis(name=name, labels=labels, kind="up_to", low=ends[:-1], high=ends[1:])


def months(name, count):
    """Return an axis of months from 2024 on."""
    return Axis(
        name=name,
        labels=tuple(f"{2024 + n // 12}-{n % 12 + 1:02d}" for n in range(count)),
        kind="times",
    )


SEX = names("sex", "F", "M")
REGION = names("region", *(f"Region {n}" for n in range(12)))
EDUCATION = names("education", "none", "primary", "secondary", "bachelor", "master")
STORE = names("store", *(f"Store {n:03d}" for n in range(300)))
ODD = names('<b>a & "b"</b>', "<script>alert(1)</script>", "x" * 200, "")


def picture(axes, level=1000.0, spread=30.0, seed=0):
    """Return a picture of invented answers around a level."""
    random = np.random.default_rng(seed)
    answer = level + random.normal(0, spread, tuple(axis.size for axis in axes))
    return Picture(
        name=" x ".join(axis.name for axis in axes),
        axes=axes,
        answer=answer,
        low=answer - spread,
        high=answer + spread,
        unit="rows",
    )


AXES = {
    "bars": [(SEX,), (REGION,), (ODD,), (cells("children", 0, 5),), (names("one", "only"),)],
    "lines": [
        (up_to("income", 500, 500),),
        (up_to("income", 3, 500),),
        (SEX, up_to("income", 80, 500)),
        (months("month", 24), SEX),
        (months("month", 24),),
        (months("month", 3),),
    ],
    "panels": [
        (REGION, months("month", 24)),
        (SEX, months("month", 24), EDUCATION),
        (REGION, months("month", 24), SEX),
    ],
    "steps": [(cells("age", 18, 97),)],
    "multiples": [
        (SEX, cells("age", 18, 97)),
        (cells("age", 18, 97), REGION),
        (SEX, REGION),
        (ODD, EDUCATION),
    ],
    "heat": [
        (REGION, EDUCATION),
        (cells("age", 18, 97), cells("year", 1990, 2020)),
        (months("month", 24), cells("x", 0, 63)),
    ],
    "largest": [(STORE,), (STORE, months("month", 12)), (SEX, REGION, EDUCATION)],
}
AXES |= {
    chart: rows
    for path in sorted(Path(__file__).parent.glob("pictures_*.py"))
    for chart, rows in import_module(f"charts.{path.stem}").AXES.items()
}


def pictures():
    """Return the name of the chart and a picture that it must draw."""
    return [(name, picture(axes)) for name, rows in AXES.items() for axes in rows]
