"""Tests of means, quantiles and distributions in plans, ``show``, reports and workbooks."""

import re
from pathlib import Path

import openpyxl
import pytest

import leastnoise as ln
from cli.conftest import SPEC, assert_contains
from leastnoise._texts import load_catalogue

STATISTICS_SPEC = (
    (
        SPEC.replace("integers = [17, 90]", 'integers = [17, 20]\noutside = "clip"')
        .replace("count = 10 }", 'count = 4 }\noutside = "clip"')
        # The query set is dense, without a product form.
        .replace('strategy = "marginals"', 'strategy = "workload"')
    )
    + """
[[workload]]
means = { of = "pay", by = ["sex"] }
size = 200
[[workload]]
means = { of = "pay" }
[[workload]]
quantiles = { of = "age", at = ["0.5", "0.9"], by = ["sex"] }
size = 200
[[workload]]
cdf = { of = "income" }
[output]
formats = ["csv", "xlsx"]
language = "de"
"""
)


@pytest.fixture
def spec(folder):
    (folder / "spec.toml").write_text(STATISTICS_SPEC)
    return "spec.toml"


@pytest.fixture
def release(spec, folder, run, prepare_once):
    """Return a release of the spec from the directory `out`."""
    prepare_once("release", lambda: run.succeeds("release", spec, "--out", "out", "--seed", "3"))
    return ln.read_release(folder / "out")


def test_plan_states_errors_of_statistics(spec, run):
    shown = run("plan", spec).out
    assert_contains(
        shown,
        "In means and sums of pay a value below",
        "state a public size for the error of a mean",
    )
    for line in (
        (
            r"mean of pay by sex +standard error at most [\d.,]+ in a group of 200(\.0)? rows "
            r"\(delta method\)"
        ),
        (
            r"quantiles of age by sex +standard error of the counts up to a cell [\d.]+ rows, "
            r"0\.\d+ of 200(\.0)? rows"
        ),
        # The unit of the errors.
        r"sum of pay by sex +2 +[\d,.]+ +[\d,.]+ +pay +1\n",
        r"count of pay by sex +2 +[\d,.]+ +[\d,.]+ +rows +1\n",
    ):
        assert re.search(line, shown), shown


def test_plan_states_statistics_as_json(spec, run):
    plan = run.json("plan", spec)
    mean_by_sex, mean, quantiles, distribution = plan["statistics"]
    tables = {table["name"]: table for table in plan["tables"]}
    counts, sums = (tables[name] for name in mean_by_sex["tables"])
    # Distances are measured from both ends: at the largest mean only the noise of the distances
    # from above is left, which is as large as the noise of the sums.
    assert mean_by_sex["std_error"] == pytest.approx(sums["rmse"] / 200)
    assert 1000 * counts["rmse"] == pytest.approx(2**0.5 * sums["rmse"])
    assert "delta method" in mean_by_sex["method"]
    assert mean["size"] is None
    assert mean["std_error"] is None
    assert quantiles["rows"] == pytest.approx(plan["rmse"]["sex x age:prefix"])
    assert quantiles["std_error"] == pytest.approx(quantiles["rows"] / 200)
    assert distribution["request"] == {"cdf": {"of": "income", "by": []}}


def test_plan_states_missing_values_and_their_cost(spec, run):
    missing_values, cost = run.json("plan", spec)["values"]
    assert missing_values.endswith(
        "rows without a value add nothing to a sum and are left out of a mean."
    )
    assert "its standard error is about 1,000 times the standard error of a count of rows" in cost


def test_show_prints_statistics_by_id_or_name(release, run):
    names = [f"{statistic.id} {statistic.name}" for statistic in release.statistics]
    assert_contains(run("show", "out").out, *names)
    shown = run("show", "out", "quantiles of age by sex").out
    assert shown == run("show", "out", "s3").out
    assert re.search(r"F +0\.5 +\d+ +\d+ to \d+", shown)


def test_statistics_run_from_plan_to_pages(release):
    page = Path("out/report.html").read_text(encoding="utf-8")
    part = page[page.index('<section id="statistics">') : page.index('<section id="tables">')]
    assert "Mittelwerte, Quantile und Verteilungsfunktionen" in part
    articles = [f'<article id="s{number}">' in part for number in range(1, 6)]
    assert articles == [True, True, True, True, False]
    ((mean, interval),) = release.statistics["s2"].format_rows(load_catalogue("de"), 5)
    assert f"<td>{mean}<td>{interval}" in part


def test_statistics_are_in_the_workbook_and_notebook(release):
    sheet = openpyxl.load_workbook("out/answers.xlsx")["s3 quantiles of age by sex"]
    keys = ["query", "sex", "share"]
    numbers = ["quantile", "low", "high", "may_be_below", "may_be_above"]
    assert [cell.value for cell in sheet[5]] == keys + numbers
    assert sheet[6][3].value == pytest.approx(release.statistics["s3"].values[0, 0])
    assert "release.statistics[0].frame()" in ln.export("out", "notebook")


WIDE_INTERVALS_SPEC = """
[source]
path = "people.csv"
[privacy]
epsilon = "1000"
[domain.age]
integers = [17, 90]
complete = true
[domain.income]
bins = { low = 0, high = 12345670, count = 10 }
complete = true
[[workload]]
quantiles = { of = "income", at = ["0.9999"] }
[[workload]]
cdf = { of = "age" }
[output]
level = 0.9999999
[plan]
strategy = "workload"
"""


def test_ends_of_intervals_are_written_whole(folder, run):
    Path("spec.toml").write_text(WIDE_INTERVALS_SPEC)
    rows = "".join(f"{17 + i % 74},{i * 30_000}\n" for i in range(400))
    Path("people.csv").write_text("age,income\n" + rows)
    run.succeeds("release", "spec.toml", "--out", "out", "--seed", "3")
    assert '<section id="statistics">' in Path("out/report.html").read_text(encoding="utf-8")

    shown = run("show", "out").out
    assert "99.99999% interval" in shown  # and not 100%
    interval = re.search(r"0\.9999 +[\d,.]+ +([\d,]+) to ([\d,]+), or more\n", shown)
    assert interval is not None, shown
    assert "12,345,670" in interval.groups()
    line = next(line for line in shown.splitlines() if line.startswith("<= 30"))
    # The noise is tiny, but the interval does not collapse to 0% to 0%.
    share, low, high = (float(number) for number in re.findall(r"([\d.]+)%", line))
    assert low <= share <= high
    assert "e+" not in shown


QUANTILES_SPEC = """
[privacy]
epsilon = "1"
[domain.pay]
integers = [0, 1023]
outside = "clip"
[[workload]]
quantiles = {{ of = "pay", at = {shares}, by = [] }}
[plan]
strategy = "identity"
"""


@pytest.mark.parametrize(
    ("shares", "is_named"), [('["0.5"]', True), (str([f"0.{n}" for n in range(1, 10)]), False)]
)
def test_plan_names_selected_quantiles_where_their_bound_is_smaller(folder, run, shares, is_named):
    Path("cells.toml").write_text(QUANTILES_SPEC.format(shares=shares))
    (statistic,) = run.json("plan", "cells.toml")["statistics"]
    assert ("selected_within" in statistic) == is_named
    shown = " ".join(run("plan", "cells.toml").out.split())
    sentence = 'strategy = "selected_quantiles" would choose values within'
    assert (sentence in shown) == is_named
    if is_named:
        # About 2 (1 - 1/2) / (1/2) ln(1024 / (2 x 5%)) (S6 of PROOFS-quantiles.md).
        assert 18 < statistic["selected_within"] < 18.5 < statistic["margin_of_counts"]
