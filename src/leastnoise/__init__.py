"""Batches of linear queries over a sensitive table, under differential privacy, with the least error known to be possible."""
