"""Choose the ledger that pays for a data set."""

from leastnoise._trusted.ledgers._choice import (
    ledger_for,
    ledger_made,
    other_ledgers,
    receipt_in,
    unknown_releases,
)
