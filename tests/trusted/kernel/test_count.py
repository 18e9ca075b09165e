"""Counts of private rows, against plain Python and numpy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from behind_the_wall import exact_marginals
from leastnoise._domain import Coded, Domain, Measure, UnitCount
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.kernel import _count
from leastnoise._trusted.kernel._count import _attribute_set_batches
from leastnoise._trusted.table import Table, group_attribute_sets
from leastnoise._trusted.table.helpers import _attribute_groups


def random_table(sizes, rows, seed=0, measure=None):
    generator = np.random.default_rng(seed)
    domain = Domain(
        {f"a{place}": Coded(size) for place, size in enumerate(sizes)},
        measures={"m": measure} if measure else None,
    )
    codes = {f"a{place}": generator.integers(0, size, rows) for place, size in enumerate(sizes)}
    values = (
        {"m": generator.integers(measure.low_units, measure.high_units, rows, endpoint=True)}
        if measure
        else {}
    )
    return Table(domain, codes, values), codes, values


def count_in_python(codes, values, domain, attributes):
    """Count or add up the rows of each cell in Python integers, row by row."""
    table = np.zeros([domain.kind(name).size for name in attributes], dtype=object)
    for row in range(len(next(iter(codes.values())))):
        table[tuple(codes[name][row] for name in attributes)] += (
            1 if values is None else int(values[row])
        )
    return table.reshape(-1).tolist()


def marginal_lists(table, attribute_sets):
    """Return each attribute set with the counts of its cells as a list."""
    return [
        (attributes, counts.tolist())
        for attributes, counts in exact_marginals(table, attribute_sets)
    ]


REAL_BLOCK = _count._BLOCK


@pytest.fixture(scope="module", autouse=True)
def _small_blocks():
    """Set the block size so low that a few rows fill more than one block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_count, "_BLOCK", 4)
        yield


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.integers(0, 30),
    st.integers(0, 2**32 - 1),
    st.lists(st.lists(st.integers(0, 4), unique=True, max_size=4), max_size=8),
    st.sampled_from(["rows", "sums", "limited sums"]),
    st.integers(-1, 4),
)
@settings(max_examples=120, deadline=None)
def test_counts_match_plain_python(sizes, rows, seed, picks, kind, limited):
    """Rows are filtered, then clipped at the limit of their own cell in any marginal."""
    table, codes, values = random_table(sizes, rows, seed, Measure("m", -3, 7))
    attribute_sets = [tuple(f"a{place}" for place in pick if place < len(sizes)) for pick in picks]
    name = f"a{limited}" if 0 <= limited < len(sizes) else None
    limits = np.random.default_rng(seed).integers(0, 8, 1 if name is None else sizes[limited])
    cut = np.minimum(values["m"], limits[0 if name is None else codes[name]])
    amounts = {"rows": None, "sums": values["m"], "limited sums": cut}[kind]
    arguments = {"rows": (), "sums": ("m",), "limited sums": ("m", (name, limits))}[kind]
    marginals = list(exact_marginals(table, attribute_sets, *arguments))

    assert [attributes for attributes, _ in marginals] == attribute_sets
    for attributes, counts in marginals:
        assert counts.dtype == np.int64
        assert counts.tolist() == count_in_python(codes, amounts, table.domain, attributes)


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("a0", [5, -1]),
        ("a0", [5]),
        ("a0", [5, 5, 5]),
        (None, [-1]),
        (None, [5, 5]),
        ("a0", [5.0, 5.0]),
    ],
)
def test_unfitting_limits_are_refused_without_rows(name, limits):
    table, _, _ = random_table([2], 3, 1, Measure("m", 0, 7))
    with pytest.raises(InputError, match="none below 0"):
        exact_marginals(table, [()], "m", (name, np.array(limits)))


def test_sums_are_exact_where_float64_is_not(monkeypatch):
    monkeypatch.setattr(_count, "_BLOCK", REAL_BLOCK)  # two million blocks would take seconds
    most = 2**30 - 1
    rows = 2**23 + 2**13 + 1
    table = Table(
        Domain(a=Coded(2), measures={"m": Measure("m", -most, most)}),
        {"a": np.zeros(rows, dtype=np.uint8)},
        {"m": np.full(rows, most)},
    )
    ((_, sums),) = exact_marginals(table, [("a",)], "m")

    assert float(most * rows) != most * rows > 2**53
    assert sums.tolist() == [most * rows, 0]


def test_rows_of_a_unit_count_for_it_only():
    measures = {"m": Measure("m", -9, 9), "units": UnitCount(["a"])}
    table = Table(
        Domain(a=Coded(2), measures=measures),
        {"a": [0, 0, 1]},
        {"m": [5, 7, 0], "units": [1, 0, 1]},
        unit_column="id",
        max_rows=2,
        counting=[1, 1, 0],
    )

    for measure, expected in ((None, [2, 0]), ("m", [12, 0]), ("units", [1, 1])):
        assert [sums.tolist() for _, sums in exact_marginals(table, [("a",), ()], measure)] == [
            expected,
            [sum(expected)],
        ]


def test_windows_and_groups_do_not_change_the_numbers(monkeypatch):
    table, _, _ = random_table((4, 5, 6, 7, 2, 3), 3000, 2)
    attribute_sets = [
        pick for ways in range(4) for pick in itertools.combinations(table.domain.names, ways)
    ]
    expected = marginal_lists(table, attribute_sets)
    monkeypatch.setattr(_count, "WINDOW_CELLS", 100)
    assert marginal_lists(table, attribute_sets) == expected

    monkeypatch.setattr(_attribute_groups, "CACHED_CELLS", 0)
    monkeypatch.setattr(_attribute_groups, "LEAST_CELLS", 0)
    assert marginal_lists(table, attribute_sets) == expected


def test_counts_are_the_callers_to_change():
    table, _, _ = random_table((2, 3), 10)
    attribute_sets = [("a0",), ("a0", "a1"), ("a1",), ("a0", "a1")]
    before = [counts.tolist() for _, counts in exact_marginals(table, attribute_sets)]
    for _, counts in exact_marginals(table, attribute_sets):
        np.add(counts, 1, out=counts)
    assert [counts.tolist() for _, counts in exact_marginals(table, attribute_sets)] == before


def test_long_stream_is_read_lazily():
    table, _, _ = random_table((10, 10, 10), 100)
    read_sets = []

    def stream():
        for number in range(10**6):
            read_sets.append(number)
            yield ("a0", "a1", "a2")

    next(exact_marginals(table, stream()))

    assert len(read_sets) <= _count.WINDOW_CELLS // 1000 + 1


@given(
    st.lists(st.lists(st.integers(0, 6), unique=True, max_size=4).map(tuple), max_size=12),
    st.integers(0, 10**7),
)
@settings(max_examples=60, deadline=None)
def test_groups_cover_each_set_once(attribute_sets, rows):
    sizes = [2, 3, 4, 50, 6, 1000, 8]
    groups = group_attribute_sets(attribute_sets, sizes, rows)
    assert sorted(member for group in groups for member in group.members) == list(
        range(len(attribute_sets))
    )
    for group in groups:
        assert all(set(attribute_sets[member]) <= set(group.attributes) for member in group.members)


def test_group_has_the_attributes_of_its_tables():
    lone = group_attribute_sets([(0, 1)], [2, 3], 100)
    # With attribute 2, the table of the first group would be too large. Attribute 3 would fit, but
    # completes no set.
    held_up = group_attribute_sets([(0, 1), (0, 2), (3, 4, 5)], [20, 20, 20, 2, 2, 2], 10**4)
    # Groups take more attributes while they have few cells.
    chain = group_attribute_sets([(place, place + 1) for place in range(5)], [10] * 6, 0)

    assert [(group.attributes, group.members) for group in lone] == [((0, 1), (0,))]
    assert [group.attributes for group in chain] == [(0, 1, 2), (2, 3, 4), (4, 5)]
    assert [(group.attributes, group.members) for group in held_up] == [
        ((0, 1), (0,)),
        ((0, 2), (1,)),
        ((3, 4, 5), (2,)),
    ]


@pytest.mark.parametrize("members", [(0, 1), (0,)])
def test_incomplete_group_proposal_is_refused(members, monkeypatch):
    table, _, _ = random_table((2, 3), 10)
    monkeypatch.setattr(
        _count,
        "group_attribute_sets",
        lambda *_given: [_attribute_groups.AttributeGroup(attributes=(0,), members=members)],
    )
    with pytest.raises((InternalError, KeyError)):
        list(exact_marginals(table, [("a0",), ("a1",)]))


def test_groups_share_passes_within_cache_size():
    triples = list(itertools.combinations(range(20), 3))
    assert len(group_attribute_sets(triples, [10] * 20, 10**6)) < len(triples) / 5
    assert [len(window) for window in _attribute_set_batches(triples, [10] * 20)] == [1140]
    attribute_sets = [(0,), (1,), (2,), (0, 1)]
    sizes = [2000, 3000, 4000]
    for group in group_attribute_sets(attribute_sets, sizes, 10**9):
        assert math.prod(sizes[place] for place in group.attributes) <= max(
            6_000_000, _attribute_groups.CACHED_CELLS
        )


@pytest.mark.parametrize("size", [256, 2**16])
def test_one_cell_attribute_beside_a_full_type_is_counted(size):
    table = Table(Domain(one=Coded(1), many=Coded(size)), {"one": [0, 0], "many": [size - 1, 0]})
    ((_, counts),) = exact_marginals(table, [("one", "many")])
    assert counts[0] == 1
    assert counts[-1] == 1
    assert counts.sum() == 2


def test_unread_tables_are_refused_and_others_counted():
    domain = Domain(
        a=Coded(2), b=Coded(3), measures={"m": Measure("m", 0, 5), "n": Measure("n", 0, 5)}
    )
    table = Table(domain, {"b": [0, 2, 2]}, {"n": [1, 1, 3]})

    assert (table.attributes, table.measures) == (("b",), ("n",))
    assert [cells.tolist() for _, cells in exact_marginals(table, [("b",), ()], "n")] == [
        [1, 0, 4],
        [5],
    ]
    for names, measures, message in (
        (["a"], [], "without the attribute 'a'"),
        (["b"], ["m"], "without the measure 'm'"),
    ):
        with pytest.raises(InputError, match=message):  # what the kernel asks before it counts
            table.require(names, measures)
        for sets in ([tuple(names)], iter([tuple(names)])):
            with pytest.raises(KeyError):
                list(exact_marginals(table, sets, *measures))
    with pytest.raises(KeyError):
        list(exact_marginals(table, [("b",)], "n", ("a", np.array([1, 2]))))
    assert [cells.tolist() for _, cells in exact_marginals(Table(domain, {}, rows=7), [()])] == [
        [7]
    ]
