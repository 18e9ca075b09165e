"""The experiment on sums: private, unbiased mechanisms, tables and figures."""

import csv
from fractions import Fraction

import numpy as np
import pytest
from bench import sums as bench
from click.testing import CliRunner

from experiments import sums as experiment
from experiments import sums_mechanisms as mechanisms
from experiments import sums_shapes
from leastnoise._cli import load_command
from leastnoise._trusted.kernel import SeededEntropy
from published_data import published_data

COLUMN = mechanisms.income(None)
THREE_SUMS = mechanisms.PrefixSums(
    edges=np.array([20_000, 40_000, 60_000, 100_000, 200_000, 800_000]), last=np.array([1, 3, 5])
)


def sums_below_edges(column, edges, threshold, reading):
    """Add up the counted records below each edge, cut at the threshold."""
    counted = (
        column.values if reading == "records" else 800 * np.maximum(-(-column.values // 800), 1)
    )
    upper = 800 * np.maximum(-(-column.values // 800), 1)
    return np.array([np.minimum(counted[upper <= edge], threshold).sum() for edge in edges])


@pytest.mark.parametrize("reading", mechanisms.READINGS)
def test_clipped_sums_match_the_records(reading):
    cut_sums = COLUMN.cut_sums(THREE_SUMS.edges, 70_000, reading)
    assert (
        np.cumsum(cut_sums).tolist()
        == sums_below_edges(COLUMN, THREE_SUMS.edges, 70_000, reading).tolist()
    )
    assert (
        COLUMN.answers(THREE_SUMS, reading).tolist()
        == sums_below_edges(COLUMN, THREE_SUMS.edges[THREE_SUMS.last], 800_000, reading).tolist()
    )


@pytest.mark.parametrize("name", [*experiment.PAPER, "optimum"])
def test_sum_algorithms_are_unbiased_within_budget(name):
    rows, bins = mechanisms.rows_for_threshold(name, THREE_SUMS, 70_000)
    limits = bins.limits(70_000)
    scales = np.ceil(rows.cost / rows.weights / 0.3)
    assert float(((np.abs(rows.rows) / scales[:, None]).sum(axis=0) * limits).max()) <= 0.3
    sums = COLUMN.cut_sums(bins.edges, 70_000, "records")
    draws = rows.draw(sums, Fraction(3, 10), 4000, SeededEntropy(4))
    exact = sums_below_edges(COLUMN, THREE_SUMS.edges[THREE_SUMS.last], 70_000, "records")
    # Three means of 4000 draws are within 5 standard errors; their standard deviations have
    # standard errors of 1.8%.
    std = draws.std(axis=0)
    assert (np.abs(draws.mean(axis=0) - exact) < 5 * std / 4000**0.5).all()
    strategy_std = np.sqrt(2 * (rows.recover**2 @ (rows.weights * scales) ** 2))
    assert std == pytest.approx(strategy_std, rel=0.09)


def test_single_queries_split_budget_and_filter_first():
    answers_of_runs = [
        mechanisms.single_queries(
            COLUMN, THREE_SUMS, "records", Fraction(3), Fraction(1, 10), "none", SeededEntropy(seed)
        )[0]
        for seed in range(600)
    ]
    exact = sums_below_edges(COLUMN, THREE_SUMS.edges[THREE_SUMS.last], 800_000, "records")
    # epsilon = 3 over 3 queries, nine tenths of each for its answer.
    expected = np.sqrt(2) * THREE_SUMS.edges[THREE_SUMS.last] / 0.9
    assert np.std(answers_of_runs, axis=0) == pytest.approx(expected, rel=0.25)
    assert (np.abs(np.mean(answers_of_runs, axis=0) - exact) < 5 * expected / 600**0.5).all()
    answers, thresholds = mechanisms.single_queries(
        COLUMN, THREE_SUMS, "records", Fraction(300), Fraction(1, 2), "svt", SeededEntropy(1)
    )
    cut = [
        sums_below_edges(COLUMN, [edge], limit, "records")[0]
        for edge, limit in zip(THREE_SUMS.edges[THREE_SUMS.last], thresholds, strict=True)
    ]
    assert answers == pytest.approx(cut, abs=50_000)


def test_thresholds_stay_within_public_maximum():
    sums = mechanisms.workload(100)
    for search in (mechanisms.tail_threshold, mechanisms.least_error_threshold):
        thresholds = {
            epsilon: [
                search(COLUMN, sums, Fraction(epsilon), SeededEntropy(seed)) for seed in range(5)
            ]
            for epsilon in ("1/100", "2")
        }
        assert max(map(max, thresholds.values())) <= mechanisms.MAXIMUM
        assert np.median(thresholds["1/100"]) < np.median(thresholds["2"])
    assert mechanisms.recursive_threshold(COLUMN, Fraction(1, 1000), SeededEntropy(2)) % 16_000 == 0


@pytest.mark.slow
def test_command_writes_tables_and_figures(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="figures need the extra 'experiments'")
    monkeypatch.setattr(experiment, "WORKLOADS", {"Q2": 10})
    monkeypatch.setattr(experiment, "EPSILONS", experiment.EPSILONS[:1])
    # The test above covers these; every further threshold needs its own strategies.
    for search in ("svt_threshold", "recursive_threshold"):
        monkeypatch.setattr(experiment, search, lambda *_: 100_000)
    monkeypatch.setattr(
        experiment, "OUR_THRESHOLDS", dict.fromkeys(experiment.OUR_THRESHOLDS, lambda *_: 100_000)
    )
    result = CliRunner().invoke(
        load_command("experiments"),
        ["sums", "--quick", "--out", str(tmp_path / "out")],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    assert "TaMM with SVT" in result.output
    with (tmp_path / "out" / "configurations.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = {(row["algorithm"], row["threshold"]) for row in rows}
    assert {
        (name, kind) for name in (*experiment.PAPER, "sqm") for kind in ("none", "svt", "recursive")
    } <= shown
    assert {row["reading"] for row in rows} == {"records", "edges"}
    for name in ("figure-2", "figure-3", "figure-4", "comparison"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert "<svg" in (tmp_path / "out" / f"{name}.svg").read_text(encoding="utf-8")


def test_ours_beats_the_published_best_on_incomes():
    column = mechanisms.income(published_data("microdata/cps.csv"))
    sums = mechanisms.workload(10)
    epsilon = Fraction(1, 100)
    truth = column.answers(sums, "records").astype(float)
    entropy = SeededEntropy(3)

    def mean_error(search, name):
        """Return the mean error of 8 releases with nine tenths of the budget for the sums."""
        errors = []
        for _ in range(8):
            threshold = search()
            rows, bins = mechanisms.rows_for_threshold(name, sums, threshold)
            cut_sums = column.cut_sums(bins.edges, threshold, "records")
            draw = rows.draw(cut_sums, epsilon * Fraction(9, 10), 1, entropy)
            answers = experiment.monotone(draw)
            errors.append(experiment.relative_errors(answers, truth).mean())
        return float(np.mean(errors))

    ours = mean_error(lambda: mechanisms.tail_threshold(column, sums, epsilon, entropy), "optimum")
    theirs = mean_error(lambda: mechanisms.svt_threshold(column, epsilon / 10, entropy), "tamm")
    # The ratio is 0.3 over 100 trials; errors have a standard deviation of about 0.6 of the mean.
    assert ours < 0.8 * theirs


def test_buckets_take_the_largest_maximum_of_the_shapes():
    shape = max(sums_shapes.shapes(), key=lambda shape: shape.maximum)
    sums = mechanisms.PrefixSums(
        edges=shape.maximum // 20 * np.arange(1, 21), last=np.arange(20, dtype=np.int64)
    )
    answers = sums_shapes.draw_answers("buckets", shape, sums, Fraction(1), 10, SeededEntropy(5))
    truth = np.cumsum(shape.cut_sums(sums, shape.maximum))
    assert shape.unit == 10
    # The error is about 0.002 of the largest sum; sums in another unit would be ten times off.
    assert (np.abs(answers.mean(axis=0) - truth) < 0.02 * truth[-1]).all()


def test_benchmark_prints_ratios_of_errors(monkeypatch):
    monkeypatch.setattr(bench, "THRESHOLDS", (100_000,))
    (line,) = bench.noise([10])
    assert "over the best of the paper: 0.2" in line
