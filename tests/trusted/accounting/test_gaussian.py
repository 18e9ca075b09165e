"""The analytic Gaussian mechanism against mpmath with 120 digits: safe and tight."""

import decimal
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from leastnoise._trusted.accounting import _deltas, gaussian_is_private, gaussian_mu_squared
from leastnoise._trusted.accounting._deltas import (
    _enclose_delta,
    _enclose_mills_ratio,
    _enclose_pi,
    _mills_by_fraction,
    _mills_by_series,
    gaussian_delta,
    rounding_contexts,
)
from leastnoise._trusted.check import InputError

EPSILONS = ["0", "1e-6", "0.01", "1/3", "1", "3", "10", "50"]
SQUARES = ["1e-12", "1e-4", "0.01", "0.0718", "1/3", "1", "2", "7", "20", "400"]
CASES = [(Fraction(e), Fraction(m)) for e in EPSILONS for m in SQUARES]


def delta_of_balle_and_wang(epsilon, square, digits=120):
    """Evaluate the formula of Balle and Wang; fewer than 30 of its digits cancel here."""
    with mp.workdps(digits):
        mu = mp.sqrt(mp.mpf(square.numerator) / square.denominator)
        eps = mp.mpf(epsilon.numerator) / epsilon.denominator
        return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


TINY = (Fraction(1, 10**90), Fraction(1, 10**180), 400)  # needs more digits, and gets them


@pytest.mark.parametrize(("epsilon", "square", "digits"), [*((*case, 120) for case in CASES), TINY])
def test_delta_is_an_upper_bound_within_1e_15(epsilon, square, digits):
    exponent = float((epsilon - square / 2) ** 2 / square / 2)
    computed = gaussian_delta(epsilon, square)
    if exponent > 2000:
        with mp.workdps(30):
            assert mp.log(mp.mpf(computed.denominator)) > min(exponent, 6900)
    else:
        with mp.workdps(digits):
            ratio = (
                mp.mpf(computed.numerator)
                / computed.denominator
                / delta_of_balle_and_wang(epsilon, square, digits)
            )
            assert 1 <= ratio <= 1 + mp.mpf(10) ** -15


DELTAS = ["1e-300", "1e-30", "1e-12", "1e-9", "1e-6", "1e-5", "0.01", "1/3", "0.9"]


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (e, d)
        for row, e in enumerate(EPSILONS[1:])
        for column, d in enumerate(DELTAS)
        if (row + column) % 5 == 0
    ],
)
def test_mu_squared_is_safe_and_within_1e_12(epsilon, delta):
    eps = Fraction(epsilon)
    limit = Fraction(delta)
    square = gaussian_mu_squared(eps, limit)
    with mp.workdps(120):
        target = mp.mpf(limit.numerator) / limit.denominator
        assert delta_of_balle_and_wang(eps, square) <= target
        assert delta_of_balle_and_wang(eps, square * (1 + Fraction(1, 10**12))) > target
    assert square.denominator & (square.denominator - 1) == 0
    assert square.numerator.bit_length() <= 44


@settings(max_examples=40)
@given(st.fractions(0, 20), st.fractions(Fraction(1, 1000), 30))
def test_decision_agrees_with_the_bound(epsilon, square):
    delta = gaussian_delta(epsilon, square)
    assert gaussian_is_private(epsilon, square, delta)
    assert not gaussian_is_private(epsilon, square, delta * (1 - Fraction(1, 10**14)))


@pytest.mark.parametrize("digits", [10, 40, 90])
@pytest.mark.parametrize("x", ["0", "1e-9", "0.3", "1", "2.5", "6.3", "9.4", "12"])
def test_mills_ratio_is_enclosed_by_both_ways(x, digits):
    at = decimal.Decimal(x)
    way = rounding_contexts(digits)
    with mp.workdps(200):
        true = mp.ncdf(-mp.mpf(x)) / mp.npdf(mp.mpf(x))
        for ratio in (_mills_by_series, _mills_by_fraction) if at >= 1 else (_mills_by_series,):
            low, high = ratio(at, way)
            assert mp.mpf(str(low)) <= true <= mp.mpf(str(high))
            if (ratio is _mills_by_series) == (at * at < digits):  # where it is the one in use
                assert mp.mpf(str(high)) / mp.mpf(str(low)) - 1 < mp.mpf(10) ** (2 - digits)


@pytest.mark.parametrize("digits", [3, 4, 5, 6])
def test_wrong_rounding_direction_shows_at_few_digits(digits):
    """Round Mills' ratio and a square root with few digits, in both directions."""
    way = rounding_contexts(digits)
    for k in range(1, 400, 3):
        with mp.workdps(30):
            for x, enclose in (
                (decimal.Decimal(k) / 10, _mills_by_fraction),
                (Fraction(k, 7), _enclose_mills_ratio),
            ):
                at = mp.sqrt(mp.mpf(k) / 7) if isinstance(x, Fraction) else mp.mpf(str(x))
                low, high = enclose(x, way)
                true = mp.exp(at * at / 2) * mp.erfc(at / mp.sqrt(2)) * mp.sqrt(mp.pi / 2)
                assert mp.mpf(str(low)) <= true <= mp.mpf(str(high))


@pytest.mark.parametrize("digits", [1, 5, 40, 333])
def test_pi_is_enclosed(digits):
    low, high = _enclose_pi(digits)
    with mp.workdps(digits + 50):
        assert (
            mp.mpf(low.numerator) / low.denominator
            < mp.pi
            < mp.mpf(high.numerator) / high.denominator
        )
    assert high - low < Fraction(1, 10 ** (digits + 4))


@pytest.mark.parametrize("digits", [5, 8, 12, 20, 40])
@pytest.mark.parametrize(
    ("epsilon", "square"),
    [("1", "0.1"), ("0", "1"), ("1", "2"), ("1", "2.00000001"), ("3", "100"), ("20", "1")],
)
def test_delta_is_enclosed_at_any_number_of_digits(epsilon, square, digits):
    low, high = _enclose_delta(Fraction(epsilon), Fraction(square), digits)
    with mp.workdps(120):
        assert (
            mp.mpf(str(low))
            <= delta_of_balle_and_wang(Fraction(epsilon), Fraction(square), 250)
            <= mp.mpf(str(high))
        )


def test_callers_decimal_context_has_no_influence():
    plain = gaussian_delta(1, "0.0123")
    with decimal.localcontext(
        decimal.Context(
            prec=3,
            rounding=decimal.ROUND_DOWN,
            Emax=9,
            Emin=-9,
            traps=list(decimal.Context().flags),
        )
    ):
        assert gaussian_delta(1, "0.0123") == plain


@pytest.mark.parametrize(
    ("epsilon", "square"), [("10500", "20000"), ("9000", "20000"), ("7100", "14000")]
)
def test_large_epsilon_delta_is_still_computed(epsilon, square):
    """Only the first of the two terms of the formula matters there."""
    true = delta_of_balle_and_wang(Fraction(epsilon), Fraction(square), 60)
    with mp.workdps(50):
        computed = gaussian_delta(epsilon, square)
        assert 1 <= mp.mpf(computed.numerator) / computed.denominator / true <= 1 + mp.mpf("1e-14")
        assert not gaussian_is_private(epsilon, square, Fraction(str(true * mp.mpf("0.999"))))
        assert gaussian_is_private(epsilon, square, Fraction(str(true * mp.mpf("1.001"))))


def test_hopelessly_small_and_large_deltas():
    assert gaussian_delta(1, "1e-20") == Fraction(1, 10**3000)
    assert gaussian_delta(1, 10**6) == 1
    assert gaussian_is_private(1, "1e-20", Fraction(1, 10**2999))
    assert not gaussian_is_private(1, "1e-20", Fraction(1, 10**3001))
    assert not gaussian_is_private(1, 10**6, Fraction(10**9 - 1, 10**9))


def test_undecided_digits_are_not_private(monkeypatch):
    monkeypatch.setattr(
        _deltas, "_enclose_delta", lambda *_given: (decimal.Decimal(0), decimal.Decimal(1))
    )
    assert not gaussian_is_private(1, "0.0718", "1e-5")


@pytest.mark.parametrize("function", [gaussian_delta, gaussian_mu_squared])
@pytest.mark.parametrize("epsilon", [math.nan, -1, "x"])
def test_unusable_epsilons_are_refused(function, epsilon):
    with pytest.raises(InputError, match="epsilon must be"):
        function(epsilon, "1e-9")


def test_mu_squared_of_0_is_refused():
    with pytest.raises(InputError, match="mu_squared must be a number above 0; got 0"):
        gaussian_delta(1, 0)


@pytest.mark.parametrize("delta", [0, 1, -1, Fraction(1, 10**1001)], ids=["0", "1", "-1", "tiny"])
def test_unusable_deltas_are_refused(delta):
    message = "delta must be at least 1e-1000 and below 1 for Gaussian noise; got"
    with pytest.raises(InputError, match=message):
        gaussian_mu_squared(1, delta)
