"""Read the searches for categories in a spec, and check their budget."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._domain import Domain, Unknown
from leastnoise._plan import CategoryPlan, plan_categories
from leastnoise._planning import Least, stated_privacy
from leastnoise._publication import FoundCategories, read_categories
from leastnoise._trusted.accounting import ApproxDP, Privacy
from leastnoise._trusted.check import InputError, exact_positive, message, refuse

CATEGORIES_SHARE = "1/10"
"""Share of the budget for each search for categories that states no other share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CategorySearch:
    """A private search for the categories of an attribute.

    The search costs a share of the budget, and its result is written to ``directory``. Before the
    search, ``result`` is None.
    """

    attribute: str
    kind: Unknown
    share: Fraction
    directory: Path
    result: FoundCategories | None = None

    @property
    def name(self) -> str:
        """The name of the search result, such as "categories of job"."""
        return f"categories of {self.attribute}"


def read_category_searches(
    domain: Domain,
    domain_tables: Any,
    folder: Path,
    found_categories: Mapping[str, FoundCategories],
) -> tuple[Domain, tuple[CategorySearch, ...]]:
    """Add found categories to a domain; return the domain and all searches."""
    searches = []
    kinds = {name: domain.kind(name) for name in domain.names}
    for name, kind in kinds.items():
        if not isinstance(kind, Unknown):
            continue
        settings = domain_tables[name]["unknown"]
        share = exact_positive(f"[domain.{name}] share", settings.get("share", CATEGORIES_SHARE))
        directory = settings.get("found", f"{name}-categories")
        if not isinstance(directory, str) or not directory:
            raise refuse(f"[domain.{name}] found", directory, "the name of a directory")
        search_directory = folder / directory
        categories = found_categories.get(name)
        if categories is None and os.path.lexists(search_directory):
            categories = read_categories(search_directory)
            if not categories.private:
                why = (
                    "were found with a seed, which protects nobody. Move them away, and find them "
                    "again."
                )
                raise InputError(f"The categories in {search_directory} {why}")
        searches.append(
            CategorySearch(
                attribute=name,
                kind=kind,
                share=share,
                directory=search_directory,
                result=categories,
            )
        )
        kinds[name] = kind if categories is None else categories.kind()
    return Domain(kinds, measures=domain.measures) if searches else domain, tuple(searches)


def plan_category_searches(
    searches: Sequence[CategorySearch], privacy: Privacy | Least
) -> dict[str, CategoryPlan]:
    """Plan each search for categories; the keys are the names of attributes.

    The result is empty if the spec asks for the least budget that meets its targets.
    """
    full_privacy = stated_privacy(privacy)
    return {
        search.attribute: plan_categories(
            search.attribute, search.kind, full_privacy.scaled(search.share)
        )
        for search in searches
        if full_privacy is not None
    }


def check_category_searches(searches: Sequence[CategorySearch], privacy: Privacy | Least) -> None:
    """Raise InputError unless the spec's budget allows its category searches.

    An InputError is also raised if found categories come from a search that differs from the
    requested one.
    """
    full_privacy = stated_privacy(privacy)
    for search in searches:
        subject = "[privacy] with unknown categories"
        requirement = "a budget of epsilon and delta, each a number"
        if full_privacy is None:
            reason = message(
                "The categories of {name} must be found first, with a share of the budget. The "
                "number of categories decides which budget the tables need. State epsilon as a "
                "number, such as '1', or list the categories: [domain.{name}] categories = [...], "
                "or { file = ..., column = ... }.",
                name=search.attribute,
            )
            raise refuse(subject, "least", requirement, reason)
        if not isinstance(full_privacy.budget, ApproxDP):
            raise refuse(subject, full_privacy.budget, requirement)
        if search.result is None:
            continue
        found_plan = search.result.plan
        current_plan = plan_category_searches([search], full_privacy)[search.attribute]
        if (found_plan.attribute, found_plan.kind, found_plan.privacy) != (
            current_plan.attribute,
            current_plan.kind,
            current_plan.privacy,
        ):
            raise InputError(
                f"The categories in {search.directory} come from another search than the one that "
                f"[domain.{search.attribute}] requests: its budget, unit, bounds or reading "
                "differ. Use the settings of that search, or name another directory with found = "
                "..."
            )
