"""Private choices of a limit for the sums of a measure, as steps of a series: what each needs to be told.

Each is a frozen value of public numbers with an ``epsilon``. The public upper bound is the measure's, in units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import exact_positive
from leastnoise.measure._drawing import Integers
from leastnoise.measure._entropy import Entropy
from leastnoise.measure._threshold import Threshold, recursive, sparse_vector
from leastnoise.measure._threshold_joint import Reals, least_error


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVectorThreshold:
    """Find the first limit that leaves most rows as they are; see ``sparse_vector``.

    Args:
        measure: whose amounts are looked at; its lower bound must be at least 0.
        epsilon: what the choice may cost.
        candidates: increasing limits in units; the last is the measure's upper bound.
        kept: the part of the rows at or below the limit that is asked for.
        share: of epsilon for the noise of the comparison's threshold.
    """

    measure: str
    epsilon: Fraction
    candidates: Sequence[int]
    kept: Fraction = Fraction(998, 1000)
    share: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))
        object.__setattr__(self, "candidates", tuple(self.candidates))

    def draw(self, amounts: Integers, most: int, distance: int, entropy: Entropy) -> Threshold:
        """The limit."""
        return sparse_vector(
            amounts,
            self.epsilon,
            entropy,
            candidates=self.candidates,
            most=most,
            kept=self.kept,
            share=self.share,
            distance=distance,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveThreshold:
    """Take the limit of the recursive mechanism; see ``recursive``.

    Args:
        measure: whose amounts are looked at; its lower bound must be at least 0.
        epsilon: what the choice may cost.
        start: a limit in units that is surely not too high.
        step: beta as a multiple of this epsilon.
        margin: mu, by how much the logarithm of the limit is raised.
    """

    measure: str
    epsilon: Fraction
    start: int
    step: Fraction = Fraction(2, 5)
    margin: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))

    def draw(self, amounts: Integers, most: int, distance: int, entropy: Entropy) -> Threshold:
        """The limit."""
        return recursive(amounts, self.epsilon, entropy, start=self.start, most=most, step=self.step, margin=self.margin, distance=distance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeastErrorThreshold:
    """Take the limit of least predicted error, bias and noise together; see ``least_error``.

    Args:
        measure: whose amounts are looked at; its lower bound must be at least 0.
        epsilon: what the choice may cost.
        candidates: K increasing limits in units; the last is the measure's upper bound.
        low: lower ends of the m queries in units, int64: query j sums the amounts above ``low[j]`` and up to ``high[j]``.
        high: upper ends.
        noise: predicted standard errors in units for each limit, shape (K, m); computed without the data.
        weights: whole numbers from 0 to 2^20, one a query, or None for ones.
    """

    measure: str
    epsilon: Fraction
    candidates: Sequence[int]
    low: Integers
    high: Integers
    noise: Reals
    weights: Integers | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))
        object.__setattr__(self, "candidates", tuple(self.candidates))
        for name in ("low", "high", "noise", "weights"):  # copies: what the sensitivity is computed from is what is scored
            if (value := getattr(self, name)) is not None:
                kept = np.array(value)
                kept.setflags(write=False)
                object.__setattr__(self, name, kept)

    def draw(self, amounts: Integers, most: int, distance: int, entropy: Entropy) -> Threshold:
        """The limit."""
        return least_error(
            amounts,
            self.epsilon,
            entropy,
            candidates=self.candidates,
            most=most,
            low=self.low,
            high=self.high,
            noise=self.noise,
            weights=self.weights,
            distance=distance,
        )


ThresholdSelection = SparseVectorThreshold | RecursiveThreshold | LeastErrorThreshold
