"""``leastnoise audit``: what it prints, what it does not read, and its exit code."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run
from leastnoise._accounting import Noise
from leastnoise._kernel import _measure


def test_claim_bound_confidence_and_trials_are_told(folder: Path, run: Run) -> None:
    (folder / "people.csv").unlink()
    before = sorted(path.name for path in folder.iterdir())
    result = run("audit", "people.toml", "--trials", "300")
    assert (result.code, result.err) == (0, "")
    for word in ("claim", "at most 1", "lower bound", "99.9%", "300 of each of two tables", "no bound is above its claim"):
        assert word in result.out
    assert sorted(path.name for path in folder.iterdir()) == before  # the data need not exist, and nothing is written


def test_json_is_one_object_and_too_little_noise_ends_in_70(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = _measure.SAMPLERS[Noise.DISCRETE_LAPLACE]
    monkeypatch.setitem(_measure.SAMPLERS, Noise.DISCRETE_LAPLACE, lambda top, bottom, *rest: sampler(top, bottom * 2, *rest))
    result = run("audit", "people.toml", "--trials", "2000", "--json")
    assert result.code == 70
    told = json.loads(result.out)
    assert not told["held"]
    assert told["parts"][0]["lower_bound"] > told["parts"][0]["claim"]
    assert "a bound is above the claim" in result.err


def test_too_few_trials_are_refused(folder: Path, run: Run) -> None:
    result = run("audit", "people.toml", "--trials", "3")
    assert result.code == 2
    assert "trials must be" in result.err


def test_a_plan_that_looks_at_the_data_is_audited_step_by_step_and_its_guard_too(folder: Path, run: Run) -> None:
    spec = folder / "people.toml"
    text = spec.read_text(encoding="utf-8")
    asked = '[[workload]]\nqueries = { age = "prefix" }\n\n[plan]\nstrategy = "dawa"\nguard = "1/50"\n'
    spec.write_text(text[: text.index("[[workload]]")].replace("[17, 90]", "[17, 32]") + asked, encoding="utf-8")
    result = run("audit", "people.toml", "--trials", "200")
    assert (result.code, result.err) == (0, "")
    for word in ("epsilon: at most 0.98", "least cost", "a step: the query that tells most", "the guard: all queries together"):
        assert word in result.out
