"""From files as people have them to a right release, by `init`, one spec and exact counts; and mistakes on the way."""

import os
from pathlib import Path

import pytest

from cli.conftest import Run
from cli.messy import MESSY
from cli.mistakes import MISTAKES, badly_read, drafted, made, spent, wrong_answers

ROWS = int(os.environ.get("ROWS", "3000"))  # make messy ROWS=300000


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_becomes_a_right_release(folder: Path, run: Run, name: str) -> None:
    spec = drafted(folder, run, name, "200", ROWS)  # noise of nothing: what is tested is the way from rows to counts
    planned = run("plan", spec.name)
    assert planned.code == 0, planned.err
    checked = run("check", spec.name)
    assert "outside" in checked.out
    assert badly_read(checked.out) == []
    assert f"rows used      {ROWS:,} (100.0%)" in checked.out, checked.out
    released = run("release", spec.name, "--out", "out")
    assert released.code == 0, released.err
    assert wrong_answers(spec, name) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_seen_before_more_than_a_hundredth_is_spent(folder: Path, run: Run, name: str) -> None:
    mistake = MISTAKES[name]
    right = drafted(folder, run, mistake.file, "1", ROWS)
    wrong = made(right, name)
    planned = run("plan", wrong.name)
    if mistake.sees == "plan":
        assert mistake.says in planned.err
        return
    assert planned.err == ""
    if mistake.sees == "check":
        assert any(mistake.says in line for line in badly_read(run("check", wrong.name).out))
        return
    released = run("release", wrong.name, "--out", "out")
    assert released.code == 2, released.out
    assert mistake.says in released.err
    assert spent(right) == (["epsilon = 0.01"] if mistake.sees == "guard" else [])
    assert not (folder / "out").exists()
