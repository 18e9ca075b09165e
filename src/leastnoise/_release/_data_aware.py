"""What a release says of a mechanism that looked at the data: what the choices came to, and the two parts of the error."""

from collections.abc import Mapping
from typing import Any

from leastnoise._estimate import is_data_aware
from leastnoise._plan import Plan
from leastnoise._release._texts import Texts

COLUMNS = {
    "answer": "the estimate, consistent across tables; biased where the data are not as even as the choices suppose",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from what was paid for; empty where nothing tells",
}
POST_PROCESSING = (
    "answer is the mechanism's estimate; it is not rounded. Everything after the measurements is post-processing and cost nothing."
)
NOT_PROMISED = "which queries were measured was decided on the way, so the error depends on the data, and no error was promised beforehand"


def facts_of(plan: Plan) -> Mapping[str, Any] | None:
    """The public outcome of the choices; None for an ordinary plan."""
    return plan.details["data_aware"] if is_data_aware(plan.details) else None


def regime_words(plan: Plan, said: Texts) -> str:
    """What was done, in a clause.

    Args:
        plan: of a data-aware release.
        said: the catalogue.
    """
    facts = plan.details["data_aware"]
    return said.say(f"regime_{facts['regime']}", buckets=facts.get("buckets", 0), blocks=facts.get("blocks", 0))


def reading_words(plan: Plan, said: Texts) -> str:
    """What the two parts of the error are."""
    return said.say("aware_reading_truncated" if plan.details["data_aware"]["regime"] == "truncated" else "aware_reading")


def approximation_words(plan: Plan, said: Texts) -> list[str]:
    """What the intervals of a data-aware release do not cover, besides what no interval covers."""
    facts = plan.details["data_aware"]
    if facts["regime"] == "truncated":
        return []
    if facts["regime"] == "independent":
        return [said.say("aware_independent")]
    if facts["regime"] in ("buckets", "quadtree") and facts.get("hidden") is None:
        return [said.say("aware_unknown")]
    return [said.say("aware_smoothed")]
