"""What a private choice of buckets may have left inside them: deviations that it could not see, bounded by what was paid for.

The exponential mechanism keeps a bucket whole with a probability that falls by a factor e for each ``scale`` records of deviation, and
takes ``prior`` (natural logarithms) for each further bucket. So a deviation that ``j`` more buckets would remove is seen when it is well
above ``j * prior * scale``, and hidden below. Post-processing: the scale is public, the counts are noisy.
"""

from dataclasses import dataclass, replace

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray

_CLEARLY = 4.0  # where so few buckets deviate that a quarter of them holds all, each is still covered at two standard errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What is known of deviations inside buckets.

    Args:
        scale: records of deviation that make it e times less likely that a bucket is kept whole.
        prior: price of a further bucket in units of ``scale``.
        deviation: the most that all buckets together may hide, from the test of the data's structure, in records; None without a test.
    """

    scale: float
    prior: float
    deviation: float | None = None

    def tested(self, found: float, unit: float) -> "Hidden":
        """With what the test of the data's structure says.

        The test counts a bucket as one ``unit``, the draw as ``scale * prior``, far more: a bucket that the draw did without hides up to
        that.

        Args:
            found: what the test found besides the price of the buckets that were drawn, and its noise, in records.
            unit: price of a bucket in the test, in records.

        >>> Hidden(scale=60.0, prior=1.5).tested(20.0, 10.0).deviation
        180.0
        """
        return replace(self, deviation=found * max(1.0, self.scale * self.prior / unit))

    def squares(self, cells: IntArray, counts: FloatArray, variances: FloatArray) -> FloatArray:
        """Square of the deviation that each bucket may hide, as that of one cell of it.

        Either every cell deviates by what one more bucket costs, or one by what isolating it costs; no more than the bucket holds, as far
        as its noisy count tells; and not all buckets at once, where the test tells that they cannot.

        Args:
            cells: of each bucket, shape (k,).
            counts: of each, estimated.
            variances: of these.

        >>> Hidden(scale=1.0, prior=1.0).squares(np.array([1, 2, 2]), np.array([50.0, 50.0, 0.0]), np.ones(3)).tolist()
        [0.0, 4.0, 1.0]
        """
        alone = (np.ceil(np.log2(cells)) * self.prior + 1) ** 2
        seen = self.scale**2 * np.maximum(cells * self.prior**2, alone)
        square = np.where(cells > 1, np.minimum(seen, np.maximum(counts, 0.0) ** 2 + variances), 0.0)
        most = 2 * float(np.sqrt(square).sum())  # a cell above the rest by h deviates by almost 2 h in all
        if self.deviation is None or most == 0:
            return np.asarray(square)
        return np.asarray(square * min(1.0, _CLEARLY * self.deviation / most))


def choice_hides(epsilon: float, distance: int, cells: int, prior: float) -> Hidden:
    """What a draw by the exponential mechanism with deviations from the mean hides.

    Args:
        epsilon: of the draw.
        distance: how many records neighbours differ by.
        cells: number of cells in all.
        prior: price of a bucket, in natural logarithms.

    >>> choice_hides(1.0, 1, 4, 1.386).scale
    3.0
    """
    return Hidden(scale=2 * (2 - 2 / max(cells, 2)) * distance / epsilon, prior=prior)
