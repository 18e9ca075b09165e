"""Commands on a finished release: ``show``, ``answer``, ``export``, ``round`` and ``synthesize``; they read no data and cost nothing."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._output import (
    FILE,
    format_amounts,
    json_option,
    check_new_file,
    display_path,
    open_new_file,
    format_number,
    print_facts,
    print_json,
    print_table,
    write_new_file,
)
from leastnoise._domain import Dates, Domain
from leastnoise._estimation import cdf, means, quantiles
from leastnoise._frames import pluralize
from leastnoise._progress import Progress
from leastnoise._release import (
    ENGLISH,
    FILL_IN,
    Release,
    StatisticTable,
    Table,
    check_records_file,
    check_target,
    draft,
    goodness,
    make_records,
    notices,
    notices_of_all,
    write_records,
    write_rounded,
)
from leastnoise._session import export as export_text
from leastnoise._session import read_release
from leastnoise._trusted.check import InputError, did_you_mean, exact
from leastnoise._workload import QuerySet, cells_of, groups_of, predicates, queries, ranges
from leastnoise._workload import level as level_queries

Where = Mapping[str, list[str]]
By = Mapping[str, QuerySet]
Answers = tuple[str, list[dict[str, Any]]]

_MOST_TABLES, _MOST_CHARTS, _MOST_BARS, _MOST_ROWS, _MOST_ANSWERS = 40, 4, 24, 60, 1000
_BAR_WIDTH = 30
_LONGEST = (
    80  # letters of a cell: a set of places may have thousands of names, all of which --json has
)
_BYTES_A_SECOND, _SECONDS_A_TABLE, _SECONDS_OF_A_MODEL = 1.5e6, 0.01, 10.0  # of one core of 2026
_NEEDED = "Say what to answer: --cells NAME, --ranges NAME=LOW..HIGH, --cdf NAME, --quantiles NAME=0.25,0.5,0.75, --means MEASURE "
_NEEDED += "or --covariances TABLE."
_NOT_ROUNDED = "These answers are not rounded, and none is left out, as they are in the files of this release. Add up first, then round."
_NO_MEASURES = "A mean needs counts and sums: ask for them before a release, with [[workload]] means = { of = ... }. "
_NO_MEASURES += "Of a number that is counted ask --quantiles."
_ADVICE = "Choose another file with --out."


def _read_with_progress(directory: Path) -> Release:
    """Read a release, with a line of progress because large ones take seconds."""
    files = [file for file in (directory / "measurements").glob("*.json") if file.is_file()]
    with Progress(
        f"opening {directory.name}",
        about=sum(file.stat().st_size for file in files) / _BYTES_A_SECOND,
    ):
        return read_release(directory)


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.argument("table_name", metavar="[TABLE]", required=False)
def show(release: Path, table: str | None) -> None:
    """Show a finished release: how exact it is, and its tables.

    RELEASE is the directory that `leastnoise release` wrote; TABLE the id or the name of one of its
    tables, such as q7 or "sex x age", or of one of its means, quantiles and distribution functions,
    such as s1.
    """
    made = _read_with_progress(release)
    if table is not None:
        for text in notices_of_all(made):
            click.echo(click.wrap_text(text, 100) + "\n")
        if made.statistics.has(table):
            _print_statistic(made, made.statistics[table], _MOST_ROWS)
        else:
            _print_table_with_bars(made, made.tables[table])
        return
    ratio, title, seeded = goodness(made.plan), made.options.title, not made.private
    print_facts(
        [
            *([("title", title)] if title else []),
            (
                "release",
                f"{pluralize(made.workload.rows, 'answer')} in {pluralize(len(made.tables), 'table')}",
            ),
            ("budget", format_amounts(made.privacy.budget, up=True)),
            ("protects", made.privacy.unit),
            *([("error / least possible", f"{ratio:.3f}")] if ratio is not None else []),
            *(("note", text) for text in notices(made)),
            *(
                [("noise", "NOT PRIVATE: it came from a seed; publish nothing of it")]
                if seeded
                else []
            ),
        ]
    )
    click.echo()
    tables = made.tables[:_MOST_TABLES]
    rows = [
        (each.id, each.name, f"{each.cells:,}", ENGLISH.error(each.typical_margin))
        for each in tables
    ]
    margin = f"typical\n± {ENGLISH.percent(made.level)}"
    print_table(
        "Tables", [("id", "left"), ("table", "fold"), ("answers", "right"), (margin, "right")], rows
    )
    if len(made.tables) > _MOST_TABLES:
        click.echo(f"and {len(made.tables) - _MOST_TABLES:,} more; all are in tables.csv.\n")
    for statistic in made.statistics:
        _print_statistic(made, statistic, _MOST_BARS)
    for each in [each for each in tables if len(each.labels) == 1 and each.cells <= _MOST_BARS][
        :_MOST_CHARTS
    ]:
        _print_table_with_bars(made, each)
    click.echo(
        f"One table: leastnoise show {release} {made.tables[0].id}. Further answers: leastnoise "
        f"answer {release} --help."
    )


def _print_table_with_bars(release: Release, table: Table) -> None:
    """Print the first rows of a table, each with a bar whose shaded end is its interval."""
    answers, lows, highs = (
        values.reshape(-1)[:_MOST_ROWS].tolist() for values in (table.answer, table.low, table.high)
    )
    top = max(*(abs(end) for end in (*lows, *highs) if not math.isnan(end)), 1e-300, 0.0)
    rows = [
        (
            cell,
            ENGLISH.number(answer, (high - answer) / 4),
            ENGLISH.error(high - answer),
            _draw_bar(low, answer, high, top),
        )
        for cell, answer, low, high in zip(table.cell_names(), answers, lows, highs, strict=False)
    ]
    columns = [
        ("cell", "fold"),
        ("answer", "right"),
        (f"± {ENGLISH.percent(release.level)}", "right"),
        ("", "left"),
    ]
    print_table(f"{table.id} {table.name}", columns, rows)
    if table.cells > _MOST_ROWS:
        click.echo(
            f"The first {_MOST_ROWS} of {table.cells:,} answers; the files in answers have all.\n"
        )


def _print_statistic(release: Release, statistic: StatisticTable, most: int) -> None:
    """Print means, quantiles or a distribution function: a line for each value with its interval."""
    interval = f"{ENGLISH.percent(release.level)} interval"
    columns = [
        *((name, "fold") for name in statistic.attributes),
        (statistic.value_name, "right"),
        (interval, "right"),
    ]
    print_table(f"{statistic.id} {statistic.name}", columns, statistic.written(ENGLISH, most))
    if statistic.cells > most:
        more = f"`leastnoise show RELEASE {statistic.id}` and the files in answers have more."
        click.echo(f"The first {most} of {statistic.cells:,}; {more}\n")


def _draw_bar(low: float, answer: float, high: float, top: float) -> str:
    """Draw a bar in block letters: dark up to the lower end of the interval, medium up to the answer, light up to the upper end."""
    if math.isnan(answer):
        return ""
    sure, middle, end = (
        max(0, math.ceil(_BAR_WIDTH * value / top - 0.5)) for value in (low, answer, high)
    )
    return "█" * sure + "▒" * (middle - sure) + "░" * (end - middle)


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--ranges",
    multiple=True,
    metavar="NAME=LOW..HIGH",
    help="A range of an attribute, both ends included: numbers, or dates such as "
    "month=2024-01..2024-03.",
)
@click.option(
    "--cells",
    multiple=True,
    metavar="NAME",
    help="Every value of an attribute, or every group of a level: store:region.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only rows with this value, or of this group of a level; given twice: with either.",
)
@click.option(
    "--sum", "measure", metavar="MEASURE", help="Sum a measure in place of counting rows."
)
@click.option(
    "--cdf", metavar="NAME", help="The share of rows up to each value of a number, by the --cells."
)
@click.option(
    "--quantiles",
    metavar="NAME=SHARE,...",
    help="Quantiles of a number, such as age=0.25,0.5,0.75, by the --cells.",
)
@click.option("--means", metavar="MEASURE", help="Means of a measure, by the --cells.")
@click.option(
    "--covariances",
    metavar="TABLE",
    help="Covariances of the noise in the answers of a table, by id or name.",
)
@click.option(
    "--level", type=float, help="Coverage of the intervals.  [default: that of the release]"
)
@json_option
def answer(release: Path, as_json: bool, level: float | None, **asked: Any) -> None:  # noqa: FBT001 - click passes flags by name
    """Give further answers from a finished release, at no cost.

    RELEASE is the directory that `leastnoise release` wrote. No data are read: answers and their
    exact errors follow from the measurements in the release, and what these do not determine is
    refused.
    """
    made = _read_with_progress(release)
    level = made.level if level is None else level
    heading, rows = _answer_options(made, level, asked)
    notes = [] if made.private else ["NOT PRIVATE: the noise of this release came from a seed."]
    notes += [*notices_of_all(made), *([_NOT_ROUNDED] if made.options.rounds else [])]
    if as_json:
        print_json({"level": level, "answers": rows, "notes": notes})
        return
    if len(rows) > _MOST_ANSWERS:
        click.echo(f"The first {_MOST_ANSWERS} of {len(rows):,} answers; --json gives all.")
    lines = zip(
        *(_format_column([row[name] for row in rows[:_MOST_ANSWERS]]) for name in rows[0]), strict=True
    )
    print_table(
        heading,
        [
            (name, "right" if isinstance(value, float) else "left")
            for name, value in rows[0].items()
        ],
        lines,
    )
    for note in notes:
        click.echo(click.wrap_text(note, 100))


def _format_column(values: Sequence[Any]) -> list[str]:
    """Write a column for people: whole numbers without decimals, shares with up to three decimals as they are, others with four digits."""
    numbers = [value for value in values if isinstance(value, float)]
    form = ",.0f" if all(value.is_integer() for value in numbers) else ""
    if all(0 < value == round(value, 3) < 1 for value in numbers):
        form = "g"
    texts = [
        (format(value, form) if form else format_number(value))
        if isinstance(value, float)
        else str(value or "")
        for value in values
    ]
    return [
        text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 3 :]}"
        for text in texts
    ]


def _answer_options(release: Release, level: float, asked: Mapping[str, Any]) -> Answers:
    """Return a heading and the rows of the one kind of answer that the options ask for."""
    kinds = [name for name in _ANSWERS if asked.get(name)]
    # Ranges and sums are counts of their own; cells and conditions are too, unless they say of what
    # a share, quantile or mean is.
    alone = (asked["cells"] and kinds in ([], ["covariances"])) or (asked["where"] and not kinds)
    if asked["ranges"] or asked["measure"] or alone:
        kinds.append("counts")
    if len(kinds) != 1:
        raise InputError(
            _NEEDED if not kinds else "One kind of answer can be asked for at a time. " + _NEEDED
        )
    domain, where = release.plan.domain, dict[str, list[str]]()
    for text in asked["where"]:
        condition, _, label = text.partition("=")
        if known := _split_level(domain, condition):
            where.setdefault(known[0], []).extend(
                map(str, cells_of(domain.kind(known[0]), {known[1]: label}))
            )
        else:
            name, label = _split_name(domain, "--where", text, "NAME=VALUE")
            where.setdefault(name, []).append(label)
    levels = [(text, _split_level(domain, text)) for text in asked["cells"]]
    by = groups_of(
        domain,
        [text if known is None else {known[0]: level_queries(known[1])} for text, known in levels],
        "--cells",
    )
    return _ANSWERS[kinds[0]](release, level, asked, where, by)


def _answer_counts(
    release: Release, level: float, asked: Mapping[str, Any], where: Where, by: By
) -> Answers:
    domain = release.plan.domain
    sets: dict[str, Any] = {name: predicates([labels]) for name, labels in where.items()}
    ends: dict[str, list[tuple[Any, ...]]] = {}
    for text in asked["ranges"]:
        name, listed = _split_name(domain, "--ranges", text, "NAME=LOW..HIGH")
        low, dots, high = listed.partition("..")
        if not dots:
            raise InputError(f"--ranges must be NAME=LOW..HIGH, such as age=20..39; got {text!r}.")
        pair: tuple[Any, ...] = (low.strip(), high.strip())
        if not isinstance(
            domain.kind(name), Dates
        ):  # whole numbers as int; others stay texts, which messages quote as they were typed
            numbers = [exact(f"an end of a range on {name}", end) for end in pair]
            pair = tuple(
                int(value) if value.denominator == 1 else end
                for value, end in zip(numbers, pair, strict=True)
            )
        ends.setdefault(name, []).append(pair)
    for name, wanted in [*((name, ranges(pairs)) for name, pairs in ends.items()), *by.items()]:
        if name in sets:
            raise InputError(
                f"{name} is selected twice; use one of --cells, --ranges and --where for it."
            )
        sets[name] = wanted
    (table,) = release.answer(queries(domain, sets, sum=asked["measure"]), level=level)
    columns = {name: values.tolist() for name, values in table.numbers().items()}
    kept = [
        name
        for name in ("answer", "noise_std", "approximation_std", "low", "high")
        if name in columns
    ]
    rows = [
        {
            "cell": cell,
            **{
                name: None if math.isnan(columns[name][row]) else float(columns[name][row])
                for name in kept
            },
        }
        for row, cell in enumerate(table.cell_names())
    ]
    return (
        (
            f"{(asked['measure'] and 'sums of ' + asked['measure']) or 'counts'}, "
            f"{ENGLISH.percent(level)} intervals"
        ),
        rows,
    )


def _answer_cdf(release: Release, level: float, asked: Mapping[str, Any], where: Where, by: By) -> Answers:
    name = asked["cdf"]
    function = cdf(release, name, where=where, by=by, level=level)
    rows = []
    for group, labels in enumerate(product(*function.labels)):
        curves = [
            curve.reshape(-1, len(function.values))[group].tolist()
            for curve in (function.share, function.low, function.high)
        ]
        for value, share, low, high in zip(function.values.tolist(), *curves, strict=True):
            rows.append(
                {
                    **_cell_entry(function.by, labels),
                    name: value,
                    "share": share,
                    "low": low,
                    "high": high,
                }
            )
    return (
        (
            f"share of rows up to each {name}, a {ENGLISH.percent(level)} band that holds everywhere "
            "at once"
        ),
        rows,
    )


def _answer_quantiles(
    release: Release, level: float, asked: Mapping[str, Any], where: Where, by: By
) -> Answers:
    text = asked["quantiles"]
    name, listed = _split_name(release.plan.domain, "--quantiles", text, "NAME=SHARE,...")
    try:
        shares = [float(share) for share in listed.split(",")]
    except ValueError:
        raise InputError(
            "--quantiles must be NAME=SHARE,... with numbers, such as age=0.25,0.5,0.75; got "
            f"{text!r}."
        ) from None
    made = quantiles(release, name, shares, where=where, by=by, level=level)
    rows = [
        {
            **_cell_entry(made.by, each.group),
            "share": each.share,
            name: each.value,
            "low": each.low,
            "high": each.high,
        }
        for each in made
    ]
    return f"quantiles of {name}, {ENGLISH.percent(level)} intervals", rows


def _cell_entry(names: Sequence[str], labels: Sequence[str | int]) -> dict[str, Any]:
    return (
        {"cell": ", ".join(f"{name}={label}" for name, label in zip(names, labels, strict=True))}
        if names
        else {}
    )


def _answer_means(
    release: Release, level: float, asked: Mapping[str, Any], where: Where, by: By
) -> Answers:
    measure = asked["means"]
    if where:
        raise InputError(
            "Means cannot be restricted with --where; say --cells NAME for means by the values of "
            "an attribute."
        )
    if not release.plan.domain.measures:
        raise InputError(
            f"--means must be a measure that the release sums, and it sums none; got {measure!r}. "
            f"{_NO_MEASURES}"
        )
    rows = [
        dict(zip(("cell", "mean", "low", "high"), row, strict=True))
        for row in means(release, measure, by=by, level=level).rows()
    ]
    return f"means of {measure}, {ENGLISH.percent(level)} intervals", rows


def _answer_covariances(
    release: Release, _level: float, asked: Mapping[str, Any], _where: Where, _by: By
) -> Answers:
    table = release.tables[asked["covariances"]]
    matrix, names = release.covariance(asked["covariances"]).tolist(), table.cell_names()
    pairs = [(first, second) for first in range(len(names)) for second in range(first, len(names))]
    rows = [
        {"cell": names[first], "other_cell": names[second], "covariance": matrix[first][second]}
        for first, second in pairs
    ]
    return f"covariances of the noise in {table.name}, each pair once", rows


_ANSWERS: dict[str, Callable[[Release, float, Mapping[str, Any], Where, By], Answers]] = {
    "cdf": _answer_cdf,
    "quantiles": _answer_quantiles,
    "means": _answer_means,
    "covariances": _answer_covariances,
    "counts": _answer_counts,
}


def _split_level(domain: Domain, text: str) -> tuple[str, str] | None:
    """Split a name such as store:region into an attribute and its level; None if it is the name of an attribute, or no level at all."""
    name = max(
        (name for name in domain.names if text.startswith(f"{name}:")), key=len, default=None
    )
    return None if text in domain.names or name is None else (name, text[len(name) + 1 :])


def _split_name(domain: Domain, option: str, text: str, form: str) -> tuple[str, str]:
    """Split NAME=... into the attribute and the rest; names may hold "=", so the longest attribute that fits is taken."""
    name = max(
        (name for name in domain.names if text.startswith(f"{name}=")), key=len, default=None
    )
    if name is None:
        begun = text.partition("=")[0]
        near = "" if begun in domain.names else did_you_mean(begun, domain.names)
        raise InputError(
            f"{option} must be {form} with one of {', '.join(domain.names)}; got {text!r}."
            + (f" {near}" if near else "")
        )
    return name, text[len(name) + 1 :]


@click.command()
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--as", "form", required=True, metavar="FORM", help="review, registry, mbi or notebook."
)
@click.option("--out", type=FILE, required=True, help="The file to write; it must not exist yet.")
def export(release: Path, form: str, out: Path) -> None:
    """Write a finished release in another form.

    RELEASE is the directory that `leastnoise release` wrote. Forms: review (for reviewers, after
    NIST SP 800-226; what only people can answer is marked), registry (YAML for the registry of
    deployments), mbi (measurements for private-pgm), notebook (for Jupyter, Quarto).
    """
    check_new_file(out, _ADVICE)
    text = export_text(release, form)
    write_new_file(out, text, _ADVICE)
    click.echo(
        f"{display_path(out)} is written."
        + (f" Replace every {FILL_IN!r} in it." if FILL_IN in text else "")
    )


@click.command("round")
@click.argument("directory", metavar="RELEASE", type=FILE)
@click.option(
    "--to",
    required=True,
    metavar="STEP",
    help="Answers become multiples of this, such as 5; sums in their own unit.",
)
@click.option("--below", metavar="LEAST", help="Answers below this are left out.  [default: none]")
@click.option(
    "--out", type=FILE, required=True, help="The directory to write; it must not exist yet."
)
def rounding(release: Path, to: str, below: str | None, out: Path) -> None:
    """Round a finished release, and leave out small answers.

    RELEASE is the directory that `leastnoise release` wrote. Every table is written as CSV, with
    margins that include what rounding and leaving out add. It protects nobody further, and costs
    nothing.
    """
    target = check_target(out)
    made = _read_with_progress(release)
    with draft(target) as new, Progress("rounding", about=_SECONDS_A_TABLE * len(made.tables)):
        write_rounded(made, new.path, to, below)
        new.publish()
    click.echo(
        f"{len(made.tables)} rounded tables are in {display_path(out)}; README.md there says what "
        "rounding does to their error bars."
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
    help="How many records.  [default: as many as the release counted]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of the rounding; nothing here is secret.",
)
@click.option(
    "--units",
    is_flag=True,
    help="Group rows into units, with as many rows as the release counted for a unit on average.",
)
def synthesize(release: Path, out: Path, rows: int | None, seed: int, *, units: bool) -> None:
    """Write records that agree with a finished release.

    RELEASE is the directory that `leastnoise release` wrote. The records have the columns and
    spellings of the spec, and about the counts of the release. They are made from the release
    alone, so they protect as it does and cost nothing. Values within bins and periods are drawn
    evenly; attributes that no table has together are independent.
    """
    check_new_file(out, _ADVICE)
    check_records_file(out)
    finished = _read_with_progress(release)
    with Progress("making records", about=_SECONDS_OF_A_MODEL):
        made = make_records(finished.outcome, rows, seed, units=units)
        with open_new_file(out, _ADVICE) as part:
            write_records(made, part)
    click.echo(
        f"{len(made.codes):,} records of {pluralize(len(made.names), 'attribute')} are in "
        f"{display_path(out)}."
    )
    counts = [table for table in finished.tables if table.product.measure is None]
    print_table(
        "How far tables of the records are from the answers of the release",
        (
            ("table", "left"),
            ("root mean square", "right"),
            ("typical margin of the answers", "right"),
        ),
        [
            (table.name, format_number(made.distance(table)), format_number(table.typical_margin))
            for table in counts[:_MOST_TABLES]
        ],
    )
    if len(counts) > _MOST_TABLES:
        click.echo(f"... and {len(counts) - _MOST_TABLES:,} more tables.")
