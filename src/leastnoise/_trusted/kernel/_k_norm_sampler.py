"""Exact K-norm noise for tables that share their total.

The noise of every cell is a whole number.

Integer arithmetic only. The labels (N1 ...) refer to PROOFS-k-norm.md in this folder.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from leastnoise._trusted.check import InternalError
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._noise import draw_far_geometric
from leastnoise._trusted.kernel._sampling import (
    SCALE_LIMIT,
    Enclosure,
    Ratios,
    geometric_table,
    toss_exp,
    uniform_below,
)
from leastnoise._trusted.measurements import ball_count_numerators, draw_tables, lattice_dimension

# Parts of the table of the exponential distribution, as in discrete_laplace.
_PARTS = 8
_CUT = 128
# In addition to the bits of the largest weight: they leave a choice open with probability below
# 2^-100.
_SPARE_BITS = 128


def k_norm_noise(table_sizes: Sequence[int], scale: Fraction, entropy: Entropy) -> list[IntArray]:
    """Return exact K-norm noise: tables of integers that share one total.

    The probability is proportional to exp(-|z| / scale).

    |z| is the largest of the tables' sums of absolute values.

    Args:
        table_sizes: the number of cells of each table, at least one table.
        scale: a fraction above 0; its numerator and denominator are below 2^56.
        entropy: the source of bits; the noise is private only if it is `SystemEntropy`.

    Returns:
        int64 arrays, the cells of each table.

    Raises:
        InternalError: the scale or a size is not one that `Measurements` accepts.

    Guarantees:
        Given independent uniform bits, draws are independent and have exactly the stated
        distribution modulo 2^64 (theorem N of PROOFS-k-norm.md).

    >>> [table.tolist() for table in k_norm_noise([2, 3], Fraction(2), SeededEntropy(1))]
    [[-1, 1], [-1, 1, 0]]
    """
    if not (0 < scale.numerator < SCALE_LIMIT and scale.denominator < SCALE_LIMIT):
        raise InternalError("K-norm noise was requested at an invalid scale; please report this.")
    if not table_sizes or min(table_sizes) < 1:
        raise InternalError("K-norm noise was requested for invalid tables; please report this.")
    integers = _UniformIntegers(entropy)
    norm = _draw_offset(ball_count_numerators(tuple(sorted(table_sizes))), scale, integers)  # N2
    norm += _draw_geometric_sum(scale, lattice_dimension(table_sizes) + 1, entropy)  # N3
    tables = draw_tables(table_sizes, norm, integers.below)  # N4
    return [np.array([_wrap_to_int64(cell) for cell in table], dtype=np.int64) for table in tables]


def _wrap_to_int64(value: int) -> int:
    """Reduce an integer modulo 2^64 to the range from -2^63 to 2^63 - 1."""
    return (value + 2**63) % 2**64 - 2**63


class _UniformIntegers:
    """A generator of uniform random integers of any length (N1)."""

    __slots__ = ("_entropy",)

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def bits(self, count: int) -> int:
        """Return a uniform random integer of ``count`` bits."""
        words = -(-count // 64)
        number = int.from_bytes(self._entropy.words(words).tobytes(), "little")
        return number >> (64 * words - count)

    def below(self, bound: int) -> int:
        """Return a uniform random integer from 0 to bound - 1."""
        length = (bound - 1).bit_length()
        if not length:
            return 0
        while True:
            number = self.bits(length)
            if number < bound:
                return number


def _draw_offset(weights: tuple[int, ...], scale: Fraction, integers: _UniformIntegers) -> int:
    """Draw an index j in exact proportion to weights[j] exp(-j / scale) (N2)."""
    bits = max(weights).bit_length() + _SPARE_BITS
    digits = integers.bits(bits)
    while True:
        low, high = _enclose_partial_sums(weights, scale, bits + len(weights).bit_length() + 8)
        for offset in range(len(weights)):
            begins = digits * low[-1] >= high[offset] << bits
            ends = (digits + 1) * high[-1] <= low[offset + 1] << bits
            if begins and ends:
                return offset
        # The digits so far allow two offsets, or the enclosures are too wide.
        digits = (digits << bits) | integers.bits(bits)
        bits *= 2


# Public numbers, which all draws of one block share.
@lru_cache(maxsize=16)
def _enclose_partial_sums(
    weights: tuple[int, ...], scale: Fraction, bits: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return bounds on the partial sums of weights[j] exp(-j / scale) (N2).

    The sums begin at j = 0, and are multiplied by 2^bits.
    """
    ratio = _enclose_exp_of_minus(1 / scale, bits)
    power: Enclosure = (1 << bits, 1 << bits)
    powers = [power]
    for _ in weights[1:]:
        power = power[0] * ratio[0] >> bits, -(-power[1] * ratio[1] >> bits)
        powers.append(power)
    low, high = (
        (0, *accumulate(weight * power[end] for weight, power in zip(weights, powers, strict=True)))
        for end in (0, 1)
    )
    return low, high


def _enclose_exp_of_minus(value: Fraction, bits: int) -> Enclosure:
    """Return bounds on exp(-value) times 2^bits, for a value above 0 (N2)."""
    halvings = max(0, value.numerator.bit_length() - value.denominator.bit_length() + 1)
    work = bits + halvings + 8
    part = value / 2**halvings  # below 1
    term: Enclosure = (1 << work, 1 << work)
    low = high = 1 << work
    order = 0
    while term[1] > 1:
        order += 1
        step = part / order
        term = (
            term[0] * step.numerator // step.denominator,
            -(-term[1] * step.numerator // step.denominator),
        )
        low, high = (
            (low - term[1], high - term[0]) if order % 2 else (low + term[0], high + term[1])
        )
    # The terms fall, and signs alternate: the remainder is between 0 and the last term.
    low = max(low - term[1], 0)
    high = high + term[1]
    for _ in range(halvings):
        low = low * low >> work
        high = -(-high * high >> work)
    shift = work - bits
    return low >> shift, -(-high >> shift)


def _draw_geometric_sum(scale: Fraction, count: int, entropy: Entropy) -> int:
    """Return the sum of ``count`` exact geometric draws (N3).

    The ratio of the geometric distribution is exp(-1 / scale).
    """
    p = scale.numerator
    q = scale.denominator
    top = np.asarray(p, dtype=np.uint64)
    one = np.asarray(1, dtype=np.uint64)
    total = 0
    while count:
        u, accepted = uniform_below(top, p, count, entropy)
        accepted &= toss_exp(
            Ratios(numerators=u, denominators=top),
            np.arange(count),
            entropy,
            linear=one,
            square=False,
            slots=_PARTS,
        )
        v = geometric_table().draw(count, entropy)
        for i in np.flatnonzero(accepted).tolist():
            if v[i] < _CUT:
                parts = int(v[i])
            else:
                parts = draw_far_geometric(entropy)
            total += (int(u[i]) + p * parts) // (_PARTS * q)
        count -= int(accepted.sum())
    return total
