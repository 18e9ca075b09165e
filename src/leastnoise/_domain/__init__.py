"""Attributes with finite public lists of cells, and what happens to a value outside them.

The rule that turns a value into a cell is written in `leastnoise._domain._kinds`; nothing here sees a row, and nothing here needs numpy.
"""

from leastnoise._domain._dates import FOLDED, Dates, period_of
from leastnoise._domain._domain import Domain
from leastnoise._domain._json import kind_from_json, kind_to_json
from leastnoise._domain._kind import RESERVED, Kind, Label, Level, number_text
from leastnoise._domain._kinds import Bins, Categories, Coded, Decimals, Edges, Integers, Unknown
from leastnoise._domain._measure import Measure, UnitCount, ValueCount
from leastnoise._domain._per_cell import PerCell
from leastnoise._domain._reading import BLANKS, Reading, attribute_name, known_keys, number_pattern
