"""Records from a release: whole numbers that add up, spellings that are read back into the same cells, and what is refused."""

import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._cli._main import program
from leastnoise._estimate._mixture import Mixture
from leastnoise._estimate._model import _systematic, records
from leastnoise._release import Table, make_records, write_records
from leastnoise._release._records import Records

ROWS = 3000


def people() -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "sex": random.choice(["F", "=M"], ROWS),
            "age": random.choice([17, 18, 19, 99], ROWS),
            "Pay": random.choice(["1,5", "7,25", "19,99", "NA"], ROWS),
            "height": random.choice([1.5, 2.0], ROWS),
            "born": random.choice(["31.01.2024", "29.02.2024", "02.03.2024"], ROWS),
            "seen": random.choice(["2024-01-30 23:10:00", "2024-02-01 00:00:00"], ROWS),
            "kind": random.choice([0, 2], ROWS),
        }
    )


DOMAIN = ln.Domain(
    sex=ln.Categories(["F", "=M"]),
    age=ln.Integers(17, 19, outside="other"),
    pay=ln.Bins(0, 20, 3, null="other", reading={"column": "Pay", "decimal": ",", "nulls": ["NA"]}),
    cost=ln.Edges(["0", "2", "20"], closed="right", null="other", reading={"column": "Pay", "decimal": ",", "nulls": ["NA"]}),
    height=ln.Decimals("1.5", "2.5", "0.5"),
    born=ln.Dates("2024-01-31", "2024-03-02", by="month", format="%d.%m.%Y"),
    weekday=ln.Dates("2024-01-31", "2024-03-02", by="weekday", format="%d.%m.%Y", reading={"column": "born"}),
    seen=ln.Dates("2024-01-30", "2024-02-02", by="hour"),
    kind=ln.Coded(3),
)
PAIRS = ln.marginals(DOMAIN, ways=2, of=["sex", "age", "pay", "height", "born", "kind"]) + ln.queries(DOMAIN, seen="identity")


def near(made: Records, table: Table) -> bool:
    """Within the answers' margin and what a draw of so many records would add, which rounding undercuts."""
    return made.distance(table) < table.typical_margin + np.sqrt(max(table.answer.mean(), 1.0))


def released(workload: ln.Workload, data: object, budget: object = None, **options: object) -> ln.Release:
    plan = ln.plan(workload, budget or ln.PureDP(5), **options)  # type: ignore[arg-type]
    return ln.release(plan, data, seed=2)


@pytest.mark.parametrize(("whole", "shares"), [(0, [1.0]), (7, [0.5, 0.25, 0.25]), (1000, [0.1] * 10), (3, [1e-9, 1.0])])
def test_systematic_rounding_moves_no_number_by_one(whole: int, shares: list[float]) -> None:
    exact = whole * np.array(shares) / sum(shares)
    draws = np.array([_systematic(np.array(shares), whole, np.random.default_rng(seed)) for seed in range(400)])
    assert (draws.sum(axis=1) == whole).all()
    assert (np.abs(draws - exact) < 1).all()
    assert np.abs(draws.mean(axis=0) - exact).max() < 5 * 0.5 / np.sqrt(400)


def test_records_are_within_a_record_a_kind_of_the_model() -> None:
    random = np.random.default_rng(3)
    mixture = Mixture(random.dirichlet(np.ones(6)), tuple(random.dirichlet(np.ones(size), 6).T for size in (4, 9)), 1.0)
    found = records(mixture, 20_000, 5)
    assert np.array_equal(found, records(mixture, 20_000, 5))
    assert not np.array_equal(found, records(mixture, 20_000, 6))
    for place in range(2):
        counts = np.bincount(found[:, place], minlength=len(mixture.along[place]))
        assert np.abs(counts - 20_000 * mixture.table([place])).max() <= 2 * 6
    both = np.zeros((4, 9))
    np.add.at(both, (found[:, 0], found[:, 1]), 1)
    assert np.abs(both / 20_000 - mixture.table([0, 1])).sum() < 0.05


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_records_are_read_back_into_their_cells(tmp_path: Path, ending: str) -> None:
    release = released(PAIRS, people())
    made = make_records(release.outcome, seed=4)
    assert abs(len(made.codes) - ROWS) < 60
    write_records(made, tmp_path / f"people.{ending}")
    written = pd.read_csv(tmp_path / "people.csv", dtype=str) if ending == "csv" else pd.read_parquet(tmp_path / "people.parquet")
    assert set(written.columns) == {"sex", "age", "Pay", "height", "born", "seen", "kind"}
    if ending == "csv":
        assert set(written["sex"]) == {"F", "'=M"}  # which no spreadsheet runs
        written["sex"] = written["sex"].str.removeprefix("'")
    again = ln.release(ln.plan(PAIRS, ln.PureDP(1000)), written, seed=1)
    for table in again.tables:
        assert np.abs(table.answer - made.counts(table.product)).max() < 0.5, table.name
    assert all(near(made, table) for table in release.tables)


def test_bins_and_periods_are_filled_evenly_and_folded_days_are_right() -> None:
    days = ln.queries(DOMAIN, weekday="identity") + ln.queries(DOMAIN, cost="identity")
    release = released(days, people())
    frame = release.synthesize(5000, library="pandas")
    weekday = pd.to_datetime(frame["born"], format="%d.%m.%Y")
    assert weekday.between("2024-01-31", "2024-03-02").all()
    again = released(days, frame, ln.PureDP(1000))
    made = make_records(release.outcome, 5000)
    assert all(np.abs(one.answer - made.counts(one.product)).max() < 0.5 for one in again.tables)
    low = frame["Pay"].dropna().loc[lambda column: column != "NA"].str.replace(",", ".").astype(float)
    assert 0.8 < low[low <= 2].mean() < 1.2


@pytest.mark.parametrize("regime", ["model_bins", "model_tables"])
def test_a_model_gives_its_own_records(regime: str) -> None:
    pairs = ln.marginals(DOMAIN, ways=2, of=["sex", "age", "pay", "kind"])
    release = released(pairs, people(), ln.PureDP("1/50" if regime == "model_bins" else 5), strategy="model")
    assert release.finding.facts()["regime"] == regime
    several = [make_records(release.outcome, seed=seed) for seed in range(4)]  # a small table of one rounding may be far off by chance
    for table in release.tables:
        typical = np.sqrt(np.mean([made.distance(table) ** 2 for made in several]))
        assert typical < table.typical_margin + np.sqrt(max(table.answer.mean(), 1.0))


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (ln.queries(DOMAIN, age={"matrix": [[1, 0, 1, 0]]}), "which this release does not determine"),
        (ln.queries(DOMAIN), "at least one attribute"),
    ],
)
def test_releases_without_cells_are_refused(workload: ln.Workload, message: str) -> None:
    with pytest.raises(ln.InputError, match=message):
        released(workload, people(), strategy="identity" if "attribute" in message else "auto").synthesize()


def test_numbers_of_records_are_checked() -> None:
    release = released(ln.queries(DOMAIN, sex="identity"), people())
    for rows in (0, 2**28):
        with pytest.raises(ln.InputError, match="rows"):
            release.synthesize(rows)


def test_the_command_writes_and_tells_how_far_tables_are(tmp_path: Path) -> None:
    plan = ln.plan(ln.marginals(DOMAIN, ways=2, of=["sex", "age", "kind"]), ln.PureDP(5))
    ln.release(plan, people(), ledger=ln.Ledger.create(tmp_path / "l", "people", ln.Privacy(ln.PureDP(5))), out=tmp_path / "out")
    asked = ["synthesize", str(tmp_path / "out"), "--rows", "500", "--out"]
    done = CliRunner().invoke(program, [*asked, str(tmp_path / "people.csv")])
    assert done.exit_code == 0, done.output
    assert "500 records of 3 attributes" in done.output
    assert "sex x age" in done.output
    assert len((tmp_path / "people.csv").read_text().splitlines()) == 501
    for name, message in (("people.csv", "exists"), ("people.txt", "ends in .csv or .parquet")):
        refused = CliRunner().invoke(program, [*asked, str(tmp_path / name)])
        assert refused.exit_code != 0
        assert message in str(refused.exception) + refused.output


def test_a_file_of_records_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    plan = ln.plan(ln.marginals(DOMAIN, ways=1, of=["sex"]), ln.PureDP(5))
    ln.release(plan, people(), ledger=ln.Ledger.create(tmp_path / "l", "people", ln.Privacy(ln.PureDP(5))), out=tmp_path / "out")
    before, (soft, hard) = set(tmp_path.iterdir()), resource.getrlimit(resource.RLIMIT_FSIZE)
    for name in ("people.csv", "people.parquet", "nowhere/people.csv"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # as a full disk would
        try:
            refused = CliRunner().invoke(program, ["synthesize", str(tmp_path / "out"), "--out", str(tmp_path / name)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "cannot be written" in str(refused.exception) + refused.output
        assert set(tmp_path.iterdir()) == before


def test_rows_are_grouped_into_units_by_the_mean_number_of_rows_of_a_unit(tmp_path: Path) -> None:
    data = pd.DataFrame({"who": np.repeat(np.arange(200), 3), "sex": ["F", "M", "M"] * 200})
    domain = ln.Domain(sex=["F", "M"])
    privacy = ln.Privacy(ln.PureDP(50), unit_column="who", max_rows=4)
    workload = ln.marginals(domain, upto=1) + ln.marginals(domain, ways=0, count="units")
    release = ln.release(ln.plan(workload, privacy), data, seed=3, out=tmp_path / "release")
    made = release.synthesize(units=True, library="pandas")
    assert set(made.columns) == {"who", "sex"}
    assert made["who"].nunique() == pytest.approx(200, abs=5)
    assert set(made["who"].value_counts()) <= {2, 3, 4}
    out = CliRunner().invoke(
        program, ["synthesize", str(tmp_path / "release"), "--out", str(tmp_path / "a.csv"), "--rows", "30", "--units"]
    )
    assert out.exit_code == 0, out.output
    assert pd.read_csv(tmp_path / "a.csv")["who"].nunique() == 10
    alone = ln.release(ln.plan(ln.marginals(domain, ways=1), privacy), data, seed=3)
    with pytest.raises(ln.InputError, match="where rows and units were counted in all; this release has no such counts"):
        alone.synthesize(units=True)
