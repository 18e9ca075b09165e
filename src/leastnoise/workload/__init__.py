"""The linear queries that are asked."""
