"""Exact expected error of (workload, plan), lower bounds and interval widths: one formula for planners and for error bars."""

from leastnoise.accuracy._basis import MOST_DENSE, Basis, IdentityBasis, Undetermined, basis
from leastnoise.accuracy._bounds import lower_bound, nuclear_norm, nuclear_parts
from leastnoise.accuracy._noise import interval_multiplier, noise_variance
from leastnoise.accuracy._promise import promised, structures, total_squared_error
from leastnoise.accuracy._structure import (
    DenseStructure,
    ProductStructure,
    Structure,
    UnsupportedQuery,
    block_rows,
    block_variance,
    joint_rows,
    structure,
    subsets,
    used,
)

__all__ = [
    "MOST_DENSE",
    "Basis",
    "DenseStructure",
    "IdentityBasis",
    "ProductStructure",
    "Structure",
    "Undetermined",
    "UnsupportedQuery",
    "basis",
    "block_rows",
    "block_variance",
    "interval_multiplier",
    "joint_rows",
    "lower_bound",
    "noise_variance",
    "nuclear_norm",
    "nuclear_parts",
    "promised",
    "structure",
    "structures",
    "subsets",
    "total_squared_error",
    "used",
]
