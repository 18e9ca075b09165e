"""Plans that also use the measurements of earlier releases of the data.

Every candidate strategy is compared by the error of an estimate from its measurements and the
earlier measurements. Then the budget is moved to the tables or blocks that lack precision. If the
error is a sum over residual spaces, the budget is moved between blocks. For all strategies, it is
also moved between tables.

Source: docs/mathematics.md, section 11.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from leastnoise._error import block_precisions, evaluate_plan
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms import Candidate, Search, choose_plan
from leastnoise._plan import (
    EarlierRelease,
    LinearPlan,
    PlanDetails,
    check_domain,
    check_earlier,
    check_noise,
    hidden_attributes,
    with_earlier_measures,
)
from leastnoise._planning._plan_cache import cached_candidates
from leastnoise._strategies import improve_weights
from leastnoise._trusted.accounting import Noise, Privacy, PureCost, rho_of_cost
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.measurements import Measurements, cost
from leastnoise._workload import Product, Workload, with_domain, with_hidden, workload_over

# The most candidates that are compared: the best without earlier releases.
_MOST_JUDGED = 8
# The most steps of the search for weights; a step costs two products with a matrix.
_MOST_WEIGHT_STEPS = 300
# A block is left out if its budget is below this share of the largest budget. The error changes by
# less than the square of the share.
_LEAST_SHARE = 1e-4
# A table is left out of the search if its squared weight falls below this share of its old value.
_LEAST_WEIGHT = Fraction(1, 1000)
_WEIGHT_BITS = 30
_MOST_WEIGHT_ROUNDS = 3  # the most rounds of new weights for tables
# No further round is tried after a smaller relative gain of the squared error.
_LEAST_RELATIVE_GAIN = 1e-4
_ROUND_SECONDS = 1 / 4  # the share of the planning time for each round


class _Problem(NamedTuple):
    """A workload and a budget to plan for, and the earlier releases to use."""

    workload: Workload
    privacy: Privacy
    earlier: tuple[EarlierRelease, ...]

    def evaluate(
        self, measurements: Measurements, strategy: str, details: PlanDetails, *, iterate: bool
    ) -> LinearPlan:
        """Return the plan of some measurements, with its expected error.

        The expected error is the error of the estimate from these and the earlier measurements.
        """
        return evaluate_plan(
            self.workload,
            measurements,
            strategy,
            details=details,
            may_iterate=iterate,
            earlier=self.earlier,
        )


def plan_after(workload: Workload, privacy: Privacy, search: Search) -> LinearPlan:
    """Plan a release that also uses the measurements of earlier releases.

    Args:
        workload: all queries to answer.
        privacy: the privacy of the new release; the earlier releases have already been paid for.
        search: the strategies to try, and the earlier releases.

    Raises:
        InputError: the earlier releases did not count the same rows in the same cells; or no
            strategy has their kind of noise.
    """
    attributes = {*workload.read_attributes}
    for release in search.earlier:
        check_domain(release, workload.domain)
    workload = with_domain(workload, with_earlier_measures(workload.domain, search.earlier))
    hidden = hidden_attributes(search.earlier, workload.domain, attributes)
    workload = workload_over(workload, with_hidden(workload.domain, hidden))
    check_earlier(search.earlier, workload.domain, privacy, attributes)
    problem = _Problem(workload, privacy, search.earlier)
    plans, best_separate = _candidate_plans(problem, search)
    latest = search.now() + search.seconds
    best = _best_joint_plan(problem, plans, lambda: search.now() > latest)
    best = min([best, *_with_block_weights(problem, plans)], key=_total)
    for _ in range(_MOST_WEIGHT_ROUNDS):
        if search.now() > latest:
            break
        further = _with_table_weights(problem, best, search)
        if further is None or not _total(further) < _total(best) * (1 - _LEAST_RELATIVE_GAIN):
            break
        best = further
    is_other_noise = best_separate.measurements.noise is not best.measurements.noise
    if is_other_noise and _total(best) > _total(best_separate):
        raise InputError(
            f"The earlier releases have {best.measurements.noise.value} noise. With this noise and "
            "the earlier releases, this plan would have a total squared error of "
            f"{_total(best):.4g}; with {best_separate.measurements.noise.value} noise and without "
            f"them, {_total(best_separate):.4g}. Leave out `after`. Nothing was spent."
        )
    return best


def _total(plan: LinearPlan) -> float:
    """Return the expected total squared error of a plan."""
    return plan.expected_error().total_squared_error


def _candidate_plans(problem: _Problem, search: Search) -> tuple[list[LinearPlan], LinearPlan]:
    """Return plans by error without earlier releases, and the best of any noise.

    Returns:
        The result has the plans with the same kind of noise as the earlier releases, and the best
        plan with any kind of noise.
    """
    fresh = replace(search, earlier=())
    tried: Sequence[Candidate]
    if search.custom_planner is None and search.strategy == "auto":
        tried = cached_candidates(problem.workload, problem.privacy, fresh, try_all=False)
    else:
        tried = choose_plan(problem.workload, problem.privacy, fresh)[1]
    plans = [candidate.plan for candidate in tried if candidate.plan is not None]
    best_separate = min(plans, key=_total)
    usable = _with_noise(tried, problem.earlier[0].measurements.noise)
    if not usable:
        check_noise(problem.earlier[0], best_separate.measurements.noise)
    unit_bound = max(plan.details.unit_bound for plan in usable)
    compatible = [
        replace(plan, details=replace(plan.details, unit_bound=unit_bound, high_errors={}))
        for plan in usable[:_MOST_JUDGED]
    ]
    return compatible, best_separate


def _best_joint_plan(
    problem: _Problem, plans: Sequence[LinearPlan], is_time_over: Callable[[], bool]
) -> LinearPlan:
    """Return the plan that has the least error together with earlier releases.

    A linear solver for the errors is used only if all plans need it. When the time limit is
    reached, the result is the best of the plans that were compared so far.
    """
    judged: list[LinearPlan] = []
    reason: InputError | None = None
    for plan, iterate in [*((plan, False) for plan in plans), (plans[0], True)]:
        if judged and (iterate or is_time_over()):
            continue
        try:
            joint = problem.evaluate(
                plan.measurements, plan.strategy, plan.details, iterate=iterate
            )
        except InputError as error:
            reason = reason or error
        else:
            judged.append(joint)
    if not judged and reason is not None:
        raise InputError(f"The earlier releases cannot be combined with a new release. {reason}")
    return min(judged, key=_total)


def _with_block_weights(problem: _Problem, plans: Sequence[LinearPlan]) -> list[LinearPlan]:
    """Redistribute each plan's budget over its blocks, given earlier releases.

    Plans whose errors have no known formula are left out.
    """
    weighted = []
    for plan in plans:
        joint = replace(plan, data_independent_error=None, earlier=problem.earlier)
        try:
            measurements = _weigh_blocks(problem.workload, joint)
            if measurements is not None:
                weighted.append(
                    problem.evaluate(measurements, plan.strategy, plan.details, iterate=False)
                )
        except InputError:  # the plan cannot be combined, or has no closed form
            continue
    return weighted


def _weigh_blocks(workload: Workload, plan: LinearPlan) -> Measurements | None:
    """Return measurements whose noise scales have the least joint error, or None.

    The error is the sum of c / (h + K theta^2) over the residual spaces, where h is the precision
    from the earlier releases. The result is None if the error does not have this form.
    """
    form = block_precisions(workload, plan.measured())
    if form is None:
        return None
    coefficient, precision = form
    blocks = plan.measurements.blocks
    norm = plan.measurements.noise.norm
    scales = np.array([float(block.scale) for block in blocks])
    costs = _block_costs(plan.measurements)
    costs /= (costs**norm).sum() ** (1 / norm)
    block_precision = precision[:, : len(blocks)]
    earlier_precision = precision[:, len(blocks) :].sum(axis=1)

    def errors(squares: FloatArray) -> tuple[float, FloatArray]:
        """Return the squared error for squared weights, and minus its gradient."""
        each = coefficient / (earlier_precision + block_precision @ squares)
        gains = np.divide(each**2, coefficient, out=np.zeros_like(each), where=coefficient > 0)
        return float(each.sum()), block_precision.T @ gains

    theta = improve_weights(np.ones(len(blocks)), errors, costs, norm, _MOST_WEIGHT_STEPS)
    shares = theta * costs
    weights = zip(blocks, theta / scales, shares > _LEAST_SHARE * shares.max(), strict=True)
    return fit_noise_scales(
        plan.domain,
        plan.privacy,
        plan.measurements.noise,
        [(block, float(weight)) for block, weight, is_used in weights if is_used],
    )


def _block_costs(measurements: Measurements) -> FloatArray:
    """Return each block's epsilon or, for Gaussian noise, the root of its rho."""
    costs = np.zeros(len(measurements.blocks))
    for number, block in enumerate(measurements.blocks):
        spent = cost(replace(measurements, blocks=(block,)))
        if isinstance(spent, PureCost):
            costs[number] = float(spent.epsilon)
        else:
            costs[number] = math.sqrt(rho_of_cost(spent))
    return costs


def _with_table_weights(problem: _Problem, plan: LinearPlan, search: Search) -> LinearPlan | None:
    """Plan with larger weights for tables that lack precision; None on failure.

    For a table, let p be the precision of the plan's own measurements, u = 1 / p their error, and v
    the error of all measurements. The derivatives of v and u with respect to p are -v^2 and -u^2.
    So a strategy that ignores the earlier releases, but multiplies the weights by v / u, has the
    same first-order conditions.

    Returns:
        The plan; None if all tables need the same additional precision, or if no plan was found.
    """
    products = _reweighted_tables(problem.workload, plan)
    if products is None:
        return None
    weighted = Workload(problem.workload.domain, products)
    strategy = search.strategy if search.strategy == "auto" else plan.strategy
    quicker = replace(
        search, strategy=strategy, seconds=search.seconds * _ROUND_SECONDS, earlier=()
    )
    try:
        tried = choose_plan(weighted, problem.privacy, quicker)[1]
        usable = _with_noise(tried, plan.measurements.noise)
        if not usable:
            return None
        best_plan = usable[0]
        return problem.evaluate(
            best_plan.measurements, best_plan.strategy, plan.details, iterate=False
        )
    except InputError:
        return None


def _with_noise(tried: Sequence[Candidate], noise: Noise) -> list[LinearPlan]:
    """Return the plans with a given kind of noise, least error first."""
    plans = [candidate.plan for candidate in tried if candidate.plan is not None]
    return sorted((plan for plan in plans if plan.measurements.noise is noise), key=_total)


def _reweighted_tables(workload: Workload, plan: LinearPlan) -> tuple[Product, ...] | None:
    """Return tables weighted by the error that earlier releases leave, or None.

    Tables that need almost no precision are left out. The result is None if all weights change by
    the same factor.
    """
    answered: list[tuple[Product, float]] = []
    for product, table in zip(workload, plan.expected_error().tables, strict=True):
        alone = Workload(workload.domain, (product,))
        try:
            own_error = evaluate_plan(alone, plan.measurements, may_iterate=False).expected_error()
        except InputError:  # the plan leaves this table to the earlier releases
            continue
        if own_error.tables[0].rmse > 0:
            answered.append((product, (table.rmse / own_error.tables[0].rmse) ** 2))
    factors = [factor for _, factor in answered]
    if not factors or (
        len(factors) == len(workload.products) and np.ptp(factors) < _LEAST_RELATIVE_GAIN
    ):
        return None
    largest = max(factors)
    products = []
    for product, factor in answered:
        exact = Fraction(round(factor / largest * 2**_WEIGHT_BITS), 2**_WEIGHT_BITS)
        if exact >= _LEAST_WEIGHT:
            products.append(replace(product, weight=product.weight * exact))
    return tuple(products)
