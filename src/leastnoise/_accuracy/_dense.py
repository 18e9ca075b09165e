"""The dense form of the covariance: one matrix over the product of the measured attributes, at most 4096 cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._accuracy._blocks import block_rows
from leastnoise._accuracy._determined import Span, UnsupportedQuery, require, split, undetermined
from leastnoise._accuracy._form import JointCells, Measured, Structure
from leastnoise._accuracy._joint import Joint, used
from leastnoise._accuracy._joint_rows import joint_rows, joint_rows_in_parts, joint_variances
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import MOST_LISTED, Errors, IdentityBasis, RowSpace, apply_gram, inverted, of_gram, spanning, unit_rows
from leastnoise._linop import Operator, Total, along
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class DenseStructure(Structure):
    """Covariance as one matrix over the product of the measured attributes."""

    joint: Joint
    inverse: FloatArray
    space: RowSpace
    span: Span | None = None

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine."""
        if not require(self.span, product) and not self.space.everything:
            asked = [spanning(one) for one in self.operators(split(product, self.joint.names)[0])]
            if not all(self.space.holds_rows(rows) for _, rows in joint_rows_in_parts(asked)):
                raise undetermined(product)

    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``."""
        self.require(product)
        inner, shape, times = split(product, self.joint.names)
        return joint_variances(self.inverse, self.operators(inner)).reshape(shape) * times**2

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers."""
        if product.rows <= MOST_LISTED:
            found = self.variances(product)
            return Errors(float(found.sum()), float(found.max()))
        inner, _, times = split(product, self.joint.names)
        top = float(np.linalg.eigvalsh(self.inverse)[-1])  # no variance is above this times the squared norm of its query
        norms = math.prod(IdentityBasis(operator.size).largest_variance(operator) for operator in self.operators(inner))
        return Errors(self.total(product), top * norms * float((times**2).max()), exact=False)

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers, without listing them: tr(M C)."""
        self.require(product)
        inner, _, times = split(product, self.joint.names)
        return self._traced(self.inverse, self.operators(inner)) * float((times**2).sum())

    def _traced(self, matrix: FloatArray, operators: Sequence[Operator]) -> float:
        cube = matrix.reshape(*self.joint.shape, -1)
        for axis, operator in enumerate(operators):
            cube = along(apply_gram, operator, cube, axis)
        return float(np.trace(cube.reshape(matrix.shape)))

    def operators(self, product: Product) -> list[Operator]:
        """The queries along every attribute of the joint cells."""
        operators = dict(zip(product.attributes, product.operators, strict=True))
        return [operators.get(name, Total(size)) for name, size in zip(self.joint.names, self.joint.shape, strict=True)]

    def covariance(self, one: Product, other: Product) -> FloatArray:
        """Covariance of every answer of a product with every answer of another."""
        self.require(one)
        self.require(other)
        return self._rows(one) @ self.inverse @ self._rows(other).T

    def cells(self, measured: Sequence[Measured]) -> JointCells:
        """The covariance times what the tables say of every cell."""
        gathered = self.joint.gather([one.values[:, None] for one in measured])
        return JointCells(self.joint.names, (self.inverse @ gathered[:, 0]).reshape(self.joint.shape))

    def _rows(self, product: Product) -> FloatArray:
        """The queries over the joint cells, shape (product.rows, cells)."""
        inner, shape, times = split(product, self.joint.names)
        rows = joint_rows(self.operators(inner)).reshape(*shape, -1) * times[..., None]
        return rows.reshape(product.rows, -1)


def dense_structure(domain: Domain, joint: Joint, span: Span | None = None) -> DenseStructure:
    gram, counted = np.zeros((joint.cells, joint.cells)), np.zeros((joint.cells, joint.cells))
    for block, variance in joint.blocks:
        own = replace(block, factors=tuple(filter(used, block.factors)))
        rows = block_rows(domain, joint.names, own)
        gram += rows.T @ rows / variance
        whole = unit_rows(rows)
        counted += whole.T @ whole
    space = of_gram(counted)
    inverse = inverted(gram, space)
    if inverse is None:
        raise UnsupportedQuery(f"The noise of the queries measured on {' x '.join(joint.names)} is too unequal. Choose another strategy.")
    return DenseStructure(joint, inverse, space, span)
