"""Commands for finished releases, which read no data and spend no budget.

The commands are ``show``, ``answer``, ``export``, ``round`` and ``synthesize``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement, product
from pathlib import Path
from typing import Any, NamedTuple

import click

from leastnoise._cli._output import (
    FILE,
    check_new_file,
    display_path,
    format_number,
    json_option,
    open_new_file,
    print_facts,
    print_json,
    print_table,
    write_new_file,
)
from leastnoise._domain import Dates, Domain
from leastnoise._estimation import (
    Correlations,
    Regression,
    cdf,
    correlations,
    means,
    quantiles,
    r_squared,
    regression,
    shares,
    variances,
)
from leastnoise._facts import format_facts, list_facts
from leastnoise._frames import number_or_null, pluralize
from leastnoise._pages import (
    describe_release,
    list_answer_notices,
    list_dropped_rows,
    list_file_notices,
    list_further_notices,
    render_utility_page,
    utility_file,
)
from leastnoise._progress import Progress
from leastnoise._publication import (
    EXPORTS,
    FILL_IN,
    FILL_IN_ADDRESS,
    check_records_file,
    check_target,
    open_draft,
    write_records,
    write_rounded,
)
from leastnoise._release import (
    AnswerTable,
    Records,
    Release,
    StatisticTable,
    make_records,
    with_labels_in,
)
from leastnoise._session import export as export_text
from leastnoise._session import read_release
from leastnoise._texts import ENGLISH, Catalogue, statistic_title, table_format, table_title
from leastnoise._trusted.check import InputError, did_you_mean, exact
from leastnoise._workload import QuerySet, cells_of, groups_of, predicates, queries, ranges
from leastnoise._workload import level as level_queries

Where = Mapping[str, list[str]]
By = Mapping[str, QuerySet]
_RangeLimit = int | str


class Answers(NamedTuple):
    """Answers of one kind: their heading, and the columns of each answer by name."""

    heading: str
    rows: list[dict[str, Any]]


# Limits of the printed output. The files of the release and --json are complete.
_MOST_TABLES = 40
_MOST_CHARTS = 4
_MOST_BARS = 24
_MOST_ROWS = 60
_MOST_ANSWERS = 1000
_BAR_WIDTH = 30  # characters
_ANSWER_COLUMNS = ("answer", "noise_std", "approximation_std", "low", "high")
_CELL_WIDTH = 80  # characters; sets of cells may have thousands of names, and --json has them all
# Times on one core of 2026, for progress lines.
_BYTES_PER_SECOND = 1.5e6
_SECONDS_PER_TABLE = 0.01
_SECONDS_PER_MODEL = 10.0
_OPTIONS_NEEDED = (
    "Choose one: --cells NAME, --ranges NAME=LOW..HIGH, --cdf NAME, --quantiles "
    "NAME=0.25,0.5,0.75, --means MEASURE, --variances MEASURE, --correlations MEASURE,..., "
    "--regression MEASURE=MEASURE,..., --r-squared MEASURE=MEASURE,..., --shares NAME or "
    "--covariances TABLE."
)
_NO_MEASURES = {
    "means": (
        "A mean needs counts and sums. Add [[workload]] means = { of = ... } to the spec before a "
        "release. For an attribute of numbers use --quantiles."
    ),
    "variances": "Add [[workload]] variances = { of = ... } to the spec before a release.",
    "correlations": "Add [[workload]] correlations = { of = [...] } to the spec before a release.",
    "regression": (
        "Add [[workload]] regression = { of = ..., on = [...] } to the spec before a release."
    ),
    "r-squared": (
        "Add [[workload]] r_squared = { of = ..., on = [...] } to the spec before a release."
    ),
}
_ADVICE = "Choose another file with --out."


def read_with_progress(directory: Path) -> Release:
    """Read a release from its directory, and show a progress line."""
    files = [file for file in (directory / "measurements").glob("*.json") if file.is_file()]
    with Progress(
        f"opening {directory.name}",
        about=sum(file.stat().st_size for file in files) / _BYTES_PER_SECOND,
    ):
        return read_release(directory)


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.argument("table_name", metavar="[TABLE]", required=False)
def show(directory: Path, table_name: str | None) -> None:
    """Show a finished release: its accuracy and its tables.

    RELEASE is the directory that `leastnoise release` wrote. TABLE is the id or name of a table,
    such as q7 or "sex x age", or of a mean, quantiles or a distribution function, such as s1.
    """
    release = read_with_progress(directory)
    if table_name is None:
        _print_overview(release, directory)
        return
    catalogue = release.options.terminal_catalogue
    notices = list_answer_notices(release, catalogue)
    for text in [*notices, *list_dropped_rows(release.plan, catalogue)]:
        click.echo(click.wrap_text(text, 100) + "\n")
    if release.statistics.has_key(table_name):
        _print_statistic(release, release.statistics[table_name], _MOST_ROWS)
    else:
        _print_table_with_bars(release, release.tables[table_name])


def _print_overview(release: Release, directory: Path) -> None:
    """Print a release's facts, its list of tables, and charts of small tables."""
    print_facts(_overview_facts(release))
    click.echo()
    tables = release.tables[:_MOST_TABLES]
    catalogue = release.options.scaled_terminal_catalogue
    rows = []
    for table in tables:
        table_catalogue = catalogue.with_format(table_format(table.product, catalogue))
        margin = table_catalogue.format_error(table.typical_margin)
        title = _table_title(table, catalogue)
        rows.append((table.id, title, f"{table.cells:,}", margin))
    margin = f"typical\n± {ENGLISH.format_percent(release.level)}"
    columns = [("id", "left"), ("table", "fold"), ("answers", "right"), (margin, "right")]
    print_table("Tables", columns, rows)
    if len(release.tables) > _MOST_TABLES:
        click.echo(f"and {len(release.tables) - _MOST_TABLES:,} more; all are in tables.csv.\n")
    for statistic in release.statistics:
        _print_statistic(release, statistic, _MOST_BARS)
    drawable = [table for table in tables if len(table.labels) == 1 and table.cells <= _MOST_BARS]
    for table in drawable[:_MOST_CHARTS]:
        _print_table_with_bars(release, table)
    click.echo(
        f"One table: leastnoise show {directory} {release.tables[0].id}. Further answers: "
        f"leastnoise answer {directory} --help."
    )


def _overview_facts(release: Release) -> list[tuple[str, str]]:
    """Return facts about a release (label and text), and its notices."""
    facts = []
    title = release.options.text("title", release.options.terminal_language)
    if title:
        facts.append(("title", title))
    catalogue = release.options.terminal_catalogue
    facts += format_facts(list_facts(describe_release(release, catalogue)))
    facts += [("note", text) for text in list_file_notices(release, catalogue)]
    return facts


def _print_table_with_bars(release: Release, table: AnswerTable) -> None:
    """Print the first rows of a table and a bar for each answer.

    The shaded end of a bar shows the interval.
    """
    answers, lows, highs = (
        values.reshape(-1)[:_MOST_ROWS].tolist()
        for values in (table.answer, table.low_with_sampling, table.high_with_sampling)
    )
    catalogue = release.options.scaled_terminal_catalogue
    catalogue = catalogue.with_format(table_format(table.product, catalogue))
    table = with_labels_in(table, release, release.options.terminal_language)
    top = max(*(abs(end) for end in (*lows, *highs) if not math.isnan(end)), 1e-300, 0.0)
    rows = [
        (
            cell,
            catalogue.format_number(answer, (high - answer) / 4),
            catalogue.format_error(high - answer),
            _draw_bar(low, answer, high, top),
        )
        for cell, answer, low, high in zip(
            table.cell_names(catalogue), answers, lows, highs, strict=False
        )
    ]
    columns = [
        ("cell", "fold"),
        ("answer", "right"),
        (f"± {ENGLISH.format_percent(release.level)}", "right"),
        ("", "left"),
    ]
    print_table(f"{table.id} {_table_title(table, catalogue)}", columns, rows)
    if table.cells > _MOST_ROWS:
        click.echo(
            f"The first {_MOST_ROWS} of {table.cells:,} answers; "
            "the files in answers have all of them.\n"
        )


def _table_title(table: AnswerTable, catalogue: Catalogue) -> str:
    """Return the display title of a table; its name if no display names exist."""
    if catalogue.names.is_empty:
        return table.name
    return table_title(table.product, catalogue)


def _print_statistic(release: Release, statistic: StatisticTable, max_rows: int) -> None:
    """Print the first ``max_rows`` values of a statistic with their intervals."""
    catalogue = release.options.terminal_catalogue
    statistic = with_labels_in(statistic, release, release.options.terminal_language)
    title = statistic.name
    headings = statistic.attributes
    if not catalogue.names.is_empty:
        title = statistic_title(statistic.statistic, statistic.domain, catalogue)
        headings = statistic.key_headings(catalogue)
    interval = f"{ENGLISH.format_percent(release.level)} interval"
    columns = [
        *((heading, "fold") for heading in headings),
        (statistic.value_name, "right"),
        (interval, "right"),
    ]
    print_table(f"{statistic.id} {title}", columns, statistic.format_rows(catalogue, max_rows))
    if statistic.cells > max_rows:
        remark = f"`leastnoise show RELEASE {statistic.id}` and the files in answers have more."
        click.echo(f"The first {max_rows} of {statistic.cells:,}; {remark}\n")


def _draw_bar(low: float, answer: float, high: float, axis_end: float) -> str:
    """Return a bar of block characters for an answer and its interval.

    The bar is dark up to the lower end of the interval, medium up to the answer, and light up to
    the upper end. A full bar ends at ``axis_end``.
    """
    if math.isnan(answer):
        return ""
    low_blocks, answer_blocks, high_blocks = (
        max(0, math.ceil(_BAR_WIDTH * value / axis_end - 0.5)) for value in (low, answer, high)
    )
    return (
        "█" * low_blocks + "▒" * (answer_blocks - low_blocks) + "░" * (high_blocks - answer_blocks)
    )


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--ranges",
    multiple=True,
    metavar="NAME=LOW..HIGH",
    help="Select a range of numbers or dates, such as age=20..39 or month=2024-01..2024-03; both "
    "ends are included.",
)
@click.option(
    "--cells",
    multiple=True,
    metavar="NAME",
    help="Split by every value of an attribute, or by every group of a level: store:region. "
    "Separate several names by commas, or repeat the option.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help=(
        "Select rows with this value, or in this group of a level. If the option is repeated, rows "
        "with any of the values."
    ),
)
@click.option("--sum", "measure", metavar="MEASURE", help="Sum a measure instead of counting rows.")
@click.option(
    "--cdf",
    metavar="NAME",
    help="The cumulative distribution of a numeric attribute, in each cell of --cells.",
)
@click.option(
    "--quantiles",
    metavar="NAME=SHARE,...",
    help="Quantiles of a numeric attribute, such as age=0.25,0.5,0.75, in each cell of --cells.",
)
@click.option("--means", metavar="MEASURE", help="Means of a measure, in each cell of --cells.")
@click.option(
    "--variances",
    metavar="MEASURE",
    help="Standard deviations and variances of a measure, in each cell of --cells.",
)
@click.option(
    "--correlations",
    metavar="MEASURE,...",
    help="Correlations and covariances of measures, in each cell of --cells.",
)
@click.option(
    "--regression",
    metavar="MEASURE=MEASURE,...",
    help="Least-squares regression of a measure on others, such as pay=age,tenure, for each of the "
    "--cells.",
)
@click.option(
    "--r-squared",
    metavar="MEASURE=MEASURE,...",
    help="R^2 of a regression of a measure on others, such as pay=age,tenure, for each of the "
    "--cells. R^2 or the correlations of all these measures must be in the workload.",
)
@click.option(
    "--shares",
    metavar="NAME,...",
    help="The share of each value in the total (or of each group of a level), for each of the "
    "--cells: shares of rows, or of a measure with --sum.",
)
@click.option(
    "--covariances",
    metavar="TABLE",
    help="Covariances of the noise in the answers of a table, by id or name.",
)
@click.option(
    "--level", type=float, help="Coverage of the intervals.  [default: as in the release]"
)
@json_option
def answer_command(
    directory: Path,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    level: float | None,
    **options: Any,
) -> None:
    """Give further answers from a finished release, at no cost.

    RELEASE is the directory that `leastnoise release` wrote. The command reads no data. It computes
    the answers and their exact errors from the measurements in the release. It refuses queries that
    the measurements do not determine.
    """
    release = read_with_progress(directory)
    if level is None:
        level = release.level
    typed = {name: value for name, value in options.items() if value is not None}
    heading, rows = _compute_answers(release, level, AnswerOptions(**typed))
    notes = list_answer_notes(release)
    if as_json:
        print_json({"level": level, "answers": rows, "notes": notes})
        return
    if len(rows) > _MOST_ANSWERS:
        click.echo(f"The first {_MOST_ANSWERS} of {len(rows):,} answers; --json gives all.")
    columns = []
    for name, value in rows[0].items():
        alignment = "left"
        if isinstance(value, float):
            alignment = "right"
        columns.append((name, alignment))
    cells = [_format_column([row[name] for row in rows[:_MOST_ANSWERS]]) for name, _ in columns]
    print_table(heading, columns, zip(*cells, strict=True))
    for note in notes:
        click.echo(click.wrap_text(note, 100))


def list_answer_notes(release: Release, catalogue: Catalogue | None = None) -> list[str]:
    """Return the notes to print below further answers from a release.

    Without a ``catalogue`` the notes are in English, like all texts of the terminal.
    """
    if catalogue is None:
        catalogue = release.options.terminal_catalogue
    notes = list_further_notices(release, catalogue)
    if release.options.has_rounding:
        notes.append(catalogue.say("cmp_not_rounded"))
    return notes


def _format_column(values: Sequence[Any]) -> list[str]:
    """Format the values of a column, all in the same format.

    Whole numbers have no decimals. Shares with at most three decimals are unchanged. Other numbers
    have four significant digits.
    """
    numbers = [value for value in values if isinstance(value, float)]
    format_value = format_number
    if all(0 < value == round(value, 3) < 1 for value in numbers):
        format_value = "{:g}".format
    elif all(value.is_integer() for value in numbers):
        format_value = "{:,.0f}".format
    texts = []
    for value in values:
        if isinstance(value, float):
            text = format_value(value)
        else:
            text = str(value or "")
        if len(text) > _CELL_WIDTH:
            text = f"{text[: _CELL_WIDTH // 2]} ... {text[-_CELL_WIDTH // 3 :]}"
        texts.append(text)
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """The options of ``leastnoise answer`` as the user typed them.

    An option that was not typed is empty.

    Attributes:
        ranges: selected ranges of numbers or dates, such as ``age=20..39``.
        cells: attributes or levels by which answers are split, such as ``store:region``.
        where: selected values, such as ``sex=F``.
        measure: the measure to sum; None to count rows.
        cdf: the attribute of a cumulative distribution.
        quantiles: an attribute and shares, such as ``age=0.25,0.5``.
        means: the measure of means.
        variances: the measure of variances and standard deviations.
        correlations: the measures of correlations, separated by commas.
        regression: a response and its predictors, such as ``pay=age,tenure``.
        r_squared: a response and its predictors, for R^2.
        shares: the attributes or levels whose shares of the total are computed.
        covariances: the id or the name of a table whose noise covariances are computed.
    """

    ranges: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    measure: str | None = None
    cdf: str = ""
    quantiles: str = ""
    means: str = ""
    variances: str = ""
    correlations: str = ""
    regression: str = ""
    r_squared: str = ""
    shares: str = ""
    covariances: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A release, and the options of ``leastnoise answer`` in parsed form.

    Attributes:
        release: the finished release.
        level: the coverage of the intervals.
        where: the selected values of each attribute.
        by: the query set of each attribute that splits the answers into groups.
        options: all options as typed.
    """

    release: Release
    level: float
    where: Where
    by: By
    options: AnswerOptions


def _compute_answers(release: Release, level: float, options: AnswerOptions) -> Answers:
    """Compute the answers that the options of the command request."""
    kind = _requested_kind(options)
    domain = release.plan.domain
    where = read_conditions(domain, options.where)
    by = read_groups(domain, options.cells)
    return _ANSWERS[kind](AnswerRequest(release, level, where, by, options))


def read_groups(domain: Domain, group_texts: Sequence[str]) -> dict[str, QuerySet]:
    """Parse --cells, such as ``store``, ``store:region`` or ``store,sex``, to query sets."""
    groups: list[str | dict[str, QuerySet]] = []
    texts = chain.from_iterable(
        [text] if text in domain.names else text.split(",") for text in group_texts
    )
    for text in texts:
        level_name = _split_level(domain, text)
        groups.append(text if level_name is None else {level_name[0]: level_queries(level_name[1])})
    return groups_of(domain, groups, "--cells")


def _requested_kind(options: AnswerOptions) -> str:
    """Return the kind of answers that the options request.

    The kind is a key of ``_ANSWERS``.
    """
    kinds = [name for name in _ANSWERS if getattr(options, name, None)]
    # --ranges and --sum always request counts or sums. --cells and --where also do so, unless they
    # restrict shares, quantiles or means.
    cells_request_counts = options.cells and kinds in ([], ["covariances"])
    conditions_request_counts = options.where and not kinds
    sum_requests_sums = options.measure and kinds != ["shares"]
    if options.ranges or sum_requests_sums or cells_request_counts or conditions_request_counts:
        kinds.append("counts")
    if not kinds:
        raise InputError(_OPTIONS_NEEDED)
    if len(kinds) > 1:
        raise InputError(f"answer computes one kind of answer per call. {_OPTIONS_NEEDED}")
    return kinds[0]


def read_conditions(domain: Domain, condition_texts: Sequence[str]) -> dict[str, list[str]]:
    """Parse --where, and return the selected values of each attribute."""
    where: dict[str, list[str]] = {}
    for text in condition_texts:
        condition, _, label = text.partition("=")
        if level_name := _split_level(domain, condition):
            name, level = level_name
            labels = [*map(str, cells_of(domain.kind(name), {level: label}))]
        else:
            name, label = _split_attribute(domain, "--where", text, "NAME=VALUE")
            labels = [label]
        where.setdefault(name, []).extend(labels)
    return where


def read_group(domain: Domain, text: str) -> tuple[str, str | dict[str, str]]:
    """Parse a group, such as ``arm=B`` or ``store:region=north``.

    Returns:
        The attribute, and its label or a mapping from a level to the label of a group.
    """
    condition, _, label = text.partition("=")
    if level_name := _split_level(domain, condition):
        name, level = level_name
        return name, {level: label}
    return _split_attribute(domain, "a group", text, "NAME=VALUE")


def _read_ranges(
    domain: Domain, range_texts: Sequence[str]
) -> dict[str, list[tuple[_RangeLimit, _RangeLimit]]]:
    """Parse --ranges, and return the (low, high) pairs of each attribute."""
    pairs: dict[str, list[tuple[_RangeLimit, _RangeLimit]]] = {}
    for text in range_texts:
        name, ends = _split_attribute(domain, "--ranges", text, "NAME=LOW..HIGH")
        low, dots, high = ends.partition("..")
        if not dots:
            raise InputError(f"--ranges must be NAME=LOW..HIGH, such as age=20..39; got {text!r}.")
        pair: tuple[_RangeLimit, _RangeLimit] = (low.strip(), high.strip())
        if not isinstance(domain.kind(name), Dates):
            pair = (_read_limit(name, low.strip()), _read_limit(name, high.strip()))
        pairs.setdefault(name, []).append(pair)
    return pairs


def _read_limit(attribute: str, text: str) -> _RangeLimit:
    """Parse an end of a range: an int if it is whole, otherwise the typed text."""
    value = exact(f"an end of a range on {attribute}", text)
    if value.denominator == 1:
        return int(value)
    return text


def _answer_counts(request: AnswerRequest) -> Answers:
    """Compute counts, or sums of a measure, for cells and ranges."""
    domain = request.release.plan.domain
    query_sets: dict[str, Any] = {
        name: predicates([labels]) for name, labels in request.where.items()
    }
    requested = [
        (name, ranges(pairs))
        for name, pairs in _read_ranges(domain, request.options.ranges).items()
    ]
    for name, query_set in [*requested, *request.by.items()]:
        if name in query_sets:
            raise InputError(
                f"{name} is selected twice; use only one of --cells, --ranges and --where for it."
            )
        query_sets[name] = query_set
    measure = request.options.measure
    (table,) = request.release.answer(queries(domain, query_sets, sum=measure), level=request.level)
    columns = {name: values.tolist() for name, values in table.numbers().items()}
    names = [name for name in _ANSWER_COLUMNS if name in columns]
    rows = []
    for position, cell in enumerate(table.cell_names()):
        row: dict[str, Any] = {"cell": cell}
        for name in names:
            row[name] = number_or_null(float(columns[name][position]))
        rows.append(row)
    if measure:
        subject = f"sums of {measure}"
    else:
        subject = "counts"
    return Answers(f"{subject}, {ENGLISH.format_percent(request.level)} intervals", rows)


def _answer_cdf(request: AnswerRequest) -> Answers:
    """Compute the cumulative distribution function of a numeric attribute."""
    name = request.options.cdf
    function = cdf(request.release, name, where=request.where, by=request.by, level=request.level)
    rows = []
    for group, labels in enumerate(product(*function.labels)):
        curves = [
            curve.reshape(-1, len(function.values))[group].tolist()
            for curve in (function.share, function.low, function.high)
        ]
        for value, share, low, high in zip(function.values.tolist(), *curves, strict=True):
            rows.append(
                {
                    **_cell_column(function.by, labels),
                    name: value,
                    "share": share,
                    "low": low,
                    "high": high,
                }
            )
    band = f"a {ENGLISH.format_percent(request.level)} band that holds everywhere simultaneously"
    return Answers(f"share of rows up to each {name}, {band}", rows)


def _answer_quantiles(request: AnswerRequest) -> Answers:
    """Compute quantiles of a numeric attribute."""
    text = request.options.quantiles
    name, shares_text = _split_attribute(
        request.release.plan.domain, "--quantiles", text, "NAME=SHARE,..."
    )
    try:
        share_values = [float(share) for share in shares_text.split(",")]
    except ValueError:
        raise InputError(
            "--quantiles must be NAME=SHARE,... with numbers, such as age=0.25,0.5,0.75; got "
            f"{text!r}."
        ) from None
    quantile_table = quantiles(
        request.release, name, share_values, where=request.where, by=request.by, level=request.level
    )
    rows = [
        {
            **_cell_column(quantile_table.by, quantile.group),
            "share": quantile.share,
            name: quantile.value,
            "low": quantile.low,
            "high": quantile.high,
        }
        for quantile in quantile_table
    ]
    return Answers(f"quantiles of {name}, {ENGLISH.format_percent(request.level)} intervals", rows)


def _cell_column(attributes: Sequence[str], labels: Sequence[str | int]) -> dict[str, Any]:
    """Return the column "cell" of a row; no column if the row is a total."""
    if not attributes:
        return {}
    pairs = zip(attributes, labels, strict=True)
    return {"cell": ", ".join(f"{name}={label}" for name, label in pairs)}


def _checked_measure(option: str, measure_text: str, request: AnswerRequest) -> str:
    """Check and return the measures in the text of an option such as --means.

    Args:
        option: the name of the option, without dashes.
        measure_text: the value of the option.
        request: the release and the other options.

    Raises:
        InputError: the options contain --where, or the release has no sums of a measure.
    """
    if request.where:
        raise InputError(
            f"{option.capitalize()} cannot be restricted with --where. Use --cells NAME for "
            f"{option} for each value of an attribute."
        )
    if not request.release.plan.domain.measures:
        raise InputError(
            f"--{option} must be a measure whose sums the release has, but the release has no "
            f"sums; got {measure_text!r}. {_NO_MEASURES[option]}"
        )
    return measure_text


def _answer_means(request: AnswerRequest) -> Answers:
    """Compute the means of a measure."""
    measure = _checked_measure("means", request.options.means, request)
    rows = [
        dict(zip(("cell", "mean", "low", "high"), row, strict=True))
        for row in means(request.release, measure, by=request.by, level=request.level).rows()
    ]
    return Answers(f"means of {measure}, {ENGLISH.format_percent(request.level)} intervals", rows)


def _answer_variances(request: AnswerRequest) -> Answers:
    """Compute the standard deviations and variances of a measure."""
    measure = _checked_measure("variances", request.options.variances, request)
    table = variances(request.release, measure, by=request.by, level=request.level)
    numbers = zip(
        table.rows(),
        *(values.reshape(-1).tolist() for values in (table.variance, table.low, table.high)),
        strict=True,
    )
    keys = ("std_dev", "low", "high", "variance", "variance_low", "variance_high")
    rows = [
        {"cell": name, **dict(zip(keys, (*ends, *ends_of_variance), strict=True))}
        for (name, *ends), *ends_of_variance in numbers
    ]
    return Answers(table.title, rows)


def _answer_correlations(request: AnswerRequest) -> Answers:
    """Compute the correlations and covariances of measures."""
    measures = _checked_measure("correlations", request.options.correlations, request).split(",")
    table = correlations(request.release, measures, by=request.by, level=request.level)
    return Answers(table.title, _statistic_rows(table))


def _answer_regression(request: AnswerRequest) -> Answers:
    """Compute the coefficients of a least-squares regression."""
    response, predictors = _read_regression("regression", request.options.regression, request)
    table = regression(request.release, response, on=predictors, by=request.by, level=request.level)
    return Answers(table.title, _statistic_rows(table))


def _read_regression(
    option: str, measures_text: str, request: AnswerRequest
) -> tuple[str, list[str]]:
    """Parse the response and the predictors in the text of an option."""
    text = _checked_measure(option, measures_text, request)
    response, separator, predictors = text.partition("=")
    if not separator:
        raise InputError(
            f"--{option} must be MEASURE=MEASURE,..., such as pay=age,tenure for pay on age and "
            f"tenure; got {text!r}."
        )
    return response, predictors.split(",")


def _answer_r_squared(request: AnswerRequest) -> Answers:
    """Compute R^2 of a least-squares regression."""
    response, predictors = _read_regression("r-squared", request.options.r_squared, request)
    table = r_squared(request.release, response, on=predictors, by=request.by, level=request.level)
    columns = {name: values.tolist() for name, values in table.columns().items()}
    rows = []
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        numbers = {name: number_or_null(row[name]) for name in table.numbers()}
        rows.append({**_cell_column(table.by, [row[name] for name in table.by]), **numbers})
    return Answers(table.title, rows)


def _statistic_rows(table: Correlations | Regression) -> list[dict[str, Any]]:
    """Return a row for each pair of measures, or regression term, of each group."""
    columns = {name: values.tolist() for name, values in table.columns().items()}
    rows = []
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        *names, last = table.by
        numbers = {name: number_or_null(row[name]) for name in table.numbers()}
        cell = _cell_column(names, [row[name] for name in names])
        rows.append({**cell, last: row[last], **numbers})
    return rows


def _answer_shares(request: AnswerRequest) -> Answers:
    """Compute the share of each cell in the total."""
    if request.where:
        raise InputError(
            "Shares cannot be restricted with --where. Use --cells NAME to compute the shares "
            "within each value of an attribute."
        )
    of = read_groups(request.release.plan.domain, request.options.shares.split(","))
    table = shares(
        request.release, of, sum=request.options.measure, by=request.by, level=request.level
    )
    columns = {name: values.tolist() for name, values in table.columns().items()}
    rows = []
    for numbers in zip(*columns.values(), strict=True):
        row = dict(zip(columns, numbers, strict=True))
        labels = [row[name] for name in table.by]
        share_facts = {
            name: number_or_null(row[name]) for name in ("share", "low", "high", "std_error")
        }
        rows.append({**_cell_column(table.by, labels), **share_facts})
    return Answers(table.title, rows)


def _answer_covariances(request: AnswerRequest) -> Answers:
    """List the covariances of the noise in the answers of a table."""
    table = request.release.tables[request.options.covariances]
    matrix = request.release.covariance(request.options.covariances).tolist()
    names = table.cell_names()
    pairs = [*combinations_with_replacement(range(len(names)), 2)]
    rows = [
        {"cell": names[first], "other_cell": names[second], "covariance": matrix[first][second]}
        for first, second in pairs
    ]
    return Answers(f"covariances of the noise in {table.name}, each pair once", rows)


_ANSWERS: dict[str, Callable[[AnswerRequest], Answers]] = {
    "cdf": _answer_cdf,
    "quantiles": _answer_quantiles,
    "means": _answer_means,
    "variances": _answer_variances,
    "correlations": _answer_correlations,
    "regression": _answer_regression,
    "r_squared": _answer_r_squared,
    "shares": _answer_shares,
    "covariances": _answer_covariances,
    "counts": _answer_counts,
}


def _split_level(domain: Domain, text: str) -> tuple[str, str] | None:
    """Split ``attribute:level`` at the colon; return None if there is no level."""
    name = max(
        (name for name in domain.names if text.startswith(f"{name}:")), key=len, default=None
    )
    if text in domain.names or name is None:
        return None
    return name, text[len(name) + 1 :]


def _split_attribute(domain: Domain, option: str, text: str, syntax: str) -> tuple[str, str]:
    """Split ``NAME=TEXT`` into the attribute NAME and the text after its "=".

    Names of attributes may contain "=" too, so the longest name that matches is taken.
    """
    name = max(
        (name for name in domain.names if text.startswith(f"{name}=")), key=len, default=None
    )
    if name is None:
        typed_name = text.partition("=")[0]
        fault = f"{option} must be {syntax} with one of {', '.join(domain.names)}; got {text!r}."
        if typed_name not in domain.names:
            suggestion = did_you_mean(typed_name, domain.names)
            fault = f"{fault} {suggestion}".rstrip()
        raise InputError(fault)
    return name, text[len(name) + 1 :]


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--as",
    "form",
    required=True,
    metavar="FORM",
    help=f"One of: {', '.join(EXPORTS)}.",
)
@click.option("--out", type=FILE, required=True, help="The file to write; it must not exist yet.")
def export(directory: Path, form: str, out: Path) -> None:
    """Write a finished release in the format of another tool.

    RELEASE is the directory that `leastnoise release` wrote. Forms: review (for reviewers, after
    NIST SP 800-226, with marks where people must answer), registry (YAML for the registry of
    deployments), mbi (measurements for private-pgm), notebook (for Jupyter, Quarto), csvw (metadata
    of the CSV files), dcat (the entry of a data portal, DCAT-AP as JSON-LD).
    """
    check_new_file(out, _ADVICE)
    text = export_text(directory, form)
    write_new_file(out, text, _ADVICE)
    marks = [repr(mark) for mark in (FILL_IN, FILL_IN_ADDRESS) if mark in text]
    advice = f" Replace every {' and '.join(marks)} in it." if marks else ""
    click.echo(f"{display_path(out)} is written.{advice}")


@click.command("round")
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--to",
    "step",
    required=True,
    metavar="STEP",
    help="Round answers to multiples of this number, such as 5; sums are rounded in their unit.",
)
@click.option(
    "--below", metavar="LEAST", help="Leave out answers below this number.  [default: none]"
)
@click.option(
    "--out", type=FILE, required=True, help="The directory to write; it must not exist yet."
)
def rounding(directory: Path, step: str, below: str | None, out: Path) -> None:
    """Round a finished release, and leave out small answers.

    RELEASE is the directory that `leastnoise release` wrote. Writes every table as CSV. Its margins
    include the errors from rounding and from answers that are left out. Rounding adds no protection
    and spends no budget.
    """
    target = check_target(out)
    release = read_with_progress(directory)
    with (
        open_draft(target) as draft_directory,
        Progress("rounding", about=_SECONDS_PER_TABLE * len(release.tables)),
    ):
        write_rounded(release, draft_directory.path, step, below)
        draft_directory.publish()
    click.echo(
        f"{len(release.tables)} rounded tables are in {display_path(out)}; README.md there "
        "describes how rounding changes their error bars."
    )


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--out",
    type=FILE,
    required=True,
    help="The file to write, .csv or .parquet; it must not exist yet.",
)
@click.option(
    "--rows",
    type=int,
    metavar="N",
    help="The number of records to draw.  [default: the number that the release counted]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of the rounding, which need not be secret.",
)
@click.option(
    "--units",
    is_flag=True,
    help="Group rows into units; their number agrees with the units that the release counted.",
)
@click.option(
    "--size",
    metavar="NAME",
    help="Give the unit of each row as many rows as this attribute says.",
)
@click.option(
    "--weight",
    metavar="NAME",
    help="A measure; each record gets a weight, and the weights add up to the measure's sums.",
)
@click.option(
    "--whole",
    "whole_numbers",
    metavar="NAME",
    multiple=True,
    help="An attribute in bins whose values are whole numbers; repeat it for several.",
)
@click.option(
    "--page",
    type=FILE,
    help="The page that compares tables of the records with the release, .html.",
)
def synthesize(
    directory: Path,
    out: Path,
    rows: int | None,
    seed: int,
    page: Path | None,
    *,
    units: bool,
    **settings: Any,
) -> None:
    """Draw synthetic records from a finished release.

    RELEASE is the directory that `leastnoise release` wrote. The records have the columns and
    spellings of the spec, and roughly the counts of the release. They depend only on the release,
    have its privacy guarantee, and spend no budget. Values within bins and periods are uniform;
    attributes that share no table are independent.
    """
    check_new_file(out, _ADVICE)
    check_records_file(out)
    if page is not None:
        check_new_file(page, _ADVICE)
    release = read_with_progress(directory)
    with Progress("making records", about=_SECONDS_PER_MODEL):
        records = make_records(release.outcome, rows, seed, units=units, **settings)
        with open_new_file(out, _ADVICE) as temporary:
            write_records(records, temporary)
    if page is not None:
        _write_utility_pages(records, release, page)
    click.echo(
        f"{len(records.codes):,} records of {pluralize(len(records.names), 'attribute')} are in "
        f"{display_path(out)}."
    )
    for column, numbers in records.units.items():
        click.echo(
            f"They form {numbers.max() + 1:,} units in the column {column}, of "
            f"{len(numbers) / (numbers.max() + 1):.2f} records on average."
        )
    catalogue = release.options.terminal_catalogue
    count_tables = [table for table in release.tables if records.answers(table.product) is not None]
    print_table(
        "How far tables of the records are from the answers of the release",
        (
            ("table", "left"),
            ("root mean square", "right"),
            ("typical margin of the answers", "right"),
        ),
        [
            (
                _table_title(table, catalogue),
                format_number(records.distance(table)),
                format_number(table.typical_noise_margin),
            )
            for table in count_tables[:_MOST_TABLES]
        ],
    )
    if len(count_tables) > _MOST_TABLES:
        click.echo(f"... and {len(count_tables) - _MOST_TABLES:,} more tables.")


def _write_utility_pages(records: Records, release: Release, page: Path) -> None:
    """Write the pages, one a language, that compare records with a release.

    The page is written in all languages of the release.
    """
    for language in release.options.languages:
        path = utility_file(page, language, release.options.languages[0])
        text = render_utility_page(records, release, page, language)
        write_new_file(path, text, _ADVICE)
        click.echo(f"The utility page is {display_path(path)}.")
