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
from leastnoise._accuracy._form import Errors, JointCells, Measured, Structure
from leastnoise._accuracy._joint import Joint
from leastnoise._check.arrays import FloatArray
from leastnoise._families import MOST_LISTED, DenseBasis, applied_in_parts, apply_gram, weighted_gram
from leastnoise._linop import Operator, Total, apply
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
class PairStructure(Structure):
    """Covariance of least squares from two tables."""

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
        inner, _, _ = split(product, self.axes)
        self._refuse_undetermined(product, self._summed(self.operators(inner)))

    def variances(self, product: Product) -> FloatArray:
        inner, shape, times = split(product, self.axes)
        if inner is not product:
            return self.variances(inner).reshape(shape) * times**2
        operators = self.operators(product)
        self._refuse_undetermined(product, self._summed(operators))
        cube = self.inverse()
        # What shrinks the array most comes first.
        for axis_number, operator in sorted(enumerate(operators), key=lambda pair: pair[1].rows / pair[1].size):
            moved = np.moveaxis(cube, axis_number, 0)
            answer = np.empty((operator.rows, *moved.shape[1:]))
            for part, weight in list(self.axes.values())[axis_number].squares(operator):
                answer[part] = np.tensordot(weight, moved, axes=(1, 0))
            cube = np.moveaxis(answer, 0, axis_number)
        return cube.reshape(product.shape)

    def errors(self, product: Product) -> Errors:
        if product.rows <= MOST_LISTED:
            variances = self.variances(product)
            return Errors(float(variances.sum()), float(variances.max()))
        inner, _, times = split(product, self.axes)
        if inner is not product:
            return self.errors(inner).times(times)
        each = zip(self.axes.values(), self.operators(product), strict=True)
        return Errors(
            self.total(product), float(self.inverse().max()) * math.prod(axis.largest(operator) for axis, operator in each), exact=False
        )

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers, without listing them."""
        inner, _, times = split(product, self.axes)
        weights = self._summed(self.operators(inner))
        self._refuse_undetermined(product, weights)
        return _contracted(self.inverse(), weights) * float((times**2).sum())

    def covariance(self, product: Product, other: Product) -> FloatArray:
        self.require(product)
        self.require(other)
        (first, rows, times), (second, columns, factors) = (split(asked, self.axes) for asked in (product, other))
        covariance = self._covariance(self._turned(first), self._turned(second)).reshape(*rows, *columns)
        return np.asarray(covariance * np.multiply.outer(times, factors)).reshape(product.rows, other.rows)

    def _turned(self, product: Product) -> list[FloatArray]:
        """q V^+ for the rows q along every attribute, shape (rows, vectors)."""
        return [
            np.asarray(apply(operator, axis.outward)) for axis, operator in zip(self.axes.values(), self.operators(product), strict=True)
        ]

    def _covariance(self, first: Sequence[FloatArray], second: Sequence[FloatArray]) -> FloatArray:
        shape = [len(axis) for axis in first]
        inverse, covariance = self.inverse(), np.empty((math.prod(shape), math.prod(len(axis) for axis in second)))
        step = max(1, _NUMBERS // inverse.size)
        for start in range(0, len(covariance), step):
            part = np.arange(start, min(start + step, len(covariance)))
            cube = np.ones((len(part),))
            for axis, index in zip(first, np.unravel_index(part, shape), strict=True):
                cube = cube[..., None] * axis[index].reshape(len(part), *[1] * (cube.ndim - 1), -1)
            cube = cube * inverse
            for axis in second:
                cube = np.tensordot(cube, axis, axes=(1, 1))
            covariance[part] = cube.reshape(len(part), -1)
        return covariance

    def cells(self, measured: Sequence[Measured]) -> JointCells:
        """By coordinates; what rounding left of the residual, where weights are very unequal, is solved for again."""
        blocks = tuple((table.block, table.variance) for table in measured)
        joint = Joint(tuple(self.axes), tuple(axis.size for axis in self.axes.values()), blocks)
        values = [table.values[:, None] for table in measured]
        cells = self._solved(joint.gather(values).reshape(joint.shape))
        left = [own - joint.answers(block, cells) for own, (block, _) in zip(values, blocks, strict=True)]
        return JointCells(joint.names, cells + self._solved(joint.gather(left).reshape(joint.shape)))

    def _solved(self, cube: FloatArray) -> FloatArray:
        """The inverse of the information matrix times cells."""
        for axis in self.axes.values():
            cube = np.tensordot(cube, axis.outward, axes=(0, 0))
        cube = cube * self.inverse()
        for axis in self.axes.values():
            cube = np.tensordot(cube, axis.outward, axes=(0, 1))
        return cube

    def operators(self, product: Product) -> list[Operator]:
        """The queries along every attribute that a table measures."""
        require(self.span, product)
        asked = dict(zip(product.attributes, product.operators, strict=True))
        if not set(asked) <= set(self.axes):
            raise undetermined(product)
        operators: list[Operator] = [asked.get(name, Total(axis.size)) for name, axis in self.axes.items()]
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
    return PairStructure(axes, first + second, span)


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
