"""What a plan loses at least, seen from outside: the kernel as built, on rows that are made up."""

from leastnoise._audit._audit import Audit, audited
from leastnoise._audit._measured import Part
