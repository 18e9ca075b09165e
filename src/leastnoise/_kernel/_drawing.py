"""Raw bits, uniform integers, checked scales and rejection in blocks: what all samplers share.

Integer arithmetic on uint64 only. The labels (D1 ...) refer to PROOFS-noise.md beside this file.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from leastnoise._check import refuse, whole
from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._kernel._entropy import Entropy, Words, fresh_words

Index = npt.NDArray[np.intp]
Scale = Words  # of shape () or (count,)

SCALE_LIMIT = 1 << 56  # numerators and denominators are below it; every overflow bound of the proofs rests on it
_BLOCK = 1 << 15  # draws a round: the temporaries of a block stay in the processor's cache


def random_bytes(count: int, entropy: Entropy) -> npt.NDArray[np.uint8]:
    """Return ``count`` independent uniform bytes (D1)."""
    return fresh_words(entropy, -(-count // 8)).view(np.uint8)[:count]


def random_halves(count: int, entropy: Entropy) -> npt.NDArray[np.uint16]:
    """Return ``count`` independent uniform 16-bit numbers (D1)."""
    return fresh_words(entropy, -(-count // 4)).view(np.uint16)[:count]


def random_signs(count: int, entropy: Entropy) -> BoolArray:
    """Return ``count`` independent fair coins (D1)."""
    return np.unpackbits(fresh_words(entropy, -(-count // 64)).view(np.uint8))[:count].view(np.bool_)


def signed(magnitudes: Words, negative: BoolArray) -> IntArray:
    """Return the magnitudes with their signs, modulo 2^64 as int64 (D2).

    Args:
        magnitudes: uint64 array of shape (count,); overwritten.
        negative: which of them to negate, shape (count,).

    >>> signed(np.array([3, 0, 2**64 - 1], dtype=np.uint64), np.array([True, True, False])).tolist()
    [-3, 0, -1]
    """
    np.negative(magnitudes, out=magnitudes, where=negative)
    return magnitudes.view(np.int64)


def uniform_below(bound: Scale, largest: int, count: int, entropy: Entropy) -> tuple[Words, BoolArray]:
    """Draw uniform integers from [0, bound), some of which must be rejected (D3).

    Args:
        bound: uint64, one bound (shape ()) or one for each draw, from 1 to 2^56.
        largest: the largest of the bounds, or a number above it; it decides how many bits are drawn.
        count: number of draws.
        entropy: the source of bits.

    Returns:
        The integers, and which of them to accept; among the accepted each value of [0, bound) is equally likely.
        At least 255 of 256 are accepted on average.
    """
    if largest <= 1 << 8:
        raw, top = random_halves(count, entropy).astype(np.uint64), (1 << 16) - 1
    elif largest <= 1 << 24:
        raw, top = fresh_words(entropy, -(-count // 2)).view(np.uint32)[:count].astype(np.uint64), (1 << 32) - 1
    else:
        raw, top = fresh_words(entropy, count), (1 << 64) - 1
    blocks = np.uint64(top) // bound  # whole copies of [0, bound) among the 2^w possible values
    quotient = raw // bound
    return raw - quotient * bound, quotient < blocks


def read_scale(numerator: int | IntArray, denominator: int | IntArray, count: int) -> tuple[Scale, Scale]:
    """Check a scale numerator / denominator (D4).

    Args:
        numerator: a whole number from 1 to 2^56 - 1, or an int64 array of them, of shape (count,).
        denominator: the same.
        count: number of draws.

    Returns:
        Both as uint64 arrays of shape () or (count,).

    Raises:
        InputError: a part is not of this kind, for example 0.

    >>> read_scale(3, 10, 5)
    (array(3, dtype=uint64), array(10, dtype=uint64))
    """
    return _read_part("numerator of the noise scale", numerator, count), _read_part("denominator of the noise scale", denominator, count)


def _read_part(name: str, part: int | IntArray, count: int) -> Scale:
    if not isinstance(part, np.ndarray):
        return np.asarray(whole(name, part, 1, SCALE_LIMIT - 1), dtype=np.uint64)
    if part.dtype != np.int64 or part.shape != (count,):
        allowed = f"a whole number or an int64 array of shape ({count},), one for each draw"
        raise refuse(name, f"{part.dtype} array of shape {part.shape}", allowed)
    for extreme in (part.min(initial=1), part.max(initial=1)):
        whole(name, int(extreme), 1, SCALE_LIMIT - 1)
    return part.astype(np.uint64)


def at(scale: Scale, index: Index | slice) -> Scale:
    """Return the entries of a scale for the given draws; a single scale serves them all."""
    return scale[index] if scale.ndim else scale


def item(scale: Scale, i: int) -> int:
    """Return the scale of one draw as a Python integer."""
    return int(scale[i] if scale.ndim else scale)


def draw_in_blocks(count: int, attempt: Callable[[Index | slice, int], tuple[IntArray, BoolArray]]) -> IntArray:
    """Repeat an attempt for every draw until it is accepted (D5).

    Args:
        count: number of draws, at least 0.
        attempt: given the draws to try (an index of them, and how many they are) returns their values and which to accept.

    Returns:
        int64 array of shape (count,).

    Raises:
        InputError: the count is not a whole number of at least 0.
    """
    draws = np.empty(whole("count", count, 0), dtype=np.int64)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        values, accepted = attempt(slice(start, stop), stop - start)
        draws[start:stop] = values
        pending = start + np.flatnonzero(~accepted)
        while pending.size:
            values, accepted = attempt(pending, pending.size)
            draws[pending] = values
            pending = pending[~accepted]
    return draws
