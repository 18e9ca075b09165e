"""Marginals by a few larger tables that contain the asked ones between them: for Laplace noise, whose budget is split over the tables.

Source: the idea of strategy C of Ding et al. (SIGMOD 2011) and of PriView (SIGMOD 2014); how they are chosen is described in ``_covering``.
"""

from leastnoise._families import NotApplicable
from leastnoise._planner._strategy import Planner, Strategy, Task, tables_of_cells
from leastnoise._planner.covers._designs import design_seconds, designed_strategy


def covering(task: Task) -> Strategy:
    """Choose the tables to measure, and their best weights.

    Guarantees: the same workload gives the same tables.
    """
    workload = task.workload
    if all(len(sets) == 1 for sets in workload.tables.values()):
        raise NotApplicable("only one table is asked for")
    return designed_strategy("covering", workload, {})


COVERING = Planner(
    name="covering",
    propose=covering,
    measures="a few larger tables that contain the asked ones between them",
    made_for="marginals under Laplace noise",
    norms=(1,),
    instead="covering tables are made for Laplace noise; with Gaussian noise residual is never worse",
    limits="tables of 2^28 cells",
    contains=tables_of_cells,
    laplace=design_seconds,
)
