"""What is said when a run stops: why, and which payments to ask the ledgers about. It takes part in no payment."""

from leastnoise._stopped._causes import cause
from leastnoise._stopped._runs import note_run, runs

__all__ = ["cause", "note_run", "runs"]
