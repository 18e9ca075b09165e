"""The kernel: the ledger, exact noise, and the one place where private counts and noise meet."""

from leastnoise._kernel._entropy import Entropy, SystemEntropy
from leastnoise._kernel._keys import FoundKeys, KeySearch
from leastnoise._kernel._ledger import Ledger
from leastnoise._kernel._ledger_file import Entry, Limit
from leastnoise._kernel._ledger_run import NeedsData, Pending, Receipt
from leastnoise._kernel._periods import measured_tables, rows_due
from leastnoise._kernel._plane import LeastCost
from leastnoise._kernel._seeded import SeededEntropy, simulate
from leastnoise._kernel._series import ReleaseContract, Series, UnpaidSeries
