"""Errors for queries that the measurements do not determine.

These queries lie outside the row space of all measured queries.

Every form of the covariance has a separate test for undetermined queries (docs/mathematics.md,
section 7).
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from leastnoise._families import row_space
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Operator, Total, apply
from leastnoise._workload import Product


class UnsupportedQuery(InputError):
    """Raised if the measurements do not determine a query."""


def undetermined_error(product: Product) -> UnsupportedQuery:
    """Return the error, including advice, for an undetermined product."""
    table = " x ".join(product.attributes)
    if table:
        table_name = f"the table {table}"
    else:
        table_name = "the total"
    if product.measure is not None:
        if product.of_values:
            table_name = f"the sums of {product.measure}" + (f" by {table}" if table else "")
        else:
            table_name = f"the table {product.name}"
    return UnsupportedQuery(
        f"The measurements do not determine {product.name}. Ask for {table_name} in the workload "
        "of a release."
    )


def are_multiples_of_total(operator: Operator) -> bool:
    """Return whether every query of an operator is a multiple of the total."""
    space = row_space(Total(operator.size))
    return space is not None and space.contains(operator)


def split_product(
    product: Product, kept_names: Collection[str]
) -> tuple[Product, tuple[int, ...], FloatArray]:
    """Return a product's part on ``kept_names``, its shape, and other factors.

    The other factors are multiples of the total along their attributes. The result also has the
    product's shape, with length 1 along these attributes.
    """
    is_named = [name in kept_names for name in product.attributes]
    if all(is_named):
        return product, product.shape, np.ones((1,) * len(is_named))
    times: FloatArray = np.ones(())
    for inside, operator in zip(is_named, product.operators, strict=True):
        if not (inside or are_multiples_of_total(operator)):
            raise undetermined_error(product)
        times = np.multiply.outer(
            times, np.ones(1) if inside else apply(operator, np.eye(1, operator.size)[0])
        )
    attributes = tuple(
        name for inside, name in zip(is_named, product.attributes, strict=True) if inside
    )
    sets = tuple(
        queries for inside, queries in zip(is_named, product.query_sets, strict=True) if inside
    )
    shape = tuple(
        rows if inside else 1 for inside, rows in zip(is_named, product.shape, strict=True)
    )
    return replace(product, attributes=attributes, query_sets=sets), shape, times
