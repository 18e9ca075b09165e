"""Measure the marginals that are asked about, with the best weights, recovery by least squares included."""

from leastnoise.accounting import Privacy
from leastnoise.linop import Tree
from leastnoise.plan import Factor
from leastnoise.planner._strategy import NotApplicable, Strategy
from leastnoise.planner._tables import asked_tables, weighted_strategy
from leastnoise.workload import Workload

_ORDERED = ("prefix", "all_ranges", "ranges")


def marginals(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """One table of cells for every set of attributes that a product asks about.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: a table has more than 2^28 cells.

    Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after recovery.

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.workload import marginals as ask
    >>> domain = Domain(a=["x", "y", "z"], b=["x", "y", "z"])
    >>> [block.attributes for block, _ in marginals(ask(domain, ways=1), Privacy(PureDP(1)), 1).blocks]
    [('a',), ('b',)]
    """
    return weighted_strategy("marginals", workload, {}, asked_tables(workload), power)


def hierarchy(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """As ``marginals``, with a binary hierarchy along every attribute whose prefix sums or ranges are asked for.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: no product asks for prefix sums or ranges, or a table has more than 2^28 cells.

    Source: Hay et al. 2010 (the hierarchy H2); FORMULAS 8.

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Domain, Integers
    >>> from leastnoise.workload import queries
    >>> hierarchy(queries(Domain(age=Integers(0, 7)), age="prefix"), Privacy(PureDP(1)), 1).blocks[0][0].rows
    15
    """
    kinds = {(name, q.kind) for product in workload for name, q in zip(product.attributes, product.query_sets, strict=True)}
    ordered = {name for name, kind in kinds if kind in _ORDERED}
    if not ordered:
        raise NotApplicable("a hierarchy needs prefix sums or ranges along some attribute, and the workload asks for none")
    along = {name: Factor((name,), Tree.full(workload.domain.kind(name).size, 2)) for name in ordered}
    return weighted_strategy("hierarchy", workload, along, asked_tables(workload), power)
