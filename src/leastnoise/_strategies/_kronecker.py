"""One strategy for each attribute, and the best weights of their tables.

The strategies are fitted one after the other, along each attribute.

For fixed strategies of all other attributes, the error of a product table is a weighted sum of
traces along one attribute. Therefore, the strategy of each attribute is fitted to the weighted sum
of the Gram matrices along it, while the other strategies are fixed (block descent). Then
``_table_weights`` optimises the weights of the requested tables and of the joint table. A single
large product, split budgets and weighted marginals are special cases.

Source: OPT_kron and OPT_plus of McKenna et al. (PVLDB 2018), here with recovery across tables.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from leastnoise._families import (
    MOST_DENSE,
    MOST_LISTED_WORK,
    FitFamily,
    NotApplicable,
    best_hierarchy,
    check_deadline,
    deadline_passed,
    eigen_design,
    fit_family,
    gaussian_optimum,
    haar,
    invert_gram,
    level_tree,
    p_identity,
    p_identity_blocks,
    p_identity_seconds,
    square_root,
    window_root,
)
from leastnoise._plan import PlanDetails
from leastnoise._strategies._covering import design_seconds, designed_strategy
from leastnoise._strategies._planning_problem import (
    LEAST_EFFORT,
    AttributeCost,
    Planner,
    PlanningProblem,
    Strategy,
    attribute_costs,
    block_norm,
    cells_along,
    fits_within_a_minute,
    seconds_per_attribute,
)
from leastnoise._strategies._table_weights import (
    attribute_sets_with_joint,
    factor_along,
    weighted_strategy,
)
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Operator
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import QuerySet, Workload

_MOST_BITS = 29  # maximum number of bits of coefficients times a measure's values
# Query sets with smaller differences between their shares get the same best strategy.
_SHARE_TOLERANCE = 0.02


def kronecker(
    strategy_name: str, fit: FitFamily, problem: PlanningProblem, early_fit: FitFamily | None = None
) -> Strategy:
    """Return a strategy that is fitted along each attribute in turn.

    Counts and every measure are fitted separately.
    """
    workload = problem.workload
    if not workload.beyond_cells:
        raise NotApplicable(
            "the workload has only cells along every attribute; for these, marginals has the "
            "least error"
        )
    parts = [
        Workload(workload.domain, tuple(workload.of(measure))) for measure in workload.measures
    ]
    strategies = [
        _part_strategy(strategy_name, fit, replace(problem, workload=part), early_fit)
        for part in parts
    ]
    if len(strategies) == 1:
        return strategies[0]
    # Counts and sums have only the budget in common. With a budget share s, the error of each is E
    # / s^(root - 1). So the best share is proportional to E^(1 / root).
    if problem.norm == 1:
        root = 3
    else:
        root = 2
    shares = [strategy.error ** (1 / root) for strategy in strategies]
    weighed: list[tuple[Block, float]] = []
    for strategy, share in zip(strategies, shares, strict=True):
        spent = sum(
            (weight * block_norm(workload.domain, block, problem.norm)) ** problem.norm
            for block, weight in strategy.blocks
        )
        weighed += [
            (block, weight * (share / spent) ** (1 / problem.norm))
            for block, weight in strategy.blocks
        ]
    return Strategy(strategy_name, tuple(weighed), error=sum(shares) ** root)


def _sweeps(workload: Workload) -> int:
    """Return how many times all attributes are fitted in turn.

    Once is enough if no product combines two fitted attributes.
    """
    fitted = {*workload.beyond_cells}
    if any(len(fitted.intersection(product.attributes)) > 1 for product in workload):
        return 3
    return 1


def _part_strategy(
    strategy_name: str, fit: FitFamily, problem: PlanningProblem, early_fit: FitFamily | None
) -> Strategy:
    """Return the strategy for the counts, or for the sums of one measure."""
    workload = problem.workload
    norm = problem.norm
    attributes = workload.beyond_cells
    (measure,) = workload.measures
    along: dict[str, Factor] = {}
    bounds: dict[str, float] = {}
    fitted_by: dict[str, tuple[FitFamily, FloatArray]] = {}
    # The coefficients along all attributes of a table are multiplied with each other and with the
    # values of a measure. Sums of 2^32 such products must stay below 2^62.
    room = _MOST_BITS - (workload.domain.largest_value(measure) - 1).bit_length()
    bits = max(1, min(20, room // max(1, len(attributes))))
    for sweeps_left in reversed(range(_sweeps(workload))):
        for attribute in attributes:
            if early_fit and sweeps_left:
                now = early_fit
            else:
                now = fit
            weighted_queries = _weighted_queries(workload, attribute, along, norm)
            shares = np.array([weight for weight, _ in weighted_queries]) / math.fsum(
                weight for weight, _ in weighted_queries
            )
            if attribute in along and (
                deadline_passed()
                or (
                    fitted_by[attribute][0] is now
                    and np.allclose(shares, fitted_by[attribute][1], rtol=_SHARE_TOLERANCE)
                )
            ):
                continue
            if along:
                check_deadline()
            fitting = fit_family(now, weighted_queries, norm, bits)
            along[attribute] = fitting.factor(attribute)
            bounds[attribute] = fitting.error_lower_bound
            fitted_by[attribute] = (now, shares)
    tables = attribute_sets_with_joint(workload, along)
    bound = _certificate(workload, bounds)
    proposed = weighted_strategy(
        strategy_name, workload, along, tables, norm, privacy=problem.privacy
    )
    if bound > 0:
        proposed = replace(proposed, details=PlanDetails(unit_bound=bound))
    if norm == 1 and len(tables[measure]) > 2:
        proposed = min(
            proposed,
            designed_strategy(strategy_name, workload, along),
            key=lambda strategy: strategy.error,
        )
    return proposed


def _weighted_queries(
    workload: Workload, attribute: str, fitted_factors: Mapping[str, Factor], norm: int
) -> list[tuple[float, Operator]]:
    """Return the weighted queries along one attribute.

    The weight of a query is its variance under the strategies along the other attributes.
    """
    merged: dict[tuple[QuerySet, str | None], float] = {}
    operators: dict[tuple[QuerySet, str | None], Operator] = {}
    for product in workload:
        if attribute not in product.attributes:
            continue
        importance = product.importance
        for name, operator in zip(product.attributes, product.operators, strict=True):
            # Scaled to privacy cost 1, because the coefficients of strategies may have any size.
            if name != attribute:
                factor = factor_along(workload.domain, name, fitted_factors)
                importance *= (
                    invert_gram(factor).total_variance(operator)
                    * block_norm(workload.domain, Block((factor,), Fraction(1)), norm) ** 2
                )
        position = product.attributes.index(attribute)
        # A query set has different cells for counts of units and for counts of rows.
        key = product.query_sets[position], product.measure if product.counts_groups else None
        merged[key] = merged.get(key, 0.0) + importance
        operators[key] = product.operators[position]
    if (
        len(merged) == 1
        and len(workload.products) == 1
        and len(workload.products[0].attributes) > 1
    ):
        merged = dict.fromkeys(merged, 1.0)  # the weight of a single product scales only the bound
    return [(weight, operators[key]) for key, weight in merged.items()]


def _certificate(workload: Workload, attribute_bounds: Mapping[str, float]) -> float:
    """Return a lower bound on Gaussian strategies' squared error; 0 if unknown.

    The bounds of the attributes are combined. The result is 0 if no bound is known.

    If all queries are along one attribute, the bound of this attribute is the bound of the
    workload. For a single product, the Kronecker product of the attributes' dual solutions is a
    dual solution, so the bounds are multiplied. The bound of an attribute with only cell queries is
    its number of cells.
    """
    attribute_sets = {product.attributes for product in workload}
    if any(product.measure is not None for product in workload):
        return 0.0
    if len(attribute_sets) == 1 and attribute_sets <= {(name,) for name in attribute_bounds}:
        return attribute_bounds[next(iter(attribute_sets))[0]]
    if len(workload.products) > 1:
        return 0.0
    product = workload.products[0]
    return product.importance * math.prod(
        attribute_bounds.get(name, float(workload.domain.kind(name).size))
        for name in product.attributes
    )


def _p_identity(problem: PlanningProblem) -> Strategy:
    """Return p-Identity strategies along each attribute.

    The fit uses all the available time. The first sweeps fit hierarchies. These first fits are
    fast, and determine the weights of the queries along each attribute.
    """
    least, most = (
        seconds(problem.workload, 1)
        for seconds in (P_IDENTITY.least_seconds, P_IDENTITY.most_seconds)
    )
    effort = min(
        1.0, max(LEAST_EFFORT, (problem.seconds - least) / max(most - least, LEAST_EFFORT))
    )
    return kronecker(
        "p_identity",
        partial(p_identity, effort=effort),
        problem,
        best_hierarchy,
    )


def _full_p_identity_seconds(attribute_cost: AttributeCost) -> float:
    """Estimate the CPU seconds of a complete p-Identity fit."""
    begin, all_steps = p_identity_seconds(
        attribute_cost.cells, is_one_dimensional=attribute_cost.is_structured
    )
    return begin + (all_steps - begin) / attribute_cost.fits


def _optimum_iteration_seconds(attribute_cost: AttributeCost) -> float:
    """Estimate the CPU seconds of one step of the search for the Gaussian optimum.

    For one structured query set, a step is fast, because it needs only the eigenvectors of a
    tridiagonal matrix.
    """
    if attribute_cost.cells > MOST_DENSE:
        return 0.0
    if attribute_cost.is_structured and attribute_cost.has_one_query_set:
        return 0.005 + 0.1 * (attribute_cost.cells / 1024) ** 2.5
    return 0.005 + 0.44 * (attribute_cost.cells / 1024) ** 3


def joint_design_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds to choose tables under Laplace noise.

    The estimate is 0 if no measure has several tables.
    """
    if any(len(sets) > 1 for sets in workload.tables.values()):
        return design_seconds(workload)
    return 0.0


def _chain_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds to fit level chains and choose tables.

    The estimate is for Laplace noise.
    """
    return joint_design_seconds(workload) + 0.12 * sum(
        line.fits * (line.cells / 2**14) ** 0.5 for line in attribute_costs(workload).values()
    )


def _toeplitz_error_seconds(attribute_cost: AttributeCost) -> float:
    """Estimate the CPU seconds of the errors of ranges under a Toeplitz strategy.

    For each width of ranges, one running sum is computed, and there are at most as many widths as
    cells. For each run of equal scales, one transform is computed.
    """
    ranges = attribute_cost.listed
    cells = attribute_cost.cells
    if not ranges:
        return 0.0
    widths = min(ranges, cells, MOST_LISTED_WORK // cells)
    return 4e-9 * widths * cells + 4e-6 * cells


HIERARCHY = Planner(
    name="hierarchy",
    propose=partial(kronecker, "hierarchy", best_hierarchy),
    measures="nested runs of cells along ordered attributes, with the best branching factor",
    made_for="ranges on long attributes",
    paper="Hay et al., VLDB 2010",
    seconds=seconds_per_attribute(lambda line: 0.01 + 0.3 * line.cells / 2**16),
    extra_laplace_seconds=joint_design_seconds,
    relative_likelihood=lambda _: 1 / 2,
)
HAAR = Planner(
    name="haar",
    propose=partial(kronecker, "haar", haar),
    measures="the Haar wavelet, with the best weight for every level",
    made_for="ranges",
    limits="attributes of 4096 cells",
    paper="Xiao et al., ICDE 2010",
    seconds=seconds_per_attribute(
        lambda line: (
            0.01 + 0.26 * (line.cells / 1024) ** 2 + 0.11 * (line.cells / 1024) ** 3
            if line.cells <= MOST_DENSE
            else 0.0
        )
    ),
    extra_laplace_seconds=joint_design_seconds,
    relative_likelihood=lambda _: 1 / 8,
)


LEVEL_TREE = Planner(
    name="level_tree",
    propose=partial(kronecker, "level_tree", level_tree),
    measures="a hierarchy with the best weight for every level",
    made_for="ranges, to millions of cells",
    seconds=seconds_per_attribute(
        lambda line: 0.04 * min(1.0, line.cells / 64) + 0.12 * (line.cells / 2**14) ** 0.5
    ),
    extra_laplace_seconds=_chain_seconds,
    relative_likelihood=lambda _: 1 / 2,
    is_near_best=lambda _: True,
)
TOEPLITZ_ROOT = Planner(
    name="toeplitz_root",
    propose=partial(kronecker, "toeplitz_root", square_root),
    measures="the square root of the matrix of prefix sums: each row weights a cell and the cells "
    "before it, with larger weights for nearer cells",
    made_for="prefix sums and ranges under Gaussian noise, to millions of cells",
    paper="arXiv 2202.11205",
    norms=(2,),
    advice_for_other_noise=(
        "the root is made for Gaussian noise; for pure differential privacy choose p_identity"
    ),
    seconds=seconds_per_attribute(
        lambda line: 0.01 + 3e-6 * line.cells + _toeplitz_error_seconds(line)
    ),
    relative_likelihood=lambda _: 2.0,
)
WINDOW_ROOT = Planner(
    name="window_root",
    propose=partial(kronecker, "window_root", window_root),
    measures="the causal root of the queries' mean over all positions: each row weights a cell and "
    "the cells before it, with steps at the widths of the ranges",
    made_for="ranges of the same widths at every position under Gaussian noise",
    norms=(2,),
    advice_for_other_noise=(
        "the root is made for Gaussian noise; for pure differential privacy choose p_identity"
    ),
    limits="attributes of 2^16 cells",
    seconds=seconds_per_attribute(
        lambda line: (
            0.01 + 1e-5 * min(line.cells, 2**16) + _toeplitz_error_seconds(line)
            if line.listed
            else 0.0
        )
    ),
    relative_likelihood=lambda _: 2.0,
)
EIGEN_DESIGN = Planner(
    name="eigen_design",
    propose=partial(kronecker, "eigen_design", eigen_design),
    measures="weighted eigenvectors of the workload",
    made_for="any queries along an attribute under Gaussian noise",
    paper="Li and Miklau, arXiv 1202.3807",
    limits="attributes of 1024 cells",
    seconds=seconds_per_attribute(
        lambda line: 0.02 + 1.7 * (line.cells / 1024) ** 3 if line.cells <= 1024 else 0.0
    ),
    extra_laplace_seconds=lambda workload: (
        joint_design_seconds(workload)
        + 0.3
        * _sweeps(workload)
        * sum(size / 16 for size in cells_along(workload).values() if size <= 16)
    ),
    relative_likelihood=lambda _: 1 / 8,
)
P_IDENTITY = Planner(
    name="p_identity",
    propose=_p_identity,
    measures="every cell and a few weighted sums, found by descent",
    made_for="any queries along an attribute under Laplace noise",
    paper="McKenna et al., VLDB 2018",
    norms=(1,),
    advice_for_other_noise="p-Identity is made for pure differential privacy; for Gaussian noise "
    "gaussian_optimum is never worse",
    # The CPU time of comparing starts and of the first steps.
    seconds=seconds_per_attribute(
        lambda line: p_identity_seconds(line.cells, is_one_dimensional=line.is_structured)[0]
    ),
    thorough_seconds=seconds_per_attribute(_full_p_identity_seconds),
    extra_laplace_seconds=joint_design_seconds,
    is_near_best=fits_within_a_minute,
    relative_likelihood=lambda workload: 4 if len(workload.beyond_cells) == 1 else 1,
)
P_IDENTITY_BLOCKS = Planner(
    name="p_identity_blocks",
    propose=partial(kronecker, "p_identity_blocks", p_identity_blocks),
    measures="the same p-Identity strategy within every block of cells, and one over the sums of "
    "the blocks",
    made_for="prefix sums and ranges under Laplace noise, to millions of cells",
    norms=(1,),
    advice_for_other_noise=(
        "p-Identity is made for pure differential privacy; choose toeplitz_root for Gaussian noise"
    ),
    limits="attributes of 2^22 cells",
    seconds=seconds_per_attribute(lambda line: 0.02 + 0.5 * min(4.0, line.cells / 2**16)),
    extra_laplace_seconds=joint_design_seconds,
    relative_likelihood=lambda _: 1 / 2,
)


GAUSSIAN_OPTIMUM = Planner(
    name="gaussian_optimum",
    propose=partial(kronecker, "gaussian_optimum", gaussian_optimum),
    measures="the optimum over all strategies along an attribute, with a certificate",
    made_for="any queries along an attribute under Gaussian noise",
    norms=(2,),
    advice_for_other_noise=(
        "the Gaussian optimum is made for Gaussian noise; for pure differential privacy choose "
        "p_identity"
    ),
    limits="attributes of 4096 cells",
    seconds=seconds_per_attribute(lambda line: 4 * _optimum_iteration_seconds(line)),
    is_near_best=fits_within_a_minute,
    relative_likelihood=lambda _: 8,
    reaches_bound=lambda workload: len(workload.domain.names) == 1,
)


# One planner for each family that is used along all attributes, in the order in which they are
# shown. A new family has a record above and a line here.
FAMILIES = (
    HIERARCHY,
    HAAR,
    LEVEL_TREE,
    TOEPLITZ_ROOT,
    WINDOW_ROOT,
    EIGEN_DESIGN,
    P_IDENTITY,
    P_IDENTITY_BLOCKS,
    GAUSSIAN_OPTIMUM,
)
