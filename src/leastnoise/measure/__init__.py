"""The kernel: the ledger, exact noise, and the one place where private counts and noise meet."""

from leastnoise.measure._entropy import Entropy, SeededEntropy, SystemEntropy
from leastnoise.measure._kernel import measure, simulate
from leastnoise.measure._ledger import Ledger, Receipt
from leastnoise.measure._ledger_file import Entry
from leastnoise.measure._partition import Partition
from leastnoise.measure._plane import RectanglePartition
from leastnoise.measure._plane_blocks import FIRST_SHARE, GROUP_SHARE, RECORDS, divided, first_level, plane_regime
from leastnoise.measure._selections import CheapestPartition, LeastBlockCost, LeastCost, SampledPartition, SampledRectangles, Selection
from leastnoise.measure._series import Series
from leastnoise.measure._threshold import Threshold, geometric_candidates
from leastnoise.measure._threshold_selections import LeastErrorThreshold, RecursiveThreshold, SparseVectorThreshold

__all__ = [
    "FIRST_SHARE",
    "GROUP_SHARE",
    "RECORDS",
    "CheapestPartition",
    "Entropy",
    "Entry",
    "LeastBlockCost",
    "LeastCost",
    "LeastErrorThreshold",
    "Ledger",
    "Partition",
    "Receipt",
    "RectanglePartition",
    "RecursiveThreshold",
    "SampledPartition",
    "SampledRectangles",
    "SeededEntropy",
    "Selection",
    "Series",
    "SparseVectorThreshold",
    "SystemEntropy",
    "Threshold",
    "divided",
    "first_level",
    "geometric_candidates",
    "measure",
    "plane_regime",
    "simulate",
]
