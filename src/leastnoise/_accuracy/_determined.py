"""Which queries the measurements determine: those in the row space of everything that was measured.

A table measures a product of queries, so its row space is a product of one space an attribute; along an attribute that it sums over that is
the span of the total. If the spaces along each attribute are spanned by parts of one basis, so are the tables', and a product of queries is
determined exactly if each product of parts that it needs is in some table. Two kinds of attributes have such a basis:

    chains  V_1 within V_2 within ...: a query needs the last part of the smallest V that contains it
    across  {total, A, both}, A without the total, such as contrasts: a query needs the total's part unless A contains it, and A's unless
            it is a multiple of the total

For other plans the solver of their structure decides in floating point, and refuses in doubt.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from itertools import chain, pairwise
from itertools import product as combinations

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import MOST_DENSE, RowSpace, everything, of_gram, row_space
from leastnoise._linop import Identity, Operator, Total, apply
from leastnoise._measurements import Block, Factor
from leastnoise._workload import Product


class UnsupportedQuery(InputError):
    """The measurements do not determine the query."""


def undetermined(product: Product) -> UnsupportedQuery:
    """Return the refusal of a product that is not determined, with the table to ask for."""
    table = " x ".join(product.attributes)
    wanted = f"the table {table}" if table else "the total"
    if product.measure is not None:
        wanted = f"the sums of {product.measure}" + (f" by {table}" if table else "") if product.of_values else f"the table {product.name}"
    return UnsupportedQuery(f"The measurements do not determine {product.name}. Ask for {wanted} in the workload of a release.")


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """The parts of a basis along one attribute: a chain of spaces, or the total and the space across it, both within ``whole``."""

    spaces: Sequence[RowSpace]
    whole: RowSpace | None = None

    def needs(self, operator: Operator) -> tuple[int, ...] | None:
        """Return the parts that the rows need; None if a row lies outside all of them."""
        if self.whole is None:
            return next(((part,) for part, space in enumerate(self.spaces) if space.holds(operator)), None)
        if not self.whole.holds(operator):
            return None
        return tuple(part for part, other in enumerate(self.spaces[::-1]) if not other.holds(operator))


def _axis(size: int, operators: Iterable[Operator]) -> _Axis | None:
    """Build the basis of what is measured along an attribute; None if a row space is unknown, or they are of neither kind."""
    distinct: list[RowSpace] = []
    for space in map(row_space, operators):
        if space is None:
            return None
        if not any(other.dimension == space.dimension and other.includes(space) for other in distinct):
            distinct.append(space)
    known = sorted(distinct, key=lambda space: space.dimension)
    if all(large.includes(small) for small, large in pairwise(known)):
        return _Axis(known)
    total = row_space(Total(size))
    without = [space for space in known if total is None or not space.includes(total)]
    if total is None or len(without) != 1:
        return None
    across = without[0]
    both = [space for space in known if space is not across and space.dimension > 1]
    if len(both) > 1 or any(space.dimension != across.dimension + 1 or not space.includes(across) for space in both):
        return None
    whole = both[0] if both else None
    if across.dimension == size - 1:
        whole = everything(size)
    elif whole is None and size <= MOST_DENSE:
        whole = of_gram(across.basis @ across.basis.T + 1 / size)
    return _Axis((total, across), whole) if whole is not None and whole.dimension == across.dimension + 1 else None


@dataclass(frozen=True, eq=False)
class Span:
    """The row space of the tables of one measure."""

    domain: Domain
    blocks: Sequence[Block]

    @cached_property
    def _often(self) -> Counter[Factor]:
        return Counter(chain.from_iterable(block.factors for block in self.blocks))

    @cached_property
    def names(self) -> frozenset[str]:
        """The measured attributes."""
        return frozenset(name for factor in self._often for name in factor.attributes)

    @cached_property
    def axes(self) -> Mapping[str, _Axis] | None:
        """The basis along every measured attribute; None if the spaces along one of them are of neither kind."""
        operators: dict[str, dict[Operator, None]] = {}
        tables = Counter[str]()
        for factor, number in self._often.items():
            space = row_space(factor.operator) if len(factor.attributes) > 1 else None
            if len(factor.attributes) > 1 and (space is None or not space.everything):
                return None
            for name in factor.attributes:
                tables[name] += number
                operators.setdefault(name, {})[self._along(factor, name)] = None
        axes: dict[str, _Axis] = {}
        for name, along in operators.items():
            size = self.domain.kind(name).size
            axis = _axis(size, along if tables[name] == len(self.blocks) else {**along, Total(size): None})
            if axis is None:
                return None
            axes[name] = axis
        return axes

    def _along(self, factor: Factor, name: str) -> Operator:
        """Return what a factor measures along one of its attributes; a factor of several attributes measures all their cells."""
        return factor.operator if len(factor.attributes) == 1 else Identity(self.domain.kind(name).size)

    def determines(self, product: Product) -> bool | None:
        """Tell whether all queries of a product are determined; None if the solver has to decide."""
        asked = dict(zip(product.attributes, product.operators, strict=True))
        if not all(_summed(operator) for name, operator in asked.items() if name not in self.names):
            return False
        if self.axes is None:
            return None
        needed = [self._tables_with(name, operator) for name, operator in asked.items() if name in self.axes]
        needed += [tables for name, tables in self._of_totals.items() if name not in asked]
        choices = [tables for tables in needed if tables is not None]
        if len(choices) < len(needed):
            return False
        known = reduce(_both, (tables[0] for tables in choices if len(tables) == 1), self._every)
        return all(reduce(_both, chosen, known) for chosen in combinations(*(tables for tables in choices if len(tables) != 1)))

    def needs(self, name: str, operator: Operator) -> bool:
        """Tell whether all rows along an attribute lie within what is measured along it."""
        axis = None if self.axes is None else self.axes.get(name)
        return axis is not None and axis.needs(operator) is not None

    @property
    def _every(self) -> int:
        return (1 << len(self.blocks)) - 1

    @cached_property
    def _tables_with(self) -> Callable[[str, Operator], tuple[int, ...] | None]:
        """A function that gives the tables that have each part needed by queries along an attribute, as bits of one number."""
        axes = self.axes or {}
        bits: dict[str, dict[Operator, int]] = {name: {} for name in axes}
        for number, block in enumerate(self.blocks):
            for factor in block.factors:
                for name in factor.attributes:
                    operator = self._along(factor, name)
                    bits[name][operator] = bits[name].get(operator, 0) | 1 << number
        parts: dict[str, tuple[int, ...]] = {}
        for name, axis in axes.items():
            total = Total(self.domain.kind(name).size)
            bits[name][total] = bits[name].get(total, 0) | self._every & ~_any(bits[name].values())
            spaces = [(row_space(operator), tables) for operator, tables in bits[name].items()]
            parts[name] = tuple(
                _any(tables for space, tables in spaces if space is not None and space.includes(part)) for part in axis.spaces
            )

        @cache
        def tables_with(name: str, operator: Operator) -> tuple[int, ...] | None:
            needed = axes[name].needs(operator)
            return None if needed is None else tuple(parts[name][part] for part in needed)

        return tables_with

    @cached_property
    def _of_totals(self) -> dict[str, tuple[int, ...] | None]:
        """The tables that have the total along each attribute, but for attributes along which all tables have it."""
        needed = {name: self._tables_with(name, Total(self.domain.kind(name).size)) for name in self.axes or ()}
        return {name: tables for name, tables in needed.items() if tables != (self._every,)}


def _both(bits: int, other: int) -> int:
    return bits & other


def _any(bits: Iterable[int]) -> int:
    return reduce(lambda left, right: left | right, bits, 0)


def _summed(operator: Operator) -> bool:
    """Tell whether all rows are multiples of the total."""
    space = row_space(Total(operator.size))
    return space is not None and space.holds(operator)


def split(product: Product, names: Collection[str]) -> tuple[Product, tuple[int, ...], FloatArray]:
    """Return the part of a product on some attributes, its shape in the product, and the multiples of the total along the others."""
    kept = [name in names for name in product.attributes]
    if all(kept):
        return product, product.shape, np.ones((1,) * len(kept))
    times: FloatArray = np.ones(())
    for inside, operator in zip(kept, product.operators, strict=True):
        if not (inside or _summed(operator)):
            raise undetermined(product)
        times = np.multiply.outer(times, np.ones(1) if inside else apply(operator, np.eye(1, operator.size)[0]))
    attributes = tuple(name for inside, name in zip(kept, product.attributes, strict=True) if inside)
    sets = tuple(queries for inside, queries in zip(kept, product.query_sets, strict=True) if inside)
    shape = tuple(rows if inside else 1 for inside, rows in zip(kept, product.shape, strict=True))
    return replace(product, attributes=attributes, query_sets=sets), shape, times


def require(span: Span | None, product: Product) -> bool:
    """Refuse a product that the measurements do not determine; True if it is sure that they do."""
    determined = None if span is None else span.determines(product)
    if determined is False:
        raise undetermined(product)
    return determined is True
