"""The curve through the cells of a rectangle."""

import numpy as np
import pytest
from experiments.selections.hilbert import hilbert_order

from leastnoise._check import InputError


@pytest.mark.parametrize("height", range(1, 26))
def test_the_curve_visits_each_cell_once_in_steps_of_one(height):
    for width in range(1, 41):
        order = hilbert_order(height, width)
        assert sorted(order.tolist()) == list(range(height * width))
        row, column = np.divmod(order, width)
        assert (np.abs(np.diff(row)) + np.abs(np.diff(column)) == 1).all()
        assert order[0] == 0


def test_long_sides_too():
    for shape in ((1000, 3), (4, 1001), (255, 256), (257, 129)):
        order = hilbert_order(*shape)
        row, column = np.divmod(order, shape[1])
        assert (np.abs(np.diff(row)) + np.abs(np.diff(column)) == 1).all()
        assert len(np.unique(order)) == shape[0] * shape[1]


@pytest.mark.parametrize("side", [2, 4, 8, 32])
def test_on_powers_of_two_runs_of_the_curve_are_squares(side):
    order = hilbert_order(side, side)
    for block in 2 ** np.arange(1, side.bit_length()):
        row, column = np.divmod(order.reshape(-1, block * block), side)
        assert (np.ptp(row, axis=1) == block - 1).all()
        assert (np.ptp(column, axis=1) == block - 1).all()


def test_the_curve_stays_near():
    """Half of the cells are within 12 rows and columns of the cell 64 steps further on: a line scan is 64 columns away."""
    row, column = np.divmod(hilbert_order(100, 90), 90)
    away = np.maximum(np.abs(row[64:] - row[:-64]), np.abs(column[64:] - column[:-64]))
    assert np.median(away) <= 12


@pytest.mark.parametrize(
    ("sides", "message"),
    [((0, 3), "height must be a whole number from 1"), ((2**13, 2**12), "width must be a whole number from 1 to 2048")],
)
def test_sides_that_are_refused(sides, message):
    with pytest.raises(InputError, match=message):
        hilbert_order(*sides)
