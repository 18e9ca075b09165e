"""The ledger: the durable record of the budget a data set has spent.

One SQLite file. A release is first reserved (its charge is then spent, whatever happens), then drawn and written, then sealed.
PROOFS-ledger.md has the argument.
"""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from leastnoise._check import BudgetError, InputError, LedgerError, refuse
from leastnoise.accounting import (
    Budget,
    Charge,
    Cost,
    Privacy,
    charge,
    in_words,
    left,
    missing,
    total,
    whole_budget,
)
from leastnoise.measure._ledger_file import MAKE, Content, Entry, checked_text, content_of, digest_of, fill, now, read, writing

_INSERT = """INSERT INTO entry (number, id, charge, cost, declared, plan_digest, output, description, reserved_at, digest, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved')"""
_TAKEN = "{} exists already, and a ledger is never replaced. Open it, or choose another path."


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
        name = checked_text("dataset", dataset, least=1)
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        seconds = _seconds(timeout)
        # Made whole under a name that nobody else uses, then linked into place: no process ever sees half a ledger, or removes another's.
        draft = file.parent / f".{file.name}.{secrets.token_hex(8)}"
        try:
            if file.exists():
                raise LedgerError(_TAKEN.format(file))
            for left_over in (file.parent / f"{file.name}-journal", file.parent / f"{file.name}-wal"):
                if left_over.exists():  # SQLite would play it into the new ledger
                    raise LedgerError(f"{left_over} is left from an earlier ledger of this name. Restore that ledger, or remove both.")
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            try:
                fill(draft, name, privacy, seconds)
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
            raise LedgerError(f"There is no ledger at {file}. {MAKE}") from None
        except OSError as error:
            raise LedgerError(f"The ledger {file} cannot be read: {_reason(error)}. Check its path and permissions.") from None
        if size == 0:
            raise LedgerError(f"{file} is empty: not a ledger, or one whose making was interrupted. Remove it and make a ledger there.")
        content = read(file, seconds)
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
        texts = (checked_text("plan_digest", plan_digest), checked_text("output", output), checked_text("description", description))
        receipt = Receipt(
            id=secrets.token_hex(16),
            dataset=self.dataset,
            plan_digest=plan_digest,
            output=output,
            charge=request,
            reserved_at=datetime.now(UTC),
        )
        values = (receipt.id, _dump(request), _dump(cost), _dump(declared), *texts, receipt.reserved_at.isoformat())
        with writing(self.path, self.timeout) as connection:
            entries = self._checked(connection).entries
            available = left(budget, total(entry.charge for entry in entries))
            if not request.within(available):
                raise BudgetError(self._refusal(request, available))
            row = (len(entries) + 1, *values)
            connection.execute(_INSERT, (*row, digest_of(row)))
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
        with writing(self.path, self.timeout) as connection:
            if receipt.id not in {entry.id for entry in self._checked(connection).entries}:
                raise LedgerError(f"The receipt {receipt.id} is not of the ledger {self.path}. Seal a release where it was reserved.")
            connection.execute("UPDATE entry SET state = 'sealed', settled_at = ? WHERE id = ? AND state <> 'sealed'", (now(), receipt.id))

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
        with writing(self.path, self.timeout) as connection:
            self._checked(connection)
            for entry_id, state in found.items():
                # Never from sealed back to absent: its own process may have sealed it meanwhile.
                connection.execute(
                    "UPDATE entry SET state = ?, settled_at = ? WHERE id = ? AND state <> 'sealed'", (state, now(), entry_id)
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
        content = read(self.path, self.timeout)
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

    def _checked(self, connection: sqlite3.Connection) -> "Content":
        content = content_of(connection, self.path)
        self._same(content)
        return content

    def _same(self, content: "Content") -> None:
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


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise refuse("path", path, "the path of a ledger's file")
    return Path(path)


def _seconds(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= 86400:
        raise refuse("timeout", timeout, "a number of seconds from 0 to 86400")
    return float(timeout)


def _dump(value: Charge | Cost | Budget) -> str:
    return json.dumps(value.to_json())


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
