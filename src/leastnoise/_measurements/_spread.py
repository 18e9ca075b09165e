"""What a unit can lose whose rows must lie in many cells, under Gaussian noise. Trusted: part of `cost`.

The proof is PROOFS-spread.md beside this file; the labels (S1 ...) refer to it.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from leastnoise._domain import PerCell
from leastnoise._linop import Contrasts, Identity, Total, column_sums, non_negative
from leastnoise._measurements._limits import Limits
from leastnoise._measurements._measurements import Block, Factor, Measurements
from leastnoise._measurements._sums import sum_up


def spread_distance(plan: Measurements, bound: PerCell) -> Fraction:
    """At least the largest |shift|_2^2, over the noise scales, of rows of which at most ``bound.rows`` are in one of its cells.

    Args:
        plan: the plan; its ``max_rows`` bounds the rows in all cells together.
        bound: on the rows in a cell.

    Returns:
        An exact fraction. For added rows and blocks of cells and of contrasts it is attained where the bound is on one attribute.

    >>> privacy = Privacy(ZCDP(1), unit_column="id", max_rows=12, max_per_cell=ln.PerCell(1, "month"))
    >>> block = Block((Factor(("month",), Identity(24)),), Fraction(1))
    >>> plan = Measurements(domain=Domain(month=Coded(24)), privacy=privacy, noise=Noise.DISCRETE_GAUSSIAN, blocks=(block,))
    >>> spread_distance(plan, privacy.max_per_cell)
    Fraction(12, 1)
    """
    apart, together = plan.privacy.squares, plan.privacy.max_rows**2  # S2
    weights: dict[tuple[frozenset[str], frozenset[Factor], str | None, Limits | None, bool, int], Fraction] = {}
    for block in plan.blocks:
        worth = int(plan.largest_values(block).max())
        for cells, rest, share in _forms(block, bound):
            key = (cells, rest, block.measure, block.limits, block.ends, worth)
            weights[key] = weights.get(key, Fraction(0)) + share / block.scale**2
    replace, found = plan.privacy.neighbours == "replace", []
    for (cells, rest, measure, _, ends, worth), weight in weights.items():
        signed = measure is not None and not ends and plan.domain.measure(measure).low_units < 0
        pairs = 1 if not replace else 4 if signed else 2 if cells or rest or ends else 1  # S4
        norm = worth**2 * math.prod((_norm(factor, replace=replace) for factor in rest), start=Fraction(pairs))
        found.append((apart if cells == {*bound.attributes} else together, max(weight, Fraction(0)) * norm))  # S3
    return sum_up(found)


def _forms(block: Block, bound: PerCell) -> Iterator[tuple[frozenset[str], frozenset[Factor], Fraction]]:
    """A block as a sum of products of cells along attributes of the bound with other factors, and their shares (S1)."""
    cells, rest, split = set(), set(), []
    for factor in block.factors:
        plain = factor.row_weights is None
        if plain and isinstance(factor.operator, Identity):
            cells |= {*factor.attributes} & {*bound.attributes}
            # which cells, not how many: one form, whatever other attributes a factor takes together
            rest |= {Factor((name,), Identity(1)) for name in factor.attributes if name not in bound.attributes}
        elif isinstance(factor.operator, Contrasts) and factor.attributes[1:] == () and factor.attributes[0] in bound.attributes:
            split.append((factor.attributes[0], Fraction(-1, factor.operator.size)))
        elif not (plain and isinstance(factor.operator, Total)):
            rest.add(factor)
    for chosen in product((True, False), repeat=len(split)):
        along = {name for (name, _), kept in zip(split, chosen, strict=True) if kept}
        share = math.prod((less for (_, less), kept in zip(split, chosen, strict=True) if not kept), start=Fraction(1))
        yield frozenset(cells | along), frozenset(rest), share


def _norm(factor: Factor, *, replace: bool) -> Fraction:
    """The largest squared norm of a column; under replace what stands for it where columns can point away from each other (S4)."""
    if isinstance(factor.operator, Contrasts):
        return Fraction(1) if replace else Fraction(factor.operator.size - 1, factor.operator.size)
    top = Fraction(int(column_sums(factor.operator, factor.weights**2, 2).max()))
    return top if not replace or non_negative(factor.operator) else 2 * top
