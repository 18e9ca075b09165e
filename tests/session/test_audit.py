"""The audit stays below the claim for the kernel as built, and sees noise that is too small by a quarter, for each kind of noise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._accounting import Noise, Privacy
from leastnoise._kernel import SeededEntropy, _measure
from leastnoise._plan import Plan
from leastnoise._session import _audit

DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 15), measures={"pay": ln.Measure("pay", 0, 100)})
ASKED = ln.marginals(DOMAIN, ways=2) + ln.queries(DOMAIN, age="prefix")
SUMS = ln.queries(DOMAIN, sex="identity", sum="pay") + ln.queries(DOMAIN, age="identity")
TRIALS = 20_000
CASES: dict[str, tuple[ln.Workload, Privacy, str]] = {
    "Laplace": (ASKED, Privacy(ln.PureDP(1)), "marginals"),
    "Laplace, replaced": (ASKED, Privacy(ln.PureDP(1), "replace"), "hierarchy"),
    "Laplace, three rows": (ASKED, Privacy(ln.PureDP("1/10"), "replace", "id", 3), "identity"),
    "rounded Gaussian": (ASKED, Privacy(ln.ApproxDP("1/2", "1e-6")), "residual"),
    "discrete Gaussian": (ASKED, Privacy(ln.ZCDP("1/2"), "replace"), "residual"),
    "discrete Gaussian, sums": (SUMS, Privacy(ln.ZCDP("1/10")), "workload"),
}  # fmt: skip
# The seeds fix the verdicts. Bounds at confidence 0.999999 show how far from chance they are: that of the fault is missed, and that of the
# right program is above the claim, for fewer than one seed in a million.
SURE = 1 - 1e-6


def planned(case: str) -> Plan:
    workload, privacy, strategy = CASES[case]
    found = ln.plan(workload, privacy, strategy=strategy)
    assert isinstance(found, Plan)
    return found


def smaller(sampler: Callable[..., Any]) -> Callable[..., Any]:
    """Four fifths of the noise scale."""
    return lambda top, bottom, count, entropy: sampler(top * 4, bottom * 5, count, entropy)


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_as_built_is_below_its_claim_and_not_far(case: str) -> None:
    found = ln.audit(planned(case), trials=TRIALS, confidence=SURE, entropy=SeededEntropy(5))
    assert found.held
    assert 0 < found.lower_bound <= found.claim
    assert 0.8 * found.query_claim < found.query_lower_bound <= found.query_claim


@pytest.mark.parametrize("case", CASES)
def test_noise_too_small_by_a_quarter_is_seen(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    plan = planned(case)
    monkeypatch.setitem(_measure._SAMPLERS, plan.measured().noise, smaller(_measure._SAMPLERS[plan.measured().noise]))
    found = ln.audit(plan, trials=TRIALS, confidence=SURE, entropy=SeededEntropy(6))
    assert not found.held
    assert found.query_lower_bound > found.query_claim


def test_a_cost_that_forgets_a_factor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is charged four fifths of what it loses passes the kernel's check, and not the audit."""
    plan = planned("Laplace")
    made = plan.measured()
    less = replace(made, blocks=tuple(type(block)(block.factors, block.scale * 4 / 5) for block in made.blocks[:1]))
    cheaper = replace(plan, measurements=less)
    from leastnoise._accounting import PureCost

    claimed = PureCost(_audit.cost(less).epsilon * 2 / 3)  # type: ignore[union-attr]
    for module in (_measure, _audit):
        monkeypatch.setattr(module, "cost", lambda _: claimed)
    assert not ln.audit(cheaper, trials=TRIALS, entropy=SeededEntropy(7)).held


def test_an_event_that_fits_the_law_is_explained_by_it_alone() -> None:
    """The query's bound is the factor itself where probabilities are known exactly."""
    for mechanism in (Noise.DISCRETE_LAPLACE, Noise.DISCRETE_GAUSSIAN, Noise.ROUNDED_GAUSSIAN):
        for factor in (0.8, 1.0, 1.25):
            tail = _audit._tail(mechanism, 3 / factor)
            low, high = float(tail(np.array([6 - 5]))[0]), float(tail(np.array([6]))[0])
            assert _audit._explained(mechanism, 5, 3, low, high) == pytest.approx(factor, rel=2e-3)


def test_the_systems_randomness_is_used_and_nothing_is_written(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [ln.audit(planned("Laplace"), trials=400) for _ in range(2)]
    assert found[0].trials == 400
    assert found[0] != found[1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "message"), [({"trials": 10}, "trials must be"), ({"confidence": 1.0}, "confidence must be")])
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ln.InputError, match=message):
        ln.audit(planned("Laplace"), **arguments)


def test_data_aware_plans_are_refused() -> None:
    plan = ln.plan(ln.queries(DOMAIN, age="prefix"), ln.PureDP(1), strategy="dawa")
    with pytest.raises(ln.InputError, match="data-aware"):
        ln.audit(plan)


def test_an_attribute_may_have_any_name() -> None:
    asked = ln.marginals(ln.Domain({"trial": ["a", "b"], "trial'": ["a", "b"], "trial of the audit": ["a", "b"]}), ways=1)
    assert ln.audit(ln.plan(asked, ln.PureDP(1)), trials=1000).trials == 1000
