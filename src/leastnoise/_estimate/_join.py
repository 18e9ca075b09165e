"""Several observations of one release as one: what a data-aware mechanism measured, step by step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._linop import narrow
from leastnoise._measurements import Measurements, Observation


def join(observations: Sequence[Observation], privacy: Privacy) -> Observation:
    """Put the measurements of several steps side by side."""
    if not observations:
        raise InputError("At least one observation must be given to be joined; got none.")
    first = observations[0]
    for other in observations:
        same = (other.measurements.domain, other.measurements.noise, other.receipt, other.private)
        if same != (first.measurements.domain, first.measurements.noise, first.receipt, first.private):
            raise InputError("Joined observations must be of one release: one domain, one kind of noise and one receipt.")
        if not other.measurements.privacy.same_unit(privacy):
            raise InputError("Joined observations must protect the unit that they are said to protect together.")
    measurements = joined([observation.measurements for observation in observations], privacy)
    values = tuple(
        narrow(value.astype(np.int64) * (measurements.grid // observation.measurements.grid))
        for observation in observations
        for value in observation.values
    )
    return Observation(measurements, values, first.receipt, private=first.private)


def joined(steps: Sequence[Measurements], privacy: Privacy) -> Measurements:
    """What `join` says was measured; for steps that are known, it tells before anything is paid whether they can be joined."""
    grid = max(step.grid for step in steps)  # grids are powers of two
    return replace(steps[0], privacy=privacy, blocks=tuple(block for step in steps for block in step.blocks), grid=grid)
