"""Plan and release a spec file, for the commands and for Python.

`SpecFile` is the spec that `read_spec` returns. Its methods are equivalent to ``leastnoise plan``
and ``leastnoise release``: they use all settings of the spec, such as the guard, the rounding and
the share.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from leastnoise._log import LOGGER
from leastnoise._plan import Plan, SearchPlan, checked_guard_share
from leastnoise._planning import missed_targets, stated_privacy
from leastnoise._progress import RowProgress
from leastnoise._publication import (
    FoundBounds,
    FoundCategories,
    check_target,
    finishing_seconds,
    remove_dead_drafts,
)
from leastnoise._release import Release, check_options, tables_to_write, with_table_ids
from leastnoise._session._guard_counts import guard_warning
from leastnoise._session._payments import (
    affordable_share,
    check_before_planning,
    check_writable,
    new_ledger_privacy,
    reconcile_ledger,
)
from leastnoise._session._release_job import PublishedRelease, read_published
from leastnoise._session._schema_check import ColumnCheck, check_schema
from leastnoise._session._series_publication import (
    PublishedPeriods,
    is_unfinished,
    publish_due_periods,
)
from leastnoise._session._session import find_bounds, find_categories, plan_spec, release
from leastnoise._spec import (
    BoundsSearch,
    CategorySearch,
    Spec,
    differing_parts,
    plan_bounds_searches,
    plan_category_searches,
    plan_warnings,
    spec_warnings,
)
from leastnoise._spec import read_spec as read_spec_content
from leastnoise._trusted.check import InputError, refuse
from leastnoise._trusted.kernel import Entry, Ledger
from leastnoise._trusted.reading import DatabaseTable, ledger_beside

RunStatus = Literal["released", "finished", "already released", "nothing due", "not private"]
_SearchResult = TypeVar("_SearchResult", FoundBounds, FoundCategories)
_NO_CATEGORIES: Mapping[str, FoundCategories] = {}
_NO_BOUNDS: Mapping[str, FoundBounds] = {}
_NNLS = (
    "nnls = true adds answer_nnls, which is biased. Its single cells are closer to the truth. Sums "
    "of cells need not be closer, because the amounts below 0 that are removed from some cells are "
    "subtracted from other cells. The total is fixed. nnls_rmse is simulated and is not a promise. "
    "The unbiased answers remain in the release."
)
_LOCAL = (
    "local_non_negative = true adds answer_local, which is biased: small cells are too large and "
    "large ones too small, by an unknown amount. It has no error bars; the unbiased answers remain "
    "in the release."
)
_TOP_DOWN = (
    "top_down = true adds answer_top_down, which is biased: small cells are too large on average "
    "and large ones too small, by an unknown amount. It has no error bars; the unbiased answers "
    "remain in the release."
)


class RunObserver:
    """Receives the events of a run; by default, it only shows warnings.

    The commands use an observer that prints and shows progress.
    """

    def warn(self, sentences: Iterable[str]) -> None:
        """Show warnings about the spec or the plan."""
        for sentence in sentences:
            LOGGER.warning("%s", sentence)
            warnings.warn(sentence, stacklevel=5)

    def show_settled(self, ledger: Ledger, settled: Iterable[Entry]) -> None:
        """Show the states of earlier releases that were stopped.

        Args:
            ledger: the ledger that paid for them.
            settled: the ledger entries whose states have just been recorded.
        """

    def show_not_private(self) -> None:
        """Show that the noise of a seeded run protects nobody."""

    def show_categories(
        self, search: CategorySearch, categories: FoundCategories, directory: Path | None
    ) -> None:
        """Show the categories that a search found.

        Args:
            search: the search.
            categories: the categories that were found.
            directory: the directory of the result; None for a seeded search.
        """

    def show_bounds(self, search: BoundsSearch, bounds: FoundBounds) -> None:
        """Show the bounds that a search found."""

    def planning(self, spec: Spec) -> AbstractContextManager[Callable[[str], None] | None]:
        """Return a context manager for planning that yields a callback or None.

        The context manager yields a callback that receives the name of each tried strategy, or
        yields None.
        """
        del spec
        return nullcontext()

    def reading(
        self, spec: Spec, data: Any, next_step: str, next_seconds: float = 0.0
    ) -> AbstractContextManager[RowProgress | None]:
        """Return a context manager for reading rows that yields a callback or None.

        Args:
            spec: the spec.
            data: the data of the spec.
            next_step: the name of the step after reading, for the progress line.
            next_seconds: the expected duration of that step in seconds.
        """
        del spec, data, next_step, next_seconds
        return nullcontext()


@dataclass(frozen=True, slots=True)
class SpecRun:
    """The result of releasing a spec: a status, the release and its payment.

    Attributes:
        status: "released"; "finished" if the release was paid for and stopped before; "already
            released" if the directory has the same release; "nothing due" if all past periods of a
            series were published before; "not private" for a seeded run.
        release: the release; for a series its newest period. It is None if no period is published.
        ledger: the ledger that paid; None for a seeded run.
        entry: the entry for this release in the ledger; None for a seeded run.
        is_new_ledger: whether this run created the ledger.
        periods: the result of a run of a series; None for other specs.
        missed_targets: the tables and means whose expected errors exceed their targets.
    """

    status: RunStatus
    release: Release | None
    ledger: Ledger | None = None
    entry: Entry | None = None
    is_new_ledger: bool = False
    periods: PublishedPeriods | None = None
    missed_targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile(Spec):
    r"""A spec that was read from its file; `read_spec` returns one.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.toml")
    ...     _ = file.write_text(
    ...         '[privacy]\nepsilon = "1"\n[domain.sex]\ncategories = ["F", "M"]\n'
    ...         "[[workload]]\nmarginals = { ways = 1 }\n"
    ...     )
    ...     ln.read_spec(file).plan().privacy.budget
    PureDP(epsilon='1')
    """

    path: Path
    statements: Path | None = None

    def plan(self, *, progress: Callable[[str], None] | None = None) -> Plan:
        """Plan the release or the series of this spec without reading data.

        Args:
            progress: a function that receives the name of each tried strategy.

        Returns:
            The plan, for `release`. If there is a guard, the plan has the budget that the guard
            leaves.

        Raises:
            InputError: no strategy applies, or an option of ``[output]`` does not fit the plan.

        Warns:
            UserWarning: a setting is probably a mistake, or an error is large.
        """
        observer = RunObserver()
        check_writable(self)
        observer.warn(warnings_before_planning(self))
        plan = plan_spec(self, progress)
        check_options(plan, self.options)
        observer.warn(warnings_after_planning(self, plan))
        return plan

    def check_schema(self, source: Any = None) -> tuple[ColumnCheck, ...]:
        """Compare the names and types of columns with the source; no row is read.

        Args:
            source: the data; None for ``[source]``.

        Returns:
            For every column that a release reads: its name, its use in the spec, its type in the
            source, and the reason why it does not fit (empty if it fits).

        Raises:
            InputError: the source cannot be opened.
        """
        completed = with_data("check", self, source, None, None)
        return check_schema(completed, completed.data(completed.source))

    def release(
        self,
        out: str | Path | None,
        *,
        source: Any = None,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        share: str | None = None,
        plan: Plan | None = None,
        through: str | None = None,
        seed: int | None = None,
        note: str = "",
    ) -> Release:
        """Release this spec, exactly like ``leastnoise release``.

        Args:
            out: the directory to write; None to write nothing. If the directory already has the
                same release of this ledger, that release is returned, and nothing is read or paid.
            source: the data: a path, a data frame or a `DatabaseTable`; None for ``[source]``.
            ledger: the file of the ledger; None for ``[ledger]``, or else a file next to the data.
            dataset: the name of the data set in the ledger; None for ``[ledger]``.
            share: the share of the ledger's budget that pays; None for ``[ledger]``.
            plan: the result of `plan`; None to plan now.
            through: for a spec with ``[series]``, the last period to publish.
            seed: a seed of reproducible noise, for tests. Such noise protects nobody, and nothing
                is paid.
            note: a text that the ledger records with the payment.

        Returns:
            The release; for a spec with ``[series]``, the newest published period.

        Raises:
            InputError: the spec, the data, the plan or the directory cannot be used; nothing was
                spent.
            BudgetError: the ledger has too little left; nothing was spent.
            LedgerError: the ledger cannot be used; nothing was spent.
            GuardError: the guard stopped the release; only the guard was paid.
            PaidError: an error occurred after the payment; the message states whether the release
                can be finished.

        Warns:
            UserWarning: a setting is probably a mistake, or an error is large.
        """
        run = run_spec(
            self,
            _optional_path(out),
            source=source,
            ledger=_optional_path(ledger),
            dataset=dataset,
            share=share,
            plan=plan,
            through=through,
            seed=seed,
            note=note,
        )
        return require_release(run)


def read_spec(
    path: str | Path,
    categories: Mapping[str, FoundCategories] = _NO_CATEGORIES,
    statements: str | Path | None = None,
    bounds: Mapping[str, FoundBounds] = _NO_BOUNDS,
) -> SpecFile:
    """Read a spec file; relative paths in it are relative to its folder.

    Args:
        path: the TOML file.
        categories: for each attribute, the categories that a search found but did not write to a
            file.
        statements: a file of SQL statements that replace ``[[workload]]``.
        bounds: for each name, the bounds that a search found but did not write to a file.

    Returns:
        The spec, whose methods ``plan`` and ``release`` are equivalent to the commands.

    Raises:
        InputError: a file is missing, is not TOML, or has an entry that is not allowed; the message
            names the entry.

    >>> ln.read_spec("/nowhere.toml")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: There is no spec file at
    /nowhere.toml. Draft one with `leastnoise init FILE.csv`.
    """
    content = read_spec_content(path, categories, statements, bounds)
    settings = {setting.name: getattr(content, setting.name) for setting in fields(Spec)}
    return SpecFile(
        **settings,
        path=Path(path),
        statements=_optional_path(statements),
    )


def _optional_path(path: str | Path | None) -> Path | None:
    """Convert a path to `Path`; return None for None."""
    if path is None:
        return None
    return Path(path)


def warnings_before_planning(spec: Spec) -> tuple[str, ...]:
    """Return warnings about a spec, including warnings about biased answers."""
    biased_columns = []
    if spec.options.nnls:
        biased_columns.append(_NNLS)
    if spec.options.local_non_negative:
        biased_columns.append(_LOCAL)
    if spec.options.top_down:
        biased_columns.append(_TOP_DOWN)
    return (*biased_columns, *spec_warnings(spec))


def warnings_after_planning(spec: Spec, plan: Plan) -> tuple[str, ...]:
    """Return warnings about the plan of a spec and about its guard."""
    weak_guard = guard_warning(plan, spec.options)
    return (*plan_warnings(spec, plan), *([] if weak_guard is None else [weak_guard]))


def run_spec(
    spec: SpecFile,
    out: Path | None,
    *,
    source: Any = None,
    ledger: Path | None = None,
    dataset: str | None = None,
    share: str | None = None,
    plan: Plan | None = None,
    through: str | None = None,
    seed: int | None = None,
    note: str = "",
    observer: RunObserver | None = None,
) -> SpecRun:
    """Publish a release of a spec, or the periods of its series that are due.

    The function takes the arguments of `SpecFile.release`, and an observer of the run.
    """
    observer = observer or RunObserver()
    check_run_arguments(spec, plan, through=through, seed=seed)
    spec = with_data("release", spec, source, dataset, share)
    remove_dead_drafts([spec.path.absolute().parent])
    if seed is not None:
        return _run_seeded(spec, out, plan, seed, observer)
    ledger_path = ledger or choose_ledger(spec)
    if spec.series is not None:
        return _run_series(spec, out, ledger_path, plan, through, note, observer)
    earlier_ids = settle_earlier_releases(ledger_path, observer)
    folder = Path.cwd()
    if out is not None:
        published = find_same_release(spec, out, ledger_path)
        if published is not None:
            return published
        folder = check_target(out).parent
        _refuse_directory_of_search(spec, out)
    check_before_planning(ledger_path, spec, folder)
    observer.warn(warnings_before_planning(spec))
    is_new_ledger = not ledger_path.exists()
    spec = pay_for_searches(spec, ledger_path, observer)
    if plan is None:
        plan = _plan_within_ledger(spec, ledger_path, observer)
    _check_plan(spec, plan, observer)
    finished_release = _release_plan(
        spec, plan, out, observer, note=note, payer=_open_payer(spec, ledger_path)
    )
    opened_ledger = Ledger.open(ledger_path)
    status: RunStatus = "released"
    if finished_release.observation.receipt in earlier_ids:
        status = "finished"
    return SpecRun(
        status,
        finished_release,
        opened_ledger,
        _find_entry(opened_ledger, finished_release),
        is_new_ledger,
        missed_targets=missed_targets(finished_release.plan, spec.options.level),
    )


def _refuse_directory_of_search(spec: Spec, out: Path) -> None:
    """Raise InputError if a release would overwrite the result of a search."""
    for search in spec.all_searches:
        if out.absolute() == search.directory.absolute():
            raise refuse(
                "the directory of the release",
                str(out),
                f"a directory that is not for the result of the search for {search.name}",
            )


def require_release(run: SpecRun) -> Release:
    """Return the release of a run; raise InputError if no period is published."""
    if run.release is None:
        raise InputError(
            "No period of this series is published yet, and none is due. Nothing was spent."
        )
    return run.release


def require_finished_searches(spec: Spec) -> None:
    """Raise InputError unless all searches of a spec are finished."""
    if any(search.result is None for search in spec.all_searches):
        raise InputError(
            "--plan needs known categories and bounds, and some are not found yet. Run `leastnoise "
            "categories`, then plan again."
        )


def check_run_arguments(
    spec: Spec, plan: Plan | None, *, through: str | None = None, seed: int | None = None
) -> None:
    """Raise InputError for a plan or options that do not fit the spec."""
    if plan is not None:
        require_finished_searches(spec)
    if plan is not None and (differences := differing_parts(plan, spec)):
        raise InputError(
            f"This plan belongs to another spec: its {', '.join(differences)} differ. Plan "
            "again, or use the spec from which this plan was made."
        )
    if spec.series is None and through is not None:
        raise InputError(
            "--through is for a spec with [series], whose periods are published one by one."
        )
    if spec.series is not None and seed is not None:
        raise InputError("A series cannot be run with a seed. Leave out --seed.")
    if seed is None:
        _refuse_seeded_searches(spec)


def _refuse_seeded_searches(spec: Spec) -> None:
    """Raise InputError for a seeded search, which a paid run cannot use."""
    for search in spec.all_searches:
        if search.result is not None and not search.result.private:
            raise InputError(
                f"A release that is paid for needs a paid search for {search.name}. The search was "
                "run with a seed, so its result protects nobody. Search again without a seed, or "
                "release with one."
            )


def with_data(
    purpose: str, spec: SpecFile, source: Any, dataset: str | None, share: str | None
) -> SpecFile:
    """Return a copy of a spec with data, a data set name and a ledger share.

    Args:
        purpose: the purpose of the payment, for messages.
        spec: the spec.
        source: the data; None for the source of the spec.
        dataset: the name of the data in the ledger; None for the name in the spec.
        share: the share of the ledger that pays; None for the share in the spec.
    """
    if source is None:
        data = spec.source
    else:
        data = source
    if data is None:
        raise InputError(
            f'A {purpose} must have data; add [source] path = "people.csv" to the spec file, or '
            "use --source people.csv."
        )
    if isinstance(data, str):
        data = Path(data)
    return replace(spec, source=data, dataset=dataset or spec.dataset, share=share or spec.share)


def choose_ledger(spec: Spec) -> Path:
    """Return the ledger's path: the spec's path, or a path next to the data."""
    if spec.ledger is not None:
        return spec.ledger
    if not isinstance(spec.source, (Path, DatabaseTable)):
        raise InputError(
            "A release of a data frame needs a ledger: pass the ledger's file, or name it in the "
            "spec as [ledger] path."
        )
    return ledger_beside(spec.source)


def settle_earlier_releases(ledger_path: Path, observer: RunObserver) -> frozenset[str]:
    """Record and show the states of earlier releases that were stopped.

    Returns:
        The identifiers of all entries of the ledger.
    """
    if not ledger_path.exists():
        return frozenset()
    ledger = Ledger.open(ledger_path)
    settled = reconcile_ledger(ledger)
    for entry in settled:
        LOGGER.warning("release %d was stopped; it is %s", entry.number, entry.state)
    for entry in ledger.entries():
        if is_unfinished(ledger, entry):
            LOGGER.warning("release %d is paid and can be resumed", entry.number)
    observer.show_settled(ledger, settled)
    return frozenset(entry.id for entry in ledger.entries())


def find_same_release(spec: SpecFile, out: Path, ledger_path: Path) -> SpecRun | None:
    """Return a `SpecRun` if a directory has the release of a spec, else None.

    Args:
        spec: the spec.
        out: the directory.
        ledger_path: the ledger that would pay.

    Returns:
        A `SpecRun` with the published release. The result is None if the directory has no release
        or if there is no ledger.

    Raises:
        InputError: the directory has other contents. The message names the parts in which the spec
            and the published release differ.
    """
    target = Path(os.path.abspath(out.expanduser()))  # noqa: PTH100 - resolve() would follow a link
    # The function `isfile` also returns False for a name that is too long, which is refused
    # later.
    is_published = os.path.isfile(target / "manifest.json")  # noqa: PTH113
    if not is_published or not ledger_path.exists():
        return None
    ledger = Ledger.open(ledger_path)
    published = read_published(target)
    entry = _find_entry(ledger, published.release)
    if entry is None:
        raise _other_release_error(target, [f"the ledger {ledger_path}"])
    differences = _differing_release_parts(spec, published)
    if differences:
        raise _other_release_error(target, differences)
    LOGGER.info("already released: the directory %s has this release; nothing was done", target)
    return SpecRun(
        "already released",
        published.release,
        ledger,
        entry,
        missed_targets=missed_targets(published.release.plan, spec.options.level),
    )


def _differing_release_parts(spec: SpecFile, published: PublishedRelease) -> list[str]:
    """List the parts in which a spec and a published release differ."""
    plan = published.release.plan
    differences = differing_parts(plan, spec)
    if published.release.receipt.guard_reduced_from is not None:
        # The budget of the plan was reduced by guards of stopped releases.
        differences = [part for part in differences if part != "[privacy]"]
    if "[[workload]]" in differences:  # options name tables of the workload
        return differences
    options = with_table_ids(spec.options, tables_to_write(plan.workload.products))
    if published.manifest.options != options:
        differences.append("[output] or [plan] guard")
    return differences


def _other_release_error(target: Path, differences: Iterable[str]) -> InputError:
    """Return the error for an output directory with another release."""
    return InputError(
        f"The output directory {str(target)!r} has a release of another job: "
        f"{', '.join(differences)} differ. Choose another name, or move the old release away."
    )


def _find_entry(ledger: Ledger, finished_release: Release) -> Entry | None:
    """Return the entry of a ledger that paid for a release, or None."""
    receipt = finished_release.observation.receipt
    return next((entry for entry in ledger.entries() if receipt and entry.id == receipt), None)


def _check_plan(spec: Spec, plan: Plan, observer: RunObserver) -> None:
    """Check that the options of a spec fit the plan, and show warnings.

    Raises:
        InputError: the options do not fit.
    """
    check_options(plan, spec.options)
    observer.warn(warnings_after_planning(spec, plan))


def _plan_with_observer(spec: Spec, observer: RunObserver) -> Plan:
    """Plan a spec, while the observer shows the progress."""
    with observer.planning(spec) as progress:
        return plan_spec(spec, progress)


def _plan_within_ledger(spec: Spec, ledger_path: Path, observer: RunObserver) -> Plan:
    """Plan a spec with the budget that stopped releases' guards have left.

    A plan whose expected error is known is rescaled later, when it is paid for.
    """
    plan = _plan_with_observer(spec, observer)
    whole_budget_privacy = stated_privacy(spec.privacy)
    if (
        plan.data_independent_error is not None
        or whole_budget_privacy is None
        or not ledger_path.exists()
    ):
        return plan
    ledger = Ledger.open(ledger_path, share=spec.share)
    share_left = affordable_share(ledger, plan, spec.options)
    if share_left == 1:
        return plan
    return _plan_with_observer(
        replace(spec, privacy=whole_budget_privacy.scaled(share_left)), observer
    )


def _open_payer(spec: Spec, ledger_path: Path) -> Ledger | Path:
    """Open the ledger for the share that pays; without a share, return its path."""
    if spec.share:
        return Ledger.open(ledger_path, share=spec.share)
    return ledger_path


def _release_plan(
    spec: Spec,
    plan: Plan,
    out: Path | None,
    observer: RunObserver,
    *,
    payer: Ledger | Path | None = None,
    seed: int | None = None,
    note: str = "",
) -> Release:
    """Release a plan with the data and the options of a spec."""
    data = spec.data(spec.source)
    next_step = "measuring, estimating and writing"
    seconds = finishing_seconds(plan, spec.options)
    with observer.reading(spec, data, next_step, seconds) as progress:
        return release(
            plan,
            data,
            ledger=payer,
            out=out,
            options=spec.options,
            total_privacy=new_ledger_privacy(spec, plan, checked_guard_share(spec.options.guard)),
            dataset=spec.dataset,
            seed=seed,
            progress=progress,
            note=note,
        )


def _run_seeded(
    spec: SpecFile, out: Path | None, plan: Plan | None, seed: int, observer: RunObserver
) -> SpecRun:
    """Release a spec with seeded noise; nothing is paid."""
    if out is None:
        folder = Path.cwd()
    else:
        folder = check_target(out).parent
    check_before_planning(None, spec, folder)
    observer.warn(warnings_before_planning(spec))
    observer.show_not_private()
    spec = pay_for_searches(spec, None, observer, seed)
    plan = plan or _plan_with_observer(spec, observer)
    _check_plan(spec, plan, observer)
    finished_release = _release_plan(spec, plan, out, observer, seed=seed)
    missed = missed_targets(finished_release.plan, spec.options.level)
    return SpecRun("not private", finished_release, missed_targets=missed)


def pay_for_searches(
    spec: SpecFile, ledger_path: Path | None, observer: RunObserver, seed: int | None = None
) -> SpecFile:
    """Pay for the unfinished searches of a spec; return the spec with results.

    Searches for bounds come first, because the cost of a search for categories depends on
    ``max_rows``.

    Args:
        spec: the spec.
        ledger_path: the path of the ledger that pays; None with a seed.
        observer: the observer of the run.
        seed: the seed for unprotected test noise. With a seed, search results are not written.
    """
    bounds: dict[str, FoundBounds] = {}
    plans_for_bounds = plan_bounds_searches(spec.bounds_searches, spec.privacy)
    for search in spec.bounds_searches:
        if search.result is None:
            plan = plans_for_bounds[search.name]
            result, _ = _pay_for_search(
                find_bounds, spec, search, plan, ledger_path, observer, seed
            )
            observer.show_bounds(search, result)
            bounds[search.name] = result
    if bounds:
        spec = _read_spec_with_results(spec, {}, bounds)
    categories: dict[str, FoundCategories] = {}
    plans = plan_category_searches(spec.searches, spec.privacy)
    for category_search in spec.searches:
        if category_search.result is None:
            category_plan = plans[category_search.attribute]
            found_categories, directory = _pay_for_search(
                find_categories, spec, category_search, category_plan, ledger_path, observer, seed
            )
            observer.show_categories(category_search, found_categories, directory)
            categories[category_search.attribute] = found_categories
    if categories:
        spec = _read_spec_with_results(spec, categories, bounds)
    return spec


def _read_spec_with_results(
    spec: SpecFile,
    categories: Mapping[str, FoundCategories],
    bounds: Mapping[str, FoundBounds],
) -> SpecFile:
    """Read a spec again with search results, but keep its data and payment."""
    return replace(
        read_spec(spec.path, categories, spec.statements, bounds),
        source=spec.source,
        dataset=spec.dataset,
        share=spec.share,
    )


def _pay_for_search(
    search_function: Callable[..., _SearchResult],
    spec: SpecFile,
    search: BoundsSearch | CategorySearch,
    plan: SearchPlan,
    ledger_path: Path | None,
    observer: RunObserver,
    seed: int | None,
) -> tuple[_SearchResult, Path | None]:
    """Carry out a search; return its result and its directory (None for a seed).

    Args:
        search_function: `find_bounds` or `find_categories`.
        spec: the spec.
        search: the search.
        plan: the plan of the search.
        ledger_path: the path of the ledger that pays; None with a seed.
        observer: the observer of the run.
        seed: the seed for unprotected test noise. With a seed, search results are not written.
    """
    directory = None
    if seed is None:
        directory = search.directory
    payer = None
    if ledger_path is not None:
        payer = _open_payer(spec, ledger_path)
    data = spec.data(spec.source)
    with observer.reading(spec, data, f"finding {search.name}") as progress:
        result = search_function(
            plan,
            data,
            ledger=payer,
            out=directory,
            total_privacy=spec.total_privacy or stated_privacy(spec.privacy),
            dataset=spec.dataset,
            seed=seed,
            progress=progress,
        )
    return result, directory


def _run_series(
    spec: SpecFile,
    out: Path | None,
    ledger_path: Path,
    plan: Plan | None,
    through: str | None,
    note: str,
    observer: RunObserver,
) -> SpecRun:
    """Publish the periods of a series that are due; the first run pays."""
    if out is None:
        raise InputError(
            "A series must have a directory, in which each period gets a directory of its own."
        )
    settle_earlier_releases(ledger_path, observer)
    observer.warn(warnings_before_planning(spec))
    is_new_ledger = not ledger_path.exists()
    data = spec.data(spec.source)
    with observer.reading(spec, data, "drawing, estimating and writing") as progress:
        periods = publish_due_periods(
            spec,
            data,
            out,
            ledger_path,
            lambda: plan or _plan_with_observer(spec, observer),
            through=through,
            progress=progress,
            note=note,
        )
    newest = _read_newest_period(spec, out)
    status: RunStatus = "nothing due"
    if periods.releases:
        status = "released"
    missed: tuple[str, ...] = ()
    if newest is not None:
        missed = missed_targets(newest.plan, spec.options.level)
    return SpecRun(
        status,
        newest,
        Ledger.open(ledger_path),
        periods.entry,
        is_new_ledger,
        periods,
        missed,
    )


def _read_newest_period(spec: SpecFile, out: Path) -> Release | None:
    """Read the newest published period of a series; None if there is none."""
    if spec.series is None:
        return None
    labels = map(str, spec.series.dates(spec.domain).labels)
    published = [out.expanduser() / label for label in labels]
    published = [folder for folder in published if (folder / "manifest.json").is_file()]
    if published:
        return read_published(published[-1]).release
    return None
