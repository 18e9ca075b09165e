"""A notebook that begins to work with a release, for Jupyter; Quarto renders it too."""

import json
from collections.abc import Iterator
from typing import Any

from leastnoise._exports._export import FILL_IN, Export, Published


def notebook(published: Published) -> str:
    """The notebook, nbformat 4.5."""
    cells: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(_cells(published), 1):
        code: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
        cells.append({"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **code})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


def _cells(published: Published) -> Iterator[tuple[str, str]]:
    """The kind and the text of every cell."""
    release, manifest = published.release, published.manifest
    directory, first = json.dumps(published.place, ensure_ascii=False), json.dumps(release.tables[0].id)
    drawn = next((table for table in release.tables[:200] if table.labels), None)
    yield "markdown", f"# {FILL_IN}"
    if not release.private:
        yield "markdown", f"**{manifest['warning']}**"
    yield "markdown", f"{manifest['privacy']['promise']}\n\n{manifest['intervals']['method']}"
    yield "code", f"import leastnoise as ln\n\nrelease = ln.read_release({directory})\nrelease"
    yield "markdown", "## One table, with its errors\n\n`low` to `high` is the interval, `noise_std` the standard error."
    yield "code", f"table = release.frame({first})\ntable"
    if drawn is not None:
        yield "code", f"release.plot({json.dumps(drawn.id)})"
    if len(release.statistics):
        yield "markdown", "## Means, quantiles, distribution functions"
        yield "code", "release.statistics[0].frame()"
    if release.finding.further:
        yield "markdown", "## A sum of its cells\n\nAnswers share noise, so errors of sums are asked for, not added up."
        yield "code", f"release.sum({first})"
    yield "markdown", "## What the intervals leave out\n\n" + "\n".join(f"- {text}" for text in manifest["intervals"]["does_not_cover"])


NOTEBOOK = Export("notebook", ".ipynb", "a Jupyter notebook to work with the release", notebook)
