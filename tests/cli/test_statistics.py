"""Means, quantiles and distribution functions in plan, show, the report and the workbook."""

import re
from pathlib import Path

import openpyxl
import pytest

import leastnoise as ln
from cli.conftest import SPEC, assert_contains
from leastnoise._release import load_catalogue

ASKED = """
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


def test_statistics_run_from_plan_to_pages(folder, run):
    small = SPEC.replace("integers = [17, 90]", 'integers = [17, 20]\noutside = "clip"').replace(
        "count = 10 }", 'count = 4 }\noutside = "clip"'
    )
    # The query set is dense, without a product form.
    Path("spec.toml").write_text(
        small.replace('strategy = "marginals"', 'strategy = "workload"') + ASKED
    )
    shown = run("plan", "spec.toml").out
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
        r"sum of pay by sex +2 +[\d,.]+ +[\d,.]+ +pay +1\n",  # what the errors are in
        r"count of pay by sex +2 +[\d,.]+ +[\d,.]+ +rows +1\n",
    ):
        assert re.search(line, shown), shown
    value = run.json("plan", "spec.toml")
    first, second, third, fourth = value["statistics"]
    counts, sums = (
        next(table for table in value["tables"] if table["name"] == name)
        for name in first["tables"]
    )
    # Measured from both ends: at the largest mean only the noise of the distances from above is
    # left, which is as large as that of sums.
    assert first["std_error"] == pytest.approx(sums["rmse"] / 200)
    assert 1000 * counts["rmse"] == pytest.approx(2**0.5 * sums["rmse"])
    assert "delta method" in first["method"]
    assert (second["size"], second["std_error"]) == (None, None)
    assert third["rows"] == pytest.approx(value["rmse"]["sex x age:prefix"])
    assert third["std_error"] == pytest.approx(third["rows"] / 200)
    assert fourth["request"] == {"cdf": {"of": "income", "by": []}}
    sentence, cost = value["values"]
    assert sentence.endswith(
        "a row without a value adds nothing to a sum and is left out of a mean."
    )
    assert "its standard error is about 1,000 times the standard error of a count of rows" in cost

    run.succeeds("release", "spec.toml", "--out", "out", "--seed", "3")
    release = ln.read_release("out")
    assert_contains(
        run("show", "out").out,
        *(f"{statistic.id} {statistic.name}" for statistic in release.statistics),
    )
    by_name = run("show", "out", "quantiles of age by sex").out
    assert by_name == run("show", "out", "s3").out
    assert re.search(r"F +0\.5 +\d+ +\d+ to \d+", by_name)
    page = Path("out/report.html").read_text(encoding="utf-8")
    part = page[page.index('<section id="statistics">') : page.index('<section id="tables">')]
    assert "Mittelwerte, Quantile und Verteilungsfunktionen" in part
    assert [f'<article id="s{number}">' in part for number in range(1, 6)] == [True] * 4 + [False]
    ((mean, interval),) = release.statistics["s2"].format_rows(load_catalogue("de"), 5)
    assert f"<td>{mean}<td>{interval}" in part
    sheet = openpyxl.load_workbook("out/answers.xlsx")["s3 quantiles of age by sex"]
    assert [cell.value for cell in sheet[5]] == [
        *("query", "sex", "share", "quantile", "low", "high"),
        *("may_be_below", "may_be_above"),
    ]
    assert sheet[6][3].value == pytest.approx(release.statistics["s3"].values[0, 0])
    assert "release.statistics[0].frame()" in ln.export("out", "notebook")


def test_ends_of_intervals_are_written_whole(folder, run):
    large = SPEC.replace(
        "low = 0, high = 1000, count = 10", "low = 0, high = 12345670, count = 10"
    ).split("[[workload]]")[0]
    workload = (
        '[[workload]]\nquantiles = { of = "income", at = ["0.9999"] }\n[[workload]]\n'
        'cdf = { of = "age" }\n'
    )
    Path("spec.toml").write_text(
        large.replace('epsilon = "1"', 'epsilon = "1000"')
        + workload
        + "[output]\nlevel = 0.9999999\n[plan]\nstrategy = 'workload'\n"
    )
    Path("people.csv").write_text(
        "sex,age,income\n"
        + "".join(f"{'FM'[i % 2]},{17 + i % 74},{i * 30_000}\n" for i in range(400))
    )
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


CELLS = """
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
    Path("cells.toml").write_text(CELLS.format(shares=shares))
    (statistic,) = run.json("plan", "cells.toml")["statistics"]
    assert ("selected_within" in statistic) == is_named
    shown = " ".join(run("plan", "cells.toml").out.split())
    sentence = 'strategy = "selected_quantiles" would choose values within'
    assert (sentence in shown) == is_named
    if is_named:
        # 2 (1 - 1/2) / (1/2) ln(1024 / (2 x 5%)), about (S6 of PROOFS-quantiles.md)
        assert 18 < statistic["selected_within"] < 18.5 < statistic["margin_of_counts"]
