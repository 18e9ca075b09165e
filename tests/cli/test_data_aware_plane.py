"""DAWA on two attributes through the program: told beforehand, released, written, read again, and paid once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leastnoise._session import read_release as read

Run = Callable[..., Any]
SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.age]
integers = [0, 10]
[domain.hours]
integers = [0, 5]
[[workload]]
queries = { age = "prefix", hours = "prefix" }
[[workload]]
queries = { age = "prefix" }
[plan]
strategy = "dawa"
"""


@pytest.fixture
def spec(folder: Path) -> Path:
    rows = [f"{age},{hours}\n" for age in range(11) for hours in range(6) for _ in range(150 if age < 5 and hours < 3 else 2)]
    (folder / "people.csv").write_text("age,hours\n" + "".join(rows), encoding="utf-8")
    (folder / "plane.toml").write_text(SPEC, encoding="utf-8")
    return folder / "plane.toml"


def test_from_the_plan_to_a_release_that_is_read_again(folder: Path, spec: Path, run: Run) -> None:
    told = run("plan", spec.name)
    assert told.code == 0, told.err
    assert "divide each block as its noisy count deserves" in told.out
    assert "error is promised" in told.out
    facts = json.loads(run("plan", spec.name, "--json").out)
    assert facts["steps"][0] == {"step": "test", "epsilon": "1/25"}
    assert facts["reference"]["rmse"]["age:prefix"] > 0
    made = run("release", spec.name, "--out", "out")
    assert made.code == 0, made.err
    manifest = json.loads((folder / "out" / "manifest.json").read_text("utf-8"))
    outcome = manifest["plan"]["outcome"]
    assert outcome["regime"] in {"blocks", "independent"}
    assert "approximation_std" in manifest["answers"]["columns"]
    assert "no error was promised" in (folder / "out" / "report.html").read_text("utf-8")
    again = read(folder / "out")
    for place, table in enumerate(again.tables, 1):
        (file,) = (folder / "out" / "answers").glob(f"q{place}-*.csv")
        written = pl.read_csv(file)
        for name in ("answer", "noise_std", "approximation_std", "low", "high"):
            assert written[name].to_numpy() == pytest.approx(getattr(table, name).reshape(-1), rel=1e-6)
    second = run("release", spec.name, "--out", "second")
    assert second.code != 0
    assert not (folder / "second").exists()


def test_other_budgets_are_refused(spec: Path, run: Run) -> None:
    spec.write_text(SPEC.replace('epsilon = "1"', 'rho = "1/10"'), encoding="utf-8")
    told = run("release", spec.name, "--out", "out")
    assert told.code == 2
    assert "dawa on two attributes needs a budget of epsilon alone" in told.err
    assert not Path("out").exists()
