"""Opaque handles on encoded private rows, or on counts of them."""

from leastnoise._trusted.table._allowance import (
    DIGEST_BYTES,
    SALT_BYTES,
    PeriodUse,
    RowAllowance,
    UsedRows,
    used_rows,
)
from leastnoise._trusted.table._table import (
    Codes,
    Columns,
    Counted,
    Keyed,
    Table,
    TableKey,
    Values,
    code_dtype,
    open_content,
    set_reading_day,
)
from leastnoise._trusted.table.helpers._attribute_groups import AttributeGroup, group_attribute_sets
