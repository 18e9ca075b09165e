"""Sizes of units: equal over sources, and one row for each unit."""

import itertools

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import leastnoise as ln
from leastnoise._domain import Domain, Edges, Reading
from leastnoise._trusted.kernel import QuantileSelection
from leastnoise._trusted.reading import read_unit_sizes
from leastnoise._trusted.table import open_content
from trusted.kernel.selections import cell_probabilities

DOMAIN = Domain(rows=Edges([0, 1, 2, 4, 8], closed="right", outside="clip"))


def unit_cells(source, **settings):
    """Return the cell of each unit's number of rows; each unit must be one row of the result."""
    table = read_unit_sizes(source, DOMAIN, "rows", unit_column="id", **settings)
    assert (table.unit_column, table.max_rows) == ("id", 1)
    return open_content(table).codes["rows"].tolist()


def rows_of_units(sizes):
    """Return the rows of units of these sizes."""
    ids = [f"p{unit}" for unit, size in enumerate(sizes) for _ in range(size)]
    return pd.DataFrame({"id": pd.Series(ids, dtype=object), "pay": 1})


def test_units_are_distinguished_by_their_reading():
    frame = pd.DataFrame({"id": ["a", " A", "b", None, "", "NA", "a", "a", "17", "17.0"]})
    reading = Reading(trim=True, ignore_case=True, nulls=["NA"])
    assert sorted(unit_cells(frame, unit_reading=reading)) == [0, 1, 2]


def test_every_source_has_the_same_rows_of_units(tmp_path):
    frame = pd.DataFrame({"id": np.random.default_rng(1).zipf(2.0, 500)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    sources = [
        tmp_path / "x.csv",
        tmp_path / "x.parquet",
        duckdb.sql("SELECT * FROM frame"),
        pl.from_pandas(frame).lazy(),
        ln.Joined(frame, pd.DataFrame({"id": [1, 2, 2, 999_999], "sex": "F"}), on="id"),
    ]
    expected = sorted(np.searchsorted([1, 2, 4], frame["id"].value_counts()).tolist())

    for source in sources:
        assert sorted(unit_cells(source)) == expected


def test_source_without_units_gives_an_empty_table():
    assert unit_cells(pd.DataFrame({"id": pd.Series([None, ""], dtype=object)})) == []


@pytest.mark.parametrize("size", [1, 3, 100])
def test_unit_changes_one_row_however_many_it_has(size):
    for other_sizes in itertools.product([0, 1, 2, 5], repeat=3):
        with_unit = np.bincount(unit_cells(rows_of_units([*other_sizes, size])), minlength=4)
        without_unit = np.bincount(unit_cells(rows_of_units(other_sizes)), minlength=4)
        assert np.abs(with_unit - without_unit).sum() == 1


@pytest.mark.slow
def test_choice_of_max_rows_loses_at_most_epsilon_for_a_unit():
    selection = QuantileSelection(attribute="rows", share="19/20", cells=4, epsilon="1/2")
    largest = 0.0
    for other_sizes in itertools.product([0, 1, 3, 40], repeat=3):
        before = np.bincount(unit_cells(rows_of_units(other_sizes)), minlength=4)
        for size in (1, 2, 3, 50):
            after = np.bincount(unit_cells(rows_of_units([*other_sizes, size])), minlength=4)
            laws = [cell_probabilities(selection, counts, 1) for counts in (before, after)]
            largest = max(largest, np.abs(np.log(laws[0] / laws[1])).max())
    assert 0.2 < largest <= 0.5 * (1 + 1e-9)
