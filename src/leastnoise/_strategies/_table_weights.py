"""Weights of measured tables, for a given strategy of each attribute.

The optimisation is diagonal in the residual basis.

In the notation of ``_error._product_covariance``, let a table measure the product of the
attributes' strategies over a set S with weight theta. The table adds a term to lambda(tau): theta^2
times the product of 1 / kappa_i over S without tau. The workload's total squared error is the sum
over tau of c(tau) / lambda(tau). Sums of a measure are queries on a second data vector. These
queries share the budget with the counts.

The planners of this file use this optimisation. ``identity`` measures every cell of the joint
table, and ``marginals`` (``_marginals``) measures the tables of the workload. ``residual`` is
optimal for marginals under Gaussian noise: it measures every residual space separately, with its
own noise. For a set tau of attributes, ``residual`` measures the contrasts along all attributes of
tau. Each row has noise in proportion to its norm. So the noise of the residual table is the
projection of independent noise on its cells. The sum of variances is then the least among all
mechanisms for marginals.

Source: Cormode et al. (arXiv 1207.6096) for optimised budgets combined with recovery;
    docs/mathematics.md for general strategies along the attributes; Xiao, He, Zhang, Kifer,
    ResidualPlanner (arXiv 2305.08175); here the contrasts are integers instead of their
    floating-point basis.

``workload`` measures the requested queries unchanged. For several tables, the budget split between
them is optimised. For a single table along one attribute, the budget share of each query is
optimised. For such a table, query i is measured with weight theta_i (its noise scale is
proportional to 1 / theta_i). A unit of noise variance in query i adds b_i to the total squared
error. The privacy cost of column j is sum_i |S_ij| theta_i for Laplace noise and sum_i S_ij^2
theta_i^2 for Gaussian noise. No column may have a privacy cost above 1. The dual problem is over
weights y_j >= 0 of the columns with sum 1. With q = S y, the dual function is

    Laplace:  (sum_i (b_i q_i^2)^(1/3))^3  with theta_i   in proportion to (b_i / q_i)^(1/3),
    Gaussian: (sum_i (b_i q_i)^(1/2))^2    with theta_i^2 in proportion to (b_i / q_i)^(1/2)
                                           and q = S^2 y.

Every y gives a lower bound. The bound is attained if all columns with y_j > 0 have equal costs.

Source: Cormode et al. (arXiv 1207.6096), section 3; the dual is Hoelder's inequality.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from leastnoise._domain import Domain
from leastnoise._error import AttributeSetTerms, subset_sums
from leastnoise._families import MOST_DENSE, NotApplicable, dual_ascent, invert_gram
from leastnoise._strategies._planning_problem import (
    Planner,
    PlanningProblem,
    Strategy,
    base_seconds,
    block_norm,
    contained_planners,
    relative_sensitivity,
)
from leastnoise._strategies._residual_algebra import (
    DownwardClosure,
    Weights,
    diagonal_errors,
    grouped_budgets,
    incidence,
    least_error,
)
from leastnoise._strategies._residual_prices import residual_prices
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Contrasts, Identity, Operator, dense
from leastnoise._trusted.measurements import MOST_TABLE_CELLS, Block, Factor, Limits
from leastnoise._workload import Product, Workload, index_queries, with_hidden_group

Names = tuple[str, ...]
_LEAST_SHARE = 1e-8  # tables below this fraction of the largest budget share are dropped
_MOST_QUERIES = 2**22  # maximum number of queries of a workload that is measured unchanged
_MOST_JOINT = 2**24  # maximum number of cells of a joint table
_MOST_ENTRIES = 2**22  # maximum number of entries of a dense query matrix; 32 MiB of floats
_LEAST_WEIGHT = 2**-20  # the least weight of a row, relative to the heaviest row


def factor_along(domain: Domain, name: str, fitted_factors: Mapping[str, Factor]) -> Factor:
    """Return the fitted factor along an attribute, or else a factor of its cells."""
    return fitted_factors.get(name) or Factor((name,), Identity(domain.kind(name).size))


def joint_table(workload: Workload, measure: str | None) -> Names:
    """Return the attributes of all queries on counts (None) or on a measure.

    The names are in the order of the domain.
    """
    return tuple(name for name in workload.domain.names if name in workload.used[measure])


def attribute_sets_with_joint(
    workload: Workload, fitted_factors: Mapping[str, Factor]
) -> dict[str | None, list[Names]]:
    """Return the requested attribute sets and the joint set, by measure.

    The joint set is omitted if it is too large.
    """
    tables = {measure: list(sets) for measure, sets in workload.tables.items()}
    for measure, sets in tables.items():
        joint = joint_table(workload, measure)
        if (
            joint not in sets
            and math.prod(
                factor_along(workload.domain, name, fitted_factors).operator.rows for name in joint
            )
            <= _MOST_JOINT
        ):
            sets.append(joint)
    return tables


def check_table_size(block: Block) -> Block:
    """Return the block; raise `NotApplicable` if its joint table is too large."""
    cells = max(block.rows, math.prod([factor.operator.size for factor in block.factors]))
    if cells > MOST_TABLE_CELLS:
        raise NotApplicable(
            f"the table of {' x '.join(block.attributes)} has {cells} cells; at most "
            f"{MOST_TABLE_CELLS} are allowed"
        )
    return block


def residual_coefficients(
    products: Sequence[Product], factors: Mapping[str, Factor]
) -> tuple[DownwardClosure, FloatArray]:
    """Return residual spaces of a workload, and their error coefficients.

    Attribute sizes are replaced by kappa, and c(tau) is divided by the product of kappa over tau.
    """
    domain = products[0].domain
    query_index = index_queries(products)
    means, spreads = (
        np.array([_split_sums(factors[entry.name], entry.operator) for entry in query_index.along])
        .reshape(-1, 2)
        .T
    )
    positions = np.array([entry.position for entry in query_index.along], dtype=np.int64)
    importance = np.array([product.importance for product in products])
    # An attribute with one cell has no contrasts, so dropping it from a product does not change the
    # answers.
    single = np.array(domain.shape)[positions] == 1
    terms = []
    for where, rows in query_index.widths:
        weights = importance[where] * np.where(single[rows], means[rows], 1.0).prod(axis=1)
        for multi_valued in (
            np.unique(~single[rows], axis=0)
            if single.any()
            else np.ones((1, rows.shape[1]), dtype=bool)
        ):
            some = (~single[rows] == multi_valued).all(axis=1)
            remaining = rows[some][:, multi_valued]
            terms.append(
                AttributeSetTerms(
                    positions[remaining], spreads[remaining], means[remaining], weights[some]
                )
            )
    sums = subset_sums(terms, len(domain.names))
    kappa = np.ones(len(domain.names))
    for at, name in enumerate(domain.names):
        if name in factors:
            kappa[at] = invert_gram(factors[name]).kappa
    closure = DownwardClosure(tuple(kappa.tolist()), tuple(taus for taus, _ in sums))
    return closure, np.concatenate([values / kappa[taus].prod(axis=1) for taus, values in sums])


@lru_cache(maxsize=16)
def _split_sums(factor: Factor, operator: Operator) -> tuple[float, float]:
    """Return `GramInverse.split_sums`, cached."""
    return invert_gram(factor).split_sums(operator)


def weighted_strategy(
    strategy_name: str,
    workload: Workload,
    fitted_factors: Mapping[str, Factor],
    tables: Mapping[str | None, Sequence[Names]],
    norm: int,
    *,
    start_weights: Mapping[str | None, Sequence[float]] | None = None,
    limits: Limits | None = None,
    privacy: Privacy | None = None,
) -> Strategy:
    """Return tables with the weights of least total squared error.

    The error is computed after recovery by least squares.

    Raises:
        NotApplicable: a table is too large.
    """
    domain = workload.domain
    blocks: list[Block] = []
    matrices = []
    coefficients = []
    for measure, sets in tables.items():
        requested = {*chain.from_iterable(sets), *workload.used[measure]}
        factors = {axis: factor_along(domain, axis, fitted_factors) for axis in requested}
        position_of = {axis: at for at, axis in enumerate(domain.names)}
        positions = []
        for names in sets:
            table_factors = tuple([factors[axis] for axis in names])
            blocks.append(check_table_size(Block(table_factors, Fraction(1), measure, limits)))
            positions.append(tuple([position_of[axis] for axis in names]))
        closure, coefficient = residual_coefficients(workload.of(measure), factors)
        matrices.append(incidence(closure, positions))
        coefficients.append(coefficient)
    cost = table_costs(domain, blocks, norm, privacy)
    if start_weights is None:
        first = 1 / cost
    else:
        first = np.concatenate(
            [np.asarray(start_weights[measure], dtype=float) for measure in tables]
        )
    matrix = matrices[0]
    if len(matrices) > 1:
        from scipy.sparse import block_diag, csr_array

        # SciPy 1.18 warns that the result for NumPy arrays will change from a matrix to an array.
        matrix = block_diag([csr_array(part) for part in matrices], format="csr")
    return weighted_tables(
        strategy_name,
        blocks,
        cost,
        least_error(diagonal_errors(matrix, np.concatenate(coefficients)), cost, first, norm=norm),
    )


def table_costs(
    domain: Domain, blocks: Sequence[Block], norm: int, privacy: Privacy | None
) -> FloatArray:
    """Return the privacy cost of each table at weight 1, shape (tables,)."""
    cost = np.array([block_norm(domain, block, norm) for block in blocks], dtype=np.float64)
    if privacy is not None and privacy.max_per_cell is not None and norm == 2:
        sensitivities = []
        for block in blocks:
            bare = [
                factor.attributes[0]
                for factor in block.factors
                if factor.operator == Identity(factor.operator.size)
            ]
            sensitivities.append(relative_sensitivity(privacy, domain, bare))
        cost *= np.sqrt(sensitivities)
    return cost


def weighted_tables(
    strategy_name: str, blocks: Sequence[Block], costs: FloatArray, weights: Weights
) -> Strategy:
    """Return weighted blocks as a strategy, without blocks of tiny weight.

    Tables are dropped if their budget share is too small for the sampler.
    """
    shares = weights.theta * costs
    used = shares > _LEAST_SHARE * shares.max()
    weighted_blocks = tuple(
        (block, float(weight))
        for block, weight, use in zip(blocks, weights.theta, used, strict=True)
        if use
    )
    return Strategy(strategy_name, weighted_blocks, error=weights.error)


def reweighted_strategy(
    strategy_name: str, workload: Workload, blocks: Sequence[Block], norm: int
) -> Strategy:
    """Return tables with the best weights for another workload.

    Raises:
        NotApplicable: the tables have no common strategies along the attributes, or do not contain
            all requested tables.
    """
    along: dict[str, Factor] = {}
    tables: dict[str | None, list[Names]] = {}
    start: dict[str | None, list[float]] = {}
    for block in blocks:
        is_separable = all(len(factor.attributes) == 1 for factor in block.factors)
        has_shared_factors = is_separable and all(
            along.setdefault(factor.attributes[0], factor) == factor for factor in block.factors
        )
        grouped = block.k_norm_group is not None
        if not has_shared_factors or block.limits is not None or block.ends or grouped:
            raise NotApplicable(
                "the measured tables do not all use the same queries along each attribute"
            )
        tables.setdefault(block.measure, []).append(block.attributes)
        start.setdefault(block.measure, []).append(1 / float(block.scale))
    for product in workload:
        if not any(
            set(product.attributes) <= set(names) for names in tables.get(product.measure, [])
        ):
            raise NotApplicable(f"the strategy has no table that contains {product.name}")
    requested = {measure: tables[measure] for measure in workload.tables}
    return weighted_strategy(strategy_name, workload, along, requested, norm, start_weights=start)


def identity(problem: PlanningProblem) -> Strategy:
    """Return the joint table of each measure as a strategy.

    This is strategy I of Cormode et al., arXiv 1207.6096.
    """
    workload = problem.workload
    tables = {measure: [joint_table(workload, measure)] for measure in workload.measures}
    return weighted_strategy(
        "identity", workload, {}, tables, problem.norm, privacy=problem.privacy
    )


IDENTITY = Planner(
    name="identity",
    propose=identity,
    measures="every cell of the joint table of all attributes of the workload",
    made_for="few cells",
    limits="a joint table of 2^28 cells",
    paper="I in Cormode et al., arXiv 1207.6096",
    is_near_best=lambda _: True,
)


def residual(problem: PlanningProblem) -> Strategy:
    """Return the residual spaces of all requested tables as a strategy.

    Each space gets its best share of the budget.
    """
    workload = problem.workload
    domain = problem.workload.domain
    blocks: list[Block] = []
    errors = []
    norms = []
    sizes = np.array(domain.shape, dtype=np.float64)
    cells = {name: factor_along(domain, name, {}) for name in workload.attributes}
    for measure in workload.measures:
        closure, coefficient = residual_coefficients(workload.of(measure), cells)
        taus: list[list[int]] = []
        measure_errors = []
        for sets, sums in zip(
            closure.blocks, np.split(coefficient, closure.offsets[1:-1]), strict=True
        ):
            requested = sets[sums > 0]
            taus += requested.tolist()
            measure_errors.append(sums[sums > 0] * sizes[requested].prod(axis=1))
        blocks += contrasts(domain, taus, measure)
        errors.append(np.concatenate(measure_errors))
        prices = residual_prices(domain, problem.privacy, measure, taus, errors[-1])
        norms.append(domain.largest_value(measure) * np.sqrt(prices))
    weights = grouped_budgets(np.concatenate(errors), np.concatenate(norms), 2).theta.tolist()
    return Strategy("residual", tuple(zip(blocks, weights, strict=True)))


def contrasts(domain: Domain, taus: Sequence[Sequence[int]], measure: str | None) -> list[Block]:
    """Return a block of contrasts for each set of attributes.

    The blocks measure counts (None) or the sums of a measure.
    """
    factors = {
        at: Factor((domain.names[at],), Contrasts(domain.shape[at]))
        for at in {*chain.from_iterable(taus)}
    }
    return [Block(tuple([factors[at] for at in tau]), Fraction(1), measure) for tau in taus]


RESIDUAL = Planner(
    name="residual",
    propose=residual,
    measures="integer contrasts of every set of attributes, each set with its own noise: optimal "
    "for marginals",
    made_for="marginals under Gaussian noise",
    norms=(2,),
    advice_for_other_noise=(
        "residual spaces are measured by contrasts, on which Laplace noise is not spent evenly;"
        " choose covering"
    ),
    limits="tables of 2^28 cells",
    paper="arXiv 2305.08175",
    contains=contained_planners,
)


def measured_workload(problem: PlanningProblem, *, has_equal_noise: bool = False) -> Strategy:
    """Return the queries of the workload as a strategy.

    The split minimises the error or, with ``has_equal_noise``, gives all queries equal noise.

    For an attribute with a hidden cell, the hidden cell is measured in addition to the cells or the
    groups of a level. Measuring the hidden cell does not increase the privacy cost of any row.

    Source: the strategies Q+ and Q of Cormode et al. (arXiv 1207.6096), here with recovery by least
        squares.
    """
    workload = problem.workload
    norm = problem.norm
    if workload.rows > _MOST_QUERIES:
        raise NotApplicable(
            f"the workload has {workload.rows} queries, but at most {_MOST_QUERIES} can be "
            "measured one by one"
        )
    blocks = []
    for product in workload:
        factors = []
        for name, query_set in product.along.items():
            kind = workload.domain.kind(name)
            factors.append(
                Factor((name,), with_hidden_group(query_set, kind).operator(name, kind))
                if kind.hidden and not product.counts_groups
                else Factor((name,), product.operators[product.attributes.index(name)])
            )
        blocks.append(Block(tuple(factors), Fraction(1), product.measure))
    if has_equal_noise:
        return Strategy("workload_even", tuple((block, 1.0) for block in blocks))
    if len(blocks) == 1 and len(blocks[0].factors) == 1:
        return Strategy("workload", ((_weighted_rows(blocks[0], norm), 1.0),))
    errors = np.array([product.importance * product.rows for product in workload])
    weights = grouped_budgets(
        errors, [block_norm(workload.domain, block, norm) for block in blocks], norm
    ).theta
    return Strategy("workload", tuple(zip(blocks, weights.tolist(), strict=True)))


def _weighted_rows(block: Block, norm: int) -> Block:
    """Return a one-attribute block with the best weight for each query.

    A table with too many queries is returned unchanged.
    """
    factor = block.factors[0]
    if factor.operator.rows * factor.operator.size > _MOST_ENTRIES:
        return block
    budgets = optimal_budgets(
        np.abs(dense(factor.operator)).astype(float),
        np.ones(factor.operator.rows),
        norm,
        gap=1e-4,
        max_steps=2000,
    )
    weights = np.rint(np.maximum(budgets / budgets.max(), _LEAST_WEIGHT) / _LEAST_WEIGHT).astype(
        np.int64
    )
    if (weights == weights[0]).all():
        return block
    return Block((Factor(factor.attributes, factor.operator, weights),), block.scale, block.measure)


def _inverse_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of the inverses that standard errors need.

    These computations are not limited by a deadline.

    If the tables have different query sets on an attribute, one inverse is over the joint cells.
    """
    operators = {operator for _, _, operator in workload.along if operator.rows > 1} - {
        Identity(workload.domain.kind(name).size) for name in workload.domain.names
    }
    inverses = sum(
        0.8 * (min(operator.rows, operator.size) / 1024) ** 3
        if operator.size <= MOST_DENSE
        else 0.3
        for operator in operators
    )
    ways = {(name, operator) for name, _, operator in workload.along}
    cells = math.prod(workload.domain.kind(name).size for name in workload.attributes)
    if len(ways) <= len(workload.attributes) or cells > MOST_DENSE:
        return inverses
    # The search for the budget split between counts and sums.
    tried = 6 if workload.counted_sums and cells <= 256 else 1
    return inverses + tried * (10 * (cells / 2880) ** 3 + 2.5e-10 * workload.rows * cells**2)


def _workload_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of query weights and inverses."""
    operators = workload.products[0].operators
    if len(workload.products) == 1 == len(operators):
        entries = operators[0].rows * operators[0].size
    else:
        entries = 0
    return (
        base_seconds(workload)
        + (1.8 * entries / 2**20 if entries <= _MOST_ENTRIES else 0.0)
        + _inverse_seconds(workload)
    )


WORKLOAD = Planner(
    name="workload",
    propose=measured_workload,
    measures="every query of the workload, unchanged",
    made_for="few queries",
    limits="2^22 queries",
    paper="Q+ in Cormode et al., arXiv 1207.6096",
    seconds=_workload_seconds,
    relative_likelihood=lambda _: 1 / 8,
)
WORKLOAD_EVEN = replace(
    WORKLOAD,
    name="workload_even",
    propose=partial(measured_workload, has_equal_noise=True),
    measures="every query of the workload, all with the same noise",
    paper="Q in Cormode et al., arXiv 1207.6096",
    automatic=False,
)


def optimal_budgets(
    coefficients: FloatArray,
    errors: FloatArray,
    norm: int,
    *,
    gap: float = 1e-6,
    max_steps: int = 20_000,
) -> FloatArray:
    """Return the best weights of queries, without least-squares recovery.

    The weights have privacy cost 1 and shape (queries,).
    """
    if norm == 1:
        entries = coefficients
        root = 3
    else:
        entries = coefficients**2
        root = 2

    def step(weights: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Compute column costs, dual value and query weights from dual weights."""
        prices = entries @ weights
        bound = float(((errors * prices ** (root - 1)) ** (1 / root)).sum())
        budget = (errors / prices) ** (1 / root)
        budget /= float(prices @ budget)  # theta for Laplace, theta^2 for Gaussian noise
        cost = entries.T @ budget
        return cost, bound, budget / float(cost.max())

    columns = entries.shape[1]
    budget = dual_ascent(
        step, np.full(columns, 1 / columns), (1 + gap) ** (1 / (root - 1)) - 1, max_steps
    )[3]
    if norm == 1:
        return budget
    return np.sqrt(budget)
