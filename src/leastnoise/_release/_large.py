"""Tables that are too large to write: their cells and prefix sums in their place, from which every interval follows."""

from collections.abc import Sequence
from dataclasses import replace

from leastnoise._workload import Product, QuerySet, all_ranges, identity, prefix

MOST_WRITTEN = 10_000_000
"""Answers of one table that are written; public."""


def written(products: Sequence[Product]) -> tuple[Product, ...]:
    """What is written for some tables."""
    cells = tuple(_instead(product, identity()) if is_large(product) else product for product in products)
    return cells + tuple(_instead(product, prefix()) for product in products if is_large(product))


def is_large(product: Product) -> bool:
    """Whether a table has too many answers to be written, and few enough cells."""
    return product.rows > MOST_WRITTEN >= _instead(product, identity()).rows


def is_part(question: Product, asked: Product) -> bool:
    """Whether every query of a table is one of another table."""
    pairs = zip(question.query_sets, asked.query_sets, strict=False)
    return (question.measure, question.attributes) == (asked.measure, asked.attributes) and all(
        own == other or (other == all_ranges() and own.form.intervals) for own, other in pairs
    )


def _instead(product: Product, instead: QuerySet) -> Product:
    sets = tuple(instead if queries == all_ranges() else queries for queries in product.query_sets)
    return replace(product, query_sets=sets)
