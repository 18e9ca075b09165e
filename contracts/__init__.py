"""Checks of the source files, for tests and maintainers; none is part of the package."""
