"""Private thresholds for truncated sums: what they have in common, the sparse vector technique and the recursive mechanism.

A sum of amounts between 0 and a public upper bound is measured with less noise when each amount is cut at a limit; how low the limit may
be depends on the data, so it is paid for. The labels (H1 ...) refer to PROOFS-threshold.md beside this file. Limits and amounts are whole
units. Each call draws all of its noise anew.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._check import Exact, exact, exact_positive, refuse, whole
from leastnoise._check.arrays import IntArray
from leastnoise._kernel._entropy import Entropy
from leastnoise._kernel._noise import discrete_laplace

_MOST_AMOUNT = 2**53 - 1
_MOST_STEPS = 2**22
_SCALE_STEPS = 256  # scales are rounded up to multiples of 1 / 256
_LARGEST_SCALE = 2**50


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit for amounts, chosen privately; public.

    Attributes:
        limit: the limit in units, from 1 to the public upper bound.
        spent: the pure epsilon that choosing it has cost, for the distance it was asked for.
        mechanism: how it was chosen.
    """

    limit: int
    spent: Fraction
    mechanism: str


def geometric_candidates(start: int, ratio: Exact, most: int) -> tuple[int, ...]:
    """Limits ``start * ratio^i`` below the public upper bound, rounded up, and the bound itself.

    Args:
        start: the first, from 1 to ``most``, in units.
        ratio: above 1.
        most: the public upper bound, in units: without it a search may not end.

    Raises:
        InputError: an argument is not of this kind, or there would be more than 2^22 of them.

    >>> geometric_candidates(50_000, "1.2", 100_000)
    (50000, 60000, 72000, 86400, 100000)
    """
    bound = whole("most", most, 1, _MOST_AMOUNT)
    first, step = whole("start", start, 1, bound), exact("ratio", ratio)
    if not step > 1 or math.log(bound / first) > _MOST_STEPS * math.log1p(float(step) - 1):
        raise refuse("ratio", ratio, "a number above 1, not so close to it that there are more than 2^22 candidates")
    found, last = [first], Fraction(first)
    while (last := last * step) < bound:
        last = last.limit_denominator(2**32)
        if math.ceil(last) > found[-1]:
            found.append(math.ceil(last))
    return tuple(dict.fromkeys(min(one, bound) for one in [*found, bound]))


def read_candidates(candidates: Sequence[int], most: int) -> tuple[int, ...]:
    """Check public limits: whole numbers above 0, increasing, the last of them the upper bound.

    >>> read_candidates([10, 20], 20)
    (10, 20)
    """
    bound = whole("most", most, 1, _MOST_AMOUNT)
    found = tuple(whole("a candidate", one, 1, bound) for one in candidates)
    if not (1 <= len(found) <= _MOST_STEPS and found[-1] == bound and all(a < b for a, b in itertools.pairwise(found))):
        raise refuse("candidates", list(found[:8]), f"increasing limits that end with the public upper bound, {bound}")
    return found


def read_amounts(values: IntArray, most: int) -> IntArray:
    """Check the type, which is public, and cut the amounts, which are private, to 0 and the bound; sorted (H1).

    Raises:
        InputError: not an int64 vector. No amount makes it fail.

    >>> read_amounts(np.array([7, -2, 99]), 10).tolist()
    [0, 7, 10]
    """
    if not (isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1):
        got = f"{values.dtype} array of {values.ndim} dimensions" if isinstance(values, np.ndarray) else type(values).__name__
        raise refuse("The amounts", got, "an int64 array with one entry a row")
    return np.sort(np.clip(values, 0, most))


def scale_up(sensitivity: int, epsilon: Fraction) -> tuple[int, int]:
    """``sensitivity / epsilon`` as numerator and denominator, rounded up.

    Raises:
        InputError: so much noise that exact arithmetic might not hold it.

    >>> scale_up(3, Fraction(1, 1000))
    (768000, 256)
    """
    numerator = -(-sensitivity * _SCALE_STEPS * epsilon.denominator // epsilon.numerator)
    if not numerator <= _LARGEST_SCALE * _SCALE_STEPS:
        raise refuse("epsilon", str(epsilon), f"larger: noise of {sensitivity / float(epsilon):.2g} is beyond exact arithmetic")
    return numerator, _SCALE_STEPS


def above(amounts: IntArray, limits: IntArray) -> IntArray:
    """Number of amounts above each limit; the amounts are sorted.

    >>> above(np.array([1, 5, 5, 9]), np.array([0, 5, 9])).tolist()
    [4, 1, 0]
    """
    return np.asarray(len(amounts) - np.searchsorted(amounts, limits, side="right"), dtype=np.int64)


def sparse_vector(
    values: IntArray,
    epsilon: Exact,
    entropy: Entropy,
    *,
    candidates: Sequence[int],
    most: int,
    kept: Exact = "0.998",
    share: Exact = "1/2",
    distance: int = 1,
) -> Threshold:
    """The first limit that seems to leave a part ``kept`` of the rows as they are: AboveThreshold.

    Args:
        values: the amounts in units, int64 of shape (rows,); private, and so is the number of rows.
        epsilon: what the choice may cost, for data sets that differ by ``distance`` rows.
        entropy: the source of the noise.
        candidates: public increasing limits; the last is ``most``, where the search stops if it has not before.
        most: the public upper bound of an amount.
        kept: the part of the rows at or below the limit that is asked for, between 0 and 1, a fraction of terms below 2^16.
        share: of epsilon for the noise of the comparison's threshold; the rest is for the queries.
        distance: how many rows neighbours differ by: k for add/remove of a unit of k rows, 2 k for replace.

    Returns:
        The limit.

    Raises:
        InputError: an argument is not of this kind; never because of a row.

    Guarantees:
        epsilon-DP (theorem V of PROOFS-threshold.md). The noisy numbers are not released.

    Source:
        Dwork and Roth 2014, algorithm 1; Wu et al., "Answering Summation Queries for Numerical Attributes under Differential Privacy",
        with the count of rows made part of the query.

    >>> from leastnoise._kernel import SeededEntropy
    >>> values = np.repeat([30, 500], [9990, 10])
    >>> sparse_vector(values, 2, SeededEntropy(1), candidates=(10, 20, 40, 80, 1000), most=1000, kept="0.99").limit
    40
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)  # H2: group privacy
    limits = read_candidates(candidates, most)
    part, first = exact("kept", kept), exact_positive("share", share)
    if not (0 < part < 1 and part.denominator < 2**16):
        raise refuse("kept", kept, "a fraction between 0 and 1 with a denominator below 2^16")
    if not first < 1:
        raise refuse("share", share, "a number between 0 and 1")
    a, b = part.as_integer_ratio()
    amounts = read_amounts(values, limits[-1])
    # V1: b #{w <= u} - a |D|; one row changes it by b - a or by -a, whatever the number of rows
    queries = (b - a) * len(amounts) - b * above(amounts, np.array(limits[:-1], dtype=np.int64))
    bar = int(discrete_laplace(*scale_up(max(a, b - a), each * first), 1, entropy)[0])  # V2
    noisy = queries + discrete_laplace(*scale_up(b, each * (1 - first)), len(queries), entropy)  # V3
    hits = np.flatnonzero(noisy >= bar)
    return Threshold(limit=limits[int(hits[0])] if hits.size else limits[-1], spent=spent, mechanism="sparse vector")  # V4


def recursive(
    values: IntArray,
    epsilon: Exact,
    entropy: Entropy,
    *,
    start: int,
    most: int,
    step: Exact = "2/5",
    margin: Exact = "1/2",
    distance: int = 1,
) -> Threshold:
    """The limit of the recursive mechanism: the least of ``start e^(i beta)`` that at most i amounts exceed, with noise on i.

    Args:
        values: the amounts in units, int64 of shape (rows,); private.
        epsilon: what the choice may cost, for data sets that differ by ``distance`` rows.
        entropy: the source of the noise.
        start: a public limit that is surely not too high.
        most: the public upper bound of an amount.
        step: beta as a multiple of the epsilon of one row, that of this choice and of no other.
        margin: mu, by how much the logarithm of the limit is raised at the end, at least 0.
        distance: how many rows neighbours differ by.

    Returns:
        The limit, at most ``most``.

    Raises:
        InputError: an argument is not of this kind, or a step so small that there are more than 2^22 of them; never because of a row.

    Guarantees:
        epsilon-DP (theorem R of PROOFS-threshold.md): i changes by at most 1 with a row, and what is made of the noisy i is
        post-processing.

    Source:
        Chen and Zhou, SIGMOD 2013, with the order statistics as bounding sequence; Wu et al., algorithm 3.

    >>> from leastnoise._kernel import SeededEntropy
    >>> values = np.repeat([30, 500], [9990, 10])
    >>> recursive(values, "1/10", SeededEntropy(1), start=20, most=1000).limit
    80
    """
    spent = exact_positive("epsilon", epsilon)
    each = spent / whole("distance", distance, 1)
    bound = whole("most", most, 1, _MOST_AMOUNT)
    first = whole("start", start, 1, bound)
    beta, raised = float(exact_positive("step", step) * each), exact("margin", margin)
    if not raised >= 0:
        raise refuse("margin", margin, "a number of at least 0")
    room = math.log(bound / first)
    if not room <= beta * _MOST_STEPS:
        raise refuse("step", step, "larger: more than 2^22 steps lead to the upper bound", "Spend more, or start higher.")
    # R1: any public non-decreasing sequence that ends with the bound would do, so rounding does no harm
    steps = np.arange(math.ceil(room / beta) + 1, dtype=np.int64)
    sequence = np.minimum(np.floor(first * np.exp(np.minimum(beta * steps, room))), bound).astype(np.int64)
    sequence = np.maximum.accumulate(sequence)
    sequence[-1] = bound
    place = int(np.argmax(above(read_amounts(values, bound), sequence) <= steps))  # R2
    noisy = place + int(discrete_laplace(*scale_up(1, each), 1, entropy)[0])  # R3
    limit = math.ceil(first * math.exp(max(-room - 700, min(float(raised) + beta * noisy, room))))
    return Threshold(limit=max(1, min(limit, bound)), spent=spent, mechanism="recursive")
