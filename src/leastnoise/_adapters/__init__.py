"""From files and data frames to encoded private rows; nothing of a row leaves by a message, and no row makes reading fail."""

from leastnoise._adapters._location import location
from leastnoise._adapters._read import columns, read

__all__ = ["columns", "location", "read"]
