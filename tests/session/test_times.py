"""What is published is made after counting: none of its times, birth included, tells how long counting took."""

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._kernel import _keys, _series

DOMAIN = ln.Domain(sex=["F", "M"], age=ln.Integers(17, 90))
FORMATS = ("csv", "parquet", "xlsx", "sdmx")


def people(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    return pd.DataFrame({"sex": rng.choice(["F", "M"], rows), "age": rng.integers(17, 91, rows), "agent": rng.choice(["a", "b"], rows)})


def times(path: Path) -> list[float]:
    """Of birth where the file system has it, of modification and of change."""
    birth, modified, changed = map(float, subprocess.check_output(["stat", "-c", "%.9W %.9Y %.9Z", path], text=True).split())
    return [*([birth] if birth else []), modified, changed]


def older_than(marker: Path, published: list[Path]) -> list[Path]:
    return [path for path in published if min(times(path)) < min(times(marker))]


@pytest.fixture
def first_draw(tmp_path, monkeypatch):
    """A file that is made when the first noise was drawn, which is after counting: the clock of files is the same for all."""
    marker = tmp_path / "drawn"

    def marked(real):
        return lambda *given, **named: (real(*given, **named), marker.touch() if not marker.exists() else None)[0]

    monkeypatch.setattr(_series, "draw", marked(_series.draw))
    monkeypatch.setattr(_keys.KeySearch, "draw", marked(_keys.KeySearch.draw))
    return marker


@pytest.mark.parametrize("rows", [10**3, 10**6])
def test_all_that_is_published_is_younger_than_the_first_noise(rows, tmp_path, first_draw):
    workload = ln.marginals(DOMAIN, ways=2)
    out = tmp_path / "new" / "folder" / "out"
    options = ln.Options(formats=FORMATS)
    plan = ln.plan(workload, ln.PureDP(1))
    ln.release(plan, people(rows), ledger=tmp_path / "people.ledger", out=out, options=options)
    published = [out.parents[1], out.parents[0], out, *out.rglob("*")]
    assert len(published) > 8
    assert older_than(first_draw, published) == []


def test_found_categories_are_younger_than_their_noise(tmp_path, first_draw):
    plan = ln.plan_categories("agent", ln.Unknown(9, outside="other"), ln.ApproxDP("1/2", "1e-9"))
    whole = ln.Privacy(ln.ApproxDP(1, "1e-6"))
    out = tmp_path / "agents"
    ln.find_categories(plan, people(10**4), ledger=tmp_path / "people.ledger", out=out, whole=whole)
    assert older_than(first_draw, [out, *out.rglob("*")]) == []


def test_an_older_directory_is_seen(tmp_path):
    older, marker = tmp_path / "older", tmp_path / "marker"
    older.mkdir()
    marker.touch()
    while min(times(marker)) <= min(times(older)):
        marker.unlink()
        marker.touch()
    assert older_than(marker, [older]) == [older]
