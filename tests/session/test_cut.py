"""The reported share of cut rows against the true share, in everything that is published."""

import csv
import html
import json
import re

import numpy as np
import openpyxl
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._cli import program
from leastnoise._pages import list_answer_notices
from session.releasing import manifest, report
from trusted.reading.postgres import fill, server

ROWS = 6000
DOMAIN = ln.Domain(month=ln.Integers(1, 12), store=ln.Coded(5))
ASKED = ln.marginals(DOMAIN, ways=1) + ln.queries(DOMAIN)
OPTIONS = ln.Options(guard="1/4", formats=["csv", "xlsx", "sdmx"])
GUARD = ln.Options(guard="1/4")


def shop(unit_rows):
    """Draw purchases of customers, ``unit_rows`` each on average; a few have very many."""
    rng = np.random.default_rng(7)
    weights = rng.gamma(0.7, size=int(ROWS / unit_rows))
    ids = rng.choice(len(weights), ROWS, p=weights / weights.sum())
    return pd.DataFrame(
        {"customer": ids, "month": rng.integers(1, 13, ROWS), "store": rng.integers(0, 5, ROWS)}
    )


def cut_in(frame, max_rows, per_cell):
    """Return the true share of cut rows, and the share with at most three cut per kept row."""
    cells = frame.groupby(["customer", "month"]).size().clip(upper=per_cell or ROWS)
    used_rows = cells.groupby("customer").sum().clip(upper=max_rows)
    cut = frame.groupby("customer").size() - used_rows
    bounded_cut = cut.clip(upper=3 * used_rows).sum()
    return cut.sum() / len(frame), bounded_cut / (bounded_cut + used_rows.sum())


def plan(max_rows, per_cell=None):
    """Return a plan with a guard, for units with a limit of rows."""
    bound = None if per_cell is None else ln.PerCellBound(per_cell, "month")
    privacy = ln.Privacy(ln.ZCDP(8), unit_column="customer", max_rows=max_rows, max_per_cell=bound)
    return ln.plan(
        ASKED if bound is None else ln.queries(DOMAIN, month="identity"),
        privacy,
        guard="1/4",
        strategy="identity",
    )


def reported_shares(release):
    """Return the share of cut rows that a release states, and its interval."""
    notice = list_answer_notices(release)[0]
    if hidden := re.search(r"up to about ([\d.]+)% of the rows may have been", notice):
        high = float(hidden.group(1)) / 100
        return high / 2, 0.0, high
    match = re.search(
        r"At least about ([\d.]+)% of the rows were cut \(([\d.]+)% to ([\d.]+)%\)", notice
    )
    return tuple(float(number) / 100 for number in match.groups())


@pytest.mark.parametrize(
    ("unit_rows", "max_rows", "per_cell"), [(8, 2, None), (8, 12, 1), (6, 8, None), (2, 20, None)]
)
def test_reported_cut_share_matches_the_data(tmp_path, unit_rows, max_rows, per_cell):
    frame = shop(unit_rows)
    planned = plan(max_rows, per_cell)
    true, counted = cut_in(frame, max_rows, per_cell)
    frame.to_csv(tmp_path / "shop.csv", index=False)
    for number, source in enumerate((frame, tmp_path / "shop.csv")):
        release = ln.release(planned, source, ledger=tmp_path / f"{number}.ledger", options=GUARD)
        share, low, high = reported_shares(release)
        assert low - 0.03 <= counted <= high + 0.03  # six standard errors and more, with rounding
        # With at most 3 rows a unit, the counts miss cut rows of very large units, as stated.
        assert low - 0.03 <= true <= high + (0.03 if max_rows > 3 else 1)
        assert share == pytest.approx(counted, abs=0.06)
        assert high - low < 0.15


@pytest.mark.slow
def test_cut_share_is_reported_for_engine_counts(tmp_path, monkeypatch):
    frame = shop(8)
    lines = ", ".join(f"({', '.join(map(str, row))})" for row in frame.itertuples(index=False))
    with server() as url:
        fill(
            url,
            [
                "CREATE TABLE shop (customer bigint, month int, store int)",
                f"INSERT INTO shop VALUES {lines}",
            ],
        )
        monkeypatch.setenv("SHOP_URL", url)
        for max_rows, per_cell in ((5, None), (12, 1)):
            source = ln.DatabaseTable("public.shop", "env:SHOP_URL")
            ledger = tmp_path / f"{max_rows}.ledger"
            release = ln.release(
                plan(max_rows, per_cell),
                source,
                ledger=ledger,
                dataset=str(max_rows),
                options=GUARD,
            )
            _, low, high = reported_shares(release)
            true, counted = cut_in(frame, max_rows, per_cell)
            assert low - 0.03 <= counted <= high + 0.03
            used_rows = (1 - true) * ROWS
            assert abs(release.receipt.guard.kept - used_rows) < 9 * release.receipt.guard.noise_std


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return the directory of a release that states its share of cut rows."""
    folder = tmp_path_factory.mktemp("cut")
    ln.release(plan(5), shop(8), ledger=folder / "a.ledger", out=folder / "out", options=OPTIONS)
    return folder / "out"


def test_publications_state_which_rows_they_cover(out):
    release = ln.read_release(out)
    statement = re.compile(
        r"of at most 5 rows of every value of 'customer'; at least about \d\d% of the rows were cut"
    )
    with (out / "tables.csv").open(encoding="utf-8", newline="") as file:
        assert all(statement.fullmatch(row["of"]) for row in csv.DictReader(file))
    assert statement.fullmatch(manifest(out)["answers"]["of"])
    assert manifest(out)["intervals"]["notice"] == list_answer_notices(release)[0]
    assert len(
        statement.findall(
            (out / "structure.sdmx.xml").read_text(encoding="utf-8").replace("&#39;", "'")
        )
    ) == len(release.tables)
    workbook = openpyxl.load_workbook(out / "answers.xlsx")
    assert workbook["tables"]["E2"].value == "rows (at most 5 rows of each customer)"
    assert all(statement.search(sheet["A4"].value) for sheet in workbook.worksheets[1:-1])
    assert "rows (at most 5 rows of each customer)" in json.dumps(
        release.tables["month"].plot().to_dict()
    )


def test_report_leads_with_large_cut_share(out, tmp_path):
    page = html.unescape(report(out))
    notice = list_answer_notices(ln.read_release(out))[0]
    assert page.count(notice) == 1
    assert page.index("</h1>") < page.index(notice) < page.index('class="lead"')
    statement = (
        r"The data behind every answer consist of at most 5 rows of every value of 'customer'; "
        r"at least about \d\d% of the rows were cut"
    )
    assert re.search(statement, page)
    assert "Rows read" not in page
    ln.release(plan(60), shop(2), ledger=tmp_path / "b.ledger", out=tmp_path / "out", options=GUARD)
    page = html.unescape(report(tmp_path / "out"))
    assert page.index('class="lead"') < page.index(
        list_answer_notices(ln.read_release(tmp_path / "out"))[0]
    )


def test_rounded_tables_and_notebooks_say_it(out, tmp_path):
    release = ln.read_release(out)
    result = CliRunner().invoke(
        program,
        ["round", str(out), "--to", "5", "--out", str(tmp_path / "rounded")],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    assert list_answer_notices(release)[0] in (tmp_path / "rounded/README.md").read_text(
        encoding="utf-8"
    )
    assert "of at most 5 rows of every value of 'customer'; at least about" in repr(release)


@pytest.mark.parametrize("arguments", [["show"], ["show", "month"], ["answer"]], ids=" ".join)
def test_commands_state_cut_share_beside_numbers(out, arguments):
    options = ["--cells", "month"] if arguments[0] == "answer" else arguments[1:]
    output = (
        CliRunner()
        .invoke(program, [arguments[0], str(out), *options], catch_exceptions=False)
        .output
    )
    assert re.search(r"At least about \d\d% of the rows were cut", re.sub(r"\s+", " ", output))
