"""Measure the marginals that are asked about, with the best weights, recovery by least squares included."""

from leastnoise._planner._strategy import Planner, Strategy, Task
from leastnoise._planner.tables._tables import Candidates, weighted_strategy


def marginals(task: Task) -> Strategy:
    """One table of cells for every set of attributes that a product asks about.

    Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after recovery.
    """
    workload, norm = task.workload, task.norm
    return weighted_strategy("marginals", workload, {}, Candidates(workload.tables), norm, privacy=task.privacy)


MARGINALS = Planner(
    name="marginals",
    propose=marginals,
    measures="the tables of cells that are asked about, with the best weights",
    made_for="marginals",
    limits="tables of 2^28 cells",
)
