"""The numbers of the exponential mechanism over partitions: weights, their sums and products, and an exact draw.

P(B) is proportional to the product of the weights of the buckets of B. A weight is 2^-(t / 2^F), t a whole number that one record changes
by at most r, so the privacy follows from whole numbers. Sums of products are kept as pairs of a float64 in [1/2, 1) and an exponent; their
rounding errors are bounded and charged. Given these sums, each backward draw is exact. The labels (X1 ...) refer to PROOFS-partition.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from leastnoise._check import Exact, InputError, exact, refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._kernel._entropy import Entropy, fresh_words

_LN2 = Fraction(6931471805599454, 10**16)  # above ln 2 by less than 10^-16
_MOST_BITS = 44
_FAR = 1200  # exponents further apart: the smaller number is below the last bit of the larger


@dataclass(frozen=True, slots=True)
class Scaled:
    """Positive numbers ``mantissa * 2^exponent``, mantissa in [1/2, 1]."""

    mantissa: FloatArray
    exponent: IntArray

    def at(self, index: slice | IntArray) -> "Scaled":
        """Some of them."""
        return Scaled(self.mantissa[index], self.exponent[index])

    def whole(self, place: int) -> tuple[int, int]:
        """One of them exactly, as a whole mantissa and an exponent."""
        return int(math.ldexp(float(self.mantissa[place]), 53)), int(self.exponent[place]) - 53


def times(left: Scaled, right: Scaled) -> Scaled:
    """Products, each with a relative error of at most 2^-53 (X3)."""
    mantissa, carry = np.frexp(left.mantissa * right.mantissa)
    return Scaled(mantissa, left.exponent + right.exponent + carry)


def plus(left: Scaled, right: Scaled) -> Scaled:
    """Sums, each with a relative error of at most 2^-52 (X3)."""
    top = np.maximum(left.exponent, right.exponent)
    mantissa, carry = np.frexp(lowered(left, top) + lowered(right, top))
    return Scaled(mantissa, top + carry)


def lowered(numbers: Scaled, top: IntArray | np.int64) -> FloatArray:
    """The numbers over 2^top, in float64 (X3)."""
    found: FloatArray = np.ldexp(numbers.mantissa, np.maximum(numbers.exponent - top, -_FAR).astype(np.int32))
    return found


@cache
def roots_of_half() -> tuple[float, ...]:
    """2^-(2^-j) for j = 1, 2, ..., correctly rounded (X2).

    >>> roots_of_half()[0] == 0.5**0.5
    True
    """
    power, roots = 1 << 255, []
    for _ in range(_MOST_BITS):
        power = math.isqrt(power << 256)
        roots.append(power / 2**256)
    return tuple(roots)


def powers_of_half(t: IntArray, bits: int) -> Scaled:
    """``2^-(t / 2^bits)`` for whole t of at least 0, with a relative error of at most 100 * 2^-53 (X2).

    >>> powers_of_half(np.array([0, 3]), 1).mantissa.tolist() == [1.0, 0.5**0.5]
    True
    """
    mantissa = np.ones(len(t))
    for j, root in enumerate(roots_of_half()[:bits], start=1):
        mantissa *= np.where((t >> (bits - j)) & 1 == 1, root, 1.0)
    return Scaled(mantissa, -(t >> bits))


def weights_of(costs: Sequence[IntArray], sensitivity: int, epsilon: Fraction, prior: Exact, penalty: int) -> list[Scaled]:
    """The weights of intervals, or blocks, of given costs (X1, X2).

    Args:
        costs: on the grid, one array a level; one record changes one of each level by at most ``sensitivity``.
        sensitivity: D, on the grid.
        epsilon: of the draw, without what rounding errors cost.
        prior: a penalty, in natural logarithms.
        penalty: another, on the grid.

    Raises:
        InputError: too small an epsilon, or too large a penalty.
    """
    bits, step = rate(epsilon)
    own = exact("prior", prior)
    natural = own + Fraction(step * penalty, sensitivity * 2**bits) * _LN2
    if not 0 <= own <= 2**10 or not natural <= 2**15:
        raise refuse("prior", prior, "from 0 to 1024, with a penalty that is not much larger")
    fixed = round(natural / _LN2 * 2**bits)
    return [powers_of_half(exponents(cost, step, sensitivity) + fixed, bits) for cost in costs]


def rate(epsilon: Fraction) -> tuple[int, int]:
    """F and r with ``2 r ln 2 / 2^F <= epsilon``, r as large as it may be and below 2^13 (X1).

    Raises:
        InputError: too small an epsilon.

    >>> rate(Fraction(1, 10))
    (16, 4727)
    """
    units = int(epsilon * 2**_MOST_BITS / (2 * _LN2)) if epsilon > 0 else 0
    if units < 1:
        raise InputError("epsilon is too small for the exponential mechanism: rounding errors would cost more. Spend more.")
    spare = max(0, units.bit_length() - 13)
    return (_MOST_BITS - spare, units >> spare) if spare <= _MOST_BITS else (0, 2**13 - 1)


def exponents(cost: IntArray, step: int, sensitivity: int) -> IntArray:
    """``floor(cost step / sensitivity)`` without leaving int64 (X1).

    >>> exponents(np.array([0, 5, 2**60]), 4727, 4096).tolist() == [0, 5, 2**48 * 4727]
    True
    """
    quotient = cost // sensitivity
    return quotient * step + ((cost - quotient * sensitivity) * step) // sensitivity


def settle(terms: Sequence[tuple[int, int]], word: int, entropy: Entropy) -> int:
    """Draw i with probability term_i / sum of terms, exactly, for a uniform real whose first 64 binary digits are drawn already (X4).

    Args:
        terms: (mantissa, exponent) of each, mantissa a whole number above 0.
        word: the first 64 digits.
        entropy: the source of further digits.

    >>> settle([(1, 0), (3, 0)], 2**62 - 1, SeededEntropy(1)), settle([(1, 0), (3, 0)], 2**62, SeededEntropy(1))
    (0, 1)
    """
    digits = 64
    top = max(mantissa.bit_length() + exponent for mantissa, exponent in terms)
    while True:
        unit = top - digits - 128
        low = [m << (e - unit) if e >= unit else m >> min(unit - e, 2**20) for m, e in terms]
        high = [part + (e < unit) for part, (_, e) in zip(low, terms, strict=True)]
        least, most = sum(low), sum(high)
        below = above = 0
        start = 0  # the point is known to be at or beyond the start of the term when start <= word
        for i, (smaller, larger) in enumerate(zip(low, high, strict=True)):
            below, above = below + smaller, above + larger
            stop = (below << digits) // most if i + 1 < len(terms) else 1 << digits
            if start <= word and word + 1 <= stop:
                return i
            start = -(-(above << digits) // least)
        word = (word << 64) | int(fresh_words(entropy, 1)[0])
        digits += 64
