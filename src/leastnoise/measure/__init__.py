"""The kernel: measurement, ledger and noise."""
