"""The ledger: the durable record of the budget a data set has spent.

One SQLite file. A release is first reserved (its charge is then spent, whatever happens), then each of its steps is begun, drawn and
recorded, then its files are written, then it is sealed. PROOFS-ledger.md has the argument.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from leastnoise._accounting import Charge, Cost, Privacy, charge_text, whole_budget
from leastnoise._check import InputError, LedgerError, html_facts, refuse
from leastnoise._kernel import _ledger_steps as steps
from leastnoise._kernel._ledger_file import Entry, append, checked_text, connected, dump, read, today, writing
from leastnoise._kernel._ledger_holder import add_spent, checked, now, request_of, set_budget
from leastnoise._kernel._ledger_limits import Limit, check_left, in_force, limits
from leastnoise._kernel._ledger_making import checked_path, checked_seconds, make, wait_for
from leastnoise._kernel._ledger_run import free_room, is_running, running, sweep
from leastnoise._kernel._ledger_steps import Pending, Receipt

_GLANCE = 0.2  # seconds to wait for another process where the ledger is only shown


@dataclass(frozen=True, slots=True, repr=False)
class Ledger:
    """The budget of one data set, on disk; made by `Ledger.create` or `Ledger.open`, and shared by any number of processes.

    Attributes:
        path: the file.
        dataset: name of the data set.
        privacy: the budget when this was opened, the unit and the neighbours; see `set_budget`.
        timeout: seconds to wait for another process's lock.
        id: 128 random bits in hexadecimal, made with the ledger.
        share: the name whose share of the budget releases take; "" if the budget is not shared out.

    Guarantees:
        A receipt is handed out only after its charge is on the disk, and only if all charges together are then within the budget in force
        (those of the period, where it is for one; those of a share within that), whatever number of processes reserve at once and wherever
        they are killed. No method gives a charge back.

    >>> folder = tempfile.TemporaryDirectory()
    >>> privacy = ln.Privacy(ln.PureDP(1))
    >>> ledger = ln.Ledger.create(Path(folder.name) / "people.ledger", "people", privacy)
    >>> receipt = ledger.reserve(cost=PureCost("1/3"), privacy=privacy.within(ln.PureDP("1/3")), plan_digest="ab12", output="out")
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
    share: str = ""

    def __repr__(self) -> str:
        return f"Ledger({', '.join(f'{name}: {text}' for name, text in self._facts())})"

    def _repr_html_(self) -> str:
        return html_facts("Ledger", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("of", self.dataset), ("protects", self.privacy.protected), ("file", str(self.path))]
        try:
            parts = [(one, f"share {one.share}: " if one.share else "") for one in replace(self, timeout=_GLANCE).limits()]
        except (LedgerError, InputError) as error:  # it is shown, also in a debugger, and does not raise
            return [*facts, ("unreadable", str(error))]
        for limit, whose in parts:
            amounts = (whole_budget(limit.budget), limit.spent, limit.left)
            most, spent, rest = (charge_text(limit.budget, one) for one in amounts)
            facts += [("budget", f"{whose}{most}{limit.period and f' a {limit.period}'}"), ("spent", spent), ("left", rest)]
        return facts

    @classmethod
    def create(cls, path: str | os.PathLike[str], dataset: str, privacy: Privacy, *, timeout: float = 30.0) -> "Ledger":
        """Make the ledger of a data set, with nothing spent.

        Args:
            path: the new file; its folder must exist.
            dataset: name of the data set, for messages and reports.
            privacy: the budget, the unit and the neighbours; of these only the size of the budget can be changed, by `set_budget`.
            timeout: seconds to wait for another process's lock.

        Raises:
            LedgerError: the file exists, or cannot be made.
            InputError: the name is empty, or ``privacy`` is something else.

        Guarantees:
            Never replaces a file, and never removes one that another process may have made. Killed midway, it leaves a hidden draft at
            most.

        >>> ln.Ledger.create("/", "people", ln.Privacy(ln.PureDP(1)))
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: / exists already, and a ledger is never replaced. Open it, or ...
        """
        file = checked_path(path)
        name = checked_text("dataset", dataset, least=1)
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        seconds = checked_seconds(timeout)
        identity = make(file, name, privacy, seconds)
        return cls(file, name, privacy, seconds, identity)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, share: str = "", timeout: float = 30.0) -> "Ledger":
        """Open the ledger of a data set.

        Args:
            path: the file.
            share: the name whose share of the budget releases take; needed to release from a ledger that has shares.
            timeout: seconds to wait for another process's lock.

        Raises:
            LedgerError: there is no such file, it is not a ledger, another version wrote it, it is damaged, or it stays locked.
            InputError: it has no such share.

        Guarantees:
            Never makes a file.

        >>> ln.Ledger.open("/nowhere/people.ledger")
        Traceback (most recent call last):
        leastnoise._check._errors.LedgerError: There is no ledger at /nowhere/people.ledger. If there was one, restore it. ...
        """
        file = checked_path(path)
        seconds = checked_seconds(timeout)
        wait_for(file, seconds)
        content = read(file, seconds)
        list(limits(content, share, today()))  # refuses a share that is not there
        return cls(file, content.dataset, content.privacy.within(in_force(content)[0][""]), seconds, content.id, share)

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
            privacy: of the plan: its budget must cover the cost; its unit and neighbours must be those of the ledger.
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
            InputError: other unit or neighbours, a declared budget that does not cover the cost, a definition this ledger cannot hold, no
                share where the budget is shared out, or a text that cannot be stored; nothing was spent.
            LedgerError: the file is damaged, locked, read-only or gone, or the disk is full. No receipt, so no release.

        Guarantees:
            What is left is computed anew from the exact fractions of all rows, and the charge is written, under one lock that shuts out all
            other writers.

        >>> privacy = ln.Privacy(ln.PureDP(1))
        >>> ledger = ln.Ledger(Path("/nowhere/x"), "people", privacy, 1.0, "")
        >>> other = ln.Privacy(ln.PureDP(1), "replace")
        >>> ledger.reserve(cost=PureCost(1), privacy=other, plan_digest="ab", output="out")
        Traceback (most recent call last):
        leastnoise._check._errors.InputError: The plan protects one row (replace), the data set 'people' one row (add_remove); ...
        """
        request = request_of(self, cost, privacy)
        texts = (checked_text("plan_digest", plan_digest), checked_text("output", output), checked_text("description", description))
        receipt_id, day = secrets.token_hex(16), today()
        values = (receipt_id, dump(request), dump(cost), dump(privacy.budget), *texts, day.isoformat())
        with writing(self.path, self.timeout) as connection:
            content = checked(connection, self)
            check_left(content, request, self.share, day)
            number = len(content.entries) + 1
            added = ("release", self.share, "")
            head = append(connection, (number, *values), content.head, "reserved", run, added)
            if plan:
                steps.enter(connection, receipt_id, plan, options)
        return Receipt(
            id=receipt_id, dataset=self.dataset, plan_digest=plan_digest, output=output, charge=request, number=number, head=head, run=run
        )

    set_budget = set_budget
    add_spent = add_spent

    def check(self, cost: Cost, privacy: Privacy) -> None:
        """Refuse what `reserve` would refuse now; nothing is written.

        Args:
            cost: of the plan.
            privacy: of the plan, whose budget it declares.

        Raises:
            BudgetError, InputError, LedgerError: as `reserve`.
        """
        request = request_of(self, cost, privacy)
        check_left(now(self), request, self.share, today())

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

    def record(self, receipt: Receipt, number: int, outcome: Iterable[str]) -> None:
        """Put the outcome of a step on the disk, before anybody sees it.

        Args:
            receipt: of the release.
            number: of the step, which was begun.
            outcome: as text, in parts.

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
            checked(connection, self)
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
            found = checked(connection, self).entries[entry.number - 1]
            if found.id != entry.id or not found.resumable or is_running(self.path, found.run):
                raise LedgerError(f"Release {entry.number} in the ledger {self.path} is being finished by another process, or is finished.")
            connection.execute("UPDATE entry SET run = ? WHERE id = ?", (run, entry.id))
        return Receipt(
            id=found.id,
            dataset=self.dataset,
            plan_digest=found.plan_digest,
            output=found.output,
            charge=found.charge,
            number=found.number,
            head=found.digest,
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
            checked(connection, self)
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
        """List every release that was paid for, and what the data holder entered, in that order.

        Raises:
            LedgerError: the file cannot be read.
        """
        return now(self).entries

    def spent(self) -> Charge:
        """Add up all charges, in whatever state; exact. Where the budget is for a period, those of the present one; of a share, its own.

        Raises:
            LedgerError: the file cannot be read.
        """
        return self.limits()[-1].spent

    def left(self) -> Charge:
        """What a release can take now: what is left of the budget, and of the share; exact, and no part is below zero.

        Raises:
            LedgerError: the file cannot be read.
        """
        parts = [limit.left for limit in self.limits()]
        return Charge(epsilon=min(p.epsilon for p in parts), delta=min(p.delta for p in parts), rho=min(p.rho for p in parts))

    def limits(self) -> tuple[Limit, ...]:
        """The budget in force, then the share's: each with what is spent of it now.

        Raises:
            LedgerError: the file cannot be read.
        """
        return tuple(limits(now(self), self.share, today()))

    def _checked_receipt(self, connection: sqlite3.Connection, receipt: Receipt) -> Entry:
        """The entry of a receipt that is of this ledger, and whose release nobody has taken over."""
        entry = next((entry for entry in checked(connection, self).entries if entry.id == receipt.id), None)
        if entry is None:
            raise LedgerError(f"The receipt {receipt.id} is not of the ledger {self.path}. Seal a release where it was reserved.")
        if entry.run != receipt.run:
            raise LedgerError(f"Release {entry.number} in the ledger {self.path} was taken over by another process, which finishes it.")
        return entry
