"""A lower bound on the privacy loss of a plan: the installed kernel measures made-up rows."""

from leastnoise._audit._audit import Audit, audited
from leastnoise._audit._measured import Part
