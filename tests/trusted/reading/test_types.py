"""Columns of every type: equal values in all types, and values that cannot be read."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from behind_the_wall import arrow_fields, open_source, to_column, values_of
from leastnoise._domain import Categories, Dates, Domain, Integers
from leastnoise._trusted.reading import ReadRequest, _postgres, read
from leastnoise._trusted.reading._column import UNSUPPORTED
from leastnoise._trusted.table import open_content
from trusted.reading.encoders import columns_of_chunks
from trusted.reading.pools import ARROW, DUCKDB, PANDAS, POLARS
from trusted.reading.sources import CONNECTION

TEXTS = [
    "F",
    "M",
    "1",
    "17",
    "true",
    "0.1",
    "1970-01-01",
    "1970-01-01 00:00:01",
    "31313131-3131-3131-3131-313131313131",
]
KINDS = [
    Categories(TEXTS, null="other", outside="other"),
    Integers(-1, 17, null="other", outside="clip"),
    Dates("1969-12-31", "1970-01-02", "hour", zone="Asia/Tokyo", null="other", outside="clip"),
]


def codes_of_kinds(array):
    """Return the codes of all rows under every kind."""
    return [
        open_content(read(pa.table({"a": array}), Domain(a=kind))).codes["a"].tolist()
        for kind in KINDS
    ]


def values_at(array, places):
    """Return the values at these places, or None for a null."""
    parts = [
        pa.nulls(1, array.type) if place is None else array.slice(place, 1) for place in places
    ]
    return pa.concat_arrays(parts)


PLAIN_TYPES = [
    name
    for name, array in ARROW.items()
    if not pa.types.is_dictionary(array.type) and not pa.types.is_run_end_encoded(array.type)
]


def repeated_twice(values):
    """Return a run-end encoded array with each value twice.

    It avoids from_arrays, which refuses values of a wrong type, as other libraries may hand over.
    """
    ends = pa.array(range(2, 2 * len(values) + 1, 2), pa.int32())
    return pa.Array.from_buffers(
        pa.run_end_encoded(ends.type, values.type), 2 * len(values), [None], children=[ends, values]
    )


@pytest.mark.parametrize("name", PLAIN_TYPES)
def test_dictionary_and_run_types_have_their_values(name):
    values = ARROW[name]
    places = [len(values) - 1, 0, None, *range(len(values)), 0]
    dictionary = pa.DictionaryArray.from_arrays(pa.array(places, pa.int16()), values)
    assert codes_of_kinds(dictionary) == codes_of_kinds(values_at(values, places))
    assert codes_of_kinds(
        pa.chunked_array([dictionary.slice(0, 2), dictionary.slice(2)])
    ) == codes_of_kinds(dictionary)

    runs = repeated_twice(values)
    twice = np.repeat(range(len(values)), 2).tolist()
    # A slice keeps all runs and its own offset.
    for start, count in ((0, len(runs)), (1, 3), (2, 1), (len(runs), 0)):
        assert codes_of_kinds(runs.slice(start, count)) == codes_of_kinds(
            values_at(values, twice[start : start + count]) if count else values[:0]
        )

    of_runs = pa.DictionaryArray.from_arrays(
        pa.array([len(runs) - 1, 0, None, 1], pa.int16()), runs
    )
    assert codes_of_kinds(of_runs) == codes_of_kinds(
        values_at(values, [len(values) - 1, 0, None, 0])
    )
    assert codes_of_kinds(of_runs.slice(1, 2)) == codes_of_kinds(values_at(values, [0, None]))


class ArrayWithFault(pd.arrays.IntegerArray):
    """Numbers of a foreign library, one of which fails."""

    def __getitem__(self, item):
        if isinstance(item, (int, np.integer)) and item == 1:
            raise RuntimeError("MARK")
        return super().__getitem__(item)

    def __iter__(self):
        return (self[place] for place in range(len(self)))

    def tolist(self):
        return list(self)

    def __arrow_array__(self, type=None):  # noqa: A002 - the name that Arrow gives it
        raise RuntimeError("MARK")


def test_unavailable_value_is_outside():
    broken = ArrayWithFault(np.array([0, 1, 2, 0]), np.array([False, False, False, True]))
    frame = pd.DataFrame({"a": pd.Series(broken), "b": [5, 6, 7, 8]})
    domain = Domain(a=Categories([0, 1, 2], null="drop", outside="other"), b=Integers(5, 8))
    codes_by_name = open_content(read(frame, domain)).codes
    assert codes_by_name["a"].tolist() == [0, 3, 2]
    assert codes_by_name["b"].tolist() == [0, 1, 2]


TYPES = dict.fromkeys(
    ("SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), ("1",)
)
TYPES |= {**DUCKDB, "DECIMAL(4,2)[]": ("[1.5]",)}


def duckdb_column(kind):
    listed = ", ".join(f"(CAST({literal} AS {kind}))" for literal in (*TYPES[kind], "NULL"))
    return CONNECTION.sql(f"SELECT * FROM (VALUES {listed}) AS t(a)")


BOOL8 = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, None], pa.int8()))
ENCODED = {
    f"dictionary of {name}": pa.DictionaryArray.from_arrays([0, None], ARROW[name])
    for name in PLAIN_TYPES
}
SOURCES = {
    f"arrow {name}": partial(pa.table, {"a": array})
    for name, array in {**ARROW, **ENCODED, "bool8": BOOL8}.items()
}
SOURCES |= {
    f"pandas {name}": partial(pd.DataFrame, {"a": series}) for name, series in PANDAS.items()
}
SOURCES |= {
    f"polars {name}": partial(pl.DataFrame, {"a": series}) for name, series in POLARS.items()
}
SOURCES |= {f"duckdb {kind}": partial(duckdb_column, kind) for kind in TYPES}
# Columns of nulls only, and of types that are read as objects.
OTHERS = {
    "arrow null",
    "arrow dictionary of null",
    "polars Null",
    "pandas period",
    "pandas interval",
}
NO_RULE = (
    "time",
    "duration",
    "interval",
    "list",
    "array",
    "struct",
    "map",
    "bit",
    "union",
    "integer[",
    "decimal(4,2)[",
)


@pytest.mark.parametrize("name", sorted({*SOURCES} - OTHERS))
def test_types_without_a_rule_are_reported(name):
    """They are refused as units or keys before a row is read."""
    opened = open_source(SOURCES[name]())
    types = [
        value
        for _, columns in columns_of_chunks(opened, ["a"])
        for column in columns
        for value in column.data
    ]
    kind = name.partition(" ")[2].lower().removeprefix("arrow ").removeprefix("dictionary of ")
    without = kind.startswith(NO_RULE) and not kind.startswith("times")
    assert all(value is UNSUPPORTED for value in types) == without
    is_refused = without or kind == "complex"
    assert [*opened.unreadable_columns] == (["a"] if is_refused else [])


@pytest.mark.parametrize("unicode", [True, False])
def test_postgresql_types_are_counted_as_documented(unicode):
    """Texts count in the server only if its encoding is Unicode, else conversions fail."""
    stored_as = dict.fromkeys(["smallint", "integer", "bigint"], "integer") | dict.fromkeys(
        ["double precision", "numeric"], "double"
    )
    stored_as |= {
        "boolean": "boolean",
        "date": "day",
        "timestamp without time zone": "stamp",
        "timestamp with time zone": "instant",
    }
    texts = dict.fromkeys(["text", "character varying", "character", "name", '"char"'], "text")
    types_read_locally = [
        "real",
        "uuid",
        "json",
        "bytea",
        "interval",
        "time without time zone",
        "ARRAY",
    ]
    values = values_of(
        _postgres._types_of(
            {kind: kind for kind in (*stored_as, *texts, *types_read_locally)}, is_unicode=unicode
        )
    )

    assert {kind: value.content for kind, value in values.items()} == stored_as | (
        texts if unicode else {}
    )


def test_eight_bit_booleans_follow_their_bytes():
    truth = Categories(["true", "false"], null="other", outside="other")
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, None, -7], pa.int8()))
    assert open_content(read(pa.table({"a": array}), Domain(a=truth))).codes["a"].tolist() == [
        1,
        0,
        2,
        0,
    ]


def test_rows_are_counted_where_no_column_is_read():
    table = read(
        pd.DataFrame({"a": ["F", "M", None]}),
        Domain(a=["F", "M"]),
        read_request=ReadRequest(attributes=[], measures=[]),
    )
    assert open_content(table).rows == 3
    assert dict(open_content(table).codes) == {}


@pytest.mark.parametrize("kind", [pa.string_view(), pa.json_(pa.string_view())], ids=str)
def test_dictionary_values_are_found_by_codes(kind):
    texts = pa.array(["F", None, "M"], pa.string_view())
    values = texts if kind == texts.type else pa.ExtensionArray.from_storage(kind, texts)
    column = to_column(pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1], pa.int8()), values))
    assert [None if at < 0 else column.data[at] for at in column.index.tolist()] == [
        b"M",
        b"F",
        None,
        None,
    ]
    (field,) = arrow_fields(pa.schema({"a": pa.dictionary(pa.int8(), kind)}))
    assert field.readable
