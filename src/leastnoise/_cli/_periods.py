"""``leastnoise release`` of a series: what became due is published, and paid once."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leastnoise._cli._output import data_name, number, rounded_budget_text, rounded_charge_text, show_facts, show_table, shown
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._plan import Plan
    from leastnoise._session import PeriodState, Spec

_MOST_SHOWN = 24  # periods


def publish_due(what: "Spec", out: Path, ledger: Path, plan: "Callable[[], Plan]", through: str | None) -> None:
    """Pay if that was not done, publish what became due, and say where everything is."""
    from leastnoise._session import Ledger, csv_blocks, release_due

    name, then = data_name(what), "drawing, estimating and writing"
    data = what.source and what.data(what.source)
    blocks = csv_blocks(data)
    with Progress(f"reading {name}, {then}") as progress:

        def told(rows: int, among: int | None) -> None:
            progress.rows(f"reading {name}", then, rows, among, blocks)

        done = release_due(what, data, out, ledger, plan, through=through, progress=told)
    book = Ledger.open(ledger)
    budget = book.privacy.budget
    paid = rounded_charge_text(budget, done.entry.charge, up=True)
    spent = f"{paid} for all periods" if done.paid else f"nothing: {paid} was paid on {done.entry.reserved_on} for all periods"
    facts = [("release", shown(place)) for place in done.releases] or [("release", "none: nothing new is due")]
    if done.state is None:
        facts.append(("series", "whole: every period is published, and the private file of exact counts is removed"))
    else:
        facts += [
            ("series", drawn_words(done.state)),
            ("private", "exact counts lie in a file beside the ledger; keep it, show it to nobody"),
        ]
    left = f"{rounded_charge_text(budget, book.left(), up=False)}, of {rounded_budget_text(budget, up=False)}"
    show_facts([*facts, ("spent", f"{spent}, release {done.entry.number} of the data set {book.dataset!r}"), ("left", left)])


def drawn_words(state: "PeriodState") -> str:
    """How far a series has come, for people."""
    drawn, all_of = state.drawn, len(state.labels)
    words = f"{drawn} of {all_of} periods drawn" + (f", up to {state.labels[drawn - 1]}" if drawn else "")
    due = state.labels[drawn : state.due]
    words += f"; due: {due[0]}{f' to {due[-1]}' if len(due) > 1 else ''}" if due else "; nothing is due"
    return words + (f"; not published yet: {', '.join(state.unpublished)}" if state.unpublished else "")


def period_facts(plan: "Plan") -> dict[str, Any]:
    """The errors that are promised for each period of a series, by table; nothing of other plans."""
    from leastnoise._planning import period_errors

    errors = period_errors(plan)
    return {"periods": errors} if errors else {}


def show_periods(plan: "Plan") -> None:
    """The errors that are promised for each period of a series; nothing of other plans."""
    errors = [*period_facts(plan).get("periods", {}).items()]
    if not errors:
        return
    step = -(-len(errors) // _MOST_SHOWN)
    chosen = [pair for place, pair in enumerate(errors) if place % step == 0 or place == len(errors) - 1]
    names = [product.name for product in plan.workload]
    rows: list[list[Any]] = [[label, *("" if error is None else number(error) for error in row)] for label, row in chosen]
    show_table("Typical error of the answers that end in a period", [("period", "left"), *((name, "right") for name in names)], rows)
