"""Write and read the directory of the categories that a search found.

The search was paid for, so its whole result is public.
"""

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from leastnoise._domain import Categories
from leastnoise._plan import CategoryPlan
from leastnoise._publication._directory import DraftDirectory, ListedFile, list_files
from leastnoise._publication._manifest import write_manifest
from leastnoise._publication._search_manifest import read_search_manifest, unreadable_search_error
from leastnoise._release import (
    NO_RECEIPT,
    Json,
    ReceiptFacts,
    SearchFacts,
    restore_inert,
    write_rows,
)
from leastnoise._trusted.check import InputError

CATEGORIES_FORMAT = "leastnoise categories 1"
CATEGORY_FILE = "categories.csv"
CATEGORY_COLUMN = "category"
_ADVICE = "Name the directory that `leastnoise categories` wrote; it contains manifest.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCategories:
    """The categories that a search found.

    They are public, because the search was paid for.

    Attributes:
        plan: the plan of the search.
        texts: the categories as the data spell them, sorted by their noisy number of units, the
            largest first.
        units: the noisy number of units of each category, with noise of ``plan.std``. The noisy
            numbers of small categories are biased upwards, because only categories with at least
            ``plan.threshold`` are kept.
        private: False if the noise came from a seed.
        receipt: the payment; `NO_RECEIPT` if nothing was paid.
    """

    plan: CategoryPlan
    texts: tuple[str, ...]
    units: tuple[int, ...]
    private: bool
    receipt: ReceiptFacts = NO_RECEIPT

    def kind(self) -> Categories:
        """Return an attribute whose values are these categories, for a `Domain`."""
        return self.plan.kind.to_categories(self.texts)

    def search_facts(self) -> SearchFacts:
        """Return the facts about the search, for `Options.searches`.

        The manifest of a release lists these facts.
        """
        return SearchFacts(
            attribute=self.plan.attribute, plan=self.plan.digest(), receipt=self.receipt
        )


def describe_category_search(plan: CategoryPlan) -> str:
    """Return sentences on the chance that a search finds a category of some size."""
    return (
        f"A search finds {describe_search_chances(plan.detectable_units, plan.threshold)}. It "
        f"keeps the {plan.kind.most:,} categories with the largest noisy counts."
    )


def describe_search_chances(detectable_units: int, threshold: int) -> str:
    """Return a phrase on the chance that a search finds a category of some size.

    Args:
        detectable_units: the number of units of a category that is found in 95 of 100 cases.
        threshold: a category is found if its noisy number of units reaches this threshold.
    """
    return (
        f"a category of {detectable_units:,} units in 95 of 100 cases; a category of {threshold:,} "
        "units in about half of the cases; a category of a single unit with a probability of at "
        "most delta"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoriesManifest:
    """The manifest in a directory of found categories.

    Attributes:
        format: the format and its version.
        written: the day on which the search was finished.
        private: False if the noise came from a seed; the result is then not private.
        promise: the privacy guarantee and what the search finds, in words.
        units: what the noisy numbers of units mean.
        plan: the plan of the search.
        receipt: the payment; None without a ledger.
        files: the files of the directory, with their digests.
    """

    format: str
    written: date
    private: bool
    promise: str
    units: str
    plan: Mapping[str, Json]
    receipt: ReceiptFacts | None
    files: tuple[ListedFile, ...]


def write_categories(categories: FoundCategories, draft: DraftDirectory) -> None:
    """Write found categories and their manifest into a draft directory."""
    write_rows(
        draft.path / CATEGORY_FILE,
        [CATEGORY_COLUMN, "units"],
        zip(categories.texts, categories.units, strict=True),
    )
    plan = categories.plan
    manifest = CategoriesManifest(
        format=CATEGORIES_FORMAT,
        written=datetime.now(UTC).date(),
        private=categories.private,
        promise=describe_category_search(plan),
        units=f"with noise of standard deviation {plan.std:.3g}; those near the threshold of "
        f"{plan.threshold} are too large",
        plan=json.loads(plan.to_json()),
        receipt=None if categories.receipt == NO_RECEIPT else categories.receipt,
        files=list_files(draft.path),
    )
    write_manifest(manifest, draft.path)


def holds_categories(directory: Path) -> bool:
    """Return whether a directory contains the categories that a search found."""
    return (directory / CATEGORY_FILE).exists()


def read_categories_manifest(directory: Path) -> CategoriesManifest:
    """Read the manifest that `write_categories` wrote, and check its values."""
    return read_search_manifest(
        directory, CategoriesManifest, CATEGORIES_FORMAT, "categories", _ADVICE
    )


def read_categories(directory: str | os.PathLike[str]) -> FoundCategories:
    """Read the categories that `write_categories` wrote."""
    folder = Path(directory)
    manifest = read_categories_manifest(folder)
    try:
        listed = tuple(file for file in list_files(folder) if file.path == CATEGORY_FILE)
        rows = _read_rows(folder / CATEGORY_FILE)
    except OSError:
        raise unreadable_search_error(folder, "categories", _ADVICE) from None
    if manifest.files != listed:
        raise InputError(
            f"The categories in {str(folder)!r} were changed since they were found. Use an "
            "intact copy."
        )
    return FoundCategories(
        plan=CategoryPlan.from_json(json.dumps(manifest.plan, separators=(",", ":"))),
        texts=tuple(restore_inert(text) for text, _ in rows),
        units=tuple(int(units) for _, units in rows),
        private=manifest.private,
        receipt=manifest.receipt or NO_RECEIPT,
    )


def _read_rows(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file without its header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]
