"""From relative to exact scales: the least noise, of given proportions, that a budget allows."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from leastnoise._accounting import ZCDP, Noise, Privacy, PureCost, covers, rho_of
from leastnoise._check import InputError, InternalError, refuse
from leastnoise._domain import Domain
from leastnoise._fitting._budgets import NOISES, allowed_mu_squared
from leastnoise._measurements import Block, Measurements, cost

# A scale keeps this many leading bits; with row weights (20 bits) and the grid its terms stay below 2^56 for any table of counts or sums.
_SCALE_BITS = 24
_FINE_BITS = 44
_LEAST_GAUSSIAN_SCALE = 2**7


def round_up(value: Fraction, bits: int) -> Fraction:
    """The least dyadic fraction of at most ``bits`` leading bits that is not below ``value``."""
    shift = bits - (value.numerator.bit_length() - value.denominator.bit_length())
    scaled = value * (Fraction(2) ** shift)
    whole = -(-scaled.numerator // scaled.denominator)
    return Fraction(whole) / Fraction(2) ** shift


def root_up(value: Fraction) -> Fraction:
    """A fraction not below the square root of ``value``, at most 2^-60 of it above."""
    shift = max(0, 62 + (value.denominator.bit_length() - value.numerator.bit_length() + 1) // 2)
    scaled = (value.numerator << (2 * shift)) // value.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and scaled * value.denominator == value.numerator << (2 * shift)
    return Fraction(root if exact else root + 1, 1 << shift)


def _drawable(scale: Fraction, heaviest: int, grid: int, *, contrasts: bool) -> Fraction:
    """The scale itself if it is short, else rounded up to be short enough for the sampler."""
    if contrasts:  # room is needed for the roots of their norms
        return round_up(scale, _SCALE_BITS)
    if scale.numerator * grid < 2**50 and scale.denominator * heaviest < 2**50:
        return scale
    return round_up(scale, _FINE_BITS - max(grid.bit_length() - 1, heaviest.bit_length() - 1))


def fit(
    domain: Domain,
    privacy: Privacy,
    noise: Noise,
    blocks: Sequence[tuple[Block, float]],
) -> Measurements:
    """Scale the noise of blocks of given relative weights so that they cost the budget and no more.

    Guarantees: scales are only ever rounded up, by less than 2^-20 of their value (not at all where one scale serves all blocks and is a
    short
        fraction); the cost is recomputed from the final integers.
    """
    fitting = NOISES[type(privacy.budget)]
    if noise not in fitting:
        allowed = f"{' or '.join(kind.value for kind in fitting)} for the budget {privacy.budget!r}"
        raise refuse("the noise", noise.value, allowed, "Gaussian noise needs ZCDP or ApproxDP.")
    top = max(weight for _, weight in blocks)
    if not all(math.isfinite(weight) and weight > 0 for _, weight in blocks):
        raise InternalError("A strategy gave a block a weight that is not above 0; such blocks must be left out.")
    # Many blocks share few weights: what follows is worked out once for each.
    ratios = {weight: round_up(Fraction(top / weight), _SCALE_BITS) for weight in {weight for _, weight in blocks}}
    relative = tuple(_scaled(block, ratios[weight]) for block, weight in blocks)
    plan = Measurements(
        domain=domain,
        privacy=privacy,
        noise=noise,
        blocks=relative,
    )
    # The norm at unit budget does not need the grid: it divides out.
    factor = _factor(plan)
    heavy = (math.prod([factor.heaviest for factor in block.factors]) for block, _ in blocks)
    long = (max([factor.largest_square for factor in block.factors], default=1) > 1 for block, _ in blocks)
    kinds = list(zip((weight for _, weight in blocks), heavy, long, strict=True))
    distinct = set(kinds)
    grid = 1
    if noise is Noise.ROUNDED_GAUSSIAN:
        least = min(ratios[weight] * factor / heaviest for weight, heaviest, _ in distinct)
        while least * grid < _LEAST_GAUSSIAN_SCALE and grid < 2**20:
            grid *= 2
    # Sums that were rounded up do not scale exactly: a hair more noise then meets the budget.
    for margin in (Fraction(1), 1 + Fraction(1, 2**40)):
        scales = {kind: _drawable(ratios[kind[0]] * factor * margin, kind[1], grid, contrasts=kind[2]) for kind in distinct}
        scaled = tuple(_scaled(block, scales[kind]) for block, kind in zip(relative, kinds, strict=True))
        fitted = replace(plan, blocks=scaled, grid=grid)
        if covers(privacy.budget, cost(fitted)):
            return fitted
    raise InternalError(f"Measurements were fitted to {privacy.budget!r} and do not meet it; please report this.")


def _scaled(block: Block, scale: Fraction) -> Block:
    """A block with another scale: ``replace``, which takes several times as long, as there may be very many."""
    return Block(block.factors, scale, block.measure, block.limits, block.ends)


def rescaled(measurements: Measurements, privacy: Privacy) -> Measurements:
    """The same queries, in the same proportions of noise, within another budget."""
    try:
        return fit(measurements.domain, privacy, measurements.noise, [(block, 1 / float(block.scale)) for block in measurements.blocks])
    except InputError:
        if type(privacy.budget) is not type(measurements.privacy.budget):
            raise
        advice = "The whole numbers of its queries leave no room for so much noise; plan for that budget itself."
        raise refuse("a budget for the noise of this plan", privacy.budget, f"nearer to {measurements.privacy.budget}", advice) from None


def _factor(plan: Measurements) -> Fraction:
    """By what all scales must be multiplied, rounded up."""
    spent, budget = cost(plan), plan.privacy.budget
    if isinstance(spent, PureCost) and not isinstance(budget, ZCDP):
        return spent.epsilon / budget.epsilon
    return root_up(2 * rho_of(spent) / allowed_mu_squared(budget))
