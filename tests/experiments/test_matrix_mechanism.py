"""The matrix mechanism experiment: small sizes, figures, and its command."""

import csv
import math

import numpy as np
import pytest
from bench import matrix_mechanism as bench
from click.testing import CliRunner

from experiments import matrix_mechanism as experiment
from leastnoise._cli import _demo as command
from leastnoise._trusted.check import InputError
from published_data import published_data

BUDGETS = ("pure", "Gaussian")


def ignore_progress(_):
    """Ignore the progress."""


def test_all_ranges_give_the_published_errors():
    rows = experiment.all_ranges_against_bound((64,), ignore_progress)
    pure, gaussian = rows
    # Optima of docs/results/matrix-mechanism.md, four digits; ours must be at or below the
    # published optimum and above the bound.
    expected = {"cells": 4.690, "hierarchy": 7.976, "wavelet": 7.150, "bound": 2.277}
    assert {name: pure[name] for name in expected} == pytest.approx(expected, abs=6e-4)
    assert 2.277 < pure["ours"] < 3.9265
    expected = {"hierarchy": 3.0148, "wavelet": 2.7025, "ours": 2.3022, "bound": 2.2773}
    assert {name: gaussian[name] for name in expected} == pytest.approx(expected, abs=2e-4)


def test_random_ranges_lie_between_bound_and_all_ranges():
    rows = experiment.random_ranges(32, 1, ignore_progress, (256, 1024))
    assert [row["ranges"] for row in rows[::2]] == [256, 1024]
    for row in rows:
        assert row["bound"] <= row["ours"] * (1 + 1e-9)
        assert row["ours"] <= row["ours for all ranges"] * (1 + 1e-3)


@pytest.mark.slow
def test_non_negative_inference_and_its_figure(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra 'experiments'")
    rows = experiment.non_negative_inference(None, 64, 3, 0, ignore_progress)
    assert len(rows) == 12
    assert {row["data"] for row in rows} == {"generated"}
    for row in rows:
        assert row["non-negative, cells"] < row["unbiased, cells"]
        assert row["unbiased, ranges"] == pytest.approx(row["promised, ranges"], rel=1.5)
    weak = [
        row["total fixed, ranges"] / row["non-negative, ranges"]
        for row in rows
        if row["strategy"] == "level_tree"
    ]
    assert max(weak) < 1
    experiment.draw_non_negative(rows, tmp_path / "figure")
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_all_ranges_squares_match_single_ranges():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 9, 7)
    values = cells + rng.normal(size=7)
    squares = [
        float((values - cells)[low : high + 1].sum() ** 2)
        for low in range(7)
        for high in range(low, 7)
    ]
    mean_squares = experiment.mean_squares(values - cells)
    assert mean_squares == pytest.approx(
        (float(((values - cells) ** 2).mean()), float(np.mean(squares)))
    )


def test_whole_counts_are_unbiased_and_within_one():
    rng = np.random.default_rng(0)
    for seed in range(20):
        cells = rng.exponential(2.0, 70) * (rng.random(70) < 0.5)
        cells *= round(float(cells.sum())) / cells.sum()
        moved = experiment.whole_counts(cells, seed) - cells
        runs = np.concatenate([[0], np.cumsum(moved)])
        assert np.abs(np.subtract.outer(runs, runs)).max() < 1 + 1e-9
        assert abs(moved.sum()) < 1e-9
    roundings = [
        experiment.whole_counts(np.array([0.1, 0.25, 3.5, 0.0, 0.65, 1.0]), seed)
        for seed in range(4000)
    ]
    # The mean of 4000 of two neighbouring numbers has a standard deviation of at most 0.008; 5 of
    # them.
    np.testing.assert_allclose(
        np.mean(roundings, axis=0), [0.1, 0.25, 3.5, 0.0, 0.65, 1.0], atol=0.04
    )


def test_real_histograms_are_read_in_place():
    histograms = experiment.histograms(published_data("hist1d"), 256, 0)
    assert {name: int(cells.sum()) for name, cells in histograms.items()} == {
        "NETTRACE": 25714,
        "ADULT": 17665,
    }


@pytest.mark.slow
def test_command_runs_an_experiment_by_name(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="figures need the extra 'experiments'")
    monkeypatch.setattr(
        experiment,
        "all_ranges_against_bound",
        lambda sizes, _: [row_of_errors(n=size, budget=b) for size in sizes for b in BUDGETS],
    )
    monkeypatch.setattr(
        experiment,
        "random_ranges",
        lambda *_: [
            row_of_errors(n=8, ranges=count, budget=b) for count in (4, 8) for b in BUDGETS
        ],
    )
    monkeypatch.setattr(
        experiment,
        "non_negative_inference",
        lambda *_: [row_of_estimates(e) for e in ("1/10", "1") for _ in range(4)],
    )
    result = CliRunner().invoke(
        command.experiments,
        ["matrix-mechanism", "--quick", "--out", str(tmp_path / "out")],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    assert "Tables and figures are in" in result.output
    names = {"all_ranges", "random_ranges", "non_negative"}
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("csv", "svg", "png")
    }
    with (tmp_path / "out" / "all_ranges.csv").open(encoding="utf-8") as file:
        assert [line["n"] for line in csv.DictReader(file)] == [
            "64",
            "64",
            "128",
            "128",
            "256",
            "256",
        ]


def row_of_errors(**settings):
    """Return a row of made-up errors of strategies."""
    return {
        **settings,
        "cells": 5.0,
        "hierarchy": 4.0,
        "wavelet": 3.0,
        "ours": 2.0,
        "ours for all ranges": 2.2,
        "bound": 1.5,
    }


def row_of_estimates(epsilon):
    """Return a row of made-up errors of estimates."""
    names = ("unbiased", "non-negative", "total fixed", "whole counts")
    return {
        "data": "made up",
        "epsilon": epsilon,
        "strategy": "hierarchy",
        **{f"{n}, {w}": 2.0 for n in names for w in ("cells", "ranges")},
    }


def test_bare_command_lists_experiments(capsys):
    command.experiments.callback(None, None, None, False)
    assert {"matrix-mechanism", "datacubes", "coverage"} <= set(capsys.readouterr().out.split("\n"))


def test_command_names_unsupported_experiment(tmp_path, monkeypatch):
    def refusal(name, data=None):
        with pytest.raises(InputError) as caught:
            command.experiments.callback(name, data, None, False)
        return str(caught.value)

    assert "NAME must be one of " in refusal("nothing")
    assert "Did you mean 'matrix-mechanism'?" in refusal("matrix-mechanisms")
    assert "--data must be a folder that exists" in refusal(
        "matrix-mechanism", tmp_path / "nowhere"
    )
    assert (
        refusal("datacubes")
        == "The experiment datacubes needs real data; got no folder. Add --data DIR."
    )
    monkeypatch.setattr(command, "_ROOT", tmp_path / "elsewhere")
    assert refusal("datacubes").startswith("The installed package has no experiments")


def test_quick_bench_reaches_the_published_numbers(capsys):
    results = bench.main(["--quick", "--only", "prefix, as a matrix, n = 64"])
    assert [name for name, _, _ in results] == ["prefix, as a matrix, n = 64"] * 2
    assert max(ratio for _, _, ratio in results) < 1.0005
    assert "2 numbers, 2 reached" in capsys.readouterr().out


def test_bench_states_workloads_of_several_attributes(tmp_path):
    cases = {case.name: case for case in bench.several_attributes(tmp_path)}
    queries = {name: case.workload().rows for name, case in cases.items()}
    assert queries["10^8, 4-way"] == math.comb(8, 4) * 10**4
    assert queries["CPS, cells and totals"] == 51 * 101 * 8 * 5 * 3
    assert queries["CPS, prefix on income and age"] == 50 * 100 * 8 * 5 * 3
    assert queries["Adult, 2-way with prefix on 75, 16, 20"] == queries["Adult, 2-way"]


def test_bench_states_workloads_of_census_tables():
    schemas = published_data("schemas/census_sf1_person.json") / "schemas"
    cases = {case.name: case for case in bench.several_attributes(schemas)}
    queries = {name: case.workload().rows for name, case in cases.items()}
    assert queries["Census SF1 persons"] == 4151
    assert queries["Census SF1 persons, 51 states"] == 215852
