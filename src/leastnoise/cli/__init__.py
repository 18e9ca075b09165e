"""The commands."""

from leastnoise.cli._main import main

__all__ = ["main"]
