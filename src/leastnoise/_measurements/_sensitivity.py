"""The exact privacy cost of a plan, computed from its integer queries. Trusted: the kernel calls it before it lets anything out.

The labels (M1 ...) refer to PROOFS-cost.md, (R0) to PROOFS-replace.md.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from leastnoise._accounting import Cost, Privacy
from leastnoise._check import InternalError
from leastnoise._check.arrays import IntArray
from leastnoise._domain import Domain, PerCell, UnitCount
from leastnoise._linop import Contrasts, column_sums, non_negative
from leastnoise._measurements._apart import largest_distance
from leastnoise._measurements._measurements import Block, Factor, Measurements
from leastnoise._measurements._spread import spread_distance
from leastnoise._measurements._sums import EXACT_BITS, GUARD_BITS, sum_up

# Columns of several uneven blocks are added up cell by cell on tables up to this size; beyond it their maxima are added, which is never
# less.
_JOINT_CELLS = 2**16

_Entries = IntArray | npt.NDArray[np.object_]  # whole numbers of at least 0


@dataclass(frozen=True, slots=True)
class _Column:
    """What a row in each cell of some attributes adds, to a power: the largest, and all of them where they differ.

    A block's column is the product of several of these, of which two share an attribute only if one is constant.
    """

    names: tuple[str, ...]
    top: Fraction
    entries: _Entries | None = None


def cost(plan: Measurements) -> Cost:
    """What one privacy unit can lose by the plan (M1).

    Args:
        plan: a plan whose queries are integers.

    Returns:
        PureCost for discrete Laplace, ConcentratedCost for the discrete Gaussian, GaussianCost for the rounded Gaussian.

    Guarantees:
        With c the vector that a row adds to the measured queries, divided by their rows' noise scales, neighbours differ by a sum of at
        most k such vectors (add_remove) or of k differences c - c' of two of them, of which each may be 0 instead: a unit may have fewer
        than k rows, or rows outside the domain that do not count (replace). The returned value is at least max |difference|_1 for Laplace
        and max |difference|_2^2 (or half of it, as rho) for the Gaussians: k max|c| and k^2 max|c|^2, or k max|c - c'| and
        k^2 max|c - c'|^2. By the triangle inequality k equal rows are the worst. Where they cannot be equal, because few may be in one
        cell, the Gaussians lose less (S1 to S4 of PROOFS-spread.md).

    Source: Bun and Steinke 2016 (zCDP of the Gaussian); Canonne, Kamath, Steinke 2020
    (discrete).

    >>> domain = Domain(age=["a", "b", "c", "d"])
    >>> block = Block((Factor(("age",), Tree.full(4, 2)),), Fraction(3))
    >>> cost(Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,))).epsilon
    Fraction(1, 1)
    """
    return plan.noise.cost(sum_up((1, _shift(view)) for view in views(plan)))


def views(plan: Measurements) -> Iterator[Measurements]:
    """Give what counts rows or sums their values; and each count of units by itself, as a plan for the rows that are worth 1 (M8).

    >>> domain = Domain(a=["x"], measures={"units": UnitCount()})
    >>> blocks, privacy = (Block((), 1), Block((), 1, "units")), Privacy(PureDP(1), unit_column="id", max_rows=5)
    >>> plan = Measurements(domain=domain, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    >>> [cost(view).epsilon for view in views(plan)], cost(plan).epsilon
    ([Fraction(5, 1), Fraction(1, 1)], Fraction(6, 1))
    """
    units = {name for name, one in plan.domain.measures.items() if isinstance(one, UnitCount)}
    found: dict[str | None, list[Block]] = {}
    for group in plan.alike:
        found.setdefault(group[0].measure if group[0].measure in units else None, []).extend(group)
    for name, blocks in found.items():
        if name is None and len(found) == 1:
            yield plan
        else:
            yield replace(plan, privacy=rows_in_view(plan.domain, plan.privacy, name), blocks=tuple(blocks))


def rows_in_view(domain: Domain, privacy: Privacy, measure: str | None) -> Privacy:
    """What is known of the rows of a unit that count: all that are kept, or in a count of units those that are worth 1 (M8).

    Args:
        domain: the domain of a plan.
        privacy: of the plan.
        measure: what is summed, None for rows.

    >>> domain, privacy = Domain(a=["x"], measures={"units": UnitCount()}), Privacy(PureDP(1), unit_column="id", max_rows=5)
    >>> rows_in_view(domain, privacy, "units").max_rows, rows_in_view(domain, privacy, None).max_rows
    (1, 5)
    """
    counted = None if measure is None else domain.measure(measure)
    if not isinstance(counted, UnitCount):
        return privacy
    rows = min(privacy.max_rows, math.prod(domain.kind(name).size for name in counted.attributes))
    bound = PerCell(1, counted.attributes) if counted.attributes else None
    return Privacy(privacy.budget, privacy.neighbours, privacy.unit_column, rows, bound)


def _shift(plan: Measurements) -> Fraction:
    """At least the largest |shift|_p^p, over the noise scales, that the rows of a unit cause (M1)."""
    rows, power = plan.privacy.max_rows, plan.noise.norm
    norm = column_norm(plan, power)
    if plan.privacy.neighbours == "replace":
        norm = _replaced(plan, norm, power)
    lost, bound = Fraction(norm * rows**power), plan.privacy.max_per_cell
    return lost if bound is None or power == 1 else min(lost, spread_distance(plan, bound))


def _replaced(plan: Measurements, norm: Fraction, power: int) -> Fraction:
    """The largest |c - c'|_p^p, where either may be 0, from that of |c|_p^p: a row may be replaced by one outside the domain."""
    most = norm * (2 if power == 1 or _all_non_negative(plan) else 4)
    apart = largest_distance(plan, power)
    return most if apart is None else min(most, max(norm, apart))


def _all_non_negative(plan: Measurements) -> bool:
    measures = {block.measure for block in plan.blocks if not block.ends}
    signed = any(plan.domain.measure(name).low_units < 0 for name in measures if name)
    return not signed and all(map(non_negative, {factor.operator for factor in plan.factors}))


def column_norm(plan: Measurements, power: int) -> Fraction:
    """The maximum over cells of the sum over measured rows of |entry / scale|^power, or a little more (M2).

    Args:
        plan: the plan.
        power: 1 or 2.

    Returns:
        An exact fraction; where many fractions or many cells would have to be summed, an upper bound.

    >>> block = Block((), Fraction(5, 2))
    >>> domain = Domain(age=["a", "b"])
    >>> column_norm(Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)), 2)
    Fraction(4, 25)
    """
    known = {factor: _Column(factor.attributes, *_column_sums(factor, power)) for factor in plan.factors}
    even: dict[Fraction, Fraction] = {}
    uneven: list[tuple[Fraction, list[_Column]]] = []
    for group in plan.alike:
        # Blocks without limits that are alike and have constant columns are added up by their number; others are looked at one by one.
        counted = group[0].limits is None and all(known[factor].entries is None for factor in group[0].factors)
        for block in group[:1] if counted else group:
            columns, largest = _limited(plan, block, [known[factor] for factor in block.factors], power)
            if all(column.entries is None for column in columns):
                ratio = block.scale / largest
                even[ratio] = even.get(ratio, Fraction(0)) + (len(group) if counted else 1) * _top(columns)
            else:
                uneven.append(((largest / block.scale) ** power, columns))
    total = sum_up((count, 1 / ratio**power) for ratio, count in even.items())
    return total + _uneven_norm(plan, uneven)


def _limited(plan: Measurements, block: Block, columns: Sequence[_Column], power: int) -> tuple[list[_Column], int]:
    """A block's columns with what its limits let a row add in each cell, and what a row adds besides, in every cell."""
    largest = plan.largest_values(block)
    name = None if block.limits is None else block.limits.attribute
    if name is None:
        return list(columns), int(largest[0])
    amounts = largest.astype(object) ** power  # of Python's integers: squares may leave int64
    found = list(columns)
    for place, column in enumerate(columns):
        if name in column.names and column.top.denominator == 1:
            shape = tuple(plan.domain.kind(other).size for other in column.names)
            along = np.ones(shape, dtype=object) * amounts.reshape([-1 if other == name else 1 for other in column.names])
            own = int(column.top) if column.entries is None else column.entries
            found[place] = _of_entries(column.names, np.asarray(own * along.reshape(-1)))
            return found, 1
    # The attribute is summed over, or measured by contrasts, whose column is constant.
    return [*found, _of_entries((name,), amounts)], 1


def _of_entries(names: tuple[str, ...], entries: _Entries) -> _Column:
    low, high = int(entries.min()), int(entries.max())
    return _Column(names, Fraction(high), None if low == high else entries)


def _column_sums(factor: Factor, power: int) -> tuple[Fraction, IntArray | None]:
    """The largest sum over a factor's rows of |entry * weight / norm|^power, and the sums themselves where they differ between cells.

    For contrasts and power 2, cell j = 0, ..., n - 1 has the sum over k > j of 1 / (k (k + 1)), which is 1 / (j + 1) - 1 / n, plus
    j^2 / (j (j + 1)) from row j: (n - 1) / n for every cell.
    """
    if isinstance(factor.operator, Contrasts):
        if power != 2:
            raise InternalError("Contrasts have no Laplace cost; a plan refuses them. Please report this; nothing was spent.")
        return Fraction(factor.operator.size - 1, factor.operator.size), None
    entry = column_sums(factor.operator, factor.weights**power, power)
    if int(entry.min()) < 0:
        raise InternalError("A column sum wrapped around; please report this. Nothing was spent.")
    return Fraction(int(entry.max())), None if entry.min() == entry.max() else entry


def _top(columns: Iterable[_Column]) -> Fraction:
    return math.prod((column.top for column in columns), start=Fraction(1))


def _uneven_norm(plan: Measurements, blocks: Sequence[tuple[Fraction, list[_Column]]]) -> Fraction:
    """The part of the norm that differs between cells, from the blocks' weights and columns."""
    if not blocks:
        return Fraction(0)
    if len(blocks) > 1:
        joint = {name for _, columns in blocks for column in columns if column.entries is not None for name in column.names}
        names = [name for name in plan.domain.names if name in joint]
        if math.prod(plan.domain.kind(name).size for name in names) <= _JOINT_CELLS:
            return _joint_norm(plan, blocks, names)
    return sum_up((_top(columns), weight) for weight, columns in blocks)


def _joint_norm(plan: Measurements, blocks: Sequence[tuple[Fraction, list[_Column]]], names: list[str]) -> Fraction:
    """Exact maximum over the cells of the named attributes; in multiples of 2^-GUARD_BITS, rounded up, where denominators are long."""
    shape = tuple(plan.domain.kind(name).size for name in names)
    constants = [weight * _top(column for column in columns if column.entries is None) for weight, columns in blocks]
    unit = math.lcm(*(constant.denominator for constant in constants))
    if unit.bit_length() > EXACT_BITS:
        unit = 1 << GUARD_BITS
    summed = np.zeros(shape, dtype=object)
    for (_, columns), constant in zip(blocks, constants, strict=True):
        product = np.full((1,) * len(names), math.ceil(constant * unit), dtype=object)
        for column in columns:
            if column.entries is None:
                continue
            places = [names.index(name) for name in column.names]
            if places != sorted(places):
                raise InternalError("The attributes of a factor are not in the order of the domain.")
            axes = [shape[place] if place in places else 1 for place in range(len(names))]
            product = product * column.entries.astype(object).reshape(axes)
        summed = summed + product
    return Fraction(int(summed.max()), unit)
