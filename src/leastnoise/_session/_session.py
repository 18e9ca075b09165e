"""Releases: the one place that wires adapters, planner, kernel, estimate and release together."""

from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise import _adapters
from leastnoise._accounting import Privacy, SeriesCost
from leastnoise._check import InputError, refuse
from leastnoise._frames import library_of, several
from leastnoise._kernel import Ledger, SeededEntropy, Series, UnpaidSeries
from leastnoise._mechanisms import Run, mechanism_of, terms_of
from leastnoise._plan import Plan, guard_share, with_guard
from leastnoise._planning import expected_seconds, planned, series_of, series_plan
from leastnoise._progress import rows_shown
from leastnoise._release import Options, Release, check_options, check_target, draft, fill_draft, finishing_seconds
from leastnoise._session._accounts import IN_MEMORY, paying, settle, warn_of_unfinished
from leastnoise._session._checks import check_searched, paid_before
from leastnoise._session._durations import csv_blocks
from leastnoise._session._finish import Asked, finish_one, publish, read_table, room_for
from leastnoise._session._guard import guard_terms, guarded, rehearsed
from leastnoise._session._ledgers import ledger_for, ledger_made
from leastnoise._session._memory import check_memory
from leastnoise._spec import Spec
from leastnoise._threads import one_thread


def planned_spec(what: Spec, progress: Callable[[str], None] | None = None) -> Plan:
    r"""The plan that a spec asks for."""
    if what.series is not None and isinstance(what.privacy, Privacy):
        return series_plan(what.workload, what.privacy, what.series, what.search(progress))
    return planned(what.workload, what.planned_privacy, what.search(progress), what.objective, what.options.level)


def spec_seconds(what: Spec) -> float:
    r"""About how many CPU seconds the plan that a spec asks for takes."""
    return expected_seconds(what.workload, what.planned_privacy, what.search(), what.objective)


@one_thread()
@rows_shown("measuring, estimating and writing", lambda plan, source, *_, **given: _expected(plan, source, **given))
def release(
    plan: Plan,
    source: Any,
    *,
    ledger: str | Path | Ledger | None = None,
    out: str | Path | None = None,
    options: Options | None = None,
    dataset: str | None = None,
    seed: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Release:
    """Measure, estimate and answer; pay for it first.

    Args:
        plan: what to do, from ``plan``.
        source: .csv, .csv.gz or .parquet files (a path, folder or pattern); a pandas, Polars, PyArrow, DuckDB or Spark table; or a
            DatabaseTable; or two of these, Joined.
        ledger: the ledger of the data set, or its file; made with the plan's budget if the file does not exist. Needed without a ``seed``.
        out: a directory to write, which must not exist yet; None to write nothing.
        options: the level of the intervals, answers beside the unbiased ones, what is written and how, and the guard: see `Options`.
        dataset: the data set's name in the ledger; None for the source's file name.
        seed: draw reproducible noise that protects nobody, for tests and experiments; nothing is paid, and the release says so.
        progress: called with the rows read so far and their number if it is known. Without it, a notebook shows
            below its cell what takes over a second.

    Returns:
        The release; its ``answers`` are a data frame.

    Raises:
        InputError: something of the above cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used, is an older copy than a release that was paid from it, or is not there and another one knows
            the data set; nothing was spent.
        PaidError: something failed after payment; the message says whether ``resume`` finishes the release.

    Guarantees: the plan's declared budget is on the ledger's disk before any noise is drawn, and what was drawn is there before anything is
        computed from it. Killed at any instant, the release is paid and absent, paid and resumable, or paid and whole.

    Edge cases: a release of this plan for this directory that was paid and stopped is finished, with the measurement that it has; nothing
        is paid again. Without ``out``, a warning names each earlier release that can be finished.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> release = ln.release(made, pd.DataFrame({"sex": ["F", "M", "M"]}), seed=7)
    >>> release.observation.private
    False
    """
    if not isinstance(plan, Plan):
        raise refuse("plan", type(plan).__name__, "a plan, from leastnoise.plan or Plan.from_json")
    if series_of(plan) is not None:
        raise InputError("This plan is of a series, which is published period by period: `leastnoise release SPEC --out DIR` does it.")
    run = mechanism_of(plan).ready(plan)
    asked = Options() if options is None else options
    if not isinstance(asked, Options):
        raise refuse("options", type(asked).__name__, "leastnoise.Options(...)")
    check_options(plan, asked)
    target = None if out is None else check_target(out)
    check_memory(plan, written=target is not None)
    if seed is not None:
        if ledger is not None:
            raise InputError("A seeded release pays nothing, because its noise protects nobody; leave out the ledger or the seed.")
        return _simulated(plan, run, source, SeededEntropy(seed), asked, target, progress)
    share = guard_share(asked.guard)
    book = ledger_for(ledger, source, dataset, [] if target is None else [target.parent])
    if book is not None:
        settle(book)
        if target is None:
            warn_of_unfinished(book)
        paid = None if target is None else paid_before(book, plan.digest(), str(target))
        if paid is not None:
            return finish_one(book, paid, source, options=asked, progress=progress).release
        check_affordable(book, plan, share)
    name = dataset or _adapters.dataset_name(source) or "data" if book is None else book.dataset
    check_searched(asked.searches, name)
    with nullcontext() if target is None else draft(target) as folder:
        table = read_table(plan, source, progress, usage=share is not None)
        if book is None:  # another process may have made it meanwhile
            book = ledger_made(ledger, name, with_guard(plan.privacy, share))
        found = {} if share is None else guarded(book, table, plan.privacy, share).facts()
        kept = Asked(asked, _adapters.location(source), found, _adapters.join_facts(source), library_of(type(source)))
        with paying(book, room_for(plan)) as process:
            output = IN_MEMORY if target is None else str(target)
            facts = {"output": output, "description": _described(plan), "options": kept.to_json(), "run": process}
            series = Series.paid(terms_of(plan), table, book, **facts)
            return publish(run(series), book, kept, folder, series)


def _simulated(
    plan: Plan,
    run: Run,
    source: Any,
    entropy: SeededEntropy,
    options: Options,
    target: Path | None,
    progress: Callable[[int, int | None], None] | None,
) -> Release:
    """A release that protects nobody."""
    share, found = guard_share(options.guard), {}
    with nullcontext() if target is None else draft(target) as folder:
        table = read_table(plan, source, progress, usage=share is not None)
        if share is not None and table.usage is not None:
            series = UnpaidSeries(guard_terms(plan.privacy, share), table.usage, entropy)
            found = rehearsed(series, plan.privacy, share).facts()
        kept = Asked(options, guard=found, joined=_adapters.join_facts(source), library=library_of(type(source)))
        made = kept.build(run(UnpaidSeries(terms_of(plan), table, entropy)))
        if folder is not None:
            fill_draft(made, folder)
            folder.publish()
        return made


def _expected(plan: Any, source: Any, *, options: Any = None, out: Any = None, **_: Any) -> tuple[int, float]:
    """For a notebook: how often reading tells how far it is, and the seconds after it; what cannot be used is refused later."""
    usable = isinstance(plan, Plan) and isinstance(options, (Options, type(None)))
    return csv_blocks(source), finishing_seconds(plan, options or Options(), written=out is not None) if usable else 0.0


def check_affordable(book: Ledger, plan: Plan, share: Fraction | None = None) -> None:
    """Refuse early what the ledger would refuse to pay, before the data are read."""
    if share is None:
        book.check(plan.cost(), plan.privacy)
    else:
        whole = with_guard(plan.privacy, share)
        book.check(SeriesCost(whole.budget), whole)


def _described(plan: Plan) -> str:
    return f"{several(len(plan.workload.products), 'table')}, {plan.strategy}"
