"""Results as data frames in the library of the data, and as printed tables."""

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
ASKED = ln.mean_queries(DOMAIN, "pay", by=["sex"]) + ln.cdf_queries(DOMAIN, "mean", by=["sex"])
PLAN = ln.plan(ASKED, ln.PureDP(1), strategy="workload")
ROWS = pd.DataFrame(
    {"sex": ["F", "M"] * 300, "mean": list(range(30)) * 20, "pay": [1.5, 99.0] * 300}
)
AS = {
    "pandas": ROWS,
    "polars": pl.from_pandas(ROWS),
    "lazy": pl.from_pandas(ROWS).lazy(),
    "pyarrow": pa.Table.from_pandas(ROWS),
}
KIND = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.DataFrame, "pyarrow": pa.Table}


def frame_columns(release):
    """All that gives frames, by name."""
    function = ln.cdf(release, "mean", by=["sex"], draws=199)
    return {
        "means": ln.means(release, "pay", by=["sex"]),
        "quantiles": ln.quantiles(release, "mean", [0.25, 0.5], by=["sex"]),
        "cdf": function,
        "quantiles of the function": function.quantiles([0.5]),
        "error": release.plan.expected_error(),
        "comparison": ln.compare(ln.marginals(DOMAIN, ways=1), ln.PureDP(1)),
    }


@pytest.fixture(scope="module")
def made():
    return frame_columns(ln.release(PLAN, ROWS, seed=1))


@pytest.mark.parametrize("library", list(AS))
def test_frames_are_of_the_library_of_the_data(library) -> None:
    release = ln.release(PLAN, AS[library], seed=1)
    columns = frame_columns(release)
    frames = [
        release.answers,
        release.tables[0].frame(),
        release.statistics[0].frame(),
        release.answer(ASKED)[0].frame(),
    ]
    frames += [
        columns[name].frame() for name in ("means", "quantiles", "cdf", "quantiles of the function")
    ]
    frames += [
        release.tables[0].rounded(5).frame(),
        release.with_nnls().tables[0].frame() if library == "polars" else frames[0],
    ]
    assert {type(frame) for frame in frames} == {KIND[library]}
    assert isinstance(columns["means"].frame("pandas"), pd.DataFrame)


def test_frame_columns_are_values_under_unique_names(made) -> None:
    means, function = made["means"], made["cdf"]
    assert list(means.columns()) == ["sex", "mean", "low", "high", "std_error", "sum", "count"]
    assert means.frame()["mean"].tolist() == means.mean.tolist()
    assert list(function.columns()) == ["sex", "mean", "share", "low", "high"]
    assert function.frame()["share"].to_numpy() == pytest.approx(function.share.reshape(-1))
    assert function.frame()["mean"].tolist() == [*range(30)] * 2
    plan = ln.plan(ln.mean_queries(DOMAIN, "pay", by=["mean"]), ln.PureDP(1), strategy="workload")
    both = ln.means(ln.release(plan, ROWS, seed=1), "pay", by=["mean"])
    assert list(both.columns())[:2] == ["mean_2", "mean"]
    quantiles = made["quantiles"]
    assert quantiles.frame()[["sex", "share", "value"]].to_numpy().tolist() == [
        [*quantile.group, quantile.share, quantile.value] for quantile in quantiles
    ]
    assert [*quantiles[1:]] == [*quantiles][1:]


def test_errors_are_in_the_amounts_of_the_measure() -> None:
    frame, tables = PLAN.expected_error().frame("pandas"), PLAN.expected_error().tables
    assert frame["table"].tolist() == [table.name for table in tables]
    assert frame["rmse"].tolist() == [
        table.rmse * (0.5 if table.name == "sum of pay by sex" else 1) for table in tables
    ]
    assert ln.Plan.from_json(PLAN.to_json()).expected_error().frame("pandas").equals(frame)


def test_comparison_gives_reasons_for_unusable_strategies(made) -> None:
    frame = made["comparison"].frame("pandas")
    unusable = frame["expected_total_squared_error"].isna()
    assert unusable.any()
    assert (frame["reason"].str.len() > 0).equals(unusable)
    assert frame["expected_total_squared_error"].dropna().is_monotonic_increasing


def test_frames_print_as_tables(made) -> None:
    for value in made.values():
        columns = value.columns()
        lines = repr(value).split("\n")
        if value.title:
            assert lines.pop(0) == value.title
        assert lines[0].split() == list(columns)
        rows = len(next(iter(columns.values())))
        assert len(lines) == 1 + min(rows, 20) + (rows > 20)
        assert (f"... {rows - 20} more; .frame() has all" == lines[-1]) == (rows > 20)
        assert value._repr_html_().count("<tr>") == 1 + min(rows, 20)


def test_pandas_is_not_needed() -> None:
    program = """
import sys
sys.modules["pandas"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pandas" else found(name, *more)
import polars, leastnoise as ln
domain = ln.Domain(sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 100)})
plan = ln.plan(ln.mean_queries(domain, "pay", by=["sex"]), ln.PureDP(1), strategy="workload")
release = ln.release(plan, polars.DataFrame({"sex": ["F", "M"], "pay": [1, 2]}), seed=1)
for frame in (release.answers, ln.means(release, "pay").frame(), plan.expected_error().frame()):
    assert isinstance(frame, polars.DataFrame), type(frame)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_pluralisation_and_control_characters() -> None:
    assert (pluralize(1, "row"), pluralize(2000, "row"), pluralize(0, "query", "queries")) == (
        "1 row",
        "2,000 rows",
        "0 queries",
    )
    assert (escape_controls("a\x1b[31m"), escape_controls("\u202egpj.exe")) == (
        "a\\x1b[31m",
        "\\u202egpj.exe",
    )
