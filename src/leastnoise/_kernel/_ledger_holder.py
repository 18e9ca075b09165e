"""What the data holder enters into a ledger, and what every use of one checks first: that it is the one that was opened."""

import secrets
import sqlite3
from datetime import date
from typing import TYPE_CHECKING

from leastnoise._accounting import Budget, Charge, Cost, Privacy, SeriesCost, charge
from leastnoise._check import InputError, LedgerError, one_of, refuse
from leastnoise._kernel._ledger_file import PERIODS, Content, Entry, append, checked_text, content_of, dump, read, today, writing
from leastnoise._kernel._ledger_limits import check_not_below, in_force

if TYPE_CHECKING:
    from leastnoise._kernel._ledger import Ledger


def checked(connection: sqlite3.Connection, ledger: "Ledger") -> Content:
    """The content, if it is still that of the ledger that was opened."""
    return _same(content_of(connection, ledger.path), ledger)


def now(ledger: "Ledger") -> Content:
    """The same, in a connection of its own."""
    return _same(read(ledger.path, ledger.timeout), ledger)


def _same(content: Content, ledger: "Ledger") -> Content:
    if (content.dataset, content.id) != (ledger.dataset, ledger.id) or not content.privacy.same_unit(ledger.privacy):
        raise LedgerError(f"The ledger {ledger.path} was replaced by another one since it was opened. Open it again.")
    return content


def request_of(ledger: "Ledger", cost: Cost, privacy: Privacy) -> Charge:
    """What a release of this cost takes from the ledger.

    Raises:
        InputError: another unit, or a definition that cannot be added up there.
    """
    if not isinstance(privacy, Privacy):
        raise refuse("privacy", privacy, "a Privacy, such as Privacy(PureDP(1))")
    if not privacy.same_unit(ledger.privacy):
        raise InputError(
            f"The plan protects {privacy.protected}, the data set {ledger.dataset!r} {ledger.privacy.protected}; "
            "such costs cannot be added: what is lost by a change of the one kind bounds nothing for a change of the other. "
            "Decide which of the two one person can change; then use plans and a ledger of that unit."
        )
    return charge(ledger.privacy.budget, privacy.budget, cost)


def set_budget(
    ledger: "Ledger", budget: Budget, *, share: str = "", period: str | None = None, note: str = "", receipt: str = ""
) -> "Ledger":
    """Change the budget, or give a name its share of it; recorded like a release.

    Args:
        ledger: whose data holder decides it.
        budget: from now on; of the definition that the ledger has.
        share: a name. What is spent under it is then within this budget as well as within the whole; "" for the whole.
        period: "day", "week", "month" or "year" if the budget and all shares are anew for each of these, by the day of payment (UTC);
            "" if they are for all times; None to leave that as it is.
        note: why, for people.
        receipt: identification of the entry, by which to look for it if this does not end; made if there is none.

    Returns:
        The ledger as it is now.

    Raises:
        BudgetError: more is spent, in one of the periods; nothing was changed.
        InputError: another definition, or a period of a share alone; nothing was changed.
        LedgerError: the file cannot be used; after a failure at its end, `entries` has the change.

    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = ln.Ledger.create(f"{folder.name}/people.ledger", "people", ln.Privacy(ln.PureDP(1)))
    >>> ledger.set_budget(ln.PureDP(4)).set_budget(ln.PureDP(1), share="ann").left().epsilon
    Fraction(4, 1)
    >>> folder.cleanup()
    """
    if period is not None and (share or one_of("period", period, list(PERIODS)) != period):
        raise InputError("A period is that of the whole budget, and of all shares with it; set it without a share.")
    texts = ("", "", checked_text("note", note), today().isoformat())
    name, identity = checked_text("share", share), checked_text("receipt", receipt) or secrets.token_hex(16)
    with writing(ledger.path, ledger.timeout) as connection:  # (L3)
        content = checked(connection, ledger)
        each = in_force(content)[1] if period is None else period
        check_not_below(content, budget, name, each)
        row = (len(content.entries) + 1, identity, dump(Charge()), dump(SeriesCost(budget)), dump(budget), *texts)
        append(connection, row, content.head, "sealed", "", ("budget", name, each))
    return type(ledger).open(ledger.path, share=ledger.share, timeout=ledger.timeout)


def add_spent(
    ledger: "Ledger",
    spent: Budget | Privacy,
    cost: Cost | None = None,
    *,
    receipt: str = "",
    output: str = "",
    plan_digest: str = "",
    note: str = "",
    on: date | None = None,
) -> Entry:
    """Record what was spent before this ledger, or elsewhere. It is not refused if it is above the budget: it is spent.

    Args:
        ledger: of the same data.
        spent: what the other releases together promise: a budget for the ledger's unit, or a Privacy, which must have that unit.
        cost: of a release whose plan is known; None for what a series of releases within ``spent`` costs.
        receipt: identification of a release that another ledger, or a newer copy of this one, paid; it is recorded once.
        output: where that release is.
        plan_digest: fingerprint of its plan.
        note: what it was, for people.
        on: the day, which says the period; None for today.

    Returns:
        The entry.

    Raises:
        InputError: another unit, a definition that cannot be added up here, a day to come, or a text that cannot be stored.
        LedgerError: the release is in this ledger already, or the file cannot be used; after a failure at its end, `entries` has it.

    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = ln.Ledger.create(f"{folder.name}/people.ledger", "people", ln.Privacy(ln.PureDP(1)))
    >>> str(ledger.add_spent(ln.PureDP("1/4"), note="the tables of 2024").charge), ledger.left().epsilon
    ('epsilon = 0.25', Fraction(3, 4))
    >>> folder.cleanup()
    """
    privacy = spent if isinstance(spent, Privacy) else ledger.privacy.within(spent)
    price = SeriesCost(privacy.budget) if cost is None else cost
    request = request_of(ledger, price, privacy)
    day = today() if on is None else on
    if not isinstance(day, date) or day > today():
        raise refuse("on", str(on), "a day that is not to come, as a datetime.date")
    identity = checked_text("receipt", receipt) or secrets.token_hex(16)
    texts = (checked_text("plan_digest", plan_digest), checked_text("output", output), checked_text("note", note))
    with writing(ledger.path, ledger.timeout) as connection:
        content = checked(connection, ledger)
        if any(entry.id == identity for entry in content.entries):
            raise LedgerError(f"The ledger {ledger.path} knows the release {identity} already; nothing was changed.")
        number = len(content.entries) + 1  # (L4): compared with no budget
        values = (identity, dump(request), dump(price), dump(privacy.budget), *texts, f"{day:%Y-%m-%d}")
        append(connection, (number, *values), content.head, "sealed", "", ("spent", ledger.share, ""))
    return now(ledger).entries[number - 1]
