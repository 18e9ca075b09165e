"""How far apart two rows can be in everything a plan measures: an upper bound in integers, attained but for what is said. Trusted.

The proof is PROOFS-replace.md beside this file; the labels (R1 ...) refer to it. In short: over the noise, the distance of two columns
of a product is a sum of four products over its axes, so it depends on each axis only through a few whole numbers a factor, its *shares*.
Of all pairs of cells along an axis only those shares are kept that no others are worse than; then all combinations are tried.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations_with_replacement, product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leastnoise._check.arrays import Array
from leastnoise._linop import Dense, Identity, Total
from leastnoise._measurements._measurements import Block, Factor, Measurements
from leastnoise._measurements._pairs import MOST_CELLS, bounds, ladder, shared, unwrapped

_MOST_COMBINED = 2**18  # combinations of shares that are tried
_MOST_WORK = 2**26  # times the number of products
_MOST_LISTED = 2**14  # distinct shares of an axis that are compared with each other
_MOST_OBJECTS = 2**18  # pairs that are listed in Python's integers
_LIMITS = (1024, 256, 64, 16, 4, 1)  # shares kept along an axis, tried in this order
_MOST_PARTS = 12
_EXACT_BITS = 512
_GUARD_BITS = 128
_EXACT_WORK = 2**20
_ALIKE = Fraction(1023, 1024)  # weights within this ratio count as the larger one where attributes are compared

_Part: TypeAlias = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class _Term:
    """A product of blocks: its weight, the sum of 1 / scale^power, and on which axes it has which part."""

    weight: Fraction
    parts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Attributes that are looked at together: units and shares of the parts of blocks along them.

    Shares have shape (shares, parts, 4): norm of the first column, of the second, twice their common part of the same sign and twice that
    of different signs (power 1), or twice their inner product and 0 (power 2); all times the part's unit. They are tuples, because they
    are kept for other plans.
    """

    units: tuple[int, ...]
    shares: tuple[Any, ...]


def largest_distance(plan: Measurements, power: int) -> Fraction | None:
    """At least the largest |c - c'|_p^p for the columns c, c' of two rows of any cells and values, over the noise scales.

    Args:
        plan: the plan.
        power: p, 1 or 2.

    Returns:
        An exact fraction, or a little more; None if too much is measured along one axis to try anything.

    >>> block = Block((Factor(("age",), Prefix(4)),), Fraction(1))
    >>> domain = Domain(age=["a", "b", "c", "d"])
    >>> plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=(block,))
    >>> largest_distance(plan, 1)
    Fraction(3, 1)
    """
    terms, parts, sizes = _parted(plan, power)
    if max(map(len, parts), default=0) > _MOST_PARTS:
        return None
    signed = [any(bounds(factor, power)[2] < 0 for part in own for factor in part) for own in parts]
    ordered = [sum(signed) == here for here in signed]  # whether all other axes are without signs (R4)
    most = min(_MOST_COMBINED, _MOST_WORK // len(terms))
    axes: list[_Axis] = []
    for limit in _LIMITS:
        axes = [
            _axis(tuple(own), size, power, limit, ordered=first, alone=len(parts) == 1)
            for own, size, first in zip(parts, sizes, ordered, strict=True)
        ]
        if math.prod(len(axis.shares) for axis in axes) <= most:
            return _largest(terms, axes, [[place] for place in range(len(axes))])
    return _largest(*_merged(terms, axes, most))


def _parted(plan: Measurements, power: int) -> tuple[list[_Term], list[list[_Part]], list[tuple[tuple[str, int], ...]]]:
    """Blocks as products over axes: attributes that a factor takes together, or values and their limits, are one axis (R1)."""
    factors = [_simple(plan, block) for block in plan.blocks]
    names = [factor.attributes for factor in dict.fromkeys(factor for own in factors for factor in own)]
    groups: dict[str, tuple[str, ...]] = {}
    for together in names:
        merged = tuple(dict.fromkeys(name for one in together for name in groups.get(one, (one,))))
        groups.update(dict.fromkeys(merged, merged))
    places = {group: place for place, group in enumerate(dict.fromkeys(groups.values()))}
    parts: list[dict[_Part, int]] = [{} for _ in places]
    terms: dict[tuple[tuple[int, int], ...], Fraction] = {}
    for block, own in zip(plan.blocks, factors, strict=True):
        along: dict[int, _Part] = {}
        for factor in own:
            place = places[groups[factor.attributes[0]]]
            along[place] = (*along.get(place, ()), factor)
        key = tuple(sorted((place, parts[place].setdefault(part, len(parts[place]))) for place, part in along.items()))
        terms[key] = terms.get(key, Fraction(0)) + 1 / block.scale**power
    sizes = [tuple((name, plan.domain.kind(name).size if name in plan.domain.names else 2) for name in group) for group in places]
    return [_Term(weight, dict(key)) for key, weight in terms.items()], [list(own) for own in parts], sizes


def _simple(plan: Measurements, block: Block) -> list[Factor]:
    """A block's factors, those on several attributes as products where they are, and one for the value that a row adds."""
    found: list[Factor] = []
    for factor in block.factors:
        if isinstance(factor.operator, (Identity, Total)) and factor.row_weights is None:
            if isinstance(factor.operator, Identity):
                found += [Factor((name,), Identity(plan.domain.kind(name).size)) for name in factor.attributes]
        else:
            found.append(factor)
    if block.measure is None:
        return found
    measure = plan.domain.measure(block.measure)
    low, high = min(measure.low_units, 0), max(measure.high_units, 0)
    # No attribute and no measure has a control character in its name, so an axis of values is never taken for another one.
    if block.ends:  # an axis of its own, of the value's two ends
        apart = measure.high_units - measure.low_units
        return [*found, Factor((f"\0{block.measure}\0ends",), Dense(np.array([[0, apart], [apart, 0]])))]
    if block.limits is None:
        return [*found, Factor((f"\0{block.measure}",), Dense(np.array([[low, high]])))]
    # Every set of limits has values of its own: that the rows choose them apart only adds to the distance.
    cut = [number for limit in block.limits.values.tolist() for number in (low, min(high, limit))]
    names = () if block.limits.attribute is None else (block.limits.attribute,)
    return [*found, Factor((*names, f"\0{block.measure}\0{block.limits.key()}"), Dense(np.array([cut])))]


@lru_cache(maxsize=64)
def _axis(parts: tuple[_Part, ...], sizes: tuple[tuple[str, int], ...], power: int, limit: int, *, ordered: bool, alone: bool) -> _Axis:
    """The shares along an axis: all that matter, or, beyond the limit, fewer that are at least as far apart (R4, R5)."""
    if len(parts) == 1 and len(parts[0]) == 1:
        single = unwrapped(parts[0][0])
        parts, sizes = ((single,),), (("", single.operator.size),)
    listed = _listed(parts, dict(sizes), power)
    if listed is not None:
        units, found = listed
        if alone and len(parts) == 1:
            found = found[[int((found[:, 0, 0] + found[:, 0, 1] - found[:, 0, 2]).argmax())]]
        elif ordered and len(parts) == 1 and len(found) > _LIMITS[0] and not found[:, 0, 3].any():
            found = _thinned(found)
        for bits in (None, 8, 6) if ordered else (None,):
            some = _distinct(found if bits is None else _rounded(found, bits))
            kept = None if len(some) > _MOST_LISTED else _worst(some, limit) if ordered else some
            if kept is not None and len(kept) <= limit:
                return _Axis(units, tuple(tuple(map(tuple, share)) for share in kept.tolist()))
        tops, least, most = found[:, :, :2].max(axis=(0, 2)), found[:, :, 2:].min(axis=0), found[:, :, 2].max(axis=0)
        return _Axis(units, _box(tops.tolist(), least.tolist(), most.tolist(), ordered=ordered))
    known = [[bounds(factor, power) for factor in part] for part in parts]
    units = tuple(math.prod(unit for unit, _, _ in own) for own in known)
    tops = [math.prod(top for _, top, _ in own) for own in known]
    signs = [any(low < 0 for *_, low in own) for own in known]
    least = [[-2 * top if sign else 0, 0] for top, sign in zip(tops, signs, strict=True)]
    return _Axis(units, _box(tops, least, [2 * top for top in tops], ordered=ordered))


def _box(tops: Sequence[int], least: Sequence[Sequence[int]], most: Sequence[int], *, ordered: bool) -> tuple[Any, ...]:
    """Shares at least as far apart as all that lie between the given ends (R5)."""
    if ordered:
        return (tuple((top, top, *low) for top, low in zip(tops, least, strict=True)),)
    ends = [((top, top, low[0], 0), (top, top, high, 0)) for top, low, high in zip(tops, least, most, strict=True)]
    return tuple(product(*ends))


def _listed(parts: Sequence[_Part], sizes: Mapping[str, int], power: int) -> tuple[tuple[int, ...], Array] | None:
    """The units, and the shares of all pairs of cells, if they can be listed."""
    factors = tuple(factor for part in parts for factor in part)
    if len({factor.attributes for factor in factors}) == 1 and all(len(part) == 1 for part in parts):
        steps = ladder(factors)
        if steps is not None:
            known = [table for factor in factors if (table := shared(factor, power, steps)) is not None]
            return tuple(table.unit for table in known), np.stack([table.shares for table in known], axis=1)
    cells = math.prod(sizes.values())
    if cells > MOST_CELLS:
        return None
    coordinates = dict(zip(sizes, np.unravel_index(np.arange(cells), tuple(sizes.values())), strict=True))
    units, found = [], []
    for part in parts:
        tables = [table for factor in part if (table := shared(factor, power, None)) is not None]
        if len(tables) < len(part):
            return None
        together: Any = None
        for factor, table in zip(part, tables, strict=True):
            names = factor.attributes or ("",)
            along = np.ravel_multi_index([coordinates[name] for name in names], [sizes[name] for name in names])
            lifted = table.shares.reshape(factor.operator.size, factor.operator.size, 4)[np.ix_(along, along)]
            together = lifted if together is None else _both(together, lifted)
        units.append(int(math.prod(table.unit for table in tables)))
        found.append(together.reshape(-1, 4))
    if any(one.dtype == object for one in found) and cells**2 > _MOST_OBJECTS:
        return None
    return tuple(units), np.stack(found, axis=1)


def _both(left: Array, right: Array) -> Array:
    """Shares of a product of two factors (R2)."""
    left, right = left.astype(object), right.astype(object)
    same = left[..., 2] * right[..., 2] + left[..., 3] * right[..., 3]
    other = left[..., 2] * right[..., 3] + left[..., 3] * right[..., 2]
    return np.stack([left[..., 0] * right[..., 0], left[..., 1] * right[..., 1], same // 2, other // 2], axis=-1)


def _thinned(found: Array) -> Array:
    """Without pairs that another pair of the same first or second cell is at least as bad as; for one part, in the order of cells."""
    size = math.isqrt(len(found))
    same, norms = found[:, 0, 2].reshape(size, size), found[:size, 0, 1]
    order = np.argsort(-norms, kind="stable")
    same = same[np.ix_(order, order)]
    never = same.max() + 1
    kept = np.ones_like(same, dtype=np.bool_)
    kept[:, 1:] = same[:, 1:] < np.minimum.accumulate(same, axis=1)[:, :-1]
    same = np.where(kept, same, never)
    kept[1:] &= same[1:] < np.minimum.accumulate(same, axis=0)[:-1]
    return found.reshape(size, size, 1, 4)[np.ix_(order, order)][kept]


def _distinct(found: Array) -> Array:
    key, kinds = np.zeros(len(found), dtype=np.int64), 1
    for column in found.reshape(len(found), -1).T:
        above = column - column.min()
        step = int(np.gcd.reduce(above)) or 1
        span = int(above.max()) // step + 1
        if span > _MOST_LISTED:
            place = np.unique(column, return_inverse=True)[1]
            span = int(place.max()) + 1
        else:
            place = (above // step).astype(np.int64)
        if kinds * span >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            kinds = int(key.max()) + 1
        key, kinds = key * span + place, kinds * span
    return found[np.unique(key, return_index=True)[1]]


def _rounded(found: Array, bits: int) -> Array:
    """Norms rounded up and common parts rounded down, to so many bits of the largest; common parts stay even numbers."""
    answer = found.copy()
    for part, column in np.ndindex(*found.shape[1:]):
        step = 2 * max(1, int(np.abs(found[:, part, column]).max()) >> (bits + 1))
        own = answer[:, part, column]
        answer[:, part, column] = -(-own // step) * step if column < 2 else own // step * step
    return answer


def _worst(found: Array, limit: int) -> Array | None:
    """Those of the shares that no other is at least as bad as in every number; None if they are more than the limit."""
    gains = (found * np.array([1, 1, -1, -1])).reshape(len(found), -1)
    left = np.argsort(-gains.astype(np.float64).sum(axis=1), kind="stable")  # the order decides only how soon others are dropped
    kept: list[int] = []
    while len(left):
        if len(kept) == limit:
            return None
        kept.append(int(left[0]))
        left = left[~(gains[left] <= gains[left[0]]).all(axis=1).astype(np.bool_)]
    return found[kept]


def _merged(terms: Sequence[_Term], axes: Sequence[_Axis], most: int) -> tuple[list[_Term], Sequence[_Axis], list[list[int]]]:
    """Axes that can change places, together (R6); those of least weight left out where combinations are still too many (R7)."""
    alike: dict[Fraction, Fraction] = {}
    leader = Fraction(0)
    for weight in sorted({term.weight for term in terms}, reverse=True):
        leader = leader if weight >= leader * _ALIKE and leader else weight
        alike[weight] = leader
    raised = [_Term(alike[term.weight], term.parts) for term in terms]
    table = {frozenset(term.parts.items()): term.weight for term in raised}

    def interchangeable(one: int, two: int) -> bool:
        if axes[one] != axes[two]:
            return False
        turn = {one: two, two: one}
        return all(table.get(frozenset((turn.get(p, p), part) for p, part in key)) == weight for key, weight in table.items())

    orbits: list[list[int]] = []
    for place in range(len(axes)):
        home = next((orbit for orbit in orbits if interchangeable(orbit[0], place)), None)
        orbits.append([place]) if home is None else home.append(place)
    orbits.sort(key=lambda orbit: sum(term.weight for term in raised if set(orbit) & set(term.parts)))
    while math.prod(math.comb(len(axes[orbit[0]].shares) + len(orbit) - 1, len(orbit)) for orbit in orbits) > most:
        orbits.pop(0)
    return raised, axes, orbits


def _largest(terms: Sequence[_Term], axes: Sequence[_Axis], orbits: Sequence[Sequence[int]]) -> Fraction:
    """The largest distance over all combinations of shares; axes in no orbit are chosen by every product for itself (R6, R7)."""
    choices = _choices([[len(axes[place].shares) for place in orbit] for orbit in orbits], [place for orbit in orbits for place in orbit])
    count = max((len(own) for own in choices.values()), default=1)
    unit = _unit(terms, axes)
    summed: dict[tuple[int, ...], Any] = {}
    for term in terms:
        places = tuple(term.parts)
        whole = math.prod(axes[place].units[part] for place, part in term.parts.items())
        ratio = term.weight * unit / whole
        distances = -(-_distances(term, axes) * ratio.numerator // ratio.denominator)  # rounded up
        free = tuple(axis for axis, place in enumerate(places) if place not in choices)
        kept = tuple(place for place in places if place in choices)
        summed[kept] = summed.get(kept, 0) + (distances.max(axis=free) if free else distances)
    shift = 0
    if count * len(summed) > _EXACT_WORK:
        shift = max(0, sum(int(np.max(own)) for own in summed.values()).bit_length() - 62)
    total = np.zeros(count, dtype=np.int64 if shift or count * len(summed) > _EXACT_WORK else object)
    for kept, own in summed.items():
        at = np.zeros(count, dtype=np.int64)
        for place in kept:
            at = at * len(axes[place].shares) + choices[place]
        flat = -(-np.asarray(own, dtype=object).reshape(-1) >> shift)
        total += flat.astype(total.dtype)[at]
    return Fraction(int(total.max()) << shift, unit)


def _choices(orbits: Sequence[Sequence[int]], places: Iterable[int]) -> dict[int, npt.NDArray[np.intp]]:
    """For every axis the share it has in each combination; within an orbit only combinations in ascending order (R6)."""
    if not orbits:
        return {}
    listed = [np.array(list(combinations_with_replacement(range(sizes[0]), len(sizes))), dtype=np.intp) for sizes in orbits]
    grids = np.indices([len(own) for own in listed], dtype=np.intp).reshape(len(listed), -1)
    columns = [own[grid, place] for own, grid in zip(listed, grids, strict=True) for place in range(own.shape[1])]
    return dict(zip(places, columns, strict=True))


def _distances(term: _Term, axes: Sequence[_Axis]) -> Array:
    """|c - c'| of one product for all combinations of shares along its axes, times its units (R2)."""
    own = [np.array([share[part] for share in axes[place].shares], dtype=object) for place, part in term.parts.items()]
    common = [((one[:, 2] + one[:, 3]) // 2, (one[:, 2] - one[:, 3]) // 2) for one in own]
    columns = ([one[:, 0] for one in own], [one[:, 1] for one in own], [one[0] for one in common], [one[1] for one in common])
    first, second, both, signed = (reduce(np.multiply.outer, column, np.array(1, dtype=object)) for column in columns)
    return np.asarray(first + second - both - signed, dtype=object)


def _unit(terms: Sequence[_Term], axes: Sequence[_Axis]) -> int:
    """A common denominator of all products' distances if it is short, else a power of two that is fine beside each of them."""
    ratios = [term.weight / math.prod(axes[place].units[part] for place, part in term.parts.items()) for term in terms]
    unit = 1
    for ratio in ratios:
        unit = math.lcm(unit, ratio.denominator)
        if unit.bit_length() > _EXACT_BITS:
            return 1 << (_GUARD_BITS + max(0, *(one.denominator.bit_length() - one.numerator.bit_length() for one in ratios)))
    return unit
