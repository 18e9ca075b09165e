"""Planning with a line of progress."""

from typing import TYPE_CHECKING

from leastnoise._cli._memory import within_memory
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._plan import Plan
    from leastnoise._session import Spec


def planned_shown(what: "Spec") -> "tuple[Plan, float]":
    """The plan that a spec asks for, and the seconds that it took."""
    from leastnoise._session import planned_spec, spec_seconds

    with within_memory(), Progress("planning", about=spec_seconds(what)) as progress:
        made = planned_spec(what, progress.trying)
        return made, progress.seconds
