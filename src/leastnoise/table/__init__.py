"""The opaque handle on encoded private rows."""
