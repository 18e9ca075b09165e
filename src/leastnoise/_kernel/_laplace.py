"""Exact discrete Laplace noise.

Integer arithmetic only. The labels (L1 ...) refer to PROOFS-noise.md beside this file.
"""

import numpy as np

from leastnoise._check.arrays import BoolArray, IntArray
from leastnoise._kernel._bernoulli import Ratios, geometric_table, toss_exp
from leastnoise._kernel._drawing import Index, at, draw_in_blocks, item, random_signs, read_scale, signed, uniform_below
from leastnoise._kernel._entropy import Entropy

_PARTS = 8  # the exponential is cut in eighths, so that 94% of the attempts are accepted; the table belongs to it
_CUT = 128  # the table's last cell, which stands for V of at least 128


def discrete_laplace(numerator: int | IntArray, denominator: int | IntArray, count: int, entropy: Entropy) -> IntArray:
    """Draw integers z with probability proportional to exp(-|z| denominator / numerator), exactly.

    Args:
        numerator: of the scale, a whole number from 1 to 2^56 - 1, or an int64 array of shape (count,): one scale a draw.
        denominator: the same.
        count: number of draws, at least 0.
        entropy: the source of bits; the noise is private only if it is `SystemEntropy`.

    Returns:
        int64 array of shape (count,), in counts.

    Raises:
        InputError: a scale or the count is not of this kind; a scale of 0 is refused.

    Guarantees:
        Given independent uniform bits the draws are independent and have exactly the stated distribution modulo 2^64
        (theorem L of PROOFS-noise.md). |z| reaches 2^63 with probability below 2^-184, and even then x + z modulo 2^64 is a
        function of the exact x + z, so that nothing beyond its privacy loss is lost.

    Source:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithm 2, with the exponential
        cut in eighths and V from a table.

    >>> discrete_laplace(3, 2, 6, SeededEntropy(1)).dtype.name
    'int64'
    """
    p, q = read_scale(numerator, denominator, count)
    largest = int(p.max(initial=1))
    table = geometric_table()
    one = np.asarray(1, dtype=np.uint64)

    def attempt(index: Index | slice, size: int) -> tuple[IntArray, BoolArray]:
        mine, divisor = at(p, index), at(q, index) * np.uint64(_PARTS)
        u, accepted = uniform_below(mine, largest, size, entropy)  # L1
        accepted &= toss_exp(Ratios(numerators=u, denominators=mine), np.arange(size), entropy, linear=one, square=False, slots=_PARTS)
        v = table.draw(size, entropy)  # L2
        magnitude = (u + mine * v) // divisor  # L3: v is at most 128, so the sum is below 2^64
        zero = magnitude == 0
        for i in np.flatnonzero(v == _CUT).tolist():
            exact = (int(u[i]) + item(mine, i) * _far_number(entropy)) // item(divisor, i)
            magnitude[i], zero[i] = exact % 2**64, exact == 0
        negative = random_signs(size, entropy)
        accepted &= ~(zero & negative)  # L4: a zero with a sign would count the zero twice
        return signed(magnitude, negative), accepted

    return draw_in_blocks(count, attempt)


def _far_number(entropy: Entropy) -> int:
    """Draw V given that it is at least 128: the geometric distribution has no memory (L2)."""
    v = _CUT
    while True:
        further = int(geometric_table().draw(1, entropy)[0])
        v += further
        if further < _CUT:
            return v
