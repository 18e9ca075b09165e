"""Attributes with finite public lists of cells, and what happens to a value outside them.

The rule that turns a value into a cell is written in `leastnoise._domain._kinds`; nothing here sees
a row, and nothing here needs numpy. What must be right for a release to be private is in `_cells`,
`_domain`, `_measure` and `_reading`; of the other files nothing need be believed.
"""

from leastnoise._domain._cells import (
    DROP,
    MOST,
    READ_AS_IT_IS,
    Clocked,
    Cuts,
    Forms,
    Keys,
    Rule,
    Steps,
    rule_of,
)
from leastnoise._domain._dates import FOLDED, Dates, period_of
from leastnoise._domain._domain import Domain
from leastnoise._domain._kind import Kind
from leastnoise._domain._kinds import (
    Bins,
    Categories,
    Coded,
    Decimals,
    Edges,
    Integers,
    Unknown,
    kind_from_json,
    kind_to_json,
)
from leastnoise._domain._labels import CellNames, label_text
from leastnoise._domain._levels import (
    RESERVED,
    Label,
    Level,
    group_pairs,
    known_keys,
    one_value_each,
)
from leastnoise._domain._measure import (
    Measure,
    PerCellBound,
    UnitCount,
    ValueCount,
    Weighted,
    factor_measures,
)
from leastnoise._domain._reading import BLANKS, MINUS, Reading, attribute_name
from leastnoise._domain._rules import inner_edges, multiples, number_pattern
