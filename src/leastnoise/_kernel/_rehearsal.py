"""The kernel on rows that somebody made up, as often as one likes: what an audit looks at. No data, no ledger, no release (K8)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._domain import Coded, Domain
from leastnoise._kernel._entropy import Entropy, SystemEntropy
from leastnoise._kernel._measure import draw, verify
from leastnoise._linop import Identity, SignedArray
from leastnoise._measurements import Factor, Measurements
from leastnoise._table import Table


def rehearse(
    measurements: Measurements,
    codes: Mapping[str, Sequence[int]],
    values: Mapping[str, Sequence[int]],
    count: int,
    entropy: Entropy | None = None,
) -> list[SignedArray]:
    """Measure made-up rows many times, independently, with the kernel's own noise and, by default, the system's randomness.

    Args:
        measurements: as for ``measure``.
        codes: of every attribute of the plan's domain the cells of the rows, in the clear: they are nobody's.
        values: of every measure the amounts.
        count: how often.
        entropy: another source, for tests.

    Returns:
        For each block an array of shape (rows of the block, count), in multiples of 1 / grid.

    Raises:
        InputError: as ``measure``.

    Guarantees: nothing is paid. What comes out is a function of the arguments and of noise; a private table cannot be given, since it does
        not show its rows. The trials are an attribute more, along which every cell is measured by itself, so that each has its own noise
        of the block's scales.

    >>> domain = Domain(sex=["F", "M"])
    >>> measurements = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(Block((), 1),))
    >>> [drawn.shape for drawn in rehearse(measurements, {"sex": [0, 0, 1]}, {}, 100)]
    [(1, 100)]
    """
    trial = "trial" + "'" * max(map(len, measurements.domain.names))  # longer than every attribute's name, so none of them
    domain = Domain(
        {**{name: measurements.domain.kind(name) for name in measurements.domain.names}, trial: Coded(count)},
        measures=measurements.domain.measures,
    )
    each = Factor((trial,), Identity(count))
    repeated = replace(
        measurements, domain=domain, blocks=tuple(replace(block, factors=(*block.factors, each)) for block in measurements.blocks)
    )
    rows = len(next(iter(codes.values()), ()))
    verify(measurements, made_up(measurements.domain, measurements.privacy, codes, values))
    several = {name: np.tile(np.array(own, dtype=np.int64), count) for name, own in codes.items()}
    amounts = {name: np.tile(np.array(own, dtype=np.int64), count) for name, own in values.items()}
    table = made_up(domain, measurements.privacy, {**several, trial: np.repeat(np.arange(count), rows)}, amounts)
    drawn = draw(repeated, table, SystemEntropy() if entropy is None else entropy)
    return [own.reshape(-1, count) for own in drawn]


def made_up(domain: Domain, privacy: Privacy, codes: Mapping[str, Any], values: Mapping[str, Any]) -> Table:
    """A table of rows that are nobody's."""
    arrays = {name: np.array(own, dtype=np.int64) for name, own in codes.items()}
    amounts = {name: np.array(own, dtype=np.int64) for name, own in values.items()}
    rows = len(next(iter(arrays.values()), ()))
    unit = {"unit_column": privacy.unit_column, "max_rows": privacy.max_rows, "max_per_cell": privacy.max_per_cell}
    return Table(domain, arrays, amounts, rows=rows, **unit)  # type: ignore[arg-type]
