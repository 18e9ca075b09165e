"""Rows of answers to SQL, in a form that leastnoise and DuckDB share."""

import datetime as dt
import math
import re

import numpy as np
import pandas as pd


def normalize(value):
    """Return a value in a form that both programs share."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"-?\d+(\.\d+)?", value) else value
    return str(value)[:10] if isinstance(value, (dt.date, dt.datetime)) else float(value)


def normalized_rows(frame):
    return [tuple(map(normalize, row)) for row in frame.itertuples(index=False, name=None)]


def is_close(value, expected, tolerance):
    """Return whether a value equals the value of DuckDB, whose null is the cell "other"."""
    if isinstance(value, float) and isinstance(expected, float):
        return abs(value - expected) <= tolerance * max(1.0, abs(expected))
    return value == expected or (value == "other" and expected is None)


def is_row_close(row, expected, tolerance):
    return all(is_close(a, b, tolerance) for a, b in zip(row, expected, strict=True))


def assert_rows_equal(rows, expected, *, is_ordered, tolerance=1e-6):
    """Check that every row of DuckDB is there, and that all others are empty groups."""
    further = list(rows)
    for expected_row in expected:
        matches = [row for row in further if is_row_close(row, expected_row, tolerance)]
        assert matches, (expected_row, further)
        further.remove(matches[0])
    # SQL has no row for a group without rows.
    for row in further:
        assert "Ulm" in row or "ULM" in row or not row[-1], row
    if is_ordered and not further:
        for row, expected_row in zip(rows, expected, strict=True):
            assert is_row_close(row, expected_row, tolerance)
