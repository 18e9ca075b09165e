"""Read [[workload]]: marginals, query sets, statistics and SQL statements."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from leastnoise._domain import Dates, Domain, checked_keys
from leastnoise._spec._checks import prefix_errors
from leastnoise._trusted.check import InputError, message, one_of, refuse, whole
from leastnoise._workload import (
    SqlSettings,
    Statement,
    Workload,
    cdf_queries,
    correlation_queries,
    marginals,
    mean_queries,
    over_common_domain,
    quantile_queries,
    queries,
    r_squared_queries,
    read_statements,
    regression_queries,
    together,
    variance_queries,
)

_STATISTICS: Mapping[str, Callable[..., Workload]] = {
    "means": mean_queries,
    "variances": variance_queries,
    "correlations": correlation_queries,
    "regression": regression_queries,
    "r_squared": r_squared_queries,
    "quantiles": quantile_queries,
    "cdf": cdf_queries,
}
_QUERY_KEYS = ("marginals", "queries", *_STATISTICS, "sql")
_TARGETS = ("margin", "relative", "size", "rmse")
_STATISTIC_TARGETS = ("margin", "relative", "rmse", "target_of", "scales")
_ENTRY_KEYS = ("weight", "sum", "count", "weighted_by", "size", *_STATISTIC_TARGETS)
"""All keys of an entry other than the key of its queries."""
_UnitAttributes = tuple[str, Sequence[str]] | None
"""The column of the unit, and the attributes in which its rows agree.

None where every row is a unit.
"""


def load_statements(entries: object, folder: Path) -> tuple[object, dict[int, str]]:
    """Replace names of SQL files by their contents; also return the files' names.

    The function also returns the names of these files, by the number of the entry, counted from 1.
    """
    if not isinstance(entries, list):
        return entries, {}
    loaded: list[object] = []
    files: dict[int, str] = {}
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, Mapping) and isinstance(entry.get("sql"), Mapping):
            where = f"[[workload]] number {number} sql"
            name = checked_keys(where, entry["sql"], ["file"]).get("file")
            if not isinstance(name, str):
                raise refuse(f"{where} file", name, "the path of a file of SQL statements")
            files[number] = name
            loaded.append({**entry, "sql": _read_statements_file(where, folder / name)})
        else:
            loaded.append(entry)
    return loaded, files


def _read_statements_file(location: str, file: Path) -> str:
    """Read a file of SQL statements that a workload entry names."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"{location} must be a file of SQL statements in UTF-8; {file} cannot be read as one. "
            "Its path is relative to the folder of the spec."
        ) from None


def read_unit_attributes(domain: Domain, unit: object) -> _UnitAttributes:
    """Read the unit's column, and the attributes that are equal within a unit."""
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


def read_workloads(
    domain: Domain,
    entries: object,
    unit: _UnitAttributes,
    settings: SqlSettings,
    statement_files: Mapping[int, str],
) -> tuple[list[Workload], tuple[str, ...]]:
    """Return the workload of each entry, and the texts of all SQL statements.

    All workloads have the same domain, which includes levels that SQL statements define.
    """
    if not isinstance(entries, list) or not entries:
        raise InputError(
            "The workload is empty; add at least one part [[workload]] with marginals = { ways = "
            "1 } or queries = { ... }."
        )
    statements_by_entry = _read_statements(domain, entries, settings, statement_files)
    statements = list(chain.from_iterable(statements_by_entry))
    if statements:
        statements = list(over_common_domain(statements))
        domain = statements[0].domain
    remaining_statements = iter(statements)
    workloads = []
    for number, entry in enumerate(entries, 1):
        statement_count = len(statements_by_entry[number - 1])
        entry_statements = list(islice(remaining_statements, statement_count))
        where = message("[[workload]] number {place}", place=number)
        workloads.append(_read_workload_entry(domain, entry, unit, where, entry_statements))
    return workloads, tuple(statement.text for statement in statements)


def _read_statements(
    domain: Domain,
    entries: Sequence[object],
    settings: SqlSettings,
    statement_files: Mapping[int, str],
) -> list[list[Statement]]:
    """Parse the SQL of each workload entry; report all faults in one error."""
    statements: list[list[Statement]] = []
    faults: list[str] = []
    for number, entry in enumerate(entries, 1):
        entry_statements: list[Statement] = []
        if isinstance(entry, Mapping) and "sql" in entry:
            location = statement_files.get(number, f"[[workload]] number {number}")
            try:
                _check_is_not_file_name(entry["sql"])
                entry_statements += read_statements(domain, [entry["sql"]], settings)
            except InputError as error:
                faults += [f"{location}: {fault}" for fault in error.args[0].splitlines()]
        statements.append(entry_statements)
    if faults:
        raise InputError("\n".join(faults))
    return statements


def _check_is_not_file_name(text: object) -> None:
    """Raise InputError if the SQL of an entry is the name of a file."""
    if isinstance(text, str) and text.endswith(".sql") and len(text.split()) == 1:
        raise InputError(
            f"sql must be statements; got the name of a file, {text!r}. Write "
            f'sql = {{ file = "{text}" }}.'
        )


def _read_workload_entry(
    domain: Domain,
    entry: object,
    unit: _UnitAttributes,
    location: str,
    statements: Sequence[Statement],
) -> Workload:
    """Build the workload of one ``[[workload]]`` table."""
    table: dict[str, Any] = checked_keys(location, entry, [*_QUERY_KEYS, *_ENTRY_KEYS])
    query_keys = [name for name in _QUERY_KEYS if name in table]
    if len(query_keys) != 1:
        raise InputError(
            f"{location} must have exactly one of {', '.join(_QUERY_KEYS)}; got "
            f"{' and '.join(query_keys) or 'none of them'}."
        )
    _check_inner_keys(location, query_keys[0], table[query_keys[0]], domain)
    if query_keys[0] in _STATISTICS:
        return _read_statistic(domain, query_keys[0], table, location)
    targets = {name: table[name] for name in _TARGETS if name in table}
    _check_keys_of_queries(table, location, has_sql=bool(statements))
    common = {
        "weight": table.get("weight", 1),
        "sum": table.get("sum"),
        "count": table.get("count", "rows"),
        "of_unit": unit[1] if unit else (),
    }
    if unit is None and common["count"] == "units":
        advice = "Name the column of the unit in [privacy] unit."
        raise refuse(f"{location}: count", "units", '"rows" where every row is a unit', advice)
    with prefix_errors(message("{where}: ", where=location)):
        workload = _read_entry_queries(domain, table, common, statements)
        if statements and targets and workload.statistics:
            raise InputError(
                "Targets of sql apply only to counts and sums. Request means in a separate "
                "[[workload]] entry: means = { of, by }, with a size."
            )
        if "weighted_by" in table:
            workload = workload.weighted_by(table["weighted_by"])
        totals = [product.measure for product in workload if product.is_per_unit]
        if unit is None and totals:
            raise refuse(
                "sum",
                totals[0],
                "a measure with clip where every row is a unit",
                "Name the column of the unit in [privacy] unit.",
            )
        if targets:
            return workload.within(**targets)
        return workload


def _entry_keys_of(query_key: str) -> list[str]:
    """Return the other keys that an entry with a key such as ``means`` may have."""
    if query_key not in _STATISTICS:
        return ["weight", "sum", "count", "weighted_by", *_TARGETS]
    keys = ["weight", "size"]
    if query_key in ("means", "quantiles", "cdf"):
        keys.append("weighted_by")
    if query_key == "means":
        keys += ["margin", "rmse"]
    if query_key in ("variances", "correlations", "regression", "r_squared"):
        keys += _STATISTIC_TARGETS
    return keys


def _check_inner_keys(location: str, query_key: str, value: object, domain: Domain) -> None:
    """Raise InputError if a key of the entry is inside the braces of its queries."""
    if not isinstance(value, Mapping):
        return
    for name in value:
        if name in _entry_keys_of(query_key) and name not in domain.names:
            raise InputError(
                f"{location}: {query_key} has no key {name!r}, but the entry may have it: write "
                f"{name} = ... on a line of its own below {query_key} = {{ ... }}."
            )


def _check_keys_of_queries(table: Mapping[str, Any], location: str, *, has_sql: bool) -> None:
    """Raise InputError if queries have keys of statistics, or SQL has other keys."""
    for name in ("target_of", "scales"):
        if name in table:
            allowed = "left out: it belongs to variances, correlations, regression and r_squared"
            raise refuse(f"a key of {location}", name, allowed)
    if not has_sql:
        return
    for name in ("sum", "count", "weighted_by"):
        if name in table:
            raise refuse(
                f"a key of {location}, which has sql,",
                name,
                "left out: the statement states its counts and sums",
            )


def _read_entry_queries(
    domain: Domain,
    table: Mapping[str, Any],
    common: Mapping[str, Any],
    statements: Sequence[Statement],
) -> Workload:
    """Build the workload of an entry from SQL, query sets or marginals."""
    if statements:
        return together([statement.workload(common["weight"]) for statement in statements])
    if "queries" in table:
        sets = table["queries"]
        if isinstance(sets, Mapping):
            sets = {
                name: _expand_rolling_windows(domain, name, value) for name, value in sets.items()
            }
        return queries(domain, sets, **common)
    tables: Any = checked_keys("marginals", table["marginals"], ["ways", "upto", "of"])
    return marginals(domain, **common, **tables)


def _expand_rolling_windows(domain: Domain, name: str, value: Any) -> Any:
    """Replace { rolling = 3 } by the ranges of all windows of 3 periods.

    Other values are returned unchanged.
    """
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


def _read_statistic(domain: Domain, kind: str, table: Mapping[str, Any], location: str) -> Workload:
    """Build the workload of an entry with a statistic, such as means or a CDF."""
    allowed = _entry_keys_of(kind)
    foreign = [name for name in table if name not in (kind, *allowed)]
    if foreign:
        advice = "Set other targets, and targets of sums, for queries of the same table."
        if foreign[0] == "weighted_by":
            advice = (
                "No measure is a weight times two values. For a weighted variance add a column "
                "of squares to the source, and request weighted means of both columns."
            )
        raise refuse(
            f"a key of {location}, which asks for {kind},",
            foreign[0],
            f"one of {', '.join([kind, *allowed])}",
            advice,
        )
    further_keys_by_kind = {"quantiles": ["at"], "regression": ["on"], "r_squared": ["on"]}
    further_keys = further_keys_by_kind.get(kind, [])
    keys = ["of", *further_keys, "by"]
    with prefix_errors(message("{where}: ", where=location)):
        arguments: dict[str, Any] = {"by": [], **checked_keys(kind, table[kind], keys)}
        for name in keys:
            if name not in arguments:
                raise InputError(
                    f"{kind} must have {name}; it has {', '.join(table[kind]) or 'nothing'}."
                )
        workload = _STATISTICS[kind](
            domain,
            **arguments,
            **{name: table[name] for name in allowed if name in table and name != "weighted_by"},
        )
        if "weighted_by" in table:
            return workload.weighted_by(table["weighted_by"])
        return workload
