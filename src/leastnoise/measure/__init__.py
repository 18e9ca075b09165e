"""The kernel: the ledger, exact noise, and the one place where private counts and noise meet."""

from leastnoise.measure._entropy import Entropy, SeededEntropy, SystemEntropy
from leastnoise.measure._kernel import measure, simulate
from leastnoise.measure._ledger import Ledger, Receipt
from leastnoise.measure._ledger_file import Entry
from leastnoise.measure._partition import Partition
from leastnoise.measure._selections import CheapestPartition, LeastCost, SampledPartition, Selection
from leastnoise.measure._series import Series

__all__ = [
    "CheapestPartition",
    "Entropy",
    "Entry",
    "LeastCost",
    "Ledger",
    "Partition",
    "Receipt",
    "SampledPartition",
    "SeededEntropy",
    "Selection",
    "Series",
    "SystemEntropy",
    "measure",
    "simulate",
]
