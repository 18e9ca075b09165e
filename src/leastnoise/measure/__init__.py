"""The kernel: the ledger, exact noise, and the one place where private counts and noise meet."""

from leastnoise.measure._entropy import Entropy, SeededEntropy, SystemEntropy
from leastnoise.measure._kernel import measure, simulate
from leastnoise.measure._ledger import Ledger, Receipt
from leastnoise.measure._ledger_file import Entry
from leastnoise.measure._partition import Partition
from leastnoise.measure._selections import CheapestPartition, LeastCost, SampledPartition, Selection
from leastnoise.measure._series import Series
from leastnoise.measure._threshold import Threshold, geometric_candidates
from leastnoise.measure._threshold_selections import LeastErrorThreshold, RecursiveThreshold, SparseVectorThreshold

__all__ = [
    "CheapestPartition",
    "Entropy",
    "Entry",
    "LeastCost",
    "LeastErrorThreshold",
    "Ledger",
    "Partition",
    "Receipt",
    "RecursiveThreshold",
    "SampledPartition",
    "SeededEntropy",
    "Selection",
    "Series",
    "SparseVectorThreshold",
    "SystemEntropy",
    "Threshold",
    "geometric_candidates",
    "measure",
    "simulate",
]
