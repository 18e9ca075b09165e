"""No time in published files tells how long the counting took, birth times included."""

import re
import subprocess
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._cli import program
from leastnoise._publication import EXPORTS
from leastnoise._session import _release_job
from leastnoise._trusted.kernel import Series, _key_search, _series
from session.releasing import stopped

PLAN = ln.plan(
    ln.marginals(ln.Domain(sex=["F", "M"], age=ln.Integers(17, 90)), ways=2), ln.PureDP(1)
)
SEARCH = ln.plan_categories("agent", ln.Unknown(9, outside="other"), ln.ApproxDP("1/2", "1e-9"))
FORMATS = ln.Options(formats=("csv", "parquet", "xlsx", "sdmx"))
pytestmark = pytest.mark.filterwarnings(
    "ignore:Release . of .* was stopped before it was published"
)
few_and_many = pytest.mark.parametrize("rows", [10**3, 10**6])


def people(rows):
    """Return random rows."""
    rng = np.random.default_rng(rows)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], rows),
            "age": rng.integers(17, 91, rows),
            "agent": rng.choice(["a", "b"], rows),
        }
    )


def times(path):
    """Return the times of birth (where supported), modification and change of a file."""
    birth, modified, changed = map(
        float, subprocess.check_output(["stat", "-c", "%.9W %.9Y %.9Z", path], text=True).split()
    )
    return [*([birth] if birth else []), modified, changed]


def older_than(marker, published):
    return [path for path in published if min(times(path)) < min(times(marker))]


def clocks(path):
    """Return every time of day in a file, or in the parts of an archive and their texts."""
    if not zipfile.is_zipfile(path):
        return {
            clock.decode()
            for clock in re.findall(rb"\b[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\b", path.read_bytes())
        }
    with zipfile.ZipFile(path) as archive:
        matches = {
            re.search(rb"[0-2][0-9]:[0-5][0-9]:[0-5][0-9]", archive.read(member))
            for member in archive.namelist()
        } - {None}
        assert {member.date_time[3:] for member in archive.infolist()} == {(0, 0, 0)}
    return {clock.group().decode() for clock in matches}


def check_times(marker, published):
    """Check all times in files and file system; report a file system without birth times."""
    assert {clock for path in published if path.is_file() for clock in clocks(path)} <= {"00:00:00"}
    assert older_than(marker, published) == []
    if len(times(marker)) == 2:
        pytest.skip(
            "this file system tells no time of birth; the times of modification and change were "
            "compared, and are right"
        )


@pytest.fixture
def first_draw(tmp_path, monkeypatch):
    """Return a file that the test creates at the first draw of noise, after counting."""
    marker = tmp_path / "drawn"

    def marked(real):
        return lambda *arguments, **named: (
            real(*arguments, **named),
            marker.touch() if not marker.exists() else None,
        )[0]

    monkeypatch.setattr(_series, "draw_answers", marked(_series.draw_answers))
    monkeypatch.setattr(_key_search.KeySearch, "draw", marked(_key_search.KeySearch.draw))
    return marker


@few_and_many
def test_publications_are_younger_than_first_noise(rows, tmp_path, first_draw):
    out = tmp_path / "new" / "folder" / "out"
    ln.release(PLAN, people(rows), ledger=tmp_path / "people.ledger", out=out, options=FORMATS)
    published = [out.parents[1], out.parents[0], out, *out.rglob("*")]
    assert len(published) > 8
    check_times(first_draw, published)


@few_and_many
@pytest.mark.parametrize(
    "stop",
    [(), (Series, "find"), (_release_job, "write_categories")],
    ids=["at once", "before its draw", "after it"],
)
def test_found_categories_are_younger_than_their_noise(rows, stop, tmp_path, first_draw):
    ledger = tmp_path / "people.ledger"
    out = tmp_path / "new" / "agents"
    find = partial(
        ln.find_categories,
        SEARCH,
        people(rows),
        ledger=ledger,
        out=out,
        total_privacy=ln.Privacy(ln.ApproxDP(1, "1e-6")),
    )
    if stop:
        with stopped(*stop):
            find()
        assert first_draw.exists() == (stop[0] is _release_job)
        ln.resume(ledger, source=people(rows))
    else:
        find()
    check_times(first_draw, [out.parent, out, *out.rglob("*")])


@few_and_many
def test_resumed_publications_are_younger_than_first_noise(rows, tmp_path, first_draw):
    """Stopped after its measurement, in a new folder, and exported in every format."""
    out = tmp_path / "new" / "out"
    ledger = ln.Ledger.create(tmp_path / "people.ledger", "people", ln.Privacy(ln.PureDP(1)))
    with stopped(_release_job, "build_release"):
        ln.release(PLAN, people(rows), ledger=ledger, out=out, options=FORMATS)
    assert first_draw.exists()
    remaining = [
        path for path in tmp_path.rglob("*") if path.name.startswith("new") or "out" in path.parts
    ]
    assert len(ln.resume(ledger)) == 1
    exports = [tmp_path / f"export-{name}" for name in EXPORTS]
    for name, file in zip(EXPORTS, exports, strict=True):
        CliRunner().invoke(
            program, ["export", str(out), "--as", name, "--out", str(file)], catch_exceptions=False
        )
    check_times(first_draw, [*remaining, out, *out.rglob("*"), *exports])


def test_older_directory_is_detected(tmp_path):
    older = tmp_path / "older"
    marker = tmp_path / "marker"
    older.mkdir()
    marker.touch()
    while min(times(marker)) <= min(times(older)):
        marker.unlink()
        marker.touch()
    assert older_than(marker, [older]) == [older]
