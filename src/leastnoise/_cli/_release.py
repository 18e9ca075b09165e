"""The commands that pay: ``release``, ``categories`` and ``resume``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._main import AFTERWARDS, BAD_INPUT, FAULT, UNFINISHED
from leastnoise._cli._output import (
    FILE,
    add_options,
    cache_option,
    display_path,
    format_amounts,
    plan_with_progress,
    print_facts,
    print_warnings,
    read_command_spec,
    spec_argument,
    spec_option,
)
from leastnoise._plan import CategoryPlan, Plan
from leastnoise._planning import stated_privacy
from leastnoise._progress import Progress, RowProgress
from leastnoise._release import (
    FoundCategories,
    Release,
    check_options,
    check_target,
    describe_guard_counts,
    finishing_seconds,
    list_file_notices,
)
from leastnoise._session import (
    IN_MEMORY,
    Entry,
    Ledger,
    PeriodState,
    check_before_planning,
    count_csv_blocks,
    estimate_resuming_seconds,
    find_categories,
    finish_releases,
    guard_warning,
    is_resumable,
    is_unfinished,
    ledger_beside,
    plan_budget_left,
    publish_due_periods,
    reconcile_ledger,
)
from leastnoise._session import release as make_release
from leastnoise._spec import (
    CategorySearch,
    Spec,
    plan_warnings,
    read_plan,
    search_plans,
    spec_warnings,
)
from leastnoise._trusted.check import InputError, InternalError, LeastNoiseError, PaidError

_NOT_PRIVATE = """\
!!  NOT PRIVATE: the noise of a seeded run protects nobody, because anybody who knows the seed can subtract it.
!!  Nothing was paid. Use it for tests with data that are not secret, and publish nothing of it."""
_NNLS = """\
Warning: nnls = true adds answer_nnls, which is biased. Its cells are closer to the truth; sums of cells need not be, because what
is cut off below 0 is added to other cells. The total is fixed, nnls_rmse is simulated and no promise, and the unbiased answers stay."""
_LOCAL = """\
Warning: local_non_negative = true adds answer_local, which is biased: small cells are too large and large ones too small, by an unknown
amount. It has no error bars; the unbiased answers stay."""
_CODES_BEST_FIRST = (BAD_INPUT, AFTERWARDS, UNFINISHED, FAULT)

_payment = add_options(
    ("--source data_path", FILE, "The data, if the spec file does not name it."),
    (
        "--ledger ledger_path",
        FILE,
        "The ledger.  [default: beside the data, created if it does not exist]",
    ),
    (
        "--dataset",
        str,
        "The name of the data set in the ledger.  [default: the name of the data file]",
    ),
    ("--share", str, "The share of the budget that pays, if the ledger has shares."),
)


@click.command()
@spec_argument
@_payment
def categories(path: Path, **payment: Any) -> None:
    """Find categories that nobody can list, privately, for a price.

    For each [domain.NAME] unknown = { most = ... }, this spends a share of the budget and writes
    the categories beside the spec, where `plan`, `check` and `release` read them. `release` also
    does this if it was not done before.
    """
    spec = read_command_spec(path)
    if not spec.searches:
        raise InputError(
            "This spec has no unknown categories; write for example [domain.agent] unknown = { most "
            "= 10000 }."
        )
    spec, ledger_path = _add_payment("search", spec, **payment)
    settle_earlier_releases(ledger_path)
    for search in spec.searches:
        if search.found is not None:
            directory = display_path(search.directory)
            click.echo(
                f"The categories of {search.attribute} were found before: "
                f"{len(search.found.texts):,}, in {directory}."
            )
    if any(search.found is None for search in spec.searches):
        check_before_planning(ledger_path, spec, path.parent.absolute())
        _find_categories(spec, path, ledger_path)


@click.command()
@spec_argument
@click.option(
    "--out", type=FILE, required=True, help="The directory to write; it must not exist yet."
)
@_payment
@click.option(
    "--plan",
    "plan_path",
    type=FILE,
    help="A plan from `leastnoise plan SPEC --out`, instead of planning.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="NOT PRIVATE: reproducible noise, only for tests. Nothing is paid.",
)
@click.option(
    "--through",
    help="The last period of a series to publish.  [default: the last that is over]",
)
@spec_option
@cache_option
def release(
    path: Path,
    out: Path,
    plan_path: Path | None,
    seed: int | None,
    through: str | None,
    **payment: Any,
) -> None:
    """Measure, estimate, and write answers, manifest and report.

    The ledger is charged before any noise is drawn. If the release is refused, nothing is spent and
    nothing is written.

    A spec with [series] is paid once. Each run then publishes the periods that are over, each in a
    separate directory in --out.
    """
    spec = read_command_spec(path)
    if plan_path is not None and any(search.found is None for search in spec.searches):
        raise InputError(
            "--plan needs known categories, and some are not found yet. Run `leastnoise categories`, "
            "then plan again."
        )
    if plan_path is None:
        plan = None
    else:
        plan = read_plan(plan_path, spec)
    warn_of_bias(spec)
    spec, ledger_path = _add_payment("release", spec, **payment)
    if spec.series is None and through is not None:
        raise InputError(
            "--through is for a spec with [series], whose periods are published one by one."
        )
    if spec.series is not None:
        if seed is not None:
            raise InputError("A series has no seeded run; leave out --seed.")
        settle_earlier_releases(ledger_path)
        print_warnings(spec_warnings(spec))
        _publish_due_periods(
            spec, out, ledger_path, lambda: plan or plan_with_progress(spec)[0], through
        )
        return
    target = check_target(out)
    if seed is None:
        earlier_ids = settle_earlier_releases(ledger_path)
    else:
        earlier_ids = frozenset[str]()
    check_before_planning(ledger_path if seed is None else None, spec, target.parent)
    print_warnings(spec_warnings(spec))
    if seed is not None:
        click.echo(_NOT_PRIVATE, err=True)
    is_new_ledger = not ledger_path.exists()
    spec = _find_categories(spec, path, ledger_path, seed)
    plan = plan or plan_with_progress(spec)[0]
    if plan.promise is None and plan_path is None and seed is None:
        plan = _plan_within_ledger(spec, plan, ledger_path)
    check_options(plan, spec.options)
    print_warnings([*plan_warnings(spec, plan), *guard_warnings(spec, plan)])
    finished = release_with_progress(
        spec, plan, out, ledger=ledger_path, seed=seed, earlier_ids=earlier_ids
    )
    print_release(
        finished,
        out,
        None if seed is not None else ledger_path,
        is_new_ledger=is_new_ledger,
        notes=list_file_notices(finished),
    )


def guard_warnings(spec: Spec, plan: Plan) -> list[str]:
    """Return a warning if the guard is too weak for the public number of rows."""
    warning = guard_warning(plan, spec.options)
    return [] if warning is None else [warning]


def _plan_within_ledger(spec: Spec, plan: Plan, ledger_path: Path) -> Plan:
    """Plan again with the budget that stopped guards have left.

    For mechanisms whose plans cannot be rescaled.
    """
    whole_budget_privacy = stated_privacy(spec.privacy)
    if whole_budget_privacy is None or not ledger_path.exists():
        return plan
    ledger = Ledger.open(ledger_path, share=spec.share)
    share_left = plan_budget_left(ledger, plan, spec.options)
    if share_left == 1:
        return plan
    return plan_with_progress(replace(spec, privacy=whole_budget_privacy.share(share_left)))[0]


def warn_of_bias(spec: Spec) -> None:
    """Warn that answers without negative cells are biased, if the spec has them."""
    if spec.options.nnls:
        click.echo(_NNLS, err=True)
    if spec.options.local_non_negative:
        click.echo(_LOCAL, err=True)


def _add_payment(
    purpose: str,
    spec: Spec,
    data_path: Path | None,
    ledger_path: Path | None,
    dataset: str | None,
    share: str | None,
) -> tuple[Spec, Path]:
    """Return the spec with the options of payment, and the ledger's path."""
    data = data_path or spec.source
    if data is None:
        raise InputError(
            f'A {purpose} must have data; add [source] path = "people.csv" to the spec file, or use '
            "--source people.csv."
        )
    completed = replace(
        spec, source=data, dataset=dataset or spec.dataset, share=share or spec.share
    )
    return completed, ledger_path or spec.ledger or ledger_beside(data)


def name_release(entry: Entry) -> str:
    """Return how messages name a release of the ledger."""
    return f"Release {entry.number} of {entry.reserved_on} ({entry.charge})"


def settle_earlier_releases(ledger_path: Path, *, suggest_resume: bool = True) -> frozenset[str]:
    """Settle earlier releases that were stopped, and print their states.

    Returns:
        The identifiers of all entries of the ledger.
    """
    if not ledger_path.exists():
        return frozenset()
    ledger = Ledger.open(ledger_path)
    for entry in reconcile_ledger(ledger):
        directory = display_path(Path(entry.output))
        if entry.state == "sealed":
            outcome = f"after it was published: paid and whole, in {directory}."
        else:
            outcome = f"while it was measured: paid and absent. Nothing is at {directory}, and its budget stays spent."
        click.echo(f"{name_release(entry)} was stopped {outcome}", err=True)
    entries = ledger.entries()
    for entry in entries if suggest_resume else ():
        if is_unfinished(ledger, entry):
            click.echo(
                f"{name_release(entry)} was stopped before it was published: paid and resumable. "
                f"`leastnoise resume {display_path(ledger_path)}` "
                "finishes it without paying again.",
                err=True,
            )
    return frozenset(entry.id for entry in entries)


@contextmanager
def _read_with_progress(
    spec: Spec, next_step: str, next_seconds: float = 0.0
) -> Iterator[tuple[Any, RowProgress]]:
    """Open the data of a spec, with a progress line.

    Args:
        spec: the spec.
        next_step: the text of the line when all rows are read.
        next_seconds: how many seconds the next step will take.

    Yields:
        The data, and the callback that receives the progress of reading.
    """
    data = spec.source and spec.data(spec.source)
    text = f"reading {spec.data_name}"
    with Progress(f"{text}, {next_step}") as progress:
        rows = RowProgress(
            progress, text, next_step, blocks=count_csv_blocks(data), about=next_seconds
        )
        yield data, rows


def _payment_arguments(spec: Spec, ledger_path: Path, seed: int | None) -> dict[str, Any]:
    """Return the arguments of a release that state who pays.

    The ledger or a share of it; nobody for a seeded run.
    """
    payer: Ledger | Path | None = ledger_path
    if seed is not None:
        payer = None
    elif spec.share:
        payer = Ledger.open(ledger_path, share=spec.share)
    return {"ledger": payer, "dataset": spec.dataset, "seed": seed}


def _find_categories(spec: Spec, path: Path, ledger_path: Path, seed: int | None = None) -> Spec:
    """Find the missing categories of a spec, and return the spec with them."""
    missing = [search for search in spec.searches if search.found is None]
    if not missing:
        return spec
    plans = search_plans(spec.searches, spec.privacy)
    found_categories = {
        search.attribute: _pay_search(spec, search, plans[search.attribute], ledger_path, seed)
        for search in missing
    }
    return replace(
        read_command_spec(path, found_categories),
        source=spec.source,
        dataset=spec.dataset,
        share=spec.share,
    )


def _pay_search(
    spec: Spec, search: CategorySearch, plan: CategoryPlan, ledger_path: Path, seed: int | None
) -> FoundCategories:
    """Find the categories of an attribute, and print their number and cost."""
    subject = f"the categories of {search.attribute}"
    out = search.directory if seed is None else None
    with _read_with_progress(spec, f"finding {subject}") as (data, progress):
        found = find_categories(
            plan,
            data,
            whole=stated_privacy(spec.privacy),
            progress=progress,
            out=out,
            **_payment_arguments(spec, ledger_path, seed),
        )
    facts = [(subject, f"{len(found.texts):,} found")]
    if out is None:
        facts.append(("spent", "nothing, because this is NOT PRIVATE"))
    else:
        facts.append(("list", display_path(out / "categories.csv")))
        facts.append(("spent", str(found.receipt["charge"])))
    print_facts(facts)
    return found


def release_with_progress(
    spec: Spec,
    plan: Plan,
    out: Path,
    *,
    ledger: Path,
    seed: int | None = None,
    earlier_ids: frozenset[str] = frozenset(),
) -> Release:
    """Make a release with a progress line.

    Args:
        spec: the spec.
        plan: its plan.
        out: the new directory.
        ledger: the ledger that pays.
        seed: the seed of the noise, for tests; nothing is paid then.
        earlier_ids: the entries that the ledger had before.
    """
    with _read_with_progress(
        spec, "measuring, estimating and writing", finishing_seconds(plan, spec.options)
    ) as (data, report):
        release = make_release(
            plan,
            data,
            out=out,
            options=spec.options,
            progress=report,
            **_payment_arguments(spec, ledger, seed),
        )
    if release.observation.receipt in earlier_ids:
        click.echo(
            "This release was paid and measured before, and stopped. It is finished now; nothing was "
            "paid again.",
            err=True,
        )
    return release


def print_release(
    release: Release,
    out: Path,
    ledger_path: Path | None,
    *,
    is_new_ledger: bool,
    notes: Sequence[str] = (),
) -> None:
    """Print where the files of a release are, its cost and the budget left."""
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
    if ledger_path is None:
        facts.append(("spent", "nothing, because this is NOT PRIVATE: publish nothing of it"))
        print_facts(facts)
        return
    ledger = Ledger.open(ledger_path)
    entry = next(entry for entry in ledger.entries() if entry.id == release.observation.receipt)
    spent = format_amounts(ledger.privacy.budget, entry.charge, up=True)
    guard_number = release.receipt.get("guard_number")
    if guard_number is None:
        guard_note = ""
    else:
        guard_note = f" (its guard is {guard_number})"
    if is_new_ledger:
        ledger_note = ", new, with the budget of this plan"
    else:
        ledger_note = ""
    print_facts(
        [
            *facts,
            *_spent_facts(ledger, entry, spent, guard_note),
            ("ledger", f"{display_path(ledger_path)}{ledger_note}"),
        ]
    )


def _describe_guard(release: Release) -> str:
    """Describe the counts of the guard and its cost, or how to have one."""
    counts = describe_guard_counts(release)
    if counts is None:
        return 'none: [plan] guard = "1/100" would stop a release that uses few rows'
    return f"{counts} It cost {release.receipt['guard_charge']}."


def _spent_facts(
    ledger: Ledger, entry: Entry, spent: str, guard_note: str = ""
) -> list[tuple[str, str]]:
    """Return the cost of a release, and the budget left in its ledger."""
    budget = ledger.privacy.budget
    left = format_amounts(budget, ledger.left(), up=False)
    return [
        (
            "spent",
            f"{spent}, release {entry.number} of the data set {ledger.dataset!r}{guard_note}",
        ),
        ("left", f"{left}, of {format_amounts(budget, up=False)}"),
    ]


def _publish_due_periods(
    spec: Spec, out: Path, ledger_path: Path, make_plan: Callable[[], Plan], through: str | None
) -> None:
    """Publish the periods of a series that are due, and print where they are.

    The first run pays for the whole series.
    """
    with _read_with_progress(spec, "drawing, estimating and writing") as (data, progress):
        publication = publish_due_periods(
            spec, data, out, ledger_path, make_plan, through=through, progress=progress
        )
    ledger = Ledger.open(ledger_path)
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
        private = "a file with exact counts is beside the ledger; keep it, and show it to nobody"
        facts.append(("series", describe_drawn_periods(publication.state)))
        facts.append(("private", private))
    if publication.paid and spec.options.guard is not None:
        share = spec.options.guard
        guard = f"{share} of the budget counted the used rows, once, before the first period"
        facts.append(("guard", guard))
    cost = format_amounts(ledger.privacy.budget, entry.charge, up=True)
    spent = f"nothing: {cost} was paid on {entry.reserved_on} for all periods"
    if publication.paid:
        spent = f"{cost} for all periods"
    print_facts([*facts, *_spent_facts(ledger, entry, spent)])


def describe_drawn_periods(state: PeriodState) -> str:
    """Describe which periods of a series are drawn, due and not yet published."""
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
    """Finish releases that were paid and not written, at no cost.

    LEDGER is the file of the ledger, by default the only one of the current directory. A release
    that cannot be finished does not stop the others.
    """
    if ledger_path is None:
        ledger_path = _only_ledger()
    settle_earlier_releases(ledger_path, suggest_resume=False)
    ledger = Ledger.open(ledger_path)
    if number is None and out is not None:
        raise InputError(
            "--out is for one release; choose it with --release and a number that "
            "`leastnoise ledger show` lists."
        )
    unfinished = _unfinished_numbers(ledger, ledger_path, number)
    numbers = unfinished if number is None else [number]
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


def _only_ledger() -> Path:
    """Return the only ledger of the current directory."""
    paths = sorted(Path().glob("*.ledger"))
    if len(paths) != 1:
        raise InputError(
            "Name the ledger, as in `leastnoise resume people.ledger`; this directory holds "
            f"{len(paths) or 'none'}."
        )
    return paths[0]


def _unfinished_numbers(ledger: Ledger, ledger_path: Path, number: int | None) -> list[int]:
    """Return the releases of a ledger that ``resume`` can finish.

    Prints a line for each release that another process or Python has to finish.

    Args:
        ledger: the ledger.
        ledger_path: its file, as the user named it.
        number: the only release to finish; None for all.
    """
    numbers = []
    for entry in [entry for entry in ledger.entries() if is_resumable(entry)]:
        if ledger.is_running(entry):  # also if it cannot be told
            click.echo(
                f"{name_release(entry)} is running in another process, and is left to it.", err=True
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
    """Finish a release, and return the exit code.

    If it cannot be finished, print the reason; raise the error if it is the only release.
    """
    seconds = estimate_resuming_seconds(ledger, number)
    text = f"finishing release {number}"
    try:
        with Progress(text, about=seconds) as progress:
            report = RowProgress(
                progress, f"reading the data of release {number}", text, about=seconds
            )
            (finished,) = finish_releases(ledger, source, number=number, out=out, progress=report)
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
    where = "in no directory, because it was requested without one"
    if finished.out is not None:
        where = f"in {display_path(finished.out)}"
    click.echo(
        f"{name_release(finished.entry)} is finished: it is {where}. Nothing was paid again."
    )
    return 0
