"""The optimal mechanism for marginals under Gaussian noise: every residual space measured by itself, with noise of its own.

For a set tau of attributes the contrasts along all of them are measured, each row with noise in proportion to its norm, so that the noise
of the residual table is that of independent cells, projected. Sums of variances are then least among all mechanisms for marginals.

Source: Xiao, He, Zhang, Kifer, ResidualPlanner (arXiv 2305.08175); integer contrasts in place of their floating-point basis.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain

import numpy as np

from leastnoise._domain import Domain
from leastnoise._linop import Contrasts
from leastnoise._measurements import Block, Factor
from leastnoise._planner._strategy import Planner, Strategy, Task, each_attribute, spread_share, tables_of_cells
from leastnoise._planner.tables._marginal_weights import grouped_budgets
from leastnoise._planner.tables._tables import error_sums, factor_along

_UNIT = Fraction(1)


def residual(task: Task) -> Strategy:
    """Measure the residual spaces of all asked tables, each with its best share of the budget."""
    workload = task.workload
    domain = workload.domain
    blocks: list[Block] = []
    errors, norms = [], []
    across = 1 - 1 / np.array(domain.shape, dtype=np.float64)
    cells = {name: factor_along(domain, name, {}) for name in workload.attributes}
    for measure in workload.measures:
        for sets, sums in error_sums(workload.of(measure), cells):
            asked = sums > 0
            norm = across[sets[asked]].prod(axis=1)
            taus = sets[asked].tolist()
            if task.privacy.max_per_cell is not None:
                norm *= [spread_share(task.privacy, domain, [domain.names[place] for place in tau], contrasts=True) for tau in taus]
            blocks += contrasts(domain, taus, measure)
            errors.append(sums[asked])
            norms.append(domain.largest_value(measure) * np.sqrt(norm))
    weights = grouped_budgets(np.concatenate(errors), np.concatenate(norms), 2).theta.tolist()
    return Strategy("residual", tuple(zip(blocks, weights, strict=True)))


def contrasts(domain: Domain, taus: Sequence[Sequence[int]], measure: str | None) -> list[Block]:
    """The contrasts along sets of attributes, of counts or of a measure."""
    factors = {place: _contrasts(domain.names[place], domain.shape[place]) for place in {*chain.from_iterable(taus)}}
    return [Block(tuple([factors[place] for place in tau]), _UNIT, measure) for tau in taus]


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
