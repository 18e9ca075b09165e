"""Strategies along an attribute that see its cells only across their total: contrasts, and their generalisation to any tilt.

A factor F of n - 1 independent rows has one vector that it does not see, F m = 0. Scaled to 1^T m = 1 it is the *tilt*: with nothing but
the total known, the cells are estimated as the total times m. V = F^T F and 1 1^T then are diagonal in one basis, with (1) to (4) of
docs/mathematics.md for any kappa. Equal noise on contrasts has the tilt 1/n.

Source: the bases of ResidualPlanner+ (arXiv 2305.08175v4), here with any tilt; docs/mathematics.md, section 1.
"""

from functools import lru_cache, singledispatch

import numpy as np

from leastnoise._accuracy._basis import Basis, DenseBasis, Undetermined
from leastnoise._linop import Contrasts, Dense, Operator, dense
from leastnoise._measurements import Factor


def leaves_out_total(factor: Factor) -> bool:
    """Whether a factor is of the kind that leaves out the total along its attribute: contrasts, or one row less than there are cells."""
    return _leaves_out_total(factor.operator)


@singledispatch
def _leaves_out_total(operator: Operator) -> bool:  # noqa: ARG001 - classes that answer look at it
    return False


@_leaves_out_total.register
def _(operator: Contrasts) -> bool:  # noqa: ARG001
    return True


@_leaves_out_total.register
def _(operator: Dense) -> bool:
    return operator.rows == operator.size - 1


def contrast_strength(factor: Factor) -> float | None:
    """The c for which a factor that is measured across its total has the Gram matrix c (I - J / n), else None.

    Such a factor knows of the differences between cells what c cells of that noise would: it goes together with whole cells measured
    elsewhere. Contrasts with noise in proportion to their norms have 1, the difference of two cells has 2, the non-constant signs of m
    bits on their 2^m cells have 2^m.
    """
    return _strength(factor.operator, factor)


@singledispatch
def _strength(operator: Operator, factor: Factor) -> float | None:  # noqa: ARG001 - classes that answer look at them
    return None


@_strength.register
def _(operator: Contrasts, factor: Factor) -> float:  # noqa: ARG001
    return 1.0


@_strength.register
def _(operator: Dense, factor: Factor) -> float | None:
    if not (leaves_out_total(factor) and factor.even) or operator.matrix.sum(axis=1).any():
        return None
    gram = operator.matrix.astype(float).T @ operator.matrix
    off = -gram[0, -1]
    return float(off * operator.size) if np.array_equal(gram, off * (operator.size * np.eye(operator.size) - 1)) else None


@lru_cache(maxsize=8)
def basis_without_total(factor: Factor) -> Basis:
    """The basis of such a factor; of its kappa everything else is independent."""
    rows = dense(factor.operator).astype(float) * factor.scaling[:, None]
    unseen = np.linalg.svd(rows)[2][-1]
    total = float(unseen.sum())
    # Coordinates of the sum-zero vectors: the first n - 1 cells, the last one balances them.
    square = rows[:, :-1] - rows[:, -1:]
    if abs(total) > 1e-7 and np.linalg.cond(square) < 1e7:
        inverse = np.linalg.inv(square)
        lifted = np.vstack([inverse, -inverse.sum(axis=0)])
        mean = unseen / total
        residual = lifted @ lifted.T
        kappa = float(np.trace(residual)) / float(mean @ mean)
        return DenseBasis(residual + kappa * np.outer(mean, mean))
    raise Undetermined(f"The queries measured on {' x '.join(factor.attributes)} do not determine its cells. Add the identity to them.")
