"""Reconstruction and post-processing: least squares, and what users may ask for beside it."""

from leastnoise.estimate._consistency import consistent, disagreement, from_residual_parts, residual_parts, unknowns
from leastnoise.estimate._least_squares import Estimate
from leastnoise.estimate._local_non_negative import LocallyNonNegative, locally_non_negative
from leastnoise.estimate._nnls import NonNegativeCells, nnls, weak_total
from leastnoise.estimate._non_negative import monotone, non_negative, onto_simplex, projection_method, whole_numbers
from leastnoise.estimate._synthetic import synthetic_counts, synthetic_rows

__all__ = [
    "Estimate",
    "LocallyNonNegative",
    "NonNegativeCells",
    "consistent",
    "disagreement",
    "from_residual_parts",
    "locally_non_negative",
    "monotone",
    "nnls",
    "non_negative",
    "onto_simplex",
    "projection_method",
    "residual_parts",
    "synthetic_counts",
    "synthetic_rows",
    "unknowns",
    "weak_total",
    "whole_numbers",
]
