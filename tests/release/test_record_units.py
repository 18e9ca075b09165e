"""Synthetic households, weights and whole numbers, and the page that compares them."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import leastnoise as ln
from leastnoise._cli import program
from leastnoise._release import make_records

HOUSEHOLDS = 3000
SHARED = ["region", "size"]


def persons():
    """Rows of persons in households of one to five, with survey weights."""
    random = np.random.default_rng(4)
    size = random.choice([1, 2, 3, 4, 5], HOUSEHOLDS, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    region = random.choice(["east", "north", "west"], HOUSEHOLDS, p=[0.5, 0.3, 0.2])
    household = np.repeat(np.arange(HOUSEHOLDS), size)
    rows = len(household)
    alone = size[household] == 1
    return pd.DataFrame(
        {
            "household": household,
            "size": size[household],
            "region": region[household],
            "age": np.where(alone, 1, random.integers(0, 2, rows)),
            "income": random.integers(0, 4000, rows),
            "weight": random.integers(1, 4, rows) + 0.5 * (region[household] == "west"),
        }
    )


DOMAIN = ln.Domain(
    size=ln.Integers(1, 5),
    region=["east", "north", "west"],
    age=["child", "adult"],
    income=ln.Bins(0, 4000, 4, outside="clip"),
    measures={"weight": ln.Measure("weight", 0, 5, unit="0.5")},
).as_complete()
WORKLOAD = (
    ln.marginals(DOMAIN, ways=1)
    + ln.marginals(DOMAIN, ways=2, of=["size", "region", "age"])
    + ln.marginals(DOMAIN, ways=2, of=SHARED, count="units", of_unit=SHARED)
    + ln.queries(DOMAIN, region="identity", sum="weight")
    + ln.queries(DOMAIN, size="identity", sum="weight")
)


@pytest.fixture(scope="module")
def household_release(tmp_path_factory):
    """A seeded release of persons and households."""
    out = tmp_path_factory.mktemp("released") / "release"
    privacy = ln.Privacy(ln.PureDP(2), unit_column="household", max_rows=5)
    data = persons().assign(age=lambda rows: rows["age"].map({0: "child", 1: "adult"}))
    options = ln.Options(languages=("en", "de"))
    ln.release(ln.plan(WORKLOAD, privacy, seconds=1), data, seed=2, out=out, options=options)
    return out


@pytest.fixture(scope="module")
def release(household_release):
    """The release, read from its directory."""
    return ln.read_release(household_release)


def distances(records, release):
    """Return differences over margins, for the tables that the records can answer."""
    ratios = {
        table.name: records.distance(table) / table.typical_margin for table in release.tables
    }
    return {name: ratio for name, ratio in ratios.items() if not np.isnan(ratio)}


@pytest.mark.parametrize("size", [None, "size"])
def test_units_agree_with_released_units_and_share_values(release, size):
    records = make_records(release.outcome, seed=1, units=True, size=size)
    frame = pd.DataFrame(records.columns())
    households = frame.groupby("household")
    units = next(table for table in release.tables if table.name == "units by size x region")
    margin = 1 if size is None else 3 * units.typical_margin  # rows by size count too
    assert abs(households.ngroups - units.answer.sum()) <= margin
    assert (households[SHARED].nunique() == 1).all(axis=None)
    assert households.size().max() <= 5
    assert len(frame) / households.ngroups == pytest.approx(len(persons()) / HOUSEHOLDS, rel=0.03)
    assert distances(records, release)["units by size x region"] < 1
    assert max(distances(records, release).values()) < 2


def test_units_have_as_many_rows_as_their_size_says(release):
    frame = release.synthesize(seed=3, size="size", library="pandas")
    households = frame.groupby("household")
    assert (households.size() == households["size"].first()).all()


def families():
    """Persons in households: couples and their children, or old couples."""
    random = np.random.default_rng(8)
    has_children = random.random(1500) < 0.4
    ages = []
    for children in has_children:
        ages += [30, 30, 5, 8] if children else random.choice([30, 70], 4).tolist()
    sizes = np.full(1500, 4)
    household = np.repeat(np.arange(len(sizes)), sizes)
    return pd.DataFrame({"household": household, "size": sizes[household], "age": ages})


@pytest.mark.parametrize("groups", ["cells", "level"])
def test_members_follow_counts_of_units_by_age(groups):
    if groups == "cells":
        along = ln.identity()
    else:
        along = ln.level("part")
    parts = {5: "child", 8: "child", 30: "adult", 70: "old"}
    domain = ln.Domain(
        age=ln.Categories([5, 8, 30, 70], levels={"part": parts}), size=ln.Integers(1, 5)
    ).as_complete()
    workload = (
        ln.queries(domain, age="identity")
        + ln.queries(domain, age=along, count="units")
        + ln.queries(domain, size="identity")
        + ln.queries(domain, size="identity", count="units", of_unit=["size"])
    )
    privacy = ln.Privacy(ln.PureDP(20), unit_column="household", max_rows=5)
    release = ln.release(ln.plan(workload, privacy, seconds=1), families(), seed=1)
    records = make_records(release.outcome, seed=1, size="size")
    ratios = distances(records, release)
    assert next(ratio for name, ratio in ratios.items() if name.startswith("units by age")) < 1
    if groups == "level":
        frame = pd.DataFrame(records.columns())
        frame["age"] = frame["age"].astype(int)
        shares = [
            (table.groupby("household")["age"].min() < 18).mean() for table in (frame, families())
        ]
        assert shares[0] == pytest.approx(shares[1], abs=0.01)


def test_units_of_fewer_rows_keep_their_share(release):
    frame = release.synthesize(rows=700, seed=3, units=True, library="pandas")
    expected = 700 * HOUSEHOLDS / len(persons())
    assert frame["household"].nunique() == pytest.approx(expected, rel=0.03)


SPEC = """
[source]
path = "persons.parquet"
[privacy]
epsilon = "20"
unit = { column = "household", max_rows = 5, of_unit = ["size", "region"] }
[domain.size]
integers = [1, 5]
[domain.region]
categories = ["east", "north", "west"]
[domain.age]
integers = [0, 1]
[[impossible]]
size = [1, 1]
age = [0, 0]
[[workload]]
queries = { size = "identity", region = "identity", age = "identity" }
[[workload]]
marginals = { ways = 1, of = ["region"] }
count = "units"
[[workload]]
marginals = { ways = 1, of = ["size"] }
count = "units"
[output]
top_down = true
"""


def test_impossible_rows_stay_out_of_units(tmp_path):
    persons().to_parquet(tmp_path / "persons.parquet")
    (tmp_path / "spec.toml").write_text(SPEC)
    arguments = ["release", tmp_path / "spec.toml", "--out", tmp_path / "release", "--seed", "1"]
    done = CliRunner().invoke(program, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    release = ln.read_release(tmp_path / "release")
    assert release.plan.details.impossible
    for size in (None, "size"):
        frame = release.synthesize(units=True, size=size, library="pandas")
        assert not ((frame["size"] == 1) & (frame["age"] == 0)).any()
        assert (frame.groupby("household")[SHARED].nunique() == 1).all(axis=None)


def test_weights_add_up_to_released_sums(release):
    records = make_records(release.outcome, seed=1, weight="weight")
    frame = pd.DataFrame(records.columns())
    assert frame["weight"].between(0, 5).all()
    assert set(frame["weight"] % 0.5) == {0.0}
    sums = {name: ratio for name, ratio in distances(records, release).items() if "sum of" in name}
    assert len(sums) == 2
    assert max(sums.values()) < 1
    with pytest.raises(ln.InputError, match="weight"):
        release.synthesize(weight="income")


def test_whole_numbers_fill_their_bins():
    domain = ln.Domain(small=ln.Bins(0, 20, 2), half=ln.Edges(["0.2", "0.8", "2"])).as_complete()
    data = pd.DataFrame({"small": [1.0, 12.0] * 50, "half": [0.2, 1.0] * 50})
    release = ln.release(ln.plan(ln.marginals(domain, ways=1), ln.PureDP(50)), data, seed=1)
    values = release.synthesize(rows=2000, whole_numbers=["small"], library="pandas")["small"]
    assert values.dtype == np.int64
    assert sorted(values.unique()) == list(range(20))
    with pytest.raises(
        ln.InputError, match="Whole numbers are possible only if every bin contains one"
    ):
        release.synthesize(whole_numbers=["half"])


def test_wide_bins_of_whole_edges_give_whole_numbers(release):
    assert release.synthesize(rows=50, library="pandas")["income"].dtype == np.int64


def test_page_compares_the_tables_in_each_language(household_release, tmp_path):
    arguments = [
        household_release,
        "--out",
        tmp_path / "a.csv",
        "--page",
        tmp_path / "a.html",
        "--units",
    ]
    done = CliRunner().invoke(program, ["synthesize", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert "units in the column household" in done.output
    english = (tmp_path / "a.html").read_text(encoding="utf-8")
    german = (tmp_path / "a.de.html").read_text(encoding="utf-8")
    assert "How close are the synthetic records?" in english
    assert "Wie nah sind die synthetischen Datensätze?" in german
    assert english.count("<article") == german.count("<article") == 8
    assert "2 tables are not compared" in english
    assert "<script" not in english
