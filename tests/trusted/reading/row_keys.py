"""The random keys of rows, by which the rows of a unit are chosen, fixed for tests."""

from unittest import mock

import numpy as np


def random_bytes_of(keys):
    """Return a source of random bytes that yields these keys, eight bytes each.

    After the last key, the first one follows: several counts of one table use the same keys.
    """
    remaining = []

    def take(count):
        if not remaining:
            remaining.extend(keys)
        next_keys = remaining[: count // 8]
        assert len(next_keys) == count // 8, "a draw must not go beyond the last key"
        del remaining[: count // 8]
        return np.array(next_keys, dtype="<u8").tobytes()

    return take


def fixed_row_keys(keys):
    """Return a context in which the rows that are read get these keys, in their order."""
    return mock.patch("leastnoise._trusted.reading._read.urandom", random_bytes_of(keys))
