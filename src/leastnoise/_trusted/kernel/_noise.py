"""Draw exact noise: discrete Laplace, discrete Gaussian, rounded Gaussian.

The rounded Gaussian is a continuous Gaussian, exactly rounded to integers.

Integer arithmetic only. The labels (L1 ..., G1 ..., R1 ...) refer to PROOFS-noise.md in this
folder.
"""

import numpy as np

from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._trusted.kernel._entropy import Entropy, Words
from leastnoise._trusted.kernel._sampling import (
    Coins,
    Index,
    LazyReals,
    Ratios,
    Scale,
    apply_signs,
    checked_scale,
    coin_exp,
    draw_in_blocks,
    geometric_table,
    half_normal_table,
    random_signs,
    scale_at,
    toss_exp,
    uniform_below,
)

# The exponential is cut in eighths, so that 94% of the attempts are accepted; the table belongs to
# it.
_PARTS = 8
_LARGEST_GEOMETRIC = 2**62  # larger geometric numbers become this number
_CUT = 128  # the table's last cell, which represents V of at least 128


def discrete_laplace(
    numerator: int | IntArray, denominator: int | IntArray, count: int, entropy: Entropy
) -> IntArray:
    """Return exact draws of discrete Laplace noise.

    P(z) is proportional to exp(-|z| denominator / numerator), for integers z.

    Args:
        numerator: the numerator of the scale: a whole number from 1 to 2^56 - 1. It may be an int64
            array of shape (count,), with one scale for each draw.
        denominator: the denominator of the scale, with the same type and range.
        count: number of draws, at least 0.
        entropy: the source of bits; the noise is private only if it is `SystemEntropy`.

    Returns:
        int64 array of shape (count,), in counts.

    Raises:
        InputError: the numerator, the denominator or the count is not an allowed number.

    Guarantees:
        If the bits are independent and uniform, the draws are independent and have exactly the
        stated distribution modulo 2^64 (theorem L of PROOFS-noise.md). |z| reaches 2^63 with
        probability below 2^-184. Even then, x + z modulo 2^64 is a function of the exact x + z, so
        the privacy loss does not grow.

    Source:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
        algorithm 2. Here the exponential is divided into parts of 1/8 instead of parts of 1, and V
        is drawn from a table.

    >>> discrete_laplace(3, 2, 6, SeededEntropy(1)).dtype.name
    'int64'
    """
    p, q = checked_scale(numerator, denominator, count)
    largest = int(p.max(initial=1))
    table = geometric_table()
    unit = np.asarray(1, dtype=np.uint64)

    def attempt(index: Index | slice, size: int) -> tuple[IntArray, BoolArray]:
        """Try to draw some elements; return their values, and which are accepted."""
        scale_numerators = scale_at(p, index)
        divisor = scale_at(q, index) * np.uint64(_PARTS)
        u, accepted = uniform_below(scale_numerators, largest, size, entropy)  # L1
        accepted &= toss_exp(
            Ratios(numerators=u, denominators=scale_numerators),
            np.arange(size),
            entropy,
            linear=unit,
            square=False,
            slots=_PARTS,
        )
        v = table.draw(size, entropy)  # L2
        # L3: The number v is at most 128, so the sum is below 2^64.
        magnitude = (u + scale_numerators * v) // divisor
        zero = magnitude == 0
        for i in np.flatnonzero(v == _CUT).tolist():
            exact = (
                int(u[i]) + int(scale_at(scale_numerators, i)) * draw_far_geometric(entropy)
            ) // int(scale_at(divisor, i))
            magnitude[i], zero[i] = exact % 2**64, exact == 0
        negative = random_signs(size, entropy)
        # L4: If both signs were allowed, zero would be drawn twice as often.
        accepted &= ~(zero & negative)
        return apply_signs(magnitude, negative), accepted

    return draw_in_blocks(count, attempt)


def geometric(numerator: int, denominator: int, count: int, entropy: Entropy) -> IntArray:
    """Return exact geometric draws; draws above 2^62 become 2^62.

    P(G >= j) = exp(-j denominator / numerator), for integers j from 0 to 2^62.

    Args:
        numerator: the numerator of the scale, a whole number from 1 to 2^56 - 1.
        denominator: the denominator of the scale, from 1 to 2^56 - 1.
        count: number of draws, at least 0.
        entropy: the source of bits; the numbers are private only if it is `SystemEntropy`.

    Returns:
        int64 array of shape (count,), independent draws from 0 to 2^62.

    Raises:
        InputError: the numerator, the denominator or the count is not an allowed number.

    Guarantees:
        If the bits are independent and uniform, the draws have exactly the stated distribution
        (corollary L6 of PROOFS-noise.md).

    >>> geometric(3, 2, 6, SeededEntropy(1)).shape
    (6,)
    """
    p, q = checked_scale(numerator, denominator, count)
    divisor = q * np.uint64(_PARTS)

    # All elements have one scale.
    def attempt(index: Index | slice, size: int) -> tuple[IntArray, BoolArray]:  # noqa: ARG001
        """Try to draw some elements; return their values, and which are accepted."""
        u, accepted = uniform_below(p, int(p), size, entropy)  # L1
        accepted &= toss_exp(
            Ratios(numerators=u, denominators=p),
            np.arange(size),
            entropy,
            linear=np.asarray(1, dtype=np.uint64),
            square=False,
            slots=_PARTS,
        )
        v = geometric_table().draw(size, entropy)  # L2
        drawn = (u + p * v) // divisor  # L3
        for i in np.flatnonzero(v == _CUT).tolist():
            drawn[i] = min(
                (int(u[i]) + int(p) * draw_far_geometric(entropy)) // int(divisor),
                _LARGEST_GEOMETRIC,
            )
        return np.minimum(drawn, np.uint64(_LARGEST_GEOMETRIC)).astype(np.int64), accepted  # L6

    return draw_in_blocks(count, attempt)


def draw_far_geometric(entropy: Entropy) -> int:
    """Draw a geometric number that is at least 128, the table's last cell (L2).

    The draw is exact, because the geometric distribution has no memory.
    """
    v = _CUT
    while True:
        further = int(geometric_table().draw(1, entropy)[0])
        v += further
        if further < _CUT:
            return v


_PARTS_OF_STD = 8  # parts of a standard deviation
# From this standard deviation on, a part holds enough integers for the finer division to be faster.
_FINE_FROM = 32


def discrete_gaussian(
    numerator: int | IntArray, denominator: int | IntArray, count: int, entropy: Entropy
) -> IntArray:
    """Return exact draws of discrete Gaussian noise.

    P(z) is proportional to exp(-z^2 / (2 sigma^2)), for integers z, with sigma = numerator /
    denominator.

    Arguments, draws and errors are as for `discrete_laplace`, with sigma in the place of the
    scale.

    Guarantees:
        If the bits are independent and uniform, the draws are independent and have exactly the
        stated distribution modulo 2^64 (theorem G of PROOFS-noise.md). |z| reaches 2^63 with
        probability below 2^-11000.

    Source:
        Karney, "Sampling exactly from the normal distribution" (2016), algorithm D. The half-line
        is divided into parts of sigma/8, and the number of the part is drawn from a table.

    >>> discrete_gaussian(3, 2, 6, SeededEntropy(1)).dtype.name
    'int64'
    """
    p, q = checked_scale(numerator, denominator, count)
    if bool((p // q).min(initial=_FINE_FROM) >= _FINE_FROM):
        parts = _PARTS_OF_STD
    else:
        parts = 1
    # G1: A candidate y has k + x = y unit / p. The k-th part is k <= y unit / p < k + 1.
    unit = q * np.uint64(parts)
    width = (p + (unit - np.uint64(1))) // unit
    widest = int(width.max(initial=1))
    table = half_normal_table(parts)

    def attempt(index: Index | slice, size: int) -> tuple[IntArray, BoolArray]:
        """Try to draw some elements; return their values, and which are accepted."""
        scale_numerators = scale_at(p, index)
        step = scale_at(unit, index)
        k = _draw_part_numbers(parts, table.draw(size, entropy), entropy)
        j, accepted = uniform_below(scale_at(width, index), widest, size, entropy)
        start = k * scale_numerators
        y = (start + (step - np.uint64(1))) // step + j  # G2
        x = y * step - start
        far = k >= np.uint64(8 * parts)
        for i in np.flatnonzero(far).tolist():  # G3: the products may leave 64 bits
            p_i = int(scale_at(scale_numerators, i))
            step_i = int(scale_at(step, i))
            start_i = int(k[i]) * int(scale_at(scale_numerators, i))
            exact = -(-start_i // step_i) + int(j[i])
            y[i], x[i] = exact % 2**64, min(exact * step_i - start_i, p_i)
        accepted &= x < scale_numerators
        inside = np.flatnonzero(accepted)
        # G4
        accepted[inside] = _toss_acceptance(
            parts, k[inside], Ratios(numerators=x, denominators=scale_numerators), inside, entropy
        )
        negative = random_signs(size, entropy)
        # G5: If both signs were allowed, zero would be drawn twice as often.
        accepted &= (y != 0) | far | ~negative
        return apply_signs(y, negative), accepted

    return draw_in_blocks(count, attempt)


def rounded_gaussian(
    numerator: int | IntArray, denominator: int | IntArray, count: int, entropy: Entropy
) -> IntArray:
    """Return draws of continuous Gaussian noise, exactly rounded to integers.

    A draw is the nearest integer to N(0, sigma^2), with sigma = numerator / denominator.

    Arguments, draws and errors are as for `discrete_laplace`, with sigma in the place of the scale.
    The draws have mean exactly 0, and variance sigma^2 + 1/12 up to an exponentially small term.

    Guarantees:
        If the bits are independent and uniform, the draws are independent and have exactly the
        distribution of floor(N(0, sigma^2) + 1/2) modulo 2^64 (theorem R of PROOFS-noise.md). For
        an integer x, x + z is therefore a function of x + N(0, sigma^2).

    Source:
        Karney, "Sampling exactly from the normal distribution" (2016), algorithm N. The half-line
        is divided into parts of sigma/8, and the number of the part is drawn from a table.

    >>> rounded_gaussian(3, 2, 6, SeededEntropy(1)).dtype.name
    'int64'
    """
    p, q = checked_scale(numerator, denominator, count)
    table = half_normal_table(_PARTS_OF_STD)

    def attempt(index: Index | slice, size: int) -> tuple[IntArray, BoolArray]:
        """Try to draw some elements; return their values, and which are accepted."""
        scale_numerators = scale_at(p, index)
        half_step = scale_at(q, index) * np.uint64(_PARTS_OF_STD)
        k = _draw_part_numbers(_PARTS_OF_STD, table.draw(size, entropy), entropy)
        x = LazyReals(leading=entropy.words(size))  # R1
        accepted = _toss_acceptance(_PARTS_OF_STD, k, x, np.arange(size), entropy)
        double = scale_numerators * np.uint64(2)
        high, low = _wide_product(double, x.leading)
        y = (double * k + half_step + high) // (half_step * np.uint64(2))  # R2
        doubtful = (low >= np.uint64(2**64 - 1) - double) | (k >= np.uint64(8 * _PARTS_OF_STD))
        for i in np.flatnonzero(accepted & doubtful).tolist():  # R3
            y[i] = _round_exactly(
                int(scale_at(scale_numerators, i)),
                int(scale_at(half_step, i)),
                int(k[i]),
                x,
                i,
                entropy=entropy,
            )
        # R4: Both signs of 0 belong to the cell around 0.
        return apply_signs(y, random_signs(size, entropy)), accepted

    return draw_in_blocks(count, attempt)


def _toss_acceptance(
    parts_per_sigma: int, k: Words, x: Coins, index: Index, entropy: Entropy
) -> BoolArray:
    """Toss coins with probabilities exp(-x (2 k + x) / (2 parts^2)) (G4).

    Here ``parts`` is ``parts_per_sigma``.
    """
    squared = np.uint64(parts_per_sigma * parts_per_sigma)
    whole_units = k // squared
    remainder = k % squared
    accepted = toss_exp(
        x,
        index,
        entropy,
        linear=remainder * np.uint64(2),
        square=True,
        slots=2 * parts_per_sigma * parts_per_sigma,
    )
    linear_unit = np.asarray(1, dtype=np.uint64)
    for unit in range(int(whole_units.max(initial=0))):
        left = np.flatnonzero(accepted & (whole_units > np.uint64(unit)))
        accepted[left] = toss_exp(
            x, index[left], entropy, linear=linear_unit, square=False, slots=1
        )
    return accepted


def _draw_part_numbers(parts_per_sigma: int, k: Words, entropy: Entropy) -> Words:
    """Replace part numbers that the table cuts off by exact draws, in place (G0).

    The last part number represents 8 standard deviations or more.
    """
    for i in np.flatnonzero(k == np.uint64(8 * parts_per_sigma)).tolist():
        k[i] = _draw_far_part(parts_per_sigma, entropy)
    return k


def _draw_far_part(parts_per_sigma: int, entropy: Entropy) -> int:
    """Draw the number k of a part that is beyond 8 standard deviations (G0).

    With ``parts`` = ``parts_per_sigma``, P(k) is proportional to exp(-k^2 / (2 parts^2)), for k >=
    8 ``parts``.
    """
    while True:
        j = 0
        while coin_exp(8, parts_per_sigma, entropy):
            j += 1
        if coin_exp(j * j, 2 * parts_per_sigma * parts_per_sigma, entropy):
            return 8 * parts_per_sigma + j


def _wide_product(left: Scale, right: Words) -> tuple[Words, Words]:
    """Return the high and the low 64 bits of left times right (R2).

    ``left`` is below 2^57.
    """
    mask = np.uint64(2**32 - 1)
    half = np.uint64(32)
    left_high = left >> half
    left_low = left & mask
    right_high = right >> half
    right_low = right & mask
    middle = left_high * right_low + (left_low * right_low >> half)
    second_middle = left_low * right_high + (middle & mask)
    return left_high * right_high + (middle >> half) + (second_middle >> half), left * right


def _round_exactly(
    p: int, half_step: int, k: int, x: LazyReals, real_index: int, *, entropy: Entropy
) -> int:
    """Round a Gaussian draw exactly to a whole number of steps, modulo 2^64 (R3).

    As many digits of x are drawn as needed. The result is
    floor((2 p (k + x) + half_step) / (2 half_step)) modulo 2^64.
    """
    digits = x.word(real_index, 0, entropy)
    bits = 64
    position = 1
    while True:
        low, high = (
            (2 * p * ((k << bits) + d) + (half_step << bits)) // (2 * half_step << bits)
            for d in (digits, digits + 1)
        )
        if low == high:
            return low % 2**64
        digits = (digits << 64) | x.word(real_index, position, entropy)
        bits = bits + 64
        position = position + 1
