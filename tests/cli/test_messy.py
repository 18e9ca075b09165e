"""From files as people have them to a right release, by `init`, one spec and exact counts."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.messy import MESSY, stores
from leastnoise import read_release

Run = Callable[..., Any]
ROWS = int(os.environ.get("LEASTNOISE_MESSY", "3000"))


def filled(folder: Path, run: Run, name: str, epsilon: str = "1", rows: int = ROWS) -> Path:
    """The spec of a messy file, drafted by `init` and filled."""
    messy = MESSY[name]
    data = messy.make(folder, rows)
    stores(folder)
    drafted = run("init", data.name, *messy.init)
    assert drafted.code == 0, drafted.err
    spec = data.with_suffix(".toml")
    spec.write_text(messy.filled(spec.read_text(encoding="utf-8"), epsilon), encoding="utf-8")
    return spec


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_becomes_a_right_release(folder: Path, run: Run, name: str) -> None:
    spec = filled(folder, run, name, epsilon="200")  # noise of nothing: what is tested is the way from rows to counts
    planned = run("plan", spec.name)
    assert planned.code == 0, planned.err
    checked = run("check", spec.name)
    assert "outside" in checked.out
    assert f"rows used      {ROWS:,} (100.0%)" in checked.out, checked.out
    released = run("release", spec.name, "--out", "out")
    assert released.code == 0, released.err
    made = read_release("out")
    wanted = MESSY[name].tables(spec.with_suffix(".parquet" if name == "survey" else ".csv"))
    for table, counts in wanted.items():
        found = made.tables[table]
        labels = [str(label) for label in found.labels[0]]
        assert {label: round(float(answer)) for label, answer in zip(labels, found.answer, strict=True) if round(float(answer))} == {
            label: count for label, count in counts.items() if count
        }, table
