"""Measurements as mbi (private-pgm) takes them: one ``LinearMeasurement`` a measured table. The page docs/measurements.md reads it."""

import json
import math
from typing import Any

import numpy as np

from leastnoise._accuracy import Told, told
from leastnoise._check import InputError, refuse
from leastnoise._exports._export import Export, Published
from leastnoise._linop import Identity, dense
from leastnoise._workload import queries

FORMAT = 1
MOST_ENTRIES = 2**22  # of the matrices of one table
_SHARED = "mbi fits a distribution of rows, which needs measurements with noise of a known size. "


def linear_measurements(published: Published) -> str:
    """The counts that were measured, as JSON."""
    release = published.release
    release.least_squares()  # refuses measurements that were chosen by their own noise
    measured, values = release.measurements, release.observation.values
    listed = [_measurement(counts, counts.values(values[counts.place]) / measured.grid) for counts in told(measured, None)]
    if not listed:
        raise InputError(_SHARED + "This release measured sums alone; ask for counts too.")
    domain = measured.domain
    try:
        (table,) = release.answer(queries(release.plan.domain))
        total = {"answer": table.answer.item(), "noise_std": table.noise_std.item()}
    except InputError:  # nothing that was measured determines the number of rows; mbi then takes it from tables of cells alone
        total = None
    return json.dumps(
        {
            "format": FORMAT,
            "private": release.private,
            "plan_digest": release.plan_digest,
            "noise": measured.noise.value,
            "domain": {name: domain.kind(name).size for name in domain.names},
            "total": total,
            "labels": {name: [str(label) for label in domain.kind(name).labels] for name in domain.names},
            "measurements": listed,
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def _measurement(counts: Told, values: Any) -> dict[str, Any]:
    """What a table tells of counts, its rows scaled to equal noise."""
    block = counts.block
    if block.limits is not None:
        raise InputError(_SHARED + "This release cut what a row adds by a rule of its own.")
    measurement = {
        "clique": list(block.attributes),
        "stddev": math.sqrt(counts.variance),
        "noisy_measurement": (values * block.scaling()).tolist(),
    }
    if all(factor.operator == Identity(factor.operator.size) and factor.even for factor in block.factors):
        return measurement
    entries = sum(factor.operator.rows * factor.operator.size for factor in block.factors)
    if not entries <= MOST_ENTRIES:
        raise refuse(f"the queries on {' x '.join(block.attributes)}", entries, f"of at most {MOST_ENTRIES} entries in their matrices")
    return measurement | {"matrices": [(dense(factor.operator) * np.asarray(factor.scaling)[:, None]).tolist() for factor in block.factors]}


MBI = Export("mbi", ".json", "measurements as mbi (private-pgm) takes them", linear_measurements)
