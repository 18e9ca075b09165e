"""The handle on private rows."""

import gc
import pickle
import weakref

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers, Measure, UnitCount, Unknown
from leastnoise._trusted.check import InternalError
from leastnoise._trusted.table import Columns, Table, open_content
from trusted.table.reach import reachable


def test_repr_of_counts_states_rows_read():
    domain = Domain(sex=["F", "M"], age=Integers(0, 1), measures={"pay": Measure("pay", 0, 9)})
    counts = {(None, ("sex",)): np.array([1, 2]), ("pay", ("sex",)): np.array([3, 4])}
    table = Table.counted(domain, ["sex"], ["pay"], counts, unit_column="id", max_rows=3)
    assert (table.attributes, table.measures, table.unit_column, table.max_rows) == (
        ("sex",),
        ("pay",),
        "id",
        3,
    )


def test_counts_of_rows_are_non_negative_sums_are_not():
    domain = Domain(sex=["F", "M"], measures={"pay": Measure("pay", -9, 9)})
    sums = {("pay", ("sex",)): np.array([-3, 4])}
    assert Table.counted(domain, ["sex"], ["pay"], sums).measures == ("pay",)
    for counts in ([-1, 2], [0, -(2**40)]):
        rows = {(None, ("sex",)): np.array(counts)}
        with pytest.raises(InternalError, match=r"counts of \('sex',\) must not be negative"):
            Table.counted(domain, ["sex"], ["pay"], {**sums, **rows})


def test_key_counts_name_their_unit():
    table = Table.keyed(
        Domain(agent=Unknown(9)), "agent", ["curl"], np.array([3]), unit_column="id", max_rows=12
    )
    assert table.attributes == ("agent",)
    assert table.measures == ()
    assert table.unit_column == "id"
    assert table.max_rows == 12
    assert table.max_per_cell is None


def test_repr_is_the_same_for_any_rows():
    domain = Domain(age=Integers(0, 10))
    empty = Table(domain, {"age": []})
    large = Table(domain, {"age": [7] * 1234})
    assert (
        repr(empty)
        == repr(large)
        == str(large)
        == "<Table of private rows over Domain(age=Integers(0, 10))>"
    )


def test_table_is_closed():
    table = Table(Domain(a0=Coded(2)), {"a0": [0, 1, 1, 0, 1]})
    with pytest.raises(AttributeError, match="a Table is immutable"):
        table.x = 1
    with pytest.raises(AttributeError, match="a Table is immutable"):
        del table.domain
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(table)
    with pytest.raises(TypeError):
        len(table)
    with pytest.raises(ValueError, match="read-only"):
        open_content(table).codes["a0"][0] = 1


def test_nothing_leads_from_the_handle_to_the_rows():
    """Follow all objects that the garbage collector knows, except code."""
    table = Table(
        Domain(a0=Coded(2), measures={"m": Measure("m", 0, 9)}), {"a0": [0, 1]}, {"m": [3, 4]}
    )
    assert [
        reached for reached in reachable(table) if isinstance(reached, (np.ndarray, Columns))
    ] == []
    assert any(isinstance(reached, np.ndarray) for reached in reachable(open_content(table)))


def test_rows_go_with_the_handle():
    table = Table(Domain(a0=Coded(2)), {"a0": [0, 1]})
    weak_content = weakref.ref(open_content(table))
    del table
    gc.collect()
    assert weak_content() is None


def test_codes_are_small_copies():
    codes = np.zeros(4, dtype=np.int64)
    table = Table(Domain(a=Coded(256), b=Coded(257)), {"a": codes, "b": codes})
    codes[0] = 9
    assert open_content(table).codes["a"].dtype == np.uint8
    assert open_content(table).codes["b"].dtype == np.uint16
    assert open_content(table).codes["a"][0] == 0


MARK = 77777


@pytest.mark.parametrize(
    ("codes", "values", "message"),
    [
        ({}, {}, "all columns of a table must have the same number of rows."),
        (
            {"a": [0], "b": [0]},
            {},
            (
                "the columns of a table must be codes of attributes and values of measures of its "
                "domain."
            ),
        ),
        (
            {},
            {"n": [0]},
            (
                "the columns of a table must be codes of attributes and values of measures of its "
                "domain."
            ),
        ),
        ({"a": [MARK]}, {"m": [0]}, "the codes of 'a' must be cells of the attribute."),
        ({"a": [-MARK]}, {"m": [0]}, "the codes of 'a' must be cells of the attribute."),
        ({"a": [0.5]}, {"m": [0]}, "the codes of 'a' must be a flat array of integers."),
        ({"a": [[0]]}, {"m": [0]}, "the codes of 'a' must be a flat array of integers."),
        ({"a": [0]}, {"m": [MARK]}, "the values of 'm' must lie within the bounds of the measure."),
        ({"a": [0]}, {"m": [0.5]}, "the values of 'm' must be a flat array of integers."),
        ({"a": [0]}, {"m": [0, 0]}, "all columns of a table must have the same number of rows."),
    ],
)
def test_faulty_columns(codes, values, message):
    with pytest.raises(InternalError) as error:
        Table(Domain(a=Coded(3), measures={"m": Measure("m", 0, 5)}), codes, values)
    assert message in str(error.value)
    assert str(MARK) not in str(error.value)


COUNTED = Domain(a=Coded(2), measures={"m": Measure("m", 0, 9), "units": UnitCount(["a"])})


@pytest.mark.parametrize(
    ("counting", "amounts", "message"),
    [
        ([1, 2], [0, 0], "counting must be 1 or 0"),
        ([1, -1], [0, 0], "counting must be 1 or 0"),
        ([1], [0, 0], "counting must be 1 or 0"),
        ([1.0, 0.0], [0, 0], "must be a flat array of integers"),
        ([1, 0], [0, 3], "a row that only represents its unit must add 0 to 'm'"),
    ],
)
def test_table_rejects_rows_that_count_in_part(counting, amounts, message):
    with pytest.raises(InternalError, match=message):
        Table(
            COUNTED,
            {"a": [0, 1]},
            {"m": amounts, "units": [0, 1]},
            unit_column="id",
            counting=counting,
        )
