"""Counts and sums of one measure at the price of one: a planner's tables, measured by the distances of values from both ends.

What a planner finds for counts alone can be measured on both ends of a measure at the same price, and then tells of counts and of sums: of
a variance s^2 for both ends the counts get 2 s^2 / R^2, the sums s^2 / 2 and m^2 times that of the counts (R the distance of the ends, m
their middle). So the planner is asked for counts that matter as much as counts and sums together. What is asked about counts alone is
planned apart; under Gaussian noise so are the counts of all tables once more, as both ends give counts and centred sums in one proportion
alone. How the parts share the budget is found by trying: the error is exact. Docs: mathematics, section 8.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from leastnoise._accounting import Noise, parameters
from leastnoise._accuracy import middle, structures
from leastnoise._families import NotApplicable
from leastnoise._fitting import fit
from leastnoise._measurements import Block, cost, views
from leastnoise._planner._kronecker import GAUSSIAN_OPTIMUM, P_IDENTITY
from leastnoise._planner._marginals import MARGINALS
from leastnoise._planner._strategy import Planner, Strategy, Task
from leastnoise._planner._tables import RESIDUAL
from leastnoise._workload import Product, Workload

_BITS = 30  # of weights
_WIDEST = 5.0  # a part is tried from 2^-5 to 2^5 times as strong as by itself
_TRIES = 9
_MOST_TRIED = 2**20, 256  # queries and blocks up to which shares of the budget are tried
_MOST_JOINT = 256
_SMOOTH = 2  # over the scale of noise: discrete noise below 1/2 is nearly all 0, and its error no power of the share of the budget
_GOLDEN = (math.sqrt(5) - 1) / 2
_UNIT_BOUND = "unit_bound"

Weighted = Sequence[tuple[Block, float]]
_Counts = Mapping[str | None, str | None]  # of each measure that is measured on both ends, what counts its values or rows


def together(planner: Planner, task: Task) -> Strategy:
    """What a planner proposes where counts and sums are measured together."""
    if not planner.automatic:
        raise NotApplicable("a strategy of a paper is measured as it is published")
    measures = task.workload.counted_sums
    if not measures:
        raise NotApplicable("no table is asked for both as counts and as sums of one measure")
    parts: list[tuple[Weighted, Workload]] = []
    details: dict[str, Any] = {}
    counts: _Counts = {measure: task.workload.domain.count_of(measure) for measure in measures}
    asked = [(measure, _at_ends(task.workload, measure, counts)) for measure in measures]
    wanted = [(measure, products) for measure, products in [*asked, (None, _beside(task, counts))] if products]
    for measure, products in wanted:
        part = Workload(task.workload.domain, tuple(products))
        subtask = replace(task, workload=part)
        try:
            made = planner.strategy(subtask)
        except NotApplicable:
            if not task.workload.beyond_cells:
                raise
            if not part.beyond_cells:
                made = (MARGINALS if task.norm == 1 else RESIDUAL).propose(subtask)  # nothing to fit along attributes
            elif len(part.products) == 1 < len(task.workload.products):
                made = (P_IDENTITY if task.norm == 1 else GAUSSIAN_OPTIMUM).strategy(subtask)  # one table, of which no part can be made
            else:
                raise
        details |= made.details
        blocks = [(block if measure is None else replace(block, measure=measure, ends=True), weight) for block, weight in made.blocks]
        alone = fit(task.workload.domain, task.privacy, task.noise, blocks)
        covered = part.measures if measure is None else (measure, counts[measure])
        answered = Workload(task.workload.domain, tuple(product for product in task.workload if product.measure in covered))
        parts.append(([(block, 1 / float(block.scale)) for block in alone.blocks], answered))
    # A bound for counts alone is none for counts and sums.
    kept = {name: value for name, value in details.items() if name != _UNIT_BOUND}
    return Strategy(planner.name, tuple(_balanced(task, parts)), kept)


def _table(product: Product) -> tuple[object, ...]:
    """What is asked, of counts or of sums."""
    return product.question[1:]


def _counts(product: Product, importance: float, counted: str | None = None) -> Product:
    """The same table of counts, of rows or of values, a squared error of which counts so much."""
    mantissa, exponent = math.frexp(math.sqrt(importance))
    weight = Fraction(round(mantissa * 2**_BITS)) * Fraction(2) ** (exponent - _BITS)
    return replace(product, measure=counted, weight=weight, target=None, size=None)


def _at_ends(workload: Workload, measure: str, counts: _Counts) -> list[Product]:
    """The tables of a measure as counts, with the importance of what both ends tell, in place of counts that measures may share."""
    bounds = workload.domain.measure(measure)
    apart = bounds.high_units - bounds.low_units
    shared = [*counts.values()].count(counts[measure])
    counted = {_table(product): product.importance / shared for product in workload if product.measure == counts[measure]}
    worth = apart**2 / 2 + 2 * middle(bounds) ** 2
    sums = workload.of(measure)
    return [_counts(product, product.importance * worth + 2 * counted.get(_table(product), 0.0)) for product in sums]


def _beside(task: Task, counts: _Counts) -> list[Product]:
    """What is measured beside both ends: the other tables, and under Gaussian noise the counts of all of them once more."""
    workload = task.workload
    if task.norm == 1:
        tables_known = {(counts[product.measure], *_table(product)) for product in workload if product.measure in counts}
        return [product for product in workload if product.measure not in counts and product.question not in tables_known]
    others: list[Product] = []
    worth: dict[tuple[object, ...], tuple[Product, float, str | None]] = {}
    for product in workload:
        if product.measure not in counts and product.measure not in counts.values():
            others.append(product)
            continue
        counted = counts.get(product.measure, product.measure)
        often = middle(workload.domain.measure(str(product.measure))) if product.measure in counts else 1.0
        key = (counted, *_table(product))
        worth[key] = product, worth.get(key, (product, 0.0))[1] + product.importance * often**2, counted
    return [_counts(product, importance, counted) for product, importance, counted in worth.values() if importance > 0] + others


def _balanced(task: Task, parts: Sequence[tuple[Weighted, Workload]]) -> Weighted:
    """All parts, each with the strength beside the others that leaves the least error."""

    def joined(strengths: Sequence[float]) -> list[tuple[Block, float]]:
        return [(block, weight * 2**strength) for (part, _), strength in zip(parts, strengths, strict=True) for block, weight in part]

    def error(blocks: Weighted, workload: Workload) -> float:
        known = structures(workload, fit(task.workload.domain, task.privacy, task.noise, blocks))
        if any(structure.solver_cells for structure in known.values()):
            return math.inf
        return math.fsum(product.importance * known[product.measure].total(product) for product in workload)

    def changed(part_number: int, strength: float) -> float:
        return error(joined([*strengths[:part_number], strength, *strengths[part_number + 1 :]]), task.workload)

    strengths = [0.0] * len(parts)
    smooth = max(weight for part, _ in parts for _, weight in part) <= _SMOOTH
    if smooth and sum(len(answered.measures) for _, answered in parts) == len(task.workload.measures):
        # No two parts tell of one thing, so that each has its own error over its share of the budget, squared or not.
        alone = [error(part, answered) for part, answered in parts]
        if all(0 < least < math.inf for least in alone):
            return joined([math.log2(least) / (3 if task.norm == 1 else 4) for least in alone])
    blocks = [block for part, _ in parts for block, _ in part]
    factors = {factor for block in blocks for factor in block.factors}
    along = [name for factor in factors for name in factor.attributes]
    cells = math.prod(task.workload.domain.kind(name).size for name in set(along))
    # Without a product form every try is an inverse over the joint cells.
    dear = len(along) > len(set(along)) and cells > _MOST_JOINT
    if dear or sum(block.rows for block in blocks) > _MOST_TRIED[0] or len(blocks) > _MOST_TRIED[1]:
        return joined(strengths)
    for part_number in [*range(1, len(parts))] * (1 if len(parts) <= 2 else 2):
        strengths[part_number] = _least(partial(changed, part_number))
    return joined(strengths)


def _least(error: Callable[[float], float]) -> float:
    """Where an error is least, by golden sections."""
    low, high = -_WIDEST, _WIDEST
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    errors = [error(point) for point in inner]
    for _ in range(_TRIES):
        if errors[0] <= errors[1]:
            high, inner, errors = inner[1], [0.0, inner[0]], [0.0, errors[0]]
            inner[0] = high - _GOLDEN * (high - low)
            errors[0] = error(inner[0])
        else:
            low, inner, errors = inner[0], [inner[1], 0.0], [errors[1], 0.0]
            inner[1] = low + _GOLDEN * (high - low)
            errors[1] = error(inner[1])
    return inner[0] if errors[0] <= errors[1] else inner[1]


def shared(task: Task, blocks: tuple[tuple[Block, float], ...]) -> tuple[tuple[Block, float], ...]:
    """The same blocks, with the weights of each count of units, and of all that counts rows, changed together."""
    if not any(product.of_units for product in task.workload):
        return blocks
    # with so much noise that it is as continuous noise would be, whose shares are the same at every budget
    largest = max(parameters(task.privacy.budget).values())
    small = task.privacy.share(Fraction(1, 8 * math.ceil(largest)))
    measured = fit(task.workload.domain, small, task.noise, blocks)
    parts, known = list(views(measured)), structures(task.workload, measured)
    if len(parts) == 1 or any(structure.solver_cells for structure in known.values()):
        return blocks
    # A weight m times as large has 1 / m^2 of the error and m, or m^2, times the cost.
    root = 3 if task.noise is Noise.DISCRETE_LAPLACE else 4
    times: dict[str | None, float] = {}
    for part in parts:
        of = {block.measure for block in part.blocks}
        error = math.fsum(product.importance * known[product.measure].total(product) for product in task.workload if product.measure in of)
        (price,) = parameters(cost(part)).values()
        times |= dict.fromkeys(of, (error / float(price)) ** (1 / root))
    return tuple((block, weight * times[block.measure]) for block, weight in blocks)
