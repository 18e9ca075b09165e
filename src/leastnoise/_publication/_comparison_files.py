"""Write a comparison for readers: its pages, and its table as CSV and JSON."""

import json
import math
from collections.abc import Sequence
from os import PathLike
from typing import Any

from leastnoise._pages import (
    COMPARISON_CSV,
    COMPARISON_JSON,
    ComparisonResult,
    ComparisonView,
    catalogue_of,
    comparison_page_file,
    describe_definition,
    list_page_languages,
    list_page_notes,
    name_protected_unit,
    render_comparison_page,
    without_suppressed,
)
from leastnoise._publication._directory import check_target, open_draft
from leastnoise._release import Release, write_rows
from leastnoise._texts import Catalogue
from leastnoise._trusted.check import refuse


def write_comparison(
    comparison: ComparisonResult,
    out: str | PathLike[str],
    *,
    language: str = "",
    labels: Sequence[str] = (),
) -> None:
    """Write the pages of a comparison for readers, and its table as CSV and JSON.

    Args:
        comparison: the result of `leastnoise.compare_releases`, `leastnoise.compare_groups` or
            `leastnoise.ab_test`, of releases.
        out: the folder to write, which must not exist yet. It gets ``comparison.html`` in the main
            language, ``comparison.de.html`` and so on in the other languages of the releases,
            ``comparison.csv`` and ``comparison.json``.
        language: the main language, such as ``de``; empty for the language of the first release.
        labels: short names of two releases, such as ``["2025", "2024"]``. If they are missing, the
            words in which the titles of the releases differ are used.

    Raises:
        InputError: the comparison is of estimates; the folder exists; or there is no such language.

    Guarantees: the function only post-processes published numbers, so it costs nothing. Numbers
        that a release suppresses are left out, and so are differences from them.

    >>> domain = ln.Domain(sex=["F", "M"])
    >>> plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1))
    >>> years = [pd.DataFrame({"sex": ["F"] * rows + ["M"] * 300}) for rows in (400, 500)]
    >>> last, this = (ln.release(plan, year, seed=seed) for seed, year in enumerate(years))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     change = ln.compare_releases(this, last, by=["sex"])
    ...     ln.write_comparison(change, f"{folder}/change", labels=["2025", "2024"])
    ...     sorted(os.listdir(f"{folder}/change"))
    ['comparison.csv', 'comparison.html', 'comparison.json']
    """
    comparison = without_suppressed(comparison)
    short_names = check_labels(comparison, labels)
    target = check_target(out)
    languages = list_page_languages(comparison, language)
    with open_draft(target) as draft:
        folder = draft.path
        views = [
            ComparisonView(
                comparison=comparison, catalogue=catalogue_of(comparison, each), labels=short_names
            )
            for each in languages
        ]
        for view in views:
            name = comparison_page_file(view.catalogue.language, languages[0])
            page = render_comparison_page(view, languages)
            (folder / name).write_text(
                page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n"
            )
        columns = comparison.columns()
        write_rows(
            folder / COMPARISON_CSV,
            columns,
            zip(*(values.tolist() for values in columns.values()), strict=True),
        )
        text = json.dumps(comparison_json(views[0]), indent=2, ensure_ascii=False, allow_nan=False)
        (folder / COMPARISON_JSON).write_text(f"{text}\n", encoding="utf-8", errors="replace")
        draft.publish()


def check_labels(comparison: ComparisonResult, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the short names of two releases; raise InputError if they are wrong."""
    names = tuple(labels)
    if not names:
        return ()
    are_texts = all(isinstance(name, str) and name.strip() for name in names)
    if isinstance(labels, str) or not are_texts or len({*names}) != 2 or len(names) != 2:
        raise refuse("labels", labels, 'two different texts, such as ["2025", "2024"]')
    if comparison.subject.along:
        raise refuse(
            "labels", labels, "left out: the groups of one release have names of their own"
        )
    return names


def comparison_json(view: ComparisonView) -> dict[str, Any]:
    """Return a comparison as a JSON object: titles, budgets, rows and notes."""
    comparison = view.comparison
    return {
        "title": view.title,
        "language": view.catalogue.language,
        "level": comparison.level,
        "joint": comparison.is_joint,
        "names": {"first": [*view.names.first], "against": view.names.against},
        "releases": [_release_json(release, view.catalogue) for release in view.releases],
        "rows": list_json_rows(comparison),
        "notes": [*view.explanations, *list_page_notes(view)],
    }


def _release_json(release: Release, catalogue: Catalogue) -> dict[str, Any]:
    """Return the facts about a release as a JSON object."""
    definition, parameters = describe_definition(release.privacy, catalogue)
    return {
        **{
            name: release.options.text(name, catalogue.language)
            for name in ("title", "source", "agency")
        },
        "definition": definition,
        "budget": parameters,
        "unit": name_protected_unit(release.privacy, catalogue),
        "private": release.private,
        "plan": release.plan_digest,
    }


def list_json_rows(comparison: ComparisonResult) -> list[dict[str, Any]]:
    """Return the rows of a comparison as dictionaries; None for NaN and infinity."""
    columns = {name: values.tolist() for name, values in comparison.columns().items()}
    rows = []
    for numbers in zip(*columns.values(), strict=True):
        row = dict(zip(columns, numbers, strict=True))
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
        rows.append(row)
    return rows
