"""Cells and the sums of runs of cells, all with the same noise."""

import math

import numpy as np

from leastnoise._families._gram import FittedFamily, Gram
from leastnoise._families._search import NotApplicable
from leastnoise._families._tree import tree_factor
from leastnoise._trusted.linop import Identity

# Fewer cells have no runs other than the cells and the total.
_FEWEST_CELLS = 4
# The error of all ranges takes two seconds for 10^5 cells, and more than a minute for 10^6.
_MOST_CELLS = 2**16


def two_levels(gram: Gram, norm: int, bits: int = 20) -> FittedFamily:
    """Measure every cell, and every run of about sqrt(n) of the n cells.

    On an attribute of fewer than four cells, only the cells are measured: a planner uses the family
    along every attribute of a workload.

    Args:
        gram: the Gram matrix of the workload along the attribute.
        norm: the norm of the noise, 1 for Laplace and 2 for Gaussian; the strategy is the same.
        bits: the bits of real coefficients; not used, because the coefficients are integers.

    Raises:
        NotApplicable: there are more than 2^16 cells.
    """
    if gram.size > _MOST_CELLS:
        raise NotApplicable(f"there are {gram.size:,} cells; at most {_MOST_CELLS:,} are possible")
    if gram.size < _FEWEST_CELLS:
        return FittedFamily(Identity(gram.size))
    width = math.isqrt(gram.size)
    runs = -(-gram.size // width)
    return tree_factor(gram.size, [1, width], [np.ones(gram.size), np.ones(runs)])
