"""``leastnoise audit``: its output, its exit code, and that it reads no data."""

import json

from behind_the_wall import SAMPLERS
from cli.conftest import assert_contains, files
from leastnoise._trusted.accounting import Noise


def test_audit_prints_claim_bound_confidence_and_trials(folder, run):
    (folder / "people.csv").unlink()
    result = run.succeeds("audit", "people.toml", "--trials", "300")
    assert result.err == ""
    parts = (
        "claim",
        "at most 1",
        "lower bound",
        "99.9%",
        "300 of each of two tables",
        "no bound is above its claim",
    )
    assert_contains(result.out, *parts)
    assert files(folder) == ["people.toml"]  # the data need not exist, and nothing is written


def test_audit_json_is_one_object_and_failure_exits_70(folder, run, monkeypatch):
    sampler = SAMPLERS[Noise.DISCRETE_LAPLACE]
    monkeypatch.setitem(
        SAMPLERS,
        Noise.DISCRETE_LAPLACE,
        lambda top, bottom, *arguments: sampler(top, bottom * 2, *arguments),
    )
    result = run("audit", "people.toml", "--trials", "2000", "--json")
    output = json.loads(result.out)
    assert result.code == 70, result.err
    assert output["is_within_claim"] is False
    assert output["parts"][0]["lower_bound"] > output["parts"][0]["claim"]
    assert "a lower bound exceeds the claim" in result.err
