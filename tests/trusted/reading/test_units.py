"""Bounds on the rows of a unit: stability by brute force, and a uniform choice."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from behind_the_wall import Column
from leastnoise._domain import Coded, Domain, PerCellBound, Reading, UnitCount, UnitTotal
from leastnoise._trusted.check import InputError
from leastnoise._trusted.reading import ReadRequest, _column, read
from leastnoise._trusted.reading._units import Units
from leastnoise._trusted.table import Counted, open_content
from trusted.reading.row_keys import fixed_row_keys, random_bytes_of

COUNTS = {
    "units": UnitCount(),
    "units by v": UnitCount(["v"]),
    "units by v x w": UnitCount(["v", "w"]),
}
CELLS = Domain(v=Coded(2), w=Coded(2), measures=COUNTS)


def small_sources(generator):
    """Yield ids, values of v and w, and keys of up to 5 rows; 9 is outside the domain."""
    for rows in (1, 2, 3, 4, 5):
        all_ids = itertools.product(["a", "b", None], repeat=rows)
        for ids in itertools.islice(all_ids, 0, None, rows if rows > 3 else 1):
            keys = generator.permutation(rows)
            values = {
                name: generator.choice([0, 1, 0, 1, 0, 1, 9], size=rows) for name in ("v", "w")
            }
            yield ids, values, keys


def cells_of_rows(ids, values, keys, read_rows, **bounds):
    """Return the counts of units and of rows in each cell (v, w), for some of the rows."""
    source = pa.table({"id": pa.array(ids, pa.string()), **values}).take(read_rows)
    with fixed_row_keys(keys[read_rows]):
        table = open_content(read(source, CELLS, unit_column="id", **bounds))
    places = 2 * table.codes["v"].astype(int) + table.codes["w"]
    # The values of None are 1 in every row that counts.
    measures = [*COUNTS, None]
    return np.array([np.bincount(places, table.values[name], minlength=4) for name in measures])


def assert_unit_counts(counts, cells, most, bound):
    """Check how often a unit counts: in as many cells as the limits allow, once in each."""
    units, units_by_v, units_by_cell = counts
    assert units.sum() == min(1, len(cells))
    assert max(units_by_v.reshape(2, 2).sum(axis=1)) <= 1
    assert units_by_v.sum() == min(most, len({v for v, _ in cells}))
    most_of_v = bound.rows if bound is not None and bound.attributes == ("v",) else 2
    cells_of_v = [sum(v == value for v, _ in cells) for value in (0, 1)]
    assert max(units_by_cell) <= 1
    assert max(units_by_cell.reshape(2, 2).sum(axis=1)) <= most_of_v
    assert units_by_cell.sum() == min(most, sum(min(most_of_v, count) for count in cells_of_v))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "bound"),
    [
        (1, None),
        (2, None),
        (3, None),
        (1, PerCellBound(1, "v")),
        (2, PerCellBound(1, "v")),
        (3, PerCellBound(2, "v")),
        (3, PerCellBound(1, ["v", "w"])),
    ],
    ids=str,
)
def test_removed_unit_changes_bounded_counts(most, bound):
    """Try all tables of up to 5 rows; other units keep their rows, with their keys."""
    bounds = {"max_rows": most, "max_per_cell": bound}
    most_in_cell = most if bound is None else bound.rows
    most_rows = 0
    most_rows_in_cell = 0
    for ids, values, keys in small_sources(np.random.default_rng(4)):
        all_rows = np.arange(len(ids))
        before = cells_of_rows(ids, values, keys, all_rows, **bounds)
        for unit in ("a", "b", None):
            is_of_unit = np.array([name == unit for name in ids])
            after = cells_of_rows(ids, values, keys, all_rows[~is_of_unit], **bounds)
            change = before - after
            assert (change >= 0).all()
            *unit_counts, kept_rows = change
            cells = {
                (values["v"][row], values["w"][row])
                for row in all_rows[is_of_unit]
                if unit and max(values["v"][row], values["w"][row]) < 2
            }
            assert_unit_counts(unit_counts, cells, most, bound)
            is_bound_on_v = bound is None or bound.attributes == ("v",)
            rows_in_cells = kept_rows.reshape(2, 2).sum(axis=1) if is_bound_on_v else kept_rows
            assert kept_rows.sum() <= (most if unit else 0)
            assert rows_in_cells.max() <= most_in_cell
            most_rows = max(most_rows, kept_rows.sum())
            most_rows_in_cell = max(most_rows_in_cell, rows_in_cells.max())

    # Some units reach both limits.
    cells_of_bound = 2 if bound is None or len(bound.attributes) == 1 else 4
    assert most_rows == min(most, most_in_cell * cells_of_bound)
    assert most_rows_in_cell == most_in_cell


def cut_rows(ids, cells, most, bound):
    """Return how many rows of all units are counted as cut."""
    units = Units(None if bound is None else PerCellBound(bound, "v"), {"v": 3})
    units.add(units.number(Column(ids)), [np.array(cells, dtype=np.int64)])
    return units.count_cut_rows(units.keep(most, random_bytes_of(range(len(ids)))), 3)


def cut_by_hand(cells, most, bound):
    """Return the cut rows of one unit, at most three for each kept row, and the kept rows."""
    kept_rows = min(most, sum(min(cells.count(cell), bound or len(cells)) for cell in set(cells)))
    return min(len(cells) - kept_rows, 3 * kept_rows), kept_rows


@pytest.mark.parametrize(
    ("most", "bound"), [(1, None), (2, None), (3, None), (2, 1), (3, 1), (3, 2)]
)
def test_cut_rows_are_at_most_three_per_kept_row(most, bound):
    """Units have up to 9 rows in three cells, one outside, next to rows of others."""
    most_cut = 0
    for rows in range(10):
        for cells in itertools.combinations_with_replacement([-1, 0, 1], rows):
            expected, kept_rows = cut_by_hand(list(cells), most, bound)
            other_cuts = cut_rows(["b"] * 7 + [None] * 2, [0] * 9, most, bound)
            ids = ["b"] * 3 + ["a"] * rows + [None] + ["b"] * 4 + [None]
            assert cut_rows(ids, [0] * 3 + [*cells] + [0] * 6, most, bound) == other_cuts + expected
            assert expected <= 3 * kept_rows <= 3 * most
            most_cut = max(most_cut, expected)

    assert most_cut == min(9 - most, 3 * most) if bound is None else most_cut >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ids", "bound", "cells", "pairs"),
    [
        ("baaabaa", None, [0] * 7, itertools.combinations([1, 2, 3, 5, 6], 2)),
        (
            "aaaaa",
            PerCellBound(1, "v"),
            [0, 1, 0, 0, 1],
            [(0, 1), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)],
        ),
    ],
)
def test_rows_of_a_unit_are_chosen_uniformly(ids, bound, cells, pairs):
    """Count the pairs kept of a unit's 5 rows: 10, or 6 with one row of each of two cells.

    Chi-square at a false alarm of 1e-6: 46.8 for 10 pairs and 35.9 for 6; fixed seed.
    """
    generator = np.random.default_rng(11)
    tally = dict.fromkeys(pairs, 0)
    for _ in range(500 * len(tally)):
        units = Units(bound, {"v": 2})
        units.add(units.number(Column(list(ids))), [np.array(cells)])
        keep = units.keep(2, generator.bytes)
        tally[tuple(row for row in np.flatnonzero(keep).tolist() if ids[row] == "a")] += 1
        assert all(keep[row] for row, unit in enumerate(ids) if unit == "b")

    chi_square = sum((count - 500) ** 2 / 500 for count in tally.values())
    assert chi_square < {10: 46.8, 6: 35.9}[len(tally)]


def test_rows_without_a_unit_are_dropped():
    for ids in (["a", None, ""], [1.0, float("nan"), None], [1, None, None], [pd.NA, "b", pd.NaT]):
        frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "v": [0, 0, 0]})
        table = open_content(read(frame, Domain(v=Coded(3)), unit_column="id", max_rows=3))
        assert table.codes["v"].tolist() == [0]


@pytest.mark.parametrize(("form", "most"), [("numbers", 1), ("texts", 3)])
def test_bound_holds_beyond_16_bit_units(form, most):
    """Each of 70,000 units in two chunks keeps its own rows up to the bound."""
    generator = np.random.default_rng(7)
    rows_of_units = np.arange(70_000) % 5 + 1
    unit = generator.permutation(np.repeat(np.arange(70_000), rows_of_units))
    units = Units()
    for chunk in (unit[:100_000], unit[100_000:]):
        ids = chunk if form == "numbers" else chunk.astype(str).tolist()
        units.add(units.number(Column(ids)))
    keep = units.keep(most, generator.bytes)

    kept_of_units = np.bincount(unit[keep], minlength=70_000)
    assert kept_of_units.tolist() == np.minimum(rows_of_units, most).tolist()


def reference_kept_rows(keys, units, cells, most, within):
    """Keep rows in the order of their keys, first within each cell, then within the unit."""
    rows = [row for row in np.argsort(keys).tolist() if units[row] is not None]
    kept_in_cell = Counter()
    kept_in_unit = Counter()
    kept_rows = set()
    for row in rows:
        unit = units[row]
        kept_in_cell[unit, cells[row]] += 1
        if kept_in_cell[unit, cells[row]] > within:
            continue
        kept_in_unit[unit] += 1
        if kept_in_unit[unit] <= most:
            kept_rows.add(row)
    return [row in kept_rows for row in range(len(keys))]


def unit_of(id_):
    """Return the name of the unit that an id means, or None."""
    if id_ in (None, ""):
        return None
    return id_ if isinstance(id_, bytes) else str(id_).removesuffix(".0")


@pytest.mark.parametrize("sizes", [(2,), (3, 2), (2, 3), (1, 1, 2), (2, 2, 2), (3, 1, 4)], ids=str)
def test_no_two_cells_and_no_two_units_share_a_bound(sizes):
    """The choice equals a choice row by row, for cells of few values (-1 included) and units."""
    generator = np.random.default_rng(sizes)
    kinds = {f"a{place}": size for place, size in enumerate(sizes)}
    for trial in range(40):
        rows = int(generator.integers(1, 60))
        most = int(generator.integers(1, 9))
        within = int(generator.integers(1, 4))
        names = [name for name in kinds if generator.random() < 0.7] or [*kinds]
        codes = [generator.integers(-1, size, rows) for size in sizes]
        ids = [
            [1, "1", "1.0", 1.5, b"\xff", None, ""][place]
            for place in generator.integers(0, 7, rows)
        ]
        keys = generator.permutation(rows)
        units = Units(PerCellBound(within, names), kinds)
        for rows_of_chunk in (slice(0, rows // 2), slice(rows // 2, rows)):
            units.add(
                units.number(Column(ids[rows_of_chunk])),
                [column[rows_of_chunk] for column in codes],
            )
        cells = [
            tuple(int(codes[[*kinds].index(name)][row]) for name in names) for row in range(rows)
        ]
        expected = reference_kept_rows(keys, list(map(unit_of, ids)), cells, most, within)
        assert units.keep(most, random_bytes_of(keys)).tolist() == expected, trial


def test_dropped_rows_have_a_cell_of_their_own():
    """The bound keeps one row of the cell 0, and one of the rows outside the domain."""
    frame = pl.DataFrame({"id": ["a"] * 4, "v": [9, 9, 0, 0]})
    domain = Domain(v=Coded(2))
    for keys in itertools.permutations(range(4)):
        with fixed_row_keys(keys):
            table = read(
                frame,
                domain,
                read_request=ReadRequest(usage=True),
                unit_column="id",
                max_rows=2,
                max_per_cell=PerCellBound(1, "v"),
            )
        assert open_content(table).codes["v"].tolist() == [0]
        assert open_content(table.usage, Counted).tables[None, ("rows",)].tolist() == [1, 1]


UNIT_COUNTS_NEED_UNITS = (
    "a count or total of units must be in a table whose rows have units, and of attributes that "
    "are read"
)


@pytest.mark.parametrize(
    ("attributes", "measures", "options", "message"),
    [
        (
            ["v"],
            [],
            {"unit_column": "id", "max_per_cell": PerCellBound(1, "w")},
            "max_per_cell must be attributes that are read: v; got",
        ),
        (
            None,
            [],
            {"max_per_cell": PerCellBound(1, "w")},
            "max_per_cell must be None if every row is a unit",
        ),
        (None, ["units by v"], {}, UNIT_COUNTS_NEED_UNITS),
        (["w"], ["units by v"], {"unit_column": "id"}, UNIT_COUNTS_NEED_UNITS),
    ],
)
def test_bounds_on_unread_columns_are_refused(attributes, measures, options, message):
    with pytest.raises(InputError, match=message):
        read(
            pl.DataFrame({"id": ["a"], "v": [0], "w": [0]}),
            CELLS,
            read_request=ReadRequest(attributes=attributes, measures=measures),
            **options,
        )


def test_two_spellings_of_an_id_are_one_unit(tmp_path):
    """Otherwise a person with two spellings would keep twice `max_rows` rows."""
    (tmp_path / "january.csv").write_text("id,dx\n17.0,A\n18.0,A\n,B\n19.0,B\n")
    (tmp_path / "march.csv").write_text("id,dx\n17,A\n18,A\n19,B\n20,B\n")
    domain = Domain(dx=["A", "B"])
    table = read(tmp_path, domain, unit_column="id", max_rows=1)
    assert np.bincount(open_content(table).codes["dx"]).tolist() == [2, 2]


def test_units_follow_the_reading_of_the_source(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text('id,dx\nP17,A\n"P17 ",A\np17,A\nP18,B\nNA,B\n')
    reading = Reading(trim=True, ignore_case=True, nulls=["na"])
    table = read(file, Domain(dx=["A", "B"]), unit_column="id", max_rows=1, unit_reading=reading)
    assert np.bincount(open_content(table).codes["dx"]).tolist() == [1, 1]


def test_order_of_rows_changes_no_total(monkeypatch):
    """Thirds of cents and large amounts, in chunks of 100 rows, would round as floats."""
    monkeypatch.setattr(_column, "CHUNK", 100)
    generator = np.random.default_rng(2)
    large = [1e7, -1e7, 1e7, -1e7, 123456789.01]
    amounts = np.concatenate([np.full(999, 1 / 3), large, generator.normal(0, 1e6, 400)])
    total = UnitTotal("amount", -(10**7), 10**7, "0.01", by=["v"])
    domain = Domain(v=Coded(2), measures={"total": total})
    most = (2**30 - 1) / 100
    expected = int(np.rint(np.clip(amounts, -most, most) * 100).sum())
    assert abs(expected) < 10**9

    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(amounts))
        rows = pa.table(
            {"id": ["a"] * len(amounts), "v": [1] * len(amounts), "amount": amounts[order]}
        )
        values = open_content(read(rows, domain, unit_column="id", max_rows=2)).values["total"]
        assert values[values != 0].tolist() == [expected]


def test_unit_without_a_value_adds_nothing_to_totals():
    """It adds not even the lower bound, and such cells do not count as cells of the unit."""
    rows = pa.table(
        {
            "id": ["a", "a", "b", "b", "b", None],
            "v": [0, 0, 0, 1, 1, 1],
            "amount": pa.array([None, None, None, 1, 1, 9], pa.int64()),
        }
    )
    domain = Domain(v=Coded(2), measures={"total": UnitTotal("amount", 5, 7, by=["v"])})
    table = open_content(read(rows, domain, unit_column="id", max_rows=1))

    assert np.bincount(table.codes["v"], table.values["total"], minlength=2).tolist() == [0, 5]
