"""The searches that a spec asks for: attributes of unknown categories, the share of the budget of each, and where what was found is."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from leastnoise._accounting import ApproxDP, Privacy
from leastnoise._check import InputError, exact_positive, refuse
from leastnoise._domain import Domain, Unknown
from leastnoise._plan import CategoryPlan, plan_categories
from leastnoise._planning import Least, stated
from leastnoise._release import FoundCategories, read_categories

SHARE = "1/10"
"""Of the budget, for each search that does not say another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """An attribute whose categories are found privately for a share of the budget, in a directory; ``found`` is None before that."""

    attribute: str
    kind: Unknown
    share: Fraction
    place: Path
    found: FoundCategories | None = None

    def plan(self, whole: Privacy) -> CategoryPlan:
        """How it will be found."""
        return plan_categories(self.attribute, self.kind, whole.share(self.share))


def searches_of(domain: Domain, tables: Any, folder: Path, known: Mapping[str, FoundCategories]) -> tuple[Searched, ...]:
    """The searches of a spec, with what was found before."""
    made = []
    for name in domain.names:
        kind = domain.kind(name)
        if isinstance(kind, Unknown):
            said = tables[name]["unknown"]
            share, place = exact_positive(f"[domain.{name}] share", said.get("share", SHARE)), said.get("found", f"{name}-categories")
            if not isinstance(place, str) or not place:
                raise refuse(f"[domain.{name}] found", place, "the name of a directory")
            where = folder / place
            found = known.get(name) or (_published(where) if os.path.lexists(where) else None)
            made.append(Searched(attribute=name, kind=kind, share=share, place=where, found=found))
    if not sum(search.share for search in made) < 1:
        raise InputError("The shares of the budget that searches for categories cost must leave some of it. Give them smaller shares.")
    return tuple(made)


def _published(place: Path) -> FoundCategories:
    """What was found and paid."""
    found = read_categories(place)
    if not found.private:
        raise InputError(f"The categories in {place} were found with a seed, which protects nobody. Move them away, and find them again.")
    return found


def with_found(domain: Domain, searches: Sequence[Searched]) -> Domain:
    """The domain with the categories that are known by now."""
    if not any(one.found for one in searches):
        return domain
    found = {one.attribute: one.found.kind() for one in searches if one.found is not None}
    return Domain({name: found.get(name, domain.kind(name)) for name in domain.names}, measures=domain.measures)


def named(searches: Sequence[Searched]) -> tuple[dict[str, Any], ...]:
    """What a release says of the searches that were paid."""
    return tuple(search.found.named() for search in searches if search.found is not None and search.found.private)


def search_plans(searches: Sequence[Searched], privacy: Privacy | Least) -> dict[str, CategoryPlan]:
    """How each search of a spec finds, or found, what it is for."""
    said = stated(privacy)
    return {search.attribute: search.plan(said) for search in searches if said is not None}


def check_searches(searches: Sequence[Searched], privacy: Privacy | Least) -> None:
    """Refuse a budget that cannot pay for searches, and what other searches found."""
    for one in searches:
        said = stated(privacy)
        if said is None:
            found = (
                f"The categories of {one.attribute} are found first, with a share of the budget, and how many there are decides what the"
            )
            instead = f"or list them: [domain.{one.attribute}] categories = [...], or {{ file = ..., column = ... }}."
            why = f"{found} tables need. Give epsilon a number, such as '1', {instead}"
            raise refuse("[privacy] with unknown categories", "least", "a budget of epsilon and delta, each a number", why)
        if not isinstance(said.budget, ApproxDP):
            raise refuse("[privacy] with unknown categories", said.budget, "a budget of epsilon and delta, each a number")
        if one.found is None:
            continue
        known, asked = one.found.plan, one.plan(said)
        if (known.attribute, known.kind, known.privacy) != (asked.attribute, asked.kind, asked.privacy):
            raise InputError(
                f"The categories in {one.place} were found by another search than that of [domain.{one.attribute}]: its budget, unit, "
                "bounds or reading differ. Say what was said then, or name another directory: found = ..."
            )
