"""``leastnoise audit``: a lower bound on what a plan loses, measured on rows that are made up."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leastnoise._cli._output import show_facts, show_json, whole
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._session import Audit

FAULT = 70
_WORDS = {"epsilon": "epsilon", "mu": "mu, the Gaussian's shift in units of its noise", "rho": "rho"}


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--trials", type=int, help="How often each of two tables is measured; otherwise as often as the seconds allow.")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="How long to measure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def audit(spec: Path, trials: int | None, seconds: float, as_json: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """A lower bound on the privacy loss, from the program as built.

    Reads the spec file alone. Rows are made up from its domain; the data are not read and nothing is spent. The exit code is 70 if a bound
    is above what the plan claims.
    """
    from leastnoise._session import audit as audited
    from leastnoise._session import planned_spec, read_spec, search_plans, spec_seconds

    what = read_spec(spec)
    each = seconds / (1 + len(what.searches))
    with Progress("planning", about=spec_seconds(what) + seconds) as progress:
        made = planned_spec(what, progress.trying)
        progress.say("measuring made-up rows")
        found = audited(made, guard=what.options.guard, trials=trials, seconds=each)
        searches = {name: audited(plan, trials=trials, seconds=each) for name, plan in search_plans(what.searches, what.privacy).items()}
    if as_json:
        show_json({**asdict(found), "searches": {name: asdict(one) for name, one in searches.items()}})
    else:
        show_facts(_facts(found))
        for name, one in searches.items():
            click.echo(f"\nThe search for categories of {name!r}")
            show_facts(_facts(one))
    if not all(one.held for one in (found, *searches.values())):
        click.echo(
            "leastnoise: a bound is above the claim: this program, on this machine, does not keep its promise; please report it.", err=True
        )
        click.get_current_context().exit(FAULT)


def _facts(found: "Audit") -> list[tuple[str, str]]:
    from leastnoise._frames import several

    epsilon = [] if found.epsilon is None else [("as epsilon", f"at least {found.epsilon:.4g} at the plan's delta")]
    return [
        ("claim", f"{_WORDS[found.measure]}: at most {found.claim:.4g}"),
        ("lower bound", f"at least {found.lower_bound:.4g}"),
        *epsilon,
        *((part.name, f"claims {part.claim:.4g}, loses at least {part.lower_bound:.4g}") for part in found.parts),
        ("confidence", f"{100 * found.confidence:.4g}% for all bounds together"),
        ("trials", f"{whole(found.trials)} of each of two tables, which differ in {several(found.units, 'unit')}"),
        ("statistic", "likelihood ratio, threshold chosen on one half of the trials, Clopper-Pearson on the other"),
        ("verdict", "no more is lost than is claimed, as far as can be seen" if found.held else "MORE IS LOST THAN IS CLAIMED"),
    ]
