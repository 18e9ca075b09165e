"""Entries of a data holder: budgets, shares, periods, and spending elsewhere."""

from datetime import date
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Charge,
    GaussianCost,
    Privacy,
    PureCost,
    PureDP,
    SeriesCost,
    gaussian_mu_squared,
    is_within_budget,
    largest_accepted,
    pure_mu_squared,
    share_limit,
)
from leastnoise._trusted.check import BudgetError, InputError, LedgerError
from leastnoise._trusted.kernel import Ledger, _ledger
from trusted.kernel.ledgers import ONE, take


def set_clock(monkeypatch, day):
    """Set the ledger's clock to a day."""
    monkeypatch.setattr(_ledger, "today", lambda: date.fromisoformat(day))


# --- another budget -------------------------------------------------------------------------------


def test_raised_budget_is_in_force_and_recorded(ledger):
    take(ledger, 1)
    early = Ledger.open(ledger.path)
    raised = ledger.set_budget(PureDP(3), note="asked by the board")
    assert raised.privacy.budget == PureDP(3)
    assert raised.left() == Charge(epsilon=Fraction(2))

    # A ledger that was opened before follows the file.
    take(early, 2)
    with pytest.raises(
        BudgetError, match=r"of epsilon = 3 for the data set 'people' only epsilon = 0 is left"
    ):
        take(early, "1/9")

    entry = ledger.entries()[1]
    assert entry.kind == "budget"
    assert entry.state == "sealed"
    assert entry.resumable is False
    assert (entry.declared, entry.charge) == (PureDP(3), Charge())
    assert entry.description == "asked by the board"
    assert len(entry.id) == 32
    ledger.set_budget(PureDP(4), receipt="ab12")
    assert ledger.entries()[-1].id == "ab12"


def test_budget_parts_stay_at_least_at_spending(tmp_path):
    ledger = Ledger.create(tmp_path / "a", "a", Privacy(ApproxDP(2, "1e-6")))
    take(
        ledger,
        "1/4",
        cost=GaussianCost(gaussian_mu_squared(1, "1e-6")),
        declared=ApproxDP(1, "1e-6"),
        privacy=ledger.privacy,
    )
    with pytest.raises(
        BudgetError, match=r"what is spent, mu squared = 0.0560.*; got epsilon = 1 and delta = 1e-9"
    ):
        ledger.set_budget(ApproxDP(1, "1e-9"))
    ledger.set_budget(ApproxDP(3, "1e-9")).set_budget(ApproxDP(1, "1e-6"))


def test_amount_with_delta_first_leaves_the_rest(tmp_path):
    """Rule G5 of PROOFS-mu.md: amounts with a delta are summed if they are entered first."""
    ledger = Ledger.create(tmp_path / "a", "a", Privacy(ApproxDP(1, "1e-6")))
    ledger.add_spent(ApproxDP("1/4", "5e-8"))
    ledger.add_spent(ApproxDP("1/4", "5e-8"))
    take(ledger, cost=GaussianCost("1/200"), declared=GDP("1/200"))
    assert ledger.left().mu_squared == gaussian_mu_squared("1/2", "9e-7") - Fraction(1, 200)


@pytest.mark.parametrize("share", ["1/4", "1/2", "5/8", "7/8"])
def test_late_amount_with_delta_closes_the_ledger(tmp_path, share):
    """A sum would let an adaptive choice between it and another release lose up to 2.3 delta."""
    budget = ApproxDP(1, "1e-6")
    ledger = Ledger.create(tmp_path / "a", "a", Privacy(budget))
    mu_squared = gaussian_mu_squared(1, "1e-6") * Fraction(share)
    take(ledger, cost=GaussianCost(mu_squared), declared=GDP(mu_squared))
    tiny = Fraction(1, 10**9)

    def is_accepted(delta):
        late_amount = Charge(epsilon=tiny, delta=delta)
        return is_within_budget(budget, [late_amount, Charge(mu_squared=mu_squared)])

    ledger.add_spent(ApproxDP(tiny, largest_accepted(is_accepted)))

    assert ledger.left() == Charge()
    for epsilon in (tiny, Fraction(1, 2)):
        with pytest.raises(BudgetError, match=r"entered after other charges.* Pay from a new"):
            take(ledger, epsilon)
    with pytest.raises(BudgetError, match=r"entered after other charges.* Nothing was changed"):
        ledger.set_budget(ApproxDP(100, "1/2"))


def test_pure_amounts_elsewhere_compose_in_order(tmp_path):
    """Pure amounts are not summed next to Gaussian noise, whenever they were entered."""
    remainders = []
    for is_first in (True, False):
        ledger = Ledger.create(tmp_path / f"a{is_first}", "a", Privacy(ApproxDP(1, "1e-6")))
        if is_first:
            ledger.add_spent(PureDP("1/100"))
        take(ledger, cost=GaussianCost("1/2000"), declared=GDP("1/2000"))
        if not is_first:
            ledger.add_spent(PureDP("1/100"))
        remainders.append(ledger.left())
    composed = Fraction(1, 2000) + pure_mu_squared(Fraction(1, 100))
    assert remainders[0] == remainders[1]
    assert remainders[0].mu_squared == gaussian_mu_squared(1, "1e-6") - composed
    ledger.add_spent(PureDP("8/10"))
    assert ledger.left() == Charge()
    take(ledger.set_budget(ApproxDP(6, "1e-6")), "1/10")


def test_budget_of_pairs_can_always_be_raised(tmp_path):
    ledger = Ledger.create(tmp_path / "a", "a", Privacy(ApproxDP(1, "1e-6")))
    search = ApproxDP("0.2", "5e-7")
    take(ledger, cost=SeriesCost(search), declared=search)
    ledger.add_spent(PureDP("0.01"))
    take(ledger, ledger.left().epsilon)
    for epsilon, delta in ((1, "1e-6"), (1, "1e-3"), (10, "1e-3"), (1000, "1/2")):
        ledger.set_budget(ApproxDP(epsilon, delta))
    assert ledger.left().epsilon > 0


def test_shares_and_periods_limit_mu_squared(tmp_path):
    budget = ApproxDP(1, "1e-6")
    ledger = Ledger.create(tmp_path / "a", "a", Privacy(budget)).set_budget(budget, period="month")
    ledger.set_budget(share_limit(budget, "1/4"), share="ann")
    ann = Ledger.open(ledger.path, share="ann")
    quarter = budget.share("1/4")
    take(ann, cost=GaussianCost(quarter.mu_squared), declared=quarter)
    with pytest.raises(
        BudgetError, match=r"for the share 'ann' of the data set 'a' only mu squared"
    ):
        take(ann, cost=GaussianCost(quarter.mu_squared / 2), declared=quarter)
    ann.add_spent(quarter, on=date(2020, 1, 1))  # in another month
    assert ledger.limits()[0].spent == Charge(mu_squared=quarter.mu_squared)


# --- spent before or elsewhere --------------------------------------------------------------------


def test_spending_elsewhere_adds_up_beyond_the_budget(ledger):
    entry = ledger.add_spent(PureDP("3/4"), note="the tables of 2024", on=date(2024, 5, 1))
    assert (entry.kind, entry.state) == ("spent", "sealed")
    assert str(entry.reserved_on) == "2024-05-01"
    assert entry.description == "the tables of 2024"
    assert ledger.left().epsilon == Fraction(1, 4)
    with pytest.raises(BudgetError, match=r"only epsilon = 0.25 is left"):
        take(ledger, "1/2")
    # Spending is recorded even beyond the budget.
    assert ledger.add_spent(PureDP(5), note="all else").description == "all else"
    assert ledger.spent().epsilon == Fraction(23, 4)
    assert ledger.left() == Charge()
    with pytest.raises(BudgetError, match=r"only epsilon = 0 is left"):
        take(ledger, "1/99")
    with pytest.raises(BudgetError, match=r"what is spent, epsilon = 5.75"):
        ledger.set_budget(PureDP(5))
    take(ledger.set_budget(PureDP(6)), "1/4")


def test_release_is_recorded_once_with_its_own_cost(tmp_path):
    ledger = Ledger.create(tmp_path / "z", "z", Privacy(ZCDP(1)))
    approx = Privacy(ApproxDP(1, "1e-6"))
    # The rho of a release is not known without its plan.
    with pytest.raises(InputError, match="a series of steps"):
        ledger.add_spent(approx)

    cost = GaussianCost(gaussian_mu_squared(1, "1e-6"))
    entry = ledger.add_spent(
        approx, cost, receipt="ab" * 16, output="/old/release", plan_digest="12"
    )
    assert entry.charge.rho >= cost.mu_squared / 2
    with pytest.raises(LedgerError, match=r"already has the release (ab){16}; nothing was changed"):
        ledger.add_spent(approx, cost, receipt="ab" * 16)
    assert len(ledger.entries()) == 1


# --- shares ---------------------------------------------------------------------------------------


def test_share_is_a_limit_within_the_whole(ledger):
    ledger.set_budget(PureDP("3/4"), share="ann")
    # The shares may add up to more than the whole, which limits all of them together.
    ledger.set_budget(PureDP("1/2"), share="bob")
    ann = Ledger.open(ledger.path, share="ann")
    bob = Ledger.open(ledger.path, share="bob")
    take(ann, "1/2")
    assert ann.left().epsilon == Fraction(1, 4)
    assert ann.spent().epsilon == Fraction(1, 2)
    assert bob.left().epsilon == Fraction(1, 2)
    assert bob.spent().epsilon == 0
    assert ledger.left().epsilon == Fraction(1, 2)
    assert ledger.spent().epsilon == Fraction(1, 2)
    with pytest.raises(
        BudgetError,
        match=(
            r"of epsilon = 0.75 for the share 'ann' of the data set 'people' only epsilon = 0.25 "
            r"is left"
        ),
    ):
        take(ann, "1/2")

    take(bob, "3/8")
    with pytest.raises(
        BudgetError, match=r"of epsilon = 1 for the data set 'people' only epsilon = 0.125 is left"
    ):
        take(ann, "1/4")
    assert [entry.share for entry in ledger.entries()] == ["ann", "bob", "ann", "bob"]
    with pytest.raises(BudgetError, match=r"at least what is spent, epsilon = 0.5"):
        ledger.set_budget(PureDP("1/4"), share="ann")
    assert ledger.set_budget(PureDP("1/2"), share="ann").left().epsilon == Fraction(1, 8)
    assert ann.left() == Charge()

    # Spending elsewhere may belong to a share.
    bob.add_spent(PureDP("1/16"))
    ledger.add_spent(PureDP("1/32"))
    assert bob.left().epsilon == Fraction(1, 32)
    assert ledger.left().epsilon == Fraction(1, 32)


def test_missing_or_unknown_share_takes_nothing(ledger):
    ledger.set_budget(PureDP("1/2"), share="ann")
    with pytest.raises(
        InputError,
        match=r"is divided into shares, so a release must name the share that pays: ann\.",
    ):
        take(ledger, "1/4")
    with pytest.raises(InputError, match=r"is divided into shares"):
        ledger.check((PureCost("1/4"), ONE.within(PureDP("1/4"))))
    with pytest.raises(InputError, match=r"must be a share of the ledger: ann; got 'eve'"):
        Ledger.open(ledger.path, share="eve")
    assert ledger.spent() == Charge()


# --- periods --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "inside", "outside"),
    [
        ("day", "2026-01-31", "2026-02-01"),
        ("week", "2026-02-01", "2026-02-02"),  # a Sunday and a Monday
        ("month", "2026-01-01", "2026-02-01"),
        ("year", "2026-12-31", "2027-01-01"),
    ],
)
def test_each_period_has_the_whole_budget(ledger, monkeypatch, period, inside, outside):
    ledger.set_budget(PureDP(1), period=period)
    set_clock(monkeypatch, "2026-01-31")
    take(ledger, "3/4")
    set_clock(monkeypatch, inside)
    with pytest.raises(
        BudgetError,
        match=rf"of epsilon = 1 a {period} for the data set 'people' only epsilon = 0.25 is left",
    ):
        take(ledger, "1/2")
    set_clock(monkeypatch, outside)
    assert ledger.spent() == Charge()
    assert ledger.left().epsilon == 1
    take(ledger, 1)
    # An amount counts in the period of its day.
    ledger.add_spent(PureDP("1/8"), on=date(2026, 1, 31))
    assert ledger.left().epsilon == 0
    # With the clock set back, the spending of that period counts.
    set_clock(monkeypatch, "2026-01-31")
    assert ledger.left().epsilon == Fraction(1, 8)


def test_shares_have_the_period_of_the_budget(ledger, monkeypatch):
    ledger.set_budget(PureDP(1), period="month")
    ledger.set_budget(PureDP("1/2"), share="ann")
    ann = Ledger.open(ledger.path, share="ann")
    for day in ("2026-01-05", "2026-02-05"):
        set_clock(monkeypatch, day)
        take(ann, "1/2")
        with pytest.raises(BudgetError, match=r"of epsilon = 0.5 a month for the share 'ann'"):
            take(ann, "1/4")


def test_period_may_be_left_within_the_budget(ledger, monkeypatch):
    ledger.set_budget(PureDP(1), period="month")
    for day in ("2026-01-05", "2026-02-05"):
        set_clock(monkeypatch, day)
        take(ledger, "3/4")
    with pytest.raises(BudgetError, match=r"what is spent, epsilon = 0.75; got epsilon = 0.5"):
        ledger.set_budget(PureDP("1/2"))  # a month has spent more
    with pytest.raises(BudgetError, match=r"what is spent, epsilon = 1.5; got epsilon = 1"):
        ledger.set_budget(PureDP(1), period="")
    ledger.set_budget(PureDP(2), period="")
    assert ledger.left().epsilon == Fraction(1, 2)


# --- all together ---------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "budget", "share", "spent"]),
        st.sampled_from(["1/8", "1/4", "1/2", "1", "2"]),
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 2),
    ),
    max_size=12,
)


class Payment(NamedTuple):
    amount: Fraction
    share: str
    day: str


class Rules:
    """The rules of budgets, shares and periods, recomputed from a list of payments."""

    def __init__(self, period):
        self.period = period
        self.payments: list[Payment] = []
        self.limits = {"": Fraction(1)}  # of the whole, and of each share

    def spent(self, share, day):
        """Return the spending of one share, or of all, in the period of a day."""
        amounts = [
            payment.amount
            for payment in self.payments
            if share in ("", payment.share) and (not self.period or payment.day == day)
        ]
        return sum(amounts, Fraction(0))

    def most_spent(self, share):
        """Return the largest spending of one share, or of all, in any period."""
        sums = [self.spent(share, payment.day) for payment in self.payments]
        return max(sums, default=Fraction(0))

    def allows_payment(self, amount, payer, day):
        return all(
            self.spent(share, day) + amount <= self.limits.get(share, 0) for share in {"", payer}
        )


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, period=st.sampled_from(["", "month"]))
def test_entries_keep_payments_within_every_limit(tmp_path_factory, steps, period):
    """Recompute the rules from a list that the test keeps."""
    ledger = Ledger.create(tmp_path_factory.mktemp("x") / "l", "people", ONE)
    ledger.set_budget(PureDP(1), period=period)
    rules = Rules(period)
    for kind, size, name, month in steps:
        amount = Fraction(size)
        day = f"2026-0{month + 1}-15"
        payer = name if len(rules.limits) > 1 else ""
        limited_share = name if kind == "share" else ""
        allowed = {
            "budget": amount >= rules.most_spent(limited_share),
            "share": amount >= rules.most_spent(limited_share),
            "spent": True,
            "take": rules.allows_payment(amount, payer, day),
        }[kind]
        with pytest.MonkeyPatch.context() as patch:
            set_clock(patch, day)
            try:
                if kind == "spent":
                    ledger.add_spent(PureDP(size))
                    rules.payments.append(Payment(amount, "", day))
                elif kind == "take":
                    take(Ledger.open(ledger.path, share=payer), size)
                    rules.payments.append(Payment(amount, payer, day))
                else:
                    ledger.set_budget(PureDP(size), share=limited_share)
                    rules.limits[limited_share] = amount
                assert allowed
            except BudgetError:
                assert not allowed
            except InputError:
                assert payer not in rules.limits

    recorded = sum((entry.charge.epsilon for entry in ledger.entries()), Fraction(0))
    assert recorded == sum((payment.amount for payment in rules.payments), Fraction(0))


# The last day of each period, and the first one of the next; 2027-01-01 is in week 53 of 2026.
ENDS = {
    "day": ("2026-11-29", "2026-11-30"),
    "week": ("2027-01-03", "2027-01-04"),
    "month": ("2026-11-30", "2026-12-01"),
    "year": ("2026-12-31", "2027-01-01"),
}


@pytest.mark.parametrize("period", ENDS)
@pytest.mark.parametrize("is_paid_first", [True, False])
def test_rows_are_read_in_the_period_that_pays(ledger, monkeypatch, period, is_paid_first):
    """Reading, before or after the payment, must begin and end in one period."""
    last_day, first_day = map(date.fromisoformat, ENDS[period])
    set_clock(monkeypatch, str(last_day))
    ledger.set_budget(PureDP(1), period=period)
    receipt = take(ledger, "1/9") if is_paid_first else None

    def check_read_period(began, ended):
        set_clock(monkeypatch, str(ended))
        if receipt is None:
            take(ledger, "1/9", read_on=began)
        else:
            ledger.check_period_of(receipt, began)

    check_read_period(last_day, last_day)
    days = [(last_day, first_day)]
    if receipt is not None:
        days += [(first_day, last_day), (first_day, first_day)]
    for began, ended in days:
        with pytest.raises(LedgerError, match=f"{period}"):
            check_read_period(began, ended)
    ledger.set_budget(PureDP(1), period="")
    check_read_period(last_day, first_day)
