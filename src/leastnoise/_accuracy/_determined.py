"""Refusals of queries that the measurements do not determine: those outside the row space of everything that was measured.

Every form of the covariance decides it for itself (docs/mathematics.md, section 7).
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._families import row_space
from leastnoise._linop import Operator, Total, apply
from leastnoise._workload import Product


class UnsupportedQuery(InputError):
    """The measurements do not determine the query."""


def undetermined(product: Product) -> UnsupportedQuery:
    """Return the refusal of a product that is not determined, with the table to ask for."""
    table = " x ".join(product.attributes)
    wanted = f"the table {table}" if table else "the total"
    if product.measure is not None:
        wanted = (
            f"the sums of {product.measure}" + (f" by {table}" if table else "")
            if product.of_values
            else f"the table {product.name}"
        )
    return UnsupportedQuery(
        f"The measurements do not determine {product.name}. Ask for {wanted} in the workload of a "
        "release."
    )


def multiples_of_total(operator: Operator) -> bool:
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
        if not (inside or multiples_of_total(operator)):
            raise undetermined(product)
        times = np.multiply.outer(
            times, np.ones(1) if inside else apply(operator, np.eye(1, operator.size)[0])
        )
    attributes = tuple(
        name for inside, name in zip(kept, product.attributes, strict=True) if inside
    )
    sets = tuple(
        queries for inside, queries in zip(kept, product.query_sets, strict=True) if inside
    )
    shape = tuple(rows if inside else 1 for inside, rows in zip(kept, product.shape, strict=True))
    return replace(product, attributes=attributes, query_sets=sets), shape, times
