"""Private selections that only the experiments compare, with their proofs.

No release can run them.
"""
