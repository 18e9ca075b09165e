"""What ``leastnoise plan`` tells beside the errors when it is asked: other budgets, and what every table costs."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from leastnoise._check import InputError, refuse
from leastnoise._cli._expected import expected
from leastnoise._cli._memory import within_memory
from leastnoise._cli._output import number, show_table
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._plan import Plan
    from leastnoise._session import Price, Spec

_MOST_BUDGETS = 8


def with_epsilon(what: "Spec", epsilon: str) -> "Spec":
    """A spec with another epsilon."""
    from leastnoise._accounting import ZCDP
    from leastnoise._session import of_size

    changed = of_size(what.privacy, epsilon)
    if isinstance(changed.budget, ZCDP):
        raise InputError("--epsilon takes the place of the spec's epsilon; the spec has a budget of rho.")
    return replace(what, privacy=changed)


def other_budgets(made: "Plan", sizes: str) -> dict[str, "Plan"]:
    """The same strategy under other budgets of the same kind."""
    from leastnoise._session import answering, of_size

    if made.promise is None:
        raise InputError("--budgets is for plans whose error is known beforehand; this one depends on the data.")
    given = [size.strip() for size in sizes.split(",")]
    if len(given) > _MOST_BUDGETS:
        raise refuse("the number of budgets", len(given), f"at most {_MOST_BUDGETS}")
    return {size: answering(made.workload, made, of_size(made.privacy, size)) for size in given}


def other_rows(what: "Spec", sizes: str) -> dict[str, "Plan"]:
    """The best plans where other numbers of rows of a unit count, with a display of progress."""
    from leastnoise._session import planned_spec, spec_seconds, with_max_rows

    given = [size.strip() for size in sizes.split(",")]
    if len(given) > _MOST_BUDGETS:
        raise refuse("the number of --max-rows", len(given), f"at most {_MOST_BUDGETS}")
    specs = {size: replace(what, privacy=with_max_rows(what.privacy, size)) for size in given}
    with within_memory(), Progress("planning", about=sum(map(spec_seconds, specs.values()))) as progress:
        plans = {}
        for size, spec in specs.items():
            progress.step(f"planning for {size} row{'s' * (size != '1')} of a unit", len(specs))
            plans[size] = planned_spec(spec)
    if any(plan.promise is None for plan in plans.values()):
        raise InputError("--max-rows is for plans whose error is known beforehand; this one depends on the data.")
    return plans


def table_prices(made: "Plan", what: "Spec") -> tuple["Price", ...]:
    """What every table costs, with a display of progress."""
    from leastnoise._session import prices, spec_seconds

    if made.promise is None:
        raise InputError("--prices is for plans whose error is known beforehand; this one depends on the data.")
    count = len(made.workload.products)
    with within_memory(), Progress("pricing", about=count * spec_seconds(what)) as progress:
        return prices(made, what.search(lambda name: progress.step(f"pricing {name}", count)))


def further_facts(plans: dict[str, "Plan"], priced: tuple["Price", ...], by_rows: dict[str, "Plan"]) -> dict[str, Any]:
    """For the JSON object of a plan: nothing if nothing was asked."""
    found: dict[str, Any] = {}
    for name, some in (("budgets", plans), ("max_rows", by_rows)):
        if some:
            found[name] = [
                {
                    "privacy": plan.privacy.to_json(),
                    "expected_total_squared_error": plan.expected_error().total_squared_error,
                    "rmse": _errors(plan),
                }
                for plan in some.values()
            ]
    if priced:
        found["prices"] = [{"table": price.table, "alone": price.alone, "saved": price.saved} for price in priced]
    return found


def show_further(plans: dict[str, "Plan"], priced: tuple["Price", ...], by_rows: dict[str, "Plan"]) -> None:
    """Print a table of errors by budget, one by the rows of a unit that count, and one of prices."""
    _show_errors("rmse under other budgets", plans)
    _show_errors("rmse where so many rows of a unit count", by_rows, budgets=True)
    if by_rows:
        click.echo(
            click.wrap_text(
                "Choose max_rows from what is known in public of how many rows people have: more rows of a unit are left out with fewer, "
                "and that is no part of these errors. A number read off the data would be a release that nobody paid for.",
                78,
            )
        )
    if priced:
        columns = [("table", "fold"), ("needs alone", "right"), ("leaving it\nout saves", "right")]
        show_table("Parts of the budget", columns, [[price.table, _percent(price.alone), _percent(price.saved)] for price in priced])


def _show_errors(title: str, plans: dict[str, "Plan"], *, budgets: bool = False) -> None:
    from leastnoise._accounting import charge_text, whole_budget

    if not plans:
        return
    errors = [_errors(plan) for plan in plans.values()]
    rows = [[name, *(number(found[name]) for found in errors)] for name in errors[0]]
    sizes = [charge_text(plan.privacy.budget, whole_budget(plan.privacy.budget)) for plan in plans.values()]
    if budgets and len({*sizes}) > 1:  # the least that keeps every target
        rows.append(["budget", *sizes])
    show_table(title, [("table", "fold"), *((size, "right") for size in plans)], rows)


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%"


def _errors(plan: "Plan") -> dict[str, float]:
    return {table["name"]: table["rmse"] for table in expected(plan)}
