"""The exact privacy cost of a plan, computed from its integer queries. Trusted: the kernel calls it before it lets anything out."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from leastnoise._check import InternalError
from leastnoise.accounting import ConcentratedCost, Cost, GaussianCost, PureCost
from leastnoise.linop import Contrasts, IntArray, column_sums, non_negative
from leastnoise.plan._plan import Block, Factor, Plan

# Fractions whose sum would have a longer denominator are rounded up to a multiple of 2^-GUARD_BITS each: more loss is claimed, never less.
_EXACT_BITS = 512
GUARD_BITS = 128
# Columns of several uneven blocks are added up cell by cell on tables up to this size; beyond it their maxima are added, which is never
# less.
_JOINT_CELLS = 2**16


def cost(plan: Plan) -> Cost:
    """What one privacy unit can lose by the plan.

    Args:
        plan: a plan whose queries are integers.

    Returns:
        PureCost for discrete Laplace, ConcentratedCost for the discrete Gaussian, GaussianCost for the rounded Gaussian.

    Guarantees:
        With c_j the vector of a cell's column entries divided by their rows' noise scales (times the measure's largest value), neighbours
        differ by at most k columns (add_remove) or by k columns against k others (replace). The returned value is at least
        max |difference|_1 for Laplace and max |difference|_2^2 (or half of it, as rho) for the Gaussians: k max|c_j| and k^2 max|c_j|^2,
        twice and four times that for replace; only twice for the square if all queries and values are non-negative, because vectors u, v
        with non-negative entries have |u - v|^2 <= |u|^2 + |v|^2.

    Source: Bun and Steinke 2016 (zCDP of the Gaussian); Canonne, Kamath, Steinke 2020
    (discrete).

    >>> from leastnoise.accounting import Privacy, PureDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.linop import Tree
    >>> domain = Domain(age=["a", "b", "c", "d"])
    >>> block = Block((Factor(("age",), Tree.full(4, 2)),), Fraction(3))
    >>> cost(Plan(domain=domain, privacy=Privacy(PureDP(1)), mechanism="discrete_laplace", blocks=(block,), strategy="tree")).epsilon
    Fraction(1, 1)
    """
    rows = plan.privacy.max_rows
    replace = plan.privacy.neighbours == "replace"
    if plan.mechanism == "discrete_laplace":
        return PureCost(column_norm(plan, 1) * rows * (2 if replace else 1))
    exchange = (2 if _all_non_negative(plan) else 4) if replace else 1
    mu_squared = column_norm(plan, 2) * rows**2 * exchange
    return GaussianCost(mu_squared) if plan.mechanism == "rounded_gaussian" else ConcentratedCost(mu_squared / 2)


def _all_non_negative(plan: Plan) -> bool:
    measures = {block.measure for block in plan.blocks} - {None}
    operators = {factor.operator for block in plan.blocks for factor in block.factors}
    return all(plan.domain.measures[name].low_units >= 0 for name in measures if name) and all(
        non_negative(operator) for operator in operators
    )


def column_norm(plan: Plan, power: int) -> Fraction:
    """The maximum over cells of the sum over measured rows of |entry / scale|^power, or a little more.

    Args:
        plan: the plan.
        power: 1 or 2.

    Returns:
        An exact fraction; where many fractions or many cells would have to be summed, an upper bound.

    >>> from leastnoise.accounting import Privacy, PureDP
    >>> from leastnoise.domain import Domain
    >>> block = Block((), Fraction(5, 2))
    >>> domain = Domain(age=["a", "b"])
    >>> column_norm(Plan(domain=domain, privacy=Privacy(PureDP(1)), mechanism="discrete_laplace", blocks=(block,), strategy="total"), 2)
    Fraction(4, 25)
    """
    sums: dict[Factor, tuple[Fraction, IntArray | None]] = {}
    alike: Counter[tuple[str | None, tuple[int, int], tuple[tuple[int, int], ...]]] = Counter()
    uneven: list[Block] = []
    for block in plan.blocks:
        for factor in block.factors:
            if factor not in sums:
                sums[factor] = _column_sums(factor, power)
        if all(sums[factor][1] is None for factor in block.factors):
            # Blocks of one scale and the same columns are added up by their number.
            tops = tuple(sums[factor][0].as_integer_ratio() for factor in block.factors)
            alike[block.measure, block.scale.as_integer_ratio(), tops] += 1
        else:
            uneven.append(block)
    even: dict[Fraction, Fraction] = {}
    for (measure, scale, tops), count in alike.items():
        ratio = Fraction(*scale) / plan.largest_value(measure)
        even[ratio] = even.get(ratio, Fraction(0)) + count * math.prod((Fraction(*top) for top in tops), start=Fraction(1))
    total = sum_up((count, 1 / ratio**power) for ratio, count in even.items())
    return total + _uneven_norm(plan, uneven, sums, power)


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


def sum_up(terms: Iterable[tuple[Fraction | int, Fraction]]) -> Fraction:
    """Sum count * value exactly if the sum is a short fraction, else with each value rounded up.

    Args:
        terms: pairs of a multiplicity and a value, both at least 0.

    >>> sum_up([(2, Fraction(1, 3)), (1, Fraction(1, 3))])
    Fraction(1, 1)
    """
    pairs = list(terms)
    exact = Fraction(0)
    for count, value in pairs:
        exact += count * value
        if exact.denominator.bit_length() > _EXACT_BITS:
            break
    else:
        return exact
    return Fraction(sum(math.ceil(count * value * (1 << GUARD_BITS)) for count, value in pairs), 1 << GUARD_BITS)


def _uneven_norm(plan: Plan, blocks: list[Block], sums: dict[Factor, tuple[Fraction, IntArray | None]], power: int) -> Fraction:
    """The part of the norm that differs between cells."""
    if not blocks:
        return Fraction(0)
    weights = [(plan.largest_value(block.measure) / block.scale) ** power for block in blocks]
    if len(blocks) > 1:
        joint = {name for block in blocks for factor in block.factors if sums[factor][1] is not None for name in factor.attributes}
        names = [name for name in plan.domain.names if name in joint]
        if math.prod(plan.domain.kind(name).size for name in names) <= _JOINT_CELLS:
            return _joint_norm(plan, blocks, sums, weights, names)
    tops = [math.prod((sums[factor][0] for factor in block.factors), start=Fraction(1)) for block in blocks]
    return sum_up(zip(tops, weights, strict=True))


def _joint_norm(
    plan: Plan, blocks: list[Block], sums: dict[Factor, tuple[Fraction, IntArray | None]], weights: list[Fraction], names: list[str]
) -> Fraction:
    """Exact maximum over the cells of the named attributes; in multiples of 2^-GUARD_BITS, rounded up, where denominators are long."""
    shape = tuple(plan.domain.kind(name).size for name in names)
    constants = [
        weight * math.prod((sums[factor][0] for factor in block.factors if sums[factor][1] is None), start=Fraction(1))
        for block, weight in zip(blocks, weights, strict=True)
    ]
    unit = math.lcm(*(constant.denominator for constant in constants))
    if unit.bit_length() > _EXACT_BITS:
        unit = 1 << GUARD_BITS
    summed = np.zeros(shape, dtype=object)
    for block, constant in zip(blocks, constants, strict=True):
        column = np.full((1,) * len(names), math.ceil(constant * unit), dtype=object)
        for factor in block.factors:
            entry = sums[factor][1]
            if entry is None:
                continue
            places = [names.index(name) for name in factor.attributes]
            if places != sorted(places):
                raise InternalError("The attributes of a factor are not in the order of the domain.")
            column = column * entry.astype(object).reshape([shape[place] if place in places else 1 for place in range(len(names))])
        summed = summed + column
    return Fraction(int(summed.max()), unit)
