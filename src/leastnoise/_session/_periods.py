"""Series: paid once, then published period by period, a directory for each release; and finished after a run was stopped."""

import datetime as dt
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leastnoise import _adapters
from leastnoise._check import InputError, LedgerError, one_of
from leastnoise._domain import Dates
from leastnoise._estimate import Outcome
from leastnoise._frames import library_of, several
from leastnoise._kernel import Entry, Ledger, Receipt, Series, due
from leastnoise._linop import SignedArray, last_cells, narrow
from leastnoise._measurements import Observation
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._plan import Plan, guard_share, with_guard
from leastnoise._planning import period_errors, series_of, up_to
from leastnoise._progress import RowProgress
from leastnoise._release import check_target, draft, write_series_page
from leastnoise._session._finish import (
    Asked,
    publish,
    read_table,
    receipt_facts,
    room_for,
)
from leastnoise._session._guard import guarded, waiting_guard
from leastnoise._session._ledgers import ledger_for, ledger_made
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
    settle,
)
from leastnoise._spec import Spec, other_parts
from leastnoise._threads import one_thread


@dataclass(frozen=True, slots=True)
class PeriodState:
    """How many periods of a series were drawn, how many are over, and which were drawn and are not in the directory."""

    labels: tuple[str, ...]
    drawn: int
    due: int
    unpublished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedPeriods:
    """What a run of a series did: whether it paid, the directories that it wrote, and the state of the series (None if it is complete)."""

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
    target, asked = (
        Path(entry.output),
        (product.operators[product.attributes.index(along)] for product in plan.workload),
    )
    first = min(
        int(last_cells(operator).min()) for operator in asked
    )  # what ends earlier is no release
    missing = tuple(label for label in labels[first:drawn] if not (target / label).exists())
    return PeriodState(labels, drawn, dates.over(_today()), missing)


def is_unfinished(book: Ledger, entry: Entry) -> bool:
    """Return whether a release was stopped and can be finished, or a series has a period that was drawn and not published."""
    if not is_resumable(entry) or book.is_running(entry) or is_too_late(book, entry):
        return False
    state = period_state(book, entry)
    return state is None or bool(state.unpublished)


def _dates(plan: Plan) -> tuple[Dates, str]:
    series = series_of(plan)
    if series is None:
        raise LedgerError(
            "What the ledger holds of this series is unreadable. Restore the ledger from a copy."
        )
    return series.dates(plan.domain), series.along


def _today() -> dt.date:
    """Return the day (UTC), which decides which periods are over and nothing else."""
    return dt.datetime.now(dt.UTC).date()


@one_thread()
def release_due(
    what: Spec,
    source: Any,
    out: Path,
    ledger: Path,
    plan: Callable[[], Plan],
    *,
    through: str | None = None,
    progress: RowProgress | None = None,
) -> PublishedPeriods:
    """Pay for a series if that was not done, draw the periods up to ``through`` or the last that is over, and publish what is missing."""
    if what.series is None:
        raise InputError("Periods are published of a spec with [series]; this one has none.")
    target, dataset = Path(out).expanduser().absolute(), what.dataset
    due = _due(what.series.dates(what.domain), through)
    check_writable(what)
    book = ledger_for(ledger, source, dataset, [target.parent], share=what.share)
    if book is not None:
        settle(book)
    entry = None if book is None else _entry_of(book, target)
    if entry is not None and book is not None and entry.state == "sealed":
        private_file(book, entry).unlink(
            missing_ok=True
        )  # of a run that was stopped between the two
        return PublishedPeriods(entry, False, (), None)
    share = (
        guard_share(what.options.guard) if entry is None else None
    )  # a guard is paid once, before the first period
    if entry is None or book is None:
        check_target(target)
        made, drawn = plan(), 0
        mechanism_of(made).ready(made)
        check_readable(made, source)
        if book is not None:
            guard_is_paid = waiting_guard(book, made, share) is not None
            check_affordable(book, made, None if guard_is_paid else share)
        kept = Asked(
            what.options,
            _adapters.location(source),
            joined=_adapters.join_facts(source),
            library=library_of(type(source)),
        )
    else:
        made, drawn, kept = _begun(book, entry, what)
    _check_not_older(target, [*map(str, what.series.dates(what.domain).labels)][drawn:])
    check_join(source, kept.joined)
    table = read_table(made, source, progress, usage=share is not None) if due > drawn else None
    if book is None:
        book = ledger_made(
            ledger,
            dataset or _adapters.dataset_name(source) or "data",
            with_guard(made.privacy, share),
        )
    guard = None if share is None else guarded(book, table, made, share, what.options.rows)
    if guard is not None:
        kept = replace(kept, guard=guard.facts)
    with paying(book, room_for(made)) as process:
        if entry is None:
            described = f"series of {len(what.series.dates(what.domain).labels)} periods along {what.series.along}, "
            described += several(len(made.workload.products), "table")
            facts = {
                "output": str(target),
                "description": described,
                "options": kept.to_json(),
                "run": process,
            }
            receipt = receipt_of(Series.paid(terms_of(made), None, book, **facts))
            if guard is not None:
                guard.seal(book)
        else:
            receipt = book.take_over(entry, process)
        series = Series.resumed(terms_of(made), table, book, receipt)
        values = [series.period(private_file(book, receipt)) for _ in range(max(drawn, due))]
        written = _publish(made, values, book, kept, receipt, target)
    paid = book.entries()[receipt.number - 1]
    return PublishedPeriods(paid, entry is None, written, period_state(book, paid))


def _begun(book: Ledger, entry: Entry, what: Spec) -> tuple[Plan, int, Asked]:
    """Return the plan of a series that was paid, how many periods were drawn, and what is asked now; refuse another spec."""
    pending = book.pending(entry)
    plan = Plan.from_json(pending.plan)
    if other := other_parts(plan, what):
        raise InputError(
            f"The directory {entry.output} belongs to a series of another spec (its "
            f"{', '.join(other)} differ), release {entry.number} "
            f"in the ledger {book.path}. Go on with that spec, or choose another directory for "
            "this one, which is then paid."
        )
    return plan, len(pending.steps), replace(Asked.from_json(pending.options), options=what.options)


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
    asked: Asked,
    receipt: Receipt,
    target: Path,
) -> tuple[Path, ...]:
    """Write the missing releases of the periods that were drawn and the page of all, and seal a series whose last period was drawn."""
    dates, _ = _dates(plan)
    written = []
    for periods, label in enumerate(map(str, dates.labels[: len(values)]), 1):
        part = None if (target / label).exists() else up_to(plan, periods)
        if part is not None:
            with draft(check_target(target / label)) as folder:
                outcome = outcome_up_to(plan, part, values[:periods], receipt.id)
                publish(part, asked, outcome, folder, receipt_facts(book, receipt))
            written.append(target / label)
    if target.is_dir():
        write_series_page(target, asked.options, plan.workload.products, period_errors(plan))
    if len(values) == dates.size:
        book.seal(receipt)
        private_file(book, receipt).unlink(missing_ok=True)
    return tuple(written)


def outcome_up_to(
    plan: Plan, part: Plan, values: Sequence[tuple[SignedArray, ...]], receipt: str
) -> Outcome:
    """Return the noisy answers of all periods so far as one observation of ``part``, the plan up to the last of them."""
    observed, along = [], _dates(plan)[1]
    for index, block in enumerate(plan.measured().blocks):
        shape = [block.copies, *(factor.operator.rows for factor in block.factors)]
        whole, known = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        for period, drawn in enumerate(values):
            rows = due(block, along, period)
            whole[rows], known[rows] = drawn[index], True
        observed.append(narrow(whole[known]))
    return Outcome(
        part, Observation(part.measured(), tuple(observed), receipt, private=bool(receipt))
    )


def finish_series(book: Ledger, entry: Entry) -> tuple[Path, ...]:
    """Publish what was drawn and is not in the directory; this draws nothing, so it needs neither the rows nor the private file."""
    pending = book.pending(entry)
    plan, asked = Plan.from_json(pending.plan), Asked.from_json(pending.options)
    with paying(book, room_for(plan)) as process:
        receipt = book.take_over(entry, process)
        series = Series.resumed(terms_of(plan), None, book, receipt)
        values = [series.period(private_file(book, receipt)) for _ in pending.steps]
        return _publish(plan, values, book, asked, receipt, Path(entry.output))
