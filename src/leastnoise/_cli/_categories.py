"""``leastnoise categories``: find categories that nobody can list, before the release that asks about them; paid first."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leastnoise._check import InputError
from leastnoise._cli._earlier import settle_earlier
from leastnoise._cli._output import data_name, rounded_charge_text, show_facts, shown, whole
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._release import FoundCategories
    from leastnoise._session import Searched, Spec


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--source", type=click.Path(path_type=Path), help="The data, if the spec file does not name it.")
@click.option("--ledger", type=click.Path(path_type=Path), help="The ledger.  [default: beside the data, made if it is not there]")
@click.option("--dataset", help="Name of the data set in the ledger.  [default: the name of the data's file]")
@click.option("--share", help="The share of the budget that pays, where the ledger has shares.")
def categories(spec: Path, source: Path | None, ledger: Path | None, dataset: str | None, share: str | None) -> None:
    """Find the categories that nobody can list, privately; `release` does it too.

    For every [domain.NAME] unknown = { most = ... } the share of the budget that it says is spent, and what was found is written beside the
    spec. From then on `plan`, `check` and `release` of this spec know it.
    """
    from leastnoise._session import check_before, ledger_beside, read_spec

    what = read_spec(spec)
    if not what.searches:
        raise InputError("This spec has no unknown categories; say for example [domain.agent] unknown = { most = 10000 }.")
    data = source or what.source
    if data is None:
        raise InputError('A search must have data; add [source] path = "people.csv" to the spec file, or say --source people.csv.')
    what = replace(what, source=data, dataset=dataset or what.dataset, share=share or what.share)
    paying = ledger or what.ledger or ledger_beside(data)
    settle_earlier(paying)
    for one in what.searches:
        if one.found is not None:
            click.echo(f"The categories of {one.attribute} were found before: {whole(len(one.found.texts))}, in {shown(one.place)}.")
    if all(one.found is not None for one in what.searches):
        return
    check_before(paying, what, spec.parent.absolute())
    found_first(what, spec, paying)


def found_first(what: "Spec", spec: Path, ledger: Path, seed: int | None = None) -> "Spec":
    """Find what a spec does not know yet, and read it again."""
    from leastnoise._session import read_spec

    made = {one.attribute: _found(what, one, ledger, seed) for one in what.searches if one.found is None}
    if not made:
        return what
    return replace(read_spec(spec, made), source=what.source, dataset=what.dataset, share=what.share)


def _found(what: "Spec", one: "Searched", ledger: Path, seed: int | None) -> "FoundCategories":
    from leastnoise._accounting import Privacy
    from leastnoise._session import Ledger, csv_blocks, find_categories

    name = data_name(what)
    about = f"the categories of {one.attribute}"
    if not isinstance(what.privacy, Privacy):
        raise InputError("The budget of a search must be known.")
    data = what.source and what.data(what.source)
    blocks = csv_blocks(data)
    with Progress(f"reading {name}, finding {about}") as progress:
        made = find_categories(
            one.plan(what.privacy),
            data,
            ledger=None if seed is not None else Ledger.open(ledger, share=what.share) if what.share else ledger,
            out=None if seed is not None else one.place,
            whole=what.privacy,
            dataset=what.dataset,
            seed=seed,
            progress=lambda done, among: progress.rows(f"reading {name}", f"finding {about}", done, among, blocks),
        )
    spent = "nothing, because this is NOT PRIVATE" if seed is not None else str(made.receipt["charge"])
    places = [] if seed is not None else [("list", shown(one.place / "categories.csv"))]
    show_facts([(about, f"{whole(len(made.texts))} found"), *places, ("spent", spent)])
    return made


def search_facts(what: "Spec") -> Iterator[dict[str, Any]]:
    """What the searches of a spec cost and find, as JSON objects with stable keys."""
    from leastnoise._accounting import Privacy

    for one in what.searches:
        if isinstance(what.privacy, Privacy):
            plan = one.plan(what.privacy)
            yield {
                "attribute": one.attribute,
                "budget": plan.privacy.budget.to_json(),
                "threshold": plan.threshold,
                "often": plan.often,
                "most": one.kind.most,
                "found": None if one.found is None else len(one.found.texts),
            }


def show_searches(what: "Spec") -> None:
    """Print what the searches of a spec cost and find."""
    from leastnoise._accounting import budget_from_json, whole_budget

    for fact in search_facts(what):
        budget = budget_from_json(fact["budget"])
        price = rounded_charge_text(budget, whole_budget(budget), up=True)
        name, often, threshold, most = fact["attribute"], *(whole(fact[key]) for key in ("often", "threshold", "most"))
        if fact["found"] is not None:
            told = f"The categories of {name} are found and paid ({price}): {whole(fact['found'])}. What stands above is the rest."
        else:
            told = (
                f"Before that, {price} finds the categories of {name}: one of {often} units is found in 95 of 100 searches, one of "
                f"{threshold} in about half, one of far fewer not at all. The errors above are for {most} categories."
            )
        click.echo("\n" + click.wrap_text(told, 78))
