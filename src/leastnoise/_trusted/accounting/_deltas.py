"""Prove bounds on the delta of Gaussian noise and of zCDP.

The bounds are for one epsilon, and are computed in decimal arithmetic with directed rounding.

Every number is a pair (low, high) that encloses the true value. Operations of `decimal` use the
rounding mode of their context, except ``exp``, ``ln`` and ``sqrt``, which round to nearest. For
``exp``, ``ln`` and ``sqrt``, one step down or up encloses the value. PROOFS-accounting.md has the
proofs.

Gaussian noise, by Balle and Wang. Let ``a = epsilon/mu - mu/2`` and ``b = epsilon/mu + mu/2``. Let
phi be the normal density, Q its upper tail and ``R = Q/phi`` (Mills' ratio). As ``e^epsilon phi(b)
= phi(a)``,

    delta(epsilon) = Q(a) - e^epsilon Q(b) = phi(a) (R(a) - R(b))                if a >= 0
                                           = 1 - phi(a) (R(-a) + R(b))           if a < 0.

Every factor is enclosed.

rho-zCDP, by Canonne, Kamath and Steinke. For every alpha > 1,

    log delta = (alpha - 1)(alpha rho - epsilon) + (alpha - 1) log(alpha - 1) - alpha log(alpha).

`helpers._alpha` searches for the best alpha without proof. The result of this search is a short
exact number, at which the bound is evaluated with upward rounding.
"""

from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import lru_cache

from leastnoise._trusted.accounting.helpers._alpha import nearly_best_alpha_minus_one
from leastnoise._trusted.check import Exact, InternalError, exact, exact_positive, refuse

Enclosure = tuple[Decimal, Decimal]

# Smaller deltas are replaced by this delta; exp(-7000) is below 1e-3040.
LEAST_DELTA = Fraction(1, 10**3000)
NEGLIGIBLE_EXPONENT = 7000


@dataclass(frozen=True, slots=True)
class Rounding:
    """A pair of decimal contexts: one rounds down, and one rounds up.

    Both contexts have the same number of digits.

    >>> contexts = rounding_contexts(5)
    >>> contexts.fraction(Fraction(1, 3))
    (Decimal('0.33333'), Decimal('0.33334'))
    """

    digits: int
    down: Context
    up: Context

    def fraction(self, value: Fraction) -> Enclosure:
        """Return lower and upper bounds on a fraction.

        >>> rounding_contexts(3).fraction(Fraction(-2, 3))
        (Decimal('-0.667'), Decimal('-0.666'))
        """
        numerator = Decimal(value.numerator)
        denominator = Decimal(value.denominator)
        return self.down.divide(numerator, denominator), self.up.divide(numerator, denominator)

    def sqrt(self, value: Fraction) -> Enclosure:
        """Return lower and upper bounds on the square root of a fraction.

        >>> rounding_contexts(3).sqrt(Fraction(2))
        (Decimal('1.40'), Decimal('1.42'))
        """
        if value == 0:
            return Decimal(0), Decimal(0)
        low, high = self.fraction(value)
        return self.down.next_minus(self.down.sqrt(low)), self.up.next_plus(self.up.sqrt(high))

    def exp(self, value: Fraction) -> Enclosure:
        """Return lower and upper bounds on the exponential of a fraction.

        >>> rounding_contexts(3).exp(Fraction(1))
        (Decimal('2.71'), Decimal('2.73'))
        """
        low, high = self.fraction(value)
        return self.down.next_minus(self.down.exp(low)), self.up.next_plus(self.up.exp(high))

    def ln(self, value: Fraction) -> Enclosure:
        """Return lower and upper bounds on the natural logarithm of a fraction.

        >>> rounding_contexts(3).ln(Fraction(2))
        (Decimal('0.692'), Decimal('0.694'))
        """
        low, high = self.fraction(value)
        return self.down.next_minus(self.down.ln(low)), self.up.next_plus(self.up.ln(high))


def rounding_contexts(digits: int) -> Rounding:
    """Return decimal contexts of this many digits that round down and up.

    The range of exponents is so wide that no number of the accounting underflows.

    >>> rounding_contexts(7).digits
    7
    """

    def context(mode: str) -> Context:
        """Return a decimal context with this rounding mode."""
        traps = [InvalidOperation, DivisionByZero, Overflow]
        return Context(
            prec=digits,
            rounding=mode,
            Emin=MIN_EMIN,
            Emax=MAX_EMAX,
            capitals=1,
            clamp=0,
            flags=[],
            traps=traps,
        )

    return Rounding(digits, context(ROUND_FLOOR), context(ROUND_CEILING))


def round_up_probability(value: Fraction) -> Fraction:
    """Round a probability up to 17 significant digits.

    The result is at least 1e-3000. The rounded number is for display and storage.

    >>> round_up_probability(Fraction(123456789012345678, 10**18))
    Fraction(1543209862654321, 12500000000000000)
    """
    if value > LEAST_DELTA:
        return max(LEAST_DELTA, Fraction(rounding_contexts(17).fraction(value)[1]))
    return LEAST_DELTA


def gaussian_is_private(epsilon: Exact, mu_squared: Exact, delta: Exact) -> bool:
    """Return whether mu-GDP provably implies (epsilon, delta)-DP.

    Args:
        epsilon: at least 0.
        mu_squared: above 0.
        delta: the largest allowed delta.

    Returns:
        True only if this is proved. False also in undecided cases: about 50 digits do not separate
        the value from delta, or delta is below 1e-3000.

    Raises:
        InputError: an argument is not a finite number in its range.

    Source: Balle and Wang (ICML 2018), theorem 8; Dong, Roth, Su (JRSS-B 2022), corollary 2.13.

    >>> gaussian_is_private(1, "0.0718", "1e-5"), gaussian_is_private(1, "0.0719", "1e-5")
    (True, False)
    """
    return _delta_upper_bound(epsilon, mu_squared) <= exact("delta", delta)


def gaussian_delta(epsilon: Exact, mu_squared: Exact) -> Fraction:
    """Return a delta for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    Args:
        epsilon: at least 0.
        mu_squared: above 0.

    Returns:
        A fraction of 17 digits, at most 1. The result is within a relative 1e-15 of the smallest
        such delta; if this delta is below 1e-3000, the result is 1e-3000.

    Raises:
        InputError: an argument is not a finite number in its range.

    Source: see `gaussian_is_private`.

    >>> round(float(gaussian_delta(1, "0.0718")), 9)
    9.941e-06
    """
    return min(Fraction(1), round_up_probability(_delta_upper_bound(epsilon, mu_squared)))


def _delta_upper_bound(epsilon: Exact, mu_squared: Exact) -> Fraction:
    """Return an upper bound on the delta of mu-GDP.

    If mu is small, cancellation removes digits; the computation uses far more digits than that.
    """
    eps = exact("epsilon", epsilon)
    square = exact_positive("mu_squared", mu_squared)
    if not eps >= 0:
        raise refuse("epsilon", epsilon, "a number of at least 0")
    # If a^2 / 2 >= 7000, then Q(|a|) <= exp(-a^2 / 2) / 2 < 1e-3000.
    if (eps - square / 2) ** 2 >= 2 * NEGLIGIBLE_EXPONENT * square:
        if 2 * eps > square:
            return LEAST_DELTA
        return Fraction(1)
    return Fraction(_enclose_delta(eps, square, 50 + square.denominator.bit_length() // 3)[1])


def normal_tail(x_squared: Fraction, contexts: Rounding) -> Decimal:
    """Return an upper bound on P(N >= sqrt(x_squared)) for a standard normal N.

    The tail probability is the probability that a standard normal variable is at least
    ``sqrt(x_squared)``.

    >>> round(float(normal_tail(Fraction(4), rounding_contexts(20))), 12)
    0.022750131948
    """
    if x_squared >= 2 * NEGLIGIBLE_EXPONENT:
        return contexts.fraction(LEAST_DELTA)[1]
    density = contexts.up.divide(
        contexts.exp(-x_squared / 2)[1], contexts.sqrt(2 * _enclose_pi(contexts.digits)[0])[0]
    )
    return contexts.up.multiply(density, _enclose_mills_ratio(x_squared, contexts)[1])


def _enclose_delta(epsilon: Fraction, mu_squared: Fraction, digits: int) -> Enclosure:
    """Return lower and upper bounds on the delta of Gaussian noise.

    a and b are square roots of exact fractions, so no difference is taken before the last step.
    """
    contexts = rounding_contexts(digits)
    down = contexts.down
    up = contexts.up
    half = mu_squared / 2
    a_squared = (epsilon - half) ** 2 / mu_squared
    b_squared = (epsilon + half) ** 2 / mu_squared
    mills_a = _enclose_mills_ratio(a_squared, contexts)
    mills_b = _enclose_mills_ratio(b_squared, contexts)
    exp_low, exp_high = contexts.exp(-a_squared / 2)
    root_low = contexts.sqrt(2 * _enclose_pi(digits)[0])
    root_high = contexts.sqrt(2 * _enclose_pi(digits)[1])
    density_low = down.divide(exp_low, root_high[1])
    density_high = up.divide(exp_high, root_low[0])
    zero = Decimal(0)
    one = Decimal(1)
    if epsilon >= half:
        low = down.multiply(density_low, max(zero, down.subtract(mills_a[0], mills_b[1])))
        high = up.multiply(density_high, up.subtract(mills_a[1], mills_b[0]))
    else:
        low = down.subtract(one, up.multiply(density_high, up.add(mills_a[1], mills_b[1])))
        high = up.subtract(one, down.multiply(density_low, down.add(mills_a[0], mills_b[0])))
    return max(zero, low), min(one, high)


def _enclose_mills_ratio(x_squared: Fraction, contexts: Rounding) -> Enclosure:
    """Return bounds on Mills' ratio ``R(x) = Q(x)/phi(x)``.

    R decreases in x, and x is at least 0.
    """
    x_low, x_high = contexts.sqrt(x_squared)
    if x_squared < contexts.digits:
        return _mills_by_series(x_high, contexts)[0], _mills_by_series(x_low, contexts)[1]
    return _mills_by_fraction(x_high, contexts)[0], _mills_by_fraction(x_low, contexts)[1]


def _mills_by_series(x: Decimal, contexts: Rounding) -> Enclosure:
    """Return bounds on Mills' ratio by a series with positive terms.

    ``R(x) = sqrt(pi/2) exp(x^2/2) - S(x)`` with ``S(x) = x + x^3/3 + x^5/(3*5) + ...``.

    Cancellation loses about ``0.22 x^2`` digits. Here this is at most ``0.22 * digits``, and the
    computation starts with that many additional digits.
    """
    exact_square = Fraction(x) ** 2
    wide = rounding_contexts(contexts.digits + int(exact_square * 11 / 50) + 10)
    down = wide.down
    up = wide.up
    square_low, square_high = wide.fraction(exact_square)
    term_low = term_high = x
    sum_low = sum_high = x
    odd = 1
    enough = Decimal((0, (1,), -wide.digits))
    # Once a term is at most half of the previous term, all later terms add up to at most that term.
    while not (term_high <= up.multiply(sum_low, enough) and 2 * exact_square <= odd + 2):
        odd += 2
        divisor = Decimal(odd)
        term_low = down.divide(down.multiply(term_low, square_low), divisor)
        term_high = up.divide(up.multiply(term_high, square_high), divisor)
        sum_low = down.add(sum_low, term_low)
        sum_high = up.add(sum_high, term_high)
    sum_high = up.add(sum_high, term_high)
    exp_low, exp_high = wide.exp(exact_square / 2)
    pi_low, pi_high = _enclose_pi(wide.digits)
    whole_low = down.multiply(wide.sqrt(pi_low / 2)[0], exp_low)
    whole_high = up.multiply(wide.sqrt(pi_high / 2)[1], exp_high)
    return max(Decimal(0), down.subtract(whole_low, sum_high)), up.subtract(whole_high, sum_low)


def _mills_by_fraction(x: Decimal, contexts: Rounding) -> Enclosure:
    """Return bounds on Mills' ratio by Laplace's continued fraction, x > 0.

    ``R(x) = 1/(x + 1/(x + 2/(x + 3/(x + ...))))``.

    Every tail ``T_n = x + (n+1)/T_(n+1)`` lies between x and ``x + (n+1)/x``. So the backward
    recursion from any n encloses T_0 = 1/R.
    """
    down = contexts.down
    up = contexts.up
    depth = 2 * contexts.digits
    low = x
    high = up.add(x, up.divide(Decimal(depth + 1), x))
    for k in range(depth, 0, -1):
        step = Decimal(k)
        low, high = down.add(x, down.divide(step, high)), up.add(x, up.divide(step, low))
    return down.divide(Decimal(1), high), up.divide(Decimal(1), low)


@lru_cache(maxsize=64)
def _enclose_pi(digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds on pi by the Bailey-Borwein-Plouffe series in integers.

    Each rounding down loses less than 1. The sum of all omitted terms is less than 1.
    """
    terms = digits * 5 // 6 + 10  # 16^5 is above 10^6
    low = sum(
        16 ** (terms - k)
        * (120 * k**2 + 151 * k + 47)
        // (512 * k**4 + 1024 * k**3 + 712 * k**2 + 194 * k + 15)
        for k in range(terms)
    )
    return Fraction(low, 16**terms), Fraction(low + terms + 1, 16**terms)


def zcdp_delta(rho: Exact, epsilon: Exact) -> Fraction:
    """Return a delta for which rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Args:
        rho: above 0.
        epsilon: at least 0.

    Returns:
        A fraction of 17 digits, at most 1. The result is within a relative 1e-12 of the infimum of
        the bound over alpha; if the infimum is below 1e-3000, the result is 1e-3000.

    Raises:
        InputError: an argument is not a finite number in its range.

    Guarantees:
        The result is an upper bound for every alpha that the search may return.

    Source: Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy (2020), the
        conversion from Renyi divergence. For continuous Gaussian noise the analytic delta is exact,
        and smaller.

    >>> float(zcdp_delta("0.05", 1))
    0.0003857091637444122
    """
    eps = exact("epsilon", epsilon)
    cost = exact_positive("rho", rho)
    if not eps >= 0:
        raise refuse("epsilon", epsilon, "a number of at least 0")
    less_one = nearly_best_alpha_minus_one(cost, eps)
    if not less_one > 0:
        raise InternalError("The order of a Renyi divergence must be above 1; please report this.")
    beta = Fraction(less_one)
    alpha = beta + 1
    exponent = beta * (alpha * cost - eps)
    if exponent <= -NEGLIGIBLE_EXPONENT:
        return LEAST_DELTA  # as beta log(beta) - alpha log(alpha) < 0
    # Of beta log(beta) - alpha log(alpha) as many digits cancel as beta has before the point.
    contexts = rounding_contexts(50 + 2 * max(0, less_one.adjusted()))
    down = contexts.down
    up = contexts.up
    rising = up.multiply(less_one, contexts.ln(beta)[1])
    falling = down.multiply(contexts.fraction(alpha)[0], contexts.ln(alpha)[0])
    log_delta = up.add(contexts.fraction(exponent)[1], up.subtract(rising, falling))
    if log_delta >= 0:
        return Fraction(1)
    return min(Fraction(1), round_up_probability(Fraction(contexts.exp(Fraction(log_delta))[1])))
