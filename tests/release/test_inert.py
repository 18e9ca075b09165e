"""Texts that were found in data are data: no spreadsheet runs them, and they are read back unchanged."""

import csv
from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leastnoise as ln
from leastnoise._release import read_categories
from leastnoise._release._columns import inert_text, text_of_inert

HOSTILE = ("=cmd|' /C calc'!A0", "+SUM(A1)", "-2+3+cmd|'", "@import", "'=1+1", "\t=1", '=HYPERLINK("http://x","y")')
HARMLESS = ("'s-Hertogenbosch", "-5", "+49 30", "-1,5", "2024-01-01", "curl", "a=b", "O'Brien")


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert inert_text(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS)
def test_names_and_numbers_stay_as_they_are(text):
    assert inert_text(text) == text


@given(st.text(alphabet="=+-@'\t\r\n 19.a"))
def test_every_text_is_read_back(text):
    assert text_of_inert(inert_text(text)) == text


def test_found_categories_are_inert_in_csv_and_read_back(tmp_path: Path):
    rows = pd.DataFrame({"agent": [text for text in HOSTILE if "\t" not in text for _ in range(400)]})
    plan = ln.plan_categories("agent", ln.Unknown(9, outside="other"), ln.ApproxDP(2, "1e-9"))
    out = tmp_path / "agents"
    found = ln.find_categories(plan, rows, ledger=tmp_path / "x.ledger", out=out, whole=ln.Privacy(ln.ApproxDP(4, "1e-6")))
    assert set(found.texts) == set(rows["agent"])
    assert read_categories(out).texts == found.texts
    with (out / "categories.csv").open(encoding="utf-8", newline="") as file:
        assert {row[0][0] for row in list(csv.reader(file))[1:]} == {"'"}


def test_labels_are_inert_in_csv_and_whole_in_parquet(tmp_path: Path):
    domain = ln.Domain(agent=list(HOSTILE))
    rows = pd.DataFrame({"agent": list(HOSTILE) * 50})
    plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1))
    ln.release(plan, rows, ledger=tmp_path / "x.ledger", out=tmp_path / "out", options=ln.Options(formats=("csv", "parquet")))
    (written,) = (tmp_path / "out" / "answers").glob("*.csv")
    with written.open(encoding="utf-8", newline="") as file:
        assert [row["agent"] for row in csv.DictReader(file)] == [f"'{text}" for text in HOSTILE]
    table = pyarrow.parquet.read_table(written.with_suffix(".parquet"))
    assert table.column("agent").to_pylist() == list(HOSTILE)
