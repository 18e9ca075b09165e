"""A data-aware mechanism from the command line: what is told beforehand, and what is left when it is killed between its steps."""

import json
import signal
from pathlib import Path

import pytest

from cli.conftest import Run, Start
from cli.test_killed import changed
from leastnoise._session import Ledger
from waiting import HANGS

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
STEPS = {
    "after it is paid": ("change(Ledger, 'reserve', after=die)", "resumable"),
    "after the first noise": ("change(series, 'draw', after=die)", "absent"),
    "after the first record": ("change(Ledger, 'record', after=die)", "resumable"),
    "before the second noise": ("change(series, 'draw', before=die, call=2)", "absent"),
    "after the second step": ("change(Series, 'measure', after=die, call=2)", "resumable"),
}


@pytest.fixture
def spec(folder: Path) -> Path:
    (folder / "ages.toml").write_text(SPEC, encoding="utf-8")
    return folder / "ages.toml"


@pytest.mark.parametrize(("change", "end"), STEPS.values(), ids=STEPS)
def test_killed_between_its_steps_it_goes_on_where_it_was_and_killed_within_one_it_is_absent(
    folder: Path, spec: Path, start: Start, run: Run, change: str, end: str
) -> None:
    process = start("release", spec.name, "--out", "out", program=changed(change))
    _, told = process.communicate(timeout=HANGS)
    assert process.returncode == -signal.SIGKILL, told
    book = Ledger.open(folder / "people.ledger")
    assert len(book.entries()) == 1
    assert not (folder / "out").exists()
    drawn = [step.outcome for entry in book.entries() if entry.resumable for step in book.pending(entry).steps]
    second = run("release", spec.name, "--out", "second")
    assert ("paid and absent" in second.err) == (end == "absent")
    assert ("paid and resumable" in second.err) == (end == "resumable")
    assert (second.code, (folder / "second").exists()) == (2, False), second.err
    if end == "resumable":
        again = run("release", spec.name, "--out", "out")  # the same release once more: it goes on, and pays nothing
        assert (again.code, "nothing was paid again" in again.err) == (0, True), again.err
        values = json.loads((folder / "out/measurements/observation.json").read_text(encoding="utf-8"))["values"]
        assert [json.loads(text)["values"][0] for text in drawn] == values[: len(drawn)]
    assert (folder / "out").exists() == (end == "resumable")
    assert book.left().epsilon == 0


def test_the_plan_tells_what_will_be_done_and_promises_nothing(spec: Path, run: Run) -> None:
    told = run("plan", spec.name)
    assert told.code == 0, told.err
    assert "measure blocks of several widths" in told.out
    assert "epsilon = 0.55" in told.out
    assert "error is promised" in told.out
    assert "For comparison: expected error of" in told.out
    facts = json.loads(run("plan", spec.name, "--json").out)
    ordinary = json.loads(run("plan", "people.toml", "--json").out)
    assert set(ordinary) <= set(facts)
    assert (facts["expected_total_squared_error"], facts["lower_bound"], facts["rmse"]) == (None, None, {"age:prefix": None})
    assert facts["reference"]["rmse"]["age:prefix"] > 0
    assert [step["step"] for step in facts["steps"]] == ["levels", "buckets"]
    (spec.parent / "few.toml").write_text(SPEC.replace("[17, 90]", "[17, 18]"), encoding="utf-8")
    assert "Not comparable, because their errors depend on the data: dawa," in run("compare", "few.toml").out
