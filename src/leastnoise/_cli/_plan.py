"""The commands that read no data.

``plan``, ``compare``, ``audit`` and ``studio``.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import click

from leastnoise._audit import Audit
from leastnoise._cli._main import FAULT, MISSED_TARGET
from leastnoise._cli._output import (
    FILE,
    cache_option,
    check_new_file,
    display_path,
    format_noise,
    format_number,
    json_option,
    plan_with_progress,
    print_facts,
    print_json,
    print_table,
    print_warnings,
    read_command_spec,
    spec_argument,
    spec_option,
    write_new_file,
)
from leastnoise._domain import UnitCount
from leastnoise._error import (
    LEVEL,
    StatisticError,
    interval_multiplier,
    memory_limit,
    statistic_errors,
)
from leastnoise._facts import format_facts, list_facts
from leastnoise._frames import pluralize
from leastnoise._mechanisms import (
    BY_NAME,
    Candidate,
    Explanation,
    largest_rank_errors,
    mechanism_of,
)
from leastnoise._plan import (
    AdaptivePlan,
    EarlierRelease,
    LinearPlan,
    Plan,
    SearchPlan,
    StepChoice,
    Steps,
    TableError,
    checked_guard_share,
    with_guard,
)
from leastnoise._planning import (
    ComparisonStatus,
    Price,
    TargetStatus,
    comparison_statuses,
    error_over_complete,
    expected_seconds,
    missed_targets,
    period_errors,
    plan_for_workload,
    statistic_std_errors,
    statistic_target_statuses,
    table_prices,
    target_statuses,
    with_epsilon_or_rho,
    with_max_rows,
)
from leastnoise._planning import compare as compare_strategies
from leastnoise._progress import Progress
from leastnoise._release import (
    ENGLISH,
    Catalogue,
    check_options,
    describe_bounds_search,
    describe_plan,
    describe_risk,
    describe_search_chances,
    error_over_bound,
    format_public_facts,
    format_ratio,
    name_attribute,
    name_rows,
    name_summed,
    published_part,
    statistic_title,
    table_title,
    unit_of_sums,
    write_record,
)
from leastnoise._session import (
    GuardForecast,
    check_writable,
    estimate_planning_seconds,
    forecast_guard,
    optional_attributes,
    plan_spec,
    read_spec,
    unit_total_measures,
    warnings_after_planning,
    warnings_before_planning,
)
from leastnoise._session import audit as audit_plan
from leastnoise._spec import Spec, plan_bounds_searches, plan_category_searches
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    Budget,
    Charge,
    charge_of_budget,
    charge_text,
    parameters_by_name,
    step_charge,
)
from leastnoise._trusted.check import InputError, number_text, readable, refuse
from leastnoise._trusted.measurements import cost, split_by_quantity
from leastnoise._workload import Product, Statistic, leaves_out

_MOST_VALUES = 8  # values of --budgets or --max-rows
_MOST_TABLES = 40  # rows that are printed; --json has all
_HEADING_WIDTH = 18  # characters of a title above a column of periods
_MOST_PERIODS = 24  # periods of a series that are printed; --json has all
_LEAST_GAIN = 1.001  # ratio of errors from which complete attributes are proposed
# If rounded noise scales cost a millionth less than the budget, the budget is shown as the cost.
_NEARLY_ALL = Fraction(10**6 - 1, 10**6)
_EXISTS = "Choose another file, or remove it first."
_MEASURES = {
    "epsilon": "epsilon",
    "mu": "mu, the Gaussian's shift in units of its noise",
    "rho": "rho",
}
_BY_DELTA = (
    "std_error of a mean in a group of size rows, at most: by the delta method, at the largest "
    "mean that the bounds allow"
)
_BY_DELTA_OF_VARIANCE = (
    "std_error of a variance (squared values) in a group of size rows, at most: by the delta "
    "method, at the mean and variance within the bounds at which it is largest"
)
_BY_DELTA_OF_COVARIANCE = (
    "std_error of a covariance (products of values) in a group of size rows with all values, at "
    "most: by the delta method, at the means and covariance within the bounds at which it is "
    "largest; std_error is the largest of parts"
)
_AT_PUBLIC_SCALES = (
    "std_error of a coefficient in a group of size rows with all values, by the delta method, at "
    "public scales: means in the middle of the bounds, standard deviations as stated in scales or "
    "a quarter of the distance of the bounds, predictors without correlation that explain the "
    "response wholly and in equal parts; std_error is the largest of parts"
)
_BY_SHARE = "rows: standard error of the counts up to a cell; std_error is their share of size rows"
_METHODS = {
    "means": _BY_DELTA,
    "variances": _BY_DELTA_OF_VARIANCE,
    "correlations": _BY_DELTA_OF_COVARIANCE,
    "regression": _AT_PUBLIC_SCALES,
}
_AUDIT_STATISTIC = (
    "likelihood ratio, threshold chosen on one half of the trials, Clopper-Pearson on the other"
)
_WITHOUT_EARLIER = (
    "These are the errors of one release. `leastnoise plan` also counts the earlier releases that "
    "the spec names in after."
)
_WITHIN_CLAIM = "no bound is above its claim"
_ABOVE_CLAIM = "MORE IS LOST THAN IS CLAIMED"
_NO_LOOK = (
    "Choose max_rows from public knowledge of how many rows people have. A lower limit leaves out "
    "more rows of a unit, which these errors do not count. Do not read the number off the data: "
    "that would be a release that nobody paid for."
)
_STEPS = {
    "test": "measure how much structure the data have (the least cost of any partition)",
    "levels": "measure blocks of several widths, and shrink the differences between them",
    "buckets": "measure the buckets",
    "blocks": "measure a few blocks",
    "parts": "divide each block by its noisy count, and measure the parts and groups of parts",
    "total": "count the rows",
    "alone": "measure a table of each attribute",
    "pairs": "measure pairs of attributes on bins that hold about half as many rows as their "
    "noise, and fit a model",
    "threes": "measure tables of three attributes on bins",
    "independent": "measure the plan that does not look at the data",
    "tail": "count the records in the tail, and choose the threshold of least predicted error",
    "sums": "measure the sums of values cut at the threshold, with a strategy for that threshold",
    "groups": "measure buckets of the number below the threshold, by group; each group adds up the "
    "buckets that probably exceed their noise",
    "number": "measure sums along the number, without the empty buckets; each bucket is up to 1.6 "
    "times as high as the last",
}
_CASES = {  # the data that lead to each alternative
    "independent": "no structure:",
    "adaptive": "much structure:",
    "blocks": "some structure:",
    "model_bins": "cells of few rows:",
    "model_fuller": "cells of rather few rows:",
    "model_tables": "cells of many rows:",
}


@click.command(
    epilog="The output has the rmse of every table and a lower bound. Tables are named after their "
    "queries, such as prefix or identity."
)
@spec_argument
@json_option
@click.option("--out", type=FILE, help="Also write the plan to this new file.")
@click.option("--epsilon", help="Plan for this epsilon instead of the spec's.")
@click.option(
    "--budgets",
    help="Also show the errors at other budgets of the same kind, such as 0.1,1,10. The "
    "strategy stays the same.",
)
@click.option(
    "--max-rows",
    help="Also show the errors for other values of max_rows, such as 1,2,4,8. Plans once for each.",
)
@click.option(
    "--prices",
    is_flag=True,
    help="Also show the cost of every table: on its own, and the saving without it. Plans many "
    "times.",
)
@spec_option
@cache_option
def plan(
    path: Path,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    out: Path | None,
    epsilon: str | None,
    **comparisons: Any,
) -> None:
    """Show the expected error of every table; this spends nothing.

    Reads only the spec file; the data need not exist. `queries.sql --spec people.toml` plans SQL
    statements on the domain of that spec.
    """
    spec: Spec = read_command_spec(path)
    check_writable(spec)
    if epsilon is not None:
        spec = _with_epsilon(spec, epsilon)
    if out is not None:
        check_new_file(out, _EXISTS)
    early_warnings = warnings_before_planning(spec)
    print_warnings(early_warnings)
    plan, seconds = plan_with_progress(spec)
    check_options(plan, spec.options)
    if out is not None:
        write_new_file(out, plan.to_json() + "\n", _EXISTS)
    late_warnings = warnings_after_planning(spec, plan)
    print_warnings(late_warnings)
    preview = _Preview(
        plan,
        seconds,
        spec.options.level,
        _guard_forecast(spec, plan),
        error_over_complete(plan, spec.search()),
        _preview_searches(spec),
        *_requested_comparisons(plan, spec, **comparisons),
        comparison_statuses(plan, spec.targets, spec.options.level),
        spec.options.terminal_catalogue,
        checked_guard_share(spec.options.guard),
    )
    if as_json:
        print_json({**_preview_json(preview), "warnings": [*early_warnings, *late_warnings]})
    else:
        _print_preview(preview)
        if out is not None:
            click.echo(f"The plan is in {display_path(out)}.")
    if missed_targets(plan, spec.options.level):
        click.get_current_context().exit(MISSED_TARGET)


class _Preview(NamedTuple):
    """A plan, and the further results that the options of ``plan`` request."""

    plan: Plan
    seconds: float
    level: float
    guard: GuardForecast | None
    error_over_complete: float | None
    searches: "list[_CategorySearchPreview | _BoundsSearchPreview]"
    plans_by_max_rows: dict[str, Plan]
    plans_by_budget: dict[str, Plan]
    prices: tuple[Price, ...]
    targets: tuple[ComparisonStatus, ...] = ()
    catalogue: Catalogue = ENGLISH
    guard_budget_share: Fraction | None = None


def _with_epsilon(spec: Spec, epsilon: str) -> Spec:
    """Return a copy of a spec with another epsilon."""
    privacy = with_epsilon_or_rho(spec.privacy, epsilon)
    if isinstance(privacy.budget, ZCDP):
        raise InputError(
            "--epsilon replaces the epsilon of the spec; this spec has a budget of rho."
        )
    if isinstance(privacy.budget, GDP):
        raise InputError(
            "--epsilon replaces the epsilon of the spec; this spec has a budget of mu squared, or "
            "takes a share of its budget. Change the budget or the share in the spec."
        )
    return replace(spec, privacy=privacy)


def _guard_forecast(spec: Spec, plan: Plan) -> GuardForecast | None:
    """Return the expected cost and accuracy of the spec's guard, if it has one."""
    share = checked_guard_share(spec.options.guard)
    if share is None:
        return None
    return forecast_guard(
        plan.privacy, share, spec.options.rows, optional_attributes(plan), unit_total_measures(plan)
    )


def _preview_json(preview: _Preview) -> dict[str, Any]:
    """Return a preview as the JSON object of ``plan --json``."""
    guard = {}
    if preview.guard is not None:
        guard = asdict(preview.guard)
    optional: dict[str, Any] = {
        "guard": guard,
        "searches": [write_record(search) for search in preview.searches],
        "periods": period_errors(preview.plan),
        "budgets": [_errors_json(plan) for plan in preview.plans_by_budget.values()],
        "max_rows": [_errors_json(plan) for plan in preview.plans_by_max_rows.values()],
        "prices": [asdict(price) for price in preview.prices],
        "targets": [{"name": status.name, **_target_json(status)} for status in preview.targets],
    }
    present = {name: value for name, value in optional.items() if value}
    if preview.error_over_complete is not None:
        present["error_over_complete"] = preview.error_over_complete
    return {
        **_plan_json(
            preview.plan,
            preview.seconds,
            preview.level,
            preview.guard_budget_share,
            has_searches=bool(preview.searches),
        ),
        **present,
    }


def _target_json(status: TargetStatus | ComparisonStatus | None) -> dict[str, Any]:
    """Return a target, the error that it limits, and whether it is met, as JSON."""
    if status is None:
        return {}
    error = status.error if math.isfinite(status.error) else None
    return {"target": {status.kind: status.most}, status.kind: error, "is_met": status.is_met}


def _print_comparison_targets(statuses: Sequence[ComparisonStatus]) -> None:
    """Print the expected errors of differences and ratios that have targets."""
    if not statuses:
        return
    rows = [[status.name, _describe_target(status)] for status in statuses]
    print_table("", [("follows from the tables", "fold"), ("target", "left")], rows)


def _print_preview(preview: _Preview) -> None:
    """Print a preview as tables and sentences."""
    print_plan(
        preview.plan,
        preview.seconds,
        preview.level,
        preview.guard,
        preview.catalogue,
        preview.guard_budget_share,
        has_searches=bool(preview.searches),
    )
    _print_comparison_targets(preview.targets)
    _print_cost_of_hidden_cells(preview.plan, preview.error_over_complete)
    _print_periods(preview.plan, preview.catalogue)
    _print_error_comparison("rmse under other budgets", preview.plans_by_budget)
    _print_error_comparison(
        "rmse for other limits of rows per unit", preview.plans_by_max_rows, show_budgets=True
    )
    if preview.plans_by_max_rows:
        click.echo(click.wrap_text(_NO_LOOK, 78))
    if preview.prices:
        print_table(
            "Parts of the budget",
            [("table", "fold"), ("needs alone", "right"), ("leaving it\nout saves", "right")],
            [[price.table, f"{price.alone:.0%}", f"{price.saved:.0%}"] for price in preview.prices],
        )
    for search in preview.searches:
        click.echo("\n" + click.wrap_text(search.describe(), 78))


def _print_cost_of_hidden_cells(plan: Plan, error_over_complete: float | None) -> None:
    """Print how much error cells for missing values add, if over a thousandth."""
    if error_over_complete is None or error_over_complete < _LEAST_GAIN:
        return
    names = [name for name in plan.domain.names if plan.domain.kind(name).hidden]
    click.echo(
        click.wrap_text(
            f"Missing and outside values of {', '.join(names)} cost {error_over_complete - 1:.1%} "
            "of the error, because they are also measured. If a column has none, write "
            "complete = true in its [domain] table.",
            78,
        )
    )


def _requested_comparisons(
    plan: Plan, spec: Spec, budgets: str | None, max_rows: str | None, *, prices: bool
) -> tuple[dict[str, Plan], dict[str, Plan], tuple[Price, ...]]:
    """Compute the further plans and prices that the options request.

    Returns:
        The plans by ``max_rows``, the plans by budget, and the price of each table; empty if not
        requested.
    """
    if max_rows is None:
        plans_by_max_rows = {}
    else:
        plans_by_max_rows = _plans_by_max_rows(spec, max_rows)
    if budgets is None:
        plans_by_budget = {}
    else:
        plans_by_budget = _rescale_to_budgets(plan, budgets)
    if prices:
        table_prices = _budget_prices(plan, spec)
    else:
        table_prices = ()
    return plans_by_max_rows, plans_by_budget, table_prices


def _plans_by_max_rows(spec: Spec, limits_text: str) -> dict[str, Plan]:
    """Plan a spec for each ``max_rows`` in a comma-separated text."""
    specs = {
        size: replace(spec, privacy=with_max_rows(spec.privacy, size))
        for size in _split_values("--max-rows", limits_text)
    }
    plans = {}
    seconds = sum(map(estimate_planning_seconds, specs.values()))
    with memory_limit(), Progress("planning", about=seconds) as progress:
        for size, changed_spec in specs.items():
            rows = "row" if size == "1" else "rows"
            progress.step(f"planning for {size} {rows} of a unit", len(specs))
            plans[size] = plan_spec(changed_spec)
    _check_error_known("--max-rows", *plans.values())
    return plans


def _rescale_to_budgets(plan: Plan, budgets_text: str) -> dict[str, Plan]:
    """Rescale a plan to each budget in a comma-separated text."""
    _check_error_known("--budgets", plan)
    return {
        size: plan_for_workload(plan.workload, plan, with_epsilon_or_rho(plan.privacy, size))
        for size in _split_values("budgets", budgets_text)
    }


def _budget_prices(plan: Plan, spec: Spec) -> tuple[Price, ...]:
    """Compute which share of the budget each table needs, with a progress line."""
    _check_error_known("--prices", plan)
    count = len(plan.workload.products)
    with (
        memory_limit(),
        Progress("pricing", about=count * estimate_planning_seconds(spec)) as progress,
    ):
        search = spec.search(lambda name: progress.step(f"pricing {name}", count))
        return table_prices(plan, search)


def _split_values(option: str, text: str) -> list[str]:
    """Split the value of an option at commas; raise InputError if it is too long."""
    parts = [size.strip() for size in text.split(",")]
    if len(parts) > _MOST_VALUES:
        raise refuse(f"the number of {option}", len(parts), f"at most {_MOST_VALUES}")
    return parts


def _check_error_known(option: str, *plans: Plan) -> None:
    """Raise InputError for plans whose error depends on the data."""
    if any(plan.data_independent_error is None for plan in plans):
        raise InputError(
            f"{option} needs a plan whose error does not depend on the data; the error of "
            "this plan does."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTable:
    """The expected error of a table; None if it depends on the data.

    Errors of counts are in rows. Errors of sums are in the unit of the measure.
    """

    name: str
    queries: int
    rmse: float | None
    largest_std: float | None
    largest_is_bound: bool | None
    weight: float
    measure: str | None
    leaves_out: tuple[str, ...]
    target: TargetStatus | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the table as a JSON object, without a target if it has none."""
        return {**write_record(replace(self, target=None)), **_target_json(self.target)}


def expected_tables(plan: Plan, level: float = 0.95) -> list[ExpectedTable]:
    """Return the expected error of every table of a plan."""
    products = plan.workload.products
    table_errors: Sequence[TableError | None] = [None] * len(products)
    targets: Sequence[TargetStatus | None] = [None] * len(products)
    if plan.data_independent_error is not None:
        table_errors = plan.data_independent_error.tables
        targets = target_statuses(plan, level)
    name_counts = Counter[str]()
    tables = []
    for product, error, target in zip(products, table_errors, targets, strict=True):
        name_counts[product.name] += 1
        count = name_counts[product.name]
        tables.append(
            ExpectedTable(
                name=product.name if count == 1 else f"{product.name} ({count})",
                queries=product.rows,
                rmse=None if error is None else error.rmse * product.unit,
                largest_std=None if error is None else error.largest_std * product.unit,
                largest_is_bound=None if error is None else error.largest_is_bound,
                weight=float(product.weight),
                measure=product.measure,
                leaves_out=tuple(leaves_out(product)),
                target=target,
            )
        )
    return tables


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExpectedStatistic:
    """The expected error of a statistic, such as means, quantiles or a CDF.

    Attributes:
        name: the title of the statistic, or its name if it has no title.
        error: the error of the counts behind the statistic, and the error of the statistic itself
            if the spec states a public size.
        size_quantity: "rows" if the public size is a number of rows, "weights" if it is a sum of
            weights.
        margin_of_counts: the margin of the cumulative counts, in rows; None if a private choice of
            quantiles would not be more accurate.
        selected_within: the largest error in rank of privately chosen quantiles, in rows; None as
            for ``margin_of_counts``.
        target: the target of the statistic and the error that it limits; None without a target.
        at_scales: the standard errors of standard deviations or correlations at public scales.
    """

    name: str
    error: StatisticError
    size_quantity: str
    margin_of_counts: float | None
    selected_within: float | None
    target: TargetStatus | None
    at_scales: Mapping[str, float]

    @property
    def statistic(self) -> Statistic:
        """The statistic itself."""
        return self.error.statistic

    @property
    def size(self) -> str:
        """The public size of each group as text."""
        return format_number(float(self.statistic.size or 0))

    def to_json(self) -> dict[str, Any]:
        """Return the statistic as a JSON object; facts without a value are left out."""
        error = self.error
        statistic = self.statistic
        optional = {
            "margin_of_counts": self.margin_of_counts,
            "selected_within": self.selected_within,
        }
        return {
            "name": self.name,
            "request": statistic.to_json(),
            "tables": list(error.tables),
            "rows": error.rows,
            "largest_rows": error.largest_rows,
            "size": None if statistic.size is None else float(statistic.size),
            "size_is": self.size_quantity,
            "std_error": error.std_error,
            **({"parts": dict(error.parts)} if statistic.form.of_several else {}),
            "method": _METHODS.get(statistic.kind, _BY_SHARE),
            **{name: number for name, number in optional.items() if number is not None},
            **({"at_scales": dict(self.at_scales)} if self.at_scales else {}),
            **_target_json(self.target),
        }


def _expected_statistics(
    plan: Plan, level: float, catalogue: Catalogue = ENGLISH
) -> list[_ExpectedStatistic]:
    """Return the expected errors of the statistics of a plan.

    Statistics are named by their titles if the catalogue has display names.
    """
    if isinstance(plan, AdaptivePlan):
        return []
    reach_of: dict[Statistic, float] = {}
    if type(plan) is LinearPlan and not plan.earlier:  # a series cannot choose quantiles
        reach_of = largest_rank_errors(plan.workload, plan.privacy)
    targets = statistic_target_statuses(plan, level)
    multiplier = interval_multiplier(plan.measured().noise, LEVEL)
    statistics = []
    for error, target in zip(statistic_errors(plan), targets, strict=True):
        statistic = error.statistic
        name = statistic.name
        if not catalogue.names.is_empty:
            name = statistic_title(statistic, plan.domain, catalogue)
        margin = error.rows * multiplier
        reach = reach_of.get(statistic)
        is_selectable = reach is not None and reach <= margin
        is_weighted = plan.workload.weight_of(statistic) is not None
        statistics.append(
            _ExpectedStatistic(
                name=name,
                error=error,
                size_quantity="weights" if is_weighted else "rows",
                margin_of_counts=margin if is_selectable else None,
                selected_within=reach if is_selectable else None,
                target=target,
                at_scales=_std_errors_at_scales(plan, statistic),
            )
        )
    return statistics


def _std_errors_at_scales(plan: Plan, statistic: Statistic) -> dict[str, float]:
    """Return the standard errors of parameters at their public scales.

    Only standard deviations and correlations have such errors. The errors of regression
    coefficients refer to these scales anyway.
    """
    if statistic.size is None or statistic.kind not in ("variances", "correlations"):
        return {}
    return statistic_std_errors(plan, replace(statistic, target=None, target_of=""))


def _plan_json(
    plan: Plan,
    seconds: float,
    level: float,
    guard_budget_share: Fraction | None,
    *,
    has_searches: bool,
) -> dict[str, Any]:
    """Return the expected errors and the cost of a plan as a JSON object.

    Errors that depend on the data are null.
    """
    expected_error = plan.data_independent_error
    tables = expected_tables(plan, level)
    explanation = mechanism_of(plan).explain(plan)
    cost: dict[str, Any] = {**plan.cost().to_json()}
    cost |= cost.pop("budget", {})
    error_names = ("expected_total_squared_error", "lower_bound", "error_over_least_possible")
    errors: dict[str, Any] = dict.fromkeys(error_names)
    if expected_error is not None:
        errors["expected_total_squared_error"] = expected_error.total_squared_error
        errors["lower_bound"] = expected_error.lower_bound
        errors["error_over_least_possible"] = expected_error.times_least
    rows = describe_plan(plan)[-1]
    optional = {
        "statistics": [item.to_json() for item in _expected_statistics(plan, level)],
        "values": [fact.text for fact in list_facts([rows], "values")],
        "left_out": [fact.text for fact in list_facts([rows], "left_out")],
        "not_protected": dict(format_public_facts(plan)),
        "after": [release.facts() for release in _earlier_releases(plan)],
    }
    return {
        "strategy": plan.strategy,
        "mechanism": explanation.mechanism,
        "privacy": plan.privacy.to_json(),
        "risk": describe_risk(
            with_guard(plan.privacy, guard_budget_share),
            plan.cost(),
            published_part(plan, has_searches=has_searches),
        ),
        "cost": cost,
        "queries": sum(table.queries for table in tables),
        **errors,
        "rmse": {table.name: table.rmse for table in tables},
        "tables": [table.to_json() for table in tables],
        **{name: value for name, value in optional.items() if value},
        "seconds": round(seconds, 3),
        **_data_dependent_json(explanation, tables),
    }


def _data_dependent_json(
    explanation: Explanation, tables: Sequence[ExpectedTable]
) -> dict[str, Any]:
    """Return the steps and the reference of a data-dependent plan as JSON.

    The result is empty for other plans.
    """
    if not explanation.steps:
        return {}
    if explanation.reference is None:
        reference = None
    else:
        reference = explanation.reference.to_json()
    if reference is not None:
        names = (table.name for table in tables)
        reference["rmse"] = dict(zip(names, reference["rmse"], strict=True))
    return {
        "data_aware": True,
        "steps": [step.to_json() for step in explanation.steps],
        "reference": reference,
    }


def print_plan(
    plan: Plan,
    seconds: float,
    level: float,
    guard: GuardForecast | None = None,
    catalogue: Catalogue = ENGLISH,
    guard_budget_share: Fraction | None = None,
    *,
    has_searches: bool = False,
) -> None:
    """Print the expected errors of a plan.

    If the errors depend on the data, print the steps of the mechanism instead.

    Args:
        plan: the plan.
        seconds: the duration of planning in seconds.
        level: the confidence level of the margins.
        guard: the expected cost and accuracy of the guard; None without a guard.
        catalogue: the texts and display names for the output.
        guard_budget_share: the share of the budget that the guard costs; None without a guard.
        has_searches: whether the spec requests searches for categories or bounds.
    """
    tables = _with_titles(expected_tables(plan, level), plan, catalogue)
    explanation = mechanism_of(plan).explain(plan)
    if isinstance(plan, AdaptivePlan):
        totals = _print_steps(explanation, tables)
    else:
        totals = _print_expected_errors(plan, tables, catalogue)
    _print_statistics(_expected_statistics(plan, level, catalogue))
    remark = ""
    if isinstance(plan, AdaptivePlan):
        remark = ", all of it"
    workload, error, privacy, rows = describe_plan(
        plan, catalogue, with_guard(plan.privacy, guard_budget_share), has_searches=has_searches
    )
    facts = [
        *format_facts(workload.facts),
        *totals,
        *format_facts(error.facts),
        *format_facts(privacy.facts),
        (
            "cost",
            f"{_displayed_cost(plan)}{remark}, with {format_noise(explanation.mechanism)} noise",
        ),
    ]
    if guard is not None:
        facts.append(("guard", guard.describe()))
    facts += _cost_shares(plan)
    facts += format_facts(rows.facts)
    facts.append(("seconds", f"{seconds:.2f}"))
    print_facts(facts)


def _earlier_releases(plan: Plan) -> tuple[EarlierRelease, ...]:
    return plan.earlier if isinstance(plan, LinearPlan) else ()


def _with_titles(
    tables: list[ExpectedTable], plan: Plan, catalogue: Catalogue
) -> list[ExpectedTable]:
    """Replace the names of tables by their display titles, if any exist."""
    if catalogue.names.is_empty:
        return tables
    return [
        replace(table, name=table_title(product, catalogue))
        for table, product in zip(tables, plan.workload.products, strict=True)
    ]


def _displayed_cost(plan: Plan) -> Charge:
    """Return the cost of a plan; the whole budget if the cost is nearly as large."""
    budget = plan.privacy.budget
    whole = parameters_by_name(charge_of_budget(budget))
    cost_parameters = parameters_by_name(step_charge(budget, budget, plan.cost()))
    for name, value in cost_parameters.items():
        if value >= _NEARLY_ALL * whole[name]:
            cost_parameters[name] = whole[name]
    return Charge(**cost_parameters)


class _Column(NamedTuple):
    """A column of the table of expected errors.

    ``cell`` takes a table and the unit of its errors, and returns the text of the cell.
    """

    heading: str
    alignment: str
    cell: Callable[[ExpectedTable, str], str]
    is_shown: bool = True


def _print_expected_errors(
    plan: Plan, tables: Sequence[ExpectedTable], catalogue: Catalogue
) -> list[tuple[str, str]]:
    """Print the errors of each table; return labels and texts for the total.

    Columns in which all tables agree are left out.
    """
    columns = [column for column in _error_columns(plan, tables, catalogue) if column.is_shown]
    units = _table_units(plan, catalogue)
    rows = [
        [column.cell(table, unit) for column in columns]
        for table, unit in zip(tables[:_MOST_TABLES], units, strict=False)
    ]
    print_table("Expected error", [column[:2] for column in columns], rows)
    if remaining := tables[_MOST_TABLES:]:
        errors = [table.rmse for table in remaining if table.rmse is not None]
        queries = pluralize(sum(table.queries for table in remaining), "query", "queries")
        click.echo(
            f"and {pluralize(len(remaining), 'more table')}, {queries}, rmse "
            f"{format_number(min(errors))} to {format_number(max(errors))} (--json)\n"
        )
    expected_error = plan.expected_error()
    return [
        ("total squared error", format_number(expected_error.total_squared_error)),
        ("lower bound", format_number(expected_error.lower_bound)),
    ]


def _table_units(plan: Plan, catalogue: Catalogue) -> list[str]:
    """Return for each table the unit of its answers: rows, persons, or a measure."""
    units = []
    for product in plan.workload:
        if product.of_values:
            measure = name_summed(product.domain, str(product.measure), catalogue)
            units.append(unit_of_sums(product, catalogue) or measure)
        elif product.of_units:
            units.append(catalogue.names.units or "units")
        else:
            units.append(name_rows(catalogue))
    return units


def _error_columns(
    plan: Plan, tables: Sequence[ExpectedTable], catalogue: Catalogue
) -> list[_Column]:
    """Return all possible columns of the table of expected errors."""
    hidden = {name for name in plan.domain.names if plan.domain.kind(name).hidden}

    def largest_error(table: ExpectedTable, _unit: str) -> str:
        if table.largest_is_bound:
            sign = "<= "
        else:
            sign = ""
        return sign + _format_optional(table.largest_std)

    def hidden_left_out(table: ExpectedTable, _unit: str) -> str:
        return ", ".join(
            name_attribute(name, catalogue) for name in table.leaves_out if name in hidden
        )

    has_weights = any(table.weight != 1 for table in tables)
    has_targets = any(table.target is not None for table in tables)
    has_units = len({*_table_units(plan, catalogue), name_rows(catalogue)}) > 1
    return [
        _Column("table", "fold", lambda table, _: table.name),
        _Column("queries", "right", lambda table, _: f"{table.queries:,}"),
        _Column("rmse", "right", lambda table, _: _format_optional(table.rmse)),
        _Column("largest\nstd error", "right", largest_error),
        _Column("in", "fold", lambda _, unit: unit, has_units),
        _Column("weight", "right", lambda table, _: f"{table.weight:g}", has_weights),
        _Column("target", "left", lambda table, _: _describe_target(table.target), has_targets),
        _Column("leaves out\nrows without", "fold", hidden_left_out, bool(hidden)),
    ]


def _print_statistics(statistics: Sequence[_ExpectedStatistic]) -> None:
    """Print the expected errors of means, quantiles and distribution functions."""
    if not statistics:
        return
    rows = [
        [expected.name, _describe_error(expected), _describe_target(expected.target)]
        for expected in statistics
    ]
    columns = [("made of the tables", "fold"), ("known beforehand", "fold"), ("target", "left")]
    if any(expected.target is not None for expected in statistics):
        column_count = 3
    else:
        column_count = 2
    print_table("", columns[:column_count], [row[:column_count] for row in rows])


def _describe_error(expected: _ExpectedStatistic) -> str:
    """Describe the expected error of a statistic in a phrase."""
    kind = expected.statistic.kind
    if kind == "means":
        return _describe_mean_error(expected)
    if kind == "variances":
        return _describe_variance_error(expected)
    if kind in ("correlations", "regression"):
        return _describe_parameter_errors(expected)
    if expected.size_quantity == "weights":
        return _describe_weighted_share_error(expected)
    error = expected.error
    words = f"standard error of the counts up to a cell {format_number(error.rows)} rows"
    if error.std_error is not None:
        words = f"{words}, {format_number(error.std_error)} of {expected.size} rows"
    if expected.selected_within is None:
        return words
    return (
        f'{words}; strategy = "selected_quantiles" would choose values within '
        f"{format_number(expected.selected_within)} rows of their ranks (95%), with wider "
        "intervals"
    )


def _describe_weighted_share_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of weighted shares for the public sum of weights."""
    if expected.error.std_error is None:
        return "depends on the sum of the weights of a group; state it as size for the error"
    return (
        f"standard error of the shares up to a cell {format_number(expected.error.std_error)} in a "
        f"group with weights of {expected.size} in all"
    )


def _describe_mean_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of a mean for the public group size.

    Without a public size, describe which size the spec should state.
    """
    size = "rows"
    remark = ""
    group = f"of {expected.size} rows"
    if expected.size_quantity == "weights":
        size = "sum of the weights"
        remark = ", about their sum of weights,"
        group = f"with weights of {expected.size} in all"
    if expected.error.std_error is None:
        return (
            f"depends on the {size} of a group; state a public size{remark} for the error of a mean"
        )
    std_error = format_number(expected.error.std_error)
    return f"standard error at most {std_error} in a group {group} (delta method)"


def _describe_variance_error(expected: _ExpectedStatistic) -> str:
    """Describe the error of a variance for the public group size."""
    if expected.error.std_error is None:
        return (
            "depends on the rows of a group; state a public size for the largest error of a "
            "variance"
        )
    std_error = format_number(expected.error.std_error)
    at_scales = format_number(expected.at_scales["std_dev"])
    return (
        f"standard error of the variance at most {std_error} in a group of {expected.size} rows "
        f"(delta method); of the standard deviation {at_scales} at the public scale"
    )


def _describe_parameter_errors(expected: _ExpectedStatistic) -> str:
    """Describe errors of covariances or coefficients for the public group size."""
    is_regression = expected.statistic.kind == "regression"
    if expected.error.std_error is None:
        numbers = "each coefficient" if is_regression else "each covariance"
        return f"depends on the rows of a group; state a public size for the error of {numbers}"
    listing = ", ".join(f"{name} {format_number(error)}" for name, error in expected.error.parts)
    if is_regression:
        return (
            f"standard error of each coefficient in a group of {expected.size} rows, at public "
            f"scales: {listing}"
        )
    at_scales = ", ".join(
        f"{name} {format_number(error)}" for name, error in expected.at_scales.items()
    )
    return (
        f"standard error of each covariance in a group of {expected.size} rows, at most: {listing} "
        f"(delta method); of each correlation at public scales: {at_scales}"
    )


def _describe_target(status: TargetStatus | ComparisonStatus | None) -> str:
    """Describe a target and the error that it limits, such as "margin 50: 48.2"."""
    if status is None:
        return ""
    error = "no bound"
    if math.isfinite(status.error):
        error = format_number(status.error)
    remark = "" if status.is_met else ", missed"
    return f"{status.kind} {format_number(status.most)}: {error}{remark}"


def _print_steps(
    explanation: Explanation, tables: Sequence[ExpectedTable]
) -> list[tuple[str, str]]:
    """Print the steps of a data-dependent plan; return facts about its reference.

    Returns:
        Labels and texts about the error of the reference plan, which is the best plan that does not
        depend on the data. Empty without a reference plan.
    """
    print_table(
        "Steps",
        [("step", "left"), ("part of the budget", "left")],
        _step_lines(explanation.steps),
    )
    click.echo(
        "The mechanism chooses the measured queries from noisy values, which it pays for. So the\n"
        "error depends on the data, and no error is promised. The release states the error: the\n"
        "noise exactly, everything else as an estimate.\n"
    )
    reference = explanation.reference
    if reference is None:
        return []
    rows = [
        [table.name, f"{table.queries:,}", format_number(rmse)]
        for table, rmse in zip(tables, reference.rmse, strict=True)
    ]
    title = (
        f"For comparison: expected error of {reference.strategy}, which does not look at the data"
    )
    columns = [("table", "fold"), ("queries", "right"), ("rmse", "right")]
    print_table(title, columns, rows[:_MOST_TABLES])
    return [
        ("its total squared error", format_number(reference.expected_total_squared_error)),
        ("its lower bound", format_number(reference.lower_bound)),
    ]


def _step_lines(steps: Steps, indent: str = "") -> list[tuple[str, str]]:
    """Return the name and the budget of each step, with alternatives indented."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        if isinstance(step, StepChoice):
            lines.append((f"{indent}then, depending on the result, one of these:", ""))
            for case, case_steps in step.cases:
                lines.append((f"{indent}  {_CASES.get(case, case)}", ""))
                lines.extend(_step_lines(case_steps, indent + "    "))
        else:
            shares = [
                f"{name} = {readable(share)}"
                for name, share in parameters_by_name(step.budget).items()
            ]
            lines.append((indent + _STEPS.get(step.name, step.name), ", ".join(shares)))
    return lines


def _cost_shares(plan: Plan) -> list[tuple[str, str]]:
    """Return a label and text on how the cost is divided, if units are counted.

    The text lists the shares of rows and sums together, and of each count of units. The result is
    empty if the workload counts no units.
    """
    names = {
        product.measure: _name_unit_count(product)
        for product in plan.workload
        if product.is_per_unit
    }
    if not names:
        return []
    measurements = plan.measurements if isinstance(plan, LinearPlan) else plan.measured()
    costs: dict[str, float] = {}
    for view in split_by_quantity(measurements):
        name = names.get(view.blocks[0].measure, "rows and sums")
        costs[name] = costs.get(name, 0.0) + float(
            next(iter(parameters_by_name(cost(view)).values()))
        )
    total = sum(costs.values())
    shares = [f"{name} {view_cost / total:.0%}" for name, view_cost in costs.items()]
    return [("of which for", ", ".join(shares))]


def _name_unit_count(product: Product) -> str:
    """Return the display name of a table's count of units."""
    measure = product.domain.measure(str(product.measure))
    if isinstance(measure, UnitCount) and measure.has_groups:
        return product.name
    return str(product.measure)


def _print_periods(plan: Plan, catalogue: Catalogue) -> None:
    """Print the expected errors in some periods, if a plan belongs to a series."""
    errors = [*period_errors(plan).items()]
    if not errors:
        return
    stride = ceil(len(errors) / _MOST_PERIODS)
    last = len(errors) - 1
    rows: list[list[str]] = []
    for position, (label, period) in enumerate(errors):
        if position % stride == 0 or position == last:
            rows.append([label, *map(_format_optional, period)])
    titles = [product.name for product in plan.workload]
    if not catalogue.names.is_empty:
        titles = [
            fill(table_title(product, catalogue), _HEADING_WIDTH) for product in plan.workload
        ]
    columns = [("period", "left"), *((title, "right") for title in titles)]
    print_table("Typical error of the answers that end in a period", columns, rows)


def _format_optional(error: float | None) -> str:
    """Format an error; empty for None."""
    if error is None:
        return ""
    return format_number(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CategorySearchPreview:
    """The cost of a search for categories, and which categories it can find.

    ``found`` is the number of categories if the search was paid for before, otherwise None.
    """

    attribute: str
    budget: Budget
    threshold: int
    detectable_units: int
    most: int
    found: int | None

    def describe(self) -> str:
        """Describe the cost of the search and what it can find, or has found."""
        price = charge_text(self.budget, self.budget)
        if self.found is not None:
            return (
                f"The {self.found:,} categories of {self.attribute} were found and paid before "
                f"({price}). The cost above does not include them."
            )
        chances = describe_search_chances(self.detectable_units, self.threshold)
        return (
            f"Before the release, {price} pays for finding the categories of {self.attribute}. The "
            f"search finds {chances}. The errors above are for {self.most:,} categories."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BoundsSearchPreview:
    """The cost and the rule of a search for bounds.

    ``bounds`` are the bounds that it found if the search was paid for before, otherwise None.
    """

    attribute: str
    budget: Budget
    covers: str
    rank_error: int
    rule: str
    widest: tuple[str, str]
    bounds: tuple[str, str] | None

    def describe(self) -> str:
        """Describe the cost and the rule of the search, or the bounds that it found."""
        price = charge_text(self.budget, self.budget)
        if self.bounds is not None:
            return (
                f"The bounds {' and '.join(self.bounds)} of {self.attribute} were found and paid "
                f"before ({price}). The cost above does not include them."
            )
        return (
            f"Before the release, {price} pays for finding {self.attribute}. {self.rule} The "
            f"errors above are for the widest bounds, {' and '.join(self.widest)}."
        )


def _preview_searches(spec: Spec) -> list[_CategorySearchPreview | _BoundsSearchPreview]:
    """Return the cost and the results of a spec's searches, bounds first."""
    searches: list[_CategorySearchPreview | _BoundsSearchPreview] = []
    plans_for_bounds = plan_bounds_searches(spec.bounds_searches, spec.privacy)
    for search in spec.bounds_searches:
        plan = plans_for_bounds[search.name]
        bounds = None
        if search.result is not None:
            bounds = (number_text(search.result.low), number_text(search.result.high))
        searches.append(
            _BoundsSearchPreview(
                attribute=search.name,
                budget=plan.privacy.budget,
                covers=number_text(plan.covers),
                rank_error=plan.rank_error,
                rule=describe_bounds_search(plan),
                widest=(number_text(plan.kind.low), number_text(plan.kind.high)),
                bounds=bounds,
            )
        )
    plans_for_categories = plan_category_searches(spec.searches, spec.privacy)
    for category_search in spec.searches:
        category_plan = plans_for_categories[category_search.attribute]
        result = category_search.result
        searches.append(
            _CategorySearchPreview(
                attribute=category_search.attribute,
                budget=category_plan.privacy.budget,
                threshold=category_plan.threshold,
                detectable_units=category_plan.detectable_units,
                most=category_search.kind.most,
                found=None if result is None else len(result.texts),
            )
        )
    return searches


def _errors_json(plan: Plan) -> dict[str, Any]:
    """Return the total error of a plan and the RMSE of its tables as JSON."""
    return {
        "privacy": plan.privacy.to_json(),
        "expected_total_squared_error": plan.expected_error().total_squared_error,
        "rmse": {table.name: table.rmse for table in expected_tables(plan)},
    }


def _print_error_comparison(
    title: str, plans: dict[str, Plan], *, show_budgets: bool = False
) -> None:
    """Print the RMSE of each table (rows) in each plan (columns).

    If ``show_budgets`` is True and the budgets differ, the last row shows the budgets.
    """
    if not plans:
        return
    errors = [_errors_json(plan)["rmse"] for plan in plans.values()]
    rows = [[name, *(format_number(rmse[name]) for rmse in errors)] for name in errors[0]]
    budgets = [charge_text(plan.privacy.budget, plan.privacy.budget) for plan in plans.values()]
    if show_budgets and len(set(budgets)) > 1:
        rows.append(["budget", *budgets])
    print_table(title, [("table", "fold"), *((size, "right") for size in plans)], rows)


def _list_strategies(
    context: click.Context,
    _: click.Parameter,
    is_requested: bool,  # noqa: FBT001 - click passes flags by name
) -> None:
    """Print all strategies and exit, if the option --list is set."""
    if not is_requested:
        return
    from leastnoise._strategies import PLANNERS  # slow to import, and `--help` must be quick

    rows = [
        [planner.name, planner.measures, "yes" if planner.automatic else "by name"]
        for planner in PLANNERS.values()
    ]
    columns = [("strategy", "left"), ("measures", "fold"), ("auto tries it", "left")]
    print_table("", columns, rows)
    context.exit()


@click.command()
@spec_argument
@json_option
@click.option(
    "--all", "by_name", is_flag=True, help="Include the strategies that `auto` does not try."
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_strategies,
    help="List the strategies and their measured queries, and stop.",
)
@spec_option
@cache_option
# Click passes flags by name.
def compare(path: Path, as_json: bool, by_name: bool) -> None:  # noqa: FBT001
    """Compare every strategy, least expected error first.

    Reads only the spec file; the data need not exist. The strategies that do not apply come last,
    with the reasons.
    """
    spec = read_command_spec(path)
    seconds = expected_seconds(spec.workload, spec.planned_privacy, spec.search())
    with memory_limit(), Progress("planning", about=seconds) as progress:
        candidates = compare_strategies(
            spec.workload,
            spec.planned_privacy,
            progress.trying,
            seconds=spec.seconds,
            by_name=by_name,
        )
    if as_json:
        print_json(
            {
                "queries": spec.workload.rows,
                "candidates": [_candidate_json(candidate) for candidate in candidates],
                "not_comparable": list(BY_NAME),
            }
        )
        return
    _print_applicable(spec, candidates)
    _print_unfinished(spec, candidates)
    _print_inapplicable(candidates)
    click.echo(
        click.wrap_text(
            f"Not comparable, because their errors depend on the data: {', '.join(BY_NAME)}.", 78
        )
    )
    if spec.after:
        click.echo(click.wrap_text(_WITHOUT_EARLIER, 78))


def _print_applicable(spec: Spec, candidates: Sequence[Candidate]) -> None:
    """Print the errors of the strategies that found a plan."""
    usable = [(candidate, candidate.plan) for candidate in candidates if candidate.plan is not None]
    columns = [
        ("strategy", "left"),
        ("noise", "left"),
        ("expected\nsquared error", "right"),
        ("lower\nbound", "right"),
        ("error / least\npossible", "right"),
        ("seconds", "right"),
    ]
    rows = [
        [
            candidate.strategy,
            format_noise(candidate.mechanism),
            format_number(candidate.total),
            format_number(plan.lower_bound()),
            _format_optional_ratio(plan),
            f"{candidate.seconds:.2f}",
        ]
        for candidate, plan in usable
    ]
    queries = pluralize(spec.workload.rows, "query", "queries")
    budget = charge_text(usable[0][1].privacy.budget, usable[0][1].privacy.budget)
    print_table(f"{queries}, {budget}", columns, rows, bold_row=0)


def _format_optional_ratio(plan: Plan) -> str:
    """Format the ratio of a plan's error to its lower bound; "-" without a bound."""
    ratio = error_over_bound(plan)
    if ratio is None:
        return "-"
    return format_ratio(ratio)


def _print_unfinished(spec: Spec, candidates: Sequence[Candidate]) -> None:
    """Print the strategies that ran out of planning time, if there are any."""
    unfinished = [candidate for candidate in candidates if candidate.useful_seconds]
    if not unfinished:
        return
    columns = [
        ("more time", "left"),
        ("noise", "left"),
        (f"within {spec.seconds:g} s", "left"),
        ("needs\nCPU seconds", "right"),
    ]
    rows = []
    for candidate in unfinished:
        result = "left out"
        if candidate.plan:
            result = "stopped early"
        noise = format_noise(candidate.mechanism)
        rows.append([candidate.strategy, noise, result, f"{candidate.useful_seconds:.2g}"])
    print_table("", columns, rows)
    advice = "These may have less error: increase seconds under [plan]."
    click.echo(click.wrap_text(advice, 78) + "\n")


def _print_inapplicable(candidates: Sequence[Candidate]) -> None:
    """Print the strategies that do not apply to a spec, with the reasons."""
    unusable = [
        candidate
        for candidate in candidates
        if candidate.plan is None and not candidate.useful_seconds
    ]
    if not unusable:
        return
    rows = [
        [candidate.strategy, format_noise(candidate.mechanism), candidate.reason]
        for candidate in unusable
    ]
    print_table("", [("cannot be used", "left"), ("noise", "left"), ("because", "fold")], rows)


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate strategy and its errors as a JSON object."""
    plan = candidate.plan
    return {
        "strategy": candidate.strategy,
        "mechanism": candidate.mechanism,
        "usable": plan is not None,
        "reason": candidate.reason,
        "expected_total_squared_error": plan and candidate.total,
        "lower_bound": plan and plan.lower_bound(),
        "error_over_least_possible": plan and plan.expected_error().times_least,
        "seconds": round(candidate.seconds, 3),
        "more_seconds": candidate.useful_seconds or None,
    }


@click.command()
@spec_argument
@click.option(
    "--trials",
    type=int,
    help="The number of trials on each of two tables.  [default: as many as --seconds allows]",
)
@click.option("--seconds", type=float, default=20.0, show_default=True, help="How long to measure.")
@json_option
# Click passes flags by name.
def audit(path: Path, trials: int | None, seconds: float, as_json: bool) -> None:  # noqa: FBT001
    """Compute a lower bound on the program's privacy loss.

    Reads only the spec file. The program generates rows from the domain of the spec. It does not
    read the data and spends nothing. The exit code is 70 if a lower bound exceeds the claim of the
    plan.
    """
    spec = read_spec(path)
    seconds_each = seconds / (1 + len(spec.all_searches))
    with Progress("planning", about=estimate_planning_seconds(spec) + seconds) as progress:
        plan = plan_spec(spec, progress.trying)
        progress.say("measuring generated rows")
        plan_audit = audit_plan(plan, guard=spec.options.guard, trials=trials, seconds=seconds_each)
        search_audits = {
            name: audit_plan(search_plan, trials=trials, seconds=seconds_each)
            for name, search_plan in _search_plans(spec).items()
        }
    if as_json:
        searches = {name: asdict(search_audit) for name, search_audit in search_audits.items()}
        print_json({**asdict(plan_audit), "searches": searches})
    else:
        _print_audit(plan_audit)
        for name, search_audit in search_audits.items():
            if name in spec.domain.names:
                click.echo(f"\nThe search for categories of {name!r}")
            else:
                click.echo(f"\nThe search for {name}")
            _print_audit(search_audit)
    if not all(result.is_within_claim for result in (plan_audit, *search_audits.values())):
        click.echo(
            "leastnoise: a lower bound exceeds the claim. This program, on this machine, does not "
            "keep its privacy guarantee. Please report it.",
            err=True,
        )
        click.get_current_context().exit(FAULT)


def _search_plans(spec: Spec) -> dict[str, SearchPlan]:
    """Return the plan of each search, by attribute or by name of the bounds."""
    return {
        **plan_bounds_searches(spec.bounds_searches, spec.privacy),
        **plan_category_searches(spec.searches, spec.privacy),
    }


def _print_audit(result: Audit) -> None:
    """Print the lower bounds of an audit, and whether one exceeds its claim."""
    facts = [
        ("claim", f"{_MEASURES[result.measure]}: at most {result.claim:.4g}"),
        ("lower bound", f"at least {result.lower_bound:.4g}"),
    ]
    if result.epsilon is not None:
        facts.append(("as epsilon", f"at least {result.epsilon:.4g} at the plan's delta"))
    facts += [
        (part.name, f"claims {part.claim:.4g}, loses at least {part.lower_bound:.4g}")
        for part in result.parts
    ]
    units = pluralize(result.units, "unit")
    facts += [
        ("confidence", f"{100 * result.confidence:.4g}% for all bounds together"),
        ("trials", f"{result.trials:,} of each of two tables, which differ in {units}"),
        ("statistic", _AUDIT_STATISTIC),
        ("verdict", _WITHIN_CLAIM if result.is_within_claim else _ABOVE_CLAIM),
    ]
    print_facts(facts)


@click.command()
@click.argument("path", metavar="[FILE|SPEC|RELEASE]", type=FILE, required=False)
def studio(path: Path | None) -> None:
    """Draft a spec, plan, or explore a release in the browser.

    With a data file or without an argument, forms draft a spec from the names and types of columns.
    With a spec, the page shows how budget, targets, weights and tables change every margin. With
    the directory of a release, the page shows tables of any attributes, their charts, and the exact
    error of any sum of their cells.

    Prints the address of a page on this computer, which one browser can open once. Ctrl-C ends it,
    or closing the terminal. The studio never reads a value of the data.
    """
    try:
        from leastnoise._studio import Studio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "tomlkit", "uvicorn"}:
            raise
        raise InputError(
            "The studio needs further packages. Install them: pip install 'leastnoise[studio]'."
        ) from None
    server = Studio(path)
    click.echo(f"The studio is at {server.address}\nOne browser can open it, once. Ctrl-C ends it.")
    server.run()
