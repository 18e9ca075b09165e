"""Files, data frames and databases, encoded into a table."""
