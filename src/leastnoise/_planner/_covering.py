"""Which marginals to measure with a pure budget: covering designs.

A few tables larger than those asked, which between them contain every asked one, beat anything inside the workload's downward closure by
far: the budget is split over fewer tables. The problem is not convex, and a weight of 0 stays 0 under every descent, so families of tables
are tried, and the best one is weighted:

1. starts: the workload's own tables, pairs of them merged, greedily chosen cuboids, and block designs of finite geometry
   with attributes laid on their points, with and without the most asked attribute added to every block;
2. the best weights of the best start.

Nothing here is of size N or 2^d, and nothing is searched (docs/decisions/planning.md).

A strategy along an attribute acts like an attribute of kappa cells, as the total of marginals has the variance of as many cells as they
have; kappa is rounded to a whole number for the design alone, and the weights are exact afterwards.

Source: the idea of strategy C of Ding et al. (SIGMOD 2011) and of PriView (SIGMOD 2014).

Block designs: families of blocks of points in which every pair or triple of points meets, the best known ones from finite geometry.
Attributes are laid on the points: several on one point when there are more attributes than points, none on some when there are fewer.

Cuboids: the largest cell variance is kept small (problem BMAX of Ding et al.). Every asked marginal is answered by adding up cells of one
measured marginal that contains it. With s measured marginals, each of noise variance s^2 (pure) or s (Gaussian) in units of the noise of a
single one, the variance is that times the number of cells added up. This is strategy C of Cormode et al.; with budgets by cube roots
instead of equal ones it is C+. The threshold runs over its finitely many values instead of a bisection.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leastnoise._check import refuse
from leastnoise._check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._families import NotApplicable
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._residual_algebra import (
    AttributeSet,
    Closure,
    Errors,
    attribute_sets,
    diagonal_errors,
    dimensions,
    improve_weights,
    incidence,
    least_error,
    locate,
    table_sizes,
)
from leastnoise._planner._strategy import Planner, Strategy, Task, block_norm, tables_of_cells
from leastnoise._planner._tables import Names, factor_along, residual_programme, weighted_strategy
from leastnoise._workload import Workload

Blocks = tuple[tuple[int, ...], ...]
# Field size -> (prime, degree, coefficients of x^degree as a combination of 1, x, ...).
_FIELDS = {
    2: (2, 1, ()),
    3: (3, 1, ()),
    4: (2, 2, (1, 1)),
    5: (5, 1, ()),
    7: (7, 1, ()),
    8: (2, 3, (1, 1, 0)),
    9: (3, 2, (1, 2)),
    11: (11, 1, ()),
}
FIELD_SIZES = tuple(_FIELDS)
_MOST_PAIRS = 1 << 25  # candidates times asked marginals
_MOST_TABLES = 400_000
_LARGE = 10_000  # asked tables beyond which there are fewer starts, and those of the asked tables stay in their order
_MOST_MERGED = 1200  # asked tables up to which pairs of them are merged greedily
_MOST_CHOSEN = 1 << 25  # asked tables times candidates up to which cuboids are chosen greedily among all
_KEY = 1 << 10  # tables up to which two starts are told apart by their tables, not by their names
_STEPS = 15  # of the weights of a start, before starts are compared
_SEED = 0  # of how attributes are laid on the points of a design


@cache
def _field(size: int) -> tuple[IntArray, IntArray]:
    """Build the tables of addition and multiplication of a finite field; element 0 is zero."""
    prime, degree, reduction = _FIELDS[size]
    elements = list(itertools.product(range(prime), repeat=degree))
    number = {element: i for i, element in enumerate(elements)}

    def product(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        power = [0] * (2 * degree - 1)
        for (i, a), (j, b) in itertools.product(enumerate(x), enumerate(y)):
            power[i + j] += a * b
        for k in range(2 * degree - 2, degree - 1, -1):
            for i in range(degree):
                power[k - degree + i] += power[k] * reduction[i]
        return tuple(v % prime for v in power[:degree])

    add = np.array([[number[tuple((a + b) % prime for a, b in zip(x, y, strict=True))] for y in elements] for x in elements])
    multiply = np.array([[number[product(x, y)] for y in elements] for x in elements])
    return add, multiply


def _points(size: int, dimension: int) -> IntArray:
    """List one vector for each point of a projective space: its first non-zero entry is the field's one."""
    _, multiply = _field(size)
    one = int(np.flatnonzero((multiply == np.arange(size)).all(axis=1))[0])
    vectors = np.array(list(itertools.product(range(size), repeat=dimension + 1)))[1:]
    leading = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
    return vectors[leading == one]


def _planes(size: int, points: IntArray, dimension: int) -> Blocks:
    """Cut a set of projective points with all hyperplanes; keep the cuts with two points or more."""
    add, multiply = _field(size)
    total = multiply[_points(size, dimension)[:, None, 0], points[None, :, 0]]
    for i in range(1, dimension + 1):
        total = add[total, multiply[_points(size, dimension)[:, None, i], points[None, :, i]]]
    return tuple(block for row in total == 0 if len(block := tuple(np.flatnonzero(row).tolist())) > 1)


@cache
def projective_plane(size: int) -> tuple[int, Blocks]:
    """Return q^2 + q + 1 points and as many lines of q + 1 points; two points share one line."""
    points = _points(size, 2)
    return len(points), _planes(size, points, 2)


@cache
def affine_plane(size: int) -> tuple[int, Blocks]:
    """Return q^2 points and q^2 + q lines of q points; two points share one line."""
    points = _points(size, 2)
    points = points[points[:, 0] != 0]
    return len(points), _planes(size, points, 2)


@cache
def inversive_plane(size: int) -> tuple[int, Blocks]:
    """Return q^2 + 1 points and q^3 + q circles of q + 1 points; three points share one circle."""
    # The points are the elliptic quadric x0 x1 + f(x2, x3) = 0 with f irreducible, the circles its plane sections.
    add, multiply = _field(size)
    space = _points(size, 3)
    first, second = space[:, 2], space[:, 3]
    for b, c in itertools.product(range(size), range(1, size)):
        form = add[add[multiply[first, first], multiply[b, multiply[first, second]]], multiply[c, multiply[second, second]]]
        if bool(np.all(form[(first != 0) | (second != 0)] != 0)):
            on = add[multiply[space[:, 0], space[:, 1]], form] == 0
            return int(on.sum()), _planes(size, space[on], 3)
    raise AssertionError("every finite field has an irreducible quadratic form")


@cache
def parallel_planes(dimension: int) -> tuple[int, Blocks]:
    """Return the 2^m bit strings and all quadruples that add up to zero; three points share one quadruple."""
    count = 1 << dimension
    return count, tuple((a, b, c, a ^ b ^ c) for a, b, c in itertools.combinations(range(count), 3) if a ^ b ^ c > c)


# For a strength its designs: name, how it is made of what number, and how many points it has.
_DESIGNS = {
    2: [
        design
        for q in FIELD_SIZES
        for design in (
            (f"affine plane of order {q}", affine_plane, q, q**2),
            (f"projective plane of order {q}", projective_plane, q, q**2 + q + 1),
        )
    ],
    3: [
        *((f"inversive plane of order {q}", inversive_plane, q, q**2 + 1) for q in FIELD_SIZES[:-1]),
        *((f"parallel planes of dimension {m}", parallel_planes, m, 1 << m) for m in (3, 4, 5, 6)),
    ],
}


def designs(strength: int, attributes: int) -> Iterator[tuple[str, int, Blocks]]:
    """List covering designs for a number of attributes: name, points, blocks; every `strength` points lie together in a block."""
    for groups in range(strength, min(attributes, strength + 8) + 1):
        yield f"{strength} of {groups} groups", groups, tuple(itertools.combinations(range(groups), strength))
    for name, make, number, points in _DESIGNS.get(strength, ()):
        if points <= 2.5 * attributes + 2:
            yield name, *make(number)


def zero_sum_blocks(count: int, size: int) -> IntArray:
    """Return all blocks of `size` points out of 0 .. count - 1 whose sum is a multiple of count."""
    # All but a few of the sets with one point less lie in exactly one block (those whose missing point is among them lie in none): close to
    # a Steiner system for every number of points.
    smaller = np.array(list(itertools.combinations(range(count), size - 1)), dtype=np.int64).reshape(-1, size - 1)
    last = -smaller.sum(axis=1) % count
    keep = last > smaller[:, -1]
    return np.column_stack([smaller[keep], last[keep]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cover:
    """Marginals to measure with equal budgets, and which of them answers what."""

    tables: tuple[AttributeSet, ...]  # the measured marginals
    source: IntArray  # for each asked marginal the position of the measured one it is added up from
    # the largest cell variance at unit noise and privacy cost 1: times 2 / epsilon^2 for pure budgets, 1 / mu^2 for Gaussian
    largest: float


def greedy_cover(shape: Sequence[float], targets: Sequence[AttributeSet], *, norm: int = 1) -> Cover:
    """Choose the marginals to measure so that the largest cell variance of the asked ones is small."""
    # For each number of cells that may be added up, marginals are taken greedily, the one that answers most of what is left first, until
    # all is answered; the threshold with the least variance wins. Within (ln m + 1)^2 of the best choice for m asked marginals.
    asked = list(targets)
    options, power = _candidates(asked), 2 if norm == 1 else 1
    added = _cells_added(shape, options, asked)
    least, best = math.inf, list[int]()
    for threshold in np.unique(added[np.isfinite(added)]).tolist():  # the least answers all: every asked marginal is a candidate
        if not threshold < least:
            break
        chosen = _greedy(added <= threshold)
        largest = float(len(chosen)) ** power * float(added[:, chosen].min(axis=1).max())
        if largest < least:
            least, best = largest, chosen
    return Cover(tables=tuple(options[i] for i in best), source=added[:, best].argmin(axis=1), largest=least)


def cover_errors(shape: Sequence[float], targets: Mapping[AttributeSet, float], cover: Cover) -> FloatArray:
    """Return for each measured marginal what one unit of its noise variance adds to the total squared error."""
    # With equal budgets (strategy C) the total is s^2 (pure) or s (Gaussian) times their sum; `grouped_budgets` gives those of C+.
    weights = np.array([float(value) for value in targets.values()])
    result: FloatArray = table_sizes(shape, cover.tables) * np.bincount(cover.source, weights=weights, minlength=len(cover.tables))
    return result


def _candidates(asked: list[AttributeSet]) -> list[AttributeSet]:
    used = sorted({i for attributes in asked for i in attributes})
    if len(asked) << len(used) <= _MOST_PAIRS:
        return [s for k in range(len(used) + 1) for s in itertools.combinations(used, k)]
    tables = {tuple(used), *asked}
    if len(asked) ** 3 <= 2 * _MOST_PAIRS:
        tables |= {tuple(sorted({*a, *b})) for a, b in itertools.combinations(asked, 2)}
    return sorted(tables, key=lambda s: (len(s), s))


def _cells_added(shape: Sequence[float], options: list[AttributeSet], asked: list[AttributeSet]) -> NDArray[np.float32]:
    """How many cells of each candidate make one cell of each asked marginal; infinite where the candidate does not contain it."""
    # One row an asked marginal, one column a candidate.
    if not len(options) * len(asked) <= _MOST_PAIRS:
        advice = "Choose the strategy covering."
        raise refuse("candidates", f"{len(options)} for {len(asked)} asked marginals", f"at most {_MOST_PAIRS} pairs of the two", advice)
    outside = np.ones((len(options), len(shape)), dtype=np.float32)
    for row, attributes in zip(outside, options, strict=True):
        row[list(attributes)] = 0
    member = np.zeros((len(shape), len(asked)), dtype=np.float32)
    for column, attributes in enumerate(asked):
        member[list(attributes), column] = 1
    ratio = np.rint(table_sizes(shape, options) / table_sizes(shape, asked)[:, None]).astype(np.float32)
    ratio[member.T @ outside.T > 0] = np.inf
    return ratio


def _greedy(covers: BoolArray) -> list[int]:
    """Take the candidate that covers most of what is left, the first of equals, until nothing more can be covered."""
    left = np.ones(len(covers), dtype=bool)
    counts = np.count_nonzero(covers, axis=0)
    chosen: list[int] = []
    while counts.any():
        at = int(counts.argmax())
        new = covers[:, at] & left
        chosen.append(at)
        left &= ~new
        counts = counts - np.count_nonzero(covers[new], axis=0)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Marginals to measure, their weights, and what they achieve."""

    tables: tuple[AttributeSet, ...]  # measured attribute sets, largest weight first
    theta: FloatArray  # weights with sum 1: at budget epsilon a cell of table S gets Laplace noise of scale 1 / (epsilon theta_S)
    error: float  # total squared error at unit noise: multiply by 2 / epsilon^2
    origin: str  # the start that led here


def covering_design(closure: Closure, coefficient: FloatArray) -> Design:
    """The best start of all, with the marginals and weights of the least total squared error under a pure budget that follow from it."""
    if not bool(np.any(coefficient > 0)):
        raise refuse("coefficient", 0.0, "above 0 for at least one attribute set", "Ask for something.")
    asked = [sets for sets, value in zip(attribute_sets(closure), (coefficient > 0).tolist(), strict=True) if value]
    inside = np.zeros(closure.count, dtype=bool)
    for drop in range(len(closure.blocks)):
        inside[locate(closure, [names[:drop] + names[drop + 1 :] for names in asked if len(names) > drop])] = True
    needed = [names for names, covered in zip(asked, inside[locate(closure, asked)].tolist(), strict=True) if not covered]
    best: tuple[float, _Start, Errors, FloatArray] | None = None
    for start in sorted(_proposed(closure, coefficient, asked, needed), key=lambda start: start.bound):
        if best is not None and start.bound >= best[0]:
            continue  # what its bound shows to be worse is not weighted at all
        errors, count = diagonal_errors(incidence(closure, start.tables), coefficient), len(start.tables)
        theta = improve_weights(np.full(count, 1 / count), errors, np.ones(count), 1, _STEPS)
        error = errors(theta**2)[0]
        if best is None or error < best[0]:
            best = error, start, errors, theta
    if best is None:
        raise refuse("tables that are weighed together", len(needed), f"at most {_MOST_TABLES}", "Ask for fewer tables.")
    _, start, errors, theta = best
    weights = least_error(errors, np.ones(len(theta)), theta, norm=1, steps=300)
    kept = [int(i) for i in np.argsort(-weights.theta, kind="stable") if weights.theta[i] > 0]
    return Design(tables=tuple(start.tables[i] for i in kept), theta=weights.theta[kept], error=weights.error, origin=start.origin)


class _Start(NamedTuple):
    """Tables to start from, and what no weights of them are below."""

    origin: str
    tables: list[AttributeSet]
    bound: float


def _proposed(closure: Closure, coefficient: FloatArray, asked: list[AttributeSet], needed: list[AttributeSet]) -> Iterator[_Start]:
    """The starts that are worth a closer look, each once and completed."""
    at = locate(closure, needed)
    # What only the table itself tells of an asked set has error c size / theta^2; the thetas add up to at most 1.
    each = np.cbrt(coefficient[at] * table_sizes(closure.shape, needed))
    seen: set[bytes] = set()
    most = math.inf
    for origin, proposed in _starts(closure, coefficient, asked, needed):
        if not proposed:
            continue
        # Roughly the error if everything were covered once: not worth a closer look when far above that of the asked tables.
        guess = 2 * math.log(len(proposed)) + math.log(float(table_sizes(closure.shape, proposed[:1000]).mean()))
        if origin == "asked tables":
            most = guess + math.log(8.0)
        if not guess <= most:
            continue
        given = proposed is asked or proposed is needed  # the largest of these are in no other table
        tables = proposed if given and len(asked) > _LARGE else sorted(set(proposed), key=lambda names: (-len(names), names))
        missing = np.ones(len(needed), dtype=bool)
        if not given:
            missing = ~(np.asarray(incidence(closure, tables).sum(axis=1)).ravel()[at] > 0)
            tables += [attributes for attributes, lacks in zip(needed, missing.tolist(), strict=True) if lacks]
        if not len(tables) <= _MOST_TABLES or (key := repr(tables).encode() if len(tables) < _KEY else origin.encode()) in seen:
            continue
        seen.add(key)
        yield _Start(origin, tables, float(each[missing].sum()) ** 3)


def _starts(
    closure: Closure, coefficient: FloatArray, asked: list[AttributeSet], needed: list[AttributeSet]
) -> Iterator[tuple[str, list[AttributeSet]]]:
    """Tables by all ways to find some; of several thousand asked ones by fewer."""
    count, rng = len(closure.shape), np.random.default_rng(_SEED)
    used = sorted({i for attributes in needed for i in attributes})
    yield "asked tables", needed
    yield "closure", asked
    if 1 < len(needed) <= _MOST_MERGED:
        yield "merged tables", _merged(closure, coefficient, needed)
        if len(needed) << len(used) <= _MOST_CHOSEN:
            yield "greedy cuboids", list(greedy_cover(closure.shape, needed).tables)
    if not used:
        return
    width, large, share = max(map(len, needed)), len(asked) > _LARGE, np.zeros(count)
    for block, values in zip(closure.blocks, np.split(coefficient, closure.offsets[1:-1]), strict=True):
        np.add.at(share, block, values[:, None])
    hub = int(share.argmax())
    for hubs in ((), (hub,)) if len(used) > 2 else ((),):
        others, full, suffix = [i for i in used if i not in hubs], width - len(hubs), " and a hub" if hubs else ""
        for strength in [full] if large else range(max(1, full - 1), full + 1):
            for name, points, blocks in designs(strength, len(others)):
                if len(blocks) <= _MOST_TABLES // 4:
                    for turn in range(1 if large else 3):
                        yield name + suffix, _laid(closure.shape, others, hubs, (points, blocks), rng, turn)
        for size in (full + 1, full):
            if 2 <= size <= len(others) and math.comb(len(others), size - 1) <= _MOST_TABLES:
                order = rng.permutation(len(others))
                rows = np.array(others)[order[zero_sum_blocks(len(others), size)]]
                rows = np.sort(np.column_stack([rows, np.full((len(rows), len(hubs)), hub)]), axis=1)
                yield f"zero-sum blocks of {size}{suffix}", [tuple(row) for row in rows.tolist()]


def _merged(closure: Closure, coefficient: FloatArray, needed: list[AttributeSet]) -> list[AttributeSet]:
    """Replace two tables by their union, the best pair first, while the error without recovery falls: for workloads without symmetry."""
    # With budgets by cube roots that error is (sum of e_S^(1/3))^3, e_S being what a unit of noise on S adds to the error of all it
    # answers.
    log_values = np.log(np.array(closure.shape, dtype=np.float64))
    member = np.zeros((len(needed), len(closure.shape)))
    for row, attributes in zip(member, needed, strict=True):
        row[list(attributes)] = 1
    log_size = member @ log_values
    at = locate(closure, needed)
    added = coefficient[at] * np.exp(2 * log_size) / dimensions(closure)[at]

    def gains(rows: slice) -> FloatArray:
        union = log_size[rows, None] + log_size - (member[rows] * log_values) @ member.T
        together = added[rows, None] * np.exp(union - log_size[rows, None]) + added * np.exp(union - log_size)
        result: FloatArray = np.cbrt(added[rows, None]) + np.cbrt(added) - np.cbrt(together)
        return result

    gain = gains(slice(None))
    np.fill_diagonal(gain, -np.inf)
    alive = np.ones(len(needed), dtype=bool)
    while alive.sum() > 1:
        first, second = (int(i) for i in np.unravel_index(int(gain.argmax()), gain.shape))
        if not gain[first, second] > 0:
            break
        union = log_size[first] + log_size[second] - (member[first] * log_values) @ member[second]
        added[first] = added[first] * np.exp(union - log_size[first]) + added[second] * np.exp(union - log_size[second])
        member[first] = np.maximum(member[first], member[second])
        log_size[first] = union
        alive[second] = False
        fresh = np.where(alive, gains(slice(first, first + 1))[0], -np.inf)
        fresh[first] = -np.inf
        gain[first], gain[:, first] = fresh, fresh
        gain[second], gain[:, second] = -np.inf, -np.inf
    return [tuple(np.flatnonzero(row).tolist()) for row in member[alive]]


def _laid(
    shape: Sequence[float],
    attributes: list[int],
    hubs: tuple[int, ...],
    design: tuple[int, Blocks],
    rng: np.random.Generator,
    turn: int,
) -> list[AttributeSet]:
    """Lay attributes on the points of a design: at random (turn 0), or the larger attributes apart from each other."""
    points, blocks = design
    shuffled = rng.permutation(points)
    order = rng.permutation(len(attributes))
    if turn > 0:
        order = order[np.argsort([-shape[attributes[i]] for i in order], kind="stable")]
    on: list[list[int]] = [[] for _ in range(points)]
    load = np.zeros(points)
    for rank, i in enumerate(order.tolist()):
        at = int(shuffled[rank % points]) if turn == 0 else int(shuffled[load[shuffled].argmin()])
        on[at].append(attributes[i])
        load[at] += math.log(max(shape[attributes[i]], 1.0001))
    tables = {tuple(sorted({*hubs, *(i for point in block for i in on[point])})) for block in blocks}
    return sorted(table for table in tables if table)


def design_seconds(workload: Workload) -> float:
    """Estimated CPU seconds of the choice of tables under Laplace noise: measured up to 100 attributes and 161,700 tables."""
    return sum(min(1.6, 0.03 + 0.05 * max(0, len(names) - 4)) for names in workload.used.values() if len(names) > 1)


def designed_strategy(name: str, workload: Workload, along: Mapping[str, Factor]) -> Strategy:
    """Choose the tables to measure with Laplace noise, and their best weights."""
    domain = workload.domain
    if len(workload.attributes) < 2:
        return weighted_strategy(name, workload, along, workload.tables, 1)  # nothing to combine
    chosen: dict[str | None, list[Names]] = {}
    start: dict[str | None, list[float]] = {}
    for measure, sets in workload.tables.items():
        factors = {axis: factor_along(domain, axis, along) for names in sets for axis in names}
        closure, coefficient = residual_programme(workload.of(measure), factors)
        shape = tuple(max(2, round(kappa)) for kappa in closure.shape)
        design = _design(shape, tuple(rows.tobytes() for rows in closure.blocks[1:]), coefficient.tobytes())
        tables = [tuple(domain.names[at] for at in table) for table in design.tables]
        weights = design.theta.tolist()
        if any(math.prod(domain.kind(axis).size for axis in names) > MOST_TABLE_CELLS for names in tables):
            tables, weights = [*sets], [1.0] * len(sets)
        # Between measures the budget is split as between tables that share nothing; the optimiser goes on from there.
        share = (design.error * domain.largest_value(measure) ** 2) ** (1 / 3)
        norms = [block_norm(domain, Block(tuple(factors[axis] for axis in names), Fraction(1), measure), 1) for names in tables]
        chosen[measure] = tables
        start[measure] = [share * weight / norm for weight, norm in zip(weights, norms, strict=True)]
    return weighted_strategy(name, workload, along, chosen, 1, start=start)


@lru_cache(maxsize=64)
def _design(shape: tuple[int, ...], blocks: tuple[bytes, ...], coefficient: bytes) -> Design:
    """Search once for what several strategies, budgets and neighbour relations ask for alike."""
    rows = [np.frombuffer(block, dtype=np.int64).reshape(-1, size) for size, block in enumerate(blocks, 1)]
    return covering_design(Closure(shape, (np.zeros((1, 0), dtype=np.int64), *rows)), np.frombuffer(coefficient))


def covering(task: Task) -> Strategy:
    """Choose the tables to measure, and their best weights."""
    workload = task.workload
    if all(len(sets) == 1 for sets in workload.tables.values()):
        raise NotApplicable("only one table is asked for")
    return designed_strategy("covering", workload, {})


COVERING = Planner(
    name="covering",
    propose=covering,
    measures="a few larger tables that contain the asked ones between them",
    made_for="marginals under Laplace noise",
    norms=(1,),
    instead="covering tables are made for Laplace noise; with Gaussian noise residual is never worse",
    limits="tables of 2^28 cells",
    contains=tables_of_cells,
    laplace=design_seconds,
)
