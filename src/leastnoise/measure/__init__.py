"""The kernel: the ledger, exact noise, and the one place where private counts and noise meet."""

from leastnoise.measure._entropy import Entropy, SeededEntropy, SystemEntropy
from leastnoise.measure._kernel import measure, simulate
from leastnoise.measure._ledger import Ledger, Receipt
from leastnoise.measure._ledger_file import Entry

__all__ = ["Entropy", "Entry", "Ledger", "Receipt", "SeededEntropy", "SystemEntropy", "measure", "simulate"]
