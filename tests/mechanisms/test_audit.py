"""The audit of every mechanism: correct steps pass, and wrong noise is found.

The seeds fix the verdicts. Trials are as many as a fault needs to be seen by nineteen seeds of
twenty or more.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from leastnoise._audit import (
    Effort,
    audit_choice,
    audit_measurements,
    audit_plan,
    audit_selection,
    distinct_steps,
    enumerate_mechanism_runs,
)
from leastnoise._domain import Coded, Domain, Measure
from leastnoise._mechanisms import Search, mechanism_for
from leastnoise._plan import LinearPlan
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Privacy, PureDP
from leastnoise._trusted.kernel import (
    LeastCost,
    QuantileSelection,
    SeededEntropy,
    _measurement,
    _plane,
    _quantile_selection,
)
from leastnoise._trusted.measurements import Measurements
from leastnoise._workload import mean_queries
from mechanisms.conformance import ROWS
from mechanisms.remembered import draw_ahead

TRIALS = {"measurements": 8000, "least cost": 1200, "quantile": 4000}
RISK = 1e-4  # of a false alarm in one audit


def name_of(row):
    """Return the name of a row of the conformance kit in the output of pytest."""
    return f"{row.mechanism} {row.strategy}"


every_row = pytest.mark.parametrize(
    "row", {name_of(row): row for row in ROWS}.values(), ids=name_of
)


@cache
def prepared(row):
    """Return a row's plan and steps, found once, at a budget that draws can test."""
    mechanism = mechanism_for(row.strategy, row.workload)
    plan = mechanism.plan(row.workload, Privacy(PureDP("1/2")), Search(row.strategy))
    return plan, steps_of(plan)


def steps_of(plan):
    """Return the different steps of a plan."""
    if isinstance(plan, LinearPlan):
        return [plan.measurements]
    return list(distinct_steps(enumerate_mechanism_runs(plan, SeededEntropy(1))))


AUDITS: dict[type, tuple[str, Callable[..., Any]]] = {
    Measurements: ("measurements", lambda _, step, effort: audit_measurements(step, effort)[1]),
    LeastCost: ("least cost", audit_choice),
    QuantileSelection: ("quantile", audit_selection),
}


def sharpness_of(plan, step, seed=1, trials=None):
    """Return the kind of a step, and its certified loss over the claim: at most 1 if right."""
    kind, audit = AUDITS[type(step)]
    effort = Effort(
        trials=trials or TRIALS[kind], seconds=0.0, risk=RISK, entropy=SeededEntropy(seed)
    )
    result = audit(plan, step, effort)
    return kind, result.lower_bound / result.claim


@pytest.fixture(autouse=True)
def remembered(monkeypatch):
    """Compute the deviations of blocks once for all draws from one table."""
    results: dict[object, Any] = {}
    deviations = _plane.block_costs

    def block_costs(counts, starts):
        key = counts.tobytes(), *(level.tobytes() for level in starts)
        if key not in results:
            results[key] = deviations(counts, starts)
        return results[key]

    draw_ahead(monkeypatch, _plane)
    monkeypatch.setattr(_plane, "block_costs", block_costs)


@pytest.fixture
def too_little_noise(monkeypatch):
    """Reduce the scale of all noise to four fifths, as for an epsilon larger by a quarter."""

    def reduced(sampler):
        return lambda top, bottom, count, entropy: sampler(top * 4, bottom * 5, count, entropy)

    for noise, sampler in list(_measurement.SAMPLERS.items()):
        monkeypatch.setitem(_measurement.SAMPLERS, noise, reduced(sampler))
    monkeypatch.setattr(_quantile_selection, "geometric", reduced(_quantile_selection.geometric))
    noise_scale = _plane.noise_scale

    def reduced_scale(sensitivity, epsilon, size):
        return noise_scale(sensitivity, epsilon * Fraction(5, 4), size)

    monkeypatch.setattr(_plane, "noise_scale", reduced_scale)


@pytest.mark.slow
@every_row
def test_mechanism_passes_its_audit(row):
    audit = audit_plan(
        prepared(row)[0], None, trials=250, seconds=0.0, confidence=0.999, entropy=SeededEntropy(2)
    )
    assert audit.is_within_claim
    assert 0 < audit.lower_bound <= audit.claim
    assert all(part.claim > 0 for part in audit.parts)
    assert audit.measure == "epsilon"


@pytest.mark.slow
@every_row
def test_mechanism_steps_match_the_declared_laws(row):
    plan, steps = prepared(row)
    sharpnesses = [sharpness_of(plan, step) for step in steps]
    assert {name for name, _ in sharpnesses} == row.audited
    assert all(0.6 < factor <= 1 for _, factor in sharpnesses)


@pytest.mark.slow
@every_row
@pytest.mark.usefixtures("too_little_noise")
def test_audit_sees_a_step_wrong_by_a_quarter(row):
    plan, steps = prepared(row)
    for step in steps:
        kind, factor = sharpness_of(plan, step, 3)
        # The probability of a quantile falls faster than its scale, since fewer other cells pass.
        assert 1 < factor <= (1.5 if kind == "quantile" else 1.25), kind


def test_values_that_are_cut_at_a_wrong_limit_are_detected(monkeypatch):
    """With a limit that is a quarter too high, a row adds more than it is charged for."""
    plan, steps = prepared(next(row for row in ROWS if row.strategy == "truncated_sums"))
    measurements = [step for step in steps if isinstance(step, Measurements)]
    (sums,) = (step for step in measurements if step.blocks[0].limits is not None)
    assert sharpness_of(plan, sums)[1] <= 1
    exact_marginals = _measurement.exact_marginals

    def with_higher_limits(table, sets, summed=None, limits=None):
        if limits is not None:
            limits = (limits[0], limits[1] * 5 // 4)
        return exact_marginals(table, sets, summed, limits)

    monkeypatch.setattr(_measurement, "exact_marginals", with_higher_limits)
    assert sharpness_of(plan, sums)[1] > 1


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("1/8"), ApproxDP(1, "1e-6")], ids=str)
def test_audit_sees_wrong_ends_of_a_measure(budget, monkeypatch):
    domain = Domain(a=Coded(3), measures={"pay": Measure("pay", -10, 90)})
    workload = mean_queries(domain, "pay", by=["a"])
    plan = mechanism_for("auto", workload).plan(workload, Privacy(budget), Search("auto"))
    (step,) = steps_of(plan)
    assert isinstance(step, Measurements)
    assert any(block.ends for block in step.blocks)
    sums_of_end_distances = _measurement._sums_of_end_distances
    for factors in ((4, 1), (1, 4)):

        def multiplied(*arguments, factors=factors):
            """Multiply the distances from one of the ends by 4."""
            for name, sums in sums_of_end_distances(*arguments):
                yield name, np.repeat(factors, len(sums) // 2) * sums

        monkeypatch.setattr(_measurement, "_sums_of_end_distances", multiplied)
        effort = Effort(trials=8000, seconds=0.0, risk=RISK, entropy=SeededEntropy(1))
        results = audit_measurements(step, effort)
        assert any(result.lower_bound > result.claim for result in results)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_audit_covers_units_of_several_rows(neighbours):
    """Neighbours differ by whole units; a choice that ignores this is too sharp."""
    row = next(row for row in ROWS if row.strategy == "dawa" and row.mechanism == "Dawa")
    privacy = Privacy(PureDP(1), neighbours, "id", 2)
    plan = mechanism_for("dawa", row.workload).plan(row.workload, privacy, Search("dawa"))
    choice = next(step for step in steps_of(plan) if not isinstance(step, Measurements))
    assert sharpness_of(plan, choice, trials=300)[1] <= 1
    with pytest.MonkeyPatch.context() as patched:
        # The distance of neighbours is read as 1.
        patched.setattr(_plane, "whole", lambda *_: 1)
        assert sharpness_of(plan, choice, trials=300)[1] > 1.25
