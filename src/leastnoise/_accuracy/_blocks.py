"""What the tables of a plan measure: along which attributes, with how much noise, and which parts of the residual basis they explain."""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from leastnoise._accuracy._joint import used
from leastnoise._accuracy._noise import noise_variance
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import leaves_out_total
from leastnoise._linop import dense
from leastnoise._measurements import Block, Measurements

Names = tuple[str, ...]


def subsets(names: Names) -> Iterator[Names]:
    """All subsets of a tuple of names, in its order, smallest first."""
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def measured_along(block: Block) -> tuple[Names, Names]:
    """The attributes of a block that it does not sum over, and those of them that it measures across their totals, as contrasts do."""
    names = tuple(factor.attributes[0] for factor in block.factors if used(factor))
    return names, tuple(factor.attributes[0] for factor in block.factors if leaves_out_total(factor))


def explained(names: Names, across: Names) -> Iterator[Names]:
    """The tau that such a block knows something about: all subsets with everything in ``across``."""
    if not across:
        yield from subsets(names)
        return
    for chosen in subsets(tuple(name for name in names if name not in across)):
        yield tuple(name for name in names if name in across or name in chosen)


def block_variance(plan: Measurements, block: Block) -> float:
    """Noise variance of a row of weight 1 of a block.

    Exact where all its rows have one weight. Else the variance of a row of weight w is taken as this divided by w^2: for Laplace with 2
    b^2, which is above the exact one by less than 1 / (12 b^2) of it; along contrasts with sigma^2, which the discrete Gaussian's does
    not exceed.
    """
    scale = float(block.scale)
    variance = noise_variance(plan.noise, scale, plan.grid)
    if not variance > 0:
        raise InputError(
            f"The budget is so large that the noise of {' x '.join(block.attributes) or 'the total'} vanishes (a scale of {scale:.2g} "
            "rows), which protects nobody. Choose a smaller budget."
        )
    if any(factor.largest_square > 1 for factor in block.factors):
        return scale**2
    return 2 * scale**2 if plan.noise.norm == 1 and not all(factor.even for factor in block.factors) else variance


def block_rows(domain: Domain, names: Names, block: Block) -> FloatArray:
    """A block's queries times their row weights, over the joint cells of ``names``, shape (block.rows, cells)."""
    rows: FloatArray = np.ones((1, 1))
    measured: list[str] = []
    for factor in block.factors:
        rows = np.asarray(np.kron(rows, dense(factor.operator).astype(float) * factor.scaling[:, None]), dtype=np.float64)
        measured.extend(factor.attributes)
    rest = [name for name in names if name not in measured]
    rows = np.asarray(np.kron(rows, np.ones((1, math.prod(domain.kind(name).size for name in rest)))), dtype=np.float64)
    order = [*measured, *rest]
    cube = rows.reshape(len(rows), *(domain.kind(name).size for name in order))
    return np.moveaxis(cube, [1 + order.index(name) for name in names], range(1, len(names) + 1)).reshape(len(rows), -1)
