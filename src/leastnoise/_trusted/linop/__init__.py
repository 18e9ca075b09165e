"""Integer linear operators (small frozen values) and the functions on them."""

from leastnoise._trusted.linop._functions import (
    all_range_ends,
    along,
    apply,
    column_sums,
    dense,
    entries,
    is_partition,
    largest_entry,
    last_cells,
    non_negative,
    operators,
    run_spread,
    run_sums,
)
from leastnoise._trusted.linop._operators import (
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
    narrow,
    sealed,
)
from leastnoise._trusted.linop._packed import (
    MOST_UNPACKED,
    pack,
    to_json,
    unpack,
    whole_bytes,
    whole_bytes_text,
)
from leastnoise._trusted.linop._plane_order import BlockTree, block_tree, interval_tree
from leastnoise._trusted.linop._structured import Coarse, Contrasts, Haar, Nested, Ordered, Toeplitz
from leastnoise._trusted.linop._transposes import apply_transpose
