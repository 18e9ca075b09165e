"""The optimal mechanism for marginals under Gaussian noise: every residual space measured by itself, with noise of its own.

For a set tau of attributes the contrasts along all of them are measured, each row with noise in proportion to its norm, so that the noise
of the residual table is that of independent cells, projected. Sums of variances are then least among all mechanisms for marginals.

Source: Xiao, He, Zhang, Kifer, ResidualPlanner (arXiv 2305.08175); integer contrasts in place of their floating-point basis.
"""

import math
from fractions import Fraction

from leastnoise.accounting import Privacy
from leastnoise.linop import Contrasts
from leastnoise.plan import Block, Factor
from leastnoise.planner._strategy import NotApplicable, Strategy
from leastnoise.planner._tables import error_sums, factor_along
from leastnoise.workload import Workload


def residual(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """Measure the residual spaces of all asked tables, each with its best share of the budget.

    Args:
        workload: what is asked; optimal where it asks for marginals, and usable for any query sets.
        privacy: not used; every planner takes it.
        power: 2; Laplace noise is not spent evenly on contrasts.

    Raises:
        NotApplicable: Laplace noise, or a residual table too large to count.

    >>> from leastnoise.accounting import ZCDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.workload import marginals
    >>> found = residual(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), Privacy(ZCDP(1)), 2)
    >>> [block.attributes for block, _ in found.blocks]
    [(), ('a',), ('b',)]
    """
    if power != 2:
        raise NotApplicable("residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose covering")
    domain = workload.domain
    found = []
    for measure in workload.measures:
        products = [product for product in workload if product.measure == measure]
        largest = 1 if measure is None else domain.measures[measure].largest
        asked_along = dict.fromkeys(name for product in products for name in product.attributes)
        cells = {name: factor_along(domain, name, {}) for name in asked_along}
        along = {name: Factor((name,), Contrasts(domain.kind(name).size)) for name in cells if domain.kind(name).size > 1}
        for tau, asked in error_sums(products, cells).items():
            if not asked > 0 or any(domain.kind(name).size == 1 for name in tau):
                continue
            # At weight w the squared norm of a column is w^2 cost and the error asked / w^2: w^2 in proportion to (asked / cost)^(1/2).
            cost = largest**2 * math.prod((domain.kind(name).size - 1) / domain.kind(name).size for name in tau)
            found.append((Block(tuple(along[name] for name in tau), Fraction(1), measure), (asked / cost) ** 0.25))
    return Strategy("residual", tuple(found))
