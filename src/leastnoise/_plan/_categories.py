"""The plan of a search for categories that cannot be listed beforehand."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from leastnoise._domain import (
    Domain,
    Unknown,
    attribute_name,
    kind_from_json,
    kind_to_json,
    known_keys,
)
from leastnoise._fitting import detectable_units, key_rule
from leastnoise._plan._json import read, read_json
from leastnoise._trusted.accounting import (
    ApproxDP,
    Budget,
    KeyRule,
    Noise,
    Privacy,
    keys_are_private,
    privacy_from_json,
)
from leastnoise._trusted.check import InputError, refuse

CATEGORY_FORMAT = "leastnoise search for categories 1"


_ADVICE = "Make it again with leastnoise.plan_categories."


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPlan:
    """A plan to find the categories of an attribute.

    Made by `plan_categories`.

    Attributes:
        attribute: its name.
        kind: the categories that may be found.
        privacy: an ApproxDP budget that all of the search costs, neighbours and unit.
        rule: the noise on the number of units that have a category, its scale, and the threshold.
    """

    attribute: str
    kind: Unknown
    privacy: Privacy
    rule: KeyRule

    def __post_init__(self) -> None:
        attribute_name("the name of an attribute", self.attribute)
        if not keys_are_private(self.rule, self.privacy):
            raise InputError(
                "The rule of a search is not proved to satisfy its budget, "
                f"{self.privacy.budget!r}. {_ADVICE}"
            )

    @property
    def threshold(self) -> int:
        """The number of units at which a category is found half of the time.

        A category with one unit fewer is seldom found.
        """
        return self.rule.threshold

    @property
    def detectable_units(self) -> int:
        """The number of units at which a category is found in 95% of searches.

        If there are no more than ``kind.most`` categories.
        """
        return detectable_units(self.rule)

    @property
    def std(self) -> float:
        """Standard deviation of the noise on a number of units."""
        scale = float(self.rule.scale)
        if self.rule.noise is Noise.ROUNDED_GAUSSIAN:
            return scale
        return 2**0.5 * scale

    @property
    def domain(self) -> Domain:
        """The domain of only the searched attribute."""
        return Domain({self.attribute: self.kind})

    def to_json(self) -> str:
        """Return the plan as JSON text, equal for equal plans."""
        rule = {
            "noise": self.rule.noise.value,
            "scale": str(self.rule.scale),
            "threshold": self.rule.threshold,
        }
        value = {"search": CATEGORY_FORMAT, "privacy": self.privacy.to_json(), "rule": rule}
        return json.dumps(
            {**value, "attribute": {"name": self.attribute, **kind_to_json(self.kind)}},
            separators=(",", ":"),
        )

    def digest(self) -> str:
        """Return the SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "CategoryPlan":
        """Return the plan whose JSON text `to_json` wrote."""
        return read(lambda: _category_plan(read_json(text)), "search for categories", _ADVICE)


def is_search_plan(text: str) -> bool:
    """Return whether a plan's text describes a search, for categories or bounds."""
    return text.startswith('{"search":')


def _category_plan(value: Mapping[str, Any]) -> CategoryPlan:
    """Return the plan of a search for categories from its JSON object."""
    entries: dict[str, Any] = known_keys(
        "a search for categories", value, ["search", "privacy", "rule", "attribute"]
    )
    if entries["search"] != CATEGORY_FORMAT:
        raise refuse(
            "the format of a search for categories", entries["search"], repr(CATEGORY_FORMAT)
        )
    name, kind = kind_from_json(entries["attribute"])
    if not isinstance(kind, Unknown):
        raise refuse("the attribute of a search for categories", kind, "Unknown")
    rule_value = entries["rule"]
    rule = KeyRule(
        noise=Noise(rule_value["noise"]),
        scale=Fraction(rule_value["scale"]),
        threshold=rule_value["threshold"],
    )
    return CategoryPlan(
        attribute=name, kind=kind, privacy=privacy_from_json(entries["privacy"]), rule=rule
    )


def plan_categories(attribute: str, kind: Unknown, budget: Budget | Privacy) -> CategoryPlan:
    """Return the plan of a search for an attribute's categories.

    Planning reads no data. The plan's `detectable_units` is the number of units with which 95% of
    searches find a category.

    Args:
        attribute: its name, which also names its column unless its reading names another.
        kind: how many categories are kept at most, and how values are read.
        budget: an ApproxDP, all of which the search costs; or a Privacy with one, which says the
            unit and the neighbours. A unit counts in at most ``max_rows`` categories, once in each.

    Returns:
        The plan; see its ``threshold`` and ``detectable_units``. Of Laplace and of Gaussian noise it has the
        one that finds categories of fewer units.

    Raises:
        InputError: a kind whose categories are known, a budget without delta, or one that is too
            small for any threshold.

    >>> made = ln.plan_categories("agent", ln.Unknown(10000), ln.ApproxDP(1, "1e-9"))
    >>> made.threshold, made.detectable_units
    (22, 24)
    """
    if not isinstance(kind, Unknown):
        raise refuse(
            f"the kind of {attribute!r}",
            kind,
            "Unknown(most)",
            "The categories of the others are known.",
        )
    if isinstance(budget, Privacy):
        privacy = budget
    else:
        privacy = Privacy(budget)
    if not isinstance(privacy.budget, ApproxDP):
        advice = "Nobody can be found under delta = 0: a category of one person must have a chance of nothing to be seen."
        raise refuse(
            "the budget of a search for categories",
            privacy.budget,
            "ApproxDP(epsilon, delta)",
            advice,
        )
    plain = replace(privacy, max_per_cell=None)  # the bound is about other cells
    return CategoryPlan(attribute=attribute, kind=kind, privacy=plain, rule=key_rule(plain))
