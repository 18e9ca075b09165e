"""From files and data frames to encoded private rows; nothing of a row leaves by a message, and no row makes reading fail."""

from leastnoise._adapters._location import (
    check_unit,
    dataset_name,
    join_facts,
    ledger_beside,
    location,
    protected_tables,
)
from leastnoise._adapters._places import CSV, DatabaseTable, Joined, located
from leastnoise._adapters._read import Wanted, check_source, csv_delimiter, read, read_keys
from leastnoise._adapters._schema import SchemaField, file_endings, has_text_rows, schema
from leastnoise._adapters._units import CUT, MOST_CUT, ROWS, USAGE
