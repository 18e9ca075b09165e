"""Turn a planner's proposal into a plan, or into the reason why there is none.

A planner proposes the queries to measure, so a fault in a planner can only cost accuracy.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from leastnoise._error import evaluate_plan
from leastnoise._families import NotApplicable
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms._planning_time import planning_passes
from leastnoise._mechanisms._search import Search
from leastnoise._plan import LinearPlan, Plan
from leastnoise._strategies import (
    PLANNERS,
    Planner,
    PlanningProblem,
    Strategy,
    counts_and_sums,
    deadline_passed,
    reweighted_strategy,
    split_units_budget,
)
from leastnoise._trusted.check import InputError, InternalError, message
from leastnoise._workload import Workload


def better_of_joint_and_separate(
    planner: Planner, problem: PlanningProblem, *, iterate: bool
) -> tuple[LinearPlan | None, InputError | None]:
    """Return the better plan of joint and separate sums, or else the reason.

    Counts and sums can be measured jointly, which is usually better. If neither plan exists, the
    result is None and the reason.
    """
    both = None
    separate_plan = None
    error = None
    if problem.workload.counted_sums:
        both, _ = _plan_proposal(partial(counts_and_sums, planner), problem, iterate=iterate)
    if both is None or not deadline_passed():
        separate_plan, error = _plan_proposal(planner.strategy, problem, iterate=iterate)
    plans = [plan for plan in (separate_plan, both) if plan is not None]
    if not plans:
        return None, error
    return min(plans, key=lambda plan: plan.expected_error().total_squared_error), None


def _plan_proposal(
    propose: Callable[[PlanningProblem], Strategy], problem: PlanningProblem, *, iterate: bool
) -> tuple[LinearPlan | None, InputError | None]:
    """Return the plan of a planner's proposal, or else the error that prevents it."""
    try:
        with not_applicable_if_arithmetic_fails():
            # Extreme weights or budgets may overflow in a search. Its result is checked exactly.
            with np.errstate(all="ignore"):
                proposal = propose(problem)
            blocks = split_units_budget(problem, proposal.blocks)
            fitted = fit_noise_scales(
                problem.workload.domain, problem.privacy, problem.noise, blocks
            )
            plan = evaluate_plan(
                problem.workload,
                fitted,
                proposal.name,
                details=proposal.details,
                may_iterate=iterate,
            )
            _check_finite(plan)
    except InputError as error:
        return None, error
    except MemoryError as error:
        return None, InputError(memory_error_reason(error))
    return plan, None


@contextmanager
def not_applicable_if_arithmetic_fails() -> Iterator[None]:
    """Convert arithmetic errors of a ``with`` block to NotApplicable.

    A planner proposes the queries to measure, so a fault in a planner can only cost accuracy.
    """
    try:
        yield
    except InputError:
        raise
    # LinAlgError is a ValueError. A weight that is not a number ends in an InternalError.
    except (ArithmeticError, ValueError, InternalError) as error:
        raise NotApplicable(
            message("its arithmetic failed ({fault})", fault=type(error).__name__)
        ) from error


def _check_finite(plan: Plan) -> None:
    """Raise ArithmeticError if a plan's expected error is infinite or NaN."""
    total = plan.expected_error().total_squared_error
    if not math.isfinite(total):
        raise FloatingPointError(f"the expected error is {total}")


def reweight_plan(plan: Plan, workload: Workload) -> LinearPlan:
    """Optimise the weights of a plan's measured tables for another workload.

    Planning is quick, because the strategies of the tables stay the same.
    """
    measured = plan.measured()
    with not_applicable_if_arithmetic_fails():
        proposal = reweighted_strategy(
            plan.strategy, workload, measured.blocks, measured.noise.norm
        )
        fitted = fit_noise_scales(workload.domain, plan.privacy, measured.noise, proposal.blocks)
        return evaluate_plan(workload, fitted, proposal.name)


def search_again(
    plan: Plan, workload: Workload, search: Search, seconds: float = math.inf
) -> LinearPlan:
    """Plan another workload with the strategy and budget of a plan."""
    planner = search.custom_planner or PLANNERS[plan.strategy]
    noise = plan.measured().noise
    time_limit_seconds = max(
        seconds / planning_passes(workload), planner.least_seconds(workload, noise.norm)
    )
    best, error = better_of_joint_and_separate(
        planner, PlanningProblem(workload, plan.privacy, noise, time_limit_seconds), iterate=True
    )
    if best is None:
        raise error if error is not None else InputError("No strategy can be used.")
    return best


def memory_error_reason(error: MemoryError) -> str:
    """Describe a MemoryError: the memory requested, and what users can do."""
    size = str(error).split(" for an array", 1)[0][:80]
    if size:
        at_once = f" ({size[:1].lower()}{size[1:]} at once)"
    else:
        at_once = ""
    return message(
        "it needs more memory than is available{at_once}; ask for fewer or smaller tables",
        at_once=at_once,
    )
