"""Provide the functions that all samplers share, from raw bits to tables.

The shared parts include uniform integers, checked scales, rejection in blocks and exact coins.

All arithmetic is on uint64 integers. The labels (D1 ..., B1 ..., T1 ...) refer to PROOFS-noise.md
in this folder.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import InternalError, refuse, whole
from leastnoise._trusted.check.arrays import BoolArray, IntArray
from leastnoise._trusted.kernel._entropy import Entropy, Words
from leastnoise._trusted.linop import sealed_copy

Index = npt.NDArray[np.intp]
Scale = Words  # of shape () or (count,)

# Numerators and denominators are below it; every overflow bound of the proofs rests on it.
SCALE_LIMIT = 1 << 56
# The temporaries of a round stay in the processor's cache.
_DRAWS_PER_ROUND = 1 << 15


def random_bytes(count: int, entropy: Entropy) -> npt.NDArray[np.uint8]:
    """Return ``count`` independent uniform bytes (D1)."""
    return entropy.words(-(-count // 8)).view(np.uint8)[:count]


def random_uint16(count: int, entropy: Entropy) -> npt.NDArray[np.uint16]:
    """Return ``count`` independent uniform 16-bit numbers (D1)."""
    return entropy.words(-(-count // 4)).view(np.uint16)[:count]


def random_signs(count: int, entropy: Entropy) -> BoolArray:
    """Return ``count`` independent fair coins (D1)."""
    return np.unpackbits(entropy.words(-(-count // 64)).view(np.uint8))[:count].view(np.bool_)


def apply_signs(magnitudes: Words, negative: BoolArray) -> IntArray:
    """Negate some magnitudes in place; return all as int64, modulo 2^64 (D2).

    Args:
        magnitudes: uint64 array of shape (count,); overwritten.
        negative: a mask of the integers to negate, shape (count,).

    >>> apply_signs(
    ...     np.array([3, 0, 2**64 - 1], dtype=np.uint64), np.array([True, True, False])
    ... ).tolist()
    [-3, 0, -1]
    """
    np.negative(magnitudes, out=magnitudes, where=negative)
    return magnitudes.view(np.int64)


def uniform_below(
    bound: Scale, largest: int, count: int, entropy: Entropy
) -> tuple[Words, BoolArray]:
    """Draw integers from [0, bound); return them and which to accept (D3).

    Args:
        bound: uint64, from 1 to 2^56: one bound (shape ()), or one bound for each draw.
        largest: the largest of the bounds, or a number above it. This number determines how many
            bits are drawn.
        count: number of draws.
        entropy: the source of bits.

    Returns:
        The integers, and a mask of the accepted integers. Among the accepted integers, each value
        of [0, bound) is equally likely. On average, at least 255 of 256 integers are accepted.
    """
    if largest <= 1 << 8:
        raw = random_uint16(count, entropy).astype(np.uint64)
        highest = (1 << 16) - 1
    elif largest <= 1 << 24:
        raw = entropy.words(-(-count // 2)).view(np.uint32)[:count].astype(np.uint64)
        highest = (1 << 32) - 1
    else:
        raw = entropy.words(count)
        highest = (1 << 64) - 1
    blocks = np.uint64(highest) // bound  # whole copies of [0, bound) among the 2^w possible values
    quotient = raw // bound
    return raw - quotient * bound, quotient < blocks


def checked_scale(
    numerator: int | IntArray, denominator: int | IntArray, count: int
) -> tuple[Scale, Scale]:
    """Check a noise scale; return numerator and denominator as uint64 (D4).

    Args:
        numerator: a whole number from 1 to 2^56 - 1, or an int64 array of them, of shape (count,).
        denominator: the denominator of the scale, with the same type and range.
        count: number of draws.

    Returns:
        The numerator and the denominator, as uint64 arrays of shape () or (count,).

    Raises:
        InputError: a numerator or denominator is not an allowed number, for example 0.

    >>> checked_scale(3, 10, 5)
    (array(3, dtype=uint64), array(10, dtype=uint64))
    """
    p = _checked_scale_term("numerator of the noise scale", numerator, count)
    q = _checked_scale_term("denominator of the noise scale", denominator, count)
    return p, q


def _checked_scale_term(name: str, number: int | IntArray, count: int) -> Scale:
    """Return the checked numerator or denominator of a scale."""
    if not isinstance(number, np.ndarray):
        return np.asarray(whole(name, number, 1, SCALE_LIMIT - 1), dtype=np.uint64)
    if number.dtype != np.int64 or number.shape != (count,):
        allowed = f"a whole number or an int64 array of shape ({count},), one for each draw"
        raise refuse(name, f"{number.dtype} array of shape {number.shape}", allowed)
    for extreme in (number.min(initial=1), number.max(initial=1)):
        whole(name, int(extreme), 1, SCALE_LIMIT - 1)
    return number.astype(np.uint64)


def scale_at(scale: Scale, index: Index | slice | int) -> Scale:
    """Return the scales of the indexed draws; a single scale applies to all."""
    if scale.ndim:
        return scale[index]
    return scale


def draw_in_blocks(
    count: int, attempt: Callable[[Index | slice, int], tuple[IntArray, BoolArray]]
) -> IntArray:
    """Repeat attempts until each draw is accepted, and return the draws (D5).

    Args:
        count: number of draws, at least 0.
        attempt: a function that takes the indices of the draws to try, and how many there are. The
            function returns the values of these draws and a mask of the accepted values.

    Returns:
        int64 array of shape (count,).

    Raises:
        InputError: the count is not a whole number of at least 0.
    """
    draws = np.empty(whole("count", count, 0), dtype=np.int64)
    for start in range(0, count, _DRAWS_PER_ROUND):
        stop = min(start + _DRAWS_PER_ROUND, count)
        values, accepted = attempt(slice(start, stop), stop - start)
        draws[start:stop] = values
        pending = start + np.flatnonzero(~accepted)
        while pending.size:
            values, accepted = attempt(pending, pending.size)
            draws[pending] = values
            pending = pending[~accepted]
    return draws


Enclosure = tuple[int, int]  # integers (low, high) that enclose a real times 2^bits
_AMBIGUOUS_BYTE = 255  # the largest byte marks prefixes of several cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Coins whose probabilities are fractions from 0 to 1 (B1).

    Attributes:
        numerators: uint64, shape () or (count,); each is at most its denominator.
        denominators: uint64, shape () or (count,), from 1 to 2^56 - 1.
    """

    numerators: Scale
    denominators: Scale

    def toss(self, index: Index, entropy: Entropy) -> BoolArray:
        """Toss the coins with these indices, and return which show heads (B1)."""
        remainders = scale_at(self.numerators, index) << np.uint64(8)
        denominators = scale_at(self.denominators, index)
        digits = remainders // denominators
        drawn = random_bytes(index.size, entropy)
        heads: BoolArray = drawn < digits
        tied = np.flatnonzero(drawn == digits)
        if tied.size:  # the remainders of these fractions, times 256
            same = scale_at(denominators, tied)
            later = Ratios(
                numerators=scale_at(remainders, tied) - scale_at(digits, tied) * same,
                denominators=same,
            )
            heads[tied] = later.toss(np.arange(tied.size), entropy)
        return heads


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyReals:
    """Independent uniform reals from [0, 1), drawn digit by digit (B2).

    A binary digit is drawn only when it is needed.

    Attributes:
        leading: the first 64 digits of each, a uint64 array of shape (count,).
    """

    leading: Words
    _further: dict[int, list[int]] = field(default_factory=dict)

    def word(self, real_index: int, position: int, entropy: Entropy) -> int:
        """Return the 64 binary digits of a real that begin at digit 64 * position.

        Calls with the same arguments return the same digits.
        """
        if position == 0:
            return int(self.leading[real_index])
        further_words = self._further.setdefault(real_index, [])
        while len(further_words) < position:
            further_words.append(int(entropy.words(1)[0]))
        return further_words[position - 1]

    def toss(self, index: Index, entropy: Entropy) -> BoolArray:
        """Toss coins whose probabilities are the reals with these indices (B2).

        A toss compares the first 8 binary digits, then 64, then as many as needed.
        """
        leading = self.leading[index]
        first = random_bytes(index.size, entropy)
        digits = leading >> np.uint64(56)
        heads: BoolArray = first < digits
        tied = np.flatnonzero(first == digits)
        if tied.size:
            drawn = (digits[tied] << np.uint64(56)) | (entropy.words(tied.size) >> np.uint64(8))
            heads[tied] = drawn < leading[tied]
            for j in tied[drawn == leading[tied]]:
                heads[j] = self._below(int(index[j]), entropy)
        return heads

    def _below(self, real_index: int, entropy: Entropy) -> bool:
        """Toss a coin whose probability is the real with this index.

        The first 64 digits of the real and of the uniform number are equal (B2).
        """
        position = 1
        while (drawn := int(entropy.words(1)[0])) == (
            word := self.word(real_index, position, entropy)
        ):
            position += 1
        return drawn < word


# Numbers x_i of [0, 1]; each number is tossed as a coin: Bernoulli(x_i).
Coins: TypeAlias = Ratios | LazyReals


def toss_exp(
    coins: Coins, index: Index, entropy: Entropy, *, linear: Scale, square: bool, slots: int
) -> BoolArray:
    """Toss coins of probabilities exp(-(linear x + square x^2) / slots).

    The coins are independent. Each coin has a number x of its own (B3).

    Args:
        coins: the numbers x_i of [0, 1].
        index: the index of the number for each coin.
        entropy: the source of bits.
        linear: uint64, shape () or the shape of the index.
        square: whether the exponent has the term x^2.
        slots: a power of two of at most 256 and at least linear + square.

    Returns:
        Boolean array of the shape of the index.
    """
    odd = np.zeros(index.size, dtype=np.bool_)
    alive = np.arange(index.size)
    step = 1
    while alive.size:
        # B3b: A slot s < linear stands for x, a slot s == linear for x^2 (or for nothing), and the
        # others for 0.
        slot = random_bytes(alive.size, entropy) & np.uint8(slots - 1)
        limit = scale_at(linear, alive)
        hit = np.flatnonzero(slot <= limit if square else slot < limit)
        chosen = alive[hit]
        squared = slot[hit] == scale_at(limit, hit)
        heads = coins.toss(index[chosen], entropy)
        if square:
            second = np.flatnonzero(heads & squared)
            heads[second] = coins.toss(index[chosen[second]], entropy)
        alive = chosen[heads]
        # B3a: Bernoulli(g / step) is the product of Bernoulli(g) and Bernoulli(1 / step).
        if step > 1:
            one_in_step = Ratios(
                numerators=np.asarray(1, dtype=np.uint64),
                denominators=np.asarray(step, dtype=np.uint64),
            )
            alive = alive[one_in_step.toss(np.arange(alive.size), entropy)]
        odd[alive] ^= True
        step += 1
    return ~odd


def coin_exp(numerator: int, denominator: int, entropy: Entropy) -> bool:
    """Toss one coin with the probability exp(-numerator / denominator) (B4).

    The quotient may be any rational of at least 0.
    """
    whole_units, remainder = divmod(numerator, denominator)
    linear_unit = np.asarray(1, dtype=np.uint64)
    first = np.zeros(1, dtype=np.intp)
    for exponent in [1] * whole_units + [Fraction(remainder, denominator)]:
        x = Ratios(
            numerators=np.asarray(exponent.numerator, dtype=np.uint64),
            denominators=np.asarray(exponent.denominator, dtype=np.uint64),
        )
        if not toss_exp(x, first, entropy, linear=linear_unit, square=False, slots=1)[0]:
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """A lookup table that draws from a distribution on 0, ..., K (T1).

    The thresholds are the values of its cumulative distribution function.

    Attributes:
        cells: the cell of every 16-bit prefix of a uniform real; it is 255 if a threshold has the
            same prefix.
        leading: the first 64 binary digits of every threshold, increasing.
        enclose: a function that takes a number of bits, and returns the integers that enclose each
            threshold times 2^bits.
    """

    cells: npt.NDArray[np.uint8]
    leading: Words
    enclose: Callable[[int], list[Enclosure]]

    def draw(self, count: int, entropy: Entropy) -> Words:
        """Return ``count`` independent draws (T2).

        A draw is the number of thresholds that are at most a uniform real.
        """
        prefix = random_uint16(count, entropy)
        drawn = self.cells[prefix]
        ambiguous = np.flatnonzero(drawn == _AMBIGUOUS_BYTE)
        if ambiguous.size:
            low = entropy.words(ambiguous.size) >> np.uint64(16)
            words = (prefix[ambiguous].astype(np.uint64) << np.uint64(48)) | low
            after = np.searchsorted(self.leading, words, side="right")
            before = np.searchsorted(self.leading, words, side="left")
            drawn[ambiguous] = before
            # T3: 64 digits are equal. The next ones are drawn until they differ.
            for j in np.flatnonzero(after != before):
                drawn[ambiguous[j]] = before[j] + self._reaches(
                    int(before[j]), int(words[j]), entropy
                )
        return drawn.astype(np.uint64)

    def _reaches(self, threshold: int, word: int, entropy: Entropy) -> bool:
        """Return whether a uniform real is at least a threshold (T3)."""
        digits = word
        bits = 64
        while True:
            digits = (digits << 64) | int(entropy.words(1)[0])
            bits += 64
            low, high = self.enclose(bits)[threshold]
            if digits + 1 <= low:
                return False
            if digits >= high:
                return True


def make_cell_table(enclose: Callable[[int], list[Enclosure]]) -> CellTable:
    """Return the table of a distribution, from bounds on its thresholds (T1).

    The enclosures of a threshold prove its first 64 digits. Every 16-bit prefix is assigned its
    cell.
    """
    for bits in range(128, 1024, 64):
        digits = [(low >> (bits - 64), high >> (bits - 64)) for low, high in enclose(bits)]
        if all(low == high for low, high in digits):
            break
    else:
        raise InternalError("A table of the noise sampler could not be computed; please report it.")
    leading = np.array([low for low, _ in digits], dtype=np.uint64)
    if leading.size >= _AMBIGUOUS_BYTE or not (leading[1:] > leading[:-1]).all():
        raise InternalError(
            "A table of the noise sampler has thresholds out of order; please report it."
        )
    prefixes = leading >> np.uint64(48)
    cells = np.searchsorted(prefixes, np.arange(1 << 16, dtype=np.uint64), side="left").astype(
        np.uint8
    )
    cells[prefixes] = _AMBIGUOUS_BYTE
    return CellTable(cells=sealed_copy(cells), leading=sealed_copy(leading), enclose=enclose)


@cache
def geometric_table() -> CellTable:
    """Return the table of floor(8 E), for E exponential with mean 1 (T4).

    The table ends at 128: the thresholds are 1 - exp(-i/8), i = 1 .. 128.
    """

    def enclose(bits: int) -> list[Enclosure]:
        """Return integers that enclose each threshold times 2^bits."""
        work = bits + 32
        ratio = power = _enclose_exp_of_minus_inverse(8, work)
        thresholds = []
        for _ in range(128):
            thresholds.append(((1 << bits) + (-power[1] >> 32), (1 << bits) - (power[0] >> 32)))
            power = _enclose_product(power, ratio, work)
        return thresholds

    return make_cell_table(enclose)


@cache
def half_normal_table(parts_per_sigma: int) -> CellTable:
    """Return the table of the discrete half-normal distribution (T5).

    Let ``parts`` be ``parts_per_sigma``. P(k) is proportional to exp(-k^2 / (2 parts^2)) for k = 0,
    1, ..., and is cut off at 8 ``parts``.
    """

    def enclose(bits: int) -> list[Enclosure]:
        """Return integers that enclose each threshold times 2^bits."""
        work = bits + 32
        ratio = _enclose_exp_of_minus_inverse(2 * parts_per_sigma * parts_per_sigma, work)
        step = ratio
        ratio_squared = _enclose_product(ratio, ratio, work)
        weight: Enclosure = (1 << work, 1 << work)
        sums: list[Enclosure] = [(0, 0)]
        # T5: From here on, a weight is at most half of the previous weight.
        while len(sums) <= parts_per_sigma * parts_per_sigma or weight[1] > 1:
            sums.append((sums[-1][0] + weight[0], sums[-1][1] + weight[1]))
            weight = _enclose_product(weight, step, work)
            step = _enclose_product(step, ratio_squared, work)
        total = (sums[-1][0], sums[-1][1] + 2 * weight[1])
        return [
            ((low << bits) // total[1], -((-high << bits) // total[0]))
            for low, high in sums[1 : 8 * parts_per_sigma + 1]
        ]

    return make_cell_table(enclose)


def _enclose_exp_of_minus_inverse(divisor: int, bits: int) -> Enclosure:
    """Return bounds on exp(-1/divisor) times 2^bits (T6).

    The partial sums of the alternating series are alternately above and below the value.
    """
    term = above = Fraction(1)
    below = Fraction(0)
    order = 0
    while term.numerator << bits > term.denominator:
        order += 1
        term *= Fraction(1, divisor * order)
        if order % 2:
            below = above - term
        else:
            above = below + term
    return (below.numerator << bits) // below.denominator, -(
        (-above.numerator << bits) // above.denominator
    )


def _enclose_product(left: Enclosure, right: Enclosure, bits: int) -> Enclosure:
    """Return bounds on the product of two reals of at least 0 (T6)."""
    return left[0] * right[0] >> bits, -(-left[1] * right[1] >> bits)
