"""The fields of a column of a block of lines: the distinct ones, and which of them each record has (E2 of PROOFS-adapters.md)."""

import numpy as np

from leastnoise._adapters._arrow import to_column
from leastnoise._adapters._column import Column
from leastnoise._adapters._lines import Bytes
from leastnoise._check.arrays import IntArray

# A field of fewer bytes is told apart as one whole number of so many, in which a 1 stands behind its last byte.
WORD = 8
_END = np.array([1 << 8 * length for length in range(WORD)], dtype=np.uint64)


def to_texts(text: Bytes, begins: IntArray, ends: IntArray) -> Column:
    r"""The fields between places, told apart by their bytes.

    Args:
        text: what they are in, with `WORD` further bytes behind the last of them.
        begins: where each begins.
        ends: where each ends.

    >>> column = to_texts(np.frombuffer(b"F,M,F" + bytes(WORD), dtype=np.uint8), np.array([0, 2, 4]), np.array([1, 3, 5]))
    >>> column.data, column.index.tolist()
    ([b'F', b'M'], [0, 1, 0])
    """
    import pyarrow as pa

    lengths = ends - begins
    if lengths.max(initial=0) >= WORD:
        starts = np.concatenate(([0], np.cumsum(lengths)))
        gathered = text[np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1])]
        parts = [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(gathered)]
        return to_column(pa.Array.from_buffers(pa.binary(), len(begins), parts))
    if (lengths == 1).all():
        keys, end = text[begins], 256
    else:
        ends_at = _END[lengths]
        words = np.ndarray(len(text) - WORD + 1, "<u8", text, strides=(1,))[begins]
        keys, end = (words & (ends_at - 1)) | ends_at, 0
    # not pa.array, which loads pandas
    found = pa.Array.from_buffers(pa.from_numpy_dtype(keys.dtype), len(keys), [None, pa.py_buffer(keys)]).dictionary_encode()
    return Column([_bytes(key + end) for key in found.dictionary.to_pylist()], None, np.from_dlpack(found.indices).astype(np.int64))


def _bytes(key: int) -> bytes:
    """The bytes below the highest bit, which stands behind the last of them, so that zeros at the end are told from none."""
    return key.to_bytes(WORD, "little")[: key.bit_length() // 8]
