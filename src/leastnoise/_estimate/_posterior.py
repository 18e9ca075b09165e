"""The posterior of levels of blocks that were measured along one attribute, and shrunk; with a second step on buckets, given both."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leastnoise._accuracy import block_variance
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._expansion import answers_of, chunks, edges_of, operator_of
from leastnoise._estimate._shrinkage import Halving, Shrunk, shrink
from leastnoise._families import TreeInverse
from leastnoise._linop import Coarse, Ranges, Tree, apply_transpose, dense
from leastnoise._measurements import Block, Observation
from leastnoise._workload import Product

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
        edges, places = np.unique(np.concatenate([low, high]), return_inverse=True)
        if len(edges) > _MOST_EDGES or len(low) <= len(edges):
            parts = [self._of_rows(self.at_edges(high[part]) - self.at_edges(low[part])) for part in chunks(len(low), _MOST_EDGES)]
            return np.concatenate([noise for noise, _ in parts]), np.concatenate([whole for _, whole in parts])
        first, last = places[: len(low)], places[len(low) :]
        rows = self.at_edges(edges)
        noise, whole = self._of_ranges(low, high)
        for first_step, found in ((self.noise, noise), (self.error, whole)):
            removed = second.removed(rows, self.variance, first_step)
            for part in chunks(len(low)):
                a, b = first[part], last[part]
                found[part] -= removed[a, a] + removed[b, b] - removed[a, b] - removed[b, a]
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
    own: FloatArray

    def _parts(self, rows: Any, variance: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gains of some sums, their covariance with the measured ones under the first step's errors, and that of the measured ones."""
        from scipy.linalg import cho_solve

        gain = np.asarray(cho_solve(self.inner, _dense(rows @ self.rows.multiply(variance).T).T).T)
        spread = _dense(self.rows.multiply(first) @ self.rows.T) + np.diag(self.own)
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
