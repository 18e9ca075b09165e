"""What may be spent now, a function of a ledger's entries: the budget in force, the shares of it, and the period that it is for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from leastnoise._accounting import Budget, Charge, charge_text, left, missing, total, whole_budget
from leastnoise._check import BudgetError, InputError
from leastnoise._kernel._ledger_file import PERIODS, Content


@dataclass(frozen=True, slots=True)
class Limit:
    """One of the budgets that a release must be within.

    Attributes:
        share: its name; "" for the whole.
        budget: in force.
        period: for which it is; "" for all times.
        spent: of it, in the period of the day asked for.
    """

    share: str
    budget: Budget
    period: str
    spent: Charge

    @property
    def left(self) -> Charge:
        """What may still be spent; no part is below zero."""
        return left(self.budget, self.spent)


def in_force(content: Content) -> tuple[dict[str, Budget], str]:
    """The budget of the whole, under the name "", and of every share; and the period for which they hold."""
    budgets, period = {"": content.privacy.budget}, ""
    for entry in content.entries:
        if entry.kind == "budget":
            budgets[entry.share] = entry.declared
            period = entry.period if entry.share == "" else period
    return budgets, period


def spent_of(content: Content, share: str, period: str, day: date) -> Charge:
    """(L2): all charges of a share, or of all with the name "", in the period that a day is in."""
    this = day.strftime(PERIODS[period])
    return total(
        entry.charge for entry in content.entries if share in ("", entry.share) and entry.reserved_on.strftime(PERIODS[period]) == this
    )


def limits(content: Content, share: str, day: date) -> Iterator[Limit]:
    """The limit of the whole, then that of a share if it has a name.

    Raises:
        InputError: there is no such share.
    """
    budgets, period = in_force(content)
    if share not in budgets:
        known = ", ".join(sorted(filter(None, budgets))) or "none yet"
        raise InputError(
            f"The share must be one of the ledger's, which are: {known}; got {share!r}. Give it a budget with `leastnoise ledger share`."
        )
    for name in dict.fromkeys(("", share)):
        yield Limit(name, budgets[name], period, spent_of(content, name, period, day))


def check_left(content: Content, request: Charge, share: str, day: date) -> None:
    """(L1): refuse what is not within every limit.

    Raises:
        BudgetError: less is left; the message says of what.
        InputError: the budget is shared out, and no share or an unknown one is named.
    """
    budgets, _ = in_force(content)
    if len(budgets) > 1 and not share:
        raise InputError(
            f"The budget of the data set {content.dataset!r} is shared out, and a release must name the share that pays: "
            f"{', '.join(sorted(filter(None, budgets)))}. Say --share NAME, or Ledger.open(path, share=NAME). Nothing was spent."
        )
    for limit in limits(content, share, day):
        if not request.within(limit.left):
            rest = limit.left
            asked, there, lack, most = (
                charge_text(limit.budget, one) for one in (request, rest, missing(request, rest), whole_budget(limit.budget))
            )
            each = f" a {limit.period}" if limit.period else ""
            whose = f"the share {limit.share!r} of the data set" if limit.share else "the data set"
            advice = "Plan with at most what is left" if any((rest.epsilon, rest.rho)) else "Make no further release of this data set"
            raise BudgetError(
                f"The release asks for {asked}, but of {most}{each} for {whose} {content.dataset!r} only {there} is left; "
                f"that is {lack} too much. Nothing was spent. {advice}, or ask the data holder."
            )


def check_not_below(content: Content, budget: Budget, share: str, period: str) -> None:
    """Refuse a new budget that is of another definition, or below what is spent of it in some period.

    Raises:
        InputError: another definition.
        BudgetError: more is spent.
    """
    if type(budget) is not type(content.privacy.budget):
        raise InputError(
            f"The budget must stay of the definition {type(content.privacy.budget).__name__}, in which the entries are added up; "
            f"got {budget!r}. Nothing was changed."
        )
    for day in {entry.reserved_on for entry in content.entries}:
        spent = spent_of(content, share, period, day)
        if not spent.within(whole_budget(budget)):
            raise BudgetError(
                f"The budget must be at least what is spent, which is {charge_text(budget, spent)}; "
                f"got {charge_text(budget, whole_budget(budget))}. Nothing was changed."
            )
