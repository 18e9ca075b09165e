"""The experiment on two attributes on small tables: queries, files, fair sums."""

import csv
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from experiments.dawa_plane import run
from experiments.dawa_rectangles import WORKLOADS, Size, compare, rectangles_of, regret

from leastnoise._check import InputError


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("shape", [(1, 3), (20, 33)])
def test_queries_lie_within_the_table(workload: str, shape: tuple[int, int]) -> None:
    asked = rectangles_of(workload, shape, [1])
    assert (asked.low >= 0).all()
    assert (asked.low < asked.high).all()
    assert (asked.high <= shape).all()
    assert np.array_equal(asked.low, rectangles_of(workload, shape, [1]).low)
    if workload == "small rectangles":
        assert (asked.high - asked.low <= np.maximum(1, np.array(shape) // 8)).all()


def test_it_runs_and_writes_its_tables(tmp_path: Path) -> None:
    table = np.zeros((12, 9), dtype=np.int64)
    table[:5, :4] = 30
    told: list[str] = []
    rows = compare(
        {"small": table, "left out": table}, tmp_path / "out", Size(names=("small",), epsilons=("1",), trials=2, releases=3), 0, told.append
    )
    assert [(row["data"], row["workload"], row["records"]) for row in rows] == [("small", one, 600) for one in WORKLOADS]
    for row in rows:
        assert row["ratio"] == row["dawa"] / row[row["best other"]]
        assert row["worst release"] >= 1
        assert all(row[one] > 0 and row[f"{one} se"] >= 0 for one in ("dawa", "D", "Identity", "AGrid"))
    with (tmp_path / "out" / "errors.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [float(row["dawa"]) for row in written] == [row["dawa"] for row in rows]
    (first, *_) = regret(rows)
    assert min(first[one] for one in ("dawa", "D", "Identity", "AGrid", "UGrid", "QuadTree", "Uniform")) == 1.0
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".csv", ".svg", ".png"}
    assert told[-1].startswith("Tables and figures are in")


def test_it_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs histograms in .*hist2d; got none"):
        run(tmp_path, tmp_path / "out")
