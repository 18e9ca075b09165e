"""Generalised least squares in product form: unbiased, of least variance, and consistent across all tables.

The estimate of a marginal T is the sum over tau within T of one component, spread over the other attributes by their means:

    u(tau) = 1 / lambda(tau) * sum over blocks B containing tau of p_B * (R on tau, mean^T on S_B without tau) F_B^T diag(w^2) z_B

Every component is computed once, so tables that share attributes agree. Source: Cormode et al. (arXiv 1207.6096), GReM (arXiv
2410.01091); the proof is in docs/mathematics.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from leastnoise._accuracy._blocks import explained, measured_along
from leastnoise._accuracy._form import Measured, marginals_of
from leastnoise._accuracy._joint import used
from leastnoise._check.arrays import FloatArray
from leastnoise._families import leaves_out_total
from leastnoise._linop import apply_transpose

if TYPE_CHECKING:
    from leastnoise._accuracy._product import ProductStructure

Names = tuple[str, ...]
Places = tuple[int, ...]
"""Some of the attributes of a block or a table, counted from its first."""
# A component that more blocks contain is summed for all such in one pass over the blocks.
_FEW = 4
_MOST_TOGETHER = 2**20  # numbers of blocks that are looked at together


@dataclass(frozen=True, eq=False)
class ProductCells:
    """Components of the residual basis, computed when first asked for, of many tables that are alike at once.

    Of the components only those are kept that are small beside the tables: see ``marginals``.
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
    def along(self) -> list[tuple[Names, Names]]:
        """For every block ``measured_along``."""
        return [measured_along(one.block) for one in self.measured]

    @cached_property
    def kinds(self) -> list[int]:
        """For every block a number; blocks with one number differ in attributes alone."""
        factors = {id(factor): factor for one in self.measured for factor in one.block.factors}
        equal: dict[object, int] = {}
        own = {
            place: equal.setdefault((factor.key(), id(self.structure.bases[factor.attributes[0]])), len(equal))
            for place, factor in factors.items()
        }
        numbers: dict[object, int] = {}
        return [
            numbers.setdefault((one.grid, one.variance, *[own[id(factor)] for factor in one.block.factors]), len(numbers))
            for one in self.measured
        ]

    @cached_property
    def containing(self) -> dict[Names, list[int]]:
        """For every listed tau the narrow blocks that contain it."""
        places: dict[Names, list[int]] = {}
        for place, (names, across) in enumerate(self.along):
            for tau in () if _is_wide(names, across) else explained(names, across):
                places.setdefault(tau, []).append(place)
        return places

    @cached_property
    def wide(self) -> list[int]:
        """The blocks whose subsets are not listed."""
        return [place for place, own in enumerate(self.along) if _is_wide(*own)]

    @cached_property
    def shared(self) -> dict[Names, FloatArray]:
        """For every tau that many narrow blocks contain the sum over them of what ``_made`` adds up, from one pass over the blocks."""
        wanted = {tau for tau, places in self.containing.items() if len(places) > _FEW}
        sums = {tau: np.zeros([self.sizes[name] for name in tau]) for tau in wanted}
        alike: dict[tuple[int, frozenset[Places]], list[int]] = {}
        for place, (names, across) in enumerate(self.along):
            if _is_wide(names, across) or (names == across and names not in wanted):
                continue
            found = frozenset(_places(names, tau) for tau in explained(names, across) if tau in wanted)
            alike.setdefault((self.kinds[place], found), []).append(place)
        for (_, chosen), places in alike.items():
            for some in self._some(places):
                for own, stack in self._parts(some, chosen).items():
                    for place, part in zip(some, stack, strict=True) if own in chosen else ():
                        sums[_named(self.along[place][0], own)] += part / self.measured[place].variance
        return sums

    def _some(self, places: Sequence[int]) -> Iterator[list[int]]:
        """Blocks that are alike, so many at a time as fit into the processor's cache, or nearly."""
        step = max(1, _MOST_TOGETHER // max(1, self.measured[places[0]].block.rows)) if places else 1
        for start in range(0, len(places), step):
            yield [*places[start : start + step]]

    def _components(self, taus: Sequence[Names], *, kept: bool) -> FloatArray:
        """u(tau) for every tau, all on attributes with the same bases; shape: (number of them, sizes of tau)."""
        new = [tau for tau in dict.fromkeys(taus) if tau not in self.components]
        if len(new) == len(taus) and not kept:
            return self._made(new)
        made = dict(zip(new, self._made(new), strict=True)) if new else {}
        if kept:
            self.components.update(made)
        parts = [made[tau] if tau in made else self.components[tau] for tau in taus]
        return np.array(parts) if parts[0].ndim == 0 else np.concatenate(parts).reshape(len(parts), *parts[0].shape)

    def _made(self, taus: Sequence[Names]) -> FloatArray:
        """What ``_components`` gives, from the blocks; every tau once."""
        summed = np.zeros([len(taus), *(self.sizes[name] for name in taus[0])])
        groups: dict[tuple[int, int, Places], tuple[list[int], list[int]]] = {}
        for row, tau in enumerate(taus):
            places = self.containing.get(tau, [])
            if len(places) > _FEW:
                summed[row], places = self.shared[tau], []
            within = [place for place in self.wide if set(self.along[place][1]) <= set(tau) <= set(self.along[place][0])]
            for turn, place in enumerate(places + within):  # of one group every tau is in a row of its own
                rows, blocks = groups.setdefault((turn, self.kinds[place], _places(self.along[place][0], tau)), ([], []))
                rows.append(row)
                blocks.append(place)
        for (_, _, own), (rows, blocks) in groups.items():
            done = 0
            for some in self._some(blocks):
                summed[rows[done : done + len(some)]] += self._parts(some, {own})[own] / self.measured[some[0]].variance
                done += len(some)
        strengths = np.array([self.structure.strength(tau) for tau in taus])
        strengths[~(strengths > 0)] = 1.0
        return summed / strengths.reshape(-1, *[1] * (summed.ndim - 1))

    def _parts(self, places: Sequence[int], wanted: AbstractSet[Places]) -> dict[Places, FloatArray]:
        """(R on tau, mean^T elsewhere) F^T diag(w^2) z of blocks that are alike, for at least those tau that are wanted and explained."""
        block = self.measured[places[0]].block
        one = next(iter(wanted)) if len(wanted) == 1 else None
        every = tuple(range(len(self.along[places[0]][0])))
        whole = every in wanted
        # Every factor takes the first axis and puts what is left of it last, so in the end the blocks are first, and their axes in order.
        parts: dict[Places, FloatArray] = {(): np.stack([self.measured[place].values for place in places], axis=1)}
        shapes: dict[Places, list[int]] = {(): [len(places)]}
        at = 0
        for factor in block.factors:
            split: dict[Places, FloatArray] = {}
            name = factor.attributes[0]
            basis, alone = self.structure.bases[name], leaves_out_total(factor)
            for tau, flat in parts.items():
                cube = flat.reshape(factor.operator.rows, -1)
                if not factor.even:
                    cube = cube * (factor.scaling**2)[:, None]
                if not used(factor):
                    split[tau] = cube.sum(axis=0)
                    continue
                spread = apply_transpose(factor.operator, cube)
                if not alone and (one is None or at not in one):
                    split[tau] = basis.mean @ spread
                if at in one if one is not None else whole or (*tau, at) != every:
                    split[*tau, at] = basis.residual(spread).T
                    shapes[*tau, at] = [*shapes[tau], self.sizes[name]]
            parts = split
            at += used(factor)
        return {tau: part.reshape(shapes[tau]) for tau, part in parts.items()}

    def marginal(self, names: Names) -> FloatArray:
        """The estimated cells of a marginal, shape: its sizes."""
        return self.marginals([names])[0]

    def marginals(self, tables: Sequence[Names]) -> FloatArray:
        """``marginal`` of tables of one shape, stacked: of those whose attributes have the same bases in turn at once."""
        alike: dict[tuple[int, ...], list[int]] = {}
        for place, names in enumerate(tables):
            alike.setdefault(tuple(id(self.structure.bases[name]) for name in names), []).append(place)
        if len(alike) == 1:
            return self._together(tables)
        answer = np.empty([len(tables), *(self.sizes[name] for name in tables[0])])
        for places in alike.values():
            answer[places] = self._together([tables[place] for place in places])
        return answer

    def _together(self, tables: Sequence[Names]) -> FloatArray:
        """Components of proper subsets are kept, because other tables need them too.

        That of the table itself, which is about as large as the table, is not: a release of many tables would keep them all.
        """
        width, sizes = len(tables[0]), [self.sizes[name] for name in tables[0]]
        parts: dict[Places, FloatArray] = {}
        for chosen in _subsets(width):
            taus = [_named(names, chosen) for names in tables]
            parts[chosen] = self._components(taus, kept=len(chosen) < width or width <= 1)
        for place in range(width - 1, -1, -1):  # one attribute after the other, the last first
            mean = self.structure.bases[tables[0][place]].mean
            behind = sizes[place + 1 :]
            for chosen in _subsets(place):
                part = parts[chosen]
                before = part.shape[: len(chosen) + 1]
                spread = part.reshape(*before, 1, *behind) * mean.reshape(-1, *[1] * len(behind))
                parts[chosen] = np.add(spread, parts.pop((*chosen, place)), out=spread)
        return parts[()] if width else np.array(parts[()])  # what is kept is not given away


@marginals_of.register
def _(cells: ProductCells, tables: Sequence[Names]) -> FloatArray:
    return cells.marginals(tables)


@cache
def _subsets(width: int) -> tuple[Places, ...]:
    """Of the first so many attributes."""
    return tuple(chosen for size in range(width + 1) for chosen in combinations(range(width), size))


def _named(names: Names, chosen: Places) -> Names:
    return tuple([names[place] for place in chosen])


def _places(names: Names, tau: Names) -> Places:
    return tuple([names.index(name) for name in tau])


def _is_wide(names: Names, across: Names) -> bool:
    """Whether a block explains too many tau to list them."""
    return len(names) - len(across) > 10
