"""``leastnoise release``: measure, estimate and write; paid first."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leastnoise._check import InputError
from leastnoise._cli._cache import without_cache
from leastnoise._cli._categories import found_first
from leastnoise._cli._earlier import settle_earlier
from leastnoise._cli._output import data_name, rounded_charge_text, show_facts, shown
from leastnoise._cli._planned import planned_shown
from leastnoise._progress import Progress

if TYPE_CHECKING:
    from leastnoise._plan import Plan
    from leastnoise._release import Release
    from leastnoise._session import Spec

_NOT_PRIVATE = """\
!!  NOT PRIVATE: the noise of a seeded run protects nobody, because whoever knows the seed can take it away.
!!  Nothing was paid. Use it for tests with data that are not secret, and publish nothing of it."""

_NNLS = """\
Warning: nnls = true adds answer_nnls, which is biased. Its cells come nearer to the truth; sums of cells need not, because what is cut off
below 0 comes back as mass elsewhere. The total is fixed, nnls_rmse is simulated and no promise, and the unbiased answers stay beside it."""
_LOCAL = """\
Warning: local_non_negative = true adds answer_local, which is biased, small cells upwards and large ones downwards, by an amount that is
not known. No error bars belong to it; the unbiased answers stay beside it."""


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The directory to write; it must not exist yet.")
@click.option("--source", type=click.Path(path_type=Path), help="The data, if the spec file does not name it.")
@click.option("--ledger", type=click.Path(path_type=Path), help="The ledger.  [default: beside the data, made if it is not there]")
@click.option("--dataset", help="Name of the data set in the ledger.  [default: the name of the data's file]")
@click.option("--share", help="The share of the budget that pays, where the ledger has shares.")
@click.option("--plan", "made", type=click.Path(path_type=Path), help="A plan from `leastnoise plan SPEC --out`; nothing is planned.")
@click.option("--seed", type=click.IntRange(min=0), help="NOT PRIVATE: reproducible noise, for tests alone. Nothing is paid.")
@without_cache
def release(
    spec: Path,
    out: Path,
    source: Path | None,
    ledger: Path | None,
    dataset: str | None,
    share: str | None,
    made: Path | None,
    seed: int | None,
) -> None:
    """Measure, estimate, and write answers, manifest and report.

    The ledger is charged before any noise is drawn. If something is refused, nothing is spent and nothing is written.
    """
    from leastnoise._release import check_options, check_target, notices
    from leastnoise._session import check_before, ledger_beside, plan_warnings, read_plan, read_spec, spec_warnings

    what = read_spec(spec)
    if made is not None and any(one.found is None for one in what.searches):
        raise InputError("A plan is for categories that are known. Find them first, with `leastnoise categories`, and plan again.")
    plan = None if made is None else read_plan(made, what)
    warn_of_bias(what)
    data = source or what.source
    if data is None:
        raise InputError('A release must have data; add [source] path = "people.csv" to the spec file, or say --source people.csv.')
    paying = ledger or what.ledger or ledger_beside(data)
    what = replace(what, source=data, dataset=dataset or what.dataset, share=share or what.share)
    target = check_target(out)
    known = settle_earlier(paying) if seed is None else frozenset[str]()
    check_before(paying if seed is None else None, what, target.parent)
    warn(spec_warnings(what))
    if seed is not None:
        click.echo(_NOT_PRIVATE, err=True)
    new = not paying.exists()
    what = found_first(what, spec, paying, seed)
    plan = plan or planned_shown(what)[0]
    check_options(plan, what.options)
    warn(plan_warnings(what, plan))
    published = carry_out(what, plan, out, ledger=paying, seed=seed, known=known)
    show_release(published, out, None if seed is not None else paying, new=new, notes=notices(published))


def warn(sentences: Iterable[str]) -> None:
    """Print warnings on the standard error stream."""
    for sentence in sentences:
        click.echo(f"Warning: {sentence}", err=True)


def warn_of_bias(what: "Spec") -> None:
    """Say what answers without negative cells are not, wherever they are asked for."""
    if what.options.nnls:
        click.echo(_NNLS, err=True)
    if what.options.local_non_negative:
        click.echo(_LOCAL, err=True)


def carry_out(
    what: "Spec", plan: "Plan", out: Path, *, ledger: Path, seed: int | None = None, known: frozenset[str] = frozenset()
) -> "Release":
    """Make a release with progress."""
    from leastnoise._release import finishing_seconds
    from leastnoise._session import Ledger, csv_blocks
    from leastnoise._session import release as released

    name, then, about = data_name(what), "measuring, estimating and writing", finishing_seconds(plan, what.options)
    data = what.source and what.data(what.source)
    blocks = csv_blocks(data)
    with Progress(f"reading {name}, {then}") as progress:
        made = released(
            plan,
            data,
            ledger=None if seed is not None else Ledger.open(ledger, share=what.share) if what.share else ledger,
            out=out,
            options=what.options,
            dataset=what.dataset,
            seed=seed,
            progress=lambda done, among: progress.rows(f"reading {name}", then, done, among, blocks, about),
        )
    if made.observation.receipt in known:
        click.echo("This release was paid and measured before, and stopped; it is finished now, and nothing was paid again.", err=True)
    return made


def show_release(made: "Release", out: Path, ledger: Path | None, *, new: bool, notes: Sequence[str] = ()) -> None:
    """Print where everything is, what was spent and what is left."""
    places = [
        ("answers", f"{shown(out / 'answers')}, listed in {shown(out / 'tables.csv')}"),
        ("manifest", shown(out / "manifest.json")),
        ("report", shown(out / "report.html")),
        *(("note", text) for text in notes),
        ("guard", _guard(made)),
    ]
    if ledger is None:
        show_facts([*places, ("spent", "nothing, because this is NOT PRIVATE: publish nothing of it")])
    else:
        show_facts([*places, *_account(made.observation.receipt, ledger, made.receipt.get("guard_number"), new=new)])


def _guard(made: "Release") -> str:
    """What the guard of a release found, or that there was none."""
    from leastnoise._release import guard_words

    found = guard_words(made)
    if found is None:
        return 'none: [plan] guard = "1/100" would stop a release of which few rows are used'
    return f"{found} It cost {made.receipt['guard_charge']}."


def _account(receipt: str, ledger: Path, guard: int | None, *, new: bool) -> list[tuple[str, str]]:
    from leastnoise._accounting import whole_budget
    from leastnoise._session import Ledger

    book = Ledger.open(ledger)
    entry = next(entry for entry in book.entries() if entry.id == receipt)
    budget = book.privacy.budget
    beside = "" if guard is None else f" (its guard is {guard})"
    return [
        ("spent", f"{rounded_charge_text(budget, entry.charge, up=True)}, release {entry.number} of the data set {book.dataset!r}{beside}"),
        ("left", f"{rounded_charge_text(budget, book.left(), up=False)}, of {rounded_charge_text(budget, whole_budget(budget), up=False)}"),
        ("ledger", f"{shown(ledger)}{', new, with the budget of this plan' if new else ''}"),
    ]
