"""Queries along one attribute as intervals of cells, where they are."""

from collections.abc import Callable, Iterator

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import AllRanges, Identity, Operator, Prefix, Ranges, Total, Tree, all_range_ends, apply
from leastnoise._workload import Product

_AT_ONCE = 2**22


def chunks(length: int, most: int = _AT_ONCE) -> Iterator[slice]:
    """Slices of at most so many."""
    return (slice(start, start + most) for start in range(0, length, most))


def operator_of(product: Product, size: int) -> Operator:
    """The queries along the one attribute."""
    return product.operators[0] if product.attributes else Total(size)


def answers_of(product: Product, cells: FloatArray) -> FloatArray:
    """Answers from cells, in the product's shape."""
    return np.asarray(apply(operator_of(product, len(cells)), cells)).reshape(product.shape)


def ends_of(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First cells, and last cells plus 1, if every row is an interval; else None."""
    n = operator.size
    cells = np.arange(n, dtype=np.int64)
    known: dict[type, Callable[[], tuple[IntArray, IntArray]]] = {
        Identity: lambda: (cells, cells),
        Total: lambda: (cells[:1], cells[-1:]),
        Prefix: lambda: (np.zeros(n, dtype=np.int64), cells),
        AllRanges: lambda: all_range_ends(n),
    }
    if isinstance(operator, Ranges):
        return operator.low, operator.high + 1
    if isinstance(operator, Tree):
        low = np.concatenate([np.arange(0, n, width) for width in operator.widths])
        return low, np.minimum(low + np.repeat(operator.widths, operator.level_sizes), n)
    if type(operator) not in known:
        return None
    low, last = known[type(operator)]()
    return low, last + 1
