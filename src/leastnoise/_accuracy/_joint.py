"""The measurements of a plan as one implicit operator over the joint cells of the attributes they touch, and its preconditioned solver.

With A the measured queries and D the variances of their noise, least squares solves M x = A^T D^-1 z, M = A^T D^-1 A. M is a sum of
Kronecker products of Gram matrices, one a block, and is never formed: a product with it costs a few passes over the joint cells.

The preconditioner turns every short attribute into the eigenvectors of the partial trace of M along it and divides by the diagonal of M
in that basis; it is exact where all blocks have common eigenvectors, as marginals of cells have.

Source: conjugate gradients with many right-hand sides at once, each with its own steps; Hestenes and Stiefel 1952.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from leastnoise._accuracy._determined import UnsupportedQuery
from leastnoise._check import InputError, refuse
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import apply_weighted_gram, columns, gram_diagonal, only_total, quicker_by_gram, weighted_gram, zero_one
from leastnoise._linop import Operator, along, apply, apply_transpose
from leastnoise._measurements import Block, Factor

Names = tuple[str, ...]
MOST_JOINT = 2**24
TOLERANCE = 1e-9
_MOST_STEPS = 3000
_PATIENCE = 300  # steps without a residual half as large: the system is inconsistent, or hopeless
_MOST_TURNED = 1024  # an axis of more cells keeps its own basis in the preconditioner


def used(factor: Factor) -> bool:
    """Whether a factor is more than a total."""
    return not (only_total(factor.operator) and factor.row_weights is None)


def _weighted_diagonal(factor: Factor) -> FloatArray:
    """The diagonal of F^T diag(w^2) F."""
    n = factor.operator.size
    if factor.even:
        return gram_diagonal(factor.operator)
    if n <= _MOST_TURNED:
        return np.diag(weighted_gram(factor)).copy()
    if zero_one(factor.operator):
        return np.asarray(apply_transpose(factor.operator, factor.scaling**2))
    answer = np.empty(n)
    for start in range(0, n, 256):
        cells = np.arange(start, min(n, start + 256))
        unit = np.zeros((n, len(cells)))
        unit[cells, np.arange(len(cells))] = 1.0
        answer[cells] = ((apply(factor.operator, unit) * factor.scaling[:, None]) ** 2).sum(axis=0)
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """All blocks of one measure over the joint cells of the attributes they touch."""

    names: Names
    shape: tuple[int, ...]
    blocks: tuple[tuple[Block, float], ...]
    _grams: dict[Factor, FloatArray] = field(default_factory=dict, repr=False)
    _turns: list["_Preconditioner"] = field(default_factory=list, repr=False)

    @staticmethod
    def of(domain: Domain, blocks: Sequence[tuple[Block, float]]) -> "Joint":
        """The joint table of some blocks."""
        touched = {name for block, _ in blocks for factor in filter(used, block.factors) for name in factor.attributes}
        names = tuple(name for name in domain.names if name in touched)
        shape = tuple(domain.kind(name).size for name in names)
        if not math.prod(shape) <= MOST_JOINT:
            raise InputError(
                f"Least squares over these measurements needs the joint table of {' x '.join(names)}, {math.prod(shape)} cells; at most "
                f"{MOST_JOINT} are allowed. Choose another strategy, such as marginals."
            )
        return Joint(names, shape, tuple(blocks))

    @property
    def cells(self) -> int:
        """Number of joint cells."""
        return math.prod(self.shape)

    def _reduced(self, block: Block, x: FloatArray) -> tuple[list[Factor], FloatArray]:
        """The factors that are more than a total, and x summed over all other attributes, one axis a factor and one for the columns."""
        factors = [factor for factor in block.factors if used(factor)]
        measured = {name for factor in factors for name in factor.attributes}
        cube = x.reshape(*self.shape, -1)
        cube = cube.sum(axis=tuple(axis for axis, name in enumerate(self.names) if name not in measured))
        return factors, cube.reshape(*(factor.operator.size for factor in factors), -1)

    def _spread(self, factors: Sequence[Factor], cube: FloatArray, out: FloatArray) -> None:
        """Add the transpose of ``_reduced`` to ``out``, of shape (*self.shape, columns)."""
        measured = {name for factor in factors for name in factor.attributes}
        own = [size if name in measured else 1 for name, size in zip(self.names, self.shape, strict=True)]
        out += cube.reshape(*own, -1)

    def _gram_along(self, factor: Factor, cube: FloatArray, axis: int) -> FloatArray:
        n = factor.operator.size
        if n <= _MOST_TURNED and quicker_by_gram(factor.operator):
            if factor not in self._grams:
                self._grams[factor] = weighted_gram(factor)
            return np.moveaxis(np.tensordot(self._grams[factor], cube, axes=(1, axis)), 0, axis)
        return np.moveaxis(apply_weighted_gram(factor, np.moveaxis(cube, axis, 0)), 0, axis)

    def gram(self, x: FloatArray) -> FloatArray:
        """M x for columns x of shape (cells, columns)."""
        out = np.zeros((*self.shape, x.shape[1]))
        for block, variance in self.blocks:
            factors, cube = self._reduced(block, x)
            for axis, factor in enumerate(factors):
                cube = self._gram_along(factor, cube, axis)
            self._spread(factors, cube / variance, out)
        return out.reshape(x.shape)

    def gather(self, values: Sequence[FloatArray]) -> FloatArray:
        """A^T D^-1 z: for every block its rows' values of shape (rows, columns), to (cells, columns)."""
        count = values[0].shape[1]
        out = np.zeros((*self.shape, count))
        for (block, variance), rows in zip(self.blocks, values, strict=True):
            factors, cube = [factor for factor in block.factors if used(factor)], rows
            # Totals have one row, so their axes can be left out.
            cube = cube.reshape(*(factor.operator.rows for factor in factors), count)
            for axis, factor in enumerate(factors):
                moved = np.moveaxis(cube, axis, 0)
                if not factor.even:
                    moved = moved * columns(factor.scaling**2, moved)
                cube = np.moveaxis(apply_transpose(factor.operator, moved), 0, axis)
            self._spread(factors, cube / variance, out)
        return out.reshape(self.cells, count)

    def diagonal(self) -> FloatArray:
        """The diagonal of M, shape (cells,)."""
        out = np.zeros((*self.shape, 1))
        for block, variance in self.blocks:
            factors = [factor for factor in block.factors if used(factor)]
            cube = np.ones(())
            for factor in factors:
                cube = np.multiply.outer(cube, _weighted_diagonal(factor))
            self._spread(factors, cube / variance, out)
        return out.reshape(-1)

    def queries(self, operators: Sequence[Operator], rows: FloatArray) -> FloatArray:
        """W^T y for a product of operators, one a joint attribute, and y of shape (*rows of each, columns); shape (cells, columns)."""
        cube = rows
        for axis, operator in enumerate(operators):
            cube = along(apply_transpose, operator, cube, axis)
        return cube.reshape(self.cells, -1)

    def solve(self, b: FloatArray, what: str, tolerance: float = TOLERANCE) -> FloatArray:
        """Solve M x = b, and check that it is solved."""
        if not self._turns:
            self._turns.append(_Preconditioner.of(self))
        x, before, worst = np.zeros_like(b), math.inf, math.inf
        # Rounding makes the residual that is carried along drift from the true one; what is left is solved for again.
        for _ in range(4):
            left = b - self.gram(x) if before < math.inf else b
            worst = self._largest(left, b)
            if worst <= tolerance or not worst < before / 2:
                break
            before = worst
            x = x + self._conjugate_gradients(left, b, tolerance / 2)
        if not worst <= tolerance:
            raise UnsupportedQuery(
                f"Least squares for {what} did not converge: the relative residual is {worst:.1e}, allowed is {tolerance:.0e}. "
                "Either the measurements do not determine it, or their noise is too unequal for the solver. Choose another strategy."
            )
        return x

    def _largest(self, left: FloatArray, b: FloatArray) -> float:
        """The largest relative residual of all columns."""
        turn = self._turns[0].apply
        size = np.sqrt(np.maximum((b * turn(b)).sum(axis=0), 0.0))
        rest = np.sqrt(np.maximum((left * turn(left)).sum(axis=0), 0.0))
        return float(np.max(np.where(size > 0, rest / np.where(size > 0, size, 1.0), rest), initial=0.0))

    def _conjugate_gradients(self, left: FloatArray, b: FloatArray, tolerance: float) -> FloatArray:
        turn = self._turns[0].apply
        goal = tolerance**2 * np.maximum((b * turn(b)).sum(axis=0), 0.0)
        x, residual = np.zeros_like(left), left.copy()
        turned = turn(residual)
        direction = turned.copy()
        squared = (residual * turned).sum(axis=0)
        best, since = squared.copy(), 0
        for _ in range(_MOST_STEPS):
            open_ = squared > goal
            if not open_.any() or since > _PATIENCE:
                break
            product = self.gram(direction)
            curvature = (direction * product).sum(axis=0)
            step = np.where(open_ & (curvature > 0), squared / np.where(curvature > 0, curvature, 1.0), 0.0)
            x += step * direction
            residual -= step * product
            turned = turn(residual)
            fresh = (residual * turned).sum(axis=0)
            direction = turned + np.where(squared > 0, fresh / np.where(squared > 0, squared, 1.0), 0.0) * direction
            squared = fresh
            better = squared < best / 4
            best, since = np.where(better, squared, best), 0 if (better & open_).any() else since + 1
        return x


@dataclass(frozen=True, slots=True, eq=False)
class _Preconditioner:
    """An approximate inverse of M: turn every axis, divide, turn back."""

    shape: tuple[int, ...]
    turns: tuple[FloatArray | None, ...]
    inverse: FloatArray

    @staticmethod
    def of(joint: Joint) -> "_Preconditioner":
        shape = joint.shape
        factors = [factor for block, _ in joint.blocks for factor in block.factors if used(factor)]
        if any(len(factor.attributes) > 1 for factor in factors):  # no matrix an axis
            return _Preconditioner(shape, (None,) * len(shape), _inverted(joint.diagonal().reshape(*shape, 1)))
        grams = {factor: weighted_gram(factor) for factor in set(factors) if factor.operator.size <= _MOST_TURNED}
        diagonals = {factor: np.diag(grams[factor]) if factor in grams else _weighted_diagonal(factor) for factor in set(factors)}
        turns: list[FloatArray | None] = []
        for name, size in zip(joint.names, shape, strict=True):
            if size > _MOST_TURNED:
                turns.append(None)
                continue
            partial = np.zeros((size, size))
            for block, variance in joint.blocks:
                own = {factor.attributes[0]: factor for factor in block.factors if used(factor)}
                weight = math.prod(float(diagonals[factor].mean()) for other, factor in own.items() if other != name) / variance
                partial += weight * (grams[own[name]] if name in own else np.ones((size, size)))
            turns.append(np.linalg.eigh(partial)[1])
        diagonal = np.zeros(shape)
        for block, variance in joint.blocks:
            own = {factor.attributes[0]: factor for factor in block.factors if used(factor)}
            term = np.ones(())
            for name, size, turn in zip(joint.names, shape, turns, strict=True):
                if turn is None:
                    along_axis = diagonals[own[name]] if name in own else np.ones(size)
                else:
                    along_axis = np.einsum("ij,ij->j", turn, grams[own[name]] @ turn) if name in own else turn.sum(axis=0) ** 2
                term = np.multiply.outer(term, along_axis)
            diagonal += term / variance
        return _Preconditioner(shape, tuple(turns), _inverted(diagonal[..., None]))

    def apply(self, x: FloatArray) -> FloatArray:
        """The approximate inverse times columns of shape (cells, columns)."""
        cube = x.reshape(*self.shape, -1)
        for axis, turn in enumerate(self.turns):
            if turn is not None:
                cube = np.moveaxis(np.tensordot(turn, cube, axes=(0, axis)), 0, axis)
        cube = cube * self.inverse
        for axis, turn in enumerate(self.turns):
            if turn is not None:
                cube = np.moveaxis(np.tensordot(turn, cube, axes=(1, axis)), 0, axis)
        return cube.reshape(x.shape)


def _inverted(diagonal: FloatArray) -> FloatArray:
    """One over a diagonal; directions that nothing measures get the least positive value's, so that the matrix stays definite."""
    if not diagonal.max() > 0:
        raise refuse("the measurements", "queries without a coefficient", "at least one query that sees a cell")
    return 1 / np.maximum(diagonal, 1e-10 * diagonal.max())
