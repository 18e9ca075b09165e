"""Provide the kinds of attributes and the rules for their values.

Every attribute has a finite public list of cells, and rules for the values that have none of these
cells. This package has the kinds of attributes and the rules that assign a value to a cell. No code
of this package sees a row of the data. The trusted half of the package is
`leastnoise._trusted.domain`; its names can also be imported from here.
"""

from leastnoise._domain._dates import FOLDED, Dates, period_of
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
from leastnoise._domain._rules import inner_edges, multiples
from leastnoise._trusted.domain import (
    BLANKS,
    DROP,
    MINUS,
    MOST,
    READ_AS_IT_IS,
    RESERVED,
    CellNames,
    CompleteCount,
    DeviationProduct,
    Domain,
    KeyTable,
    Kind,
    Label,
    Level,
    Measure,
    PerCellBound,
    PerUnit,
    Reading,
    Rule,
    SquaredDeviation,
    StepTable,
    TextTable,
    ThresholdTable,
    TimeRule,
    UnitCount,
    UnitTotal,
    ValueCount,
    Weighted,
    attribute_name,
    checked_keys,
    column_measures,
    group_pairs,
    label_text,
    map_by_text,
    number_pattern,
    rule_of,
)
