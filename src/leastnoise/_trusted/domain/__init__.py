"""Define domains, rules from values to cells, and measures.

The privacy of a release depends on this code, which decides how rows are read.
"""

from leastnoise._trusted.domain._cells import (
    DROP,
    MOST,
    MOST_CELLS,
    READ_AS_IT_IS,
    KeyTable,
    Rule,
    StepTable,
    TextTable,
    ThresholdTable,
    TimeRule,
    kind_of_argument,
    plain_json,
    read_domain_parts,
    rule_of,
)
from leastnoise._trusted.domain._domain import Domain
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
    column_measures,
)
from leastnoise._trusted.domain._reading import (
    BLANKS,
    MINUS,
    Reading,
    attribute_name,
    number_pattern,
)
from leastnoise._trusted.domain.helpers._column_type_checks import NOT_NUMBERS, Holds, type_fault
from leastnoise._trusted.domain.helpers._kind import (
    LISTED,
    NULL_LABEL,
    ORDERED,
    OUTSIDE_LABEL,
    Kind,
    added_fields,
    check_bound,
    check_bounds_order,
)
from leastnoise._trusted.domain.helpers._labels import CellNames, label_text
from leastnoise._trusted.domain.helpers._levels import (
    OTHER,
    RESERVED,
    Label,
    Level,
    checked_keys,
    group_pairs,
    level_of_groups,
    map_by_text,
)
