"""Categories that were found privately: a directory with their list and where it comes from, written whole or not at all."""

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leastnoise._check import InputError, refuse
from leastnoise._domain import Categories
from leastnoise._plan import CategoryPlan, read_json
from leastnoise._release._directory import Draft, list_files, text_of_inert, write_rows

FORMAT = "leastnoise categories 1"
LIST = "categories.csv"
COLUMN = "category"
_ADVICE = "Name the directory that leastnoise categories wrote, the one with manifest.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCategories:
    """The categories that a search found; public, because they were paid for.

    Attributes:
        plan: of the search.
        texts: of the categories as they are read, those of the most units first.
        units: about how many units have each, with noise of ``plan.std``; at least ``plan.threshold``, so small ones are too large.
        private: False if the noise came from a seed.
        receipt: of the ledger, what it says of the payment; empty if nothing was paid.
    """

    plan: CategoryPlan
    texts: tuple[str, ...]
    units: tuple[int, ...]
    private: bool
    receipt: Mapping[str, Any] = field(default_factory=dict)

    def kind(self) -> Categories:
        """The attribute, to be used in a `Domain` like any other."""
        return self.plan.kind.found(self.texts)

    def named(self) -> dict[str, Any]:
        """What a release that uses the categories says of their search: `Options.searches` is a list of such."""
        return {"attribute": self.plan.attribute, "plan": self.plan.digest(), **self.receipt}


def words(plan: CategoryPlan) -> str:
    """What a search promises, in a sentence or two."""
    return (
        f"A search finds a category of {plan.often:,} units in 95 of 100 cases, one of {plan.threshold:,} units in about half of them, and "
        f"one of a single unit with a chance of at most delta. It keeps the {plan.kind.most:,} categories with the largest noisy counts."
    )


def write_categories(categories: FoundCategories, draft: Draft) -> None:
    """Write the list and its manifest into a draft, which is then published."""
    plan = categories.plan
    write_rows(draft.path / LIST, [COLUMN, "units"], zip(categories.texts, categories.units, strict=True))
    value = {
        "format": FORMAT,
        "written": datetime.now(UTC).date().isoformat(),
        "private": categories.private,
        "promise": words(plan),
        "units": f"with noise of standard deviation {plan.std:.3g}; those near the threshold of {plan.threshold} are too large",
        "plan": json.loads(plan.to_json()),
        "receipt": dict(categories.receipt) or None,
        "files": list_files(draft.path),
    }
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (draft.path / "manifest.json").write_text(text, encoding="utf-8", newline="\n")


def found_there(directory: Path) -> bool:
    """Whether a directory is of found categories, and not of a release."""
    return (directory / LIST).exists()


def read_categories(directory: str | os.PathLike[str]) -> FoundCategories:
    """Read what `write_categories` wrote."""
    folder = Path(directory)
    try:
        value: dict[str, Any] = read_json((folder / "manifest.json").read_text(encoding="utf-8"))
        if value["format"] != FORMAT:
            raise refuse("the format of found categories", value["format"], repr(FORMAT))
        if value["files"] != [entry for entry in list_files(folder) if entry["path"] == LIST]:
            raise InputError(f"The categories in {str(folder)!r} were changed since they were found. Use an intact copy.")
        with (folder / LIST).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        return FoundCategories(
            plan=CategoryPlan.from_json(json.dumps(value["plan"], separators=(",", ":"))),
            texts=tuple(text_of_inert(text) for text, _ in rows),
            units=tuple(int(units) for _, units in rows),
            private=bool(value["private"]),
            receipt=dict(value["receipt"] or {}),
        )
    except OSError:
        raise InputError(f"There are no found categories in {str(folder)!r}, or they cannot be read. {_ADVICE}") from None
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(f"The categories in {str(folder)!r} are damaged: their manifest cannot be understood. {_ADVICE}") from None
