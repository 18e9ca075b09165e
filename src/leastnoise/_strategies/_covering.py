"""Choose the marginals to measure under a pure budget: covering designs.

A few larger tables that contain all requested tables lead to much smaller errors than any weights
of the requested tables and their marginals. The errors are smaller because the budget is split over
fewer tables. The problem is not convex, and a weight of 0 stays 0 under every descent. So several
families of tables ("starts") are compared with approximate weights, and exact weights are computed
only for the best of these families. The search starts from four designs: the requested tables,
merged pairs of requested tables, greedily chosen cuboids (marginals), and block designs on whose
points the attributes are placed. No array has size N or 2^d, and tables are not searched one by one
(docs/decisions/planning.md).

A strategy along an attribute acts like an attribute of kappa cells, where kappa is the variance of
the total along the attribute. For the choice of tables, kappa is rounded to a whole number; the
final weights are exact.

A block design is a family of blocks of points in which every pair or triple of points lies in a
block. With more attributes than points, several attributes are placed on the same point. With fewer
attributes, some points stay empty.

`greedy_cover` keeps the largest cell variance small (problem BMAX of Ding et al.). Every requested
marginal is answered by adding up cells of one measured marginal that contains it. If s marginals
are measured, each has the noise variance s^2 (Laplace) or s (Gaussian), in units of the noise of a
single marginal. The variance of an answer is this variance times the number of added cells. This
choice of measured marginals and noise is strategy C of Cormode et al. If the budgets follow cube
roots instead of being equal, this is strategy C+.

Source: strategy C of Ding et al. (SIGMOD 2011), PriView (SIGMOD 2014); Handbook of Combinatorial
    Designs for cyclic designs.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leastnoise._families import NotApplicable
from leastnoise._strategies._planning_problem import (
    Planner,
    PlanningProblem,
    Strategy,
    block_norm,
    contained_planners,
)
from leastnoise._strategies._residual_algebra import (
    AttributeSet,
    DownwardClosure,
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
from leastnoise._strategies._table_weights import (
    Names,
    factor_along,
    residual_coefficients,
    weighted_strategy,
)
from leastnoise._trusted.check import refuse
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._trusted.measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._workload import Workload

Blocks = tuple[tuple[int, ...], ...]
# Base blocks of cyclic designs by the number of points n. The blocks of a design are all shifts of
# its base blocks modulo n. These are projective planes of orders 2 to 11: two points share exactly
# one line.
PLANES: dict[int, Blocks] = {
    7: ((0, 1, 5),),
    13: ((0, 1, 5, 11),),
    21: ((0, 1, 6, 8, 18),),
    31: ((0, 1, 6, 18, 22, 29),),
    57: ((0, 1, 6, 15, 22, 26, 45, 55),),
    73: ((0, 1, 11, 20, 38, 43, 59, 67, 71),),
    91: ((0, 1, 11, 15, 31, 36, 43, 65, 83, 89),),
    133: ((0, 1, 25, 30, 40, 46, 53, 96, 100, 114, 122, 131),),
}
# These are inversive planes of orders 3 to 9: any three points lie on exactly one circle.
CIRCLES: dict[int, Blocks] = {
    10: ((0, 1, 2, 6), (0, 1, 3, 4), (0, 2, 4, 7)),
    17: ((0, 1, 2, 6, 13), (0, 1, 3, 9, 15), (0, 1, 4, 7, 8), (0, 2, 4, 9, 12)),
    26: (
        (0, 1, 2, 6, 14, 22),
        (0, 1, 3, 9, 11, 12),
        (0, 1, 4, 7, 8, 17),
        (0, 2, 4, 9, 15, 21),
        (0, 2, 5, 12, 16, 23),
    ),
    50: (
        *(
            (0, 1, 2, 5, 17, 26, 35, 47),
            (0, 1, 3, 14, 30, 41, 43, 44),
            (0, 1, 6, 11, 12, 29, 31, 33),
            (0, 1, 9, 13, 15, 19, 27, 28),
        ),
        *(
            (0, 2, 7, 11, 16, 18, 24, 44),
            (0, 3, 6, 16, 21, 28, 35, 40),
            (0, 3, 7, 17, 27, 31, 34, 42),
        ),
    ),
    65: (
        *(
            (0, 1, 2, 5, 17, 27, 40, 50, 62),
            (0, 1, 3, 12, 21, 23, 24, 37, 52),
            (0, 1, 6, 7, 15, 19, 36, 53, 57),
        ),
        *(
            (0, 1, 8, 22, 28, 34, 48, 55, 56),
            (0, 1, 20, 25, 31, 33, 35, 41, 46),
            (0, 2, 6, 9, 24, 39, 42, 46, 48),
        ),
        *((0, 2, 7, 12, 14, 30, 38, 41, 49), (0, 3, 6, 13, 17, 22, 49, 54, 58)),
    ),
    82: (
        *(
            (0, 1, 2, 11, 16, 24, 42, 60, 68, 73),
            (0, 1, 3, 14, 29, 49, 64, 75, 77, 78),
            (0, 1, 4, 13, 20, 27, 36, 39, 40, 61),
        ),
        *(
            (0, 1, 7, 12, 28, 30, 46, 51, 57, 58),
            (0, 1, 9, 17, 18, 38, 48, 50, 52, 62),
            (0, 2, 5, 17, 20, 22, 26, 45, 59, 78),
        ),
        *(
            (0, 2, 9, 15, 19, 27, 31, 37, 44, 46),
            (0, 3, 6, 16, 33, 40, 44, 48, 55, 72),
            (0, 3, 11, 17, 23, 31, 34, 53, 58, 63),
        ),
    ),
}
_MOST_PAIRS = 1 << 25  # maximum number of candidates times requested marginals
_MOST_TABLES = 400_000  # maximum number of tables of a candidate design
_MOST_SORTED_TABLES = 10_000  # requested tables above which fewer starts are tried, unsorted
_MOST_MERGED = 1200  # maximum number of requested tables of which pairs are merged greedily
# Maximum number of requested tables times candidates for which cuboids are chosen greedily among
# all.
_MOST_CHOSEN = 1 << 25
_ROUGH_WEIGHT_STEPS = 15  # steps of the rough weights by which starts are compared
# Blocks of all placements on one design; there are at least three placements.
_BLOCKS_OF_PLACEMENTS = 60
# Seed of the random order in which attributes are placed on the points of a design.
_PLACEMENT_SEED = 4


def _shifted_blocks(points: int, base_blocks: Blocks) -> Blocks:
    """Return all cyclic shifts of the base blocks."""
    shifted = []
    for block in base_blocks:
        cells = np.array(block)
        shifted += [tuple(((cells + shift) % points).tolist()) for shift in range(points)]
    return tuple(shifted)


def designs(strength: int, attribute_count: int) -> Iterator[tuple[str, int, Blocks]]:
    """Yield covering designs as (name, number of points, blocks).

    In each design, any ``strength`` points lie in a common block. A design has at most about 2.5
    points for each attribute.
    """
    for groups in range(strength, min(attribute_count, strength + 8) + 1):
        yield (
            f"{strength} of {groups} groups",
            groups,
            tuple(itertools.combinations(range(groups), strength)),
        )
    most = 2.5 * attribute_count + 2
    for points, base_blocks in {2: PLANES, 3: CIRCLES}.get(strength, {}).items():
        if points <= most:
            order = len(base_blocks[0]) - 1
            yield (
                f"{'projective' if strength == 2 else 'inversive'} plane of order {order}",
                points,
                _shifted_blocks(points, base_blocks),
            )
    # Points are bit strings; blocks are the quadruples that add up to zero.
    for points in (8, 16, 32, 64) if strength == 3 else ():
        if points <= most:
            yield f"{points} bit strings", points, zero_xor_blocks(points)


def zero_xor_blocks(count: int) -> Blocks:
    """Return all quadruples of integers below ``count`` with bitwise XOR 0.

    ``count`` is a power of two. Any three points lie in exactly one quadruple.
    """
    return tuple(
        (a, b, c, a ^ b ^ c) for a, b, c in itertools.combinations(range(count), 3) if a ^ b ^ c > c
    )


def zero_sum_blocks(count: int, size: int) -> IntArray:
    """Return all blocks of ``size`` points whose sum is a multiple of ``count``.

    The points are 0 .. count - 1; the result has shape (blocks, size).
    """
    # Nearly every set of ``size`` - 1 points lies in exactly one block, so the result is close to a
    # Steiner system. The exceptions are sets that already contain the required last point.
    smaller = np.array(
        list(itertools.combinations(range(count), size - 1)), dtype=np.int64
    ).reshape(-1, size - 1)
    last = -smaller.sum(axis=1) % count
    keep = last > smaller[:, -1]
    return np.column_stack([smaller[keep], last[keep]])


class Cover(NamedTuple):
    """Marginals to measure with equal budgets, and the targets each one answers.

    Attributes:
        tables: the measured marginals.
        table_of_target: for each requested marginal, the position of the measured marginal whose
            cells are added up to answer it.
        largest_variance: the largest cell variance at unit noise and privacy cost 1. Multiply it by
            2 / epsilon^2 for pure budgets, and by 1 / mu^2 for Gaussian budgets.
    """

    tables: tuple[AttributeSet, ...]
    table_of_target: IntArray
    largest_variance: float


def greedy_cover(
    shape: Sequence[float], targets: Sequence[AttributeSet], *, norm: int = 1
) -> Cover:
    """Return tables whose cells sum to all targets, with small cell variance.

    The variance is within a factor (ln m + 1)^2 of the least possible for m requested marginals.
    """
    # For each limit on the number of summed cells, greedily take the marginal that answers most of
    # the remaining requested marginals. Keep the result with the least variance.
    requested = list(targets)
    options = _candidates(requested)
    if norm == 1:
        power = 2
    else:
        power = 1
    added = _cells_added(shape, options, requested)
    least = math.inf
    best = list[int]()
    # Every limit leads to a cover, because each requested marginal is also a candidate.
    for threshold in np.unique(added[np.isfinite(added)]).tolist():
        if not threshold < least:
            break
        cover = _greedy_cover(added <= threshold)
        largest = float(len(cover)) ** power * float(added[:, cover].min(axis=1).max())
        if largest < least:
            least = largest
            best = cover
    return Cover(
        tables=tuple(options[i] for i in best),
        table_of_target=added[:, best].argmin(axis=1),
        largest_variance=least,
    )


def cover_errors(
    shape: Sequence[float], targets: Mapping[AttributeSet, float], cover: Cover
) -> FloatArray:
    """Return each table's squared error per unit of the noise variance."""
    weights = np.array([float(value) for value in targets.values()])
    result: FloatArray = table_sizes(shape, cover.tables) * np.bincount(
        cover.table_of_target, weights=weights, minlength=len(cover.tables)
    )
    return result


def _candidates(requested: list[AttributeSet]) -> list[AttributeSet]:
    """Return candidate tables for covering the requested tables.

    The candidates are all marginals. If there are too many candidates, the result has the requested
    marginals and the unions of any two of them.
    """
    used = sorted(set(chain.from_iterable(requested)))
    if len(requested) << len(used) <= _MOST_PAIRS:
        return list(
            chain.from_iterable(itertools.combinations(used, k) for k in range(len(used) + 1))
        )
    tables = {tuple(used), *requested}
    if len(requested) ** 3 <= 2 * _MOST_PAIRS:
        tables |= {tuple(sorted({*a, *b})) for a, b in itertools.combinations(requested, 2)}
    return sorted(tables, key=lambda s: (len(s), s))


def _cells_added(
    shape: Sequence[float], candidates: list[AttributeSet], requested: list[AttributeSet]
) -> NDArray[np.float32]:
    """Return how many cells of a candidate add up to one requested cell.

    The result has shape (requested, candidates).

    The entry is infinite if the candidate does not contain the requested marginal.
    """
    if len(candidates) * len(requested) > _MOST_PAIRS:
        advice = "Choose the strategy covering."
        raise refuse(
            "candidates",
            f"{len(candidates)} for {len(requested)} requested marginals",
            f"at most {_MOST_PAIRS} pairs of the two",
            advice,
        )
    outside = np.ones((len(candidates), len(shape)), dtype=np.float32)
    rows = np.repeat(np.arange(len(candidates)), [len(attributes) for attributes in candidates])
    outside[rows, list(itertools.chain.from_iterable(candidates))] = 0
    member = np.zeros((len(shape), len(requested)), dtype=np.float32)
    for column, attributes in enumerate(requested):
        member[list(attributes), column] = 1
    option_sizes = np.where(outside > 0, 1.0, np.asarray(shape, dtype=np.float64)).prod(axis=1)
    ratio = np.rint(option_sizes / table_sizes(shape, requested)[:, None]).astype(np.float32)
    ratio[member.T @ outside.T > 0] = np.inf
    return ratio


def _greedy_cover(is_covered: BoolArray) -> list[int]:
    """Return indices of columns that cover all rows, chosen greedily.

    Ties are resolved in favour of the first column. The selection ends when no column covers
    another row.
    """
    # Use the narrowest type for the counts, because their sums take most of the time.
    count_type = np.min_scalar_type(len(is_covered))
    uncovered = np.ones(len(is_covered), dtype=bool)
    counts = is_covered.sum(axis=0, dtype=count_type)
    cover: list[int] = []
    while counts[at := int(counts.argmax())]:
        new = is_covered[:, at] & uncovered
        cover.append(at)
        uncovered &= ~new
        counts -= is_covered[new].sum(axis=0, dtype=count_type)
    return cover


class CoveringDesign(NamedTuple):
    """Tables to measure, with their weights and the total squared error.

    Attributes:
        tables: measured attribute sets, largest weight first.
        weights: weights theta of sum 1. At budget epsilon, a cell of table S gets Laplace noise of
            scale 1 / (epsilon theta_S).
        error: total squared error at unit noise; multiply it by 2 / epsilon^2.
        start_name: the name of the start.
    """

    tables: tuple[AttributeSet, ...]
    weights: FloatArray
    error: float
    start_name: str


def covering_design(closure: DownwardClosure, coefficients: FloatArray) -> CoveringDesign:
    """Return the best tables and weights for Laplace noise.

    The tables come from the best start.
    """
    if not bool(np.any(coefficients > 0)):
        raise refuse(
            "coefficient", 0.0, "above 0 for at least one attribute set", "Ask for something."
        )
    requested = [
        sets
        for sets, value in zip(attribute_sets(closure), (coefficients > 0).tolist(), strict=True)
        if value
    ]
    inside = np.zeros(closure.count, dtype=bool)
    for drop in range(len(closure.blocks)):
        inside[
            locate(
                closure,
                [names[:drop] + names[drop + 1 :] for names in requested if len(names) > drop],
            )
        ] = True
    needed = [
        names
        for names, covered in zip(
            requested, inside[locate(closure, requested)].tolist(), strict=True
        )
        if not covered
    ]
    best: tuple[float, str, list[AttributeSet], Errors, FloatArray] | None = None
    for origin, tables in _candidate_starts(
        closure, coefficients, needed, is_large=len(requested) > _MOST_SORTED_TABLES
    ):
        errors = diagonal_errors(incidence(closure, tables), coefficients)
        count = len(tables)
        theta = improve_weights(
            np.full(count, 1 / count), errors, np.ones(count), 1, _ROUGH_WEIGHT_STEPS
        )
        error = errors(theta**2)[0]
        if best is None or error < best[0]:
            best = error, origin, tables, errors, theta
    if best is None:
        raise refuse(
            "tables that are weighed together",
            len(needed),
            f"at most {_MOST_TABLES}",
            "Ask for fewer tables.",
        )
    _, origin, tables, errors, theta = best
    weights = least_error(errors, np.ones(len(theta)), theta, norm=1, steps=300)
    kept_tables = [
        int(i) for i in np.argsort(-weights.theta, kind="stable") if weights.theta[i] > 0
    ]
    return CoveringDesign(
        tables=tuple(tables[i] for i in kept_tables),
        weights=weights.theta[kept_tables],
        error=weights.error,
        start_name=origin,
    )


def _candidate_starts(
    closure: DownwardClosure,
    coefficients: FloatArray,
    requested: list[AttributeSet],
    *,
    is_large: bool,
) -> Iterator[tuple[str, list[AttributeSet]]]:
    """Yield the starting designs to compare, as names and tables.

    If no table of a start contains a requested table, the requested table is added to the start.
    """
    at = locate(closure, requested)
    most = math.inf
    for origin, proposed in _start_families(closure, coefficients, requested, is_large=is_large):
        if not proposed:
            continue
        # Skip starts whose estimated error is much larger than the error of the requested tables.
        # The estimate assumes that every requested set is covered once.
        guess = 2 * math.log(len(proposed)) + math.log(
            float(table_sizes(closure.shape, proposed[:1000]).mean())
        )
        if origin == "asked tables":
            most = guess + math.log(8.0)
        if not guess <= most:
            continue
        tables = proposed
        if proposed is not requested:
            tables = sorted(set(proposed), key=lambda names: (-len(names), names))
            covered = np.asarray(incidence(closure, tables).sum(axis=1)).ravel()[at] > 0
            tables += [
                attributes
                for attributes, is_covered in zip(requested, covered.tolist(), strict=True)
                if not is_covered
            ]
        if len(tables) <= _MOST_TABLES:
            yield origin, tables


def _start_families(
    closure: DownwardClosure,
    coefficients: FloatArray,
    requested: list[AttributeSet],
    *,
    is_large: bool,
) -> Iterator[tuple[str, list[AttributeSet]]]:
    """Yield the name and the tables of each starting design.

    The tables of a design need not cover all requested tables. If many tables are requested, fewer
    starting designs are tried.
    """
    rng = np.random.default_rng(_PLACEMENT_SEED)
    used = sorted(set(chain.from_iterable(requested)))
    yield "asked tables", requested
    if 1 < len(requested) <= _MOST_MERGED:
        yield "merged tables", _merge_tables(closure, coefficients, requested)
        if len(requested) << len(used) <= _MOST_CHOSEN:
            yield "greedy cuboids", list(greedy_cover(closure.shape, requested).tables)
    if not used:
        return
    width = max(map(len, requested))
    strengths = [width]
    if not is_large and width > 1:
        strengths = [width - 1, width]
    for strength in strengths:
        for name, points, blocks in designs(strength, len(used)):
            if len(blocks) > _MOST_TABLES // 4:
                continue
            placements = 1
            if not is_large:
                placements = max(3, _BLOCKS_OF_PLACEMENTS // len(blocks))
            for turn in range(placements):
                yield name, _place_attributes(closure.shape, used, (points, blocks), rng, turn)
    for size in (width + 1, width):
        if 2 <= size <= len(used) and math.comb(len(used), size - 1) <= _MOST_TABLES:
            order = rng.permutation(len(used))
            rows = np.sort(np.array(used)[order[zero_sum_blocks(len(used), size)]], axis=1)
            yield f"zero-sum blocks of {size}", [tuple(row) for row in rows.tolist()]


def _merge_tables(
    closure: DownwardClosure, coefficients: FloatArray, requested: list[AttributeSet]
) -> list[AttributeSet]:
    """Return the requested tables, after pairs have been merged greedily.

    In each step, the best pair is merged.

    Let e_S be the error that a unit of noise on S adds to the tables that S answers. If the budget
    of each S is proportional to e_S^(1/3), the error is (sum of e_S^(1/3))^3. Merged pairs are the
    best start for workloads without symmetry.
    """
    log_values = np.log(np.array(closure.shape, dtype=np.float64))
    member = np.zeros((len(requested), len(closure.shape)))
    for row, attributes in zip(member, requested, strict=True):
        row[list(attributes)] = 1
    log_size = member @ log_values
    at = locate(closure, requested)
    added = coefficients[at] * np.exp(2 * log_size) / dimensions(closure)[at]

    def merge_gains(rows: slice) -> FloatArray:
        """Return by how much each merge reduces the cube root of the error."""
        union = log_size[rows, None] + log_size - (member[rows] * log_values) @ member.T
        together = added[rows, None] * np.exp(union - log_size[rows, None]) + added * np.exp(
            union - log_size
        )
        result: FloatArray = np.cbrt(added[rows, None]) + np.cbrt(added) - np.cbrt(together)
        return result

    gain = merge_gains(slice(None))
    np.fill_diagonal(gain, -np.inf)
    alive = np.ones(len(requested), dtype=bool)
    while alive.sum() > 1:
        first, second = (int(i) for i in np.unravel_index(int(gain.argmax()), gain.shape))
        if not gain[first, second] > 0:
            break
        union = log_size[first] + log_size[second] - (member[first] * log_values) @ member[second]
        added[first] = added[first] * np.exp(union - log_size[first]) + added[second] * np.exp(
            union - log_size[second]
        )
        member[first] = np.maximum(member[first], member[second])
        log_size[first] = union
        alive[second] = False
        fresh = np.where(alive, merge_gains(slice(first, first + 1))[0], -np.inf)
        fresh[first] = -np.inf
        gain[first] = fresh
        gain[:, first] = fresh
        gain[second] = -np.inf
        gain[:, second] = -np.inf
    return [tuple(np.flatnonzero(row).tolist()) for row in member[alive]]


def _place_attributes(
    shape: Sequence[float],
    attributes: list[int],
    design: tuple[int, Blocks],
    rng: np.random.Generator,
    attempt: int,
) -> list[AttributeSet]:
    """Place attributes on a design's points, and return its tables.

    Attempt 0 places the attributes at random. Other attempts place larger attributes on points with
    fewer cells.
    """
    points, blocks = design
    shuffled = rng.permutation(points)
    order = rng.permutation(len(attributes))
    if attempt > 0:
        order = order[np.argsort([-shape[attributes[i]] for i in order], kind="stable")]
    on: list[list[int]] = [[] for _ in range(points)]
    load = np.zeros(points)
    for rank, i in enumerate(order.tolist()):
        if attempt == 0:
            at = int(shuffled[rank % points])
        else:
            at = int(shuffled[load[shuffled].argmin()])
        on[at].append(attributes[i])
        load[at] += math.log(max(shape[attributes[i]], 1.0001))
    tables = set()
    for block in blocks:
        tables.add(tuple(sorted(chain.from_iterable(on[point] for point in block))))
    return sorted(table for table in tables if table)


def design_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds to choose tables under Laplace noise.

    The formula is fitted to measurements up to 100 attributes and 161,700 tables.
    """
    seconds = 0.0
    for measure, names in workload.used.items():
        if len(names) < 2:
            continue
        pairs = len(workload.tables[measure]) << len(names)  # the pairs of `_cells_added`
        if pairs <= _MOST_PAIRS:
            seconds += 3e-7 * pairs
        seconds += min(1.6, 0.03 + 0.05 * max(0, len(names) - 4))
    return seconds


def designed_strategy(
    strategy_name: str, workload: Workload, fitted_factors: Mapping[str, Factor]
) -> Strategy:
    """Return the best covering tables, given a strategy along each attribute.

    The tables are chosen for Laplace noise.
    """
    domain = workload.domain
    if len(workload.attributes) < 2:
        # Nothing to combine.
        return weighted_strategy(strategy_name, workload, fitted_factors, workload.tables, 1)
    requested_tables: dict[str | None, list[Names]] = {}
    start: dict[str | None, list[float]] = {}
    for measure, sets in workload.tables.items():
        factors = {
            axis: factor_along(domain, axis, fitted_factors) for axis in chain.from_iterable(sets)
        }
        closure, coefficient = residual_coefficients(workload.of(measure), factors)
        shape = tuple(max(2, round(kappa)) for kappa in closure.shape)
        design = _cached_design(
            shape, tuple(rows.tobytes() for rows in closure.blocks[1:]), coefficient.tobytes()
        )
        tables = [tuple(domain.names[at] for at in table) for table in design.tables]
        weights = design.weights.tolist()
        sizes = [math.prod(domain.kind(axis).size for axis in names) for names in tables]
        if max(sizes, default=0) > MOST_TABLE_CELLS:
            tables = [*sets]
            weights = [1.0] * len(sets)
        # The initial split of the budget treats the measures as independent.
        share = (design.error * domain.largest_value(measure) ** 2) ** (1 / 3)
        norms = []
        for names in tables:
            block = Block(tuple(factors[axis] for axis in names), Fraction(1), measure)
            norms.append(block_norm(domain, block, 1))
        requested_tables[measure] = tables
        start[measure] = [
            share * weight / norm for weight, norm in zip(weights, norms, strict=True)
        ]
    return weighted_strategy(
        strategy_name, workload, fitted_factors, requested_tables, 1, start_weights=start
    )


@lru_cache(maxsize=64)
def _cached_design(
    shape: tuple[int, ...], block_bytes: tuple[bytes, ...], coefficient_bytes: bytes
) -> CoveringDesign:
    """Return `covering_design`, cached by the content of its arguments.

    The same design is needed for several strategies, budgets and neighbour relations.
    """
    rows = [
        np.frombuffer(block, dtype=np.int64).reshape(-1, size)
        for size, block in enumerate(block_bytes, 1)
    ]
    return covering_design(
        DownwardClosure(shape, (np.zeros((1, 0), dtype=np.int64), *rows)),
        np.frombuffer(coefficient_bytes),
    )


def covering(problem: PlanningProblem) -> Strategy:
    """Return tables that contain the requested tables, and their best weights."""
    workload = problem.workload
    if all(len(sets) == 1 for sets in workload.tables.values()):
        raise NotApplicable("the workload has only one table")
    return designed_strategy("covering", workload, {})


COVERING = Planner(
    name="covering",
    propose=covering,
    measures="a few larger tables that together contain all tables of the workload",
    made_for="marginals under Laplace noise",
    norms=(1,),
    advice_for_other_noise=(
        "covering tables are made for Laplace noise; with Gaussian noise residual is never worse"
    ),
    limits="tables of 2^28 cells",
    paper="Ding et al., SIGMOD 2011",
    contains=contained_planners,
    extra_laplace_seconds=design_seconds,
)
