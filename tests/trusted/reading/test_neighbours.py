"""The kit of neighbouring pairs, and whether it notices earlier faults."""

import os
import re

import numpy as np
import pytest

from behind_the_wall import Column
from leastnoise._trusted.reading import _column, _files, _unit_keys, _units
from trusted.reading.neighbours import SOURCES, Pair

# How many pairs of each source, and from which seed on: `make neighbours` has thousands, of others.
PAIRS, FIRST = (
    int(os.environ.get(name, default))
    for name, default in (("LEASTNOISE_PAIRS", 18), ("LEASTNOISE_FIRST", 0))
)


@pytest.mark.parametrize("kind", SOURCES)
def test_added_unit_changes_its_rows_only(kind, tmp_path):
    pairs_with_rows = np.count_nonzero(
        [Pair(kind, FIRST + place, tmp_path).check() for place in range(PAIRS)]
    )
    print(f"{kind}: {PAIRS} pairs, in {pairs_with_rows} of them the new unit is in the table")
    assert pairs_with_rows >= 2


def test_kit_draws_every_registered_kind_of_file():
    kinds = {kind.name.lower() for kind in _files.KINDS}
    assert kinds <= {*SOURCES}, "Add the kind to POOLS of tests/trusted/reading/sources.py."


def by_equality(data):
    """Return the values that differ by Python's equality, and the place of each value.

    An earlier version cached values in this way.
    """
    if isinstance(data, np.ndarray):
        return list(data), None
    try:
        places = {value: place for place, value in enumerate(dict.fromkeys(data))}
        return list(places), np.array([places[value] for value in data], dtype=np.int64)
    except (TypeError, RuntimeError, ArithmeticError):
        return data, None


def plant_equality(patch):
    patch.setattr(_column, "distinct", by_equality)


def plant_carriage_return(patch):
    """End lines at a CR."""
    whole_lines = _files.whole_lines
    patch.setattr(
        _files,
        "whole_lines",
        lambda blocks: (
            block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for block in whole_lines(blocks)
        ),
    )


def plant_next_line(patch):
    """End a line at CR CR LF together with a part of the next line."""
    whole_lines = _files.whole_lines
    patch.setattr(
        _files,
        "whole_lines",
        lambda blocks: (re.sub(rb"\r\r\n(.)", rb"\r\n,\1", block) for block in whole_lines(blocks)),
    )


def plant_failure(patch):
    """Refuse short bytes that are not UTF-8."""
    column = _column.Column

    def strict(data, *arguments, **options):
        for value in () if isinstance(data, np.ndarray) else data:
            if isinstance(value, bytes) and len(value) < 4:
                value.decode()
        return column(data, *arguments, **options)

    patch.setattr(_column, "Column", strict)
    patch.setattr(_files, "Column", strict)


def plant_one_row_more(patch):
    keep = _units.Units.keep
    patch.setattr(_units.Units, "keep", lambda self, most, entropy: keep(self, most + 1, entropy))


def plant_shared_choice(patch):
    """Give all rows one unit, whose bound they share."""
    key_columns = _unit_keys.key_columns

    def shared(reading):
        def keys_of(column):
            keys = key_columns(reading)(Column(["the same"])).keys
            rows = len(column.data) if column.index is None else len(column.index)
            return _unit_keys.KeyColumn(keys, np.zeros(rows, dtype=np.int64))

        return keys_of

    patch.setattr(_unit_keys, "key_columns", shared)


@pytest.mark.parametrize(
    ("plant", "kind", "message", "seed"),
    [
        (plant_equality, "pandas", "rows", 196),
        (plant_carriage_return, "csv", "rows more", 112),
        (plant_next_line, "csv.gz", "rows", 100),
        (plant_failure, "parquet", "reading failed", 112),
        (plant_failure, "csv", "reading failed", 100),
        (plant_one_row_more, "polars", "rows more", 102),
        (plant_shared_choice, "duckdb", "rows of others changed", 102),
    ],
)
def test_faults_are_seen(plant, kind, message, seed, tmp_path, monkeypatch):
    """Each seed is one at which the fault shows at once."""
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        [Pair(kind, seed + place, tmp_path).check() for place in range(400)]
