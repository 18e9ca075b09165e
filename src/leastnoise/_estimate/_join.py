"""Several observations of one release as one: what a data-aware mechanism measured, step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._linop import narrow
from leastnoise._observation import Observation


def join(
    observations: Sequence[Observation],
    privacy: Privacy,
    *,
    strategy: str,
    questions: Sequence[Mapping[str, Any]] = (),
    details: Mapping[str, Any] | None = None,
) -> Observation:
    """Put the measurements of several steps side by side, as if one plan had made them.

    Args:
        observations: of steps under one receipt, over one domain and with one kind of noise; at least one.
        privacy: what all of them together satisfy.
        strategy: name of what made them.
        questions: the workload that they answer, as its JSON value.
        details: further public facts.

    Returns:
        The observation of a plan whose blocks are those of all steps, on the finest of their grids. It is post-processing.

    Raises:
        InputError: no observations, or such as do not belong together.

    >>> privacy, blocks = Privacy(PureDP(1)), (Block((), 2),)
    >>> plan = Plan(domain=Domain(sex=["F", "M"]), privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=blocks, strategy="one")
    >>> steps = [Observation(one, (np.array([8]),), "", private=False) for one in (plan, replace(plan, grid=4))]
    >>> both = join(steps, Privacy(PureDP(2)), strategy="both")
    >>> both.plan.grid, [value.tolist() for value in both.values]
    (4, [[32], [8]])
    """
    if not observations:
        raise InputError("At least one observation must be given to be joined; got none.")
    first = observations[0]
    for other in observations:
        same = (other.plan.domain, other.plan.noise, other.receipt, other.private)
        if same != (first.plan.domain, first.plan.noise, first.receipt, first.private):
            raise InputError("Joined observations must be of one release: one domain, one kind of noise and one receipt.")
        if not other.plan.privacy.same_unit(privacy):
            raise InputError("Joined observations must protect the unit that they are said to protect together.")
    grid = max(observation.plan.grid for observation in observations)  # grids are powers of two
    plan = replace(
        first.plan,
        privacy=privacy,
        blocks=tuple(block for observation in observations for block in observation.plan.blocks),
        strategy=strategy,
        grid=grid,
        questions=tuple(questions),
        promise=None,
        details=dict(details or {}),
    )
    values = tuple(
        narrow(value.astype(np.int64) * (grid // observation.plan.grid)) for observation in observations for value in observation.values
    )
    return Observation(plan, values, first.receipt, private=first.private)
