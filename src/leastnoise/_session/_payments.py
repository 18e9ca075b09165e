"""Check data, budget, memory and time before a payment; read payment states.

The state of a payment is read from the ledger and never assumed. Each payment of this process
belongs to a separate run. The run is recorded before anything is paid, so that the state of the
payment can later be read from the ledger.
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
    checked_guard_share,
    guard_budget,
    is_search_plan,
    with_guard,
    without_guard,
)
from leastnoise._planning import SMALL, plan_for_workload, smallest_privacy, stated_privacy
from leastnoise._publication import finishing_seconds, remove_dead_drafts, sync_to_disk
from leastnoise._release import (
    NO_RECEIPT,
    Options,
    ReceiptFacts,
    SearchFacts,
    SecondTable,
    check_formats,
    read_record,
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
    parameters_by_name,
    sum_charges,
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
"""The recorded output of a guard, which writes no directory."""


def is_series_plan(plan_text: str) -> bool:
    """Return whether the JSON text of a plan describes a series of periods."""
    return plan_text.startswith('{"format":1,"strategy":"series",')


@dataclass(frozen=True, slots=True)
class PaymentState:
    """The state of a payment, and sentences that describe it.

    Attributes:
        state: one of "nothing", "guard", "whole", "resumable", "absent", "entered" and "unknown".
        sentences: one or two sentences for messages; an empty text if nothing was paid.
    """

    state: str
    sentences: str


def read_payment_state(ledger_path: Path, run: str) -> PaymentState:
    """Read the state of a payment from its ledger; seal a published entry."""
    try:
        ledger = Ledger.open(ledger_path)
        entry = next((entry for entry in ledger.entries() if run in {entry.run, entry.id}), None)
        if entry is None:
            return PaymentState("nothing", "")
        if entry.kind != "release":
            return PaymentState("entered", f"It was entered before that, as number {entry.number}.")
        with suppress(LeastNoiseError, OSError):  # the next run records what cannot be recorded now
            entry_id = entry.id
            number = entry.number
            ledger.reconcile(lambda entry: is_published(entry) if entry.id == entry_id else None)
            entry = ledger.entries()[number - 1]
        is_whole = entry.state == "sealed" or is_published(entry)
    except (LeastNoiseError, OSError):
        return PaymentState(
            "unknown",
            "It is unknown now whether something was paid; see `leastnoise ledger show "
            f"{ledger_path}`.",
        )
    if entry.output == GUARD:
        return PaymentState("guard", f"Its guard was paid ({entry.charge}).")
    return _paid_state(ledger, ledger_path, entry, is_whole=is_whole)


def _paid_state(
    ledger: Ledger,
    ledger_path: Path,
    entry: Entry,
    *,
    is_whole: bool | None,
) -> PaymentState:
    """Return the state of a paid release; ``is_whole`` is None if unknown."""
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
        advice = (
            f"`leastnoise ledger show {ledger_path}` says which of its periods are drawn and "
            "published"
        )
        return PaymentState("resumable", f"{paid_text}, and nothing of it is paid again: {advice}.")
    if entry.resumable:
        return PaymentState(
            "resumable",
            f"{paid_text} and can be finished without paying again: `leastnoise resume "
            f"{ledger_path}`.",
        )
    return PaymentState(
        "absent",
        f"{paid_text} and is absent: its noise may have been drawn, so the budget stays spent.",
    )


def _payment_of_run(ledger: Ledger, run: str) -> PaymentState:
    """Return the state of the payment of a run; "nothing" if no run has begun."""
    if not run:
        return PaymentState("nothing", "")
    return read_payment_state(ledger.path, run)


@contextmanager
def payment_run(ledger: Ledger, bytes_needed: int, paid_before: str = "") -> Iterator[str]:
    """Yield the identifier of a payment's run; raise later errors as PaidError.

    ``bytes_needed`` is the disk space that the payment needs in the ledger. ``paid_before`` is a
    sentence about an earlier payment for the same release, such as the payment for its guard. If
    this sentence is not empty, an error before the payment of this run is raised as a PaidError
    too.
    """
    # After the payment, an invalid environment variable would stop a paid release.
    check_environment()
    run = ""
    try:
        with ledger.running(bytes_needed) as run:
            note_run(ledger.path.absolute(), run)
            yield run
    except Exception as error:
        payment = _payment_of_run(ledger, run)
        if payment.state == "nothing":
            if not paid_before:
                raise
            payment = PaymentState("guard", paid_before)
        raise PaidError(
            f"{describe_error(error)[0]} {payment.sentences}", payment.state, error
        ) from error
    except BaseException as error:  # an interruption
        payment = _payment_of_run(ledger, run)
        if payment.sentences or paid_before:
            error.add_note(payment.sentences or paid_before)
        raise


def reconcile_ledger(ledger: Ledger) -> tuple[Entry, ...]:
    """Record the states of stopped releases; return their ledger entries.

    The function seals published releases, and marks the other releases as absent or resumable.
    It also removes temporary files near the ledger and its releases, if the processes that wrote
    them were killed.
    """
    settled = ledger.reconcile(is_published)
    remove_drafts_of_dead_processes(ledger)
    return settled


def remove_drafts_of_dead_processes(ledger: Ledger) -> None:
    """Remove temporary files of dead processes near a ledger and its releases."""
    folders = {Path(os.path.realpath(ledger.path)).parent, ledger.path.absolute().parent}
    for entry in ledger.entries():
        output = Path(entry.output)
        if output.is_absolute():
            folders.add(next(folder for folder in output.parents if folder.exists()))
    remove_dead_drafts(folders)


def require_receipt(series: Series) -> Receipt:
    """Return the receipt of a paid series; raise InternalError if it has none."""
    if series.receipt is None:
        raise InternalError("A paid series has no receipt; please report this.")
    return series.receipt


def check_note(note: str) -> None:
    """Raise InputError unless a note is one line of text."""
    if not isinstance(note, str) or len(note.splitlines()) > 1 or len(note) > _MOST_NOTE:
        if isinstance(note, str):
            received = note
        else:
            received = type(note).__name__
        raise refuse("note", received, f"a text of one line and at most {_MOST_NOTE} characters")


def with_note(description: str, note: str) -> str:
    """Append the user's note to the description of a ledger entry."""
    if note:
        return f"{description}; {note}"
    return description


def is_resumable(entry: Entry) -> bool:
    """Return whether an entry is a paid release that can be finished.

    The entry of a guard does not count, because a guard waits for its release.
    """
    return entry.resumable and entry.output != GUARD


def is_expired(ledger: Ledger, entry: Entry) -> bool:
    """Return whether a release's budget period ended before its first step."""
    return ledger.period_is_over(entry) and not ledger.pending(entry).steps


def warn_of_unfinished(ledger: Ledger) -> None:
    """Warn about each stopped release that was paid and can be finished."""
    for entry in ledger.entries():
        if is_resumable(entry) and not ledger.is_running(entry) and not is_expired(ledger, entry):
            warnings.warn(
                f"Release {entry.number} of {entry.reserved_on} ({entry.charge}; {entry.output}) "
                f"was stopped before it was published: leastnoise.resume({str(ledger.path)!r}) "
                "finishes it without paying again.",
                stacklevel=6,  # of the caller of the public function, through its decorators
            )


def is_published(entry: Entry) -> bool | None:
    """Return whether an entry's release is published whole; None if unknown.

    The result is None if the directory cannot be read.

    A directory is published in one step, so a manifest with the entry's receipt means that the
    release is complete.
    """
    if entry.output in {GUARD, IN_MEMORY}:
        return False
    try:
        receipt = read_receipt(Path(entry.output))
        if receipt.get("id") != entry.id:
            return False
        # A directory that cannot be synced to the disk is not known to be published.
        sync_to_disk(Path(entry.output).parent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return True


def check_before_planning(ledger_path: Path | None, spec: Spec, folder: Path) -> None:
    """Raise an error if the data, output files or budget cannot be used.

    The check needs no plan. An unusable spec is therefore refused before planning, which may take
    long.
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
            _check_smallest_charge(ledger, request)
        except BudgetError:
            if privacy_after_guards(ledger, request) is None:
                raise


def _check_smallest_charge(ledger: Ledger, privacy: Privacy) -> None:
    """Raise BudgetError if a ledger would refuse every plan of a budget.

    The kind of noise, and the part of a rho that is spent, are known only after planning. The
    function therefore checks the smallest possible charge.
    """
    budget = privacy.budget
    if not isinstance(budget, ApproxDP):
        ledger.check((SeriesCost(budget), privacy))
        return
    if not isinstance(ledger.privacy.budget, ApproxDP):
        ledger.check((PureCost(min(budget.epsilon, SMALL)), privacy))
        return
    try:
        ledger.check((PureCost(budget.epsilon), privacy))
    except BudgetError:
        gaussian_cost = GaussianCost(gaussian_mu_squared(budget.epsilon, budget.delta))
        ledger.check((gaussian_cost, privacy))


def check_readable(plan: Plan | SearchPlan, source: Any) -> None:
    """Raise InputError if the data lack a column that a plan needs."""
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
    """Raise InputError if an output format or environment variable is unusable.

    The sizes of tables are checked only if all categories are known.
    """
    check_environment()
    has_all_categories = all(search.result is not None for search in spec.all_searches)
    check_formats(
        spec.options.formats, tables_to_write(spec.workload.products) if has_all_categories else ()
    )


def check_affordable(
    ledger: Ledger, plan: Plan | SearchPlan, guard_share: Fraction | None = None
) -> None:
    """Raise BudgetError if a ledger would refuse to pay for a plan and its guard.

    ``guard_share`` is the guard's share of the whole budget; None without a guard. No data are
    read.
    """
    ledger.check(*_list_payments(plan, guard_share))


def check_affordable_at_first(
    total_privacy: Privacy, dataset: str, plan: Plan | SearchPlan, guard_share: Fraction | None
) -> None:
    """Raise BudgetError if a new ledger could not pay for a plan and its guard."""
    Ledger.check_new(dataset, total_privacy, *_list_payments(plan, guard_share))


def _list_payments(
    plan: Plan | SearchPlan, guard_share: Fraction | None
) -> list[tuple[Cost, Privacy]]:
    """Return the cost and privacy of a release's payments: guard, then plan."""
    if isinstance(plan, Plan):
        cost = plan.cost()
    else:
        cost = SeriesCost(plan.privacy.budget)
    payments = [(cost, plan.privacy)]
    if guard_share is not None:
        guard = guard_budget(plan.privacy.budget, guard_share)
        payments.insert(0, (SeriesCost(guard), plan.privacy.within(guard)))
    return payments


def new_ledger_privacy(spec: Spec, plan: Plan, guard_share: Fraction | None) -> Privacy:
    """Return the budget, unit and neighbours for a new ledger of a spec's data.

    The budget is the budget of the spec, which covers guard and plan. If the spec states no budget,
    the budget is the smallest one that covers both.
    """
    return (
        spec.total_privacy or stated_privacy(spec.privacy) or with_guard(plan.privacy, guard_share)
    )


def open_or_create_ledger_of(
    source: Any,
    path: Path,
    total_privacy: Privacy,
    dataset: str | None = None,
    folders: Sequence[Path] = (),
) -> Ledger:
    """Open the ledger of a data set, or create it with ``total_privacy``.

    Args:
        source: the data; only their name and their location are used.
        path: the file of the ledger.
        total_privacy: the total budget, for a ledger that is created now.
        dataset: the name of the data in the ledger; None for the name of their file or table.
        folders: further folders to search for releases that the ledger paid.

    Raises:
        InputError: the ledger belongs to other data.
        LedgerError: the ledger cannot be used; it is older than a release that it paid for; or it
            would be a second ledger of the data.
    """
    ledger = find_ledger(path, source, dataset, list(folders))
    if ledger is not None:
        return ledger
    name = dataset or reading.dataset_name(source) or "data"
    return open_or_create_ledger(path, name, total_privacy)


def fit_plan_to_ledger(ledger: Ledger, plan: Plan, guard_share: Fraction | None) -> Plan:
    """Rescale a plan if guards spent a part of the budget that it needs.

    If the ledger can pay for the plan, the plan is returned unchanged.

    Args:
        ledger: the ledger that pays.
        plan: the plan of a release.
        guard_share: the guard's share of the whole budget; None without a guard.

    Raises:
        BudgetError: the ledger would refuse to pay for the plan and its guard, and the reason is
            not the cost of stopped guards; or the plan's measurements cannot be rescaled.
    """
    try:
        check_affordable(ledger, plan, guard_share)
    except BudgetError:
        remaining = privacy_after_guards(ledger, with_guard(plan.privacy, guard_share))
        if remaining is None or plan.data_independent_error is None:
            raise
        fitted = plan_for_workload(plan.workload, plan, without_guard(remaining, guard_share))
        check_affordable(ledger, fitted, guard_share)
        return fitted
    return plan


def affordable_share(ledger: Ledger, plan: Plan, options: Options) -> Fraction:
    """Return the fraction of a plan's budget that the ledger can still pay.

    The fraction is below 1 only if guards of stopped releases spent the rest.
    """
    share = checked_guard_share(options.guard)
    try:
        check_affordable(ledger, plan, share)
    except BudgetError:
        requested = with_guard(plan.privacy, share)
        remaining = privacy_after_guards(ledger, requested)
        if remaining is not None:
            size = _first_parameter(requested.budget)
            return Fraction(getattr(remaining.budget, size)) / getattr(requested.budget, size)
    return Fraction(1)


def privacy_after_guards(ledger: Ledger, privacy: Privacy) -> Privacy | None:
    """Return a `Privacy` with the budget that stopped guards have left, or None.

    The result has the remaining budget or, if this is smaller, the budget of ``privacy``. The
    result is None in two cases: the ledger has no budget left, or guards of stopped releases cost
    less than the missing amount.
    """
    budget = privacy.budget
    remaining = ledger.left()
    guards = sum_charges(entry.charge for entry in _stopped_guards(ledger))
    if isinstance(budget, ApproxDP) and isinstance(ledger.privacy.budget, ApproxDP):
        return _approx_dp_privacy_after_guards(privacy, budget, remaining, guards)
    size = _first_parameter(budget)
    requested = getattr(budget, size)
    affordable = min(requested, getattr(remaining, size))
    if affordable <= 0 or requested - affordable > getattr(guards, size):
        return None
    return privacy.within(replace(budget, **{size: affordable}))


def _approx_dp_privacy_after_guards(
    privacy: Privacy, budget: ApproxDP, remaining: Charge, guards: Charge
) -> Privacy | None:
    """Return the result of `privacy_after_guards` for ApproxDP budgets, or None.

    A plan with pure or with Gaussian noise can be paid with the resulting budget.
    """
    requested = gaussian_mu_squared(budget.epsilon, budget.delta)
    mu_squared = min(requested, remaining.mu_squared)
    missing_epsilon = budget.epsilon - min(budget.epsilon, remaining.epsilon)
    is_by_guards = missing_epsilon <= guards.epsilon or requested - mu_squared <= guards.mu_squared
    if mu_squared <= 0 or remaining.epsilon <= 0 or not is_by_guards:
        return None
    gaussian = largest_accepted(
        lambda epsilon: gaussian_mu_squared(epsilon, budget.delta) <= mu_squared,
        leading_bits=24,
        start=budget.epsilon,
    )
    return privacy.within(ApproxDP(min(budget.epsilon, remaining.epsilon, gaussian), budget.delta))


def _first_parameter(budget: Budget) -> str:
    """Return the name of a budget's first parameter, such as "epsilon"."""
    return next(iter(parameters_by_name(budget)))


def _stopped_guards(ledger: Ledger) -> list[Entry]:
    """Return the guards after which no release of the same share was paid."""
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


def find_stopped_entry(ledger: Ledger, plan_digest: str, output: str) -> Entry | None:
    """Return the entry of a plan's stopped release to a directory, or None."""
    for entry in ledger.entries():
        if (
            entry.resumable
            and entry.output == output
            and entry.plan_digest == plan_digest
            and not ledger.is_running(entry)
            and not is_expired(ledger, entry)
        ):
            return entry
    return None


def check_search_datasets(searches: Sequence[SearchFacts], dataset: str) -> None:
    """Raise InputError if searches found categories in another data set."""
    for search in searches:
        payment = search.receipt.payment
        if payment is not None and payment.dataset != dataset:
            raise InputError(
                f"The categories of {search.attribute!r} were found in the data set "
                f"{payment.dataset!r}; got a release of {dataset!r}. Give the categories as a "
                "public list, with categories = { file = ... } and without the search, or state "
                "the name of this data set."
            )


def locate_data(source: Any, location: Any, receipt: ReceiptFacts) -> Any:
    """Return the data at ``source``, or at the recorded location if it is None.

    Raise InputError if the joined tables of the data are not those for which the release was paid.
    """
    data = reading.source_from_location(location, source)
    if data is not None:
        check_joined_tables(data, receipt)
    return data


def with_joined_tables(receipt: ReceiptFacts, source: Any) -> ReceiptFacts:
    """Return a copy of a receipt with the facts about a source's joined tables."""
    tables = [read_record(SecondTable, facts) for facts in reading.join_facts(source)]
    if not tables:
        return replace(receipt, joined=None, further_joined=())
    return replace(receipt, joined=tables[0], further_joined=tuple(tables[1:]))


def check_joined_tables(source: Any, receipt: ReceiptFacts) -> None:
    """Raise InputError unless data have the joined tables of a receipt."""
    current = with_joined_tables(NO_RECEIPT, source).joined_tables
    recorded = receipt.joined_tables
    if len(current) != len(recorded) or not all(map(_may_be_same_table, current, recorded)):
        raise InputError(
            "A release must be finished with the source that it was paid for: the same second "
            "table, joined on the same columns, with the same `public` setting. Give "
            "source=leastnoise.Joined(...) as for the release, or no second table if there "
            "was none."
        )


def _may_be_same_table(current: SecondTable, recorded: SecondTable) -> bool:
    """Return whether a joined table may be the recorded one.

    The names are compared only if both tables have a name; data frames have none.
    """
    if "" in {current.table, recorded.table}:
        recorded = replace(recorded, table=current.table)
    return current == recorded


# Memory in bytes, measured on the largest tables of each kind (identities, prefixes and all ranges
# of 10^6 answers) and rounded up.
_BYTES_PER_CELL = 64  # counts, noise and noisy answers, for each cell of the largest measured table
_BYTES_PER_NOISY_ANSWER = 16  # for each noisy answer, as long as the release runs
_BYTES_PER_ANSWER = 100  # for each answer of the largest table
_BYTES_PER_LABEL = 900  # for each label of a written table, as texts in both formats
_BYTES_PER_REPORT = 2**20  # bytes of a CSV file between two reports of progress
_BYTES_PER_SECOND = 2e7


def count_csv_blocks(source: Any) -> int:
    """Return the number of CSV blocks to read, for progress lines; 0 if unknown."""
    return sum(math.ceil(size / _BYTES_PER_REPORT) for size in list_csv_sizes(source))


def list_csv_sizes(source: Any) -> list[int]:
    """Return the sizes in bytes of the CSV files of a source's first table.

    For joined tables, these are the files of the first table. For other sources, the list is empty.
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
        # The length of a compressed text is not known beforehand.
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
    """Raise an error if a release would need more memory than is available."""
    require_memory(
        estimate_release_memory(plan, in_files=in_files),
        "This release",
        "Request fewer or smaller tables, or use a larger machine. Nothing was spent.",
    )
