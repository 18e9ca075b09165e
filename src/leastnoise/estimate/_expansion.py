"""Answers from what a data-aware mechanism measured along one attribute, with the two parts of their error.

Given the outcome of the choices (the regime, the buckets), an answer's error has two parts. *Noise* was added for privacy; its variance is
exact, with the factors of shrinking held fixed. *Approximation* is what is lost by taking cells for alike that are not: it depends on the
data, so it is estimated, from the same paid numbers: for shrunk answers the posterior's spread that is not noise, for buckets what the test
of the data's structure says about the deviations inside them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from leastnoise._check import InputError
from leastnoise.accuracy import block_variance
from leastnoise.estimate._least_squares import Estimate, FloatArray
from leastnoise.estimate._plane_expansion import REGIMES as PLANE_REGIMES
from leastnoise.estimate._plane_expansion import on_plane
from leastnoise.estimate._shrinkage import Halving, Levels, Shrunk, shrink
from leastnoise.estimate._truncated import Truncated
from leastnoise.linop import (
    AllRanges,
    Coarse,
    Identity,
    IntArray,
    Operator,
    Prefix,
    Ranges,
    Total,
    Tree,
    all_range_ends,
    apply,
    apply_transpose,
    dense,
)
from leastnoise.observation import Observation
from leastnoise.plan import Block
from leastnoise.workload import Product

KEY = "data_aware"
_AT_ONCE, _MOST_EDGES = 2**22, 2**12 + 1


@runtime_checkable
class Answers(Protocol):
    """What a release needs of an estimate."""

    def answers(self, product: Product) -> FloatArray:
        """Answers, shape ``product.shape``."""

    def variances(self, product: Product) -> FloatArray:
        """Variance of the noise in them, same shape."""


@runtime_checkable
class DataAware(Answers, Protocol):
    """What a release of a data-aware mechanism needs besides."""

    def approximations(self, product: Product) -> FloatArray:
        """Estimated square of the rest of the error, same shape; NaN where nothing that was paid for tells."""


def is_data_aware(details: Mapping[str, Any]) -> bool:
    """Whether the details of a plan say that it was chosen by looking at the data.

    >>> is_data_aware({})
    False
    """
    return KEY in details


def data_aware(observation: Observation) -> DataAware:
    """The estimate that belongs to a data-aware release, by its regime.

    Args:
        observation: of a plan whose details say ``data_aware``.

    Raises:
        InputError: the details name no known regime, or the measurements are not those of one.

    >>> from fractions import Fraction
    >>> from leastnoise.accounting import Privacy, PureDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.plan import Plan
    >>> domain, privacy = Domain(age=[1, 2]), Privacy(PureDP(1))
    >>> plan = Plan(domain=domain, privacy=privacy, mechanism="discrete_laplace", blocks=(Block((), Fraction(1)),), strategy="dawa",
    ...             details={KEY: {"regime": "independent"}})
    >>> type(data_aware(Observation(plan, (np.array([8]),), "", private=False))).__name__
    'Independent'
    """
    facts = observation.plan.details.get(KEY, {})
    try:
        regime = facts["regime"]
        if regime == "independent":
            return Independent(Estimate(observation))
        if regime == "truncated":
            return Truncated.of(observation)
        if regime in PLANE_REGIMES:
            return on_plane(observation, facts)
        if regime in ("shrunk", "adaptive"):
            return Posterior.of(observation)
        if regime == "buckets":
            deviation = facts.get("deviation")
            return Expanded.of(observation, bounded=bool(facts["bounded"]), deviation=None if deviation is None else float(deviation))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        pass
    raise InputError("The observation is not one of a data-aware mechanism, or a damaged one. Use an intact copy of the release.")


@dataclass(frozen=True, slots=True)
class Independent:
    """Least squares on the measurements of a data-independent plan: no approximation.

    Args:
        estimate: of the observation.
    """

    estimate: Estimate

    def answers(self, product: Product) -> FloatArray:
        """Least squares."""
        return self.estimate.answers(product)

    def variances(self, product: Product) -> FloatArray:
        """Exact."""
        return self.estimate.variances(product)

    def approximations(self, product: Product) -> FloatArray:
        """Zero."""
        return np.zeros(product.shape)


def level_values(observation: Observation, block: Block, values: IntArray) -> tuple[Levels, list[FloatArray], float | None]:
    """The levels that a block measured, cells first: their shape, noisy counts of shape (1, blocks), and the scale of the cells' noise.

    Args:
        observation: that has the block.
        block: of a tree along one attribute.
        values: of its rows, in multiples of 1 / grid.

    Returns:
        The scale is None where the noise is normal.
    """
    (factor,), plan = block.factors, observation.plan
    tree = factor.operator
    if not isinstance(tree, Tree):
        raise TypeError(tree)
    ends = np.cumsum(tree.level_sizes)[:-1]
    levels = [one[None, :] / plan.grid for one in np.split(values, ends)][::-1]
    weights = [int(one[0]) for one in np.split(factor.weights, ends)][::-1]
    variance = block_variance(plan, block)
    shape = Levels(Halving(tree.size), tree.widths[::-1], tuple(variance / weight**2 for weight in weights))
    tail = float(block.scale) / weights[0] if plan.mechanism == "discrete_laplace" else None
    return shape, levels, tail


def shrunk_levels(observation: Observation, block: Block, values: IntArray) -> tuple[Halving, FloatArray, float, Shrunk]:
    """The total of measured levels, its variance, and the posterior of the differences.

    Args:
        observation: that has the block.
        block: of a tree along one attribute.
        values: of its rows.

    >>> from leastnoise.accounting import Privacy, PureDP
    >>> from leastnoise.domain import Domain, Integers
    >>> from leastnoise.linop import Tree
    >>> from leastnoise.plan import Block, Factor, Plan
    >>> block = Block((Factor(("age",), Tree(4, (2, 1))),), 2)
    >>> domain, privacy = Domain(age=Integers(1, 4)), Privacy(PureDP(1))
    >>> plan = Plan(domain=domain, privacy=privacy, mechanism="discrete_laplace", blocks=(block,), strategy="dawa")
    >>> values = np.array([50, 3, 26, 24, 1, 2])
    >>> halving, total, variance, shrunk = shrunk_levels(Observation(plan, (values,), "", private=False), block, values)
    >>> bool(50 < total[0] < 57), variance > 0, [part.shape for part in shrunk.means]
    (True, True, [(1, 2), (1, 1)])
    """
    levels, measured, tail = level_values(observation, block, values)
    total, parts = levels.halving.differences(levels.estimate(measured))
    variance, noise = levels.noise()
    return levels.halving, total, variance, shrink(parts, noise, tail)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Levels of blocks, shrunk; and, if a second step measured buckets, the posterior given both.

    Args:
        halving: of the cells.
        mean: of the total and all differences.
        variance: of the first step's posterior, same shape.
        noise: the part of it that is noise.
        second: rows of the second step as sums of total and differences, and their noise variances; None without a second step.
    """

    halving: Halving
    mean: FloatArray
    variance: FloatArray
    noise: FloatArray
    second: "_Second | None" = None

    @staticmethod
    def of(observation: Observation) -> "Posterior":
        """From the observation of one or two steps."""
        blocks, values = observation.plan.blocks, observation.values
        halving, total, variance, found = shrunk_levels(observation, blocks[0], values[0])
        first = Posterior(
            halving,
            np.concatenate([total[0], *(one[0] for one in found.means)]),
            np.concatenate([[variance], *(one[0] for one in found.variances)]),
            np.concatenate([[variance], *(one[0] for one in found.noise)]),
        )
        return first if len(blocks) == 1 else first._with(observation, blocks[1], values[1])

    def _with(self, observation: Observation, block: Block, values: IntArray) -> "Posterior":
        """Both steps' measurements together: the posterior of normals."""
        from scipy.linalg import cho_factor, cho_solve

        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        edges = np.append(factor.operator.starts, factor.operator.size)
        at_edges = self.at_edges(edges)
        ends = _ends(factor.operator.operator)
        counts = at_edges[1:] - at_edges[:-1]
        rows = _sparse(dense(factor.operator.operator) @ counts if ends is None else at_edges[ends[1]] - at_edges[ends[0]])
        own = block_variance(observation.plan, block) / factor.weights.astype(np.float64) ** 2
        inner = cho_factor((rows.multiply(self.variance) @ rows.T).toarray() + np.diag(own), lower=True)
        change = cho_solve(inner, values / observation.plan.grid - rows @ self.mean)
        mean = self.mean + self.variance * (rows.T @ change)
        spread = (rows.multiply(self.noise) @ rows.T).toarray() + np.diag(own)
        return Posterior(self.halving, mean, self.variance, self.noise, _Second(rows, inner, spread))

    @cached_property
    def _offsets(self) -> IntArray:
        return np.cumsum([1, *(len(one) for one in self.halving.left)])

    def at_edges(self, edges: IntArray) -> Any:
        """The sums of the first t cells as sums of total and differences: a sparse matrix of shape (edges, padded)."""
        from scipy.sparse import csr_matrix

        columns, weights = [np.zeros(len(edges), dtype=np.int64)], [edges / self.halving.size]
        for level, offset in enumerate(self._offsets[:-1]):
            block, weight = self.halving.edge_weights(level, edges)
            columns.append(offset + block)
            weights.append(weight)
        rows = np.tile(np.arange(len(edges)), len(columns))
        shape = (len(edges), self.halving.padded)
        return csr_matrix((np.concatenate(weights), (rows, np.concatenate(columns))), shape=shape)

    @cached_property
    def cells(self) -> FloatArray:
        """Posterior means, no block below 0 or above the one it lies in; shape (n,)."""
        parts = [self.mean[None, a:b] for a, b in zip(self._offsets[:-1], self._offsets[1:], strict=True)]
        return np.asarray(self.halving.together(self.mean[None, :1], parts)[0])

    def answers(self, product: Product) -> FloatArray:
        """Posterior means."""
        return _answers(product, self.cells)

    def variances(self, product: Product) -> FloatArray:
        """Of the noise, with the factors of shrinking held fixed."""
        return self._spreads(product)[0]

    def approximations(self, product: Product) -> FloatArray:
        """The posterior variance that is not noise."""
        return self._spreads(product)[1]

    def _spreads(self, product: Product) -> tuple[FloatArray, FloatArray]:
        operator = _operator(product, self.halving.size)
        ends = _ends(operator)
        if ends is None:
            noise, whole = self._of_rows(self._rows_of(dense(operator).astype(np.float64)))
        elif self.second is None:
            noise, whole = self._of_ranges(*ends)
        else:
            noise, whole = self._of_ranges_given_both(*ends)
        return noise.reshape(product.shape), np.maximum(whole - noise, 0.0).reshape(product.shape)

    def _of_ranges(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """A range's variance under independent differences: at most two blocks of every width, in which it begins and ends."""
        share = ((high - low) / self.halving.size) ** 2
        noise, whole = self.noise[0] * share, self.variance[0] * share
        for level, offset in enumerate(self._offsets[:-1]):
            (block, weight), (other, less) = self.halving.edge_weights(level, high), self.halving.edge_weights(level, low)
            same = block == other
            first, second = (weight - np.where(same, less, 0.0)) ** 2, np.where(same, 0.0, less**2)
            noise += first * self.noise[offset + block] + second * self.noise[offset + other]
            whole += first * self.variance[offset + block] + second * self.variance[offset + other]
        return noise, whole

    def _of_ranges_given_both(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """What the second step takes away, by the covariances of the edges that occur."""
        edges, places = np.unique(np.concatenate([low, high]), return_inverse=True)
        if len(edges) > _MOST_EDGES or len(low) <= len(edges):
            parts = [self._of_rows(self.at_edges(high[part]) - self.at_edges(low[part])) for part in _chunks(len(low), _MOST_EDGES)]
            return np.concatenate([noise for noise, _ in parts]), np.concatenate([whole for _, whole in parts])
        first, last = places[: len(low)], places[len(low) :]
        rows = self.at_edges(edges)
        removed, loud = self._removed(rows)
        noise, whole = self._of_ranges(low, high)
        for part in _chunks(len(low)):
            a, b = first[part], last[part]
            whole[part] -= removed[a, a] + removed[b, b] - removed[a, b] - removed[b, a]
            noise[part] -= loud[a, a] + loud[b, b] - loud[a, b] - loud[b, a]
        return np.maximum(noise, 0.0), np.maximum(whole, 0.0)

    def _removed(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """By how much the second step lessens the covariance of some sums, and that of the noise in them; shape (sums, sums)."""
        if self.second is None:
            return np.zeros((rows.shape[0],) * 2), np.zeros((rows.shape[0],) * 2)
        seen, gain, mixed = self.second.seen(rows, self.variance, self.noise)
        turned = mixed @ gain.T
        return seen @ gain.T, turned + turned.T - gain @ (self.second.spread @ gain.T)

    def _rows_of(self, matrix: FloatArray) -> FloatArray:
        """Any queries as sums of total and differences; shape (rows, padded)."""
        halving = self.halving
        sums = np.pad(matrix, ((0, 0), (0, halving.padded - halving.size)))
        columns = [sums.sum(axis=1, keepdims=True) / halving.size]
        for left, right in zip(halving.left, halving.right, strict=True):
            pairs = sums.reshape(len(sums), -1, 2)
            inner = pairs[..., 0] / np.maximum(2 * left, 1) - pairs[..., 1] / np.maximum(2 * right, 1)
            columns.append(np.where((left > 0) & (right > 0), inner, 0.0))
            sums = pairs.sum(axis=-1)
        return np.concatenate(columns, axis=1)

    def _of_rows(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Of any sums of total and differences; a dense or sparse matrix."""
        squares = rows.multiply(rows) if hasattr(rows, "multiply") else rows**2
        noise, whole = np.asarray(squares @ self.noise), np.asarray(squares @ self.variance)
        if self.second is not None:
            seen, gain, mixed = self.second.seen(rows, self.variance, self.noise)
            whole = whole - (seen * gain).sum(axis=1)
            noise = noise - 2 * (mixed * gain).sum(axis=1) + ((gain @ self.second.spread) * gain).sum(axis=1)
        return np.maximum(noise, 0.0), np.maximum(whole, 0.0)


@dataclass(frozen=True, eq=False)
class _Second:
    """What the second step measured, in total and differences.

    Args:
        rows: sparse, shape (measured, padded).
        inner: Cholesky factor of the covariance of its values as the first step predicts them.
        spread: the noise alone in the values and their predictions, shape (measured, measured).
    """

    rows: Any
    inner: Any
    spread: FloatArray

    def seen(self, rows: Any, variance: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Covariance of some sums with the measured ones, the gains, and the covariance of the noise; shapes (sums, measured)."""
        from scipy.linalg import cho_solve

        known, loud = _dense(rows @ self.rows.multiply(variance).T), _dense(rows @ self.rows.multiply(noise).T)
        return known, np.asarray(cho_solve(self.inner, known.T).T), loud


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


def _sparse(matrix: Any) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(matrix)


@dataclass(frozen=True, eq=False)
class Expanded:
    """Counts of buckets by least squares, spread evenly over their cells: the estimate of least norm.

    Args:
        buckets: the measured queries on buckets.
        counts: least squares estimates of the buckets.
        covariance: of ``counts``, shape (k, k).
        bounded: whether no aligned block may be below 0 or above the one it lies in.
        deviation: sum over all cells of the distance to their bucket's level, as far as it is known; None if nothing told.
    """

    buckets: Coarse
    counts: FloatArray
    covariance: FloatArray
    bounded: bool
    deviation: float | None

    @staticmethod
    def of(observation: Observation, *, bounded: bool, deviation: float | None) -> "Expanded":
        """From the observation of one step on buckets."""
        (block,), (values,) = observation.plan.blocks, observation.values
        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        inner = factor.operator.operator
        precision = factor.weights.astype(np.float64) ** 2 / block_variance(observation.plan, block)
        unit = np.eye(inner.size)
        information = apply_transpose(inner, precision[:, None] * apply(inner, unit))
        covariance = np.asarray(np.linalg.inv((information + information.T) / 2), dtype=np.float64)
        counts = np.asarray(covariance @ apply_transpose(inner, precision * (values / observation.plan.grid)), dtype=np.float64)
        return Expanded(factor.operator, counts, (covariance + covariance.T) / 2, bounded, deviation)

    @cached_property
    def cells(self) -> FloatArray:
        """Shape (n,)."""
        lengths = self.buckets.lengths
        spread = np.repeat(self.counts / lengths, lengths)
        if not self.bounded:
            return spread
        halving = Halving(self.buckets.size)
        return np.asarray(halving.together(*halving.differences(spread[None, :]))[0])

    def answers(self, product: Product) -> FloatArray:
        """Uniform expansion."""
        return _answers(product, self.cells)

    def variances(self, product: Product) -> FloatArray:
        """Given the partition: of least squares, before any bounds."""
        operator = _operator(product, self.buckets.size)
        ends = _ends(operator)
        if ends is None:
            rows = np.add.reduceat(dense(operator).astype(np.float64), self.buckets.starts, axis=1) / self.buckets.lengths
            return np.asarray(((rows @ self.covariance) * rows).sum(axis=1)).reshape(product.shape)
        sums = np.zeros((len(self.counts) + 1,) * 2)
        sums[1:, 1:] = self.covariance.cumsum(axis=0).cumsum(axis=1)
        found = np.empty(len(ends[0]))
        for part in _chunks(len(found)):
            low, high = self._place(ends[0][part]), self._place(ends[1][part])
            found[part] = _between(sums, high, high) + _between(sums, low, low) - 2 * _between(sums, low, high)
        return np.maximum(found, 0.0).reshape(product.shape)

    def _place(self, edges: IntArray) -> tuple[IntArray, FloatArray]:
        """The bucket in which an edge lies, and the part of it before the edge."""
        bucket = np.minimum(np.searchsorted(self.buckets.starts, edges, side="right") - 1, len(self.counts) - 1)
        return bucket, (edges - self.buckets.starts[bucket]) / self.buckets.lengths[bucket]

    def approximations(self, product: Product) -> FloatArray:
        """As if the known deviation were shared out evenly among the buckets of several cells, and lay in one cell of each, anywhere."""
        if self.deviation is None:
            return np.full(product.shape, np.nan)
        several = self.buckets.lengths > 1
        square = np.where(several, (self.deviation / max(int(several.sum()), 1) / 2) ** 2, 0.0)
        operator = _operator(product, self.buckets.size)
        ends = _ends(operator)
        if ends is None:
            rows, starts, lengths = dense(operator).astype(np.float64), self.buckets.starts, self.buckets.lengths
            mean = np.add.reduceat(rows, starts, axis=1) / lengths
            inside = np.add.reduceat(rows**2, starts, axis=1) / lengths - mean**2
            return np.asarray(np.maximum(inside, 0.0) @ square).reshape(product.shape)
        (first, before), (last, after) = self._place(ends[0]), self._place(ends[1])
        inside = after - before
        apart = square[first] * before * (1 - before) + square[last] * after * (1 - after)
        return np.where(first == last, square[first] * inside * (1 - inside), apart).reshape(product.shape)


def _between(sums: FloatArray, one: tuple[IntArray, FloatArray], other: tuple[IntArray, FloatArray]) -> FloatArray:
    """Covariance of sums up to edges inside buckets, from that of sums up to buckets' starts."""
    (a, f), (b, g) = one, other
    return (1 - f) * ((1 - g) * sums[a, b] + g * sums[a, b + 1]) + f * ((1 - g) * sums[a + 1, b] + g * sums[a + 1, b + 1])


def _chunks(length: int, most: int = _AT_ONCE) -> Iterator[slice]:
    return (slice(start, start + most) for start in range(0, length, most))


def _operator(product: Product, size: int) -> Operator:
    return product.operators[0] if product.attributes else Total(size)


def _answers(product: Product, cells: FloatArray) -> FloatArray:
    return np.asarray(apply(_operator(product, len(cells)), cells)).reshape(product.shape)


def _ends(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First cells, and last cells plus 1, if every row is an interval; else None."""
    n = operator.size
    cells = np.arange(n, dtype=np.int64)
    known: dict[type, Callable[[], tuple[IntArray, IntArray]]] = {
        Identity: lambda: (cells, cells),
        Total: lambda: (cells[:1], cells[-1:]),
        Prefix: lambda: (np.zeros(n, dtype=np.int64), cells),
        AllRanges: lambda: all_range_ends(n),
    }
    if isinstance(operator, Ranges):
        return operator.low, operator.high + 1
    if isinstance(operator, Tree):
        low = np.concatenate([np.arange(0, n, width) for width in operator.widths])
        return low, np.minimum(low + np.repeat(operator.widths, operator.level_sizes), n)
    if type(operator) not in known:
        return None
    low, last = known[type(operator)]()
    return low, last + 1
