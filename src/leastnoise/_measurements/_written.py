"""Measurements as JSON values, and the fingerprint of these; the kernel believes neither: a recorded step has its charge beside it."""

import hashlib
import json
from typing import Any

from leastnoise._linop import pack, to_json
from leastnoise._measurements._measurements import Factor, Limits, Measurements


def measurements_value(measurements: Measurements) -> dict[str, Any]:
    """What is measured, as a JSON value: the same for equal measurements."""
    factors: dict[Factor, int] = {}
    limits: dict[Limits, int] = {}
    blocks = [
        {
            "factors": [factors.setdefault(factor, len(factors)) for factor in block.factors],
            "scale": str(block.scale),
            "measure": block.measure,
            **({} if block.limits is None else {"limits": limits.setdefault(block.limits, len(limits))}),
            **({"ends": True} if block.ends else {}),
        }
        for block in measurements.blocks
    ]
    return {
        "mechanism": measurements.noise.value,
        "privacy": measurements.privacy.to_json(),
        "domain": measurements.domain.to_json(),
        "grid": measurements.grid,
        "factors": [
            {
                "attributes": list(factor.attributes),
                "operator": to_json(factor.operator),
                "row_weights": None if factor.row_weights is None else pack(factor.row_weights),
            }
            for factor in factors
        ],
        **({"limits": [{"attribute": limit.attribute, "values": pack(limit.values)} for limit in limits]} if limits else {}),
        "blocks": blocks,
    }


def measurements_digest(measurements: Measurements) -> str:
    """SHA-256 of the JSON text of `measurements_value`, in hexadecimal."""
    return hashlib.sha256(json.dumps(measurements_value(measurements), separators=(",", ":"), allow_nan=False).encode()).hexdigest()
