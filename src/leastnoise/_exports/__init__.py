"""A finished release in the forms that other people and programs read; post-processing of what is public, so it costs nothing."""

from leastnoise._exports._export import FILL_IN, Export, Published
from leastnoise._exports._registry import EXPORTS

__all__ = ["EXPORTS", "FILL_IN", "Export", "Published"]
