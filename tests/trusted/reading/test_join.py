"""Joins of a second table: exact counts from every source, and neighbours by brute force."""

import itertools
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leastnoise as ln
from behind_the_wall import exact_marginals
from leastnoise._holder import count_fit
from leastnoise._trusted.reading import (
    ReadRequest,
    _read,
    read,
    read_keys,
    source_from_location,
    source_location,
)
from leastnoise._trusted.table import Counted, open_content
from trusted.reading.encoders import refused, units_of
from trusted.reading.row_keys import fixed_row_keys
from trusted.reading.small_sources import SOURCES_OF_FRAME

ON = {"patient": "id"}
DOMAIN = ln.Domain(
    dx=["a", "b", "c"],
    sex=ln.Categories(["F", "M"], null="other"),
    year=ln.Integers(1980, 1989, outside="clip"),
    measures={"weight": ln.Measure("weight", 0, 200, unit="0.5")},
)


def tables():
    """Return visits and patients with nulls, orphans on both sides, and repeated keys."""
    random = np.random.default_rng(5)
    visits = pd.DataFrame(
        {"patient": random.integers(0, 60, 400), "dx": random.choice(["a", "b", "c", None], 400)}
    )
    visits["patient"] = visits["patient"].where(random.random(400) > 0.1).astype("Int64")
    ids = [*range(45), 3, 7, 7, 7, 70, 71, None, None]
    patients = pd.DataFrame(
        {"id": pd.array(ids, dtype="Int64"), "sex": random.choice(["F", "M", None, "x"], len(ids))}
    )
    patients["year"] = pd.array(random.integers(1975, 1995, len(ids)), dtype="Int64")
    patients["weight"] = random.integers(40, 240, len(ids)) / 2
    patients.loc[5, ["year", "weight"]] = None
    return visits, patients.sample(frac=1, random_state=1).reset_index(drop=True)


VISITS, PATIENTS = tables()


# What pandas makes of them: partners are those with a key of their own.
BOTH = VISITS.merge(
    PATIENTS.dropna(subset="id").drop_duplicates("id", keep=False),
    left_on="patient",
    right_on="id",
    how="left",
)


def merged():
    """Return the rows that the domain keeps."""
    joined = BOTH.assign(
        sex=BOTH["sex"]
        .where(BOTH["sex"].isin(["F", "M"]) | BOTH["sex"].isna(), "outside")
        .fillna("other")
    )
    return joined[
        joined["dx"].notna()
        & joined["year"].notna()
        & (joined["sex"] != "outside")
        & joined["patient"].notna()
    ]


def expected_counts(names):
    """Count the joined rows by pandas, by combination of values."""
    joined = merged().assign(year=lambda frame: frame["year"].clip(1980, 1989))
    return {
        key if isinstance(key, tuple) else (key,): number
        for key, number in joined.groupby(names).size().items()
    }


def cells(table, names):
    """Return the counts that are not 0, by the labels of these attributes."""
    ((_, counts),) = exact_marginals(table, [names])
    labels = itertools.product(*(DOMAIN.kind(name).labels for name in names))
    return {key: number for key, number in zip(labels, counts.tolist(), strict=True) if number}


def _files(frame, folder):
    for part in range(3):
        frame[part::3].write_csv(folder / f"{part}.csv")
    return folder


def _database(frame, folder):
    with duckdb.connect(folder.parent / "x.duckdb") as connection:
        connection.register("given", frame.to_arrow())
        connection.execute(f"CREATE TABLE {folder.name} AS FROM given")
    return ln.DatabaseTable(folder.name, "env:VISITS_URL")


def _ibis(frame, folder):
    ibis = pytest.importorskip(
        "ibis", reason="Ibis is not installed; pip install 'leastnoise[ibis]'"
    )
    connection = duckdb.connect()
    connection.register("given", frame.to_arrow())
    connection.execute(f"CREATE TABLE {folder.name} AS FROM given")
    return ibis.duckdb.from_connection(connection).table(folder.name)


SOURCES = {
    kind: SOURCES_OF_FRAME[kind]
    for kind in ("csv", "parquet", "pandas", "polars", "polars lazy", "pyarrow", "duckdb")
}
SOURCES |= {"files": _files, "database": _database, "ibis": _ibis}
PAIRS = [
    *((kind, kind) for kind in SOURCES),
    ("csv", "polars"),
    ("parquet", "csv"),
    ("duckdb", "parquet"),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("first_kind", "second_kind"), PAIRS)
def test_join_counts_match_pandas_merge(first_kind, second_kind, tmp_path, monkeypatch):
    monkeypatch.setenv("VISITS_URL", f"duckdb://{tmp_path / 'x.duckdb'}")
    monkeypatch.setattr("leastnoise._trusted.reading._column.CHUNK", 64)
    monkeypatch.setattr("leastnoise._trusted.reading._frame_sources.CHUNK", 64)
    folders = [tmp_path / "visits", tmp_path / "patients"]
    for folder in folders:
        folder.mkdir()
    frames = map(pl.from_pandas, (VISITS, PATIENTS))
    joined = ln.Joined(
        *(
            SOURCES[kind](*arguments)
            for kind, *arguments in zip((first_kind, second_kind), frames, folders, strict=True)
        ),
        on=ON,
    )
    table = read(
        joined, DOMAIN, read_request=ReadRequest(usage=True), unit_column="patient", max_rows=400
    )
    names = ("dx", "sex", "year")
    assert cells(table, names) == expected_counts([*names])
    assert sum(open_content(table).values["weight"].tolist()) == round(
        2 * merged()["weight"].fillna(0).sum()
    )
    used, unused = open_content(table.usage, Counted).tables[None, ("rows",)].tolist()
    assert used == len(merged())
    assert used + unused == int(VISITS["patient"].notna().sum())


CARDS = pd.DataFrame(
    {
        "owner": pd.array([*range(30, 60), 31, 7, 7, None], dtype="Int64"),
        "tier": [["gold", "blue", None][place % 3] for place in range(34)],
        "shop": [f"s{place % 5}" for place in range(34)],
    }
)
SHOPS = pd.DataFrame(
    {"shop": ["s0", "s1", "s2", "s3", "s3", None], "town": ["A", "B", "A", "B", "B", "A"]}
)
STAR = ln.Domain(
    dx=["a", "b", "c"],
    sex=ln.Categories(["F", "M"], null="other", outside="other"),
    tier=ln.Categories(["gold", "blue"], null="other"),
    town=ln.Categories(["A", "B"], null="other"),
)


def star(visits, patients, cards, shops):
    """Return visits, patients and cards of a unit, and the public shops of the cards."""
    with_patients = ln.Joined(visits, patients, on=ON, columns=("sex",))
    with_cards = ln.Joined(with_patients, cards, on={"patient": "owner"})
    return ln.Joined(with_cards, shops, on="shop", public=True)


def star_counts():
    """Count the star with pandas."""
    joined = BOTH.drop(columns="id").merge(
        CARDS.dropna(subset="owner").drop_duplicates("owner", keep=False),
        left_on="patient",
        right_on="owner",
        how="left",
    )
    joined = joined.merge(SHOPS.dropna().drop_duplicates("shop", keep=False), on="shop", how="left")
    joined = joined[joined["dx"].notna() & joined["patient"].notna()]
    names = ["dx", "sex", "tier", "town"]
    joined["sex"] = joined["sex"].where(joined["sex"].isin(["F", "M"]))
    return joined.fillna(dict.fromkeys(names[1:], "other")).groupby(names).size()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "duckdb", "database"])
def test_star_of_four_tables_counts_as_pandas_does(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("VISITS_URL", f"duckdb://{tmp_path / 'x.duckdb'}")
    monkeypatch.setattr("leastnoise._trusted.reading._column.CHUNK", 64)
    sources = []
    for number, frame in enumerate((VISITS, PATIENTS, CARDS, SHOPS)):
        folder = tmp_path / f"t{number}"
        folder.mkdir()
        sources.append(SOURCES[kind](pl.from_pandas(frame), folder))
    table = read(star(*sources), STAR, unit_column="patient", max_rows=400)
    ((_, counts),) = exact_marginals(table, [STAR.names])
    labels = itertools.product(*(STAR.kind(name).labels for name in STAR.names))
    nonzero = {key: number for key, number in zip(labels, counts.tolist(), strict=True) if number}

    assert nonzero == star_counts().to_dict()
    assert len(nonzero) > 20


def test_every_private_table_of_a_star_needs_the_unit():
    with pytest.raises(ln.InputError, match=r"It is joined on 'shop', and the unit is 'patient'"):
        read(
            ln.Joined(star(VISITS, PATIENTS, CARDS, SHOPS).data, SHOPS, on="shop"),
            STAR,
            unit_column="patient",
        )

    inner = ln.Joined(VISITS, PATIENTS, on=ON)
    outer = ln.Joined(inner, SHOPS.assign(patient=1), on="patient", public=True)
    with pytest.raises(ln.InputError, match=r"joined on 'patient', and every row is a unit"):
        read(outer, ln.Domain(town=STAR.kind("town")))

    # A table may not be private in one join and public in the other, in either order.
    for is_first_public, is_second_public in ((True, False), (False, True)):
        joined = ln.Joined(VISITS, PATIENTS, on=ON, public=is_first_public, columns=("sex",))
        with pytest.raises(ln.InputError, match=r"public in an earlier join|the data themselves"):
            ln.Joined(joined, PATIENTS, on=ON, public=is_second_public, columns=("year",))


def test_column_that_two_joined_tables_have_is_refused():
    joined_twice = ln.Joined(
        ln.Joined(VISITS, PATIENTS, on=ON), PATIENTS.assign(tier="gold"), on=ON
    )
    with pytest.raises(ln.InputError, match=r"must have one column 'sex'; it has 2"):
        read(joined_twice, ln.Domain(sex=STAR.kind("sex")), unit_column="patient")
    with pytest.raises(ln.InputError, match=r"must have one column 'sex' for the join"):
        read(
            ln.Joined(joined_twice, SHOPS, on={"sex": "shop"}, public=True),
            STAR,
            unit_column="patient",
        )


def test_public_table_serves_any_unit():
    visits = VISITS.assign(doctor=[number % 7 for number in range(len(VISITS))])
    joined = ln.Joined(visits, PATIENTS, on=ON, public=True)
    # Rows without a key stay, with nulls, which drop them for their year.
    rows = cells(read(joined, DOMAIN), ("dx", "sex"))
    assert rows == expected_counts(["dx", "sex"])
    assert cells(read(joined, DOMAIN, unit_column="doctor", max_rows=400), ("dx", "sex")) == rows

    unit = ln.Joined(
        visits, PATIENTS.assign(home=lambda frame: frame["id"] % 5), on=ON, public=True
    )
    homes = read(unit, DOMAIN, read_request=ReadRequest(usage=True), unit_column="home", max_rows=2)
    assert open_content(homes.usage, Counted).tables[None, ("rows",)].sum() == 5 * 2


def test_unit_named_like_second_key_is_the_first_column():
    """The patients' key has the unit's name, yet a visit's rows belong to no patient's unit."""
    visits = VISITS.assign(id=range(len(VISITS)))
    joined = ln.Joined(visits, PATIENTS, on=ON, columns=["sex", "year", "weight"])
    for reads, domain in ((read, DOMAIN), (read_keys, ln.Domain(sex=ln.Unknown(9)))):
        with pytest.raises(ln.InputError, match=r"must have rows of the unit, or be public"):
            reads(joined, domain, *(["sex"] if reads is read_keys else []), unit_column="id")


def test_second_table_columns_are_read_on_request():
    visits = VISITS.assign(sex="F")
    with pytest.raises(ln.InputError, match=r"must have one column 'sex'; it has 2 of that name"):
        read(ln.Joined(visits, PATIENTS, on=ON), DOMAIN, unit_column="patient")
    named = ln.Joined(visits, PATIENTS, on=ON, columns=["year", "weight"])
    counts_by_sex = cells(read(named, DOMAIN, unit_column="patient", max_rows=400), ("sex",))
    # Rows with values outside the domain also count.
    assert counts_by_sex == {
        ("F",): int((BOTH["dx"].notna() & BOTH["year"].notna() & BOTH["patient"].notna()).sum())
    }

    failing = duckdb.sql("SELECT ('MARK' || i)::INTEGER AS id, 'F' AS sex FROM range(3) AS t(i)")
    only_dx = ln.Domain(dx=["a", "b", "c"])
    table = read(ln.Joined(VISITS, failing, on=ON), only_dx, unit_column="patient", max_rows=400)
    assert len(open_content(table).codes["dx"]) == int(
        (VISITS["dx"].notna() & VISITS["patient"].notna()).sum()
    )
    with refused("cannot be computed"):
        read(
            ln.Joined(VISITS, failing, on=ON, columns=["sex"]),
            ln.Domain(sex=DOMAIN.kind("sex")),
            unit_column="patient",
        )


def test_an_empty_second_table_has_no_partners(tmp_path):
    PATIENTS[:0].to_csv(tmp_path / "patients.csv", index=False)
    for empty in (PATIENTS[:0], tmp_path / "patients.csv", pa.Table.from_pandas(PATIENTS[:0])):
        table = read(
            ln.Joined(VISITS, empty, on=ON),
            ln.Domain(sex=DOMAIN.kind("sex")),
            unit_column="patient",
            max_rows=400,
        )
        assert open_content(table).codes["sex"].tolist() == [2] * int(
            VISITS["patient"].notna().sum()
        )
    nobody = read(ln.Joined(VISITS[:0], PATIENTS, on=ON), DOMAIN, unit_column="patient")

    assert len(open_content(nobody).codes["dx"]) == 0


def test_keys_are_compared_as_units_are():
    first_table = pd.DataFrame(
        {
            "k": pd.Series(
                ["1", 1.0, " 1", "A", "a", True, b"\xff", "", None, float("nan")], dtype=object
            )
        }
    )
    second_table = pd.DataFrame(
        {"k": pd.Series([1, "a", "true", b"\xff", "", None, [2]], dtype=object), "v": range(7)}
    )
    domain = ln.Domain(v=ln.Coded(7, null="other"))
    codes = open_content(
        read(ln.Joined(first_table, second_table, on="k", public=True), domain)
    ).codes["v"]

    assert codes.tolist() == [0, 0, 7, 7, 1, 2, 3, 7, 7, 7]


def test_unknown_second_keys_count_once_a_unit():
    domain = ln.Domain(sex=ln.Unknown(9))
    units_by_key = units_of(
        read_keys(
            ln.Joined(VISITS, PATIENTS, on=ON), domain, "sex", unit_column="patient", max_rows=1
        )
    )
    assert units_by_key == BOTH.dropna(subset="sex").groupby("sex")["patient"].nunique().to_dict()


@pytest.mark.parametrize("unit", [None, "patient"])
def test_unused_second_keys_are_absent(unit):
    domain = ln.Domain(sex=ln.Unknown(9))
    for rows, expected_units in (
        (VISITS[:0], {}),
        (pd.DataFrame({"patient": [99, None]}), {}),
        (pd.DataFrame({"patient": [1, 99]}), {"b": 1}),
    ):
        patients = pd.DataFrame({"id": [0, 1, 2], "sex": ["a", "b", "c"]})
        assert (
            units_of(
                read_keys(
                    ln.Joined(rows, patients, on=ON, public=True), domain, "sex", unit_column=unit
                )
            )
            == expected_units
        )


# --- neighbours -----------------------------------------------------------------------------------


MARKED = ln.Domain(mark=ln.Coded(9), v=ln.Coded(2, null="other"))


def marked(visits, patients, keys, unit, **how):
    """Return the rows that count, each with its serial number and random key."""
    first_table = pa.table(
        {
            "u": pa.array([owner for owner, _ in visits], pa.string()),
            "mark": pa.array([mark for _, mark in visits], pa.int64()),
        }
    )
    second_table = pa.table(
        {
            "u": pa.array([owner for owner, _ in patients], pa.string()),
            "v": pa.array([v for _, v in patients], pa.int64()),
        }
    )
    with fixed_row_keys([keys[mark] for _, mark in visits]):
        table = read(ln.Joined(first_table, second_table, on="u", **how), MARKED, **unit)
    codes = open_content(table).codes
    return Counter(zip(codes["mark"].tolist(), codes["v"].tolist(), strict=True))


def databases(seed):
    """Yield pairs of small, and of larger random tables, with units a and b, nulls and orphans."""
    units = ("a", "b", None)
    random = np.random.default_rng(seed)
    owner_lists = [
        owners for rows in range(1, 3) for owners in itertools.product(units, repeat=rows)
    ]
    patient_lists = [
        rows
        for length in range(3)
        for rows in itertools.product(itertools.product(units, (0, 1)), repeat=length)
    ]
    pairs = list(itertools.product(owner_lists, patient_lists))
    yield from (pairs[place] for place in random.permutation(len(pairs))[:20])
    for _ in range(12):
        owners = random.choice(3, size=random.integers(3, 8), p=[0.5, 0.3, 0.2])
        patients = [
            (units[random.choice(3, p=[0.4, 0.4, 0.2])], int(random.integers(0, 2)))
            for _ in range(random.integers(1, 5))
        ]
        yield [units[choice] for choice in owners], patients


def violations(most, bound=None):
    """Return changes of a unit that affect other rows, or more than ``most`` rows."""
    unit: dict[str, Any] = {"unit_column": "u", "max_rows": most}
    if bound is not None:
        unit["max_per_cell"] = ln.PerCellBound(bound, "v")
    allowed = min(most, bound or most)
    random = np.random.default_rng(most)
    largest_loss = 0
    for number, (owners, patients) in enumerate(databases(most)):
        keys = random.permutation(9)
        visits = [(owner, mark) for mark, owner in enumerate(owners)]
        before = marked(visits, [*patients], keys, unit)
        for unit_name in ("a", "b"):
            without = [row for row in patients if row[0] != unit_name]
            # All rows of the unit change in both tables, or only its rows in the second table:
            # fewer, more or other rows.
            second_only = [without, [*patients, (unit_name, 1)], [*without, (unit_name, 0)]][
                number % 3
            ]
            fewer = [row for row in visits if row[0] != unit_name]
            for changed_visits, changed_patients in ((fewer, without), (visits, second_only)):
                after = marked(changed_visits, changed_patients, keys, unit)
                lost = before - after
                gained = after - before
                largest_loss = max(largest_loss, lost.total())
                own_marks = {mark for mark, owner in enumerate(owners) if owner == unit_name}
                is_violation = max(lost.total(), gained.total()) > allowed or (
                    changed_visits is fewer and gained
                )
                if is_violation or not {mark for mark, _ in (*lost, *gained)} <= own_marks:
                    yield visits, patients, changed_patients
    assert largest_loss == allowed  # or the pairs would not tell anything


@pytest.mark.parametrize(("most", "bound"), [(1, None), (2, None), (3, 1), (3, 2)])
def test_unit_in_both_tables_changes_bounded_rows(most, bound):
    assert list(violations(most, bound)) == []


MARKED_STAR = ln.Domain(
    mark=ln.Coded(9),
    v=ln.Coded(2, null="other"),
    w=ln.Coded(2, null="other"),
    x=ln.Coded(3, null="other"),
)
PUBLIC = pa.table({"v": [0, 1], "x": [2, 1]})


def starred(visits, tables, keys, most):
    """Return the rows of a star with two tables of units and a public table."""
    names = pa.array([owner for owner, _ in visits], pa.string())
    source: Any = pa.table({"u": names, "mark": [mark for _, mark in visits]})
    for column, rows in zip("vw", tables, strict=True):
        owners = pa.array([owner for owner, _ in rows], pa.string())
        table = pa.table({"u": owners, column: pa.array([v for _, v in rows], pa.int64())})
        source = ln.Joined(source, table, on="u")
    source = ln.Joined(source, PUBLIC, on="v", public=True)
    with fixed_row_keys([keys[mark] for _, mark in visits]):
        table = read(source, MARKED_STAR, unit_column="u", max_rows=most)
    codes = open_content(table).codes
    return Counter(zip(*(codes[name].tolist() for name in MARKED_STAR.names), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2])
def test_unit_in_a_star_changes_only_its_own_rows(most):
    """Try all changes of a unit in one, some and all tables."""
    units = ("a", "b", None)
    random = np.random.default_rng(most)
    largest_loss = 0
    for number in range(40):
        owners = [units[choice] for choice in random.choice(3, size=5, p=[0.5, 0.3, 0.2])]
        visits = [(owner, mark) for mark, owner in enumerate(owners)]
        tables = [
            [
                (units[random.integers(3)], int(random.integers(2)))
                for _ in range(random.integers(5))
            ]
            for _ in range(2)
        ]
        keys = random.permutation(9)
        before = starred(visits, tables, keys, most)
        for changed in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)):
            fewer = [row for row in visits if not (changed[0] and row[0] == "a")]
            changed_tables = []
            for is_changed, rows in zip(changed[1:], tables, strict=True):
                other_rows = [row for row in rows if row[0] != "a"]
                new = [[], [("a", 1)], [("a", 0), ("a", 1)]][number % 3]
                changed_tables.append([*other_rows, *new] if is_changed else rows)
            after = starred(fewer, changed_tables, keys, most)
            lost = before - after
            gained = after - before
            largest_loss = max(largest_loss, lost.total())
            assert max(lost.total(), gained.total()) <= most
            own_marks = {mark for mark, owner in enumerate(owners) if owner == "a"}
            assert {mark for mark, *_ in (*lost, *gained)} <= own_marks

    assert largest_loss == most


def plant_first_of_any_case(patch):
    """Compare keys differently from units, so that both units share one partner."""
    patch.setattr(_read, "key_reader", lambda reading: lambda value: value and b"x")


def plant_shared_row(patch):
    """Give a row without partner the first partner of the table."""
    find_partners = _read.PartnerRows.find_partners
    patch.setattr(
        _read.PartnerRows,
        "find_partners",
        lambda self, keys: np.where(
            (partners := find_partners(self, keys)) < 0, min(0, len(self.times) - 1), partners
        ),
    )


@pytest.mark.parametrize("plant", [plant_first_of_any_case, plant_shared_row])
def test_faults_are_seen(plant, monkeypatch):
    plant(monkeypatch)
    assert next(violations(2), None) is not None


def test_join_without_unit_rule_changes_several_units(monkeypatch):
    """The refused case: persons are units and share a private row of their household."""
    persons = pa.table({"person": [1, 2, 3], "home": ["h", "h", "h"]})
    domain = ln.Domain(region=["N", "S"])
    unit = {"unit_column": "person", "max_rows": 1}
    joined = [
        ln.Joined(persons, pa.table({"home": ["h"], "region": [region]}), on="home")
        for region in "NS"
    ]
    with pytest.raises(
        ln.InputError,
        match=(
            r"joined on 'home', and the unit is 'person'\. Make 'home' the unit, or set public = "
            r"true"
        ),
    ):
        read(joined[0], domain, **unit)

    monkeypatch.setattr(_read, "check_unit", lambda *_: None)
    north, south = (
        open_content(read(source, domain, **unit)).codes["region"].tolist() for source in joined
    )
    assert north == [0, 0, 0]
    assert south == [1, 1, 1]


# --- refusals -------------------------------------------------------------------------------------


def test_check_shows_most_frequent_outside_values():
    rows = pd.DataFrame({"sex": ["x"] * 3 + list("abcdefgh") + ["x"] * 3})
    (fit,) = count_fit(rows, DOMAIN, attributes=["sex"], measures=[], values=1).attributes
    assert fit.values == (("'x'", 6),)


def test_join_partner_counts_cover_all_rows():
    visits = pd.DataFrame({"patient": [0, 1, 1, 7] * 2**16})
    patients = pd.DataFrame({"id": [0, 1, 1, 2], "sex": ["F", "M", "M", "F"]})
    joined = ln.Joined(visits, patients, on=ON, public=True)
    fit = count_fit(joined, DOMAIN, attributes=["sex"], measures=[]).joins[0]
    assert (fit.keys, fit.doubled, fit.matched, fit.several) == (3, 1, 2**16, 2**17)


@pytest.mark.parametrize("function", [read, read_keys, count_fit])
@pytest.mark.parametrize("unit", [None, "doctor", "home"])
def test_private_table_needs_its_key_as_unit(function, unit):
    joined = ln.Joined(VISITS.assign(doctor=1), PATIENTS.assign(home=1), on=ON)
    domain = ln.Domain(sex=ln.Unknown(9)) if function is read_keys else DOMAIN
    options: dict[str, Any] = (
        {"attributes": ["sex"], "measures": []} if function is count_fit else {}
    )
    unit_text = "every row is a unit" if unit is None else f"the unit is '{unit}'"

    with pytest.raises(
        ln.InputError,
        match=(
            rf"must have rows of the unit, or be public\. .* 'patient', and {unit_text}\. Make "
            r"'patient' the unit"
        ),
    ):
        function(
            joined, domain, *(["sex"] if function is read_keys else []), unit_column=unit, **options
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": {"a": "b", "c": "d"}}, "one column of each table"),
        ({"on": {}}, "one column of each table"),
        ({"on": ""}, "the column that tables are joined on must be text"),
        ({"on": 3}, "the column that tables are joined on must be text"),
        ({"on": "k", "columns": "sex"}, "columns must be a list of columns"),
        ({"on": "k", "columns": []}, "columns must be a list of columns"),
        ({"on": "k", "columns": [3]}, "a column of the second table must be text"),
        ({"on": "k", "public": 1}, "public must be true or false"),
        (
            {"on": "k", "second": "visits.csv", "public": True},
            "is the data themselves, so it is not public",
        ),
        (
            {"on": "k", "second": ln.Joined("a.csv", "b.csv", on="k")},
            "must be one table; got a Joined",
        ),
    ],
)
def test_invalid_join_is_refused(arguments, message):
    with pytest.raises(ln.InputError, match=message):
        ln.Joined("visits.csv", **{"second": "patients.csv", **arguments})


@pytest.mark.parametrize(
    ("data", "second", "options", "message"),
    [
        (
            VISITS,
            PATIENTS,
            {"on": "id"},
            (
                r"the pandas data frame must have one column 'id' for the join; it has 0 of "
                r"that name"
            ),
        ),
        (VISITS, PATIENTS, {"on": "patient"}, r"must have one column 'patient' for the join"),
        (
            VISITS,
            PATIENTS,
            {"on": ON, "columns": ["age"]},
            r"has no column 'age', which the join names",
        ),
        (
            pa.table({"patient": [[1]]}),
            PATIENTS,
            {"on": ON},
            r"the column 'patient' of .* must hold numbers, text or dates",
        ),
        (
            VISITS,
            pa.table({"id": [[1]]}),
            {"on": ON},
            r"the column 'id' of .* must hold numbers, text or dates",
        ),
        (VISITS, {"id": [1]}, {"on": ON}, r"got an object of type 'dict'"),
    ],
)
def test_join_names_missing_columns(data, second, options, message):
    with pytest.raises(ln.InputError, match=message):
        read(ln.Joined(data, second, public=True, **options), DOMAIN)


def test_nothing_shows_the_rows_of_tables():
    assert (
        repr(ln.Joined(VISITS, PATIENTS, on=ON))
        == "Joined(on={'patient': 'id'}, columns=None, public=False)"
    )


def test_join_keeps_both_locations():
    joined = ln.Joined(
        ln.CSV("/a/visits.csv", ";"), "/a/patients.parquet", on=ON, columns=["sex"], public=True
    )
    place = source_location(joined)
    back = source_from_location(place)
    assert source_location(back) == place

    moved = source_from_location(place, "/b/visits.csv")
    assert moved.data.path == "/b/visits.csv"
    assert moved.data.delimiter == ";"
    assert moved.second == "/a/patients.parquet"
    assert moved.second_key == "id"
    assert moved.public is True
    assert source_from_location(place, joined) is joined
    assert source_location(ln.Joined(VISITS, "/a/patients.csv", on="id")) is None
