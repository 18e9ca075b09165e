"""Correct releases of messy files by `init` and one spec, and mistakes on the way."""

import os

import pytest

from cli.messy import MESSY
from cli.mistakes import MISTAKES, badly_read, drafted, spent, write_mistake, wrong_answers

ROWS = int(os.environ.get("ROWS", "3000"))  # make messy ROWS=300000


@pytest.mark.parametrize("name", MESSY)
def test_messy_file_is_released_correctly(folder, run, name):
    # A budget of 200 has next to no noise: the test is of the counts.
    spec = drafted(folder, run, name, "200", ROWS)
    run.succeeds("plan", spec.name)
    checked = run.succeeds("check", spec.name).out
    assert "outside" in checked
    assert badly_read(checked) == []
    assert f"rows used      {ROWS:,} (100.0%)" in checked, checked
    run.succeeds("release", spec.name, "--out", "out")
    assert wrong_answers(spec, name) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_check_sees_mistakes_before_one_percent_is_spent(folder, run, name):
    mistake = MISTAKES[name]
    correct_spec = drafted(folder, run, mistake.file, "1", ROWS)
    wrong_spec = write_mistake(correct_spec, name).name
    planned = run("plan", wrong_spec).err
    if mistake.sees == "plan":
        assert mistake.says in planned
    elif mistake.sees == "check":
        assert planned == ""
        assert any(mistake.says in line for line in badly_read(run("check", wrong_spec).out))
    else:
        assert planned == ""
        run.is_refused(mistake.says, "release", wrong_spec, "--out", "out")
        assert spent(correct_spec) == (["epsilon = 0.01"] if mistake.sees == "guard" else [])
        assert not (folder / "out").exists()
