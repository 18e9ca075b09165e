"""The kernel draws only what the ledger's file records as paid."""

from dataclasses import fields, replace
from fractions import Fraction

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
    Series,
    _measurement,
    _series,
    answers_from_text,
)
from leastnoise._trusted.linop import Dense, Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost, measurements_digest
from leastnoise._trusted.table import Table
from trusted.kernel.series import contract_of_one_step, many_steps, measure

DOMAIN = Domain(sex=["F", "M"])
TABLE = Table(DOMAIN, {"sex": [0, 1, 1]})
TINY = Fraction(1, 1000)  # a small part of the budget
ALL = Fraction(1)


def plan(epsilon):
    """Return measurements of the sexes that cost epsilon."""
    block = Block((Factor(("sex",), Identity(2)),), 1 / epsilon)
    return Measurements(
        domain=DOMAIN,
        privacy=Privacy(PureDP(epsilon)),
        noise=Noise.DISCRETE_LAPLACE,
        blocks=(block,),
    )


def adaptive_contract(epsilon):
    return many_steps(DOMAIN, Privacy(PureDP(epsilon)))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "people.ledger", "people", Privacy(PureDP(2)))


@pytest.fixture
def no_draw_allowed(monkeypatch):
    def refuse_to_draw(*arguments):
        pytest.fail("something was drawn")

    monkeypatch.setattr(_measurement, "draw_answers", refuse_to_draw)
    monkeypatch.setattr(_series, "draw_answers", refuse_to_draw)


def reserve_for(ledger, contract, epsilon):
    """Return the receipt of a charge for this contract, which need not be its whole cost."""
    cost = SeriesCost(PureDP(epsilon)) if contract.declared_step is None else PureCost(epsilon)
    return ledger.reserve(
        cost=cost,
        privacy=contract.privacy.within(PureDP(epsilon)),
        plan_digest=contract.digest(),
        output="out",
        plan=contract.plan_text,
    )


@pytest.mark.parametrize(
    "make_contract",
    [lambda epsilon: contract_of_one_step(plan(epsilon)), adaptive_contract],
    ids=["one step", "many steps"],
)
def test_release_continues_only_with_its_payment(ledger, make_contract):
    small_contract = make_contract(TINY)
    large_contract = make_contract(ALL)
    too_small = reserve_for(ledger, large_contract, TINY)
    forged = replace(reserve_for(ledger, small_contract, TINY), plan_digest=large_contract.digest())
    for receipt in (too_small, forged):
        with pytest.raises(InputError, match="must belong to the payment for this plan"):
            Series.resumed(large_contract, TABLE, ledger, receipt)

    receipt = reserve_for(ledger, small_contract, TINY)
    assert Series.resumed(small_contract, TABLE, ledger, receipt).left().epsilon == TINY


@pytest.mark.parametrize("state", ["sealed", "absent"])
def test_one_series_of_a_receipt_draws(ledger, state):
    contract = adaptive_contract(ALL)
    paid_series = Series.paid(contract, TABLE, ledger, output="out")
    assert paid_series.receipt is not None
    resumed_series = [
        Series.resumed(contract, TABLE, ledger, paid_series.receipt) for _ in range(2)
    ]
    if state == "sealed":
        paid_series.measure(plan(TINY))
        ledger.seal(paid_series.receipt)
    else:
        ledger.begin(paid_series.receipt, 1, "killed before its record")
        assert [entry.state for entry in ledger.reconcile(lambda _: False)] == [state]
    for series in resumed_series:
        with pytest.raises(LedgerError, match=f"is {state}; nothing more is drawn for it"):
            series.measure(plan(TINY))


def test_step_is_begun_on_disk_before_drawing(ledger, monkeypatch):
    series = Series.paid(adaptive_contract(ALL), TABLE, ledger, output="out")
    (entry,) = ledger.entries()
    assert entry.description == ""
    assert entry.run == ""
    assert ledger.pending(entry).options == ""
    draw = _series.draw_answers
    states: list[tuple[int, bool]] = []

    def recorded_draw(*arguments):
        states.append((len(ledger.pending(entry).steps), ledger.entries()[0].resumable))
        return draw(*arguments)

    monkeypatch.setattr(_series, "draw_answers", recorded_draw)
    for number in (1, 2):
        observation = series.measure(plan(ALL / 2))
        steps = ledger.pending(entry).steps
        assert len(steps) == number
        recorded = [
            values.tolist()
            for values in answers_from_text(steps[-1].outcome, map(len, observation.values))
        ]
        assert recorded == [block.tolist() for block in observation.values]
    # A series without rows returns the recorded answers, without a draw.
    resumed = Series.resumed(adaptive_contract(ALL), None, ledger, series.receipt)
    resumed.measure(plan(ALL / 2))
    assert [values.tolist() for values in resumed.measure(plan(ALL / 2)).values] == recorded
    # A step that is begun and has no outcome is never drawn again.
    assert states == [(0, False), (1, False)]


PLANE = Domain(sex=["F", "M"], zone=["N", "S"])
ON_PLANE = Table(PLANE, {"sex": [0, 1, 1], "zone": [0, 0, 1]})
CHOICES = [LeastCost(attributes=names, epsilon=TINY) for names in (("sex",), ("sex", "zone"))]
CHANGES = {
    "attributes": [("sex",), ("zone",), ("sex", "zone"), ("zone", "sex")],
    "epsilon": [TINY / 2],
    "penalty": [Fraction(1, 3)],
}


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: " and ".join(choice.attributes))
def test_series_rejects_a_changed_choice(choice, ledger):
    contract = many_steps(PLANE, Privacy(PureDP(ALL)))
    series = Series.paid(contract, ON_PLANE, ledger, output="out")
    outcome = series.choose(choice)
    assert [field.name for field in fields(choice)] == [*CHANGES]

    changed_choices = [
        replace(choice, **{name: value}) for name, values in CHANGES.items() for value in values
    ]
    for changed_choice in changed_choices:
        if changed_choice != choice:
            with pytest.raises(InputError, match="other steps than the ledger recorded"):
                Series.resumed(contract, ON_PLANE, ledger, series.receipt).choose(changed_choice)
    assert Series.resumed(contract, None, ledger, series.receipt).choose(choice) == outcome


def pay_domain(high):
    return Domain(sex=["F", "M"], measures={"pay": Measure("pay", 0, high)})


def pay_table(high):
    return Table(pay_domain(high), {"sex": [0, 1, 1]}, {"pay": [high, 3, 1]})


def pay_measurements(high, *factors):
    return Measurements(
        domain=pay_domain(high),
        privacy=Privacy(ApproxDP(8, "1e-6")),
        noise=Noise.DISCRETE_GAUSSIAN,
        blocks=(Block(factors, Fraction(100), "pay"),),
    )


@pytest.fixture
def same_text_for_all_bounds(monkeypatch):
    """Leave bounds out of the text of a domain, which untrusted code writes."""

    def text_without_bounds(value):
        return {"column": "pay"} if isinstance(value, Measure) else plain_json(value)

    monkeypatch.setattr(_domain, "plain_json", text_without_bounds)


@pytest.mark.usefixtures("same_text_for_all_bounds")
def test_step_rejects_other_bounds_of_any_domain_text(tmp_path):
    """Other bounds change the step, and its charge in rho, even if its text stays the same."""
    sex = Factor(("sex",), Identity(2))
    measurements = pay_measurements(100, sex)
    other_bounds = pay_measurements(10, sex)
    other_query = pay_measurements(100)
    assert measurements_digest(other_bounds) == measurements_digest(measurements)
    assert cost(other_query) == cost(measurements)

    privacy = Privacy(ZCDP("1/2"))
    ledger = Ledger.create(tmp_path / "pay.ledger", "pay", privacy)
    contract = many_steps(pay_domain(100), privacy)
    series = Series.paid(contract, pay_table(100), ledger, output="out")
    series.measure(measurements)
    for high, changed_step in ((10, other_bounds), (100, other_query)):
        contract = many_steps(pay_domain(high), privacy)
        resumed = Series.resumed(contract, pay_table(high), ledger, series.receipt)
        with pytest.raises(InputError, match="other steps than the ledger recorded"):
            resumed.measure(changed_step)


def test_search_rejects_a_changed_field(tmp_path):
    domain = Domain(agent=Unknown(9))
    privacy = Privacy(ApproxDP(1, "1e-6"), unit_column="id", max_rows=1)
    ledger = Ledger.create(tmp_path / "keys.ledger", "keys", privacy)
    contract = replace(many_steps(domain, privacy), attributes=("agent",))
    rule = KeyRule(noise=Noise.DISCRETE_LAPLACE, scale=Fraction(1), threshold=40)
    search = KeySearch(attribute="agent", rule=rule, most=9)
    table = Table.keyed(domain, "agent", ["a"], np.array([90]), unit_column="id", max_rows=1)
    series = Series.paid(contract, table, ledger, output="out")
    series.find(search)
    rules = [
        replace(rule, threshold=41),
        replace(rule, scale=Fraction(2), threshold=60),
        replace(rule, scale=Fraction(7, 3), threshold=60),
    ]
    rules.append(KeyRule(noise=Noise.ROUNDED_GAUSSIAN, scale=Fraction(5), threshold=60))

    for changed_search in (
        replace(search, most=8),
        *(replace(search, rule=changed_rule) for changed_rule in rules),
    ):
        assert keys_are_private(changed_search.rule, privacy)
        with pytest.raises(InputError, match="other steps than the ledger recorded"):
            Series.resumed(contract, table, ledger, series.receipt).find(changed_search)
    assert Series.resumed(contract, None, ledger, series.receipt).find(search).keys == ("a",)


@pytest.mark.usefixtures("no_draw_allowed")
def test_series_rejects_changed_terms(ledger):
    contract = adaptive_contract(ALL)
    receipt = reserve_for(ledger, contract, ALL)
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

    for changed_contract in (
        replace(contract, plan_text="another plan"),
        *(replace(contract, privacy=privacy) for privacy in budgets + units),
    ):
        with pytest.raises(
            InputError, match=r"must belong to the payment for this plan|has a PureDP budget"
        ):
            Series.resumed(changed_contract, None, ledger, receipt)


def test_terms_of_other_columns_get_only_the_payment(ledger):
    """The digest covers the planned text; other columns still spend one budget (K5)."""
    contract = many_steps(PLANE, Privacy(PureDP(ALL)))
    series = Series.paid(contract, ON_PLANE, ledger, output="out")
    first_choice = replace(CHOICES[0], attributes=("sex",), epsilon=ALL / 2)
    second_choice = replace(CHOICES[0], attributes=("zone",), epsilon=ALL / 2)
    outcome = series.choose(first_choice)
    other_contract = replace(contract, domain=DOMAIN, attributes=("sex",))
    with pytest.raises(InputError, match="with another domain"):
        Series.resumed(other_contract, ON_PLANE, ledger, series.receipt)

    resumed_series = Series.resumed(other_contract, TABLE, ledger, series.receipt)
    assert resumed_series.choose(first_choice) == outcome
    assert resumed_series.left().epsilon == ALL / 2

    resumed_series.choose(replace(first_choice, epsilon=ALL / 4))
    with pytest.raises(BudgetError, match="only epsilon = 0\\.25 of this release's budget is left"):
        resumed_series.choose(first_choice)
    resumed = Series.resumed(contract, ON_PLANE, ledger, series.receipt)
    assert resumed.choose(first_choice) == outcome
    with pytest.raises(InputError, match="other steps than the ledger recorded"):
        resumed.choose(second_choice)
    with pytest.raises(LedgerError, match="Step 2 of the release"):
        series.choose(second_choice)


def contract_for(measurements):
    return replace(contract_of_one_step(measurements), plan_text="a plan")


def test_repeated_only_step_gets_the_recorded_outcome(ledger):
    contract = contract_for(plan(ALL))
    series = Series.paid(contract, TABLE, ledger, output="out")
    values = series.measure(contract.declared_step).values[0].tolist()
    with pytest.raises(InputError, match="carries out only the measurements"):
        series.measure(contract.declared_step)
    for epsilon in (ALL / 2, 2 * ALL):
        with pytest.raises(InputError, match="must belong to the payment for this plan"):
            Series.resumed(contract_for(plan(epsilon)), TABLE, ledger, series.receipt)

    # Cells in the other order have the same cost and the same text of the plan.
    swapped_cells = Block((Factor(("sex",), Dense([[0, 1], [1, 0]])),), Fraction(1))
    other_step = replace(plan(ALL), blocks=(swapped_cells,))
    resumed = Series.resumed(contract_for(other_step), TABLE, ledger, series.receipt)
    # The series returns the published values, without a draw.
    assert resumed.measure(other_step).values[0].tolist() == values


class Generous:
    """A ledger that accepts everything."""

    def reserve(self, **_):
        return self


@pytest.mark.usefixtures("no_draw_allowed")
def test_ledger_lookalike_pays_nothing():
    with pytest.raises(
        InputError,
        match=r"ledger must be a Ledger, from Ledger\.open or Ledger\.create; got 'Generous'",
    ):
        measure(plan(ALL), TABLE, Generous(), output="out")
    with pytest.raises(InputError, match="ledger must be a Ledger"):
        Series.paid(adaptive_contract(ALL), TABLE, Generous(), output="out")


class Changing(Measurements):
    """Measures more than was paid."""


@pytest.mark.usefixtures("no_draw_allowed")
def test_plan_lookalike_is_not_measured(ledger):
    measurements = plan(ALL)
    lookalike = Changing(
        domain=DOMAIN,
        privacy=measurements.privacy,
        noise=measurements.noise,
        blocks=measurements.blocks,
    )

    with pytest.raises(
        InputError, match=r"contract must be .*; got 'Domain, Privacy, str, str, str, Changing'"
    ):
        measure(lookalike, TABLE, ledger, output="out")
    with pytest.raises(InputError, match="measurements must be Measurements; got 'Changing'"):
        Series.paid(adaptive_contract(ALL), TABLE, ledger, output="out").measure(lookalike)


def test_plan_has_a_domain_and_a_privacy():
    measurements = plan(ALL)
    for changed in ({"domain": "domain"}, {"privacy": "privacy"}):
        with pytest.raises(InputError, match="of measurements must be"):
            replace(measurements, **changed)
        with pytest.raises(InputError, match="contract must be Domain, Privacy, three str"):
            replace(adaptive_contract(ALL), **changed)


@pytest.mark.usefixtures("no_draw_allowed")
def test_the_only_step_is_the_one_that_was_paid_for(ledger):
    measurements = plan(ALL)
    series = Series.paid(contract_of_one_step(measurements), TABLE, ledger, output="out")

    for other_step in (plan(TINY), replace(measurements)):
        with pytest.raises(InputError, match=r"measure\(\) carries out only the measurements"):
            series.measure(other_step)
    with pytest.raises(
        InputError, match="are not allowed in a series that declares fixed measurements"
    ):
        series.choose(LeastCost(attributes=("sex",), epsilon=TINY, penalty=Fraction(0)))
    with pytest.raises(InputError, match="must have the domain and the privacy of their series"):
        replace(contract_of_one_step(measurements), privacy=Privacy(PureDP(TINY)))
