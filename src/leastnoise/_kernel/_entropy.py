"""Sources of uniform random bits: the operating system's, which alone draws what is paid for."""

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words.

    Guarantees: noise drawn from a source is private only if its words are unpredictable and never handed out twice. What is paid for
    draws from `SystemEntropy` alone, whatever another source says of itself.
    """

    def words(self, count: int) -> Words:
        """Return ``count`` fresh words as a uint64 array of shape (count,)."""
        ...


class SystemEntropy:
    """The operating system's cryptographic generator (``os.urandom``).

    Guarantees: nothing is kept between calls, so neither a fork nor a copied process can hand the same word out twice.

    >>> source = SystemEntropy()
    >>> source.words(3).shape, source.words(3).dtype.name
    ((3,), 'uint64')
    """

    __slots__ = ()

    def words(self, count: int) -> Words:
        """Return ``count`` fresh words of the operating system.

        Args:
            count: number of words, at least 0.

        Returns:
            A uint64 array of shape (count,).

        >>> SystemEntropy().words(0).size
        0
        """
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
