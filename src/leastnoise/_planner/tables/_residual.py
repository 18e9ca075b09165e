"""The optimal mechanism for marginals under Gaussian noise: every residual space measured by itself, with noise of its own.

For a set tau of attributes the contrasts along all of them are measured, each row with noise in proportion to its norm, so that the noise
of the residual table is that of independent cells, projected. Sums of variances are then least among all mechanisms for marginals.

Source: Xiao, He, Zhang, Kifer, ResidualPlanner (arXiv 2305.08175); integer contrasts in place of their floating-point basis.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from leastnoise._domain import Domain
from leastnoise._linop import Contrasts
from leastnoise._measurements import Block, Factor
from leastnoise._planner._strategy import Planner, Strategy, Task, each_attribute, spread_share, tables_of_cells
from leastnoise._planner.tables._marginal_weights import grouped_budgets
from leastnoise._planner.tables._tables import error_sums, factor_along

_UNIT = Fraction(1)


def residual(task: Task) -> Strategy:
    """Measure the residual spaces of all asked tables, each with its best share of the budget.

    Args:
        task: what is asked; optimal where it asks for marginals, and usable for any query sets.

        >>> found = residual(Task(marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1), Privacy(ZCDP(1)), Noise.DISCRETE_GAUSSIAN))
    >>> [block.attributes for block, _ in found.blocks]
    [(), ('a',), ('b',)]
    """
    workload = task.workload
    domain = workload.domain
    blocks, errors, norms = [], [], []
    across = {name: 1 - 1 / size for name, size in zip(domain.names, domain.shape, strict=True)}
    bounded = task.privacy.max_per_cell is not None
    for measure in workload.measures:
        products = [product for product in workload if product.measure == measure]
        largest = domain.largest_value(measure)
        cells = {name: factor_along(domain, name, {}) for name in workload.attributes}
        for tau, asked in error_sums(products, cells).items():
            if not asked > 0:
                continue
            blocks.append(contrasts(domain, tau, measure))
            errors.append(asked)
            share = spread_share(task.privacy, domain, tau, contrasts=True) if bounded else 1.0
            norms.append(largest * math.sqrt(share * math.prod(map(across.__getitem__, tau))))
    weights = grouped_budgets(errors, norms, 2).theta.tolist()
    return Strategy("residual", tuple(zip(blocks, weights, strict=True)))


def contrasts(domain: Domain, tau: Sequence[str], measure: str | None) -> Block:
    """The contrasts along a set of attributes, of counts or of a measure.

    >>> contrasts(Domain(a=["x", "y", "z"]), ["a"], None).rows
    2
    """
    return Block(tuple(_contrasts(name, domain.kind(name).size) for name in tau), _UNIT, measure)


@lru_cache(maxsize=1024)
def _contrasts(name: str, size: int) -> Factor:
    """Few factors make very many blocks."""
    return Factor((name,), Contrasts(size))


RESIDUAL = Planner(
    name="residual",
    propose=residual,
    measures="integer contrasts of every set of attributes, each set with its own noise: optimal for marginals",
    made_for="marginals under Gaussian noise",
    norms=(2,),
    instead="residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose covering",
    limits="tables of 2^28 cells",
    contains=tables_of_cells,
    seconds=each_attribute(lambda cells: 20 * (cells / 16384) ** 2),
)
