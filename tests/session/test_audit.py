"""Audits stay below the claimed loss, and detect noise that is too small by a quarter."""

from dataclasses import replace

import numpy as np
import pytest

import leastnoise as ln
from behind_the_wall import SAMPLERS
from leastnoise._audit import AuditResult, Pairs, _measurement_tests
from leastnoise._plan import _categories
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.kernel import KeySearch, SeededEntropy, _key_search

DOMAIN = ln.Domain(
    sex=["F", "M"], age=ln.Integers(0, 15), measures={"pay": ln.Measure("pay", 0, 100)}
)
ASKED = ln.marginals(DOMAIN, ways=2) + ln.queries(DOMAIN, age="prefix")
SUMS = ln.queries(DOMAIN, sex="identity", sum="pay") + ln.queries(DOMAIN, age="identity")
TRIALS = 10_000
CASES: dict[str, tuple[ln.Workload, ln.Privacy, str]] = {
    "Laplace": (ASKED, ln.Privacy(ln.PureDP(1)), "marginals"),
    "Laplace, replaced": (ASKED, ln.Privacy(ln.PureDP(1), "replace"), "hierarchy"),
    "Laplace, three rows": (ASKED, ln.Privacy(ln.PureDP("1/10"), "replace", "id", 3), "identity"),
    "rounded Gaussian": (ASKED, ln.Privacy(ln.ApproxDP("1/2", "1e-6")), "residual"),
    "discrete Gaussian": (ASKED, ln.Privacy(ln.ZCDP("1/2"), "replace"), "residual"),
    "discrete Gaussian, sums": (SUMS, ln.Privacy(ln.ZCDP("1/10")), "workload"),
}  # fmt: skip
# The seeds fix the verdicts. Bounds at confidence 0.999999 show that the verdicts are not due to
# chance: for fewer than one seed in a million, the audit misses the fault, or its bound on the
# correct program is above the claim.
SURE = 1 - 1e-6


def plan_of_case(case):
    workload, privacy, strategy = CASES[case]
    return ln.plan(workload, privacy, strategy=strategy)


def query(audit):
    """Return the result for the first listed queries."""
    return audit.parts[0]


def make_smaller(monkeypatch, samplers, noise):
    """Draw four fifths of the noise scale."""
    sampler = samplers[noise]
    monkeypatch.setitem(
        samplers,
        noise,
        lambda top, bottom, count, entropy: sampler(top * 4, bottom * 5, count, entropy),
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_kernel_audit_bound_is_close_below_the_claim(case):
    audit = ln.audit(plan_of_case(case), trials=TRIALS, confidence=SURE, entropy=SeededEntropy(5))
    assert audit.is_within_claim
    claimed_cost = plan_of_case(case).cost()  # the claim is the cost that is paid
    assert audit.claim == pytest.approx(
        claimed_cost.mu_squared**0.5
        if audit.measure == "mu"
        else float(getattr(claimed_cost, audit.measure))
    )
    assert 0 < audit.lower_bound <= audit.claim
    assert 0.8 * query(audit).claim < query(audit).lower_bound <= query(audit).claim


@pytest.mark.parametrize(
    "case", ["Laplace, three rows", "rounded Gaussian", "discrete Gaussian, sums"]
)
def test_noise_too_small_by_a_quarter_is_detected(monkeypatch, case):
    plan = plan_of_case(case)
    make_smaller(monkeypatch, SAMPLERS, plan.measured().noise)
    audit = ln.audit(plan, trials=TRIALS, confidence=SURE, entropy=SeededEntropy(6))
    assert not audit.is_within_claim
    assert not query(audit).is_within_claim


@pytest.mark.parametrize("noise", Noise)
def test_expected_event_fits_its_law(noise):
    """With exactly known probabilities, a query's bound is the factor itself, rounded down."""
    values = np.arange(-3.0, 9.0)
    for factor in (0.8, 1.0, 1.25):
        low, high = _measurement_tests._query_tails(noise, 5, 3)(factor, values)
        factors = _measurement_tests._smallest_factors(
            values, low, high, _measurement_tests._query_tails(noise, 5, 3)
        )
        assert (factors <= factor).all()
        assert factors.max() > factor * 0.97


def test_audit_uses_system_randomness_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    audits = [ln.audit(plan_of_case("Laplace"), trials=400) for _ in range(2)]
    assert audits[0].trials == 400
    assert audits[0] != audits[1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ApproxDP(1, "1e-6"), ln.ZCDP("1/4")])
def test_adaptive_plans_are_audited_with_guard(budget):
    plan = ln.plan(ln.queries(DOMAIN, age="prefix"), budget, strategy="dawa_levels", guard="1/100")
    audit = ln.audit(plan, guard="1/100", trials=1000, entropy=SeededEntropy(8))
    assert audit.is_within_claim
    assert 0.15 * audit.claim < audit.lower_bound <= audit.claim
    assert audit.measure == ("rho" if isinstance(budget, ln.ZCDP) else "epsilon")
    steps = "a step: all queries together", "a step: the most revealing query"
    guard = "the guard: all queries together", "the guard: the most revealing query"
    assert [part.name for part in audit.parts] == [*steps, *steps, *guard]


@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP("1/4")])
def test_guard_with_too_little_noise_is_detected(monkeypatch, budget):
    workload = ln.queries(DOMAIN, age="prefix")
    plan = ln.plan(workload, budget, strategy="identity", guard="1/10")
    assert ln.audit(plan, guard="1/10", trials=TRIALS, entropy=SeededEntropy(9)).is_within_claim
    make_smaller(monkeypatch, SAMPLERS, plan.measured().noise)
    audit = ln.audit(plan, guard="1/10", trials=TRIALS, entropy=SeededEntropy(9))
    assert not {part.name: part.is_within_claim for part in audit.parts}[
        "the guard: the most revealing query"
    ]


def test_attribute_may_have_any_name():
    workload = ln.marginals(
        ln.Domain({"trial": ["a", "b"], "trial'": ["a", "b"], "trial of the audit": ["a", "b"]}),
        ways=1,
    )
    assert ln.audit(ln.plan(workload, ln.PureDP(1)), trials=1000).trials == 1000


@pytest.mark.parametrize(
    "tables", [["month"], ["month", "store"], ["month store", "store"]], ids=str
)
@pytest.mark.parametrize("rows", [1, 2])
def test_audit_spreads_rows_of_bounded_units(tables, rows):
    domain = ln.Domain(month=ln.Integers(1, 6), store=["north", "south"])
    privacy = ln.Privacy(
        ln.ZCDP("1/2"), unit_column="id", max_rows=6, max_per_cell=ln.PerCellBound(rows, "month")
    )
    first_table, *other_tables = (
        ln.queries(domain, **dict.fromkeys(table.split(), "identity")) for table in tables
    )
    plan = ln.plan(sum(other_tables, first_table), privacy, strategy="marginals")
    worst = Pairs(plan.measured()).worst()
    assert worst.distance(2) ** 2 / 2 / worst.units**2 == pytest.approx(
        float(plan.cost().rho), rel=1e-3
    )
    assert sum(often for _, often in worst.unit_rows[0]) == 6
    assert max(often for _, often in worst.unit_rows[0]) == rows


def test_audit_fills_half_of_the_cells_of_contrasts():
    """A unit with rows in all months changes their contrasts less."""
    domain = ln.Domain(month=ln.Coded(12))
    privacy = ln.Privacy(
        ln.ZCDP("1/2"), unit_column="id", max_rows=12, max_per_cell=ln.PerCellBound(1, "month")
    )
    plan = ln.plan(ln.queries(domain, month="identity"), privacy, strategy="residual")
    worst = Pairs(plan.measured()).worst()
    assert worst.distance(2) ** 2 / 2 / worst.units**2 >= 0.9 * float(plan.cost().rho)


# --- searches for categories ----------------------------------------------------------------------

SEARCHES = {
    "Laplace": ln.Privacy(ln.ApproxDP(1, "1e-6")),
    "Laplace, replaced": ln.Privacy(ln.ApproxDP(1, "1e-6"), "replace"),
    "Gaussian, six categories": ln.Privacy(ln.ApproxDP("1/2", "1e-6"), "add_remove", "id", 6),
}
every_search = pytest.mark.parametrize("case", SEARCHES)


def searched(case):
    """Return the plan of a search for categories."""
    plan = ln.plan_categories("agent", ln.Unknown(9, longest=1), SEARCHES[case])
    assert (plan.rule.noise is Noise.ROUNDED_GAUSSIAN) == case.startswith("Gaussian")
    return plan


def rehearsed(plan, seed):
    """Return the parts of an audit by name, and the one with the largest bound."""
    trials = 6000 if plan.privacy.max_rows > 1 else 10_000
    audit = ln.audit(plan, trials=trials, confidence=SURE, entropy=SeededEntropy(seed))
    parts = {part.name: part for part in audit.parts}
    (largest,) = {"all keys that nobody else has", "all keys that others have too"} - set(parts)
    parts[largest] = AuditResult(
        name=largest,
        claim=audit.claim,
        lower_bound=audit.lower_bound,
        trials=audit.trials,
        units=audit.units,
    )
    assert audit.measure == "epsilon"
    assert audit.epsilon is None
    assert audit.is_within_claim == all(part.is_within_claim for part in parts.values())
    assert len(parts) == 3
    return parts


@every_search
def test_search_audit_bound_is_close_below_the_claim(case):
    parts = rehearsed(searched(case), 1)
    assert all(0 < part.lower_bound <= part.claim for part in parts.values())
    assert (
        parts["a key at the threshold"].lower_bound > 0.75 * parts["a key at the threshold"].claim
    )
    if case == "Laplace":  # a unit's only category is named with all of delta
        assert parts["all keys that nobody else has"].lower_bound > 0.85
    assert parts["all keys that others have too"].lower_bound > (
        0.6 if case.startswith("Laplace") else 0.1
    )


def less_noise(monkeypatch, rule):
    make_smaller(monkeypatch, _key_search._SAMPLERS, rule.noise)


def a_lower_threshold(monkeypatch, rule):
    """Make searches use three quarters of their threshold, without its proof."""
    real = KeySearch.draw
    lower = replace(rule, threshold=rule.threshold * 3 // 4)
    monkeypatch.setattr(
        KeySearch, "draw", lambda search, *arguments: real(replace(search, rule=lower), *arguments)
    )
    monkeypatch.setattr(_key_search, "keys_are_private", lambda *_: True)


@every_search
@pytest.mark.parametrize("plant_fault", [less_noise, a_lower_threshold])
def test_audit_sees_a_search_wrong_by_a_quarter(monkeypatch, case, plant_fault):
    plan = searched(case)
    plant_fault(monkeypatch, plan.rule)
    assert not rehearsed(plan, 2)["a key at the threshold"].is_within_claim


def test_rule_that_was_wrongly_proved_is_detected(monkeypatch):
    """The rule names the category of one person too often for its delta."""
    for module in (_key_search, _categories):
        monkeypatch.setattr(module, "keys_are_private", lambda *_: True)
    plan = searched("Laplace")
    parts = rehearsed(
        replace(plan, rule=replace(plan.rule, threshold=plan.rule.threshold * 3 // 4)), 4
    )
    assert parts["a key at the threshold"].is_within_claim
    assert parts["all keys that nobody else has"].lower_bound > 1.2


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_audit_refuses_a_plan_above_its_budget(neighbours):
    plan = ln.plan(
        ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.Privacy(ln.PureDP(1), neighbours)
    )
    measured = plan.measured()
    halved = replace(
        measured, blocks=tuple(replace(block, scale=block.scale / 2) for block in measured.blocks)
    )
    with pytest.raises(ln.InputError, match="cost more than their declared budget"):
        ln.audit(replace(plan, measurements=halved))


def test_other_arguments_are_refused():
    for arguments, message in (
        ({"trials": 10}, "trials must be"),
        ({"confidence": 1.0}, "confidence must be"),
    ):
        with pytest.raises(ln.InputError, match=message):
            ln.audit(plan_of_case("Laplace"), **arguments)
    with pytest.raises(ln.InputError, match="A search cannot have a guard"):
        ln.audit(searched("Laplace"), guard="1/100", trials=200)
