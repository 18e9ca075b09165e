"""The ledger: the durable record of the budget a data set has spent.

One SQLite file. A release is first reserved: its charge is then spent. Each step of the release is
begun, drawn and recorded. Then the files of the release are written, and the release is sealed.
PROOFS-ledger.md has the argument.
"""

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from leastnoise._trusted.accounting import (
    Budget,
    Charge,
    Cost,
    Privacy,
    SeriesCost,
    charge,
    left_text,
    limit_text,
    spent_text,
)
from leastnoise._trusted.check import InputError, LedgerError, html_facts, one_of, refuse, today
from leastnoise._trusted.kernel import _ledger_run as steps
from leastnoise._trusted.kernel._ledger_file import (
    PERIODS,
    Entry,
    LedgerContent,
    Limit,
    append_entry,
    budgets_in_force,
    check_left,
    check_not_below,
    check_read_in_period,
    checked_text,
    create_file,
    dump,
    hash_row,
    is_same_period,
    limits,
    open_connection,
    os_error_reason,
    read_content,
    read_ledger,
    write_transaction,
)
from leastnoise._trusted.kernel._ledger_run import Pending, Receipt
from leastnoise._trusted.kernel.helpers._run_locks import (
    free_reserved_space,
    hold_run_lock,
    is_running,
    publication_by_entry,
)

_DISPLAY_TIMEOUT = 0.2  # seconds to wait for another process if the ledger is only displayed
_CREATION_TIMEOUT = 1.0  # seconds to wait for a process that is just creating the file
_LONGEST_TIMEOUT = 86400  # seconds, one day


@dataclass(frozen=True, slots=True, repr=False)
class Ledger:
    """The record of one data set's budget and of its charges, in a file.

    `Ledger.create` or `Ledger.open` returns one; any number of processes may share the file.

    Attributes:
        path: the file.
        dataset: name of the data set.
        privacy: the unit, the neighbours, and the budget at the time when the ledger was opened;
            see `set_budget`.
        timeout: seconds to wait for another process's lock.
        id: 128 random bits in hexadecimal, drawn when the ledger is created.
        share: the name of the share from which releases are paid; "" if the budget is not divided
            into shares.

    Guarantees:
        A receipt is returned only when its charge is on the disk, and all charges together are
        within the budget in force. If the budget has periods, these are the charges of the current
        period. The charges of a share are also within the budget of the share. All this is true for
        any number of processes that reserve simultaneously, even if some are killed at any point.
        No method gives a charge back. Every method that reads or writes raises a LedgerError if the
        file cannot be used.

    >>> folder = tempfile.TemporaryDirectory()
    >>> privacy = ln.Privacy(ln.PureDP(1))
    >>> ledger = ln.Ledger.create(Path(folder.name) / "people.ledger", "people", privacy)
    >>> receipt = ledger.reserve(
    ...     cost=PureCost("1/3"),
    ...     privacy=privacy.within(ln.PureDP("1/3")),
    ...     plan_digest="ab12",
    ...     output="out",
    ... )
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
        return f"Ledger({', '.join(f'{name}: {text}' for name, text in _ledger_facts(self))})"

    def _repr_html_(self) -> str:
        """Return the main facts about the ledger as an HTML table, for notebooks."""
        return html_facts("Ledger", _ledger_facts(self))

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], dataset: str, privacy: Privacy, *, timeout: float = 30.0
    ) -> "Ledger":
        """Create the ledger of a data set, in which nothing is spent yet.

        Args:
            path: the new file; its folder must exist.
            dataset: name of the data set, for messages and reports.
            privacy: the budget, the unit and the neighbours. Only the size of the budget can be
                changed later, by `set_budget`.
            timeout: seconds to wait for another process's lock.

        Raises:
            LedgerError: the file exists or cannot be created.
            InputError: the name is empty, or ``privacy`` is not a `Privacy`.

        Guarantees:
            The call never replaces a file, and never removes a file that another process may have
            created. If the process is killed during the call, at most a hidden draft remains.

        >>> ln.Ledger.create("/", "people", ln.Privacy(ln.PureDP(1)))
        Traceback (most recent call last):
        leastnoise._trusted.check._errors.LedgerError: / is a directory; a ledger is a
        file. Name a file, such as people.ledger.
        """
        _check_path(path)
        file = Path(path)
        name = checked_text("dataset", dataset, min_length=1)
        if not isinstance(privacy, Privacy):
            raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
        seconds = _checked_seconds(timeout)
        identity = create_file(file, name, privacy, seconds)
        return cls(file, name, privacy, seconds, identity)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, share: str = "", timeout: float = 30.0
    ) -> "Ledger":
        """Open the ledger of a data set.

        Args:
            path: the file.
            share: the name of the share from which releases are paid; needed to release from a
                ledger that has shares.
            timeout: seconds to wait for another process's lock.

        Raises:
            LedgerError: there is no such file; it is not a ledger; another version wrote it; it is
                damaged; or it stays locked.
            InputError: the ledger has no such share.

        Guarantees:
            The call never creates a file.

        >>> ln.Ledger.open("/nowhere/people.ledger")
        Traceback (most recent call last):
        leastnoise._trusted.check._errors.LedgerError: There is no ledger at
        /nowhere/people.ledger. If there was one, restore it. ...
        """
        _check_path(path)
        file = Path(path)
        seconds = _checked_seconds(timeout)
        _wait_for_file(file, seconds)
        content = read_ledger(file, seconds)
        list(limits(content, share, today()))  # raises if the ledger has no such share
        return cls(
            file,
            content.dataset,
            content.privacy.within(budgets_in_force(content)[0][""]),
            seconds,
            content.id,
            share,
        )

    def running(self, reserved_bytes: int = 0) -> AbstractContextManager[str]:
        """Lock a new run of a release in a ``with`` block; yield the run's id.

        The lock is held until the ``with`` block or the process ends. The block receives the
        identifier of the run.

        Args:
            reserved_bytes: the disk space to reserve for the outcome of the release, computed from
                public sizes.

        Raises:
            LedgerError: the ledger's folder cannot be written or has too little space; nothing was
                spent.
        """
        return hold_run_lock(self.path, reserved_bytes)

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
        read_on: date | None = None,
    ) -> Receipt:
        """Charge a release to the budget, before any noise is drawn.

        Args:
            cost: the cost that the kernel computed from the plan's integers.
            privacy: the privacy that the plan declares. Its budget must cover the cost; its unit
                and neighbours must equal those in the ledger.
            plan_digest: fingerprint of the plan.
            output: where the release will be published, so that `reconcile` can look for it.
            description: one line for people.
            plan: the plan as JSON text. Another process can finish the release only with this text.
            options: the options of the release, for the process that finishes it.
            run: identification of this process, from `running`.
            read_on: the day when reading of the rows began; None if no rows were read.

        Returns:
            The receipt. The charge is on the disk before the receipt is returned.

        Raises:
            BudgetError: the ledger has less left than the charge; nothing was spent.
            InputError: the unit or the neighbours differ; the declared budget does not cover the
                cost; the ledger cannot add charges in this privacy definition; the budget is
                divided into shares, but no share is named; or a text cannot be stored. Nothing was
                spent.
            LedgerError: the file is damaged, locked, read-only or missing; the disk is full; or the
                rows were read in an earlier period of the budget. There is no receipt, so nothing
                can be released.

        Guarantees:
            A lock excludes all other writers while the remaining budget is computed anew, from the
            exact fractions of all rows, and the charge is written.

        >>> privacy = ln.Privacy(ln.PureDP(1))
        >>> ledger = ln.Ledger(Path("/nowhere/x"), "people", privacy, 1.0, "")
        >>> other = ln.Privacy(ln.PureDP(1), "replace")
        >>> ledger.reserve(cost=PureCost(1), privacy=other, plan_digest="ab", output="out")
        Traceback (most recent call last):
        leastnoise._trusted.check._errors.InputError: The plan protects one row (replace),
        the data set 'people' one row (add_remove); ...
        """
        request = self._release_charge(cost, privacy)
        texts = (
            checked_text("plan_digest", plan_digest),
            checked_text("output", output),
            checked_text("description", description),
        )
        receipt_id = secrets.token_hex(16)
        day = today()
        values = (
            receipt_id,
            dump(request),
            dump(cost),
            dump(privacy.budget),
            *texts,
            day.isoformat(),
        )
        with write_transaction(self.path, self.timeout) as connection:
            content = self._content(connection)
            if read_on is not None:
                check_read_in_period(content, read_on, day)
            check_left(content, [request], self.share, day)
            number = len(content.entries) + 1
            added = ("release", self.share, "")
            head = append_entry(connection, (number, *values), content.head, "reserved", run, added)
            if plan:
                row = (receipt_id, plan, options)
                connection.execute("INSERT INTO pending VALUES (?, ?, ?, ?)", (*row, hash_row(row)))
        return Receipt(
            id=receipt_id,
            dataset=self.dataset,
            plan_digest=plan_digest,
            output=output,
            charge=request,
            number=number,
            head=head,
            run=run,
        )

    def set_budget(
        self,
        budget: Budget,
        *,
        share: str = "",
        period: str | None = None,
        note: str = "",
        receipt: str = "",
    ) -> "Ledger":
        """Set the whole budget or the budget of a share, and record the change.

        Args:
            budget: the budget from now on, in the privacy definition of the ledger.
            share: the name of a share; the releases of this share must then stay within this budget
                and within the whole budget; "" sets the whole budget.
            period: "day", "week", "month" or "year" if the budget and all shares are renewed with
                each such period, by the day of payment (UTC); "" if they are for all times; None to
                keep the present setting.
            note: the reason, for people.
            receipt: the identifier of the entry, by which the entry is found if this call is
                interrupted. If it is empty, the call draws a new identifier.

        Returns:
            The ledger with the new budget.

        Raises:
            BudgetError: more than the new budget is already spent in one of the periods; nothing
                was changed.
            InputError: the budget has another privacy definition, or the period is for one share
                only; nothing was changed.
            LedgerError: the file cannot be used. If only the last step of the call failed, the
                change is recorded nevertheless, and `entries` contains it.

        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = ln.Ledger.create(
        ...     f"{folder.name}/people.ledger", "people", ln.Privacy(ln.PureDP(1))
        ... )
        >>> ledger.set_budget(ln.PureDP(4)).set_budget(ln.PureDP(1), share="ann").left().epsilon
        Fraction(4, 1)
        >>> folder.cleanup()
        """
        if period is not None and (share or one_of("period", period, list(PERIODS)) != period):
            raise InputError(
                "A period applies to the whole budget and to all shares; set it without a share."
            )
        texts = ("", "", checked_text("note", note), today().isoformat())
        name = checked_text("share", share)
        identity = checked_text("receipt", receipt) or secrets.token_hex(16)
        with write_transaction(self.path, self.timeout) as connection:  # (L3)
            content = self._content(connection)
            if period is None:
                each = budgets_in_force(content)[1]
            else:
                each = period
            check_not_below(content, budget, name, each)
            row = (
                len(content.entries) + 1,
                identity,
                dump(Charge()),
                dump(SeriesCost(budget)),
                dump(budget),
                *texts,
            )
            append_entry(connection, row, content.head, "sealed", "", ("budget", name, each))
        return type(self).open(self.path, share=self.share, timeout=self.timeout)

    def add_spent(
        self,
        spent: Budget | Privacy,
        cost: Cost | None = None,
        *,
        receipt: str = "",
        output: str = "",
        plan_digest: str = "",
        note: str = "",
        on: date | None = None,
    ) -> Entry:
        """Record an amount that was spent elsewhere, or before this ledger existed.

        The amount is recorded even if it exceeds the budget, because it was spent.

        Args:
            spent: the guarantee of the other releases together: a budget for the ledger's unit, or
                a Privacy whose unit is the ledger's unit.
            cost: the exact cost of one release whose plan is known; None for several releases
                within ``spent``.
            receipt: the identifier of a release that another ledger, or a newer copy of this one,
                paid for; it is recorded once.
            output: the place of that release.
            plan_digest: fingerprint of its plan.
            note: a description for people.
            on: the day of payment, which decides the period; None for today.

        Returns:
            The entry.

        Raises:
            InputError: the unit differs; this ledger cannot add the privacy definition to its
                charges; the day is in the future; or a text cannot be stored.
            LedgerError: the release is in this ledger already, or the file cannot be used. If only
                the last step of the call failed, the entry is recorded nevertheless, and `entries`
                contains it.

        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = ln.Ledger.create(
        ...     f"{folder.name}/people.ledger", "people", ln.Privacy(ln.PureDP(1))
        ... )
        >>> (
        ...     str(ledger.add_spent(ln.PureDP("1/4"), note="the tables of 2024").charge),
        ...     ledger.left().epsilon,
        ... )
        ('epsilon = 0.25', Fraction(3, 4))
        >>> folder.cleanup()
        """
        if isinstance(spent, Privacy):
            privacy = spent
        else:
            privacy = self.privacy.within(spent)
        price = SeriesCost(privacy.budget) if cost is None else cost
        request = self._release_charge(price, privacy)
        day = today() if on is None else on
        # `datetime` is a subclass of `date`, and a time of day is not a day.
        if type(day) is not date or day > today():
            raise refuse("on", str(on), "today or an earlier day, as a datetime.date")
        identity = checked_text("receipt", receipt) or secrets.token_hex(16)
        texts = (
            checked_text("plan_digest", plan_digest),
            checked_text("output", output),
            checked_text("note", note),
        )
        with write_transaction(self.path, self.timeout) as connection:
            content = self._content(connection)
            if any(entry.id == identity for entry in content.entries):
                raise LedgerError(
                    f"The ledger {self.path} already has the release {identity}; nothing was "
                    "changed."
                )
            number = len(content.entries) + 1  # (L4): compared with no budget
            values = (
                identity,
                dump(request),
                dump(price),
                dump(privacy.budget),
                *texts,
                f"{day:%Y-%m-%d}",
            )
            append_entry(
                connection, (number, *values), content.head, "sealed", "", ("spent", self.share, "")
            )
        return self._content().entries[number - 1]

    def check(self, *payments: tuple[Cost, Privacy]) -> None:
        """Raise an error if `reserve` would refuse these payments in this order.

        Nothing is written.

        Args:
            payments: in the order of payment, the exact cost of each plan with its unit, neighbours
                and declared budget. The payment of a guard comes before the payment of its release.

        Raises:
            BudgetError, InputError, LedgerError: as for `reserve`.
        """
        requests = [self._release_charge(*payment) for payment in payments]
        check_left(self._content(), requests, self.share, today())

    @staticmethod
    def check_new(dataset: str, privacy: Privacy, *payments: tuple[Cost, Privacy]) -> None:
        """Raise an error if a new ledger would refuse these payments.

        Nothing is written.

        Args:
            dataset: name of the data set, as for `create`.
            privacy: the budget, the unit and the neighbours, as for `create`.
            payments: as for `check`.

        Raises:
            BudgetError, InputError: as for `reserve`.

        >>> half = ln.Privacy(ln.PureDP("1/2"))
        >>> Ledger.check_new("people", half, (PureCost("1/4"), half), (PureCost("1/4"), half))
        Traceback (most recent call last):
        leastnoise._trusted.check._errors.BudgetError: The release requests epsilon = 0.5,
        but of epsilon = 0.5 ...
        """
        requests = [_release_charge(dataset, privacy, *payment) for payment in payments]
        check_left(LedgerContent(dataset, privacy, "", "", ()), requests, "", today())

    def begin(self, receipt: Receipt, step_number: int, step_fingerprint: str) -> None:
        """Record the beginning of a step, before its first random bit is drawn.

        Args:
            receipt: receipt of the release.
            step_number: number of the step: 1, 2, 3 ...
            step_fingerprint: fingerprint of the step.

        Raises:
            LedgerError: a process has begun this step before; an earlier step has no outcome; the
                release is sealed or absent; or the file cannot be written. The caller must not draw
                anything.
        """
        with write_transaction(self.path, self.timeout) as connection:
            self._check_drawable(connection, receipt)
            steps.begin_step(connection, receipt.id, step_number, step_fingerprint)

    def record(self, receipt: Receipt, step_number: int, outcome: Iterable[str]) -> None:
        """Write the outcome of a step to the disk, before it is returned.

        Args:
            receipt: receipt of the release.
            step_number: number of the step, which must have begun.
            outcome: the outcome as text, in parts.

        Raises:
            LedgerError: the step has not begun or has an outcome already, or the file cannot be
                written. The caller must discard the outcome.
        """
        free_reserved_space(self.path, receipt.run)
        with write_transaction(self.path, self.timeout) as connection:
            self._checked_receipt(connection, receipt)
            steps.record_step(connection, receipt.id, step_number, outcome)

    def draw(
        self,
        receipt: Receipt,
        step_number: int,
        step_fingerprint: str,
        draw_outcome: Callable[[], Any],
        write_outcome: Callable[[Any], Iterable[str]],
    ) -> Any:
        """Draw and record a repeatable step in a transaction; return its outcome.

        A repeatable step has the same outcome each time it is drawn (PROOFS-periods.md).

        Args:
            receipt: receipt of the release.
            step_number: number of the step: 1, 2, 3 ...
            step_fingerprint: fingerprint of the step.
            draw_outcome: a function that draws and returns the outcome; it is called while no other
                process can write to the ledger.
            write_outcome: a function that writes an outcome as text, in parts.

        Returns:
            The outcome.

        Raises:
            LedgerError: as for `begin` and `record`; the ledger then contains no part of the
                outcome.

        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = ln.Ledger.create(
        ...     f"{folder.name}/people.ledger", "people", ln.Privacy(ln.PureDP(1))
        ... )
        >>> receipt = ledger.reserve(
        ...     cost=PureCost(1),
        ...     privacy=ledger.privacy,
        ...     plan_digest="ab12",
        ...     output="out",
        ...     plan="{}",
        ... )
        >>> ledger.draw(receipt, 1, "counts", lambda: 7, lambda seven: [str(seven)])
        7
        >>> ledger.pending(receipt).steps[0].outcome
        '7'
        >>> folder.cleanup()
        """
        free_reserved_space(self.path, receipt.run)
        with write_transaction(self.path, self.timeout) as connection:
            self._check_drawable(connection, receipt)
            steps.begin_step(connection, receipt.id, step_number, step_fingerprint)
            outcome = draw_outcome()
            steps.record_step(connection, receipt.id, step_number, write_outcome(outcome))
        return outcome

    def check_not_periodic(self) -> None:
        """Raise if the budget begins anew with each period (L2).

        Such a budget cannot pay for a series.

        Raises:
            InputError: the budget in force is a budget for each day, week, month or year.
            LedgerError: the file cannot be read.
        """
        _, period = budgets_in_force(self._content())
        if period:
            raise InputError(
                "A series is paid once and reads the rows of later periods in later "
                f"{period}s, so it cannot be paid from a budget that begins anew every {period}. "
                f"Nothing was spent. Release each {period} with its own plan; or let the "
                "budget be for all times: `leastnoise ledger change LEDGER --per ever`."
            )

    def check_period_of(self, release: Entry | Receipt, read_on: date | None = None) -> None:
        """Raise if rows were read in another budget period than their payment (L2).

        Args:
            release: a release to be drawn from rows that were read after its payment.
            read_on: the day when reading of these rows began; None if they are not read yet.

        Raises:
            LedgerError: the budget is renewed with each period, and the period of the payment is
                over; the release belongs to another ledger; or the file cannot be read.

        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = ln.Ledger.create(
        ...     f"{folder.name}/people.ledger", "people", ln.Privacy(ln.PureDP(1))
        ... )
        >>> receipt = ledger.reserve(
        ...     cost=PureCost(1), privacy=ledger.privacy, plan_digest="ab12", output="out"
        ... )
        >>> ledger.check_period_of(receipt)
        >>> folder.cleanup()
        """
        content = self._content()
        entry = self._entry(content, release)
        _, period = budgets_in_force(content)
        days = [today()] if read_on is None else [read_on, today()]
        if not all(is_same_period(period, entry.reserved_on, day) for day in days):
            raise LedgerError(
                f"Release {entry.number} was paid on {entry.reserved_on} from a budget that begins "
                f"anew every {period}, and that {period} is over. The data may now contain other "
                "people. The loss from this release would come on top of a whole budget for them. "
                f"No noise was drawn now. The charge stays spent in its own {period}. Make the "
                f"release again, which is paid from the present {period}; a series continues when "
                "the budget is for all times again: `leastnoise ledger change LEDGER --per ever`."
            )

    def period_is_over(self, entry: Entry) -> bool:
        """Return whether the budget period in which an entry was paid is over.

        Always False if the budget is for all times.

        Raises:
            LedgerError: the file cannot be read.
        """
        _, period = budgets_in_force(self._content())
        return not is_same_period(period, entry.reserved_on, today())

    def _entry(self, content: LedgerContent, release: Entry | Receipt) -> Entry:
        """Find the entry of a release in the content of the file.

        Raises:
            LedgerError: the release belongs to another ledger.
        """
        for entry in content.entries:
            if entry.id == release.id:
                return entry
        raise LedgerError(
            f"The receipt {release.id} belongs to another ledger than {self.path}. Seal a release "
            "where it was reserved."
        )

    def entry_of(self, receipt: Receipt) -> Entry:
        """Read the entry of a receipt from the ledger's file, and return it.

        Raises:
            LedgerError: the receipt belongs to another ledger, another process finishes its
                release, or the file cannot be read.

        >>> ln.Ledger.open("/nowhere/x").entry_of(None)
        Traceback (most recent call last):
        leastnoise._trusted.check._errors.LedgerError: There is no ledger at /nowhere/x. ...
        """
        with open_connection(self.path, self.timeout) as connection:
            connection.execute("BEGIN")
            return self._checked_receipt(connection, receipt)

    def pending(self, entry: Entry | Receipt) -> Pending:
        """Return the plan, the options and the recorded steps of a resumable release.

        Raises:
            LedgerError: the release has nothing to finish, its data are damaged, or the file cannot
                be read.
        """
        with open_connection(self.path, self.timeout) as connection:
            connection.execute("BEGIN")
            self._content(connection)
            return steps.read_pending(connection, entry.id, self.path)

    def count_recorded_steps(self, entry: Entry | Receipt) -> int:
        """Count the steps of an unpublished release that have an outcome.

        Raises:
            LedgerError: the file cannot be read.
        """
        with open_connection(self.path, self.timeout) as connection:
            connection.execute("BEGIN")
            self._content(connection)
            return steps.count_recorded(connection, entry.id)

    def take_over(self, entry: Entry, run: str) -> Receipt:
        """Assign a resumable release to this run, and return its receipt.

        Args:
            entry: a resumable entry.
            run: identification of this process, from `running`.

        Raises:
            LedgerError: another process carries out or finishes the release, or it can no longer be
                resumed.
        """
        with write_transaction(self.path, self.timeout) as connection:
            current = next(
                (
                    entry_in_file
                    for entry_in_file in self._content(connection).entries
                    if entry_in_file.id == entry.id
                ),
                None,
            )
            if current is None or not current.resumable or is_running(self.path, current.run):
                raise LedgerError(
                    f"Release {entry.number} in the ledger {self.path} is being finished by "
                    "another process, or is finished."
                )
            connection.execute("UPDATE entry SET run = ? WHERE id = ?", (run, entry.id))
        return Receipt(
            id=current.id,
            dataset=self.dataset,
            plan_digest=current.plan_digest,
            output=current.output,
            charge=current.charge,
            number=current.number,
            head=current.digest,
            run=run,
        )

    def seal(self, receipt: Receipt) -> None:
        """Record that a release was published completely.

        If another process has marked the entry as absent in the meantime, the method seals it as
        well, because the release was paid for and is published now. Sealing an entry twice changes
        nothing.

        Raises:
            LedgerError: the receipt belongs to another ledger, or the file cannot be written.
        """
        with write_transaction(self.path, self.timeout) as connection:
            self._checked_receipt(connection, receipt)
            self._set_final_state(connection, receipt.id, "sealed")

    def reconcile(self, is_published: Callable[[Entry], bool | None]) -> tuple[Entry, ...]:
        """Update the state of each unsealed entry, and return the changed entries.

        An entry becomes sealed if its release is published. An entry becomes absent if its release
        cannot be finished. No budget is given back.

        Args:
            is_published: returns whether the output of an unsealed entry is published completely;
                None if that is unknown. The function is called without a lock.

        Returns:
            The changed entries, with their new states.

        Raises:
            LedgerError: the file cannot be used.

        Edge cases:
            The entry stays unchanged in two cases: another process is still carrying out its
            release, or the release can be resumed.
        """
        ended = publication_by_entry(self.path, self.entries(), is_published)
        if not ended:
            return ()
        with write_transaction(self.path, self.timeout) as connection:
            self._content(connection)
            for entry_id, published in ended.items():
                # (J3): The entry is never reserved again.
                self._set_final_state(connection, entry_id, "sealed" if published else "absent")
        return tuple(entry for entry in self.entries() if entry.id in ended)

    def is_running(self, entry: Entry) -> bool:
        """Return whether a process is carrying out or finishing a release now."""
        return is_running(self.path, entry.run)

    @staticmethod
    def _set_final_state(connection: sqlite3.Connection, entry_id: str, state: str) -> None:
        """Mark an entry as sealed or absent, and delete its steps and its plan."""
        # Never from sealed back to absent: its own process may have sealed it meanwhile.
        connection.execute(
            "UPDATE entry SET state = ? WHERE id = ? AND state <> 'sealed'", (state, entry_id)
        )
        # (J3): Only an unpublished release needs its steps and its plan.
        for table in ("pending", "step", "outcome"):
            connection.execute(f"DELETE FROM {table} WHERE id = ?", (entry_id,))  # noqa: S608 - three constants

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries of the ledger, oldest first.

        An entry is a release that was paid for, or a change that the data holder entered.

        Raises:
            LedgerError: the file cannot be read.
        """
        return self._content().entries

    def spent(self) -> Charge:
        """Return the exact sum of this budget's or share's charges, of any state.

        If the budget has periods, only the charges of the present period are added; for a share,
        only the charges of the share are added.

        Raises:
            LedgerError: the file cannot be read.
        """
        return self.limits()[-1].spent

    def left(self) -> Charge:
        """Return the exact amount that a release can spend now.

        Both the budget and the share have at least this amount left; no parameter of it is below
        zero. For an (epsilon, delta) budget, each parameter states the amount left for another kind
        of release. The mu squared is for a release with Gaussian noise, the epsilon is for a
        release under pure differential privacy, and the epsilon and the delta together are for a
        release with its own delta.

        Raises:
            LedgerError: the file cannot be read.
        """
        available = [limit.left for limit in self.limits()]
        return Charge(
            epsilon=min(charge_left.epsilon for charge_left in available),
            delta=min(charge_left.delta for charge_left in available),
            rho=min(charge_left.rho for charge_left in available),
            mu_squared=min(charge_left.mu_squared for charge_left in available),
        )

    def limits(self) -> tuple[Limit, ...]:
        """Return the whole budget in force and, if there is one, the share's budget.

        Each budget comes with the amount that has been spent from it.

        Raises:
            LedgerError: the file cannot be read.
        """
        return tuple(limits(self._content(), self.share, today()))

    def _checked_receipt(self, connection: sqlite3.Connection, receipt: Receipt) -> Entry:
        """Return the entry of a receipt; raise if another process has taken it over.

        Raises:
            LedgerError: the receipt belongs to another ledger, or another process has taken the
                release over.
        """
        entry = self._entry(self._content(connection), receipt)
        if entry.run != receipt.run:
            raise LedgerError(
                f"Release {entry.number} in the ledger {self.path} was taken over by another "
                "process, which finishes it."
            )
        return entry

    def _check_drawable(self, connection: sqlite3.Connection, receipt: Receipt) -> None:
        """Raise if no further noise may be drawn for the release of a receipt.

        Raises:
            LedgerError: as for `_checked_receipt`, or the entry is sealed or absent.
        """
        entry = self._checked_receipt(connection, receipt)
        # (J3): Its steps are deleted, so a step that was drawn before would look new.
        if entry.state != "reserved":
            raise LedgerError(
                f"Release {entry.number} in the ledger {self.path} is {entry.state}; nothing more "
                "is drawn for it."
            )

    def _content(self, connection: sqlite3.Connection | None = None) -> LedgerContent:
        """Return the content of the ledger file; raise if the file was replaced.

        Opens a new connection if none is passed.

        Raises:
            LedgerError: the file was replaced by another ledger since it was opened.
        """
        if connection is None:
            content = read_ledger(self.path, self.timeout)
        else:
            content = read_content(connection, self.path)
        if (content.dataset, content.id) != (
            self.dataset,
            self.id,
        ) or not content.privacy.same_unit(self.privacy):
            raise LedgerError(
                f"The ledger {self.path} was replaced by another one since it was opened. Open it "
                "again."
            )
        return content

    def _release_charge(self, cost: Cost, privacy: Privacy) -> Charge:
        """Return the charge of a release to the whole budget of this ledger.

        Raises an error if the privacy unit of the release differs.
        """
        return _release_charge(self.dataset, self.privacy, cost, privacy)


def _release_charge(dataset: str, dataset_privacy: Privacy, cost: Cost, privacy: Privacy) -> Charge:
    """Return the charge of a release to the whole budget of a data set.

    Raises:
        InputError: the plan has another unit, or the ledger cannot add charges in the plan's
            privacy definition to its own.
    """
    if not isinstance(privacy, Privacy):
        raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
    if not privacy.same_unit(dataset_privacy):
        raise InputError(
            f"The plan protects {privacy.protected}, the data set {dataset!r} "
            f"{dataset_privacy.protected}; these costs cannot be added up, because a cost for one "
            "unit does not bound the loss of the other. Decide which of the two units one person "
            "can change. Then use plans and a ledger of that unit."
        )
    return charge(dataset_privacy.budget, privacy.budget, cost)


def _ledger_facts(ledger: Ledger) -> list[tuple[str, str]]:
    """Return the labels and texts that are shown when a ledger is displayed.

    The method never raises an error, because debuggers call it to show the object. If the file
    cannot be read, the last fact states the reason.
    """
    facts = [
        ("data set", ledger.dataset),
        ("protects", ledger.privacy.protected),
        ("file", str(ledger.path)),
    ]
    try:
        current_limits = replace(ledger, timeout=_DISPLAY_TIMEOUT).limits()
    except (LedgerError, InputError) as error:
        return [*facts, ("unreadable", str(error))]
    for limit in current_limits:
        facts += [
            ("budget", limit_text(limit.budget, limit.period, limit.share)),
            ("spent", spent_text(limit.budget, limit.spent)),
            ("left", left_text(limit.budget, limit.left)),
        ]
    return facts


def _check_path(path: str | os.PathLike[str]) -> None:
    """Raise unless a value can be the path of a ledger's file."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise refuse("path", path, "the path of a ledger's file")


def _checked_seconds(timeout: float) -> float:
    """Return a waiting time in seconds; raise if it is out of range.

    Raises:
        InputError: the time is out of range.
    """
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, int | float)
        or not 0 <= timeout <= _LONGEST_TIMEOUT
    ):
        raise refuse("timeout", timeout, "a number of seconds from 0 to 86400")
    return float(timeout)


def _wait_for_file(file: Path, timeout: float) -> None:
    """Wait until a ledger that another process is creating has content.

    Only the status of the file is read. If the function opened and closed the file, the locks that
    another thread's connection has on it would be dropped. The content is checked later, when the
    file is opened.

    Raises:
        LedgerError: the file is missing, is a folder, cannot be read, or stays empty.
    """
    try:
        if file.is_dir():
            raise LedgerError(
                f"{file} is a folder, not a ledger. Give the path of the ledger's file."
            )
        size = file.stat().st_size
        deadline = time.monotonic() + min(timeout, _CREATION_TIMEOUT)
        while size == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
            size = file.stat().st_size
    except FileNotFoundError:
        raise LedgerError(
            f"There is no ledger at {file}. If there was one, restore it. Make one with "
            "`leastnoise ledger set` or Ledger.create."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"The ledger {file} cannot be read: {os_error_reason(error)}. Check its path and "
            "permissions."
        ) from None
    if size == 0:
        raise LedgerError(
            f"{file} is empty: it is not a ledger, or its content was lost. If it was a ledger, "
            "restore it from a copy that has all its releases."
        )
