"""Choose the ledger that pays for a data set."""

from leastnoise._trusted.ledgers._ledger_choice import (
    CATEGORY_FOLDER,
    check_no_missing_releases,
    find_ledger,
    find_other_ledgers,
    find_unrecorded_releases,
    open_or_create_ledger,
    read_receipt,
)
