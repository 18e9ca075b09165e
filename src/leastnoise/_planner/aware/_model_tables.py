"""What a model of tables is fitted to: every attribute alone, then pairs of attributes on bins that hold half as many rows as their noise.

Shares of the budget follow from sizes and from earlier noisy counts alone. With squared errors the best share of a table of n cells would
be proportional to n^(2/3) under either noise, in the sense of its precision; 0.66 was as good as any on real tables.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray

_EXPONENT = 0.66
_HELD = 0.5  # of the noise: rows of an average cell on bins; twice as coarse is 1% better on real tables, and 1.3 times worse on chains
_ROUNDS = 3


def precisions(cells: Sequence[float], importance: Sequence[float]) -> FloatArray:
    """How precisely tables are measured beside each other, relative to each other: proportional to 1 / std."""
    weights = np.sqrt(np.asarray(cells, dtype=np.float64) ** _EXPONENT * np.asarray(importance))
    return np.asarray(weights / weights.max())


def bins(shares: FloatArray, least: float) -> IntArray:
    """Where runs of neighbouring cells begin that hold a share of at least ``least`` each; two runs at least, of two cells or more."""
    starts, held = [0], 0.0
    for cell, share in enumerate(shares.tolist()):
        if held >= least or (held > 0 and share >= least):
            starts.append(cell)
            held = 0.0
        held += share
    if held < least / 2 and len(starts) > 1:
        starts.pop()
    if len(starts) == 1 and len(shares) > 1:
        before = np.cumsum(shares)[:-1]
        starts.append(1 + int(np.abs(before - 0.5).argmin()))
    return np.array(starts, dtype=np.int64)


def table_bins(parts: Sequence[FloatArray], share: float) -> tuple[IntArray, ...]:
    """Bins along attributes so that an average cell of their table holds ``share`` of the rows; small attributes leave it to the others."""
    even = share ** (1 / len(parts))
    starts: dict[int, IntArray] = {}
    for side in sorted(range(len(parts)), key=lambda one: len(bins(parts[one], even))):
        starts[side] = bins(parts[side], min(share ** (1 / (len(parts) - len(starts))), 1.0))
        share = min(share * len(starts[side]), 1.0)
    return tuple(starts[side] for side in range(len(parts)))


def binned_tables(
    shares: Mapping[str, FloatArray], tables: Mapping[tuple[str, ...], float], total: float, std: float, norm: int
) -> dict[tuple[str, ...], tuple[float, tuple[IntArray, ...]]]:
    """Every table's precision relative to the others, and its bins."""
    # ``tables`` holds what a squared error of each counts, ``std`` the noise of one table that gets the whole step; ``norm`` is that of the
    # sensitivity: 1 under Laplace noise, where precisions add up, 2 under Gaussian noise, where their squares do.
    relative = last = np.ones(len(tables))
    made: list[tuple[IntArray, ...]] = []
    for _ in range(_ROUNDS + 1):
        noise = std * (relative**norm).sum() ** (1 / norm) / relative
        held = _HELD * noise / np.maximum(total, noise)
        made = [table_bins([shares[name] for name in names], float(one)) for names, one in zip(tables, held, strict=True)]
        last, relative = relative, precisions([math.prod(map(len, starts)) for starts in made], list(tables.values()))
    return {names: (float(one), starts) for names, one, starts in zip(tables, last, made, strict=True)}
