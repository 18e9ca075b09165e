"""A data-dependent mechanism: the output of plan, and the state of runs killed between steps."""

import pytest

from cli.conftest import assert_contains
from cli.killed_program import drawn_values, published_values, run_until_stopped
from leastnoise._session import Ledger

SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.age]
integers = [17, 90]
[[workload]]
queries = { age = "prefix" }
[plan]
strategy = "dawa_levels"
[output]
formats = ["csv"]
"""
RELEASE = ("release", "ages.toml", "--out")
STEPS = {
    "after it is paid": ("change(Ledger, 'reserve', after=die)", "resumable"),
    "after the first noise": ("change(series, 'draw_answers', after=die)", "absent"),
    "after the first record": ("change(Ledger, 'record', after=die)", "resumable"),
    "before the second noise": ("change(series, 'draw_answers', before=die, call=2)", "absent"),
    "after the second step": ("change(Series, 'measure', after=die, call=2)", "resumable"),
}


@pytest.fixture(autouse=True)
def _spec(folder):
    (folder / "ages.toml").write_text(SPEC, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("change", "end"), STEPS.values(), ids=STEPS)
def test_killed_adaptive_release_resumes_between_steps(folder, start, run, change, end):
    run_until_stopped(start, change, *RELEASE, "out")
    ledger = Ledger.open(folder / "people.ledger")
    assert len(ledger.entries()) == 1
    assert not (folder / "out").exists()
    outcomes = [values[0] for values in drawn_values(ledger)]
    assert ("paid and " + end) in run.is_refused("", *RELEASE, "second").err
    assert not (folder / "second").exists()
    if end == "resumable":
        # The same release again continues, and pays nothing.
        resumed = run.succeeds(*RELEASE, "out")
        assert "nothing was paid again" in resumed.err
        assert published_values(folder / "out")[: len(outcomes)] == outcomes
    assert (folder / "out").exists() == (end == "resumable")
    assert ledger.left().epsilon == 0


def test_adaptive_plan_lists_steps_and_promises_no_error(folder, run):
    output = run.succeeds("plan", "ages.toml").out
    assert_contains(
        output,
        "measure blocks of several widths",
        "epsilon = 0.55",
        "error is promised",
        "For comparison: expected error of",
    )
    facts = run.json("plan", "ages.toml")
    assert set(run.json("plan", "people.toml")) <= set(facts)
    assert facts["expected_total_squared_error"] is None
    assert facts["lower_bound"] is None
    assert facts["rmse"] == {"age:prefix": None}
    assert facts["reference"]["rmse"]["age:prefix"] > 0
    assert [step["step"] for step in facts["steps"]] == ["levels", "buckets"]
    (folder / "few.toml").write_text(SPEC.replace("[17, 90]", "[17, 18]"), encoding="utf-8")
    assert (
        "Not comparable, because their errors depend on the data: dawa,"
        in run("compare", "few.toml").out
    )
