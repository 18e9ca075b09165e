"""Write and read the bounds that a private search found."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

from leastnoise._plan import BoundsPlan
from leastnoise._publication._directory import DraftDirectory
from leastnoise._publication._manifest import write_manifest
from leastnoise._publication._search_manifest import has_search_format, read_search_manifest
from leastnoise._release import NO_RECEIPT, BoundsFacts, Json, ReceiptFacts, SearchFacts
from leastnoise._trusted.check import InputError, exact, number_text, refuse

FOUND_BOUNDS_FORMAT = "leastnoise bounds 1"
_ADVICE = "Name the directory that a search for bounds wrote; it contains manifest.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBounds:
    """The bounds that a search found.

    They are public, because the search was paid for.

    Attributes:
        plan: the plan of the search.
        low: the lower bound; 0 for the rows of a unit.
        high: the upper bound.
        private: False if the noise came from a seed.
        receipt: the payment; `NO_RECEIPT` if nothing was paid.
    """

    plan: BoundsPlan
    low: Fraction
    high: Fraction
    private: bool
    receipt: ReceiptFacts = NO_RECEIPT

    def __post_init__(self) -> None:
        edges = self.plan.kind.edges
        is_low_possible = self.low in edges if self.plan.is_low_found else self.low == edges[0]
        if not (is_low_possible and self.high in edges and self.low < self.high):
            raise refuse(
                "found bounds",
                f"{self.low} and {self.high}",
                "candidates of their search",
                _ADVICE,
            )

    @property
    def max_rows(self) -> int:
        """The bound on the number of rows of a privacy unit.

        Raises:
            InputError: the search was for the bounds of values.
        """
        if not self.plan.bounds_row_counts:
            raise InputError(
                "Only a search planned by plan_max_rows finds max_rows; this search found the "
                f"bounds of {self.plan.attribute!r}."
            )
        return int(self.high)

    def search_facts(self) -> SearchFacts:
        """Return the facts about the search, for `Options.searches`.

        The manifest of a release lists them: the bounds, their rule and their error.
        """
        plan = self.plan
        return SearchFacts(
            attribute="max_rows" if plan.bounds_row_counts else plan.attribute,
            plan=plan.digest(),
            receipt=self.receipt,
            bounds=BoundsFacts(
                low=number_text(self.low),
                high=number_text(self.high),
                covers=number_text(plan.covers),
                rank_error=plan.rank_error,
                promise=describe_bounds_search(plan),
            ),
        )


def describe_found_bounds(bounds: FoundBounds) -> str:
    """Return found bounds as text, such as "at most 7" or "0 to 70000"."""
    if bounds.plan.bounds_row_counts:
        return f"at most {bounds.max_rows:,}"
    return f"{number_text(bounds.low)} to {number_text(bounds.high)}"


def describe_bounds_search(plan: BoundsPlan) -> str:
    """Return sentences on how a search chooses bounds, and on its error."""
    share = f"{float(100 * plan.covers):g}%"
    if plan.bounds_row_counts:
        rule = f"chooses the smallest limit that {share} of the units do not exceed"
    elif plan.is_low_found:
        rule = (
            f"chooses bounds between which {share} of the values lie, half of the others on either "
            "side"
        )
    else:
        rule = f"chooses the smallest bound that {share} of the values do not exceed"
    if not plan.bounds_row_counts and plan.privacy.unit_column is not None:
        rule += ", by one random row of each unit"
    return (
        f"The search {rule}, from {_count_candidates(plan)} candidates. In 95 of 100 cases, the "
        f"number within the bounds differs from this share by at most {plan.rank_error:,} "
        f"{_counted_noun(plan)}; values beyond the outermost candidates count as within."
    )


def _count_candidates(plan: BoundsPlan) -> int:
    """Return the number of candidates; a public lower bound is not a candidate."""
    if plan.is_low_found:
        return plan.kind.size + 1
    return plan.kind.size


def _counted_noun(plan: BoundsPlan) -> str:
    """Return "rows" or "units": the unit of a search's rank error."""
    if plan.privacy.unit_column is None:
        return "rows"
    return "units"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsManifest:
    """The manifest in a directory of found bounds.

    Attributes:
        format: the format and its version.
        written: the day on which the search was finished.
        private: False if the noise came from a seed; the result is then not private.
        promise: the privacy guarantee and what the search finds, in words.
        low: the lower bound, as text.
        high: the upper bound, as text.
        plan: the plan of the search.
        receipt: the payment; None without a ledger.
    """

    format: str
    written: date
    private: bool
    promise: str
    low: str
    high: str
    plan: Mapping[str, Json]
    receipt: ReceiptFacts | None


def write_bounds(bounds: FoundBounds, draft: DraftDirectory) -> None:
    """Write found bounds as a manifest into a draft directory."""
    manifest = BoundsManifest(
        format=FOUND_BOUNDS_FORMAT,
        written=datetime.now(UTC).date(),
        private=bounds.private,
        promise=describe_bounds_search(bounds.plan),
        low=number_text(bounds.low),
        high=number_text(bounds.high),
        plan=json.loads(bounds.plan.to_json()),
        receipt=None if bounds.receipt == NO_RECEIPT else bounds.receipt,
    )
    write_manifest(manifest, draft.path)


def read_bounds_manifest(directory: Path) -> BoundsManifest:
    """Read the manifest that `write_bounds` wrote, and check its values."""
    return read_search_manifest(directory, BoundsManifest, FOUND_BOUNDS_FORMAT, "bounds", _ADVICE)


def holds_bounds(directory: Path) -> bool:
    """Return whether a directory contains the bounds that a search found."""
    return has_search_format(directory, FOUND_BOUNDS_FORMAT)


def read_bounds(directory: str | os.PathLike[str]) -> FoundBounds:
    """Read the bounds that `write_bounds` wrote."""
    manifest = read_bounds_manifest(Path(directory))
    return FoundBounds(
        plan=BoundsPlan.from_json(json.dumps(manifest.plan, separators=(",", ":"))),
        low=exact("low", manifest.low),
        high=exact("high", manifest.high),
        private=manifest.private,
        receipt=manifest.receipt or NO_RECEIPT,
    )
