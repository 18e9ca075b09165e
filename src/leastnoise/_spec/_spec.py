"""The spec file as a value: source, privacy, domain, workload, plan and output from one TOML text, and its searches for categories."""

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from leastnoise._descriptions import BLANK
from leastnoise._domain import (
    READ_AS_IT_IS,
    Dates,
    Domain,
    Measure,
    PerCellBound,
    Reading,
    Unknown,
    factor_measures,
    known_keys,
)
from leastnoise._frames import pluralize
from leastnoise._mechanisms import BY_NAME, SECONDS, Search
from leastnoise._plan import CategoryPlan, Plan, guard_share, plan_categories, without_guard
from leastnoise._planning import (
    OBJECTIVES,
    Least,
    SeriesOptions,
    is_data_dependent,
    per_cell,
    plan_from_file,
    plan_workload,
    series_of,
    series_plan,
    smallest_privacy,
    stated_privacy,
)
from leastnoise._release import FoundCategories, Options, read_categories, table_position, written
from leastnoise._spec._domain import (
    LAYOUT,
    PLACE,
    READING,
    WHERE_JOINED,
    PublicFiles,
    domain_from_spec,
    impossible_from_spec,
    joined_with,
    labels_from_spec,
    layout_of,
    place_of,
    public_from_spec,
    text_of,
    within,
)
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Privacy, PureDP
from leastnoise._trusted.check import (
    MOST_DIGITS,
    InputError,
    exact_positive,
    message,
    one_of,
    refuse,
    whole,
)
from leastnoise._trusted.measurements import MOST_ROWS
from leastnoise._trusted.reading import CSV, DatabaseTable, Joined, check_unit
from leastnoise._workload import (
    Product,
    SqlSettings,
    Statement,
    Workload,
    cdf_queries,
    declared,
    join_columns,
    marginals,
    mean_queries,
    over_common_domain,
    parse_day,
    quantile_queries,
    queries,
    read_statements,
    together,
    with_domain,
)

SHARE = "1/10"
"""Of the budget, for each search that does not say another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CategorySearch:
    """An attribute whose categories are found privately for a share of the budget, in a directory; ``found`` is None before that."""

    attribute: str
    kind: Unknown
    share: Fraction
    directory: Path
    found: FoundCategories | None = None


def searches_of(
    domain: Domain, tables: Any, folder: Path, known: Mapping[str, FoundCategories]
) -> tuple[Domain, tuple[CategorySearch, ...]]:
    """Return the domain with the categories that are known by now, and the searches of a spec with what they found before."""
    searches, kinds = [], {name: domain.kind(name) for name in domain.names}
    for name, kind in kinds.items():
        if not isinstance(kind, Unknown):
            continue
        table = tables[name]["unknown"]
        share, directory = (
            exact_positive(f"[domain.{name}] share", table.get("share", SHARE)),
            table.get("found", f"{name}-categories"),
        )
        if not isinstance(directory, str) or not directory:
            raise refuse(f"[domain.{name}] found", directory, "the name of a directory")
        where = folder / directory
        categories = known.get(name)
        if categories is None and os.path.lexists(where):
            categories = read_categories(where)
            if not categories.private:
                why = "were found with a seed, which protects nobody. Move them away, and find them again."
                raise InputError(f"The categories in {where} {why}")
        searches.append(
            CategorySearch(
                attribute=name, kind=kind, share=share, directory=where, found=categories
            )
        )
        kinds[name] = kind if categories is None else categories.kind()
    if not sum(search.share for search in searches) < 1:
        raise InputError(
            "The shares of the budget that searches for categories cost must leave some of it. "
            "Give them smaller shares."
        )
    return Domain(kinds, measures=domain.measures) if searches else domain, tuple(searches)


def search_plans(
    searches: Sequence[CategorySearch], privacy: Privacy | Least
) -> dict[str, CategoryPlan]:
    """Return the plan of each search by its attribute; empty where the budget is the least that keeps targets."""
    whole = stated_privacy(privacy)
    return {
        search.attribute: plan_categories(search.attribute, search.kind, whole.share(search.share))
        for search in searches
        if whole is not None
    }


def check_searches(searches: Sequence[CategorySearch], privacy: Privacy | Least) -> None:
    """Refuse a budget that cannot pay for searches, and categories that another search found."""
    whole = stated_privacy(privacy)
    for search in searches:
        what, needed = (
            "[privacy] with unknown categories",
            "a budget of epsilon and delta, each a number",
        )
        if whole is None:
            why = message(
                "The categories of {name} are found first, with a share of the budget, and how "
                "many there are decides what the tables "
                "need. Give epsilon a number, such as '1', or list them: [domain.{name}] "
                "categories = [...], "
                "or { file = ..., column = ... }.",
                name=search.attribute,
            )
            raise refuse(what, "least", needed, why)
        if not isinstance(whole.budget, ApproxDP):
            raise refuse(what, whole.budget, needed)
        if search.found is None:
            continue
        known, asked = search.found.plan, search_plans([search], whole)[search.attribute]
        if (known.attribute, known.kind, known.privacy) != (
            asked.attribute,
            asked.kind,
            asked.privacy,
        ):
            raise InputError(
                f"The categories in {search.directory} were found by another search than that of "
                f"[domain.{search.attribute}]: its budget, "
                "unit, bounds or reading differ. Say what was said then, or name another "
                "directory: found = ..."
            )


LEAST = "least"  # in place of epsilon or rho
_PARTS = [
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
]
_STATISTICS: Mapping[str, Callable[..., Workload]] = {
    "means": mean_queries,
    "quantiles": quantile_queries,
    "cdf": cdf_queries,
}
_ASKED = ("marginals", "queries", *_STATISTICS, "sql")
_TARGETS = ("margin", "relative", "size", "rmse")
_MOST_LISTED = 10
_MOST_NESTED = 12
_NOTHING: Mapping[str, FoundCategories] = {}
_Reader = Callable[[str, Any], Any]
_OUTPUT = tuple(
    option.name
    for option in fields(Options)
    if option.name
    not in {"guard", "rows", "searches", "labels", "statements", "today", "joined_on"}
)  # of [plan] and [domain]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A spec file, read and checked."""

    source: Path | DatabaseTable | None
    layout: Mapping[str, Any] = field(default_factory=dict)
    join: Mapping[str, Any] = field(default_factory=dict)
    privacy: Privacy | Least
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
    impossible: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    series: SeriesOptions | None = None
    public: tuple[Mapping[str, Any], ...] = ()

    @property
    def planned_privacy(self) -> Privacy | Least:
        """The budget of the plan: without the shares of searches and guard, or the least, to which the guard's share is added later."""
        whole = stated_privacy(self.privacy)
        return (
            self.privacy
            if whole is None
            else without_guard(_without(whole, self.searches), guard_share(self.options.guard))
        )

    @property
    def unpaid_privacy(self) -> Privacy | Least:
        """The budget without the shares of the searches that found something before."""
        whole = stated_privacy(self.privacy)
        return (
            self.privacy
            if whole is None
            else _without(whole, [search for search in self.searches if search.found is not None])
        )

    def search(self, progress: Callable[[str], None] | None = None) -> Search:
        """Return which strategies are tried and for how long; ``progress`` is told the name of each."""
        return Search(
            self.strategy, self.seconds, progress, impossible=self.impossible, public=self.public
        )

    def plan(self, search: Search) -> Plan:
        """Plan a series if the spec has one, else one release."""
        privacy = self.planned_privacy
        if self.series is not None and isinstance(privacy, Privacy):
            return series_plan(self.workload, privacy, self.series, search)
        return plan_workload(self.workload, privacy, search, self.objective, self.options.level)

    def data(self, source: Path | DatabaseTable) -> Any:
        """Return the data at a place with the layout and the second table of the spec."""
        data = CSV(source, **self.layout) if self.layout and isinstance(source, Path) else source
        return Joined(data, **self.join) if self.join else data

    @property
    def domain(self) -> Domain:
        """The domain of the workload."""
        return self.workload.domain

    @property
    def data_name(self) -> str:
        """The name of the data in a line of progress."""
        return self.source.name if isinstance(self.source, Path) else "the data"


def _without(privacy: Privacy, searches: Sequence[CategorySearch]) -> Privacy:
    return (
        privacy.share(1 - sum((search.share for search in searches), Fraction(0)))
        if searches
        else privacy
    )


def read_spec(
    path: str | Path,
    found: Mapping[str, FoundCategories] = _NOTHING,
    statements: str | Path | None = None,
) -> Spec:
    """Read a spec file; relative paths in it are relative to its folder.

    Args:
        path: the TOML file.
        found: by attribute, categories that a search found and did not write.
        statements: a file of SQL statements that are asked in place of ``[[workload]]``.

    Raises:
        InputError: a file is missing, is no TOML, or holds something that is not allowed; the
            message names the place.

    >>> ln.read_spec("/nowhere.toml")
    Traceback (most recent call last):
    leastnoise._trusted.check._errors.InputError: There is no spec file at /nowhere.toml. Draft one with `leastnoise init FILE.csv`.
    """
    file = Path(path)
    table = read_toml(read_spec_text(file), str(file))
    if statements is not None:
        table["workload"] = [{"sql": read_spec_text(Path(statements))}]
    return spec_from_table(table, file.parent, str(file), found)


def read_spec_text(file: Path) -> str:
    """Return the text of a spec file, with its ends of lines as they are."""
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
    """Read the text of a spec."""
    return spec_from_table(read_toml(text), folder)


# For each key of these parts: how its value is read, given its name in messages, and its default.
_GRAMMAR: Mapping[str, Mapping[str, tuple[_Reader, Any]]] = {
    "[plan]": {
        "strategy": (partial(one_of, allowed=("auto", *PLANNERS, *BY_NAME)), "auto"),
        "objective": (partial(one_of, allowed=("total", *OBJECTIVES)), "total"),
        "seconds": (lambda _, value: Search(seconds=value).seconds, SECONDS),
        "guard": (lambda _, value: guard_share(value), None),
    },
    "[ledger]": {"path": (text_of, None), "dataset": (text_of, None), "share": (text_of, "")},
}


def _settings(where: str, value: object) -> dict[str, Any]:
    """Read a part by its grammar; keys that are not given have their defaults."""
    given = known_keys(where, value, _GRAMMAR[where])
    keys = _GRAMMAR[where].items()
    return {
        key: read(f"{where} {key}", given[key]) if key in given else default
        for key, (read, default) in keys
    }


def spec_from_table(
    table: Mapping[str, Any],
    folder: Path,
    name: str = "the spec",
    categories: Mapping[str, FoundCategories] = _NOTHING,
) -> Spec:
    """Read a spec from its table of TOML.

    Args:
        table: the parts by their names.
        folder: where relative paths begin.
        name: how messages call the spec.
        categories: by attribute, categories that a search found and did not write.
    """
    _refuse_blanks(name, table)
    parts: dict[str, Any] = known_keys(name, table, _PARTS)
    for key in ("privacy", "domain", "workload"):
        if key not in parts:
            raise InputError(
                f"{name} must have a part [{key}]; it has {', '.join(parts) or 'nothing'}. See "
                "docs/spec.md for an example."
            )
    source: dict[str, Any] = known_keys(
        "[source]", parts.get("source", {}), [*PLACE, "join", "null", "today", *LAYOUT, *READING]
    )
    data, stored = place_of(folder, source, "[source]")
    reading = {
        "nulls" if key == "null" else key: source[key]
        for key in ("null", *READING)
        if key in source
    }
    join = joined_with(folder, source, data)
    if join:
        with within("[source] "):
            join["reading"] = key_reading(reading)
    plan, ledger = (
        _settings("[plan]", parts.get("plan", {})),
        _settings("[ledger]", parts.get("ledger", {})),
    )
    output: dict[str, Any] = known_keys("[output]", parts.get("output", {}), _OUTPUT)
    protected: dict[str, Any] = known_keys(
        "[privacy]", parts["privacy"], ["epsilon", "delta", "rho", "neighbours", "unit", "rows"]
    )
    files = PublicFiles(folder, [data, None if join.get("public") else join.get("second")])
    domain = domain_from_spec(parts["domain"], parts.get("measures", {}), files, reading)
    domain, searches = searches_of(domain, parts["domain"], folder, categories)
    labels = labels_from_spec(parts["domain"], domain, files)
    unit = _of_unit(domain, protected.get("unit", "row"))
    settings = SqlSettings(
        unit=unit[0] if unit else None,
        of_unit=tuple(unit[1]) if unit else (),
        today=_today(source),
        join=join_columns(join.get("on")),
    )
    asked, statements = _asked(domain, parts["workload"], unit, settings)
    workload = together(asked)
    paid = tuple(
        search.found.named()
        for search in searches
        if search.found is not None and search.found.private
    )
    rows = None
    if "rows" in protected:
        rows = whole("[privacy] rows", protected["rows"], 1, MOST_ROWS)
    with within("[output] "):
        options = Options(
            **output,
            guard=plan["guard"],
            rows=rows,
            labels=labels,
            searches=paid,
            statements=statements,
            today=settings.today or "",
            joined_on=settings.join or (),
        )
    privacy = _privacy(protected, options.level, workload, key_reading(reading))
    series, privacy = _series(parts, domain, privacy, searches)
    # the second table must be of the unit's own rows, or public; that is checked although no data
    # are there
    if join:
        with within(f"{WHERE_JOINED}: "):
            check_unit(Joined(None, **join), privacy.unit_column, privacy.unit_reading)
    check_searches(searches, privacy)
    for key in options.covariances:
        table_position(
            written(workload.products), key
        )  # refuses a name that no table has, or several have
    beside = None if stored is None else folder / f"{stored.parts[-1]}.ledger"
    return Spec(
        source=stored or data,
        layout=layout_of(source, "[source]"),
        join=join,
        privacy=privacy,
        rows=rows,
        workload=workload,
        strategy=plan["strategy"],
        seconds=plan["seconds"],
        objective=plan["objective"],
        ledger=beside if ledger["path"] is None else folder / ledger["path"],
        dataset=ledger["dataset"],
        share=ledger["share"],
        options=options,
        parts=tuple(with_domain(part, workload.domain).products for part in asked),
        searches=searches,
        impossible=impossible_from_spec(workload.domain, parts.get("impossible", [])),
        series=series,
        public=public_from_spec(workload.domain, parts.get("public", []), files),
    )


def _series(
    parts: Mapping[str, Any],
    domain: Domain,
    privacy: Privacy | Least,
    searches: Sequence[CategorySearch],
) -> tuple[SeriesOptions | None, Privacy | Least]:
    """Read [series]; return it, and the budget that protects a unit in all periods together. Refuse what a series cannot have."""
    if "series" not in parts:
        return None, privacy
    table: dict[str, Any] = known_keys("[series]", parts["series"], ["along", "late"])
    if "along" not in table:
        raise InputError(
            "[series] must have along = the attribute of dates whose periods are published one "
            "after the other."
        )
    with within("[series] "):
        series = SeriesOptions(**table)
        series.dates(domain)
    if isinstance(privacy, Least):
        raise refuse(
            "the budget of a spec with [series]",
            LEAST,
            "rho, or epsilon and delta",
            "Give the budget of all periods together.",
        )
    other = parts.get("plan", {}).get("objective", "total") != "total"
    for what, there, advice in (
        (
            "[plan] objective",
            other,
            "Its total error is the least; give a table that must be more exact a weight.",
        ),
        (
            "unknown categories",
            bool(searches),
            "List them, such as those that were found for a release of the rows so far.",
        ),
        (
            "[[impossible]]",
            "impossible" in parts,
            "Only the model of one release uses it; leave it out.",
        ),
        (
            "[[public]]",
            "public" in parts,
            "It would have to be known for every period to come; leave it out.",
        ),
    ):
        if there:
            raise refuse("a spec with [series]", f"one with {what}", "one without", advice)
    if series.late == "arrival" and privacy.unit_column is not None:
        raise refuse(
            "[series] late",
            "arrival",
            '"drop" where a column names the units',
            "What a unit adds later would have no bound.",
        )
    return series, series.privacy(privacy, domain)


def read_toml(text: str, name: str = "the spec") -> dict[str, Any]:
    """Read TOML; refuse what is no TOML, nested too deeply, or has numbers of thousands of digits."""
    advice = f"A spec has numbers of at most {MOST_DIGITS} digits, and tables and lists at most {_MOST_NESTED} deep."
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}.") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or endless nesting
        raise InputError(f"{name} cannot be read. {advice}") from None
    level: list[object] = [table]
    for _ in range(_MOST_NESTED):
        below = [
            value.values() if isinstance(value, Mapping) else value
            for value in level
            if isinstance(value, (Mapping, list))
        ]
        level = [entry for entries in below for entry in entries]
    if level:
        raise InputError(f"{name} is nested too deeply. {advice}")
    return table


def _refuse_blanks(name: str, table: Mapping[str, Any]) -> None:
    """Refuse a draft that still has blanks, and name the places of all of them, such as domain.sex."""
    blanks: dict[str, None] = {}
    ahead: list[tuple[tuple[str, ...], object]] = [((), table)]
    while ahead:
        keys, value = ahead.pop(0)
        if value == BLANK:
            blanks[".".join(keys[:2])] = None
        elif isinstance(value, Mapping):
            ahead[:0] = [((*keys, str(key)), entry) for key, entry in value.items()]
        elif isinstance(value, list):
            ahead[:0] = [(keys, entry) for entry in value]
    if blanks:
        listed = ", ".join([*blanks][:_MOST_LISTED]) + (
            f" and {len(blanks) - _MOST_LISTED} more" if len(blanks) > _MOST_LISTED else ""
        )
        raise InputError(
            f"{name} still has {pluralize(len(blanks), 'place')} to fill in: {listed}. "
            f"Replace every {BLANK!r} by a public value, or remove the attribute; comments in the "
            "file and docs/spec.md show how."
        )


_BUDGETS: Mapping[tuple[str, ...], Callable[..., Budget]] = {
    ("rho",): ZCDP,
    ("epsilon",): PureDP,
    ("epsilon", "delta"): ApproxDP,
}


def key_reading(reading: Mapping[str, Any]) -> Reading:
    """Return how units, and the keys of a join, are read under the keys of [source]."""
    about_texts = ("nulls", "trim", "ignore_case")
    return Reading(**{name: reading[name] for name in about_texts if name in reading})


def _privacy(
    table: Mapping[str, Any], level: float, workload: Workload, reading: Reading
) -> Privacy | Least:
    unit_column, max_rows, max_per_cell = _unit(table.get("unit", "row"), workload)
    protected = (
        table.get("neighbours", "add_remove"),
        unit_column,
        max_rows,
        max_per_cell,
        READ_AS_IT_IS if unit_column is None else reading,
    )
    given = tuple(key for key in ("epsilon", "delta", "rho") if key in table)
    of = next((key for key in ("epsilon", "rho") if table.get(key) == LEAST), None)
    if of is not None and not (of == "rho" and "epsilon" in given):
        return Least(of, table.get("delta"), level, *protected)
    if given not in _BUDGETS:
        raise InputError(
            "[privacy] must have epsilon, or epsilon and delta, or rho; got "
            f"{', '.join(given) or 'none of them'}."
        )
    return Privacy(_BUDGETS[given](**{key: table[key] for key in given}), *protected)


def _unit(value: object, workload: Workload) -> tuple[str | None, int, PerCellBound | None]:
    if value == "row":
        return None, 1, None
    if not isinstance(value, Mapping):
        raise refuse(
            "[privacy] unit",
            value,
            "'row' or a table such as { column = 'person_id', max_rows = 5 }",
        )
    table: dict[str, Any] = known_keys(
        "[privacy] unit", value, ["column", "max_rows", "max_per_cell", "cell", "of_unit"]
    )
    if "column" not in table or "max_rows" not in table:
        got = ", ".join(table) or "neither"
        raise InputError(
            f"[privacy] unit must have column and max_rows; got {got}. Say how many rows of a "
            "unit count."
        )
    cell = table.get("cell")
    if "max_per_cell" not in table and "cell" in table:
        raise refuse("[privacy] unit cell", cell, "left out where there is no max_per_cell")
    if not (cell is None or isinstance(cell, (str, list))):
        raise refuse("[privacy] unit cell", cell, "an attribute or a list of them")
    limit = per_cell(workload, table["max_per_cell"], cell) if "max_per_cell" in table else None
    return table["column"], table["max_rows"], limit


_Unit = tuple[str, Sequence[str]] | None
"""The column of the unit, and the attributes in which its rows agree; None where every row is a unit."""


def _of_unit(domain: Domain, unit: object) -> _Unit:
    if not isinstance(unit, Mapping):
        return None
    names = unit.get("of_unit", [])
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name in domain.names for name in names
    ):
        raise refuse(
            "[privacy] unit of_unit",
            names,
            f"a list of attributes ({', '.join(domain.names)}) in which the rows of a unit agree",
        )
    return str(unit.get("column")), names


def _today(source: Mapping[str, Any]) -> str | None:
    """Return the day that CURRENT_DATE means, which [source] may state."""
    if "today" not in source:
        return None
    with within("[source] "):
        day = parse_day(str(source["today"]))
    return None if day is None else day.isoformat()


def _asked(
    domain: Domain, value: object, unit: _Unit, settings: SqlSettings
) -> tuple[list[Workload], tuple[str, ...]]:
    """Return the workload of every part, and the statements of SQL; all are over one domain with the levels that the statements make."""
    if not isinstance(value, list) or not value:
        raise InputError(
            "The workload is empty; add at least one part [[workload]] with marginals = { ways = "
            "1 } or queries = { ... }."
        )
    parts: list[
        tuple[str, object, int]
    ] = []  # of each part its name, its table, and its number of statements of SQL
    read: list[Statement] = []
    for number, entry in enumerate(value, 1):
        where, before = message("[[workload]] number {place}", place=number), len(read)
        if isinstance(entry, Mapping) and "sql" in entry:
            with within(message("{where}: ", where=where)):
                read += read_statements(domain, [entry["sql"]], settings)
        parts.append((where, entry, len(read) - before))
    every = list(over_common_domain(read)) if read else []
    made, ahead = every[0].domain if every else domain, iter(every)
    asked = [
        _part(made, entry, unit, where, [next(ahead) for _ in range(count)])
        for where, entry, count in parts
    ]
    return asked, tuple(statement.text for statement in every)


def _part(
    domain: Domain, value: object, unit: _Unit, where: str, statements: Sequence[Statement]
) -> Workload:
    table: dict[str, Any] = known_keys(
        where, value, [*_ASKED, "weight", "sum", "count", "weighted_by", *_TARGETS]
    )
    given = [name for name in _ASKED if name in table]
    if len(given) != 1:
        raise InputError(
            f"{where} must have exactly one of {', '.join(_ASKED)}; got "
            f"{' and '.join(given) or 'none of them'}."
        )
    if given[0] in _STATISTICS:
        return _statistic_part(domain, given[0], table, where)
    wanted = {name: table[name] for name in _TARGETS if name in table}
    if statements and (
        beside := [name for name in ("sum", "count", "weighted_by") if name in table]
    ):
        raise refuse(
            f"a key of {where}, which has sql,",
            beside[0],
            "left out: the statement says what is counted and summed",
        )
    common = {
        "weight": table.get("weight", 1),
        "sum": table.get("sum"),
        "count": table.get("count", "rows"),
        "of_unit": unit[1] if unit else (),
    }
    if unit is None and common["count"] == "units":
        advice = "Name the column of the unit in [privacy] unit."
        raise refuse(f"{where}: count", "units", '"rows" where every row is a unit', advice)
    with within(message("{where}: ", where=where)):
        if statements:
            asked = together([statement.workload(common["weight"]) for statement in statements])
            if wanted and asked.statistics:
                raise InputError(
                    "Targets of sql are of counts and sums. Ask for means in a part of their own: "
                    "means = { of, by }, with a size."
                )
        elif "queries" in table:
            sets = table["queries"]
            if isinstance(sets, Mapping):
                sets = {name: _windows(domain, name, value) for name, value in sets.items()}
            asked = queries(domain, sets, **common)
        else:
            tables: Any = known_keys("marginals", table["marginals"], ["ways", "upto", "of"])
            asked = marginals(domain, **common, **tables)
        asked = asked.weighted_by(table["weighted_by"]) if "weighted_by" in table else asked
        return asked.within(**wanted) if wanted else asked


def _windows(domain: Domain, name: str, value: Any) -> Any:
    """Replace { rolling = 3 } on an attribute of dates by the ranges of all windows of 3 periods; return anything else as it is."""
    if not (isinstance(value, Mapping) and [*value] == ["rolling"]):
        return value
    kind = domain.kind(one_of("an attribute of a query", name, domain.names))
    if not isinstance(kind, Dates):
        raise refuse(
            f"rolling windows on {name}",
            type(kind).__name__,
            "windows of dates",
            "Give ranges = [[low, high], ...].",
        )
    width = whole(f"the window on {name}", value["rolling"], 1, kind.regular)
    labels = list(map(str, kind.regular_labels))
    return {
        "ranges": [
            [labels[start], labels[start + width - 1]] for start in range(kind.regular - width + 1)
        ]
    }


def _statistic_part(domain: Domain, kind: str, table: Mapping[str, Any], where: str) -> Workload:
    """Return the workload of a part that asks for means, quantiles or a distribution function."""
    allowed = ["weight", "size", *(["margin", "rmse", "weighted_by"] if kind == "means" else [])]
    foreign = [name for name in table if name not in (kind, *allowed)]
    if foreign:
        advice = "Other targets, and sums, are of tables: give them to queries that ask for the same table."
        raise refuse(
            f"a key of {where}, which asks for {kind},",
            foreign[0],
            f"one of {', '.join([kind, *allowed])}",
            advice,
        )
    keys = ["of", "at", "by"] if kind == "quantiles" else ["of", "by"]
    with within(message("{where}: ", where=where)):
        asked: dict[str, Any] = {"by": [], **known_keys(kind, table[kind], keys)}
        for name in keys:
            if name not in asked:
                raise InputError(
                    f"{kind} must have {name}; it has {', '.join(table[kind]) or 'nothing'}."
                )
        made = _STATISTICS[kind](
            domain,
            **asked,
            **{name: table[name] for name in allowed if name in table and name != "weighted_by"},
        )
        return made.weighted_by(table["weighted_by"]) if "weighted_by" in table else made


def asked_about(what: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the attributes and the measures that a release of a spec, a plan or a workload reads, in the order of the domain."""
    if isinstance(what, Plan):
        return what.used()
    workload = what.workload if isinstance(what, Spec) else what
    if not isinstance(workload, Workload):
        raise refuse("what to check", type(what).__name__, "a spec, a plan or a workload")
    names = {name for product in workload for name in product.attributes}
    if isinstance(what, Spec) and is_data_dependent(what.strategy):
        from leastnoise._mechanisms import mechanism_for  # loads all mechanisms, which is slow

        names.update(mechanism_for(what.strategy, workload).decision_attributes(workload))
    read = {
        part
        for name in workload.measures
        if name is not None
        for part in factor_measures(workload.domain.measure(name))
    }
    return (
        tuple(name for name in workload.domain.names if name in names),
        tuple(
            name
            for name, measure in workload.domain.measures.items()
            if measure in read and type(measure) is Measure
        ),
    )


def read_plan(path: Path, what: Spec) -> Plan:
    """Read a plan from a file, and refuse one that was made from another spec."""
    made = plan_from_file(path)
    if other := other_parts(made, what):
        raise InputError(
            f"The plan {path} is of another spec: its {', '.join(other)} differ. Plan again, or "
            "give the spec that it was made from."
        )
    return made


def other_parts(made: Plan, what: Spec) -> list[str]:
    """Return the names of the parts of a spec that differ from what a plan was made for."""
    asked = what.planned_privacy
    wanted = smallest_privacy(asked)
    same = made.privacy.within(wanted.budget) == wanted and type(made.privacy.budget) is type(
        wanted.budget
    )
    of_plan, of_spec = (
        (workload.to_json(), workload.statistics) for workload in (made.workload, what.workload)
    )
    kept = {
        "[privacy]": same and stated_privacy(asked) in (None, made.privacy),
        "[domain]": declared(made.domain) == declared(what.domain),
        "[[workload]]": of_plan == of_spec,
        "[series]": series_of(made) == what.series,
    }
    return [name for name, fits in kept.items() if not fits]
