"""Scale the noise of a strategy to a given budget.

The file also scales the threshold of a search for keys.

This file is not trusted: the kernel computes the cost of its results again. The file also converts
a rho and a delta to an epsilon. This epsilon is only displayed and never charged, because ledgers
add up rho itself.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from leastnoise._domain import Domain
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Cost,
    KeyRule,
    Noise,
    Privacy,
    PureCost,
    PureDP,
    covers,
    gaussian_mu_squared,
    keys_are_private,
    largest_accepted,
    pure_epsilon,
    rho_of_cost,
    search_budget,
    zcdp_delta,
)
from leastnoise._trusted.check import (
    Exact,
    InputError,
    InternalError,
    exact,
    exact_positive,
    refuse,
)
from leastnoise._trusted.measurements import Block, Measurements, cost

# A scale is rounded to this many leading bits. Its product with the row weights (20 bits) and the
# grid then keeps the terms of a cost below 2^56.
_SCALE_BITS = 24
_FINE_BITS = 44  # leading bits of an exact scale, without the bits of grid and row weights
_EPSILON_BITS = 34  # leading bits of a least epsilon
_LEAST_GAUSSIAN_SCALE = 2**7
# A pure share of rho is a root, rounded down to a multiple of 1 / _RHO_ROOT_GRID.
_RHO_ROOT_GRID = 2**40
_CHOICE_BITS = 60  # bisections for the distance of a private choice
DETECTION_PROBABILITY = 0.95  # that a search finds a key of `detectable_units` units
# Factors of the noise scale to try for keys. If the noise is larger, the keys that other persons
# share use less of delta. More of it is left for the keys that only one person has, and their
# threshold is then lower.
_KEY_NOISE_FACTORS = (Fraction(1), Fraction(51, 50), Fraction(11, 10))
_MOST_THRESHOLD = 2**40  # the largest threshold for keys that is tried
# For each kind of budget the kinds of noise that can meet it. Under (epsilon, delta) the rounded
# Gaussian costs less than the discrete one.
NOISES: dict[type[Budget], tuple[Noise, ...]] = {
    PureDP: (Noise.DISCRETE_LAPLACE,),
    ApproxDP: (Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_LAPLACE),
    ZCDP: (Noise.DISCRETE_GAUSSIAN, Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_LAPLACE),
    GDP: (Noise.ROUNDED_GAUSSIAN, Noise.DISCRETE_LAPLACE),
}


def allowed_mu_squared(budget: Budget) -> Fraction:
    """Return the largest mu squared that Gaussian noise may cost."""
    if isinstance(budget, PureDP):
        raise InternalError("Gaussian noise cannot meet a PureDP budget.")
    if isinstance(budget, ZCDP):
        return 2 * budget.rho
    if isinstance(budget, GDP):
        return budget.mu_squared
    return gaussian_mu_squared(budget.epsilon, budget.delta)


def allowed_epsilon(budget: Budget) -> float:
    """Return the largest epsilon that Laplace noise may cost.

    With a rho budget, an epsilon costs rho = epsilon^2 / 2. With a budget of mu squared, an epsilon
    costs the mu squared that it implies.
    """
    if isinstance(budget, ZCDP):
        return math.sqrt(2 * float(budget.rho))
    if isinstance(budget, GDP):
        return float(pure_epsilon(budget.mu_squared))
    return float(budget.epsilon)


def pure_share(budget: Budget, budget_share: Fraction) -> Fraction:
    """Return the epsilon with which a pure step costs a share of a budget.

    ``budget_share`` is between 0 and 1. With a rho budget, the step costs epsilon^2 / 2. With a
    budget of mu squared, the step costs the mu squared that its epsilon implies.
    """
    if isinstance(budget, GDP):
        return pure_epsilon(budget.mu_squared * budget_share)
    if isinstance(budget, ZCDP):
        return Fraction(
            math.isqrt(math.floor(2 * budget.rho * budget_share * _RHO_ROOT_GRID**2)),
            _RHO_ROOT_GRID,
        )
    return Fraction(budget.epsilon * budget_share)


def choice_distance(scale: float, cells: int, failure_probability: float) -> float:
    """Bound the rank distance of a privately chosen cell from its target.

    The distance exceeds this bound with a probability of at most ``failure_probability``. The bound
    (S6 of PROOFS-quantiles.md) holds for all data, and is attained if all rows are in one cell. The
    distance is in the unit of the scale.

    Args:
        scale: the distance at which a cell passes with probability 1 / e.
        cells: the number of cells to choose from.
        failure_probability: the probability that the chosen cell is further away.

    >>> round(choice_distance(10.0, 50, 0.05), 1)
    61.6
    """
    if cells == 1:
        return 0.0

    def is_exceeded_rarely(passing: float) -> bool:
        """Return whether cells with this probability are chosen rarely enough."""
        none_passes = cells * math.log1p(-passing)
        return 1 + math.expm1(none_passes) / (cells * passing) <= failure_probability

    rare = failure_probability / cells
    frequent = 1 - 1e-9
    for _ in range(_CHOICE_BITS):
        middle = math.sqrt(rare * frequent)
        if is_exceeded_rarely(middle):
            rare = middle
        else:
            frequent = middle
    return -scale * math.log(rare)


def round_up(value: Fraction, bits: int) -> Fraction:
    """Round a fraction up to about ``bits`` leading bits."""
    shift = bits - (value.numerator.bit_length() - value.denominator.bit_length())
    scaled = value * (Fraction(2) ** shift)
    whole = -(-scaled.numerator // scaled.denominator)
    return Fraction(whole) / Fraction(2) ** shift


def root_up(square: Fraction) -> Fraction:
    """Return a square root, rounded up by at most a relative 2^-60."""
    shift = max(0, 62 + (square.denominator.bit_length() - square.numerator.bit_length() + 1) // 2)
    scaled = (square.numerator << (2 * shift)) // square.denominator
    root = math.isqrt(scaled)
    is_exact = root * root == scaled and (
        scaled * square.denominator == square.numerator << (2 * shift)
    )
    return Fraction(root if is_exact else root + 1, 1 << shift)


def _sampler_scale(
    scale: Fraction, largest_row_weight: int, grid: int, *, has_contrasts: bool
) -> Fraction:
    """Round a noise scale up to a fraction that the sampler supports.

    The scale is not changed if its numerator and denominator are short enough.
    """
    # The square roots of the norms of contrasts multiply the scale and need additional bits.
    if has_contrasts:
        return round_up(scale, _SCALE_BITS)
    if scale.numerator * grid < 2**50 and scale.denominator * largest_row_weight < 2**50:
        return scale
    return round_up(
        scale, _FINE_BITS - max(grid.bit_length() - 1, largest_row_weight.bit_length() - 1)
    )


# Rounding can leave the cost a little above the budget; then all noise is scaled up by a factor.
_NOISE_FACTORS = (
    Fraction(1),
    1 + Fraction(1, 2**40),
    1 + Fraction(1, 2**20),
    1 + Fraction(1, 2**12),
)


def _check_noise(privacy: Privacy, noise: Noise) -> None:
    """Raise for a kind of noise that a budget does not allow."""
    fitting = NOISES[type(privacy.budget)]
    if noise not in fitting:
        allowed = f"{' or '.join(kind.value for kind in fitting)} for the budget {privacy.budget!r}"
        raise refuse(
            "the noise", noise.value, allowed, "Gaussian noise needs ZCDP, ApproxDP or GDP."
        )


def _check_weights(blocks: Sequence[tuple[Block, float]]) -> None:
    """Raise unless the weights of all blocks are finite and positive."""
    if not all(math.isfinite(weight) and weight > 0 for _, weight in blocks):
        raise InternalError(
            "A strategy gave a block a weight that is not above 0; such blocks must be left out."
        )


def _noise_properties(block: Block, weight: float) -> tuple[float, int, bool]:
    """Return a block's weight and largest row weight, and if a coefficient is > 1.

    These properties determine the noise scale.
    """
    heaviest = math.prod([factor.heaviest for factor in block.factors])
    largest_square = max([factor.largest_square for factor in block.factors], default=1)
    return weight, heaviest, largest_square > 1


def _gaussian_grid(least_scale: Fraction) -> int:
    """Return how many steps of rounded Gaussian noise make 1, a power of two."""
    grid = 1
    while least_scale * grid < _LEAST_GAUSSIAN_SCALE and grid < 2**20:
        grid *= 2
    return grid


def fit_noise_scales(
    domain: Domain, privacy: Privacy, noise: Noise, blocks: Sequence[tuple[Block, float]]
) -> Measurements:
    """Choose noise scales such that weighted blocks cost a given budget.

    The noise of a block is inversely proportional to its weight. The cost is as near to the budget
    as possible, and never above it.
    """
    # Scales are only rounded up, by less than 2^-20 of their value. If a short fraction serves all
    # blocks, it is not rounded at all. The cost is computed again from the final whole numbers.
    _check_noise(privacy, noise)
    _check_weights(blocks)
    top = max(weight for _, weight in blocks)
    # There may be thousands of blocks, but they have few different weights: ratios and scales are
    # computed once for each weight.
    distinct_weights = {weight for _, weight in blocks}
    ratios = {weight: round_up(Fraction(top / weight), _SCALE_BITS) for weight in distinct_weights}
    relative = tuple(_with_scale(block, ratios[weight]) for block, weight in blocks)
    plan = Measurements(domain=domain, privacy=privacy, noise=noise, blocks=relative)
    # Relative scales have some cost. Noise that is larger by ``factor`` costs the budget, for every
    # grid.
    spent = cost(plan)
    budget = privacy.budget
    factor = _noise_factor(spent, budget)
    kinds = [_noise_properties(block, weight) for block, weight in blocks]
    distinct = set(kinds)
    grid = 1
    if noise is Noise.ROUNDED_GAUSSIAN:
        grid = _gaussian_grid(
            min(ratios[weight] * factor / heaviest for weight, heaviest, _ in distinct)
        )
    for noise_factor in _NOISE_FACTORS:
        scales = {
            kind: _sampler_scale(
                ratios[kind[0]] * factor * noise_factor, kind[1], grid, has_contrasts=kind[2]
            )
            for kind in distinct
        }
        scaled = tuple(
            _with_scale(block, scales[kind]) for block, kind in zip(relative, kinds, strict=True)
        )
        fitted = replace(plan, blocks=scaled, grid=grid)
        if covers(privacy.budget, cost(fitted)):
            return fitted
    raise InternalError(
        f"Measurements were fitted to {privacy.budget!r} and do not meet it; please report this."
    )


def _noise_factor(noise_cost: Cost, budget: Budget) -> Fraction:
    """Return the factor for noise scales that makes the cost equal the budget."""
    if isinstance(noise_cost, PureCost) and not isinstance(budget, ZCDP):
        if isinstance(budget, GDP):
            return noise_cost.epsilon / pure_epsilon(budget.mu_squared)
        return noise_cost.epsilon / budget.epsilon
    return root_up(2 * rho_of_cost(noise_cost) / allowed_mu_squared(budget))


def _with_scale(block: Block, noise_scale: Fraction) -> Block:
    """Return a block with another noise scale.

    ``dataclasses.replace`` would take several times as long, and there may be thousands of blocks.
    """
    return Block(
        block.factors, noise_scale, block.measure, block.limits, block.ends, block.k_norm_group
    )


def rescale_noise(measurements: Measurements, privacy: Privacy) -> Measurements:
    """Multiply all noise scales by one factor to fit another budget.

    The queries stay the same.
    """
    try:
        return fit_noise_scales(
            measurements.domain,
            privacy,
            measurements.noise,
            [(block, 1 / float(block.scale)) for block in measurements.blocks],
        )
    except InputError:
        if type(privacy.budget) is not type(measurements.privacy.budget):
            raise
        advice = (
            "The whole numbers of its queries leave no room for so much noise; "
            "plan for that budget itself."
        )
        raise refuse(
            "a budget for the noise of this plan",
            privacy.budget,
            f"nearer to {measurements.privacy.budget}",
            advice,
        ) from None


def zcdp_epsilon(rho: Exact, delta: Exact) -> Fraction:
    """Return an epsilon for which rho-zCDP implies (epsilon, delta)-DP.

    The epsilon is rounded up until ``zcdp_delta`` proves it.
    """
    # Source: as `zcdp_delta`; the search begins at ``rho + 2 sqrt(rho log(1/delta))`` (Bun and
    #     Steinke, TCC 2016).
    exact_rho = exact_positive("rho", rho)
    delta = exact("delta", delta)
    if not 0 < delta < 1:
        raise refuse("delta", delta, "a number above 0 and below 1")
    return _least_epsilon(exact_rho, delta)


@lru_cache(maxsize=64)
def _least_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon for which rho-zCDP implies (epsilon, delta)-DP.

    The result is rounded up.
    """

    def is_proved(epsilon: Fraction) -> bool:
        """Return whether the delta at an epsilon is proved to be small enough."""
        return zcdp_delta(rho, epsilon) <= delta

    if is_proved(Fraction(0)):
        return Fraction(0)
    simple = rho + 2 * root_up(
        rho * Fraction(math.log(delta.denominator) - math.log(delta.numerator))
    )
    epsilon = simple * largest_accepted(lambda part: not is_proved(part * simple), _EPSILON_BITS)
    while not is_proved(epsilon):
        epsilon *= 1 + Fraction(1, 2 ** (_EPSILON_BITS - 1))
    return epsilon


def key_rule(privacy: Privacy) -> KeyRule:
    """Return the noise and the threshold of a private search for keys.

    Among the private rules, it is a rule that finds keys with as few units as possible. The rule
    has Laplace or Gaussian noise, and `keys_are_private` returns True for the rule.
    """
    budget = search_budget(privacy)
    laplace = KeyRule(
        noise=Noise.DISCRETE_LAPLACE,
        scale=_shorten_scale(privacy.distance / budget.epsilon),
        threshold=2,
    )
    square = gaussian_mu_squared(budget.epsilon, budget.delta)
    candidates = [laplace]
    for more in _KEY_NOISE_FACTORS:
        scale = root_up(privacy.distance / square * more**2)
        candidates.append(
            KeyRule(noise=Noise.ROUNDED_GAUSSIAN, scale=_shorten_scale(scale), threshold=2)
        )
    rules = [
        rule
        for candidate in candidates
        if (rule := _least_threshold(candidate, privacy)) is not None
    ]
    if not rules:
        raise InputError(
            f"A search for keys within {budget!r} would need a threshold above 2^40. Give the "
            "search more of the budget, or a larger delta."
        )
    return min(rules, key=lambda rule: (detectable_units(rule), rule.scale))


def detectable_units(rule: KeyRule) -> int:
    """Return how many units must have a key for 95% of searches to find it.

    The probability is ``DETECTION_PROBABILITY``, over the noise.
    """
    scale = float(rule.scale)
    if rule.noise is Noise.ROUNDED_GAUSSIAN:
        return rule.threshold + math.ceil(NormalDist().inv_cdf(DETECTION_PROBABILITY) * scale - 0.5)
    # P(X <= -m) = exp(-m / b) / (1 + exp(-1 / b)).
    tail = (1 - DETECTION_PROBABILITY) * (1 + math.exp(-1 / scale))
    return rule.threshold + max(0, math.ceil(-math.log(tail) * scale) - 1)


def _least_threshold(rule: KeyRule, privacy: Privacy) -> KeyRule | None:
    """Return the rule with the least private threshold at its scale, or None.

    `keys_are_private` returns True for this scale and this threshold. The result is None if the
    threshold would exceed 2^40.
    """
    budget = privacy.budget
    if isinstance(budget, ApproxDP):
        chance = float(budget.delta) / privacy.max_rows
    else:
        chance = 0.0
    # The search begins at an estimate, which may be wrong because floats cannot represent such
    # small probabilities.
    chance = min(0.5, max(1e-300, chance))
    if rule.noise is Noise.DISCRETE_LAPLACE:
        far = -math.log(2 * chance)
    else:
        far = -NormalDist().inv_cdf(chance)
    low = 1
    high = max(2, math.ceil(1 + far * float(rule.scale)))
    while high <= _MOST_THRESHOLD and not keys_are_private(replace(rule, threshold=high), privacy):
        low = high
        high = 2 * high
    if high > _MOST_THRESHOLD:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if keys_are_private(replace(rule, threshold=middle), privacy):
            high = middle
        else:
            low = middle
    return replace(rule, threshold=high)


def _shorten_scale(noise_scale: Fraction) -> Fraction:
    """Round a noise scale up to 40 leading bits, for the samplers.

    A scale whose numerator and denominator are below 2^50 is not changed.
    """
    if max(noise_scale.numerator, noise_scale.denominator) < 2**50:
        return noise_scale
    return round_up(noise_scale, 40)
