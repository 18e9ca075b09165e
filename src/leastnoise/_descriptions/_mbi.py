"""``domain.json`` of mbi (private-pgm): the number of codes of every attribute."""

from collections.abc import Mapping
from typing import Any

from leastnoise._descriptions._description import Description


def is_mbi(value: Any) -> bool:
    """Whether it is an object of sizes."""
    return isinstance(value, Mapping) and bool(value) and all(type(size) is int and size > 0 for size in value.values())


def from_mbi(value: Mapping[str, int]) -> Description:
    """Codes 0 to size - 1, as mbi's data have them."""
    note = "mbi numbers the values of an attribute from 0; where the data have other values, write categories, integers or bins instead."
    return Description(tool="mbi", attributes={name: {"size": size} for name, size in value.items()}, notes=(note,))
