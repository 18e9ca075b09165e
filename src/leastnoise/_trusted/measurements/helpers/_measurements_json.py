"""Define observations, and convert measurements to JSON and a fingerprint.

This file is not trusted: an observation has only noisy numbers, and the record of a step contains
the charge in addition to the fingerprint.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from leastnoise._trusted.check import refuse
from leastnoise._trusted.linop import SignedArray, array_to_json, to_json
from leastnoise._trusted.measurements._measurements import Factor, Limits, Measurements


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The noisy answers to the measured queries.

    Args:
        measurements: the measured queries.
        values: for every block an integer array of shape (block.rows,), in multiples of 1 / grid.
            The type is int32 if all numbers fit, and int64 otherwise.
        receipt: the ledger's identifier of the payment; empty if nothing was paid.
        private: whether a ledger paid; False for a test, an experiment or an audit, whose noise
            comes from a seed or whose rows are synthetic.

    Raises:
        InputError: the values do not fit the measurements.
    """

    measurements: Measurements
    values: tuple[SignedArray, ...]
    receipt: str
    private: bool

    def __post_init__(self) -> None:
        if [len(value) for value in self.values] != [
            block.rows for block in self.measurements.blocks
        ]:
            raise refuse(
                "the values of an observation",
                f"{len(self.values)} arrays",
                "one array a block, as long as its rows",
            )
        for value in self.values:
            value.setflags(write=False)


def measurements_value(measurements: Measurements) -> dict[str, Any]:
    """Convert measurements to a JSON value; equal measurements give equal values."""
    factors: dict[Factor, int] = {}
    limits: dict[Limits, int] = {}
    blocks = []
    for block in measurements.blocks:
        value: dict[str, Any] = {
            "factors": [factors.setdefault(factor, len(factors)) for factor in block.factors],
            "scale": str(block.scale),
            "measure": block.measure,
        }
        if block.limits is not None:
            value["limits"] = limits.setdefault(block.limits, len(limits))
        if block.ends:
            value["ends"] = True
        if block.k_norm_group is not None:
            value["k_norm_group"] = block.k_norm_group
        blocks.append(value)
    limit_values = [
        {"attribute": limit.attribute, "values": array_to_json(limit.values)} for limit in limits
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
                "row_weights": None
                if factor.row_weights is None
                else array_to_json(factor.row_weights),
            }
            for factor in factors
        ],
        **({"limits": limit_values} if limit_values else {}),
        "blocks": blocks,
    }


def measurements_digest(measurements: Measurements) -> str:
    """Return the SHA-256 of the JSON text of measurements, in hexadecimal."""
    return hashlib.sha256(
        json.dumps(
            measurements_value(measurements), separators=(",", ":"), allow_nan=False
        ).encode()
    ).hexdigest()
