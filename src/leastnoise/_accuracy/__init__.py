"""Exact expected error of (workload, plan), lower bounds and interval widths: one formula for planners and for error bars."""

from leastnoise._accuracy._blocks import block_rows, block_variance, subsets
from leastnoise._accuracy._bounds import lower_bound, nuclear_across, nuclear_norm, nuclear_parts
from leastnoise._accuracy._covariance import covariances
from leastnoise._accuracy._dense import DenseStructure
from leastnoise._accuracy._determined import UnsupportedQuery
from leastnoise._accuracy._form import Cells, Known, Measured, Structure, marginals_of
from leastnoise._accuracy._given_nothing import GivenNothing
from leastnoise._accuracy._iterative import IterativeStructure, confidence_factor
from leastnoise._accuracy._joint import Joint
from leastnoise._accuracy._joint_rows import joint_rows
from leastnoise._accuracy._level import LEVEL, checked_level
from leastnoise._accuracy._memory import available_memory, require_memory, within_memory
from leastnoise._accuracy._noise import interval_multiplier, noise_variance
from leastnoise._accuracy._pair import PairStructure, pair_structure, pair_terms
from leastnoise._accuracy._product import ProductStructure
from leastnoise._accuracy._promise import promised, structures, total_squared_error
from leastnoise._accuracy._ratio import ratio_interval
from leastnoise._accuracy._statistics import ROUNDING, farthest, mean_error, statistic_errors
from leastnoise._accuracy._structure import combined, quantity_structure, structure
from leastnoise._accuracy._subset_sums import Terms, subset_sums
from leastnoise._accuracy._told import Told, attributes_told, middle, middles, sums_told, told

__all__ = [
    "LEVEL",
    "ROUNDING",
    "Cells",
    "DenseStructure",
    "GivenNothing",
    "IterativeStructure",
    "Joint",
    "Known",
    "Measured",
    "PairStructure",
    "ProductStructure",
    "Structure",
    "Terms",
    "Told",
    "UnsupportedQuery",
    "attributes_told",
    "available_memory",
    "block_rows",
    "block_variance",
    "checked_level",
    "combined",
    "confidence_factor",
    "covariances",
    "farthest",
    "interval_multiplier",
    "joint_rows",
    "lower_bound",
    "marginals_of",
    "mean_error",
    "middle",
    "middles",
    "noise_variance",
    "nuclear_across",
    "nuclear_norm",
    "nuclear_parts",
    "pair_structure",
    "pair_terms",
    "promised",
    "quantity_structure",
    "ratio_interval",
    "require_memory",
    "statistic_errors",
    "structure",
    "structures",
    "subset_sums",
    "subsets",
    "sums_told",
    "told",
    "total_squared_error",
    "within_memory",
]
