"""Sources of uniform random bits: the operating system's by default, a seeded one for tests and experiments only."""

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt

from leastnoise._check import InputError, whole

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

    def __repr__(self) -> str:
        return "SystemEntropy()"


class SeededEntropy:
    """A reproducible stream for tests and experiments; anybody who knows the seed can subtract the noise.

    Args:
        seed: whole number of at least 0.

    Raises:
        InputError: the seed is not such a number (there is no default seed).

    >>> source = SeededEntropy(7)
    >>> bool((source.words(4) == SeededEntropy(7).words(4)).all())
    True
    """

    __slots__ = ("_generator", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = whole("seed", seed, 0)
        self._generator = np.random.PCG64DXSM(self._seed)

    def words(self, count: int) -> Words:
        """Return the next ``count`` words of the stream.

        Args:
            count: number of words, at least 0.

        Returns:
            A uint64 array of shape (count,).

        >>> int(SeededEntropy(7).words(1)[0]) == int(SeededEntropy(7).words(9)[0])
        True
        """
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)

    def __repr__(self) -> str:
        return f"SeededEntropy({self._seed})"


def fresh_words(entropy: Entropy, count: int) -> Words:
    """Draw words and check that the source keeps to the protocol.

    Args:
        entropy: the source.
        count: number of words, at least 0.

    Returns:
        A uint64 array of shape (count,).

    Raises:
        InputError: the source returned something else; too few words would be reused by broadcasting.

    >>> fresh_words(SeededEntropy(1), 2).shape
    (2,)
    """
    words = entropy.words(count)
    if not (isinstance(words, np.ndarray) and words.dtype == np.uint64 and words.shape == (count,)):
        got = f"{words.dtype} of shape {words.shape}" if isinstance(words, np.ndarray) else type(words).__name__
        raise InputError(f"entropy.words({count}) must return a uint64 array of shape ({count},); got {got}. Use SystemEntropy().")
    return words
