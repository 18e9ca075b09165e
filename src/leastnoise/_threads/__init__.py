"""How many threads the linear algebra uses while the package computes: one, unless its user says otherwise."""

from leastnoise._threads._limit import SAID_BY, one_thread

__all__ = ["SAID_BY", "one_thread"]
