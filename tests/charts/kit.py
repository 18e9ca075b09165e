"""The rows of the conformance kit of charts: the axes of pictures that each chart must draw.

If a chart has its own file, its rows are in a file ``pictures_NAME.py`` of this folder, in a
dictionary ``AXES``. It may use the functions of ``charts.axes``.
"""

from importlib import import_module
from pathlib import Path

from charts.axes import EDUCATION, ODD, REGION, SEX, STORE, cells, months, names, picture, up_to

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
