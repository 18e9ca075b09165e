"""Covering designs for strategies along attributes: which joint tables to measure under Laplace noise.

The designs of ``_covering`` are of marginals, whose total has the variance of as many cells as they have. A strategy along an attribute
acts there like an attribute of kappa cells; kappa is rounded to a whole number for the design alone, and the weights are exact afterwards.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from leastnoise._check.arrays import FloatArray
from leastnoise._families import basis
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._strategy import Strategy, block_norm
from leastnoise._planner.covers._covering import Design, covering_design
from leastnoise._planner.tables._residual_algebra import AttributeSet, Closure, closed
from leastnoise._planner.tables._tables import Candidates, error_sums, factor_along, shrunk, weighted_strategy
from leastnoise._workload import Workload

Names = tuple[str, ...]


def design_seconds(workload: Workload) -> float:
    """Estimated CPU seconds of the choice of tables under Laplace noise: measured up to 100 attributes and 161,700 tables."""
    return sum(min(1.6, 0.1 + 0.05 * max(0, len(names) - 4)) for names in workload.used.values() if len(names) > 1)


def designed_strategy(name: str, workload: Workload, along: Mapping[str, Factor]) -> Strategy:
    """Choose the tables to measure with Laplace noise, and their best weights.

    Guarantees: the same workload gives the same tables.
    """
    domain = workload.domain
    if len({one for product in workload for one in product.attributes}) < 2:
        return weighted_strategy(name, workload, along, Candidates(workload.tables), 1)  # nothing to combine
    places = {one: place for place, one in enumerate(domain.names)}
    chosen: dict[str | None, list[Names]] = {}
    signed: dict[str | None, list[Names]] = {}
    start: dict[str | None, list[float]] = {}
    for measure, sets in workload.tables.items():
        products = workload.of(measure)
        factors = {one: factor_along(domain, one, along) for one in dict.fromkeys(one for names in sets for one in names)}
        sums = error_sums(products, factors)
        kappa = {one: basis(factor).kappa for one, factor in factors.items()}
        shape = tuple(max(2, round(kappa[one])) if one in kappa else 2 for one in domain.names)
        # ``_covering`` counts lambda(tau) without the product of the sizes of tau; see ``_tables``.
        closure = closed(shape, [taus for taus, _ in sums])
        targets = tuple([tuple([places[one] for one in names]) for names in sets])
        design = _design(_Asked(closure, shrunk(domain, kappa, sums), targets))
        # Attributes that the design measures by sign must have two cells; a strategy along one takes its place.
        weights: dict[tuple[Names, Names], float] = {}
        for table, signs, theta in zip(design.tables, design.signed, design.theta.tolist(), strict=True):
            names = tuple(domain.names[place] for place in table)
            across = tuple(domain.names[place] for place in signs if domain.shape[place] == 2 and domain.names[place] not in along)
            weights[names, across] = weights.get((names, across), 0.0) + theta
        if any(math.prod(domain.kind(one).size for one in names) > MOST_TABLE_CELLS for names, _ in weights):
            weights = dict.fromkeys(((names, ()) for names in sets), 1.0)
        # Between measures the budget is split as between tables that share nothing; the optimiser goes on from there.
        largest = domain.largest_value(measure)
        share = (design.error * largest**2) ** (1 / 3)
        norms = [block_norm(domain, Block(tuple(factors[one] for one in names), Fraction(1), measure), 1) for names, _ in weights]
        chosen[measure] = [names for names, _ in weights]
        signed[measure] = [across for _, across in weights]
        start[measure] = [share * weight / norm for weight, norm in zip(weights.values(), norms, strict=True)]
    return weighted_strategy(name, workload, along, Candidates(chosen, start, signed), 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """The arguments of a search; equal where all their numbers are."""

    closure: Closure
    coefficient: FloatArray
    targets: tuple[AttributeSet, ...]

    def _key(self) -> tuple[object, ...]:
        return self.closure.shape, *(rows.tobytes() for rows in self.closure.blocks), self.coefficient.tobytes(), self.targets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@lru_cache(maxsize=64)
def _design(asked: _Asked) -> Design:
    """Search once for what several strategies, budgets and neighbour relations ask for alike; the same arguments give the same design."""
    return covering_design(asked.closure, asked.coefficient, asked.targets)
