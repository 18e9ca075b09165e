"""The command ``coarsen``: which hidden counts can readers compute?

The command reads a data holder's planned tables, never rows, and claims no privacy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._main import MISSED_TARGET
from leastnoise._cli._output import (
    FILE,
    format_number,
    json_option,
    plan_with_progress,
    print_json,
    print_table,
)
from leastnoise._coarsening import (
    MOST_COUNT,
    ROUNDINGS,
    HiddenCell,
    PlannedTable,
    RoundingRule,
    read_planned_table,
    solve_tables,
)
from leastnoise._error import measured_multiplier
from leastnoise._frames import pluralize
from leastnoise._plan import AdaptivePlan
from leastnoise._progress import Progress
from leastnoise._session import read_spec
from leastnoise._trusted.check import InputError, refuse

_MOST_CELLS = 40  # lines that are printed; --json has all
_SECONDS_PER_CELL = 0.02  # for the progress line
_NO_CLAIM = (
    "The intervals hold for readers who know these tables and nothing else. Other tables, and "
    "people who know their own row, narrow them. This is not a privacy guarantee."
)
_UNPROVED = (
    "For some cells the solver reached its time limit: there may be fewer possible counts than "
    "printed. Solve fewer tables together."
)


@click.command()
@click.argument("paths", metavar="TABLE...", nargs=-1, required=True, type=FILE)
@click.option(
    "--base",
    type=int,
    default=1,
    show_default=True,
    help="Round counts to multiples of this number.",
)
@click.option(
    "--rounding",
    type=click.Choice(ROUNDINGS),
    default="nearest",
    show_default=True,
    help="The rounding method. 'random' rounds up or down to a neighbouring multiple.",
)
@click.option(
    "--suppressed",
    default="0..",
    show_default=True,
    metavar="LOW..HIGH",
    help="The range of counts that may be suppressed, such as 1..4.",
)
@click.option(
    "--values",
    "least_possible_counts",
    type=int,
    default=2,
    show_default=True,
    help="Require at least this number of possible counts for every hidden cell.",
)
@click.option(
    "--total",
    default="Total",
    show_default=True,
    help="The label of a row that sums over all values of an attribute.",
)
@click.option("--spec", "spec_path", type=FILE, help="Also show the margins of this spec's plan.")
@json_option
def coarsen(
    paths: tuple[Path, ...],
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    least_possible_counts: int,
    total: str,
    spec_path: Path | None,
    **rounding: Any,
) -> None:
    """Find hidden cells that readers can compute from rounded tables.

    TABLE is a CSV file of counts that you plan to publish. It has a column for each attribute and
    the column "count", which is empty where a cell is suppressed. For each rounded or suppressed
    cell, the command computes the counts that agree with all the tables. It reads no rows and costs
    nothing. The exit code is 5 in two cases: a cell has fewer possible counts than --values, or the
    solver cannot decide this in time.
    """
    if least_possible_counts < 2:
        raise refuse("--values", least_possible_counts, "a whole number of at least 2")
    rule = _read_rounding_rule(**rounding)
    tables = [read_planned_table(path) for path in paths]
    _check_distinct_names(tables)
    margins = None
    if spec_path is not None:
        margins = _expected_margins(spec_path, tables, total)
    expected_seconds = _SECONDS_PER_CELL * sum(len(table.counts) for table in tables)
    with Progress("solving", about=expected_seconds):
        cells = solve_tables(tables, rule, total)
    disclosed = [cell for cell in cells if cell.is_disclosed(least_possible_counts)]
    has_unproved = not all(cell.is_proved for cell in cells)
    summaries = [_summarise_table(table, cells, least_possible_counts) for table in tables]
    if as_json:
        cell_facts = [_cell_json(cell, least_possible_counts) for cell in cells]
        print_json({"tables": _tables_json(summaries, margins), "cells": cell_facts})
    else:
        _print_summaries(summaries, margins)
        _print_disclosed(disclosed)
        if has_unproved:
            click.echo(click.wrap_text(_UNPROVED, 100))
        elif not disclosed:
            click.echo("Every hidden cell has enough possible counts.")
        click.echo(click.wrap_text(_NO_CLAIM, 100))
    if disclosed or has_unproved:
        click.get_current_context().exit(MISSED_TARGET)


def _read_rounding_rule(base: int, rounding: str, suppressed: str) -> RoundingRule:
    """Return the rounding rule that the options of the command state."""
    if not 1 <= base <= MOST_COUNT:
        raise refuse(
            "--base", base, f"a whole number from 1 to {MOST_COUNT:,}; 1 is for exact counts"
        )
    low, dots, high = suppressed.partition("..")
    if not dots or not _is_count(low) or not (_is_count(high) or not high):
        raise refuse(
            "--suppressed",
            suppressed,
            f"LOW..HIGH in whole numbers of at most {MOST_COUNT:,}, such as 1..4, or 0..",
        )
    least = int(low)
    most = int(high) if high else None
    if most is not None and most < least:
        raise refuse("--suppressed", suppressed, "LOW..HIGH with LOW at most HIGH, such as 1..4")
    return RoundingRule(base, rounding, (least, most))


def _is_count(text: str) -> bool:
    """Return whether ``text`` is a whole number from 0 to ``MOST_COUNT``."""
    return text.isdecimal() and len(text) <= len(str(MOST_COUNT)) and int(text) <= MOST_COUNT


def _check_distinct_names(tables: Sequence[PlannedTable]) -> None:
    """Raise InputError if two tables come from files of the same name."""
    names = [table.name for table in tables]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"Two tables have the file name {name!r}. Rename one of them.")


def _expected_margins(
    spec_path: Path, tables: Sequence[PlannedTable], total_label: str
) -> dict[str, float | None]:
    """Return the expected margin of each table, from the plan of a spec.

    The margin is the typical half-width of an interval, in rows. The margin is None in two cases:
    the plan has no counts by the same attributes, or its errors depend on the data.
    """
    spec = read_spec(spec_path)
    plan, _ = plan_with_progress(spec)
    margin_of: dict[frozenset[str], float] = {}
    if plan.data_independent_error is not None and not isinstance(plan, AdaptivePlan):
        measured = plan.measured()
        multiplier = measured_multiplier(measured, spec.options.level, plan.workload)
        for product, error in zip(
            plan.workload.products, plan.data_independent_error.tables, strict=True
        ):
            if product.measure is None and product.is_marginal:
                margin = multiplier * error.rmse + 0.5 / measured.grid
                margin_of[frozenset(product.attributes)] = margin
    return {table.name: margin_of.get(_split_attributes(table, total_label)) for table in tables}


def _split_attributes(table: PlannedTable, total_label: str) -> frozenset[str]:
    """Return the attributes that have other labels than just the label of totals."""
    names = set()
    for position, name in enumerate(table.attributes):
        labels = {labels_of_cell[position] for labels_of_cell in table.counts}
        if labels - {total_label}:
            names.add(name)
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class _TableSummary:
    """Counts of the hidden and the disclosed cells of a planned table.

    Attributes:
        table: the name of the table.
        cells: the number of its cells.
        hidden: the number of cells that are not published exactly.
        determined: the number of hidden cells that have exactly one possible count.
        disclosed: the number of hidden cells with fewer possible counts than ``--values``.
        fewest_values: the smallest number of possible counts of a hidden cell; None if no cell has
            an upper limit.
    """

    table: str
    cells: int
    hidden: int
    determined: int
    disclosed: int
    fewest_values: int | None


def _summarise_table(
    table: PlannedTable, cells: Sequence[HiddenCell], least_possible_counts: int
) -> _TableSummary:
    """Count the hidden and the disclosed cells of a table."""
    hidden = [cell for cell in cells if cell.table == table.name]
    numbers = [cell.possible_count for cell in hidden if cell.possible_count is not None]
    return _TableSummary(
        table=table.name,
        cells=len(table.counts),
        hidden=len(hidden),
        determined=sum(cell.possible_count == 1 for cell in hidden),
        disclosed=sum(cell.is_disclosed(least_possible_counts) for cell in hidden),
        fewest_values=min(numbers, default=None),
    )


def _tables_json(
    summaries: Sequence[_TableSummary], margins: Mapping[str, float | None] | None
) -> list[dict[str, Any]]:
    """Return each table as a JSON object, with its margin if there is a plan."""
    tables = []
    for summary in summaries:
        facts = asdict(summary)
        if margins is not None:
            facts["plan_margin"] = margins[summary.table]
        tables.append(facts)
    return tables


def _cell_json(cell: HiddenCell, least_possible_counts: int) -> dict[str, Any]:
    """Return a hidden cell as a JSON object."""
    return {
        "table": cell.table,
        "cell": dict(cell.labels),
        "published": cell.published,
        "low": cell.low,
        "high": cell.high,
        "proved": cell.is_proved,
        "disclosed": cell.is_disclosed(least_possible_counts),
    }


def _print_summaries(
    summaries: Sequence[_TableSummary], margins: Mapping[str, float | None] | None
) -> None:
    """Print a row for each table, with its expected margin if there is a plan."""
    columns = [
        ("table", "fold"),
        ("cells", "right"),
        ("hidden", "right"),
        ("determined", "right"),
        ("too few\nvalues", "right"),
        ("fewest\nvalues", "right"),
    ]
    if margins is not None:
        columns.append(("margin of\nthe plan", "right"))
    rows = []
    for summary in summaries:
        counts = (summary.cells, summary.hidden, summary.determined, summary.disclosed)
        row = [summary.table, *(f"{count:,}" for count in counts)]
        fewest = summary.fewest_values
        row.append("no limit" if fewest is None else f"{fewest:,}")
        if margins is not None:
            margin = margins[summary.table]
            row.append("not planned" if margin is None else format_number(margin))
        rows.append(row)
    print_table("What readers can compute from these tables", columns, rows)


def _print_disclosed(cells: Sequence[HiddenCell]) -> None:
    """Print the disclosed cells and their possible counts."""
    if not cells:
        return
    rows = []
    for cell in cells[:_MOST_CELLS]:
        labels = ", ".join(f"{name}={label}" for name, label in cell.labels.items())
        published = "suppressed" if cell.published is None else f"{cell.published:,}"
        possible = f"{cell.low:,}" if cell.possible_count == 1 else f"{cell.low:,} to {cell.high:,}"
        rows.append([cell.table, labels, published, possible])
    columns = [("table", "fold"), ("cell", "fold"), ("published", "right"), ("possible", "right")]
    print_table("Cells with too few possible counts", columns, rows)
    if len(cells) > _MOST_CELLS:
        click.echo(f"... and {pluralize(len(cells) - _MOST_CELLS, 'more cell')}.")
