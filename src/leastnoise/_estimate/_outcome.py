"""What a release has measured, and what was chosen on the way: all that its answers are computed from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._domain import Domain
from leastnoise._estimate._answer import Estimator
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._stated import public_of
from leastnoise._linop import narrow
from leastnoise._measurements import Measurements, Observation
from leastnoise._plan import Plan

Said: TypeAlias = tuple[str, Mapping[str, object]]
"""A sentence of the catalogue: its name, and what fills its places."""


class Finding(Protocol):
    """What a mechanism found out by its private steps, and so how its measurements are read. Public: it was paid for."""

    @property
    def linear(self) -> bool:
        """Whether answers are unbiased least squares on queries that the plan had fixed."""

    @property
    def further(self) -> bool:
        """Whether least squares has known errors for questions that were not asked: no query was chosen by another one's noise."""

    @property
    def done(self) -> Said:
        """What was done, in a clause."""

    @property
    def interval(self) -> str:
        """How low and high come about: a name in the catalogue."""

    @property
    def reading(self) -> str:
        """What the two parts of an error are: a name in the catalogue."""

    def not_covered(self, domain: Domain) -> list[Said]:
        """What the intervals do not cover, besides what no interval covers."""

    def facts(self) -> dict[str, Any]:
        """A JSON value from which the mechanism reads the finding back."""

    def estimator(self, observation: Observation) -> Estimator:
        """The answers' estimate."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Nothing was chosen on the way: the plan's own queries, by least squares."""

    linear = True
    further = True
    interval = "interval"
    reading = "reading"

    @property
    def done(self) -> Said:
        """The plan says it."""
        return "", {}

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - nothing
        """Nothing."""
        return []

    def facts(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares."""
        return Estimate(observation)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came of carrying a plan out."""

    plan: Plan
    observation: Observation
    finding: Finding = Fixed()

    def least_squares(self) -> Estimate:
        """Least squares of what was measured and what is public."""
        return Estimate(self.observation, public_of(self.plan))

    def estimator(self) -> Estimator:
        """The estimate of the answers."""
        return self.least_squares() if self.finding.linear else self.finding.estimator(self.observation)


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
