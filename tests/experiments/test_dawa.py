"""The DAWA experiment on a small histogram: workloads, fair sums, files."""

import csv
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from experiments.dawa import OURS, WORKLOADS, Size, ranges_of, regret, run
from experiments.dawa_figures import draw_ratios

from leastnoise._check import InputError


@pytest.mark.parametrize("workload", WORKLOADS)
def test_workloads_are_ranges_within_the_cells(workload: str) -> None:
    asked = ranges_of(workload, 300, [1])
    assert (asked.low >= 0).all()
    assert (asked.low < asked.high).all()
    assert asked.high.max() <= 300
    assert np.array_equal(asked.low, ranges_of(workload, 300, [1]).low)


def test_clustered_ranges_lie_about_five_centres() -> None:
    asked = ranges_of("clustered", 10**5, [2])
    middle = (asked.low + asked.high) / 2
    assert len({round(float(np.median(part)) / 500) for part in np.split(middle, 5)}) > 1
    assert all(np.std(part) < 500 for part in np.split(middle, 5))


def test_it_runs_and_writes_its_tables(tmp_path: Path) -> None:
    (tmp_path / "hist1d").mkdir()
    np.save(tmp_path / "hist1d" / "SMALL.n4096.npy", np.repeat([40, 0, 3, 0], 16))
    told: list[str] = []
    size = Size(epsilons=("1",), scales=(None, 1000), trials=2, ours=OURS)
    rows = run(tmp_path, tmp_path / "out", size=size, report=told.append)
    assert [(row["records"], row["workload"]) for row in rows] == [(records, one) for records in (688, 1000) for one in WORKLOADS]
    for row in rows:
        assert row["ratio"] == row["dawa"] / row[row["best other"]]
        assert "not private" not in row["best other"]
        assert all(row[one] > 0 and row[f"{one} se"] >= 0 for one in (*OURS, "D", "Identity", "EFPA"))
    for summary in regret(rows):
        assert min(value for key, value in summary.items() if key not in {"epsilon", "workload"}) >= 1
    with (tmp_path / "out" / "errors.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 8
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"errors.csv", "regret.csv", "ratios.svg", "ratios.png"}
    assert told[-1].startswith("Tables and figures are in")


def test_a_run_in_progress_is_drawn_without_what_is_missing(tmp_path: Path) -> None:
    rows = [
        {"data": name, "epsilon": epsilon, "workload": workload, "ratio": 0.5}
        for name, epsilon in (("A", "0.1"), ("B", "0.1"), ("A", "1"))
        for workload in WORKLOADS
    ]
    draw_ratios(rows, tmp_path / "ratios")
    assert {path.name for path in tmp_path.iterdir()} == {"ratios.svg", "ratios.png"}


def test_without_data_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs histograms"):
        run(tmp_path, tmp_path / "out")
