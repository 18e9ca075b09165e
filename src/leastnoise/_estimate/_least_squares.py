"""Generalised least squares from the noisy integers: unbiased, of least variance, and consistent across all tables.

In product form the estimate of a marginal T is the sum over tau within T of one component, spread over the other attributes by their means:

    u(tau) = 1 / lambda(tau) * sum over blocks B containing tau of p_B * (R on tau, mean^T on S_B without tau) F_B^T diag(w^2) z_B

Every component is computed once, so tables that share attributes agree. Source: Cormode et al. (arXiv 1207.6096), GReM (arXiv
2410.01091); the proof is in docs/mathematics.md.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from leastnoise._accuracy import (
    DenseStructure,
    IterativeStructure,
    PairStructure,
    ProductStructure,
    Structure,
    block_rows,
    block_variance,
    explained,
    leaves_out_total,
    measured_along,
    structure,
    subsets,
    used,
)
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._answer import Answer
from leastnoise._linop import along, apply, apply_transpose
from leastnoise._measurements import Block, Observation
from leastnoise._workload import Product, marginals

Names = tuple[str, ...]
# A component that more blocks contain is summed for all such in one pass over the blocks.
_FEW = 4


@dataclass(frozen=True, eq=False)
class _ProductEstimate:
    """Components of the residual basis, computed when first asked for.

    Of the components only those are kept that are small beside the tables: see ``marginal``.

    Args:
        structure: the covariance.
        sizes: cells of every measured attribute.
        blocks: a block, its observation in multiples of 1 / grid, and its noise variance.
        grid: of the plan.
    """

    structure: ProductStructure
    sizes: Mapping[str, int]
    blocks: tuple[tuple[Block, IntArray, float], ...]
    grid: int
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

    @cached_property
    def shared(self) -> dict[Names, FloatArray]:
        """For every tau that many narrow blocks contain the sum over them of what ``component`` adds up, from one pass over the blocks."""
        wanted = {tau for tau, places in self.containing.items() if len(places) > _FEW}
        sums = {tau: np.zeros([self.sizes[name] for name in tau]) for tau in wanted}
        for place, (block, _, variance) in enumerate(self.blocks):
            names, across = measured_along(block)
            if _is_wide(block) or (names == across and names not in wanted):
                continue
            for tau, part in self._parts(place, wanted).items():
                if tau in wanted:
                    sums[tau] += part / variance
        return sums

    def component(self, tau: Names) -> FloatArray:
        """u(tau), shape: the sizes of tau."""
        if tau in self.components:
            return self.components[tau]
        places = self.containing.get(tau, [])
        wide = [place for place in self.wide if _explains(self.blocks[place][0], tau)]
        if len(places) > _FEW:
            summed, places = self.shared[tau], []
        else:
            summed = np.zeros([self.sizes[name] for name in tau])
        for place in places + wide:
            summed = summed + self._parts(place, {tau})[tau] / self.blocks[place][2]
        strength = self.structure.strength(tau)
        return summed / strength if strength > 0 else summed

    def _parts(self, place: int, wanted: Collection[Names]) -> dict[Names, FloatArray]:
        """(R on tau, mean^T elsewhere) F^T diag(w^2) z of one block, for at least those tau that are wanted and that it explains."""
        block, values, _ = self.blocks[place]
        one = next(iter(wanted)) if len(wanted) == 1 else None
        names = measured_along(block)[0]
        whole = names in wanted
        # Every factor takes the first axis and puts what is left of it last, so in the end the axes are in their order again.
        parts: dict[Names, FloatArray] = {(): values / self.grid}
        for factor in block.factors:
            split: dict[Names, FloatArray] = {}
            name = factor.attributes[0]
            for tau, flat in parts.items():
                cube = flat.reshape(factor.operator.rows, -1)
                if not factor.even:
                    cube = cube * (factor.scaling**2)[:, None]
                if not used(factor):
                    split[tau] = cube.sum(axis=0)
                    continue
                spread = apply_transpose(factor.operator, cube)
                basis = self.structure.bases[name]
                if not leaves_out_total(factor) and (one is None or name not in one):
                    split[tau] = basis.mean @ spread
                if name in one if one is not None else whole or (*tau, name) != names:
                    split[*tau, name] = basis.residual(spread).T
            parts = split
        return {tau: part.reshape([self.sizes[name] for name in tau]) for tau, part in parts.items()}

    def marginal(self, names: Names) -> FloatArray:
        """The estimated cells of a marginal, shape: its sizes.

        Components of proper subsets are kept, because other tables need them too. That of the table itself, which is about as large as the
        table, is not: a release of many tables would keep them all.
        """
        parts: dict[Names, FloatArray] = {}
        for tau in subsets(names):
            parts[tau] = self.component(tau)
            if tau != names or len(names) <= 1:
                self.components[tau] = parts[tau]
        for place in range(len(names) - 1, -1, -1):  # one attribute after the other, the last first
            mean = self.structure.bases[names[place]].mean
            for tau in subsets(names[:place]):
                part = parts[tau]
                behind = [self.sizes[name] for name in names[place + 1 :]]
                before = part.shape[: len(tau)]
                parts[tau] = part.reshape(*before, 1, *behind) * mean.reshape(-1, *[1] * len(behind)) + parts.pop((*tau, names[place]))
        return parts[()] if names else np.array(parts[()])  # what is kept is not given away


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
    _structures: dict[str | None, Structure] = field(default_factory=dict, repr=False)

    def least_squares(self) -> "Estimate":
        """Itself: see `HasLeastSquares`."""
        return self

    def like(self, observation: Observation) -> "Estimate":
        """The estimate of another observation of the same plan, such as a simulated one; what only the plan decides is kept."""
        return Estimate(observation, _structures=self._structures)

    def _part(self, measure: str | None) -> tuple[Structure, "_ProductEstimate | FloatArray"]:
        if measure not in self._parts:
            plan = self.observation.measurements
            if measure not in self._structures:
                self._structures[measure] = structure(plan, measure)
            known = self._structures[measure]
            blocks = tuple(
                (block, values, block_variance(plan, block))
                for block, values in zip(plan.blocks, self.observation.values, strict=True)
                if block.measure == measure
            )
            if isinstance(known, ProductStructure):
                sizes = {name: own.size for name, own in known.bases.items()}
                self._parts[measure] = known, _ProductEstimate(known, sizes, blocks, plan.grid)
            elif isinstance(known, PairStructure):
                self._parts[measure] = known, _pair_gathered(known, [(one, values / plan.grid, v) for one, values, v in blocks])
            elif isinstance(known, IterativeStructure):
                gathered = known.joint.gather([values[:, None] / plan.grid for _, values, _ in blocks])
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
            InputError: the measurements do not determine every cell.
        """
        cells = marginals(self.observation.measurements.domain, ways=len(names), of=names, sum=measure).products[0]
        self._part(measure)[0].require(cells)
        return self.cells(names, measure)

    def cells(self, names: Names, measure: str | None = None) -> FloatArray:
        """Cells that explain the measurements: right for queries that these determine, and only for them.

        Args:
            names: attributes in the order of the domain.
            measure: None for counts.

        Returns:
            As ``marginal``, without its refusal; never an answer by itself.
        """
        known, part = self._part(measure)
        if isinstance(known, ProductStructure) and isinstance(part, _ProductEstimate):
            return part.marginal(names)
        if isinstance(known, PairStructure):
            measured, cube = tuple(known.axes), known.solve(np.asarray(part), names)
        else:
            joint = known.joint if isinstance(known, IterativeStructure) else known
            if isinstance(joint, ProductStructure):
                raise TypeError(joint)
            measured, cube = joint.names, np.asarray(part).reshape(joint.shape)
            cube = cube.sum(axis=tuple(axis for axis, name in enumerate(joint.names) if name not in names))
        for axis, name in enumerate(names):
            if name not in measured:  # all tables sum over it: spread evenly
                size = self.observation.measurements.domain.kind(name).size
                cube = np.repeat(np.expand_dims(cube / size, axis), size, axis)
        return np.asarray(cube)

    def estimate(self, product: Product) -> Answer:
        """The least squares answers to one product, with the errors that the plan promised.

        Raises:
            InputError: the measurements do not determine them.
        """
        return Answer(self.values(product), np.sqrt(np.maximum(self._part(product.measure)[0].variances(product), 0.0)))

    def values(self, product: Product) -> FloatArray:
        """The values of ``estimate`` alone, for whoever simulates; shape ``product.shape``.

        Raises:
            InputError: the measurements do not determine them.
        """
        self._part(product.measure)[0].require(product)
        cube = self.cells(product.attributes, product.measure)
        for axis, operator in enumerate(product.operators):
            cube = along(apply, operator, cube, axis)
        return cube


def _pair_gathered(known: PairStructure, blocks: Sequence[tuple[Block, FloatArray, float]]) -> FloatArray:
    """What ``PairStructure.solve`` needs; what rounding left of the residual, where weights are very unequal, is solved for again."""
    gathered = np.asarray(sum(known.gather(block, values) / variance for block, values, variance in blocks))
    left = sum(known.gather(block, values - known.measured(block, gathered)) / variance for block, values, variance in blocks)
    return gathered + np.asarray(left)


def _dense_cells(known: DenseStructure, observation: Observation, blocks: tuple[tuple[Block, IntArray, float], ...]) -> FloatArray:
    gathered = np.zeros(len(known.covariance))
    for block, values, variance in blocks:
        rows = block_rows(observation.measurements.domain, known.names, replace(block, factors=tuple(filter(used, block.factors))))
        gathered += rows.T @ (values / observation.measurements.grid * block.scaling()) / variance
    return known.covariance @ gathered
