"""Define one interface for mechanisms of other authors: from counts and budget to cells.

Neighbours differ by one record in one cell (add/remove). This module checks the arguments of all
mechanisms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from leastnoise._trusted.check import Exact, InputError, exact_positive, refuse
from leastnoise._trusted.kernel import Entropy

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)

MOST_CELLS = 2**20
# Numerator and denominator of an epsilon: the samplers accept the scales that follow.
_MOST_PARTS = 2**32
_MOST_RECORDS = 2**50  # in all cells together: sums and differences stay exact, in float64 too


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Range queries over the cells; query i sums cells low[i] to high[i] - 1.

    Attributes:
        low: int64, shape (m,) for one attribute, (m, 2) for two.
        high: the same, above ``low`` everywhere.

    Raises:
        InputError: not of this kind.

    >>> Ranges(np.array([0, 1]), np.array([2, 3])).answers(np.array([1.0, 2.0, 4.0])).tolist()
    [3.0, 6.0]
    >>> Ranges(np.array([[0, 1]]), np.array([[2, 2]])).answers(
    ...     np.array([[1.0, 2.0], [3.0, 4.0]])
    ... ).tolist()
    [6.0]
    """

    low: Wholes
    high: Wholes

    def __post_init__(self) -> None:
        alike = self.low.shape == self.high.shape and self.low.dtype == self.high.dtype == np.int64
        if not (
            alike
            and self.low.ndim in {1, 2}
            and self.low.shape[1:] in {(), (2,)}
            and len(self.low) > 0
        ):
            raise refuse(
                "Ranges",
                f"{self.low.dtype} {self.low.shape}, {self.high.dtype} {self.high.shape}",
                "two int64 arrays (m,) or (m, 2)",
            )
        if not ((self.low >= 0) & (self.low < self.high)).all():
            raise InputError(
                "Ranges must have 0 <= low < high; at least one range does not. Give half-open "
                "ranges [low, high)."
            )

    def answers(self, cells: NDArray[Number]) -> NDArray[Number]:
        """Sum the cells in each range; shape (m,), with the data type of ``cells``."""
        sums = np.zeros(tuple(side + 1 for side in cells.shape), dtype=cells.dtype)
        if cells.ndim == 1:
            sums[1:] = np.cumsum(cells)
            return np.asarray(sums[self.high] - sums[self.low])
        sums[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
        a, b = self.low.T
        c, d = self.high.T
        return np.asarray(sums[c, d] - sums[a, d] - sums[c, b] + sums[a, b])


Mechanism = Callable[[Wholes, Fraction, Entropy, Ranges | None], Reals]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A published mechanism.

    Attributes:
        name: the name in tables.
        dimensions: 1 or 2.
        private: whether it is epsilon-DP as implemented here; if not, it is only for comparison.
        proof: why it is private, or why it is not.
        source: the paper.
        mechanism: the function of the checked arguments.
        aware: whether it depends on the requested ranges.
        most_cells: the largest number of cells; with more cells it would run for hours.

    >>> from fractions import Fraction
    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> baseline = Baseline(
    ...     name="Zero",
    ...     dimensions=1,
    ...     private=True,
    ...     proof="The estimate does not depend on the data.",
    ...     source="",
    ...     mechanism=lambda x, e, u, w: np.zeros(len(x)),
    ... )
    >>> baseline.run(np.array([3, 4]), Fraction(1, 10), SeededEntropy(1)).tolist()
    [0.0, 0.0]
    """

    name: str
    dimensions: int
    private: bool
    proof: str
    source: str
    mechanism: Mechanism
    aware: bool = False
    most_cells: int = MOST_CELLS

    @property
    def label(self) -> str:
        """The name for tables, with a warning if the mechanism is not private."""
        if self.private:
            return self.name
        return f"{self.name} (not private, for comparison)"

    def run(
        self, x: Wholes, epsilon: Exact, entropy: Entropy, ranges: Ranges | None = None
    ) -> Reals:
        """Estimate the cells with differential privacy.

        Args:
            x: counts, int64 of shape (n,) or (rows, columns); private. Negative counts become 0.
            epsilon: above 0, numerator and denominator at most 2^32.
            entropy: the source of all randomness; there is no default.
            ranges: the requested queries, public; None means all ranges.

        Returns:
            float64, of the shape of ``x``.

        Raises:
            InputError: an argument is not valid; never because of a count.

        Guarantees:
            epsilon-DP for add/remove neighbours if ``private`` and the entropy is private.
        """
        shaped = (
            isinstance(x, np.ndarray)
            and x.dtype == np.int64
            and x.ndim == self.dimensions
            and 1 <= x.size <= self.most_cells
        )
        if not shaped:
            if isinstance(x, np.ndarray):
                description = f"{x.dtype} array of shape {x.shape}"
            else:
                description = type(x).__name__
            raise refuse(
                "The counts",
                description,
                f"an int64 array of {self.dimensions} dimension(s) and 1 to {self.most_cells} "
                "cells",
            )
        exact_epsilon = exact_positive("epsilon", epsilon)
        if max(exact_epsilon.numerator, exact_epsilon.denominator) > _MOST_PARTS:
            raise refuse("epsilon", str(exact_epsilon), "a fraction with parts of at most 2^32")
        if ranges is not None and not (
            ranges.low.ndim == self.dimensions and (ranges.high <= np.array(x.shape)).all()
        ):
            raise refuse("ranges", f"{ranges.low.shape}", f"within the {x.shape} cells")
        # Cell by cell, so that neighbours stay neighbours.
        cells = np.clip(x, 0, _MOST_RECORDS // x.size)
        return np.asarray(self.mechanism(cells, exact_epsilon, entropy, ranges), dtype=np.float64)


def all_ranges(size: int, max_blocks: int = 64) -> Ranges:
    """Return all ranges whose ends are multiples of one width.

    The cells have at most ``max_blocks`` blocks of this width. The ranges represent all ranges in
    mechanisms that list them.

    >>> len(all_ranges(4).low), len(all_ranges(4096).low)
    (10, 2080)
    """
    width = -(-size // max_blocks)
    edges = np.minimum(np.arange(0, size + width, width), size)
    first, last = np.triu_indices(len(edges), 1)
    return Ranges(edges[first], edges[last])
