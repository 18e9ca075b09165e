"""Very many products as arrays: which query set each has along which attribute, as numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from leastnoise._check.arrays import IntArray
from leastnoise._linop import Operator
from leastnoise._workload._product import Product
from leastnoise._workload._query_sets import QuerySet


@dataclass(frozen=True, slots=True)
class Along:
    """What is asked along one attribute."""

    name: str
    place: int
    query_set: QuerySet
    operator: Operator


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """Products by their number of attributes."""

    along: tuple[Along, ...]
    widths: tuple[tuple[IntArray, IntArray], ...]


def numbered(products: Sequence[Product]) -> Numbered:
    """Number what products ask: their query sets are looked at once an object, not once a product."""
    domain = products[0].domain
    places = {name: place for place, name in enumerate(domain.names)}
    sets = list(chain.from_iterable(product.query_sets for product in products))
    equal: dict[QuerySet, int] = {}
    kinds = {identifier: equal.setdefault(q, len(equal)) for identifier, q in {id(q): q for q in sets}.items()}
    where = np.fromiter((places[name] for product in products for name in product.attributes), np.int64, len(sets))
    what = np.fromiter(map(kinds.__getitem__, map(id, sets)), np.int64, len(sets))
    _, first, every = np.unique(where * max(1, len(equal)) + what, return_index=True, return_inverse=True)
    widths = np.fromiter((len(product.attributes) for product in products), np.int64, len(products))
    begins = np.cumsum(widths) - widths
    owners: list[int] = np.atleast_1d(np.searchsorted(begins, first, side="right")).tolist()
    # A product without attributes begins where the next one does.
    along = []
    for at, owner in zip(first.tolist(), owners, strict=True):
        own, column = products[owner - 1], at - int(begins[owner - 1])
        along.append(Along(own.attributes[column], places[own.attributes[column]], own.query_sets[column], own.operators[column]))
    return Numbered(tuple(along), tuple((own, every.reshape(-1)[at]) for _, own, at in by_width(widths)))


def by_width(widths: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Rows of several widths, that stand one after the other in one array, a width at a time."""
    begins = np.cumsum(widths) - widths
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        yield width, rows, begins[rows][:, None] + np.arange(width)
