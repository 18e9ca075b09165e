"""Synthetic counts: whole numbers of rows that stand for an estimate, made from it alone.

Systematic rounding: with C_j the running sums of the cells and one u uniform on [0, 1), cell j gets floor(C_j + u) - floor(C_{j-1} + u).
Every cell moves by less than 1, every sum over consecutive cells by less than 1, and each is right on average over u; a whole total stays.

Source: systematic sampling, Madow 1949.
"""

import numpy as np

from leastnoise._check import InputError, refuse, whole
from leastnoise._check.arrays import FloatArray, IntArray


def synthetic_counts(cells: FloatArray, seed: int) -> IntArray:
    """Whole counts with the cells of a non-negative estimate as their mean.

    Args:
        cells: at least 0, any shape, in rows; taken in row-major order.
        seed: of the rounding; any whole number from 0, published or not, because nothing here is private.

    Returns:
        int64 of the same shape: each cell and each sum over consecutive cells is rounded up or down. The total of the cells is kept where
        it is whole, else rounded up or down too.

    Raises:
        InputError: a cell below 0 or not finite, or a total above 2^53.

    Guarantees: post-processing of the estimate; it costs no budget.

    Source: Madow 1949.

    >>> synthetic_counts(np.array([0.5, 0.5, 2.0, 0.25, 0.75]), seed=1)
    array([1, 0, 2, 0, 1])
    """
    whole("seed", seed, 0)
    values = np.asarray(cells, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InputError(
            "Synthetic counts need cells that are finite and at least 0; got others. Take them from non-negative least squares (nnls)."
        )
    if not float(values.sum()) < 2**53:
        raise refuse("the total of the cells", f"{float(values.sum()):.3g}", "below 2^53")
    parts = np.floor(values)
    # Whole parts need no rounding; summing what is left keeps the running sums exact to 1e-16 of the number of cells.
    running = np.cumsum((values - parts).reshape(-1))
    nearest = np.rint(running)
    running = np.where(np.abs(running - nearest) < 1e-9 * (1 + nearest), nearest, running)
    steps = np.floor(running + np.random.default_rng(seed).random())
    return np.asarray(parts + np.diff(steps, prepend=0.0).reshape(values.shape), dtype=np.int64)
