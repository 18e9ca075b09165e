"""Generalised least squares in product form: unbiased, of least variance, and consistent across all tables.

The estimate of a marginal T is the sum over tau within T of one component, spread over the other attributes by their means:

    u(tau) = 1 / lambda(tau) * sum over blocks B containing tau of p_B * (R on tau, mean^T on S_B without tau) F_B^T diag(w^2) z_B

Every component is computed once, so tables that share attributes agree. Source: Cormode et al. (arXiv 1207.6096), GReM (arXiv
2410.01091); the proof is in docs/mathematics.md.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from leastnoise._accuracy._blocks import explained, measured_along, subsets
from leastnoise._accuracy._form import Measured
from leastnoise._accuracy._joint import used
from leastnoise._accuracy._without_total import leaves_out_total
from leastnoise._check.arrays import FloatArray
from leastnoise._linop import apply_transpose
from leastnoise._measurements import Block

if TYPE_CHECKING:
    from leastnoise._accuracy._product import ProductStructure

Names = tuple[str, ...]
# A component that more blocks contain is summed for all such in one pass over the blocks.
_FEW = 4


@dataclass(frozen=True, eq=False)
class ProductCells:
    """Components of the residual basis, computed when first asked for.

    Of the components only those are kept that are small beside the tables: see ``marginal``.

    Args:
        structure: the covariance.
        measured: what every block measured.
    """

    structure: "ProductStructure"
    measured: tuple[Measured, ...]
    components: dict[Names, FloatArray] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """All attributes."""
        return tuple(self.structure.bases)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Cells of every attribute."""
        return {name: basis.size for name, basis in self.structure.bases.items()}

    @cached_property
    def containing(self) -> dict[Names, list[int]]:
        """For every listed tau the narrow blocks that contain it."""
        places: dict[Names, list[int]] = {}
        for place, one in enumerate(self.measured):
            names, across = measured_along(one.block)
            for tau in () if _is_wide(one.block) else explained(names, across):
                places.setdefault(tau, []).append(place)
        return places

    @cached_property
    def wide(self) -> list[int]:
        """The blocks whose subsets are not listed."""
        return [place for place, one in enumerate(self.measured) if _is_wide(one.block)]

    @cached_property
    def shared(self) -> dict[Names, FloatArray]:
        """For every tau that many narrow blocks contain the sum over them of what ``component`` adds up, from one pass over the blocks."""
        wanted = {tau for tau, places in self.containing.items() if len(places) > _FEW}
        sums = {tau: np.zeros([self.sizes[name] for name in tau]) for tau in wanted}
        for place, one in enumerate(self.measured):
            names, across = measured_along(one.block)
            if _is_wide(one.block) or (names == across and names not in wanted):
                continue
            for tau, part in self._parts(place, wanted).items():
                if tau in wanted:
                    sums[tau] += part / one.variance
        return sums

    def component(self, tau: Names) -> FloatArray:
        """u(tau), shape: the sizes of tau."""
        if tau in self.components:
            return self.components[tau]
        places = self.containing.get(tau, [])
        wide = [place for place in self.wide if _explains(self.measured[place].block, tau)]
        if len(places) > _FEW:
            summed, places = self.shared[tau], []
        else:
            summed = np.zeros([self.sizes[name] for name in tau])
        for place in places + wide:
            summed = summed + self._parts(place, {tau})[tau] / self.measured[place].variance
        strength = self.structure.strength(tau)
        return summed / strength if strength > 0 else summed

    def _parts(self, place: int, wanted: Collection[Names]) -> dict[Names, FloatArray]:
        """(R on tau, mean^T elsewhere) F^T diag(w^2) z of one block, for at least those tau that are wanted and that it explains."""
        block, values = self.measured[place].block, self.measured[place].values
        one = next(iter(wanted)) if len(wanted) == 1 else None
        names = measured_along(block)[0]
        whole = names in wanted
        # Every factor takes the first axis and puts what is left of it last, so in the end the axes are in their order again.
        parts: dict[Names, FloatArray] = {(): values}
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
