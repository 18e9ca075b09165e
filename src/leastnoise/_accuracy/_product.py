"""The product form of the covariance, and its estimate: unbiased, of least variance, and consistent across all tables.

Along every attribute all blocks use one strategy (or sum over it). Then the information matrix of all measurements is diagonal in the
residual basis of the families (docs/mathematics.md, section 1): with tau a set of attributes, p_B one over a block's noise variance and
S_B its attributes,

    lambda(tau) = sum over blocks B with S_B containing tau of p_B * prod over i in S_B but not in tau of 1 / kappa_i
    Var(q)      = sum over tau within T of 1 / lambda(tau) * prod_{i in tau} q_i R_i q_i * prod_{i in T but not tau} (q_i mean_i)^2
    u(tau)      = 1 / lambda(tau) * sum over blocks B containing tau of p_B * (R on tau, mean^T on S_B without tau) F_B^T diag(w^2) z_B

for a query q, a product of q_i over the attributes T. The estimate of a marginal is the sum of the components u(tau) within it, spread by
the means; every component is computed once, so tables agree.

Source: ResidualPlanner (arXiv 2305.08175); Cormode et al. (arXiv 1207.6096), GReM (arXiv 2410.01091).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations, repeat
from itertools import product as product_of

import numpy as np

from leastnoise._accuracy._determined import Span, undetermined
from leastnoise._accuracy._form import Errors, Measured, Structure, marginals_of
from leastnoise._accuracy._measured import explained, measured_along, subsets, used
from leastnoise._check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._families import MOST_LISTED, Basis, LevelInverse, leaves_out_total
from leastnoise._linop import Operator, Total, apply, apply_transpose, dense
from leastnoise._workload import Along, Product, numbered

Names = tuple[str, ...]
Places = tuple[int, ...]
"""Some of the attributes of a block or a table, counted from its first."""
# A component that more blocks contain is summed for all such in one pass over the blocks.
_FEW = 4
_MOST_TOGETHER = 2**20  # numbers of blocks that are looked at together
_MOST_SORTED = 2**20
_MANY = 16  # products from which arrays are quicker


@dataclass(frozen=True, eq=False)
class ProductCells:
    """Components of the residual basis, computed when first asked for, of many tables that are alike at once."""

    # Of the components only those are kept that are small beside the tables: see ``marginals``.

    structure: "ProductStructure"
    measured: tuple[Measured, ...]
    components: dict[Names, FloatArray] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """All attributes."""
        return tuple(self.structure.bases)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Cells of every attribute."""
        return {name: basis.size for name, basis in self.structure.bases.items()}

    @cached_property
    def along(self) -> list[tuple[Names, Names]]:
        """For every block ``measured_along``."""
        return [measured_along(table.block) for table in self.measured]

    @cached_property
    def kinds(self) -> list[int]:
        """For every block a number; blocks with one number differ in attributes alone."""
        factors = {id(factor): factor for table in self.measured for factor in table.block.factors}
        equal: dict[object, int] = {}
        own = {
            place: equal.setdefault((factor.key(), id(self.structure.bases[factor.attributes[0]])), len(equal))
            for place, factor in factors.items()
        }
        numbers: dict[object, int] = {}
        return [
            numbers.setdefault((table.grid, table.variance, *[own[id(factor)] for factor in table.block.factors]), len(numbers))
            for table in self.measured
        ]

    @cached_property
    def containing(self) -> dict[Names, list[int]]:
        """For every listed tau the narrow blocks that contain it."""
        positions: dict[Names, list[int]] = {}
        for at, (names, across) in enumerate(self.along):
            for tau in () if _is_wide(names, across) else explained(names, across):
                positions.setdefault(tau, []).append(at)
        return positions

    @cached_property
    def wide(self) -> list[int]:
        """The blocks whose subsets are not listed."""
        return [at for at, attributes in enumerate(self.along) if _is_wide(*attributes)]

    @cached_property
    def shared(self) -> dict[Names, FloatArray]:
        """For every tau that many narrow blocks contain the sum over them of what ``_made`` adds up, from one pass over the blocks."""
        wanted = {tau for tau, places in self.containing.items() if len(places) > _FEW}
        sums = {tau: np.zeros([self.sizes[name] for name in tau]) for tau in wanted}
        alike: dict[tuple[int, frozenset[Places]], list[int]] = {}
        for place, (names, across) in enumerate(self.along):
            if _is_wide(names, across) or (names == across and names not in wanted):
                continue
            found = frozenset(_places(names, tau) for tau in explained(names, across) if tau in wanted)
            alike.setdefault((self.kinds[place], found), []).append(place)
        for (_, chosen), places in alike.items():
            for some in self._some(places):
                for own, stack in self._parts(some, chosen).items():
                    for place, part in zip(some, stack, strict=True) if own in chosen else ():
                        sums[_named(self.along[place][0], own)] += part / self.measured[place].variance
        return sums

    def _some(self, places: Sequence[int]) -> Iterator[list[int]]:
        """Blocks that are alike, so many at a time as fit into the processor's cache, or nearly."""
        step = max(1, _MOST_TOGETHER // max(1, self.measured[places[0]].block.rows)) if places else 1
        for start in range(0, len(places), step):
            yield [*places[start : start + step]]

    def _components(self, taus: Sequence[Names], *, kept: bool) -> FloatArray:
        """u(tau) for every tau, all on attributes with the same bases; shape: (number of them, sizes of tau)."""
        new = [tau for tau in dict.fromkeys(taus) if tau not in self.components]
        if len(new) == len(taus) and not kept:
            return self._made(new)
        made = dict(zip(new, self._made(new), strict=True)) if new else {}
        if kept:
            self.components.update(made)
        parts = [made[tau] if tau in made else self.components[tau] for tau in taus]
        return np.array(parts) if parts[0].ndim == 0 else np.concatenate(parts).reshape(len(parts), *parts[0].shape)

    def _made(self, taus: Sequence[Names]) -> FloatArray:
        """What ``_components`` gives, from the blocks; every tau once."""
        summed = np.zeros([len(taus), *(self.sizes[name] for name in taus[0])])
        groups: dict[tuple[int, int, Places], tuple[list[int], list[int]]] = {}
        for row, tau in enumerate(taus):
            places = self.containing.get(tau, [])
            if len(places) > _FEW:
                summed[row], places = self.shared[tau], []
            within = [place for place in self.wide if set(self.along[place][1]) <= set(tau) <= set(self.along[place][0])]
            for turn, place in enumerate(places + within):  # of one group every tau is in a row of its own
                rows, blocks = groups.setdefault((turn, self.kinds[place], _places(self.along[place][0], tau)), ([], []))
                rows.append(row)
                blocks.append(place)
        for (_, _, own), (rows, blocks) in groups.items():
            done = 0
            for some in self._some(blocks):
                summed[rows[done : done + len(some)]] += self._parts(some, {own})[own] / self.measured[some[0]].variance
                done += len(some)
        strengths = np.array([self.structure.strength(tau) for tau in taus])
        strengths[~(strengths > 0)] = 1.0
        return summed / strengths.reshape(-1, *[1] * (summed.ndim - 1))

    def _parts(self, places: Sequence[int], wanted: AbstractSet[Places]) -> dict[Places, FloatArray]:
        """(R on tau, mean^T elsewhere) F^T diag(w^2) z of blocks that are alike, for at least those tau that are wanted and explained."""
        block = self.measured[places[0]].block
        one = next(iter(wanted)) if len(wanted) == 1 else None
        every = tuple(range(len(self.along[places[0]][0])))
        whole = every in wanted
        # Every factor takes the first axis and puts what is left of it last, so in the end the blocks are first, and their axes in order.
        parts: dict[Places, FloatArray] = {(): np.stack([self.measured[place].values for place in places], axis=1)}
        shapes: dict[Places, list[int]] = {(): [len(places)]}
        at = 0
        for factor in block.factors:
            split: dict[Places, FloatArray] = {}
            name = factor.attributes[0]
            basis, alone = self.structure.bases[name], leaves_out_total(factor)
            for tau, flat in parts.items():
                cube = flat.reshape(factor.operator.rows, -1)
                if not factor.even:
                    cube = cube * (factor.scaling**2)[:, None]
                if not used(factor):
                    split[tau] = cube.sum(axis=0)
                    continue
                spread = apply_transpose(factor.operator, cube)
                if not alone and (one is None or at not in one):
                    split[tau] = basis.mean @ spread
                if at in one if one is not None else whole or (*tau, at) != every:
                    split[*tau, at] = basis.residual(spread).T
                    shapes[*tau, at] = [*shapes[tau], self.sizes[name]]
            parts = split
            at += used(factor)
        return {tau: part.reshape(shapes[tau]) for tau, part in parts.items()}

    def marginal(self, names: Names) -> FloatArray:
        """The estimated cells of a marginal, shape: its sizes."""
        return self.marginals([names])[0]

    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """``marginal`` of tables of one shape, stacked: of those whose attributes have the same bases in turn at once."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for place, names in enumerate(tables):
            alike.setdefault(tuple(id(self.structure.bases[name]) for name in names), []).append(place)
        if len(alike) == 1:
            return self._together(tables)
        answer = np.empty([len(tables), *(self.sizes[name] for name in tables[0])])
        for places in alike.values():
            answer[places] = self._together([tables[place] for place in places])
        return answer

    def _together(self, tables: Sequence[Names]) -> FloatArray:
        """Components of proper subsets are kept, because other tables need them too."""
        # That of the table itself, which is about as large as the table, is not: a release of many tables would keep them all.
        width, sizes = len(tables[0]), [self.sizes[name] for name in tables[0]]
        parts: dict[Places, FloatArray] = {}
        for chosen in _subsets(width):
            taus = [_named(names, chosen) for names in tables]
            parts[chosen] = self._components(taus, kept=len(chosen) < width or width <= 1)
        for place in range(width - 1, -1, -1):  # one attribute after the other, the last first
            mean = self.structure.bases[tables[0][place]].mean
            behind = sizes[place + 1 :]
            for chosen in _subsets(place):
                part = parts[chosen]
                before = part.shape[: len(chosen) + 1]
                spread = part.reshape(*before, 1, *behind) * mean.reshape(-1, *[1] * len(behind))
                parts[chosen] = np.add(spread, parts.pop((*chosen, place)), out=spread)
        return parts[()] if width else np.array(parts[()])  # what is kept is not given away


@marginals_of.register
def _(cells: ProductCells, tables: Sequence[Names]) -> FloatArray:
    return cells.marginals(tables)


@cache
def _subsets(width: int) -> tuple[Places, ...]:
    """Of the first so many attributes."""
    return tuple(chosen for size in range(width + 1) for chosen in combinations(range(width), size))


def _named(names: Names, chosen: Places) -> Names:
    return tuple([names[place] for place in chosen])


def _places(names: Names, tau: Names) -> Places:
    return tuple([names.index(name) for name in tau])


def _is_wide(names: Names, across: Names) -> bool:
    """Whether a block explains too many tau to list them."""
    return len(names) - len(across) > 10


@dataclass(frozen=True, slots=True, eq=False)
class ProductStructure(Structure):
    """Covariance in product form, for the blocks of one measure."""

    bases: Mapping[str, Basis]
    narrow: Mapping[Names, float]
    wide: tuple[tuple[Names, Names, float], ...]
    span: Span
    _cache: dict[tuple[str, Operator], tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)
    _sums: dict[tuple[str, Operator], tuple[float, float]] = field(default_factory=dict, repr=False)
    _frontier: dict[tuple[str, Operator], FloatArray] = field(default_factory=dict, repr=False)
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
        summed = self.total(product)
        if len(product.attributes) == 1 and product.rows <= MOST_LISTED:  # takes less than finding those that are alike
            largest = self._unlisted(product.attributes[0], product.operators[0])
            if largest is not None:
                return Errors(summed, largest)
            return Errors(summed, float(self.variances(product).max()))
        if sum(product.shape) <= _MOST_SORTED:
            if self._rows_alike(product):
                return Errors(summed, summed / product.rows)
            kinds = [self._highest(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
            if math.prod(len(kind) for kind in kinds) <= MOST_LISTED:
                return Errors(summed, self._largest(product.attributes, kinds))
        return Errors(summed, self._above_all(product), exact=False)

    def variances_of(self, products: Sequence[Product]) -> list[FloatArray]:
        pairs = zip(products, self._even(products), strict=True)
        return [self.variances(product) if one is None else np.full(product.shape, one.largest) for product, one in pairs]

    def errors_of(self, products: Sequence[Product]) -> list[Errors]:
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
            side is not None and one.operator.rows <= _MOST_SORTED and self._alike(one.name, one.operator)
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
        """The largest variance, from the highest rows of ``parts`` along every attribute: it grows with all of them."""
        total = np.zeros([len(kind) for kind in kinds])
        for tau in subsets(names):
            term = np.ones(())
            for name, kind in zip(names, kinds, strict=True):
                term = np.multiply.outer(term, kind[:, 1 if name in tau else 0])
            known = self.strength(tau)
            total += term / known if known > 0 else 0.0  # what is not determined was refused before
        return float(total.max())

    def _above_all(self, product: Product) -> float:
        """A bound above all variances of a product's answers; docs/mathematics.md, section 2."""
        strengths = {tau: self.strength(tau) for tau in subsets(product.attributes)}
        worst = max(
            1 / (known * math.prod(self.bases[name].kappa for name in product.attributes if name not in tau))
            for tau, known in strengths.items()
            if known > 0
        )
        each = zip(product.attributes, product.operators, strict=True)
        return worst * math.prod(self.bases[name].largest_variance(operator) for name, operator in each)

    def _highest(self, name: str, operator: Operator) -> FloatArray:
        """The rows of ``parts`` of which no other is larger in both, one of which has the largest variance, shape (kinds, 2)."""
        key = (name, operator)
        if key not in self._frontier:
            mean, spread = self.parts(name, operator)
            order = np.argsort(-mean, kind="stable")
            above = np.maximum.accumulate(np.append(-1.0, spread[order][:-1]))
            kept = order[spread[order] > above]
            self._frontier[key] = np.column_stack((mean[kept], spread[kept]))
        return self._frontier[key]

    def _alike(self, name: str, operator: Operator) -> bool:
        """Whether all rows of ``parts`` are the same."""
        return all(bool((part == part[0]).all()) for part in self.parts(name, operator))

    def _rows_alike(self, product: Product) -> bool:
        """Whether all answers have one variance."""
        return all(self._alike(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True))

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

    def covariance(self, product: Product, other: Product) -> FloatArray:
        self.require(product)
        self.require(other)
        return self.covariance_by(product, other, lambda tau: 1 / known if (known := self.strength(tau)) > 0 else None)

    def covariance_by(
        self, product: Product, other: Product, inverse: Callable[[Names], float | LevelInverse | None], leveled: str | None = None
    ) -> FloatArray:
        """Covariance of every answer of a product with every answer of another, by the inverse on every tau; None: nothing has that part.

        Along an attribute whose levels are measured the inverse is X(tau)^-1, else it is one over lambda(tau).

        Source: docs/mathematics.md, (3): in q M^+ q'^T an attribute of tau that only one of the tables has gives 1^T R = 0.
        """
        operators: list[dict[str, Operator]] = [dict(zip(p.attributes, p.operators, strict=True)) for p in (product, other)]
        names = [name for name in product.domain.names if name in operators[0] or name in operators[1] or name == leveled]
        shared = tuple(name for name in names if name in operators[0] and name in operators[1] and name != leveled)
        rows = {name: [dense(own.get(name, Total(self.bases[name].size))).astype(float) for own in operators] for name in names}
        means = {name: np.outer(*(one @ self.bases[name].mean for one in rows[name])) for name in names if name != leveled}
        spread = {name: rows[name][0] @ self.bases[name].residual(rows[name][1].T) for name in shared}
        answer = np.zeros((product.rows, other.rows))
        for tau in subsets(shared):
            known = inverse(tau)
            if known is None:
                continue
            term: FloatArray = np.full((1, 1), known if isinstance(known, float) else 1.0)
            for name in names:
                if isinstance(known, LevelInverse) and name == leveled:
                    part = rows[name][0] @ known.solve(rows[name][1].T)
                else:
                    part = spread[name] if name in tau else means[name]
                term = np.asarray(np.kron(term, part), dtype=np.float64)
            answer += term
        return answer

    def cells(self, measured: Sequence[Measured]) -> ProductCells:
        """The components of the residual basis, computed when first asked for."""
        return ProductCells(self, tuple(measured))
