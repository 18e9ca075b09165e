"""Strategies along time whose rows can be measured when their period is over: lower triangular twins.

A strategy of Gram matrix X = A'A has a lower triangular twin C with C'C = X, by Cholesky's method from the last cell on. Its columns have
the norms of A's, so it costs the same under Gaussian noise, and its errors are the same. C is square, so what is estimated of the first t
cells follows from the first t rows and never changes with later ones.

Source: the decomposition is textbook; that nothing is lost by publishing as one goes is in Denisov et al. (arXiv 2202.08312).
"""

from functools import singledispatch

import numpy as np

from leastnoise._check import InternalError
from leastnoise._check.arrays import FloatArray
from leastnoise._families._dense import optimal_factor, to_dyadic
from leastnoise._families._gram import Gram
from leastnoise._families._toeplitz import toeplitz_root
from leastnoise._linop import Dense, Identity, Operator, Toeplitz

MOST_TRIANGULAR = 512
_LEAST = 16  # of a rounded entry on the diagonal
_BESIDE = 1e-3  # of the squared norm, on every cell, where the queries leave some of them undetermined


def causal_strategies(gram: Gram, bits: int) -> list[Operator]:
    """Lower triangular strategies in whole numbers: the twin of the optimum; for very many periods those of known form."""
    if gram.size > MOST_TRIANGULAR:
        return [Identity(gram.size), toeplitz_root(gram.size, bits)]
    factor = optimal_factor(gram)[0]
    optimum = factor.T @ factor
    for beside in (0.0, _BESIDE):
        rounded = to_dyadic(lower_twin((1 - beside) * optimum + beside * np.eye(gram.size)), min(bits, 20))
        if rounded.shape == optimum.shape and rounded.diagonal().min() >= _LEAST:
            return [Dense(rounded)]
    return [Identity(gram.size)]


def lower_twin(gram: FloatArray) -> FloatArray:
    """C, lower triangular, with C'C the given matrix; zeros where that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(gram[::-1, ::-1]).T[::-1, ::-1])
    except np.linalg.LinAlgError:
        return np.eye(len(gram)) * 2.0**-20


@singledispatch
def first_rows(operator: Operator, cells: int) -> Operator:
    """The part of a lower triangular strategy that the first cells are estimated from."""
    raise InternalError(f"A {type(operator).__name__} is not measured along time; please report this.")


@first_rows.register
def _(operator: Dense, cells: int) -> Dense:
    return Dense(operator.matrix[:cells, :cells])


@first_rows.register
def _(operator: Identity, cells: int) -> Identity:
    return Identity(cells)


@first_rows.register
def _(operator: Toeplitz, cells: int) -> Toeplitz:
    kept = operator.starts < cells
    return Toeplitz(operator.starts[kept], operator.values[kept], operator.scales[:cells])
