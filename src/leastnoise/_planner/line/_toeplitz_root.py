"""The square root of the prefix sums as a strategy for Gaussian noise, with columns scaled alike: near the optimum at any size.

The lower triangular Toeplitz matrix C with c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k) has C^2 = all prefix sums. Its columns are shorter
towards the end, so each is scaled up to the norm of the longest. Measured in whole numbers: the coefficients as a step function of the
distance, whose steps grow with it, and the scales in runs, narrower towards the end where the norms change fast.

Source: Fichtenberger, Henzinger, Upadhyay (arXiv 2202.11205) for the root; the scaling and the steps are ours.
"""

import numpy as np

from leastnoise._linop import Toeplitz

_SINGLE = 16  # distances with a coefficient of their own
_GROWTH = 1.1  # of the steps beyond
_RUNS = 32
_VALUE_BITS, _SCALE_BITS = 14, 10


def toeplitz_root(size: int, bits: int = _VALUE_BITS + _SCALE_BITS) -> Toeplitz:
    """The strategy in whole numbers."""
    scale_bits = min(_SCALE_BITS, bits * _SCALE_BITS // (_VALUE_BITS + _SCALE_BITS))
    distances = np.arange(1, size)
    root = np.concatenate([[1.0], np.cumprod((2 * distances - 1) / (2 * distances))])
    starts = [*range(min(size, _SINGLE))]
    while (after := round(max(starts[-1] + 1, starts[-1] * _GROWTH))) < size:
        starts.append(after)
    lengths = np.diff(starts, append=size)
    values = np.rint(np.add.reduceat(root, starts) / lengths * 2.0 ** min(_VALUE_BITS, bits - scale_bits)).astype(np.int64)
    norms = np.sqrt(np.cumsum(np.repeat(values.astype(float) ** 2, lengths)))[::-1]
    places = np.unique(size - np.rint(size * (np.arange(_RUNS + 1) / _RUNS) ** 2).astype(np.int64))
    scales = np.maximum(1, np.floor(2**scale_bits * norms[-1] / norms[places[:-1]])).astype(np.int64)
    return Toeplitz(np.array(starts), values, np.repeat(scales, np.diff(places)))
