"""The conformance kit of mechanisms, from the plan to answers that are read back."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from leastnoise._mechanisms import (
    BY_NAME,
    MECHANISMS,
    Search,
    mechanism_for,
    mechanism_of,
    release_contract,
)
from leastnoise._plan import AdaptivePlan, Plan, Step, StepChoice
from leastnoise._session import outcome_from_json
from leastnoise._texts import LANGUAGES, list_sentences, load_catalogue
from leastnoise._trusted.accounting import Privacy, PureDP, parameters_by_name
from leastnoise._trusted.check import BudgetError, InputError
from leastnoise._trusted.kernel import Ledger, SeededEntropy, Series, UnpaidSeries
from mechanisms.conformance import ROWS, Row
from mechanisms.running import run, stored_outcome

CASES = [(row, budget) for row in ROWS for budget in row.budgets]


def name_of(parameter):
    """Return the name of a row or of a budget in the report of pytest."""
    return (
        f"{parameter.mechanism} {parameter.strategy}"
        if isinstance(parameter, Row)
        else str(parameter)
    )


every_case = pytest.mark.parametrize(("row", "budget"), CASES, ids=name_of)
every_row = pytest.mark.parametrize("row", ROWS, ids=name_of)


@cache
def plan_of(row, budget):
    return mechanism_for(row.strategy, row.workload).plan(
        row.workload, Privacy(budget), Search(row.strategy)
    )


def test_every_mechanism_has_a_row_and_every_name():
    assert {row.mechanism for row in ROWS} == {type(mechanism).__name__ for mechanism in MECHANISMS}
    assert {row.strategy for row in ROWS if row.looks} == set(BY_NAME)
    for mechanism in MECHANISMS:
        name = type(mechanism).__name__
        findings = {finding.__name__ for finding in mechanism.findings} or {"Finding"}
        assert {row.finding for row in ROWS if row.mechanism == name} == findings, (
            f"Add a row for each finding of {name} to tests/mechanisms/rows_NAME.py."
        )
    for row in ROWS:
        assert type(mechanism_for(row.strategy, row.workload)).__name__ == row.mechanism


@every_case
def test_adaptive_plan_is_public_and_read_back(row, budget):
    plan = plan_of(row, budget)
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.privacy.budget == budget
    assert plan.strategy == row.strategy
    assert isinstance(plan, AdaptivePlan) == row.looks
    assert (plan.data_independent_error is None) == row.looks
    explanation = mechanism_of(plan).explain(plan)
    assert bool(explanation.steps) == row.looks
    assert (explanation.expected_error is None) == row.looks
    assert json.dumps([step.to_json() for step in explanation.steps])


def list_step_keys(steps):
    """Return the keys of the texts of steps and of their alternatives.

    A step whose name has blanks, such as a step for a quantile, is shown by its name.
    """
    keys = []
    for step in steps:
        if isinstance(step, StepChoice):
            for case, case_steps in step.cases:
                keys += [f"plan_case_{case}", *list_step_keys(case_steps)]
        elif " " not in step.name:
            keys.append(f"plan_step_{step.name}")
    return keys


@every_case
def test_every_step_has_its_text(row, budget):
    """The command `plan` shows the steps of a plan before anything is paid."""
    plan = plan_of(row, budget)
    missing = set(list_step_keys(mechanism_of(plan).explain(plan).steps))
    missing -= {*list_sentences("en")}
    assert not missing, (
        f"{row.mechanism} needs the texts {sorted(missing)}. Add them to "
        "src/leastnoise/_texts/locales/NAME.pot and to LANGUAGE/LC_MESSAGES/NAME.po."
    )


def test_step_without_text_is_detected():
    budget = PureDP(1)
    choice = StepChoice((("rare", (Step("look", budget),)),))
    steps = (Step("counts", budget), Step("quantile 0.5 of age", budget), choice)
    assert list_step_keys(steps) == ["plan_step_counts", "plan_case_rare", "plan_step_look"]


@every_row
def test_mechanism_attributes_need_no_plan(row):
    attributes = {name for product in row.workload for name in product.attributes}
    along = mechanism_for(row.strategy, row.workload).decision_attributes(row.workload)
    assert plan_of(row, row.budgets[0]).used()[0] == tuple(
        name for name in row.workload.domain.names if name in attributes.union(along)
    )


def check_all_is_spent(row, left):
    """Check that a row leaves no more of its budget than it states."""
    for name, amount in parameters_by_name(left).items():
        most = row.leaves.get(name, 0)
        assert amount <= most, (
            f"{row.mechanism} leaves {name} = {float(amount):.3g}; allowed: {float(most):.3g}. "
            "A branch spends the whole budget, because a rest is wasted. If it cannot (Laplace "
            "noise spends no delta), state the largest rest in the row: "
            f"Row(..., leaves={{{name!r}: ...}})."
        )


@every_case
def test_run_spends_exactly_its_declaration(row, budget):
    plan = plan_of(row, budget)
    series = UnpaidSeries(release_contract(plan), row.table, SeededEntropy(3))
    outcome = mechanism_of(plan).prepare(plan)(series)
    assert outcome.plan is plan
    check_all_is_spent(row, series.left())
    second_outcome = run(plan, row.table, 3)
    assert all(
        (values == second_values).all()
        for values, second_values in zip(
            outcome.observation.values, second_outcome.observation.values, strict=True
        )
    )
    with pytest.raises((BudgetError, InputError)):  # a series is for one run
        mechanism_of(plan).prepare(plan)(series)


@every_case
def test_answers_have_stated_errors_after_reading(row, budget):
    outcome = run(plan_of(row, budget), row.table, 5)
    finding = type(outcome.finding).__name__
    assert finding == row.finding, (
        f"The row of {row.mechanism} is for the branch {row.finding}, and its table leads to "
        f"{finding}. Change the table, the budgets or the finding of the row."
    )
    read_outcome = outcome_from_json(outcome.plan.to_json(), json.dumps(stored_outcome(outcome)))
    assert json.dumps(read_outcome.finding.facts()) == json.dumps(outcome.finding.facts())
    for product in row.workload:
        answers, read_answers = (
            each_outcome.estimator().estimate(product) for each_outcome in (outcome, read_outcome)
        )
        assert answers.values.shape == product.shape
        assert (answers.noise_std > 0).all()
        assert (answers.values == read_answers.values).all()
        assert np.array_equal(answers.std, read_answers.std)
    assert outcome.finding.linear is (not row.looks or row.mechanism == "SelectedQuantiles")
    for language in LANGUAGES:
        check_texts(outcome, language)


def check_texts(outcome, language):
    """Check that the texts of a finding can be filled in from its values."""
    catalogue = load_catalogue(language)
    finding = outcome.finding
    texts = [finding.executed_steps, *finding.uncovered_errors(outcome.plan.domain)]
    for key, values in texts:
        if key:
            assert catalogue.say(key, **values)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_finding_has_its_texts(language):
    """A report is written after the payment, so no text may be missing."""
    keys = list_sentences(language)
    for mechanism in MECHANISMS:
        for finding in mechanism.findings:
            missing = [key for key in finding.text_keys() if key not in keys]
            assert not missing, (
                f"{finding.__name__} of {type(mechanism).__name__} needs the texts {missing}. Add "
                "them to src/leastnoise/_texts/locales/NAME.pot and, in the same folder, to "
                "LANGUAGE/LC_MESSAGES/NAME.po."
            )


@every_row
def test_unsuited_workload_is_refused_unpaid(row):
    plan = plan_of(row, row.budgets[0])
    if row.refused is not None:
        workload, message = row.refused
        with pytest.raises(InputError, match=message):
            mechanism_for(row.strategy, workload).plan(
                workload, Privacy(row.budgets[0]), Search(row.strategy)
            )
    if isinstance(plan, AdaptivePlan):
        broken = [
            replace(plan, adaptive=replace(plan.adaptive, steps=())),
            replace(plan, strategy="magic"),
        ]
    else:
        broken = [
            replace(plan, data_independent_error=replace(plan.expected_error(), lower_bound=-1.0))
        ]
    for broken_plan in broken:
        with pytest.raises(InputError, match=r"[Mm]ake the plan again|no measurements"):
            mechanism_of(broken_plan).prepare(broken_plan)


@every_row
def test_stopped_release_is_finished_from_records(row, tmp_path):
    plan = plan_of(row, PureDP("1/2"))
    ledger = Ledger.create(f"{tmp_path}/people.ledger", "people", plan.privacy)
    with ledger.running(2**20) as process:
        series = Series.paid(release_contract(plan), row.table, ledger, output="out", run=process)
        assert series.receipt is not None
        outcome = mechanism_of(plan).prepare(plan)(series)
        # The series resumes without the rows.
        resumed = Series.resumed(release_contract(plan), None, ledger, series.receipt)
        resumed_outcome = mechanism_of(plan).prepare(plan)(resumed)
    assert outcome.observation.private
    assert resumed_outcome.finding.facts() == outcome.finding.facts()
    for values, recorded in zip(
        outcome.observation.values, resumed_outcome.observation.values, strict=True
    ):
        assert (values == recorded).all()
