"""Carry out and publish paid plans, finish stopped runs, and read releases."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from leastnoise._charts import missing_charts_notice
from leastnoise._domain import UnitTotal
from leastnoise._estimation import Outcome
from leastnoise._frames import pluralize
from leastnoise._interruption import note_run
from leastnoise._log import LOGGER
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._pages import list_dropped_rows
from leastnoise._plan import (
    BoundsPlan,
    CategoryPlan,
    LinearPlan,
    Plan,
    SearchPlan,
    SeriesDetails,
    SeriesPlan,
    checked_guard_share,
    is_search_plan,
    measurements_from_value,
    parse_or_refuse,
    read_json,
    read_search_plan,
    values_from_json,
    versions,
)
from leastnoise._progress import RowProgress
from leastnoise._publication import (
    EXPORTS,
    DraftDirectory,
    FoundBounds,
    FoundCategories,
    Manifest,
    Publication,
    check_manifest,
    check_table_facts,
    check_target,
    fill_draft,
    holds_bounds,
    holds_categories,
    open_optional_draft,
    read_bounds,
    read_bounds_manifest,
    read_categories,
    read_categories_manifest,
    read_manifest,
    sha256,
    write_bounds,
    write_categories,
)
from leastnoise._release import (
    NO_RECEIPT,
    REQUIRED,
    Options,
    Payment,
    ReceiptFacts,
    Release,
    build_release,
    read_record,
    write_record,
)
from leastnoise._session._guard_counts import (
    guard_measurements,
    optional_attributes,
    unit_total_measures,
)
from leastnoise._session._payments import IN_MEMORY, is_expired, locate_data, payment_run
from leastnoise._texts import has_text
from leastnoise._trusted import reading
from leastnoise._trusted.accounting import Cost, Privacy, SeriesCost
from leastnoise._trusted.check import InputError, LeastNoiseError, LedgerError, one_of
from leastnoise._trusted.kernel import (
    Entry,
    KeySearch,
    Ledger,
    NeedsData,
    QuantileSelection,
    Receipt,
    ReleaseContract,
    Series,
    required_table_keys,
)
from leastnoise._trusted.linop import SignedArray
from leastnoise._trusted.measurements import Observation
from leastnoise._trusted.measurements import cost as guard_cost

if TYPE_CHECKING:
    from leastnoise._trusted.table import RowAllowance, Table


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """Options, data location and receipt of a release, as a ledger records them.

    Another process can finish the release with this record.

    Attributes:
        options: the options of the release.
        source: the location of the data, from `reading.source_location`.
        receipt: the receipt of the release. The facts of the payment are added to the receipt when
            all steps are drawn.
        library: the data frame library of the data, in which answers are returned. The library is
            not recorded in the ledger.
    """

    options: Options = field(default_factory=Options)
    source: Any = field(default=None, metadata=REQUIRED)
    receipt: ReceiptFacts = NO_RECEIPT
    library: str | None = None

    def to_text(self) -> str:
        """Return the record as JSON text for the ledger."""
        version = versions()["leastnoise"]
        return json.dumps({"version": version, **write_record(replace(self, library=None))})

    @classmethod
    def from_text(cls, text: str) -> "ReleaseRequest":
        """Parse a record from the JSON text that `to_text` returned."""
        try:
            return read_record(cls, json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError):
            message = (
                "The ledger's record of this release's options is unreadable. "
                "Restore the ledger from a copy."
            )
            raise LedgerError(message) from None

    def with_payment(self, ledger: Ledger, receipt: Receipt) -> "ReleaseRequest":
        """Return a copy with the facts of the payment, after all steps are drawn."""
        payment = Payment(
            dataset=receipt.dataset,
            ledger=ledger.path.name,
            ledger_id=ledger.id,
            charge=str(receipt.charge),
            number=receipt.number,
            head=receipt.head,
            steps=ledger.count_recorded_steps(receipt),
        )
        return replace(self, receipt=replace(self.receipt, id=receipt.id, payment=payment))


ReleaseResult: TypeAlias = Release | FoundCategories | FoundBounds
"""The result of carrying out a plan or a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseJob:
    """A release or a search that can be paid for and carried out.

    Attributes:
        plan: the plan of the release or the search.
        contract: the steps that the series may take with private rows, and their cost.
        draw: a function that carries out the steps of the plan with a series. The function returns
            an `Outcome`; for a search, it returns the keys or cells that were found.
        bytes_needed: the disk space that the ledger and its journal need for the outcome, computed
            from public sizes.
        description: one line for readers of the ledger.
    """

    plan: Plan | SearchPlan
    contract: ReleaseContract
    draw: Callable[[Series], Any]
    bytes_needed: int
    description: str


@dataclass(frozen=True, slots=True)
class FinishedRelease:
    """A release, or the result of a search, that was finished after a stop.

    ``out`` is its directory; None if it is only in memory.
    """

    entry: Entry
    release: Any
    out: Path | None


def build_release_job(plan: Plan | SearchPlan) -> ReleaseJob:
    """Return the job that carries out a plan or a search."""
    if isinstance(plan, BoundsPlan):
        return _bounds_search_job(plan)
    if isinstance(plan, CategoryPlan):
        contract = ReleaseContract(
            domain=plan.domain,
            privacy=plan.privacy,
            attributes=(plan.attribute,),
            plan_text=plan.to_json(),
        )
        search = KeySearch(attribute=plan.attribute, rule=plan.rule, most=plan.kind.most)
        room = 2**20 + 500 * plan.kind.most  # for categories of 30 characters
        return ReleaseJob(
            plan=plan,
            contract=contract,
            draw=lambda series: series.find(search),
            bytes_needed=room,
            description=f"categories of {plan.attribute!r}",
        )
    description = f"{pluralize(len(plan.workload.products), 'table')}, {plan.strategy}"
    return ReleaseJob(
        plan=plan,
        contract=release_contract(plan),
        draw=mechanism_of(plan).prepare(plan),
        bytes_needed=ledger_bytes_needed(plan),
        description=description,
    )


def check_report_texts(plan: Plan) -> None:
    """Raise InputError if a plan's mechanism names a text that no catalogue has.

    The report is written after the payment, so call this function before it. The function checks
    the texts that `text_keys` of each finding lists.
    """
    keys = list(chain.from_iterable(finding.text_keys() for finding in mechanism_of(plan).findings))
    missing = [key for key in dict.fromkeys(keys) if not has_text(key)]
    if missing:
        raise InputError(
            f"The report on a release with {plan.strategy} needs the texts {', '.join(missing)}, "
            "and the catalogues of this installation do not have them. Add them to a template "
            "_texts/locales/*.pot and its translations, or choose another strategy. Nothing was "
            "spent."
        )


def _bounds_search_job(plan: BoundsPlan) -> ReleaseJob:
    """Return the job of a search for bounds, each of which is a private choice."""
    contract = ReleaseContract(
        domain=plan.domain,
        privacy=plan.privacy,
        attributes=(plan.attribute,),
        plan_text=plan.to_json(),
    )
    selections = [
        QuantileSelection(
            attribute=plan.attribute, share=share, cells=plan.kind.size, epsilon=plan.epsilon
        )
        for share in plan.quantiles
    ]
    for selection in selections:
        selection.scale(plan.privacy.distance)  # refuses inexact numbers before the payment

    def choose_bounds(series: Series) -> list[int]:
        """Choose a cell for each quantile privately; return the cells' numbers."""
        return [int(series.choose_quantile_cells(selection)[0]) for selection in selections]

    return ReleaseJob(
        plan=plan,
        contract=contract,
        draw=choose_bounds,
        bytes_needed=2**20,
        description=f"bounds of {plan.attribute!r}",
    )


def ledger_bytes_needed(plan: Plan) -> int:
    """Return the bytes of disk space that ledger and journal need for a plan."""
    numbers = 2**16
    if isinstance(plan, LinearPlan):
        numbers = sum(block.rows for block in plan.measurements.blocks)
    return 2**20 + 3 * len(plan.to_json()) + 36 * numbers


def read_table(
    plan: Plan | SearchPlan,
    source: Any,
    progress: RowProgress | None = None,
    *,
    with_usage: bool = False,
    allowance: "RowAllowance | None" = None,
    period_files: reading.PeriodFiles | None = None,
) -> "Table":
    """Return the private table that a plan or a search needs.

    If ``with_usage`` is True, the used and the unused rows are counted too. For a series,
    ``allowance`` states how many more rows each unit may use, and ``period_files`` states which
    files have to be read.
    """
    _log_columns(plan, source)
    if isinstance(plan, CategoryPlan):
        return _read_categories_table(plan, source, progress)
    if isinstance(plan, BoundsPlan):
        return _read_bounds_table(plan, source, progress)
    if plan.details.counts_unit_sizes:
        if with_usage:
            raise InputError(
                "A release that counts units by their number of rows cannot have a guard: it uses "
                "every row, so a guard has nothing to check. Leave out the guard; nothing was "
                "spent."
            )
        (attribute,) = plan.domain.names
        return _read_unit_sizes(plan, attribute, source, progress)
    unit = plan.privacy
    attributes, measures = plan.used()
    return reading.read(
        source,
        plan.domain,
        read_request=reading.ReadRequest(
            attributes=attributes,
            measures=measures,
            tables=_measured_marginals(plan),
            usage=with_usage,
            published=tuple({product.attributes: None for product in plan.workload}),
        ),
        unit_column=unit.unit_column,
        max_rows=unit.max_rows,
        max_per_cell=unit.max_per_cell,
        unit_reading=unit.unit_reading,
        allowance=allowance,
        period_files=period_files,
        progress=progress,
    )


def _read_categories_table(
    plan: CategoryPlan, source: Any, progress: RowProgress | None
) -> "Table":
    """Read the private keys that a search chooses from."""
    unit = plan.privacy
    return reading.read_keys(
        source,
        plan.domain,
        plan.attribute,
        unit_column=unit.unit_column,
        max_rows=unit.max_rows,
        unit_reading=unit.unit_reading,
        progress=progress,
    )


def _read_bounds_table(plan: BoundsPlan, source: Any, progress: RowProgress | None) -> "Table":
    """Read the private values or unit sizes for a search for bounds."""
    if plan.bounds_row_counts:
        return _read_unit_sizes(plan, plan.attribute, source, progress)
    unit = plan.privacy
    return reading.read(
        source,
        plan.domain,
        unit_column=unit.unit_column,
        max_rows=unit.max_rows,
        unit_reading=unit.unit_reading,
        progress=progress,
    )


def _read_unit_sizes(
    plan: Plan | BoundsPlan, attribute: str, source: Any, progress: RowProgress | None
) -> "Table":
    """Read a private table with one row per unit: the unit's number of rows."""
    unit = plan.privacy
    return reading.read_unit_sizes(
        source,
        plan.domain,
        attribute,
        unit_column=str(unit.unit_column),
        unit_reading=unit.unit_reading,
        progress=progress,
    )


def _log_columns(plan: Plan | SearchPlan, source: Any) -> None:
    """Log which columns are read, and which rows the tables leave out."""
    name = reading.dataset_name(source) or "the data"
    if isinstance(plan, (CategoryPlan, BoundsPlan)):
        LOGGER.info("reading %s: %s", name, plan.attribute)
        return
    attributes, measures = plan.used()
    LOGGER.info("reading %s: %s", name, ", ".join([*attributes, *measures]))
    for sentence in list_dropped_rows(plan):
        LOGGER.info("left out: %s", sentence)


def _measured_marginals(plan: Plan) -> dict[str | None, list[tuple[str, ...]]] | None:
    """Return the measured marginals of each measure; None if not yet known."""
    if not isinstance(plan, LinearPlan) or any(
        block.limits is not None for block in plan.measurements.blocks
    ):
        return None
    if isinstance(plan, SeriesPlan) and plan.series.late == "arrival":
        # There is a single table, so a row arrives in the same period everywhere.
        return {None: [plan.measurements.columns()[0]]}
    tables: dict[str | None, list[tuple[str, ...]]] = {}
    for measure, attributes in required_table_keys(plan.measurements):
        tables.setdefault(measure, []).append(attributes)
    return tables


def publish(
    plan: Plan | SearchPlan,
    request: ReleaseRequest,
    outcome: Any,
    folder: DraftDirectory | None,
) -> ReleaseResult:
    """Build a release or search result; write it unless ``folder`` is None.

    Args:
        plan: the plan of the release or the search. A release is built with the plan of its
            outcome.
        request: the options and the receipt.
        outcome: the result of `ReleaseJob.draw`.
        folder: the directory to write; None to write nothing.
    """
    receipt = request.receipt
    private = receipt.payment is not None
    result: Any
    write: Callable[[Any, DraftDirectory], None]
    if isinstance(plan, CategoryPlan):
        units = tuple(outcome.units.tolist())
        result = FoundCategories(
            plan=plan, texts=outcome.keys, units=units, private=private, receipt=receipt
        )
        write = write_categories
    elif isinstance(plan, BoundsPlan):
        low, high = plan.bounds(outcome)
        result = FoundBounds(plan=plan, low=low, high=high, private=private, receipt=receipt)
        write = write_bounds
    else:
        result = build_release(outcome, request.options, receipt, request.library)
        write = fill_draft
    if folder is not None:
        write(result, folder)
        folder.publish()
        LOGGER.info("wrote %s", folder.target)
        chart_notice = missing_charts_notice()
        if chart_notice and write is fill_draft:
            LOGGER.warning("%s", chart_notice)
    return result


def log_payment(ledger: Ledger, receipt: Receipt) -> None:
    """Log the charge of a release or a series."""
    LOGGER.info("paid %s from %s, release %d", receipt.charge, ledger.path, receipt.number)


def finish_paid(
    ledger: Ledger,
    entry: Entry,
    source: Any = None,
    *,
    options: Options | None = None,
    out: Any = None,
    progress: RowProgress | None = None,
) -> FinishedRelease:
    """Finish a paid release or search, and publish it.

    The data are read only if there is a step that must still be drawn.
    """
    pending = ledger.pending(entry)
    with _explain_unreadable_plan(ledger, entry, pending.options):
        request = ReleaseRequest.from_text(pending.options)
        job = build_release_job(_read_plan_text(pending.plan))
    data = locate_data(source, request.source, request.receipt)
    if is_expired(ledger, entry):
        ledger.check_period_of(entry)  # raises; the kernel would refuse it too
    if out is None and entry.output == IN_MEMORY:
        target = None
    else:
        target = check_target(out or entry.output)
    with (
        open_optional_draft(target) as folder,
        payment_run(ledger, job.bytes_needed) as process,
    ):
        receipt = ledger.take_over(entry, process)
        outcome = None
        with suppress(NeedsData):
            outcome = job.draw(Series.resumed(job.contract, None, ledger, receipt))
        if outcome is None:
            if data is None:
                raise InputError(
                    "The paid release still has steps to draw, and its data did not come from a "
                    "file. Give the data as source."
                )
            table = read_table(job.plan, data, progress)
            outcome = job.draw(Series.resumed(job.contract, table, ledger, receipt))
        if options is not None:
            request = replace(request, options=options)
        result = publish(job.plan, request.with_payment(ledger, receipt), outcome, folder)
        ledger.seal(receipt)
        return FinishedRelease(entry, result, target)


def _read_plan_text(text: str) -> Plan | SearchPlan:
    """Return the plan of a release or a search from its text in a ledger."""
    if is_search_plan(text):
        return read_search_plan(text)
    return Plan.from_json(text)


@contextmanager
def _explain_unreadable_plan(ledger: Ledger, entry: Entry, recorded_options: str) -> Iterator[None]:
    """Replace an error about a recorded plan by an error that names a version.

    This is the version that paid for the release, which can also finish it. If it is the running
    version, the error is raised unchanged.
    """
    try:
        yield
    except LeastNoiseError as error:
        running_version = versions()["leastnoise"]
        paying_version = ""
        with suppress(ValueError, KeyError, TypeError):
            paying_version = str(json.loads(recorded_options)["version"])
        if running_version == paying_version:
            if not isinstance(error, InputError):
                raise
            # Messages for the time before payment say that nothing was spent, and advise to plan
            # again.
            raise LedgerError(
                f"Release {entry.number} in the ledger {ledger.path} was paid, but this program "
                f"cannot carry out the recorded plan: {str(error).split('. ')[0].rstrip('.')}. "
                "Finish the release with the program that paid for it; nothing is paid again."
            ) from None
        if paying_version:
            paying_program = f"leastnoise {paying_version}"
        else:
            paying_program = "an earlier leastnoise"
        raise LedgerError(
            f"Release {entry.number} in the ledger {ledger.path} was paid with "
            f"{paying_program}, but leastnoise {running_version} cannot read the recorded plan. "
            "Finish the release with that version; nothing is paid again."
        ) from None


def read_release(directory: str | os.PathLike[str]) -> Release:
    """Read a published release, and compute its answers from its measurements.

    Args:
        directory: the folder of the release.

    Returns:
        The release, with its answers, standard errors and intervals.

    Raises:
        InputError: the folder has no release; its format is unknown; or its plan and measurements
            do not match its manifest.

    >>> ln.read_release("/nowhere-at-all/release")
    Traceback (most recent call last):
    ...
    leastnoise._trusted.check._errors.InputError: There is no release in ...
    """
    return read_published(Path(directory).expanduser()).release


class PublishedRelease(NamedTuple):
    """A release that was read from its directory, with its manifest."""

    release: Release
    manifest: Manifest


def read_published(directory: Path) -> PublishedRelease:
    """Read a release and its manifest, and check the listed measurements."""
    manifest = read_manifest(directory)
    plan = _read_listed_file(directory, manifest, "measurements/plan.json")
    observation = _read_listed_file(directory, manifest, "measurements/observation.json")
    outcome = outcome_from_json(plan, observation)
    release = build_release(outcome, manifest.options, manifest.receipt or NO_RECEIPT)
    check_manifest(manifest, release)
    return PublishedRelease(release, manifest)


def _read_listed_file(directory: Path, manifest: Manifest, name: str) -> str:
    """Read a file of a release, and check its digest in the manifest."""
    try:
        is_listed = sha256(directory / name) == manifest.digests.get(name)
        if is_listed:
            text = (directory / name).read_text(encoding="utf-8")
        else:
            text = ""
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"The release in {str(directory)!r} lacks {name}, or it cannot be read. "
            "Use an intact copy."
        ) from None
    if not is_listed:
        raise InputError(
            f"The release in {str(directory)!r} was changed: {name} is not the file that its "
            "manifest describes. Use an intact copy."
        )
    return text


def outcome_from_json(plan_text: str, observation_text: str) -> Outcome:
    """Parse an outcome from the JSON texts of its plan and its observation."""
    plan_read = Plan.from_json(plan_text)
    return parse_or_refuse(
        lambda: _outcome_from_value(plan_read, read_json(observation_text)),
        "observation",
        "Use an intact copy of the release.",
    )


def _outcome_from_value(plan: Plan, value: Mapping[str, Any]) -> Outcome:
    """Build the outcome of a plan from its parsed JSON object."""
    if value["plan_digest"] != plan.digest():
        raise InputError(
            "This observation belongs to another plan. Read it with the plan in the same folder."
        )
    facts = value.get("outcome", {})
    if isinstance(plan, LinearPlan):
        measurements = plan.measured()
    else:
        measurements = measurements_from_value(value["measurements"])
    if measurements is None or measurements.domain != plan.domain:
        raise InputError(
            "The measurements and the plan have different domains. Use an intact copy of the "
            "release."
        )
    values = values_from_json(measurements, value["values"])
    if isinstance(plan, LinearPlan):
        _check_earlier_values(plan, values)
    finding = mechanism_of(plan).finding(facts)
    outcome = Outcome(
        plan, Observation(measurements, values, value["receipt"], bool(value["private"])), finding
    )
    outcome.estimator()  # checks the finding, which would otherwise fail later
    return outcome


def _check_earlier_values(plan: LinearPlan, values: Sequence[SignedArray]) -> None:
    """Raise InputError if values of earlier releases differ from the plan's."""
    new_blocks = len(plan.measurements.blocks)
    observation = Observation(plan.measurements, tuple(values[:new_blocks]), "", private=False)
    expected = plan.observed(observation).values if plan.earlier else tuple(values)
    if not all(map(np.array_equal, values, expected)):
        raise InputError(
            "The values of earlier releases in this observation differ from its plan. Use an "
            "intact copy of the release."
        )


def export(directory: str | os.PathLike[str], form: str) -> str:
    """Return a published release as a text in another form.

    Args:
        directory: the folder of the release.
        form: ``review`` (Markdown after NIST SP 800-226, with marks at the questions that only
            people can answer), ``registry`` (YAML for the registry of deployments of differential
            privacy), ``mbi`` (JSON with the measurements in the format of mbi), ``notebook`` (for
            Jupyter; Quarto also renders it), ``csvw`` (metadata of the CSV files after the W3C) or
            ``dcat`` (an entry for a catalogue after DCAT-AP).

    Returns:
        The text of the export.

    Raises:
        InputError: the form is unknown; there is no release; or the release lacks facts that the
            form needs.

    Guarantees: an export is post-processing of the published files; it reads no data and costs
        nothing. An export states the privacy loss of all published results, including the guard.

    >>> ln.export("/nowhere-at-all/release", "revue")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: the form of an export must be one of
    'review', ...; ...
    """
    exporter = EXPORTS[one_of("the form of an export", form, tuple(EXPORTS))]
    path = Path(directory).expanduser()
    release, manifest = read_published(path)
    check_table_facts(manifest, release)
    return exporter(Publication(release, manifest, str(path)))


@dataclass(frozen=True, slots=True)
class _Spending:
    """The amount that a published release or search spent, for another ledger."""

    private: bool
    privacy: Privacy
    cost: Cost
    plan_digest: str
    written: date
    receipt: ReceiptFacts
    columns: int = 0
    totals: Mapping[str, UnitTotal] = field(default_factory=dict)
    is_series: bool = False


def _cost_of_series(series: SeriesDetails, directory: Path) -> Cost:
    """Return the cost of all periods of a series."""
    if series.cost is None:
        raise InputError(
            f"The release in {str(directory)!r} is damaged: its plan does not state the "
            "cost of its series. Use an intact copy."
        )
    return series.cost


def enter_release(ledger: Ledger, release: str | Path, note: str = "") -> Entry:
    """Record the cost of a published release or search in another ledger.

    A series cannot be entered into a budget with periods, because the series continues in later
    periods.
    """
    directory = Path(release).absolute()
    if holds_categories(directory):
        spent = _spending_of_category_search(directory)
    elif holds_bounds(directory):
        spent = _spending_of_bounds_search(directory)
    else:
        spent = _spending_of_release(Path(release))
    if spent.is_series:
        ledger.check_not_periodic()
    receipt = spent.receipt
    payment = receipt.payment
    if not spent.private or payment is None:
        raise InputError(
            f"The release in {str(directory)!r} is not private, so no ledger paid for it. There "
            "is nothing to enter."
        )
    paid_from = f"paid from {payment.ledger}, release {payment.number}"
    ledger_ids = {entry.id for entry in ledger.entries()}
    if receipt.id not in ledger_ids:
        note_run(ledger.path.absolute(), receipt.id)
    share = None if receipt.guard is None else checked_guard_share(receipt.guard.share)
    guard_id = f"{receipt.id}-guard"
    has_own_payment = not ledger_ids & {receipt.id, guard_id}
    if share is not None and has_own_payment:
        guard = guard_measurements(spent.privacy, share, spent.columns, spent.totals)
        ledger.add_spent(
            guard.privacy,
            guard_cost(guard),
            receipt=guard_id,
            output=str(directory),
            note=f"its guard, {paid_from}",
            on=spent.written,
        )
    return ledger.add_spent(
        spent.privacy,
        spent.cost,
        receipt=receipt.id,
        output=str(directory),
        plan_digest=spent.plan_digest,
        note=note or paid_from,
        on=spent.written,
    )


def _spending_of_category_search(directory: Path) -> _Spending:
    """Return the spending of a published search for categories: its whole budget."""
    categories = read_categories(directory)
    plan = categories.plan
    return _Spending(
        private=categories.private,
        privacy=plan.privacy,
        cost=SeriesCost(plan.privacy.budget),
        plan_digest=plan.digest(),
        written=read_categories_manifest(directory).written,
        receipt=categories.receipt,
    )


def _spending_of_bounds_search(directory: Path) -> _Spending:
    """Return the spending of a published search for bounds: its whole budget."""
    bounds = read_bounds(directory)
    return _Spending(
        private=bounds.private,
        privacy=bounds.plan.privacy,
        cost=SeriesCost(bounds.plan.privacy.budget),
        plan_digest=bounds.plan.digest(),
        written=read_bounds_manifest(directory).written,
        receipt=bounds.receipt,
    )


def _spending_of_release(directory: Path) -> _Spending:
    """Return the spending of a published release, or of its whole series."""
    release, manifest = read_published(directory)
    plan = release.plan
    if isinstance(plan, SeriesPlan):
        series = plan.series
    else:
        series = None
    return _Spending(
        private=release.observation.private,
        privacy=plan.privacy,
        cost=plan.cost() if series is None else _cost_of_series(series, directory),
        plan_digest=release.plan_digest,
        written=manifest.written,
        receipt=manifest.receipt or NO_RECEIPT,
        columns=len(optional_attributes(plan)),
        totals=unit_total_measures(plan),
        is_series=series is not None,
    )
