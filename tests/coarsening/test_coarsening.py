"""Cells that planned tables determine, against known answers and brute force."""

from itertools import product

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._coarsening import (
    ROUNDINGS,
    PlannedTable,
    RoundingRule,
    read_planned_table,
    solve_tables,
)

SEX_BY_AGE = """\
sex,age,count
F,young,{}
F,old,{}
F,Total,7
M,young,{}
M,old,{}
M,Total,8
Total,young,5
Total,old,10
Total,Total,15
"""
EXACT = RoundingRule()


def read_table(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return read_planned_table(path)


def intervals(tables, rule=EXACT):
    return [(cell.low, cell.high) for cell in solve_tables(tables, rule)]


@pytest.mark.parametrize(
    ("counts", "rule", "expected"),
    [
        (("", "", "", 5), EXACT, [(2, 2), (5, 5), (3, 3)]),
        (("", "", "", ""), EXACT, [(0, 5), (2, 7), (0, 5), (3, 8)]),
        (("", "", "", ""), RoundingRule(suppressed=(1, 6)), [(1, 3), (4, 6), (2, 4), (4, 6)]),
    ],
)
def test_suppressed_cells_have_known_intervals(tmp_path, counts, rule, expected):
    assert intervals([read_table(tmp_path, SEX_BY_AGE.format(*counts))], rule) == expected


@pytest.mark.parametrize(
    ("method", "parts", "total"),
    [("nearest", (0, 2), (3, 6)), ("random", (0, 4), (1, 9)), ("down", (0, 4), (5, 9))],
)
def test_rounded_parts_narrow_their_total(method, parts, total):
    counts = {("a",): 0, ("b",): 0, ("c",): 0, ("Total",): 5}
    table = PlannedTable("parts", ("part",), counts)
    assert intervals([table], RoundingRule(5, method)) == [parts, parts, parts, total]


def test_attacks_of_the_page_why_noise():
    wards = {
        ("North", "yes"): None, ("North", "no"): 118, ("North", "Total"): 121,
        ("East", "yes"): None, ("East", "no"): 74, ("East", "Total"): None,
        ("South", "yes"): 9, ("South", "no"): None, ("South", "Total"): 64,
        ("Total", "yes"): 14, ("Total", "no"): 247, ("Total", "Total"): 261,
    }  # fmt: skip
    table = PlannedTable("wards", ("ward", "illness"), wards)
    assert intervals([table]) == [(3, 3), (2, 2), (76, 76), (55, 55)]
    villages = {(name,): 3 for name in "ABCDE"} | {("Total",): 21}
    table = PlannedTable("villages", ("village",), villages)
    assert intervals([table], RoundingRule(3)) == [(4, 4)] * 5 + [(20, 20)]


def test_cell_without_total_has_no_limit():
    table = PlannedTable("one", ("sex",), {("F",): None, ("M",): 4})
    (cell,) = solve_tables([table], EXACT)
    assert cell.low == 0
    assert cell.high is None
    assert cell.possible_count is None
    assert cell.is_proved is True
    assert not cell.is_disclosed(2)


def test_large_counts_are_exact():
    counts = {("F",): None, ("M",): 10**9 - 3, ("Total",): 10**9}
    assert intervals([PlannedTable("large", ("sex",), counts)]) == [(3, 3)]


def publish(count, rule, rng):
    """Round a count by a rule, which may round up or down at random."""
    below = count // rule.base * rule.base
    if rule.method == "random":
        return below + rule.base * int(rng.integers(2)) * (count > below)
    if rule.method == "down" or count - below < rule.base / 2:
        return below
    return below + rule.base


@pytest.mark.parametrize("seed", range(9))
def test_intervals_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    shape = [(2, 3), (2, 2, 2), (3, 2)][seed % 3]
    rule = RoundingRule([1, 2, 3][seed // 3], ROUNDINGS[seed % 3], (0, 3))
    every = np.array(list(product(range(4), repeat=int(np.prod(shape))))).reshape(-1, *shape)
    truth = rng.integers(0, 4, shape)
    names = "abc"[: len(shape)]
    # All cells are known to be 0 to 3, and every margin over one attribute is published in part.
    cells = {tuple(map(str, place)): None for place in np.ndindex(shape)}
    tables = [PlannedTable("cells", tuple(names), cells)]
    possible = np.ones(len(every), dtype=bool)
    sums = {("cells", place): every[(slice(None), *place)] for place in np.ndindex(shape)}
    for axis, name in enumerate(names):
        margin = truth.sum(axis=axis)
        margins = every.sum(axis=axis + 1)
        counts = {}
        for place in np.ndindex(margin.shape):
            hide = rule.base == 1 and margin[place] <= 3 and rng.random() < 0.5
            count = None if hide else publish(int(margin[place]), rule, rng)
            low, high = rule.bounds(count)
            at = margins[(slice(None), *place)]
            possible &= (low <= at) & (at <= high)
            counts[tuple(map(str, place))] = count
            if count is None or rule.base > 1:
                sums[name, place] = at
        others = tuple(other for other in names if other != name)
        tables.append(PlannedTable(name, others, counts))
    expected = [(at[possible].min(), at[possible].max()) for at in sums.values()]
    solved = solve_tables(tables, rule)
    assert [(cell.low, cell.high) for cell in solved] == expected
    assert all(cell.is_proved for cell in solved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("sex,number\nF,1\n", "must have one column 'count'"),
        ("sex,count\nF,1,2\n", "must have 2 columns; got 3"),
        ("sex,count\nF,1\nF,2\n", "repeats a cell"),
        ("sex,count\nF,-1\n", "whole number from 0"),
        ("sex,count\nF," + "9" * 5000 + "\n", "whole number from 0"),
        ("sex,age,count\nF,1,1\nM,2,2\n", "every combination of its labels, 4 in all; got 2"),
    ],
)
def test_reader_refuses_other_forms(tmp_path, text, message):
    with pytest.raises(ln.InputError, match=message):
        read_table(tmp_path, text)


def test_solver_refuses_tables_that_disagree():
    table = PlannedTable("one", ("sex",), {("F",): None, ("M",): 4, ("Total",): 3})
    with pytest.raises(ln.InputError, match="No whole numbers agree"):
        solve_tables([table], EXACT)
    rounded = PlannedTable("rounded", ("sex",), {("F",): 4, ("M",): 5})
    with pytest.raises(ln.InputError, match="multiple of the base 5; got 4"):
        solve_tables([rounded], RoundingRule(5))
    other = PlannedTable("other", ("sex",), {("F",): None, ("X",): 4})
    with pytest.raises(ln.InputError, match="labels of sex must be the same"):
        solve_tables([rounded, other], EXACT)


def test_solver_takes_attributes_with_only_a_total():
    table = PlannedTable(
        "sums", ("sex", "age"), {("Total", "Total"): 9, ("Total", "old"): None, ("Total", "x"): 4}
    )
    assert intervals([table]) == [(5, 5)]


def test_linear_bounds_contain_the_exact_intervals(monkeypatch):
    """Without a whole solution in time, intervals are too wide at most, and marked."""
    rng = np.random.default_rng(2)
    counts = rng.poisson(2, (4, 4, 3))
    tables = []
    for axis, names in enumerate(("bc", "ac", "ab")):
        margin = counts.sum(axis=axis)
        cells = {tuple(map(str, at)): int(margin[at]) // 3 * 3 for at in np.ndindex(margin.shape)}
        tables.append(PlannedTable(names, tuple(names), cells))
    rule = RoundingRule(3, "down")
    exact = solve_tables(tables, rule)
    monkeypatch.setattr("leastnoise._coarsening._FIRST_SECONDS", 0.0)
    for wide, narrow in zip(solve_tables(tables, rule), exact, strict=True):
        assert wide.low <= narrow.low
        assert narrow.high <= wide.high
        assert not wide.is_proved or (wide.low, wide.high) == (narrow.low, narrow.high)
