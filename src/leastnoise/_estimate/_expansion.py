"""Answers from what a data-aware mechanism measured along one attribute, with the two parts of their error.

Given the outcome of the choices (the regime, the buckets), an answer's error has two parts. *Noise* was added for privacy; its variance is
exact, with the factors of shrinking held fixed. *Approximation* is what is lost by taking cells for alike that are not: it depends on the
data, so it is estimated, from the same paid numbers: for shrunk answers what the differences lie away from the posterior means beyond their
noise, for buckets the deviations that their choice and the test could not see; for both what the bounds changed.

Buckets: the exponential mechanism keeps a bucket whole with a probability that falls by a factor e for each ``scale`` records of deviation,
and takes ``prior`` (natural logarithms) for each further bucket. So a deviation that ``j`` more buckets would remove is seen when it is
well above ``j * prior * scale``, and hidden below.

Levels of blocks are shrunk to their posterior; with a second step on buckets, the posterior given both.

A plan that does not look at the data: least squares give the difference of the halves of every aligned block (`Halving`) and its noise. The
hidden tree of `shrink` gives each a posterior by itself, which is what a normal prior of its own would leave of that noise; each level is
checked by Stein's estimate of its risk. With these priors the cells are estimated once more from all measurements, so that the noise's
whole covariance counts and what queries cancel stays cancelled. On the widest blocks, which are few, differences stay free. Where nothing
can be gained this is least squares.

All are functions of noisy and public numbers alone.

Source: docs/decisions/dawa.md; Stein, Ann. Statist. 9 (1981).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from leastnoise._accuracy import Joint, block_variance, conjugate_gradients, quantity_structure, told, used
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._least_squares import Answer, Estimate
from leastnoise._estimate._shrinkage import Halving, Shrunk, shrink
from leastnoise._families import TreeInverse, interval_ends
from leastnoise._linop import Coarse, Operator, Ranges, Total, Tree, apply, apply_transpose, dense
from leastnoise._measurements import Block, Measurements, Observation
from leastnoise._workload import Product, queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What is known of deviations inside buckets."""

    scale: float
    prior: float

    def squares(self, cells: IntArray, counts: FloatArray, variances: FloatArray) -> FloatArray:
        """Square of the deviation that each bucket may hide, as that of one cell of it."""
        # Either every cell deviates by what one more bucket costs, or one by what isolating it costs; no more than the bucket holds, as far
        # as its noisy count tells.
        alone = (np.ceil(np.log2(cells)) * self.prior + 1) ** 2
        seen = self.scale**2 * np.maximum(cells * self.prior**2, alone)
        return np.asarray(np.where(cells > 1, np.minimum(seen, np.maximum(counts, 0.0) ** 2 + variances), 0.0))


_AT_ONCE = 2**22


def chunks(length: int, most: int = _AT_ONCE) -> Iterator[slice]:
    """Slices of at most so many."""
    return (slice(start, start + most) for start in range(0, length, most))


def operator_of(product: Product, size: int) -> Operator:
    """The queries along the one attribute."""
    return product.operators[0] if product.attributes else Total(size)


def answers_of(product: Product, cells: FloatArray) -> FloatArray:
    """Answers from cells, in the product's shape."""
    return np.asarray(apply(operator_of(product, len(cells)), cells)).reshape(product.shape)


def edges_of(operator: Operator) -> tuple[IntArray, IntArray] | None:
    """First cells, and last cells plus 1, if every row is an interval; else None."""
    ends = interval_ends(operator)
    return None if ends is None else (ends[0], ends[1] + 1)


@dataclass(frozen=True, slots=True)
class Independent:
    """Least squares on the measurements of a data-independent plan: no approximation."""

    estimator: Estimate

    def estimate(self, product: Product) -> Answer:
        """Least squares: no approximation, exact errors."""
        return replace(self.estimator.estimate(product), approximation_std=np.zeros(product.shape))


@dataclass(frozen=True, eq=False)
class Expanded:
    """Counts of buckets by least squares, spread evenly over their cells: the estimate of least norm."""

    buckets: Coarse
    counts: FloatArray
    covariance: FloatArray
    hidden: Hidden | None

    @staticmethod
    def of(observation: Observation, hidden: Hidden | None) -> "Expanded":
        """From the observation of one step on buckets."""
        (block,), (values,) = observation.measurements.blocks, observation.values
        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        inner = factor.operator.operator
        precision = factor.weights.astype(np.float64) ** 2 / block_variance(observation.measurements, block)
        unit = np.eye(inner.size)
        information = apply_transpose(inner, precision[:, None] * apply(inner, unit))
        covariance = np.asarray(np.linalg.inv((information + information.T) / 2), dtype=np.float64)
        counts = np.asarray(covariance @ apply_transpose(inner, precision * (values / observation.measurements.grid)), dtype=np.float64)
        return Expanded(factor.operator, counts, (covariance + covariance.T) / 2, hidden)

    @cached_property
    def cells(self) -> FloatArray:
        """Shape (n,): no aligned block is below 0 or above the one it lies in."""
        halving = Halving(self.buckets.size)
        return np.asarray(halving.together(*halving.differences(self.even[None, :]))[0])

    @cached_property
    def even(self) -> FloatArray:
        """The counts spread evenly over the cells of their buckets, without bounds, shape (n,)."""
        return np.asarray(np.repeat(self.counts / self.buckets.lengths, self.buckets.lengths))

    def estimate(self, product: Product) -> Answer:
        """Uniform expansion. The rest of its error: what is hidden in each bucket as if it lay in one cell, and what the bounds changed."""
        values = answers_of(product, self.cells)
        noise = np.sqrt(self.variances(product))
        if self.hidden is None:
            return Answer(values, noise, np.full(product.shape, np.nan))
        square = self.hidden.squares(self.buckets.lengths, self.counts, np.diag(self.covariance))
        moved = answers_of(product, self.even) - values
        return Answer(values, noise, np.sqrt(self._unevenness(product, square) + moved**2))

    def variances(self, product: Product) -> FloatArray:
        """Given the partition: of least squares, before any bounds."""
        operator = operator_of(product, self.buckets.size)
        ends = edges_of(operator)
        if ends is None:
            rows = np.add.reduceat(dense(operator).astype(np.float64), self.buckets.starts, axis=1) / self.buckets.lengths
            return np.asarray(((rows @ self.covariance) * rows).sum(axis=1)).reshape(product.shape)
        sums = np.zeros((len(self.counts) + 1,) * 2)
        sums[1:, 1:] = self.covariance.cumsum(axis=0).cumsum(axis=1)
        variances = np.empty(len(ends[0]))
        for part in chunks(len(variances)):
            low, high = self._located(ends[0][part]), self._located(ends[1][part])
            variances[part] = _between(sums, high, high) + _between(sums, low, low) - 2 * _between(sums, low, high)
        return np.maximum(variances, 0.0).reshape(product.shape)

    def _located(self, edges: IntArray) -> tuple[IntArray, FloatArray]:
        """The bucket in which an edge lies, and the part of it before the edge."""
        bucket = np.minimum(np.searchsorted(self.buckets.starts, edges, side="right") - 1, len(self.counts) - 1)
        return bucket, (edges - self.buckets.starts[bucket]) / self.buckets.lengths[bucket]

    def _unevenness(self, product: Product, square: FloatArray) -> FloatArray:
        """Squared errors of answers where each bucket has its deviation in one cell, anywhere."""
        operator = operator_of(product, self.buckets.size)
        ends = edges_of(operator)
        if ends is None:
            rows, starts, lengths = dense(operator).astype(np.float64), self.buckets.starts, self.buckets.lengths
            mean = np.add.reduceat(rows, starts, axis=1) / lengths
            inside = np.add.reduceat(rows**2, starts, axis=1) / lengths - mean**2
            return np.asarray(np.maximum(inside, 0.0) @ square).reshape(product.shape)
        (first, before), (last, after) = self._located(ends[0]), self._located(ends[1])
        inside = after - before
        apart = square[first] * before * (1 - before) + square[last] * after * (1 - after)
        return np.where(first == last, square[first] * inside * (1 - inside), apart).reshape(product.shape)


def _between(sums: FloatArray, start: tuple[IntArray, FloatArray], end: tuple[IntArray, FloatArray]) -> FloatArray:
    """Covariance of sums up to edges inside buckets, from that of sums up to buckets' starts."""
    (a, f), (b, g) = start, end
    return (1 - f) * ((1 - g) * sums[a, b] + g * sums[a, b + 1]) + f * ((1 - g) * sums[a + 1, b] + g * sums[a + 1, b + 1])


_MOST_EDGES = 2**12 + 1


def shrunk_levels(observation: Observation, block: Block, values: IntArray) -> tuple[Halving, FloatArray, float, Shrunk]:
    """The total of measured levels by least squares, its variance, and the posterior of the differences."""
    (factor,), plan = block.factors, observation.measurements
    tree = factor.operator
    if not isinstance(tree, Tree):
        raise TypeError(tree)
    squares, halving = factor.weights.astype(np.float64) ** 2, Halving(tree.size)
    known = TreeInverse(tree, squares)
    total, parts = halving.differences(known.solve(apply_transpose(tree, squares * values / plan.grid))[None])
    variances = block_variance(plan, block) * known.variances(Ranges(tree.size, *halving.blocks()))
    tail = float(block.scale) / int(factor.weights[-1]) if plan.noise.norm == 1 else None
    return halving, total, float(variances[-1]), shrink(parts, halving.noise(variances), tail)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Levels of blocks, shrunk; and, if a second step measured buckets, the posterior given both."""

    halving: Halving
    mean: FloatArray
    variance: FloatArray
    noise: FloatArray
    error: FloatArray
    second: "_Second | None" = None

    @staticmethod
    def of(observation: Observation) -> "Posterior":
        """From the observation of one or two steps."""
        blocks, values = observation.measurements.blocks, observation.values
        halving, total, variance, shrunk = shrunk_levels(observation, blocks[0], values[0])
        first = Posterior(
            halving,
            np.concatenate([total[0], *(part[0] for part in shrunk.means)]),
            np.concatenate([[variance], *(part[0] for part in shrunk.variances)]),
            np.concatenate([[variance], *(part[0] for part in shrunk.noise)]),
            np.concatenate([[variance], *(part[0] for part in shrunk.errors)]),
        )
        return first if len(blocks) == 1 else first._with(observation, blocks[1], values[1])

    def _with(self, observation: Observation, block: Block, values: IntArray) -> "Posterior":
        """Both steps' measurements together: the posterior of normals."""
        from scipy.linalg import cho_factor, cho_solve
        from scipy.sparse import csr_matrix

        (factor,) = block.factors
        if not isinstance(factor.operator, Coarse):
            raise TypeError(factor.operator)
        edges = np.append(factor.operator.starts, factor.operator.size)
        at_edges = self.at_edges(edges)
        ends = edges_of(factor.operator.operator)
        counts = at_edges[1:] - at_edges[:-1]
        rows = csr_matrix(dense(factor.operator.operator) @ counts if ends is None else at_edges[ends[1]] - at_edges[ends[0]])
        variances_of_rows = block_variance(observation.measurements, block) / factor.weights.astype(np.float64) ** 2
        inner = cho_factor((rows.multiply(self.variance) @ rows.T).toarray() + np.diag(variances_of_rows), lower=True)
        change = cho_solve(inner, values / observation.measurements.grid - rows @ self.mean)
        mean = self.mean + self.variance * (rows.T @ change)
        return Posterior(self.halving, mean, self.variance, self.noise, self.error, _Second(rows, inner, variances_of_rows))

    @cached_property
    def _offsets(self) -> IntArray:
        return np.cumsum([1, *(len(part) for part in self.halving.left)])

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
        return self._together(bounded=True)

    def _together(self, *, bounded: bool) -> FloatArray:
        parts = [self.mean[None, a:b] for a, b in zip(self._offsets[:-1], self._offsets[1:], strict=True)]
        return np.asarray(self.halving.together(self.mean[None, :1], parts, bounded=bounded)[0])

    def estimate(self, product: Product) -> Answer:
        """Posterior means; the noise with the factors of shrinking held fixed, and what the checked errors and the bounds add to it."""
        values = answers_of(product, self.cells)
        noise, rest = self._spreads(product)
        moved = answers_of(product, self._together(bounded=False)) - values
        return Answer(values, np.sqrt(noise), np.sqrt(rest + moved**2))

    def _spreads(self, product: Product) -> tuple[FloatArray, FloatArray]:
        operator = operator_of(product, self.halving.size)
        ends = edges_of(operator)
        if ends is None:
            noise, whole = self._of_rows(self._rows_of(dense(operator).astype(np.float64)))
        elif self.second is None:
            noise, whole = self._of_ranges(*ends)
        else:
            noise, whole = self._of_ranges_given_both(self.second, *ends)
        return noise.reshape(product.shape), np.maximum(whole - noise, 0.0).reshape(product.shape)

    def _of_ranges(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """A range's variance under independent differences: at most two blocks of every width, in which it begins and ends."""
        share = ((high - low) / self.halving.size) ** 2
        noise, whole = self.noise[0] * share, self.error[0] * share
        for level, offset in enumerate(self._offsets[:-1]):
            (block, weight), (other, less) = self.halving.edge_weights(level, high), self.halving.edge_weights(level, low)
            same = block == other
            first, second = (weight - np.where(same, less, 0.0)) ** 2, np.where(same, 0.0, less**2)
            noise += first * self.noise[offset + block] + second * self.noise[offset + other]
            whole += first * self.error[offset + block] + second * self.error[offset + other]
        return noise, whole

    def _of_ranges_given_both(self, second: "_Second", low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """What the second step takes away, by the covariances of the edges that occur."""
        edges, indices = np.unique(np.concatenate([low, high]), return_inverse=True)
        if len(edges) > _MOST_EDGES or len(low) <= len(edges):
            parts = [self._of_rows(self.at_edges(high[part]) - self.at_edges(low[part])) for part in chunks(len(low), _MOST_EDGES)]
            return np.concatenate([noise for noise, _ in parts]), np.concatenate([whole for _, whole in parts])
        first, last = indices[: len(low)], indices[len(low) :]
        rows = self.at_edges(edges)
        noise, whole = self._of_ranges(low, high)
        for first_step, variances in ((self.noise, noise), (self.error, whole)):
            removed = second.removed(rows, self.variance, first_step)
            for part in chunks(len(low)):
                a, b = first[part], last[part]
                variances[part] -= removed[a, a] + removed[b, b] - removed[a, b] - removed[b, a]
        return np.maximum(noise, 0.0), np.maximum(whole, 0.0)

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
        noise, whole = np.asarray(squares @ self.noise), np.asarray(squares @ self.error)
        if self.second is not None:
            noise = noise - self.second.removed_each(rows, self.variance, self.noise)
            whole = whole - self.second.removed_each(rows, self.variance, self.error)
        return np.maximum(noise, 0.0), np.maximum(whole, 0.0)


@dataclass(frozen=True, eq=False)
class _Second:
    """What the second step measured, in total and differences, and how much it lessens squared errors of the first."""

    # With R its rows, E its noise, V the fitted posterior of the first step and G = V R' (R V R' + E)^-1, errors e of the first step and f
    # of the second leave ``(1 - G R) e + G f``, whatever the variances of e really are.

    rows: Any
    inner: Any
    noise: FloatArray

    def _parts(self, rows: Any, variance: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gains of some sums, their covariance with the measured ones under the first step's errors, and that of the measured ones."""
        from scipy.linalg import cho_solve

        gain = np.asarray(cho_solve(self.inner, _dense(rows @ self.rows.multiply(variance).T).T).T)
        spread = _dense(self.rows.multiply(first) @ self.rows.T) + np.diag(self.noise)
        return gain, _dense(rows @ self.rows.multiply(first).T), spread

    def removed(self, rows: Any, variance: FloatArray, first: FloatArray) -> FloatArray:
        """By how much the covariance of the errors of some sums lessens, shape (sums, sums)."""
        gain, mixed, spread = self._parts(rows, variance, first)
        turned = mixed @ gain.T
        return np.asarray(turned + turned.T - gain @ (spread @ gain.T))

    def removed_each(self, rows: Any, variance: FloatArray, first: FloatArray) -> FloatArray:
        """The diagonal of ``removed``, shape (sums,)."""
        gain, mixed, spread = self._parts(rows, variance, first)
        return np.asarray((2 * mixed * gain).sum(axis=1) - ((gain @ spread) * gain).sum(axis=1))


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


_FREE = 4  # blocks of a level: no prior can be learned from so few
_CLEAR = 1e-6  # of the noise: a posterior that is nearer to it changes nothing
_DRAWS, _SEED = 3, 20_261_126  # of more noise
_NEAR = 1e-10  # squared standard errors, summed over all differences, at which the equations count as solved


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of cells that nothing measured tells apart."""

    name: str
    starts: IntArray
    lengths: IntArray

    @staticmethod
    def of(made: Measurements) -> "Runs":
        """Of measurements along one attribute; the runs are the cells where these are not on equal buckets."""
        (name,) = {name for block in made.blocks for name in block.attributes}
        size = made.domain.kind(name).size
        runs = [starts_of(factor.operator) for block in made.blocks for factor in block.factors if used(factor)]
        starts = runs[0] if len({starts.tobytes() for starts in runs}) == 1 else np.arange(size)
        return Runs(name, starts, np.diff(starts, append=size))

    @property
    def halving(self) -> Halving:
        """All aligned blocks of runs."""
        return Halving(len(self.starts), self.lengths)

    def blocks(self, made: Measurements) -> Product:
        """The counts of `Halving.blocks`."""
        size = made.domain.kind(self.name).size
        first, last = self.halving.blocks()
        operator = Ranges(size, self.starts[first], np.append(self.starts, size)[last + 1] - 1)
        return queries(made.domain, {self.name: "identity"}).products[0].knowing((operator,))

    def spread(self, counts: FloatArray) -> FloatArray:
        """Counts of the runs, evenly over their cells."""
        return np.repeat(counts / self.lengths, self.lengths)


@singledispatch
def starts_of(operator: Operator) -> IntArray:
    """Where the runs of cells begin that queries do not tell apart."""
    return np.arange(operator.size)


@starts_of.register
def _(operator: Coarse) -> IntArray:
    return operator.starts


def can_be_smoothed(made: Measurements) -> bool:
    """Whether measurements are along one attribute and determine all that is needed."""
    if len({name for block in made.blocks for name in block.attributes}) != 1:
        return False
    try:
        quantity_structure(made, None).require(Runs.of(made).blocks(made))
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The posterior of the cells of one attribute, with the intervals of least squares."""

    plain: Estimate
    cells: FloatArray

    @staticmethod
    def of(observation: Observation) -> "Smoothed":
        """From the observation of one step along one attribute."""
        made, random = observation.measurements, np.random.default_rng(_SEED)
        stds = [made.grid * math.sqrt(block_variance(made, block)) for block in made.blocks]
        plain, joint, least, means = _posterior_means(observation)
        gone, follows = means - least, 0.0
        for _ in range(_DRAWS):
            added = [np.rint(std * random.standard_normal(len(value))) for std, value in zip(stds, observation.values, strict=True)]
            values = tuple(value + more.astype(np.int64) for value, more in zip(observation.values, added, strict=True))
            _, _, other, noisier = _posterior_means(replace(observation, values=values))
            follows += float((other - least) @ joint.gram((noisier - other - gone)[:, None])[:, 0]) / _DRAWS
        # All means move back to least squares as far as Stein's estimate of their squared error in what was measured advises.
        way = max(-follows, 0.0) / max(float(gone @ joint.gram(gone[:, None])[:, 0]), _NEAR)
        return Smoothed(plain, least + min(way, 1.0) * gone)

    def estimate(self, product: Product) -> Answer:
        """Posterior means, with the intervals of least squares: chosen without the data, they hold the truth whatever was shrunk."""
        values, plain = answers_of(product, self.cells), self.plain.estimate(product)
        return Answer(values, plain.noise_std, np.abs(values - plain.values), centre=plain.values)


def _posterior_means(observation: Observation) -> tuple[Estimate, Joint, FloatArray, FloatArray]:
    """Least squares, the joint form of what was measured, the cells by the former, and their posterior means."""
    made, plain = observation.measurements, Estimate(observation)
    runs, joint = Runs.of(made), Joint.of(made.domain, [(entry.block, entry.variance) for entry in told(made, None)])
    halving, estimated = runs.halving, plain.estimate(runs.blocks(made))
    counts, variances = estimated.values[: len(runs.starts)], estimated.noise_std**2
    total, parts = halving.differences(counts[None])
    noise = halving.noise(variances)
    tail = float(np.sqrt(np.median(variances[: len(runs.starts)]) / 2)) if made.noise.norm == 1 else None
    shrunk = shrink(parts, noise, tail)
    pilots = zip(parts, shrunk.means, shrunk.variances, noise, strict=True)
    priors = [_prior(part[0], mean[0], left[0], noise_of) for part, mean, left, noise_of in pilots]
    precision, pull = (np.concatenate([np.zeros(1), *(prior[at] for prior in priors)]) for at in range(2))
    start = np.concatenate([total[0], *(level[0] for level in shrunk.means)])
    spread = np.concatenate([variances[-1:], *noise])
    known = spread > 0  # all but padding

    def normal(vectors: FloatArray) -> FloatArray:
        cells = runs.spread(halving.synthesised(vectors.T)[0])
        back = halving.transposed(joint.gram(cells[:, None])[runs.starts].T)[0]
        return (known * (back + precision * vectors[:, 0]))[:, None]

    gathered = joint.gather([values[:, None] / made.grid for values in observation.values])[runs.starts].T
    right = (known * (halving.transposed(gathered)[0] + pull))[:, None]
    diagonal = (1 / np.where(known, spread, 1.0) + precision)[:, None]
    left = right - normal(start[:, None])
    mean = start + conjugate_gradients(normal, lambda residual: residual / diagonal, left, _NEAR)[:, 0]
    parts = np.split(mean[None], np.cumsum([1, *map(len, halving.left)]), axis=1)[1:-1]
    return plain, joint, runs.spread(counts), runs.spread(halving.together(mean[None, :1], parts)[0])


def _prior(part: FloatArray, mean: FloatArray, left: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Precisions, and precisions times means, of the priors under which a level's noise leaves these posteriors."""
    # If the posteriors are right, measured differences lie as far from their means as the noise that these take away. Where they lie
    # further, all means of the level are moved back by the same part of the way: the factor of least risk by Stein's unbiased estimate.
    seen, before = noise > 0, np.where(noise > 0, noise, 1.0)
    taken, away = (1 - left / before)[seen].sum(), ((part - mean) ** 2 / before)[seen].sum()
    kept = min(1.0, taken / max(away, 1e-9))
    mean, left = part + kept * (mean - part), kept * left + (1 - kept) * noise
    lessened = (left < (1 - _CLEAR) * noise) & (len(part) > _FREE)
    before = np.where(lessened, noise, 1.0)
    after = np.where(lessened, np.maximum(left, _CLEAR * before), 1.0)
    return np.where(lessened, 1 / after - 1 / before, 0.0), np.where(lessened, mean / after - part / before, 0.0)
