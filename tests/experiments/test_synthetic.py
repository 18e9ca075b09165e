"""Synthetic counts: whole, right on average, with the total of the estimate."""

import numpy as np
import pytest
from experiments.synthetic import synthetic_counts

from leastnoise._check import InputError


def test_every_run_of_cells_is_rounded_up_or_down_and_a_whole_total_stays() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        cells = rng.exponential(2.0, (7, 11)) * (rng.random((7, 11)) < 0.5)
        cells *= round(float(cells.sum())) / cells.sum()
        counts = synthetic_counts(cells, seed)
        assert counts.dtype == np.int64
        assert counts.sum() == round(float(cells.sum()))
        moved = np.abs(np.subtract.outer(*(np.concatenate([[0], np.cumsum(counts.reshape(-1) - cells.reshape(-1))]),) * 2))
        assert moved.max() < 1 + 1e-9


def test_counts_are_right_on_average() -> None:
    cells = np.array([0.1, 0.25, 3.5, 0.0, 0.65, 1.0])
    drawn = np.array([synthetic_counts(cells, seed) for seed in range(4000)])
    # A cell is one of two neighbouring numbers, so its mean has a standard deviation of at most 0.5 / sqrt(4000) = 0.008; 5 of them.
    np.testing.assert_allclose(drawn.mean(axis=0), cells, atol=0.04)
    assert set(drawn.sum(axis=1)) == {5, 6}
    assert (drawn[:, 3] == 0).all()
    assert (drawn[:, 5] == 1).all()


def test_large_counts_stay_exact() -> None:
    cells = np.full(2**16, 2.0**30) + 0.5
    counts = synthetic_counts(cells, 3)
    assert counts.sum() == 2**46 + 2**15


@pytest.mark.parametrize("cells", [[-0.5, 1.0], [np.nan], [np.inf]])
def test_cells_that_cannot_be_counts_are_refused(cells: list[float]) -> None:
    with pytest.raises(InputError, match="finite and at least 0"):
        synthetic_counts(np.array(cells), 0)


def test_a_total_beyond_exact_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="the total of the cells"):
        synthetic_counts(np.array([2.0**53, 2.0**53]), 0)
