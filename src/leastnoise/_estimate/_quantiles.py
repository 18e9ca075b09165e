"""A whole distribution function of one number with a simultaneous band, and quantiles with intervals by inverting it.

With N_i the count up to cell i, R_i that behind it and e, r the errors of their least squares estimates, let c be a quantile of
max_i max(|e_i| / sigma_i, |r_i| / tau_i). Then with the level's probability all N_i and R_i lie within c sigma_i and c tau_i of their
estimates at once, and so does every share F_i = N_i / (N_i + R_i) lie between the quotients of the ends. c is the right order statistic of
simulated releases of pure noise: errors of least squares do not depend on the data, so a real error and the simulated ones are exchangeable
and the coverage is at least the level for any noise, however few the simulations. The truth does not fall, so neither do the ends.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._domain import Bins, Decimals, Domain, Edges, Integers
from leastnoise._estimate._isotonic import isotonic
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._nnls import _noise
from leastnoise._measurements import Observation
from leastnoise._threads import one_thread
from leastnoise._workload import Product, predicates, prefix, queries

DRAWS = 1999  # with the levels 0.9, 0.95, 0.99 a whole order statistic: (draws + 1) * level
_FEWER, _MOST_KEPT = 199, 2**26
_PILOT = 200
_MOST_NOISE = 2**31


class HasLeastSquares(Protocol):
    """An estimate or a release."""

    def least_squares(self) -> Estimate:
        """For questions that were not in its workload.

        Raises:
            InputError: what was measured was chosen by its own noise, or cut at a threshold, so that no interval of a new answer is known.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A quantile with an interval.

    Attributes:
        share: p, the part of the rows at or below it.
        value: the estimate, in the attribute's own values.
        low: the quantile is at least this.
        high: the quantile is at most this.
    """

    share: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cdf:
    """A distribution function with a simultaneous band.

    Attributes:
        attribute: the number.
        values: upper end of every cell, in the attribute's own values, shape (n,).
        starts: lower end of every cell, shape (n,).
        share: estimated part of the rows at or below each value; does not fall; shape (n,).
        low: lower end of the band.
        high: upper end of the band.
        count: estimated number of rows.
        level: with this probability the band contains the whole true function.
    """

    attribute: str
    values: FloatArray
    starts: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    count: float
    level: float

    def quantiles(self, shares: Iterable[float]) -> tuple[Quantile, ...]:
        """Quantiles with intervals that hold all at once, together with the band.

        Args:
            shares: each above 0 and at most 1.

        Returns:
            One for each, in the order given. The p-quantile is the least value with at least p of the rows at or below it; only its cell
            is known, so an interval reaches from the lower end of one cell to the upper end of another. The estimate is taken evenly
            within its cell.

        Raises:
            InputError: a share that is not above 0 and at most 1.

        >>> made = Cdf(attribute="age", values=np.array([1.0, 2.0]), starts=np.array([0.0, 1.0]), share=np.array([0.4, 1.0]),
        ...            low=np.array([0.3, 1.0]), high=np.array([0.5, 1.0]), count=10.0, level=0.95)
        >>> made.quantiles([0.45])
        (Quantile(share=0.45, value=1.0833333333333333, low=0.0, high=2.0),)
        """
        found = []
        for share in shares:
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
                raise refuse("a quantile", share, "a number above 0 and at most 1, such as 0.5 for the median")
            first, last = (min(int(np.searchsorted(side, share)), len(self.values) - 1) for side in (self.high, self.low))
            place = min(int(np.searchsorted(self.share, share)), len(self.values) - 1)
            before = float(self.share[place - 1]) if place else 0.0
            rise = float(self.share[place]) - before
            inside = min(1.0, max(0.0, (share - before) / rise)) if rise > 0 else 1.0
            value = float(self.starts[place] + inside * (self.values[place] - self.starts[place]))
            low, high = float(self.starts[first]), float(self.values[last])
            found.append(Quantile(share=float(share), value=min(max(value, low), high), low=low, high=high))
        return tuple(found)


@one_thread()
def cdf(
    source: HasLeastSquares,
    attribute: str,
    *,
    where: Mapping[str, Any] | None = None,
    level: float = 0.95,
    draws: int | None = None,
    seed: int = 0,
) -> Cdf:
    """The distribution function of a number among the rows that were counted, with a band that holds everywhere at once.

    Args:
        source: an estimate or a release; it costs no budget.
        attribute: an attribute of Integers or Bins. Rows in its cell ``other`` are left out.
        where: labels of further attributes, one or a list each: only rows with them.
        level: probability that the band contains the whole true function, above 0 and below 1.
        draws: simulated releases; (draws + 1) level should be whole. None for 1999, or 199 over 33,000 cells, which hold the level too.
        seed: of the simulation, which is public.

    Returns:
        The function; see ``Cdf.quantiles``.

    Raises:
        InputError: an attribute that is no number, counts that the measurements do not determine, or too large a simulation.

    Guarantees: post-processing. The band covers the noise, with probability at least ``level`` over the noise of the release and of the
        simulation; not what the domain dropped or clipped.

    Edge cases: where next to nothing is known of the number of rows, the band is from 0 to 1.

    >>> plan = ln.plan(ln.queries(ln.Domain(age=ln.Integers(1, 4)), age="identity"), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"age": [1] * 100 + [2] * 400 + [3] * 300 + [4] * 200}), seed=7)
    >>> made = ln.cdf(release, "age", draws=199)
    >>> made.share.round(2).tolist(), made.quantiles([0.5])[0].value
    ([0.1, 0.5, 0.8, 1.0], 2.0)
    """
    estimate = source.least_squares()
    observation = estimate.observation
    domain = observation.measurements.domain
    starts, values = _ends(domain, attribute)
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise refuse("level", level, "a number above 0 and below 1, such as 0.95")
    if draws is None:
        draws = DRAWS if DRAWS * len(values) <= _MOST_KEPT else _FEWER
    rank = math.ceil((draws + 1) * level - 1e-9)
    if not rank <= draws:
        raise refuse("draws", draws, f"at least {math.ceil(level / (1 - level))} for the level {level}")
    product = _prefix(domain, attribute, where or {})
    shape = len(values)
    upto = estimate.values(product).reshape(-1)[:shape]
    pilot = min(_PILOT, draws)
    noise = simulated_noise(estimate, product, pilot + draws, seed).reshape(pilot + draws, -1)[:, :shape]
    both = np.concatenate([noise, noise[:, -1:] - noise[:, :-1]], axis=1)
    # Widths come from other draws than the quantile, so that those stay exchangeable with the release.
    width = np.sqrt((both[:pilot] ** 2).mean(axis=0))
    width = np.maximum(width, 1e-12 * max(1.0, float(width.max())))
    factor = float(np.sort(np.abs(both[pilot:] / width).max(axis=1))[rank - 1])
    counts = np.concatenate([upto, upto[-1] - upto[:-1]])
    floor, ceiling = np.maximum(counts - factor * width, 0.0), np.maximum(counts + factor * width, 0.0)
    low, high = np.ones(shape), np.ones(shape)
    low[:-1] = _share(floor[: shape - 1], ceiling[shape:])
    high[:-1] = _share(ceiling[: shape - 1], floor[shape:], empty=1.0)
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    rising = np.maximum(isotonic(upto, variances=width[:shape] ** 2), 0.0)
    share = rising / rising[-1] if rising[-1] > 0 else np.append(np.zeros(shape - 1), 1.0)
    return Cdf(
        attribute=attribute,
        values=values,
        starts=starts,
        share=np.maximum.accumulate(np.clip(share, low, np.maximum(low, high))),
        low=low,
        high=np.maximum(low, high),
        count=float(upto[-1]),
        level=float(level),
    )


@one_thread()
def quantiles(source: HasLeastSquares, attribute: str, shares: Sequence[float], **options: Any) -> tuple[Quantile, ...]:
    """Several quantiles of a number with intervals that hold all at once, from what was measured already.

    Args:
        source: an estimate or a release.
        attribute: an attribute of Integers or Bins.
        shares: such as [0.25, 0.5, 0.75].
        **options: as for `cdf`.

    Raises:
        InputError: as `cdf`.

    >>> plan = ln.plan(ln.queries(ln.Domain(age=ln.Integers(1, 4)), age="identity"), ln.PureDP(1))
    >>> release = ln.release(plan, pd.DataFrame({"age": [1] * 100 + [2] * 400 + [3] * 300 + [4] * 200}), seed=7)
    >>> [(found.low, found.high) for found in ln.quantiles(release, "age", [0.3, 0.75], draws=199)]
    [(2.0, 2.0), (3.0, 3.0)]
    """
    return cdf(source, attribute, **options).quantiles(shares)


def simulated_noise(estimate: Estimate, product: Product, draws: int, seed: int) -> FloatArray:
    """Errors of the answers to a product in simulated releases, shape (draws, *product.shape).

    Least squares is linear: its errors are its answers to noise alone.

    Args:
        estimate: whose plan is simulated.
        product: the queries.
        draws: number of releases.
        seed: of the noise, which protects nobody and is public.

    Raises:
        InputError: over 2^31 numbers would have to be drawn.

    >>> plan = Measurements(domain=Domain(age=Integers(1, 4)), privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE,
    ...             blocks=(Block((), Fraction(9)),))
    >>> estimate = Estimate(Observation(plan, (np.array([100]),), "", private=False))
    >>> simulated_noise(estimate, queries(plan.domain).products[0], 3, seed=1).shape
    (3,)
    """
    plan = estimate.observation.measurements
    places = [place for place, block in enumerate(plan.blocks) if block.measure == product.measure]
    rows = sum(plan.blocks[place].rows for place in places)
    if not rows * draws <= _MOST_NOISE:
        raise InputError(
            f"At most {_MOST_NOISE} numbers are drawn to simulate releases; got {draws} releases of {rows} measured queries. "
            "Ask for fewer draws."
        )
    generator = np.random.default_rng(seed)
    found = np.empty((draws, *product.shape))
    for draw in range(draws):
        values: list[IntArray] = [np.zeros(block.rows, dtype=np.int64) for block in plan.blocks]
        for place in places:
            values[place] = np.rint(_noise(plan, place, 1, generator)[:, 0] * plan.grid).astype(np.int64)
        found[draw] = estimate.like(Observation(plan, tuple(values), "", private=False)).values(product)
    return found


def _share(part: FloatArray, rest: FloatArray, empty: float = 0.0) -> FloatArray:
    """part / (part + rest) of numbers of at least 0; ``empty`` where both are 0."""
    both = part + rest
    return np.asarray(np.where(both > 0, part / np.where(both > 0, both, 1.0), empty))


def _ends(domain: Domain, attribute: str) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of the cells that are numbers."""
    kind = domain.kind(attribute)
    if isinstance(kind, (Bins, Edges)):
        edges = np.array([float(edge) for edge in kind.edges])
        return edges[:-1], edges[1:]
    if isinstance(kind, Integers):
        numbers = np.arange(kind.low, kind.high + 1, dtype=np.float64)
        return numbers, numbers
    if isinstance(kind, Decimals):
        numbers = np.array([float(value) for value in kind.values])
        return numbers, numbers
    allowed = "one of Integers, Decimals, Bins or Edges, whose cells are numbers"
    raise refuse("the attribute of a distribution function", attribute, allowed)


def _prefix(domain: Domain, attribute: str, where: Mapping[str, Any]) -> Product:
    """Counts up to every cell, of the rows with the labels asked for."""
    sets: dict[str, Any] = {attribute: prefix()}
    for name, labels in where.items():
        if name == attribute:
            raise InputError(f"The distribution function of {attribute} cannot be restricted to some values of {attribute} itself.")
        domain.kind(name)
        sets[name] = predicates([labels if isinstance(labels, (list, tuple)) else [labels]])
    return queries(domain, sets).products[0]
