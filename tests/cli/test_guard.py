"""The guard in the output of `plan`, and the corrected rerun of a stopped release."""

import json

import pytest

import leastnoise as ln

SPEC = """
[source]
path = "x.csv"
[privacy]
{budget}
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [0, 9]
[[workload]]
queries = {{ sex = "identity", age = "prefix" }}
[plan]
guard = "1/100"
seconds = 2
strategy = "{strategy}"
"""


def write(folder, budget, strategy="auto"):
    (folder / "s.toml").write_text(SPEC.format(budget=budget, strategy=strategy))
    return folder / "s.toml"


def test_plan_states_cost_of_a_guard_stop(tmp_path, run):
    result = run("plan", write(tmp_path, 'epsilon = "1"'))
    output = " ".join(result.out.split())
    for part in ("1/100 of the budget (epsilon = 0.01)", "461 used rows", "(epsilon = 0.99)"):
        assert part in output
    facts = json.loads(run("plan", tmp_path / "s.toml", "--json").out)["guard"]
    assert facts["charge"] == "epsilon = 0.01"
    assert facts["left"] == "epsilon = 0.99"
    assert facts["most_by_chance"] == 461


def test_plan_warns_of_guard_too_weak_for_public_rows(tmp_path, run):
    weak = run("plan", write(tmp_path, 'epsilon = "1"\nrows = 500'))
    assert "cannot distinguish 500 rows from none" in weak.err
    strong = run("plan", write(tmp_path, 'epsilon = "1"\nrows = 50000'))
    assert "cannot distinguish" not in strong.err
    assert "half of the 50,000 existing rows" in " ".join(strong.out.split())


@pytest.mark.parametrize("strategy", ["auto", "dawa_levels"])
def test_corrected_spec_runs_within_the_same_ledger(tmp_path, run, strategy):
    if strategy == "auto":
        spec = write(tmp_path, 'epsilon = "100"')
    else:
        spec = write(tmp_path, 'epsilon = "100"', strategy)
        spec.write_text(spec.read_text().replace('sex = "identity", ', ""))
    (tmp_path / "x.csv").write_text("sex;age\n" + "F;3;\nM;4;\n" * 500)
    stopped = run("release", spec, "--out", tmp_path / "out")
    assert stopped.code == 2
    assert "1/100 of the budget" in stopped.err
    assert "without a change of the ledger" in stopped.err
    (tmp_path / "x.csv").write_text("sex;age\n" + "F;3\nM;4\n" * 500)
    result = run("release", spec, "--out", tmp_path / "out")
    ledger = ln.Ledger.open(tmp_path / "x.ledger")
    assert ledger.privacy.budget == ln.PureDP(100)
    assert ledger.left().epsilon == 0
    if strategy == "auto":
        assert "epsilon = 99 instead of epsilon = 100" in " ".join(result.out.split())
