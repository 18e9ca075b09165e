"""Write the utility page.

The page compares records with their release.
"""

import math
from collections.abc import Iterator
from itertools import product as combine
from pathlib import Path
from typing import NamedTuple

import numpy as np

from leastnoise._release import AnswerTable, Records, Release
from leastnoise._texts import (
    TEMPLATES,
    Catalogue,
    fill_template,
    load_catalogue,
    name_attribute,
    table_format,
    table_title,
)
from leastnoise._trusted.check.arrays import FloatArray

_MOST_TABLES = 200  # tables that the page lists; a choice of layout
_MOST_CELLS = 40  # the largest cells of each table
_CLOSE_MARGINS = 1.0  # in margins: a released answer is about this close to the true answer
_USABLE_MARGINS = 2.0  # in margins: beyond it, the records contradict the release


class CellView(NamedTuple):
    """The texts of a cell: labels, released answer and the records' answer."""

    label: str
    released: str
    records: str


class TableComparison(NamedTuple):
    """The texts that compare a table of the release with the records.

    Attributes:
        number: the number of the table on the page.
        title: the title of the table.
        answers: the number of answers.
        difference: the root mean square of the differences between released answers and the
            records' answers.
        margin: the typical margin of the released answers.
        judgement: the sentence on whether the records can replace the table.
        cells: the largest cells.
        cells_note: a sentence with the number of cells that are left out; an empty text if no cells
            are left out.
    """

    number: int
    title: str
    answers: str
    difference: str
    margin: str
    judgement: str
    cells: tuple[CellView, ...]
    cells_note: str


def utility_file(path: Path, language: str, main_language: str) -> Path:
    """Return the path of the utility page of a language.

    >>> utility_file(Path("people.html"), "de", "en").name
    'people.de.html'
    """
    if language == main_language:
        return path
    return path.with_name(f"{path.stem}.{language}{path.suffix}")


def render_utility_page(records: Records, release: Release, path: Path, language: str) -> str:
    """Return the utility page of synthetic records as self-contained HTML.

    Args:
        records: the records.
        release: the release from which they come.
        path: the path of the page in the main language.
        language: the language of this page.
    """
    catalogue = release.options.catalogue(language)
    main_language = release.options.languages[0]
    others = [
        (
            load_catalogue(other).say("this_language"),
            other,
            utility_file(path, other, main_language),
        )
        for other in release.options.languages
        if other != language
    ]
    compared = [table for table in release.tables if records.answers(table.product) is not None]
    views = tuple(
        _compare_table(number, table, records, catalogue)
        for number, table in enumerate(compared[:_MOST_TABLES], start=1)
    )
    return fill_template(
        "utility.html",
        t=catalogue,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        private=release.private,
        is_survey=bool(release.options.survey),
        others=[(name, other, file.name) for name, other, file in others],
        lead=_format_lead(records, catalogue),
        sentences=tuple(_unit_sentences(records, catalogue)),
        views=views,
        left_out=len(release.tables) - len(compared),
        further=len(compared) - len(views),
    )


def _format_lead(records: Records, catalogue: Catalogue) -> str:
    """Return a sentence with the number of records and their attributes."""
    names = [name_attribute(name, catalogue) for name in records.names]
    attributes = catalogue.join_names(names)
    return catalogue.say("utility_lead", rows=len(records.codes), attributes=attributes)


def _unit_sentences(records: Records, catalogue: Catalogue) -> Iterator[str]:
    """Yield sentences on units and weights of the records."""
    for column, units in records.units.items():
        rows_of_units = np.unique(units, return_counts=True)[1]
        yield catalogue.say(
            "utility_units",
            column=column,
            units=len(rows_of_units),
            mean=catalogue.format_value(round(float(rows_of_units.mean()), 2)),
            largest=int(rows_of_units.max()),
        )
        yield from _relation_sentences(records, catalogue)
    for name in records.weights:
        yield catalogue.say("utility_weights", name=name)


def _relation_sentences(records: Records, catalogue: Catalogue) -> Iterator[str]:
    """Yield sentences on how the records of a unit are related."""
    for key, names in (
        ("utility_shared", records.shared),
        ("utility_arranged", records.arranged),
        ("utility_independent", _unrelated_names(records)),
    ):
        if names:
            listed = catalogue.join_names([name_attribute(name, catalogue) for name in names])
            yield catalogue.say(key, names=listed)


def _unrelated_names(records: Records) -> list[str]:
    """Return the attributes that are independent among the records of a unit."""
    related = {*records.shared, *records.arranged}
    return [name for name in records.names if name not in related]


def _compare_table(
    number: int, table: AnswerTable, records: Records, catalogue: Catalogue
) -> TableComparison:
    """Return the texts that compare a table of the release with the records."""
    differences = records.differences(table)
    if differences is None:
        raise ValueError("the records cannot answer the table")
    catalogue = catalogue.with_format(table_format(table.product, catalogue))
    difference = records.distance(table)
    margin = table.typical_noise_margin  # records come from this sample
    return TableComparison(
        number=number,
        title=table_title(table.product, catalogue),
        answers=catalogue.format_value(table.answer.size),
        difference=catalogue.format_error(difference),
        margin=catalogue.format_error(margin),
        judgement=catalogue.say(_rate_difference(difference, margin)),
        cells=tuple(_list_cell_views(table, differences, catalogue)),
        cells_note=_describe_omitted_cells(table, catalogue),
    )


def _rate_difference(difference: float, margin: float) -> str:
    """Return the text key that rates whether records can replace a table."""
    if math.isnan(margin) or math.isnan(difference):
        return "utility_unknown"
    if difference <= _CLOSE_MARGINS * margin:
        return "utility_close"
    if difference <= _USABLE_MARGINS * margin:
        return "utility_usable"
    return "utility_far"


def _list_cell_views(
    table: AnswerTable, differences: FloatArray, catalogue: Catalogue
) -> Iterator[CellView]:
    """Yield the cells with the largest released answers, in table order."""
    answers = table.answer.reshape(-1)
    margins = table.margins.reshape(-1)
    labels = [", ".join(pair) for pair in combine(*table.display_labels)]
    largest = np.argsort(-np.nan_to_num(answers), kind="stable")[:_MOST_CELLS]
    for position in sorted(largest.tolist()):
        answer = float(answers[position])
        margin = float(margins[position])
        yield CellView(
            label=labels[position] or catalogue.say("in_total"),
            released=catalogue.format_answer(answer, margin),
            records=catalogue.format_number(answer + float(differences[position]), margin),
        )


def _describe_omitted_cells(table: AnswerTable, catalogue: Catalogue) -> str:
    """Return a sentence on the number of omitted cells, or "" for none."""
    left_out = table.answer.size - _MOST_CELLS
    if left_out <= 0:
        return ""
    return catalogue.say("utility_more_cells", count=left_out)
