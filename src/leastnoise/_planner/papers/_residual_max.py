"""As ``residual``, with the largest variance of a cell least instead of the sum.

Source: Xiao, He, Zhang, Kifer, ResidualPlanner (arXiv 2305.08175), the maximum of variances.
"""

import numpy as np

from leastnoise._planner._strategy import NotApplicable, Planner, Strategy, Task
from leastnoise._planner.tables._marginal_weights import residual_noise_max
from leastnoise._planner.tables._residual import contrasts
from leastnoise._planner.tables._residual_algebra import attribute_sets, downward_closure


def residual_max(task: Task) -> Strategy:
    """Measure the residual spaces so that the largest variance of all asked cells, each times its weight squared, is least.

    Source: ResidualPlanner (arXiv 2305.08175), the maximum of variances, by a concave dual.
    """
    workload = task.workload
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
    taus = attribute_sets(closure)
    kept = np.isfinite(noise) & [all(domain.shape[place] > 1 for place in tau) for tau in taus]
    blocks = contrasts(domain, [tau for tau, keep in zip(taus, kept.tolist(), strict=True) if keep], None)
    weighted = tuple(zip(blocks, (1 / np.sqrt(noise[kept])).tolist(), strict=True))
    return Strategy("residual_max", weighted, {"largest_variance_over_least": largest / bound})


RESIDUAL_MAX = Planner(
    name="residual_max",
    propose=residual_max,
    measures="as `residual`, with the largest variance of a cell (times its table's weight squared) least instead of the sum",
    made_for="marginals of counts under Gaussian noise",
    norms=(2,),
    instead="residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose cuboids",
    automatic=False,
)
