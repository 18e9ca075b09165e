"""Plan a search for bounds of a unit's rows or of a column's values.

A search chooses from public candidates on a logarithmic grid. For a table with one row per unit,
the candidate that a given share of the units does not exceed is a quantile. A private search
chooses this candidate as it chooses any other quantile (PROOFS-quantiles.md). One unit, however
many rows it has, changes the number of units beyond a candidate by at most 1. So a search does not
depend on ``max_rows``.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias, cast

from leastnoise._domain import (
    READ_AS_IT_IS,
    Domain,
    Edges,
    Reading,
    attribute_name,
    checked_keys,
    kind_from_json,
    kind_to_json,
)
from leastnoise._fitting import choice_distance, pure_share
from leastnoise._plan._categories import CategoryPlan
from leastnoise._plan._plan_json import parse_or_refuse, read_json
from leastnoise._trusted.accounting import Budget, Privacy, fraction_from_text, privacy_from_json
from leastnoise._trusted.check import (
    Exact,
    InputError,
    exact,
    exact_positive,
    number_text,
    refuse,
    whole,
)
from leastnoise._trusted.measurements import MOST_ROWS

BOUNDS_FORMAT = "leastnoise search for bounds 1"
COVERS = "0.95"
"""The default share of the units within the bounds."""
RISK = 0.05
"""The probability that bounds miss their share by more units than the plan states."""
ROWS_OF_UNIT = "rows of a unit"
_ADVICE = "Make it again with leastnoise.plan_bounds or leastnoise.plan_max_rows."
_STEPS = ("1", "1.5", "2", "3", "5", "7")  # the candidates within each decade
_CANDIDATE_DECADES = 6  # decades of candidates below the largest, unless a unit limits them
# Largest denominator of a share, so that half of 1 less the share has denominators up to 1000.
_MOST_PARTS = 500
_LARGEST_WIDTH = Fraction(10) ** 100  # the largest range of candidates, and of units of measures
# Epsilons of choices are multiples of 1 / _EPSILON_GRID, so that the choices are exact.
_EPSILON_GRID = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsPlan:
    """A plan of a private search for bounds of a column or of ``max_rows``.

    Attributes:
        attribute: the column or attribute whose values are bounded; `ROWS_OF_UNIT` for the number
            of rows of a unit.
        kind: the kind of attribute whose edges are the candidates; its cells are closed on the
            right.
        covers: the share of the units that the bounds should include.
        is_low_found: whether the search also finds the lower bound; otherwise the lower bound is
            the first candidate.
        bounds_row_counts: whether the search bounds the number of rows of a unit instead of the
            values of a column.
        privacy: the budget of the whole search, the neighbours and the unit. ``max_rows`` is 1,
            because each unit counts once: either by its number of rows or by one random row.
    """

    attribute: str
    kind: Edges
    covers: Fraction
    is_low_found: bool
    bounds_row_counts: bool
    privacy: Privacy

    def __post_init__(self) -> None:
        attribute_name("the name of an attribute", self.attribute)
        if not isinstance(self.kind, Edges) or (self.kind.closed, self.kind.outside) != (
            "right",
            "clip",
        ):
            raise refuse(
                "the candidates of a search for bounds",
                self.kind,
                'Edges with closed = "right" and outside = "clip"',
                _ADVICE,
            )
        covers = exact("covers", self.covers)
        if not Fraction(1, 2) <= covers < 1 or covers.denominator > _MOST_PARTS:
            raise refuse(
                "covers",
                str(self.covers),
                f"from 1/2 to below 1, with a denominator of at most {_MOST_PARTS}",
                "It is the share of the units that the bounds do not clip.",
            )
        object.__setattr__(self, "covers", covers)
        if (self.privacy.max_rows, self.privacy.max_per_cell) != (1, None):
            raise refuse("max_rows of a search for bounds", self.privacy.max_rows, "1", _ADVICE)
        if self.bounds_row_counts and self.privacy.unit_column is None:
            raise refuse(
                "the unit of a search for max_rows",
                "row",
                "a column that names the units",
                "If every row is a unit, a unit has one row.",
            )
        if self.bounds_row_counts and self.is_low_found:
            raise refuse(
                "the lower bound of a search for max_rows", "a search for it", "0", _ADVICE
            )
        if not self.epsilon > 0:
            raise refuse(
                "the budget of a search for bounds",
                self.privacy.budget,
                "larger",
                "No choice is exact within it.",
            )

    @property
    def domain(self) -> Domain:
        """The domain that has only the searched attribute."""
        return Domain({self.attribute: self.kind})

    @property
    def quantiles(self) -> tuple[Fraction, ...]:
        """The quantiles that the search chooses: for the upper bound, or for both."""
        if not self.is_low_found:
            return (self.covers,)
        below = (1 - self.covers) / 2
        return below, 1 - below

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of each choice; all choices together cost the budget."""
        epsilon = pure_share(self.privacy.budget, Fraction(1, len(self.quantiles)))
        return Fraction(math.floor(epsilon * _EPSILON_GRID), _EPSILON_GRID)

    @property
    def rank_error(self) -> int:
        """The largest error of a search, as a number of units within the bounds.

        With probability 1 - `RISK`, the number of units within the found bounds differs by at most
        this number from the share ``covers`` of all units. If every row is a unit, the error is a
        number of rows. If the search finds two bounds, the error of each is at most half of this
        number. Values beyond the outermost candidates count as within the bounds, because no choice
        could include them.
        """
        scale = 2 * self.privacy.distance * float(max(self.quantiles)) / float(self.epsilon)
        number = len(self.quantiles)
        return math.ceil(number * choice_distance(scale, self.kind.size, RISK / number))

    def bounds(self, chosen_cells: Sequence[int]) -> tuple[Fraction, Fraction]:
        """Return the lower and upper bound, given the chosen cell of each quantile."""
        edges = self.kind.edges
        high = edges[max(chosen_cells) + 1]
        if self.is_low_found:
            return edges[min(chosen_cells)], high
        return edges[0], high

    def to_json(self) -> str:
        """Return the plan as JSON text, equal for equal plans."""
        value = {
            "search": BOUNDS_FORMAT,
            "privacy": self.privacy.to_json(),
            "covers": str(self.covers),
            "is_low_found": self.is_low_found,
            "bounds_row_counts": self.bounds_row_counts,
            "attribute": {"name": self.attribute, **kind_to_json(self.kind)},
        }
        return json.dumps(value, separators=(",", ":"))

    def digest(self) -> str:
        """Return the SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "BoundsPlan":
        """Return the plan whose JSON text `to_json` wrote."""
        return parse_or_refuse(lambda: _bounds_plan(read_json(text)), "search for bounds", _ADVICE)


SearchPlan: TypeAlias = CategoryPlan | BoundsPlan


def read_search_plan(text: str) -> SearchPlan:
    """Parse the JSON text of a plan of a search for bounds or categories."""
    if parse_or_refuse(lambda: read_json(text).get("search"), "search", _ADVICE) == BOUNDS_FORMAT:
        return BoundsPlan.from_json(text)
    return CategoryPlan.from_json(text)


def _bounds_plan(value: Mapping[str, Any]) -> BoundsPlan:
    """Parse the JSON object of a plan of a search for bounds."""
    entries: dict[str, Any] = checked_keys(
        "a search for bounds",
        value,
        ["search", "privacy", "covers", "is_low_found", "bounds_row_counts", "attribute"],
    )
    if entries["search"] != BOUNDS_FORMAT:
        raise refuse("the format of a search for bounds", entries["search"], repr(BOUNDS_FORMAT))
    name, kind = kind_from_json(entries["attribute"])
    if not isinstance(kind, Edges):
        raise refuse("the attribute of a search for bounds", kind, "Edges")
    return BoundsPlan(
        attribute=name,
        kind=kind,
        covers=fraction_from_text("covers", entries["covers"]),
        is_low_found=entries["is_low_found"] is True,
        bounds_row_counts=entries["bounds_row_counts"] is True,
        privacy=privacy_from_json(entries["privacy"]),
    )


def plan_max_rows(privacy: Privacy, most: int, *, covers: Exact = COVERS) -> BoundsPlan:
    """Plan a private search for ``max_rows``, the limit on a unit's rows.

    Planning reads no data. The plan's `rank_error` states the accuracy: the number of units with at
    most the found number of rows differs from the share ``covers`` by at most this number.

    Args:
        privacy: the budget, which the search spends completely, and the column of the unit.
            ``max_rows`` is not used.
        most: the largest number of rows that may be found.
        covers: the share of the units that have at most the found number of rows.

    Returns:
        The plan, with its ``rank_error``.

    Raises:
        InputError: the privacy has no unit column, a number is below 1, or the share is not
            allowed.

    >>> plan = ln.plan_max_rows(ln.Privacy(ln.PureDP("1/10"), unit_column="id"), 1000)
    >>> plan.kind.size, plan.rank_error
    (18, 97)
    """
    most = whole("most", most, 1, MOST_ROWS)
    edges = candidate_edges(Fraction(0), Fraction(most), unit=Fraction(1))
    return BoundsPlan(
        attribute=ROWS_OF_UNIT,
        kind=_candidates(edges),
        covers=exact("covers", covers),
        is_low_found=False,
        bounds_row_counts=True,
        privacy=replace(privacy, max_rows=1, max_per_cell=None),
    )


def plan_bounds(
    column: str,
    budget: Budget | Privacy,
    most: Exact,
    *,
    low: Exact | None = None,
    least: Exact | None = None,
    unit: Exact | None = None,
    covers: Exact = COVERS,
    reading: Reading = READ_AS_IT_IS,
) -> BoundsPlan:
    """Plan a private search for the bounds of a numeric column.

    Planning reads no data. The plan's `rank_error` states the accuracy: the number of units within
    the bounds differs from the share ``covers`` by at most this number.

    Args:
        column: the name of the column, unless ``reading`` names another column.
        budget: the budget, which the search spends completely; or a Privacy with unit and
            neighbours. One random row of each unit counts, for any ``max_rows``.
        most: the largest upper bound that may be found.
        low: the public lower bound; if it is stated, the search finds only the upper bound.
        least: the smallest lower bound that may be found; if it is stated, the search finds both
            bounds.
        unit: a number such that bounds are whole multiples of it; None for any bounds.
        covers: the share of the units whose value is within the bounds. If the search finds both,
            half of the other units are below and half above.
        reading: the rules for reading values.

    Returns:
        The plan, with its ``rank_error``.

    Raises:
        InputError: both or neither of ``low`` and ``least`` are passed; the largest bound is not
            above the smallest; or the share is not allowed.

    >>> plan = ln.plan_bounds("pay", ln.PureDP("1/10"), 1000000, low=0, unit=1)
    >>> plan.kind.size, plan.rank_error
    (36, 111)
    """
    if (low is None) == (least is None):
        raise InputError(
            "A search for bounds must have exactly one of two arguments: low, the public lower "
            "bound; or least, the smallest lower bound that may be found. Got both or neither. "
            "Write low = 0 if no value is negative."
        )
    if least is None:
        lowest = exact("low", cast(Exact, low))
    else:
        lowest = exact("least", least)
    privacy = budget if isinstance(budget, Privacy) else Privacy(budget)
    edges = candidate_edges(
        lowest,
        exact("most", most),
        unit=None if unit is None else exact_positive("unit", unit),
        is_low_found=least is not None,
    )
    return BoundsPlan(
        attribute=column,
        kind=_candidates(edges, reading),
        covers=exact("covers", covers),
        is_low_found=least is not None,
        bounds_row_counts=False,
        privacy=replace(privacy, max_rows=1, max_per_cell=None),
    )


def _candidates(edges: Sequence[Fraction], reading: Reading = READ_AS_IT_IS) -> Edges:
    """Return the attribute kind whose cells end at the candidate bounds."""
    return Edges(edges, closed="right", outside="clip", reading=reading)


def candidate_edges(
    lower_limit: Fraction,
    largest: Fraction,
    *,
    unit: Fraction | None = None,
    is_low_found: bool = False,
) -> tuple[Fraction, ...]:
    """Return the candidate bounds of a search, on a logarithmic grid.

    If the search finds only the upper bound, the distances of candidates from the lower bound are
    on the grid. If the search finds both bounds, the distances of candidates from 0 are on the
    grid. If it finds both and 0 is not between them, the distances from both ends of the range are
    on the grid.

    Args:
        lower_limit: the public lower bound, or the smallest lower bound that may be found.
        largest: the largest upper bound.
        unit: the candidates are whole multiples of this number, which is also their smallest
            distance; None if candidates may be any numbers.
        is_low_found: whether the search also finds the lower bound.

    >>> [int(edge) for edge in candidate_edges(Fraction(0), Fraction(12), unit=Fraction(1))]
    [0, 1, 2, 3, 5, 7, 10, 12]
    """
    if not lower_limit < largest:
        raise refuse(
            "most",
            str(largest),
            f"above the lower bound, {lower_limit}",
            "It is the largest upper bound that may be found.",
        )
    if not 1 / _LARGEST_WIDTH <= largest - lower_limit <= _LARGEST_WIDTH:
        raise refuse("most", number_text(largest), "from 1e-100 to 1e100 above the lower bound")
    for name, bound in (("the lower bound", lower_limit), ("most", largest)):
        if unit is not None and (bound / unit).denominator != 1:
            raise refuse(name, str(bound), f"a whole multiple of the unit, {unit}")
    distances = _log_grid(largest - lower_limit, unit)
    candidates = {lower_limit + distance for distance in distances}
    if is_low_found and lower_limit < 0 < largest:
        distances = _log_grid(max(largest, -lower_limit), unit)
        candidates = {Fraction(0), *distances, *(-distance for distance in distances)}
    elif is_low_found:
        candidates |= {largest - distance for distance in distances}
    inner = {candidate for candidate in candidates if lower_limit < candidate < largest}
    return tuple(sorted(inner | {lower_limit, largest}))


def _log_grid(largest: Fraction, common_unit: Fraction | None) -> list[Fraction]:
    """Return a logarithmic grid up to a number, in multiples of the unit."""
    smallest = common_unit or largest / 10**_CANDIDATE_DECADES
    decade = Fraction(10) ** math.floor(math.log10(smallest))
    grid = []
    while decade <= largest:
        for step in _STEPS:
            number = Fraction(step) * decade
            if common_unit is not None:
                number = number // common_unit * common_unit
            if smallest <= number <= largest:
                grid.append(number)
        decade *= 10
    return grid
