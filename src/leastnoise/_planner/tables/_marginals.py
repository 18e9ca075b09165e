"""Measure the marginals that are asked about, with the best weights, recovery by least squares included."""

from leastnoise._accounting import Privacy
from leastnoise._planner._strategy import Strategy
from leastnoise._planner.tables._tables import asked_tables, weighted_strategy
from leastnoise._workload import Workload


def marginals(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """One table of cells for every set of attributes that a product asks about.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: a table has more than 2^28 cells.

    Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after recovery.

    >>> domain = Domain(a=["x", "y", "z"], b=["x", "y", "z"])
    >>> [block.attributes for block, _ in marginals(ln.marginals(domain, ways=1), Privacy(PureDP(1)), 1).blocks]
    [('a',), ('b',)]
    """
    return weighted_strategy("marginals", workload, {}, asked_tables(workload), power)
