"""The plan of a search for categories that nobody can list beforehand: public, made without data."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leastnoise._accounting import ApproxDP, Budget, KeyRule, Noise, Privacy, keys_are_private, privacy_from_json
from leastnoise._check import InputError, refuse
from leastnoise._domain import Domain, Unknown, attribute_name, kind_from_json, kind_to_json, known_keys
from leastnoise._fitting import found_often, key_rule
from leastnoise._plan._json import read, read_json

FORMAT = "leastnoise search for categories 1"
_ADVICE = "Make it again with leastnoise.plan_categories."


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPlan:
    """How the categories of an attribute will be found; made by `plan_categories`.

    Attributes:
        attribute: its name.
        kind: what may be found.
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
            raise InputError(f"The rule of a search is not proved to satisfy its budget, {self.privacy.budget!r}. {_ADVICE}")

    @property
    def threshold(self) -> int:
        """About how many units must have a category for it to be found with even chances; one fewer than that, it seldom is."""
        return self.rule.threshold

    @property
    def often(self) -> int:
        """How many units a category needs to be found in 95 of 100 searches, if no more than ``kind.most`` are there."""
        return found_often(self.rule)

    @property
    def std(self) -> float:
        """Standard deviation of the noise on a number of units."""
        scale = float(self.rule.scale)
        return scale if self.rule.noise is Noise.ROUNDED_GAUSSIAN else 2**0.5 * scale

    @property
    def domain(self) -> Domain:
        """The attribute alone."""
        return Domain({self.attribute: self.kind})

    def to_json(self) -> str:
        """The plan as one JSON text, the same for equal plans."""
        rule = {"noise": self.rule.noise.value, "scale": str(self.rule.scale), "threshold": self.rule.threshold}
        value = {"search": FORMAT, "privacy": self.privacy.to_json(), "rule": rule}
        return json.dumps({**value, "attribute": {"name": self.attribute, **kind_to_json(self.kind)}}, separators=(",", ":"))

    def digest(self) -> str:
        """SHA-256 of the plan's JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "CategoryPlan":
        """Read what ``to_json`` wrote."""
        return read(lambda: _plan(read_json(text)), "search for categories", _ADVICE)


def is_category_plan(text: str) -> bool:
    """Whether the text of a plan is that of a search for categories."""
    return text.startswith('{"search":')


def _plan(value: Mapping[str, Any]) -> CategoryPlan:
    found: dict[str, Any] = known_keys("a search for categories", value, ["search", "privacy", "rule", "attribute"])
    if found["search"] != FORMAT:
        raise refuse("the format of a search for categories", found["search"], repr(FORMAT))
    name, kind = kind_from_json(found["attribute"])
    if not isinstance(kind, Unknown):
        raise refuse("the attribute of a search for categories", kind, "Unknown")
    rule = found["rule"]
    made = KeyRule(noise=Noise(rule["noise"]), scale=Fraction(rule["scale"]), threshold=rule["threshold"])
    return CategoryPlan(attribute=name, kind=kind, privacy=privacy_from_json(found["privacy"]), rule=made)


def plan_categories(attribute: str, kind: Unknown, budget: Budget | Privacy) -> CategoryPlan:
    """Plan a search for the categories of an attribute: public, without data, and with the number of people that one needs to be found.

    Args:
        attribute: its name, and that of its column unless its reading names another.
        kind: how many categories are kept at most, and how values are read.
        budget: an ApproxDP, all of which the search costs; or a Privacy with one, which says the unit and the neighbours. A unit counts
            in at most ``max_rows`` categories, once in each.

    Returns:
        The plan; see its ``threshold`` and ``often``. Of Laplace and of Gaussian noise it has the one that finds categories of fewer units.

    Raises:
        InputError: a kind whose categories are known, a budget without delta, or one that is too small for any threshold.

    >>> made = ln.plan_categories("agent", ln.Unknown(10000), ln.ApproxDP(1, "1e-9"))
    >>> made.threshold, made.often
    (22, 24)
    """
    if not isinstance(kind, Unknown):
        raise refuse(f"the kind of {attribute!r}", kind, "Unknown(most)", "The categories of the others are known.")
    privacy = budget if isinstance(budget, Privacy) else Privacy(budget)
    if not isinstance(privacy.budget, ApproxDP):
        advice = "Nobody can be found under delta = 0: a category of one person must have a chance of nothing to be seen."
        raise refuse("the budget of a search for categories", privacy.budget, "ApproxDP(epsilon, delta)", advice)
    own = Privacy(privacy.budget, privacy.neighbours, privacy.unit_column, privacy.max_rows)  # whatever is bounded in other cells
    return CategoryPlan(attribute=attribute, kind=kind, privacy=own, rule=key_rule(own))
