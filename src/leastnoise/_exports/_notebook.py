"""A notebook that begins to work with a release: for Quarto as text, for Jupyter as a notebook; one definition of both."""

import json
from dataclasses import dataclass
from typing import Any

from leastnoise._exports._export import Export, Published


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a notebook: code, or text in Markdown."""

    code: bool
    text: str


def _cells(published: Published) -> list[Cell]:
    release, manifest = published.release, published.manifest
    first = release.tables[0]
    wide = next((table for table in release.tables[:200] if table.labels), None)
    warning = [] if release.private else [Cell(code=False, text=f"**{manifest['warning']}**")]
    place, name = json.dumps(published.place, ensure_ascii=False), json.dumps(first.id)
    cells = [
        Cell(code=False, text=f"{manifest['privacy']['promise']}\n\n{manifest['intervals']['method']}"),
        Cell(code=True, text=f"import leastnoise as ln\n\nrelease = ln.read_release({place})\nrelease"),
        Cell(code=False, text="## One table, with its errors\n\n`low` to `high` is the interval, `noise_std` the standard error."),
        Cell(code=True, text=f"table = release.frame({name})\ntable"),
    ]
    if wide is not None:
        cells.append(Cell(code=True, text=f"release.plot({json.dumps(wide.id)})"))
    if len(release.statistics):
        cells += [
            Cell(code=False, text="## Means, quantiles, distribution functions"),
            Cell(code=True, text="release.statistics[0].frame()"),
        ]
    if release.finding.further:
        said = "## A sum of its cells\n\nAnswers share noise, so errors of sums are asked for, not added up."
        cells += [Cell(code=False, text=said), Cell(code=True, text=f"release.sum({name})")]
    left_out = "\n".join(f"- {text}" for text in manifest["intervals"]["does_not_cover"])
    return [*warning, *cells, Cell(code=False, text=f"## What the intervals leave out\n\n{left_out}")]


def quarto(published: Published) -> str:
    """The notebook as a Quarto document."""
    parts = ['---\ntitle: "FILL IN"\nformat: html\njupyter: python3\n---']
    parts += [f"```{{python}}\n{cell.text}\n```" if cell.code else cell.text for cell in _cells(published)]
    return "\n\n".join(parts) + "\n"


def notebook(published: Published) -> str:
    """The notebook for Jupyter, nbformat 4.5."""
    cells = []
    for number, cell in enumerate([Cell(code=False, text="# FILL IN"), *_cells(published)], 1):
        common = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        code: dict[str, Any] = {"cell_type": "code", "execution_count": None, "outputs": []}
        cells.append(common | (code if cell.code else {"cell_type": "markdown"}))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


QUARTO = Export("quarto", ".qmd", "a Quarto document to work with the release", quarto)
NOTEBOOK = Export("notebook", ".ipynb", "the same as a Jupyter notebook", notebook)
