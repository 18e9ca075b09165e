"""Check data, budget, memory and time before a payment; read its state.

The state of a payment is read from the ledger and never assumed. Every payment of this process
belongs to a separate run. The run is recorded before anything is paid, so that the ledger can state
the outcome later.
"""

import glob
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._environment import check_environment
from leastnoise._error import require_memory
from leastnoise._interruption import describe_error, note_run
from leastnoise._plan import (
    BoundsPlan,
    LinearPlan,
    Plan,
    SearchPlan,
    guard_budget,
    guard_share,
    is_search_plan,
    with_guard,
    without_guard,
)
from leastnoise._planning import SMALL, plan_for_workload, smallest_privacy, stated_privacy
from leastnoise._release import (
    NO_RECEIPT,
    Options,
    ReceiptFacts,
    SearchFacts,
    SecondTable,
    check_formats,
    finishing_seconds,
    read_record,
    remove_dead_drafts,
    sync_to_disk,
    tables_to_write,
)
from leastnoise._sources import has_text_rows
from leastnoise._spec import Spec, columns_to_read
from leastnoise._trusted import reading
from leastnoise._trusted.accounting import (
    ApproxDP,
    Budget,
    Charge,
    Cost,
    GaussianCost,
    Privacy,
    PureCost,
    SeriesCost,
    gaussian_mu_squared,
    largest_accepted,
    parameters,
    total,
)
from leastnoise._trusted.check import (
    BudgetError,
    InputError,
    InternalError,
    LeastNoiseError,
    PaidError,
    refuse,
)
from leastnoise._trusted.kernel import Entry, Ledger, Receipt, Series
from leastnoise._trusted.ledgers import find_ledger, open_or_create_ledger, read_receipt

IN_MEMORY = "(in memory)"
_MOST_NOTE = 500  # characters
GUARD = "(guard)"
"""The output of a guard in the ledger: it has no directory, because all of it is in the ledger."""


def is_series_plan(text: str) -> bool:
    """Return whether the text of a plan describes a series."""
    return text.startswith('{"format":1,"strategy":"series",')


@dataclass(frozen=True, slots=True)
class PaymentState:
    """The state of a payment, and one or two sentences about it for people.

    Attributes:
        state: nothing, guard, whole, resumable, absent, entered or unknown.
        words: the sentences.
    """

    state: str
    words: str


def read_payment_state(ledger_path: Path, run: str) -> PaymentState:
    """Read a payment's state from its ledger; seal a published entry."""
    try:
        ledger = Ledger.open(ledger_path)
        entry = next((entry for entry in ledger.entries() if run in {entry.run, entry.id}), None)
        if entry is None:
            return PaymentState("nothing", "")
        if entry.kind != "release":
            return PaymentState("entered", f"It was entered before that, as number {entry.number}.")
        with suppress(LeastNoiseError, OSError):  # what cannot be entered now, the next run enters
            entry_id = entry.id
            number = entry.number
            ledger.reconcile(lambda entry: is_published(entry) if entry.id == entry_id else None)
            entry = ledger.entries()[number - 1]
        is_whole = entry.state == "sealed" or is_published(entry)
    except (LeastNoiseError, OSError):
        return PaymentState(
            "unknown",
            "Whether something was paid cannot be told now; see `leastnoise ledger show "
            f"{ledger_path}`.",
        )
    if entry.output == GUARD:
        return PaymentState("guard", f"Its guard was paid ({entry.charge}).")
    return _state_of_paid(ledger, ledger_path, entry, is_whole)


def _state_of_paid(
    ledger: Ledger,
    ledger_path: Path,
    entry: Entry,
    is_whole: bool | None,  # noqa: FBT001 - None: unknown
) -> PaymentState:
    """Return the state of a paid release: whole, resumable, absent or unknown."""
    paid_text = f"The release was paid ({entry.charge})"
    if is_whole:
        location = ""
        if entry.output != IN_MEMORY:
            location = f" in {entry.output}"
        return PaymentState("whole", f"{paid_text} and is whole{location}.")
    if is_whole is None:
        return PaymentState(
            "unknown", f"{paid_text}; whether it is whole in {entry.output} cannot be told now."
        )
    is_series = False
    with suppress(LeastNoiseError, OSError):
        is_series = entry.resumable and is_series_plan(ledger.pending(entry).plan)
    if is_series:
        advice = f"`leastnoise ledger show {ledger_path}` says which periods of it are drawn and published"
        return PaymentState("resumable", f"{paid_text}, and nothing of it is paid again: {advice}.")
    if entry.resumable:
        return PaymentState(
            "resumable",
            f"{paid_text} and can be finished without paying again: `leastnoise resume {ledger_path}`.",
        )
    return PaymentState(
        "absent",
        f"{paid_text} and is absent: its noise may have been drawn, so the budget stays spent.",
    )


@contextmanager
def payment_run(ledger: Ledger, room: int, paid_before: str = "") -> Iterator[str]:
    """Yield the run of a payment; raise errors after the payment as PaidError.

    ``paid_before`` names what was paid for the release before this run, such as its guard. In that
    case an error before the payment of this run is a PaidError too.
    """
    check_environment()  # afterwards a wrong switch would stop a release that was paid
    run = ""
    try:
        with ledger.running(room) as run:
            note_run(ledger.path.absolute(), run)
            yield run
    except Exception as error:
        if run:
            payment = read_payment_state(ledger.path, run)
        else:
            payment = PaymentState("nothing", "")
        if payment.state == "nothing":
            if not paid_before:
                raise
            payment = PaymentState("guard", paid_before)
        raise PaidError(
            f"{describe_error(error)[0]} {payment.words}", payment.state, error
        ) from error
    except BaseException as error:  # an interruption
        if run:
            payment = read_payment_state(ledger.path, run)
        else:
            payment = PaymentState("nothing", "")
        if payment.words or paid_before:
            error.add_note(payment.words or paid_before)
        raise


def reconcile_ledger(ledger: Ledger) -> tuple[Entry, ...]:
    """Settle the entries of stopped processes, and return the changed entries.

    Published releases are sealed; others are marked absent or resumable. Files that dead processes
    left in the folders of the ledger and of its releases are removed.
    """
    settled = ledger.reconcile(is_published)
    remove_leftovers(ledger)
    return settled


def remove_leftovers(ledger: Ledger) -> None:
    """Remove the drafts of dead processes near a ledger and its releases."""
    folders = {Path(os.path.realpath(ledger.path)).parent, ledger.path.absolute().parent}
    for entry in ledger.entries():
        output = Path(entry.output)
        if output.is_absolute():
            folders.add(next(folder for folder in output.parents if folder.exists()))
    remove_dead_drafts(folders)


def require_receipt(series: Series) -> Receipt:
    """Return the receipt of a paid series; fail if it has none."""
    if series.receipt is None:
        raise InternalError("A paid series has no receipt; please report this.")
    return series.receipt


def check_note(note: str) -> None:
    """Raise for a note that is not one line of text."""
    if not isinstance(note, str) or len(note.splitlines()) > 1 or len(note) > _MOST_NOTE:
        if isinstance(note, str):
            received = note
        else:
            received = type(note).__name__
        raise refuse("note", received, f"a text of one line and at most {_MOST_NOTE} characters")


def with_note(description: str, note: str) -> str:
    """Return the description in the ledger, followed by the note."""
    if note:
        return f"{description}; {note}"
    return description


def is_resumable(entry: Entry) -> bool:
    """Return whether an entry is a paid release that can be finished.

    A guard is not such an entry: it waits for its release.
    """
    return entry.resumable and entry.output != GUARD


def is_too_late(ledger: Ledger, entry: Entry) -> bool:
    """Return whether a budget's period ended before its release measured."""
    return ledger.period_is_over(entry) and not ledger.pending(entry).steps


def warn_of_unfinished(ledger: Ledger) -> None:
    """Warn of every stopped release that was paid and can be finished."""
    for entry in ledger.entries():
        if is_resumable(entry) and not ledger.is_running(entry) and not is_too_late(ledger, entry):
            warnings.warn(
                f"Release {entry.number} of {entry.reserved_on} ({entry.charge}; {entry.output}) "
                "was stopped before it was published: "
                f"leastnoise.resume({str(ledger.path)!r}) finishes it without paying again.",
                stacklevel=6,  # of who called the public function, through its decorators
            )


def is_published(entry: Entry) -> bool | None:
    """Return whether a release is in its directory; None if unknown.

    A directory is published in one step, so a manifest with the entry's receipt means that the
    release is complete.
    """
    if entry.output in {GUARD, IN_MEMORY}:
        return False
    try:
        receipt = read_receipt(Path(entry.output))
        if receipt.get("id") != entry.id:
            return False
        # what cannot be made durable is not known to be published
        sync_to_disk(Path(entry.output).parent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return True


def check_before_planning(ledger_path: Path | None, spec: Spec, folder: Path) -> None:
    """Raise for unreadable data, unwritable files and an unaffordable budget.

    The check needs no plan, so a faulty spec fails before the time for planning is spent.
    """
    check_writable(spec)
    if spec.source is None:
        data = None
    else:
        data = spec.data(spec.source)
    unit = smallest_privacy(spec.privacy)
    reading.check_source(
        data, spec.domain, *columns_to_read(spec), unit.unit_column, unit.unit_reading
    )
    if ledger_path is None:
        return
    ledger = find_ledger(ledger_path, data, spec.dataset, [folder], share=spec.share)
    if ledger is not None and not any(is_resumable(entry) for entry in ledger.entries()):
        request = smallest_privacy(spec.unpaid_privacy)
        try:
            _check_least_charge(ledger, request)
        except BudgetError:
            if budget_left_by_guards(ledger, request) is None:
                raise


def _check_least_charge(ledger: Ledger, request: Privacy) -> None:
    """Raise if a ledger would refuse even the smallest charge within a budget.

    The kind of noise, and the spent part of a rho, are known only with a plan.
    """
    budget = request.budget
    if not isinstance(budget, ApproxDP):
        ledger.check((SeriesCost(budget), request))
        return
    if not isinstance(ledger.privacy.budget, ApproxDP):
        ledger.check((PureCost(min(budget.epsilon, SMALL)), request))
        return
    try:
        ledger.check((PureCost(budget.epsilon), request))
    except BudgetError:
        gaussian_cost = GaussianCost(gaussian_mu_squared(budget.epsilon, budget.delta))
        ledger.check((gaussian_cost, request))


def check_readable(plan: Plan | SearchPlan, source: Any) -> None:
    """Raise for data without the columns that a plan needs."""
    attributes: tuple[str, ...]
    measures: tuple[str, ...] = ()
    if isinstance(plan, Plan) and plan.details.counts_unit_sizes:
        attributes = ()
    elif isinstance(plan, Plan):
        attributes, measures = plan.used()
    elif isinstance(plan, BoundsPlan) and plan.bounds_row_counts:
        attributes = ()
    else:
        attributes = (plan.attribute,)
    unit = plan.privacy
    reading.check_source(
        source, plan.domain, attributes, measures, unit.unit_column, unit.unit_reading
    )


def check_writable(spec: Spec) -> None:
    """Raise for a wrong environment variable, or a format that cannot be written.

    The sizes of tables are known only when all categories are found.
    """
    check_environment()
    has_all_categories = all(search.result is not None for search in spec.all_searches)
    check_formats(
        spec.options.formats, tables_to_write(spec.workload.products) if has_all_categories else ()
    )


def check_affordable(
    ledger: Ledger, plan: Plan | SearchPlan, share: Fraction | None = None
) -> None:
    """Raise for a plan and a guard that the ledger would refuse to pay.

    ``share`` is the guard's share of the whole budget; None without a guard. No data are read.
    """
    ledger.check(*_payments(plan, share))


def check_affordable_at_first(
    whole: Privacy, dataset: str, plan: Plan | SearchPlan, share: Fraction | None
) -> None:
    """Raise if a new ledger would refuse to pay a plan and its guard."""
    Ledger.check_new(dataset, whole, *_payments(plan, share))


def _payments(plan: Plan | SearchPlan, share: Fraction | None) -> list[tuple[Cost, Privacy]]:
    """Return cost and privacy of a release's payments: guard, then plan."""
    if isinstance(plan, Plan):
        cost = plan.cost()
    else:
        cost = SeriesCost(plan.privacy.budget)
    payments = [(cost, plan.privacy)]
    if share is not None:
        guard = guard_budget(plan.privacy.budget, share)
        payments.insert(0, (SeriesCost(guard), plan.privacy.within(guard)))
    return payments


def whole_for_new_ledger(spec: Spec, plan: Plan, share: Fraction | None) -> Privacy:
    """Return the budget of the ledger that the first release of a spec creates.

    It is the budget of the spec, which covers guard and plan. If the spec has no budget, it is the
    smallest budget that covers both.
    """
    return spec.whole or stated_privacy(spec.privacy) or with_guard(plan.privacy, share)


def open_or_create_ledger_of(
    source: Any,
    path: Path,
    whole: Privacy,
    dataset: str | None = None,
    folders: Sequence[Path] = (),
) -> Ledger:
    """Open the ledger of a data set, or create it with a budget.

    Args:
        source: the data; only their name and their location are used.
        path: the file of the ledger.
        whole: the whole budget, for a ledger that is created now.
        dataset: the name of the data in the ledger; None for the name of their file or table.
        folders: further folders to search for releases that the ledger paid.

    Raises:
        InputError: the ledger belongs to other data.
        LedgerError: the ledger cannot be used, is older than a release that it paid, or would be a
            second ledger of the data.
    """
    ledger = find_ledger(path, source, dataset, list(folders))
    if ledger is not None:
        return ledger
    name = dataset or reading.dataset_name(source) or "data"
    return open_or_create_ledger(path, name, whole)


def fit_plan_to_ledger(ledger: Ledger, plan: Plan, share: Fraction | None) -> Plan:
    """Return the plan, rescaled if stopped guards leave it too little budget.

    Args:
        ledger: the ledger that pays.
        plan: the plan of a release.
        share: the guard's share of the whole budget; None without a guard.

    Raises:
        BudgetError: the ledger would refuse to pay for the plan and its guard for a reason other
            than stopped guards, or the plan's measurements cannot be rescaled.
    """
    try:
        check_affordable(ledger, plan, share)
    except BudgetError:
        whole = budget_left_by_guards(ledger, with_guard(plan.privacy, share))
        if whole is None or plan.data_independent_error is None:
            raise
        fitted = plan_for_workload(plan.workload, plan, without_guard(whole, share))
        check_affordable(ledger, fitted, share)
        return fitted
    return plan


def plan_budget_left(ledger: Ledger, plan: Plan, options: Options) -> Fraction:
    """Return the fraction of a plan's budget that the ledger can still pay."""
    share = guard_share(options.guard)
    try:
        check_affordable(ledger, plan, share)
    except BudgetError:
        whole = with_guard(plan.privacy, share)
        remaining = budget_left_by_guards(ledger, whole)
        if remaining is not None:
            size = _size_name(whole.budget)
            return Fraction(getattr(remaining.budget, size)) / getattr(whole.budget, size)
    return Fraction(1)


def budget_left_by_guards(ledger: Ledger, privacy: Privacy) -> Privacy | None:
    """Return the budget that a ledger has left, if stopped guards spent the rest.

    The result is None if nothing is left, or if stopped guards cost less than the missing amount.
    """
    budget = privacy.budget
    remaining = ledger.left()
    guards = total(entry.charge for entry in _stopped_guards(ledger))
    if isinstance(budget, ApproxDP) and isinstance(ledger.privacy.budget, ApproxDP):
        return _left_by_guards_in_mu(privacy, budget, remaining, guards)
    size = _size_name(budget)
    requested = getattr(budget, size)
    affordable = min(requested, getattr(remaining, size))
    if affordable <= 0 or requested - affordable > getattr(guards, size):
        return None
    return privacy.within(replace(budget, **{size: affordable}))


def _left_by_guards_in_mu(
    privacy: Privacy, budget: ApproxDP, remaining: Charge, guards: Charge
) -> Privacy | None:
    """Return the privacy that stopped guards left of an (epsilon, delta) budget.

    A plan with pure or Gaussian noise can be paid with it. The result is None if nothing is left.
    """
    requested = gaussian_mu_squared(budget.epsilon, budget.delta)
    mu_squared = min(requested, remaining.mu_squared)
    missing_epsilon = budget.epsilon - min(budget.epsilon, remaining.epsilon)
    is_by_guards = missing_epsilon <= guards.epsilon or requested - mu_squared <= guards.mu_squared
    if mu_squared <= 0 or remaining.epsilon <= 0 or not is_by_guards:
        return None
    gaussian = largest_accepted(
        lambda epsilon: gaussian_mu_squared(epsilon, budget.delta) <= mu_squared,
        bits=24,
        near=budget.epsilon,
    )
    return privacy.within(ApproxDP(min(budget.epsilon, remaining.epsilon, gaussian), budget.delta))


def _size_name(budget: Budget) -> str:
    """Return the name of a budget's first parameter."""
    return next(iter(parameters(budget)))


def _stopped_guards(ledger: Ledger) -> list[Entry]:
    """Return guard entries that no release of the same share follows."""
    releases = [
        entry
        for entry in ledger.entries()
        if entry.kind == "release" and entry.share == ledger.share
    ]
    next_outputs = [*(entry.output for entry in releases), GUARD][1:]
    return [
        entry
        for entry, next_output in zip(releases, next_outputs, strict=True)
        if entry.output == GUARD == next_output
    ]


def find_stopped_entry(ledger: Ledger, digest: str, output: str) -> Entry | None:
    """Return the stopped, resumable entry of a plan and an output, or None."""
    for entry in ledger.entries():
        if (
            entry.resumable
            and entry.output == output
            and entry.plan_digest == digest
            and not ledger.is_running(entry)
            and not is_too_late(ledger, entry)
        ):
            return entry
    return None


def check_search_datasets(searches: Sequence[SearchFacts], dataset: str) -> None:
    """Raise for categories that were found in another data set."""
    for search in searches:
        payment = search.receipt.payment
        if payment is not None and payment.dataset != dataset:
            raise InputError(
                f"The categories of {search.attribute!r} were found in the data set "
                f"{payment.dataset!r}; "
                f"got a release of {dataset!r}. Give "
                "them as a public list, with categories = { file = ... } and without the search, "
                "or say which data set this is."
            )


def locate_data(source: Any, location: Any, receipt: ReceiptFacts) -> Any:
    """Return the source that was passed; without one, the recorded source.

    A source with other joined tables than the release was paid for is refused.
    """
    data = reading.source_from_location(location, source)
    if data is not None:
        check_join(data, receipt)
    return data


def with_joined_tables(receipt: ReceiptFacts, source: Any) -> ReceiptFacts:
    """Return a receipt with the published facts of the joined tables of a source."""
    tables = [read_record(SecondTable, facts) for facts in reading.join_facts(source)]
    if not tables:
        return replace(receipt, joined=None, further_joined=())
    return replace(receipt, joined=tables[0], further_joined=tuple(tables[1:]))


def check_join(source: Any, receipt: ReceiptFacts) -> None:
    """Refuse data with other joined tables than those that were paid for."""
    current = with_joined_tables(NO_RECEIPT, source).joined_tables
    recorded = receipt.joined_tables
    if len(current) != len(recorded) or not all(map(_is_same_table, current, recorded)):
        raise InputError(
            "A release must be finished with the source that it was paid for: the same "
            "second table, joined on the same columns, and public or not as before. Give "
            "source=leastnoise.Joined(...) as for the release, or no second table if there "
            "was none."
        )


def _is_same_table(current: SecondTable, recorded: SecondTable) -> bool:
    """Return whether a joined table can be the recorded one; a frame has no name."""
    if "" in {current.table, recorded.table}:
        recorded = replace(recorded, table=current.table)
    return current == recorded


# Bytes, measured on the largest tables of each kind (identities, prefixes and all ranges of 10^6
# answers) and rounded up.
_BYTES_PER_CELL = (
    64  # of counts, noise and noisy answers, for a cell of the largest table that is measured
)
_BYTES_PER_NOISY_ANSWER = 16  # for every noisy answer, until the release is done
_BYTES_PER_ANSWER = 100  # for an answer of the largest table
_BYTES_PER_LABEL = 900  # for a label of a table that is written: its texts, in both formats
_BLOCK = 2**20  # bytes of a CSV file between two reports of progress
_BYTES_PER_SECOND = 2e7


def count_csv_blocks(source: Any) -> int:
    """Return the number of blocks of CSV files that will be read; 0 if unknown."""
    return sum(math.ceil(size / _BLOCK) for size in list_csv_sizes(source))


def list_csv_sizes(source: Any) -> list[int]:
    """Return the sizes in bytes of the CSV files of a source.

    Of joined tables the files of the first one count. Other sources have none.
    """
    source_location = reading.source_location(source)
    while isinstance(source_location, dict) and "joined" in source_location:
        source_location = source_location["joined"][0]
    if source_location is None:
        return []
    if isinstance(source_location, dict):
        source_location = source_location["path"]
    path = Path(str(source_location))
    files: Iterable[Path]
    if path.is_dir():
        files = path.rglob("*")
    elif path.is_file():
        files = [path]
    else:
        files = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
    return [
        file.stat().st_size
        for file in files
        if has_text_rows(file)
        # the length of a compressed text is not known beforehand
        and file.suffix.lower() != ".gz"
        and file.is_file()
    ]


def estimate_reading_seconds(source: Any) -> float:
    """Estimate the CPU seconds to read CSV files; 0 for other sources."""
    return sum(list_csv_sizes(source)) / _BYTES_PER_SECOND


def estimate_resuming_seconds(ledger: Ledger, number: int) -> float:
    """Estimate the CPU seconds to finish a measured release; 0 if unknown."""
    try:
        plans = [
            ledger.pending(entry).plan
            for entry in ledger.entries()
            if entry.number == number and entry.resumable
        ]
        return sum(
            (
                finishing_seconds(Plan.from_json(plan), Options())
                for plan in plans
                if not is_search_plan(plan)
            ),
            0.0,
        )
    except LeastNoiseError:  # finishing it raises the error with its message
        return 0.0


def estimate_release_memory(plan: Plan, *, in_files: bool) -> int:
    """Estimate the bytes that a release needs in addition to its rows."""
    products = plan.workload.products
    written_tables = tables_to_write(products)
    answers = max(product.rows for product in written_tables)
    labels = max(sum(operator.rows for operator in product.operators) for product in written_tables)
    if isinstance(plan, LinearPlan):
        tables = [
            (block.rows, math.prod(factor.operator.size for factor in block.factors))
            for block in plan.measurements.blocks
        ]
    else:
        tables = [
            (product.rows, math.prod(plan.domain.kind(name).size for name in product.attributes))
            for product in products
        ]
    measured = _BYTES_PER_CELL * max(map(max, tables)) + _BYTES_PER_NOISY_ANSWER * sum(
        rows for rows, _ in tables
    )
    bytes_of_answers = measured + _BYTES_PER_ANSWER * answers
    if in_files:
        return bytes_of_answers + _BYTES_PER_LABEL * labels
    return bytes_of_answers


def check_memory(plan: Plan, *, in_files: bool) -> None:
    """Raise for a release that would need more memory than is available."""
    require_memory(
        estimate_release_memory(plan, in_files=in_files),
        "This release",
        "Ask for fewer or smaller tables, or run it on a larger machine; nothing was spent.",
    )
