"""Compute the exact privacy cost of a plan from its integer queries.

This file is trusted: the kernel computes the cost before it releases anything.

The labels (M1 ...) refer to PROOFS-cost.md, (R0 ...) to PROOFS-replace.md, (S1 ...) to
PROOFS-spread.md, (J1) to PROOFS-shared-total.md.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.accounting import Cost, Privacy
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.domain import Domain, PerCellBound, PerUnit, UnitCount
from leastnoise._trusted.linop import (
    Coarse,
    Contrasts,
    Identity,
    Ordered,
    Total,
    apply,
    column_sums,
    dense,
    largest_entry,
    non_negative,
)
from leastnoise._trusted.measurements._measurements import Block, Factor, Limits, Measurements
from leastnoise._trusted.measurements._overlap import (
    MOST_CELLS,
    column_l1_norms,
    largest_squared_change,
    largest_weighted_sum,
)

# Fractions whose sum would have a longer denominator are each rounded up to a multiple of
# 2^-GUARD_BITS. So the stated loss can be larger than the true loss, and never smaller.
_EXACT_BITS = 512
_GUARD_BITS = 128

# On tables up to this size, column sums of several uneven blocks are added cell by cell. On larger
# tables their maxima are added, which gives an upper bound.
_JOINT_CELLS = 2**16

# For replaced rows (R4, R5): beyond these sizes the common part of two columns is bounded instead
# of computed.
_MOST_CELLS = 2**11  # cells of an attribute all of whose pairs are looked at
_MOST_ENTRIES = 2**23  # of the matrix of a factor
_MOST_COMPARED = 2**30  # entries of columns that are compared one by one
_MOST_SETS = 2**16  # sets of attributes in which two rows agree
_MOST_SPLIT = 2**9  # blocks times attributes that they are split along: a tenth of a second (S8)
# Norms below it: every partial sum of floating-point products is a whole number that is represented
# exactly.
_EXACT_FLOAT = 2**52

_Entries = IntArray | npt.NDArray[np.object_]  # whole numbers of at least 0


@dataclass(frozen=True, slots=True)
class _CostColumn:
    """The p-th powers of the amounts that a row adds, by the row's cell.

    An object stores the largest of these powers and, if they differ, the array of all powers. The
    column of a block is the product of several such objects. Two objects of one block share an
    attribute only if one of the two is constant.
    """

    attributes: tuple[str, ...]
    largest: Fraction
    entries: _Entries | None = None


def cost(plan: Measurements) -> Cost:
    """Return the exact privacy cost of measurements, for one unit (M1).

    Args:
        plan: a plan whose queries are integers.

    Returns:
        PureCost for discrete Laplace, ConcentratedCost for the discrete Gaussian, GaussianCost for
        the rounded Gaussian.

    Raises:
        InputError: all queries are 0 for all rows, so that there is nothing to protect.

    Guarantees:
        Let c be the vector that a row adds to the answers to the measured queries, divided by the
        noise scales of the queries. Neighbours differ by a sum of at most k such vectors
        (add_remove), or of k differences c - c' of two of them (replace). Each c may be 0 instead,
        because a unit may have fewer than k rows, and rows outside the domain do not count. For
        Laplace noise, the returned value is at least max |difference|_1: k max|c| or k max|c - c'|.
        For Gaussian noise, it is at least max |difference|_2^2 (or half of it, as rho): k^2
        max|c|^2 or k^2 max|c - c'|^2. By the triangle inequality k equal rows are the worst case.
        If only a few rows may be in one cell, the rows cannot be equal. Then the cost under
        Gaussian noise is smaller (S1 to S4 of PROOFS-spread.md).

    Source: Bun and Steinke 2016 (zCDP of the Gaussian); Canonne, Kamath, Steinke 2020 (discrete).

    >>> domain = Domain(age=["a", "b", "c", "d"])
    >>> block = Block((Factor(("age",), Tree.full(4, 2)),), Fraction(3))
    >>> plan = Measurements(
    ...     domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    ... )
    >>> cost(plan).epsilon
    Fraction(1, 1)
    """
    plan.check_k_norm_groups()
    groups = plan.k_norm_groups()
    # J1: Neighbours differ by at most ``distance`` changes of norm 1 in each group.
    terms = [(1, plan.privacy.distance / plan.blocks[first].scale) for first, *_ in groups.values()]
    independent = tuple(block for block in plan.blocks if block.k_norm_group is None)
    if independent:
        if groups:
            others = replace(plan, blocks=independent)
        else:
            others = plan
        terms += [
            (
                1,
                min(
                    [
                        _shift_bound(view, _bounds_in_cells(others, view)),
                        *_replaced_shift_bounds(view),
                    ]
                ),
            )
            for view in split_by_quantity(others)
        ]
    total = sum_rounded_up(terms)
    if total == 0:
        raise InputError(
            "At least one measured query must count or sum some row; got queries that are 0 for "
            "all rows. Leave them out: their answers are known."
        )
    return plan.noise.cost(total)


def split_by_quantity(plan: Measurements) -> Iterator[Measurements]:
    """Split a plan into its blocks of rows and its blocks of measures of units.

    Each measure of units has a separate plan (M8), whose bounds are on the rows that have an amount
    of this measure.

    >>> domain = Domain(a=["x"], measures={"units": UnitCount()})
    >>> blocks = (Block((), 1), Block((), 1, "units"))
    >>> privacy = Privacy(PureDP(1), unit_column="id", max_rows=5)
    >>> plan = Measurements(
    ...     domain=domain, privacy=privacy, noise=Noise.DISCRETE_LAPLACE, blocks=blocks
    ... )
    >>> [cost(view).epsilon for view in split_by_quantity(plan)], cost(plan).epsilon
    ([Fraction(5, 1), Fraction(1, 1)], Fraction(6, 1))
    """
    units = {name for name, measure in plan.domain.measures.items() if isinstance(measure, PerUnit)}
    viewed: dict[str | None, list[Block]] = {}
    for group in plan.similar_blocks:
        viewed.setdefault(group[0].measure if group[0].measure in units else None, []).extend(group)
    for name, blocks in viewed.items():
        if name is None and len(viewed) == 1:
            yield plan
        else:
            yield replace(
                plan, privacy=privacy_of_part(plan.domain, plan.privacy, name), blocks=tuple(blocks)
            )


def privacy_of_part(domain: Domain, privacy: Privacy, measure: str | None) -> Privacy:
    """Return the `Privacy` whose bounds on rows are those for one measure (M8).

    The bounds are on all rows or, for a measure of units, on the rows that have an amount.

    Args:
        domain: the domain of a plan.
        privacy: the privacy of the plan.
        measure: the measure that is summed; None if rows are counted.

    >>> domain = Domain(a=["x"], measures={"units": UnitCount()})
    >>> privacy = Privacy(PureDP(1), unit_column="id", max_rows=5)
    >>> (
    ...     privacy_of_part(domain, privacy, "units").max_rows,
    ...     privacy_of_part(domain, privacy, None).max_rows,
    ... )
    (1, 5)
    """
    if measure is None:
        measured_unit = None
    else:
        measured_unit = domain.measure(measure)
    if not isinstance(measured_unit, PerUnit):
        return privacy
    rows = min(privacy.max_rows, cells_of_unit(domain, measured_unit))
    if measured_unit.attributes:
        bound = PerCellBound(1, measured_unit.attributes)
    else:
        bound = None
    return replace(privacy, max_rows=rows, max_per_cell=bound)


def cells_of_unit(domain: Domain, measure: PerUnit) -> int:
    """Return the number of cells in which a unit can have an amount (M8).

    >>> domain = Domain(month=Coded(12))
    >>> (
    ...     cells_of_unit(domain, UnitCount(["month"])),
    ...     cells_of_unit(domain, UnitCount(["month"], [[[0, 1], [5]]])),
    ... )
    (12, 2)
    """
    sizes = [domain.cells(name) for name in measure.attributes]
    if isinstance(measure, UnitCount):
        sizes = [
            size if positions is None else len(positions)
            for size, positions in zip(sizes, measure.places, strict=True)
        ]
    return math.prod(sizes)


@dataclass(frozen=True, slots=True)
class _RowsInCells:
    """A bound on the rows of one unit in a cell of some attributes.

    A second bound may limit the rows that also agree in other attributes.

    Attributes:
        bound: the bound on the rows in one cell of some attributes.
        within: the bound on those rows of such a cell that are in one cell of other attributes;
            None if there is no second bound.
    """

    bound: PerCellBound
    within: PerCellBound | None = None


def _bounds_in_cells(plan: Measurements, part: Measurements) -> list[_RowsInCells]:
    """Return the bounds on rows per cell for one part of a plan (M8, S7)."""
    bound = plan.privacy.max_per_cell
    measure = part.blocks[0].measure
    if bound is None:
        bounds = []
    else:
        bounds = [_RowsInCells(bound)]
    if measure is None:
        measured_unit = None
    else:
        measured_unit = plan.domain.measure(measure)
    if not isinstance(measured_unit, PerUnit):
        return bounds
    if bound is not None:
        other = tuple(name for name in measured_unit.attributes if name not in bound.attributes)
        rows = min(bound.rows, math.prod(map(plan.domain.cells, other)))
        bounds = [
            _RowsInCells(
                PerCellBound(rows, bound.attributes), PerCellBound(1, other) if other else None
            )
        ]
    # Under Laplace noise the second bound gains almost nothing.
    if measured_unit.attributes and part.noise.norm == 2:
        bounds.append(_RowsInCells(PerCellBound(1, measured_unit.attributes)))
    return bounds


def _shift_bound(plan: Measurements, in_cells: Sequence[_RowsInCells] = ()) -> Fraction:
    """Bound |shift|_p^p, where the shift is a unit's change of the answers (M1).

    The shift is divided by the noise scales.
    """
    rows = plan.privacy.max_rows
    power = plan.noise.norm
    norm = column_norm(plan, power)
    if plan.privacy.neighbours == "replace":
        # Either row may be one outside the domain, whose column is 0 (R0).
        norm = min(
            norm * (2 if power == 1 or _all_non_negative(plan) else 4),
            max(norm, replaced_row_bound(plan, power)),
        )
    least = Fraction(norm * rows**power)
    for rows_in_cells in in_cells:
        if power == 2:
            least = min(least, squared_shift_of_spread_rows(plan, rows_in_cells.bound))
        apart = shift_bound_by_cell(plan, rows_in_cells.bound, rows_in_cells.within)
        if apart is not None:
            least = min(least, apart)
    return least


def _replaced_shift_bounds(plan: Measurements) -> list[Fraction]:
    """Return, by attribute, bounds on |shift|_p^p of a replaced unit (S8).

    Each bound adds up the unit's changes in each cell of one attribute.

    There is one bound for each attribute along which a matrix or weighted cells are measured. There
    is no bound for added rows, because equal rows are the worst case for them. There is also no
    bound for plans with many blocks.
    """
    if plan.privacy.neighbours == "add_remove":
        return []
    names: dict[str, None] = {}
    for factor in plan.factors:
        if _is_other_factor(factor):
            names |= dict.fromkeys(factor.attributes)
    if len(plan.blocks) * len(names) > _MOST_SPLIT:
        return []
    every_row = plan.privacy.max_rows
    shifts = [shift_bound_by_cell(plan, PerCellBound(every_row, name)) for name in names]
    return [shift for shift in shifts if shift is not None]


def _is_other_factor(factor: Factor) -> bool:
    """Return whether a factor is weighted, or not cells, total or contrasts (S1).

    The result is True for every factor with weights.
    """
    is_weighted = factor.row_weights is not None
    return is_weighted or not isinstance(factor.operator, (Identity, Total, Contrasts))


def _all_non_negative(plan: Measurements) -> bool:
    """Return whether no query has a negative coefficient or a negative amount."""
    measures = {block.measure for block in plan.blocks if not block.ends}
    signed = any(plan.domain.measure(name).low_units < 0 for name in measures if name)
    return not signed and all(map(non_negative, {factor.operator for factor in plan.factors}))


def column_norm(plan: Measurements, power: int) -> Fraction:
    """Return the largest |column / scales|_p^p of a cell, or a bound (M2).

    The norm of a cell's column is the sum of |entry / scale|^power over the measured queries; the
    result is the maximum over cells.

    Args:
        plan: the plan.
        power: 1 or 2.

    Returns:
        An exact fraction, or an upper bound if too many fractions or cells would have to be summed.

    >>> block = Block((), Fraction(5, 2))
    >>> domain = Domain(age=["a", "b"])
    >>> plan = Measurements(
    ...     domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    ... )
    >>> column_norm(plan, 2)
    Fraction(4, 25)
    """
    known = {
        factor: _CostColumn(factor.attributes, *_column_sums(factor, power))
        for factor in plan.factors
    }
    even: dict[Fraction, Fraction] = {}
    uneven: list[tuple[Fraction, list[_CostColumn]]] = []
    for group in plan.similar_blocks:
        # Alike blocks without limits and with constant columns are added as a multiple of one;
        # others are computed one by one.
        counted = group[0].limits is None and all(
            known[factor].entries is None for factor in group[0].factors
        )
        for block in group[:1] if counted else group:
            columns, largest = _multiply_by_limits(
                plan, block, [known[factor] for factor in block.factors], power
            )
            if all(column.entries is None for column in columns):
                ratio = block.scale / largest
                even[ratio] = even.get(ratio, Fraction(0)) + (
                    len(group) if counted else 1
                ) * _largest_product(columns)
            else:
                uneven.append(((largest / block.scale) ** power, columns))
    total = sum_rounded_up((count, 1 / ratio**power) for ratio, count in even.items())
    return total + _uneven_norm(plan, uneven)


def _multiply_by_limits(
    plan: Measurements, block: Block, columns: Sequence[_CostColumn], power: int
) -> tuple[list[_CostColumn], int]:
    """Multiply the cost columns of a block by its limits.

    Two results: the columns, and an additional factor of the cost that is the same in every cell.
    """
    largest = plan.largest_values(block)
    if block.limits is None:
        name = None
    else:
        name = block.limits.attribute
    if name is None:
        return list(columns), int(largest[0])
    amounts = largest.astype(object) ** power  # Python's integers, because squares may exceed int64
    limited = list(columns)
    for index, column in enumerate(columns):
        if name in column.attributes and column.largest.denominator == 1:
            shape = tuple(map(plan.domain.cells, column.attributes))
            along = np.ones(shape, dtype=object) * amounts.reshape(
                [-1 if other == name else 1 for other in column.attributes]
            )
            entries = int(column.largest) if column.entries is None else column.entries
            limited[index] = _cost_column(
                column.attributes, np.asarray(entries * along.reshape(-1))
            )
            return limited, 1
    # The attribute is summed over, or it is measured by contrasts, which have a constant column.
    return [*limited, _cost_column((name,), amounts)], 1


def _cost_column(names: tuple[str, ...], entries: _Entries) -> _CostColumn:
    """Return the `_CostColumn` of entries, without the array if all are equal."""
    low = int(entries.min())
    high = int(entries.max())
    return _CostColumn(names, Fraction(high), None if low == high else entries)


def _column_sums(factor: Factor, power: int) -> tuple[Fraction, IntArray | None]:
    """Return the largest column sum of a factor; and all sums, or None if equal.

    A column sum is the sum over the factor's rows of |entry * weight / norm|^power.

    For contrasts and power 2, cell j = 0, ..., n - 1 has two parts: the sum over k > j of 1 / (k (k
    + 1)), which is 1 / (j + 1) - 1 / n, and j^2 / (j (j + 1)) from row j. The column sum of a cell
    is therefore (n - 1) / n.
    """
    if isinstance(factor.operator, Contrasts):
        if power != 2:
            raise InternalError(
                "Contrasts have no Laplace cost; a plan refuses them. Please report this; nothing "
                "was spent."
            )
        return Fraction(factor.operator.size - 1, factor.operator.size), None
    entry = column_sums(factor.operator, factor.weights**power, power)
    if int(entry.min()) < 0:
        raise InternalError("A column sum wrapped around; please report this. Nothing was spent.")
    return Fraction(int(entry.max())), None if entry.min() == entry.max() else entry


def _largest_product(columns: Iterable[_CostColumn]) -> Fraction:
    """Return the product of the largest entries of cost columns."""
    return math.prod((column.largest for column in columns), start=Fraction(1))


def _uneven_norm(
    plan: Measurements, blocks: Sequence[tuple[Fraction, list[_CostColumn]]]
) -> Fraction:
    """Return the largest norm of blocks whose costs are not equal in all cells.

    ``blocks`` has the weight and the columns of each block.
    """
    if not blocks:
        return Fraction(0)
    if len(blocks) > 1:
        joint = {
            name
            for _, columns in blocks
            for column in columns
            if column.entries is not None
            for name in column.attributes
        }
        names = [name for name in plan.domain.names if name in joint]
        if math.prod(map(plan.domain.cells, names)) <= _JOINT_CELLS:
            return _joint_norm(plan, blocks, names)
    return sum_rounded_up((_largest_product(columns), weight) for weight, columns in blocks)


def _joint_norm(
    plan: Measurements, blocks: Sequence[tuple[Fraction, list[_CostColumn]]], names: list[str]
) -> Fraction:
    """Return the largest norm of blocks over the joint cells of some attributes.

    The result is exact, or rounded up to 2^-GUARD_BITS if denominators are long.
    """
    shape = tuple(map(plan.domain.cells, names))
    constants = [
        weight * _largest_product(column for column in columns if column.entries is None)
        for weight, columns in blocks
    ]
    unit = _common_denominator(constants)
    summed = np.zeros(shape, dtype=object)
    for (_, columns), constant in zip(blocks, constants, strict=True):
        block_norms = np.full((1,) * len(names), math.ceil(constant * unit), dtype=object)
        for column in columns:
            if column.entries is None:
                continue
            # Ascending, as `Measurements` has checked.
            axes_of = [names.index(name) for name in column.attributes]
            axes = [shape[index] if index in axes_of else 1 for index in range(len(names))]
            block_norms = block_norms * column.entries.astype(object).reshape(axes)
        summed = summed + block_norms
    return Fraction(int(summed.max()), unit)


def _common_denominator(values: Iterable[Fraction | int]) -> int:
    """Return the common denominator of values; a power of two if it is long (M3).

    If the denominator is a power of two, the caller rounds the values up to multiples of one over
    this power.
    """
    unit = 1
    for value in values:
        unit = math.lcm(unit, value.denominator)
        if unit.bit_length() > _EXACT_BITS:
            return 1 << _GUARD_BITS
    return unit


def sum_rounded_up(terms: Iterable[tuple[Fraction | int, Fraction]]) -> Fraction:
    """Return the sum of multiplicity * value, exact or rounded up (M3).

    The sum is exact if the common denominator is short.

    Args:
        terms: pairs of a multiplicity and a value, both at least 0.

    >>> sum_rounded_up([(2, Fraction(1, 3)), (1, Fraction(1, 3))])
    Fraction(1, 1)
    """
    values = [count * value for count, value in terms]
    unit = _common_denominator(values)
    return Fraction(sum(math.ceil(value * unit) for value in values), unit)


# Factors, measure, limits and ends other than the cells.
_FormKey: TypeAlias = tuple[frozenset[Factor], str | None, Limits | None, bool]
_Amounts: TypeAlias = tuple[str | None, Limits | None, bool]  # measure, limits and ends


def _forms(
    block: Block, names: Sequence[str]
) -> Iterator[tuple[frozenset[str], frozenset[Factor], Fraction]]:
    """Yield a block's forms of S1: (attributes, other factors, coefficient).

    A form is the product of a coefficient, the cells of some of the named attributes, and other
    factors.
    """
    cells = set()
    other_factors = set()
    split = []
    for factor in block.factors:
        plain = factor.row_weights is None
        if plain and isinstance(factor.operator, Identity):
            cells |= {*factor.attributes} & {*names}
            # A factor of one cell marks the attribute, so that forms agree whichever attributes a
            # factor takes together.
            other_factors |= {
                Factor((name,), Identity(1)) for name in factor.attributes if name not in names
            }
        elif isinstance(factor.operator, Contrasts) and {*factor.attributes} <= {*names}:
            split.append((factor.attributes, Fraction(-1, factor.operator.size)))
        elif not (plain and isinstance(factor.operator, Total)):
            other_factors.add(factor)
    for are_kept in product((True, False), repeat=len(split)):
        along: set[str] = set()
        for (attributes, _), kept in zip(split, are_kept, strict=True):
            if kept:
                along.update(attributes)
        share = math.prod(
            (less for (_, less), kept in zip(split, are_kept, strict=True) if not kept),
            start=Fraction(1),
        )
        yield frozenset(cells | along), frozenset(other_factors), share


def _summed_forms(
    plan: Measurements, names: Sequence[str], power: int
) -> tuple[dict[_FormKey, dict[frozenset[str], int]], int]:
    """Add up the coefficients of equal forms of all blocks (S1).

    The forms are grouped by the factors other than cells. The function returns the coefficients in
    multiples of 1 / unit, and the unit.
    """
    sizes = [
        math.prod(
            factor.operator.size
            for factor in block.factors
            if isinstance(factor.operator, Contrasts)
        )
        for block, *_ in plan.similar_blocks
    ]
    unit = _common_denominator(
        1 / (block.scale**power * size)
        for (block, *_), size in zip(plan.similar_blocks, sizes, strict=True)
    )
    summed: dict[_FormKey, dict[frozenset[str], int]] = {}
    for group in plan.similar_blocks:
        weight = unit / group[0].scale ** power
        for block in group:
            for cells, other_factors, share in _forms(block, names):
                shares = summed.setdefault(
                    (other_factors, block.measure, block.limits, block.ends), {}
                )
                shares[cells] = shares.get(cells, 0) + math.ceil(share * weight)
    return summed, unit


def _largest_amount(plan: Measurements, form_key: _FormKey) -> int:
    """Return the largest amount that one row adds to a measure's sum."""
    return int(plan.largest_values(Block((), Fraction(1), *form_key[1:])).max())


def squared_shift_of_spread_rows(plan: Measurements, bound: PerCellBound) -> Fraction:
    """Bound |shift|_2^2 for a unit with a bounded number of rows in each cell.

    A unit has at most ``bound.rows`` rows in each cell of the bound; the shift is divided by the
    noise scales.

    Args:
        plan: the plan; its ``max_rows`` bounds the rows in all cells together.
        bound: the bound on the rows in a cell.

    Returns:
        An exact fraction. The bound is attained for added rows if the blocks measure cells,
        contrasts and totals of the bound's only attribute, and all of them measure counts or one
        measure whose values are at least 0. If there are blocks on other attributes, the bound is
        attained if no form is below 0.

    >>> privacy = Privacy(
    ...     ZCDP(1), unit_column="id", max_rows=12, max_per_cell=ln.PerCellBound(1, "month")
    ... )
    >>> months = Block((Factor(("month",), Contrasts(24)),), Fraction(1))
    >>> domain = Domain(month=Coded(24))
    >>> plan = Measurements(
    ...     domain=domain, privacy=privacy, noise=Noise.DISCRETE_GAUSSIAN, blocks=(months,)
    ... )
    >>> squared_shift_of_spread_rows(plan, privacy.max_per_cell)
    Fraction(6, 1)
    """
    in_cell = min(bound.rows, plan.privacy.max_rows)
    cells_of_bound = math.prod(map(plan.domain.cells, bound.attributes))
    rows = min(plan.privacy.max_rows, in_cell * cells_of_bound)
    forms, unit = _summed_forms(plan, bound.attributes, 2)
    replaced = plan.privacy.neighbours == "replace"
    apart: dict[_Amounts, Fraction] = {}
    together: dict[_Amounts, Fraction] = {}
    for form_key, summed in forms.items():
        other_factors, measure, limits, ends = form_key
        signed = measure is not None and not ends and plan.domain.measure(measure).low_units < 0
        norm = _largest_amount(plan, form_key) ** 2 * math.prod(
            (_squared_column_norm(factor, replaced=replaced) for factor in other_factors),
            start=Fraction(1),
        )
        # Without other factors, the form of the total is the squared sum of the amounts (S3).
        has_exact_total = not (replaced or signed or other_factors or ends)
        for cells, share in summed.items():
            pairs = 1  # multiples of q or K^2 that the shift of replaced rows may reach (S4)
            if replaced and signed:
                pairs = 4
            elif replaced and (cells or other_factors or ends):
                pairs = 2
            if share < 0 and (cells or not has_exact_total):
                continue  # S1
            prices = apart if cells == {*bound.attributes} else together
            amounts = (measure, limits, ends)
            prices[amounts] = prices.get(amounts, Fraction(0)) + share * pairs * norm
    distance = Fraction(0)
    for amounts in {**apart, **together}:
        distance += _largest_spread_form(
            apart.get(amounts, Fraction(0)), together.get(amounts, Fraction(0)), rows, in_cell
        )
    return distance / unit


def _largest_spread_form(
    apart: Fraction, together: Fraction, rows: int, rows_in_cell: int
) -> Fraction:
    """Return the largest apart * q(s) + together * s^2 for s <= rows (S3).

    Here q(s) is the largest sum of squared cell counts of s rows, if a cell has at most
    ``rows_in_cell`` rows.
    """
    numbers = [rows]
    if together < 0:  # then the worst case fills some of the cells, or has all rows
        full_cells = min(rows // rows_in_cell, round(-apart / (2 * together)))
        numbers.append(full_cells * rows_in_cell)
    return max(
        apart * _largest_squared_rows(number, rows_in_cell) + together * number**2
        for number in numbers
    )


def _largest_squared_rows(rows: int, rows_in_cell: int) -> int:
    """Return the largest sum of squared numbers of rows in cells (S2)."""
    full_cells, remainder = divmod(rows, rows_in_cell)
    return full_cells * rows_in_cell**2 + remainder**2


def shift_bound_by_cell(
    plan: Measurements, bound: PerCellBound, within: PerCellBound | None = None
) -> Fraction | None:
    """Bound |shift|_p^p by a unit's changes in each cell (S5); None if too large.

    The bound adds up the changes by the unit's rows in each cell.

    Args:
        plan: the plan; its ``max_rows`` bounds the rows in all cells together.
        bound: the bound on the rows in a cell.
        within: the bound on the rows of one such cell in one cell of other attributes; None if
            there is none.

    Returns:
        An exact fraction, or a fraction that is rounded up; None if the matrices along the
        attributes of the bound are too large to be examined.

    >>> privacy = Privacy(
    ...     ZCDP(1), unit_column="id", max_rows=3, max_per_cell=ln.PerCellBound(1, "month")
    ... )
    >>> block = Block((Factor(("month",), Prefix(3)),), Fraction(1))
    >>> plan = Measurements(
    ...     domain=Domain(month=Coded(3)),
    ...     privacy=privacy,
    ...     noise=Noise.DISCRETE_GAUSSIAN,
    ...     blocks=(block,),
    ... )
    >>> shift_bound_by_cell(plan, privacy.max_per_cell)
    Fraction(14, 1)
    """
    domain = plan.domain
    privacy = plan.privacy
    sizes = {name: domain.cells(name) for name in domain.names if name in bound.attributes}
    if math.prod(sizes.values()) > MOST_CELLS:
        return None
    groups, other_blocks = _split_by_bound(plan, bound)
    in_a_cell = Privacy(privacy.budget, privacy.neighbours, privacy.unit_column, bound.rows, within)
    # Under Laplace noise each row counts as the largest one, so all groups share their cells (S5).
    bounds = [] if within is None or plan.noise.norm == 1 else [_RowsInCells(within)]
    # If a unit is replaced, as many rows may be added as removed, in other cells.
    rows = min(privacy.distance, bound.rows * math.prod(sizes.values()))
    distances: list[Fraction] = []
    laplace_groups: list[tuple[Fraction, list[int]]] = []
    for factors, blocks in groups.items():
        group = replace(plan, privacy=in_a_cell, blocks=tuple(blocks))
        shift_in_cell = _shift_bound(group, bounds)
        if shift_in_cell == 0:
            continue
        if plan.noise.norm == 1:
            laplace_groups.append((shift_in_cell, column_l1_norms(factors, sizes)))
            continue
        shift_of_row = _shift_bound(
            replace(group, privacy=replace(in_a_cell, max_rows=1, max_per_cell=None))
        )
        squared_change = largest_squared_change(
            factors,
            sizes,
            _fraction_root_up(Fraction(rows) ** 2 * shift_of_row / shift_in_cell),
            mixed_signs=privacy.neighbours == "replace" or not _all_non_negative(group),
        )
        if squared_change is None:
            other_blocks += [
                block for block in plan.blocks if _factors_on_bound(block, bound) == factors
            ]
        else:
            distances.append(shift_in_cell * squared_change)
    if laplace_groups:
        distances.append(_laplace_shift_by_cell(laplace_groups, Fraction(rows, bound.rows)))
    if other_blocks:
        unbounded = replace(privacy, max_per_cell=None)
        distances.append(_shift_bound(replace(plan, privacy=unbounded, blocks=tuple(other_blocks))))
    distance = sum_rounded_up((1, distance) for distance in distances)
    if privacy.neighbours == "replace":  # two units: one that is added, and one that is removed
        added = replace(plan, privacy=replace(privacy, neighbours="add_remove"))
        shift_of_added = shift_bound_by_cell(added, bound, within)
        factor = 2 if plan.noise.norm == 1 or _all_non_negative(plan) else 4
        if shift_of_added is not None:
            distance = min(distance, factor * shift_of_added)
    return distance


def _laplace_shift_by_cell(
    groups: Sequence[tuple[Fraction, list[int]]], weight_sum: Fraction
) -> Fraction:
    """Bound the shift of groups of blocks together, under Laplace noise (S5).

    Args:
        groups: for each group, the bound on its shift in one cell, and the L1 norms of its columns.
        weight_sum: a bound on the sum over cells of the unit's rows in the cell, each divided by
            the bound on the rows in a cell (K / m of S5).

    Returns:
        An exact fraction, or a fraction that is rounded up (M3).
    """
    unit = _common_denominator(shift_in_cell for shift_in_cell, _ in groups)
    weights = [math.ceil(shift_in_cell * unit) for shift_in_cell, _ in groups]
    lengths_of_cells = zip(*(lengths for _, lengths in groups), strict=True)
    weighted_lengths = [
        sum(weight * length for weight, length in zip(weights, lengths, strict=True))
        for lengths in lengths_of_cells
    ]
    return largest_weighted_sum(weighted_lengths, weight_sum) / unit


def _factors_on_bound(block: Block, bound: PerCellBound) -> tuple[Factor, ...] | None:
    """Return a block's factors on the attributes of a bound, or None.

    The result is None if one of these factors has other attributes too.
    """
    factors = tuple(f for f in block.factors if {*f.attributes} & {*bound.attributes})
    is_within_bound = all({*factor.attributes} <= {*bound.attributes} for factor in factors)
    return factors if is_within_bound else None


def _split_by_bound(
    plan: Measurements, bound: PerCellBound
) -> tuple[dict[tuple[Factor, ...], list[Block]], list[Block]]:
    """Group blocks by factors on the attributes of a bound on rows per cell.

    Limits that depend on one of the attributes are replaced by the largest of them. Blocks with a
    factor on both kinds of attributes are returned unchanged, in a separate list.
    """
    groups: dict[tuple[Factor, ...], list[Block]] = {}
    other_blocks: list[Block] = []
    for block in plan.blocks:
        factors = _factors_on_bound(block, bound)
        if factors is None:
            other_blocks.append(block)
            continue
        limits = block.limits
        if limits is not None and limits.attribute in bound.attributes:
            limits = Limits(limits.values.max(keepdims=True))
        others = tuple(factor for factor in block.factors if factor not in factors)
        groups.setdefault(factors, []).append(replace(block, factors=others, limits=limits))
    return groups, other_blocks


def _fraction_root_up(square: Fraction) -> Fraction:
    """Return the square root of a fraction, or an integer above it.

    If the root is a fraction, it is returned exactly.
    """
    top = math.isqrt(square.numerator)
    bottom = math.isqrt(square.denominator)
    if top**2 == square.numerator and bottom**2 == square.denominator:
        return Fraction(top, bottom)
    return Fraction(math.isqrt(math.ceil(square) - 1) + 1)


def _squared_column_norm(factor: Factor, *, replaced: bool) -> Fraction:
    """Return a factor's largest squared column norm, doubled for two signs (S4).

    For replaced rows, the result is twice this norm if columns may have opposite signs.
    """
    if isinstance(factor.operator, Contrasts):
        if replaced:
            return Fraction(1)
        return Fraction(factor.operator.size - 1, factor.operator.size)
    top = Fraction(int(column_sums(factor.operator, factor.weights**2, 2).max()))
    if not replaced or non_negative(factor.operator):
        return top
    return 2 * top


def replaced_row_bound(plan: Measurements, power: int) -> Fraction:
    """Bound |c - c'|_p^p, where c and c' are the columns of any two rows (R1).

    Both rows of data are inside the domain. Their columns are columns of the strategy matrix,
    divided by the noise scales.

    Args:
        plan: the plan.
        power: p, 1 or 2.

    Returns:
        An exact fraction. For each set of attributes in which the two rows may agree, the bounds of
        all groups of forms are added up (R2, R3). The result is the largest of these sums. R6
        states where it is attained.

    >>> block = Block((Factor(("age",), Prefix(4)),), Fraction(1))
    >>> domain = Domain(age=["a", "b", "c", "d"])
    >>> plan = Measurements(
    ...     domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,)
    ... )
    >>> replaced_row_bound(plan, 1)
    Fraction(3, 1)
    """
    forms, unit = _summed_forms(plan, plan.domain.names, power)
    apart = {other_factors: _norm_and_distance(other_factors, power) for other_factors, *_ in forms}
    kinds = _attribute_classes(plan, forms, apart)
    distance = np.zeros(1, dtype=object)  # Python's integers throughout, which cannot wrap around
    for form_key, summed in forms.items():
        other_factors, measure, _, ends = form_key
        norm, most = apart[other_factors]
        if kinds is None:
            always = summed.get(frozenset(), 0)
            whole = sum(summed.values())
            least = always + sum(min(share, 0) for cells, share in summed.items() if cells)
            # R2
            far = np.array(
                [max(2 * norm * (whole - least) + max(least, 0) * most, whole * most)], dtype=object
            )
        else:
            agree = _bounds_by_agreement(summed, kinds)
            whole = int(agree[-1])
            far = 2 * norm * (whole - agree) + np.maximum(agree, 0) * most
        if measure is not None:  # R3
            worth = _largest_amount(plan, form_key) ** power
            low = min(plan.domain.measure(measure).low_units, 0)
            beyond = (
                norm
                * whole
                * (2 * worth if ends else (_largest_amount(plan, form_key) - low) ** power)
            )
            far = np.maximum(far * worth, np.array([beyond], dtype=object))
        distance = distance + far
    return Fraction(int(distance.max()), unit)


def _attribute_classes(
    plan: Measurements,
    forms: Mapping[_FormKey, Mapping[frozenset[str], int]],
    apart: Mapping[frozenset[Factor], tuple[int, int]],
) -> dict[str, object] | None:
    """Assign each attribute to a class for merging attribute sets (R4), or None.

    Two sets of attributes are merged if they have the same number of attributes of each kind. Kinds
    are names, numbers of cells or bit lengths of these numbers. The first of these three that
    leaves few enough sets is used. The result is None in two cases: the sets are not needed,
    because rows that agree in no attribute are farthest apart; or all three kinds leave too many
    sets.
    """
    sizes = {
        name: plan.domain.cells(name)
        for name in sorted(
            {name for summed in forms.values() for cells in summed for name in cells}
        )
    }
    if all(2 * norm >= most for norm, most in apart.values()) and all(
        u >= 0 for summed in forms.values() for cells, u in summed.items() if cells
    ):
        return None  # rows that agree in no attribute are farthest apart
    for kinds in (
        tuple(sizes),
        tuple(sizes.values()),
        tuple(size.bit_length() for size in sizes.values()),
    ):
        if len(forms) * math.prod(kinds.count(kind) + 1 for kind in {*kinds}) <= _MOST_SETS:
            return dict(zip(sizes, kinds, strict=True))
    return None


def _bounds_by_agreement(
    summed: Mapping[frozenset[str], int], kinds: Mapping[str, object]
) -> npt.NDArray[np.object_]:
    """Bound summed forms, by the attributes in which two rows agree (R4).

    There is one bound for each combination of numbers of attributes of each kind; the bound for all
    attributes comes last.
    """
    counts = Counter(kinds.values())
    axis_of = {kind: axis for axis, kind in enumerate(counts)}
    shares_by_number: dict[tuple[int, ...], list[int]] = {}
    for cells, share in summed.items():
        number = [0] * len(counts)
        for name in cells:
            number[axis_of[kinds[name]]] += 1
        shares_by_number.setdefault(tuple(number), []).append(share)
    table = np.zeros([count + 1 for count in counts.values()], dtype=object)
    for numbers, shares in shares_by_number.items():
        table[numbers] = (
            max(shares)
            if len(shares) == math.prod(map(math.comb, counts.values(), numbers))
            else max(0, *shares)
        )
    for axis, count in enumerate(counts.values()):
        pascal = np.array(
            [[math.comb(most, number) for number in range(count + 1)] for most in range(count + 1)],
            dtype=object,
        )
        table = np.moveaxis(np.tensordot(pascal, table, (1, axis)), 0, axis)
    return np.asarray(table.reshape(-1))


@lru_cache(maxsize=256)
def _norm_and_distance(factors: frozenset[Factor], power: int) -> tuple[int, int]:
    """Return bounds on the norm and the distance of a product's columns (R5).

    The first bound is on the norm of a column of a product of factors. The second bound is on the
    distance of two of its columns.
    """
    parts = [_column_bounds(factor, power) for factor in factors]
    norm = math.prod(top for top, *_ in parts)
    if len(parts) == 1:
        return norm, parts[0][2]
    return norm, 2 * (
        norm - min(map(math.prod, product(*((top, least) for top, least, _ in parts))))
    )


def _column_bounds(factor: Factor, power: int) -> tuple[int, int, int]:
    """Return bounds on norm, common part and distance of columns (R5).

    Three numbers are returned: the largest norm, a lower bound on the common part of two columns,
    and a bound on the distance of two columns.
    """
    operator = factor.operator
    weights = factor.weights
    while isinstance(operator, (Coarse, Ordered)):
        operator = operator.operator  # of the same columns
    size = operator.size
    norms = column_sums(operator, weights**power, power)
    most = largest_entry(operator)
    if size <= _MOST_CELLS and operator.rows * size <= _MOST_ENTRIES and norms.max() < _EXACT_FLOAT:
        matrix = dense(operator)
        scaled = matrix * weights[:, None]
        several = scaled[np.count_nonzero(matrix, axis=1) > 1]
        common = None
        if power == 2 or (most <= 1 and non_negative(operator)):
            common = (
                (scaled if power == 2 else matrix).T.astype(np.float64) @ scaled.astype(np.float64)
            ).astype(np.int64)
        elif len(several) * size**2 <= _MOST_COMPARED:
            both = np.abs(several).sum(axis=0)
            common = np.array(
                [
                    (norm + both - np.abs(several - column[:, None]).sum(axis=0)) // 2
                    for norm, column in zip(both, several.T, strict=True)
                ]
            )
            np.fill_diagonal(common, norms)
        if common is not None:
            return (
                int(norms.max()),
                int(common.min()),
                int((norms[:, None] + norms - 2 * common).max()),
            )
    # Rows with the same entry for every cell.
    everywhere = apply(operator, np.ones(size, dtype=np.int64)) == most * size
    top = int(norms.max())
    shared = int((weights[everywhere] ** power).sum()) * most**power
    if power == 1 or non_negative(operator):
        least = shared
    else:
        least = 2 * shared - top
    return top, least, 2 * (top - least)
