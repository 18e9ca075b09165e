"""Describe a ledger in sections of facts, for the commands and for notebooks."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from leastnoise._facts import Fact, Section, describe
from leastnoise._pages import describe_guessing_chance, name_paid_unit
from leastnoise._trusted.accounting import (
    ApproxDP,
    format_amount,
    left_text,
    limit_text,
    spent_epsilon,
    spent_text,
)
from leastnoise._trusted.kernel import Entry, Ledger, Limit


@describe.register
def describe_ledger(ledger: Ledger, entries: Sequence[Entry] | None = None) -> tuple[Section, ...]:
    """Return sections of facts about a ledger: budgets, shares, spending, risk.

    Args:
        ledger: the ledger.
        entries: the entries of the ledger; None to read them from the file.

    Raises:
        LedgerError: the file cannot be read.
    """
    if entries is None:
        entries = ledger.entries()
    limits = ledger.limits()
    spending = (
        Fact("spent", "Spent", describe_spending(limits[-1])),
        Fact("left", "Left", left_text(limits[-1].budget, limits[-1].left)),
    )
    return (
        Section("ledger", _describe_budgets(ledger, limits)),
        Section("shares", _describe_shares(ledger, entries)),
        Section("spending", spending),
        Section("risk", (_describe_risk(ledger, limits[0]),)),
    )


def round_epsilon_up(epsilon: Fraction) -> str:
    """Format an epsilon, rounded up to four decimals."""
    return f"{ceil(epsilon * 10**4) / 10**4:.4f}"


def describe_spending(limit: Limit) -> str:
    """Format the amount spent of a budget.

    For an (epsilon, delta) budget, the text states an epsilon, which is computed from all charges
    so far. If the charges exceed the budget, there is no epsilon.
    """
    budget = limit.budget
    if not isinstance(budget, ApproxDP) or not limit.charges:
        return spent_text(budget, limit.spent)
    epsilon = spent_epsilon(budget, limit.charges)
    if epsilon is None:
        return f"{spent_text(budget, limit.spent)}, which is not within the budget"
    delta = format_amount(budget.delta, up=True)
    text = f"epsilon <= {round_epsilon_up(epsilon)} at delta = {delta}, computed after the fact"
    if limit.spent.mu_squared:
        text += f" (mu squared = {format_amount(limit.spent.mu_squared, up=True)})"
    return text


def _describe_budgets(ledger: Ledger, limits: Sequence[Limit]) -> tuple[Fact, ...]:
    """Return facts on the data set, the unit and all budgets for a release."""
    facts = [
        Fact("dataset", "Data set", ledger.dataset),
        Fact("protects", "Protects", name_paid_unit(ledger.privacy)),
    ]
    for limit in limits:
        label = "Budget"
        if limit.share:
            label = "Share"
        text = limit_text(limit.budget, limit.period, limit.share)
        facts.append(Fact("budget", label, text))
    return tuple(facts)


def _describe_shares(ledger: Ledger, entries: Sequence[Entry]) -> tuple[Fact, ...]:
    """Return a fact for each share: its budget and the remaining amount."""
    facts = []
    for name in _list_budget_shares(entries):
        limit = Ledger.open(ledger.path, share=name).limits()[-1]
        budget = limit_text(limit.budget, limit.period, name)
        left = left_text(limit.budget, limit.left)
        facts.append(Fact("share", "Share", f"{budget}; {left} is left"))
    return tuple(facts)


def _list_budget_shares(entries: Sequence[Entry]) -> list[str]:
    """List the names of the budget's shares, in the order of their first entries."""
    names = []
    for entry in entries:
        if entry.kind == "budget" and entry.share and entry.share not in names:
            names.append(entry.share)
    return names


def _describe_risk(ledger: Ledger, limit: Limit) -> Fact:
    """Return a fact on the risk if the whole budget (of one period) is spent."""
    label = "Risk"
    if limit.period:
        label = f"Risk of one {limit.period}"
    text = describe_guessing_chance(ledger.privacy.within(limit.budget), covered_part="ledger")
    return Fact("risk", label, text)
