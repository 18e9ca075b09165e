"""Integer linear operators (small frozen values) and the functions on them."""

from leastnoise._trusted.linop._operator_functions import (
    all_range_ends,
    apply,
    apply_along_axis,
    block_sums,
    column_sums,
    dense,
    entry_bounds,
    is_partition,
    largest_entry,
    last_cells,
    non_negative,
    operator_classes,
    repeat_entries,
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
    as_int32_if_exact,
    sealed_copy,
)
from leastnoise._trusted.linop._structured import Coarse, Contrasts, Haar, Nested, Ordered, Toeplitz
from leastnoise._trusted.linop.helpers._packed import (
    MOST_UNPACKED,
    array_from_json,
    array_to_json,
    noisy_array_to_json,
    noisy_array_to_json_text,
    to_json,
)
from leastnoise._trusted.linop.helpers._plane_order import BlockTree, block_tree, interval_tree
from leastnoise._trusted.linop.helpers._transposes import apply_transpose
