"""The best strategy there is for a Gaussian budget, with a certificate: min tr(M X^-1) over X = A^T A with unit diagonal.

The dual has one weight d_j >= 0 a cell, sum 1. With ``K = (D^1/2 M D^1/2)^1/2`` and ``t = tr K``: t^2 is below the error of every
strategy of L2 sensitivity 1, and ``X = D^-1/2 K D^-1/2 / t`` has error t^2 and largest diagonal entry 1 + gap. Each step multiplies
d_j by a power of X_jj.

Two structures make a step cheap. When M has entries ``a_i b_j`` (i <= j; prefix sums, all ranges) its inverse is tridiagonal, and so is
that of ``D^1/2 M D^1/2``: its eigenvectors cost O(n^2). When M is unchanged by reversing the cells, the problem falls into two halves.

Source: convex duality for the matrix mechanism's semidefinite programme (Li et al., PODS 2010); docs/mathematics.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastnoise._check import InputError, InternalError, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._families._clock import over
from leastnoise._families._family import Fitted
from leastnoise._families._gram import (
    DenseGram,
    Gram,
    NotApplicable,
    recognise,
)
from leastnoise._families._matrix import column_norm, strategy_rmse, to_dyadic
from leastnoise._families._row_space import MOST_DENSE
from leastnoise._linop import (
    Dense,
)
from leastnoise._measurements import Factor

# Multiplying by the square of X_jj takes half the steps of the first power; a third power oscillates.
_POWER = 2.0
_SMALL = 96
_EDGE = 16
_LOST = 1e-10
Spectrum = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianOptimum:
    """A strategy of L2 sensitivity 1 and the proof of how good it is.

    Attributes:
        factor: The strategy A, k x n.
        rmse: Its unit RMSE under L2.
        lower: No strategy has a smaller unit RMSE.
        gap: ``rmse^2 / lower^2 - 1``: the part of the squared error that could at most be saved.
        weights: The dual weights d (n), the certificate: ``lower`` follows from them alone.
    """

    factor: FloatArray
    rmse: float
    lower: float
    gap: float
    weights: FloatArray

    def gram(self) -> FloatArray:
        """X = A^T A, n x n, diagonal entries at most 1."""
        return np.asarray(self.factor.T @ self.factor)


def _roots(values: FloatArray) -> FloatArray:
    """Square roots, without those of eigenvalues that are rounding errors of zero: their sum would falsify the lower bound."""
    return np.sqrt(np.where(values > values.max() * len(values) * np.finfo(float).eps, values, 0.0))


def _tridiagonal(gram: Gram) -> Spectrum | None:
    """Spectrum by the tridiagonal inverse of M, for ``M_ij = a_i b_j``."""
    pairs = gram.generators()
    if pairs is None or len(pairs) > 1 or gram.size < 3:
        return None
    a, b = pairs[0]
    jump = a[1:] * b[:-1] - a[:-1] * b[1:]
    if not (jump > 0).all() or not (a[0] > 0 and b[-1] > 0):
        return None
    inner = (a[2:] * b[:-2] - a[:-2] * b[2:]) / (jump[:-1] * jump[1:])
    main = np.concatenate([[a[1] / (a[0] * jump[0])], inner, [b[-2] / (b[-1] * jump[-1])]])

    def spectrum(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        from scipy.linalg import eigh_tridiagonal

        values, vectors = eigh_tridiagonal(main / weights, -1 / (jump * np.sqrt(weights[1:] * weights[:-1])))
        if not values[0] > _LOST * values[-1]:  # cells of very unlike weights: the large singular values would drown in rounding
            return _plain(gram.dense())(weights)
        return 1 / np.sqrt(values), vectors

    return spectrum


def _mirrored(full: FloatArray) -> Spectrum:
    """Spectrum of a matrix that is unchanged by reversing the cells: symmetric and antisymmetric vectors apart."""
    size = len(full)
    half, odd = size // 2, size % 2
    near, far = full[:half, :half], full[:half, size - half :][:, ::-1]

    def spectrum(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        from scipy.linalg import eigh

        root = np.sqrt((weights + weights[::-1]) / 2)
        scale = np.outer(root[:half], root[:half])
        even = np.empty((half + odd, half + odd))
        even[:half, :half] = scale * (near + far)
        if odd:
            even[half, :half] = even[:half, half] = math.sqrt(2) * root[:half] * full[:half, half] * root[half]
            even[half, half] = full[half, half] * root[half] ** 2
        plus, even_vectors = eigh(even, driver="evd")
        minus, odd_vectors = eigh(scale * (near - far), driver="evd") if half else (np.zeros(0), np.zeros((0, 0)))
        vectors = np.zeros((size, size))
        vectors[:half, : half + odd] = even_vectors[:half] / math.sqrt(2)
        vectors[size - half :, : half + odd] = vectors[:half, : half + odd][::-1]
        if odd:
            vectors[half, : half + odd] = even_vectors[half]
        vectors[:half, half + odd :] = odd_vectors / math.sqrt(2)
        vectors[size - half :, half + odd :] = -vectors[:half, half + odd :][::-1]
        return _roots(np.concatenate([plus, minus])), vectors

    return spectrum


def _plain(full: FloatArray) -> Spectrum:
    def spectrum(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        from scipy.linalg import eigh

        root = np.sqrt(weights)
        values, vectors = eigh(root[:, None] * full * root, driver="evd")
        return _roots(values), vectors

    return spectrum


def _spectrum(gram: Gram) -> Spectrum:
    return _tridiagonal(gram) or (_mirrored if gram.mirrored and gram.size > 1 else _plain)(gram.dense())


def _refined(small: FloatArray, size: int) -> FloatArray:
    """Dual weights of fewer cells, as a start for more of them.

    They are powers of the distance to the ends, so logarithms are interpolated over log-odds of the place; the cells next to the ends look
    alike at every size, so they are taken one by one.
    """
    place, cells = (np.log((2 * np.arange(count) + 1) / (2 * (count - np.arange(count)) - 1)) for count in (len(small), size))
    weights = np.exp(np.interp(cells, place, np.log(small)))
    edge = min(_EDGE, len(small) // 4)
    weights[:edge] = small[:edge] * (weights[edge] / small[edge])
    weights[-edge:] = small[-edge:] * (weights[-edge - 1] / small[-edge - 1])
    return np.asarray(weights / weights.sum())


def _iterate(gram: Gram, gap: float, steps: int) -> tuple[FloatArray, float, FloatArray]:
    """Dual weights, t, and the n x n root K of the step with the smallest gap."""
    weights = np.full(gram.size, 1 / gram.size)
    if gram.size > _SMALL and not gram.by_matrix:
        small, _, _ = _iterate(gram.coarsen(4), gap, steps)
        weights = _refined(small, gram.size)
    spectrum, power = _spectrum(gram), _POWER
    best: tuple[float, FloatArray, float, FloatArray, FloatArray] | None = None
    previous = -math.inf
    for _ in range(steps):
        roots, vectors = spectrum(weights)
        total = float(roots.sum())
        ratio = (vectors * vectors) @ roots / (weights * total)
        if best is None or ratio.max() - 1 < best[0]:
            best = float(ratio.max()) - 1, weights, total, roots, vectors
        if best[0] <= gap or over():
            break
        # t^2 can only rise under the plain first power: when a longer step lowers it, come back to that.
        power = 1.0 if total < previous * (1 - 1e-9) else power
        previous = total
        weights = np.maximum(weights * ratio**power, 1e-13 / gram.size)
        weights = weights / weights.sum()
    if best is None:
        raise InternalError("The dual iteration was given no steps.")
    _, weights, total, roots, vectors = best
    halved = vectors * np.sqrt(roots)
    return weights, total, halved @ halved.T


def _factor(matrix: FloatArray) -> FloatArray:
    """A with A^T A = matrix: its Cholesky factor, or the eigenvectors where that fails."""
    from scipy.linalg import LinAlgError, cholesky

    try:
        upper = cholesky(matrix)
    except LinAlgError:
        upper = np.zeros((1, 1))
    if not upper.diagonal().min() > 1e-6:
        values, vectors = np.linalg.eigh(matrix)
        seen = values > values[-1] * 1e-11
        return np.asarray((vectors[:, seen] * np.sqrt(values[seen])).T)
    return np.asarray(upper)


def fit_gaussian_optimum(gram: Gram, *, gap: float = 1e-3, steps: int = 500) -> GaussianOptimum:
    """Find the strategy of least mean squared error for a Gaussian budget, to a given duality gap.

    Edge cases:
        A workload of rank below n (a total, say) has an optimum of that rank: the strategy then has fewer rows than columns.
    """
    factor, lower, weights = optimal_factor(gram, gap=gap, steps=steps)
    rmse = _rmse(gram, factor)
    return GaussianOptimum(factor=factor, rmse=rmse, lower=lower, gap=max(0.0, (rmse / lower) ** 2 - 1), weights=weights)


def optimal_factor(gram: Gram, *, gap: float = 1e-3, steps: int = 500) -> tuple[FloatArray, float, FloatArray]:
    """The strategy of ``fit_gaussian_optimum``, the lower bound and the dual weights, without its error, which costs as much again."""
    if not 0 < gap < math.inf:
        raise InputError(f"gap must be a finite number above 0; got {gap!r}.")
    whole("steps", steps, 1)
    asked = gram.diagonal() > 0
    if not asked.any():
        raise InputError("No query asks for any cell, so there is nothing to plan. Remove the empty query set.")
    if not asked.all():
        inner, lower, own = optimal_factor(DenseGram(gram.dense()[np.ix_(asked, asked)], gram.queries), gap=gap, steps=steps)
        factor, weights = np.zeros((len(inner), gram.size)), np.zeros(gram.size)
        factor[:, asked], weights[asked] = inner, own
        return factor, lower, weights
    if gram.by_matrix and gram.size > _SMALL:
        short, order = recognise(gram)
        if not short.by_matrix:
            factor, lower, weights = optimal_factor(short, gap=gap, steps=steps)
            back = np.argsort(order)
            return factor[:, back], lower, weights[back]
    weights, total, root = _iterate(gram, gap, steps)
    scale = 1 / np.sqrt(weights * total)
    matrix = root * scale[:, None] * scale
    matrix /= matrix.diagonal().max()
    slack = 1 - matrix.diagonal()
    matrix.flat[:: gram.size + 1] += np.where(slack > 1e-9, slack, 0.0)
    return _factor(matrix), total / math.sqrt(gram.queries), weights


def _rmse(gram: Gram, factor: FloatArray) -> float:
    """Unit RMSE of the factor; of a triangular one by its inverse."""
    from scipy.linalg import solve_triangular

    if len(factor) < gram.size or np.tril(factor, -1).any():
        return strategy_rmse(gram, factor, 2)
    inverse = solve_triangular(factor, np.eye(gram.size))
    return column_norm(factor, 2) * math.sqrt(float(np.einsum("ij,ij->", inverse, gram.matmul(inverse))) / gram.queries)


def gaussian_optimum(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
    """The strategy of least error for Gaussian noise, to a duality gap of 1e-3; of 3e-3 beyond 1024 cells, where a step takes seconds."""
    if gram.size > MOST_DENSE:
        raise NotApplicable(f"the Gaussian optimum needs a matrix of {gram.size} x {gram.size}; at most {MOST_DENSE} cells are allowed")
    matrix, lower, _ = optimal_factor(gram, gap=1e-3 if gram.size <= 1024 else 3e-3)
    if len(matrix) < gram.size and np.abs(np.linalg.pinv(matrix) @ matrix.sum(axis=1) - 1).max() > 1e-7:
        # Queries that do not even tell the total: a millionth of the norm on every cell, so that least squares has its product form.
        matrix = np.vstack([matrix * math.sqrt(1 - 1e-6), 1e-3 * np.eye(gram.size)])
    return Fitted(Factor((name,), Dense(to_dyadic(matrix, bits))), lower**2 * gram.queries)
