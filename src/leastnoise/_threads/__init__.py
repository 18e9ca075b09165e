"""Threads: one for the linear algebra while the package computes, unless its user says otherwise; and the cores there are for writing."""

from leastnoise._threads._beside import Beside
from leastnoise._threads._limit import SAID_BY, one_thread

__all__ = ["SAID_BY", "Beside", "one_thread"]
