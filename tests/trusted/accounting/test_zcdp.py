"""The conversion from zCDP: delta equals the infimum by mpmath, and is never below exact values.

The conversions to delta, epsilon and rho agree.
"""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from leastnoise._fitting import largest_accepted, zcdp_epsilon
from leastnoise._trusted.accounting import ApproxDP, ConcentratedCost, covers, zcdp_delta
from leastnoise._trusted.check import InputError


def log_bound(rho, epsilon, beta):
    """Return the log of the bound of Canonne, Kamath and Steinke (2020), for a = 1 + beta.

    exp((a-1)(a rho - eps)) (1-1/a)^a / (a-1)
    """
    alpha = 1 + beta
    cost = mp.mpf(rho.numerator) / rho.denominator
    eps = mp.mpf(epsilon.numerator) / epsilon.denominator
    return beta * (alpha * cost - eps) + alpha * mp.log(1 - 1 / alpha) - mp.log(beta)


def infimum(rho, epsilon):
    """Minimise over a refined grid of log(beta), another search than the package has."""
    low = mp.mpf(-30)
    high = mp.mpf(30)
    for _ in range(30):  # within 1e-16 of the place, and of the value the square of that
        points = [low + (high - low) * k / 8 for k in range(9)]
        best = min(range(9), key=lambda k: log_bound(rho, epsilon, mp.exp(points[k])))
        low = points[max(0, best - 1)]
        high = points[min(8, best + 1)]
    return log_bound(rho, epsilon, mp.exp((low + high) / 2))


@pytest.mark.parametrize("rho", ["1e-8", "0.001", "0.05", "1/3", "2", "30"])
@pytest.mark.parametrize("epsilon", ["0", "1", "20"])
def test_delta_is_the_infimum_rounded_up(rho, epsilon):
    cost = Fraction(rho)
    eps = Fraction(epsilon)
    computed = zcdp_delta(cost, eps)
    with mp.workdps(60):
        best = infimum(cost, eps)
        if best < -6900:
            assert computed == Fraction(1, 10**3000)
        elif best > -(mp.mpf(10) ** -13):
            assert 1 - Fraction(1, 10**12) <= computed <= 1
        else:
            ratio = mp.mpf(computed.numerator) / computed.denominator / mp.exp(best)
            assert 1 - mp.mpf(10) ** -25 <= ratio <= 1 + mp.mpf(10) ** -12


@settings(max_examples=5)
@given(st.fractions(Fraction(1, 10**4), 5), st.fractions(Fraction(1, 10**15), Fraction(1, 10)))
def test_epsilon_undoes_delta(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    assert zcdp_delta(rho, epsilon) <= delta
    if epsilon > 0:
        assert zcdp_delta(rho, epsilon * (1 - Fraction(1, 10**9))) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), ("1", "1e-300"), ("10", "0.5")])
def test_rho_is_the_largest_covered(epsilon, delta):
    rho = largest_accepted(lambda rho: zcdp_delta(rho, epsilon) <= Fraction(delta))
    assert covers(ApproxDP(epsilon, delta), ConcentratedCost(rho))
    assert not covers(ApproxDP(epsilon, delta), ConcentratedCost(rho * (1 + Fraction(1, 10**11))))


def test_zcdp_delta_is_exact_to_the_last_digit():
    """The bound at this epsilon has 17 digits, and then a digit at the 50th place.

    Fewer digits round up to a number farther from it, more digits to a nearer one.
    """
    epsilon = Fraction(
        "1.0000000000000000018502515516576553986764494205016606957724792317239660118047251"
    )
    above, at, below = (
        zcdp_delta("0.05", epsilon + apart * Fraction(1, 10**48)) for apart in (-1, 0, 1)
    )

    assert above == at == below + Fraction(1, 10**20)


@pytest.mark.slow
@pytest.mark.parametrize("rho", ["1e-900", "1e-20", "1e20", "1e900"])
def test_extreme_rho_stays_a_bound(rho):
    assert 0 < zcdp_delta(rho, 1) <= 1
    assert (zcdp_delta(rho, 1) < Fraction(1, 10**9)) == (Fraction(rho) < 1)
    least, most = {
        "1e-900": (0, 0),
        "1e-20": (0, "1e-8"),
        "1e20": ("1e20", "1.001e20"),
        "1e900": ("1e900", "1.001e900"),
    }[rho]
    assert Fraction(least) <= zcdp_epsilon(rho, "1e-9") <= Fraction(most)


def test_unusable_arguments_are_refused():
    with pytest.raises(InputError, match="epsilon must be a number of at least 0; got -1"):
        zcdp_delta(1, -1)
    with pytest.raises(InputError, match="rho must be a number above 0; got 0"):
        zcdp_delta(0, 1)
    for delta in (0, 1, -1):
        with pytest.raises(InputError, match="delta must be a number above 0 and below 1; got"):
            zcdp_epsilon(1, delta)
