"""Attributes with finite public lists of cells, and what happens to a value outside them.

The rule that turns a value into a cell is written in `leastnoise._domain._kinds`; nothing here sees a row, and nothing here needs numpy.
"""

from leastnoise._domain._domain import Domain
from leastnoise._domain._kinds import Bins, Categories, Coded, Integers, Kind, Measure
from leastnoise._domain._names import attribute_name, did_you_mean, known_keys

__all__ = ["Bins", "Categories", "Coded", "Domain", "Integers", "Kind", "Measure", "attribute_name", "did_you_mean", "known_keys"]
