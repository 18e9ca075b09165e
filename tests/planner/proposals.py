"""What planners propose, for the tests of several folders."""

from leastnoise._accounting import Budget, Noise, Privacy
from leastnoise._mechanisms import noises
from leastnoise._planner import PLANNERS, Strategy, Task
from leastnoise._workload import Workload


def proposal(name: str, workload: Workload, privacy: Privacy | Budget, noise: Noise | None = None) -> Strategy:
    """The strategy of a planner, by default for the usual noise of the budget."""
    whole = privacy if isinstance(privacy, Privacy) else Privacy(privacy)
    return PLANNERS[name].strategy(Task(workload, whole, noise or noises(whole)[0]))
