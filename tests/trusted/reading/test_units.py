"""Bounds on the rows of a unit: stability by brute force, and a uniform choice."""

import itertools
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from behind_the_wall import Column
from leastnoise._domain import Coded, Domain, PerCellBound, Reading, UnitCount, UnitTotal
from leastnoise._trusted.check import InputError
from leastnoise._trusted.reading import ReadRequest, _column, _read, read
from leastnoise._trusted.reading._units import Units
from leastnoise._trusted.table import Counted, open_content
from trusted.reading.neighbours import entropy_of as entropy

COUNTS = {
    "units": UnitCount(),
    "units by v": UnitCount(["v"]),
    "units by v x w": UnitCount(["v", "w"]),
}
CELLS = Domain(v=Coded(2), w=Coded(2), measures=COUNTS)


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
    generator = np.random.default_rng(4)
    largest, fullest = 0, 0
    for rows in (1, 2, 3, 4, 5):
        for ids in itertools.islice(
            itertools.product(["a", "b", None], repeat=rows), 0, None, rows if rows > 3 else 1
        ):
            keys = generator.permutation(rows)
            values = {
                name: generator.choice([0, 1, 0, 1, 0, 1, 9], size=rows) for name in ("v", "w")
            }
            source_table = pa.table({"id": pa.array(ids, pa.string()), **values})

            def cells(stay, source_table=source_table, keys=keys):
                own_keys = keys[stay].astype("<u8").tobytes()
                with mock.patch.object(_read, "urandom", return_value=own_keys):
                    table = open_content(
                        read(
                            source_table.take(stay),
                            CELLS,
                            unit_column="id",
                            max_rows=most,
                            max_per_cell=bound,
                        )
                    )
                places = 2 * table.codes["v"].astype(int) + table.codes["w"]
                return np.array(
                    [
                        np.bincount(places, table.values[name], minlength=4)
                        for name in (*COUNTS, None)
                    ]
                )

            before = cells(np.arange(rows))
            for unit in ("a", "b", None):
                unit_rows = [row for row in range(rows) if ids[row] == unit]
                change = before - cells(
                    np.array([row for row in range(rows) if row not in unit_rows], dtype=int)
                )
                once, each, apart, held = change
                of_v = held.reshape(2, 2).sum(axis=1)
                inside = {
                    (values["v"][row], values["w"][row])
                    for row in unit_rows
                    if unit and max(values["v"][row], values["w"][row]) < 2
                }
                assert (change >= 0).all()
                assert held.sum() <= (most if unit else 0)
                # a unit counts in as many of its cells as the limits allow, once in each
                assert once.sum() == min(1, len(inside))
                each_of_v, apart_of_v = (
                    counted.reshape(2, 2).sum(axis=1) for counted in (each, apart)
                )
                assert max(each_of_v) <= 1
                assert max(apart) <= 1
                assert each_of_v.sum() == min(most, len({v for v, _ in inside}))
                per_v = bound.rows if bound is not None and bound.attributes == ("v",) else 2
                cells_of_v = [sum(v == value for v, _ in inside) for value in (0, 1)]
                assert max(apart_of_v) <= per_v
                assert apart.sum() == min(most, sum(min(per_v, count) for count in cells_of_v))
                in_cells = (of_v if bound is None or bound.attributes == ("v",) else held).max()
                assert in_cells <= (most if bound is None else bound.rows)
                largest = max(largest, held.sum())
                fullest = max(fullest, in_cells)
    cell = most if bound is None else bound.rows

    assert (largest, fullest) == (
        min(most, cell * (2 if bound is None or len(bound.attributes) == 1 else 4)),
        cell,
    )


def cut(ids, cells, most, bound):
    units = Units(None if bound is None else PerCellBound(bound, "v"), {"v": 3})
    units.add(units.number(Column(ids)), [np.array(cells, dtype=np.int64)])
    return units.count_cut_rows(units.keep(most, entropy(range(len(ids)))), 3)


def cut_by_hand(cells, most, bound):
    kept_rows = min(most, sum(min(cells.count(cell), bound or len(cells)) for cell in set(cells)))
    return min(len(cells) - kept_rows, 3 * kept_rows), kept_rows


@pytest.mark.parametrize(
    ("most", "bound"), [(1, None), (2, None), (3, None), (2, 1), (3, 1), (3, 2)]
)
def test_cut_rows_are_at_most_three_per_kept_row(most, bound):
    """Units have up to 9 rows in three cells, one outside, next to rows of others."""
    reached = 0
    for rows in range(10):
        for cells in itertools.combinations_with_replacement([-1, 0, 1], rows):
            expected, kept_rows = cut_by_hand(list(cells), most, bound)
            other_cuts = cut(["b"] * 7 + [None] * 2, [0] * 9, most, bound)
            ids = ["b"] * 3 + ["a"] * rows + [None] + ["b"] * 4 + [None]
            assert cut(ids, [0] * 3 + [*cells] + [0] * 6, most, bound) == other_cuts + expected
            assert expected <= 3 * kept_rows <= 3 * most
            reached = max(reached, expected)

    assert reached == min(9 - most, 3 * most) if bound is None else reached >= 3


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
def test_the_choice_is_uniform(ids, bound, cells, pairs):
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

    assert (
        sum((count - 500) ** 2 / 500 for count in tally.values()) < {10: 46.8, 6: 35.9}[len(tally)]
    )


def test_rows_without_a_unit_are_dropped():
    for ids in (["a", None, ""], [1.0, float("nan"), None], [1, None, None], [pd.NA, "b", pd.NaT]):
        frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "v": [0, 0, 0]})
        assert open_content(read(frame, Domain(v=Coded(3)), unit_column="id", max_rows=3)).codes[
            "v"
        ].tolist() == [0]


@pytest.mark.parametrize(("form", "most"), [("numbers", 1), ("texts", 3)])
def test_bound_holds_beyond_16_bit_units(form, most):
    """Each of 70,000 units in two chunks keeps its own rows up to the bound."""
    generator = np.random.default_rng(7)
    unit = generator.permutation(np.repeat(np.arange(70_000), np.arange(70_000) % 5 + 1))
    units = Units()
    for chunk in (unit[:100_000], unit[100_000:]):
        units.add(units.number(Column(chunk if form == "numbers" else chunk.astype(str).tolist())))
    keep = units.keep(most, generator.bytes)

    assert (
        np.bincount(unit[keep], minlength=70_000).tolist()
        == np.minimum(np.arange(70_000) % 5 + 1, most).tolist()
    )


def kept_one_by_one(keys, units, cells, most, within):
    """Keep rows in the order of their keys, first within each cell, then within the unit."""
    kept_rows, chosen = [], {}
    for of_cells, bound in ((True, within), (False, most)):
        often = {}
        for row in sorted(range(len(keys)) if of_cells else kept_rows, key=lambda row: keys[row]):
            group = (units[row], cells[row] if of_cells else None)
            often[group] = often.get(group, 0) + 1
            chosen[row] = units[row] is not None and often[group] <= bound
        kept_rows = [row for row in chosen if chosen[row]]
    return [chosen[row] for row in range(len(keys))]


@pytest.mark.parametrize("sizes", [(2,), (3, 2), (2, 3), (1, 1, 2), (2, 2, 2), (3, 1, 4)], ids=str)
def test_no_two_cells_and_no_two_units_share_a_bound(sizes):
    """The choice equals one row by row, for any few values of cells (-1 included) and units."""
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
        forms = [
            None
            if id_ in (None, "")
            else id_
            if isinstance(id_, bytes)
            else str(id_).removesuffix(".0")
            for id_ in ids
        ]
        assert units.keep(most, entropy(keys)).tolist() == kept_one_by_one(
            keys, forms, cells, most, within
        ), trial


def test_dropped_rows_have_a_cell_of_their_own():
    frame = pl.DataFrame({"id": ["a"] * 4, "v": [9, 9, 0, 0]})
    domain = Domain(v=Coded(2))
    for keys in itertools.permutations(range(4)):
        with mock.patch.object(_read, "urandom", entropy(keys)):
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


OF_UNITS = (
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
        (None, ["units by v"], {}, OF_UNITS),
        (["w"], ["units by v"], {"unit_column": "id"}, OF_UNITS),
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
