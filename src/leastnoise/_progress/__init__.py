"""Progress of whatever takes over a second: on the standard error stream for commands, below the cell in notebooks."""

from leastnoise._progress._progress import Progress, planning_shown, rows_shown, time_words

__all__ = ["Progress", "planning_shown", "rows_shown", "time_words"]
