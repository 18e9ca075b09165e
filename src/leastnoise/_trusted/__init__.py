"""The trusted computing base: code on which the privacy of releases rests.

This package imports NumPy, the standard library and, for reading, PyArrow, DuckDB, narwhals,
SQLGlot and the driver of PostgreSQL. It imports portalocker for file locks, which only decide which
process waits. It imports no other part of leastnoise. Each folder contains its proofs. A release
stays private if code in the folders `helpers` is wrong.
"""
