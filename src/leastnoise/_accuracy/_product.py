"""The product form of the covariance: see `_structure`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, repeat
from itertools import product as product_of

import numpy as np

from leastnoise._accuracy._blocks import subsets
from leastnoise._accuracy._determined import Span, UnsupportedQuery, undetermined
from leastnoise._accuracy._form import Measured, Structure
from leastnoise._accuracy._product_cells import ProductCells
from leastnoise._check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._families import MOST_LISTED, Basis, Errors
from leastnoise._linop import Operator, Total, apply, dense
from leastnoise._workload import Along, Product, numbered

Names = tuple[str, ...]
_MOST_SORTED = 2**20
_MANY = 16  # products from which arrays are quicker


@dataclass(frozen=True, slots=True, eq=False)
class ProductStructure(Structure):
    """Covariance in product form, for the blocks of one measure."""

    bases: Mapping[str, Basis]
    narrow: Mapping[Names, float]
    wide: tuple[tuple[Names, Names, float], ...]
    span: Span
    _cache: dict[tuple[str, Operator], tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)
    _sums: dict[tuple[str, Operator], tuple[float, float]] = field(default_factory=dict, repr=False)
    _distinct: dict[tuple[str, Operator], FloatArray] = field(default_factory=dict, repr=False)
    _sides: dict[tuple[str, Operator], tuple[bool, bool] | None] = field(default_factory=dict, repr=False)

    def strength(self, tau: Names) -> float:
        """lambda(tau); 0 if no measured table contains tau."""
        known = self.narrow.get(tau, 0.0)
        for names, across, precision in self.wide:
            if set(across) <= set(tau) <= set(names):
                known += precision * math.prod(1 / self.bases[name].kappa for name in names if name not in tau)
        return known

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine: lambda(tau) must be above 0 for every tau that some row needs."""
        if self.span.axes is None:
            raise undetermined(product)  # in doubt
        if not all(self.strength(tau) > 0 for tau in self._needed(product)):
            raise undetermined(product)

    def _needed(self, product: Product) -> Iterator[Names]:
        """The tau that some row of a product needs."""
        sides = [self.sides(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
        if any(side is None for side in sides):
            raise undetermined(product)
        choices = [[inside for inside, wanted in enumerate(side) if wanted] for side in sides if side is not None]
        for chosen in product_of(*choices):
            yield tuple(name for name, inside in zip(product.attributes, chosen, strict=True) if inside)

    def sides(self, name: str, operator: Operator) -> tuple[bool, bool] | None:
        """``Span.sides``, decided once."""
        key = (name, operator)
        if key not in self._sides:
            self._sides[key] = self.span.sides(name, operator)
        return self._sides[key]

    def parts(self, name: str, operator: Operator) -> tuple[FloatArray, FloatArray]:
        """For every row q along an attribute: (q mean)^2 and q R q."""
        key = (name, operator)
        if key not in self._cache:
            own = self.bases[name]
            squares = apply(operator, own.mean) ** 2
            # The difference is at least 0; rounding could leave it just below.
            self._cache[key] = squares, np.maximum(own.variances(operator) - own.kappa * squares, 0.0)
        return self._cache[key]

    def sums(self, name: str, operator: Operator) -> tuple[float, float]:
        """The sums of ``parts`` over the rows, without listing them."""
        key = (name, operator)
        if key not in self._sums:
            own = self.bases[name]
            along = own.mean_squares(operator)
            self._sums[key] = along, max(0.0, own.total_variance(operator) - own.kappa * along)
        return self._sums[key]

    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``."""
        self.require(product)
        if len(product.attributes) > 1 and sum(product.shape) <= _MOST_SORTED and self._rows_alike(product):
            return np.full(product.shape, self._summed(product) / product.rows)
        total = np.zeros(product.shape)
        parts = [self.parts(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
        for tau in subsets(product.attributes):
            term = np.ones(())
            for name, (mean, spread) in zip(product.attributes, parts, strict=True):
                term = np.multiply.outer(term, spread if name in tau else mean)
            known = self.strength(tau)
            if known > 0:  # else no query has such a part
                total += term / known
        return total

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers. Of rows that are alike along an attribute one is looked at."""
        summed = self.total(product)
        if len(product.attributes) == 1 and product.rows <= MOST_LISTED:  # takes less than finding those that are alike
            largest = self._unlisted(product.attributes[0], product.operators[0])
            if largest is not None:
                return Errors(summed, largest)
            return Errors(summed, float(self.variances(product).max()))
        if sum(product.shape) <= _MOST_SORTED:
            kinds = [self._alike(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
            if all(len(kind) == 1 for kind in kinds):
                return Errors(summed, summed / product.rows)
            if math.prod(len(kind) for kind in kinds) <= MOST_LISTED:
                return Errors(summed, self._largest(product.attributes, kinds))
        return Errors(summed, self._above_all(product), exact=False)

    def variances_of(self, products: Sequence[Product]) -> list[FloatArray]:
        """``variances`` of every product."""
        pairs = zip(products, self._even(products), strict=True)
        return [self.variances(product) if one is None else np.full(product.shape, one.largest) for product, one in pairs]

    def errors_of(self, products: Sequence[Product]) -> list[Errors]:
        """``errors`` of every product."""
        return [self.errors(product) if one is None else one for product, one in zip(products, self._even(products), strict=True)]

    def _even(self, products: Sequence[Product]) -> Sequence[Errors | None]:
        """``errors`` of products whose answers have one variance each, with arrays in place of a product at a time; None of others."""
        if self.wide or self.span.axes is None or len(products) < _MANY:
            return [None] * len(products)
        asked = numbered(products)
        alike, needs, parts = self._alike_along(asked.along)
        answers = np.array([one.operator.rows for one in asked.along], dtype=np.int64)
        found: list[Errors | None] = [None] * len(products)
        for places, rows in asked.widths:
            plain = alike[rows].all(axis=1)
            chosen, own = places[plain].tolist(), rows[plain]
            if not chosen:
                continue
            totals, missing = np.zeros(len(own)), np.zeros(len(own), dtype=bool)
            for tau in product_of((0, 1), repeat=rows.shape[1]):
                inside = [column for column, one in enumerate(tau) if one]
                known = self._strengths(asked.along, own[:, inside])
                term, needed = np.ones(len(own)), np.ones(len(own), dtype=bool)
                for column, one in enumerate(tau):
                    term, needed = term * parts[own[:, column], one], needed & needs[own[:, column], one]
                missing |= needed & ~(known > 0)
                totals += np.divide(term, known, out=np.zeros(len(own)), where=known > 0)
            if missing.any():
                raise undetermined(products[chosen[int(missing.argmax())]])
            means = totals / answers[own].prod(axis=1, dtype=np.float64)
            for place, total, mean in zip(chosen, totals.tolist(), means.tolist(), strict=True):
                found[place] = Errors(total, mean)
        return found

    def _strengths(self, along: Sequence[Along], rows: IntArray) -> FloatArray:
        """lambda(tau) of sets of attributes, a row each, as places in a list of what is asked along them."""
        if rows.shape[1] > 2:  # of fewer attributes there are few sets, which come again and again
            distinct, every = rows, np.arange(len(rows))
        else:
            codes = (rows * len(along) ** np.arange(rows.shape[1])).sum(axis=1, dtype=np.int64)
            _, first, every = np.unique(codes, return_index=True, return_inverse=True)
            distinct = rows[first]
        taus = map(tuple, np.array([one.name for one in along], dtype=object)[distinct].tolist())
        return np.fromiter(map(self.narrow.get, taus, repeat(0.0)), np.float64, len(distinct))[every]

    def _alike_along(self, along: Sequence[Along]) -> tuple[BoolArray, BoolArray, FloatArray]:
        """Of what is asked along attributes: whether all rows are alike and determined, ``sides``, and ``sums``."""
        sides = [self.sides(one.name, one.operator) for one in along]
        alike = [
            side is not None and one.operator.rows <= _MOST_SORTED and len(self._alike(one.name, one.operator)) == 1
            for one, side in zip(along, sides, strict=True)
        ]
        sums = [self.sums(one.name, one.operator) if plain else (0.0, 0.0) for one, plain in zip(along, alike, strict=True)]
        needs = np.array([side or (False, False) for side in sides], dtype=bool).reshape(-1, 2)
        return np.array(alike, dtype=bool), needs, np.array(sums, dtype=np.float64).reshape(-1, 2)

    def _unlisted(self, name: str, operator: Operator) -> float | None:
        """The largest variance along one attribute, where it is known without listing the rows: all are q G^-1 q over one precision."""
        own, precision = self.bases[name], self.strength((name,))
        alone = precision > 0 and math.isclose(self.strength(()) * own.kappa, precision, rel_tol=1e-12)
        largest = own.largest_unlisted(operator) if alone else None
        return None if largest is None else largest / precision

    def _largest(self, names: Names, kinds: Sequence[FloatArray]) -> float:
        """The largest variance, from the distinct rows of ``parts`` along every attribute."""
        total = np.zeros([len(kind) for kind in kinds])
        for tau in subsets(names):
            term = np.ones(())
            for name, kind in zip(names, kinds, strict=True):
                term = np.multiply.outer(term, kind[:, 1 if name in tau else 0])
            known = self.strength(tau)
            total += term / known if known > 0 else 0.0  # what is not determined was refused before
        return float(total.max())

    def _above_all(self, product: Product) -> float:
        """A bound above all variances of a product's answers.

        With a(tau) the terms of a variance, sum of a(tau) prod_{i not in tau} kappa_i = prod_i q_i G_i^-1 q_i. So the variance, the sum
        of a(tau) / lambda(tau), is at most that product times the largest 1 / (lambda(tau) prod_{i not in tau} kappa_i).
        """
        strengths = {tau: self.strength(tau) for tau in subsets(product.attributes)}
        worst = max(
            1 / (known * math.prod(self.bases[name].kappa for name in product.attributes if name not in tau))
            for tau, known in strengths.items()
            if known > 0
        )
        each = zip(product.attributes, product.operators, strict=True)
        return worst * math.prod(self.bases[name].largest_variance(operator) for name, operator in each)

    def _alike(self, name: str, operator: Operator) -> FloatArray:
        """The distinct rows of ``parts``, shape (kinds, 2)."""
        key = (name, operator)
        if key not in self._distinct:
            self._distinct[key] = np.unique(np.column_stack(self.parts(name, operator)), axis=0)
        return self._distinct[key]

    def _rows_alike(self, product: Product) -> bool:
        """Whether all answers have one variance."""
        return all(len(self._alike(name, operator)) == 1 for name, operator in zip(product.attributes, product.operators, strict=True))

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers, without listing them."""
        self.require(product)
        return self._summed(product)

    def _summed(self, product: Product) -> float:
        sums = [self.sums(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
        answer = 0.0
        for tau in subsets(product.attributes):
            term = math.prod(spread if name in tau else along for name, (along, spread) in zip(product.attributes, sums, strict=True))
            known = self.strength(tau)
            answer += term / known if known > 0 else 0.0
        return answer

    def covariance(self, one: Product, other: Product) -> FloatArray:
        """Covariance of every answer of a product with every answer of another.

        Source: docs/mathematics.md, (3): in q M^+ q'^T an attribute of tau that only one of the tables has gives 1^T R = 0.
        """
        self.require(one)
        self.require(other)
        operators: list[dict[str, Operator]] = [dict(zip(p.attributes, p.operators, strict=True)) for p in (one, other)]
        names = [name for name in one.domain.names if name in operators[0] or name in operators[1]]
        shared = [name for name in names if name in operators[0] and name in operators[1]]
        means: dict[str, FloatArray] = {}
        spread: dict[str, FloatArray] = {}
        for name in names:
            own = self.bases[name]
            rows = [dense(each.get(name, Total(own.size))).astype(float) for each in operators]
            means[name] = np.outer(rows[0] @ own.mean, rows[1] @ own.mean)
            if name in shared:
                spread[name] = rows[0] @ own.residual(rows[1].T)
        answer = np.zeros((one.rows, other.rows))
        for size in range(len(shared) + 1):
            for tau in combinations(shared, size):
                term: FloatArray = np.ones((1, 1))
                for name in names:
                    term = np.asarray(np.kron(term, spread[name] if name in tau else means[name]), dtype=np.float64)
                known = self.strength(tau)
                if known > 0:
                    answer += term / known
                elif math.sqrt(float((term**2).max())) > 1e-12:
                    raise UnsupportedQuery(f"The measurements do not determine {one.name} and {other.name}.")
        return answer

    def cells(self, measured: Sequence[Measured]) -> ProductCells:
        """The components of the residual basis, computed when first asked for."""
        return ProductCells(self, tuple(measured))
