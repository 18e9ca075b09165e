"""Brute force over units whose rows must lie in several cells: all that they may hold on a small domain."""

import itertools
from collections import Counter
from collections.abc import Mapping

import numpy as np

from leastnoise._linop import dense
from leastnoise._measurements import Block, Measurements


def added(plan: Measurements, block: Block, amounts: Mapping[str, int]) -> np.ndarray:
    """What a row of some amounts adds to its cell of a block: one number, or its distances from both ends."""
    if block.measure is None:
        return np.ones(1)
    bounds = plan.domain.measure(block.measure)
    value = amounts[block.measure]
    return np.array([value - bounds.low_units, bounds.high_units - value] if block.ends else [value])


def rows_of(plan: Measurements) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Every possible row: its cells, and what it adds to all measured queries, in noise scales; extreme amounts suffice."""
    found = []
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names}
    measures = {block.measure: plan.domain.measure(block.measure) for block in plan.blocks if block.measure is not None}
    for cells in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, cells, strict=True))
        for amounts in itertools.product(*((one.low_units, 0, one.high_units) for one in measures.values())):
            value = dict(zip(measures, amounts, strict=True))
            column = []
            for block in plan.blocks:
                own = np.ones(1)
                for factor in block.factors:
                    place = np.ravel_multi_index([at[name] for name in factor.attributes], [sizes[name] for name in factor.attributes])
                    own = np.kron(own, dense(factor.operator)[:, place] * factor.scaling)
                column.append(np.kron(added(plan, block, value), own) / float(block.scale))
            found.append((cells, np.concatenate(column)))
    return found


def units_of(plan: Measurements) -> np.ndarray:
    """What every unit that keeps to the bounds adds."""
    bound, rows = plan.privacy.max_per_cell, rows_of(plan)
    places = [plan.domain.names.index(name) for name in bound.attributes]
    sums = [np.zeros_like(rows[0][1])]
    for count in range(1, plan.privacy.max_rows + 1):
        for chosen in itertools.combinations_with_replacement(rows, count):
            often = Counter(tuple(cells[place] for place in places) for cells, _ in chosen)
            if max(often.values()) <= bound.rows:
                sums.append(sum(column for _, column in chosen))
    every = np.array(sums)
    return every[np.unique(every.round(9), axis=0, return_index=True)[1]]


def worst(plan: Measurements) -> float:
    """The largest squared change between neighbours, in noise scales."""
    units = units_of(plan)
    if plan.privacy.neighbours == "add_remove":
        return float((units**2).sum(axis=1).max())
    return float(max(((units - one) ** 2).sum(axis=1).max() for one in units))
