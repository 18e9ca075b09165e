"""The trusted computing base: the code that must be right for a release to be private.

It imports NumPy, the standard library and, for reading, PyArrow, DuckDB, narwhals, SQLGlot and the
driver of PostgreSQL. It imports nothing else of leastnoise. Each folder has its proofs beside it.
"""
