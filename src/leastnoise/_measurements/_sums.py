"""Sums of fractions, rounded up where they would be long (M3 of PROOFS-cost.md). Trusted: costs are such sums."""

import math
from collections.abc import Iterable
from fractions import Fraction

# Fractions whose sum would have a longer denominator are rounded up to a multiple of 2^-GUARD_BITS each: more loss is claimed, never less.
EXACT_BITS = 512
GUARD_BITS = 128


def sum_up(terms: Iterable[tuple[Fraction | int, Fraction]]) -> Fraction:
    """Sum count * value exactly if the sum is a short fraction, else with each value rounded up (M3).

    Args:
        terms: pairs of a multiplicity and a value, both at least 0.

    >>> sum_up([(2, Fraction(1, 3)), (1, Fraction(1, 3))])
    Fraction(1, 1)
    """
    pairs = list(terms)
    exact = Fraction(0)
    for count, value in pairs:
        exact += count * value
        if exact.denominator.bit_length() > EXACT_BITS:
            break
    else:
        return exact
    return Fraction(sum(math.ceil(count * value * (1 << GUARD_BITS)) for count, value in pairs), 1 << GUARD_BITS)
