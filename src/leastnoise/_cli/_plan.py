"""``leastnoise plan`` and ``leastnoise compare``: what is expected, before anything is spent."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leastnoise._cli._cache import without_cache
from leastnoise._cli._categories import search_facts, show_searches
from leastnoise._cli._expected import expected, expected_statistics
from leastnoise._cli._explain import explained, show_steps
from leastnoise._cli._further import further_facts, other_budgets, other_rows, show_further, table_prices, with_epsilon
from leastnoise._cli._memory import within_memory
from leastnoise._cli._output import check_new, noise, number, share, show_facts, show_json, show_table, shown, whole, write_new
from leastnoise._cli._planned import planned_shown
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._plan import Plan, Promise
    from leastnoise._session import Candidate

_MOST_TABLES = 40
_EXISTS = "Choose another file, or remove it first."


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write the plan itself to this new file.")
@click.option("--epsilon", help="Plan for this epsilon in place of the spec's.")
@click.option("--budgets", help="Also the errors under other budgets of the same kind, such as 0.1,1,10; nothing is planned again.")
@click.option("--max-rows", "rows", help="Also the errors where other numbers of rows of a unit count, such as 1,2,4,8; each is planned.")
@click.option(
    "--prices", "priced", is_flag=True, help="Also what every table costs: alone, and what leaving it out saves. Plans many times."
)
@without_cache
def plan(
    spec: Path,
    as_json: bool,  # noqa: FBT001 - click passes flags by name
    out: Path | None,
    epsilon: str | None,
    budgets: str | None,
    rows: str | None,
    priced: bool,  # noqa: FBT001 - the same
) -> None:
    """Expected error of every query set, before any budget is spent.

    Reads the spec file alone; the data need not exist.
    """
    from leastnoise._cli._release import warn, warn_of_bias
    from leastnoise._release import check_options
    from leastnoise._session import check_writable, plan_warnings, read_spec, spec_warnings

    what = read_spec(spec)
    check_writable(what)
    if epsilon is not None:
        what = with_epsilon(what, epsilon)
    if out is not None:
        check_new(out, _EXISTS)
    warn_of_bias(what)
    warned = spec_warnings(what)
    warn(warned)
    made, seconds = planned_shown(what)
    check_options(made, what.options)
    if out is not None:
        write_new(out, made.to_json() + "\n", _EXISTS)
    late = plan_warnings(what, made)
    warn(late)
    by_rows = {} if rows is None else other_rows(what, rows)
    plans = {} if budgets is None else other_budgets(made, budgets)
    costs = table_prices(made, what) if priced else ()
    if as_json:
        searches = {"searches": list(search_facts(what))} if what.searches else {}
        show_json(
            {**facts(made, seconds, what.options.level), **searches, **further_facts(plans, costs, by_rows), "warnings": [*warned, *late]}
        )
        return
    show_plan(made, seconds, what.options.level)
    show_further(plans, costs, by_rows)
    show_searches(what)
    if out is not None:
        click.echo(f"The plan is in {shown(out)}.")


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """The strategies of the registry, which is not read for ``--help``: it needs the libraries."""
    if wanted:
        from leastnoise._planner import PLANNERS

        rows = [[one.name, one.measures, "yes" if one.automatic else "by name"] for one in PLANNERS.values()]
        show_table("", [("strategy", "left"), ("measures", "fold"), ("auto tries it", "left")], rows)
        context.exit()


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--all", "by_name", is_flag=True, help="Also the strategies that are used by name alone.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Say what every strategy measures, and stop.")
@without_cache
def compare(spec: Path, as_json: bool, by_name: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Every strategy side by side, least expected error first.

    Reads the spec file alone; the data need not exist. Strategies that cannot be used come last, with the reason.
    """
    from leastnoise._frames import several
    from leastnoise._session import BY_NAME, expected_seconds, read_spec
    from leastnoise._session import compare as tried_on

    what = read_spec(spec)
    about = expected_seconds(what.workload, what.planned_privacy, what.search())
    with within_memory(), Progress("planning", about=about) as progress:
        tried = tried_on(
            what.workload,
            what.planned_privacy,
            progress.trying,
            seconds=what.seconds,
            by_name=by_name,
        )
    if as_json:
        found = [_candidate(candidate) for candidate in tried]
        show_json({"queries": what.workload.rows, "candidates": found, "not_comparable": list(BY_NAME)})
        return
    usable = [(candidate, candidate.plan) for candidate in tried if candidate.plan is not None]
    rows = [_row(candidate, made) for candidate, made in usable]
    columns = [("strategy", "left"), ("noise", "left"), ("expected\nsquared error", "right"), ("lower\nbound", "right")]
    columns += [("error / least\npossible", "right"), ("seconds", "right")]
    show_table(f"{several(what.workload.rows, 'query', 'queries')}, {_budget(usable[0][1])}", columns, rows, bold=0)
    wanting = [candidate for candidate in tried if candidate.more]
    if wanting:
        _show_wanting(wanting, what.seconds)
    unusable = [
        [candidate.strategy, noise(candidate.noise.value), candidate.reason]
        for candidate in tried
        if candidate.plan is None and not candidate.more
    ]
    if unusable:
        show_table("", [("cannot be used", "left"), ("noise", "left"), ("because", "fold")], unusable)
    click.echo(click.wrap_text(f"Not comparable, because their errors depend on the data: {', '.join(BY_NAME)}.", 78))


def _show_wanting(wanting: Sequence["Candidate"], seconds: float) -> None:
    """What more time would bring."""
    columns = [("more time", "left"), ("noise", "left"), (f"within {seconds:g} s", "left"), ("needs\nCPU seconds", "right")]
    show_table(
        "",
        columns,
        [[one.strategy, noise(one.noise.value), "stopped early" if one.plan else "left out", f"{one.more:.2g}"] for one in wanting],
    )
    click.echo(click.wrap_text("It may find less error: give planning more seconds under [plan].", 78) + "\n")


def facts(made: "Plan", seconds: float, level: float) -> dict[str, Any]:
    """What is promised, as a JSON object with stable keys; null for what depends on the data."""
    from leastnoise._session import mechanism_of

    promise, tables, found = made.promise, expected(made, level), mechanism_of(made).explain(made)
    return {
        "strategy": made.strategy,
        "mechanism": found.mechanism,
        "privacy": made.privacy.to_json(),
        "cost": {"kind": "series", **made.privacy.budget.to_json()} if made.measurements is None else made.cost().to_json(),
        "queries": sum(table["queries"] for table in tables),
        "expected_total_squared_error": None if promise is None else promise.total_squared_error,
        "lower_bound": None if promise is None else promise.lower_bound,
        "error_over_least_possible": ratio(made),
        "rmse": {table["name"]: table["rmse"] for table in tables},
        "tables": tables,
        **({"statistics": statistics} if (statistics := expected_statistics(made, level)) else {}),
        "seconds": round(seconds, 3),
        **explained(found, [table["name"] for table in tables]),
    }


def ratio(made: "Plan") -> float | None:
    """The error over the least possible: the root of the expected total over its lower bound; None where the bound is nothing."""
    from leastnoise._release import goodness

    return goodness(made)


def show_plan(made: "Plan", seconds: float, level: float) -> None:
    """Print the expected error of every table, and of all together; or what will be done, where the error depends on the data."""
    from leastnoise._session import mechanism_of

    tables, found = expected(made, level), mechanism_of(made).explain(made)
    told = show_steps(found, tables) if made.promise is None else _show_promise(made.promise, tables, ratio(made))
    _show_statistics(expected_statistics(made, level))
    rest = ", all of it" if made.measurements is None else ""
    show_facts(
        [
            ("queries", whole(sum(table["queries"] for table in tables))),
            *told,
            ("strategy", made.strategy),
            ("protects", made.privacy.unit),
            ("cost", f"{_cost(made)}{rest}, with {noise(found.mechanism)} noise"),
            *_shares(made),
            ("seconds", f"{seconds:.2f}"),
        ]
    )


def _show_statistics(statistics: Sequence[dict[str, Any]]) -> None:
    """What can be said beforehand of means, quantiles and distribution functions."""
    if statistics:
        columns = [("made of the tables", "fold"), ("known beforehand", "fold")]
        rows = [[one["name"], _beforehand(one)] for one in statistics]
        if any("target" in one for one in statistics):
            columns.append(("target", "left"))
            rows = [[*row, _target(one)] for row, one in zip(rows, statistics, strict=True)]
        show_table("", columns, rows)


def _beforehand(one: dict[str, Any]) -> str:
    """The error of a mean by the delta method, at a public size; of the others that of their counts."""
    if "means" in one["asked"]:
        if one["std_error"] is None:
            return "depends on the rows of a group; say a public size for the error of a mean"
        return f"standard error at most {number(one['std_error'])} in a group of {number(one['size'])} rows (delta method)"
    said = f"standard error of the counts up to a cell {number(one['rows'])} rows"
    return said if one["std_error"] is None else f"{said}, {number(one['std_error'])} of {number(one['size'])} rows"


def _show_promise(promise: "Promise", tables: Sequence[dict[str, Any]], over: float | None) -> list[tuple[str, str]]:
    columns = [("table", "fold"), ("queries", "right"), ("rmse", "right"), ("largest\nstd error", "right")]
    rows = [_table_row(table) for table in tables[:_MOST_TABLES]]
    if any(table["weight"] != 1 for table in tables):
        columns.append(("weight", "right"))
        rows = [[*row, f"{table['weight']:g}"] for row, table in zip(rows, tables, strict=False)]
    if any("target" in table for table in tables):
        columns.append(("target", "left"))
        rows = [[*row, _target(table)] for row, table in zip(rows, tables, strict=False)]
    show_table("Expected error", columns, rows)
    rest = tables[_MOST_TABLES:]
    if rest:
        from leastnoise._frames import several

        errors = [table["rmse"] for table in rest]
        queries = several(sum(table["queries"] for table in rest), "query", "queries")
        click.echo(f"and {several(len(rest), 'more table')}, {queries}, rmse {number(min(errors))} to {number(max(errors))} (--json)\n")
    return [
        ("total squared error", number(promise.total_squared_error)),
        ("lower bound", number(promise.lower_bound)),
        ("error / least possible", share(over)),
    ]


def _table_row(table: dict[str, Any]) -> list[str]:
    largest = ("<= " if table["largest_is_bound"] else "") + number(table["largest_std"])
    return [table["name"], whole(table["queries"]), number(table["rmse"]), largest]


def _target(table: dict[str, Any]) -> str:
    """What is made of a target: "margin 50: 48.2", with a mark if it is missed."""
    if "target" not in table:
        return ""
    ((kind, most),) = table["target"].items()
    return f"{kind} {number(most)}: {number(table[kind])}{'' if table['kept'] else ', missed'}"


def _budget(made: "Plan") -> str:
    from leastnoise._accounting import charge_text, whole_budget

    return charge_text(made.privacy.budget, whole_budget(made.privacy.budget))


def _cost(made: "Plan") -> str:
    """What the plan costs; where scales were rounded and cost a millionth less than the budget, the budget."""
    from leastnoise._accounting import Charge, charge, whole_budget

    budget = made.privacy.budget
    paid, most = charge(budget, budget, made.cost()), whole_budget(budget)
    pairs = {name: (getattr(paid, name), getattr(most, name)) for name in ("epsilon", "delta", "rho")}
    near = Fraction(10**6 - 1, 10**6)
    return str(Charge(**{name: above if below >= near * above else below for name, (below, above) in pairs.items()}))


def _shares(made: "Plan") -> list[tuple[str, str]]:
    """What share of the cost is for rows and sums, and for each count of units, which add up; nothing where no units are counted."""
    from leastnoise._accounting import parameters
    from leastnoise._measurements import cost, views

    if not any(product.of_units for product in made.workload):
        return []
    units = {product.measure for product in made.workload if product.of_units}
    paid = {view.blocks[0].measure: float(next(iter(parameters(cost(view)).values()))) for view in views(made.measured())}
    names = [(str(name) if name in units else "rows and sums", own) for name, own in paid.items()]
    return [("of which for", ", ".join(f"{name} {own / sum(paid.values()):.0%}" for name, own in names))]


def _row(candidate: "Candidate", made: "Plan") -> list[str]:
    return [
        candidate.strategy,
        noise(candidate.noise.value),
        number(candidate.total),
        number(made.lower_bound()),
        share(ratio(made)),
        f"{candidate.seconds:.2f}",
    ]


def _candidate(candidate: "Candidate") -> dict[str, Any]:
    made = candidate.plan
    return {
        "strategy": candidate.strategy,
        "mechanism": candidate.noise.value,
        "usable": made is not None,
        "reason": candidate.reason,
        "expected_total_squared_error": None if made is None else candidate.total,
        "lower_bound": None if made is None else made.lower_bound(),
        "error_over_least_possible": None if made is None else ratio(made),
        "seconds": round(candidate.seconds, 3),
        "more_seconds": candidate.more or None,
    }
