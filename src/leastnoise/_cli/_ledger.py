"""``leastnoise ledger``: the budget of a data set, and what has been spent of it."""

import secrets
from pathlib import Path
from typing import Any

import click

from leastnoise._cli._output import (
    FILE,
    format_amount,
    format_amounts,
    json_option,
    display_path,
    add_options,
    print_facts,
    print_json,
    print_table,
    print_warnings,
)
from leastnoise._cli._release import describe_drawn_periods
from leastnoise._fitting import zcdp_epsilon
from leastnoise._interruption import note_run
from leastnoise._session import (
    Entry,
    Ledger,
    Limit,
    enter_release,
    is_resumable,
    other_ledgers,
    period_state,
    unknown_releases,
)
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP, parameters
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
    ("--delta", str, "The delta, where there is one beside epsilon."),
    ("--rho", str, "The rho of zero-concentrated differential privacy."),
)
_note = click.option("--note", default="", help="Why: a remark that the ledger keeps.")


@click.group()
def ledger() -> None:
    """Set the budget of a data set, and see what has been spent."""


@ledger.command("set")
@click.argument("file", type=FILE)
@add_options(
    ("--epsilon", str, "Pure differential privacy; with --delta, approximate."),
    ("--delta", str, "Above 0 and far below one over the number of people, such as 1e-9."),
    ("--rho", str, "Zero-concentrated differential privacy."),
    ("--dataset", str, "Name of the data set.  [default: the name of FILE]"),
    ("--unit-column", str, "The column that names a person.  [default: every row is a person]"),
)
@click.option(
    "--neighbours",
    type=click.Choice(["add_remove", "replace"]),
    default="add_remove",
    show_default=True,
    help="Whether a person is added or removed, or replaced by another.",
)
def set_budget(
    file: Path, dataset: str | None, unit_column: str | None, neighbours: str, **amount: str | None
) -> None:
    """Make the ledger of a data set, with a budget and nothing spent.

    The budget is exact: whole numbers, decimals and fractions such as 1, 0.1 or 1/3. `ledger
    change` changes it later.
    """
    privacy = Privacy(_parse_budget(amount), neighbours, unit_column)
    made = Ledger.create(file, dataset or file.name.split(".")[0] or file.name, privacy)
    print_warnings(
        f"{display_path(other)} is of a data set {made.dataset!r} too, and neither ledger knows what the "
        "other one spends. "
        "If these are the same people, their losses add up."
        for other in other_ledgers(file, made.dataset)
    )
    _print_left(made)


@ledger.command("change")
@click.argument("file", type=FILE)
@_amount
@click.option(
    "--per",
    type=click.Choice(["day", "week", "month", "year", "ever"]),
    help="The period for which the budget holds.  [default: as it is]",
)
@_note
def change(file: Path, per: str | None, note: str, **amount: str | None) -> None:
    """Raise or lower the budget, never below what is spent.

    The ledger records the change. With --per, the budget holds for every such period of payment
    (UTC), for data that hold other people in each. Whoever is in the data of several periods loses
    that much in each.
    """
    period = None if per is None else per.replace("ever", "")
    book = Ledger.open(file)
    _print_left(
        book.set_budget(_parse_budget(amount, book), period=period, note=note, receipt=_note_receipt(book))
    )


@ledger.command("share")
@click.argument("file", type=FILE)
@click.argument("name")
@_amount
@_note
def share(file: Path, name: str, note: str, **amount: str | None) -> None:
    """Give an analyst or a project a share of the budget, or change it.

    NAME is what the share is called. A share is the most that its releases may spend together,
    within the whole budget. Every release then says --share.
    """
    if not name.strip():
        raise InputError("A share must have a name, such as that of an analyst or a project.")
    book = Ledger.open(file)
    book.set_budget(_parse_budget(amount, book), share=name, note=note, receipt=_note_receipt(book))
    _print_left(Ledger.open(file, share=name))


@ledger.command("spent")
@click.argument("file", type=FILE)
@_amount
@click.option(
    "--release", type=FILE, help="The release that was paid elsewhere; it says how much and when."
)
@click.option(
    "--on",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="The day it was spent.  [default: today]",
)
@click.option("--share", default="", help="The share that it counts to.")
@click.option("--note", default="", help="What it was: a remark that the ledger keeps.")
def spent(
    file: Path, release: Path | None, on: Any, share: str, note: str, **amount: str | None
) -> None:
    """Enter what was spent on the same people elsewhere, or earlier.

    It is added up like a release, even beyond the budget.
    """
    book = Ledger.open(file, share=share)
    if release is None:
        entry = book.add_spent(
            _parse_budget(amount), note=note, on=on and on.date(), receipt=_note_receipt(book)
        )
    elif on is not None or any(part is not None for part in amount.values()):
        raise InputError(
            "A release says itself what it cost and when; give --release alone, or an amount "
            "without it."
        )
    else:
        entry = enter_release(book, release, note)
    click.echo(f"Entered: {entry.charge}, on {entry.reserved_on}.")
    _print_left(book)


def _note_receipt(book: Ledger) -> str:
    """Draw the receipt of a new entry and note it, so that the program's last message says whether the entry was made."""
    receipt = secrets.token_hex(16)
    note_run(book.path.absolute(), receipt)
    return receipt


def _parse_budget(amount: dict[str, str | None], book: Ledger | None = None) -> Budget:
    """Return the budget that the options give; with a ledger, it must be of the definition in which the ledger adds up its entries."""
    given = {name: value for name, value in amount.items() if value is not None}
    names = [f"--{name}" for name in given]
    wanted = [] if book is None else [f"--{name}" for name in parameters(book.privacy.budget)]
    if book is not None and names != wanted:
        missing = [name for name in wanted if name not in names]
        advice = (
            f"Add {missing[0]}" if names and {*names} < {*wanted} else f"Say {' and '.join(wanted)}"
        )
        raise InputError(
            f"A budget of {display_path(book.path)} must have {' and '.join(wanted)}, in which its "
            "entries are added up; "
            f"got {' and '.join(names) or 'none of them'}. {advice}. Nothing was changed."
        )
    for kind, parts in ((ZCDP, ["rho"]), (PureDP, ["epsilon"]), (ApproxDP, ["epsilon", "delta"])):
        if [*given] == parts:
            return kind(**given)
    raise InputError(
        "A budget must be --epsilon, or --epsilon and --delta, or --rho; got "
        f"{' and '.join(names) or 'none of them'}."
    )


def _print_left(book: Ledger) -> None:
    print_facts([*_ledger_facts(book), ("left", format_amounts(book.privacy.budget, book.left(), up=False))])


def _ledger_facts(book: Ledger) -> list[tuple[str, str]]:
    limits = [
        ("share" if limit.share else "budget", _format_limit(limit.budget, limit))
        for limit in book.limits()
    ]
    return [
        ("ledger", display_path(book.path)),
        ("data set", book.dataset),
        ("protects", book.privacy.protected),
        *limits,
    ]


def _format_limit(budget: Budget, limit: Limit | Entry) -> str:
    """Write a budget with its period and the share it is for: "epsilon = 1 a month for ann"."""
    return (
        format_amounts(budget, up=False)
        + (f" a {limit.period}" if limit.period else "")
        + (f" for {limit.share}" if limit.share else "")
    )


@ledger.command()
@click.argument("file", type=FILE)
@json_option
@click.option(
    "--delta",
    default="1e-9",
    show_default=True,
    help="For a rho budget: the delta of the epsilon that it implies.",
)
def show(file: Path, as_json: bool, delta: str) -> None:  # noqa: FBT001 - click passes flags by name
    """List every release with its cost and its state, and what is left."""
    book = Ledger.open(file)
    entries, budget = book.entries(), book.privacy.budget
    print_warnings(
        f"the release in {display_path(release)} was paid from this ledger, which does not know it: this "
        "is an older copy. Restore the newest one."
        for release in unknown_releases(file, book)
    )
    implied = _implied_epsilons(book, delta)
    if as_json:
        print_json(_ledger_json(book, entries, implied))
        return
    names = dict.fromkeys(
        entry.share for entry in entries if entry.kind == "budget" and entry.share
    )
    limits = [Ledger.open(book.path, share=name).limits()[-1] for name in names]
    left = [
        f"{_format_limit(limit.budget, limit)}; {format_amounts(limit.budget, limit.left, up=False)} is left"
        for limit in limits
    ]
    print_facts([*_ledger_facts(book), *(("share", words) for words in left)])
    parts = tuple(parameters(budget))
    columns = [
        ("#", "right"),
        ("day (UTC)", "left"),
        *((part, "right") for part in parts),
        ("state", "fold"),
        ("release", "fold"),
    ]
    rows: list[list[str | tuple[str, ...]]] = []
    for entry in entries:
        state = _entry_state(book, entry)
        series = period_state(book, entry) if state == "resumable" else None
        costs = [
            "" if entry.kind == "budget" else format_amount(getattr(entry.charge, part), up=True)
            for part in parts
        ]
        words = _STATES[state] if series is None else f"paid; {describe_drawn_periods(series)}"
        if entry.kind == "budget":
            subject = _format_limit(entry.declared, entry)
        else:
            where = (
                display_path(Path(entry.output)) if entry.output.startswith("/") else entry.output
            )
            subject = " ".join(filter(None, [where, entry.share and f"(share {entry.share})"]))
        release = tuple(filter(None, (subject, entry.description)))
        rows.append([f"{entry.number:,}", str(entry.reserved_on), *costs, words, release])
    click.echo()
    if rows:
        print_table("", columns, rows)
    else:
        click.echo("No release yet.\n")
    facts = [
        ("spent", format_amounts(budget, book.spent(), up=True)),
        ("left", format_amounts(budget, book.left(), up=False)),
    ]
    if implied is not None:
        epsilons = f"the whole budget epsilon <= {implied['budget']}, the spent epsilon <= {implied['spent']}, at delta = {delta}"
        facts.append(("implies", epsilons))
    print_facts(facts)


def _entry_state(book: Ledger, entry: Entry) -> str:
    """Return the state of an entry: that in the ledger, and for a paid release whether it is running or can be finished."""
    if entry.kind != "release":
        return entry.kind
    if entry.state != "reserved":
        return entry.state
    if book.is_running(entry):
        return "running"
    return "resumable" if is_resumable(entry) else "reserved"


def _implied_epsilons(book: Ledger, delta: str) -> dict[str, str] | None:
    """For a budget of rho, return the epsilons at a delta of the whole budget and of what is spent, rounded up to four decimals."""
    if not isinstance(book.privacy.budget, ZCDP):
        return None
    implied = {"delta": delta}
    for name, rho in (("budget", book.privacy.budget.rho), ("spent", book.spent().rho)):
        epsilon = zcdp_epsilon(rho, delta) if rho else None
        implied[name] = (
            "0"
            if epsilon is None
            else f"{-(-epsilon.numerator * 10**4 // epsilon.denominator) / 10**4:.4f}"
        )
    return implied


def _ledger_json(
    book: Ledger, entries: tuple[Entry, ...], implied: dict[str, str] | None
) -> dict[str, Any]:
    return {
        "ledger": str(book.path),
        "id": book.id,
        "dataset": book.dataset,
        "privacy": book.privacy.to_json(),
        "spent": book.spent().to_json(),
        "left": book.left().to_json(),
        "implied_epsilon": implied,
        "releases": [
            {
                "number": entry.number,
                "id": entry.id,
                "kind": entry.kind,
                "share": entry.share,
                "period": entry.period,
                "state": _entry_state(book, entry),
                "charge": entry.charge.to_json(),
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
