"""Commands that read the spec alone: ``plan``, ``compare``, ``audit`` and ``studio``."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from leastnoise._audit import Audit
from leastnoise._cli._main import FAULT
from leastnoise._cli._output import (
    FILE,
    amounts,
    as_json,
    check_new,
    display_path,
    noise,
    number,
    of_spec,
    plan_with_progress,
    read_command_spec,
    show_facts,
    show_json,
    show_table,
    warn,
    without_cache,
    write_new,
)
from leastnoise._cli._release import guard_warnings, warn_of_bias
from leastnoise._error import memory_limit, statistic_errors
from leastnoise._frames import pluralize
from leastnoise._mechanisms import BY_NAME, Candidate, Explanation, mechanism_of
from leastnoise._plan import Plan, StepChoice, Steps, guard_share
from leastnoise._planning import (
    Price,
    TargetStatus,
    error_over_complete,
    expected_seconds,
    mean_target_statuses,
    period_errors,
    plan_for_workload,
    target_statuses,
    with_budget_size,
    with_max_rows,
)
from leastnoise._planning import compare as tried_on
from leastnoise._planning import table_prices as prices_of
from leastnoise._progress import Progress
from leastnoise._release import (
    ENGLISH,
    check_options,
    format_public_facts,
    list_dropped_rows,
    list_sum_contributions,
)
from leastnoise._session import (
    GuardForecast,
    check_writable,
    estimate_planning_seconds,
    forecast_guard,
    plan_spec,
)
from leastnoise._session import audit as audited
from leastnoise._spec import Spec, plan_warnings, read_spec, search_plans, spec_warnings
from leastnoise._trusted.accounting import (
    ZCDP,
    Charge,
    budget_from_json,
    charge,
    parameters,
    whole_budget,
)
from leastnoise._trusted.check import InputError, readable, refuse
from leastnoise._trusted.measurements import cost, views
from leastnoise._workload import leaves_out

_MOST_SIZES, _MOST_TABLES, _MOST_PERIODS = 8, 40, 24
_LEAST_GAIN = 1.001  # of the error for which declaring attributes complete is proposed
_EXISTS = "Choose another file, or remove it first."
_MEASURES = {
    "epsilon": "epsilon",
    "mu": "mu, the Gaussian's shift in units of its noise",
    "rho": "rho",
}
_BY_DELTA = "std_error of a mean in a group of size rows, at most: by the delta method, at the largest mean that the bounds allow"
_BY_SHARE = "rows: standard error of the counts up to a cell; std_error is their share of size rows"
_NO_LOOK = (
    "Choose max_rows from what is known in public of how many rows people have. With fewer, more "
    "rows of a unit are left out, "
    "which these errors do not count. Do not read the number off the data: that would be a "
    "release that nobody paid for."
)
_STEPS = {
    "test": "ask how much structure the data have (the least cost of any partition)",
    "levels": "measure blocks of several widths, and shrink the differences between them",
    "buckets": "measure the buckets",
    "blocks": "measure a few blocks",
    "parts": "divide each block as its noisy count deserves, and measure the parts and groups of "
    "them",
    "total": "count the rows",
    "alone": "measure every attribute alone",
    "pairs": "measure pairs of attributes on bins that hold about half as many rows as their "
    "noise, and fit a model",
    "threes": "measure tables of three attributes on bins",
    "independent": "measure the plan that does not look at the data",
    "tail": "count the records in the tail, and choose the threshold of least predicted error",
    "sums": "measure the sums of values cut at the threshold, with a strategy made for it",
    "groups": "measure buckets of the number under the threshold, by group; each group adds up "
    "those that are likely worth their noise",
    "number": "measure sums along the number; buckets of it, each up to 1.6 times as high as the "
    "last, that hold nothing are left out",
}
_CASES = {
    "independent": "no structure:",
    "adaptive": "much structure:",
    "blocks": "some structure:",
    "model_bins": "cells of few rows:",
    "model_fuller": "cells of rather few rows:",
    "model_tables": "cells of many rows:",
}


@click.command(
    epilog="It shows the rmse of every table and a lower bound; tables are called by their "
    "queries, such as prefix or identity."
)
@click.argument("spec", type=FILE)
@as_json
@click.option("--out", type=FILE, help="Also write the plan itself to this new file.")
@click.option("--epsilon", help="Plan for this epsilon in place of the spec's.")
@click.option(
    "--budgets",
    help="Also the errors under other budgets of the same kind, such as 0.1,1,10; nothing is "
    "planned again.",
)
@click.option(
    "--max-rows",
    "rows",
    help="Also the errors for other limits of rows of a unit, such as 1,2,4,8; each is planned.",
)
@click.option(
    "--prices",
    is_flag=True,
    help="Also what every table costs: alone, and what leaving it out saves. Plans many times.",
)
@of_spec
@without_cache
def plan(spec: Path, as_json: bool, out: Path | None, epsilon: str | None, **further: Any) -> None:  # noqa: FBT001 - click passes flags by name
    """Show the expected error of every table; this spends nothing.

    Reads the spec file alone; the data need not exist. With `queries.sql --spec people.toml` it
    asks SQL statements of that domain.
    """
    what = read_command_spec(spec)
    check_writable(what)
    if epsilon is not None:
        changed = with_budget_size(what.privacy, epsilon)
        if isinstance(changed.budget, ZCDP):
            raise InputError(
                "--epsilon takes the place of the spec's epsilon; the spec has a budget of rho."
            )
        what = replace(what, privacy=changed)
    if out is not None:
        check_new(out, _EXISTS)
    warn_of_bias(what)
    warnings = spec_warnings(what)
    warn(warnings)
    made, seconds = plan_with_progress(what)
    check_options(made, what.options)
    if out is not None:
        write_new(out, made.to_json() + "\n", _EXISTS)
    late = [*plan_warnings(what, made), *guard_warnings(what, made)]
    warn(late)
    complete_gain = error_over_complete(made, what.search())
    share = guard_share(what.options.guard)
    guard = None if share is None else forecast_guard(made.privacy, share, what.options.rows)
    by_budget, by_rows, priced = _compared(made, what, **further)
    searches = _search_facts(what)
    if as_json:
        more: dict[str, Any] = {
            "guard": {} if guard is None else asdict(guard),
            "searches": searches,
            "periods": period_errors(made),
            "budgets": [_errors_json(other) for other in by_budget.values()],
            "max_rows": [_errors_json(other) for other in by_rows.values()],
            "prices": [asdict(price) for price in priced],
        }
        given = {name: value for name, value in more.items() if value}
        if complete_gain is not None:
            given["error_over_complete"] = complete_gain
        show_json(
            {**_facts(made, seconds, what.options.level), **given, "warnings": [*warnings, *late]}
        )
        return
    show_plan(made, seconds, what.options.level, guard)
    _show_complete(made, complete_gain)
    _show_periods(made)
    _show_errors("rmse under other budgets", by_budget)
    _show_errors("rmse where so many rows of a unit count", by_rows, budgets=True)
    if by_rows:
        click.echo(click.wrap_text(_NO_LOOK, 78))
    if priced:
        columns = [("table", "fold"), ("needs alone", "right"), ("leaving it\nout saves", "right")]
        show_table(
            "Parts of the budget",
            columns,
            [[price.table, f"{price.alone:.0%}", f"{price.saved:.0%}"] for price in priced],
        )
    for fact in searches:
        click.echo("\n" + click.wrap_text(_search_words(fact), 78))
    if out is not None:
        click.echo(f"The plan is in {display_path(out)}.")


def _show_complete(plan: Plan, ratio: float | None) -> None:
    """Say what it would save to declare attributes complete, where that is over a thousandth."""
    if ratio is None or ratio < _LEAST_GAIN:
        return
    names = [name for name in plan.domain.names if plan.domain.kind(name).hidden]
    click.echo(
        click.wrap_text(
            f"Missing and outside values of {', '.join(names)} cost {ratio - 1:.1%} of the error, "
            "because they are measured too. Where a column has none, say complete = true in its "
            "[domain] table.",
            78,
        )
    )


def _compared(
    made: Plan, what: Spec, budgets: str | None, rows: str | None, *, prices: bool
) -> tuple[dict[str, Plan], dict[str, Plan], tuple[Price, ...]]:
    """Return the same strategy under other budgets, plans for other numbers of rows of a unit, and what every table costs."""
    by_budget, by_rows, priced = dict[str, Plan](), dict[str, Plan](), tuple[Price, ...]()
    if rows is not None:
        specs = {
            size: replace(what, privacy=with_max_rows(what.privacy, size))
            for size in _sizes("--max-rows", rows)
        }
        with (
            memory_limit(),
            Progress(
                "planning", about=sum(map(estimate_planning_seconds, specs.values()))
            ) as progress,
        ):
            for size, spec in specs.items():
                progress.step(f"planning for {size} row{'s' * (size != '1')} of a unit", len(specs))
                by_rows[size] = plan_spec(spec)
        _check_promised("--max-rows", *by_rows.values())
    if budgets is not None:
        _check_promised("--budgets", made)
        by_budget = {
            size: plan_for_workload(made.workload, made, with_budget_size(made.privacy, size))
            for size in _sizes("budgets", budgets)
        }
    if prices:
        _check_promised("--prices", made)
        count = len(made.workload.products)
        with (
            memory_limit(),
            Progress("pricing", about=count * estimate_planning_seconds(what)) as progress,
        ):
            priced = prices_of(
                made, what.search(lambda name: progress.step(f"pricing {name}", count))
            )
    return by_budget, by_rows, priced


def _sizes(option: str, listed: str) -> list[str]:
    sizes = [size.strip() for size in listed.split(",")]
    if len(sizes) > _MOST_SIZES:
        raise refuse(f"the number of {option}", len(sizes), f"at most {_MOST_SIZES}")
    return sizes


def _check_promised(option: str, *plans: Plan) -> None:
    if any(plan.promise is None for plan in plans):
        raise InputError(
            f"{option} is for plans whose error is known beforehand; this one depends on the data."
        )


def expected(plan: Plan, level: float = 0.95) -> list[dict[str, Any]]:
    """Return the expected error of every table as JSON objects, with null where the error depends on the data.

    Errors of counts are in rows, those of sums in amounts of the measure. A table with a target has
    the target, the error that is compared with it, and whether the target is kept.
    """
    products, seen, tables = plan.workload.products, Counter[str](), []
    promised = [None] * len(products) if plan.promise is None else plan.promise.tables
    targets = [None] * len(products) if plan.promise is None else target_statuses(plan, level)
    for product, table, target in zip(products, promised, targets, strict=True):
        seen[product.name] += 1
        again = f" ({seen[product.name]})" if seen[product.name] > 1 else ""
        tables.append(
            {
                "name": product.name + again,
                "queries": product.rows,
                "rmse": None if table is None else table.rmse * product.unit,
                "largest_std": None if table is None else table.largest_std * product.unit,
                "largest_is_bound": None if table is None else table.largest_is_bound,
                "weight": float(product.weight),
                "measure": product.measure,
                "leaves_out": list(leaves_out(product)),
                **_target_facts(target),
            }
        )
    return tables


def _expected_statistics(plan: Plan, level: float) -> list[dict[str, Any]]:
    """Return the expected error of means, quantiles and distribution functions: that of their counts, and their own at a public size."""
    return [
        {
            "name": error.statistic.name,
            "asked": error.statistic.to_json(),
            "tables": list(error.tables),
            "rows": error.rows,
            "largest_rows": error.largest_rows,
            "size": None if error.statistic.size is None else float(error.statistic.size),
            "size_is": "rows" if plan.workload.weight_of(error.statistic) is None else "weights",
            "std_error": error.std_error,
            "method": _BY_DELTA if error.statistic.form.of_measure else _BY_SHARE,
            **_target_facts(target),
        }
        for error, target in (
            ()
            if plan.promise is None
            else zip(statistic_errors(plan), mean_target_statuses(plan, level), strict=True)
        )
    ]


def _target_facts(target: TargetStatus | None) -> dict[str, Any]:
    return (
        {}
        if target is None
        else {"target": {target.kind: target.most}, target.kind: target.error, "kept": target.kept}
    )


def _facts(plan: Plan, seconds: float, level: float) -> dict[str, Any]:
    """Return what a plan promises as a JSON object with stable keys, with null where it depends on the data."""
    promise, tables, explanation = (
        plan.promise,
        expected(plan, level),
        mechanism_of(plan).explain(plan),
    )
    looks: dict[str, Any] = {}
    if explanation.steps:
        reference = None if explanation.reference is None else explanation.reference.to_json()
        if reference is not None:
            reference["rmse"] = dict(
                zip((table["name"] for table in tables), reference["rmse"], strict=True)
            )
        looks = {
            "data_aware": True,
            "steps": [step.to_json() for step in explanation.steps],
            "reference": reference,
        }
    cost: dict[str, Any] = {**plan.cost().to_json()}
    cost |= cost.pop("budget", {})
    optional = {
        "statistics": _expected_statistics(plan, level),
        "values": list_sum_contributions(plan.workload),
        "left_out": list_dropped_rows(plan),
        "not_protected": dict(format_public_facts(plan)),
    }
    return {
        "strategy": plan.strategy,
        "mechanism": explanation.mechanism,
        "privacy": plan.privacy.to_json(),
        "cost": cost,
        "queries": sum(table["queries"] for table in tables),
        "expected_total_squared_error": None if promise is None else promise.total_squared_error,
        "lower_bound": None if promise is None else promise.lower_bound,
        "error_over_least_possible": None if promise is None else promise.times_least,
        "rmse": {table["name"]: table["rmse"] for table in tables},
        "tables": tables,
        **{name: value for name, value in optional.items() if value},
        "seconds": round(seconds, 3),
        **looks,
    }


def show_plan(plan: Plan, seconds: float, level: float, guard: GuardForecast | None = None) -> None:
    """Print the expected errors of a plan; where they depend on the data, print the steps that will be done."""
    tables, explanation = expected(plan, level), mechanism_of(plan).explain(plan)
    totals = (
        _show_steps(explanation, tables) if plan.promise is None else _show_promise(plan, tables)
    )
    _show_statistics(_expected_statistics(plan, level))
    budget = plan.privacy.budget
    paid, most = parameters(charge(budget, budget, plan.cost())), parameters(whole_budget(budget))
    near = Fraction(
        10**6 - 1, 10**6
    )  # rounded scales may cost a millionth less than the budget, which is shown then
    costs = Charge(
        **{name: most[name] if part >= near * most[name] else part for name, part in paid.items()}
    )
    rest = ", all of it" if plan.measurements is None else ""
    show_facts(
        [
            ("queries", f"{sum(table['queries'] for table in tables):,}"),
            *totals,
            ("strategy", plan.strategy),
            ("protects", plan.privacy.unit),
            ("cost", f"{costs}{rest}, with {noise(explanation.mechanism)} noise"),
            *([] if guard is None else [("guard", guard.words())]),
            *_shares(plan),
            *(("values", sentence) for sentence in list_sum_contributions(plan.workload)),
            *(("left out", sentence) for sentence in list_dropped_rows(plan)),
            *(
                ("not protected", ENGLISH.say(key, values=values))
                for key, values in format_public_facts(plan).items()
            ),
            ("seconds", f"{seconds:.2f}"),
        ]
    )


def _show_promise(plan: Plan, tables: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Print a row for each table, without columns that say the same of all tables; return the facts about their total error."""
    units = [
        str(product.measure) if product.of_values else "units" if product.of_units else "rows"
        for product in plan.workload
    ]
    hidden = {name for name in plan.domain.names if plan.domain.kind(name).hidden}
    columns: list[tuple[str, str, Callable[[dict[str, Any], str], str], bool]] = [
        ("table", "fold", lambda table, _: table["name"], True),
        ("queries", "right", lambda table, _: f"{table['queries']:,}", True),
        ("rmse", "right", lambda table, _: number(table["rmse"]), True),
        (
            "largest\nstd error",
            "right",
            lambda table, _: "<= " * table["largest_is_bound"] + number(table["largest_std"]),
            True,
        ),
        ("in", "fold", lambda _, unit: unit, {*units} != {"rows"}),
        (
            "weight",
            "right",
            lambda table, _: f"{table['weight']:g}",
            any(table["weight"] != 1 for table in tables),
        ),
        (
            "target",
            "left",
            lambda table, _: _target(table),
            any("target" in table for table in tables),
        ),
        (
            "leaves out\nrows without",
            "fold",
            lambda table, _: ", ".join(name for name in table["leaves_out"] if name in hidden),
            bool(hidden),
        ),
    ]
    used = [column for column in columns if column[3]]
    rows = [
        [cell(*pair) for _, _, cell, _ in used]
        for pair in zip(tables[:_MOST_TABLES], units, strict=False)
    ]
    show_table("Expected error", [column[:2] for column in used], rows)
    if rest := tables[_MOST_TABLES:]:
        errors = [table["rmse"] for table in rest]
        queries = pluralize(sum(table["queries"] for table in rest), "query", "queries")
        click.echo(
            f"and {pluralize(len(rest), 'more table')}, {queries}, rmse {number(min(errors))} to "
            f"{number(max(errors))} (--json)\n"
        )
    promise = plan.expected_error()
    return [
        ("total squared error", number(promise.total_squared_error)),
        ("lower bound", number(promise.lower_bound)),
        ("error / least possible", _ratio(promise.times_least)),
    ]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 1000 else number(value)


def _show_statistics(statistics: Sequence[dict[str, Any]]) -> None:
    """Print what is known beforehand of the errors of means, quantiles and distribution functions."""
    rows = []
    for asked in statistics:
        if "means" in asked["asked"]:
            known = _known_of_mean(asked)
        else:
            known = f"standard error of the counts up to a cell {number(asked['rows'])} rows"
            if asked["std_error"] is not None:
                known += f", {number(asked['std_error'])} of {number(asked['size'])} rows"
        rows.append([asked["name"], known, _target(asked)])
    if rows:
        columns = [("made of the tables", "fold"), ("known beforehand", "fold"), ("target", "left")]
        shown_columns = 3 if any("target" in asked for asked in statistics) else 2
        show_table("", columns[:shown_columns], [row[:shown_columns] for row in rows])


def _known_of_mean(mean: dict[str, Any]) -> str:
    """Say how large the error of a mean is at the public size of its groups, or what it needs."""
    weighted = mean["size_is"] == "weights"
    if mean["std_error"] is None:
        depends_on = "sum of the weights" if weighted else "rows"
        of_sum = ", about their sum of weights," if weighted else ""
        return (
            f"depends on the {depends_on} of a group; say a public size{of_sum} for the error of "
            "a mean"
        )
    size = number(mean["size"])
    group = f"with weights of {size} in all" if weighted else f"of {size} rows"
    return f"standard error at most {number(mean['std_error'])} in a group {group} (delta method)"


def _target(table: dict[str, Any]) -> str:
    """Write a target and the error that is compared with it: "margin 50: 48.2", and ", missed" if it is above."""
    if "target" not in table:
        return ""
    ((kind, most),) = table["target"].items()
    return f"{kind} {number(most)}: {number(table[kind])}{'' if table['kept'] else ', missed'}"


def _show_steps(
    explanation: Explanation, tables: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Print the steps of a plan that looks at the data with their parts of the budget, and the error of the best plan that does not."""
    show_table(
        "What will be done",
        [("step", "left"), ("part of the budget", "left")],
        _step_lines(explanation.steps),
    )
    click.echo(
        "Which queries are measured is decided on the way, by noisy values that are paid for. So "
        "the error depends on the data,\n"
        "and no error is promised. The release says how large it is: the noise exactly, the rest "
        "as an estimate.\n"
    )
    reference = explanation.reference
    if reference is None:
        return []
    rows = [
        [table["name"], f"{table['queries']:,}", number(rmse)]
        for table, rmse in zip(tables, reference.rmse, strict=True)
    ]
    title = (
        f"For comparison: expected error of {reference.strategy}, which does not look at the data"
    )
    show_table(
        title, [("table", "fold"), ("queries", "right"), ("rmse", "right")], rows[:_MOST_TABLES]
    )
    return [
        ("its total squared error", number(reference.expected_total_squared_error)),
        ("its lower bound", number(reference.lower_bound)),
    ]


def _step_lines(steps: Steps, indent: str = "") -> list[tuple[str, str]]:
    """Return a line for each step with its part of the budget; alternatives are indented."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        if isinstance(step, StepChoice):
            lines.append((f"{indent}then, by the answer, one of these:", ""))
            for case, inner_steps in step.cases:
                lines.append((f"{indent}  {_CASES.get(case, case)}", ""))
                lines.extend(_step_lines(inner_steps, indent + "    "))
        else:
            parts = [f"{name} = {readable(part)}" for name, part in parameters(step.budget).items()]
            lines.append((indent + _STEPS.get(step.name, step.name), ", ".join(parts)))
    return lines


def _shares(plan: Plan) -> list[tuple[str, str]]:
    """Return which share of the cost is for rows and sums and which for each count of units; nothing where no units are counted."""
    units = {product.measure for product in plan.workload if product.of_units}
    if not units:
        return []
    paid = {
        view.blocks[0].measure: float(next(iter(parameters(cost(view)).values())))
        for view in views(plan.measured())
    }
    parts = [
        f"{measure if measure in units else 'rows and sums'} {price / sum(paid.values()):.0%}"
        for measure, price in paid.items()
    ]
    return [("of which for", ", ".join(parts))]


def _show_periods(plan: Plan) -> None:
    """Print the expected errors for periods of a series; for other plans, print nothing."""
    if not (errors := [*period_errors(plan).items()]):
        return
    step = -(-len(errors) // _MOST_PERIODS)
    chosen = [
        pair
        for position, pair in enumerate(errors)
        if position % step == 0 or position == len(errors) - 1
    ]
    rows: list[list[Any]] = [
        [label, *("" if error is None else number(error) for error in row)] for label, row in chosen
    ]
    columns = [("period", "left"), *((product.name, "right") for product in plan.workload)]
    show_table("Typical error of the answers that end in a period", columns, rows)


def _search_facts(what: Spec) -> list[dict[str, Any]]:
    """Return what the searches for categories of a spec cost and find as JSON objects with stable keys."""
    plans = search_plans(what.searches, what.privacy)
    return [
        {
            "attribute": search.attribute,
            "budget": plans[search.attribute].privacy.budget.to_json(),
            "threshold": plans[search.attribute].threshold,
            "often": plans[search.attribute].often,
            "most": search.kind.most,
            "found": None if search.found is None else len(search.found.texts),
        }
        for search in what.searches
    ]


def _search_words(fact: Mapping[str, Any]) -> str:
    price, name = amounts(budget_from_json(fact["budget"]), up=True), fact["attribute"]
    if fact["found"] is not None:
        return f"The categories of {name} are found and paid ({price}): {fact['found']:,}. The cost above is for the rest."
    return (
        f"Before that, {price} pays for finding the categories of {name}. A search finds a "
        f"category of {fact['often']:,} units in 95 of "
        f"100 cases, one of {fact['threshold']:,} units in about half of them, and one of far "
        "fewer units never. The errors above are for "
        f"{fact['most']:,} categories."
    )


def _errors_json(plan: Plan) -> dict[str, Any]:
    total, rmse = (
        plan.expected_error().total_squared_error,
        {table["name"]: table["rmse"] for table in expected(plan)},
    )
    return {"privacy": plan.privacy.to_json(), "expected_total_squared_error": total, "rmse": rmse}


def _show_errors(title: str, plans: dict[str, Plan], *, budgets: bool = False) -> None:
    """Print a row for each table and a column for each plan, and below them the budgets if these are asked for and differ."""
    if not plans:
        return
    errors = [_errors_json(plan)["rmse"] for plan in plans.values()]
    rows = [[name, *(number(by_table[name]) for by_table in errors)] for name in errors[0]]
    sizes = [amounts(plan.privacy.budget, up=True) for plan in plans.values()]
    if budgets and len({*sizes}) > 1:
        rows.append(["budget", *sizes])
    show_table(title, [("table", "fold"), *((size, "right") for size in plans)], rows)


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Print all strategies and stop. The planners are loaded here, and not for ``--help``, which shall be quick."""
    if wanted:
        from leastnoise._strategies import PLANNERS

        rows = [
            [planner.name, planner.measures, "yes" if planner.automatic else "by name"]
            for planner in PLANNERS.values()
        ]
        show_table(
            "", [("strategy", "left"), ("measures", "fold"), ("auto tries it", "left")], rows
        )
        context.exit()


@click.command()
@click.argument("spec", type=FILE)
@as_json
@click.option(
    "--all", "by_name", is_flag=True, help="Also the strategies that are used by name alone."
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="Say what every strategy measures, and stop.",
)
@of_spec
@without_cache
def compare(spec: Path, as_json: bool, by_name: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Compare every strategy, least expected error first.

    Reads the spec file alone; the data need not exist. Strategies that cannot be used come last,
    with the reason.
    """
    what = read_command_spec(spec)
    about = expected_seconds(what.workload, what.planned_privacy, what.search())
    with memory_limit(), Progress("planning", about=about) as progress:
        tried = tried_on(
            what.workload,
            what.planned_privacy,
            progress.trying,
            seconds=what.seconds,
            by_name=by_name,
        )
    if as_json:
        candidates = [_candidate_json(candidate) for candidate in tried]
        show_json(
            {
                "queries": what.workload.rows,
                "candidates": candidates,
                "not_comparable": list(BY_NAME),
            }
        )
        return
    usable = [(candidate, candidate.plan) for candidate in tried if candidate.plan is not None]
    columns = [
        ("strategy", "left"),
        ("noise", "left"),
        ("expected\nsquared error", "right"),
        ("lower\nbound", "right"),
    ]
    columns += [("error / least\npossible", "right"), ("seconds", "right")]
    rows = [
        [
            candidate.strategy,
            noise(candidate.noise.value),
            number(candidate.total),
            number(made.lower_bound()),
            _ratio(made.expected_error().times_least),
            f"{candidate.seconds:.2f}",
        ]
        for candidate, made in usable
    ]
    queries = pluralize(what.workload.rows, "query", "queries")
    show_table(f"{queries}, {amounts(usable[0][1].privacy.budget, up=True)}", columns, rows, bold=0)
    early = [
        [
            candidate.strategy,
            noise(candidate.noise.value),
            "stopped early" if candidate.plan else "left out",
            f"{candidate.more:.2g}",
        ]
        for candidate in tried
        if candidate.more
    ]
    if early:
        heads = [
            ("more time", "left"),
            ("noise", "left"),
            (f"within {what.seconds:g} s", "left"),
            ("needs\nCPU seconds", "right"),
        ]
        show_table("", heads, early)
        click.echo(
            click.wrap_text("It may find less error: give planning more seconds under [plan].", 78)
            + "\n"
        )
    unusable = [candidate for candidate in tried if candidate.plan is None and not candidate.more]
    if unusable:
        reasons = [
            [candidate.strategy, noise(candidate.noise.value), candidate.reason]
            for candidate in unusable
        ]
        show_table(
            "", [("cannot be used", "left"), ("noise", "left"), ("because", "fold")], reasons
        )
    click.echo(
        click.wrap_text(
            f"Not comparable, because their errors depend on the data: {', '.join(BY_NAME)}.", 78
        )
    )


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    made = candidate.plan
    return {
        "strategy": candidate.strategy,
        "mechanism": candidate.noise.value,
        "usable": made is not None,
        "reason": candidate.reason,
        "expected_total_squared_error": made and candidate.total,
        "lower_bound": made and made.lower_bound(),
        "error_over_least_possible": made and made.expected_error().times_least,
        "seconds": round(candidate.seconds, 3),
        "more_seconds": candidate.more or None,
    }


@click.command()
@click.argument("spec", type=FILE)
@click.option(
    "--trials",
    type=int,
    help="How often each of two tables is measured; otherwise as often as the seconds allow.",
)
@click.option("--seconds", type=float, default=20.0, show_default=True, help="How long to measure.")
@as_json
def audit(spec: Path, trials: int | None, seconds: float, as_json: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Bound the privacy loss from below: try the installed program.

    Reads the spec file alone. Rows are made up from its domain; the data are not read and nothing
    is spent. The exit code is 70 if a bound is above what the plan claims.
    """
    what = read_spec(spec)
    each = seconds / (1 + len(what.searches))
    with Progress("planning", about=estimate_planning_seconds(what) + seconds) as progress:
        made = plan_spec(what, progress.trying)
        progress.say("measuring made-up rows")
        whole_plan = audited(made, guard=what.options.guard, trials=trials, seconds=each)
        searches = {
            name: audited(search, trials=trials, seconds=each)
            for name, search in search_plans(what.searches, what.privacy).items()
        }
    if as_json:
        show_json(
            {
                **asdict(whole_plan),
                "searches": {name: asdict(search) for name, search in searches.items()},
            }
        )
    else:
        _show_audit(whole_plan)
        for name, search in searches.items():
            click.echo(f"\nThe search for categories of {name!r}")
            _show_audit(search)
    if not all(bounds.held for bounds in (whole_plan, *searches.values())):
        click.echo(
            "leastnoise: a bound is above the claim: this program, on this machine, does not keep "
            "its promise; please report it.",
            err=True,
        )
        click.get_current_context().exit(FAULT)


def _show_audit(bounds: Audit) -> None:
    epsilon = (
        []
        if bounds.epsilon is None
        else [("as epsilon", f"at least {bounds.epsilon:.4g} at the plan's delta")]
    )
    show_facts(
        [
            ("claim", f"{_MEASURES[bounds.measure]}: at most {bounds.claim:.4g}"),
            ("lower bound", f"at least {bounds.lower_bound:.4g}"),
            *epsilon,
            *(
                (part.name, f"claims {part.claim:.4g}, loses at least {part.lower_bound:.4g}")
                for part in bounds.parts
            ),
            ("confidence", f"{100 * bounds.confidence:.4g}% for all bounds together"),
            (
                "trials",
                (
                    f"{bounds.trials:,} of each of two tables, which differ in "
                    f"{pluralize(bounds.units, 'unit')}"
                ),
            ),
            (
                "statistic",
                (
                    "likelihood ratio, threshold chosen on one half of the trials, Clopper-Pearson on "
                    "the other"
                ),
            ),
            (
                "verdict",
                "no bound is above its claim" if bounds.held else "MORE IS LOST THAN IS CLAIMED",
            ),
        ]
    )


@click.command()
@click.argument("path", metavar="[FILE|SPEC|RELEASE]", type=FILE, required=False)
def studio(path: Path | None) -> None:
    """Make a spec, plan, or explore a release in the browser.

    With a file of data, or nothing: forms that make a spec from names and types of columns alone.
    With a spec: budget, targets, weights and tables, and what becomes of every margin. With the
    directory that `leastnoise release` wrote: tables of any attributes, their charts, and the exact
    error of any sum of their cells.

    Prints the address of a page on this computer, which one browser can open once; ends with the
    terminal or with Ctrl-C. Never reads a value of the data.
    """
    try:
        from leastnoise._studio import Studio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "tomlkit", "uvicorn"}:
            raise
        raise InputError(
            "The studio needs some more packages: pip install 'leastnoise[studio]'."
        ) from None
    server = Studio(path)
    click.echo(f"The studio is at {server.address}\nOne browser can open it, once. Ctrl-C ends it.")
    server.run()
