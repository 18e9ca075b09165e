"""Which queries an observation determines: those in the row space of everything that was measured. The one place that decides it.

A table measures a product of queries, so its row space is a product of one space an attribute; along an attribute that it sums over that is
the span of the total. If the spaces along each attribute are spanned by parts of one basis, so are the tables', and a product of queries is
determined exactly if each product of parts that it needs is in some table. Two kinds of attributes have such a basis:

    chains  V_1 within V_2 within ...: a query needs the last part of the least V that holds it
    across  {total, A, both}, no total in A, such as contrasts: a query needs the total's part unless A holds it, and A's unless it is a
            multiple of the total

Other plans are left to the solver of their structure, which decides in floating point and refuses where it is in doubt.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import pairwise
from itertools import product as combinations

import numpy as np

from leastnoise._accuracy._row_space import MOST_DENSE, RowSpace, everything, of_gram, row_space
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._linop import Identity, Operator, Total, apply
from leastnoise._measurements import Block
from leastnoise._workload import Product


class UnsupportedQuery(InputError):
    """The measurements do not determine the query."""


def undetermined(product: Product) -> UnsupportedQuery:
    """The refusal of a question that was not measured, naming the table to ask for.

    >>> print(undetermined(queries(Domain(sex=["F", "M"], age=["young", "old"]), sex="identity", age="prefix").products[0]))
    The measurements do not determine sex x age:prefix. Ask for the table sex x age in the workload of a release.
    """
    table = " x ".join(product.attributes)
    wanted = f"the table {table}" if table else "the total"
    if product.measure is not None:
        wanted = f"the sums of {product.measure}" + (f" by {table}" if table else "")
    return UnsupportedQuery(f"The measurements do not determine {product.name}. Ask for {wanted} in the workload of a release.")


@dataclass(frozen=True, eq=False)
class _Axis:
    """The spaces along one attribute.

    Args:
        spaces: of a chain its members, smallest first; of the other kind the total's span and A.
        tables: for each part the tables that have it, as bits of one number.
        whole: of the other kind what holds every query that can be determined; None for a chain.
    """

    spaces: tuple[RowSpace, ...]
    tables: tuple[int, ...]
    whole: RowSpace | None

    @staticmethod
    def of(size: int, spaces: Sequence[tuple[RowSpace, int]]) -> "_Axis | None":
        """From distinct spaces, smallest first, each with its tables; None if they are of neither kind."""
        known = tuple(space for space, _ in spaces)
        if all(large.includes(small) for small, large in pairwise(known)):
            return _Axis(known, tuple(_united(own for _, own in spaces[place:]) for place in range(len(spaces))), None)
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
        tables = tuple(_united(own for space, own in spaces if space.includes(part)) for part in (total, across))
        return _Axis((total, across), tables, whole)

    def needs(self, operator: Operator) -> tuple[int, ...] | None:
        """For every part that some row needs the tables that have it; None if a row lies outside all of them."""
        if self.whole is None:
            return next(((own,) for space, own in zip(self.spaces, self.tables, strict=True) if space.holds(operator)), None)
        if not self.whole.holds(operator):
            return None
        return tuple(own for own, other in zip(self.tables, self.spaces[::-1], strict=True) if not other.holds(operator))


def _united(tables: Iterable[int]) -> int:
    return reduce(lambda one, other: one | other, tables, 0)


@dataclass(frozen=True, eq=False)
class Span:
    """What the tables of one measure span.

    Args:
        sizes: cells of every attribute of the domain.
        names: the attributes that are in some table.
        every: all tables, as bits of one number.
        axes: of every one of these attributes; None if one has no basis as above.
    """

    sizes: Mapping[str, int]
    names: frozenset[str]
    every: int
    axes: Mapping[str, _Axis] | None
    _needs: dict[tuple[str, Operator], tuple[int, ...] | None] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(domain: Domain, blocks: Sequence[Block]) -> "Span":
        """From the tables of one measure.

        >>> domain = Domain(a=["x", "y"], b=["x", "y"])
        >>> apart = Span.of(domain, [Block((Factor((name,), Identity(2)),), 1) for name in domain.names])
        >>> [apart.determines(marginals(domain, ways=ways).products[0]) for ways in (0, 1, 2)]
        [True, True, False]
        """
        sizes = {name: domain.kind(name).size for name in domain.names}
        every = (1 << len(blocks)) - 1
        names = frozenset(name for block in blocks for name in block.attributes)
        tables: dict[str, dict[Operator, int]] = {}
        for place, block in enumerate(blocks):
            for factor in block.factors:
                if len(factor.attributes) > 1:
                    space = row_space(factor.operator)
                    if space is None or not space.everything:
                        return Span(sizes, names, every, None)
                for name in factor.attributes:
                    operator = factor.operator if len(factor.attributes) == 1 else Identity(sizes[name])
                    own = tables.setdefault(name, {})
                    own[operator] = own.get(operator, 0) | 1 << place
        axes: dict[str, _Axis] = {}
        for name, own in tables.items():
            summed = every & ~_united(own.values())
            if summed:
                own[Total(sizes[name])] = own.get(Total(sizes[name]), 0) | summed
            spaces = _distinct(own)
            axis = None if spaces is None else _Axis.of(sizes[name], spaces)
            if axis is None:
                return Span(sizes, names, every, None)
            axes[name] = axis
        return Span(sizes, names, every, axes)

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
        known = reduce(_both, (tables[0] for tables in choices if len(tables) == 1), self.every)
        return all(reduce(_both, chosen, known) for chosen in combinations(*(tables for tables in choices if len(tables) != 1)))

    def _needed(self, name: str, operator: Operator) -> tuple[int, ...] | None:
        key = name, operator
        if key not in self._needs:
            self._needs[key] = None if self.axes is None else self.axes[name].needs(operator)
        return self._needs[key]

    @cached_property
    def _of_totals(self) -> dict[str, tuple[int, ...] | None]:
        """What is needed along attributes that are summed over, but for those along which every table has the total."""
        found = {name: self._needed(name, Total(self.sizes[name])) for name in self.axes or ()}
        return {name: tables for name, tables in found.items() if tables != (self.every,)}


def _both(one: int, other: int) -> int:
    return one & other


def _summed(operator: Operator) -> bool:
    space = row_space(Total(operator.size))
    return space is not None and space.holds(operator)


def _multiples(operator: Operator) -> FloatArray:
    """What multiple of the total each row is, shape (rows,)."""
    first = np.zeros(operator.size)
    first[0] = 1
    return np.asarray(apply(operator, first), dtype=np.float64)


def split(product: Product, names: Collection[str]) -> tuple[Product, tuple[int, ...], FloatArray]:
    """The part of a product on some attributes, and what multiple of the total its rows are along the others.

    Args:
        product: the queries.
        names: the attributes to keep.

    Returns:
        The part, which is the product itself if it has no other attributes; the shape of its answers with an axis of length 1 for every
        other attribute; and multiples: the product's answers are the part's in that shape, times these.

    Raises:
        UnsupportedQuery: along another attribute a row is no multiple of the total.
    """
    kept = [name in names for name in product.attributes]
    if all(kept):
        return product, product.shape, np.ones((1,) * len(kept))
    if not all(_summed(operator) for inside, operator in zip(kept, product.operators, strict=True) if not inside):
        raise undetermined(product)
    times: FloatArray = np.ones(())
    for inside, operator in zip(kept, product.operators, strict=True):
        times = np.multiply.outer(times, np.ones(1) if inside else _multiples(operator))
    attributes = tuple(name for inside, name in zip(kept, product.attributes, strict=True) if inside)
    sets = tuple(queries for inside, queries in zip(kept, product.query_sets, strict=True) if inside)
    shape = tuple(rows if inside else 1 for inside, rows in zip(kept, product.shape, strict=True))
    return replace(product, attributes=attributes, query_sets=sets), shape, times


def require(span: Span | None, product: Product) -> bool:
    """Refuse a product that the measurements do not determine.

    Args:
        span: what they span.
        product: the queries.

    Returns:
        True if they are determined, False if the solver has to decide.

    Raises:
        UnsupportedQuery: they are not determined.
    """
    found = None if span is None else span.determines(product)
    if found is False:
        raise undetermined(product)
    return found is True


def _distinct(tables: Mapping[Operator, int]) -> list[tuple[RowSpace, int]] | None:
    """Row spaces of operators, smallest first, with the tables of equal ones put together; None if one is not known."""
    found: list[tuple[RowSpace, int]] = []
    for operator, own in tables.items():
        space = row_space(operator)
        if space is None:
            return None
        same = next((place for place, (other, _) in enumerate(found) if other.dimension == space.dimension and other.includes(space)), None)
        if same is None:
            found.append((space, own))
        else:
            found[same] = found[same][0], found[same][1] | own
    return sorted(found, key=lambda one: one[0].dimension)
