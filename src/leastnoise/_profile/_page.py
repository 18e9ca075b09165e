"""Render the page of a profile."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from leastnoise._pages import describe_guessing_chance, describe_promise
from leastnoise._profile._column_cells import FIRST_YEAR, NARROW_WIDTH
from leastnoise._profile._findings import ColumnFindings, ProfileFindings
from leastnoise._profile._profile_draft import DRAFT_FILE
from leastnoise._profile._request import RELEASE_FOLDER, SPEC_FILE, UNIT_SIZE_FOLDER, ProfilePlan
from leastnoise._profile._share_intervals import EstimateInterval
from leastnoise._profile._unit_sizes import LimitEffect, UnitSizes
from leastnoise._release import Release
from leastnoise._texts import LANGUAGES, TEMPLATES, Catalogue, load_catalogue, load_templates

_MOST_BARS = 40  # bars of a column: its largest cells, in the order of the column
_SHARE_DECIMALS = 3  # shares are shown in tenths of a percent
_TEMPLATES = Path(__file__).with_name("templates")


class Bar(NamedTuple):
    """The texts that the page shows for a cell.

    Attributes:
        label: the label of the cell.
        width: the width of the bar, in percent of the widest bar.
        rows: the number of rows, with its margin.
    """

    label: str
    width: int
    rows: str


class ColumnView(NamedTuple):
    """The texts that the page shows for a column.

    Attributes:
        number: the number of the column on the page, for links.
        name: the name of the column.
        kind: the kind of content, in the language of the page.
        summary: quartiles, range or number of categories.
        missing: the share of missing values.
        unreadable: the share of values that fit no cell.
        note: a warning, or an empty text.
        bars: the texts of the occupied cells.
        hidden_note: a sentence on how many cells are hidden, and why; an empty text if no cell is
            hidden.
    """

    number: int
    name: str
    kind: str
    summary: str
    missing: str
    unreadable: str
    note: str
    bars: tuple[Bar, ...]
    hidden_note: str


class SizeBar(NamedTuple):
    """The texts that the page shows for a cell of units by size.

    Attributes:
        label: the numbers of rows of the units in the cell.
        width: the width of the bar, in percent of the widest bar.
        units: the number of units, with its margin.
        cut_units: the share of the units with more rows.
        cut_rows: the share of the rows that a limit at the upper end of the cell cuts.
    """

    label: str
    width: int
    units: str
    cut_units: str
    cut_rows: str


class UnitView(NamedTuple):
    """The texts that the page shows for the sizes of units.

    Attributes:
        sentences: sentences on the number of units, the mean size, and the drafted limit.
        bars: the texts of the occupied cells.
        hidden_note: a sentence on how many cells are hidden, and why; an empty text if no cell is
            hidden.
    """

    sentences: tuple[str, ...]
    bars: tuple[SizeBar, ...]
    hidden_note: str


def page_file(language: str) -> str:
    """Return the file name of the page of a language."""
    return "profile.html" if language == "en" else f"profile.{language}.html"


def render_page(
    plan: ProfilePlan, findings: ProfileFindings, release: Release, catalogue: Catalogue
) -> str:
    """Return the page of a profile as self-contained HTML.

    Args:
        plan: the tables of the profile.
        findings: the findings about the columns.
        release: the release that measured them.
        catalogue: the sentences of the language.
    """
    views = [
        _view_column(number, column, catalogue)
        for number, column in enumerate(findings.by_column().values(), start=1)
    ]
    rows = findings.rows
    privacy = plan.request.privacy()
    other_pages = [
        (load_catalogue(language).say("this_language"), language, page_file(language))
        for language in LANGUAGES
        if language != catalogue.language
    ]
    left_out = [
        column.name
        for column in plan.columns.listed
        if column.left_out and column.name != plan.request.unit_column
    ]
    text = (
        load_templates(_TEMPLATES)
        .get_template("profile.html")
        .render(
            t=catalogue,
            style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
            private=release.private,
            has_rows=findings.has_rows,
            rows=catalogue.format_answer(rows.value, rows.margin),
            units=_view_units(plan, findings, catalogue),
            views=views,
            columns=len(views),
            promise=describe_promise(privacy, catalogue),
            chance=describe_guessing_chance(privacy, catalogue),
            cost=_cost_text(plan),
            left_out=catalogue.join_names(left_out),
            others=other_pages,
            draft_file=DRAFT_FILE,
            spec_file=SPEC_FILE,
            release_folder=RELEASE_FOLDER,
        )
    )
    return str(text)


def _cost_text(plan: ProfilePlan) -> str:
    """Return the budget of a profile as text."""
    request = plan.request
    if request.delta is None:
        return f"epsilon = {request.epsilon}"
    return f"epsilon = {request.epsilon}, delta = {request.delta}"


def _view_units(
    plan: ProfilePlan, findings: ProfileFindings, catalogue: Catalogue
) -> UnitView | None:
    """Return the page's texts on unit sizes; None if each row is a unit."""
    sizes = findings.unit_sizes
    if sizes is None:
        return None
    sentences = tuple(_unit_sentences(plan, sizes, catalogue))
    if not sizes.has_units:
        return UnitView(sentences, (), "")
    bars = tuple(_size_bars(sizes, catalogue))
    hidden = len(sizes.cells) - len(bars)
    hidden_note = ""
    if hidden:
        units = round(sizes.threshold)
        hidden_note = catalogue.say("profile_units_hidden", count=hidden, units=units)
    return UnitView(sentences, bars, hidden_note)


def _unit_sentences(plan: ProfilePlan, sizes: UnitSizes, catalogue: Catalogue) -> Iterator[str]:
    """Yield sentences on the number of units, the mean size and the row limit."""
    count_text = catalogue.say(
        "profile_units_counted", limit=plan.request.max_rows, folder=UNIT_SIZE_FOLDER
    )
    if not sizes.has_units:
        yield catalogue.say("profile_units_too_noisy")
        yield count_text
        return
    yield catalogue.say(
        "profile_units",
        column=plan.request.unit_column,
        units=catalogue.format_answer(sizes.units.value, sizes.units.margin),
        mean=_format_quartile(sizes.mean_rows, catalogue),
    )
    if sizes.units_beyond.high >= 1:
        yield catalogue.say(
            "profile_units_beyond",
            count=math.floor(sizes.units_beyond.high),
            largest=sizes.largest,
        )
    effect = sizes.draft_effect
    yield catalogue.say(
        "profile_units_limit",
        limit=effect.max_rows,
        units=_format_share(effect.cut_units, catalogue),
        rows=_format_cut_rows(effect, catalogue),
    )
    yield count_text


def _size_bars(sizes: UnitSizes, catalogue: Catalogue) -> Iterator[SizeBar]:
    """Yield the page's texts for each occupied cell of unit sizes."""
    effects = {effect.max_rows: effect for effect in sizes.limits}
    top = max((float(sizes.counts[position]) for position in sizes.shown_cells), default=1.0)
    for position in sizes.shown_cells:
        first, last = sizes.cells[position]
        count = float(sizes.counts[position])
        effect = effects.get(last)
        yield SizeBar(
            label=size_label(first, last, catalogue),
            width=max(1, round(100 * count / top)),
            units=catalogue.format_answer(count, float(sizes.margins[position])),
            cut_units="" if effect is None else _format_share(effect.cut_units, catalogue),
            cut_rows="" if effect is None else _format_cut_rows(effect, catalogue),
        )


def _format_cut_rows(effect: LimitEffect, catalogue: Catalogue) -> str:
    """Describe the share of rows that a limit cuts, if it is known."""
    if effect.cut_rows is None:
        return catalogue.say("profile_unit_unknown")
    return _format_share(effect.cut_rows, catalogue)


def size_label(first: int, last: int, catalogue: Catalogue) -> str:
    """Return the label of a cell of unit sizes, such as "6 to 7"."""
    if first == last:
        return catalogue.format_value(last)
    return catalogue.say("profile_unit_range", first=first, last=last)


def _view_column(number: int, column: ColumnFindings, catalogue: Catalogue) -> ColumnView:
    """Return the texts that the page shows for a column."""
    is_shown = column.describes_values
    bars = tuple(_make_bars(column, catalogue)) if is_shown else ()
    hidden = len(column.labels) - len(bars)
    hidden_note = ""
    if hidden:
        hidden_note = catalogue.say("profile_hidden", count=hidden, rows=round(column.threshold))
    return ColumnView(
        number=number,
        name=column.measured.column.name,
        kind=catalogue.say(f"profile_kind_{column.measured.kind}"),
        summary=summarize_column(column, catalogue),
        missing=_format_share(column.missing_share, catalogue),
        unreadable=_format_share(column.unreadable_share, catalogue),
        note=_describe_misfit(column, catalogue),
        bars=bars,
        hidden_note=hidden_note,
    )


def _describe_misfit(column: ColumnFindings, catalogue: Catalogue) -> str:
    """Return a warning if a column cannot be described, or ""."""
    if not column.fits_type and column.measured.is_searched:
        return catalogue.say("profile_misfit_text")
    if not column.fits_type:
        return catalogue.say(f"profile_misfit_{column.measured.kind}")
    if column.is_too_noisy:
        return catalogue.say("profile_too_noisy", rows=round(column.threshold))
    return ""


def _format_share(share: EstimateInterval, catalogue: Catalogue) -> str:
    """Return a share with the ends of its interval."""
    value, low, high = (
        catalogue.format_percent(round(number, _SHARE_DECIMALS))
        for number in (share.value, share.low, share.high)
    )
    return catalogue.say("profile_interval", value=value, low=low, high=high)


def _format_quartile(quartile: EstimateInterval, catalogue: Catalogue) -> str:
    """Return a quartile and the ends of its interval as text."""
    value, low, high = (
        _round_to_grid(number) for number in (quartile.value, quartile.low, quartile.high)
    )
    return catalogue.say("profile_interval", value=value, low=low, high=high)


def _round_to_grid(value: float) -> float:
    """Return a number rounded to as many digits as the grid of cells allows."""
    if abs(value) < float(NARROW_WIDTH):
        return 0.0
    return float(f"{value:.3g}" if abs(value) < 10 else f"{value:.4g}")


def summarize_column(column: ColumnFindings, catalogue: Catalogue) -> str:
    """Return a sentence that summarises the findings about a column."""
    if not column.describes_values:
        return _describe_misfit(column, catalogue)
    first, last = column.range_cells
    if column.quartiles:
        quartiles = [_format_quartile(quartile, catalogue) for quartile in column.quartiles]
        low, high = column.bounds
        return catalogue.say(
            "profile_numbers",
            low=low,
            high=high,
            first=quartiles[0],
            median=quartiles[1],
            third=quartiles[2],
        )
    if column.measured.kind == "date":
        years = (str(FIRST_YEAR + position) for position in (first, last))
        return catalogue.say("profile_dates", **dict(zip(("first", "last"), years, strict=True)))
    return catalogue.say_count("profile_categories", len(column.shown_cells))


def _make_bars(column: ColumnFindings, catalogue: Catalogue) -> Iterator[Bar]:
    """Yield the page's texts for occupied cells, at most the forty largest."""
    positions = column.shown_cells
    if len(positions) > _MOST_BARS:
        largest = sorted(positions, key=lambda position: -column.counts[position])
        positions = sorted(largest[:_MOST_BARS])
    top = max(float(column.counts[position]) for position in positions)
    for position in positions:
        count = float(column.counts[position])
        yield Bar(
            _cell_label(column, position, catalogue),
            max(1, round(100 * count / top)),
            catalogue.format_answer(count, float(column.margins[position])),
        )


def _cell_label(column: ColumnFindings, position: int, catalogue: Catalogue) -> str:
    """Return the label of a cell: a range of numbers, or a value."""
    if not column.measured.is_number:
        return column.labels[position]
    low = column.measured.edges[position]
    high = column.measured.edges[position + 1]
    if column.is_whole and high - low <= 1:
        return catalogue.format_value(low)
    return catalogue.say("profile_cell", low=low, high=high)
