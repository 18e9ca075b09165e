"""Integer linear operators (small frozen values) and the functions on them."""

from leastnoise.linop._functions import (
    all_range_ends,
    along,
    apply,
    apply_transpose,
    column_sums,
    dense,
    from_json,
    largest_row_sum,
    non_negative,
    pack,
    to_json,
    unpack,
)
from leastnoise.linop._operators import AllRanges, Dense, Identity, IntArray, Operator, Prefix, Ranges, Total, Tree

__all__ = [
    "AllRanges",
    "Dense",
    "Identity",
    "IntArray",
    "Operator",
    "Prefix",
    "Ranges",
    "Total",
    "Tree",
    "all_range_ends",
    "along",
    "apply",
    "apply_transpose",
    "column_sums",
    "dense",
    "from_json",
    "largest_row_sum",
    "non_negative",
    "pack",
    "to_json",
    "unpack",
]
