"""Reconstruction and post-processing: least squares, and what users may ask for beside it."""

from leastnoise._estimate._answer import Answer, Estimator
from leastnoise._estimate._expansion import data_aware, is_data_aware
from leastnoise._estimate._hidden import choice_hides, tested
from leastnoise._estimate._isotonic import isotonic
from leastnoise._estimate._join import join
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._local_non_negative import LocallyNonNegative, locally_non_negative
from leastnoise._estimate._means import Means, means
from leastnoise._estimate._nnls import REPETITIONS, NonNegativeCells, nnls, weak_total
from leastnoise._estimate._non_negative import monotone, non_negative, onto_simplex, projection_method, whole_numbers
from leastnoise._estimate._posterior import shrunk_levels
from leastnoise._estimate._quantiles import Cdf, Quantile, cdf, linear, quantiles, simulated_noise
from leastnoise._estimate._residual_parts import from_residual_parts, residual_parts
from leastnoise._estimate._shrinkage import Halving, Levels, Shrunk, cheapest_blocks, shrink

__all__ = [
    "REPETITIONS",
    "Answer",
    "Cdf",
    "Estimate",
    "Estimator",
    "Halving",
    "Levels",
    "LocallyNonNegative",
    "Means",
    "NonNegativeCells",
    "Quantile",
    "Shrunk",
    "cdf",
    "cheapest_blocks",
    "choice_hides",
    "data_aware",
    "from_residual_parts",
    "is_data_aware",
    "isotonic",
    "join",
    "linear",
    "locally_non_negative",
    "means",
    "monotone",
    "nnls",
    "non_negative",
    "onto_simplex",
    "projection_method",
    "quantiles",
    "residual_parts",
    "shrink",
    "shrunk_levels",
    "simulated_noise",
    "tested",
    "weak_total",
    "whole_numbers",
]
