"""Axes and pictures of every kind, for the tests of charts."""

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
