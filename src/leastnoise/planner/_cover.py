"""Marginals by a few larger tables that contain the asked ones between them: for Laplace noise, whose budget is split over the tables.

Source: the idea of strategy C of Ding et al. (SIGMOD 2011) and of PriView (SIGMOD 2014); the search is described in ``_covering``.
"""

import math

import numpy as np

from leastnoise.accounting import Privacy
from leastnoise.planner._covering import covering_design
from leastnoise.planner._residual_algebra import attribute_sets, downward_closure
from leastnoise.planner._strategy import NotApplicable, Strategy
from leastnoise.planner._tables import asked_tables, error_sums, factor_along, weighted_strategy
from leastnoise.workload import Workload

_EFFORT = 2.0  # about two seconds of one core


def covering(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """Search for the tables to measure, and their best weights.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1; with Gaussian noise the residual spaces are better.

    Raises:
        NotApplicable: Gaussian noise, only one table is asked for, or a table of over 2^28 cells was found best.

    Guarantees: the same workload gives the same tables.

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Coded, Domain
    >>> from leastnoise.workload import marginals
    >>> domain = Domain({f"a{place}": Coded(2) for place in range(4)})
    >>> found = covering(marginals(domain, ways=1), Privacy(PureDP(1)), 1)
    >>> sorted(len(block.attributes) for block, _ in found.blocks)
    [2, 2]
    """
    if power != 1:
        raise NotApplicable("covering tables are made for Laplace noise; with Gaussian noise residual is never worse")
    domain = workload.domain
    places = {name: place for place, name in enumerate(domain.names)}
    tables = asked_tables(workload)
    if all(len(sets) == 1 for sets in tables.values()):
        raise NotApplicable("only one table is asked for")
    chosen: dict[str | None, list[tuple[str, ...]]] = {}
    start: dict[str | None, list[float]] = {}
    for measure, sets in tables.items():
        products = [product for product in workload if product.measure == measure]
        cells = {name: factor_along(domain, name, {}) for names in sets for name in names}
        sums = error_sums(products, cells)
        closure = downward_closure(domain.shape, [tuple(places[name] for name in names) for names in sums])
        named = [tuple(domain.names[place] for place in tau) for tau in attribute_sets(closure)]
        # ``_covering`` counts lambda(tau) without the product of the sizes of tau; see ``_tables``.
        coefficient = np.array([sums.get(tau, 0.0) / math.prod(domain.kind(name).size for name in tau) for tau in named])
        design = covering_design(closure, coefficient, [tuple(places[name] for name in names) for names in sets], effort=_EFFORT)
        # Attributes that the design measures by sign are measured by their cells here, which tells at least as much.
        weights: dict[tuple[str, ...], float] = {}
        for table, theta in zip(design.tables, design.theta.tolist(), strict=True):
            names = tuple(domain.names[place] for place in table)
            weights[names] = weights.get(names, 0.0) + theta
        # Between measures the budget is split as between tables that share nothing; the optimiser goes on from there.
        largest = 1 if measure is None else domain.measures[measure].largest
        share = (design.error * largest**2) ** (1 / 3) / largest
        chosen[measure], start[measure] = list(weights), [share * weight for weight in weights.values()]
    return weighted_strategy("covering", workload, {}, chosen, power, start=start)
