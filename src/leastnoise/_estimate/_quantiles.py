"""Quantiles of a number by group, each with an interval of its own.

With N_i the count up to cell i and R_i that behind it, the p-quantile lies in the first cell with D_i = (1 - p) N_i - p R_i >= 0. Both it
and the cell before it are tested with half of what the level leaves: cells whose D_i lies clearly below 0 come before the quantile, and
those behind a cell that does not lie clearly at or above 0 may have it. So the interval misses on either side with at most half of what
the level leaves, for any distribution of the values, and nothing is simulated: D is a linear combination of counts, whose error is known.
With u, b and t the variances of N_i, R_i and N_i + R_i, that of D_i is (1 - p) u + p b - p (1 - p) t.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from leastnoise._accuracy import checked_level, interval_multiplier
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._cdf import Quantile, Quantiles
from leastnoise._estimate._up_to import HasLeastSquares, checked_share, place_within, quantile_counts, rising_share, up_to
from leastnoise._threads import one_thread
from leastnoise._workload import By


@one_thread()
def quantiles(
    source: HasLeastSquares,
    attribute: str,
    shares: Iterable[float],
    *,
    where: Mapping[str, Any] | None = None,
    by: By = (),
    level: float = 0.95,
) -> Quantiles:
    """Quantiles of a number, by group, from what was measured already.

    Args:
        source: an estimate or a release; it costs no budget.
        attribute: an attribute of Integers, Decimals, Bins or Edges. Rows in its cell ``other`` are left out.
        shares: such as [0.25, 0.5, 0.75]; each above 0 and at most 1.
        where: labels of further attributes, one or a list each, or groups such as ``{"region": "north"}``: only rows with them.
        by: attributes whose cells are groups, or mappings such as ``{"store": ln.level("region")}``, each with quantiles of its own.
        level: of the intervals, each by itself; `cdf` has those that hold all at once.

    Returns:
        One for each share, group by group in the order of the domain. The p-quantile is the least value with at least p of the rows at or
        below it; only its cell is known, so an interval reaches from the lower end of one cell to the upper end of another.

    Raises:
        InputError: an attribute that is no number, counts that the measurements do not determine, or a share or level that is none.

    Guarantees: post-processing. Each interval covers with probability at least ``level`` as far as the release's own intervals do.

    Edge cases: of a group without rows no quantile is defined; its interval says nothing.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(1, 4))
    >>> plan = ln.plan(ln.queries(domain, sex="identity", age="identity"), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"sex": ["F", "M"] * 500, "age": [1] * 100 + [2] * 400 + [3] * 300 + [4] * 200}), seed=7)
    >>> [(found.group, found.low, found.high) for found in ln.quantiles(release, "age", [0.3, 0.75], by=["sex"])]
    [(('F',), 2.0, 2.0), (('F',), 3.0, 3.0), (('M',), 2.0, 2.0), (('M',), 3.0, 3.0)]
    """
    estimate = source.least_squares()
    measured = estimate.observation.measurements
    asked, wanted = up_to(measured.domain, attribute, where or {}, by), [checked_share(share) for share in shares]
    times, half = interval_multiplier(measured.noise, checked_level(level)), 0.5 / measured.grid
    counts = quantile_counts(estimate, asked)
    shown = rising_share(counts.upto, np.maximum(counts.variances, 1e-24 * max(1.0, float(counts.variances.max()))))
    ends = []
    for p in wanted:
        tested, spread = counts.at(p)
        ends.append(_cells_of(tested, times * np.sqrt(spread) + half))
    made = []
    for at in np.ndindex(shown.shape[:-1]):
        group = tuple(labels[index] for labels, index in zip(asked.labels, at, strict=True))
        for p, (first, last) in zip(wanted, ends, strict=True):
            value, low, high = place_within(asked.starts, asked.values, shown[at], p, int(first[at]), int(last[at]))
            made.append(Quantile(share=p, value=value, low=low, high=high, group=group))
    return Quantiles(tuple(made), asked.keys, source.library)


def _cells_of(tested: FloatArray, margin: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """First and last cell that may have the quantile, along the last axis."""
    cells = tested.shape[-1]
    may = tested + margin >= 0
    first = np.where(may.any(axis=-1), may.argmax(axis=-1), cells - 1)
    before = (tested - margin < 0)[..., : cells - 1]
    last = np.where(before.any(axis=-1), cells - 1 - before[..., ::-1].argmax(axis=-1), 0) if cells > 1 else np.zeros_like(first)
    return first, np.maximum(first, last)
