"""What is refused before anything is planned: a ledger that cannot pay, a plan of something else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leastnoise import _adapters
from leastnoise._accounting import ApproxDP, Cost, Privacy, PureCost, SeriesCost
from leastnoise._check import InputError
from leastnoise._kernel import Entry, Ledger
from leastnoise._plan import Plan
from leastnoise._planning import SMALL, series_of, smallest, stated
from leastnoise._release import check_formats, written
from leastnoise._session._ledgers import ledger_for
from leastnoise._spec import Spec, asked_about


def check_before(ledger: Path | None, what: Spec, folder: Path) -> None:
    """Refuse, before anything is planned, data that cannot be read, files that cannot be written, and what could not be paid."""
    check_writable(what)
    data = None if what.source is None else what.data(what.source)
    _adapters.check_source(data, what.domain, *asked_about(what), smallest(what.privacy).unit_column)
    if ledger is None:
        return
    book = ledger_for(ledger, data, what.dataset, [folder], share=what.share)
    if book is not None and not any(entry.resumable for entry in book.entries()):
        asked = smallest(what.unpaid_privacy)
        book.check(_least(asked, book), asked)


def check_writable(what: Spec) -> None:
    """Refuse formats that cannot be written here, or not for these tables; their sizes wait for categories that are still to be found."""
    known = all(search.found is not None for search in what.searches)
    check_formats(what.options.formats, written(what.workload.products) if known else ())


def paid_before(book: Ledger, digest: str, output: str) -> Entry | None:
    """The same release or search, paid and stopped before it was published."""
    for entry in book.entries():
        if entry.resumable and entry.output == output and entry.plan_digest == digest and not book.is_running(entry):
            return entry
    return None


def check_searched(searches: Sequence[Mapping[str, Any]], dataset: str) -> None:
    """Refuse categories that were found in another data set, whose ledger paid for them."""
    for search in searches:
        if search["dataset"] != dataset:
            raise InputError(
                f"The categories of {search['attribute']!r} were found in the data set {search['dataset']!r}; "
                f"got a release of {dataset!r}. Give "
                "them as a public list, with categories = { file = ... } and without the search, or say which data set this is."
            )


def _least(privacy: Privacy, book: Ledger) -> Cost:
    """The least that a plan for this budget is charged: all of it, but for a delta (pure noise needs none) and a rho (plans tell)."""
    budget = privacy.budget
    if not isinstance(budget, ApproxDP):
        return SeriesCost(budget)
    return PureCost(budget.epsilon if isinstance(book.privacy.budget, ApproxDP) else min(budget.epsilon, SMALL))


def given_or_kept(source: Any, place: Any, joined: Mapping[str, Any]) -> Any:
    """The data that were given now, or else where they were."""
    found = _adapters.located(place, source)
    said, kept = _adapters.join_facts(found), dict(joined)
    if said and kept and "" in {said["table"], kept["table"]}:  # a frame has no name
        kept["table"] = said["table"]
    if found is not None and said != kept:
        raise InputError(
            "A release is finished with what it was paid for: the same second table, joined on the same columns, and public or not as it "
            "was then. Give source=leastnoise.Joined(...) as for the release, or no second table if there was none."
        )
    return found


def read_plan(path: Path, what: Spec) -> Plan:
    """Read a plan that was made from a spec."""
    advice = "Make it with `leastnoise plan SPEC --out plan.json`."
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"There is no plan at {path}. {advice}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The plan {path} cannot be read: {type(error).__name__}. {advice}") from None
    made = Plan.from_json(text)
    if other := other_parts(made, what):
        raise InputError(
            f"The plan {path} is of another spec: its {', '.join(other)} differ. Plan again, or give the spec that it was made from."
        )
    return made


def other_parts(made: Plan, what: Spec) -> list[str]:
    """The parts of a spec that a plan was not made for."""
    asked = what.planned_privacy
    wanted = smallest(asked)
    same = made.privacy.within(wanted.budget) == wanted and type(made.privacy.budget) is type(wanted.budget)
    same = same and stated(asked) in (None, made.privacy)
    pairs: dict[str, tuple[object, object]] = {"[privacy]": (same, True), "[domain]": (made.domain, what.domain)}
    of_plan, of_spec = ((one.to_json(), one.statistics) for one in (made.workload, what.workload))
    pairs["[[workload]]"] = (of_plan, of_spec)
    pairs["[series]"] = (series_of(made), what.series)
    return [name for name, (planned, said) in pairs.items() if planned != said]
