"""Targets, objectives, other budgets and prices, on the command line and from the spec."""

import json
import re

import pytest

from cli.conftest import SPEC, assert_contains, edit

TARGET = ('of = ["sex", "age"] }', 'of = ["sex", "age"] }\nmargin = "40"')
LEAST = ('epsilon = "1"', 'epsilon = "least"')


def test_least_budget_is_planned_for_and_paid(folder, run):
    edit(folder, TARGET, LEAST)
    planned = run.json("plan", "people.toml")
    assert [table["is_met"] for table in planned["tables"] if "is_met" in table] == [True] * 4
    assert max(
        table["margin"] for table in planned["tables"] if "margin" in table
    ) == pytest.approx(40, rel=0.001)
    run.succeeds("release", "people.toml", "--out", "out")
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert planned["privacy"]["budget"]["epsilon"] in json.dumps(manifest["privacy"])
    assert "target" in json.dumps(manifest["workload"])
    run.is_refused("least epsilon", "compare", "people.toml")  # which needs a budget


def test_plan_shows_mean_targets_and_tables_without_any(folder, run):
    means = (
        '[measures.years]\ncolumn = "age"\nclip = [17, 90]\n[[workload]]\n'
        'means = { of = "years", by = ["sex"] }\nsize = 400\nmargin = 3\n'
    )
    means += "[[workload]]\nmarginals = { ways = 0 }\n"
    (folder / "means.toml").write_text(
        SPEC.split("[[workload]]")[0].replace(*LEAST) + means, encoding="utf-8"
    )
    shown = run("plan", "means.toml")
    assert re.search(r"margin 3\.000: [23][.]\d", shown.out)
    assert_contains(
        shown.err, "meets the targets, and total has no target, so nothing limits its errors."
    )
    (statistic,) = run.json("plan", "means.toml")["statistics"]
    assert statistic["target"] == {"margin": 3.0}
    assert statistic["is_met"] is True
    assert 2.9 < statistic["margin"] <= 3
    run.succeeds("release", "means.toml", "--out", "out")
    (released,) = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))[
        "statistics"
    ]
    assert "margin" in json.dumps(released)
    run.succeeds("show", "out")


def test_another_epsilon_and_other_budgets(folder, run):
    planned_at_one, planned_at_two = (
        run.json("plan", "people.toml", "--epsilon", epsilon, "--budgets", "1/2, 3")
        for epsilon in ("2", "4")
    )
    assert planned_at_one["privacy"]["budget"]["epsilon"] == "2"
    assert [entry["privacy"]["budget"]["epsilon"] for entry in planned_at_one["budgets"]] == [
        "1/2",
        "3",
    ]
    assert planned_at_one["budgets"][0]["rmse"] == pytest.approx(
        planned_at_two["budgets"][0]["rmse"], rel=1e-4
    )
    assert "rmse under other budgets" in run("plan", "people.toml", "--budgets", "1/2,3").out
    edit(folder, TARGET)
    assert run("plan", "people.toml", "--epsilon", "1/10").out.count("missed") == 4


def test_plan_prints_prices_of_tables(folder, run):
    planned = run.json("plan", "people.toml", "--prices")
    assert {price["table"] for price in planned["prices"]} == set(planned["rmse"])
    assert all(
        0 < price["alone"] <= 1.01 and 0 <= price["saved"] <= 1 for price in planned["prices"]
    )
    assert "needs alone" in run("plan", "people.toml", "--prices").out


@pytest.mark.parametrize(
    ("pairs", "arguments", "message"),
    [
        ([LEAST], (), "No table has a target"),
        ([("weight = 2.0", 'margin = "3"\nrmse = "4"')], (), "one of margin, relative and rmse"),
        ([("weight = 2.0", 'relative = "0.1"')], (), "needs a size"),
        ([('strategy = "marginals"', 'objective = "largest"')], (), "objective must be"),
        ([('epsilon = "1"', 'rho = "1"')], ("--epsilon", "2"), "this spec has a budget of rho"),
        ([], ("--epsilon", "none"), "epsilon must be"),
        ([], ("--budgets", "1,,2"), "epsilon must be"),
        ([], ("--budgets", "1,2,3,4,5,6,7,8,9"), "at most 8"),
        ([('strategy = "marginals"', 'objective = "relative"')], (), "needs a public size"),
    ],
)
def test_invalid_target_is_refused_in_one_sentence(folder, run, pairs, arguments, message):
    edit(folder, *pairs)
    run.is_refused(message, "plan", "people.toml", *arguments)


def test_errors_by_the_rows_of_a_unit_that_count(folder, run):
    run.is_refused("every row is a unit", "plan", "people.toml", "--max-rows", "1,2")
    edit(
        folder,
        (
            'epsilon = "1"',
            'rho = "1/2"\nunit = { column = "id", max_rows = 3, max_per_cell = 1, cell = "age" }',
        ),
    )
    entries = run.json("plan", "people.toml", "--max-rows", "1, 4")["max_rows"]
    assert [entry["privacy"]["max_rows"] for entry in entries] == [1, 4]
    assert [entry["privacy"]["max_per_cell"]["rows"] for entry in entries] == [1, 1]
    rmse_of_one_row, rmse_of_four_rows = (
        next(rmse for name, rmse in entry["rmse"].items() if "age" in name) for entry in entries
    )
    assert 1 < rmse_of_four_rows / rmse_of_one_row < 3
    shown = run("plan", "people.toml", "--max-rows", "1,4").out
    assert_contains(
        shown, "rmse for other limits of rows per unit", "a release that nobody paid for"
    )
    for option, message in (
        ("1,0", "max_rows must be a whole number of at least 1; got 0"),
        ("a", "got 'a'"),
        ("1,,2", "got ''"),
    ):
        run.is_refused(message, "plan", "people.toml", "--max-rows", option)


def test_plan_shows_cost_of_rows_and_units(folder, run):
    unit = 'epsilon = "1"\nunit = { column = "id", max_rows = 3, of_unit = ["sex"] }'
    counted = (
        '[[workload]]\nmarginals = { ways = 1, of = ["sex", "age"] }\ncount = "units"\n\n'
        "[[workload]]\nmarginals"
    )
    edit(folder, ('epsilon = "1"', unit), ("[[workload]]\nmarginals", counted))
    output = run("plan", "people.toml").out
    shares = re.search(
        r"of which for +units (\d+)%, units by age (\d+)%,\s+rows and sums (\d+)%", output
    )
    assert shares is not None, output
    assert 99 <= sum(map(int, shares.groups())) <= 101
