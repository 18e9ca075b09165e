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
