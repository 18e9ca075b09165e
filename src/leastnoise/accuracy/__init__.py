"""Exact expected error, lower bounds and intervals of a workload under a plan."""
