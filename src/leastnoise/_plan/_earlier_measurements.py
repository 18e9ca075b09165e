"""Earlier releases of the same data, whose measurements a plan uses.

The measurements of a finished release are public, so another release may use them at no cost. One
least squares estimate from the measurements of all these releases then gives the answers. The
expected error of this estimate is known before anything is spent, because it depends only on the
scales of the noise, and not on the noisy values.

Source: docs/mathematics.md, section 11.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from leastnoise._domain import Domain
from leastnoise._plan._plan_json import measurements_from_value, values_from_json
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check import InputError, quoted
from leastnoise._trusted.linop import (
    Dense,
    Identity,
    Operator,
    Ranges,
    as_int32_if_exact,
    dense,
    noisy_array_to_json,
)
from leastnoise._trusted.measurements import (
    Block,
    Factor,
    Measurements,
    Observation,
    measurements_value,
)
from leastnoise._workload import without_hidden_cells

_SCALE_BITS = 40  # bits of a noise scale on a finer grid; the sampler supports longer numerators
_ADVICE = "Remove it from `after`, or plan like the earlier release. Nothing was spent."


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """The measurements of a finished release, for a later plan of the same data.

    `Release.as_earlier` returns it. Two values of this class are equal if their digests are equal.

    Attributes:
        name: a name for readers, such as the name of the release's folder.
        digest: the SHA-256 of the release's `measurements/observation.json`, in hexadecimal.
        dataset: the name of the data in the ledger that paid; empty if the noise came from a seed.
        receipts: the payments for the measurements of the release, and of earlier releases that it
            used. Empty if the noise came from a seed.
        plan_digests: the digest of the plan of each payment, as the ledger records it.
        counted: the digest of each earlier release that this release used.
        attributes: the attributes that the release read, in the order of the domain.
        observation: the measurements and their noisy values.
    """

    name: str = field(compare=False)
    digest: str
    dataset: str = field(compare=False)
    receipts: tuple[str, ...] = field(compare=False)
    plan_digests: tuple[str, ...] = field(compare=False)
    counted: tuple[str, ...] = field(compare=False)
    attributes: tuple[str, ...] = field(compare=False)
    observation: Observation = field(compare=False)

    @property
    def measurements(self) -> Measurements:
        """The measured queries of the release, without the noisy values."""
        return self.observation.measurements

    def to_json(self) -> dict[str, Any]:
        """Return the value as a JSON object, which `from_json` reads."""
        return {
            **self.facts(),
            "attributes": list(self.attributes),
            "private": self.observation.private,
            "measurements": measurements_value(self.measurements),
            "values": [noisy_array_to_json(values) for values in self.observation.values],
        }

    def facts(self) -> dict[str, Any]:
        """Return the name, digests, data set and payments of the release as JSON."""
        return {
            "name": self.name,
            "digest": self.digest,
            "dataset": self.dataset,
            "receipts": list(self.receipts),
            "plan_digests": list(self.plan_digests),
            "counted": list(self.counted),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "EarlierRelease":
        """Read the value back from the JSON object that `to_json` returned."""
        measurements = measurements_from_value(value["measurements"])
        receipts = tuple(map(str, value["receipts"]))
        observation = Observation(
            measurements,
            values_from_json(measurements, value["values"]),
            receipts[0] if receipts else "",
            private=value["private"] is True,
        )
        return EarlierRelease(
            name=str(value["name"]),
            digest=str(value["digest"]),
            dataset=str(value["dataset"]),
            receipts=receipts,
            plan_digests=tuple(map(str, value["plan_digests"])),
            counted=tuple(map(str, value["counted"])),
            attributes=tuple(map(str, value["attributes"])),
            observation=observation,
        )


class HasMeasurements(Protocol):
    """A release that a later plan can use, such as a `Release`."""

    def as_earlier(self) -> EarlierRelease:
        """Return the release's measurements in the form that a later plan uses."""


def joint_measurements(latest: Measurements, earlier: Sequence[EarlierRelease]) -> Measurements:
    """Combine the measurements of a plan and of earlier releases.

    The result has the privacy of the plan, although the plan does not pay for the earlier
    measurements.

    Raises:
        InputError: an earlier release has another kind of noise.
    """
    if not earlier:
        return latest
    for release in earlier:
        check_noise(release, latest.noise)
    steps = [latest, *(_over_domain(release, latest.domain) for release in earlier)]
    grid = max(step.grid for step in steps)
    blocks: list[Block] = []
    first_group = 0
    for step in steps:
        blocks += [_rewrite_block(block, step, grid, first_group) for block in step.blocks]
        first_group += 1 + max(step.k_norm_groups(), default=-1)
    return replace(latest, blocks=tuple(blocks), grid=grid)


def _rewrite_block(
    block: Block, measurements: Measurements, common_grid: int, first_group: int
) -> Block:
    """Convert a block of one release to the common grid of several releases.

    If the common grid is finer, the noise scale is changed so that the variance stays the same. The
    number of the block's K-norm group is increased by ``first_group``.
    """
    scale = block.scale
    group = block.k_norm_group
    has_contrasts = any(factor.largest_square > 1 for factor in block.factors)
    if common_grid != measurements.grid and not has_contrasts:
        # Rounding to a grid of 1/g adds 1/(12 g^2) to the variance of a Gaussian.
        added = (1 / measurements.grid**2 - 1 / common_grid**2) / 12
        root = math.sqrt(float(scale) ** 2 + added)
        exponent = _SCALE_BITS - math.frexp(root)[1]
        scale = Fraction(math.ceil(math.ldexp(root, exponent))) / Fraction(2) ** exponent
    if group is not None:
        group += first_group
    return Block(block.factors, scale, block.measure, block.limits, block.ends, group)


def _over_domain(release: EarlierRelease, domain: Domain) -> Measurements:
    """Convert the measurements of an earlier release to the domain of a plan.

    The two domains may differ in hidden cells. If the release dropped the rows that have no value
    of an attribute, the converted queries do not count the plan's hidden cell for these rows.
    """
    measurements = release.measurements
    if measurements.domain == domain:
        return measurements
    dropped = {name for name in dropped_along(release) if domain.kind(name).hidden}
    blocks = [_without_hidden(block, domain, dropped) for block in measurements.blocks]
    return replace(measurements, domain=domain, blocks=tuple(blocks))


def _without_hidden(block: Block, domain: Domain, dropped_attributes: AbstractSet[str]) -> Block:
    """Extend a block's queries to a domain with hidden cells.

    The extended queries do not count the rows in these cells.
    """
    factors = []
    for factor in block.factors:
        widened = dropped_attributes & {*factor.attributes}
        if widened and (len(factor.attributes) > 1 or factor.largest_square > 1):
            raise InputError(
                "An earlier release measured contrasts that leave out the rows without a value of "
                f"{', '.join(sorted(widened))}; this plan counts these rows in some tables. If no "
                "row lacks a value, write complete = true for the attribute in all specs."
            )
        if not widened:
            factors.append(factor)
            continue
        operator = _widen_operator(factor.operator)
        factors.append(Factor(factor.attributes, operator, factor.row_weights))
    for name in dropped_attributes - {*block.attributes}:
        cells = np.array([domain.cells(name) - 2], dtype=np.int64)
        factors.append(Factor((name,), Ranges(domain.cells(name), np.zeros_like(cells), cells)))
    factors.sort(key=lambda factor: domain.names.index(factor.attributes[0]))
    return replace(block, factors=tuple(factors))


@singledispatch
def _widen_operator(operator: Operator) -> Operator:
    """Extend an operator by a last cell that no query counts."""
    return Dense(np.pad(dense(operator), ((0, 0), (0, 1))))


@_widen_operator.register
def _(operator: Identity) -> Operator:
    cells = np.arange(operator.size)
    return Ranges(operator.size + 1, cells, cells)


@_widen_operator.register
def _(operator: Ranges) -> Operator:
    return Ranges(operator.size + 1, operator.low, operator.high)


def dropped_along(release: EarlierRelease) -> set[str]:
    """Return the attributes whose missing values made a release drop rows."""
    return _dropping_attributes(release.measurements.domain, release.attributes)


def hidden_attributes(
    earlier: Sequence[EarlierRelease], domain: Domain, attributes: Iterable[str]
) -> tuple[str, ...]:
    """Return the attributes that need a hidden cell, given earlier releases.

    An attribute needs a hidden cell if it may drop rows in the plan or in a release, but not in all
    of them.

    Args:
        earlier: the releases.
        domain: the domain of the plan, with the hidden cells of its tables.
        attributes: the attributes that the plan reads.
    """
    dropped = [_dropping_attributes(domain, attributes), *map(dropped_along, earlier)]
    domains = [domain, *(release.measurements.domain for release in earlier)]
    hidden: set[str] = set()
    for each in domains:
        hidden.update(name for name in each.names if each.kind(name).hidden)
    needed = hidden.union(*dropped) - dropped[0].intersection(*dropped)
    return tuple(name for name in domain.names if name in needed)


def _dropping_attributes(domain: Domain, attributes: Iterable[str]) -> set[str]:
    """Return the attributes whose missing values drop a row from all tables."""
    kinds = {name: domain.kind(name) for name in attributes}
    return {name for name, kind in kinds.items() if kind.may_drop and not kind.hidden}


def joint_observation(latest: Observation, earlier: Sequence[EarlierRelease]) -> Observation:
    """Combine the noisy values of a plan and of earlier releases.

    The values are rescaled to the finest grid. The result counts as private only if all parts are
    private.
    """
    if not earlier:
        return latest
    observations = [latest, *(release.observation for release in earlier)]
    measurements = joint_measurements(latest.measurements, earlier)
    values = []
    for observation in observations:
        finer = measurements.grid // observation.measurements.grid  # grids are powers of two
        values += [
            as_int32_if_exact(block.astype(np.int64) * finer) for block in observation.values
        ]
    private = all(observation.private for observation in observations)
    return Observation(measurements, tuple(values), latest.receipt, private=private)


def check_noise(release: EarlierRelease, noise: Noise) -> None:
    """Raise unless an earlier release has the same kind of noise as the plan."""
    if release.measurements.noise is not noise:
        raise InputError(
            f"The earlier release {quoted(release.name)} must have the noise of this plan, "
            f"{noise.value}; it has {release.measurements.noise.value}. Intervals "
            f"cannot be computed for an estimate that combines two kinds of noise. {_ADVICE}"
        )


def check_domain(release: EarlierRelease, domain: Domain) -> None:
    """Raise unless an earlier release has the cells and measures of the plan.

    Hidden cells may differ. The release may have measures that the plan lacks, and the other way
    round.
    """
    release_domain = without_hidden_cells(release.measurements.domain)
    plan_domain = without_hidden_cells(domain)
    kinds, other_kinds = (
        {name: each.kind(name) for name in each.names} for each in (plan_domain, release_domain)
    )
    if list(kinds.items()) != list(other_kinds.items()):
        raise InputError(
            f"The earlier release {quoted(release.name)} must have the domain of this plan; its "
            f"attributes, their cells or its rules for missing values differ. {_ADVICE}"
        )
    for name, measure in release_domain.measures.items():
        if plan_domain.measures.get(name, measure) != measure:
            raise InputError(
                f"The earlier release {quoted(release.name)} must have the measures of this plan; "
                f"its {name} has other bounds, another unit or other rules. {_ADVICE}"
            )


def with_earlier_measures(domain: Domain, earlier: Iterable[EarlierRelease]) -> Domain:
    """Add the measures of earlier releases to a plan's domain.

    A measure does not affect which rows are counted, so a release that lacks the measure has the
    same rows in the same cells.
    """
    measures = dict(domain.measures)
    for release in earlier:
        for name, measure in release.measurements.domain.measures.items():
            measures.setdefault(name, measure)
    if len(measures) == len(domain.measures):
        return domain
    return Domain({name: domain.kind(name) for name in domain.names}, measures=measures)


def check_earlier(
    earlier: Sequence[EarlierRelease],
    domain: Domain,
    privacy: Privacy,
    attributes: Iterable[str],
) -> None:
    """Raise unless earlier releases counted the same rows and cells as the plan.

    Args:
        earlier: the releases.
        domain: the domain of the plan.
        privacy: the privacy of the plan.
        attributes: the attributes that the plan reads.

    Raises:
        InputError: a release has another domain, unit or neighbours; a release occurs twice; or
            only one of the plan and a release drops some rows.
    """
    dropped = _dropping_attributes(domain, attributes)
    hidden = {name for name in domain.names if domain.kind(name).hidden}
    name_of_id: dict[str, str] = {}
    for release in earlier:
        name = f"The earlier release {quoted(release.name)}"
        check_domain(release, domain)
        others = release.measurements.privacy
        if others.within(privacy.budget) != privacy:
            raise InputError(
                f"{name} must have the unit and neighbours of this plan, {quoted(privacy.unit)}; "
                f"got {quoted(others.unit)}. Another unit counts other rows. {_ADVICE}"
            )
        dropped_in_release = dropped_along(release)
        hidden_in_release = {
            each
            for each in release.measurements.domain.names
            if release.measurements.domain.kind(each).hidden
        }
        differing = (dropped - dropped_in_release) | (dropped_in_release - dropped - hidden)
        differing |= hidden_in_release - hidden
        if differing:
            raise InputError(
                f"{name} must drop the same rows as this plan; only the release or only the plan "
                f"drops the rows without a value of {', '.join(sorted(differing))}. {_ADVICE}"
            )
        keys = (release.digest, *release.counted, *release.receipts)
        for key in keys:
            if key in name_of_id:
                raise InputError(
                    "Every measurement must be used only once; the earlier releases "
                    f"{quoted(name_of_id[key])} and {quoted(release.name)} have measurements in "
                    f"common. {_ADVICE}"
                )
        name_of_id.update(dict.fromkeys(keys, release.name))
