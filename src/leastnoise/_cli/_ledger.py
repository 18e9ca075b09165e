"""The commands ``leastnoise ledger``, which manage the budget of a data set."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from leastnoise._cli._output import (
    FILE,
    add_options,
    display_path,
    json_option,
    print_facts,
    print_json,
    print_table,
    print_warnings,
)
from leastnoise._cli._release import describe_drawn_periods
from leastnoise._facts import format_facts, list_facts
from leastnoise._fitting import zcdp_epsilon
from leastnoise._interruption import note_run
from leastnoise._pages import describe_risk
from leastnoise._session import (
    Entry,
    Ledger,
    describe_ledger,
    enter_release,
    find_other_ledgers,
    find_unrecorded_releases,
    is_resumable,
    remove_drafts_of_dead_processes,
    round_epsilon_up,
    series_progress,
)
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    Charge,
    Privacy,
    PureDP,
    format_amount,
    limit_text,
    parameters_by_name,
    share_limit,
    spent_epsilon,
)
from leastnoise._trusted.check import InputError

_STATES = {
    "sealed": "published",
    "absent": "paid and absent",
    "running": "paid, being made",
    "resumable": "paid and resumable",
    "reserved": "paid, not finished",
    "spent": "spent elsewhere",
    "budget": "budget set",
}
_amount = add_options(
    ("--epsilon", str, "The epsilon, such as 1, 0.1 or 1/3."),
    ("--delta", str, "The delta, if the budget has one in addition to epsilon."),
    ("--rho", str, "The rho of zero-concentrated differential privacy."),
)
_note = click.option("--note", default="", help="The reason, which the ledger records.")


@click.group()
def ledger_group() -> None:
    """Set the budget of a data set and show its spending."""


@ledger_group.command("set")
@click.argument("path", metavar="FILE", type=FILE)
@add_options(
    ("--epsilon", str, "Pure differential privacy; with --delta, approximate."),
    ("--delta", str, "Above 0 and far below one over the number of people, such as 1e-9."),
    ("--rho", str, "Zero-concentrated differential privacy."),
    ("--dataset", str, "The name of the data set.  [default: the name of FILE]"),
    ("--unit-column", str, "The column that names a person.  [default: every row is a person]"),
)
@click.option(
    "--neighbours",
    type=click.Choice(["add_remove", "replace"]),
    default="add_remove",
    show_default=True,
    help="Whether neighbours differ by a person added or removed, or by one replaced.",
)
def set_budget(
    path: Path, dataset: str | None, unit_column: str | None, neighbours: str, **amount: str | None
) -> None:
    """Create the ledger of a data set, with a budget and nothing spent.

    The budget is an exact number: a whole number, a decimal or a fraction, such as 1, 0.1 or 1/3.
    `ledger change` changes it later.
    """
    privacy = Privacy(_parse_budget(amount), neighbours, unit_column)
    ledger = Ledger.create(path, dataset or path.name.split(".")[0] or path.name, privacy)
    print_warnings(
        f"{display_path(other_path)} is a second ledger of a data set {ledger.dataset!r}, and "
        "neither of the two records the spending of the other. If both hold the same people, their "
        "losses add up."
        for other_path in find_other_ledgers(path, ledger.dataset)
    )
    _print_remaining_budget(ledger)


@ledger_group.command("change")
@click.argument("path", metavar="FILE", type=FILE)
@_amount
@click.option(
    "--per",
    type=click.Choice(["day", "week", "month", "year", "ever"]),
    help="The period for which the budget holds.  [default: unchanged]",
)
@_note
def change(path: Path, per: str | None, note: str, **amount: str | None) -> None:
    """Raise or lower the budget, never below the amount spent.

    The ledger records the change. With --per, the budget holds for each such period of payment
    (UTC). Use it for data with other people in each period. If a person is in several periods, the
    person's losses in these periods add up.
    """
    if per is None:
        period = None
    else:
        period = per.replace("ever", "")
    ledger = Ledger.open(path)
    _print_remaining_budget(
        ledger.set_budget(
            _parse_budget(amount, ledger), period=period, note=note, receipt=_create_receipt(ledger)
        )
    )


@ledger_group.command("share")
@click.argument("path", metavar="FILE", type=FILE)
@click.argument("name")
@_amount
@click.option("--part", help="The fraction of the whole budget, such as 1/12, instead of numbers.")
@_note
def share(path: Path, name: str, part: str | None, note: str, **amount: str | None) -> None:
    """Give an analyst or a project a share of the budget, or change it.

    NAME is the name of the share. All releases with --share NAME together may spend at most this
    share, within the whole budget.
    """
    if not name.strip():
        raise InputError("A share must have a name, such as an analyst's or a project's.")
    ledger = Ledger.open(path)
    if part is None:
        budget = _parse_budget(amount, ledger)
    elif any(value is not None for value in amount.values()):
        raise InputError(
            "A share must be --part, or the numbers of its budget; got both. Nothing was changed."
        )
    else:
        budget = share_limit(ledger.limits()[0].budget, part)
    ledger.set_budget(budget, share=name, note=note, receipt=_create_receipt(ledger))
    _print_remaining_budget(Ledger.open(path, share=name))


@ledger_group.command("spent")
@click.argument("path", metavar="FILE", type=FILE)
@_amount
@click.option(
    "--release",
    "directory",
    type=FILE,
    help="The folder of the release that was paid for elsewhere; its amount and day are recorded.",
)
@click.option(
    "--on",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="The day it was spent.  [default: today]",
)
@click.option("--share", default="", help="The share that the amount counts towards.")
@click.option("--note", default="", help="The purpose of the amount, which the ledger records.")
def spent(
    path: Path, directory: Path | None, day: Any, share: str, note: str, **amount: str | None
) -> None:
    """Record an amount that was spent on the same people outside this ledger.

    The ledger counts the amount like a release, even if it exceeds the budget.
    """
    ledger = Ledger.open(path, share=share)
    if directory is None:
        entry = ledger.add_spent(
            _parse_budget(amount), note=note, on=day and day.date(), receipt=_create_receipt(ledger)
        )
    elif day is not None or any(value is not None for value in amount.values()):
        raise InputError(
            "A release records its own cost and day; give only --release, or an amount without "
            "--release."
        )
    else:
        entry = enter_release(ledger, directory, note)
    click.echo(f"Entered: {entry.charge}, on {entry.reserved_on}.")
    _print_remaining_budget(ledger)


def _create_receipt(ledger: Ledger) -> str:
    """Create the receipt of a new entry, and remember it for error messages.

    If the program fails later, its last message says whether the ledger contains the entry.
    """
    receipt = secrets.token_hex(16)
    note_run(ledger.path.absolute(), receipt)
    return receipt


def _parse_budget(options: dict[str, str | None], ledger: Ledger | None = None) -> Budget:
    """Return the budget that the options --epsilon, --delta and --rho state.

    If ``ledger`` is not None, the budget must use the same privacy definition as the ledger.
    """
    values = {name: value for name, value in options.items() if value is not None}
    option_names = [f"--{name}" for name in values]
    if ledger is not None:
        _check_privacy_definition(ledger, option_names)
    definitions = ((ZCDP, ["rho"]), (PureDP, ["epsilon"]), (ApproxDP, ["epsilon", "delta"]))
    for budget_class, parameter_names in definitions:
        if [*values] == parameter_names:
            return budget_class(**values)
    raise InputError(
        "A budget must be --epsilon, or --epsilon and --delta, or --rho; got "
        f"{' and '.join(option_names) or 'none of them'}."
    )


def _check_privacy_definition(ledger: Ledger, option_names: list[str]) -> None:
    """Raise InputError unless the options match the ledger's privacy definition."""
    options_needed = [f"--{name}" for name in parameters_by_name(ledger.privacy.budget)]
    if option_names == options_needed:
        return
    needed = " and ".join(options_needed)
    advice = f"Say {needed}"
    if option_names and {*option_names} < {*options_needed}:
        missing = [name for name in options_needed if name not in option_names]
        advice = f"Add {missing[0]}"
    raise InputError(
        f"A budget of {display_path(ledger.path)} must have {needed}, because the ledger adds up "
        f"its entries in this definition; got {' and '.join(option_names) or 'none of them'}. "
        f"{advice}. Nothing was changed."
    )


def _print_remaining_budget(ledger: Ledger) -> None:
    """Print the budget of a ledger and the remaining amount."""
    _warn_if_unpayable(ledger)
    facts = list_facts(describe_ledger(ledger), "dataset", "protects", "budget", "left")
    print_facts([("ledger", display_path(ledger.path)), *format_facts(facts)])


def _warn_if_unpayable(ledger: Ledger) -> None:
    """Warn if earlier charges make any further payment impossible."""
    reasons = {limit.reason_closed for limit in ledger.limits()}
    print_warnings(reason for reason in reasons if reason)


@ledger_group.command()
@click.argument("path", metavar="FILE", type=FILE)
@json_option
@click.option(
    "--delta",
    default="1e-9",
    show_default=True,
    help="For a budget of rho: the delta at which the implied epsilon is shown.",
)
# Click passes flags by name.
def show(path: Path, as_json: bool, delta: str) -> None:  # noqa: FBT001
    """List every release with its cost and state, and the remaining budget."""
    ledger = Ledger.open(path)
    remove_drafts_of_dead_processes(ledger)
    entries = ledger.entries()
    print_warnings(
        f"the release in {display_path(directory)} was paid for from this ledger, but the ledger "
        "lacks its entry or some of its steps. So this file is an older copy of the ledger. "
        "Restore the newest copy."
        for directory in find_unrecorded_releases(path, ledger)
    )
    implied_epsilons = _implied_epsilons(ledger, delta)
    if as_json:
        print_json(_ledger_json(ledger, entries, implied_epsilons))
        return
    _warn_if_unpayable(ledger)
    budgets, shares, spending, risk = describe_ledger(ledger, entries)
    facts = format_facts([*budgets.facts, *shares.facts])
    print_facts([("ledger", display_path(ledger.path)), *facts])
    click.echo()
    if entries:
        _print_entries(ledger, entries)
    else:
        click.echo("No release yet.\n")
    facts = format_facts([*spending.facts, *risk.facts])
    if implied_epsilons is not None and isinstance(ledger.privacy.budget, ZCDP):
        epsilon_budget = implied_epsilons["budget"]
        epsilon_spent = implied_epsilons["spent"]
        epsilons = (
            f"the whole budget epsilon <= {epsilon_budget}, the spent epsilon <= {epsilon_spent}"
        )
        facts.append(("implies", f"{epsilons}, at delta = {delta}"))
    print_facts(facts)


def _risk_json(ledger: Ledger) -> dict[str, Any]:
    """Return the risk of spending the whole budget of one period, as JSON."""
    limit = ledger.limits()[0]
    risk = describe_risk(ledger.privacy.within(limit.budget), covered_part="ledger")
    return {**risk, "period": limit.period or None}


def _print_entries(ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Print a table with a row for each entry of a ledger."""
    cost_names = list(parameters_by_name(ledger.privacy.budget))
    if isinstance(ledger.privacy.budget, ApproxDP):
        cost_names.append("mu_squared")
    columns = [
        ("#", "right"),
        ("day (UTC)", "left"),
        *((cost_name.replace("_", " "), "right") for cost_name in cost_names),
        ("state", "fold"),
        ("release", "fold"),
    ]
    rows: list[list[str | tuple[str, ...]]] = []
    for entry in entries:
        costs = ["" for _ in cost_names]
        if entry.kind != "budget":
            costs = [format_amount(getattr(entry.charge, name), up=True) for name in cost_names]
        release_cell = tuple(filter(None, (_entry_target(entry), entry.description)))
        state = _describe_state(ledger, entry)
        rows.append([f"{entry.number:,}", str(entry.reserved_on), *costs, state, release_cell])
    print_table("", columns, rows)


def _describe_state(ledger: Ledger, entry: Entry) -> str:
    """Describe the state of an entry; for an unfinished series, list its periods."""
    state = _entry_state(ledger, entry)
    if state == "resumable":
        series = series_progress(ledger, entry)
    else:
        series = None
    if series is None:
        return _STATES[state]
    return f"paid; {describe_drawn_periods(series)}"


def _entry_target(entry: Entry) -> str:
    """Return the budget that an entry sets, or its release's directory, as text."""
    if entry.kind == "budget":
        return limit_text(entry.declared, entry.period, entry.share)
    output = entry.output
    if output.startswith("/"):
        output = display_path(Path(output))
    if entry.share:
        return f"{output} (share {entry.share})"
    return output


def _entry_state(ledger: Ledger, entry: Entry) -> str:
    """Return the state of an entry as one word.

    For a release that is paid for and not finished, the text states whether it is running or can be
    resumed.
    """
    if entry.kind != "release":
        return entry.kind
    if entry.state != "reserved":
        return entry.state
    if ledger.is_running(entry):
        return "running"
    if is_resumable(entry):
        return "resumable"
    return "reserved"


def _implied_epsilons(ledger: Ledger, delta: str) -> dict[str, str] | None:
    """Return a ledger's budget and spending as epsilon texts at a delta, or None.

    For a budget of rho, the delta is ``delta``. For a budget of (epsilon, delta), the delta of the
    budget is used. Epsilons are rounded up to four decimals. Return None for other budgets.
    """
    if isinstance(ledger.privacy.budget, ApproxDP):
        return _approx_dp_epsilons(ledger)
    if not isinstance(ledger.privacy.budget, ZCDP):
        return None
    epsilons = {"delta": delta}
    for name, rho in (("budget", ledger.privacy.budget.rho), ("spent", ledger.spent().rho)):
        if rho:
            epsilon = zcdp_epsilon(rho, delta)
            epsilons[name] = round_epsilon_up(epsilon)
        else:
            epsilons[name] = "0"
    return epsilons


def _approx_dp_epsilons(ledger: Ledger) -> dict[str, str]:
    """Return the delta, epsilon and spent epsilon of a budget as texts by name."""
    limit = ledger.limits()[-1]
    budget = cast(ApproxDP, limit.budget)
    spent = spent_epsilon(budget, limit.charges)
    return {
        "delta": str(budget.delta),
        "budget": round_epsilon_up(budget.epsilon),
        "spent": "unknown" if spent is None else round_epsilon_up(spent),
    }


def _charge_json(budget: Budget, charge: Charge) -> dict[str, Any]:
    """Return a charge as a JSON object, with mu squared for budgets that use it."""
    numbers: dict[str, Any] = dict(charge.to_json())
    if isinstance(budget, ApproxDP | GDP):
        numbers.setdefault("mu_squared", "0")
    return numbers


def _ledger_json(
    ledger: Ledger, entries: Sequence[Entry], implied_epsilons: dict[str, str] | None
) -> dict[str, Any]:
    """Return a ledger and its entries as a JSON object for ``--json``."""
    return {
        "ledger": str(ledger.path),
        "id": ledger.id,
        "dataset": ledger.dataset,
        "privacy": ledger.privacy.to_json(),
        "spent": _charge_json(ledger.privacy.budget, ledger.spent()),
        "left": _charge_json(ledger.privacy.budget, ledger.left()),
        "implied_epsilon": implied_epsilons,
        "risk": _risk_json(ledger),
        "releases": [
            {
                "number": entry.number,
                "id": entry.id,
                "kind": entry.kind,
                "share": entry.share,
                "period": entry.period,
                "state": _entry_state(ledger, entry),
                "charge": _charge_json(ledger.privacy.budget, entry.charge),
                "cost": entry.cost.to_json(),
                "declared": entry.declared.to_json(),
                "plan_digest": entry.plan_digest,
                "output": entry.output,
                "description": entry.description,
                "reserved_on": entry.reserved_on.isoformat(),
                "digest": entry.digest,
            }
            for entry in entries
        ],
    }
