"""Tables split into residual components: contrasts along some attributes, sums along the others; and put together again."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check.arrays import FloatArray

Names = tuple[str, ...]


def residual_parts(cube: FloatArray, names: Names) -> dict[Names, FloatArray]:
    """Split a table into its residual components: contrasts along some attributes, sums along the others."""
    parts: dict[Names, FloatArray] = {(): np.asarray(cube, dtype=np.float64)}
    for name in names:
        split: dict[Names, FloatArray] = {}
        for tau, part in parts.items():
            axis = len(tau)  # the axes before it are those of tau, the ones behind are still to come
            total = part.sum(axis=axis)
            split[tau] = total
            split[*tau, name] = part - np.expand_dims(total / part.shape[axis], axis)
        parts = split
    return parts


def from_residual_parts(parts: Mapping[Names, FloatArray], names: Names, shape: Sequence[int]) -> FloatArray:
    """The table with given residual components, each spread evenly over the attributes it does not have."""
    answer = np.zeros(tuple(shape))
    for tau in subsets(names):
        spread = math.prod(n for name, n in zip(names, shape, strict=True) if name not in tau)
        answer += parts[tau].reshape([n if name in tau else 1 for name, n in zip(names, shape, strict=True)]) / spread
    return answer
