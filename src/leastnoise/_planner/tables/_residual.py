"""The optimal mechanism for marginals under Gaussian noise: every residual space measured by itself, with noise of its own.

For a set tau of attributes the contrasts along all of them are measured, each row with noise in proportion to its norm, so that the noise
of the residual table is that of independent cells, projected. Sums of variances are then least among all mechanisms for marginals.

With the same measurements the largest variance of a cell can be made least instead (``residual_max``).

Source: Xiao, He, Zhang, Kifer, ResidualPlanner (arXiv 2305.08175); integer contrasts in place of their floating-point basis.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from leastnoise._accounting import Privacy
from leastnoise._domain import Domain
from leastnoise._linop import Contrasts
from leastnoise._plan import Block, Factor
from leastnoise._planner._strategy import NotApplicable, Strategy
from leastnoise._planner.tables._marginal_weights import grouped_budgets, residual_noise_max
from leastnoise._planner.tables._residual_algebra import attribute_sets, downward_closure
from leastnoise._planner.tables._tables import error_sums, factor_along
from leastnoise._workload import Workload


def residual(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """Measure the residual spaces of all asked tables, each with its best share of the budget.

    Args:
        workload: what is asked; optimal where it asks for marginals, and usable for any query sets.
        privacy: not used; every planner takes it.
        power: 2; Laplace noise is not spent evenly on contrasts.

    Raises:
        NotApplicable: Laplace noise, or a residual table too large to count.

    >>> found = residual(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), Privacy(ZCDP(1)), 2)
    >>> [block.attributes for block, _ in found.blocks]
    [(), ('a',), ('b',)]
    """
    if power != 2:
        raise NotApplicable("residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose covering")
    domain = workload.domain
    blocks, errors, norms = [], [], []
    for measure in workload.measures:
        products = [product for product in workload if product.measure == measure]
        largest = 1 if measure is None else domain.measures[measure].largest
        cells = {name: factor_along(domain, name, {}) for product in products for name in product.attributes}
        for tau, asked in error_sums(products, cells).items():
            if not asked > 0 or any(domain.kind(name).size == 1 for name in tau):
                continue
            blocks.append(_contrasts(domain, tau, measure))
            errors.append(asked)
            norms.append(largest * math.sqrt(math.prod(1 - 1 / domain.kind(name).size for name in tau)))
    weights = grouped_budgets(errors, norms, "l2").theta.tolist()
    return Strategy("residual", tuple(zip(blocks, weights, strict=True)))


def _contrasts(domain: Domain, tau: Sequence[str], measure: str | None) -> Block:
    return Block(tuple(Factor((name,), Contrasts(domain.kind(name).size)) for name in tau), Fraction(1), measure)


def residual_max(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """Measure the residual spaces so that the largest variance of all asked cells, each times its weight squared, is least.

    Args:
        workload: what is asked: marginals of counts.
        privacy: not used; every planner takes it.
        power: 2; Laplace noise is not spent evenly on contrasts.

    Raises:
        NotApplicable: Laplace noise, sums, or queries other than cells.

    Source: ResidualPlanner (arXiv 2305.08175), the maximum of variances, by a concave dual.

    >>> found = residual_max(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), Privacy(ZCDP(1)), 2)
    >>> [block.attributes for block, _ in found.blocks]
    [(), ('a',), ('b',)]
    """
    if power != 2:
        raise NotApplicable("residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose cuboids")
    if any(product.measure is not None or not product.is_marginal for product in workload):
        raise NotApplicable("the largest variance is made least for cells of tables of counts alone; choose residual")
    domain = workload.domain
    places = {name: place for place, name in enumerate(domain.names)}
    scales: dict[tuple[int, ...], float] = {}
    for product in workload:
        table = tuple(places[name] for name in product.attributes)
        scales[table] = max(scales.get(table, 0.0), product.importance)
    closure = downward_closure(domain.shape, scales)
    noise, largest, bound = residual_noise_max(closure, list(scales), list(scales.values()))
    blocks = []
    for tau, variance in zip(attribute_sets(closure), noise.tolist(), strict=True):
        if math.isfinite(variance) and not any(domain.shape[place] == 1 for place in tau):
            blocks.append((_contrasts(domain, [domain.names[place] for place in tau], None), 1 / math.sqrt(variance)))
    return Strategy("residual_max", tuple(blocks), {"largest_variance_over_least": largest / bound})
