"""Keys of a column: their values, the bound of a unit, and equality over sources."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._domain import Domain, Reading, Unknown
from leastnoise._trusted.reading import read, read_keys
from trusted.reading.encoders import units_of

DOMAIN = Domain(
    agent=Unknown(9, longest=12, reading=Reading(trim=True, ignore_case=True, nulls=["NA"]))
)


def counted(source, domain=DOMAIN, **unit):
    return units_of(read_keys(source, domain, "agent", **unit))


def test_which_values_are_keys():
    values = [
        "curl", " Curl ", "WGET", None, "", "  ", "na", "x" * 12, "x" * 13, "two\nlines", "nul\x00",
        "half \ud800", "ünï", 17.0, "17", b"\xff", [1],
    ]  # fmt: skip
    keys = counted(pd.DataFrame({"agent": pd.Series(values, dtype=object)}))
    assert keys == {"curl": 2, "wget": 1, "x" * 12: 1, "ünï": 1, "17": 2}


def test_unit_counts_once_per_key_up_to_a_limit():
    frame = pd.DataFrame(
        {
            "id": [1] * 6 + [2, 2, 3, None],
            "agent": ["a", "a", "b", "c", None, "NA", "a", "A", None, "a"],
        }
    )
    # Nulls do not take the place of a key.
    assert counted(frame, unit_column="id", max_rows=3) == {"a": 2, "b": 1, "c": 1}

    for _ in range(20):
        keys = counted(frame, unit_column="id", max_rows=2)
        assert sum(keys.values()) == 3
        assert keys["a"] in (1, 2)


def test_every_source_has_the_same_keys(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": rng.integers(0, 500, 3000),
            "agent": rng.choice(["curl", "Wget", "", "a;b", "ü", "NA", '"q"'], 3000),
        }
    )
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    polars = pl.from_pandas(frame)
    files = (tmp_path / "x.csv", tmp_path / "x.parquet")
    sources = [
        frame,
        *files,
        duckdb.sql("SELECT * FROM frame"),
        polars,
        polars.lazy(),
        pa.table(frame),
    ]
    rows = counted(frame)
    units = counted(frame, unit_column="id", max_rows=7)

    assert sorted(rows) == ['"q"', "a;b", "curl", "wget", "ü"]
    for source in sources:
        assert counted(source) == rows
        assert counted(source, unit_column="id", max_rows=7) == units


def test_no_row_and_no_key():
    assert counted(pd.DataFrame({"agent": []})) == {}
    assert counted(pd.DataFrame({"agent": [None], "id": [1]}), unit_column="id", max_rows=2) == {}


def test_unknown_attribute_is_not_read():
    with pytest.raises(
        ln.InputError,
        match=r"categories of Unknown\(9.* are not known yet.*leastnoise.find_categories",
    ):
        read(pd.DataFrame({"agent": ["a"]}), DOMAIN)
    with pytest.raises(ln.InputError, match="'sex' must be Unknown"):
        read_keys(pd.DataFrame({"sex": ["F"]}), Domain(sex=["F", "M"]), "sex")
    with pytest.raises(ln.InputError, match="no column 'agent'"):
        counted(pd.DataFrame({"sex": ["F"]}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most": 0}, "most"),
        ({"longest": 0}, "longest"),
        ({"longest": 1001}, "longest"),
        ({"levels": {"a": {"b": "c"}}}, "no levels"),
    ],
)
def test_unknown_category_options_are_checked(options, message):
    with pytest.raises(ln.InputError, match=message):
        Unknown(**{"most": 9, **options})


def test_found_categories_are_an_attribute():
    kind = Unknown(9, outside="other", null="other", reading=Reading(ignore_case=True))
    assert kind.to_categories(("b", "other", "a")).labels == ("b", "a", "other")
    assert Unknown(9).to_categories(("b", "other")).labels == ("b", "other")
    assert type(Unknown(np.int64(9)).most) is int
    with pytest.raises(ln.InputError, match=r"No category was found.*max_rows"):
        kind.to_categories(("other",))
