"""Tables with levels whose non-negative or whole answers agree: made from the total down, in time linear in the cells.

One table has the cells of all others. On the way to it from the total, one attribute after the other and level by level, the estimates of
the groups within each group are moved to the nearest numbers (least squares) that add up to it, none below 0 where that is asked for. Whole
numbers are differences of their rounded sums from the first group on, so that each is less than one from its number, and so is the sum of
any run of neighbours. All tables are sums of the last one, so they agree.

Groups' nearest numbers are found by leaving out what is below 0 until nothing is (Michelot 1986): a few rounds over all cells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastnoise._check.arrays import Array, FloatArray, IntArray
from leastnoise._estimate._answer import Estimator
from leastnoise._families import nested_levels, partition
from leastnoise._linop import along, apply
from leastnoise._workload import Product, QuerySet, identity


@dataclass(frozen=True, slots=True, eq=False)
class Agreed:
    """The cells of the table that has those of all others."""

    finest: Product
    cells: Array

    def values(self, product: Product) -> Array:
        """The answers to a table on some of its attributes."""
        cube: Array = self.cells.sum(axis=tuple(axis for axis, name in enumerate(self.finest.attributes) if name not in product.attributes))
        for axis, operator in enumerate(product.operators):
            cube = along(apply, operator, cube, axis)
        return np.asarray(cube)


def finest_table(products: Sequence[Product]) -> Product | None:
    """The table of which all tables of one measure are sums, where levels are asked for; None where there is none."""
    largest = max(products, key=lambda product: product.rows)
    within = all({*product.attributes} <= {*largest.attributes} for product in products)
    leveled = any(product.keys != product.attributes for product in products)
    return largest if within and leveled and largest.is_marginal and not largest.of_units else None


def agree(estimator: Estimator, products: Sequence[Product], finest: Product, *, non_negative: bool, whole: bool) -> Agreed:
    """Answers of all tables that agree, in units of the measure."""
    paths = {name: [*_path(finest, products, name)] for name in finest.attributes}
    cells = estimator.estimate(replace(finest, attributes=(), query_sets=())).values
    cells = np.maximum(cells, 0.0) if non_negative else cells
    cells = np.rint(cells) if whole else cells
    chosen: dict[str, QuerySet] = {}
    for name in sorted(paths, key=lambda name_of: len(paths[name_of])):
        before = np.zeros(finest.domain.kind(name).size, dtype=np.int64)
        axis = sum(other in chosen for other in finest.attributes[: finest.attributes.index(name)])
        cells = np.expand_dims(cells, axis)
        for query_set, groups in paths[name]:
            chosen[name] = query_set
            names = tuple(each for each in finest.attributes if each in chosen)
            step = replace(finest, attributes=names, query_sets=tuple(chosen[each] for each in names))
            parents = np.empty(int(groups.max()) + 1, dtype=np.int64)
            parents[groups] = before
            values = np.moveaxis(estimator.estimate(step).values, axis, 0)
            cells = np.moveaxis(within(values, parents, np.moveaxis(cells, axis, 0), non_negative=non_negative, whole=whole), 0, axis)
            before = groups
    return Agreed(finest, cells.astype(np.int64) if whole else cells)


def _path(finest: Product, products: Sequence[Product], name: str) -> Iterator[tuple[QuerySet, IntArray]]:
    """The levels that are asked for along an attribute, from the coarsest to the cells, if they lie in each other; else the cells."""
    size, asked = finest.domain.kind(name).size, {}
    for product in products:
        asked.update({q: o for n, q, o in zip(product.attributes, product.query_sets, product.operators, strict=True) if n == name})
    asked = {query_set: operator for query_set, operator in asked.items() if partition(operator) is not None}
    levels = nested_levels(size, asked.values())
    if levels is not None:
        of_level = {levels.level(operator): query_set for query_set, operator in asked.items()}
        for place in range(len(levels.groups) - 2, 0, -1):
            yield of_level[place], levels.groups[place]
    yield identity(), np.arange(size)


def within(values: FloatArray, parents: IntArray, sums: FloatArray, *, non_negative: bool, whole: bool) -> FloatArray:
    """The nearest numbers to some values that add up, along the first axis, to the sums of the groups that they lie in."""
    order = np.argsort(parents, kind="stable")
    parents, values = parents[order], values[order]
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    kept = np.ones(values.shape, dtype=np.bool_)
    while True:
        number = np.add.reduceat(kept, starts, axis=0, dtype=np.int64)
        moved = (np.add.reduceat(np.where(kept, values, 0.0), starts, axis=0) - sums) / np.maximum(number, 1)
        found = values - moved[parents]
        below = kept & (found <= 0.0)
        if not non_negative or not below.any():
            break
        kept &= ~below
    found = np.where(kept, found, 0.0)
    if whole:
        ends = np.append(starts[1:], len(parents)) - 1
        upto = np.cumsum(found, axis=0)
        rounded = np.floor(upto - (upto[starts] - found[starts])[parents] + 0.5)
        rounded[ends] = sums
        found = np.diff(rounded, axis=0, prepend=0.0)
        found[starts] = rounded[starts]
    back = np.empty_like(found)
    back[order] = found
    return back


def onto_simplex(cells: FloatArray, total: float) -> FloatArray:
    """The nearest non-negative cells with a given sum, in Euclidean distance."""
    if not total > 0 or cells.size == 0:
        return np.zeros_like(cells, dtype=np.float64)
    return onto_simplices(cells.reshape(-1, 1), np.ones((cells.size, 1)), np.array([total])).reshape(cells.shape)


def onto_simplices(x: FloatArray, weights: FloatArray, sums: FloatArray) -> FloatArray:
    """The nearest y >= 0 of given sums, column by column, distances weighted: y = max(0, x - shift / weight), by sorting."""
    keys = x * weights
    falling = np.argsort(-keys, axis=0)
    inverse = np.cumsum((1 / weights)[falling, 0], axis=0)
    shifts = (np.cumsum(np.take_along_axis(x, falling, axis=0), axis=0) - sums) / inverse
    # The cells that stay above 0 end where the key last exceeds its shift; the first always does if the sum is above 0.
    above = np.take_along_axis(keys, falling, axis=0) > shifts
    last = len(x) - 1 - np.argmax(above[::-1], axis=0)
    shift = np.take_along_axis(shifts, last[None, :], axis=0)
    return np.where(sums > 0, np.maximum(x - shift / weights, 0.0), 0.0)
