"""The joint form of the covariance, for any blocks.

The covariance is over the joint cells of the attributes that the blocks measure.

Let A be the measured queries and D the variances of their noise. Least squares solves M x = A^T
D^-1 z with M = A^T D^-1 A. Up to 4096 joint cells, the inverse of M is one dense matrix. Above 4096
joint cells, M is not computed as a matrix. M is a sum of Kronecker products of Gram matrices, with
one product for each block. So M times a vector needs only a few passes over the joint cells, and
the estimate is computed by conjugate gradients. The preconditioner computes the partial trace of M
along every short attribute and transforms the attribute to the eigenvectors of this trace. The
preconditioner then divides by the diagonal of M in this basis. The preconditioner is exact if all
blocks have common eigenvectors, as for marginals of cells.

Above 4096 cells, error bars are exact for products of at most 2048 queries, by one solve for each
query. For larger products, error bars are simulated: the estimator is applied to R draws of
Gaussian noise with the variances of the plan. The estimator is linear. So the error of an answer in
one draw of normal noise is normal and has the true variance, for any noise of the plan. The mean of
the squared errors over R draws is the true variance times chi^2_R / R. The published variance is
this mean divided by the 0.1% quantile of chi^2_R / R. For each answer, the stated variance is too
small with a probability of 1 in 1000. The draws come from a fixed public seed, so a release has the
error bars that its plan stated.

Source: conjugate gradients for many right-hand sides together, with separate step sizes; Hestenes
    and Stiefel 1952.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error._equations import (
    Errors,
    JointCells,
    Names,
    NoisyBlock,
    Structure,
    block_rows,
    is_nontrivial,
)
from leastnoise._error._memory import require_memory
from leastnoise._error._undetermined import UnsupportedQuery, split_product, undetermined_error
from leastnoise._families import (
    MOST_LISTED,
    QUICKER_BY_GRAM,
    CellsInverse,
    RowSpace,
    apply_along_axes,
    apply_gram,
    apply_weighted_gram,
    column_weights,
    gram_diagonal,
    interval_ends,
    invert_within,
    is_zero_one,
    row_space_of_gram,
    unit_rows,
    weighted_gram,
)
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import (
    AllRanges,
    Identity,
    Operator,
    Total,
    apply,
    apply_transpose,
    dense,
)
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import Product

MOST_JOINT = 2**24  # maximum number of joint cells; 128 MiB of floats
TOLERANCE = 1e-9  # relative residual of a solution
_MOST_STEPS = 3000  # maximum number of steps of conjugate gradients
# Give up if the residual is not halved within this number of steps.
_MOST_STALLED_STEPS = 300
_MOST_TURNED = 1024  # maximum number of cells of an axis that the preconditioner transforms
_AT_ONCE = 2**24  # maximum number of array entries in memory
_MOST_EXACT = 2048  # maximum number of queries whose variances are solved for one by one
_MOST_EXACT_NUMBERS = 2**28  # maximum number of queries times joint cells of these solutions
_MOST_SIMULATED = 2**26  # maximum number of queries whose variances are simulated
# Maximum number of array entries in a batch of columns, to fit into the cache.
_MOST_COLUMNS = 2**20
_DRAW_LIMITS = (16, 256)  # the fewest and the most simulated errors for a variance
_DRAWN_NUMBERS = 2**27  # maximum number of joint cells times draws; 1 GiB of floats
_UNDERSTATEMENT_RISK = 1e-3  # probability that a simulated variance is stated too small
_ERROR_TOLERANCE = 1e-6  # tolerance of a solution; the relative error of its variance is the square
_SEED = 20240229  # seed of simulated errors, so that equal plans state equal errors


def _factors_by_name(factors: Sequence[Factor]) -> dict[str, Factor]:
    """Return the factors of a table, keyed by their only attribute."""
    return {factor.attributes[0]: factor for factor in factors}


def _weighted_diagonal(factor: Factor) -> FloatArray:
    """Return the diagonal of F^T diag(w^2) F for a factor F with weights w."""
    n = factor.operator.size
    if factor.even:
        return gram_diagonal(factor.operator)
    if is_zero_one(factor.operator):
        return np.asarray(apply_transpose(factor.operator, factor.scaling**2))
    answer = np.empty(n)
    for start in range(0, n, 256):
        cells = np.arange(start, min(n, start + 256))
        unit = np.zeros((n, len(cells)))
        unit[cells, np.arange(len(cells))] = 1.0
        answer[cells] = ((apply(factor.operator, unit) * factor.scaling[:, None]) ** 2).sum(axis=0)
    return answer


@dataclass(frozen=True, eq=False)
class JointBlocks:
    """The blocks on one quantity, as noisy queries on joint cells.

    The joint cells combine the attributes that the blocks measure.
    """

    names: Names
    shape: tuple[int, ...]
    blocks: tuple[tuple[Block, float], ...]

    @staticmethod
    def of(domain: Domain, blocks: Sequence[tuple[Block, float]]) -> "JointBlocks":
        """Return blocks as queries on the joint cells of their attributes.

        Raises:
            InputError: there are too many joint cells.
        """
        touched: set[str] = set()
        for block, _ in blocks:
            for factor in filter(is_nontrivial, block.factors):
                touched.update(factor.attributes)
        names = tuple(name for name in domain.names if name in touched)
        shape = tuple(domain.kind(name).size for name in names)
        if math.prod(shape) > MOST_JOINT:
            raise InputError(
                "Least squares over these measurements needs the joint table of "
                f"{' x '.join(names)}, {math.prod(shape)} cells; at most "
                f"{MOST_JOINT} are allowed. Choose another strategy, such as marginals."
            )
        return JointBlocks(names, shape, tuple(blocks))

    @property
    def cells(self) -> int:
        """The number of joint cells."""
        return math.prod(self.shape)

    def operators(self, product: Product) -> list[Operator]:
        """Return the queries of a product along each joint attribute."""
        operators = dict(zip(product.attributes, product.operators, strict=True))
        if any(name not in self.names for name in operators):
            raise undetermined_error(product)
        return [
            operators.get(name, Total(size))
            for name, size in zip(self.names, self.shape, strict=True)
        ]

    @cached_property
    def _tables(self) -> list[tuple[list[Factor], tuple[int, ...], float]]:
        """The nontrivial factors, the summed axes and the variance of each block."""
        tables = []
        for block, variance in self.blocks:
            factors = [factor for factor in block.factors if is_nontrivial(factor)]
            measured = set(chain.from_iterable(factor.attributes for factor in factors))
            tables.append(
                (
                    factors,
                    tuple(axis for axis, name in enumerate(self.names) if name not in measured),
                    variance,
                )
            )
        return tables

    @cached_property
    def _grams(self) -> dict[Factor, FloatArray]:
        """Gram matrices of the factors for which a dense matrix is faster."""
        factors: set[Factor] = set()
        for factors_of_table, _, _ in self._tables:
            factors.update(
                factor for factor in factors_of_table if factor.operator.size <= _MOST_TURNED
            )
        return {
            factor: weighted_gram(factor)
            for factor in factors
            if type(factor.operator) in QUICKER_BY_GRAM
        }

    def _sum_over_axes(
        self, factors: Sequence[Factor], summed_axes: tuple[int, ...], x: FloatArray
    ) -> FloatArray:
        """Return an array on the joint cells, summed over some attributes' axes.

        The result has one axis for each factor, and a last axis for the columns.
        """
        return (
            x.reshape(*self.shape, -1)
            .sum(axis=summed_axes)
            .reshape(*(factor.operator.size for factor in factors), -1)
        )

    def _with_summed_axes(self, summed_axes: tuple[int, ...], reduced: FloatArray) -> FloatArray:
        """Restore summed axes with length 1: the transpose of `_sum_over_axes`.

        The result can be broadcast to shape (*self.shape, columns).
        """
        return reduced.reshape(
            *(1 if axis in summed_axes else size for axis, size in enumerate(self.shape)), -1
        )

    def gram(self, x: FloatArray) -> FloatArray:
        """Return M x, for the Gram matrix M of the measurements and columns x.

        The result has the shape (cells, columns).
        """
        result = np.zeros((*self.shape, x.shape[1]))
        for factors, summed, variance in self._tables:
            cube = self._sum_over_axes(factors, summed, x)
            for axis, factor in enumerate(factors):
                gram = self._grams.get(factor)
                moved = np.moveaxis(cube, axis, 0)
                if gram is None:
                    product = apply_weighted_gram(factor, moved)
                else:
                    product = np.tensordot(gram, moved, axes=1)
                cube = np.moveaxis(product, 0, axis)
            result += self._with_summed_axes(summed, cube / variance)
        return result.reshape(x.shape)

    def gather(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return A^T D^-1 z for noisy answers z, shape (cells, columns).

        ``values`` has the values z of every block, shape (rows, columns).
        """
        count = values[0].shape[1]
        result = np.zeros((*self.shape, count))
        for (factors, summed, variance), rows in zip(self._tables, values, strict=True):
            # Totals have a single row and therefore no axes.
            cube = rows.reshape(*(factor.operator.rows for factor in factors), count)
            for axis, factor in enumerate(factors):
                moved = np.moveaxis(cube, axis, 0)
                if not factor.even:
                    moved = moved * column_weights(factor.scaling**2, moved)
                cube = np.moveaxis(apply_transpose(factor.operator, moved), 0, axis)
            result += self._with_summed_axes(summed, cube / variance)
        return result.reshape(self.cells, count)

    def answers(self, x: FloatArray) -> list[FloatArray]:
        """Return A x as a list with one array of shape (rows, 1) per block.

        ``x`` is one column of cells.
        """
        answers = []
        for factors, summed, _ in self._tables:
            operators = [factor.operator for factor in factors]
            table = apply_along_axes(operators, self._sum_over_axes(factors, summed, x))
            answers.append(table.reshape(-1, 1))
        return answers

    def diagonal(self) -> FloatArray:
        """Return the diagonal of the measurements' Gram matrix, shape (cells,)."""
        result = np.zeros((*self.shape, 1))
        for factors, summed, variance in self._tables:
            cube = np.ones(())
            for factor in factors:
                cube = np.multiply.outer(cube, _weighted_diagonal(factor))
            result += self._with_summed_axes(summed, cube / variance)
        return result.reshape(-1)

    @cached_property
    def preconditioner(self) -> "DiagonalInBasis":
        """An approximate inverse of the Gram matrix M."""
        factors = set(chain.from_iterable(factors for factors, _, _ in self._tables))
        if any(len(factor.attributes) > 1 for factor in factors):
            # No block is along a single axis.
            turns: list[FloatArray | None] = [None] * len(self.shape)
            diagonal = self.diagonal().reshape(self.shape)
        else:
            turns, diagonal = self._approximate_eigenbases(factors)
        if not diagonal.max() > 0:
            raise refuse(
                "the measurements",
                "queries whose coefficients are all 0",
                "at least one query with a coefficient other than 0",
            )
        # Directions that no block measures get a small positive value to keep the matrix positive
        # definite.
        return DiagonalInBasis(tuple(turns), 1 / np.maximum(diagonal, 1e-10 * diagonal.max()))

    def _approximate_eigenbases(
        self, factors: Collection[Factor]
    ) -> tuple[list[FloatArray | None], FloatArray]:
        """Return a basis for each axis, and the Gram matrix's diagonal in the bases.

        A basis diagonalizes the mean of the Gram matrix along its axis; None means the identity.
        """
        grams = {
            factor: weighted_gram(factor)
            for factor in factors
            if factor.operator.size <= _MOST_TURNED
        }
        diagonals = {
            factor: np.diag(grams[factor]) if factor in grams else _weighted_diagonal(factor)
            for factor in factors
        }
        tables = [
            (_factors_by_name(table_factors), variance)
            for table_factors, _, variance in self._tables
        ]
        turns: list[FloatArray | None] = []
        for name, size in zip(self.names, self.shape, strict=True):
            if size > _MOST_TURNED:
                turns.append(None)
                continue
            mean_gram = np.zeros((size, size))
            for factor_of, variance in tables:
                other_means = [
                    float(diagonals[factor].mean())
                    for other, factor in factor_of.items()
                    if other != name
                ]
                weight = math.prod(other_means) / variance
                if name in factor_of:
                    mean_gram += weight * grams[factor_of[name]]
                else:
                    mean_gram += weight * np.ones((size, size))
            turns.append(np.linalg.eigh(mean_gram)[1])
        diagonal = np.zeros(self.shape)
        for factor_of, variance in tables:
            term = np.ones(())
            for name, size, turn in zip(self.names, self.shape, turns, strict=True):
                factor = factor_of.get(name)
                if turn is None:
                    part = np.ones(size) if factor is None else diagonals[factor]
                elif factor is None:
                    part = turn.sum(axis=0) ** 2
                else:
                    part = np.einsum("ij,ij->j", turn, grams[factor] @ turn)
                term = np.multiply.outer(term, part)
            diagonal += term / variance
        return turns, diagonal

    def solve(
        self, right_side: FloatArray, subject: str, tolerance: float = TOLERANCE
    ) -> FloatArray:
        """Return the solution x of M x = right_side.

        Raises:
            UnsupportedQuery: the solver does not converge.
        """
        turn = self.preconditioner.multiply
        right_norm = np.maximum((right_side * turn(right_side)).sum(axis=0), 0.0)
        goal = (tolerance / 2) ** 2 * right_norm
        size = np.sqrt(right_norm)
        x = np.zeros_like(right_side)
        before = math.inf
        worst = math.inf
        # Due to rounding errors, the updated residual of conjugate gradients drifts from the true
        # residual, so the system is solved again for the true residual.
        for _ in range(4):
            if before < math.inf:
                residual = right_side - self.gram(x)
            else:
                residual = right_side
            residual_norm = np.sqrt(np.maximum((residual * turn(residual)).sum(axis=0), 0.0))
            # The largest relative residual.
            worst = float(
                np.max(
                    np.where(
                        size > 0, residual_norm / np.where(size > 0, size, 1.0), residual_norm
                    ),
                    initial=0.0,
                )
            )
            if worst <= tolerance or not worst < before / 2:
                break
            before = worst
            x = x + conjugate_gradients(self.gram, turn, residual, goal)
        if not worst <= tolerance:
            raise UnsupportedQuery(
                f"Least squares for {subject} did not converge: the relative residual is "
                f"{worst:.1e}, and at most {tolerance:.0e} is allowed. Either the answers do not "
                "follow from the measurements, or the noise scales are too unequal for the "
                "solver. Choose another strategy."
            )
        return x


def conjugate_gradients(
    gram: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    right_side: FloatArray,
    tolerance: FloatArray | float,
) -> FloatArray:
    """Return the solution x of M x = right_side, by conjugate gradients.

    Each column is iterated until its residual r satisfies r^T P r <= its tolerance, where P is an
    approximate inverse of M.
    """
    x = np.zeros_like(right_side)
    residual = right_side.copy()
    turned = precondition(residual)
    direction = turned.copy()
    squared = (residual * turned).sum(axis=0)
    best = squared.copy()
    since = 0
    for _ in range(_MOST_STEPS):
        open_ = squared > tolerance
        if not open_.any() or since > _MOST_STALLED_STEPS:
            break
        product = gram(direction)
        curvature = (direction * product).sum(axis=0)
        step = np.where(
            open_ & (curvature > 0), squared / np.where(curvature > 0, curvature, 1.0), 0.0
        )
        x += step * direction
        residual -= step * product
        turned = precondition(residual)
        fresh = (residual * turned).sum(axis=0)
        direction = (
            turned
            + np.where(squared > 0, fresh / np.where(squared > 0, squared, 1.0), 0.0) * direction
        )
        squared = fresh
        better = squared < best / 4
        best = np.where(better, squared, best)
        if (better & open_).any():
            since = 0
        else:
            since += 1
    return x


class DiagonalInBasis(NamedTuple):
    """A symmetric matrix that is diagonal in a basis along each axis.

    None means the standard basis (the cells).
    """

    bases: tuple[FloatArray | None, ...]
    diagonal: FloatArray

    def multiply(self, x: FloatArray) -> FloatArray:
        """Return the matrix times columns, shape (cells, columns).

        The columns are transformed to the basis, multiplied and transformed back.
        """
        cube = x.reshape(
            *(
                size if basis is None else len(basis)
                for size, basis in zip(self.diagonal.shape, self.bases, strict=True)
            ),
            -1,
        )
        for side in (0, 1):
            for axis, basis in enumerate(self.bases):
                if basis is not None:
                    cube = np.moveaxis(np.tensordot(basis, cube, axes=(side, axis)), 0, axis)
            if side == 0:
                cube = cube * self.diagonal[..., None]
        return cube.reshape(x.shape)


def joint_rows_in_parts(
    operators: Sequence[Operator], largest_size: int | None = None
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows of a Kronecker product of operators, part by part.

    Each part is a slice of row numbers, and the rows with these numbers.
    """
    matrices = [dense(operator).astype(float) for operator in operators]
    shape = [len(matrix) for matrix in matrices]
    step = max(1, (largest_size or _AT_ONCE) // math.prod(matrix.shape[1] for matrix in matrices))
    for start in range(0, math.prod(shape), step):
        part = slice(start, min(start + step, math.prod(shape)))
        rows = np.ones((part.stop - start, 1))
        for matrix, indices in zip(
            matrices,
            np.unravel_index(np.arange(part.start, part.stop), shape) if shape else (),
            strict=True,
        ):
            rows = (rows[:, :, None] * matrix[indices][:, None, :]).reshape(len(rows), -1)
        yield part, rows


def joint_variances(covariance: FloatArray, operators: Sequence[Operator]) -> FloatArray:
    """Return q C q for each row q of a Kronecker product, shape (rows,).

    C is the covariance matrix of the joint cells.
    """
    # The loop is over attributes. For each row along the previous attributes, ``left`` has a
    # covariance matrix over the cells of the other attributes. Intervals are differences of its
    # prefix sums.
    remaining = covariance[None]
    for operator in operators:
        before = len(remaining)
        n = operator.size
        m = remaining.shape[1] // operator.size
        cube = remaining.reshape(before, n, m, n, m)
        ends = interval_ends(operator)
        if ends is not None:
            sums = np.zeros((before, n + 1, m, n + 1, m))
            sums[:, 1:, :, 1:] = cube.cumsum(axis=1).cumsum(axis=3)
            low = ends[0]
            high = ends[1] + 1
            differences = (
                sums[:, high, :, high]
                - sums[:, low, :, high]
                - sums[:, high, :, low]
                + sums[:, low, :, low]
            )
            remaining = np.moveaxis(differences, 0, 1)
        else:
            rows = dense(operator).astype(float)
            remaining = np.empty((before, len(rows), m, m))
            step = max(1, _AT_ONCE // (before * n * m * m))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                remaining[:, start : start + step] = np.einsum(
                    "rkxby,rb->krxy", np.tensordot(part, cube, axes=(1, 1)), part
                )
        remaining = remaining.reshape(-1, m, m)
    return remaining.reshape(-1)


class JointStructure(Structure):
    """Least squares over joint cells: covariance and estimate.

    Along an attribute that no block measures, only multiples of the total can be answered.
    """

    __slots__ = ()
    joint: JointBlocks

    @abstractmethod
    def solve(self, gathered: FloatArray) -> FloatArray:
        """Return the covariance matrix of the joint cells times columns.

        The columns have shape (cells, columns).
        """

    @abstractmethod
    def query_variances(self, product: Product) -> FloatArray:
        """Return the variance of each query over the joint cells.

        The array is either flat or has the shape of the product.
        """

    def summed_query_variance(self, product: Product) -> float:
        """Return the sum of the variances of all queries over the joint cells."""
        return float(self.query_variances(product).sum())

    def largest_query_variance(self, product: Product) -> float:
        """Return an upper bound on the variances of all queries."""
        return float(self.query_variances(product).max())

    def variances(self, product: Product) -> FloatArray:
        """Return the variance of each answer, shape ``product.shape``."""
        self.require(product)
        inner, shape, times = split_product(product, self.joint.names)
        return np.asarray(self.query_variances(inner).reshape(shape) * times**2)

    def errors(self, product: Product) -> Errors:
        """Return the sum and the maximum of the variances of the answers."""
        if product.rows <= MOST_LISTED:
            variances = self.variances(product)
            return Errors(float(variances.sum()), float(variances.max()))
        inner, _, times = split_product(product, self.joint.names)
        return Errors(
            self.total(product),
            self.largest_query_variance(inner) * float((times**2).max()),
            is_exact=False,
        )

    def total(self, product: Product) -> float:
        """Return the sum of the variances of all answers."""
        self.require(product)
        inner, _, times = split_product(product, self.joint.names)
        return self.summed_query_variance(inner) * float((times**2).sum())

    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Return the covariance matrix between the answers of two products."""
        self.require(product)
        self.require(other)
        (first, rows, times), (second, columns, factors) = (
            split_product(requested, self.joint.names) for requested in (product, other)
        )
        covariance = np.empty((first.rows, second.rows))
        for part, queries in joint_rows_in_parts(self.joint.operators(first)):
            cube = self.solve(queries.T).reshape(*self.joint.shape, -1)
            covariance[part] = (
                apply_along_axes(self.joint.operators(second), cube).reshape(second.rows, -1).T
            )
        return np.asarray(
            covariance.reshape((*rows, *columns)) * np.multiply.outer(times, factors)
        ).reshape(product.rows, other.rows)

    def cells(self, noisy_blocks: Sequence[NoisyBlock]) -> JointCells:
        """Return the least-squares cells from noisy blocks."""
        gathered = self.joint.gather([noisy.values[:, None] for noisy in noisy_blocks])
        return JointCells(self.joint.names, self.solve(gathered).reshape(self.joint.shape))


@dataclass(frozen=True, slots=True, eq=False)
class DenseStructure(JointStructure):
    """Least squares over joint cells with a dense covariance matrix."""

    joint: JointBlocks
    inverse: FloatArray
    row_space: RowSpace

    def require(self, product: Product) -> None:
        """Raise unless the measurements determine every query of a product."""
        every = self.joint.operators(split_product(product, self.joint.names)[0])
        if not self.row_space.is_full:
            # The set of all ranges spans the same space as the cells.
            operators = [
                Identity(operator.size) if operator == AllRanges(operator.size) else operator
                for operator in every
            ]
            if not all(
                self.row_space.contains_rows(rows) for _, rows in joint_rows_in_parts(operators)
            ):
                raise undetermined_error(product)

    def solve(self, gathered: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times columns."""
        return self.inverse @ gathered

    def query_variances(self, product: Product) -> FloatArray:
        """Return the variance of each query, from the inverse Gram matrix."""
        return joint_variances(self.inverse, self.joint.operators(product))

    def summed_query_variance(self, product: Product) -> float:
        """Return the sum of the variances of all queries."""
        cube = apply_along_axes(
            self.joint.operators(product), self.inverse.reshape(*self.joint.shape, -1), apply_gram
        )
        return float(np.trace(cube.reshape(self.inverse.shape)))

    def largest_query_variance(self, product: Product) -> float:
        """Return an upper bound on the variances of all queries."""
        norms = math.prod(
            CellsInverse.of_identity(operator.size).largest_variance(operator)
            for operator in self.joint.operators(product)
        )
        return float(np.linalg.eigvalsh(self.inverse)[-1]) * norms


def dense_structure(domain: Domain, joint: JointBlocks) -> DenseStructure:
    """Return the joint form with a dense covariance matrix."""
    gram = np.zeros((joint.cells, joint.cells))
    unit_gram = np.zeros((joint.cells, joint.cells))
    for block, variance in joint.blocks:
        rows = block_rows(
            domain, joint.names, replace(block, factors=tuple(filter(is_nontrivial, block.factors)))
        )
        gram += rows.T @ rows / variance
        unit_queries = unit_rows(rows)
        unit_gram += unit_queries.T @ unit_queries
    space = row_space_of_gram(unit_gram)
    inverse = invert_within(gram, space)
    if inverse is None:
        raise UnsupportedQuery(
            f"The noise of the queries measured on {' x '.join(joint.names)} is too unequal. "
            "Choose another strategy."
        )
    return DenseStructure(joint, inverse, space)


def confidence_factor(draws: int) -> float:
    """Return the factor that makes a simulated variance an upper bound.

    After multiplication by this factor, the variance is too small with a probability of 1 in 1000.
    """
    from scipy.special import gammaincinv

    return float(draws / (2 * gammaincinv(draws / 2, _UNDERSTATEMENT_RISK)))


@dataclass(frozen=True, eq=False)
class IterativeStructure(JointStructure):
    """Least squares over many joint cells by conjugate gradients.

    Use this form for blocks without a product form on more than 4096 joint cells.
    """

    joint: JointBlocks
    _known: dict[Product, FloatArray] = field(default_factory=dict, repr=False)
    _determined: set[Product] = field(default_factory=set, repr=False)

    def require(self, product: Product) -> None:
        """Raise unless the measurements determine every query of a product."""
        inner, _, _ = split_product(product, self.joint.names)
        if inner in self._known or inner in self._determined:
            return
        # With probability 1, a random combination of all queries lies in the span only if every
        # query does.
        generator = np.random.default_rng(_SEED)
        operators = self.joint.operators(inner)
        mixed = apply_along_axes(
            operators,
            generator.standard_normal([operator.rows for operator in operators]),
            apply_transpose,
        )
        # Without a solution, the steps may grow without limit.
        with np.errstate(over="ignore", invalid="ignore"):
            self.joint.solve(mixed.reshape(-1, 1), inner.name, _ERROR_TOLERANCE)
        self._determined.add(inner)

    def query_variances(self, product: Product) -> FloatArray:
        """Return the variance of each query: exact for few queries, else simulated."""
        if product not in self._known:
            if product.rows > _MOST_SIMULATED:
                raise UnsupportedQuery(
                    f"The error bars of {product.name} would have to be simulated for each of its "
                    f"{product.rows} answers; the program simulates at most {_MOST_SIMULATED}. "
                    "Choose another strategy, or ask for fewer queries."
                )
            needed = 64 * max(product.rows, self.joint.cells)
            require_memory(
                needed,
                f"The error bars of {product.name} from a linear solver",
                "Choose another strategy.",
            )
            operators = self.joint.operators(product)
            if (
                product.rows <= _MOST_EXACT
                and product.rows * self.joint.cells <= _MOST_EXACT_NUMBERS
            ):
                parts = joint_rows_in_parts(operators, _MOST_COLUMNS)
                each = [
                    (rows.T * self.joint.solve(rows.T, product.name, _ERROR_TOLERANCE)).sum(axis=0)
                    for _, rows in parts
                ]
                variances = np.concatenate(each)
            else:  # an upper bound from simulated draws
                squares = np.zeros(product.rows)
                count = 0
                for errors in self._errors:
                    for column in errors.T:
                        squares += (
                            apply_along_axes(
                                operators, column.astype(float).reshape(self.joint.shape)
                            ).reshape(-1)
                            ** 2
                        )
                        count += 1
                variances = squares / count * confidence_factor(count)
            self._known[product] = variances.reshape(product.shape)
        return self._known[product]

    def solve(self, gathered: FloatArray) -> FloatArray:
        """Return the covariance matrix times columns, by conjugate gradients."""
        return self.joint.solve(gathered, "the estimate")

    @property
    def solver_cells(self) -> int:
        """The number of joint cells of the iterative solver."""
        return self.joint.cells

    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Raise UnsupportedQuery, because the solver computes no covariances."""
        raise UnsupportedQuery(
            f"The covariances of {product.name} and {other.name} are not computed, because the "
            "estimates of this strategy need a linear solver. Choose another strategy, such as "
            "marginals."
        )

    @cached_property
    def _errors(self) -> list[np.ndarray]:
        """Simulated errors of the joint cells, in batches (cells, draws).

        The arrays are float32 to save memory.
        """
        generator = np.random.default_rng(_SEED)
        joint = self.joint
        draws = int(min(max(_DRAWN_NUMBERS // joint.cells, _DRAW_LIMITS[0]), _DRAW_LIMITS[1]))
        step = max(
            1,
            min(
                draws, _MOST_COLUMNS // max(joint.cells, *(block.rows for block, _ in joint.blocks))
            ),
        )
        errors = []
        for start in range(0, draws, step):
            values = []
            for block, variance in joint.blocks:
                noise = generator.standard_normal((block.rows, min(step, draws - start)))
                values.append(noise * (math.sqrt(variance) / block.scaling())[:, None])
            errors.append(
                joint.solve(joint.gather(values), "its error bars", _ERROR_TOLERANCE).astype(
                    np.float32
                )
            )
        return errors
