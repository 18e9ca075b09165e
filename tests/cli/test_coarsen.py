"""`leastnoise coarsen`: the exit code, the tables on the terminal, and margins of a plan."""

import json
from pathlib import Path

import pytest

from leastnoise._coarsening import HiddenCell

TABLE = "sex,age,count\nF,17,{}\nF,18,3\nF,Total,7\nM,17,{}\nM,18,{}\nM,Total,8\n"


def test_coarsen_reports_determined_cells(folder, run):
    Path("planned.csv").write_text(TABLE.format("", "", 5), encoding="utf-8")
    result = run("coarsen", "planned.csv")
    assert result.code == 5
    assert "sex=F, age=17   suppressed          4" in result.out
    assert "not a privacy guarantee" in result.out
    result = run("coarsen", "planned.csv", "--json")
    cells = json.loads(result.out)["cells"]
    assert [(cell["low"], cell["high"], cell["disclosed"]) for cell in cells] == [
        (4, 4, True),
        (3, 3, True),
    ]


def test_coarsen_accepts_protected_cells(folder, run):
    Path("planned.csv").write_text("sex,count\nF,5\nM,10\nTotal,15\n", encoding="utf-8")
    result = run.succeeds("coarsen", "planned.csv", "--base", 5)
    assert "Every hidden cell has enough possible counts." in result.out
    assert run("coarsen", "planned.csv", "--base", 5, "--values", 6).code == 5


def test_coarsen_shows_margins_of_plan(folder, run):
    Path("planned.csv").write_text("sex,count\nF,\nM,10\nTotal,15\n", encoding="utf-8")
    result = run("coarsen", "planned.csv", "--spec", "people.toml", "--json")
    (table,) = json.loads(result.out)["tables"]
    assert 0 < table["plan_margin"] < 100
    assert (table["hidden"], table["determined"]) == (1, 1)
    Path("other.csv").write_text("city,count\nA,\nB,10\n", encoding="utf-8")
    assert "not planned" in run.succeeds("coarsen", "other.csv", "--spec", "people.toml").out


def test_coarsen_refuses_wrong_options(folder, run):
    Path("planned.csv").write_text("sex,count\nF,\nM,10\n", encoding="utf-8")
    run.is_refused("--base must be", "coarsen", "planned.csv", "--base", 0)
    run.is_refused("--suppressed must be", "coarsen", "planned.csv", "--suppressed", "4..1")
    run.is_refused("--values must be", "coarsen", "planned.csv", "--values", 1)
    run.is_refused("Two tables have the file name", "coarsen", "planned.csv", "planned.csv")
    run.is_refused("cannot be read", "coarsen", "missing.csv")


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, str(10**9 + 1)], ids=len)
def test_coarsen_refuses_counts_that_are_not_exact(folder, run, number):
    Path("planned.csv").write_text("sex,count\nF,\nM,10\n", encoding="utf-8")
    for limits in (f"1..{number}", f"{number}.."):
        run.is_refused("--suppressed must be", "coarsen", "planned.csv", "--suppressed", limits)
    if len(number) < 1000:  # Python reads no longer number
        run.is_refused("--base must be", "coarsen", "planned.csv", "--base", number)


def test_coarsen_fails_when_time_is_over(folder, run, monkeypatch):
    Path("planned.csv").write_text("sex,count\nF,\nM,10\n", encoding="utf-8")
    unproved = HiddenCell("planned.csv", {"sex": "F"}, None, 0, 9, is_proved=False)
    monkeypatch.setattr("leastnoise._cli._coarsen.solve_tables", lambda *_: [unproved])
    result = run("coarsen", "planned.csv")
    assert result.code == 5
    assert "reached its time limit" in result.out
    assert "enough possible counts" not in result.out
