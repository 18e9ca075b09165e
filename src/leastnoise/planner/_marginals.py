"""Measure the marginals that are asked about, with the best split of the budget between them."""

from fractions import Fraction

from leastnoise.accounting import Privacy
from leastnoise.linop import Identity, Operator, Tree
from leastnoise.plan import MOST_TABLE_CELLS, Block, Factor
from leastnoise.planner._strategy import NotApplicable, Strategy, weighted_tables
from leastnoise.workload import Product, Workload

_ORDERED = ("prefix", "all_ranges", "ranges")


def marginals(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """One table of cells for every set of attributes that a product asks about.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: a table has more than 2^28 cells.

    Source: Cormode et al. (arXiv 1207.6096), strategy Q+; FORMULAS 4.2.

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.workload import marginals as ask
    >>> len(marginals(ask(Domain(a=["x", "y"], b=["x", "y"]), upto=2), Privacy(PureDP(1)), 1).blocks)
    4
    """
    return _tables("marginals", workload, {}, power)


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
    return _tables("hierarchy", workload, {name: Tree.full(workload.domain.kind(name).size, 2) for name in ordered}, power)


def _tables(name: str, workload: Workload, along: dict[str, Operator], power: int) -> Strategy:
    groups: dict[tuple[str | None, tuple[str, ...]], list[Product]] = {}
    for product in workload:
        groups.setdefault((product.measure, product.attributes), []).append(product)
    tables = []
    for (measure, names), products in groups.items():
        factors = tuple(Factor((one,), along.get(one, Identity(workload.domain.kind(one).size))) for one in names)
        block = Block(factors, Fraction(1), measure)
        if not block.rows <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the table of {' x '.join(names)} has {block.rows} measured cells; at most {MOST_TABLE_CELLS} are allowed")
        tables.append((block, products))
    return weighted_tables(name, workload.domain, tables, power)
