"""Read a spec: source, privacy, domain, workload, plan and output."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from leastnoise._descriptions import BLANK
from leastnoise._domain import (
    READ_AS_IT_IS,
    Domain,
    Measure,
    PerCellBound,
    Reading,
    UnitTotal,
    ValueCount,
    checked_keys,
    column_measures,
)
from leastnoise._error import LEVEL
from leastnoise._frames import pluralize
from leastnoise._mechanisms import BY_NAME, SECONDS, Search
from leastnoise._plan import LinearPlan, Plan, checked_guard_share, without_guard
from leastnoise._planning import (
    OBJECTIVES,
    Least,
    SeriesOptions,
    comparison_goals,
    is_data_dependent,
    per_cell,
    plan_from_file,
    plan_workload,
    series_of,
    series_plan,
    smallest_privacy,
    stated_privacy,
)
from leastnoise._publication import FoundBounds, FoundCategories, sha256
from leastnoise._release import (
    OBSERVATION_FILE,
    Options,
    SearchFacts,
    find_table_or_groups,
    find_table_position,
    name_survey_tables,
    resolve_names,
    tables_to_write,
)
from leastnoise._spec._bounds_spec import (
    BoundsRequest,
    BoundsSearch,
    build_bounds_searches,
    check_bounds_searches,
    read_bounds_requests,
    read_found_bounds,
    with_bounds,
    with_narrowest_bounds,
)
from leastnoise._spec._category_spec import (
    CategorySearch,
    check_category_searches,
    read_category_searches,
)
from leastnoise._spec._checks import check_text, prefix_errors
from leastnoise._spec._domain_spec import READING_KEYS, domain_from_spec
from leastnoise._spec._label_spec import labels_from_spec
from leastnoise._spec._location_spec import (
    LAYOUT_KEYS,
    LOCATION_KEYS,
    name_join,
    read_joins,
    read_layout,
    read_location,
)
from leastnoise._spec._public_files import PublicFiles
from leastnoise._spec._public_spec import impossible_from_spec, public_from_spec
from leastnoise._spec._unused_settings import UnusedSetting, unused_settings
from leastnoise._spec._workload_spec import load_statements, read_unit_attributes, read_workloads
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import GDP, ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._trusted.check import MOST_DIGITS, InputError, exact, one_of, refuse, whole
from leastnoise._trusted.measurements import MOST_ROWS
from leastnoise._trusted.reading import CSV, DatabaseTable, Joined, check_unit
from leastnoise._workload import (
    ComparisonTarget,
    Product,
    SqlSettings,
    Workload,
    join_columns,
    parse_day,
    read_comparison_targets,
    together,
    with_domain,
    without_hidden_cells,
)

LEAST = "least"  # instead of a number for epsilon or rho
_PART_NAMES = [
    "source",
    "privacy",
    "domain",
    "measures",
    "workload",
    "plan",
    "output",
    "ledger",
    "impossible",
    "public",
    "series",
    "targets",
    "names",
    "survey",
]
_MOST_LISTED_BLANKS = 10  # in a message; layout
_MOST_NESTING = 12  # of tables and lists: no key of a spec needs as many
_NO_CATEGORIES: Mapping[str, FoundCategories] = {}
_NO_BOUNDS: Mapping[str, FoundBounds] = {}
_Reader = Callable[[str, Any], Any]
_PRIVACY_KEYS = [
    "epsilon",
    "delta",
    "rho",
    "mu_squared",
    "share",
    "neighbours",
    "unit",
    "rows",
]
_OTHER_OPTIONS = (
    "guard",
    "rows",
    "searches",
    "labels",
    "names",
    "survey",
    "statements",
    "today",
    "joined_on",
)
"""Options of a release that other parts of a spec than [output] have."""
_OUTPUT_KEYS = tuple(
    option.name for option in fields(Options) if option.name not in {*_OTHER_OPTIONS}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The checked contents of a spec file.

    Attributes:
        source: the file or database table; None if the spec names no source.
        layout: the settings of a CSV file, such as its delimiter.
        joins: the settings of each joined table.
        privacy: the budget and the privacy unit, or `Least` for the least budget that meets
            targets.
        total_privacy: the total budget, if ``privacy`` is only a share of it; otherwise None.
        workload: the tables and statistics.
        rows: a public number of rows; None if not stated.
        strategy: the name of a strategy, or "auto".
        seconds: the CPU seconds that planning may take.
        objective: the error that planning minimises: "total", "worst" or "relative".
        ledger: the path of the ledger; None for the default.
        dataset: the name of the data in the ledger; None for the default.
        share: the share of the ledger that pays; empty without a share.
        options: the options of [output].
        parts: the products of each [[workload]] entry.
        searches: the private searches for categories.
        bounds_searches: the private searches for bounds.
        impossible: combinations of cells that no row has, by attribute.
        series: the settings of a series of releases; None for one release.
        public: the public counts.
        targets: the targets for comparisons of groups.
        after: the folders of earlier releases whose measurements the plan uses.
        unused_settings: the settings that have no effect.
    """

    source: Path | DatabaseTable | None
    layout: Mapping[str, Any] = field(default_factory=dict)
    joins: tuple[Mapping[str, Any], ...] = ()
    privacy: Privacy | Least
    total_privacy: Privacy | None = None
    workload: Workload
    rows: int | None = None
    strategy: str = "auto"
    seconds: float = SECONDS
    objective: str = "total"
    ledger: Path | None = None
    dataset: str | None = None
    share: str = ""
    options: Options = field(default_factory=Options)
    parts: tuple[tuple[Product, ...], ...] = ()
    searches: tuple[CategorySearch, ...] = ()
    bounds_searches: tuple[BoundsSearch, ...] = ()
    impossible: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    series: SeriesOptions | None = None
    public: tuple[Mapping[str, Any], ...] = ()
    targets: tuple[ComparisonTarget, ...] = ()
    after: tuple[Path, ...] = ()
    unused_settings: tuple[UnusedSetting, ...] = ()

    @property
    def all_searches(self) -> tuple[CategorySearch | BoundsSearch, ...]:
        """The searches that are paid before the release: bounds, then categories."""
        return (*self.bounds_searches, *self.searches)

    @property
    def planned_privacy(self) -> Privacy | Least:
        """The privacy of the plan, without the budgets of searches and of the guard.

        If the spec asks for the least budget that meets its targets, the budget of the guard is
        added later.
        """
        full_privacy = stated_privacy(self.privacy)
        if full_privacy is None:
            return self.privacy
        return without_guard(
            _privacy_without_searches(full_privacy, self.all_searches),
            checked_guard_share(self.options.guard),
        )

    @property
    def unpaid_privacy(self) -> Privacy | Least:
        """The privacy that is still to be paid for, without finished searches."""
        full_privacy = stated_privacy(self.privacy)
        if full_privacy is None:
            return self.privacy
        return _privacy_without_searches(
            full_privacy, [search for search in self.all_searches if search.result is not None]
        )

    def search(self, progress: Callable[[str], None] | None = None) -> Search:
        """Return the settings of planning: strategies, time limit and public facts.

        ``progress`` is called with the name of each tried strategy.
        """
        return Search(
            self.strategy,
            self.seconds,
            progress,
            impossible=self.impossible,
            public=self.public,
            comparisons=self.targets,
        )

    def plan_with(self, search: Search) -> Plan:
        """Plan the series or the release of the spec with the given settings."""
        privacy = self.planned_privacy
        if self.series is not None and isinstance(privacy, Privacy):
            return series_plan(self.workload, privacy, self.series, search)
        return plan_workload(self.workload, privacy, search, self.objective, self.options.level)

    def data(self, source: Any) -> Any:
        """Return ``source`` with the file layout and the joins of the spec.

        Return None if ``source`` is None.
        """
        if source is None:
            return None
        data = source
        if self.layout and isinstance(source, Path):
            data = CSV(source, **self.layout)
        for join in self.joins:
            data = Joined(data, **join)
        return data

    @property
    def domain(self) -> Domain:
        """The domain of the workload."""
        return self.workload.domain

    @property
    def data_name(self) -> str:
        """The name of the data in a progress line."""
        if isinstance(self.source, Path):
            return self.source.name
        return "the data"


def _privacy_without_searches(
    privacy: Privacy, searches: Sequence[CategorySearch | BoundsSearch]
) -> Privacy:
    """Return the privacy with the budget that remains after searches."""
    if searches:
        return privacy.scaled(1 - sum((search.share for search in searches), Fraction(0)))
    return privacy


def read_spec(
    path: str | Path,
    categories: Mapping[str, FoundCategories] = _NO_CATEGORIES,
    statements: str | Path | None = None,
    bounds: Mapping[str, FoundBounds] = _NO_BOUNDS,
) -> Spec:
    """Read a spec file.

    Relative paths in the file are relative to its folder.

    Args:
        path: the TOML file.
        categories: categories that a search found and did not write to a file, by attribute.
        statements: a file of SQL statements that replace ``[[workload]]``.
        bounds: bounds that a search found and did not write to a file, by name.

    Returns:
        The spec: source, workload, privacy and output as typed values.

    Raises:
        InputError: a file is missing; a file is not TOML; or it has an entry that is not allowed.
            The message names the entry.

    >>> ln.read_spec("/nowhere.toml")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: There is no spec file at
    /nowhere.toml. Draft one with `leastnoise init FILE.csv`.
    """
    file = Path(path)
    table = read_toml(read_spec_text(file), str(file))
    if statements is not None:
        table["workload"] = [{"sql": read_spec_text(Path(statements))}]
    return spec_from_table(table, file.parent, str(file), categories, statements, bounds)


def read_spec_text(file: Path) -> str:
    """Read the text of a spec file without changing line ends."""
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            return opened.read()
    except FileNotFoundError:
        raise InputError(
            f"There is no spec file at {file}. Draft one with `leastnoise init FILE.csv`."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The spec file {file} cannot be read: {type(error).__name__}. It must be a text file "
            "in UTF-8."
        ) from None


def parse_spec(text: str, folder: Path) -> Spec:
    """Parse a spec from TOML text."""
    return spec_from_table(read_toml(text), folder)


def _check_folders(location: str, value: object) -> tuple[str, ...]:
    """Check that a value is a list of folder names, and return it as a tuple."""
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise refuse(location, value, 'a list of folders of releases, such as ["release-2025"]')
    return tuple(value)


# For each key of these parts: the default value, and a function that checks a value. The function's
# arguments are the key's name in messages and the value.
_GRAMMAR: Mapping[str, Mapping[str, tuple[_Reader, Any]]] = {
    "[plan]": {
        "strategy": (partial(one_of, allowed=("auto", *PLANNERS, *BY_NAME)), "auto"),
        "objective": (partial(one_of, allowed=("total", *OBJECTIVES)), "total"),
        "seconds": (lambda _, value: Search(seconds=value).seconds, SECONDS),
        "guard": (lambda _, value: checked_guard_share(value), None),
        "after": (_check_folders, ()),
    },
    "[ledger]": {
        "path": (check_text, None),
        "dataset": (check_text, None),
        "share": (check_text, ""),
    },
}


def _read_settings(location: str, value: object) -> dict[str, Any]:
    """Read the settings of [plan] or [ledger]; missing keys have defaults."""
    settings = checked_keys(location, value, _GRAMMAR[location])
    keys = _GRAMMAR[location].items()
    return {
        key: read(f"{location} {key}", settings[key]) if key in settings else default
        for key, (read, default) in keys
    }


def spec_from_table(
    table: Mapping[str, Any],
    folder: Path,
    name: str = "the spec",
    categories: Mapping[str, FoundCategories] = _NO_CATEGORIES,
    statements_file: str | Path | None = None,
    bounds: Mapping[str, FoundBounds] = _NO_BOUNDS,
) -> Spec:
    """Build a spec from its parsed TOML table.

    Args:
        table: the parts of the spec by name.
        folder: the folder to which relative paths are relative.
        name: the name of the spec in messages.
        categories: categories that a search found and that are not in a file yet, by attribute.
        statements_file: the file with the SQL statements of the workload, for messages; None if
            they are in the table.
        bounds: bounds that a search found and that are not in a file yet, by name.
    """
    _refuse_blanks(name, table)
    parts = _check_parts(name, table)
    requests = read_bounds_requests(parts)
    found_bounds = read_found_bounds(requests, folder, bounds)
    parts = with_bounds(parts, requests, found_bounds)
    source = _read_source(folder, parts.get("source", {}))
    plan = _read_settings("[plan]", parts.get("plan", {}))
    ledger = _read_settings("[ledger]", parts.get("ledger", {}))
    output: dict[str, Any] = checked_keys("[output]", parts.get("output", {}), _OUTPUT_KEYS)
    protected: dict[str, Any] = checked_keys("[privacy]", parts["privacy"], _PRIVACY_KEYS)
    described = _read_domain(folder, parts, source, categories, requests, found_bounds)
    entries, statement_files = load_statements(parts["workload"], folder)
    if statements_file is not None:
        statement_files = {1: str(statements_file)}
    requested = _read_queries(
        entries, protected.get("unit", "row"), described.domain, source, statement_files
    )
    options = _read_options({**output, "guard": plan["guard"]}, parts, described, requested, source)
    budget = _read_budget(parts, options.level, described, requested, source)
    _check_combination(source, described, budget, options, requested.workload)
    if "impossible" in parts:
        _check_impossible_is_used(plan["strategy"], options)
    if any(search.result is None for search in described.bounds_searches):
        for narrow_parts in with_narrowest_bounds(parts, described.bounds_searches):
            with prefix_errors("With the narrowest bounds that the searches may find: "):
                spec_from_table(narrow_parts, folder, name, categories, statements_file)
    domain = requested.workload.domain
    return Spec(
        source=source.table or source.path,
        layout=source.layout,
        joins=source.joins,
        privacy=budget.privacy,
        total_privacy=budget.total_privacy,
        rows=options.rows,
        workload=requested.workload,
        strategy=plan["strategy"],
        seconds=plan["seconds"],
        objective=plan["objective"],
        ledger=_ledger_path(folder, ledger["path"], source.table),
        dataset=ledger["dataset"],
        share=ledger["share"],
        options=options,
        parts=tuple(with_domain(entry, domain).products for entry in requested.entries),
        searches=described.searches,
        bounds_searches=described.bounds_searches,
        impossible=impossible_from_spec(domain, parts.get("impossible", [])),
        series=budget.series,
        public=public_from_spec(domain, parts.get("public", []), described.files),
        targets=_read_targets(parts, requested.workload, budget.series),
        after=tuple(folder / name for name in plan["after"]),
        unused_settings=tuple(
            unused_settings(parts, entries, requested.workload, described.domain)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourcePart:
    """The settings of [source].

    Attributes:
        path: a file or folder with the data, or None.
        table: a database table with the data, or None.
        layout: the delimiter, the encoding and the header setting of CSV files.
        reading: how texts become values, as arguments of `Reading`.
        joins: the arguments of `Joined` for each further table, in order.
        today: the day of CURRENT_DATE in SQL, as text; None if not stated.
    """

    path: Path | None
    table: DatabaseTable | None
    layout: Mapping[str, Any]
    reading: Mapping[str, Any]
    joins: tuple[dict[str, Any], ...]
    today: str | None


def _read_source(folder: Path, part: object) -> _SourcePart:
    """Read [source]; paths are relative to ``folder``."""
    settings: dict[str, Any] = checked_keys(
        "[source]",
        part,
        [*LOCATION_KEYS, "join", "null", "today", *LAYOUT_KEYS, *READING_KEYS],
    )
    path, table = read_location(folder, settings, "[source]")
    reading = {
        "nulls" if key == "null" else key: settings[key]
        for key in ("null", *READING_KEYS)
        if key in settings
    }
    joins = read_joins(folder, settings, path)
    for join in joins:
        with prefix_errors("[source] "):
            join["reading"] = key_reading(reading)
    return _SourcePart(
        path=path,
        table=table,
        layout=read_layout(settings, "[source]"),
        reading=reading,
        joins=joins,
        today=_read_today(settings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _DomainPart:
    """The settings of [domain] and [measures].

    Attributes:
        domain: the domain, with the categories and bounds of earlier searches.
        searches: the searches for categories.
        bounds_searches: the searches for bounds.
        labels: the display texts of codes.
        files: the reader of public files.
    """

    domain: Domain
    searches: tuple[CategorySearch, ...]
    bounds_searches: tuple[BoundsSearch, ...]
    labels: Mapping[str, Any]
    files: PublicFiles

    @property
    def all_searches(self) -> tuple[CategorySearch | BoundsSearch, ...]:
        """The searches that are paid before the release: bounds, then categories."""
        return (*self.bounds_searches, *self.searches)


def _read_domain(
    folder: Path,
    parts: Mapping[str, Any],
    source: _SourcePart,
    categories: Mapping[str, FoundCategories],
    requests: Sequence[BoundsRequest],
    bounds: Mapping[str, FoundBounds],
) -> _DomainPart:
    """Read [domain] and [measures], including results of earlier searches."""
    private_joins = [join for join in source.joins if not join.get("public")]
    files = PublicFiles(folder, [source.path, *(join["second"] for join in private_joins)])
    domain = domain_from_spec(parts["domain"], parts.get("measures", {}), files, source.reading)
    bounds_searches = build_bounds_searches(requests, domain, folder, bounds)
    domain, searches = read_category_searches(domain, parts["domain"], folder, categories)
    labels = labels_from_spec(parts["domain"], domain, files)
    described = _DomainPart(
        domain=domain,
        searches=searches,
        bounds_searches=bounds_searches,
        labels=labels,
        files=files,
    )
    _check_shares(described.all_searches)
    _check_directories(described.all_searches)
    return described


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueriesPart:
    """The settings of [[workload]].

    Attributes:
        entries: the workload of each entry.
        workload: the workload of all entries.
        statements: the texts of all SQL statements.
    """

    entries: Sequence[Workload]
    workload: Workload
    statements: tuple[str, ...]


def _read_queries(
    entries: object,
    unit_setting: object,
    domain: Domain,
    source: _SourcePart,
    statement_files: Mapping[int, str],
) -> _QueriesPart:
    """Read [[workload]]; SQL statements are read with the unit in [privacy]."""
    unit = read_unit_attributes(domain, unit_setting)
    settings = SqlSettings(
        unit=unit[0] if unit else None,
        of_unit=tuple(unit[1]) if unit else (),
        today=source.today,
        joins=join_columns([join["on"] for join in source.joins]),
    )
    workloads, statements = read_workloads(domain, entries, unit, settings, statement_files)
    return _QueriesPart(entries=workloads, workload=together(workloads), statements=statements)


def _read_options(
    settings: Mapping[str, Any],
    parts: Mapping[str, Any],
    described: _DomainPart,
    requested: _QueriesPart,
    source: _SourcePart,
) -> Options:
    """Read the options of a release, from [output] and from other parts."""
    with prefix_errors("[names]: "):
        names = resolve_names(parts.get("names", {}), requested.workload)
    survey = _read_survey(parts, requested.workload, described.files)
    rows = None
    if "rows" in parts["privacy"]:
        rows = whole("[privacy] rows", parts["privacy"]["rows"], 1, MOST_ROWS)
    with prefix_errors("[output] "):
        return Options(
            **settings,
            rows=rows,
            labels=described.labels,
            names=names,
            survey=survey,
            searches=_paid_search_facts(described.all_searches),
            statements=requested.statements,
            today=source.today or "",
            joined_on=_joined_columns(source),
        )


def _joined_columns(source: _SourcePart) -> tuple[str, ...]:
    """List the columns of all joins, two for each join."""
    columns: list[str] = []
    for pair in join_columns([join["on"] for join in source.joins]):
        columns += pair
    return tuple(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BudgetPart:
    """The settings of [privacy] and [series].

    Attributes:
        privacy: budget, neighbours and unit of the release, or of all periods of a series.
        total_privacy: the total budget, if ``privacy`` is only a share of it; None otherwise.
        series: the series; None for a single release.
    """

    privacy: Privacy | Least
    total_privacy: Privacy | None
    series: SeriesOptions | None


def _read_budget(
    parts: Mapping[str, Any],
    level: float,
    described: _DomainPart,
    requested: _QueriesPart,
    source: _SourcePart,
) -> _BudgetPart:
    """Read the budget of a spec, and its series."""
    protected = parts["privacy"]
    privacy = _read_privacy(
        protected,
        level,
        requested.workload,
        key_reading(source.reading),
        _read_series_max_rows(parts),
    )
    total_privacy = None
    if "share" in protected:
        total_privacy = _require_shareable_privacy(privacy, described.searches)
        privacy = total_privacy.share(protected["share"])
    series, privacy = _read_series(parts, described.domain, privacy, described.all_searches)
    return _BudgetPart(privacy=privacy, total_privacy=total_privacy, series=series)


def _check_combination(
    source: _SourcePart,
    described: _DomainPart,
    budget: _BudgetPart,
    options: Options,
    workload: Workload,
) -> None:
    """Raise InputError for parts of a spec that contradict each other."""
    for number, join in enumerate(source.joins, 1):
        # A joined table must have rows of the unit, or be public. This is checked even without
        # data.
        with prefix_errors(f"{name_join(number, len(source.joins))}: "):
            joined = Joined(None, **join)
            check_unit(joined, budget.privacy.unit_column, budget.privacy.unit_reading)
    check_category_searches(described.searches, budget.privacy)
    check_bounds_searches(described.bounds_searches, budget.privacy)
    tables = tables_to_write(workload.products)
    for key in options.covariances:
        find_table_position(tables, key)  # raises for a name that no table has, or several


def _check_impossible_is_used(strategy: object, options: Options) -> None:
    """Raise InputError unless the strategy or an option uses impossible cells."""
    if strategy != "model" and not options.top_down:
        raise refuse(
            "strategy",
            strategy,
            "'model' for a spec with [[impossible]] whose [output] does not have top_down = true",
            "Other answers cannot use impossible cells.",
        )


def _check_parts(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a spec; raise InputError for unknown or missing parts."""
    parts: dict[str, Any] = checked_keys(name, table, _PART_NAMES)
    for key in ("privacy", "domain", "workload"):
        if key not in parts:
            raise InputError(
                f"{name} must have a part [{key}]; it has {', '.join(parts) or 'nothing'}. See "
                "docs/spec.md for an example."
            )
    return parts


def _check_shares(searches: Sequence[CategorySearch | BoundsSearch]) -> None:
    """Raise InputError unless searches leave some of the budget to the release."""
    if not sum(search.share for search in searches) < 1:
        raise InputError(
            "The shares of all searches together must be less than 1, so that the release has some "
            "budget. Give the searches smaller shares."
        )


def _check_directories(searches: Sequence[CategorySearch | BoundsSearch]) -> None:
    """Raise InputError if two searches write to the same directory."""
    names: dict[Path, str] = {}
    for search in searches:
        other = names.setdefault(search.directory.absolute(), search.name)
        if other != search.name:
            raise InputError(
                f"Each search must have its own directory; the searches for {other} and "
                f"{search.name} have {str(search.directory)!r}. Name another directory for one "
                "of them: found = ..."
            )


def _paid_search_facts(
    searches: Sequence[CategorySearch | BoundsSearch],
) -> tuple[SearchFacts, ...]:
    """Return the facts that a release publishes about each paid search."""
    return tuple(
        search.result.search_facts()
        for search in searches
        if search.result is not None and search.result.private
    )


def _ledger_path(
    folder: Path, stated_path: str | None, database_table: DatabaseTable | None
) -> Path | None:
    """Return the ledger's path, as stated or for a database table; else None."""
    if stated_path is not None:
        return folder / stated_path
    if database_table is not None:
        return folder / f"{database_table.parts[-1]}.ledger"
    return None


def _read_series_max_rows(parts: Mapping[str, Any]) -> int | None:
    """Read the bound on a unit's rows in [series]; None if there is none."""
    series = parts.get("series", {})
    if not isinstance(series, Mapping) or "max_rows" not in series:
        return None
    return whole("[series] max_rows", series["max_rows"], 1)


def _read_targets(
    parts: Mapping[str, Any], workload: Workload, series: SeriesOptions | None
) -> tuple[ComparisonTarget, ...]:
    """Read the targets of differences and ratios in [targets]."""
    if "targets" not in parts:
        return ()
    if series is not None:
        raise InputError(
            "[targets] cannot be combined with [series]. Leave [targets] out, and give margins "
            "to the tables."
        )
    with prefix_errors("[targets] "):
        targets = read_comparison_targets(workload.domain, parts["targets"])
        comparison_goals(workload, targets, LEVEL)  # raises for targets of missing tables
    return targets


def _require_shareable_privacy(
    privacy: Privacy | Least, searches: Sequence[CategorySearch]
) -> Privacy:
    """Return the privacy of a spec; raise InputError if no share is allowed.

    Raises:
        InputError: the spec allows no share.
    """
    if isinstance(privacy, Least):
        raise refuse(
            "[privacy] with share",
            LEAST,
            "a budget of numbers",
            "State the whole budget; this release takes the share from it.",
        )
    if searches:
        raise InputError(
            "[privacy] share cannot be used with unknown categories, because a search has a "
            "separate delta. Search first in a spec without a share. Then list the categories that "
            "were found: categories = { file = ..., column = ... }."
        )
    return privacy


def _read_survey(
    parts: Mapping[str, Any], workload: Workload, files: PublicFiles
) -> dict[str, Any]:
    """Read the rules of [survey] and the public files that they name."""
    survey = parts.get("survey", {})
    with prefix_errors("[survey]: "):
        if isinstance(survey, Mapping):
            tables = survey.get("tables")
        else:
            tables = None
        if isinstance(tables, Mapping):
            rules = {
                name: _read_survey_rule(name, rule, workload, files)
                for name, rule in tables.items()
            }
            survey = {**survey, "tables": rules}
        return name_survey_tables(survey, workload)


def _read_survey_rule(name: str, rule: Any, workload: Workload, files: PublicFiles) -> Any:
    """Replace the names of public files in a [survey] rule by the files' numbers."""
    if not isinstance(rule, Mapping):
        return rule
    numbers: dict[str, Any] = {}
    for key, value in rule.items():
        numbers[key] = value
        if not (isinstance(value, Mapping) and "file" in value):
            continue
        subject = f"[survey.tables.{name}] {key}"
        product = find_table_or_groups(workload, name)
        if product is None:
            raise refuse(subject, "a file", "one number, or a file for a table or for means")
        numbers[key] = files.cell_texts(subject, value, product, _is_nonnegative_number)
    return numbers


def _has_number_per_answer(survey: Any) -> bool:
    """Return whether a rule of [survey] states a number for each answer."""
    if isinstance(survey, Mapping):
        tables = survey.get("tables", {})
    else:
        tables = {}
    rules = tables.values() if isinstance(tables, Mapping) else []
    return any(
        isinstance(value, list) or (isinstance(value, Mapping) and "file" in value)
        for rule in rules
        if isinstance(rule, Mapping)
        for value in rule.values()
    )


def _is_nonnegative_number(text: str) -> bool:
    """Return whether a text is a nonnegative number."""
    try:
        return exact("a number", text) >= 0
    except InputError:
        return False


def _read_series(
    parts: Mapping[str, Any],
    domain: Domain,
    privacy: Privacy | Least,
    searches: Sequence[CategorySearch | BoundsSearch],
) -> tuple[SeriesOptions | None, Privacy | Least]:
    """Read [series]; return the series and the budget of all its periods.

    Raise InputError for parts of the spec that a series cannot have.
    """
    if "series" not in parts:
        return None, privacy
    table: dict[str, Any] = checked_keys(
        "[series]", parts["series"], ["along", "late", "max_rows", "files"]
    )
    if "along" not in table:
        raise InputError(
            "[series] must have the key 'along': the name of the date attribute whose periods are "
            "published one after the other."
        )
    with prefix_errors("[series] "):
        series = SeriesOptions(**table)
        series.dates(domain)
        series.file_patterns(domain)
    if isinstance(privacy, Least):
        raise refuse(
            "the budget of a spec with [series]",
            LEAST,
            "rho, or epsilon and delta",
            "State the budget of all periods together.",
        )
    _refuse_parts_unfit_for_series(parts, searches)
    if series.late == "arrival" and privacy.unit_column is not None:
        raise refuse(
            "[series] late",
            "arrival",
            '"drop" where a column names the units',
            "What a unit adds later would have no bound.",
        )
    with prefix_errors("[series] "):
        return series, series.privacy(privacy, domain)


_OBJECTIVE_ADVICE = (
    "Its total error is minimised; give a weight to a table that must be more exact."
)
_AFTER_ADVICE = "Its rows arrive period by period; leave it out."
_SEARCH_ADVICE = (
    "A series is paid once, for rows that do not exist yet. Find them before the series with the "
    "same ledger: use `leastnoise categories` and the spec without [series]. Then state what was "
    "found and the remaining budget."
)
_IMPOSSIBLE_ADVICE = "Only the model of one release uses it; leave it out."
_SAMPLING_ADVICE = "The number of answers grows with each period; give one number or another rule."
_PUBLIC_ADVICE = "It would have to be known for every future period; leave it out."


def _refuse_parts_unfit_for_series(
    parts: Mapping[str, Any], searches: Sequence[CategorySearch | BoundsSearch]
) -> None:
    """Raise InputError for parts of a spec that a series cannot have."""
    plan = parts.get("plan", {})
    has_objective = plan.get("objective", "total") != "total"
    has_lists = _has_number_per_answer(parts.get("survey", {}))
    for feature, is_present, advice in (
        ("[plan] objective", has_objective, _OBJECTIVE_ADVICE),
        ("[plan] after", bool(plan.get("after")), _AFTER_ADVICE),
        ("unknown categories or bounds to be found", bool(searches), _SEARCH_ADVICE),
        ("[[impossible]]", "impossible" in parts, _IMPOSSIBLE_ADVICE),
        ("a list of sampling errors", has_lists, _SAMPLING_ADVICE),
        ("[[public]]", "public" in parts, _PUBLIC_ADVICE),
    ):
        if is_present:
            raise refuse("a spec with [series]", f"one with {feature}", "one without", advice)


def read_toml(text: str, name: str = "the spec") -> dict[str, Any]:
    """Parse TOML text to a table; raise InputError if invalid or nested deeply."""
    advice = (
        f"A spec has numbers of at most {MOST_DIGITS} digits, and tables and lists at most "
        f"{_MOST_NESTING} deep."
    )
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}.") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or endless nesting
        raise InputError(f"{name} cannot be read. {advice}") from None
    level: list[object] = [table]
    for _ in range(_MOST_NESTING):
        below = [
            value.values() if isinstance(value, Mapping) else value
            for value in level
            if isinstance(value, (Mapping, list))
        ]
        level = list(chain.from_iterable(below))
    if level:
        raise InputError(f"{name} is nested too deeply. {advice}")
    return table


def _refuse_blanks(name: str, table: Mapping[str, Any]) -> None:
    """Raise InputError if a draft still has blanks to fill in."""
    blanks: dict[str, None] = {}
    pending_values: list[tuple[tuple[str, ...], object]] = [((), table)]
    while pending_values:
        keys, value = pending_values.pop(0)
        if value == BLANK:
            blanks[".".join(keys[:2])] = None
        elif isinstance(value, Mapping):
            pending_values[:0] = [((*keys, str(key)), entry) for key, entry in value.items()]
        elif isinstance(value, list):
            pending_values[:0] = [(keys, entry) for entry in value]
    if blanks:
        listed_blanks = ", ".join([*blanks][:_MOST_LISTED_BLANKS]) + (
            f" and {len(blanks) - _MOST_LISTED_BLANKS} more"
            if len(blanks) > _MOST_LISTED_BLANKS
            else ""
        )
        raise InputError(
            f"{name} still has {pluralize(len(blanks), 'place')} to fill in: {listed_blanks}. "
            f"Replace every {BLANK!r} by a public value, or remove the attribute; comments in the "
            "file and docs/spec.md show how."
        )


_BUDGETS: Mapping[tuple[str, ...], Callable[..., Budget]] = {
    ("rho",): ZCDP,
    ("epsilon",): PureDP,
    ("epsilon", "delta"): ApproxDP,
    ("mu_squared",): GDP,
}


def key_reading(reading: Mapping[str, Any]) -> Reading:
    """Return the rules of [source] by which texts of unit and join keys are read."""
    about_texts = ("nulls", "trim", "ignore_case")
    return Reading(**{name: reading[name] for name in about_texts if name in reading})


def _read_privacy(
    table: Mapping[str, Any],
    level: float,
    workload: Workload,
    reading: Reading,
    series_max_rows: int | None,
) -> Privacy | Least:
    """Read the budget, the neighbours and the unit in [privacy]."""
    unit_column, max_rows, max_per_cell = _read_unit(
        table.get("unit", "row"), workload, series_max_rows
    )
    protected = (
        table.get("neighbours", "add_remove"),
        unit_column,
        max_rows,
        max_per_cell,
        READ_AS_IT_IS if unit_column is None else reading,
    )
    budget_keys = tuple(key for key in ("epsilon", "delta", "rho", "mu_squared") if key in table)
    least_parameter = next((key for key in ("epsilon", "rho") if table.get(key) == LEAST), None)
    if least_parameter is not None and not (least_parameter == "rho" and "epsilon" in budget_keys):
        return Least(least_parameter, table.get("delta"), level, *protected)
    if budget_keys not in _BUDGETS:
        raise InputError(
            "[privacy] must have epsilon, or epsilon and delta, or rho, or mu_squared; got "
            f"{', '.join(budget_keys) or 'none of them'}."
        )
    return Privacy(_BUDGETS[budget_keys](**{key: table[key] for key in budget_keys}), *protected)


def _read_unit(
    value: object, workload: Workload, series_max_rows: int | None
) -> tuple[str | None, Any, PerCellBound | None]:
    """Read the unit; return its column, ``max_rows`` and ``max_per_cell``.

    If the unit states no ``max_rows``, the ``max_rows`` of [series] applies.
    """
    if value == "row":
        return None, 1, None
    if not isinstance(value, Mapping):
        raise refuse(
            "[privacy] unit",
            value,
            "'row' or a table such as { column = 'person_id', max_rows = 5 }",
        )
    table: dict[str, Any] = checked_keys(
        "[privacy] unit", value, ["column", "max_rows", "max_per_cell", "cell", "of_unit"]
    )
    if series_max_rows is not None:
        table = {"max_rows": series_max_rows, **table}
    if "column" not in table or "max_rows" not in table:
        received = ", ".join(table) or "neither"
        raise InputError(
            f"[privacy] unit must have column and max_rows; got {received}. State how many rows of "
            "a unit are counted."
        )
    cell = table.get("cell")
    if "max_per_cell" not in table and "cell" in table:
        raise refuse("[privacy] unit cell", cell, "left out where there is no max_per_cell")
    if not (cell is None or isinstance(cell, (str, list))):
        raise refuse("[privacy] unit cell", cell, "an attribute or a list of them")
    if "max_per_cell" in table:
        limit = per_cell(workload, table["max_per_cell"], cell)
    else:
        limit = None
    return table["column"], table["max_rows"], limit


def _read_today(source: Mapping[str, Any]) -> str | None:
    """Return the day of CURRENT_DATE as text, or None without this setting."""
    if "today" not in source:
        return None
    with prefix_errors("[source] "):
        day = parse_day(str(source["today"]))
    if day is None:
        return None
    return day.isoformat()


def columns_to_read(request: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the attributes and of the measures that a release reads.

    ``request`` is a spec, a plan or a workload. The names are in the order of the domain.
    """
    if isinstance(request, Plan):
        return request.used()
    workload = request.workload if isinstance(request, Spec) else request
    if not isinstance(workload, Workload):
        raise refuse(
            "the request of a check", type(request).__name__, "a spec, a plan or a workload"
        )
    names = {*workload.read_attributes}
    if isinstance(request, Spec) and is_data_dependent(request.strategy):
        from leastnoise._mechanisms import mechanism_for  # loads all mechanisms, which is slow

        names.update(mechanism_for(request.strategy, workload).decision_attributes(workload))
    parts: set[Measure] = set()
    for name in workload.measures:
        if name is not None:
            parts.update(column_measures(workload.domain.measure(name)))
    measures = []
    for name, measure in workload.domain.measures.items():
        is_summed = isinstance(measure, UnitTotal) and name in workload.measures
        is_part = type(measure) is Measure and not parts.isdisjoint([measure, ValueCount(measure)])
        if is_summed or is_part:
            measures.append(name)
    return tuple(name for name in workload.domain.names if name in names), tuple(measures)


def read_plan(path: Path, spec: Spec) -> Plan:
    """Read a plan from a file; raise InputError if it belongs to another spec."""
    plan = plan_from_file(path)
    if differences := differing_parts(plan, spec):
        raise InputError(
            f"The plan {path} belongs to another spec: its {', '.join(differences)} differ. Plan "
            "again, or use the spec from which this plan was made."
        )
    return plan


def _digests_in_plan(plan: Plan) -> list[str]:
    """Return the digests of the earlier releases that a plan uses."""
    if isinstance(plan, LinearPlan):
        return [release.digest for release in plan.earlier]
    return []


def _digests_of_earlier_releases(spec: Spec) -> list[str]:
    """Return each earlier release's digest, or "" for a missing release."""
    digests = []
    for folder in spec.after:
        file = folder / OBSERVATION_FILE
        digests.append(sha256(file) if file.is_file() else "")
    return digests


def differing_parts(plan: Plan, spec: Spec) -> list[str]:
    """List the parts of a spec, such as "[privacy]", that a plan does not match."""
    spec_privacy = spec.planned_privacy
    least_privacy = smallest_privacy(spec_privacy)
    is_same_budget = plan.privacy.within(least_privacy.budget) == least_privacy and type(
        plan.privacy.budget
    ) is type(least_privacy.budget)
    plan_workload_facts, spec_workload_facts = (
        (workload.to_json(), workload.statistics) for workload in (plan.workload, spec.workload)
    )
    agreements = {
        "[privacy]": is_same_budget and stated_privacy(spec_privacy) in (None, plan.privacy),
        "[domain]": without_hidden_cells(plan.domain) == without_hidden_cells(spec.domain),
        "[[workload]]": plan_workload_facts == spec_workload_facts,
        "[plan] after": _digests_in_plan(plan) == _digests_of_earlier_releases(spec),
        # The bound of a series on the rows of a unit is part of the plan's privacy, and its file
        # names are part of the source.
        "[series]": series_of(plan)
        == (spec.series and replace(spec.series, max_rows=None, files=None)),
    }
    return [name for name, agrees in agreements.items() if not agrees]
