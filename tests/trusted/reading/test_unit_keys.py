"""Units numbered by column, against numbering by value, and the choice of their rows."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from behind_the_wall import Column, TextColumn, UnitNumbers, Units, key_reader, to_column
from leastnoise import Reading
from trusted.reading.row_keys import random_bytes_of

TEXTS = [
    *("17", "17.0", "17.00", "017", "-0.0", "0", "1.50", ".0", "10", "a.b0", " 17", "17\t", "P7"),
    *(
        "p7",
        " p7 ",
        "É",
        "é",
        "\u00a0é",
        "ß",
        "İ",
        "NA",
        "na",
        "",
        "-9",
        "x" * 20,
        "true",
        "9" * 30,
    ),
    "2024-05-01",
]
RAW = [b"\xff", b"\xed\xa0\x80", b"\xc3", b"17\xff", b"\xff17", b"17", b"\x00", b"p7", b""]
OBJECTS = [
    *("17", "\ud800", b"\xed\xa0\x80", b"17", 17, 17.0, 17.5, np.float32(0.7), True, None, "é", []),
    *(Decimal("17.0"), Decimal("NaN"), float("nan"), dt.date(2024, 5, 1), 10**50, np.int8(-9)),
    *(UUID(int=1), str(UUID(int=1)), "\ud800\udc00", "\U00010000", ""),
]
READINGS = [
    Reading(),
    Reading(nulls=["NA", "-9", "17.0"]),
    Reading(trim=True, nulls=[" p7"]),
    Reading(ignore_case=True, nulls=["NA"]),
    Reading(trim=True, ignore_case=True),
]


def columns(generator):
    """Yield columns of all forms, each with its values one by one."""
    for pool, kind in ((TEXTS, pa.string()), (RAW, pa.binary())):
        chosen = [pool[place] for place in generator.integers(0, len(pool), 60)]
        array = pa.array([None, *chosen], kind)
        yield to_column(array), array.to_pylist()
        yield to_column(array[3:].dictionary_encode()), array[3:].to_pylist()
    for nothing in ([], [None], [None, ""]):
        yield to_column(pa.array(nothing, pa.string())), nothing
    chosen = [OBJECTS[place] for place in generator.integers(0, len(OBJECTS), 60)]
    yield Column(chosen), chosen
    for kind in (np.int8, np.uint64, np.int64, np.float32, np.float64):
        numbers = generator.integers(0, 20, 40).astype(kind)
        yield Column(numbers), list(numbers)
        missing = generator.random(40) < 0.3
        values = [
            None if is_missing else number
            for number, is_missing in zip(numbers, missing, strict=True)
        ]
        yield Column(numbers, missing), values
    large = [2.0**62, -(2.0**63), 2.0**63, 1e39, 1e41, 17.0, -9.0, -0.0]
    for doubles in ([17.0, float("nan"), -0.0, 17.0, -9.0], [17.5, 17.0, float("inf")], large):
        yield Column(np.array(doubles)), doubles
        index = generator.integers(-1, len(doubles), 20)
        values = [None if place < 0 else doubles[place] for place in index]
        yield Column(np.array(doubles), None, index), values
    yield Column(np.array([-9, 2**63 - 1, -(2**63)])), [-9, 2**63 - 1, -(2**63)]
    yield Column(np.array([2**64 - 1, 17], dtype=np.uint64)), [2**64 - 1, 17]
    yield Column(np.array([17, -9, 2**40], dtype=">i8")), [17, -9, 2**40]
    yield Column(np.array(["2024-05-01", "NaT"], dtype="M8[D]")), [dt.date(2024, 5, 1), None]


@pytest.mark.parametrize("reading", READINGS, ids=str)
@pytest.mark.parametrize("waiting", [0, 2**25])
def test_columns_have_the_units_of_their_values(reading, waiting, monkeypatch):
    """The form of a value and the number of renumberings do not matter."""
    monkeypatch.setattr("leastnoise._trusted.reading._unit_keys._WAITING_BYTES", waiting)
    key = key_reader(reading)
    numbers = UnitNumbers(reading)
    entries = []
    keys = []
    for column, values in columns(np.random.default_rng(3)):
        entries.append(numbers.entries(column))
        keys += map(key, values)
        if numbers.is_full:
            numbers.number_keys()
    numbers.number_keys()
    unit_numbers = np.concatenate([numbers.numbers_of(entry) for entry in entries])
    listed = [*numbers.keys(), None]

    assert [listed[number] for number in unit_numbers] == keys
    assert len(set(listed)) == len(listed) == len(numbers) + 1


@pytest.mark.parametrize("mixed", ["different", "equal"])
@pytest.mark.parametrize("waiting", [0, 2**25])
def test_keys_of_all_lengths_stay_apart(waiting, mixed, monkeypatch):
    """Keys differ in one byte or in final zeros; also with equal hashes."""
    monkeypatch.setattr("leastnoise._trusted.reading._unit_keys._WAITING_BYTES", waiting)
    if mixed == "equal":
        monkeypatch.setattr(
            "leastnoise._trusted.reading._key_sets.hash_word_pairs",
            lambda pairs: np.zeros_like(pairs.first),
        )
    generator = np.random.default_rng(5)
    stem = b"P7\x00\xff345678901234567890"
    pool = [stem[:length] + b"\0" * zeros for length in range(1, 22) for zeros in (0, 1)]
    pool += [stem[:place] + b"x" + stem[place + 1 : 16] for place in range(16)]
    numbers = UnitNumbers(Reading())
    entries = []
    values = []
    for rows in (5, 60, 1, 60, 200):
        chosen = [pool[place] for place in generator.integers(0, len(pool), rows)]
        column = pa.array(chosen, pa.large_binary())
        entries += [numbers.entries(TextColumn(column)), numbers.entries(to_column(column))]
        values += chosen + chosen
        if numbers.is_full:
            numbers.number_keys()
    numbers.number_keys()
    unit_numbers = np.concatenate([numbers.numbers_of(entry) for entry in entries])
    listed = numbers.keys()
    key = key_reader(Reading())

    assert [listed[number] for number in unit_numbers] == [key(value) for value in values]
    assert len(set(listed)) == len(listed) == len(numbers)


def reference_kept_rows(keys, units, most):
    is_kept = [False] * len(keys)
    used = {}
    for row in np.argsort(keys, kind="stable"):
        used[units[row]] = used.get(units[row], 0) + 1
        is_kept[row] = units[row] is not None and used[units[row]] <= most
    return is_kept


@pytest.mark.parametrize("distinct_keys", [2, 9, 2**64 - 1])
@pytest.mark.parametrize("number_of_units", [1, 2, 40])
def test_least_keys_are_kept_also_among_equal_ones(distinct_keys, number_of_units):
    """Keys differ only in the last bits, only in the first bits, or not at all."""
    generator = np.random.default_rng(number_of_units)
    for most in (1, 2, 5):
        for shift in (0, 50):
            keys = generator.integers(0, distinct_keys, 300, dtype=np.uint64, endpoint=True)
            keys <<= np.uint64(shift if distinct_keys < 100 else 0)
            ids = [None, *range(number_of_units)]
            unit = [ids[place] for place in generator.integers(0, len(ids), 300)]
            units = Units()
            for rows in (slice(0, 100), slice(100, 300)):
                units.add(units.number(Column(unit[rows])))
            is_kept = units.keep(most, random_bytes_of(keys.tolist()))
            assert is_kept.tolist() == reference_kept_rows(keys, unit, most)
