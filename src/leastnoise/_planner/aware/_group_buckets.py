"""Sums by groups under a threshold: buckets of the number that are measured apart, and how many of them each group keeps.

A row is in one group and one bucket, so every sum of a group and a bucket has all of the budget, and noise as large as the bucket's own
values. A group's sum adds its buckets up from below. Those whose values are likely less than their noise are left out, so that groups of
few rows have less noise than large ones, and a threshold that is far too high does little harm. Public: no data is seen here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._linop import Coarse, Identity, Total
from leastnoise._measurements import Factor
from leastnoise._planner.aware._truncated_sums_plans import HEAVIEST
from leastnoise._planner.aware._truncated_sums_threshold import TailLaw, ThresholdChoice, candidate_cells, choose_threshold, falling
from leastnoise._planner.line._factors import gram_of
from leastnoise._planner.line._gram import ScaledSum

_RATIO = 3.0
_FALSE = 1e-4  # of all releases, in which some sum of nothing is taken for clear under Laplace noise
_TAIL_INDEX = 0.5  # leaving out mends a threshold that is too high, and nothing one that is too low
_UNEVEN = 1 / 3  # losses are added up as if k groups were k^(1/3) times as uneven as groups of one size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptByGroup:
    """What groups keep, and what is thought to be in the rest.

    Attributes:
        buckets: how many each group keeps, from below, shape (k,).
        missing: what may be missing in each group's sum of values cut at the threshold, in units, shape (k,).
        shares: of each group in what all groups hold together; positive, and its square an estimate of the square, shape (k,).
    """

    buckets: IntArray
    missing: FloatArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupBuckets:
    """Buckets of a number up to a threshold, each about three times as high as the one before; the last one has all larger values, cut.

    Attributes:
        attribute: the number.
        limits: the most that a row of each cell adds, in units, shape (n,).
        starts: first cell of every bucket, shape (m,).
        ends: the most that a row of every bucket adds, in units, shape (m,).
    """

    attribute: str
    limits: IntArray
    starts: IntArray
    ends: IntArray

    @staticmethod
    def of(attribute: str, edges: IntArray, threshold: int) -> "GroupBuckets":
        """Under a threshold."""
        places = candidate_cells(edges)
        places = places[edges[places] <= threshold]
        last = places[candidate_cells(edges[places], _RATIO)]
        return GroupBuckets(
            attribute=attribute,
            limits=np.minimum(edges, threshold),
            starts=np.append(0, last[:-1] + 1),
            ends=edges[last],
        )

    def factor(self, norm: int) -> Factor:
        """The sum of every bucket, with noise as large as its end."""
        weights = np.maximum(1, np.rint(HEAVIEST[norm] * (self.ends[0] / self.ends))).astype(np.int64)
        return Factor((self.attribute,), Coarse(Identity(len(self.ends)), self.starts, len(self.limits)), weights)

    def kept(self, sums: FloatArray, noise: FloatArray) -> KeptByGroup:
        """How many buckets to keep in each group: those with the least predicted squared error.

        Groups are taken to have the same profile, the sums of all groups, and shares of it that follow from their own sums, pulled to the
        middle as far as these differ by noise alone. A sum that is clear by itself is taken as it is.

        Guarantees: a function of noisy and public numbers; it costs nothing.
        """
        groups = len(sums)
        profile = self._profile(sums.sum(axis=0), noise * np.sqrt(groups))
        weights = profile / noise**2
        told = float(weights @ profile)
        shares = np.full(groups, 1 / groups)
        if told > 0:
            single = sums @ weights / told
            apart = max(float(np.mean((single - 1 / groups) ** 2)) - 1 / told, 0.0)
            trust = apart / (apart + 1 / told)
            shares = np.sqrt((1 / groups + trust * (single - 1 / groups)) ** 2 + trust / told)
        own = np.where(sums > _clear(sums.size) * noise, np.sqrt(np.maximum(sums**2 - noise**2, 0.0)), 0.0)
        beyond = np.zeros((groups, len(noise) + 1))
        beyond[:, :-1] = np.maximum(shares[:, None] * profile, own)[:, ::-1].cumsum(axis=1)[:, ::-1]
        buckets = np.argmin(beyond**2 + np.append(0.0, np.cumsum(noise**2)), axis=1)
        return KeptByGroup(buckets=buckets, missing=beyond[np.arange(groups), buckets], shares=shares)

    def _profile(self, totals: FloatArray, noise: FloatArray) -> FloatArray:
        """What all groups hold in each bucket: beyond what noise leaves, and falling as tails do but for what is no noise."""
        mode = int(np.argmax(totals / noise))
        beyond = np.sqrt(np.maximum(np.maximum(totals, 0.0) ** 2 - noise**2, 0.0))
        most = np.full(len(totals), np.inf)
        most[mode:] = falling(totals[mode:], np.log(self.ends / np.append(self.ends[0] / _RATIO, self.ends[:-1]))[mode:], noise[mode:])
        return np.where(totals > _clear(len(totals)) * noise, beyond, np.minimum(most, beyond))


def _clear(count: int) -> float:
    """Standard errors that no sum of nothing, of so many, is likely to have."""
    return math.log(count / (2 * _FALSE)) / math.sqrt(2)


def choose_group_threshold(
    edges: IntArray, counts: FloatArray, groups: int, noise: Callable[[int], float], *, sure: float
) -> ThresholdChoice:
    """The threshold with the least predicted squared error of the sums of groups that keep all buckets.

    Groups of one size share what is cut evenly, and groups of very different sizes have more of its square: it is added up as if they had
    k^(1/3) times as much, which is in between, as sizes are not known yet.
    """
    gram = gram_of(Total(len(edges)))
    lost = ScaledSum(((groups ** (_UNEVEN - 2), gram),))
    return choose_threshold(
        gram,
        edges,
        candidate_cells(edges),
        counts,
        lambda limits: noise(int(limits.max())),
        1.0,
        lost=lost,
        law=TailLaw(sure, _TAIL_INDEX),
    )
