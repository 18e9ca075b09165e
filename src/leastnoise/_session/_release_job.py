"""From what was drawn to a published release or search, also after a run was stopped, without paying again; and releases read back."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leastnoise._estimation import Outcome
from leastnoise._frames import pluralize
from leastnoise._interruption import note_run
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._plan import (
    CategoryPlan,
    Plan,
    SeriesDetails,
    guard_share,
    is_category_plan,
    measurements_from_value,
    read,
    read_json,
    values_from_json,
    versions,
)
from leastnoise._progress import RowProgress
from leastnoise._release import (
    EXPORTS,
    Draft,
    FoundCategories,
    Manifest,
    Options,
    Publication,
    Release,
    build_release,
    check_target,
    fill_draft,
    holds_categories,
    open_draft,
    read_categories,
    read_categories_manifest,
    read_manifest,
    sha256,
    write_categories,
)
from leastnoise._session._guard import guard_measurements
from leastnoise._session._payments import IN_MEMORY, given_or_kept, is_too_late, paying
from leastnoise._trusted import reading
from leastnoise._trusted.accounting import Cost, Privacy, SeriesCost
from leastnoise._trusted.check import InputError, LeastNoiseError, LedgerError, one_of
from leastnoise._trusted.kernel import (
    Entry,
    KeySearch,
    Ledger,
    NeedsData,
    Receipt,
    ReleaseContract,
    Series,
    measured_tables,
)
from leastnoise._trusted.measurements import Observation
from leastnoise._trusted.measurements import cost as guard_cost

if TYPE_CHECKING:
    from leastnoise._trusted.table import Table


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What the ledger keeps of a release or a search beside its plan, so that another process can finish it.

    Attributes:
        options: of the release.
        address: where the data are, from `reading.source_location`.
        guard: what the guard counted, from `guarded`; empty without one.
        joined: what the receipt says of a second table; empty without one.
        library: of the data frames that the data came in, for the answers; the ledger does not keep
            it.
    """

    options: Options = field(default_factory=Options)
    address: Any = None
    guard: Mapping[str, Any] = field(default_factory=dict)
    joined: Mapping[str, Any] = field(default_factory=dict)
    library: str | None = None

    def to_json(self) -> str:
        """Return the text that the ledger keeps."""
        version = versions()["leastnoise"]
        beside = {"source": self.address, "guard": dict(self.guard), "joined": dict(self.joined)}
        return json.dumps({"version": version, "options": self.options.to_json(), **beside})

    @classmethod
    def from_json(cls, text: str) -> "ReleaseRequest":
        """Read what `to_json` wrote."""
        try:
            value = json.loads(text)
            return cls(
                Options(**value["options"]),
                value["source"],
                dict(value["guard"]),
                dict(value.get("joined", {})),
            )
        except (ValueError, KeyError, TypeError, AttributeError, InputError):
            message = "What the ledger holds of this release's options is unreadable. Restore the ledger from a copy."
            raise LedgerError(message) from None


@dataclass(frozen=True, slots=True)
class ReleaseJob:
    """What is paid for and carried out: a release, or a search for categories.

    Attributes:
        plan: of it.
        terms: what the series may do, and costs.
        draw: takes the steps of the plan with a series, and returns an `Outcome`, or the keys that
            were found.
        room: bytes that the ledger and its journal need for what is drawn, from public sizes.
        description: one line for people, for the ledger.
    """

    plan: Plan | CategoryPlan
    terms: ReleaseContract
    draw: Callable[[Series], Any]
    room: int
    description: str


@dataclass(frozen=True, slots=True)
class FinishedRelease:
    """A release, or the categories of a search, paid before and finished now; ``out`` is None if it was not to be written."""

    entry: Entry
    release: Any
    out: Path | None


def job_of_plan(plan: Plan | CategoryPlan) -> ReleaseJob:
    """Return what a plan asks for; raise the errors of a plan that this version cannot carry out."""
    if isinstance(plan, CategoryPlan):
        terms = ReleaseContract(
            domain=plan.domain,
            privacy=plan.privacy,
            attributes=(plan.attribute,),
            text=plan.to_json(),
        )
        search = KeySearch(attribute=plan.attribute, rule=plan.rule, most=plan.kind.most)
        room = 2**20 + 500 * plan.kind.most  # for categories of 30 characters
        return ReleaseJob(
            plan,
            terms,
            lambda series: series.find(search),
            room,
            f"categories of {plan.attribute!r}",
        )
    described = f"{pluralize(len(plan.workload.products), 'table')}, {plan.strategy}"
    return ReleaseJob(
        plan,
        release_contract(plan),
        mechanism_of(plan).prepare(plan),
        ledger_bytes_needed(plan),
        described,
    )


def ledger_bytes_needed(plan: Plan) -> int:
    """Return how many bytes the ledger and its journal need for the measurements of a plan."""
    numbers = (
        2**16
        if plan.measurements is None
        else sum(block.rows for block in plan.measurements.blocks)
    )
    return 2**20 + 3 * len(plan.to_json()) + 36 * numbers


def read_table(
    plan: Plan | CategoryPlan,
    source: Any,
    progress: RowProgress | None = None,
    *,
    usage: bool = False,
) -> "Table":
    """Encode the rows, or count the keys, that a plan is about; ``usage`` also counts the rows used and not used."""
    unit = plan.privacy
    if isinstance(plan, CategoryPlan):
        return reading.read_keys(
            source,
            plan.domain,
            plan.attribute,
            unit_column=unit.unit_column,
            max_rows=unit.max_rows,
            unit_reading=unit.unit_reading,
            progress=progress,
        )
    attributes, measures = plan.used()
    return reading.read(
        source,
        plan.domain,
        wanted=reading.ReadRequest(
            attributes=attributes,
            measures=measures,
            tables=_tables(plan),
            usage=usage,
            published=tuple({product.attributes: None for product in plan.workload}),
        ),
        unit_column=unit.unit_column,
        max_rows=unit.max_rows,
        max_per_cell=unit.max_per_cell,
        unit_reading=unit.unit_reading,
        progress=progress,
    )


def _tables(plan: Plan) -> dict[str | None, list[tuple[str, ...]]] | None:
    """Return the attributes of the marginals that are measured, by measure; None where the plan does not name all of them."""
    if plan.measurements is None or any(
        block.limits is not None for block in plan.measurements.blocks
    ):
        return None
    series = plan.details.series
    if (
        series is not None and series.late == "arrival"
    ):  # one table, so that a row arrives in one period in all
        return {None: [plan.measurements.columns()[0]]}
    tables: dict[str | None, list[tuple[str, ...]]] = {}
    for measure, attributes in measured_tables(plan.measurements):
        tables.setdefault(measure, []).append(attributes)
    return tables


def publish(
    plan: Plan | CategoryPlan,
    asked: ReleaseRequest,
    drawn: Any,
    folder: Draft | None,
    receipt: Mapping[str, Any],
) -> Any:
    """Make a release of an outcome, or found categories of keys, and write it.

    Args:
        plan: a search's; a release takes that of its outcome.
        asked: the options, and what the receipt says besides.
        drawn: what `Work.draw` returned.
        folder: where to write; None to write nothing.
        receipt: from `receipt_facts`; empty if nothing was paid.
    """
    guard = {f"guard_{name}": value for name, value in asked.guard.items()}
    facts = {**receipt, **guard, **({"joined": dict(asked.joined)} if asked.joined else {})}
    made: Any
    write: Callable[[Any, Draft], None]
    if isinstance(plan, CategoryPlan):
        units = tuple(drawn.units.tolist())
        made = FoundCategories(
            plan=plan, texts=drawn.keys, units=units, private=bool(receipt), receipt=facts
        )
        write = write_categories
    else:
        made, write = build_release(drawn, asked.options, facts, asked.library), fill_draft
    if folder is not None:
        write(made, folder)
        folder.publish()
    return made


def receipt_facts(book: Ledger, receipt: Receipt) -> dict[str, Any]:
    """Return what a manifest says of a payment."""
    facts = {
        "dataset": receipt.dataset,
        "ledger": book.path.name,
        "ledger_id": book.id,
        "charge": str(receipt.charge),
    }
    return {"id": receipt.id, **facts, "number": receipt.number, "head": receipt.head}


def finish_paid(
    book: Ledger,
    entry: Entry,
    source: Any = None,
    *,
    options: Options | None = None,
    out: Any = None,
    progress: RowProgress | None = None,
) -> FinishedRelease:
    """Finish one release or search that was paid; the data are read only if something is left to draw."""
    pending = book.pending(entry)
    with _of_its_version(book, entry, pending.options):
        asked = ReleaseRequest.from_json(pending.options)
        work = job_of_plan(
            (CategoryPlan if is_category_plan(pending.plan) else Plan).from_json(pending.plan)
        )
    data = given_or_kept(source, asked.address, asked.joined)
    if is_too_late(book, entry):
        book.check_period_of(entry)  # raises; the kernel would refuse it too
    target = (
        None if out is None and entry.output == IN_MEMORY else check_target(out or entry.output)
    )
    with (
        nullcontext() if target is None else open_draft(target) as folder,
        paying(book, work.room) as process,
    ):
        receipt, drawn = book.take_over(entry, process), None
        with suppress(NeedsData):
            drawn = work.draw(Series.resumed(work.terms, None, book, receipt))
        if drawn is None:
            if data is None:
                raise InputError(
                    "What was paid has steps left to draw, and its data were not in a file. Give "
                    "them as source."
                )
            table = read_table(work.plan, data, progress)
            drawn = work.draw(Series.resumed(work.terms, table, book, receipt))
        asked = asked if options is None else replace(asked, options=options)
        made = publish(work.plan, asked, drawn, folder, receipt_facts(book, receipt))
        book.seal(receipt)
        return FinishedRelease(entry, made, target)


@contextmanager
def _of_its_version(book: Ledger, entry: Entry, options: str) -> Iterator[None]:
    """Tell what another version of the program recorded, and can finish, from what is damaged."""
    try:
        yield
    except LeastNoiseError as error:
        running, paid_with = versions()["leastnoise"], ""
        with suppress(ValueError, KeyError, TypeError):
            paid_with = str(json.loads(options)["version"])
        if running == paid_with:
            if not isinstance(error, InputError):
                raise
            # what a plan is refused for before payment says that nothing was spent, and to plan
            # again
            raise LedgerError(
                f"Release {entry.number} in the ledger {book.path} was paid, and this program "
                "cannot carry out what it recorded: "
                f"{str(error).split('. ')[0].rstrip('.')}. Finish it with the program that paid "
                "for it; nothing is paid again."
            ) from None
        by = f"leastnoise {paid_with}" if paid_with else "an earlier leastnoise"
        raise LedgerError(
            f"Release {entry.number} in the ledger {book.path} was paid with {by}, and leastnoise "
            f"{running} cannot read what it recorded. "
            "Finish it with that version; nothing is paid again."
        ) from None


def read_release(directory: str | os.PathLike[str]) -> Release:
    """Read a release that `write` made; its answers are computed again from the measurements.

    Args:
        directory: the release.

    Raises:
        InputError: no release is there, one of another format, or its measurements are not those of
            its manifest.

    >>> ln.read_release("/nowhere-at-all/release")
    Traceback (most recent call last):
    ...
    leastnoise._trusted.check._errors.InputError: There is no release in ...
    """
    return _read_published(Path(directory).expanduser())[0]


def _read_published(path: Path) -> tuple[Release, Manifest]:
    """Read a release and its manifest, and check that its measurements are those that it lists."""
    manifest = read_manifest(path)
    plan = _listed_text(path, manifest, "measurements/plan.json")
    observation = _listed_text(path, manifest, "measurements/observation.json")
    receipt = {name: entry for name, entry in (manifest.receipt or {}).items() if name != "id"}
    return build_release(outcome_from_json(plan, observation), manifest.options, receipt), manifest


def _listed_text(path: Path, manifest: Manifest, name: str) -> str:
    """Return the text of a file of a release, which must have the digest in its manifest."""
    try:
        is_listed = sha256(path / name) == manifest.digests.get(name)
        text = (path / name).read_text(encoding="utf-8") if is_listed else ""
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"The release in {str(path)!r} lacks {name}, or it cannot be read. Use an intact copy."
        ) from None
    if not is_listed:
        raise InputError(
            f"The release in {str(path)!r} was changed: {name} is not the file that its "
            "manifest describes. Use an intact copy."
        )
    return text


def outcome_from_json(plan: str, observation: str) -> Outcome:
    """Read the texts of the plan and the observation that a release keeps."""
    made = Plan.from_json(plan)
    return read(
        lambda: _outcome(made, read_json(observation)),
        "observation",
        "Use an intact copy of the release.",
    )


def _outcome(plan: Plan, value: Mapping[str, Any]) -> Outcome:
    if value["plan_digest"] != plan.digest():
        raise InputError(
            "This observation belongs to another plan. Read it with the plan that lies beside it."
        )
    measurements, facts = plan.measurements, value.get("outcome", {})
    if measurements is None:
        measurements = measurements_from_value(value["measurements"])
    if measurements is None or measurements.domain != plan.domain:
        raise InputError(
            "What was measured is of another domain than the plan. Use an intact copy of the "
            "release."
        )
    values = values_from_json(measurements, value["values"])
    finding = mechanism_of(plan).finding(facts)
    outcome = Outcome(
        plan, Observation(measurements, values, value["receipt"], bool(value["private"])), finding
    )
    outcome.estimator()  # refuses now what is not of such a finding
    return outcome


def export(directory: str | os.PathLike[str], form: str) -> str:
    """A release that was written, as a text for other people or programs.

    Args:
        directory: the release.
        form: ``review`` (Markdown after NIST SP 800-226; what only people can answer is marked),
            ``registry`` (YAML for the registry of deployments of differential privacy), ``mbi``
            (JSON with the measurements as mbi takes them) or ``notebook`` (for Jupyter; Quarto
            renders it too).

    Raises:
        InputError: another form, no release, or one without what the form needs.

    Guarantees: post-processing of what was published; it reads no data and costs nothing. The
        privacy loss that it states is that of all that was published, a guard's share included.

    >>> ln.export("/nowhere-at-all/release", "revue")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: the form of an export must be one of 'review', 'registry', 'mbi', 'notebook'; ...
    """
    chosen = EXPORTS[one_of("the form of an export", form, tuple(EXPORTS))]
    path = Path(directory).expanduser()
    release, manifest = _read_published(path)
    return chosen(Publication(release, manifest, str(path)))


@dataclass(frozen=True, slots=True)
class _Spent:
    """What a release or a search for categories in a directory has spent, for another ledger."""

    private: bool
    privacy: Privacy
    cost: Cost
    plan_digest: str
    written: date
    receipt: Mapping[str, Any]


def _cost_of_series(series: SeriesDetails, directory: Path) -> Cost:
    """Return what all periods of a series cost, from the plan of one of its releases."""
    if series.cost is None:
        raise InputError(
            f"The release in {str(directory)!r} is damaged: its plan does not say what its series "
            "cost. Use an intact copy."
        )
    return series.cost


def enter_release(ledger: Ledger, release: str | Path, note: str = "") -> Entry:
    """Enter what a release, or a search for categories, cost into a ledger that does not know it."""
    directory = Path(release).absolute()
    spent = (
        _spent_on_categories(directory)
        if holds_categories(directory)
        else _spent_on_release(Path(release))
    )
    receipt = spent.receipt
    if not spent.private or not receipt.get("id"):
        raise InputError(
            f"The release in {str(directory)!r} was paid by no ledger, because it is not private. "
            "There is nothing to enter."
        )
    paid_from = f"paid from {receipt.get('ledger')}, release {receipt.get('number')}"
    known = {entry.id for entry in ledger.entries()}
    if receipt["id"] not in known:
        note_run(ledger.path.absolute(), receipt["id"])
    share, of_guard = guard_share(receipt.get("guard_share")), f"{receipt['id']}-guard"
    has_own_payment = not known & {receipt["id"], of_guard}
    if share is not None and has_own_payment:
        guard = guard_measurements(spent.privacy, share)
        ledger.add_spent(
            guard.privacy,
            guard_cost(guard),
            receipt=of_guard,
            output=str(directory),
            note=f"its guard, {paid_from}",
            on=spent.written,
        )
    return ledger.add_spent(
        spent.privacy,
        spent.cost,
        receipt=receipt["id"],
        output=str(directory),
        plan_digest=spent.plan_digest,
        note=note or paid_from,
        on=spent.written,
    )


def _spent_on_categories(directory: Path) -> _Spent:
    """Return what a search for categories has spent: the whole of its budget."""
    categories = read_categories(directory)
    plan = categories.plan
    return _Spent(
        private=categories.private,
        privacy=plan.privacy,
        cost=SeriesCost(plan.privacy.budget),
        plan_digest=plan.digest(),
        written=read_categories_manifest(directory).written,
        receipt=categories.receipt,
    )


def _spent_on_release(directory: Path) -> _Spent:
    """Return what a release has spent; the first one of a series is that of all that it pays for."""
    release, manifest = _read_published(directory)
    plan, series = release.plan, release.plan.details.series
    return _Spent(
        private=release.observation.private,
        privacy=plan.privacy,
        cost=plan.cost() if series is None else _cost_of_series(series, directory),
        plan_digest=release.plan_digest,
        written=manifest.written,
        receipt=manifest.receipt or {},
    )
