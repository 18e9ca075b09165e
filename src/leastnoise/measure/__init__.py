"""The kernel: the ledger, exact noise, and the one place where private counts and noise meet."""

from leastnoise.measure._entropy import Entropy, SeededEntropy, SystemEntropy
from leastnoise.measure._kernel import finish, measure, simulate
from leastnoise.measure._ledger import Ledger
from leastnoise.measure._ledger_file import Entry
from leastnoise.measure._ledger_steps import NeedsData, Pending, Receipt
from leastnoise.measure._partition import Partition
from leastnoise.measure._plane import RectanglePartition
from leastnoise.measure._rehearsal import rehearse
from leastnoise.measure._selections import CheapestPartition, LeastBlockCost, LeastCost, SampledPartition, SampledRectangles, Selection
from leastnoise.measure._series import Series

__all__ = [
    "CheapestPartition",
    "Entropy",
    "Entry",
    "LeastBlockCost",
    "LeastCost",
    "Ledger",
    "NeedsData",
    "Partition",
    "Pending",
    "Receipt",
    "RectanglePartition",
    "SampledPartition",
    "SampledRectangles",
    "SeededEntropy",
    "Selection",
    "Series",
    "SystemEntropy",
    "finish",
    "measure",
    "rehearse",
    "simulate",
]
