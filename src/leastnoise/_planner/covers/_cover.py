"""Marginals by a few larger tables that contain the asked ones between them: for Laplace noise, whose budget is split over the tables.

Source: the idea of strategy C of Ding et al. (SIGMOD 2011) and of PriView (SIGMOD 2014); the search is described in ``_covering``.
"""

from leastnoise._accounting import Privacy
from leastnoise._planner._strategy import NotApplicable, Strategy
from leastnoise._planner.covers._designs import designed_strategy
from leastnoise._planner.tables._tables import asked_tables
from leastnoise._workload import Workload


def covering(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """Search for the tables to measure, and their best weights.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1; with Gaussian noise the residual spaces are better.

    Raises:
        NotApplicable: Gaussian noise, only one table is asked for, or a table has more than 2^28 cells.

    Guarantees: the same workload gives the same tables.

    >>> domain = Domain({f"a{place}": Coded(2) for place in range(4)})
    >>> found = covering(marginals(domain, ways=1), Privacy(PureDP(1)), 1)
    >>> sorted(len(block.attributes) for block, _ in found.blocks)
    [2, 2]
    """
    if power != 1:
        raise NotApplicable("covering tables are made for Laplace noise; with Gaussian noise residual is never worse")
    if all(len(sets) == 1 for sets in asked_tables(workload).values()):
        raise NotApplicable("only one table is asked for")
    return designed_strategy("covering", workload, {})
