"""Categories that nobody can list beforehand, found privately: a payment of its own, before the release that asks about them."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leastnoise import _adapters
from leastnoise._accounting import Privacy, SeriesCost
from leastnoise._check import InputError, InternalError, LedgerError, refuse
from leastnoise._kernel import Entry, FoundKeys, KeySearch, Ledger, SeededEntropy, Series, Terms, UnpaidSeries
from leastnoise._plan import CategoryPlan
from leastnoise._progress import rows_shown
from leastnoise._release import Draft, FoundCategories, check_target, draft, write_categories
from leastnoise._session._finish import RowProgress, receipt_facts, resumed
from leastnoise._session._ledgers import ledger_for, ledger_made
from leastnoise._session._payments import IN_MEMORY, given_or_kept, paid_before, paying, settle
from leastnoise._threads import one_thread

if TYPE_CHECKING:
    from leastnoise._table import Table


@one_thread()
@rows_shown("finding categories")
def find_categories(
    plan: CategoryPlan,
    source: Any,
    *,
    ledger: str | Path | Ledger | None = None,
    out: str | Path | None = None,
    whole: Privacy | None = None,
    dataset: str | None = None,
    seed: int | None = None,
    progress: RowProgress = None,
) -> FoundCategories:
    """Find the categories that enough people have; pay for it first.

    Args:
        plan: from `plan_categories`.
        source: as for `leastnoise.release`.
        ledger: the ledger of the data set, or its file. Needed without a ``seed``.
        out: a directory to write, which must not exist yet; None to write nothing.
        whole: what the data set may spend in all, for a ledger that is made now: this search and the releases after it. Without it the
            ledger must be there.
        dataset: the data set's name in the ledger; None for the source's file name.
        seed: draw reproducible noise that protects nobody, for tests and experiments; nothing is paid.
        progress: called with the rows read so far and their number if it is known.

    Returns:
        The categories; ``kind()`` is the attribute for a `Domain`.

    Raises:
        InputError: something of the above cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used; nothing was spent.
        PaidError: something failed after payment; the message says whether ``resume`` finishes the search.

    Guarantees: the categories and their noisy numbers of units satisfy the plan's budget for its unit and neighbours, however many of its
        ``max_rows`` categories a unit has alone. The charge is on the ledger's disk before any noise is drawn. Killed at any instant,
        the search is paid and absent, paid and resumable, or paid and whole.

    Edge cases: that nothing is found is a result too, and paid. A search of this plan for this directory that was paid and stopped is
        finished; nothing is paid again.

    >>> plan = ln.plan_categories("agent", ln.Unknown(9), ln.ApproxDP(1, "1e-9"))
    >>> ln.find_categories(plan, pd.DataFrame({"agent": ["curl"] * 99 + ["of one person"]}), seed=1).texts
    ('curl',)
    """
    if not isinstance(plan, CategoryPlan):
        raise refuse("plan", type(plan).__name__, "a plan from leastnoise.plan_categories")
    target = None if out is None else check_target(out)
    if seed is not None:
        if ledger is not None:
            raise InputError("A seeded search pays nothing, because its noise protects nobody; leave out the ledger or the seed.")
        unpaid = UnpaidSeries(_terms(plan), _keys(plan, source, progress), SeededEntropy(seed))
        found = _found(plan, unpaid.find(_search(plan)), _joined(_adapters.join_facts(source)), private=False)
        with nullcontext() if target is None else draft(target) as place:
            return _written(found, place)
    book = ledger_for(ledger, source, dataset, [] if target is None else [target.parent])
    if book is not None:
        settle(book)
        paid = None if target is None else paid_before(book, plan.digest(), str(target))
        if paid is not None:
            return finish_search(book, paid, source, progress=progress)
        book.check(SeriesCost(plan.privacy.budget), plan.privacy)
    elif whole is None:
        raise LedgerError(
            f"There is no ledger at {ledger}. Make it with the budget of the search and of the releases after it: `leastnoise ledger set`, "
            "leastnoise.Ledger.create, or the argument whole. Nothing was spent."
        )
    with nullcontext() if target is None else draft(target) as place:
        table = _keys(plan, source, progress)
        if book is None and whole is not None:
            name = dataset or _adapters.dataset_name(source) or "data"
            book = ledger_made(ledger, name, whole)
        if book is None:
            raise InternalError("A search has no ledger; please report this.")
        with paying(book, _room(plan)) as run:
            series = Series.paid(
                _terms(plan),
                table,
                book,
                output=IN_MEMORY if target is None else str(target),
                description=f"categories of {plan.attribute!r}",
                options=json.dumps({"source": _adapters.location(source), "joined": _adapters.join_facts(source)}),
                run=run,
            )
            return _published(plan, series.find(_search(plan)), book, place, series, _adapters.join_facts(source))


def finish_search(book: Ledger, entry: Entry, source: Any = None, *, out: Any = None, progress: RowProgress = None) -> FoundCategories:
    """Finish one search that was paid."""
    pending = book.pending(entry)
    plan = CategoryPlan.from_json(pending.plan)
    kept, joined = _kept(pending.options)
    data = given_or_kept(source, kept, joined)
    target = None if out is None and entry.output == IN_MEMORY else check_target(out or entry.output)
    with nullcontext() if target is None else draft(target) as place, paying(book, _room(plan)) as run:
        receipt = book.take_over(entry, run)
        read = partial(_keys, plan, data, progress)
        found, series = resumed(_terms(plan), book, receipt, lambda series: series.find(_search(plan)), data, read)
        return _published(plan, found, book, place, series, joined)


def _keys(plan: CategoryPlan, source: Any, progress: RowProgress) -> "Table":
    return _adapters.read_keys(
        source,
        plan.domain,
        plan.attribute,
        unit_column=plan.privacy.unit_column,
        max_rows=plan.privacy.max_rows,
        progress=progress,
    )


def _terms(plan: CategoryPlan) -> Terms:
    return Terms(domain=plan.domain, privacy=plan.privacy, attributes=(plan.attribute,), text=plan.to_json())


def _search(plan: CategoryPlan) -> KeySearch:
    return KeySearch(attribute=plan.attribute, rule=plan.rule, most=plan.kind.most)


def _room(plan: CategoryPlan) -> int:
    """Bytes that the ledger needs for what may be found, with its journal, where a category has 30 characters."""
    return 2**20 + 500 * plan.kind.most


def _joined(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"joined": dict(facts)} if facts else {}


def _kept(options: str) -> tuple[Any, dict[str, Any]]:
    """Where the data were, and what was said of a second table."""
    try:
        value = json.loads(options)
        return value["source"], dict(value.get("joined", {}))
    except (ValueError, KeyError, TypeError):
        raise LedgerError("What the ledger holds of this search is unreadable. Restore the ledger from a copy.") from None


def _found(plan: CategoryPlan, keys: FoundKeys, receipt: Mapping[str, Any], *, private: bool) -> FoundCategories:
    return FoundCategories(plan=plan, texts=keys.keys, units=tuple(keys.units.tolist()), private=private, receipt=receipt)


def _published(
    plan: CategoryPlan, keys: FoundKeys, book: Ledger, place: Draft | None, series: Series, joined: Mapping[str, Any]
) -> FoundCategories:
    """Write and seal; what was found is on the ledger's disk by now."""
    receipt = series.receipt
    if receipt is None:
        raise InternalError("A paid series has no receipt; please report this.")
    made = _found(plan, keys, {**receipt_facts(book, receipt), **_joined(joined)}, private=True)
    _written(made, place)
    book.seal(receipt)
    return made


def _written(found: FoundCategories, place: Draft | None) -> FoundCategories:
    if place is not None:
        write_categories(found, place)
        place.publish()
    return found
