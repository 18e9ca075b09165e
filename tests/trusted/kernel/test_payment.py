"""The kernel draws only what the ledger's file records as paid."""

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from leastnoise._domain import Domain, Measure, Unknown
from leastnoise._trusted.accounting import (
    ZCDP,
    ApproxDP,
    KeyRule,
    Noise,
    Privacy,
    PureCost,
    PureDP,
    SeriesCost,
    keys_are_private,
)
from leastnoise._trusted.check import BudgetError, InputError, LedgerError
from leastnoise._trusted.domain import _domain, plain_json
from leastnoise._trusted.kernel import (
    KeySearch,
    LeastCost,
    Ledger,
    ReleaseContract,
    Series,
    _measure,
    _series,
    answers_from_text,
)
from leastnoise._trusted.linop import Dense, Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost, measurements_digest
from leastnoise._trusted.table import Table
from trusted.kernel.series import many_steps, measure, one_step

DOMAIN = Domain(sex=["F", "M"])
TABLE = Table(DOMAIN, {"sex": [0, 1, 1]})
TINY, ALL = Fraction(1, 1000), Fraction(1)


def plan(epsilon: Fraction) -> Measurements:
    block = Block((Factor(("sex",), Identity(2)),), 1 / epsilon)
    return Measurements(
        domain=DOMAIN,
        privacy=Privacy(PureDP(epsilon)),
        noise=Noise.DISCRETE_LAPLACE,
        blocks=(block,),
    )


def aware(epsilon: Fraction) -> ReleaseContract:
    return many_steps(DOMAIN, Privacy(PureDP(epsilon)))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger", "people", Privacy(PureDP(2)))


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*arguments: object) -> None:
        pytest.fail("something was drawn")

    monkeypatch.setattr(_measure, "draw_answers", drawn)
    monkeypatch.setattr(_series, "draw_answers", drawn)


def reserved(ledger: Ledger, made: ReleaseContract, paid: Fraction):
    """Reserve a small charge and return its receipt, as anybody can."""
    cost = SeriesCost(PureDP(paid)) if made.declared_step is None else PureCost(paid)
    return ledger.reserve(
        cost=cost,
        privacy=made.privacy.within(PureDP(paid)),
        plan_digest=made.digest(),
        output="out",
        plan=made.plan_text,
    )


@pytest.mark.parametrize(
    "made", [lambda epsilon: one_step(plan(epsilon)), aware], ids=["one step", "many steps"]
)
def test_release_continues_only_with_its_payment(
    ledger: Ledger, made: Callable[[Fraction], ReleaseContract]
) -> None:
    forged = replace(reserved(ledger, made(TINY), TINY), plan_digest=made(ALL).digest())
    for receipt in (reserved(ledger, made(ALL), TINY), forged):
        with pytest.raises(InputError, match="must belong to the payment for this plan"):
            Series.resumed(made(ALL), TABLE, ledger, receipt)
    assert (
        Series.resumed(made(TINY), TABLE, ledger, reserved(ledger, made(TINY), TINY)).left().epsilon
        == TINY
    )


@pytest.mark.parametrize("settle", ["sealed", "absent"])
def test_one_series_of_a_receipt_draws(ledger: Ledger, settle: str) -> None:
    made = aware(ALL)
    first = Series.paid(made, TABLE, ledger, output="out")
    assert first.receipt is not None
    others = [Series.resumed(made, TABLE, ledger, first.receipt) for _ in range(2)]
    if settle == "sealed":
        first.measure(plan(TINY))
        ledger.seal(first.receipt)
    else:
        ledger.begin(first.receipt, 1, "killed before its record")
        assert [entry.state for entry in ledger.reconcile(lambda _: False)] == [settle]
    for series in others:
        with pytest.raises(LedgerError, match=f"is {settle}; nothing more is drawn for it"):
            series.measure(plan(TINY))


def test_step_is_begun_on_disk_before_drawing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = Series.paid(aware(ALL), TABLE, ledger, output="out")
    (entry,) = ledger.entries()
    assert (entry.description, entry.run, ledger.pending(entry).options) == ("", "", "")
    draw, states = _series.draw_answers, []

    def watched(*arguments: object) -> object:
        states.append((len(ledger.pending(entry).steps), ledger.entries()[0].resumable))
        return draw(*arguments)

    monkeypatch.setattr(_series, "draw_answers", watched)
    for number in (1, 2):
        found = series.measure(plan(ALL / 2))
        steps = ledger.pending(entry).steps
        assert len(steps) == number
        recorded = [
            values.tolist()
            for values in answers_from_text(steps[-1].outcome, map(len, found.values))
        ]
        assert recorded == [block.tolist() for block in found.values]
    # without the rows: what is recorded is not drawn
    again = Series.resumed(aware(ALL), None, ledger, series.receipt)
    again.measure(plan(ALL / 2))
    assert [one.tolist() for one in again.measure(plan(ALL / 2)).values] == recorded
    # a step that is begun and has no outcome is never drawn again
    assert states == [
        (0, False),
        (1, False),
    ]


PLANE = Domain(sex=["F", "M"], zone=["N", "S"])
ON_PLANE = Table(PLANE, {"sex": [0, 1, 1], "zone": [0, 0, 1]})
CHOICES = [LeastCost(attributes=names, epsilon=TINY) for names in (("sex",), ("sex", "zone"))]
CHANGES = {
    "attributes": [("sex",), ("zone",), ("sex", "zone"), ("zone", "sex")],
    "epsilon": [TINY / 2],
    "penalty": [Fraction(1, 3)],
}


@pytest.mark.parametrize("choice", CHOICES, ids=lambda one: " and ".join(one.attributes))
def test_series_rejects_a_changed_choice(choice: LeastCost, ledger: Ledger) -> None:
    terms = many_steps(PLANE, Privacy(PureDP(ALL)))
    series = Series.paid(terms, ON_PLANE, ledger, output="out")
    found = series.choose(choice)
    assert [one.name for one in fields(choice)] == [*CHANGES]
    for other in (
        replace(choice, **{name: value}) for name, values in CHANGES.items() for value in values
    ):
        if other != choice:
            with pytest.raises(InputError, match="other steps than the ledger recorded"):
                Series.resumed(terms, ON_PLANE, ledger, series.receipt).choose(other)
    assert Series.resumed(terms, None, ledger, series.receipt).choose(choice) == found


def test_step_rejects_other_bounds_of_any_domain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The measure's bounds decide the charge in rho, and untrusted code writes them as text."""
    monkeypatch.setattr(
        _domain,
        "plain_json",
        lambda part: {"column": "pay"} if isinstance(part, Measure) else plain_json(part),
    )
    privacy = Privacy(ZCDP("1/2"))

    def domain(high: int) -> Domain:
        return Domain(sex=["F", "M"], measures={"pay": Measure("pay", 0, high)})

    def made(high: int) -> Measurements:
        block = Block((Factor(("sex",), Identity(2)),), Fraction(100), "pay")
        return Measurements(
            domain=domain(high),
            privacy=Privacy(ApproxDP(8, "1e-6")),
            noise=Noise.DISCRETE_GAUSSIAN,
            blocks=(block,),
        )

    def table(high: int) -> Table:
        return Table(domain(high), {"sex": [0, 1, 1]}, {"pay": [high, 3, 1]})

    ledger = Ledger.create(tmp_path / "pay.ledger", "pay", privacy)
    series = Series.paid(many_steps(domain(100), privacy), table(100), ledger, output="out")
    series.measure(made(100))
    assert measurements_digest(made(100)) == measurements_digest(made(10))
    # another query of the same cost
    alike = replace(made(100), blocks=(Block((), Fraction(100), "pay"),))
    assert cost(alike) == cost(made(100))
    for high, other in ((10, made(10)), (100, alike)):
        again = Series.resumed(
            many_steps(domain(high), privacy), table(high), ledger, series.receipt
        )
        with pytest.raises(InputError, match="other steps than the ledger recorded"):
            again.measure(other)


def test_search_rejects_a_changed_field(tmp_path: Path) -> None:
    domain = Domain(agent=Unknown(9))
    privacy = Privacy(ApproxDP(1, "1e-6"), unit_column="id", max_rows=1)
    book = Ledger.create(tmp_path / "keys.ledger", "keys", privacy)
    terms = replace(many_steps(domain, privacy), attributes=("agent",))
    rule = KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=Fraction(1), threshold=40)
    search = KeySearch(attribute="agent", rule=rule, most=9)
    table = Table.keyed(domain, "agent", ["a"], np.array([90]), unit_column="id", max_rows=1)
    series = Series.paid(terms, table, book, output="out")
    series.find(search)
    rules = [
        replace(rule, threshold=41),
        replace(rule, scale=Fraction(2), threshold=60),
        replace(rule, scale=Fraction(7, 3), threshold=60),
    ]
    rules.append(KeyRule(noise=Noise.ROUNDED_GAUSSIAN, scale=Fraction(5), threshold=60))
    for other in (replace(search, most=8), *(replace(search, rule=one) for one in rules)):
        assert keys_are_private(other.rule, privacy)
        with pytest.raises(InputError, match="other steps than the ledger recorded"):
            Series.resumed(terms, table, book, series.receipt).find(other)
    assert Series.resumed(terms, None, book, series.receipt).find(search).keys == ("a",)


@pytest.mark.usefixtures("never")
def test_series_rejects_changed_terms(ledger: Ledger) -> None:
    made = aware(ALL)
    receipt = reserved(ledger, made, ALL)
    budgets = [
        Privacy(PureDP(ALL / 2)),
        Privacy(PureDP(2 * ALL)),
        Privacy(ApproxDP(ALL, "1e-6")),
        Privacy(ZCDP(ALL)),
    ]
    units = [
        Privacy(PureDP(ALL), "replace"),
        Privacy(PureDP(ALL), unit_column="id"),
        Privacy(PureDP(ALL), unit_column="id", max_rows=2),
    ]
    for other in (
        replace(made, plan_text="another plan"),
        *(replace(made, privacy=privacy) for privacy in budgets + units),
    ):
        with pytest.raises(
            InputError, match=r"must belong to the payment for this plan|has a PureDP budget"
        ):
            Series.resumed(other, None, ledger, receipt)


def test_terms_of_other_columns_get_only_the_payment(ledger: Ledger) -> None:
    """The digest covers the planned text; other columns still spend one budget (K5)."""
    made = many_steps(PLANE, Privacy(PureDP(ALL)))
    series = Series.paid(made, ON_PLANE, ledger, output="out")
    first, second = (
        replace(CHOICES[0], attributes=(name,), epsilon=ALL / 2) for name in ("sex", "zone")
    )
    found = series.choose(first)
    other = replace(made, domain=DOMAIN, attributes=("sex",))
    with pytest.raises(InputError, match="over another domain"):
        Series.resumed(other, ON_PLANE, ledger, series.receipt)
    again = Series.resumed(other, TABLE, ledger, series.receipt)
    assert (again.choose(first), again.left().epsilon) == (found, ALL / 2)
    again.choose(replace(first, epsilon=ALL / 4))
    with pytest.raises(BudgetError, match="only epsilon = 0\\.25 of this release's budget is left"):
        again.choose(first)
    resumed = Series.resumed(made, ON_PLANE, ledger, series.receipt)
    assert resumed.choose(first) == found
    with pytest.raises(InputError, match="other steps than the ledger recorded"):
        resumed.choose(second)
    with pytest.raises(LedgerError, match="Step 2 of the release"):
        series.choose(second)


def test_repeated_only_step_gets_the_recorded_outcome(
    ledger: Ledger,
) -> None:
    paid = replace(one_step(plan(ALL)), plan_text="a plan")
    series = Series.paid(paid, TABLE, ledger, output="out")
    values = series.measure(paid.declared_step).values[0].tolist()
    with pytest.raises(InputError, match="carries out only the measurements"):
        series.measure(paid.declared_step)
    for epsilon in (ALL / 2, 2 * ALL):
        with pytest.raises(InputError, match="must belong to the payment for this plan"):
            Series.resumed(
                replace(one_step(plan(epsilon)), plan_text="a plan"), TABLE, ledger, series.receipt
            )
    alike = replace(
        plan(ALL), blocks=(Block((Factor(("sex",), Dense([[0, 1], [1, 0]])),), Fraction(1)),)
    )
    again = Series.resumed(
        replace(one_step(alike), plan_text="a plan"), TABLE, ledger, series.receipt
    )
    assert again.measure(alike).values[0].tolist() == values  # what was published; nothing is drawn


class Generous:
    """A ledger that accepts everything."""

    def reserve(self, **_: object) -> "Generous":
        return self


@pytest.mark.usefixtures("never")
def test_ledger_lookalike_pays_nothing() -> None:
    with pytest.raises(
        InputError,
        match=r"ledger must be a Ledger, from Ledger\.open or Ledger\.create; got 'Generous'",
    ):
        measure(plan(ALL), TABLE, Generous(), output="out")
    with pytest.raises(InputError, match="ledger must be a Ledger"):
        Series.paid(aware(ALL), TABLE, Generous(), output="out")


class Changing(Measurements):
    """Measures more than was paid."""


@pytest.mark.usefixtures("never")
def test_plan_lookalike_is_not_measured(ledger: Ledger) -> None:
    made = plan(ALL)
    other = Changing(domain=DOMAIN, privacy=made.privacy, noise=made.noise, blocks=made.blocks)
    with pytest.raises(
        InputError, match=r"terms must be .*; got 'Domain, Privacy, str, str, str, Changing'"
    ):
        measure(other, TABLE, ledger, output="out")
    with pytest.raises(InputError, match="measurements must be Measurements; got 'Changing'"):
        Series.paid(aware(ALL), TABLE, ledger, output="out").measure(other)


def test_plan_has_a_domain_and_a_privacy() -> None:
    made = plan(ALL)
    for changed in ({"domain": "domain"}, {"privacy": "privacy"}):
        with pytest.raises(InputError, match="of measurements must be"):
            replace(made, **changed)
        with pytest.raises(InputError, match="terms must be Domain, Privacy, three str"):
            replace(aware(ALL), **changed)


@pytest.mark.usefixtures("never")
def test_the_only_step_is_the_one_that_was_paid_for(ledger: Ledger) -> None:
    made = plan(ALL)
    series = Series.paid(one_step(made), TABLE, ledger, output="out")
    for other in (plan(TINY), replace(made)):
        with pytest.raises(InputError, match=r"measure\(\) carries out only the measurements"):
            series.measure(other)
    with pytest.raises(
        InputError, match="are not allowed in a series that declares fixed measurements"
    ):
        series.choose(LeastCost(attributes=("sex",), epsilon=TINY, penalty=Fraction(0)))
    with pytest.raises(InputError, match="must have the domain and the privacy of their series"):
        replace(one_step(made), privacy=Privacy(PureDP(TINY)))
