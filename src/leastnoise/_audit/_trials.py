"""Measurements of made-up rows, many times over."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leastnoise._domain import Coded, Domain
from leastnoise._kernel import Entropy, Series, Terms
from leastnoise._linop import Identity, SignedArray
from leastnoise._measurements import Factor, Measurements


def rehearse(
    measurements: Measurements,
    codes: Mapping[str, Sequence[int]],
    values: Mapping[str, Sequence[int]],
    count: int,
    entropy: Entropy | None = None,
) -> tuple[SignedArray, ...]:
    """Measure made-up rows many times, independently, with the kernel's own noise and, by default, the system's randomness.

    Guarantees: nothing is paid. The trials are an attribute more, along which every cell is measured by itself, so that each has its own
        noise of the block's scales. The series is one of added or removed rows, whatever the measurements': no row is in two trials.
    """
    trial = "trial" + "'" * max(map(len, measurements.domain.names))  # longer than every attribute's name, so none of them
    kinds = {name: measurements.domain.kind(name) for name in measurements.domain.names}
    domain = Domain({**kinds, trial: Coded(count)}, measures=measurements.domain.measures)
    each, privacy = Factor((trial,), Identity(count)), replace(measurements.privacy, neighbours="add_remove")
    blocks = tuple(replace(block, factors=(*block.factors, each)) for block in measurements.blocks)
    rows = len(next(iter(codes.values()), ()))
    # that the measurements cost no more than they declare is asked before they are changed
    next(Series.rehearsed(Terms(domain=measurements.domain, privacy=measurements.privacy, only=measurements), codes, values, entropy))
    several: dict[str, Any] = {name: np.tile(np.array(own, dtype=np.int64), count) for name, own in codes.items()}
    amounts: dict[str, Any] = {name: np.tile(np.array(own, dtype=np.int64), count) for name, own in values.items()}
    several[trial] = np.repeat(np.arange(count), rows)
    terms = Terms(domain=domain, privacy=privacy, attributes=domain.names, measures=tuple(domain.measures))
    series = next(Series.rehearsed(terms, several, amounts, entropy))
    drawn = series.measure(replace(measurements, domain=domain, privacy=privacy, blocks=blocks)).values
    return tuple(own.reshape(-1, count) for own in drawn)
