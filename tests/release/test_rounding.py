"""Rounding and suppression of answers: coverage of the stated intervals, and files."""

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
    domain = ln.Domain(place=ln.Coded(6), measures={"pay": ln.Measure("pay", 0, 10)})
    workload = ln.queries(domain, place="identity", weight=3) + ln.queries(
        domain, place="identity", sum="pay"
    )
    return ln.plan(workload, ln.PureDP("1/2"), strategy="identity")


def release(plan, seed, out=None, **options):
    return ln.release(plan, PEOPLE, seed=seed, out=out, options=ln.Options(**options))


def says(*arguments):
    """What the command says, and the error with which it ends."""
    done = CliRunner().invoke(program, [*map(str, arguments)])
    return f"{done.output}{done.exception or ''}"


def test_rounding_keeps_uneven_interval_ends(plan):
    table = release(plan, 1).tables[0]
    for down, up in ((3.0, 100.0), (70.0, 4.0)):
        uneven = replace(table, low=table.answer - down, high=table.answer + up)
        assert uneven.margins == pytest.approx(np.full(6, max(down, up)))
        rounded = uneven.rounded(5, below=20)
        shown = table.answer >= 20
        assert np.array_equal(shown, ~np.isnan(rounded.answer))
        # An answer at the bound is shown.
        assert np.array_equal(
            shown, ~np.isnan(uneven.rounded(None, below=table.answer[shown].min()).answer)
        )
        assert rounded.low[shown] == pytest.approx(rounded.answer[shown] - down - 2.5)
        assert rounded.high == pytest.approx(np.where(shown, rounded.answer + up + 2.5, 20 + up))
        assert rounded.margin[shown] == pytest.approx(np.full(shown.sum(), max(down, up) + 2.5))


def test_sum_is_rounded_in_its_own_unit(plan):
    rounded = release(plan, 3).tables[1].rounded("0.5")
    assert (rounded.answer * 2 == np.rint(rounded.answer * 2)).all()
    assert list(rounded.frame().columns) == [
        "query",
        "place",
        "answer",
        "std_error",
        "margin",
        "low",
        "high",
    ]


@pytest.mark.parametrize(("to", "below"), [(0, None), (-5, None), (5, 0), (float("nan"), None)])
def test_bad_steps_are_refused(plan, to, below):
    with pytest.raises(InputError, match=r"rounded to|left out"):
        release(plan, 4).tables[0].rounded(to, below=below)


def test_command_writes_every_table(plan, tmp_path):
    unrounded, rounded = release(plan, 5, tmp_path / "out"), tmp_path / "rounded"
    arguments = ["round", tmp_path / "out", "--to", 5, "--below", 20, "--out", rounded]
    says(*arguments)
    assert sorted(path.name for path in rounded.iterdir()) == [
        "README.md",
        "q1-place.csv",
        "q2-sum-of-pay-by-place.csv",
    ]
    assert (
        pd.read_csv(rounded / "q1-place.csv")["answer"].isna() == (unrounded.tables[0].answer < 20)
    ).all()
    text = (rounded / "README.md").read_text()
    assert "NOT PRIVATE" in text
    assert text.count("adds at most 2.5 to every margin") == 2
    assert "must not exist yet" in says(*arguments)


# --- a release that is published rounded ----------------------------------------------------------


def test_rounding_covers_columns_and_hides_omissions(plan):
    beside = {"non_negative": True, "integer": True, "nnls": True, "local_non_negative": True}
    raw = release(plan, 5, **beside).tables[0]
    table = release(plan, 5, round=5, below=20, **beside).tables[0]
    gone = raw.answer < 20
    assert gone.any()
    assert not gone.all()
    for name, values in table.numbers().items():
        if name == "noise_std":
            assert (values == raw.noise_std).all()
        elif name == "high":
            assert values[gone] == pytest.approx(20 + (raw.high - raw.answer)[gone])
        else:
            assert np.isnan(values[gone]).all(), name
    assert table.answer[~gone].tolist() == (np.rint(raw.answer / 5) * 5)[~gone].tolist()
    assert all(
        (table.numbers()[name][~gone] % 5 == 0).all()
        for name in table.numbers()
        if name.startswith("answer")
    )
    assert table.margins[~gone] == pytest.approx((raw.high - raw.answer)[~gone] + 2.5)


def test_rounded_release_bounds_omitted_values_again(plan):
    table = release(plan, 5, below=20).tables[0]
    gone = np.isnan(table.answer)
    assert gone.any()
    for below in (None, 100):
        rounded = table.rounded(50, below=below)
        assert rounded.high[gone].tolist() == table.high[gone].tolist()
        assert all(
            np.isnan(values[gone]).all()
            for values in (rounded.answer, rounded.low, rounded.margin, rounded.std_error)
        )
        assert (
            f"{gone.sum()} of 6 answers were left out by the release already" in rounded.describe()
        )
    assert f"{(table.answer < 100).sum()} of 6 answers are below 100" in rounded.describe()


def test_double_rounding_adds_both_errors(plan):
    # 10 of the 12 rows are published, and then 0.
    twelve = ln.plan(plan.workload, ln.PureDP(18), strategy="identity")
    table = release(twelve, 5, round=10).tables[0]
    rounded = table.rounded(20)
    assert rounded.std_error == pytest.approx(table.noise_std + 5 + 10)
    assert (table.answer[3], rounded.answer[3]) == (10, 0)
    assert (np.abs(rounded.answer - COUNTS) <= rounded.std_error).all()
    assert np.abs(rounded.answer - COUNTS).max() > table.noise_std.max() + 10


def test_steps_and_bounds_keep_all_digits(plan):
    description = release(plan, 5).tables[0].rounded(2_500_000, below="1234567.5").describe()
    assert "multiples of 2,500,000, which adds at most 1,250,000 " in description
    assert "are below 1,234,567.5 and are left out" in description


@pytest.fixture(scope="module")
def asked():
    domain = ln.Domain(
        place=ln.Coded(6),
        age=ln.Integers(0, 19, outside="clip"),
        far=ln.Coded(60),
        measures={"pay": ln.Measure("pay", 0, 10)},
    )
    tables = ln.marginals(domain, of=["place", "age"], upto=2) + ln.queries(
        domain, far="identity", age="identity"
    )
    tables += ln.queries(domain, age="prefix") + ln.queries(domain, place="total", far="identity")
    tables += ln.mean_queries(domain, of="pay", by=["place"]) + ln.quantile_queries(
        domain, of="age", at=["1/2"]
    )
    return ln.plan(tables, ln.PureDP(8), strategy="identity")


@pytest.mark.parametrize(
    ("to", "below"),
    [(10, 25), (None, 25), ("1/2", 10**6)],
    ids=["rounded", "left out alone", "all left out"],
)
def test_files_are_complete_with_suppressed_cells(asked, tmp_path, monkeypatch, to, below):
    monkeypatch.setenv("LEASTNOISE_CHARTS", "on" if to == 10 else "off")
    out = tmp_path / "out"
    rounded_release = release(
        asked, 1, out, round=to, below=below, formats=["csv", "xlsx", "sdmx"], language="de"
    )
    page = (out / "report.html").read_text("utf-8")
    assert "Vielfache von 10 gerundet" in page or to != 10
    assert "nicht angegeben (\u2013)" in page
    assert (
        "nan"
        not in re.sub(r"<(script|style|svg).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
        .lower()
        .split()
    )
    book = openpyxl.load_workbook(out / "answers.xlsx")
    heads = ["Abfrage", "Tabelle", "Blatt", "Ergebnisse", "Einheit"]
    heads += ["typische Fehlerspanne (95\u00a0%)"]
    heads += ["ohne Zeilen, deren Wert fehlt oder außerhalb liegt bei"]
    assert [cell.value for cell in book["Tabellen"][1]] == heads
    assert book["Tabellen"]["E2"].value == "Zeilen"
    assert book.worksheets[1]["A2"].value.startswith("Einheit: Zeilen. Der wahre Wert l")
    assert book.worksheets[1]["A3"].value.startswith("NICHT GESCHÜTZT:")
    facts = json.loads((out / "manifest.json").read_text("utf-8"))["post_processing"]["rounding"]
    assert facts["left_out_below"] == str(below)
    assert facts.get("added_to_half_widths") == {10: 5, None: None, "1/2": 0.25}[to]
    for mine, read in zip(rounded_release.tables, ln.read_release(out).tables, strict=True):
        assert np.array_equal(mine.answer, read.answer, equal_nan=True)
    for file in (out / "answers").glob("q*.csv"):
        assert not re.search(r"\bnan\b", file.read_text("utf-8")), file.name
    assert "left out" in says("show", out)


@pytest.mark.parametrize("to", [None, 50])
def test_report_margin_agrees_in_list_and_tables(asked, tmp_path, to):
    rounded_release = release(asked, 1, tmp_path / "out", round=to, formats=["csv"])
    page = (tmp_path / "out/report.html").read_text("utf-8")
    for table in rounded_release.tables:
        (cells,) = re.findall(rf'<tr><td><a href="#{table.id}">(.*)', page)
        over = re.search(rf'<article id="{table.id}">.*?typical margin . ([^<]+)<', page, re.DOTALL)
        assert cells.split("<td>")[4] == over[1]


def test_fully_suppressed_table_has_no_margin(plan, tmp_path):
    left_out, sums = release(plan, 1, tmp_path / "out", below=300, formats=["csv", "xlsx"]).tables
    assert np.isnan([left_out.typical_margin, left_out.largest_margin]).all()
    assert repr(left_out).endswith("typical margin \u2013)")
    assert sums.typical_margin > 0
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert not re.search("\u00b1 0[<;]", page)
    assert "Yes, for sum of pay by place: a typical margin" in page
    assert openpyxl.load_workbook(tmp_path / "out/answers.xlsx").worksheets[0]["F2"].value is None
    assert re.search(r"q1 +place +6 +\u2013", says("show", tmp_path / "out"))


def test_means_of_few_rows_are_suppressed_with_counts(asked):
    raw, rounded = (
        release(asked, 2, **options).statistics[0] for options in ({}, {"round": 5, "below": 10})
    )
    gone = raw.extra_columns["count"] < 10
    assert gone.any()
    assert all(np.isnan(values[gone]).all() for name, values in rounded.numbers().items())
    assert (rounded.extra_columns["count"][~gone] % 5 == 0).all()
    assert (rounded.values[~gone] == raw.values[~gone]).all()


@pytest.mark.parametrize(("to", "digits"), [(None, 0), ("0.1", 1), ("0.05", 2)])
def test_no_file_has_a_digit_of_floating_point(tmp_path, to, digits):
    """Counts, amounts in cents and multiples of decimals are written exactly."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(
        {
            "a": rng.integers(0, 40, 9000),
            "score": rng.integers(0, 4, 9000),
            "pay": rng.integers(0, 9000, 9000) / 100,
        }
    )
    domain = ln.Domain(
        a=ln.Coded(40),
        measures={"score": ln.Measure("score", 0, 3), "pay": ln.Measure("pay", 0, 90, unit="0.01")},
    )
    workload = (
        ln.queries(domain, a="identity")
        + ln.mean_queries(domain, "score", by=["a"])
        + ln.mean_queries(domain, "pay", by=["a"])
    )
    options, out = (
        ln.Options(round=to, formats=["csv", "parquet", "xlsx", "sdmx"]),
        tmp_path / "out",
    )
    release = ln.release(
        ln.plan(workload, ln.PureDP(1), strategy="identity"), rows, seed=3, out=out, options=options
    )
    cents, book = 2 if to is None else digits, openpyxl.load_workbook(out / "answers.xlsx")
    columns = [(cents, ln.means(release, "pay", by=["a"]).sums.tolist())] if to is None else []
    for table in release.tables:
        places = cents if table.name.startswith("sum of pay") else digits
        (file,) = (out / "answers").glob(f"{table.id}-*.parquet")
        columns += [
            (places, table.answer.tolist()),
            (places, pd.read_parquet(file)["answer"].tolist()),
        ]
        for text, column in (
            (file.with_suffix(".csv"), "answer"),
            (file.with_suffix(".sdmx.csv"), "OBS_VALUE: Answer"),
        ):
            columns.append(
                (
                    places,
                    [float(row[column]) for row in csv.DictReader(text.read_text().splitlines())],
                )
            )
    columns.append(
        (
            cents,
            [
                cell
                for sheet in book
                for row in sheet.values
                for cell in row[1:2]
                if isinstance(cell, (int, float))
            ],
        )
    )
    assert min(len(values) for _, values in columns) >= 40
    for places, values in columns:
        assert not [
            value
            for value in values
            if value != round(value, places) and abs(value - round(value, places)) < 1e-6
        ]
