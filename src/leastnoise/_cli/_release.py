"""``leastnoise release``, ``categories`` and ``resume``: paid first, then measured, estimated and written; a series period by period."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from leastnoise._accounting import Privacy, budget_from_json
from leastnoise._check import InputError, InternalError, LeastNoiseError, PaidError
from leastnoise._cli._output import (
    data_name,
    number,
    of_spec,
    planned_shown,
    read_asked,
    rounded_budget_text,
    rounded_charge_text,
    show_facts,
    show_table,
    shown,
    whole,
    without_cache,
)
from leastnoise._plan import Plan
from leastnoise._planning import period_errors
from leastnoise._progress import Progress
from leastnoise._release import FoundCategories, Release, check_options, check_target, finishing_seconds, guard_words, notices
from leastnoise._session import (
    IN_MEMORY,
    Entry,
    Finished,
    Ledger,
    PeriodState,
    check_before,
    csv_blocks,
    find_categories,
    finish_all,
    is_unfinished,
    ledger_beside,
    release_due,
    resuming_seconds,
    settle,
)
from leastnoise._session import release as released
from leastnoise._spec import Searched, Spec, plan_warnings, read_plan, spec_warnings


def settle_earlier(ledger: Path, *, hint: bool = True) -> frozenset[str]:
    """Settle earlier releases that were not finished, and write the state of each."""
    if not ledger.exists():
        return frozenset()
    book = Ledger.open(ledger)
    for entry in settle(book):
        what, where = release_name(entry), shown(Path(entry.output))
        if entry.state == "sealed":
            click.echo(f"{what} was stopped after it was published: paid and whole, in {where}.", err=True)
        else:
            click.echo(
                f"{what} was stopped while it was measured: paid and absent. Nothing is at {where}, and its budget stays spent.", err=True
            )
    entries = book.entries()
    for entry in entries if hint else ():
        if is_unfinished(book, entry):
            click.echo(
                f"{release_name(entry)} was stopped before it was published: paid and resumable. `leastnoise resume {shown(ledger)}` "
                "finishes it without paying again.",
                err=True,
            )
    return frozenset(entry.id for entry in entries)


def release_name(entry: Entry) -> str:
    """How an entry of the ledger is called in messages."""
    return f"Release {entry.number} of {entry.reserved_on} ({entry.charge})"


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--source", type=click.Path(path_type=Path), help="The data, if the spec file does not name it.")
@click.option("--ledger", type=click.Path(path_type=Path), help="The ledger.  [default: beside the data, made if it is not there]")
@click.option("--dataset", help="Name of the data set in the ledger.  [default: the name of the data's file]")
@click.option("--share", help="The share of the budget that pays, where the ledger has shares.")
def categories(spec: Path, source: Path | None, ledger: Path | None, dataset: str | None, share: str | None) -> None:
    """Find the categories that nobody can list, privately; `release` does it too.

    For every [domain.NAME] unknown = { most = ... } the share of the budget that it says is spent, and what was found is written beside the
    spec. From then on `plan`, `check` and `release` of this spec know it.
    """
    what = read_asked(spec)
    if not what.searches:
        raise InputError("This spec has no unknown categories; say for example [domain.agent] unknown = { most = 10000 }.")
    what, paying = _filled("search", what, source, ledger, dataset, share)
    settle_earlier(paying)
    for search in what.searches:
        if search.found is not None:
            click.echo(
                f"The categories of {search.attribute} were found before: {whole(len(search.found.texts))}, in {shown(search.directory)}."
            )
    if all(search.found is not None for search in what.searches):
        return
    check_before(paying, what, spec.parent.absolute())
    with_categories(what, spec, paying)


def with_categories(what: Spec, spec: Path, ledger: Path, seed: int | None = None) -> Spec:
    """Find what a spec does not know yet, and read it again."""
    searched = {search.attribute: _search(what, search, ledger, seed) for search in what.searches if search.found is None}
    if not searched:
        return what
    return replace(read_asked(spec, searched), source=what.source, dataset=what.dataset, share=what.share)


def _filled(doing: str, what: Spec, source: Path | None, ledger: Path | None, dataset: str | None, share: str | None) -> tuple[Spec, Path]:
    """A spec with what the options of a command say of data and payment, and the ledger that pays."""
    data = source or what.source
    if data is None:
        raise InputError(f'A {doing} must have data; add [source] path = "people.csv" to the spec file, or say --source people.csv.')
    completed = replace(what, source=data, dataset=dataset or what.dataset, share=share or what.share)
    return completed, ledger or what.ledger or ledger_beside(data)


@contextmanager
def _reading(what: Spec, then: str, about: float = 0.0) -> Iterator[tuple[Any, Callable[[int, int | None], None]]]:
    """The data of a spec, and what is told of the rows that are read, with a line of progress."""
    data, name = what.source and what.data(what.source), data_name(what)
    blocks = csv_blocks(data)
    with Progress(f"reading {name}, {then}") as progress:
        yield data, lambda done, among: progress.rows(f"reading {name}", then, done, among, blocks, about)


def _paying(what: Spec, ledger: Path, seed: int | None) -> Path | Ledger | None:
    """The ledger that pays, or the share of it."""
    return None if seed is not None else Ledger.open(ledger, share=what.share) if what.share else ledger


def _search(what: Spec, search: Searched, ledger: Path, seed: int | None) -> FoundCategories:
    about = f"the categories of {search.attribute}"
    if not isinstance(what.privacy, Privacy):
        raise InputError("The budget of a search must be known.")
    with _reading(what, f"finding {about}") as (data, report):
        categories = find_categories(
            search.plan(what.privacy),
            data,
            ledger=_paying(what, ledger, seed),
            out=None if seed is not None else search.directory,
            whole=what.privacy,
            dataset=what.dataset,
            seed=seed,
            progress=report,
        )
    spent = "nothing, because this is NOT PRIVATE" if seed is not None else str(categories.receipt["charge"])
    files = [] if seed is not None else [("list", shown(search.directory / "categories.csv"))]
    show_facts([(about, f"{whole(len(categories.texts))} found"), *files, ("spent", spent)])
    return categories


def search_facts(what: Spec) -> Iterator[dict[str, Any]]:
    """What the searches of a spec cost and find, as JSON objects with stable keys."""
    for search in what.searches:
        if isinstance(what.privacy, Privacy):
            plan = search.plan(what.privacy)
            yield {
                "attribute": search.attribute,
                "budget": plan.privacy.budget.to_json(),
                "threshold": plan.threshold,
                "often": plan.often,
                "most": search.kind.most,
                "found": None if search.found is None else len(search.found.texts),
            }


def show_searches(what: Spec) -> None:
    """Print what the searches of a spec cost and find."""
    for fact in search_facts(what):
        price = rounded_budget_text(budget_from_json(fact["budget"]), up=True)
        name, often, threshold, most = fact["attribute"], *(whole(fact[key]) for key in ("often", "threshold", "most"))
        if fact["found"] is not None:
            sentence = f"The categories of {name} are found and paid ({price}): {whole(fact['found'])}. The cost above is for the rest."
        else:
            sentence = (
                f"Before that, {price} pays for finding the categories of {name}. A search finds a category of {often} units in 95 of 100 "
                f"cases, one of {threshold} units in about half of them, and one of far fewer units never. The errors above are for {most} "
                "categories."
            )
        click.echo("\n" + click.wrap_text(sentence, 78))


_NOT_PRIVATE = """\
!!  NOT PRIVATE: the noise of a seeded run protects nobody, because whoever knows the seed can take it away.
!!  Nothing was paid. Use it for tests with data that are not secret, and publish nothing of it."""

_NNLS = """\
Warning: nnls = true adds answer_nnls, which is biased. Its cells come nearer to the truth; sums of cells need not, because what is cut off
below 0 is added to other cells. The total is fixed, nnls_rmse is simulated and no promise, and the unbiased answers stay beside it."""
_LOCAL = """\
Warning: local_non_negative = true adds answer_local, which is biased: small cells are too large and large ones too small, by an unknown
amount. It has no error bars; the unbiased answers stay beside it."""


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The directory to write; it must not exist yet.")
@click.option("--source", type=click.Path(path_type=Path), help="The data, if the spec file does not name it.")
@click.option("--ledger", type=click.Path(path_type=Path), help="The ledger.  [default: beside the data, made if it is not there]")
@click.option("--dataset", help="Name of the data set in the ledger.  [default: the name of the data's file]")
@click.option("--share", help="The share of the budget that pays, where the ledger has shares.")
@click.option("--plan", "made", type=click.Path(path_type=Path), help="A plan from `leastnoise plan SPEC --out`; nothing is planned.")
@click.option("--seed", type=click.IntRange(min=0), help="NOT PRIVATE: reproducible noise, for tests alone. Nothing is paid.")
@click.option(
    "--through",
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({"through": value}),
    help="Of a series: the last period to publish.  [default: the last one that is over]",
)
@of_spec
@without_cache
def release(
    spec: Path,
    out: Path,
    source: Path | None,
    ledger: Path | None,
    dataset: str | None,
    share: str | None,
    made: Path | None,
    seed: int | None,
) -> None:
    """Measure, estimate, and write answers, manifest and report.

    The ledger is charged before any noise is drawn. If something is refused, nothing is spent and nothing is written.

    A spec with [series] is paid once; each run then publishes the periods that are over, each in a directory of its own in DIR.
    """
    what = read_asked(spec)
    if made is not None and any(search.found is None for search in what.searches):
        raise InputError("A plan is for categories that are known. Find them first, with `leastnoise categories`, and plan again.")
    plan = None if made is None else read_plan(made, what)
    warn_of_bias(what)
    what, paying = _filled("release", what, source, ledger, dataset, share)
    through = click.get_current_context().meta["through"]
    if what.series is None and through is not None:
        raise InputError("--through is for a spec with [series], whose periods are published one after the other.")
    if what.series is not None:
        if seed is not None:
            raise InputError("A series has no seeded run; leave out --seed.")
        settle_earlier(paying)
        warn(spec_warnings(what))
        publish_due(what, out, paying, lambda: plan or planned_shown(what)[0], through)
        return
    target = check_target(out)
    known = settle_earlier(paying) if seed is None else frozenset[str]()
    check_before(paying if seed is None else None, what, target.parent)
    warn(spec_warnings(what))
    if seed is not None:
        click.echo(_NOT_PRIVATE, err=True)
    new = not paying.exists()
    what = with_categories(what, spec, paying, seed)
    plan = plan or planned_shown(what)[0]
    check_options(plan, what.options)
    warn(plan_warnings(what, plan))
    published = carry_out(what, plan, out, ledger=paying, seed=seed, known=known)
    show_release(published, out, None if seed is not None else paying, new=new, notes=notices(published))


def warn(sentences: Iterable[str]) -> None:
    """Print warnings on the standard error stream."""
    for sentence in sentences:
        click.echo(f"Warning: {sentence}", err=True)


def warn_of_bias(what: Spec) -> None:
    """Say what answers without negative cells are not, wherever they are asked for."""
    if what.options.nnls:
        click.echo(_NNLS, err=True)
    if what.options.local_non_negative:
        click.echo(_LOCAL, err=True)


def carry_out(what: Spec, plan: Plan, out: Path, *, ledger: Path, seed: int | None = None, known: frozenset[str] = frozenset()) -> Release:
    """Make a release with progress."""
    with _reading(what, "measuring, estimating and writing", finishing_seconds(plan, what.options)) as (data, report):
        paying, options, dataset = _paying(what, ledger, seed), what.options, what.dataset
        made = released(plan, data, ledger=paying, out=out, options=options, dataset=dataset, seed=seed, progress=report)
    if made.observation.receipt in known:
        click.echo("This release was paid and measured before, and stopped; it is finished now, and nothing was paid again.", err=True)
    return made


def show_release(made: Release, out: Path, ledger: Path | None, *, new: bool, notes: Sequence[str] = ()) -> None:
    """Print where everything is, what was spent and what is left."""
    counts = guard_words(made)
    guard = 'none: [plan] guard = "1/100" would stop a release of which few rows are used'
    if counts is not None:
        guard = f"{counts} It cost {made.receipt['guard_charge']}."
    files = [
        ("answers", f"{shown(out / 'answers')}, listed in {shown(out / 'tables.csv')}"),
        ("manifest", shown(out / "manifest.json")),
        ("report", shown(out / "report.html")),
        *(("note", text) for text in notes),
        ("guard", guard),
    ]
    if ledger is None:
        show_facts([*files, ("spent", "nothing, because this is NOT PRIVATE: publish nothing of it")])
        return
    book = Ledger.open(ledger)
    entry = next(entry for entry in book.entries() if entry.id == made.observation.receipt)
    number_of_guard = made.receipt.get("guard_number")
    beside = "" if number_of_guard is None else f" (its guard is {number_of_guard})"
    spent = f"{rounded_charge_text(book.privacy.budget, entry.charge, up=True)}, release {entry.number} of the data set {book.dataset!r}"
    new_or_not = f"{shown(ledger)}{', new, with the budget of this plan' if new else ''}"
    show_facts([*files, ("spent", f"{spent}{beside}"), ("left", _left(book)), ("ledger", new_or_not)])


def _left(book: Ledger) -> str:
    budget = book.privacy.budget
    return f"{rounded_charge_text(budget, book.left(), up=False)}, of {rounded_budget_text(budget, up=False)}"


_WORSE = (2, 4, 3, 70)  # exit codes, the least bad first


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path), required=False)
@click.option("--release", "number", type=int, help="Only the release of this number in the ledger.")
@click.option("--out", type=click.Path(path_type=Path), help="Another directory than the one it was paid for; with --release.")
@click.option("--source", type=click.Path(path_type=Path), help="The data, if steps are left to measure and the data have moved.")
@click.pass_context
def resume(context: click.Context, ledger: Path | None, number: int | None, out: Path | None, source: Path | None) -> None:
    """Finish releases that were paid and not written, at no cost.

    LEDGER is the ledger's file; it may be left out where the current directory holds one only. What cannot be finished does not stop the
    others.
    """
    ledger = ledger or _only_ledger()
    settle_earlier(ledger, hint=False)
    book = Ledger.open(ledger)
    resumable = [entry for entry in book.entries() if entry.resumable]
    running = [entry for entry in resumable if book.is_running(entry)]  # asked once: what cannot be told counts as running, and is said
    for entry in running:
        click.echo(f"{release_name(entry)} is being made by another process, and left to it.", err=True)
    waiting = [entry for entry in resumable if number in {None, entry.number} and is_unfinished(book, entry)]
    if number is None and out is None:
        for entry in waiting:
            if entry.output == IN_MEMORY:
                click.echo(
                    f"{release_name(entry)} was made in Python and not for a directory: leastnoise.resume({str(ledger)!r}) finishes it "
                    f"there, `leastnoise resume {shown(ledger)} --release {entry.number} --out DIR` here.",
                    err=True,
                )
        chosen = [entry.number for entry in waiting if entry.output != IN_MEMORY]
    else:
        chosen = [number] if number is not None else []
        if number is None:
            raise InputError("--out is for one release; say which with --release, as `leastnoise ledger show` has it.")
    if not chosen:
        click.echo("Nothing to finish.")
    codes = []
    for release_number in chosen:
        try:
            finished = _finish(book, release_number, source, out)
        except LeastNoiseError as error:  # the others do not depend on it
            if len(chosen) == 1:
                raise
            click.echo(f"Release {release_number} was not finished: {error}", err=True)
            code = (4 if error.state == "whole" else 3) if isinstance(error, PaidError) else 70 if isinstance(error, InternalError) else 2
            codes.append(code)
            continue
        where = "nowhere, as it was asked for without a directory" if finished.out is None else shown(finished.out)
        click.echo(f"{release_name(finished.entry)} is finished: it is in {where}. Nothing was paid again.")
    if codes:
        click.echo(f"{len(codes)} of {len(chosen)} releases were not finished; the reasons are above.", err=True)
        context.exit(max(codes, key=_WORSE.index))


def _finish(book: Ledger, number: int, source: Path | None, out: Path | None) -> Finished:
    """Finish one release, with a line of progress."""
    about = resuming_seconds(book, number)
    doing, reading = f"finishing release {number}", f"reading the data of release {number}"
    with Progress(doing, about=about) as progress:
        (finished,) = finish_all(book, source, number=number, out=out, progress=partial(progress.rows, reading, doing, about=about))
        return finished


def _only_ledger() -> Path:
    ledgers = sorted(Path().glob("*.ledger"))
    if len(ledgers) != 1:
        raise InputError(f"Say which ledger, as in `leastnoise resume people.ledger`; this directory holds {len(ledgers) or 'none'}.")
    return ledgers[0]


_MOST_SHOWN = 24  # periods


def publish_due(what: Spec, out: Path, ledger: Path, plan: Callable[[], Plan], through: str | None) -> None:
    """Pay if that was not done, publish what became due, and say where everything is."""
    with _reading(what, "drawing, estimating and writing") as (data, report):
        done = release_due(what, data, out, ledger, plan, through=through, progress=report)
    book = Ledger.open(ledger)
    paid = rounded_charge_text(book.privacy.budget, done.entry.charge, up=True)
    spent = f"{paid} for all periods" if done.paid else f"nothing: {paid} was paid on {done.entry.reserved_on} for all periods"
    facts = [("release", shown(directory)) for directory in done.releases] or [("release", "none: nothing new is due")]
    if done.state is None:
        facts.append(("series", "whole: every period is published, and the private file of exact counts is removed"))
    else:
        facts += [
            ("series", drawn_words(done.state)),
            ("private", "exact counts lie in a file beside the ledger; keep it, show it to nobody"),
        ]
    if done.paid and what.options.guard is not None:
        facts.append(("guard", f"{what.options.guard} of the budget counted the rows that are used, once, before the first period"))
    show_facts([*facts, ("spent", f"{spent}, release {done.entry.number} of the data set {book.dataset!r}"), ("left", _left(book))])


def drawn_words(state: PeriodState) -> str:
    """How far a series has come, for people."""
    drawn, all_of = state.drawn, len(state.labels)
    words = f"{drawn} of {all_of} periods drawn" + (f", up to {state.labels[drawn - 1]}" if drawn else "")
    due = state.labels[drawn : state.due]
    words += f"; due: {due[0]}{f' to {due[-1]}' if len(due) > 1 else ''}" if due else "; nothing is due"
    return words + (f"; not published yet: {', '.join(state.unpublished)}" if state.unpublished else "")


def show_periods(plan: Plan) -> None:
    """The errors that are promised for each period of a series; nothing of other plans."""
    if not (errors := [*period_errors(plan).items()]):
        return
    step = -(-len(errors) // _MOST_SHOWN)
    chosen = [pair for position, pair in enumerate(errors) if position % step == 0 or position == len(errors) - 1]
    names = [product.name for product in plan.workload]
    rows: list[list[Any]] = [[label, *("" if error is None else number(error) for error in row)] for label, row in chosen]
    show_table("Typical error of the answers that end in a period", [("period", "left"), *((name, "right") for name in names)], rows)
