"""Synthetic records: whole counts, values of the right cells, and refusals."""

import resource

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._cli import program
from leastnoise._estimation import Mixture, draw_records, round_systematically
from leastnoise._publication import write_records
from leastnoise._release import make_records

ROWS = 3000


def people():
    """Return random rows with texts, numbers and dates."""
    random = np.random.default_rng(1)
    values = {
        "sex": ["F", "=M"],
        "age": [17, 18, 19, 99],
        "Pay": ["1,5", "7,25", "19,99", "NA"],
        "height": [1.5, 2.0],
        "born": ["31.01.2024", "29.02.2024", "02.03.2024"],
        "seen": ["2024-01-30 23:10:00", "2024-02-01 00:00:00"],
        "kind": [0, 2],
    }
    return pd.DataFrame({name: random.choice(each, ROWS) for name, each in values.items()})


PAY = {"column": "Pay", "decimal": ",", "nulls": ["NA"]}
DOMAIN = ln.Domain(
    sex=ln.Categories(["F", "=M"]),
    age=ln.Integers(17, 19, outside="other"),
    pay=ln.Bins(0, 20, 3, null="other", reading=PAY),
    cost=ln.Edges(["0", "2", "20"], closed="right", null="other", reading=PAY),
    height=ln.Decimals("1.5", "2.5", "0.5"),
    born=ln.Dates("2024-01-31", "2024-03-02", by="month", format="%d.%m.%Y"),
    weekday=ln.Dates(
        "2024-01-31", "2024-03-02", by="weekday", format="%d.%m.%Y", reading={"column": "born"}
    ),
    seen=ln.Dates("2024-01-30", "2024-02-02", by="hour"),
    kind=ln.Coded(3),
).as_complete()
PAIRS = ln.marginals(
    DOMAIN, ways=2, of=["sex", "age", "pay", "height", "born", "kind"]
) + ln.queries(DOMAIN, seen="identity")


def release_of(workload, data, budget=None, out=None, **options):
    """Return a seeded release of a workload."""
    return ln.release(ln.plan(workload, budget or ln.PureDP(5), **options), data, seed=2, out=out)


def synthesized(*arguments):
    """Return the output of the command `synthesize`, and its error if it fails."""
    done = CliRunner().invoke(program, ["synthesize", *map(str, arguments)])
    return done.output + str(done.exception or "")


def allowed_distance(table):
    """Return the margin of the answers plus the sampling error of the drawn records."""
    return table.typical_margin + np.sqrt(max(table.answer.mean(), 1.0))


@pytest.mark.parametrize(
    ("whole", "shares"), [(0, [1.0]), (7, [0.5, 0.25, 0.25]), (1000, [0.1] * 10), (3, [1e-9, 1.0])]
)
def test_systematic_rounding_moves_no_number_by_one(whole, shares):
    exact = whole * np.array(shares) / sum(shares)
    draws = np.array(
        [
            round_systematically(np.array(shares), whole, np.random.default_rng(seed))
            for seed in range(400)
        ]
    )
    assert (draws.sum(axis=1) == whole).all()
    assert (np.abs(draws - exact) < 1).all()
    assert np.abs(draws.mean(axis=0) - exact).max() < 5 * 0.5 / np.sqrt(400)


def test_records_match_each_kind_of_model():
    random = np.random.default_rng(3)
    mixture = Mixture(
        random.dirichlet(np.ones(6)),
        tuple(random.dirichlet(np.ones(size), 6).T for size in (4, 9)),
        1.0,
    )
    records = draw_records(mixture, 20_000, 5)
    assert np.array_equal(records, draw_records(mixture, 20_000, 5))
    assert not np.array_equal(records, draw_records(mixture, 20_000, 6))
    for position in range(2):
        counts = np.bincount(records[:, position], minlength=len(mixture.distributions[position]))
        assert np.abs(counts - 20_000 * mixture.table([position])).max() <= 2 * 6
    both = np.zeros((4, 9))
    np.add.at(both, (records[:, 0], records[:, 1]), 1)
    assert np.abs(both / 20_000 - mixture.table([0, 1])).sum() < 0.05


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_records_are_read_back_into_their_cells(tmp_path, ending):
    release = release_of(PAIRS, people())
    records = make_records(release.outcome, seed=4)
    assert abs(len(records.codes) - ROWS) < 60
    write_records(records, tmp_path / f"people.{ending}")
    written = (
        pd.read_csv(tmp_path / "people.csv", dtype=str)
        if ending == "csv"
        else pd.read_parquet(tmp_path / "people.parquet")
    )
    assert set(written.columns) == {"sex", "age", "Pay", "height", "born", "seen", "kind"}
    if ending == "csv":
        assert set(written["sex"]) == {"F", "'=M"}  # which no spreadsheet runs
        written["sex"] = written["sex"].str.removeprefix("'")
    for table in release_of(PAIRS, written, ln.PureDP(1000)).tables:
        assert np.abs(table.answer - records.counts(table.product)).max() < 0.5, table.name
    assert all(records.distance(table) < allowed_distance(table) for table in release.tables)


def test_bins_and_periods_are_filled_evenly():
    days = ln.queries(DOMAIN, weekday="identity") + ln.queries(DOMAIN, cost="identity")
    release = release_of(days, people())
    frame = release.synthesize(5000, library="pandas")
    assert (
        pd.to_datetime(frame["born"], format="%d.%m.%Y").between("2024-01-31", "2024-03-02").all()
    )
    records = make_records(release.outcome, 5000)
    assert all(
        np.abs(table.answer - records.counts(table.product)).max() < 0.5
        for table in release_of(days, frame, ln.PureDP(1000)).tables
    )
    pay = pd.to_numeric(frame["Pay"].str.replace(",", "."), errors="coerce")
    assert 0.8 < pay[pay <= 2].mean() < 1.2


@pytest.mark.parametrize("regime", ["model_bins", "model_tables"])
def test_model_gives_its_own_records(regime):
    pairs = ln.marginals(DOMAIN, ways=2, of=["sex", "age", "pay", "kind"])
    release = release_of(
        pairs, people(), ln.PureDP("1/50" if regime == "model_bins" else 5), strategy="model"
    )
    assert release.finding.facts()["regime"] == regime
    # One rounding of a small table may be far off by chance.
    several = [make_records(release.outcome, seed=seed) for seed in range(4)]
    for table in release.tables:
        assert np.sqrt(
            np.mean([candidate.distance(table) ** 2 for candidate in several])
        ) < allowed_distance(table)


def test_records_need_cells_and_bounded_numbers():
    skew = ln.queries(DOMAIN, age={"matrix": [[1, 0, 1, 0]]})
    total = ln.queries(DOMAIN)
    for release, message in (
        (release_of(skew, people()), "which this release does not determine"),
        (release_of(total, people(), strategy="identity"), "at least one attribute"),
    ):
        with pytest.raises(ln.InputError, match=message):
            release.synthesize()
    release = release_of(ln.queries(DOMAIN, sex="identity"), people())
    for rows in (0, 2**28):
        with pytest.raises(ln.InputError, match="rows"):
            release.synthesize(rows)


def test_synthesize_prints_distance_to_tables(tmp_path):
    release_of(
        ln.marginals(DOMAIN, ways=2, of=["sex", "age", "kind"]), people(), out=tmp_path / "out"
    )
    arguments = [tmp_path / "out", "--rows", "500", "--out"]
    printed = synthesized(*arguments, tmp_path / "people.csv")
    assert "500 records of 3 attributes" in printed
    assert "sex x age" in printed
    assert len((tmp_path / "people.csv").read_text().splitlines()) == 501
    assert "exists" in synthesized(*arguments, tmp_path / "people.csv")
    assert "ends in .csv or .parquet" in synthesized(*arguments, tmp_path / "people.txt")


def test_record_file_is_written_whole_or_not_at_all(tmp_path):
    release_of(ln.marginals(DOMAIN, ways=1, of=["sex"]), people(), out=tmp_path / "out")
    files_before = set(tmp_path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name in ("people.csv", "people.parquet", "nowhere/people.csv"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # as a full disk would
        try:
            printed = synthesized(tmp_path / "out", "--out", tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "cannot be written" in printed
        assert set(tmp_path.iterdir()) == files_before


def test_records_group_into_units_by_mean_size(tmp_path):
    data = pd.DataFrame({"who": np.repeat(np.arange(200), 3), "sex": ["F", "M", "M"] * 200})
    domain = ln.Domain(sex=["F", "M"]).as_complete()
    privacy = ln.Privacy(ln.PureDP(50), unit_column="who", max_rows=4)
    release = release_of(
        ln.marginals(domain, upto=1) + ln.marginals(domain, ways=0, count="units"),
        data,
        privacy,
        tmp_path / "release",
    )
    records = release.synthesize(units=True, library="pandas")
    assert set(records.columns) == {"who", "sex"}
    assert records["who"].nunique() == pytest.approx(200, abs=5)
    assert set(records["who"].value_counts()) <= {2, 3, 4}
    synthesized(tmp_path / "release", "--out", tmp_path / "a.csv", "--rows", "30", "--units")
    assert pd.read_csv(tmp_path / "a.csv")["who"].nunique() == 10
    with pytest.raises(
        ln.InputError, match="only if the release counts units, and this release does not"
    ):
        release_of(ln.marginals(domain, ways=1), data, privacy).synthesize(units=True)
