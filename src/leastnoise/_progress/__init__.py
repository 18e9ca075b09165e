"""Progress of whatever takes over a second: on the standard error stream for commands, below the cell in notebooks."""

from leastnoise._progress._line import Progress, time_words
from leastnoise._progress._notebook import planning_shown, rows_shown

__all__ = ["Progress", "planning_shown", "rows_shown", "time_words"]
