"""The covariance from two tables of different strategies.

The tables have a common basis along each attribute.

Two quadratic forms along an attribute are always diagonal in a common basis. In that basis V, the
information matrix of both tables is diagonal. The entries of this matrix are lambda(k) = p prod_i
a_i[k_i] + q prod_i b_i[k_i], where p and q are the inverses of the noise variances. The variance of
a query is the sum over k of prod_i (q_i V_i^+)[k_i]^2 / lambda(k). The query is determined if it
lies in the span of V and has no component for which lambda is 0.

Source: simultaneous diagonalisation of two quadratic forms; docs/mathematics.md, section 6.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from leastnoise._error._equations import JointCells, NoisyBlock, is_nontrivial
from leastnoise._error._joint import DiagonalInBasis, JointBlocks, JointStructure
from leastnoise._error._undetermined import split_product, undetermined_error
from leastnoise._families import DenseInverse, apply_gram, apply_in_parts, weighted_gram
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Operator
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import Product

_NEGLIGIBLE_RATIO = 1e-9  # numbers of smaller relative size are treated as zero


@dataclass(frozen=True, slots=True, eq=False)
class PairAxis:
    """Two strategies along one attribute, in a basis that diagonalises both.

    ``projector`` is the projector on the span of the basis; None if it spans the whole space.
    """

    pseudo_inverse: FloatArray
    shares: tuple[FloatArray, FloatArray]
    projector: FloatArray | None

    @staticmethod
    def of(size: int, factors: tuple[Factor | None, Factor | None]) -> "PairAxis":
        """Return the basis in which the Gram matrices of two factors are diagonal.

        If a factor is None, its table sums over the attribute.
        """
        forms = [
            np.ones((size, size)) if factor is None else weighted_gram(factor) for factor in factors
        ]
        # The two forms are scaled to equal trace. Then a share near 1 or 0 means that a vector
        # belongs to one of the forms.
        sizes = [float(np.trace(form)) / size for form in forms]
        first, second = (form / scale for form, scale in zip(forms, sizes, strict=True))
        values, vectors = np.linalg.eigh(first + second)
        is_positive = values > 1e-10 * values[-1]
        whitened = vectors[:, is_positive] / np.sqrt(values[is_positive])
        shares, turn = np.linalg.eigh(whitened.T @ first @ whitened)
        # The vector with the largest share of the first form comes first. Shares that differ from 0
        # only by rounding become 0.
        shares = np.clip(shares[::-1], 0.0, 1.0)
        outward = whitened @ turn[:, ::-1]
        a, b = (np.where(share > _NEGLIGIBLE_RATIO, share, 0.0) for share in (shares, 1 - shares))
        if is_positive.all():
            projector = None
        else:
            projector = vectors[:, is_positive] @ vectors[:, is_positive].T
        return PairAxis(outward, (a * sizes[0], b * sizes[1]), projector)

    def spans(self, operator: Operator) -> bool:
        """Return whether every row of an operator lies in the span of the basis."""
        if self.projector is None:
            return True
        query_norm, projected_norm = (
            float(np.trace(apply_gram(operator, part)))
            for part in (np.eye(len(self.pseudo_inverse)), self.projector)
        )
        return query_norm - projected_norm <= _NEGLIGIBLE_RATIO * query_norm

    def summed_squares(self, operator: Operator) -> FloatArray:
        """Return the sum of (q V^+)^2 over rows q, for each basis vector.

        The rows are not computed one by one.
        """
        return np.maximum(
            (self.pseudo_inverse * apply_gram(operator, self.pseudo_inverse)).sum(axis=0), 0.0
        )


@dataclass(frozen=True, eq=False)
class PairStructure(JointStructure):
    """Least squares from two tables, in a common basis along each attribute."""

    joint: JointBlocks
    axes: Mapping[str, PairAxis]
    information: FloatArray

    @cached_property
    def inverse(self) -> DiagonalInBasis:
        """The inverse Gram matrix, which is diagonal in the common basis."""
        reciprocal = np.divide(
            1.0, self.information, out=np.zeros_like(self.information), where=self.information > 0
        )
        return DiagonalInBasis(
            tuple(axis.pseudo_inverse for axis in self.axes.values()), reciprocal
        )

    def _summed(self, product: Product) -> list[FloatArray]:
        """Return, for each attribute, the sum of (q V^+)^2 over a product's rows."""
        return [
            axis.summed_squares(operator)
            for axis, operator in zip(
                self.axes.values(), self.joint.operators(product), strict=True
            )
        ]

    def total_coefficients(self, product: Product) -> FloatArray:
        """Return the coefficients of 1 / eigenvalue in the sum of variances.

        The measurements must determine the product.
        """
        self._require_determined(product)
        return _outer(self._summed(product))

    def _require_determined(self, product: Product) -> None:
        """Raise unless the measurements determine every query of a product."""
        if not all(
            axis.spans(operator)
            for axis, operator in zip(
                self.axes.values(), self.joint.operators(product), strict=True
            )
        ):
            raise undetermined_error(product)

    def require(self, product: Product) -> None:
        """Raise unless the measurements determine a product accurately.

        An error is also raised if the noise of the two tables is too unequal for an accurate
        solution.
        """
        inner, _, _ = split_product(product, self.joint.names)
        self._require_determined(inner)
        weights = self._summed(inner)
        unknown = self.information <= 0
        if unknown.any():
            lost, total_weight = (
                _contracted(cube, weights)
                for cube in (unknown.astype(float), np.ones(unknown.shape))
            )
            if not lost <= _NEGLIGIBLE_RATIO * total_weight:
                raise undetermined_error(product)

    def query_variances(self, product: Product) -> FloatArray:
        """Return the variance of each query, with one axis for each attribute."""
        cube = self.inverse.diagonal
        operators = enumerate(zip(self.axes.values(), self.joint.operators(product), strict=True))
        # Start with the factor that reduces the array most.
        for axis_number, (axis, operator) in sorted(
            operators, key=lambda pair: pair[1][1].rows / pair[1][1].size
        ):
            moved = np.moveaxis(cube, axis_number, 0)
            answer = np.empty((operator.rows, *moved.shape[1:]))
            for part, rows in apply_in_parts(operator, axis.pseudo_inverse):
                answer[part] = np.tensordot(rows**2, moved, axes=(1, 0))
            cube = np.moveaxis(answer, 0, axis_number)
        return cube

    def summed_query_variance(self, product: Product) -> float:
        """Return the sum of the variances of all queries."""
        return _contracted(self.inverse.diagonal, self._summed(product))

    def largest_query_variance(self, product: Product) -> float:
        """Return an upper bound on the largest variance of a query."""
        each = zip(self.axes.values(), self.joint.operators(product), strict=True)
        largest = [
            DenseInverse(axis.pseudo_inverse @ axis.pseudo_inverse.T).largest_variance(operator)
            for axis, operator in each
        ]
        return float(self.inverse.diagonal.max()) * math.prod(largest)

    def solve(self, gathered: FloatArray) -> FloatArray:
        """Return the inverse Gram matrix times columns."""
        return self.inverse.multiply(gathered)

    def cells(self, noisy_blocks: Sequence[NoisyBlock]) -> JointCells:
        """Return the least-squares cells, after one step of iterative refinement.

        The refinement is needed for very unequal weights.
        """
        values = [noisy.values[:, None] for noisy in noisy_blocks]
        cells = self.solve(self.joint.gather(values))
        residuals = [
            column - answers
            for column, answers in zip(values, self.joint.answers(cells), strict=True)
        ]
        return JointCells(
            self.joint.names,
            (cells + self.solve(self.joint.gather(residuals))).reshape(self.joint.shape),
        )


def _contracted(array: FloatArray, weights: Sequence[FloatArray]) -> float:
    """Return the weighted sum of an array, with a weight vector for each axis."""
    for weight in weights:
        array = np.tensordot(weight, array, axes=(0, 0))
    return float(array)


def _outer(vectors: Sequence[FloatArray]) -> FloatArray:
    """Return the outer product of vectors, with one axis for each."""
    return reduce(np.multiply.outer, vectors, np.ones(()))


def pair_terms(axes: Mapping[str, PairAxis]) -> tuple[FloatArray, FloatArray]:
    """Return the contribution of each table to the eigenvalues at unit noise.

    The contributions are prod a_i and prod b_i in lambda.
    """
    first = _outer([axis.shares[0] for axis in axes.values()])
    second = _outer([axis.shares[1] for axis in axes.values()])
    return first, second


def pair_structure(
    sizes: Mapping[str, int], tables: Sequence[tuple[Block, float]]
) -> PairStructure:
    """Return the least-squares form for two tables over their joint cells.

    The joint cells are the combinations of the attributes of both tables.
    """
    along = []
    for block, _ in tables:
        nontrivial = [factor for factor in block.factors if is_nontrivial(factor)]
        along.append({factor.attributes[0]: factor for factor in nontrivial})
    axes = {
        name: PairAxis.of(size, (along[0].get(name), along[1].get(name)))
        for name, size in sizes.items()
    }
    first, second = (
        term / variance for term, (_, variance) in zip(pair_terms(axes), tables, strict=True)
    )
    return PairStructure(
        JointBlocks(tuple(sizes), tuple(sizes.values()), tuple(tables)), axes, first + second
    )
