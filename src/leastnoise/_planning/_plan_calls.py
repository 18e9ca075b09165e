"""The public calls of planning: `plan` and `compare`.

These functions read no data.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from leastnoise._domain import PerCellBound
from leastnoise._error import (
    LEVEL,
    UnsupportedQuery,
    checked_level,
    covariance_by_measure,
    evaluate_plan,
)
from leastnoise._mechanisms import (
    SECONDS,
    Search,
    StrategyComparison,
    memory_error_reason,
    planning_seconds,
    try_strategies,
    with_best_lower_bounds,
)
from leastnoise._plan import (
    AdaptivePlan,
    EarlierRelease,
    HasMeasurements,
    LinearPlan,
    Plan,
    checked_guard_share,
    without_guard,
)
from leastnoise._planning._after import plan_after
from leastnoise._planning._comparison_targets import read_targets
from leastnoise._planning._plan_cache import (
    cache_file,
    cached_candidates,
    cached_choice,
    cached_plan,
)
from leastnoise._planning._targets import (
    OBJECTIVES,
    Least,
    balanced_seconds,
    plan_least_budget,
    smallest_privacy,
)
from leastnoise._progress import show_planning
from leastnoise._strategies import OWN, PLANNERS, Own, user_planner
from leastnoise._threads import one_thread
from leastnoise._trusted.accounting import (
    BUDGET_FORMS,
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Privacy,
    PureDP,
)
from leastnoise._trusted.check import Exact, InputError, message, one_of, refuse
from leastnoise._workload import Workload, with_hidden_cells

_MOST_DIGITS = 10  # the longest text of a size, because 10^10 exceeds the cells of any attribute
_MARGINALS = "marginals"  # its tables can be combined with all public counts


def per_cell(
    workload: Workload, max_rows: int, attributes: Sequence[str] | str | None
) -> PerCellBound:
    """Return a bound on how many rows of a unit may be in one cell.

    If no attributes are named, a cell is a combination of values of the attributes that all tables
    have.
    """
    if attributes is not None:
        return PerCellBound(max_rows, attributes)
    shared = set.intersection(*({*product.attributes} for product in workload))
    if not shared:
        raise InputError(
            'max_per_cell must name the attributes of a cell, such as cell = ["month"], because '
            "the tables have no attribute in common. The limit reduces the noise only of tables "
            "with all these attributes, but cuts rows of all tables. Name the attributes, or "
            "leave max_per_cell out."
        )
    return PerCellBound(max_rows, [name for name in workload.domain.names if name in shared])


def _check_rows_per_cell(workload: Workload, privacy: Privacy | Least) -> None:
    """Raise if a bound on a unit's rows per cell helps no table.

    Also raise if the cells cannot contain ``max_rows`` rows within this bound.
    """
    bound = privacy.max_per_cell
    if bound is None:
        return
    cells = bound.rows * math.prod(workload.domain.kind(name).size for name in bound.attributes)
    names = ", ".join(bound.attributes)
    if not any({*bound.attributes} <= {*product.attributes} for product in workload):
        advice = (
            "Tables that lack one of its attributes have the noise of max_rows. So the bound would "
            "leave out rows for no gain; leave out max_per_cell."
        )
        raise refuse("the cell of max_per_cell", names, "attributes of one requested table", advice)
    if not privacy.max_rows <= cells:
        raise refuse(
            "max_rows",
            privacy.max_rows,
            f"at most {cells}: {bound.rows} in each cell of {names}",
            "A larger number cannot be reached under this bound.",
        )


def with_max_rows(privacy: Privacy | Least, rows_text: str) -> Privacy | Least:
    """Return the privacy with another bound ``max_rows`` on a unit's rows.

    ``rows_text`` is the number as text. If the bound on the rows in a cell exceeds the new number,
    the bound is lowered to this number.
    """
    if privacy.unit_column is None:
        raise InputError(
            "--max-rows limits the rows of a unit, but in this spec every row is a unit. Name "
            "the column of the unit in [privacy] unit."
        )
    if not rows_text.isascii() or not rows_text.isdigit() or len(rows_text) > _MOST_DIGITS:
        raise refuse("max_rows", rows_text, "a whole number of at least 1")
    rows = int(rows_text)
    bound = privacy.max_per_cell
    if bound is None:
        cell = None
    else:
        cell = PerCellBound(max(1, min(bound.rows, rows)), bound.attributes)
    return replace(privacy, max_rows=rows, max_per_cell=cell)


def without_cell_bound(privacy: Privacy) -> Privacy:
    """Return the privacy without its bound on a unit's rows in a cell."""
    return replace(privacy, max_per_cell=None)


@one_thread()
def plan(
    workload: Workload,
    budget: Budget | Privacy | Least,
    *,
    strategy: str | Own = "auto",
    objective: str = "total",
    level: float = LEVEL,
    targets: Mapping[str, Any] | None = None,
    seconds: float = SECONDS,
    guard: Exact | None = None,
    after: Sequence[HasMeasurements] = (),
    progress: Callable[[str], None] | None = None,
) -> Plan:
    """Return the public plan of a release, with its expected error.

    Args:
        workload: the requested queries.
        budget: one of three: PureDP, ApproxDP, ZCDP or GDP, if every row is a privacy unit that may
            be added or removed; a Privacy with one of these budgets, the unit and the neighbours;
            or Least, for the least budget that meets the targets of the workload.
        strategy: "auto" for the least expected error, or the name of a strategy. Data-dependent
            mechanisms such as "dawa" are used only by name. A user-supplied strategy is also
            possible: an array (queries x cells), if the workload has only one attribute; a mapping
            from attributes to arrays or query sets; or a function that returns one of these for a
            planning problem with ``workload``, ``privacy``, ``noise`` and ``norm``. Whole numbers
            are measured unchanged; real numbers are scaled to norm 1 and rounded to multiples of
            2^-20. The plan then has the strategy name "own".
        objective: "total" minimises the total squared error. "worst" minimises the largest ratio of
            a table's error to its target. If there are no targets, each error is divided by the
            error that the table would have if only this table were planned. "relative" minimises
            errors relative to the public sizes of the tables.
        level: the confidence level of the intervals whose half width a margin limits, for the
            objective "worst"; `Least` has a separate level.
        targets: targets of differences and ratios, in the form of ``[targets]`` of a spec, for
            `Least` and for the objective "worst"; `target_errors` shows which targets a plan meets.
        seconds: how many CPU seconds of one core "auto" may take, approximately. The time of each
            strategy is an estimate, so the plan is the same on every machine. The plan names the
            searches that were ended because planning took ten times these seconds. A strategy
            whose error reaches the lower bound may take four times as long. With more seconds the
            error may be smaller; `compare` lists the strategies that were left out.
        guard: the share of the budget, such as "1/100", that pays for the guard of `release`; the
            plan gets the remaining budget.
        after: earlier releases of the same data, for example from `read_release`, with the same
            domain, unit, neighbours and kind of noise. Their measurements are also used. The budget
            is spent on the tables that lack precision, and the expected error and the answers use
            all measurements together. Only the new measurements are paid for. The same ledger must
            pay for all of these releases.
        progress: a function that is called with the name of every strategy before it is tried.
            Without it, a notebook shows steps that take over a second below its cell.

    Returns:
        The plan, with ``expected_error()``, ``lower_bound()`` and ``to_json()``. If the same plan
        was made before, it is read from the user's cache folder. The plan of a data-dependent
        mechanism has no expected error, but ``plan.adaptive.reference`` summarises the best
        data-independent plan.

    Raises:
        InputError: an argument cannot be used.

    >>> made = ln.plan(ln.marginals(ln.Domain(sex=["F", "M"]), ways=1), ln.PureDP(1))
    >>> made.strategy, round(made.expected_error().total_squared_error, 2)
    ('identity', 3.68)
    """
    share = checked_guard_share(guard)
    checked_workload, stated_budget = _checked_arguments(workload, budget)
    privacy = (
        stated_budget if isinstance(stated_budget, Least) else without_guard(stated_budget, share)
    )
    if isinstance(strategy, str):
        search = Search(strategy, seconds)
    else:
        search = Search(OWN, seconds, custom_planner=user_planner(strategy))
    search = replace(
        search,
        comparisons=read_targets(checked_workload, targets),
        earlier=_earlier_releases(after),
    )
    with show_planning(
        progress, lambda: expected_seconds(checked_workload, privacy, search, objective)
    ) as report_strategy:
        return plan_workload(
            checked_workload,
            privacy,
            replace(search, progress=report_strategy),
            objective,
            checked_level(level),
        )


def _earlier_releases(after: object) -> tuple[EarlierRelease, ...]:
    """Return the measurements of the releases in the argument ``after``.

    Raise if the argument has another type.
    """
    if not isinstance(after, (list, tuple)) or not all(
        hasattr(release, "as_earlier") for release in after
    ):
        raise refuse(
            "after",
            type(after).__name__,
            "a list of releases, such as [leastnoise.read_release('release-2025')]",
        )
    return tuple(release.as_earlier() for release in after)


def expected_seconds(
    workload: Workload, privacy: Privacy | Least, search: Search, objective: str = "total"
) -> float:
    """Estimate the CPU seconds of `plan_workload`; 0 if data-dependent."""
    if isinstance(privacy, Least):
        return balanced_seconds(workload, smallest_privacy(privacy), search)
    estimate_seconds = planning_seconds
    if objective != "total":
        estimate_seconds = OBJECTIVES[objective][1]
    return estimate_seconds(workload, privacy, search)


def _checked_arguments(workload: object, budget: object) -> tuple[Workload, Privacy | Least]:
    """Check the workload and the budget of a public call, and return them."""
    if not isinstance(workload, Workload):
        raise refuse(
            "workload",
            type(workload).__name__,
            "a workload, such as leastnoise.marginals(domain, ways=2)",
        )
    if isinstance(budget, (PureDP, ApproxDP, ZCDP, GDP)):
        return workload, Privacy(budget)
    if not isinstance(budget, (Privacy, Least)):
        raise refuse(
            "budget",
            budget,
            f"{BUDGET_FORMS}, or a Privacy with one of them",
        )
    return workload, budget


def plan_workload(
    workload: Workload,
    privacy: Privacy | Least,
    search: Search,
    objective: str = "total",
    level: float = LEVEL,
) -> Plan:
    """Plan a workload with the given options, and record how it was planned."""
    one_of("objective", objective, ("total", *OBJECTIVES))
    workload = workload_to_plan(workload, search)
    _check_rows_per_cell(workload, privacy)
    strategy = search.strategy
    if is_data_dependent(strategy) and (objective != "total" or isinstance(privacy, Least)):
        raise refuse(
            "strategy",
            strategy,
            "one whose error is known beforehand",
            "Targets and objectives refer to errors that are known before the release.",
        )
    if is_data_dependent(strategy) and search.comparisons:
        raise refuse(
            "strategy",
            strategy,
            "one whose error does not depend on the data, for targets of differences and ratios",
            "Leave strategy out, or leave [targets] out.",
        )
    if search.impossible and is_data_dependent(strategy) and strategy != "model":
        raise refuse(
            "strategy",
            strategy,
            "'model' or a data-independent strategy, for a spec with [[impossible]]",
            "Leave strategy out to let auto choose.",
        )
    if search.public and is_data_dependent(strategy) and strategy != "model":
        raise refuse(
            "strategy",
            strategy,
            "'model' or a data-independent strategy, for a spec with [[public]]",
            "Leave strategy out to let auto choose.",
        )
    if search.earlier:
        _check_combination(privacy, search, objective)
    try:
        chosen_plan = _plan_with_public_counts(workload, privacy, search, objective, level)
    except MemoryError as error:
        raise InputError(
            message("This workload cannot be planned: {why}.", why=memory_error_reason(error))
        ) from None
    if search.impossible and isinstance(chosen_plan, LinearPlan):
        return replace(
            chosen_plan, details=replace(chosen_plan.details, impossible=search.impossible)
        )
    return chosen_plan


def _plan_with_public_counts(
    workload: Workload, privacy: Privacy | Least, search: Search, objective: str, level: float
) -> Plan:
    """Plan a workload, with public counts or earlier releases if there are any."""
    if search.earlier and isinstance(privacy, Privacy):
        return plan_after(workload, privacy, search)
    result = _plan_cached(workload, privacy, search, objective, level)
    if not search.public or isinstance(result, AdaptivePlan):
        return result
    try:
        return _with_public_counts(result, search.public)
    except UnsupportedQuery:
        if search.strategy == _MARGINALS:
            raise
        # Tables of cells can be combined with public counts of any groups.
        return _with_public_counts(
            _plan_cached(workload, privacy, replace(search, strategy=_MARGINALS), objective, level),
            search.public,
        )


def _check_combination(privacy: Privacy | Least, search: Search, objective: str) -> None:
    """Raise for options that cannot be combined with earlier releases."""
    reason = ""
    if isinstance(privacy, Least):
        reason = "a least budget, because it is found for one release"
    elif objective != "total":
        reason = f"the objective {objective!r}, because its weights are found for one release"
    elif is_data_dependent(search.strategy):
        reason = (
            f"the strategy {search.strategy!r}, because it chooses its measurements by noisy "
            "values, and the error of a joint estimate is then unknown"
        )
    elif search.public:
        reason = "[[public]], because its counts are exact for one release"
    elif search.comparisons:
        reason = "[targets], because their least budget is found for one release"
    if reason:
        raise InputError(
            f"A plan after earlier releases cannot have {reason}. Leave that out, or leave out "
            "`after`. Nothing was spent."
        )


def workload_to_plan(workload: Workload, search: Search) -> Workload:
    """Add to the workload's domain the hidden cells that must be measured."""
    return with_hidden_cells(
        workload, attributes_of_public_counts(search.public), _decision_attributes(workload, search)
    )


def error_over_complete(plan: Plan, search: Search) -> float | None:
    """Return the factor by which hidden cells increase the error, or None.

    The result is the error divided by the error that the plan would have if no row lacked a value.
    The second error belongs to a plan with the same strategy and a quarter of the seconds. The
    result is None if no attribute has a hidden cell, or if the errors depend on the data.
    """
    incomplete = [name for name in plan.domain.names if plan.domain.kind(name).hidden]
    if isinstance(plan, AdaptivePlan) or not incomplete or plan.strategy not in PLANNERS:
        return None
    if isinstance(plan, LinearPlan) and plan.earlier:
        return None
    complete = with_hidden_cells(plan.workload, incomplete)
    quicker = replace(search, strategy=plan.strategy, seconds=search.seconds / 4)
    try:
        complete_plan = _plan_cached(complete, plan.privacy, quicker, "total", LEVEL)
    except InputError:
        return None
    errors = [each.expected_error().total_squared_error for each in (plan, complete_plan)]
    if errors[1] > 0:
        return math.sqrt(errors[0] / errors[1])
    return None


def _decision_attributes(workload: Workload, search: Search) -> tuple[str, ...]:
    """Return the attributes that a mechanism reads for its private choices."""
    if not is_data_dependent(search.strategy):
        return ()
    from leastnoise._mechanisms import mechanism_for  # slow: loads all mechanisms

    return mechanism_for(search.strategy, workload).decision_attributes(workload)


def attributes_of_public_counts(public: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the attributes of all tables whose counts are public.

    Every row is in one of the cells of these attributes.
    """
    return set(chain.from_iterable(entry["table"]["queries"] for entry in public))


def _with_public_counts(plan: Plan, public: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan with an estimator that also uses the public counts.

    The expected error of the plan is computed again.
    """
    from leastnoise._estimation import read_public  # slow to import

    if None not in plan.workload.measures:
        raise InputError(
            "Public counts need tables that count rows; this workload has only sums or counts of "
            "units. Add a table of rows, or leave [[public]] out."
        )
    exact = [table.block for table in read_public(plan.domain, public)]
    if any(
        covariance.solver_cells
        for covariance in covariance_by_measure(plan.workload, plan.measured(), exact).values()
    ):
        raise UnsupportedQuery("The measurements cannot be combined with the public counts.")
    return evaluate_plan(
        plan.workload,
        plan.measured(),
        plan.strategy,
        details=replace(plan.details, public=tuple(public)),
        public_counts=exact,
    )


def _plan_cached(
    workload: Workload, privacy: Privacy | Least, search: Search, objective: str, level: float
) -> Plan:
    """Return the plan for an objective, from the cache or by planning.

    If the objective is not the total squared error, the details of the plan name it.
    """
    if isinstance(privacy, Least):  # not cached: a plan cannot prove that its budget is the least
        if objective != "total":
            raise refuse(
                "objective",
                objective,
                "left out with a Least budget, which is the least that meets every target",
            )
        result = plan_least_budget(workload, privacy, search)
        return replace(result, details=replace(result.details, objective="least"))
    if (objective, search.strategy) == ("total", "auto"):
        return cached_choice(workload, privacy, search)

    def make() -> Plan:
        """Plan without the cache."""
        from leastnoise._mechanisms import mechanism_for

        if objective == "total":
            return mechanism_for(search.strategy, workload).plan(workload, privacy, search)
        result = OBJECTIVES[objective][0](workload, privacy, search, level)
        return replace(result, details=replace(result.details, objective=objective))

    if search.custom_planner is None:
        comparisons = [target.to_json() for target in search.comparisons]
        cache_path = cache_file(workload, privacy, search, objective, level, comparisons)
    else:
        cache_path = None
    return cached_plan(cache_path, workload, privacy, make)


def is_data_dependent(strategy: str) -> bool:
    """Return whether a strategy name is the name of a data-dependent mechanism."""
    if strategy == "auto":
        return False
    # Imported late because it is slow: it loads all mechanisms.
    from leastnoise._mechanisms import BY_NAME

    return strategy in BY_NAME


@one_thread()
def compare(
    workload: Workload,
    budget: Budget | Privacy | Least,
    progress: Callable[[str], None] | None = None,
    *,
    seconds: float = SECONDS,
    by_name: bool = False,
    custom_strategy: Own = None,
) -> StrategyComparison:
    """Plan a workload with every strategy; return the candidates by error.

    Strategies that do not apply come last, with the reason.

    Args:
        workload: the workload to plan for.
        budget: PureDP, ApproxDP, ZCDP or GDP, if every row is a privacy unit; otherwise a Privacy
            with one of these budgets.
        progress: a function that is called with the name of every strategy before it is tried.
        seconds: the CPU seconds of one core that all strategies together may take, according to
            estimates.
        by_name: also try the strategies that ``auto`` does not try.
        custom_strategy: also try this user-supplied strategy, in the form that `plan` accepts.

    Returns:
        One candidate for each strategy, with its plan and expected error, or the reason why it does
        not apply. ``frame()`` returns the candidates as a data frame.

    Raises:
        InputError: an argument cannot be used.

    >>> workload = ln.marginals(ln.Domain(sex=["F", "M"]), ways=1)
    >>> sorted(c.strategy for c in ln.compare(workload, ln.PureDP(1)) if c.plan)
    ['identity', 'marginals', 'workload']
    """
    workload, privacy = _checked_arguments(workload, budget)
    if isinstance(privacy, Least):
        raise refuse(
            "budget",
            f"the least {privacy.of}",
            "a budget, because strategies are compared at one budget",
        )
    _check_rows_per_cell(workload, privacy)
    workload = with_hidden_cells(workload)
    search = Search(seconds=seconds)
    with show_planning(
        progress, lambda: expected_seconds(workload, privacy, search)
    ) as report_strategy:
        candidates = [
            *cached_candidates(workload, privacy, replace(search, progress=report_strategy))
        ]
        for name in (
            planner.name for planner in PLANNERS.values() if by_name and not planner.automatic
        ):
            candidates += try_strategies(workload, privacy, name, progress=report_strategy)
        if custom_strategy is not None:
            candidates += try_strategies(
                workload, privacy, user_planner(custom_strategy), progress=report_strategy
            )
    return StrategyComparison(
        sorted(with_best_lower_bounds(candidates), key=lambda candidate: candidate.total)
    )
