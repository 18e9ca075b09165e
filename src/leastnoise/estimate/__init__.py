"""Reconstruction and post-processing: least squares, and what users may ask for beside it."""

from leastnoise.estimate._least_squares import Estimate
from leastnoise.estimate._non_negative import monotone, non_negative, onto_simplex, projection_method, whole_numbers

__all__ = ["Estimate", "monotone", "non_negative", "onto_simplex", "projection_method", "whole_numbers"]
