"""Cells and runs of cells."""

import numpy as np
import pytest

from leastnoise._families import NotApplicable, gram_of, two_levels
from leastnoise._trusted.linop import AllRanges, Identity, dense


def test_two_levels_measures_cells_and_runs():
    measured = dense(two_levels(gram_of(AllRanges(6)), 1).operator)
    runs = np.kron(np.eye(3, dtype=np.int64), [1, 1])
    assert sorted(measured.tolist()) == sorted([*runs.tolist(), *np.eye(6).tolist()])


def test_two_levels_of_three_cells_are_the_cells():
    assert (dense(two_levels(gram_of(AllRanges(3)), 1).operator) == np.eye(3)).all()


def test_two_levels_refuses_long_attributes():
    with pytest.raises(NotApplicable, match="there are 65,537 cells; at most 65,536"):
        two_levels(gram_of(Identity(65_537)), 1)
