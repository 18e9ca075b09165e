"""After a kill at any step of a month, a rerun publishes the month once, without paying."""

import datetime as dt

import pytest

from cli.conftest import ended, files
from cli.killed_program import drawn_values, published_values, run_until_stopped
from leastnoise._session import Ledger

SPEC = """
[source]
path = "visits.csv"
[privacy]
rho = "1"
{unit}
[domain.month]
dates = {{ column = "day", from = "2024-01-01", to = "2024-03-31", by = "month" }}
[domain.sex]
categories = ["F", "M"]
[[workload]]
queries = {{ month = "prefix", sex = "identity" }}
[series]
along = "month"
{late}
[output]
formats = ["csv"]
"""
# In the first setting rows count on arrival. In the second, a few rows of a person count in all
# months together.
SETTINGS = [
    {"unit": "", "late": 'late = "arrival"'},
    {"unit": 'unit = { column = "sex", max_rows = 9 }', "late": "max_rows = 12"},
]
# Each step has the place where the process is killed, once between any two writes, and whether the
# month was drawn before.
STEPS = [
    ("before the private file is written", "change(series, 'write_closed', before=die)", False),
    ("after the rows are made", "change(series, 'answers_of_last_period', after=die)", False),
    ("after the ledger has them", "change(Ledger, 'draw', after=die)", True),
    ("before the rename", "change(directory, '_rename_draft', before=die)", True),
    ("before seal", "change(Ledger, 'seal', before=die)", True),
    ("after seal", "change(Ledger, 'seal', after=die)", True),
]


def write_visits(folder, until):
    """Write three visits a day from the beginning of 2024 until a day."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(day) for day in range(91)]
    rows = [f"{day},{sex}" for day in days if day <= dt.date.fromisoformat(until) for sex in "FMM"]
    (folder / "visits.csv").write_text("\n".join(["day,sex", *rows, ""]))


@pytest.mark.parametrize(
    ("change", "is_drawn"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS]
)
@pytest.mark.parametrize("settings", SETTINGS, ids=["rows", "units"])
def test_killed_month_is_published_once_by_rerun(folder, start, run, change, is_drawn, settings):
    (folder / "visits.toml").write_text(SPEC.format(**settings))
    release = ["release", "visits.toml", "--out", "monthly", "--through"]
    write_visits(folder, "2024-02-29")
    run.succeeds(*release, "2024-02")
    write_visits(folder, "2024-03-31")
    run_until_stopped(start, change, *release, "2024-03")
    ledger = Ledger.open(folder / "visits.ledger")
    assert ledger.entries()[0].state == "sealed" or len(drawn_values(ledger)) == 2 + is_drawn
    write_visits(folder, "2024-02-29")  # whatever was frozen is not counted again
    assert "nothing: rho = 1 was paid on" in run.succeeds(*release, "2024-03").out
    assert [(entry.charge.rho, entry.state) for entry in ledger.entries()] == [(1, "sealed")]
    assert files(folder / "monthly") == ["2024-01", "2024-02", "2024-03", "index.html"]
    assert not [*folder.glob("*.private")]
    assert len(published_values(folder / "monthly/2024-03")) == 1
    assert run("resume", "visits.ledger").out == "Nothing to finish.\n"


def test_concurrent_runs_of_a_series_pay_once(folder, start, run):
    (folder / "visits.toml").write_text(SPEC.format(**SETTINGS[0]))
    write_visits(folder, "2024-03-31")
    run.succeeds("ledger", "set", "visits.ledger", "--rho", "5")
    release = ["release", "visits.toml", "--out", "monthly", "--through", "2024-03"]
    processes = [start(*release) for _ in range(3)]

    results = [ended(process) for process in processes]

    for result in results:
        is_refused = "is being written by another process" in result.err
        assert (result.code, is_refused) in {(0, False), (2, True)}
    assert any(result.code == 0 for result in results)
    ledger = Ledger.open(folder / "visits.ledger")
    assert [(entry.charge.rho, entry.state) for entry in ledger.entries()] == [(1, "sealed")]
    assert files(folder / "monthly") == ["2024-01", "2024-02", "2024-03", "index.html"]
    assert not [*folder.glob(".leastnoise-*")]
    assert not [*folder.glob("*.private")]
