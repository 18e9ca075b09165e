"""Queries along one attribute as intervals of cells, where they are."""

from collections.abc import Iterator

import numpy as np

from leastnoise._accuracy import interval_ends
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import Operator, Total, apply
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


def edges_of(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First cells, and last cells plus 1, if every row is an interval; else None."""
    ends = interval_ends(operator)
    return None if ends is None else (ends[0], ends[1] + 1)
