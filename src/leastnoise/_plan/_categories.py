"""Plan a search for categories that cannot be listed beforehand."""

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
    checked_keys,
    kind_from_json,
    kind_to_json,
)
from leastnoise._fitting import detectable_units, key_rule
from leastnoise._plan._plan_json import parse_or_refuse, read_json
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
    """A plan of a private search for the categories of an attribute.

    `plan_categories` makes such a plan.

    Attributes:
        attribute: the name of the attribute.
        kind: the categories that may be found.
        privacy: the ApproxDP budget of the whole search, the neighbours and the unit.
        rule: the rule of the search: the noise on the number of units that have a category, its
            scale, and the threshold.
    """

    attribute: str
    kind: Unknown
    privacy: Privacy
    rule: KeyRule

    def __post_init__(self) -> None:
        attribute_name("the name of an attribute", self.attribute)
        if not keys_are_private(self.rule, self.privacy):
            raise InputError(
                "The rule of a search must provably satisfy its budget, "
                f"{self.privacy.budget!r}; this rule does not. {_ADVICE}"
            )

    @property
    def threshold(self) -> int:
        """The least number of units for which a category is found half of the time.

        A category with one unit fewer is seldom found.
        """
        return self.rule.threshold

    @property
    def detectable_units(self) -> int:
        """The number of units with which a category is found in 95% of searches.

        This holds if there are at most ``kind.most`` categories.
        """
        return detectable_units(self.rule)

    @property
    def std(self) -> float:
        """The standard deviation of the noise on a category's number of units."""
        scale = float(self.rule.scale)
        if self.rule.noise is Noise.ROUNDED_GAUSSIAN:
            return scale
        return 2**0.5 * scale

    @property
    def domain(self) -> Domain:
        """The domain that has only the searched attribute."""
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
        return parse_or_refuse(
            lambda: _category_plan(read_json(text)), "search for categories", _ADVICE
        )


def is_search_plan(text: str) -> bool:
    """Return whether a JSON text is a plan of a search for bounds or categories."""
    return text.startswith('{"search":')


def _category_plan(value: Mapping[str, Any]) -> CategoryPlan:
    """Parse the JSON object of a plan of a search for categories."""
    entries: dict[str, Any] = checked_keys(
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
    """Plan a private search for the categories of an attribute.

    Planning reads no data. With 95% probability, a search finds a category that has
    `detectable_units` units, a field of the plan.

    Args:
        attribute: the name of the attribute. It is also the name of the column, unless the reading
            of ``kind`` names another column.
        kind: the largest number of categories to keep, and the rules for reading values.
        budget: one of two: an ApproxDP, which the search spends completely; or a Privacy with an
            ApproxDP, the unit and the neighbours. A unit counts in at most ``max_rows`` categories,
            once in each.

    Returns:
        The plan, with its ``threshold`` and ``detectable_units``. It has Laplace or Gaussian noise,
        whichever finds categories of fewer units.

    Raises:
        InputError: the categories of the kind are known, or the budget has no delta or is too small
            for any threshold.

    >>> made = ln.plan_categories("agent", ln.Unknown(10000), ln.ApproxDP(1, "1e-9"))
    >>> made.threshold, made.detectable_units
    (22, 24)
    """
    if not isinstance(kind, Unknown):
        raise refuse(
            f"the kind of {attribute!r}",
            kind,
            "Unknown(most)",
            "The categories of all other kinds are known.",
        )
    if isinstance(budget, Privacy):
        privacy = budget
    else:
        privacy = Privacy(budget)
    if not isinstance(privacy.budget, ApproxDP):
        advice = (
            "Under delta = 0 the search would find nothing: the probability that it finds the "
            "category of one person would have to be 0."
        )
        raise refuse(
            "the budget of a search for categories",
            privacy.budget,
            "ApproxDP(epsilon, delta)",
            advice,
        )
    plain = replace(privacy, max_per_cell=None)  # the bound is on other cells
    return CategoryPlan(attribute=attribute, kind=kind, privacy=plain, rule=key_rule(plain))
