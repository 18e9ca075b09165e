"""Reconstruction and post-processing: least squares, and what users may ask for beside it."""

from leastnoise.estimate._least_squares import Estimate

__all__ = ["Estimate"]
