"""Tests of results as data frames in the library of the data, and as printed tables."""

import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._frames import escape_controls, pluralize

DOMAIN = ln.Domain(
    sex=["F", "M"], mean=ln.Integers(0, 29), measures={"pay": ln.Measure("pay", 0, 100, unit="0.5")}
)
WORKLOAD = ln.mean_queries(DOMAIN, "pay", by=["sex"]) + ln.cdf_queries(DOMAIN, "mean", by=["sex"])
PLAN = ln.plan(WORKLOAD, ln.PureDP(1), strategy="workload")
ROWS = pd.DataFrame(
    {"sex": ["F", "M"] * 300, "mean": list(range(30)) * 20, "pay": [1.5, 99.0] * 300}
)
ROWS_BY_LIBRARY = {
    "pandas": ROWS,
    "polars": pl.from_pandas(ROWS),
    "lazy": pl.from_pandas(ROWS).lazy(),
    "pyarrow": pa.Table.from_pandas(ROWS),
}
FRAME_CLASS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.DataFrame,
    "pyarrow": pa.Table,
}


def results_with_frames(release):
    """Return all results that have data frames, by name."""
    distribution = ln.cdf(release, "mean", by=["sex"], draws=199)
    return {
        "means": ln.means(release, "pay", by=["sex"]),
        "quantiles": ln.quantiles(release, "mean", [0.25, 0.5], by=["sex"]),
        "cdf": distribution,
        "quantiles of the function": distribution.quantiles([0.5]),
        "error": release.plan.expected_error(),
        "comparison": ln.compare(ln.marginals(DOMAIN, ways=1), ln.PureDP(1)),
    }


@pytest.fixture(scope="module")
def results():
    return results_with_frames(ln.release(PLAN, ROWS, seed=1))


@pytest.mark.parametrize("library", list(ROWS_BY_LIBRARY))
def test_frames_are_of_the_library_of_the_data(library):
    release = ln.release(PLAN, ROWS_BY_LIBRARY[library], seed=1)
    results = results_with_frames(release)
    frames = [
        release.answers,
        release.tables[0].frame(),
        release.statistics[0].frame(),
        release.answer(WORKLOAD)[0].frame(),
        release.tables[0].rounded(5).frame(),
    ]
    statistics = ("means", "quantiles", "cdf", "quantiles of the function")
    frames += [results[name].frame() for name in statistics]
    if library == "polars":
        frames.append(release.with_nnls().tables[0].frame())
    assert {type(frame) for frame in frames} == {FRAME_CLASS[library]}
    assert isinstance(results["means"].frame("pandas"), pd.DataFrame)


def test_frames_of_means_and_distributions_have_their_values(results):
    means = results["means"]
    assert list(means.columns()) == ["sex", "mean", "low", "high", "std_error", "sum", "count"]
    assert means.frame()["mean"].tolist() == means.mean.tolist()
    distribution = results["cdf"]
    assert list(distribution.columns()) == ["sex", "mean", "share", "low", "high"]
    frame = distribution.frame()
    assert frame["share"].to_numpy() == pytest.approx(distribution.share.reshape(-1))
    assert frame["mean"].tolist() == [*range(30)] * 2
    quantiles = results["quantiles"]
    rows = [[*quantile.group, quantile.share, quantile.value] for quantile in quantiles]
    assert quantiles.frame()[["sex", "share", "value"]].to_numpy().tolist() == rows
    assert [*quantiles[1:]] == [*quantiles][1:]


def test_frame_columns_are_values_under_unique_names():
    workload = ln.mean_queries(DOMAIN, "pay", by=["mean"])
    plan = ln.plan(workload, ln.PureDP(1), strategy="workload")
    means = ln.means(ln.release(plan, ROWS, seed=1), "pay", by=["mean"])
    assert list(means.columns())[:2] == ["mean_2", "mean"]


def test_errors_are_in_the_amounts_of_the_measure():
    error = PLAN.expected_error()
    frame = error.frame("pandas")
    assert frame["table"].tolist() == [table.name for table in error.tables]
    units = {"sum of pay by sex": 0.5}
    rmse = [table.rmse * units.get(table.name, 1) for table in error.tables]
    assert frame["rmse"].tolist() == rmse
    assert ln.Plan.from_json(PLAN.to_json()).expected_error().frame("pandas").equals(frame)


def test_comparison_gives_reasons_for_unusable_strategies(results):
    frame = results["comparison"].frame("pandas")
    unusable = frame["expected_total_squared_error"].isna()
    assert unusable.any()
    assert (frame["reason"].str.len() > 0).equals(unusable)
    assert frame["expected_total_squared_error"].dropna().is_monotonic_increasing


def test_frames_print_as_tables(results):
    for result in results.values():
        columns = result.columns()
        lines = repr(result).split("\n")
        if result.title:
            assert lines.pop(0) == result.title
        assert lines[0].split() == list(columns)
        rows = len(next(iter(columns.values())))
        assert len(lines) == 1 + min(rows, 20) + (rows > 20)
        assert (f"... {rows - 20} more; .frame() has all" == lines[-1]) == (rows > 20)
        assert result._repr_html_().count("<tr>") == 1 + min(rows, 20)


def test_pandas_is_not_needed():
    program = """
import sys
sys.modules["pandas"] = None
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pandas" else find_spec(name, *more)
import polars, leastnoise as ln
domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 100)})
plan = ln.plan(ln.mean_queries(domain, "pay", by=["sex"]), ln.PureDP(1), strategy="workload")
release = ln.release(plan, polars.DataFrame({"sex": ["F", "M"], "pay": [1, 2]}), seed=1)
for frame in (release.answers, ln.means(release, "pay").frame(), plan.expected_error().frame()):
    assert isinstance(frame, polars.DataFrame), type(frame)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_pluralisation_and_control_characters():
    assert pluralize(1, "row") == "1 row"
    assert pluralize(2000, "row") == "2,000 rows"
    assert pluralize(0, "query", "queries") == "0 queries"
    assert escape_controls("a\x1b[31m") == "a\\x1b[31m"
    assert escape_controls("\u202egpj.exe") == "\\u202egpj.exe"
