"""What a release says of a mechanism that looked at the data: what the choices came to, and the two parts of the error."""

from collections.abc import Mapping
from typing import Any

from leastnoise._estimate import is_data_aware
from leastnoise._plan import Plan

COLUMNS = {
    "answer": "the estimate, consistent across tables; biased where the data are not as even as the choices suppose",
    "noise_std": "its standard error from the noise, given the outcome of the choices",
    "approximation_std": "the rest of its error, estimated from what was paid for; empty where nothing tells",
}
POST_PROCESSING = (
    "answer is the mechanism's estimate; it is not rounded. Everything after the measurements is post-processing and cost nothing."
)
NOT_PROMISED = "which queries were measured was decided on the way, so the error depends on the data, and no error was promised beforehand"
ERRORS = (
    "Which queries were measured was decided on the way, by noisy values that were paid for: the error depends on the data, and no error "
    "was promised beforehand. The typical error is the root mean square over a table of both its parts, noise and approximation; the "
    "largest one is that of the noise."
)
_READING = (
    "noise_std is exact given the outcome of the choices, with the factors of shrinking held fixed. approximation_std is what was lost by "
    "taking cells for alike that are not, and it is an estimate: an interval holds the true answer in about the stated share of releases, "
    "sometimes in fewer. Tables agree with each other wherever they overlap."
)
_REGIMES = {
    "independent": "no structure worth using was found, so the plan that does not look at the data was measured; answers by least squares",
    "shrunk": "blocks of several widths were measured, and the differences between them shrunk towards their posterior means",
    "adaptive": "blocks of several widths were measured and shrunk, then the {buckets} buckets that they suggested; the answers use both",
    "buckets": "{buckets} buckets of alike cells were drawn privately and measured; inside a bucket counts are spread evenly",
    "blocks": "{blocks} blocks of the table were measured, then {buckets} parts of them, as many as their noisy counts deserve, and "
    "groups of parts; the answers use all three, and inside a part counts are spread evenly",
    "quadtree": "{buckets} rectangles of alike cells were drawn privately and measured; inside a rectangle counts are spread evenly",
    "truncated": "values above a threshold that was chosen privately were cut to it; answers by least squares",
}


def facts_of(plan: Plan) -> Mapping[str, Any] | None:
    """The public outcome of the choices; None for an ordinary plan."""
    return plan.details["data_aware"] if is_data_aware(plan.details) else None


def regime_words(plan: Plan) -> str:
    """What was done, in a clause.

    Args:
        plan: of a data-aware release.
    """
    facts = plan.details["data_aware"]
    return _REGIMES.get(facts["regime"], facts["regime"]).format(buckets=f"{facts.get('buckets', 0):,}", blocks=facts.get("blocks", 0))


def reading_words(plan: Plan) -> str:
    """What the two parts of the error are."""
    return "noise_std is exact given the threshold." if plan.details["data_aware"]["regime"] == "truncated" else _READING


def approximation_words(plan: Plan) -> list[str]:
    """What the intervals of a data-aware release do not cover, besides what no interval covers."""
    facts = plan.details["data_aware"]
    if facts["regime"] == "truncated":
        return []
    if facts["regime"] == "independent":
        return ["No structure was used, so approximation_std is 0 and the intervals are those of an ordinary release."]
    if facts["regime"] in ("buckets", "quadtree") and facts.get("hidden") is None:
        return ["Nothing that was paid for tells how uneven the buckets are: approximation_std is empty, the intervals cover noise alone."]
    smoothed = (
        "approximation_std is an estimate for typical data of this release, not a bound: cells that stand out less than the noise are "
        "smoothed away, and where such a cell lies the error of answers that end beside it is larger."
    )
    return [smoothed]
