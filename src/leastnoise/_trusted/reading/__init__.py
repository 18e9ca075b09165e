"""Read files, data frames and databases into encoded private rows.

No message contains data of a row, and no row makes reading fail.
"""

from leastnoise._trusted.reading._data_names import (
    check_unit,
    dataset_name,
    join_facts,
    ledger_beside,
    source_location,
)
from leastnoise._trusted.reading._read import (
    PeriodFiles,
    ReadRequest,
    check_source,
    csv_delimiter,
    read,
    read_keys,
    read_unit_sizes,
)
from leastnoise._trusted.reading._units import (
    ATTRIBUTE,
    CUT,
    LACKING,
    MOST_CUT,
    ROWS,
    cut_amount,
    cut_limit,
    kept_amount,
    usage_domain,
)
from leastnoise._trusted.reading.helpers._locations import (
    CSV,
    DatabaseTable,
    Joined,
    list_joins,
    private_tables,
    source_from_location,
)
