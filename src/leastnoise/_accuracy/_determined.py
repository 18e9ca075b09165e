"""Which queries an observation determines: those in the row space of everything that was measured. The one place that decides it.

A table measures a product of queries, so its row space is a product of one space an attribute; along an attribute that it sums over that is
the span of the total. If the spaces along each attribute are spanned by parts of one basis, so are the tables', and a product of queries is
determined exactly if each product of parts that it needs is in some table. Two kinds of attributes have such a basis:

    chains  V_1 within V_2 within ...: a query needs the last part of the least V that holds it
    across  {total, A, both}, no total in A, such as contrasts: a query needs the total's part unless A holds it, and A's unless it is a
            multiple of the total

Other plans are left to the solver of their structure, which decides in floating point and refuses where it is in doubt.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
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
    """The refusal of a question that was not measured, naming the table to ask for."""
    table = " x ".join(product.attributes)
    wanted = f"the table {table}" if table else "the total"
    if product.measure is not None:
        wanted = f"the sums of {product.measure}" + (f" by {table}" if table else "") if product.of_values else f"the table {product.name}"
    return UnsupportedQuery(f"The measurements do not determine {product.name}. Ask for {wanted} in the workload of a release.")


@dataclass(frozen=True, eq=False)
class _Axis:
    """The spaces along one attribute."""

    spaces: tuple[RowSpace, ...]
    whole: RowSpace | None

    @staticmethod
    def of(size: int, known: Sequence[RowSpace]) -> "_Axis | None":
        """From distinct spaces, smallest first; None if they are of neither kind."""
        if all(large.includes(small) for small, large in pairwise(known)):
            return _Axis(tuple(known), None)
        total = row_space(Total(size))
        without = [space for space in known if total is None or not space.includes(total)]
        if total is None or len(without) != 1:
            return None
        across = without[0]
        both = [space for space in known if space is not across and space.dimension > 1]
        if len(both) > 1 or any(space.dimension != across.dimension + 1 or not space.includes(across) for space in both):
            return None
        whole: RowSpace | None
        if across.dimension == size - 1:
            whole = everything(size)
        elif both or size > MOST_DENSE:
            whole = both[0] if both else None
        else:
            whole = of_gram(across.basis @ across.basis.T + 1 / size)
        if whole is None or whole.dimension != across.dimension + 1:
            return None
        return _Axis((total, across), whole)

    def has(self, operator: Operator) -> tuple[bool, ...]:
        """Which parts a table has that measures these queries."""
        space = row_space(operator)
        return tuple(space is not None and space.includes(part) for part in self.spaces)

    def needs(self, operator: Operator) -> tuple[int, ...] | None:
        """The parts that some row needs; None if a row lies outside all of them."""
        if self.whole is None:
            return next(((part,) for part, space in enumerate(self.spaces) if space.holds(operator)), None)
        if not self.whole.holds(operator):
            return None
        return tuple(part for part, other in enumerate(self.spaces[::-1]) if not other.holds(operator))


def _united(tables: Iterable[int]) -> int:
    return reduce(lambda bits, other: bits | other, tables, 0)


@dataclass(frozen=True, eq=False)
class Span:
    """What the tables of one measure span."""

    sizes: Mapping[str, int]
    blocks: Sequence[Block]
    _needs: dict[tuple[str, Operator], tuple[int, ...] | None] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(domain: Domain, blocks: Sequence[Block]) -> "Span":
        """From the tables of one measure."""
        return Span({name: domain.kind(name).size for name in domain.names}, blocks)

    @cached_property
    def _often(self) -> Counter[Factor]:
        return Counter(chain.from_iterable(block.factors for block in self.blocks))

    @cached_property
    def names(self) -> frozenset[str]:
        """The attributes that are measured."""
        return frozenset(name for factor in self._often for name in factor.attributes)

    @cached_property
    def axes(self) -> Mapping[str, _Axis] | None:
        """The spaces along every attribute, looked for when first asked for; None if those along one of them are of neither kind."""
        operators: dict[str, dict[Operator, None]] = {name: {} for name in self.names}
        tables = dict.fromkeys(self.names, 0)
        for factor, number in self._often.items():
            if len(factor.attributes) > 1:
                space = row_space(factor.operator)
                if space is None or not space.everything:
                    return None
            for name in factor.attributes:
                tables[name] += number
                operators[name][_along(factor, self.sizes[name])] = None
        axes: dict[str, _Axis] = {}
        for name, along in operators.items():
            if tables[name] < len(self.blocks):
                along[Total(self.sizes[name])] = None
            spaces = _distinct(along)
            axis = None if spaces is None else _Axis.of(self.sizes[name], spaces)
            if axis is None:
                return None
            axes[name] = axis
        return axes

    def determines(self, product: Product) -> bool | None:
        """Whether all queries of a product are determined; None if the solver has to decide."""
        asked = dict(zip(product.attributes, product.operators, strict=True))
        if not all(_summed(operator) for name, operator in asked.items() if name not in self.names):
            return False
        if self.axes is None:
            return None
        needed = [self._needed(name, operator) for name, operator in asked.items() if name in self.axes]
        needed += [tables for name, tables in self._of_totals.items() if name not in asked]
        if any(tables is None for tables in needed):
            return False
        choices = [tables for tables in needed if tables is not None]
        every = (1 << len(self.blocks)) - 1
        known = reduce(_both, (tables[0] for tables in choices if len(tables) == 1), every)
        return all(reduce(_both, chosen, known) for chosen in combinations(*(tables for tables in choices if len(tables) != 1)))

    def needs(self, name: str, operator: Operator) -> bool:
        """Whether all rows along an attribute lie within what is measured along it."""
        axis = None if self.axes is None else self.axes.get(name)
        return axis is not None and axis.needs(operator) is not None

    def _needed(self, name: str, operator: Operator) -> tuple[int, ...] | None:
        """For every part that some row needs the tables that have it, as bits of one number."""
        key = name, operator
        if key not in self._needs:
            parts = None if self.axes is None else self.axes[name].needs(operator)
            self._needs[key] = None if parts is None else tuple(self._tables[name][part] for part in parts)
        return self._needs[key]

    @cached_property
    def _tables(self) -> Mapping[str, tuple[int, ...]]:
        """For every part along an attribute the tables that have it, as bits of one number."""
        every = (1 << len(self.blocks)) - 1
        bits: dict[tuple[str, Operator], int] = {}
        for number, block in enumerate(self.blocks):
            for factor in block.factors:
                for name in factor.attributes:
                    key = name, _along(factor, self.sizes[name])
                    bits[key] = bits.get(key, 0) | 1 << number
        parts = {}
        for name, axis in (self.axes or {}).items():
            known = {operator: tables for (other, operator), tables in bits.items() if other == name}
            summed = Total(self.sizes[name])
            known[summed] = known.get(summed, 0) | every & ~_united(known.values())
            having = [(axis.has(operator), tables) for operator, tables in known.items()]
            parts[name] = tuple(_united(tables for has, tables in having if has[part]) for part in range(len(axis.spaces)))
        return parts

    @cached_property
    def _of_totals(self) -> dict[str, tuple[int, ...] | None]:
        """What is needed along attributes that are summed over, but for those along which every table has the total."""
        needed = {name: self._needed(name, Total(self.sizes[name])) for name in self.axes or ()}
        return {name: tables for name, tables in needed.items() if tables != ((1 << len(self.blocks)) - 1,)}


def _along(factor: Factor, size: int) -> Operator:
    """What a factor measures along one of its attributes: of several taken together every cell."""
    return factor.operator if len(factor.attributes) == 1 else Identity(size)


def _both(bits: int, other: int) -> int:
    return bits & other


def _summed(operator: Operator) -> bool:
    space = row_space(Total(operator.size))
    return space is not None and space.holds(operator)


def split(product: Product, names: Collection[str]) -> tuple[Product, tuple[int, ...], FloatArray]:
    """The part of a product on some attributes, and what multiple of the total its rows are along the others."""
    kept = [name in names for name in product.attributes]
    if all(kept):
        return product, product.shape, np.ones((1,) * len(kept))
    if not all(_summed(operator) for inside, operator in zip(kept, product.operators, strict=True) if not inside):
        raise undetermined(product)
    times: FloatArray = np.ones(())
    for inside, operator in zip(kept, product.operators, strict=True):
        times = np.multiply.outer(
            times, np.ones(1) if inside else apply(operator, np.eye(1, operator.size)[0])
        )  # rows are multiples of the total
    attributes = tuple(name for inside, name in zip(kept, product.attributes, strict=True) if inside)
    sets = tuple(queries for inside, queries in zip(kept, product.query_sets, strict=True) if inside)
    shape = tuple(rows if inside else 1 for inside, rows in zip(kept, product.shape, strict=True))
    return replace(product, attributes=attributes, query_sets=sets), shape, times


def require(span: Span | None, product: Product) -> bool:
    """Refuse a product that the measurements do not determine."""
    determined = None if span is None else span.determines(product)
    if determined is False:
        raise undetermined(product)
    return determined is True


def _distinct(operators: Iterable[Operator]) -> list[RowSpace] | None:
    """Row spaces of operators, smallest first, each once; None if one is not known."""
    spaces: list[RowSpace] = []
    for operator in operators:
        space = row_space(operator)
        if space is None:
            return None
        if not any(other.dimension == space.dimension and other.includes(space) for other in spaces):
            spaces.append(space)
    return sorted(spaces, key=lambda known: known.dimension)
