"""Read the searches for bounds that a spec requests instead of public bounds.

To find a bound privately, the spec has a table instead of the number: ``max_rows`` of the unit,
``clip`` of a measure, ``bins`` or ``integers`` of an attribute. Before the search the spec is read
with the widest bounds that the search may find; after it, with the bounds that were found.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._domain import Domain, Reading, known_keys
from leastnoise._plan import COVERS, BoundsPlan, candidate_edges, plan_bounds, plan_max_rows
from leastnoise._planning import Least, stated_privacy
from leastnoise._release import FoundBounds, read_bounds
from leastnoise._spec._domain import prefix_errors
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError, exact, exact_positive, number_text, refuse, whole
from leastnoise._trusted.measurements import MOST_ROWS

BOUNDS_SHARE = "1/20"
"""Share of the budget for each search for bounds that names no other."""
_SEARCH_KEYS = ("most", "share", "covers", "found")
_RANGE_KEYS = ("low", "least", *_SEARCH_KEYS)
_BIN_KEYS = (*_RANGE_KEYS, "count", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsRequest:
    """A table in a spec that requests a search for bounds.

    Attributes:
        path: the keys from the top of the spec to the table, such as privacy, unit, max_rows.
        settings: the keys of the table.
    """

    path: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def where(self) -> str:
        """The place of the table, for messages."""
        *table, key = self.path
        if table == ["privacy", "unit"]:
            return "[privacy] unit max_rows"
        return f"[{'.'.join(table)}] {key}"

    @property
    def name(self) -> str:
        """The name the name of the bounds, such as ``max_rows`` or ``clip of pay``."""
        if self.path[0] == "privacy":
            return "max_rows"
        return f"{self.path[2]} of {self.path[1]}"

    @property
    def directory(self) -> str:
        """The directory for the result, relative to the spec."""
        usual = "max-rows" if self.path[0] == "privacy" else f"{self.path[1]}-{self.path[2]}"
        directory = self.settings.get("found", usual)
        if not isinstance(directory, str) or not directory:
            raise refuse(f"{self.where} found", directory, "the name of a directory")
        return directory

    @property
    def most(self) -> Fraction:
        """The largest upper bound that may be found."""
        if "most" not in self.settings:
            raise InputError(
                f"{self.where} must have 'most', the largest bound that may be found; write for "
                f"example {self._example}."
            )
        return exact(f"{self.where} most", self.settings["most"])

    @property
    def lowest(self) -> Fraction:
        """The public lower bound, or the smallest bound that may be found."""
        stated_keys = [key for key in ("low", "least") if key in self.settings]
        if len(stated_keys) != 1:
            raise InputError(
                f"{self.where} must have either 'low', the public lower bound, or 'least', the "
                f"smallest lower bound that may be found; write for example {self._example}."
            )
        return exact(f"{self.where} {stated_keys[0]}", self.settings[stated_keys[0]])

    @property
    def _example(self) -> str:
        if self.path[0] == "privacy":
            return "max_rows = { most = 1000 }"
        if self.path[2] == "bins":
            return "bins = { low = 0, most = 1000000, count = 20 }"
        return f"{self.path[2]} = {{ low = 0, most = 1000000 }}"

    def value(self, found_bounds: FoundBounds | None) -> Any:
        """Return the value for the table: the found bounds, or the widest possible bounds."""
        if found_bounds is not None:
            return self.value_between(found_bounds.low, found_bounds.high)
        if self.path[0] == "privacy":
            whole(f"{self.where} most", self.settings.get("most"), 1, MOST_ROWS)
            return self.value_between(Fraction(0), self.most)
        return self.value_between(self.lowest, self.most)

    def value_between(self, low: Fraction, high: Fraction) -> Any:
        """Return the setting that replaces the request in a spec, from two bounds."""
        if self.path[0] == "privacy":
            return int(high)
        if self.path[2] == "integers":
            with prefix_errors(f"{self.where}: "):
                return [_whole_number(low), _whole_number(high)]
        if self.path[2] == "clip":
            return [number_text(low), number_text(high)]
        bins = {key: self.settings[key] for key in ("count", "closed") if key in self.settings}
        return {"low": number_text(low), "high": number_text(high), **bins}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsSearch:
    """A private search for bounds, of the rows of a unit or of a number.

    It costs a share of the budget, and its result is written to ``directory``. Before the search
    ``result`` is None.

    Attributes:
        name: the name of the bounds, such as ``max_rows`` or ``clip of pay``.
        request: the table of the spec.
        share: the share of the budget.
        directory: the directory of the result.
        column: the column of the values; empty for the rows of a unit.
        unit: the unit of which the bounds are whole multiples; None without a unit.
        reading: the reading of the values.
        result: the result of the search; None before it.
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
    def narrowest_values(self) -> tuple[Any, Any]:
        """The values that replace the table for the lowest and the highest pair of candidates.

        If both bounds are searched for, the two pairs have no value in common. So a spec that is
        valid with both pairs is valid with all bounds.
        """
        lowest = Fraction(0)
        if self.column:
            lowest = self.request.lowest
        edges = candidate_edges(
            lowest,
            self.request.most,
            unit=self.unit or (None if self.column else Fraction(1)),
            is_low_found="least" in self.request.settings,
        )
        lowest_pair = edges[:2]
        highest_pair = lowest_pair
        if "least" in self.request.settings:
            highest_pair = edges[-2:]
        low, high = (self.request.value_between(*pair) for pair in (lowest_pair, highest_pair))
        return low, high

    def plan(self, whole_privacy: Privacy) -> BoundsPlan:
        """Return the plan of the search within its share of a budget."""
        privacy = whole_privacy.scaled(self.share)
        settings = self.request.settings
        covers = settings.get("covers", COVERS)
        with prefix_errors(f"{self.request.where}: "):
            if not self.column:
                return plan_max_rows(privacy, settings["most"], covers=covers)
            return plan_bounds(
                self.column,
                privacy,
                self.request.most,
                low=settings.get("low"),
                least=settings.get("least"),
                unit=self.unit,
                covers=covers,
                reading=self.reading,
            )


def read_bounds_requests(parts: Mapping[str, Any]) -> tuple[BoundsRequest, ...]:
    """Return the searches for bounds that the parts of a spec request."""
    requests = []
    for path, table in _searchable_settings(parts):
        value = table[path[-1]]
        if not isinstance(value, Mapping) or (path[-1] == "bins" and "most" not in value):
            continue
        request = BoundsRequest(path=path, settings=value)
        keys: Sequence[str] = _RANGE_KEYS
        if path[0] == "privacy":
            keys = _SEARCH_KEYS
        if path[-1] == "bins":
            keys = _BIN_KEYS
        known_keys(request.where, value, list(keys))
        if path[0] != "privacy":
            request.lowest  # noqa: B018 - raises if it is missing
        request.most  # noqa: B018
        requests.append(request)
    return tuple(requests)


def _searchable_settings(
    parts: Mapping[str, Any],
) -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Return the path and the table of each setting that may request a search."""
    places: list[tuple[tuple[str, ...], Mapping[str, Any]]] = []
    unit = _table(_table(parts, "privacy"), "unit")
    places.append((("privacy", "unit", "max_rows"), unit))
    for part, keys in (("domain", ("bins", "integers")), ("measures", ("clip",))):
        for name in _table(parts, part):
            table = _table(_table(parts, part), name)
            places += [((part, name, key), table) for key in keys]
    return [(path, table) for path, table in places if path[-1] in table]


def _table(parts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a part; empty without one."""
    value = parts.get(name, {})
    return value if isinstance(value, Mapping) else {}


def read_found_bounds(
    requests: Sequence[BoundsRequest], folder: Path, found_bounds: Mapping[str, FoundBounds]
) -> dict[str, FoundBounds]:
    """Return the bounds that earlier searches found, by the names of the bounds.

    Args:
        requests: of the spec.
        folder: of the spec.
        found_bounds: bounds that were found and not written.
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
            raise _other_search_error(request, directory)
        results[request.name] = bounds
    return results


def with_bounds(
    parts: Mapping[str, Any],
    requests: Sequence[BoundsRequest],
    found_bounds: Mapping[str, FoundBounds],
) -> dict[str, Any]:
    """Return the parts of a spec with numbers in the places of the requests."""
    values = {request.path: request.value(found_bounds.get(request.name)) for request in requests}
    return _with_values(parts, values)


def with_narrowest_bounds(
    parts: Mapping[str, Any], searches: Sequence[BoundsSearch]
) -> Iterator[dict[str, Any]]:
    """Yield a spec's parts as if each open search found narrow bounds."""
    for end in range(2):
        values = {
            search.request.path: search.narrowest_values[end]
            for search in searches
            if search.result is None
        }
        yield _with_values(parts, values)


def _with_values(parts: Mapping[str, Any], values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Return the parts of a spec with values at the places of some keys."""
    numbered = deepcopy(dict(parts)) if values else dict(parts)
    for path, value in values.items():
        table = numbered
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value
        per_cell = table.get("max_per_cell")
        if path[0] == "privacy" and isinstance(per_cell, int):
            table["max_per_cell"] = min(per_cell, value)
    return numbered


def list_bounds_searches(
    requests: Sequence[BoundsRequest],
    domain: Domain,
    folder: Path,
    found_bounds: Mapping[str, FoundBounds],
) -> tuple[BoundsSearch, ...]:
    """Return the searches of the requests, with the readings of their columns."""
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
                    f"{request.where} share", request.settings.get("share", BOUNDS_SHARE)
                ),
                directory=folder / request.directory,
                column=column,
                unit=unit,
                reading=reading,
                result=found_bounds.get(request.name),
            )
        )
    return tuple(searches)


def bounds_plans(
    searches: Sequence[BoundsSearch], privacy: Privacy | Least
) -> dict[str, BoundsPlan]:
    """Return the plan of each search by the name of its bounds; empty for a least budget."""
    whole_privacy = stated_privacy(privacy)
    if whole_privacy is None:
        return {}
    return {search.name: search.plan(whole_privacy) for search in searches}


def check_bounds_searches(searches: Sequence[BoundsSearch], privacy: Privacy | Least) -> None:
    """Raise for a budget that is not a number, or for bounds of another search."""
    whole_privacy = stated_privacy(privacy)
    for search in searches:
        if whole_privacy is None:
            raise refuse(
                f"[privacy] with {search.name} to be found",
                "least",
                "a budget of numbers",
                f"A search for {search.name} takes a share of the budget before the plan is made.",
            )
        plan = search.plan(whole_privacy)
        if search.result is not None and search.result.plan != plan:
            raise _other_search_error(search.request, search.directory)


def _other_search_error(request: BoundsRequest, directory: Path) -> InputError:
    """Return the error for bounds from a search that the spec does not request."""
    return InputError(
        f"The bounds in {directory} were found by another search than {request.where} requests: "
        "its budget, unit, candidates or reading differ. Use the settings of that search, or name "
        "another directory: found = ..."
    )


def _whole_number(number: Fraction) -> int:
    """Return a bound as a whole number; raise for any other."""
    if number.denominator != 1:
        raise refuse("the bounds", number_text(number), "whole numbers")
    return int(number)
