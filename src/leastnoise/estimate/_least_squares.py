"""Generalised least squares from the noisy integers: unbiased, of least variance, and consistent across all tables.

In product form the estimate of a marginal T is the sum over tau within T of one component, spread over the other attributes by their means:

    u(tau) = 1 / lambda(tau) * sum over blocks B containing tau of p_B * (R on tau, mean^T on S_B without tau) F_B^T diag(w^2) z_B

Every component is computed once, so tables that share attributes agree. Source: Cormode et al. (arXiv 1207.6096), GReM (arXiv
2410.01091); the proof is in docs/mathematics.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from leastnoise.accuracy import (
    DenseStructure,
    IterativeStructure,
    Joint,
    ProductStructure,
    Structure,
    UnsupportedQuery,
    block_rows,
    block_variance,
    explained,
    measured_along,
    structure,
    subsets,
    used,
)
from leastnoise.linop import along, apply, apply_transpose
from leastnoise.observation import Observation
from leastnoise.plan import Block
from leastnoise.workload import Product

FloatArray = npt.NDArray[np.float64]
Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _ProductEstimate:
    """Components of the residual basis, computed when first asked for."""

    structure: ProductStructure
    sizes: Mapping[str, int]
    blocks: tuple[tuple[Block, FloatArray, float], ...]  # a block, its observation and its noise variance
    components: dict[Names, FloatArray] = field(default_factory=dict)

    @cached_property
    def containing(self) -> dict[Names, list[int]]:
        """For every listed tau the narrow blocks that contain it."""
        places: dict[Names, list[int]] = {}
        for place, (block, _, _) in enumerate(self.blocks):
            names, across = measured_along(block)
            for tau in () if _is_wide(block) else explained(names, across):
                places.setdefault(tau, []).append(place)
        return places

    @cached_property
    def wide(self) -> list[int]:
        """The blocks whose subsets are not listed."""
        return [place for place, (block, _, _) in enumerate(self.blocks) if _is_wide(block)]

    def component(self, tau: Names) -> FloatArray:
        """u(tau), shape: the sizes of tau."""
        if tau not in self.components:
            summed = np.zeros([self.sizes[name] for name in tau])
            wide = [place for place in self.wide if _explains(self.blocks[place][0], tau)]
            for place in self.containing.get(tau, []) + wide:
                block, values, variance = self.blocks[place]
                summed = summed + self._reduce(block, values, tau) / variance
            strength = self.structure.strength(tau)
            self.components[tau] = summed / strength if strength > 0 else summed
        return self.components[tau]

    def _reduce(self, block: Block, values: FloatArray, tau: Names) -> FloatArray:
        """(R on tau, mean^T elsewhere) F^T diag(w^2) z for one block."""
        cube = values.reshape([factor.operator.rows for factor in block.factors])
        axis = 0
        for factor in block.factors:
            moved = np.moveaxis(cube, axis, 0)
            if not factor.even:
                moved = moved * (factor.scaling**2).reshape(-1, *([1] * (moved.ndim - 1)))
            if not used(factor):
                cube = moved.sum(axis=0)
                continue
            name = factor.attributes[0]
            spread = apply_transpose(factor.operator, moved)
            if name in tau:
                cube = np.moveaxis(self.structure.bases[name].residual(spread), 0, axis)
                axis += 1
            else:
                cube = np.tensordot(self.structure.bases[name].mean, spread, axes=(0, 0))
        return cube

    def marginal(self, names: Names) -> FloatArray:
        """The estimated cells of a marginal, shape: its sizes."""
        answer = np.zeros([self.sizes[name] for name in names])
        for tau in subsets(names):
            part = self.component(tau)
            for axis, name in enumerate(names):
                if name not in tau:
                    mean = self.structure.bases[name].mean
                    part = np.expand_dims(part, axis) * mean.reshape([-1 if place == axis else 1 for place in range(part.ndim + 1)])
            answer = answer + part
        return answer


def _is_wide(block: Block) -> bool:
    """Whether a block explains too many tau to list them."""
    names, across = measured_along(block)
    return len(names) - len(across) > 10


def _explains(block: Block, tau: Names) -> bool:
    names, across = measured_along(block)
    return set(across) <= set(tau) <= set(names)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Least squares estimates of everything that an observation determines.

    Args:
        observation: what was measured.

    Guarantees: post-processing only. Unbiased; answers to overlapping queries agree; variances are those of ``accuracy``.

    Source: Cormode et al. (arXiv 1207.6096), generalised least squares.
    """

    observation: Observation
    _parts: dict[str | None, tuple[Structure, "_ProductEstimate | FloatArray"]] = field(default_factory=dict, repr=False)

    def _part(self, measure: str | None) -> tuple[Structure, "_ProductEstimate | FloatArray"]:
        if measure not in self._parts:
            plan = self.observation.plan
            known = structure(plan, measure)
            blocks = tuple(
                (block, values.astype(float) / plan.grid, block_variance(plan, block))
                for block, values in zip(plan.blocks, self.observation.values, strict=True)
                if block.measure == measure
            )
            if isinstance(known, ProductStructure):
                sizes = {name: plan.domain.kind(name).size for name in known.bases}
                self._parts[measure] = known, _ProductEstimate(known, sizes, blocks)
            elif isinstance(known, IterativeStructure):
                gathered = known.joint.gather([values[:, None] for _, values, _ in blocks])
                self._parts[measure] = known, known.joint.solve(gathered, "the estimate")[:, 0]
            else:
                self._parts[measure] = known, _dense_cells(known, self.observation, blocks)
        return self._parts[measure]

    def marginal(self, names: Names, measure: str | None = None) -> FloatArray:
        """The estimated cells of a marginal.

        Args:
            names: attributes in the order of the domain.
            measure: None for counts.

        Returns:
            Array whose shape is the attributes' sizes, in rows (or units of the measure).

        Raises:
            InputError: nothing was measured along one of the attributes.
        """
        known, part = self._part(measure)
        if isinstance(known, ProductStructure) and isinstance(part, _ProductEstimate):
            if any(name not in known.bases for name in names):
                raise UnsupportedQuery(f"The measurements do not determine the marginal on {' x '.join(names)}.")
            return part.marginal(names)
        joint = known.joint if isinstance(known, IterativeStructure) else known
        if not isinstance(joint, (DenseStructure, Joint)) or any(name not in joint.names for name in names):
            raise UnsupportedQuery(f"The measurements do not determine the marginal on {' x '.join(names)}.")
        cube = np.asarray(part).reshape(joint.shape)
        return np.asarray(cube.sum(axis=tuple(axis for axis, name in enumerate(joint.names) if name not in names)))

    def answers(self, product: Product) -> FloatArray:
        """The least squares answers to one product of the workload, shape ``product.shape``.

        Raises:
            InputError: the measurements do not determine them.
        """
        cube = self.marginal(product.attributes, product.measure)
        for axis, operator in enumerate(product.operators):
            cube = along(apply, operator, cube, axis)
        return cube

    def variances(self, product: Product) -> FloatArray:
        """The variance of every answer, shape ``product.shape``: what the plan promised."""
        return self._part(product.measure)[0].variances(product)


def _dense_cells(known: DenseStructure, observation: Observation, blocks: tuple[tuple[Block, FloatArray, float], ...]) -> FloatArray:
    gathered = np.zeros(len(known.covariance))
    for block, values, variance in blocks:
        rows = block_rows(observation.plan.domain, known.names, block)
        gathered += rows.T @ (values * block.scaling()) / variance
    return known.covariance @ gathered
