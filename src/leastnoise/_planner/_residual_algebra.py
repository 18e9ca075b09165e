"""Marginals in the residual basis, where every design of marginals is diagonal.

The space of data vectors splits into orthogonal pieces U_tau, one per attribute set tau: contrasts on the attributes of tau, totals over
the others, of dimension prod_{i in tau} (n_i - 1). Measuring all cells of the marginal S with weight theta (noise scale proportional to
1 / theta, unit noise on theta times the cells) multiplies U_tau by theta^2 N / size(S) if tau is inside S and by nothing else. The common
factor N, which would overflow for 100 attributes, is divided out everywhere in this package:

    lambda_tau = sum over measured S containing tau of theta_S^2 / size(S)
    c_tau      = prod_{i in tau} (n_i - 1) * sum over asked T containing tau of weight_T^2 / size(T)
    total squared error at unit noise = sum_tau c_tau / lambda_tau

Source: Cormode et al. (arXiv 1207.6096) for the recovery, ResidualPlanner (arXiv 2305.08175) for the basis; the tests prove it by brute
force.

How much of the budget each measured marginal gets, from closed form to search: `grouped_budgets` without recovery by least squares,
`optimal_weights` with it (convex in theta^2 for Gaussian budgets alone), and where Gaussian budgets may choose what to measure the residual
basis: in closed form for the sum of variances (``residual`` in `_tables`), by a small concave dual for the largest (`residual_noise_max`).
"Error" is the total squared error at unit noise: multiply by 2 / epsilon^2 for pure budgets and by 1 / mu^2 for Gaussian ones.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._workload import by_width

AttributeSet = tuple[int, ...]
Matrix = Any  # a numpy array, or a sparse matrix of scipy, which is imported only when needed
_MASK_ATTRIBUTES = 62  # up to here a set is one 62-bit mask; above, its digits in base d
_DENSE_ENTRIES = 1 << 21  # incidence matrices up to this many entries are kept dense
_MOST_ENTRIES = 400_000_000  # containments that an incidence matrix may hold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closure:
    """A family of attribute sets closed under taking subsets, ordered by size and then lexicographically."""

    shape: tuple[int, ...]  # values per attribute of the whole domain
    blocks: tuple[IntArray, ...]  # blocks[k] has one row per set of size k, the attributes ascending, rows in lexicographic order
    keys: tuple[IntArray, ...]  # keys[k] are the ascending numbers by which the rows of blocks[k] are found

    @property
    def count(self) -> int:
        """Number of attribute sets, the empty one included."""
        return sum(len(keys) for keys in self.keys)

    @property
    def offsets(self) -> list[int]:
        """Position of the first set of each size."""
        return [0, *itertools.accumulate(len(keys) for keys in self.keys)]


def _keys(rows: IntArray, count: int) -> IntArray:
    """Number the rows (ascending attribute sets of one size) so that the numbers ascend when the rows do."""
    size = rows.shape[1]
    if count <= _MASK_ATTRIBUTES:
        masks = (np.int64(1) << (count - 1 - rows)).sum(axis=1, dtype=np.int64)
        return np.int64((1 << count) - 1) - masks
    if not size * math.log2(count) < _MASK_ATTRIBUTES:
        raise InputError(
            f"marginals of {size} attributes out of {count} are too wide; got {size}, allowed are at most "
            f"{int(_MASK_ATTRIBUTES / math.log2(count))}. Ask for smaller marginals or for fewer attributes."
        )
    keys = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        keys = keys * count + column
    return keys


def _by_size(sets: Sequence[AttributeSet]) -> dict[int, tuple[IntArray, IntArray]]:
    """Group sets by size: size -> (positions in the sequence, rows of attributes)."""
    sizes = np.fromiter(map(len, sets), np.int64, len(sets))
    every = np.fromiter(itertools.chain.from_iterable(sets), np.int64, int(sizes.sum()))
    return {size: (where, every[at]) for size, where, at in by_width(sizes)}


def downward_closure(shape: Sequence[int], sets: Iterable[AttributeSet]) -> Closure:
    """Find all subsets of the given attribute sets."""
    count, families = len(shape), _by_size(list(sets))
    children: dict[int, list[tuple[IntArray, IntArray]]] = {
        0: [(np.zeros((1, 0), dtype=np.int64), _keys(np.zeros((1, 0), dtype=np.int64), count))]
    }
    for size in range(max(families, default=0), 0, -1):  # subsets of one attribute less, level by level
        parts = [families[size][1]] if size in families else []
        parts += [rows for rows, _ in children.pop(size, [])]
        rows = np.concatenate(parts) if parts else np.zeros((0, size), dtype=np.int64)
        keys, first = np.unique(_keys(rows, count), return_index=True)
        rows = rows[first]
        children[size] = [(rows, keys)]
        if size > 1 and len(rows):
            smaller = np.concatenate([np.delete(rows, drop, axis=1) for drop in range(size)])
            children.setdefault(size - 1, []).append((smaller, keys[:0]))
    largest = max(children)
    return Closure(
        shape=tuple(shape),
        blocks=tuple(children[size][0][0] for size in range(largest + 1)),
        keys=tuple(children[size][0][1] for size in range(largest + 1)),
    )


def closed(shape: Sequence[int], blocks: Sequence[IntArray]) -> Closure:
    """The closure of sets that are known to be closed under taking subsets."""
    return Closure(shape=tuple(shape), blocks=tuple(blocks), keys=tuple(_keys(rows, len(shape)) for rows in blocks))


def attribute_sets(closure: Closure) -> list[AttributeSet]:
    """List the sets of a closure in its order."""
    return [tuple(row) for block in closure.blocks for row in block.tolist()]


def locate(closure: Closure, sets: Sequence[AttributeSet]) -> IntArray:
    """Find the positions of sets in a closure, -1 for those that are absent."""
    where = np.full(len(sets), -1, dtype=np.int64)
    for positions, rows in _by_size(sets).values():
        where[positions] = _locate_rows(closure, rows)
    return where


def _locate_rows(closure: Closure, rows: IntArray) -> IntArray:
    size = rows.shape[1]
    if size >= len(closure.blocks) or not len(closure.keys[size]):
        return np.full(len(rows), -1, dtype=np.int64)
    keys = _keys(rows, len(closure.shape))
    at = np.minimum(np.searchsorted(closure.keys[size], keys), len(closure.keys[size]) - 1)
    return np.where(closure.keys[size][at] == keys, at + closure.offsets[size], -1)


def dimensions(closure: Closure) -> FloatArray:
    """Return prod_{i in tau} (n_i - 1) for every set of a closure: the dimension of its residual space."""
    less = np.array(closure.shape, dtype=np.float64) - 1
    return np.concatenate([less[block].prod(axis=1) for block in closure.blocks])


def table_sizes(shape: Sequence[int], sets: Sequence[AttributeSet]) -> FloatArray:
    """Return the number of cells of each marginal."""
    values = np.array(shape, dtype=np.float64)
    sizes = np.ones(len(sets))
    for positions, rows in _by_size(sets).values():
        sizes[positions] = values[rows].prod(axis=1)
    return sizes


def incidence(closure: Closure, tables: Sequence[AttributeSet]) -> Matrix:
    """Build the matrix K with lambda = K theta^2: one row a set of the closure, one column a measured table."""
    weight = 1 / table_sizes(closure.shape, tables)
    row_parts: list[IntArray] = []
    column_parts: list[IntArray] = []
    total = 0
    for positions, rows in _by_size(tables).values():
        found_rows, found_columns = _containments(closure, rows)
        total += len(found_rows)
        if not total <= _MOST_ENTRIES:
            raise InputError(
                f"the tables contain too many of the {closure.count} attribute sets; got over {_MOST_ENTRIES} containments, "
                f"allowed are at most that many. Measure smaller or fewer tables."
            )
        row_parts.append(found_rows)
        column_parts.append(positions[found_columns])
    rows_all = np.concatenate(row_parts) if row_parts else np.zeros(0, dtype=np.int64)
    columns_all = np.concatenate(column_parts) if column_parts else np.zeros(0, dtype=np.int64)
    if closure.count * len(tables) <= _DENSE_ENTRIES:
        matrix = np.zeros((closure.count, len(tables)))
        matrix[rows_all, columns_all] = weight[columns_all]
        return matrix
    from scipy.sparse import csr_array

    return csr_array((weight[columns_all], (rows_all, columns_all)), shape=(closure.count, len(tables)))


def _containments(closure: Closure, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Find all (set of the closure, row) with the set inside the row; rows are tables of one size."""
    size = rows.shape[1]
    sizes = range(min(size, len(closure.blocks) - 1) + 1)
    patterns = sum(math.comb(size, k) for k in sizes)
    # Either list the subsets of every table and look them up, or test every set of the closure against every table.
    if patterns * (3 * len(rows) * len(closure.blocks) + 3000) > closure.count * len(rows) * 4:
        outside = np.ones((len(closure.shape), len(rows)), dtype=np.float32)
        outside[rows, np.arange(len(rows))[:, None]] = 0
        # Sums of zeros and ones: what a BLAS kernel signals about the padding beside small matrices has no influence on them.
        parts = []
        for block, offset in zip(closure.blocks, closure.offsets, strict=False):
            member = np.zeros((len(block), len(closure.shape)), dtype=np.float32)
            member[np.arange(len(block))[:, None], block] = 1
            with np.errstate(all="ignore"):
                inside, columns = np.nonzero(member @ outside == 0)
            parts.append((inside + offset, columns))
        rows_of, columns_of = (np.concatenate(part) for part in zip(*parts, strict=True))
        return rows_of, columns_of
    found_rows, found_columns = [], []
    every = np.arange(len(rows))
    for k in sizes:
        for pattern in itertools.combinations(range(size), k):
            at = _locate_rows(closure, rows[:, list(pattern)])
            present = at >= 0
            found_rows.append(at[present])
            found_columns.append(every[present])
    return np.concatenate(found_rows), np.concatenate(found_columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Weights of measured queries and what they achieve."""

    theta: FloatArray  # one weight at least 0 a measured table (noise scale proportional to 1 / theta), scaled to privacy cost 1
    error: float  # total squared error at unit noise


def grouped_budgets(errors: Sequence[float] | FloatArray, heights: Sequence[float] | FloatArray, norm: int) -> Weights:
    """Split the budget over groups of queries that are answered without recovery by least squares."""
    s = np.asarray(errors, dtype=np.float64)
    height = np.asarray(heights, dtype=np.float64)
    if norm == 1:
        root = (s / height) ** (1 / 3)
        scale = float(height @ root)
        return Weights(theta=root / scale, error=scale**2 * float(height @ root))
    square = np.sqrt(s) / height
    scale = float(height**2 @ square)
    return Weights(theta=np.sqrt(square / scale), error=scale**2)


Errors = Callable[[FloatArray], tuple[float, FloatArray]]
"""From squared weights the total squared error (infinite where not all that is asked is covered), and minus its derivatives."""


def diagonal_errors(matrix: Matrix, coefficient: FloatArray) -> Errors:
    """Those of a programme that is diagonal in the residual basis: c / lambda, lambda = K theta^2."""
    transposed = matrix.T.tocsr() if hasattr(matrix, "tocsr") else matrix.T

    def errors(squares: FloatArray) -> tuple[float, FloatArray]:
        eigenvalue = np.asarray(matrix @ squares)
        if not bool(np.all(eigenvalue > 0)):
            return math.inf, np.zeros_like(squares)
        each = coefficient / eigenvalue
        return float(each.sum()), np.asarray(transposed @ (each / eigenvalue))

    return errors


def _objective(theta: FloatArray, errors: Errors, cost: FloatArray, norm: int) -> tuple[float, FloatArray]:
    error, gain = errors(theta**2)
    if error == math.inf:
        return math.inf, np.zeros_like(theta)
    pull = 2 * theta * gain / error
    if norm == 1:
        spent = float(cost @ theta)
        return 2 * math.log(spent) + math.log(error), 2 * cost / spent - pull
    spent = float((cost * theta) @ (cost * theta))
    return math.log(spent) + math.log(error), 2 * cost**2 * theta / spent - pull


def _privacy_cost(theta: FloatArray, cost: FloatArray, norm: int) -> float:
    return float(cost @ theta) if norm == 1 else math.sqrt(float((cost * theta) @ (cost * theta)))


def improve_weights(theta: FloatArray, errors: Errors, cost: FloatArray, norm: int, steps: int) -> FloatArray:
    """Take steps that never raise the error: recovery and budgets optimised in turn."""
    # For fixed recovery the error is a sum of b_S / theta_S^2 with b_S = theta_S^4 G_S, whose optimum is closed (`grouped_budgets`); then
    # recovery is optimised again by least squares. A weight of 0 stays 0.
    for _ in range(steps):
        _, gain = errors(theta**2)
        theta = theta * np.cbrt(theta * gain / cost) if norm == 1 else theta * np.sqrt(np.sqrt(gain) / cost)
        theta = theta / _privacy_cost(theta, cost, norm)
    return theta


def optimal_weights(
    matrix: Matrix,
    coefficient: FloatArray,
    *,
    norm: int,
    cost: FloatArray | None = None,
    starts: Sequence[FloatArray] | None = None,
    iterations: int = 500,
    tolerance: float = 1e-10,
) -> Weights:
    """Find the weights of given tables that minimise the total squared error after least squares recovery."""
    asked = np.asarray(coefficient) > 0
    kept = matrix if bool(asked.all()) else matrix[asked]
    tables = kept.shape[1]
    cost = np.ones(tables) if cost is None else np.asarray(cost, dtype=np.float64)
    errors = diagonal_errors(kept, np.asarray(coefficient, dtype=np.float64)[asked])
    return least_error(errors, cost, [np.ones(tables)] if starts is None else starts, norm=norm, iterations=iterations, tolerance=tolerance)


def least_error(
    errors: Errors, cost: FloatArray, starts: Sequence[FloatArray], *, norm: int, iterations: int = 500, tolerance: float = 1e-10
) -> Weights:
    """The best weights that a descent from some starts finds; a weight that is 0 stays 0."""
    for start in starts:
        if not errors(start**2)[0] < math.inf:
            raise InputError(
                "a start does not cover all that is asked; got a set without a measured table, allowed are covering starts. Add tables."
            )
    tried = (_descend(start, errors, cost, norm, iterations, tolerance) for start in starts)
    return min(tried, key=lambda weights: weights.error)


def _descend(start: FloatArray, errors: Errors, cost: FloatArray, norm: int, iterations: int, tolerance: float) -> Weights:
    from scipy.optimize import Bounds, minimize

    theta = improve_weights(start / _privacy_cost(start, cost, norm), errors, cost, norm, 10)
    used = theta > 0
    scale = 1.0 / theta[used].max()  # variables near 1 suit the quasi-Newton method's first step

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        every = np.zeros_like(theta)
        every[used] = point
        value, slope = _objective(every, errors, cost, norm)
        return value, slope[used]

    result = minimize(
        objective,
        theta[used] * scale,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(np.zeros(int(used.sum())), np.inf),
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": tolerance, "gtol": 1e-9},
    )
    optimum = np.zeros_like(theta)
    optimum[used] = np.where(result.x > 1e-7 * result.x.max(), result.x, 0.0)
    candidates = [weights / _privacy_cost(weights, cost, norm) for weights in (optimum, theta)]
    at = int(np.argmin(reached := [errors(weights**2)[0] for weights in candidates]))
    return Weights(theta=candidates[at], error=reached[at])


def residual_noise_max(closure: Closure, sets: Sequence[AttributeSet], scales: Sequence[float]) -> tuple[FloatArray, float, float]:
    """Choose the noise of the residual basis for Gaussian budgets so that the largest cell variance is least."""
    # The dual over convex combinations of the variances is concave, with gradient the variances at its optimal noise (ResidualPlanner).
    matrix = incidence(closure, sets)
    # K has 1 / size already; a cell variance needs 1 / size^2.
    per_cell = np.asarray(scales, dtype=np.float64) / table_sizes(closure.shape, sets)
    dims = dimensions(closure)
    share = np.full(len(sets), 1.0 / len(sets))
    best, least, bound = np.zeros(0), math.inf, 0.0
    for _ in range(5000):
        c = dims * np.asarray(matrix @ (share * per_cell))
        root = np.sqrt(c * dims)
        total = float(root.sum())
        bound = max(bound, total**2)
        with np.errstate(divide="ignore"):
            inverse = np.where(c > 0, np.sqrt(dims / c) * total, np.inf)  # 1 / lambda
        finite = np.where(c > 0, inverse, 0.0)
        variances = np.asarray(matrix.T @ (finite * dims)) * per_cell
        if variances.max() < least:
            best, least = inverse, float(variances.max())
        if least <= bound * (1 + 1e-6):
            break
        share = share * variances / float(share @ variances)
    return best / table_sizes(closure.shape, attribute_sets(closure)), least, bound
