"""Cells and the sums of runs of cells, all with the same noise."""

import math

import numpy as np

from leastnoise._families._gram import FittedFamily, Gram
from leastnoise._families._search import NotApplicable
from leastnoise._families._tree import tree_factor

# fewer cells have no runs that differ from the cells and from the total
_FEWEST_CELLS = 4


def two_levels(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Measure every cell, and every run of about sqrt(n) of the n cells.

    Args:
        gram: the Gram matrix of the workload along the attribute.
        norm: the norm of the noise, 1 for Laplace and 2 for Gaussian; the strategy is the same.
        bits: the bits of real coefficients; not used, because the coefficients are integers.

    Raises:
        NotApplicable: there are fewer than four cells.
    """
    if gram.size < _FEWEST_CELLS:
        raise NotApplicable(f"there are {gram.size} cells; at least {_FEWEST_CELLS} are needed")
    width = math.isqrt(gram.size)
    runs = -(-gram.size // width)
    return tree_factor(gram.size, [1, width], [np.ones(gram.size), np.ones(runs)])
