"""Carry out a profile: write its spec, release it, write page and draft.

Every step can be repeated: the same call finishes a profile that was stopped. The release is paid
only once, and the page and the draft are computed from it.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._plan import ROWS_OF_UNIT, Plan
from leastnoise._profile._findings import ProfileFindings, compute_findings
from leastnoise._profile._page import page_file, render_page, size_label
from leastnoise._profile._profile_draft import DRAFT_FILE, draft_text
from leastnoise._profile._request import (
    RELEASE_FOLDER,
    SPEC_FILE,
    UNIT_SIZE_FOLDER,
    ProfilePlan,
    ProfileRequest,
    plan_profile,
)
from leastnoise._profile._unit_sizes import (
    describe_unit_sizes,
    plan_unit_sizes,
    size_attribute,
    unit_size_cells,
)
from leastnoise._progress import RowProgress
from leastnoise._publication import holds_categories, read_categories
from leastnoise._release import Options, Release
from leastnoise._session import (
    CATEGORY_FOLDER,
    DatabaseTable,
    Entry,
    Ledger,
    RunObserver,
    SpecFile,
    SpecRun,
    find_categories,
    ledger_beside,
    open_or_create_ledger_of,
    read_release,
    read_spec,
    release,
    require_release,
    run_spec,
)
from leastnoise._spec import Spec, budget_warnings, plan_category_searches
from leastnoise._texts import LANGUAGES, load_catalogue
from leastnoise._trusted.accounting import SeriesCost
from leastnoise._trusted.check import Exact, InputError, exact_positive

REQUEST_FILE = "request.toml"
"""The spec of a profile before its searches; a stopped profile is recognised by it."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A finished profile: its findings, its release and its files.

    Attributes:
        out: the directory that contains the page, the drafted spec, the spec of the profile and the
            release.
        plan: the tables of the profile.
        findings: the findings about rows and columns.
        run: the release that measured the tables, with its ledger.
    """

    out: Path
    plan: ProfilePlan
    findings: ProfileFindings
    run: SpecRun

    @property
    def release(self) -> Release:
        """The release that contains all noisy counts."""
        return require_release(self.run)

    @property
    def draft(self) -> Path:
        """The path of the drafted spec."""
        return self.out / DRAFT_FILE

    @property
    def page(self) -> Path:
        """The path of the page in English."""
        return self.out / page_file("en")


def profile(
    source: Any,
    *,
    epsilon: Exact,
    out: str | Path,
    delta: Exact | None = None,
    total: Exact | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    ledger: str | Path | None = None,
    seed: int | None = None,
) -> Profile:
    """Take a first look at data without a dictionary, for a small budget.

    Args:
        source: a path to files such as .csv or .parquet, a `DatabaseTable` or a data frame.
        epsilon: the budget of the profile.
        out: the directory to write. If it contains a stopped profile with the same arguments, that
            profile is finished.
        delta: the delta of the budget. With a delta, half of the budget is spent on searches for
            the categories of texts. Without a delta only common codes are counted.
        total: the total epsilon of the data set, for this profile and all later releases. It is
            used if the ledger is created now; the delta grows in proportion. Defaults to the budget
            of the profile.
        unit: ``"row"``, or the column that names a person. Required if a column may name persons.
        max_rows: the largest number of rows of a person that count. If it is None and ``unit`` is a
            column, a histogram of the number of rows per unit determines it. The histogram gets a
            tenth of the tables' budget.
        ledger: the file of the ledger; defaults to a file next to the data.
        seed: a seed for reproducible noise, for tests. Such noise protects nobody, and nothing is
            paid.

    Returns:
        The finished profile, with the paths of its page and drafted spec.

    Raises:
        InputError: an argument cannot be used; nothing was spent.
        BudgetError: the ledger has too little left; nothing was spent.
        LedgerError: the ledger cannot be used; nothing was spent.
        PaidError: an error occurred after the payment. The same call finishes the profile.

    Guarantees: a profile satisfies its epsilon and delta for the unit. The release, and the
        searches before the release, stay within this budget. Page and draft are computed from the
        noisy answers, and cost nothing. Only names and types of columns are read before the
        payment.

    >>> folder = tempfile.TemporaryDirectory()
    >>> people = pd.DataFrame({"age": [20, 30, 30, 50] * 500, "sick": [True, False] * 1000})
    >>> found = ln.profile(people, epsilon=1, out=Path(folder.name, "profile"), unit="row", seed=7)
    >>> round(found.findings.rows.value, -2), found.draft.name
    (2000.0, 'spec.toml')
    >>> folder.cleanup()
    """
    request = ProfileRequest(
        source=Path(source) if isinstance(source, str) else source,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        max_rows=max_rows,
    )
    plan = plan_profile(request, Path(out).expanduser())
    ledger_path = None if ledger is None else Path(ledger)
    return run_profile(plan, ledger=ledger_path, total=total, seed=seed)


def run_profile(
    plan: ProfilePlan,
    *,
    ledger: Path | None = None,
    total: Exact | None = None,
    seed: int | None = None,
    observer: RunObserver | None = None,
) -> Profile:
    """Release the tables of a plan, and write the page and the draft.

    Args:
        plan: the tables of the profile.
        ledger: the file of the ledger; defaults to a file next to the data.
        total: the epsilon of a ledger that is created now; defaults to the budget of the profile.
        seed: a seed for noise that protects nobody.
        observer: receives messages and progress of the run.
    """
    source = plan.request.source
    is_frame = not isinstance(source, (Path, DatabaseTable))
    observer = observer or RunObserver()
    observer.warn(budget_warnings(plan.request.privacy(), None, load_catalogue()))
    factor = _total_as_multiple(plan, total)
    request_text = _seed_note(seed) + plan.spec_text()
    is_begun = _has_this_profile(plan, request_text)
    if seed is None:
        ledger = ledger or _default_ledger(plan)
        opened = _open_ledger(plan, ledger, factor, total)
        if not is_begun:
            privacy = plan.request.privacy()
            opened.check((SeriesCost(privacy.budget), privacy))
    if not is_begun:
        _write_request(plan.folder, request_text)
    if plan.searched_tables:
        plan = plan.with_categories(_find_categories(plan, ledger, seed, observer))
    unit_sizes = None
    if plan.measures_unit_sizes:
        unit_sizes = describe_unit_sizes(_release_unit_sizes(plan, ledger, seed, observer))
        plan = plan.with_max_rows(unit_sizes.max_rows)
    spec = _write_spec(plan, seed)
    run = run_spec(
        spec,
        plan.folder / RELEASE_FOLDER,
        source=source if is_frame else None,
        ledger=ledger,
        seed=seed,
        observer=_TableObserver(observer),
        note="profile",
    )
    finished_release = require_release(run)
    findings = compute_findings(plan, finished_release, unit_sizes)
    for language in LANGUAGES:
        page = render_page(plan, findings, finished_release, load_catalogue(language))
        _replace_file(plan.folder / page_file(language), page)
    draft = plan.folder / DRAFT_FILE
    if not draft.exists():  # the user may have edited it
        _replace_file(draft, draft_text(plan, findings, run.ledger))
    return Profile(out=plan.folder, plan=plan, findings=findings, run=run)


class _TableObserver(RunObserver):
    """Forwards the output of a run, except warnings about its generated spec.

    Args:
        observer: receives the output.
    """

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer

    def warn(self, sentences: Iterable[str]) -> None:
        """Suppress warnings about the weights or errors of tables."""

    def show_settled(self, ledger: Ledger, settled: Iterable[Entry]) -> None:
        """Forward the states of earlier releases."""
        self._observer.show_settled(ledger, settled)

    def show_not_private(self) -> None:
        """Forward the warning that the noise protects nobody."""
        self._observer.show_not_private()

    def planning(self, spec: Spec) -> AbstractContextManager[Callable[[str], None] | None]:
        """Forward the progress of planning."""
        return self._observer.planning(spec)

    def reading(
        self, spec: Spec, data: Any, next_step: str, next_seconds: float = 0.0
    ) -> AbstractContextManager[RowProgress | None]:
        """Forward the progress of reading."""
        return self._observer.reading(spec, data, next_step, next_seconds)


@contextmanager
def measured_spec(plan: ProfilePlan) -> Iterator[SpecFile]:
    """Yield the spec of a profile, read from a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, SPEC_FILE)
        path.write_text(plan.spec_text(), encoding="utf-8")
        yield read_spec(path)


def _seed_note(seed: int | None) -> str:
    """Return the first line for the files of a seeded profile, or ""."""
    if seed is None:
        return ""
    return (
        f"# NOT PRIVATE: the noise of this profile came from the seed {seed}. "
        "Publish nothing from it.\n"
    )


def _has_this_profile(plan: ProfilePlan, request_text: str) -> bool:
    """Return whether the directory contains this profile.

    Raises an error if the directory contains another profile or other files, or cannot be read.

    Args:
        plan: the plan of the profile.
        request_text: the text of the request file of this profile.
    """
    request_path = plan.folder / REQUEST_FILE
    if not plan.folder.exists():
        return False
    try:
        if not request_path.exists():
            if any(plan.folder.iterdir()):
                raise InputError(
                    "The directory of a profile must be new or contain this profile; got "
                    f"{plan.folder}, which has other files. Choose another name."
                )
            return False
        is_same = request_path.read_text(encoding="utf-8") == request_text
    except OSError as error:
        raise _unusable_folder(plan.folder, error) from None
    if not is_same:
        raise InputError(
            f"The directory {plan.folder} has another profile: its {REQUEST_FILE} differs. Choose "
            "another name, or repeat the command of that profile to finish it."
        )
    return True


def _write_request(folder: Path, text: str) -> None:
    """Create the directory of a profile and write the request file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace_file(folder / REQUEST_FILE, text)
    except OSError as error:
        raise _unusable_folder(folder, error) from None


def _unusable_folder(folder: Path, error: OSError) -> InputError:
    """Return the error if a profile's directory cannot be read or written."""
    return InputError(
        f"The directory of a profile must be in a folder that you can write to; got {folder} "
        f"({(error.strerror or 'not possible').lower()}). Choose another place."
    )


def _find_categories(
    plan: ProfilePlan, ledger: Path | None, seed: int | None, observer: RunObserver
) -> dict[str, tuple[str, ...]]:
    """Return the categories of each searched column, paying for new searches."""
    categories_by_column = {}
    with measured_spec(plan) as spec:
        data = spec.data(plan.request.source)
        searches = plan_category_searches(spec.searches, plan.request.privacy())
        for number, table in enumerate(plan.searched_tables, start=1):
            directory = plan.folder / CATEGORY_FOLDER / str(number)
            if seed is None and holds_categories(directory):
                categories_by_column[table.attribute] = _read_paid_categories(directory, ledger)
                continue
            next_step = f"finding the categories of {table.attribute}"
            with observer.reading(spec, data, next_step) as progress:
                categories = find_categories(
                    searches[table.attribute],
                    data,
                    ledger=ledger,
                    out=directory if seed is None else None,
                    seed=seed,
                    progress=progress,
                )
            categories_by_column[table.attribute] = categories.texts
    return categories_by_column


def _read_paid_categories(directory: Path, ledger: Path | None) -> tuple[str, ...]:
    """Read the categories that an earlier run found.

    Raises:
        InputError: the categories were not paid for.
    """
    categories = read_categories(directory)
    if not categories.private or categories.receipt.id not in _list_payment_ids(ledger):
        raise InputError(
            f"The categories in {directory} must have been paid from the ledger {ledger}; they "
            "were not. Choose another directory for this profile."
        )
    return categories.texts


def _list_payment_ids(ledger: Path | None) -> set[str]:
    """Return the ids of all payments in a ledger; none if there is no ledger."""
    if ledger is None:
        return set()
    return {entry.id for entry in Ledger.open(ledger).entries()}


def _release_unit_sizes(
    plan: ProfilePlan, ledger: Path | None, seed: int | None, observer: RunObserver
) -> Release:
    """Return the release of the histogram of unit sizes; pay if it is new.

    Args:
        plan: the plan of the profile, after the searches.
        ledger: the file of the ledger; None if there is a seed.
        seed: a seed for noise that protects nobody; with a seed, nothing is written.
        observer: receives messages and progress of the run.
    """
    size_plan = plan_unit_sizes(plan.unit_size_privacy())
    directory = None
    if seed is None:
        directory = plan.folder / UNIT_SIZE_FOLDER
        if directory.exists():
            return _read_paid_unit_sizes(directory, size_plan, ledger)
    with measured_spec(plan) as spec:
        data = spec.data(plan.request.source)
        with observer.reading(spec, data, "counting units by their rows") as progress:
            return release(
                size_plan,
                data,
                ledger=ledger,
                out=directory,
                options=Options(formats=("csv",), names=_size_names(), labels=_size_labels()),
                seed=seed,
                progress=progress,
                note="profile",
            )


def _size_names() -> dict[str, Any]:
    """Return the display names for the histogram of unit sizes."""
    return {
        "rows": _in_all_languages("name_units"),
        "attributes": {ROWS_OF_UNIT: _in_all_languages("profile_rows_of_unit")},
    }


def _in_all_languages(key: str) -> dict[str, str]:
    """Return the text of a key in each language, by language code."""
    return {language: load_catalogue(language).say(key) for language in LANGUAGES}


def _size_labels() -> dict[str, dict[str, Any]]:
    """Return the display labels of unit sizes, as the option ``labels``."""
    labels = size_attribute().labels
    texts: dict[str, Any] = {}
    for label, (first, last) in zip(labels, unit_size_cells(), strict=True):
        texts[str(label)] = {
            language: size_label(first, last, load_catalogue(language)) for language in LANGUAGES
        }
    return {ROWS_OF_UNIT: texts}


def _read_paid_unit_sizes(directory: Path, size_plan: Plan, ledger: Path | None) -> Release:
    """Read the histogram of an earlier run.

    Raises:
        InputError: the earlier histogram is not the planned histogram.
    """
    earlier = read_release(directory)
    is_same = (
        earlier.plan.details.counts_unit_sizes
        and earlier.plan.workload == size_plan.workload
        and earlier.plan.privacy == size_plan.privacy
    )
    if not is_same or earlier.observation.receipt not in _list_payment_ids(ledger):
        raise InputError(
            f"The counts in {directory} must be the counts of this profile, paid from the ledger "
            f"{ledger}; they are not. Choose another directory for this profile."
        )
    return earlier


def _write_spec(plan: ProfilePlan, seed: int | None) -> SpecFile:
    """Write and return the spec that measures the tables."""
    path = plan.folder / SPEC_FILE
    _replace_file(path, _seed_note(seed) + plan.spec_text())
    return read_spec(path)


def _default_ledger(plan: ProfilePlan) -> Path:
    """Return the default path of the ledger, next to the data or the output."""
    source = plan.request.source
    if isinstance(source, Path):
        return ledger_beside(source)
    if isinstance(source, DatabaseTable):
        return plan.folder.absolute().parent / ledger_beside(source).name
    raise InputError(
        "A profile of a data frame must have a ledger; got none. Give its file, such as "
        "ledger='people.ledger'."
    )


def _total_as_multiple(plan: ProfilePlan, total: Exact | None) -> Fraction:
    """Return the total budget as a multiple of the profile's budget."""
    factor = Fraction(1)
    if total is not None:
        factor = exact_positive("total", total) / exact_positive("epsilon", plan.request.epsilon)
    if factor < 1:
        raise InputError(
            f"The total must be at least the epsilon of the profile, {plan.request.epsilon}; got "
            f"{total}. State the budget of the profile and of all later releases."
        )
    return factor


def _open_ledger(plan: ProfilePlan, path: Path, factor: Fraction, total: Exact | None) -> Ledger:
    """Open the ledger of the data, or create it with the total budget.

    The total budget is the profile's budget times ``factor``. If ``total`` is stated, an existing
    ledger must have this budget.
    """
    privacy = plan.request.privacy(factor)
    folder = plan.folder.absolute().parent
    ledger = open_or_create_ledger_of(plan.request.source, path, privacy, folders=[folder])
    if total is not None and ledger.privacy.budget != privacy.budget:
        raise InputError(
            f"A total is only for a new ledger; {path} has the budget {ledger.privacy.budget}. "
            "Leave the total out, or change the budget with `leastnoise ledger change`."
        )
    return ledger


def _replace_file(path: Path, text: str) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f".{os.getpid()}.part.{path.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
