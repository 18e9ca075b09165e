"""Strategies along time whose rows can be measured when their last cell is over.

Under Gaussian noise a strategy of Gram matrix X = A'A has a lower triangular twin C with C'C = X, by Cholesky's method from the last cell
on. Its columns have the norms of A's, so it costs the same, and its errors are the same. C is square, so what is estimated of the first t
cells follows from the first t rows and never changes with later ones. Laplace noise is not spent evenly on such rows: there hierarchies are
measured, a node when its last cell is over, and later nodes improve what was published before.

Source: the decomposition is textbook; that nothing is lost by publishing as one goes is in Denisov et al. (arXiv 2202.08312).
"""

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from leastnoise._check import InternalError
from leastnoise._check.arrays import FloatArray
from leastnoise._families._dense import optimal_factor, to_dyadic
from leastnoise._families._gram import Gram
from leastnoise._families._inverse import basis
from leastnoise._families._search import NotApplicable
from leastnoise._families._toeplitz import toeplitz_root
from leastnoise._linop import Dense, Identity, Operator, Toeplitz, dense, last_cells
from leastnoise._measurements import Factor

MOST_TRIANGULAR = 512  # cells, of a matrix that a plan carries
_LEAST = 16  # of a rounded entry on the diagonal
_BESIDE = 1e-3  # of the squared norm, on every cell, where the queries leave some of them undetermined
_MOST_HIERARCHY, _MOST_BRANCHING = 128, 16  # cells, and runs of a run
_RATIOS = (0.6, 0.8, 1.0, 1.25, 1.6)  # of the weights of a level to those of the one below
_MOST_TIMES = 16  # at which the error of a hierarchy is looked at
_FINE = 64  # of a row weight

Asked = Sequence[tuple[float, Operator]]


def causal_strategies(name: str, gram: Gram, bits: int) -> list[Factor]:
    """Lower triangular strategies in whole numbers: the twin of the optimum; for very many cells those of known form."""
    if gram.size > MOST_TRIANGULAR:
        return [Factor((name,), Identity(gram.size)), Factor((name,), toeplitz_root(gram.size, bits))]
    factor = optimal_factor(gram)[0]
    optimum = factor.T @ factor
    for beside in (0.0, _BESIDE):
        rounded = to_dyadic(_lower_twin((1 - beside) * optimum + beside * np.eye(gram.size)), min(bits, 20))
        if rounded.shape == optimum.shape and rounded.diagonal().min() >= _LEAST:
            return [Factor((name,), Dense(rounded))]
    return [Factor((name,), Identity(gram.size))]


def _lower_twin(gram: FloatArray) -> FloatArray:
    """C, lower triangular, with C'C the given matrix; next to nothing where that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(gram[::-1, ::-1]).T[::-1, ::-1])
    except np.linalg.LinAlgError:
        return np.eye(len(gram)) * 2.0**-20


def causal_hierarchy(name: str, asked: Asked) -> Factor:
    """Under Laplace noise: cells alone, or the hierarchy whose answers have the least error when they are first published."""
    size = asked[0][1].size
    if size > _MOST_HIERARCHY:
        raise NotApplicable(
            f"Under a pure budget a series may have at most {_MOST_HIERARCHY} periods; got {size}. Use longer periods, or rho or a delta."
        )
    times = sorted({round(one) for one in np.linspace(1, size, min(size, _MOST_TIMES))})
    found = [Factor((name,), Identity(size))]
    for branching in range(2, min(size, _MOST_BRANCHING) + 1):
        found += [_hierarchy(name, size, branching, ratio) for ratio in _RATIOS]

    def error(factor: Factor) -> float:
        norm = float((np.abs(dense(factor.operator)) * factor.weights[:, None]).sum(axis=0).max())
        variances = [weight * ending_variances(factor, operator, times) for weight, operator in asked]
        return norm**2 * sum(float(one.sum()) for one in variances)

    return min(found, key=error)


def _hierarchy(name: str, size: int, branching: int, ratio: float) -> Factor:
    """Runs of 1, b, b^2 ... cells below all of them, the weights of each level a ratio of those of the one below."""
    rows, weights, width, weight = [], [], 1, 1.0
    while width < size:
        for start in range(0, size, width):
            rows.append([start <= cell < start + width for cell in range(size)])
            weights.append(max(1, round(weight * _FINE)))
        width, weight = width * branching, weight * ratio
    return Factor((name,), Dense(np.array(rows, dtype=np.int64)), np.array(weights))


def first_rows(factor: Factor, cells: int) -> Factor:
    """The part of a strategy that is measured when the first cells are over."""
    kept = last_cells(factor.operator) < cells
    weights = None if factor.row_weights is None else factor.row_weights[kept]
    return Factor(factor.attributes, _within(factor.operator, cells), weights)


@singledispatch
def _within(operator: Operator, cells: int) -> Operator:
    raise InternalError(f"A {type(operator).__name__} is not measured along time; please report this.")


@_within.register
def _(operator: Dense, cells: int) -> Dense:
    return Dense(operator.matrix[last_cells(operator) < cells, :cells])


@_within.register
def _(operator: Identity, cells: int) -> Identity:
    return Identity(cells)


@_within.register
def _(operator: Toeplitz, cells: int) -> Toeplitz:
    kept = operator.starts < cells
    return Toeplitz(operator.starts[kept], operator.values[kept], operator.scales[:cells])


def ending_variances(factor: Factor, operator: Operator, times: Sequence[int]) -> FloatArray:
    """For each number of cells the summed variances, at unit noise, of the queries that end with them, when they are first answered."""
    last = last_cells(operator)
    if factor.operator.rows == factor.operator.size:  # they never change
        every = np.bincount(last, weights=basis(factor).variances(operator), minlength=operator.size)
        return np.asarray(every[np.array(times) - 1])
    queries, found = dense(operator), []
    for cells in times:
        chosen = queries[last == cells - 1, :cells]
        found.append(basis(first_rows(factor, cells)).total_variance(Dense(chosen)) if len(chosen) else 0.0)
    return np.array(found)
