"""Coverage of published 95% intervals on a few data sets, with fixed seeds."""

import csv
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from experiments import coverage
from experiments.coverage import BUDGETS, aware_table, linear_table, run
from experiments.coverage_aware import ALONG, Case, along, on_plane, quick_strategies
from experiments.coverage_linear import estimates, functions, planners
from experiments.coverage_shapes import histograms, real_histograms, real_tables, tables
from experiments.coverage_statistics import BUDGETS as STATISTIC_BUDGETS
from experiments.coverage_statistics import STUDIES, covered
from experiments.coverage_sums import KINDS, amounts, of_all_values, of_cut_values, real_amounts
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, PureDP

AWARE: list[Budget] = [PureDP("1/2"), ZCDP("1/8"), ApproxDP("1/2", "1e-9")]


def mean_coverage(rows, *keys):
    """Return the mean coverage by ``keys``, weighted by the number of releases."""
    shares_by_kind: dict[tuple[object, ...], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        shares_by_kind[tuple(row[key] for key in keys)].append(
            (float(row["coverage"]), float(row["releases"]))
        )
    return {
        key: float(np.average([share for share, _ in pairs], weights=[many for _, many in pairs]))
        for key, pairs in shares_by_kind.items()
    }


@pytest.mark.parametrize("budget", AWARE, ids=str)
def test_adaptive_intervals_cover_on_easy_and_hard_data(budget):
    pure = isinstance(budget, PureDP)
    names = ("sparse", "steps", "rough", "daily", "one cell") if pure else ("sparse", "rough")
    data = {name: x for name, x in histograms(64, 1000, 11).items() if name in names}
    strategies = ("dawa", "dawa_levels") if pure else ("dawa_levels",)
    with quick_strategies():
        rows = list(
            along(
                Case(group="made up", data=data, budget=budget, strategies=strategies, trials=2), 3
            )
        )
    # Each has 4 to 10 releases, whose answers share their noise.
    coverages = mean_coverage(rows, "strategy", "queries")
    assert {kind for _, kind in coverages} == set(ALONG)
    assert min(coverages.values()) > 0.88, coverages


def test_intervals_on_two_attributes_cover():
    data = {
        name: x
        for name, x in tables(16, 10**4, 12).items()
        if name in ("sparse", "blocks", "band", "heavy tail")
    }
    with quick_strategies():
        rows = list(on_plane(Case(group="made up", data=data, budget=PureDP("1/2"), trials=4), 3))
    assert min(mean_coverage(rows, "queries").values()) > 0.88


def test_intervals_of_shrunk_cells_cover():
    """Intervals of shrunk cells cover at least 91% for normal errors."""
    data = {
        name: x
        for name, x in tables(32, 10**4, 12).items()
        if name in ("sparse", "blocks", "rough", "heavy tail")
    }
    rows = list(
        on_plane(Case(group="made up", data=data, budget=PureDP("1/2"), trials=4, few=True), 3)
    )
    assert {row["regime"] for row in rows} >= {"blocks"}
    assert min(mean_coverage(rows, "data", "queries").values()) > 0.9


def test_sum_intervals_cover_their_target():
    """With a threshold the target is the sums of the cut values, else of all values."""
    shapes = amounts(1)
    with quick_strategies():
        cut = Case(
            group="", data={"log-normal": shapes["log-normal"]}, budget=PureDP("1/10"), trials=3
        )
        assert min(mean_coverage(list(of_cut_values(cut, 3)), "queries").values()) > 0.8
        hidden = Case(
            group="",
            data={name: shapes[name] for name in ("Pareto 2.0", "few large", "few records")},
            budget=PureDP("1/50"),
            trials=8,
        )
        coverages = mean_coverage(
            [
                row
                for budget in (hidden.budget, ZCDP("1/1000"))
                for row in of_all_values(replace(hidden, budget=budget), 3)
            ],
            "data",
            "queries",
        )
    assert {kind for _, kind in coverages} == set(KINDS)
    # Intervals for only the kept amount covered under half of the Pareto tail's prefix sums.
    assert min(coverages.values()) > 0.9, coverages


@pytest.mark.parametrize("budget", BUDGETS)
def test_intervals_of_planners_and_functions_cover(budget):
    only = {budget: BUDGETS[budget]}
    rows = [*planners(only, 8, 5, ("identity",)), *functions(only, 8, 5, draws=19)]
    coverages = {estimate: share for (estimate,), share in mean_coverage(rows, "estimate").items()}
    assert set(coverages) == {"unbiased", "cdf band", "quantile intervals", "means", "isotonic"}
    assert coverages["unbiased"] > 0.93
    assert min(coverages.values()) > 0.7, coverages  # eight bands: two may miss
    assert "| unbiased | identity |" in "\n".join(linear_table(rows))


def test_biased_columns_match_published_widths():
    rows = list(estimates({"epsilon": BUDGETS["epsilon"]}, 1, 5))
    assert [row["estimate"] for row in rows] == [
        "non-negative",
        "integer",
        "nnls",
        "nnls, 1.96 nnls_rmse",
        "local non-negative",
    ]
    assert all(0.8 < row["coverage"] <= 1 for row in rows)


def test_undercovering_data_set_is_redrawn_not_dropped(monkeypatch):
    monkeypatch.setattr(coverage, "_AGAIN", 5)
    case = Case(
        group="made up",
        data={name: histograms(16, 50, 1)[name] for name in ("empty", "rough")},
        budget=PureDP(1),
        trials=2,
    )
    common = {"strategy": "dawa", "group": "made up", "releases": 2}
    rows = [
        {**common, "data": "rough", "coverage": 0.5, "queries": "cells"},
        {**common, "data": "empty", "coverage": 1.0, "queries": "cells"},
    ]
    with quick_strategies():
        redrawn = coverage.repeat_doubtful(case, rows, 2)
    assert redrawn[0] == rows[1]
    assert {row["data"] for row in redrawn[1:]} == {"rough"}
    assert sum(row["releases"] for row in redrawn[1:] if row["queries"] == "cells") == 5


def test_undercovering_sums_get_a_second_draw():
    low, high = (
        {"strategy": "truncated_sums", "data": name, "coverage": share, "releases": 4}
        for name, share in (("a", 0.5), ("b", 1.0))
    )
    second = [{**low, "coverage": 0.3}, {**high, "coverage": 0.4}]
    assert coverage.replace_doubtful([low, high], lambda: second) == [high, second[0]]
    assert coverage.replace_doubtful([high], lambda: second) == [high]


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_intervals_of_statistics_cover(name):
    releases = 4 if name == "quantiles by selection" else 16
    inside, has_ends = covered(STUDIES[name], STATISTIC_BUDGETS["epsilon"], releases)
    assert inside.mean() >= 0.93
    assert has_ends.mean() > 0.2
    assert inside[has_ends].mean() >= 0.93


def test_coverage_command_writes_its_tables(tmp_path, monkeypatch):
    data = {"sparse": histograms(32, 100, 1)["sparse"]}
    case = Case(group="made up", data=data, budget=PureDP(1), trials=6)
    monkeypatch.setattr(coverage, "cases", lambda *_, **__: [case])
    monkeypatch.setattr(coverage, "run_sums", lambda *_, **__: [list(along(case, 1))])
    monkeypatch.setattr(
        coverage, "planners", lambda *_: planners({"epsilon": PureDP(1)}, 2, 1, ("identity",))
    )
    for name in ("estimates", "functions"):
        monkeypatch.setattr(coverage, name, lambda *_: [])
    progress: list[str] = []
    rows = run(None, tmp_path / "out", quick=True, report=progress.append)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "linear.csv",
        "aware.csv",
        "tables.md",
    }
    with (tmp_path / "out" / "aware.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(rows["aware"])
    assert aware_table(rows["aware"])[2].startswith("| dawa |")
    assert progress[-1].startswith("Tables are in")


def test_real_data_are_joined_to_requested_size(tmp_path):
    for folder, shape in (("hist1d", (64,)), ("hist2d", (16, 16))):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "SMALL.n.npy", np.arange(np.prod(shape)).reshape(shape))
    (line,), (table,) = real_histograms(tmp_path, 16).values(), real_tables(tmp_path, 4).values()
    (drawn,) = real_amounts(tmp_path, 1, 500).values()
    assert len(drawn) == 500
    assert set((drawn / 1000).tolist()) <= set(range(2, 65))  # the first cell is empty
    assert line.tolist() == [4 * (4 * place) + 6 for place in range(16)]
    assert table.shape == (4, 4)
    assert table.sum() == 255 * 128
    assert table[0, 0] == sum(16 * row + column for row in range(4) for column in range(4))
