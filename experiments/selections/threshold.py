"""Private thresholds of sums: the sparse vector technique and the recursive mechanism.

A sum of amounts between 0 and a public upper bound needs less noise when each amount is clipped at
a limit. The best limit depends on the data, so its choice is paid for. The labels (H1 ...) refer to
PROOFS-threshold.md in this folder. Limits and amounts are whole units below 2^53. Neighbours differ
by one added or removed row. Each call draws all of its noise anew.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from leastnoise._trusted.check import Exact, exact, refuse
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel._entropy import Entropy
from leastnoise._trusted.kernel._noise import discrete_laplace

_MOST_STEPS = 2**22
_SCALE_STEPS = 256  # scales are rounded up to multiples of 1 / 256
_LARGEST_SCALE = 2**50
_STEP = Fraction(2, 5)  # the paper's beta over epsilon
_MARGIN = 0.5  # the paper's mu


def geometric_candidates(start: int, ratio: Exact, maximum: int) -> tuple[int, ...]:
    """Return the limits ``start * ratio^i`` below the public upper bound, and the bound.

    Limits are rounded up. Without the bound, a search may not end.

    >>> geometric_candidates(50_000, "1.2", 100_000)
    (50000, 60000, 72000, 86400, 100000)
    """
    limits = [start]
    last = Fraction(start)
    step = exact("ratio", ratio)
    while (last := last * step) < maximum:
        last = last.limit_denominator(2**32)
        limits.append(math.ceil(last))
    return tuple(dict.fromkeys(min(limit, maximum) for limit in [*limits, maximum]))


def sorted_amounts(values: IntArray, maximum: int) -> IntArray:
    """Clip private amounts to 0 and the bound, row by row, and sort them (H1).

    >>> sorted_amounts(np.array([7, -2, 99]), 10).tolist()
    [0, 7, 10]
    """
    return np.sort(np.clip(values, 0, maximum))


def scale_up(sensitivity: int, epsilon: Fraction) -> tuple[int, int]:
    """Return ``sensitivity / epsilon`` as numerator and denominator, rounded up.

    Raises:
        InputError: so much noise that exact arithmetic might not hold it.

    >>> scale_up(3, Fraction(1, 1000))
    (768000, 256)
    """
    numerator = -(-sensitivity * _SCALE_STEPS * epsilon.denominator // epsilon.numerator)
    if not numerator <= _LARGEST_SCALE * _SCALE_STEPS:
        raise refuse(
            "epsilon",
            str(epsilon),
            f"larger: noise of {sensitivity / float(epsilon):.2g} is beyond exact arithmetic",
        )
    return numerator, _SCALE_STEPS


def above(amounts: IntArray, limits: IntArray) -> IntArray:
    """Count the amounts above each limit; the amounts are sorted.

    >>> above(np.array([1, 5, 5, 9]), np.array([0, 5, 9])).tolist()
    [4, 1, 0]
    """
    return np.asarray(len(amounts) - np.searchsorted(amounts, limits, side="right"), dtype=np.int64)


def sparse_vector(
    values: IntArray,
    epsilon: Fraction,
    entropy: Entropy,
    candidates: Sequence[int],
    kept_share: Fraction = Fraction(499, 500),
) -> int:
    """Choose the first limit that does not seem to clip a share of the rows.

    This is AboveThreshold.

    Args:
        values: the amounts in units, int64 of shape (rows,); private, and so is the number of rows.
        epsilon: cost of the choice; half of it is for the threshold of the comparisons, half for
            the queries.
        entropy: the source of the noise.
        candidates: public increasing limits from 1. The last one is the public upper bound of an
            amount; the search stops there at the latest.
        kept_share: the required share of the rows at or below the limit, a fraction between 0 and 1
            of terms below 2^16.

    Returns:
        The limit.

    Raises:
        InputError: too small an epsilon; never because of a row.

    Guarantees:
        epsilon-DP (theorem V of PROOFS-threshold.md). The noisy numbers are not released.

    Source:
        Dwork and Roth 2014, algorithm 1; Wu et al., "Answering Summation Queries for Numerical
        Attributes under Differential Privacy", with the count of rows made part of the query.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> values = np.repeat([30, 500], [9990, 10])
    >>> sparse_vector(
    ...     values, Fraction(2), SeededEntropy(1), (10, 20, 40, 80, 1000), Fraction("0.99")
    ... )
    40
    """
    a, b = kept_share.as_integer_ratio()
    amounts = sorted_amounts(values, candidates[-1])
    # V1: This is b #{w <= u} - a |D|. One row changes it by b - a or by -a, for any number of
    # rows.
    queries = (b - a) * len(amounts) - b * above(amounts, np.array(candidates[:-1], dtype=np.int64))
    bar = int(discrete_laplace(*scale_up(max(a, b - a), epsilon / 2), 1, entropy)[0])  # V2
    noisy = queries + discrete_laplace(*scale_up(b, epsilon / 2), len(queries), entropy)  # V3
    # V4: The function `argmax` finds the first True.
    return candidates[int(np.argmax(np.append(noisy >= bar, True)))]


def recursive(
    values: IntArray, epsilon: Fraction, entropy: Entropy, start: int, maximum: int
) -> int:
    """Choose the limit of the recursive mechanism.

    It is the smallest ``start e^(i beta)`` that at most i amounts exceed, with noise on i.

    Args:
        values: the amounts in units, int64 of shape (rows,); private.
        epsilon: cost of the choice; beta is 2/5 of it.
        entropy: the source of the noise.
        start: a public limit that is surely not too high, from 1 to ``maximum``.
        maximum: the public upper bound of an amount.

    Returns:
        The limit, from 1 to ``maximum``; its logarithm was raised by 1/2 at the end.

    Raises:
        InputError: so small an epsilon that there are more than 2^22 steps; never because of a row.

    Guarantees:
        epsilon-DP (theorem R of PROOFS-threshold.md): i changes by at most 1 with a row, and what
        is made of the noisy i is post-processing.

    Source:
        Chen and Zhou, SIGMOD 2013, with the order statistics as bounding sequence; Wu et al.,
        algorithm 3.

    >>> from leastnoise._trusted.kernel import SeededEntropy
    >>> values = np.repeat([30, 500], [9990, 10])
    >>> recursive(values, Fraction(1, 10), SeededEntropy(1), start=20, maximum=1000)
    80
    """
    beta = float(_STEP * epsilon)
    room = math.log(maximum / start)
    if not room <= beta * _MOST_STEPS:
        raise refuse(
            "epsilon",
            str(epsilon),
            "larger: more than 2^22 steps lead to the upper bound",
            "Spend more, or start higher.",
        )
    # R1: Any public non-decreasing sequence that ends with the bound would do, so rounding does no
    # harm.
    steps = np.arange(math.ceil(room / beta) + 1, dtype=np.int64)
    sequence = np.minimum(np.floor(start * np.exp(np.minimum(beta * steps, room))), maximum).astype(
        np.int64
    )
    sequence = np.maximum.accumulate(sequence)
    sequence[-1] = maximum
    index = int(np.argmax(above(sorted_amounts(values, maximum), sequence) <= steps))  # R2
    noisy = index + int(discrete_laplace(*scale_up(1, epsilon), 1, entropy)[0])  # R3
    limit = math.ceil(start * math.exp(max(-room - 700, min(_MARGIN + beta * noisy, room))))
    return max(1, min(limit, maximum))
