"""Measure counts and sums jointly for the cost of one of them.

A table measures, in each cell, the distances of values from both ends of the measure.

Let R be the distance between the ends of a measure, and m the middle of the ends. A row with value
v adds v - low to one end and high - v to the other end. So measuring both ends costs as much as
measuring a count. If each end has the variance s^2, a count has the variance 2 s^2 / R^2. A sum has
the variance s^2 / 2, plus m^2 times the variance of a count. So a planner's strategy for counts can
also be used to measure both ends. The strategy is planned for counts, with the combined importance
of counts and sums. Tables that are requested only as counts are planned separately. With Gaussian
noise, the counts of all tables are measured as well. Without these counts, the two ends would
determine counts and centred sums with a fixed ratio of errors. The split of the budget between
these parts is searched, with the exact error (docs/mathematics.md, section 8).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain

from leastnoise._error import covariance_by_measure, midpoint
from leastnoise._families import NotApplicable
from leastnoise._fitting import fit_noise_scales
from leastnoise._strategies._kronecker import GAUSSIAN_OPTIMUM, P_IDENTITY
from leastnoise._strategies._marginals import MARGINALS
from leastnoise._strategies._planning_problem import Planner, PlanningProblem, Strategy
from leastnoise._strategies._table_weights import RESIDUAL
from leastnoise._trusted.accounting import Noise, parameters_by_name
from leastnoise._trusted.measurements import Block, cost, split_by_quantity
from leastnoise._workload import Product, Workload

_WEIGHT_BITS = 30  # bits of weights
_MOST_WEIGHT_EXPONENT = 5.0  # the weights of a part are multiplied by 2^-5 to 2^5
# The precision and the most steps of the search for the exponent.
_EXPONENT_SEARCH = {"xatol": 0.03, "maxiter": 11}
# Maximum numbers of queries and of blocks; above them, splits of the budget are not tried.
_MOST_ROWS = 2**20
_MOST_BLOCKS = 256
# Maximum number of parts that are all searched; each takes some seconds with 77 tables.
_MOST_SEARCHED = 4
# Maximum number of cells; above it, tables on shared attributes are not balanced exactly.
_MOST_JOINT = 256
# The largest weight at which the error is a power of the budget; discrete noise of a scale below
# 1/2 is nearly always 0.
_LARGEST_SMOOTH_WEIGHT = 2

Weighted = Sequence[tuple[Block, float]]
# For each measure that is measured on both ends, the measure that counts its values.
_Counts = Mapping[str | None, str | None]


def counts_and_sums(planner: Planner, problem: PlanningProblem) -> Strategy:
    """Return a planner's strategy that measures counts and sums jointly.

    Raises:
        NotApplicable: the planner cannot measure both jointly, or no table is requested both as
            counts and as sums.
    """
    if not planner.automatic:
        raise NotApplicable("a strategy from a paper is used exactly as published")
    measures = problem.workload.counted_sums
    if not measures:
        raise NotApplicable("no table has both counts and sums of one measure")
    parts: list[tuple[Weighted, Workload]] = []
    counts: _Counts = {measure: problem.workload.domain.count_of(measure) for measure in measures}
    tables_at_ends = [
        (measure, _tables_of_distances(problem.workload, measure, counts)) for measure in measures
    ]
    parts_to_plan = [
        (measure, products)
        for measure, products in [*tables_at_ends, (None, _other_tables(problem, counts))]
        if products
    ]
    for measure, products in parts_to_plan:
        part = Workload(problem.workload.domain, tuple(products))
        subproblem = replace(problem, workload=part)
        strategy = _strategy_of_part(planner, problem, subproblem)
        blocks = [
            (block if measure is None else replace(block, measure=measure, ends=True), weight)
            for block, weight in strategy.blocks
        ]
        measurements = fit_noise_scales(
            problem.workload.domain, problem.privacy, problem.noise, blocks
        )
        if measure is None:
            covered = part.measures
        else:
            covered = (measure, counts[measure])
        answered = Workload(
            problem.workload.domain,
            tuple(product for product in problem.workload if product.measure in covered),
        )
        parts.append(([(block, 1 / float(block.scale)) for block in measurements.blocks], answered))
    return Strategy(planner.name, tuple(_balance_parts(problem, parts)))


def _strategy_of_part(
    planner: Planner, problem: PlanningProblem, subproblem: PlanningProblem
) -> Strategy:
    """Return a planner's strategy for a part of the problem, or a fallback."""
    try:
        return planner.strategy(subproblem)
    except NotApplicable:
        if not problem.workload.beyond_cells:
            raise
        if not subproblem.workload.beyond_cells:  # single cells need no fit
            return (MARGINALS if problem.norm == 1 else RESIDUAL).propose(subproblem)
        if len(subproblem.workload.products) == 1 < len(problem.workload.products):
            # A planner that needs several tables may not apply to the part.
            return (P_IDENTITY if problem.norm == 1 else GAUSSIAN_OPTIMUM).strategy(subproblem)
        raise


def _as_counts(product: Product, importance: float, count_measure: str | None = None) -> Product:
    """Return a table that counts rows by the attributes of another table.

    The table counts the values of ``count_measure``, or rows if ``count_measure`` is None.
    """
    mantissa, exponent = math.frexp(math.sqrt(importance))
    weight = Fraction(round(mantissa * 2**_WEIGHT_BITS)) * Fraction(2) ** (exponent - _WEIGHT_BITS)
    return replace(product, measure=count_measure, weight=weight, target=None, size=None)


def _tables_of_distances(
    workload: Workload, measure: str, count_measures: _Counts
) -> list[Product]:
    """Return the tables of distances from both bounds of a measure.

    Several measures may have the same counts.
    """
    bounds = workload.domain.measure(measure)
    width = bounds.high_units - bounds.low_units
    shared = [*count_measures.values()].count(count_measures[measure])
    counted = {
        product.table_key[1:]: product.importance / shared
        for product in workload
        if product.measure == count_measures[measure]
    }
    importance_factor = width**2 / 2 + 2 * midpoint(bounds) ** 2
    sums = workload.of(measure)
    return [
        _as_counts(
            product,
            product.importance * importance_factor + 2 * counted.get(product.table_key[1:], 0.0),
        )
        for product in sums
    ]


def _other_tables(problem: PlanningProblem, count_measures: _Counts) -> list[Product]:
    """Return the tables to measure in addition to distances from both bounds.

    The result has all other tables and, with Gaussian noise, also the counts of the tables measured
    at both ends.
    """
    workload = problem.workload
    if problem.norm == 1:
        tables_known = {
            (count_measures[product.measure], *product.table_key[1:])
            for product in workload
            if product.measure in count_measures
        }
        return [
            product
            for product in workload
            if product.measure not in count_measures and product.table_key not in tables_known
        ]
    products: list[Product] = []
    combined_importance: dict[tuple[object, ...], tuple[Product, float, str | None]] = {}
    for product in workload:
        if product.measure not in count_measures and product.measure not in count_measures.values():
            products.append(product)
            continue
        count_measure = count_measures.get(product.measure, product.measure)
        if product.measure in count_measures:
            count_factor = midpoint(workload.domain.measure(str(product.measure)))
        else:
            count_factor = 1.0
        key = (count_measure, *product.table_key[1:])
        combined_importance[key] = (
            product,
            combined_importance.get(key, (product, 0.0))[1] + product.importance * count_factor**2,
            count_measure,
        )
    return [
        _as_counts(product, importance, count_measure)
        for product, importance, count_measure in combined_importance.values()
        if importance > 0
    ] + products


def _balance_parts(
    problem: PlanningProblem, parts: Sequence[tuple[Weighted, Workload]]
) -> Weighted:
    """Return the blocks of all parts, with the best weight for each part.

    The weights of each part are multiplied by the power of 2 that minimises the error.
    """
    exponents = _exponents_of_separate_parts(problem, parts)
    if exponents is None:
        exponents = [0.0] * len(parts)
        blocks = [block for block, _ in _join_parts(parts, exponents)]
        if _is_search_quick(problem, blocks):
            _search_exponents(problem, parts, exponents)
    return _join_parts(parts, exponents)


def _join_parts(
    parts: Sequence[tuple[Weighted, Workload]], exponents: Sequence[float]
) -> list[tuple[Block, float]]:
    """Join the blocks of all parts; multiply their weights by powers of 2."""
    blocks: list[tuple[Block, float]] = []
    for (part, _), exponent in zip(parts, exponents, strict=True):
        blocks += [(block, weight * 2**exponent) for block, weight in part]
    return blocks


def _error_of_blocks(problem: PlanningProblem, blocks: Weighted, workload: Workload) -> float:
    """Return the total squared error of weighted blocks for a workload.

    The error is infinite if it cannot be computed in closed form.
    """
    measurements = fit_noise_scales(problem.workload.domain, problem.privacy, problem.noise, blocks)
    covariances = covariance_by_measure(workload, measurements)
    if any(structure.solver_cells for structure in covariances.values()):
        return math.inf
    return math.fsum(
        product.importance * covariances[product.measure].total(product) for product in workload
    )


def _exponents_of_separate_parts(
    problem: PlanningProblem, parts: Sequence[tuple[Weighted, Workload]]
) -> list[float] | None:
    """Return the best exponents of parts that share only the budget, or None.

    A closed form exists if the error of each part is a power of its budget. Without a closed form,
    the result is None.
    """
    weights: list[float] = []
    for part, _ in parts:
        weights += [weight for _, weight in part]
    largest_weight = max(weights)
    measures_of_parts = sum(len(answered.measures) for _, answered in parts)
    is_separate = measures_of_parts == len(problem.workload.measures)
    if largest_weight > _LARGEST_SMOOTH_WEIGHT or not is_separate:
        return None
    errors = [_error_of_blocks(problem, part, answered) for part, answered in parts]
    if not all(0 < error < math.inf for error in errors):
        return None
    # If the costs s_i (Laplace noise) or s_i^2 (Gaussian noise) add up to 1, the sum of e_i / s_i^2
    # is least for s_i proportional to e_i^(1/root).
    root = 3 if problem.norm == 1 else 4
    return [math.log2(error) / root for error in errors]


def _is_search_quick(problem: PlanningProblem, blocks: Sequence[Block]) -> bool:
    """Return whether computing errors of many budget splits takes little time."""
    factors = set(chain.from_iterable(block.factors for block in blocks))
    attributes = list(chain.from_iterable(factor.attributes for factor in factors))
    cells = math.prod(problem.workload.domain.kind(name).size for name in set(attributes))
    # If an attribute has several strategies, every error needs an inverse over the joint cells.
    if len(attributes) > len(set(attributes)) and cells > _MOST_JOINT:
        return False
    return sum(block.rows for block in blocks) <= _MOST_ROWS and len(blocks) <= _MOST_BLOCKS


def _search_exponents(
    problem: PlanningProblem, parts: Sequence[tuple[Weighted, Workload]], exponents: list[float]
) -> None:
    """Minimise the error over the exponent of one part after the other, in place."""
    from scipy.optimize import minimize_scalar

    for part_number in _searched_parts(len(parts)):

        def error(exponent: float, part_number: int = part_number) -> float:
            """Return the squared error after a change of one part's exponent."""
            changed = [*exponents]
            changed[part_number] = exponent
            return _error_of_blocks(problem, _join_parts(parts, changed), problem.workload)

        exponents[part_number] = float(
            minimize_scalar(
                error,
                bounds=(-_MOST_WEIGHT_EXPONENT, _MOST_WEIGHT_EXPONENT),
                method="bounded",
                options=_EXPONENT_SEARCH,
            ).x
        )


def _searched_parts(count: int) -> list[int]:
    """Return the indices of the parts whose weights are searched, in order.

    If there are many parts, only the weight of the last part is searched. The last part has the
    tables that are not measured at both ends. Each other part belongs to a single measure, whose
    importance determines the weight of the part.
    """
    if count > _MOST_SEARCHED:
        return [count - 1]
    rounds = 1 if count == 2 else 2
    return [*range(1, count)] * rounds


def split_units_budget(
    problem: PlanningProblem, blocks: tuple[tuple[Block, float], ...]
) -> tuple[tuple[Block, float], ...]:
    """Split the budget between unit counts and row counts; return the blocks."""
    if not any(product.is_per_unit for product in problem.workload):
        return blocks
    # At a small budget, discrete noise behaves like continuous noise. For continuous noise, the
    # best split does not depend on the budget.
    largest = max(parameters_by_name(problem.privacy.budget).values())
    small = problem.privacy.scaled(Fraction(1, 8 * math.ceil(largest)))
    measured = fit_noise_scales(problem.workload.domain, small, problem.noise, blocks)
    parts = list(split_by_quantity(measured))
    covariances = covariance_by_measure(problem.workload, measured)
    if len(parts) == 1 or any(structure.solver_cells for structure in covariances.values()):
        return blocks
    # Multiplying a weight by m divides the error by m^2, and multiplies the cost by m or m^2.
    if problem.noise is Noise.DISCRETE_LAPLACE:
        root = 3
    else:
        root = 4
    weight_factors: dict[str | None, float] = {}
    for part in parts:
        measures_of_part = {block.measure for block in part.blocks}
        error = math.fsum(
            product.importance * covariances[product.measure].total(product)
            for product in problem.workload
            if product.measure in measures_of_part
        )
        (price,) = parameters_by_name(cost(part)).values()
        weight_factors |= dict.fromkeys(measures_of_part, (error / float(price)) ** (1 / root))
    return tuple((block, weight * weight_factors[block.measure]) for block, weight in blocks)
