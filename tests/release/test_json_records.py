"""JSON of records: read back equal, and one message for any damage."""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from example_releases import example_release, write
from leastnoise._publication import read_manifest
from leastnoise._release import REQUIRED, flat, read_record, write_record
from leastnoise._trusted.check import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A part whose entries are entries of its record."""

    used: int
    std: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record with a field of every type."""

    name: str
    day: dt.date
    sizes: tuple[int, ...] | str
    shares: Mapping[str, float]
    counts: Counts | None = field(default=None, metadata=flat("guard_"))
    note: str = field(default="", metadata=REQUIRED)
    further: Mapping[str, Any] = field(metadata=flat())


RECORD = Record(
    name="age",
    day=dt.date(2026, 1, 31),
    sizes=(1, 2),
    shares={"a": 0.5},
    counts=Counts(used=3),
    further={"kind": [None]},
)
VALUE = {
    "name": "age",
    "day": "2026-01-31",
    "sizes": [1, 2],
    "shares": {"a": 0.5},
    "guard_used": 3,
    "note": "",
    "kind": [None],
}


def test_record_is_written_by_its_fields():
    assert write_record(RECORD) == VALUE


def test_flat_record_without_entries_is_none():
    value = {name: entry for name, entry in VALUE.items() if name != "guard_used"}
    assert read_record(Record, value).counts is None


def test_record_is_read_as_it_was_written():
    read = read_record(Record, json.loads(json.dumps(write_record(RECORD))))
    assert read.sizes == (1, 2)
    assert read.counts == Counts(used=3)
    assert read.further["kind"] == [None]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "part.name must be a text; got 5"),
        ({"day": "31 Jan"}, "part.day must be a day such as '2026-01-31'"),
        ({"sizes": [1, True]}, r"part.sizes\[1\] must be a whole number"),
        ({"sizes": None}, "part.sizes must be a list"),
        ({"shares": {"a": "x"}}, "part.shares.a must be a number"),
        ({"shares": []}, "part.shares must be an object with names and values"),
        ({"guard_used": "3"}, "part.guard_used must be a whole number"),
    ],
)
def test_value_of_another_type_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        read_record(Record, {**VALUE, **change}, "part")


def test_missing_value_is_refused():
    value = {name: entry for name, entry in VALUE.items() if name != "guard_used"}
    with pytest.raises(InputError, match=r"^guard_used is missing\. Use an intact copy\.$"):
        read_record(Record, {**value, "guard_std": 1.0})
    assert VALUE["note"] == ""
    with pytest.raises(InputError, match=r"^note is missing"):
        read_record(Record, {name: entry for name, entry in VALUE.items() if name != "note"})


def test_manifest_is_written_as_it_is_read(tmp_path):
    target = write(example_release(), tmp_path / "out", "csv")
    value = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
    assert write_record(read_manifest(target)) == value
