"""``leastnoise audit``: what it prints, what it does not read, and its exit code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leastnoise._accounting import Noise
from leastnoise._kernel import _measure

Run = Callable[..., Any]


def test_claim_bound_confidence_and_trials_are_told(folder: Path, run: Run) -> None:
    (folder / "people.csv").unlink()
    before = sorted(path.name for path in folder.iterdir())
    result = run("audit", "people.toml", "--trials", "300")
    assert (result.code, result.err) == (0, "")
    for word in ("claim", "at most 1", "lower bound", "99.9%", "300 of each of two tables", "no more is lost than is claimed"):
        assert word in result.out
    assert sorted(path.name for path in folder.iterdir()) == before  # the data need not exist, and nothing is written


def test_json_is_one_object_and_too_little_noise_ends_in_70(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = _measure._SAMPLERS[Noise.DISCRETE_LAPLACE]
    monkeypatch.setitem(_measure._SAMPLERS, Noise.DISCRETE_LAPLACE, lambda top, bottom, *rest: sampler(top, bottom * 2, *rest))
    result = run("audit", "people.toml", "--trials", "2000", "--json")
    assert result.code == 70
    told = json.loads(result.out)
    assert not told["held"]
    assert told["query_lower_bound"] > told["query_claim"]
    assert "a bound is above the claim" in result.err


def test_too_few_trials_are_refused(folder: Path, run: Run) -> None:
    result = run("audit", "people.toml", "--trials", "3")
    assert result.code == 2
    assert "trials must be" in result.err
