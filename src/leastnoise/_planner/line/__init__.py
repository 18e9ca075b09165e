"""Strategies along one attribute: families of real strategies, and their rounding to integer factors."""
