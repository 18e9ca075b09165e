"""What mechanisms that look at the data have in common: findings that are written and read, and what they say of their errors."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from leastnoise._domain import Domain
from leastnoise._estimate import Estimate, Estimator, Finding, Hidden, Independent, Said
from leastnoise._measurements import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found by looking at the data."""

    regime: ClassVar[str]
    linear: ClassVar[bool] = False
    further: ClassVar[bool] = True
    interval: ClassVar[str] = "interval_aware"
    reading: ClassVar[str] = "aware_reading"

    test: Mapping[str, float] | None = None

    @property
    def done(self) -> Said:
        """What was done, in a clause with the finding's own numbers."""
        return f"regime_{self.regime}", asdict(self)

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - of all domains
        """That smoothing is not bounded."""
        return [("aware_smoothed", {})]

    def facts(self) -> dict[str, Any]:
        """The way to measure and its numbers, as a JSON value."""
        return {"regime": self.regime, **_known(asdict(self))}

    def estimator(self, observation: Observation) -> Estimator:
        """The estimate that belongs to the way to measure."""
        raise NotImplementedError


def _known(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _known(inner) if isinstance(inner, Mapping) else inner for name, inner in value.items() if inner is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused(Looked):
    """No structure worth using."""

    regime = "independent"

    def not_covered(self, domain: Domain) -> list[Said]:  # noqa: ARG002 - of all domains
        """Nothing more than in an ordinary release."""
        return [("aware_independent", {})]

    def estimator(self, observation: Observation) -> Estimator:
        """Least squares."""
        return Independent(Estimate(observation))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn(Looked):
    """Buckets that were drawn privately."""

    buckets: int
    hidden: Hidden | None = None

    def not_covered(self, domain: Domain) -> list[Said]:
        """Whatever the buckets hide, where nothing tells it."""
        return [("aware_unknown", {})] if self.hidden is None else Looked.not_covered(self, domain)


def read_finding(kinds: tuple[type[Looked], ...], facts: Mapping[str, Any]) -> Finding:
    """Read what `Looked.facts` gave; what else stands there, in files of earlier releases, is left."""
    kind = {each.regime: each for each in kinds}[facts["regime"]]
    known = {field.name: facts[field.name] for field in fields(kind) if facts.get(field.name) is not None}
    if "hidden" in known:
        known["hidden"] = Hidden(scale=known["hidden"]["scale"], prior=known["hidden"]["prior"])
    return kind(**known)
