"""Several observations of one release as one: what a data-aware mechanism measured, step by step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._linop import narrow
from leastnoise._measurements import Observation


def join(observations: Sequence[Observation], privacy: Privacy) -> Observation:
    """Put the measurements of several steps side by side.

    Args:
        observations: of steps under one receipt, over one domain and with one kind of noise; at least one.
        privacy: what all of them together satisfy.

    Returns:
        The observation of all their blocks, on the finest of their grids. It is post-processing.

    Raises:
        InputError: no observations, or such as do not belong together.

    >>> privacy, blocks = Privacy(PureDP(1)), (Block((), 2),)
    >>> plan = Measurements(domain=Domain(sex=["F", "M"]), privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    >>> steps = [Observation(one, (np.array([8]),), "", private=False) for one in (plan, replace(plan, grid=4))]
    >>> both = join(steps, Privacy(PureDP(2)))
    >>> both.measurements.grid, [value.tolist() for value in both.values]
    (4, [[32], [8]])
    """
    if not observations:
        raise InputError("At least one observation must be given to be joined; got none.")
    first = observations[0]
    for other in observations:
        same = (other.measurements.domain, other.measurements.noise, other.receipt, other.private)
        if same != (first.measurements.domain, first.measurements.noise, first.receipt, first.private):
            raise InputError("Joined observations must be of one release: one domain, one kind of noise and one receipt.")
        if not other.measurements.privacy.same_unit(privacy):
            raise InputError("Joined observations must protect the unit that they are said to protect together.")
    grid = max(observation.measurements.grid for observation in observations)  # grids are powers of two
    measurements = replace(
        first.measurements,
        privacy=privacy,
        blocks=tuple(block for observation in observations for block in observation.measurements.blocks),
        grid=grid,
    )
    values = tuple(
        narrow(value.astype(np.int64) * (grid // observation.measurements.grid))
        for observation in observations
        for value in observation.values
    )
    return Observation(measurements, values, first.receipt, private=first.private)
