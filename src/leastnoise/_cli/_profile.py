"""The command ``leastnoise profile``, for data without a dictionary."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._output import (
    FILE,
    add_options,
    display_path,
    format_number,
    plan_with_progress,
    print_facts,
    print_table,
)
from leastnoise._cli._release import CommandObserver
from leastnoise._plan import Plan
from leastnoise._profile import (
    COVERED_UNITS,
    SIZE_SHARE,
    ColumnFindings,
    Profile,
    ProfilePlan,
    ProfileRequest,
    UnitSizes,
    measured_spec,
    plan_profile,
    plan_unit_sizes,
    run_profile,
    summarize_column,
)
from leastnoise._publication import describe_category_search
from leastnoise._session import DatabaseTable
from leastnoise._spec import plan_category_searches
from leastnoise._texts import Catalogue, load_catalogue
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError

_URL_VARIABLE = "DATABASE_URL"
_MOST_PRINTED_COLUMNS = 60  # the page has all columns; layout


@click.command("profile")
@click.argument("data", metavar="DATA|URL")
@add_options(
    ("--epsilon", str, "The budget of the profile, such as 1."),
    ("--delta", str, "With it, half of the budget finds the categories of texts; such as 1e-9."),
    (
        "--total",
        str,
        "The epsilon of a new ledger: this profile and the later releases.  [default: --epsilon]",
    ),
    ("--unit", str, "The column that names a person, or row if every row is another person."),
    (
        "--max-rows",
        int,
        (
            "The most rows of a person that count.  [default: from the counts of persons by their "
            "rows]"
        ),
    ),
    ("--out", FILE, "The directory to write.  [default: the name of DATA and -profile]"),
    ("--ledger", FILE, "The ledger.  [default: next to the data, created if it does not exist]"),
    ("--delimiter", str, "The character between the fields of a CSV file."),
    ("--encoding", str, "The encoding of a CSV file, such as latin-1.  [default: utf-8]"),
    ("--null", str, "Further texts for a missing value, separated by commas, such as NA,-9."),
    ("--table", str, "The table of a database, such as public.visits; DATA is its URL then."),
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show which tables would be measured, and their errors. Reads no row and pays nothing.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="NOT PRIVATE: reproducible noise, only for tests. Nothing is paid.",
)
def profile(data: str, *, dry_run: bool, seed: int | None, **options: Any) -> None:
    """Take a first look at data without a dictionary, and draft a spec.

    It spends a small budget. For each column, it measures the numbers of missing and unreadable
    values. It also measures a histogram over public cells, which are derived from the names and
    types of columns. It writes a page for colleagues and a drafted spec, whose bounds and
    categories come from the paid answers.

    Repeat the same command to finish a profile that was stopped; nothing is paid twice.
    """
    settings = ProfileSettings(data=data, **options)
    if settings.epsilon is None:
        raise InputError(
            "A profile must have a budget; got no --epsilon. Add for example --epsilon 1, and "
            "--dry-run to see the errors first."
        )
    plan = _profile_plan(settings, settings.epsilon)
    _print_cost(plan)
    if dry_run:
        _print_dry_run(plan)
        return
    observer = CommandObserver()
    finished_profile = run_profile(
        plan, ledger=settings.ledger, total=settings.total, seed=seed, observer=observer
    )
    _print_profile(finished_profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """The options of ``leastnoise profile`` as typed; None if not stated.

    Attributes:
        data: the path of a file, or the URL of a database.
        epsilon: the budget of the profile.
        delta: the delta of the budget.
        total: the whole budget of a new ledger.
        unit: the column that identifies the units; without it every row is a unit.
        max_rows: the most rows of a unit that count.
        out: the directory of the profile.
        ledger: the ledger that pays.
        delimiter: the delimiter of CSV files.
        encoding: the encoding of CSV files.
        null: the text for missing values in CSV files.
        table: the table of the database.
    """

    data: str
    epsilon: str | None
    delta: str | None
    total: str | None
    unit: str | None
    max_rows: int | None
    out: Path | None
    ledger: Path | None
    delimiter: str | None
    encoding: str | None
    null: str | None
    table: str | None


def _profile_plan(settings: ProfileSettings, epsilon: str) -> ProfilePlan:
    """Plan the tables of a profile from the options of the command."""
    source: Any = Path(settings.data)
    name = source.name.split(".")[0]
    if "://" in settings.data or settings.table:
        if settings.table is None:
            raise InputError(
                "A profile of a database needs --table, such as --table public.visits."
            )
        os.environ[_URL_VARIABLE] = settings.data
        source = DatabaseTable(settings.table, f"env:{_URL_VARIABLE}")
        name = source.parts[-1]
    layout: dict[str, Any] = {}
    if settings.delimiter is not None:
        layout["delimiter"] = settings.delimiter
    if settings.encoding is not None:
        layout["encoding"] = settings.encoding
    if settings.null is not None:
        layout["null"] = [text.strip() for text in settings.null.split(",")]
    request = ProfileRequest(
        source=source,
        epsilon=epsilon,
        delta=settings.delta,
        unit=settings.unit,
        max_rows=settings.max_rows,
        layout=layout,
    )
    return plan_profile(request, settings.out or Path(f"{name}-profile"))


def _print_cost(plan: ProfilePlan) -> None:
    """Print the cost of a profile, before anything is read or paid."""
    request = plan.request
    cost = f"epsilon = {request.epsilon}"
    if request.delta is not None:
        cost += f" and delta = {request.delta}"
    unit = "one row" if request.unit_column is None else f"one value of {request.unit_column!r}"
    searches = sum(table.kind == "text" for table in plan.tables)
    measured = f"{len(plan.tables)} tables"
    if searches:
        measured += f", after {searches} searches for categories"
    left_out = [column.name for column in plan.columns.listed if column.left_out]
    facts = [("costs", cost), ("protects", unit), ("measures", measured)]
    if plan.measures_unit_sizes:
        facts.append(("units", _unit_count_text(plan)))
    if left_out:
        facts.append(("left out", ", ".join(left_out)))
    print_facts(facts)


def _unit_count_text(plan: ProfilePlan) -> str:
    """Describe the cost of counting units, and the rule that sets ``max_rows``."""
    count_text = (
        f"are counted by their number of rows, for {SIZE_SHARE} of the budget of the tables"
    )
    rule = f"about {COVERED_UNITS:.0%} of the units have at most max_rows rows"
    if plan.request.max_rows is None:
        return f"{count_text}; {rule}, in the tables and in the draft"
    return (
        f"{count_text}; {rule} in the draft, and the tables count at most {plan.request.max_rows} "
        "rows"
    )


def _print_dry_run(plan: ProfilePlan) -> None:
    """Print the expected error of every table and search of a profile.

    If ``max_rows`` is not stated, the errors are for ``max_rows = 1``.
    """
    with measured_spec(plan) as spec:
        if isinstance(spec.privacy, Privacy):
            for attribute, search in plan_category_searches(spec.searches, spec.privacy).items():
                click.echo(f"{attribute}: {describe_category_search(search)}")
        error_plan, _ = plan_with_progress(spec)
    factor = 1.0
    if plan.measures_unit_sizes and plan.searched_tables:
        # The plan of the spec does not include the counts of units, which cost ``SIZE_SHARE``; the
        # noise is Gaussian.
        factor = float(1 - SIZE_SHARE) ** -0.5
    rows = _error_rows(error_plan, factor)
    if plan.measures_unit_sizes:
        rows = [*_error_rows(plan_unit_sizes(plan.unit_size_privacy())), *rows]
    print_table("", [("table", "fold"), ("cells", "right"), ("standard error", "right")], rows)
    if plan.measures_unit_sizes and plan.request.max_rows is None:
        click.echo(
            "The stated errors of the tables of columns are for max_rows = 1; they grow in "
            "proportion to max_rows."
        )
    click.echo("Nothing was read or paid. Without --dry-run, the profile is measured.")


def _error_rows(plan: Plan, error_factor: float = 1.0) -> list[list[str]]:
    """Return a row for each table: name, number of cells, and standard error.

    The standard error is multiplied by ``error_factor``.
    """
    errors = plan.expected_error().table_errors()
    return [
        [name, f"{product.rows:,}", format_number(error_factor * rmse)]
        for product, (name, rmse, _) in zip(plan.workload, errors, strict=True)
    ]


def _print_profile(finished_profile: Profile) -> None:
    """Print the findings of a profile, its files and the next command."""
    catalogue = load_catalogue()
    rows = finished_profile.findings.rows
    columns = list(finished_profile.findings.by_column().values())
    lines = [_column_row(column) for column in columns[:_MOST_PRINTED_COLUMNS]]
    headings = [("column", "fold"), ("values", "fold"), ("missing", "right"), ("no cell", "right")]
    print_table("", headings, lines)
    more = len(columns) - len(lines)
    facts = [("rows", catalogue.format_answer(rows.value, rows.margin))]
    if finished_profile.findings.unit_sizes is not None:
        facts += _unit_facts(finished_profile.findings.unit_sizes, catalogue)
    if more > 0:
        facts.append(("more", f"{more} further columns are on the page"))
    facts += [
        ("page", display_path(finished_profile.page)),
        ("draft", display_path(finished_profile.draft)),
    ]
    if finished_profile.run.ledger is None:
        facts.append(("spent", "nothing, because this is NOT PRIVATE: publish nothing from it"))
    else:
        facts.append(("ledger", display_path(finished_profile.run.ledger.path)))
    if not finished_profile.findings.has_rows:
        facts.insert(1, ("note", catalogue.say("profile_no_rows")))
    print_facts(facts)
    click.echo(f"Next: leastnoise plan {display_path(finished_profile.draft)}")


def _unit_facts(sizes: UnitSizes, catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return labels and texts: number of units, rows per unit, and ``max_rows``."""
    if not sizes.has_units:
        return [("units", catalogue.say("profile_units_too_noisy"))]
    mean = sizes.mean_rows
    mean_text = f"{mean.value:.1f} ({mean.low:.1f} to {mean.high:.1f})"
    effect = sizes.draft_effect
    return [
        ("units", catalogue.format_answer(sizes.units.value, sizes.units.margin)),
        ("rows per unit", f"{mean_text}, for units with at most {sizes.largest:,} rows"),
        (
            "max_rows",
            f"{effect.max_rows}; {effect.cut_units.value:.1%} of the units have more rows",
        ),
    ]


def _column_row(column: ColumnFindings) -> list[str]:
    """Return a column's name, summary, and shares of null and unreadable values."""
    return [
        column.measured.column.name,
        summarize_column(column, load_catalogue()),
        f"{column.missing_share.value:.1%}",
        f"{column.unreadable_share.value:.1%}",
    ]
