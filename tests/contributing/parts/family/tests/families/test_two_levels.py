"""Cells and runs of cells."""

import numpy as np
import pytest

from leastnoise._families import NotApplicable, gram_of, two_levels
from leastnoise._trusted.linop import AllRanges, dense


def test_two_levels_measures_cells_and_runs():
    measured = dense(two_levels(gram_of(AllRanges(6)), 1).operator)
    runs = np.kron(np.eye(3, dtype=np.int64), [1, 1])
    assert sorted(measured.tolist()) == sorted([*runs.tolist(), *np.eye(6).tolist()])


def test_two_levels_needs_four_cells():
    with pytest.raises(NotApplicable, match="there are 3 cells; at least 4 are needed"):
        two_levels(gram_of(AllRanges(3)), 1)
