"""Reconstruction and post-processing of observations."""
