"""``leastnoise ledger``: the budget of a data set, and what has been spent of it."""

import secrets
from pathlib import Path
from typing import Any

import click

from leastnoise._accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP, parameters, whole_budget
from leastnoise._check import InputError
from leastnoise._cli._output import amount, rounded_budget_text, rounded_charge_text, show_facts, show_json, show_table, shown, whole
from leastnoise._cli._release import drawn_words
from leastnoise._fitting import zcdp_epsilon
from leastnoise._session import Entry, Ledger, Limit, enter_release, other_ledgers, period_state, unknown_releases
from leastnoise._stopped import note_run

_STATES = {
    "sealed": "published",
    "absent": "paid and absent",
    "running": "paid, being made",
    "resumable": "paid and resumable",
    "reserved": "paid, not finished",
    "spent": "spent elsewhere",
    "budget": "budget set",
}


@click.group()
def ledger() -> None:
    """Set the budget of a data set, and see what has been spent."""


@ledger.command("set")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--epsilon", help="Pure differential privacy; with --delta, approximate.")
@click.option("--delta", help="Above 0 and far below one over the number of people, such as 1e-9.")
@click.option("--rho", help="Zero-concentrated differential privacy.")
@click.option("--dataset", help="Name of the data set.  [default: the name of FILE]")
@click.option("--unit-column", help="The column that names a person.  [default: every row is a person]")
@click.option("--neighbours", type=click.Choice(["add_remove", "replace"]), default="add_remove", show_default=True)
def set_budget(
    file: Path,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    dataset: str | None,
    unit_column: str | None,
    neighbours: str,
) -> None:
    """Make the ledger of a data set, with a budget and nothing spent.

    The budget is exact: whole numbers, decimals and fractions such as 1, 0.1 or 1/3. `ledger change` changes it later.
    """
    privacy = Privacy(_budget(epsilon, delta, rho), neighbours, unit_column)
    made = Ledger.create(file, dataset or file.name.split(".")[0] or file.name, privacy)
    for other in other_ledgers(file, made.dataset):
        click.echo(
            f"Warning: {shown(other)} is of a data set {made.dataset!r} too, and neither ledger knows what the other one spends. "
            "If these are the same people, their losses add up.",
            err=True,
        )
    _show_left(made)


def _amount(command: Any) -> Any:
    """The options that say a budget."""
    for name, text in (("--rho", "Zero-concentrated differential privacy."), ("--delta", "With --epsilon."), ("--epsilon", "Exact.")):
        command = click.option(name, help=text)(command)
    return command


@ledger.command("change")
@click.argument("file", type=click.Path(path_type=Path))
@_amount
@click.option("--per", type=click.Choice(["day", "week", "month", "year", "ever"]), help="Anew for each of these.  [default: as it is]")
@click.option("--note", default="", help="Why; kept in the ledger.")
def change(file: Path, epsilon: str | None, delta: str | None, rho: str | None, per: str | None, note: str) -> None:
    """Raise or lower the budget, never below what is spent; recorded.

    With --per, the budget is for every such period of payment (UTC): for data that hold other people in each. Whoever is in the data of
    several periods loses that much in each.
    """
    period = None if per is None else per.replace("ever", "")
    book = Ledger.open(file)
    _show_left(book.set_budget(_budget(epsilon, delta, rho, book), period=period, note=note, receipt=_noted(book)))


@ledger.command("share")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
@_amount
@click.option("--note", default="", help="Why; kept in the ledger.")
def share(file: Path, name: str, epsilon: str | None, delta: str | None, rho: str | None, note: str) -> None:
    """Give NAME, an analyst or a project, a share of the budget, or change it.

    A share is the most that its releases may spend together, within the whole budget. Every release then says --share.
    """
    if not name.strip():
        raise InputError("A share must have a name, such as that of an analyst or a project.")
    book = Ledger.open(file)
    book.set_budget(_budget(epsilon, delta, rho, book), share=name, note=note, receipt=_noted(book))
    _show_left(Ledger.open(file, share=name))


@ledger.command("spent")
@click.argument("file", type=click.Path(path_type=Path))
@_amount
@click.option("--release", "directory", type=click.Path(path_type=Path), help="The release that cost it: how much, and when.")
@click.option("--on", type=click.DateTime(["%Y-%m-%d"]), help="The day it was spent.  [default: today]")
@click.option("--share", default="", help="The share that it counts to.")
@click.option("--note", default="", help="What it was; kept in the ledger.")
def spent(
    file: Path,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    directory: Path | None,
    on: Any,
    share: str,
    note: str,
) -> None:
    """Enter what was spent before this ledger, or elsewhere, of the same people.

    It is added up like a release, also beyond the budget.
    """
    book = Ledger.open(file, share=share)
    if directory is None:
        entry = book.add_spent(_budget(epsilon, delta, rho), note=note, on=on and on.date(), receipt=_noted(book))
    elif (epsilon, delta, rho, on) != (None, None, None, None):
        raise InputError("A release says itself what it cost and when; give --release alone, or an amount without it.")
    else:
        entry = enter_release(book, directory, note)
    click.echo(f"Entered: {entry.charge}, on {entry.reserved_on}.")
    _show_left(book)


def _noted(book: Ledger) -> str:
    """The receipt of a new entry: whatever happens to it, the last message says whether it was made."""
    receipt = secrets.token_hex(16)
    note_run(book.path.absolute(), receipt)
    return receipt


def _show_left(book: Ledger) -> None:
    show_facts([("ledger", shown(book.path)), *_head(book), ("left", _words(book, "left"))])


@ledger.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--delta", default="1e-9", show_default=True, help="For a rho budget: the delta of the epsilon that it implies.")
def show(file: Path, as_json: bool, delta: str) -> None:  # noqa: FBT001 - click passes flags by name
    """Every release, its cost and its state, and what is left."""
    book = Ledger.open(file)
    entries = book.entries()
    for release in unknown_releases(file, book):
        click.echo(
            f"Warning: the release in {shown(release)} was paid from this ledger, which does not know it: this is an older copy. "
            "Restore the newest one.",
            err=True,
        )
    if as_json:
        show_json(_facts(book, entries, delta))
        return
    show_facts([("ledger", shown(file)), *_head(book), *_shares(book)])
    parts = tuple(parameters(book.privacy.budget))
    columns = [("#", "right"), ("day (UTC)", "left"), *((part, "right") for part in parts), ("state", "fold"), ("release", "fold")]
    rows: list[list[str | tuple[str, ...]]] = [
        [
            whole(entry.number),
            str(entry.reserved_on),
            *("" if entry.kind == "budget" else amount(getattr(entry.charge, part), up=True) for part in parts),
            _state_words(book, entry),
            _what(book, entry),
        ]
        for entry in entries
    ]
    click.echo()
    if rows:
        show_table("", columns, rows)
    else:
        click.echo("No release yet.\n")
    facts = [("spent", _words(book, "spent")), ("left", _words(book, "left"))]
    if (implied := _implied(book, delta)) is not None:
        epsilons = f"the whole budget epsilon <= {implied['budget']}, the spent epsilon <= {implied['spent']}, at delta = {delta}"
        facts.append(("implies", epsilons))
    show_facts(facts)


def _state(book: Ledger, entry: Entry) -> str:
    """The state in the ledger, and of what is not settled there, whether it is under way or can be finished."""
    if entry.kind != "release":
        return entry.kind
    if entry.state != "reserved":
        return entry.state
    return "running" if book.is_running(entry) else "resumable" if entry.resumable else "reserved"


def _state_words(book: Ledger, entry: Entry) -> str:
    """The same for people; of a series, how far it has come."""
    state = _state(book, entry)
    series = period_state(book, entry) if state == "resumable" else None
    return _STATES[state] if series is None else f"paid; {drawn_words(series)}"


def _budget(epsilon: str | None, delta: str | None, rho: str | None, book: Ledger | None = None) -> Budget:
    """The budget that the options say; of the definition that the entries of a ledger are added up in, where there is one."""
    given = {name: value for name, value in (("--epsilon", epsilon), ("--delta", delta), ("--rho", rho)) if value is not None}
    wanted = [] if book is None else [f"--{name}" for name in parameters(book.privacy.budget)]
    if book is not None and list(given) != wanted:
        missing = [name for name in wanted if name not in given]
        advice = f"Add {missing[0]}" if given and set(given) < set(wanted) else f"Say {' and '.join(wanted)}"
        raise InputError(
            f"A budget of {shown(book.path)} must have {' and '.join(wanted)}, in which its entries are added up; "
            f"got {' and '.join(given) or 'none of them'}. {advice}. Nothing was changed."
        )
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if rho is None and epsilon is not None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    raise InputError(f"A budget must be --epsilon, or --epsilon and --delta, or --rho; got {' and '.join(given) or 'none of them'}.")


def _head(book: Ledger) -> list[tuple[str, str]]:
    limits = [("share" if limit.share else "budget", _limit(limit)) for limit in book.limits()]
    return [("data set", book.dataset), ("protects", book.privacy.protected), *limits]


def _limit(limit: Limit) -> str:
    """A budget, for whom and for which period."""
    whose = f" for {limit.share}" if limit.share else ""
    each = f" a {limit.period}" if limit.period else ""
    return f"{rounded_budget_text(limit.budget, up=False)}{each}{whose}"


def _shares(book: Ledger) -> list[tuple[str, str]]:
    """Every share, with what is left of it."""
    names = dict.fromkeys(entry.share for entry in book.entries() if entry.kind == "budget" and entry.share)
    limits = [Ledger.open(book.path, share=name).limits()[-1] for name in names]
    return [("share", f"{_limit(limit)}; {rounded_charge_text(limit.budget, limit.left, up=False)} is left") for limit in limits]


def _what(book: Ledger, entry: Entry) -> tuple[str, ...]:
    """What an entry is, for people."""
    if entry.kind == "budget":
        whose = f" for {entry.share}" if entry.share else ""
        each = f" a {entry.period}" if entry.period else ""
        head = f"{rounded_charge_text(book.privacy.budget, whole_budget(entry.declared), up=False)}{each}{whose}"
    else:
        where = shown(Path(entry.output)) if entry.output.startswith("/") else entry.output
        head = " ".join(filter(None, [where, f"(share {entry.share})" if entry.share else ""]))
    return tuple(filter(None, (head, entry.description)))


def _words(book: Ledger, which: str) -> str:
    return rounded_charge_text(book.privacy.budget, book.left() if which == "left" else book.spent(), up=which == "spent")


def _implied(book: Ledger, delta: str) -> dict[str, str] | None:
    """For a rho budget: the epsilon of the whole and of what is spent, at a delta; decimals that are rounded up."""
    budget = book.privacy.budget
    if not isinstance(budget, ZCDP):
        return None
    spent = book.spent().rho
    return {
        "delta": delta,
        "budget": _above(zcdp_epsilon(budget.rho, delta)),
        "spent": _above(zcdp_epsilon(spent, delta)) if spent else "0",
    }


def _above(value: Any) -> str:
    """A decimal of four places that is not below a fraction."""
    return f"{-(-value.numerator * 10**4 // value.denominator) / 10**4:.4f}"


def _facts(book: Ledger, entries: tuple[Entry, ...], delta: str) -> dict[str, Any]:
    return {
        "ledger": str(book.path),
        "id": book.id,
        "dataset": book.dataset,
        "privacy": book.privacy.to_json(),
        "spent": book.spent().to_json(),
        "left": book.left().to_json(),
        "implied_epsilon": _implied(book, delta),
        "releases": [
            {
                "number": entry.number,
                "id": entry.id,
                "kind": entry.kind,
                "share": entry.share,
                "period": entry.period,
                "state": _state(book, entry),
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
