"""Pay for a series once, and publish it period by period."""

import datetime as dt
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from leastnoise._domain import Dates, UnitCount
from leastnoise._estimation import Outcome
from leastnoise._frames import find_library, pluralize
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._pages import write_series_page
from leastnoise._plan import Plan, checked_guard_share
from leastnoise._planning import SeriesOptions, period_errors, series_of, truncate_plan
from leastnoise._progress import RowProgress
from leastnoise._publication import check_target, lock_output, open_draft
from leastnoise._release import NO_RECEIPT, Release
from leastnoise._session._guard_counts import find_waiting_guard, pay_for_guard
from leastnoise._session._payments import (
    check_affordable,
    check_affordable_at_first,
    check_joined_tables,
    check_note,
    check_readable,
    check_writable,
    is_expired,
    is_resumable,
    is_series_plan,
    new_ledger_privacy,
    payment_run,
    reconcile_ledger,
    require_receipt,
    with_joined_tables,
    with_note,
)
from leastnoise._session._release_job import (
    ReleaseRequest,
    ledger_bytes_needed,
    log_payment,
    publish,
    read_table,
)
from leastnoise._spec import Spec, differing_parts
from leastnoise._threads import one_thread
from leastnoise._trusted import reading
from leastnoise._trusted.check import InputError, LedgerError, one_of
from leastnoise._trusted.kernel import Entry, Ledger, Receipt, Series, queries_due, row_allowance
from leastnoise._trusted.ledgers import find_ledger, open_or_create_ledger
from leastnoise._trusted.linop import SignedArray, as_int32_if_exact, last_cells
from leastnoise._trusted.measurements import Observation

if TYPE_CHECKING:
    from leastnoise._trusted.table import RowAllowance, Table


@dataclass(frozen=True, slots=True)
class SeriesProgress:
    """The progress of a series.

    Attributes:
        labels: the labels of all periods.
        drawn: the number of periods whose noise is drawn and recorded.
        due: the number of periods that are over.
        unpublished: the labels of the periods that were drawn but are not in the directory.
    """

    labels: tuple[str, ...]
    drawn: int
    due: int
    unpublished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedPeriods:
    """The result of one run of a series.

    Attributes:
        entry: the payment of the series.
        paid: whether this run paid for the series.
        releases: the directories that the run wrote.
        state: the progress of the series; None if it is complete.
    """

    entry: Entry
    paid: bool
    releases: tuple[Path, ...]
    state: SeriesProgress | None


def private_file_path(ledger: Ledger, entry: Entry | Receipt) -> Path:
    """Return the path of the private file with exact counts of past periods.

    Only the kernel reads it. The private file is in the folder of the ledger's file, even if the
    ledger was opened through a link.
    """
    ledger_path = Path(os.path.realpath(ledger.path))
    return ledger_path.with_name(f"{ledger_path.name}.series-{entry.number}.private")


def series_progress(ledger: Ledger, entry: Entry) -> SeriesProgress | None:
    """Return the progress of an incomplete series; None for other entries."""
    if not entry.resumable:
        return None
    pending = ledger.pending(entry)
    if not is_series_plan(pending.plan):
        return None
    plan = Plan.from_json(pending.plan)
    dates, along = _series_dates(plan)
    labels = tuple(map(str, dates.labels))
    steps = len(pending.steps)
    queries = [product.operators[product.attributes.index(along)] for product in plan.workload]
    # No query ends before this period, so earlier periods have no release.
    first = min(int(last_cells(operator).min()) for operator in queries)
    directory = Path(entry.output)
    missing = tuple(label for label in labels[first:steps] if not (directory / label).exists())
    return SeriesProgress(labels, steps, dates.ended_periods(_today()), missing)


def is_unfinished(ledger: Ledger, entry: Entry) -> bool:
    """Return whether a ledger entry can be finished.

    Such an entry is a stopped release, or a series with a period that was drawn but not published.
    """
    if not is_resumable(entry) or ledger.is_running(entry) or is_expired(ledger, entry):
        return False
    state = series_progress(ledger, entry)
    return state is None or bool(state.unpublished)


def _series_dates(plan: Plan) -> tuple[Dates, str]:
    """Return the date attribute of a series, and the name of this attribute."""
    series = series_of(plan)
    if series is None:
        raise LedgerError(
            "The ledger's record of this series is unreadable. Restore the ledger from a copy."
        )
    return series.dates(plan.domain), series.along


def _today() -> dt.date:
    """Return today's date in UTC."""
    return dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True, slots=True)
class _SeriesJob:
    """A series that a run pays for or continues.

    Attributes:
        plan: the plan for all periods.
        drawn: the number of periods that the ledger has recorded.
        request: the options of the releases, and the facts that the ledger records.
        entry: the ledger entry of the payment; None before the payment.
        guard_share: the share of the budget for a guard, which counts rows before the payment; None
            without a guard.
    """

    plan: Plan
    drawn: int
    request: ReleaseRequest
    entry: Entry | None = None
    guard_share: Fraction | None = None


@one_thread()
def publish_due_periods(
    spec: Spec,
    source: Any,
    out: Path,
    ledger_path: Path,
    plan: Callable[[], Plan],
    *,
    through: str | None = None,
    progress: RowProgress | None = None,
    note: str = "",
) -> PublishedPeriods:
    """Pay for a series if it is not paid yet, and publish its due periods.

    Args:
        spec: a spec with ``[series]``.
        source: the private data.
        out: the directory of the series.
        ledger_path: the file of the ledger, which may not exist yet.
        plan: a function that returns the plan; it is called if the series is not paid yet.
        through: the last period to draw; None for the last period that is over.
        progress: the object that shows the progress of reading.
        note: a text for people, which the ledger records with the payment.
    """
    check_note(note)
    if spec.series is None:
        raise InputError(
            "Periods can be published only for a spec with [series]; this spec has none."
        )
    target = Path(out).expanduser().absolute()
    dates = spec.series.dates(spec.domain)
    periods_due = _count_due_periods(dates, through)
    check_writable(spec)
    with _series_lock(target, ledger_path):
        return _publish_due_periods(
            spec, source, target, ledger_path, plan, periods_due, progress, note
        )


def _series_lock(target: Path, ledger_path: Path) -> AbstractContextManager[None]:
    """Return a lock next to the ledger, so that a series is paid only once.

    Two processes that find the series unpaid would otherwise both pay for it.
    """
    folder = Path(os.path.realpath(ledger_path)).parent
    if not folder.is_dir():  # no ledger can be created there, which is refused before a payment
        return nullcontext()
    return lock_output(target, folder)


def _publish_due_periods(
    spec: Spec,
    source: Any,
    target: Path,
    ledger_path: Path,
    plan: Callable[[], Plan],
    periods_due: int,
    progress: RowProgress | None,
    note: str,
) -> PublishedPeriods:
    """Pay for a series if it is not paid yet, and publish its first periods.

    The function takes the arguments of `publish_due_periods`, and the number of periods that are
    due.
    """
    series = cast(SeriesOptions, spec.series)
    labels = [str(label) for label in series.dates(spec.domain).labels]
    dataset = spec.dataset
    ledger = find_ledger(ledger_path, source, dataset, [target.parent], share=spec.share)
    entry = None
    if ledger is not None:
        reconcile_ledger(ledger)
        entry = _find_series_entry(ledger, target)
    if ledger is None or entry is None:
        job = _unpaid_job(spec, source, target, ledger, plan)
    elif entry.state == "sealed":
        # A run may have been stopped between sealing and removing it.
        private_file_path(ledger, entry).unlink(missing_ok=True)
        return PublishedPeriods(entry, False, (), None)
    else:
        job = _paid_job(spec, ledger, entry)
    _check_newest_ledger(target, labels[job.drawn :])
    check_joined_tables(source, job.request.receipt)
    table = None
    if periods_due > job.drawn:
        table = read_table(
            job.plan,
            source,
            progress,
            with_usage=job.guard_share is not None,
            allowance=_row_allowance(job, ledger),
            period_files=_period_files(job, series, periods_due),
        )
    if ledger is None:
        name = dataset or reading.dataset_name(source) or "data"
        ledger = open_or_create_ledger(
            ledger_path, name, new_ledger_privacy(spec, job.plan, job.guard_share)
        )
        check_affordable(ledger, job.plan, job.guard_share)
    return _draw_and_publish(job, table, ledger, target, periods_due, note)


def _period_files(
    job: _SeriesJob, series: SeriesOptions, periods_due: int
) -> reading.PeriodFiles | None:
    """Return the names of the files to read for new periods; None for all files.

    A guard needs all files, because it counts all rows. If late rows count on arrival, all files
    are needed too, because a row must stay once it is read (P2). Counts of units in windows of
    periods need the rows of past periods.
    """
    if job.guard_share is not None or series.late == "arrival":
        return None
    measures = job.plan.domain.measures.values()
    has_windows = any(isinstance(m, UnitCount) and m.has_groups for m in measures)
    first = job.drawn
    if has_windows:
        first = 0
    patterns = series.file_patterns(job.plan.domain)
    return reading.PeriodFiles(along=series.along, first=first, end=periods_due, patterns=patterns)


def _row_allowance(job: _SeriesJob, ledger: Ledger | None) -> "RowAllowance | None":
    """Return a handle to the rows each unit may still contribute, or None."""
    if ledger is None or job.entry is None:
        state = None
    else:
        state = private_file_path(ledger, job.entry)
    return row_allowance(release_contract(job.plan), ledger, job.entry, state)


def _unpaid_job(
    spec: Spec, source: Any, target: Path, ledger: Ledger | None, plan: Callable[[], Plan]
) -> _SeriesJob:
    """Plan a series that is not paid yet; raise if the ledger cannot pay for it."""
    check_target(target)
    if ledger is not None:
        ledger.check_not_periodic()
    new_plan = plan()
    mechanism_of(new_plan).prepare(new_plan)
    check_readable(new_plan, source)
    share = checked_guard_share(spec.options.guard)
    if ledger is None:
        name = spec.dataset or reading.dataset_name(source) or "data"
        total_privacy = new_ledger_privacy(spec, new_plan, share)
        check_affordable_at_first(total_privacy, name, new_plan, share)
    else:
        guard_is_paid = find_waiting_guard(ledger, new_plan, share) is not None
        check_affordable(ledger, new_plan, None if guard_is_paid else share)
    request = ReleaseRequest(
        spec.options,
        reading.source_location(source),
        with_joined_tables(NO_RECEIPT, source),
        library=find_library(type(source)),
    )
    return _SeriesJob(new_plan, 0, request, guard_share=share)


def _paid_job(spec: Spec, ledger: Ledger, entry: Entry) -> _SeriesJob:
    """Load a paid series from the ledger; raise InputError if the spec changed."""
    pending = ledger.pending(entry)
    plan = Plan.from_json(pending.plan)
    if differences := differing_parts(plan, spec):
        raise InputError(
            f"The directory {entry.output} belongs to a series of another spec (its "
            f"{', '.join(differences)} differ), release {entry.number} "
            f"in the ledger {ledger.path}. Continue with that spec, or choose another directory "
            "for this spec; its release is then charged."
        )
    request = replace(ReleaseRequest.from_text(pending.options), options=spec.options)
    return _SeriesJob(plan, len(pending.steps), request, entry)


def _draw_and_publish(
    job: _SeriesJob,
    table: "Table | None",
    ledger: Ledger,
    target: Path,
    periods_due: int,
    note: str = "",
) -> PublishedPeriods:
    """Pay for a series if necessary, draw the due periods, and publish them."""
    plan = job.plan
    request = job.request
    guard = None
    if job.guard_share is not None:
        guard = pay_for_guard(ledger, table, plan, job.guard_share, request.options.rows)
    if guard is not None:
        request = replace(request, receipt=replace(request.receipt, guard=guard.counts))
    if guard is None:
        paid_before = ""
    else:
        paid_before = guard.payment_sentence
    with payment_run(ledger, ledger_bytes_needed(plan), paid_before) as run:
        if job.entry is None:
            receipt = _pay_for_series(plan, request, ledger, target, run, note)
            if guard is not None:
                guard.seal(ledger)
        else:
            receipt = ledger.take_over(job.entry, run)
        series = Series.resumed(release_contract(plan), table, ledger, receipt)
        state = private_file_path(ledger, receipt)
        values = [series.period(state) for _ in range(max(job.drawn, periods_due))]
        directories = _publish_missing_periods(plan, values, ledger, request, receipt, target)
    entry = ledger.entries()[receipt.number - 1]
    return PublishedPeriods(entry, job.entry is None, directories, series_progress(ledger, entry))


def _pay_for_series(
    plan: Plan, request: ReleaseRequest, ledger: Ledger, target: Path, run: str, note: str
) -> Receipt:
    """Pay for all periods of a series, and return the receipt."""
    dates, along = _series_dates(plan)
    tables = pluralize(len(plan.workload.products), "table")
    series = Series.paid(
        release_contract(plan),
        None,
        ledger,
        output=str(target),
        description=with_note(f"series of {dates.size} periods along {along}, {tables}", note),
        options=request.to_text(),
        run=run,
    )
    receipt = require_receipt(series)
    log_payment(ledger, receipt)
    return receipt


def _check_newest_ledger(target: Path, undrawn_labels: Sequence[str]) -> None:
    """Raise LedgerError for an older copy of a ledger.

    An older copy would draw a period twice. A ledger is an older copy if it has not drawn a period
    that is published.
    """
    if released_labels := [label for label in undrawn_labels if (target / label).exists()]:
        raise LedgerError(
            f"The directory {target} has a release of {released_labels[0]}, but the ledger has not "
            "drawn this period. Either the ledger and the private file are an older copy, or the "
            "directory belongs to another series. Put back the newest ledger and private file, or "
            "choose another directory for a new series. Nothing was drawn."
        )


def _count_due_periods(dates: Dates, through: str | None) -> int:
    """Return how many periods to draw; raise if ``through`` is not over yet."""
    periods_over = dates.ended_periods(_today())
    labels = [*map(str, dates.labels)]
    if through is None:
        if not periods_over:
            raise InputError(
                f"No period is over yet; the first, {labels[0]}, ends on {dates.last_day(1)} "
                "(UTC). Nothing was spent."
            )
        return periods_over
    requested_periods = labels.index(one_of("--through", through, labels)) + 1
    if requested_periods > periods_over:
        raise InputError(
            f"The period {through} is not over; it ends on {dates.last_day(requested_periods)} "
            "(UTC). Nothing was spent."
        )
    return requested_periods


def _find_series_entry(ledger: Ledger, target: Path) -> Entry | None:
    """Return the ledger entry of the series in directory ``target``, or None."""
    for entry in ledger.entries():
        if entry.kind == "release" and entry.output == str(target) and entry.state != "absent":
            if ledger.is_running(entry):
                raise LedgerError(
                    f"Release {entry.number} in the ledger {ledger.path} is being made by another "
                    "process. Wait for it."
                )
            if entry.state == "sealed" or series_progress(ledger, entry) is not None:
                return entry
    return None


def _publish_missing_periods(
    plan: Plan,
    values: Sequence[tuple[SignedArray, ...]],
    ledger: Ledger,
    request: ReleaseRequest,
    receipt: Receipt,
    target: Path,
) -> tuple[Path, ...]:
    """Write the missing releases and the index page; return new directories.

    Args:
        plan: the plan of all periods.
        values: for each drawn period, the noisy answers of each block.
        ledger: the ledger that paid.
        request: the options of the releases, and the facts that the ledger records.
        receipt: the receipt of the payment.
        target: the directory of the series.
    """
    dates, _ = _series_dates(plan)
    request = request.with_payment(ledger, receipt)
    directories = []
    for periods, label in enumerate(map(str, dates.labels[: len(values)]), 1):
        if (target / label).exists():
            period_plan = None
        else:
            period_plan = truncate_plan(plan, periods)
        if period_plan is not None:
            with open_draft(check_target(target / label)) as folder:
                outcome = combine_periods(plan, period_plan, values[:periods], receipt.id)
                publish(period_plan, request, outcome, folder)
            directories.append(target / label)
    if target.is_dir():
        newest = _build_newest_release(plan, values, request)
        write_series_page(
            target, request.options, plan.workload.products, period_errors(plan), newest
        )
    if len(values) == dates.size:
        ledger.seal(receipt)
        private_file_path(ledger, receipt).unlink(missing_ok=True)
    return tuple(directories)


def _build_newest_release(
    plan: Plan, values: Sequence[tuple[SignedArray, ...]], request: ReleaseRequest
) -> Release | None:
    """Build the release of the last drawn period that has new answers, or None."""
    for periods in range(len(values), 0, -1):
        period_plan = truncate_plan(plan, periods)
        if period_plan is not None:
            outcome = combine_periods(plan, period_plan, values[:periods], request.receipt.id)
            return cast(Release, publish(period_plan, request, outcome, None))
    return None


def combine_periods(
    plan: Plan, period_plan: Plan, values: Sequence[tuple[SignedArray, ...]], receipt: str
) -> Outcome:
    """Combine the noisy answers of all periods so far into one `Outcome`.

    Args:
        plan: the plan of all periods.
        period_plan: the plan up to the last of the periods.
        values: for each period, the noisy answers of each block that were drawn when the period
            closed.
        receipt: the identifier of the payment; empty for an unpaid series.
    """
    _, along = _series_dates(plan)
    noisy_answers = []
    for index, block in enumerate(plan.measured().blocks):
        shape = [block.copies, *(factor.operator.rows for factor in block.factors)]
        answers = np.zeros(shape, dtype=np.int64)
        is_drawn = np.zeros(shape, dtype=bool)
        for period, block_answers in enumerate(values):
            rows = queries_due(block, along, period)
            answers[rows] = block_answers[index]
            is_drawn[rows] = True
        noisy_answers.append(as_int32_if_exact(answers[is_drawn]))
    observation = Observation(
        period_plan.measured(), tuple(noisy_answers), receipt, private=bool(receipt)
    )
    return Outcome(period_plan, observation)


def finish_series(ledger: Ledger, entry: Entry) -> tuple[Path, ...]:
    """Publish the periods that are drawn but missing in the directory.

    Publishing draws no noise, so the function needs neither the rows nor the private file.
    """
    pending = ledger.pending(entry)
    plan = Plan.from_json(pending.plan)
    request = ReleaseRequest.from_text(pending.options)
    with payment_run(ledger, ledger_bytes_needed(plan)) as run:
        receipt = ledger.take_over(entry, run)
        series = Series.resumed(release_contract(plan), None, ledger, receipt)
        values = [series.period(private_file_path(ledger, receipt)) for _ in pending.steps]
        return _publish_missing_periods(plan, values, ledger, request, receipt, Path(entry.output))
