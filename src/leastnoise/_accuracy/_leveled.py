"""The covariance of tables of the levels of one attribute, each by any other attributes, along which all tables use one strategy.

On every residual space tau of the other attributes the tables are levels with weights of their own along the one attribute:

    X(tau) = sum over tables (l, S), S containing tau, of prod over i in S but not in tau of 1 / kappa_i * P_l^T diag(p(l, S)) P_l
    Var(q) = sum over tau within T of q_l X(tau)^-1 q_l * prod_{i in tau} q_i R_i q_i * prod_{i in T but not tau} (q_i mean_i)^2

with P_l the groups of level l, whatever their sizes, and p the precisions of a table's rows. Of one level this is the product form, of
equal groups a chain of residual spaces. The estimate is the same sum of solutions of X(tau) u(tau) = what the tables say on tau.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leastnoise._accuracy._determined import Span, require, undetermined
from leastnoise._accuracy._form import Errors, Measured, Structure
from leastnoise._accuracy._measured import Names, subsets, used
from leastnoise._accuracy._product import ProductStructure
from leastnoise._check.arrays import FloatArray
from leastnoise._families import MOST_LISTED, LevelInverse, Levels, leaves_out_total
from leastnoise._linop import Operator, Total, apply_transpose
from leastnoise._measurements import Block, Factor
from leastnoise._workload import Product


@dataclass(frozen=True, slots=True, eq=False)
class LevelStructure(Structure):
    """Covariance of least squares from tables of levels."""

    name: str
    levels: Levels
    precisions: Mapping[Names, Sequence[float | FloatArray]]  # for every tau that is measured, of every level or each of its groups
    others: ProductStructure  # what is known along the other attributes
    span: Span
    _inverses: dict[Names, LevelInverse] = field(default_factory=dict, repr=False)

    def inverse(self, tau: Names) -> LevelInverse:
        """Of X(tau)."""
        if tau not in self._inverses:
            self._inverses[tau] = LevelInverse(self.levels, tuple(self.precisions[tau]))
        return self._inverses[tau]

    def require(self, product: Product) -> None:
        if not require(self.span, product):
            raise undetermined(product)  # in doubt

    def _asked(self, product: Product) -> tuple[Operator, list[tuple[str, Operator]]]:
        """The queries along the attribute, and along others."""
        along = dict(zip(product.attributes, product.operators, strict=True))
        return along.pop(self.name, Total(self.levels.size)), [*along.items()]

    def variances(self, product: Product) -> FloatArray:
        self.require(product)
        own, others = self._asked(product)
        parts = [self.others.parts(*other_sets) for other_sets in others]
        total = np.zeros([own.rows, *(operator.rows for _, operator in others)])
        for tau in subsets(tuple(name for name, _ in others)):
            if tau in self.precisions:  # else no query has such a part
                term = self.inverse(tau).variances(own)
                for (name, _), (mean, spread) in zip(others, parts, strict=True):
                    term = np.multiply.outer(term, spread if name in tau else mean)
                total += term
        axis = product.attributes.index(self.name) if self.name in product.attributes else None
        return np.asarray(total[0] if axis is None else np.moveaxis(total, 0, axis))

    def errors(self, product: Product) -> Errors:
        if product.rows <= MOST_LISTED:
            variances = self.variances(product)
            return Errors(float(variances.sum()), float(variances.max()))
        own, others = self._asked(product)
        parts = [self.others.parts(*other_sets) for other_sets in others]
        largest, even = 0.0, all(float(np.ptp(part)) == 0.0 for pair in parts for part in pair)
        for tau in subsets(tuple(name for name, _ in others)):
            if tau in self.precisions:
                term = self.inverse(tau).variances(own)
                even &= float(np.ptp(term)) == 0.0
                each = zip(others, parts, strict=True)
                largest += float(term.max()) * float(
                    np.prod([(spread if name in tau else mean).max() for (name, _), (mean, spread) in each])
                )
        return Errors(self.total(product), largest, exact=even)

    def total(self, product: Product) -> float:
        self.require(product)
        own, others = self._asked(product)
        sums = [self.others.sums(*other_sets) for other_sets in others]
        answer = 0.0
        for tau in subsets(tuple(name for name, _ in others)):
            if tau in self.precisions:
                each = zip(others, sums, strict=True)
                across = np.prod([spread if name in tau else along for (name, _), (along, spread) in each])
                answer += self.inverse(tau).total_variance(own) * float(across)
        return answer

    def covariance(self, product: Product, other: Product) -> FloatArray:
        self.require(product)
        self.require(other)
        inverses = {tau: self.inverse(tau) for tau in self.precisions}
        return self.others.covariance_by(product, other, inverses.get, self.name)

    def cells(self, measured: Sequence[Measured]) -> "LevelCells":
        """u(tau) for every tau that is measured."""
        gathered: dict[Names, FloatArray] = {}
        for table in measured:
            for tau, part in self._gathered(table.block, table.values).items():
                gathered[tau] = gathered.get(tau, 0.0) + part / table.variance
        return LevelCells(self, {tau: self.inverse(tau).solve(part) for tau, part in gathered.items()})

    def _gathered(self, block: Block, values: FloatArray) -> dict[Names, FloatArray]:
        """What a table says on every tau: the attribute's cells first, then those of tau."""
        factors = [factor for factor in block.factors if used(factor)]
        cube = values.reshape([factor.operator.rows for factor in factors])
        place = next((at for at, factor in enumerate(factors) if factor.attributes == (self.name,)), None)
        own = Factor((self.name,), Total(self.levels.size)) if place is None else factors[place]
        cube = cube[None] if place is None else np.moveaxis(cube, place, 0)
        cube = cube * (own.scaling**2).reshape(-1, *[1] * (cube.ndim - 1))
        parts: dict[Names, FloatArray] = {(): np.asarray(apply_transpose(own.operator, cube), dtype=np.float64)}
        for factor in factors:
            name = factor.attributes[0]
            if name == self.name:
                continue
            basis, split = self.others.bases[name], dict[Names, FloatArray]()
            for tau, part in parts.items():
                weighted = np.moveaxis(part, 1 + len(tau), 0) * (factor.scaling**2).reshape(-1, *[1] * (part.ndim - 1))
                spread = apply_transpose(factor.operator, weighted)
                if not leaves_out_total(factor):
                    split[tau] = np.tensordot(basis.mean, spread, axes=(0, 0))
                split[*tau, name] = np.moveaxis(basis.residual(spread), 0, 1 + len(tau))
            parts = split
        return parts


@dataclass(frozen=True, slots=True, eq=False)
class LevelCells:
    """Estimated cells from tables of levels."""

    structure: LevelStructure
    components: Mapping[Names, FloatArray]
    _latest: dict[Names, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> Names:
        """All attributes."""
        return tuple(self.structure.others.bases)

    def marginal(self, names: Names) -> FloatArray:
        """The estimated cells of a marginal; the latest are kept, as tables of its levels come one after the other."""
        if names not in self._latest:
            self._latest.clear()
            self._latest[names] = self._marginal(names)
        return self._latest[names]

    def _marginal(self, names: Names) -> FloatArray:
        bases, own = self.structure.others.bases, self.structure.name
        others = tuple(name for name in names if name != own)
        answer = np.zeros((self.structure.levels.size if own in names else 1, *(bases[name].size for name in others)))
        for tau in subsets(others):
            if tau in self.components:
                part = self.components[tau] if own in names else self.components[tau].sum(axis=0, keepdims=True)
                for at, name in enumerate(others, 1):
                    if name not in tau:
                        part = np.expand_dims(part, at) * bases[name].mean.reshape(-1, *[1] * (part.ndim - at))
                answer += part
        return np.asarray(np.moveaxis(answer, 0, names.index(own)) if own in names else answer[0])
