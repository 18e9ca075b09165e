"""Reconstruction and post-processing: least squares, and what users may ask for beside it."""

from leastnoise.estimate._consistency import consistent, disagreement, from_residual_parts, residual_parts, unknowns
from leastnoise.estimate._least_squares import Estimate
from leastnoise.estimate._local_non_negative import LocallyNonNegative, locally_non_negative
from leastnoise.estimate._non_negative import monotone, non_negative, onto_simplex, projection_method, whole_numbers

__all__ = [
    "Estimate",
    "LocallyNonNegative",
    "consistent",
    "disagreement",
    "from_residual_parts",
    "locally_non_negative",
    "monotone",
    "non_negative",
    "onto_simplex",
    "projection_method",
    "residual_parts",
    "unknowns",
    "whole_numbers",
]
