"""Measure what is asked, as it is asked, all with the same noise."""

from leastnoise._planner._strategy import Planner, Strategy, Task
from leastnoise._planner.tables._workload import asked_blocks


def workload_even(task: Task) -> Strategy:
    """Every product of the workload as a measured table, all with the same noise.

    Source: the strategy Q of Cormode et al. (arXiv 1207.6096); recovery by least squares comes on top.
    """
    return Strategy("workload_even", tuple((block, 1.0) for block in asked_blocks(task.workload)))


WORKLOAD_EVEN = Planner(
    name="workload_even",
    propose=workload_even,
    measures="every query that is asked, all with the same noise",
    made_for="Q",
    limits="2^22 queries",
    automatic=False,
)
