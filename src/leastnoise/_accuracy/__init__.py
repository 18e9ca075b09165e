"""Exact expected error of (workload, plan), lower bounds and interval widths: one formula for planners and for error bars."""

from leastnoise._accuracy._basis import Basis, IdentityBasis, Undetermined, basis
from leastnoise._accuracy._blocks import block_rows, block_variance, explained, measured_along, subsets
from leastnoise._accuracy._bounds import lower_bound, nuclear_across, nuclear_norm, nuclear_parts
from leastnoise._accuracy._covariance import MOST_COVARIANCES, covariances
from leastnoise._accuracy._dense import DenseStructure
from leastnoise._accuracy._determined import Span, UnsupportedQuery
from leastnoise._accuracy._form import Cells, Known, Measured, Structure, marginals_of
from leastnoise._accuracy._given_nothing import GivenNothing
from leastnoise._accuracy._iterative import IterativeStructure, confidence_factor, repetitions
from leastnoise._accuracy._joint import MOST_JOINT, Joint, used
from leastnoise._accuracy._joint_rows import joint_rows
from leastnoise._accuracy._largest import Errors
from leastnoise._accuracy._level import LEVEL, checked_level
from leastnoise._accuracy._memory import available_memory, require_memory, within_memory
from leastnoise._accuracy._noise import interval_multiplier, noise_variance
from leastnoise._accuracy._operators import (
    apply_gram,
    first_cells,
    gram_diagonal,
    gram_generators,
    interval_ends,
    on_runs,
    row_squares,
    singular_values,
    zero_one,
)
from leastnoise._accuracy._pair import PairStructure, pair_structure, pair_terms
from leastnoise._accuracy._product import ProductStructure
from leastnoise._accuracy._promise import promised, structures, total_squared_error
from leastnoise._accuracy._ratio import ratio_interval
from leastnoise._accuracy._row_space import MOST_DENSE, RowSpace, row_space
from leastnoise._accuracy._statistics import ROUNDING, StatisticError, farthest, mean_error, statistic_errors
from leastnoise._accuracy._structure import combined, quantity_structure, structure
from leastnoise._accuracy._subset_sums import Terms, subset_sums
from leastnoise._accuracy._told import Told, attributes_told, middle, middles, sums_told, told

__all__ = [
    "LEVEL",
    "MOST_COVARIANCES",
    "MOST_DENSE",
    "MOST_JOINT",
    "ROUNDING",
    "Basis",
    "Cells",
    "DenseStructure",
    "Errors",
    "GivenNothing",
    "IdentityBasis",
    "IterativeStructure",
    "Joint",
    "Known",
    "Measured",
    "PairStructure",
    "ProductStructure",
    "RowSpace",
    "Span",
    "StatisticError",
    "Structure",
    "Terms",
    "Told",
    "Undetermined",
    "UnsupportedQuery",
    "apply_gram",
    "attributes_told",
    "available_memory",
    "basis",
    "block_rows",
    "block_variance",
    "checked_level",
    "combined",
    "confidence_factor",
    "covariances",
    "explained",
    "farthest",
    "first_cells",
    "gram_diagonal",
    "gram_generators",
    "interval_ends",
    "interval_multiplier",
    "joint_rows",
    "lower_bound",
    "marginals_of",
    "mean_error",
    "measured_along",
    "middle",
    "middles",
    "noise_variance",
    "nuclear_across",
    "nuclear_norm",
    "nuclear_parts",
    "on_runs",
    "pair_structure",
    "pair_terms",
    "promised",
    "quantity_structure",
    "ratio_interval",
    "repetitions",
    "require_memory",
    "row_space",
    "row_squares",
    "singular_values",
    "statistic_errors",
    "structure",
    "structures",
    "subset_sums",
    "subsets",
    "sums_told",
    "told",
    "total_squared_error",
    "used",
    "within_memory",
    "zero_one",
]
