"""Define domains, rules from values to cells, and measures.

The privacy of a release depends on this code, which decides how rows are read.
"""

from leastnoise._trusted.domain._cells import (
    DROP,
    MOST,
    MOST_CELLS,
    READ_AS_IT_IS,
    Clocked,
    Cuts,
    Forms,
    Keys,
    Rule,
    Steps,
    kind_of,
    plain_json,
    read_domain_parts,
    rule_of,
)
from leastnoise._trusted.domain._column_types import NOT_NUMBERS, Holds, type_fault
from leastnoise._trusted.domain._domain import Domain
from leastnoise._trusted.domain._kind import (
    LISTED,
    NULL_LABEL,
    ORDERED,
    OUTSIDE_LABEL,
    Kind,
    check_bound,
    check_rising,
    own_fields,
)
from leastnoise._trusted.domain._labels import CellNames, label_text
from leastnoise._trusted.domain._levels import (
    OTHER,
    RESERVED,
    Label,
    Level,
    group_pairs,
    grouped,
    known_keys,
    one_value_each,
)
from leastnoise._trusted.domain._measure import (
    COMBINED_MEASURES,
    MOST_UNITS,
    CompleteCount,
    DeviationProduct,
    Measure,
    PerCellBound,
    PerUnit,
    SquaredDeviation,
    UnitCount,
    UnitTotal,
    ValueCount,
    Weighted,
    factor_measures,
)
from leastnoise._trusted.domain._reading import (
    BLANKS,
    MINUS,
    Reading,
    attribute_name,
    number_pattern,
)
