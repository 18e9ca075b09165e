"""Integer linear operators (small frozen values) and the functions on them."""

from leastnoise._linop._contrasts import Contrasts
from leastnoise._linop._functions import (
    all_range_ends,
    along,
    apply,
    apply_transpose,
    column_sums,
    dense,
    largest_entry,
    non_negative,
    operators,
    run_spread,
    run_sums,
)
from leastnoise._linop._haar import Haar
from leastnoise._linop._json import MOST_UNPACKED, narrow, pack, to_json, unpack, whole_bytes, whole_bytes_text
from leastnoise._linop._nested import Nested
from leastnoise._linop._operators import (
    AllRanges,
    Dense,
    DiagonalAndRows,
    Identity,
    Operator,
    Prefix,
    Ranges,
    SignedArray,
    Total,
    Tree,
    sealed,
)
from leastnoise._linop._plane_order import BlockTree, block_tree, interval_tree
from leastnoise._linop._rearranged import Coarse, Ordered
from leastnoise._linop._toeplitz import Toeplitz

__all__ = [
    "MOST_UNPACKED",
    "AllRanges",
    "BlockTree",
    "Coarse",
    "Contrasts",
    "Dense",
    "DiagonalAndRows",
    "Haar",
    "Identity",
    "Nested",
    "Operator",
    "Ordered",
    "Prefix",
    "Ranges",
    "SignedArray",
    "Toeplitz",
    "Total",
    "Tree",
    "all_range_ends",
    "along",
    "apply",
    "apply_transpose",
    "block_tree",
    "column_sums",
    "dense",
    "interval_tree",
    "largest_entry",
    "narrow",
    "non_negative",
    "operators",
    "pack",
    "run_spread",
    "run_sums",
    "sealed",
    "to_json",
    "unpack",
    "whole_bytes",
    "whole_bytes_text",
]
