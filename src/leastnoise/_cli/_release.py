"""The commands that pay: ``release``, ``categories`` and ``resume``."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from leastnoise._charts import missing_charts_notice
from leastnoise._cli._main import AFTERWARDS, BAD_INPUT, FAULT, MISSED_TARGET, UNFINISHED
from leastnoise._cli._output import (
    FILE,
    add_options,
    cache_option,
    display_path,
    json_option,
    plan_progress,
    print_facts,
    print_json,
    print_warnings,
    read_command_spec,
    spec_argument,
    spec_option,
)
from leastnoise._pages import describe_guard_counts, list_file_notices
from leastnoise._plan import Plan
from leastnoise._progress import Progress, RowProgress
from leastnoise._publication import FoundBounds, FoundCategories, describe_found_bounds
from leastnoise._release import ReceiptFacts, Release
from leastnoise._session import (
    IN_MEMORY,
    Entry,
    Ledger,
    PublishedPeriods,
    RunObserver,
    SeriesProgress,
    SpecRun,
    check_before_planning,
    choose_ledger,
    count_csv_blocks,
    estimate_resuming_seconds,
    finish_releases,
    is_resumable,
    is_unfinished,
    pay_for_searches,
    reconcile_ledger,
    require_finished_searches,
    run_spec,
    settle_earlier_releases,
    with_data,
)
from leastnoise._spec import BoundsSearch, CategorySearch, Spec, read_plan
from leastnoise._trusted.accounting import left_text, limit_text, spent_text
from leastnoise._trusted.check import InputError, InternalError, LeastNoiseError, PaidError

_NOT_PRIVATE = """\
!!  NOT PRIVATE: the noise of a seeded run protects nobody, because anybody who knows the seed can
!!  subtract it.
!!  Nothing was paid. Use it for tests with data that are not secret, and publish nothing of it."""
_CODES_BEST_FIRST = (BAD_INPUT, AFTERWARDS, UNFINISHED, FAULT)

_payment = add_options(
    ("--source data_path", FILE, "The data, if the spec file does not name it."),
    (
        "--ledger ledger_path",
        FILE,
        "The ledger.  [default: next to the data, created if it does not exist]",
    ),
    (
        "--dataset",
        str,
        "The name of the data set in the ledger.  [default: the name of the data file]",
    ),
    ("--share", str, "The share of the budget that pays, if the ledger has shares."),
)


class CommandObserver(RunObserver):
    """Print the events of a run and progress lines.

    Args:
        is_quiet: if True, print nothing on the standard output, which then has only one JSON
            object.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self.warnings: list[str] = []
        self._is_quiet = is_quiet

    def warn(self, sentences: Iterable[str]) -> None:
        """Print warnings, and keep them for the JSON output."""
        new_warnings = list(sentences)
        self.warnings += new_warnings
        print_warnings(new_warnings)

    def show_settled(self, ledger: Ledger, settled: Iterable[Entry]) -> None:
        """Print the states of stopped releases, and how to finish them."""
        _print_settled(settled)
        for entry in ledger.entries():
            if is_unfinished(ledger, entry):
                click.echo(
                    f"{name_release(entry)} was stopped before it was published: paid and "
                    f"resumable. `leastnoise resume {display_path(ledger.path)}` "
                    "finishes it without paying again.",
                    err=True,
                )

    def show_not_private(self) -> None:
        """Print that the noise of a seeded run protects nobody."""
        click.echo(_NOT_PRIVATE, err=True)

    def show_categories(
        self, search: CategorySearch, categories: FoundCategories, directory: Path | None
    ) -> None:
        """Print the number of categories that a search found, and its cost."""
        if self._is_quiet:
            return
        facts = [(f"the categories of {search.attribute}", f"{len(categories.texts):,} found")]
        if directory is not None:
            facts.append(("list", display_path(directory / "categories.csv")))
        facts.append(("spent", _search_cost_text(categories.receipt)))
        print_facts(facts)

    def show_bounds(self, search: BoundsSearch, bounds: FoundBounds) -> None:
        """Print the bounds that a search found, and its cost."""
        if self._is_quiet:
            return
        spent = _search_cost_text(bounds.receipt)
        print_facts([(search.name, describe_found_bounds(bounds)), ("spent", spent)])

    @contextmanager
    def planning(self, spec: Spec) -> Iterator[Callable[[str], None]]:
        """Show a progress line during planning; yield a callback for strategy names."""
        with plan_progress(spec) as progress:
            yield progress.trying

    @contextmanager
    def reading(
        self, spec: Spec, data: Any, next_step: str, next_seconds: float = 0.0
    ) -> Iterator[RowProgress]:
        """Show a progress line while rows are read; yield its callback."""
        text = f"reading {spec.data_name}"
        with Progress(f"{text}, {next_step}") as progress:
            blocks = count_csv_blocks(data)
            yield RowProgress(progress, text, next_step, blocks=blocks, about=next_seconds)


def _search_cost_text(receipt: ReceiptFacts) -> str:
    """Return the text of a search's charge.

    The text says that a seeded search is free.
    """
    if receipt.payment is None:
        return "nothing, because this is NOT PRIVATE"
    return receipt.payment.charge


@click.command()
@spec_argument
@_payment
def categories_command(path: Path, ledger_path: Path | None, **payment: Any) -> None:
    """Find unknown categories and bounds privately, for a share of the budget.

    Each [domain.NAME] with unknown = { most = ... }, and each bound with the key most, spends a
    share of the budget. The result is written next to the spec, where `plan`, `check` and `release`
    read it. `release` does the same if it was not done before.
    """
    spec = read_command_spec(path)
    if not spec.all_searches:
        raise InputError(
            "This spec has no unknown categories and no bounds to be found; write for example "
            "[domain.agent] unknown = { most = 10000 }."
        )
    spec = with_data("search", spec, payment["data_path"], payment["dataset"], payment["share"])
    ledger_path = ledger_path or choose_ledger(spec)
    observer = CommandObserver()
    settle_earlier_releases(ledger_path, observer)
    for search in spec.searches:
        if search.result is not None:
            directory = display_path(search.directory)
            click.echo(
                f"The categories of {search.attribute} were found before: "
                f"{len(search.result.texts):,}, in {directory}."
            )
    for search_for_bounds in spec.bounds_searches:
        if search_for_bounds.result is not None:
            click.echo(
                f"{search_for_bounds.name} was found before: "
                f"{describe_found_bounds(search_for_bounds.result)}, in "
                f"{display_path(search_for_bounds.directory)}."
            )
    if any(search.result is None for search in spec.all_searches):
        check_before_planning(ledger_path, spec, path.parent.absolute())
        pay_for_searches(spec, ledger_path, observer)


@click.command()
@spec_argument
@click.option("--out", type=FILE, required=True, help="The directory to write.")
@_payment
@click.option(
    "--plan",
    "plan_path",
    type=FILE,
    help="A plan from `leastnoise plan SPEC --out`, instead of planning.",
)
@click.option("--note", default="", help="A one-line note, which the ledger records.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="NOT PRIVATE: reproducible noise, only for tests. Nothing is paid.",
)
@click.option(
    "--through",
    help="The last period of a series to publish.  [default: the last period that is over]",
)
@json_option
@spec_option
@cache_option
def release_command(
    path: Path,
    out: Path,
    plan_path: Path | None,
    seed: int | None,
    data_path: Path | None,
    ledger_path: Path | None,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    **settings: Any,
) -> None:
    """Measure, estimate, and write answers, manifest and report.

    The ledger is charged before any noise is drawn. If the release is refused, nothing is spent and
    nothing is written. If --out has this release already, nothing is done, and the exit code is 0.

    A spec with [series] is paid once. Each run then publishes the periods that are over, each in a
    separate directory in --out.
    """
    spec = read_command_spec(path)
    plan: Plan | None = None
    if plan_path is not None:
        require_finished_searches(spec)
        plan = read_plan(plan_path, spec)
    observer = CommandObserver(is_quiet=as_json)
    run = run_spec(
        spec,
        out,
        source=data_path,
        ledger=ledger_path,
        plan=plan,
        seed=seed,
        observer=observer,
        **settings,
    )
    if as_json:
        print_json({**run_json(run, out), "warnings": observer.warnings})
    else:
        print_run(run, out)
    if run.missed_targets:
        click.get_current_context().exit(MISSED_TARGET)


def run_json(run: SpecRun, out: Path) -> dict[str, Any]:
    """Return the results of a run as the JSON object of ``release --json``."""
    directories = [out.absolute()]
    if run.periods is not None:
        directories = [directory.absolute() for directory in run.periods.releases]
    elif run.status == "already released":
        directories = []
    facts: dict[str, Any] = {
        "status": run.status,
        "out": str(out.absolute()),
        "written": [str(directory) for directory in directories],
        "private": run.status != "not private",
        "missed_targets": list(run.missed_targets),
        "ledger": None,
    }
    if run.release is not None and run.release.receipt.guard is not None:
        facts["guard"] = describe_guard_counts(run.release)
    if run.ledger is not None and run.entry is not None:
        paid_now = run.status == "released" and (run.periods is None or run.periods.paid)
        facts["ledger"] = {
            "path": str(run.ledger.path.absolute()),
            "new": run.is_new_ledger,
            "dataset": run.ledger.dataset,
            "number": run.entry.number,
            "charge": run.entry.charge.to_json(),
            "paid_now": paid_now,
            "left": run.ledger.left().to_json(),
        }
    return facts


def print_run(run: SpecRun, out: Path) -> None:
    """Print the result of a run of a spec."""
    if run.periods is not None and run.ledger is not None:
        _print_periods(run.periods, run.ledger, run.release)
    elif run.release is not None and run.status == "already released":
        _print_already_released(run, out)
    elif run.release is not None:
        if run.status == "finished":
            click.echo(
                "This release was paid and measured before, and stopped. It is finished now; "
                "nothing was paid again.",
                err=True,
            )
        print_release(run, run.release, out)
    if run.missed_targets:
        click.echo(
            f"Missed targets: {'; '.join(run.missed_targets)}. The expected error is above "
            "the target of the spec.",
            err=True,
        )


def _print_already_released(run: SpecRun, out: Path) -> None:
    """Print that a directory already has this release, and when it was paid for."""
    click.echo(f"Already released: {display_path(out)} has this release. Nothing was done.")
    if run.ledger is not None and run.entry is not None:
        facts = [("paid", f"{run.entry.reserved_on} ({run.entry.charge})")]
        print_facts([*facts, *_budget_facts(run.ledger, run.entry, "nothing now")])


def name_release(entry: Entry) -> str:
    """Return how messages name a ledger entry: by its number, date and charge."""
    return f"Release {entry.number} of {entry.reserved_on} ({entry.charge})"


def _print_settled(settled: Iterable[Entry]) -> None:
    """Print whether each stopped release was published or will never be."""
    for entry in settled:
        directory = display_path(Path(entry.output))
        if entry.state == "sealed":
            outcome = f"after it was published: paid and whole, in {directory}."
        else:
            outcome = (
                f"while it was measured: paid and absent. Nothing is at {directory}, and the "
                "release's budget stays spent."
            )
        click.echo(f"{name_release(entry)} was stopped {outcome}", err=True)


def print_release(run: SpecRun, release: Release, out: Path) -> None:
    """Print the paths, the cost and the remaining budget after a release."""
    chart_notice = missing_charts_notice()
    catalogue = release.options.terminal_catalogue
    notes = [*list_file_notices(release, catalogue), *([chart_notice] if chart_notice else [])]
    facts = [
        (
            "answers",
            f"{display_path(out / 'answers')}, listed in {display_path(out / 'tables.csv')}",
        ),
        ("manifest", display_path(out / "manifest.json")),
        ("report", display_path(out / "report.html")),
        *(("note", text) for text in notes),
        ("guard", _describe_guard(release)),
    ]
    ledger = run.ledger
    entry = run.entry
    if ledger is None or entry is None:
        facts.append(("spent", "nothing, because this is NOT PRIVATE: publish nothing from it"))
        print_facts(facts)
        return
    spent = spent_text(ledger.privacy.budget, entry.charge)
    guard = release.receipt.guard
    if guard is None:
        guard_note = ""
    else:
        guard_note = f" (its guard is {guard.number})"
    if run.is_new_ledger:
        ledger_note = ", new, with the budget of this plan"
    else:
        ledger_note = ""
    print_facts(
        [
            *facts,
            *_budget_facts(ledger, entry, spent, guard_note),
            ("ledger", f"{display_path(ledger.path)}{ledger_note}"),
        ]
    )


def _describe_guard(release: Release) -> str:
    """Describe the guard's counts and cost; without a guard, how to add one."""
    guard = release.receipt.guard
    if guard is None:
        return 'none: [plan] guard = "1/100" would stop a release that uses few rows'
    counts = describe_guard_counts(release, release.options.terminal_catalogue)
    return f"{counts} It cost {guard.charge}."


def _budget_facts(
    ledger: Ledger, entry: Entry, cost_text: str, guard_note: str = ""
) -> list[tuple[str, str]]:
    """Return facts (label, text) about the cost and the remaining budget."""
    budget = ledger.privacy.budget
    left = left_text(budget, ledger.left())
    return [
        (
            "spent",
            f"{cost_text}, release {entry.number} of the data set {ledger.dataset!r}{guard_note}",
        ),
        ("left", f"{left}, of {limit_text(budget)}"),
    ]


def _print_periods(publication: PublishedPeriods, ledger: Ledger, newest: Release | None) -> None:
    """Print the periods that a run of a series published, and their cost."""
    entry = publication.entry
    facts = [("release", display_path(directory)) for directory in publication.releases]
    if not facts:
        facts.append(("release", "none: no new period is due"))
    if publication.state is None:
        facts.append(
            (
                "series",
                "whole: every period is published, and the private file of exact counts is removed",
            )
        )
    else:
        private = "a file with exact counts is next to the ledger; keep it, and do not share it"
        facts.append(("series", describe_drawn_periods(publication.state)))
        facts.append(("private", private))
    if newest is None:
        share = None
    else:
        share = newest.options.guard
    if publication.paid and share is not None:
        guard = f"{share} of the budget counted the used rows once, before the first period"
        facts.append(("guard", guard))
    cost = spent_text(ledger.privacy.budget, entry.charge)
    spent = f"nothing: {cost} was paid on {entry.reserved_on} for all periods"
    if publication.paid:
        spent = f"{cost} for all periods"
    print_facts([*facts, *_budget_facts(ledger, entry, spent)])


def describe_drawn_periods(state: SeriesProgress) -> str:
    """Describe how many periods of a series are drawn, due or not yet published."""
    words = f"{state.drawn} of {len(state.labels)} periods drawn"
    if state.drawn:
        words += f", up to {state.labels[state.drawn - 1]}"
    due = state.labels[state.drawn : state.due]
    if not due:
        words += "; nothing is due"
    elif len(due) == 1:
        words += f"; due: {due[0]}"
    else:
        words += f"; due: {due[0]} to {due[-1]}"
    if state.unpublished:
        words += f"; not published yet: {', '.join(state.unpublished)}"
    return words


@click.command()
@click.argument("ledger_path", metavar="[LEDGER]", type=FILE, required=False)
@click.option(
    "--release", "number", type=int, help="Finish only the release of this number in the ledger."
)
@click.option(
    "--out", type=FILE, help="Write to this directory instead of the planned one; with --release."
)
@click.option(
    "--source", type=FILE, help="The data, if steps remain to be measured and the data have moved."
)
@click.pass_context
def resume(
    context: click.Context,
    ledger_path: Path | None,
    number: int | None,
    out: Path | None,
    source: Path | None,
) -> None:
    """Finish releases that were paid but not published, at no cost.

    LEDGER is the file of the ledger. It defaults to the only ledger in the current directory. If
    one release cannot be finished, the command continues with the others.
    """
    if ledger_path is None:
        ledger_path = _find_only_ledger()
    ledger = Ledger.open(ledger_path)
    _print_settled(reconcile_ledger(ledger))
    if number is None and out is not None:
        raise InputError(
            "--out names the directory of one release. Choose the release with --release and a "
            "number that `leastnoise ledger show` lists."
        )
    unfinished = _numbers_to_finish(ledger, ledger_path, number)
    if number is None:
        numbers = unfinished
    else:
        numbers = [number]
    if not numbers:
        click.echo("Nothing to finish.")
    is_only_release = len(numbers) == 1
    codes = [
        _finish_release(ledger, entry_number, source, out, is_only_release=is_only_release)
        for entry_number in numbers
    ]
    failures = [code for code in codes if code]
    if failures:
        click.echo(
            f"{len(failures)} of {len(numbers)} releases were not finished; the reasons are above.",
            err=True,
        )
        context.exit(max(failures, key=_CODES_BEST_FIRST.index))


def _find_only_ledger() -> Path:
    """Return the path of the only ledger in the current directory.

    Raises InputError if the directory has no ledger, or several.
    """
    paths = sorted(Path().glob("*.ledger"))
    if len(paths) != 1:
        raise InputError(
            "Name the ledger, as in `leastnoise resume people.ledger`; this directory contains "
            f"{len(paths) or 'no'} ledgers."
        )
    return paths[0]


def _numbers_to_finish(ledger: Ledger, ledger_path: Path, number: int | None) -> list[int]:
    """Return the numbers of the releases of a ledger that ``resume`` can finish.

    Print a line for each release that another process, or a call in Python, has to finish.

    Args:
        ledger: the ledger.
        ledger_path: its file, as the user named it.
        number: the only release to finish; None for all.
    """
    numbers = []
    for entry in [entry for entry in ledger.entries() if is_resumable(entry)]:
        if ledger.is_running(entry):  # also if it is unknown
            click.echo(
                f"{name_release(entry)} is running in another process, which will finish it.",
                err=True,
            )
        elif number is None and is_unfinished(ledger, entry):
            if entry.output != IN_MEMORY:
                numbers.append(entry.number)
                continue
            here = (
                f"leastnoise resume {display_path(ledger_path)} --release {entry.number} --out DIR"
            )
            click.echo(
                f"{name_release(entry)} was made in Python, without a directory. "
                f"leastnoise.resume({str(ledger_path)!r}) finishes it there, `{here}` here.",
                err=True,
            )
    return numbers


def _finish_release(
    ledger: Ledger, number: int, source: Path | None, out: Path | None, *, is_only_release: bool
) -> int:
    """Finish a release; return the exit code.

    If the release cannot be finished, print the reason. If it is the only release, raise the error.
    """
    seconds = estimate_resuming_seconds(ledger, number)
    text = f"finishing release {number}"
    try:
        with Progress(text, about=seconds) as progress:
            report = RowProgress(
                progress, f"reading the data of release {number}", text, about=seconds
            )
            (finished_release,) = finish_releases(
                ledger, source, number=number, out=out, progress=report
            )
    except LeastNoiseError as error:  # the other releases do not depend on it
        if is_only_release:
            raise
        click.echo(f"Release {number} was not finished: {error}", err=True)
        if isinstance(error, PaidError):
            if error.state == "whole":
                return AFTERWARDS
            return UNFINISHED
        if isinstance(error, InternalError):
            return FAULT
        return BAD_INPUT
    where = "in no directory, because it was requested without a directory"
    if finished_release.out is not None:
        where = f"in {display_path(finished_release.out)}"
    click.echo(
        f"{name_release(finished_release.entry)} is finished: it is {where}. "
        "Nothing was paid again."
    )
    return 0
