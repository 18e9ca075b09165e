"""Quantiles by private choice: accuracy, simulated intervals, files and refusals."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._mechanisms import mechanism_for
from leastnoise._session import outcome_from_json
from leastnoise._trusted.check import InputError
from leastnoise._trusted.table import Table
from mechanisms.running import run, stored_outcome
from session.releasing import report

STRATEGY = "selected_quantiles"
SHARES = ["1/4", "1/2", "3/4"]
CELLS = 64
ROWS = pd.DataFrame(
    {
        "pay": np.clip(np.random.default_rng(1).geometric(0.06, 1500) - 1, 0, CELLS - 1),
        "sex": np.resize(["F", "M", "M"], 1500),
    }
)
DOMAIN = ln.Domain(pay=ln.Integers(0, CELLS - 1), sex=["F", "M"])
BY_SEX = ln.quantile_queries(DOMAIN, "pay", SHARES, by=["sex"])


def table_of(domain):
    codes = {"pay": ROWS["pay"].to_numpy(), "sex": (ROWS["sex"] == "M").to_numpy().astype(int)}
    return Table(domain, codes)


def rank_distance(values, value, share):
    """Return the number of rows between a value and the rank of a quantile."""
    target = share * len(values)
    return max(0.0, (values < value).sum() - target, target - (values <= value).sum())


@pytest.mark.slow
def test_selected_quantiles_are_near_and_their_intervals_cover():
    plan = ln.plan(BY_SEX, ln.PureDP(1), strategy=STRATEGY)
    limits = [
        int(step.name.split("within ")[1].split(" rows")[0]) for step in plan.adaptive.steps[1:]
    ]
    true_values = ROWS.groupby("sex")["pay"].quantile([0.25, 0.5, 0.75], interpolation="lower")
    covered = []
    within = []
    distances = []
    for seed in range(60):
        table = ln.release(plan, ROWS, seed=seed).statistics[0].frame()
        for row, (position, truth) in zip(table.itertuples(), enumerate(true_values), strict=True):
            group = ROWS["pay"][ROWS["sex"] == row.sex]
            distance = rank_distance(group, row.quantile, float(row.share))
            distances.append(distance)
            within.append(distance <= limits[position % 3])
            covered.append(row.low <= truth <= row.high)
    assert np.mean(covered) >= 0.93
    assert np.mean(within) >= 0.95
    assert np.mean(distances) < 5


def test_selected_quantiles_leave_out_rows_without_a_value():
    rows = pd.concat(
        [ROWS.astype({"pay": "Int64"}), pd.DataFrame({"pay": [None] * 4000, "sex": ["F"] * 4000})]
    )
    plan = ln.plan(BY_SEX, ln.PureDP(20), strategy=STRATEGY)
    table = ln.release(plan, rows, seed=1).statistics[0].frame()
    truth = ROWS.groupby("sex")["pay"].quantile([0.25, 0.5, 0.75], interpolation="lower")
    assert np.abs(table["quantile"] - truth.to_numpy()).max() <= 1


@pytest.mark.parametrize("budget", [ln.ZCDP("1/2"), ln.ApproxDP(1, "1e-6")], ids=str)
def test_selected_quantiles_work_with_every_budget(budget):
    plan = ln.plan(BY_SEX, budget, strategy=STRATEGY)
    assert ln.release(plan, ROWS, seed=1).statistics[0].frame().shape[0] == 6


def test_selected_quantiles_are_read_from_a_directory_as_written(tmp_path):
    plan = ln.plan(BY_SEX, ln.PureDP(1), strategy=STRATEGY)
    release = ln.release(plan, ROWS, ledger=tmp_path / "l.ledger", out=tmp_path / "out")
    reread = ln.read_release(tmp_path / "out")
    frame = release.statistics[0].frame()
    assert reread.statistics[0].frame().equals(frame)
    sentence = "The values of quantiles were chosen privately from their groups"
    assert sentence in report(tmp_path / "out")


def test_forged_choices_are_refused():
    plan = ln.plan(BY_SEX, ln.PureDP(1), strategy=STRATEGY)
    outcome = run(plan, table_of(BY_SEX.domain), 1)
    facts = stored_outcome(outcome)
    assert outcome_from_json(plan.to_json(), json.dumps(facts)).finding == outcome.finding
    written_choices = facts["outcome"]["choices"]
    for choices in (
        [],
        written_choices[:-1],
        [*written_choices, written_choices[0]],
        [[CELLS] * 2] * 3,
        [[-1] * 2] * 3,
        [["a"] * 2] * 3,
    ):
        facts["outcome"]["choices"] = choices
        with pytest.raises(InputError):
            outcome_from_json(plan.to_json(), json.dumps(facts)).finding.quantile_choices(BY_SEX)


def test_forged_tables_are_refused_before_payment():
    plan = ln.plan(BY_SEX, ln.PureDP(1), strategy=STRATEGY)
    larger = ln.plan(BY_SEX, ln.PureDP(2), strategy=STRATEGY)
    with pytest.raises(InputError, match="half of the budget of the plan"):
        mechanism_for(STRATEGY, BY_SEX).prepare(replace(plan, fallback=larger.fallback))


def test_selected_quantiles_rise_with_their_shares():
    shares = [f"{number}/10" for number in range(1, 10)]
    plan = ln.plan(ln.quantile_queries(DOMAIN, "pay", shares), ln.PureDP("1/2"), strategy=STRATEGY)
    for seed in range(5):
        table = ln.release(plan, ROWS[:400], seed=seed).statistics[0].frame()
        assert table["quantile"].is_monotonic_increasing
        assert (table["may_be_below"] >= (table["quantile"] == 0)).all()
        assert (table["may_be_above"] >= (table["quantile"] == CELLS - 1)).all()


def test_ties_of_ranks_match_sql():
    domain = ln.Domain(pay=ln.Integers(0, 255))
    plan = ln.plan(ln.quantile_queries(domain, "pay", ["1/2"]), ln.PureDP(900), strategy=STRATEGY)
    rows = pd.DataFrame({"pay": [0] * 50 + [200] * 50})
    assert ln.release(plan, rows, seed=1).statistics[0].frame()["quantile"].tolist() == [0]


def test_budgets_of_many_digits_are_accepted():
    for budget in (ln.PureDP(0.1 + 0.2), ln.PureDP(1 / 3), ln.ApproxDP(1 / 3, "1e-6")):
        plan = ln.plan(BY_SEX, budget, strategy=STRATEGY)
        assert ln.release(plan, ROWS, seed=1).statistics[0].frame().shape[0] == 6


def test_selected_quantiles_say_their_accuracy_in_the_plan():
    plan = ln.plan(BY_SEX, ln.PureDP(1), strategy=STRATEGY)
    steps = mechanism_for(STRATEGY, BY_SEX).explain(plan).steps
    assert steps[0].name == "tables"
    assert steps[2].name.startswith("quantile 0.5 of pay, within ")
    assert sum(step.budget.epsilon for step in steps) == 1


GROUPED = ln.Domain(
    pay=ln.Integers(0, 9),
    place=ln.Categories(
        ["a", "b", "c"], levels={"area": {"a": "north", "b": "north", "c": "south"}}
    ),
)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (ln.marginals(DOMAIN, ways=1), "answers quantiles, and this workload has none"),
        (ln.quantile_queries(DOMAIN, "pay", [1]), "shares below 1"),
        (
            ln.quantile_queries(GROUPED, "pay", ["1/2"], by={"place": ln.level("area")}),
            "must be single cells of attributes",
        ),
    ],
    ids=["no quantiles", "a maximum", "by a level"],
)
def test_quantiles_that_cannot_be_selected_are_refused(workload, message):
    with pytest.raises(InputError, match=message):
        ln.plan(workload, ln.PureDP(1), strategy=STRATEGY)
