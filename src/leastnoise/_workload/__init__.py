"""What is asked: query sets on attributes, their products, and weighted unions of those."""

from leastnoise._workload._query_sets import (
    QuerySet,
    all_ranges,
    identity,
    level,
    matrix,
    predicates,
    prefix,
    query_set,
    ranges,
    total,
)
from leastnoise._workload._target import Target, target
from leastnoise._workload._workload import Product, Workload, from_json, marginals, queries, together

__all__ = [
    "Product",
    "QuerySet",
    "Target",
    "Workload",
    "all_ranges",
    "from_json",
    "identity",
    "level",
    "marginals",
    "matrix",
    "predicates",
    "prefix",
    "queries",
    "query_set",
    "ranges",
    "target",
    "together",
    "total",
]
