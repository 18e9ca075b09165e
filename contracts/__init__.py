"""Checks of the sources that run with the import contracts and the tests; none of this is part of the package."""
