"""Messages about ledgers and series: facts for people, and why nothing is paid or drawn, or a file cannot be used.

Not trusted: it decides nothing. What is refused here would be refused again when the file is
opened, with a less helpful message.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from leastnoise._trusted.accounting import Budget, Charge, charge_text, missing, whole_budget
from leastnoise._trusted.check import InputError, LedgerError, refuse

_GLANCE = 0.2  # seconds to wait for another process where the ledger is only shown
TAKEN = "{path} exists already, and a ledger is never replaced. Open it, or change its budget with `leastnoise ledger change`."
JOURNAL = (
    "The ledger {path} was switched to the journal mode {mode!r} by another program; a copy of "
    "the file could then lack charges. "
    "Switch it back with `PRAGMA journal_mode = DELETE` in that program."
)
BEGUN = (
    "Step {number} of the release {release} was begun before, or follows one that gave nothing; "
    "it is not drawn twice. "
    "If another process is finishing this release, let it."
)
NOT_MADE = "A ledger cannot be made at {path}: {why}. Choose a folder that exists and that you may write to."
OTHER_DEFINITION = "The budget must stay of the definition {of}, in which the entries are added up; got {got!r}. Nothing was changed."
OTHER_STEP = "The only step of a series must be of its own domain and privacy. Make the plan again; nothing was spent."
NO_SQUARES = (
    "Squares of Gaussian steps are added up within (epsilon, delta), for steps that are decided "
    "on the way. "
    "Make the plan again; nothing was spent."
)
NO_ONLY_STEP = "What is drawn period by period is one step that is known beforehand. Make the plan again; nothing was spent."
OTHER_PAYMENT = "The entry of this receipt is not the payment of this plan. Resume the release with its own plan and receipt."
NOT_PAID = "Only the steps that were paid for are carried out; got a choice or a search. Declare a series within its whole budget."
ONCE = "Only the step that was paid for is carried out, and once. Declare a series without an only step."
CHANGED = (
    "The step is not what was paid for: its queries or their noise were changed. Nothing was drawn."
)
NOT_GAUSSIAN = (
    "Steps that share out mu squared have rounded Gaussian noise; got another. Nothing was drawn."
)
NOT_ALONG = "Only what was planned along an attribute is drawn period by period. Declare its only step and the attribute."
TWO_THREADS = "Another thread asks for periods of this series. Resume it, and ask in one thread. Nothing was drawn."
OTHER_PROCESS = "A series counts its steps in the process that made it; got a step in another one. Nothing was drawn."
OTHER_STEPS = "This version asks for other steps than those that were recorded. Resume it with the version that began it."
OTHER_UNIT = "A step protects {step}, its series {series}. Make the plan with the series' unit."
NO_BOUND = (
    "Where a column names the units, a series needs a bound on a unit's rows in each of the "
    "periods of {along!r} (max_per_cell), "
    'of which max_rows holds all, and late = "drop"; rows that count on arrival must each be a '
    "unit."
)
NOT_BY_PERIOD = (
    "Every measured table of a series must be of the periods of {along!r}: counts of rows or, "
    "where late rows are dropped, of units in "
    "each period, or sums without limits. Make the plan again."
)
NO_PRIVATE_FILE = (
    "The private file {file} is not there, is damaged, or is not of this series as the ledger has "
    "it. Later periods need its "
    "counts of the closed ones, which rows that changed since cannot give again. Restore it. "
    "Without it nothing later can be "
    "drawn; what was drawn and is not published yet can still be, by `leastnoise resume`."
)
SERIES_PER_PERIOD = (
    "A series is paid once and reads the rows of later periods in later {period}s, so it cannot be "
    "paid from a budget that begins anew every {period}. Nothing was spent. Release each {period} "
    "by itself, with a plan of its own; or let the budget be for all times: `leastnoise ledger "
    "change LEDGER --per ever`."
)
PERIOD_OVER = (
    "Release {number} was paid on {paid_on} from a budget that begins anew every {period}, and "
    "that {period} is over: the data may hold other people now, who would lose this release beside a "
    "whole budget of their own. No noise was drawn now. Its charge stays spent in its own {period}. "
    "Make the release again, which is paid from the present {period}; a series goes on when the "
    "budget is for all times again: `leastnoise ledger change LEDGER --per ever`."
)
STRANGE_TERMS = "Domain, Privacy, three str, Measurements or None"


def ledger_facts(ledger: Any) -> list[tuple[str, str]]:
    """Return the facts that the representation of a ledger shows; it never raises, as debuggers call it."""
    facts = [
        ("of", ledger.dataset),
        ("protects", ledger.privacy.protected),
        ("file", str(ledger.path)),
    ]
    try:
        limits = replace(ledger, timeout=_GLANCE).limits()
    except (LedgerError, InputError) as error:
        return [*facts, ("unreadable", str(error))]
    for limit in limits:
        whose, each = (
            f"share {limit.share}: " if limit.share else "",
            limit.period and f" a {limit.period}",
        )
        most, spent, rest = (
            charge_text(limit.budget, amount)
            for amount in (whole_budget(limit.budget), limit.spent, limit.left)
        )
        facts += [("budget", f"{whose}{most}{each}"), ("spent", spent), ("left", rest)]
    return facts


def above_budget(dataset: str, limit: Any, request: Charge) -> str:
    """The sentence for a release that asks for more than a limit has left."""
    rest = limit.left
    amounts = (request, rest, missing(request, rest), whole_budget(limit.budget))
    asked, there, lack, most = (charge_text(limit.budget, amount) for amount in amounts)
    each = f" a {limit.period}" if limit.period else ""
    whose = f"the share {limit.share!r} of the data set" if limit.share else "the data set"
    advice = (
        "Plan with at most what is left"
        if any((rest.epsilon, rest.rho))
        else "Make no further release of this data set"
    )
    return (
        f"The release asks for {asked}, but of {most}{each} for {whose} {dataset!r} only {there} "
        "is left; "
        f"that is {lack} too much. Nothing was spent. {advice}, or ask the data holder."
    )


def unusable(path: Path, timeout: float, name: str) -> str:
    """The sentence for an error of SQLite, by its name."""
    locked = f"The ledger {path} was locked by another process for more than {timeout:g} seconds. Try again when that process is done."
    forbidden = (
        f"The ledger {path} cannot be written. Check that you may write to it and its folder."
    )
    no_disk = f"The disk of the ledger {path} is full, or cannot be read or written. Free space, or check the disk."
    reasons = {
        "CANTOPEN": f"The ledger {path} cannot be opened. Check that the file is there, and that "
        "you may write to it and its folder.",
        "NOTADB": no_ledger(path),
        **dict.fromkeys(("BUSY", "LOCKED"), locked),
        **dict.fromkeys(("READONLY", "PERM", "AUTH"), forbidden),
        **dict.fromkeys(("FULL", "IOERR"), no_disk),
    }
    return reasons.get(
        name.removeprefix("SQLITE_").partition("_")[0], damaged(path, "its tables are unreadable")
    )


def damaged(path: Path, what: str) -> str:
    """The sentence for a file that is not as it was written."""
    return f"The ledger {path} is damaged ({what}). No release can be made from it. Restore it from a copy that has all its releases."


def no_ledger(path: Path) -> str:
    """The sentence for a file that no ledger was written to."""
    return f"{path} is no ledger, or a damaged one. Check the path; if it was a ledger, restore it from a copy that has all its releases."


def os_error_reason(error: OSError) -> str:
    """Return the reason of an error of the operating system."""
    return (error.strerror or type(error).__name__).lower()


def other_format(path: Path, version: int, schema: int) -> str:
    """The sentence for a ledger of another format."""
    return (
        f"The ledger {path} has the format {version}; this version of leastnoise reads the format "
        f"{schema}. "
        f"Use {'a newer' if version > schema else 'an earlier'} leastnoise."
    )


def no_share(budgets: Iterable[str], got: str) -> str:
    """The sentence for a share that a ledger does not have."""
    known = ", ".join(sorted(filter(None, budgets))) or "none yet"
    return f"The share must be one of the ledger's, which are: {known}; got {got!r}. Give it a budget with `leastnoise ledger share`."


def shared_out(dataset: str, budgets: Iterable[str]) -> str:
    """The sentence for a release that names no share of a budget that is shared out."""
    return (
        f"The budget of the data set {dataset!r} is shared out, and a release must name the share "
        "that pays: "
        f"{', '.join(sorted(filter(None, budgets)))}. Say --share NAME, or Ledger.open(path, "
        "share=NAME). Nothing was spent."
    )


def below_spent(budget: Budget, spent: Charge) -> str:
    """The sentence for a new budget below what is spent."""
    least, got = charge_text(budget, spent), charge_text(budget, whole_budget(budget))
    return f"The budget must be at least what is spent, which is {least}; got {got}. Nothing was changed."


def wait_for(file: Path, timeout: float) -> None:
    """Refuse what cannot be a ledger, before it is opened.

    By stat only: opening and closing the file here would drop the locks that another thread's
    connection holds on it.
    """
    try:
        if file.is_dir():
            raise LedgerError(
                f"{file} is a folder, not a ledger. Give the path of the ledger's file."
            )
        size = file.stat().st_size
        patience = time.monotonic() + min(timeout, 1.0)
        while (
            size == 0 and time.monotonic() < patience
        ):  # perhaps another process is making it just now
            time.sleep(0.02)
            size = file.stat().st_size
    except FileNotFoundError:
        raise LedgerError(
            f"There is no ledger at {file}. If there was one, restore it. Make one with "
            "`leastnoise ledger set` or Ledger.create."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"The ledger {file} cannot be read: {os_error_reason(error)}. Check its path and permissions."
        ) from None
    if size == 0:
        raise LedgerError(
            f"{file} is empty: no ledger, or what is left of one. If it was a ledger, restore it "
            "from a copy that has all its releases."
        )


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse what cannot be the path of a ledger's file."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise refuse("path", path, "the path of a ledger's file")


def checked_seconds(timeout: float) -> float:
    """Check a number of seconds to wait for another process."""
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, int | float)
        or not 0 <= timeout <= 86400
    ):
        raise refuse("timeout", timeout, "a number of seconds from 0 to 86400")
    return float(timeout)


def too_much(budget: Budget, request: Charge, available: Charge) -> str:
    """The sentence for a step that asks for more than is left."""
    return (
        f"A step asks for {charge_text(budget, request)}, but only "
        f"{charge_text(budget, available)} of this release's budget is "
        "left. Nothing was drawn. Share the budget out among the steps."
    )
