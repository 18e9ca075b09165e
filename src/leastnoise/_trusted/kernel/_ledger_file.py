"""Read and write the ledger's file, and compute the limits on charges.

The file is one SQLite database, read strictly and written by one process at a time.

PROOFS-ledger.md has the argument. SQLite keeps a rollback journal and not a write-ahead log.
Between transactions, the ledger therefore consists of one file, and a copy of this file never lacks
the latest charges. ``synchronous = EXTRA`` also flushes the folder after the journal is removed.
Without this flush, a power failure just after a commit could undo the commit.

No time of day is written, because the time between payment and publication would reveal how many
rows were counted.
"""

import hashlib
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from leastnoise._trusted.accounting import (
    ApproxDP,
    Budget,
    Charge,
    Cost,
    Privacy,
    budget_from_json,
    charge_from_json,
    charge_of_budget,
    charge_shortfall,
    charge_text,
    cost_from_json,
    has_late_delta,
    is_possible_charge,
    is_within_budget,
    left_of_budget,
    left_text,
    limit_text,
    privacy_from_json,
    spent_text,
    sum_charges,
)
from leastnoise._trusted.check import BudgetError, InputError, LedgerError, refuse

State = Literal["reserved", "sealed", "absent"]
Read = TypeVar("Read", Privacy, Budget, Charge, Cost)
Kind = Literal["release", "spent", "budget"]
# The name of a period is the part of the date that all its days have in common.
PERIODS = {"": "", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
OF_RELEASE = ("release", "", "")  # kind, share and period of a release that names no share

APPLICATION = 0x4C4E4C47  # "LNLG", in the header of the file
SCHEMA = 3  # of the tables in the file; another one is refused
TABLES = (
    """CREATE TABLE dataset (one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL, privacy TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL)""",
    # A separate table, so that neither table can be set back without the other.
    (
        "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, "
        "digest TEXT NOT NULL)"
    ),
    (
        "CREATE TABLE entry (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,\n"
        "    state TEXT NOT NULL CHECK (state IN ('reserved', 'sealed', 'absent')), "
        "charge TEXT NOT NULL, cost TEXT NOT NULL, declared TEXT NOT NULL,\n"
        "    plan_digest TEXT NOT NULL, output TEXT NOT NULL, description TEXT NOT NULL, "
        "reserved_on TEXT NOT NULL, digest TEXT NOT NULL,\n"
        "    run TEXT NOT NULL, kind TEXT NOT NULL, share TEXT NOT NULL, period TEXT NOT NULL)"
    ),
    # Releases that are paid for and not published: their plans, the steps that were begun, and the
    # outcomes of these steps.
    (
        "CREATE TABLE pending (id TEXT PRIMARY KEY, plan TEXT NOT NULL, options TEXT NOT NULL, "
        "digest TEXT NOT NULL)"
    ),
    (
        "CREATE TABLE step (id TEXT NOT NULL, number INTEGER NOT NULL, request TEXT NOT NULL, "
        "digest TEXT, PRIMARY KEY (id, number))"
    ),
    (
        "CREATE TABLE outcome (id TEXT NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL, "
        "text TEXT NOT NULL,\n"
        "    PRIMARY KEY (id, number, part))"
    ),
)
COLUMNS = (
    "number, id, charge, cost, declared, plan_digest, output, description, reserved_on, digest, "
    "state, run, kind, share, period"
)
SELECT = (
    f"SELECT {COLUMNS}, EXISTS "  # noqa: S608 - a constant
    "(SELECT 1 FROM pending WHERE pending.id = entry.id)\n"
    "    AND NOT EXISTS (SELECT 1 FROM step WHERE step.id = entry.id AND step.digest IS NULL) "
    "AS resumable FROM entry ORDER BY number"
)
LONGEST_TEXT = 10_000  # characters of a text in an entry, so that the file stays small
_LATE_DELTA = (
    "An amount with its own delta was entered after other charges. So no budget is proved to cover "
    "this ledger, and nothing more can be paid from it. Pay from a new ledger; its budget adds to "
    "all that was spent here."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the ledger: a release, or a change by the data holder.

    Attributes:
        number: 1, 2, 3 ... in the order in which they were entered.
        id: the random identifier of the entry.
        state: "reserved" (paid, and not known to be published), "sealed" (paid and completely
            published) or "absent" (paid and not published).
        charge: the charged amount, in the definition of the data set's budget.
        cost: the cost that the kernel computed from the integers of the plan.
        declared: the budget that the plan declared, or that the data holder set.
        plan_digest: the SHA-256 of the plan's text.
        output: the directory of the release.
        description: a text for readers of the ledger.
        reserved_on: the day of payment, UTC.
        digest: a digest of this entry and all entries before it.
        run: identifier of the process that carries out the release now; empty if no process does.
        resumable: whether an unpublished release can be finished without a second payment. It can
            be if every step that was begun has an outcome.
        kind: "release"; "spent" for an amount that was spent before or elsewhere; or "budget" for a
            budget that is in force from this entry on.
        share: the share that paid, or the share whose budget was set; "" if there is none.
        period: for a budget, "day", "week", "month" or "year" if it is renewed with each such
            period; "" if it is for all times.

    >>> Entry.__slots__[:3]
    ('number', 'id', 'state')
    """

    number: int
    id: str
    state: State
    charge: Charge
    cost: Cost
    declared: Budget
    plan_digest: str
    output: str
    description: str
    reserved_on: date
    digest: str
    run: str
    resumable: bool
    kind: Kind
    share: str
    period: str


@dataclass(frozen=True, slots=True)
class LedgerContent:
    """The content of a ledger's file at one moment.

    Attributes:
        dataset: the name of the data set.
        privacy: the first budget, the unit and the neighbours.
        id: identification of the ledger.
        head: the digest of the last entry, or of the data set's row if there are no entries.
        entries: all entries, oldest first.
    """

    dataset: str
    privacy: Privacy
    id: str
    head: str
    entries: tuple[Entry, ...]


def append_entry(
    connection: sqlite3.Connection,
    values: Sequence[object],
    previous_digest: str,
    state: State,
    run: str = "",
    further_values: Sequence[object] = OF_RELEASE,
) -> str:
    """Append an entry to the chain of digests, and return its digest.

    The digest covers the entry and all entries before it.

    Args:
        connection: a connection within the transaction of the only writer.
        values: the first nine values of the entry, in the order of ``COLUMNS``.
        previous_digest: the digest of the entry before it.
        state: the state of the entry.
        run: identification of the process that makes the release.
        further_values: the kind, the share and the period of the entry.
    """
    digest = _chain_digest(previous_digest, values, further_values)
    stored_values = (*values, digest, state, run, *further_values)
    places = ", ".join("?" * len(stored_values))
    query = f"INSERT INTO entry ({COLUMNS}) VALUES ({places})"  # noqa: S608 - names of our own
    connection.execute(query, stored_values)
    connection.execute("UPDATE head SET number = ?, digest = ?", (values[0], digest))
    return digest


def _chain_digest(
    previous_digest: str, values: Sequence[object], further_values: Sequence[object]
) -> str:
    """Hash an entry together with the digest of the entry before it."""
    # Lists of different lengths: no entry of one form has the text of one of the other.
    return hash_row(
        (previous_digest, *values, *(further_values if tuple(further_values) != OF_RELEASE else ()))
    )


def dump(value: Charge | Cost | Budget | Privacy) -> str:
    """Return a value as the JSON text that the ledger file stores."""
    return json.dumps(value.to_json())


def _read(text: object, reader: Callable[[object], Read]) -> Read:
    """Parse a JSON text that `dump` wrote, and return its value.

    The JSON reader is not trusted. The value that it returns must consist of instances of the
    package's classes, and `dump` must return the same text for this value.
    """
    value = reader(json.loads(cast(str, text)))
    if (
        type(value) not in (Privacy, *get_args(Budget), Charge, *get_args(Cost))
        or dump(value) != text
    ):
        raise ValueError
    return value


def hash_row(row: Sequence[object]) -> str:
    """Return the hexadecimal SHA-256 of a row's values that never change.

    The digest detects a flipped bit on the disk; it does not prevent forgery.
    """
    return hashlib.sha256(json.dumps(list(row)).encode()).hexdigest()


@contextmanager
def open_connection(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Connect to an existing ledger file for one operation in a ``with`` block.

    Every error of SQLite is raised as a `LedgerError` whose message is one sentence.
    """
    try:
        connection = sqlite3.connect(
            path.absolute().as_uri() + "?mode=rw", uri=True, timeout=timeout, isolation_level=None
        )
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            # On systems where a plain flush stops at the disk's own cache.
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        finally:
            connection.close()
    except UnicodeDecodeError:  # from SQLite's own message about a damaged schema
        raise LedgerError(damaged_message(path, "its tables are unreadable")) from None
    except sqlite3.Error as error:
        raise LedgerError(
            _sqlite_error_message(path, timeout, getattr(error, "sqlite_errorname", ""))
        ) from None


@contextmanager
def write_transaction(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Run a ``with`` block as the only writer of the file; commit at the end.

    An exception rolls the transaction back and is raised again.
    """
    with open_connection(path, timeout) as connection:
        _check_single_name(path)
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "delete":
            raise LedgerError(
                f"Another program switched the ledger {path} to the journal mode {mode!r}; a copy "
                "of the file could then lack charges. Switch it back with `PRAGMA journal_mode = "
                "DELETE` in that program."
            )
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _check_single_name(path: Path) -> None:
    """Raise if a ledger has several hard links; remove a draft among them (S2).

    SQLite finds the journal of a killed process by the name of the file. If the file were
    opened under another name, SQLite would not roll the transaction back at once. A later rollback
    would also remove charges that other processes wrote in the meantime.
    """
    file = Path(os.path.realpath(path))
    try:
        if file.stat().st_nlink > 1:
            _remove_draft_of(file)
        names = file.stat().st_nlink
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be read: {os_error_reason(error)}. Check its path and "
            "permissions."
        ) from None
    if names > 1:
        raise LedgerError(
            f"The ledger {path} must have exactly one name, but it has {names} (hard links). If "
            "the program stops, a charge that was written under one name could be missing under "
            "another. Nothing was changed. Remove the other names; make backups as copies, not as "
            "links."
        )


def _remove_draft_of(file: Path) -> None:
    """Remove the draft of a ledger if the draft is a link to the same file."""
    draft_name = re.compile(re.escape(f".{file.name}.") + "[0-9a-f]{16}")
    with suppress(OSError):  # the folder cannot be read or written
        for other in file.parent.iterdir():
            if draft_name.fullmatch(other.name) and other.samefile(file):
                other.unlink(missing_ok=True)


def read_ledger(path: Path, timeout: float) -> LedgerContent:
    """Return the whole content of the file at one moment."""
    with open_connection(path, timeout) as connection:
        connection.execute("BEGIN")
        return read_content(connection, path)


def read_content(connection: sqlite3.Connection, path: Path) -> LedgerContent:
    """Read and check the content of a ledger file; raise for any other file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise LedgerError(_not_a_ledger_message(path))
    if version < 1:
        raise LedgerError(damaged_message(path, f"it has the unknown format {version}"))
    if version != SCHEMA:
        raise LedgerError(
            f"The ledger {path} has the format {version}; this version of leastnoise reads the "
            f"format {SCHEMA}. Use {'a newer' if version > SCHEMA else 'an earlier'} leastnoise."
        )
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise LedgerError(damaged_message(path, "its pages do not fit together"))
    rows = connection.execute(SELECT).fetchall()
    try:
        ((*row, digest),) = connection.execute(
            "SELECT name, privacy, id, digest FROM dataset"
        ).fetchall()
        if digest != hash_row(row):
            raise ValueError
        name = checked_text("dataset", row[0], min_length=1)
        privacy = _read(row[1], privacy_from_json)
        identity = checked_text("id", row[2], min_length=1)
    except (ValueError, TypeError, RecursionError):
        raise LedgerError(damaged_message(path, "the row of the data set is unreadable")) from None
    if [row[0] for row in rows] != list(range(1, len(rows) + 1)):
        raise LedgerError(damaged_message(path, "entries are missing"))
    entries = []
    last = digest
    for row in rows:
        entries.append(_entry_of_row(row, last, privacy.budget, path))
        last = entries[-1].digest
    if connection.execute("SELECT number, digest FROM head").fetchall() != [(len(rows), last)]:
        raise LedgerError(
            damaged_message(
                path, "its last entries are missing, or parts of it are from an older copy"
            )
        )
    return LedgerContent(name, privacy, identity, last, tuple(entries))


def _entry_of_row(
    row: tuple[object, ...], previous_digest: str, budget: Budget, path: Path
) -> Entry:
    """Convert a row of the file to an entry; raise if the row is damaged."""
    values: dict[str, Any] = dict(zip((*COLUMNS.split(", "), "resumable"), row, strict=True))
    try:
        if (
            values["digest"] != _chain_digest(previous_digest, row[:9], row[12:15])
            or values["kind"] not in get_args(Kind)
            or values["period"] not in PERIODS
        ):
            raise ValueError
        values |= {
            name: checked_text(name, values[name])
            for name in ("plan_digest", "output", "description", "run", "share")
        }
        values["id"] = checked_text("id", values["id"], min_length=1)
        values["resumable"] = bool(values["resumable"]) and values["state"] == "reserved"
        values["charge"] = _read(values["charge"], charge_from_json)
        values["cost"] = _read(values["cost"], cost_from_json)
        values["declared"] = _read(values["declared"], budget_from_json)
        values["reserved_on"] = date.fromisoformat(values["reserved_on"])
        entry = Entry(**values)
        if entry.kind == "budget":
            is_valid = entry.charge == Charge() and type(entry.declared) is type(budget)
        else:
            is_valid = is_possible_charge(budget, entry.charge)
        if not is_valid:
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise LedgerError(damaged_message(path, f"entry {row[0]} is unreadable")) from None
    return entry


def checked_text(name: str, value: object, min_length: int = 0) -> str:
    """Return a value unchanged if it is a text that the ledger can store.

    Raises:
        InputError: the value has another class; its length is not allowed; it has a null character;
            or UTF-8 cannot encode it.
    """
    if (
        not isinstance(value, str)
        or not min_length <= len(value.strip())
        or len(value) > LONGEST_TEXT
        or "\0" in value
    ):
        raise refuse(name, value, f"a text of {min_length} to {LONGEST_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(name, value, "a text that can be written as UTF-8") from None
    return value


@dataclass(frozen=True, slots=True)
class Limit:
    """The whole budget or the budget of a share, with the charges to it.

    Attributes:
        share: name of the share; "" for the whole budget.
        budget: the budget in force.
        period: "day", "week", "month" or "year" if the budget is renewed with each such period; ""
            if it is for all times.
        charges: the charges to this budget in the period of the requested day, in the order of the
            entries.
    """

    share: str
    budget: Budget
    period: str
    charges: tuple[Charge, ...]

    @property
    def spent(self) -> Charge:
        """The sum of the charges."""
        return sum_charges(self.charges)

    @property
    def left(self) -> Charge:
        """The amount left for the next release, at least 0."""
        return left_of_budget(self.budget, self.charges)

    @property
    def reason_closed(self) -> str:
        """The reason that no further charge is allowed with any budget (G4), or ""."""
        if isinstance(self.budget, ApproxDP) and has_late_delta(self.charges):
            return _LATE_DELTA
        return ""

    def covers(self, request: Charge) -> bool:
        """Return whether the budget covers one more release of this charge."""
        return is_within_budget(self.budget, [*self.charges, request])


def budgets_in_force(content: LedgerContent) -> tuple[dict[str, Budget], str]:
    """Return the budget of each share now, and the period of the budgets.

    The whole budget has the name "".
    """
    budgets = {"": content.privacy.budget}
    period = ""
    for entry in content.entries:
        if entry.kind == "budget":
            budgets[entry.share] = entry.declared
            if entry.share == "":
                period = entry.period
    return budgets, period


def is_same_period(period: str, first_day: date, second_day: date) -> bool:
    """Return whether two days are in one period of a budget (L2).

    All days are in the same period if the budget is for all times.

    >>> is_same_period("month", date(2026, 11, 28), date(2026, 12, 1))
    False
    """
    return first_day.strftime(PERIODS[period]) == second_day.strftime(PERIODS[period])


def charges_of(content: LedgerContent, share: str, period: str, day: date) -> tuple[Charge, ...]:
    """Return the charges of a share in the budget period of a day (L2).

    Charges of releases and amounts that were spent elsewhere are not separated; both are in the
    order of the entries (G5 of PROOFS-mu.md). For the share "", all charges are returned.
    """
    return tuple(
        entry.charge
        for entry in content.entries
        if entry.kind != "budget"
        and share in ("", entry.share)
        and is_same_period(period, entry.reserved_on, day)
    )


def limits(content: LedgerContent, share: str, day: date) -> Iterator[Limit]:
    """Yield the limit of the whole budget, then of ``share`` unless it is "".

    Raises:
        InputError: the ledger has no such share.
    """
    budgets, period = budgets_in_force(content)
    if share not in budgets:
        raise InputError(
            f"The share must be a share of the ledger: {_share_names(budgets) or 'none yet'}; got "
            f"{share!r}. Give it a budget with `leastnoise ledger share`."
        )
    for name in dict.fromkeys(("", share)):
        yield Limit(name, budgets[name], period, charges_of(content, name, period, day))


def check_left(content: LedgerContent, requests: Sequence[Charge], share: str, day: date) -> None:
    """Raise an error unless each limit covers the requests (L1).

    The requests are paid in this order.

    Raises:
        BudgetError: a limit has less left than a request; the message names the limit.
        InputError: the budget is divided into shares, and the request names no share or an unknown
            share.
    """
    budgets, _ = budgets_in_force(content)
    if len(budgets) > 1 and not share:
        raise InputError(
            f"The budget of the data set {content.dataset!r} is divided into shares, so a release "
            f"must name the share that pays: {_share_names(budgets)}. Use --share NAME, or "
            "Ledger.open(path, share=NAME). Nothing was spent."
        )
    for limit in limits(content, share, day):
        limit_then = limit
        for request in requests:
            if not limit_then.covers(request):
                raise BudgetError(_above_limit_message(content.dataset, limit_then, request))
            limit_then = replace(limit_then, charges=(*limit_then.charges, request))


def check_read_in_period(content: LedgerContent, read_on: date, day: date) -> None:
    """Raise if reading began before the budget period of the payment (L2).

    Raises:
        LedgerError: another period.
    """
    _, period = budgets_in_force(content)
    if not is_same_period(period, read_on, day):
        raise LedgerError(
            f"Reading of the rows began on {read_on}, but today is {day}, in another {period} of "
            "the budget. The privacy loss of people who are only in these rows could reach the "
            f"budgets of both {period}s. Nothing was spent. Start the release again: it then reads "
            f"the rows of the present {period}."
        )


def check_not_below(content: LedgerContent, budget: Budget, share: str, period: str) -> None:
    """Raise if a new budget is below the spent amount or of another definition.

    The amount spent is compared in each period.

    Raises:
        InputError: another definition.
        BudgetError: more is spent.
    """
    if type(budget) is not type(content.privacy.budget):
        raise InputError(
            f"The budget must have the definition {type(content.privacy.budget).__name__}, in "
            f"which the ledger adds up its entries; got {budget!r}. Nothing was changed."
        )
    for day in {entry.reserved_on for entry in content.entries}:
        charges = charges_of(content, share, period, day)
        if not is_within_budget(budget, charges):
            if isinstance(budget, ApproxDP) and has_late_delta(charges):
                raise BudgetError(f"{_LATE_DELTA} Nothing was changed.")
            raise BudgetError(
                "The budget must be at least what is spent, "
                f"{spent_text(budget, sum_charges(charges))}; got "
                f"{charge_text(budget, charge_of_budget(budget), up=False)}. Nothing was changed."
            )


def _share_names(budgets: Iterable[str]) -> str:
    """Return the names of all shares, separated by commas; "" without shares."""
    return ", ".join(sorted(filter(None, budgets)))


def _above_limit_message(dataset: str, limit: Limit, request: Charge) -> str:
    """Return the message for a request that exceeds a limit."""
    budget = limit.budget
    available = limit.left
    requested = spent_text(budget, request)
    remaining = left_text(budget, available)
    whole = limit_text(budget, limit.period)
    if limit.share:
        payer = f"the share {limit.share!r} of the data set"
        command = "leastnoise ledger share"
    else:
        payer = "the data set"
        command = "leastnoise ledger change"
    is_anything_left = bool(available.epsilon or available.rho or available.mu_squared)
    start = f"The release requests {requested}, but of {whole} for {payer} {dataset!r}"
    if isinstance(budget, ApproxDP):
        if is_anything_left:
            only = "only "
        else:
            only = ""
        advice = limit.reason_closed or _advice_in_mu(request, available, command)
        return f"{start} {only}{remaining} is left. Nothing was spent. {advice}"
    excess = charge_text(budget, charge_shortfall(request, available))
    advice = "Make no further release of this data set"
    if is_anything_left:
        advice = "Plan with at most what is left"
    return (
        f"{start} only {remaining} is left; that is {excess} too much. Nothing was spent. "
        f"{advice}, or ask the data holder to raise the budget (`{command}`)."
    )


def _advice_in_mu(request: Charge, available: Charge, command: str) -> str:
    """Return advice for a request that an (epsilon, delta) budget does not cover.

    ``command`` is the command with which the data holder can raise the budget.
    """
    if not (available.epsilon or available.mu_squared):
        return (
            "Make no further release of this data set, or ask the data holder to raise the budget "
            f"(`{command}`)."
        )
    if request.has_own_delta and request.delta:
        return (
            "A release with its own delta (a search for categories, or data-dependent steps "
            "within epsilon and delta) is paid before the other charges of its budget, also before "
            "a guard. Search first, or list the categories; plan data-dependent steps without a "
            "guard, with a share of the budget ([privacy] share, or GDP), or with PureDP; or ask "
            f"the data holder to raise the budget (`{command}`)."
        )
    return (
        "Plan with at most what is left, a guard included: a share of the budget ([privacy] share, "
        f"or GDP), or PureDP; or ask the data holder to raise the budget (`{command}`)."
    )


def _sqlite_error_message(path: Path, timeout: float, error_name: str) -> str:
    """Return the message for the user about an SQLite error of this name."""
    locked = (
        f"The ledger {path} was locked by another process for more than {timeout:g} seconds. Try "
        "again when that process has finished."
    )
    forbidden = (
        f"The ledger {path} cannot be written. Check that you may write to it and its folder."
    )
    no_disk = (
        f"The disk of the ledger {path} is full, or cannot be read or written. Free space, or "
        "check the disk."
    )
    reasons = {
        "CANTOPEN": f"The ledger {path} cannot be opened. Check that the file is there, and that "
        "you may write to it and its folder.",
        "NOTADB": _not_a_ledger_message(path),
        **dict.fromkeys(("BUSY", "LOCKED"), locked),
        **dict.fromkeys(("READONLY", "PERM", "AUTH"), forbidden),
        **dict.fromkeys(("FULL", "IOERR"), no_disk),
    }
    family = error_name.removeprefix("SQLITE_").partition("_")[0]
    return reasons.get(family, damaged_message(path, "its tables are unreadable"))


def damaged_message(path: Path, fault: str) -> str:
    """Return the message for a file that another program changed."""
    return (
        f"The ledger {path} is damaged ({fault}). No release can be made from it. Restore it from "
        "a copy that has all its releases."
    )


def _not_a_ledger_message(path: Path) -> str:
    """Return the message for a file that is not a ledger."""
    return (
        f"{path} is not a ledger, or is a damaged one. Check the path; if it was a ledger, restore "
        "it from a copy that has all its releases."
    )


def _file_exists_message(path: Path) -> str:
    """Return the message for a new ledger whose file exists."""
    if path.is_dir():
        return f"{path} is a directory; a ledger is a file. Name a file, such as people.ledger."
    return (
        f"{path} exists already, and a ledger is never replaced. Open it, or change its budget "
        "with `leastnoise ledger change`."
    )


def os_error_reason(error: OSError) -> str:
    """Return the text of an operating system error, in lower case."""
    return (error.strerror or type(error).__name__).lower()


def create_file(file: Path, dataset: str, privacy: Privacy, timeout: float) -> str:
    """Create an empty ledger, and return its identifier.

    The file is written under a unique name and then linked into place. No process can therefore see
    an incomplete ledger, or remove the ledger of another process.
    """
    draft = file.parent / f".{file.name}.{secrets.token_hex(8)}"
    try:
        if file.exists():
            raise LedgerError(_file_exists_message(file))
        for journal in (file.parent / f"{file.name}-journal", file.parent / f"{file.name}-wal"):
            if journal.exists():  # SQLite would play it into the new ledger
                raise LedgerError(
                    f"{journal} is left from an earlier ledger of this name. Restore that "
                    "ledger, or remove both."
                )
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            with write_transaction(draft, timeout) as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
                for table in TABLES:
                    connection.execute(table)
                row = (dataset, dump(privacy), secrets.token_hex(16))
                connection.execute(
                    "INSERT INTO dataset VALUES (1, ?, ?, ?, ?)", (*row, hash_row(row))
                )
                connection.execute("INSERT INTO head VALUES (1, 0, ?)", (hash_row(row),))
            os.link(draft, file)
        finally:
            with suppress(OSError):  # the ledger is in its place, or never will be
                draft.unlink()
        flush_folder(file.parent)
    except FileExistsError:
        raise LedgerError(_file_exists_message(file)) from None
    except OSError as error:
        raise LedgerError(
            f"A ledger cannot be made at {file}: {os_error_reason(error)}. Choose a folder that "
            "exists and that you may write to."
        ) from None
    return row[2]


def flush_folder(folder: Path) -> None:
    """Flush a folder, so that a new file keeps its name after a crash.

    >>> flush_folder(Path("/nowhere"))
    """
    with suppress(OSError):  # a file system that cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
