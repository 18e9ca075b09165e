"""What a family of strategies along one attribute is to planners: a function that fits one to what is asked, in whole numbers.

What is measured is the rounded strategy, and the plan's error is that of the rounded strategy; its privacy cost is computed from the
rounded integers. The inverse of what is measured is registered for its operator: see ``_inverse``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from leastnoise._families._gram import Gram, gram_of, merge_equal_cells, summed
from leastnoise._families._queries import MOST_DENSE, first_cells, on_runs
from leastnoise._linop import Coarse, Dense, Identity, Operator, dense
from leastnoise._measurements import Factor


@dataclass(frozen=True, slots=True)
class Fitted:
    """A strategy along one attribute."""

    factor: Factor
    bound: float = 0.0


# Fits a strategy along an attribute: its name, the Gram matrix of what is asked along it, 1 for Laplace or 2 for Gaussian noise, and the
# bits that real coefficients are rounded to.
Fit = Callable[[str, Gram, int, int], Fitted]


def fitted_to(fit: Fit, name: str, asked: Sequence[tuple[float, Operator]], norm: int, bits: int) -> Fitted:
    """What a family finds for weighted queries: on runs of cells that their ends tell apart, where they are fewer than the cells."""
    size = asked[0][1].size
    starts = np.unique(np.concatenate([first_cells(operator) for _, operator in asked]))
    grams = [(weight, gram_of(on_runs(operator, starts))) for weight, operator in asked]
    find = partial(fitted, fit) if any(gram.by_matrix for _, gram in grams) else fit
    found = find(name, summed(grams), norm, bits)
    if len(starts) == size:
        return found
    return Fitted(Factor((name,), Coarse(found.factor.operator, starts, size), found.factor.row_weights), found.bound)


def fitted(fit: Fit, name: str, gram: Gram, norm: int, bits: int) -> Fitted:
    """What a family finds, on cells that the queries tell apart: those that no query does are merged first."""
    # Under Laplace noise a family that measures every cell gains much where few queries are asked; the rest gain in time.
    if gram.one_form or gram.size > MOST_DENSE:
        return fit(name, gram, norm, bits)
    small, group = merge_equal_cells(gram)
    if small.size == gram.size:
        return fit(name, gram, norm, bits)
    found = fit(name, small, norm, bits)
    wide = Dense(dense(found.factor.operator)[:, group])
    return Fitted(Factor((name,), wide, found.factor.row_weights), found.bound)


def every_cell(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """Every cell by itself."""
    return Fitted(Factor((name,), Identity(gram.size)))
