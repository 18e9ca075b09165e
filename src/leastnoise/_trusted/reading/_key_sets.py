"""Number the keys of units, which are byte strings (E6 of PROOFS-reading.md).

The number of a byte string is called its place. Byte strings are first collected in chunks, and are
then stored together. Each new byte string gets the next free place, and byte strings that are
already stored keep their places. Two byte strings have the same place only if they are equal, byte
by byte.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import Array
from leastnoise._trusted.reading._column import word_texts
from leastnoise._trusted.reading._words import WordPairs, Words, arrow_words

Numbers = npt.NDArray[np.int32]

# Odd factors of the hash; about half of their bits are 1.
_FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9)


class KeySet(Protocol):
    """A set that numbers its byte strings 0, 1, ... in order of first occurrence."""

    def __len__(self) -> int:
        """Return how many byte strings are stored."""

    @property
    def stored_bytes(self) -> int:
        """The memory that the stored byte strings take, in bytes."""

    @property
    def waiting_bytes(self) -> int:
        """The memory that the waiting byte strings take, in bytes."""

    def store(self) -> Numbers:
        """Store the waiting byte strings; return their numbers, shape (waiting,)."""

    def keys(self) -> Iterable[bytes]:
        """Return the stored byte strings, in the order of their numbers."""


class WordSet:
    """A set of byte strings of at most 7 bytes, stored as integers (`words_of`).

    >>> words = WordSet()
    >>> words.wait(np.array([326, 333, 326], dtype=np.uint64))
    3
    >>> words.store().tolist(), list(words.keys())
    ([0, 1, 0], [b'F', b'M'])
    """

    def __init__(self) -> None:
        self._stored: Words = np.zeros(0, dtype=np.uint64)
        self._waiting: list[Words] = []

    def __len__(self) -> int:
        """Return how many byte strings are stored."""
        return len(self._stored)

    @property
    def stored_bytes(self) -> int:
        """The memory that the stored byte strings take, in bytes."""
        return self._stored.nbytes

    @property
    def waiting_bytes(self) -> int:
        """The memory that the waiting byte strings take, in bytes."""
        return sum(words.nbytes for words in self._waiting)

    def wait(self, words: Words) -> int:
        """Append integers of byte strings; return how many were appended."""
        if len(words):
            self._waiting.append(words)
        return len(words)

    def store(self) -> Numbers:
        """Store the waiting byte strings; return their numbers, shape (waiting,)."""
        if not self._waiting:
            return np.zeros(0, dtype=np.int32)
        waiting = [arrow_words(words) for words in self._waiting]
        self._waiting = []
        positions, different = _places_of(arrow_words(self._stored), waiting)
        stored: Array = np.from_dlpack(different)
        self._stored = stored
        return positions

    def keys(self) -> Iterable[bytes]:
        """Return the stored byte strings, in the order of their numbers."""
        return map(bytes, word_texts(self._stored))  # type: ignore[arg-type]  # of byte strings


class PairSet:
    r"""A set of byte strings of 8 to 15 bytes, stored as pairs of integers.

    The pairs come from `word_pairs_of`. Pairs with the same hash (`hash_word_pairs`) get one place.
    Each of these pairs is then compared with the first pair of this place.

    >>> pairs = PairSet()
    >>> pairs.wait(
    ...     WordPairs(np.array([7, 7, 7], dtype=np.uint64), np.array([1, 326, 1], dtype=np.uint64))
    ... )
    3
    >>> pairs.store().tolist(), [*pairs.keys()][1]
    ([0, 1, 0], b'\x07\x00\x00\x00\x00\x00\x00\x00F')
    """

    def __init__(self) -> None:
        nothing = np.zeros(0, dtype=np.uint64)
        self._stored = WordPairs(nothing, nothing)
        self._waiting: list[WordPairs] = []

    def __len__(self) -> int:
        """Return how many byte strings are stored."""
        return len(self._stored.first)

    @property
    def stored_bytes(self) -> int:
        """The memory that the stored byte strings take, in bytes."""
        return _memory_of_pairs(self._stored)

    @property
    def waiting_bytes(self) -> int:
        """The memory that the waiting byte strings take, in bytes."""
        return sum(map(_memory_of_pairs, self._waiting))

    def wait(self, pairs: WordPairs) -> int:
        """Append pairs of integers; return how many were appended."""
        if len(pairs.first):
            self._waiting.append(pairs)
        return len(pairs.first)

    def store(self) -> Numbers:
        """Store the waiting byte strings; return their numbers, shape (waiting,)."""
        if not self._waiting:
            return np.zeros(0, dtype=np.int32)
        before = len(self)
        # The stored pairs come first, each once and in order, so they get their old places again.
        chunks = [self._stored, *self._waiting]
        self._waiting = []
        positions, _ = _places_of(None, [arrow_words(hash_word_pairs(pairs)) for pairs in chunks])
        pairs = WordPairs(
            np.concatenate([chunk.first for chunk in chunks]),
            np.concatenate([chunk.rest for chunk in chunks]),
        )
        stored = _first_pairs(pairs, positions)
        if not _are_equal(pairs, stored, positions):  # different pairs have the same hash
            positions = number_pairs_by_sorting(pairs)
            stored = _first_pairs(pairs, positions)
        self._stored = stored
        return positions[before:]

    def keys(self) -> Iterable[bytes]:
        """Return the stored byte strings, in the order of their numbers."""
        for first, later_words in zip(
            self._stored.first, word_texts(self._stored.rest), strict=True
        ):
            # The later words are byte strings.
            yield int(first).to_bytes(8, "little") + bytes(later_words)  # type: ignore[call-overload]


class TextSet:
    """A set of byte strings of any length.

    >>> texts = TextSet()
    >>> texts.wait(pa.array([b"a", b"b", b"a"], pa.large_binary()))
    3
    >>> texts.store().tolist(), list(texts.keys())
    ([0, 1, 0], [b'a', b'b'])
    """

    def __init__(self) -> None:
        self._stored: Any = None
        self._waiting: list[Any] = []

    def __len__(self) -> int:
        """Return how many byte strings are stored."""
        return 0 if self._stored is None else len(self._stored)

    @property
    def stored_bytes(self) -> int:
        """The memory that the stored byte strings take, in bytes."""
        return 0 if self._stored is None else self._stored.nbytes

    @property
    def waiting_bytes(self) -> int:
        """The memory that the waiting byte strings take, in bytes."""
        return sum(texts.nbytes for texts in self._waiting)

    def wait(self, texts: Any) -> int:
        """Append Arrow byte strings; return how many were appended."""
        if len(texts):
            self._waiting.append(texts)
        return len(texts)

    def store(self) -> Numbers:
        """Store the waiting byte strings; return their numbers, shape (waiting,)."""
        if not self._waiting:
            return np.zeros(0, dtype=np.int32)
        waiting = self._waiting
        self._waiting = []
        positions, self._stored = _places_of(self._stored, waiting)
        return positions

    def keys(self) -> Iterable[bytes]:
        """Return the stored byte strings, in the order of their numbers."""
        return [] if self._stored is None else self._stored.to_pylist()


def hash_word_pairs(pairs: WordPairs) -> Words:
    """Hash each pair of integers to one integer.

    >>> pairs = WordPairs(np.array([7, 7], dtype=np.uint64), np.array([1, 326], dtype=np.uint64))
    >>> len(set(hash_word_pairs(pairs).tolist()))
    2
    """
    mixed = pairs.rest * _FIRST_FACTOR
    mixed ^= mixed >> np.uint64(29)
    mixed += pairs.first
    mixed *= _SECOND_FACTOR
    mixed ^= mixed >> np.uint64(32)
    return mixed


def number_pairs_by_sorting(pairs: WordPairs) -> Numbers:
    """Number the distinct pairs exactly, in order of their first appearance.

    The pairs are compared by sorting them. The place of each pair is returned. The first pair has
    the place 0. Each pair that differs from all pairs before it has the next place.

    >>> pairs = WordPairs(
    ...     np.array([7, 5, 7], dtype=np.uint64), np.array([1, 1, 1], dtype=np.uint64)
    ... )
    >>> number_pairs_by_sorting(pairs).tolist()
    [0, 1, 0]
    """
    order = np.lexsort((pairs.rest, pairs.first))
    first = pairs.first[order]
    later_words = pairs.rest[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (first[1:] != first[:-1]) | (later_words[1:] != later_words[:-1])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(is_new) - 1
    # The order is stable, so the first row of a group comes first in it.
    first_row = order[is_new]
    place_of_group = np.empty(len(first_row), dtype=np.int32)
    place_of_group[np.argsort(first_row)] = np.arange(len(first_row), dtype=np.int32)
    return place_of_group[group]


def _first_pairs(pairs: WordPairs, numbers: Numbers) -> WordPairs:
    """Return the first pair with each number, in the order of the numbers."""
    is_new = np.ones(len(numbers), dtype=np.bool_)
    highest = np.maximum.accumulate(numbers)
    is_new[1:] = highest[1:] > highest[:-1]
    rows = np.flatnonzero(is_new)
    return WordPairs(pairs.first[rows], pairs.rest[rows])


def _are_equal(pairs: WordPairs, stored: WordPairs, numbers: Numbers) -> bool:
    """Return whether every pair equals the stored pair of the same number."""
    return all(
        np.array_equal(words, of_stored.take(numbers))
        for words, of_stored in zip(pairs, stored, strict=True)
    )


def _memory_of_pairs(pairs: WordPairs) -> int:
    """Return the memory that arrays of pairs take, in bytes."""
    return pairs.first.nbytes + pairs.rest.nbytes


def _places_of(stored: Any, waiting: Sequence[Any]) -> tuple[Numbers, Any]:
    """Return the index of each new value, and the distinct values it refers to.

    Args:
        stored: an Arrow array of the distinct values that are stored already, whose places do not
            change; None if no value is stored.
        waiting: one or more Arrow arrays of further values.
    """
    import pyarrow as pa

    chunks = [*waiting]
    before = 0
    if stored is not None:
        # The stored values come first, each once and in order, so they get their old places
        # again.
        chunks.insert(0, stored)
        before = len(stored)
    encoded = pa.chunked_array(chunks).dictionary_encode()
    positions = np.concatenate([_int32_array(chunk.indices) for chunk in encoded.chunks])
    if len(positions) != sum(map(len, chunks)):
        raise InternalError("every key must have one place; please report this.")
    different = encoded.chunks[-1].dictionary
    del chunks, encoded
    pa.default_memory_pool().release_unused()
    return positions[before:], different


def _int32_array(array: Any) -> Numbers:
    """Convert an Arrow array of 32-bit integers without nulls to NumPy."""
    numbers: Array = np.from_dlpack(array)
    if numbers.dtype != np.int32:
        raise InternalError("places of keys must be 32-bit integers; please report this.")
    return numbers
