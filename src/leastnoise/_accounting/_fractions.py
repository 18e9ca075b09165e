"""Exact fractions as text for files and for people, and short fractions from long ones.

A file holds every fraction as ``"p/q"``, never as a float. What is read back is checked character by character, so that a damaged file is
refused and not guessed at.
"""

import re
from decimal import Context, Decimal, Inexact
from fractions import Fraction

from leastnoise._check import MOST_DIGITS, Exact, InputError, exact, refuse

MAX_DIGITS = MOST_DIGITS
_LIMIT = 10**MAX_DIGITS
_TEXT = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?")


def short_exact(name: str, value: Exact) -> Fraction:
    """Read a number exactly, and refuse one that needs more than 1000 digits above or below the fraction bar.

    >>> short_exact("epsilon", "0.1")
    Fraction(1, 10)
    """
    number = exact(name, value)
    if not (abs(number.numerator) < _LIMIT and number.denominator < _LIMIT):
        raise InputError(
            f"{name} must be a fraction of two whole numbers of at most {MAX_DIGITS} digits each; got a longer one. Use fewer digits."
        )
    return number


def fraction_to_text(name: str, value: Fraction) -> str:
    """Write a fraction of at least zero as ``"p/q"``, or ``"p"`` if it is whole.

    Args:
        name: what the number is, for the message.
        value: a fraction of at least zero.

    Raises:
        InputError: the fraction is negative, or too long to be read back.

    >>> fraction_to_text("epsilon", Fraction(1, 3))
    '1/3'
    """
    if not value >= 0:
        raise InputError(f"{name} must be at least 0 to be written to a file; got a negative fraction.")
    return str(short_exact(name, value))


def fraction_from_text(name: str, text: object) -> Fraction:
    """Read what `fraction_to_text` wrote, and nothing else.

    Raises:
        InputError: not a text, another notation, a zero denominator, or too long.

    >>> fraction_from_text("epsilon", "1/3")
    Fraction(1, 3)
    """
    if not isinstance(text, str) or len(text) > 2 * MAX_DIGITS + 1 or not _TEXT.fullmatch(text):
        raise refuse(name, text, "a text such as '1/3' or '2'", "The file is damaged, or not of this package.")
    return short_exact(name, Fraction(text))


def readable(value: Fraction) -> str:
    """Write a fraction for people: a short decimal if that is exact, a short ``p/q``, or else six digits and the word "about".

    >>> readable(Fraction(1, 8)), readable(Fraction(1, 3)), readable(Fraction(2**70 + 1, 2**71))
    ('0.125', '1/3', 'about 0.500000')
    """
    context = Context(prec=12)
    decimal = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    if not context.flags[Inexact]:
        return format(decimal, "f") if Fraction(1, 10**5) <= abs(value) < 10**14 else str(decimal).lower()
    if value.numerator.bit_length() + value.denominator.bit_length() <= 40:
        return f"{value.numerator}/{value.denominator}"
    return "about " + str(Context(prec=6).divide(Decimal(value.numerator), Decimal(value.denominator))).lower()


def round_up(value: Fraction, bits: int = 128) -> Fraction:
    """Give a short fraction that is not below a long one: a dyadic rational with ``bits`` significant bits.

    A fraction whose denominator has at most 64 bits is given back as it is, so that three times 1/3 is 1.

    Args:
        value: a fraction of at least zero, for instance a cost summed over many scales.
        bits: significant bits of the result, at least 1.

    Returns:
        A fraction in ``[value, value * (1 + 2**(1 - bits))]``.

    Guarantees:
        Never below ``value``, so that a cost that went through it is not understated.

    >>> round_up(Fraction(1, 3)), round_up(Fraction(1, 3**60), bits=4) == Fraction(15, 2**99)
    (Fraction(1, 3), True)
    """
    if value.denominator.bit_length() <= 64:
        return value
    shift = bits - (value.numerator.bit_length() - value.denominator.bit_length())
    scaled = value * Fraction(2) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift
