"""What a private choice of buckets may have left inside them: deviations that it could not see, bounded by what was paid for.

The exponential mechanism keeps a bucket whole with a probability that falls by a factor e for each ``scale`` records of deviation, and
takes ``prior`` (natural logarithms) for each further bucket. So a deviation that ``j`` more buckets would remove is seen when it is well
above ``j * prior * scale``, and hidden below. Post-processing: the scale is public, the counts are noisy.
"""

from dataclasses import dataclass

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What is known of deviations inside buckets."""

    scale: float
    prior: float

    def squares(self, cells: IntArray, counts: FloatArray, variances: FloatArray) -> FloatArray:
        """Square of the deviation that each bucket may hide, as that of one cell of it.

        Either every cell deviates by what one more bucket costs, or one by what isolating it costs; no more than the bucket holds, as far
        as its noisy count tells.
        """
        alone = (np.ceil(np.log2(cells)) * self.prior + 1) ** 2
        seen = self.scale**2 * np.maximum(cells * self.prior**2, alone)
        return np.asarray(np.where(cells > 1, np.minimum(seen, np.maximum(counts, 0.0) ** 2 + variances), 0.0))


def choice_hides(epsilon: float, distance: int, cells: int, prior: float) -> Hidden:
    """What a draw by the exponential mechanism with deviations from the mean hides."""
    return Hidden(scale=2 * (2 - 2 / max(cells, 2)) * distance / epsilon, prior=prior)
