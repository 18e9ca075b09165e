"""The commands that pay: ``leastnoise release``, ``categories`` and ``resume``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._main import AFTERWARDS, BAD_INPUT, FAULT, UNFINISHED
from leastnoise._cli._output import (
    FILE,
    amounts,
    display_path,
    of_spec,
    options,
    plan_with_progress,
    read_command_spec,
    show_facts,
    warn,
    without_cache,
)
from leastnoise._plan import Plan
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
from leastnoise._session import release as released
from leastnoise._spec import Spec, plan_warnings, read_plan, search_plans, spec_warnings
from leastnoise._trusted.check import InputError, InternalError, LeastNoiseError, PaidError

_NOT_PRIVATE = """\
!!  NOT PRIVATE: the noise of a seeded run protects nobody, because whoever knows the seed can take it away.
!!  Nothing was paid. Use it for tests with data that are not secret, and publish nothing of it."""
_NNLS = """\
Warning: nnls = true adds answer_nnls, which is biased. Its cells come nearer to the truth; sums of cells need not, because what is cut off
below 0 is added to other cells. The total is fixed, nnls_rmse is simulated and no promise, and the unbiased answers stay beside it."""
_LOCAL = """\
Warning: local_non_negative = true adds answer_local, which is biased: small cells are too large and large ones too small, by an unknown
amount. It has no error bars; the unbiased answers stay beside it."""
_WORSE = (BAD_INPUT, AFTERWARDS, UNFINISHED, FAULT)  # the least bad first

_payment = options(
    ("--source", FILE, "The data, if the spec file does not name it."),
    ("--ledger", FILE, "The ledger.  [default: beside the data, made if it is not there]"),
    (
        "--dataset",
        str,
        "Name of the data set in the ledger.  [default: the name of the data's file]",
    ),
    ("--share", str, "The share of the budget that pays, where the ledger has shares."),
)


@click.command()
@click.argument("spec", type=FILE)
@_payment
def categories(spec: Path, **payment: Any) -> None:
    """Find categories that nobody can list, privately, for a price.

    For each [domain.NAME] unknown = { most = ... }, this spends its share of the budget and writes
    the categories that were found beside the spec, where `plan`, `check` and `release` find them.
    `release` does this too, if it was not done before.
    """
    what = read_command_spec(spec)
    if not what.searches:
        raise InputError(
            "This spec has no unknown categories; say for example [domain.agent] unknown = { most "
            "= 10000 }."
        )
    what, ledger = _with_payment("search", what, **payment)
    settle_earlier(ledger)
    for search in what.searches:
        if search.found is not None:
            where = display_path(search.directory)
            click.echo(
                f"The categories of {search.attribute} were found before: "
                f"{len(search.found.texts):,}, in {where}."
            )
    if any(search.found is None for search in what.searches):
        check_before_planning(ledger, what, spec.parent.absolute())
        _find_categories(what, spec, ledger)


@click.command()
@click.argument("spec", type=FILE)
@click.option(
    "--out", type=FILE, required=True, help="The directory to write; it must not exist yet."
)
@_payment
@click.option(
    "--plan",
    "made",
    type=FILE,
    help="A plan from `leastnoise plan SPEC --out`; nothing is planned.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="NOT PRIVATE: reproducible noise, for tests alone. Nothing is paid.",
)
@click.option(
    "--through",
    help="Of a series: the last period to publish.  [default: the last one that is over]",
)
@of_spec
@without_cache
def release(
    spec: Path, out: Path, made: Path | None, seed: int | None, through: str | None, **payment: Any
) -> None:
    """Measure, estimate, and write answers, manifest and report.

    The ledger is charged before any noise is drawn. If something is refused, nothing is spent and
    nothing is written.

    A spec with [series] is paid once. Each run then publishes the periods that are over, each in a
    directory of its own below that of --out.
    """
    what = read_command_spec(spec)
    if made is not None and any(search.found is None for search in what.searches):
        raise InputError(
            "A plan is for categories that are known. Find them first, with `leastnoise "
            "categories`, and plan again."
        )
    plan = None if made is None else read_plan(made, what)
    warn_of_bias(what)
    what, ledger = _with_payment("release", what, **payment)
    if what.series is None and through is not None:
        raise InputError(
            "--through is for a spec with [series], whose periods are published one after the "
            "other."
        )
    if what.series is not None:
        if seed is not None:
            raise InputError("A series has no seeded run; leave out --seed.")
        settle_earlier(ledger)
        warn(spec_warnings(what))
        _publish_due_periods(
            what, out, ledger, lambda: plan or plan_with_progress(what)[0], through
        )
        return
    target = check_target(out)
    known = settle_earlier(ledger) if seed is None else frozenset[str]()
    check_before_planning(ledger if seed is None else None, what, target.parent)
    warn(spec_warnings(what))
    if seed is not None:
        click.echo(_NOT_PRIVATE, err=True)
    new = not ledger.exists()
    what = _find_categories(what, spec, ledger, seed)
    plan = plan or plan_with_progress(what)[0]
    if plan.promise is None and made is None and seed is None:
        plan = _planned_within_ledger(what, plan, ledger)
    check_options(plan, what.options)
    warn([*plan_warnings(what, plan), *guard_warnings(what, plan)])
    published = run_release(what, plan, out, ledger=ledger, seed=seed, known=known)
    show_release(
        published,
        out,
        None if seed is not None else ledger,
        new=new,
        notes=list_file_notices(published),
    )


def guard_warnings(what: Spec, plan: Plan) -> list[str]:
    """Return a warning where the guard of a spec is too weak for its public number of rows."""
    return [*filter(None, [guard_warning(plan.privacy, what.options)])]


def _planned_within_ledger(what: Spec, plan: Plan, ledger: Path) -> Plan:
    """Plan again within what stopped guards have left, for mechanisms that cannot be rescaled."""
    declared = stated_privacy(what.privacy)
    if declared is None or not ledger.exists():
        return plan
    book = Ledger.open(ledger, share=what.share)
    part = plan_budget_left(book, plan, what.options)
    if part == 1:
        return plan
    return plan_with_progress(replace(what, privacy=declared.share(part)))[0]


def warn_of_bias(what: Spec) -> None:
    """Warn that answers without negative cells are biased, if the spec asks for them."""
    for asked, sentence in ((what.options.nnls, _NNLS), (what.options.local_non_negative, _LOCAL)):
        if asked:
            click.echo(sentence, err=True)


def _with_payment(
    doing: str,
    what: Spec,
    source: Path | None,
    ledger: Path | None,
    dataset: str | None,
    share: str | None,
) -> tuple[Spec, Path]:
    """Return the spec with what the options of a command say of data and payment, and the path of the ledger that pays."""
    data = source or what.source
    if data is None:
        raise InputError(
            f'A {doing} must have data; add [source] path = "people.csv" to the spec file, or say '
            "--source people.csv."
        )
    completed = replace(
        what, source=data, dataset=dataset or what.dataset, share=share or what.share
    )
    return completed, ledger or what.ledger or ledger_beside(data)


def release_name(entry: Entry) -> str:
    """Return the name of a release of the ledger in messages."""
    return f"Release {entry.number} of {entry.reserved_on} ({entry.charge})"


def settle_earlier(ledger: Path, *, hint: bool = True) -> frozenset[str]:
    """Settle earlier releases that were stopped, print the state of each, and return the identifiers of all entries."""
    if not ledger.exists():
        return frozenset()
    book = Ledger.open(ledger)
    for entry in reconcile_ledger(book):
        where = display_path(Path(entry.output))
        if entry.state == "sealed":
            state = f"after it was published: paid and whole, in {where}."
        else:
            state = f"while it was measured: paid and absent. Nothing is at {where}, and its budget stays spent."
        click.echo(f"{release_name(entry)} was stopped {state}", err=True)
    entries = book.entries()
    for entry in entries if hint else ():
        if is_unfinished(book, entry):
            click.echo(
                f"{release_name(entry)} was stopped before it was published: paid and resumable. "
                f"`leastnoise resume {display_path(ledger)}` "
                "finishes it without paying again.",
                err=True,
            )
    return frozenset(entry.id for entry in entries)


@contextmanager
def _reading(what: Spec, then: str, about: float = 0.0) -> Iterator[tuple[Any, RowProgress]]:
    """Give the data of a spec, and what shows how far reading is, while a line is shown."""
    data = what.source and what.data(what.source)
    doing = f"reading {what.data_name}"
    with Progress(f"{doing}, {then}") as progress:
        yield data, RowProgress(progress, doing, then, blocks=count_csv_blocks(data), about=about)


def _terms(what: Spec, ledger: Path, seed: int | None) -> dict[str, Any]:
    """Return the arguments of a release that say who pays: the ledger or its share, or nobody where a seed makes the noise."""
    paying = (
        None
        if seed is not None
        else Ledger.open(ledger, share=what.share)
        if what.share
        else ledger
    )
    return {"ledger": paying, "dataset": what.dataset, "seed": seed}


def _find_categories(what: Spec, spec: Path, ledger: Path, seed: int | None = None) -> Spec:
    """Find the categories that the spec does not know yet, and return the spec that knows them."""
    plans, made = search_plans(what.searches, what.privacy), dict[str, FoundCategories]()
    for search in [search for search in what.searches if search.found is None]:
        about, out = (
            f"the categories of {search.attribute}",
            search.directory if seed is None else None,
        )
        with _reading(what, f"finding {about}") as (data, report):
            terms = {**_terms(what, ledger, seed), "progress": report, "out": out}
            known = find_categories(
                plans[search.attribute], data, whole=stated_privacy(what.privacy), **terms
            )
        files = [] if out is None else [("list", display_path(out / "categories.csv"))]
        spent = (
            "nothing, because this is NOT PRIVATE" if out is None else str(known.receipt["charge"])
        )
        show_facts([(about, f"{len(known.texts):,} found"), *files, ("spent", spent)])
        made[search.attribute] = known
    return (
        replace(
            read_command_spec(spec, made),
            source=what.source,
            dataset=what.dataset,
            share=what.share,
        )
        if made
        else what
    )


def run_release(
    what: Spec,
    plan: Plan,
    out: Path,
    *,
    ledger: Path,
    seed: int | None = None,
    known: frozenset[str] = frozenset(),
) -> Release:
    """Make a release, with a line of progress; ``known`` are the entries that the ledger had before."""
    with _reading(
        what, "measuring, estimating and writing", finishing_seconds(plan, what.options)
    ) as (data, report):
        made = released(
            plan, data, out=out, options=what.options, progress=report, **_terms(what, ledger, seed)
        )
    if made.observation.receipt in known:
        click.echo(
            "This release was paid and measured before, and stopped; it is finished now, and "
            "nothing was paid again.",
            err=True,
        )
    return made


def show_release(
    made: Release, out: Path, ledger: Path | None, *, new: bool, notes: Sequence[str] = ()
) -> None:
    """Print where the files of a release are, what was spent and what is left."""
    counts = describe_guard_counts(made)
    guard = 'none: [plan] guard = "1/100" would stop a release of which few rows are used'
    facts = [
        (
            "answers",
            f"{display_path(out / 'answers')}, listed in {display_path(out / 'tables.csv')}",
        ),
        ("manifest", display_path(out / "manifest.json")),
        ("report", display_path(out / "report.html")),
        *(("note", text) for text in notes),
        ("guard", guard if counts is None else f"{counts} It cost {made.receipt['guard_charge']}."),
    ]
    if ledger is None:
        show_facts(
            [*facts, ("spent", "nothing, because this is NOT PRIVATE: publish nothing of it")]
        )
        return
    book = Ledger.open(ledger)
    entry = next(entry for entry in book.entries() if entry.id == made.observation.receipt)
    guard_number = made.receipt.get("guard_number")
    beside = "" if guard_number is None else f" (its guard is {guard_number})"
    where = f"{display_path(ledger)}{', new, with the budget of this plan' if new else ''}"
    show_facts(
        [
            *facts,
            *_spent(book, entry, amounts(book.privacy.budget, entry.charge, up=True), beside),
            ("ledger", where),
        ]
    )


def _spent(book: Ledger, entry: Entry, spent: str, beside: str = "") -> list[tuple[str, str]]:
    budget = book.privacy.budget
    left = f"{amounts(budget, book.left(), up=False)}, of {amounts(budget, up=False)}"
    return [
        ("spent", f"{spent}, release {entry.number} of the data set {book.dataset!r}{beside}"),
        ("left", left),
    ]


def _publish_due_periods(
    what: Spec, out: Path, ledger: Path, plan: Callable[[], Plan], through: str | None
) -> None:
    """Pay for a series if that was not done before, publish the periods that became due, and print where everything is."""
    with _reading(what, "drawing, estimating and writing") as (data, report):
        done = publish_due_periods(what, data, out, ledger, plan, through=through, progress=report)
    book = Ledger.open(ledger)
    paid = amounts(book.privacy.budget, done.entry.charge, up=True)
    spent = (
        f"{paid} for all periods"
        if done.paid
        else f"nothing: {paid} was paid on {done.entry.reserved_on} for all periods"
    )
    facts = [("release", display_path(directory)) for directory in done.releases] or [
        ("release", "none: nothing new is due")
    ]
    if done.state is None:
        facts.append(
            (
                "series",
                "whole: every period is published, and the private file of exact counts is removed",
            )
        )
    else:
        private = "exact counts lie in a file beside the ledger; keep it, show it to nobody"
        facts += [("series", drawn_words(done.state)), ("private", private)]
    if done.paid and what.options.guard is not None:
        facts.append(
            (
                "guard",
                (
                    f"{what.options.guard} of the budget counted the rows that are used, once, before "
                    "the first period"
                ),
            )
        )
    show_facts([*facts, *_spent(book, done.entry, spent)])


def drawn_words(state: PeriodState) -> str:
    """Return a sentence that says which periods of a series are drawn, due and not yet published."""
    drawn, all_of = state.drawn, len(state.labels)
    words = f"{drawn} of {all_of} periods drawn" + (
        f", up to {state.labels[drawn - 1]}" if drawn else ""
    )
    due = state.labels[drawn : state.due]
    words += (
        f"; due: {due[0]}{f' to {due[-1]}' if len(due) > 1 else ''}" if due else "; nothing is due"
    )
    return words + (
        f"; not published yet: {', '.join(state.unpublished)}" if state.unpublished else ""
    )


@click.command()
@click.argument("ledger", type=FILE, required=False)
@click.option(
    "--release", "number", type=int, help="Only the release of this number in the ledger."
)
@click.option(
    "--out", type=FILE, help="Another directory than the one it was paid for; with --release."
)
@click.option(
    "--source", type=FILE, help="The data, if steps are left to measure and the data have moved."
)
@click.pass_context
def resume(
    context: click.Context,
    ledger: Path | None,
    number: int | None,
    out: Path | None,
    source: Path | None,
) -> None:
    """Finish releases that were paid and not written, at no cost.

    LEDGER is the ledger's file; it may be left out where the current directory holds one only. What
    cannot be finished does not stop the others.
    """
    if ledger is None:
        beside = sorted(Path().glob("*.ledger"))
        if len(beside) != 1:
            raise InputError(
                "Say which ledger, as in `leastnoise resume people.ledger`; this directory holds "
                f"{len(beside) or 'none'}."
            )
        ledger = beside[0]
    settle_earlier(ledger, hint=False)
    book = Ledger.open(ledger)
    if number is None and out is not None:
        raise InputError(
            "--out is for one release; say which with --release, as `leastnoise ledger show` has "
            "it."
        )
    waiting = []
    for entry in [entry for entry in book.entries() if is_resumable(entry)]:
        if book.is_running(entry):  # what cannot be told counts as running
            click.echo(
                f"{release_name(entry)} is being made by another process, and left to it.", err=True
            )
        elif number is None and is_unfinished(book, entry):
            if entry.output != IN_MEMORY:
                waiting.append(entry.number)
                continue
            click.echo(
                f"{release_name(entry)} was made in Python and not for a directory: "
                f"leastnoise.resume({str(ledger)!r}) finishes it "
                f"there, `leastnoise resume {display_path(ledger)} --release {entry.number} --out DIR` "
                "here.",
                err=True,
            )
    chosen = waiting if number is None else [number]
    if not chosen:
        click.echo("Nothing to finish.")
    codes = [
        code
        for entry_number in chosen
        if (code := _finish(book, entry_number, source, out, alone=len(chosen) == 1))
    ]
    if codes:
        click.echo(
            f"{len(codes)} of {len(chosen)} releases were not finished; the reasons are above.",
            err=True,
        )
        context.exit(max(codes, key=_WORSE.index))


def _finish(
    book: Ledger, number: int, source: Path | None, out: Path | None, *, alone: bool
) -> int:
    """Finish a release and return 0; if it cannot be finished, raise if it is alone, else print why and return the exit code."""
    about, doing = estimate_resuming_seconds(book, number), f"finishing release {number}"
    try:
        with Progress(doing, about=about) as progress:
            report = RowProgress(
                progress, f"reading the data of release {number}", doing, about=about
            )
            (finished,) = finish_releases(book, source, number=number, out=out, progress=report)
    except LeastNoiseError as error:  # the others do not depend on it
        if alone:
            raise
        click.echo(f"Release {number} was not finished: {error}", err=True)
        if isinstance(error, PaidError):
            return AFTERWARDS if error.state == "whole" else UNFINISHED
        return FAULT if isinstance(error, InternalError) else BAD_INPUT
    where = (
        "nowhere, as it was asked for without a directory"
        if finished.out is None
        else display_path(finished.out)
    )
    click.echo(
        f"{release_name(finished.entry)} is finished: it is in {where}. Nothing was paid again."
    )
    return 0
