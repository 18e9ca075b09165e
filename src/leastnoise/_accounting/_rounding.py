"""Decimal arithmetic with directed rounding: every number is a pair (low, high) with the true value between.

Operations of `decimal` round as their context says; its ``exp``, ``ln`` and ``sqrt`` round to nearest, so that one step down or up encloses
them.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

Between = tuple[Decimal, Decimal]

# No delta below this is told apart from it: exp(-7000) is below 1e-3040.
LEAST_DELTA = Fraction(1, 10**3000)
HOPELESS = 7000


@dataclass(frozen=True, slots=True)
class Rounding:
    """Two contexts of the same number of digits, one that rounds down and one that rounds up.

    >>> ways = rounding(5)
    >>> ways.fraction(Fraction(1, 3))
    (Decimal('0.33333'), Decimal('0.33334'))
    """

    digits: int
    down: Context
    up: Context

    def fraction(self, value: Fraction) -> Between:
        """Enclose a fraction.

        >>> rounding(3).fraction(Fraction(-2, 3))
        (Decimal('-0.667'), Decimal('-0.666'))
        """
        top, bottom = Decimal(value.numerator), Decimal(value.denominator)
        return self.down.divide(top, bottom), self.up.divide(top, bottom)

    def sqrt(self, value: Fraction) -> Between:
        """Enclose the square root of a fraction of at least zero.

        >>> rounding(3).sqrt(Fraction(2))
        (Decimal('1.40'), Decimal('1.42'))
        """
        if value == 0:
            return Decimal(0), Decimal(0)
        low, high = self.fraction(value)
        return self.down.next_minus(self.down.sqrt(low)), self.up.next_plus(self.up.sqrt(high))

    def exp(self, value: Fraction) -> Between:
        """Enclose the exponential of a fraction.

        >>> rounding(3).exp(Fraction(1))
        (Decimal('2.71'), Decimal('2.73'))
        """
        low, high = self.fraction(value)
        return self.down.next_minus(self.down.exp(low)), self.up.next_plus(self.up.exp(high))

    def ln(self, value: Fraction) -> Between:
        """Enclose the natural logarithm of a fraction above zero.

        >>> rounding(3).ln(Fraction(2))
        (Decimal('0.692'), Decimal('0.694'))
        """
        low, high = self.fraction(value)
        return self.down.next_minus(self.down.ln(low)), self.up.next_plus(self.up.ln(high))


def rounding(digits: int) -> Rounding:
    """Make the two contexts, with exponents so wide that nothing the accounting computes underflows.

    >>> rounding(7).digits
    7
    """

    def context(mode: str) -> Context:
        traps = [InvalidOperation, DivisionByZero, Overflow]
        return Context(prec=digits, rounding=mode, Emin=MIN_EMIN, Emax=MAX_EMAX, capitals=1, clamp=0, flags=[], traps=traps)

    return Rounding(digits, context(ROUND_FLOOR), context(ROUND_CEILING))


def short_upper(value: Decimal) -> Fraction:
    """Round up to 17 significant digits, and to at least 1e-3000: a probability to be shown and stored.

    >>> short_upper(Decimal("0.123456789012345678"))
    Fraction(1543209862654321, 12500000000000000)
    """
    short = rounding(17).up.plus(value)
    return max(Fraction(short), LEAST_DELTA) if short.adjusted() >= -3001 else LEAST_DELTA
