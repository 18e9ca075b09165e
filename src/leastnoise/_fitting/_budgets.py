"""What each kind of budget allows noise, and steps of pure privacy: one answer a kind, registered for its class."""

import math
from fractions import Fraction
from functools import singledispatch
from typing import Any

from leastnoise._accounting import ZCDP, ApproxDP, Budget, Noise, PureDP
from leastnoise._check import InternalError
from leastnoise._fitting._gaussian import gaussian_mu_squared

_GRAIN = 2**40  # a pure share of rho is a root, rounded down to a multiple of 1 / _GRAIN
NOISES: dict[type[Budget], tuple[Noise, ...]] = {
    PureDP: (Noise.DISCRETE_LAPLACE,),
    ApproxDP: (Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_LAPLACE),
    ZCDP: (Noise.DISCRETE_GAUSSIAN, Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_LAPLACE),
}
"""All that can meet a budget; for (epsilon, delta) the rounded Gaussian has the sharper cost."""


@singledispatch
def allowed_mu_squared(budget: Budget) -> Fraction:
    """The mu squared that Gaussian noise may have within a budget."""
    raise InternalError(f"Gaussian noise cannot meet a {type(budget).__name__} budget.")


@allowed_mu_squared.register
def _(budget: ApproxDP) -> Fraction:
    return gaussian_mu_squared(budget.epsilon, budget.delta)


@allowed_mu_squared.register
def _(budget: ZCDP) -> Fraction:
    return 2 * budget.rho


@singledispatch
def allowed_epsilon(budget: Any) -> float:
    """The epsilon that Laplace noise may have within a budget; under rho-zCDP epsilon^2 / 2 is rho."""
    return float(budget.epsilon)


@allowed_epsilon.register
def _(budget: ZCDP) -> float:
    return math.sqrt(2 * float(budget.rho))


@singledispatch
def pure_share(budget: Any, part: Fraction) -> Fraction:
    """The epsilon of a step of pure privacy that takes a part of a budget: of epsilon, or of rho, of which it takes epsilon^2 / 2."""
    return Fraction(budget.epsilon * part)


@pure_share.register
def _(budget: ZCDP, part: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.floor(2 * budget.rho * part * _GRAIN**2)), _GRAIN)
