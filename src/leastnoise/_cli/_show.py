"""``leastnoise show``: a finished release in the terminal, with small charts; reads no data and costs nothing."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leastnoise._cli._opened import opened
from leastnoise._cli._output import show_facts, show_table, whole

if TYPE_CHECKING:
    from leastnoise._release import Release, StatisticTable, Table

_MOST_TABLES = 40
_MOST_CHARTS = 4
_MOST_BARS = 24
_MOST_ROWS = 60
_WIDTH = 30


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("table", required=False)
def show(release: Path, table: str | None) -> None:
    """A finished release: what it has, how exact it is, and its tables.

    RELEASE is the directory that `leastnoise release` wrote; TABLE the id or the name of one of its tables, such as q7 or "sex x age", or
    of one of its means, quantiles and distribution functions, such as s1.
    """
    from leastnoise._release import notices_of_all

    found = opened(release)
    if table is not None:
        for text in notices_of_all(found):
            click.echo(click.wrap_text(text, 100) + "\n")
    if table is not None and found.statistics.has(table):
        _statistic(found, found.statistics[table], _MOST_ROWS)
        return
    if table is not None:
        _one(found, found.tables[table], _MOST_ROWS)
        return
    show_facts(_facts(found))
    click.echo()
    rows = [_row(one) for one in found.tables[:_MOST_TABLES]]
    percent = f"{100 * found.level:g}%"
    show_table("Tables", [("id", "left"), ("table", "fold"), ("answers", "right"), (f"typical\n± {percent}", "right")], rows)
    if len(found.tables) > _MOST_TABLES:
        click.echo(f"and {whole(len(found.tables) - _MOST_TABLES)} more; all are in tables.csv.\n")
    for made in found.statistics:
        _statistic(found, made, _MOST_BARS)
    small = [one for one in found.tables[:_MOST_TABLES] if len(one.labels) == 1 and one.cells <= _MOST_BARS][:_MOST_CHARTS]
    for one in small:
        _one(found, one, _MOST_ROWS)
    click.echo(f"One table: leastnoise show {release} {found.tables[0].id}. Further answers: leastnoise answer {release} --help.")


def _facts(release: "Release") -> list[tuple[str, str]]:
    from leastnoise._accounting import charge_text, whole_budget
    from leastnoise._frames import several
    from leastnoise._release import goodness, notices

    privacy = release.privacy
    ratio = goodness(release.plan)
    return [
        ("release", f"{several(release.workload.rows, 'answer')} in {several(len(release.tables), 'table')}"),
        ("budget", charge_text(privacy.budget, whole_budget(privacy.budget))),
        ("protects", privacy.unit),
        *([("error / least possible", f"{ratio:.3f}")] if ratio is not None else []),
        *(("note", text) for text in notices(release)),
        *([] if release.private else [("noise", "NOT PRIVATE: it came from a seed; publish nothing of it")]),
    ]


def _row(table: "Table") -> tuple[str, ...]:
    from leastnoise._release import texts

    return table.id, table.name, whole(table.cells), texts().error(table.typical_margin)


def _one(release: "Release", table: "Table", most: int) -> None:
    """A table with a bar a row, as far as it fits; the shaded end of a bar is its interval."""
    from leastnoise._release import texts

    said = texts()
    answers, lows, highs = (values.reshape(-1)[:most].tolist() for values in (table.answer, table.low, table.high))
    top = max(*(abs(end) for end in (*lows, *highs) if not math.isnan(end)), 1e-300, 0.0)
    percent = f"± {100 * release.level:g}%"
    rows = [
        (cell, said.number(answer, (high - answer) / 4), said.error(high - answer), bar(low, answer, high, top))
        for cell, answer, low, high in zip(table.cell_names(), answers, lows, highs, strict=False)
    ]
    show_table(f"{table.id} {table.name}", [("cell", "fold"), ("answer", "right"), (percent, "right"), ("", "left")], rows)
    if table.cells > most:
        click.echo(f"The first {whole(most)} of {whole(table.cells)} answers; the files in answers have all.\n")


def _statistic(release: "Release", made: "StatisticTable", most: int) -> None:
    """Means, quantiles or a distribution function: a line a value, with its interval."""
    from leastnoise._release import texts

    columns = [*((name, "fold") for name in made.keys), (made.value_name, "right"), (f"{100 * release.level:g}% interval", "right")]
    show_table(f"{made.id} {made.name}", columns, made.written(texts(), most))
    if made.cells > most:
        click.echo(
            f"The first {whole(most)} of {whole(made.cells)}; `leastnoise show RELEASE {made.id}` and the files in answers have more.\n"
        )


def bar(low: float, answer: float, high: float, top: float, width: int = _WIDTH) -> str:
    """A bar of block letters: full up to the lower end of the interval, shaded up to the answer, light up to the upper end."""
    if math.isnan(answer):
        return ""
    sure, middle, end = (max(0, math.ceil(width * value / top - 0.5)) for value in (low, answer, high))
    return "█" * sure + "▒" * (middle - sure) + "░" * (end - middle)
