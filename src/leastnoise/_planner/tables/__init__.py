"""Which tables are measured, and with which weights."""
