"""The covariance of least squares from two tables of any strategies: two forms along an attribute always are diagonal in one basis.

In that basis V the information matrix of both tables has the entries lambda(k) = p prod_i a_i[k_i] + q prod_i b_i[k_i], p and q one over
the noise variances; a query has the variance sum over k of prod_i (q_i V_i^+)[k_i]^2 / lambda(k), and is determined if it has no part
outside the space of V and none where lambda is 0. Nothing is larger than one joint table.

Source: simultaneous diagonalisation of two quadratic forms; docs/mathematics.md, section 6.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._accuracy._determined import Span, require, split, undetermined
from leastnoise._accuracy._form import JointCells, Measured
from leastnoise._accuracy._joint import Joint, JointStructure, Turned
from leastnoise._check.arrays import FloatArray
from leastnoise._families import DenseBasis, applied_in_parts, apply_gram, weighted_gram
from leastnoise._linop import Operator
from leastnoise._measurements import Block, Factor
from leastnoise._workload import Product

MOST_LONG = 2048
"""The longest attribute whose eigenvectors are affordable."""
_ZERO = 1e-9
_NUMBERS = 2**24  # at a time


@dataclass(frozen=True, slots=True, eq=False)
class PairAxis:
    """Two strategies along one attribute in their common basis of r vectors."""

    outward: FloatArray
    shares: tuple[FloatArray, FloatArray]
    determined: FloatArray | None

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.outward)

    def sees(self, operator: Operator) -> bool:
        """Whether the rows of an operator are within what is seen."""
        if self.determined is None:
            return True
        asked, seen = (float(np.trace(apply_gram(operator, part))) for part in (np.eye(self.size), self.determined))
        return asked - seen <= _ZERO * asked

    def squares(self, operator: Operator) -> Iterator[tuple[slice, FloatArray]]:
        """(q V^+)^2 for some rows q at a time: which, and an array of shape (rows, r)."""
        for part, rows in applied_in_parts(operator, self.outward):
            yield part, rows**2

    def largest(self, operator: Operator) -> float:
        """The largest sum of the squares of a row."""
        return DenseBasis(self.outward @ self.outward.T).largest_variance(operator)

    def summed(self, operator: Operator) -> FloatArray:
        """The sum of ``squares`` over the rows, without listing them, shape (r,)."""
        return np.maximum((self.outward * apply_gram(operator, self.outward)).sum(axis=0), 0.0)


def pair_axis(size: int, factors: tuple[Factor | None, Factor | None]) -> PairAxis:
    """The common basis of two strategies along an attribute; None is for summing over it."""
    forms = [np.ones((size, size)) if factor is None else weighted_gram(factor) for factor in factors]
    # Forms of like size: which of the two a vector belongs to is then seen from its shares.
    sizes = [float(np.trace(form)) / size for form in forms]
    first, second = (form / scale for form, scale in zip(forms, sizes, strict=True))
    values, vectors = np.linalg.eigh(first + second)
    kept = values > 1e-10 * values[-1]
    whitened = vectors[:, kept] / np.sqrt(values[kept])
    shares, turn = np.linalg.eigh(whitened.T @ first @ whitened)
    # From the largest share of the first on; rounding errors of 0 are 0.
    shares, outward = np.clip(shares[::-1], 0.0, 1.0), whitened @ turn[:, ::-1]
    a, b = (np.where(share > _ZERO, share, 0.0) for share in (shares, 1 - shares))
    projector = None if kept.all() else vectors[:, kept] @ vectors[:, kept].T
    return PairAxis(outward, (a * sizes[0], b * sizes[1]), projector)


@dataclass(frozen=True, slots=True, eq=False)
class PairStructure(JointStructure):
    """Covariance of least squares from two tables."""

    joint: Joint
    axes: Mapping[str, PairAxis]
    information: FloatArray
    span: Span | None = None

    def asked(self, product: Product) -> FloatArray:
        """What each entry of one over ``information`` adds to the total variance of a product's answers, of that shape."""
        return _outer(self._summed(self.operators(product)))

    def inverse(self) -> FloatArray:
        """One over lambda, 0 where nothing is known."""
        return np.divide(1.0, self.information, out=np.zeros_like(self.information), where=self.information > 0)

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine, or only with noise too unequal for the solver."""
        inner, _, _ = split(product, self.joint.names)
        self._refuse_undetermined(product, self._summed(self.operators(inner)))

    def listed(self, product: Product) -> FloatArray:
        cube = self.inverse()
        operators = enumerate(zip(self.axes.values(), self.joint.operators(product), strict=True))
        # What shrinks the array most comes first.
        for axis_number, (axis, operator) in sorted(operators, key=lambda pair: pair[1][1].rows / pair[1][1].size):
            moved = np.moveaxis(cube, axis_number, 0)
            answer = np.empty((operator.rows, *moved.shape[1:]))
            for part, weight in axis.squares(operator):
                answer[part] = np.tensordot(weight, moved, axes=(1, 0))
            cube = np.moveaxis(answer, 0, axis_number)
        return cube

    def summed(self, product: Product) -> float:
        return _contracted(self.inverse(), self._summed(self.joint.operators(product)))

    def most(self, product: Product) -> float:
        each = zip(self.axes.values(), self.joint.operators(product), strict=True)
        return float(self.inverse().max()) * math.prod(axis.largest(operator) for axis, operator in each)

    def solve(self, gathered: FloatArray) -> FloatArray:
        return Turned(self.joint.shape, tuple(axis.outward for axis in self.axes.values()), self.inverse()[..., None]).apply(gathered)

    def cells(self, measured: Sequence[Measured]) -> JointCells:
        """What rounding left of the residual, where weights are very unequal, is solved for again."""
        values = [table.values[:, None] for table in measured]
        cells = self.solve(self.joint.gather(values))
        left = [own - self.joint.answers(block, cells) for own, (block, _) in zip(values, self.joint.blocks, strict=True)]
        return JointCells(self.joint.names, (cells + self.solve(self.joint.gather(left))).reshape(self.joint.shape))

    def operators(self, product: Product) -> list[Operator]:
        """The queries along every attribute that a table measures."""
        require(self.span, product)
        operators = self.joint.operators(product)
        if not all(axis.sees(operator) for axis, operator in zip(self.axes.values(), operators, strict=True)):
            raise undetermined(product)
        return operators

    def _summed(self, operators: Sequence[Operator]) -> list[FloatArray]:
        return [axis.summed(operator) for axis, operator in zip(self.axes.values(), operators, strict=True)]

    def _refuse_undetermined(self, product: Product, weights: Sequence[FloatArray]) -> None:
        unknown = self.information <= 0
        if unknown.any():
            lost, whole = (_contracted(cube, weights) for cube in (unknown.astype(float), np.ones(unknown.shape)))
            if not lost <= _ZERO * whole:
                raise undetermined(product)


def _contracted(cube: FloatArray, weights: Sequence[FloatArray]) -> float:
    for weight in weights:
        cube = np.tensordot(weight, cube, axes=(0, 0))
    return float(cube)


def pair_structure(sizes: Mapping[str, int], tables: Sequence[tuple[Block, float]], span: Span | None = None) -> PairStructure:
    """The structure of two tables."""
    along_each = [{factor.attributes[0]: factor for factor in block.factors} for block, _ in tables]
    axes = {name: pair_axis(size, (along_each[0].get(name), along_each[1].get(name))) for name, size in sizes.items()}
    first, second = (term / variance for term, (_, variance) in zip(pair_terms(axes), tables, strict=True))
    return PairStructure(Joint(tuple(sizes), tuple(sizes.values()), tuple(tables)), axes, first + second, span)


def pair_terms(axes: Mapping[str, PairAxis]) -> tuple[FloatArray, FloatArray]:
    """What each table adds to the information per unit of precision, two arrays of its shape."""
    first, second = (_outer([axis.shares[end] for axis in axes.values()]) for end in (0, 1))
    return first, second


def _outer(parts: Sequence[FloatArray]) -> FloatArray:
    whole: FloatArray = np.ones(())
    for part in parts:
        whole = np.multiply.outer(whole, part)
    return whole


def is_pair(sizes: Mapping[str, int], blocks: Sequence[Block], most: int) -> bool:
    """Whether blocks are two tables whose joint table of those sizes is affordable, each factor along one attribute."""
    return (
        len(blocks) == 2
        and all(len(factor.attributes) == 1 for block in blocks for factor in block.factors)
        and all(size <= MOST_LONG for size in sizes.values())
        and math.prod(sizes.values()) <= most
    )
