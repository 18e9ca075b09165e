"""Keep the ledger, draw exact noise, and add it to private counts.

This is the only place where private counts and noise meet.
"""

from leastnoise._trusted.kernel._entropy import Entropy, SystemEntropy
from leastnoise._trusted.kernel._key_search import FoundKeys, KeySearch
from leastnoise._trusted.kernel._ledger import Ledger
from leastnoise._trusted.kernel._ledger_file import Entry, Limit
from leastnoise._trusted.kernel._ledger_run import NeedsData, Pending, Receipt
from leastnoise._trusted.kernel._periods import queries_due, required_table_keys
from leastnoise._trusted.kernel._plane import GRID, LeastCost
from leastnoise._trusted.kernel._quantile_selection import MOST_CELLS, QuantileSelection
from leastnoise._trusted.kernel._series import (
    ReleaseContract,
    Series,
    UnpaidSeries,
    row_allowance,
)
from leastnoise._trusted.kernel.helpers._outcome import (
    answers_from_text,
    outcome_from_text,
    outcome_to_text,
)
from leastnoise._trusted.kernel.helpers._seeded import SeededEntropy, simulate
