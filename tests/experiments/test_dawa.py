"""The comparisons of `dawa` on small histograms and tables."""

import csv

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from experiments import dawa, dawa_plane
from experiments.dawa_comparison import draw_ratios, regret
from experiments.dawa_smooth import run as run_smooth
from leastnoise._trusted.check import InputError

FILES = {"errors.csv", "regret.csv", "ratios.svg", "ratios.png"}


@pytest.mark.parametrize("shape", [(300,), (1, 3), (20, 33)])
def test_random_queries_fit_the_cells_and_the_seed(shape):
    def draw_queries(workload):
        return (
            dawa.ranges_of(workload, 300, [1])
            if len(shape) == 1
            else dawa_plane.rectangles_of(workload, shape, [1])
        )

    for workload in dawa.WORKLOADS if len(shape) == 1 else dawa_plane.WORKLOADS:
        query_set = draw_queries(workload)
        assert (query_set.low >= 0).all()
        assert (query_set.low < query_set.high).all()
        assert (query_set.high <= shape).all()
        assert np.array_equal(query_set.low, draw_queries(workload).low)
        if workload == "small rectangles":
            assert (query_set.high - query_set.low <= np.maximum(1, np.array(shape) // 8)).all()


def test_clustered_ranges_lie_about_five_centres():
    ranges = dawa.ranges_of("clustered", 10**5, [2])
    middle = (ranges.low + ranges.high) / 2
    assert len({round(float(np.median(part)) / 500) for part in np.split(middle, 5)}) > 1
    assert all(np.std(part) < 500 for part in np.split(middle, 5))


def check_comparison(rows, mechanisms, out, progress):
    """Check the rows, files and lines of progress of a comparison."""
    for row in rows:
        assert row["ratio"] == row["dawa"] / row[row["best other"]]
        assert row["ratio to D"] == row["dawa"] / row["D"]
        assert "not private" not in row["best other"]
        assert row["worst release"] >= 1
        assert all(row[mechanism] > 0 and row[f"{mechanism} se"] >= 0 for mechanism in mechanisms)
    for summary in regret(rows):
        assert min(summary[mechanism] for mechanism in (*mechanisms, "dawa, largest")) >= 1
    with (out / "errors.csv").open(encoding="utf-8") as file:
        assert [float(row["dawa"]) for row in csv.DictReader(file)] == [row["dawa"] for row in rows]
    assert {path.name for path in out.iterdir()} == FILES
    assert progress[-1].startswith("Tables and figures are in")


@pytest.mark.slow
def test_histogram_comparison_writes_its_tables(tmp_path):
    (tmp_path / "hist1d").mkdir()
    np.save(tmp_path / "hist1d" / "SMALL.n4096.npy", np.repeat([40, 0, 3, 0], 16))
    progress = []
    size = dawa.Size(epsilons=("1",), scales=(None, 1000), trials=2, ours=dawa.OUR_MECHANISMS)
    rows = dawa.run(tmp_path, tmp_path / "out", size=size, report=progress.append)
    assert [(row["records"], row["workload"]) for row in rows] == [
        (records, workload) for records in (688, 1000) for workload in dawa.WORKLOADS
    ]
    check_comparison(
        rows, (*dawa.OUR_MECHANISMS, "D", "Identity", "EFPA"), tmp_path / "out", progress
    )


def test_table_comparison_writes_its_tables(tmp_path):
    table = np.zeros((12, 9), dtype=np.int64)
    table[:5, :4] = 30
    progress = []
    size = dawa_plane.Size(names=("small",), epsilons=("1",), trials=2, releases=3)
    rows = dawa_plane.compare(
        {"small": table, "left out": table}, tmp_path / "out", size, 0, progress.append
    )
    assert [(row["data"], row["workload"], row["records"]) for row in rows] == [
        ("small", workload, 600) for workload in dawa_plane.WORKLOADS
    ]
    check_comparison(
        rows,
        ("dawa", "D", "Identity", "AGrid", "UGrid", "QuadTree", "Uniform"),
        tmp_path / "out",
        progress,
    )


def test_unfinished_run_is_drawn_without_missing_parts(tmp_path):
    rows = [
        {"data": name, "epsilon": epsilon, "workload": workload, "ratio": 0.5}
        for name, epsilon in (("A", "0.1"), ("B", "0.1"), ("A", "1"))
        for workload in dawa.WORKLOADS
    ]
    draw_ratios(rows, tmp_path / "ratios", dawa.MARKS)
    assert {path.name for path in tmp_path.iterdir()} == {"ratios.svg", "ratios.png"}


@pytest.mark.parametrize(("run", "folder"), [(dawa.run, "hist1d"), (dawa_plane.run, "hist2d")])
def test_missing_data_are_reported(run, folder, tmp_path):
    with pytest.raises(InputError, match=rf"needs histograms .*{folder}.*; got none"):
        run(tmp_path, tmp_path / "out")


@pytest.mark.slow
def test_smoothing_gains_on_most_histograms(tmp_path):
    """Smoothing has a clear mean gain over one release of each histogram."""
    (tmp_path / "hist1d").mkdir()
    np.save(tmp_path / "hist1d" / "rough.n4096.npy", np.arange(4096) * 7919 % 5000)
    rows = run_smooth(
        tmp_path, tmp_path / "out", cells=(64,), query_sets=("prefix",), epsilons=("0.1",), trials=1
    )
    gains = [row["over least squares"] for row in rows]
    assert len(rows) == 1 + 2 * 6 + 2 * 14
    assert np.median(gains) <= 1
    assert max(gains) < 1.05
    assert np.exp(np.mean(np.log(np.maximum(gains, 0.01)))) < 0.95
    assert (tmp_path / "out" / "smoothed.csv").read_text().count("\n") == len(rows) + 1
