"""Series: paid once, then published period by period, a directory for each release; and finished after a run was stopped."""

import datetime as dt
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leastnoise._domain import Dates
from leastnoise._estimation import Outcome
from leastnoise._frames import find_library, pluralize
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._plan import Plan, guard_share, with_guard
from leastnoise._planning import period_errors, series_of, truncate_plan
from leastnoise._progress import RowProgress
from leastnoise._release import check_target, open_draft, write_series_page
from leastnoise._session._guard import guarded, waiting_guard
from leastnoise._session._payments import (
    check_affordable,
    check_join,
    check_readable,
    check_writable,
    is_resumable,
    is_series_plan,
    is_too_late,
    paying,
    receipt_of,
    reconcile_ledger,
)
from leastnoise._session._release_job import (
    ReleaseRequest,
    ledger_bytes_needed,
    publish,
    read_table,
    receipt_facts,
)
from leastnoise._spec import Spec, other_parts
from leastnoise._threads import one_thread
from leastnoise._trusted import reading
from leastnoise._trusted.check import InputError, LedgerError, one_of
from leastnoise._trusted.kernel import Entry, Ledger, Receipt, Series, rows_due
from leastnoise._trusted.ledgers import find_ledger, open_or_create_ledger
from leastnoise._trusted.linop import SignedArray, last_cells, narrow
from leastnoise._trusted.measurements import Observation

if TYPE_CHECKING:
    from leastnoise._trusted.table import Table


@dataclass(frozen=True, slots=True)
class PeriodState:
    """How far a series is.

    Attributes:
        labels: of all periods.
        drawn: how many periods the ledger has.
        due: how many periods are over.
        unpublished: labels of the periods that were drawn and are not in the directory.
    """

    labels: tuple[str, ...]
    drawn: int
    due: int
    unpublished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedPeriods:
    """What a run of a series did.

    Attributes:
        entry: the payment of the series.
        paid: whether this run paid.
        releases: the directories that it wrote.
        state: how far the series is; None if it is complete.
    """

    entry: Entry
    paid: bool
    releases: tuple[Path, ...]
    state: PeriodState | None


def private_file(book: Ledger, entry: Entry | Receipt) -> Path:
    """Return the path of the file with the exact counts of closed periods, which only the kernel reads.

    It lies beside the ledger itself, by whatever link the ledger was reached.
    """
    ledger = Path(os.path.realpath(book.path))
    return ledger.with_name(f"{ledger.name}.series-{entry.number}.private")


def period_state(book: Ledger, entry: Entry) -> PeriodState | None:
    """Return the state of a series; None for an entry that is no series, or a complete one."""
    if not entry.resumable:
        return None
    pending = book.pending(entry)
    if not is_series_plan(pending.plan):
        return None
    plan = Plan.from_json(pending.plan)
    dates, along = _dates(plan)
    labels, drawn = tuple(map(str, dates.labels)), len(pending.steps)
    queries = [product.operators[product.attributes.index(along)] for product in plan.workload]
    # no query ends before this period, so there is no release of an earlier one
    first = min(int(last_cells(operator).min()) for operator in queries)
    directory = Path(entry.output)
    missing = tuple(label for label in labels[first:drawn] if not (directory / label).exists())
    return PeriodState(labels, drawn, dates.over(_today()), missing)


def is_unfinished(book: Ledger, entry: Entry) -> bool:
    """Return whether a release was stopped and can be finished, or a series has a period that was drawn and not published."""
    if not is_resumable(entry) or book.is_running(entry) or is_too_late(book, entry):
        return False
    state = period_state(book, entry)
    return state is None or bool(state.unpublished)


def _dates(plan: Plan) -> tuple[Dates, str]:
    """Return the attribute of dates of a series, and its name."""
    series = series_of(plan)
    if series is None:
        raise LedgerError(
            "What the ledger holds of this series is unreadable. Restore the ledger from a copy."
        )
    return series.dates(plan.domain), series.along


def _today() -> dt.date:
    """Return the day (UTC), which decides which periods are over and nothing else."""
    return dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True, slots=True)
class _SeriesJob:
    """A series that a run goes on with.

    Attributes:
        plan: for all periods.
        drawn: how many periods the ledger has.
        request: the options of its releases, and what the ledger keeps beside the plan.
        entry: its payment; None before it is paid.
        guard_share: of the budget, for a guard that is counted before the payment; None without one.
    """

    plan: Plan
    drawn: int
    request: ReleaseRequest
    entry: Entry | None = None
    guard_share: Fraction | None = None


@one_thread()
def release_due(
    spec: Spec,
    source: Any,
    out: Path,
    ledger: Path,
    plan: Callable[[], Plan],
    *,
    through: str | None = None,
    progress: RowProgress | None = None,
) -> PublishedPeriods:
    """Pay for a series if that was not done, draw the periods that are due, and publish them.

    Args:
        spec: with ``[series]``.
        source: the private data.
        out: the directory of the series.
        ledger: the file of the ledger, which may not exist yet.
        plan: makes the plan, if the series was not paid before.
        through: the last period to draw; None for the last that is over.
        progress: shows how far reading is.
    """
    if spec.series is None:
        raise InputError("Periods are published of a spec with [series]; this one has none.")
    target, dates = Path(out).expanduser().absolute(), spec.series.dates(spec.domain)
    periods_due = _due(dates, through)
    check_writable(spec)
    dataset = spec.dataset
    book = find_ledger(ledger, source, dataset, [target.parent], share=spec.share)
    if book is not None:
        reconcile_ledger(book)
    entry = None if book is None else _entry_of(book, target)
    if book is None or entry is None:
        job = _new_job(spec, source, target, book, plan)
    elif entry.state == "sealed":
        # a run may have been stopped between sealing and removing it
        private_file(book, entry).unlink(missing_ok=True)
        return PublishedPeriods(entry, False, (), None)
    else:
        job = _begun_job(spec, book, entry)
    _check_not_older(target, [str(label) for label in dates.labels[job.drawn :]])
    check_join(source, job.request.joined)
    table = None
    if periods_due > job.drawn:
        table = read_table(job.plan, source, progress, usage=job.guard_share is not None)
    if book is None:
        name = dataset or reading.dataset_name(source) or "data"
        book = open_or_create_ledger(ledger, name, with_guard(job.plan.privacy, job.guard_share))
    return _draw_and_publish(job, table, book, target, periods_due)


def _new_job(
    spec: Spec, source: Any, target: Path, book: Ledger | None, plan: Callable[[], Plan]
) -> _SeriesJob:
    """Return a series that is not paid yet; refuse one that the ledger would not pay for."""
    check_target(target)
    if book is not None:
        book.check_for_all_times()
    made = plan()
    mechanism_of(made).prepare(made)
    check_readable(made, source)
    share = guard_share(spec.options.guard)
    if book is not None:
        guard_is_paid = waiting_guard(book, made, share) is not None
        check_affordable(book, made, None if guard_is_paid else share)
    request = ReleaseRequest(
        spec.options,
        reading.source_location(source),
        joined=reading.join_facts(source),
        library=find_library(type(source)),
    )
    return _SeriesJob(made, 0, request, guard_share=share)


def _begun_job(spec: Spec, book: Ledger, entry: Entry) -> _SeriesJob:
    """Return a series that was paid; refuse another spec."""
    pending = book.pending(entry)
    plan = Plan.from_json(pending.plan)
    if other := other_parts(plan, spec):
        raise InputError(
            f"The directory {entry.output} belongs to a series of another spec (its "
            f"{', '.join(other)} differ), release {entry.number} "
            f"in the ledger {book.path}. Go on with that spec, or choose another directory for "
            "this one, which is then paid."
        )
    request = replace(ReleaseRequest.from_json(pending.options), options=spec.options)
    return _SeriesJob(plan, len(pending.steps), request, entry)


def _draw_and_publish(
    job: _SeriesJob, table: "Table | None", book: Ledger, target: Path, periods_due: int
) -> PublishedPeriods:
    """Pay for a series that was not paid, draw its periods up to the last that is due, and publish them."""
    plan, request = job.plan, job.request
    guard = None
    if job.guard_share is not None:
        guard = guarded(book, table, plan, job.guard_share, request.options.rows)
    if guard is not None:
        request = replace(request, guard=guard.facts)
    with paying(book, ledger_bytes_needed(plan)) as run:
        if job.entry is None:
            receipt = _pay(plan, request, book, target, run)
            if guard is not None:
                guard.seal(book)
        else:
            receipt = book.take_over(job.entry, run)
        series = Series.resumed(release_contract(plan), table, book, receipt)
        state = private_file(book, receipt)
        values = [series.period(state) for _ in range(max(job.drawn, periods_due))]
        written = _publish(plan, values, book, request, receipt, target)
    entry = book.entries()[receipt.number - 1]
    return PublishedPeriods(entry, job.entry is None, written, period_state(book, entry))


def _pay(plan: Plan, request: ReleaseRequest, book: Ledger, target: Path, run: str) -> Receipt:
    """Pay for all periods of a series."""
    dates, along = _dates(plan)
    tables = pluralize(len(plan.workload.products), "table")
    series = Series.paid(
        release_contract(plan),
        None,
        book,
        output=str(target),
        description=f"series of {dates.size} periods along {along}, {tables}",
        options=request.to_json(),
        run=run,
    )
    return receipt_of(series)


def _check_not_older(target: Path, undrawn: Sequence[str]) -> None:
    """Refuse a ledger that was put back from a copy: a release of a period that it has not drawn would get a second value."""
    if beyond := [label for label in undrawn if (target / label).exists()]:
        raise LedgerError(
            f"The directory {target} has a release of {beyond[0]}, which the ledger has not "
            "drawn: ledger and private file are an older "
            "copy, or the directory is of another series. Put back the newest ledger and private "
            "file, or choose another directory for a "
            "new series. Nothing was drawn."
        )


def _due(dates: Dates, through: str | None) -> int:
    """Return how many periods are to be drawn; refuse one that is not over."""
    over, labels = dates.over(_today()), [*map(str, dates.labels)]
    if through is None:
        if not over:
            raise InputError(
                f"No period is over yet; the first, {labels[0]}, ends on {dates.last_day(1)} "
                "(UTC). Nothing was spent."
            )
        return over
    wanted = labels.index(one_of("--through", through, labels)) + 1
    if wanted > over:
        raise InputError(
            f"The period {through} is not over; it ends on {dates.last_day(wanted)} (UTC). "
            "Nothing was spent."
        )
    return wanted


def _entry_of(book: Ledger, target: Path) -> Entry | None:
    """Return the entry of the series that was paid for this directory; None if there is none."""
    for entry in book.entries():
        if entry.kind == "release" and entry.output == str(target) and entry.state != "absent":
            if book.is_running(entry):
                raise LedgerError(
                    f"Release {entry.number} in the ledger {book.path} is being made by another "
                    "process. Wait for it."
                )
            if entry.state == "sealed" or period_state(book, entry) is not None:
                return entry
    return None


def _publish(
    plan: Plan,
    values: Sequence[tuple[SignedArray, ...]],
    book: Ledger,
    request: ReleaseRequest,
    receipt: Receipt,
    target: Path,
) -> tuple[Path, ...]:
    """Write the missing releases and the page of all; seal a series whose last period was drawn.

    Args:
        plan: of all periods.
        values: for every period that was drawn the noisy answers of each block.
        book: the ledger that paid.
        request: the options of the releases, and what the ledger keeps beside the plan.
        receipt: of the payment.
        target: the directory of the series.
    """
    dates, _ = _dates(plan)
    written = []
    for periods, label in enumerate(map(str, dates.labels[: len(values)]), 1):
        part = None if (target / label).exists() else truncate_plan(plan, periods)
        if part is not None:
            with open_draft(check_target(target / label)) as folder:
                outcome = outcome_up_to(plan, part, values[:periods], receipt.id)
                publish(part, request, outcome, folder, receipt_facts(book, receipt))
            written.append(target / label)
    if target.is_dir():
        write_series_page(target, request.options, plan.workload.products, period_errors(plan))
    if len(values) == dates.size:
        book.seal(receipt)
        private_file(book, receipt).unlink(missing_ok=True)
    return tuple(written)


def outcome_up_to(
    plan: Plan, part: Plan, values: Sequence[tuple[SignedArray, ...]], receipt: str
) -> Outcome:
    """Return the noisy answers of all periods so far as one observation.

    Args:
        plan: of all periods.
        part: the plan up to the last of the periods.
        values: for every period the noisy answers of each block that were drawn when it closed.
        receipt: identification of the payment; "" for an unpaid series.
    """
    _, along = _dates(plan)
    observed = []
    for index, block in enumerate(plan.measured().blocks):
        shape = [block.copies, *(factor.operator.rows for factor in block.factors)]
        answers = np.zeros(shape, dtype=np.int64)
        is_drawn = np.zeros(shape, dtype=bool)
        for period, of_blocks in enumerate(values):
            rows = rows_due(block, along, period)
            answers[rows] = of_blocks[index]
            is_drawn[rows] = True
        observed.append(narrow(answers[is_drawn]))
    observation = Observation(part.measured(), tuple(observed), receipt, private=bool(receipt))
    return Outcome(part, observation)


def finish_series(book: Ledger, entry: Entry) -> tuple[Path, ...]:
    """Publish the periods that were drawn and are not in the directory.

    Nothing is drawn, so neither the rows nor the private file are needed.
    """
    pending = book.pending(entry)
    plan, request = Plan.from_json(pending.plan), ReleaseRequest.from_json(pending.options)
    with paying(book, ledger_bytes_needed(plan)) as run:
        receipt = book.take_over(entry, run)
        series = Series.resumed(release_contract(plan), None, book, receipt)
        values = [series.period(private_file(book, receipt)) for _ in pending.steps]
        return _publish(plan, values, book, request, receipt, Path(entry.output))
