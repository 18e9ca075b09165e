"""The ledger: the durable record of the budget a data set has spent.

One SQLite file. A release is first reserved (its charge is then spent, whatever happens), then drawn and written, then sealed.
PROOFS-ledger.md has the argument.

A rollback journal is used and not a write-ahead log: at rest everything is in the one file, so that a copy of it never lacks the latest
charges. ``synchronous = EXTRA`` is FULL plus a flush of the folder after the journal is gone, without which a power cut just after a
commit could undo it.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, cast

from leastnoise._check import BudgetError, InputError, LedgerError, one_of, refuse
from leastnoise.accounting import (
    Budget,
    Charge,
    Cost,
    Privacy,
    budget_from_json,
    charge,
    charge_from_json,
    cost_from_json,
    in_words,
    is_charge_of,
    left,
    missing,
    privacy_from_json,
    total,
    whole_budget,
)

State = Literal["reserved", "sealed", "absent"]

_APPLICATION = 0x4C4E4C47  # "LNLG", in the header of the file
_SCHEMA = 1
_TABLES = (
    """CREATE TABLE dataset (one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL, privacy TEXT NOT NULL, created_at TEXT NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE entry (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'sealed', 'absent')), charge TEXT NOT NULL, cost TEXT NOT NULL, declared TEXT NOT NULL,
    plan_digest TEXT NOT NULL, output TEXT NOT NULL, description TEXT NOT NULL, reserved_at TEXT NOT NULL, digest TEXT NOT NULL,
    settled_at TEXT)""",
)
_INSERT = """INSERT INTO entry (number, id, charge, cost, declared, plan_digest, output, description, reserved_at, digest, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved')"""
_SELECT = """SELECT number, id, charge, cost, declared, plan_digest, output, description, reserved_at, digest, state, settled_at
    FROM entry ORDER BY number"""
_LONGEST_TEXT = 10_000
_TAKEN = "{} exists already, and a ledger is never replaced. Open it, or choose another path."
_MAKE = "Make one with `leastnoise ledger set` or Ledger.create."


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a charge was durably reserved; whoever holds it may draw noise once.

    Attributes:
        id: 128 random bits in hexadecimal.
        dataset: name of the data set.
        plan_digest: fingerprint of the plan that was paid for.
        output: where the release will be published.
        charge: what was taken, in the definition of the data set's budget.
        reserved_at: UTC.

    >>> Receipt.__slots__
    ('id', 'dataset', 'plan_digest', 'output', 'charge', 'reserved_at')
    """

    id: str
    dataset: str
    plan_digest: str
    output: str
    charge: Charge
    reserved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One release as the ledger holds it.

    Attributes:
        number: 1, 2, 3 ... in the order of reservation.
        state: "reserved" (paid, not known to be published), "sealed" (paid and published whole) or "absent" (paid, and found unpublished).
        charge: what was taken, in the definition of the data set's budget.
        cost: what the kernel computed from the integers of the plan.
        declared: what the plan promised.
        settled_at: when the state last changed; None while reserved. All times are UTC.

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
    reserved_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True, slots=True, repr=False)
class Ledger:
    """The budget of one data set, on disk; made by `Ledger.create` or `Ledger.open`, and shared by any number of processes.

    Attributes:
        path: the file.
        dataset: name of the data set.
        privacy: the budget, the unit and the neighbours, fixed when the ledger was made.
        timeout: seconds to wait for another process's lock.

    Guarantees:
        A receipt is handed out only after its charge is on the disk. The charges of all receipts ever handed out never exceed the budget,
        whatever number of processes reserve at once and wherever they are killed. No method gives budget back.

    >>> import tempfile
    >>> from leastnoise.accounting import PureCost, PureDP
    >>> folder = tempfile.TemporaryDirectory()
    >>> privacy = Privacy(PureDP(1))
    >>> ledger = Ledger.create(Path(folder.name) / "people.ledger", "people", privacy)
    >>> receipt = ledger.reserve(cost=PureCost("1/3"), declared=PureDP("1/3"), privacy=privacy, plan_digest="ab12", output="out")
    >>> ledger.seal(receipt)
    >>> ledger.left().epsilon, ledger.entries()[0].state
    (Fraction(2, 3), 'sealed')
    >>> folder.cleanup()
    """

    path: Path
    dataset: str
    privacy: Privacy
    timeout: float

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, dataset={self.dataset!r}, budget={self.privacy.budget!r}, unit={self.privacy.unit!r})"

    @classmethod
    def create(cls, path: str | os.PathLike[str], dataset: str, privacy: Privacy, *, timeout: float = 30.0) -> "Ledger":
        """Make the ledger of a data set, with nothing spent.

        Args:
            path: the new file; its folder must exist.
            dataset: name of the data set, for messages and reports.
            privacy: the budget, the unit and the neighbours; they cannot be changed later.
            timeout: seconds to wait for another process's lock.

        Raises:
            LedgerError: the file exists, or cannot be made.
            InputError: the name is empty, or ``privacy`` is something else.

        Guarantees:
            Never replaces a file, and never removes one that another process may have made. Killed midway, it leaves a hidden draft at
            most.

        >>> from leastnoise.accounting import PureDP
        >>> Ledger.create("/", "people", Privacy(PureDP(1)))
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: / exists already, and a ledger is never replaced. Open it, or choose another path.
        """
        file = _path(path)
        name = _text("dataset", dataset, least=1)
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        seconds = _seconds(timeout)
        if file.exists():
            raise LedgerError(_TAKEN.format(file))
        # Made whole under a name that nobody else uses, then linked into place: no process ever sees half a ledger, or removes another's.
        draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            try:
                _fill(draft, name, privacy, seconds)
                os.link(draft, file)
            finally:
                draft.unlink(missing_ok=True)
            _flush_folder(file.parent)
        except FileExistsError:
            raise LedgerError(_TAKEN.format(file)) from None
        except OSError as error:
            raise LedgerError(
                f"A ledger cannot be made at {file}: {_reason(error)}. Choose a folder that exists and that you may write to."
            ) from None
        return cls(file, name, privacy, seconds)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 30.0) -> "Ledger":
        """Open the ledger of a data set.

        Args:
            path: the file.
            timeout: seconds to wait for another process's lock.

        Raises:
            LedgerError: there is no such file, it is not a ledger, it was written by a newer version, it is damaged, or it stays locked.

        Guarantees:
            Never makes a file.

        >>> Ledger.open("/nowhere/people.ledger")
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/people.ledger. Make one with `leastnoise ledger set` ...
        """
        file = _path(path)
        seconds = _seconds(timeout)
        # Only by stat: opening and closing the file here would drop the locks that another thread's connection holds on it.
        try:
            if file.is_dir():
                raise LedgerError(f"{file} is a folder, not a ledger. Give the path of the ledger's file.")
            size = file.stat().st_size
            patience = time.monotonic() + min(seconds, 1.0)
            while size == 0 and time.monotonic() < patience:  # perhaps another process is making it just now
                time.sleep(0.02)
                size = file.stat().st_size
        except FileNotFoundError:
            raise LedgerError(f"There is no ledger at {file}. {_MAKE}") from None
        except OSError as error:
            raise LedgerError(f"The ledger {file} cannot be read: {_reason(error)}. Check its path and permissions.") from None
        if size == 0:
            raise LedgerError(f"{file} is empty: not a ledger, or one whose making was interrupted. Remove it and make a ledger there.")
        content = _read(file, seconds)
        return cls(file, content.dataset, content.privacy, seconds)

    def reserve(self, *, cost: Cost, declared: Budget, privacy: Privacy, plan_digest: str, output: str, description: str = "") -> Receipt:
        """Spend the charge of a release, before any noise is drawn.

        Args:
            cost: what the kernel computed from the plan's integers.
            declared: what the plan promises; it must cover the cost.
            privacy: of the plan; its unit and neighbours must be those of the ledger.
            plan_digest: fingerprint of the plan.
            output: where the release will be published, so that `reconcile` can look for it.
            description: one line for people.

        Returns:
            The receipt. The charge is on the disk by then.

        Raises:
            BudgetError: less is left than the charge; nothing was spent.
            InputError: other unit or neighbours, a declared budget that does not cover the cost, a definition this ledger cannot hold, or a
                text that cannot be stored; nothing was spent.
            LedgerError: the file is damaged, locked, read-only or gone, or the disk is full. No receipt, so no release.

        Guarantees:
            What is left is computed anew from the exact fractions of all rows, and the charge is written, under one lock that shuts out all
            other writers.

        >>> from leastnoise.accounting import PureCost, PureDP
        >>> privacy = Privacy(PureDP(1))
        >>> ledger = Ledger(Path("/nowhere/x"), "people", privacy, 1.0)
        >>> ledger.reserve(cost=PureCost(1), declared=PureDP(1), privacy=Privacy(PureDP(1), "replace"), plan_digest="ab", output="out")
        Traceback (most recent call last):
        leastnoise._check._errors.InputError: The plan protects one row (replace), the data set 'people' one row (add_remove); ...
        """
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        if not privacy.same_unit(self.privacy):
            raise InputError(
                f"The plan protects {privacy.unit}, the data set {self.dataset!r} {self.privacy.unit}; such costs cannot be added. "
                "Make the plan with the privacy unit of the data set."
            )
        budget = self.privacy.budget
        request = charge(budget, declared, cost)
        texts = (_text("plan_digest", plan_digest), _text("output", output), _text("description", description))
        receipt = Receipt(
            id=secrets.token_hex(16),
            dataset=self.dataset,
            plan_digest=plan_digest,
            output=output,
            charge=request,
            reserved_at=datetime.now(UTC),
        )
        values = (receipt.id, _dump(request), _dump(cost), _dump(declared), *texts, receipt.reserved_at.isoformat())
        with _writing(self.path, self.timeout) as connection:
            entries = self._checked(connection).entries
            available = left(budget, total(entry.charge for entry in entries))
            if not request.within(available):
                raise BudgetError(self._refusal(request, available))
            row = (len(entries) + 1, *values)
            connection.execute(_INSERT, (*row, _digest(row)))
        return receipt

    def seal(self, receipt: Receipt) -> None:
        """Record that a release was published whole.

        An entry that another process has meanwhile found absent is sealed too, as it was paid for and is there now; sealing twice changes
        nothing.

        Raises:
            LedgerError: the receipt is not of this ledger, or the file cannot be written.

        >>> receipt = Receipt(id="0f", dataset="people", plan_digest="ab", output="out", charge=Charge(), reserved_at=datetime.now(UTC))
        >>> Ledger.open("/nowhere/x").seal(receipt)
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        with _writing(self.path, self.timeout) as connection:
            if receipt.id not in {entry.id for entry in self._checked(connection).entries}:
                raise LedgerError(f"The receipt {receipt.id} is not of the ledger {self.path}. Seal a release where it was reserved.")
            connection.execute("UPDATE entry SET state = 'sealed', settled_at = ? WHERE id = ? AND state <> 'sealed'", (_now(), receipt.id))

    def reconcile(self, is_published: Callable[[Entry], bool]) -> tuple[Entry, ...]:
        """Settle what earlier runs left unsealed: sealed if it was published after all, or else absent. No budget is given back.

        Args:
            is_published: tells for an unsealed entry whether its output is there and whole. Called without a lock held.

        Returns:
            The entries that changed, as they are now.

        Raises:
            LedgerError: the file cannot be used.

        Edge cases:
            A release that another process is still making is found absent; that process seals it when it is done, or, if it is killed just
            before that, the next call does.

        >>> Ledger.open("/nowhere/x").reconcile(lambda entry: False)
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        found = {}
        for entry in self.entries():
            if entry.state == "sealed":
                continue
            published = is_published(entry)
            if published or entry.state == "reserved":
                found[entry.id] = "sealed" if published else "absent"
        if not found:
            return ()
        with _writing(self.path, self.timeout) as connection:
            self._checked(connection)
            for entry_id, state in found.items():
                # Never from sealed back to absent: its own process may have sealed it meanwhile.
                connection.execute(
                    "UPDATE entry SET state = ?, settled_at = ? WHERE id = ? AND state <> 'sealed'", (state, _now(), entry_id)
                )
        return tuple(entry for entry in self.entries() if entry.id in found)

    def entries(self) -> tuple[Entry, ...]:
        """List every release that was paid for, in the order of reservation.

        Raises:
            LedgerError: the file cannot be read.

        >>> Ledger.open("/nowhere/x").entries()
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        content = _read(self.path, self.timeout)
        self._same(content)
        return content.entries

    def unsealed(self) -> tuple[Entry, ...]:
        """List the releases that are paid and not known to be published or absent: those of killed runs, and those under way.

        Raises:
            LedgerError: the file cannot be read.

        >>> Ledger.open("/nowhere/x").unsealed()
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        return tuple(entry for entry in self.entries() if entry.state == "reserved")

    def spent(self) -> Charge:
        """Add up all charges, in whatever state; exact.

        Raises:
            LedgerError: the file cannot be read.

        >>> Ledger.open("/nowhere/x").spent()
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        return total(entry.charge for entry in self.entries())

    def left(self) -> Charge:
        """Subtract what is spent from the budget; exact, and no part is below zero.

        Raises:
            LedgerError: the file cannot be read.

        >>> Ledger.open("/nowhere/x").left()
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        return left(self.privacy.budget, self.spent())

    def _checked(self, connection: sqlite3.Connection) -> "_Content":
        content = _content(connection, self.path)
        self._same(content)
        return content

    def _same(self, content: "_Content") -> None:
        if (content.dataset, content.privacy) != (self.dataset, self.privacy):
            raise LedgerError(f"The ledger {self.path} was replaced by another one since it was opened. Open it again.")

    def _refusal(self, request: Charge, available: Charge) -> str:
        budget = self.privacy.budget
        asked, rest, lack = (in_words(budget, one) for one in (request, available, missing(request, available)))
        advice = "Plan with at most what is left" if any((available.epsilon, available.rho)) else "Make no further release of this data set"
        return (
            f"The release asks for {asked}, but of {in_words(budget, whole_budget(budget))} for the data set {self.dataset!r} "
            f"only {rest} is left; that is {lack} too much. Nothing was spent. {advice}, or ask the data holder."
        )


@dataclass(frozen=True, slots=True)
class _Content:
    dataset: str
    privacy: Privacy
    entries: tuple[Entry, ...]


def _fill(file: Path, name: str, privacy: Privacy, timeout: float) -> None:
    """Write an empty ledger into an empty file, in one transaction."""
    with _writing(file, timeout) as connection:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA}")
        for table in _TABLES:
            connection.execute(table)
        row = (name, json.dumps(privacy.to_json()), _now())
        connection.execute("INSERT INTO dataset VALUES (1, ?, ?, ?, ?)", (*row, _digest(row)))


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise refuse("path", path, "the path of a ledger's file")
    return Path(path)


def _seconds(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= 86400:
        raise refuse("timeout", timeout, "a number of seconds from 0 to 86400")
    return float(timeout)


def _text(name: str, value: object, least: int = 0) -> str:
    if not isinstance(value, str) or not least <= len(value.strip()) or len(value) > _LONGEST_TEXT or "\0" in value:
        raise refuse(name, value, f"a text of {least} to {_LONGEST_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(name, value, "a text that can be written as UTF-8") from None
    return value


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _dump(value: Charge | Cost | Budget) -> str:
    return json.dumps(value.to_json())


def _digest(row: Sequence[object]) -> str:
    """Sum up what must never change in a row, so that a flipped bit on the disk is noticed. It keeps no forger out."""
    return hashlib.sha256(json.dumps(list(row)).encode()).hexdigest()


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _flush_folder(folder: Path) -> None:
    """Make the name of a new file durable too."""
    with suppress(OSError):  # a file system that cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _connected(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Open one connection for one operation; never makes a file. Every error of SQLite leaves as one sentence."""
    try:
        connection = sqlite3.connect(path.absolute().as_uri() + "?mode=rw", uri=True, timeout=timeout, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # where a plain flush stops at the disk's own cache
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        finally:
            connection.close()
    except UnicodeDecodeError:  # from SQLite's own message about a damaged schema
        raise LedgerError(_damaged(path, "its tables are unreadable")) from None
    except sqlite3.Error as error:
        raise LedgerError(_sentence(path, timeout, error)) from None


@contextmanager
def _writing(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """Hold the one writer's lock; commit at the end, or roll back and pass the error on."""
    with _connected(path, timeout) as connection:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "delete":
            raise LedgerError(
                f"The ledger {path} was switched to the journal mode {mode!r} by another program; a copy of the file could then lack "
                "charges. Switch it back with `PRAGMA journal_mode = DELETE` in that program."
            )
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _sentence(path: Path, timeout: float, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return f"The ledger {path} was locked by another process for more than {timeout:g} seconds. Try again when that process is done."
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return f"The ledger {path} cannot be written. Check that you may write to it and its folder."
    if code == sqlite3.SQLITE_CANTOPEN:
        return f"The ledger {path} cannot be opened. Check that the file is there, and that you may write to it and its folder."
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a ledger. {_MAKE}"
    if code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
        return f"The disk of the ledger {path} is full, or cannot be read or written. No release was made. Free space, or check the disk."
    return _damaged(path, "its tables are unreadable")


def _damaged(path: Path, what: str) -> str:
    return f"The ledger {path} is damaged ({what}). No release can be made from it. Restore it from a copy that has all its releases."


def _read(path: Path, timeout: float) -> _Content:
    """Read everything at one moment."""
    with _connected(path, timeout) as connection:
        connection.execute("BEGIN")
        return _content(connection, path)


def _content(connection: sqlite3.Connection, path: Path) -> _Content:
    """Check the file and read it, refusing whatever is not as this module wrote it."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise LedgerError(f"{path} is not a ledger. {_MAKE}")
    if version < _SCHEMA:
        raise LedgerError(_damaged(path, f"it has the unknown format {version}"))
    if version > _SCHEMA:
        raise LedgerError(
            f"The ledger {path} has the format {version}; this version of leastnoise reads the format {_SCHEMA}. Use a newer leastnoise."
        )
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise LedgerError(_damaged(path, "its pages do not fit together"))
    heads = connection.execute("SELECT name, privacy, created_at, digest FROM dataset").fetchall()
    rows = connection.execute(_SELECT).fetchall()
    try:
        ((*row, digest),) = heads
        if digest != _digest(row):
            raise ValueError
        name = _text("dataset", row[0], least=1)
        privacy = privacy_from_json(json.loads(row[1]))
    except (ValueError, TypeError, RecursionError):
        raise LedgerError(_damaged(path, "the row of the data set is unreadable")) from None
    if [row[0] for row in rows] != list(range(1, len(rows) + 1)):
        raise LedgerError(_damaged(path, "entries are missing"))
    return _Content(name, privacy, tuple(_entry(row, privacy.budget, path) for row in rows))


def _entry(row: tuple[object, ...], budget: Budget, path: Path) -> Entry:
    number, entry_id, charge_text, cost, declared, plan_digest, output, description, reserved_at, digest, state, settled_at = row
    try:
        if digest != _digest(row[:9]):
            raise ValueError
        paid = charge_from_json(json.loads(cast(str, charge_text)))
        if not is_charge_of(budget, paid):
            raise ValueError
        return Entry(
            number=cast(int, number),
            id=_text("id", entry_id, least=1),
            state=cast(State, one_of("state", state, ["reserved", "sealed", "absent"])),
            charge=paid,
            cost=cost_from_json(json.loads(cast(str, cost))),
            declared=budget_from_json(json.loads(cast(str, declared))),
            plan_digest=_text("plan_digest", plan_digest),
            output=_text("output", output),
            description=_text("description", description),
            reserved_at=_time(reserved_at),
            settled_at=None if settled_at is None else _time(settled_at),
        )
    except (ValueError, TypeError, RecursionError):
        raise LedgerError(_damaged(path, f"entry {number} is unreadable")) from None


def _time(text: object) -> datetime:
    moment = datetime.fromisoformat(cast(str, text))
    if moment.utcoffset() != timedelta(0):
        raise ValueError
    return moment
