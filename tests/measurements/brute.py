"""Brute force over neighbours: what all units that keep to their bounds can add to all measured queries, on a small domain."""

import itertools
from collections import Counter
from collections.abc import Mapping

import numpy as np

from leastnoise._accounting import ConcentratedCost, PureCost
from leastnoise._linop import dense
from leastnoise._measurements import Block, Measurements, cost


def added(plan: Measurements, block: Block, amounts: Mapping[str, int], at: Mapping[str, int]) -> np.ndarray:
    """What a row of some amounts adds to its cell of a block: one number, at most its limit, or its distances from both ends."""
    if block.measure is None:
        return np.ones(1)
    bounds, value = plan.domain.measure(block.measure), amounts[block.measure]
    if block.ends:
        return np.array([value - bounds.low_units, bounds.high_units - value])
    if block.limits is not None:
        value = min(value, int(block.limits.values[at.get(block.limits.attribute or "", 0)]))
    return np.array([value])


def rows_of(plan: Measurements) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Every possible row: its cells, and what it adds to all measured queries, in noise scales.

    The extreme amounts suffice, as a loss is convex in the amount.
    """
    found = []
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names}
    measures = {block.measure: plan.domain.measure(block.measure) for block in plan.blocks if block.measure is not None}
    matrices = [
        [(one.attributes, dense(one.operator) * np.reshape(one.scaling, (-1, 1))) for one in block.factors] for block in plan.blocks
    ]
    for cells in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, cells, strict=True))
        for amounts in itertools.product(*((one.low_units, 0, one.high_units) for one in measures.values())):
            value = dict(zip(measures, amounts, strict=True))
            column = []
            for block, factors in zip(plan.blocks, matrices, strict=True):
                own = added(plan, block, value, at) / float(block.scale)
                for names, matrix in factors:
                    own = np.kron(own, matrix[:, np.ravel_multi_index([at[name] for name in names], [sizes[name] for name in names])])
                column.append(own)
            found.append((cells, np.concatenate(column)))
    return found


def units_of(plan: Measurements) -> np.ndarray:
    """What every unit that keeps to the bounds adds; it may have fewer rows, or rows outside the domain."""
    bound, rows = plan.privacy.max_per_cell, rows_of(plan)
    none = np.zeros_like(rows[0][1])
    if bound is None:
        units = single = np.unique([none, *(column for _, column in rows)], axis=0)
        for _ in range(plan.privacy.max_rows - 1):
            units = np.unique((units[:, None] + single).reshape(-1, len(none)), axis=0)
        return units
    places, sums = [plan.domain.names.index(name) for name in bound.attributes], [none]
    for count in range(1, plan.privacy.max_rows + 1):
        for chosen in itertools.combinations_with_replacement(rows, count):
            often = Counter(tuple(cells[place] for place in places) for cells, _ in chosen)
            if max(often.values()) <= bound.rows:
                sums.append(sum(column for _, column in chosen))
    every = np.array(sums)
    return every[np.unique(every.round(9), axis=0, return_index=True)[1]]


def worst(plan: Measurements, units: np.ndarray | None = None) -> float:
    """The largest change between neighbours in noise scales, added up under Laplace noise, its squares under Gaussian noise."""
    units, power = units_of(plan) if units is None else units, plan.noise.norm
    others = units if plan.privacy.neighbours == "replace" else units[:1] * 0
    return float(max((np.abs(units - one) ** power).sum(axis=1).max() for one in others))


def claimed(plan: Measurements) -> float:
    """What the cost says of the same: epsilon, mu squared, or twice rho."""
    found = cost(plan)
    if isinstance(found, PureCost):
        return float(found.epsilon)
    return float(2 * found.rho if isinstance(found, ConcentratedCost) else found.mu_squared)  # type: ignore[union-attr]
