"""Tests of rounding and suppression of answers: coverage of the intervals, and the files."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._cli import program
from leastnoise._trusted.check import InputError

COUNTS = np.array([0, 3, 9, 12, 40, 200])
PEOPLE = pd.DataFrame(
    {
        "place": np.repeat(np.arange(6), COUNTS),
        "age": np.arange(264) % 20,
        "far": np.arange(264) % 3,
        "pay": 4,
    }
)


@pytest.fixture(scope="module")
def plan():
    """Return a plan of counts and of sums of pay by place."""
    domain = ln.Domain(place=ln.Coded(6), measures={"pay": ln.Measure("pay", 0, 10)})
    workload = ln.queries(domain, place="identity", weight=3)
    workload += ln.queries(domain, place="identity", sum="pay")
    return ln.plan(workload, ln.PureDP("1/2"), strategy="identity")


def release(plan, seed, out=None, **options):
    return ln.release(plan, PEOPLE, seed=seed, out=out, options=ln.Options(**options))


def command_output(*arguments):
    """Return what a command prints, and the error with which it ends."""
    result = CliRunner().invoke(program, [*map(str, arguments)])
    return f"{result.output}{result.exception or ''}"


@pytest.mark.parametrize(("down", "up"), [(3.0, 100.0), (70.0, 4.0)])
def test_rounding_keeps_uneven_interval_ends(plan, down, up):
    table = release(plan, 1).tables[0]
    uneven = replace(table, low=table.answer - down, high=table.answer + up)
    assert uneven.margins == pytest.approx(np.full(6, max(down, up)))
    rounded = uneven.rounded(5, below=20)
    shown = table.answer >= 20
    assert np.array_equal(shown, ~np.isnan(rounded.answer))
    # An answer at the bound is shown.
    least_shown = table.answer[shown].min()
    at_the_bound = uneven.rounded(None, below=least_shown)
    assert np.array_equal(shown, ~np.isnan(at_the_bound.answer))

    half_a_step = 2.5
    assert rounded.low[shown] == pytest.approx(rounded.answer[shown] - down - half_a_step)
    expected_high = np.where(shown, rounded.answer + up + half_a_step, 20 + up)
    assert rounded.high == pytest.approx(expected_high)
    expected_margins = np.full(shown.sum(), max(down, up) + half_a_step)
    assert rounded.margin[shown] == pytest.approx(expected_margins)


def test_sum_is_rounded_in_its_own_unit(plan):
    rounded = release(plan, 3).tables[1].rounded("0.5")
    assert (rounded.answer * 2 == np.rint(rounded.answer * 2)).all()
    columns = ["query", "place", "answer", "std_error", "margin", "low", "high"]
    assert list(rounded.frame().columns) == columns


@pytest.mark.parametrize(("to", "below"), [(0, None), (-5, None), (5, 0), (float("nan"), None)])
def test_bad_steps_are_refused(plan, to, below):
    with pytest.raises(InputError, match=r"rounding step|left out"):
        release(plan, 4).tables[0].rounded(to, below=below)


def test_command_writes_every_table(plan, tmp_path):
    unrounded = release(plan, 5, tmp_path / "out")
    rounded = tmp_path / "rounded"
    arguments = ["round", tmp_path / "out", "--to", 5, "--below", 20, "--out", rounded]
    command_output(*arguments)
    files = ["README.md", "q1-place.csv", "q2-sum-of-pay-by-place.csv"]
    assert sorted(path.name for path in rounded.iterdir()) == files
    is_hidden = pd.read_csv(rounded / "q1-place.csv")["answer"].isna()
    assert (is_hidden == (unrounded.tables[0].answer < 20)).all()
    text = (rounded / "README.md").read_text()
    assert "NOT PRIVATE" in text
    assert text.count("adds at most 2.5 to every margin") == 2
    assert "must not exist yet" in command_output(*arguments)


# --- releases that are published rounded ----------------------------------------------------------


def test_rounding_covers_columns_and_hides_omissions(plan):
    options = {"non_negative": True, "integer": True, "nnls": True, "local_non_negative": True}
    unrounded = release(plan, 5, **options).tables[0]
    table = release(plan, 5, round=5, below=20, **options).tables[0]
    half_widths = unrounded.high - unrounded.answer
    hidden = unrounded.answer < 20
    assert hidden.any()
    assert not hidden.all()
    for name, values in table.numbers().items():
        if name == "noise_std":
            assert (values == unrounded.noise_std).all()
        elif name == "high":
            assert values[hidden] == pytest.approx(20 + half_widths[hidden])
        else:
            assert np.isnan(values[hidden]).all(), name
        if name.startswith("answer"):
            assert (values[~hidden] % 5 == 0).all(), name
    expected_answers = np.rint(unrounded.answer / 5) * 5
    assert table.answer[~hidden].tolist() == expected_answers[~hidden].tolist()
    half_a_step = 2.5
    assert table.margins[~hidden] == pytest.approx(half_widths[~hidden] + half_a_step)


def test_rounded_release_bounds_omitted_values_again(plan):
    table = release(plan, 5, below=20).tables[0]
    hidden = np.isnan(table.answer)
    assert hidden.any()
    already_hidden = f"{hidden.sum()} of 6 answers were already left out by the release"
    for below in (None, 100):
        rounded = table.rounded(50, below=below)
        assert rounded.high[hidden].tolist() == table.high[hidden].tolist()
        for values in (rounded.answer, rounded.low, rounded.margin, rounded.std_error):
            assert np.isnan(values[hidden]).all()
        assert already_hidden in rounded.describe()
    assert f"{(table.answer < 100).sum()} of 6 answers are below 100" in rounded.describe()


def test_double_rounding_adds_both_errors(plan):
    # The 12 rows of place 3 are published as 10, and then as 0.
    accurate_plan = ln.plan(plan.workload, ln.PureDP(18), strategy="identity")
    table = release(accurate_plan, 5, round=10).tables[0]
    rounded = table.rounded(20)
    assert rounded.std_error == pytest.approx(table.noise_std + 5 + 10)
    assert table.answer[3] == 10
    assert rounded.answer[3] == 0
    assert (np.abs(rounded.answer - COUNTS) <= rounded.std_error).all()
    assert np.abs(rounded.answer - COUNTS).max() > table.noise_std.max() + 10


def test_steps_and_bounds_keep_all_digits(plan):
    description = release(plan, 5).tables[0].rounded(2_500_000, below="1234567.5").describe()
    assert "multiples of 2,500,000, which adds at most 1,250,000 " in description
    assert "are below 1,234,567.5 and are left out" in description


@pytest.fixture(scope="module")
def large_plan():
    """Return a plan with tables of one and two attributes, a mean and a median."""
    domain = ln.Domain(
        place=ln.Coded(6),
        age=ln.Integers(0, 19, outside="clip"),
        far=ln.Coded(60),
        measures={"pay": ln.Measure("pay", 0, 10)},
    )
    workload = ln.marginals(domain, of=["place", "age"], upto=2)
    workload += ln.queries(domain, far="identity", age="identity")
    workload += ln.queries(domain, age="prefix")
    workload += ln.queries(domain, place="total", far="identity")
    workload += ln.mean_queries(domain, of="pay", by=["place"])
    workload += ln.quantile_queries(domain, of="age", at=["1/2"])
    return ln.plan(workload, ln.PureDP(8), strategy="identity")


SUPPRESSIONS = pytest.mark.parametrize(
    ("to", "below"),
    [(10, 25), (None, 25), ("1/2", 10**6)],
    ids=["rounded", "left out alone", "all left out"],
)


@pytest.mark.slow
@SUPPRESSIONS
def test_report_and_workbook_show_suppressed_cells(large_plan, tmp_path, monkeypatch, to, below):
    monkeypatch.setenv("LEASTNOISE_CHARTS", "on" if to == 10 else "off")
    out = tmp_path / "out"
    release(large_plan, 1, out, round=to, below=below, formats=["xlsx"], language="de")
    page = (out / "report.html").read_text("utf-8")
    assert "Vielfache von 10 gerundet" in page or to != 10
    assert "nicht angegeben (\u2013)" in page
    text = re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert "nan" not in text.lower().split()

    book = openpyxl.load_workbook(out / "answers.xlsx")
    assert [cell.value for cell in book["Tabellen"][1]] == [
        "Abfrage",
        "Tabelle",
        "Blatt",
        "Ergebnisse",
        "Einheit",
        "typische Fehlerspanne (95\u00a0%)",
        "ohne Zeilen, deren Wert fehlt oder außerhalb liegt bei",
    ]
    assert book["Tabellen"]["E2"].value == "Zeilen"
    assert book.worksheets[1]["A2"].value.startswith("Einheit: Zeilen. Der wahre Wert l")
    assert book.worksheets[1]["A3"].value.startswith("NICHT GESCHÜTZT:")


@SUPPRESSIONS
def test_files_are_complete_with_suppressed_cells(large_plan, tmp_path, to, below):
    out = tmp_path / "out"
    options = {"formats": ["csv", "sdmx"], "language": "de"}
    rounded_release = release(large_plan, 1, out, round=to, below=below, **options)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    rounding = manifest["post_processing"]["rounding"]
    assert rounding["left_out_below"] == str(below)
    half_steps = {10: 5, None: None, "1/2": 0.25}
    assert rounding.get("added_to_half_widths") == half_steps[to]

    tables_read = ln.read_release(out).tables
    for table, table_read in zip(rounded_release.tables, tables_read, strict=True):
        assert np.array_equal(table.answer, table_read.answer, equal_nan=True)
    files = list((out / "answers").glob("q*.csv"))
    assert files
    for file in files:
        assert not re.search(r"\bnan\b", file.read_text("utf-8")), file.name
    assert "left out" in command_output("show", out)


@pytest.mark.parametrize("to", [None, 50])
def test_report_margin_agrees_in_list_and_tables(large_plan, tmp_path, to):
    rounded_release = release(large_plan, 1, tmp_path / "out", round=to, formats=["csv"])
    page = (tmp_path / "out/report.html").read_text("utf-8")
    for table in rounded_release.tables:
        (row,) = re.findall(rf'<tr><td><a href="#{table.id}">(.*)', page)
        heading = re.search(
            rf'<article id="{table.id}">.*?typical margin . ([^<]+)<', page, re.DOTALL
        )
        assert row.split("<td>")[4] == heading[1]


def test_fully_suppressed_table_has_no_margin(plan, tmp_path):
    suppressed, sums = release(plan, 1, tmp_path / "out", below=300, formats=["csv", "xlsx"]).tables
    assert np.isnan([suppressed.typical_margin, suppressed.largest_margin]).all()
    assert repr(suppressed).endswith("typical margin \u2013)")
    assert sums.typical_margin > 0
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert not re.search("\u00b1 0[<;]", page)
    assert "Only the noise is small for sum of pay by place: a typical margin" in page
    assert openpyxl.load_workbook(tmp_path / "out/answers.xlsx").worksheets[0]["F2"].value is None
    assert re.search(r"q1 +place +6 +\u2013", command_output("show", tmp_path / "out"))


def test_means_of_few_rows_are_suppressed_with_counts(large_plan):
    unrounded = release(large_plan, 2).statistics[0]
    rounded = release(large_plan, 2, round=5, below=10).statistics[0]
    hidden = unrounded.extra_columns["count"] < 10
    assert hidden.any()
    for name, values in rounded.numbers().items():
        assert np.isnan(values[hidden]).all(), name
    assert (rounded.extra_columns["count"][~hidden] % 5 == 0).all()
    assert (rounded.values[~hidden] == unrounded.values[~hidden]).all()


def draw_payments():
    """Return 9000 rows with a group, a score, and a pay in cents."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "a": rng.integers(0, 40, 9000),
            "score": rng.integers(0, 4, 9000),
            "pay": rng.integers(0, 9000, 9000) / 100,
        }
    )


def assert_exact_decimals(values, digits):
    """Check that at least 40 values have no digits beyond a number of decimal places."""
    assert len(values) >= 40
    for value in values:
        distance = abs(value - round(value, digits))
        assert distance == 0 or distance >= 1e-6, value


@pytest.mark.parametrize(("to", "digits"), [(None, 0), ("0.1", 1), ("0.05", 2)])
def test_no_file_has_a_digit_of_floating_point(tmp_path, to, digits):
    """Counts, amounts in cents and multiples of decimals are written exactly."""
    domain = ln.Domain(
        a=ln.Coded(40),
        measures={"score": ln.Measure("score", 0, 3), "pay": ln.Measure("pay", 0, 90, unit="0.01")},
    )
    workload = ln.queries(domain, a="identity")
    workload += ln.mean_queries(domain, "score", by=["a"])
    workload += ln.mean_queries(domain, "pay", by=["a"])
    plan = ln.plan(workload, ln.PureDP(1), strategy="identity")
    out = tmp_path / "out"
    options = ln.Options(round=to, formats=["csv", "parquet", "xlsx", "sdmx"])
    release = ln.release(plan, draw_payments(), seed=3, out=out, options=options)

    digits_of_cents = 2 if to is None else digits
    if to is None:
        assert_exact_decimals(ln.means(release, "pay", by=["a"]).sums.tolist(), digits_of_cents)
    for table in release.tables:
        table_digits = digits_of_cents if table.name.startswith("sum of pay") else digits
        (file,) = (out / "answers").glob(f"{table.id}-*.parquet")
        csv_answers = csv_column(file.with_suffix(".csv"), "answer")
        sdmx_answers = csv_column(file.with_suffix(".sdmx.csv"), "OBS_VALUE: Answer")
        parquet_answers = pd.read_parquet(file)["answer"].tolist()
        for answers in (table.answer.tolist(), parquet_answers, csv_answers, sdmx_answers):
            assert_exact_decimals(answers, table_digits)

    cells = []
    for sheet in openpyxl.load_workbook(out / "answers.xlsx"):
        cells += [row[1] for row in sheet.values if len(row) > 1]
    numbers = [cell for cell in cells if isinstance(cell, (int, float))]
    assert_exact_decimals(numbers, digits_of_cents)


def csv_column(file, name):
    """Return a column of numbers of a CSV file."""
    return [float(row[name]) for row in csv.DictReader(file.read_text().splitlines())]
