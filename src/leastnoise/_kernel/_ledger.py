"""The ledger: the durable record of the budget a data set has spent.

One SQLite file. A release is first reserved (its charge is then spent, whatever happens), then each of its steps is begun, drawn and
recorded, then its files are written, then it is sealed. PROOFS-ledger.md has the argument.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from leastnoise._accounting import (
    Budget,
    Charge,
    Cost,
    Privacy,
    charge,
    charge_text,
    left,
    missing,
    total,
    whole_budget,
)
from leastnoise._check import BudgetError, InputError, LedgerError, refuse
from leastnoise._kernel import _ledger_steps as steps
from leastnoise._kernel._ledger_file import (
    Content,
    Entry,
    OldFormat,
    append,
    checked_text,
    connected,
    content_of,
    read,
    writing,
)
from leastnoise._kernel._ledger_making import checked_path, checked_seconds, make, wait_for
from leastnoise._kernel._ledger_migration import migrate
from leastnoise._kernel._ledger_run import free_room, is_running, running, sweep
from leastnoise._kernel._ledger_steps import Pending, Receipt


@dataclass(frozen=True, slots=True, repr=False)
class Ledger:
    """The budget of one data set, on disk; made by `Ledger.create` or `Ledger.open`, and shared by any number of processes.

    Attributes:
        path: the file.
        dataset: name of the data set.
        privacy: the budget, the unit and the neighbours, fixed when the ledger was made.
        timeout: seconds to wait for another process's lock.
        id: 128 random bits in hexadecimal, made with the ledger.

    Guarantees:
        A receipt is handed out only after its charge is on the disk. The charges of all receipts ever handed out never exceed the budget,
        whatever number of processes reserve at once and wherever they are killed. No method gives budget back.

    >>> folder = tempfile.TemporaryDirectory()
    >>> privacy = ln.Privacy(ln.PureDP(1))
    >>> ledger = ln.Ledger.create(Path(folder.name) / "people.ledger", "people", privacy)
    >>> receipt = ledger.reserve(cost=PureCost("1/3"), declared=ln.PureDP("1/3"), privacy=privacy, plan_digest="ab12", output="out")
    >>> ledger.seal(receipt)
    >>> ledger.left().epsilon, ledger.entries()[0].state
    (Fraction(2, 3), 'sealed')
    >>> folder.cleanup()
    """

    path: Path
    dataset: str
    privacy: Privacy
    timeout: float
    id: str

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

        >>> ln.Ledger.create("/", "people", ln.Privacy(ln.PureDP(1)))
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: / exists already, and a ledger is never replaced. Open it, or choose another path.
        """
        file = checked_path(path)
        name = checked_text("dataset", dataset, least=1)
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        seconds = checked_seconds(timeout)
        identity = make(file, name, privacy, seconds)
        return cls(file, name, privacy, seconds, identity)

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

        Edge cases:
            A ledger of the format 1 is brought to this version's, which keeps no time of day.

        >>> ln.Ledger.open("/nowhere/people.ledger")
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/people.ledger. If there was one, restore it. ...
        """
        file = checked_path(path)
        seconds = checked_seconds(timeout)
        wait_for(file, seconds)
        try:
            content = read(file, seconds)
        except OldFormat:
            migrate(file, seconds)
            content = read(file, seconds)
        return cls(file, content.dataset, content.privacy, seconds, content.id)

    @contextmanager
    def running(self, room: int = 0) -> Iterator[str]:
        """Hold the sign that a release is being made, until the block or the process ends.

        Args:
            room: bytes to keep free for its measurement, from public sizes.

        Raises:
            LedgerError: the ledger's folder cannot be written or has less room; nothing was spent.
        """
        with running(self.path, room) as run:
            yield run

    def reserve(
        self,
        *,
        cost: Cost,
        declared: Budget,
        privacy: Privacy,
        plan_digest: str,
        output: str,
        description: str = "",
        plan: str = "",
        options: str = "",
        run: str = "",
    ) -> Receipt:
        """Spend the charge of a release, before any noise is drawn.

        Args:
            cost: what the kernel computed from the plan's integers.
            declared: what the plan promises; it must cover the cost.
            privacy: of the plan; its unit and neighbours must be those of the ledger.
            plan_digest: fingerprint of the plan.
            output: where the release will be published, so that `reconcile` can look for it.
            description: one line for people.
            plan: its JSON text, so that another process can finish the release; without it none can.
            options: of the release, for whoever finishes it.
            run: from `running`.

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

        >>> privacy = ln.Privacy(ln.PureDP(1))
        >>> ledger = ln.Ledger(Path("/nowhere/x"), "people", privacy, 1.0, "")
        >>> other = ln.Privacy(ln.PureDP(1), "replace")
        >>> ledger.reserve(cost=PureCost(1), declared=ln.PureDP(1), privacy=other, plan_digest="ab", output="out")
        Traceback (most recent call last):
        leastnoise._check._errors.InputError: The plan protects one row (replace), the data set 'people' one row (add_remove); ...
        """
        request = self._request(cost, declared, privacy)
        texts = (checked_text("plan_digest", plan_digest), checked_text("output", output), checked_text("description", description))
        receipt_id = secrets.token_hex(16)
        values = (receipt_id, _dump(request), _dump(cost), _dump(declared), *texts, datetime.now(UTC).date().isoformat())
        with writing(self.path, self.timeout) as connection:
            content = self._checked(connection)
            self._check_left(request, content)
            number = len(content.entries) + 1
            head = append(connection, (number, *values), content.head, "reserved", run)
            if plan:
                steps.enter(connection, receipt_id, plan, options)
        return Receipt(
            id=receipt_id, dataset=self.dataset, plan_digest=plan_digest, output=output, charge=request, number=number, head=head, run=run
        )

    def check(self, cost: Cost, privacy: Privacy) -> None:
        """Refuse what `reserve` would refuse now; nothing is written.

        Args:
            cost: of the plan.
            privacy: of the plan, whose budget it declares.

        Raises:
            BudgetError, InputError, LedgerError: as `reserve`.
        """
        request = self._request(cost, privacy.budget, privacy)
        content = read(self.path, self.timeout)
        self._same(content)
        self._check_left(request, content)

    def _request(self, cost: Cost, declared: Budget, privacy: Privacy) -> Charge:
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        if not privacy.same_unit(self.privacy):
            raise InputError(
                f"The plan protects {privacy.unit}, the data set {self.dataset!r} {self.privacy.unit}; such costs cannot be added. "
                "Decide which of the two one person can change; then use plans and a ledger of that unit."
            )
        return charge(self.privacy.budget, declared, cost)

    def _check_left(self, request: Charge, content: Content) -> None:
        available = left(self.privacy.budget, total(entry.charge for entry in content.entries))
        if not request.within(available):
            raise BudgetError(self._refusal(request, available))

    def begin(self, receipt: Receipt, number: int, request: str) -> None:
        """Enter a step of a release, before its first random bit is drawn.

        Args:
            receipt: of the release.
            number: 1, 2, 3 ...
            request: fingerprint of what is asked for.

        Raises:
            LedgerError: this step was begun before, by whatever process, or one before it has no outcome; the release is sealed or absent;
                or the file cannot be written. Nothing may be drawn.
        """
        with writing(self.path, self.timeout) as connection:
            entry = self._checked_receipt(connection, receipt)
            if entry.state != "reserved":  # (J3): its steps are forgotten, so none can be told to be new
                raise LedgerError(f"Release {entry.number} in the ledger {self.path} is {entry.state}; nothing more is drawn for it.")
            steps.begin(connection, receipt.id, number, request)

    def record(self, receipt: Receipt, number: int, outcome: str) -> None:
        """Put the outcome of a step on the disk, before anybody sees it.

        Args:
            receipt: of the release.
            number: of the step, which was begun.
            outcome: as text.

        Raises:
            LedgerError: the step is not under way, or the file cannot be written. The outcome must be thrown away.
        """
        free_room(self.path, receipt.run)
        with writing(self.path, self.timeout) as connection:
            self._checked_receipt(connection, receipt)
            steps.record(connection, receipt.id, number, outcome)

    def entry_of(self, receipt: Receipt) -> Entry:
        """Read the entry that a receipt is of, as the file has it.

        Raises:
            LedgerError: the receipt is not of this ledger, another process finishes its release, or the file cannot be read.

        >>> ln.Ledger.open("/nowhere/x").entry_of(None)
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        with connected(self.path, self.timeout) as connection:
            connection.execute("BEGIN")
            return self._checked_receipt(connection, receipt)

    def pending(self, entry: Entry | Receipt) -> Pending:
        """Read what is needed to finish a release that is resumable.

        Raises:
            LedgerError: there is nothing to finish, or it is damaged, or the file cannot be read.
        """
        with connected(self.path, self.timeout) as connection:
            connection.execute("BEGIN")
            self._checked(connection)
            return steps.pending_of(connection, entry.id, self.path)

    def take_over(self, entry: Entry, run: str) -> Receipt:
        """Become the one process that finishes a release.

        Args:
            entry: resumable.
            run: from `running`.

        Raises:
            LedgerError: another process makes or finishes it, or it is not resumable any more.
        """
        with writing(self.path, self.timeout) as connection:
            now = self._checked(connection).entries[entry.number - 1]
            if now.id != entry.id or not now.resumable or is_running(self.path, now.run):
                raise LedgerError(f"Release {entry.number} in the ledger {self.path} is being finished by another process, or is finished.")
            connection.execute("UPDATE entry SET run = ? WHERE id = ?", (run, entry.id))
        return Receipt(
            id=now.id,
            dataset=self.dataset,
            plan_digest=now.plan_digest,
            output=now.output,
            charge=now.charge,
            number=now.number,
            head=now.digest,
            run=run,
        )

    def seal(self, receipt: Receipt) -> None:
        """Record that a release was published whole.

        An entry that another process has meanwhile found absent is sealed too, as it was paid for and is there now; sealing twice changes
        nothing.

        Raises:
            LedgerError: the receipt is not of this ledger, or the file cannot be written.
        """
        with writing(self.path, self.timeout) as connection:
            self._checked_receipt(connection, receipt)
            self._settle(connection, receipt.id, "sealed")

    def reconcile(self, is_published: Callable[[Entry], bool | None]) -> tuple[Entry, ...]:
        """Settle what earlier runs left unsealed: sealed if it was published, absent if it cannot be finished. No budget is given back.

        Args:
            is_published: tells for an unsealed entry whether its output is there and whole; None if that cannot be told. Called without a
                lock held.

        Returns:
            The entries that changed, as they are now.

        Raises:
            LedgerError: the file cannot be used.

        Edge cases:
            A release that another process is still making is left alone, as is one that is resumable.
        """
        found = {}
        for entry in self.entries():
            if entry.state == "sealed" or self.is_running(entry):
                continue
            published = is_published(entry)
            if published:
                found[entry.id] = "sealed"
            elif published is not None and entry.state == "reserved" and not entry.resumable:
                found[entry.id] = "absent"
        sweep(self.path)
        if not found:
            return ()
        with writing(self.path, self.timeout) as connection:
            self._checked(connection)
            for entry_id, state in found.items():
                self._settle(connection, entry_id, state)
        return tuple(entry for entry in self.entries() if entry.id in found)

    def is_running(self, entry: Entry) -> bool:
        """Whether a process is making or finishing this release now."""
        return is_running(self.path, entry.run)

    @staticmethod
    def _settle(connection: sqlite3.Connection, entry_id: str, state: str) -> None:
        # Never from sealed back to absent: its own process may have sealed it meanwhile.
        connection.execute("UPDATE entry SET state = ? WHERE id = ? AND state <> 'sealed'", (state, entry_id))
        steps.forget(connection, entry_id)

    def entries(self) -> tuple[Entry, ...]:
        """List every release that was paid for, in the order of reservation.

        Raises:
            LedgerError: the file cannot be read.
        """
        content = read(self.path, self.timeout)
        self._same(content)
        return content.entries

    def spent(self) -> Charge:
        """Add up all charges, in whatever state; exact.

        Raises:
            LedgerError: the file cannot be read.
        """
        return total(entry.charge for entry in self.entries())

    def left(self) -> Charge:
        """Subtract what is spent from the budget; exact, and no part is below zero.

        Raises:
            LedgerError: the file cannot be read.
        """
        return left(self.privacy.budget, self.spent())

    def _checked(self, connection: sqlite3.Connection) -> "Content":
        content = content_of(connection, self.path)
        self._same(content)
        return content

    def _checked_receipt(self, connection: sqlite3.Connection, receipt: Receipt) -> Entry:
        """The entry of a receipt that is of this ledger, and whose release nobody has taken over."""
        entry = next((entry for entry in self._checked(connection).entries if entry.id == receipt.id), None)
        if entry is None:
            raise LedgerError(f"The receipt {receipt.id} is not of the ledger {self.path}. Seal a release where it was reserved.")
        if entry.run != receipt.run:
            raise LedgerError(f"Release {entry.number} in the ledger {self.path} was taken over by another process, which finishes it.")
        return entry

    def _same(self, content: "Content") -> None:
        if (content.dataset, content.privacy, content.id) != (self.dataset, self.privacy, self.id):
            raise LedgerError(f"The ledger {self.path} was replaced by another one since it was opened. Open it again.")

    def _refusal(self, request: Charge, available: Charge) -> str:
        budget = self.privacy.budget
        asked, rest, lack = (charge_text(budget, one) for one in (request, available, missing(request, available)))
        advice = "Plan with at most what is left" if any((available.epsilon, available.rho)) else "Make no further release of this data set"
        return (
            f"The release asks for {asked}, but of {charge_text(budget, whole_budget(budget))} for the data set {self.dataset!r} "
            f"only {rest} is left; that is {lack} too much. Nothing was spent. {advice}, or ask the data holder."
        )


def _dump(value: Charge | Cost | Budget) -> str:
    return json.dumps(value.to_json())
