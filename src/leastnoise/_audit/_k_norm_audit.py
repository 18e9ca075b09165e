"""Find tables that share K-norm noise, and compute the noise's distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.measurements import Measurements, ball_count_numerators, lattice_dimension

_NEGLIGIBLE_PROBABILITY = 1e-15  # offsets of lower probability are left out


@dataclass(frozen=True, slots=True)
class NoiseGroup:
    """Tables that share one draw of K-norm noise.

    Attributes:
        tables: the positions of each table's cells among the measured queries.
        scale: the scale of the noise, in rows.
    """

    tables: tuple[IntArray, ...]
    scale: float

    def norm(self, values: FloatArray) -> FloatArray:
        """Return the K-norm: the largest sum of absolute values of any table.

        Args:
            values: the values of all queries, shape (queries, ...); the norm has the shape of the
                remaining dimensions.
        """
        sums = [np.abs(values[table]).sum(axis=0) for table in self.tables]
        return np.asarray(np.max(sums, axis=0), dtype=np.float64)


def noise_groups(measured: Measurements) -> tuple[NoiseGroup, ...]:
    """Return the groups of tables in measurements that share K-norm noise."""
    ends = np.cumsum([block.rows for block in measured.blocks])
    groups = []
    for indices in measured.k_norm_groups().values():
        tables = [
            np.arange(ends[index] - measured.blocks[index].rows, ends[index]) for index in indices
        ]
        groups.append(NoiseGroup(tuple(tables), float(measured.blocks[indices[0]].scale)))
    return tuple(groups)


class NormDistribution:
    """The probability distribution of the norm of K-norm noise.

    By J3 of PROOFS-shared-total.md, sum_j h_j C(m - j + D - 1, D - 1) points have the norm m. The
    norm is therefore distributed as an offset j, drawn with probability proportional to h_j q^j,
    plus a sum of D geometric numbers.

    Args:
        sizes: the number of cells of each table.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._dimensions = lattice_dimension(sizes)
        self._logarithms = np.array(
            [
                math.log(weight) if weight else -math.inf
                for weight in ball_count_numerators(tuple(sorted(sizes)))
            ]
        )

    def at_most(self, norms: FloatArray, scale: float) -> FloatArray:
        """Return P(norm <= x) for each x in ``norms``, given the scale of the noise."""
        from scipy.stats import nbinom

        offsets = np.arange(len(self._logarithms))
        logarithms = self._logarithms - offsets / scale
        chances = np.exp(logarithms - logarithms.max())
        chances /= chances.sum()
        likely = chances > _NEGLIGIBLE_PROBABILITY
        below = nbinom.cdf(
            np.floor(norms)[:, None] - offsets[likely],
            self._dimensions,
            -math.expm1(-1 / scale),
        )
        return np.asarray(below @ chances[likely], dtype=np.float64)
