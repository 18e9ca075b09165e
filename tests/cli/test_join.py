"""Joined visits and patients from the spec to the release, by commands."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from cli.conftest import assert_contains

SPEC = """\
[source]
path = "visits.csv"
[source.join]
path = "patients.csv"
on = { patient = "id" }
delimiter = ";"
[privacy]
epsilon = "200"
unit = { column = "patient", max_rows = 3 }
[domain.diagnosis]
categories = ["a", "b"]
[domain.sex]
categories = ["F", "M"]
null = "other"
[domain.birth_year]
integers = [1950, 1953]
[[workload]]
queries = { diagnosis = "identity", sex = "identity", birth_year = "identity" }
[plan]
strategy = "identity"
guard = "1/2"
"""


@pytest.fixture(autouse=True)
def _visits(folder):
    """Write 200 patients with three visits each, and one faulty row of each kind."""
    frame = pd.DataFrame(
        {"patient": [number % 200 for number in range(600)], "diagnosis": ["a", "b", "b"] * 200}
    )
    frame.to_csv(folder / "visits.csv", index=False)
    rows = [
        f"{number};{'FM'[number % 2] if number != 7 else ''};{1950 + number % 4}"
        for number in range(199)
    ]
    (folder / "patients.csv").write_text(
        "\n".join(["id;sex;birth_year", *rows, "5;F;1950", ""]), encoding="utf-8"
    )
    (folder / "visits.toml").write_text(SPEC, encoding="utf-8")


def test_check_counts_rows_without_a_partner(run):
    parts = (
        "lines          600, of which 0 (0.0%) are not records",
        "with partner   594 (99.0%); the others have nulls for the second table's columns",
        (
            "duplicate keys 1 (0.5%) of the second table: 3 (0.5%) rows have no partner for this "
            "reason"
        ),
        "sex: 591 (98.5%) matched, 9 (1.5%) null, 0 (0.0%) outside",
        "birth_year: 594 (99.0%) matched, 6 (1.0%) null",
        "rows used      594 (99.0%)",
    )
    assert_contains(run.succeeds("check", "visits.toml").out, *parts)


@pytest.fixture
def other_visits(folder):
    """Write the visits to another file, which is joined to the same second table."""
    shutil.copy(folder / "visits.csv", folder / "moved.csv")


@pytest.mark.usefixtures("other_visits")
def test_check_joins_another_first_table(run):
    assert "with partner   594 (99.0%)" in run("check", "visits.toml", "--source", "moved.csv").out


@pytest.mark.usefixtures("other_visits")
def test_commands_release_two_joined_tables(run):
    run.succeeds("plan", "visits.toml", "--out", "plan.json")
    result = run.succeeds(
        "release", "visits.toml", "--source", "moved.csv", "--plan", "plan.json", "--out", "out"
    )
    assert "a second table (patients), joined by 'patient'" in result.out
    (table,) = sorted(Path("out/answers").glob("*.csv"))
    # The tests in tests/trusted/reading and tests/session compare which rows are joined.
    answers = pd.read_csv(table)
    assert len(answers) == 2 * 3 * 4
    assert abs(answers["answer"].sum() - 594) < 9
    assert abs(answers.groupby("sex")["answer"].sum()["other"] - 3) < 9
    receipt = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))["receipt"]
    assert receipt["joined"] == {"table": "patients", "on": "patient", "key": "id", "public": False}
    assert abs(receipt["guard_used"] - 594) < 3
    assert "a second table (patients)" in run("show", "out").out
