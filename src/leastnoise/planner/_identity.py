"""Measure every cell of the joint table of all attributes that are asked about."""

import math
from fractions import Fraction

from leastnoise.accounting import Privacy
from leastnoise.linop import Identity
from leastnoise.plan import MOST_TABLE_CELLS, Block, Factor
from leastnoise.planner._strategy import NotApplicable, Strategy, weighted_tables
from leastnoise.workload import Workload


def identity(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """The cells of the joint table, one table a measure.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: the joint table has more than 2^28 cells.

    Source: the strategy I of Cormode et al. (arXiv 1207.6096).

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.workload import marginals
    >>> identity(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), Privacy(PureDP(1)), 1).blocks[0][0].rows
    4
    """
    tables = []
    for measure in workload.measures:
        products = [product for product in workload if product.measure == measure]
        asked = {name for product in products for name in product.attributes}
        names = [name for name in workload.domain.names if name in asked]
        cells = math.prod(workload.domain.kind(name).size for name in names)
        if not cells <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the joint table of {' x '.join(names)} has {cells} cells; at most {MOST_TABLE_CELLS} are allowed")
        factors = tuple(Factor((name,), Identity(workload.domain.kind(name).size)) for name in names)
        tables.append((Block(factors, Fraction(1), measure), products))
    return weighted_tables("identity", workload.domain, tables, power)
