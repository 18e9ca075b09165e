"""What a plan promises, for people and for programs; and planning with a line of progress."""

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from leastnoise._accounting import Charge, charge, fraction_from_text, parameters, whole_budget
from leastnoise._accuracy import statistic_errors, within_memory
from leastnoise._check import InputError, readable
from leastnoise._cli._output import noise, number, share, show_facts, show_table, unique, whole
from leastnoise._frames import several
from leastnoise._measurements import cost, views
from leastnoise._mechanisms import Explanation, mechanism_of
from leastnoise._plan import Plan, Promise
from leastnoise._planning import Reached, reached, reached_by_means
from leastnoise._progress import Progress
from leastnoise._release import ENGLISH, FoundCategories, stated_words, sums_words
from leastnoise._session import planned_spec, spec_seconds
from leastnoise._spec import Spec, read_spec

_MOST_TABLES = 40
_METHODS = {
    "means": "std_error of a mean in a group of size rows, at most: by the delta method, at the largest mean that the bounds allow",
    "shares": "rows: standard error of the counts up to a cell; std_error is their share of size rows",
}
_STEPS = {
    "test": "ask how much structure the data have (the least cost of any partition)",
    "levels": "measure blocks of several widths, and shrink the differences between them",
    "buckets": "measure the buckets",
    "blocks": "measure a few blocks",
    "parts": "divide each block as its noisy count deserves, and measure the parts and groups of them",
    "total": "count the rows",
    "alone": "measure every attribute alone",
    "pairs": "measure pairs of attributes on bins that hold about half as many rows as their noise, and fit a model",
    "threes": "measure tables of three attributes on bins",
    "independent": "measure the plan that does not look at the data",
    "tail": "count the records in the tail, and choose the threshold of least predicted error",
    "sums": "measure the sums of values cut at the threshold, with a strategy made for it",
    "groups": "measure buckets of the number under the threshold, by group; each group adds up those that are likely worth their noise",
    "number": "measure sums along the number; buckets of it, each up to 1.6 times as high as the last, that hold nothing are left out",
}
_CASES = {
    "independent": "no structure:",
    "adaptive": "much structure:",
    "blocks": "some structure:",
    "model_bins": "cells of few rows:",
    "model_fuller": "cells of rather few rows:",
    "model_tables": "cells of many rows:",
}


without_cache = click.option(
    "--no-cache",
    is_flag=True,
    expose_value=False,
    callback=lambda _, __, wanted: os.environ.update({"LEASTNOISE_CACHE": "off"} if wanted else {}),
    help="Plan anew, and keep no plan in the cache folder.",
)
"""For commands that plan; the same as LEASTNOISE_CACHE=off in the environment."""


of_spec = click.option(
    "--spec",
    "beside",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=lambda context, _, place: context.meta.update(spec=place),
    help="The spec, where SPEC is a file of SQL statements (.sql), which are asked in place of its [[workload]].",
)
"""For commands that may be given a file of SQL."""


def read_asked(place: Path, found: Mapping[str, FoundCategories] | None = None) -> Spec:
    """The spec of a command, or that beside its SQL."""
    beside = click.get_current_context().meta.get("spec")
    if (place.suffix == ".sql") != (beside is not None):
        raise InputError(
            f"{place} has SQL statements: say --spec people.toml too, for the domain and the budget."
            if beside is None
            else f"--spec is for a file of SQL statements whose name ends in .sql; got {place}."
        )
    return read_spec(place, found or {}) if beside is None else read_spec(beside, found or {}, place)


def planned_shown(spec: Spec) -> tuple[Plan, float]:
    """The plan that a spec asks for, and the seconds that it took, with a line of progress."""
    with within_memory(), Progress("planning", about=spec_seconds(spec)) as progress:
        return planned_spec(spec, progress.trying), progress.seconds


def expected(plan: Plan, level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every table, by name; None where the error depends on the data.

    Errors of counts are in rows, those of sums in the measure's own amounts. A table with a target also has it, what the plan makes of it,
    and whether it is kept.
    """
    products = plan.workload.products
    promised = [None] * len(products) if plan.promise is None else plan.promise.tables
    targets = [None] * len(products) if plan.promise is None else reached(plan, level)
    names = unique([product.name for product in products])
    return [
        {
            "name": name,
            "queries": product.rows,
            "rmse": None if table is None else table.rmse * product.unit,
            "largest_std": None if table is None else table.largest_std * product.unit,
            "largest_is_bound": None if table is None else table.largest_is_bound,
            "weight": float(product.weight),
            "measure": product.measure,
            **_target_facts(target),
        }
        for name, table, product, target in zip(names, promised, products, targets, strict=True)
    ]


def expected_statistics(plan: Plan, level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every mean, quantile and distribution function: the error of its counts, and what follows at a public size."""
    if plan.promise is None:
        return []
    return [
        {
            "name": error.statistic.name,
            "asked": error.statistic.to_json(),
            "tables": list(error.tables),
            "rows": error.rows,
            "largest_rows": error.largest_rows,
            "size": None if error.statistic.size is None else float(error.statistic.size),
            "std_error": error.std_error,
            "method": _METHODS["means" if error.statistic.form.of_measure else "shares"],
            **_target_facts(target),
        }
        for error, target in zip(statistic_errors(plan), reached_by_means(plan, level), strict=True)
    ]


def _target_facts(target: Reached | None) -> dict[str, Any]:
    return {} if target is None else {"target": {target.kind: target.most}, target.kind: target.error, "kept": target.kept}


def facts(plan: Plan, seconds: float, level: float) -> dict[str, Any]:
    """What is promised, as a JSON object with stable keys; null for what depends on the data."""
    promise, tables, statistics = plan.promise, expected(plan, level), expected_statistics(plan, level)
    explanation = mechanism_of(plan).explain(plan)
    looks: dict[str, Any] = {}
    if explanation.steps:
        reference = None if explanation.reference is None else explanation.reference.facts()
        if reference is not None:
            reference["rmse"] = dict(zip((table["name"] for table in tables), reference["rmse"], strict=True))
        looks = {"data_aware": True, "steps": explanation.steps, "reference": reference}
    cost: dict[str, Any] = {**plan.cost().to_json()}
    cost |= cost.pop("budget", {})
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
        **({"statistics": statistics} if statistics else {}),
        **({"values": values} if (values := sums_words(plan.workload)) else {}),
        **({"not_protected": dict(said)} if (said := stated_words(plan)) else {}),
        "seconds": round(seconds, 3),
        **looks,
    }


def show_plan(plan: Plan, seconds: float, level: float) -> None:
    """Print the expected error of every table, and of all together; or what will be done, where the error depends on the data."""
    tables, explanation = expected(plan, level), mechanism_of(plan).explain(plan)
    totals = _show_steps(explanation, tables) if plan.promise is None else _show_promise(plan.promise, tables)
    _show_statistics(expected_statistics(plan, level))
    rest = ", all of it" if plan.measurements is None else ""
    show_facts(
        [
            ("queries", whole(sum(table["queries"] for table in tables))),
            *totals,
            ("strategy", plan.strategy),
            ("protects", plan.privacy.unit),
            ("cost", f"{_cost(plan)}{rest}, with {noise(explanation.mechanism)} noise"),
            *_shares(plan),
            *(("values", sentence) for sentence in sums_words(plan.workload)),
            *(("not protected", ENGLISH.say(key, values=values)) for key, values in stated_words(plan).items()),
            ("seconds", f"{seconds:.2f}"),
        ]
    )


def _show_promise(promise: Promise, tables: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    columns = [("table", "fold"), ("queries", "right"), ("rmse", "right"), ("largest\nstd error", "right")]
    rows = []
    for table in tables[:_MOST_TABLES]:
        largest = ("<= " if table["largest_is_bound"] else "") + number(table["largest_std"])
        rows.append([table["name"], whole(table["queries"]), number(table["rmse"]), largest])
    if any(table["weight"] != 1 for table in tables):
        columns.append(("weight", "right"))
        rows = [[*row, f"{table['weight']:g}"] for row, table in zip(rows, tables, strict=False)]
    if any("target" in table for table in tables):
        columns.append(("target", "left"))
        rows = [[*row, _target(table)] for row, table in zip(rows, tables, strict=False)]
    show_table("Expected error", columns, rows)
    rest = tables[_MOST_TABLES:]
    if rest:
        errors = [table["rmse"] for table in rest]
        queries = several(sum(table["queries"] for table in rest), "query", "queries")
        click.echo(f"and {several(len(rest), 'more table')}, {queries}, rmse {number(min(errors))} to {number(max(errors))} (--json)\n")
    return [
        ("total squared error", number(promise.total_squared_error)),
        ("lower bound", number(promise.lower_bound)),
        ("error / least possible", share(promise.times_least)),
    ]


def _show_statistics(statistics: Sequence[dict[str, Any]]) -> None:
    """What can be said beforehand of means (at a public size), and of quantiles and distribution functions (the error of their counts)."""
    rows = []
    for asked in statistics:
        if "means" in asked["asked"]:
            known = "depends on the rows of a group; say a public size for the error of a mean"
            if asked["std_error"] is not None:
                known = f"standard error at most {number(asked['std_error'])} in a group of {number(asked['size'])} rows (delta method)"
        else:
            known = f"standard error of the counts up to a cell {number(asked['rows'])} rows"
            if asked["std_error"] is not None:
                known += f", {number(asked['std_error'])} of {number(asked['size'])} rows"
        rows.append([asked["name"], known])
    if rows:
        columns = [("made of the tables", "fold"), ("known beforehand", "fold")]
        if any("target" in asked for asked in statistics):
            columns.append(("target", "left"))
            rows = [[*row, _target(asked)] for row, asked in zip(rows, statistics, strict=True)]
        show_table("", columns, rows)


def _target(table: dict[str, Any]) -> str:
    """What is made of a target: "margin 50: 48.2", with a mark if it is missed."""
    if "target" not in table:
        return ""
    ((kind, most),) = table["target"].items()
    return f"{kind} {number(most)}: {number(table[kind])}{'' if table['kept'] else ', missed'}"


def _show_steps(explanation: Explanation, tables: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Print what will be done with which part of the budget, and the error of the best plan that does not look at the data."""
    show_table("What will be done", [("step", "left"), ("part of the budget", "left")], _step_lines(explanation.steps))
    click.echo(
        "Which queries are measured is decided on the way, by noisy values that are paid for. So the error depends on the data,\n"
        "and no error is promised. The release says how large it is: the noise exactly, the rest as an estimate.\n"
    )
    reference = explanation.reference
    if reference is None:
        return []
    rows = [[table["name"], whole(table["queries"]), number(rmse)] for table, rmse in zip(tables, reference.rmse, strict=True)]
    title = f"For comparison: expected error of {reference.strategy}, which does not look at the data"
    show_table(title, [("table", "fold"), ("queries", "right"), ("rmse", "right")], rows[:_MOST_TABLES])
    return [
        ("its total squared error", number(reference.expected_total_squared_error)),
        ("its lower bound", number(reference.lower_bound)),
    ]


def _step_lines(steps: Sequence[Mapping[str, Any]], indent: str = "") -> list[tuple[str, str]]:
    """One line a step, alternatives below each other."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        if step["step"] == "one of":
            lines.append((f"{indent}then, by the answer, one of these:", ""))
            for case, inner in step.items():
                if case != "step":
                    lines += [(f"{indent}  {_CASES.get(case, case)}", ""), *_step_lines(inner, indent + "    ")]
        else:
            parts = {"epsilon": step["epsilon"]} if "epsilon" in step else step["budget"]
            pairs = [(name, fraction_from_text("a part of the budget", str(part))) for name, part in parts.items() if name != "definition"]
            lines.append((indent + _STEPS.get(step["step"], step["step"]), ", ".join(f"{name} = {readable(part)}" for name, part in pairs)))
    return lines


def _cost(plan: Plan) -> str:
    """What the plan costs; where scales were rounded and cost a millionth less than the budget, the budget."""
    budget = plan.privacy.budget
    paid, most = charge(budget, budget, plan.cost()), whole_budget(budget)
    pairs = {name: (getattr(paid, name), getattr(most, name)) for name in ("epsilon", "delta", "rho")}
    near = Fraction(10**6 - 1, 10**6)
    return str(Charge(**{name: above if below >= near * above else below for name, (below, above) in pairs.items()}))


def _shares(plan: Plan) -> list[tuple[str, str]]:
    """What share of the cost is for rows and sums, and for each count of units, which add up; nothing where no units are counted."""
    units = {product.measure for product in plan.workload if product.of_units}
    if not units:
        return []
    paid = {view.blocks[0].measure: float(next(iter(parameters(cost(view)).values()))) for view in views(plan.measured())}
    parts = [f"{measure if measure in units else 'rows and sums'} {price / sum(paid.values()):.0%}" for measure, price in paid.items()]
    return [("of which for", ", ".join(parts))]
