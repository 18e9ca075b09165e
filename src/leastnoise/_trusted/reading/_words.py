"""Represent byte strings of at most 7 bytes as whole numbers (E2 of PROOFS-reading.md).

The integer of a byte string is its bytes, read as a little-endian number, plus 256^length.
Different byte strings have different integers, and integers are compared faster than bytes.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check.arrays import Array, IntArray

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
# A byte string of fewer bytes can be encoded as one integer.
WORD = 8
_END = np.array([1 << 8 * length for length in range(WORD)], dtype=np.uint64)
# The integers of byte strings of at most this many bytes are below the next constant. A lookup
# table of this size fits into the processor cache.
MOST_SMALL = 2
_SMALL_WORDS = 1 << 17


def words_of(text: Bytes, begins: Array, lengths: Array) -> Words:
    r"""Encode short byte strings, which are slices of one text, as integers.

    Args:
        text: the bytes, followed by `WORD` additional bytes with any content.
        begins: the position at which each byte string begins in the text.
        lengths: the number of bytes of each; all are below `WORD`.

    >>> words_of(
    ...     np.frombuffer(b"FM" + bytes(WORD), dtype=np.uint8),
    ...     np.array([0, 1, 2]),
    ...     np.array([1, 1, 0]),
    ... ).tolist()
    [326, 333, 1]
    """
    if lengths.max(initial=0) <= MOST_SMALL:
        return _small_words_of(text, begins, lengths)
    ends = np.uint64(1) << (lengths * 8).astype(np.uint64)
    words: Words = np.ndarray(len(text) - WORD + 1, "<u8", text, strides=(1,))[begins]
    words &= ends - np.uint64(1)
    words |= ends
    return words


def _small_words_of(text: Bytes, begins: Array, lengths: Array) -> Words:
    """Encode byte strings of at most two bytes as integers.

    Reading two bytes is faster than reading a word.
    """
    ends = np.uint32(1) << (lengths * 8).astype(np.uint32)
    words = text.take(begins + 1).astype(np.uint32)
    words <<= np.uint32(8)
    words |= text.take(begins)
    words &= ends - np.uint32(1)
    words |= ends
    return words.astype(np.uint64)


def single_byte_words(text: Bytes) -> Words:
    """Encode each byte of a text as the integer of a one-byte string.

    >>> single_byte_words(np.frombuffer(b"FM", dtype=np.uint8)).tolist()
    [326, 333]
    """
    return text.astype(np.uint64) | _END[1]


class WordPairs(NamedTuple):
    """Byte strings of 8 to 15 bytes, encoded as two integers each.

    Attributes:
        first: the little-endian number of the first 8 bytes.
        rest: the integers of the remaining bytes (`words_of`).
    """

    first: Words
    rest: Words


def word_pairs_of(text: Bytes, begins: Array, lengths: Array) -> WordPairs:
    r"""Encode byte strings of 8 to 15 bytes, slices of a text, as integer pairs.

    Args:
        text: the bytes, followed by `WORD` additional bytes with any content.
        begins: the position at which each byte string begins in the text.
        lengths: the number of bytes of each, from `WORD` to 15.

    >>> text = np.frombuffer(b"Florence" + bytes(WORD), dtype=np.uint8)
    >>> pairs = word_pairs_of(text, np.array([0]), np.array([8]))
    >>> pairs.first.tobytes(), pairs.rest.tolist()
    (b'Florence', [1])
    """
    first: Words = np.ndarray(len(text) - WORD + 1, "<u8", text, strides=(1,))[begins]
    return WordPairs(first, words_of(text, begins + WORD, lengths - WORD))


def bytes_of(words: Words) -> tuple[Bytes, IntArray]:
    """Decode integers to byte strings; return all bytes and the start offsets.

    Returns:
        The concatenated bytes, and the position at which each byte string begins. The array of
        positions ends with the end of the last byte string.

    >>> content, starts = bytes_of(np.array([326, 1, 333], dtype=np.uint64))
    >>> content.tobytes(), starts.tolist()
    (b'FM', [0, 1, 1, 2])
    """
    # The highest bit set comes from 256^length and marks the end, so trailing zero bytes are kept.
    lengths = np.searchsorted(_END, words, side="right") - 1
    in_bytes = np.ascontiguousarray(words, dtype="<u8").view(np.uint8).reshape(-1, WORD)
    content = in_bytes[np.arange(WORD) < lengths[:, np.newaxis]]
    starts: IntArray = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    return content, starts


def distinct_words(words: Words) -> tuple[Words, IntArray]:
    """Return the distinct integers, and the index of each integer among them.

    >>> different, places = distinct_words(np.array([7, 5, 7], dtype=np.uint64))
    >>> different[places].tolist()
    [7, 5, 7]
    """
    if words.max(initial=0) < _SMALL_WORDS:
        small = words.view(np.int64)
        occurs = np.zeros(_SMALL_WORDS, dtype=np.bool_)
        occurs[small] = True
        different = np.flatnonzero(occurs)
        place_of = np.zeros(_SMALL_WORDS, dtype=np.int64)
        place_of[different] = np.arange(len(different))
        return different.astype(np.uint64), place_of.take(small)
    encoded = arrow_words(words).dictionary_encode()
    dictionary: Array = np.from_dlpack(encoded.dictionary)
    positions: Array = np.from_dlpack(encoded.indices)
    return dictionary, positions.astype(np.int64)


def arrow_words(words: Words) -> Any:
    """Convert integers to an Arrow array without pa.array, which imports pandas."""
    import pyarrow as pa

    buffer = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(pa.uint64(), len(words), [None, buffer])
