"""The exact noise scale of every measured row (M5 of PROOFS-cost.md).

Trusted: the kernel draws with these numbers and ``_sensitivity`` bounds them.

A row's scale is the block's scale divided by the product of its factors' row weights and, along contrasts, multiplied by the norm of the
row: (product of squared norms)^(1/2), rounded up to a fraction. Rounding up only adds noise, so the cost computed from the squared norms
themselves, which are whole numbers, is never below the true one.
"""

import numpy as np

from leastnoise._check.arrays import IntArray
from leastnoise._measurements._measurements import Block


def row_scales(block: Block, grid: int) -> tuple[IntArray, IntArray]:
    """Numerators and denominators of the noise scales of a block's rows, in multiples of 1 / grid.

    Args:
        block: a block that a plan has accepted, so that all terms are below 2^56.
        grid: the plan's grid.

    Returns:
        Two int64 arrays of shape (block.rows,).

    Guarantees: exact where the block has no contrasts; along contrasts at least the exact value, and above it by less than 2^-24 of it.

    >>> top, bottom = row_scales(Block((Factor(("a",), Contrasts(3)),), Fraction(1)), 1)
    >>> (top / bottom).round(6).tolist()
    [1.414214, 2.44949]
    """
    fine = block.scale * grid
    weights, squares = block.row_weights(), block.row_squares()
    # Their bits are exact: squares are below 2^52.
    shifts = np.where(squares == 1, 0, (54 - np.frexp(squares.astype(np.float64))[1].astype(np.int64)) // 2)
    return fine.numerator * _root_up(squares << (2 * shifts)), (fine.denominator << shifts) * weights


def _root_up(values: IntArray) -> IntArray:
    """The least whole number whose square is not below the value, for values below 2^54."""
    # The float is within one of the root; what is decided, is decided in integers.
    root = np.sqrt(values.astype(np.float64)).astype(np.int64)
    root = root - (root * root > values)
    root = root + ((root + 1) * (root + 1) <= values)
    return np.asarray(root + (root * root < values), dtype=np.int64)
