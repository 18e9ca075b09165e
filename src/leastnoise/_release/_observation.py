"""Write `measurements/observation.json`, and compute its digest.

A later plan that uses the measurements of a release refers to them by this digest.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from leastnoise._estimation import Outcome
from leastnoise._plan import AdaptivePlan, LinearPlan
from leastnoise._trusted.linop import noisy_array_to_json_text
from leastnoise._trusted.measurements import measurements_value

OBSERVATION_FILE = "measurements/observation.json"


def observation_text(outcome: Outcome) -> Iterator[str]:
    """Yield the parts of an observation's JSON text, one for each block.

    The text includes the measurements if the plan does not determine them.
    """
    observation = outcome.observation
    facts: dict[str, Any] = {
        "plan_digest": outcome.plan.digest(),
        "receipt": observation.receipt,
        "private": observation.private,
    }
    is_adaptive = isinstance(outcome.plan, AdaptivePlan)
    if is_adaptive or (isinstance(outcome.plan, LinearPlan) and outcome.plan.earlier):
        facts["measurements"] = measurements_value(observation.measurements)
    if is_adaptive:  # the data-dependent choices
        facts["outcome"] = outcome.finding.facts()
    yield json.dumps(facts)[:-1] + ', "values": ['
    for number, values in enumerate(observation.values):
        yield (", " if number else "") + noisy_array_to_json_text(values)
    yield "]}"


def observation_digest(outcome: Outcome) -> str:
    """Return the SHA-256 of an observation's JSON text, in hexadecimal."""
    digest = hashlib.sha256()
    for part in observation_text(outcome):
        digest.update(part.encode())
    return digest.hexdigest()
