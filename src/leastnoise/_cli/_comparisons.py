"""Commands that compare released numbers or compute the power of an A/B test.

``difference``, ``ab-test`` and ``power``. They read no data and spend no budget.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from leastnoise._cli._output import FILE, format_number, json_option, print_json, print_table
from leastnoise._estimation import ABTest, Differences, ab_test, compare_groups, compare_releases
from leastnoise._frames import TabularMixin
from leastnoise._planning import ABPower, ab_power, budget_json, budget_of_text
from leastnoise._release import Release, StatisticTable, Table, with_labels_in
from leastnoise._texts import (
    ENGLISH,
    Catalogue,
    key_headings,
    statistic_title,
    table_format,
    table_title,
)
from leastnoise._trusted.check import InputError, exact
from leastnoise._workload import QuerySet

_SELECT = "Select all groups along one attribute, such as year=2025 year=2024."
_UNBOUNDED = (
    "A ratio has no upper end if its divisor may be 0, because the interval of the divisor "
    "contains 0. Then every ratio is possible."
)
_OF_SAMPLES = (
    "Intervals with samples cover two errors: the noise, and the sampling errors that the specs "
    "state, for two independent samples. All other intervals cover the noise only."
)
_OF_ROWS = (
    "The intervals are about the rows of the release. For an effect that holds beyond these rows, "
    "with the sampling error, use `leastnoise ab-test`."
)

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
    _check_comparison_options(groups, other, options["where"])
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
        published = None
        if not options["where"]:
            published = _find_published(release, quantity, cells)
        _print_comparison(compared, [release, against], published=published, as_json=as_json)
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
    _print_comparison(compared, [release], as_json=as_json)


def _find_published(
    release: Release, quantity: Mapping[str, Any], groups: Mapping[str, QuerySet]
) -> Table | StatisticTable | None:
    """Return the published table of the compared numbers, or None.

    ``quantity`` has the arguments of `compare_releases` that select the compared numbers.
    """
    if quantity["share"] or quantity["count"] == "units":
        return None
    for kind in ("mean", "sum"):
        if quantity[kind]:
            return release.find_published(kind, quantity[kind], groups)
    return release.find_published("count", None, groups)


def _check_comparison_options(groups: tuple[str, ...], other: Path | None, where: object) -> None:
    """Raise InputError if options for groups and for releases are combined."""
    if other is not None and groups:
        raise InputError(
            "Compare two groups of one release, or two releases with --other. To compare one group "
            "of two releases, select the group with --where."
        )
    if other is None and where:
        raise InputError(
            "--where works only for two releases, with --other. Within one release compare groups "
            "along several attributes with --cells."
        )


@dataclass(frozen=True, slots=True)
class _ComparedGroups:
    """The groups that a command compares with the last of them.

    Attributes:
        along: the attribute.
        groups: the groups, each a label, or a mapping from a level to a label.
        against: the last group, in the form of the other groups.
    """

    along: str
    groups: tuple[object, ...]
    against: object

    @property
    def are_separate(self) -> bool:
        """Whether several groups are compared, each with the last."""
        return len(self.groups) > 1

    @property
    def arguments(self) -> tuple[str, Any, Any]:
        """The arguments of `compare_groups` that select the groups."""
        if self.are_separate:
            return self.along, list(self.groups), self.against
        return self.along, self.groups[0], self.against


def _read_groups(release: Release, group_texts: Sequence[str]) -> _ComparedGroups:
    """Parse the groups that a command compares with the last of them."""
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


def _print_comparison(
    comparison: Differences | ABTest,
    releases: Sequence[Release],
    *,
    published: Table | StatisticTable | None = None,
    as_json: bool,
) -> None:
    """Print a comparison as a table or as JSON, with the notes of the releases.

    ``published`` is the table of the first release that has the compared numbers. Its display names
    and its number format are used.
    """
    rows = _list_rows(comparison)
    notes = list(dict.fromkeys(note for release in releases for note in list_answer_notes(release)))
    has_samples = "difference_both_low" in rows[0]
    if has_samples:
        noise_only = releases[0].options.terminal_catalogue.say("st_noise_only")
        notes = [note for note in notes if note != noise_only] + [_OF_SAMPLES]
    if any(row.get("ratio_bounded") == 0 for row in rows):
        notes.append(_UNBOUNDED)
    if "ratio" in rows[0] and not has_samples and len(releases) == 1:
        notes.append(_OF_ROWS)
    if as_json:
        print_json({"title": comparison.title, "rows": rows, "notes": notes})
        return
    if published is None or releases[0].options.terminal_catalogue.names.is_empty:
        _print_intervals(comparison.title, rows, [*comparison.numbers])
    else:
        _print_named_comparison(releases[0], published, rows, comparison.level)
    for note in notes:
        click.echo(click.wrap_text(note, 100))


def _list_rows(table: TabularMixin) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries; None for NaN and infinity."""
    columns = {name: values.tolist() for name, values in table.columns().items()}
    rows = []
    for numbers in zip(*columns.values(), strict=True):
        row = dict(zip(columns, numbers, strict=True))
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
        rows.append(row)
    return rows


def _print_intervals(
    title: str, rows: Sequence[Mapping[str, Any]], number_names: Sequence[str]
) -> None:
    """Print a table with one line for each compared number and its interval."""
    keys = [name for name in rows[0] if name not in number_names]
    shown = [
        name
        for name in number_names
        if name != "ratio_bounded" and not name.endswith(("_low", "_high", "_std_error"))
    ]
    lines = []
    for row in rows:
        if keys:
            group = [", ".join(f"{name}={row[name]}" for name in keys)]
        else:
            group = []
        for name in shown:
            value, interval = _format_interval(row, name, name)
            lines.append([*group, name, value, interval])
            if f"{name}_both_low" in row:
                _, interval = _format_interval(row, name, f"{name}_both")
                lines.append([*group, f"{name}, with samples", value, interval])
    columns = [("number", "left"), ("value", "right"), ("interval", "right")]
    if keys:
        columns = [("cell", "fold"), *columns]
    print_table(title, columns, lines)


def _print_named_comparison(
    release: Release,
    published: Table | StatisticTable,
    rows: Sequence[Mapping[str, Any]],
    level: float,
) -> None:
    """Print a comparison of two releases with the names of the first release.

    Each group has one line, with both numbers and the difference with its interval.
    """
    catalogue = release.options.terminal_catalogue
    published = with_labels_in(published, release, release.options.terminal_language)
    if isinstance(published, Table):
        title = table_title(published.product, catalogue)
        headings = key_headings(published.product.along, catalogue)
        catalogue = catalogue.with_format(table_format(published.product, catalogue))
    else:
        title = statistic_title(published.statistic, published.domain, catalogue)
        headings = published.key_headings(catalogue)
        catalogue = published.with_own_format(catalogue)
    percent = catalogue.format_percent(level)
    columns = [(heading, "fold") for heading in headings]
    columns += [(name, "right") for name in ("value", "against", "difference")]
    columns.append((f"{percent} interval", "right"))
    if "difference_both_low" in rows[0]:
        columns.append(("with samples", "right"))
    groups = itertools.product(*published.display_labels)
    lines = []
    for group, row in zip(groups, rows, strict=True):
        # as in the intervals of other statistics: about half a standard error
        digit_spread = (row["difference_high"] - row["difference_low"]) / 8
        line = [*group]
        line += [catalogue.format_number(row[name], digit_spread) for name in ("value", "against")]
        line.append(_format_change(row["difference"], digit_spread, catalogue))
        for kind in ("difference", "difference_both"):
            if f"{kind}_low" in row:
                low = _format_change(row[f"{kind}_low"], digit_spread, catalogue)
                high = _format_change(row[f"{kind}_high"], digit_spread, catalogue)
                line.append(catalogue.say("from_to", low=low, high=high))
        lines.append(line)
    print_table(f"{title}, of two releases", columns, lines)


def _format_change(value: float | None, digit_spread: float, catalogue: Catalogue) -> str:
    """Format a difference; percentages differ by percentage points.

    The digits are those that an uncertainty of ``digit_spread`` allows.
    """
    if value is None:
        return "-"
    if not catalogue.number_format.percent:
        return catalogue.format_number(value, digit_spread)
    points = catalogue.with_format(replace(catalogue.number_format, percent=False))
    return catalogue.say("points", number=points.format_number(100 * value, 100 * digit_spread))


def _format_interval(
    row: Mapping[str, Any], number_name: str, interval_name: str
) -> tuple[str, str]:
    """Format the number in column ``number_name`` of a row, and an interval.

    The ends of the interval are in the columns that begin with ``interval_name``.
    """
    if row[number_name] is None:
        value = "-"
    else:
        value = format_number(row[number_name])
    if f"{interval_name}_low" not in row:
        return value, ""
    low = row[f"{interval_name}_low"]
    high = row[f"{interval_name}_high"]
    if low is None and high is None:
        return value, "any number"
    if high is None:
        return value, f"{format_number(low)} or more"
    return value, f"{format_number(low)} to {format_number(high)}"


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
@json_option
def ab_test_command(
    directory: Path,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    groups: tuple[str, ...],
    mean: str,
    std: float | None,
    cells: tuple[str, ...],
    level: float | None,
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
        std=std,
        by=read_groups(release.plan.domain, cells),
        level=release.level if level is None else level,
        each=arms.are_separate,
    )
    _print_comparison(test, [release], as_json=as_json)


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
