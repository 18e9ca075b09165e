"""Marginals in the residual basis, in which all measurements are diagonal.

The space of data vectors splits into orthogonal pieces U_tau, one for each attribute set tau. U_tau
has contrasts on the attributes of tau and totals over all other attributes. The dimension of U_tau
is prod_{i in tau} (n_i - 1). Let all cells of the marginal S be measured with weight theta (the
noise scale is proportional to 1 / theta: unit noise is added to theta times the cells). This
measurement adds the precision theta^2 N / size(S) to U_tau if tau is inside S, and adds nothing
otherwise. The common factor N would overflow for 100 attributes, so it is divided out everywhere in
this package:

    lambda_tau = sum over measured S containing tau of theta_S^2 / size(S)
    c_tau = prod_{i in tau} (n_i - 1) * sum over requested T containing tau of weight_T^2 / size(T)
    total squared error at unit noise = sum_tau c_tau / lambda_tau

Source: Cormode et al. (arXiv 1207.6096) for the recovery, ResidualPlanner (arXiv 2305.08175) for
    the basis; the tests prove it by brute force.

Two functions compute the share of the budget of each measured marginal. `grouped_budgets` is a
closed form without recovery by least squares. `least_error` is a descent with recovery (convex in
theta^2 only for Gaussian budgets). "Error" is the total squared error at unit noise. Multiply this
error by 2 / epsilon^2 for pure budgets, and by 1 / mu^2 for Gaussian budgets.
"""

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._error import AttributeSetTerms, subset_sums
from leastnoise._families import Deadline, minimize_lbfgs, time_limit
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import Array, FloatArray, IntArray
from leastnoise._workload import group_by_width

AttributeSet = tuple[int, ...]
Matrix = Any  # a NumPy array, or a sparse matrix of SciPy, which is imported only when it is needed
_DENSE_ENTRIES = 1 << 21  # maximum number of entries of a dense incidence matrix
_MOST_ENTRIES = 400_000_000  # maximum number of containments in an incidence matrix
_FIRST_STEPS = 10  # the number of steps before a descent
_NEGLIGIBLE_SHARE = 1e-7  # tables below this part of the largest budget are left out


@dataclass(frozen=True, eq=False)
class DownwardClosure:
    """A family of attribute sets closed under subsets, ordered by size.

    The sets are first ordered by size, and sets of one size lexicographically.

    Attributes:
        shape: the number of values of each attribute of the whole domain.
        blocks: blocks[k] has one row for each set of size k, with ascending attributes; rows are
            lexicographic.
    """

    shape: tuple[float, ...]
    blocks: tuple[IntArray, ...]

    @cached_property
    def keys(self) -> list[Array]:
        """The attribute sets of each size as sorted byte strings."""
        return [_keys(rows) for rows in self.blocks]

    @cached_property
    def offsets(self) -> list[int]:
        """The position of the first set of each size; then the number of all sets."""
        return [0, *itertools.accumulate(map(len, self.blocks))]

    @property
    def count(self) -> int:
        """The number of attribute sets, including the empty set."""
        return self.offsets[-1]

    def rows_at(self, rows: IntArray) -> IntArray:
        """Return the positions of sets of one size; -1 for absent sets."""
        size = rows.shape[1]
        if size >= len(self.blocks):
            return np.full(len(rows), -1, dtype=np.int64)
        keys = _keys(rows)
        at = np.minimum(np.searchsorted(self.keys[size], keys), len(self.keys[size]) - 1)
        return np.where(self.keys[size][at] == keys, at + self.offsets[size], -1)


def _keys(rows: IntArray) -> Array:
    """Encode attribute sets of one size as byte strings with the same order."""
    digits = np.column_stack([np.zeros(len(rows)), rows])  # the empty set also gets one byte
    return np.ascontiguousarray(digits, dtype=">u2").view(f"V{2 * digits.shape[1]}").reshape(-1)


def _by_size(sets: Collection[AttributeSet]) -> list[tuple[IntArray, IntArray]]:
    """Group attribute sets by size; return their indices and attributes.

    The result has one pair of arrays for each size.
    """
    sizes = np.fromiter(map(len, sets), np.int64, len(sets))
    every = np.fromiter(itertools.chain.from_iterable(sets), np.int64, int(sizes.sum()))
    return [(where, every[at]) for _, where, at in group_by_width(sizes)]


def downward_closure(shape: Sequence[float], sets: Collection[AttributeSet]) -> DownwardClosure:
    """Return the family of all subsets of some attribute sets."""
    terms = [
        AttributeSetTerms(rows, np.ones(rows.shape), np.ones(rows.shape), np.ones(len(rows)))
        for _, rows in _by_size(sets)
    ]
    subsets = subset_sums(terms, len(shape))
    return DownwardClosure(tuple(shape), tuple(rows for rows, _ in subsets))


def attribute_sets(closure: DownwardClosure) -> list[AttributeSet]:
    """Return the attribute sets of a closure, in the order of the closure."""
    sets: list[AttributeSet] = []
    for block in closure.blocks:
        sets += [tuple(row) for row in block.tolist()]
    return sets


def locate(closure: DownwardClosure, sets: Sequence[AttributeSet]) -> IntArray:
    """Return the positions of sets in a closure; -1 for absent sets."""
    where = np.full(len(sets), -1, dtype=np.int64)
    for positions, rows in _by_size(sets):
        where[positions] = closure.rows_at(rows)
    return where


def dimensions(closure: DownwardClosure) -> FloatArray:
    """Return the dimension of the residual space of every set.

    The dimension is prod_{i in tau} (n_i - 1).
    """
    less = np.array(closure.shape, dtype=np.float64) - 1
    return np.concatenate([less[block].prod(axis=1) for block in closure.blocks])


def table_sizes(shape: Sequence[float], sets: Collection[AttributeSet]) -> FloatArray:
    """Return the number of cells of each marginal."""
    return np.array(
        [math.prod([shape[at] for at in attributes]) for attributes in sets], dtype=np.float64
    )


def incidence(closure: DownwardClosure, tables: Sequence[AttributeSet]) -> Matrix:
    """Return the matrix K that maps squared weights to precisions.

    K has the shape (sets of the closure, measured tables); it is a sparse matrix if it is large.
    """
    parts = [(np.zeros(0, dtype=np.int64),) * 2]
    for positions, rows in _by_size(tables):
        inside, columns = _containments(closure, rows)
        parts.append((inside, positions[columns]))
        if sum(len(part) for part, _ in parts) > _MOST_ENTRIES:
            raise InputError(
                f"the tables contain too many attribute sets: more than {_MOST_ENTRIES:,} pairs of "
                "a table and a set. Request smaller or fewer tables."
            )
    every, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    entries = (1 / table_sizes(closure.shape, tables))[columns]
    if closure.count * len(tables) <= _DENSE_ENTRIES:
        matrix = np.zeros((closure.count, len(tables)))
        matrix[every, columns] = entries
        return matrix
    from scipy.sparse import csr_array

    return csr_array((entries, (every, columns)), shape=(closure.count, len(tables)))


def _containments(closure: DownwardClosure, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return pairs of positions: a set, and a table that contains the set.

    A set is represented by its position in the closure. The tables are rows of one array, because
    they have the same number of attributes.
    """
    size = rows.shape[1]
    pairs = []
    sizes = range(min(size, len(closure.blocks) - 1) + 1)
    patterns = sum(math.comb(size, k) for k in sizes)
    # Use the faster of two methods. One lists the subsets of every table and looks them up; the
    # other compares every set of the closure with every table.
    if patterns * (3 * len(rows) * len(closure.blocks) + 3000) <= closure.count * len(rows) * 4:
        for pattern in itertools.chain.from_iterable(
            itertools.combinations(range(size), k) for k in sizes
        ):
            at = closure.rows_at(rows[:, list(pattern)])
            (present,) = np.nonzero(at >= 0)
            pairs.append((at[present], present))
    else:
        outside = np.ones((len(closure.shape), len(rows)), dtype=np.float32)
        outside[rows, np.arange(len(rows))[:, None]] = 0
        for block, offset in zip(closure.blocks, closure.offsets, strict=False):
            member = np.zeros((len(block), len(closure.shape)), dtype=np.float32)
            member[np.arange(len(block))[:, None], block] = 1
            # Some BLAS kernels set floating-point flags for the padding of small matrices.
            with np.errstate(all="ignore"):
                inside, columns = np.nonzero(member @ outside == 0)
            pairs.append((inside + offset, columns))
    every, columns = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return every, columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Weights of measured tables at privacy cost 1, and their error.

    Attributes:
        theta: the weights theta, at least 0 and scaled to privacy cost 1; noise scales are
            proportional to 1 / theta.
        error: total squared error at unit noise.
    """

    theta: FloatArray
    error: float


def grouped_budgets(
    errors: Sequence[float] | FloatArray, column_norms: Sequence[float] | FloatArray, norm: int
) -> Weights:
    """Return the best budget split over groups of queries, without recovery.

    Recovery would be least squares over all groups. ``errors`` are the errors of the groups, and
    ``column_norms`` are their column norms.
    """
    s = np.asarray(errors, dtype=np.float64)
    height = np.asarray(column_norms, dtype=np.float64)
    if norm == 1:
        root = (s / height) ** (1 / 3)
        scale = float(height @ root)
        return Weights(theta=root / scale, error=scale**2 * float(height @ root))
    square = np.sqrt(s) / height
    scale = float(height**2 @ square)
    return Weights(theta=np.sqrt(square / scale), error=scale**2)


Errors = Callable[[FloatArray], tuple[float, FloatArray]]
"""A function from squared weights to the total squared error and minus its derivatives. The error
is infinite if the weights do not determine all queries."""


def diagonal_errors(matrix: Matrix, coefficients: FloatArray) -> Errors:
    """Return the squared error as a function of theta^2: sum(c / (K theta^2)).

    The sum is over the residual spaces with c > 0.
    """
    has_weight = coefficients > 0
    if bool(has_weight.all()):
        rows = matrix
        weights = coefficients
    else:
        rows = matrix[has_weight]
        weights = coefficients[has_weight]
    if hasattr(rows, "tocsr"):
        transposed = rows.T.tocsr()
    else:
        transposed = rows.T

    def errors(squares: FloatArray) -> tuple[float, FloatArray]:
        """Return the squared error and minus its gradient at squared weights."""
        eigenvalue = np.asarray(rows @ squares)
        if not bool(np.all(eigenvalue > 0)):
            return math.inf, np.zeros_like(squares)
        each = weights / eigenvalue
        return float(each.sum()), np.asarray(transposed @ (each / eigenvalue))

    return errors


def scale_to_cost_one(theta: FloatArray, costs: FloatArray, norm: int) -> FloatArray:
    """Scale weights to privacy cost 1."""
    return np.asarray(theta / float(costs**norm @ theta**norm) ** (1 / norm))


def improve_weights(
    theta: FloatArray, errors: Errors, costs: FloatArray, norm: int, steps: int
) -> FloatArray:
    """Improve weights by fixed-point steps that never increase the squared error.

    A weight of 0 stays 0.
    """
    # With a fixed recovery, the error is a sum of b_S / theta_S^2 with b_S = theta_S^4 G_S. Its
    # minimum has a closed form (`grouped_budgets`). A step moves to that minimum, and the next step
    # begins with the least squares recovery there.
    for _ in range(steps):
        _, gain = errors(theta**2)
        if norm == 1:
            theta = theta * np.cbrt(theta * gain / costs)
        else:
            theta = theta * np.sqrt(np.sqrt(gain) / costs)
        theta = scale_to_cost_one(theta, costs, norm)
    return theta


def scaled_error(budget_shares: FloatArray, errors: Errors, norm: int) -> tuple[float, FloatArray]:
    """Return the squared error of budget shares at cost 1, and its gradient.

    Each weight is assumed to have unit cost.
    """
    error, gain = errors(budget_shares**2)
    if not error < math.inf:
        return math.inf, np.zeros_like(budget_shares)
    spent = float((budget_shares**norm).sum()) ** (2 / norm)
    return spent * error, 2 * (
        spent ** (1 - norm / 2) * budget_shares ** (norm - 1) * error - spent * budget_shares * gain
    )


def least_error(
    errors: Errors, costs: FloatArray, start: FloatArray, *, norm: int, steps: int = 500
) -> Weights:
    """Return the table weights with the least squared error after recovery.

    Recovery is by least squares. The weights are found by descent. A weight of 0 stays 0.
    """
    if not errors(start**2)[0] < math.inf:
        raise InputError(
            "the starting weights must cover the workload; got a requested set of attributes that "
            "no measured table contains. Add tables."
        )
    theta = improve_weights(
        scale_to_cost_one(start, costs, norm), errors, costs, norm, _FIRST_STEPS
    )
    begin = errors(theta**2)[0]
    used = theta > 0
    largest = (theta * costs).max()

    def of_shares(squares: FloatArray) -> tuple[float, FloatArray]:
        """Return the relative error of squared budget shares, and minus its gradient."""
        every = np.zeros_like(theta)
        every[used] = squares
        error, gain = errors(every / costs**2)
        return error / begin, gain[used] / costs[used] ** 2 / begin

    # Without a deadline, because this takes a negligible part of the planning time.
    with time_limit(Deadline()):
        shares, _ = minimize_lbfgs(
            lambda point: scaled_error(point, of_shares, norm),
            (theta * costs)[used] / largest,
            math.inf,
            steps,
        )
    optimum = np.zeros_like(theta)
    optimum[used] = (
        np.where((shares / shares.max()) ** norm > _NEGLIGIBLE_SHARE, shares, 0.0) / costs[used]
    )
    tried = [scale_to_cost_one(weights, costs, norm) for weights in (optimum, theta)]
    return min(
        (Weights(theta=weights, error=errors(weights**2)[0]) for weights in tried),
        key=lambda weights: weights.error,
    )
