"""The command ``plan``, which reads no data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import click

from leastnoise._cli._expected_errors import (
    MOST_TABLES,
    ExpectedTable,
    describe_target,
    expected_statistics,
    expected_tables,
    format_lower_bound,
    format_optional,
    print_expected_errors,
    print_statistics,
    target_json,
    with_titles,
)
from leastnoise._cli._main import MISSED_TARGET
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
from leastnoise._error import memory_limit
from leastnoise._facts import format_facts, list_facts
from leastnoise._mechanisms import Explanation, mechanism_of
from leastnoise._pages import (
    describe_plan,
    describe_risk,
    error_over_bound,
    format_public_facts,
    published_part,
)
from leastnoise._plan import (
    AdaptivePlan,
    EarlierRelease,
    LinearPlan,
    Plan,
    StepChoice,
    Steps,
    checked_guard_share,
    with_guard,
)
from leastnoise._planning import (
    ComparisonStatus,
    Price,
    comparison_statuses,
    error_over_complete,
    missed_targets,
    period_errors,
    plan_for_workload,
    table_prices,
    with_epsilon_or_rho,
    with_max_rows,
)
from leastnoise._progress import Progress
from leastnoise._publication import describe_bounds_search, describe_search_chances
from leastnoise._release import check_options, write_record
from leastnoise._session import (
    GuardForecast,
    check_writable,
    estimate_planning_seconds,
    forecast_guard,
    optional_attributes,
    plan_spec,
    unit_total_measures,
    warnings_after_planning,
    warnings_before_planning,
)
from leastnoise._spec import Spec, plan_bounds_searches, plan_category_searches
from leastnoise._texts import ENGLISH, Catalogue, has_text, table_title
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
from leastnoise._workload import Product

_MOST_VALUES = 8  # values of --budgets or --max-rows
_HEADING_WIDTH = 18  # characters of a title above a column of periods
_MOST_PERIODS = 24  # periods of a series that are printed; --json has all
_LEAST_GAIN = 1.001  # ratio of errors above which complete attributes are proposed
# If rounded noise scales cost a millionth less than the budget, the budget is shown as the cost.
_NEARLY_ALL = Fraction(10**6 - 1, 10**6)
_EXISTS = "Choose another file, or remove it first."
_NO_LOOK = (
    "Choose max_rows from public knowledge of how many rows people have. A lower limit leaves out "
    "more rows of a unit, which these errors do not count. Do not read the number off the data: "
    "that would be a release that nobody paid for."
)


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
def plan_command(
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
            "--epsilon replaces the epsilon of the spec, but this spec has a budget of rho."
        )
    if isinstance(privacy.budget, GDP):
        raise InputError(
            "--epsilon replaces the epsilon of the spec, but this spec has a budget of mu "
            "squared, or takes a share of its budget. Change the budget or the share in the spec."
        )
    return replace(spec, privacy=privacy)


def _guard_forecast(spec: Spec, plan: Plan) -> GuardForecast | None:
    """Return the expected cost and accuracy of the spec's guard, or None."""
    share = checked_guard_share(spec.options.guard)
    if share is None:
        return None
    return forecast_guard(
        plan.privacy, share, spec.options.rows, optional_attributes(plan), unit_total_measures(plan)
    )


def _preview_json(preview: _Preview) -> dict[str, Any]:
    """Return a preview as the JSON object that ``plan --json`` prints."""
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
        "targets": [{"name": status.name, **target_json(status)} for status in preview.targets],
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


def _print_comparison_targets(statuses: Sequence[ComparisonStatus]) -> None:
    """Print the expected errors of differences and ratios that have targets."""
    if not statuses:
        return
    rows = [[status.name, describe_target(status)] for status in statuses]
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


def _print_cost_of_hidden_cells(plan: Plan, error_ratio: float | None) -> None:
    """Print how much the cells for missing values add to the error, if over 0.1%."""
    if error_ratio is None or error_ratio < _LEAST_GAIN:
        return
    names = [name for name in plan.domain.names if plan.domain.kind(name).hidden]
    click.echo(
        click.wrap_text(
            f"Missing and outside values of {', '.join(names)} cost {error_ratio - 1:.1%} "
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
        requested_prices = _budget_prices(plan, spec)
    else:
        requested_prices = ()
    return plans_by_max_rows, plans_by_budget, requested_prices


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
    """Compute which share of the budget each table needs, and print progress."""
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
    """Raise InputError if the plan's error depends on the data."""
    if any(plan.data_independent_error is None for plan in plans):
        raise InputError(
            f"{option} needs a plan whose error does not depend on the data; the error of this "
            "plan depends on the data."
        )


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
    cost_json: dict[str, Any] = {**plan.cost().to_json()}
    cost_json |= cost_json.pop("budget", {})
    error_names = ("expected_total_squared_error", "lower_bound", "error_over_least_possible")
    errors: dict[str, Any] = dict.fromkeys(error_names)
    if expected_error is not None:
        errors["expected_total_squared_error"] = expected_error.total_squared_error
        errors["lower_bound"] = expected_error.lower_bound
        errors["error_over_least_possible"] = expected_error.times_least
    rows = describe_plan(plan)[-1]
    optional = {
        "statistics": [item.to_json() for item in expected_statistics(plan, level)],
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
        "cost": cost_json,
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
    tables = with_titles(expected_tables(plan, level), plan, catalogue)
    explanation = mechanism_of(plan).explain(plan)
    if isinstance(plan, AdaptivePlan):
        totals = _print_steps(explanation, tables)
    else:
        totals = print_expected_errors(plan, tables, catalogue)
    print_statistics(expected_statistics(plan, level, catalogue))
    remark = ""
    if isinstance(plan, AdaptivePlan):
        remark = ", all of it"
    workload, error, privacy, rows = describe_plan(
        plan, catalogue, with_guard(plan.privacy, guard_budget_share), has_searches=has_searches
    )
    error_facts = format_facts(error.facts)
    error_facts[1:1] = _error_ratio_note(plan)  # below the ratio, which is the first fact
    facts = [
        *format_facts(workload.facts),
        *totals,
        *error_facts,
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


def _error_ratio_note(plan: Plan) -> list[tuple[str, str]]:
    """Return a fact that explains the ratio to the lower bound if it is above 1."""
    ratio = error_over_bound(plan)
    if ratio is None or ratio < _LEAST_GAIN:
        return []
    if plan.measured().noise.norm == 1:
        limit = "The bound is loose for Laplace noise, so a smaller error may be impossible."
    else:
        limit = "No strategy reaches the bound for every workload."
    advice = "`leastnoise compare` shows other strategies; a larger [plan] seconds searches longer."
    return [("", f"The error divided by its proven lower bound. {limit} {advice}")]


def _earlier_releases(plan: Plan) -> tuple[EarlierRelease, ...]:
    """Return the earlier releases that a plan uses; empty if it uses none."""
    return plan.earlier if isinstance(plan, LinearPlan) else ()


def _displayed_cost(plan: Plan) -> Charge:
    """Return the cost of a plan; the whole budget if the cost nearly equals it."""
    budget = plan.privacy.budget
    whole = parameters_by_name(charge_of_budget(budget))
    cost_parameters = parameters_by_name(step_charge(budget, budget, plan.cost()))
    for name, value in cost_parameters.items():
        if value >= _NEARLY_ALL * whole[name]:
            cost_parameters[name] = whole[name]
    return Charge(**cost_parameters)


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
    print_table(title, columns, rows[:MOST_TABLES])
    return [
        ("its total squared error", format_number(reference.expected_total_squared_error)),
        ("its lower bound", format_lower_bound(reference.lower_bound)),
    ]


def _step_lines(steps: Steps, indent: str = "") -> list[tuple[str, str]]:
    """Return the name and the budget of each step, with indented alternatives."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        if isinstance(step, StepChoice):
            lines.append((f"{indent}then, depending on the result, one of these:", ""))
            for case, case_steps in step.cases:
                lines.append((f"{indent}  {_text_or_name('plan_case', case)}", ""))
                lines.extend(_step_lines(case_steps, indent + "    "))
        else:
            shares = [
                f"{name} = {readable(share)}"
                for name, share in parameters_by_name(step.budget).items()
            ]
            lines.append((indent + _text_or_name("plan_step", step.name), ", ".join(shares)))
    return lines


def _text_or_name(prefix: str, name: str) -> str:
    """Return the text ``PREFIX_NAME``, or the name if it is a text already."""
    key = f"{prefix}_{name}"
    return ENGLISH.say(key) if has_text(key) else name


def _cost_shares(plan: Plan) -> list[tuple[str, str]]:
    """Return a label and text on how the cost is divided, if units are counted.

    The text lists the share of all rows and sums together, and the share of each count of units.
    The result is empty if the workload counts no units.
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
            rows.append([label, *map(format_optional, period)])
    titles = [product.name for product in plan.workload]
    if not catalogue.names.is_empty:
        titles = [
            fill(table_title(product, catalogue), _HEADING_WIDTH) for product in plan.workload
        ]
    columns = [("period", "left"), *((title, "right") for title in titles)]
    print_table("Typical error of the answers that end in a period", columns, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CategorySearchPreview:
    """The cost of a search for categories, and which categories it can find.

    ``found`` is the number of categories that a search found, if it was paid for before; otherwise
    None.
    """

    attribute: str
    budget: Budget
    threshold: int
    detectable_units: int
    most: int
    found: int | None

    def describe(self) -> str:
        """Describe the cost of the search, and what it can find or has found."""
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

    ``bounds`` are the bounds that a search found, if it was paid for before; otherwise None.
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
