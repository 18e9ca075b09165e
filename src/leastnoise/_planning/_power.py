"""The power of an A/B test, computed from effect, sample size and budget.

The power depends only on public values: the budget, the numbers that the caller states, and the
noise of a plan that releases the mean of each arm.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

from leastnoise._domain import Categories, Domain, Measure
from leastnoise._error import (
    LEVEL,
    checked_level,
    correlation_of,
    difference_interval,
    error_covariance,
    interval_multiplier,
)
from leastnoise._plan import Plan
from leastnoise._planning._comparison_targets import expect_sides, plan_covariances
from leastnoise._planning._plan_calls import plan
from leastnoise._planning._targets import (
    Least,
    plan_for_workload,
    smallest_privacy,
    with_epsilon_or_rho,
)
from leastnoise._threads import one_thread
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
    charge_of_budget,
    charge_text,
    parameters_by_name,
)
from leastnoise._trusted.check import Exact, InputError, exact_positive, refuse, whole
from leastnoise._workload import ComparisonTarget, mean_queries, read_comparison, read_quantity

_ARMS = ("B", "A")  # treatment and control
_OUTCOME = "outcome"
_MOST_ROWS = 2**50  # the most rows of an arm
_MOST_SIZE = Fraction(100)  # the largest budget, at which integer noise is below a tenth of a row
_LEAST_SIZE = Fraction(1, 2**20)  # the epsilon or rho at which the search for a budget begins
_BUDGET_DIGITS = 4  # decimal digits of a searched budget
_EFFECT_STEPS = 60  # halvings of the interval that contains the least effect


@dataclass(frozen=True, slots=True, kw_only=True)
class ABPower:
    """The power of an A/B test, with its effect, sample size and budget.

    Attributes:
        effect: the difference of the means.
        size: the rows of each arm.
        budget: the budget of the release.
        power: the probability that the interval of the difference leaves out 0.
        noise_std: the part of the difference's standard error that is due to the noise.
        sampling_std: the part of the difference's standard error that is due to sampling the rows.
        level: the confidence level of the interval.
    """

    effect: float
    size: int
    budget: Budget
    power: float
    noise_std: float
    sampling_std: float
    level: float

    def __repr__(self) -> str:
        cost = charge_text(self.budget, charge_of_budget(self.budget))
        return (
            f"ABPower(effect {self.effect:.4g} with {self.size:,} rows in each arm and {cost}: "
            f"power {self.power:.3f}, noise {self.noise_std:.3g} next to sampling "
            f"{self.sampling_std:.3g})"
        )


class _Outcome(NamedTuple):
    """The public properties of the outcome that an A/B test measures."""

    mean: float
    std: float | None
    measure: Measure
    level: float


class _Errors(NamedTuple):
    """A test's power, and the two standard errors that determine it."""

    power: float
    noise_std: float
    sampling_std: float


@one_thread()
def ab_power(
    budget: Budget | Privacy | Least,
    *,
    mean: float,
    effect: float | None = None,
    size: int | None = None,
    std: float | None = None,
    bounds: tuple[Exact, Exact] = (0, 1),
    unit: Exact = 1,
    power: float = 0.8,
    level: float = LEVEL,
) -> ABPower:
    """Compute the power of an A/B test, or a value that reaches a power.

    No data is read. With a budget, an effect and a size, the result is the power. If one of the
    three is left out, the result is the smallest effect, size or budget that reaches ``power``.

    Args:
        budget: the budget of the release with the means by arm; a Privacy if there is a unit
            column. ``Least()`` searches for the least budget.
        mean: the expected mean, or rate, of the control.
        effect: the difference of the means that the test must detect; None to search for the
            smallest difference.
        size: the rows of each arm; None to search for the smallest number.
        std: the standard deviation of the outcome within an arm; None for outcomes of 0 and 1.
        bounds: the bounds of the measure; (0, 1) for rates.
        unit: the unit of the measure; values are summed in multiples of it.
        power: the probability that the interval of the difference leaves out 0.
        level: the confidence level of this interval.

    Returns:
        The effect, the size, the budget, the power, and both parts of the standard error.

    Raises:
        InputError: more than one of the three is left out; no size or budget reaches the power; or
            a number is not allowed.

    Other tables of the release need a separate part of the budget.

    >>> ln.ab_power(ln.PureDP(1), mean=0.10, effect=0.01).size
    14781
    """
    outcome = _checked_outcome(mean, std, bounds, unit, level)
    if size is not None:
        size = whole("size", size, 2, _MOST_ROWS)
    _check_effect(effect, outcome)
    missing = [name for name, value in (("effect", effect), ("size", size)) if value is None]
    if isinstance(budget, Least):
        missing.append("budget")
    if len(missing) > 1:
        raise refuse(
            "the value to compute", " and ".join(missing), "one of effect, size and a Least budget"
        )
    if not (isinstance(power, float) and 0.5 <= power < 1):
        raise refuse("power", power, "a number of at least 0.5 and below 1, such as 0.8")
    if isinstance(budget, (PureDP, ApproxDP, GDP, ZCDP)):
        budget = Privacy(budget)
    if not isinstance(budget, (Privacy, Least)):
        raise refuse("budget", budget, "a budget, a Privacy, or Least()")
    test_plan = _plan_test(outcome, budget)
    if "budget" in missing and isinstance(budget, Least):
        return _search_budget(outcome, test_plan, budget, float(effect or 0), int(size or 0), power)
    if size is None:
        size = _search_size(outcome, test_plan, float(effect or 0), power)
    if effect is None:
        effect = _search_effect(outcome, test_plan, size, power)
    return _result(outcome, test_plan, float(effect), size)


def _checked_outcome(
    mean: object, std: object, bounds: object, measure_unit: Exact, level: float
) -> _Outcome:
    """Check the numbers that describe an outcome, and return them as one value."""
    if not (isinstance(bounds, (tuple, list)) and len(bounds) == 2):
        raise refuse("bounds", bounds, "a pair of numbers, the lower first")
    measure = Measure(_OUTCOME, bounds[0], bounds[1], unit=measure_unit)
    low = float(measure.low)
    high = float(measure.high)
    if isinstance(mean, bool) or not isinstance(mean, (int, float)) or not low < mean < high:
        raise refuse("mean", mean, f"a number above {low:g} and below {high:g}")
    if std is None and not (low == 0 and high == 1):
        raise refuse(
            "std",
            std,
            "the standard deviation of the outcome",
            "It is known only for rates.",
        )
    if std is not None and (
        isinstance(std, bool) or not isinstance(std, (int, float)) or not 0 < std < math.inf
    ):
        raise refuse("std", std, "a number above 0, or None")
    return _Outcome(float(mean), None if std is None else float(std), measure, checked_level(level))


def _check_effect(effect: object, outcome: _Outcome) -> None:
    """Raise unless mean plus effect is within the bounds of the outcome."""
    if effect is None:
        return
    room_below = float(outcome.measure.low) - outcome.mean
    room_above = float(outcome.measure.high) - outcome.mean
    is_number = isinstance(effect, (int, float)) and not isinstance(effect, bool)
    if not is_number or effect == 0 or not room_below <= effect <= room_above:  # type: ignore[operator]
        raise refuse(
            "effect",
            effect,
            f"a difference that is not 0, from {room_below:g} to {room_above:g}",
            "Mean and effect together must be within the bounds.",
        )


def _plan_test(outcome: _Outcome, budget: Privacy | Least) -> Plan:
    """Plan the release of the means of treatment and control."""
    if isinstance(budget, Least):
        privacy = with_epsilon_or_rho(budget, 1)
    else:
        privacy = budget
    domain = Domain({"arm": Categories(_ARMS, complete=True)}, measures={_OUTCOME: outcome.measure})
    return plan(mean_queries(domain, _OUTCOME, by=["arm"]), privacy)


def _errors(outcome: _Outcome, test_plan: Plan, effect: float, size: int) -> _Errors:
    """Compute the power and the standard errors of a planned test."""
    # Slow to import.
    from leastnoise._estimation import design_effect, sampling_variance, with_sampling_error

    domain = test_plan.domain
    quantity = read_quantity(domain, mean=_OUTCOME)
    comparison = read_comparison(domain, "arm", *_ARMS, quantity=quantity)
    sides = comparison.sides(domain)
    target = ComparisonTarget(
        comparison=comparison, form="difference", kind="margin", most=Fraction(1)
    )
    unit = float(outcome.measure.unit)
    values = ((outcome.mean + effect) / unit, outcome.mean / unit)
    covariance = plan_covariances(test_plan)
    multiplier = interval_multiplier(test_plan.measured().noise, outcome.level)
    estimates = expect_sides(
        test_plan, target, sides, values, (float(size), float(size)), covariance, multiplier
    )
    shared = error_covariance(sides, estimates, covariance, ("arm",))
    noise = difference_interval(*estimates, correlation_of(shared, *estimates))
    if outcome.std is None:
        std = None
    else:
        std = outcome.std / unit
    effect_of_units = design_effect(test_plan.privacy)
    variances = [effect_of_units * sampling_variance(each, std) for each in estimates]
    normal = NormalDist()
    times = normal.inv_cdf(0.5 + outcome.level / 2)
    first, second = (
        with_sampling_error(each, variance, times)
        for each, variance in zip(estimates, variances, strict=True)
    )
    interval = difference_interval(first, second, correlation_of(shared, first, second))
    noise_std = float(noise.std_error.item()) * unit
    sampling_std = math.sqrt(float(variances[0].item() + variances[1].item())) * unit
    if effect > 0:
        reach = float((interval.value - interval.low).item()) * unit
    else:
        reach = float((interval.high - interval.value).item()) * unit
    total = math.hypot(noise_std, sampling_std)
    if math.isnan(total):  # noise could hide the number of rows
        return _Errors(0.0, noise_std, sampling_std)
    return _Errors(normal.cdf((abs(effect) - reach) / total), noise_std, sampling_std)


def _result(outcome: _Outcome, test_plan: Plan, effect: float, size: int) -> ABPower:
    """Return the power of a planned test with its effect, size and budget."""
    errors = _errors(outcome, test_plan, effect, size)
    return ABPower(
        effect=effect,
        size=size,
        budget=test_plan.privacy.budget,
        power=errors.power,
        noise_std=errors.noise_std,
        sampling_std=errors.sampling_std,
        level=outcome.level,
    )


def _search_size(outcome: _Outcome, test_plan: Plan, effect: float, power: float) -> int:
    """Find the smallest number of rows per arm that reaches a given power."""

    def reaches(rows: int) -> bool:
        """Return whether this number of rows per arm reaches the power."""
        return _errors(outcome, test_plan, effect, rows).power >= power

    size = _least_whole(reaches, 2, _MOST_ROWS)
    if size is None:
        raise refuse("effect", effect, "an effect that some number of rows can show")
    return size


def _least_whole(condition: Callable[[int], bool], start: int, largest: int) -> int | None:
    """Find the least integer that meets a monotone condition, or None."""
    low = start
    high = start
    while not condition(high):
        low = high
        high = 2 * high
        if high > largest:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle
    return high


def _search_effect(outcome: _Outcome, test_plan: Plan, size: int, power: float) -> float:
    """Find approximately the smallest positive effect that a test detects.

    The test has the given power for this effect.
    """
    low = 0.0
    high = float(outcome.measure.high) - outcome.mean
    if _errors(outcome, test_plan, high, size).power < power:
        raise refuse(
            "size",
            size,
            "enough rows to show any effect with this power",
            "Take more rows or a larger budget.",
        )
    for _ in range(_EFFECT_STEPS):
        middle = (low + high) / 2
        if _errors(outcome, test_plan, middle, size).power >= power:
            high = middle
        else:
            low = middle
    return high


def _search_budget(
    outcome: _Outcome, test_plan: Plan, least: Least, effect: float, size: int, power: float
) -> ABPower:
    """Find the least budget of four digits that reaches a given power."""

    @cache
    def plan_of(epsilon_or_rho: Fraction) -> Plan:
        """Plan the test with a given epsilon or rho."""
        privacy = smallest_privacy(with_epsilon_or_rho(least, epsilon_or_rho))
        return plan_for_workload(test_plan.workload, test_plan, privacy)

    def reaches(epsilon_or_rho: Fraction) -> bool:
        """Return whether an epsilon or rho reaches the given power."""
        return _errors(outcome, plan_of(epsilon_or_rho), effect, size).power >= power

    if not reaches(_MOST_SIZE):
        enough = _search_size(outcome, plan_of(_MOST_SIZE), effect, power)
        raise InputError(
            f"No budget reaches this power with {size} rows in each arm: even without noise "
            f"{enough} rows are needed. Take more rows."
        )
    low = _LEAST_SIZE
    high = _MOST_SIZE
    while high / low > 1 + Fraction(1, 10 ** (_BUDGET_DIGITS + 1)):
        middle = Fraction(math.sqrt(float(low) * float(high)))
        if reaches(middle):
            high = middle
        else:
            low = middle
    step = Fraction(10) ** (math.floor(math.log10(high)) + 1 - _BUDGET_DIGITS)
    number = math.ceil(high / step) * step
    return _result(outcome, plan_of(number), effect, size)


def budget_of_text(parameter_texts: dict[str, str | None]) -> Budget | Least:
    """Parse the texts of epsilon, delta and rho; without any, return `Least`."""
    stated_sizes = {name: value for name, value in parameter_texts.items() if value is not None}
    if not stated_sizes or [*stated_sizes] == ["delta"]:
        return Least("epsilon", stated_sizes.get("delta"))
    if [*stated_sizes] == ["rho"]:
        return ZCDP(exact_positive("rho", stated_sizes["rho"]))
    if "rho" in stated_sizes:
        raise refuse("the budget", " and ".join(stated_sizes), "epsilon, epsilon and delta, or rho")
    if "delta" in stated_sizes:
        return ApproxDP(stated_sizes["epsilon"], stated_sizes["delta"])
    return PureDP(stated_sizes["epsilon"])


def budget_json(budget: Budget) -> dict[str, str]:
    """Return the parameters of a budget as exact texts, by name."""
    return {name: str(value) for name, value in parameters_by_name(budget).items()}
