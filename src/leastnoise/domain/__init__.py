"""Attributes with a finite public list of values, and what happens to a value outside it."""
