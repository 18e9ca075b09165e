"""The command ``compare``, which reads no data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._output import (
    cache_option,
    format_noise,
    format_number,
    json_option,
    print_json,
    print_table,
    read_command_spec,
    spec_argument,
    spec_option,
)
from leastnoise._error import memory_limit
from leastnoise._frames import pluralize
from leastnoise._mechanisms import BY_NAME, Candidate
from leastnoise._pages import error_over_bound, format_ratio
from leastnoise._plan import Plan
from leastnoise._planning import compare as compare_strategies
from leastnoise._planning import expected_seconds
from leastnoise._progress import Progress
from leastnoise._spec import Spec
from leastnoise._trusted.accounting import charge_text

_WITHOUT_EARLIER = (
    "These are the errors of one release. `leastnoise plan` also counts the earlier releases that "
    "the spec names in after."
)


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
    """Print the strategies for which the planning time was too short, if any."""
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
    """Print the strategies that do not apply to a spec, and the reasons."""
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
