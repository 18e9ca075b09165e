"""Commands that compare released numbers or compute the power of an A/B test.

The commands are ``difference``, ``ab-test`` and ``power``. They read no data and spend no budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._finished import (
    list_answer_notes,
    read_conditions,
    read_group,
    read_groups,
    read_with_progress,
)
from leastnoise._cli._output import (
    FILE,
    display_path,
    format_number,
    json_option,
    print_json,
    print_table,
)
from leastnoise._estimation import ABTest, ab_test, compare_groups, compare_releases
from leastnoise._pages import (
    ComparisonResult,
    ComparisonView,
    catalogue_of,
    list_page_files,
    releases_of,
    shorten_titles,
    without_suppressed,
)
from leastnoise._planning import ABPower, ab_power, budget_json, budget_of_text
from leastnoise._publication import check_labels, check_target, list_json_rows, write_comparison
from leastnoise._release import Release
from leastnoise._texts import ENGLISH, LANGUAGES
from leastnoise._trusted.check import InputError, exact

_SELECT = "Select all groups along one attribute, such as year=2025 year=2024."

_cells_option = click.option(
    "--cells",
    multiple=True,
    metavar="NAME",
    help="Compare within every value of an attribute, or within every group of a level: "
    "store:region.",
)
_level_option = click.option(
    "--level", type=float, help="Coverage of the intervals.  [default: as in the release]"
)
_out_option = click.option(
    "--out",
    type=FILE,
    metavar="FOLDER",
    help="Write pages with a chart, and the table as CSV and JSON, to a new folder.",
)
_language_option = click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    help="The language of the printed text and of the first page.  [default: English; for pages "
    "the language of the release]",
)


@click.command("difference")
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.argument("groups", metavar="[NAME=GROUP... NAME=AGAINST]", nargs=-1)
@click.option(
    "--other", type=FILE, metavar="RELEASE", help="Compare with this release, such as last year's."
)
@click.option("--mean", metavar="MEASURE", help="Compare the means of a measure.")
@click.option("--sum", "summed", metavar="MEASURE", help="Compare the sums of a measure.")
@click.option(
    "--share",
    multiple=True,
    metavar="NAME=VALUE",
    help="Compare shares of rows with this value; repeated: with either value.",
)
@click.option("--units", is_flag=True, help="Count privacy units instead of rows.")
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --other: only rows with this value; repeated: with either value.",
)
@_cells_option
@_level_option
@_out_option
@_language_option
@click.option(
    "--labels",
    metavar="NAME,NAME",
    help="With --other: short names of the releases, such as 2025,2024.  [default: the words in "
    "which their titles differ, or the names of their directories]",
)
@json_option
def difference(
    directory: Path,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    level: float | None,
    groups: tuple[str, ...],
    other: Path | None,
    **options: Any,
) -> None:
    """Compare two groups, periods or releases: difference, ratio and lift.

    RELEASE is the directory that `leastnoise release` wrote. The command compares counts of rows,
    unless an option selects another number. Groups are values of one attribute, or groups of a
    level: year=2025 year=2024, or store:region=north store:region=south. Each of several groups is
    compared with the last one. The intervals are simultaneous: together they contain all true
    values with the stated probability.
    """
    release = read_with_progress(directory)
    if level is None:
        level = release.level
    quantity = {
        "mean": options["mean"],
        "sum": options["summed"],
        "share": read_conditions(release.plan.domain, options["share"]) or None,
        "count": "units" if options["units"] else "rows",
    }
    _check_comparison_options(groups, other, options)
    display = _Display(out=options["out"], language=options["language"] or "", as_json=as_json)
    cells = read_groups(release.plan.domain, options["cells"])
    if other is not None:
        against = read_with_progress(other)
        compared = compare_releases(
            release,
            against,
            **quantity,
            where=read_conditions(release.plan.domain, options["where"]),
            by=cells,
            level=level,
        )
        labels = _read_labels(options["labels"], (directory, other), (release, against))
        _show_comparison(compared, display, labels)
        return
    compared_groups = _read_groups(release, groups)
    compared = compare_groups(
        release,
        *compared_groups.arguments,
        **quantity,
        by=cells,
        level=level,
        each=compared_groups.are_separate,
    )
    _show_comparison(compared, display)


def _check_comparison_options(
    groups: tuple[str, ...], other: Path | None, options: Mapping[str, Any]
) -> None:
    """Raise InputError if options for groups and for releases are combined."""
    if other is not None and groups:
        raise InputError(
            "Compare two groups of one release, or two releases with --other. To compare one group "
            "of two releases, select the group with --where."
        )
    if other is None and options["labels"]:
        raise InputError(
            "--labels works only for two releases, with --other. Groups of one release have the "
            "labels of their spec."
        )
    if other is None and options["where"]:
        raise InputError(
            "--where works only for two releases, with --other. Within one release compare groups "
            "along several attributes with --cells."
        )


@dataclass(frozen=True, slots=True)
class _ComparedGroups:
    """The groups that a command compares, and the group to compare them with.

    Attributes:
        along: the attribute.
        groups: the groups, each a label, or a mapping from a level to a label.
        against: the last group, with which the other groups are compared, in the same form.
    """

    along: str
    groups: tuple[object, ...]
    against: object

    @property
    def are_separate(self) -> bool:
        """Whether there are several comparisons, each of a group with the last group."""
        return len(self.groups) > 1

    @property
    def arguments(self) -> tuple[str, Any, Any]:
        """The arguments of `compare_groups` that select the groups."""
        if self.are_separate:
            return self.along, list(self.groups), self.against
        return self.along, self.groups[0], self.against


def _read_groups(release: Release, group_texts: Sequence[str]) -> _ComparedGroups:
    """Parse the groups to compare; all are compared with the last of them."""
    if len(group_texts) < 2:
        raise InputError(
            f"Name at least two groups, or give --other for `difference`; got {len(group_texts)}. "
            f"{_SELECT}"
        )
    groups = [read_group(release.plan.domain, text) for text in group_texts]
    names = [name for name, _ in groups]
    if len({*names}) > 1:
        raise InputError(
            "All groups must be groups of the same attribute; got "
            f"{' and '.join(dict.fromkeys(names))}. {_SELECT}"
        )
    selections = [selection for _, selection in groups]
    return _ComparedGroups(names[0], tuple(selections[:-1]), selections[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Display:
    """How a command shows a comparison.

    Attributes:
        out: the folder of pages and files to write; None for none.
        language: the language of printed texts and of the first page; empty for the default.
        as_json: whether to print JSON instead of a table.
    """

    out: Path | None
    language: str
    as_json: bool


def _read_labels(
    text: str | None, directories: Sequence[Path], releases: Sequence[Release]
) -> list[str]:
    """Return short names of two releases; an empty list if their titles differ."""
    if text is not None:
        return [label.strip() for label in text.split(",")]
    titles = [
        release.options.text("title", release.options.terminal_language) for release in releases
    ]
    if shorten_titles(*titles) is not None:
        return []
    names = [directory.resolve().name for directory in directories]
    return names if len({*names}) > 1 else []


def _show_comparison(
    comparison: ComparisonResult, display: _Display, labels: Sequence[str] = ()
) -> None:
    """Print a comparison as a table or as JSON with notes, and write its pages.

    The numbers that a release suppresses are left out everywhere.
    """
    short_names = check_labels(comparison, labels)
    if display.out is not None:
        check_target(display.out)
    comparison = without_suppressed(comparison)
    view = _make_view(comparison, display.language, short_names)
    notes = _list_notes(view)
    if display.out is not None:
        write_comparison(comparison, display.out, language=display.language, labels=labels)
    if display.as_json:
        rows = list_json_rows(comparison)
        print_json({"title": comparison.title, "rows": rows, "notes": notes})
        return
    columns = [(heading, "fold") for heading in view.key_headings]
    columns += [(heading, "right") for heading in view.number_headings]
    print_table(view.title, columns, view.rows())
    for note in notes:
        click.echo(click.wrap_text(note, 100))
    if display.out is not None:
        click.echo()
        for name in list_page_files(comparison, display.language):
            click.echo(f"page      {display_path(display.out / name)}")


def _make_view(
    comparison: ComparisonResult, language: str, labels: tuple[str, ...]
) -> ComparisonView:
    """Return the texts of a comparison for the terminal."""
    if language:
        catalogue = catalogue_of(comparison, language)
    else:
        (release, *_) = releases_of(comparison)
        catalogue = release.options.scaled_terminal_catalogue
    return ComparisonView(comparison=comparison, catalogue=catalogue, labels=labels)


def _list_notes(view: ComparisonView) -> list[str]:
    """Return notes on the comparison and on the errors that its intervals omit."""
    catalogue = view.catalogue
    noise_only = catalogue.say("st_noise_only")
    not_rounded = catalogue.say("cmp_not_rounded")
    notes = [view.lead, *view.explanations, *view.coverage_notes, *view.table_notes]
    for release in view.releases:
        notes += list_answer_notes(release, catalogue)
    has_sampling_error = view.has_samples or isinstance(view.comparison, ABTest)
    if has_sampling_error:
        notes = [note for note in notes if note != noise_only]
    elif len(view.releases) == 1:
        notes.append(catalogue.say("cmp_of_rows"))
    # Unlike further answers, a comparison leaves out suppressed numbers.
    notes = [note for note in notes if note != not_rounded]
    if any(release.options.round is not None for release in view.releases):
        notes.append(catalogue.say("cmp_unrounded_page"))
    return list(dict.fromkeys(notes))


@click.command("ab-test")
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.argument("groups", metavar="NAME=TREATMENT... NAME=CONTROL", nargs=-1)
@click.option(
    "--mean",
    metavar="MEASURE",
    required=True,
    help="The measure of the outcome. For rates, its values are 0 and 1.",
)
@click.option(
    "--std",
    type=float,
    help="The public standard deviation of the outcome within an arm.  [default: the largest "
    "possible, which is exact for rates]",
)
@_cells_option
@_level_option
@_out_option
@_language_option
@json_option
def ab_test_command(
    directory: Path,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    groups: tuple[str, ...],
    mean: str,
    level: float | None,
    **options: Any,
) -> None:
    """Estimate the effect of a treatment from a release with means by arm.

    RELEASE is the directory that `leastnoise release` wrote. The interval of the difference covers
    the noise and the sampling error. If there are several treatments, the intervals are
    simultaneous.
    """
    release = read_with_progress(directory)
    arms = _read_groups(release, groups)
    test = ab_test(
        release,
        *arms.arguments,
        mean=mean,
        std=options["std"],
        by=read_groups(release.plan.domain, options["cells"]),
        level=release.level if level is None else level,
        each=arms.are_separate,
    )
    display = _Display(out=options["out"], language=options["language"] or "", as_json=as_json)
    _show_comparison(test, display)


@click.command()
@click.option(
    "--mean", type=float, required=True, help="The expected mean, or rate, of the control."
)
@click.option(
    "--effect", type=float, help="The difference of the means that the test should detect."
)
@click.option("--size", type=int, help="The number of rows in each arm.")
@click.option("--std", type=float, help="The standard deviation of the outcome; not for rates.")
@click.option(
    "--bounds",
    default="0..1",
    show_default=True,
    metavar="LOW..HIGH",
    help="The public bounds of the outcome.",
)
@click.option("--epsilon", help="The budget of the release, with or without --delta.")
@click.option("--delta", help="With --epsilon.")
@click.option("--rho", help="The budget of the release as zero-concentrated privacy.")
@click.option(
    "--power",
    "target_power",
    type=float,
    default=0.8,
    show_default=True,
    help="The required power, if the command searches for another number.",
)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Coverage of the interval."
)
@json_option
# Click passes flags by name.
def power(as_json: bool, bounds: str, **options: Any) -> None:  # noqa: FBT001
    """Compute which effect an A/B test can detect; this needs no data.

    State effect, size and budget to compute the power. If you omit one of the three, the command
    finds the smallest value that reaches --power.
    """
    low, dots, high = bounds.partition("..")
    if not dots:
        raise InputError(f"--bounds must be LOW..HIGH, such as 0..1; got {bounds!r}.")
    sizes = {name: options[name] for name in ("epsilon", "delta", "rho")}
    result = ab_power(
        budget_of_text(sizes),
        mean=options["mean"],
        effect=options["effect"],
        size=options["size"],
        std=options["std"],
        bounds=(exact("--bounds", low), exact("--bounds", high)),
        power=options["target_power"],
        level=options["level"],
    )
    if as_json:
        print_json(_power_json(result))
        return
    budget = ", ".join(f"{name} = {value}" for name, value in budget_json(result.budget).items())
    rows = [
        ("effect", format_number(result.effect)),
        ("rows of each arm", f"{result.size:,}"),
        ("budget", budget),
        ("power", f"{result.power:.3f}"),
        ("standard error from noise", format_number(result.noise_std)),
        ("standard error from sampling", format_number(result.sampling_std)),
    ]
    print_table(
        f"A/B test, {ENGLISH.format_percent(result.level)} interval",
        [("number", "left"), ("value", "right")],
        rows,
    )


def _power_json(result: ABPower) -> dict[str, Any]:
    """Return the power of an A/B test as a JSON object."""
    return {
        "effect": result.effect,
        "size": result.size,
        "budget": budget_json(result.budget),
        "power": result.power,
        "noise_std": result.noise_std,
        "sampling_std": result.sampling_std,
        "level": result.level,
    }
