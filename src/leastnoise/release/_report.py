"""The report."""

from collections.abc import Sequence

from leastnoise.release._files import TableEntry
from leastnoise.release._release import Release


def report(release: Release, entries: Sequence[TableEntry]) -> str:
    """A page."""
    return f"<!DOCTYPE html><title>{len(entries)} tables</title>{release.level}"
