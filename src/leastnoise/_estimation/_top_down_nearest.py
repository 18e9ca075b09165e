"""Non-negative least squares for the children's cells of a step.

With x the children's cells and u their unbiased estimates,

    minimise    1/2 sum over components c of w(c) |P(c) (x - u)|^2
    subject to  x >= 0, the children of a parent add up to its cells, public sums hold,
                impossible cells are 0

A component is a product of one contrast along each attribute that the step does not split. A
contrast is either the total or a set of differences. The differences are between the groups at one
position of the attribute's chain, within the groups of the previous position. All children have the
same weights. Therefore, each coordinate in the basis of components is constrained separately. The
children's coordinates add up to the parent's coordinate. Public sums fix the coordinates that they
determine.

The method is the alternating direction method of multipliers. Each iteration first meets all sums
exactly, in the basis, and then clips the cells at 0. Source: Boyd et al. 2011, section 5.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product as combine

import numpy as np

from leastnoise._estimation._least_squares import Estimator
from leastnoise._estimation._top_down_rounding import SumConstraints
from leastnoise._estimation._top_down_steps import SplitStep
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray

_MOST_ROUNDS = 300  # maximum number of rounds of the method of multipliers
_CHECK_EVERY = 10  # rounds between two checks whether the method may stop
# The method stops when clipping changes cells by at most this number of rows.
_MOST_CLIPPED_ROWS = 0.01
_RELAXATION = 1.6  # Boyd et al. 2011, section 3.4.3
_LARGEST_RATIO = 1e4  # largest ratio of two weights: variances of components are approximate
_MERGED_SIZE = 512  # maximum number of cells of axes whose bases are multiplied into one matrix


@dataclass(frozen=True, eq=False)
class Components:
    """An orthonormal basis of the cells of one child, and its weights.

    Attributes:
        matrices: the basis along one axis or several axes at once, with the vectors as columns.
        positions: for each axis, and for every vector of the whole basis, the position of the
            vector in the chain of the axis.
        weights: the precision of every coordinate.
    """

    matrices: tuple[FloatArray, ...]
    positions: tuple[IntArray, ...]
    weights: FloatArray

    @staticmethod
    def of(estimator: Estimator, step: SplitStep) -> "Components":
        """Return the basis for a step, weighted by the precision of estimates."""
        bases = [axis.basis() for axis in step.others]
        if not bases:
            return Components((), (), np.ones(1))
        grid = np.meshgrid(*[positions for _, positions in bases], indexing="ij")
        positions = tuple(along.reshape(-1) for along in grid)
        matrices = _merge_bases([vectors for vectors, _ in bases])
        return Components(tuple(matrices), positions, component_weights(estimator, step)[positions])

    def to_coordinates(self, cells: FloatArray) -> FloatArray:
        """Return the coordinates of cells in the basis, (children, other cells)."""
        return _apply_matrices(cells, self.matrices)

    def to_cells(self, coordinates: FloatArray) -> FloatArray:
        """Return the cells with the given coordinates in the basis."""
        return _apply_matrices(coordinates, [matrix.T for matrix in self.matrices])

    def coordinates_fixed_by(self, sums: SumConstraints) -> tuple[BoolArray, FloatArray]:
        """Return which coordinates the sums fix, and the values that they fix."""
        is_fixed = np.ones(len(self.weights), dtype=np.bool_)
        for along, position in zip(self.positions, sums.positions, strict=True):
            is_fixed &= along <= position
        sizes = np.bincount(sums.labels.reshape(-1), minlength=len(sums.targets))
        even_shares = (sums.targets / np.maximum(sizes, 1))[sums.labels]
        return is_fixed, self.to_coordinates(even_shares)[:, is_fixed]


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem:
    """Non-negative least squares for all children of a step, given the parents.

    Attributes:
        components: the components of the cells of a child.
        parents: the parent of every child; children of one parent are adjacent.
        parent_cells: the cells of the parents, shape (parents, cells of others); None in the first
            step.
        public_sums: further sums of the children's cells.
    """

    components: Components
    parents: IntArray
    parent_cells: IntArray | None
    public_sums: Sequence[SumConstraints]

    def solve(self, estimates: FloatArray, possible: BoolArray | None) -> FloatArray:
        """Return the nearest feasible cells, in the shape of ``estimates``.

        The cells meet the sums up to a small fraction of one row, or of a standard error. Cells
        that are not possible are 0.
        """
        weights = self.components.weights
        # The smallest standard error of a coordinate may be far above one row, for example for
        # sums.
        clipped_at_most = _MOST_CLIPPED_ROWS * max(1.0, float(1 / np.sqrt(weights.max())))
        step_size = float(np.sqrt(weights.min() * weights.max()))
        weighted = self.components.to_coordinates(estimates) * weights
        nearest = _clip(estimates, possible)
        multipliers = np.zeros_like(estimates)
        for number in range(1, _MOST_ROUNDS + 1):
            shifted = weighted + step_size * self.components.to_coordinates(nearest - multipliers)
            with_sums = self.components.to_cells(self._meet_sums(shifted / (weights + step_size)))
            before = nearest
            multipliers += _RELAXATION * with_sums + (1 - _RELAXATION) * nearest
            nearest = _clip(multipliers, possible)
            multipliers -= nearest
            if number % _CHECK_EVERY == 0:
                clipped = float(np.abs(with_sums - nearest).max())
                moved = float(np.abs(nearest - before).max())
                if max(clipped, moved) <= clipped_at_most:
                    break
        return nearest

    def _meet_sums(self, coordinates: FloatArray) -> FloatArray:
        """Return the nearest coordinates of cells that meet all sums."""
        if self._parent_coordinates is not None:
            starts = np.flatnonzero(np.diff(self.parents, prepend=-1))
            children = np.diff(starts, append=len(self.parents))
            missing = self._parent_coordinates - np.add.reduceat(coordinates, starts, axis=0)
            coordinates = coordinates + np.repeat(missing / children[:, None], children, axis=0)
        for is_fixed, values in self._fixed_coordinates:
            coordinates[:, is_fixed] = values
        return coordinates

    @cached_property
    def _parent_coordinates(self) -> FloatArray | None:
        """The coordinates of the parents' cells; None in the first step."""
        if self.parent_cells is None:
            return None
        return self.components.to_coordinates(self.parent_cells.astype(np.float64))

    @cached_property
    def _fixed_coordinates(self) -> list[tuple[BoolArray, FloatArray]]:
        """The coordinates that each family of public sums fixes, with their values."""
        return [self.components.coordinates_fixed_by(sums) for sums in self.public_sums]


def _clip(cells: FloatArray, possible: BoolArray | None) -> FloatArray:
    """Return cells clipped at 0; impossible cells are set to 0."""
    clipped = np.maximum(cells, 0.0)
    if possible is not None:
        clipped *= possible
    return clipped


def component_weights(estimator: Estimator, step: SplitStep) -> FloatArray:
    """Return the precision with which each component of a split is estimated.

    A step splits the cells of a parent table among its children.

    Args:
        estimator: the estimator of all tables.
        step: the split.

    Returns:
        One over the mean variance of the coordinates of a component, given the parent. The index is
        the component's position in the chain of each other attribute. All are 1 if the estimator
        does not state variances.
    """
    # The trace of the covariance of the projection on groups includes all components up to the
    # positions of the groups. So differences of these traces along the chains are the traces of
    # single components.
    shape = tuple(len(axis.chain) for axis in step.others)
    traces = np.empty(shape)
    children = np.bincount(step.parents)
    for positions in combine(*map(range, shape)):
        sizes = [
            np.bincount(axis.chain[position][1])
            for axis, position in zip(step.others, positions, strict=True)
        ]
        members = reduce(np.multiply.outer, sizes, np.ones(()))
        _, variances = step.estimate(estimator, step.query_set, positions)
        trace = float((variances / members).sum())
        if step.name is not None:
            _, of_parents = step.estimate(estimator, step.parent_set, positions)
            shares = of_parents / members
            trace -= float((shares.reshape(len(children), -1).sum(axis=1) / children).sum())
        traces[positions] = trace
    dimensions = np.asarray(float(max(len(step.parents) - len(children), 1)))
    for axis_number, axis in enumerate(step.others):
        traces = np.diff(traces, axis=axis_number, prepend=0.0)
        dimensions = np.multiply.outer(dimensions, np.diff(axis.counts, prepend=0))
    variances = traces / np.maximum(dimensions, 1)
    if not np.isfinite(variances).all() or not variances.max() > 0:
        return np.ones(shape)
    return np.asarray(1 / np.maximum(variances, variances.max() / _LARGEST_RATIO))


def _merge_bases(bases: Sequence[FloatArray]) -> list[FloatArray]:
    """Return bases in which small neighbouring axes share one matrix."""
    merged: list[FloatArray] = []
    for basis in bases:
        if merged and len(merged[-1]) * len(basis) <= _MERGED_SIZE:
            merged[-1] = np.asarray(np.kron(merged[-1], basis), dtype=np.float64)
        else:
            merged.append(basis)
    return merged


def _apply_matrices(cells: FloatArray, matrices: Sequence[FloatArray]) -> FloatArray:
    """Return cells multiplied by one matrix along each axis."""
    result = cells
    after = cells.shape[1]
    for matrix in matrices:
        size = len(matrix)
        after //= size
        if after == 1:
            result = result.reshape(-1, size) @ matrix
        else:
            result = matrix.T @ result.reshape(-1, size, after)
    return np.array(result.reshape(cells.shape))
