"""From a measurement to a published release: the first time, and again after it was stopped, without paying again."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from leastnoise import _adapters
from leastnoise._check import InputError, LeastNoiseError, LedgerError
from leastnoise._estimate import Outcome
from leastnoise._kernel import Entry, Ledger, NeedsData, Receipt, Series, Terms
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._plan import Plan, versions
from leastnoise._release import Draft, Options, Release, build, check_target, draft, fill_draft
from leastnoise._session._payments import IN_MEMORY, given_or_kept, paying, receipt_of

if TYPE_CHECKING:
    from leastnoise._table import Table

_Drawn = TypeVar("_Drawn")
RowProgress = Callable[[int, int | None], None] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the ledger keeps of a release, beside its plan, until it is published: so another process can finish it."""

    options: Options
    place: Any = None
    guard: Mapping[str, Any] = field(default_factory=dict)
    joined: Mapping[str, Any] = field(default_factory=dict)
    library: str | None = None

    def build(self, outcome: Outcome, receipt: Mapping[str, Any] | None = None) -> Release:
        """Answer, from what was measured."""
        guard = {f"guard_{name}": value for name, value in self.guard.items()}
        joined = {"joined": dict(self.joined)} if self.joined else {}
        return build(outcome, self.options, {**(receipt or {}), **guard, **joined}, self.library)

    def to_json(self) -> str:
        """The text that the ledger keeps."""
        own = versions()["leastnoise"]
        beside = {"source": self.place, "guard": dict(self.guard), "joined": dict(self.joined)}
        return json.dumps({"version": own, "options": self.options.to_json(), **beside})

    @classmethod
    def from_json(cls, text: str) -> "Asked":
        """Read what `to_json` wrote."""
        try:
            value = json.loads(text)
            return cls(Options(**value["options"]), value["source"], dict(value["guard"]), dict(value.get("joined", {})))
        except (ValueError, KeyError, TypeError, AttributeError, InputError):
            message = "What the ledger holds of this release's options is unreadable. Restore the ledger from a copy."
            raise LedgerError(message) from None


@dataclass(frozen=True, slots=True)
class Finished:
    """A release, or the categories of a search, paid before and finished now; ``out`` is None if it was not to be written."""

    entry: Entry
    release: Any
    out: Path | None


def read_table(plan: Plan, source: Any, progress: RowProgress = None, *, usage: bool = False) -> "Table":
    """Encode the rows that a plan is about."""
    attributes, measures = plan.used()
    return _adapters.read(
        source,
        plan.domain,
        wanted=_adapters.Wanted(attributes=attributes, measures=measures, tables=_tables(plan), usage=usage),
        unit_column=plan.privacy.unit_column,
        max_rows=plan.privacy.max_rows,
        max_per_cell=plan.privacy.max_per_cell,
        progress=progress,
    )


def _tables(plan: Plan) -> dict[str | None, list[tuple[str, ...]]] | None:
    """The marginals that are measured, by measure, where the plan says all of them."""
    if plan.measurements is None or any(block.limits is not None for block in plan.measurements.blocks):
        return None
    if plan.details.get("series", {}).get("late") == "arrival":  # one table, so that a row arrives in one period in all
        return {None: [plan.measurements.columns()[0]]}
    tables: dict[str | None, list[tuple[str, ...]]] = {}
    for block in plan.measurements.blocks:
        for measure in (block.measure, plan.domain.count_of(str(block.measure))) if block.ends else (block.measure,):
            tables.setdefault(measure, []).append(block.attributes)
    return tables


def room_for(plan: Plan) -> int:
    """Bytes that the ledger needs for what will be measured, from public sizes, with its journal."""
    numbers = 2**16 if plan.measurements is None else sum(block.rows for block in plan.measurements.blocks)
    return 2**20 + 3 * len(plan.to_json()) + 36 * numbers


def publish(outcome: Outcome, book: Ledger, asked: Asked, place: Draft | None, series: Series) -> Release:
    """Answer, write and seal."""
    receipt = receipt_of(series)
    made = written_of(outcome, book, asked, place, receipt)
    book.seal(receipt)
    return made


def written_of(outcome: Outcome, book: Ledger, asked: Asked, place: Draft | None, receipt: Receipt) -> Release:
    """Answer and write what a receipt paid for."""
    made = asked.build(outcome, receipt_facts(book, receipt))
    if place is not None:
        fill_draft(made, place)
        place.publish()
    return made


def receipt_facts(book: Ledger, receipt: Receipt) -> dict[str, Any]:
    """What a manifest says of a payment."""
    facts = {"dataset": receipt.dataset, "ledger": book.path.name, "ledger_id": book.id, "charge": str(receipt.charge)}
    return {"id": receipt.id, **facts, "number": receipt.number, "head": receipt.head}


def finish_one(
    book: Ledger, entry: Entry, source: Any = None, *, options: Options | None = None, out: Any = None, progress: RowProgress = None
) -> Finished:
    """Finish one release that was paid."""
    pending = book.pending(entry)
    with _of_its_version(book, entry, pending.options):
        kept, plan = Asked.from_json(pending.options), Plan.from_json(pending.plan)
        run = mechanism_of(plan).ready(plan)
    asked = kept if options is None else replace(kept, options=options)
    target = None if out is None and entry.output == IN_MEMORY else check_target(out or entry.output)
    with nullcontext() if target is None else draft(target) as place, paying(book, room_for(plan)) as process:
        receipt = book.take_over(entry, process)
        data = given_or_kept(source, kept.place, kept.joined)
        outcome, series = resumed(terms_of(plan), book, receipt, run, data, lambda: read_table(plan, data, progress))
        return Finished(entry, publish(outcome, book, asked, place, series), target)


@contextmanager
def _of_its_version(book: Ledger, entry: Entry, options: str) -> Iterator[None]:
    """What cannot be read of a release is no damage if another version paid for it: that one can finish it."""
    try:
        yield
    except LeastNoiseError as error:
        own, paid_with = versions()["leastnoise"], ""
        with suppress(ValueError, KeyError, TypeError):
            paid_with = str(json.loads(options)["version"])
        if own == paid_with:
            if not isinstance(error, InputError):
                raise
            raise LedgerError(  # what a plan is refused for before payment says that nothing was spent, and to plan again
                f"Release {entry.number} in the ledger {book.path} was paid, and this program cannot carry out what it recorded: "
                f"{str(error).split('. ')[0].rstrip('.')}. Finish it with the program that paid for it; nothing is paid again."
            ) from None
        by = f"leastnoise {paid_with}" if paid_with else "an earlier leastnoise"
        raise LedgerError(
            f"Release {entry.number} in the ledger {book.path} was paid with {by}, and leastnoise {own} cannot read what it recorded. "
            "Finish it with that version; nothing is paid again."
        ) from None


def resumed(
    terms: Terms, book: Ledger, receipt: Receipt, carry_out: Callable[[Series], _Drawn], source: Any, read: Callable[[], Any]
) -> tuple[_Drawn, Series]:
    """What was drawn; the data are read only if something is left to draw."""
    try:
        series = Series.resumed(terms, None, book, receipt)
        return carry_out(series), series
    except NeedsData:
        if isinstance(source, type(None)):  # noqa: FURB168 - a source is handed on, never compared
            raise InputError("What was paid has steps left to draw, and its data were not in a file. Give them as source.") from None
    series = Series.resumed(terms, read(), book, receipt)
    return carry_out(series), series
