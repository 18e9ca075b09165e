"""Provide random bits; paid noise uses only bits from the operating system."""

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words.

    Guarantees: noise is private only if the words of its source are unpredictable and none is
        returned twice. Paid series draw from `SystemEntropy` only.
    """

    def words(self, count: int) -> Words:
        """Return ``count`` fresh words as a uint64 array of shape (count,)."""
        ...


class SystemEntropy:
    """The operating system's cryptographic generator (``os.urandom``).

    Guarantees: no state is kept between calls, so neither a fork nor a copied process can return
        the same word twice.

    >>> source = SystemEntropy()
    >>> source.words(3).shape, source.words(3).dtype.name
    ((3,), 'uint64')
    """

    __slots__ = ()

    def words(self, count: int) -> Words:
        """Return ``count`` fresh words from the operating system.

        Args:
            count: number of words, at least 0.

        Returns:
            A uint64 array of shape (count,).

        >>> SystemEntropy().words(0).size
        0
        """
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
