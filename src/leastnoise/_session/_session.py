"""Define the public functions that carry out and resume releases."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from leastnoise._audit import Audit, audit_plan
from leastnoise._environment import check_environment
from leastnoise._frames import find_library
from leastnoise._plan import (
    BoundsPlan,
    CategoryPlan,
    Plan,
    SearchPlan,
    checked_guard_share,
    with_guard,
)
from leastnoise._planning import expected_seconds, series_of
from leastnoise._progress import RowProgress, row_progress, show_rows
from leastnoise._publication import (
    DraftDirectory,
    FoundBounds,
    FoundCategories,
    check_target,
    finishing_seconds,
    open_optional_draft,
)
from leastnoise._release import NO_RECEIPT, Options, ReceiptFacts, Release, check_options
from leastnoise._session._earlier_releases import check_earlier_payments, read_earlier_releases
from leastnoise._session._guard_counts import (
    GuardPayment,
    PaidGuard,
    check_guard_counts,
    find_waiting_guard,
    guard_contract,
    guard_measurements,
    optional_attributes,
    pay_for_guard,
    unit_total_measures,
)
from leastnoise._session._payments import (
    IN_MEMORY,
    check_affordable,
    check_affordable_at_first,
    check_memory,
    check_note,
    check_readable,
    check_search_datasets,
    count_csv_blocks,
    find_stopped_entry,
    fit_plan_to_ledger,
    is_expired,
    is_resumable,
    is_series_plan,
    payment_run,
    reconcile_ledger,
    require_receipt,
    warn_of_unfinished,
    with_joined_tables,
    with_note,
)
from leastnoise._session._release_job import (
    FinishedRelease,
    ReleaseJob,
    ReleaseRequest,
    ReleaseResult,
    build_release_job,
    check_report_texts,
    finish_paid,
    log_payment,
    publish,
    read_release,
    read_table,
)
from leastnoise._session._series_publication import (
    finish_series,
    is_unfinished,
    publish_due_periods,
)
from leastnoise._spec import Spec
from leastnoise._threads import one_thread
from leastnoise._trusted import reading
from leastnoise._trusted.accounting import Privacy, parameters_by_name
from leastnoise._trusted.check import (
    Exact,
    InputError,
    LeastNoiseError,
    LedgerError,
    readable,
    refuse,
)
from leastnoise._trusted.kernel import Entry, Ledger, SeededEntropy, Series, UnpaidSeries
from leastnoise._trusted.ledgers import (
    check_no_missing_releases,
    find_ledger,
    open_or_create_ledger,
)


@one_thread()
@show_rows("finding categories")
def find_categories(
    plan: CategoryPlan,
    source: Any,
    *,
    ledger: str | Path | Ledger | None = None,
    out: str | Path | None = None,
    total_privacy: Privacy | None = None,
    dataset: str | None = None,
    seed: int | None = None,
    progress: bool | RowProgress | None = None,
) -> FoundCategories:
    """Pay for a search, and return the categories that enough units have.

    Args:
        plan: from `plan_categories`.
        source: the data, as for `leastnoise.release`.
        ledger: the ledger of the data set, or its file. Required unless ``seed`` is given.
        out: the directory to write, which must not exist yet. If None, nothing is written.
        total_privacy: the total budget of the data set, for this search and the releases after it.
            Needed only if the ledger does not exist yet.
        dataset: the name of the data set in the ledger. Defaults to the file name of the source.
        seed: the seed of reproducible noise, for tests and experiments. Such noise protects nobody,
            and nothing is paid.
        progress: if True, show a line with the percentage of rows that have been read. If None,
            show it in notebooks only.

    Returns:
        The categories. Their method ``kind()`` returns the attribute for a `Domain`.

    Raises:
        InputError: an argument cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used; nothing was spent.
        PaidError: an error occurred after the payment; the message states whether ``resume`` can
            finish the search.

    Guarantees: the categories and their noisy numbers of units satisfy the plan's budget for its
        unit and neighbours. They satisfy it even if a unit has ``max_rows`` categories that no
        other unit has. The charge is recorded on the disk of the ledger before any noise is drawn.
        If the process is killed after the payment, the search is absent, resumable or whole.

    Edge cases: the budget of a search is also spent if nothing is found. If a search with this plan
        for this directory was paid for and stopped, the call finishes it and pays nothing again.

    >>> plan = ln.plan_categories("agent", ln.Unknown(9), ln.ApproxDP(1, "1e-9"))
    >>> ln.find_categories(
    ...     plan, pd.DataFrame({"agent": ["curl"] * 99 + ["of one person"]}), seed=1
    ... ).texts
    ('curl',)
    """
    if not isinstance(plan, CategoryPlan):
        raise refuse("plan", type(plan).__name__, "a plan from leastnoise.plan_categories")
    result = _run_search(
        plan, source, ledger, out, total_privacy, dataset, seed, row_progress(progress)
    )
    return cast(FoundCategories, result)


@one_thread()
@show_rows("finding bounds")
def find_bounds(
    plan: BoundsPlan,
    source: Any,
    *,
    ledger: str | Path | Ledger | None = None,
    out: str | Path | None = None,
    total_privacy: Privacy | None = None,
    dataset: str | None = None,
    seed: int | None = None,
    progress: bool | RowProgress | None = None,
) -> FoundBounds:
    """Pay for a search, and return bounds that most units do not exceed.

    Args:
        plan: from `plan_bounds` or `plan_max_rows`.
        source: the data, as for `leastnoise.release`.
        ledger: the ledger of the data set, or its file. Required unless ``seed`` is given.
        out: the directory to write, which must not exist yet. If None, nothing is written.
        total_privacy: the total budget of the data set, for this search and the releases after it.
            Needed only if the ledger does not exist yet.
        dataset: the name of the data set in the ledger. Defaults to the file name of the source.
        seed: the seed of reproducible noise, for tests and experiments. Such noise protects nobody,
            and nothing is paid.
        progress: if True, show a line with the percentage of rows that have been read. If None,
            show it in notebooks only.

    Returns:
        The bounds ``low`` and ``high``; after a search for ``max_rows``, the number ``max_rows``.

    Raises:
        InputError: an argument cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used; nothing was spent.
        PaidError: an error occurred after the payment; the message states whether ``resume`` can
            finish the search.

    Guarantees: the bounds satisfy the plan's budget for its unit and neighbours, whatever the
        number of rows of a unit. The charge is recorded on the disk of the ledger before any noise
        is drawn. If the process is killed after the payment, the search is absent, resumable or
        whole.

    Edge cases: if no unit has a value, every candidate is equally likely. If a search with this
        plan for this directory was paid for and stopped, the call finishes it and pays nothing
        again.

    >>> plan = ln.plan_max_rows(ln.Privacy(ln.PureDP(1), unit_column="id"), 1000)
    >>> rows = pd.DataFrame({"id": [*range(900), *range(900), *range(9)]})
    >>> ln.find_bounds(plan, rows, seed=1).max_rows
    2
    """
    if not isinstance(plan, BoundsPlan):
        raise refuse(
            "plan",
            type(plan).__name__,
            "a plan from leastnoise.plan_bounds or leastnoise.plan_max_rows",
        )
    result = _run_search(
        plan, source, ledger, out, total_privacy, dataset, seed, row_progress(progress)
    )
    return cast(FoundBounds, result)


def _run_search(
    plan: SearchPlan,
    source: Any,
    ledger: str | Path | Ledger | None,
    out: str | Path | None,
    total_privacy: Privacy | None,
    dataset: str | None,
    seed: int | None,
    progress: RowProgress | None,
) -> ReleaseResult:
    """Pay for a search and carry it out; with a seed, simulate it."""
    target = None if out is None else check_target(out)
    job = build_release_job(plan)
    options = Options()
    if seed is not None:
        entropy = _seeded_entropy(seed, ledger, "search")
        return _simulate_release(job, source, entropy, options, target, progress)
    request = _PaymentRequest(
        source=source,
        ledger=ledger,
        target=target,
        options=options,
        total_privacy=total_privacy,
        dataset=dataset,
        progress=progress,
    )
    return _pay_and_release(job, request)


def plan_spec(spec: Spec, progress: Callable[[str], None] | None = None) -> Plan:
    """Plan a spec, using the earlier releases that it names."""
    search = replace(spec.search(progress), earlier=read_earlier_releases(spec.after))
    return spec.plan_with(search)


def estimate_planning_seconds(spec: Spec) -> float:
    """Estimate how many CPU seconds it takes to plan a spec."""
    return expected_seconds(spec.workload, spec.planned_privacy, spec.search(), spec.objective)


@one_thread()
@show_rows(
    "measuring, estimating and writing",
    lambda plan, source, *_, **given: _expected_progress(plan, source, **given),
)
def release(
    plan: Plan,
    source: Any,
    *,
    ledger: str | Path | Ledger | None = None,
    out: str | Path | None = None,
    options: Options | None = None,
    dataset: str | None = None,
    total_privacy: Privacy | None = None,
    seed: int | None = None,
    progress: bool | RowProgress | None = None,
    note: str = "",
) -> Release:
    """Pay for a plan, measure, estimate, and return the release.

    Args:
        plan: the plan, from `leastnoise.plan`.
        source: files (a path, folder or pattern) such as .csv, .csv.gz or .parquet; a table such
            as one of pandas, Polars or Spark; a `DatabaseTable`; or several sources in `Joined`.
        ledger: the ledger of the data set, or its file; if the file does not exist, it is created
            with the plan's budget. Required unless ``seed`` is given.
        out: the directory to write, which must not exist yet. If None, nothing is written.
        options: the level of the intervals, additional columns, the written files and their
            formats, and the guard; see `Options`.
        dataset: the name of the data set in the ledger. Defaults to the file name of the source.
        total_privacy: the total budget of the data set, for a ledger that is created now; None for
            the plan's budget.
        seed: the seed of reproducible noise, for tests and experiments. Such noise protects nobody,
            nothing is paid, and the release is marked as not private. If a unit has more than
            ``max_rows`` rows, its rows are chosen independently of the seed.
        progress: if True, show a line with the percentage of rows that have been read. If None,
            show it in notebooks only.
        note: one line of text that the ledger records with the payment.

    Returns:
        The release; its ``answers`` are a data frame.

    Raises:
        InputError: an argument cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used; it is an old copy that lacks a release for which it
            paid; or it does not exist, but another ledger has the data set. Nothing was spent.
        PaidError: an error occurred after the payment; the message states whether ``resume`` can
            finish the release.

    Guarantees: the budget of the plan is recorded on the disk of the ledger before any noise is
        drawn. The noisy answers are on the disk before anything is computed from them. If the
        process is killed after the payment, the release is absent, resumable or whole.

    Edge cases: guards that stopped earlier releases may have spent a part of the budget. If the
        ledger lacks budget for the plan only for this reason, the plan is rescaled to the remaining
        budget, and the release reports this. If a release with this plan for this directory was
        paid for and stopped, the call finishes it from its measurements without a second payment.
        Without ``out``, a warning names each earlier release that was stopped and can be finished.

    >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M", "M"]}), seed=7)
    >>> release.observation.private
    False
    """
    if not isinstance(plan, Plan):
        raise refuse("plan", type(plan).__name__, "a plan, from leastnoise.plan or Plan.from_json")
    if series_of(plan) is not None:
        raise InputError(
            "This plan belongs to a series, which is published period by period. Use "
            "`release_series`."
        )
    job = build_release_job(plan)
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise refuse("options", type(options).__name__, "leastnoise.Options(...)")
    if total_privacy is None:
        total_privacy = with_guard(plan.privacy, checked_guard_share(options.guard))
    elif not isinstance(total_privacy, Privacy):
        raise refuse("total_privacy", total_privacy, "a Privacy, or None")
    check_options(plan, options)
    check_note(note)
    target = None
    if out is not None:
        target = check_target(out)
    check_memory(plan, in_files=target is not None)
    if seed is not None:
        check_report_texts(plan)
        entropy = _seeded_entropy(seed, ledger, "release")
        result = _simulate_release(job, source, entropy, options, target, row_progress(progress))
    else:
        request = _PaymentRequest(
            source=source,
            ledger=ledger,
            target=target,
            options=options,
            total_privacy=total_privacy,
            dataset=dataset,
            progress=row_progress(progress),
            note=note,
        )
        result = _pay_and_release(job, request)
    return cast(Release, result)


def _seeded_entropy(seed: int, ledger: object, subject: str) -> SeededEntropy:
    """Return the seeded noise source; raise InputError if a ledger is given."""
    if ledger is not None:
        raise InputError(
            f"A seeded {subject} pays nothing, because its noise protects nobody; leave out the "
            "ledger or the seed."
        )
    return SeededEntropy(seed)


def _simulate_release(
    job: ReleaseJob,
    source: Any,
    entropy: SeededEntropy,
    options: Options,
    target: Path | None,
    progress: RowProgress | None,
) -> ReleaseResult:
    """Carry out a release or search with seeded noise; nothing is paid."""
    plan = job.plan
    share = checked_guard_share(options.guard)
    guard = None
    check_readable(plan, source)
    with open_optional_draft(target) as folder:
        table = read_table(plan, source, progress, with_usage=share is not None)
        if share is not None and table.usage is not None:
            guarded_plan = cast(Plan, plan)  # a search has no guard
            columns = len(optional_attributes(guarded_plan))
            measured = guard_measurements(
                guarded_plan.privacy, share, columns, unit_total_measures(guarded_plan)
            )
            series: Series = UnpaidSeries(guard_contract(measured), table.usage, entropy)
            payment = GuardPayment(share, "nothing")
            observation = series.measure(measured)
            guard = check_guard_counts(measured, observation, payment, guarded_plan, options.rows)
        receipt = with_joined_tables(replace(NO_RECEIPT, guard=guard), source)
        request = ReleaseRequest(options, None, receipt, find_library(type(source)))
        return publish(plan, request, job.draw(UnpaidSeries(job.contract, table, entropy)), folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PaymentRequest:
    """The arguments of a paid release or search.

    Attributes:
        source: the private data.
        ledger: the ledger that pays, or its file.
        target: the directory to write; None to write nothing.
        options: the options of the release.
        total_privacy: the total budget, if the ledger must be created; None if the ledger must
            exist.
        dataset: the name of the data in the ledger; None for the source's file name.
        progress: the object that shows the progress of reading.
        note: a text that the ledger records.
    """

    source: Any
    ledger: object
    target: Path | None
    options: Options
    total_privacy: Privacy | None
    dataset: str | None
    progress: RowProgress | None
    note: str = ""

    @property
    def share(self) -> Fraction | None:
        """The guard's share of the budget; None without a guard."""
        return checked_guard_share(self.options.guard)

    @property
    def output(self) -> str:
        """The target directory, in the form in which the ledger records it."""
        if self.target is None:
            return IN_MEMORY
        return str(self.target)

    def find_ledger(self) -> Ledger | None:
        """Return the ledger that pays, or None if it does not exist yet."""
        folders = [] if self.target is None else [self.target.parent]
        return find_ledger(self.ledger, self.source, self.dataset, folders)

    def new_dataset_name(self) -> str:
        """Return the name of the data set for a new ledger."""
        return self.dataset or reading.dataset_name(self.source) or "data"


def _pay_and_release(job: ReleaseJob, request: _PaymentRequest) -> ReleaseResult:
    """Pay for a release or a search and publish it, or finish a stopped one."""
    check_environment()
    ledger = request.find_ledger()
    if ledger is None:
        dataset = request.new_dataset_name()
        _check_new_ledger_budget(request.ledger, request.total_privacy)
        check_affordable_at_first(
            cast(Privacy, request.total_privacy), dataset, job.plan, request.share
        )
        affordable_job = job
    else:
        dataset = ledger.dataset
        reconcile_ledger(ledger)
        finished_release = _finish_stopped(ledger, job.plan, request)
        if finished_release is not None:
            return finished_release
        affordable_job = _affordable_job(ledger, job, request.share)
    plan = affordable_job.plan
    if isinstance(plan, Plan):
        check_report_texts(plan)
    check_search_datasets(request.options.searches, dataset)
    check_earlier_payments(plan, ledger, dataset)
    check_readable(plan, request.source)
    with open_optional_draft(request.target) as folder:
        table = read_table(
            plan, request.source, request.progress, with_usage=request.share is not None
        )
        if ledger is None:  # another process may have created it meanwhile
            total_privacy = cast(Privacy, request.total_privacy)
            ledger = open_or_create_ledger(request.ledger, dataset, total_privacy)
            check_affordable(ledger, plan, request.share)
        guard = _pay_for_guard(ledger, table, plan, request)
        reduced_from = None
        if affordable_job is not job:
            reduced_from = _whole_budget_text(job.plan.privacy, request.share)
        receipt = replace(
            NO_RECEIPT,
            guard=None if guard is None else guard.counts,
            guard_reduced_from=reduced_from,
        )
        receipt = with_joined_tables(receipt, request.source)
        return _pay_and_publish(affordable_job, request, ledger, table, guard, receipt, folder)


def _finish_stopped(
    ledger: Ledger, plan: Plan | SearchPlan, request: _PaymentRequest
) -> ReleaseResult | None:
    """Finish a stopped release of the same plan and target, or return None.

    If the request has no target, the function warns about stopped releases and returns None.
    """
    if request.target is None:
        warn_of_unfinished(ledger)
        return None
    paid = find_stopped_entry(ledger, plan.digest(), request.output)
    if paid is None:
        return None
    finished_release = finish_paid(
        ledger, paid, request.source, options=request.options, progress=request.progress
    )
    return finished_release.release


def _pay_for_guard(
    ledger: Ledger, table: Any, plan: Plan | SearchPlan, request: _PaymentRequest
) -> PaidGuard | None:
    """Pay for the guard of a release; return None if it has none."""
    if request.share is None or not isinstance(plan, Plan):
        return None
    return pay_for_guard(ledger, table, plan, request.share, request.options.rows)


def _pay_and_publish(
    job: ReleaseJob,
    request: _PaymentRequest,
    ledger: Ledger,
    table: Any,
    guard: PaidGuard | None,
    facts_before_payment: ReceiptFacts,
    folder: DraftDirectory | None,
) -> ReleaseResult:
    """Pay for the measurements of a release, draw their noise and publish it.

    If there is a guard, it is already paid for, and did not stop the release.
    """
    release_request = ReleaseRequest(
        request.options,
        reading.source_location(request.source),
        facts_before_payment,
        find_library(type(request.source)),
    )
    paid_before = "" if guard is None else guard.payment_sentence
    with payment_run(ledger, job.bytes_needed, paid_before) as run:
        series = Series.paid(
            job.contract,
            table,
            ledger,
            options=release_request.to_text(),
            run=run,
            output=request.output,
            description=with_note(job.description, request.note),
        )
        receipt = require_receipt(series)
        log_payment(ledger, receipt)
        if guard is not None:
            guard.seal(ledger)
        outcome = job.draw(series)
        paid_request = release_request.with_payment(ledger, receipt)
        result = publish(job.plan, paid_request, outcome, folder)
        ledger.seal(receipt)
        return result


def _check_new_ledger_budget(ledger_source: object, total_privacy: Privacy | None) -> None:
    """Raise LedgerError if there is neither a ledger nor a budget to create one."""
    if total_privacy is None:
        raise LedgerError(
            f"There is no ledger at {ledger_source}. Make it with the budget of the search and of "
            "the releases after it: `leastnoise ledger set`, leastnoise.Ledger.create, or the "
            "argument total_privacy. Nothing was spent."
        )


def _affordable_job(ledger: Ledger, job: ReleaseJob, guard_share: Fraction | None) -> ReleaseJob:
    """Return the job, rescaled if guards of stopped releases spent its budget.

    A search is not rescaled. A plan is not rescaled either if its guard is already paid for and
    waits for its release.
    """
    plan = job.plan
    if not isinstance(plan, Plan) or find_waiting_guard(ledger, plan, guard_share) is not None:
        check_affordable(ledger, plan, None)
        return job
    fitted_plan = fit_plan_to_ledger(ledger, plan, guard_share)
    if fitted_plan is plan:
        return job
    return build_release_job(fitted_plan)


def _whole_budget_text(privacy: Privacy, guard_share: Fraction | None) -> str:
    """Format the first parameter of the total budget of a plan and its guard."""
    name, size = next(iter(parameters_by_name(with_guard(privacy, guard_share).budget).items()))
    return f"{name.replace('_', ' ')} = {readable(size)}"


def release_series(
    spec: Spec,
    source: Any,
    *,
    out: str | Path,
    ledger: str | Path | None = None,
    through: str | None = None,
) -> tuple[Path, ...]:
    """Publish the periods of a series that are over; the first call pays.

    Later calls publish the periods that are not published yet.

    Args:
        spec: a spec with ``[series]``, from `read_spec`.
        source: the data, as for `release`; ``spec.data(spec.source)`` gives the data of a spec.
        out: the directory of the series; each period has a subdirectory.
        ledger: the file of the ledger, which is created if it does not exist; None for the ledger
            of the spec.
        through: the last period to publish, such as ``"2026-03"``; None for the last period that is
            over (UTC).

    Returns:
        The directories that were written, for `read_release`; an empty tuple if no period is due.

    Raises:
        InputError: the spec has no series, there is no ledger, or no period is over; nothing was
            spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger or the private file in its folder cannot be used.

    Guarantees: as for `release`. After any stop, the same call publishes each period once and does
        not pay again.

    >>> ln.release_series("visits.toml", "visits.csv", out="monthly")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: spec must be a spec, from
    leastnoise.read_spec; got 'str'.
    """
    if not isinstance(spec, Spec):
        raise refuse("spec", type(spec).__name__, "a spec, from leastnoise.read_spec")
    ledger_path = ledger or spec.ledger
    if ledger_path is None:
        raise InputError(
            "A series must have a ledger: give its file, or name it in [ledger] of the spec."
        )
    return publish_due_periods(
        spec, source, Path(out), Path(ledger_path), lambda: plan_spec(spec), through=through
    ).releases


def _expected_progress(
    plan: Any, source: Any, *, options: Any = None, out: Any = None, **_: Any
) -> tuple[int, float]:
    """Return the number of CSV blocks, and the expected seconds after reading.

    The progress line of a notebook uses these numbers. The function does not refuse unusable
    arguments; other functions do so later.
    """
    seconds = 0.0
    if isinstance(plan, Plan) and isinstance(options, (Options, type(None))):
        seconds = finishing_seconds(plan, options or Options(), written=out is not None)
    return count_csv_blocks(source), seconds


def resume(
    ledger: Any,
    *,
    number: int | None = None,
    source: Any = None,
    out: Any = None,
    progress: bool | RowProgress | None = None,
) -> list[Any]:
    """Finish the stopped releases of a ledger, without a second payment.

    Args:
        ledger: the ledger, or its file.
        number: the number of the release to finish; None for all releases that can be finished.
        source: the data, if a release was stopped between two steps and its data have another
            location now.
        out: a directory that replaces the directory in the ledger; allowed only together with
            ``number``.
        progress: if True, show a line with the percentage of rows that have been read. If None,
            show it in notebooks only.

    Returns:
        The releases and the results of searches (`FoundCategories`, `FoundBounds`), in the order of
        payment. The list is empty if no release has to be finished.

    Warns:
        UserWarning: one of several releases could not be finished. The warning states the reason,
            and the other releases are returned.

    Raises:
        InputError: there is no such release; the directory exists or cannot be created; or data
            that the release needs are missing.
        LedgerError: the ledger cannot be used.
        PaidError: an error occurred again; the message states whether the release can still be
            finished. If none of several releases could be finished, the first error is raised.

    Guarantees: no step is drawn twice. Recorded steps are used unchanged. If a step was begun and
        has no recorded outcome, the release becomes absent.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.resume(
    ...         ln.Ledger.create(Path(folder, "people.ledger"), "people", ln.Privacy(ln.PureDP(1)))
    ...     )
    []
    """
    return [
        finished_release.release
        for finished_release in finish_releases(
            ledger, source, number=number, out=out, progress=progress
        )
    ]


@one_thread()
@show_rows("finishing")
def finish_releases(
    ledger_source: Any,
    source: Any = None,
    *,
    number: int | None = None,
    out: Any = None,
    progress: bool | RowProgress | None = None,
) -> list[FinishedRelease]:
    """Do the same as `resume`, and return each release with its ledger entry."""
    if isinstance(ledger_source, Ledger):
        ledger = ledger_source
    else:
        ledger = Ledger.open(ledger_source)
    reconcile_ledger(ledger)
    check_no_missing_releases(ledger.path, ledger, [] if out is None else [Path(out).parent])
    if out is not None and number is None:
        raise InputError(
            "A directory can be named only for one release. State the number of the release, which "
            "`leastnoise ledger show` lists."
        )
    entries = _unfinished_entries(ledger, number)
    finished_releases = []
    failures = []
    for entry in entries:
        try:
            finished_releases.append(
                _finish_entry(ledger, entry, source, out, row_progress(progress))
            )
        # The other releases do not depend on this one, and a release in memory would be lost.
        except LeastNoiseError as error:
            failures.append((entry, error))
    if failures and not finished_releases:
        raise failures[0][1]
    for entry, failure in failures:
        warnings.warn(f"Release {entry.number} was not finished: {failure}", stacklevel=4)
    return finished_releases


def _unfinished_entries(ledger: Ledger, number: int | None) -> list[Entry]:
    """Return the entries of the releases to finish.

    Args:
        ledger: the ledger.
        number: the number of the only release to finish; None: all.

    Raises:
        InputError: the release with this number cannot be finished.
    """
    if number is None:
        return [entry for entry in ledger.entries() if is_unfinished(ledger, entry)]
    matching_entries = [entry for entry in ledger.entries() if entry.number == number]
    entries = [entry for entry in matching_entries if is_unfinished(ledger, entry)]
    if entries:
        return entries
    if any(ledger.is_running(entry) for entry in matching_entries):
        reason = "is possibly being made by another process"
    else:
        # Finishing an expired release raises the error that says why it is too late.
        expired_entries = [
            entry for entry in matching_entries if is_resumable(entry) and is_expired(ledger, entry)
        ]
        if expired_entries:
            return expired_entries
        reason = "is not one that can be finished"
    raise InputError(
        f"Release {number} in the ledger {ledger.path} {reason}; see `leastnoise ledger show`."
    )


def _finish_entry(
    ledger: Ledger, entry: Entry, source: Any, out: Any, progress: RowProgress | None
) -> FinishedRelease:
    """Finish the release, the search or the series of a ledger entry."""
    text = ledger.pending(entry).plan
    if is_series_plan(text):
        if out is not None:
            raise InputError(
                "A series must be published in the directory that was named when it was paid for. "
                "Leave out the other directory."
            )
        directories = finish_series(ledger, entry)
        return FinishedRelease(
            entry, read_release(directories[-1]) if directories else None, Path(entry.output)
        )
    return finish_paid(ledger, entry, source, out=out, progress=progress)


@one_thread()
def audit(
    plan: Plan | SearchPlan,
    *,
    guard: Exact | None = None,
    trials: int | None = None,
    seconds: float = 20.0,
    confidence: float = 0.999,
    entropy: SeededEntropy | None = None,
) -> Audit:
    """Bound a plan's privacy loss from below by running it on synthetic rows.

    Args:
        plan: the plan, from `plan`, `plan_categories`, `plan_bounds` or `plan_max_rows`.
        guard: the share of the whole budget that pays for a guard of `release`; the guard is also
            tested.
        trials: the number of trials on each of two tables; None for as many as the time limit
            allows.
        seconds: the time limit, if no number of trials is stated.
        confidence: the probability, below 1, that all bounds hold simultaneously.
        entropy: the source of noise, for tests; by default the system's randomness.

    Returns:
        The bounds and the claims. A bound above its claim shows, at the stated confidence, a fault
        of the program or of the machine.

    Raises:
        InputError: there are fewer than 200 trials; the confidence is not allowed; or a guard is
            stated for a search, which cannot have a guard.

    >>> plan = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> result = ln.audit(plan, trials=2000)
    >>> result.claim, result.is_within_claim, 0 < result.lower_bound <= 1
    (1.0, True, True)
    """
    share = checked_guard_share(guard)
    if share is not None and not isinstance(plan, Plan):
        raise InputError(
            "A search cannot have a guard. Leave out the guard; the release after the search may "
            "have one."
        )
    if share is None:
        measured = None
    else:
        columns = optional_attributes(cast(Plan, plan))
        measured = guard_measurements(plan.privacy, share, len(columns), unit_total_measures(plan))
    return audit_plan(
        plan, measured, trials=trials, seconds=seconds, confidence=confidence, entropy=entropy
    )
