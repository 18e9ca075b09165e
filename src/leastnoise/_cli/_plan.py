"""Commands that read the spec alone: ``plan``, ``compare``, ``audit`` and ``studio``."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from leastnoise._accounting import ZCDP
from leastnoise._accuracy import within_memory
from leastnoise._audit import Audit
from leastnoise._check import InputError, refuse
from leastnoise._cli._output import (
    budget_text,
    check_new,
    expected,
    facts,
    noise,
    number,
    of_spec,
    planned_shown,
    read_asked,
    share,
    show_facts,
    show_json,
    show_plan,
    show_table,
    shown,
    whole,
    without_cache,
    write_new,
)
from leastnoise._cli._release import search_facts, show_periods, show_searches, warn, warn_of_bias
from leastnoise._frames import several
from leastnoise._mechanisms import BY_NAME, Candidate
from leastnoise._plan import Plan
from leastnoise._planning import Price, answering, expected_seconds, of_size, period_errors, prices, with_max_rows
from leastnoise._planning import compare as tried_on
from leastnoise._progress import Progress
from leastnoise._release import check_options
from leastnoise._session import audit as audited
from leastnoise._session import check_writable, planned_spec, spec_seconds
from leastnoise._spec import Spec, plan_warnings, read_spec, search_plans, spec_warnings

FAULT = 70
_MOST_SIZES = 8
_EXISTS = "Choose another file, or remove it first."
_MEASURES = {"epsilon": "epsilon", "mu": "mu, the Gaussian's shift in units of its noise", "rho": "rho"}


@click.command(epilog="It shows the rmse of every table and a lower bound; tables are called by their queries, such as prefix or identity.")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write the plan itself to this new file.")
@click.option("--epsilon", help="Plan for this epsilon in place of the spec's.")
@click.option("--budgets", help="Also the errors under other budgets of the same kind, such as 0.1,1,10; nothing is planned again.")
@click.option("--max-rows", "rows", help="Also the errors where other numbers of rows of a unit count, such as 1,2,4,8; each is planned.")
@click.option(
    "--prices", "priced", is_flag=True, help="Also what every table costs: alone, and what leaving it out saves. Plans many times."
)
@of_spec
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
    """Show the expected error of every table, before any budget is spent.

    Reads the spec file alone; the data need not exist. With `queries.sql --spec people.toml` it asks SQL statements of that domain.
    """
    what = read_asked(spec)
    check_writable(what)
    if epsilon is not None:
        changed = of_size(what.privacy, epsilon)
        if isinstance(changed.budget, ZCDP):
            raise InputError("--epsilon takes the place of the spec's epsilon; the spec has a budget of rho.")
        what = replace(what, privacy=changed)
    if out is not None:
        check_new(out, _EXISTS)
    warn_of_bias(what)
    warnings = spec_warnings(what)
    warn(warnings)
    made, seconds = planned_shown(what)
    check_options(made, what.options)
    if out is not None:
        write_new(out, made.to_json() + "\n", _EXISTS)
    late = plan_warnings(what, made)
    warn(late)
    by_rows = {} if rows is None else _by_max_rows(what, rows)
    by_budget = {} if budgets is None else _by_budget(made, budgets)
    prices = _table_prices(made, what) if priced else ()
    if as_json:
        asked = ("searches", list(search_facts(what))), ("periods", period_errors(made))
        further: dict[str, Any] = {name: value for name, value in asked if value}
        for name, plans in (("budgets", by_budget), ("max_rows", by_rows)):
            if plans:
                further[name] = [_errors_json(other) for other in plans.values()]
        if prices:
            further["prices"] = [{"table": price.table, "alone": price.alone, "saved": price.saved} for price in prices]
        show_json({**facts(made, seconds, what.options.level), **further, "warnings": [*warnings, *late]})
        return
    show_plan(made, seconds, what.options.level)
    show_periods(made)
    _show_errors("rmse under other budgets", by_budget)
    _show_errors("rmse where so many rows of a unit count", by_rows, budgets=True)
    if by_rows:
        click.echo(
            click.wrap_text(
                "Choose max_rows from what is known in public of how many rows people have. With fewer, more rows of a unit are left out, "
                "which these errors do not count. Do not read the number off the data: that would be a release that nobody paid for.",
                78,
            )
        )
    if prices:
        columns = [("table", "fold"), ("needs alone", "right"), ("leaving it\nout saves", "right")]
        show_table("Parts of the budget", columns, [[price.table, f"{price.alone:.0%}", f"{price.saved:.0%}"] for price in prices])
    show_searches(what)
    if out is not None:
        click.echo(f"The plan is in {shown(out)}.")


def _sizes(option: str, listed: str) -> list[str]:
    sizes = [size.strip() for size in listed.split(",")]
    if len(sizes) > _MOST_SIZES:
        raise refuse(f"the number of {option}", len(sizes), f"at most {_MOST_SIZES}")
    return sizes


def _by_budget(made: Plan, listed: str) -> dict[str, Plan]:
    """The same strategy under other budgets of the same kind."""
    _check_promised("--budgets", made)
    return {size: answering(made.workload, made, of_size(made.privacy, size)) for size in _sizes("budgets", listed)}


def _by_max_rows(what: Spec, listed: str) -> dict[str, Plan]:
    """The best plans where other numbers of rows of a unit count, with a line of progress."""
    specs = {size: replace(what, privacy=with_max_rows(what.privacy, size)) for size in _sizes("--max-rows", listed)}
    with within_memory(), Progress("planning", about=sum(map(spec_seconds, specs.values()))) as progress:
        plans = {}
        for size, spec in specs.items():
            progress.step(f"planning for {size} row{'s' * (size != '1')} of a unit", len(specs))
            plans[size] = planned_spec(spec)
    _check_promised("--max-rows", *plans.values())
    return plans


def _table_prices(made: Plan, what: Spec) -> tuple[Price, ...]:
    """What every table costs, with a line of progress."""
    _check_promised("--prices", made)
    count = len(made.workload.products)
    with within_memory(), Progress("pricing", about=count * spec_seconds(what)) as progress:
        return prices(made, what.search(lambda name: progress.step(f"pricing {name}", count)))


def _check_promised(option: str, *plans: Plan) -> None:
    if any(plan.promise is None for plan in plans):
        raise InputError(f"{option} is for plans whose error is known beforehand; this one depends on the data.")


def _errors_json(plan: Plan) -> dict[str, Any]:
    total = plan.expected_error().total_squared_error
    return {"privacy": plan.privacy.to_json(), "expected_total_squared_error": total, "rmse": _errors(plan)}


def _errors(plan: Plan) -> dict[str, float]:
    return {table["name"]: table["rmse"] for table in expected(plan)}


def _show_errors(title: str, plans: dict[str, Plan], *, budgets: bool = False) -> None:
    """A row a table and a column a plan; the budgets too where they differ, being the least that keep every target."""
    if not plans:
        return
    errors = [_errors(plan) for plan in plans.values()]
    rows = [[name, *(number(by_table[name]) for by_table in errors)] for name in errors[0]]
    sizes = [budget_text(plan.privacy.budget) for plan in plans.values()]
    if budgets and len({*sizes}) > 1:
        rows.append(["budget", *sizes])
    show_table(title, [("table", "fold"), *((size, "right") for size in plans)], rows)


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """The strategies of the registry, which is not read for ``--help``: it needs the libraries."""
    if wanted:
        from leastnoise._planner import PLANNERS

        rows = [[planner.name, planner.measures, "yes" if planner.automatic else "by name"] for planner in PLANNERS.values()]
        show_table("", [("strategy", "left"), ("measures", "fold"), ("auto tries it", "left")], rows)
        context.exit()


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--all", "by_name", is_flag=True, help="Also the strategies that are used by name alone.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Say what every strategy measures, and stop.")
@of_spec
@without_cache
def compare(spec: Path, as_json: bool, by_name: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Compare every strategy, least expected error first.

    Reads the spec file alone; the data need not exist. Strategies that cannot be used come last, with the reason.
    """
    what = read_asked(spec)
    about = expected_seconds(what.workload, what.planned_privacy, what.search())
    with within_memory(), Progress("planning", about=about) as progress:
        tried = tried_on(what.workload, what.planned_privacy, progress.trying, seconds=what.seconds, by_name=by_name)
    if as_json:
        candidates = [_candidate(candidate) for candidate in tried]
        show_json({"queries": what.workload.rows, "candidates": candidates, "not_comparable": list(BY_NAME)})
        return
    usable = [(candidate, candidate.plan) for candidate in tried if candidate.plan is not None]
    rows = [
        [
            candidate.strategy,
            noise(candidate.noise.value),
            number(candidate.total),
            number(made.lower_bound()),
            share(made.expected_error().times_least),
            f"{candidate.seconds:.2f}",
        ]
        for candidate, made in usable
    ]
    columns = [("strategy", "left"), ("noise", "left"), ("expected\nsquared error", "right"), ("lower\nbound", "right")]
    columns += [("error / least\npossible", "right"), ("seconds", "right")]
    queries = several(what.workload.rows, "query", "queries")
    show_table(f"{queries}, {budget_text(usable[0][1].privacy.budget)}", columns, rows, bold=0)
    _show_left_out(tried, what.seconds)
    click.echo(click.wrap_text(f"Not comparable, because their errors depend on the data: {', '.join(BY_NAME)}.", 78))


def _show_left_out(tried: Sequence[Candidate], seconds: float) -> None:
    """What more time would bring, and which strategies cannot be used."""
    early = [candidate for candidate in tried if candidate.more]
    if early:
        columns = [("more time", "left"), ("noise", "left"), (f"within {seconds:g} s", "left"), ("needs\nCPU seconds", "right")]
        rows = [
            [candidate.strategy, noise(candidate.noise.value), "stopped early" if candidate.plan else "left out", f"{candidate.more:.2g}"]
            for candidate in early
        ]
        show_table("", columns, rows)
        click.echo(click.wrap_text("It may find less error: give planning more seconds under [plan].", 78) + "\n")
    unusable = [candidate for candidate in tried if candidate.plan is None and not candidate.more]
    if unusable:
        rows = [[candidate.strategy, noise(candidate.noise.value), candidate.reason] for candidate in unusable]
        show_table("", [("cannot be used", "left"), ("noise", "left"), ("because", "fold")], rows)


def _candidate(candidate: Candidate) -> dict[str, Any]:
    made = candidate.plan
    return {
        "strategy": candidate.strategy,
        "mechanism": candidate.noise.value,
        "usable": made is not None,
        "reason": candidate.reason,
        "expected_total_squared_error": None if made is None else candidate.total,
        "lower_bound": None if made is None else made.lower_bound(),
        "error_over_least_possible": None if made is None else made.expected_error().times_least,
        "seconds": round(candidate.seconds, 3),
        "more_seconds": candidate.more or None,
    }


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--trials", type=int, help="How often each of two tables is measured; otherwise as often as the seconds allow.")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="How long to measure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def audit(spec: Path, trials: int | None, seconds: float, as_json: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Bound the privacy loss from below: try the installed program.

    Reads the spec file alone. Rows are made up from its domain; the data are not read and nothing is spent. The exit code is 70 if a bound
    is above what the plan claims.
    """
    what = read_spec(spec)
    each = seconds / (1 + len(what.searches))
    with Progress("planning", about=spec_seconds(what) + seconds) as progress:
        made = planned_spec(what, progress.trying)
        progress.say("measuring made-up rows")
        whole_plan = audited(made, guard=what.options.guard, trials=trials, seconds=each)
        searches = {
            name: audited(search, trials=trials, seconds=each) for name, search in search_plans(what.searches, what.privacy).items()
        }
    if as_json:
        show_json({**asdict(whole_plan), "searches": {name: asdict(search) for name, search in searches.items()}})
    else:
        show_facts(_audit_facts(whole_plan))
        for name, search in searches.items():
            click.echo(f"\nThe search for categories of {name!r}")
            show_facts(_audit_facts(search))
    if not all(bounds.held for bounds in (whole_plan, *searches.values())):
        click.echo(
            "leastnoise: a bound is above the claim: this program, on this machine, does not keep its promise; please report it.", err=True
        )
        click.get_current_context().exit(FAULT)


def _audit_facts(bounds: Audit) -> list[tuple[str, str]]:
    epsilon = [] if bounds.epsilon is None else [("as epsilon", f"at least {bounds.epsilon:.4g} at the plan's delta")]
    return [
        ("claim", f"{_MEASURES[bounds.measure]}: at most {bounds.claim:.4g}"),
        ("lower bound", f"at least {bounds.lower_bound:.4g}"),
        *epsilon,
        *((part.name, f"claims {part.claim:.4g}, loses at least {part.lower_bound:.4g}") for part in bounds.parts),
        ("confidence", f"{100 * bounds.confidence:.4g}% for all bounds together"),
        ("trials", f"{whole(bounds.trials)} of each of two tables, which differ in {several(bounds.units, 'unit')}"),
        ("statistic", "likelihood ratio, threshold chosen on one half of the trials, Clopper-Pearson on the other"),
        ("verdict", "no bound is above its claim" if bounds.held else "MORE IS LOST THAN IS CLAIMED"),
    ]


@click.command()
@click.argument("path", metavar="[FILE|SPEC|RELEASE]", type=click.Path(path_type=Path), required=False)
def studio(path: Path | None) -> None:
    """Make a spec, plan, or explore a release in the browser.

    With a file of data, or nothing: forms that make a spec from names and types of columns alone. With a spec: budget, targets, weights and
    tables, and what becomes of every margin. With the directory that `leastnoise release` wrote: tables of any attributes, their charts,
    and the exact error of any sum of their cells.

    Prints the address of a page on this computer, which one browser can open once; ends with the terminal or with Ctrl-C. Never reads
    a value of the data.
    """
    try:
        from leastnoise._studio import opened
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"starlette", "tomlkit", "uvicorn"}:
            raise
        raise InputError("The studio needs some more packages: pip install 'leastnoise[studio]'.") from None
    server = opened(path)
    click.echo(f"The studio is at {server.address}\nOne browser can open it, once. Ctrl-C ends it.")
    server.run()
