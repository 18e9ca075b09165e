"""Read the searches for bounds that a spec requests instead of public bounds.

If a bound must be found privately, the spec has a TOML table in place of the number. A search can
find ``max_rows`` of the unit, ``clip`` of a measure, and ``bins`` or ``integers`` of an attribute.
Before the search, the spec is read with the widest bounds that the search may find. After the
search, the spec is read again with the bounds that were found.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._domain import Domain, Reading, checked_keys
from leastnoise._plan import COVERS, BoundsPlan, candidate_edges, plan_bounds, plan_max_rows
from leastnoise._planning import Least, stated_privacy
from leastnoise._publication import FoundBounds, read_bounds
from leastnoise._spec._checks import prefix_errors
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, exact, exact_positive, number_text, refuse, whole
from leastnoise._trusted.measurements import MOST_ROWS

BOUNDS_SHARE = "1/20"
"""Share of the budget for each search for bounds that states no other share."""
_SEARCH_KEYS = ("most", "share", "covers", "found")
_RANGE_KEYS = ("low", "least", *_SEARCH_KEYS)
_BIN_KEYS = (*_RANGE_KEYS, "count", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsRequest:
    """A TOML table in a spec that requests a search for bounds.

    Attributes:
        path: the keys from the top of the spec to the table, such as privacy, unit, max_rows.
        settings: the keys and values of the table.
    """

    path: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def location(self) -> str:
        """The location of the table in the spec, for messages."""
        *table, key = self.path
        if table == ["privacy", "unit"]:
            return "[privacy] unit max_rows"
        return f"[{'.'.join(table)}] {key}"

    @property
    def name(self) -> str:
        """The name of the bounds, such as ``max_rows`` or ``clip of pay``."""
        if self.path[0] == "privacy":
            return "max_rows"
        return f"{self.path[2]} of {self.path[1]}"

    @property
    def directory(self) -> str:
        """The directory for the search result, relative to the folder of the spec."""
        usual = "max-rows" if self.path[0] == "privacy" else f"{self.path[1]}-{self.path[2]}"
        directory = self.settings.get("found", usual)
        if not isinstance(directory, str) or not directory:
            raise refuse(f"{self.location} found", directory, "the name of a directory")
        return directory

    @property
    def largest_bound(self) -> Fraction:
        """The largest upper bound that the search may find."""
        if "most" not in self.settings:
            raise InputError(
                f"{self.location} must have 'most', the largest bound that may be found; write for "
                f"example {self._example}."
            )
        return exact(f"{self.location} most", self.settings["most"])

    @property
    def lowest_bound(self) -> Fraction:
        """The public lower bound, or the smallest bound that the search may find."""
        stated_keys = [key for key in ("low", "least") if key in self.settings]
        if len(stated_keys) != 1:
            raise InputError(
                f"{self.location} must have either 'low' or 'least'. 'low' is the public lower "
                "bound; 'least' is the smallest lower bound that a search may find. Write for "
                f"example {self._example}."
            )
        return exact(f"{self.location} {stated_keys[0]}", self.settings[stated_keys[0]])

    def check_bounds(self) -> None:
        """Raise InputError if a bound of the search is missing or is not a number."""
        if self.path[0] != "privacy":
            _ = self.lowest_bound
        _ = self.largest_bound

    @property
    def _example(self) -> str:
        """An example of the setting with a search, as TOML."""
        if self.path[0] == "privacy":
            return "max_rows = { most = 1000 }"
        if self.path[2] == "bins":
            return "bins = { low = 0, most = 1000000, count = 20 }"
        return f"{self.path[2]} = {{ low = 0, most = 1000000 }}"

    def setting(self, found_bounds: FoundBounds | None) -> Any:
        """Return the setting that replaces the table in the spec.

        The setting has the found bounds or, before the search, the widest possible bounds.
        """
        if found_bounds is not None:
            return self.setting_for_bounds(found_bounds.low, found_bounds.high)
        if self.path[0] == "privacy":
            whole(f"{self.location} most", self.settings.get("most"), 1, MOST_ROWS)
            return self.setting_for_bounds(Fraction(0), self.largest_bound)
        return self.setting_for_bounds(self.lowest_bound, self.largest_bound)

    def setting_for_bounds(self, low: Fraction, high: Fraction) -> Any:
        """Return the setting that replaces the table, for two bounds."""
        if self.path[0] == "privacy":
            return int(high)
        if self.path[2] == "integers":
            with prefix_errors(f"{self.location}: "):
                return [_require_whole_number(low), _require_whole_number(high)]
        if self.path[2] == "clip":
            return [number_text(low), number_text(high)]
        bins = {key: self.settings[key] for key in ("count", "closed") if key in self.settings}
        return {"low": number_text(low), "high": number_text(high), **bins}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsSearch:
    """A private search for bounds: of the rows per unit, or of a numeric column.

    The search costs a share of the budget, and its result is written to ``directory``.

    Attributes:
        name: the name of the bounds, such as ``max_rows`` or ``clip of pay``.
        request: the table of the spec that requests the search.
        share: the share of the budget that the search costs.
        directory: the directory of the result.
        column: the numeric column; empty for the number of rows per unit.
        unit: the bounds are whole multiples of this number; None without a unit.
        reading: how texts of the column become numbers.
        result: the result of the search; None before the search.
    """

    name: str
    request: BoundsRequest
    share: Fraction
    directory: Path
    column: str
    unit: Fraction | None
    reading: Reading
    result: FoundBounds | None = None

    @property
    def narrowest_settings(self) -> tuple[Any, Any]:
        """The settings for the lowest and for the highest pair of candidate bounds.

        If both bounds are searched for, the two pairs have no value in common. Hence a spec that is
        valid with both pairs is valid with all bounds.
        """
        lowest = Fraction(0)
        if self.column:
            lowest = self.request.lowest_bound
        edges = candidate_edges(
            lowest,
            self.request.largest_bound,
            unit=self.unit or (None if self.column else Fraction(1)),
            is_low_found="least" in self.request.settings,
        )
        lowest_pair = edges[:2]
        highest_pair = lowest_pair
        if "least" in self.request.settings:
            highest_pair = edges[-2:]
        return (
            self.request.setting_for_bounds(*lowest_pair),
            self.request.setting_for_bounds(*highest_pair),
        )

    def plan(self, spec_privacy: Privacy) -> BoundsPlan:
        """Return the plan of the search for its share of the spec's budget."""
        privacy = spec_privacy.scaled(self.share)
        settings = self.request.settings
        covers = settings.get("covers", COVERS)
        with prefix_errors(f"{self.request.location}: "):
            if not self.column:
                return plan_max_rows(privacy, settings["most"], covers=covers)
            return plan_bounds(
                self.column,
                privacy,
                self.request.largest_bound,
                low=settings.get("low"),
                least=settings.get("least"),
                unit=self.unit,
                covers=covers,
                reading=self.reading,
            )


def read_bounds_requests(spec_tables: Mapping[str, Any]) -> tuple[BoundsRequest, ...]:
    """Return the requests for bounds that the tables of a spec contain."""
    requests = []
    for path, table in _searchable_settings(spec_tables):
        value = table[path[-1]]
        if not isinstance(value, Mapping) or (path[-1] == "bins" and "most" not in value):
            continue
        request = BoundsRequest(path=path, settings=value)
        keys: Sequence[str] = _RANGE_KEYS
        if path[0] == "privacy":
            keys = _SEARCH_KEYS
        if path[-1] == "bins":
            keys = _BIN_KEYS
        checked_keys(request.location, value, list(keys))
        request.check_bounds()
        requests.append(request)
    return tuple(requests)


def _searchable_settings(
    spec_tables: Mapping[str, Any],
) -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Return the path and enclosing table of each setting that may be a search."""
    places: list[tuple[tuple[str, ...], Mapping[str, Any]]] = []
    unit = _table_or_empty(_table_or_empty(spec_tables, "privacy"), "unit")
    places.append((("privacy", "unit", "max_rows"), unit))
    for part, keys in (("domain", ("bins", "integers")), ("measures", ("clip",))):
        for name in _table_or_empty(spec_tables, part):
            table = _table_or_empty(_table_or_empty(spec_tables, part), name)
            places += [((part, name, key), table) for key in keys]
    return [(path, table) for path, table in places if path[-1] in table]


def _table_or_empty(parts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the table under a key, or an empty table if there is none."""
    value = parts.get(name, {})
    return value if isinstance(value, Mapping) else {}


def read_found_bounds(
    requests: Sequence[BoundsRequest], folder: Path, found_bounds: Mapping[str, FoundBounds]
) -> dict[str, FoundBounds]:
    """Return the bounds that earlier searches found, by the name of the bounds.

    Args:
        requests: the requests of the spec.
        folder: the folder of the spec.
        found_bounds: bounds that searches found and that are not in a file yet, by name.
    """
    results = dict(found_bounds)
    for request in requests:
        directory = folder / request.directory
        if request.name in found_bounds or not os.path.lexists(directory):
            continue
        bounds = read_bounds(directory)
        if not bounds.private:
            raise InputError(
                f"The bounds in {directory} were found with a seed, which protects nobody. Move "
                "them away, and find them again."
            )
        if bounds.plan.bounds_row_counts != (request.path[0] == "privacy"):
            raise _mismatched_search_error(request, directory)
        results[request.name] = bounds
    return results


def with_bounds(
    spec_tables: Mapping[str, Any],
    requests: Sequence[BoundsRequest],
    found_bounds: Mapping[str, FoundBounds],
) -> dict[str, Any]:
    """Return the tables of a spec with bounds in place of requests for bounds."""
    values = {request.path: request.setting(found_bounds.get(request.name)) for request in requests}
    return _replace_settings(spec_tables, values)


def with_narrowest_bounds(
    spec_tables: Mapping[str, Any], searches: Sequence[BoundsSearch]
) -> Iterator[dict[str, Any]]:
    """Yield a spec's tables with the lowest and then the highest possible bounds.

    Only the bounds of unfinished searches are replaced.
    """
    for end in range(2):
        values = {
            search.request.path: search.narrowest_settings[end]
            for search in searches
            if search.result is None
        }
        yield _replace_settings(spec_tables, values)


def _replace_settings(
    spec_tables: Mapping[str, Any], settings: Mapping[tuple[str, ...], Any]
) -> dict[str, Any]:
    """Return a copy of the tables of a spec with other values of some settings."""
    replaced_tables = deepcopy(dict(spec_tables)) if settings else dict(spec_tables)
    for path, value in settings.items():
        table = replaced_tables
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value
        per_cell = table.get("max_per_cell")
        if path[0] == "privacy" and isinstance(per_cell, int):
            table["max_per_cell"] = min(per_cell, value)
    return replaced_tables


def build_bounds_searches(
    requests: Sequence[BoundsRequest],
    domain: Domain,
    folder: Path,
    found_bounds: Mapping[str, FoundBounds],
) -> tuple[BoundsSearch, ...]:
    """Return the searches that requests describe, with facts on their columns."""
    searches: list[BoundsSearch] = []
    for request in requests:
        column = ""
        unit: Fraction | None = None
        reading = Reading()
        if request.path[0] == "measures":
            measure = domain.measure(request.path[1])
            column = measure.column
            unit = measure.unit
            reading = measure.reading
        if request.path[0] == "domain":
            column = request.path[1]
            reading = domain.kind(column).reading
        if request.path[-1] == "integers":
            unit = Fraction(1)
        searches.append(
            BoundsSearch(
                name=request.name,
                request=request,
                share=exact_positive(
                    f"{request.location} share", request.settings.get("share", BOUNDS_SHARE)
                ),
                directory=folder / request.directory,
                column=column,
                unit=unit,
                reading=reading,
                result=found_bounds.get(request.name),
            )
        )
    return tuple(searches)


def plan_bounds_searches(
    searches: Sequence[BoundsSearch], privacy: Privacy | Least
) -> dict[str, BoundsPlan]:
    """Plan each search for bounds; the keys are the names of the bounds.

    The result is empty if the spec asks for the least budget that meets its targets.
    """
    total_privacy = stated_privacy(privacy)
    if total_privacy is None:
        return {}
    return {search.name: search.plan(total_privacy) for search in searches}


def check_bounds_searches(searches: Sequence[BoundsSearch], privacy: Privacy | Least) -> None:
    """Raise InputError if a search lacks a numeric budget, or has wrong bounds."""
    total_privacy = stated_privacy(privacy)
    for search in searches:
        if total_privacy is None:
            raise refuse(
                f"[privacy] with {search.name} to be found",
                "least",
                "a budget of numbers",
                f"A search for {search.name} takes a share of the budget before planning.",
            )
        plan = search.plan(total_privacy)
        if search.result is not None and search.result.plan != plan:
            raise _mismatched_search_error(search.request, search.directory)


def _mismatched_search_error(request: BoundsRequest, directory: Path) -> InputError:
    """Return the error for bounds of a search that differs from the request."""
    return InputError(
        f"The bounds in {directory} come from another search than the one that {request.location} "
        "requests: its budget, unit, candidates or reading differ. Use the settings of that "
        "search, or name another directory with found = ..."
    )


def _require_whole_number(number: Fraction) -> int:
    """Convert a bound to int; raise InputError if it is not whole."""
    if number.denominator != 1:
        raise refuse("the bounds", number_text(number), "whole numbers")
    return int(number)
