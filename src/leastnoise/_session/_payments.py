"""Checks before a payment, of data, budget, memory and time; and after it its state, which is read from the ledger and never assumed.

Every payment of this process is made under a run of its own. The run is noted before anything is
paid, so that the ledger can be asked what became of it.
"""

import glob
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._environment import check_environment
from leastnoise._error import require_memory
from leastnoise._interruption import describe_error, note_run
from leastnoise._plan import (
    CategoryPlan,
    Plan,
    guard_share,
    is_category_plan,
    with_guard,
    without_guard,
)
from leastnoise._planning import SMALL, plan_for_workload, smallest_privacy
from leastnoise._release import Options, check_formats, finishing_seconds, tables_to_write
from leastnoise._sources import has_text_rows
from leastnoise._spec import Spec, asked_about
from leastnoise._trusted import reading
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Cost, Privacy, PureCost, SeriesCost
from leastnoise._trusted.check import (
    BudgetError,
    InputError,
    InternalError,
    LeastNoiseError,
    PaidError,
)
from leastnoise._trusted.kernel import Entry, Ledger, Receipt, Series
from leastnoise._trusted.ledgers import find_ledger, read_receipt

IN_MEMORY = "(in memory)"
GUARD = "(guard)"
"""The output of a guard in the ledger: it has no directory, because all of it is in the ledger."""


def is_series_plan(text: str) -> bool:
    """Whether the text of a plan is that of a series."""
    return text.startswith('{"format":1,"strategy":"series",')


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a payment (nothing, guard, whole, resumable, absent, entered or unknown), and one or two sentences for people."""

    state: str
    words: str


def account(ledger: Path, run: str) -> Account:
    """Read the state of a payment from its ledger, and seal its entry if it was published."""
    try:
        book = Ledger.open(ledger)
        mine = next((entry for entry in book.entries() if run in {entry.run, entry.id}), None)
        if mine is None:
            return Account("nothing", "")
        if mine.kind != "release":
            return Account("entered", f"It was entered before that, as number {mine.number}.")
        with suppress(LeastNoiseError, OSError):  # what cannot be entered now, the next run enters
            entry_id, number = mine.id, mine.number
            book.reconcile(lambda entry: is_published(entry) if entry.id == entry_id else None)
            mine = book.entries()[number - 1]
        whole = mine.state == "sealed" or is_published(mine)
    except (LeastNoiseError, OSError):
        return Account(
            "unknown",
            "Whether something was paid cannot be told now; see `leastnoise ledger show "
            f"{ledger}`.",
        )
    if mine.output == GUARD:
        return Account("guard", f"Its guard was paid ({mine.charge}).")
    paid = f"The release was paid ({mine.charge})"
    if whole:
        return Account(
            "whole",
            f"{paid} and is whole{'' if mine.output == IN_MEMORY else f' in {mine.output}'}.",
        )
    if whole is None:
        return Account(
            "unknown", f"{paid}; whether it is whole in {mine.output} cannot be told now."
        )
    series = False
    with suppress(LeastNoiseError, OSError):
        series = mine.resumable and is_series_plan(book.pending(mine).plan)
    if series:
        said = f"`leastnoise ledger show {ledger}` says which periods of it are drawn and published"
        return Account("resumable", f"{paid}, and nothing of it is paid again: {said}.")
    if mine.resumable:
        return Account(
            "resumable",
            f"{paid} and can be finished without paying again: `leastnoise resume {ledger}`.",
        )
    return Account(
        "absent", f"{paid} and is absent: its noise may have been drawn, so the budget stays spent."
    )


@contextmanager
def paying(book: Ledger, room: int) -> Iterator[str]:
    """Give the run to pay under; an error inside becomes a PaidError if something was paid."""
    check_environment()  # afterwards a wrong switch would stop a release that was paid
    run = ""
    try:
        with book.running(room) as run:
            note_run(book.path.absolute(), run)
            yield run
    except Exception as error:
        payment = account(book.path, run) if run else Account("nothing", "")
        if payment.state == "nothing":
            raise
        raise PaidError(
            f"{describe_error(error)[0]} {payment.words}", payment.state, error
        ) from error
    except BaseException as error:  # an interruption
        payment = account(book.path, run) if run else Account("nothing", "")
        if payment.words:
            error.add_note(payment.words)
        raise


def reconcile_ledger(ledger: Ledger) -> tuple[Entry, ...]:
    """Seal releases that were published, and mark others absent or resumable, where the process that paid was stopped."""
    return ledger.reconcile(is_published)


def receipt_of(series: Series) -> Receipt:
    """Return the receipt of a series that was paid."""
    if series.receipt is None:
        raise InternalError("A paid series has no receipt; please report this.")
    return series.receipt


def is_resumable(entry: Entry) -> bool:
    """Tell whether an entry is a paid release that can be finished; a guard waits for its own."""
    return entry.resumable and entry.output != GUARD


def is_too_late(book: Ledger, entry: Entry) -> bool:
    """Tell whether a paid release has measured nothing, and the period of its budget is over."""
    return book.period_is_over(entry) and not book.pending(entry).steps


def warn_of_unfinished(book: Ledger) -> None:
    """Warn of every release that was paid and stopped, and can be finished."""
    for entry in book.entries():
        if is_resumable(entry) and not book.is_running(entry) and not is_too_late(book, entry):
            warnings.warn(
                f"Release {entry.number} of {entry.reserved_on} ({entry.charge}; {entry.output}) "
                "was stopped before it was published: "
                f"leastnoise.resume({str(book.path)!r}) finishes it without paying again.",
                stacklevel=6,  # of who called the public function, through its decorators
            )


def is_published(entry: Entry) -> bool | None:
    """Return whether a release is in its directory, and None if that cannot be told.

    A directory appears in one step, so a manifest with the entry's receipt means that the release
    is whole.
    """
    if entry.output in {GUARD, IN_MEMORY}:
        return False
    try:
        receipt = read_receipt(Path(entry.output))
        if receipt.get("id") != entry.id:
            return False
        handle = os.open(Path(entry.output).parent, os.O_RDONLY)
        try:
            os.fsync(handle)  # what cannot be made durable is not known to be published
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return True


def check_before(ledger: Path | None, what: Spec, folder: Path) -> None:
    """Refuse, before anything is planned, data that cannot be read, files that cannot be written, and a budget that cannot be paid."""
    check_writable(what)
    data = None if what.source is None else what.data(what.source)
    unit = smallest_privacy(what.privacy)
    reading.check_source(data, what.domain, *asked_about(what), unit.unit_column, unit.unit_reading)
    if ledger is None:
        return
    book = find_ledger(ledger, data, what.dataset, [folder], share=what.share)
    if book is not None and not any(is_resumable(entry) for entry in book.entries()):
        asked = smallest_privacy(what.unpaid_privacy)
        budget = asked.budget
        least: Cost = SeriesCost(budget)
        if isinstance(
            budget, ApproxDP
        ):  # Laplace noise leaves its delta; only a plan tells how much of a rho is spent
            least = PureCost(
                budget.epsilon
                if isinstance(book.privacy.budget, ApproxDP)
                else min(budget.epsilon, SMALL)
            )
        try:
            book.check(least, asked)
        except BudgetError:
            if left_by_guards(book, asked) is None:
                raise


def check_readable(plan: Plan | CategoryPlan, source: Any) -> None:
    """Refuse, before anything is drawn, data that a plan cannot be carried out with."""
    attributes, measures = (
        ((plan.attribute,), ()) if isinstance(plan, CategoryPlan) else plan.used()
    )
    unit = plan.privacy
    reading.check_source(
        source, plan.domain, attributes, measures, unit.unit_column, unit.unit_reading
    )


def check_writable(what: Spec) -> None:
    """Refuse a wrong environment, and formats that cannot be written.

    The sizes of tables are known once all categories are found.
    """
    check_environment()
    known = all(search.found is not None for search in what.searches)
    check_formats(what.options.formats, tables_to_write(what.workload.products) if known else ())


def check_affordable(
    book: Ledger, plan: Plan | CategoryPlan, share: Fraction | None = None
) -> None:
    """Refuse, before the data are read, a plan and a guard of this share of the whole that the ledger would refuse to pay."""
    whole = with_guard(plan.privacy, share)
    cost: Cost = (
        plan.cost() if isinstance(plan, Plan) and share is None else SeriesCost(whole.budget)
    )
    book.check(cost, whole)


def fitted_plan(book: Ledger, plan: Plan, share: Fraction | None) -> Plan:
    """Return the plan, with less budget where guards that stopped earlier releases cost the rest.

    Args:
        book: the ledger that pays.
        plan: for a release.
        share: of the whole budget, for a guard; None without one.

    Raises:
        BudgetError: the ledger would refuse to pay the plan and its guard, for another reason than
            stopped guards, or the plan's measurements cannot be rescaled.
    """
    try:
        check_affordable(book, plan, share)
    except BudgetError:
        whole = left_by_guards(book, with_guard(plan.privacy, share))
        if whole is None or plan.promise is None:
            raise
        fitted = plan_for_workload(plan.workload, plan, without_guard(whole, share))
        check_affordable(book, fitted, share)
        return fitted
    return plan


def plan_budget_left(book: Ledger, plan: Plan, options: Options) -> Fraction:
    """Return the part of a plan's budget that stopped guards have left in a ledger; 1 without any."""
    share = guard_share(options.guard)
    try:
        check_affordable(book, plan, share)
    except BudgetError:
        whole = with_guard(plan.privacy, share)
        left = left_by_guards(book, whole)
        if left is not None:
            size = "rho" if isinstance(whole.budget, ZCDP) else "epsilon"
            return Fraction(getattr(left.budget, size)) / getattr(whole.budget, size)
    return Fraction(1)


def left_by_guards(book: Ledger, privacy: Privacy) -> Privacy | None:
    """Return what a ledger has left of a budget, if stopped guards cost what is missing; else None."""
    budget, left = privacy.budget, book.left()
    size = "rho" if isinstance(budget, ZCDP) else "epsilon"
    asked, fitting = getattr(budget, size), min(getattr(budget, size), getattr(left, size))
    stopped = sum(getattr(entry.charge, size) for entry in _stopped_guards(book))
    if fitting <= 0 or asked - fitting > stopped:
        return None
    return privacy.within(replace(budget, **{size: fitting}))


def _stopped_guards(book: Ledger) -> list[Entry]:
    """Return the guards that no release of the same share of the ledger follows."""
    paid = [
        entry for entry in book.entries() if entry.kind == "release" and entry.share == book.share
    ]
    following = [*(entry.output for entry in paid), GUARD][1:]
    return [
        entry
        for entry, after in zip(paid, following, strict=True)
        if entry.output == GUARD == after
    ]


def paid_before(book: Ledger, digest: str, output: str) -> Entry | None:
    """Return the entry of this plan and output that was paid and stopped before it was published; None if there is none."""
    for entry in book.entries():
        if (
            entry.resumable
            and entry.output == output
            and entry.plan_digest == digest
            and not book.is_running(entry)
            and not is_too_late(book, entry)
        ):
            return entry
    return None


def check_searched(searches: Sequence[Mapping[str, Any]], dataset: str) -> None:
    """Refuse categories that were found in another data set."""
    for search in searches:
        if search["dataset"] != dataset:
            raise InputError(
                f"The categories of {search['attribute']!r} were found in the data set "
                f"{search['dataset']!r}; "
                f"got a release of {dataset!r}. Give "
                "them as a public list, with categories = { file = ... } and without the search, "
                "or say which data set this is."
            )


def given_or_kept(source: Any, location: Any, joined: Mapping[str, Any]) -> Any:
    """Return the data that are given now, or else the place where they were; refuse another join than the one that was paid for."""
    data = reading.source_from_location(location, source)
    if data is not None:
        check_join(data, joined)
    return data


def check_join(source: Any, paid_for: Mapping[str, Any]) -> None:
    """Refuse data with another second table than that of `reading.join_facts` that a release, or a series, was paid for."""
    said, kept = reading.join_facts(source), dict(paid_for)
    if said and kept and "" in {said["table"], kept["table"]}:  # a frame has no name
        kept["table"] = said["table"]
    if said != kept:
        raise InputError(
            "A release is finished with what it was paid for: the same second table, joined on "
            "the same columns, and public or not as it "
            "was then. Give source=leastnoise.Joined(...) as for the release, or no second table "
            "if there was none."
        )


# Bytes, measured on the largest tables of each kind (identities, prefixes and all ranges of 10^6
# answers) and rounded up.
_A_CELL = 64  # of counts, noise and noisy answers, for a cell of the largest table that is measured
_KEPT = 16  # for every noisy answer, until the release is done
_AN_ANSWER = 100  # for an answer of the largest table
_A_LABEL = 900  # for a label of a table that is written: its texts, in both formats
_BLOCK = 2**20  # progress is told after so many bytes of a CSV file
_BYTES_A_SECOND = 2e7


def csv_blocks(source: Any) -> int:
    """Return how often progress is told while CSV files are read; 0 for another source, where that is not known."""
    return sum(math.ceil(size / _BLOCK) for size in csv_sizes(source))


def csv_sizes(source: Any) -> list[int]:
    """Return the sizes in bytes of the CSV files of a source, or of the first of two joined tables; [] for another source."""
    source_location = reading.source_location(source)
    source_location = (
        source_location["joined"][0]
        if isinstance(source_location, dict) and "joined" in source_location
        else source_location
    )
    if source_location is None:
        return []
    path = Path(
        str(source_location["path"] if isinstance(source_location, dict) else source_location)
    )
    files = (
        path.rglob("*")
        if path.is_dir()
        else [path]
        if path.is_file()
        else map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
    )  # noqa: PTH207, RUF100
    return [
        file.stat().st_size
        for file in files
        if has_text_rows(file)
        # the length of a compressed text is not known beforehand
        and file.suffix.lower() != ".gz"
        and file.is_file()
    ]


def reading_seconds(source: Any) -> float:
    """Return about how many CPU seconds reading CSV files takes; 0 for another source, where that is not known."""
    return sum(csv_sizes(source)) / _BYTES_A_SECOND


def resuming_seconds(book: Ledger, number: int) -> float:
    """Return about how many CPU seconds it takes to finish a release that was measured; 0 where that is not known."""
    try:
        plans = [
            book.pending(entry).plan
            for entry in book.entries()
            if entry.number == number and entry.resumable
        ]
        return sum(
            (
                finishing_seconds(Plan.from_json(plan), Options())
                for plan in plans
                if not is_category_plan(plan)
            ),
            0.0,
        )
    except LeastNoiseError:  # what is wrong is said by whoever finishes it
        return 0.0


def release_memory(plan: Plan, *, in_files: bool) -> int:
    """Return about how many bytes a release takes beside the program itself and its rows."""
    asked, measurements = plan.workload.products, plan.measurements
    each = tables_to_write(asked)
    answers, labels = (
        max(product.rows for product in each),
        max(sum(operator.rows for operator in product.operators) for product in each),
    )
    if measurements is None:
        tables = [
            (product.rows, math.prod(plan.domain.kind(name).size for name in product.attributes))
            for product in asked
        ]
    else:
        tables = [
            (block.rows, math.prod(factor.operator.size for factor in block.factors))
            for block in measurements.blocks
        ]
    measured = _A_CELL * max(map(max, tables)) + _KEPT * sum(rows for rows, _ in tables)
    return measured + _AN_ANSWER * answers + (_A_LABEL * labels if in_files else 0)


def check_memory(plan: Plan, *, in_files: bool) -> None:
    """Refuse a release that would need more memory than there is."""
    require_memory(
        release_memory(plan, in_files=in_files),
        "This release",
        "Ask for fewer or smaller tables, or run it on a larger machine; nothing was spent.",
    )
