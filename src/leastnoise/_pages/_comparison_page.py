"""Write the page of a comparison.

The page shows differences of two releases, or of groups of one release, for readers of statistics.
Each language has its own page.
"""

from collections.abc import Sequence

import numpy as np

from leastnoise._charts import choose_chart, draw_chart, draw_dots, has_marked_intervals, render_svg
from leastnoise._domain import Dates
from leastnoise._estimation import ABTest
from leastnoise._pages import _sentences as sentences
from leastnoise._pages._comparison_view import ComparisonResult, ComparisonView, releases_of
from leastnoise._pages._report import (
    chart_scale_keys,
    describe_picture,
    describe_protected_unit,
)
from leastnoise._plan import versions
from leastnoise._release import Options, Release
from leastnoise._texts import (
    LANGUAGES,
    TEMPLATES,
    Catalogue,
    attribute_heading,
    fill_template,
    load_catalogue,
)
from leastnoise._trusted.check import one_of

COMPARISON_CSV = "comparison.csv"
COMPARISON_JSON = "comparison.json"
_MOST_ROWS = 500  # groups in the table of the page; the files have all


def comparison_page_file(language: str, main_language: str) -> str:
    """Return the file name of the comparison page in a language.

    >>> comparison_page_file("de", "en")
    'comparison.de.html'
    """
    return "comparison.html" if language == main_language else f"comparison.{language}.html"


def list_page_languages(comparison: ComparisonResult, language: str = "") -> tuple[str, ...]:
    """Return the languages of a comparison's pages, with the main language first.

    These are the languages that all releases have, or else the languages of the first release.

    Args:
        comparison: the differences or the A/B test.
        language: the main language; empty for the main language of the first release.
    """
    first, *others = (release.options.languages for release in releases_of(comparison))
    common = [each for each in first if all(each in languages for languages in others)]
    chosen = [one_of("language", language, LANGUAGES)] if language else []
    return tuple(dict.fromkeys([*chosen, *(common or first)]))


def list_page_files(comparison: ComparisonResult, language: str = "") -> list[str]:
    """Return the file names of a comparison's pages, main language first."""
    languages = list_page_languages(comparison, language)
    return [comparison_page_file(each, languages[0]) for each in languages]


def catalogue_of(comparison: ComparisonResult, language: str) -> Catalogue:
    """Return the texts of a language, with the names of the first release."""
    return releases_of(comparison)[0].options.catalogue(language, scaled=True)


def list_page_notes(view: ComparisonView) -> list[str]:
    """Return sentences on which errors the intervals cover and which they omit."""
    return [
        *_list_warnings(view),
        *view.coverage_notes,
        *_list_uncovered(view),
        *view.table_notes,
    ]


def _list_warnings(view: ComparisonView) -> list[str]:
    """Return the warning that survey intervals lack the sampling error, if any."""
    has_sampling_error = view.has_samples or isinstance(view.comparison, ABTest)
    are_surveys = any(
        release.options.survey or sentences.has_weights(release) for release in view.releases
    )
    if are_surveys and not has_sampling_error:
        return [view.catalogue.say("cmp_no_sampling")]
    return []


def _list_uncovered(view: ComparisonView) -> list[str]:
    """Return the sentences on errors that intervals do not cover, each once."""
    catalogue = view.catalogue
    notes = _list_notes_of_releases(view)
    has_sampling_error = view.has_samples or isinstance(view.comparison, ABTest)
    if not has_sampling_error:
        notes.append(catalogue.say("limit_sample"))
    if view.comparison.subject.quantity.kind in ("mean", "sum"):
        notes.append(catalogue.say("limit_sums"))
    if any(release.options.round is not None for release in view.releases):
        notes.append(catalogue.say("cmp_unrounded_page"))
    return notes


def _list_notes_of_releases(view: ComparisonView) -> list[str]:
    """Return the sentences on rows that a release leaves out or limits.

    A sentence that is not about all compared releases begins with the name of its release.
    """
    notes_of = [
        [
            *sentences.list_answer_notices(release, view.catalogue),
            *sentences.list_uncovered_rows(release, view.catalogue),
        ]
        for release in view.releases
    ]
    names = [view.names.first[0], view.names.against]
    shown = [note for note in notes_of[0] if all(note in notes for notes in notes_of)]
    common = {*shown}
    for name, notes in zip(names, notes_of, strict=False):
        shown += [f"{name}: {note}" for note in notes if note not in common]
    return list(dict.fromkeys(shown))


def render_comparison_page(view: ComparisonView, languages: Sequence[str]) -> str:
    """Return the page of a comparison as HTML, in the view's language."""
    catalogue = view.catalogue
    is_private = all(release.private for release in view.releases)
    svg, caption = _draw_picture(view)
    rows = view.rows()
    rows_note = ""
    if len(rows) > _MOST_ROWS:
        rows_note = catalogue.say(
            "rows_first", count=_MOST_ROWS, all=len(rows), file=COMPARISON_CSV
        )
    options = view.releases[0].options
    csv_text = "cmp_file_csv_effect" if isinstance(view.comparison, ABTest) else "cmp_file_csv"
    names = view.names.first if len(view.releases) == 1 else (view.names.first[0],)
    return fill_template(
        "comparison.html",
        t=catalogue,
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        view=view,
        private=is_private,
        agency=options.text("agency", catalogue.language),
        contact=options.text("contact", catalogue.language),
        other_languages=_list_other_pages(languages, catalogue.language),
        warnings=_list_warnings(view),
        svg=svg,
        caption=caption,
        keys=len(view.key_headings),
        rows=rows[:_MOST_ROWS],
        rows_note=rows_note,
        uncovered=_list_uncovered(view),
        compared=_list_compared(view, names),
        cost=catalogue.say("cmp_costs_two" if len(view.releases) > 1 else "cmp_costs_one"),
        files=[
            (COMPARISON_CSV, catalogue.say(csv_text)),
            (COMPARISON_JSON, catalogue.say("cmp_file_json")),
        ],
        plans=list(dict.fromkeys(release.plan_digest for release in view.releases)),
        versions=versions(),
    )


def _list_other_pages(languages: Sequence[str], language: str) -> list[tuple[str, str, str]]:
    """Return the code, name and file of the page in each other language."""
    return [
        (each, load_catalogue(each).say("this_language"), comparison_page_file(each, languages[0]))
        for each in languages
        if each != language
    ]


def _list_compared(
    view: ComparisonView, first_names: Sequence[str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the heading and the facts of each compared release."""
    if len(view.releases) == 1:
        sides = [*first_names, view.names.against]
        heading = view.catalogue.join_names([*sides])
        return [(heading, _list_facts(view.releases[0], view.catalogue))]
    headings = [first_names[0], view.names.against]
    return [
        (heading, _list_facts(release, view.catalogue))
        for heading, release in zip(headings, view.releases, strict=True)
    ]


def _list_facts(release: Release, catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return labels and texts of the facts about a compared release."""
    options: Options = release.options
    facts = [
        (catalogue.say(f"cmp_fact_{name}"), options.text(name, catalogue.language))
        for name in ("title", "source", "agency")
    ]
    for name in release.plan.domain.names:
        kind = release.plan.domain.kind(name)
        if isinstance(kind, Dates):
            first, *_, last = (str(kind.regular_labels[position]) for position in (0, -1))
            ends = [catalogue.format_period(label) for label in (first, last)]
            period = catalogue.say("from_to", low=ends[0], high=ends[1])
            facts.append((attribute_heading(name, catalogue), period))
    budget = sentences.format_budget(release.privacy, catalogue)
    definition, _ = sentences.describe_definition(release.privacy, catalogue)
    facts += [
        (catalogue.say("s_budget"), f"{budget} ({definition})"),
        (catalogue.say("h_about"), describe_protected_unit(release, catalogue)),
    ]
    return [(label, text) for label, text in facts if text]


def _draw_picture(view: ComparisonView) -> tuple[str, str]:
    """Return the picture of the differences as SVG, and its caption.

    Both are empty if there is one difference only, or if no pictures can be drawn.
    """
    catalogue = view.catalogue
    percent = catalogue.format_percent(view.comparison.level)
    picture = view.lines()
    chart = None if picture is None else choose_chart(picture)
    if picture is not None and chart is not None and chart.draws_changes:
        spec = draw_chart(picture)
        description = describe_picture(picture, catalogue)
        keys = [f"how_{chart.name}", *chart_scale_keys(chart.name, picture)]
        notes = [catalogue.say(key, percent=percent) for key in keys]
    else:
        plot = view.dots()
        if plot is None:
            return "", ""
        spec = draw_dots(plot)
        description = _describe_dots(view)
        notes = [catalogue.say("how_dots", percent=percent), catalogue.say("cmp_zero")]
        if has_marked_intervals(spec):
            notes.append(catalogue.say("how_dots_marked"))
        if view.shown_dots < view.published:
            shown = {"count": view.shown_dots, "all": view.published}
            notes.append(catalogue.say("cmp_largest", **shown))
    if spec is None:
        return "", ""
    (svg,) = render_svg([spec], [("c-differences", view.title, description)], catalogue.language)
    if svg is None:
        return "", ""
    return svg, " ".join(notes)


def _describe_dots(view: ComparisonView) -> str:
    """Describe the picture in words, by the largest and the smallest difference."""
    changes = view.comparison.numbers["difference"].reshape(-1)
    rows = view.rows()
    keys = len(view.key_headings)
    ends = []
    for position in (int(np.nanargmax(changes)), int(np.nanargmin(changes))):
        row = rows[position]
        ends.append((", ".join(row[:keys]), f"{row[keys + 2]} ({row[keys + 3]})"))
    (top, most), (bottom, least) = ends
    return view.catalogue.say(
        "cmp_alt",
        name=view.title,
        count=view.published,
        top=top,
        most=most,
        bottom=bottom,
        least=least,
    )
