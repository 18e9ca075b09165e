"""The command ``audit``, which reads no data."""

from dataclasses import asdict
from pathlib import Path

import click

from leastnoise._audit import Audit
from leastnoise._cli._main import FAULT
from leastnoise._cli._output import json_option, print_facts, print_json, spec_argument
from leastnoise._frames import pluralize
from leastnoise._plan import SearchPlan
from leastnoise._progress import Progress
from leastnoise._session import audit as audit_plan
from leastnoise._session import estimate_planning_seconds, plan_spec, read_spec
from leastnoise._spec import Spec, plan_bounds_searches, plan_category_searches

_MEASURES = {
    "epsilon": "epsilon",
    "mu": "mu (the shift of the Gaussian, in units of its noise)",
    "rho": "rho",
}
_AUDIT_STATISTIC = (
    "likelihood ratio, threshold chosen on one half of the trials, Clopper-Pearson on the other"
)
_WITHIN_CLAIM = "no bound is above its claim"
_ABOVE_CLAIM = "MORE IS LOST THAN IS CLAIMED"


@click.command()
@spec_argument
@click.option(
    "--trials",
    type=int,
    help="The number of trials on each of two tables.  "
    "[default: as many as the time of --seconds allows]",
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
    """Plan the searches of a spec; the keys are names of attributes or bounds."""
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
