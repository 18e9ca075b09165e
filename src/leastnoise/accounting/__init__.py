"""Budgets, the privacy unit, exact costs, and what a ledger sums."""
