"""A series is killed at any step of a month, and the same command again publishes that month, once and without paying."""

import datetime as dt
import json
import signal
from pathlib import Path

import pytest

from cli.conftest import Run, Start
from cli.test_killed import changed
from leastnoise._session import Ledger
from waiting import HANGS

SPEC = """
[source]
path = "visits.csv"
[privacy]
rho = "1"
[domain.month]
dates = { column = "day", from = "2024-01-01", to = "2024-03-31", by = "month" }
[domain.sex]
categories = ["F", "M"]
[[workload]]
queries = { month = "prefix", sex = "identity" }
[series]
along = "month"
late = "arrival"
[output]
formats = ["csv"]
"""
# where it is killed, once between any two writes, and whether the month was drawn then
STEPS = [
    ("before the private file is written", "change(series, 'write_closed', before=die)", False),
    ("after the rows are made", "change(series, 'answers', after=die)", False),
    ("after the ledger has them", "change(Ledger, 'draw', after=die)", True),
    ("before the rename", "change(directory, '_rename', before=die)", True),
    ("before seal", "change(Ledger, 'seal', before=die)", True),
    ("after seal", "change(Ledger, 'seal', after=die)", True),
]


def write_visits(folder: Path, until: str) -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(one) for one in range(91)]
    rows = [f"{day},{sex}" for day in days if day <= dt.date.fromisoformat(until) for sex in "FMM"]
    (folder / "visits.csv").write_text("\n".join(["day,sex", *rows, ""]))


@pytest.mark.parametrize(("change", "drawn"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS])
def test_killed_at_any_step_of_a_month_the_same_command_publishes_it_once(
    folder: Path, start: Start, run: Run, change: str, drawn: bool
) -> None:
    (folder / "visits.toml").write_text(SPEC)
    write_visits(folder, "2024-02-29")
    first = run("release", "visits.toml", "--out", "monthly", "--through", "2024-02")
    assert first.code == 0, first.err
    write_visits(folder, "2024-03-31")
    process = start("release", "visits.toml", "--out", "monthly", "--through", "2024-03", program=changed(change))
    _, told = process.communicate(timeout=HANGS)
    assert process.returncode == -signal.SIGKILL, told
    book = Ledger.open(folder / "visits.ledger")
    sealed = book.entries()[0].state == "sealed"
    steps = [] if sealed else [step.outcome for step in book.pending(book.entries()[0]).steps]
    assert sealed or len(steps) == 2 + drawn
    write_visits(folder, "2024-02-29")  # whatever was frozen is not counted again
    again = run("release", "visits.toml", "--out", "monthly", "--through", "2024-03")
    assert again.code == 0, again.err
    assert "nothing: rho = 1 was paid on" in again.out
    assert [(entry.charge.rho, entry.state) for entry in book.entries()] == [(1, "sealed")]
    assert sorted(one.name for one in (folder / "monthly").iterdir()) == ["2024-01", "2024-02", "2024-03", "index.html"]
    assert not [*folder.glob("*.private")]
    seen = json.loads((folder / "monthly/2024-03/measurements/observation.json").read_text())["values"]
    assert len(seen) == 1
    assert run("resume", "visits.ledger").out == "Nothing to finish.\n"
